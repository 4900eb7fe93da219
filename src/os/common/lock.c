/* SPDX-License-Identifier: MIT
 *
 * A lock is one word; its uncontended path is inline. Sections are short, so a loser spins a
 * little before it sleeps on the word. Whoever leaves looks at the mark and then stores; a mark set
 * in between is lost. The sleeper finds the word changed then, as a rule before it sleeps; if the
 * owner lost its processor right there, when the time is over.
 */
#include "os/prim/lock.h"
#include "base/base.h"
#include "os/prim/clock.h"
#include "os/prim/thread.h"

enum { SPINS = 100 };
#define LOST_MARK_NS OS_NS_PER_MS

void os_lock_init(os_lock *l, enum os_rank rank) {
    os_u32_store_relaxed(&l->word, 0);
    l->rank = (uint32_t)rank;
}

void os_lock_fini(os_lock *l) {
    SN_DEBUG(os_u32_load_relaxed(&l->word) == 0);
    (void)l;
}

void os_lock_enter_slow(os_lock *l) {
    for (int i = 0; i < SPINS; i++) {
        uint32_t expected = 0;
        if (os_u32_load_relaxed(&l->word) == 0 && os_u32_cas_acq_rel(&l->word, &expected, 1))
            return;
        os_cpu_relax();
    }
    while (os_u32_exchange_acq_rel(&l->word, 2) != 0)
        os_wait_on(&l->word, 2, os_now_ns() + LOST_MARK_NS);
}

void os_lock_leave_slow(os_lock *l) {
    if (os_u32_exchange_acq_rel(&l->word, 0) == 2) os_wake_one(&l->word);
}

void os_cond_init(os_cond *c) {
    os_u32_store_relaxed(&c->seq, 0);
}

void os_cond_fini(os_cond *c) {
    (void)c;
}

bool os_cond_wait(os_cond *c, os_lock *l, uint64_t deadline_ns) {
    uint32_t seq = os_u32_load_acquire(&c->seq);
    os_lock_leave(l);
    bool woken = os_wait_on(&c->seq, seq, deadline_ns);
    os_lock_enter(l);
    return woken;
}

void os_cond_signal(os_cond *c) {
    os_u32_fetch_add_seqcst(&c->seq, 1);
    os_wake_one(&c->seq);
}

void os_cond_broadcast(os_cond *c) {
    os_u32_fetch_add_seqcst(&c->seq, 1);
    os_wake_all(&c->seq);
}
