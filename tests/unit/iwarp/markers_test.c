/* SPDX-License-Identifier: MIT
 * markers_test.c - MPA markers on the way out and in.
 */
#include "wire_test.h"
#include "iwarp/rdmap.h"
#include "support/unmark.h"

/* A Send of `payload` octets as ULPDU_Length and ULPDU; returns its size. */
static size_t make_send(uint8_t *dst, uint32_t msn, const uint8_t *payload, uint32_t len) {
    size_t n = rdmap_send_pack(dst, RDMAP_SEND, true, 0, msn, 0, len);
    if (len) memcpy(dst + n, payload, len);
    return n + len;
}

/* Appends one marked Send to the stream; returns the octets added. */
static size_t add_send(struct mpa_markers *m, uint8_t *dst, uint32_t msn, const uint8_t *payload,
                       uint32_t len) {
    uint8_t head[RDMAP_HEAD_UNTAGGED];
    struct mpa_piece pieces[] = {
        { head, rdmap_send_pack(head, RDMAP_SEND, true, 0, msn, 0, len) },
        { payload, len },
    };
    size_t want = mpa_markers_span(m, mpa_fpdu_size(DDP_UNTAGGED_LEN + len)), got = 0;
    CHECK_EQ(mpa_fpdu_mark(m, pieces, 2, true, dst, want, &got), SN_OK);
    CHECK_EQ(got, want);
    return got;
}

static uint32_t wire_crc(const uint8_t *fpdu, size_t len) {
    return mpa_crc_unpack(fpdu + len - 4);
}

static uint8_t pattern[1200];

static void make_pattern(void) {
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)i;
}

/* V42; V43a and V43. */
static void mark_rfc5044_figures_give_golden_bytes(void) {
    uint8_t zeros[464] = { 0 }, stream[600];
    struct mpa_markers m = { 0, 0 };
    CHECK_EQ(add_send(&m, stream, 1, zeros, 24), 52);
    CHECK_BYTES(stream, need_vector("V42")->bytes, 52);

    m = (struct mpa_markers){ 0, 0 };
    CHECK_EQ(add_send(&m, stream, 1, zeros, 464), 492);
    CHECK_EQ(wire_crc(stream, 492), 0xFDE41EA0u);
    CHECK_EQ(add_send(&m, stream + 492, 2, zeros, 24), 52);
    CHECK_BYTES(stream + 492, need_vector("V43")->bytes, 52);
    CHECK_EQ(m.pos, 544);
}

static void check_marker(const uint8_t *stream, size_t pos, uint16_t ptr) {
    const uint8_t want[4] = { 0, 0, (uint8_t)(ptr >> 8), (uint8_t)ptr };
    CHECK_BYTES(stream + pos, want, 4);
}

/* V44..V47, one stream of 2292 octets. */
static size_t make_v44_stream(uint8_t *stream) {
    struct mpa_markers m = { 0, 0 };
    size_t at = 0;
    make_pattern();
    at += add_send(&m, stream + at, 1, pattern, 488);
    CHECK_EQ(at, 520);
    CHECK_EQ(wire_crc(stream, 520), 0xE0C2A868u);
    at += add_send(&m, stream + at, 2, pattern, 480);
    CHECK_EQ(at, 1024);
    CHECK_EQ(wire_crc(stream + 520, 504), 0xF95569C5u);
    at += add_send(&m, stream + at, 3, pattern, 8);
    CHECK_EQ(at, 1060);
    at += add_send(&m, stream + at, 4, pattern, 1200);
    CHECK_EQ(at, 2292);
    CHECK_EQ(wire_crc(stream + 1060, 1232), 0xAEF33524u);
    return at;
}

static void mark_boundary_cases_give_published_markers_and_crcs(void) {
    uint8_t stream[2292];
    make_v44_stream(stream);
    check_marker(stream, 0, 0);
    check_marker(stream, 512, 0x01FC); /* between PAD and CRC */
    check_marker(stream, 1024, 0);     /* between FPDUs: leads the next */
    check_marker(stream, 1536, 0x01DC);
    check_marker(stream, 2048, 0x03DC);
    CHECK_BYTES(stream + 1024, need_vector("V46")->bytes, 36);
}

static void unmark_vector_stream_gives_the_fpdus_back(void) {
    static const uint32_t lens[] = { 488, 480, 8, 1200 };
    uint8_t stream[2292], want[1300];
    size_t total = make_v44_stream(stream), at = 0;
    struct mpa_markers m = { 0, 0 };
    for (uint32_t i = 0; i < 4; i++) {
        struct mpa_unmarked u;
        CHECK_EQ(mpa_fpdu_unmark(&m, stream + at, total - at, true, &u), SN_OK);
        CHECK_EQ(u.ulpdu_len, DDP_UNTAGGED_LEN + lens[i]);
        CHECK_BYTES(u.fpdu, want, make_send(want, i + 1, pattern, lens[i]));
        at += u.need;
        CHECK_EQ(m.pos, at);
    }
    CHECK_EQ(at, total);
}

static void unmark_short_run_asks_for_more_and_changes_nothing(void) {
    uint8_t stream[2292];
    make_v44_stream(stream);
    static const size_t starts[] = { 0, 520, 1024, 1060 }, sizes[] = { 520, 504, 36, 1232 };
    for (int i = 0; i < 4; i++) {
        size_t lead = starts[i] % 512 == 0 ? 4 : 0;
        for (size_t len = 0; len <= sizes[i]; len++) {
            uint8_t *run = exact_copy(stream + starts[i], len);
            struct mpa_markers m = { starts[i], 0 };
            struct mpa_unmarked u;
            sn_status st = mpa_fpdu_unmark(&m, run, len, true, &u);
            CHECK_EQ(u.need, len < lead + 2 ? lead + 2 : sizes[i]);
            if (len < sizes[i]) {
                CHECK_EQ(st, SN_E_MORE);
                CHECK_EQ(m.pos, starts[i]);
                CHECK_BYTES(run, stream + starts[i], len);
            } else {
                CHECK_EQ(st, SN_OK);
            }
            free(run);
        }
    }
}

static sn_status unmark_changed(size_t start, size_t size, size_t at, uint8_t flip, bool fix_crc,
                                bool crc_on, enum mpa_fpdu_fault *fault) {
    uint8_t stream[2292];
    make_v44_stream(stream);
    uint8_t *fpdu = stream + start;
    fpdu[at] ^= flip;
    if (fix_crc) mpa_crc_pack(fpdu + size - 4, sn_crc32c(fpdu, size - 4));
    struct mpa_markers m = { start, 0 };
    struct mpa_unmarked u;
    sn_status st = mpa_fpdu_unmark(&m, fpdu, size, crc_on, &u);
    *fault = u.fault;
    if (st != SN_OK) CHECK_EQ(m.pos, start);
    return st;
}

static void unmark_bad_octets_are_refused_with_the_right_fault(void) {
    enum mpa_fpdu_fault fault;
    /* Any octet of V46 without a new CRC, the leading marker included; its length word aside. */
    for (size_t at = 0; at < 36; at++) {
        if (at == 4 || at == 5) continue;
        CHECK_EQ(unmark_changed(1024, 36, at, 0x10, false, true, &fault), SN_E_WIRE);
        CHECK_EQ(fault, MPA_FPDU_FAULT_CRC);
    }
    /* FPDUPTR that disagrees, under a good CRC or none: octets 452..455 of V47. */
    for (int crc_on = 0; crc_on < 2; crc_on++) {
        CHECK_EQ(unmark_changed(1060, 1232, 1536 - 1060 + 3, 0x04, true, crc_on, &fault),
                 SN_E_WIRE);
        CHECK_EQ(fault, MPA_FPDU_FAULT_MARKER);
        CHECK_EQ(unmark_changed(1060, 1232, 1536 - 1060 + 2, 0x80, true, crc_on, &fault),
                 SN_E_WIRE);
        CHECK_EQ(fault, MPA_FPDU_FAULT_MARKER);
        CHECK_EQ(unmark_changed(0, 520, 512 + 3, 0x08, true, crc_on, &fault), SN_E_WIRE);
        CHECK_EQ(fault, MPA_FPDU_FAULT_MARKER);
    }
}

static void unmark_reserved_marker_bits_are_ignored(void) {
    enum mpa_fpdu_fault fault;
    CHECK_EQ(unmark_changed(1060, 1232, 1536 - 1060, 0xFF, true, true, &fault), SN_OK);
    CHECK_EQ(unmark_changed(1060, 1232, 1536 - 1060 + 1, 0xFF, true, true, &fault), SN_OK);
    CHECK_EQ(unmark_changed(1060, 1232, 1536 - 1060 + 3, 0x03, true, true, &fault), SN_OK);
    CHECK_EQ(unmark_changed(1024, 36, 34, 0xFF, false, false, &fault), SN_OK); /* CRC off */
}

static void mark_bad_pieces_are_refused_and_m_is_kept(void) {
    uint8_t buf[600], fpdu[64], huge_len[2] = { 0xFD, 0x01 };
    size_t n = make_send(fpdu, 1, (const uint8_t *)"Hello", 5), len = 0;
    struct mpa_markers m = { 512, 0 };
    CHECK_EQ(mpa_fpdu_mark(&m, &(struct mpa_piece){ fpdu, n - 1 }, 1, true, buf, 600, &len),
             SN_E_PARAM);
    CHECK_EQ(mpa_fpdu_mark(&m, NULL, 0, true, buf, 600, &len), SN_E_PARAM);
    CHECK_EQ(mpa_fpdu_mark(&m, &(struct mpa_piece){ fpdu, 1 }, 1, true, buf, 600, &len),
             SN_E_PARAM);
    uint8_t *huge = (uint8_t *)calloc(1, 64769);
    CHECK(huge != NULL);
    struct mpa_piece over[] = { { huge_len, 2 }, { huge, 64769 } };
    CHECK_EQ(mpa_fpdu_mark(&m, over, 2, true, buf, 600, &len), SN_E_PARAM);
    free(huge);
    for (size_t cap = 0; cap < 36; cap++)
        CHECK_EQ(mpa_fpdu_mark(&m, &(struct mpa_piece){ fpdu, n }, 1, true, buf, cap, &len),
                 SN_E_BUFFER_SMALL);
    CHECK_EQ(m.pos, 512);
    CHECK_EQ(mpa_fpdu_mark(&m, &(struct mpa_piece){ fpdu, n }, 1, true, buf, 36, &len), SN_OK);
    CHECK_EQ(len, 36);
    m.pos = 2;
    CHECK_EQ(mpa_fpdu_mark(&m, &(struct mpa_piece){ fpdu, n }, 1, true, buf, 600, &len),
             SN_E_PARAM);
    struct mpa_unmarked u;
    CHECK_EQ(mpa_fpdu_unmark(&m, buf, 36, true, &u), SN_E_PARAM);
}

static void mark_pieces_cut_anywhere_give_the_same_octets(void) {
    uint8_t fpdu[1300], whole[1400], cut[1400];
    make_pattern();
    size_t n = make_send(fpdu, 4, pattern, 1200), len;
    struct mpa_markers m = { 1060, 0 };
    CHECK_EQ(mpa_fpdu_mark(&m, &(struct mpa_piece){ fpdu, n }, 1, true, whole, 1400, &len), SN_OK);
    CHECK_EQ(len, 1232);
    for (size_t a = 0; a <= n; a += 7) {
        size_t b = a + random_below((uint32_t)(n - a + 1)), got;
        struct mpa_piece pieces[] = {
            { fpdu, a }, { NULL, 0 }, { fpdu + a, b - a }, { fpdu + b, n - b }
        };
        m = (struct mpa_markers){ 1060, 0 };
        CHECK_EQ(mpa_fpdu_mark(&m, pieces, 4, true, cut, 1400, &got), SN_OK);
        CHECK_EQ(got, len);
        CHECK_BYTES(cut, whole, len);
    }
}

/* The iterator of the sender, step by step, against the builder. */
static void iterator_room_put_advance_places_the_same_markers(void) {
    uint8_t fpdu[1300], built[1400], stepped[1400], trailer[MPA_TRAILER_MAX];
    make_pattern();
    size_t n = make_send(fpdu, 1, pattern, 1199), len, at = 0, trailer_len;
    struct mpa_markers m = { 512, 0 }, s = m;
    CHECK_EQ(mpa_fpdu_mark(&m, &(struct mpa_piece){ fpdu, n }, 1, false, built, 1400, &len), SN_OK);
    trailer_len = mpa_trailer_pack(trailer, n - 2, 0, false);
    memcpy(fpdu + n, trailer, trailer_len);
    for (size_t off = 0; off < n + trailer_len;) {
        uint32_t room = mpa_markers_room(&s);
        if (room == 0) {
            mpa_markers_put(&s, stepped + at);
            at += 4;
            CHECK_EQ(mpa_markers_room(&s), 508);
            continue;
        }
        uint32_t step = (uint32_t)(n + trailer_len - off);
        if (step > room) step = room;
        memcpy(stepped + at, fpdu + off, step);
        mpa_markers_advance(&s, step);
        at += step;
        off += step;
    }
    mpa_markers_end_fpdu(&s);
    CHECK_EQ(at, len);
    CHECK_BYTES(stepped, built, len);
    CHECK_EQ(s.pos, m.pos);
    CHECK_EQ(s.fpdu_off, m.fpdu_off);
}

/* Random FPDUs in one stream: the receiver gets each back, and stripping equals their sum. */
static void mark_random_stream_survives_the_round_trip(void) {
    enum { CAP = 300000 };
    uint8_t *stream = (uint8_t *)malloc(CAP), *plain = (uint8_t *)malloc(CAP);
    uint8_t *copy = (uint8_t *)malloc(CAP), *fpdu = (uint8_t *)malloc(MPA_FPDU_MAX);
    CHECK(stream && plain && copy && fpdu);
    for (int round = 0; round < 20; round++) {
        struct mpa_markers m = { 0, 0 };
        size_t at = 0, plain_len = 0, count = 0, lens[400];
        bool crc_on = random_bool();
        uint32_t largest = round == 0 ? MPA_MULPDU_MAX + 1 : round % 2 ? 600 : 3000;
        while (count < 400 && CAP - at > 70000) {
            size_t len = round == 0 && count == 0 ? MPA_MULPDU_MAX : random_below(largest);
            fpdu[0] = (uint8_t)(len >> 8);
            fpdu[1] = (uint8_t)len;
            random_fill(fpdu + 2, len);
            size_t added;
            CHECK_EQ(mpa_fpdu_mark(&m, &(struct mpa_piece){ fpdu, len + 2 }, 1, crc_on, stream + at,
                                   CAP - at, &added),
                     SN_OK);
            memcpy(plain + plain_len, fpdu, len + 2);
            memset(plain + plain_len + len + 2, 0, mpa_pad(len));
            memcpy(plain + plain_len + mpa_fpdu_size(len) - 4, stream + at + added - 4, 4);
            plain_len += mpa_fpdu_size(len);
            at += added;
            lens[count++] = len;
        }
        CHECK_EQ(m.pos, at);

        struct mpa_markers strip = { 0, 0 };
        memcpy(copy, stream, at);
        CHECK_EQ(mpa_markers_strip(&strip, copy, at), plain_len);
        CHECK_BYTES(copy, plain, plain_len);
        CHECK_EQ(strip.pos, at);

        strip.pos = 0; /* again, in runs of 1..9 octets, cut inside markers */
        memcpy(copy, stream, at);
        size_t kept = 0;
        for (size_t off = 0; off < at;) {
            size_t n = 1 + random_below(9);
            if (n > at - off) n = at - off;
            size_t left = mpa_markers_strip(&strip, copy + off, n);
            memmove(copy + kept, copy + off, left);
            kept += left;
            off += n;
        }
        CHECK_EQ(kept, plain_len);
        CHECK_BYTES(copy, plain, plain_len);

        struct mpa_markers r = { 0, 0 };
        size_t in = 0, plain_at = 0;
        for (size_t i = 0; i < count; i++) {
            struct mpa_unmarked u;
            CHECK_EQ(mpa_fpdu_unmark(&r, stream + in, at - in, crc_on, &u), SN_OK);
            CHECK_EQ(u.ulpdu_len, lens[i]);
            CHECK_BYTES(u.fpdu, plain + plain_at, mpa_fpdu_size(lens[i]));
            plain_at += mpa_fpdu_size(lens[i]);
            in += u.need;
        }
        CHECK_EQ(in, at);
    }
    free(stream);
    free(plain);
    free(copy);
    free(fpdu);
}

TEST_MAIN(TEST(mark_rfc5044_figures_give_golden_bytes),
          TEST(mark_boundary_cases_give_published_markers_and_crcs),
          TEST(unmark_vector_stream_gives_the_fpdus_back),
          TEST(unmark_short_run_asks_for_more_and_changes_nothing),
          TEST(unmark_bad_octets_are_refused_with_the_right_fault),
          TEST(unmark_reserved_marker_bits_are_ignored),
          TEST(mark_bad_pieces_are_refused_and_m_is_kept),
          TEST(mark_pieces_cut_anywhere_give_the_same_octets),
          TEST(iterator_room_put_advance_places_the_same_markers),
          TEST(mark_random_stream_survives_the_round_trip))
