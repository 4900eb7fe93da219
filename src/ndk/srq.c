/* SPDX-License-Identifier: MIT
 *
 * The threshold. Creating the queue arms it for the moment when the number falls; modifying with a
 * threshold arms it again and looks at once.
 */
#include "ndk/ndk.h"

static bool run_notify(struct ndk_job *job) {
    struct ndk_srq *srq = SN_CONTAINER(job, struct ndk_srq, job);
    os_lock_enter(&srq->lock);
    srq->job_posted = false;
    NTSTATUS status = srq->result == SN_OK ? STATUS_SUCCESS : STATUS_INTERNAL_ERROR;
    os_lock_leave(&srq->lock);
    struct ke_callback saved = ke_callback_begin();
    srq->notify(srq->notify_ctx, status);
    ke_callback_end(saved, "SrqNotificationCallback");
    ndk_object_put(&srq->o);
    return true;
}

/* The arm's reference goes to the callback, or is dropped. */
static void fell(struct rd_async *a, sn_status st) {
    struct ndk_srq *srq = SN_CONTAINER(a, struct ndk_srq, async);
    os_lock_enter(&srq->lock);
    srq->armed = false;
    srq->result = st;
    bool post = st != SN_E_CANCELED && !srq->job_posted;
    srq->job_posted |= post;
    os_lock_leave(&srq->lock);
    if (post)
        ndk_job_post(srq->o.ad, &srq->o.strand, &srq->job);
    else
        ndk_object_put(&srq->o);
}

static void arm(struct ndk_srq *srq, bool falling) {
    if (!srq->notify) return;
    os_lock_enter(&srq->lock);
    bool fresh = !srq->armed && !srq->job_posted;
    srq->armed |= fresh;
    os_lock_leave(&srq->lock);
    if (!fresh) return;
    ndk_object_get(&srq->o);
    srq->async.done = fell;
    sn_status st =
        falling ? rd_srq_notify_falling(srq->rd, &srq->async) : rd_srq_notify(srq->rd, &srq->async);
    if (st != SN_PENDING) ndk_object_put(&srq->o);
}

bool ndk_srq_armed(struct ndk_srq *srq) {
    os_lock_enter(&srq->lock);
    bool armed = srq->armed || srq->job_posted;
    os_lock_leave(&srq->lock);
    return armed;
}

static void begin_close(struct ndk_object *o) {
    rd_srq_cancel(((struct ndk_srq *)o)->rd);
}

static void teardown(struct ndk_object *o) {
    struct ndk_srq *srq = (struct ndk_srq *)o;
    rd_srq_destroy(srq->rd);
    if (srq->shadow) ndk_shadow_shared_closed(srq->shadow);
    os_lock_fini(&srq->lock);
}

static NTSTATUS modify(NDK_SRQ *object, ULONG depth, ULONG threshold,
                       NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    struct ndk_srq *srq = (struct ndk_srq *)object;
    NDK_ENTER(object, NdkObjectTypeSrq, "NdkModifySrq", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_done, "NdkModifySrq", "RequestCompletion");
    sn_status st = rd_srq_modify(srq->rd, depth, threshold);
    if (st != SN_OK) return ndk_status(st);
    if (depth) srq->depth = depth;
    if (threshold) arm(srq, false);
    return ndk_answer(&srq->o, "NdkModifySrq", on_done, ctx, STATUS_SUCCESS);
}

static NTSTATUS receive(NDK_SRQ *object, PVOID ctx, CONST NDK_SGE *sgl, ULONG count) {
    struct ndk_srq *srq = (struct ndk_srq *)object;
    struct tp_sge sge[16]; /* rd_limits_get() */
    if (count > srq->max_sge || count > SN_ARRAY_LEN(sge) || (count && !sgl))
        return STATUS_INVALID_PARAMETER;
    for (ULONG i = 0; i < count; i++)
        sge[i] = (struct tp_sge){ sgl[i].VirtualAddress, sgl[i].Length, sgl[i].MemoryRegionToken };
    if (ndk_fail_post()) return STATUS_INSUFFICIENT_RESOURCES;
    return ndk_post_status(rd_srq_post(srq->rd, ctx, sge, count));
}

const NDK_SRQ_DISPATCH ndk_srq_dispatch = {
    .NdkCloseSrq = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkModifySrq = modify,
    .NdkSrqReceive = receive,
};

NTSTATUS ndk_create_srq(NDK_PD *object, ULONG depth, ULONG max_sge, ULONG threshold,
                        NDK_FN_SRQ_NOTIFICATION_CALLBACK *notify, PVOID notify_ctx,
                        GROUP_AFFINITY *affinity, NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx,
                        NDK_SRQ **out) {
    struct ndk_pd *pd = (struct ndk_pd *)object;
    struct ndk_adapter *ad = pd->o.ad;
    (void)affinity;
    NDK_ENTER(object, NdkObjectTypePd, "NdkCreateSrq", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_created, "NdkCreateSrq", "CreateCompletion");
    if (!out) return STATUS_INVALID_PARAMETER;
    struct ndk_object *uses[] = { &pd->o };
    struct ndk_srq *srq = ndk_object_new(
        ad, sizeof *srq, NdkObjectTypeSrq,
        ad->verify ? (const void *)&ndk_verify_srq_dispatch : &ndk_srq_dispatch, uses, 1);
    if (!srq) return STATUS_INSUFFICIENT_RESOURCES;
    sn_status st = SN_OK;
    if (ad->verify && (srq->shadow = ndk_shadow_new_shared(ad)) == NULL) st = SN_E_NOMEM;
    if (st == SN_OK) st = rd_srq_create(ad->rd, depth, max_sge, threshold, &srq->rd);
    if (st != SN_OK) {
        ndk_object_discard(&srq->o);
        return ndk_status(st);
    }
    os_lock_init(&srq->lock, OS_RANK_REQUEST);
    srq->notify = notify;
    srq->notify_ctx = notify_ctx;
    srq->max_sge = max_sge;
    srq->depth = depth;
    srq->job.run = run_notify;
    srq->o.begin_close = begin_close;
    srq->o.teardown = teardown;
    if (threshold) arm(srq, true);
    return ndk_answer_create(&srq->o, "NdkCreateSrq", on_created, ctx, out);
}
