/* SPDX-License-Identifier: MIT
 * lock.h - mutex with a rank, and a condition variable with a deadline.
 * Owns:    the lock order. Ranks are listed in docs/locking.md; a thread takes ranks upward only.
 *          With SN_DEBUG_CHECKS a wrong step aborts and names both ranks.
 * Threads: any.   Errors: none; init cannot fail.
 */
#ifndef SN_OS_LOCK_H
#define SN_OS_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include "os/common/rank.h"
#include "os/prim/atomic.h"

/* Rank values; docs/locking.md says what each guards. Equal ranks do not nest. */
enum os_rank {
    OS_RANK_MODULE = 5,     /* provider-wide lists, library start and stop */
    OS_RANK_ADAPTER = 10,   /* an adapter's object lists */
    OS_RANK_POLL = 15,      /* who polls a completion queue */
    OS_RANK_REQUESTS = 16,  /* requests that a transport listener hands up */
    OS_RANK_EVENT = 17,     /* connection events of one transport connection */
    OS_RANK_CONN = 20,      /* listener, connector */
    OS_RANK_QP = 30,        /* queue pair state */
    OS_RANK_STREAM_RX = 40, /* receive side of a stream */
    OS_RANK_STREAM_TX = 45, /* send side of a stream */
    OS_RANK_SQ = 47,        /* initiator queue of a queue pair */
    OS_RANK_RQ = 48,        /* receive queue of a queue pair */
    OS_RANK_SRQ = 50,
    OS_RANK_CQ = 60,
    OS_RANK_REGION = 70,  /* token table writers */
    OS_RANK_REQUEST = 75, /* overlapped requests */
    OS_RANK_ENGINE = 80,  /* timers, watches, job list of an engine */
    OS_RANK_LEAF = 90     /* anything that takes no other lock */
};

/* 0 free, 1 held, 2 held and somebody may wait. */
typedef struct {
    os_atomic_u32 word;
    uint32_t rank;
} os_lock;
typedef struct {
    os_atomic_u32 seq; /* bumped by every signal */
} os_cond;

/* For one of static storage, which needs neither init nor fini. */
#define OS_LOCK_STATIC(r)                                                                          \
    { .rank = (r) }

void os_lock_init(os_lock *l, enum os_rank rank);
void os_lock_fini(os_lock *l);
void os_lock_enter_slow(os_lock *l); /* os_lock_enter's */
void os_lock_leave_slow(os_lock *l); /* os_lock_leave's */

static inline void os_lock_enter(os_lock *l) {
    uint32_t expected = 0;
    os_rank_check(l, l->rank);
    if (!os_u32_cas_acq_rel(&l->word, &expected, 1)) os_lock_enter_slow(l);
    os_rank_push(l, l->rank);
}
/* True if taken. Exempt from the rank check, since it cannot deadlock. */
static inline bool os_lock_try(os_lock *l) {
    uint32_t expected = 0;
    if (os_u32_load_relaxed(&l->word) != 0 || !os_u32_cas_acq_rel(&l->word, &expected, 1))
        return false;
    os_rank_push(l, l->rank);
    return true;
}
/* A plain store, which costs a fraction of an exchange. Who marks the word between the look and the
 * store is not woken; it sleeps for a bounded time only (lock.c). */
static inline void os_lock_leave(os_lock *l) {
    os_rank_pop(l, l->rank);
    if (os_u32_load_relaxed(&l->word) == 1)
        os_u32_store_release(&l->word, 0);
    else
        os_lock_leave_slow(l);
}
/* Two that hold different locks need not take both. One takes a, then finds b free (is_free), and
 * is alone until it leaves a. The other takes b and then passes a: whoever holds a is waited for,
 * and who takes it later finds b held. */
static inline bool os_lock_is_free(const os_lock *b) {
    os_fence_after_exchange();
    return os_u32_load_acquire(&b->word) == 0;
}
static inline void os_lock_pass(os_lock *a) {
    if (os_lock_is_free(a)) return;
    os_lock_enter(a);
    os_lock_leave(a);
}
/* Debug: aborts unless the calling thread holds l. Nothing otherwise. */
static inline void os_lock_assert_held(const os_lock *l) {
    os_rank_assert_held(l, l->rank);
}

void os_cond_init(os_cond *c);
void os_cond_fini(os_cond *c);
/* Waits until signalled or until the monotonic time deadline_ns (os_now_ns), UINT64_MAX: for ever.
 * Spurious returns happen. False on time-out. */
bool os_cond_wait(os_cond *c, os_lock *l, uint64_t deadline_ns);
void os_cond_signal(os_cond *c);
void os_cond_broadcast(os_cond *c);

#endif
