/* SPDX-License-Identifier: MIT
 * Items 36 to 48: DDP.
 */
#include "checklist.h"

/* One of each message that we send, as octets 2 and 3. */
static void control_octets_are_versions_and_opcodes(struct rig *r) {
    struct raw_bytes b = { 0 };
    rig_open(r, &foreign_passive);
    static const struct {
        enum tp_op op;
        uint8_t flags;
        uint16_t control;
    } ops[] = { { TP_OP_SEND, 0, 0x4143 },
                { TP_OP_SEND, TP_F_INVALIDATE, 0x4144 },
                { TP_OP_SEND, TP_F_SOLICIT, 0x4145 },
                { TP_OP_SEND, TP_F_SOLICIT | TP_F_INVALIDATE, 0x4146 },
                { TP_OP_WRITE, 0, 0xC140 },
                { TP_OP_READ, 0, 0x4141 } };
    for (size_t i = 0; i < SN_ARRAY_LEN(ops); i++) {
        fake_post(&r->qp, ops[i].op, ops[i].flags, rig_at(0), 8, 0x1000, 0xABCD);
        expect_fpdu(r);
        CHECK_EQ(fpdu_be(r, 2, 2), ops[i].control);
        bool tagged = ops[i].control & 0x8000;
        bool stag = tagged || (ops[i].flags & TP_F_INVALIDATE);
        CHECK_EQ(fpdu_be(r, 4, 4), stag ? 0xABCD : 0);
        if (!tagged) CHECK_EQ(fpdu_be(r, 8, 4), ops[i].op == TP_OP_READ ? 1 : 0);
        if (!tagged) CHECK_EQ(fpdu_be(r, 16, 4), 0);
    }
    raw_read_request(&b, 1, 3, 4, 8, FAKE_REMOTE, RIG_BASE);
    rig_put(r, &b);
    expect_fpdu(r);
    CHECK_EQ(fpdu_be(r, 2, 2), 0xC142);
    b.len = 0;
    raw_write(&b, true, 0xDEAD, 0, "x", 1);
    rig_put(r, &b);
    raw_free(&b);
    expect_fpdu(r);
    CHECK_EQ(fpdu_be(r, 2, 2), 0x4147);
    CHECK_EQ(fpdu_be(r, 4, 4), 0);
    CHECK_EQ(fpdu_be(r, 8, 4), 2);
    CHECK_EQ(fpdu_be(r, 12, 4), 1);
}

/* Reads one message of 200000 octets in segments and judges their headers. */
static void judge_segments(struct rig *r, bool tagged, uint32_t msn) {
    uint32_t got = 0, head = tagged ? 16 : 20, segments = 0;
    while (got < 200000) {
        expect_fpdu(r);
        uint32_t n = (uint32_t)fpdu_be(r, 0, 2) - (head - 2);
        bool last = got + n == 200000;
        CHECK_EQ(r->fpdu[2], (tagged ? 0x80 : 0) | (last ? 0x40 : 0) | 1);
        CHECK(n != 0);
        if (tagged) {
            CHECK_EQ(fpdu_be(r, 4, 4), 0xABCD);
            CHECK_EQ(fpdu_be(r, 8, 8), 0x1234567890 + got);
        } else {
            CHECK_EQ(fpdu_be(r, 4, 4), 0xABCD); /* to be invalidated, in each */
            CHECK_EQ(fpdu_be(r, 3, 1), 0x44);
            CHECK_EQ(fpdu_be(r, 8, 4), 0);
            CHECK_EQ(fpdu_be(r, 12, 4), msn);
            CHECK_EQ(fpdu_be(r, 16, 4), got);
        }
        CHECK_BYTES(r->fpdu + head, r->mem + got, n);
        got += n;
        segments++;
    }
    CHECK(segments >= 4);
}

static void segments_of_a_message_agree(struct rig *r) {
    rig_open(r, &foreign_passive);
    fake_post(&r->qp, TP_OP_SEND, TP_F_INVALIDATE, rig_at(0), 200000, 0, 0xABCD);
    judge_segments(r, false, 1);
    fake_post(&r->qp, TP_OP_WRITE, 0, rig_at(0), 200000, 0x1234567890, 0xABCD);
    judge_segments(r, true, 0);
    fake_post(&r->qp, TP_OP_SEND, TP_F_INVALIDATE, rig_at(0), 200000, 0, 0xABCD);
    judge_segments(r, false, 2);
    expect_orderly_end(r);
}

static void msn_counts_each_queue_and_wraps(struct rig *r) {
    static const uint32_t want[] = { 0xFFFFFFFE, 0xFFFFFFFF, 0, 1 };
    struct raw_bytes b = { 0 };
    rig_open(r, &foreign_passive);
    fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0), 4, 0, 0);
    expect_fpdu(r);
    CHECK_EQ(fpdu_be(r, 12, 4), 1);
    fake_post(&r->qp, TP_OP_READ, 0, rig_at(0), 4, 0, 5);
    expect_fpdu(r);
    CHECK_EQ(fpdu_be(r, 12, 4), 1);
    fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0), 4, 0, 0);
    expect_fpdu(r);
    CHECK_EQ(fpdu_be(r, 12, 4), 2);
    /* Four thousand million messages later. */
    struct iw_conn *c = iw_conn_of(r->qp.conn);
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    c->tx.send_msn = c->tx.read_msn = 0xFFFFFFFE;
    c->rx.send_msn = c->rx.read_msn = 0xFFFFFFFE;
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
    for (int i = 0; i < 4; i++) {
        fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0), 4, 0, 0);
        expect_fpdu(r);
        CHECK_EQ(fpdu_be(r, 12, 4), want[i]);
        fake_post_receive(&r->qp, rig_at(0x1000), 16);
        raw_send(&b, RDMAP_SEND, true, 0, want[i], 0, NULL, 0);
        raw_read_request(&b, want[i], 1, 0, 4, FAKE_REMOTE, RIG_BASE);
    }
    rig_put(r, &b);
    raw_free(&b);
    for (int i = 0; i < 4; i++) {
        expect_fpdu(r);
        CHECK_EQ(fpdu_be(r, 2, 2), 0xC142);
    }
    WAIT_FOR(os_u32_load_seqcst(&r->qp.recv_count) == 4);
    expect_orderly_end(r);
}

static void message_of_no_octets_is_one_segment(struct rig *r) {
    struct raw_bytes b = { 0 };
    rig_open(r, &foreign_passive);
    fake_post(&r->qp, TP_OP_SEND, 0, NULL, 0, 0, 0);
    expect_fpdu(r);
    CHECK_EQ(r->fpdu_len, 24);
    CHECK_EQ(fpdu_be(r, 2, 2), 0x4143);
    fake_post(&r->qp, TP_OP_WRITE, 0, NULL, 0, 0x55, 0x66);
    expect_fpdu(r);
    CHECK_EQ(r->fpdu_len, 20);
    CHECK_EQ(fpdu_be(r, 2, 2), 0xC140);
    fake_post(&r->qp, TP_OP_READ, 0, NULL, 0, 0x55, 0x66);
    expect_fpdu(r);
    CHECK_EQ(r->fpdu_len, 52);
    CHECK_EQ(fpdu_be(r, 32, 4), 0);
    raw_response(&b, true, 0x12345678, 0xFFFFFFFFFFFFFFFF, NULL, 0); /* not looked at */
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.done_count) == 3);
    CHECK_EQ(r->qp.sq[2].status, SN_OK);
    expect_orderly_end(r);
}

static void messages_leave_in_order(struct rig *r) {
    static const enum tp_op ops[] = { TP_OP_SEND, TP_OP_WRITE, TP_OP_READ, TP_OP_SEND,
                                      TP_OP_READ, TP_OP_WRITE, TP_OP_SEND, TP_OP_WRITE };
    static const uint8_t low[] = { [TP_OP_SEND] = 3, [TP_OP_WRITE] = 0, [TP_OP_READ] = 1 };
    rig_open(r, &foreign_passive);
    for (size_t i = 0; i < SN_ARRAY_LEN(ops); i++)
        fake_add(&r->qp, ops[i], 0, rig_at(0), (uint32_t)(10 + 700 * i), 0x1000, 0xABCD);
    r->qp.conn->ops->post_send(r->qp.conn);
    for (size_t i = 0; i < SN_ARRAY_LEN(ops); i++) {
        expect_fpdu(r);
        CHECK_EQ(r->fpdu[3] & 15, low[ops[i]]);
    }
    raw_fin(&r->peer);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
}

static void delivery_waits_for_the_last_segment(struct rig *r) {
    struct raw_bytes b = { 0 };
    struct fake_receive *one = fake_post_receive(&r->qp, rig_at(0), 100);
    struct fake_receive *two = fake_post_receive(&r->qp, rig_at(0x1000), 100);
    rig_open(r, &foreign_passive);
    raw_send(&b, RDMAP_SEND, false, 0, 1, 0, hostile_payload(), 40);
    raw_read_request(&b, 1, 1, 0, 4, FAKE_REMOTE, RIG_BASE + 0x2000);
    rig_put(r, &b);
    expect_fpdu(r); /* the response: all before it was taken */
    CHECK_EQ(os_u32_load_seqcst(&r->qp.recv_count), 0);
    b.len = 0;
    raw_send(&b, RDMAP_SEND, true, 0, 1, 40, hostile_payload() + 40, 20);
    raw_send(&b, RDMAP_SEND, true, 0, 2, 0, hostile_payload(), 3);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.recv_count) == 2);
    CHECK_EQ(one->bytes, 60);
    CHECK_EQ(two->bytes, 3);
    memcpy(rig_model(r), hostile_payload(), 60);
    memcpy(rig_model(r) + 0x1000, hostile_payload(), 3);
    expect_orderly_end(r);
}

const struct check ddp_checks[] = {
    CHECKS("36 49 50 51", control_octets_are_versions_and_opcodes),
    PLAYS("36", ddp_version_is_judged_reserved_bits_are_not,
          "ddp_version_0_untagged ddp_version_2_untagged ddp_version_3_tagged reserved_bits_set"),
    CHECKS("37 38 40", segments_of_a_message_agree),
    CHECKS("39", msn_counts_each_queue_and_wraps),
    PLAYS(
        "39 40 45", msn_and_mo_are_judged,
        "send_msn_0 send_msn_2 send_msn_again read_msn_2 send_starts_at_mo_1 segment_leaves_a_gap "
        "segment_overlaps read_at_mo_4"),
    CHECKS("42", message_of_no_octets_is_one_segment),
    PLAYS("42", empty_write_is_not_looked_at,
          "write_of_0_at_stag_0 write_of_0_to_an_unknown_stag write_of_0_without_right"),
    CHECKS("43", messages_leave_in_order),
    CHECKS("44", delivery_waits_for_the_last_segment),
    PLAYS("44", interleaved_messages_are_delivered, "write_and_read_inside_a_send"),
    PLAYS("45", tagged_segments_are_judged,
          "write_stag_unknown write_without_right write_before_the_region write_over_the_end "
          "write_wraps write_walks_out_of_the_region response_of_another_stag response_one_off"),
    PLAYS("45", untagged_segments_are_judged,
          "send_qn_1 send_qn_3 read_qn_0 send_without_receive send_too_long_by_1 "
          "segment_makes_it_too_long_by_1"),
    PLAYS("47", terminate_precedes_the_end, "write_stag_0 send_msn_2"),
    PLAYS("48", stags_of_others_are_refused,
          "write_of_another_domain read_of_another_domain invalidate_of_another_domain"),
};
const size_t ddp_check_count = SN_ARRAY_LEN(ddp_checks);
