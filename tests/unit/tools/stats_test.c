/* SPDX-License-Identifier: MIT
 * stats_test.c - min, mean, max and deviation.
 */
#include "stats.h"

#include <math.h>
#include "support/testing.h"

static void no_samples_are_all_zero(void) {
    struct stats s;

    stats_init(&s);
    CHECK_EQ(s.count, 0);
    CHECK(stats_deviation(&s) == 0);
}

static void one_sample_has_no_deviation(void) {
    struct stats s;

    stats_init(&s);
    stats_add(&s, -3.5);
    CHECK(s.min == -3.5 && s.max == -3.5 && s.mean == -3.5);
    CHECK(stats_deviation(&s) == 0);
}

static void known_samples_give_known_results(void) {
    static const double samples[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
    struct stats s;

    stats_init(&s);
    for (size_t i = 0; i < 8; i++)
        stats_add(&s, samples[i]);
    CHECK_EQ(s.count, 8);
    CHECK(s.min == 2 && s.max == 9);
    CHECK(fabs(s.mean - 5) < 1e-12);
    CHECK(fabs(stats_deviation(&s) - 2) < 1e-12);
}

static void large_offset_does_not_lose_the_deviation(void) {
    struct stats s;

    stats_init(&s);
    for (int i = 0; i < 1000000; i++)
        stats_add(&s, 1e9 + (i % 2));
    CHECK(fabs(stats_deviation(&s) - 0.5) < 1e-6);
}

TEST_MAIN(TEST(no_samples_are_all_zero), TEST(one_sample_has_no_deviation),
          TEST(known_samples_give_known_results), TEST(large_offset_does_not_lose_the_deviation))
