/* SPDX-License-Identifier: MIT
 *
 * Accepts connections at the end point that is named after a port's address, checks whose they are
 * and reads their requests. A connection belongs to the listener until its request is here; only so
 * many may be that far and no further.
 */
#include "base/log.h"
#include "local/config.h"
#include "local/conn.h"
#include "os/prim/fault.h"

enum { HALF_OPEN_MAX = 4096, ACCEPTS_PER_EVENT = 64 };

struct lo_listener {
    struct tp_watch watch; /* its references keep the listener */
    struct tp_engine *eng;
    struct lo_hub *hub;
    struct os_addr addr;
    os_lock lock; /* rank REQUESTS: held while on_request runs */
    bool closed;  /* [lock] */
    const struct tp_listener_upcalls *up;
    void *ctx;
    struct sn_list half_open; /* [lock] connections without a request */
    uint32_t half_open_count; /* [lock] */
};

static void on_free(struct tp_watch *w) {
    struct lo_listener *l = SN_CONTAINER(w, struct lo_listener, watch);
    os_sock_close(l->watch.sock, false);
    os_lock_fini(&l->lock);
    os_free(l);
}

/* Takes the socket. The connection, referenced, for its first look at the socket; NULL if it came
 * to nothing. */
static struct lo_conn *start_conn_locked(struct lo_listener *l, os_sock s) {
    struct os_local_peer who;
    struct lo_conn *c = NULL;
    sn_status st = os_local_peer_info(s, &who);
    if (st == SN_OK && !who.same_user) st = SN_E_PERM;
    if (st == SN_OK && l->half_open_count >= HALF_OPEN_MAX) st = SN_E_RESOURCES;
    if (st == SN_OK && !(c = lo_conn_create(l->eng, l->hub, false))) st = SN_E_NOMEM;
    if (st != SN_OK) {
        SN_LOG(SN_LOG_INFO, "local: connection dropped: %s", sn_status_text(st));
        os_sock_close(s, false);
        return NULL;
    }
    c->watch.sock = s;
    c->watch.events = OS_POLL_IN;
    c->who = who;
    c->local = l->addr;
    c->listener = l;
    tp_watch_get(&l->watch);
    sn_list_push_back(&l->half_open, &c->listener_link);
    l->half_open_count++;
    lo_conn_get(c);
    os_lock_enter(&c->rx_lock);
    lo_tx_enter(c);
    st = tp_watch_add(l->eng, &c->watch);
    if (st == SN_OK) lo_arm(c, &c->timer, LO_REQUEST_NS);
    lo_tx_leave(c);
    os_lock_leave(&c->rx_lock);
    if (st == SN_OK) return c;
    sn_list_remove(&c->listener_link);
    l->half_open_count--;
    c->listener = NULL;
    tp_watch_put(&l->watch); /* never the last: our caller has one */
    lo_conn_put(c);
    lo_conn_put(c);
    return NULL;
}

static void on_ready(struct tp_watch *w, uint32_t events) {
    struct lo_listener *l = SN_CONTAINER(w, struct lo_listener, watch);
    for (int i = 0; i < ACCEPTS_PER_EVENT; i++) {
        os_sock s;
        struct lo_conn *c = NULL;
        os_lock_enter(&l->lock);
        sn_status st = l->closed ? SN_E_AGAIN : os_local_accept(l->watch.sock, &s);
        if (st == SN_OK) c = start_conn_locked(l, s);
        os_lock_leave(&l->lock);
        if (st != SN_OK) {
            if (st != SN_E_AGAIN) SN_LOG(SN_LOG_WARN, "local: accept: %s", sn_status_text(st));
            return;
        }
        if (!c) continue;
        c->watch.on_ready(&c->watch, OS_POLL_IN); /* the request is mostly there already */
        lo_conn_put(c);
    }
}

void lo_listener_settle(struct lo_listener *l, struct lo_conn *c) {
    os_lock_enter(&l->lock);
    bool ours = !sn_list_empty(&c->listener_link);
    if (ours) {
        sn_list_remove(&c->listener_link);
        l->half_open_count--;
        /* The listener's reference to c passes to the core, also if the peer has left meanwhile:
         * that is then the first thing it hears. */
        if (lo_state(c) != LO_REQUESTED || l->closed)
            lo_conn_put(c); /* our caller has one */
        else
            l->up->on_request(l->ctx, &c->base);
    }
    os_lock_leave(&l->lock);
    tp_watch_put(&l->watch);
}

sn_status lo_listen(struct tp_engine *eng, struct tp_port *port, uint32_t backlog,
                    const struct tp_listener_upcalls *up, void *ctx, struct tp_listener **out) {
    struct lo_config cfg = lo_config_get();
    struct lo_hub *hub;
    char name[LO_NAME_MAX + 1];
    if (cfg.use == LO_USE_NEVER) return SN_E_UNSUPPORTED;
    sn_status st = lo_hub_get(eng, &hub);
    struct lo_listener *l = st == SN_OK ? os_zalloc(sizeof *l) : NULL;
    if (!l) return SN_E_NOMEM;
    l->watch = (struct tp_watch){ .sock = OS_SOCK_NONE,
                                  .events = OS_POLL_IN,
                                  .quiet = true,
                                  .on_ready = on_ready,
                                  .on_free = on_free };
    os_ref_init(&l->watch.refs);
    l->eng = eng;
    l->hub = hub;
    l->addr = port->addr;
    l->up = up;
    l->ctx = ctx;
    os_lock_init(&l->lock, OS_RANK_REQUESTS);
    sn_list_init(&l->half_open);
    lo_endpoint_name(&port->addr, name);
    st = os_local_listen(name, backlog, &l->watch.sock);
    if (st == SN_OK) st = tp_watch_add(eng, &l->watch);
    if (st != SN_OK) {
        SN_LOG(SN_LOG_WARN, "local: cannot listen as %s: %s", name, sn_status_text(st));
        tp_watch_put(&l->watch);
        return cfg.use == LO_USE_FORCED ? st : SN_E_UNSUPPORTED;
    }
    *out = (struct tp_listener *)l;
    return SN_OK;
}

void lo_listener_close(struct tp_listener *tl) {
    struct lo_listener *l = (struct lo_listener *)tl;
    struct sn_list *it;
    os_lock_enter(&l->lock);
    l->closed = true;
    tp_watch_remove(&l->watch);
    os_sock_close(l->watch.sock, false); /* the name is free from here on */
    l->watch.sock = OS_SOCK_NONE;
    while ((it = sn_list_pop(&l->half_open)) != NULL) {
        struct lo_conn *c = SN_CONTAINER(it, struct lo_conn, listener_link);
        l->half_open_count--;
        os_lock_enter(&c->rx_lock);
        lo_tx_enter(c);
        bool linked = c->listener != NULL; /* else somebody is about to settle it */
        c->listener = NULL;
        if (lo_state(c) != LO_ENDED) lo_end_use(c);
        lo_tx_leave(c);
        os_lock_leave(&c->rx_lock);
        lo_conn_put(c);
        if (linked) tp_watch_put(&l->watch); /* the connection's; ours is still there */
    }
    os_lock_leave(&l->lock);
    tp_watch_put(&l->watch);
}
