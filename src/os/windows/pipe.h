/* SPDX-License-Identifier: MIT
 * pipe.h - what the poller asks of the sockets of local_sock.h, which are named pipes here.
 * Owns:    telling them from Winsock's: their value has the lowest bit set, a SOCKET's has not.
 * Threads: as sock.h; the poller's calls come under its lock.
 * Errors:  named at each call.
 *
 * A request is an overlapped call that ends when there is something to do: a read of no bytes, or,
 * on an instance of a listener that nobody has connected to yet, the wait for somebody.
 */
#ifndef SN_OS_WINDOWS_PIPE_H
#define SN_OS_WINDOWS_PIPE_H

#include <winsock2.h>
#include <windows.h>
#include "os/io/sock.h"

enum pipe_answer {
    PIPE_PENDING, /* a packet will come */
    PIPE_READY,   /* no packet comes: it is ready as it is */
    PIPE_ENDED,   /* likewise, and the other end is closed */
    PIPE_SILENT   /* no packet comes, nothing can be waited for */
};

static inline bool os_pipe_is(os_sock s) {
    return (s & 1) != 0 && s != OS_SOCK_NONE;
}
/* Requests that it has: one, or one for each instance of a listener. */
uint32_t os_pipe_requests(os_sock s);
/* Packets go to this port from now on. A pipe has one port for life: SN_E_RESOURCES. */
SN_MUST_CHECK sn_status os_pipe_bind(os_sock s, HANDLE port, ULONG_PTR key);
/* Issues request i. */
enum pipe_answer os_pipe_request(os_sock s, uint32_t i, OVERLAPPED *ov);
/* Asks for the early end of a request that is pending. */
void os_pipe_cancel(os_sock s, uint32_t i, OVERLAPPED *ov);
/* Request i came back: os_local_accept looks at it. */
void os_pipe_mark(os_sock s, uint32_t i);
/* A look: there is something to do. */
bool os_pipe_ready(os_sock s);
/* os_sock_close's. */
void os_pipe_close(os_sock s);

#endif
