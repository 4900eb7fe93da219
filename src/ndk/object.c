/* SPDX-License-Identifier: MIT
 *
 * The end of an object. Whoever drops the last reference cannot always tear the object down itself
 * (it may be inside one of the object's callbacks, or in the core), so a worker does it; only the
 * close call itself does it on the spot, when nothing else holds the object.
 */
#include "ndk/ndk.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"

const char *ndk_type_name(uint32_t type) {
    static const char *const names[] = { "object",    "adapter",  "QP", "CQ",
                                         "MR",        "MW",       "PD", "shared endpoint",
                                         "connector", "listener", "SRQ" };
    return type < SN_ARRAY_LEN(names) ? names[type] : "object";
}

/* ---- workers ---- */

static void schedule_locked(struct ndk_adapter *ad, struct ndk_strand *s) {
    if (s->scheduled) return;
    s->scheduled = true;
    sn_list_push_back(&ad->ready, &s->link);
    os_cond_signal(&ad->work_ready);
}

bool ndk_strand_idle(struct ndk_adapter *ad, struct ndk_strand *strand) {
    os_lock_enter(&ad->work_lock);
    bool idle = !strand->scheduled;
    os_lock_leave(&ad->work_lock);
    return idle;
}

void ndk_job_post(struct ndk_adapter *ad, struct ndk_strand *strand, struct ndk_job *job) {
    os_lock_enter(&ad->work_lock);
    sn_list_push_back(&strand->jobs, &job->link);
    schedule_locked(ad, strand);
    os_lock_leave(&ad->work_lock);
}

void ndk_job_post_at(struct ndk_adapter *ad, struct ndk_strand *strand, struct ndk_job *job,
                     uint64_t due_ns) {
    os_lock_enter(&ad->work_lock);
    job->strand = strand;
    job->due_ns = due_ns;
    sn_list_push_back(&ad->delayed, &job->link);
    os_cond_signal(&ad->work_ready);
    os_lock_leave(&ad->work_lock);
}

/* Moves what is due to its strand; when the next one is. */
static uint64_t release_delayed_locked(struct ndk_adapter *ad) {
    uint64_t next = OS_FOREVER, now = sn_list_empty(&ad->delayed) ? 0 : os_now_ns();
    SN_LIST_FOR_SAFE(it, tmp, &ad->delayed) {
        struct ndk_job *job = SN_CONTAINER(it, struct ndk_job, link);
        if (job->due_ns > now) {
            next = SN_MIN(next, job->due_ns);
            continue;
        }
        sn_list_remove(it);
        sn_list_push_back(&job->strand->jobs, it);
        schedule_locked(ad, job->strand);
    }
    return next;
}

static void work(void *arg) {
    struct ndk_adapter *ad = arg;
    os_lock_enter(&ad->work_lock);
    for (;;) {
        uint64_t next = release_delayed_locked(ad);
        struct sn_list *it = sn_list_pop(&ad->ready);
        if (!it) {
            if (ad->stop) break;
            os_cond_wait(&ad->work_ready, &ad->work_lock, next);
            continue;
        }
        struct ndk_strand *s = SN_CONTAINER(it, struct ndk_strand, link);
        struct ndk_job *job = SN_CONTAINER(sn_list_pop(&s->jobs), struct ndk_job, link);
        os_lock_leave(&ad->work_lock);
        bool alive = job->run(job);
        os_lock_enter(&ad->work_lock);
        if (!alive) continue;
        s->scheduled = false;
        if (!sn_list_empty(&s->jobs)) schedule_locked(ad, s);
    }
    os_lock_leave(&ad->work_lock);
}

sn_status ndk_workers_start(struct ndk_adapter *ad);
void ndk_workers_stop(struct ndk_adapter *ad);

sn_status ndk_workers_start(struct ndk_adapter *ad) {
    os_lock_init(&ad->work_lock, OS_RANK_ENGINE);
    os_cond_init(&ad->work_ready);
    sn_list_init(&ad->ready);
    sn_list_init(&ad->delayed);
    for (size_t i = 0; i < SN_ARRAY_LEN(ad->workers); i++) {
        sn_status st = os_thread_start(&ad->workers[i], "ndk-callback", work, ad);
        if (st != SN_OK && i == 0) return st;
        if (st == SN_OK) ad->worker_count++;
    }
    return SN_OK;
}

void ndk_workers_stop(struct ndk_adapter *ad) {
    os_lock_enter(&ad->work_lock);
    ad->stop = true;
    os_cond_broadcast(&ad->work_ready);
    os_lock_leave(&ad->work_lock);
    for (uint32_t i = 0; i < ad->worker_count; i++)
        os_thread_join(ad->workers[i]);
    os_cond_fini(&ad->work_ready);
    os_lock_fini(&ad->work_lock);
}

/* ---- life ---- */

static bool run_final(struct ndk_job *job);

void *ndk_object_new(struct ndk_adapter *ad, size_t size, NDK_OBJECT_TYPE type,
                     const void *dispatch, struct ndk_object *const uses[], size_t use_count) {
    struct ndk_object *o = os_zalloc(size);
    if (!o) return NULL;
    o->header.Version = ad->version;
    o->header.ObjectType = type;
    o->dispatch = dispatch;
    o->ad = ad;
    o->final.run = run_final;
    sn_list_init(&o->strand.jobs);
    sn_list_init(&o->strand.link);
    os_u32_store_relaxed(&o->refs, 1);
    for (size_t i = 0; i < use_count; i++) {
        o->uses[i] = uses[i];
        ndk_object_get(uses[i]);
    }
    if (ndk_verifying()) ndk_stack_take(&o->origin);
    os_lock_enter(&ad->lock);
    sn_list_push_back(&ad->objects, &o->all);
    ad->object_count++;
    os_lock_leave(&ad->lock);
    ndk_live_add(o);
    return o;
}

/* No list shows it any more; what is torn down cannot be looked at. */
static void unlist(struct ndk_object *o) {
    ndk_live_remove(o);
    os_lock_enter(&o->ad->lock);
    sn_list_remove(&o->all);
    os_lock_leave(&o->ad->lock);
}

static void forget(struct ndk_object *o) {
    struct ndk_adapter *ad = o->ad;
    struct ndk_object *uses[SN_ARRAY_LEN(o->uses)];
    memcpy(uses, o->uses, sizeof uses);
    os_free(o);
    for (size_t i = 0; i < SN_ARRAY_LEN(uses); i++)
        if (uses[i]) ndk_object_put(uses[i]);
    os_lock_enter(&ad->lock);
    ad->object_count--;
    os_cond_broadcast(&ad->changed);
    os_lock_leave(&ad->lock);
}

void ndk_object_discard(struct ndk_object *o) {
    unlist(o);
    forget(o);
}

void ndk_object_get(struct ndk_object *o) {
    os_u32_fetch_add_relaxed(&o->refs, 1);
}

static bool run_final(struct ndk_job *job) {
    struct ndk_object *o = SN_CONTAINER(job, struct ndk_object, final);
    bool counted = o->close_counted;
    unlist(o);
    if (o->teardown) o->teardown(o);
    struct ke_callback saved = ke_callback_begin();
    if (counted) ndk_pending_remove(o->close_ctx, o);
    if (o->on_closed && !o->forced) {
        if (counted) ndk_completing((const void *)(uintptr_t)o->on_closed, o->close_ctx);
        o->on_closed(o->close_ctx);
        if (counted) ndk_completing(NULL, NULL);
    }
    ke_callback_end(saved, "CloseCompletion");
    forget(o);
    return false;
}

void ndk_object_put(struct ndk_object *o) {
    if (os_u32_fetch_sub_acq_rel(&o->refs, 1) != 1) return;
    ndk_job_post(o->ad, &o->strand, &o->final);
}

void ndk_object_use(struct ndk_object *o, struct ndk_object *antecedent) {
    for (size_t i = 0; i < SN_ARRAY_LEN(o->uses); i++) {
        if (o->uses[i] == antecedent) return;
        if (o->uses[i]) continue;
        ndk_object_get(antecedent);
        o->uses[i] = antecedent;
        return;
    }
}

NTSTATUS ndk_close_object(NDK_OBJECT_HEADER *header, NDK_FN_CLOSE_COMPLETION *on_closed,
                          PVOID ctx) {
    struct ndk_object *o = (struct ndk_object *)header;
    if (ndk_verifying()) {
        if (!ndk_check_object(o, NdkObjectTypeUndefined, "NdkClose", DISPATCH_LEVEL))
            return STATUS_SUCCESS;
        ndk_check_callback((const void *)(uintptr_t)on_closed, "NdkClose", "CloseCompletion");
        ndk_live_closing(o, "NdkClose");
    }
    if (os_u32_exchange_acq_rel(&o->closing, 1) != 0) return STATUS_SUCCESS;
    o->on_closed = on_closed;
    o->close_ctx = ctx;
    o->close_counted = ndk_pending_add(ctx, o, "NdkClose", (const void *)(uintptr_t)on_closed);
    if (o->begin_close) o->begin_close(o);
    if (os_u32_fetch_sub_acq_rel(&o->refs, 1) != 1) return STATUS_PENDING;
    /* Nobody else holds it; but a worker may be leaving its strand. */
    if (ndk_strand_idle(o->ad, &o->strand) && ndk_choose() == NDK_NOW) {
        if (o->close_counted) {
            ndk_pending_remove(ctx, o);
            ndk_answered_inline(ctx, "NdkClose", STATUS_SUCCESS);
        }
        unlist(o);
        if (o->teardown) o->teardown(o);
        forget(o);
        return STATUS_SUCCESS;
    }
    ndk_job_post(o->ad, &o->strand, &o->final);
    return STATUS_PENDING;
}

NTSTATUS ndk_query_extension(NDK_OBJECT_HEADER *header, GUID *id, NDK_VERSION version,
                             NDK_EXTENSION_INTERFACE *out) {
    (void)id;
    (void)version;
    NDK_ENTER(header, NdkObjectTypeUndefined, "NdkQueryExtension", STATUS_NOT_SUPPORTED);
    if (out) out->Dispatch = NULL;
    return STATUS_NOT_SUPPORTED;
}
