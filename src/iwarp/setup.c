/* SPDX-License-Identifier: MIT
 *
 * Start-up: TCP, the MPA request and reply, the agreement on CRC, markers, read depths and the
 * ready-to-receive frame. What is agreed how is in docs/wire.md.
 */
#include "iwarp/conn.h"
#include <string.h>
#include "base/log.h"
#include "os/prim/fault.h"
#include "transport/port.h"

/* ---- sending a start-up frame ---- */

static sn_status send_start(struct iw_conn *c, const struct mpa_start *s) {
    uint8_t buf[MPA_START_MAX];
    size_t len, put = 0;
    sn_status st = mpa_start_pack(s, buf, sizeof buf, &len);
    if (st != SN_OK) return st;
    struct os_iov iov = { buf, len };
    st = iw_conn_writev(c, &iov, 1, &put); /* one write: some peers want one segment */
    if (st == SN_E_AGAIN) st = SN_OK;
    if (st != SN_OK) return st;
    return iw_tx_raw(c, buf + put, len - put) ? SN_OK : SN_E_NOMEM;
}

static sn_status send_request(struct iw_conn *c) {
    struct mpa_start s = {
        .rev = c->rev, .crc = c->crc_asked, .pd = c->out_pd, .pd_len = (uint16_t)c->out_pd_len
    };
    if (c->rev == 2) {
        s.enhanced = true;
        s.enh.p2p = true;
        s.enh.rtr_write = true;
        s.enh.rtr_read = true; /* even with an ORD of 0: some adapters do nothing else */
        s.enh.ird = (uint16_t)SN_MIN(c->want_ird, MPA_DEPTH_MASK - 1);
        s.enh.ord = (uint16_t)SN_MIN(c->want_ord, MPA_DEPTH_MASK - 1);
    }
    return send_start(c, &s);
}

/* ---- active side ---- */

static bool keep_pd(struct iw_conn *c, const struct mpa_start *s) {
    os_free(c->pd);
    c->pd = NULL;
    c->pd_len = 0;
    if (s->pd_len == 0) return true;
    c->pd = os_zalloc(s->pd_len);
    if (!c->pd) return false;
    memcpy(c->pd, s->pd, s->pd_len);
    c->pd_len = s->pd_len;
    return true;
}

static uint32_t depth_of(uint16_t field) {
    return field == MPA_DEPTH_ANY ? IW_DEPTH_CAP : field;
}

static bool dial_again(const struct iw_conn *c, const struct os_addr *from, os_sock *out) {
    if (os_sock_tcp(c->remote.family, out) != SN_OK) return false;
    sn_status st = from ? os_sock_bind(*out, from, OS_BIND_SHARED) : SN_OK;
    if (st == SN_OK) st = os_sock_connect(*out, &c->remote);
    if (st == SN_OK || st == SN_PENDING) return true;
    os_sock_close(*out, false);
    return false;
}

/* Starts over with revision 1 on a new TCP connection, once. From the same port if it can be had:
 * the old socket still has it, which some systems notice at bind and others at connect. */
static bool retry_rev1(struct iw_conn *c) {
    if (c->rev != 2 || c->retried) return false;
    os_sock s;
    if (!(c->local.family && dial_again(c, &c->local, &s)) && !dial_again(c, NULL, &s))
        return false;
    os_sock old = c->watch.sock;
    tp_watch_remove(&c->watch);
    os_sock_close(old, false);
    c->watch.sock = s;
    c->watch.events = OS_POLL_OUT;
    c->rev = 1;
    c->retried = true;
    c->start_len = 0;
    c->tx.raw_len = c->tx.raw_off = 0;
    os_u32_store_release(&c->state, IW_CONNECTING);
    if (tp_watch_add(c->eng, &c->watch) != SN_OK) return false;
    SN_LOG(SN_LOG_INFO, "iwarp: no answer to an MPA revision 2 request, trying revision 1");
    iw_arm(c, &c->timer, IW_CONNECT_NS);
    return true;
}

static void connected(struct iw_conn *c) {
    sn_status st = os_sock_local(c->watch.sock, &c->local);
    if (c->capture && st == SN_OK) iw_capture_start(c->capture, &c->local, &c->remote);
    if (st == SN_OK) st = send_request(c);
    if (st != SN_OK) {
        iw_fail(c, SN_E_REFUSED, NULL, NULL);
        return;
    }
    iw_set_state(c, IW_WAIT_REPLY);
    iw_arm(c, &c->timer, c->cfg.answer_ns);
}

static void refuse_reply(struct iw_conn *c, enum rdmap_cause cause) {
    struct rdmap_fault f = rdmap_fault_make(cause);
    uint8_t head[RDMAP_HEAD_MAX];
    SN_LOG(SN_LOG_INFO, "iwarp: reply not acceptable: %s", rdmap_fault_text(cause));
    (void)iw_tx_raw_fpdu(c, head, terminate_pack(head, &f, NULL));
    iw_fail(c, SN_E_REFUSED, NULL, NULL);
}

static void take_reply(struct iw_conn *c, const struct mpa_start *s) {
    if (!keep_pd(c, s)) {
        iw_fail(c, SN_E_NOMEM, NULL, NULL);
        return;
    }
    c->peer_ird = s->enhanced ? depth_of(s->enh.ird) : IW_DEPTH_CAP;
    c->peer_ord = s->enhanced ? depth_of(s->enh.ord) : IW_DEPTH_CAP;
    if (s->reject) {
        iw_fail(c, SN_E_REFUSED, NULL, NULL);
        return;
    }
    if (s->rev != c->rev || s->enhanced != (c->rev == 2)) {
        if (!retry_rev1(c)) iw_fail(c, SN_E_REFUSED, NULL, NULL);
        return;
    }
    c->crc = c->crc_asked || s->crc;
    c->tx_markers = s->markers;
    c->enhanced = s->enhanced;
    if (s->enhanced) {
        c->p2p = s->enh.p2p;
        c->rtr_write = s->enh.rtr_write;
        c->rtr_read = s->enh.rtr_read;
        if (!c->p2p || (!c->rtr_write && !c->rtr_read)) {
            refuse_reply(c, RDMAP_FAULT_MPA_RTR);
            return;
        }
        if (s->enh.ord != MPA_DEPTH_ANY && s->enh.ord > SN_MAX(c->want_ird, IW_DEPTH_CAP)) {
            refuse_reply(c, RDMAP_FAULT_MPA_IRD);
            return;
        }
    }
    tp_events_add(&c->events, TP_EV_REPLY, SN_OK);
    iw_disarm(c, &c->timer);
    os_free(c->start);
    c->start = NULL;
    os_free(c->out_pd);
    c->out_pd = NULL;
    iw_set_state(c, IW_ANSWERED);
}

sn_status iw_connect(struct tp_engine *eng, struct tp_port *port, const struct os_addr *peer,
                     const struct tp_setup *setup, struct tp_conn **out) {
    struct iw_conn *c = iw_conn_create(eng, true);
    sn_status st = SN_OK;
    if (!c) {
        tp_port_free(port);
        return SN_E_NOMEM;
    }
    if (port) {
        c->local = port->addr;
        c->watch.sock = tp_port_take_sock(port);
        tp_port_free(port);
    } else {
        st = os_sock_tcp(peer->family, &c->watch.sock);
    }
    c->remote = *peer;
    c->up = setup->up;
    tp_events_set_owner_locked(&c->events, setup->up, setup->owner);
    c->qp = setup->qp;
    c->patient = setup->shared_receives;
    c->cfg = iw_config_get();
    c->rev = c->cfg.rev;
    c->crc_asked = c->cfg.crc;
    c->want_ird = setup->ird;
    c->want_ord = setup->ord;
    c->start = os_zalloc(MPA_START_MAX);
    if (setup->pd_len) c->out_pd = os_zalloc(setup->pd_len);
    if (st == SN_OK && (!c->start || (setup->pd_len && !c->out_pd))) st = SN_E_NOMEM;
    if (st == SN_OK) {
        if (setup->pd_len) memcpy(c->out_pd, setup->pd, setup->pd_len);
        c->out_pd_len = setup->pd_len;
        st = os_sock_connect(c->watch.sock, peer);
    }
    if (st == SN_PENDING || st == SN_OK) {
        c->watch.events = OS_POLL_OUT;
        /* From here on the engine may already be at it: the locks keep it out until we are done. */
        os_lock_enter(&c->rx_lock);
        os_lock_enter(&c->tx_lock);
        st = tp_watch_add(eng, &c->watch);
        if (st == SN_OK) iw_arm(c, &c->timer, IW_CONNECT_NS);
        os_lock_leave(&c->tx_lock);
        os_lock_leave(&c->rx_lock);
    }
    if (st != SN_OK) {
        tp_watch_put(&c->watch);
        return st;
    }
    *out = &c->base;
    return SN_OK;
}

/* The initiator's first frame. */
static bool send_rtr(struct iw_conn *c) {
    uint8_t head[RDMAP_HEAD_MAX];
    if (!c->p2p) return true;
    if (c->rtr_write)
        return iw_tx_raw_fpdu(c, head,
                              rdmap_write_pack(head, true, IW_MARK_STAG, IW_MARK_VERSION, 0));
    /* STags that are not 0: some adapters refuse 0 even where nothing is accessed. */
    struct rdmap_read_request rr = { .sink_stag = 1, .src_stag = 1 };
    c->rtr_read_request.op = TP_OP_READ;
    iw_fifo_push(&c->tx.reads, &c->rtr_read_request);
    c->tx.reads_out++;
    return iw_tx_raw_fpdu(c, head, rdmap_read_request_pack(head, c->tx.read_msn++, &rr));
}

sn_status iw_complete(struct tp_conn *tc, uint32_t ird, uint32_t ord) {
    struct iw_conn *c = iw_conn_of(tc);
    sn_status st = SN_E_ABORTED;
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    if (iw_state(c) == IW_ANSWERED) {
        c->ird = SN_MIN(SN_MAX(ird, c->enhanced ? c->peer_ord : ird), IW_DEPTH_CAP);
        c->ord = SN_MIN(SN_MIN(ord, c->peer_ird), IW_DEPTH_CAP);
        c->tx.mulpdu = mpa_mulpdu(os_sock_mss(c->watch.sock), c->tx_markers);
        bool sent = send_rtr(c);
        iw_set_state(c, IW_OPEN);
        /* A SoftND responder always chooses the Write alone. */
        if (c->p2p && c->rtr_write && !c->rtr_read) {
            c->unknown_until_ns = os_now_ns() + IW_UNKNOWN_NS;
            os_u32_store_relaxed(&c->report_armed, 1);
            iw_arm(c, &c->report_timer, IW_UNKNOWN_NS);
        } else {
            iw_peer_decided(c, IW_PEER_FOREIGN);
        }
        iw_tx_progress(c);
        st = sent && !c->tx.failed ? SN_OK : SN_E_ABORTED;
        iw_settle_locked(c);
        if (st != SN_OK) tp_events_forget(&c->events);
    }
    os_lock_leave(&c->tx_lock);
    if (st == SN_OK && c->rx.held_len) { /* what came early, and what it asks for */
        iw_rx_progress(c);
        os_lock_enter(&c->tx_lock);
        iw_tx_progress(c);
        iw_settle_locked(c);
        os_lock_leave(&c->tx_lock);
    }
    os_lock_leave(&c->rx_lock);
    tp_events_deliver(&c->events);
    return st;
}

/* ---- passive side ---- */

static void take_request(struct iw_conn *c, const struct mpa_start *s) {
    if (!keep_pd(c, s)) {
        iw_fail(c, SN_E_NOMEM, NULL, NULL);
        return;
    }
    c->rev = s->rev;
    c->enhanced = s->enhanced;
    c->crc_asked = s->crc;
    c->tx_markers = s->markers;
    c->p2p = s->enhanced && s->enh.p2p;
    c->rtr_write = s->enh.rtr_write;
    c->rtr_read = s->enh.rtr_read;
    c->peer_ird = s->enhanced ? depth_of(s->enh.ird) : IW_DEPTH_CAP;
    c->peer_ord = s->enhanced ? depth_of(s->enh.ord) : IW_DEPTH_CAP;
    c->want_ird = s->enh.ord; /* as it stood, for the reply */
    c->want_ord = s->enh.ird;
    os_free(c->start);
    c->start = NULL;
    iw_disarm(c, &c->timer);
    iw_set_state(c, IW_REQUESTED);
    c->request_settled = true;
}

static void fill_reply(const struct iw_conn *c, struct mpa_start *s, uint32_t ird, uint32_t ord) {
    s->reply = true;
    s->rev = c->rev;
    s->enhanced = c->enhanced;
    if (!c->enhanced) return;
    s->enh.ird = c->want_ird == MPA_DEPTH_ANY ? MPA_DEPTH_ANY : (uint16_t)ird;
    s->enh.ord = c->want_ord == MPA_DEPTH_ANY ? MPA_DEPTH_ANY : (uint16_t)ord;
    s->enh.p2p = c->p2p;
    if (!c->p2p) return;
    s->enh.rtr_read = c->rtr_read && !c->rtr_write;
    s->enh.rtr_write = !s->enh.rtr_read;
}

/* Nothing may come before our answer: the peer left, or is broken. Also asked before the answer,
 * for the engine may not have been here since. rx_lock and tx_lock held. */
static void notice_abandoned(struct iw_conn *c) {
    uint8_t byte;
    size_t got;
    struct os_iov iov = { &byte, 1 };
    if (iw_state(c) != IW_REQUESTED) return;
    if (iw_conn_readv(c, &iov, 1, &got) != SN_E_AGAIN) iw_fail(c, SN_E_PEER_GONE, NULL, NULL);
}

sn_status iw_accept(struct tp_conn *tc, const struct tp_setup *setup) {
    struct iw_conn *c = iw_conn_of(tc);
    struct iw_config cfg = iw_config_get();
    sn_status st = SN_E_ABORTED;
    os_lock_enter(&c->events.lock);
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    notice_abandoned(c);
    if (iw_state(c) == IW_REQUESTED) {
        struct mpa_start s = { .crc = cfg.crc || c->crc_asked,
                               .pd = setup->pd,
                               .pd_len = (uint16_t)setup->pd_len };
        c->up = setup->up;
        tp_events_set_owner_locked(&c->events, setup->up, setup->owner);
        c->qp = setup->qp;
        c->patient = setup->shared_receives;
        c->ird = SN_MIN(setup->ird, IW_DEPTH_CAP);
        c->ord = SN_MIN(SN_MIN(setup->ord, c->peer_ird), IW_DEPTH_CAP);
        c->crc = s.crc;
        fill_reply(c, &s, c->ird, c->ord);
        if (s.enh.rtr_read && s.enh.ird == 0) s.enh.ird = (uint16_t)(c->ird = 1);
        c->rtr_write = s.enh.rtr_write;
        c->rtr_read = s.enh.rtr_read;
        os_u32_store_relaxed(&c->peer, c->p2p ? IW_PEER_UNKNOWN : IW_PEER_FOREIGN);
        c->tx.mulpdu = mpa_mulpdu(os_sock_mss(c->watch.sock), c->tx_markers);
        iw_set_state(c, IW_WAIT_FPDU);
        st = send_start(c, &s) == SN_OK ? SN_OK : SN_E_ABORTED;
        if (st != SN_OK) {
            iw_fail(c, SN_E_PEER_GONE, NULL, NULL);
            tp_events_forget(&c->events);
        } else if (!c->p2p) { /* a client that will just begin, some day */
            c->established = true;
            tp_events_add(&c->events, TP_EV_ESTABLISHED, SN_OK);
        } else {
            iw_arm(c, &c->timer, cfg.answer_ns);
        }
    } else {
        tp_events_forget(&c->events); /* this answer says it */
    }
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
    os_lock_leave(&c->events.lock);
    tp_events_deliver(&c->events);
    return st;
}

sn_status iw_reject(struct tp_conn *tc, const void *pd, uint32_t pd_len) {
    struct iw_conn *c = iw_conn_of(tc);
    sn_status st = SN_OK;
    os_lock_enter(&c->events.lock);
    c->events.closed = true;
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    notice_abandoned(c);
    if (iw_state(c) == IW_REQUESTED) {
        struct mpa_start s = {
            .reject = true, .crc = c->crc_asked, .pd = pd, .pd_len = (uint16_t)pd_len
        };
        fill_reply(c, &s, 0, 0);
        st = send_start(c, &s) == SN_OK ? SN_OK : SN_E_ABORTED;
        iw_farewell(c, NULL, NULL);
    } else if (iw_state(c) == IW_ANSWERED) {
        iw_farewell(c, NULL, NULL); /* MPA has no other word for it: the stream just ends */
    } else {
        st = SN_E_ABORTED;
    }
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
    os_lock_leave(&c->events.lock);
    return st;
}

/* ---- what arrives during start-up ---- */

/* Reads just the octets of the frame. SN_OK: it is whole, in c->start. */
static sn_status read_start(struct iw_conn *c, struct mpa_start *s) {
    bool reply = c->active;
    for (;;) {
        size_t need = 0, got = 0;
        enum mpa_start_fault fault;
        sn_status st = mpa_start_unpack(c->start, c->start_len, reply, s, &need, &fault);
        if (st == SN_E_WIRE)
            SN_LOG(SN_LOG_INFO, "iwarp: bad start-up frame: %s", mpa_start_fault_text(fault));
        if (st != SN_E_MORE) return st;
        struct os_iov iov = { c->start + c->start_len, need - c->start_len };
        st = iw_conn_readv(c, &iov, 1, &got);
        if (st != SN_OK) return st;
        c->start_len += (uint32_t)got;
    }
}

/* Between reply and complete(): a FIN, or FPDUs of a responder that does not wait. */
static void early_octets(struct iw_conn *c) {
    sn_status st = iw_rx_hold_more(c);
    iw_set_interest(c);
    if (st == SN_OK || st == SN_E_AGAIN) return;
    c->rx.eof = true;
    iw_fail(c, SN_E_PEER_GONE, NULL, NULL);
}

static void ready_reply(struct iw_conn *c) {
    struct mpa_start s;
    bool begun = c->start_len != 0;
    sn_status st = read_start(c, &s);
    if (!begun && c->start_len != 0) iw_arm(c, &c->timer, c->cfg.request_ns);
    if (st == SN_OK) {
        take_reply(c, &s);
    } else if (st != SN_E_AGAIN) {
        bool closed = st == SN_E_EOF || st == SN_E_PEER_GONE;
        if (closed && c->start_len == 0 && retry_rev1(c)) return;
        c->rx.eof = closed;
        iw_fail(c, SN_E_REFUSED, NULL, NULL);
    }
}

void iw_setup_ready(struct iw_conn *c) {
    struct mpa_start s;
    sn_status st;
    if (c->tx.raw_len) (void)!iw_tx_flush_raw(c);
    switch (iw_state(c)) {
    case IW_CONNECTING:
        st = os_sock_connect_result(c->watch.sock);
        if (st == SN_OK)
            connected(c);
        else if (st != SN_E_AGAIN)
            iw_fail(c, st, NULL, NULL);
        break;
    case IW_WAIT_REPLY:
        ready_reply(c);
        break;
    case IW_ANSWERED:
        early_octets(c);
        break;
    case IW_WAIT_REQUEST:
        st = read_start(c, &s);
        if (st == SN_OK)
            take_request(c, &s);
        else if (st != SN_E_AGAIN)
            iw_fail(c, st, NULL, NULL);
        break;
    case IW_REQUESTED:
        notice_abandoned(c);
        break;
    default:
        break;
    }
}
