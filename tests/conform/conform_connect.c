/* SPDX-License-Identifier: MIT
 * conform_connect.c - IND2Connector: every method in every state of a connection, on both sides.
 */
#include "fixture.h"

/* A port of the adapter's address on which nobody listens. */
static struct sockaddr_storage quiet_address(struct fx *f) {
    struct sockaddr_storage at;
    ULONG len = sizeof at;
    IND2Listener *listener = fx_listener(f, 1);
    CHECK_HR(CALL(listener, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(listener, GetLocalAddress, (struct sockaddr *)&at, &len), ND_SUCCESS);
    CHECK_EQ(fx_release(f, listener), 0);
    return at;
}

static struct sockaddr_storage address_of(IND2Connector *c, bool peer) {
    struct sockaddr_storage at;
    ULONG len = sizeof at;
    if (peer)
        CHECK_HR(CALL(c, GetPeerAddress, (struct sockaddr *)&at, &len), ND_SUCCESS);
    else
        CHECK_HR(CALL(c, GetLocalAddress, (struct sockaddr *)&at, &len), ND_SUCCESS);
    return at;
}

static bool same_address(const struct sockaddr_storage *x, const struct sockaddr_storage *y) {
    if (x->ss_family != y->ss_family || fx_port(x) != fx_port(y)) return false;
    if (x->ss_family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)x)->sin6_addr,
                      &((const struct sockaddr_in6 *)y)->sin6_addr, 16) == 0;
    return ((const struct sockaddr_in *)x)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)y)->sin_addr.s_addr;
}

/* Connect with everything that can be chosen; the status at the end. */
static HRESULT connect_to(struct fx *f, struct fx_side *s, const struct sockaddr_storage *to,
                          const void *data, ULONG len) {
    return RUN(f, s->connector, Connect, UNKNOWN(s->qp), (const struct sockaddr *)to, f->local_len,
               1, 1, data, len, fx_run_ov);
}

/* ---- Bind ---- */

static void bind_to_port_0_picks_a_port_of_its_own(void) {
    struct fx *f = fx_begin();
    USHORT ports[8];
    for (size_t i = 0; i < COUNT_OF(ports); i++) {
        IND2Connector *c = fx_connector(f, 0);
        CHECK_HR(CALL(c, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
        struct sockaddr_storage at = address_of(c, false);
        ports[i] = fx_port(&at);
        CHECK(ports[i] != 0);
        struct sockaddr_storage expected = fx_with_port(&f->local, ports[i]);
        CHECK(same_address(&at, &expected));
        for (size_t n = 0; n < i; n++)
            CHECK(ports[n] != ports[i]);
    }
    fx_end(f);
}

static void bind_takes_a_longer_length(void) {
    struct fx *f = fx_begin();
    CHECK_HR(CALL(fx_connector(f, 0), Bind, ADDR(f->local), sizeof f->local), ND_SUCCESS);
    fx_end(f);
}

static void bind_twice_is_already_associated(void) {
    struct fx *f = fx_begin();
    IND2Connector *c = fx_connector(f, 0);
    CHECK_HR(CALL(c, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    struct sockaddr_storage before = address_of(c, false);
    CHECK_HR(CALL(c, Bind, ADDR(f->local), f->local_len), ST_ADDRESS_ALREADY_ASSOCIATED);
    struct sockaddr_storage after = address_of(c, false);
    CHECK(same_address(&before, &after));
    /* Also once it is connected. */
    struct fx_pair *p = PAIR(f, NULL);
    CHECK_HR(CALL(p->a.connector, Bind, ADDR(f->local), f->local_len),
             ST_ADDRESS_ALREADY_ASSOCIATED);
    fx_end(f);
}

static void bind_to_a_foreign_address_is_invalid(void) {
    struct fx *f = fx_begin();
    struct sockaddr_storage foreign;
    ULONG len;
    CHECK(host_parse_address(f->local.ss_family == AF_INET6 ? "2001:db8::77" : "203.0.113.77",
                             &foreign, &len));
    IND2Connector *c = fx_connector(f, 0);
    CHECK_HR(CALL(c, Bind, ADDR(foreign), len), ND_INVALID_ADDRESS);
    CHECK_HR(CALL(c, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    fx_end(f);
}

static void bind_of_garbage_names_the_parameter(void) {
    struct fx *f = fx_begin();
    IND2Connector *c = fx_connector(f, 0);
    struct sockaddr_storage odd = f->local;
    odd.ss_family = 199;
    CHECK_HR(CALL(c, Bind, NULL, f->local_len), ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(c, Bind, ADDR(f->local), f->local_len - 1), ND_INVALID_PARAMETER_2);
    CHECK_HR(CALL(c, Bind, ADDR(f->local), 0), ND_INVALID_PARAMETER_2);
    CHECK_FAILED(CALL(c, Bind, ADDR(odd), f->local_len));
    CHECK_HR(CALL(c, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    fx_end(f);
}

/* Clients bind every connector to the port that their listener has. */
static void bind_to_the_port_of_a_listener_works(void) {
    const char *lack = host_lacks(HOST_SHARED_PORT);
    if (lack) SKIP("%s", lack);
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL), *q = PAIR_CREATE(f, NULL),
                   *own = fx_alloc(f, sizeof *own);
    own->b.host = 0;
    fx_listen(f, own); /* the active side's own listener */
    fx_listen(f, p);
    fx_listen(f, q);
    CHECK_HR(CALL(p->a.connector, Bind, ADDR(own->at), own->at_len), ND_SUCCESS);
    CHECK_HR(CALL(q->a.connector, Bind, ADDR(own->at), own->at_len), ND_SUCCESS);
    struct fx_pair *both[] = { p, q };
    for (int i = 0; i < 2; i++) {
        struct fx_pair *x = both[i];
        OVERLAPPED *request = fx_request(f, x), *call = fx_overlapped(f);
        CHECK_HR(CALL(x->a.connector, Connect, UNKNOWN(x->a.qp), ADDR(x->at), x->at_len, 0, 0, NULL,
                      0, call),
                 ND_PENDING);
        CHECK_HR(WAIT(f, x->listener, request), ND_SUCCESS);
        OVERLAPPED *accept = fx_accept(f, x);
        CHECK_HR(WAIT(f, x->a.connector, call), ND_SUCCESS);
        CHECK_HR(WAIT(f, x->a.connector, fx_complete(f, x)), ND_SUCCESS);
        CHECK_HR(WAIT(f, x->b.connector, accept), ND_SUCCESS);
        struct sockaddr_storage seen = address_of(x->b.connector, true);
        CHECK_EQ(fx_port(&seen), fx_port(&own->at));
        SYNC(f, &x->a, &x->b);
    }
    SYNC(f, &p->a, &p->b);
    fx_end(f);
}

static void second_connection_between_the_same_addresses_exists_already(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL), *q = PAIR_CREATE(f, NULL);
    struct sockaddr_storage from = quiet_address(f);
    fx_listen(f, p);
    OVERLAPPED *request = fx_request(f, p), *call = fx_overlapped(f);
    CHECK_HR(CALL(p->a.connector, Bind, ADDR(from), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(p->at), p->at_len, 0, 0, NULL, 0,
                  call),
             ND_PENDING);
    CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
    OVERLAPPED *accept = fx_accept(f, p);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    /* Bind allows it, for the peer may differ; Connect then cannot. */
    HRESULT hr = CALL(q->a.connector, Bind, ADDR(from), f->local_len);
    if (hr == ND_SUCCESS) hr = connect_to(f, &q->a, &p->at, NULL, 0);
    CHECK_HR(hr, ND_ADDRESS_ALREADY_EXISTS);
    SYNC(f, &p->a, &p->b);
    fx_end(f);
}

/* ---- Connect ---- */

static void connect_without_bind_works(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    fx_listen(f, p);
    OVERLAPPED *request = fx_request(f, p), *call = fx_overlapped(f);
    CHECK_HR(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(p->at), p->at_len, 0, 0, NULL, 0,
                  call),
             ND_PENDING);
    CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
    OVERLAPPED *accept = fx_accept(f, p);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    SYNC(f, &p->a, &p->b);
    struct sockaddr_storage here = address_of(p->a.connector, false);
    CHECK(fx_port(&here) != 0);
    fx_end(f);
}

static void connect_on_one_adapter_from_one_thread_works(void) {
    struct fx *f = fx_begin();
    struct fx_pair_options o = { .same_adapter = true };
    struct fx_pair *p = PAIR(f, &o);
    SYNC(f, &p->a, &p->b);
    SYNC(f, &p->b, &p->a);
    fx_end(f);
}

static void connect_to_nobody_is_refused_and_can_be_repeated(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    struct sockaddr_storage at = quiet_address(f);
    CHECK_HR(CALL(p->a.connector, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    RECEIVE(&p->a, CTX(1), NULL, 0, 0); /* stays posted through the failure */
    for (int i = 0; i < 3; i++)
        CHECK_HR(connect_to(f, &p->a, &at, NULL, 0), ND_CONNECTION_REFUSED);
    CHECK_HR(fx_send(&p->a, NULL, NULL, 0, 0, 0), ND_CONNECTION_INVALID);
    EXPECT_EMPTY(p->a.receive_cq);
    /* Now somebody listens; same connector, same queue pair. */
    fx_listen(f, p);
    OVERLAPPED *request = fx_request(f, p), *call = fx_overlapped(f);
    CHECK_HR(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(p->at), p->at_len, 0, 0, NULL, 0,
                  call),
             ND_PENDING);
    CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
    OVERLAPPED *accept = fx_accept(f, p);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    SYNC(f, &p->a, &p->b);
    SEND(&p->b, CTX(1), NULL, 0, 0, 0);
    EXPECT_OK(f, &p->a, Receive, CTX(1), 0);
    fx_end(f);
}

static void connect_after_reject_can_be_repeated(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    OVERLAPPED *call;
    fx_to_requested(f, p, &call);
    CHECK_HR(CALL(p->b.connector, Reject, NULL, 0), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_CONNECTION_REFUSED);
    fx_release(f, p->b.connector);
    p->b.connector = fx_connector(f, 1);
    OVERLAPPED *request = fx_request(f, p);
    call = fx_overlapped(f);
    CHECK_HR(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(p->at), p->at_len, 0, 0, NULL, 0,
                  call),
             ND_PENDING);
    CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
    OVERLAPPED *accept = fx_accept(f, p);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    SYNC(f, &p->a, &p->b);
    fx_end(f);
}

static void connect_to_no_address_is_a_bad_network_name(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    bool v6 = f->local.ss_family == AF_INET6;
    struct sockaddr_storage any, other;
    ULONG any_len, other_len;
    CHECK(host_parse_address(v6 ? "::" : "0.0.0.0", &any, &any_len));
    CHECK(host_parse_address(v6 ? "127.0.0.1" : "::1", &other, &other_len));
    any = fx_with_port(&any, 54350);
    other = fx_with_port(&other, 54350);
    CHECK_HR(CALL(p->a.connector, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(RUN(f, p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(any), any_len, 0, 0, NULL, 0,
                 fx_run_ov),
             ST_BAD_NETWORK_NAME);
    CHECK_HR(RUN(f, p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(other), other_len, 0, 0, NULL,
                 0, fx_run_ov),
             ST_BAD_NETWORK_NAME);
    struct sockaddr_storage many;
    ULONG many_len;
    CHECK(host_parse_address(v6 ? "ff02::1" : "224.0.0.1", &many, &many_len));
    many = fx_with_port(&many, 54350);
    CHECK_HR(RUN(f, p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(many), many_len, 0, 0, NULL, 0,
                 fx_run_ov),
             ST_BAD_NETWORK_NAME);
    /* Port 0: one may also say that nobody is there. */
    HRESULT hr = RUN(f, p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(f->local), f->local_len, 0,
                     0, NULL, 0, fx_run_ov);
    CHECK(hr == ST_BAD_NETWORK_NAME || hr == ND_CONNECTION_REFUSED);
    fx_end(f);
}

static void connect_with_wrong_parameters_names_them(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    IND2Connector *c = p->a.connector;
    OVERLAPPED *ov = fx_overlapped(f);
    fx_listen(f, p);
    const struct sockaddr *to = ADDR(p->at);
    IUnknown *qp = UNKNOWN(p->a.qp);
    CHECK_HR(CALL(c, Connect, NULL, to, p->at_len, 0, 0, NULL, 0, ov), ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(c, Connect, UNKNOWN(p->a.receive_cq), to, p->at_len, 0, 0, NULL, 0, ov),
             ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(c, Connect, UNKNOWN(p->b.qp), to, p->at_len, 0, 0, NULL, 0, ov),
             ND_INVALID_PARAMETER_1); /* of another adapter instance */
    CHECK_HR(CALL(c, Connect, qp, NULL, p->at_len, 0, 0, NULL, 0, ov), ND_INVALID_PARAMETER_2);
    CHECK_HR(CALL(c, Connect, qp, to, 3, 0, 0, NULL, 0, ov), ND_INVALID_PARAMETER_3);
    CHECK_HR(CALL(c, Connect, qp, to, p->at_len, 0, 0, NULL, 0, NULL), ND_INVALID_PARAMETER_8);
    CHECK_HR(CALL(c, Connect, qp, to, p->at_len, 0, 0, NULL, 4, ov), ND_ACCESS_VIOLATION);
    CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_TIMEOUT); /* no completion for any */
    fx_handshake(f, p, NULL);
    SYNC(f, &p->a, &p->b);
    fx_end(f);
}

static void connect_twice_is_active(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    OVERLAPPED *call, *accept;
    fx_to_requested(f, p, &call);
    CHECK_HR(connect_to(f, &p->a, &p->at, NULL, 0), ND_CONNECTION_ACTIVE); /* while connecting */
    accept = fx_accept(f, p);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
    CHECK_HR(connect_to(f, &p->a, &p->at, NULL, 0), ND_CONNECTION_ACTIVE); /* answered */
    CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    CHECK_HR(connect_to(f, &p->a, &p->at, NULL, 0), ND_CONNECTION_ACTIVE); /* connected */
    SYNC(f, &p->a, &p->b);
    fx_end(f);
}

static void queue_pair_serves_one_connector(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL), *q = PAIR_CREATE(f, NULL);
    struct fx_side second = { .connector = q->a.connector, .qp = p->a.qp };
    CHECK_HR(connect_to(f, &second, &p->at, NULL, 0), ND_CONNECTION_ACTIVE);
    OVERLAPPED *call;
    fx_to_requested(f, q, &call);
    CHECK_HR(RUN(f, q->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, NULL, 0, fx_run_ov),
             ND_CONNECTION_ACTIVE);
    SYNC(f, &p->a, &p->b);
    fx_end(f);
}

static void queue_pair_after_disconnect_cannot_connect_again(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL), *q = PAIR_CREATE(f, NULL);
    fx_disconnect(f, &p->a);
    struct fx_side second = { .connector = q->a.connector, .qp = p->a.qp };
    CHECK_FAILED(connect_to(f, &second, &p->at, NULL, 0));
    fx_end(f);
}

/* ---- private data ---- */

static void check_private_data(IND2Connector *c, const uint8_t *expected, ULONG len) {
    uint8_t got[300];
    ULONG cb = 0;
    HRESULT hr = CALL(c, GetPrivateData, NULL, &cb);
    if (len == 0)
        CHECK(hr == ND_SUCCESS || hr == ND_BUFFER_OVERFLOW);
    else
        CHECK_HR(hr, ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, len);
    memset(got, 0xC3, sizeof got);
    CHECK_HR(CALL(c, GetPrivateData, got, &cb), ND_SUCCESS); /* exactly enough */
    CHECK_EQ(cb, len);
    CHECK_BYTES(got, expected, len);
    for (size_t i = len; i < sizeof got; i++)
        CHECK_EQ(got[i], 0xC3);
    cb = sizeof got; /* more than enough */
    CHECK_HR(CALL(c, GetPrivateData, got, &cb), ND_SUCCESS);
    CHECK_EQ(cb, len);
    if (len < 2) return;
    memset(got, 0xC3, sizeof got);
    cb = len / 2; /* too small: as much as fits */
    CHECK_HR(CALL(c, GetPrivateData, got, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, len);
    CHECK_BYTES(got, expected, len / 2);
    for (size_t i = len / 2; i < sizeof got; i++)
        CHECK_EQ(got[i], 0xC3);
}

/* One handshake with these lengths each way. */
static void exchange_private_data(struct fx *f, ULONG caller_len, ULONG callee_len) {
    uint8_t caller[300], callee[300];
    fx_fill(caller, sizeof caller, 1, caller_len, 0);
    fx_fill(callee, sizeof callee, 2, callee_len, 0);
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    fx_listen(f, p);
    OVERLAPPED *request = fx_request(f, p), *call = fx_overlapped(f), *accept = fx_overlapped(f);
    uint8_t passed[300];
    memcpy(passed, caller, sizeof passed);
    CHECK_HR(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(p->at), p->at_len, 1, 1,
                  caller_len ? passed : NULL, caller_len, call),
             ND_PENDING);
    memset(passed, 0, sizeof passed); /* it belongs to us again */
    CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
    check_private_data(p->b.connector, caller, caller_len);
    memcpy(passed, callee, sizeof passed);
    CHECK_HR(CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), 1, 1, callee_len ? passed : NULL,
                  callee_len, accept),
             ND_PENDING);
    memset(passed, 0, sizeof passed);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
    check_private_data(p->a.connector, callee, callee_len);
    CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    /* Still there. */
    check_private_data(p->a.connector, callee, callee_len);
    check_private_data(p->b.connector, caller, caller_len);
}

static void private_data_of_every_length_arrives_exactly(void) {
    struct fx *f = fx_begin();
    ULONG a = f->info.MaxCallerData, b = f->info.MaxCalleeData;
    const ULONG lens[][2] = { { 0, 0 },   { 1, 0 },   { 0, 1 },   { 1, 1 },         { 4, 7 },
                              { 28, 1 },  { 36, 36 }, { 40, 0 },  { a, 0 },         { 0, b },
                              { 55, 54 }, { a, b },   { 33, 65 }, { a - 1, b - 1 }, { 57, 149 } };
    for (size_t i = 0; i < COUNT_OF(lens); i++)
        if (lens[i][0] <= a && lens[i][1] <= b) exchange_private_data(f, lens[i][0], lens[i][1]);
    fx_end(f);
}

static void private_data_of_random_lengths_arrives_exactly(void) {
    struct fx *f = fx_begin();
    uint64_t seed = fx_seed();
    for (int i = 0; i < 20; i++) {
        ULONG a = (ULONG)fx_random_below(&seed, f->info.MaxCallerData + 1);
        ULONG b = (ULONG)fx_random_below(&seed, f->info.MaxCalleeData + 1);
        exchange_private_data(f, a, b);
    }
    fx_end(f);
}

static void private_data_above_the_limit_leaves_the_connector_usable(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    ULONG a = f->info.MaxCallerData, b = f->info.MaxCalleeData;
    uint8_t data[300] = { 1, 2, 3 };
    fx_listen(f, p);
    OVERLAPPED *request = fx_request(f, p);
    CHECK_HR(CALL(p->a.connector, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(connect_to(f, &p->a, &p->at, data, a + 1), ND_INVALID_BUFFER_SIZE);
    OVERLAPPED *call = fx_overlapped(f), *accept = fx_overlapped(f);
    CHECK_HR(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(p->at), p->at_len, 1, 1, data, a,
                  call),
             ND_PENDING);
    CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
    CHECK_HR(RUN(f, p->b.connector, Accept, UNKNOWN(p->b.qp), 1, 1, data, b + 1, fx_run_ov),
             ND_INVALID_BUFFER_SIZE);
    CHECK_HR(CALL(p->b.connector, Reject, data, b + 1), ND_INVALID_BUFFER_SIZE);
    CHECK_HR(CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), 1, 1, data, b, accept), ND_PENDING);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    SYNC(f, &p->a, &p->b);
    fx_end(f);
}

static void private_data_that_cannot_be_read_is_an_access_violation(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    uint8_t *gone = (uint8_t *)(uintptr_t)16; /* where no system maps anything */
    fx_listen(f, p);
    CHECK_HR(connect_to(f, &p->a, &p->at, gone, 8), ND_ACCESS_VIOLATION);
    OVERLAPPED *call;
    fx_to_requested(f, p, &call);
    CHECK_HR(RUN(f, p->b.connector, Accept, UNKNOWN(p->b.qp), 1, 1, gone, 8, fx_run_ov),
             ND_ACCESS_VIOLATION);
    CHECK_HR(CALL(p->b.connector, Reject, gone, 8), ND_ACCESS_VIOLATION);
    CHECK_HR(RUN(f, p->b.connector, Accept, UNKNOWN(p->b.qp), 1, 1, NULL, 8, fx_run_ov),
             ND_ACCESS_VIOLATION);
    CHECK_HR(CALL(p->b.connector, Reject, NULL, 8), ND_ACCESS_VIOLATION);
    CHECK_HR(CALL(p->b.connector, Reject, NULL, 0), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_CONNECTION_REFUSED);
    fx_end(f);
}

static void private_data_before_there_is_any_is_invalid(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    uint8_t data[16];
    ULONG cb = sizeof data, in, out;
    CHECK_HR(CALL(p->a.connector, GetPrivateData, data, &cb), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->a.connector, GetReadLimits, &in, &out), ND_CONNECTION_INVALID);
    OVERLAPPED *call;
    fx_to_requested(f, p, &call);
    CHECK_HR(CALL(p->a.connector, GetPrivateData, data, &cb), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->a.connector, GetReadLimits, &in, &out), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->b.connector, GetReadLimits, &in, &out), ND_SUCCESS);
    fx_end(f);
}

/* ---- read limits ---- */

static ULONG least(ULONG a, ULONG b) {
    return a < b ? a : b;
}

static void read_limits_are_the_least_of_what_both_ends_can(void) {
    struct fx *f = fx_begin();
    ULONG I = f->info.MaxInboundReadLimit, O = f->info.MaxOutboundReadLimit, huge = 0xFFFFFFFF;
    const struct {
        ULONG i1, o1, i2, o2;
    } cases[] = {
        { 0, 0, 0, 0 },       { 1, 1, 1, 1 },
        { 6, 0, 0, 6 },       { 0, 6, 6, 0 },
        { 3, 9, 5, 2 },       { 9, 3, 2, 5 },
        { I, O, I, O },       { huge, huge, 1, 1 },
        { 1, 1, huge, huge }, { huge, huge, huge, huge },
        { I, 0, 0, O },       { 0, O, I, 0 },
        { 5, 5, 0, 5 },       { 5, 5, 5, 0 },
    };
    for (size_t n = 0; n < COUNT_OF(cases); n++) {
        ULONG i1 = least(cases[n].i1, I), o1 = least(cases[n].o1, O);
        struct fx_pair *p = PAIR_CREATE(f, NULL);
        fx_listen(f, p);
        OVERLAPPED *request = fx_request(f, p), *call = fx_overlapped(f);
        OVERLAPPED *accept = fx_overlapped(f);
        ULONG in = 77, out = 77;
        CHECK_HR(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(p->at), p->at_len,
                      cases[n].i1, cases[n].o1, NULL, 0, call),
                 ND_PENDING);
        CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
        /* Inbound is what the peer wants to issue, outbound what it will serve. */
        CHECK_HR(CALL(p->b.connector, GetReadLimits, &in, &out), ND_SUCCESS);
        CHECK_EQ(in, least(o1, I));
        CHECK_EQ(out, least(i1, O));
        ULONG i2 = least(least(cases[n].i2, I), o1), o2 = least(least(cases[n].o2, O), i1);
        CHECK_HR(CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), cases[n].i2, cases[n].o2, NULL, 0,
                      accept),
                 ND_PENDING);
        CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
        CHECK_HR(CALL(p->a.connector, GetReadLimits, &in, &out), ND_SUCCESS);
        CHECK_EQ(in, o2);
        CHECK_EQ(out, i2);
        in = out = 77;
        CHECK_HR(CALL(p->a.connector, GetReadLimits, NULL, &out), ND_SUCCESS);
        CHECK_HR(CALL(p->a.connector, GetReadLimits, &in, NULL), ND_SUCCESS);
        CHECK_EQ(in, o2);
        CHECK_EQ(out, i2);
        CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
        CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
        /* What was agreed on is what works. */
        struct fx_memory *a = fx_memory(f, 0, 8, FX_MR_ALL), *b = fx_memory(f, 1, 8, FX_MR_ALL);
        SYNC(f, &p->a, &p->b);
        HRESULT hr = fx_read(&p->a, CTX(1), a, 0, 8, b, 0, 0);
        CHECK_HR(hr, i2 ? ND_SUCCESS : ND_INVALID_DEVICE_REQUEST);
        if (i2) EXPECT_OK(f, &p->a, Read, CTX(1), 8);
        hr = fx_read(&p->b, CTX(2), b, 0, 8, a, 0, 0);
        CHECK_HR(hr, o2 ? ND_SUCCESS : ND_INVALID_DEVICE_REQUEST);
        if (o2) EXPECT_OK(f, &p->b, Read, CTX(2), 8);
    }
    fx_end(f);
}

/* ---- CompleteConnect and Accept ---- */

static void accept_stays_pending_until_complete_connect(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    OVERLAPPED *accept;
    fx_to_answered(f, p, &accept);
    CHECK_HR(CALL(p->b.connector, GetOverlappedResult, accept, FALSE), ND_PENDING);
    CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    fx_end(f);
}

static void complete_connect_out_of_turn_is_invalid(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    OVERLAPPED *call, *ov = fx_overlapped(f);
    CHECK_HR(CALL(p->a.connector, CompleteConnect, ov), ND_CONNECTION_INVALID);
    fx_to_requested(f, p, &call);
    CHECK_HR(CALL(p->a.connector, CompleteConnect, ov), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->b.connector, CompleteConnect, ov), ND_CONNECTION_INVALID);
    OVERLAPPED *accept = fx_accept(f, p);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
    CHECK_HR(CALL(p->a.connector, CompleteConnect, NULL), ND_INVALID_PARAMETER_1);
    CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    CHECK_HR(CALL(p->a.connector, CompleteConnect, ov), ND_CONNECTION_INVALID);
    fx_end(f);
}

static void complete_connect_after_the_peer_left_is_aborted(void) {
    struct fx *f = fx_begin();
    for (int how = 0; how < 2; how++) {
        struct fx_pair *p = PAIR_CREATE(f, NULL);
        OVERLAPPED *accept;
        fx_to_answered(f, p, &accept);
        if (how == 0) {
            CHECK_HR(CALL(p->b.connector, CancelOverlappedRequests), ND_SUCCESS);
            CHECK_HR(WAIT(f, p->b.connector, accept), ND_CANCELED);
        }
        fx_release(f, p->b.connector);
        fx_release(f, p->b.qp);
        /* It may succeed if the news is still on the way; then the connection ends at once. */
        HRESULT hr = RUN(f, p->a.connector, CompleteConnect, fx_run_ov);
        if (hr == ND_SUCCESS)
            CHECK_HR(RUN(f, p->a.connector, NotifyDisconnect, fx_run_ov), ND_SUCCESS);
        else
            CHECK_HR(hr, ND_CONNECTION_ABORTED);
    }
    fx_end(f);
}

static void accept_without_a_request_is_invalid(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    CHECK_HR(RUN(f, p->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, NULL, 0, fx_run_ov),
             ND_CONNECTION_INVALID);
    fx_listen(f, p);
    OVERLAPPED *request = fx_request(f, p);
    CHECK_HR(RUN(f, p->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, NULL, 0, fx_run_ov),
             ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->listener, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->listener, request), ND_CANCELED);
    fx_end(f);
}

static void accept_with_wrong_parameters_names_them(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    OVERLAPPED *call, *ov = fx_overlapped(f);
    fx_to_requested(f, p, &call);
    CHECK_HR(CALL(p->b.connector, Accept, NULL, 0, 0, NULL, 0, ov), ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(p->b.connector, Accept, UNKNOWN(p->b.receive_cq), 0, 0, NULL, 0, ov),
             ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(p->b.connector, Accept, UNKNOWN(p->a.qp), 0, 0, NULL, 0, ov),
             ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, NULL, 0, NULL),
             ND_INVALID_PARAMETER_6);
    OVERLAPPED *accept = fx_accept(f, p);
    CHECK_HR(CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, NULL, 0, ov),
             ND_CONNECTION_ACTIVE);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    CHECK_HR(CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, NULL, 0, ov),
             ND_CONNECTION_ACTIVE);
    fx_end(f);
}

static void accept_after_the_caller_gave_up_is_aborted(void) {
    struct fx *f = fx_begin();
    for (int how = 0; how < 3; how++) {
        struct fx_pair *p = PAIR_CREATE(f, NULL);
        OVERLAPPED *call;
        fx_to_requested(f, p, &call);
        if (how == 0) {
            CHECK_HR(CALL(p->a.connector, CancelOverlappedRequests), ND_SUCCESS);
            CHECK_HR(WAIT(f, p->a.connector, call), ND_CANCELED);
        } else if (how == 1) {
            CHECK_EQ(fx_release(f, p->a.connector), 0);
            CHECK_EQ((HRESULT)call->Internal, ND_CANCELED);
        } else {
            CHECK_EQ(fx_release(f, p->a.qp), 0);
            CHECK_HR(WAIT(f, p->a.connector, call), ND_CANCELED);
        }
        CHECK_HR(RUN(f, p->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, NULL, 0, fx_run_ov),
                 ND_CONNECTION_ABORTED);
    }
    fx_end(f);
}

static void accept_ends_refused_when_the_caller_turns_the_answer_down(void) {
    struct fx *f = fx_begin();
    for (int how = 0; how < 3; how++) {
        struct fx_pair *p = PAIR_CREATE(f, NULL);
        OVERLAPPED *accept;
        fx_to_answered(f, p, &accept);
        CHECK_HR(CALL(p->b.connector, GetOverlappedResult, accept, FALSE), ND_PENDING);
        if (how == 0) CHECK_HR(CALL(p->a.connector, Reject, NULL, 0), ND_SUCCESS);
        if (how == 1) CHECK_EQ(fx_release(f, p->a.connector), 0); /* the queue pair lives on */
        if (how == 2) CHECK_EQ(fx_release(f, p->a.qp), 0);
        CHECK_HR(WAIT(f, p->b.connector, accept), ND_CONNECTION_REFUSED);
    }
    fx_end(f);
}

/* ---- Reject ---- */

static void reject_refuses_the_caller_and_carries_data(void) {
    struct fx *f = fx_begin();
    const ULONG lens[] = { 0, 1, 20, f->info.MaxCalleeData };
    for (size_t i = 0; i < COUNT_OF(lens); i++) {
        struct fx_pair *p = PAIR_CREATE(f, NULL);
        uint8_t data[300];
        OVERLAPPED *call;
        fx_to_requested(f, p, &call);
        fx_fill(data, sizeof data, 9, i, 0);
        CHECK_HR(CALL(p->b.connector, Reject, lens[i] ? data : NULL, lens[i]), ND_SUCCESS);
        CHECK_EQ(fx_release(f, p->b.connector), 0); /* at once, and it still arrives */
        CHECK_HR(WAIT(f, p->a.connector, call), ND_CONNECTION_REFUSED);
        check_private_data(p->a.connector, data, lens[i]);
    }
    fx_end(f);
}

static void release_of_a_request_rejects_it(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    OVERLAPPED *call;
    fx_to_requested(f, p, &call);
    CHECK_EQ(fx_release(f, p->b.connector), 0);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_CONNECTION_REFUSED);
    fx_end(f);
}

static void reject_out_of_turn_fails(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    OVERLAPPED *call;
    CHECK_HR(CALL(p->a.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
    fx_to_requested(f, p, &call);
    CHECK_HR(CALL(p->a.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->b.connector, Reject, NULL, 0), ND_SUCCESS);
    CHECK_FAILED(CALL(p->b.connector, Reject, NULL, 0));
    CHECK_HR(WAIT(f, p->a.connector, call), ND_CONNECTION_REFUSED);
    CHECK_FAILED(RUN(f, p->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, NULL, 0, fx_run_ov));
    struct fx_pair *q = PAIR(f, NULL);
    CHECK_HR(CALL(q->a.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(q->b.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
    SYNC(f, &q->a, &q->b);
    fx_end(f);
}

static void reject_after_the_caller_gave_up_is_aborted(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    OVERLAPPED *call;
    fx_to_requested(f, p, &call);
    CHECK_HR(CALL(p->a.connector, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_CANCELED);
    /* Unless the news is still on the way. */
    HRESULT hr = CALL(p->b.connector, Reject, NULL, 0);
    CHECK(hr == ND_SUCCESS || hr == ND_CONNECTION_ABORTED);
    fx_end(f);
}

/* ---- cancelling ---- */

static void cancel_of_a_pending_connect_frees_the_queue_pair(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    fx_listen(f, p);
    OVERLAPPED *call = fx_call(f, p); /* nobody asks for the request */
    CHECK_HR(CALL(p->a.connector, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_EQ((HRESULT)call->Internal, ND_CANCELED);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_CANCELED);
    CHECK_HR(CALL(p->a.connector, CancelOverlappedRequests), ND_SUCCESS);
    /* Another connector takes the queue pair on. The request that was given up may turn up first.
     */
    fx_release(f, p->a.connector);
    p->a.connector = fx_connector(f, 0);
    call = fx_call(f, p);
    for (int tries = 0;; tries++) {
        OVERLAPPED *request = fx_request(f, p);
        CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
        OVERLAPPED *accept = fx_accept(f, p);
        /* Whichever request it was, one of these two happens. */
        uint64_t deadline = fx_deadline();
        while (!fx_is_done(call) && !fx_is_done(accept)) {
            CHECK(host_now_ms() < deadline);
            Sleep(0);
        }
        if (!fx_is_done(call)) {
            CHECK_HR(WAIT(f, p->b.connector, accept), ND_CONNECTION_ABORTED);
            CHECK_EQ(tries, 0);
            fx_release(f, p->b.connector);
            p->b.connector = fx_connector(f, 1);
            continue;
        }
        CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
        CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
        CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
        break;
    }
    SYNC(f, &p->a, &p->b);
    fx_end(f);
}

static void cancel_of_a_pending_accept_ends_it(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    OVERLAPPED *accept;
    fx_to_answered(f, p, &accept);
    CHECK_HR(CALL(p->b.connector, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_EQ((HRESULT)accept->Internal, ND_CANCELED);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_CANCELED);
    fx_end(f);
}

static void cancel_with_nothing_pending_leaves_the_connection(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    CHECK_HR(CALL(p->a.connector, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(CALL(p->b.connector, CancelOverlappedRequests), ND_SUCCESS);
    SYNC(f, &p->a, &p->b);
    IND2Connector *fresh = fx_connector(f, 0);
    CHECK_HR(CALL(fresh, CancelOverlappedRequests), ND_SUCCESS);
    /* Nor an attempt that has its answer, nor a request that waits for ours. */
    struct fx_pair *q = PAIR_CREATE(f, NULL);
    OVERLAPPED *call, *accept;
    fx_to_requested(f, q, &call);
    CHECK_HR(CALL(q->b.connector, CancelOverlappedRequests), ND_SUCCESS);
    accept = fx_accept(f, q);
    CHECK_HR(WAIT(f, q->a.connector, call), ND_SUCCESS);
    CHECK_HR(CALL(q->a.connector, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(WAIT(f, q->a.connector, fx_complete(f, q)), ND_SUCCESS);
    CHECK_HR(WAIT(f, q->b.connector, accept), ND_SUCCESS);
    SYNC(f, &q->a, &q->b);
    fx_end(f);
}

/* ---- addresses ---- */

static void addresses_agree_on_both_sides_in_every_state(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    struct sockaddr_storage at, none;
    ULONG len = sizeof none;
    CHECK_HR(CALL(p->a.connector, GetLocalAddress, (struct sockaddr *)&none, &len),
             ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->a.connector, GetPeerAddress, (struct sockaddr *)&none, &len),
             ND_CONNECTION_INVALID);
    fx_listen(f, p);
    OVERLAPPED *request = fx_request(f, p), *call = fx_call(f, p);
    struct sockaddr_storage caller = address_of(p->a.connector, false);
    CHECK(fx_port(&caller) != 0);
    at = address_of(p->a.connector, true); /* from Connect on */
    CHECK(same_address(&at, &p->at));
    CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
    at = address_of(p->b.connector, true); /* before Accept */
    CHECK(same_address(&at, &caller));
    at = address_of(p->b.connector, false);
    CHECK(same_address(&at, &p->at));
    OVERLAPPED *accept = fx_accept(f, p);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    at = address_of(p->a.connector, false);
    CHECK(same_address(&at, &caller));
    at = address_of(p->a.connector, true);
    CHECK(same_address(&at, &p->at));
    at = address_of(p->b.connector, true);
    CHECK(same_address(&at, &caller));
    at = address_of(p->b.connector, false);
    CHECK(same_address(&at, &p->at));
    fx_end(f);
}

static void address_queries_follow_the_size_rules(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    for (int peer = 0; peer < 2; peer++) {
        uint8_t bytes[64];
        ULONG cb = 0;
        HRESULT hr = peer ? CALL(p->a.connector, GetPeerAddress, NULL, &cb)
                          : CALL(p->a.connector, GetLocalAddress, NULL, &cb);
        CHECK_HR(hr, ND_BUFFER_OVERFLOW);
        CHECK_EQ(cb, f->local_len);
        memset(bytes, 0xA5, sizeof bytes);
        cb = f->local_len - 1;
        hr = peer ? CALL(p->a.connector, GetPeerAddress, (struct sockaddr *)bytes, &cb)
                  : CALL(p->a.connector, GetLocalAddress, (struct sockaddr *)bytes, &cb);
        CHECK_HR(hr, ND_BUFFER_OVERFLOW);
        CHECK_EQ(cb, f->local_len);
        for (size_t i = 0; i < sizeof bytes; i++)
            CHECK_EQ(bytes[i], 0xA5);
        cb = sizeof bytes;
        hr = peer ? CALL(p->a.connector, GetPeerAddress, (struct sockaddr *)bytes, &cb)
                  : CALL(p->a.connector, GetLocalAddress, (struct sockaddr *)bytes, &cb);
        CHECK_HR(hr, ND_SUCCESS);
        CHECK_EQ(cb, f->local_len);
        CHECK_EQ(bytes[f->local_len], 0xA5);
    }
    fx_end(f);
}

/* ---- NotifyDisconnect, Disconnect ---- */

static OVERLAPPED *watch(struct fx *f, struct fx_side *s) {
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(s->connector, NotifyDisconnect, ov), ND_PENDING);
    return ov;
}

static void disconnect_before_connecting_is_invalid(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    OVERLAPPED *ov = fx_overlapped(f), *call;
    CHECK_HR(CALL(p->a.connector, Disconnect, ov), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->a.connector, NotifyDisconnect, ov), ND_CONNECTION_INVALID);
    fx_to_requested(f, p, &call);
    CHECK_HR(CALL(p->a.connector, Disconnect, ov), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->b.connector, Disconnect, ov), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->a.connector, NotifyDisconnect, ov), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->b.connector, NotifyDisconnect, ov), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->a.connector, Disconnect, NULL), ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(p->a.connector, NotifyDisconnect, NULL), ND_INVALID_PARAMETER_1);
    fx_end(f);
}

static void notify_disconnect_tells_of_the_peers_disconnect(void) {
    struct fx *f = fx_begin();
    for (int active = 0; active < 2; active++) {
        struct fx_pair *p = PAIR(f, NULL);
        struct fx_side *stays = active ? &p->a : &p->b, *leaves = active ? &p->b : &p->a;
        OVERLAPPED *one = watch(f, stays), *two = watch(f, stays);
        CHECK_HR(CALL(stays->connector, GetOverlappedResult, one, FALSE), ND_PENDING);
        fx_disconnect(f, leaves);
        CHECK_HR(WAIT(f, stays->connector, one), ND_SUCCESS);
        CHECK_HR(WAIT(f, stays->connector, two), ND_SUCCESS);
        CHECK_HR(WAIT(f, stays->connector, watch(f, stays)), ND_SUCCESS); /* afterwards too */
        fx_disconnect(f, stays);
    }
    fx_end(f);
}

static void notify_disconnect_tells_of_the_own_disconnect(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    OVERLAPPED *one = watch(f, &p->a);
    fx_disconnect(f, &p->a);
    CHECK_HR(WAIT(f, p->a.connector, one), ND_SUCCESS);
    CHECK_HR(WAIT(f, p->a.connector, watch(f, &p->a)), ND_SUCCESS);
    fx_end(f);
}

static void notify_disconnect_tells_of_released_peers(void) {
    struct fx *f = fx_begin();
    for (int what = 0; what < 2; what++) {
        struct fx_pair *p = PAIR(f, NULL);
        OVERLAPPED *ov = watch(f, &p->b);
        RECEIVE(&p->b, CTX(1), NULL, 0, 0);
        if (what == 0) CHECK_EQ(fx_release(f, p->a.connector), 0);
        if (what == 1) CHECK_EQ(fx_release(f, p->a.qp), 0);
        CHECK_HR(WAIT(f, p->b.connector, ov), ND_SUCCESS);
        EXPECT_ERROR(f, &p->b, Receive, ND_CANCELED, CTX(1));
    }
    fx_end(f);
}

static void notify_disconnect_cancelled_leaves_the_connection(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    OVERLAPPED *one = watch(f, &p->a), *two = watch(f, &p->a);
    CHECK_HR(CALL(p->a.connector, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_EQ((HRESULT)one->Internal, ND_CANCELED);
    CHECK_EQ((HRESULT)two->Internal, ND_CANCELED);
    CHECK_HR(WAIT(f, p->a.connector, one), ND_CANCELED);
    CHECK_HR(WAIT(f, p->a.connector, two), ND_CANCELED);
    SYNC(f, &p->a, &p->b);
    /* The order in which one client ends: cancel, then Disconnect. */
    one = watch(f, &p->a);
    CHECK_HR(CALL(p->a.connector, CancelOverlappedRequests), ND_SUCCESS);
    fx_disconnect(f, &p->a);
    fx_end(f);
}

static void notify_disconnect_pending_at_release_completes(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    OVERLAPPED *ov = watch(f, &p->a);
    CHECK_EQ(fx_release(f, p->a.connector), 0);
    CHECK(fx_is_done(ov));
    CHECK((HRESULT)ov->Internal == ND_CANCELED || (HRESULT)ov->Internal == ND_SUCCESS);
    fx_end(f);
}

static void disconnect_flushes_both_sides(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    for (int i = 0; i < 5; i++) {
        RECEIVE(&p->a, CTX(i), NULL, 0, 0);
        RECEIVE(&p->b, CTX(i), NULL, 0, 0);
    }
    fx_disconnect(f, &p->a);
    for (int i = 0; i < 5; i++) {
        EXPECT_ERROR(f, &p->a, Receive, ND_CANCELED, CTX(i));
        EXPECT_ERROR(f, &p->b, Receive, ND_CANCELED, CTX(i));
    }
    fx_end(f);
}

static void disconnect_twice_is_invalid(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    fx_disconnect(f, &p->a);
    CHECK_HR(RUN(f, p->a.connector, Disconnect, fx_run_ov), ND_CONNECTION_INVALID);
    fx_end(f);
}

static void disconnect_of_both_sides_at_once_succeeds(void) {
    struct fx *f = fx_begin();
    for (int i = 0; i < HOST_ROUNDS(50); i++) {
        struct fx_pair *p = PAIR(f, NULL);
        OVERLAPPED *a = fx_overlapped(f), *b = fx_overlapped(f);
        OVERLAPPED *wa = watch(f, &p->a), *wb = watch(f, &p->b);
        CHECK_HR(CALL(p->a.connector, Disconnect, a), ND_PENDING);
        CHECK_HR(CALL(p->b.connector, Disconnect, b), ND_PENDING);
        CHECK_HR(WAIT(f, p->a.connector, a), ND_SUCCESS);
        CHECK_HR(WAIT(f, p->b.connector, b), ND_SUCCESS);
        CHECK_HR(WAIT(f, p->a.connector, wa), ND_SUCCESS);
        CHECK_HR(WAIT(f, p->b.connector, wb), ND_SUCCESS);
    }
    fx_end(f);
}

static void disconnect_after_the_peer_left_succeeds(void) {
    struct fx *f = fx_begin();
    for (int i = 0; i < 10; i++) {
        struct fx_pair *p = PAIR(f, NULL);
        OVERLAPPED *ov = watch(f, &p->a);
        fx_disconnect(f, &p->b);
        if (i % 2) CHECK_HR(WAIT(f, p->a.connector, ov), ND_SUCCESS);
        fx_disconnect(f, &p->a);
    }
    fx_end(f);
}

static void disconnect_lets_what_was_sent_arrive(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    size_t len = MIB(8);
    enum { COUNT = 5 };
    struct fx_memory *from = fx_memory(f, 0, len, 0);
    struct fx_memory *to = fx_memory(f, 1, COUNT * len, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    fx_fill(from->bytes, len, 4, 1, 0);
    for (int i = 0; i < COUNT; i++)
        RECEIVE(&p->b, CTX(i), to, (size_t)i * len, len);
    RECEIVE(&p->b, CTX(COUNT), NULL, 0, 0);
    for (int i = 0; i < COUNT; i++)
        SEND(&p->a, CTX(i), from, 0, len, 0);
    for (int i = 0; i < COUNT; i++)
        EXPECT_OK(f, &p->a, Send, CTX(i), len);
    fx_disconnect(f, &p->a);
    for (int i = 0; i < COUNT; i++) {
        EXPECT_OK(f, &p->b, Receive, CTX(i), len);
        CHECK_DATA(to->bytes + (size_t)i * len, len, 4, 1, 0);
    }
    EXPECT_ERROR(f, &p->b, Receive, ND_CANCELED, CTX(COUNT));
    fx_end(f);
}

/* A last message and Disconnect with no pause in between, the way most programs end. */
static void disconnect_right_after_a_send_lets_it_arrive(void) {
    struct fx *f = fx_begin();
    struct fx_memory *from = fx_memory(f, 0, 1000, 0);
    struct fx_memory *to = fx_memory(f, 1, 1000, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    for (int i = 0; i < HOST_ROUNDS(40); i++) {
        struct fx_pair *p = PAIR(f, NULL);
        size_t len = i % 2 ? 1000 : 0;
        RECEIVE(&p->b, CTX(1), to, 0, 1000);
        SEND(&p->a, CTX(1), from, 0, len, 0);
        EXPECT_OK(f, &p->a, Send, CTX(1), len);
        fx_disconnect(f, &p->a);
        EXPECT_OK(f, &p->b, Receive, CTX(1), len);
    }
    fx_end(f);
}

/* CompleteConnect and Disconnect back to back: the peer's Accept succeeds all the same. */
static void disconnect_right_after_connecting_lets_accept_succeed(void) {
    struct fx *f = fx_begin();
    for (int i = 0; i < HOST_ROUNDS(40); i++) {
        struct fx_pair *p = PAIR_CREATE(f, NULL);
        OVERLAPPED *accept, *complete;
        RECEIVE(&p->b, CTX(1), NULL, 0, 0);
        fx_to_answered(f, p, &accept);
        complete = fx_complete(f, p);
        CHECK_HR(WAIT(f, p->a.connector, complete), ND_SUCCESS);
        fx_disconnect(f, &p->a);
        CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
        EXPECT_ERROR(f, &p->b, Receive, ND_CANCELED, CTX(1));
    }
    fx_end(f);
}

/* ---- patterns of use ---- */

static void passive_side_may_send_first(void) {
    struct fx *f = fx_begin();
    for (int i = 0; i < 10; i++) {
        struct fx_pair *p = PAIR_CREATE(f, NULL);
        RECEIVE(&p->a, CTX(1), NULL, 0, 0);
        fx_handshake(f, p, NULL);
        SEND(&p->b, CTX(1), NULL, 0, 0, 0);
        EXPECT_OK(f, &p->b, Send, CTX(1), 0);
        EXPECT_OK(f, &p->a, Receive, CTX(1), 0);
    }
    fx_end(f);
}

static void active_side_may_send_before_accept_is_noticed(void) {
    struct fx *f = fx_begin();
    for (int i = 0; i < 10; i++) {
        struct fx_pair *p = PAIR_CREATE(f, NULL);
        OVERLAPPED *accept;
        RECEIVE(&p->b, CTX(1), NULL, 0, 0);
        fx_to_answered(f, p, &accept);
        CHECK_HR(WAIT(f, p->a.connector, fx_complete(f, p)), ND_SUCCESS);
        SEND(&p->a, CTX(1), NULL, 0, 0, 0);
        EXPECT_OK(f, &p->b, Receive, CTX(1), 0);
        EXPECT_OK(f, &p->a, Send, CTX(1), 0);
        CHECK_HR(WAIT(f, p->b.connector, accept), ND_SUCCESS);
    }
    fx_end(f);
}

/* Two ends dial each other at once. The higher one rejects what the lower one asks for, which then
 * serves the higher one's request; its own queue pair is flushed. */
static void both_ends_may_dial_at_once(void) {
    struct fx *f = fx_begin();
    struct fx_pair_options swapped = { .swap_hosts = true };
    for (int i = 0; i < 10; i++) {
        struct fx_pair *low = PAIR_CREATE(f, NULL), *high = PAIR_CREATE(f, &swapped);
        RECEIVE(&low->a, CTX(1), NULL, 0, 0);
        RECEIVE(&low->a, CTX(2), NULL, 0, 0);
        RECEIVE(&high->a, CTX(3), NULL, 0, 0);
        fx_listen(f, low);
        fx_listen(f, high);
        OVERLAPPED *low_request = fx_request(f, low), *high_request = fx_request(f, high);
        OVERLAPPED *low_call = fx_call(f, low), *high_call = fx_call(f, high);
        CHECK_HR(WAIT(f, low->listener, low_request), ND_SUCCESS);
        CHECK_HR(WAIT(f, high->listener, high_request), ND_SUCCESS);
        CHECK_HR(CALL(low->b.connector, Reject, NULL, 0), ND_SUCCESS);
        CHECK_EQ(fx_release(f, low->b.connector), 0);
        OVERLAPPED *accept = fx_accept(f, high);
        CHECK_HR(WAIT(f, low->a.connector, low_call), ND_CONNECTION_REFUSED);
        CHECK_HR(WAIT(f, high->a.connector, high_call), ND_SUCCESS);
        CHECK_HR(WAIT(f, high->a.connector, fx_complete(f, high)), ND_SUCCESS);
        CHECK_HR(WAIT(f, high->b.connector, accept), ND_SUCCESS);
        CHECK_HR(CALL(low->a.qp, Flush), ND_SUCCESS);
        EXPECT_ERROR(f, &low->a, Receive, ND_CANCELED, CTX(1));
        EXPECT_ERROR(f, &low->a, Receive, ND_CANCELED, CTX(2));
        SEND(&high->b, CTX(3), NULL, 0, 0, 0);
        EXPECT_OK(f, &high->a, Receive, CTX(3), 0);
    }
    fx_end(f);
}

CONFORM_MAIN(
    TEST(bind_to_port_0_picks_a_port_of_its_own), TEST(bind_takes_a_longer_length),
    TEST(bind_twice_is_already_associated), TEST(bind_to_a_foreign_address_is_invalid),
    TEST(bind_of_garbage_names_the_parameter), TEST(bind_to_the_port_of_a_listener_works),
    TEST(second_connection_between_the_same_addresses_exists_already),
    TEST(connect_without_bind_works), TEST(connect_on_one_adapter_from_one_thread_works),
    TEST(connect_to_nobody_is_refused_and_can_be_repeated),
    TEST(connect_after_reject_can_be_repeated), TEST(connect_to_no_address_is_a_bad_network_name),
    TEST(connect_with_wrong_parameters_names_them), TEST(connect_twice_is_active),
    TEST(queue_pair_serves_one_connector), TEST(queue_pair_after_disconnect_cannot_connect_again),
    TEST(private_data_of_every_length_arrives_exactly),
    TEST(private_data_of_random_lengths_arrives_exactly),
    TEST(private_data_above_the_limit_leaves_the_connector_usable),
    TEST(private_data_that_cannot_be_read_is_an_access_violation),
    TEST(private_data_before_there_is_any_is_invalid),
    TEST(read_limits_are_the_least_of_what_both_ends_can),
    TEST(accept_stays_pending_until_complete_connect),
    TEST(complete_connect_out_of_turn_is_invalid),
    TEST(complete_connect_after_the_peer_left_is_aborted),
    TEST(accept_without_a_request_is_invalid), TEST(accept_with_wrong_parameters_names_them),
    TEST(accept_after_the_caller_gave_up_is_aborted),
    TEST(accept_ends_refused_when_the_caller_turns_the_answer_down),
    TEST(reject_refuses_the_caller_and_carries_data), TEST(release_of_a_request_rejects_it),
    TEST(reject_out_of_turn_fails), TEST(reject_after_the_caller_gave_up_is_aborted),
    TEST(cancel_of_a_pending_connect_frees_the_queue_pair),
    TEST(cancel_of_a_pending_accept_ends_it),
    TEST(cancel_with_nothing_pending_leaves_the_connection),
    TEST(addresses_agree_on_both_sides_in_every_state), TEST(address_queries_follow_the_size_rules),
    TEST(disconnect_before_connecting_is_invalid),
    TEST(notify_disconnect_tells_of_the_peers_disconnect),
    TEST(notify_disconnect_tells_of_the_own_disconnect),
    TEST(notify_disconnect_tells_of_released_peers),
    TEST(notify_disconnect_cancelled_leaves_the_connection),
    TEST(notify_disconnect_pending_at_release_completes), TEST(disconnect_flushes_both_sides),
    TEST(disconnect_twice_is_invalid), TEST(disconnect_of_both_sides_at_once_succeeds),
    TEST(disconnect_after_the_peer_left_succeeds), TEST(disconnect_lets_what_was_sent_arrive),
    TEST(disconnect_right_after_a_send_lets_it_arrive),
    TEST(disconnect_right_after_connecting_lets_accept_succeed), TEST(passive_side_may_send_first),
    TEST(active_side_may_send_before_accept_is_noticed), TEST(both_ends_may_dial_at_once))
