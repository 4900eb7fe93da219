/* SPDX-License-Identifier: MIT
 *
 * bench_floor NAME - what the machine allows at best, one figure on one line. Everything else is
 * compared with these, so they are as plain as can be.
 */
#include "bench.h"
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PINGS = 20000,
    LINE_PINGS = 400000,
    STREAM = 1 << 20,
    STREAM_COUNT = 2000,
    COPY = 1 << 20,
    COPY_COUNT = 4000,
    COLD_COPIES = 512 /* places of COPY bytes */
};

uint64_t bench_now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* BENCH_CORES, "0 1" if not set, names the two cores. */
void bench_pin(int core) {
    const char *cores = getenv("BENCH_CORES");
    int named[2] = { 0, 1 };
    cpu_set_t set;
    if (cores && sscanf(cores, "%d %d", &named[0], &named[1]) != 2)
        DIE("BENCH_CORES is two numbers: %s", cores);
    CPU_ZERO(&set);
    CPU_SET((size_t)named[core], &set);
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

static double tcp_latency(void) {
    return raw_tcp_latency_us(64, PINGS);
}

static double tcp_blocking_latency(void) {
    return raw_tcp_blocking_latency_us(64, PINGS);
}

static double tcp_stream(void) {
    return raw_tcp_stream_gbs(STREAM, STREAM_COUNT);
}

/* ---- one cache line between two processes ---- */

static void wait_for(_Atomic uint64_t *line, uint64_t value) {
    while (atomic_load_explicit(line, memory_order_acquire) != value)
        ;
}

static double line_latency(void) {
    _Atomic uint64_t *line =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double *samples = calloc(LINE_PINGS, sizeof *samples);
    if (line == MAP_FAILED || !samples) DIE("out of memory");
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        for (uint64_t i = 0; i < LINE_PINGS; i++) {
            wait_for(line, 2 * i + 1);
            atomic_store_explicit(line, 2 * i + 2, memory_order_release);
        }
        _exit(0);
    }
    bench_pin(0);
    for (uint64_t i = 0; i < LINE_PINGS; i++) {
        uint64_t t = bench_now_ns();
        atomic_store_explicit(line, 2 * i + 1, memory_order_release);
        wait_for(line, 2 * i + 2);
        samples[i] = (double)(bench_now_ns() - t) / 2000.0;
    }
    waitpid(child, NULL, 0);
    double median = bench_median(samples, LINE_PINGS);
    free(samples);
    munmap(line, 4096);
    return median;
}

/* ---- copying ---- */

static double copy_gbs(size_t places) {
    char *from = malloc(places * COPY), *to = malloc(places * COPY);
    volatile char sink;
    if (!from || !to) DIE("out of memory");
    memset(from, 1, places * COPY);
    memset(to, 2, places * COPY);
    bench_pin(0);
    uint64_t t = bench_now_ns();
    for (size_t i = 0; i < COPY_COUNT; i++) {
        memcpy(to + i % places * COPY, from + i % places * COPY, COPY);
        sink = to[i % places * COPY + i % COPY]; /* so that no copy can be left out */
    }
    double seconds = (double)(bench_now_ns() - t) / 1e9;
    (void)sink;
    free(from);
    free(to);
    return (double)COPY * COPY_COUNT / seconds / 1e9;
}

static double copy_warm(void) {
    return copy_gbs(1);
}

static double copy_cold(void) {
    return copy_gbs(COLD_COPIES);
}

static const struct {
    const char *name, *what;
    double (*measure)(void);
} floors[] = {
    { "tcp_latency", "64 B over loopback TCP, polled, one way, us", tcp_latency },
    { "tcp_blocking_latency", "the same with blocking sockets, us", tcp_blocking_latency },
    { "tcp_stream", "1 MiB messages over loopback TCP, polled, GB/s", tcp_stream },
    { "line_latency", "a cache line between the two cores, one way, us", line_latency },
    { "copy_warm", "memcpy of 1 MiB, the same one, GB/s", copy_warm },
    { "copy_cold", "memcpy of 1 MiB, through 512 MiB each, GB/s", copy_cold },
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc == 2 && i < sizeof floors / sizeof floors[0]; i++)
        if (!strcmp(argv[1], floors[i].name)) {
            printf("%.6g\n", floors[i].measure());
            return 0;
        }
    fprintf(stderr, "usage: bench_floor NAME\n");
    for (size_t i = 0; i < sizeof floors / sizeof floors[0]; i++)
        fprintf(stderr, "  %-22s %s\n", floors[i].name, floors[i].what);
    return 2;
}
