/* SPDX-License-Identifier: MIT
 * Hostility that needs more than octets: time, floods, many connections, exhausted descriptors.
 */
#include "hostile.h"
#include "support/portable.h"

enum { IN1 = 0x1000, SINK = 0x8000 };

static uint64_t ms_since(uint64_t t0) {
    return (os_now_ns() - t0) / OS_NS_PER_MS;
}

/* Sleeps, for the pace of a slow peer. */
static void pace_ms(uint32_t ms) {
    os_atomic_u32 word = { 0 };
    uint64_t until = os_now_ns() + ms * OS_NS_PER_MS;
    while (os_now_ns() < until)
        os_wait_on(&word, 0, until);
}

static void expect_end(struct rig *r) {
    enum raw_result res = raw_read_end(&r->peer);
    if (res != RAW_EOF && res != RAW_RESET) FAIL("expected the end: %s", raw_result_text(res));
}

/* One octet each 100 ms until the other side has enough of it. */
static void trickle(struct rig *r, const struct raw_bytes *b) {
    uint64_t t0 = os_now_ns();
    for (size_t i = 0; i < b->len && ms_since(t0) < RAW_WAIT_MS; i++) {
        struct raw_bytes one = { .data = b->data + i, .len = 1 };
        if (raw_transmit(&r->peer, one.data, one.len, NULL) != RAW_OK) break;
        uint8_t octet;
        struct os_iov iov = { &octet, 1 };
        size_t got;
        if (os_sock_readv(r->peer.s, &iov, 1, &got) == SN_E_EOF) break;
        pace_ms(100);
    }
    CHECK(ms_since(t0) >= HOSTILE_REQUEST_MS - 100);
    CHECK(ms_since(t0) < RAW_WAIT_MS);
}

/* ---- time ---- */

static void silent_request(struct stage *s) {
    struct rig *r = s->r;
    uint64_t t0 = os_now_ns();
    rig_connect_raw(r, 0);
    expect_end(r);
    CHECK(ms_since(t0) >= HOSTILE_REQUEST_MS - 100);
}

static void slow_request(struct stage *s) {
    struct rig *r = s->r;
    raw_start(&s->out, false, RAW_C, 1, 512);
    raw_fill(&s->out, 1, 512);
    rig_connect_raw(r, 0);
    trickle(r, &s->out);
    CHECK_PTR(os_ptr_load_acquire(&r->request), NULL);
}

static void slow_reply(struct stage *s) {
    struct rig *r = s->r;
    rig_start_connect(r, 4, 4, false);
    rig_read_start(r);
    raw_start(&s->out, true, RAW_C, 2, 512);
    raw_fill(&s->out, 1, 512);
    trickle(r, &s->out);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.replied), 1 + SN_E_TIMEOUT);
}

static void slow_first_fpdu(struct stage *s) {
    struct rig *r = s->r;
    struct profile p = foreign_passive;
    p.rtr = RTR_NONE;
    rig_open(r, &p);
    raw_write(&s->out, true, FAKE_REMOTE, RIG_BASE, hostile_payload(), 1000);
    hostile_placed(s, 0, hostile_payload(), 1000); /* as far as it came */
    hostile_touched(s, 0, 1000);
    trickle(r, &s->out);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.established));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.established), 1 + SN_E_TIMEOUT);
}

/* A Send that nobody receives ends after the grace time, with the Terminate for it. */
static void no_receive(struct stage *s) {
    struct rig *r = s->r;
    struct raw_bytes want = { 0 };
    uint64_t t0 = os_now_ns();
    rig_open(r, s->b ? &foreign_active : &foreign_passive);
    raw_send(&s->out, RDMAP_SEND, true, 0, 1, 0, hostile_payload(), s->a);
    rig_put(r, &s->out);
    CHECK_STR(raw_result_text(rig_read_fpdu(r)), "ok");
    raw_terminate_about(&want, 1, 2, 2, 1, s->out.data);
    CHECK_EQ(r->fpdu_len, want.len);
    CHECK_BYTES(r->fpdu, want.data, want.len);
    raw_free(&want);
    CHECK(ms_since(t0) >= HOSTILE_RNR_MS - 10);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + SN_E_WIRE);
    CHECK_EQ(os_u32_load_seqcst(&r->qp.recv_count), 0);
}

/* The same as the very first FPDU: nothing may be said of it before all of it is here and good. The
 * grace time ends with a Terminate if it is; b: 0 it is, 1 its CRC is bad, 2 half of it never
 * comes. a: the revision of the peer, which is not peer-to-peer with 1. */
static void first_without_receive(struct stage *s) {
    struct rig *r = s->r;
    struct raw_bytes want = { 0 };
    struct profile p = foreign_passive;
    uint64_t t0 = os_now_ns();
    p.rtr = RTR_NONE;
    if (s->a == 1) p = (struct profile){ .flags = RAW_C, .rev = 1, .rtr = RTR_NONE };
    rig_open(r, &p);
    raw_send(&s->out, RDMAP_SEND, true, 0, 1, 0, hostile_payload(), 100);
    if (s->b == 1) s->out.data[s->out.len - 1] ^= 1;
    if (s->b == 2) s->out.len = 60;
    rig_put(r, &s->out);
    if (s->b == 0) {
        CHECK_STR(raw_result_text(rig_read_fpdu(r)), "ok");
        raw_terminate_about(&want, 1, 2, 2, 1, s->out.data);
        CHECK_EQ(r->fpdu_len, want.len);
        CHECK_BYTES(r->fpdu, want.data, want.len);
        raw_free(&want);
    }
    CHECK_STR(raw_result_text(raw_read_end(&r->peer)), "end of stream");
    CHECK(ms_since(t0) >= HOSTILE_RNR_MS - 10);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.established));
    bool heard = s->b == 0 || s->a == 1; /* revision 1 is established by our reply */
    sn_status st = s->b == 2 ? SN_E_TIMEOUT : s->b == 1 && !heard ? SN_E_REFUSED : SN_E_WIRE;
    CHECK_EQ(os_u32_load_seqcst(&r->qp.established), 1 + (heard ? SN_OK : st));
    if (heard) WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    if (heard) CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + st);
    CHECK_EQ(os_u32_load_seqcst(&r->qp.recv_count), 0);
}

/* A peer that hears our Terminate and never closes does not keep its connection. */
static void never_closes(struct stage *s) {
    struct rig *r = s->r;
    rig_open(r, &foreign_passive);
    raw_write(&s->out, true, 0xDEAD, 0, hostile_payload(), 4);
    rig_put(r, &s->out);
    CHECK_EQ(rig_read_fpdu(r), RAW_OK);
    CHECK_EQ(raw_read_end(&r->peer), RAW_EOF);
    uint64_t t0 = os_now_ns();
    while (ms_since(t0) < 15000 && tp_engine_watch_count(r->eng) != r->base_watches)
        pace_ms(20);
    CHECK_EQ(tp_engine_watch_count(r->eng), r->base_watches);
    CHECK(ms_since(t0) >= HOSTILE_LINGER_MS - 100);
}

static void flood_after_terminate(struct stage *s) {
    struct rig *r = s->r;
    rig_open(r, &foreign_passive);
    raw_write(&s->out, true, 0xDEAD, 0, hostile_payload(), 4);
    for (int i = 0; i < 100; i++)
        raw_write(&s->out, true, FAKE_REMOTE, RIG_BASE, hostile_payload(), 60000);
    (void)raw_transmit(&r->peer, s->out.data, s->out.len, NULL);
    CHECK_STR(raw_result_text(rig_read_fpdu(r)), "ok");
    CHECK_EQ(r->fpdu[3], 0x47);
    CHECK_EQ(raw_read_end(&r->peer), RAW_EOF);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    rig_check_memory(r);
}

/* ---- floods ---- */

/* Sends that nobody receives, for ever: some octets are kept, the rest stays with the sender. */
static void flood_without_receive(struct stage *s) {
    struct rig *r = s->r;
    struct profile p = foreign_passive;
    size_t total = 0, sent;
    enum raw_result res = RAW_OK;
    p.patient = true;
    rig_open(r, &p);
    for (uint32_t i = 1; i <= 200; i++)
        raw_send(&s->out, RDMAP_SEND, true, 0, i, 0, hostile_payload(), 60000);
    os_sock_set_buffers(r->peer.s, 65536, 65536);
    uint64_t t0 = os_now_ns();
    while (res == RAW_OK && total < s->out.len && ms_since(t0) < 3 * RAW_WAIT_MS) {
        struct os_iov iov = { s->out.data + total, s->out.len - total };
        sent = 0;
        sn_status st = os_sock_writev(r->peer.s, &iov, 1, &sent);
        total += sent;
        if (st == SN_E_AGAIN && ms_since(t0) > 500) break; /* full, and it stays so */
        if (st == SN_E_AGAIN) pace_ms(20);
        CHECK(st == SN_OK || st == SN_E_AGAIN);
    }
    CHECK(total < s->out.len);
    struct iw_conn *c = iw_conn_of(r->qp.conn);
    os_lock_enter(&c->rx_lock);
    size_t held = c->rx.held_len;
    os_lock_leave(&c->rx_lock);
    CHECK(held <= IW_HELD_MAX + 16384);
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 0);
    if (s->a == 1) { /* it is still in order: everything arrives once there are receives */
        fake_post_receive(&r->qp, rig_at(IN1), 60000);
        fake_post_receive(&r->qp, rig_at(IN1), 60000);
        WAIT_FOR(os_u32_load_seqcst(&r->qp.recv_count) == 2);
        hostile_placed(s, IN1, hostile_payload(), 60000);
        rig_check_memory(r);
    }
    raw_reset(&r->peer);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + SN_E_PEER_GONE);
}

/* One more Read than we serve at a time, all in one piece. */
static void reads_beyond_ird(struct stage *s) {
    struct rig *r = s->r;
    struct raw_bytes want = { 0 };
    rig_open(r, s->b ? &foreign_active : &foreign_passive);
    for (uint32_t i = 1; i <= s->a; i++)
        raw_read_request(&s->out, i, 1, 0, 8, FAKE_REMOTE, RIG_BASE);
    rig_put(r, &s->out);
    enum raw_result res;
    do
        res = rig_read_fpdu(r);
    while (res == RAW_OK && r->fpdu[3] == 0x42);
    CHECK_STR(raw_result_text(res), "ok");
    raw_terminate_about(&want, 1, 2, 2, 1, s->out.data + 4 * 52);
    CHECK_EQ(r->fpdu_len, want.len);
    /* Of very many some may have been answered before the others came. */
    CHECK_BYTES(r->fpdu, want.data, s->a == 5 ? want.len : 26 + 10);
    raw_free(&want);
    CHECK_EQ(raw_read_end(&r->peer), RAW_EOF);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + SN_E_WIRE);
}

/* Reads whose responses nobody collects: what waits for the socket is the region itself. */
static void responses_never_collected(struct stage *s) {
    struct rig *r = s->r;
    uint32_t msn = 1;
    rig_open(r, &foreign_passive);
    os_sock_set_buffers(r->peer.s, 0, 4096);
    uint64_t t0 = os_now_ns();
    while (!os_u32_load_seqcst(&r->qp.disconnected) && msn < 2000 && ms_since(t0) < RAW_WAIT_MS) {
        struct raw_bytes one = { 0 };
        raw_read_request(&one, msn++, 1, 0, RIG_MEM, FAKE_REMOTE, RIG_BASE);
        enum raw_result res = raw_transmit(&r->peer, one.data, one.len, NULL);
        raw_free(&one);
        if (res != RAW_OK) break;
        pace_ms(1);
    }
    /* In the end the Reads in waiting are more than the depth allows. */
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + SN_E_WIRE);
    raw_reset(&r->peer);
}

/* The processor time that this process uses while nobody has anything to do. */
static void expect_rest(const char *what) {
    long long before = test_cpu_us();
    pace_ms(400);
    long long us = test_cpu_us() - before;
    if (us > 40000) FAIL("%lld us of 400 ms were spent on %s", us, what);
}

static bool reads_wait(struct iw_conn *c) {
    os_lock_enter(&c->tx_lock);
    bool wait = c->tx.irq_count != 0;
    os_lock_leave(&c->tx_lock);
    return wait;
}

/* A peer that takes nothing of what it asked for and says goodbye: the rest of an FPDU must still
 * leave, and its socket stays readable for ever. */
static void goodbye_with_a_full_socket(struct stage *s) {
    struct rig *r = s->r;
    rig_open(r, &foreign_passive);
    os_sock_set_buffers(r->peer.s, 0, 4096);
    for (uint32_t i = 1; i <= 4; i++)
        raw_read_request(&s->out, i, 1, 0, RIG_MEM, FAKE_REMOTE, RIG_BASE);
    struct iw_conn *c = iw_conn_of(r->qp.conn);
    for (uint32_t msn = 5; os_u32_load_relaxed(&c->tx.blocked) == 0 && msn < 500; msn++) {
        rig_put(r, &s->out);
        s->out.len = 0;
        pace_ms(20);
        WAIT_FOR(os_u32_load_relaxed(&c->tx.blocked) != 0 || !reads_wait(c));
        raw_read_request(&s->out, msn, 1, 0, RIG_MEM, FAKE_REMOTE, RIG_BASE);
    }
    CHECK(os_u32_load_relaxed(&c->tx.blocked) != 0);
    /* Under Wine a write is taken whole or not at all: then there is no rest. */
    os_lock_enter(&c->tx_lock);
    enum iw_state then = c->tx.part.active ? IW_LINGER : IW_DEAD;
    os_lock_leave(&c->tx_lock);
    CHECK(then == IW_LINGER || TEST_SLOW);
    raw_fin(&r->peer);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(iw_state(c), then);
    expect_rest("a peer that said goodbye");
    CHECK_EQ(iw_state(c), then);
    raw_reset(&r->peer);
}

/* ---- many ---- */

/* The end of a connection on which nobody speaks; also if it never came about. */
static bool has_ended(const struct raw_peer *p) {
    uint8_t octet;
    struct os_iov iov = { &octet, 1 };
    size_t got;
    return p->s == OS_SOCK_NONE || os_sock_readv(p->s, &iov, 1, &got) != SN_E_AGAIN;
}

static size_t count_ended(const struct raw_peer *peers, size_t count) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += has_ended(&peers[i]);
    return n;
}

/* Connections above the limit may be reset before connect() is done with them. */
static void connect_many(struct rig *r, struct raw_peer *peers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        enum raw_result res = raw_connect(&peers[i], &r->port->addr);
        if (res != RAW_OK && (res != RAW_RESET || i < 4096))
            FAIL("connection %zu: %s", i, raw_result_text(res));
        free(peers[i].in); /* nothing is read but the end */
        peers[i].in = NULL;
    }
}

static void half_open(struct stage *s) {
    struct rig *r = s->r;
    const size_t count = TEST_ROUNDS(s->a), most = 4096;
    if (!test_allow_handles((unsigned)(2 * count + 200)))
        SKIP("this process may not open %zu descriptors", 2 * count + 200);
    struct raw_peer *peers = calloc(count, sizeof *peers);
    CHECK(peers);
    connect_many(r, peers, count);
    /* Those above the limit meet a reset; the others time out in the end. */
    WAIT_FOR(count_ended(peers, count) + most >= count);
    CHECK(tp_engine_watch_count(r->eng) <= r->base_watches + most);
    uint64_t t0 = os_now_ns();
    while (count_ended(peers, count) != count && ms_since(t0) < 20000)
        pace_ms(50);
    CHECK_EQ(count_ended(peers, count), count);
    CHECK_EQ(tp_engine_watch_count(r->eng), r->base_watches);
    for (size_t i = 0; i < count; i++)
        os_sock_close(peers[i].s, true);
    free(peers);
}

/* No descriptor is left for a connection: it waits, nothing spins, and then it is served. */
static void descriptors_run_out(struct stage *s) {
    struct rig *r = s->r;
    struct raw_peer *p = &r->peer;
    struct raw_peer first, second;
    CHECK_EQ(raw_connect(&first, &r->port->addr), RAW_OK);
    CHECK_EQ(raw_connect(&second, &r->port->addr), RAW_OK);
    WAIT_FOR(tp_engine_watch_count(r->eng) == r->base_watches + 2);
    *p = first;
    os_sock s3;
    CHECK_EQ(os_sock_tcp(4, &s3), SN_OK);
    if (!test_forbid_handles(true)) {
        os_sock_close(s3, true);
        raw_close(&second);
        SKIP("there is no limit to be reached");
    }
    sn_status st = os_sock_connect(s3, &r->port->addr);
    long long before = test_cpu_us();
    pace_ms(500);
    long long cpu_ms = (test_cpu_us() - before) / 1000;
    CHECK(test_forbid_handles(false));
    raw_close(&second);
    CHECK(st == SN_PENDING || st == SN_OK);
    /* Served within the pause: its request is answered by the time-out that everybody gets. */
    WAIT_FOR(os_sock_connect_result(s3) != SN_E_AGAIN);
    struct raw_bytes request = { 0 };
    raw_start2(&request, false, 0, RAW_A | 8, RAW_RTR_WRITE | 8, NULL, 0);
    struct os_iov iov = { request.data, request.len };
    size_t put;
    CHECK_EQ(os_sock_writev(s3, &iov, 1, &put), SN_OK);
    raw_free(&request);
    rig_await_request(r);
    os_sock_close(s3, false);
    if (cpu_ms > 250) FAIL("%lld of 500 ms were spent on a socket nobody can accept", cpu_ms);
}

/* ---- between the reply and complete() ---- */

static void answer(struct stage *s, uint8_t rev) {
    struct rig *r = s->r;
    rig_start_connect(r, 4, 4, false);
    rig_read_start(r);
    if (rev == 2)
        raw_start2(&s->out, true, 0, RAW_A | 8, RAW_RTR_WRITE | 8, NULL, 0);
    else
        raw_start(&s->out, true, RAW_C, 1, 0);
}

static void replied_then_end(struct stage *s) {
    struct rig *r = s->r;
    answer(s, 2);
    rig_put(r, &s->out);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied) == 1 + SN_OK);
    if (s->a)
        raw_reset(&r->peer);
    else
        raw_fin(&r->peer);
    WAIT_FOR(iw_state(iw_conn_of(r->qp.conn)) != IW_ANSWERED);
    CHECK_EQ(iw_ops.complete(r->qp.conn, 4, 4), SN_E_ABORTED);
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 0);
}

static void replied_then_flood(struct stage *s) {
    struct rig *r = s->r;
    size_t total = 0;
    answer(s, 2);
    rig_put(r, &s->out);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied) == 1 + SN_OK);
    s->out.len = 0;
    for (int i = 0; i < 200; i++)
        raw_write(&s->out, true, 0xDEAD, 0, hostile_payload(), 60000);
    uint64_t t0 = os_now_ns();
    while (total < s->out.len && ms_since(t0) < 500) {
        struct os_iov iov = { s->out.data + total, s->out.len - total };
        size_t put = 0;
        if (os_sock_writev(r->peer.s, &iov, 1, &put) == SN_E_AGAIN) pace_ms(20);
        total += put;
    }
    CHECK(total < s->out.len);
    struct iw_conn *c = iw_conn_of(r->qp.conn);
    os_lock_enter(&c->rx_lock);
    size_t held = c->rx.held_len;
    os_lock_leave(&c->rx_lock);
    CHECK(held <= IW_HELD_MAX);
    (void)!iw_ops.complete(r->qp.conn, 4, 4);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + SN_E_WIRE);
    rig_check_memory(r);
    raw_reset(&r->peer);
}

/* As much as we keep, and a reset before the application looks: that is found out, at rest. */
static void replied_flooded_and_reset(struct stage *s) {
    struct rig *r = s->r;
    answer(s, 2);
    rig_put(r, &s->out);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied) == 1 + SN_OK);
    s->out.len = 0;
    for (int i = 0; i < 2; i++)
        raw_write(&s->out, true, FAKE_REMOTE, RIG_BASE, hostile_payload(), 40000);
    rig_put(r, &s->out);
    struct iw_conn *c = iw_conn_of(r->qp.conn);
    size_t held = 0;
    WAIT_FOR((os_lock_enter(&c->rx_lock), held = c->rx.held_len, os_lock_leave(&c->rx_lock),
              held >= IW_HELD_MAX));
    raw_reset(&r->peer);
    WAIT_FOR(iw_state(c) == IW_DEAD);
    expect_rest("a peer that is gone");
    CHECK_EQ(iw_ops.complete(r->qp.conn, 4, 4), SN_E_ABORTED);
}

/* ---- Terminates and what they are about ---- */

/* A peer that is SoftND but reports nothing has a Read, a Write and a Send of ours when it says
 * that something was wrong. b is the opcode quoted, a the layer, type and code. The request it is
 * about fails, the others are nobody's fault. */
static void terminate_quotes(struct stage *s) {
    static const uint8_t ops[3] = { RDMAP_READ_REQUEST, RDMAP_WRITE, RDMAP_SEND };
    struct rig *r = s->r;
    uint8_t fpdus[3][64] = { { 0 } };
    rig_open(r, &softnd_passive);
    fake_post(&r->qp, TP_OP_READ, 0, rig_at(SINK), 100, 0x4000, 77);
    /* The Send or Write that is not the oldest is never blamed: it may not have been seen yet. */
    bool send_first = s->b == RDMAP_SEND;
    fake_post(&r->qp, send_first ? TP_OP_SEND : TP_OP_WRITE, 0, rig_at(0), 10, 0x4000, 77);
    fake_post(&r->qp, send_first ? TP_OP_WRITE : TP_OP_SEND, 0, rig_at(0), 10, 0x4000, 77);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(rig_read_fpdu(r), RAW_OK);
        for (int k = 0; k < 3; k++)
            if ((r->fpdu[3] & 15) == ops[k]) memcpy(fpdus[k], r->fpdu, r->fpdu_len);
    }
    struct raw_bytes response = { 0 };
    raw_response(&response, true, 1, 0, "x", 1);
    const uint8_t *quoted = s->b == RDMAP_READ_RESPONSE  ? response.data
                            : s->b == RDMAP_READ_REQUEST ? fpdus[0]
                            : s->b == RDMAP_WRITE        ? fpdus[1]
                                                         : fpdus[2];
    raw_terminate_about(&s->out, (uint8_t)(s->a >> 16), (uint8_t)(s->a >> 8), (uint8_t)s->a, 1,
                        quoted);
    rig_put(r, &s->out);
    raw_free(&response);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + SN_E_REMOTE);
    CHECK_EQ(os_u32_load_seqcst(&r->qp.done_count), s->b == RDMAP_READ_RESPONSE ? 0 : 1);
    sn_status want = s->a == 0x010202   ? SN_E_TIMEOUT
                     : s->a == 0x010100 ? SN_E_RIGHTS
                     : s->a == 0x000102 ? SN_E_RIGHTS
                                        : SN_E_REMOTE;
    if (s->b == RDMAP_READ_REQUEST) CHECK(r->qp.sq[0].done);
    if (s->b == RDMAP_READ_REQUEST)
        CHECK_EQ(r->qp.sq[0].status, s->a == 0x010202 ? SN_E_REMOTE : want);
    if (s->b == RDMAP_WRITE || s->b == RDMAP_SEND) CHECK(r->qp.sq[1].done);
    if (s->b == RDMAP_WRITE || s->b == RDMAP_SEND) CHECK_EQ(r->qp.sq[1].status, want);
}

/* A Read and a Send with Invalidate are out; the Terminate quotes the Send. The Read is not to
 * blame. a: layer, type, code. */
static void terminate_about_the_send(struct stage *s) {
    struct rig *r = s->r;
    uint8_t send[64];
    rig_open(r, &foreign_passive);
    fake_post(&r->qp, TP_OP_READ, 0, rig_at(SINK), 100, 0x4000, 77);
    CHECK_EQ(rig_read_fpdu(r), RAW_OK);
    fake_post(&r->qp, TP_OP_SEND, TP_F_INVALIDATE, rig_at(0), 10, 0, 0x99);
    CHECK_EQ(rig_read_fpdu(r), RAW_OK);
    CHECK_EQ(r->fpdu[3], 0x44);
    memcpy(send, r->fpdu, r->fpdu_len);
    raw_terminate_about(&s->out, (uint8_t)(s->a >> 16), (uint8_t)(s->a >> 8), (uint8_t)s->a,
                        s->b ? 1 : 0, send);
    rig_put(r, &s->out);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + SN_E_REMOTE);
    CHECK_EQ(os_u32_load_seqcst(&r->qp.done_count), 1); /* the Send, when TCP had it */
    CHECK(r->qp.sq[1].done);
    CHECK_EQ(r->qp.sq[1].status, SN_OK);
    CHECK(!r->qp.sq[0].done);
}

/* The RTR of a SoftND of another version: it is not ours, and our Sends do complete. */
static void first_mark_of_another_version(struct stage *s) {
    struct rig *r = s->r;
    struct profile p = foreign_passive;
    p.rtr = RTR_NONE;
    rig_open(r, &p);
    raw_write(&s->out, true, IW_MARK_STAG, s->b, NULL, 0);
    rig_put(r, &s->out);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.established));
    fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0), 10, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.done_count) == 1);
    CHECK_EQ(rig_read_fpdu(r), RAW_OK);
    CHECK_EQ(r->fpdu[3], 0x43);
}

/* ---- private data ---- */

static void private_data(struct stage *s) {
    struct rig *r = s->r;
    uint16_t len = (uint16_t)s->a;
    struct tp_conn_info info;
    if (s->b == 1) {
        raw_start(&s->out, false, RAW_C, 1, len);
        raw_put(&s->out, hostile_payload(), len);
    } else {
        raw_start2(&s->out, false, 0, RAW_A | 8, RAW_RTR_WRITE | 8, hostile_payload(), len);
    }
    rig_connect_raw(r, 0);
    rig_put(r, &s->out);
    rig_await_request(r);
    iw_ops.info(r->qp.conn, &info);
    CHECK_EQ(info.pd_len, len);
    CHECK_BYTES(info.pd, hostile_payload(), len);
}

#define CUSTOM(n, p, a, b) ROW(n, W_CUSTOM, p, a, b, ALIVE)

const struct stream custom_streams[] = {
    CUSTOM(loris_says_nothing, silent_request, 0, 0),
    CUSTOM(loris_trickles_a_request, slow_request, 0, 0),
    CUSTOM(loris_trickles_a_reply, slow_reply, 0, 0),
    CUSTOM(loris_trickles_the_first_fpdu, slow_first_fpdu, 0, 0),
    CUSTOM(send_without_receive, no_receive, 10, 0),
    CUSTOM(empty_send_without_receive_to_an_initiator, no_receive, 0, 1),
    CUSTOM(first_send_without_receive, first_without_receive, 2, 0),
    CUSTOM(first_send_without_receive_of_revision_1, first_without_receive, 1, 0),
    CUSTOM(first_send_without_receive_and_bad_crc, first_without_receive, 2, 1),
    CUSTOM(first_send_without_receive_never_whole, first_without_receive, 1, 2),
    CUSTOM(goodbye_with_a_full_socket, goodbye_with_a_full_socket, 0, 0),
    CUSTOM(peer_that_never_closes, never_closes, 0, 0),
    CUSTOM(flood_behind_the_terminate, flood_after_terminate, 0, 0),
    CUSTOM(flood_of_sends_without_receive, flood_without_receive, 0, 0),
    CUSTOM(flood_of_sends_goes_on_with_receives, flood_without_receive, 1, 0),
    CUSTOM(reads_beyond_ird_in_one_piece, reads_beyond_ird, 5, 0),
    CUSTOM(reads_far_beyond_ird_to_an_initiator, reads_beyond_ird, 500, 1),
    CUSTOM(responses_that_nobody_collects, responses_never_collected, 0, 0),
    CUSTOM(half_open_5000, half_open, 5000, 0),
    CUSTOM(no_descriptor_is_left, descriptors_run_out, 0, 0),
    CUSTOM(replied_then_fin, replied_then_end, 0, 0),
    CUSTOM(replied_then_rst, replied_then_end, 1, 0),
    CUSTOM(replied_then_flood, replied_then_flood, 0, 0),
    CUSTOM(replied_then_flood_and_rst, replied_flooded_and_reset, 0, 0),
    CUSTOM(terminate_quotes_a_read, terminate_quotes, 0x000102, RDMAP_READ_REQUEST),
    CUSTOM(terminate_of_buffers_quotes_a_read, terminate_quotes, 0x010202, RDMAP_READ_REQUEST),
    CUSTOM(terminate_quotes_a_write, terminate_quotes, 0x010100, RDMAP_WRITE),
    CUSTOM(terminate_quotes_a_send, terminate_quotes, 0x010202, RDMAP_SEND),
    CUSTOM(terminate_quotes_a_response, terminate_quotes, 0x010100, RDMAP_READ_RESPONSE),
    CUSTOM(terminate_about_a_send_not_the_read, terminate_about_the_send, 0x000109, 1),
    CUSTOM(terminate_about_a_send_without_header, terminate_about_the_send, 0x000109, 0),
    CUSTOM(terminate_of_rights_about_a_send, terminate_about_the_send, 0x000102, 1),
    CUSTOM(first_mark_of_version_2, first_mark_of_another_version, 0, 0x5344000200000000),
    CUSTOM(first_mark_without_magic, first_mark_of_another_version, 0, 0x0123456789ABCDEF),
    CUSTOM(private_data_0, private_data, 0, 2),
    CUSTOM(private_data_1, private_data, 1, 2),
    CUSTOM(private_data_508, private_data, 508, 2),
    CUSTOM(private_data_512_of_revision_1, private_data, 512, 1),
};
const size_t custom_stream_count = SN_ARRAY_LEN(custom_streams);
