/* SPDX-License-Identifier: MIT
 *
 * Accepts TCP connections and reads their MPA requests. A connection belongs to the listener until
 * its request is whole; only so many may be that far and no further.
 */
#include "iwarp/conn.h"
#include "base/log.h"
#include "os/prim/fault.h"
#include "transport/port.h"

enum { HALF_OPEN_MAX = 4096, ACCEPTS_PER_EVENT = 64 };
#define PAUSE_NS (100 * OS_NS_PER_MS) /* when the system has no descriptor for a connection */

struct iw_listener {
    struct tp_watch watch; /* the port's socket; its references keep the listener */
    struct tp_timer pause; /* armed while not accepting; holds a reference */
    struct tp_engine *eng;
    os_lock lock;  /* rank REQUESTS: held while on_request runs */
    bool closed;   /* [lock] */
    bool dropping; /* [lock] and the log knows it */
    const struct tp_listener_upcalls *up;
    void *ctx;
    struct iw_config cfg;     /* [const] */
    struct sn_list half_open; /* [lock] connections without a whole request */
    uint32_t half_open_count; /* [lock] */
};

static void on_free(struct tp_watch *w) {
    struct iw_listener *l = SN_CONTAINER(w, struct iw_listener, watch);
    os_lock_fini(&l->lock);
    os_free(l);
}

static void start_conn_locked(struct iw_listener *l, os_sock s, const struct os_addr *peer) {
    bool full = l->half_open_count >= HALF_OPEN_MAX;
    struct iw_conn *c = full ? NULL : iw_conn_create(l->eng, false);
    if (!c) {
        /* Whoever floods us does not fill the log as well. */
        if (!l->dropping)
            SN_LOG(SN_LOG_WARN, "iwarp: connections dropped: %s",
                   full ? "too many peers without an MPA request" : "out of memory");
        l->dropping = true;
        os_sock_close(s, true);
        return;
    }
    l->dropping = l->dropping && l->half_open_count > HALF_OPEN_MAX / 2;
    c->watch.sock = s;
    c->watch.events = OS_POLL_IN;
    c->remote = *peer;
    c->cfg = l->cfg;
    c->start = os_zalloc(MPA_START_MAX);
    c->listener = l;
    tp_watch_get(&l->watch);
    sn_list_push_back(&l->half_open, &c->listener_link);
    l->half_open_count++;
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    sn_status st = os_sock_local(s, &c->local);
    if (c->capture && st == SN_OK) iw_capture_start(c->capture, &c->local, &c->remote);
    if (st == SN_OK && !c->start) st = SN_E_NOMEM;
    if (st == SN_OK) st = tp_watch_add(l->eng, &c->watch);
    if (st == SN_OK) iw_arm(c, &c->timer, c->cfg.request_ns);
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
    if (st == SN_OK) return;
    sn_list_remove(&c->listener_link);
    l->half_open_count--;
    tp_watch_put(&l->watch); /* never the last: our caller has one */
    tp_watch_put(&c->watch);
}

/* The connection stays in the system's queue and its socket ready: come back later. */
static void pause_locked(struct iw_listener *l) {
    tp_watch_get(&l->watch);
    tp_watch_set(&l->watch, 0);
    if (!tp_timer_arm(&l->pause, PAUSE_NS)) tp_watch_put(&l->watch);
}

static void on_pause_over(struct tp_timer *t) {
    struct iw_listener *l = SN_CONTAINER(t, struct iw_listener, pause);
    os_lock_enter(&l->lock);
    if (!l->closed) tp_watch_set(&l->watch, OS_POLL_IN);
    os_lock_leave(&l->lock);
    tp_watch_put(&l->watch);
}

static void on_ready(struct tp_watch *w, uint32_t events) {
    struct iw_listener *l = SN_CONTAINER(w, struct iw_listener, watch);
    os_lock_enter(&l->lock);
    for (int i = 0; i < ACCEPTS_PER_EVENT && !l->closed; i++) {
        struct os_addr peer;
        os_sock s;
        sn_status st = os_sock_accept(l->watch.sock, &s, &peer);
        if (st == SN_E_AGAIN) break;
        if (st != SN_OK) {
            SN_LOG(SN_LOG_WARN, "iwarp: accept: %s", sn_status_text(st));
            pause_locked(l);
            break;
        }
        start_conn_locked(l, s, &peer);
    }
    os_lock_leave(&l->lock);
}

struct iw_listener *iw_listener_hold(struct iw_conn *c) {
    struct iw_listener *l = c->listener;
    if (l) tp_watch_get(&l->watch);
    return l;
}

void iw_listener_settle(struct iw_conn *c, struct iw_listener *l) {
    os_lock_enter(&l->lock);
    bool ours = !sn_list_empty(&c->listener_link);
    if (ours) {
        sn_list_remove(&c->listener_link);
        l->half_open_count--;
        c->listener = NULL;
        /* The listener's reference to c passes to the core, also if the peer has left meanwhile:
         * that is then the first thing it hears. */
        if (iw_state(c) != IW_REQUESTED || l->closed)
            tp_watch_put(&c->watch); /* our caller has one */
        else
            l->up->on_request(l->ctx, &c->base);
    }
    os_lock_leave(&l->lock);
    if (ours) tp_watch_put(&l->watch); /* the connection's */
    tp_watch_put(&l->watch);
}

sn_status iw_listen(struct tp_engine *eng, struct tp_port *port, uint32_t backlog,
                    const struct tp_listener_upcalls *up, void *ctx, struct tp_listener **out) {
    struct iw_listener *l = os_zalloc(sizeof *l);
    if (!l) return SN_E_NOMEM;
    l->watch = (struct tp_watch){ .sock = port->sock,
                                  .events = OS_POLL_IN,
                                  .quiet = true,
                                  .on_ready = on_ready,
                                  .on_free = on_free };
    os_ref_init(&l->watch.refs);
    l->eng = eng;
    l->up = up;
    l->ctx = ctx;
    l->cfg = iw_config_get();
    tp_timer_init(&l->pause, eng, on_pause_over);
    os_lock_init(&l->lock, OS_RANK_REQUESTS);
    sn_list_init(&l->half_open);
    sn_status st = os_sock_listen(port->sock, backlog);
    if (st == SN_OK) st = tp_watch_add(eng, &l->watch);
    if (st != SN_OK) {
        tp_watch_put(&l->watch);
        return st;
    }
    *out = (struct tp_listener *)l;
    return SN_OK;
}

void iw_listener_close(struct tp_listener *tl) {
    struct iw_listener *l = (struct iw_listener *)tl;
    struct sn_list *it;
    os_lock_enter(&l->lock);
    l->closed = true;
    if (tp_timer_cancel(&l->pause)) tp_watch_put(&l->watch); /* never the last: ours is there */
    tp_watch_remove(&l->watch);
    while ((it = sn_list_pop(&l->half_open)) != NULL) {
        struct iw_conn *c = SN_CONTAINER(it, struct iw_conn, listener_link);
        l->half_open_count--;
        os_lock_enter(&c->rx_lock);
        os_lock_enter(&c->tx_lock);
        c->listener = NULL;
        iw_drop_socket(c, false);
        os_lock_leave(&c->tx_lock);
        os_lock_leave(&c->rx_lock);
        tp_watch_put(&c->watch);
        tp_watch_put(&l->watch); /* the connection's; ours is still there */
    }
    os_lock_leave(&l->lock);
    tp_watch_put(&l->watch);
}
