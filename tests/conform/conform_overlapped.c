/* SPDX-License-Identifier: MIT
 * conform_overlapped.c - how overlapped requests complete: ports, thread-pool callbacks, events,
 * GetOverlappedResult in every state, cancelling, shared and hostile OVERLAPPEDs.
 *
 * Every accepted request must answer ND_PENDING and complete exactly once: the one convention
 * under which no known client hangs and none sees a request twice.
 */
#include "fixture.h"

static const ULONG_PTR KEY = 0xC0FFEE;

/* A port bound to a new file of host 0, and packets counted. */
struct stage {
    struct fx *f;
    HANDLE port;
};

static struct stage open_stage(void) {
    struct stage s = { .f = fx_begin() };
    fx_poll_results = true; /* a Notify of the fixture would be a packet too */
    s.port = CreateIoCompletionPort(s.f->host[0].file, NULL, KEY, 0);
    CHECK(s.port != NULL);
    CHECK(CreateIoCompletionPort(s.f->host[1].file, s.port, KEY, 0) == s.port);
    return s;
}

static void close_stage(struct stage *s) {
    CHECK(CloseHandle(s->port));
    fx_end(s->f);
}

/* An OVERLAPPED without an event. */
static OVERLAPPED *plain(struct stage *s) {
    return fx_alloc(s->f, sizeof(OVERLAPPED));
}

static OVERLAPPED *dequeue(struct stage *s, bool *success) {
    DWORD bytes = 0;
    ULONG_PTR key = 0;
    OVERLAPPED *ov = NULL;
    BOOL ok = GetQueuedCompletionStatus(s->port, &bytes, &key, &ov, 30000);
    if (!ov) FAIL("no packet: error %u", (unsigned)GetLastError());
    CHECK_EQ(key, KEY);
    *success = ok;
    return ov;
}

static void expect_packet(struct stage *s, OVERLAPPED *ov, bool success) {
    bool got;
    CHECK_PTR(dequeue(s, &got), ov);
    CHECK_EQ(got, success);
}

static void expect_no_packet(struct stage *s) {
    DWORD bytes;
    ULONG_PTR key;
    OVERLAPPED *ov = (OVERLAPPED *)1;
    CHECK(!GetQueuedCompletionStatus(s->port, &bytes, &key, &ov, 0));
    CHECK_PTR(ov, NULL);
    CHECK_EQ(GetLastError(), WAIT_TIMEOUT);
}

static IND2MemoryRegion *new_region(struct fx *f) {
    void *region = NULL;
    CHECK_HR(CALL(f->host[0].adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, f->host[0].file,
                  &region),
             ND_SUCCESS);
    fx_track(f, region);
    return region;
}

static char buffer[4096];

/* ---- completion ports ---- */

static void file_can_be_bound_once(void) {
    struct stage s = open_stage();
    HANDLE other = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    CHECK(other != NULL);
    CHECK(CreateIoCompletionPort(s.f->host[0].file, other, 1, 0) == NULL);
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK(CloseHandle(other));
    close_stage(&s);
}

static void success_is_one_packet(void) {
    struct stage s = open_stage();
    IND2MemoryRegion *region = new_region(s.f);
    for (int i = 0; i < 100; i++) {
        OVERLAPPED *ov = plain(&s);
        CHECK_HR(CALL(region, Register, buffer, sizeof buffer, 0, ov), ND_PENDING);
        expect_packet(&s, ov, true);
        CHECK_EQ(ov->Internal, 0);
        CHECK_HR(CALL(region, GetOverlappedResult, ov, FALSE), ND_SUCCESS);
        CHECK_HR(CALL(region, Deregister, ov), ND_PENDING); /* reused at once */
        expect_packet(&s, ov, true);
        CHECK_HR(CALL(region, GetOverlappedResult, ov, FALSE), ND_SUCCESS);
    }
    expect_no_packet(&s);
    close_stage(&s);
}

static void synchronous_failure_is_no_packet(void) {
    struct stage s = open_stage();
    IND2MemoryRegion *region = new_region(s.f);
    OVERLAPPED *ov = fx_overlapped(s.f);
    CHECK_HR(CALL(region, Register, NULL, 0, 0, ov), ND_INVALID_PARAMETER);
    CHECK_HR(CALL(region, Deregister, ov), ND_INVALID_DEVICE_REQUEST);
    CHECK_HR(CALL(fx_connector(s.f, 0), Disconnect, ov), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(fx_cq(s.f, 0, 4), Notify, 99, ov), ND_INVALID_PARAMETER_1);
    expect_no_packet(&s);
    CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_TIMEOUT);
    close_stage(&s);
}

static void asynchronous_failure_is_a_failed_packet(void) {
    struct stage s = open_stage();
    struct fx_pair *p = PAIR_CREATE(s.f, NULL);
    IND2Listener *l = fx_listener(s.f, 1);
    struct sockaddr_storage at;
    ULONG len = sizeof at;
    CHECK_HR(CALL(l, Bind, ADDR(s.f->local), s.f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(l, GetLocalAddress, (struct sockaddr *)&at, &len), ND_SUCCESS);
    fx_release(s.f, l);
    OVERLAPPED *ov = plain(&s);
    CHECK_HR(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(at), len, 0, 0, NULL, 0, ov),
             ND_PENDING);
    expect_packet(&s, ov, false);
    CHECK_HR(CALL(p->a.connector, GetOverlappedResult, ov, FALSE), ND_CONNECTION_REFUSED);
    CHECK_HR(CALL(p->a.connector, GetOverlappedResult, ov, TRUE), ND_CONNECTION_REFUSED);
    expect_no_packet(&s);
    close_stage(&s);
}

static void entries_of_failed_requests_carry_a_failure(void) {
    struct stage s = open_stage();
    IND2CompletionQueue *cq = fx_cq(s.f, 0, 4);
    OVERLAPPED *one = plain(&s), *two = plain(&s);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, one), ND_PENDING);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, two), ND_PENDING);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    OVERLAPPED_ENTRY entries[4];
    ULONG removed = 0;
    CHECK(GetQueuedCompletionStatusEx(s.port, entries, 4, &removed, 0, FALSE));
    CHECK_EQ(removed, 2);
    CHECK_PTR(entries[0].lpOverlapped, one);
    CHECK_PTR(entries[1].lpOverlapped, two);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ((HRESULT)entries[i].Internal, ND_CANCELED);
        CHECK_EQ(entries[i].lpCompletionKey, KEY);
    }
    close_stage(&s);
}

/* A whole connection, every step driven by packets alone. */
static void connection_by_packets_alone_works(void) {
    struct stage s = open_stage();
    struct fx *f = s.f;
    for (int i = 0; i < 10; i++) {
        struct fx_pair *p = PAIR_CREATE(f, NULL);
        OVERLAPPED *request = plain(&s), *call = plain(&s), *accept = plain(&s);
        OVERLAPPED *complete = plain(&s), *watch = plain(&s), *leave = plain(&s),
                   *armed = plain(&s);
        bool ok;
        fx_listen(f, p);
        RECEIVE(&p->b, CTX(1), NULL, 0, 0);
        CHECK_HR(CALL(p->listener, GetConnectionRequest, UNKNOWN(p->b.connector), request),
                 ND_PENDING);
        CHECK_HR(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(p->at), p->at_len, 0, 0, NULL,
                      0, call),
                 ND_PENDING);
        expect_packet(&s, request, true);
        CHECK_HR(CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, NULL, 0, accept), ND_PENDING);
        expect_packet(&s, call, true);
        CHECK_HR(CALL(p->a.connector, CompleteConnect, complete), ND_PENDING);
        OVERLAPPED *first = dequeue(&s, &ok); /* these two in either order */
        CHECK(ok);
        OVERLAPPED *second = dequeue(&s, &ok);
        CHECK(ok);
        CHECK((first == accept && second == complete) || (first == complete && second == accept));
        CHECK_HR(CALL(p->b.connector, NotifyDisconnect, watch), ND_PENDING);
        CHECK_HR(CALL(p->b.receive_cq, Notify, ND_CQ_NOTIFY_ANY, armed), ND_PENDING);
        SEND(&p->a, CTX(1), NULL, 0, 0, 0);
        expect_packet(&s, armed, true);
        EXPECT_OK(f, &p->b, Receive, CTX(1), 0);
        EXPECT_OK(f, &p->a, Send, CTX(1), 0);
        CHECK_HR(CALL(p->a.connector, Disconnect, leave), ND_PENDING);
        first = dequeue(&s, &ok);
        CHECK(ok);
        second = dequeue(&s, &ok);
        CHECK(ok);
        CHECK((first == leave && second == watch) || (first == watch && second == leave));
        expect_no_packet(&s);
    }
    close_stage(&s);
}

static void port_of_a_file_closed_since_still_gets_packets(void) {
    struct stage s = open_stage();
    IND2CompletionQueue *cq = fx_cq(s.f, 0, 4);
    IND2MemoryRegion *region = new_region(s.f);
    OVERLAPPED *ov = plain(&s), *reg = plain(&s);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK(CloseHandle(s.f->host[0].file)); /* with a request in it */
    s.f->host[0].file = NULL;
    CHECK_HR(CALL(region, Register, buffer, sizeof buffer, 0, reg), ND_PENDING);
    expect_packet(&s, reg, true);
    CHECK_EQ(fx_release(s.f, cq), 0);
    expect_packet(&s, ov, false);
    CHECK_EQ((HRESULT)ov->Internal, ND_CANCELED);
    expect_no_packet(&s);
    close_stage(&s);
}

static void port_closed_before_a_completion_is_harmless(void) {
    struct stage s = open_stage();
    IND2CompletionQueue *cq = fx_cq(s.f, 0, 4);
    OVERLAPPED *ov = plain(&s);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK(CloseHandle(s.port));
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(CALL(cq, GetOverlappedResult, ov, TRUE), ND_CANCELED);
    fx_end(s.f);
}

/* ---- several threads on one port ---- */

enum { POOL = 4, ROUNDS = HOST_ROUNDS(400), EACH = 8 };

struct pool {
    struct fx *f;
    HANDLE port;
    uint32_t started, finished; /* rounds of all threads; atomic */
    uint32_t wrong;             /* atomic */
};

struct unit {
    OVERLAPPED ov; /* first: a packet leads to its unit */
    IND2MemoryRegion *region;
    uint32_t phase; /* 0 registering, 1 deregistering */
    uint32_t rounds;
};

/* Whoever gets a packet drives that unit on, and asks its own region for the result of a request
 * that another region has made: the OVERLAPPED alone must tell. */
static void work(void *arg) {
    struct pool *pool = arg;
    for (;;) {
        DWORD bytes;
        ULONG_PTR key;
        OVERLAPPED *ov = NULL;
        BOOL ok = GetQueuedCompletionStatus(pool->port, &bytes, &key, &ov, 30000);
        if (!ov) { /* the end, or nothing for far too long */
            if (!ok) __atomic_fetch_add(&pool->wrong, 1, __ATOMIC_RELAXED);
            return;
        }
        struct unit *u = (struct unit *)ov;
        if (!ok || CALL(u->region, GetOverlappedResult, ov, FALSE) != ND_SUCCESS)
            __atomic_fetch_add(&pool->wrong, 1, __ATOMIC_RELAXED);
        HRESULT hr;
        if (u->phase == 0) {
            u->phase = 1;
            hr = CALL(u->region, Deregister, ov);
        } else if (++u->rounds < ROUNDS) {
            u->phase = 0;
            hr = CALL(u->region, Register, buffer, sizeof buffer, 0, ov);
        } else {
            if (__atomic_add_fetch(&pool->finished, 1, __ATOMIC_ACQ_REL) == POOL * EACH)
                for (int i = 0; i < POOL; i++)
                    PostQueuedCompletionStatus(pool->port, 0, 0, NULL);
            continue;
        }
        if (hr != ND_PENDING) __atomic_fetch_add(&pool->wrong, 1, __ATOMIC_RELAXED);
    }
}

static void several_threads_share_one_port(void) {
    struct stage s = open_stage();
    struct pool pool = { .f = s.f, .port = s.port };
    struct unit *units = fx_alloc(s.f, POOL * EACH * sizeof *units);
    struct host_thread *threads[POOL];
    for (int i = 0; i < POOL * EACH; i++)
        units[i].region = new_region(s.f);
    for (int i = 0; i < POOL; i++)
        CHECK((threads[i] = host_thread_start(work, &pool)) != NULL);
    uint32_t wrong = 0;
    for (int i = 0; i < POOL * EACH; i++)
        if (CALL(units[i].region, Register, buffer, sizeof buffer, 0, &units[i].ov) != ND_PENDING)
            wrong++;
    for (int i = 0; i < POOL; i++)
        host_thread_join(threads[i]);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(pool.wrong, 0);
    CHECK_EQ(pool.finished, POOL * EACH);
    expect_no_packet(&s);
    close_stage(&s);
}

/* ---- BindIoCompletionCallback ---- */

static struct {
    uint32_t calls, failures; /* atomic */
    DWORD last_error;
    OVERLAPPED *last;
    HANDLE event;
    IND2CompletionQueue *cq; /* if set, the callback arms it again */
    OVERLAPPED again;
} callback;

static VOID CALLBACK on_completion(DWORD error, DWORD bytes, LPOVERLAPPED ov) {
    (void)bytes;
    callback.last_error = error;
    callback.last = ov;
    if (error) __atomic_fetch_add(&callback.failures, 1, __ATOMIC_RELAXED);
    if (callback.cq) {
        IND2CompletionQueue *cq = callback.cq;
        callback.cq = NULL;
        CALL(cq, Notify, ND_CQ_NOTIFY_ANY, &callback.again);
    }
    __atomic_fetch_add(&callback.calls, 1, __ATOMIC_RELEASE);
    SetEvent(callback.event);
}

static void await_callback(uint32_t calls) {
    for (uint64_t deadline = fx_deadline();
         __atomic_load_n(&callback.calls, __ATOMIC_ACQUIRE) < calls;) {
        CHECK(host_now_ms() < deadline);
        WaitForSingleObject(callback.event, 50);
    }
    CHECK_EQ(__atomic_load_n(&callback.calls, __ATOMIC_ACQUIRE), calls);
}

static void callback_is_called_once_per_request(void) {
    struct fx *f = fx_begin();
    memset(&callback, 0, sizeof callback);
    callback.event = CreateEventW(NULL, FALSE, FALSE, NULL);
    CHECK(BindIoCompletionCallback(f->host[0].file, on_completion, 0));
    CHECK(!BindIoCompletionCallback(f->host[0].file, on_completion, 0));
    IND2MemoryRegion *region = new_region(f);
    OVERLAPPED *ov = fx_alloc(f, sizeof *ov);
    for (uint32_t i = 0; i < 20; i++) {
        HRESULT hr = i % 2 ? CALL(region, Deregister, ov)
                           : CALL(region, Register, buffer, sizeof buffer, 0, ov);
        CHECK_HR(hr, ND_PENDING);
        await_callback(i + 1);
        CHECK_PTR(callback.last, ov);
        CHECK_EQ(callback.last_error, 0);
        CHECK_HR(CALL(region, GetOverlappedResult, ov, TRUE), ND_SUCCESS);
    }
    /* A failure: the routine gets the status. */
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    await_callback(21);
    if (!host_lacks(HOST_CALLBACK_STATUS)) CHECK_EQ((HRESULT)callback.last_error, ND_CANCELED);
    CHECK(callback.last_error != 0);
    CloseHandle(callback.event);
    fx_end(f);
}

static void callback_may_make_requests(void) {
    struct fx *f = fx_begin();
    memset(&callback, 0, sizeof callback);
    callback.event = CreateEventW(NULL, FALSE, FALSE, NULL);
    CHECK(BindIoCompletionCallback(f->host[0].file, on_completion, 0));
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    OVERLAPPED *ov = fx_alloc(f, sizeof *ov);
    callback.cq = cq;
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    await_callback(1);
    CHECK_EQ((HRESULT)ov->Internal, ND_CANCELED);
    CHECK_HR(CALL(cq, GetOverlappedResult, &callback.again, FALSE), ND_PENDING);
    CHECK_EQ(fx_release(f, cq), 0);
    await_callback(2);
    CHECK_PTR(callback.last, &callback.again);
    CloseHandle(callback.event);
    fx_end(f);
}

/* ---- events ---- */

static void event_and_packet_are_both_delivered(void) {
    struct stage s = open_stage();
    IND2MemoryRegion *region = new_region(s.f);
    OVERLAPPED *ov = fx_overlapped(s.f);
    CHECK_HR(CALL(region, Register, buffer, sizeof buffer, 0, ov), ND_PENDING);
    CHECK_EQ(WaitForSingleObject(ov->hEvent, 30000), WAIT_OBJECT_0);
    expect_packet(&s, ov, true);
    CHECK_HR(CALL(region, GetOverlappedResult, ov, FALSE), ND_SUCCESS);
    close_stage(&s);
}

static void handle_that_is_no_event_changes_nothing(void) {
    struct stage s = open_stage();
    IND2MemoryRegion *region = new_region(s.f);
    OVERLAPPED *ov = plain(&s);
    ov->hEvent = s.port;
    CHECK_HR(CALL(region, Register, buffer, sizeof buffer, 0, ov), ND_PENDING);
    expect_packet(&s, ov, true);
    CHECK_HR(CALL(region, GetOverlappedResult, ov, FALSE), ND_SUCCESS);
    expect_no_packet(&s);
    close_stage(&s);
}

static void tagged_event_suppresses_the_packet(void) {
    struct stage s = open_stage();
    IND2MemoryRegion *region = new_region(s.f);
    IND2CompletionQueue *cq = fx_cq(s.f, 0, 4);
    OVERLAPPED *ov = fx_overlapped(s.f);
    HANDLE event = ov->hEvent;
    ov->hEvent = (HANDLE)((ULONG_PTR)event | 1);
    for (int i = 0; i < 20; i++) {
        HRESULT hr = i % 2 ? CALL(region, Deregister, ov)
                           : CALL(region, Register, buffer, sizeof buffer, 0, ov);
        CHECK_HR(hr, ND_PENDING);
        CHECK_EQ(WaitForSingleObject(event, 30000), WAIT_OBJECT_0);
        CHECK_HR(CALL(region, GetOverlappedResult, ov, TRUE), ND_SUCCESS);
    }
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK_EQ(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_EQ(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    expect_no_packet(&s);
    close_stage(&s);
}

static void submitting_resets_the_event(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK(SetEvent(ov->hEvent)); /* left over from something else */
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_TIMEOUT);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_OBJECT_0);
    fx_end(f);
}

static void manual_reset_event_stays_signalled(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    OVERLAPPED *ov = fx_alloc(f, sizeof *ov);
    ov->hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
        CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_TIMEOUT);
        CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
        CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_OBJECT_0);
        CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_OBJECT_0);
    }
    CloseHandle(ov->hEvent);
    fx_end(f);
}

static void status_is_in_place_before_the_event(void) {
    struct fx *f = fx_begin();
    IND2MemoryRegion *region = new_region(f);
    OVERLAPPED *ov = fx_overlapped(f);
    for (int i = 0; i < HOST_ROUNDS(200); i++) {
        HRESULT hr = i % 2 ? CALL(region, Deregister, ov)
                           : CALL(region, Register, buffer, sizeof buffer, 0, ov);
        CHECK_HR(hr, ND_PENDING);
        CHECK_EQ(WaitForSingleObject(ov->hEvent, 30000), WAIT_OBJECT_0);
        CHECK(HasOverlappedIoCompleted(ov));
        CHECK_EQ(ov->Internal, 0);
    }
    fx_end(f);
}

static void several_events_can_be_waited_for(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq[3];
    OVERLAPPED *ov[3];
    HANDLE events[3];
    for (int i = 0; i < 3; i++) {
        cq[i] = fx_cq(f, 0, 4);
        ov[i] = fx_overlapped(f);
        events[i] = ov[i]->hEvent;
        CHECK_HR(CALL(cq[i], Notify, ND_CQ_NOTIFY_ANY, ov[i]), ND_PENDING);
    }
    CHECK_EQ(WaitForMultipleObjects(3, events, FALSE, 0), WAIT_TIMEOUT);
    CHECK_HR(CALL(cq[1], CancelOverlappedRequests), ND_SUCCESS);
    CHECK_EQ(WaitForMultipleObjects(3, events, FALSE, 30000), WAIT_OBJECT_0 + 1);
    CHECK_EQ(WaitForMultipleObjects(3, events, TRUE, 0), WAIT_TIMEOUT);
    fx_end(f);
}

/* ---- GetOverlappedResult ---- */

static void result_while_pending_is_pending(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK_EQ((HRESULT)ov->Internal, ND_PENDING);
    CHECK(!HasOverlappedIoCompleted(ov));
    for (int i = 0; i < 10; i++)
        CHECK_HR(CALL(cq, GetOverlappedResult, ov, FALSE), ND_PENDING);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    for (int i = 0; i < 3; i++) { /* as often as asked, with wait or not, event taken or not */
        CHECK_HR(CALL(cq, GetOverlappedResult, ov, FALSE), ND_CANCELED);
        CHECK_HR(CALL(cq, GetOverlappedResult, ov, TRUE), ND_CANCELED);
    }
    fx_end(f);
}

static void result_on_another_object_is_the_requests_own(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 4), *sibling = fx_cq(f, 0, 4);
    IND2MemoryRegion *region = new_region(f);
    IND2Connector *connector = fx_connector(f, 0);
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK_HR(CALL(sibling, GetOverlappedResult, ov, FALSE), ND_PENDING);
    CHECK_HR(CALL(region, GetOverlappedResult, ov, FALSE), ND_PENDING);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(CALL(sibling, GetOverlappedResult, ov, FALSE), ND_CANCELED);
    CHECK_HR(CALL(region, GetOverlappedResult, ov, TRUE), ND_CANCELED);
    CHECK_HR(CALL(connector, GetOverlappedResult, ov, TRUE), ND_CANCELED);
    fx_end(f);
}

static void result_of_an_unused_overlapped_is_success(void) {
    struct fx *f = fx_begin();
    OVERLAPPED zero;
    memset(&zero, 0, sizeof zero);
    CHECK_HR(CALL(fx_connector(f, 0), GetOverlappedResult, &zero, TRUE), ND_SUCCESS);
    CHECK_HR(CALL(fx_cq(f, 0, 4), GetOverlappedResult, &zero, FALSE), ND_SUCCESS);
    CHECK_HR(CALL(new_region(f), GetOverlappedResult, &zero, TRUE), ND_SUCCESS);
    CHECK_HR(CALL(fx_listener(f, 0), GetOverlappedResult, &zero, TRUE), ND_SUCCESS);
    fx_end(f);
}

static void result_with_wait_needs_no_event(void) {
    struct fx *f = fx_begin();
    IND2MemoryRegion *region = new_region(f);
    OVERLAPPED *ov = fx_overlapped(f);
    HANDLE event = ov->hEvent;
    /* The event has been taken already. */
    CHECK_HR(CALL(region, Register, buffer, sizeof buffer, 0, ov), ND_PENDING);
    CHECK_EQ(WaitForSingleObject(event, 30000), WAIT_OBJECT_0);
    CHECK_HR(CALL(region, GetOverlappedResult, ov, TRUE), ND_SUCCESS);
    /* There is none. */
    ov->hEvent = NULL;
    CHECK_HR(CALL(region, Deregister, ov), ND_PENDING);
    CHECK_HR(CALL(region, GetOverlappedResult, ov, TRUE), ND_SUCCESS);
    ov->hEvent = event;
    fx_end(f);
}

struct waiter {
    IND2CompletionQueue *cq;
    OVERLAPPED *ov;
    uint32_t running; /* atomic */
    HRESULT result;
};

static void wait_for_result(void *arg) {
    struct waiter *w = arg;
    __atomic_store_n(&w->running, 1, __ATOMIC_RELEASE);
    w->result = CALL(w->cq, GetOverlappedResult, w->ov, TRUE);
}

static void start_waiter(struct waiter *w, struct host_thread **thread) {
    CHECK((*thread = host_thread_start(wait_for_result, w)) != NULL);
    for (uint64_t deadline = fx_deadline(); !__atomic_load_n(&w->running, __ATOMIC_ACQUIRE);) {
        CHECK(host_now_ms() < deadline);
        Sleep(0);
    }
}

static void result_with_wait_blocks_until_the_request_completes(void) {
    struct fx *f = fx_begin();
    for (int i = 0; i < 50; i++) {
        struct waiter w = { .cq = fx_cq(f, 0, 4), .ov = fx_alloc(f, sizeof(OVERLAPPED)) };
        struct host_thread *thread;
        CHECK_HR(CALL(w.cq, Notify, ND_CQ_NOTIFY_ANY, w.ov), ND_PENDING);
        start_waiter(&w, &thread);
        CHECK_HR(CALL(w.cq, CancelOverlappedRequests), ND_SUCCESS);
        host_thread_join(thread);
        CHECK_HR(w.result, ND_CANCELED);
    }
    fx_end(f);
}

static void release_lets_a_waiting_thread_out(void) {
    struct fx *f = fx_begin();
    for (int i = 0; i < 50; i++) {
        struct waiter w = { .cq = fx_cq(f, 0, 4), .ov = fx_alloc(f, sizeof(OVERLAPPED)) };
        struct host_thread *thread;
        CHECK_HR(CALL(w.cq, Notify, ND_CQ_NOTIFY_ANY, w.ov), ND_PENDING);
        CALL(w.cq, AddRef); /* the thread's own */
        start_waiter(&w, &thread);
        CHECK_EQ(fx_release(f, w.cq), 1);
        CHECK_HR(CALL(w.cq, CancelOverlappedRequests), ND_SUCCESS);
        host_thread_join(thread);
        CHECK_HR(w.result, ND_CANCELED);
        CHECK_EQ(CALL(w.cq, Release), 0);
    }
    fx_end(f);
}

static void several_threads_wait_for_one_request(void) {
    struct fx *f = fx_begin();
    struct waiter w[3];
    struct host_thread *threads[3];
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    OVERLAPPED *ov = fx_alloc(f, sizeof *ov);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    for (int i = 0; i < 3; i++) {
        w[i] = (struct waiter){ .cq = cq, .ov = ov };
        start_waiter(&w[i], &threads[i]);
    }
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    for (int i = 0; i < 3; i++) {
        host_thread_join(threads[i]);
        CHECK_HR(w[i].result, ND_CANCELED);
    }
    fx_end(f);
}

static void win32_result_of_the_same_name_works(void) {
    struct fx *f = fx_begin();
    IND2MemoryRegion *region = new_region(f);
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    OVERLAPPED *ov = fx_overlapped(f);
    DWORD bytes;
    CHECK_HR(CALL(region, Register, buffer, sizeof buffer, 0, ov), ND_PENDING);
    CHECK(GetOverlappedResult(f->host[0].file, ov, &bytes, TRUE));
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK(!GetOverlappedResult(f->host[0].file, ov, &bytes, FALSE));
    CHECK_EQ(GetLastError(), ERROR_IO_INCOMPLETE);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    CHECK(!GetOverlappedResult(f->host[0].file, ov, &bytes, TRUE));
    CHECK_EQ(GetLastError(), ERROR_OPERATION_ABORTED);
    fx_end(f);
}

/* ---- cancelling ---- */

/* Packets are there, in order, when Cancel returns: a timeout of 0 finds them. */
static void cancel_delivers_packets_in_order_before_it_returns(void) {
    struct stage s = open_stage();
    IND2CompletionQueue *one = fx_cq(s.f, 0, s.f->info.MaxCompletionQueueDepth);
    IND2CompletionQueue *two = fx_cq(s.f, 0, s.f->info.MaxCompletionQueueDepth);
    OVERLAPPED *ov1 = plain(&s), *ov2 = plain(&s);
    for (int round = 0; round < HOST_ROUNDS(300); round++) {
        DWORD bytes;
        ULONG_PTR key;
        OVERLAPPED *first, *second, *expected = ov1;
        CHECK_HR(CALL(one, Notify, ND_CQ_NOTIFY_ANY, ov1), ND_PENDING);
        switch (round % 3) {
        case 0: /* as issued */
            CHECK_HR(CALL(two, Notify, ND_CQ_NOTIFY_ANY, ov2), ND_PENDING);
            CHECK_HR(CALL(one, CancelOverlappedRequests), ND_SUCCESS);
            CHECK_HR(CALL(two, CancelOverlappedRequests), ND_SUCCESS);
            break;
        case 1: /* as cancelled */
            CHECK_HR(CALL(two, Notify, ND_CQ_NOTIFY_ANY, ov2), ND_PENDING);
            CHECK_HR(CALL(two, CancelOverlappedRequests), ND_SUCCESS);
            CHECK_HR(CALL(one, CancelOverlappedRequests), ND_SUCCESS);
            expected = ov2;
            break;
        default: /* two on one queue */
            CHECK_HR(CALL(one, Notify, ND_CQ_NOTIFY_ANY, ov2), ND_PENDING);
            CHECK_HR(CALL(one, CancelOverlappedRequests), ND_SUCCESS);
            break;
        }
        CHECK(!GetQueuedCompletionStatus(s.port, &bytes, &key, &first, 0));
        CHECK_PTR(first, expected);
        CHECK(!GetQueuedCompletionStatus(s.port, &bytes, &key, &second, 0));
        CHECK_PTR(second, expected == ov1 ? ov2 : ov1);
        CHECK_HR(CALL(one, GetOverlappedResult, ov1, FALSE), ND_CANCELED);
        CHECK_HR(CALL(two, GetOverlappedResult, ov2, FALSE), ND_CANCELED);
    }
    expect_no_packet(&s);
    close_stage(&s);
}

static void cancel_touches_only_its_object(void) {
    struct stage s = open_stage();
    IND2CompletionQueue *one = fx_cq(s.f, 0, 4), *two = fx_cq(s.f, 0, 4);
    OVERLAPPED *ov1 = plain(&s), *ov2 = plain(&s);
    CHECK_HR(CALL(one, Notify, ND_CQ_NOTIFY_ANY, ov1), ND_PENDING);
    CHECK_HR(CALL(two, Notify, ND_CQ_NOTIFY_ANY, ov2), ND_PENDING);
    CHECK_HR(CALL(one, CancelOverlappedRequests), ND_SUCCESS);
    expect_packet(&s, ov1, false);
    CHECK_HR(CALL(two, GetOverlappedResult, ov2, FALSE), ND_PENDING);
    CHECK_HR(CALL(one, CancelOverlappedRequests), ND_SUCCESS); /* nothing left */
    CHECK_HR(CALL(new_region(s.f), CancelOverlappedRequests), ND_SUCCESS);
    expect_no_packet(&s);
    CHECK_HR(CALL(two, CancelOverlappedRequests), ND_SUCCESS);
    expect_packet(&s, ov2, false);
    close_stage(&s);
}

static void cancel_io_ex_cancels_one_or_all_of_a_file(void) {
    const char *lack = host_lacks(HOST_CANCEL_IO);
    if (lack) SKIP("%s", lack);
    struct stage s = open_stage();
    HANDLE file = s.f->host[0].file;
    IND2CompletionQueue *one = fx_cq(s.f, 0, 4), *two = fx_cq(s.f, 0, 4);
    OVERLAPPED *ov1 = plain(&s), *ov2 = plain(&s), *ov3 = plain(&s);
    CHECK(!CancelIoEx(file, NULL));
    CHECK_EQ(GetLastError(), ERROR_NOT_FOUND);
    CHECK_HR(CALL(one, Notify, ND_CQ_NOTIFY_ANY, ov1), ND_PENDING);
    CHECK_HR(CALL(one, Notify, ND_CQ_NOTIFY_ANY, ov2), ND_PENDING);
    CHECK_HR(CALL(two, Notify, ND_CQ_NOTIFY_ANY, ov3), ND_PENDING);
    CHECK(CancelIoEx(file, ov2));
    expect_packet(&s, ov2, false);
    CHECK_HR(CALL(one, GetOverlappedResult, ov2, FALSE), ND_CANCELED);
    CHECK_HR(CALL(one, GetOverlappedResult, ov1, FALSE), ND_PENDING);
    CHECK(!CancelIoEx(file, ov2));
    CHECK(CancelIoEx(file, NULL));
    bool ok;
    OVERLAPPED *first = dequeue(&s, &ok), *second = dequeue(&s, &ok);
    CHECK((first == ov1 && second == ov3) || (first == ov3 && second == ov1));
    expect_no_packet(&s);
    close_stage(&s);
}

static void cancel_of_a_single_notify_leaves_the_queue_usable(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    IND2QueuePair *qp = fx_qp(f, 0, cq, cq, NULL, 2, 1, 0);
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(WAIT(f, cq, ov), ND_CANCELED);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK_HR(CALL(qp, Receive, CTX(1), NULL, 0), ND_SUCCESS);
    CHECK_HR(CALL(qp, Flush), ND_SUCCESS);
    CHECK_HR(WAIT(f, cq, ov), ND_SUCCESS);
    fx_end(f);
}

/* ---- OVERLAPPEDs as clients have them ---- */

static void uninitialised_overlapped_works(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    OVERLAPPED *ov = fx_overlapped(f);
    HANDLE event = ov->hEvent;
    for (int fill = 0; fill < 256; fill += 51) {
        memset(ov, fill, sizeof *ov);
        ov->hEvent = event;
        CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
        CHECK_EQ((HRESULT)ov->Internal, ND_PENDING);
        CHECK_HR(CALL(cq, GetOverlappedResult, ov, FALSE), ND_PENDING);
        CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
        CHECK_HR(CALL(cq, GetOverlappedResult, ov, TRUE), ND_CANCELED);
    }
    fx_end(f);
}

static void two_requests_on_one_overlapped_complete_twice(void) {
    struct stage s = open_stage();
    IND2CompletionQueue *one = fx_cq(s.f, 0, 4), *two = fx_cq(s.f, 0, 4);
    OVERLAPPED *ov = plain(&s);
    for (int i = 0; i < 20; i++) {
        CHECK_HR(CALL(one, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
        CHECK_HR(CALL(two, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
        CHECK_HR(CALL(one, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
        CHECK_HR(CALL(one, CancelOverlappedRequests), ND_SUCCESS);
        expect_packet(&s, ov, false);
        expect_packet(&s, ov, false);
        expect_no_packet(&s);
        CHECK_HR(CALL(two, CancelOverlappedRequests), ND_SUCCESS);
        expect_packet(&s, ov, false);
        expect_no_packet(&s);
    }
    close_stage(&s);
}

/* How every sample program ends: two requests on one OVERLAPPED, neither waited for, then
 * everything is released and the OVERLAPPED is gone. */
static void disconnect_and_deregister_on_one_overlapped_are_harmless(void) {
    for (int i = 0; i < 20; i++) {
        struct fx *f = fx_begin();
        struct fx_pair *p = PAIR(f, NULL);
        struct fx_memory *m = fx_memory(f, 0, 4096, FX_MR_ALL);
        OVERLAPPED *ov = malloc(sizeof *ov);
        memset(ov, 0, sizeof *ov);
        HANDLE event = ov->hEvent = CreateEventW(NULL, FALSE, FALSE, NULL);
        CALL(p->a.connector, Disconnect, ov);
        CALL(m->region, Deregister, ov);
        fx_release(f, m->region);
        fx_release(f, p->a.receive_cq);
        fx_release(f, p->a.initiator_cq);
        fx_release(f, p->a.qp);
        fx_release(f, p->a.connector);
        /* From here on nobody may write to it. */
        memset(ov, 0x6B, sizeof *ov);
        CloseHandle(event);
        CHECK_HR(RUN(f, p->b.connector, NotifyDisconnect, fx_run_ov), ND_SUCCESS);
        for (size_t n = 0; n < sizeof *ov; n++)
            CHECK_EQ(((uint8_t *)ov)[n], 0x6B);
        free(ov);
        fx_end(f);
    }
}

static void only_internal_fields_are_touched(void) {
    struct fx *f = fx_begin();
    IND2MemoryRegion *region = new_region(f);
    OVERLAPPED *ov = fx_overlapped(f);
    HANDLE event = ov->hEvent;
    ov->Offset = 0x11223344;
    ov->OffsetHigh = 0x55667788;
    CHECK_HR(CALL(region, Register, buffer, sizeof buffer, 0, ov), ND_PENDING);
    CHECK_HR(WAIT(f, region, ov), ND_SUCCESS);
    CHECK_EQ(ov->Offset, 0x11223344);
    CHECK_EQ(ov->OffsetHigh, 0x55667788);
    CHECK_PTR(ov->hEvent, event);
    fx_end(f);
}

static void completed_overlapped_is_never_touched_again(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    IND2QueuePair *qp = fx_qp(f, 0, cq, cq, NULL, 2, 1, 0);
    OVERLAPPED done = { .hEvent = NULL };
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, &done), ND_PENDING);
    CHECK_HR(CALL(qp, Receive, NULL, NULL, 0), ND_SUCCESS);
    CHECK_HR(CALL(qp, Flush), ND_SUCCESS);
    CHECK_HR(CALL(cq, GetOverlappedResult, &done, TRUE), ND_SUCCESS);
    memset(&done, 0x6B, sizeof done);
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    CHECK_HR(CALL(qp, Receive, NULL, NULL, 0), ND_SUCCESS);
    CHECK_HR(CALL(qp, Flush), ND_SUCCESS);
    CHECK_HR(WAIT(f, cq, ov), ND_SUCCESS);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    fx_release(f, qp);
    fx_release(f, cq);
    for (size_t n = 0; n < sizeof done; n++)
        CHECK_EQ(((uint8_t *)&done)[n], 0x6B);
    fx_end(f);
}

static void overlapped_freed_right_after_its_packet_is_fine(void) {
    struct stage s = open_stage();
    IND2MemoryRegion *region = new_region(s.f);
    for (int i = 0; i < HOST_ROUNDS(500); i++) {
        OVERLAPPED *ov = calloc(1, sizeof *ov);
        CHECK(ov != NULL);
        HRESULT hr = i % 2 ? CALL(region, Deregister, ov)
                           : CALL(region, Register, buffer, sizeof buffer, 0, ov);
        CHECK_HR(hr, ND_PENDING);
        expect_packet(&s, ov, true);
        free(ov);
    }
    close_stage(&s);
}

CONFORM_MAIN(
    TEST(file_can_be_bound_once), TEST(success_is_one_packet),
    TEST(synchronous_failure_is_no_packet), TEST(asynchronous_failure_is_a_failed_packet),
    TEST(entries_of_failed_requests_carry_a_failure), TEST(connection_by_packets_alone_works),
    TEST(port_of_a_file_closed_since_still_gets_packets),
    TEST(port_closed_before_a_completion_is_harmless), TEST(several_threads_share_one_port),
    TEST(callback_is_called_once_per_request), TEST(callback_may_make_requests),
    TEST(event_and_packet_are_both_delivered), TEST(handle_that_is_no_event_changes_nothing),
    TEST(tagged_event_suppresses_the_packet), TEST(submitting_resets_the_event),
    TEST(manual_reset_event_stays_signalled), TEST(status_is_in_place_before_the_event),
    TEST(several_events_can_be_waited_for), TEST(result_while_pending_is_pending),
    TEST(result_on_another_object_is_the_requests_own),
    TEST(result_of_an_unused_overlapped_is_success), TEST(result_with_wait_needs_no_event),
    TEST(result_with_wait_blocks_until_the_request_completes),
    TEST(release_lets_a_waiting_thread_out), TEST(several_threads_wait_for_one_request),
    TEST(win32_result_of_the_same_name_works),
    TEST(cancel_delivers_packets_in_order_before_it_returns), TEST(cancel_touches_only_its_object),
    TEST(cancel_io_ex_cancels_one_or_all_of_a_file),
    TEST(cancel_of_a_single_notify_leaves_the_queue_usable), TEST(uninitialised_overlapped_works),
    TEST(two_requests_on_one_overlapped_complete_twice),
    TEST(disconnect_and_deregister_on_one_overlapped_are_harmless),
    TEST(only_internal_fields_are_touched), TEST(completed_overlapped_is_never_touched_again),
    TEST(overlapped_freed_right_after_its_packet_is_fine))
