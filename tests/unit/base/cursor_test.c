/* SPDX-License-Identifier: MIT */
#include "base/cursor.h"
#include "support/testing.h"

static const uint8_t bytes[] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                 0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc };

static void read_each_width_is_big_endian(void) {
    struct sn_cur c = sn_cur_make(bytes, sizeof bytes);
    CHECK_EQ(sn_cur_left(&c), 15);
    CHECK_EQ(sn_cur_u8(&c), 0x01);
    CHECK_EQ(sn_cur_be16(&c), 0x2345);
    CHECK_EQ(sn_cur_be32(&c), 0x6789abcd);
    CHECK(sn_cur_be64(&c) == 0xef1032547698badcu);
    CHECK_EQ(sn_cur_left(&c), 0);
    CHECK(!c.bad);
}

static void read_past_the_end_is_zero_and_sticky(void) {
    struct sn_cur c = sn_cur_make(bytes, 3);
    CHECK_EQ(sn_cur_be16(&c), 0x0123);
    CHECK_EQ(sn_cur_be16(&c), 0);
    CHECK(c.bad);
    CHECK_EQ(sn_cur_u8(&c), 0); /* a byte is left, but the cursor stays bad */
    CHECK(c.bad);
    CHECK(sn_cur_take(&c, 0) == NULL);
}

static void read_exactly_to_the_end_is_good(void) {
    for (size_t len = 0; len < 8; len++) {
        struct sn_cur c = sn_cur_make(bytes, len);
        CHECK(sn_cur_be64(&c) == 0 || c.bad);
        CHECK(c.bad);
    }
    struct sn_cur c = sn_cur_make(bytes, 8);
    CHECK(sn_cur_be64(&c) == 0x0123456789abcdefu);
    CHECK(!c.bad);
}

static void take_more_than_left_is_refused_without_wrapping(void) {
    struct sn_cur c = sn_cur_make(bytes, sizeof bytes);
    CHECK_PTR(sn_cur_take(&c, 5), bytes);
    CHECK_PTR(sn_cur_take(&c, 10), bytes + 5);
    CHECK(sn_cur_take(&c, 1) == NULL);
    c = sn_cur_make(bytes, sizeof bytes);
    CHECK(sn_cur_take(&c, SIZE_MAX) == NULL);
    CHECK(c.bad);
    c = sn_cur_make(bytes, 0);
    CHECK_PTR(sn_cur_take(&c, 0), bytes);
    CHECK(!c.bad);
}

static void write_each_width_is_big_endian(void) {
    uint8_t out[18];
    struct sn_wcur w = sn_wcur_make(out, sizeof out);
    sn_wcur_u8(&w, 0x01);
    sn_wcur_be16(&w, 0x2345);
    sn_wcur_be32(&w, 0x6789abcd);
    sn_wcur_be64(&w, 0xef1032547698badcu);
    CHECK_BYTES(out, bytes, 15);
    sn_wcur_bytes(&w, bytes, 3);
    CHECK_BYTES(out + 15, bytes, 3);
    CHECK(!w.bad);
    CHECK_PTR(w.p, w.end);
}

static void write_past_the_end_does_nothing_and_is_sticky(void) {
    uint8_t out[8];
    memset(out, 0xee, sizeof out);
    struct sn_wcur w = sn_wcur_make(out, 5);
    sn_wcur_be32(&w, 1);
    sn_wcur_be16(&w, 0x7777);
    CHECK(w.bad);
    sn_wcur_u8(&w, 0x77);
    sn_wcur_bytes(&w, bytes, 1);
    sn_wcur_bytes(&w, bytes, SIZE_MAX);
    static const uint8_t want[] = { 0, 0, 0, 1, 0xee, 0xee, 0xee, 0xee };
    CHECK_BYTES(out, want, 8);
}

static void write_no_bytes_from_null_is_fine(void) {
    uint8_t out[1] = { 5 };
    struct sn_wcur w = sn_wcur_make(out, 1);
    sn_wcur_bytes(&w, NULL, 0);
    CHECK(!w.bad);
    CHECK_EQ(out[0], 5);
}

static void round_trip_of_random_values_at_every_offset(void) {
    uint64_t x = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 2000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        uint8_t buf[40];
        size_t at = (size_t)(x % 16);
        struct sn_wcur w = sn_wcur_make(buf + at, 15);
        sn_wcur_be64(&w, x);
        sn_wcur_be32(&w, (uint32_t)(x >> 7));
        sn_wcur_be16(&w, (uint16_t)(x >> 3));
        sn_wcur_u8(&w, (uint8_t)x);
        struct sn_cur c = sn_cur_make(buf + at, 15);
        CHECK(sn_cur_be64(&c) == x);
        CHECK_EQ(sn_cur_be32(&c), (uint32_t)(x >> 7));
        CHECK_EQ(sn_cur_be16(&c), (uint16_t)(x >> 3));
        CHECK_EQ(sn_cur_u8(&c), (uint8_t)x);
        CHECK(!c.bad && !w.bad);
    }
}

TEST_MAIN(TEST(read_each_width_is_big_endian), TEST(read_past_the_end_is_zero_and_sticky),
          TEST(read_exactly_to_the_end_is_good),
          TEST(take_more_than_left_is_refused_without_wrapping),
          TEST(write_each_width_is_big_endian), TEST(write_past_the_end_does_nothing_and_is_sticky),
          TEST(write_no_bytes_from_null_is_fine), TEST(round_trip_of_random_values_at_every_offset))
