/* SPDX-License-Identifier: MIT */
#include "ndk/ndk.h"
#include "os/prim/fault.h"

static const void *completion_of(const struct ndk_request *r) {
    return r->on_created ? (const void *)(uintptr_t)r->on_created
                         : (const void *)(uintptr_t)r->on_done;
}

static void deliver(struct ndk_request *r) {
    struct ke_callback saved = ke_callback_begin();
    if (r->counted) {
        ndk_pending_remove(r->ctx, r->o);
        ndk_call_completes(r->call);
        ndk_completing(completion_of(r), r->ctx);
    }
    bool told = r->counted;
    if (r->on_created)
        r->on_created(r->ctx, r->status, r->created);
    else if (r->on_done)
        r->on_done(r->ctx, r->status);
    if (told) ndk_completing(NULL, NULL);
    ke_callback_end(saved, r->name);
}

static bool run_request(struct ndk_job *job) {
    struct ndk_request *r = SN_CONTAINER(job, struct ndk_request, job);
    struct ndk_object *o = r->o;
    if (r->before) r->before(r, r->st);
    deliver(r);
    os_free(r);
    ndk_object_put(
        o); /* may post the end of o to its strand, which this worker then goes on with */
    return true;
}

static void core_done(struct rd_async *a, sn_status st) {
    struct ndk_request *r = (struct ndk_request *)a;
    r->st = st;
    r->status = r->map(st);
    ndk_job_post(r->o->ad, &r->o->strand, &r->job);
}

static struct ndk_request *new_request(struct ndk_object *o, const char *name,
                                       NDK_FN_REQUEST_COMPLETION *on_done,
                                       NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx) {
    struct ndk_request *r = os_zalloc(sizeof *r);
    if (!r) return NULL;
    r->async.done = core_done;
    r->job.run = run_request;
    r->o = o;
    r->name = name;
    r->on_done = on_done;
    r->on_created = on_created;
    r->ctx = ctx;
    r->map = ndk_connect_status;
    ndk_object_get(o);
    r->counted = ndk_pending_add(ctx, o, name, completion_of(r));
    if (r->counted) r->call = ndk_call_id();
    return r;
}

struct ndk_request *ndk_request_new(struct ndk_object *o, const char *name,
                                    NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    return new_request(o, name, on_done, NULL, ctx);
}

void ndk_request_free(struct ndk_request *r) {
    struct ndk_object *o = r->o;
    if (r->counted) ndk_pending_remove(r->ctx, o);
    os_free(r);
    ndk_object_put(o);
}

NTSTATUS ndk_request_started(struct ndk_request *r, sn_status st) {
    if (st == SN_PENDING) return STATUS_PENDING; /* r may be gone */
    NTSTATUS status = r->map(st);
    if (r->counted) ndk_answered_inline(r->ctx, r->name, status);
    ndk_request_free(r);
    return status;
}

static NTSTATUS answer_now(const char *name, PVOID ctx, NTSTATUS st) {
    if (ndk_verifying()) ndk_answered_inline(ctx, name, st);
    return st;
}

static NTSTATUS later(struct ndk_request *r, NTSTATUS st, enum ndk_how how) {
    r->status = st;
    if (how == NDK_EARLY) {
        run_request(&r->job);
    } else {
        ndk_job_post(r->o->ad, &r->o->strand, &r->job);
    }
    return STATUS_PENDING;
}

NTSTATUS ndk_answer_as(struct ndk_object *o, const char *name, NDK_FN_REQUEST_COMPLETION *on_done,
                       PVOID ctx, NTSTATUS st, enum ndk_how how,
                       void (*before)(struct ndk_request *r, sn_status st)) {
    if (how == NDK_NOW || !on_done) return answer_now(name, ctx, st);
    struct ndk_request *r = ndk_request_new(o, name, on_done, ctx);
    if (!r) return answer_now(name, ctx, st);
    r->before = before;
    return later(r, st, how);
}

NTSTATUS ndk_answer(struct ndk_object *o, const char *name, NDK_FN_REQUEST_COMPLETION *on_done,
                    PVOID ctx, NTSTATUS st) {
    return ndk_answer_as(o, name, on_done, ctx, st, ndk_choose(), NULL);
}

NTSTATUS ndk_answer_create(struct ndk_object *o, const char *name,
                           NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx, void *out) {
    enum ndk_how how = ndk_choose();
    if (how != NDK_NOW && on_created) {
        struct ndk_request *r = new_request(o, name, NULL, on_created, ctx);
        if (r) {
            r->created = &o->header;
            return later(r, STATUS_SUCCESS, how);
        }
    }
    *(void **)out = o;
    return answer_now(name, ctx, STATUS_SUCCESS);
}
