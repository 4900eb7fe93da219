/* SPDX-License-Identifier: MIT
 * addr.h - IP end points and the machine's interfaces, without sockaddr.
 * Owns:    the conversion from and to the system's sockaddr layout.
 * Threads: any.   Errors: SN_E_ADDR_INVALID, SN_E_NOMEM, SN_E_RESOURCES.
 */
#ifndef SN_OS_ADDR_H
#define SN_OS_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

struct os_addr {
    uint16_t family;   /* 4, 6, or 0 for none */
    uint16_t port;     /* host order */
    uint32_t scope_id; /* IPv6 link-local: interface index; else 0 */
    uint8_t ip[16];    /* network order; IPv4 in the first 4, rest 0 */
};

#define OS_ADDR_TEXT_MAX 80
#define OS_SOCKADDR_MAX 28

/* From a sockaddr_in/in6 of at least cb bytes (more is fine): SN_E_ADDR_INVALID if cb is short or
 * the family is neither. */
SN_MUST_CHECK sn_status os_addr_from_sockaddr(struct os_addr *out, const void *sa, size_t cb);
/* Writes a sockaddr of the system's layout; returns its size (16 or 28). buf holds
 * OS_SOCKADDR_MAX bytes. */
size_t os_addr_to_sockaddr(const struct os_addr *a, void *buf);
size_t os_addr_sockaddr_size(const struct os_addr *a);
/* Same family, IP and (for link-local) scope; the port is not compared. */
bool os_addr_same_ip(const struct os_addr *a, const struct os_addr *b);
bool os_addr_is_any(const struct os_addr *a);
bool os_addr_is_loopback(const struct os_addr *a);
/* "1.2.3.4:5", "[fe80::1%eth0]:5"; port left out when 0. */
void os_addr_text(const struct os_addr *a, char buf[OS_ADDR_TEXT_MAX]);

#define OS_NETIF_NAME_MAX 64
#define OS_NETIF_ADDRS_MAX 64
struct os_netif {
    char name[OS_NETIF_NAME_MAX]; /* stable across reboots */
    uint32_t index;
    uint8_t mac[8];
    uint32_t mac_len;
    uint32_t mtu_bytes;
    bool loopback;
    uint32_t addr_count;
    struct os_addr addrs[OS_NETIF_ADDRS_MAX]; /* unicast, usable; port 0 */
};

/* The interfaces that are up and have at least one address, in a stable order. *out is freed with
 * os_netif_free. Costs a few system calls; on Windows it may be half a second old. */
SN_MUST_CHECK sn_status os_netif_list(struct os_netif **out, size_t *count);
void os_netif_free(struct os_netif *list);

#endif
