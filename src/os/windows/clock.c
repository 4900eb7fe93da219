/* SPDX-License-Identifier: MIT */
#include "os/prim/clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>
#include <bcrypt.h>
#include "os/prim/atomic.h"

uint64_t os_now_ns(void) {
    static os_atomic_u64 frequency; /* ticks per second; does not change while the system runs */
    uint64_t per_s = os_u64_load_relaxed(&frequency);
    LARGE_INTEGER v;
    if (per_s == 0) {
        QueryPerformanceFrequency(&v);
        per_s = (uint64_t)v.QuadPart;
        os_u64_store_relaxed(&frequency, per_s);
    }
    QueryPerformanceCounter(&v);
    uint64_t ticks = (uint64_t)v.QuadPart;
    /* In two parts: the product of the whole would overflow after some days. */
    uint64_t ns = ticks / per_s * 1000000000u + ticks % per_s * 1000000000u / per_s;
    return ns ? ns : 1;
}

uint64_t os_wall_ns(void) {
    FILETIME t; /* 100 ns since 1601 */
    GetSystemTimePreciseAsFileTime(&t);
    uint64_t ticks = (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;
    return (ticks - 116444736000000000u) * 100u;
}

void os_sleep_ms(uint32_t ms) {
    Sleep(ms == INFINITE ? INFINITE - 1 : ms);
}

void os_random_bytes(void *dst, size_t len) {
    uint8_t *p = dst;
    while (len != 0) {
        ULONG n = len > (1u << 20) ? 1u << 20 : (ULONG)len;
        NTSTATUS st = BCryptGenRandom(NULL, p, n, BCRYPT_USE_SYSTEM_PREFERRED_RNG);
        if (st < 0) {
            fprintf(stderr, "softnd: the system gives no random bytes: status 0x%08lx\n",
                    (unsigned long)st);
            abort();
        }
        p += n;
        len -= n;
    }
}
