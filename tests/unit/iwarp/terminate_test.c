/* SPDX-License-Identifier: MIT
 * terminate_test.c - the Terminate message as sent, and as peers send it.
 */
#include "wire_test.h"
#include "iwarp/terminate.h"

/* The offending segment of a vector: its FPDU behind ULPDU_Length. */
static struct terminate_about about_vector(const char *id) {
    const struct wire_vector *v = need_vector(id);
    uint16_t len = (uint16_t)((v->bytes[0] << 8) | v->bytes[1]);
    return (struct terminate_about){ .ulpdu = v->bytes + 2, .have = len, .ulpdu_len = len };
}

static void check_packed(const char *id, enum rdmap_cause cause,
                         const struct terminate_about *about) {
    const struct wire_vector *v = need_vector(id);
    uint8_t fpdu[RDMAP_HEAD_MAX + MPA_TRAILER_MAX];
    struct rdmap_fault fault = rdmap_fault_make(cause);
    size_t n = terminate_pack(fpdu, &fault, about);
    n += mpa_trailer_pack(fpdu + n, n - 2, sn_crc32c_extend(SN_CRC32C_INIT, fpdu, n), true);
    if (n != v->len) FAIL("%s: %zu octets, expected %zu", id, n, v->len);
    CHECK_BYTES(fpdu, v->bytes, n);
}

static void pack_vectors_gives_golden_bytes(void) {
    struct terminate_about v21 = about_vector("V21"), v23 = about_vector("V23");
    struct terminate_about v25 = about_vector("V25"), v6 = about_vector("V6");
    struct terminate_about v32 = about_vector("V32");
    check_packed("V22", RDMAP_FAULT_READ_STAG, &v21);
    const struct rdmap_read_request left = {
        .sink_stag = 0xB200, .sink_to = 0x2800, .size = 2048, .src_stag = 0xC300, .src_to = 0x1800
    };
    v23.read = &left;
    check_packed("V24", RDMAP_FAULT_READ_STAG, &v23);
    v23.have = 18; /* the body is ours, only the DDP header must have been kept */
    check_packed("V24", RDMAP_FAULT_READ_STAG, &v23);
    check_packed("V26", RDMAP_FAULT_WRITE_STAG, &v25);
    check_packed("V27", RDMAP_FAULT_NO_BUFFER, &v6);
    check_packed("V31", RDMAP_FAULT_CRC, &v6); /* quotes nothing, even if it could */
    check_packed("V31", RDMAP_FAULT_CRC, NULL);
    check_packed("V33", RDMAP_FAULT_INVALIDATE_STAG, &v32);
    check_packed("V34", RDMAP_FAULT_MPA_RTR, NULL);
    check_packed("V35", RDMAP_FAULT_MPA_IRD, NULL);
}

static void pack_segment_shorter_than_header_quotes_nothing(void) {
    struct rdmap_fault fault = rdmap_fault_make(RDMAP_FAULT_OPCODE);
    uint8_t dst[RDMAP_HEAD_MAX];
    struct terminate t;
    static const char *ids[] = { "V6", "V25" };
    for (size_t i = 0; i < 2; i++) {
        struct terminate_about about = about_vector(ids[i]);
        size_t header_len = ddp_header_len(about.ulpdu[0]), full = about.ulpdu_len;
        for (size_t have = 0; have <= full; have++)
            for (int declared = 0; declared < 2; declared++) {
                uint8_t *part = exact_copy(about.ulpdu, have);
                struct terminate_about a = { .ulpdu = part, .have = have, .ulpdu_len = 999 };
                if (declared) a.ulpdu_len = (uint16_t)have;
                size_t n = terminate_pack(dst, &fault, &a);
                CHECK_EQ(n, have < header_len ? 24 : 26 + header_len);
                CHECK_EQ(terminate_unpack(dst + 20, n - 20, &t), SN_OK);
                CHECK_EQ(t.has_header, have >= header_len);
                CHECK_EQ(t.has_segment_len, have >= header_len);
                if (t.has_segment_len) CHECK_EQ(t.segment_len, a.ulpdu_len);
                free(part);
            }
    }
    CHECK_EQ(terminate_pack(dst, &fault, NULL), 24);
    CHECK_EQ(terminate_pack(dst, &fault, &(struct terminate_about){ .have = 40 }), 24);
}

/* What lies behind a short segment in the caller's buffer is the next FPDU's. */
static void pack_octets_past_the_segment_are_not_quoted(void) {
    struct rdmap_fault fault = rdmap_fault_make(RDMAP_FAULT_READ_STAG);
    struct terminate_about about = about_vector("V12");
    uint8_t dst[RDMAP_HEAD_MAX];
    for (uint16_t declared = 0; declared <= 46; declared++) {
        about.ulpdu_len = declared;
        CHECK_EQ(terminate_pack(dst, &fault, &about), declared < 18 ? 24 : declared < 46 ? 44 : 72);
    }
}

static void pack_read_body_only_behind_a_read_request(void) {
    struct rdmap_fault fault = rdmap_fault_make(RDMAP_FAULT_READ_BOUNDS);
    uint8_t dst[RDMAP_HEAD_MAX];
    struct terminate_about about = about_vector("V12");
    for (size_t have = 18; have <= 46; have++) {
        about.have = have;
        CHECK_EQ(terminate_pack(dst, &fault, &about), have < 46 ? 44 : 72);
    }
    about = about_vector("V10"); /* tagged */
    CHECK_EQ(terminate_pack(dst, &fault, &about), 40);
    about = about_vector("V18"); /* as long as one, and not one */
    CHECK_EQ(terminate_pack(dst, &fault, &about), 44);
}

static void check_unpacked(const char *id, uint8_t layer, uint8_t type, uint8_t code,
                           const char *about, bool read) {
    const struct wire_vector *v = need_vector(id);
    size_t len = (((size_t)v->bytes[0] << 8) | v->bytes[1]) - 18;
    struct terminate t;
    uint8_t *body = exact_copy(v->bytes + 20, len);
    CHECK_EQ(terminate_unpack(body, len, &t), SN_OK);
    free(body);
    CHECK_EQ(t.layer, layer);
    CHECK_EQ(t.type, type);
    CHECK_EQ(t.code, code);
    CHECK(!t.swapped);
    CHECK_EQ(t.has_segment_len, about != NULL);
    CHECK_EQ(t.has_header, about != NULL);
    CHECK_EQ(t.has_read, read);
    if (!about) return;
    struct terminate_about a = about_vector(about);
    struct ddp_header h;
    CHECK_EQ(ddp_unpack(a.ulpdu, a.have, &h), SN_OK);
    CHECK_EQ(t.segment_len, a.ulpdu_len);
    CHECK_EQ(t.header.tagged, h.tagged);
    CHECK_EQ(t.header.last, h.last);
    CHECK_EQ(t.header.ulp, h.ulp);
    CHECK_EQ(t.header.stag, h.stag);
    CHECK_EQ(t.header.to, h.to);
    CHECK_EQ(t.header.qn, h.qn);
    CHECK_EQ(t.header.msn, h.msn);
    CHECK_EQ(t.header.mo, h.mo);
}

static void unpack_vectors_gives_fields(void) {
    check_unpacked("V22", 0, 1, 0x00, "V21", true);
    check_unpacked("V24", 0, 1, 0x00, "V23", true);
    check_unpacked("V26", 1, 1, 0x00, "V25", false);
    check_unpacked("V27", 1, 2, 0x02, "V6", false);
    check_unpacked("V31", 2, 0, 0x02, NULL, false);
    check_unpacked("V33", 0, 2, 0x09, "V32", false);
    check_unpacked("V34", 2, 0, 0x07, NULL, false);
    check_unpacked("V35", 2, 0, 0x06, NULL, false);
    struct terminate t;
    CHECK_EQ(terminate_unpack(need_vector("V24")->bytes + 20, 52, &t), SN_OK);
    CHECK_EQ(t.read.sink_stag, 0xB200);
    CHECK_EQ(t.read.sink_to, 0x2800);
    CHECK_EQ(t.read.size, 2048);
    CHECK_EQ(t.read.src_stag, 0xC300);
    CHECK_EQ(t.read.src_to, 0x1800);
}

static void unpack_swapped_peer_reads_in_rfc_order(void) {
    struct terminate t;
    CHECK_EQ(terminate_unpack(need_vector("V41t")->bytes + 20, 24, &t), SN_OK);
    CHECK(t.swapped);
    CHECK_EQ(t.layer, 1);
    CHECK_EQ(t.type, 2);
    CHECK_EQ(t.code, 2);
    CHECK(t.has_segment_len && t.has_header && !t.has_read);
    CHECK_EQ(t.segment_len, 5);
    CHECK_EQ(t.header.msn, 1);
    CHECK_EQ(t.header.ulp, 0x43);
    /* All three flags on a Send with Invalidate that has only its 18-octet header. */
    uint8_t body[24];
    memcpy(body, need_vector("V41t")->bytes + 20, 24);
    body[2] = 0x07;
    body[7] = 0x44;
    CHECK_EQ(terminate_unpack(body, 24, &t), SN_OK);
    CHECK(t.swapped && t.has_header && !t.has_read);
}

static void unpack_flagless_control_is_swapped_only_where_it_must_be(void) {
    static const struct {
        uint8_t kind, code, layer, type;
        bool swapped;
    } rows[] = {
        { 0x02, 0x02, 2, 0, true },  { 0x02, 0x03, 2, 0, true },  { 0x02, 0x04, 2, 0, true },
        { 0x02, 0x05, 0, 2, false }, { 0x02, 0x06, 0, 2, false }, { 0x02, 0x07, 0, 2, false },
        { 0x20, 0x02, 2, 0, false }, { 0x20, 0x05, 2, 0, false }, { 0x20, 0x07, 2, 0, false },
        { 0x23, 0x02, 2, 3, false }, { 0x12, 0x02, 1, 2, false }, { 0x21, 0x02, 1, 2, true },
        { 0x11, 0x00, 1, 1, false }, { 0x10, 0x00, 1, 0, false }, { 0x01, 0x03, 0, 1, false },
        { 0x77, 0x77, 7, 7, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint8_t body[4] = { rows[i].kind, rows[i].code, 0, 0 };
        struct terminate t;
        CHECK_EQ(terminate_unpack(body, 4, &t), SN_OK);
        CHECK_EQ(t.layer, rows[i].layer);
        CHECK_EQ(t.type, rows[i].type);
        CHECK_EQ(t.code, rows[i].code);
        CHECK_EQ(t.swapped, rows[i].swapped);
        CHECK(!t.has_segment_len && !t.has_header && !t.has_read);
    }
}

static void unpack_truncated_at_every_length_keeps_what_there_is(void) {
    const uint8_t *body = need_vector("V22")->bytes + 20;
    for (size_t len = 0; len <= 52; len++) {
        uint8_t *part = exact_copy(body, len);
        struct terminate t = { .code = 0x77 };
        sn_status st = terminate_unpack(part, len, &t);
        free(part);
        CHECK_EQ(st, len < 4 ? SN_E_WIRE : SN_OK);
        if (st != SN_OK) {
            CHECK_EQ(t.code, 0x77);
            continue;
        }
        CHECK_EQ(t.type, 1);
        CHECK_EQ(t.has_segment_len, len >= 6);
        CHECK_EQ(t.has_header, len >= 24);
        CHECK_EQ(t.has_read, len >= 52);
    }
}

/* M without D, D without M, R without D, and R on something that is no Read Request. */
static void unpack_odd_flags_are_forgiven(void) {
    uint8_t body[52];
    struct terminate t;
    memcpy(body, need_vector("V22")->bytes + 20, 52);
    for (unsigned flags = 0; flags < 8; flags++) {
        body[2] = (uint8_t)(flags << 5);
        CHECK_EQ(terminate_unpack(body, 52, &t), SN_OK);
        bool m = flags & 4, d = flags & 2, r = flags & 1;
        CHECK_EQ(t.has_segment_len, m || d);
        CHECK_EQ(t.has_header, d);
        CHECK_EQ(t.has_read, d && r);
    }
    body[2] = 0xE0;
    body[7] = 0x43; /* a Send */
    CHECK_EQ(terminate_unpack(body, 52, &t), SN_OK);
    CHECK(t.has_header && !t.has_read);
    body[6] |= 0x80; /* tagged: 14 octets */
    body[7] = 0x41;
    CHECK_EQ(terminate_unpack(body, 52, &t), SN_OK);
    CHECK(t.has_header && t.header.tagged && !t.has_read);
}

static void text_every_triple_has_one(void) {
    int known = 0;
    for (unsigned layer = 0; layer < 16; layer++)
        for (unsigned type = 0; type < 16; type++)
            for (unsigned code = 0; code < 256; code++) {
                const char *text = terminate_text((uint8_t)layer, (uint8_t)type, (uint8_t)code);
                CHECK(text != NULL && text[0] != 0);
                bool is_known = terminate_known((uint8_t)layer, (uint8_t)type, (uint8_t)code);
                CHECK_EQ(strstr(text, "unknown") == NULL, is_known);
                known += is_known;
            }
    CHECK_EQ(known, 3 * 256 + 7 + 6 + 5 + 6 + 2 * 7);
    CHECK_STR(terminate_text(1, 2, 2), "DDP untagged: no receive buffer");
    CHECK_STR(terminate_text(2, 3, 7), "MPA: no matching RTR");
    CHECK_STR(terminate_text(9, 0, 0), "error of an unknown layer");
}

/* Random faults about random segments: what was quoted is what comes back. */
static void random_terminates_survive_the_round_trip(void) {
    for (int round = 0; round < 1000; round++) {
        enum rdmap_cause cause = (enum rdmap_cause)random_below(RDMAP_FAULT_COUNT);
        struct rdmap_fault fault = rdmap_fault_make(cause);
        struct rdmap_read_request rr = { (uint32_t)random_u64(), random_u64(),
                                         (uint32_t)random_u64(), (uint32_t)random_u64(),
                                         random_u64() };
        uint8_t segment[RDMAP_HEAD_MAX], dst[RDMAP_HEAD_MAX];
        size_t n;
        int kind = (int)random_below(3);
        if (kind == 0)
            n = rdmap_read_request_pack(segment, (uint32_t)random_u64(), &rr);
        else if (kind == 1)
            n = rdmap_write_pack(segment, random_bool(), (uint32_t)random_u64(), random_u64(), 0);
        else
            n = rdmap_send_pack(segment, RDMAP_SEND, random_bool(), 0, (uint32_t)random_u64(),
                                (uint32_t)random_u64(), 0);
        struct terminate_about about = { .ulpdu = segment + 2,
                                         .have = n - 2,
                                         .ulpdu_len = (uint16_t)(n - 2) };
        size_t len = terminate_pack(dst, &fault, &about);
        CHECK(len <= RDMAP_HEAD_MAX);
        CHECK_EQ(((size_t)dst[0] << 8 | dst[1]) + 2, len);
        struct rdmap_segment seg;
        struct rdmap_fault refused;
        CHECK_EQ(rdmap_unpack(dst + 2, len - 2, len - 2, &seg, &refused), SN_OK);
        CHECK_EQ(seg.opcode, RDMAP_TERMINATE);
        struct terminate t;
        CHECK_EQ(terminate_unpack(dst + 20, len - 20, &t), SN_OK);
        CHECK_EQ(t.layer, fault.layer);
        CHECK_EQ(t.type, fault.type);
        CHECK_EQ(t.code, fault.code);
        CHECK(!t.swapped);
        CHECK_EQ(t.has_header, fault.headers != RDMAP_QUOTE_NONE);
        CHECK_EQ(t.has_read, fault.headers == RDMAP_QUOTE_READ && kind == 0);
        if (t.has_read) {
            CHECK_EQ(t.read.src_to, rr.src_to);
            CHECK_EQ(t.read.size, rr.size);
        }
        if (t.has_header) CHECK_EQ(t.header.tagged, kind == 1);
    }
}

TEST_MAIN(TEST(pack_vectors_gives_golden_bytes),
          TEST(pack_segment_shorter_than_header_quotes_nothing),
          TEST(pack_octets_past_the_segment_are_not_quoted),
          TEST(pack_read_body_only_behind_a_read_request), TEST(unpack_vectors_gives_fields),
          TEST(unpack_swapped_peer_reads_in_rfc_order),
          TEST(unpack_flagless_control_is_swapped_only_where_it_must_be),
          TEST(unpack_truncated_at_every_length_keeps_what_there_is),
          TEST(unpack_odd_flags_are_forgiven), TEST(text_every_triple_has_one),
          TEST(random_terminates_survive_the_round_trip))
