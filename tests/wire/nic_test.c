/* SPDX-License-Identifier: MIT
 *
 * Peers as adapters and other software make them: what each demands in start-up and afterwards, and
 * that every operation moves the right octets with it.
 */
#include "rig.h"
#include "hostile.h"
#include "support/portable.h"

static struct rig rig;

static void next_fpdu(struct rig *r) {
    enum raw_result res = rig_read_fpdu(r);
    if (res != RAW_OK) FAIL("no FPDU: %s", raw_result_text(res));
}

static uint64_t be(const uint8_t *p, unsigned octets) {
    uint64_t v = 0;
    for (unsigned i = 0; i < octets; i++)
        v = v << 8 | p[i];
    return v;
}

/* ---- every operation, both ways ---- */

struct talk {
    uint32_t msn_in, read_msn_in;   /* the peer's next */
    uint32_t msn_out, read_msn_out; /* ours, as the peer expects them */
    uint32_t largest;               /* ULPDU of ours, 0: any */
    bool stag_0_kills;
};

/* Collects one message of ours and returns its payload's size. */
static uint32_t collect(struct rig *r, struct talk *t, uint8_t opcode, uint32_t stag, uint64_t to,
                        const uint8_t *want) {
    uint32_t got = 0;
    bool last = false;
    while (!last) {
        next_fpdu(r);
        bool tagged = r->fpdu[2] & 0x80;
        uint32_t head = tagged ? 16 : 20, n = (uint32_t)be(r->fpdu, 2) - (head - 2);
        CHECK_EQ(r->fpdu[3], 0x40 | opcode);
        if (t->largest) CHECK(be(r->fpdu, 2) <= t->largest);
        if (tagged) {
            CHECK_EQ(be(r->fpdu + 4, 4), stag);
            CHECK_EQ(be(r->fpdu + 8, 8), to + got);
            if (t->stag_0_kills) CHECK(stag != 0);
        } else {
            CHECK_EQ(be(r->fpdu + 4, 4), stag);
            CHECK_EQ(be(r->fpdu + 12, 4), t->msn_out);
            CHECK_EQ(be(r->fpdu + 16, 4), got);
        }
        CHECK_BYTES(r->fpdu + head, want + got, n);
        got += n;
        last = r->fpdu[2] & 0x40;
    }
    if (opcode >= RDMAP_SEND) t->msn_out++;
    return got;
}

static void ours_to_the_peer(struct rig *r, struct talk *t) {
    struct raw_bytes b = { 0 };
    uint32_t done = os_u32_load_seqcst(&r->qp.done_count);
    fake_post(&r->qp, TP_OP_SEND, 0, rig_at(1), 5, 0, 0);
    CHECK_EQ(collect(r, t, RDMAP_SEND, 0, 0, r->mem + 1), 5);
    fake_post(&r->qp, TP_OP_SEND, TP_F_SOLICIT | TP_F_INVALIDATE, rig_at(2), 100001, 0, 0xAB00);
    CHECK_EQ(collect(r, t, RDMAP_SEND_SE_INV, 0xAB00, 0, r->mem + 2), 100001);
    fake_post(&r->qp, TP_OP_WRITE, 0, rig_at(3), 70003, 0x10000, 0xCD00);
    CHECK_EQ(collect(r, t, RDMAP_WRITE, 0xCD00, 0x10000, r->mem + 3), 70003);
    fake_post(&r->qp, TP_OP_WRITE, 0, NULL, 0, 0, 0); /* STag 0 is the application's business */
    next_fpdu(r);
    CHECK_EQ(be(r->fpdu + 2, 2), 0xC140);
    if (t->stag_0_kills) CHECK(be(r->fpdu + 4, 4) != 0);
    fake_post(&r->qp, TP_OP_READ, 0, rig_at(0x20000), 3000, 0x7000, 0xEF00);
    next_fpdu(r);
    CHECK_EQ(r->fpdu_len, 52);
    CHECK_EQ(be(r->fpdu + 12, 4), t->read_msn_out++);
    uint32_t sink = (uint32_t)be(r->fpdu + 20, 4);
    uint64_t to = be(r->fpdu + 24, 8);
    CHECK(sink != 0);
    raw_response(&b, false, sink, to, hostile_payload(), 1400);
    raw_response(&b, false, sink, to + 1400, hostile_payload() + 1400, 1400);
    raw_response(&b, true, sink, to + 2800, hostile_payload() + 2800, 200);
    rig_put(r, &b);
    raw_free(&b);
    memcpy(rig_model(r) + 0x20000, hostile_payload(), 3000);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.done_count) == done + 5);
    for (uint32_t i = 0; i < 5; i++)
        CHECK_EQ(r->qp.sq[(done + i) % FAKE_DEPTH].status, SN_OK);
    rig_check_memory(r);
}

static void theirs_to_us(struct rig *r, struct talk *t, uint32_t segment) {
    struct raw_bytes b = { 0 };
    uint32_t before = os_u32_load_seqcst(&r->qp.recv_count);
    struct fake_receive *in = fake_post_receive(&r->qp, rig_at(0x28000), 20000);
    for (uint32_t off = 0; off < 20000; off += segment) {
        uint32_t n = SN_MIN(segment, 20000 - off);
        raw_send(&b, RDMAP_SEND_SE, off + n == 20000, 0, t->msn_in, off, hostile_payload() + off,
                 n);
    }
    t->msn_in++;
    memcpy(rig_model(r) + 0x28000, hostile_payload(), 20000);
    for (uint32_t off = 0; off < 20000; off += segment) {
        uint32_t n = SN_MIN(segment, 20000 - off);
        raw_write(&b, off + n == 20000, FAKE_REMOTE, RIG_BASE + 0x30000 + off,
                  hostile_payload() + off, n);
    }
    memcpy(rig_model(r) + 0x30000, hostile_payload(), 20000);
    raw_read_request(&b, t->read_msn_in++, 0x1234, 0x5678, 4000, FAKE_REMOTE, RIG_BASE + 0x30000);
    rig_put(r, &b);
    raw_free(&b);
    CHECK_EQ(collect(r, t, RDMAP_READ_RESPONSE, 0x1234, 0x5678, hostile_payload()), 4000);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.recv_count) == before + 1);
    CHECK_EQ(in->status, SN_OK);
    CHECK_EQ(in->bytes, 20000);
    CHECK_EQ(in->flags, TP_RECV_SOLICITED);
    rig_check_memory(r);
}

static void end_in_order(struct rig *r) {
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 0);
    raw_fin(&r->peer);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + SN_OK);
    rig_done(r);
}

static void begin(void) {
    rig_init(&rig);
    hostile_fresh();
}

static uint32_t word(const struct rig *r, size_t off) {
    return (uint32_t)be(r->start + off, 2);
}

/* The whole of our start-up frame is there with the first read: one write, one segment. */
static void read_frame_in_one_piece(struct rig *r) {
    uint8_t buf[1024];
    struct os_iov iov = { buf, sizeof buf };
    size_t got = 0;
    WAIT_FOR(os_sock_readv(r->peer.s, &iov, 1, &got) == SN_OK);
    CHECK(got >= 20);
    CHECK_EQ(got, 20 + be(buf + 18, 2)); /* nor is there an octet more */
    CHECK(got <= MPA_START_MAX);
    memcpy(r->start, buf, got);
    r->start_len = got;
}

/* ---- cxgb4 ---- */

/* Checks of our reply as that driver makes them: 256 octets, no octet behind, A and its own kind
 * of RTR and no other. */
static void cxgb4_connects_to_us(void) {
    struct rig *r = &rig;
    struct raw_bytes b = { 0 };
    struct talk t = { 1, 2, 1, 1, 0, true };
    begin();
    raw_start2(&b, false, 0, RAW_A | 32, RAW_RTR_READ | 32, "pd", 2);
    rig_connect_raw(r, 0);
    rig_put(r, &b);
    rig_await_request(r);
    CHECK_EQ(rig_accept(r, 8, 8, false), SN_OK);
    read_frame_in_one_piece(r);
    CHECK_EQ(r->start[16] & ~RAW_C, RAW_S);
    CHECK(r->start[16] & RAW_C);
    CHECK_EQ(r->start[17], 2);
    CHECK(be(r->start + 18, 2) <= 256);
    CHECK_EQ(word(r, 20) & 0xC000, RAW_A);
    CHECK_EQ(word(r, 22) & 0xC000, RAW_RTR_READ);
    CHECK((word(r, 20) & 0x3FFF) >= 1);  /* room for the RTR */
    CHECK((word(r, 22) & 0x3FFF) <= 32); /* at most the IRD it offers */
    b.len = 0;
    raw_read_request(&b, 1, 1, 0, 0, 1, 0);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.established) == 1 + SN_OK);
    next_fpdu(r);
    CHECK_EQ(r->fpdu_len, 20);
    CHECK_EQ(be(r->fpdu + 4, 4), 1);
    ours_to_the_peer(r, &t);
    theirs_to_us(r, &t, 1440);
    end_in_order(r);
    rig_fini(r);
}

/* It answers with D whatever was offered, also when we want no Reads at all. */
static void we_connect_to_cxgb4(void) {
    static const uint32_t ours[] = { 8, 0 };
    struct rig *r = &rig;
    begin();
    for (int i = 0; i < 2; i++) {
        struct raw_bytes b = { 0 };
        struct talk t = { 1, 1, 1, 2, 0, true };
        rig_start_connect(r, 8, ours[i], false);
        read_frame_in_one_piece(r);
        CHECK_EQ(word(r, 20) & RAW_A, RAW_A);
        CHECK(word(r, 22) & RAW_RTR_READ); /* its kind must be on offer */
        CHECK(r->start_len <= 20 + 256);
        raw_start2(&b, true, 0, RAW_A | 8, RAW_RTR_READ | 8, NULL, 0);
        rig_put(r, &b);
        WAIT_FOR(os_u32_load_seqcst(&r->qp.replied) == 1 + SN_OK);
        CHECK_EQ(iw_ops.complete(r->qp.conn, 8, ours[i]), SN_OK);
        next_fpdu(r); /* the RTR: a Read of nothing, no STag 0 anywhere */
        CHECK_EQ(r->fpdu_len, 52);
        CHECK_EQ(be(r->fpdu + 12, 4), 1);
        CHECK(be(r->fpdu + 20, 4) != 0 && be(r->fpdu + 36, 4) != 0);
        CHECK_EQ(be(r->fpdu + 32, 4), 0);
        b.len = 0;
        raw_response(&b, true, (uint32_t)be(r->fpdu + 20, 4), 0, NULL, 0);
        rig_put(r, &b);
        raw_free(&b);
        if (ours[i]) ours_to_the_peer(r, &t);
        theirs_to_us(r, &t, 1440);
        end_in_order(r);
    }
    rig_fini(r);
}

/* Revision 1 with its peer-to-peer option: a Read of nothing that nobody agreed on comes first. */
static void cxgb4_of_revision_1_connects_to_us(void) {
    struct rig *r = &rig;
    struct profile p = { .flags = RAW_C, .rev = 1, .rtr = RTR_READ, .ird = 8, .ord = 8 };
    struct talk t = { 1, 2, 1, 1, 0, true };
    begin();
    rig_open(r, &p);
    CHECK_EQ(r->start[17], 1);
    ours_to_the_peer(r, &t);
    theirs_to_us(r, &t, 1440);
    end_in_order(r);
    rig_fini(r);
}

/* Its Terminates number MPA errors as type 3 and quote nothing. */
static void terminates_of_adapters_are_understood(void) {
    static const uint8_t codes[][3] = { { 2, 3, 2 },   { 2, 3, 3 }, { 2, 3, 7 }, { 2, 3, 6 },
                                        { 0, 2, 255 }, { 1, 2, 5 }, { 1, 0, 0 } };
    struct rig *r = &rig;
    begin();
    for (size_t i = 0; i < SN_ARRAY_LEN(codes); i++) {
        struct raw_bytes b = { 0 };
        rig_open(r, &foreign_active);
        raw_terminate(&b, codes[i][0], codes[i][1], codes[i][2]);
        rig_put(r, &b);
        raw_free(&b);
        WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
        CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + SN_E_REMOTE);
        rig_done(r);
    }
    rig_fini(r);
}

/* ---- irdma ---- */

static void irdma_connects_to_us(void) {
    struct rig *r = &rig;
    struct raw_bytes b = { 0 };
    struct talk t = { 1, 1, 1, 1, 0, false };
    begin();
    raw_start2(&b, false, 0, RAW_A | 64, RAW_RTR_WRITE | RAW_RTR_READ | 64, "pd", 2);
    rig_connect_raw(r, 0);
    rig_put(r, &b);
    rig_await_request(r);
    CHECK_EQ(rig_accept(r, 8, 8, false), SN_OK);
    read_frame_in_one_piece(r);
    CHECK(r->start[16] & RAW_C);
    CHECK_EQ(word(r, 20) & RAW_A, RAW_A); /* or it resets */
    uint32_t kind = word(r, 22) & 0xC000;
    CHECK(kind == RAW_RTR_WRITE || kind == RAW_RTR_READ);
    CHECK((word(r, 20) & 0x3FFF) >= 1);
    b.len = 0;
    if (kind == RAW_RTR_WRITE)
        raw_write(&b, true, 1, 0, NULL, 0);
    else
        raw_read_request(&b, t.read_msn_in++, 1, 0, 0, 1, 0);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.established) == 1 + SN_OK);
    ours_to_the_peer(r, &t);
    theirs_to_us(r, &t, 1440);
    end_in_order(r);
    rig_fini(r);
}

/* It demands A, one segment, and takes D of C and D. */
static void we_connect_to_irdma(void) {
    struct rig *r = &rig;
    struct raw_bytes b = { 0 };
    struct talk t = { 1, 1, 1, 2, 0, false };
    begin();
    rig_start_connect(r, 8, 8, false);
    read_frame_in_one_piece(r);
    CHECK_EQ(r->start[16], RAW_C | RAW_S);
    CHECK_EQ(word(r, 20) & 0xC000, RAW_A);
    CHECK_EQ(word(r, 22) & 0xC000, RAW_RTR_WRITE | RAW_RTR_READ);
    raw_start2(&b, true, 0, RAW_A | 64, RAW_RTR_READ | 8, NULL, 0);
    rig_put(r, &b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied) == 1 + SN_OK);
    CHECK_EQ(iw_ops.complete(r->qp.conn, 8, 8), SN_OK);
    next_fpdu(r);
    CHECK_EQ(be(r->fpdu + 2, 2), 0x4141);
    b.len = 0;
    raw_response(&b, true, (uint32_t)be(r->fpdu + 20, 4), 0, NULL, 0);
    rig_put(r, &b);
    raw_free(&b);
    ours_to_the_peer(r, &t);
    theirs_to_us(r, &t, 1440);
    end_in_order(r);
    rig_fini(r);
}

/* A reset in answer to revision 2, then revision 1 is what it speaks. */
static void fallback_to_revision_1(bool reset) {
    struct rig *r = &rig;
    struct raw_bytes b = { 0 };
    struct talk t = { 1, 1, 1, 1, 0, false };
    begin();
    rig_start_connect(r, 8, 8, false);
    read_frame_in_one_piece(r);
    CHECK_EQ(r->start[17], 2);
    if (reset)
        raw_reset(&r->peer);
    else
        raw_close(&r->peer);
    CHECK_EQ(raw_accept(r->raw_listener, &r->peer), RAW_OK);
    read_frame_in_one_piece(r);
    CHECK_EQ(r->start[16], RAW_C);
    CHECK_EQ(r->start[17], 1);
    CHECK_BYTES(r->start + 20, "active", 6);
    raw_start(&b, true, RAW_C, 1, 0);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied) == 1 + SN_OK);
    CHECK_EQ(iw_ops.complete(r->qp.conn, 8, 8), SN_OK);
    ours_to_the_peer(r, &t);
    theirs_to_us(r, &t, 1440);
    end_in_order(r);
    rig_fini(r);
}
static void revision_1_only_peer_that_resets_is_reached(void) {
    fallback_to_revision_1(true);
}
static void revision_1_only_peer_that_closes_is_reached(void) {
    fallback_to_revision_1(false);
}

/* ---- siw ---- */

/* Its client: no CRC wanted, no peer to peer, one Read each way; it speaks first. */
static void siw_connects_to_us(void) {
    struct rig *r = &rig;
    struct raw_bytes b = { 0 };
    struct talk t = { 1, 1, 1, 1, 0, false };
    begin();
    raw_start(&b, false, RAW_S, 2, 4);
    raw_be(&b, 1, 2);
    raw_be(&b, 1, 2);
    rig_connect_raw(r, 0);
    rig_put(r, &b);
    rig_await_request(r);
    CHECK_EQ(rig_accept(r, 8, 8, false), SN_OK);
    read_frame_in_one_piece(r); /* an octet more and it gives up */
    CHECK_EQ(r->start[16], RAW_C | RAW_S);
    CHECK_EQ(r->start_len, 24);
    CHECK_EQ(word(r, 20) & 0xC000, 0);
    CHECK_EQ(word(r, 22), 1);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.established) == 1 + SN_OK);
    raw_free(&b);
    theirs_to_us(r, &t, 65474 - 18); /* its segments on loopback exceed what MPA lets us send */
    ours_to_the_peer(r, &t);
    end_in_order(r);
    rig_fini(r);
}

/* Its server starts the reply from the request's flags, and takes C if there is a choice. */
static void we_connect_to_siw(void) {
    struct rig *r = &rig;
    struct raw_bytes b = { 0 };
    struct talk t = { 1, 1, 1, 1, 0, false };
    begin();
    rig_start_connect(r, 8, 8, false);
    read_frame_in_one_piece(r);
    CHECK_EQ(word(r, 22) & RAW_RTR_WRITE, RAW_RTR_WRITE);
    raw_start(&b, true, r->start[16], r->start[17], 4);
    raw_be(&b, RAW_A | 8, 2);
    raw_be(&b, RAW_RTR_WRITE | 8, 2);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied) == 1 + SN_OK);
    CHECK_EQ(iw_ops.complete(r->qp.conn, 8, 8), SN_OK);
    CHECK_EQ(raw_read_fpdu(&r->peer, r->fpdu, &r->fpdu_len), RAW_OK);
    CHECK_EQ(r->fpdu_len, 20); /* a Write of nothing; whose STag it does not look at */
    CHECK_EQ(be(r->fpdu + 2, 2), 0xC140);
    ours_to_the_peer(r, &t);
    theirs_to_us(r, &t, 65474 - 18);
    end_in_order(r);
    rig_fini(r);
}

/* Its Terminates have nibbles and flags the other way round. */
static void terminate_of_siw_is_understood(void) {
    struct rig *r = &rig;
    struct raw_bytes b = { 0 };
    begin();
    rig_open(r, &softnd_passive); /* so that the Send waits for a report */
    fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0), 5, 0, 0);
    next_fpdu(r);
    raw_fpdu_begin(&b, 42);
    raw_untagged(&b, 0x41, 0x47, 0, 2, 1, 0);
    raw_be(&b, 0x21020300, 4); /* untagged DDP, no buffer, with header */
    raw_be(&b, 5, 2);          /* the payload's length alone */
    raw_put(&b, r->fpdu + 2, 18);
    raw_fpdu_end(&b, 0, RAW_CRC_GOOD);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + SN_E_REMOTE);
    CHECK_EQ(os_u32_load_seqcst(&r->qp.done_count), 1);
    CHECK_EQ(r->qp.sq[0].status, SN_E_TIMEOUT); /* nobody had a receive for it */
    rig_done(r);
    rig_fini(r);
}

/* ---- segments, markers, CRC ---- */

static bool limit_segments(os_sock s, int octets) {
    if (test_limit_segments((intptr_t)s, octets)) return true;
    os_sock_close(s, false);
    return false;
}

/* An adapter wants each FPDU inside one TCP segment. */
static void fpdus_fit_the_segments_of_the_peer(void) {
    static const int sizes[] = { 1448, 536, 1460, 8948, 256 };
    struct rig *r = &rig;
    begin();
    for (size_t i = 0; i < 2 * SN_ARRAY_LEN(sizes); i++) {
        struct talk t = { 1, 1, 1, 1, 0, true };
        struct raw_bytes b = { 0 };
        int mss = sizes[i / 2];
        if (i % 2) { /* we connect */
            os_sock keep = r->raw_listener;
            struct os_addr keep_addr = r->raw_addr;
            CHECK_EQ(os_sock_tcp(4, &r->raw_listener), SN_OK);
            CHECK(limit_segments(r->raw_listener, mss));
            r->raw_addr.port = 0;
            CHECK_EQ(os_sock_bind(r->raw_listener, &r->raw_addr, OS_BIND_UNIQUE), SN_OK);
            CHECK_EQ(os_sock_listen(r->raw_listener, 0), SN_OK);
            CHECK_EQ(os_sock_local(r->raw_listener, &r->raw_addr), SN_OK);
            rig_open(r, &foreign_active);
            os_sock_close(r->raw_listener, false);
            r->raw_listener = keep;
            r->raw_addr = keep_addr;
            t.read_msn_out = 2;
        } else {
            os_sock s;
            CHECK_EQ(os_sock_tcp(4, &s), SN_OK);
            if (!limit_segments(s, mss)) SKIP("the system sets no size of segments");
            CHECK_EQ(raw_connect_with(&r->peer, s, &r->port->addr), RAW_OK);
            raw_start2(&b, false, 0, RAW_A | 8, RAW_RTR_WRITE | 8, NULL, 0);
            rig_put(r, &b);
            rig_await_request(r);
            CHECK_EQ(rig_accept(r, 8, 8, false), SN_OK);
            rig_read_start(r);
            b.len = 0;
            raw_write(&b, true, 1, 0, NULL, 0);
            rig_put(r, &b);
            WAIT_FOR(os_u32_load_seqcst(&r->qp.established) == 1 + SN_OK);
        }
        raw_free(&b);
        uint32_t real = os_sock_mss(iw_conn_of(r->qp.conn)->watch.sock);
        CHECK(real <= (uint32_t)mss);
        t.largest = SN_MAX(mpa_mulpdu(real, false), 128u);
        if (real >= 140) CHECK(mpa_fpdu_size(t.largest) <= real);
        ours_to_the_peer(r, &t);
        theirs_to_us(r, &t, 200);
        end_in_order(r);
    }
    rig_fini(r);
}

static void crc_and_markers_in_every_mixture(void) {
    struct rig *r = &rig;
    begin();
    for (unsigned mix = 0; mix < 16; mix++) {
        bool active = mix & 1, markers = mix & 2, their_crc = mix & 4, our_crc = mix & 8;
        struct profile p = active ? foreign_active : foreign_passive;
        struct talk t = { 1, 1, 1, active ? 2 : 1, 0, false };
        p.flags = (uint8_t)(RAW_S | (markers ? RAW_M : 0) | (their_crc ? RAW_C : 0));
        if (!our_crc) test_setenv("SOFTND_CRC", "off");
        rig_open(r, &p);
        test_unsetenv("SOFTND_CRC");
        CHECK_EQ(r->peer.crc, their_crc || our_crc);
        ours_to_the_peer(r, &t);
        theirs_to_us(r, &t, 1440);
        CHECK_EQ(r->peer.marker_count != 0, markers);
        end_in_order(r);
    }
    rig_fini(r);
}

TEST_MAIN(TEST(cxgb4_connects_to_us), TEST(we_connect_to_cxgb4),
          TEST(cxgb4_of_revision_1_connects_to_us), TEST(terminates_of_adapters_are_understood),
          TEST(irdma_connects_to_us), TEST(we_connect_to_irdma),
          TEST(revision_1_only_peer_that_resets_is_reached),
          TEST(revision_1_only_peer_that_closes_is_reached), TEST(siw_connects_to_us),
          TEST(we_connect_to_siw), TEST(terminate_of_siw_is_understood),
          TEST(fpdus_fit_the_segments_of_the_peer), TEST(crc_and_markers_in_every_mixture))
