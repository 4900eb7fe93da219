/* SPDX-License-Identifier: MIT
 * A completion port with one poll request of the socket driver per watched socket.
 *
 * Level triggered out of one-shot requests. A request that was reported is issued again by the next
 * wait (any thread's), so that one thread which handles its events and waits again pays one request
 * per event and never sees an event that it has handled. If another thread sleeps in a wait at the
 * moment of the report, the request is issued again at once, since that thread will not come by;
 * its answer may then be about bytes that are being handled right now, so it is checked with a look
 * at the socket before it is reported (`early`).
 *
 * Watches are freed when their last request has come back. */
#include "os/io/poller.h"
#include <winsock2.h>
#include <windows.h>
#include "base/base.h"
#include "os/prim/atomic.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/lock.h"
#include "os/windows/afd.h"
#include "os/windows/wait_ms.h"
#include "os/windows/wsa_status.h"

#define BURST_MAX 64 /* packets per system call; level triggered, so the rest come next time */
#define BUCKETS_MIN 64u

/* Completion keys. */
enum { KEY_POLL = 1, KEY_WAKE = 2 };

struct watch {
    IO_STATUS_BLOCK iosb; /* first: the packet's context */
    struct afd_poll poll; /* the system's while pending */
    struct watch *next;   /* [lock] in its bucket */
    struct sn_list due;   /* [lock] in the list of those to be issued */
    os_sock sock;         /* [const] */
    SOCKET base;          /* [const] */
    uint64_t key;         /* [lock] */
    uint32_t events;      /* [lock] wanted, OS_POLL_* */
    bool pending;         /* [lock] a request is with the system */
    bool stale;           /* [lock] it was told to end, or asks for other events than wanted */
    bool early;           /* [lock] it was issued before its events had been handled */
    bool removed;         /* [lock] */
};

struct os_poller {
    HANDLE port; /* [const] */
    HANDLE afd;  /* [const] */
    os_lock lock;
    struct watch **buckets; /* [lock] by socket */
    uint32_t bucket_count;  /* [lock] a power of two */
    uint32_t watch_count;   /* [lock] */
    uint32_t pending_count; /* [lock] requests with the system */
    uint32_t sleepers;      /* [lock] threads in a wait that may block */
    struct sn_list due;     /* [lock] watches to issue a request for */
    os_atomic_u32 woken;    /* [atomic] 1 while a wake is in the port, or a waiter has taken it */
};

/* ---- the two vocabularies ---- */

#define HUP_EVENTS (AFD_F_ABORT | AFD_F_CONNECT_FAIL | AFD_F_LOCAL_CLOSE)

static ULONG to_afd(uint32_t events) {
    return HUP_EVENTS |
           (events & OS_POLL_IN ? AFD_F_RECEIVE | AFD_F_DISCONNECT | AFD_F_ACCEPT : 0) |
           (events & OS_POLL_OUT ? AFD_F_SEND : 0);
}

static uint32_t from_afd(ULONG events, uint32_t wanted) {
    uint32_t out = 0;
    if (events & (AFD_F_RECEIVE | AFD_F_DISCONNECT | AFD_F_ACCEPT | AFD_F_ABORT)) out |= OS_POLL_IN;
    if (events & (AFD_F_SEND | AFD_F_CONNECT_FAIL)) out |= OS_POLL_OUT;
    out &= wanted;
    if (events & HUP_EVENTS) out |= OS_POLL_HUP;
    return out;
}

/* Of what a request reported, what a look at the socket confirms. */
static uint32_t confirm(const struct watch *w, uint32_t events) {
    WSAPOLLFD p = { .fd = w->base,
                    .events = (SHORT)((events & OS_POLL_IN ? POLLRDNORM : 0) |
                                      (events & OS_POLL_OUT ? POLLWRNORM : 0)) };
    if (events & OS_POLL_HUP) return events;
    int n = WSAPoll(&p, 1, 0);
    if (n < 0) return events;
    uint32_t seen = (p.revents & (POLLRDNORM | POLLHUP) ? (uint32_t)OS_POLL_IN : 0u) |
                    (p.revents & POLLWRNORM ? (uint32_t)OS_POLL_OUT : 0u);
    if (p.revents & (POLLERR | POLLNVAL)) return events;
    return events & seen;
}

/* ---- watches ---- */

static uint32_t bucket_of(const struct os_poller *p, os_sock s) {
    uint64_t h = (uint64_t)s * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(h >> 32) & (p->bucket_count - 1);
}

static struct watch **find_locked(struct os_poller *p, os_sock s) {
    struct watch **at = &p->buckets[bucket_of(p, s)];
    while (*at && (*at)->sock != s)
        at = &(*at)->next;
    return at;
}

/* Twice as many buckets; stays as it is without memory. */
static void grow_locked(struct os_poller *p) {
    uint32_t old_count = p->bucket_count;
    struct watch **old = p->buckets;
    struct watch **more = os_zalloc(2 * (size_t)old_count * sizeof *more);
    if (!more) return;
    p->buckets = more;
    p->bucket_count = 2 * old_count;
    for (uint32_t i = 0; i < old_count; i++)
        for (struct watch *w = old[i], *next; w; w = next) {
            next = w->next;
            struct watch **at = &more[bucket_of(p, w->sock)];
            w->next = *at;
            *at = w;
        }
    os_free(old);
}

/* Ends the present request, so that another one can be issued, or none. */
static void cancel_locked(struct os_poller *p, struct watch *w) {
    if (!w->pending || w->stale) return;
    w->stale = true;
    afd_poll_cancel(p->afd, &w->iosb);
}

/* Issues a request. On failure (the socket was closed under our feet) the watch stays silent; only
 * add tells. */
static sn_status issue_locked(struct os_poller *p, struct watch *w) {
    w->poll.timeout.QuadPart = AFD_NO_TIMEOUT;
    w->poll.socket = (HANDLE)w->base;
    w->poll.events = to_afd(w->events);
    w->stale = false;
    NTSTATUS st = os_fault_hit(OS_FAULT_SYSCALL)
                      ? (NTSTATUS)0xC000009A
                      : afd_poll_start(p->afd, NULL, w, &w->iosb, &w->poll);
    if (st < 0) return st == (NTSTATUS)0xC000009A ? SN_E_RESOURCES : SN_E_HANDLE;
    w->pending = true;
    p->pending_count++;
    return SN_OK;
}

static void issue_due_locked(struct os_poller *p) {
    struct sn_list *n;
    while ((n = sn_list_pop(&p->due)) != NULL) {
        struct watch *w = SN_CONTAINER(n, struct watch, due);
        if (!w->pending) (void)issue_locked(p, w);
    }
}

/* ---- the calls ---- */

sn_status os_poller_create(struct os_poller **out) {
    sn_status st = SN_E_NOMEM;
    struct os_poller *p = os_zalloc(sizeof *p);
    if (!p) return st;
    os_wsa_start();
    os_lock_init(&p->lock, OS_RANK_LEAF);
    sn_list_init(&p->due);
    p->bucket_count = BUCKETS_MIN;
    p->buckets = os_zalloc(BUCKETS_MIN * sizeof *p->buckets);
    if (!p->buckets) goto no_buckets;
    st = SN_E_RESOURCES;
    p->port = os_fault_hit(OS_FAULT_SYSCALL)
                  ? NULL
                  : CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    if (!p->port) goto no_port;
    p->afd = os_fault_hit(OS_FAULT_SYSCALL) ? INVALID_HANDLE_VALUE : afd_open();
    if (p->afd == INVALID_HANDLE_VALUE) goto no_afd;
    if (!CreateIoCompletionPort(p->afd, p->port, KEY_POLL, 0)) goto no_bind;
    /* Nobody waits for the handle itself. */
    (void)SetFileCompletionNotificationModes(p->afd, FILE_SKIP_SET_EVENT_ON_HANDLE);
    *out = p;
    return SN_OK;
no_bind:
    CloseHandle(p->afd);
no_afd:
    CloseHandle(p->port);
no_port:
    os_free(p->buckets);
no_buckets:
    os_lock_fini(&p->lock);
    os_free(p);
    return st;
}

void os_poller_destroy(struct os_poller *p) {
    if (!p) return;
    os_lock_enter(&p->lock);
    for (uint32_t i = 0; i < p->bucket_count; i++)
        for (struct watch *w = p->buckets[i], *next; w; w = next) {
            next = w->next;
            w->removed = true;
            if (w->pending)
                cancel_locked(p, w);
            else
                os_free(w);
        }
    uint32_t left = p->pending_count;
    os_lock_leave(&p->lock);
    /* Nothing may be written into a watch that is gone. */
    while (left != 0) {
        DWORD bytes;
        ULONG_PTR key;
        OVERLAPPED *ov = NULL;
        (void)GetQueuedCompletionStatus(p->port, &bytes, &key, &ov, INFINITE);
        if (!ov || key != KEY_POLL) continue;
        os_free(SN_CONTAINER(ov, struct watch, iosb));
        left--;
    }
    CloseHandle(p->afd);
    CloseHandle(p->port);
    os_free(p->buckets);
    os_lock_fini(&p->lock);
    os_free(p);
}

sn_status os_poller_add(struct os_poller *p, os_sock s, uint64_t key, uint32_t events) {
    if (key == OS_POLL_KEY_RESERVED) return SN_E_PARAM;
    if (s == OS_SOCK_NONE) return SN_E_HANDLE;
    struct watch *w = os_zalloc(sizeof *w);
    if (!w) return SN_E_RESOURCES;
    w->sock = s;
    w->base = afd_base_socket((SOCKET)s);
    w->key = key;
    w->events = events;
    sn_list_init(&w->due);
    sn_status st = SN_E_BUSY;
    os_lock_enter(&p->lock);
    if (*find_locked(p, s) == NULL) {
        /* At once, since others may be waiting already. */
        st = issue_locked(p, w);
        if (st == SN_OK) {
            if (p->watch_count >= p->bucket_count) grow_locked(p);
            struct watch **at = &p->buckets[bucket_of(p, s)];
            w->next = *at;
            *at = w;
            p->watch_count++;
        }
    }
    os_lock_leave(&p->lock);
    if (st != SN_OK) os_free(w);
    return st;
}

sn_status os_poller_modify(struct os_poller *p, os_sock s, uint64_t key, uint32_t events) {
    if (key == OS_POLL_KEY_RESERVED) return SN_E_PARAM;
    sn_status st = SN_E_NOT_FOUND;
    os_lock_enter(&p->lock);
    struct watch *w = *find_locked(p, s);
    if (w) {
        uint32_t before = w->events;
        w->key = key;
        w->events = events;
        st = SN_OK;
        if (w->pending) {
            /* A request that asks for too much is found out when it comes back. One that asks for
             * too little is ended; its return issues the next. */
            if (events & ~before) cancel_locked(p, w);
        } else {
            sn_list_remove(&w->due);
            if (p->sleepers == 0) {
                sn_list_push_back(&p->due, &w->due);
            } else {
                /* Reported and not yet handled, perhaps; those who sleep must get the rest. */
                w->early = true;
                (void)issue_locked(p, w);
            }
        }
    }
    os_lock_leave(&p->lock);
    return st;
}

void os_poller_remove(struct os_poller *p, os_sock s) {
    os_lock_enter(&p->lock);
    struct watch **at = find_locked(p, s), *w = *at;
    if (w) {
        *at = w->next;
        p->watch_count--;
        w->removed = true;
        sn_list_remove(&w->due);
        if (w->pending)
            cancel_locked(p, w); /* freed when it comes back */
        else
            os_free(w);
    }
    os_lock_leave(&p->lock);
}

/* A request came back. True with *out if there is something to report. */
static bool take_back_locked(struct os_poller *p, struct watch *w, struct os_poll_event *out) {
    p->pending_count--;
    w->pending = false;
    if (w->removed) {
        os_free(w);
        return false;
    }
    bool told = w->iosb.Status == 0 && w->poll.count != 0;
    uint32_t events = told ? from_afd(w->poll.events, w->events) : 0;
    if (events != 0 && w->early) events = confirm(w, events);
    w->early = false;
    if (events == 0) {
        (void)issue_locked(p, w);
        return false;
    }
    *out = (struct os_poll_event){ .key = w->key, .events = events };
    sn_list_push_back(&p->due, &w->due);
    return true;
}

/* The reported ones are issued again at once if somebody sleeps beside the caller. */
static void serve_sleepers_locked(struct os_poller *p) {
    if (p->sleepers == 0) return;
    SN_LIST_FOR_SAFE(n, next, &p->due) {
        struct watch *w = SN_CONTAINER(n, struct watch, due);
        sn_list_remove(n);
        w->early = true;
        if (!w->pending) (void)issue_locked(p, w);
    }
}

size_t os_poller_wait(struct os_poller *p, struct os_poll_event *out, size_t max,
                      uint64_t timeout_ns) {
    uint64_t deadline = timeout_ns == OS_FOREVER || timeout_ns > OS_FOREVER - os_now_ns()
                            ? OS_FOREVER
                            : os_now_ns() + timeout_ns;
    ULONG room = (ULONG)SN_MIN(max, (size_t)BURST_MAX);
    bool block = timeout_ns != 0, woken = false;
    size_t filled = 0;
    if (room == 0) return 0;
    for (;;) {
        OVERLAPPED_ENTRY entry[BURST_MAX];
        ULONG n = 0;
        os_lock_enter(&p->lock);
        issue_due_locked(p);
        p->sleepers += block;
        os_lock_leave(&p->lock);
        DWORD ms = block ? os_wait_ms(deadline) : 0;
        if (!GetQueuedCompletionStatusEx(p->port, entry, room, &n, ms, FALSE)) n = 0;
        os_lock_enter(&p->lock);
        p->sleepers -= block;
        for (ULONG i = 0; i < n; i++) {
            if (entry[i].lpCompletionKey == KEY_WAKE)
                woken = true;
            else if (take_back_locked(
                         p,
                         SN_CONTAINER((IO_STATUS_BLOCK *)entry[i].lpOverlapped, struct watch, iosb),
                         &out[filled]))
                filled++;
        }
        serve_sleepers_locked(p);
        os_lock_leave(&p->lock);
        if (woken && block) {
            (void)os_u32_exchange_acq_rel(&p->woken, 0);
            return filled;
        }
        if (filled != 0) break;
        /* Nothing to report: the time is up, or what came was for the poller itself. */
        if (n == 0 && (!block || os_now_ns() >= deadline)) break;
    }
    /* A poll leaves the wake for the next real wait. */
    if (woken && !PostQueuedCompletionStatus(p->port, 0, KEY_WAKE, NULL))
        (void)os_u32_exchange_acq_rel(&p->woken, 0);
    return filled;
}

void os_poller_wake(struct os_poller *p) {
    if (os_u32_exchange_acq_rel(&p->woken, 1)) return;
    if (!PostQueuedCompletionStatus(p->port, 0, KEY_WAKE, NULL))
        (void)os_u32_exchange_acq_rel(&p->woken, 0);
}
