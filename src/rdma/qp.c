/* SPDX-License-Identifier: MIT
 *
 * Creation of queue pairs. Both queues lie in one piece of page memory that is committed as it is
 * used: an idle queue pair costs its structure, however deep its queues are.
 */
#include "rdma/qp.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"

static enum rd_qp_attr_fault check_attr(const struct rd_adapter *ad, const struct rd_qp_attr *a) {
    const struct rd_limits *lim = rd_limits_get();
    if (!a->receive_cq || a->receive_cq->ad != ad) return RD_QP_ATTR_RECEIVE_CQ;
    if (!a->initiator_cq || a->initiator_cq->ad != ad) return RD_QP_ATTR_INITIATOR_CQ;
    if (a->srq && a->srq->ad != ad) return RD_QP_ATTR_SRQ;
    if (!a->srq && a->receive_depth > lim->max_receive_depth) return RD_QP_ATTR_RECEIVE_DEPTH;
    if (a->initiator_depth > lim->max_initiator_depth) return RD_QP_ATTR_INITIATOR_DEPTH;
    if (!a->srq && a->max_receive_sge > lim->max_receive_sge) return RD_QP_ATTR_RECEIVE_SGE;
    if (a->max_initiator_sge > lim->max_initiator_sge) return RD_QP_ATTR_INITIATOR_SGE;
    if (a->inline_bytes > lim->max_inline_bytes) return RD_QP_ATTR_INLINE;
    return RD_QP_ATTR_OK;
}

static void init_sizes(struct rd_qp *qp, const struct rd_qp_attr *a) {
    const struct rd_limits *lim = rd_limits_get();
    struct rd_sendq *sq = &qp->sq;
    struct rd_recvq *rq = &qp->rq;
    sq->depth = a->initiator_depth;
    sq->mask = sn_pow2_ceil(sq->depth) - 1;
    sq->max_sge = rd_sge_room(a->max_initiator_sge, lim->max_initiator_sge);
    sq->inline_bytes = a->inline_bytes;
    rq->depth = a->srq ? 0 : a->receive_depth;
    rq->mask = sn_pow2_ceil(rq->depth) - 1;
    rq->max_sge = rd_sge_room(a->max_receive_sge, lim->max_receive_sge);
}

static void init_parts(struct rd_qp *qp) {
    os_lock_init(&qp->lock, OS_RANK_QP);
    os_lock_init(&qp->sq.lock, OS_RANK_SQ);
    os_lock_init(&qp->rq.lock, OS_RANK_RQ);
    sn_list_init(&qp->rq.srq_taken);
    sn_list_init(&qp->rq.srq_wait);
    sn_list_init(&qp->windows);
    struct rd_cq_member *members[] = { &qp->receive_member, &qp->initiator_member };
    for (size_t i = 0; i < SN_ARRAY_LEN(members); i++) {
        sn_list_init(&members[i]->link);
        sn_list_init(&members[i]->due_link);
        members[i]->qp = qp;
    }
    rd_qp_job_init(qp);
}

sn_status rd_qp_create(struct rd_adapter *ad, const struct rd_qp_attr *attr,
                       enum rd_qp_attr_fault *fault, struct rd_qp **out) {
    *fault = check_attr(ad, attr);
    if (*fault != RD_QP_ATTR_OK) return SN_E_PARAM;
    struct rd_qp *qp = os_zalloc(sizeof *qp);
    if (!qp) return SN_E_NOMEM;
    init_sizes(qp, attr);
    size_t sq_bytes = rd_sendq_layout(&qp->sq, NULL);
    qp->memory_bytes = sq_bytes + rd_recvq_layout(&qp->rq, NULL);
    if (qp->memory_bytes) {
        qp->memory = os_pages_alloc(qp->memory_bytes);
        if (!qp->memory) {
            os_free(qp);
            return SN_E_NOMEM;
        }
        rd_sendq_layout(&qp->sq, qp->memory);
        rd_recvq_layout(&qp->rq, (uint8_t *)qp->memory + sq_bytes);
    }
    init_parts(qp);
    os_ref_init(&qp->refs);
    qp->context = attr->context;
    qp->pd = attr->pd ? rd_pd_id(attr->pd) : 0;
    qp->hold_on_disconnect = attr->hold_on_disconnect;
    qp->id = os_u64_fetch_add_relaxed(&ad->next_qp_id, 1) + 1;
    rd_cq_get(attr->receive_cq);
    rd_cq_get(attr->initiator_cq);
    qp->receive_cq = attr->receive_cq;
    qp->initiator_cq = attr->initiator_cq;
    bool one_cq = attr->receive_cq == attr->initiator_cq;
    qp->initiator_as = one_cq ? &qp->receive_member : &qp->initiator_member;
    if (attr->srq) rd_srq_get(attr->srq);
    qp->srq = attr->srq;
    rd_adapter_get(ad);
    qp->ad = ad;
    *out = qp;
    return SN_OK;
}

void rd_qp_get(struct rd_qp *qp) {
    os_ref_get(&qp->refs);
}

void rd_qp_put(struct rd_qp *qp) {
    if (!os_ref_put(&qp->refs)) return;
    struct rd_adapter *ad = qp->ad;
    if (qp->memory) os_pages_free(qp->memory, qp->memory_bytes);
    rd_cq_put(qp->receive_cq);
    rd_cq_put(qp->initiator_cq);
    if (qp->srq) rd_srq_put(qp->srq);
    os_lock_fini(&qp->rq.lock);
    os_lock_fini(&qp->sq.lock);
    os_lock_fini(&qp->lock);
    os_free(qp);
    rd_adapter_put(ad);
}

const char *rd_qp_transport(const struct rd_qp *qp) {
    struct rd_qp *q = (struct rd_qp *)(uintptr_t)qp; /* counting a user is not a visible change */
    const char *name = "none";
    struct tp_conn *conn = rd_qp_conn_pin(q);
    if (conn) {
        name = conn->ops->name;
        rd_qp_conn_unpin(q);
    }
    return name;
}

uint32_t rd_qp_counters_get(const struct rd_qp *qp, struct rd_counter *out) {
    uint32_t n = 0;
#define FILL(field, unit_text, help_text)                                                          \
    out[n++] = (struct rd_counter){ #field, unit_text, help_text,                                  \
                                    os_u64_load_relaxed(&qp->counters.field) };
    RD_QP_COUNTERS(FILL)
#undef FILL
    return n;
}
