/* SPDX-License-Identifier: MIT
 * fuzz.h - what a fuzz target includes.
 *
 * A target defines LLVMFuzzerTestOneInput, which feeds one input to the code under test and checks
 * with FUZZ_CHECK what must hold for every input. driver.c gives it a main; clang's libFuzzer can
 * take the driver's place.
 */
#ifndef SN_TESTS_FUZZ_H
#define SN_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns 0. data is exactly `size` octets, so a sanitizer sees any read past it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(cond)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #cond);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A heap copy of exactly len octets. */
static inline uint8_t *fuzz_copy(const void *data, size_t len) {
    uint8_t *p = (uint8_t *)calloc(1, len ? len : 1);
    FUZZ_CHECK(p != NULL);
    if (len) memcpy(p, data, len);
    return p;
}

#endif
