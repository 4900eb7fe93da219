/* SPDX-License-Identifier: MIT
 * guard_copy.h - a copy that a fault handler can end in the middle.
 * Owns:    the copy's instructions. The handler asks os_guard_copy_resume for a fault's program
 *          counter; a value other than 0 is where the thread must go on, which makes the copy
 *          return 1. No set-up before the copy, so a copy that meets no fault pays nothing.
 * Threads: any.   Errors: none but the return value.
 * Where OS_GUARD_COPY_RESUMABLE is 0 the copy is portable C and the caller guards it.
 */
#ifndef SN_OS_COMMON_GUARD_COPY_H
#define SN_OS_COMMON_GUARD_COPY_H

#include <stddef.h>
#include <stdint.h>
#include "os/prim/thread.h"

#ifndef OS_GUARD_COPY_RESUMABLE
#if defined(__x86_64__) && defined(__GNUC__)
#define OS_GUARD_COPY_RESUMABLE 1
#else
#define OS_GUARD_COPY_RESUMABLE 0
#endif
#endif

#if OS_GUARD_COPY_RESUMABLE && defined(_WIN32)
#define OS_GUARD_ABI __attribute__((sysv_abi))
#else
#define OS_GUARD_ABI
#endif

/* Copies in ascending order, the last byte last; 8 bytes at an aligned destination are one store.
 * 0 when done, 1 after os_guard_copy_resume. Overlap as in memcpy: none. */
OS_GUARD_ABI int os_guard_copy(void *dst, const void *src, size_t len);
/* Where to resume if pc is inside os_guard_copy, else 0. Async-signal-safe. */
uintptr_t os_guard_copy_resume(uintptr_t pc);

/* The system's: what catches a fault in the copy, or in an os_guarded_call; run once. */
void os_guard_install(void);
extern os_once os_guard_once;

#endif
