/* SPDX-License-Identifier: MIT
 * Items 1 to 23: MPA start-up.
 */
#include "checklist.h"
#include "support/portable.h"
#include <stdlib.h>

/* A frame of the raw initiator, taken and answered. */
static void passive(struct rig *r, struct profile p) {
    rig_open(r, &p);
}

static void our_key_is_exact(struct rig *r) {
    rig_open(r, &foreign_passive);
    CHECK_BYTES(r->start, "MPA ID Rep Frame", 16);
    expect_orderly_end(r);
    rig_done(r);
    rig_open(r, &foreign_active);
    CHECK_BYTES(r->start, "MPA ID Req Frame", 16);
    expect_orderly_end(r);
}

static void frame_of_532_in_pieces_is_taken(struct rig *r) {
    static const size_t cuts[] = { 0, 1, 2, 3, 5, 7, 19, 20, 21, 531 };
    for (size_t i = 0; i < SN_ARRAY_LEN(cuts); i++) {
        struct profile p = foreign_passive;
        struct tp_conn_info info;
        p.pd = hostile_payload();
        p.pd_len = 508;
        p.chunk = cuts[i];
        passive(r, p);
        iw_ops.info(r->qp.conn, &info);
        CHECK_EQ(info.pd_len, 508);
        CHECK_BYTES(info.pd, hostile_payload(), 508);
        expect_orderly_end(r);
        rig_done(r);
        p.active = true;
        p.word2 = RAW_RTR_WRITE | 8;
        rig_open(r, &p);
        iw_ops.info(r->qp.conn, &info);
        CHECK_EQ(info.pd_len, 508);
        expect_orderly_end(r);
        rig_done(r);
    }
}

static void reserved_flags_are_0_and_ignored(struct rig *r) {
    struct profile p = foreign_passive;
    p.flags |= 0x0F;
    passive(r, p);
    CHECK_EQ(r->start[16] & 0x0F, 0);
    expect_orderly_end(r);
    rig_done(r);
    p = foreign_active;
    p.flags |= 0x0F;
    rig_open(r, &p);
    CHECK_EQ(r->start[16] & 0x0F, 0);
    expect_orderly_end(r);
}

static void revision_1_is_answered_with_1(struct rig *r) {
    struct profile p = { .flags = RAW_C, .rev = 1, .pd = "ab", .pd_len = 2, .ird = 4, .ord = 4 };
    p.rtr = RTR_NONE;
    passive(r, p);
    CHECK_EQ(r->start[16], RAW_C);
    CHECK_EQ(r->start[17], 1);
    CHECK_EQ(r->start_len, 20);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.established) == 1 + SN_OK);
    struct raw_bytes b = { 0 };
    fake_post_receive(&r->qp, rig_at(0), 16);
    raw_send(&b, RDMAP_SEND, true, 0, 1, 0, "first", 5);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.recv_count) == 1);
    memcpy(rig_model(r), "first", 5);
    expect_orderly_end(r);
}

static void enhanced_request_gets_enhanced_reply(struct rig *r) {
    passive(r, foreign_passive);
    CHECK_EQ(r->start[16], RAW_C | RAW_S);
    CHECK_EQ(r->start[17], 2);
    CHECK_EQ(r->start_len, 24);
    expect_orderly_end(r);
    rig_done(r);
    /* A reject as well, and its private data behind the words. */
    struct raw_bytes b = { 0 };
    raw_start2(&b, false, 0, RAW_A | 8, RAW_RTR_READ | 8, NULL, 0);
    rig_connect_raw(r, 0);
    rig_put(r, &b);
    raw_free(&b);
    rig_await_request(r);
    CHECK_EQ(iw_ops.reject(r->qp.conn, "no", 2), SN_OK);
    rig_read_start(r);
    CHECK_EQ(r->start[16] & (RAW_R | RAW_S), RAW_R | RAW_S);
    CHECK_EQ(r->start[17], 2);
    CHECK_EQ(r->start_len, 26);
    CHECK_BYTES(r->start + 24, "no", 2);
    CHECK_EQ(raw_read_end(&r->peer), RAW_EOF);
}

static void reject_of_revision_1_is_plain(struct rig *r) {
    struct raw_bytes b = { 0 };
    raw_start(&b, false, 0, 1, 0);
    rig_connect_raw(r, 0);
    rig_put(r, &b);
    raw_free(&b);
    rig_await_request(r);
    CHECK_EQ(iw_ops.reject(r->qp.conn, "no", 2), SN_OK);
    rig_read_start(r);
    CHECK_EQ(r->start[16], RAW_R);
    CHECK_EQ(r->start[17], 1);
    CHECK_EQ(r->start_len, 22);
    CHECK_EQ(raw_read_end(&r->peer), RAW_EOF);
}

static void revision_2_without_s_is_answered_without(struct rig *r) {
    struct profile p = { .flags = RAW_C, .rev = 2, .pd = "plain", .pd_len = 5 };
    struct tp_conn_info info;
    p.rtr = RTR_NONE;
    passive(r, p);
    CHECK_EQ(r->start[16], RAW_C);
    CHECK_EQ(r->start[17], 2);
    CHECK_EQ(r->start_len, 20);
    iw_ops.info(r->qp.conn, &info);
    CHECK_EQ(info.pd_len, 5);
    CHECK_BYTES(info.pd, "plain", 5);
    expect_orderly_end(r);
}

static void revision_1_request_is_plain(struct rig *r) {
    struct profile p = { .active = true, .flags = RAW_C, .rev = 1, .ird = 4, .ord = 4 };
    test_setenv("SOFTND_MPA_REV", "1");
    rig_start_connect(r, 4, 4, false);
    test_unsetenv("SOFTND_MPA_REV");
    rig_read_start(r);
    CHECK_EQ(r->start[16], RAW_C);
    CHECK_EQ(r->start[17], 1);
    CHECK_EQ(r->start_len, 26);
    CHECK_BYTES(r->start + 20, "active", 6);
    (void)p;
}

/* ---- CRC ---- */

static void crc_case(struct rig *r, bool active, bool theirs, bool ours) {
    struct profile p = active ? foreign_active : foreign_passive;
    bool on = theirs || ours;
    p.flags = (uint8_t)((p.flags & ~RAW_C) | (theirs ? RAW_C : 0));
    if (!ours) test_setenv("SOFTND_CRC", "off");
    p.rtr = active ? p.rtr : RTR_NONE;
    rig_open(r, &p);
    test_unsetenv("SOFTND_CRC");
    CHECK_EQ((r->start[16] & RAW_C) != 0, active ? ours : on);
    struct raw_bytes b = { 0 };
    fake_post_receive(&r->qp, rig_at(0), 16);
    fake_post_receive(&r->qp, rig_at(16), 16);
    raw_send(&b, RDMAP_SEND, true, 0, 1, 0, "one", 3);
    if (on) { /* checked: the second one is spoilt and refused */
        raw_send(&b, RDMAP_SEND, true, 0, 2, 0, "two", 3);
        b.data[b.len - 1] ^= 1;
    } else { /* not looked at */
        b.data[b.len - 1] ^= 1;
        raw_send(&b, RDMAP_SEND, true, 0, 2, 0, "two", 3);
        memset(b.data + b.len - 4, 0, 4);
    }
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.recv_count) >= (on ? 1u : 2u));
    if (on) {
        expect_fpdu(r);
        CHECK_EQ(fpdu_be(r, 20, 2), 0x2002);
        memcpy(r->model + RIG_GUARD, r->mem, 32); /* the spoilt one may be there in part */
        return;
    }
    memcpy(rig_model(r), "one", 3);
    memcpy(rig_model(r) + 16, "two", 3);
    fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0), 3, 0, 0);
    expect_fpdu(r); /* whose CRC field is 0: raw_read_fpdu looks */
    CHECK_EQ(r->fpdu_len, 28);
    CHECK_EQ(fpdu_be(r, 24, 4), 0);
    expect_orderly_end(r);
}

static void crc_is_on_when_either_side_asks(struct rig *r) {
    for (int i = 0; i < 6; i++) {
        static const bool theirs[] = { false, true, true }, ours[] = { true, false, true };
        crc_case(r, i >= 3, theirs[i % 3], ours[i % 3]);
        rig_done(r);
    }
}

static void crc_is_not_checked_when_neither_asks(struct rig *r) {
    crc_case(r, false, false, false);
    rig_done(r);
    crc_case(r, true, false, false);
}

/* ---- who may speak ---- */

static void send_before_the_first_fpdu_waits(struct rig *r) {
    static const uint16_t words[] = { RAW_A | 8, 8 };
    for (int i = 0; i < 2; i++) { /* peer to peer, client and server */
        struct profile p = foreign_passive;
        struct raw_bytes b = { 0 };
        p.rtr = RTR_NONE;
        p.word1 = words[i];
        rig_open(r, &p);
        if (i == 1) WAIT_FOR(os_u32_load_seqcst(&r->qp.established) == 1 + SN_OK);
        fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0), 4, 0, 0);
        expect_silence(r, 150);
        raw_write(&b, true, 1, 0, NULL, 0);
        rig_put(r, &b);
        raw_free(&b);
        expect_fpdu(r);
        CHECK_EQ(fpdu_be(r, 2, 2), 0x4143);
        expect_orderly_end(r);
        rig_done(r);
    }
}

static void send_before_the_reply_waits(struct rig *r) {
    struct raw_bytes b = { 0 };
    fake_add(&r->qp, TP_OP_SEND, 0, rig_at(0), 4, 0, 0);
    rig_start_connect(r, 4, 4, false);
    rig_read_start(r);
    r->qp.conn->ops->post_send(r->qp.conn);
    expect_silence(r, 100);
    raw_start2(&b, true, 0, RAW_A | 8, RAW_RTR_WRITE | 8, NULL, 0);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied));
    expect_silence(r, 100);
    CHECK_EQ(iw_ops.complete(r->qp.conn, 4, 4), SN_OK);
    expect_fpdu(r); /* the Send; the mark before it is the RTR */
    CHECK_EQ(fpdu_be(r, 2, 2), 0x4143);
    expect_orderly_end(r);
}

static void nothing_follows_a_reject(struct rig *r) {
    struct raw_bytes b = { 0 };
    fake_add(&r->qp, TP_OP_SEND, 0, rig_at(0), 4, 0, 0);
    rig_start_connect(r, 4, 4, false);
    rig_read_start(r);
    raw_start2(&b, true, RAW_R, RAW_A | 8, RAW_RTR_WRITE | 8, "no", 2);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied) == 1 + SN_E_REFUSED);
    raw_fin(&r->peer);
    enum raw_result res = raw_read_end(&r->peer);
    CHECK(res == RAW_EOF || res == RAW_RESET);
}

/* ---- depths ---- */

/* Posts `want` Reads and counts the requests that come before the first is answered. */
static void expect_outstanding(struct rig *r, uint32_t want, uint32_t limit) {
    struct raw_bytes b = { 0 };
    for (uint32_t i = 0; i < want; i++)
        fake_post(&r->qp, TP_OP_READ, 0, rig_at(64 * i), 8, 0x1000, 5);
    for (uint32_t i = 0; i < limit; i++) {
        expect_fpdu(r);
        CHECK_EQ(fpdu_be(r, 2, 2), 0x4141);
    }
    if (want == limit) return;
    expect_silence(r, 100);
    raw_response(&b, true, FAKE_LOCAL, RIG_BASE, "8 octets", 8);
    rig_put(r, &b);
    raw_free(&b);
    expect_fpdu(r); /* a place is free */
    CHECK_EQ(fpdu_be(r, 2, 2), 0x4141);
    memcpy(rig_model(r), "8 octets", 8);
}

static void responder_issues_no_more_reads_than_ird(struct rig *r) {
    struct profile p = foreign_passive;
    p.word1 = RAW_A | 2;
    p.ord = 8;
    rig_open(r, &p);
    CHECK((r->start[22] << 8 | r->start[23]) % 0x4000 <= 2);
    expect_outstanding(r, 5, 2);
}

static void initiator_issues_no_more_reads_than_ird(struct rig *r) {
    struct profile p = foreign_active;
    p.word1 = RAW_A | 3;
    p.ord = 8;
    rig_open(r, &p);
    expect_outstanding(r, 5, 3);
}

static void initiator_serves_what_the_reply_wants(struct rig *r) {
    struct profile p = foreign_active;
    struct raw_bytes b = { 0 };
    p.word2 = RAW_RTR_READ | 10;
    p.ird = 2;
    rig_open(r, &p);
    for (uint32_t i = 1; i <= 10; i++)
        raw_read_request(&b, i, 1, 0, 8, FAKE_REMOTE, RIG_BASE);
    rig_put(r, &b);
    raw_free(&b);
    for (uint32_t i = 1; i <= 10; i++) {
        expect_fpdu(r);
        CHECK_EQ(fpdu_be(r, 2, 2), 0xC142);
    }
    expect_orderly_end(r);
}

static uint32_t reply_ird(const struct rig *r) {
    return (uint32_t)(r->start[20] << 8 | r->start[21]) & 0x3FFF;
}
static uint32_t reply_ord(const struct rig *r) {
    return (uint32_t)(r->start[22] << 8 | r->start[23]) & 0x3FFF;
}

static void any_depth_leaves_values_alone(struct rig *r) {
    static const uint32_t ours[] = { 4, 0 }; /* even an IRD of 0 with a Read as RTR */
    for (int i = 0; i < 2; i++) {
        struct profile p = foreign_passive;
        p.word1 = RAW_A | 0x3FFF;
        p.word2 = RAW_RTR_READ | 0x3FFF;
        p.ird = ours[i];
        p.rtr = RTR_READ;
        rig_open(r, &p);
        CHECK_EQ(reply_ird(r), 0x3FFF);
        CHECK_EQ(reply_ord(r), 0x3FFF);
        expect_outstanding(r, 4, 4); /* our own 4 */
        rig_done(r);
    }
    /* One of the two alone. */
    struct profile p = foreign_passive;
    p.word1 = RAW_A | 0x3FFF;
    p.word2 = RAW_RTR_WRITE | 3;
    rig_open(r, &p);
    CHECK_EQ(reply_ird(r), 4);
    CHECK_EQ(reply_ord(r), 0x3FFF);
    expect_orderly_end(r);
    rig_done(r);
    p.word1 = RAW_A | 3;
    p.word2 = RAW_RTR_WRITE | 0x3FFF;
    rig_open(r, &p);
    CHECK_EQ(reply_ird(r), 0x3FFF);
    CHECK_EQ(reply_ord(r), 3);
    expect_orderly_end(r);
}

static void any_depth_in_a_reply_leaves_values_alone(struct rig *r) {
    struct profile p = foreign_active;
    p.word1 = RAW_A | 0x3FFF;
    p.word2 = RAW_RTR_READ | 0x3FFF;
    p.ord = 3;
    rig_open(r, &p);
    expect_outstanding(r, 5, 3);
}

static void depths_of_the_peer_are_told(struct rig *r) {
    struct tp_conn_info info;
    struct raw_bytes b = { 0 };
    struct profile p = foreign_passive;
    p.word1 = RAW_A | 11;
    p.word2 = RAW_RTR_READ | RAW_RTR_WRITE | 12;
    rig_open(r, &p);
    iw_ops.info(r->qp.conn, &info);
    CHECK_EQ(info.peer_ird, 11);
    CHECK_EQ(info.peer_ord, 12);
    expect_orderly_end(r);
    rig_done(r);
    p = foreign_active;
    p.word1 = RAW_A | 13;
    p.word2 = RAW_RTR_READ | 14;
    rig_open(r, &p);
    iw_ops.info(r->qp.conn, &info);
    CHECK_EQ(info.peer_ird, 13);
    CHECK_EQ(info.peer_ord, 14);
    expect_orderly_end(r);
    rig_done(r);
    rig_start_connect(r, 4, 4, false);
    raw_start2(&b, true, RAW_R, 15, 16, "why", 3);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied) == 1 + SN_E_REFUSED);
    iw_ops.info(r->qp.conn, &info);
    CHECK_EQ(info.peer_ird, 15);
    CHECK_EQ(info.peer_ord, 16);
    CHECK_EQ(info.pd_len, 3);
    CHECK_BYTES(info.pd, "why", 3);
}

/* ---- peer to peer ---- */

static void a_is_echoed(struct rig *r) {
    struct profile p = foreign_passive;
    rig_open(r, &p);
    CHECK(r->start[20] & 0x80);
    expect_orderly_end(r);
    rig_done(r);
    /* Client and server: whatever B, C and D say. */
    p.word1 = RAW_B | 8;
    p.rtr = RTR_NONE;
    rig_open(r, &p);
    CHECK_EQ(r->start[20] & 0xC0, 0);
    CHECK_EQ(r->start[22] & 0xC0, 0);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.established) == 1 + SN_OK);
    expect_orderly_end(r);
}

static void reply_has_exactly_one_rtr_flag(struct rig *r) {
    for (unsigned offered = 0; offered < 8; offered++) { /* B C D */
        struct profile p = foreign_passive;
        p.word1 = (uint16_t)(RAW_A | 8 | (offered & 4 ? RAW_B : 0));
        p.word2 =
            (uint16_t)(8 | (offered & 2 ? RAW_RTR_WRITE : 0) | (offered & 1 ? RAW_RTR_READ : 0));
        p.rtr = RTR_NONE;
        rig_open(r, &p);
        bool b = r->start[20] & 0x40, c = r->start[22] & 0x80, d = r->start[22] & 0x40;
        CHECK(r->start[20] & 0x80);
        CHECK(!b);
        CHECK_EQ(c + d, 1);
        if ((offered & 3) == 1) CHECK(d);
        if ((offered & 3) == 2) CHECK(c);
        CHECK(!d || reply_ird(r) >= 1);
        rig_done(r);
    }
}

static void rtr_is_what_the_reply_chose(struct rig *r) {
    static const struct {
        uint16_t flags;
        uint8_t opcode;
    } cases[] = { { RAW_RTR_WRITE, 0x40 },
                  { RAW_RTR_READ, 0x41 },
                  { RAW_RTR_WRITE | RAW_RTR_READ, 0x40 } };
    for (size_t i = 0; i < SN_ARRAY_LEN(cases); i++) {
        struct profile p = foreign_active;
        p.word2 = cases[i].flags | 8;
        fake_add(&r->qp, TP_OP_SEND, 0, rig_at(0), 4, 0, 0); /* waits behind it */
        rig_open(r, &p);                                     /* reads the RTR */
        CHECK_EQ(r->fpdu[3], cases[i].opcode);
        CHECK_EQ(r->fpdu_len, cases[i].opcode == 0x40 ? 20 : 52);
        if (cases[i].opcode == 0x41) { /* no STag is 0, nothing is asked for */
            CHECK_EQ(fpdu_be(r, 12, 4), 1);
            CHECK(fpdu_be(r, 20, 4) != 0 && fpdu_be(r, 36, 4) != 0);
            CHECK_EQ(fpdu_be(r, 32, 4), 0);
        } else {
            CHECK(fpdu_be(r, 4, 4) != 0);
        }
        expect_fpdu(r);
        CHECK_EQ(r->fpdu[3], 0x43);
        expect_orderly_end(r);
        rig_done(r);
    }
}

static void request_offers_write_and_read(struct rig *r) {
    rig_start_connect(r, 4, 4, false);
    rig_read_start(r);
    CHECK_EQ(r->start[16], RAW_C | RAW_S);
    CHECK_EQ(r->start[17], 2);
    CHECK_EQ(r->start_len, 30);
    CHECK_EQ(r->start[20] << 8 | r->start[21], RAW_A | 4);
    CHECK_EQ(r->start[22] << 8 | r->start[23], RAW_RTR_WRITE | RAW_RTR_READ | 4);
    CHECK_BYTES(r->start + 24, "active", 6);
}

const struct check start_checks[] = {
    CHECKS("1", our_key_is_exact),
    PLAYS("1", wrong_key_closes,
          "raw_key_wrong_in_octet_0 raw_key_wrong_in_octet_9 raw_key_wrong_in_octet_14 "
          "raw_key_in_lower_case reply_zeros reply_http"),
    PLAYS("2", key_of_the_own_role_closes, "reply_with_request_key raw_reply_key_at_a_listener"),
    CHECKS("3", frame_of_532_in_pieces_is_taken),
    PLAYS("3", private_data_above_512_closes,
          "raw_pd_513 raw_pd_513_enhanced raw_pd_65535 reply_pd_513 reply_pd_65535"),
    PLAYS("4", unknown_revision_closes,
          "raw_revision_0 raw_revision_3 raw_revision_255 reply_revision_0 reply_revision_3"),
    CHECKS("5", reserved_flags_are_0_and_ignored),
    CHECKS("6", revision_1_is_answered_with_1),
    CHECKS("6", reject_of_revision_1_is_plain),
    CHECKS("7", enhanced_request_gets_enhanced_reply),
    CHECKS("8", revision_2_without_s_is_answered_without),
    CHECKS("9", revision_1_request_is_plain),
    CHECKS("9 19", request_offers_write_and_read),
    CHECKS("10", crc_is_on_when_either_side_asks),
    CHECKS("11", crc_is_not_checked_when_neither_asks),
    CHECKS("13", send_before_the_first_fpdu_waits),
    PLAYS("13", bad_first_fpdu_is_not_answered, "first_crc_bad first_noise"),
    CHECKS("14", send_before_the_reply_waits),
    CHECKS("14", nothing_follows_a_reject),
    CHECKS("15 56", responder_issues_no_more_reads_than_ird),
    CHECKS("16 56", initiator_issues_no_more_reads_than_ird),
    CHECKS("16", initiator_serves_what_the_reply_wants),
    PLAYS("16", insufficient_ird_is_terminated, "reply_ord_129 reply_ord_3ffe"),
    CHECKS("17", any_depth_leaves_values_alone),
    CHECKS("17", any_depth_in_a_reply_leaves_values_alone),
    CHECKS("18", depths_of_the_peer_are_told),
    CHECKS("19", a_is_echoed),
    CHECKS("20", reply_has_exactly_one_rtr_flag),
    CHECKS("21", rtr_is_what_the_reply_chose),
    PLAYS("22", no_common_rtr_is_terminated,
          "reply_without_rtr reply_with_rtr_by_send_only reply_without_peer_to_peer"),
    PLAYS("23", start_up_that_stops_ends,
          "loris_says_nothing loris_trickles_a_request loris_trickles_a_reply "
          "loris_trickles_the_first_fpdu"),
};
const size_t start_check_count = SN_ARRAY_LEN(start_checks);
