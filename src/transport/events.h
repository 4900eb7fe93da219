/* SPDX-License-Identifier: MIT
 * events.h - the events of one connection on their way to its owner.
 * Owns:    struct tp_events: what is pending, who is told, and that nobody is told after close.
 *
 * An event is added with the transport's lock of what arrives (`guard`, rank STREAM_RX) held, and
 * delivered with it free: on_* upcalls come with only `lock` (rank EVENT) held, one at a time.
 * Threads: any. Errors: none; nothing here can fail.
 */
#ifndef SN_TRANSPORT_EVENTS_H
#define SN_TRANSPORT_EVENTS_H

#include "os/prim/atomic.h"
#include "os/prim/lock.h"
#include "transport/transport.h"

/* In the order of delivery. */
enum tp_event { TP_EV_REPLY, TP_EV_ABANDONED, TP_EV_ESTABLISHED, TP_EV_DISCONNECTED, TP_EV_COUNT };

struct tp_events {
    os_lock lock;                /* serialises upcalls, close and a change of the owner */
    os_lock *guard;              /* [const] */
    bool closed;                 /* [lock] the core wants no upcall any more */
    const struct tp_upcalls *up; /* [lock and guard] NULL: nobody to tell yet, events wait */
    void *owner;                 /* [lock and guard] */
    os_atomic_u32 pending;       /* [guard for writes] a bit per event */
    sn_status status[TP_EV_COUNT];
};

/* In the caller's storage; guard must outlive it. */
void tp_events_init(struct tp_events *e, os_lock *guard);
void tp_events_fini(struct tp_events *e);
/* Guard held: adds an event; its status is the upcall's (on_abandoned has none). */
void tp_events_add(struct tp_events *e, enum tp_event event, sn_status st);
/* Guard held: forgets what is pending, since an answer to the core says it. */
void tp_events_forget(struct tp_events *e);
/* Lock and guard held, or before anybody else knows of the connection. */
void tp_events_set_owner_locked(struct tp_events *e, const struct tp_upcalls *up, void *owner);
/* No lock of rank EVENT or above held; what was pending is delivered before it returns. */
void tp_events_set_owner(struct tp_events *e, const struct tp_upcalls *up, void *owner);
void tp_events_deliver_pending(struct tp_events *e);
/* Calls what is pending, in order. No lock of rank EVENT or above held. */
static inline void tp_events_deliver(struct tp_events *e) {
    if (SN_UNLIKELY(os_u32_load_relaxed(&e->pending) != 0)) tp_events_deliver_pending(e);
}

#endif
