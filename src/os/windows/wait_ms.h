/* SPDX-License-Identifier: MIT
 * wait_ms.h - time-outs in the milliseconds that the system's waits take.
 * Owns:    the rounding: up, so that no wait ends early.
 * Threads: any.   Errors: none.
 */
#ifndef SN_OS_WINDOWS_WAIT_MS_H
#define SN_OS_WINDOWS_WAIT_MS_H

#include <windows.h>
#include "os/prim/clock.h"

/* A span. OS_FOREVER is INFINITE; a span longer than 24 days is cut to that. */
static inline DWORD os_span_ms(uint64_t span_ns) {
    if (span_ns == OS_FOREVER) return INFINITE;
    uint64_t ms = span_ns / OS_NS_PER_MS + (span_ns % OS_NS_PER_MS != 0);
    return ms > INT32_MAX ? INT32_MAX : (DWORD)ms;
}

/* The time left until a point of os_now_ns. */
static inline DWORD os_wait_ms(uint64_t deadline_ns) {
    if (deadline_ns == OS_FOREVER) return INFINITE;
    uint64_t now = os_now_ns();
    return now >= deadline_ns ? 0 : os_span_ms(deadline_ns - now);
}

#endif
