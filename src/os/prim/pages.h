/* SPDX-License-Identifier: MIT
 * pages.h - page memory, and access to memory that the application may have freed.
 * Owns:    the fault guard (on Linux a SIGSEGV/SIGBUS handler that passes on every fault that is
 *          not its own; on Windows a vectored handler).
 * Threads: any.   Errors: SN_E_NOMEM, SN_E_FAULT.
 */
#ifndef SN_OS_PAGES_H
#define SN_OS_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

size_t os_page_size(void);
/* Zeroed memory, committed when first touched. NULL if there is none. */
void *os_pages_alloc(size_t bytes);
void os_pages_free(void *p, size_t bytes);

/* SN_OK if every page of [addr, addr+len) is mapped and readable (and writable if write is set);
 * SN_E_FAULT otherwise. Does not change the memory. len > 0. May take milliseconds for gigabytes;
 * never touches the pages (so it does not commit them). */
SN_MUST_CHECK sn_status os_pages_probe(const void *addr, size_t len, bool write);

/* memcpy where src or dst is application memory: false, with part of the bytes copied, if a page
 * is not there (any more). Copies in ascending order, the last byte last; an aligned run of 8
 * bytes is stored as one. As fast as memcpy for small sizes. */
SN_MUST_CHECK bool os_guarded_copy(void *dst, const void *src, size_t len);
/* Runs fn(arg); false if it touched memory that is not mapped. fn must not take locks, allocate or
 * call out: it is left in the middle when a fault happens. */
SN_MUST_CHECK bool os_guarded_call(void (*fn)(void *arg), void *arg);

#endif
