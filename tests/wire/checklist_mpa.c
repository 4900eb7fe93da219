/* SPDX-License-Identifier: MIT
 * Items 12 and 24 to 35: MPA in full operation.
 */
#include "checklist.h"
#include "support/unmark.h"

/* ---- a second opinion on CRC and markers: bit by bit, word by word ---- */

static uint32_t slow_crc(uint32_t crc, const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
    }
    return crc;
}

/* Reads `fpdus` FPDUs of a stream with markers from the raw octets and judges each word. */
static uint32_t judge_marked(struct rig *r, uint32_t fpdus) {
    uint32_t pos = 0, seen = 0;
    uint8_t word[4];
    for (uint32_t f = 0; f < fpdus; f++) {
        uint32_t fpdu_at = 0, left = UINT32_MAX, crc = 0xFFFFFFFF;
        bool begun = false;
        while (left != 0) {
            CHECK_EQ(raw_read(&r->peer, word, 4), RAW_OK);
            if (pos % 512 == 0) {
                uint32_t ptr = (uint32_t)(word[2] << 8 | word[3]);
                CHECK_EQ(word[0] << 8 | word[1], 0);
                CHECK_EQ(ptr, begun ? pos - fpdu_at : 0);
                crc = slow_crc(crc, word, 4);
                seen++;
                pos += 4;
                continue;
            }
            if (!begun) {
                fpdu_at = pos;
                begun = true;
                left = (uint32_t)((2 + (word[0] << 8 | word[1]) + 3) & ~3) + 4;
            }
            if (left == 4) { /* the CRC itself, least significant octet first */
                uint32_t want = ~crc;
                for (int i = 0; i < 4; i++)
                    CHECK_EQ(word[i], (uint8_t)(want >> (8 * i)));
            }
            crc = slow_crc(crc, word, 4);
            left -= 4;
            pos += 4;
        }
    }
    CHECK_EQ(seen, (pos + 511) / 512); /* none is missing, none hangs behind the last FPDU */
    return seen;
}

static void markers_are_where_they_belong(struct rig *r) {
    static const uint32_t sizes[] = { 0, 1, 24, 464, 24, 488, 480, 8, 1200, 3, 100000, 5 };
    for (int active = 0; active < 2; active++) {
        struct profile p = active ? foreign_active : foreign_passive;
        p.flags |= RAW_M;
        p.word2 = RAW_RTR_WRITE | 8;
        p.rtr = active ? RTR_NONE : RTR_WRITE;
        uint32_t fpdus = 0;
        if (active) {
            /* Not rig_open: the RTR is judged too, as the first FPDU. */
            struct raw_bytes b = { 0 };
            rig_start_connect(r, 4, 4, false);
            rig_read_start(r);
            raw_start2(&b, true, RAW_M, p.word1, p.word2, NULL, 0);
            rig_put(r, &b);
            raw_free(&b);
            WAIT_FOR(os_u32_load_seqcst(&r->qp.replied) == 1 + SN_OK);
            CHECK_EQ(iw_ops.complete(r->qp.conn, 4, 4), SN_OK);
            fpdus = 1;
        } else {
            rig_open(r, &p);
        }
        for (size_t i = 0; i < SN_ARRAY_LEN(sizes); i++)
            fake_post(&r->qp, i % 3 ? TP_OP_SEND : TP_OP_WRITE, 0, rig_at(i), sizes[i], 0x1000, 5);
        uint32_t most = iw_conn_of(r->qp.conn)->tx.mulpdu;
        for (size_t i = 0; i < SN_ARRAY_LEN(sizes); i++) {
            uint32_t per = most - (i % 3 ? 18u : 14u);
            fpdus += sizes[i] ? (sizes[i] + per - 1) / per : 1;
        }
        CHECK(judge_marked(r, fpdus) > 190);
        expect_orderly_end(r);
        rig_done(r);
    }
}

static void markers_are_left_out_unasked(struct rig *r) {
    rig_open(r, &foreign_passive);
    fake_post(&r->qp, TP_OP_WRITE, 0, rig_at(0), 5000, 0x1000, 5);
    expect_fpdu(r); /* parses without markers, and the CRC is right */
    CHECK_EQ(r->fpdu_len, 5024 - 4);
    CHECK_BYTES(r->fpdu + 16, r->mem, 5000);
    CHECK_EQ(r->start[16] & RAW_M, 0); /* and we want none */
    expect_orderly_end(r);
}

static void markers_with_a_sender_of_ours_decode(struct rig *r) {
    struct profile p = foreign_passive;
    p.flags |= RAW_M;
    rig_open(r, &p);
    fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0), 2000, 0, 0);
    expect_fpdu(r);
    CHECK_EQ(r->fpdu_len, 2024);
    CHECK_BYTES(r->fpdu + 20, r->mem, 2000);
    CHECK_EQ(r->peer.marker_count, 4);
    expect_orderly_end(r);
}

static void marker_low_bits_are_masked(struct rig *r) {
    (void)r;
    struct raw_bytes b = { 0 };
    struct mpa_markers m = { 0 };
    uint8_t ulpdu[600] = { 0x41, 0x43 }, len[2] = { 600 >> 8, 600 & 255 }, run[1024];
    struct mpa_piece pieces[] = { { len, 2 }, { ulpdu, 600 } };
    size_t n;
    CHECK_EQ(mpa_fpdu_mark(&m, pieces, 2, true, run, sizeof run, &n), SN_OK);
    run[512] = 0xAB; /* reserved octets and the low bits of FPDUPTR of the second marker */
    run[513] = 0xCD;
    run[515] |= 3;
    uint32_t crc = ~slow_crc(0xFFFFFFFF, run, n - 4);
    for (int i = 0; i < 4; i++)
        run[n - 4 + (size_t)i] = (uint8_t)(crc >> (8 * i));
    struct mpa_unmarked um;
    m = (struct mpa_markers){ 0 };
    CHECK_EQ(mpa_fpdu_unmark(&m, run, n, true, &um), SN_OK);
    CHECK_EQ(um.ulpdu_len, 600);
    CHECK_BYTES(um.fpdu + 2, ulpdu, 600);
    raw_free(&b);
}

/* ---- FPDUs ---- */

static void pad_is_zero_and_crc_is_there(struct rig *r) {
    rig_open(r, &foreign_passive);
    for (uint32_t n = 0; n < 10; n++) {
        fake_post(&r->qp, TP_OP_SEND, 0, rig_at(n), n, 0, 0);
        expect_fpdu(r); /* PAD and CRC are looked at */
        CHECK_EQ(fpdu_be(r, 0, 2), 18 + n);
        CHECK_EQ(r->fpdu_len % 4, 0);
        CHECK_EQ(r->fpdu_len, ((2 + 18 + n + 3) & ~3u) + 4);
        uint32_t crc = ~slow_crc(0xFFFFFFFF, r->fpdu, r->fpdu_len - 4);
        for (size_t i = 0; i < 4; i++)
            CHECK_EQ(r->fpdu[r->fpdu_len - 4 + i], (uint8_t)(crc >> (8 * i)));
    }
    expect_orderly_end(r);
}

static void crc_of_known_values_is_right(struct rig *r) {
    (void)r;
    uint8_t zeros[32] = { 0 }, ones[32], up[32];
    memset(ones, 0xFF, sizeof ones);
    for (int i = 0; i < 32; i++)
        up[i] = (uint8_t)i;
    CHECK_EQ(sn_crc32c("123456789", 9), 0xE3069283);
    CHECK_EQ(sn_crc32c(zeros, 32), 0x8A9136AA);
    CHECK_EQ(sn_crc32c(ones, 32), 0x62A8AB43);
    CHECK_EQ(sn_crc32c(up, 32), 0x46DD794E);
    CHECK_EQ((uint32_t)~slow_crc(0xFFFFFFFF, up, 32), 0x46DD794E);
}

static void mulpdu_stays_in_bounds(struct rig *r) {
    (void)r;
    for (uint32_t emss = 0; emss < 70000; emss++) {
        uint32_t plain = mpa_mulpdu(emss, false), marked = mpa_mulpdu(emss, true);
        CHECK(plain >= 128 && plain <= 64768 && marked >= 128 && marked <= plain);
        if (plain > 128 && plain < 64768) CHECK_EQ(plain, emss - (6 + emss % 4));
        if (marked > 128 && marked < 64768)
            CHECK_EQ(marked, emss - (6 + 4 * ((emss + 511) / 512) + emss % 4));
    }
}

static void no_ulpdu_is_above_64768(struct rig *r) {
    const struct profile *who[] = { &foreign_passive, &softnd_passive, &foreign_active };
    for (size_t i = 0; i < SN_ARRAY_LEN(who); i++) {
        uint32_t got = 0;
        rig_open(r, who[i]);
        fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0), 200000, 0, 0);
        while (got < 200000) {
            expect_fpdu(r);
            CHECK(fpdu_be(r, 0, 2) <= 64768);
            CHECK(fpdu_be(r, 0, 2) <= iw_conn_of(r->qp.conn)->tx.mulpdu);
            CHECK_BYTES(r->fpdu + 20, r->mem + got, r->fpdu_len - 28);
            got += (uint32_t)fpdu_be(r, 0, 2) - 18;
        }
        CHECK_EQ(got, 200000);
        raw_fin(&r->peer);
        rig_done(r);
    }
}

static void cut_and_joined_fpdus_arrive(struct rig *r) {
    static const size_t cuts[] = { 0, 1, 2, 3, 5, 7, 11, 100 };
    for (size_t k = 0; k < SN_ARRAY_LEN(cuts); k++) {
        struct profile p = foreign_passive;
        struct raw_bytes b = { 0 };
        p.chunk = cuts[k];
        rig_open(r, &p);
        for (uint32_t i = 0; i < 20; i++) {
            fake_post_receive(&r->qp, rig_at(0x1000 * i), 2000);
            raw_send(&b, RDMAP_SEND, true, 0, i + 1, 0, hostile_payload() + i, i * 97);
            memcpy(rig_model(r) + 0x1000 * i, hostile_payload() + i, i * 97);
            raw_write(&b, true, FAKE_REMOTE, RIG_BASE + 0x20000 + 0x1000 * i, hostile_payload() + i,
                      i * 13);
            memcpy(rig_model(r) + 0x20000 + 0x1000 * i, hostile_payload() + i, i * 13);
        }
        rig_put(r, &b);
        raw_free(&b);
        WAIT_FOR(os_u32_load_seqcst(&r->qp.recv_count) == 20);
        for (uint32_t i = 0; i < 20; i++)
            CHECK_EQ(r->qp.rq[i].bytes, i * 97);
        expect_orderly_end(r);
        rig_check_memory(r);
        rig_done(r);
    }
}

static void spoilt_fpdu_has_no_effect(struct rig *r) {
    struct raw_bytes b = { 0 };
    fake_post_receive(&r->qp, rig_at(0), 100);
    fake_post_receive(&r->qp, rig_at(0x1000), 100);
    rig_open(r, &foreign_passive);
    raw_read_request(&b, 1, 1, 0, 8, FAKE_REMOTE, RIG_BASE);
    b.data[b.len - 1] ^= 1; /* is not answered */
    raw_send(&b, RDMAP_SEND, true, 0, 1, 0, "x", 1);
    raw_write(&b, true, FAKE_REMOTE, RIG_BASE + 0x2000, "y", 1);
    raw_send(&b, RDMAP_SEND, true, 0, 2, 0, "z", 1);
    rig_put(r, &b);
    raw_free(&b);
    expect_fpdu(r);
    CHECK_EQ(r->fpdu_len, 28);
    CHECK_EQ(fpdu_be(r, 20, 4), 0x20020000);
    CHECK_EQ(raw_read_end(&r->peer), RAW_EOF);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected) == 1 + SN_E_WIRE);
    CHECK_EQ(os_u32_load_seqcst(&r->qp.recv_count), 0);
}

const struct check mpa_checks[] = {
    CHECKS("12 26 27 28", markers_are_where_they_belong),
    CHECKS("12 25", markers_are_left_out_unasked),
    CHECKS("12 27 28", markers_with_a_sender_of_ours_decode),
    CHECKS("24 25 26", pad_is_zero_and_crc_is_there),
    PLAYS("24", pad_of_others_is_not_judged, "pad_of_ones_1 pad_of_ones_3"),
    CHECKS("26", crc_of_known_values_is_right),
    CHECKS("29", marker_low_bits_are_masked),
    CHECKS("30", mulpdu_stays_in_bounds),
    CHECKS("30 41", no_ulpdu_is_above_64768),
    PLAYS("30", longer_ulpdus_of_others_are_taken, "send_65535_is_taken write_65535_is_taken"),
    CHECKS("31", cut_and_joined_fpdus_arrive),
    CHECKS("32 33 46", spoilt_fpdu_has_no_effect),
    PLAYS("32 34", bad_crc_is_terminated,
          "crc_octet_0 crc_octet_3 crc_of_the_control_octet crc_of_the_payload crc_of_the_pad "
          "crc_zero crc_before_ddp_version crc_before_opcode crc_of_a_large_write"),
    PLAYS("33 46", flood_behind_an_error_is_dropped, "flood_behind_the_terminate"),
    PLAYS("35", bad_start_up_frame_closes_at_once,
          "raw_http raw_zeros raw_enhanced_with_pd_3 raw_revision_3 reply_noise_1m "
          "reply_enhanced_with_pd_1"),
};
const size_t mpa_check_count = SN_ARRAY_LEN(mpa_checks);
