/* SPDX-License-Identifier: MIT
 * poller.h - waits for readiness of many sockets, level triggered.
 * Owns:    on Linux an epoll instance and an eventfd; on Windows a port with AFD polls, and reads of
 *          no bytes on the pipes that local_sock.h has there.
 * Threads: any call from any thread, several may wait at once. A socket is removed before it is
 *          closed; an event already handed to another waiter may still arrive after the removal.
 * Errors:  SN_E_RESOURCES, SN_E_NOMEM; see each call.
 */
#ifndef SN_OS_POLLER_H
#define SN_OS_POLLER_H

#include <stddef.h>
#include <stdint.h>
#include "os/io/sock.h"

enum {
    OS_POLL_IN = 1,
    OS_POLL_OUT = 2,
    OS_POLL_HUP = 4
}; /* HUP: error or reset, always reported */

/* The one key that no caller may use: SN_E_PARAM. */
#define OS_POLL_KEY_RESERVED UINT64_MAX

struct os_poll_event {
    uint64_t key;
    uint32_t events;
};

struct os_poller;
SN_MUST_CHECK sn_status os_poller_create(struct os_poller **out);
/* No other thread may be inside a call. NULL is ignored. */
void os_poller_destroy(struct os_poller *p);
/* events: any of OS_POLL_IN and OS_POLL_OUT, or 0 for HUP alone. A TCP socket that was never
 * connected reports HUP at once: add it after os_sock_connect. SN_E_BUSY: already added;
 * SN_E_HANDLE: not a socket; SN_E_PARAM: the reserved key; SN_E_RESOURCES. */
SN_MUST_CHECK sn_status os_poller_add(struct os_poller *p, os_sock s, uint64_t key,
                                      uint32_t events);
/* SN_E_NOT_FOUND: not added. */
SN_MUST_CHECK sn_status os_poller_modify(struct os_poller *p, os_sock s, uint64_t key,
                                         uint32_t events);
/* A socket that is not there is ignored. */
void os_poller_remove(struct os_poller *p, os_sock s);
/* Up to max events; 0 on time-out or wake. timeout_ns: 0 polls, OS_FOREVER blocks; rounded up to
 * the system's grain (at most 1 ms). */
size_t os_poller_wait(struct os_poller *p, struct os_poll_event *out, size_t max,
                      uint64_t timeout_ns);
/* Makes one present or next os_poller_wait with a timeout other than 0 return early. Any thread. */
void os_poller_wake(struct os_poller *p);

#endif
