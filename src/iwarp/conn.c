/* SPDX-License-Identifier: MIT
 *
 * The life of a connection: states, readiness, events, the end. After the end of use (close, a
 * failure, the peer's FIN) nothing of the application is referred to any more; the socket lingers
 * on its own until what was promised to the wire is gone and the peer has closed too.
 */
#include "iwarp/conn.h"
#include <string.h>
#include "base/log.h"
#include "os/prim/fault.h"

static void on_ready(struct tp_watch *w, uint32_t events);
static void on_free(struct tp_watch *w);
static void on_timer(struct tp_timer *t);
static void on_report_timer(struct tp_timer *t);

struct iw_conn *iw_conn_create(struct tp_engine *eng, bool active) {
    struct iw_conn *c = os_zalloc(sizeof *c);
    if (!c) return NULL;
    c->base.ops = &iw_ops;
    c->eng = eng;
    c->active = active;
    c->capture = iw_capture_create(active);
    c->watch.sock = OS_SOCK_NONE;
    c->watch.on_ready = on_ready;
    c->watch.on_free = on_free;
    os_ref_init(&c->watch.refs);
    os_lock_init(&c->rx_lock, OS_RANK_STREAM_RX);
    os_lock_init(&c->tx_lock, OS_RANK_STREAM_TX);
    tp_events_init(&c->events, &c->rx_lock);
    tp_timer_init(&c->timer, eng, on_timer);
    tp_timer_init(&c->report_timer, eng, on_report_timer);
    sn_list_init(&c->listener_link);
    os_u32_store_relaxed(&c->state, active ? IW_CONNECTING : IW_WAIT_REQUEST);
    c->rx.send_msn = c->rx.read_msn = 1;
    c->tx.send_msn = c->tx.read_msn = 1;
    c->tx.mulpdu = MPA_MULPDU_MIN;
    return c;
}

static void on_free(struct tp_watch *w) {
    struct iw_conn *c = SN_CONTAINER(w, struct iw_conn, watch);
    os_sock_close(c->watch.sock, false);
    iw_capture_destroy(c->capture);
    tp_events_fini(&c->events);
    os_lock_fini(&c->rx_lock);
    os_lock_fini(&c->tx_lock);
    os_free(c->start);
    os_free(c->pd);
    os_free(c->out_pd);
    os_free(c->rx.held);
    os_free(c->rx.bounce);
    os_free(c->tx.raw);
    os_free(c->tx.bounce);
    os_free(c->tx.irq);
    os_free(c);
}

/* ---- states ---- */

void iw_set_state(struct iw_conn *c, enum iw_state to) {
#define S(s) (1u << (s))
    static const uint32_t legal[] = {
        [IW_CONNECTING] = S(IW_WAIT_REPLY) | S(IW_DEAD),
        [IW_WAIT_REPLY] = S(IW_CONNECTING) | S(IW_ANSWERED) | S(IW_LINGER) | S(IW_DEAD),
        [IW_ANSWERED] = S(IW_OPEN) | S(IW_LINGER) | S(IW_DEAD),
        [IW_WAIT_REQUEST] = S(IW_REQUESTED) | S(IW_DEAD),
        [IW_REQUESTED] = S(IW_WAIT_FPDU) | S(IW_LINGER) | S(IW_DEAD),
        [IW_WAIT_FPDU] = S(IW_OPEN) | S(IW_LINGER) | S(IW_DEAD),
        [IW_OPEN] = S(IW_LINGER) | S(IW_DEAD),
        [IW_LINGER] = S(IW_DEAD),
        [IW_DEAD] = 0,
    };
#undef S
    SN_ASSERT(legal[iw_state(c)] & (1u << to));
    os_u32_store_release(&c->state, to);
    if (to != IW_DEAD) iw_set_interest(c);
}

void iw_set_interest(struct iw_conn *c) {
    uint32_t events = OS_POLL_IN;
    switch (iw_state(c)) {
    case IW_CONNECTING:
        events = OS_POLL_OUT;
        break;
    case IW_OPEN:
    case IW_WAIT_FPDU:
        if (os_u32_load_relaxed(&c->rx.stalled) && (c->rx.eof || c->rx.held_len >= IW_HELD_MAX))
            events = 0;
        if (os_u32_load_relaxed(&c->tx.blocked)) events |= OS_POLL_OUT;
        break;
    case IW_ANSWERED:
        if (c->rx.held_len >= IW_HELD_MAX) events = 0;
        break;
    case IW_LINGER:
        if (c->rx.eof) events = 0; /* it stays readable, and brings nothing */
        if (c->tx.raw_len) events |= OS_POLL_OUT;
        break;
    default:
        break;
    }
    tp_watch_set(&c->watch, events);
}

void iw_arm(struct iw_conn *c, struct tp_timer *t, uint64_t delay_ns) {
    tp_watch_get(&c->watch);
    if (!tp_timer_arm(t, delay_ns)) tp_watch_put(&c->watch); /* its reference is there already */
}

void iw_disarm(struct iw_conn *c, struct tp_timer *t) {
    if (tp_timer_cancel(t)) tp_watch_put(&c->watch);
}

/* ---- the end ---- */

void iw_drop_socket(struct iw_conn *c, bool reset) {
    if (iw_state(c) == IW_DEAD) return;
    iw_set_state(c, IW_DEAD);
    iw_disarm(c, &c->timer);
    iw_disarm(c, &c->report_timer);
    os_sock s = c->watch.sock;
    tp_watch_remove(&c->watch);
    c->watch.sock = OS_SOCK_NONE;
    os_sock_close(s, reset);
}

/* Forgets everything that is the core's. */
static void let_go(struct iw_conn *c) {
    c->tx.q_count = 0;
    c->tx.irq_count = 0;
    c->tx.reads_out = 0;
    c->tx.unconfirmed = c->tx.reads = (struct iw_fifo){ 0 };
    c->tx.part.active = false;
    os_u32_store_relaxed(&c->tx.blocked, 0);
    c->tx.failed = false;
    c->rx.recv = NULL;
    c->rx.read = NULL;
    os_u32_store_relaxed(&c->rx.stalled, 0);
    os_free(c->rx.held);
    c->rx.held = NULL;
    c->rx.held_len = 0;
}

void iw_farewell(struct iw_conn *c, const struct rdmap_fault *fault,
                 const struct terminate_about *about) {
    bool whole = true;
    if (iw_state(c) == IW_OPEN) {
        uint8_t head[RDMAP_HEAD_MAX];
        whole = iw_tx_raw_part(c);
        if (whole && iw_report_due(c)) whole = iw_tx_raw_report(c);
        if (whole && fault) whole = iw_tx_raw_fpdu(c, head, terminate_pack(head, fault, about));
    }
    let_go(c);
    iw_disarm(c, &c->report_timer);
    iw_set_state(c, IW_LINGER);
    iw_arm(c, &c->timer, c->cfg.linger_ns);
    if (whole)
        iw_linger(c);
    else
        iw_drop_socket(c, true); /* the stream is cut inside an FPDU */
}

void iw_linger(struct iw_conn *c) {
    uint8_t sink[4096];
    struct os_iov iov = { sink, sizeof sink };
    size_t got;
    sn_status st = iw_tx_flush_raw(c);
    if (st != SN_OK && st != SN_E_AGAIN) {
        iw_drop_socket(c, false);
        return;
    }
    if (st == SN_OK && !c->tx.shut) {
        os_sock_shutdown_write(c->watch.sock);
        if (c->capture) iw_capture_shut(c->capture);
        c->tx.shut = true;
    }
    for (int i = 0; i < 64 && !c->rx.eof; i++) {
        sn_status rst = iw_conn_readv(c, &iov, 1, &got);
        if (rst == SN_E_AGAIN) break;
        if (rst != SN_OK) c->rx.eof = true;
        if (rst == SN_E_PEER_GONE) st = SN_OK; /* nobody to flush to */
    }
    if (c->rx.eof && st == SN_OK)
        iw_drop_socket(c, false);
    else
        iw_set_interest(c);
}

/* No farewell: nobody is there, or nothing was said that could be lost. An attempt that came to
 * nothing is reset, so that the same pair of addresses can be used again at once. */
static bool ends_at_once(const struct iw_conn *c, sn_status st) {
    switch (iw_state(c)) {
    case IW_CONNECTING:
    case IW_WAIT_REQUEST:
        return true;
    case IW_WAIT_REPLY:
        return c->tx.raw_len == 0;
    default:
        return st == SN_E_PEER_GONE;
    }
}

void iw_fail(struct iw_conn *c, sn_status st, const struct rdmap_fault *fault,
             const struct terminate_about *about) {
    switch (iw_state(c)) {
    case IW_CONNECTING:
    case IW_WAIT_REPLY:
        tp_events_add(&c->events, TP_EV_REPLY, st);
        break;
    case IW_REQUESTED:
        tp_events_add(&c->events, TP_EV_ABANDONED, SN_OK);
        break;
    case IW_WAIT_FPDU:
        if (!c->established) {
            c->established = true;
            /* A reset: the caller gave up before our answer reached it. A FIN: it had it, and did
             * not want it. */
            tp_events_add(&c->events, TP_EV_ESTABLISHED,
                          st == SN_E_TIMEOUT     ? st
                          : st == SN_E_PEER_GONE ? SN_E_ABORTED
                                                 : SN_E_REFUSED);
            break;
        } /* fall through */
    case IW_OPEN:
        tp_events_add(&c->events, TP_EV_DISCONNECTED, st);
        break;
    case IW_WAIT_REQUEST:
        c->request_settled = true;
        break;
    case IW_ANSWERED:
        break; /* complete() will say so */
    case IW_LINGER:
    case IW_DEAD:
        return;
    }
    if (ends_at_once(c, st)) {
        let_go(c);
        iw_drop_socket(c, iw_state(c) == IW_WAIT_REPLY);
    } else {
        iw_farewell(c, fault, about);
    }
}

static void close_conn(struct tp_conn *tc) {
    struct iw_conn *c = iw_conn_of(tc);
    if (iw_state(c) == IW_REQUESTED) {
        (void)!iw_reject(tc, NULL, 0); /* an unanswered request gets an answer */
    }
    os_lock_enter(&c->events.lock);
    c->events.closed = true;
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    switch (iw_state(c)) {
    case IW_CONNECTING:
    case IW_WAIT_REQUEST:
    case IW_WAIT_REPLY:
        iw_drop_socket(c, true);
        break;
    case IW_LINGER:
    case IW_DEAD:
        break;
    case IW_OPEN:
        if (c->tx.deferred) iw_tx_progress(c);
        /* fall through */
    default:
        iw_farewell(c, NULL, NULL);
        break;
    }
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
    os_lock_leave(&c->events.lock);
}

static void release(struct tp_conn *tc) {
    tp_watch_put(&iw_conn_of(tc)->watch);
}

/* ---- progress ---- */

/* When a report that is due leaves. From the engine thread a Write is reported at once, since its
 * target may never call; what the application is about to see waits for its answer to ride on. */
SN_HOT static void plan_report(struct iw_conn *c, bool from_engine) {
    if (!iw_report_due(c)) return;
    uint32_t behind = os_u32_load_relaxed(&c->processed) - os_u32_load_relaxed(&c->reported);
    if (behind >= IW_REPORT_EVERY || (from_engine && c->last_was_write)) {
        c->report_now = true;
    } else if (os_u32_load_relaxed(&c->report_armed) == 0) {
        os_u32_store_relaxed(&c->report_armed, 1);
        iw_arm(c, &c->report_timer, IW_REPORT_NS);
    }
}

/* Both locks held. Something arrived: answers, reports, requests that waited for it. */
SN_HOT static void after_rx(struct iw_conn *c, bool from_engine) {
    if (iw_state(c) == IW_OPEN) {
        plan_report(c, from_engine);
        iw_tx_progress(c);
    }
    iw_settle_locked(c);
}

/* tx_lock held, after a call of the application sent what it could. */
static void count_work(struct iw_conn *c) {
    if (SN_LIKELY(c->tx.busy_ns == 0)) return;
    tp_engine_worked(c->eng, c->tx.busy_ns);
    c->tx.busy_ns = 0;
}

static void ready_stream(struct iw_conn *c, uint32_t events) {
    bool stalled = os_u32_load_relaxed(&c->rx.stalled);
    if (stalled)
        iw_rx_read_ahead(c);
    else if (iw_rx_progress(c) && c->rx.streams)
        tp_engine_streams(c->eng);
    os_lock_enter(&c->tx_lock);
    if (stalled && (events & OS_POLL_HUP)) iw_fail(c, SN_E_PEER_GONE, NULL, NULL);
    after_rx(c, true);
    c->tx.busy_ns = 0; /* not the application's */
    os_lock_leave(&c->tx_lock);
}

static void on_ready(struct tp_watch *w, uint32_t events) {
    struct iw_conn *c = SN_CONTAINER(w, struct iw_conn, watch);
    os_lock_enter(&c->rx_lock);
    switch (iw_state(c)) {
    case IW_OPEN:
    case IW_WAIT_FPDU:
        ready_stream(c, events);
        break;
    case IW_DEAD:
        break;
    case IW_LINGER:
        os_lock_enter(&c->tx_lock);
        iw_linger(c);
        os_lock_leave(&c->tx_lock);
        break;
    default:
        os_lock_enter(&c->tx_lock);
        iw_setup_ready(c);
        /* Full of early octets it reads no more, and would not find out about a reset. */
        if ((events & OS_POLL_HUP) && iw_state(c) == IW_ANSWERED)
            iw_fail(c, SN_E_PEER_GONE, NULL, NULL);
        os_lock_leave(&c->tx_lock);
        break;
    }
    struct iw_listener *settled = c->request_settled ? iw_listener_hold(c) : NULL;
    c->request_settled = false;
    os_lock_leave(&c->rx_lock);
    if (settled) iw_listener_settle(c, settled);
    tp_events_deliver(&c->events);
}

SN_HOT static bool poll(struct tp_conn *tc) {
    struct iw_conn *c = iw_conn_of(tc);
    if (!os_lock_try(&c->rx_lock)) return false;
    bool did = false;
    enum iw_state s = iw_state(c);
    if (s == IW_OPEN || s == IW_WAIT_FPDU) {
        did = iw_rx_progress(c);
        /* Nothing new: what was held back for the application's answer leaves now. */
        bool report = !did && iw_state(c) == IW_OPEN && iw_report_due(c);
        if (did || report || os_u32_load_relaxed(&c->tx.blocked) || iw_state(c) != s) {
            os_lock_enter(&c->tx_lock);
            if (report) c->report_now = true;
            after_rx(c, false);
            count_work(c);
            os_lock_leave(&c->tx_lock);
        }
    }
    os_lock_leave(&c->rx_lock);
    tp_events_deliver(&c->events);
    return did;
}

/* After sending without the receive lock: carries out a failure, if there was one. */
static void settle(struct iw_conn *c, bool failed) {
    if (!failed) return;
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    iw_settle_locked(c);
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
    tp_events_deliver(&c->events);
}

SN_HOT static void post_send(struct tp_conn *tc) {
    struct iw_conn *c = iw_conn_of(tc);
    if (iw_state(c) != IW_OPEN) return;
    os_lock_enter(&c->tx_lock);
    if (!os_u32_load_relaxed(&c->tx.blocked) && !iw_tx_defer(c)) iw_tx_progress(c);
    count_work(c);
    bool failed = c->tx.failed;
    os_lock_leave(&c->tx_lock);
    settle(c, failed);
}

static void flush_reports(struct tp_conn *tc) {
    struct iw_conn *c = iw_conn_of(tc);
    if (iw_state(c) != IW_OPEN) return;
    os_lock_enter(&c->tx_lock);
    bool failed = false;
    /* Of many unconfirmed messages the report will send what waits: then more can wait for it. */
    bool waits = c->tx.deferred != 0 && c->tx.unconfirmed.count < IW_REPORT_EVERY;
    if (iw_report_due(c)) c->report_now = true;
    if (c->report_now || waits) {
        iw_tx_progress(c);
        failed = c->tx.failed;
    }
    os_lock_leave(&c->tx_lock);
    settle(c, failed);
}

static void post_receive(struct tp_conn *tc) {
    struct iw_conn *c = iw_conn_of(tc);
    if (os_u32_load_seqcst(&c->rx.stalled) == 0) return;
    os_lock_enter(&c->rx_lock);
    iw_rx_resume(c);
    os_lock_enter(&c->tx_lock);
    after_rx(c, false);
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
    tp_events_deliver(&c->events);
}

/* ---- timers; the reference that the timer held is dropped at the end ---- */

static void on_timer(struct tp_timer *t) {
    struct iw_conn *c = SN_CONTAINER(t, struct iw_conn, timer);
    os_lock_enter(&c->rx_lock);
    switch (iw_state(c)) {
    case IW_OPEN:
        iw_rx_stall_over(c);
        break;
    case IW_DEAD:
        break;
    case IW_WAIT_FPDU:
        if (iw_rx_stall_over(c)) break; /* fall through */
    default:
        os_lock_enter(&c->tx_lock);
        SN_LOG(SN_LOG_INFO, "iwarp: the peer did not answer during connection setup");
        iw_fail(c, SN_E_TIMEOUT, NULL, NULL);
        os_lock_leave(&c->tx_lock);
        break;
    case IW_LINGER:
        os_lock_enter(&c->tx_lock);
        iw_drop_socket(c, c->tx.raw_len != 0);
        os_lock_leave(&c->tx_lock);
        break;
    }
    struct iw_listener *settled = c->request_settled ? iw_listener_hold(c) : NULL;
    c->request_settled = false;
    os_lock_leave(&c->rx_lock);
    if (settled) iw_listener_settle(c, settled);
    tp_events_deliver(&c->events);
    tp_watch_put(&c->watch);
}

/* siw looks at its socket as a stream only after it has sent its reply: an RTR frame that is faster
 * lies there unseen until something follows it, and nobody is told of the connection. So a peer
 * that stays silent gets the frame once more. It is the marked one: to a SoftND peer that is only
 * slow an unmarked Write would be a message, and its reports would count one that we never sent.
 * tx_lock held. */
static void nudge(struct iw_conn *c) {
    uint8_t head[RDMAP_HEAD_TAGGED];
    if (!c->active || c->tx.part.active || c->tx.in_progress != IW_TX_NONE) return; /* more comes */
    (void)iw_tx_raw_fpdu(c, head, rdmap_write_pack(head, true, IW_MARK_STAG, IW_MARK_VERSION, 0));
}

static void on_report_timer(struct tp_timer *t) {
    struct iw_conn *c = SN_CONTAINER(t, struct iw_conn, report_timer);
    os_lock_enter(&c->tx_lock);
    os_u32_store_relaxed(&c->report_armed, 0);
    bool failed = false;
    if (iw_state(c) == IW_OPEN) {
        if (iw_peer(c) == IW_PEER_UNKNOWN) {
            uint64_t now = os_now_ns();
            if (now >= c->unknown_until_ns) {
                iw_peer_decided(c, IW_PEER_FOREIGN);
                nudge(c);
                iw_tx_progress(c); /* and what waited for the outcome of others */
            } else {
                iw_arm(c, t, c->unknown_until_ns - now);
            }
        }
        if (iw_report_due(c)) {
            c->report_now = true;
            iw_tx_progress(c);
        }
        failed = c->tx.failed;
    }
    os_lock_leave(&c->tx_lock);
    settle(c, failed);
    tp_watch_put(&c->watch);
}

/* ---- the rest of the table ---- */

static void info(struct tp_conn *tc, struct tp_conn_info *out) {
    struct iw_conn *c = iw_conn_of(tc);
    os_lock_enter(&c->rx_lock);
    *out = (struct tp_conn_info){ .local = c->local,
                                  .peer = c->remote,
                                  .peer_ird = c->peer_ird,
                                  .peer_ord = c->peer_ord,
                                  .pd_len = c->pd_len };
    if (c->pd_len) memcpy(out->pd, c->pd, c->pd_len);
    os_lock_leave(&c->rx_lock);
}

static void set_owner(struct tp_conn *tc, const struct tp_upcalls *up, void *owner) {
    tp_events_set_owner(&iw_conn_of(tc)->events, up, owner);
}

const struct tp_ops iw_ops = {
    .name = "iwarp",
    .looks = IW_LOOKS,
    .listen = iw_listen,
    .listener_close = iw_listener_close,
    .connect = iw_connect,
    .complete = iw_complete,
    .set_owner = set_owner,
    .accept = iw_accept,
    .reject = iw_reject,
    .info = info,
    .post_send = post_send,
    .post_receive = post_receive,
    .poll = poll,
    .flush_reports = flush_reports,
    .close = close_conn,
    .release = release,
};
