/* SPDX-License-Identifier: MIT
 * softnd_winsockaddr.h - socket addresses for the kernel environment on Windows, where it stands
 * without the system's headers.
 * Owns:    what softnd_wintypes.h takes from the system on Linux.
 * Threads: types only.   Errors: none.
 */
#ifndef SOFTND_WINSOCKADDR_H
#define SOFTND_WINSOCKADDR_H

#include <stdint.h>

#define AF_UNSPEC 0
#define AF_INET 2
#define AF_INET6 23

struct sockaddr {
    uint16_t sa_family;
    char sa_data[14];
};
struct in6_addr {
    union {
        uint8_t Byte[16];
        uint16_t Word[8];
    } u;
};
struct sockaddr_in6 {
    uint16_t sin6_family;
    uint16_t sin6_port;
    uint32_t sin6_flowinfo;
    struct in6_addr sin6_addr;
    uint32_t sin6_scope_id;
};
struct sockaddr_storage {
    uint16_t ss_family;
    char ss_pad1[6];
    int64_t ss_align;
    char ss_pad2[112];
};

#endif
