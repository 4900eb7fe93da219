/* SPDX-License-Identifier: MIT
 * bench.h - what the measurements share: two pinned processes, clocks, medians.
 * Owns:    nothing.   Threads: one per process.   Errors: any failure ends the program with a line.
 */
#ifndef SN_BENCH_H
#define SN_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define DIE(...)                                                                                   \
    do {                                                                                           \
        fprintf(stderr, "bench: " __VA_ARGS__);                                                    \
        fputc('\n', stderr);                                                                       \
        exit(1);                                                                                   \
    } while (0)

uint64_t bench_now_ns(void);
/* Keeps the calling process on one core. */
void bench_pin(int core);
double bench_median(double *samples, size_t count);

/* Raw TCP over loopback, non-blocking and busy polled. Each forks a peer and returns the figure. */
double raw_tcp_latency_us(uint32_t size, uint32_t rounds); /* half a round trip, median */
double raw_tcp_blocking_latency_us(uint32_t size, uint32_t rounds); /* blocking sockets */
double raw_tcp_stream_gbs(uint32_t size, uint32_t count);  /* GB/s */

/* The same through NetworkDirect on 127.0.0.1. crc: the setting for both processes. */
double nd_send_latency_us(uint32_t size, uint32_t rounds, int crc);
double nd_write_stream_gbs(uint32_t size, uint32_t count, int crc);
/* Bytes of this process's own memory per idle connected queue pair of depth 128. */
double nd_idle_bytes(uint32_t pairs);

#endif
