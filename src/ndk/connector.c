/* SPDX-License-Identifier: MIT
 *
 * The end of a connector. Its core object is destroyed when the close begins, so that the peer
 * learns it, but never while a job of the strand may be using it: a close that finds the strand at
 * work leaves that to a job. Jobs look at `local_end` first, which the close sets before it looks
 * at the strand.
 */
#include "ndk/ndk.h"

static bool ended(struct ndk_connector *c) {
    os_lock_enter(&c->lock);
    bool end = c->local_end;
    os_lock_leave(&c->lock);
    return end;
}

void ndk_connector_local_end(struct ndk_connector *c) {
    os_lock_enter(&c->lock);
    c->local_end = true;
    os_lock_leave(&c->lock);
}

bool ndk_connector_is_up(struct ndk_connector *c, struct os_addr *here, struct os_addr *there) {
    os_lock_enter(&c->lock);
    bool up = c->up && !c->local_end;
    *here = c->here;
    *there = c->there;
    os_lock_leave(&c->lock);
    return up;
}

/* ---- create and close ---- */

static bool run_close(struct ndk_job *job) {
    struct ndk_connector *c = SN_CONTAINER(job, struct ndk_connector, close_job);
    rd_connector_destroy(c->rd);
    ndk_object_put(&c->o);
    return true;
}

static void leave_qp(struct ndk_connector *c) {
    if (!c->qp) return;
    void *expected = c;
    os_lock_enter(&c->qp->lock);
    os_ptr_cas_acq_rel(&c->qp->connector, &expected, NULL);
    os_lock_leave(&c->qp->lock);
}

static void begin_close(struct ndk_object *o) {
    struct ndk_connector *c = (struct ndk_connector *)o;
    ndk_connector_local_end(c);
    leave_qp(c);
    if (ndk_strand_idle(o->ad, &o->strand)) {
        rd_connector_destroy(c->rd);
        return;
    }
    ndk_object_get(o);
    c->close_job.run = run_close;
    ndk_job_post(o->ad, &o->strand, &c->close_job);
}

static void teardown(struct ndk_object *o) {
    struct ndk_connector *c = (struct ndk_connector *)o;
    ndk_endpoint_give(c->endpoint);
    os_lock_fini(&c->lock);
}

static const NDK_CONNECTOR_DISPATCH dispatch;

struct ndk_connector *ndk_connector_new(struct ndk_adapter *ad, struct ndk_listener *l) {
    struct ndk_object *uses[] = { l ? &l->o : NULL };
    struct ndk_connector *c =
        ndk_object_new(ad, sizeof *c, NdkObjectTypeConnector, &dispatch, uses, l ? 1 : 0);
    if (!c) return NULL;
    if (rd_connector_create(ad->rd, &c->rd) != SN_OK) {
        ndk_object_discard(&c->o);
        return NULL;
    }
    os_lock_init(&c->lock, OS_RANK_LEAF);
    c->o.begin_close = begin_close;
    c->o.teardown = teardown;
    return c;
}

void ndk_connector_discard(struct ndk_connector *c) {
    rd_connector_destroy(c->rd);
    os_lock_fini(&c->lock);
    ndk_object_discard(&c->o);
}

NTSTATUS ndk_create_connector(NDK_ADAPTER *adapter, NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx,
                              NDK_CONNECTOR **out) {
    NDK_ENTER(adapter, NdkObjectTypeAdapter, "NdkCreateConnector", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_created, "NdkCreateConnector",
                       "CreateCompletion");
    if (!out) return STATUS_INVALID_PARAMETER;
    struct ndk_connector *c = ndk_connector_new((struct ndk_adapter *)adapter, NULL);
    if (!c) return STATUS_INSUFFICIENT_RESOURCES;
    return ndk_answer_create(&c->o, "NdkCreateConnector", on_created, ctx, out);
}

/* ---- the disconnect event ---- */

static bool run_event(struct ndk_job *job) {
    struct ndk_connector *c = SN_CONTAINER(job, struct ndk_connector, disconnect_job);
    os_lock_enter(&c->lock);
    bool give = !c->local_end && !c->event_given;
    c->event_given |= give;
    os_lock_leave(&c->lock);
    if (c->o.ad->verify) ndk_report_refused(c->qp);
    if (give && (c->on_disconnect || c->on_disconnect_ex)) {
        struct ke_callback saved = ke_callback_begin();
        if (c->on_disconnect_ex)
            c->on_disconnect_ex(c->disconnect_ctx, 0);
        else
            c->on_disconnect(c->disconnect_ctx);
        ke_callback_end(saved, "DisconnectEventCallback");
    }
    ndk_object_put(&c->o);
    return true;
}

static void disconnected(struct rd_async *a, sn_status st) {
    struct ndk_connector *c = SN_CONTAINER(a, struct ndk_connector, disconnect_async);
    os_lock_enter(&c->lock);
    c->up = false;
    os_lock_leave(&c->lock);
    if (st != SN_OK || ended(c)) {
        ndk_object_put(&c->o);
        return;
    }
    c->disconnect_job.run = run_event;
    ndk_job_post(c->o.ad, &c->o.strand, &c->disconnect_job);
}

/* On the strand, when the connection is made and before the consumer hears of it. */
static void established(struct ndk_request *r, sn_status st) {
    struct ndk_connector *c = (struct ndk_connector *)r->o;
    struct os_addr here, there;
    if (st != SN_OK || ended(c)) return;
    os_u32_store_release(&c->qp->up, 1);
    if (rd_connector_local_addr(c->rd, &here) == SN_OK &&
        rd_connector_peer_addr(c->rd, &there) == SN_OK) {
        os_lock_enter(&c->lock);
        c->here = here;
        c->there = there;
        c->up = true;
        os_lock_leave(&c->lock);
    }
    ndk_object_get(&c->o);
    c->disconnect_async.done = disconnected;
    if (rd_connector_notify_disconnect(c->rd, &c->disconnect_async) != SN_PENDING)
        ndk_object_put(&c->o);
}

/* ---- connect ---- */

static NTSTATUS check_private_data(const void *pd, ULONG len, ULONG limit) {
    if (len && !pd) {
        ndk_violation(NDK_RULE_connect_args, NULL, NULL, "no private data, but a length of %u",
                      len);
        return STATUS_INVALID_PARAMETER;
    }
    return len > limit ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
}

static void remember_limits(struct ndk_connector *c, ULONG ird, ULONG ord) {
    const struct rd_limits *lim = rd_limits_get();
    c->ird = SN_MIN(ird, lim->max_ird);
    c->ord = SN_MIN(ord, lim->max_ord);
    c->asked = true;
}

static void join_qp(struct ndk_connector *c, struct ndk_qp *qp) {
    c->qp = qp;
    ndk_object_use(&c->o, &qp->o);
    os_lock_enter(&qp->lock);
    os_ptr_store_release(&qp->connector, c);
    os_lock_leave(&qp->lock);
}

static NTSTATUS start_connect(struct ndk_connector *c, struct ndk_qp *qp,
                              const struct os_addr *peer, ULONG ird, ULONG ord, const void *pd,
                              ULONG pd_len, const char *name, NDK_FN_REQUEST_COMPLETION *on_done,
                              PVOID ctx) {
    struct ndk_request *r = ndk_request_new(&c->o, name, on_done, ctx);
    if (!r) return STATUS_INSUFFICIENT_RESOURCES;
    remember_limits(c, ird, ord);
    join_qp(c, qp);
    return ndk_request_started(
        r, rd_connector_connect(c->rd, qp->rd, peer, ird, ord, pd, pd_len, &r->async));
}

static NTSTATUS connect_from(NDK_CONNECTOR *object, NDK_QP *qp_object, CONST SOCKADDR *src,
                             ULONG src_len, CONST SOCKADDR *dst, ULONG dst_len, ULONG ird,
                             ULONG ord, CONST VOID *pd, ULONG pd_len,
                             NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    struct ndk_connector *c = (struct ndk_connector *)object;
    struct os_addr local, peer;
    NDK_ENTER(object, NdkObjectTypeConnector, "NdkConnect", STATUS_INVALID_PARAMETER);
    NDK_ARGUMENT(qp_object, NdkObjectTypeQp, "NdkConnect", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_done, "NdkConnect", "RequestCompletion");
    NTSTATUS status = ndk_addr_in(src, src_len, true, &local);
    if (status == STATUS_SUCCESS) status = ndk_addr_in(dst, dst_len, false, &peer);
    if (status == STATUS_SUCCESS)
        status = check_private_data(pd, pd_len, rd_limits_get()->max_caller_data_bytes);
    if (status != STATUS_SUCCESS) return status;
    struct ndk_endpoint *e = NULL;
    sn_status st = ndk_endpoint_take(c->o.ad, NDK_ENDPOINT_CONNECTOR, &local, &e);
    if (st == SN_OK) st = rd_connector_bind(c->rd, &local);
    if (st == SN_OK && !e && rd_connector_local_addr(c->rd, &local) == SN_OK)
        st = ndk_endpoint_take(c->o.ad, NDK_ENDPOINT_CONNECTOR, &local, &e);
    if (st != SN_OK) {
        ndk_endpoint_give(e);
        return ndk_connect_status(st);
    }
    c->endpoint = e;
    return start_connect(c, (struct ndk_qp *)qp_object, &peer, ird, ord, pd, pd_len, "NdkConnect",
                         on_done, ctx);
}

static NTSTATUS connect_shared(NDK_CONNECTOR *object, NDK_QP *qp_object,
                               NDK_SHARED_ENDPOINT *endpoint, CONST SOCKADDR *dst, ULONG dst_len,
                               ULONG ird, ULONG ord, CONST VOID *pd, ULONG pd_len,
                               NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    struct ndk_connector *c = (struct ndk_connector *)object;
    struct ndk_shared_endpoint *e = (struct ndk_shared_endpoint *)endpoint;
    struct os_addr peer;
    NDK_ENTER(object, NdkObjectTypeConnector, "NdkConnectWithSharedEndpoint",
              STATUS_INVALID_PARAMETER);
    NDK_ARGUMENT(qp_object, NdkObjectTypeQp, "NdkConnectWithSharedEndpoint",
                 STATUS_INVALID_PARAMETER);
    NDK_ARGUMENT(endpoint, NdkObjectTypeSharedEndpoint, "NdkConnectWithSharedEndpoint",
                 STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_done, "NdkConnectWithSharedEndpoint",
                       "RequestCompletion");
    NTSTATUS status = ndk_addr_in(dst, dst_len, false, &peer);
    if (status == STATUS_SUCCESS)
        status = check_private_data(pd, pd_len, rd_limits_get()->max_caller_data_bytes);
    if (status != STATUS_SUCCESS) return status;
    sn_status st = rd_connector_bind(c->rd, &e->addr);
    if (st != SN_OK) return ndk_connect_status(st);
    ndk_object_use(&c->o, &e->o);
    return start_connect(c, (struct ndk_qp *)qp_object, &peer, ird, ord, pd, pd_len,
                         "NdkConnectWithSharedEndpoint", on_done, ctx);
}

/* A kernel's table may end before this function: a version of 1.2 or 2.0 has no room for it. */
static void check_version_2_1(struct ndk_connector *c, const char *name) {
    NDK_VERSION v = c->o.header.Version;
    if (ndk_verifying() && (v.Major < 2 || (v.Major == 2 && v.Minor < 1)))
        ndk_violation(NDK_RULE_version, name, c,
                      "the adapter reports %u.%u, the function is of 2.1", v.Major, v.Minor);
}

static NTSTATUS complete_with(NDK_CONNECTOR *object, const char *name,
                              NDK_FN_DISCONNECT_EVENT_CALLBACK *event,
                              NDK_FN_DISCONNECT_EVENT_CALLBACK_EX *event_ex, PVOID event_ctx,
                              NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    struct ndk_connector *c = (struct ndk_connector *)object;
    NDK_ENTER(object, NdkObjectTypeConnector, name, STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_done, name, "RequestCompletion");
    struct ndk_request *r = ndk_request_new(&c->o, name, on_done, ctx);
    if (!r) return STATUS_INSUFFICIENT_RESOURCES;
    c->on_disconnect = event;
    c->on_disconnect_ex = event_ex;
    c->disconnect_ctx = event_ctx;
    r->before = established;
    os_u32_store_relaxed(&c->answered, 1);
    return ndk_request_started(r, rd_connector_complete(c->rd, &r->async));
}

static NTSTATUS complete(NDK_CONNECTOR *object, NDK_FN_DISCONNECT_EVENT_CALLBACK *event,
                         PVOID event_ctx, NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    return complete_with(object, "NdkCompleteConnect", event, NULL, event_ctx, on_done, ctx);
}

static NTSTATUS complete_ex(NDK_CONNECTOR *object, NDK_FN_DISCONNECT_EVENT_CALLBACK_EX *event,
                            PVOID event_ctx, NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    check_version_2_1((struct ndk_connector *)object, "NdkCompleteConnectEx");
    return complete_with(object, "NdkCompleteConnectEx", NULL, event, event_ctx, on_done, ctx);
}

/* ---- accept and reject ---- */

static NTSTATUS accept_with(NDK_CONNECTOR *object, NDK_QP *qp_object, ULONG ird, ULONG ord,
                            CONST VOID *pd, ULONG pd_len, const char *name,
                            NDK_FN_DISCONNECT_EVENT_CALLBACK *event,
                            NDK_FN_DISCONNECT_EVENT_CALLBACK_EX *event_ex, PVOID event_ctx,
                            NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    struct ndk_connector *c = (struct ndk_connector *)object;
    struct ndk_qp *qp = (struct ndk_qp *)qp_object;
    NDK_ENTER(object, NdkObjectTypeConnector, name, STATUS_INVALID_PARAMETER);
    NDK_ARGUMENT(qp_object, NdkObjectTypeQp, name, STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_done, name, "RequestCompletion");
    NTSTATUS status = check_private_data(pd, pd_len, rd_limits_get()->max_callee_data_bytes);
    if (status != STATUS_SUCCESS) return status;
    struct ndk_request *r = ndk_request_new(&c->o, name, on_done, ctx);
    if (!r) return STATUS_INSUFFICIENT_RESOURCES;
    c->on_disconnect = event;
    c->on_disconnect_ex = event_ex;
    c->disconnect_ctx = event_ctx;
    r->map = ndk_accept_status;
    r->before = established;
    os_u32_store_relaxed(&c->answered, 1);
    remember_limits(c, ird, ord);
    join_qp(c, qp);
    return ndk_request_started(r,
                               rd_connector_accept(c->rd, qp->rd, ird, ord, pd, pd_len, &r->async));
}

static NTSTATUS accept_on(NDK_CONNECTOR *object, NDK_QP *qp, ULONG ird, ULONG ord, CONST VOID *pd,
                          ULONG pd_len, NDK_FN_DISCONNECT_EVENT_CALLBACK *event, PVOID event_ctx,
                          NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    return accept_with(object, qp, ird, ord, pd, pd_len, "NdkAccept", event, NULL, event_ctx,
                       on_done, ctx);
}

static NTSTATUS accept_ex(NDK_CONNECTOR *object, NDK_QP *qp, ULONG ird, ULONG ord, CONST VOID *pd,
                          ULONG pd_len, NDK_FN_DISCONNECT_EVENT_CALLBACK_EX *event, PVOID event_ctx,
                          NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    check_version_2_1((struct ndk_connector *)object, "NdkAcceptEx");
    return accept_with(object, qp, ird, ord, pd, pd_len, "NdkAcceptEx", NULL, event, event_ctx,
                       on_done, ctx);
}

static NTSTATUS reject(NDK_CONNECTOR *object, CONST VOID *pd, ULONG pd_len) {
    struct ndk_connector *c = (struct ndk_connector *)object;
    NDK_ENTER(object, NdkObjectTypeConnector, "NdkReject", STATUS_INVALID_PARAMETER);
    NTSTATUS status = check_private_data(pd, pd_len, rd_limits_get()->max_callee_data_bytes);
    if (status != STATUS_SUCCESS) return status;
    return ndk_accept_status(rd_connector_reject(c->rd, pd, pd_len));
}

/* ---- questions ---- */

static NTSTATUS connection_data(NDK_CONNECTOR *object, ULONG *inbound, ULONG *outbound, PVOID pd,
                                ULONG *pd_len) {
    struct ndk_connector *c = (struct ndk_connector *)object;
    const struct rd_limits *lim = rd_limits_get();
    uint32_t in, out;
    NDK_ENTER(object, NdkObjectTypeConnector, "NdkGetConnectionData", STATUS_INVALID_PARAMETER);
    if (pd_len && *pd_len && !pd) {
        ndk_violation(NDK_RULE_connect_args, "NdkGetConnectionData", object,
                      "no buffer for private data, but a length of %u", *pd_len);
        return STATUS_INVALID_PARAMETER;
    }
    if (os_u32_load_relaxed(&c->answered))
        ndk_warning(NDK_RULE_late_connection_data, "NdkGetConnectionData", object,
                    "after CompleteConnect or Accept some providers have nothing to tell");
    sn_status st = rd_connector_read_limits(c->rd, &in, &out);
    if (st != SN_OK) return ndk_connect_status(st);
    if (inbound) *inbound = SN_MIN(in, c->asked ? c->ird : lim->max_ird);
    if (outbound) *outbound = SN_MIN(out, c->asked ? c->ord : lim->max_ord);
    if (!pd_len) return STATUS_SUCCESS;
    uint8_t none;
    bool ask = *pd_len == 0;
    uint32_t len = *pd_len;
    st = rd_connector_private_data(c->rd, ask ? &none : pd, &len);
    *pd_len = len;
    if (st == SN_E_BUFFER_SMALL) return ask ? STATUS_SUCCESS : STATUS_BUFFER_TOO_SMALL;
    return ndk_connect_status(st);
}

static NTSTATUS local_address(NDK_CONNECTOR *object, SOCKADDR *address, ULONG *len) {
    struct os_addr a;
    NDK_ENTER(object, NdkObjectTypeConnector, "NdkGetLocalAddress", STATUS_INVALID_PARAMETER);
    sn_status st = rd_connector_local_addr(((struct ndk_connector *)object)->rd, &a);
    return st == SN_OK ? ndk_addr_out(&a, address, len) : ndk_connect_status(st);
}

static NTSTATUS peer_address(NDK_CONNECTOR *object, SOCKADDR *address, ULONG *len) {
    struct os_addr a;
    NDK_ENTER(object, NdkObjectTypeConnector, "NdkGetPeerAddress", STATUS_INVALID_PARAMETER);
    sn_status st = rd_connector_peer_addr(((struct ndk_connector *)object)->rd, &a);
    return st == SN_OK ? ndk_addr_out(&a, address, len) : ndk_connect_status(st);
}

/* ---- disconnect ---- */

static NTSTATUS disconnect(NDK_CONNECTOR *object, NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    struct ndk_connector *c = (struct ndk_connector *)object;
    NDK_ENTER(object, NdkObjectTypeConnector, "NdkDisconnect", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_done, "NdkDisconnect", "RequestCompletion");
    struct ndk_request *r = ndk_request_new(&c->o, "NdkDisconnect", on_done, ctx);
    if (!r) return STATUS_INSUFFICIENT_RESOURCES;
    os_lock_enter(&c->lock);
    bool before = c->local_end;
    c->local_end = true;
    os_lock_leave(&c->lock);
    sn_status st = rd_connector_disconnect(c->rd, &r->async);
    if (st != SN_PENDING && !before) { /* never connected: nothing has ended */
        os_lock_enter(&c->lock);
        c->local_end = false;
        os_lock_leave(&c->lock);
    }
    return ndk_request_started(r, st);
}

static const NDK_CONNECTOR_DISPATCH dispatch = {
    .NdkCloseConnector = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkConnect = connect_from,
    .NdkConnectWithSharedEndpoint = connect_shared,
    .NdkCompleteConnect = complete,
    .NdkAccept = accept_on,
    .NdkReject = reject,
    .NdkGetConnectionData = connection_data,
    .NdkGetLocalAddress = local_address,
    .NdkGetPeerAddress = peer_address,
    .NdkDisconnect = disconnect,
    .NdkCompleteConnectEx = complete_ex,
    .NdkAcceptEx = accept_ex,
};
