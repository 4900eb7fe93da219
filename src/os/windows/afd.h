/* SPDX-License-Identifier: MIT
 * afd.h - the socket driver's poll request, which pollers on Windows are built on: readiness of
 * sockets as one overlapped operation, on a handle of its own.
 * Owns:    the device name, the control code, the layout and the event bits; no other file may know
 *          one. They are not in the system's headers, but have been the same since Windows 2000.
 * Threads: any.   Errors: NTSTATUS, as the system gives it.
 */
#ifndef SN_OS_WINDOWS_AFD_H
#define SN_OS_WINDOWS_AFD_H

#include <winsock2.h>
#include <windows.h>
#include <winternl.h>

#define AFD_F_RECEIVE 0x0001u    /* data, or nothing more to come when RECEIVE is asked for alone */
#define AFD_F_SEND 0x0004u       /* room to send */
#define AFD_F_DISCONNECT 0x0008u /* the peer has shut its half down */
#define AFD_F_ABORT 0x0010u      /* reset */
#define AFD_F_LOCAL_CLOSE 0x0020u  /* the socket was closed here */
#define AFD_F_ACCEPT 0x0080u       /* a connection to accept */
#define AFD_F_CONNECT_FAIL 0x0100u /* connecting failed */

/* Exactly one socket. In: timeout, socket and events; out: the events found. */
struct afd_poll {
    LARGE_INTEGER timeout; /* 100 ns, absolute or (negative) relative; AFD_NO_TIMEOUT */
    ULONG count;           /* of handles: 1 */
    ULONG exclusive;       /* 0 */
    HANDLE socket;
    ULONG events;
    NTSTATUS status;
};
#define AFD_NO_TIMEOUT INT64_MAX

#ifndef STATUS_CANCELLED
#define STATUS_CANCELLED ((NTSTATUS)0xC0000120L)
#endif

/* A new handle for poll requests; not inherited. INVALID_HANDLE_VALUE on failure. */
HANDLE afd_open(void);
/* Issues a poll. event (may be NULL) is signalled and a packet for context (NULL: none) is queued
 * to the port of the handle, both unless an error status is returned. *iosb and *poll (in and out)
 * must live until then. 0: ready; STATUS_PENDING. */
NTSTATUS afd_poll_start(HANDLE afd, HANDLE event, void *context, IO_STATUS_BLOCK *iosb,
                        struct afd_poll *poll);
/* Issues a request that the driver refuses: all that happens is what happens at the start of any.
 */
void afd_poll_malformed(HANDLE afd);
/* Asks for the early end of the poll with this status block. */
void afd_poll_cancel(HANDLE afd, IO_STATUS_BLOCK *iosb);
/* The socket that the driver knows, below those of layered service providers. */
SOCKET afd_base_socket(SOCKET s);

#endif
