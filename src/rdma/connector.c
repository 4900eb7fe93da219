/* SPDX-License-Identifier: MIT
 *
 * A connector leads one connection from the attempt, or the request, to its end. Its lock is never
 * held while an operation of the transport runs: `calling` counts threads in such operations, and
 * drop_conn, the one place where a connection is closed and released, waits for them. A failed
 * attempt leaves a dead connection behind that an upcall must not close; the next call that starts
 * something, or the destroy, does it.
 */
#include "rdma/connector.h"
#include <string.h>
#include "os/prim/fault.h"
#include "os/prim/pages.h"
#include "rdma/qp.h"

#define TO(state) (1u << (state))

static void set_state_locked(struct rd_connector *c, enum rd_connector_state to) {
    static const uint16_t legal[RD_CN_STATES] = {
        [RD_CN_NEW] = TO(RD_CN_CONNECTING) | TO(RD_CN_WAITING) | TO(RD_CN_ENDED),
        [RD_CN_CONNECTING] = TO(RD_CN_ANSWERED) | TO(RD_CN_NEW) | TO(RD_CN_ENDED),
        [RD_CN_ANSWERED] = TO(RD_CN_COMPLETING) | TO(RD_CN_ENDED),
        [RD_CN_COMPLETING] = TO(RD_CN_CONNECTED) | TO(RD_CN_BROKEN) | TO(RD_CN_ENDED),
        [RD_CN_WAITING] = TO(RD_CN_REQUESTED) | TO(RD_CN_NEW) | TO(RD_CN_ENDED),
        [RD_CN_REQUESTED] = TO(RD_CN_ACCEPTING) | TO(RD_CN_ENDED),
        [RD_CN_ACCEPTING] = TO(RD_CN_CONNECTED) | TO(RD_CN_ENDED),
        [RD_CN_CONNECTED] = TO(RD_CN_BROKEN) | TO(RD_CN_DISCONNECTING) | TO(RD_CN_ENDED),
        [RD_CN_BROKEN] = TO(RD_CN_DISCONNECTING) | TO(RD_CN_ENDED),
        [RD_CN_DISCONNECTING] = TO(RD_CN_ENDED),
        [RD_CN_ENDED] = TO(RD_CN_ENDED),
    };
    os_lock_assert_held(&c->lock);
    SN_ASSERT(legal[c->state] & TO(to));
    c->state = to;
}

/* ---- create ---- */

sn_status rd_connector_create(struct rd_adapter *ad, struct rd_connector **out) {
    struct rd_connector *c = os_zalloc(sizeof *c);
    if (!c) return SN_E_NOMEM;
    os_ref_init(&c->refs);
    os_lock_init(&c->lock, OS_RANK_CONN);
    os_cond_init(&c->idle);
    sn_list_init(&c->pending);
    rd_adapter_get(ad);
    c->ad = ad;
    *out = c;
    return SN_OK;
}

void rd_connector_get(struct rd_connector *c) {
    os_ref_get(&c->refs);
}

void rd_connector_put(struct rd_connector *c) {
    if (!os_ref_put(&c->refs)) return;
    struct rd_adapter *ad = c->ad;
    os_cond_fini(&c->idle);
    os_lock_fini(&c->lock);
    os_free(c);
    rd_adapter_put(ad);
}

/* ---- calls into the transport ---- */

static void call_begins_locked(struct rd_connector *c) {
    c->calling++;
}

static void call_ends_locked(struct rd_connector *c) {
    c->calling--;
    os_cond_broadcast(&c->idle);
}

enum how { BY_CLOSE, BY_REJECT };

/* Ends and releases the connection, if there is one. After it returns the transport holds nothing
 * and no upcall runs. Several threads may do it at once: all wait until it is done. No lock held.
 * The status is the reject's. */
static sn_status drop_conn(struct rd_connector *c, enum how how, const void *pd, uint32_t pd_len) {
    sn_status st = SN_OK;
    os_lock_enter(&c->lock);
    while (c->closing || c->calling)
        os_cond_wait(&c->idle, &c->lock, UINT64_MAX);
    struct tp_conn *conn = c->conn;
    if (!conn) {
        os_lock_leave(&c->lock);
        return SN_OK;
    }
    c->closing = true;
    struct rd_qp *qp = c->qp;
    os_lock_leave(&c->lock);

    if (how == BY_REJECT) st = conn->ops->reject(conn, pd, pd_len);
    if (how == BY_CLOSE || st != SN_OK) conn->ops->close(conn);
    if (qp) rd_qp_drop_conn(qp, conn);
    conn->ops->release(conn);

    os_lock_enter(&c->lock);
    c->conn = NULL;
    c->closing = false;
    os_cond_broadcast(&c->idle);
    os_lock_leave(&c->lock);
    rd_connector_put(c); /* the connection's; the caller has another */
    return st;
}

/* The queue pair, referenced; NULL if there is none. */
static struct rd_qp *get_qp_locked(struct rd_connector *c) {
    if (c->qp) rd_qp_get(c->qp);
    return c->qp;
}

/* Takes the pending requests of one kind, or of all, in issue order. */
enum { ALL_KINDS = 1000 };
static void fire_pending_locked(struct rd_connector *c, uint64_t kind, sn_status st,
                                struct rd_fire *f) {
    SN_LIST_FOR_SAFE(it, tmp, &c->pending) {
        struct rd_async *a = SN_CONTAINER(it, struct rd_async, link);
        if (kind == ALL_KINDS || a->core == kind) rd_fire_add(f, &c->busy, a, st);
    }
}

static void add_pending_locked(struct rd_connector *c, struct rd_async *a, enum rd_pending kind) {
    sn_list_init(&a->link);
    a->core = kind;
    sn_list_push_back(&c->pending, &a->link);
}

static void fire_one_locked(struct rd_connector *c, struct rd_async *a, sn_status st,
                            struct rd_fire *f) {
    sn_list_init(&a->link);
    rd_fire_add(f, &c->busy, a, st);
}

/* ---- addresses ---- */

sn_status rd_check_local(struct rd_adapter *ad, const struct os_addr *local) {
    if (local->family != 4 && local->family != 6) return SN_E_ADDR_INVALID;
    return os_addr_is_any(local) ? SN_OK : rd_adapter_check_addr(ad, local);
}

/* A second bind is for those whose last attempt failed only. */
static bool may_bind_locked(const struct rd_connector *c) {
    return c->state == RD_CN_NEW && (!c->bound || c->failed_once);
}

sn_status rd_connector_bind(struct rd_connector *c, const struct os_addr *local) {
    os_lock_enter(&c->lock);
    bool ok = may_bind_locked(c);
    os_lock_leave(&c->lock);
    if (!ok) return SN_E_ADDR_BOUND;
    sn_status st = rd_check_local(c->ad, local);
    if (st != SN_OK) return st;
    struct tp_port *port, *old;
    st = tp_port_bind(local, TP_PORT_CONNECT, &port);
    if (st != SN_OK) return st;
    os_lock_enter(&c->lock);
    if (may_bind_locked(c)) {
        old = c->port;
        c->port = port;
        c->bound = true;
        c->any_port = local->port == 0;
        c->failed_once = false;
        c->bound_addr = port->addr;
    } else { /* another thread was faster */
        old = port;
        st = SN_E_ADDR_BOUND;
    }
    os_lock_leave(&c->lock);
    tp_port_free(old);
    return st;
}

/* Where the transport says the connection starts from; family 0 if it does not know. */
static struct os_addr transport_local(struct rd_connector *c) {
    struct tp_conn_info info = { 0 };
    os_lock_enter(&c->lock);
    struct tp_conn *conn = c->closing ? NULL : c->conn;
    if (conn) call_begins_locked(c);
    os_lock_leave(&c->lock);
    if (!conn) return info.local;
    conn->ops->info(conn, &info);
    os_lock_enter(&c->lock);
    call_ends_locked(c);
    os_lock_leave(&c->lock);
    return info.local;
}

sn_status rd_connector_local_addr(struct rd_connector *c, struct os_addr *out) {
    os_lock_enter(&c->lock);
    struct os_addr bound = { 0 }, known = { 0 };
    if (c->bound) bound = c->bound_addr;
    if (c->has_info) known = c->info.local;
    os_lock_leave(&c->lock);
    if (bound.family != 0 && !os_addr_is_any(&bound)) {
        *out = bound;
        return SN_OK;
    }
    if (known.family == 0) known = transport_local(c);
    if (known.family == 0 || os_addr_is_any(&known)) known = bound;
    if (known.family == 0) return SN_E_NOT_CONNECTED;
    *out = known;
    return SN_OK;
}

sn_status rd_connector_peer_addr(struct rd_connector *c, struct os_addr *out) {
    os_lock_enter(&c->lock);
    sn_status st = c->has_peer ? SN_OK : SN_E_NOT_CONNECTED;
    if (st == SN_OK) *out = c->peer_addr;
    os_lock_leave(&c->lock);
    return st;
}

/* ---- what the peer said ---- */

sn_status rd_connector_read_limits(struct rd_connector *c, uint32_t *inbound, uint32_t *outbound) {
    const struct rd_limits *lim = rd_limits_get();
    os_lock_enter(&c->lock);
    sn_status st = c->has_info ? SN_OK : SN_E_NOT_CONNECTED;
    if (st == SN_OK) {
        *inbound = SN_MIN(c->info.peer_ord, lim->max_ird);
        *outbound = SN_MIN(c->info.peer_ird, lim->max_ord);
    }
    os_lock_leave(&c->lock);
    return st;
}

sn_status rd_connector_private_data(struct rd_connector *c, void *buf, uint32_t *len) {
    os_lock_enter(&c->lock);
    sn_status st = c->has_info ? SN_OK : SN_E_NOT_CONNECTED;
    if (st == SN_OK) {
        uint32_t room = *len, have = SN_MIN(c->info.pd_len, TP_PRIVATE_DATA_MAX);
        uint32_t n = SN_MIN(room, have);
        if (n) memcpy(buf, c->info.pd, n);
        *len = have;
        if (room < have) st = SN_E_BUFFER_SMALL;
    }
    os_lock_leave(&c->lock);
    return st;
}

/* ---- connect ---- */

/* What a failed attempt looks like to the user. */
static sn_status connect_status(sn_status st) {
    switch (st) {
    case SN_E_PEER_GONE: /* somebody was there and did not want to */
    case SN_E_EOF:
    case SN_E_WIRE:
    case SN_E_ABORTED:
        return SN_E_REFUSED;
    default:
        return st;
    }
}

/* The attempt came to its end. Upcall: EVENT lock held; else inside connect's call. */
static void attempt_ended(struct rd_connector *c, sn_status st, struct rd_fire *f) {
    struct tp_conn_info info = { 0 };
    bool said = st == SN_OK || st == SN_E_REFUSED;
    os_lock_enter(&c->lock);
    if (c->starting) {
        c->early_reply = true;
        c->early_status = st;
        os_lock_leave(&c->lock);
        return;
    }
    struct tp_conn *conn = c->state == RD_CN_CONNECTING ? c->conn : NULL;
    os_lock_leave(&c->lock);
    if (conn && said) conn->ops->info(conn, &info); /* not released before this upcall is over */

    os_lock_enter(&c->lock);
    if (c->state == RD_CN_CONNECTING) {
        if (said) {
            c->info = info;
            c->has_info = true;
        }
        if (st == SN_OK) {
            set_state_locked(c, RD_CN_ANSWERED);
        } else {
            set_state_locked(c, RD_CN_NEW);
            c->failed_once = true;
            rd_qp_detach(c->qp, c);
            rd_count_any(&c->ad->counters.connects_failed, 1);
        }
        fire_pending_locked(c, RD_PENDING_CONNECT, connect_status(st), f);
    }
    os_lock_leave(&c->lock);
}

static void on_reply(void *owner, sn_status st) {
    struct rd_fire f;
    rd_fire_init(&f);
    attempt_ended(owner, st, &f);
    rd_fire_run(&f);
}

/* Binds to the connector's address again. Where its port was our choice it is another one now,
 * since the system keeps the old pair of addresses busy for a while. */
static sn_status bind_again(struct rd_connector *c, struct tp_port **out) {
    os_lock_enter(&c->lock);
    struct os_addr addr = c->bound_addr;
    if (c->any_port) addr.port = 0;
    os_lock_leave(&c->lock);
    sn_status st = tp_port_bind(&addr, TP_PORT_CONNECT, out);
    if (st != SN_OK) return st;
    os_lock_enter(&c->lock);
    c->bound_addr = (*out)->addr;
    os_lock_leave(&c->lock);
    return SN_OK;
}

/* The port for the next attempt: the one reserved by bind, or one for the same address. */
static sn_status take_port(struct rd_connector *c, struct tp_port **out) {
    os_lock_enter(&c->lock);
    struct tp_port *port = c->port;
    bool again = !port && c->bound;
    c->port = NULL;
    os_lock_leave(&c->lock);
    *out = port;
    return again ? bind_again(c, out) : SN_OK;
}

/* Remains of somebody's connection block the port we chose: another one. False if there is none,
 * or if the client named the port. */
static bool take_another_port(struct rd_connector *c, struct tp_port **out) {
    os_lock_enter(&c->lock);
    bool may = c->bound && c->any_port;
    os_lock_leave(&c->lock);
    return may && bind_again(c, out) == SN_OK;
}

static sn_status connect_from(struct rd_connector *c, struct tp_port *port,
                              const struct os_addr *peer, const struct tp_setup *setup,
                              struct tp_conn **conn) {
    sn_status st = SN_E_UNSUPPORTED;
    for (size_t i = 0; i < rd_transport_count && st == SN_E_UNSUPPORTED; i++)
        st = rd_transports[i]->connect(c->ad->eng, port, peer, setup, conn);
    if (st == SN_E_UNSUPPORTED) tp_port_free(port);
    return st;
}

static sn_status start_attempt(struct rd_connector *c, const struct os_addr *peer,
                               const struct tp_setup *setup, struct tp_conn **conn) {
    struct tp_port *port = NULL;
    sn_status st = take_port(c, &port);
    if (st != SN_OK) return st;
    st = connect_from(c, port, peer, setup, conn);
    if (st == SN_E_ADDR_EXISTS && take_another_port(c, &port))
        st = connect_from(c, port, peer, setup, conn);
    return st;
}

static sn_status begin_connect_locked(struct rd_connector *c, struct rd_qp *qp,
                                      const struct os_addr *peer, uint32_t ird, uint32_t ord,
                                      struct rd_qp **earlier) {
    const struct rd_limits *lim = rd_limits_get();
    if (c->state != RD_CN_NEW || c->conn || c->calling || c->dead) return SN_E_CONNECTED;
    if (c->bound && c->bound_addr.family != peer->family) return SN_E_NET_NAME;
    sn_status st = rd_qp_attach(qp, c);
    if (st != SN_OK) return st;
    rd_qp_get(qp);
    *earlier = c->qp; /* of an attempt that failed */
    c->qp = qp;
    c->ird = SN_MIN(ird, lim->max_ird);
    c->ord = SN_MIN(ord, lim->max_ord);
    c->peer_addr = *peer;
    c->has_peer = true;
    c->has_info = false;
    c->aborted = false;
    c->starting = true;
    c->early_reply = false;
    set_state_locked(c, RD_CN_CONNECTING);
    call_begins_locked(c);
    return SN_OK;
}

/* Starts the attempt that begin_connect_locked has entered, and deals with one that has ended
 * already. Inside a call. */
static void finish_connect(struct rd_connector *c, const struct os_addr *peer,
                           const struct tp_setup *setup) {
    struct rd_fire f;
    rd_fire_init(&f);
    struct tp_conn *conn = NULL;
    rd_connector_get(c); /* the connection's */
    sn_status st = start_attempt(c, peer, setup, &conn);
    os_lock_enter(&c->lock);
    c->starting = false;
    if (st == SN_OK) c->conn = conn;
    bool ended = st != SN_OK || c->early_reply;
    sn_status end = st != SN_OK ? st : c->early_status;
    os_lock_leave(&c->lock);
    if (ended) attempt_ended(c, end, &f);

    os_lock_enter(&c->lock);
    call_ends_locked(c);
    os_lock_leave(&c->lock);
    rd_fire_run(&f);
    if (st != SN_OK) rd_connector_put(c); /* there is no connection to be dropped later */
}

sn_status rd_connector_connect(struct rd_connector *c, struct rd_qp *qp, const struct os_addr *peer,
                               uint32_t ird, uint32_t ord, const void *pd, uint32_t pd_len,
                               struct rd_async *a) {
    if (pd_len > rd_limits_get()->max_caller_data_bytes) return SN_E_BUFFER_SIZE;
    if (qp->ad != c->ad) return SN_E_PARAM;
    if ((peer->family != 4 && peer->family != 6) || os_addr_is_any(peer)) return SN_E_NET_NAME;
    os_lock_enter(&c->lock);
    bool leftover = c->state == RD_CN_NEW && c->conn;
    os_lock_leave(&c->lock);
    if (leftover) drop_conn(c, BY_CLOSE, NULL, 0);

    struct rd_qp *earlier = NULL;
    os_lock_enter(&c->lock);
    sn_status st = begin_connect_locked(c, qp, peer, ird, ord, &earlier);
    if (st == SN_OK) add_pending_locked(c, a, RD_PENDING_CONNECT);
    struct tp_setup setup = { .ird = c->ird,
                              .ord = c->ord,
                              .pd = pd,
                              .pd_len = pd_len,
                              .up = &rd_upcalls,
                              .owner = c,
                              .qp = qp,
                              .shared_receives = qp->srq != NULL,
                              .share = &c->ad->table.share,
                              .qp_id = qp->id };
    os_lock_leave(&c->lock);
    if (earlier) rd_qp_put(earlier);
    if (st != SN_OK) return st;
    finish_connect(c, peer, &setup);
    return SN_PENDING;
}

/* ---- complete ---- */

static void complete_failed(struct rd_connector *c, struct rd_qp *qp) {
    drop_conn(c, BY_CLOSE, NULL, 0);
    rd_qp_end(qp, RD_QP_ERROR);
}

sn_status rd_connector_complete(struct rd_connector *c, struct rd_async *a) {
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&c->lock);
    if (c->state != RD_CN_ANSWERED) {
        os_lock_leave(&c->lock);
        return SN_E_NOT_CONNECTED;
    }
    set_state_locked(c, RD_CN_COMPLETING);
    call_begins_locked(c);
    struct rd_qp *qp = get_qp_locked(c);
    struct tp_conn *conn = c->conn;
    uint32_t ird = SN_MIN(c->info.peer_ord, c->ird), ord = SN_MIN(c->info.peer_ird, c->ord);
    sn_status st = c->aborted ? SN_E_ABORTED : SN_OK;
    os_lock_leave(&c->lock);

    if (st == SN_OK && !rd_qp_opening(qp, conn, ord)) st = SN_E_CANCELED; /* it is gone */
    if (st == SN_OK) st = conn->ops->complete(conn, ird, ord);
    if (st == SN_OK) rd_qp_establish(qp, ord);

    os_lock_enter(&c->lock);
    call_ends_locked(c);
    if (c->state == RD_CN_COMPLETING) {
        c->was_connected = st == SN_OK;
        set_state_locked(c, st == SN_OK ? RD_CN_CONNECTED : RD_CN_ENDED);
    } else if (c->state == RD_CN_ENDED) { /* destroyed meanwhile */
        st = SN_E_CANCELED;
    }
    if (st == SN_OK) rd_count_any(&c->ad->counters.connects, 1);
    fire_one_locked(c, a, st, &f);
    os_lock_leave(&c->lock);
    if (st != SN_OK) complete_failed(c, qp);
    rd_fire_run(&f);
    rd_qp_put(qp);
    return SN_PENDING;
}

/* ---- accept and reject ---- */

static sn_status begin_accept_locked(struct rd_connector *c, struct rd_qp *qp, uint32_t ird,
                                     uint32_t ord) {
    const struct rd_limits *lim = rd_limits_get();
    switch (c->state) {
    case RD_CN_REQUESTED:
        break;
    case RD_CN_NEW:
    case RD_CN_WAITING:
    case RD_CN_ENDED:
        return SN_E_NOT_CONNECTED;
    default:
        return SN_E_CONNECTED;
    }
    sn_status st = rd_qp_attach(qp, c);
    if (st != SN_OK) return st;
    rd_qp_get(qp);
    c->qp = qp;
    c->ird = SN_MIN(SN_MIN(ird, lim->max_ird), c->info.peer_ord);
    c->ord = SN_MIN(SN_MIN(ord, lim->max_ord), c->info.peer_ird);
    set_state_locked(c, RD_CN_ACCEPTING);
    call_begins_locked(c);
    return SN_OK;
}

sn_status rd_connector_accept(struct rd_connector *c, struct rd_qp *qp, uint32_t ird, uint32_t ord,
                              const void *pd, uint32_t pd_len, struct rd_async *a) {
    struct rd_fire f;
    rd_fire_init(&f);
    if (pd_len > rd_limits_get()->max_callee_data_bytes) return SN_E_BUFFER_SIZE;
    if (qp->ad != c->ad) return SN_E_PARAM;
    os_lock_enter(&c->lock);
    sn_status st = begin_accept_locked(c, qp, ird, ord);
    if (st == SN_OK) add_pending_locked(c, a, RD_PENDING_ACCEPT);
    bool aborted = c->aborted;
    struct tp_conn *conn = c->conn;
    struct tp_setup setup = { .ird = c->ird,
                              .ord = c->ord,
                              .pd = pd,
                              .pd_len = pd_len,
                              .up = &rd_upcalls,
                              .owner = c,
                              .qp = qp,
                              .shared_receives = qp->srq != NULL,
                              .share = &c->ad->table.share,
                              .qp_id = qp->id };
    os_lock_leave(&c->lock);
    if (st != SN_OK) return st;

    if (aborted)
        st = SN_E_ABORTED;
    else if (!rd_qp_opening(qp, conn, setup.ord))
        st = SN_E_CANCELED; /* the queue pair is gone */
    else
        st = conn->ops->accept(conn, &setup);
    os_lock_enter(&c->lock);
    call_ends_locked(c);
    bool failed = st != SN_OK && c->state == RD_CN_ACCEPTING;
    if (failed) {
        set_state_locked(c, RD_CN_ENDED);
        fire_pending_locked(c, RD_PENDING_ACCEPT, st, &f);
    }
    os_lock_leave(&c->lock);
    if (failed) {
        rd_qp_get(qp);
        drop_conn(c, BY_CLOSE, NULL, 0);
        rd_qp_detach(qp, c);
        rd_qp_put(qp);
    }
    rd_fire_run(&f);
    return SN_PENDING;
}

static void on_established(void *owner, sn_status st) {
    struct rd_connector *c = owner;
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&c->lock);
    if (c->state == RD_CN_ACCEPTING) {
        if (st == SN_OK) {
            set_state_locked(c, RD_CN_CONNECTED);
            c->was_connected = true;
            rd_qp_establish(c->qp, c->ord);
            rd_count_any(&c->ad->counters.accepts, 1);
        } else {
            set_state_locked(c, RD_CN_ENDED);
            rd_qp_detach(c->qp, c);
        }
        fire_pending_locked(c, RD_PENDING_ACCEPT, st, &f);
    }
    os_lock_leave(&c->lock);
    rd_fire_run(&f);
}

sn_status rd_connector_reject(struct rd_connector *c, const void *pd, uint32_t pd_len) {
    if (pd_len > rd_limits_get()->max_callee_data_bytes) return SN_E_BUFFER_SIZE;
    os_lock_enter(&c->lock);
    bool ok = c->state == RD_CN_REQUESTED || c->state == RD_CN_ANSWERED;
    if (ok) set_state_locked(c, RD_CN_ENDED);
    bool aborted = c->aborted;
    struct rd_qp *qp = ok ? get_qp_locked(c) : NULL;
    os_lock_leave(&c->lock);
    if (!ok) return SN_E_NOT_CONNECTED;
    sn_status st = drop_conn(c, aborted ? BY_CLOSE : BY_REJECT, pd, pd_len);
    if (qp) {
        rd_qp_detach(qp, c);
        rd_qp_put(qp);
    }
    return aborted || st != SN_OK ? SN_E_ABORTED : SN_OK;
}

static void on_abandoned(void *owner) {
    struct rd_connector *c = owner;
    os_lock_enter(&c->lock);
    if (c->state == RD_CN_REQUESTED) {
        c->aborted = true;
        rd_count_any(&c->ad->counters.requests_abandoned, 1);
    }
    os_lock_leave(&c->lock);
}

/* ---- the end ---- */

static void on_disconnected(void *owner, sn_status st) {
    struct rd_connector *c = owner;
    struct rd_fire f;
    rd_fire_init(&f);
    struct rd_qp *qp = NULL;
    os_lock_enter(&c->lock);
    if (c->state == RD_CN_CONNECTED || c->state == RD_CN_COMPLETING) {
        set_state_locked(c, RD_CN_BROKEN);
        c->was_connected = true;
        qp = c->qp; /* stays until drop_conn, which cannot finish before this upcall */
        fire_pending_locked(c, RD_PENDING_NOTIFY, SN_OK, &f);
        rd_count_any(&c->ad->counters.disconnects_peer, 1);
    } else if (c->state == RD_CN_ANSWERED) {
        c->aborted = true;
    }
    os_lock_leave(&c->lock);
    bool hold = qp && st == SN_OK && qp->hold_on_disconnect;
    if (hold) rd_qp_hold(qp); /* whoever is told finds it so */
    rd_fire_run(&f);
    if (qp && !hold) rd_qp_end(qp, RD_QP_ERROR);
}

sn_status rd_connector_notify_disconnect(struct rd_connector *c, struct rd_async *a) {
    struct rd_fire f;
    rd_fire_init(&f);
    sn_status st = SN_PENDING;
    os_lock_enter(&c->lock);
    if (c->state == RD_CN_CONNECTED && !c->dead)
        add_pending_locked(c, a, RD_PENDING_NOTIFY);
    else if (c->was_connected)
        fire_one_locked(c, a, SN_OK, &f);
    else
        st = SN_E_NOT_CONNECTED;
    os_lock_leave(&c->lock);
    rd_fire_run(&f);
    return st;
}

sn_status rd_connector_disconnect(struct rd_connector *c, struct rd_async *a) {
    struct rd_fire notifies, own;
    rd_fire_init(&notifies);
    rd_fire_init(&own);
    os_lock_enter(&c->lock);
    bool ok = c->state == RD_CN_CONNECTED || c->state == RD_CN_BROKEN;
    if (ok) {
        if (c->state == RD_CN_CONNECTED) rd_count_any(&c->ad->counters.disconnects_local, 1);
        set_state_locked(c, RD_CN_DISCONNECTING);
        fire_pending_locked(c, RD_PENDING_NOTIFY, SN_OK, &notifies);
        fire_one_locked(c, a, SN_OK, &own);
    }
    struct rd_qp *qp = ok ? get_qp_locked(c) : NULL;
    os_lock_leave(&c->lock);
    if (!ok) return SN_E_NOT_CONNECTED;
    drop_conn(c, BY_CLOSE, NULL, 0);
    rd_fire_run(&notifies);
    if (qp) {
        rd_qp_end(qp, RD_QP_CLOSED);
        rd_qp_put(qp);
    }
    os_lock_enter(&c->lock);
    set_state_locked(c, RD_CN_ENDED);
    os_lock_leave(&c->lock);
    rd_fire_run(&own);
    return SN_PENDING;
}

void rd_connector_qp_ends(struct rd_connector *c, struct rd_qp *qp) {
    struct rd_fire f;
    rd_fire_init(&f);
    enum how how = BY_CLOSE;
    os_lock_enter(&c->lock);
    enum rd_connector_state state = c->qp == qp ? c->state : RD_CN_ENDED;
    switch (state) {
    case RD_CN_CONNECTED:
    case RD_CN_COMPLETING:
        set_state_locked(c, RD_CN_BROKEN);
        c->was_connected = true;
        fire_pending_locked(c, RD_PENDING_NOTIFY, SN_OK, &f);
        rd_count_any(&c->ad->counters.disconnects_local, 1);
        break;
    case RD_CN_CONNECTING:
        set_state_locked(c, RD_CN_NEW);
        c->failed_once = true;
        fire_pending_locked(c, RD_PENDING_CONNECT, SN_E_CANCELED, &f);
        break;
    case RD_CN_ACCEPTING:
        set_state_locked(c, RD_CN_ENDED);
        fire_pending_locked(c, RD_PENDING_ACCEPT, SN_E_CANCELED, &f);
        break;
    case RD_CN_ANSWERED:
        set_state_locked(c, RD_CN_ENDED);
        how = BY_REJECT;
        break;
    default:
        break;
    }
    os_lock_leave(&c->lock);
    drop_conn(c, how, NULL, 0);
    rd_fire_run(&f);
}

void rd_connector_cancel(struct rd_connector *c) {
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&c->lock);
    bool attempt = c->state == RD_CN_CONNECTING || c->state == RD_CN_ACCEPTING;
    if (attempt) {
        set_state_locked(c, c->state == RD_CN_CONNECTING ? RD_CN_NEW : RD_CN_ENDED);
        c->failed_once = true;
    }
    fire_pending_locked(c, ALL_KINDS, SN_E_CANCELED, &f);
    struct rd_qp *qp = attempt ? get_qp_locked(c) : NULL;
    os_lock_leave(&c->lock);
    if (attempt) drop_conn(c, BY_CLOSE, NULL, 0);
    if (qp) {
        rd_qp_detach(qp, c);
        rd_qp_put(qp);
    }
    rd_fire_run(&f);
}

void rd_connector_destroy(struct rd_connector *c) {
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&c->lock);
    c->dead = true;
    enum rd_connector_state state = c->state;
    set_state_locked(c, RD_CN_ENDED);
    fire_pending_locked(c, ALL_KINDS, SN_E_CANCELED, &f);
    struct rd_qp *qp = get_qp_locked(c);
    struct tp_port *port = c->port;
    c->port = NULL;
    bool unanswered = state == RD_CN_REQUESTED || state == RD_CN_ANSWERED;
    os_lock_leave(&c->lock);
    drop_conn(c, unanswered ? BY_REJECT : BY_CLOSE, NULL, 0);
    rd_fire_run(&f);
    if (qp) {
        if (state == RD_CN_CONNECTED || state == RD_CN_COMPLETING || state == RD_CN_BROKEN)
            rd_qp_end(qp, RD_QP_CLOSED);
        else
            rd_qp_detach(qp, c);
        rd_qp_put(qp);
        os_lock_enter(&c->lock);
        struct rd_qp *own = c->qp;
        c->qp = NULL;
        os_lock_leave(&c->lock);
        if (own) rd_qp_put(own);
    }
    tp_port_free(port);
    rd_busy_wait(&c->busy);
    rd_connector_put(c);
}

/* ---- for listeners ---- */

sn_status rd_connector_wait(struct rd_connector *c) {
    os_lock_enter(&c->lock);
    bool ok = c->state == RD_CN_NEW && !c->dead && !c->conn;
    if (ok) set_state_locked(c, RD_CN_WAITING);
    os_lock_leave(&c->lock);
    return ok ? SN_OK : SN_E_PARAM;
}

void rd_connector_wait_over(struct rd_connector *c) {
    os_lock_enter(&c->lock);
    if (c->state == RD_CN_WAITING) set_state_locked(c, RD_CN_NEW);
    os_lock_leave(&c->lock);
}

bool rd_connector_take_request(struct rd_connector *c, struct tp_conn *conn) {
    struct tp_conn_info info = { 0 };
    conn->ops->info(conn, &info);
    os_lock_enter(&c->lock);
    bool ok = c->state == RD_CN_WAITING;
    if (ok) {
        set_state_locked(c, RD_CN_REQUESTED);
        c->conn = conn;
        c->info = info;
        c->has_info = true;
        c->peer_addr = info.peer;
        c->has_peer = true;
        rd_connector_get(c); /* the connection's */
        call_begins_locked(c);
    }
    os_lock_leave(&c->lock);
    if (!ok) return false;
    tp_conn_set_owner(conn, &rd_upcalls, c);
    os_lock_enter(&c->lock);
    call_ends_locked(c);
    os_lock_leave(&c->lock);
    return true;
}

/* ---- the upcall table ---- */

/* The peer asked for what it may not have: the first time is kept for the front end. */
SN_COLD static sn_status refused(struct rd_qp *qp, struct rd_refusal r) {
    uint32_t none = 0;
    if (os_u32_cas_acq_rel(&qp->refused, &none, 1)) {
        qp->refusal = r;
        os_u32_store_release(&qp->refused, 2);
    }
    return r.why;
}

bool rd_qp_refusal(const struct rd_qp *qp, struct rd_refusal *out) {
    if (os_u32_load_acquire(&qp->refused) != 2) return false;
    *out = qp->refusal;
    return true;
}

SN_HOT static sn_status access_memory(void *ctx, uint32_t token, uint64_t addr, size_t len,
                                      enum tp_right right, struct tp_access *out) {
    struct rd_qp *qp = ctx;
    sn_status st = rd_table_access(&qp->ad->table, qp->id, token, addr, len, right, out);
    if (SN_UNLIKELY(st == SN_OK && ((struct rd_slot *)out->hold)->pd != qp->pd)) {
        rd_table_access_end(out);
        rd_count_any(&qp->ad->counters.refused_pd, 1);
        st = SN_E_PD;
    }
    if (SN_UNLIKELY(st != SN_OK) && (right == TP_REMOTE_READ || right == TP_REMOTE_WRITE))
        return refused(qp, (struct rd_refusal){ .token = token,
                                                .addr = addr,
                                                .len = len,
                                                .what = right == TP_REMOTE_READ ? RD_REFUSED_READ
                                                                                : RD_REFUSED_WRITE,
                                                .why = st });
    return st;
}

SN_HOT static sn_status copy_from_memory(void *ctx, uint32_t token, uint64_t addr, size_t len,
                                         void *dst) {
    struct rd_qp *qp = ctx;
    if (SN_LIKELY(
            rd_table_copy_from(&qp->ad->table, &qp->sq.source, qp->pd, token, addr, len, dst)))
        return SN_OK;
    for (uint8_t *to = dst; len != 0;) {
        struct tp_access acc;
        sn_status st = access_memory(qp, token, addr, len, TP_LOCAL_READ, &acc);
        if (st != SN_OK) return st;
        size_t n = SN_MIN(len, acc.len);
        bool good = os_guarded_copy(to, acc.ptr, n);
        rd_table_access_end(&acc);
        if (!good) return SN_E_FAULT;
        to += n;
        addr += n;
        len -= n;
    }
    return SN_OK;
}

SN_HOT static bool copy_to_memory(void *ctx, uint32_t token, uint64_t addr, size_t len,
                                  const void *src) {
    struct rd_qp *qp = ctx;
    return rd_table_copy_to(&qp->ad->table, &qp->rq.target, qp->pd, token, addr, len, src);
}

static sn_status remote_invalidate(void *ctx, uint32_t token) {
    struct rd_qp *qp = ctx;
    sn_status st = rd_window_invalidate_token(qp->ad, qp->id, token);
    if (st == SN_E_TOKEN) st = rd_fastreg_invalidate_remote(qp->ad, qp->pd, token);
    if (st == SN_OK) return SN_OK;
    return refused(qp,
                   (struct rd_refusal){ .token = token, .what = RD_REFUSED_INVALIDATE, .why = st });
}

const struct tp_upcalls rd_upcalls = {
    .sq_peek = rd_sendq_peek,
    .sq_advance = rd_sendq_advance,
    .sq_pass = rd_sendq_pass,
    .request_done = rd_sendq_done,
    .requests_done = rd_sendq_done_many,
    .held_back = rd_sendq_held_back,
    .take_receive = rd_recvq_take,
    .receive_done = rd_recvq_done,
    .receives_done = rd_recvq_done_many,
    .access = access_memory,
    .access_end = rd_table_access_end,
    .copy_from = copy_from_memory,
    .copy_to = copy_to_memory,
    .remote_invalidate = remote_invalidate,
    .on_reply = on_reply,
    .on_established = on_established,
    .on_abandoned = on_abandoned,
    .on_disconnected = on_disconnected,
};
