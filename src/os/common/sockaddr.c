/* SPDX-License-Identifier: MIT
 * Socket addresses, which are the same on all systems but for their headers. */
#include "os/io/addr.h"
#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
typedef ADDRESS_FAMILY os_sa_family;
#else
#include <netinet/in.h>
#include <sys/socket.h>
typedef sa_family_t os_sa_family;
#endif
#include <string.h>

_Static_assert(sizeof(struct sockaddr_in) == 16 && sizeof(struct sockaddr_in6) == 28,
               "the sizes that addr.h promises");

sn_status os_addr_from_sockaddr(struct os_addr *out, const void *sa, size_t cb) {
    os_sa_family family;
    if (!sa || cb < sizeof family) return SN_E_ADDR_INVALID;
    memcpy(&family, sa, sizeof family);
    struct os_addr a = { 0 };
    if (family == AF_INET) {
        struct sockaddr_in in;
        if (cb < sizeof in) return SN_E_ADDR_INVALID;
        memcpy(&in, sa, sizeof in);
        a.family = 4;
        a.port = ntohs(in.sin_port);
        memcpy(a.ip, &in.sin_addr, 4);
    } else if (family == AF_INET6) {
        struct sockaddr_in6 in;
        if (cb < sizeof in) return SN_E_ADDR_INVALID;
        memcpy(&in, sa, sizeof in);
        a.family = 6;
        a.port = ntohs(in.sin6_port);
        memcpy(a.ip, &in.sin6_addr, 16);
        if (IN6_IS_ADDR_LINKLOCAL(&in.sin6_addr)) a.scope_id = in.sin6_scope_id;
    } else {
        return SN_E_ADDR_INVALID;
    }
    *out = a;
    return SN_OK;
}

size_t os_addr_to_sockaddr(const struct os_addr *a, void *buf) {
    if (a->family == 4) {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(a->port) };
        memcpy(&in.sin_addr, a->ip, 4);
        memcpy(buf, &in, sizeof in);
        return sizeof in;
    }
    if (a->family == 6) {
        struct sockaddr_in6 in = { .sin6_family = AF_INET6,
                                   .sin6_port = htons(a->port) };
        in.sin6_scope_id = a->scope_id; /* within a union on some systems */
        memcpy(&in.sin6_addr, a->ip, 16);
        memcpy(buf, &in, sizeof in);
        return sizeof in;
    }
    memset(buf, 0, OS_SOCKADDR_MAX);
    return 0;
}
