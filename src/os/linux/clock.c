/* SPDX-License-Identifier: MIT */
#include "os/prim/clock.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

uint64_t os_now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts); /* no system call: the kernel maps the clock */
    uint64_t ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    return ns ? ns : 1;
}

uint64_t os_wall_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void os_sleep_ms(uint32_t ms) {
    uint64_t until = os_now_ns() + ms * OS_NS_PER_MS;
    struct timespec ts = { .tv_sec = (time_t)(until / 1000000000u),
                           .tv_nsec = (long)(until % 1000000000u) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        continue;
}

void os_random_bytes(void *dst, size_t len) {
    uint8_t *p = dst;
    while (len != 0) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0) {
            if (errno == EINTR) continue;
            fprintf(stderr, "softnd: the system gives no random bytes: %s\n", strerror(errno));
            abort();
        }
        p += n;
        len -= (size_t)n;
    }
}
