/* SPDX-License-Identifier: MIT
 * mpa_test.c - MPA start-up frames, FPDU sizes and trailers.
 */
#include "wire_test.h"

/* ---- Start-up frames ---- */

static const uint8_t deadbeef[] = { 0xDE, 0xAD, 0xBE, 0xEF };

static const struct {
    const char *id;
    struct mpa_start s;
} starts[] = {
    { "V1",
      { .rev = 2,
        .crc = true,
        .enhanced = true,
        .enh = { .p2p = true, .rtr_write = true, .rtr_read = true, .ird = 32, .ord = 32 },
        .pd = deadbeef,
        .pd_len = 4 } },
    { "V2",
      { .reply = true,
        .rev = 2,
        .crc = true,
        .enhanced = true,
        .enh = { .p2p = true, .rtr_read = true, .ird = 32, .ord = 32 } } },
    { "V36",
      { .rev = 2,
        .crc = true,
        .enhanced = true,
        .enh = { .ird = 1, .ord = 1 },
        .pd = (const uint8_t *)"hi",
        .pd_len = 2 } },
    { "V37",
      { .reply = true,
        .rev = 2,
        .crc = true,
        .reject = true,
        .enhanced = true,
        .enh = { .ird = 1, .ord = 1 },
        .pd = (const uint8_t *)"no",
        .pd_len = 2 } },
    { "V38", { .rev = 1 } },
    { "V39", { .rev = 1, .crc = true } },
    { "V40", { .reply = true, .rev = 1, .markers = true, .crc = true } },
    { "V41r", { .rev = 2, .enhanced = true, .enh = { .ird = 1, .ord = 1 } } },
    { "V41p", { .reply = true, .rev = 2, .enhanced = true, .enh = { .ird = 1, .ord = 1 } } },
};
#define START_COUNT (sizeof starts / sizeof starts[0])

static void check_start(const struct mpa_start *got, const struct mpa_start *want) {
    CHECK_EQ(got->reply, want->reply);
    CHECK_EQ(got->rev, want->rev);
    CHECK_EQ(got->markers, want->markers);
    CHECK_EQ(got->crc, want->crc);
    CHECK_EQ(got->reject, want->reject);
    CHECK_EQ(got->enhanced, want->enhanced);
    CHECK_EQ(got->enh.p2p, want->enh.p2p);
    CHECK_EQ(got->enh.rtr_send, want->enh.rtr_send);
    CHECK_EQ(got->enh.rtr_write, want->enh.rtr_write);
    CHECK_EQ(got->enh.rtr_read, want->enh.rtr_read);
    CHECK_EQ(got->enh.ird, want->enh.ird);
    CHECK_EQ(got->enh.ord, want->enh.ord);
    CHECK_EQ(got->pd_len, want->pd_len);
    CHECK_BYTES(got->pd, want->pd, want->pd_len);
}

/* Feeds the octets one at a time; every step but the last asks for more and names the size. */
static void feed_start(const uint8_t *bytes, size_t len, bool reply, const struct mpa_start *want) {
    for (size_t have = 0; have <= len; have++) {
        uint8_t *part = exact_copy(bytes, have);
        struct mpa_start got = { 0 };
        size_t need = 0;
        enum mpa_start_fault fault;
        sn_status st = mpa_start_unpack(part, have, reply, &got, &need, &fault);
        CHECK_EQ(fault, MPA_START_FAULT_NONE);
        CHECK_EQ(need, have < MPA_START_HEADER_LEN ? MPA_START_HEADER_LEN : len);
        if (have < len) {
            CHECK_EQ(st, SN_E_MORE);
        } else {
            CHECK_EQ(st, SN_OK);
            check_start(&got, want);
        }
        free(part);
    }
}

static void start_pack_vectors_gives_golden_bytes(void) {
    for (size_t i = 0; i < START_COUNT; i++) {
        const struct wire_vector *v = need_vector(starts[i].id);
        uint8_t buf[MPA_START_MAX];
        size_t len = 0;
        CHECK_EQ(mpa_start_size(&starts[i].s), v->len);
        CHECK_EQ(mpa_start_pack(&starts[i].s, buf, v->len, &len), SN_OK);
        CHECK_EQ(len, v->len);
        CHECK_BYTES(buf, v->bytes, v->len);
    }
}

static void start_unpack_vectors_whole_or_by_octet_gives_fields(void) {
    for (size_t i = 0; i < START_COUNT; i++) {
        const struct wire_vector *v = need_vector(starts[i].id);
        feed_start(v->bytes, v->len, starts[i].s.reply, &starts[i].s);
    }
}

static void start_unpack_request_in_pieces_1_19_rest_works(void) {
    const struct wire_vector *v = need_vector("V1");
    const size_t cuts[] = { 1, 20, v->len };
    for (size_t i = 0; i < 3; i++) {
        struct mpa_start got;
        size_t need;
        enum mpa_start_fault fault;
        sn_status st = mpa_start_unpack(v->bytes, cuts[i], false, &got, &need, &fault);
        CHECK_EQ(st, i < 2 ? SN_E_MORE : SN_OK);
    }
}

/* Octets behind the frame (an FPDU behind a reply; a hasty initiator) are counted, not read. */
static void start_unpack_trailing_octets_are_left_alone(void) {
    uint8_t buf[24 + 52];
    memcpy(buf, need_vector("V2")->bytes, 24);
    memcpy(buf + 24, need_vector("V4")->bytes, 20);
    struct mpa_start got;
    size_t need;
    enum mpa_start_fault fault;
    CHECK_EQ(mpa_start_unpack(buf, 44, true, &got, &need, &fault), SN_OK);
    CHECK_EQ(need, 24);
    CHECK_EQ(got.pd_len, 0);
}

static sn_status unpack_changed(const char *id, size_t at, uint8_t value, bool reply,
                                enum mpa_start_fault *fault) {
    const struct wire_vector *v = need_vector(id);
    uint8_t *bytes = exact_copy(v->bytes, v->len);
    bytes[at] = value;
    struct mpa_start got = { .pd_len = 12345 };
    size_t need;
    sn_status st = mpa_start_unpack(bytes, v->len, reply, &got, &need, fault);
    if (st != SN_OK) CHECK_EQ(got.pd_len, 12345);
    free(bytes);
    return st;
}

static void start_unpack_wrong_key_octet_is_refused_at_once(void) {
    const struct wire_vector *v = need_vector("V1");
    for (size_t at = 0; at < MPA_KEY_LEN; at++) {
        uint8_t bytes[MPA_KEY_LEN];
        memcpy(bytes, v->bytes, sizeof bytes);
        bytes[at] ^= 0x20;
        struct mpa_start got;
        size_t need;
        enum mpa_start_fault fault;
        CHECK_EQ(mpa_start_unpack(bytes, at, false, &got, &need, &fault), SN_E_MORE);
        CHECK_EQ(mpa_start_unpack(bytes, at + 1, false, &got, &need, &fault), SN_E_WIRE);
        CHECK_EQ(fault, MPA_START_FAULT_KEY);
    }
    /* Between the two keys: the reply's octet 10, then not its octet 11. */
    uint8_t mixed[] = "MPA ID Rep frame";
    struct mpa_start got;
    size_t need;
    enum mpa_start_fault fault;
    CHECK_EQ(mpa_start_unpack(mixed, 11, false, &got, &need, &fault), SN_E_MORE);
    CHECK_EQ(mpa_start_unpack(mixed, 13, false, &got, &need, &fault), SN_E_WIRE);
    CHECK_EQ(fault, MPA_START_FAULT_KEY);
}

static void start_unpack_other_roles_key_is_a_collision(void) {
    struct mpa_start got;
    size_t need;
    enum mpa_start_fault fault;
    const struct wire_vector *req = need_vector("V1"), *rep = need_vector("V2");
    CHECK_EQ(mpa_start_unpack(req->bytes, 15, true, &got, &need, &fault), SN_E_MORE);
    CHECK_EQ(mpa_start_unpack(req->bytes, 16, true, &got, &need, &fault), SN_E_WIRE);
    CHECK_EQ(fault, MPA_START_FAULT_ROLE);
    CHECK_EQ(mpa_start_unpack(rep->bytes, rep->len, false, &got, &need, &fault), SN_E_WIRE);
    CHECK_EQ(fault, MPA_START_FAULT_ROLE);
}

static void start_unpack_unknown_revision_is_refused(void) {
    enum mpa_start_fault fault;
    static const uint8_t bad[] = { 0, 3, 4, 255 };
    for (size_t i = 0; i < sizeof bad; i++) {
        CHECK_EQ(unpack_changed("V1", 17, bad[i], false, &fault), SN_E_WIRE);
        CHECK_EQ(fault, MPA_START_FAULT_REV);
    }
}

static void start_unpack_pd_length_513_is_refused_512_accepted(void) {
    uint8_t buf[MPA_START_MAX + 1];
    memset(buf, 0x5A, sizeof buf);
    memcpy(buf, need_vector("V38")->bytes, 20);
    struct mpa_start got;
    size_t need;
    enum mpa_start_fault fault;
    buf[18] = 0x02;
    buf[19] = 0x01;
    CHECK_EQ(mpa_start_unpack(buf, 20, false, &got, &need, &fault), SN_E_WIRE);
    CHECK_EQ(fault, MPA_START_FAULT_PD_LEN);
    buf[18] = 0xFF;
    CHECK_EQ(mpa_start_unpack(buf, sizeof buf, false, &got, &need, &fault), SN_E_WIRE);
    buf[18] = 0x02;
    buf[19] = 0x00;
    CHECK_EQ(mpa_start_unpack(buf, 20, false, &got, &need, &fault), SN_E_MORE);
    CHECK_EQ(need, MPA_START_MAX);
    CHECK_EQ(mpa_start_unpack(buf, MPA_START_MAX, false, &got, &need, &fault), SN_OK);
    CHECK_EQ(got.pd_len, 512);
}

static void start_unpack_enhanced_without_its_words_is_refused(void) {
    enum mpa_start_fault fault;
    for (uint8_t n = 0; n < 4; n++) {
        CHECK_EQ(unpack_changed("V41r", 19, n, false, &fault), SN_E_WIRE);
        CHECK_EQ(fault, MPA_START_FAULT_ENHANCED);
    }
}

/* In revision 1 the bit is a reserved one, and reserved bits are not looked at. */
static void start_unpack_reserved_bits_are_ignored(void) {
    uint8_t bytes[24];
    memcpy(bytes, need_vector("V41r")->bytes, 24);
    struct mpa_start got;
    size_t need;
    enum mpa_start_fault fault;
    bytes[17] = 1;
    CHECK_EQ(mpa_start_unpack(bytes, 24, false, &got, &need, &fault), SN_OK);
    CHECK(!got.enhanced);
    CHECK_EQ(got.pd_len, 4);
    bytes[17] = 2;
    bytes[16] |= 0x0F;
    CHECK_EQ(mpa_start_unpack(bytes, 24, false, &got, &need, &fault), SN_OK);
    CHECK(got.enhanced && !got.crc && !got.markers && !got.reject);
}

static void start_unpack_reject_in_request_is_ignored(void) {
    enum mpa_start_fault fault;
    const struct wire_vector *v = need_vector("V39");
    uint8_t bytes[20];
    memcpy(bytes, v->bytes, 20);
    bytes[16] |= 0x20;
    struct mpa_start got;
    size_t need;
    CHECK_EQ(mpa_start_unpack(bytes, 20, false, &got, &need, &fault), SN_OK);
    CHECK(!got.reject);
}

static void start_client_server_rtr_flags_are_neither_read_nor_sent(void) {
    uint8_t bytes[24];
    memcpy(bytes, need_vector("V41r")->bytes, 24);
    bytes[20] |= 0x40;
    bytes[22] |= 0xC0;
    struct mpa_start got;
    size_t need, len;
    enum mpa_start_fault fault;
    CHECK_EQ(mpa_start_unpack(bytes, 24, false, &got, &need, &fault), SN_OK);
    CHECK(!got.enh.p2p && !got.enh.rtr_send && !got.enh.rtr_write && !got.enh.rtr_read);
    CHECK_EQ(got.enh.ird, 1);
    CHECK_EQ(got.enh.ord, 1);
    got.enh.rtr_send = got.enh.rtr_write = got.enh.rtr_read = true;
    CHECK_EQ(mpa_start_pack(&got, bytes, sizeof bytes, &len), SN_OK);
    CHECK_BYTES(bytes, need_vector("V41r")->bytes, 24);
}

/* A reply that grants peer-to-peer but names no RTR is for the caller to end (2/0/07). */
static void start_unpack_peer_to_peer_without_flags_reads_as_such(void) {
    uint8_t bytes[24];
    memcpy(bytes, need_vector("V2")->bytes, 24);
    bytes[22] &= 0x3F;
    struct mpa_start got;
    size_t need;
    enum mpa_start_fault fault;
    CHECK_EQ(mpa_start_unpack(bytes, 24, true, &got, &need, &fault), SN_OK);
    CHECK(got.enh.p2p && !got.enh.rtr_send && !got.enh.rtr_write && !got.enh.rtr_read);
}

static void start_pack_impossible_frames_are_refused_and_write_nothing(void) {
    uint8_t pd[513] = { 0 };
    struct mpa_start bad[] = {
        { .rev = 0 },
        { .rev = 3 },
        { .rev = 1, .enhanced = true },
        { .rev = 1, .reject = true },
        { .rev = 2, .enhanced = true, .enh = { .ird = 0x4000 } },
        { .rev = 2, .enhanced = true, .enh = { .ord = 0x4000 } },
        { .rev = 2, .pd = pd, .pd_len = 513 },
        { .rev = 2, .enhanced = true, .pd = pd, .pd_len = 509 },
    };
    uint8_t buf[1024], untouched[1024];
    memset(buf, 0xEE, sizeof buf);
    memset(untouched, 0xEE, sizeof untouched);
    size_t len = 777;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(mpa_start_pack(&bad[i], buf, sizeof buf, &len), SN_E_PARAM);
    for (size_t i = 0; i < START_COUNT; i++)
        for (size_t cap = 0; cap < mpa_start_size(&starts[i].s); cap++)
            CHECK_EQ(mpa_start_pack(&starts[i].s, buf, cap, &len), SN_E_BUFFER_SMALL);
    CHECK_BYTES(buf, untouched, sizeof buf);
    CHECK_EQ(len, 777);
}

static void start_random_frames_survive_the_round_trip(void) {
    for (int round = 0; round < 300; round++) {
        uint8_t pd[MPA_PD_MAX];
        struct mpa_start s = { .reply = random_bool(),
                               .rev = random_bool() ? 2 : 1,
                               .markers = random_bool(),
                               .crc = random_bool(),
                               .pd = pd };
        s.reject = s.reply && random_bool();
        s.enhanced = s.rev == 2 && random_bool();
        s.pd_len = (uint16_t)random_below(s.enhanced ? 509 : 513);
        random_fill(pd, s.pd_len);
        if (s.enhanced) {
            s.enh.ird = (uint16_t)random_below(0x4000);
            s.enh.ord = (uint16_t)random_below(0x4000);
            s.enh.p2p = random_bool();
            s.enh.rtr_send = s.enh.p2p && random_bool();
            s.enh.rtr_write = s.enh.p2p && random_bool();
            s.enh.rtr_read = s.enh.p2p && random_bool();
        }
        uint8_t buf[MPA_START_MAX];
        size_t len;
        CHECK_EQ(mpa_start_pack(&s, buf, sizeof buf, &len), SN_OK);
        if (round < 30) {
            feed_start(buf, len, s.reply, &s);
        } else {
            struct mpa_start got;
            size_t need;
            enum mpa_start_fault fault;
            CHECK_EQ(mpa_start_unpack(buf, len, s.reply, &got, &need, &fault), SN_OK);
            CHECK_EQ(need, len);
            check_start(&got, &s);
        }
    }
}

static void start_fault_text_every_value_has_one(void) {
    for (int f = MPA_START_FAULT_NONE; f <= MPA_START_FAULT_ENHANCED; f++)
        CHECK(strlen(mpa_start_fault_text((enum mpa_start_fault)f)) > 4);
    CHECK_STR(mpa_start_fault_text((enum mpa_start_fault)99), "unknown fault");
}

/* ---- FPDU ---- */

static void fpdu_sizes_every_length_are_multiples_of_four(void) {
    for (size_t len = 0; len <= MPA_ULPDU_MAX; len++) {
        CHECK_EQ(mpa_fpdu_size(len), 2 + len + mpa_pad(len) + 4);
        CHECK_EQ(mpa_fpdu_size(len) % 4, 0);
        CHECK(mpa_pad(len) <= 3);
    }
    CHECK_EQ(mpa_fpdu_size(MPA_ULPDU_MAX), MPA_FPDU_MAX);
    struct mpa_markers m = { 0, 0 };
    CHECK_EQ(mpa_markers_span(&m, MPA_FPDU_MAX), MPA_FPDU_MARKED_MAX);
    CHECK_EQ(mpa_fpdu_size(14), 20);
    CHECK_EQ(mpa_fpdu_size(46), 52);
}

static void mulpdu_known_segment_sizes_give_published_values(void) {
    static const uint32_t rows[][3] = {
        { 536, 530, 522 },    { 1440, 1434, 1422 }, { 1448, 1442, 1430 },    { 1460, 1454, 1442 },
        { 8948, 8942, 8870 }, { 8960, 8954, 8882 }, { 65483, 64768, 64768 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQ(mpa_mulpdu(rows[i][0], false), rows[i][1]);
        CHECK_EQ(mpa_mulpdu(rows[i][0], true), rows[i][2]);
    }
}

static void mulpdu_any_segment_size_stays_in_range_and_fits(void) {
    for (uint32_t emss = 0; emss < 70000; emss++) {
        for (int markers = 0; markers < 2; markers++) {
            uint32_t m = mpa_mulpdu(emss, markers);
            CHECK(m >= MPA_MULPDU_MIN && m <= MPA_MULPDU_MAX);
            if (m == MPA_MULPDU_MIN || m == MPA_MULPDU_MAX) continue;
            size_t size = mpa_fpdu_size(m);
            struct mpa_markers at = { 0, 0 };
            CHECK(markers ? mpa_markers_span(&at, size) <= emss : size <= emss);
        }
    }
    CHECK_EQ(mpa_mulpdu(0, true), 128);
    CHECK_EQ(mpa_mulpdu(UINT32_MAX, false), 64768);
    CHECK_EQ(mpa_mulpdu(UINT32_MAX, true), 64768);
}

/* The trailer of each FPDU vector, rebuilt from what precedes it. */
static void trailer_pack_vectors_gives_golden_bytes(void) {
    int seen = 0;
    for (size_t i = 0; i < WIRE_VECTOR_COUNT; i++) {
        const struct wire_vector *v = &wire_vectors[i];
        bool marked = strncmp(v->what, "marked", 6) == 0;
        bool crc_on = strcmp(v->id, "V41s") != 0 && strcmp(v->id, "V41t") != 0;
        if (marked || v->bytes[0] == 'M' || strcmp(v->id, "V30") == 0) continue;
        size_t len = ((size_t)v->bytes[0] << 8) | v->bytes[1];
        CHECK_EQ(mpa_fpdu_size(len), v->len);
        uint32_t state = sn_crc32c_extend(SN_CRC32C_INIT, v->bytes, 2 + len);
        uint8_t got[MPA_TRAILER_MAX];
        CHECK_EQ(mpa_trailer_pack(got, len, state, crc_on), v->len - 2 - len);
        CHECK_BYTES(got, v->bytes + 2 + len, v->len - 2 - len);
        CHECK_EQ(mpa_trailer_good(v->bytes + 2 + len, len, state), crc_on);
        if (v->crc) CHECK_EQ(mpa_crc_unpack(v->bytes + v->len - 4), v->crc);
        seen++;
    }
    CHECK_EQ(seen, 36);
}

static void trailer_good_flipped_bit_is_noticed(void) {
    const struct wire_vector *v = need_vector("V30");
    uint32_t state = sn_crc32c_extend(SN_CRC32C_INIT, v->bytes, 25);
    CHECK(!mpa_trailer_good(v->bytes + 25, 23, state));
    v = need_vector("V6");
    CHECK(mpa_trailer_good(v->bytes + 25, 23, state));
    for (int bit = 0; bit < 56; bit++) { /* PAD is covered too */
        uint8_t trailer[7];
        memcpy(trailer, v->bytes + 25, 7);
        trailer[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(!mpa_trailer_good(trailer, 23, state));
    }
}

/* PAD that is not zero is allowed, as long as the CRC is over it. */
static void trailer_good_nonzero_pad_is_accepted(void) {
    uint8_t body[25] = { 0, 23 }, trailer[7] = { 1, 2, 3 };
    uint32_t state = sn_crc32c_extend(SN_CRC32C_INIT, body, 25);
    mpa_crc_pack(trailer + 3, sn_crc32c_finish(sn_crc32c_extend(state, trailer, 3)));
    CHECK(mpa_trailer_good(trailer, 23, state));
}

TEST_MAIN(TEST(start_pack_vectors_gives_golden_bytes),
          TEST(start_unpack_vectors_whole_or_by_octet_gives_fields),
          TEST(start_unpack_request_in_pieces_1_19_rest_works),
          TEST(start_unpack_trailing_octets_are_left_alone),
          TEST(start_unpack_wrong_key_octet_is_refused_at_once),
          TEST(start_unpack_other_roles_key_is_a_collision),
          TEST(start_unpack_unknown_revision_is_refused),
          TEST(start_unpack_pd_length_513_is_refused_512_accepted),
          TEST(start_unpack_enhanced_without_its_words_is_refused),
          TEST(start_unpack_reserved_bits_are_ignored),
          TEST(start_unpack_reject_in_request_is_ignored),
          TEST(start_client_server_rtr_flags_are_neither_read_nor_sent),
          TEST(start_unpack_peer_to_peer_without_flags_reads_as_such),
          TEST(start_pack_impossible_frames_are_refused_and_write_nothing),
          TEST(start_random_frames_survive_the_round_trip),
          TEST(start_fault_text_every_value_has_one),
          TEST(fpdu_sizes_every_length_are_multiples_of_four),
          TEST(mulpdu_known_segment_sizes_give_published_values),
          TEST(mulpdu_any_segment_size_stays_in_range_and_fits),
          TEST(trailer_pack_vectors_gives_golden_bytes), TEST(trailer_good_flipped_bit_is_noticed),
          TEST(trailer_good_nonzero_pad_is_accepted))
