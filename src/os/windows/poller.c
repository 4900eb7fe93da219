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
 * The sockets of local_sock.h are pipes (pipe.h): their requests are overlapped calls on the pipe
 * itself, whose packets come to the same port; a listener has several.
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
#include "os/windows/pipe.h"
#include "os/windows/wait_ms.h"
#include "os/windows/wsa_status.h"

#define BURST_MAX 64 /* packets per system call; level triggered, so the rest come next time */
#define BUCKETS_MIN 64u

/* Completion keys. */
enum { KEY_POLL = 1, KEY_WAKE = 2 };

/* Its address is the packet's context. */
struct request {
    union {
        IO_STATUS_BLOCK iosb;
        OVERLAPPED ov; /* of a pipe; begins as the other */
    } u;
    struct watch *watch;
    bool pending; /* [lock] with the system */
};

struct watch {
    struct afd_poll poll; /* of a socket: the system's while pending */
    struct watch *next;   /* [lock] in its bucket */
    struct sn_list due;   /* [lock] in the list of those to be issued */
    os_sock sock;         /* [const] */
    bool pipe;            /* [const] */
    SOCKET base;          /* [const] of a socket */
    uint64_t key;         /* [lock] */
    uint32_t events;      /* [lock] wanted, OS_POLL_* */
    uint32_t pending;     /* [lock] requests that are with the system */
    bool stale;           /* [lock] they were told to end */
    bool early;           /* [lock] one was issued before its events had been handled */
    bool removed;         /* [lock] */
    uint32_t count;       /* [const] */
    struct request req[];
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
    bool wake_kept;         /* [lock] a poll has taken it; it is for the next waiter */
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
    if (w->pipe) return os_pipe_ready(w->sock) ? events : 0;
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

/* Ends the present requests, so that others can be issued, or none. */
static void cancel_locked(struct os_poller *p, struct watch *w) {
    if (w->pending == 0 || w->stale) return;
    w->stale = true;
    for (uint32_t i = 0; i < w->count; i++) {
        struct request *r = &w->req[i];
        if (!r->pending) continue;
        if (w->pipe)
            os_pipe_cancel(w->sock, i, &r->u.ov);
        else
            afd_poll_cancel(p->afd, &r->u.iosb);
    }
}

#define NO_ROOM ((NTSTATUS)0xC000009A)   /* STATUS_INSUFFICIENT_RESOURCES */
#define PIPE_GONE ((NTSTATUS)0xC000014B) /* STATUS_PIPE_BROKEN */

static NTSTATUS start_poll(struct os_poller *p, struct watch *w) {
    w->poll.timeout.QuadPart = AFD_NO_TIMEOUT;
    w->poll.socket = (HANDLE)w->base;
    w->poll.events = to_afd(w->events);
    if (os_fault_hit(OS_FAULT_SYSCALL)) return NO_ROOM;
    return afd_poll_start(p->afd, NULL, &w->req[0], &w->req[0].u.iosb, &w->poll);
}

/* What needs no waiting gets its packet from us. */
static NTSTATUS start_pipe(struct os_poller *p, struct watch *w, uint32_t i) {
    OVERLAPPED *ov = &w->req[i].u.ov;
    enum pipe_answer answer = os_pipe_request(w->sock, i, ov);
    if (answer == PIPE_PENDING) return STATUS_PENDING;
    if (answer == PIPE_SILENT) return NO_ROOM;
    ov->Internal = answer == PIPE_ENDED ? (ULONG_PTR)(ULONG)PIPE_GONE : 0;
    return PostQueuedCompletionStatus(p->port, 0, KEY_POLL, ov) ? (NTSTATUS)STATUS_PENDING
                                                                : NO_ROOM;
}

/* Issues the requests that are not with the system. On failure (the socket was closed under our
 * feet) the watch stays silent; only add tells. */
static sn_status issue_locked(struct os_poller *p, struct watch *w) {
    sn_status result = SN_E_RESOURCES;
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->req[i].pending) continue;
        NTSTATUS st = w->pipe ? start_pipe(p, w, i) : start_poll(p, w);
        if (st < 0) {
            if (st != NO_ROOM) result = SN_E_HANDLE;
            continue;
        }
        w->req[i].pending = true;
        w->stale = false;
        w->pending++;
        p->pending_count++;
    }
    return w->pending != 0 ? SN_OK : result;
}

static void issue_due_locked(struct os_poller *p) {
    struct sn_list *n;
    while ((n = sn_list_pop(&p->due)) != NULL) {
        (void)issue_locked(p, SN_CONTAINER(n, struct watch, due));
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
            if (w->pending != 0)
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
        struct watch *w = SN_CONTAINER(ov, struct request, u.ov)->watch;
        if (--w->pending == 0) os_free(w);
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
    bool pipe = os_pipe_is(s);
    uint32_t count = pipe ? os_pipe_requests(s) : 1;
    struct watch *w = os_zalloc(sizeof *w + count * sizeof w->req[0]);
    if (!w) return SN_E_RESOURCES;
    w->sock = s;
    w->pipe = pipe;
    if (!pipe) w->base = afd_base_socket((SOCKET)s);
    w->key = key;
    w->events = events;
    w->count = count;
    for (uint32_t i = 0; i < count; i++)
        w->req[i].watch = w;
    sn_list_init(&w->due);
    sn_status st = SN_E_BUSY;
    os_lock_enter(&p->lock);
    if (*find_locked(p, s) == NULL) {
        st = pipe ? os_pipe_bind(s, p->port, KEY_POLL) : SN_OK;
        /* At once, since others may be waiting already. */
        if (st == SN_OK) st = issue_locked(p, w);
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
        if (w->pending != 0) {
            /* A request that asks for too much is found out when it comes back. One that asks for
             * too little is ended; its return issues the next. A pipe's are all the same. */
            if ((events & ~before) && !w->pipe) cancel_locked(p, w);
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
        if (w->pending != 0)
            cancel_locked(p, w); /* freed when the last comes back */
        else
            os_free(w);
    }
    os_lock_leave(&p->lock);
}

static uint32_t events_of(struct request *r) {
    struct watch *w = r->watch;
    NTSTATUS st = r->u.iosb.Status;
    if (!w->pipe) return st == 0 && w->poll.count != 0 ? from_afd(w->poll.events, w->events) : 0;
    if (st == STATUS_CANCELLED) return 0;
    os_pipe_mark(w->sock, (uint32_t)(r - w->req));
    return (w->events & OS_POLL_IN) | (st < 0 ? (uint32_t)OS_POLL_HUP : 0u);
}

/* A request came back. True with *out if there is something to report. */
static bool take_back_locked(struct os_poller *p, struct request *r, struct os_poll_event *out) {
    struct watch *w = r->watch;
    p->pending_count--;
    w->pending--;
    r->pending = false;
    if (w->removed) {
        if (w->pending == 0) os_free(w);
        return false;
    }
    uint32_t events = events_of(r);
    /* A pipe with bytes that nobody wants would be ready for ever; it waits for a modify. */
    if (events == 0 && w->pipe && r->u.iosb.Status == 0) return false;
    if (events != 0 && w->early) events = confirm(w, events);
    w->early = false;
    if (events == 0) {
        (void)issue_locked(p, w);
        return false;
    }
    *out = (struct os_poll_event){ .key = w->key, .events = events };
    sn_list_remove(&w->due);
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
        (void)issue_locked(p, w);
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
        bool wake = block && p->wake_kept;
        p->wake_kept &= !wake;
        p->sleepers += block && !wake;
        os_lock_leave(&p->lock);
        if (wake) {
            (void)os_u32_exchange_acq_rel(&p->woken, 0);
            return 0;
        }
        DWORD ms = block ? os_wait_ms(deadline) : 0;
        if (!GetQueuedCompletionStatusEx(p->port, entry, room, &n, ms, FALSE)) n = 0;
        os_lock_enter(&p->lock);
        p->sleepers -= block;
        for (ULONG i = 0; i < n; i++) {
            if (entry[i].lpCompletionKey == KEY_WAKE)
                woken = true;
            else if (take_back_locked(p, SN_CONTAINER(entry[i].lpOverlapped, struct request, u.ov),
                                      &out[filled]))
                filled++;
        }
        serve_sleepers_locked(p);
        /* A poll leaves the wake for the next real wait, which may be under way. */
        bool post = woken && !block && p->sleepers != 0;
        if (woken && !block && !post) p->wake_kept = true;
        os_lock_leave(&p->lock);
        if (post && !PostQueuedCompletionStatus(p->port, 0, KEY_WAKE, NULL))
            (void)os_u32_exchange_acq_rel(&p->woken, 0);
        if (woken) {
            if (block) (void)os_u32_exchange_acq_rel(&p->woken, 0);
            return filled;
        }
        if (filled != 0) break;
        /* Nothing to report: the time is up, or what came was for the poller itself. */
        if (n == 0 && (!block || os_now_ns() >= deadline)) break;
    }
    return filled;
}

void os_poller_wake(struct os_poller *p) {
    if (os_u32_exchange_acq_rel(&p->woken, 1)) return;
    if (!PostQueuedCompletionStatus(p->port, 0, KEY_WAKE, NULL))
        (void)os_u32_exchange_acq_rel(&p->woken, 0);
}
