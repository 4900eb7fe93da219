/* SPDX-License-Identifier: MIT
 *
 * A listener has one port per address and one transport listener per port and transport. Requests
 * meet pending gets in order; those that find none wait in a queue up to the backlog. While a
 * request is queued its struct request owns the connection's events; a peer that leaves meanwhile
 * is dropped, but not from the upcall that tells: the request moves to `gone` and is closed by
 * whoever comes next.
 */
#include "os/prim/fault.h"
#include "rdma/connector.h"

enum {
    QUEUE_MAX = 4096, /* requests queued where the user sets no limit: bounds memory */
    PORT_TRIES = 16   /* for one port that is free on all addresses */
};

enum listener_state { LN_NEW, LN_BOUND, LN_LISTENING, LN_CLOSED };

struct rd_listener {
    struct rd_adapter *ad;
    os_lock lock;              /* rank CONN */
    enum listener_state state; /* [lock] */
    struct os_addr addr;       /* [lock] as bound, with the real port */
    struct tp_port **ports;    /* [lock] port_count of them */
    size_t port_count;
    struct tp_listener **open;      /* [lock] open_count transport listeners */
    const struct tp_ops **open_ops; /* [lock] of each */
    size_t open_count;
    uint32_t queue_max;   /* [lock] */
    uint32_t queue_count; /* [lock] */
    struct sn_list queue; /* [lock] struct request */
    struct sn_list gone;  /* [lock] abandoned ones, to be closed */
    struct sn_list gets;  /* [lock] struct get, in issue order */
    struct rd_busy busy;
};

struct request {
    struct sn_list link; /* [listener's lock] on queue or gone; self-linked: handed out */
    struct rd_listener *l;
    struct tp_conn *conn;
    bool abandoned; /* [listener's lock] */
};

struct get {
    struct sn_list link;
    struct rd_async *async;
    struct rd_connector *c; /* a reference */
};

/* ---- create and bind ---- */

sn_status rd_listener_create(struct rd_adapter *ad, struct rd_listener **out) {
    struct rd_listener *l = os_zalloc(sizeof *l);
    if (!l) return SN_E_NOMEM;
    os_lock_init(&l->lock, OS_RANK_CONN);
    sn_list_init(&l->queue);
    sn_list_init(&l->gone);
    sn_list_init(&l->gets);
    rd_adapter_get(ad);
    l->ad = ad;
    *out = l;
    return SN_OK;
}

static void free_listener(struct rd_listener *l) {
    struct rd_adapter *ad = l->ad;
    os_lock_fini(&l->lock);
    os_free(l->open);
    os_free(l->open_ops);
    os_free(l);
    rd_adapter_put(ad);
}

static void free_ports(struct tp_port **ports, size_t count) {
    for (size_t i = 0; i < count; i++)
        tp_port_free(ports[i]);
    os_free(ports);
}

/* One port on each address; with port 0 they all get the number that the first one found. */
static sn_status bind_each(const struct os_addr *addrs, size_t count, uint16_t port,
                           struct tp_port **ports) {
    sn_status st = SN_OK;
    size_t n = 0;
    for (; n < count && st == SN_OK; n++) {
        struct os_addr want = addrs[n];
        want.port = port;
        st = tp_port_bind(&want, TP_PORT_LISTEN, &ports[n]);
        if (st != SN_OK) break;
        port = ports[n]->addr.port;
    }
    if (st == SN_OK) return SN_OK;
    while (n-- > 0) {
        tp_port_free(ports[n]);
        ports[n] = NULL;
    }
    return st;
}

static sn_status bind_all(const struct os_addr *addrs, size_t count, uint16_t port,
                          struct tp_port **ports) {
    sn_status st = SN_E_ADDR_IN_USE;
    uint32_t tries = port == 0 && count > 1 ? PORT_TRIES : 1;
    for (uint32_t i = 0; i < tries && st == SN_E_ADDR_IN_USE; i++)
        st = bind_each(addrs, count, port, ports);
    return st;
}

/* The addresses that `local` stands for. *out is freed with os_free. */
static sn_status expand(struct rd_adapter *ad, const struct os_addr *local, struct os_addr **out,
                        size_t *count) {
    struct os_addr *addrs = os_zalloc(OS_NETIF_ADDRS_MAX * sizeof *addrs);
    if (!addrs) return SN_E_NOMEM;
    size_t n = OS_NETIF_ADDRS_MAX, kept = 0;
    sn_status st = SN_OK;
    if (os_addr_is_any(local)) {
        st = rd_adapter_addrs(ad, addrs, &n);
        for (size_t i = 0; st == SN_OK && i < n; i++)
            if (addrs[i].family == local->family) addrs[kept++] = addrs[i];
        if (st == SN_OK && kept == 0) st = SN_E_ADDR_INVALID;
    } else {
        addrs[kept++] = *local;
    }
    if (st != SN_OK) {
        os_free(addrs);
        return st;
    }
    *out = addrs;
    *count = kept;
    return SN_OK;
}

/* The ports for `local`, without touching the listener. */
static sn_status reserve(struct rd_adapter *ad, const struct os_addr *local,
                         struct tp_port ***out_ports, size_t *count) {
    struct os_addr *addrs;
    sn_status st = expand(ad, local, &addrs, count);
    if (st != SN_OK) return st;
    struct tp_port **ports = os_zalloc(*count * sizeof(struct tp_port *));
    st = ports ? bind_all(addrs, *count, local->port, ports) : SN_E_NOMEM;
    os_free(addrs);
    if (st == SN_OK)
        *out_ports = ports;
    else
        os_free(ports);
    return st;
}

sn_status rd_listener_bind(struct rd_listener *l, const struct os_addr *local) {
    os_lock_enter(&l->lock);
    bool fresh = l->state == LN_NEW;
    os_lock_leave(&l->lock);
    if (!fresh) return SN_E_ADDR_BOUND;
    sn_status st = rd_check_local(l->ad, local);
    if (st != SN_OK) return st;
    struct tp_port **ports;
    size_t count;
    st = reserve(l->ad, local, &ports, &count);
    if (st != SN_OK) return st;
    os_lock_enter(&l->lock);
    if (l->state == LN_NEW) {
        l->state = LN_BOUND;
        l->ports = ports;
        l->port_count = count;
        l->addr = *local;
        l->addr.port = ports[0]->addr.port;
        ports = NULL;
    }
    os_lock_leave(&l->lock);
    if (!ports) return SN_OK;
    free_ports(ports, count);
    return SN_E_ADDR_BOUND;
}

sn_status rd_listener_local_addr(struct rd_listener *l, struct os_addr *out) {
    os_lock_enter(&l->lock);
    bool bound = l->state == LN_BOUND || l->state == LN_LISTENING;
    if (bound) *out = l->addr;
    os_lock_leave(&l->lock);
    return bound ? SN_OK : SN_E_STATE;
}

/* ---- requests ---- */

static void refuse(struct tp_conn *conn) {
    if (conn->ops->reject(conn, NULL, 0) != SN_OK) conn->ops->close(conn);
    conn->ops->release(conn);
}

/* Closes what was abandoned. No lock held, not in an event upcall. */
static void bury(struct rd_listener *l) {
    struct sn_list gone;
    sn_list_init(&gone);
    os_lock_enter(&l->lock);
    sn_list_splice(&gone, &l->gone);
    os_lock_leave(&l->lock);
    for (struct sn_list *it; (it = sn_list_pop(&gone)) != NULL;) {
        struct request *r = SN_CONTAINER(it, struct request, link);
        r->conn->ops->close(r->conn);
        r->conn->ops->release(r->conn);
        os_free(r);
    }
}

static void request_abandoned(void *owner) {
    struct request *r = owner;
    struct rd_listener *l = r->l;
    os_lock_enter(&l->lock);
    r->abandoned = true;
    if (!sn_list_empty(&r->link)) { /* else: being handed out, the taker looks */
        sn_list_remove(&r->link);
        sn_list_push_back(&l->gone, &r->link);
        l->queue_count--;
        rd_count_any(&l->ad->counters.requests_abandoned, 1);
    }
    os_lock_leave(&l->lock);
}

static const struct tp_upcalls queued_upcalls = { .on_abandoned = request_abandoned };

static void finish_get(struct rd_listener *l, struct get *g, sn_status st) {
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&l->lock);
    rd_fire_add(&f, &l->busy, g->async, st);
    os_lock_leave(&l->lock);
    if (st != SN_OK) rd_connector_wait_over(g->c);
    rd_connector_put(g->c);
    os_free(g);
    rd_fire_run(&f);
}

/* Back to the front of the queue: its get's connector was destroyed. */
static void put_back(struct rd_listener *l, struct request *r) {
    os_lock_enter(&l->lock);
    if (r->abandoned) {
        sn_list_push_back(&l->gone, &r->link);
    } else {
        sn_list_push_back(l->queue.next, &r->link);
        l->queue_count++;
    }
    os_lock_leave(&l->lock);
}

/* Pairs requests and gets, oldest with oldest. No lock held. */
static void match(struct rd_listener *l) {
    for (;;) {
        os_lock_enter(&l->lock);
        bool both = !sn_list_empty(&l->queue) && !sn_list_empty(&l->gets);
        struct request *r = NULL;
        struct get *g = NULL;
        if (both) {
            r = SN_CONTAINER(sn_list_pop(&l->queue), struct request, link);
            g = SN_CONTAINER(sn_list_pop(&l->gets), struct get, link);
            l->queue_count--;
        }
        os_lock_leave(&l->lock);
        if (!both) return;
        /* From here on the connector owns the connection's events, not r. */
        bool taken = rd_connector_take_request(g->c, r->conn);
        if (taken)
            os_free(r);
        else
            put_back(l, r);
        finish_get(l, g, taken ? SN_OK : SN_E_CANCELED);
    }
}

static void on_request(void *ctx, struct tp_conn *conn) {
    struct rd_listener *l = ctx;
    rd_count_any(&l->ad->counters.requests_in, 1);
    bury(l);
    struct request *r = os_zalloc(sizeof *r);
    if (!r) {
        rd_count_any(&l->ad->counters.requests_refused, 1);
        refuse(conn);
        return;
    }
    sn_list_init(&r->link);
    r->l = l;
    r->conn = conn;
    tp_conn_set_owner(conn, &queued_upcalls, r);
    os_lock_enter(&l->lock);
    bool full =
        l->state != LN_LISTENING || (l->queue_count >= l->queue_max && sn_list_empty(&l->gets));
    if (r->abandoned) {
        sn_list_push_back(&l->gone, &r->link);
        rd_count_any(&l->ad->counters.requests_abandoned, 1);
    } else if (!full) {
        sn_list_push_back(&l->queue, &r->link);
        l->queue_count++;
    }
    bool refused = full && !r->abandoned;
    os_lock_leave(&l->lock);
    if (refused) {
        rd_count_any(&l->ad->counters.requests_refused, 1);
        refuse(conn);
        os_free(r);
        return;
    }
    match(l);
}

static const struct tp_listener_upcalls listener_upcalls = { .on_request = on_request };

/* ---- listen ---- */

static void close_open(struct rd_listener *l) {
    for (size_t i = 0; i < l->open_count; i++)
        l->open_ops[i]->listener_close(l->open[i]);
    l->open_count = 0;
}

static void refuse_queue(struct rd_listener *l) {
    bury(l);
    for (;;) {
        os_lock_enter(&l->lock);
        struct sn_list *it = sn_list_pop(&l->queue);
        if (it) l->queue_count--;
        os_lock_leave(&l->lock);
        if (!it) break;
        struct request *r = SN_CONTAINER(it, struct request, link);
        refuse(r->conn); /* after it no upcall knows r */
        os_free(r);
    }
    bury(l);
}

static sn_status open_all(struct rd_listener *l, uint32_t backlog) {
    size_t most = l->port_count * rd_transport_count;
    if (!l->open) l->open = os_zalloc(most * sizeof *l->open);
    if (!l->open_ops) l->open_ops = os_zalloc(most * sizeof *l->open_ops);
    if (!l->open || !l->open_ops) return SN_E_NOMEM;
    for (size_t i = 0; i < most; i++) {
        const struct tp_ops *ops = rd_transports[i % rd_transport_count];
        struct tp_port *port = l->ports[i / rd_transport_count];
        sn_status st =
            ops->listen(l->ad->eng, port, backlog, &listener_upcalls, l, &l->open[l->open_count]);
        if (st == SN_E_UNSUPPORTED) continue;
        if (st != SN_OK) return st;
        l->open_ops[l->open_count++] = ops;
    }
    return l->open_count ? SN_OK : SN_E_UNSUPPORTED;
}

sn_status rd_listener_listen(struct rd_listener *l, uint32_t backlog) {
    os_lock_enter(&l->lock);
    bool ok = l->state == LN_BOUND;
    if (ok) {
        l->state = LN_LISTENING; /* before the first request can come */
        l->queue_max = backlog == 0 || backlog > QUEUE_MAX ? QUEUE_MAX : backlog;
    }
    os_lock_leave(&l->lock);
    if (!ok) return SN_E_STATE;
    sn_status st = open_all(l, backlog);
    if (st == SN_OK) return SN_OK;
    close_open(l);
    os_lock_enter(&l->lock);
    l->state = LN_BOUND;
    os_lock_leave(&l->lock);
    refuse_queue(l);
    return st;
}

sn_status rd_listener_get_request(struct rd_listener *l, struct rd_connector *c,
                                  struct rd_async *a) {
    bury(l);
    if (c->ad != l->ad) return SN_E_PARAM;
    struct get *g = os_zalloc(sizeof *g);
    if (!g) return SN_E_NOMEM;
    sn_status st = rd_connector_wait(c);
    if (st != SN_OK) {
        os_free(g);
        return st;
    }
    sn_list_init(&a->link);
    g->async = a;
    g->c = c;
    rd_connector_get(c);
    os_lock_enter(&l->lock);
    bool ok = l->state == LN_LISTENING;
    if (ok) sn_list_push_back(&l->gets, &g->link);
    os_lock_leave(&l->lock);
    if (!ok) {
        rd_connector_wait_over(c);
        rd_connector_put(c);
        os_free(g);
        return SN_E_STATE;
    }
    match(l);
    return SN_PENDING;
}

void rd_listener_cancel(struct rd_listener *l) {
    struct sn_list gets;
    sn_list_init(&gets);
    os_lock_enter(&l->lock);
    sn_list_splice(&gets, &l->gets);
    os_lock_leave(&l->lock);
    for (struct sn_list *it; (it = sn_list_pop(&gets)) != NULL;)
        finish_get(l, SN_CONTAINER(it, struct get, link), SN_E_CANCELED);
}

void rd_listener_destroy(struct rd_listener *l) {
    os_lock_enter(&l->lock);
    l->state = LN_CLOSED;
    os_lock_leave(&l->lock);
    close_open(l);
    rd_listener_cancel(l);
    refuse_queue(l);
    rd_busy_wait(&l->busy);
    free_ports(l->ports, l->port_count);
    free_listener(l);
}
