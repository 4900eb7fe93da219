/* SPDX-License-Identifier: MIT
 * wsa_status.h - the one mapping of Winsock error numbers to statuses, and Winsock's start.
 * Owns:    the table; calls whose number means something else say so where they map it.
 * Threads: any.   Errors: this is them.
 */
#ifndef SN_OS_WINDOWS_WSA_STATUS_H
#define SN_OS_WINDOWS_WSA_STATUS_H

#include <winsock2.h>
#include "base/status.h"

/* Before the first call of Winsock; costs one load afterwards. In sock.c. */
void os_wsa_start(void);

static inline sn_status os_wsa_status(int e) {
    switch (e) {
    case 0:
        return SN_OK;
    case WSAEWOULDBLOCK:
        return SN_E_AGAIN;
    case WSAEINPROGRESS:
    case WSAEALREADY:
        return SN_PENDING;
    case WSA_NOT_ENOUGH_MEMORY:
    case WSAEMFILE:
    case WSAENOBUFS:
    case WSASYSNOTREADY:
    case WSANOTINITIALISED:
        return SN_E_RESOURCES;
    case WSAEACCES:
        return SN_E_PERM;
    case WSAEFAULT:
        return SN_E_FAULT;
    case WSAENOTSOCK:
    case WSA_INVALID_HANDLE:
        return SN_E_HANDLE;
    case WSAEINVAL:
        return SN_E_PARAM;
    case WSAEMSGSIZE:
        return SN_E_TOO_LONG;
    case WSAEADDRINUSE:
        return SN_E_ADDR_IN_USE;
    case WSAEADDRNOTAVAIL:
        return SN_E_ADDR_INVALID;
    case WSAEAFNOSUPPORT:
    case WSAEPROTONOSUPPORT:
    case WSAEPROTOTYPE:
    case WSAEOPNOTSUPP:
        return SN_E_UNSUPPORTED;
    case WSAEISCONN:
        return SN_E_CONNECTED;
    case WSAENOTCONN:
        return SN_E_NOT_CONNECTED;
    case WSAECONNREFUSED:
        return SN_E_REFUSED;
    case WSAETIMEDOUT:
        return SN_E_TIMEOUT;
    case WSAENETUNREACH:
    case WSAENETDOWN:
        return SN_E_NET_UNREACHABLE;
    case WSAEHOSTUNREACH:
    case WSAEHOSTDOWN:
        return SN_E_HOST_UNREACHABLE;
    case WSAESHUTDOWN:
    case WSAECONNRESET:
    case WSAECONNABORTED:
    case WSAENETRESET:
        return SN_E_PEER_GONE;
    default:
        return SN_E_INTERNAL;
    }
}

#endif
