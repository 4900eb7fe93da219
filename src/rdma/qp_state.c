/* SPDX-License-Identifier: MIT
 *
 * The states of a queue pair. set_state_locked is the only place that changes one. A flush is done
 * under the queue pair's lock, after the transport has let go of everything, so two threads that
 * end a queue pair at once do it one after the other and the second finds nothing.
 */
#include "rdma/connector.h"
#include "rdma/qp.h"

#define TO(state) (1u << (state))

static void set_state_locked(struct rd_qp *qp, enum rd_qp_state to) {
    static const uint8_t legal[] = {
        [RD_QP_IDLE] = TO(RD_QP_CONNECTING) | TO(RD_QP_CLOSED),
        [RD_QP_CONNECTING] =
            TO(RD_QP_IDLE) | TO(RD_QP_OPENING) | TO(RD_QP_ERROR) | TO(RD_QP_CLOSED),
        [RD_QP_OPENING] =
            TO(RD_QP_IDLE) | TO(RD_QP_ESTABLISHED) | TO(RD_QP_ERROR) | TO(RD_QP_CLOSED),
        [RD_QP_ESTABLISHED] = TO(RD_QP_ERROR) | TO(RD_QP_CLOSED),
        [RD_QP_ERROR] = TO(RD_QP_CLOSED),
        [RD_QP_CLOSED] = 0,
    };
    os_lock_assert_held(&qp->lock);
    SN_ASSERT(legal[qp->state] & TO(to));
    qp->state = to;
}

/* ---- flush ---- */

/* What the queues do with posts after the flush. */
static void set_modes_locked(struct rd_qp *qp, enum rd_qp_state to) {
    if (to == RD_QP_IDLE) return;
    qp->sq.mode = to == RD_QP_CLOSED ? RD_SQ_CLOSED : RD_SQ_FLUSHED;
    qp->rq.flushed = true;
}

/* One event for each completion queue, however many entries. qp->lock held. */
static void flush_queues_locked(struct rd_qp *qp, enum rd_qp_state to, struct rd_fire f[2]) {
    bool one_cq = qp->receive_cq == qp->initiator_cq;
    os_lock_enter(&qp->sq.lock);
    os_lock_enter(&qp->rq.lock);
    set_modes_locked(qp, to);
    rd_cq_enter(qp->initiator_cq);
    rd_sendq_flush_locked(qp, &f[0]);
    if (!one_cq) {
        rd_cq_leave(qp->initiator_cq, &f[0]);
        rd_cq_enter(qp->receive_cq);
    }
    rd_recvq_flush_locked(qp, one_cq ? &f[0] : &f[1]);
    rd_cq_leave(qp->receive_cq, one_cq ? &f[0] : &f[1]);
    os_lock_leave(&qp->rq.lock);
    os_lock_leave(&qp->sq.lock);
    rd_recvq_flush_end(qp);
}

static void part_cqs(struct rd_qp *qp) {
    rd_cq_part(qp->receive_cq, &qp->receive_member);
    if (qp->initiator_cq != qp->receive_cq) rd_cq_part(qp->initiator_cq, &qp->initiator_member);
}

static void join_cqs(struct rd_qp *qp) {
    rd_cq_join(qp->receive_cq, &qp->receive_member);
    if (qp->initiator_cq != qp->receive_cq) rd_cq_join(qp->initiator_cq, &qp->initiator_member);
}

void rd_qp_end(struct rd_qp *qp, enum rd_qp_state to) {
    struct rd_fire f[2];
    rd_fire_init(&f[0]);
    rd_fire_init(&f[1]);
    os_lock_enter(&qp->lock);
    if (qp->state != RD_QP_CLOSED && qp->state != to) set_state_locked(qp, to);
    struct rd_connector *c = qp->connector;
    qp->connector = NULL;
    part_cqs(qp);
    flush_queues_locked(qp, qp->state, f);
    os_lock_leave(&qp->lock);
    rd_fire_run(&f[0]);
    rd_fire_run(&f[1]);
    if (c) rd_connector_put(c);
}

void rd_qp_hold(struct rd_qp *qp) {
    os_lock_enter(&qp->lock);
    if (qp->state != RD_QP_CLOSED && qp->state != RD_QP_ERROR) set_state_locked(qp, RD_QP_ERROR);
    struct rd_connector *c = qp->connector;
    qp->connector = NULL;
    part_cqs(qp);
    os_lock_enter(&qp->sq.lock);
    qp->sq.mode = RD_SQ_CLOSED; /* not connected; what was posted waits for the flush */
    os_lock_leave(&qp->sq.lock);
    rd_recvq_rewind(qp);
    os_lock_leave(&qp->lock);
    if (c) rd_connector_put(c);
}

void rd_qp_flush(struct rd_qp *qp) {
    struct rd_fire f[2];
    rd_fire_init(&f[0]);
    rd_fire_init(&f[1]);
    os_lock_enter(&qp->lock);
    bool quiet = qp->state == RD_QP_IDLE || qp->state == RD_QP_CONNECTING;
    /* Nothing flows before the connection is made, and it cannot be made while we hold the lock. */
    if (quiet) flush_queues_locked(qp, RD_QP_IDLE, f);
    os_lock_leave(&qp->lock);
    rd_fire_run(&f[0]);
    rd_fire_run(&f[1]);
    if (!quiet) rd_qp_break(qp);
}

/* ---- attach and establish ---- */

sn_status rd_qp_attach(struct rd_qp *qp, struct rd_connector *c) {
    sn_status st = SN_E_CONNECTED;
    os_lock_enter(&qp->lock);
    if (qp->state == RD_QP_IDLE && !qp->dead) {
        set_state_locked(qp, RD_QP_CONNECTING);
        rd_connector_get(c);
        qp->connector = c;
        st = SN_OK;
    }
    os_lock_leave(&qp->lock);
    return st;
}

bool rd_qp_opening(struct rd_qp *qp, struct tp_conn *conn, uint32_t ord) {
    os_lock_enter(&qp->lock);
    bool ok = qp->state == RD_QP_CONNECTING && !qp->dead;
    if (ok) {
        set_state_locked(qp, RD_QP_OPENING);
        os_lock_enter(&qp->sq.lock);
        qp->sq.may_open = true;
        qp->sq.ord = ord;
        os_lock_leave(&qp->sq.lock);
        os_ptr_store_seqcst(&qp->conn, conn);
        join_cqs(qp);
    }
    os_lock_leave(&qp->lock);
    return ok;
}

/* What was posted on the strength of an early message goes the way of the attempt. */
static void close_early_locked(struct rd_qp *qp, struct rd_fire *f) {
    os_lock_enter(&qp->sq.lock);
    qp->sq.may_open = false;
    qp->sq.mode = RD_SQ_UNCONNECTED;
    os_u32_store_relaxed(&qp->sq.opened, 0);
    os_u32_store_relaxed(&qp->sq.stopped, 0);
    rd_cq_enter(qp->initiator_cq);
    rd_sendq_flush_locked(qp, f);
    rd_cq_leave(qp->initiator_cq, f);
    os_lock_leave(&qp->sq.lock);
}

void rd_qp_detach(struct rd_qp *qp, struct rd_connector *c) {
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&qp->lock);
    bool attempt = qp->state == RD_QP_CONNECTING || qp->state == RD_QP_OPENING;
    bool ours = attempt && qp->connector == c;
    if (ours) {
        set_state_locked(qp, RD_QP_IDLE);
        close_early_locked(qp, &f);
        qp->connector = NULL;
        os_ptr_store_seqcst(&qp->conn, NULL);
        part_cqs(qp);
        rd_recvq_rewind(qp);
    }
    os_lock_leave(&qp->lock);
    rd_fire_run(&f);
    if (ours) rd_connector_put(c);
}

bool rd_qp_establish(struct rd_qp *qp, uint32_t ord) {
    os_lock_enter(&qp->lock);
    bool ok = qp->state == RD_QP_OPENING;
    if (ok) {
        set_state_locked(qp, RD_QP_ESTABLISHED);
        os_lock_enter(&qp->sq.lock);
        qp->sq.mode = RD_SQ_OPEN;
        qp->sq.ord = ord;
        os_u32_store_relaxed(&qp->sq.opened, 1);
        os_lock_leave(&qp->sq.lock);
    }
    os_lock_leave(&qp->lock);
    return ok;
}

/* ---- the end ---- */

/* Waits until no poll is under way that may still know the connection, or the queue pair. */
static void quiesce_cqs(struct rd_qp *qp) {
    rd_cq_quiesce(qp->receive_cq);
    if (qp->initiator_cq != qp->receive_cq) rd_cq_quiesce(qp->initiator_cq);
}

void rd_qp_drop_conn(struct rd_qp *qp, struct tp_conn *conn) {
    os_lock_enter(&qp->lock);
    if (os_ptr_load_relaxed(&qp->conn) == conn) { /* changes only under this lock */
        os_ptr_store_seqcst(&qp->conn, NULL);
        part_cqs(qp);
    }
    os_lock_leave(&qp->lock);
    quiesce_cqs(qp);
    if (os_u32_load_seqcst(&qp->conn_users) != 0) rd_drain(&qp->conn_users, 0);
    os_lock_enter(&qp->sq.lock);
    uint32_t calls = qp->sq.calls; /* who posts from now on finds no connection */
    os_lock_leave(&qp->sq.lock);
    if (os_u32_load_seqcst(&qp->sq.returned) != calls) rd_drain(&qp->sq.returned, calls);
}

static void end_connection(struct rd_qp *qp) {
    os_lock_enter(&qp->lock);
    struct rd_connector *c = qp->connector;
    if (c) rd_connector_get(c);
    os_lock_leave(&qp->lock);
    if (!c) return;
    rd_connector_qp_ends(c, qp);
    rd_connector_put(c);
}

void rd_qp_break(struct rd_qp *qp) {
    end_connection(qp);
    rd_qp_end(qp, RD_QP_ERROR);
}

static void run_break(struct rd_job *job) {
    struct rd_qp *qp = SN_CONTAINER(job, struct rd_qp, break_job);
    rd_qp_break(qp);
    rd_qp_put(qp);
}

void rd_qp_break_later(struct rd_qp *qp) {
    rd_qp_get(qp);
    /* Queued already: its reference is not the last one. */
    if (!rd_job_post(qp->ad, &qp->break_job)) rd_qp_put(qp);
}

void rd_qp_destroy(struct rd_qp *qp) {
    os_lock_enter(&qp->lock);
    qp->dead = true;
    os_lock_leave(&qp->lock);
    end_connection(qp);
    rd_qp_end(qp, RD_QP_CLOSED);
    rd_windows_unbind_qp(qp->ad, &qp->windows);
    quiesce_cqs(qp);
    rd_qp_put(qp);
}

void rd_qp_job_init(struct rd_qp *qp) {
    rd_job_init(&qp->break_job, run_break);
}
