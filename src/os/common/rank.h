/* SPDX-License-Identifier: MIT
 * rank.h - which locks the calling thread holds, for the check of the lock order.
 * Owns:    a list per thread; empty functions without SN_DEBUG_CHECKS.
 * Threads: each call is about the calling thread only.   Errors: aborts, naming both ranks.
 */
#ifndef SN_OS_COMMON_RANK_H
#define SN_OS_COMMON_RANK_H

#include <stdint.h>

#ifdef SN_DEBUG_CHECKS
/* Before blocking on the lock: aborts unless rank is above every rank held. */
void os_rank_check(const void *lock, uint32_t rank);
/* After the lock was taken. */
void os_rank_push(const void *lock, uint32_t rank);
/* Before the lock is left, in any order; aborts if it is not held. */
void os_rank_pop(const void *lock, uint32_t rank);
/* Aborts unless the lock is held. */
void os_rank_assert_held(const void *lock, uint32_t rank);
#else
static inline void os_rank_check(const void *lock, uint32_t rank) {
    (void)lock;
    (void)rank;
}
static inline void os_rank_push(const void *lock, uint32_t rank) {
    (void)lock;
    (void)rank;
}
static inline void os_rank_pop(const void *lock, uint32_t rank) {
    (void)lock;
    (void)rank;
}
static inline void os_rank_assert_held(const void *lock, uint32_t rank) {
    (void)lock;
    (void)rank;
}
#endif

#endif
