/* SPDX-License-Identifier: MIT
 * fault.h - fault injection for tests: the n-th allocation or system call fails.
 * Owns:    process-wide countdowns. Memory that the library allocates comes from here.
 * Threads: any; a test arms it while nothing else runs.   Errors: that is the purpose.
 * Without SN_FAULT_INJECTION the hooks are plain calls.
 */
#ifndef SN_OS_FAULT_H
#define SN_OS_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum os_fault_kind { OS_FAULT_ALLOC, OS_FAULT_SYSCALL, OS_FAULT_KINDS };

/* The next `after` calls of this kind succeed and the one after fails once; 0: the very next.
 * Negative disarms. */
void os_fault_arm(enum os_fault_kind kind, int64_t after);
/* True once the armed fault has happened. */
bool os_fault_fired(enum os_fault_kind kind);
/* True if this build has the hooks; without them arming does nothing and tests skip. */
bool os_fault_available(void);
/* Used by the OS layer: true if this call must fail. */
bool os_fault_hit(enum os_fault_kind kind);

/* Zeroed allocation through the hook; NULL if there is no memory. */
void *os_zalloc(size_t bytes);
void os_free(void *p);

#endif
