/* SPDX-License-Identifier: MIT
 * perf_client.c - the client of `softnd perf`: connects, runs every size, computes and prints.
 */
#include <initguid.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "perf_roles.h"
#include "sys.h"
#include "text.h"

#define CONNECT_MS 30000

/* ---- connecting ---- */

static HRESULT connect_control(struct ndc_target *t, void *context) {
    struct perf_client *c = context;
    uint8_t hello[PERF_GREETING_BYTES];
    HRESULT hr = perf_end_open(&c->end, &t->ad, NULL);

    if (FAILED(hr)) return hr;
    perf_pack_greeting(PERF_ROLE_CONTROL, 0, 0, hello);
    hr = ndc_conn_connect(&c->end.control, (struct sockaddr *)&t->local,
                          (struct sockaddr *)&t->remote, 1, 1, hello, sizeof hello, CONNECT_MS);
    if (FAILED(hr)) perf_end_close(&c->end);
    return hr;
}

/* What the adapter cannot do is said before it is tried. */
static const char *fit_to_adapter(struct perf_client *c) {
    const ND2_ADAPTER_INFO *info = &c->target.ad.info;
    struct perf_params *p = &c->params;
    uint64_t limit = info->InlineRequestThreshold;

    if (limit > info->MaxInlineDataSize) limit = info->MaxInlineDataSize;
    if (!c->inline_given)
        p->inline_bytes = p->kind == PERF_LATENCY && p->verb != PERF_READ ? limit : 0;
    if (p->inline_bytes > info->MaxInlineDataSize)
        return "more inline data than the adapter can take";
    if (p->sges > info->MaxInitiatorSge || p->sges > info->MaxReceiveSge ||
        (p->verb == PERF_READ && p->sges > info->MaxReadSge))
        return "more SGEs than the adapter can take";
    if (p->size > info->MaxTransferLength) return "larger messages than the adapter can take";
    if (p->tx_depth + PERF_CREDIT_SLOTS + 1 > info->MaxInitiatorQueueDepth ||
        p->rx_depth + PERF_CREDIT_SLOTS > info->MaxReceiveQueueDepth)
        return "a deeper queue than the adapter has";
    if (p->reads > info->MaxOutboundReadLimit) p->reads = info->MaxOutboundReadLimit;
    if (p->verb == PERF_WRITE && p->kind == PERF_LATENCY &&
        !(info->AdapterFlags & ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED))
        fputs("softnd perf: note: this adapter does not promise that the last byte arrives last\n",
              stderr);
    return perf_params_check(p);
}

static HRESULT say_hello(struct perf_client *c, const char **why) {
    struct perf_message m;
    HRESULT hr;

    *why = fit_to_adapter(c);
    if (*why) return ND_INVALID_PARAMETER;
    hr = perf_end_prepare(&c->end, &c->params);
    if (FAILED(hr)) return hr;
    perf_params_to_message(&c->params, &m);
    m.v[PERF_VALUES - 2] = (uintptr_t)c->end.memory.buf;
    m.v[PERF_VALUES - 1] = c->end.memory.remote_token;
    hr = perf_control_send(&c->end, &m);
    if (SUCCEEDED(hr)) hr = perf_control_wait(&c->end, PERF_READY, &m);
    if (FAILED(hr)) return hr;
    if (FAILED((HRESULT)m.v[0])) {
        *why = "the server cannot take part with these options";
        return (HRESULT)m.v[0];
    }
    c->end.peer_address = m.v[1];
    c->end.peer_token = (uint32_t)m.v[2];
    c->session = (uint32_t)m.v[3];
    return ND_SUCCESS;
}

static HRESULT connect_data(struct perf_client *c) {
    uint64_t count = c->params.qps + c->params.idle_qps;
    struct perf_qp *q;
    HRESULT hr = ND_SUCCESS;

    for (uint64_t i = 0; i < count && SUCCEEDED(hr); i++) {
        hr = perf_end_add_qp(&c->end, NULL, &q);
        if (SUCCEEDED(hr))
            hr = perf_qp_connect(&c->end, q, (struct sockaddr *)&c->target.local,
                                 (struct sockaddr *)&c->target.remote, c->session);
        if (SUCCEEDED(hr) && sys_stop_requested()) hr = E_ABORT;
    }
    if (SUCCEEDED(hr)) ndc_transport(c->end.qps[0].qp, c->heading.transport);
    return hr;
}

static void describe(struct perf_client *c) {
    struct perf_heading *h = &c->heading;

    h->params = c->params;
    h->gigabits = c->gigabits;
    h->warmup = c->warmup;
    snprintf(h->peer, sizeof h->peer, "%s", c->target.text);
    if (c->params.cold_bytes)
        snprintf(h->buffers, sizeof h->buffers, "cold, messages cycle through %llu MiB",
                 (unsigned long long)(c->params.cold_bytes >> 20));
    else if (c->params.verify)
        snprintf(h->buffers, sizeof h->buffers, "one place for each message under way");
    else
        snprintf(h->buffers, sizeof h->buffers, "warm, every message from the same place");
    if (c->duration_ns)
        snprintf(h->length, sizeof h->length, "%.3g s", (double)c->duration_ns / 1e9);
    else
        snprintf(h->length, sizeof h->length, "%llu iterations", (unsigned long long)c->iterations);
}

/* ---- rows ---- */

static double percent(uint64_t part_ns, uint64_t whole_ns) {
    return whole_ns ? 100.0 * (double)part_ns / (double)whole_ns : -1;
}

static void add_direction(struct perf_row *r, const struct perf_report_values *v) {
    double s = (double)v->elapsed_ns / 1e9;

    if (!v->elapsed_ns) return;
    r->iterations += v->messages;
    r->messages_per_s += (double)v->messages / s;
    r->bytes_per_s += (double)v->messages * (double)r->bytes / s;
    if (s > r->seconds) r->seconds = s;
}

static void compute_row(struct perf_client *c, const struct perf_report_values *peer,
                        struct perf_row *r) {
    struct perf_run *run = &c->run;
    size_t n = (size_t)run->sample_count;
    double divisor = c->params.verb == PERF_READ ? 1 : 2;

    r->bytes = run->request.size;
    r->wrong = run->own.wrong + peer->wrong;
    r->cpu_percent = percent(run->own.cpu_ns, run->own.wall_ns);
    r->peer_cpu_percent = percent(peer->cpu_ns, peer->wall_ns);
    add_direction(r, &run->own);
    if (c->params.bidirectional) add_direction(r, peer);
    if (c->params.kind == PERF_BANDWIDTH) {
        if (!c->params.bidirectional)
            r->peak_bytes_per_s = perf_peak_rate(run->marks, run->mark_count) * (double)r->bytes;
        if (r->peak_bytes_per_s && r->peak_bytes_per_s < r->bytes_per_s)
            r->peak_bytes_per_s = r->bytes_per_s;
        return;
    }
    if (n > PERF_SAMPLES_MAX) n = PERF_SAMPLES_MAX;
    perf_summarize(run->samples_ns, n, divisor, &r->times);
    if (c->histogram) r->bucket_count = perf_histogram(run->samples_ns, n, divisor, r->histogram);
}

void perf_show_row(struct perf_client *c, const struct perf_row *r) {
    if (c->json) return;
    if (r == c->rows && c->csv) perf_print_csv_heading(stdout);
    if (r == c->rows && !c->csv) perf_print_heading(stdout, &c->heading);
    if (c->csv) {
        perf_print_csv_row(stdout, &c->heading, r);
    } else {
        perf_print_row(stdout, &c->heading, r);
        perf_print_histogram(stdout, r);
    }
    fflush(stdout);
}

static HRESULT run_sizes(struct perf_client *c) {
    struct perf_message m;
    HRESULT hr = ND_SUCCESS;

    for (size_t i = 0; i < c->size_count && SUCCEEDED(hr); i++) {
        struct perf_row *r = &c->rows[c->row_count];
        struct perf_report_values peer;
        c->run.sends = true;
        c->run.request = (struct perf_run_request){ .size = c->sizes[i],
                                                    .iterations = c->iterations,
                                                    .duration_ns = c->duration_ns,
                                                    .warmup = c->warmup };
        hr = perf_run(&c->end, &c->run, true);
        if (SUCCEEDED(hr)) hr = perf_control_wait(&c->end, PERF_REPORT, &m);
        if (FAILED(hr)) break;
        peer = (struct perf_report_values){ .messages = m.v[0],
                                            .elapsed_ns = m.v[1],
                                            .received = m.v[2],
                                            .wrong = m.v[3],
                                            .cpu_ns = m.v[4],
                                            .wall_ns = m.v[5],
                                            .memory_bytes = m.v[6] };
        compute_row(c, &peer, r);
        c->heading.memory_bytes = c->run.own.memory_bytes;
        c->heading.peer_memory_bytes = peer.memory_bytes;
        c->row_count++;
        perf_show_row(c, r);
    }
    return hr;
}

/* Connected, without a call into the library. */
static HRESULT hold(struct perf_client *c) {
    uint64_t start = sys_now_ns(), cpu = sys_cpu_ns(), now = start;

    if (!c->hold_ns) return ND_SUCCESS;
    while (now - start < c->hold_ns && !sys_stop_requested()) {
        sys_sleep_ns(c->hold_ns - (now - start));
        now = sys_now_ns();
    }
    c->heading.idle_seconds = (double)(now - start) / 1e9;
    c->heading.idle_cpu_percent = percent(sys_cpu_ns() - cpu, now - start);
    return sys_stop_requested() ? E_ABORT : ND_SUCCESS;
}

/* ---- all of it ---- */

static HRESULT run_connected(struct perf_client *c, const char **why) {
    const struct perf_message bye = { .type = PERF_BYE };
    HRESULT hr = say_hello(c, why);

    if (SUCCEEDED(hr)) {
        describe(c);
        if (c->params.kind == PERF_RATE) {
            hr = perf_connection_rate(c);
        } else {
            hr = connect_data(c);
            if (SUCCEEDED(hr)) hr = hold(c);
            if (SUCCEEDED(hr)) hr = run_sizes(c);
        }
    }
    perf_control_send(&c->end, &bye);
    return hr;
}

static int write_plot(struct perf_client *c) {
    FILE *f = fopen(c->plot, "w");
    bool failed;

    if (!f) return cmd_fail("perf", "%s: cannot be written", c->plot);
    perf_print_svg(f, &c->heading, c->rows, c->row_count);
    failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) return cmd_fail("perf", "%s: cannot be written", c->plot);
    return EXIT_DONE;
}

static int finish(struct perf_client *c) {
    int code = EXIT_DONE;

    if (c->json) perf_print_json(stdout, &c->heading, c->rows, c->row_count);
    if (c->plot) code = write_plot(c);
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].wrong) return cmd_fail("perf", "data arrived wrong");
    return code;
}

static int run_remote(struct perf_client *c) {
    const char *why;
    HRESULT hr = ndc_target_open(&c->target, c->host, c->port, connect_control, c, &why);

    if (FAILED(hr)) {
        if (why) return cmd_fail("perf", "%s: %s", c->host, why);
        if (hr == ND_INVALID_ADDRESS)
            return cmd_fail("perf", "%s: no NetworkDirect adapter leads there", c->target.text);
        return cmd_fail("perf", "%s: %s", c->target.text, ndc_text(hr));
    }
    hr = run_connected(c, &why);
    perf_end_close(&c->end);
    ndc_adapter_close(&c->target.ad);
    if (SUCCEEDED(hr)) return finish(c);
    return cmd_fail("perf", "%s: %s", c->target.text, why ? why : ndc_text(hr));
}

static int run_local(struct perf_client *c) {
    HRESULT hr = perf_registration_rate(c);

    if (FAILED(hr)) return cmd_fail("perf", "%s", ndc_text(hr));
    return finish(c);
}

int perf_run_client(struct perf_client *c) {
    int code;

    c->rows = calloc(PERF_ROWS_MAX, sizeof *c->rows);
    if (!c->rows || !perf_run_init(&c->run)) {
        free(c->rows);
        return cmd_fail("perf", "out of memory");
    }
    c->run.progress = c->progress;
    code = c->params.verb == PERF_REGISTER ? run_local(c) : run_remote(c);
    perf_run_fini(&c->run);
    free(c->rows);
    return code;
}
