/* SPDX-License-Identifier: MIT
 * Many threads call the same objects at once, with good arguments and bad, while others cancel,
 * end the connection, close the file and let go of their references. What a call says is not the
 * point; each request that was accepted must complete once, each posted one must have one result,
 * exactly one Release is the last, and no handle may be left.
 */
#include "fixture.h"

enum { THREADS = 5, SLOTS = 6, LEN = 4096, OBJECTS = 6 };

/* Overlapped requests of one thread. */
struct slot {
    OVERLAPPED ov;
    IND2Overlapped *object; /* NULL: free */
};

struct crowd;
struct worker {
    struct crowd *crowd;
    struct host_thread *thread;
    uint64_t seed;
    struct slot slot[SLOTS];
    const char *trouble; /* NULL: all went well */
};

struct crowd {
    struct fx *f;
    struct fx_pair *p;
    struct fx_memory *a, *b;
    IND2MemoryWindow *window;
    IND2MemoryRegion *region; /* registered and not, all the time */
    IND2Listener *listener;
    void *object[OBJECTS];                         /* each thread has a reference to each */
    uint8_t *bytes;                                /* of region */
    HANDLE file;                                   /* atomic */
    uint32_t stop, let_go, posted, results, zeros; /* atomic */
    struct worker worker[THREADS];
};

static void add(uint32_t *counter, uint32_t n) {
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}
static uint32_t get(uint32_t *counter) {
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

#define TRY(cond)                                                                                  \
    do {                                                                                           \
        if (!w->trouble && !(cond)) w->trouble = #cond;                                            \
    } while (0)

static size_t pick(struct worker *w, size_t limit) {
    return fx_random_below(&w->seed, limit);
}

/* ---- overlapped requests ---- */

/* A slot whose last request is over; NULL: all are pending. */
static struct slot *free_slot(struct worker *w) {
    for (int i = 0; i < SLOTS; i++) {
        struct slot *s = &w->slot[i];
        if (s->object && !fx_is_done(&s->ov)) continue;
        if (s->object) {
            HRESULT said = CALL(s->object, GetOverlappedResult, &s->ov, FALSE);
            TRY(said != ND_PENDING);
            TRY(said == (HRESULT)s->ov.Internal);
        }
        memset(s, 0, sizeof *s);
        return s;
    }
    return NULL;
}

/* What the call gave; if it was accepted the slot is taken. */
static void begun(struct slot *s, void *object, HRESULT hr) {
    if (hr == ND_PENDING) s->object = OVERLAPPED_OF(object);
}
#define BEGIN(w, object_, method, ...)                                                             \
    do {                                                                                           \
        struct slot *slot_ = free_slot(w);                                                         \
        if (slot_) begun(slot_, object_, CALL(object_, method, ##__VA_ARGS__, &slot_->ov));        \
    } while (0)

/* Everything that is pending ends, for its object was cancelled. */
static void end_requests(struct crowd *c) {
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < SLOTS; k++) {
            struct slot *s = &c->worker[i].slot[k];
            if (!s->object) continue;
            for (uint64_t deadline = fx_deadline(); !fx_is_done(&s->ov); Sleep(0)) {
                CALL(s->object, CancelOverlappedRequests);
                if (host_now_ms() > deadline) FAIL("a request never ends");
            }
            s->object = NULL;
        }
}

/* ---- threads ---- */

static void start(struct crowd *c, void (*body)(void *)) {
    uint64_t seed = fx_seed();
    for (int i = 0; i < THREADS; i++) {
        struct worker *w = &c->worker[i];
        w->crowd = c;
        w->seed = fx_random(&seed);
        for (int k = 0; k < OBJECTS; k++)
            if (c->object[k]) CALL(UNKNOWN(c->object[k]), AddRef);
        CHECK((w->thread = host_thread_start(body, w)) != NULL);
    }
}

/* The references of one thread, from another place on for each. */
static void let_go(struct worker *w) {
    struct crowd *c = w->crowd;
    size_t first = pick(w, OBJECTS);
    for (size_t i = 0; i < OBJECTS; i++) {
        void *object = c->object[(first + i) % OBJECTS];
        if (object && CALL(UNKNOWN(object), Release) == 0) add(&c->zeros, 1);
    }
}

static void let_go_when_told(void *arg) {
    struct worker *w = arg;
    while (!get(&w->crowd->let_go))
        Sleep(0);
    let_go(w);
}

static void join(struct crowd *c) {
    for (int i = 0; i < THREADS; i++)
        host_thread_join(c->worker[i].thread);
    for (int i = 0; i < THREADS; i++)
        if (c->worker[i].trouble) FAIL("thread %d: not %s", i, c->worker[i].trouble);
}

/* All threads let go at once; the fixture has its references no more. */
static void end_objects(struct crowd *c) {
    uint32_t count = 0;
    for (int k = 0; k < OBJECTS; k++) {
        if (!c->object[k]) continue;
        count++;
        fx_release(c->f, c->object[k]);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK((c->worker[i].thread = host_thread_start(let_go_when_told, &c->worker[i])) != NULL);
    __atomic_store_n(&c->let_go, 1, __ATOMIC_RELEASE);
    join(c);
    CHECK_EQ(get(&c->zeros), count);
}

static void run_for(struct crowd *c, uint32_t ms) {
    for (uint64_t end = host_now_ms() + ms; host_now_ms() < end;)
        Sleep(1);
    __atomic_store_n(&c->stop, 1, __ATOMIC_RELEASE);
    join(c);
}

/* ---- one connection ---- */

static void post(struct worker *w) {
    struct crowd *c = w->crowd;
    struct fx_side *s = &c->p->a;
    size_t len = pick(w, 3) ? pick(w, LEN) : 0;
    HRESULT hr = ND_UNSUCCESSFUL;
    switch (pick(w, 7)) {
    case 0:
        hr = fx_send(s, NULL, c->a, 0, len, pick(w, 2) ? ND_OP_FLAG_SEND_AND_SOLICIT_EVENT : 0);
        break;
    case 1:
        hr = fx_receive(s, NULL, c->a, 0, LEN);
        break;
    case 2:
        hr = fx_write(s, NULL, c->a, 0, len, c->b, 0, 0);
        break;
    case 3:
        hr = fx_read(s, NULL, c->a, 0, len, c->b, 0, ND_OP_FLAG_READ_FENCE);
        break;
    case 4:
        hr = fx_bind(s, NULL, c->a, c->window, 0, LEN, ND_OP_FLAG_ALLOW_READ);
        break;
    case 5:
        hr = CALL(s->qp, Invalidate, NULL, UNKNOWN(c->window), 0);
        break;
    case 6: /* more than one SGE may have, or a window where a region belongs */
        hr = pick(w, 2)
                 ? CALL(s->qp, Send, NULL, NULL, 1000, 0)
                 : CALL(s->qp, Bind, NULL, UNKNOWN(c->window), UNKNOWN(c->window), c->bytes, 1, 0);
        TRY(FAILED(hr));
        break;
    }
    if (hr == ND_SUCCESS) add(&c->posted, 1);
}

static void take(struct crowd *c) {
    ND2_RESULT r[8];
    add(&c->results, CALL(c->p->a.initiator_cq, GetResults, r, 8));
    add(&c->results, CALL(c->p->a.receive_cq, GetResults, r, 3));
}

static void ask(struct worker *w) {
    struct crowd *c = w->crowd;
    IND2Connector *con = c->p->a.connector;
    struct sockaddr_storage at;
    ULONG len = (ULONG)pick(w, sizeof at), in, out;
    uint8_t data[64];
    CALL(con, GetLocalAddress, (struct sockaddr *)&at, &len);
    len = sizeof at;
    CALL(con, GetPeerAddress, (struct sockaddr *)&at, &len);
    len = (ULONG)pick(w, sizeof data);
    CALL(con, GetPrivateData, data, &len);
    CALL(con, GetReadLimits, &in, &out);
    CALL(c->window, GetRemoteToken);
}

static void misuse_connection(void *arg) {
    struct worker *w = arg;
    struct crowd *c = w->crowd;
    struct fx_side *s = &c->p->a;
    IND2Connector *con = s->connector;
    while (!get(&c->stop) && !w->trouble) {
        switch (pick(w, 24)) {
        case 0:
            CALL(s->qp, Flush);
            break;
        case 1:
            CALL(s->initiator_cq, Resize, 256 + (ULONG)pick(w, 256));
            break;
        case 2:
            BEGIN(w, s->initiator_cq, Notify, ND_CQ_NOTIFY_ANY);
            break;
        case 3:
            BEGIN(w, s->receive_cq, Notify, ND_CQ_NOTIFY_SOLICITED);
            break;
        case 4:
            BEGIN(w, con, NotifyDisconnect);
            break;
        case 5:
            if (pick(w, 100) == 0) BEGIN(w, con, Disconnect);
            break;
        case 6: /* out of turn */
            BEGIN(w, con, CompleteConnect);
            break;
        case 7:
            BEGIN(w, con, Accept, UNKNOWN(s->qp), 1, 1, NULL, 0);
            break;
        case 8:
            BEGIN(w, con, Connect, UNKNOWN(s->qp), ADDR(c->p->at), c->p->at_len, 1, 1, NULL, 0);
            break;
        case 9:
            CALL(con, Reject, NULL, 0);
            break;
        case 10:
            CALL(OVERLAPPED_OF(c->object[pick(w, 3)]), CancelOverlappedRequests);
            break;
        case 11:
            ask(w);
            break;
        case 12: {
            void *same = NULL;
            TRY(CALL(UNKNOWN(s->qp), QueryInterface, &IID_IND2Listener, &same) == E_NOINTERFACE);
            TRY(CALL(UNKNOWN(s->qp), QueryInterface, &IID_IND2QueuePair, &same) == S_OK);
            if (same) CALL(UNKNOWN(same), Release);
            break;
        }
        case 13:
        case 14:
        case 15:
        case 16:
        case 17:
            take(c);
            break;
        default:
            post(w);
        }
    }
}

/* The other end, by one thread: receives, sends, and takes what comes. */
struct peer {
    struct crowd *c;
    uint32_t stop; /* atomic */
};

static void serve(void *arg) {
    struct peer *peer = arg;
    struct fx_side *s = &peer->c->p->b;
    ND2_RESULT r[8];
    while (!get(&peer->stop)) {
        fx_receive(s, NULL, peer->c->b, 0, LEN);
        fx_send(s, NULL, peer->c->b, 0, 8, 0);
        CALL(s->receive_cq, GetResults, r, 8);
        CALL(s->initiator_cq, GetResults, r, 8);
        Sleep(0);
    }
}

static void end_connection(struct fx *f, struct crowd *c, int how) {
    OVERLAPPED *ov = fx_overlapped(f);
    HRESULT hr;
    if (how == 0 || how == 1) {
        IND2Connector *con = how ? c->p->a.connector : c->p->b.connector;
        hr = CALL(con, Disconnect, ov);
        if (hr == ND_PENDING) (void)WAIT(f, con, ov);
    }
    if (how == 2) fx_release(f, c->p->b.qp);
    if (how == 3) { /* what the objects stand on */
        CHECK(CloseHandle(f->host[0].file));
        f->host[0].file = NULL;
        CALL(f->host[0].adapter, Release);
        f->host[0].adapter = NULL;
    }
}

static void connection_round(int how) {
    struct fx *f = fx_begin();
    struct fx_pair_options o = { .cq_depth = 512 };
    struct crowd c = { .f = f, .p = PAIR(f, &o) };
    struct peer peer = { .c = &c };
    c.a = fx_memory(f, 0, LEN, FX_MR_ALL);
    c.b = fx_memory(f, 1, LEN, FX_MR_ALL);
    c.bytes = c.a->bytes;
    c.window = fx_window(f, 0);
    void *objects[] = { c.p->a.connector, c.p->a.initiator_cq, c.p->a.receive_cq, c.p->a.qp,
                        c.window };
    memcpy(c.object, objects, sizeof objects);
    struct host_thread *other = host_thread_start(serve, &peer);
    CHECK(other != NULL);
    start(&c, misuse_connection);
    uint64_t end = host_now_ms() + 40, late = fx_deadline();
    while (host_now_ms() < end || (get(&c.posted) == 0 && host_now_ms() < late))
        Sleep(1);
    if (how != 2) end_connection(f, &c, how);
    run_for(&c, 30);
    __atomic_store_n(&peer.stop, 1, __ATOMIC_RELEASE);
    host_thread_join(other);
    if (how == 2) end_connection(f, &c, how);
    end_requests(&c);
    CHECK_HR(CALL(c.p->a.qp, Flush), ND_SUCCESS);
    for (uint64_t deadline = fx_deadline(); get(&c.results) != get(&c.posted); take(&c))
        if (host_now_ms() > deadline)
            FAIL("%u requests were accepted, %u results came", get(&c.posted), get(&c.results));
    take(&c);
    CHECK_EQ(get(&c.results), get(&c.posted));
    CHECK(get(&c.posted) != 0);
    end_objects(&c);
    fx_end(f);
}

static void connection_under_many_threads_loses_no_completion(void) {
    size_t before = 0;
    for (int round = 0; round < 2 + HOST_ROUNDS(6); round++) {
        connection_round(round % 4);
        if (round == 1) before = host_handle_count();
    }
    if (before == 0) return;
    for (uint64_t deadline = fx_deadline(); host_handle_count() > before + 4; Sleep(1))
        if (host_now_ms() > deadline)
            FAIL("%zu handles are open, %zu were", host_handle_count(), before);
}

/* ---- making objects while their file comes and goes ---- */

static void make_objects(void *arg) {
    struct worker *w = arg;
    struct crowd *c = w->crowd;
    IND2Adapter *ad = c->f->host[0].adapter;
    while (!get(&c->stop) && !w->trouble) {
        HANDLE file = __atomic_load_n(&c->file, __ATOMIC_ACQUIRE);
        void *made = NULL;
        HRESULT hr = ND_SUCCESS;
        ULONG cb = (ULONG)pick(w, sizeof(ND2_ADAPTER_INFO));
        ND2_ADAPTER_INFO info = { .InfoVersion = 1 };
        switch (pick(w, 6)) {
        case 0:
            hr = CALL(ad, CreateCompletionQueue, &IID_IND2CompletionQueue, file, 16, 0, 0, &made);
            break;
        case 1:
            hr = CALL(ad, CreateConnector, &IID_IND2Connector, file, &made);
            break;
        case 2:
            hr = CALL(ad, CreateListener, &IID_IND2Listener, file, &made);
            break;
        case 3:
            hr = CALL(ad, CreateMemoryRegion, &IID_IND2MemoryRegion, file, &made);
            break;
        case 4:
            TRY(CALL(ad, CreateConnector, &IID_IND2QueuePair, file, &made) != ND_SUCCESS);
            break;
        case 5:
            TRY(CALL(ad, Query, &info, &cb) == ND_BUFFER_OVERFLOW);
            break;
        }
        TRY(hr == ND_SUCCESS || hr == ND_INVALID_HANDLE);
        TRY(hr == ND_SUCCESS || !made);
        if (made) TRY(CALL(UNKNOWN(made), Release) == 0);
    }
}

static void file_closed_while_threads_make_objects_on_it_is_harmless(void) {
    struct fx *f = fx_begin();
    struct crowd c = { .f = f };
    HANDLE file;
    CHECK_HR(CALL(f->host[0].adapter, CreateOverlappedFile, &file), ND_SUCCESS);
    c.file = file;
    start(&c, make_objects);
    for (int i = 0; i < HOST_ROUNDS(300); i++) {
        CHECK(CloseHandle(file));
        CHECK_HR(CALL(f->host[0].adapter, CreateOverlappedFile, &file), ND_SUCCESS);
        __atomic_store_n(&c.file, file, __ATOMIC_RELEASE);
        Sleep(0);
    }
    run_for(&c, 0);
    CHECK(CloseHandle(file));
    fx_end(f);
}

/* ---- one region ---- */

static void misuse_region(void *arg) {
    struct worker *w = arg;
    struct crowd *c = w->crowd;
    while (!get(&c->stop) && !w->trouble) {
        switch (pick(w, 4)) {
        case 0:
            BEGIN(w, c->region, Register, c->bytes, LEN, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
            break;
        case 1:
            BEGIN(w, c->region, Deregister);
            break;
        case 2:
            CALL(c->region, GetLocalToken);
            CALL(c->region, GetRemoteToken);
            break;
        case 3:
            CALL(c->region, CancelOverlappedRequests);
            break;
        }
    }
}

static void region_under_many_threads_is_registered_or_not(void) {
    struct fx *f = fx_begin();
    struct crowd c = { .f = f, .bytes = fx_alloc(f, LEN) };
    void *made;
    CHECK_HR(
        CALL(f->host[0].adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, f->host[0].file, &made),
        ND_SUCCESS);
    fx_track(f, made);
    c.object[0] = c.region = made;
    start(&c, misuse_region);
    run_for(&c, 60);
    end_requests(&c);
    HRESULT hr = RUN(f, c.region, Deregister, fx_run_ov);
    CHECK(hr == ND_SUCCESS || hr == ND_INVALID_DEVICE_REQUEST);
    CHECK_HR(RUN(f, c.region, Register, c.bytes, LEN, 0, fx_run_ov), ND_SUCCESS);
    CHECK_HR(RUN(f, c.region, Deregister, fx_run_ov), ND_SUCCESS);
    end_objects(&c);
    fx_end(f);
}

/* ---- one listener ---- */

static void misuse_listener(void *arg) {
    struct worker *w = arg;
    struct crowd *c = w->crowd;
    IND2Adapter *ad = c->f->host[0].adapter;
    HANDLE file = c->f->host[0].file;
    enum { KEPT = 4 };
    void *kept[KEPT] = { NULL };
    for (size_t n = 0; !get(&c->stop) && !w->trouble; n++) {
        void **con = &kept[n % KEPT], *cq = NULL, *qp = NULL;
        struct sockaddr_storage at;
        ULONG len = sizeof at;
        if (!*con) TRY(CALL(ad, CreateConnector, &IID_IND2Connector, file, con) == ND_SUCCESS);
        if (!*con) break;
        switch (pick(w, 5)) {
        case 0:
        case 1: /* who asks for a request */
            BEGIN(w, c->listener, GetConnectionRequest, UNKNOWN(*con));
            break;
        case 2: { /* who calls, and gives up at once */
            OVERLAPPED ov = { .hEvent = NULL };
            void *caller = NULL;
            TRY(CALL(ad, CreateConnector, &IID_IND2Connector, file, &caller) == ND_SUCCESS);
            TRY(CALL(ad, CreateCompletionQueue, &IID_IND2CompletionQueue, file, 4, 0, 0, &cq) ==
                ND_SUCCESS);
            TRY(CALL(ad, CreateQueuePair, &IID_IND2QueuePair, cq, cq, NULL, 1, 1, 1, 1, 0, &qp) ==
                ND_SUCCESS);
            if (w->trouble) break;
            HRESULT hr = CALL((IND2Connector *)caller, Connect, qp, ADDR(c->p->at), c->p->at_len, 0,
                              0, NULL, 0, &ov);
            if (pick(w, 2)) Sleep(1);
            CALL(UNKNOWN(caller), Release); /* cancels it */
            TRY(hr != ND_PENDING || fx_is_done(&ov));
            CALL(UNKNOWN(qp), Release);
            CALL(UNKNOWN(cq), Release);
            break;
        }
        case 3:
            CALL(c->listener, GetLocalAddress, (struct sockaddr *)&at, &len);
            TRY(CALL(c->listener, Listen, 1) == ND_INVALID_DEVICE_STATE);
            if (pick(w, 4) == 0) CALL(c->listener, CancelOverlappedRequests);
            break;
        case 4: /* a connector that may be waiting goes */
            CALL(UNKNOWN(*con), Release);
            *con = NULL;
            break;
        }
    }
    for (size_t n = 0; n < KEPT; n++)
        if (kept[n]) CALL(UNKNOWN(kept[n]), Release);
}

static void listener_under_many_threads_ends_every_request(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = fx_alloc(f, sizeof *p);
    struct crowd c = { .f = f, .p = p };
    fx_listen(f, p);
    c.object[0] = c.listener = p->listener;
    start(&c, misuse_listener);
    run_for(&c, 150);
    end_requests(&c);
    end_objects(&c);
    fx_end(f);
}

CONFORM_MAIN(TEST(connection_under_many_threads_loses_no_completion),
             TEST(file_closed_while_threads_make_objects_on_it_is_harmless),
             TEST(region_under_many_threads_is_registered_or_not),
             TEST(listener_under_many_threads_ends_every_request))
