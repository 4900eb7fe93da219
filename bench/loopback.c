/* SPDX-License-Identifier: MIT
 *
 * iWARP over loopback beside raw TCP, in one run, rounds interleaved, medians and ratios. The goals
 * are those of the design: what the protocol may cost on top of the socket.
 */
#include "bench.h"
#include <sched.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 5, PINGS = 20000, STREAM = 1 << 20, STREAM_COUNT = 2000 };

uint64_t bench_now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void bench_pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set); /* best effort: a one-core machine has no core 1 */
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double bench_median(double *samples, size_t count) {
    qsort(samples, count, sizeof *samples, by_value);
    return samples[count / 2];
}

static void warn_of_load(void) {
    double load;
    if (getloadavg(&load, 1) == 1 && load > 0.3)
        printf("note: the machine is busy (load %.2f); compare the ratios, not the numbers\n",
               load);
}

static void row(const char *name, const char *unit, double ours, double raw, double goal,
                int lower_is_better) {
    double ratio = ours / raw;
    int met = lower_is_better ? ratio <= goal : ratio >= goal;
    printf("%-44s %8.2f %-5s raw %8.2f  ratio %5.2f", name, ours, unit, raw, ratio);
    if (goal > 0)
        printf("  goal %s %.2f: %s", lower_is_better ? "<=" : ">=", goal, met ? "met" : "NOT met");
    putchar('\n');
}

int main(void) {
    double raw_lat[ROUNDS], nd_lat[ROUNDS], nd_lat_crc[ROUNDS];
    double raw_bw[ROUNDS], nd_bw[ROUNDS], nd_bw_crc[ROUNDS];
    warn_of_load();
    for (int i = 0; i < ROUNDS; i++) {
        raw_lat[i] = raw_tcp_latency_us(64, PINGS);
        nd_lat[i] = nd_send_latency_us(64, PINGS, 0);
        nd_lat_crc[i] = nd_send_latency_us(64, PINGS, 1);
        raw_bw[i] = raw_tcp_stream_gbs(STREAM, STREAM_COUNT);
        nd_bw[i] = nd_write_stream_gbs(STREAM, STREAM_COUNT, 0);
        nd_bw_crc[i] = nd_write_stream_gbs(STREAM, STREAM_COUNT, 1);
    }
    double lat = bench_median(raw_lat, ROUNDS), bw = bench_median(raw_bw, ROUNDS);
    row("64 B Send one-way, CRC off", "us", bench_median(nd_lat, ROUNDS), lat, 1.25, 1);
    row("64 B Send one-way, CRC on", "us", bench_median(nd_lat_crc, ROUNDS), lat, 0, 1);
    row("1 MiB Write stream, CRC off", "GB/s", bench_median(nd_bw, ROUNDS), bw, 0.85, 0);
    row("1 MiB Write stream, CRC on", "GB/s", bench_median(nd_bw_crc, ROUNDS), bw, 0, 0);
    row("idle connected queue pair, depth 128", "KiB", nd_idle_bytes(1000) / 1024, 32, 1, 1);
    return 0;
}
