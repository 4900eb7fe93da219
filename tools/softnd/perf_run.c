/* SPDX-License-Identifier: MIT
 * perf_run.c - what the loops share; see perf_run.h.
 */
#include "perf_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ping.h"
#include "sys.h"

/* A computing target looks at its control connection this often. */
#define BUSY_LOOK_NS 250000000u
#define PROGRESS_NS 1000000000u

bool perf_run_init(struct perf_run *run, bool times) {
    *run = (struct perf_run){ 0 };
    if (times) run->samples_ns = sys_pages_alloc(PERF_SAMPLES_MAX * sizeof *run->samples_ns);
    run->marks = calloc(PERF_MARKS_MAX, sizeof *run->marks);
    if (run->marks && (run->samples_ns || !times)) return true;
    perf_run_fini(run);
    return false;
}

void perf_run_fini(struct perf_run *run) {
    if (run->samples_ns)
        sys_pages_free(run->samples_ns, PERF_SAMPLES_MAX * sizeof *run->samples_ns);
    free(run->marks);
    *run = (struct perf_run){ 0 };
}

void perf_run_start_clock(struct perf_run *run) {
    run->started_ns = sys_now_ns();
    run->cpu_started_ns = sys_cpu_ns();
    run->told_ns = run->started_ns;
    run->told_messages = 0;
}

void perf_run_tell(struct perf_run *run, uint64_t now_ns, uint64_t messages) {
    uint64_t n = messages - run->told_messages;
    double s = (double)(now_ns - run->told_ns) / 1e9;

    if (now_ns - run->told_ns < PROGRESS_NS) return;
    fprintf(stderr, "softnd perf: %.0f s: %llu messages, %.6f Mpps, %.2f MiB/s\n",
            (double)(now_ns - run->started_ns) / 1e9, (unsigned long long)n, (double)n / s / 1e6,
            (double)n * (double)run->request.size / s / 1048576);
    run->told_ns = now_ns;
    run->told_messages = messages;
}

bool perf_run_expired(const struct perf_end *e, const struct perf_run *run, uint64_t now_ns) {
    uint64_t duration_ns = run->request.duration_ns;

    if (duration_ns == PERF_ENDLESS)
        return e->stop_is_end ? sys_stop_requested() : e->have[PERF_DONE];
    return duration_ns && now_ns - run->started_ns >= duration_ns;
}

void perf_run_stop_clock(struct perf_run *run, uint64_t messages) {
    run->own.wall_ns = sys_now_ns() - run->started_ns;
    run->own.cpu_ns = sys_cpu_ns() - run->cpu_started_ns;
    run->own.elapsed_ns = messages ? run->own.wall_ns : 0;
    run->own.messages = messages;
}

HRESULT perf_say_done(struct perf_end *e, uint64_t sent, uint64_t least) {
    const struct perf_message m = { .type = PERF_DONE, .v = { sent, least } };

    return perf_control_send(e, &m);
}

HRESULT perf_say_result(struct perf_end *e, struct perf_run *run) {
    const struct perf_message m = { .type = PERF_RESULT,
                                    .v = { run->own.received, run->own.wrong } };

    return perf_control_send(e, &m);
}

/* Work that the compiler cannot leave out. */
static void compute(uint64_t until_ns) {
    volatile uint64_t x = 1;

    while (sys_now_ns() < until_ns)
        for (int i = 0; i < 1000; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
}

HRESULT perf_serve(struct perf_end *e) {
    bool sleeps = e->params.target == PERF_TARGET_SLEEP;
    ND2_RESULT results[PERF_RESULTS];
    HRESULT hr = ND_SUCCESS;
    ULONG n;

    while (SUCCEEDED(hr) && !e->have[PERF_DONE]) {
        if (e->params.target == PERF_TARGET_BUSY) {
            compute(sys_now_ns() + BUSY_LOOK_NS);
            hr = perf_control_poll(e);
        } else {
            hr = perf_end_results(e, results, &n, sleeps);
        }
    }
    return hr;
}

/* Reads find, and Writes bring, a content that depends on the place. A target starts without it. */
static void prepare_content(struct perf_end *e, const struct perf_run *run) {
    const struct perf_layout *l = &e->layout;
    uint64_t size = run->request.size;

    if (e->params.kind == PERF_LATENCY && e->params.verb == PERF_WRITE)
        perf_target_place(e, 0)[size - 1] = 0;
    if (!e->params.verify || e->params.verb == PERF_SEND) return;
    if (e->params.kind == PERF_LATENCY && e->params.verb == PERF_WRITE) return;
    for (uint64_t i = 0; i < l->tx_slots; i++) {
        if (e->params.verb == PERF_WRITE) {
            ping_fill(perf_tx_place(e, i), size, i + 1);
            memset(perf_target_place(e, i), 0, size);
        } else {
            ping_fill(perf_target_place(e, i), size, i + 1);
            memset(perf_tx_place(e, i), 0, size);
        }
    }
}

/* The client asks and the server agrees; each has its memory ready before it speaks. */
static HRESULT agree(struct perf_end *e, const struct perf_run *run, bool is_client) {
    const struct perf_run_request *r = &run->request;
    struct perf_message m = { .type = PERF_RUN,
                              .v = { r->size, r->iterations, r->duration_ns, r->warmup } };
    HRESULT hr;

    prepare_content(e, run);
    if (!is_client) {
        m = (struct perf_message){ .type = PERF_GO };
        return perf_control_send(e, &m);
    }
    hr = perf_control_send(e, &m);
    return FAILED(hr) ? hr : perf_control_wait(e, PERF_GO, &m);
}

HRESULT perf_run(struct perf_end *e, struct perf_run *run, bool is_client) {
    HRESULT hr;

    run->sample_count = run->mark_count = 0;
    run->own = (struct perf_report_values){ 0 };
    hr = agree(e, run, is_client);
    if (FAILED(hr)) return hr;
    hr = e->params.kind == PERF_LATENCY ? perf_run_latency(e, run) : perf_run_bandwidth(e, run);
    run->own.memory_bytes = sys_memory_bytes();
    return hr;
}
