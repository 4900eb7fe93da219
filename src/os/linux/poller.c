/* SPDX-License-Identifier: MIT
 * The wake. An eventfd stays readable until a waiter that may consume it has read it, so a wake
 * that comes before the wait is kept, and a poll (timeout 0) leaves it for the next real wait.
 * `woken` saves the write when one is outstanding. The consumer reads first and clears `woken`
 * second: a waker that comes between the two writes nothing, and rightly, because that consumer
 * has not returned yet and will see what the waker had changed. */
#include "os/io/poller.h"
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/base.h"
#include "os/linux/errno_status.h"
#include "os/prim/atomic.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"

#define WAKE_KEY OS_POLL_KEY_RESERVED
#define BURST_MAX 64 /* events per system call; level triggered, so the rest come next time */

struct os_poller {
    int epoll;           /* [const] */
    int wake;            /* [const] */
    os_atomic_u32 woken; /* [atomic] 1 while the eventfd is or will be readable */
};

static uint32_t to_epoll(uint32_t events) {
    return (events & OS_POLL_IN ? (uint32_t)EPOLLIN : 0u) |
           (events & OS_POLL_OUT ? (uint32_t)EPOLLOUT : 0u);
}

static uint32_t from_epoll(uint32_t events) {
    return (events & EPOLLIN ? (uint32_t)OS_POLL_IN : 0u) |
           (events & EPOLLOUT ? (uint32_t)OS_POLL_OUT : 0u) |
           (events & (EPOLLHUP | EPOLLERR) ? (uint32_t)OS_POLL_HUP : 0u);
}

static sn_status control(struct os_poller *p, int op, int fd, uint64_t key, uint32_t events) {
    struct epoll_event ev = { .events = events, .data.u64 = key };
    if (os_fault_hit(OS_FAULT_SYSCALL)) return SN_E_RESOURCES;
    if (epoll_ctl(p->epoll, op, fd, &ev) == 0) return SN_OK;
    return errno == ENOMEM ? SN_E_RESOURCES : os_errno_status(errno);
}

sn_status os_poller_create(struct os_poller **out) {
    struct os_poller *p = os_zalloc(sizeof *p);
    if (!p) return SN_E_NOMEM;
    p->epoll = os_fault_hit(OS_FAULT_SYSCALL) ? -1 : epoll_create1(EPOLL_CLOEXEC);
    if (p->epoll < 0) goto no_epoll;
    p->wake = os_fault_hit(OS_FAULT_SYSCALL) ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->wake < 0) goto no_wake;
    if (control(p, EPOLL_CTL_ADD, p->wake, WAKE_KEY, EPOLLIN) != SN_OK) goto no_watch;
    *out = p;
    return SN_OK;
no_watch:
    close(p->wake);
no_wake:
    close(p->epoll);
no_epoll:
    os_free(p);
    return SN_E_RESOURCES;
}

void os_poller_destroy(struct os_poller *p) {
    if (!p) return;
    close(p->wake);
    close(p->epoll);
    os_free(p);
}

sn_status os_poller_add(struct os_poller *p, os_sock s, uint64_t key, uint32_t events) {
    if (key == WAKE_KEY) return SN_E_PARAM;
    return control(p, EPOLL_CTL_ADD, (int)s, key, to_epoll(events));
}

sn_status os_poller_modify(struct os_poller *p, os_sock s, uint64_t key, uint32_t events) {
    if (key == WAKE_KEY) return SN_E_PARAM;
    return control(p, EPOLL_CTL_MOD, (int)s, key, to_epoll(events));
}

void os_poller_remove(struct os_poller *p, os_sock s) {
    struct epoll_event unused = { 0 };
    (void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, (int)s, &unused);
}

static int to_ms(uint64_t timeout_ns) {
    if (timeout_ns == OS_FOREVER) return -1;
    uint64_t ms = timeout_ns / OS_NS_PER_MS + (timeout_ns % OS_NS_PER_MS != 0);
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

static void consume_wake(struct os_poller *p) {
    uint64_t n;
    (void)!read(p->wake, &n, sizeof n);
    (void)os_u32_exchange_acq_rel(&p->woken, 0);
}

size_t os_poller_wait(struct os_poller *p, struct os_poll_event *out, size_t max,
                      uint64_t timeout_ns) {
    struct epoll_event ev[BURST_MAX + 1]; /* one more, for the wake */
    int room = (int)SN_MIN(max, (size_t)BURST_MAX) + 1;
    int n = epoll_wait(p->epoll, ev, room, to_ms(timeout_ns));
    size_t filled = 0;
    for (int i = 0; i < n; i++) {
        if (ev[i].data.u64 == WAKE_KEY) {
            if (timeout_ns != 0) consume_wake(p);
            continue;
        }
        if (filled == max) break; /* level triggered: it comes again */
        out[filled++] =
            (struct os_poll_event){ .key = ev[i].data.u64, .events = from_epoll(ev[i].events) };
    }
    return filled;
}

void os_poller_wake(struct os_poller *p) {
    if (os_u32_exchange_acq_rel(&p->woken, 1)) return;
    uint64_t one = 1;
    (void)!write(p->wake, &one, sizeof one);
}
