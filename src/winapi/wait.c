/* SPDX-License-Identifier: MIT
 * wait.c - signalling and waiting: one claim per signal, one wake per waiter.
 * A wait for any object queues a block on each; whoever signals first claims the waiter with one
 * compare-and-swap, so an auto-reset signal is handed to exactly one wait and is never lost with a
 * waiter that times out. A wait for all objects only asks to be poked, then looks at all of them
 * with all locks held, in address order.
 */
#include "winapi/object.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- signalling ---- */

/* Wakes the parker held back so far, and holds this one back: the last wake of a signal happens
 * after the lock was dropped, so that its thread does not run into the lock. */
static void hold_back(struct wa_parker **held, struct wa_parker *p) {
    if (*held) wa_unpark(*held);
    *held = p;
}

struct wa_parker *wa_signal_locked(struct wa_object *o, bool signaled) {
    struct wa_parker *held = NULL;
    bool consumed = false;
    SN_LIST_FOR_SAFE(it, tmp, &o->waiters) {
        struct wa_block *b = SN_CONTAINER(it, struct wa_block, node);
        struct wa_parker *p = b->waiter->parker;
        if (b->kind == WA_BLOCK_POKE) {
            hold_back(&held, p);
            continue;
        }
        if (!signaled || consumed) continue;
        int expected = WA_WAITING;
        if (!atomic_compare_exchange_strong(&b->waiter->outcome, &expected, b->idx)) continue;
        sn_list_remove(it);
        hold_back(&held, p);
        consumed = o->auto_reset;
    }
    if (signaled && !consumed) {
        o->signaled = true;
        wa_fd_set_locked(o, true);
    }
    return held;
}

struct wa_parker *wa_signal_held(struct wa_object *o) {
    pthread_mutex_lock(&o->lock);
    /* Setting what is set already: nobody can be waiting to claim it. */
    struct wa_parker *p = o->signaled ? NULL : wa_signal_locked(o, true);
    pthread_mutex_unlock(&o->lock);
    return p;
}

void wa_signal(struct wa_object *o) {
    struct wa_parker *p = wa_signal_held(o);
    if (p) wa_unpark(p);
}

void wa_unsignal_locked(struct wa_object *o) {
    o->signaled = false;
    wa_fd_set_locked(o, false);
}

void wa_unsignal(struct wa_object *o) {
    pthread_mutex_lock(&o->lock);
    wa_unsignal_locked(o);
    pthread_mutex_unlock(&o->lock);
}

static void consume_locked(struct wa_object *o) {
    if (o->auto_reset) wa_unsignal_locked(o);
}

/* ---- waiting for any ---- */

static bool take_if_signaled(struct wa_object *o) {
    pthread_mutex_lock(&o->lock);
    bool taken = o->signaled;
    if (taken) consume_locked(o);
    pthread_mutex_unlock(&o->lock);
    return taken;
}

/* Queues the block, or claims the waiter at once if the object is signaled. */
static void enqueue_or_claim(struct wa_object *o, struct wa_block *b) {
    pthread_mutex_lock(&o->lock);
    int expected = WA_WAITING;
    if (b->kind == WA_BLOCK_CLAIM && o->signaled) {
        if (atomic_compare_exchange_strong(&b->waiter->outcome, &expected, b->idx))
            consume_locked(o);
    } else {
        sn_list_push_back(&o->waiters, &b->node);
    }
    pthread_mutex_unlock(&o->lock);
}

/* Takes the block off; after this no signaller knows the waiter through this object. */
static void dequeue(struct wa_object *o, struct wa_block *b) {
    pthread_mutex_lock(&o->lock);
    sn_list_remove(&b->node);
    pthread_mutex_unlock(&o->lock);
}

static int await_outcome(struct wa_waiter *w, int64_t deadline_ns, bool (*look)(void *),
                         void *arg) {
    bool in_time = true;
    for (;;) {
        int outcome = atomic_load(&w->outcome);
        if (outcome != WA_WAITING) return outcome;
        int end = look && look(arg) ? WA_LOOKED : !in_time ? WA_TIMED_OUT : WA_WAITING;
        if (end != WA_WAITING) {
            if (atomic_compare_exchange_strong(&w->outcome, &outcome, end)) return end;
            return outcome; /* claimed in the last moment: the signal is ours */
        }
        in_time = wa_park(w->parker, deadline_ns);
    }
}

int wa_wait_any(const struct wa_target *targets, unsigned count, int64_t deadline_ns,
                bool (*look)(void *), void *arg) {
    for (unsigned i = 0; i < count; i++)
        if (targets[i].kind == WA_BLOCK_CLAIM && take_if_signaled(targets[i].obj)) return (int)i;
    if (look && look(arg)) return WA_LOOKED;
    if (deadline_ns != WA_NEVER && deadline_ns <= wa_now_ns()) return WA_TIMED_OUT;

    struct wa_waiter w = { .parker = wa_parker_acquire() };
    if (!w.parker) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return WA_FAILED;
    }
    atomic_init(&w.outcome, WA_WAITING);
    struct wa_block blocks[MAXIMUM_WAIT_OBJECTS];
    unsigned queued = 0;
    while (queued < count && atomic_load(&w.outcome) == WA_WAITING) {
        struct wa_block *b = &blocks[queued];
        *b = (struct wa_block){ .waiter = &w, .idx = (int)queued, .kind = targets[queued].kind };
        sn_list_init(&b->node);
        enqueue_or_claim(targets[queued].obj, b);
        queued++;
    }
    int outcome = await_outcome(&w, deadline_ns, look, arg);
    for (unsigned i = 0; i < queued; i++)
        dequeue(targets[i].obj, &blocks[i]);
    wa_parker_release(w.parker);
    return outcome;
}

/* ---- waiting for all ---- */

static int by_address(const void *a, const void *b) {
    const struct wa_object *const *x = a, *const *y = b;
    return (*x > *y) - (*x < *y);
}

static void lock_all(struct wa_object **sorted, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        pthread_mutex_lock(&sorted[i]->lock);
}

static void unlock_all(struct wa_object **sorted, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        pthread_mutex_unlock(&sorted[i]->lock);
}

static bool take_all_locked(struct wa_object **sorted, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (!sorted[i]->signaled) return false;
    for (unsigned i = 0; i < count; i++)
        consume_locked(sorted[i]);
    return true;
}

static int wait_all(struct wa_object **objs, unsigned count, int64_t deadline_ns) {
    struct wa_object *sorted[MAXIMUM_WAIT_OBJECTS];
    memcpy(sorted, objs, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_address);
    for (unsigned i = 1; i < count; i++)
        if (sorted[i] == sorted[i - 1]) {
            SetLastError(ERROR_INVALID_PARAMETER);
            return WA_FAILED;
        }
    struct wa_waiter w = { .parker = wa_parker_acquire() };
    if (!w.parker) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return WA_FAILED;
    }
    atomic_init(&w.outcome, WA_WAITING);
    struct wa_block blocks[MAXIMUM_WAIT_OBJECTS];
    bool taken = false, queued = false, in_time = true;
    for (;;) {
        lock_all(sorted, count);
        taken = take_all_locked(sorted, count);
        for (unsigned i = 0; !taken && !queued && i < count; i++) {
            blocks[i] = (struct wa_block){ .waiter = &w, .kind = WA_BLOCK_POKE };
            sn_list_push_back(&sorted[i]->waiters, &blocks[i].node);
        }
        queued = queued || !taken;
        unlock_all(sorted, count);
        if (taken || !in_time) break;
        in_time = wa_park(w.parker, deadline_ns);
    }
    for (unsigned i = 0; queued && i < count; i++)
        dequeue(sorted[i], &blocks[i]);
    wa_parker_release(w.parker);
    return taken ? 0 : WA_TIMED_OUT;
}

/* ---- the Win32 calls ---- */

static DWORD wait_result(int outcome) {
    if (outcome == WA_TIMED_OUT) return WAIT_TIMEOUT;
    return outcome < 0 ? WAIT_FAILED : WAIT_OBJECT_0 + (DWORD)outcome;
}

DWORD WaitForSingleObjectEx(HANDLE h, DWORD timeout_ms, BOOL alertable) {
    return WaitForMultipleObjectsEx(1, &h, FALSE, timeout_ms, alertable);
}

DWORD WaitForSingleObject(HANDLE h, DWORD timeout_ms) {
    return WaitForMultipleObjectsEx(1, &h, FALSE, timeout_ms, FALSE);
}

DWORD WaitForMultipleObjects(DWORD count, const HANDLE *handles, BOOL all, DWORD timeout_ms) {
    return WaitForMultipleObjectsEx(count, handles, all, timeout_ms, FALSE);
}

/* There are no asynchronous procedure calls here, so `alertable` changes nothing. */
DWORD WaitForMultipleObjectsEx(DWORD count, const HANDLE *handles, BOOL all, DWORD timeout_ms,
                               BOOL alertable) {
    (void)alertable;
    struct wa_object *objs[MAXIMUM_WAIT_OBJECTS];
    struct wa_target targets[MAXIMUM_WAIT_OBJECTS];
    if (count == 0 || count > MAXIMUM_WAIT_OBJECTS || !handles) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return WAIT_FAILED;
    }
    int64_t deadline_ns = wa_deadline(timeout_ms);
    DWORD found = 0;
    while (found < count && (objs[found] = wa_lookup(handles[found], WA_WAITABLE)) != NULL) {
        targets[found] = (struct wa_target){ objs[found], WA_BLOCK_CLAIM };
        found++;
    }
    int outcome = WA_FAILED;
    if (found < count)
        SetLastError(ERROR_INVALID_HANDLE);
    else if (all && count > 1)
        outcome = wait_all(objs, count, deadline_ns);
    else
        outcome = wa_wait_any(targets, count, deadline_ns, NULL, NULL);
    while (found > 0)
        wa_object_release(objs[--found]);
    return wait_result(outcome);
}

void Sleep(DWORD milliseconds) {
    if (milliseconds == 0) {
        sched_yield();
        return;
    }
    int64_t deadline_ns = wa_deadline(milliseconds);
    struct timespec until = { (time_t)(deadline_ns / 1000000000),
                              (long)(deadline_ns % 1000000000) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}
