/* SPDX-License-Identifier: MIT
 * Items 49 to 70: RDMAP.
 */
#include "checklist.h"
#include "support/portable.h"

static void read_request_has_its_layout(struct rig *r) {
    rig_open(r, &foreign_passive);
    fake_post(&r->qp, TP_OP_READ, 0, rig_at(0x40), 0x123, 0x1122334455667788, 0x99AABBCC);
    expect_fpdu(r);
    CHECK_EQ(r->fpdu_len, 52);
    CHECK_EQ(fpdu_be(r, 0, 2), 46);
    CHECK_EQ(fpdu_be(r, 20, 4), FAKE_LOCAL);
    CHECK_EQ(fpdu_be(r, 24, 8), RIG_BASE + 0x40);
    CHECK_EQ(fpdu_be(r, 32, 4), 0x123);
    CHECK_EQ(fpdu_be(r, 36, 4), 0x99AABBCC);
    CHECK_EQ(fpdu_be(r, 40, 8), 0x1122334455667788);
    raw_fin(&r->peer);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
}

static void sink_is_copied_unread(struct rig *r) {
    struct raw_bytes b = { 0 };
    uint32_t got = 0;
    rig_open(r, &foreign_passive);
    raw_read_request(&b, 1, 0xFEDCBA98, 0xFFFFFFFFFFFF0000, 200000, FAKE_REMOTE, RIG_BASE + 3);
    rig_put(r, &b);
    raw_free(&b);
    while (got < 200000) {
        expect_fpdu(r);
        uint32_t n = (uint32_t)fpdu_be(r, 0, 2) - 14;
        CHECK_EQ(r->fpdu[2], got + n == 200000 ? 0xC1 : 0x81);
        CHECK_EQ(fpdu_be(r, 4, 4), 0xFEDCBA98);
        CHECK_EQ(fpdu_be(r, 8, 8), 0xFFFFFFFFFFFF0000 + got); /* through 0, as it must */
        CHECK_BYTES(r->fpdu + 16, r->mem + 3 + got, n);
        got += n;
    }
    CHECK_EQ(got, 200000);
    expect_orderly_end(r);
}

static void read_of_nothing_is_answered(struct rig *r) {
    struct raw_bytes b = { 0 };
    struct profile p = foreign_passive;
    p.ird = 0; /* even then: it may be an RTR */
    rig_open(r, &p);
    raw_read_request(&b, 1, 0x77, 0x88, 0, 0xDEADBEEF, UINT64_MAX);
    rig_put(r, &b);
    raw_free(&b);
    expect_fpdu(r);
    CHECK_EQ(r->fpdu_len, 20);
    CHECK_EQ(fpdu_be(r, 2, 2), 0xC142);
    CHECK_EQ(fpdu_be(r, 4, 4), 0x77);
    CHECK_EQ(fpdu_be(r, 8, 8), 0x88);
    expect_orderly_end(r);
}

static void responses_come_in_order(struct rig *r) {
    static const uint32_t sizes[] = { 100000, 3, 0, 70000 };
    struct raw_bytes b = { 0 };
    rig_open(r, &foreign_passive);
    for (uint32_t i = 0; i < 4; i++)
        raw_read_request(&b, i + 1, 100 + i, 0x1000 * i, sizes[i], FAKE_REMOTE, RIG_BASE + i);
    /* What comes before a Read is in place when it is served. */
    rig_put(r, &b);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t got = 0;
        bool last = false;
        while (!last) {
            expect_fpdu(r);
            CHECK_EQ(fpdu_be(r, 4, 4), 100 + i);
            CHECK_EQ(fpdu_be(r, 8, 8), 0x1000 * i + got);
            got += (uint32_t)fpdu_be(r, 0, 2) - 14;
            last = r->fpdu[2] & 0x40;
        }
        CHECK_EQ(got, sizes[i]);
    }
    b.len = 0;
    raw_write(&b, true, FAKE_REMOTE, RIG_BASE + 0x100, "fresh", 5);
    raw_read_request(&b, 5, 1, 0, 5, FAKE_REMOTE, RIG_BASE + 0x100);
    rig_put(r, &b);
    raw_free(&b);
    expect_fpdu(r);
    CHECK_BYTES(r->fpdu + 16, "fresh", 5);
    memcpy(rig_model(r) + 0x100, "fresh", 5);
    expect_orderly_end(r);
}

static void early_read_is_answered(struct rig *r) {
    struct raw_bytes b = { 0 };
    test_setenv("SOFTND_MPA_REV", "1"); /* a responder of revision 1 need not wait for our FPDU */
    rig_start_connect(r, 4, 4, false);
    test_unsetenv("SOFTND_MPA_REV");
    rig_read_start(r);
    raw_start(&b, true, RAW_C, 1, 0);
    raw_read_request(&b, 1, 1, 0, 8, FAKE_REMOTE, RIG_BASE);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied) == 1 + SN_OK);
    struct iw_conn *c = iw_conn_of(r->qp.conn);
    bool here = false;
    while (!here) { /* the engine has the request */
        os_lock_enter(&c->rx_lock);
        here = c->rx.held_len == 52;
        os_lock_leave(&c->rx_lock);
    }
    CHECK_EQ(iw_ops.complete(r->qp.conn, 4, 4), SN_OK);
    expect_fpdu(r);
    CHECK_EQ(fpdu_be(r, 2, 2), 0xC142);
    CHECK_BYTES(r->fpdu + 16, r->mem, 8);
    expect_orderly_end(r);
}

static void send_takes_one_receive_even_if_empty(struct rig *r) {
    struct raw_bytes b = { 0 };
    struct fake_receive *in[3];
    for (int i = 0; i < 3; i++)
        in[i] = fake_post_receive(&r->qp, rig_at(0x100 * (size_t)i), 16);
    rig_open(r, &foreign_passive);
    raw_send(&b, RDMAP_SEND, true, 0, 1, 0, NULL, 0);
    raw_send(&b, RDMAP_SEND_SE, true, 0, 2, 0, "ab", 2);
    raw_send(&b, RDMAP_SEND, true, 0, 3, 0, "0123456789abcdef", 16);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.recv_count) == 3);
    CHECK_EQ(in[0]->bytes, 0);
    CHECK_EQ(in[0]->flags, 0);
    CHECK_EQ(in[1]->bytes, 2);
    CHECK_EQ(in[1]->flags, TP_RECV_SOLICITED);
    CHECK_EQ(in[2]->bytes, 16);
    memcpy(rig_model(r) + 0x100, "ab", 2);
    memcpy(rig_model(r) + 0x200, "0123456789abcdef", 16);
    expect_orderly_end(r);
}

static void write_before_a_send_is_in_place(struct rig *r) {
    struct raw_bytes b = { 0 };
    rig_open(r, &foreign_passive);
    for (uint32_t i = 0; i < 50; i++) {
        uint8_t octets[3000];
        memset(octets, (int)i + 1, sizeof octets);
        b.len = 0;
        fake_post_receive(&r->qp, rig_at(0x8000), 16);
        raw_write(&b, true, FAKE_REMOTE, RIG_BASE, octets, sizeof octets);
        raw_send(&b, RDMAP_SEND, true, 0, i + 1, 0, NULL, 0);
        rig_put(r, &b);
        WAIT_FOR(os_u32_load_seqcst(&r->qp.recv_count) == i + 1);
        CHECK_BYTES(r->mem, octets, sizeof octets);
        memcpy(rig_model(r), octets, sizeof octets);
    }
    raw_free(&b);
    expect_orderly_end(r);
}

static void invalidate_tells_the_token(struct rig *r) {
    struct raw_bytes b = { 0 };
    struct fake_receive *in = fake_post_receive(&r->qp, rig_at(0), 16);
    rig_open(r, &foreign_passive);
    raw_send(&b, RDMAP_SEND_SE_INV, true, FAKE_REMOTE, 1, 0, "x", 1);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.recv_count) == 1);
    CHECK_EQ(in->flags, TP_RECV_SOLICITED | TP_RECV_INVALIDATED);
    CHECK_EQ(in->invalidated, FAKE_REMOTE);
    memcpy(rig_model(r), "x", 1);
    expect_orderly_end(r);
}

static void read_completes_with_its_response(struct rig *r) {
    struct raw_bytes b = { 0 };
    rig_open(r, &foreign_passive);
    struct fake_request *read = fake_post(&r->qp, TP_OP_READ, 0, rig_at(0), 8, 0x1000, 5);
    struct fake_request *send = fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0x100), 8, 0, 0);
    expect_fpdu(r);
    expect_fpdu(r);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.done_count) == 1);
    CHECK(send->done); /* and so not the Read */
    raw_response(&b, false, FAKE_LOCAL, RIG_BASE, "0123", 4);
    raw_read_request(&b, 1, 1, 0, 0, 1, 0);
    rig_put(r, &b);
    expect_fpdu(r); /* all before it was taken */
    CHECK_EQ(os_u32_load_seqcst(&r->qp.done_count), 1);
    b.len = 0;
    raw_response(&b, true, FAKE_LOCAL, RIG_BASE + 4, "4567", 4);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.done_count) == 2);
    CHECK_EQ(read->status, SN_OK);
    CHECK_BYTES(r->mem, "01234567", 8);
    memcpy(rig_model(r), "01234567", 8);
    expect_orderly_end(r);
}

static void writes_and_reads_are_not_shown(struct rig *r) {
    struct raw_bytes b = { 0 };
    fake_post_receive(&r->qp, rig_at(0x1000), 16);
    rig_open(r, &foreign_passive);
    raw_write(&b, true, FAKE_REMOTE, RIG_BASE, "abc", 3);
    raw_read_request(&b, 1, 1, 0, 3, FAKE_REMOTE, RIG_BASE);
    rig_put(r, &b);
    raw_free(&b);
    expect_fpdu(r);
    CHECK_EQ(os_u32_load_seqcst(&r->qp.recv_count), 0);
    CHECK_EQ(os_u32_load_seqcst(&r->qp.done_count), 0);
    CHECK_EQ(r->qp.rq_taken, 0);
    memcpy(rig_model(r), "abc", 3);
    expect_orderly_end(r);
}

static void first_error_is_the_one_told(struct rig *r) {
    struct raw_bytes b = { 0 }, want = { 0 };
    rig_open(r, &foreign_passive);
    raw_write(&b, true, 0xDEAD, 0, "a", 1);
    raw_send(&b, RDMAP_SEND, true, 0, 9, 0, "b", 1);
    raw_read_request(&b, 1, 1, 0, 9, 0xDEAD, 0);
    rig_put(r, &b);
    expect_fpdu(r);
    raw_terminate_about(&want, 1, 1, 0, 1, b.data);
    CHECK_EQ(r->fpdu_len, want.len);
    CHECK_BYTES(r->fpdu, want.data, want.len);
    CHECK_EQ(raw_read_end(&r->peer), RAW_EOF);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected) == 1 + SN_E_WIRE);
    raw_free(&b);
    raw_free(&want);
}

/* The right to read is lost after the first segments have left. */
static void read_that_fails_half_way_quotes_the_rest(struct rig *r) {
    struct profile p = foreign_passive;
    struct raw_bytes b = { 0 }, about = { 0 }, want = { 0 };
    uint32_t got = 0;
    p.flags |= RAW_M; /* so that a segment that has begun is whole in any case */
    rig_open(r, &p);
    struct iw_conn *c = iw_conn_of(r->qp.conn);
    os_sock_set_buffers(c->watch.sock, 4096, 0);
    os_sock_set_buffers(r->peer.s, 0, 4096);
    raw_read_request(&b, 1, 7, 0x5000, RIG_MEM, FAKE_REMOTE, RIG_BASE);
    rig_put(r, &b);
    expect_fpdu(r);
    os_u32_store_relaxed(&r->qp.revoked, 1);
    while (r->fpdu[3] == 0x42) {
        CHECK_EQ(fpdu_be(r, 8, 8), 0x5000 + got);
        got += (uint32_t)fpdu_be(r, 0, 2) - 14;
        expect_fpdu(r);
    }
    CHECK(got != 0 && got < RIG_MEM);
    raw_read_request(&about, 1, 7, 0x5000 + got, RIG_MEM - got, FAKE_REMOTE, RIG_BASE + got);
    raw_terminate_about(&want, 0, 1, 0, 2, about.data);
    CHECK_EQ(r->fpdu_len, want.len);
    CHECK_BYTES(r->fpdu, want.data, want.len - 4); /* its CRC covers markers */
    CHECK_EQ(raw_read_end(&r->peer), RAW_EOF);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected) == 1 + SN_E_WIRE);
    raw_free(&b);
    raw_free(&about);
    raw_free(&want);
}

/* ---- RFC 7306, by the codecs ---- */

static void immediate_has_8_octets(struct rig *r) {
    (void)r;
    uint8_t head[RDMAP_HEAD_MAX];
    struct rdmap_segment seg;
    struct rdmap_fault fault;
    uint64_t data;
    CHECK_EQ(rdmap_immediate_pack(head, true, 5, 0x0102030405060708), 28);
    CHECK_EQ(head[1], 26);
    CHECK_EQ(rdmap_unpack(head + 2, 26, 26, &seg, &fault), SN_OK);
    CHECK_EQ(seg.qn, 0);
    CHECK_EQ(seg.msn, 5);
    CHECK_EQ(rdmap_immediate_unpack(head + 20, 8, &data), SN_OK);
    CHECK_EQ(data, 0x0102030405060708);
    for (size_t n = 0; n < 30; n++)
        if (n != 8) CHECK_EQ(rdmap_unpack(head + 2, 18 + n, 18 + n, &seg, &fault), SN_E_WIRE);
}

static void atomics_keep_queue_id_and_alignment(struct rig *r) {
    (void)r;
    uint8_t head[RDMAP_HEAD_MAX];
    struct rdmap_segment seg;
    struct rdmap_fault fault;
    struct rdmap_atomic_request ar = { .op = RDMAP_FETCH_ADD, .id = 0x55, .stag = 9, .to = 8 }, got;
    struct rdmap_atomic_response answer = { 0x55, 41 }, back;
    for (unsigned op = 0; op < 16; op++) {
        ar.op = (uint8_t)op;
        CHECK_EQ(rdmap_atomic_request_pack(head, 3, &ar), 72);
        CHECK_EQ(rdmap_unpack(head + 2, 70, 70, &seg, &fault), SN_OK);
        CHECK_EQ(seg.qn, 1);
        sn_status st = rdmap_atomic_request_unpack(head + 20, 52, &got, &fault);
        CHECK_EQ(st, op == RDMAP_FETCH_ADD || op == RDMAP_CMP_SWAP ? SN_OK : SN_E_WIRE);
        if (st == SN_OK) CHECK_EQ(got.id, 0x55);
        if (st != SN_OK) CHECK_EQ(fault.layer << 16 | fault.type << 8 | fault.code, 0x000206);
    }
    ar.op = RDMAP_CMP_SWAP;
    for (uint64_t to = 0; to < 16; to++) {
        ar.to = to;
        rdmap_atomic_request_pack(head, 3, &ar);
        sn_status st = rdmap_atomic_request_unpack(head + 20, 52, &got, &fault);
        CHECK_EQ(st, to % 8 ? SN_E_WIRE : SN_OK);
        if (to % 8) CHECK_EQ(fault.layer << 16 | fault.type << 8 | fault.code, 0x000207);
    }
    CHECK_EQ(rdmap_atomic_response_pack(head, 1, &answer), 32);
    CHECK_EQ(rdmap_unpack(head + 2, 30, 30, &seg, &fault), SN_OK);
    CHECK_EQ(seg.qn, 3);
    CHECK_EQ(rdmap_atomic_response_unpack(head + 20, 12, &back), SN_OK);
    CHECK_EQ(back.id, 0x55);
    CHECK_EQ(back.original, 41);
}

const struct check rdmap_checks[] = {
    PLAYS("49 66", versions_and_opcodes_are_judged,
          "rdmap_version_0_untagged rdmap_version_2_tagged rdmap_version_3_untagged opcode_c "
          "opcode_f opcode_f_tagged write_untagged read_request_tagged read_response_untagged "
          "send_tagged response_nobody_asked_for"),
    PLAYS("49 50", reserved_bits_are_ignored, "reserved_bits_set"),
    PLAYS("51", queue_of_another_opcode_is_refused,
          "send_qn_1 send_qn_2 send_qn_ffffffff read_qn_0 read_qn_2 terminate_qn_0 terminate_qn_1"),
    CHECKS("52", read_request_has_its_layout),
    CHECKS("40 52", sink_is_copied_unread),
    CHECKS("53", read_of_nothing_is_answered),
    PLAYS("53", read_of_nothing_with_any_stag, "read_of_0_with_any_stag"),
    PLAYS("54", read_source_is_validated,
          "read_stag_unknown read_without_right read_of_another_domain read_before_the_region "
          "read_over_the_end read_of_4_gib read_wraps_around"),
    CHECKS("55", responses_come_in_order),
    CHECKS("55", early_read_is_answered),
    PLAYS("56", reads_beyond_ird_are_refused,
          "reads_beyond_ird_in_one_piece responses_that_nobody_collects"),
    CHECKS("57", send_takes_one_receive_even_if_empty),
    PLAYS("57", send_that_is_too_long_is_refused,
          "send_too_long_by_1 send_of_1_into_a_receive_of_0"),
    CHECKS("58", write_before_a_send_is_in_place),
    CHECKS("59", invalidate_tells_the_token),
    PLAYS("59", stag_that_cannot_be_invalidated_is_refused,
          "invalidate_stag_unknown invalidate_stag_0 invalidate_of_another_domain "
          "invalidate_that_may_be"),
    CHECKS("60", read_completes_with_its_response),
    CHECKS("61", writes_and_reads_are_not_shown),
    CHECKS("62 63", first_error_is_the_one_told),
    PLAYS("62", terminate_of_another_shape_is_not_answered,
          "terminate_msn_2 terminate_mo_4 terminate_not_last terminate_body_53"),
    PLAYS("63", terminate_of_the_peer_is_delivered,
          "terminate_1_2_02 terminate_0_1_01 terminate_2_0_02 terminate_for_our_read_bounds"),
    CHECKS("64", read_that_fails_half_way_quotes_the_rest),
    PLAYS("65", other_octets_end_the_stream, "request_in_an_open_stream noise_in_an_open_stream"),
    CHECKS("67", immediate_has_8_octets),
    PLAYS("67", immediate_is_refused, "immediate immediate_se"),
    CHECKS("68 69", atomics_keep_queue_id_and_alignment),
    PLAYS("68 69 70", atomics_are_refused, "atomic_request atomic_response"),
};
const size_t rdmap_check_count = SN_ARRAY_LEN(rdmap_checks);
