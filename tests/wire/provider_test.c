/* SPDX-License-Identifier: MIT
 *
 * The provider as a NetworkDirect program sees it, against a raw peer that misbehaves: what the
 * peer gets on the wire, what the program gets as results, and memory that must not change.
 */
#include "conform/fixture.h"
#include "support/portable.h"
#include "support/raw_peer.h"

enum { LEN = 4096, GUARD = 64, OPCODE_SEND = 3, OPCODE_SEND_INV = 4 };

struct scene {
    struct fx *f;
    struct fx_pair *p;
    struct fx_side *s; /* ours */
    struct raw_peer peer;
    struct fx_memory *in;   /* for receives and as target; inside `all` with room on both sides */
    struct fx_memory *open; /* the same octets for the peer's Reads and Writes */
    uint8_t *all;
    struct raw_bytes out;
    uint8_t fpdu[RAW_FPDU_MAX];
    size_t fpdu_len;
};

static struct os_addr addr_of(const struct sockaddr_storage *sa, ULONG len) {
    struct os_addr a;
    CHECK_EQ(os_addr_from_sockaddr(&a, sa, len), SN_OK);
    return a;
}

static void set_memory(struct scene *c, int host) {
    c->all = fx_alloc(c->f, LEN + 2 * GUARD);
    memset(c->all, 0xA5, LEN + 2 * GUARD);
    c->in = fx_memory_over(c->f, host, c->all + GUARD, LEN, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    c->open =
        fx_memory_over(c->f, host, c->all + GUARD, LEN, FX_MR_ALL | ND_MR_FLAG_ALLOW_LOCAL_WRITE);
}

static void check_guards(const struct scene *c) {
    for (size_t i = 0; i < GUARD; i++) {
        CHECK_EQ(c->all[i], 0xA5);
        CHECK_EQ(c->all[GUARD + LEN + i], 0xA5);
    }
}

static void put(struct scene *c) {
    enum raw_result res = raw_transmit(&c->peer, c->out.data, c->out.len, NULL);
    if (res != RAW_OK) FAIL("cannot send: %s", raw_result_text(res));
    c->out.len = 0;
}

static void next_fpdu(struct scene *c) {
    enum raw_result res = raw_read_fpdu(&c->peer, c->fpdu, &c->fpdu_len);
    if (res != RAW_OK) FAIL("no FPDU: %s", raw_result_text(res));
}

/* The raw peer connects to a listener of ours, as an adapter would; two receives are posted. */
static void raw_connects(struct scene *c) {
    uint8_t start[532];
    size_t len;
    memset(c, 0, sizeof *c);
    c->f = fx_begin();
    c->p = PAIR_CREATE(c->f, NULL);
    c->s = &c->p->b;
    set_memory(c, c->s->host);
    RECEIVE(c->s, CTX(1), c->in, 0, 100);
    RECEIVE(c->s, CTX(2), c->in, 1000, 100);
    fx_listen(c->f, c->p);
    OVERLAPPED *request = fx_request(c->f, c->p);
    struct os_addr to = addr_of(&c->p->at, c->p->at_len);
    CHECK_EQ(raw_connect(&c->peer, &to), RAW_OK);
    raw_start2(&c->out, false, 0, RAW_A | 8, RAW_RTR_WRITE | RAW_RTR_READ | 8, NULL, 0);
    put(c);
    CHECK_HR(WAIT(c->f, c->p->listener, request), ND_SUCCESS);
    OVERLAPPED *accept = fx_accept(c->f, c->p);
    CHECK_EQ(raw_read_start(&c->peer, start, &len), RAW_OK);
    raw_write(&c->out, true, 1, 0, NULL, 0);
    put(c);
    CHECK_HR(WAIT(c->f, c->s->connector, accept), ND_SUCCESS);
}

/* We connect to a raw listener, which answers as an adapter would. */
static void we_connect(struct scene *c) {
    uint8_t start[532];
    size_t len;
    os_sock listener;
    struct os_addr at;
    uint8_t sa[OS_SOCKADDR_MAX];
    memset(c, 0, sizeof *c);
    c->f = fx_begin();
    c->p = PAIR_CREATE(c->f, NULL);
    c->s = &c->p->a;
    set_memory(c, c->s->host);
    CHECK(raw_listen(&listener, &at));
    size_t cb = os_addr_to_sockaddr(&at, sa);
    memcpy(&c->p->at, sa, cb);
    c->p->at_len = (ULONG)cb;
    OVERLAPPED *call = fx_call(c->f, c->p);
    CHECK_EQ(raw_accept(listener, &c->peer), RAW_OK);
    os_sock_close(listener, false);
    CHECK_EQ(raw_read_start(&c->peer, start, &len), RAW_OK);
    raw_start2(&c->out, true, 0, RAW_A | 8, RAW_RTR_WRITE | 8, NULL, 0);
    put(c);
    CHECK_HR(WAIT(c->f, c->s->connector, call), ND_SUCCESS);
    CHECK_HR(RUN(c->f, c->s->connector, CompleteConnect, fx_run_ov), ND_SUCCESS);
    next_fpdu(c); /* the RTR */
    CHECK_EQ(c->fpdu_len, 20);
}

/* The Terminate for the message in `offender`, then the end, which the program hears of; its
 * receives come back from `context` on. */
static void expect_terminate(struct scene *c, uint8_t layer, uint8_t type, uint8_t code,
                             unsigned quote, const struct raw_bytes *offender) {
    struct raw_bytes want = { 0 };
    next_fpdu(c);
    raw_terminate_about(&want, layer, type, code, quote, offender->data);
    CHECK_EQ(c->fpdu_len, want.len);
    CHECK_BYTES(c->fpdu, want.data, want.len);
    raw_free(&want);
    CHECK_EQ(raw_read_end(&c->peer), RAW_EOF);
}

static void end_scene(struct scene *c) {
    check_guards(c);
    raw_close(&c->peer);
    raw_free(&c->out);
    fx_end(c->f);
}

/* A misbehaviour that needs no more than octets: Terminate, disconnect, flushed receives. */
static void judge(struct scene *c, uint8_t layer, uint8_t type, uint8_t code, unsigned quote) {
    OVERLAPPED *gone = fx_overlapped(c->f);
    CHECK_HR(CALL(c->s->connector, NotifyDisconnect, gone), ND_PENDING);
    struct raw_bytes copy = { 0 };
    raw_put(&copy, c->out.data + c->out.fpdu_at, c->out.len - c->out.fpdu_at);
    put(c);
    expect_terminate(c, layer, type, code, quote, &copy);
    raw_free(&copy);
    CHECK_HR(WAIT(c->f, c->s->connector, gone), ND_SUCCESS);
}

static void expect_flushed(struct scene *c, uintptr_t from, uintptr_t to) {
    for (uintptr_t i = from; i <= to; i++)
        EXPECT_ERROR(c->f, c->s, Receive, ND_CANCELED, CTX(i));
}

/* ---- cases ---- */

static void foreign_peer_moves_every_kind_of_data(void) {
    struct scene c;
    raw_connects(&c);
    raw_send(&c.out, OPCODE_SEND, true, 0, 1, 0, "hello", 5);
    raw_write(&c.out, true, c.open->remote, fx_remote(c.open, 2000), "written", 7);
    raw_send(&c.out, OPCODE_SEND, true, 0, 2, 0, NULL, 0);
    raw_read_request(&c.out, 1, 5, 6, 7, c.open->remote, fx_remote(c.open, 2000));
    put(&c);
    EXPECT_OK(c.f, c.s, Receive, CTX(1), 5);
    EXPECT_OK(c.f, c.s, Receive, CTX(2), 0);
    CHECK_BYTES(c.in->bytes, "hello", 5);
    CHECK_BYTES(c.in->bytes + 2000, "written", 7);
    next_fpdu(&c);
    CHECK_BYTES(c.fpdu + 16, "written", 7);
    SEND(c.s, CTX(3), c.in, 0, 5, 0);
    next_fpdu(&c);
    CHECK_BYTES(c.fpdu + 20, "hello", 5);
    EXPECT_OK(c.f, c.s, Send, CTX(3), 5);
    end_scene(&c);
}

static void garbage_before_mpa_leaves_the_listener_at_work(void) {
    static const char *const garbage[] = { "GET / HTTP/1.0\r\n\r\n", "MPA ID Rep Frame\x40\x02",
                                           "" };
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    fx_listen(f, p);
    struct os_addr to = addr_of(&p->at, p->at_len);
    for (size_t i = 0; i < COUNT_OF(garbage); i++) {
        struct raw_peer peer;
        CHECK_EQ(raw_connect(&peer, &to), RAW_OK);
        CHECK_EQ(raw_transmit(&peer, garbage[i], strlen(garbage[i]), NULL), RAW_OK);
        raw_fin(&peer);
        enum raw_result res = raw_read_end(&peer);
        CHECK(res == RAW_EOF || res == RAW_RESET);
        raw_close(&peer);
    }
    fx_handshake(f, p, NULL); /* and none of them was taken for a request */
    SYNC(f, &p->a, &p->b);
    fx_end(f);
}

static void write_with_an_unknown_token_ends_the_connection(void) {
    struct scene c;
    raw_connects(&c);
    raw_write(&c.out, true, c.open->remote ^ 1, fx_remote(c.open, 0), "x", 1);
    judge(&c, 1, 1, 0, 1);
    expect_flushed(&c, 1, 2);
    end_scene(&c);
}

static void write_with_the_local_token_ends_the_connection(void) {
    struct scene c;
    raw_connects(&c);
    raw_write(&c.out, true, c.open->local, fx_remote(c.open, 0), "x", 1);
    judge(&c, 1, 1, 0, 1);
    end_scene(&c);
}

static void write_over_the_end_changes_nothing(void) {
    uint8_t octets[200];
    struct scene c;
    memset(octets, 0x11, sizeof octets);
    raw_connects(&c);
    raw_write(&c.out, true, c.open->remote, fx_remote(c.open, LEN - 199), octets, 200);
    judge(&c, 1, 1, 1, 1);
    for (size_t i = 0; i < LEN; i++)
        CHECK_EQ(c.in->bytes[i], 0xA5);
    end_scene(&c);
}

static void write_to_a_region_without_the_right_changes_nothing(void) {
    struct scene c;
    raw_connects(&c);
    struct fx_memory *m = fx_memory(c.f, c.s->host, 64, ND_MR_FLAG_ALLOW_REMOTE_READ);
    raw_write(&c.out, true, m->remote, fx_remote(m, 0), "x", 1);
    judge(&c, 1, 1, 0, 1);
    CHECK_EQ(m->bytes[0], 0);
    end_scene(&c);
}

static void write_after_deregister_changes_nothing(void) {
    struct scene c;
    raw_connects(&c);
    uint32_t token = c.open->remote;
    uint64_t at = fx_remote(c.open, 0);
    fx_deregister(c.f, c.open);
    raw_write(&c.out, true, token, at, "x", 1);
    judge(&c, 1, 1, 0, 1);
    CHECK_EQ(c.in->bytes[0], 0xA5);
    end_scene(&c);
}

static void read_without_the_right_is_refused(void) {
    struct scene c;
    raw_connects(&c);
    struct fx_memory *m =
        fx_memory(c.f, c.s->host, 64, ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    raw_read_request(&c.out, 1, 5, 6, 7, m->remote, fx_remote(m, 0));
    judge(&c, 0, 1, 2, 2);
    end_scene(&c);
}

static void read_over_the_end_is_refused(void) {
    struct scene c;
    raw_connects(&c);
    raw_read_request(&c.out, 1, 5, 6, 2, c.open->remote, fx_remote(c.open, LEN - 1));
    judge(&c, 0, 1, 1, 2);
    end_scene(&c);
}

static void send_longer_than_the_receive_fails_it(void) {
    uint8_t octets[101] = { 0 };
    struct scene c;
    raw_connects(&c);
    raw_send(&c.out, OPCODE_SEND, true, 0, 1, 0, octets, sizeof octets);
    judge(&c, 1, 2, 5, 1);
    ND2_RESULT result;
    NEXT(c.f, c.s->receive_cq, &result);
    CHECK(FAILED(result.Status) && result.Status != ND_CANCELED);
    CHECK(result.RequestContext == CTX(1));
    expect_flushed(&c, 2, 2);
    end_scene(&c);
}

static void invalidate_of_a_region_is_refused(void) {
    struct scene c;
    raw_connects(&c);
    raw_send(&c.out, OPCODE_SEND_INV, true, c.open->remote, 1, 0, NULL, 0);
    judge(&c, 0, 2, 9, 1);
    expect_flushed(&c, 1, 2);
    end_scene(&c);
}

static void window_is_closed_by_the_invalidate_of_the_peer(void) {
    struct scene c;
    raw_connects(&c);
    IND2MemoryWindow *window = fx_window(c.f, c.s->host);
    BIND(c.s, CTX(7), c.open, window, 0, 512, ND_OP_FLAG_ALLOW_WRITE);
    EXPECT_OK(c.f, c.s, Bind, CTX(7), FX_ANY_BYTES);
    uint32_t token = CALL(window, GetRemoteToken);
    raw_write(&c.out, true, token, fx_remote(c.open, 0), "good", 4);
    raw_send(&c.out, OPCODE_SEND_INV, true, token, 1, 0, NULL, 0);
    put(&c);
    EXPECT_OK(c.f, c.s, Receive, CTX(1), 0);
    CHECK_BYTES(c.in->bytes, "good", 4);
    raw_write(&c.out, true, token, fx_remote(c.open, 0), "evil", 4);
    judge(&c, 1, 1, 0, 1);
    CHECK_BYTES(c.in->bytes, "good", 4);
    end_scene(&c);
}

static void bad_crc_is_not_delivered(void) {
    struct scene c;
    raw_connects(&c);
    raw_send(&c.out, OPCODE_SEND, true, 0, 1, 0, "hello", 5);
    c.out.data[c.out.len - 1] ^= 1;
    judge(&c, 2, 0, 2, 0);
    expect_flushed(&c, 1, 2);
    end_scene(&c);
}

static void opcode_of_rfc_7306_is_unexpected(void) {
    struct scene c;
    raw_connects(&c);
    raw_fpdu_begin(&c.out, 26);
    raw_untagged(&c.out, 0x41, 0x48, 0, 0, 1, 0);
    raw_fill(&c.out, 0, 8);
    raw_fpdu_end(&c.out, 0, RAW_CRC_GOOD);
    judge(&c, 0, 2, 6, 1);
    expect_flushed(&c, 1, 2);
    end_scene(&c);
}

static void reset_flushes_and_is_told(void) {
    struct scene c;
    raw_connects(&c);
    OVERLAPPED *gone = fx_overlapped(c.f);
    CHECK_HR(CALL(c.s->connector, NotifyDisconnect, gone), ND_PENDING);
    raw_reset(&c.peer);
    CHECK_HR(WAIT(c.f, c.s->connector, gone), ND_SUCCESS);
    expect_flushed(&c, 1, 2);
    end_scene(&c);
}

static void reply_of_garbage_refuses_the_connect(void) {
    os_sock listener;
    struct os_addr at;
    struct raw_peer peer;
    uint8_t sa[OS_SOCKADDR_MAX], start[532];
    size_t len;
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    CHECK(raw_listen(&listener, &at));
    size_t cb = os_addr_to_sockaddr(&at, sa);
    memcpy(&p->at, sa, cb);
    p->at_len = (ULONG)cb;
    OVERLAPPED *call = fx_call(f, p);
    CHECK_EQ(raw_accept(listener, &peer), RAW_OK);
    CHECK_EQ(raw_read_start(&peer, start, &len), RAW_OK);
    CHECK_EQ(raw_transmit(&peer, "HTTP/1.0 400 Bad Request", 24, NULL), RAW_OK);
    CHECK_HR(WAIT(f, p->a.connector, call), ND_CONNECTION_REFUSED);
    raw_close(&peer);
    os_sock_close(listener, false);
    fx_end(f);
}

/* Our answer is on its way when the caller gives up, with a reset, or has it and says goodbye. */
static void caller_that_leaves_ends_the_accept(void) {
    struct fx *f = fx_begin();
    for (int reset = 0; reset < 2; reset++) {
        struct fx_pair *p = PAIR_CREATE(f, NULL);
        struct raw_peer peer;
        struct raw_bytes b = { 0 };
        uint8_t start[532];
        size_t len;
        fx_listen(f, p);
        OVERLAPPED *request = fx_request(f, p);
        struct os_addr to = addr_of(&p->at, p->at_len);
        CHECK_EQ(raw_connect(&peer, &to), RAW_OK);
        raw_start2(&b, false, 0, RAW_A | 8, RAW_RTR_WRITE | RAW_RTR_READ | 8, NULL, 0);
        CHECK_EQ(raw_transmit(&peer, b.data, b.len, NULL), RAW_OK);
        raw_free(&b);
        CHECK_HR(WAIT(f, p->listener, request), ND_SUCCESS);
        OVERLAPPED *accept = fx_accept(f, p);
        bool aborted = reset && !test_is_wine(); /* Wine ends the stream before it resets it */
        if (reset) {                             /* the answer stays in its socket, unread */
            raw_reset(&peer);
        } else {
            CHECK_EQ(raw_read_start(&peer, start, &len), RAW_OK);
            raw_fin(&peer);
        }
        CHECK_HR(WAIT(f, p->b.connector, accept),
                 aborted ? ND_CONNECTION_ABORTED : ND_CONNECTION_REFUSED);
        if (!reset) raw_close(&peer);
    }
    fx_end(f);
}

static void response_to_another_place_changes_nothing(void) {
    struct scene c;
    we_connect(&c);
    ND2_SGE sge = fx_sge(c.in, 0, 100);
    CHECK_HR(CALL(c.s->qp, Read, CTX(9), &sge, 1, 0x1000, 77, 0), ND_SUCCESS);
    next_fpdu(&c);
    CHECK_EQ(c.fpdu_len, 52);
    uint8_t octets[100] = { 0 };
    uint32_t sink = (uint32_t)c.fpdu[20] << 24 | c.fpdu[21] << 16 | c.fpdu[22] << 8 | c.fpdu[23];
    raw_response(&c.out, true, sink, (uint64_t)(uintptr_t)c.in->bytes + 1, octets, 100);
    judge(&c, 1, 1, 1, 1);
    EXPECT_ERROR(c.f, c.s, Read, ND_CANCELED, CTX(9));
    for (size_t i = 0; i < 200; i++)
        CHECK_EQ(c.in->bytes[i], 0xA5);
    end_scene(&c);
}

static void terminate_for_a_read_fails_that_read(void) {
    struct scene c;
    we_connect(&c);
    ND2_SGE sge = fx_sge(c.in, 0, 100);
    CHECK_HR(CALL(c.s->qp, Read, CTX(9), &sge, 1, 0x1000, 77, 0), ND_SUCCESS);
    next_fpdu(&c);
    raw_terminate_about(&c.out, 0, 1, 0, 2, c.fpdu);
    put(&c);
    EXPECT_ERROR(c.f, c.s, Read, ND_ACCESS_VIOLATION, CTX(9));
    end_scene(&c);
}

CONFORM_MAIN(TEST(foreign_peer_moves_every_kind_of_data),
             TEST(garbage_before_mpa_leaves_the_listener_at_work),
             TEST(write_with_an_unknown_token_ends_the_connection),
             TEST(write_with_the_local_token_ends_the_connection),
             TEST(write_over_the_end_changes_nothing),
             TEST(write_to_a_region_without_the_right_changes_nothing),
             TEST(write_after_deregister_changes_nothing), TEST(read_without_the_right_is_refused),
             TEST(read_over_the_end_is_refused), TEST(send_longer_than_the_receive_fails_it),
             TEST(invalidate_of_a_region_is_refused),
             TEST(window_is_closed_by_the_invalidate_of_the_peer), TEST(bad_crc_is_not_delivered),
             TEST(opcode_of_rfc_7306_is_unexpected), TEST(reset_flushes_and_is_told),
             TEST(reply_of_garbage_refuses_the_connect), TEST(caller_that_leaves_ends_the_accept),
             TEST(response_to_another_place_changes_nothing),
             TEST(terminate_for_a_read_fails_that_read))
