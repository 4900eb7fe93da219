/* SPDX-License-Identifier: MIT */
#include "os/common/rank.h"

#ifdef SN_DEBUG_CHECKS

#include <stdio.h>
#include <stdlib.h>

/* The deepest legal nest is one lock per rank; tries may add a few. */
#define HELD_MAX 32

static _Thread_local struct {
    const void *lock;
    uint32_t rank;
} held[HELD_MAX];
static _Thread_local uint32_t held_count;

void os_rank_check(const void *lock, uint32_t rank) {
    for (uint32_t i = 0; i < held_count; i++) {
        if (held[i].rank < rank) continue;
        fprintf(stderr, "softnd: lock order: %s lock %p of rank %u while holding %p of rank %u\n",
                held[i].lock == lock ? "taking again" : "taking", lock, rank, held[i].lock,
                held[i].rank);
        abort();
    }
}

void os_rank_push(const void *lock, uint32_t rank) {
    if (held_count == HELD_MAX) {
        fprintf(stderr, "softnd: lock order: more than %d locks held\n", HELD_MAX);
        abort();
    }
    held[held_count].lock = lock;
    held[held_count].rank = rank;
    held_count++;
}

void os_rank_pop(const void *lock, uint32_t rank) {
    for (uint32_t i = held_count; i-- > 0;)
        if (held[i].lock == lock) {
            held[i] = held[--held_count];
            return;
        }
    fprintf(stderr, "softnd: lock order: leaving lock %p of rank %u, which is not held\n", lock,
            rank);
    abort();
}

void os_rank_assert_held(const void *lock, uint32_t rank) {
    for (uint32_t i = 0; i < held_count; i++)
        if (held[i].lock == lock) return;
    fprintf(stderr, "softnd: lock order: lock %p of rank %u should be held here\n", lock, rank);
    abort();
}

#else
typedef int rank_checks_are_off; /* ISO C wants a declaration */
#endif
