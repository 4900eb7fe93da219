/* SPDX-License-Identifier: MIT
 * winsock2.h - so that programs written for Windows find it: addresses and the catalog, see
 * softnd_win32.h, and start-up. Sockets themselves are the system's.
 */
#ifndef SOFTND_WINSOCK2_H
#define SOFTND_WINSOCK2_H

#include <arpa/inet.h>
#include "softnd_win32.h"

typedef struct WSAData {
    WORD wVersion;
    WORD wHighVersion;
} WSADATA, *LPWSADATA;

/* Linux sockets need no start-up: these only negotiate the version. 0; WSAVERNOTSUPPORTED for a
 * major version below 1; WSAEFAULT without data. */
static inline int WSAStartup(WORD version, LPWSADATA data) {
    if (!data) return WSAEFAULT;
    data->wHighVersion = MAKEWORD(2, 2);
    if ((version & 0xFF) < 1) return WSAVERNOTSUPPORTED;
    data->wVersion = (version & 0xFF) >= 2 ? data->wHighVersion : version;
    return 0;
}
static inline int WSACleanup(void) {
    return 0;
}

/* Winsock and Win32 share one error number per thread. */
static inline int WSAGetLastError(void) {
    return (int)GetLastError();
}
static inline void WSASetLastError(int error) {
    SetLastError((DWORD)error);
}

#endif
