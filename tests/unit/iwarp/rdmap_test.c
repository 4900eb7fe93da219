/* SPDX-License-Identifier: MIT
 * rdmap_test.c - DDP and RDMAP headers: golden octets, legality, round trips.
 */
#include "wire_test.h"
#include "iwarp/rdmap.h"
#include "iwarp/terminate.h"
#include "support/unmark.h"

/* What each FPDU vector says. Body or payload is written out here, not taken from the vector. */
static const struct {
    const char *id;
    uint8_t op;
    bool first; /* not the last segment */
    uint32_t stag, msn, mo;
    uint64_t to;
    const char *payload;
    uint32_t payload_len;
} rows[] = {
    { .id = "V4", .op = RDMAP_READ_RESPONSE, .stag = 1 },
    { .id = "V4z", .op = RDMAP_READ_RESPONSE },
    { .id = "V5", .op = RDMAP_WRITE, .stag = 1 },
    { .id = "V6", .op = RDMAP_SEND, .msn = 1, .payload = "Hello", .payload_len = 5 },
    { .id = "V7", .op = RDMAP_SEND_SE, .msn = 1, .payload = "\1\2\3\4", .payload_len = 4 },
    { .id = "V8",
      .op = RDMAP_SEND_INV,
      .stag = 0x11223344,
      .msn = 2,
      .payload = "!",
      .payload_len = 1 },
    { .id = "V9", .op = RDMAP_SEND_SE_INV, .stag = 0x11223344, .msn = 3 },
    { .id = "V10",
      .op = RDMAP_WRITE,
      .stag = 0xA100,
      .to = 0x7F0000001000,
      .payload = "\x10\x11\x12\x13\x14\x15\x16\x17",
      .payload_len = 8 },
    { .id = "V11a",
      .op = RDMAP_SEND,
      .first = true,
      .msn = 4,
      .payload = "abcdef",
      .payload_len = 6 },
    { .id = "V11b", .op = RDMAP_SEND, .msn = 4, .mo = 6, .payload = "ghi", .payload_len = 3 },
    { .id = "V13a",
      .op = RDMAP_READ_RESPONSE,
      .first = true,
      .stag = 0xB200,
      .to = 0x2000,
      .payload = "RDMA",
      .payload_len = 4 },
    { .id = "V13b",
      .op = RDMAP_READ_RESPONSE,
      .stag = 0xB200,
      .to = 0x2004,
      .payload = "xyz",
      .payload_len = 3 },
    { .id = "V14", .op = RDMAP_SEND, .msn = 5 },
    { .id = "V15", .op = RDMAP_WRITE },
    { .id = "V25",
      .op = RDMAP_WRITE,
      .stag = 0xDEAD0001,
      .to = 0x1000,
      .payload = "\xaa\xbb\xcc\xdd",
      .payload_len = 4 },
    { .id = "V32",
      .op = RDMAP_SEND_INV,
      .stag = 0xDEAD0001,
      .msn = 1,
      .payload = "!",
      .payload_len = 1 },
};
#define ROW_COUNT (sizeof rows / sizeof rows[0])

static const struct {
    const char *id;
    uint32_t msn;
    struct rdmap_read_request rr;
} reads[] = {
    { "V3", 1, { .sink_stag = 1, .src_stag = 1 } },
    { "V3z", 1, { .sink_stag = 0 } },
    { "V12",
      2,
      { .sink_stag = 0xB200,
        .sink_to = 0x2000,
        .size = 7,
        .src_stag = 0xC300,
        .src_to = 0x7F0000002000 } },
    { "V21",
      5,
      { .sink_stag = 0xB200,
        .sink_to = 0x2000,
        .size = 4096,
        .src_stag = 0xDEAD0001,
        .src_to = 0x1000 } },
    { "V23",
      1,
      { .sink_stag = 0xB200,
        .sink_to = 0x2000,
        .size = 4096,
        .src_stag = 0xC300,
        .src_to = 0x1000 } },
};

static const struct {
    const char *id;
    uint32_t msn;
    struct rdmap_atomic_request ar;
} atomics[] = {
    { "V18",
      3,
      { .op = RDMAP_FETCH_ADD,
        .id = 0x55,
        .stag = 0xC300,
        .to = 0x7F0000002008,
        .data = 1,
        .compare_mask = UINT64_MAX } },
    { "V20",
      4,
      { .op = RDMAP_CMP_SWAP,
        .id = 0x56,
        .stag = 0xC300,
        .to = 0x7F0000002008,
        .data = 7,
        .mask = UINT64_MAX,
        .compare = 42,
        .compare_mask = UINT64_MAX } },
};

/* Head and payload become an FPDU, which must be the vector. */
static void check_fpdu(const char *id, const uint8_t *head, size_t head_len, const char *payload,
                       size_t payload_len) {
    const struct wire_vector *v = need_vector(id);
    uint8_t fpdu[128];
    size_t n = head_len + payload_len;
    memcpy(fpdu, head, head_len);
    if (payload_len) memcpy(fpdu + head_len, payload, payload_len);
    n += mpa_trailer_pack(fpdu + n, n - 2, sn_crc32c_extend(SN_CRC32C_INIT, fpdu, n), true);
    if (n != v->len) FAIL("%s: %zu octets, expected %zu", id, n, v->len);
    if (memcmp(fpdu, v->bytes, n) != 0) printf("  in %s\n", id);
    CHECK_BYTES(fpdu, v->bytes, n);
}

static void pack_payload_vectors_gives_golden_bytes(void) {
    for (size_t i = 0; i < ROW_COUNT; i++) {
        uint8_t head[RDMAP_HEAD_MAX];
        size_t n;
        if (rows[i].op == RDMAP_WRITE)
            n = rdmap_write_pack(head, !rows[i].first, rows[i].stag, rows[i].to,
                                 rows[i].payload_len);
        else if (rows[i].op == RDMAP_READ_RESPONSE)
            n = rdmap_read_response_pack(head, !rows[i].first, rows[i].stag, rows[i].to,
                                         rows[i].payload_len);
        else
            n = rdmap_send_pack(head, (enum rdmap_opcode)rows[i].op, !rows[i].first, rows[i].stag,
                                rows[i].msn, rows[i].mo, rows[i].payload_len);
        check_fpdu(rows[i].id, head, n, rows[i].payload, rows[i].payload_len);
    }
}

static void pack_body_vectors_gives_golden_bytes(void) {
    uint8_t head[RDMAP_HEAD_MAX];
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++)
        check_fpdu(reads[i].id, head, rdmap_read_request_pack(head, reads[i].msn, &reads[i].rr),
                   NULL, 0);
    for (size_t i = 0; i < sizeof atomics / sizeof atomics[0]; i++)
        check_fpdu(atomics[i].id, head,
                   rdmap_atomic_request_pack(head, atomics[i].msn, &atomics[i].ar), NULL, 0);
    const struct rdmap_atomic_response response = { .id = 0x55, .original = 41 };
    check_fpdu("V19", head, rdmap_atomic_response_pack(head, 1, &response), NULL, 0);
    check_fpdu("V16", head, rdmap_immediate_pack(head, false, 6, 0xCAFEBABE), NULL, 0);
    check_fpdu("V17", head, rdmap_immediate_pack(head, true, 1, 0x0102030405060708), NULL, 0);
}

/* Feeds the ULPDU octet by octet; the answer comes with the last octet of the header. */
static struct rdmap_segment feed(const uint8_t *ulpdu, size_t ulpdu_len) {
    struct rdmap_segment seg, whole;
    struct rdmap_fault fault;
    CHECK_EQ(rdmap_unpack(ulpdu, ulpdu_len, ulpdu_len, &whole, &fault), SN_OK);
    for (size_t have = 0; have <= ulpdu_len; have++) {
        uint8_t *part = exact_copy(ulpdu, have);
        sn_status st = rdmap_unpack(part, have, ulpdu_len, &seg, &fault);
        free(part);
        CHECK_EQ(st, have < whole.header_len ? SN_E_MORE : SN_OK);
        if (st != SN_OK) continue;
        CHECK_EQ(seg.opcode, whole.opcode);
        CHECK_EQ(seg.tagged, whole.tagged);
        CHECK_EQ(seg.last, whole.last);
        CHECK_EQ(seg.header_len, whole.header_len);
        CHECK_EQ(seg.payload_len, whole.payload_len);
        CHECK_EQ(seg.stag, whole.stag);
        CHECK_EQ(seg.to, whole.to);
        CHECK_EQ(seg.qn, whole.qn);
        CHECK_EQ(seg.msn, whole.msn);
        CHECK_EQ(seg.mo, whole.mo);
    }
    return whole;
}

static struct rdmap_segment feed_vector(const char *id) {
    const struct wire_vector *v = need_vector(id);
    return feed(v->bytes + 2, ((size_t)v->bytes[0] << 8) | v->bytes[1]);
}

static void unpack_payload_vectors_whole_or_by_octet_gives_fields(void) {
    for (size_t i = 0; i < ROW_COUNT; i++) {
        struct rdmap_segment seg = feed_vector(rows[i].id);
        bool tagged = rows[i].op == RDMAP_WRITE || rows[i].op == RDMAP_READ_RESPONSE;
        CHECK_EQ(seg.opcode, rows[i].op);
        CHECK_EQ(seg.tagged, tagged);
        CHECK_EQ(seg.last, !rows[i].first);
        CHECK_EQ(seg.header_len, tagged ? 14 : 18);
        CHECK_EQ(seg.payload_len, rows[i].payload_len);
        CHECK_EQ(seg.stag, rows[i].stag);
        CHECK_EQ(seg.to, rows[i].to);
        CHECK_EQ(seg.qn, 0);
        CHECK_EQ(seg.msn, rows[i].msn);
        CHECK_EQ(seg.mo, rows[i].mo);
        const uint8_t *payload = need_vector(rows[i].id)->bytes + 2 + seg.header_len;
        CHECK_BYTES(payload, (const uint8_t *)rows[i].payload, rows[i].payload_len);
    }
}

static void check_one_segment(const struct rdmap_segment *seg, uint8_t op, uint32_t qn,
                              uint32_t msn, uint32_t body_len) {
    CHECK_EQ(seg->opcode, op);
    CHECK(!seg->tagged && seg->last);
    CHECK_EQ(seg->header_len, 18);
    CHECK_EQ(seg->payload_len, body_len);
    CHECK_EQ(seg->stag, 0);
    CHECK_EQ(seg->qn, qn);
    CHECK_EQ(seg->msn, msn);
    CHECK_EQ(seg->mo, 0);
}

static void check_read(const struct rdmap_read_request *got,
                       const struct rdmap_read_request *want) {
    CHECK_EQ(got->sink_stag, want->sink_stag);
    CHECK_EQ(got->sink_to, want->sink_to);
    CHECK_EQ(got->size, want->size);
    CHECK_EQ(got->src_stag, want->src_stag);
    CHECK_EQ(got->src_to, want->src_to);
}

static void check_atomic(const struct rdmap_atomic_request *got,
                         const struct rdmap_atomic_request *want) {
    CHECK_EQ(got->op, want->op);
    CHECK_EQ(got->id, want->id);
    CHECK_EQ(got->stag, want->stag);
    CHECK_EQ(got->to, want->to);
    CHECK_EQ(got->data, want->data);
    CHECK_EQ(got->mask, want->mask);
    CHECK_EQ(got->compare, want->compare);
    CHECK_EQ(got->compare_mask, want->compare_mask);
}

static void unpack_body_vectors_gives_fields(void) {
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        struct rdmap_segment seg = feed_vector(reads[i].id);
        check_one_segment(&seg, RDMAP_READ_REQUEST, 1, reads[i].msn, 28);
        struct rdmap_read_request rr;
        CHECK_EQ(rdmap_read_request_unpack(need_vector(reads[i].id)->bytes + 20, 28, &rr), SN_OK);
        check_read(&rr, &reads[i].rr);
    }
    for (size_t i = 0; i < sizeof atomics / sizeof atomics[0]; i++) {
        struct rdmap_segment seg = feed_vector(atomics[i].id);
        check_one_segment(&seg, RDMAP_ATOMIC_REQUEST, 1, atomics[i].msn, 52);
        struct rdmap_atomic_request ar;
        struct rdmap_fault fault;
        const uint8_t *body = need_vector(atomics[i].id)->bytes + 20;
        CHECK_EQ(rdmap_atomic_request_unpack(body, 52, &ar, &fault), SN_OK);
        check_atomic(&ar, &atomics[i].ar);
    }
    struct rdmap_segment seg = feed_vector("V19");
    check_one_segment(&seg, RDMAP_ATOMIC_RESPONSE, 3, 1, 12);
    struct rdmap_atomic_response response;
    CHECK_EQ(rdmap_atomic_response_unpack(need_vector("V19")->bytes + 20, 12, &response), SN_OK);
    CHECK_EQ(response.id, 0x55);
    CHECK_EQ(response.original, 41);

    uint64_t data;
    seg = feed_vector("V16");
    check_one_segment(&seg, RDMAP_IMMEDIATE, 0, 6, 8);
    CHECK_EQ(rdmap_immediate_unpack(need_vector("V16")->bytes + 20, 8, &data), SN_OK);
    CHECK_EQ(data, 0xCAFEBABE);
    seg = feed_vector("V17");
    check_one_segment(&seg, RDMAP_IMMEDIATE_SE, 0, 1, 8);
    CHECK_EQ(rdmap_immediate_unpack(need_vector("V17")->bytes + 20, 8, &data), SN_OK);
    CHECK_EQ(data, 0x0102030405060708);
    static const char *terminates[] = { "V22", "V24", "V26", "V27", "V31", "V33", "V34", "V35" };
    for (size_t i = 0; i < sizeof terminates / sizeof terminates[0]; i++) {
        seg = feed_vector(terminates[i]);
        check_one_segment(&seg, RDMAP_TERMINATE, 2, 1, need_vector(terminates[i])->bytes[1] - 18u);
    }
    seg = feed_vector("V41s"); /* the CRC is not this codec's business */
    CHECK_EQ(seg.payload_len, 5);
    seg = feed_vector("V41t");
    check_one_segment(&seg, RDMAP_TERMINATE, 2, 1, 24);
}

/* The marked vectors, after their markers are gone. */
static void unpack_marked_vectors_gives_fields(void) {
    static const struct {
        const char *id;
        uint64_t pos;
        uint32_t msn, payload_len;
    } marked[] = { { "V42", 0, 1, 24 }, { "V43", 492, 2, 24 }, { "V46", 1024, 3, 8 } };
    for (size_t i = 0; i < 3; i++) {
        const struct wire_vector *v = need_vector(marked[i].id);
        uint8_t run[76];
        memcpy(run, v->bytes, v->len);
        struct mpa_markers m = { marked[i].pos, 0 };
        struct mpa_unmarked u;
        CHECK_EQ(mpa_fpdu_unmark(&m, run, v->len, true, &u), SN_OK);
        struct rdmap_segment seg = feed(u.fpdu + 2, u.ulpdu_len);
        CHECK_EQ(seg.opcode, RDMAP_SEND);
        CHECK_EQ(seg.msn, marked[i].msn);
        CHECK_EQ(seg.payload_len, marked[i].payload_len);
    }
}

/* ---- Legality ---- */

static void check_fault(const struct rdmap_fault *f, enum rdmap_cause want) {
    struct rdmap_fault w = rdmap_fault_make(want);
    if (f->layer != w.layer || f->type != w.type || f->code != w.code || f->headers != w.headers)
        FAIL("fault %x/%x/%02x quote %u, expected %x/%x/%02x quote %u (%s)", f->layer, f->type,
             f->code, f->headers, w.layer, w.type, w.code, w.headers, rdmap_fault_text(want));
}

/* The ULPDU must be refused for `want`, however much of it there is beyond its header, with the
 * output untouched; and asked for more before. */
static void check_refused(const uint8_t *ulpdu, size_t ulpdu_len, enum rdmap_cause want) {
    size_t header_len = ulpdu_len ? ddp_header_len(ulpdu[0]) : 0;
    if (header_len > ulpdu_len) header_len = ulpdu_len;
    for (size_t have = 0; have <= ulpdu_len; have++) {
        uint8_t *part = exact_copy(ulpdu, have);
        struct rdmap_segment seg = { .payload_len = 99 };
        struct rdmap_fault fault = { 0 };
        sn_status st = rdmap_unpack(part, have, ulpdu_len, &seg, &fault);
        free(part);
        CHECK_EQ(seg.payload_len, 99);
        CHECK_EQ(st, have < header_len ? SN_E_MORE : SN_E_WIRE);
        if (st != SN_E_WIRE) continue;
        check_fault(&fault, want);
        CHECK_EQ(fault.in_terminate,
                 ulpdu_len >= 2 && rdmap_opcode_of(ulpdu[1]) == RDMAP_TERMINATE);
    }
}

/* A legal ULPDU of that opcode with a body or payload of n octets; returns its length. */
static size_t make_ulpdu(uint8_t *dst, uint8_t op, size_t n) {
    uint8_t head[RDMAP_HEAD_MAX];
    const struct rdmap_op *info = rdmap_op_of(op);
    size_t len = info->tagged
                     ? rdmap_tagged_pack(head, (enum rdmap_opcode)op, true, 7, 9, 0)
                     : rdmap_untagged_pack(head, (enum rdmap_opcode)op, true, 0, info->qn, 1, 0, 0);
    memcpy(dst, head + 2, len - 2);
    memset(dst + len - 2, 0, n);
    return len - 2 + n;
}

#define LAST_OPCODE RDMAP_ATOMIC_RESPONSE

static void unpack_wrong_ddp_version_names_it(void) {
    uint8_t u[128];
    for (uint8_t op = 0; op <= LAST_OPCODE; op++)
        for (unsigned dv = 0; dv < 4; dv++) {
            if (dv == 1) continue;
            size_t n = make_ulpdu(u, op, rdmap_op_of(op)->body_min);
            u[0] = (uint8_t)((u[0] & 0xFC) | dv);
            u[1] ^= 0xC0; /* the DDP version is judged first */
            check_refused(
                u, n, rdmap_op_of(op)->tagged ? RDMAP_FAULT_DV_TAGGED : RDMAP_FAULT_DV_UNTAGGED);
        }
}

static void unpack_wrong_rdmap_version_names_it(void) {
    uint8_t u[128];
    for (uint8_t op = 0; op <= LAST_OPCODE; op++)
        for (unsigned rv = 0; rv < 4; rv++) {
            if (rv == 1) continue;
            size_t n = make_ulpdu(u, op, rdmap_op_of(op)->body_min);
            u[1] = (uint8_t)((u[1] & 0x3F) | (rv << 6));
            check_refused(u, n, RDMAP_FAULT_RV);
        }
}

static void unpack_unassigned_opcode_or_wrong_tag_bit_is_unexpected(void) {
    uint8_t u[128];
    for (uint8_t op = 0; op < 16; op++) {
        bool assigned = op <= LAST_OPCODE;
        size_t n = make_ulpdu(u, assigned ? op : RDMAP_SEND, 60);
        u[1] = (uint8_t)(0x40 | op);
        CHECK_EQ(rdmap_op_of(op)->name != NULL, assigned);
        if (!assigned) check_refused(u, n, RDMAP_FAULT_OPCODE);
        u[0] ^= 0x80;
        check_refused(u, n, RDMAP_FAULT_OPCODE);
    }
}

static void unpack_reserved_bits_are_ignored(void) {
    uint8_t u[128];
    struct rdmap_segment seg;
    struct rdmap_fault fault;
    for (uint8_t op = 0; op <= LAST_OPCODE; op++) {
        size_t n = make_ulpdu(u, op, rdmap_op_of(op)->body_min);
        u[0] |= 0x3C;
        u[1] |= 0x30;
        if (!rdmap_op_of(op)->tagged) u[2] = 0xFF; /* the ULP word */
        CHECK_EQ(rdmap_unpack(u, n, n, &seg, &fault), SN_OK);
        CHECK_EQ(seg.opcode, op);
        bool names_stag = rdmap_op_of(op)->tagged || rdmap_op_of(op)->invalidates;
        CHECK_EQ(seg.stag != 0, names_stag);
    }
}

static void unpack_wrong_queue_number_names_it(void) {
    uint8_t u[128];
    for (uint8_t op = 0; op <= LAST_OPCODE; op++) {
        if (rdmap_op_of(op)->tagged) continue;
        for (unsigned qn = 0; qn < 6; qn++) {
            if (qn == rdmap_op_of(op)->qn) continue;
            size_t n = make_ulpdu(u, op, rdmap_op_of(op)->body_min);
            u[9] = (uint8_t)qn;
            check_refused(u, n, RDMAP_FAULT_QN);
        }
        size_t n = make_ulpdu(u, op, rdmap_op_of(op)->body_min);
        u[6] = 1; /* its high octet */
        check_refused(u, n, RDMAP_FAULT_QN);
    }
}

static void unpack_ulpdu_below_its_header_is_short(void) {
    uint8_t u[128];
    for (uint8_t op = 0; op <= LAST_OPCODE; op++) {
        make_ulpdu(u, op, 0);
        for (size_t len = 0; len < ddp_header_len(u[0]); len++)
            check_refused(u, len, RDMAP_FAULT_SHORT);
    }
}

/* The control octets count even where the rest is missing. */
static void unpack_short_ulpdu_with_wrong_version_names_the_version(void) {
    const uint8_t tagged[] = { 0xC0, 0x40, 0 }, untagged[] = { 0x42, 0x43, 0 };
    const uint8_t rv[] = { 0x41, 0x83 }, opcode[] = { 0x41, 0x4D, 0, 0 };
    check_refused(tagged, 3, RDMAP_FAULT_DV_TAGGED);
    check_refused(untagged, 3, RDMAP_FAULT_DV_UNTAGGED);
    check_refused(rv, 2, RDMAP_FAULT_RV);
    check_refused(opcode, 4, RDMAP_FAULT_OPCODE);
}

static void unpack_body_of_wrong_size_is_refused_per_opcode(void) {
    uint8_t u[256];
    for (uint8_t op = 0; op <= LAST_OPCODE; op++) {
        const struct rdmap_op *info = rdmap_op_of(op);
        if (info->payload) continue;
        for (size_t body = 0; body < 100; body++) {
            size_t n = make_ulpdu(u, op, body);
            struct rdmap_segment seg;
            struct rdmap_fault fault;
            if (body >= info->body_min && body <= info->body_max) {
                CHECK_EQ(rdmap_unpack(u, n, n, &seg, &fault), SN_OK);
                CHECK_EQ(seg.payload_len, body);
                u[0] &= 0xBF; /* goes on behind a full body */
                check_refused(u, n,
                              op == RDMAP_READ_REQUEST || op == RDMAP_TERMINATE
                                  ? RDMAP_FAULT_TOO_LONG
                                  : RDMAP_FAULT_BODY);
            } else if (body < info->body_min) {
                check_refused(u, n, op == RDMAP_TERMINATE ? RDMAP_FAULT_SHORT : RDMAP_FAULT_BODY);
            } else {
                check_refused(u, n,
                              op == RDMAP_READ_REQUEST || op == RDMAP_TERMINATE
                                  ? RDMAP_FAULT_TOO_LONG
                                  : RDMAP_FAULT_BODY);
            }
        }
    }
}

static void unpack_one_segment_message_with_offset_is_refused(void) {
    uint8_t u[128];
    for (uint8_t op = 0; op <= LAST_OPCODE; op++) {
        const struct rdmap_op *info = rdmap_op_of(op);
        if (info->tagged) continue;
        size_t n = make_ulpdu(u, op, info->body_min);
        u[17] = 4;
        struct rdmap_segment seg;
        struct rdmap_fault fault;
        if (info->payload)
            CHECK_EQ(rdmap_unpack(u, n, n, &seg, &fault), SN_OK);
        else
            check_refused(u, n, RDMAP_FAULT_MO);
    }
}

static void unpack_terminate_with_another_msn_is_refused_unanswered(void) {
    uint8_t u[128];
    size_t n = make_ulpdu(u, RDMAP_TERMINATE, 4);
    u[13] = 2;
    check_refused(u, n, RDMAP_FAULT_MSN);
}

static void unpack_largest_ulpdu_is_accepted(void) {
    uint8_t u[32];
    struct rdmap_segment seg;
    struct rdmap_fault fault;
    make_ulpdu(u, RDMAP_WRITE, 0);
    CHECK_EQ(rdmap_unpack(u, 14, MPA_ULPDU_MAX, &seg, &fault), SN_OK);
    CHECK_EQ(seg.payload_len, MPA_ULPDU_MAX - 14);
    make_ulpdu(u, RDMAP_SEND, 0);
    CHECK_EQ(rdmap_unpack(u, 18, MPA_ULPDU_MAX, &seg, &fault), SN_OK);
    CHECK_EQ(seg.payload_len, MPA_ULPDU_MAX - 18);
}

static void fault_every_cause_is_a_code_the_rfcs_define(void) {
    for (int c = 0; c < RDMAP_FAULT_COUNT; c++) {
        struct rdmap_fault f = rdmap_fault_make((enum rdmap_cause)c);
        if (!terminate_known(f.layer, f.type, f.code))
            FAIL("%s: %x/%x/%02x", rdmap_fault_text((enum rdmap_cause)c), f.layer, f.type, f.code);
        CHECK(strlen(rdmap_fault_text((enum rdmap_cause)c)) > 4);
        CHECK(!f.in_terminate);
        if (f.layer == TERMINATE_LAYER_LLP) CHECK_EQ(f.headers, RDMAP_QUOTE_NONE);
    }
    CHECK_STR(rdmap_fault_text(RDMAP_FAULT_COUNT), "unknown fault");
}

/* ---- Truncation and round trips ---- */

static void unpack_truncated_bodies_ask_for_more(void) {
    uint8_t bytes[52] = { 0 };
    for (size_t len = 0; len < 52; len++) {
        uint8_t *p = exact_copy(bytes, len);
        struct rdmap_read_request rr = { .size = 99 };
        struct rdmap_atomic_request ar = { .id = 99 };
        struct rdmap_atomic_response as = { .id = 99 };
        struct rdmap_fault fault;
        uint64_t data = 99;
        CHECK_EQ(rdmap_read_request_unpack(p, len, &rr), len < 28 ? SN_E_MORE : SN_OK);
        CHECK_EQ(rr.size, len < 28 ? 99 : 0);
        CHECK_EQ(rdmap_immediate_unpack(p, len, &data), len < 8 ? SN_E_MORE : SN_OK);
        CHECK_EQ(data, len < 8 ? 99 : 0);
        CHECK_EQ(rdmap_atomic_response_unpack(p, len, &as), len < 12 ? SN_E_MORE : SN_OK);
        CHECK_EQ(as.id, len < 12 ? 99 : 0);
        CHECK_EQ(rdmap_atomic_request_unpack(p, len, &ar, &fault), SN_E_MORE);
        CHECK_EQ(ar.id, 99);
        free(p);
    }
}

static void unpack_atomic_request_unknown_or_unaligned_is_refused(void) {
    uint8_t body[52];
    struct rdmap_atomic_request ar = { .id = 99 };
    struct rdmap_fault fault;
    memcpy(body, need_vector("V20")->bytes + 20, 52);
    for (uint8_t op = 0; op < 16; op++) {
        body[3] = (uint8_t)(0xF0 | op); /* the other 28 bits are reserved */
        sn_status st = rdmap_atomic_request_unpack(body, 52, &ar, &fault);
        CHECK_EQ(st, op == 0 || op == 2 ? SN_OK : SN_E_WIRE);
        if (st == SN_E_WIRE) check_fault(&fault, RDMAP_FAULT_ATOMIC_OPCODE);
    }
    body[3] = 0;
    ar.id = 99;
    for (uint8_t low = 1; low < 8; low++) {
        body[19] = (uint8_t)(0x08 | low);
        CHECK_EQ(rdmap_atomic_request_unpack(body, 52, &ar, &fault), SN_E_WIRE);
        check_fault(&fault, RDMAP_FAULT_ATOMIC_ALIGN);
        CHECK_EQ(ar.id, 99);
    }
}

static void headers_random_values_survive_the_round_trip(void) {
    for (int round = 0; round < 2000; round++) {
        uint8_t head[RDMAP_HEAD_MAX];
        struct rdmap_segment seg;
        struct rdmap_fault fault;
        uint32_t stag = (uint32_t)random_u64(), msn = (uint32_t)random_u64();
        uint32_t mo = (uint32_t)random_u64(), len = random_below(MPA_ULPDU_MAX - 17);
        uint64_t to = random_u64();
        bool last = random_bool();
        enum rdmap_opcode tagged_op = random_bool() ? RDMAP_WRITE : RDMAP_READ_RESPONSE;
        CHECK_EQ(rdmap_tagged_pack(head, tagged_op, last, stag, to, len), RDMAP_HEAD_TAGGED);
        CHECK_EQ((head[0] << 8) | head[1], len + 14);
        CHECK_EQ(rdmap_unpack(head + 2, 14, len + 14, &seg, &fault), SN_OK);
        CHECK_EQ(seg.opcode, tagged_op);
        CHECK_EQ(seg.last, last);
        CHECK_EQ(seg.stag, stag);
        CHECK_EQ(seg.to, to);
        CHECK_EQ(seg.payload_len, len);
        enum rdmap_opcode send_op = (enum rdmap_opcode)(RDMAP_SEND + random_below(4));
        bool inv = send_op == RDMAP_SEND_INV || send_op == RDMAP_SEND_SE_INV;
        CHECK_EQ(rdmap_send_pack(head, send_op, last, inv ? stag : 0, msn, mo, len),
                 RDMAP_HEAD_UNTAGGED);
        CHECK_EQ(rdmap_unpack(head + 2, 18, len + 18, &seg, &fault), SN_OK);
        CHECK_EQ(seg.opcode, send_op);
        CHECK_EQ(seg.last, last);
        CHECK_EQ(seg.stag, inv ? stag : 0);
        CHECK_EQ(seg.msn, msn);
        CHECK_EQ(seg.mo, mo);
        CHECK_EQ(seg.payload_len, len);
    }
}

static void bodies_random_values_survive_the_round_trip(void) {
    for (int round = 0; round < 500; round++) {
        uint8_t head[RDMAP_HEAD_MAX];
        struct rdmap_fault fault;
        struct rdmap_read_request rr = { (uint32_t)random_u64(), random_u64(),
                                         (uint32_t)random_u64(), (uint32_t)random_u64(),
                                         random_u64() },
                                  rr_got;
        CHECK_EQ(rdmap_read_request_pack(head, 1, &rr), RDMAP_HEAD_READ_REQUEST);
        CHECK_EQ(rdmap_read_request_unpack(head + 20, 28, &rr_got), SN_OK);
        check_read(&rr_got, &rr);
        struct rdmap_atomic_request ar = { .op = random_bool() ? RDMAP_FETCH_ADD : RDMAP_CMP_SWAP,
                                           .id = (uint32_t)random_u64(),
                                           .stag = (uint32_t)random_u64(),
                                           .to = random_u64() & ~7ull,
                                           .data = random_u64(),
                                           .mask = random_u64(),
                                           .compare = random_u64(),
                                           .compare_mask = random_u64() },
                                    ar_got;
        CHECK_EQ(rdmap_atomic_request_pack(head, 1, &ar), RDMAP_HEAD_MAX);
        CHECK_EQ(rdmap_atomic_request_unpack(head + 20, 52, &ar_got, &fault), SN_OK);
        check_atomic(&ar_got, &ar);
        struct rdmap_atomic_response as = { (uint32_t)random_u64(), random_u64() }, as_got;
        CHECK_EQ(rdmap_atomic_response_pack(head, 1, &as), 32);
        CHECK_EQ(rdmap_atomic_response_unpack(head + 20, 12, &as_got), SN_OK);
        CHECK_EQ(as_got.id, as.id);
        CHECK_EQ(as_got.original, as.original);
        uint64_t imm = random_u64(), imm_got;
        CHECK_EQ(rdmap_immediate_pack(head, true, 1, imm), 28);
        CHECK_EQ(rdmap_immediate_unpack(head + 20, 8, &imm_got), SN_OK);
        CHECK_EQ(imm_got, imm);
    }
}

static void ddp_header_random_values_survive_the_round_trip(void) {
    for (int round = 0; round < 500; round++) {
        uint8_t buf[DDP_HEADER_MAX];
        struct ddp_header h;
        uint32_t a = (uint32_t)random_u64(), b = (uint32_t)random_u64();
        uint32_t c = (uint32_t)random_u64(), d = (uint32_t)random_u64();
        uint64_t to = random_u64();
        uint8_t ulp = (uint8_t)random_u64();
        bool last = random_bool();
        CHECK_EQ(ddp_tagged_pack(buf, last, ulp, a, to), DDP_TAGGED_LEN);
        CHECK_EQ(ddp_unpack(buf, 13, &h), SN_E_MORE);
        CHECK_EQ(ddp_unpack(buf, 14, &h), SN_OK);
        CHECK(h.tagged && h.last == last && h.version == 1 && h.ulp == ulp && h.stag == a);
        CHECK(h.to == to && h.qn == 0 && h.msn == 0 && h.mo == 0);
        CHECK_EQ(ddp_untagged_pack(buf, last, ulp, a, b, c, d), DDP_UNTAGGED_LEN);
        CHECK_EQ(ddp_unpack(buf, 0, &h), SN_E_MORE);
        CHECK_EQ(ddp_unpack(buf, 17, &h), SN_E_MORE);
        CHECK_EQ(ddp_unpack(buf, 18, &h), SN_OK);
        CHECK(!h.tagged && h.last == last && h.version == 1 && h.ulp == ulp && h.stag == a);
        CHECK(h.to == 0 && h.qn == b && h.msn == c && h.mo == d);
    }
}

TEST_MAIN(TEST(pack_payload_vectors_gives_golden_bytes), TEST(pack_body_vectors_gives_golden_bytes),
          TEST(unpack_payload_vectors_whole_or_by_octet_gives_fields),
          TEST(unpack_body_vectors_gives_fields), TEST(unpack_marked_vectors_gives_fields),
          TEST(unpack_wrong_ddp_version_names_it), TEST(unpack_wrong_rdmap_version_names_it),
          TEST(unpack_unassigned_opcode_or_wrong_tag_bit_is_unexpected),
          TEST(unpack_reserved_bits_are_ignored), TEST(unpack_wrong_queue_number_names_it),
          TEST(unpack_ulpdu_below_its_header_is_short),
          TEST(unpack_short_ulpdu_with_wrong_version_names_the_version),
          TEST(unpack_body_of_wrong_size_is_refused_per_opcode),
          TEST(unpack_one_segment_message_with_offset_is_refused),
          TEST(unpack_terminate_with_another_msn_is_refused_unanswered),
          TEST(unpack_largest_ulpdu_is_accepted), TEST(fault_every_cause_is_a_code_the_rfcs_define),
          TEST(unpack_truncated_bodies_ask_for_more),
          TEST(unpack_atomic_request_unknown_or_unaligned_is_refused),
          TEST(headers_random_values_survive_the_round_trip),
          TEST(bodies_random_values_survive_the_round_trip),
          TEST(ddp_header_random_values_survive_the_round_trip))
