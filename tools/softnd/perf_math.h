/* SPDX-License-Identifier: MIT
 * perf_math.h - from the samples of a run to its figures.
 * Owns:    nothing; samples are the caller's, and are sorted in place.
 * Threads: pure functions.   Errors: none; without samples all results are 0.
 */
#ifndef TOOL_PERF_MATH_H
#define TOOL_PERF_MATH_H

#include <stddef.h>
#include <stdint.h>

/* Microseconds. */
struct perf_summary {
    uint64_t count;
    double median, min, max, mean, deviation, p99, p999;
};
/* samples: nanoseconds. divisor: 2 where a sample is a round trip and the result one way. Sorts. */
void perf_summarize(uint32_t *samples_ns, size_t count, double divisor, struct perf_summary *out);
/* The least sample that at least this fraction of all does not exceed; 0 < fraction <= 1. */
double perf_percentile(const uint32_t *sorted_ns, size_t count, double fraction);

struct perf_bucket {
    double from_us, to_us; /* from <= sample < to */
    uint64_t count;
};
#define PERF_BUCKETS_MAX 160
/* Quarters of an octave, from the one of the least sample to that of the largest, without gaps.
 * Returns the number of buckets. */
size_t perf_histogram(const uint32_t *sorted_ns, size_t count, double divisor,
                      struct perf_bucket out[PERF_BUCKETS_MAX]);

/* How many messages were posted, and how many complete, at a time. */
struct perf_mark {
    uint64_t ns, posted, done;
};
/* The highest rate (messages per second) over a tenth of the messages or more, of those that were
 * both posted and complete within a time; 0 if it cannot be told. So a burst of results that came
 * late is not taken for speed. */
double perf_peak_rate(const struct perf_mark *marks, size_t count);
/* Halves the marks by dropping every other one; returns the new count. */
size_t perf_thin_marks(struct perf_mark *marks, size_t count);

#endif
