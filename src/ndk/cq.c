/* SPDX-License-Identifier: MIT
 *
 * Notifications. The core calls on_notify once per arm; each call becomes one callback on the
 * queue's strand, so that callbacks of one queue never overlap. Moderation holds a callback back
 * until enough results are there or the interval is over, looking again every TICK.
 */
#include "ndk/ndk.h"
#include "os/prim/clock.h"

#define TICK_NS (100 * OS_NS_PER_US)
#define LONGEST_NS (10 * OS_NS_PER_MS) /* where only a count rules */

static NTSTATUS notify_status(sn_status st) {
    if (st == SN_OK) return STATUS_SUCCESS;
    return st == SN_E_OVERRUN ? STATUS_BUFFER_OVERFLOW : STATUS_INTERNAL_ERROR;
}

/* Lock held: when the callback may be made; 0: now. */
static uint64_t not_before_locked(struct ndk_cq *cq) {
    if (cq->interval == 0 || cq->count <= 1 || cq->due_status != SN_OK) return 0;
    if (cq->count <= cq->depth && rd_cq_queued(cq->rd) >= cq->count) return 0;
    uint64_t end =
        cq->fired_ns + (cq->interval == MAXULONG ? LONGEST_NS : cq->interval * OS_NS_PER_US);
    uint64_t now = os_now_ns();
    if (now >= end) return 0;
    return SN_MIN(end, now + TICK_NS);
}

static bool run_notify(struct ndk_job *job) {
    struct ndk_cq *cq = SN_CONTAINER(job, struct ndk_cq, job);
    os_lock_enter(&cq->lock);
    uint64_t wait = not_before_locked(cq);
    if (wait) {
        os_lock_leave(&cq->lock);
        ndk_job_post_at(cq->o.ad, &cq->o.strand, &cq->job, wait);
        return true;
    }
    cq->due--;
    NTSTATUS status = notify_status(cq->due_status);
    bool again = cq->due != 0;
    cq->job_posted = again;
    os_lock_leave(&cq->lock);
    os_u32_store_relaxed(&cq->unanswered, 1);
    struct ke_callback saved = ke_callback_begin();
    os_u32_store_release(&cq->armed, 0);
    cq->notify(cq->notify_ctx, status);
    ke_callback_end(saved, "CqNotificationCallback");
    if (again) ndk_job_post(cq->o.ad, &cq->o.strand, &cq->job);
    ndk_object_put(&cq->o);
    return true;
}

static void on_notify(void *ctx, sn_status st) {
    struct ndk_cq *cq = ctx;
    ndk_object_get(&cq->o);
    os_lock_enter(&cq->lock);
    cq->due++;
    if (st != SN_OK) cq->due_status = st;
    if (cq->interval) cq->fired_ns = os_now_ns();
    bool post = !cq->job_posted;
    cq->job_posted = true;
    os_lock_leave(&cq->lock);
    if (post) ndk_job_post(cq->o.ad, &cq->o.strand, &cq->job);
}

/* No callback after the close began: the core's arm is cancelled, and those due were counted. */
static void begin_close(struct ndk_object *o) {
    struct ndk_cq *cq = (struct ndk_cq *)o;
    if (o->ad->verify) ndk_verify_cq_closed(cq);
}

static void teardown(struct ndk_object *o) {
    struct ndk_cq *cq = (struct ndk_cq *)o;
    rd_cq_destroy(cq->rd);
    os_lock_fini(&cq->lock);
}

NTSTATUS ndk_create_cq(NDK_ADAPTER *adapter, ULONG depth, NDK_FN_CQ_NOTIFICATION_CALLBACK *notify,
                       PVOID notify_ctx, GROUP_AFFINITY *affinity,
                       NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx, NDK_CQ **out) {
    struct ndk_adapter *ad = (struct ndk_adapter *)adapter;
    (void)affinity; /* a hint */
    NDK_ENTER(adapter, NdkObjectTypeAdapter, "NdkCreateCq", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)notify, "NdkCreateCq", "CqNotification");
    ndk_check_callback((const void *)(uintptr_t)on_created, "NdkCreateCq", "CreateCompletion");
    if (!notify || !out) return STATUS_INVALID_PARAMETER;
    struct ndk_cq *cq = ndk_object_new(
        ad, sizeof *cq, NdkObjectTypeCq,
        ad->verify ? (const void *)&ndk_verify_cq_dispatch : &ndk_cq_dispatch, NULL, 0);
    if (!cq) return STATUS_INSUFFICIENT_RESOURCES;
    sn_status st = rd_cq_create(ad->rd, depth, &cq->rd);
    if (st != SN_OK) {
        ndk_object_discard(&cq->o);
        return ndk_status(st);
    }
    os_lock_init(&cq->lock, OS_RANK_REQUEST);
    cq->notify = notify;
    cq->notify_ctx = notify_ctx;
    cq->depth = depth;
    cq->job.run = run_notify;
    cq->o.begin_close = begin_close;
    cq->o.teardown = teardown;
    rd_cq_set_callback(cq->rd, on_notify, cq);
    return ndk_answer_create(&cq->o, "NdkCreateCq", on_created, ctx, out);
}

static NTSTATUS resize(NDK_CQ *object, ULONG depth, NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    struct ndk_cq *cq = (struct ndk_cq *)object;
    NDK_ENTER(object, NdkObjectTypeCq, "NdkResizeCq", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_done, "NdkResizeCq", "RequestCompletion");
    sn_status st = rd_cq_resize(cq->rd, depth);
    if (st != SN_OK) return ndk_status(st);
    os_lock_enter(&cq->lock);
    cq->depth = depth;
    os_lock_leave(&cq->lock);
    return ndk_answer(&cq->o, "NdkResizeCq", on_done, ctx, STATUS_SUCCESS);
}

static VOID arm(NDK_CQ *object, ULONG type) {
    struct ndk_cq *cq = (struct ndk_cq *)object;
    enum rd_notify n = type == NDK_CQ_NOTIFY_ERRORS      ? RD_NOTIFY_QUEUE
                       : type == NDK_CQ_NOTIFY_SOLICITED ? RD_NOTIFY_SOLICITED
                                                         : RD_NOTIFY_ANY;
    if (type > NDK_CQ_NOTIFY_SOLICITED) return; /* there is no status to answer with */
    if (rd_cq_arm(cq->rd, n) != SN_OK) return;
}

static NDK_OPERATION_TYPE type_of(const struct rd_completion *c) {
    switch (c->type) {
    case RD_RECEIVE:
        return c->invalidated_token ? NdkOperationTypeReceiveAndInvalidate
                                    : NdkOperationTypeReceive;
    case RD_BIND:
        return NdkOperationTypeBind;
    case RD_INVALIDATE:
        return NdkOperationTypeInvalidate;
    case RD_READ:
        return NdkOperationTypeRead;
    case RD_WRITE:
        return NdkOperationTypeWrite;
    case RD_FAST_REGISTER:
        return NdkOperationTypeFastRegister;
    default:
        return NdkOperationTypeSend;
    }
}

enum { CHUNK = 32 };

/* The results, once as the provider gives them and once for the verifier's table, with `verify` a
 * constant: without the verifier nothing asks for it. A consumer's context is behind a shadow, and
 * what the interface leaves undefined is something that nobody can use. */

static inline ULONG bytes_of(const struct rd_completion *c, bool verify) {
    if (c->type == RD_RECEIVE && c->status == SN_OK) return c->bytes;
    return verify ? 0xDDDDDDDD : 0;
}

static inline PVOID context_of(const struct rd_completion *c, bool verify) {
    return verify ? ndk_shadow_context(c->qp_context) : c->qp_context;
}

__attribute__((always_inline)) static inline ULONG take(NDK_CQ *object, NDK_RESULT out[],
                                                        ULONG count, bool verify) {
    struct ndk_cq *cq = (struct ndk_cq *)object;
    struct rd_completion c[CHUNK];
    ULONG n = 0;
    while (n < count) {
        uint32_t want = SN_MIN(count - n, (ULONG)CHUNK);
        uint32_t got = rd_cq_poll(cq->rd, c, want);
        for (uint32_t i = 0; i < got; i++, n++) {
            out[n] = (NDK_RESULT){ .Status = ndk_completion_status(c[i].status),
                                   .BytesTransferred = bytes_of(&c[i], verify),
                                   .QPContext = context_of(&c[i], verify),
                                   .RequestContext = c[i].request_context };
            if (verify) ndk_shadow_result(c[i].qp_context, &c[i]);
        }
        if (got < want) break;
    }
    return n;
}

__attribute__((always_inline)) static inline ULONG take_ex(NDK_CQ *object, NDK_RESULT_EX out[],
                                                           ULONG count, bool verify) {
    struct ndk_cq *cq = (struct ndk_cq *)object;
    struct rd_completion c[CHUNK];
    ULONG n = 0;
    while (n < count) {
        uint32_t want = SN_MIN(count - n, (ULONG)CHUNK);
        uint32_t got = rd_cq_poll(cq->rd, c, want);
        for (uint32_t i = 0; i < got; i++, n++) {
            out[n] = (NDK_RESULT_EX){ .Status = ndk_completion_status(c[i].status),
                                      .BytesTransferred = bytes_of(&c[i], verify),
                                      .QPContext = context_of(&c[i], verify),
                                      .RequestContext = c[i].request_context,
                                      .Type = type_of(&c[i]),
                                      .ProviderErrorCode = (ULONG)c[i].status,
                                      .TypeSpecificCompletionOutput = c[i].invalidated_token };
            if (verify) ndk_shadow_result(c[i].qp_context, &c[i]);
        }
        if (got < want) break;
    }
    return n;
}

static ULONG results(NDK_CQ *cq, NDK_RESULT out[], ULONG count) {
    return take(cq, out, count, false);
}

static ULONG results_ex(NDK_CQ *cq, NDK_RESULT_EX out[], ULONG count) {
    return take_ex(cq, out, count, false);
}

ULONG ndk_verify_take(NDK_CQ *cq, NDK_RESULT out[], ULONG count) {
    return take(cq, out, count, true);
}

ULONG ndk_verify_take_ex(NDK_CQ *cq, NDK_RESULT_EX out[], ULONG count) {
    return take_ex(cq, out, count, true);
}

static NTSTATUS moderate(NDK_CQ *object, ULONG interval, ULONG count) {
    struct ndk_cq *cq = (struct ndk_cq *)object;
    NDK_ENTER(object, NdkObjectTypeCq, "NdkControlCqInterruptModeration", STATUS_INVALID_PARAMETER);
    if (os_u32_load_relaxed(&ndk_options.no_moderation)) return STATUS_NOT_SUPPORTED;
    os_lock_enter(&cq->lock);
    bool bad = interval == MAXULONG && (count == MAXULONG || count > cq->depth);
    if (!bad) {
        cq->interval = interval;
        cq->count = count;
    }
    os_lock_leave(&cq->lock);
    return bad ? STATUS_INVALID_PARAMETER_MIX : STATUS_SUCCESS;
}

const NDK_CQ_DISPATCH ndk_cq_dispatch = {
    .NdkCloseCq = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkResizeCq = resize,
    .NdkArmCq = arm,
    .NdkGetCqResults = results,
    .NdkControlCqInterruptModeration = moderate,
    .NdkGetCqResultsEx = results_ex,
};
