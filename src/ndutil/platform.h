/* SPDX-License-Identifier: MIT
 * platform.h - what the helper library asks of the system: one file per system implements it.
 * Owns:    the process-wide lock, the watch on the machine's addresses.
 * Threads: all but the lock calls run under the lock.
 * Errors:  as said at each call.
 */
#ifndef NDUTIL_PLATFORM_H
#define NDUTIL_PLATFORM_H

#include <stdbool.h>
#include "ndsupport.h"

void ndutil_platform_lock(void);
void ndutil_platform_unlock(void);

/* Begins to watch the machine's addresses. S_OK, or HRESULT_FROM_WIN32 of what failed. */
HRESULT ndutil_platform_start(void);
void ndutil_platform_stop(void);

/* Whether addresses may have changed since the last call, or since ndutil_platform_start. Never
 * blocks. When the system cannot tell: true. */
bool ndutil_platform_addresses_changed(void);

/* The local address that the system would use towards remote, with port 0. *bytes: in, room at
 * local; out, size used or needed. ND_SUCCESS; ND_BUFFER_OVERFLOW; ND_INVALID_ADDRESS (nothing can
 * be sent there); ND_NETWORK_UNREACHABLE; ND_UNSUCCESSFUL. */
HRESULT ndutil_platform_route(const struct sockaddr *remote, size_t remote_bytes,
                              struct sockaddr *local, size_t *bytes);

/* Replaces %NAME% by the environment variable of that name, where there is one. False if the
 * result does not fit units WCHARs with its terminator. */
bool ndutil_platform_expand(const WCHAR *path, WCHAR *out, size_t units);

/* The value of the environment variable SOFTND_PROVIDER; false if unset, empty or too long. */
bool ndutil_platform_provider_override(WCHAR *path, size_t units);

#endif
