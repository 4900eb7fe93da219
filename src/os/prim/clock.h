/* SPDX-License-Identifier: MIT
 * clock.h - monotonic time and random bytes.
 * Threads: any.   Errors: none; a system without entropy ends the process.
 */
#ifndef SN_OS_CLOCK_H
#define SN_OS_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define OS_NS_PER_MS 1000000ull
#define OS_NS_PER_US 1000ull
#define OS_FOREVER UINT64_MAX

/* Monotonic, never 0, nanoseconds. */
uint64_t os_now_ns(void);
/* For short times, roughly: counts with the processor's clock where that is cheap, 0.2 to 1 ns
 * each. Not to be compared between processors. */
static inline uint64_t os_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return os_now_ns();
#endif
}
/* The time of day, in nanoseconds since 1970 (UTC); may jump. */
uint64_t os_wall_ns(void);
/* Blocks the calling thread; for tools, never the library's data path. */
void os_sleep_ms(uint32_t ms);
/* Unpredictable bytes from the system. */
void os_random_bytes(void *dst, size_t len);

#endif
