/* SPDX-License-Identifier: MIT
 * perf_plot.c - the picture of perf_report.h: both axes logarithmic, two lines, a grid, the values
 * at the points as tooltips. Plain SVG 1.1 with its colours in it.
 */
#include <math.h>
#include <string.h>
#include "perf_report.h"

#define WIDTH 860
#define HEIGHT 480
#define LEFT 90
#define RIGHT 30
#define TOP 60
#define BOTTOM 60

struct axis {
    double min, max; /* both powers of the base */
    double base;
    int from, to; /* pixels */
};

struct series {
    const char *name, *color;
    double (*value)(const struct perf_heading *h, const struct perf_row *r);
};

static double median_of(const struct perf_heading *h, const struct perf_row *r) {
    (void)h;
    return r->times.median;
}

static double p99_of(const struct perf_heading *h, const struct perf_row *r) {
    (void)h;
    return r->times.p99;
}

static double scaled(const struct perf_heading *h, double bytes_per_s) {
    return h->gigabits ? bytes_per_s * 8 / 1e9 : bytes_per_s / (1024.0 * 1024.0);
}

static double average_of(const struct perf_heading *h, const struct perf_row *r) {
    return scaled(h, r->bytes_per_s);
}

static double peak_of(const struct perf_heading *h, const struct perf_row *r) {
    return scaled(h, r->peak_bytes_per_s);
}

static const struct series latency[2] = { { "median", "#1f6fb2", median_of },
                                          { "99 %", "#c0602a", p99_of } };
static const struct series bandwidth[2] = { { "average", "#1f6fb2", average_of },
                                            { "peak", "#c0602a", peak_of } };

static double place(const struct axis *a, double v) {
    double all = log(a->max / a->min), part;

    if (v < a->min) v = a->min;
    part = log(v / a->min);
    return a->from + (a->to - a->from) * (all > 0 ? part / all : 0.5);
}

static void widen(struct axis *a, double v) {
    if (v <= 0) return;
    if (a->min <= 0 || v < a->min) a->min = v;
    if (v > a->max) a->max = v;
}

static void round_out(struct axis *a) {
    double l = log(a->base);

    if (a->min <= 0) a->min = a->max = 1;
    a->min = pow(a->base, floor(log(a->min) / l + 1e-9));
    a->max = pow(a->base, ceil(log(a->max) / l - 1e-9));
    if (a->max <= a->min) a->max = a->min * a->base;
}

static void print_bytes(FILE *to, double bytes) {
    static const char *const units[] = { "", "K", "M", "G" };
    int u = 0;

    while (bytes >= 1024 && u < 3) {
        bytes /= 1024;
        u++;
    }
    fprintf(to, "%.4g%s", bytes, units[u]);
}

static void print_grid(FILE *to, const struct axis *x, const struct axis *y) {
    double steps = log(x->max / x->min) / log(2), skip = ceil(steps / 12);

    for (double v = x->min; v <= x->max * 1.001; v *= pow(2, skip > 1 ? skip : 1)) {
        double at = place(x, v);
        fprintf(to,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#ddd\"/>\n"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
                at, y->from, at, y->to, at, y->from + 18);
        print_bytes(to, v);
        fputs("</text>\n", to);
    }
    for (double v = y->min; v <= y->max * 1.001; v *= y->base) {
        double at = place(y, v);
        fprintf(to,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n",
                x->from, at, x->to, at, x->from - 8, at + 4, v);
    }
}

static void print_series(FILE *to, const struct series *s, const struct axis *x,
                         const struct axis *y, const struct perf_heading *h,
                         const struct perf_row *rows, size_t count) {
    fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", s->color);
    for (size_t i = 0; i < count; i++)
        if (s->value(h, &rows[i]) > 0)
            fprintf(to, "%.1f,%.1f ", place(x, (double)rows[i].bytes),
                    place(y, s->value(h, &rows[i])));
    fputs("\"/>\n", to);
    for (size_t i = 0; i < count; i++) {
        double v = s->value(h, &rows[i]);
        if (v <= 0) continue;
        fprintf(to,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%llu: %.6g</title>"
                "</circle>\n",
                place(x, (double)rows[i].bytes), place(y, v), s->color,
                (unsigned long long)rows[i].bytes, v);
    }
}

void perf_print_svg(FILE *to, const struct perf_heading *h, const struct perf_row *rows,
                    size_t count) {
    bool is_bandwidth = h->params.kind == PERF_BANDWIDTH;
    const struct series *s = is_bandwidth ? bandwidth : latency;
    const char *unit = !is_bandwidth ? "us" : h->gigabits ? "Gb/s" : "MiB/s";
    struct axis x = { .base = 2, .from = LEFT, .to = WIDTH - RIGHT };
    struct axis y = { .base = 10, .from = HEIGHT - BOTTOM, .to = TOP };

    for (size_t i = 0; i < count; i++) {
        widen(&x, (double)rows[i].bytes);
        for (int k = 0; k < 2; k++)
            widen(&y, s[k].value(h, &rows[i]));
    }
    round_out(&x);
    round_out(&y);
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"%d\" y=\"24\" font-size=\"16\">softnd perf %s, transport %s</text>\n"
            "<text x=\"%d\" y=\"42\">%s over message size in bytes; buffers %s</text>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, perf_test_name(&h->params), h->transport, LEFT,
            unit, h->buffers);
    print_grid(to, &x, &y);
    for (int k = 0; k < 2; k++) {
        print_series(to, &s[k], &x, &y, h, rows, count);
        fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"%s\">%s</text>\n",
                WIDTH - RIGHT, 24 + 18 * k, s[k].color, s[k].name);
    }
    fputs("</svg>\n", to);
}
