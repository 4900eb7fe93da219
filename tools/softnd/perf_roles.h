/* SPDX-License-Identifier: MIT
 * perf_roles.h - what `softnd perf` does once its command line is understood.
 * Owns:    the options that only the client knows.
 * Threads: one, which starts those of --threads and waits for them.   Errors: exit codes, after one
 * line on standard error.
 */
#ifndef TOOL_PERF_ROLES_H
#define TOOL_PERF_ROLES_H

#include "perf_report.h"
#include "perf_run.h"
#include "sys.h"

#define PERF_ROWS_MAX 64
#define PERF_CONNECTS_MAX 64u /* connections of conn_rate at a time */

/* What one thread of a test has for itself, at either end. */
struct perf_lane {
    struct perf_end end;
    struct perf_run run;
    uint32_t session;
    HRESULT status;
    struct perf_report_values peer; /* client: what the server says of the last run */
    struct sys_thread thread;
};
/* Calls run for every lane, in a thread for each but the first, and waits. The first failure in
 * status is returned. */
HRESULT perf_run_lanes(struct perf_lane *lanes, uint64_t count, void (*run)(void *lane));

struct perf_client {
    struct perf_params params;
    uint64_t sizes[PERF_ROWS_MAX];
    size_t size_count;
    uint64_t iterations, duration_ns, warmup, hold_ns;
    uint32_t timeout_ms; /* PERF_TIMEOUT_MS, or what the user wants */
    bool inline_given;
    bool json, csv, histogram, counters, gigabits, progress;
    const char *plot, *samples; /* files, or NULL */
    const char *host;
    uint16_t port;

    struct perf_lane *lanes; /* params.threads */
    struct ndc_target target;
    FILE *samples_file, *plot_file;
    struct perf_heading heading;
    struct perf_counters counted[PERF_COUNTED];
    struct perf_row *rows; /* PERF_ROWS_MAX */
    size_t row_count;
};

int perf_serve_clients(const char *host, uint16_t port, uint32_t timeout_ms, bool once);
int perf_run_client(struct perf_client *c);

/* For perf_run_client: connection and registration rates; they fill c->rows. */
HRESULT perf_connection_rate(struct perf_client *c);
/* *why: NULL, or what to say instead of the status. */
HRESULT perf_registration_rate(struct perf_client *c, const char **why);
/* Takes the counters of these objects, if the user wants them; NULL: there is none. */
void perf_take_counters(struct perf_client *c, IND2Adapter *ad, IND2QueuePair *qp,
                        IND2CompletionQueue *cq);
/* Prints a row of the table or CSV when it is there. */
void perf_show_row(struct perf_client *c, const struct perf_row *r);

#endif
