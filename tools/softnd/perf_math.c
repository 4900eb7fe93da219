/* SPDX-License-Identifier: MIT
 * perf_math.c - see perf_math.h.
 */
#include "perf_math.h"

#include <math.h>
#include <stdlib.h>
#include "stats.h"

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

double perf_percentile(const uint32_t *sorted_ns, size_t count, double fraction) {
    double rank = ceil(fraction * (double)count);
    size_t i = rank < 1 ? 0 : (size_t)rank - 1;

    if (!count) return 0;
    return sorted_ns[i < count ? i : count - 1];
}

void perf_summarize(uint32_t *samples_ns, size_t count, double divisor, struct perf_summary *out) {
    double unit = divisor * 1e3;
    struct stats s;

    stats_init(&s);
    if (count) qsort(samples_ns, count, sizeof *samples_ns, by_value);
    for (size_t i = 0; i < count; i++)
        stats_add(&s, samples_ns[i] / unit);
    *out = (struct perf_summary){ .count = count,
                                  .min = s.min,
                                  .max = s.max,
                                  .mean = s.mean,
                                  .deviation = stats_deviation(&s),
                                  .median = perf_percentile(samples_ns, count, 0.5) / unit,
                                  .p99 = perf_percentile(samples_ns, count, 0.99) / unit,
                                  .p999 = perf_percentile(samples_ns, count, 0.999) / unit };
}

/* Edge k is 2^(k/4) nanoseconds. */
static double edge(int k) {
    return exp2(k / 4.0);
}

static int bucket_of(uint32_t ns) {
    int k = ns ? (int)floor(4 * log2(ns)) : 0;

    while (k > 0 && ns < edge(k)) /* the logarithm may be off by its last digit */
        k--;
    while (ns >= edge(k + 1))
        k++;
    return k;
}

size_t perf_histogram(const uint32_t *sorted_ns, size_t count, double divisor,
                      struct perf_bucket out[PERF_BUCKETS_MAX]) {
    size_t n, at = 0;
    int first;

    if (!count) return 0;
    first = bucket_of(sorted_ns[0]);
    n = (size_t)(bucket_of(sorted_ns[count - 1]) - first) + 1; /* at most 4 * 32 */
    for (size_t i = 0; i < n; i++) {
        int k = first + (int)i;
        double end = edge(k + 1);
        out[i] = (struct perf_bucket){ .from_us = (k ? edge(k) : 0) / 1e3 / divisor,
                                       .to_us = end / 1e3 / divisor };
        for (; at < count && sorted_ns[at] < end; at++)
            out[i].count++;
    }
    return n;
}

double perf_peak_rate(const struct perf_mark *marks, size_t count) {
    double best = 0;
    uint64_t window;
    size_t from = 0;

    if (count < 2) return 0;
    window = (marks[count - 1].done - marks[0].done) / 10;
    if (!window) window = 1;
    for (size_t to = 1; to < count; to++) {
        uint64_t done = marks[to].done, ns;
        while (from + 1 < to && done >= window + marks[from + 1].posted)
            from++;
        ns = marks[to].ns - marks[from].ns;
        if (done < window + marks[from].posted || !ns) continue;
        double rate = (double)(done - marks[from].posted) * 1e9 / (double)ns;
        if (rate > best) best = rate;
    }
    return best;
}

size_t perf_thin_marks(struct perf_mark *marks, size_t count) {
    size_t n = 0;

    for (size_t i = 0; i < count; i += 2)
        marks[n++] = marks[i];
    return n;
}
