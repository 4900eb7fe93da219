/* SPDX-License-Identifier: MIT
 *
 * What is alive, and which requests are pending. Kept while the verifier is on.
 *
 * A context on a stack is watched: as long as its request is pending, the thread that issued it may
 * not leave the frame. Each later call of that thread shows how deep its stack still is.
 */
#include <stdlib.h>
#include "ndk/ndk.h"
#include "ndk/kenv/tracked.h"

static void init_live(void);
static struct ke_tracker live = { .once = OS_ONCE_INIT, .init = init_live };
static void init_live(void) {
    ke_tracker_init(&live);
}

/* Objects that were closed, the newest ones: so that a use can be told from a wild pointer. */
enum { GRAVES = 4096 };
static struct {
    const void *p;
    uint32_t type;
} graves[GRAVES];

struct pending {
    struct sn_list link;
    const void *ctx, *object;
    const char *call;
    uint64_t thread;
    bool on_stack, reported;
};

static os_lock lock; /* rank LEAF: graves, pendings */
static struct sn_list pendings;
static uint32_t grave_at, pending_count;
static os_once once = OS_ONCE_INIT;

static const char *memory_in_use(const void *p, size_t len, const MDL *mdl);
static void wait_timed_out(const void *object);
static void check_stack(const void *frame);

static void init(void) {
    os_lock_init(&lock, OS_RANK_LEAF);
    sn_list_init(&pendings);
    static const struct ke_hooks hooks = { check_stack, wait_timed_out, memory_in_use };
    ke_hooks_set(&hooks);
}

void ndk_verify_init(void) {
    os_once_run(&once, init);
}

/* ---- objects ---- */

void ndk_live_add(struct ndk_object *o) {
    ke_track(&live, o, sizeof *o, o->header.ObjectType); /* the verifier may be turned on later */
}

void ndk_live_remove(struct ndk_object *o) {
    struct ke_tracked e;
    if (!ke_untrack(&live, o, &e)) return;
    os_lock_enter(&lock);
    graves[grave_at % GRAVES].p = o;
    graves[grave_at++ % GRAVES].type = e.tag;
    os_lock_leave(&lock);
}

/* The type of a closed object that was there, 0 if none. */
static uint32_t grave_of(const void *p) {
    uint32_t type = 0;
    os_lock_enter(&lock);
    for (uint32_t i = 0; i < GRAVES; i++)
        if (graves[i].p == p) type = graves[i].type;
    os_lock_leave(&lock);
    return type;
}

bool ndk_check_object_at(const void *p, NDK_OBJECT_TYPE type, const char *call, KIRQL max,
                         const void *frame) {
    ke_call_enter_at(call, max, frame);
    if (!ke_tracked(&live, p)) {
        uint32_t was = grave_of(p);
        if (was)
            ndk_violation(NDK_RULE_use_after_close, call, p, "this %s is closed and gone",
                          ndk_type_name(was));
        else
            ndk_violation(NDK_RULE_bad_object, call, p, "not an object");
        return false;
    }
    const struct ndk_object *o = p;
    if (type != NdkObjectTypeUndefined && o->header.ObjectType != type) {
        ndk_violation(NDK_RULE_bad_object, call, p, "a %s where a %s is needed",
                      ndk_type_name(o->header.ObjectType), ndk_type_name(type));
        return false;
    }
    if (type == NdkObjectTypeAdapter || type == NdkObjectTypeUndefined) return true;
    if (os_u32_load_acquire(&o->closing)) {
        ndk_violation(NDK_RULE_use_after_close, call, p, "the close of this %s was started",
                      ndk_type_name(o->header.ObjectType));
        return false;
    }
    return true;
}

/* The close of o starts: is something that depends on it still open? */
void ndk_live_closing(struct ndk_object *o, const char *call) {
    if (os_u32_load_acquire(&o->closing)) {
        ndk_violation(NDK_RULE_double_close, call, o, "the close of this %s was started before",
                      ndk_type_name(o->header.ObjectType));
        return;
    }
    const struct ndk_object *child = NULL;
    uint32_t type = 0;
    os_lock_enter(&o->ad->lock);
    SN_LIST_FOR(it, &o->ad->objects) {
        struct ndk_object *c = SN_CONTAINER(it, struct ndk_object, all);
        if (os_u32_load_acquire(&c->closing)) continue;
        for (size_t i = 0; i < SN_ARRAY_LEN(c->uses); i++)
            if (c->uses[i] == o) child = c;
    }
    if (child) type = child->header.ObjectType;
    os_lock_leave(&o->ad->lock);
    if (child)
        ndk_warning(NDK_RULE_parent_first, call, o,
                    "this %s is closed before the %s at %p that depends on it; the close will "
                    "wait for that",
                    ndk_type_name(o->header.ObjectType), ndk_type_name(type), (const void *)child);
}

void ndk_check_callback(const void *callback, const char *call, const char *which) {
    if (!callback && ndk_verifying())
        ndk_violation(NDK_RULE_null_callback, call, NULL, "%s is NULL", which);
}

/* ---- pending requests ---- */

void ndk_pending_add(const void *ctx, const void *object, const char *call) {
    if (!ndk_verifying() || !ctx) return;
    struct pending *p = calloc(1, sizeof *p);
    if (!p) return;
    p->ctx = ctx;
    p->object = object;
    p->call = call;
    p->thread = os_thread_self();
    p->on_stack = ndk_on_this_stack(ctx);
    const char *shared = NULL;
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &pendings) {
        struct pending *q = SN_CONTAINER(it, struct pending, link);
        if (q->ctx == ctx) shared = q->call;
    }
    sn_list_push_back(&pendings, &p->link);
    pending_count++;
    os_lock_leave(&lock);
    if (shared)
        ndk_warning(NDK_RULE_context_reused, call, ctx,
                    "a pending %s has the same context; whose status will it hold?", shared);
}

void ndk_pending_remove(const void *ctx, const void *object) {
    if (!ctx) return;
    struct pending *found = NULL;
    ndk_verify_init();
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &pendings) {
        struct pending *p = SN_CONTAINER(it, struct pending, link);
        if (p->ctx != ctx || p->object != object) continue;
        sn_list_remove(it);
        pending_count--;
        found = p;
        break;
    }
    os_lock_leave(&lock);
    free(found);
}

static void check_stack(const void *frame) {
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

enum { SAME_STRUCTURE = 256 }; /* an event this near to a context belongs to it */

static void wait_timed_out(const void *object) {
    const char *call = NULL;
    const void *ctx = NULL;
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &pendings) {
        struct pending *p = SN_CONTAINER(it, struct pending, link);
        uintptr_t a = (uintptr_t)p->ctx, b = (uintptr_t)object;
        if ((a > b ? a - b : b - a) >= SAME_STRUCTURE) continue;
        call = p->call;
        ctx = p->ctx;
    }
    os_lock_leave(&lock);
    if (call)
        ndk_warning(NDK_RULE_wait_abandoned, "KeWaitForSingleObject", object,
                    "the wait is over, but the %s with context %p is still pending", call, ctx);
}

/* ---- memory ---- */

static bool overlaps(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len) {
    return a < b + b_len && b < a + a_len;
}

static const char *object_uses(struct ndk_object *o, const void *p, size_t len, const MDL *mdl) {
    if (o->header.ObjectType != NdkObjectTypeMr) return NULL;
    struct ndk_mr *mr = (struct ndk_mr *)o;
    os_lock_enter(&mr->lock);
    bool used = mr->state == NDK_MR_REGISTERED &&
                (mdl ? mr->mdl == mdl : overlaps((uintptr_t)p, len, mr->base, mr->len));
    os_lock_leave(&mr->lock);
    return used ? "a registered region" : NULL;
}

static const char *adapter_uses(struct ndk_adapter *ad, const void *p, size_t len, const MDL *mdl) {
    const char *user = NULL;
    os_lock_enter(&ad->lock);
    SN_LIST_FOR(it, &ad->objects) {
        struct ndk_object *o = SN_CONTAINER(it, struct ndk_object, all);
        if (!user) user = object_uses(o, p, len, mdl);
    }
    SN_LIST_FOR(it, &ad->lams) {
        struct ndk_lam *lam = SN_CONTAINER(it, struct ndk_lam, link);
        if (!mdl && overlaps((uintptr_t)p, len, (uintptr_t)lam->va, lam->len))
            user = "a mapping that was not released";
    }
    os_lock_leave(&ad->lock);
    return user;
}

static const char *memory_in_use(const void *p, size_t len, const MDL *mdl) {
    return ndk_each_adapter(adapter_uses, p, len, mdl);
}
