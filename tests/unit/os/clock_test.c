/* SPDX-License-Identifier: MIT */
#include "os/prim/clock.h"
#include "support/testing.h"

static void now_read_often_never_goes_back(void) {
    uint64_t before = os_now_ns(), first = before;
    CHECK(before != 0);
    for (int i = 0; i < 100000; i++) {
        uint64_t now = os_now_ns();
        CHECK(now >= before);
        before = now;
    }
    CHECK(before > first);
}

static void sleep_lasts_at_least_as_long_as_asked(void) {
    uint64_t start = os_now_ns();
    os_sleep_ms(15);
    CHECK(os_now_ns() - start >= 15 * OS_NS_PER_MS);
}

static void random_bytes_differ_and_fill_the_whole_range(void) {
    uint8_t a[1000] = { 0 }, b[1000] = { 0 };
    os_random_bytes(a, sizeof a - 1);
    os_random_bytes(b, sizeof b - 1);
    CHECK_EQ(a[999], 0);
    CHECK(memcmp(a, b, 999) != 0);
    CHECK(memcmp(a, b, 16) != 0);
    CHECK(memcmp(a + 983, b + 983, 16) != 0);
    /* Each bit is set about half the time: 7992 bits, 45 is one standard deviation. */
    int ones = 0;
    for (int i = 0; i < 999; i++)
        ones += __builtin_popcount(a[i]);
    CHECK(ones > 3996 - 500 && ones < 3996 + 500);
    os_random_bytes(NULL, 0);
}

TEST_MAIN(TEST(now_read_often_never_goes_back), TEST(sleep_lasts_at_least_as_long_as_asked),
          TEST(random_bytes_differ_and_fill_the_whole_range))
