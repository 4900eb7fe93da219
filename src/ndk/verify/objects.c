/* SPDX-License-Identifier: MIT
 *
 * What is alive, and what of it can still call the consumer. Kept while the verifier is on.
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

static os_lock lock; /* rank LEAF: graves */
static uint32_t grave_at;
static os_once once = OS_ONCE_INIT;

static const char *memory_in_use(const void *p, size_t len, const MDL *mdl);

static void init(void) {
    os_lock_init(&lock, OS_RANK_LEAF);
    ndk_requests_init();
    static const struct ke_hooks hooks = { .on_call = ndk_requests_on_call,
                                           .on_wait_timeout = ndk_requests_on_timeout,
                                           .on_event_init = ndk_requests_on_event_init,
                                           .on_event_set = ndk_requests_on_event_set,
                                           .inline_for = ndk_requests_inline_for,
                                           .source = ndk_source,
                                           .memory_in_use = memory_in_use };
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

bool ndk_enter_object_at(const void *o, NDK_OBJECT_TYPE type, const char *call, KIRQL max,
                         const void *frame, struct ndk_call **in) {
    if (!ndk_check_object_at(o, type, call, max, frame)) return false;
    *in = ndk_call_begin(o, call);
    return true;
}

/* The close of o starts: is something that depends on it still open? */
void ndk_live_closing(struct ndk_object *o, const char *call) {
    if (os_u32_load_acquire(&o->closing)) {
        ndk_violation(NDK_RULE_double_close, call, o, "the close of this %s was started before",
                      ndk_type_name(o->header.ObjectType));
        return;
    }
    const char *inside = ndk_call_elsewhere(o);
    if (inside)
        ndk_violation(NDK_RULE_close_in_call, call, o, "another thread is inside %s of this %s",
                      inside, ndk_type_name(o->header.ObjectType));
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
    if (!ndk_verifying()) return;
    if (!callback)
        ndk_violation(NDK_RULE_null_callback, call, NULL, "%s is NULL", which);
    else if (!ndk_is_code(callback))
        ndk_violation(NDK_RULE_bad_callback, call, callback, "%s is no code of a loaded module",
                      which);
}

/* ---- what can still call the consumer ---- */

static const char *object_source(struct ndk_object *o) {
    if (os_u32_load_acquire(&o->closing)) return NULL; /* its close is a pending request */
    switch (o->header.ObjectType) {
    case NdkObjectTypeListener:
        return ((struct ndk_listener *)o)->listening ? "a listener" : NULL;
    case NdkObjectTypeCq: {
        struct ndk_cq *cq = (struct ndk_cq *)o;
        return os_u32_load_acquire(&cq->armed) && cq->attached_depth ? "an armed CQ" : NULL;
    }
    case NdkObjectTypeSrq:
        return ndk_srq_armed((struct ndk_srq *)o) ? "an armed SRQ" : NULL;
    case NdkObjectTypeConnector: {
        struct os_addr here, there;
        return ndk_connector_is_up((struct ndk_connector *)o, &here, &there) ? "a connection"
                                                                             : NULL;
    }
    default:
        return NULL;
    }
}

static const char *adapter_source(struct ndk_adapter *ad, const void *p, size_t len,
                                  const MDL *mdl) {
    const char *source = NULL;
    (void)p;
    (void)len;
    (void)mdl;
    os_lock_enter(&ad->lock);
    SN_LIST_FOR(it, &ad->objects) {
        struct ndk_object *o = SN_CONTAINER(it, struct ndk_object, all);
        if (!source) source = object_source(o);
        if (!source && !ndk_strand_idle(ad, &o->strand)) source = "a callback";
    }
    os_lock_leave(&ad->lock);
    if (source) return source;
    os_lock_enter(&ad->work_lock);
    if (!sn_list_empty(&ad->delayed)) source = "a callback";
    os_lock_leave(&ad->work_lock);
    return source;
}

const char *ndk_source(void) {
    return ndk_requests_pending() ? "a request" : ndk_each_adapter(adapter_source, NULL, 0, NULL);
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
