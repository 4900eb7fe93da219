/* SPDX-License-Identifier: MIT
 * wire_test.h - what the codec tests share: vectors, exactly sized copies, a seeded random source.
 */
#ifndef SN_TESTS_IWARP_WIRE_TEST_H
#define SN_TESTS_IWARP_WIRE_TEST_H

#include "support/testing.h"
#include "iwarp/mpa.h"
#include "vectors.h"

#include <time.h>

static inline const struct wire_vector *need_vector(const char *id) {
    const struct wire_vector *v = wire_vector(id);
    if (!v) FAIL("no vector %s", id);
    return v;
}

/* A heap copy of exactly len octets, so that a sanitizer sees a read of one too many. */
static inline uint8_t *exact_copy(const void *data, size_t len) {
    uint8_t *p = (uint8_t *)calloc(1, len ? len : 1);
    if (!p) FAIL("out of memory");
    if (len) memcpy(p, data, len);
    return p;
}

/* xorshift64*, started from SOFTND_TEST_SEED or the clock; the seed is printed by the first use. */
static inline uint64_t random_u64(void) {
    static uint64_t x;
    if (x == 0) {
        const char *env = getenv("SOFTND_TEST_SEED");
        x = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL) * 0x9E3779B97F4A7C15u;
        if (x == 0) x = 1;
        printf("  SOFTND_TEST_SEED=0x%llx\n", (unsigned long long)x);
    }
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    return x * 0x2545F4914F6CDD1Du;
}

/* 0 .. n - 1. */
static inline uint32_t random_below(uint32_t n) {
    return (uint32_t)((random_u64() >> 32) % n);
}

static inline bool random_bool(void) {
    return random_u64() >> 63;
}

static inline void random_fill(uint8_t *p, size_t len) {
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(random_u64() >> 56);
}

#endif
