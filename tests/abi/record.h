/* SPDX-License-Identifier: MIT
 * record.h - what an object of the other language saw of a call. The objects in c_objects.c and
 * cpp_objects.cpp write it, the tests in the other language read it. One thread.
 */
#ifndef TESTS_ABI_RECORD_H
#define TESTS_ABI_RECORD_H

#include <stdint.h>

#include "ndspi.h"
#include "methods.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RECORD_ARGS 11

struct record {
    const char *called;         /* "interface::method", NULL before the call */
    const void *self;           /* the object as the method got it */
    uint64_t args[RECORD_ARGS]; /* by the index that EACH counts */
    uint32_t result;            /* what the method returns, chosen by the caller */
    int calls;
};
extern struct record record;

/* Arguments: the same 64 bits for both sides, cut to the parameter's type. Every byte of every
 * index differs from its neighbours, and the top bit of each width is set. */
static inline uint64_t argument_bits(int index) {
    return 0x9A8070E0D0C0B0A0u + (uint64_t)index * 0x0101010101010108u;
}

/* For parameters that are references to GUIDs, which must point at one. */
extern const IID argument_iids[RECORD_ARGS];

/* An object of each interface, implemented in C or in C++. Static: never freed. */
#define DECLARE_OBJECTS(I, slots)                                                                  \
    I *c_##I(void);                                                                                \
    I *cpp_##I(void);
ALL_INTERFACES(DECLARE_OBJECTS)
#undef DECLARE_OBJECTS

#ifdef __cplusplus
}
#endif

#endif
