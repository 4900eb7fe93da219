/* SPDX-License-Identifier: MIT
 * perf_run.h - the measuring loops, the same functions at both ends.
 * Owns:    the samples of the current run, in memory made before it starts.
 * Threads: one for each end.   Errors: as perf_end.h.
 *
 * The loops only store; perf_math.h computes afterwards.
 */
#ifndef TOOL_PERF_RUN_H
#define TOOL_PERF_RUN_H

#include "perf_end.h"
#include "perf_math.h"

/* Latency samples kept; of a longer run the last ones count. */
#define PERF_SAMPLES_MAX (8u << 20)
#define PERF_MARKS_MAX (1u << 16)

struct perf_run {
    struct perf_run_request request;
    bool sends; /* this end measures; else it only serves */
    uint32_t *samples_ns;
    uint64_t sample_count; /* taken; at most PERF_SAMPLES_MAX are kept */
    struct perf_mark *marks;
    size_t mark_count;
    struct perf_report_values own;
    uint64_t started_ns, cpu_started_ns;
    bool progress;                   /* a line each second on standard error */
    uint64_t told_ns, told_messages; /* when the last one was due, and how far it was then */
};

/* times: with memory for the samples of a latency test. False if there is no memory. */
bool perf_run_init(struct perf_run *run, bool times);
void perf_run_fini(struct perf_run *run);

/* One message size. Begins when both ends are ready, and ends when all has arrived at both. */
HRESULT perf_run(struct perf_end *e, struct perf_run *run, bool is_client);

/* For perf_run: */
HRESULT perf_run_latency(struct perf_end *e, struct perf_run *run);
HRESULT perf_run_bandwidth(struct perf_end *e, struct perf_run *run);
/* Serves as a target that has nothing to do, until the peer is done. */
HRESULT perf_serve(struct perf_end *e);
void perf_run_start_clock(struct perf_run *run);
/* A second after the last line, prints the next: messages counts those of the measurement so far.
 */
void perf_run_tell(struct perf_run *run, uint64_t now_ns, uint64_t messages);
/* The measurement by duration is over. */
bool perf_run_expired(const struct perf_end *e, const struct perf_run *run, uint64_t now_ns);
void perf_run_stop_clock(struct perf_run *run, uint64_t messages);
HRESULT perf_say_done(struct perf_end *e, uint64_t sent, uint64_t least);
HRESULT perf_say_result(struct perf_end *e, struct perf_run *run);

#endif
