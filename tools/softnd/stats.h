/* SPDX-License-Identifier: MIT
 * stats.h - the summary of a row of samples: count, min, mean, max and deviation, in one pass.
 * Owns:    the running sums, in the caller's storage.
 * Threads: one thread per object.   Errors: none; without samples all results are 0.
 */
#ifndef TOOL_STATS_H
#define TOOL_STATS_H

#include <stdint.h>

struct stats {
    uint64_t count;
    double min, max;
    double mean, squares; /* sum of squared distances from the mean */
};

void stats_init(struct stats *s);
void stats_add(struct stats *s, double sample);
/* Standard deviation of the samples themselves (not an estimate for a larger population). */
double stats_deviation(const struct stats *s);

#endif
