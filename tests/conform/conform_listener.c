/* SPDX-License-Identifier: MIT
 * conform_listener.c - IND2Listener: addresses, the backlog, requests that wait, come late or are
 * given up, and the end of a listener.
 */
#include "fixture.h"

static struct sockaddr_storage address_of(IND2Listener *l) {
    struct sockaddr_storage at;
    ULONG len = sizeof at;
    CHECK_HR(CALL(l, GetLocalAddress, (struct sockaddr *)&at, &len), ND_SUCCESS);
    return at;
}

static OVERLAPPED *request_into(struct fx *f, IND2Listener *l, IND2Connector *c) {
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(l, GetConnectionRequest, UNKNOWN(c), ov), ND_PENDING);
    return ov;
}

/* A caller with a queue pair of its own; Connect is pending. */
struct caller {
    IND2Connector *connector;
    IND2QueuePair *qp;
    OVERLAPPED *call;
};

static struct caller call_to(struct fx *f, const struct sockaddr_storage *at, uint32_t id) {
    struct caller c = { .connector = fx_connector(f, 0) };
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    c.qp = fx_qp(f, 0, cq, cq, NULL, 2, 1, 0);
    c.call = fx_overlapped(f);
    CHECK_HR(CALL(c.connector, Connect, UNKNOWN(c.qp), (const struct sockaddr *)at, f->local_len, 0,
                  0, &id, sizeof id, c.call),
             ND_PENDING);
    return c;
}

static uint32_t id_of(IND2Connector *c) {
    uint32_t id = 0;
    ULONG cb = sizeof id;
    CHECK_HR(CALL(c, GetPrivateData, &id, &cb), ND_SUCCESS);
    CHECK_EQ(cb, sizeof id);
    return id;
}

/* Takes the request that c holds to the end. */
static void serve(struct fx *f, struct caller *from, IND2Connector *c) {
    IND2CompletionQueue *cq = fx_cq(f, 1, 4);
    IND2QueuePair *qp = fx_qp(f, 1, cq, cq, NULL, 2, 1, 0);
    OVERLAPPED *accept = fx_overlapped(f), *complete = fx_overlapped(f);
    CHECK_HR(CALL(c, Accept, UNKNOWN(qp), 0, 0, NULL, 0, accept), ND_PENDING);
    CHECK_HR(WAIT(f, from->connector, from->call), ND_SUCCESS);
    CHECK_HR(CALL(from->connector, CompleteConnect, complete), ND_PENDING);
    CHECK_HR(WAIT(f, from->connector, complete), ND_SUCCESS);
    CHECK_HR(WAIT(f, c, accept), ND_SUCCESS);
}

/* ---- Bind ---- */

static void bind_to_port_0_picks_a_port(void) {
    struct fx *f = fx_begin();
    IND2Listener *one = fx_listener(f, 0), *two = fx_listener(f, 0);
    CHECK_HR(CALL(one, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(two, Bind, ADDR(f->local), sizeof f->local), ND_SUCCESS);
    struct sockaddr_storage a = address_of(one), b = address_of(two); /* before Listen */
    CHECK(fx_port(&a) != 0);
    CHECK(fx_port(&b) != 0);
    CHECK(fx_port(&a) != fx_port(&b));
    fx_end(f);
}

static void bind_twice_is_already_associated(void) {
    struct fx *f = fx_begin();
    IND2Listener *l = fx_listener(f, 0);
    CHECK_HR(CALL(l, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    struct sockaddr_storage before = address_of(l);
    CHECK_HR(CALL(l, Bind, ADDR(f->local), f->local_len), ST_ADDRESS_ALREADY_ASSOCIATED);
    CHECK_HR(CALL(l, Listen, 0), ND_SUCCESS);
    CHECK_HR(CALL(l, Bind, ADDR(f->local), f->local_len), ST_ADDRESS_ALREADY_ASSOCIATED);
    struct sockaddr_storage after = address_of(l);
    CHECK_EQ(fx_port(&before), fx_port(&after));
    fx_end(f);
}

static void bind_to_an_address_in_use_is_a_sharing_violation(void) {
    struct fx *f = fx_begin();
    IND2Listener *first = fx_listener(f, 0);
    CHECK_HR(CALL(first, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(first, Listen, 0), ND_SUCCESS);
    struct sockaddr_storage at = address_of(first);
    /* Of the same adapter instance and of another. */
    for (int host = 0; host < 2; host++) {
        IND2Listener *second = fx_listener(f, host);
        CHECK_HR(CALL(second, Bind, ADDR(at), f->local_len), ND_SHARING_VIOLATION);
        CHECK_HR(CALL(second, Listen, 0), ND_INVALID_DEVICE_STATE);
        CHECK_HR(CALL(second, Bind, ADDR(f->local), f->local_len), ND_SUCCESS); /* goes on */
    }
    fx_end(f);
}

/* At once, or where the system needs a moment for it, soon. */
static HRESULT bind_again(IND2Listener *l, const struct sockaddr_storage *at, ULONG len) {
    HRESULT hr = CALL(l, Bind, (const struct sockaddr *)at, len);
    if (!host_lacks(HOST_ADDRESS_FREED)) return hr;
    for (uint64_t deadline = fx_deadline(); hr == ND_SHARING_VIOLATION && host_now_ms() < deadline;
         Sleep(1))
        hr = CALL(l, Bind, (const struct sockaddr *)at, len);
    return hr;
}

static void bind_to_an_address_just_given_up_works(void) {
    struct fx *f = fx_begin();
    struct sockaddr_storage at = f->local;
    for (int i = 0; i < 10; i++) {
        struct fx_pair *p = PAIR_CREATE(f, NULL);
        p->listener = fx_listener(f, 1);
        CHECK_HR(bind_again(p->listener, &at, f->local_len), ND_SUCCESS);
        CHECK_HR(CALL(p->listener, Listen, 0), ND_SUCCESS);
        at = p->at = address_of(p->listener);
        p->at_len = f->local_len;
        fx_handshake(f, p, NULL); /* connections of the earlier rounds still exist */
        SYNC(f, &p->a, &p->b);
        CHECK_EQ(fx_release(f, p->listener), 0);
    }
    fx_end(f);
}

static void bind_to_any_address_serves_the_adapters_own(void) {
    struct fx *f = fx_begin();
    struct sockaddr_storage any;
    ULONG len;
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    CHECK(host_parse_address(f->local.ss_family == AF_INET6 ? "::" : "0.0.0.0", &any, &len));
    p->listener = fx_listener(f, 1);
    CHECK_HR(CALL(p->listener, Bind, ADDR(any), len), ND_SUCCESS);
    CHECK_HR(CALL(p->listener, Listen, 0), ND_SUCCESS);
    struct sockaddr_storage at = address_of(p->listener);
    p->at = fx_with_port(&f->local, fx_port(&at));
    p->at_len = f->local_len;
    CHECK(fx_port(&at) != 0);
    fx_handshake(f, p, NULL);
    SYNC(f, &p->a, &p->b);
    /* Taken for every address. */
    IND2Listener *second = fx_listener(f, 1);
    CHECK_HR(CALL(second, Bind, ADDR(p->at), p->at_len), ND_SHARING_VIOLATION);
    fx_end(f);
}

static void bind_of_garbage_names_the_parameter(void) {
    struct fx *f = fx_begin();
    IND2Listener *l = fx_listener(f, 0);
    struct sockaddr_storage odd = f->local, foreign;
    ULONG len;
    odd.ss_family = 199;
    CHECK(host_parse_address(f->local.ss_family == AF_INET6 ? "2001:db8::77" : "203.0.113.77",
                             &foreign, &len));
    CHECK_HR(CALL(l, Bind, NULL, f->local_len), ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(l, Bind, ADDR(f->local), f->local_len - 1), ND_INVALID_PARAMETER_2);
    CHECK_FAILED(CALL(l, Bind, ADDR(odd), f->local_len));
    CHECK_HR(CALL(l, Bind, ADDR(foreign), len), ND_INVALID_ADDRESS);
    CHECK_HR(CALL(l, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    fx_end(f);
}

/* ---- states ---- */

static void calls_out_of_turn_are_an_invalid_state(void) {
    struct fx *f = fx_begin();
    IND2Listener *l = fx_listener(f, 0);
    struct sockaddr_storage at;
    ULONG len = sizeof at;
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(l, GetLocalAddress, (struct sockaddr *)&at, &len), ND_INVALID_DEVICE_STATE);
    CHECK_HR(CALL(l, Listen, 0), ND_INVALID_DEVICE_STATE);
    CHECK_HR(CALL(l, GetConnectionRequest, UNKNOWN(fx_connector(f, 0)), ov),
             ND_INVALID_DEVICE_STATE);
    CHECK_HR(CALL(l, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(l, GetConnectionRequest, UNKNOWN(fx_connector(f, 0)), ov),
             ND_INVALID_DEVICE_STATE);
    CHECK_HR(CALL(l, Listen, 3), ND_SUCCESS);
    CHECK_HR(CALL(l, Listen, 3), ND_INVALID_DEVICE_STATE);
    CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_TIMEOUT);
    fx_end(f);
}

static void get_local_address_follows_the_size_rules(void) {
    struct fx *f = fx_begin();
    IND2Listener *l = fx_listener(f, 0);
    uint8_t bytes[64];
    ULONG cb = 0;
    CHECK_HR(CALL(l, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(l, GetLocalAddress, NULL, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, f->local_len);
    memset(bytes, 0xA5, sizeof bytes);
    cb = f->local_len - 1;
    CHECK_HR(CALL(l, GetLocalAddress, (struct sockaddr *)bytes, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, f->local_len);
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK_EQ(bytes[i], 0xA5);
    cb = sizeof bytes;
    CHECK_HR(CALL(l, GetLocalAddress, (struct sockaddr *)bytes, &cb), ND_SUCCESS);
    CHECK_EQ(cb, f->local_len);
    CHECK_EQ(bytes[f->local_len], 0xA5);
    fx_end(f);
}

/* ---- GetConnectionRequest ---- */

static void request_needs_a_fresh_connector_of_the_adapter(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    IND2Listener *l = fx_listener(f, 1);
    CHECK_HR(CALL(l, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(l, Listen, 0), ND_SUCCESS);
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(l, GetConnectionRequest, NULL, ov), ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(l, GetConnectionRequest, UNKNOWN(l), ov), ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(l, GetConnectionRequest, UNKNOWN(p->b.connector), ov), ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(l, GetConnectionRequest, UNKNOWN(fx_connector(f, 0)), ov),
             ND_INVALID_PARAMETER_1); /* of another adapter instance */
    IND2Connector *c = fx_connector(f, 1);
    CHECK_HR(CALL(l, GetConnectionRequest, UNKNOWN(c), NULL), ND_INVALID_PARAMETER_2);
    OVERLAPPED *pending = request_into(f, l, c);
    CHECK_HR(CALL(l, GetConnectionRequest, UNKNOWN(c), ov), ND_INVALID_PARAMETER_1);
    CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_TIMEOUT);
    CHECK_HR(CALL(l, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(WAIT(f, l, pending), ND_CANCELED);
    fx_end(f);
}

static void each_request_completes_one_of_those_that_wait(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    enum { COUNT = 5 };
    IND2Connector *c[COUNT];
    OVERLAPPED *ov[COUNT];
    fx_listen(f, p);
    for (int i = 0; i < COUNT; i++) {
        c[i] = fx_connector(f, 1);
        ov[i] = request_into(f, p->listener, c[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        struct caller from = call_to(f, &p->at, 100 + (uint32_t)i);
        CHECK_HR(WAIT(f, p->listener, ov[i]), ND_SUCCESS); /* in the order they were asked */
        CHECK_EQ(id_of(c[i]), 100 + i);
        for (int n = i + 1; n < COUNT; n++)
            CHECK(!fx_is_done(ov[n]));
        serve(f, &from, c[i]);
    }
    fx_end(f);
}

static void requests_wait_for_somebody_to_ask(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    enum { COUNT = 100 };
    struct caller from[COUNT];
    bool seen[COUNT] = { false };
    fx_listen(f, p); /* backlog 0: no limit */
    for (int i = 0; i < COUNT; i++)
        from[i] = call_to(f, &p->at, (uint32_t)i);
    for (int i = 0; i < COUNT; i++) {
        IND2Connector *c = fx_connector(f, 1);
        CHECK_HR(WAIT(f, p->listener, request_into(f, p->listener, c)), ND_SUCCESS);
        uint32_t id = id_of(c);
        CHECK(id < COUNT && !seen[id]);
        seen[id] = true;
        serve(f, &from[id], c);
    }
    fx_end(f);
}

static void requests_beyond_the_backlog_are_refused(void) {
    struct fx *f = fx_begin();
    enum { BACKLOG = 2, CALLERS = 6 };
    IND2Listener *l = fx_listener(f, 1);
    CHECK_HR(CALL(l, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(l, Listen, BACKLOG), ND_SUCCESS);
    struct sockaddr_storage at = address_of(l);
    struct caller from[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        from[i] = call_to(f, &at, (uint32_t)i);
    int refused = 0;
    bool open[CALLERS];
    for (uint64_t deadline = fx_deadline(); refused < CALLERS - BACKLOG; Sleep(0)) {
        CHECK(host_now_ms() < deadline);
        refused = 0;
        for (int i = 0; i < CALLERS; i++) {
            HRESULT hr = CALL(from[i].connector, GetOverlappedResult, from[i].call, FALSE);
            open[i] = hr == ND_PENDING;
            if (!open[i]) {
                CHECK_HR(hr, ND_CONNECTION_REFUSED);
                refused++;
            }
        }
    }
    CHECK_EQ(refused, CALLERS - BACKLOG);
    for (int i = 0; i < BACKLOG; i++) { /* those that waited are served */
        IND2Connector *c = fx_connector(f, 1);
        CHECK_HR(WAIT(f, l, request_into(f, l, c)), ND_SUCCESS);
        uint32_t id = id_of(c);
        CHECK(id < CALLERS && open[id]);
        open[id] = false;
        serve(f, &from[id], c);
    }
    fx_end(f);
}

static void request_given_up_while_waiting_is_harmless(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    fx_listen(f, p);
    for (int i = 0; i < 5; i++) {
        struct caller gone = call_to(f, &p->at, 1);
        if (i % 2) {
            CHECK_EQ(fx_release(f, gone.connector), 0);
        } else {
            CHECK_HR(CALL(gone.connector, CancelOverlappedRequests), ND_SUCCESS);
            CHECK_HR(WAIT(f, gone.connector, gone.call), ND_CANCELED);
        }
    }
    /* Those may turn up or not; whoever does fails by himself, and the next caller is served. */
    struct caller from = call_to(f, &p->at, 2);
    for (int tries = 0;; tries++) {
        IND2Connector *c = fx_connector(f, 1);
        CHECK(tries <= 5);
        CHECK_HR(WAIT(f, p->listener, request_into(f, p->listener, c)), ND_SUCCESS);
        uint32_t id = 0;
        ULONG cb = sizeof id;
        if (CALL(c, GetPrivateData, &id, &cb) == ND_SUCCESS && id == 2) {
            serve(f, &from, c);
            break;
        }
        IND2CompletionQueue *cq = fx_cq(f, 1, 4);
        IND2QueuePair *qp = fx_qp(f, 1, cq, cq, NULL, 2, 1, 0);
        CHECK_HR(RUN(f, c, Accept, UNKNOWN(qp), 0, 0, NULL, 0, fx_run_ov), ND_CONNECTION_ABORTED);
    }
    fx_end(f);
}

static void cancel_ends_the_waiting_in_order_and_connectors_stay_fresh(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    IND2Connector *c[3];
    OVERLAPPED *ov[3];
    fx_listen(f, p);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            if (round == 0) c[i] = fx_connector(f, 1);
            ov[i] = request_into(f, p->listener, c[i]);
        }
        CHECK_HR(CALL(p->listener, CancelOverlappedRequests), ND_SUCCESS);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ((HRESULT)ov[i]->Internal, ND_CANCELED);
            CHECK_HR(WAIT(f, p->listener, ov[i]), ND_CANCELED);
        }
    }
    OVERLAPPED *request = request_into(f, p->listener, c[0]);
    struct caller from = call_to(f, &p->at, 7);
    CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
    serve(f, &from, c[0]);
    CHECK_HR(CALL(p->listener, CancelOverlappedRequests), ND_SUCCESS);
    fx_end(f);
}

static void connector_released_while_it_waits_makes_room(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    fx_listen(f, p);
    IND2Connector *first = fx_connector(f, 1), *second = fx_connector(f, 1);
    OVERLAPPED *one = request_into(f, p->listener, first);
    OVERLAPPED *two = request_into(f, p->listener, second);
    CHECK_EQ(fx_release(f, first), 0);
    struct caller from = call_to(f, &p->at, 3);
    CHECK_HR(WAIT(f, p->listener, two), ND_SUCCESS);
    serve(f, &from, second);
    CHECK_HR(CALL(p->listener, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->listener, one), ND_CANCELED);
    fx_end(f);
}

/* ---- the end of a listener ---- */

static void release_cancels_those_that_wait_and_refuses_callers(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    fx_listen(f, p);
    OVERLAPPED *one = request_into(f, p->listener, fx_connector(f, 1));
    OVERLAPPED *two = request_into(f, p->listener, fx_connector(f, 1));
    CHECK_EQ(fx_release(f, p->listener), 0);
    CHECK(fx_is_done(one) && fx_is_done(two));
    CHECK_EQ((HRESULT)one->Internal, ND_CANCELED);
    CHECK_EQ((HRESULT)two->Internal, ND_CANCELED);
    struct caller late = call_to(f, &p->at, 1);
    CHECK_HR(WAIT(f, late.connector, late.call), ND_CONNECTION_REFUSED);
    fx_end(f);
}

static void release_refuses_requests_that_nobody_asked_for(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    struct caller from[5];
    fx_listen(f, p);
    for (int i = 0; i < 5; i++)
        from[i] = call_to(f, &p->at, (uint32_t)i);
    CHECK_EQ(fx_release(f, p->listener), 0);
    for (int i = 0; i < 5; i++)
        CHECK_HR(WAIT(f, from[i].connector, from[i].call), ND_CONNECTION_REFUSED);
    fx_end(f);
}

static void release_leaves_requests_that_were_handed_out(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    fx_listen(f, p);
    IND2Connector *c = fx_connector(f, 1);
    OVERLAPPED *request = request_into(f, p->listener, c);
    struct caller from = call_to(f, &p->at, 9);
    CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
    CHECK_EQ(fx_release(f, p->listener), 0);
    CHECK_EQ(id_of(c), 9);
    serve(f, &from, c);
    fx_end(f);
}

static void release_of_an_unbound_or_silent_listener_works(void) {
    struct fx *f = fx_begin();
    CHECK_EQ(fx_release(f, fx_listener(f, 0)), 0);
    IND2Listener *l = fx_listener(f, 0);
    CHECK_HR(CALL(l, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(CALL(l, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_EQ(fx_release(f, l), 0);
    fx_end(f);
}

static void two_listeners_and_their_callers_live_in_one_process(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL), *q = PAIR_CREATE(f, NULL);
    fx_listen(f, p);
    fx_listen(f, q);
    IND2Connector *pc = fx_connector(f, 1), *qc = fx_connector(f, 1);
    OVERLAPPED *pr = request_into(f, p->listener, pc), *qr = request_into(f, q->listener, qc);
    struct caller to_q = call_to(f, &q->at, 2), to_p = call_to(f, &p->at, 1);
    CHECK_HR(WAIT(f, p->listener, pr), ND_SUCCESS);
    CHECK_HR(WAIT(f, q->listener, qr), ND_SUCCESS);
    CHECK_EQ(id_of(pc), 1);
    CHECK_EQ(id_of(qc), 2);
    serve(f, &to_p, pc);
    serve(f, &to_q, qc);
    fx_end(f);
}

CONFORM_MAIN(TEST(bind_to_port_0_picks_a_port), TEST(bind_twice_is_already_associated),
             TEST(bind_to_an_address_in_use_is_a_sharing_violation),
             TEST(bind_to_an_address_just_given_up_works),
             TEST(bind_to_any_address_serves_the_adapters_own),
             TEST(bind_of_garbage_names_the_parameter),
             TEST(calls_out_of_turn_are_an_invalid_state),
             TEST(get_local_address_follows_the_size_rules),
             TEST(request_needs_a_fresh_connector_of_the_adapter),
             TEST(each_request_completes_one_of_those_that_wait),
             TEST(requests_wait_for_somebody_to_ask), TEST(requests_beyond_the_backlog_are_refused),
             TEST(request_given_up_while_waiting_is_harmless),
             TEST(cancel_ends_the_waiting_in_order_and_connectors_stay_fresh),
             TEST(connector_released_while_it_waits_makes_room),
             TEST(release_cancels_those_that_wait_and_refuses_callers),
             TEST(release_refuses_requests_that_nobody_asked_for),
             TEST(release_leaves_requests_that_were_handed_out),
             TEST(release_of_an_unbound_or_silent_listener_works),
             TEST(two_listeners_and_their_callers_live_in_one_process))
