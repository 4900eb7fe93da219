/* SPDX-License-Identifier: MIT */
#include "fake_transport.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/thread.h"

enum event_kind { EV_REQUEST, EV_REPLY, EV_ESTABLISHED, EV_ABANDONED, EV_DISCONNECTED };

struct event {
    struct sn_list link;
    enum event_kind kind;
    struct fake_conn *c;
    struct tp_listener *l;
    sn_status st;
};

struct tp_listener {
    struct sn_list link;
    struct os_addr addr;
    const struct tp_listener_upcalls *up;
    void *ctx;
    pthread_mutex_t busy; /* held while on_request runs */
    bool closed;
    uint32_t refs; /* [fake.m] */
};

struct tp_engine {
    uint32_t unused;
};

struct fake_pair {
    os_atomic_u32 refs; /* each end's owner, each event on its way */
    struct fake_conn end[2];
};

static struct {
    pthread_mutex_t m;
    struct sn_list events, listeners, timers;
    uint32_t conns, ports, engines;
    sn_status fail[FAKE_OPS];
    bool early, silent;
    uint32_t watches;
    os_atomic_u32 progress_calls, cool_calls, empty_calls, thread_stop;
    struct fake_conn *last_active, *last_passive;
    uint16_t next_port;
    pthread_t thread;
    bool ready;
} fake = { .m = PTHREAD_MUTEX_INITIALIZER };

#define CONN(p) ((struct fake_conn *)(p))

static void lock_fake(void) {
    pthread_mutex_lock(&fake.m);
    if (!fake.ready) {
        sn_list_init(&fake.events);
        sn_list_init(&fake.listeners);
        sn_list_init(&fake.timers);
        fake.next_port = 50000;
        fake.watches = 1;
        fake.ready = true;
    }
}
static void unlock_fake(void) {
    pthread_mutex_unlock(&fake.m);
}

bool fake_reset(void) {
    while (fake_run()) {
    }
    lock_fake();
    bool clean = !fake.conns && !fake.ports && !fake.engines && sn_list_empty(&fake.listeners);
    if (!clean)
        fprintf(stderr, "left over: %u connections, %u ports, %u engines, %s\n", fake.conns,
                fake.ports, fake.engines,
                sn_list_empty(&fake.listeners) ? "no listener" : "listeners");
    fake.conns = fake.ports = fake.engines = 0;
    sn_list_init(&fake.listeners);
    sn_list_init(&fake.timers);
    memset(fake.fail, 0, sizeof fake.fail);
    fake.early = fake.silent = false;
    fake.watches = 1;
    fake.last_active = fake.last_passive = NULL;
    os_u32_store_relaxed(&fake.progress_calls, 0);
    os_u32_store_relaxed(&fake.cool_calls, 0);
    os_u32_store_relaxed(&fake.empty_calls, 0);
    unlock_fake();
    return clean;
}

uint32_t fake_conns_alive(void) {
    lock_fake();
    uint32_t n = fake.conns;
    unlock_fake();
    return n;
}
uint32_t fake_ports_alive(void) {
    lock_fake();
    uint32_t n = fake.ports;
    unlock_fake();
    return n;
}
void fake_fail_next(enum fake_op op, sn_status st) {
    fake.fail[op] = st;
}
void fake_set_early(bool early) {
    fake.early = early;
}
void fake_set_silent(bool silent) {
    fake.silent = silent;
}
void fake_set_watches(uint32_t n) {
    fake.watches = n;
}
uint32_t fake_progress_calls(void) {
    return os_u32_load_relaxed(&fake.progress_calls);
}
uint32_t fake_cool_calls(void) {
    return os_u32_load_relaxed(&fake.cool_calls);
}
uint32_t fake_empty_calls(void) {
    return os_u32_load_relaxed(&fake.empty_calls);
}
struct fake_conn *fake_last_active(void) {
    return fake.last_active;
}
struct fake_conn *fake_last_passive(void) {
    return fake.last_passive;
}

static sn_status planned_failure(enum fake_op op) {
    lock_fake();
    sn_status st = fake.fail[op];
    fake.fail[op] = SN_OK;
    unlock_fake();
    return st;
}

/* ---- connections ---- */

static void conn_get(struct fake_conn *c) {
    os_u32_fetch_add_acq_rel(&c->pair->refs, 1);
}

static void conn_put(struct fake_conn *c) {
    struct fake_pair *pair = c->pair;
    if (os_u32_fetch_sub_acq_rel(&pair->refs, 1) != 1) return;
    for (int i = 0; i < 2; i++) {
        os_lock_fini(&pair->end[i].event_lock);
        os_lock_fini(&pair->end[i].rx_lock);
        os_lock_fini(&pair->end[i].tx_lock);
        pthread_mutex_destroy(&pair->end[i].pump);
    }
    lock_fake();
    fake.conns--;
    if (fake.last_active == &pair->end[0]) fake.last_active = NULL;
    if (fake.last_passive == &pair->end[1]) fake.last_passive = NULL;
    unlock_fake();
    free(pair);
}

static struct fake_pair *pair_new(void) {
    struct fake_pair *pair = calloc(1, sizeof *pair);
    if (!pair) abort();
    os_u32_store_relaxed(&pair->refs, 2);
    for (int i = 0; i < 2; i++) {
        struct fake_conn *c = &pair->end[i];
        c->base.ops = &fake_ops;
        c->pair = pair;
        c->peer = &pair->end[1 - i];
        c->active = i == 0;
        os_lock_init(&c->event_lock, OS_RANK_EVENT);
        os_lock_init(&c->rx_lock, OS_RANK_STREAM_RX);
        os_lock_init(&c->tx_lock, OS_RANK_STREAM_TX);
        pthread_mutex_init(&c->pump, NULL);
    }
    lock_fake();
    fake.conns++;
    fake.last_active = &pair->end[0];
    fake.last_passive = &pair->end[1];
    unlock_fake();
    return pair;
}

/* Whether data upcalls may be made now: SN_E_AGAIN before, SN_E_PEER_GONE after. */
static sn_status can_flow(const struct fake_conn *c) {
    if (os_u32_load_acquire(&c->closed) || os_u32_load_acquire(&c->over)) return SN_E_PEER_GONE;
    return os_u32_load_acquire(&c->open) ? SN_OK : SN_E_AGAIN;
}

static void add_event(enum event_kind kind, struct fake_conn *c, struct tp_listener *l,
                      sn_status st) {
    struct event *e = calloc(1, sizeof *e);
    if (!e) abort();
    e->kind = kind;
    e->c = c;
    e->l = l;
    e->st = st;
    conn_get(c);
    lock_fake();
    if (l) l->refs++;
    sn_list_push_back(&fake.events, &e->link);
    unlock_fake();
}

static void listener_put(struct tp_listener *l) {
    lock_fake();
    bool last = --l->refs == 0;
    unlock_fake();
    if (!last) return;
    pthread_mutex_destroy(&l->busy);
    free(l);
}

static void pump(struct fake_conn *c);

static void deliver_request(struct event *e) {
    pthread_mutex_lock(&e->l->busy);
    if (e->l->closed) {
        os_u32_store_release(&e->c->closed, 1);
        add_event(EV_REPLY, e->c->peer, NULL, SN_E_REFUSED);
        conn_put(e->c); /* what would have been the owner's */
    } else {
        e->l->up->on_request(e->l->ctx, &e->c->base);
    }
    pthread_mutex_unlock(&e->l->busy);
    listener_put(e->l);
}

/* After this the transport holds nothing of this end. */
static void stop_streams(struct fake_conn *c) {
    os_u32_store_release(&c->over, 1);
    os_lock_enter(&c->rx_lock);
    os_lock_leave(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    os_lock_leave(&c->tx_lock);
    pthread_mutex_lock(&c->pump);
    c->inflight_count = 0;
    pthread_mutex_unlock(&c->pump);
}

static void deliver_to_conn(struct event *e) {
    struct fake_conn *c = e->c;
    os_lock_enter(&c->event_lock);
    if (!os_u32_load_acquire(&c->closed)) {
        switch (e->kind) {
        case EV_REPLY:
            c->up->on_reply(c->owner, e->st);
            break;
        case EV_ESTABLISHED:
            c->up->on_established(c->owner, e->st);
            os_u32_store_release(&c->open, e->st == SN_OK);
            break;
        case EV_ABANDONED:
            c->gone_before_answer = true;
            if (c->up) c->up->on_abandoned(c->owner);
            break;
        case EV_DISCONNECTED:
            stop_streams(c);
            c->up->on_disconnected(c->owner, e->st);
            break;
        case EV_REQUEST:
            break;
        }
    }
    os_lock_leave(&c->event_lock);
    if (e->kind == EV_ESTABLISHED && e->st == SN_OK) {
        pump(c);
        pump(c->peer);
    }
}

static bool run_one_event(void) {
    lock_fake();
    struct sn_list *it = sn_list_pop(&fake.events);
    unlock_fake();
    if (!it) return false;
    struct event *e = SN_CONTAINER(it, struct event, link);
    if (e->kind == EV_REQUEST)
        deliver_request(e);
    else
        deliver_to_conn(e);
    conn_put(e->c);
    free(e);
    return true;
}

static bool run_one_timer(void) {
    lock_fake();
    struct sn_list *it = sn_list_pop(&fake.timers);
    unlock_fake();
    if (!it) return false;
    struct tp_timer *t = SN_CONTAINER(it, struct tp_timer, link);
    t->on_expired(t);
    return true;
}

bool fake_run(void) {
    bool any = false;
    while (run_one_event() || run_one_timer())
        any = true;
    return any;
}

static void *run_thread(void *arg) {
    (void)arg;
    while (!os_u32_load_acquire(&fake.thread_stop))
        if (!fake_run()) os_thread_yield();
    return NULL;
}

void fake_thread_start(void) {
    os_u32_store_release(&fake.thread_stop, 0);
    if (pthread_create(&fake.thread, NULL, run_thread, NULL) != 0) abort();
}

void fake_thread_stop(void) {
    os_u32_store_release(&fake.thread_stop, 1);
    pthread_join(fake.thread, NULL);
}

/* ---- moving data ---- */

/* Copies between a flat buffer and a list of segments through the core's access upcall. */
static sn_status copy_sge(struct fake_conn *c, const struct tp_sge *sge, uint32_t count,
                          enum tp_right right, uint8_t *flat, uint32_t len) {
    for (uint32_t i = 0; i < count && len; i++) {
        uint32_t n = SN_MIN(sge[i].len, len);
        if (n == 0) continue;
        struct tp_access acc;
        sn_status st =
            c->up->access(c->qp, sge[i].token, (uint64_t)(uintptr_t)sge[i].addr, n, right, &acc);
        if (st != SN_OK) return st;
        if (right == TP_LOCAL_READ)
            memcpy(flat, acc.ptr, n);
        else
            memcpy(acc.ptr, flat, n);
        c->up->access_end(&acc);
        flat += n;
        len -= n;
    }
    return SN_OK;
}

static sn_status copy_remote(struct fake_conn *c, const struct tp_request *req, enum tp_right right,
                             uint8_t *flat) {
    struct tp_access acc;
    if (req->length == 0) return SN_OK;
    sn_status st =
        c->up->access(c->qp, req->remote_token, req->remote_addr, req->length, right, &acc);
    if (st != SN_OK) return st;
    if (right == TP_REMOTE_READ)
        memcpy(flat, acc.ptr, req->length);
    else
        memcpy(acc.ptr, flat, req->length);
    c->up->access_end(&acc);
    return SN_OK;
}

/* The receiving end of a Send. SN_E_AGAIN: no receive. */
static sn_status arrive(struct fake_conn *c, uint8_t *data, uint32_t len, uint32_t flags,
                        uint32_t token) {
    sn_status st = SN_OK;
    os_lock_enter(&c->rx_lock);
    st = can_flow(c);
    if (st != SN_OK) {
        os_lock_leave(&c->rx_lock);
        return st;
    }
    os_u32_store_seqcst(&c->waiting, 1);
    struct tp_receive *r = c->up->take_receive(c->qp);
    if (!r) {
        os_lock_leave(&c->rx_lock);
        return SN_E_AGAIN;
    }
    os_u32_store_seqcst(&c->waiting, 0);
    uint32_t out_flags = 0;
    if (flags & TP_F_SOLICIT) out_flags |= TP_RECV_SOLICITED;
    if (flags & TP_F_INVALIDATE) {
        out_flags |= TP_RECV_INVALIDATED;
        st = c->up->remote_invalidate(c->qp, token);
    }
    if (st == SN_OK && len > r->length) st = SN_E_MSG_TOO_LONG;
    if (st == SN_OK) st = copy_sge(c, r->sge, r->sge_count, TP_LOCAL_WRITE, data, len);
    c->up->receive_done(c->qp, r, st, len, out_flags, token);
    os_lock_leave(&c->rx_lock);
    return st;
}

static sn_status move_request(struct fake_conn *c, struct tp_request *req) {
    os_lock_enter(&c->tx_lock);
    sn_status st = can_flow(c);
    if (st != SN_OK) {
        os_lock_leave(&c->tx_lock);
        return st;
    }
    struct tp_request copy = *req;
    uint8_t *flat = malloc(copy.length ? copy.length : 1);
    if (!flat) abort();
    if (copy.op != TP_OP_READ && (copy.flags & TP_F_INLINE))
        memcpy(flat, copy.inline_data, copy.length);
    else if (copy.op != TP_OP_READ)
        st = copy_sge(c, copy.sge, copy.sge_count, TP_LOCAL_READ, flat, copy.length);
    os_lock_leave(&c->tx_lock);
    if (st == SN_OK && copy.op == TP_OP_SEND)
        st = arrive(c->peer, flat, copy.length, copy.flags, copy.invalidate_token);
    if (st == SN_OK && copy.op != TP_OP_SEND) {
        os_lock_enter(&c->peer->rx_lock);
        st = can_flow(c->peer);
        enum tp_right right = copy.op == TP_OP_READ ? TP_REMOTE_READ : TP_REMOTE_WRITE;
        if (st == SN_OK) st = copy_remote(c->peer, &copy, right, flat);
        os_lock_leave(&c->peer->rx_lock);
    }
    if (st == SN_OK && copy.op == TP_OP_READ) {
        os_lock_enter(&c->rx_lock);
        st = can_flow(c);
        if (st == SN_OK)
            st = copy_sge(c, copy.sge, copy.sge_count, TP_READ_SINK, flat, copy.length);
        os_lock_leave(&c->rx_lock);
    }
    free(flat);
    return st;
}

/* Next request for this end, or NULL. */
static struct tp_request *next_request(struct fake_conn *c) {
    struct tp_request *req = NULL;
    os_lock_enter(&c->tx_lock);
    for (;;) {
        if (can_flow(c) != SN_OK) break;
        req = c->up->sq_peek(c->qp);
        if (!req) break;
        if ((req->flags & TP_F_FENCE) && c->reads_out) {
            req = NULL;
            break;
        }
        bool local = req->op == TP_OP_LOCAL;
        c->up->sq_advance(c->qp);
        if (!local) break;
        req = NULL;
    }
    if (req && req->op == TP_OP_READ) c->reads_out++;
    os_lock_leave(&c->tx_lock);
    return req;
}

static void finish_request(struct fake_conn *c, struct tp_request *req, sn_status st) {
    os_lock_enter(&c->tx_lock);
    if (can_flow(c) == SN_OK) {
        if (req->op == TP_OP_READ) c->reads_out--;
        c->up->request_done(c->qp, req, st);
    }
    os_lock_leave(&c->tx_lock);
}

static void pump_locked(struct fake_conn *c) {
    for (;;) {
        struct tp_request *req = c->inflight_count ? c->inflight[0] : next_request(c);
        if (!req) return;
        sn_status st = move_request(c, req);
        if (st == SN_E_AGAIN) { /* goes on when the peer posts a receive */
            c->inflight[0] = req;
            c->inflight_count = 1;
            return;
        }
        c->inflight_count = 0;
        if (st == SN_E_PEER_GONE) return; /* the event follows */
        finish_request(c, req, st);
        if (st != SN_OK) {
            fake_break(c, st);
            return;
        }
    }
}

static void pump(struct fake_conn *c) {
    os_u32_store_seqcst(&c->pump_again, 1);
    while (os_u32_load_seqcst(&c->pump_again)) {
        if (os_u32_load_acquire(&c->manual)) return;
        if (pthread_mutex_trylock(&c->pump) != 0) return; /* its holder looks again */
        while (os_u32_exchange_acq_rel(&c->pump_again, 0))
            pump_locked(c);
        pthread_mutex_unlock(&c->pump);
    }
}

void fake_break(struct fake_conn *c, sn_status st) {
    if (os_u32_exchange_acq_rel(&c->dead, 1)) return;
    os_u32_store_release(&c->peer->dead, 1);
    add_event(EV_DISCONNECTED, c, NULL, st);
    add_event(EV_DISCONNECTED, c->peer, NULL, st);
}

/* ---- by hand ---- */

void fake_manual(struct fake_conn *c) {
    os_u32_store_release(&c->manual, 1);
}

uint32_t fake_take_requests(struct fake_conn *c) {
    struct tp_request *req;
    while (c->inflight_count < FAKE_INFLIGHT_MAX && (req = next_request(c)) != NULL)
        c->inflight[c->inflight_count++] = req;
    return c->inflight_count;
}

void fake_finish(struct fake_conn *c, uint32_t i, sn_status st) {
    struct tp_request *req = c->inflight[i];
    c->inflight_count--;
    memmove(&c->inflight[i], &c->inflight[i + 1], (c->inflight_count - i) * sizeof(void *));
    finish_request(c, req, st);
}

bool fake_arrive(struct fake_conn *c, const void *data, uint32_t len, uint32_t flags,
                 uint32_t token) {
    return arrive(c, (uint8_t *)(uintptr_t)data, len, flags, token) != SN_E_AGAIN;
}

struct tp_receive *fake_take_receive(struct fake_conn *c) {
    os_lock_enter(&c->rx_lock);
    struct tp_receive *r = c->up->take_receive(c->qp);
    os_lock_leave(&c->rx_lock);
    return r;
}

void fake_receive_done(struct fake_conn *c, struct tp_receive *r, sn_status st, uint32_t bytes) {
    os_lock_enter(&c->rx_lock);
    c->up->receive_done(c->qp, r, st, bytes, 0, 0);
    os_lock_leave(&c->rx_lock);
}

void fake_abandon(struct fake_conn *passive) {
    add_event(EV_ABANDONED, passive, NULL, SN_OK);
}

void fake_reply(struct fake_conn *active, sn_status st) {
    add_event(EV_REPLY, active, NULL, st);
}

static struct tp_listener *find_listener(const struct os_addr *addr) {
    struct tp_listener *found = NULL;
    lock_fake();
    SN_LIST_FOR(it, &fake.listeners) {
        struct tp_listener *l = SN_CONTAINER(it, struct tp_listener, link);
        if (os_addr_same_ip(&l->addr, addr) && l->addr.port == addr->port) found = l;
    }
    if (found) found->refs++;
    unlock_fake();
    return found;
}

/* ---- ports ---- */

sn_status tp_port_bind(const struct os_addr *want, enum tp_port_use use, struct tp_port **out) {
    if (use == TP_PORT_LISTEN && want->port) {
        struct tp_listener *l = find_listener(want);
        if (l) {
            listener_put(l);
            return SN_E_ADDR_IN_USE;
        }
    }
    struct tp_port *p = os_zalloc(sizeof *p);
    if (!p) return SN_E_NOMEM;
    p->sock = OS_SOCK_NONE;
    p->use = use;
    p->addr = *want;
    lock_fake();
    if (want->port == 0) p->addr.port = fake.next_port++;
    fake.ports++;
    unlock_fake();
    *out = p;
    return SN_OK;
}

void tp_port_free(struct tp_port *p) {
    if (!p) return;
    lock_fake();
    fake.ports--;
    unlock_fake();
    os_free(p);
}

/* ---- the engine ---- */

sn_status tp_engine_create(struct tp_engine **out) {
    struct tp_engine *eng = os_zalloc(sizeof *eng);
    if (!eng) return SN_E_NOMEM;
    lock_fake();
    fake.engines++;
    unlock_fake();
    *out = eng;
    return SN_OK;
}

void tp_engine_destroy(struct tp_engine *eng) {
    lock_fake();
    fake.engines--;
    unlock_fake();
    os_free(eng);
}

void tp_engine_polled(struct tp_engine *eng, struct tp_hot *hot, uint32_t looks) {
    (void)eng;
    (void)looks;
    hot->empty_streak++;
    os_u32_fetch_add_relaxed(&fake.empty_calls, 1);
}

void tp_engine_polled_full(struct tp_engine *eng, struct tp_hot *hot, uint32_t results) {
    (void)eng;
    (void)hot;
    (void)results;
}

void tp_engine_cool(struct tp_engine *eng, struct tp_hot *hot) {
    (void)eng;
    hot->empty_streak = 0;
    os_u32_fetch_add_relaxed(&fake.cool_calls, 1);
}

bool tp_engine_progress(struct tp_engine *eng) {
    (void)eng;
    os_u32_fetch_add_relaxed(&fake.progress_calls, 1);
    return fake_run();
}

bool tp_engine_lead_begin(struct tp_engine *eng) {
    (void)eng;
    return false;
}
void tp_engine_lead_sleep(struct tp_engine *eng, uint64_t deadline_ns) {
    (void)eng;
    (void)deadline_ns;
}
bool tp_engine_lead_work(struct tp_engine *eng) {
    (void)eng;
    return false;
}
void tp_engine_lead_wake(struct tp_engine *eng) {
    (void)eng;
}
void tp_engine_lead_end(struct tp_engine *eng, bool others_wait) {
    (void)eng;
    (void)others_wait;
}

uint32_t tp_engine_watch_count(struct tp_engine *eng) {
    (void)eng;
    return fake.watches;
}

void tp_timer_init(struct tp_timer *t, struct tp_engine *eng,
                   void (*on_expired)(struct tp_timer *t)) {
    sn_list_init(&t->link);
    t->on_expired = on_expired;
    t->eng = eng;
}

bool tp_timer_arm(struct tp_timer *t, uint64_t delay_ns) {
    (void)delay_ns;
    lock_fake();
    bool fresh = sn_list_empty(&t->link);
    if (fresh) sn_list_push_back(&fake.timers, &t->link);
    unlock_fake();
    return fresh;
}

bool tp_timer_cancel(struct tp_timer *t) {
    lock_fake();
    bool armed = !sn_list_empty(&t->link);
    sn_list_remove(&t->link);
    unlock_fake();
    return armed;
}

/* ---- the operations ---- */

static sn_status op_listen(struct tp_engine *eng, struct tp_port *port, uint32_t backlog,
                           const struct tp_listener_upcalls *up, void *ctx,
                           struct tp_listener **out) {
    (void)eng;
    (void)backlog;
    sn_status st = planned_failure(FAKE_LISTEN);
    if (st != SN_OK) return st;
    struct tp_listener *l = os_zalloc(sizeof *l);
    if (!l) return SN_E_NOMEM;
    l->addr = port->addr;
    l->up = up;
    l->ctx = ctx;
    l->refs = 1;
    pthread_mutex_init(&l->busy, NULL);
    lock_fake();
    sn_list_push_back(&fake.listeners, &l->link);
    unlock_fake();
    *out = l;
    return SN_OK;
}

static void op_listener_close(struct tp_listener *l) {
    lock_fake();
    sn_list_remove(&l->link);
    unlock_fake();
    pthread_mutex_lock(&l->busy);
    l->closed = true;
    pthread_mutex_unlock(&l->busy);
    listener_put(l);
}

static void set_setup(struct fake_conn *c, const struct tp_setup *s) {
    c->setup = *s;
    c->up = s->up;
    c->owner = s->owner;
    c->qp = s->qp;
    if (s->pd_len) memcpy(c->pd, s->pd, s->pd_len);
}

/* What `from` said becomes what `to` knows of its peer. */
static void tell(struct fake_conn *to, const struct fake_conn *from) {
    to->info.peer_ird = from->setup.ird;
    to->info.peer_ord = from->setup.ord;
    to->info.pd_len = from->setup.pd_len;
    memcpy(to->info.pd, from->pd, sizeof to->info.pd);
}

static sn_status op_connect(struct tp_engine *eng, struct tp_port *port, const struct os_addr *peer,
                            const struct tp_setup *setup, struct tp_conn **out) {
    (void)eng;
    struct os_addr local = *peer;
    local.port = 40000;
    if (port && !os_addr_is_any(&port->addr)) local = port->addr;
    sn_status st = planned_failure(FAKE_CONNECT);
    if (st != SN_E_UNSUPPORTED) tp_port_free(port);
    if (st != SN_OK) return st;
    struct fake_pair *pair = pair_new();
    struct fake_conn *a = &pair->end[0], *b = &pair->end[1];
    set_setup(a, setup);
    a->info.local = b->info.peer = local;
    a->info.peer = b->info.local = *peer;
    tell(b, a);
    struct tp_listener *l = find_listener(peer);
    if (fake.silent || !l) {
        os_u32_store_release(&b->closed, 1);
        conn_put(b);
        if (!fake.silent) add_event(EV_REPLY, a, NULL, SN_E_REFUSED);
    } else {
        add_event(EV_REQUEST, b, l, SN_OK);
    }
    if (l) listener_put(l);
    *out = &a->base;
    if (fake.early) fake_run();
    return SN_OK;
}

static sn_status op_complete(struct tp_conn *base, uint32_t ird, uint32_t ord) {
    struct fake_conn *c = CONN(base);
    sn_status st = planned_failure(FAKE_COMPLETE);
    if (st == SN_OK && os_u32_load_acquire(&c->peer->closed)) st = SN_E_ABORTED;
    if (st != SN_OK) return st;
    c->setup.ird = ird;
    c->setup.ord = ord;
    os_u32_store_release(&c->completed, 1);
    os_u32_store_release(&c->open, 1);
    add_event(EV_ESTABLISHED, c->peer, NULL, SN_OK);
    if (fake.early) fake_run();
    return SN_OK;
}

static void op_set_owner(struct tp_conn *base, const struct tp_upcalls *up, void *owner) {
    struct fake_conn *c = CONN(base);
    os_lock_enter(&c->event_lock);
    c->up = up;
    c->owner = owner;
    if (c->gone_before_answer) up->on_abandoned(owner);
    os_lock_leave(&c->event_lock);
}

static sn_status op_accept(struct tp_conn *base, const struct tp_setup *setup) {
    struct fake_conn *c = CONN(base);
    sn_status st = planned_failure(FAKE_ACCEPT);
    if (st == SN_OK && os_u32_load_acquire(&c->peer->closed)) st = SN_E_ABORTED;
    if (st != SN_OK) return st;
    os_lock_enter(&c->event_lock);
    set_setup(c, setup);
    os_u32_store_release(&c->accepted, 1);
    os_lock_leave(&c->event_lock);
    tell(c->peer, c);
    add_event(EV_REPLY, c->peer, NULL, SN_OK);
    if (fake.early) fake_run();
    return SN_OK;
}

/* No upcall runs after this; returns true the first time. */
static bool silence(struct fake_conn *c) {
    os_lock_enter(&c->event_lock);
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    bool first = !os_u32_exchange_acq_rel(&c->closed, 1);
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
    os_lock_leave(&c->event_lock);
    /* A pump that is in the middle of a request ends. */
    pthread_mutex_lock(&c->pump);
    pthread_mutex_unlock(&c->pump);
    pthread_mutex_lock(&c->peer->pump);
    pthread_mutex_unlock(&c->peer->pump);
    return first;
}

static void tell_peer_of_end(struct fake_conn *c) {
    struct fake_conn *p = c->peer;
    if (c->active && os_u32_load_relaxed(&c->completed))
        add_event(EV_DISCONNECTED, p, NULL, SN_OK);
    else if (c->active && os_u32_load_acquire(&p->accepted))
        add_event(EV_ESTABLISHED, p, NULL, SN_E_REFUSED);
    else if (c->active)
        add_event(EV_ABANDONED, p, NULL, SN_OK);
    else if (!os_u32_load_relaxed(&c->accepted))
        add_event(EV_REPLY, p, NULL, SN_E_REFUSED);
    else if (os_u32_load_acquire(&p->completed))
        add_event(EV_DISCONNECTED, p, NULL, SN_OK);
}

static sn_status op_reject(struct tp_conn *base, const void *pd, uint32_t pd_len) {
    struct fake_conn *c = CONN(base);
    sn_status st = planned_failure(FAKE_REJECT);
    if (st != SN_OK) return st;
    if (!silence(c)) return SN_OK;
    c->rejected = true;
    if (os_u32_load_acquire(&c->peer->closed)) return SN_E_ABORTED;
    if (pd_len) memcpy(c->pd, pd, pd_len);
    c->setup.pd_len = pd_len;
    if (!c->active) tell(c->peer, c);
    tell_peer_of_end(c);
    return SN_OK;
}

static void op_info(struct tp_conn *base, struct tp_conn_info *out) {
    *out = CONN(base)->info;
}

static void op_post_send(struct tp_conn *base) {
    struct fake_conn *c = CONN(base);
    os_u32_fetch_add_relaxed(&c->post_sends, 1);
    pump(c);
}

static void op_reap(struct tp_conn *base) {
    struct fake_conn *c = CONN(base);
    while (c->keeps && c->inflight_count)
        fake_finish(c, 0, SN_OK);
}

static void op_post_receive(struct tp_conn *base) {
    struct fake_conn *c = CONN(base);
    os_u32_fetch_add_relaxed(&c->post_receives, 1);
    if (os_u32_load_seqcst(&c->waiting)) pump(c->peer);
}

static bool op_poll(struct tp_conn *base) {
    os_u32_fetch_add_relaxed(&CONN(base)->polls, 1);
    return fake_run();
}

static void op_flush_reports(struct tp_conn *base) {
    os_u32_fetch_add_relaxed(&CONN(base)->flushes, 1);
}

static void op_close(struct tp_conn *base) {
    struct fake_conn *c = CONN(base);
    if (silence(c)) tell_peer_of_end(c);
}

static void op_release(struct tp_conn *base) {
    conn_put(CONN(base));
}

const struct tp_ops fake_ops = {
    .name = "fake",
    .listen = op_listen,
    .listener_close = op_listener_close,
    .connect = op_connect,
    .complete = op_complete,
    .set_owner = op_set_owner,
    .accept = op_accept,
    .reject = op_reject,
    .info = op_info,
    .post_send = op_post_send,
    .reap = op_reap,
    .post_receive = op_post_receive,
    .poll = op_poll,
    .flush_reports = op_flush_reports,
    .close = op_close,
    .release = op_release,
};

const struct tp_ops *const rd_transports[] = { &fake_ops };
const size_t rd_transport_count = 1;
