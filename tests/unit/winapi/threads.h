/* SPDX-License-Identifier: MIT
 * threads.h - test threads, and waiting for a condition with a deadline instead of sleeping.
 */
#ifndef SN_TESTS_WINAPI_THREADS_H
#define SN_TESTS_WINAPI_THREADS_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include "support/testing.h"
#include "winapi/object.h"

#define PATIENCE_MS 20000 /* a machine that is busy with other things must not fail a test */

static inline pthread_t start_thread(void *(*run)(void *), void *arg) {
    pthread_t t;
    if (pthread_create(&t, NULL, run, arg) != 0) FAIL("no thread");
    return t;
}

/* Yields until cond(arg); fails the case after PATIENCE_MS. */
static inline void await(bool (*cond)(void *), void *arg, const char *what) {
    int64_t deadline = wa_deadline(PATIENCE_MS);
    while (!cond(arg)) {
        if (wa_now_ns() > deadline) FAIL("no %s within %d ms", what, PATIENCE_MS);
        poll(NULL, 0, 1);
    }
}

/* Number of blocks queued on the object of a handle: how many threads wait for it. */
static inline unsigned waiters_of(HANDLE h) {
    struct wa_object *o = wa_lookup(h, WA_EVENT | WA_FILE | WA_PORT);
    unsigned count = 0;
    if (!o) return 0;
    pthread_mutex_lock(&o->lock);
    struct sn_list *waiters = o->kind == WA_PORT ? &o->u.port.waiters : &o->waiters;
    for (struct sn_list *it = waiters->next; it != waiters; it = it->next)
        count++;
    pthread_mutex_unlock(&o->lock);
    wa_object_release(o);
    return count;
}

struct waiters_wanted {
    HANDLE handle;
    unsigned count;
};

static inline bool has_waiters(void *arg) {
    const struct waiters_wanted *w = arg;
    return waiters_of(w->handle) == w->count;
}

static inline void await_waiters(HANDLE h, unsigned count) {
    struct waiters_wanted w = { h, count };
    await(has_waiters, &w, "thread waiting for the object");
}

static inline bool fd_readable(int fd) {
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return poll(&p, 1, 0) == 1 && (p.revents & POLLIN) != 0;
}

#endif
