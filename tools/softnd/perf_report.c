/* SPDX-License-Identifier: MIT
 * perf_report.c - see perf_report.h. Latency tests print the median first, since it is the figure
 * that a stray interruption does not move.
 */
#include "perf_report.h"

#include <string.h>
#include "text.h"

#define MIB (1024.0 * 1024.0)
#define BAR 50

static bool has_times(const struct perf_heading *h) {
    return h->params.kind != PERF_BANDWIDTH;
}

static double bandwidth(const struct perf_heading *h, double bytes_per_s) {
    return h->gigabits ? bytes_per_s * 8 / 1e9 : bytes_per_s / MIB;
}

static const char *target_text(const struct perf_params *p) {
    static const char *const texts[] = { "polls", "sleeps", "computes without calling in" };

    return texts[p->target];
}

static void print_setup(FILE *to, const struct perf_heading *h) {
    const struct perf_params *p = &h->params;

    fprintf(to, "# %s, %llu queue pair%s", h->peer[0] ? h->peer : "this host",
            (unsigned long long)p->qps, p->qps == 1 ? "" : "s");
    if (p->idle_qps) fprintf(to, " and %llu idle", (unsigned long long)p->idle_qps);
    if (p->threads > 1) fprintf(to, " in each of %llu threads", (unsigned long long)p->threads);
    fprintf(to, ", depth %llu", (unsigned long long)p->tx_depth);
    if (p->verb == PERF_SEND) fprintf(to, ", receives %llu", (unsigned long long)p->rx_depth);
    if (p->verb == PERF_READ) fprintf(to, ", reads %llu", (unsigned long long)p->reads);
    if (p->sges > 1) fprintf(to, ", SGEs %llu", (unsigned long long)p->sges);
    fprintf(to, ", inline to %llu", (unsigned long long)p->inline_bytes);
    if (p->post_batch > 1) fprintf(to, ", post batch %llu", (unsigned long long)p->post_batch);
    if (p->cq_moderation > 1)
        fprintf(to, ", CQ moderation %llu", (unsigned long long)p->cq_moderation);
    fprintf(to, ", %s", p->events ? "events" : "polling");
    if (p->bidirectional) fputs(", both directions", to);
    if (p->verb != PERF_SEND && p->kind == PERF_BANDWIDTH && !p->bidirectional)
        fprintf(to, ", the target's application %s", target_text(p));
    if (p->verify) fputs(", every byte verified", to);
    if (h->idle_seconds > 0)
        fprintf(to, "\n# %.3g s without traffic took %.3f %% of a core", h->idle_seconds,
                h->idle_cpu_percent);
    fprintf(to, "\n# buffers %s; %s after %llu to warm up\n", h->buffers, h->length,
            (unsigned long long)h->warmup);
}

void perf_print_heading(FILE *to, const struct perf_heading *h) {
    fprintf(to, "# softnd perf %s, transport %s", perf_test_name(&h->params), h->transport);
    if (h->params.kind == PERF_LATENCY)
        fputs(h->params.verb == PERF_READ ? ", the whole Read" : ", half the round trip", to);
    fputc('\n', to);
    if (h->params.kind == PERF_RATE)
        fprintf(to, "# %s\n", h->buffers);
    else
        print_setup(to, h);
    if (h->params.kind == PERF_RATE) fprintf(to, "%-12s", "#what");
    fprintf(to, "%-10s %12s", "#bytes", "#iterations");
    if (has_times(h))
        fprintf(to, " %15s %11s %11s %11s %13s %14s %16s", "t_typical[usec]", "t_min[usec]",
                "t_max[usec]", "t_avg[usec]", "t_stdev[usec]", "99%_perc[usec]",
                "99.9%_perc[usec]");
    else
        fprintf(to, " %15s %18s %14s", h->gigabits ? "BW_peak[Gb/s]" : "BW_peak[MiB/s]",
                h->gigabits ? "BW_average[Gb/s]" : "BW_average[MiB/s]", "MsgRate[Mpps]");
    if (h->params.kind == PERF_RATE)
        fprintf(to, " %11s\n", "rate[1/s]");
    else
        fprintf(to, " %8s %9s\n", "CPU[%]", "peerCPU[%]");
}

/* Negative: not known. */
static void print_known(FILE *to, double value, int width) {
    if (value < 0)
        fprintf(to, " %*s", width, "-");
    else
        fprintf(to, " %*.1f", width, value);
}

void perf_print_row(FILE *to, const struct perf_heading *h, const struct perf_row *r) {
    const struct perf_summary *t = &r->times;

    if (h->params.kind == PERF_RATE) fprintf(to, "%-12s", r->what ? r->what : "");
    fprintf(to, "%-10llu %12llu", (unsigned long long)r->bytes, (unsigned long long)r->iterations);
    if (has_times(h))
        fprintf(to, " %15.2f %11.2f %11.2f %11.2f %13.2f %14.2f %16.2f", t->median, t->min, t->max,
                t->mean, t->deviation, t->p99, t->p999);
    else {
        if (r->peak_bytes_per_s < 0)
            fprintf(to, " %15s", "-");
        else
            fprintf(to, " %15.2f", bandwidth(h, r->peak_bytes_per_s));
        fprintf(to, " %18.2f %14.6f", bandwidth(h, r->bytes_per_s), r->messages_per_s / 1e6);
    }
    if (h->params.kind == PERF_RATE) {
        print_known(to, r->messages_per_s, 11);
    } else {
        print_known(to, r->cpu_percent, 8);
        print_known(to, r->peer_cpu_percent, 9);
    }
    if (r->wrong) fprintf(to, "  %llu WRONG", (unsigned long long)r->wrong);
    fputc('\n', to);
}

void perf_print_histogram(FILE *to, const struct perf_row *r) {
    uint64_t most = 1;

    for (size_t i = 0; i < r->bucket_count; i++)
        if (r->histogram[i].count > most) most = r->histogram[i].count;
    for (size_t i = 0; i < r->bucket_count; i++) {
        const struct perf_bucket *b = &r->histogram[i];
        int bar = (int)((double)b->count * BAR / (double)most + 0.5);
        fprintf(to, "#   %10.3f .. %10.3f us %10llu ", b->from_us, b->to_us,
                (unsigned long long)b->count);
        while (bar-- > 0)
            fputc('*', to);
        fputc('\n', to);
    }
}

/* ---- one list of columns for CSV and JSON ---- */

enum { COLUMNS = 17 };
struct column {
    const char *name;
    double value;
};

static void fill_columns(const struct perf_row *r, struct column c[COLUMNS]) {
    static const struct perf_summary none = { 0, -1, -1, -1, -1, -1, -1, -1 };
    const struct perf_summary *t = r->times.count ? &r->times : &none;
    const struct column all[COLUMNS] = {
        { "bytes", (double)r->bytes },
        { "iterations", (double)r->iterations },
        { "t_typical_us", t->median },
        { "t_min_us", t->min },
        { "t_max_us", t->max },
        { "t_avg_us", t->mean },
        { "t_stdev_us", t->deviation },
        { "t_p99_us", t->p99 },
        { "t_p99_9_us", t->p999 },
        { "bw_peak_bytes_per_s", r->peak_bytes_per_s },
        { "bw_avg_bytes_per_s", r->bytes_per_s },
        { "msg_rate_per_s", r->messages_per_s },
        { "seconds", r->seconds },
        { "cpu_percent", r->cpu_percent },
        { "peer_cpu_percent", r->peer_cpu_percent },
        { "samples", (double)t->count },
        { "wrong", (double)r->wrong },
    };

    memcpy(c, all, sizeof all);
}

/* A value that is not known is left out of JSON and empty in CSV. */
static bool is_known(const struct column *c) {
    return c->value >= 0;
}

void perf_print_csv_heading(FILE *to) {
    const struct perf_row none = { 0 };
    struct column c[COLUMNS];

    fill_columns(&none, c);
    fputs("test,transport,what", to);
    for (int i = 0; i < COLUMNS; i++)
        fprintf(to, ",%s", c[i].name);
    fputc('\n', to);
}

void perf_print_csv_row(FILE *to, const struct perf_heading *h, const struct perf_row *r) {
    struct column c[COLUMNS];

    fill_columns(r, c);
    fprintf(to, "%s,%s,%s", perf_test_name(&h->params), h->transport, r->what ? r->what : "");
    for (int i = 0; i < COLUMNS; i++) {
        fputc(',', to);
        if (is_known(&c[i])) fprintf(to, "%.12g", c[i].value);
    }
    fputc('\n', to);
}

static void print_json_row(FILE *to, const struct perf_row *r) {
    struct column c[COLUMNS];

    fill_columns(r, c);
    fputs("    {", to);
    if (r->what) {
        fputs("\"what\": ", to);
        text_print_json(to, r->what);
        fputs(", ", to);
    }
    for (int i = 0; i < COLUMNS; i++)
        if (is_known(&c[i])) fprintf(to, "%s\"%s\": %.12g", i ? ", " : "", c[i].name, c[i].value);
    if (r->bucket_count) {
        fputs(",\n     \"histogram\": [", to);
        for (size_t i = 0; i < r->bucket_count; i++)
            fprintf(to, "%s{\"from_us\": %.6g, \"to_us\": %.6g, \"count\": %llu}", i ? ", " : "",
                    r->histogram[i].from_us, r->histogram[i].to_us,
                    (unsigned long long)r->histogram[i].count);
        fputc(']', to);
    }
    fputc('}', to);
}

static void print_number(FILE *to, const char *name, uint64_t v) {
    fprintf(to, "  \"%s\": %llu,\n", name, (unsigned long long)v);
}

static void print_text(FILE *to, const char *name, const char *text) {
    fprintf(to, "  \"%s\": ", name);
    text_print_json(to, text);
    fputs(",\n", to);
}

/* ---- counters ---- */

/* Calls print for each line "name value unit help"; foreign lines are passed over. */
static void for_each_counter(const struct perf_counters *c, FILE *to,
                             void (*print)(FILE *to, size_t i, const char *const words[4])) {
    char name[64], value[24], unit[32], help[128];
    const char *const words[4] = { name, value, unit, help };
    const char *end;
    size_t n = 0;

    for (const char *p = c->text; (end = strchr(p, '\n')) != NULL; p = end + 1)
        if (sscanf(p, "%63s %23[0-9] %31s %127[^\n]", name, value, unit, help) == 4)
            print(to, n++, words);
}

static void print_counter(FILE *to, size_t i, const char *const words[4]) {
    (void)i;
    fprintf(to, "#   %-20s %20s  %s [%s]\n", words[0], words[1], words[3], words[2]);
}

static void print_json_counter(FILE *to, size_t i, const char *const words[4]) {
    fputs(i ? ", " : "", to);
    text_print_json(to, words[0]);
    fprintf(to, ": %s", words[1]);
}

void perf_print_counters(FILE *to, const struct perf_counters counters[PERF_COUNTED]) {
    for (int i = 0; i < PERF_COUNTED; i++) {
        if (!counters[i].what) continue;
        fprintf(to, "# counters, %s%s\n", counters[i].what,
                counters[i].text[0] ? "" : ": this provider does not tell");
        for_each_counter(&counters[i], to, print_counter);
    }
}

static void print_json_counters(FILE *to, const struct perf_counters *counters) {
    const char *separator = "";

    fputs("  \"counters\": {", to);
    for (int i = 0; i < PERF_COUNTED; i++) {
        if (!counters[i].what || !counters[i].text[0]) continue;
        fputs(separator, to);
        text_print_json(to, counters[i].what);
        fputs(": {", to);
        for_each_counter(&counters[i], to, print_json_counter);
        fputc('}', to);
        separator = ", ";
    }
    fputs("},\n", to);
}

void perf_print_json(FILE *to, const struct perf_heading *h, const struct perf_row *rows,
                     size_t count, const struct perf_counters *counters) {
    const struct perf_params *p = &h->params;
    static const char *const targets[] = { "poll", "sleep", "busy" };

    fputs("{\n", to);
    print_text(to, "test", perf_test_name(p));
    print_text(to, "peer", h->peer);
    print_text(to, "transport", h->transport);
    print_text(to, "buffers", h->buffers);
    print_text(to, "length", h->length);
    print_text(to, "wait", p->events ? "events" : "poll");
    print_text(to, "target", targets[p->target]);
    print_number(to, "warmup", h->warmup);
    print_number(to, "threads", p->threads);
    print_number(to, "qps", p->qps);
    print_number(to, "idle_qps", p->idle_qps);
    print_number(to, "tx_depth", p->tx_depth);
    print_number(to, "rx_depth", p->rx_depth);
    print_number(to, "sges", p->sges);
    print_number(to, "inline_bytes", p->inline_bytes);
    print_number(to, "post_batch", p->post_batch);
    print_number(to, "cq_moderation", p->cq_moderation);
    print_number(to, "reads", p->reads);
    print_number(to, "memory_bytes", h->memory_bytes);
    print_number(to, "peer_memory_bytes", h->peer_memory_bytes);
    if (h->idle_seconds > 0)
        fprintf(to, "  \"idle_seconds\": %.6g,\n  \"idle_cpu_percent\": %.6g,\n", h->idle_seconds,
                h->idle_cpu_percent);
    fprintf(to, "  \"bidirectional\": %s,\n", p->bidirectional ? "true" : "false");
    fprintf(to, "  \"verified\": %s,\n", p->verify ? "true" : "false");
    if (counters) print_json_counters(to, counters);
    fputs("  \"rows\": [\n", to);
    for (size_t i = 0; i < count; i++) {
        print_json_row(to, &rows[i]);
        fputs(i + 1 < count ? ",\n" : "\n", to);
    }
    fputs("  ]\n}\n", to);
}
