/* SPDX-License-Identifier: MIT
 *
 * The events of a connection: added under the stream's lock, told without it.
 */
#include "transport/events.h"

void tp_events_init(struct tp_events *e, os_lock *guard) {
    os_lock_init(&e->lock, OS_RANK_EVENT);
    e->guard = guard;
}

void tp_events_fini(struct tp_events *e) {
    os_lock_fini(&e->lock);
}

void tp_events_add(struct tp_events *e, enum tp_event event, sn_status st) {
    e->status[event] = st;
    os_u32_store_relaxed(&e->pending, os_u32_load_relaxed(&e->pending) | (1u << event));
}

void tp_events_forget(struct tp_events *e) {
    os_u32_store_relaxed(&e->pending, 0);
}

void tp_events_set_owner_locked(struct tp_events *e, const struct tp_upcalls *up, void *owner) {
    e->up = up;
    e->owner = owner;
}

void tp_events_set_owner(struct tp_events *e, const struct tp_upcalls *up, void *owner) {
    os_lock_enter(&e->lock);
    os_lock_enter(e->guard);
    tp_events_set_owner_locked(e, up, owner);
    os_lock_leave(e->guard);
    os_lock_leave(&e->lock);
    tp_events_deliver(e);
}

static void upcall(struct tp_events *e, enum tp_event event) {
    switch (event) {
    case TP_EV_REPLY:
        e->up->on_reply(e->owner, e->status[event]);
        break;
    case TP_EV_ABANDONED:
        e->up->on_abandoned(e->owner);
        break;
    case TP_EV_ESTABLISHED:
        e->up->on_established(e->owner, e->status[event]);
        break;
    case TP_EV_DISCONNECTED:
        e->up->on_disconnected(e->owner, e->status[event]);
        break;
    case TP_EV_COUNT:
        break;
    }
}

/* Takes the first of what is pending; false if there is none, or nobody to tell. Lock held. */
static bool take(struct tp_events *e, enum tp_event *event) {
    bool found = false;
    os_lock_enter(e->guard);
    uint32_t pending = os_u32_load_relaxed(&e->pending);
    if (e->closed) {
        tp_events_forget(e);
    } else if (e->up && pending != 0) {
        for (*event = 0; !(pending & (1u << *event));)
            ++*event;
        os_u32_store_relaxed(&e->pending, pending & ~(1u << *event));
        found = true;
    }
    os_lock_leave(e->guard);
    return found;
}

void tp_events_deliver_pending(struct tp_events *e) {
    bool told = true;
    while (told && os_u32_load_relaxed(&e->pending) != 0) {
        enum tp_event event;
        os_lock_enter(&e->lock);
        told = take(e, &event);
        if (told) upcall(e, event);
        os_lock_leave(&e->lock);
    }
}
