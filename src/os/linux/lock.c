/* SPDX-License-Identifier: MIT */
#include "os/prim/lock.h"
#include <errno.h>
#include <time.h>
#include "base/base.h"
#include "os/common/rank.h"
#include "os/prim/clock.h"

void os_lock_init(os_lock *l, enum os_rank rank) {
    int e = pthread_mutex_init(&l->m, NULL);
    SN_ASSERT(e == 0);
    l->rank = (uint32_t)rank;
}

void os_lock_fini(os_lock *l) {
    pthread_mutex_destroy(&l->m);
}

void os_lock_enter(os_lock *l) {
    os_rank_check(l, l->rank);
    int e = pthread_mutex_lock(&l->m);
    SN_ASSERT(e == 0);
    os_rank_push(l, l->rank);
}

bool os_lock_try(os_lock *l) {
    if (pthread_mutex_trylock(&l->m) != 0) return false;
    os_rank_push(l, l->rank);
    return true;
}

void os_lock_leave(os_lock *l) {
    os_rank_pop(l, l->rank);
    int e = pthread_mutex_unlock(&l->m);
    SN_ASSERT(e == 0);
}

void os_lock_assert_held(const os_lock *l) {
    os_rank_assert_held(l, l->rank);
}

void os_cond_init(os_cond *c) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int e = pthread_cond_init(&c->c, &attr);
    SN_ASSERT(e == 0);
    pthread_condattr_destroy(&attr);
}

void os_cond_fini(os_cond *c) {
    pthread_cond_destroy(&c->c);
}

bool os_cond_wait(os_cond *c, os_lock *l, uint64_t deadline_ns) {
    os_rank_pop(l, l->rank);
    /* The mutex is taken again inside the wait: the order must hold without it. */
    os_rank_check(l, l->rank);
    int e;
    if (deadline_ns == OS_FOREVER) {
        e = pthread_cond_wait(&c->c, &l->m);
    } else {
        struct timespec ts = { .tv_sec = (time_t)(deadline_ns / 1000000000u),
                               .tv_nsec = (long)(deadline_ns % 1000000000u) };
        e = pthread_cond_timedwait(&c->c, &l->m, &ts);
    }
    SN_ASSERT(e == 0 || e == ETIMEDOUT);
    os_rank_push(l, l->rank);
    return e == 0;
}

void os_cond_signal(os_cond *c) {
    pthread_cond_signal(&c->c);
}

void os_cond_broadcast(os_cond *c) {
    pthread_cond_broadcast(&c->c);
}
