/* SPDX-License-Identifier: MIT
 *
 * The life of a connection: states, readiness, events, the end. The end of the socket is the end of
 * the peer, but what it wrote before is still served: the memory stays while the connection does.
 */
#include "local/conn.h"
#include <string.h>
#include "base/log.h"
#include "os/prim/fault.h"

static void on_ready(struct tp_watch *w, uint32_t events);
static void on_free(struct tp_watch *w);
static void on_timer(struct tp_timer *t);
static void on_ack_timer(struct tp_timer *t);

#define ERR_READ 0x10000u /* in err_status: about the oldest Read, not the oldest Send */

struct lo_conn *lo_conn_create(struct tp_engine *eng, struct lo_hub *hub, bool active) {
    struct lo_conn *c = os_zalloc(sizeof *c);
    if (!c) return NULL;
    c->base.ops = &lo_ops;
    c->eng = eng;
    c->hub = hub;
    c->active = active;
    c->watch.sock = OS_SOCK_NONE;
    c->watch.quiet = true;
    c->watch.on_ready = on_ready;
    c->watch.on_free = on_free;
    os_ref_init(&c->watch.refs);
    os_lock_init(&c->rx_lock, OS_RANK_STREAM_RX);
    os_lock_init(&c->tx_lock, OS_RANK_STREAM_TX);
    tp_events_init(&c->events, &c->rx_lock);
    tp_timer_init(&c->timer, eng, on_timer);
    tp_timer_init(&c->ack_timer, eng, on_ack_timer);
    sn_list_init(&c->listener_link);
    os_u32_store_relaxed(&c->state, active ? LO_WAIT_REPLY : LO_WAIT_REQUEST);
    os_u32_store_relaxed(&c->tx.busy, 1); /* what was posted before it is open */
    return c;
}

static void on_free(struct tp_watch *w) {
    struct lo_conn *c = SN_CONTAINER(w, struct lo_conn, watch);
    os_sock_close(c->watch.sock, false);
    if (c->peer) lo_peer_put(c->peer);
    os_shm_close(&c->shm);
    tp_port_free(c->port);
    tp_events_fini(&c->events);
    os_lock_fini(&c->rx_lock);
    os_lock_fini(&c->tx_lock);
    os_free(c->tx.irq);
    os_free(c);
}

/* ---- states ---- */

void lo_set_state(struct lo_conn *c, enum lo_state to) {
#define S(s) (1u << (s))
    static const uint32_t legal[] = {
        [LO_WAIT_REPLY] = S(LO_ANSWERED) | S(LO_ENDED),
        [LO_ANSWERED] = S(LO_OPEN) | S(LO_ENDED),
        [LO_WAIT_REQUEST] = S(LO_REQUESTED) | S(LO_ENDED),
        [LO_REQUESTED] = S(LO_WAIT_READY) | S(LO_ENDED),
        [LO_WAIT_READY] = S(LO_OPEN) | S(LO_ENDED),
        [LO_OPEN] = S(LO_ENDED),
        [LO_ENDED] = 0,
    };
#undef S
    SN_ASSERT(legal[lo_state(c)] & (1u << to));
    os_u32_store_seqcst(&c->state, to);
}

void lo_arm(struct lo_conn *c, struct tp_timer *t, uint64_t delay_ns) {
    lo_conn_get(c);
    if (!tp_timer_arm(t, delay_ns)) lo_conn_put(c); /* its reference is there already */
}

void lo_disarm(struct lo_conn *c, struct tp_timer *t) {
    if (tp_timer_cancel(t)) lo_conn_put(c);
}

bool lo_conn_in_use(const struct lo_conn *c) {
    enum lo_state s = lo_state(c);
    return s == LO_OPEN || s == LO_WAIT_READY;
}

/* The next slot is there, and neither a receive nor the peer's help is waited for. */
static bool slot_waits(const struct lo_conn *c) {
    uint32_t pos = os_u32_load_relaxed(&c->rx.pos), help;
    const struct lo_slot *next = &c->theirs->slots[pos % LO_SLOTS];
    os_prefetch((const uint8_t *)next + 64); /* both lines of a message come at once */
    if (os_u32_load_acquire(&next->seq) != pos + 1 || os_u32_load_relaxed(&c->rx.stalled))
        return false;
    help = os_u32_load_relaxed(&c->rx.help);
    return SN_LIKELY(help == 0) ||
           os_u32_load_acquire(&c->mine->help) != lo_help_with(help, LO_HELP_TAKEN);
}

bool lo_conn_has_input(struct lo_conn *c) {
    uint32_t pos = os_u32_load_relaxed(&c->rx.pos), acked = os_u32_load_relaxed(&c->tx.acked);
    if (slot_waits(c)) return true;
    if (os_u32_load_relaxed(&c->tx.pos) != acked &&
        (lo_help_wanted(c) || (int32_t)(os_u32_load_relaxed(&c->theirs->consumed) - acked) > 0 ||
         os_u32_load_relaxed(&c->theirs->status) > LO_ST_OPEN))
        return true;
    if (pos != os_u32_load_relaxed(&c->tx.published) && os_u32_load_relaxed(&c->theirs->hurry))
        return true;
    return os_u32_load_relaxed(&c->tx.more) != 0;
}

/* ---- the end ---- */

static void drop_socket(struct lo_conn *c) {
    os_sock s = c->watch.sock;
    if (s == OS_SOCK_NONE) return;
    tp_watch_remove(&c->watch);
    c->watch.sock = OS_SOCK_NONE;
    os_sock_close(s, false);
    lo_hub_heard(c->hub); /* a wake-up may have been in it */
}

/* Forgets everything that is the core's. */
static void let_go(struct lo_conn *c) {
    c->tx.cur = NULL;
    c->tx.doomed = false;
    c->tx.unacked = c->tx.reads = (struct lo_fifo){ 0 };
    c->tx.loud = 0;
    c->tx.irq_count = 0;
    c->tx.reads_out = 0;
    c->tx.failed = false;
    os_u32_store_relaxed(&c->tx.more, 0);
    c->rx.recv = NULL;
    c->rx.read = NULL;
    os_u32_store_relaxed(&c->rx.stalled, 0);
    os_u32_store_relaxed(&c->rx.help, 0);
}

/* Tells the peer, through the memory; the closed socket tells it too. */
static void say_goodbye(struct lo_conn *c) {
    bool error = c->err_status != 0;
    lo_tx_publish(c);
    if (error) os_u32_store_relaxed(&c->mine->err_status, c->err_status);
    os_u32_store_seqcst(&c->mine->status, error ? LO_ST_ERROR : LO_ST_FIN);
    if (!error) lo_tx_note(c, LO_FIN, 0);
    c->tx.bell = true;
    lo_tx_ring(c);
}

void lo_end_use(struct lo_conn *c) {
    if (lo_state(c) == LO_OPEN) lo_tx_reap(c);
    lo_set_state(c, LO_ENDED);
    lo_disarm(c, &c->timer);
    lo_disarm(c, &c->ack_timer);
    if (c->mine) say_goodbye(c);
    drop_socket(c);
    if (os_u32_load_relaxed(&c->joined)) {
        lo_hub_settle_cell(c);
        lo_hub_part(c->hub, c, c->index);
    }
    let_go(c);
    tp_port_free(c->port);
    c->port = NULL;
}

/* What the peer says of a request of ours is one of the outcomes that requests have. */
static sn_status request_status(uint32_t told) {
    switch (told) {
    case SN_E_PEER_MSG_TOO_LONG:
    case SN_E_TIMEOUT:
    case SN_E_RIGHTS:
    case SN_E_TOKEN:
    case SN_E_RANGE:
    case SN_E_PD:
    case SN_E_FAULT:
    case SN_E_REMOTE_RANGE:
        return (sn_status)told;
    default:
        return SN_E_REMOTE;
    }
}

/* The last the peer said of our requests. True if it ended for an error that one of them met. */
static bool hear_the_last(struct lo_conn *c) {
    uint32_t status = os_u32_load_seqcst(&c->theirs->status);
    lo_tx_look(c);
    if (status != LO_ST_ERROR) return false;
    uint32_t told = os_u32_load_relaxed(&c->theirs->err_status);
    struct tp_request *victim = lo_fifo_pop(told & ERR_READ ? &c->tx.reads : &c->tx.unacked);
    if (!victim && !(told & ERR_READ)) {
        victim = c->tx.cur;
        c->tx.cur = NULL;
    }
    sn_status st = request_status(told & ~ERR_READ);
    SN_LOG(SN_LOG_INFO, "local: the peer ended the connection: %s", sn_status_text(st));
    if (victim) c->up->request_done(c->qp, victim, st);
    return true;
}

void lo_fail(struct lo_conn *c, sn_status st) {
    switch (lo_state(c)) {
    case LO_WAIT_REPLY:
        tp_events_add(&c->events, TP_EV_REPLY, st);
        break;
    case LO_REQUESTED:
        tp_events_add(&c->events, TP_EV_ABANDONED, SN_OK);
        break;
    case LO_WAIT_READY:
        tp_events_add(&c->events, TP_EV_ESTABLISHED, st == SN_E_TIMEOUT ? st : SN_E_REFUSED);
        break;
    case LO_OPEN:
        if (hear_the_last(c)) st = SN_E_REMOTE;
        tp_events_add(&c->events, TP_EV_DISCONNECTED, st);
        break;
    case LO_WAIT_REQUEST:
        c->request_settled = true;
        break;
    case LO_ANSWERED:
        break; /* complete() will say so */
    case LO_ENDED:
        return;
    }
    lo_end_use(c);
}

void lo_refuse(struct lo_conn *c, sn_status st) {
    SN_LOG(SN_LOG_INFO, "local: a request of the peer is refused: %s", sn_status_text(st));
    if (lo_state(c) == LO_OPEN) c->err_status = (uint32_t)st;
    lo_fail(c, SN_E_WIRE);
}

void lo_settle_locked(struct lo_conn *c) {
    if (!c->tx.failed) return;
    c->tx.failed = false;
    if (c->refuse_read) c->err_status = ERR_READ | c->refuse_read;
    lo_fail(c, c->tx.fail_status);
}

static void close_conn(struct tp_conn *tc) {
    struct lo_conn *c = lo_conn_of(tc);
    if (lo_state(c) == LO_REQUESTED)
        (void)!lo_reject(tc, NULL, 0); /* an unanswered request gets an answer */
    os_lock_enter(&c->events.lock);
    c->events.closed = true;
    os_lock_enter(&c->rx_lock);
    lo_tx_enter(c);
    if (lo_state(c) != LO_ENDED) lo_end_use(c);
    lo_tx_leave(c);
    os_lock_leave(&c->rx_lock);
    os_lock_leave(&c->events.lock);
}

static void release(struct tp_conn *tc) {
    lo_conn_put(lo_conn_of(tc));
}

/* ---- progress ---- */

/* Tells the peer how far we are now, or lets it ride on what the application does next. */
static void plan_ack(struct lo_conn *c) {
    uint32_t due = os_u32_load_relaxed(&c->rx.pos) - os_u32_load_relaxed(&c->tx.published);
    if (due == 0) return;
    if (due >= LO_ACK_EVERY || os_u32_load_relaxed(&c->theirs->hurry)) {
        lo_tx_publish(c);
    } else if (!os_u32_load_relaxed(&c->ack_armed)) {
        os_u32_store_relaxed(&c->ack_armed, 1);
        lo_arm(c, &c->ack_timer, LO_ACK_NS);
    }
}

/* True if there is nothing to do but to receive: a look, which is why it may be without the lock
 * that guards what it looks at. Who changes it after the look makes progress by itself. */
static bool only_received(struct lo_conn *c) {
    uint32_t pos = os_u32_load_relaxed(&c->rx.pos);
    uint32_t due = pos - os_u32_load_relaxed(&c->tx.published);
    return lo_state(c) == LO_OPEN && !os_u32_load_relaxed(&c->tx.busy) && !c->rx.eof &&
           (int32_t)(os_u32_load_relaxed(&c->theirs->consumed) -
                     os_u32_load_relaxed(&c->tx.acked)) <= 0 &&
           os_u32_load_relaxed(&c->theirs->status) == LO_ST_OPEN && !lo_help_wanted(c) &&
           (due == 0 || (due < LO_ACK_EVERY && os_u32_load_relaxed(&c->ack_armed) &&
                         !os_u32_load_relaxed(&c->theirs->hurry))) &&
           !slot_waits(c);
}

/* rx_lock held, OPEN or WAIT_READY. */
static bool make_progress(struct lo_conn *c) {
    bool did = lo_rx_progress(c);
    if (only_received(c)) return did;
    lo_tx_enter(c);
    if (lo_state(c) == LO_OPEN) {
        did |= lo_tx_look(c);
        did |= lo_tx_help(c);
        plan_ack(c);
        if (!c->tx.failed) did |= lo_tx_progress(c);
        lo_tx_ring(c);
        lo_settle_locked(c);
    }
    if (lo_conn_in_use(c)) {
        bool rest = slot_waits(c) || os_u32_load_relaxed(&c->tx.more);
        if (rest)
            lo_hub_again(c->hub, c->index);
        else if (os_u32_load_relaxed(&c->theirs->status) == LO_ST_ERROR)
            lo_fail(c, SN_E_REMOTE);
        else if (c->rx.eof && !os_u32_load_relaxed(&c->rx.stalled))
            lo_fail(c,
                    os_u32_load_seqcst(&c->theirs->status) == LO_ST_FIN ? SN_OK : SN_E_PEER_GONE);
    }
    lo_tx_leave(c);
    return did;
}

void lo_conn_read_socket(struct lo_conn *c) {
    uint8_t bytes[16];
    size_t got;
    if (c->watch.sock == OS_SOCK_NONE) return;
    if (!lo_conn_in_use(c)) {
        lo_setup_ready(c);
        return;
    }
    sn_status st = os_local_recv(c->watch.sock, bytes, sizeof bytes, &got, NULL, NULL);
    if (st == SN_OK) lo_hub_heard(c->hub);
    if (st == SN_OK || st == SN_E_WIRE || st == SN_E_AGAIN) return;
    c->rx.eof = true;
    drop_socket(c);
    /* What waits for a receive may still get one; nobody waits for that for ever. */
    if (os_u32_load_relaxed(&c->rx.stalled) && c->patient) lo_arm(c, &c->timer, LO_RNR_NS);
}

/* rx_lock held; released. */
static void finish(struct lo_conn *c) {
    struct lo_listener *l = NULL;
    if (c->request_settled) {
        l = c->listener;
        c->listener = NULL;
    }
    c->request_settled = false;
    os_lock_leave(&c->rx_lock);
    if (l) lo_listener_settle(l, c);
    tp_events_deliver(&c->events);
}

static void on_ready(struct tp_watch *w, uint32_t events) {
    struct lo_conn *c = SN_CONTAINER(w, struct lo_conn, watch);
    (void)events;
    os_lock_enter(&c->rx_lock);
    lo_tx_enter(c);
    lo_conn_read_socket(c);
    lo_tx_leave(c);
    if (lo_conn_in_use(c)) make_progress(c);
    finish(c);
}

void lo_conn_work(struct lo_conn *c) {
    os_lock_enter(&c->rx_lock);
    if (lo_conn_in_use(c)) make_progress(c);
    finish(c);
}

static bool poll(struct tp_conn *tc) {
    struct lo_conn *c = lo_conn_of(tc);
    if (!lo_conn_in_use(c)) return false;
    if (!lo_conn_is_polled(c)) lo_hub_polled(c->hub, c);
    if (!lo_conn_has_input(c)) {
        if (++c->idle_polls % LO_IDLE_LOOK == 0) on_ready(&c->watch, 0);
        return false;
    }
    if (!os_lock_try(&c->rx_lock)) return false;
    bool did = lo_conn_in_use(c) && make_progress(c);
    finish(c);
    return did;
}

/* After sending without the receive lock: carries out a failure, if there was one. */
static void settle(struct lo_conn *c, bool failed) {
    if (!failed) return;
    os_lock_enter(&c->rx_lock);
    lo_tx_enter(c);
    lo_settle_locked(c);
    lo_tx_leave(c);
    os_lock_leave(&c->rx_lock);
    tp_events_deliver(&c->events);
}

static void post_send(struct tp_conn *tc) {
    struct lo_conn *c = lo_conn_of(tc);
    bool failed = false, more = false;
    lo_tx_enter(c);
    if (lo_state(c) == LO_OPEN && !c->tx.failed) {
        lo_tx_progress(c);
        lo_tx_ring(c);
        bool waits = c->tx.asks || os_u32_load_relaxed(&c->tx.busy) != 0;
        c->tx.asks = false;
        if (waits) os_fence_seqcst(); /* pairs with the receive side's after `heard` */
        if (lo_tx_reap(c) && waits) {
            lo_tx_progress(c);
            lo_tx_ring(c);
        }
        failed = c->tx.failed;
        more = os_u32_load_relaxed(&c->tx.more);
    }
    lo_tx_leave(c);
    if (more) lo_hub_again(c->hub, c->index);
    settle(c, failed);
}

static void prepare_send(struct tp_conn *tc) {
    lo_tx_prepare(lo_conn_of(tc));
}

static bool try_send(struct tp_conn *tc) {
    struct lo_conn *c = lo_conn_of(tc);
    /* Open before the lock is looked at: who opened it held the lock. Open after: so did who ended
     * it. */
    return lo_state(c) == LO_OPEN && os_lock_is_free(&c->tx_lock) && lo_state(c) == LO_OPEN &&
           !os_u32_load_relaxed(&c->tx.busy) && lo_tx_short(c);
}

static void reap(struct tp_conn *tc) {
    struct lo_conn *c = lo_conn_of(tc);
    lo_tx_enter(c);
    if (lo_state(c) == LO_OPEN) lo_tx_reap(c);
    lo_tx_leave(c);
}

static void flush_reports(struct tp_conn *tc) {
    struct lo_conn *c = lo_conn_of(tc);
    if (os_u32_load_relaxed(&c->rx.pos) == os_u32_load_relaxed(&c->tx.published)) return;
    lo_tx_enter(c);
    if (lo_state(c) == LO_OPEN) {
        lo_tx_publish(c);
        lo_tx_ring(c);
    }
    lo_tx_leave(c);
}

static void post_receive(struct tp_conn *tc) {
    struct lo_conn *c = lo_conn_of(tc);
    if (os_u32_load_seqcst(&c->rx.stalled) == 0) return;
    lo_conn_work(c);
}

/* ---- timers; the reference that the timer held is dropped at the end ---- */

static void on_timer(struct tp_timer *t) {
    struct lo_conn *c = SN_CONTAINER(t, struct lo_conn, timer);
    os_lock_enter(&c->rx_lock);
    switch (lo_state(c)) {
    case LO_OPEN:
        lo_rx_stall_over(c);
        break;
    case LO_ENDED:
        break;
    default:
        lo_tx_enter(c);
        SN_LOG(SN_LOG_INFO, "local: the peer did not answer during connection setup");
        lo_fail(c, SN_E_TIMEOUT);
        lo_tx_leave(c);
        break;
    }
    finish(c);
    lo_conn_put(c);
}

static void on_ack_timer(struct tp_timer *t) {
    struct lo_conn *c = SN_CONTAINER(t, struct lo_conn, ack_timer);
    /* only_received() counts on the timer for slots that it has consumed under this lock: without
     * it, it could see ack_armed still set, and we not see its last slot. */
    os_lock_enter(&c->rx_lock);
    lo_tx_enter(c);
    os_u32_store_relaxed(&c->ack_armed, 0);
    if (lo_state(c) == LO_OPEN) {
        lo_tx_publish(c);
        lo_tx_ring(c);
    }
    lo_tx_leave(c);
    os_lock_leave(&c->rx_lock);
    lo_conn_put(c);
}

/* ---- the rest of the table ---- */

static void info(struct tp_conn *tc, struct tp_conn_info *out) {
    struct lo_conn *c = lo_conn_of(tc);
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
    tp_events_set_owner(&lo_conn_of(tc)->events, up, owner);
}

const struct tp_ops lo_ops = {
    .name = "local",
    .listen = lo_listen,
    .listener_close = lo_listener_close,
    .connect = lo_connect,
    .complete = lo_complete,
    .set_owner = set_owner,
    .accept = lo_accept,
    .reject = lo_reject,
    .info = info,
    .post_send = post_send,
    .prepare_send = prepare_send,
    .try_send = try_send,
    .reap = reap,
    .post_receive = post_receive,
    .poll = poll,
    .flush_reports = flush_reports,
    .close = close_conn,
    .release = release,
};
