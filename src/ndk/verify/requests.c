/* SPDX-License-Identifier: MIT
 *
 * Which calls run and which requests are pending. Kept while the verifier is on.
 *
 * A context on a stack is watched: as long as its request is pending, the thread that issued it may
 * not leave the frame. Each later call of that thread shows how deep its stack still is.
 *
 * Which event a completion will set is learned: when a completion function sets an event, the
 * event's place in the context is remembered for that function. One that has set events at two
 * places is not asked again.
 */
#include <stdlib.h>
#include "ndk/ndk.h"

struct pending {
    struct sn_list link;
    const void *ctx, *object, *fn;
    const char *call;
    uint64_t thread;
    bool on_stack, reported;
};

/* Entries are on the heap: a consumer may leave a call with a jump. */
struct ndk_call {
    struct sn_list link;
    const void *object;
    const char *name;
    uint64_t thread, id;
    struct ndk_call *outer; /* of the same thread */
};

enum {
    LEARNED = 64,
    SAME_STRUCTURE = 256 /* an event this near to a context may belong to it */
};
static struct {
    const void *fn;
    size_t at;
    bool several;
} learned[LEARNED];

static os_lock lock; /* rank LEAF: everything here */
static struct sn_list pendings, calls;
static uint64_t last_id;
static os_atomic_u32 outstanding; /* with and without a context */

static _Thread_local struct ndk_call *innermost;
static _Thread_local struct { const void *fn, *ctx; } completing;
static _Thread_local struct {
    const void *ctx;
    const char *call;
    NTSTATUS status;
} answered;

void ndk_requests_init(void) {
    os_lock_init(&lock, OS_RANK_LEAF);
    sn_list_init(&pendings);
    sn_list_init(&calls);
}

/* ---- calls that run ---- */

struct ndk_call *ndk_call_begin(const void *object, const char *name) {
    struct ndk_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->object = object;
    c->name = name;
    c->thread = os_thread_self();
    c->outer = innermost;
    innermost = c;
    os_lock_enter(&lock);
    c->id = ++last_id;
    sn_list_push_back(&calls, &c->link);
    os_lock_leave(&lock);
    return c;
}

void ndk_call_end(struct ndk_call *c) {
    innermost = c->outer;
    os_lock_enter(&lock);
    sn_list_remove(&c->link);
    os_lock_leave(&lock);
    free(c);
}

uint64_t ndk_call_id(void) {
    return innermost ? innermost->id : 0;
}

/* From here on the object may go, although the call has not returned. */
void ndk_call_completes(uint64_t id) {
    if (id == 0) return;
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &calls) {
        struct ndk_call *c = SN_CONTAINER(it, struct ndk_call, link);
        if (c->id == id) c->object = NULL;
    }
    os_lock_leave(&lock);
}

const char *ndk_call_elsewhere(const void *object) {
    const char *name = NULL;
    uint64_t self = os_thread_self();
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &calls) {
        struct ndk_call *c = SN_CONTAINER(it, struct ndk_call, link);
        if (c->object == object && c->thread != self) name = c->name;
    }
    os_lock_leave(&lock);
    return name;
}

/* ---- pending requests ---- */

uint32_t ndk_requests_pending(void) {
    return os_u32_load_acquire(&outstanding);
}

bool ndk_pending_add(const void *ctx, const void *object, const char *call, const void *fn) {
    if (!ndk_verifying()) return false;
    ndk_verify_init();
    os_u32_fetch_add_acq_rel(&outstanding, 1);
    struct pending *p = ctx ? calloc(1, sizeof *p) : NULL;
    if (!p) return true;
    p->ctx = ctx;
    p->object = object;
    p->call = call;
    p->fn = fn;
    p->thread = os_thread_self();
    p->on_stack = ndk_on_this_stack(ctx);
    const char *shared = NULL;
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &pendings) {
        struct pending *q = SN_CONTAINER(it, struct pending, link);
        if (q->ctx == ctx) shared = q->call;
    }
    sn_list_push_back(&pendings, &p->link);
    os_lock_leave(&lock);
    if (shared)
        ndk_warning(NDK_RULE_context_reused, call, ctx,
                    "a pending %s has the same context; whose status will it hold?", shared);
    return true;
}

void ndk_pending_remove(const void *ctx, const void *object) {
    struct pending *found = NULL;
    os_u32_fetch_sub_acq_rel(&outstanding, 1);
    if (!ctx) return;
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &pendings) {
        struct pending *p = SN_CONTAINER(it, struct pending, link);
        if (p->ctx != ctx || p->object != object) continue;
        sn_list_remove(it);
        found = p;
        break;
    }
    os_lock_leave(&lock);
    free(found);
}

void ndk_requests_on_call(const void *frame) {
    const char *here = frame;
    struct pending bad = { 0 };
    uint64_t self = os_thread_self();
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &pendings) {
        struct pending *p = SN_CONTAINER(it, struct pending, link);
        if (!p->on_stack || p->reported || p->thread != self) continue;
        if ((const char *)p->ctx >= here) continue; /* its frame is still there */
        p->reported = true;
        bad = *p;
        break;
    }
    os_lock_leave(&lock);
    if (bad.ctx)
        ndk_violation(NDK_RULE_dead_stack, bad.call, bad.ctx,
                      "the context of this pending request was on the stack, and its function "
                      "has returned");
}

/* ---- events and the requests they are for ---- */

static bool near_to(const void *ctx, const void *event) {
    uintptr_t a = (uintptr_t)ctx, b = (uintptr_t)event;
    return (a > b ? a - b : b - a) < SAME_STRUCTURE;
}

void ndk_requests_on_timeout(const void *event) {
    const char *call = NULL;
    const void *ctx = NULL;
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &pendings) {
        struct pending *p = SN_CONTAINER(it, struct pending, link);
        if (!near_to(p->ctx, event)) continue;
        call = p->call;
        ctx = p->ctx;
    }
    os_lock_leave(&lock);
    if (call)
        ndk_warning(NDK_RULE_wait_abandoned, "KeWaitForSingleObject", event,
                    "the wait is over, but the %s with context %p is still pending", call, ctx);
}

void ndk_completing(const void *fn, const void *ctx) {
    completing.fn = fn;
    completing.ctx = ctx;
}

static size_t slot_of(const void *fn) {
    uintptr_t h = (uintptr_t)fn / 16;
    for (size_t i = 0; i < LEARNED; i++) {
        const void *has = learned[(h + i) % LEARNED].fn;
        if (!has || has == fn) return (h + i) % LEARNED;
    }
    return h % LEARNED; /* full: the newest */
}

void ndk_requests_on_event_set(const void *event) {
    uintptr_t at = (uintptr_t)event - (uintptr_t)completing.ctx;
    if (!completing.ctx || at >= SAME_STRUCTURE) return;
    os_lock_enter(&lock);
    size_t i = slot_of(completing.fn);
    if (learned[i].fn != completing.fn) {
        learned[i].fn = completing.fn;
        learned[i].at = at;
        learned[i].several = false;
    } else if (learned[i].at != at) {
        learned[i].several = true;
    }
    os_lock_leave(&lock);
}

void ndk_requests_on_event_init(const void *event) {
    struct pending bad = { 0 };
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &pendings) {
        struct pending *p = SN_CONTAINER(it, struct pending, link);
        if (!near_to(p->ctx, event)) continue;
        size_t i = slot_of(p->fn);
        if (learned[i].fn != p->fn || learned[i].several) continue;
        if ((uintptr_t)p->ctx + learned[i].at == (uintptr_t)event) bad = *p;
    }
    os_lock_leave(&lock);
    if (answered.ctx && near_to(answered.ctx, event)) answered.ctx = NULL;
    if (bad.ctx)
        ndk_violation(NDK_RULE_event_reinit, "KeInitializeEvent", event,
                      "the %s with context %p is pending, and its completion will set this event",
                      bad.call, bad.ctx);
}

void ndk_answered_inline(const void *ctx, const char *call, NTSTATUS status) {
    answered.ctx = ctx;
    answered.call = call;
    answered.status = status;
}

const char *ndk_requests_inline_for(const void *event, NTSTATUS *status) {
    if (!answered.ctx || !near_to(answered.ctx, event)) return NULL;
    *status = answered.status;
    return answered.call;
}
