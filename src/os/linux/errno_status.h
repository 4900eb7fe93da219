/* SPDX-License-Identifier: MIT
 * errno_status.h - the one mapping of Linux error numbers to statuses.
 * Owns:    the table; calls whose number means something else say so where they map it.
 * Threads: pure.   Errors: this is them.
 */
#ifndef SN_OS_LINUX_ERRNO_STATUS_H
#define SN_OS_LINUX_ERRNO_STATUS_H

#include <errno.h>
#include "base/status.h"

static inline sn_status os_errno_status(int e) {
    switch (e) {
    case 0:
        return SN_OK;
    case EAGAIN:
        return SN_E_AGAIN;
    case EINPROGRESS:
    case EALREADY:
        return SN_PENDING;
    case ENOMEM:
        return SN_E_NOMEM;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOSPC:
    case EDQUOT:
        return SN_E_RESOURCES;
    case EACCES:
    case EPERM:
        return SN_E_PERM;
    case EFAULT:
        return SN_E_FAULT;
    case EBADF:
    case ENOTSOCK:
        return SN_E_HANDLE;
    case EINVAL:
    case EDOM:
        return SN_E_PARAM;
    case EMSGSIZE:
        return SN_E_TOO_LONG;
    case ENOENT:
    case ESRCH:
        return SN_E_NOT_FOUND;
    case EEXIST:
    case EBUSY:
        return SN_E_BUSY;
    case EADDRINUSE:
        return SN_E_ADDR_IN_USE;
    case EADDRNOTAVAIL:
        return SN_E_ADDR_INVALID;
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
    case EOPNOTSUPP:
    case ENOSYS:
        return SN_E_UNSUPPORTED;
    case EISCONN:
        return SN_E_CONNECTED;
    case ENOTCONN:
        return SN_E_NOT_CONNECTED;
    case ECONNREFUSED:
        return SN_E_REFUSED;
    case ETIMEDOUT:
        return SN_E_TIMEOUT;
    case ENETUNREACH:
    case ENETDOWN:
        return SN_E_NET_UNREACHABLE;
    case EHOSTUNREACH:
    case EHOSTDOWN:
        return SN_E_HOST_UNREACHABLE;
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
        return SN_E_PEER_GONE;
    default:
        return SN_E_INTERNAL;
    }
}

#endif
