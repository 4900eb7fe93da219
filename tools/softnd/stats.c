/* SPDX-License-Identifier: MIT
 * stats.c - Welford's running mean and variance: exact enough for any number of samples.
 */
#include "stats.h"

#include <math.h>

void stats_init(struct stats *s) {
    *s = (struct stats){ 0 };
}

void stats_add(struct stats *s, double sample) {
    double from_old = sample - s->mean;

    if (!s->count || sample < s->min) s->min = sample;
    if (!s->count || sample > s->max) s->max = sample;
    s->count++;
    s->mean += from_old / (double)s->count;
    s->squares += from_old * (sample - s->mean);
}

double stats_deviation(const struct stats *s) {
    return s->count ? sqrt(s->squares / (double)s->count) : 0;
}
