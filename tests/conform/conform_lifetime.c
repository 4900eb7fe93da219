/* SPDX-License-Identifier: MIT
 * conform_lifetime.c - reference counts, every order of release, objects released in the middle of
 * something, many connections, and nothing left behind.
 */
#include "fixture.h"

/* ---- counts ---- */

static void release_counts_the_clients_references_only(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *m = fx_memory(f, 0, 4096, FX_MR_ALL);
    IND2MemoryWindow *w = fx_window(f, 0);
    OVERLAPPED *ov = fx_overlapped(f);
    BIND(&p->a, CTX(1), m, w, 0, 4096, ND_OP_FLAG_ALLOW_READ);
    EXPECT_OK(f, &p->a, Bind, CTX(1), 0);
    RECEIVE(&p->a, CTX(2), m, 0, 8);
    CHECK_HR(CALL(p->a.receive_cq, Notify, ND_CQ_NOTIFY_ERRORS, ov), ND_PENDING);
    /* All are held by others inside, and have a request pending or posted. */
    IUnknown *objects[] = { UNKNOWN(p->a.connector),  UNKNOWN(p->a.qp),
                            UNKNOWN(p->a.receive_cq), UNKNOWN(p->a.initiator_cq),
                            UNKNOWN(m->region),       UNKNOWN(w),
                            UNKNOWN(p->listener) };
    for (size_t i = 0; i < COUNT_OF(objects); i++) {
        CHECK_EQ(CALL(objects[i], AddRef), 2);
        CHECK_EQ(CALL(objects[i], AddRef), 3);
        CHECK_EQ(CALL(objects[i], Release), 2);
        CHECK_EQ(CALL(objects[i], Release), 1);
    }
    CHECK_EQ(CALL(f->host[0].adapter, AddRef), 2);
    CHECK_EQ(CALL(f->host[0].adapter, Release), 1);
    for (size_t i = 0; i < COUNT_OF(objects); i++)
        CHECK_EQ(fx_release(f, objects[i]), 0);
    CHECK(fx_is_done(ov));
    fx_end(f);
}

/* ---- every order ---- */

enum { ADAPTER, FILE_HANDLE, CQ, QP, CONNECTOR, REGION, WINDOW, KINDS };

static void release_one(struct fx *f, int kind, struct fx_pair *p, struct fx_memory *m,
                        IND2MemoryWindow *w) {
    switch (kind) {
    case ADAPTER:
        CHECK_EQ(CALL(f->host[0].adapter, Release), 0);
        f->host[0].adapter = NULL;
        break;
    case FILE_HANDLE:
        CHECK(CloseHandle(f->host[0].file));
        f->host[0].file = NULL;
        break;
    case CQ:
        CHECK_EQ(fx_release(f, p->a.receive_cq), 0);
        CHECK_EQ(fx_release(f, p->a.initiator_cq), 0);
        break;
    case QP:
        CHECK_EQ(fx_release(f, p->a.qp), 0);
        break;
    case CONNECTOR:
        CHECK_EQ(fx_release(f, p->a.connector), 0);
        break;
    case REGION:
        CHECK_EQ(fx_release(f, m->region), 0);
        break;
    default:
        CHECK_EQ(fx_release(f, w), 0);
        break;
    }
}

/* A connected side with work in progress is taken apart in this order; the peer sees the end. */
static void take_apart(const int *order) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *m = fx_memory(f, 0, 4096, FX_MR_ALL), *b = fx_memory(f, 1, 4096, FX_MR_ALL);
    IND2MemoryWindow *w = fx_window(f, 0);
    BIND(&p->a, CTX(1), m, w, 0, 4096, ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE);
    RECEIVE(&p->a, CTX(2), m, 0, 8);
    RECEIVE(&p->b, CTX(3), NULL, 0, 0);
    READ(&p->a, CTX(4), m, 0, 4096, b, 0, 0);
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(p->a.receive_cq, Notify, ND_CQ_NOTIFY_ERRORS, ov), ND_PENDING);
    for (int i = 0; i < KINDS; i++)
        release_one(f, order[i], p, m, w);
    EXPECT_ERROR(f, &p->b, Receive, ND_CANCELED, CTX(3));
    CHECK(fx_is_done(ov));
    fx_end(f);
}

static void permute(int *order, int n, int *count) {
    if (n == KINDS) {
        if ((*count)++ % (120 / HOST_ROUNDS(120)) == 0) take_apart(order);
        return;
    }
    for (int i = n; i < KINDS; i++) {
        int t = order[n];
        order[n] = order[i];
        order[i] = t;
        permute(order, n + 1, count);
        order[i] = order[n];
        order[n] = t;
    }
}

static void objects_of_a_connection_may_be_released_in_every_order(void) {
    /* The order of the five that depend on each other is complete; file and window take every place
     * in the next case. */
    int order[KINDS] = { FILE_HANDLE, WINDOW, ADAPTER, CQ, QP, CONNECTOR, REGION }, count = 0;
    permute(order, 2, &count);
    CHECK_EQ(count, 120);
}

static void objects_of_a_connection_may_be_released_in_random_order(void) {
    uint64_t seed = fx_seed();
    for (int round = 0; round < HOST_ROUNDS(120); round++) {
        int order[KINDS];
        for (int i = 0; i < KINDS; i++)
            order[i] = i;
        for (int i = KINDS - 1; i > 0; i--) {
            size_t n = fx_random_below(&seed, (size_t)i + 1);
            int t = order[i];
            order[i] = order[n];
            order[n] = t;
        }
        take_apart(order);
    }
}

/* The order in which one widely used test frame ends: region before window, queue before queue
 * pair, and the buffer first of all. */
static void buffer_may_go_before_everything_else(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    uint8_t *bytes = malloc(4096);
    CHECK(bytes != NULL);
    struct fx_memory *m = fx_memory_over(f, 0, bytes, 4096, FX_MR_ALL);
    IND2MemoryWindow *w = fx_window(f, 0);
    BIND(&p->a, CTX(1), m, w, 0, 4096, ND_OP_FLAG_ALLOW_READ);
    EXPECT_OK(f, &p->a, Bind, CTX(1), 0);
    for (int i = 0; i < 10; i++)
        RECEIVE(&p->a, CTX(i), m, 0, 4096);
    free(bytes);
    fx_release(f, p->listener);
    fx_release(f, m->region);
    fx_release(f, w);
    fx_release(f, p->a.receive_cq);
    fx_release(f, p->a.initiator_cq);
    fx_release(f, p->a.qp);
    fx_release(f, p->a.connector);
    fx_end(f);
}

/* ---- early release of what others need ---- */

static void connection_works_after_adapter_and_file_are_gone(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *a = fx_memory(f, 0, 4096, FX_MR_ALL), *b = fx_memory(f, 1, 4096, FX_MR_ALL);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(CALL(f->host[i].adapter, Release), 0);
        f->host[i].adapter = NULL;
        CHECK(CloseHandle(f->host[i].file));
        f->host[i].file = NULL;
    }
    fx_fill(a->bytes, 4096, 1, 1, 0);
    WRITE(&p->a, CTX(1), a, 0, 4096, b, 0, 0);
    EXPECT_OK(f, &p->a, Write, CTX(1), 4096);
    SYNC(f, &p->a, &p->b);
    SYNC(f, &p->b, &p->a);
    CHECK_DATA(b->bytes, 4096, 1, 1, 0);
    fx_disconnect(f, &p->a);
    fx_end(f);
}

static void queue_pair_works_after_its_queues_are_gone(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *a = fx_memory(f, 0, 64, 0), *b = fx_memory(f, 1, 64, FX_MR_ALL);
    CHECK_EQ(fx_release(f, p->a.receive_cq), 0);
    CHECK_EQ(fx_release(f, p->a.initiator_cq), 0);
    fx_fill(a->bytes, 64, 2, 1, 0);
    RECEIVE(&p->b, CTX(1), b, 0, 64);
    SEND(&p->a, CTX(1), a, 0, 64, 0);
    EXPECT_OK(f, &p->b, Receive, CTX(1), 64);
    CHECK_DATA(b->bytes, 64, 2, 1, 0);
    fx_end(f);
}

static void connection_ends_with_its_connector(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    RECEIVE(&p->a, CTX(1), NULL, 0, 0);
    RECEIVE(&p->b, CTX(2), NULL, 0, 0);
    CHECK_EQ(fx_release(f, p->a.connector), 0); /* without Disconnect */
    EXPECT_ERROR(f, &p->a, Receive, ND_CANCELED, CTX(1));
    EXPECT_ERROR(f, &p->b, Receive, ND_CANCELED, CTX(2));
    CHECK_HR(CALL(p->a.qp, Flush), ND_SUCCESS);
    fx_end(f);
}

static void connection_ends_with_its_queue_pair(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(p->a.connector, NotifyDisconnect, ov), ND_PENDING);
    RECEIVE(&p->a, CTX(1), NULL, 0, 0);
    RECEIVE(&p->b, CTX(2), NULL, 0, 0);
    CHECK_EQ(fx_release(f, p->a.qp), 0);
    EXPECT_ERROR(f, &p->a, Receive, ND_CANCELED, CTX(1));
    EXPECT_ERROR(f, &p->b, Receive, ND_CANCELED, CTX(2));
    CHECK_HR(WAIT(f, p->a.connector, ov), ND_SUCCESS);
    fx_end(f);
}

static void release_in_every_state_of_a_connection_is_harmless(void) {
    struct fx *f = fx_begin();
    for (int state = 0; state < 6; state++)
        for (int what = 0; what < 4; what++) {
            struct fx_pair *p = PAIR_CREATE(f, NULL);
            OVERLAPPED *call = NULL, *accept = NULL, *complete = NULL;
            fx_listen(f, p);
            if (state == 1) call = fx_call(f, p);
            if (state == 2) fx_to_requested(f, p, &call);
            if (state >= 3) fx_to_answered(f, p, &accept);
            if (state >= 4) complete = fx_complete(f, p);
            if (state == 5) {
                CHECK_HR(WAIT(f, p->a.connector, complete), ND_SUCCESS);
                OVERLAPPED *leave = fx_overlapped(f);
                CHECK_HR(CALL(p->a.connector, Disconnect, leave), ND_PENDING);
            }
            if (what == 0) CHECK_EQ(fx_release(f, p->a.connector), 0);
            if (what == 1) CHECK_EQ(fx_release(f, p->b.connector), 0);
            if (what == 2) CHECK_EQ(fx_release(f, p->a.qp), 0);
            if (what == 3) CHECK_EQ(fx_release(f, p->b.qp), 0);
            /* What was pending on a released connector is over; nothing else hangs either. */
            if (what == 0 && call) CHECK(fx_is_done(call));
            if (what == 1 && accept) CHECK(fx_is_done(accept));
            if (what == 0 && state == 1) CHECK_EQ((HRESULT)call->Internal, ND_CANCELED);
            for (uint64_t deadline = fx_deadline(); state >= 3 && accept && !fx_is_done(accept);
                 Sleep(0))
                CHECK(host_now_ms() < deadline);
        }
    fx_end(f);
}

static void objects_without_use_come_and_go(void) {
    struct fx *f = fx_begin();
    for (int i = 0; i < HOST_ROUNDS(1000); i++) {
        IND2CompletionQueue *cq = fx_cq(f, 0, 16);
        IND2QueuePair *qp = fx_qp(f, 0, cq, cq, NULL, 16, 1, 0);
        IND2Connector *c = fx_connector(f, 0);
        IND2Listener *l = fx_listener(f, 0);
        IND2MemoryWindow *w = fx_window(f, 0);
        CHECK_EQ(fx_release(f, cq), 0);
        CHECK_EQ(fx_release(f, qp), 0);
        CHECK_EQ(fx_release(f, c), 0);
        CHECK_EQ(fx_release(f, l), 0);
        CHECK_EQ(fx_release(f, w), 0);
    }
    fx_end(f);
}

/* ---- numbers ---- */

static void handles_come_back_after_connections(void) {
    struct fx *f = fx_begin();
    struct fx_pair *warm = PAIR(f, NULL); /* what is made once is made now */
    fx_disconnect(f, &warm->a);
    fx_disconnect(f, &warm->b);
    size_t before = 0;
    for (int i = 0; i < 20 + HOST_ROUNDS(180); i++) {
        struct fx_pair *p = PAIR(f, NULL);
        SYNC(f, &p->a, &p->b);
        if (i % 2) fx_disconnect(f, &p->a);
        struct fx_side *sides[] = { &p->a, &p->b };
        for (int n = 0; n < 2; n++) {
            fx_release(f, sides[n]->connector);
            fx_release(f, sides[n]->qp);
            fx_release(f, sides[n]->receive_cq);
            fx_release(f, sides[n]->initiator_cq);
        }
        fx_release(f, p->listener);
        if (i == 10) before = host_handle_count();
    }
    if (before == 0) SKIP("the system does not count handles");
    /* Connections may take a moment to end. The requests' events are the fixture's own. */
    for (uint64_t deadline = fx_deadline(); host_handle_count() > before + 4; Sleep(0))
        CHECK(host_now_ms() < deadline);
    fx_end(f);
}

static void a_thousand_connections_live_in_one_process(void) {
    enum { COUNT = HOST_ROUNDS(1000) };
    struct fx *f = fx_begin();
    if (!host_allow_handles(2 * COUNT + 500)) SKIP("fewer than 2500 open descriptors allowed");
    IND2CompletionQueue *cq[2] = { fx_cq(f, 0, 4 * COUNT), fx_cq(f, 1, 4 * COUNT) };
    struct fx_pair *first = fx_alloc(f, COUNT * sizeof *first);
    struct fx_memory *a = fx_memory(f, 0, 4 * COUNT, 0);
    struct fx_memory *b = fx_memory(f, 1, 4 * COUNT, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    struct fx_pair *p = first;
    p->b.host = 1;
    fx_listen(f, p);
    for (int i = 0; i < COUNT; i++) {
        p = &first[i];
        p->listener = first->listener;
        p->at = first->at;
        p->at_len = first->at_len;
        struct fx_side *sides[] = { &p->a, &p->b };
        for (int n = 0; n < 2; n++) {
            sides[n]->host = n;
            sides[n]->context = CTX(i);
            sides[n]->receive_cq = sides[n]->initiator_cq = cq[n];
            sides[n]->qp = fx_qp(f, n, cq[n], cq[n], CTX(i), 1, 1, 0);
            sides[n]->connector = fx_connector(f, n);
        }
        RECEIVE(&p->b, CTX(i), b, 4 * (size_t)i, 4);
        fx_handshake(f, p, NULL);
    }
    /* One message on each, all at once. */
    for (int i = 0; i < COUNT; i++) {
        uint32_t value = 0x1000000u + (uint32_t)i;
        memcpy(a->bytes + 4 * i, &value, 4);
        SEND(&first[i].a, CTX(i), a, 4 * (size_t)i, 4, 0);
    }
    bool *seen = fx_alloc(f, 2 * COUNT * sizeof *seen);
    for (int i = 0; i < 2 * COUNT; i++) {
        ND2_RESULT r;
        int side = i < COUNT ? 1 : 0; /* Receives, then Sends */
        NEXT(f, cq[side], &r);
        CHECK_HR(r.Status, ND_SUCCESS);
        uintptr_t n = (uintptr_t)r.QueuePairContext;
        CHECK(n < COUNT && r.RequestContext == CTX(n));
        CHECK(!seen[n + (size_t)side * COUNT]);
        seen[n + (size_t)side * COUNT] = true;
        if (side == 0) continue;
        uint32_t value;
        memcpy(&value, b->bytes + 4 * n, 4);
        CHECK_EQ(value, 0x1000000u + n);
    }
    /* All end at once. */
    OVERLAPPED **ov = fx_alloc(f, COUNT * sizeof(OVERLAPPED *));
    for (int i = 0; i < COUNT; i++) {
        ov[i] = fx_alloc(f, sizeof(OVERLAPPED));
        CHECK_HR(CALL(first[i].a.connector, Disconnect, ov[i]), ND_PENDING);
    }
    for (int i = 0; i < COUNT; i++)
        CHECK_HR(WAIT(f, first[i].a.connector, ov[i]), ND_SUCCESS);
    for (int i = 0; i < COUNT; i++)
        CHECK_HR(RUN(f, first[i].b.connector, NotifyDisconnect, fx_run_ov), ND_SUCCESS);
    fx_end(f);
}

/* ---- several threads connect, talk and part ---- */

struct talker {
    struct fx *f;
    int number;
    const char *trouble; /* NULL: all went well */
};

#define TRY(cond)                                                                                  \
    do {                                                                                           \
        if (!t->trouble && !(cond)) t->trouble = #cond;                                            \
    } while (0)

static HRESULT wait_plain(void *object, OVERLAPPED *ov, HRESULT hr) {
    return hr == ND_PENDING ? CALL(OVERLAPPED_OF(object), GetOverlappedResult, ov, TRUE) : hr;
}

static void connect_talk_and_part(struct talker *t, int round) {
    IND2Adapter *ad = t->f->host[0].adapter;
    HANDLE file = t->f->host[0].file;
    void *cq = NULL, *qa = NULL, *qb = NULL, *ca = NULL, *cb = NULL, *l = NULL;
    struct sockaddr_storage at;
    ULONG len = sizeof at;
    OVERLAPPED request = { .hEvent = NULL }, call = request, accept = request, other = request;
    TRY(CALL(ad, CreateCompletionQueue, &IID_IND2CompletionQueue, file, 16, 0, 0, &cq) == 0);
    TRY(CALL(ad, CreateQueuePair, &IID_IND2QueuePair, cq, cq, CTX(1), 2, 2, 1, 1, 0, &qa) == 0);
    TRY(CALL(ad, CreateQueuePair, &IID_IND2QueuePair, cq, cq, CTX(2), 2, 2, 1, 1, 0, &qb) == 0);
    TRY(CALL(ad, CreateConnector, &IID_IND2Connector, file, &ca) == 0);
    TRY(CALL(ad, CreateConnector, &IID_IND2Connector, file, &cb) == 0);
    TRY(CALL(ad, CreateListener, &IID_IND2Listener, file, &l) == 0);
    if (t->trouble) return;
    IND2Connector *a = ca, *b = cb;
    IND2QueuePair *qpa = qa, *qpb = qb;
    TRY(CALL((IND2Listener *)l, Bind, ADDR(t->f->local), t->f->local_len) == 0);
    TRY(CALL((IND2Listener *)l, GetLocalAddress, (struct sockaddr *)&at, &len) == 0);
    TRY(CALL((IND2Listener *)l, Listen, 1) == 0);
    TRY(CALL((IND2Listener *)l, GetConnectionRequest, cb, &request) == ND_PENDING);
    TRY(CALL(qpb, Receive, CTX(3), NULL, 0) == 0);
    TRY(CALL(a, Connect, qa, ADDR(at), len, 0, 0, NULL, 0, &call) == ND_PENDING);
    TRY(t->trouble || wait_plain(l, &request, ND_PENDING) == 0);
    TRY(CALL(b, Accept, qb, 0, 0, NULL, 0, &accept) == ND_PENDING);
    TRY(t->trouble || wait_plain(a, &call, ND_PENDING) == 0);
    TRY(wait_plain(a, &other, CALL(a, CompleteConnect, &other)) == 0);
    TRY(t->trouble || wait_plain(b, &accept, ND_PENDING) == 0);
    TRY(CALL(qpa, Send, CTX(4), NULL, 0, 0) == 0);
    for (int i = 0; i < 2 && !t->trouble; i++) {
        ND2_RESULT r;
        TRY(fx_next_by(cq, &r, fx_deadline()));
        TRY(r.Status == ND_SUCCESS);
    }
    if (round % 3 == 0) TRY(wait_plain(b, &other, CALL(b, Disconnect, &other)) == 0);
    if (round % 3 == 1) TRY(wait_plain(a, &other, CALL(a, Disconnect, &other)) == 0);
    CALL(UNKNOWN(qa), Release);
    CALL(UNKNOWN(cb), Release);
    CALL(UNKNOWN(cq), Release);
    CALL(UNKNOWN(l), Release);
    CALL(UNKNOWN(ca), Release);
    CALL(UNKNOWN(qb), Release);
}

static void talk_often(void *arg) {
    struct talker *t = arg;
    for (int round = 0; round < HOST_ROUNDS(40) && !t->trouble; round++)
        connect_talk_and_part(t, round + t->number);
}

static void several_threads_connect_talk_and_part(void) {
    struct fx *f = fx_begin();
    enum { THREADS = 4 };
    struct talker t[THREADS];
    struct host_thread *threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        t[i] = (struct talker){ .f = f, .number = i };
        CHECK((threads[i] = host_thread_start(talk_often, &t[i])) != NULL);
    }
    for (int i = 0; i < THREADS; i++)
        host_thread_join(threads[i]);
    for (int i = 0; i < THREADS; i++)
        if (t[i].trouble) FAIL("thread %d: not %s", i, t[i].trouble);
    fx_end(f);
}

/* One thread uses a connection while another takes it apart. */
struct user {
    struct fx_side *side;
    uint32_t stop; /* atomic */
};

static void use_until_stopped(void *arg) {
    struct user *u = arg;
    while (!__atomic_load_n(&u->stop, __ATOMIC_ACQUIRE)) {
        ND2_RESULT r[8];
        CALL(u->side->qp, Receive, NULL, NULL, 0);
        CALL(u->side->qp, Send, NULL, NULL, 0, ND_OP_FLAG_SILENT_SUCCESS);
        CALL(u->side->receive_cq, GetResults, r, 8);
        CALL(u->side->initiator_cq, GetResults, r, 8);
        CALL(u->side->qp, Flush);
    }
}

static void end_of_a_connection_in_use_is_harmless(void) {
    for (int i = 0; i < HOST_ROUNDS(60); i++) {
        struct fx *f = fx_begin();
        struct fx_pair *p = PAIR(f, NULL);
        struct user u = { .side = &p->a };
        IUnknown *kept[] = { UNKNOWN(p->a.qp), UNKNOWN(p->a.receive_cq),
                             UNKNOWN(p->a.initiator_cq) };
        for (int n = 0; n < 3; n++)
            CALL(kept[n], AddRef); /* the thread's own references */
        struct host_thread *thread = host_thread_start(use_until_stopped, &u);
        CHECK(thread != NULL);
        if (i % 3 == 0) fx_disconnect(f, &p->b);
        if (i % 3 == 1) fx_release(f, p->a.connector);
        if (i % 3 == 2) RUN(f, p->a.connector, Disconnect, fx_run_ov);
        for (int n = 0; n < 3; n++)
            fx_release(f, kept[n]);
        __atomic_store_n(&u.stop, 1, __ATOMIC_RELEASE);
        host_thread_join(thread);
        for (int n = 0; n < 3; n++)
            CHECK_EQ(CALL(kept[n], Release), 0);
        fx_end(f);
    }
}

CONFORM_MAIN(TEST(release_counts_the_clients_references_only),
             TEST(objects_of_a_connection_may_be_released_in_every_order),
             TEST(objects_of_a_connection_may_be_released_in_random_order),
             TEST(buffer_may_go_before_everything_else),
             TEST(connection_works_after_adapter_and_file_are_gone),
             TEST(queue_pair_works_after_its_queues_are_gone),
             TEST(connection_ends_with_its_connector), TEST(connection_ends_with_its_queue_pair),
             TEST(release_in_every_state_of_a_connection_is_harmless),
             TEST(objects_without_use_come_and_go), TEST(handles_come_back_after_connections),
             TEST(a_thousand_connections_live_in_one_process),
             TEST(several_threads_connect_talk_and_part),
             TEST(end_of_a_connection_in_use_is_harmless))
