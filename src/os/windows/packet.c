/* SPDX-License-Identifier: MIT
 * The file is a handle of the socket driver. A good packet is a poll request that ends well at
 * once: one that may take no time, or, if the system lets that end with another status than 0, one
 * for a datagram socket that can be written. (Under Wine that works too, but the server goes round
 * and round until the caller has taken notice of the end, and keeps the caller from the processor.)
 * A failed one is a poll request that cannot be satisfied (data on that socket, which is connected
 * to itself and never written to), cancelled by the thread that issued it. A request that fails
 * without having been pending would give no packet.
 *
 * The status block is ours and on the stack: the system copies the status into the packet and takes
 * the context, not the block, for lpOverlapped. So the application's OVERLAPPED is written by us
 * alone, with the exact status; only the packet's own status is the coarse one. */
#include "os/windows/packet.h"
#include <ws2tcpip.h>
#include "os/prim/fault.h"
#include "os/prim/thread.h"
#include "os/windows/afd.h"
#include "os/windows/wsa_status.h"

/* A request is issued again this often when the system has no memory for it. */
#define ROUNDS_MAX 100

static os_once idle_once = OS_ONCE_INIT;
static SOCKET idle = INVALID_SOCKET; /* [const] after idle_once; lives as long as the process */

enum kind { FAILS, IS_SO, NO_TIME };
static enum kind good_kind = IS_SO; /* [const] after idle_once */

static NTSTATUS issue(HANDLE file, HANDLE event, void *context, enum kind kind,
                      IO_STATUS_BLOCK *iosb, struct afd_poll *poll) {
    *poll = (struct afd_poll){ .timeout.QuadPart = kind == NO_TIME ? 0 : AFD_NO_TIMEOUT,
                               .socket = (HANDLE)idle,
                               .events = kind == IS_SO ? AFD_F_SEND : AFD_F_RECEIVE };
    return afd_poll_start(file, event, context, iosb, poll);
}

/* The system writes the block and the buffer before it is done with them: not before may the stack
 * go. The wait is for the way back from the driver, some microseconds. */
static void await(IO_STATUS_BLOCK *iosb) {
    while (*(volatile NTSTATUS *)&iosb->Status == STATUS_PENDING)
        os_thread_yield();
}

/* Whether such a request ends at once, with status 0. */
static bool ends_well(enum kind kind) {
    IO_STATUS_BLOCK iosb;
    struct afd_poll poll;
    HANDLE h = afd_open();
    if (h == INVALID_HANDLE_VALUE) return false;
    NTSTATUS st = issue(h, NULL, NULL, kind, &iosb, &poll);
    if (st == STATUS_PENDING) {
        afd_poll_cancel(h, &iosb);
        await(&iosb);
    }
    CloseHandle(h);
    return st == 0 && iosb.Status == 0;
}

/* What others sent before it was connected. */
static void drain(SOCKET s) {
    u_long on = 1;
    char byte;
    if (ioctlsocket(s, (long)FIONBIO, &on) != 0) return;
    while (recv(s, &byte, 1, 0) != SOCKET_ERROR || WSAGetLastError() == WSAEMSGSIZE) {
    }
}

static void make_idle_socket(void) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int cb = sizeof at;
    BOOL on = TRUE;
    os_wsa_start();
    os_pin_module(); /* it is never closed */
    SOCKET s = WSASocketW(AF_INET, SOCK_DGRAM, IPPROTO_UDP, NULL, 0, WSA_FLAG_NO_HANDLE_INHERIT);
    if (s == INVALID_SOCKET) return;
    (void)setsockopt(s, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&on, sizeof on);
    if (bind(s, (struct sockaddr *)&at, cb) != 0 ||
        getsockname(s, (struct sockaddr *)&at, &cb) != 0 ||
        connect(s, (struct sockaddr *)&at, cb) != 0) {
        closesocket(s);
        return;
    }
    drain(s);
    idle = afd_base_socket(s);
    if (ends_well(NO_TIME)) good_kind = NO_TIME;
}

bool os_packet_file_create(HANDLE *out) {
    os_once_run(&idle_once, make_idle_socket);
    if (idle == INVALID_SOCKET) return false;
    HANDLE h = os_fault_hit(OS_FAULT_SYSCALL) ? INVALID_HANDLE_VALUE : afd_open();
    if (h == INVALID_HANDLE_VALUE) return false;
    *out = h;
    return true;
}

bool os_packet_file_share(HANDLE file, HANDLE *out) {
    IO_STATUS_BLOCK iosb;
    struct afd_poll poll;
    HANDLE h;
    os_once_run(&idle_once, make_idle_socket);
    if (idle == INVALID_SOCKET || !file || file == INVALID_HANDLE_VALUE) return false;
    if (!DuplicateHandle(GetCurrentProcess(), file, GetCurrentProcess(), &h, 0, FALSE,
                         DUPLICATE_SAME_ACCESS))
        return false;
    /* Only a handle of the socket driver takes the request; without context it gives no packet. */
    NTSTATUS st = issue(h, NULL, NULL, good_kind, &iosb, &poll);
    if (st == STATUS_PENDING) await(&iosb);
    if (st < 0) {
        CloseHandle(h);
        return false;
    }
    *out = h;
    return true;
}

void os_packet_file_clear(HANDLE file) {
    afd_poll_malformed(file);
}

bool os_packet_post(HANDLE file, HANDLE event, void *context, bool good) {
    for (int round = 0; round < ROUNDS_MAX; round++) {
        IO_STATUS_BLOCK iosb;
        struct afd_poll poll;
        NTSTATUS st = issue(file, event, context, good ? good_kind : FAILS, &iosb, &poll);
        if (st == STATUS_PENDING) {
            if (!good) afd_poll_cancel(file, &iosb);
            await(&iosb);
        }
        if (st >= 0) return true;
        os_thread_yield();
    }
    return false;
}
