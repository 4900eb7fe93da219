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

/* ---- connecting ---- */

static HRESULT greet(struct perf_client *c, struct perf_end *e, uint32_t session, uint32_t index) {
    uint8_t hello[PERF_GREETING_BYTES];
    struct ndc_target *t = &c->target;
    HRESULT hr = perf_end_open(e, &t->ad, NULL, c->timeout_ms);

    if (FAILED(hr)) return hr;
    perf_pack_greeting(PERF_ROLE_CONTROL, session, index, hello);
    hr = ndc_conn_connect(&e->control, (struct sockaddr *)&t->local, (struct sockaddr *)&t->remote,
                          1, 1, hello, sizeof hello, c->timeout_ms);
    if (FAILED(hr)) perf_end_close(e);
    return hr;
}

static HRESULT connect_control(struct ndc_target *t, void *context) {
    struct perf_client *c = context;

    (void)t; /* c->target */
    return greet(c, &c->lanes[0].end, 0, 0);
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
    if (perf_queue_depth(p) > info->MaxCompletionQueueDepth)
        return "more results than a completion queue of the adapter can take: lower -q, -t or -r";
    if (p->reads > info->MaxOutboundReadLimit) p->reads = info->MaxOutboundReadLimit;
    if (p->reads > info->MaxInboundReadLimit) p->reads = info->MaxInboundReadLimit;
    if (p->verb == PERF_WRITE && p->kind == PERF_LATENCY &&
        !(info->AdapterFlags & ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED))
        fputs("softnd perf: note: this adapter does not promise that the last byte arrives last\n",
              stderr);
    return perf_params_check(p);
}

static HRESULT say_hello(struct perf_client *c, struct perf_lane *lane, const char **why) {
    struct perf_end *e = &lane->end;
    struct perf_message m;
    HRESULT hr = perf_end_prepare(e, &c->params);

    if (FAILED(hr)) return hr;
    perf_params_to_message(&c->params, &m);
    m.v[PERF_VALUES - 2] = (uintptr_t)e->memory.buf;
    m.v[PERF_VALUES - 1] = e->memory.remote_token;
    hr = perf_control_send(e, &m);
    if (SUCCEEDED(hr)) hr = perf_control_wait(e, PERF_READY, &m);
    if (FAILED(hr)) return hr;
    if (FAILED((HRESULT)m.v[0])) {
        static char text[96];
        snprintf(text, sizeof text, "the server cannot take part with these options: %s",
                 ndc_text((HRESULT)m.v[0]));
        *why = text;
        return (HRESULT)m.v[0];
    }
    e->peer_address = m.v[1];
    e->peer_token = (uint32_t)m.v[2];
    lane->session = (uint32_t)m.v[3];
    return ND_SUCCESS;
}

static HRESULT connect_data(struct perf_client *c, struct perf_lane *lane) {
    uint64_t count = c->params.qps + c->params.idle_qps;
    struct perf_qp *q;
    HRESULT hr = ND_SUCCESS;

    for (uint64_t i = 0; i < count && SUCCEEDED(hr); i++) {
        hr = perf_end_add_qp(&lane->end, NULL, &q);
        if (SUCCEEDED(hr))
            hr = perf_qp_connect(&lane->end, q, (struct sockaddr *)&c->target.local,
                                 (struct sockaddr *)&c->target.remote, lane->session);
        if (SUCCEEDED(hr) && sys_stop_requested()) hr = E_ABORT;
    }
    if (SUCCEEDED(hr)) ndc_transport(lane->end.qps[0].qp, c->heading.transport);
    return hr;
}

/* One lane after the other, as the server expects them; the first is greeted already. */
static HRESULT connect_lanes(struct perf_client *c, const char **why) {
    HRESULT hr = connect_data(c, &c->lanes[0]);

    for (uint32_t i = 1; i < c->params.threads && SUCCEEDED(hr); i++) {
        struct perf_lane *lane = &c->lanes[i];
        hr = greet(c, &lane->end, c->lanes[0].session, i);
        if (SUCCEEDED(hr)) hr = say_hello(c, lane, why);
        if (SUCCEEDED(hr)) hr = connect_data(c, lane);
    }
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
    if (c->duration_ns == PERF_ENDLESS)
        snprintf(h->length, sizeof h->length, "until interrupted");
    else if (c->duration_ns)
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

/* All lanes as one: their messages, in the time from the first one's beginning to the last one's
 * end. The server's clock is its own, so of its ends the longest time counts. */
static void sum_up(const struct perf_client *c, struct perf_report_values *own,
                   struct perf_report_values *peer) {
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;

    *own = c->lanes[0].run.own; /* the processor's time is that of the process */
    *peer = c->lanes[0].peer;
    for (uint64_t i = 0; i < c->params.threads; i++) {
        const struct perf_lane *l = &c->lanes[i];
        if (l->run.started_ns < begin_ns) begin_ns = l->run.started_ns;
        if (l->run.started_ns + l->run.own.elapsed_ns > end_ns)
            end_ns = l->run.started_ns + l->run.own.elapsed_ns;
        if (!i) continue;
        own->messages += l->run.own.messages;
        own->wrong += l->run.own.wrong;
        peer->messages += l->peer.messages;
        peer->wrong += l->peer.wrong;
        if (l->peer.elapsed_ns > peer->elapsed_ns) peer->elapsed_ns = l->peer.elapsed_ns;
    }
    if (own->elapsed_ns) own->elapsed_ns = end_ns - begin_ns;
}

/* In the order in which they were taken; of a long run the last ones. */
static void write_samples(const struct perf_client *c, double divisor) {
    const struct perf_run *run = &c->lanes[0].run;
    uint64_t n = run->sample_count, from = n > PERF_SAMPLES_MAX ? n - PERF_SAMPLES_MAX : 0;

    for (uint64_t i = from; i < n; i++)
        fprintf(c->samples_file, "%llu,%.4f\n", (unsigned long long)run->request.size,
                (double)run->samples_ns[i % PERF_SAMPLES_MAX] / divisor / 1000);
}

static void compute_row(struct perf_client *c, struct perf_row *r) {
    struct perf_run *run = &c->lanes[0].run;
    struct perf_report_values own, peer;
    size_t n = (size_t)run->sample_count;
    double divisor = c->params.verb == PERF_READ ? 1 : 2;

    sum_up(c, &own, &peer);
    r->bytes = run->request.size;
    r->wrong = own.wrong + peer.wrong;
    r->cpu_percent = percent(own.cpu_ns, own.wall_ns);
    r->peer_cpu_percent = percent(peer.cpu_ns, peer.wall_ns);
    add_direction(r, &own);
    if (c->params.bidirectional) add_direction(r, &peer);
    c->heading.memory_bytes = own.memory_bytes;
    c->heading.peer_memory_bytes = peer.memory_bytes;
    r->peak_bytes_per_s = -1; /* of several directions or threads it is not known */
    if (c->params.kind == PERF_BANDWIDTH) {
        if (!c->params.bidirectional && c->params.threads == 1)
            r->peak_bytes_per_s = perf_peak_rate(run->marks, run->mark_count) * (double)r->bytes;
        if (r->peak_bytes_per_s > 0 && r->peak_bytes_per_s < r->bytes_per_s)
            r->peak_bytes_per_s = r->bytes_per_s;
        return;
    }
    if (c->samples_file) write_samples(c, divisor); /* before they are sorted */
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

static void run_lane(void *arg) {
    struct perf_lane *lane = arg;
    struct perf_end *e = &lane->end;
    struct perf_message m;
    HRESULT hr;

    lane->run.sends = true;
    e->stop_is_end = lane->run.request.duration_ns == PERF_ENDLESS;
    hr = perf_run(e, &lane->run, true);
    if (SUCCEEDED(hr)) hr = perf_control_wait(e, PERF_REPORT, &m);
    e->stop_is_end = false;
    if (SUCCEEDED(hr))
        lane->peer = (struct perf_report_values){ .messages = m.v[0],
                                                  .elapsed_ns = m.v[1],
                                                  .received = m.v[2],
                                                  .wrong = m.v[3],
                                                  .cpu_ns = m.v[4],
                                                  .wall_ns = m.v[5],
                                                  .memory_bytes = m.v[6] };
    lane->status = hr;
}

static HRESULT run_sizes(struct perf_client *c) {
    HRESULT hr = ND_SUCCESS;

    for (size_t i = 0; i < c->size_count && SUCCEEDED(hr); i++) {
        struct perf_row *r = &c->rows[c->row_count];
        for (uint64_t t = 0; t < c->params.threads; t++)
            c->lanes[t].run.request = (struct perf_run_request){ .size = c->sizes[i],
                                                                 .iterations = c->iterations,
                                                                 .duration_ns = c->duration_ns,
                                                                 .warmup = c->warmup };
        hr = perf_run_lanes(c->lanes, c->params.threads, run_lane);
        if (FAILED(hr)) break;
        compute_row(c, r);
        c->row_count++;
        perf_show_row(c, r);
        if (c->duration_ns == PERF_ENDLESS && sys_stop_requested()) break;
    }
    return hr;
}

/* Connected, without a call into the library. */
static HRESULT hold(struct perf_client *c) {
    uint64_t start = sys_now_ns(), cpu = sys_cpu_ns(), now = start;

    if (!c->hold_ns) return ND_SUCCESS;
    while (now - start < c->hold_ns && !sys_stop_requested()) {
        sys_sleep_until(start + c->hold_ns);
        now = sys_now_ns();
    }
    c->heading.idle_seconds = (double)(now - start) / 1e9;
    c->heading.idle_cpu_percent = percent(sys_cpu_ns() - cpu, now - start);
    return sys_stop_requested() ? E_ABORT : ND_SUCCESS;
}

/* ---- all of it ---- */

void perf_take_counters(struct perf_client *c, IND2Adapter *ad, IND2QueuePair *qp,
                        IND2CompletionQueue *cq) {
    IUnknown *const objects[PERF_COUNTED] = { (IUnknown *)ad, (IUnknown *)qp, (IUnknown *)cq };
    static const char *const names[PERF_COUNTED] = { "adapter", "queue_pair", "completion_queue" };
    _Static_assert(sizeof c->counted[0].text == NDC_COUNTERS_BYTES, "room for them");

    if (!c->counters) return;
    for (int i = 0; i < PERF_COUNTED; i++) {
        if (!objects[i]) continue;
        c->counted[i].what = names[i];
        if (!ndc_counters(objects[i], c->counted[i].text)) c->counted[i].text[0] = 0;
    }
}

static HRESULT run_connected(struct perf_client *c, const char **why) {
    const struct perf_message bye = { .type = PERF_BYE };
    bool has_data = c->params.kind != PERF_RATE;
    HRESULT hr;

    *why = fit_to_adapter(c);
    hr = *why ? ND_INVALID_PARAMETER : say_hello(c, &c->lanes[0], why);
    if (SUCCEEDED(hr)) {
        describe(c);
        if (c->params.kind == PERF_RATE) {
            hr = perf_connection_rate(c);
        } else {
            hr = connect_lanes(c, why);
            if (SUCCEEDED(hr)) hr = hold(c);
            if (SUCCEEDED(hr)) hr = run_sizes(c);
        }
    }
    if (SUCCEEDED(hr))
        perf_take_counters(c, c->target.ad.adapter, has_data ? c->lanes[0].end.qps[0].qp : NULL,
                           has_data ? c->lanes[0].end.cq : NULL);
    for (uint64_t i = 0; i < c->params.threads; i++) {
        struct perf_end *e = &c->lanes[i].end;
        e->stop_is_end = SUCCEEDED(hr);
        if (e->control.connected) perf_control_send(e, &bye);
    }
    return hr;
}

/* Before anybody is asked: a test of an hour does not end with a file that cannot be written. */
static int open_file(const char *path, FILE **out) {
    if (!path) return EXIT_DONE;
    *out = fopen(path, "w");
    return *out ? EXIT_DONE : cmd_fail("perf", "%s: cannot be written", path);
}

static int close_file(const char *path, FILE **file) {
    bool failed;

    if (!*file) return EXIT_DONE;
    failed = ferror(*file) != 0;
    if (fclose(*file) != 0) failed = true;
    *file = NULL;
    return failed ? cmd_fail("perf", "%s: cannot be written", path) : EXIT_DONE;
}

static int finish(struct perf_client *c) {
    int code;

    if (c->json)
        perf_print_json(stdout, &c->heading, c->rows, c->row_count,
                        c->counters ? c->counted : NULL);
    else if (c->counters)
        perf_print_counters(stdout, c->counted);
    if (c->plot_file) perf_print_svg(c->plot_file, &c->heading, c->rows, c->row_count);
    code = close_file(c->plot, &c->plot_file);
    if (close_file(c->samples, &c->samples_file) != EXIT_DONE) code = EXIT_FAILED;
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
    for (uint64_t i = 0; i < c->params.threads; i++)
        if (c->lanes[i].end.ad) perf_end_close(&c->lanes[i].end);
    ndc_adapter_close(&c->target.ad);
    if (SUCCEEDED(hr)) return finish(c);
    return cmd_fail("perf", "%s: %s", c->target.text, why ? why : ndc_text(hr));
}

static int run_local(struct perf_client *c) {
    const char *why;
    HRESULT hr = perf_registration_rate(c, &why);

    if (FAILED(hr)) return cmd_fail("perf", "%s", why ? why : ndc_text(hr));
    return finish(c);
}

/* What has to be had before the test. */
static int prepare(struct perf_client *c) {
    c->rows = calloc(PERF_ROWS_MAX, sizeof *c->rows);
    c->lanes = calloc((size_t)c->params.threads, sizeof *c->lanes);
    if (!c->rows || !c->lanes) return cmd_fail("perf", "out of memory");
    for (uint64_t i = 0; i < c->params.threads; i++)
        if (!perf_run_init(&c->lanes[i].run, c->params.kind == PERF_LATENCY))
            return cmd_fail("perf", "out of memory");
    c->lanes[0].run.progress = c->progress;
    if (open_file(c->plot, &c->plot_file) != EXIT_DONE) return EXIT_FAILED;
    if (open_file(c->samples, &c->samples_file) != EXIT_DONE) return EXIT_FAILED;
    if (c->samples_file) fputs("bytes,us\n", c->samples_file);
    return EXIT_DONE;
}

int perf_run_client(struct perf_client *c) {
    int code = prepare(c);

    if (code == EXIT_DONE) code = c->params.verb == PERF_REGISTER ? run_local(c) : run_remote(c);
    if (c->samples_file) fclose(c->samples_file);
    if (c->plot_file) fclose(c->plot_file);
    for (uint64_t i = 0; c->lanes && i < c->params.threads; i++)
        perf_run_fini(&c->lanes[i].run);
    free(c->lanes);
    free(c->rows);
    return code;
}
