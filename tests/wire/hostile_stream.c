/* SPDX-License-Identifier: MIT
 * Streams that strike after start-up: the first FPDU of an initiator, and open connections.
 */
#include "hostile.h"

enum { IN1 = 0x1000, IN2 = 0x2000, IN_LEN = 256, SINK = 0x8000, TARGET = 0x10000 };

static uint64_t at(uint64_t off) {
    return RIG_BASE + off;
}

static void two_receives(struct stage *s) {
    hostile_receive(s, IN1, IN_LEN);
    hostile_receive(s, IN2, IN_LEN);
}

static void good_send(struct stage *s, size_t off, uint32_t len) {
    raw_send(&s->out, RDMAP_SEND, true, 0, s->msn++, 0, hostile_payload(), len);
    hostile_placed(s, off, hostile_payload(), len);
    s->takes++;
}

/* ---- sizes ---- */

/* A ULPDU of the first `a` octets of a Send's header. */
static void short_send(struct stage *s) {
    struct raw_bytes h = { 0 };
    raw_untagged(&h, 0x41, 0x43, 0, 0, 1, 0);
    raw_fpdu(&s->out, h.data, s->a, RAW_CRC_GOOD);
    raw_free(&h);
}

static void short_write(struct stage *s) {
    struct raw_bytes h = { 0 };
    raw_tagged(&h, 0xC1, 0x40, FAKE_REMOTE, at(TARGET));
    raw_fpdu(&s->out, h.data, s->a, RAW_CRC_GOOD);
    raw_free(&h);
}

/* A header that announces 65535 octets, of which `a` come. */
static void huge_send(struct stage *s) {
    hostile_receive(s, IN1, (uint32_t)s->b);
    hostile_touched(s, IN1, s->b);
    raw_fpdu_begin(&s->out, 65535);
    raw_untagged(&s->out, 0x41, 0x43, 0, 0, 1, 0);
    raw_put(&s->out, hostile_payload(), s->a);
    if (s->a == 65535 - 18) raw_fpdu_end(&s->out, 0, RAW_CRC_GOOD);
}

static void largest_send(struct stage *s) {
    hostile_receive(s, TARGET, 65517);
    raw_send(&s->out, RDMAP_SEND, true, 0, s->msn++, 0, hostile_payload(), 65517);
    hostile_placed(s, TARGET, hostile_payload(), 65517);
    s->takes++;
}

static void huge_write(struct stage *s) {
    raw_write(&s->out, true, FAKE_REMOTE, at(s->b), hostile_payload(), 65521);
    if (s->def->ending == E_ALIVE) hostile_placed(s, s->b, hostile_payload(), 65521);
}

/* ---- control octets: a is DDP's (high) and RDMAP's ---- */

static void controls(struct stage *s) {
    uint8_t ddp = (uint8_t)(s->a >> 8), rdmap = (uint8_t)s->a;
    raw_fpdu_begin(&s->out, (uint16_t)((ddp & 0x80 ? 14 : 18) + s->b));
    if (ddp & 0x80)
        raw_tagged(&s->out, ddp, rdmap, FAKE_REMOTE, at(TARGET));
    else
        raw_untagged(&s->out, ddp, rdmap, 0, 0, 1, 0);
    raw_fill(&s->out, 0x77, s->b);
    raw_fpdu_end(&s->out, 0, RAW_CRC_GOOD);
}

/* An Atomic Request (a = 0), Atomic Response (1), Immediate (2), Immediate with event (3), as RFC
 * 7306 wants them. */
static void rfc7306(struct stage *s) {
    static const uint8_t op[] = { 0x4A, 0x4B, 0x48, 0x49 }, qn[] = { 1, 3, 0, 0 },
                         body[] = { 52, 12, 8, 8 };
    raw_fpdu_begin(&s->out, (uint16_t)(18 + body[s->a]));
    raw_untagged(&s->out, 0x41, op[s->a], 0, qn[s->a], 1, 0);
    raw_fill(&s->out, 0, body[s->a]);
    raw_fpdu_end(&s->out, 0, RAW_CRC_GOOD);
    two_receives(s);
}

/* ---- untagged: a MSN, b QN and MO ---- */

static void send_header(struct stage *s) {
    two_receives(s);
    raw_fpdu_begin(&s->out, 22);
    raw_untagged(&s->out, 0x41, 0x43, 0, (uint32_t)(s->b >> 32), s->a, (uint32_t)s->b);
    raw_fill(&s->out, 0x77, 4);
    raw_fpdu_end(&s->out, 0, RAW_CRC_GOOD);
}

static void send_header_after_a_good_one(struct stage *s) {
    two_receives(s);
    good_send(s, IN1, 100);
    raw_fpdu_begin(&s->out, 22);
    raw_untagged(&s->out, 0x41, 0x43, 0, (uint32_t)(s->b >> 32), s->a, (uint32_t)s->b);
    raw_fill(&s->out, 0x77, 4);
    raw_fpdu_end(&s->out, 0, RAW_CRC_GOOD);
}

static void read_header(struct stage *s) {
    raw_fpdu_begin(&s->out, 46);
    raw_untagged(&s->out, 0x41, 0x41, 0, (uint32_t)(s->b >> 32), s->a, (uint32_t)s->b);
    raw_be(&s->out, 1, 4);
    raw_be(&s->out, 0, 8);
    raw_be(&s->out, 4, 4);
    raw_be(&s->out, FAKE_REMOTE, 4);
    raw_be(&s->out, at(TARGET), 8);
    raw_fpdu_end(&s->out, 0, RAW_CRC_GOOD);
}

/* A first segment of 100 octets, then one at MO b of a octets. */
static void second_segment(struct stage *s) {
    two_receives(s);
    hostile_touched(s, IN1, IN_LEN);
    raw_send(&s->out, RDMAP_SEND, false, 0, 1, 0, hostile_payload(), 100);
    raw_send(&s->out, RDMAP_SEND, true, 0, 1, (uint32_t)s->b, hostile_payload() + 100, s->a);
}

static void send_of(struct stage *s) {
    two_receives(s);
    hostile_touched(s, IN1, IN_LEN);
    raw_send(&s->out, RDMAP_SEND, s->b, 0, 1, 0, hostile_payload(), s->a);
}

/* 1 octet segments up to one more than the receive holds. */
static void drip_until_too_long(struct stage *s) {
    two_receives(s);
    hostile_touched(s, IN1, IN_LEN);
    for (uint32_t i = 0; i <= IN_LEN; i++)
        raw_send(&s->out, RDMAP_SEND, false, 0, 1, i, hostile_payload(), 1);
}

static void empty_segments(struct stage *s) {
    two_receives(s);
    for (uint32_t i = 0; i < 1000; i++)
        raw_send(&s->out, RDMAP_SEND, false, 0, 1, 0, NULL, 0);
    good_send(s, IN1, 50);
    raw_send(&s->out, RDMAP_SEND, true, 0, s->msn++, 0, NULL, 0);
    s->takes++;
}

static void send_into_nothing(struct stage *s) { /* a receive of no octets */
    hostile_receive(s, IN1, 0);
    raw_send(&s->out, RDMAP_SEND, true, 0, 1, 0, hostile_payload(), s->a);
}

/* ---- tagged ---- */

/* Write of 16 octets: a STag, b TO. */
static void write_16(struct stage *s) {
    raw_write(&s->out, true, s->a, s->b, hostile_payload(), 16);
}

static void write_0(struct stage *s) {
    raw_write(&s->out, true, s->a, s->b, NULL, 0);
}

/* Segments of 16 that walk out of the region. */
static void write_walks_out(struct stage *s) {
    raw_write(&s->out, false, FAKE_REMOTE, at(RIG_MEM - 32), hostile_payload(), 16);
    raw_write(&s->out, false, FAKE_REMOTE, at(RIG_MEM - 16), hostile_payload() + 16, 16);
    raw_write(&s->out, true, FAKE_REMOTE, at(RIG_MEM), hostile_payload() + 32, 16);
    hostile_placed(s, RIG_MEM - 32, hostile_payload(), 32);
}

static void write_changes_stag(struct stage *s) {
    raw_write(&s->out, false, FAKE_REMOTE, at(TARGET), hostile_payload(), 16);
    raw_write(&s->out, true, s->a, at(TARGET + 16), hostile_payload(), 16);
    hostile_placed(s, TARGET, hostile_payload(), 16);
}

static void write_good(struct stage *s) {
    raw_write(&s->out, false, FAKE_REMOTE, at(0), hostile_payload(), 16);
    raw_write(&s->out, true, FAKE_REMOTE, at(RIG_MEM - 100), hostile_payload(), 100);
    hostile_placed(s, 0, hostile_payload(), 16);
    hostile_placed(s, RIG_MEM - 100, hostile_payload(), 100);
}

static void unasked_response(struct stage *s) {
    raw_response(&s->out, true, FAKE_LOCAL, at(SINK), hostile_payload(), s->a);
}

/* ---- inbound Reads ---- */

/* Size in a, STag in the top of b, offset of the source in the rest (signed, 48 bits). */
#define READ(stag, off) ((uint64_t)(stag) << 48 | ((uint64_t)(off)&0xFFFFFFFFFFFFull))
static void read_from(struct stage *s) {
    int64_t off = (int64_t)(s->b << 16) >> 16;
    raw_read_request(&s->out, 1, 1, 0, s->a, (uint32_t)(s->b >> 48), at((uint64_t)off));
}

static void read_wraps(struct stage *s) {
    raw_read_request(&s->out, 1, 1, 0, s->a, FAKE_REMOTE, s->b);
}

/* A Read Request with a body of `a` octets. */
static void read_body(struct stage *s) {
    raw_fpdu_begin(&s->out, (uint16_t)(18 + s->a));
    raw_untagged(&s->out, s->b ? 0x01 : 0x41, 0x41, 0, 1, 1, 0);
    raw_fill(&s->out, 0, s->a);
    raw_fpdu_end(&s->out, 0, RAW_CRC_GOOD);
}

static void read_zero_with_any_stag(struct stage *s) {
    raw_read_request(&s->out, 1, 0xFFFFFFFF, UINT64_MAX, 0, 0xDEADBEEF, UINT64_MAX);
}

static void invalidate(struct stage *s) {
    two_receives(s);
    raw_send(&s->out, s->b ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV, true, s->a, 1, 0,
             hostile_payload(), 8);
    hostile_placed(s, IN1, hostile_payload(), 8);
    if (s->def->ending == E_ALIVE) {
        s->msn++;
        s->takes++;
        hostile_receive(s, IN2, IN_LEN);
        raw_send(&s->out, RDMAP_SEND, true, 0, s->msn++, 0, NULL, 0);
        s->takes++;
        raw_send(&s->out, RDMAP_SEND, true, 0, s->msn++, 0, NULL, 0);
        s->takes++;
    }
}

/* ---- Terminates ---- */

static void terminate(struct stage *s) {
    raw_terminate(&s->out, (uint8_t)(s->a >> 16), (uint8_t)(s->a >> 8), (uint8_t)s->a);
}

/* a: body octets; b: DDP control, QN, MSN, MO as octets. */
static void odd_terminate(struct stage *s) {
    raw_fpdu_begin(&s->out, (uint16_t)(18 + s->a));
    raw_untagged(&s->out, (uint8_t)(s->b >> 24), 0x47, 0, (uint8_t)(s->b >> 16),
                 (uint8_t)(s->b >> 8), (uint8_t)s->b);
    raw_fill(&s->out, 0, s->a);
    raw_fpdu_end(&s->out, 0, RAW_CRC_GOOD);
}

/* Octets 20..23 are a; b octets of 0xFF follow. */
static void terminate_flags(struct stage *s) {
    raw_fpdu_begin(&s->out, (uint16_t)(22 + s->b));
    raw_untagged(&s->out, 0x41, 0x47, 0, 2, 1, 0);
    raw_be(&s->out, s->a, 4);
    raw_fill(&s->out, 0xFF, s->b);
    raw_fpdu_end(&s->out, 0, RAW_CRC_GOOD);
}

static void terminate_in_a_message(struct stage *s) {
    two_receives(s);
    hostile_touched(s, IN1, IN_LEN);
    raw_send(&s->out, RDMAP_SEND, false, 0, 1, 0, hostile_payload(), 100);
    raw_terminate(&s->out, 0, 0, 0);
}

static void terminate_and_more(struct stage *s) {
    raw_terminate(&s->out, 1, 2, 2);
    raw_write(&s->out, true, FAKE_REMOTE, at(TARGET), hostile_payload(), 100);
    raw_terminate(&s->out, 1, 2, 2);
}

/* ---- CRC and PAD ---- */

/* A good Send of 5, then a spoilt one: octet a is changed after the CRC was made. */
static void spoilt(struct stage *s) {
    two_receives(s);
    good_send(s, IN1, 5);
    raw_send(&s->out, RDMAP_SEND, true, 0, 2, 0, hostile_payload(), 5);
    s->out.data[s->out.fpdu_at + s->a] ^= (uint8_t)s->b;
    hostile_touched(s, IN2, IN_LEN);
}

static void spoilt_and_faulty(struct stage *s) { /* the CRC decides */
    raw_fpdu_begin(&s->out, 22);
    raw_untagged(&s->out, (uint8_t)(s->a >> 8), (uint8_t)s->a, 0, 9, 9, 9);
    raw_fill(&s->out, 0, 4);
    raw_fpdu_end(&s->out, 0, RAW_CRC_BAD);
}

static void spoilt_write(struct stage *s) {
    raw_write(&s->out, true, FAKE_REMOTE, at(TARGET), hostile_payload(), s->a);
    s->out.data[s->out.len - 1] ^= 0x80;
    hostile_touched(s, TARGET, s->a);
}

static void zero_crc(struct stage *s) {
    two_receives(s);
    raw_fpdu_begin(&s->out, 18);
    raw_untagged(&s->out, 0x41, 0x43, 0, 0, 1, 0);
    raw_fpdu_end(&s->out, 0, RAW_CRC_ZERO);
}

static void odd_pad(struct stage *s) {
    two_receives(s);
    for (int i = 0; i < 2; i++) {
        raw_fpdu_begin(&s->out, (uint16_t)(18 + s->a));
        raw_untagged(&s->out, 0x41, 0x43, 0, 0, s->msn++, 0);
        raw_put(&s->out, hostile_payload(), s->a);
        raw_fpdu_end(&s->out, 0xFF, RAW_CRC_GOOD);
        hostile_placed(s, i ? IN2 : IN1, hostile_payload(), s->a);
        s->takes++;
    }
}

static void reserved_bits(struct stage *s) {
    two_receives(s);
    for (int i = 0; i < 2; i++) {
        raw_fpdu_begin(&s->out, 20);
        raw_untagged(&s->out, 0x41 | 0x3C, 0x43 | 0x30, 0xFFFFFFFF, 0, s->msn++, 0);
        raw_put(&s->out, hostile_payload(), 2);
        raw_fpdu_end(&s->out, 0, RAW_CRC_GOOD);
        hostile_placed(s, i ? IN2 : IN1, hostile_payload(), 2);
        s->takes++;
    }
}

/* ---- ends: the first `a` octets of a Send of 101 ---- */

static void cut_send(struct stage *s) {
    hostile_receive(s, IN1, IN_LEN);
    hostile_touched(s, IN1, IN_LEN);
    raw_send(&s->out, RDMAP_SEND, true, 0, 1, 0, hostile_payload(), 101);
    s->out.len = s->a;
}

static void cut_message(struct stage *s) { /* whole FPDUs, the message goes on */
    hostile_receive(s, IN1, IN_LEN);
    hostile_touched(s, IN1, IN_LEN);
    raw_send(&s->out, RDMAP_SEND, false, 0, 1, 0, hostile_payload(), 100);
}

/* ---- garbage ---- */

static void noise(struct stage *s) {
    uint32_t x = s->a;
    for (uint64_t i = 0; i < s->b; i++) {
        x = x * 1664525u + 1013904223u;
        raw_be(&s->out, x >> 24, 1);
    }
}

static void request_again(struct stage *s) {
    raw_start2(&s->out, s->a, 0, RAW_A | 8, RAW_RTR_WRITE | 8, NULL, 0);
}

/* ---- interleavings ---- */

static void write_inside_a_send(struct stage *s) {
    hostile_receive(s, IN1, IN_LEN);
    raw_send(&s->out, RDMAP_SEND, false, 0, s->msn, 0, hostile_payload(), 10);
    raw_write(&s->out, false, FAKE_REMOTE, at(TARGET), hostile_payload(), 50);
    raw_send(&s->out, RDMAP_SEND, false, 0, s->msn, 10, hostile_payload() + 10, 10);
    raw_read_request(&s->out, 1, 1, 0, 8, FAKE_REMOTE, at(TARGET));
    raw_write(&s->out, true, FAKE_REMOTE, at(TARGET + 50), hostile_payload() + 50, 50);
    raw_send(&s->out, RDMAP_SEND, true, 0, s->msn++, 20, hostile_payload() + 20, 10);
    hostile_placed(s, IN1, hostile_payload(), 30);
    hostile_placed(s, TARGET, hostile_payload(), 100);
    s->takes++;
}

static void send_inside_a_send(struct stage *s) {
    two_receives(s);
    hostile_touched(s, IN1, IN_LEN);
    raw_send(&s->out, RDMAP_SEND, false, 0, 1, 0, hostile_payload(), 10);
    raw_send(&s->out, RDMAP_SEND, true, 0, s->a, 0, hostile_payload(), 10);
}

static void send_changes_its_kind(struct stage *s) { /* what the last segment says counts */
    two_receives(s);
    raw_send(&s->out, RDMAP_SEND, false, 0, s->msn, 0, hostile_payload(), 10);
    raw_send(&s->out, RDMAP_SEND_SE_INV, true, FAKE_REMOTE, s->msn++, 10, hostile_payload() + 10,
             10);
    good_send(s, IN2, 3);
    hostile_placed(s, IN1, hostile_payload(), 20);
    s->takes++;
}

static void immediate_inside_a_send(struct stage *s) {
    two_receives(s);
    hostile_touched(s, IN1, IN_LEN);
    raw_send(&s->out, RDMAP_SEND, false, 0, 1, 0, hostile_payload(), 10);
    raw_fpdu_begin(&s->out, 26);
    raw_untagged(&s->out, 0x41, 0x48, 0, 0, 1, 0);
    raw_fill(&s->out, 1, 8);
    raw_fpdu_end(&s->out, 0, RAW_CRC_GOOD);
}

/* ---- marks: a is the count, b the upper half of TO, 0 for ours ---- */

static void mark(struct stage *s) {
    uint64_t upper = s->b ? s->b : IW_MARK_VERSION;
    raw_write(&s->out, true, IW_MARK_STAG, upper | s->a, NULL, 0);
}

static void mark_twice(struct stage *s) {
    mark(s);
    mark(s);
}

static void mark_flood(struct stage *s) {
    for (uint32_t i = 0; i < s->a; i++)
        raw_write(&s->out, true, IW_MARK_STAG, IW_MARK_VERSION, NULL, 0);
}

static void mark_with_payload(struct stage *s) {
    raw_write(&s->out, true, IW_MARK_STAG, IW_MARK_VERSION, hostile_payload(), s->a);
}

static void mark_not_last(struct stage *s) {
    raw_write(&s->out, false, IW_MARK_STAG, IW_MARK_VERSION | s->a, NULL, 0);
}

/* One Send of ours is out; the report speaks of `a`. */
static void mark_for_a_send(struct stage *s) {
    struct rig *r = s->r;
    fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0), 10, 0, 0);
    CHECK_EQ(rig_read_fpdu(r), RAW_OK);
    mark(s);
}

static void mark_goes_back(struct stage *s) {
    struct rig *r = s->r;
    fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0), 10, 0, 0);
    CHECK_EQ(rig_read_fpdu(r), RAW_OK);
    raw_write(&s->out, true, IW_MARK_STAG, IW_MARK_VERSION | 1, NULL, 0);
    raw_write(&s->out, true, IW_MARK_STAG, IW_MARK_VERSION | 0, NULL, 0);
    raw_write(&s->out, true, IW_MARK_STAG, IW_MARK_VERSION | 0x80000000u, NULL, 0);
}

static void write_flood(struct stage *s) {
    for (uint32_t i = 0; i < s->a; i++)
        raw_write(&s->out, true, 0, i, NULL, 0);
}

/* ---- Read Responses to a Read of ours of 100 octets ---- */

static void post_read(struct stage *s) {
    struct rig *r = s->r;
    fake_post(&r->qp, TP_OP_READ, 0, rig_at(SINK), 100, 0x4000, 77);
    CHECK_EQ(rig_read_fpdu(r), RAW_OK);
    CHECK_EQ(r->fpdu_len, 52);
    hostile_touched(s, SINK, 100);
}

/* One segment of `a` octets; b: STag and offset from the sink (signed), last in bit 63. */
#define RESP(last, stag, off) ((uint64_t)(last) << 63 | (uint64_t)(stag) << 32 | (uint32_t)(off))
static void put_response(struct stage *s, uint32_t len, uint64_t b) {
    raw_response(&s->out, b >> 63, (uint32_t)(b >> 32) & 0x7FFFFFFF,
                 at(SINK) + (uint64_t)(int64_t)(int32_t)b, hostile_payload(), len);
}

static void response(struct stage *s) {
    post_read(s);
    put_response(s, s->a, s->b);
}

static void response_then(struct stage *s) { /* 60 octets that are right, then this one */
    post_read(s);
    put_response(s, 60, RESP(0, FAKE_LOCAL, 0));
    put_response(s, s->a, s->b);
}

static void response_twice(struct stage *s) {
    post_read(s);
    put_response(s, 100, RESP(1, FAKE_LOCAL, 0));
    put_response(s, 100, RESP(1, FAKE_LOCAL, 0));
}

static void response_to_the_rtr_with_payload(struct stage *s) {
    raw_response(&s->out, true, 1, 0, hostile_payload(), 4);
}

static void responses_interleaved(struct stage *s) {
    struct rig *r = s->r;
    post_read(s);
    fake_post(&r->qp, TP_OP_READ, 0, rig_at(SINK + 0x1000), 100, 0x4000, 77);
    CHECK_EQ(rig_read_fpdu(r), RAW_OK);
    put_response(s, 60, RESP(0, FAKE_LOCAL, 0));
    put_response(s, 60, RESP(0, FAKE_LOCAL, 0x1000));
}

static void response_beside_a_send(struct stage *s) { /* which may be */
    post_read(s);
    hostile_receive(s, IN1, IN_LEN);
    put_response(s, 60, RESP(0, FAKE_LOCAL, 0));
    raw_send(&s->out, RDMAP_SEND, false, 0, s->msn, 0, hostile_payload(), 10);
    raw_response(&s->out, true, FAKE_LOCAL, at(SINK + 60), hostile_payload() + 60, 40);
    raw_send(&s->out, RDMAP_SEND, true, 0, s->msn++, 10, hostile_payload() + 10, 10);
    hostile_placed(s, IN1, hostile_payload(), 20);
    s->takes++;
}

static void terminate_for_our_read(struct stage *s) {
    post_read(s);
    raw_terminate_about(&s->out, (uint8_t)(s->a >> 16), (uint8_t)(s->a >> 8), (uint8_t)s->a,
                        s->b ? 2 : 0, s->r->fpdu);
}

/* ---- the tables ---- */

#define FIRST(n, p, a, b, ...) ROW(n, W_FIRST, p, a, b, __VA_ARGS__)
#define OPEN(n, p, a, b, ...) ROW(n, W_OPEN, p, a, b, __VA_ARGS__)
#define SHORT TERM(2, 0, 3, 0)
#define OPCODE TERM(0, 2, 6, 1)
#define GONE SILENT(SN_E_PEER_GONE)
#define PEER_SAYS(l, t, c)                                                                         \
    OPEN(terminate_##l##_##t##_##c, terminate, 0x##l << 16 | 0x##t << 8 | 0x##c, 0,                \
         SILENT(SN_E_REMOTE))
#define QN_MO(qn, mo) ((uint64_t)(qn) << 32 | (mo))
#define FAILED_RECEIVE .recv_done = 1, .recv_status = SN_E_MSG_TOO_LONG
#define ONE_RECEIVE .recv_done = 1, .recv_status = SN_OK

const struct stream stream_streams[] = {
    /* The first FPDU decides whether the responder may speak. */
    FIRST(first_crc_bad, zero_crc, 0, 0, SILENT(SN_E_REFUSED)),
    FIRST(first_fin, cut_send, 0, 0, SILENT(SN_E_REFUSED), .after = AFTER_FIN),
    FIRST(first_cut_in_length_fin, cut_send, 1, 0, SILENT(SN_E_ABORTED), .after = AFTER_FIN),
    FIRST(first_cut_in_header_fin, cut_send, 13, 0, SILENT(SN_E_ABORTED), .after = AFTER_FIN),
    FIRST(first_cut_in_payload_fin, cut_send, 60, 0, SILENT(SN_E_ABORTED), .after = AFTER_FIN),
    FIRST(first_rst, cut_send, 0, 0, SILENT(SN_E_ABORTED), .after = AFTER_RST),
    FIRST(first_cut_in_payload_rst, cut_send, 60, 0, SILENT(SN_E_ABORTED), .after = AFTER_RST),
    FIRST(first_request_again, request_again, 0, 0, SILENT(SN_E_ABORTED), .after = AFTER_FIN),
    FIRST(first_noise, noise, 9, 70000, SILENT(SN_E_REFUSED)),
    FIRST(first_empty_ulpdu, short_send, 0, 0, SHORT),
    FIRST(first_short_ulpdu, short_send, 17, 0, SHORT),
    FIRST(first_opcode_f, controls, 0x414F, 0, OPCODE),
    FIRST(first_response_nobody_asked_for, unasked_response, 0, 0, OPCODE),
    FIRST(first_send_msn_2, send_header, 2, 0, TERM(1, 2, 3, 1)),
    FIRST(first_write_without_right, write_16, FAKE_NO_RIGHT, RIG_BASE, TERM(1, 1, 0, 1)),
    FIRST(first_terminate, terminate, 0x020007, 0, SILENT(SN_E_REMOTE)),
    FIRST(first_mark_of_absurd_count, mark, 5, 0, TERM(0, 2, 7, 0)),

    OPEN(send_ulpdu_00, short_send, 0, 0, SHORT),
    OPEN(send_ulpdu_01, short_send, 1, 0, SHORT),
    OPEN(send_ulpdu_02, short_send, 2, 0, SHORT),
    OPEN(send_ulpdu_03, short_send, 3, 0, SHORT),
    OPEN(send_ulpdu_04, short_send, 4, 0, SHORT),
    OPEN(send_ulpdu_05, short_send, 5, 0, SHORT),
    OPEN(send_ulpdu_06, short_send, 6, 0, SHORT),
    OPEN(send_ulpdu_07, short_send, 7, 0, SHORT),
    OPEN(send_ulpdu_08, short_send, 8, 0, SHORT),
    OPEN(send_ulpdu_09, short_send, 9, 0, SHORT),
    OPEN(send_ulpdu_10, short_send, 10, 0, SHORT),
    OPEN(send_ulpdu_11, short_send, 11, 0, SHORT),
    OPEN(send_ulpdu_12, short_send, 12, 0, SHORT),
    OPEN(send_ulpdu_13, short_send, 13, 0, SHORT),
    OPEN(send_ulpdu_14, short_send, 14, 0, SHORT),
    OPEN(send_ulpdu_15, short_send, 15, 0, SHORT),
    OPEN(send_ulpdu_16, short_send, 16, 0, SHORT),
    OPEN(send_ulpdu_17, short_send, 17, 0, SHORT),
    OPEN(write_ulpdu_01, short_write, 1, 0, SHORT),
    OPEN(write_ulpdu_02, short_write, 2, 0, SHORT),
    OPEN(write_ulpdu_05, short_write, 5, 0, SHORT),
    OPEN(write_ulpdu_06, short_write, 6, 0, SHORT),
    OPEN(write_ulpdu_12, short_write, 12, 0, SHORT),
    OPEN(write_ulpdu_13, short_write, 13, 0, SHORT),
    OPEN(send_65535_into_256, huge_send, 65517, 256, TERM(1, 2, 5, 1), FAILED_RECEIVE),
    OPEN(send_65535_cut_after_the_header, huge_send, 0, 65536, GONE, .after = AFTER_FIN),
    OPEN(send_65535_cut_in_the_payload, huge_send, 40000, 65536, GONE, .after = AFTER_RST),
    OPEN(send_65535_is_taken, largest_send, 0, 0, ALIVE),
    OPEN(write_65535_is_taken, huge_write, 0, 100, ALIVE),
    OPEN(write_65535_over_the_end, huge_write, 0, RIG_MEM - 65520, TERM(1, 1, 1, 1)),

    OPEN(ddp_version_0_untagged, controls, 0x4043, 4, TERM(1, 2, 6, 1)),
    OPEN(ddp_version_2_untagged, controls, 0x4243, 4, TERM(1, 2, 6, 1)),
    OPEN(ddp_version_3_untagged, controls, 0x4343, 4, TERM(1, 2, 6, 1)),
    OPEN(ddp_version_0_tagged, controls, 0xC040, 4, TERM(1, 1, 4, 1)),
    OPEN(ddp_version_2_tagged, controls, 0xC240, 4, TERM(1, 1, 4, 1)),
    OPEN(ddp_version_3_tagged, controls, 0xC340, 4, TERM(1, 1, 4, 1)),
    OPEN(rdmap_version_0_untagged, controls, 0x4103, 4, TERM(0, 2, 5, 1)),
    OPEN(rdmap_version_2_untagged, controls, 0x4183, 4, TERM(0, 2, 5, 1)),
    OPEN(rdmap_version_3_untagged, controls, 0x41C3, 4, TERM(0, 2, 5, 1)),
    OPEN(rdmap_version_0_tagged, controls, 0xC100, 4, TERM(0, 2, 5, 1)),
    OPEN(rdmap_version_2_tagged, controls, 0xC180, 4, TERM(0, 2, 5, 1)),
    OPEN(rdmap_version_3_tagged, controls, 0xC1C0, 4, TERM(0, 2, 5, 1)),
    OPEN(versions_both_wrong, controls, 0x4003, 4, TERM(1, 2, 6, 1)),
    OPEN(opcode_c, controls, 0x414C, 8, OPCODE),
    OPEN(opcode_d, controls, 0x414D, 8, OPCODE),
    OPEN(opcode_e, controls, 0x414E, 8, OPCODE),
    OPEN(opcode_f, controls, 0x414F, 8, OPCODE),
    OPEN(opcode_c_tagged, controls, 0xC14C, 8, OPCODE),
    OPEN(opcode_f_tagged, controls, 0xC14F, 8, OPCODE),
    OPEN(write_untagged, controls, 0x4140, 4, OPCODE),
    OPEN(read_request_tagged, controls, 0xC141, 28, OPCODE),
    OPEN(read_response_untagged, controls, 0x4142, 4, OPCODE),
    OPEN(send_tagged, controls, 0xC143, 4, OPCODE),
    OPEN(send_inv_tagged, controls, 0xC144, 4, OPCODE),
    OPEN(send_se_tagged, controls, 0xC145, 4, OPCODE),
    OPEN(send_se_inv_tagged, controls, 0xC146, 4, OPCODE),
    OPEN(terminate_tagged, controls, 0xC147, 4, SILENT(SN_E_WIRE)),
    OPEN(atomic_request, rfc7306, 0, 0, OPCODE),
    OPEN(atomic_response, rfc7306, 1, 0, OPCODE),
    OPEN(immediate, rfc7306, 2, 0, OPCODE),
    OPEN(immediate_se, rfc7306, 3, 0, OPCODE),
    OPEN(response_nobody_asked_for, unasked_response, 100, 0, OPCODE),
    OPEN(empty_response_nobody_asked_for, unasked_response, 0, 0, OPCODE),

    OPEN(send_qn_1, send_header, 1, QN_MO(1, 0), TERM(1, 2, 1, 1)),
    OPEN(send_qn_2, send_header, 1, QN_MO(2, 0), TERM(1, 2, 1, 1)),
    OPEN(send_qn_3, send_header, 1, QN_MO(3, 0), TERM(1, 2, 1, 1)),
    OPEN(send_qn_ffffffff, send_header, 1, QN_MO(0xFFFFFFFF, 0), TERM(1, 2, 1, 1)),
    OPEN(send_msn_0, send_header, 0, 0, TERM(1, 2, 3, 1)),
    OPEN(send_msn_2, send_header, 2, 0, TERM(1, 2, 3, 1)),
    OPEN(send_msn_7fffffff, send_header, 0x7FFFFFFF, 0, TERM(1, 2, 3, 1)),
    OPEN(send_msn_ffffffff, send_header, 0xFFFFFFFF, 0, TERM(1, 2, 3, 1)),
    OPEN(send_msn_again, send_header_after_a_good_one, 1, 0, TERM(1, 2, 3, 1), ONE_RECEIVE),
    OPEN(send_msn_skips_one, send_header_after_a_good_one, 3, 0, TERM(1, 2, 3, 1), ONE_RECEIVE),
    OPEN(send_starts_at_mo_1, send_header, 1, 1, TERM(1, 2, 4, 1)),
    OPEN(send_starts_at_mo_ffffffff, send_header, 1, 0xFFFFFFFF, TERM(1, 2, 4, 1)),
    OPEN(second_send_starts_at_mo_100, send_header_after_a_good_one, 2, 100, TERM(1, 2, 4, 1),
         ONE_RECEIVE),
    OPEN(segment_leaves_a_gap, second_segment, 10, 101, TERM(1, 2, 4, 1)),
    OPEN(segment_overlaps, second_segment, 10, 99, TERM(1, 2, 4, 1)),
    OPEN(segment_again_at_0, second_segment, 10, 0, TERM(1, 2, 4, 1)),
    OPEN(segment_at_mo_80000064, second_segment, 10, 0x80000064, TERM(1, 2, 4, 1)),
    OPEN(segment_makes_it_too_long_by_1, second_segment, 157, 100, TERM(1, 2, 5, 1),
         FAILED_RECEIVE),
    OPEN(send_too_long_by_1, send_of, 257, 1, TERM(1, 2, 5, 1), FAILED_RECEIVE),
    OPEN(send_too_long_by_1_not_last, send_of, 257, 0, TERM(1, 2, 5, 1), FAILED_RECEIVE),
    OPEN(send_too_long_by_60000, send_of, 60256, 1, TERM(1, 2, 5, 1), FAILED_RECEIVE),
    OPEN(send_in_drips_until_too_long, drip_until_too_long, 0, 0, TERM(1, 2, 5, 1), FAILED_RECEIVE),
    OPEN(send_of_1_into_a_receive_of_0, send_into_nothing, 1, 0, TERM(1, 2, 5, 1), FAILED_RECEIVE),
    OPEN(empty_segments_by_the_thousand, empty_segments, 0, 0, ALIVE),

    OPEN(write_stag_0, write_16, 0, RIG_BASE, TERM(1, 1, 0, 1)),
    OPEN(write_stag_1, write_16, 1, RIG_BASE, TERM(1, 1, 0, 1)),
    OPEN(write_stag_unknown, write_16, 0xDEAD0001, RIG_BASE, TERM(1, 1, 0, 1)),
    OPEN(write_stag_is_the_local_one, write_16, FAKE_LOCAL, RIG_BASE, TERM(1, 1, 0, 1)),
    OPEN(write_without_right, write_16, FAKE_NO_RIGHT, RIG_BASE, TERM(1, 1, 0, 1)),
    OPEN(write_of_another_domain, write_16, FAKE_OTHER_PD, RIG_BASE, TERM(1, 1, 2, 1)),
    OPEN(write_before_the_region, write_16, FAKE_REMOTE, RIG_BASE - 16, TERM(1, 1, 1, 1)),
    OPEN(write_over_the_start, write_16, FAKE_REMOTE, RIG_BASE - 1, TERM(1, 1, 1, 1)),
    OPEN(write_over_the_end, write_16, FAKE_REMOTE, RIG_BASE + RIG_MEM - 15, TERM(1, 1, 1, 1)),
    OPEN(write_behind_the_region, write_16, FAKE_REMOTE, RIG_BASE + RIG_MEM, TERM(1, 1, 1, 1)),
    OPEN(write_at_0, write_16, FAKE_REMOTE, 0, TERM(1, 1, 1, 1)),
    OPEN(write_wraps, write_16, FAKE_REMOTE, UINT64_MAX - 14, TERM(1, 1, 3, 1)),
    OPEN(write_ends_at_2_64, write_16, FAKE_REMOTE, UINT64_MAX - 15, TERM(1, 1, 3, 1)),
    OPEN(write_at_the_last_octet_of_all, write_16, FAKE_REMOTE, UINT64_MAX, TERM(1, 1, 3, 1)),
    OPEN(write_walks_out_of_the_region, write_walks_out, 0, 0, TERM(1, 1, 1, 1)),
    OPEN(write_changes_to_an_unknown_stag, write_changes_stag, 3, 0, TERM(1, 1, 0, 1)),
    OPEN(write_changes_to_another_domain, write_changes_stag, FAKE_OTHER_PD, 0, TERM(1, 1, 2, 1)),
    OPEN(write_of_0_at_stag_0, write_0, 0, 0, ALIVE),
    OPEN(write_of_0_to_an_unknown_stag, write_0, 0xDEADBEEF, UINT64_MAX, ALIVE),
    OPEN(write_of_0_without_right, write_0, FAKE_NO_RIGHT, 0, ALIVE),
    OPEN(write_at_both_ends_of_the_region, write_good, 0, 0, ALIVE),
    OPEN(write_of_0_by_the_thousand, write_flood, 5000, 0, ALIVE),

    OPEN(read_stag_unknown, read_from, 16, READ(0x7777, 0), TERM(0, 1, 0, 2)),
    OPEN(read_stag_0, read_from, 16, READ(0, 0), TERM(0, 1, 0, 2)),
    OPEN(read_without_right, read_from, 16, READ(FAKE_NO_RIGHT, 0), TERM(0, 1, 2, 2)),
    OPEN(read_of_another_domain, read_from, 16, READ(FAKE_OTHER_PD, 0), TERM(0, 1, 3, 2)),
    OPEN(read_before_the_region, read_from, 16, READ(FAKE_REMOTE, -1), TERM(0, 1, 1, 2)),
    OPEN(read_over_the_end, read_from, 16, READ(FAKE_REMOTE, RIG_MEM - 15), TERM(0, 1, 1, 2)),
    OPEN(read_behind_the_region, read_from, 1, READ(FAKE_REMOTE, RIG_MEM), TERM(0, 1, 1, 2)),
    OPEN(read_of_4_gib, read_from, 0xFFFFFFFF, READ(FAKE_REMOTE, 0), TERM(0, 1, 1, 2)),
    OPEN(read_of_2_gib, read_from, 0x80000000, READ(FAKE_REMOTE, 0), TERM(0, 1, 1, 2)),
    OPEN(read_wraps_around, read_wraps, 16, UINT64_MAX - 14, TERM(0, 1, 4, 2)),
    OPEN(read_of_4_gib_wraps, read_wraps, 0xFFFFFFFF, UINT64_MAX - 5, TERM(0, 1, 4, 2)),
    OPEN(read_msn_0, read_header, 0, QN_MO(1, 0), TERM(1, 2, 3, 1)),
    OPEN(read_msn_2, read_header, 2, QN_MO(1, 0), TERM(1, 2, 3, 1)),
    OPEN(read_msn_ffffffff, read_header, 0xFFFFFFFF, QN_MO(1, 0), TERM(1, 2, 3, 1)),
    OPEN(read_qn_0, read_header, 1, QN_MO(0, 0), TERM(1, 2, 1, 1)),
    OPEN(read_qn_2, read_header, 1, QN_MO(2, 0), TERM(1, 2, 1, 1)),
    OPEN(read_at_mo_4, read_header, 1, QN_MO(1, 4), TERM(1, 2, 4, 1)),
    OPEN(read_body_0, read_body, 0, 0, TERM(0, 2, 0xFF, 1)),
    OPEN(read_body_1, read_body, 1, 0, TERM(0, 2, 0xFF, 1)),
    OPEN(read_body_27, read_body, 27, 0, TERM(0, 2, 0xFF, 1)),
    OPEN(read_body_29, read_body, 29, 0, TERM(1, 2, 5, 1)),
    OPEN(read_body_1000, read_body, 1000, 0, TERM(1, 2, 5, 1)),
    OPEN(read_goes_on, read_body, 28, 1, TERM(1, 2, 5, 1)),
    OPEN(read_of_0_with_any_stag, read_zero_with_any_stag, 0, 0, ALIVE),

    OPEN(invalidate_stag_unknown, invalidate, 0xDEAD0001, 0, TERM(0, 2, 9, 1)),
    OPEN(invalidate_stag_0, invalidate, 0, 1, TERM(0, 2, 9, 1)),
    OPEN(invalidate_of_another_domain, invalidate, FAKE_OTHER_PD, 0, TERM(0, 1, 9, 1)),
    OPEN(invalidate_of_another_domain_se, invalidate, FAKE_OTHER_PD, 1, TERM(0, 1, 9, 1)),
    OPEN(invalidate_that_may_be, invalidate, FAKE_REMOTE, 1, ALIVE),

    PEER_SAYS(0, 0, 00),
    PEER_SAYS(0, 1, 00),
    PEER_SAYS(0, 1, 01),
    PEER_SAYS(0, 1, 02),
    PEER_SAYS(0, 1, 03),
    PEER_SAYS(0, 1, 04),
    PEER_SAYS(0, 1, 09),
    PEER_SAYS(0, 1, FF),
    PEER_SAYS(0, 2, 05),
    PEER_SAYS(0, 2, 06),
    PEER_SAYS(0, 2, 07),
    PEER_SAYS(0, 2, 08),
    PEER_SAYS(0, 2, 09),
    PEER_SAYS(0, 2, FF),
    PEER_SAYS(1, 0, 00),
    PEER_SAYS(1, 1, 00),
    PEER_SAYS(1, 1, 03),
    PEER_SAYS(1, 2, 02),
    PEER_SAYS(1, 2, 05),
    PEER_SAYS(2, 0, 02),
    PEER_SAYS(2, 3, 02),
    PEER_SAYS(F, F, FF),
    OPEN(terminate_body_0, odd_terminate, 0, 0x41020100, SILENT(SN_E_WIRE)),
    OPEN(terminate_body_3, odd_terminate, 3, 0x41020100, SILENT(SN_E_WIRE)),
    OPEN(terminate_body_52, odd_terminate, 52, 0x41020100, SILENT(SN_E_REMOTE)),
    OPEN(terminate_body_53, odd_terminate, 53, 0x41020100, SILENT(SN_E_WIRE)),
    OPEN(terminate_body_60000, odd_terminate, 60000, 0x41020100, SILENT(SN_E_WIRE)),
    OPEN(terminate_qn_0, odd_terminate, 4, 0x41000100, SILENT(SN_E_WIRE)),
    OPEN(terminate_qn_1, odd_terminate, 4, 0x41010100, SILENT(SN_E_WIRE)),
    OPEN(terminate_msn_2, odd_terminate, 4, 0x41020200, SILENT(SN_E_WIRE)),
    OPEN(terminate_mo_4, odd_terminate, 4, 0x41020104, SILENT(SN_E_WIRE)),
    OPEN(terminate_not_last, odd_terminate, 4, 0x01020100, SILENT(SN_E_WIRE)),
    OPEN(terminate_ddp_version_0, odd_terminate, 4, 0x40020100, SILENT(SN_E_WIRE)),
    OPEN(terminate_promises_headers_it_lacks, terminate_flags, 0x1202E000, 0, SILENT(SN_E_REMOTE)),
    OPEN(terminate_with_half_a_header, terminate_flags, 0x1202C000, 7, SILENT(SN_E_REMOTE)),
    OPEN(terminate_with_headers_of_ones, terminate_flags, 0x0101E000, 48, SILENT(SN_E_REMOTE)),
    OPEN(terminate_swapped, terminate_flags, 0x21020300, 20, SILENT(SN_E_REMOTE)),
    OPEN(terminate_reserved_bits, terminate_flags, 0x12021FFF, 0, SILENT(SN_E_REMOTE)),
    OPEN(terminate_inside_a_message, terminate_in_a_message, 0, 0, SILENT(SN_E_REMOTE)),
    OPEN(terminate_and_more_behind_it, terminate_and_more, 0, 0, SILENT(SN_E_REMOTE)),
    OPEN(terminate_for_our_read_bounds, terminate_for_our_read, 0x000101, 1, SILENT(SN_E_REMOTE),
         .req_done = 1, .req_status = SN_E_REMOTE_RANGE),
    OPEN(terminate_for_our_read_no_header, terminate_for_our_read, 0x000100, 0, SILENT(SN_E_REMOTE),
         .req_done = 1, .req_status = SN_E_RIGHTS),

    OPEN(crc_octet_0, spoilt, 28, 0x01, TERM(2, 0, 2, 0), ONE_RECEIVE),
    OPEN(crc_octet_3, spoilt, 31, 0x80, TERM(2, 0, 2, 0), ONE_RECEIVE),
    OPEN(crc_of_the_control_octet, spoilt, 2, 0x04, TERM(2, 0, 2, 0), ONE_RECEIVE),
    OPEN(crc_of_the_opcode, spoilt, 3, 0x01, TERM(2, 0, 2, 0), ONE_RECEIVE),
    OPEN(crc_of_the_qn, spoilt, 11, 0x01, TERM(2, 0, 2, 0), ONE_RECEIVE),
    OPEN(crc_of_the_msn, spoilt, 15, 0x01, TERM(2, 0, 2, 0), ONE_RECEIVE),
    OPEN(crc_of_the_mo, spoilt, 19, 0x01, TERM(2, 0, 2, 0), ONE_RECEIVE),
    OPEN(crc_of_the_payload, spoilt, 20, 0x10, TERM(2, 0, 2, 0), ONE_RECEIVE),
    OPEN(crc_of_the_pad, spoilt, 27, 0x01, TERM(2, 0, 2, 0), ONE_RECEIVE),
    OPEN(crc_zero, zero_crc, 0, 0, TERM(2, 0, 2, 0)),
    OPEN(crc_before_ddp_version, spoilt_and_faulty, 0x4043, 0, TERM(2, 0, 2, 0)),
    OPEN(crc_before_opcode, spoilt_and_faulty, 0x414F, 0, TERM(2, 0, 2, 0)),
    OPEN(crc_before_terminate, spoilt_and_faulty, 0x4147, 0, TERM(2, 0, 2, 0)),
    OPEN(crc_of_a_small_write, spoilt_write, 10, 0, TERM(2, 0, 2, 0)),
    OPEN(crc_of_a_large_write, spoilt_write, 60000, 0, TERM(2, 0, 2, 0)),
    OPEN(pad_of_ones_1, odd_pad, 3, 0, ALIVE),
    OPEN(pad_of_ones_3, odd_pad, 1, 0, ALIVE),
    OPEN(reserved_bits_set, reserved_bits, 0, 0, ALIVE),

    OPEN(fin_at_once, cut_send, 0, 0, SILENT(SN_OK), .after = AFTER_FIN),
    OPEN(fin_in_the_length, cut_send, 1, 0, GONE, .after = AFTER_FIN),
    OPEN(fin_behind_the_length, cut_send, 2, 0, GONE, .after = AFTER_FIN),
    OPEN(fin_in_the_header, cut_send, 11, 0, GONE, .after = AFTER_FIN),
    OPEN(fin_behind_the_header, cut_send, 20, 0, GONE, .after = AFTER_FIN),
    OPEN(fin_in_the_payload, cut_send, 77, 0, GONE, .after = AFTER_FIN),
    OPEN(fin_in_the_pad, cut_send, 122, 0, GONE, .after = AFTER_FIN),
    OPEN(fin_in_the_crc, cut_send, 127, 0, GONE, .after = AFTER_FIN),
    OPEN(fin_behind_a_send, cut_send, 128, 0, SILENT(SN_OK), ONE_RECEIVE, .after = AFTER_FIN),
    OPEN(fin_inside_a_message, cut_message, 0, 0, GONE, .after = AFTER_FIN),
    OPEN(rst_at_once, cut_send, 0, 0, GONE, .after = AFTER_RST),
    OPEN(rst_in_the_length, cut_send, 1, 0, GONE, .after = AFTER_RST),
    OPEN(rst_in_the_header, cut_send, 11, 0, GONE, .after = AFTER_RST),
    OPEN(rst_in_the_payload, cut_send, 77, 0, GONE, .after = AFTER_RST),
    OPEN(rst_in_the_crc, cut_send, 127, 0, GONE, .after = AFTER_RST),
    OPEN(rst_inside_a_message, cut_message, 0, 0, GONE, .after = AFTER_RST),

    OPEN(request_in_an_open_stream, request_again, 0, 0, GONE, .after = AFTER_FIN),
    OPEN(reply_in_an_open_stream, request_again, 1, 0, GONE, .after = AFTER_FIN),
    OPEN(noise_in_an_open_stream, noise, 5, 70000, TERM(2, 0, 2, 0)),
    OPEN(noise_in_an_open_stream_and_rst, noise, 6, 900, GONE, .after = AFTER_RST),

    OPEN(write_and_read_inside_a_send, write_inside_a_send, 0, 0, ALIVE),
    OPEN(send_inside_a_send_next_msn, send_inside_a_send, 2, 0, TERM(1, 2, 3, 1)),
    OPEN(send_inside_a_send_same_msn, send_inside_a_send, 1, 0, TERM(1, 2, 4, 1)),
    OPEN(send_changes_its_kind_on_the_way, send_changes_its_kind, 0, 0, ALIVE),
    OPEN(immediate_inside_the_message, immediate_inside_a_send, 0, 0, OPCODE),

    OPEN(mark_count_0, mark, 0, 0, ALIVE),
    OPEN(mark_count_1, mark, 1, 0, TERM(0, 2, 7, 0), .profile = &softnd_passive),
    OPEN(mark_count_ffff, mark, 0xFFFF, 0, TERM(0, 2, 7, 0), .profile = &softnd_passive),
    OPEN(mark_count_7fffffff, mark, 0x7FFFFFFF, 0, TERM(0, 2, 7, 0), .profile = &softnd_active),
    OPEN(mark_count_ffffffff, mark, 0xFFFFFFFF, 0, TERM(0, 2, 7, 0), .profile = &softnd_passive),
    OPEN(mark_count_80000000, mark, 0x80000000, 0, TERM(0, 2, 7, 0), .profile = &softnd_active),
    OPEN(mark_count_1_of_a_foreigner, mark, 1, 0, TERM(0, 2, 7, 0)),
    OPEN(mark_count_ffffffff_of_a_foreigner, mark, 0xFFFFFFFF, 0, TERM(0, 2, 7, 0)),
    OPEN(mark_twice_the_same, mark_twice, 0, 0, ALIVE),
    OPEN(mark_of_another_version, mark, 0, 0x5344000200000000, ALIVE),
    OPEN(mark_without_the_magic, mark, 0xFFFFFFFF, 0x1111111100000000, ALIVE),
    OPEN(mark_by_the_thousand, mark_flood, 5000, 0, ALIVE),
    OPEN(mark_with_payload_1, mark_with_payload, 1, 0, TERM(1, 1, 0, 1)),
    OPEN(mark_with_payload_60000, mark_with_payload, 60000, 0, TERM(1, 1, 0, 1)),
    OPEN(mark_that_is_not_last, mark_not_last, 0, 0, ALIVE),
    OPEN(mark_for_more_than_was_sent, mark_for_a_send, 2, 0, TERM(0, 2, 7, 0),
         .profile = &softnd_passive),
    OPEN(mark_for_more_than_was_sent_active, mark_for_a_send, 2, 0, TERM(0, 2, 7, 0),
         .profile = &softnd_active),
    OPEN(mark_that_goes_back, mark_goes_back, 0, 0, TERM(0, 2, 7, 0), .req_done = 1,
         .req_status = SN_OK, .profile = &softnd_passive),

    OPEN(response_of_another_stag, response, 100, RESP(1, 8, 0), TERM(1, 1, 0, 1)),
    OPEN(response_of_stag_0, response, 100, RESP(1, 0, 0), TERM(1, 1, 0, 1)),
    OPEN(response_one_off, response, 100, RESP(1, FAKE_LOCAL, 1), TERM(1, 1, 1, 1)),
    OPEN(response_before_the_sink, response, 100, RESP(1, FAKE_LOCAL, -1), TERM(1, 1, 1, 1)),
    OPEN(response_too_long_by_1, response, 101, RESP(1, FAKE_LOCAL, 0), TERM(1, 1, 1, 1)),
    OPEN(response_too_long_not_last, response, 101, RESP(0, FAKE_LOCAL, 0), TERM(1, 1, 1, 1)),
    OPEN(response_of_60000, response, 60000, RESP(1, FAKE_LOCAL, 0), TERM(1, 1, 1, 1)),
    OPEN(response_too_short, response, 99, RESP(1, FAKE_LOCAL, 0), TERM(1, 1, 1, 1)),
    OPEN(response_of_0_that_ends_it, response, 0, RESP(1, FAKE_LOCAL, 0), TERM(1, 1, 1, 1)),
    OPEN(response_goes_on_too_long, response_then, 41, RESP(1, FAKE_LOCAL, 60), TERM(1, 1, 1, 1)),
    OPEN(response_goes_on_too_short, response_then, 39, RESP(1, FAKE_LOCAL, 60), TERM(1, 1, 1, 1)),
    OPEN(response_leaves_a_gap, response_then, 40, RESP(1, FAKE_LOCAL, 61), TERM(1, 1, 1, 1)),
    OPEN(response_starts_again, response_then, 40, RESP(1, FAKE_LOCAL, 0), TERM(1, 1, 1, 1)),
    OPEN(response_changes_its_stag, response_then, 40, RESP(1, 8, 60), TERM(1, 1, 0, 1)),
    OPEN(response_twice_for_one_read, response_twice, 0, 0, OPCODE, .req_done = 1,
         .req_status = SN_OK),
    OPEN(responses_of_two_reads_interleaved, responses_interleaved, 0, 0, TERM(1, 1, 1, 1)),
    OPEN(response_beside_a_send_is_taken, response_beside_a_send, 0, 0, ALIVE),
    OPEN(response_then_fin, response, 60, RESP(0, FAKE_LOCAL, 0), GONE, .after = AFTER_FIN),
    OPEN(response_then_rst, response, 60, RESP(0, FAKE_LOCAL, 0), GONE, .after = AFTER_RST),
    OPEN(response_with_payload_to_no_read, response_to_the_rtr_with_payload, 0, 0, OPCODE),
};
const size_t stream_stream_count = SN_ARRAY_LEN(stream_streams);
