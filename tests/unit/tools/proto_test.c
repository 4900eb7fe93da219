/* SPDX-License-Identifier: MIT
 * proto_test.c - the messages of softnd cat and the greetings and contents of softnd ping.
 */
#include "cat_proto.h"
#include "ping.h"

#include "support/testing.h"

static void message_has_its_documented_bytes(void) {
    struct cat_message m = { .type = CAT_CHUNK,
                             .bytes = 0x01020304,
                             .token = 0x05060708,
                             .value = 0x1112131415161718,
                             .address = 0x2122232425262728 };
    static const uint8_t start[32] = { 'S',  'N',  'D',  'C',  3,    1,    0,    0,
                                       1,    2,    3,    4,    5,    6,    7,    8,
                                       0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
                                       0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28 };
    uint8_t out[CAT_MESSAGE_BYTES];

    memset(m.data, 0x5A, sizeof m.data);
    cat_pack(&m, out);
    CHECK_BYTES(out, start, sizeof start);
    CHECK_EQ(out[32], 0x5A);
    CHECK_EQ(out[127], 0x5A);
}

static void message_round_trip_keeps_all_fields(void) {
    for (int type = CAT_OFFER; type <= CAT_ABORT; type++) {
        struct cat_message m = { .type = (enum cat_type)type,
                                 .bytes = 7,
                                 .token = 8,
                                 .value = 9,
                                 .address = 10 },
                           back;
        uint8_t out[CAT_MESSAGE_BYTES], again[CAT_MESSAGE_BYTES];
        memset(m.data, type, sizeof m.data);
        cat_pack(&m, out);
        CHECK(cat_unpack(out, sizeof out, &back));
        cat_pack(&back, again);
        CHECK_BYTES(again, out, sizeof out);
        CHECK_EQ(back.value, 9);
    }
}

static void message_that_is_none_is_refused(void) {
    struct cat_message m = { .type = CAT_DONE }, back = { .value = 77 };
    uint8_t good[CAT_MESSAGE_BYTES], bad[CAT_MESSAGE_BYTES];

    cat_pack(&m, good);
    for (size_t len = 0; len < sizeof good; len++)
        CHECK(!cat_unpack(good, len, &back));
    for (size_t i = 0; i < 6; i++) {
        memcpy(bad, good, sizeof bad);
        bad[i] ^= 0x80;
        CHECK(!cat_unpack(bad, sizeof bad, &back));
    }
    memcpy(bad, good, sizeof bad);
    bad[4] = 0;
    CHECK(!cat_unpack(bad, sizeof bad, &back));
    bad[4] = CAT_ABORT + 1;
    CHECK(!cat_unpack(bad, sizeof bad, &back));
    CHECK_EQ(back.value, 77);
}

static void cat_greeting_round_trip_and_refusals(void) {
    struct cat_greeting g = { CAT_READ, 8 }, back;
    uint8_t out[CAT_GREETING_BYTES];

    cat_pack_greeting(&g, out);
    CHECK(cat_unpack_greeting(out, sizeof out, &back));
    CHECK_EQ(back.mode, CAT_READ);
    CHECK_EQ(back.slots, 8);
    CHECK(!cat_unpack_greeting(out, sizeof out - 1, &back));
    CHECK(!cat_unpack_greeting(out, 0, &back));
    g.slots = 0;
    cat_pack_greeting(&g, out);
    CHECK(!cat_unpack_greeting(out, sizeof out, &back));
    g.slots = CAT_SLOTS_MAX + 1;
    cat_pack_greeting(&g, out);
    CHECK(!cat_unpack_greeting(out, sizeof out, &back));
    g = (struct cat_greeting){ (enum cat_mode)4, 8 };
    cat_pack_greeting(&g, out);
    CHECK(!cat_unpack_greeting(out, sizeof out, &back));
}

static void modes_have_names(void) {
    enum cat_mode mode;

    CHECK(cat_parse_mode("write", &mode));
    CHECK_EQ(mode, CAT_WRITE);
    CHECK(cat_parse_mode("read", &mode));
    CHECK_STR(cat_mode_name(mode), "read");
    CHECK(cat_parse_mode("send", &mode));
    CHECK_EQ(mode, CAT_SEND);
    CHECK(!cat_parse_mode("", &mode));
    CHECK(!cat_parse_mode("Write", &mode));
}

static void ping_greeting_round_trip_and_refusals(void) {
    uint8_t out[PING_GREETING_BYTES], cat[PING_GREETING_BYTES] = { 0 };
    struct cat_greeting g = { CAT_READ, 8 };
    uint32_t size = 0;

    ping_pack_greeting(0x00123456, out);
    CHECK(ping_unpack_greeting(out, sizeof out, &size));
    CHECK_EQ(size, 0x123456);
    CHECK(!ping_unpack_greeting(out, sizeof out - 1, &size));
    ping_pack_greeting(PING_SIZE_MAX + 1, out);
    CHECK(!ping_unpack_greeting(out, sizeof out, &size));
    cat_pack_greeting(&g, cat);
    CHECK(!ping_unpack_greeting(cat, sizeof cat, &size));
}

static void ping_content_differs_by_place_and_number(void) {
    uint8_t a[256], b[256];

    ping_fill(a, sizeof a, 1);
    CHECK(ping_check(a, sizeof a, 1));
    CHECK(!ping_check(a, sizeof a, 2));
    CHECK(!ping_check(a + 1, sizeof a - 1, 1));
    ping_fill(b, sizeof b, 2);
    CHECK(memcmp(a, b, sizeof a) != 0);
    for (size_t i = 0; i < sizeof a; i++) {
        a[i] ^= 1;
        CHECK(!ping_check(a, sizeof a, 1));
        a[i] ^= 1;
    }
    CHECK(ping_check(a, 0, 9));
}

TEST_MAIN(TEST(message_has_its_documented_bytes), TEST(message_round_trip_keeps_all_fields),
          TEST(message_that_is_none_is_refused), TEST(cat_greeting_round_trip_and_refusals),
          TEST(modes_have_names), TEST(ping_greeting_round_trip_and_refusals),
          TEST(ping_content_differs_by_place_and_number))
