/* SPDX-License-Identifier: MIT
 *
 * How a connection comes about: connect, accept, reject, complete, and the messages for them. The
 * active end brings the memory for the rings; both bring their board and table. Whether a peer can
 * be reached this way at all is known when connect returns: somebody of this user listens under the
 * name of the address, or the next transport is tried.
 */
#include <string.h>
#include <stdio.h>
#include "base/log.h"
#include "local/config.h"
#include "local/conn.h"
#include "os/prim/fault.h"

void lo_endpoint_name(const struct os_addr *addr, char name[LO_NAME_MAX + 1]) {
    char text[OS_ADDR_TEXT_MAX];
    os_addr_text(addr, text);
    snprintf(name, LO_NAME_MAX + 1, "softnd-%u-%s", LO_VERSION, text);
}

/* ---- messages ---- */

static struct lo_addr pack_addr(const struct os_addr *a) {
    struct lo_addr out = { .family = a->family, .port = a->port, .scope_id = a->scope_id };
    memcpy(out.ip, a->ip, sizeof out.ip);
    return out;
}

static struct os_addr unpack_addr(const struct lo_addr *a) {
    struct os_addr out = { .family = a->family, .port = a->port, .scope_id = a->scope_id };
    memcpy(out.ip, a->ip, sizeof out.ip);
    return out;
}

static void fill_hello(struct lo_conn *c, struct lo_hello *h, enum lo_hello_kind kind,
                       const struct tp_setup *setup) {
    memset(h, 0, sizeof *h);
    h->magic = LO_MAGIC;
    h->version = LO_VERSION;
    h->kind = kind;
    memcpy(h->adapter, c->hub->id, sizeof h->adapter);
    h->index = c->index;
    const struct os_peer_mark mark = os_peer_own_mark();
    h->mark_addr = mark.addr;
    h->mark_value = mark.value;
    h->from = pack_addr(&c->local);
    h->to = pack_addr(&c->remote);
    if (!setup) return;
    h->qp_id = setup->qp_id;
    h->pd_len = setup->pd_len;
    if (setup->pd_len) memcpy(h->pd, setup->pd, setup->pd_len);
}

/* Sends it with the connection's memory (if `whole`), our board and our table. */
static sn_status send_hello(struct lo_conn *c, struct lo_hello *h, const struct tp_setup *setup,
                            bool whole) {
    os_handle handles[3];
    size_t n = 0;
    if (whole) handles[n++] = c->shm.handle;
    handles[n++] = c->hub->board_shm.handle;
    if (setup->share && setup->share->shm.base) {
        lo_hub_watch_share(c->hub, setup->share);
        h->flags |= LO_H_TABLE;
        h->table_bytes = setup->share->bytes;
        handles[n++] = setup->share->shm.handle;
    }
    return os_local_send(c->watch.sock, h, sizeof *h, handles, n);
}

static bool hello_sane(const struct lo_hello *h, size_t got) {
    return got == sizeof *h && h->magic == LO_MAGIC && h->version == LO_VERSION &&
           h->pd_len <= TP_PRIVATE_DATA_MAX && (h->kind == LO_REJECT || h->index < LO_CONNS) &&
           (h->from.family == 4 || h->from.family == 6);
}

/* Receives one and its handles; on SN_OK they are the caller's. SN_E_WIRE: it makes no sense. */
static sn_status recv_hello(struct lo_conn *c, struct lo_hello *h, os_handle handles[3],
                            size_t *count) {
    size_t got = 0;
    *count = 3;
    sn_status st = os_local_recv(c->watch.sock, h, sizeof *h, &got, handles, count);
    if (st != SN_OK || hello_sane(h, got)) return st;
    while (*count != 0)
        os_handle_close(handles[--*count]);
    return SN_E_WIRE;
}

/* Takes the board and, if it came, the table. */
static sn_status meet_peer(struct lo_conn *c, const struct lo_hello *h, const os_handle *handles,
                           size_t count) {
    bool table = count == 2;
    c->peer_index = h->index;
    c->peer_qp_id = h->qp_id;
    c->peer_ird = SN_MIN(h->ird, (uint32_t)LO_DEPTH_CAP);
    c->peer_ord = SN_MIN(h->ord, (uint32_t)LO_DEPTH_CAP);
    c->pd_len = h->pd_len;
    memcpy(c->pd, h->pd, h->pd_len);
    return lo_peer_get(c->hub, h, &c->who, handles[0], table ? handles[1] : OS_HANDLE_NONE,
                       &c->peer);
}

static void close_handles(const os_handle *handles, size_t count) {
    for (size_t i = 0; i < count; i++)
        os_handle_close(handles[i]);
}

/* ---- active side ---- */

static bool on_this_host(const struct os_addr *peer, struct os_addr *local) {
    if (os_sock_route(peer, local) != SN_OK) return false;
    return os_addr_same_ip(peer, local) || os_addr_is_loopback(peer);
}

/* Who listens there; SN_E_UNSUPPORTED: nobody that we could talk to. */
static sn_status dial(const struct os_addr *peer, os_sock *s, struct os_local_peer *who) {
    char name[LO_NAME_MAX + 1];
    lo_endpoint_name(peer, name);
    sn_status st = os_local_connect(name, s);
    if (st != SN_OK) return st == SN_E_REFUSED ? st : SN_E_UNSUPPORTED;
    st = os_local_peer_info(*s, who);
    if (st == SN_OK && who->same_user) return SN_OK;
    os_sock_close(*s, false);
    *s = OS_SOCK_NONE;
    return SN_E_UNSUPPORTED;
}

/* The local address, with a port of its own. */
static sn_status take_address(struct lo_conn *c, struct tp_port *port,
                              const struct os_addr *route) {
    c->local = *route;
    c->local.port = 0;
    c->port = port;
    if (!port) {
        sn_status st = tp_port_bind(&c->local, TP_PORT_CONNECT, &c->port);
        if (st != SN_OK) return st;
    } else if (!os_addr_is_any(&port->addr)) {
        c->local = port->addr;
    }
    c->local.port = c->port->addr.port;
    return SN_OK;
}

static sn_status send_request(struct lo_conn *c, const struct tp_setup *setup, bool bound) {
    struct lo_hello h;
    sn_status st = os_shm_create(sizeof(struct lo_shared), &c->shm);
    if (st != SN_OK) return st;
    struct lo_shared *shared = c->shm.base;
    c->mine = &shared->side[0];
    c->theirs = &shared->side[1];
    st = lo_hub_join(c->hub, c, &c->index);
    if (st != SN_OK) return st;
    os_u32_store_relaxed(&c->joined, 1);
    fill_hello(c, &h, LO_REQUEST, setup);
    h.ird = setup->ird;
    h.ord = setup->ord;
    if (bound) h.flags |= LO_H_BOUND;
    st = send_hello(c, &h, setup, true);
    os_handle_close(c->shm.handle);
    c->shm.handle = OS_HANDLE_NONE;
    return st;
}

/* Without a trace: what was begun failed here, not at the peer. */
static void undo(struct lo_conn *c) {
    c->port = NULL; /* the caller's */
    if (os_u32_load_relaxed(&c->joined)) lo_hub_part(c->hub, c, c->index);
    lo_conn_put(c);
}

static sn_status start(struct lo_conn *c, struct tp_port *port, const struct os_addr *route,
                       const struct tp_setup *setup) {
    sn_status st = take_address(c, port, route);
    if (st == SN_OK) st = send_request(c, setup, port != NULL);
    if (st != SN_OK) return st;
    c->watch.events = OS_POLL_IN;
    os_lock_enter(&c->rx_lock); /* keep the engine out until we are done */
    lo_tx_enter(c);
    st = tp_watch_add(c->eng, &c->watch);
    if (st == SN_OK) lo_arm(c, &c->timer, LO_ANSWER_NS);
    lo_tx_leave(c);
    os_lock_leave(&c->rx_lock);
    return st;
}

sn_status lo_connect(struct tp_engine *eng, struct tp_port *port, const struct os_addr *peer,
                     const struct tp_setup *setup, struct tp_conn **out) {
    struct lo_config cfg = lo_config_get();
    struct os_addr route;
    struct os_local_peer who;
    os_sock s = OS_SOCK_NONE;
    if (cfg.use == LO_USE_NEVER || !on_this_host(peer, &route)) return SN_E_UNSUPPORTED;
    sn_status st = dial(peer, &s, &who);
    struct lo_conn *c = NULL;
    struct lo_hub *hub;
    if (st == SN_OK) st = lo_hub_get(eng, &hub);
    if (st == SN_OK && !(c = lo_conn_create(eng, hub, true))) st = SN_E_NOMEM;
    if (st == SN_OK) {
        c->watch.sock = s;
        c->who = who;
        c->remote = *peer;
        c->up = setup->up;
        tp_events_set_owner_locked(&c->events, setup->up, setup->owner);
        c->qp = setup->qp;
        c->patient = setup->shared_receives;
        c->share = setup->share;
        st = start(c, port, &route, setup);
        if (st != SN_OK) {
            struct tp_port *own = port ? NULL : c->port;
            undo(c); /* closes the socket */
            tp_port_free(own);
        }
    } else {
        os_sock_close(s, false);
    }
    if (st == SN_OK) {
        *out = &c->base;
        return SN_OK;
    }
    if (cfg.use != LO_USE_FORCED) return SN_E_UNSUPPORTED;
    if (st == SN_E_UNSUPPORTED) st = SN_E_REFUSED;
    tp_port_free(port);
    return st;
}

static void take_reply(struct lo_conn *c) {
    struct lo_hello h;
    os_handle handles[3];
    size_t count;
    sn_status st = recv_hello(c, &h, handles, &count);
    if (st == SN_E_AGAIN) return;
    if (st == SN_OK && h.kind == LO_REJECT) {
        close_handles(handles, count);
        c->peer_ird = c->peer_ord = 0;
        c->pd_len = h.pd_len;
        memcpy(c->pd, h.pd, h.pd_len);
        lo_fail(c, h.flags & LO_H_EXISTS ? SN_E_ADDR_EXISTS : SN_E_REFUSED);
        return;
    }
    if (st == SN_OK && (h.kind != LO_ACCEPT || count != ((h.flags & LO_H_TABLE) ? 2u : 1u))) {
        close_handles(handles, count);
        st = SN_E_WIRE;
    }
    if (st == SN_OK) st = meet_peer(c, &h, handles, count);
    if (st != SN_OK) {
        lo_fail(c, SN_E_REFUSED);
        return;
    }
    c->can_copy = c->peer->can_copy && (h.flags & LO_H_MAY_COPY);
    c->peer_can_pull = (h.flags & LO_H_CAN_PULL) && lo_peer_watched(c->peer);
    lo_disarm(c, &c->timer);
    lo_set_state(c, LO_ANSWERED);
    tp_events_add(&c->events, TP_EV_REPLY, SN_OK);
}

sn_status lo_complete(struct tp_conn *tc, uint32_t ird, uint32_t ord) {
    struct lo_conn *c = lo_conn_of(tc);
    sn_status st = SN_E_ABORTED;
    os_lock_enter(&c->rx_lock);
    lo_tx_enter(c);
    lo_setup_ready(c); /* the peer may have left */
    if (lo_state(c) == LO_ANSWERED) {
        c->ird = SN_MIN(SN_MAX(ird, c->peer_ord), (uint32_t)LO_DEPTH_CAP);
        c->ord = SN_MIN(SN_MIN(ord, c->peer_ird), (uint32_t)LO_DEPTH_CAP);
        os_u32_store_seqcst(&c->mine->status, LO_ST_OPEN);
        lo_tx_note(c, LO_READY,
                   (c->can_copy ? LO_F_CAN_PULL : 0) |
                       (lo_peer_watched(c->peer) ? LO_F_MAY_COPY : 0));
        lo_set_state(c, LO_OPEN);
        lo_tx_ring(c);
        st = SN_OK;
    }
    lo_tx_leave(c);
    os_lock_leave(&c->rx_lock);
    lo_conn_work(c);
    return st;
}

/* ---- passive side ---- */

struct same_pair {
    const struct lo_conn *self;
};

static bool has_same_pair(struct lo_conn *c, const void *arg) {
    const struct lo_conn *self = ((const struct same_pair *)arg)->self;
    return c != self && !c->active && c->local.port == self->local.port &&
           c->remote.port == self->remote.port && os_addr_same_ip(&c->local, &self->local) &&
           os_addr_same_ip(&c->remote, &self->remote);
}

static sn_status take_memory(struct lo_conn *c, const struct lo_hello *h, const os_handle *handles,
                             size_t count) {
    sn_status st = os_shm_open(handles[0], sizeof(struct lo_shared), &c->shm);
    if (st != SN_OK) {
        close_handles(handles + 1, count - 1);
        return st;
    }
    os_handle_close(c->shm.handle);
    c->shm.handle = OS_HANDLE_NONE;
    struct lo_shared *shared = c->shm.base;
    c->mine = &shared->side[1];
    c->theirs = &shared->side[0];
    st = meet_peer(c, h, handles + 1, count - 1);
    if (st == SN_OK) st = lo_hub_join(c->hub, c, &c->index);
    if (st == SN_OK) os_u32_store_relaxed(&c->joined, 1);
    return st;
}

static void send_reject(struct lo_conn *c, uint32_t flags, const void *pd, uint32_t pd_len) {
    struct lo_hello h;
    struct tp_setup setup = { .pd = pd, .pd_len = pd_len };
    fill_hello(c, &h, LO_REJECT, &setup);
    h.flags = flags;
    sn_status st = os_local_send(c->watch.sock, &h, sizeof h, NULL, 0);
    if (st != SN_OK) SN_LOG(SN_LOG_DEBUG, "local: reject not sent: %s", sn_status_text(st));
}

static void take_request(struct lo_conn *c) {
    struct lo_hello h;
    os_handle handles[3];
    size_t count;
    sn_status st = recv_hello(c, &h, handles, &count);
    if (st == SN_E_AGAIN) return;
    if (st == SN_OK && (h.kind != LO_REQUEST || count != ((h.flags & LO_H_TABLE) ? 3u : 2u))) {
        close_handles(handles, count);
        st = SN_E_WIRE;
    }
    if (st == SN_OK) {
        c->remote = unpack_addr(&h.from);
        st = take_memory(c, &h, handles, count);
    }
    struct same_pair pair = { c };
    if (st == SN_OK && (h.flags & LO_H_BOUND) && lo_hub_any(c->hub, has_same_pair, &pair)) {
        send_reject(c, LO_H_EXISTS, NULL, 0);
        st = SN_E_ADDR_EXISTS;
    }
    if (st != SN_OK) {
        SN_LOG(SN_LOG_INFO, "local: a connection request came to nothing: %s", sn_status_text(st));
        lo_fail(c, st);
        return;
    }
    lo_disarm(c, &c->timer);
    lo_set_state(c, LO_REQUESTED);
    c->request_settled = true;
}

sn_status lo_accept(struct tp_conn *tc, const struct tp_setup *setup) {
    struct lo_conn *c = lo_conn_of(tc);
    sn_status st = SN_E_ABORTED;
    os_lock_enter(&c->events.lock);
    os_lock_enter(&c->rx_lock);
    lo_tx_enter(c);
    lo_setup_ready(c); /* the peer may have left */
    if (lo_state(c) == LO_REQUESTED) {
        struct lo_hello h;
        c->up = setup->up;
        tp_events_set_owner_locked(&c->events, setup->up, setup->owner);
        c->qp = setup->qp;
        c->patient = setup->shared_receives;
        c->share = setup->share;
        c->ird = SN_MIN(setup->ird, (uint32_t)LO_DEPTH_CAP);
        c->ord = SN_MIN(SN_MIN(setup->ord, c->peer_ird), (uint32_t)LO_DEPTH_CAP);
        fill_hello(c, &h, LO_ACCEPT, setup);
        h.ird = c->ird;
        h.ord = c->ord;
        if (c->peer->can_copy) h.flags |= LO_H_CAN_PULL;
        if (lo_peer_watched(c->peer)) h.flags |= LO_H_MAY_COPY;
        os_u32_store_seqcst(&c->mine->status, LO_ST_OPEN);
        lo_set_state(c, LO_WAIT_READY);
        lo_arm(c, &c->timer, LO_ANSWER_NS);
        st = send_hello(c, &h, setup, false) == SN_OK ? SN_OK : SN_E_ABORTED;
        if (st != SN_OK) lo_fail(c, SN_E_PEER_GONE);
    }
    if (st != SN_OK) tp_events_forget(&c->events); /* this answer says it */
    lo_tx_leave(c);
    os_lock_leave(&c->rx_lock);
    os_lock_leave(&c->events.lock);
    tp_events_deliver(&c->events);
    return st;
}

sn_status lo_reject(struct tp_conn *tc, const void *pd, uint32_t pd_len) {
    struct lo_conn *c = lo_conn_of(tc);
    sn_status st = SN_OK;
    os_lock_enter(&c->events.lock);
    c->events.closed = true;
    os_lock_enter(&c->rx_lock);
    lo_tx_enter(c);
    lo_setup_ready(c); /* the peer may have left */
    if (lo_state(c) == LO_REQUESTED) {
        send_reject(c, 0, pd, pd_len);
        lo_end_use(c);
    } else if (lo_state(c) == LO_ANSWERED) {
        lo_end_use(c);
    } else {
        st = SN_E_ABORTED;
    }
    lo_tx_leave(c);
    os_lock_leave(&c->rx_lock);
    os_lock_leave(&c->events.lock);
    return st;
}

void lo_setup_ready(struct lo_conn *c) {
    uint8_t byte[1];
    size_t got;
    if (c->watch.sock == OS_SOCK_NONE) return;
    switch (lo_state(c)) {
    case LO_WAIT_REPLY:
        take_reply(c);
        break;
    case LO_WAIT_REQUEST:
        take_request(c);
        break;
    case LO_ANSWERED:
    case LO_REQUESTED: /* nothing comes here but the end, and wake-ups */
        for (;;) {
            sn_status st = os_local_recv(c->watch.sock, byte, sizeof byte, &got, NULL, NULL);
            if (st == SN_OK) {
                lo_hub_heard(c->hub);
                continue;
            }
            if (st != SN_E_AGAIN) lo_fail(c, SN_E_PEER_GONE);
            return;
        }
    default:
        break;
    }
}
