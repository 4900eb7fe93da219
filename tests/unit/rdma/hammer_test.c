/* SPDX-License-Identifier: MIT
 * Many threads at once, meant for the thread sanitizer. What must hold: no byte is touched after
 * a deregistration or invalidation returned; every accepted request completes exactly once, in
 * order; nothing hangs when connections end at any moment.
 */
#include "os/prim/thread.h"
#include "rdma/connector.h"
#include "rdma/qp.h"
#include "rig.h"

enum { THREADS = 3 };

static uint64_t hammer_until(uint64_t ms) {
    return os_now_ns() + ms * OS_NS_PER_MS;
}

/* ---- memory: accesses against the end of a registration ---- */

struct stomp {
    struct rd_qp *qp;
    uint8_t *buf;
    size_t len;
    enum tp_right right;
    os_atomic_u32 token, stop, hits, misses;
};

static void *stomp_thread(void *arg) {
    struct stomp *s = arg;
    uint32_t n = 0;
    while (!os_u32_load_acquire(&s->stop)) {
        struct tp_access acc;
        uint32_t token = os_u32_load_acquire(&s->token);
        size_t off = n++ % (s->len - 8);
        sn_status st =
            rd_upcalls.access(s->qp, token, (uint64_t)(uintptr_t)(s->buf + off), 8, s->right, &acc);
        if (st != SN_OK) {
            os_u32_fetch_add_relaxed(&s->misses, 1);
            continue;
        }
        for (int i = 0; i < 8; i++) /* threads stomp on each other: that is not the point */
            __atomic_store_n(&acc.ptr[i], (uint8_t)0xFF, __ATOMIC_RELAXED);
        rd_upcalls.access_end(&acc);
        os_u32_fetch_add_relaxed(&s->hits, 1);
    }
    return NULL;
}

static void stomp_start(struct stomp *s, pthread_t *t) {
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, stomp_thread, s), 0);
}

static void stomp_stop(struct stomp *s, pthread_t *t) {
    os_u32_store_release(&s->stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

/* Plain writes: the sanitizer sees any access that is still under way. */
static void check_untouched(struct stomp *s, uint32_t *rounds) {
    memset(s->buf, 0, s->len);
    for (int i = 0; i < 20; i++)
        os_cpu_relax();
    for (size_t i = 0; i < s->len; i++)
        CHECK_EQ(s->buf[i], 0);
    (*rounds)++;
}

/* Waits until the threads have come through with the present token. */
static void let_them_hit(struct stomp *s) {
    uint32_t hits = os_u32_load_relaxed(&s->hits);
    uint64_t deadline = hammer_until(20000);
    while (os_u32_load_relaxed(&s->hits) == hits) {
        CHECK(os_now_ns() < deadline);
        os_thread_yield();
    }
}

static void deregister_under_fire_touches_nothing_afterwards(void) {
    struct rig r;
    pthread_t t[THREADS];
    rig_objects(&r);
    struct stomp s = { .qp = r.a.qp, .buf = r.buf, .len = 256, .right = TP_LOCAL_WRITE };
    struct rd_region *m;
    CHECK_ST(rd_region_create(r.ad, &m), SN_OK);
    stomp_start(&s, t);
    uint32_t rounds = 0;
    for (uint64_t end = hammer_until(400); rounds <= 5 || os_now_ns() < end;) {
        CHECK_ST(rd_region_register(m, s.buf, s.len, RD_LOCAL_WRITE), SN_OK);
        os_u32_store_release(&s.token, rd_region_local_token(m));
        let_them_hit(&s);
        CHECK_ST(rd_region_deregister(m), SN_OK); /* the token stays in the threads' hands */
        check_untouched(&s, &rounds);
    }
    stomp_stop(&s, t);
    CHECK(rounds > 5);
    CHECK(os_u32_load_relaxed(&s.misses) > 0);
    rd_region_destroy(m);
    rig_down(&r);
}

static void invalidate_under_fire_touches_nothing_afterwards(void) {
    struct rig r;
    struct rd_window *w;
    pthread_t t[THREADS];
    rig_up(&r);
    struct stomp s = { .qp = r.a.qp, .buf = r.buf, .len = 256, .right = TP_REMOTE_WRITE };
    CHECK_ST(rd_window_create(r.ad, &w), SN_OK);
    stomp_start(&s, t);
    uint32_t rounds = 0, way = 0;
    for (uint64_t end = hammer_until(400); rounds <= 5 || os_now_ns() < end; way++) {
        CHECK_ST(rd_qp_bind(r.a.qp, CTX(1), r.mem, w, s.buf, s.len, RD_REMOTE_WRITE, 0), SN_OK);
        CHECK_CQE(r.a.cq, RD_BIND, 1, SN_OK, 0);
        uint32_t token = rd_window_token(w);
        os_u32_store_release(&s.token, token);
        let_them_hit(&s);
        switch (way % 3) {
        case 0:
            CHECK_ST(rd_qp_invalidate(r.a.qp, CTX(2), w, 0), SN_OK);
            CHECK_CQE(r.a.cq, RD_INVALIDATE, 2, SN_OK, 0);
            break;
        case 1:
            CHECK_ST(rd_upcalls.remote_invalidate(r.a.qp, token), SN_OK);
            break;
        case 2:
            rd_window_destroy(w);
            CHECK_ST(rd_window_create(r.ad, &w), SN_OK);
            break;
        }
        check_untouched(&s, &rounds);
    }
    stomp_stop(&s, t);
    CHECK(rounds > 5);
    rd_window_destroy(w);
    rig_down(&r);
}

static void *churn_thread(void *arg) {
    struct rig *r = arg;
    uint8_t buf[64];
    for (int i = 0; i < 2000; i++) {
        struct rd_region *m;
        if (rd_region_create(r->ad, &m) != SN_OK) abort();
        if (rd_region_register(m, buf, sizeof buf, RD_REMOTE_READ) != SN_OK) abort();
        struct tp_access acc;
        if (rd_upcalls.access(r->a.qp, rd_region_remote_token(m), (uint64_t)(uintptr_t)buf, 64,
                              TP_REMOTE_READ, &acc) != SN_OK)
            abort();
        rd_upcalls.access_end(&acc);
        rd_region_destroy(m);
    }
    return NULL;
}

static void regions_come_and_go_on_many_threads(void) {
    struct rig r;
    pthread_t t[THREADS];
    rig_objects(&r);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, churn_thread, &r), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    rig_down(&r);
}

/* ---- traffic ---- */

/* One queue pair each way, one thread that sends and one that reposts per end; whoever gets a
 * completion checks that it is the next of its kind. */
struct side {
    struct rig *r;
    struct rig_end *e;
    os_atomic_u32 stop;
    os_atomic_u32 sent, receives;          /* accepted posts, numbered from 0 */
    os_atomic_u32 send_done, receive_done; /* completions seen */
    os_atomic_u32 ok_received;
    bool in_order;
};

/* A queue slot is free before its completion is read, so a poster must hold back by itself or the
 * completion queue overruns. */
enum { MOST_UNREAD = 40 };
static bool too_many(os_atomic_u32 *posted, os_atomic_u32 *done) {
    return os_u32_load_relaxed(posted) - os_u32_load_acquire(done) >= MOST_UNREAD;
}

static void *send_thread(void *arg) {
    struct side *s = arg;
    struct tp_sge sge = rig_sge(s->r, 0, 16);
    uint8_t data[16] = { 0 };
    struct tp_sge in = { data, 16, 0 };
    while (!os_u32_load_acquire(&s->stop)) {
        uint32_t n = os_u32_load_relaxed(&s->sent);
        if (too_many(&s->sent, &s->send_done)) {
            os_thread_yield();
            continue;
        }
        sn_status st =
            n % 2 ? rd_qp_send(s->e->qp, CTX(n), &in, 1, RD_POST_INLINE, 0)
                  : rd_qp_send(s->e->qp, CTX(n), &sge, 1, n % 8 == 0 ? RD_POST_SOLICIT : 0, 0);
        if (st == SN_OK)
            os_u32_store_release(&s->sent, n + 1);
        else if (st == SN_E_FULL)
            os_thread_yield();
        else if (st == SN_E_NOT_CONNECTED)
            break;
        else
            abort();
    }
    return NULL;
}

static void *receive_thread(void *arg) {
    struct side *s = arg;
    struct tp_sge sge = rig_sge(s->r, s->e == &s->r->a ? 4096 : 8192, 64);
    while (!os_u32_load_acquire(&s->stop)) {
        uint32_t n = os_u32_load_relaxed(&s->receives);
        if (too_many(&s->receives, &s->receive_done)) {
            os_thread_yield();
            continue;
        }
        sn_status st = rd_qp_receive(s->e->qp, CTX(n), &sge, 1);
        if (st == SN_OK)
            os_u32_store_release(&s->receives, n + 1);
        else
            os_thread_yield();
    }
    return NULL;
}

static void take_completions(struct side *s) {
    struct rd_completion c[8];
    uint32_t n = rd_cq_poll(s->e->cq, c, 8);
    for (uint32_t i = 0; i < n; i++) {
        bool receive = c[i].type == RD_RECEIVE;
        os_atomic_u32 *next = receive ? &s->receive_done : &s->send_done;
        uint32_t expected = os_u32_load_relaxed(next);
        if (c[i].request_context != CTX(expected)) s->in_order = false;
        os_u32_store_release(next, expected + 1);
        if (receive && c[i].status == SN_OK) {
            os_u32_fetch_add_relaxed(&s->ok_received, 1);
            if (c[i].bytes != 16) s->in_order = false;
        }
    }
}

static void *poll_thread(void *arg) {
    struct side *s = arg;
    while (!os_u32_load_acquire(&s->stop)) {
        take_completions(s);
        os_thread_yield();
    }
    return NULL;
}

static void *resize_thread(void *arg) {
    struct side *s = arg;
    for (uint32_t i = 0; !os_u32_load_acquire(&s->stop); i++) {
        sn_status st = rd_cq_resize(s->e->cq, 64 + i % 100);
        if (st != SN_OK && st != SN_E_BUFFER_SMALL) abort();
        os_thread_yield();
    }
    return NULL;
}

static void *notify_thread(void *arg) {
    struct side *s = arg;
    struct rig_async n;
    for (uint32_t i = 0; !os_u32_load_acquire(&s->stop); i++) {
        if (rd_cq_notify(s->e->cq, (enum rd_notify)(i % 3), rig_arm(&n)) != SN_PENDING) abort();
        for (int k = 0; k < 100 && !rig_done(&n); k++)
            os_thread_yield();
        rd_cq_cancel(s->e->cq);
        while (!rig_done(&n)) /* being completed by another thread */
            os_thread_yield();
    }
    return NULL;
}

static bool heard(struct side *s) {
    return os_u32_load_relaxed(&s->ok_received) != 0;
}

enum ending { END_FLUSH, END_DISCONNECT, END_DESTROY_QP, END_BREAK, END_COUNT };

static void traffic_round(enum ending how) {
    struct rig r;
    rig_up(&r);
    struct side a = { .r = &r, .e = &r.a, .in_order = true };
    struct side b = { .r = &r, .e = &r.b, .in_order = true };
    void *(*body[])(void *) = { send_thread, receive_thread, poll_thread, resize_thread,
                                notify_thread };
    pthread_t t[2][SN_ARRAY_LEN(body)];
    struct rig_async dis;
    rig_arm(&dis);
    fake_thread_start();
    for (size_t i = 0; i < SN_ARRAY_LEN(body); i++) {
        CHECK_EQ(pthread_create(&t[0][i], NULL, body[i], &a), 0);
        CHECK_EQ(pthread_create(&t[1][i], NULL, body[i], &b), 0);
    }
    /* Long enough, and until both have heard something. */
    for (uint64_t end = hammer_until(100), late = hammer_until(20000), now = 0;
         now < end || (now < late && !(heard(&a) && heard(&b))); now = os_now_ns())
        os_thread_yield();
    switch (how) {
    case END_FLUSH:
        rd_qp_flush(r.a.qp);
        break;
    case END_DISCONNECT:
        CHECK_ST(rd_connector_disconnect(r.a.c, &dis.a), SN_PENDING);
        break;
    case END_BREAK:
        fake_break(r.ca, SN_E_PEER_GONE);
        break;
    case END_DESTROY_QP: /* its users must be gone; the other end keeps going */
        os_u32_store_release(&a.stop, 1);
        for (size_t i = 0; i < SN_ARRAY_LEN(body); i++)
            pthread_join(t[0][i], NULL);
        rd_qp_destroy(r.a.qp);
        r.a.qp = NULL;
        break;
    case END_COUNT:
        break;
    }
    for (uint64_t end = hammer_until(20); os_now_ns() < end;)
        os_thread_yield();
    os_u32_store_release(&a.stop, 1);
    os_u32_store_release(&b.stop, 1);
    for (size_t i = 0; i < SN_ARRAY_LEN(body); i++) {
        if (how != END_DESTROY_QP) pthread_join(t[0][i], NULL);
        pthread_join(t[1][i], NULL);
    }
    fake_thread_stop();
    while (fake_run()) {
    }
    if (r.a.qp) rd_qp_flush(r.a.qp);
    rd_qp_flush(r.b.qp);
    for (int i = 0; i < 1000; i++) {
        take_completions(&a);
        take_completions(&b);
    }
    CHECK(a.in_order && b.in_order);
    CHECK_EQ(os_u32_load_relaxed(&a.send_done), os_u32_load_relaxed(&a.sent));
    CHECK_EQ(os_u32_load_relaxed(&b.send_done), os_u32_load_relaxed(&b.sent));
    CHECK_EQ(os_u32_load_relaxed(&a.receive_done), os_u32_load_relaxed(&a.receives));
    CHECK_EQ(os_u32_load_relaxed(&b.receive_done), os_u32_load_relaxed(&b.receives));
    CHECK(heard(&a) && heard(&b));
    rig_down(&r);
}

static void traffic_both_ways_completes_once_in_order_flushed(void) {
    traffic_round(END_FLUSH);
}
static void traffic_both_ways_completes_once_in_order_disconnected(void) {
    traffic_round(END_DISCONNECT);
}
static void traffic_both_ways_completes_once_in_order_destroyed(void) {
    traffic_round(END_DESTROY_QP);
}
static void traffic_both_ways_completes_once_in_order_broken(void) {
    traffic_round(END_BREAK);
}

/* ---- connections made and ended against each other ---- */

struct meet {
    struct rd_adapter *ad;
    struct os_addr at;
    struct rd_listener *l;
    os_atomic_u32 established;
};

static void wait_done(struct rig_async *a) {
    uint64_t deadline = hammer_until(20000);
    while (!rig_done(a)) {
        if (os_now_ns() > deadline) abort();
        os_thread_yield();
    }
}

static struct rd_qp *make_qp(struct rd_adapter *ad, struct rd_cq *cq) {
    struct rd_qp_attr at = rig_attr(cq);
    enum rd_qp_attr_fault fault;
    struct rd_qp *qp;
    if (rd_qp_create(ad, &at, &fault, &qp) != SN_OK) abort();
    return qp;
}

static void *caller_thread(void *arg) {
    struct meet *m = arg;
    struct rd_cq *cq;
    if (rd_cq_create(m->ad, 64, &cq) != SN_OK) abort();
    for (uint32_t i = 0; i < 150; i++) {
        struct rd_qp *qp = make_qp(m->ad, cq);
        struct rd_connector *c;
        struct rig_async con, com, dis;
        if (rd_connector_create(m->ad, &c) != SN_OK) abort();
        if (rd_connector_connect(c, qp, &m->at, 1, 1, NULL, 0, rig_arm(&con)) != SN_PENDING)
            abort();
        if (i % 7 == 3) rd_connector_cancel(c);
        if (i % 7 == 4) {
            rd_qp_destroy(qp);
            qp = NULL;
        }
        if (i % 7 != 5) wait_done(&con);
        if (i % 7 != 5 && con.st == SN_OK && qp) {
            if (rd_connector_complete(c, rig_arm(&com)) != SN_PENDING) abort();
            wait_done(&com);
            if (com.st == SN_OK) {
                os_u32_fetch_add_relaxed(&m->established, 1);
                (void)!rd_qp_send(qp, NULL, NULL, 0, 0, 0);
                if (i % 2 && rd_connector_disconnect(c, rig_arm(&dis)) == SN_PENDING)
                    wait_done(&dis);
            }
        }
        if (i % 3 == 0) {
            rd_connector_destroy(c);
            if (qp) rd_qp_destroy(qp);
        } else {
            if (qp) rd_qp_destroy(qp);
            rd_connector_destroy(c);
        }
        if (rig_done(&con) != 1) abort();
    }
    rd_cq_destroy(cq);
    return NULL;
}

static os_atomic_u32 callee_stop;

static void *callee_thread(void *arg) {
    struct meet *m = arg;
    struct rd_cq *cq;
    if (rd_cq_create(m->ad, 64, &cq) != SN_OK) abort();
    for (uint32_t i = 0; !os_u32_load_acquire(&callee_stop); i++) {
        struct rd_qp *qp = make_qp(m->ad, cq);
        struct rd_connector *c;
        struct rig_async get, acc, gone;
        rig_arm(&gone);
        if (rd_connector_create(m->ad, &c) != SN_OK) abort();
        if (rd_listener_get_request(m->l, c, rig_arm(&get)) != SN_PENDING) abort();
        while (!rig_done(&get)) {
            if (os_u32_load_acquire(&callee_stop)) rd_listener_cancel(m->l);
            os_thread_yield();
        }
        if (get.st == SN_OK && i % 5 == 1) {
            (void)!rd_connector_reject(c, "no", 2);
        } else if (get.st == SN_OK && i % 5 != 2) {
            if (rd_qp_receive(qp, NULL, NULL, 0) != SN_OK) abort();
            if (rd_connector_accept(c, qp, 1, 1, NULL, 0, rig_arm(&acc)) != SN_PENDING) abort();
            if (i % 5 == 3) {
                rd_connector_cancel(c);
                wait_done(&acc);
            } else {
                /* A caller may hold its answer until it goes away. */
                wait_done(&acc);
                if (acc.st == SN_OK &&
                    rd_connector_notify_disconnect(c, rig_arm(&gone)) != SN_PENDING)
                    abort();
            }
        }
        rd_connector_destroy(c);
        rd_qp_destroy(qp);
    }
    rd_cq_destroy(cq);
    return NULL;
}

static void connections_made_and_ended_on_many_threads(void) {
    struct meet m = { 0 };
    pthread_t callers[2], callees[2];
    (void)fake_reset();
    m.ad = rig_adapter();
    m.at = rig_addr(0);
    CHECK_ST(rd_listener_create(m.ad, &m.l), SN_OK);
    CHECK_ST(rd_listener_bind(m.l, &m.at), SN_OK);
    CHECK_ST(rd_listener_listen(m.l, 0), SN_OK);
    CHECK_ST(rd_listener_local_addr(m.l, &m.at), SN_OK);
    os_u32_store_release(&callee_stop, 0);
    fake_thread_start();
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&callers[i], NULL, caller_thread, &m), 0);
        CHECK_EQ(pthread_create(&callees[i], NULL, callee_thread, &m), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(callers[i], NULL);
    os_u32_store_release(&callee_stop, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(callees[i], NULL);
    fake_thread_stop();
    CHECK(os_u32_load_relaxed(&m.established) > 0);
    rd_listener_destroy(m.l);
    rd_adapter_close(m.ad);
    CHECK(fake_reset());
}

/* ---- several queue pairs on one completion queue and one shared receive queue ---- */

enum { CROWD_UNREAD = 1000 };

struct crowd {
    struct rig r[3];
    struct rd_srq *srq;
    os_atomic_u32 stop, posted, sent, received;
};

struct crowd_sender {
    struct crowd *w;
    struct rd_qp *qp;
};

static void *crowd_send_thread(void *arg) {
    struct crowd_sender *s = arg;
    while (!os_u32_load_acquire(&s->w->stop)) {
        sn_status st = rd_qp_send(s->qp, NULL, NULL, 0, RD_POST_SILENT, 0);
        if (st == SN_OK)
            os_u32_fetch_add_relaxed(&s->w->sent, 1);
        else
            os_thread_yield();
    }
    return NULL;
}

static void *crowd_post_thread(void *arg) {
    struct crowd *w = arg;
    while (!os_u32_load_acquire(&w->stop)) {
        uint32_t unread = os_u32_load_relaxed(&w->posted) - os_u32_load_relaxed(&w->received);
        if (unread < CROWD_UNREAD && rd_srq_post(w->srq, NULL, NULL, 0) == SN_OK)
            os_u32_fetch_add_relaxed(&w->posted, 1);
        else
            os_thread_yield();
    }
    return NULL;
}

static void *crowd_poll_thread(void *arg) {
    struct crowd *w = arg;
    struct rd_completion c[4];
    while (!os_u32_load_acquire(&w->stop)) {
        uint32_t n = rd_cq_poll(w->r[0].b.cq, c, 4);
        for (uint32_t i = 0; i < n; i++)
            if (c[i].type == RD_RECEIVE && c[i].status == SN_OK)
                os_u32_fetch_add_relaxed(&w->received, 1);
        if (!n) os_thread_yield();
    }
    return NULL;
}

static void shared_queues_under_fire_lose_nothing(void) {
    struct crowd w;
    struct crowd_sender s[3];
    pthread_t t[7];
    memset(&w, 0, sizeof w);
    rig_objects(&w.r[0]);
    struct rd_adapter *ad = w.r[0].ad;
    CHECK_ST(rd_srq_create(ad, 16, 1, 0, &w.srq), SN_OK);
    rd_qp_destroy(w.r[0].b.qp);
    CHECK_ST(rd_cq_resize(w.r[0].b.cq, 4096), SN_OK);
    for (int i = 0; i < 3; i++) {
        struct rd_qp_attr at = rig_attr(w.r[0].b.cq);
        enum rd_qp_attr_fault fault;
        at.srq = w.srq;
        if (i) {
            w.r[i].ad = ad;
            w.r[i].a.qp = rig_qp(ad, w.r[0].a.cq);
        }
        CHECK_ST(rd_qp_create(ad, &at, &fault, &w.r[i].b.qp), SN_OK);
        rig_connect_limits(&w.r[i], 1, 1);
        s[i] = (struct crowd_sender){ &w, w.r[i].a.qp };
    }
    fake_thread_start();
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, crowd_send_thread, &s[i]), 0);
    for (int i = 3; i < 5; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, crowd_post_thread, &w), 0);
    for (int i = 5; i < 7; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, crowd_poll_thread, &w), 0);
    uint64_t end = hammer_until(200);
    while (os_now_ns() < end)
        os_thread_yield();
    os_u32_store_release(&w.stop, 1);
    for (int i = 0; i < 7; i++)
        pthread_join(t[i], NULL);
    /* Everything that was sent arrives once enough receives are there. */
    struct rd_completion c[64];
    uint64_t deadline = hammer_until(20000);
    while (os_u32_load_relaxed(&w.received) < os_u32_load_relaxed(&w.sent)) {
        CHECK(os_now_ns() < deadline);
        (void)!rd_srq_post(w.srq, NULL, NULL, 0);
        uint32_t n = rd_cq_poll(w.r[0].b.cq, c, 64);
        for (uint32_t i = 0; i < n; i++)
            if (c[i].status == SN_OK) os_u32_fetch_add_relaxed(&w.received, 1);
    }
    CHECK_EQ(os_u32_load_relaxed(&w.received), os_u32_load_relaxed(&w.sent));
    fake_thread_stop();
    for (int i = 1; i < 3; i++) {
        rd_connector_destroy(w.r[i].a.c);
        rd_connector_destroy(w.r[i].b.c);
        rd_listener_destroy(w.r[i].l);
        rd_qp_destroy(w.r[i].a.qp);
        rd_qp_destroy(w.r[i].b.qp);
    }
    rd_srq_destroy(w.srq);
    rig_down(&w.r[0]);
}

TEST_MAIN(TEST(deregister_under_fire_touches_nothing_afterwards),
          TEST(invalidate_under_fire_touches_nothing_afterwards),
          TEST(regions_come_and_go_on_many_threads),
          TEST(traffic_both_ways_completes_once_in_order_flushed),
          TEST(traffic_both_ways_completes_once_in_order_disconnected),
          TEST(traffic_both_ways_completes_once_in_order_destroyed),
          TEST(traffic_both_ways_completes_once_in_order_broken),
          TEST(connections_made_and_ended_on_many_threads),
          TEST(shared_queues_under_fire_lose_nothing))
