/* SPDX-License-Identifier: MIT
 * perf_report.h - the rows of a test as a table, as CSV and as JSON, and as a picture.
 * Owns:    the column names, which scripts rely on: they stay, new ones come at the end.
 * Threads: one.   Errors: those of the stream.
 */
#ifndef TOOL_PERF_REPORT_H
#define TOOL_PERF_REPORT_H

#include <stdbool.h>
#include <stdio.h>
#include "perf.h"
#include "perf_math.h"

/* What the rows have in common. */
struct perf_heading {
    struct perf_params params;
    char peer[80], transport[16];
    char buffers[80]; /* "warm, ..." or "cold, ..." */
    char length[48];  /* "1000 iterations", "2 s" */
    uint64_t warmup;
    bool gigabits;
    uint64_t memory_bytes, peer_memory_bytes; /* of the processes, connected; 0 unknown */
    double idle_seconds, idle_cpu_percent; /* with --hold: of this process, connected, no traffic */
};

/* Of one object, as SoftNdQueryCounters tells them. */
struct perf_counters {
    const char *what; /* "queue_pair" */
    char text[6144];  /* empty: not known */
};
#define PERF_COUNTED 3

struct perf_row {
    const char *what; /* "connect", "register"; NULL for messages */
    uint64_t bytes, iterations;
    struct perf_summary times; /* count 0: none */
    double seconds;
    double bytes_per_s, peak_bytes_per_s, messages_per_s;
    double cpu_percent, peer_cpu_percent; /* of one core; negative: not known */
    uint64_t wrong;                       /* with --verify */
    struct perf_bucket histogram[PERF_BUCKETS_MAX];
    size_t bucket_count;
};

/* Table: the heading and the names of the columns, then a row at a time. */
void perf_print_heading(FILE *to, const struct perf_heading *h);
void perf_print_row(FILE *to, const struct perf_heading *h, const struct perf_row *r);
void perf_print_histogram(FILE *to, const struct perf_row *r);

void perf_print_csv_heading(FILE *to);
void perf_print_csv_row(FILE *to, const struct perf_heading *h, const struct perf_row *r);

/* After the rows; what is NULL is left out. */
void perf_print_counters(FILE *to, const struct perf_counters counters[PERF_COUNTED]);

/* One object. counters: NULL, or as above. */
void perf_print_json(FILE *to, const struct perf_heading *h, const struct perf_row *rows,
                     size_t count, const struct perf_counters *counters);

/* An SVG picture of the rows over their size: median and 99 % of a latency test, average and peak
 * of a bandwidth test. */
void perf_print_svg(FILE *to, const struct perf_heading *h, const struct perf_row *rows,
                    size_t count);

#endif
