/* SPDX-License-Identifier: MIT
 * pages_probe.h - the ways os_pages_probe can go, for its test.
 * Owns:    nothing.   Threads: any.
 * Errors:  those of os_pages_probe; SN_E_UNSUPPORTED if the way asked for does not exist here.
 */
#ifndef SN_OS_LINUX_PAGES_PROBE_H
#define SN_OS_LINUX_PAGES_PROBE_H

#include "os/prim/pages.h"

enum os_probe_how {
    OS_PROBE_BEST,  /* the first of the others that works */
    OS_PROBE_QUERY, /* the ioctl of Linux 6.11 */
    OS_PROBE_TEXT,  /* reading /proc/self/maps */
    OS_PROBE_TOUCH  /* touching each page under the guard */
};

SN_MUST_CHECK sn_status os_pages_probe_how(const void *addr, size_t len, bool write,
                                           enum os_probe_how how);

#endif
