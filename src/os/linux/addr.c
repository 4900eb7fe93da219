/* SPDX-License-Identifier: MIT */
#include "os/io/addr.h"
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/base.h"
#include "os/common/addr_scope.h"
#include "os/linux/errno_status.h"
#include "os/prim/fault.h"

void os_scope_name(uint32_t index, char buf[OS_SCOPE_NAME_MAX]) {
    char name[IF_NAMESIZE];
    if (if_indextoname(index, name))
        snprintf(buf, OS_SCOPE_NAME_MAX, "%s", name);
    else
        snprintf(buf, OS_SCOPE_NAME_MAX, "%u", index);
}

/* ---- interfaces ---- */

/* An address on an alias label ("eth0:1") belongs to the interface before the colon. */
static bool same_interface(const struct os_netif *nif, const char *label) {
    size_t len = strcspn(label, ":");
    return strlen(nif->name) == len && memcmp(nif->name, label, len) == 0;
}

/* IPv6 addresses that may not be used yet, or never: still being checked for duplicates, or found
 * to be one. The kernel tells in a file; without it every address counts as usable. */
struct unusable {
    uint32_t count;
    struct {
        uint8_t ip[16];
        uint32_t index;
    } entry[32];
};

static void read_unusable(struct unusable *u) {
    u->count = 0;
    FILE *f = fopen("/proc/net/if_inet6", "re");
    if (!f) return;
    char hex[33];
    unsigned index, flags;
    while (u->count < SN_ARRAY_LEN(u->entry) &&
           fscanf(f, "%32[0-9a-f] %x %*x %*x %x %*s ", hex, &index, &flags) == 3) {
        bool waiting = (flags & IFA_F_TENTATIVE) && !(flags & IFA_F_OPTIMISTIC);
        if (!waiting && !(flags & IFA_F_DADFAILED)) continue;
        for (int i = 0; i < 16; i++) {
            char byte[3] = { hex[2 * i], hex[2 * i + 1], 0 };
            u->entry[u->count].ip[i] = (uint8_t)strtoul(byte, NULL, 16);
        }
        u->entry[u->count++].index = index;
    }
    fclose(f);
}

static bool is_unusable(const struct unusable *u, const struct os_addr *a, uint32_t index) {
    for (uint32_t i = 0; a->family == 6 && i < u->count; i++)
        if (u->entry[i].index == index && memcmp(u->entry[i].ip, a->ip, 16) == 0) return true;
    return false;
}

static bool has_addr(const struct os_netif *nif, const struct os_addr *a) {
    for (uint32_t i = 0; i < nif->addr_count; i++)
        if (os_addr_same_ip(&nif->addrs[i], a)) return true;
    return false;
}

static uint32_t read_mtu(int probe, const char *name) {
    struct ifreq req = { 0 };
    memcpy(req.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
    return probe >= 0 && ioctl(probe, SIOCGIFMTU, &req) == 0 && req.ifr_mtu > 0
               ? (uint32_t)req.ifr_mtu
               : 1500;
}

static void fill_link(struct os_netif *nif, const struct ifaddrs *ifa, int probe) {
    const struct sockaddr_ll *ll = (const struct sockaddr_ll *)(const void *)ifa->ifa_addr;
    snprintf(nif->name, sizeof nif->name, "%s", ifa->ifa_name);
    nif->index = (uint32_t)ll->sll_ifindex;
    nif->mac_len = SN_MIN((uint32_t)ll->sll_halen, (uint32_t)sizeof nif->mac);
    memcpy(nif->mac, ll->sll_addr, nif->mac_len);
    nif->loopback = (ifa->ifa_flags & IFF_LOOPBACK) != 0;
    nif->mtu_bytes = read_mtu(probe, ifa->ifa_name);
}

static void add_addr(struct os_netif *list, size_t count, const struct ifaddrs *ifa,
                     const struct unusable *skip) {
    struct os_addr a;
    size_t cb = ifa->ifa_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                     : sizeof(struct sockaddr_in);
    if (os_addr_from_sockaddr(&a, ifa->ifa_addr, cb) != SN_OK) return;
    a.port = 0;
    for (size_t i = 0; i < count; i++) {
        struct os_netif *nif = &list[i];
        if (!same_interface(nif, ifa->ifa_name)) continue;
        if (nif->addr_count < OS_NETIF_ADDRS_MAX && !is_unusable(skip, &a, nif->index) &&
            !has_addr(nif, &a))
            nif->addrs[nif->addr_count++] = a;
        return;
    }
}

static int compare_index(const void *pa, const void *pb) {
    const struct os_netif *a = pa, *b = pb;
    return a->index < b->index ? -1 : a->index > b->index;
}

sn_status os_netif_list(struct os_netif **out, size_t *count) {
    struct ifaddrs *all;
    int e = os_fault_hit(OS_FAULT_SYSCALL) ? ENFILE : getifaddrs(&all) != 0 ? errno : 0;
    if (e != 0) return e == ENOMEM ? SN_E_NOMEM : SN_E_RESOURCES;

    size_t links = 0;
    for (struct ifaddrs *i = all; i; i = i->ifa_next)
        links += i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET && (i->ifa_flags & IFF_UP);
    struct os_netif *list = os_zalloc(links * sizeof *list);
    if (!list) {
        freeifaddrs(all);
        return SN_E_NOMEM;
    }

    int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    size_t n = 0;
    for (struct ifaddrs *i = all; i; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET && (i->ifa_flags & IFF_UP) &&
            n < links)
            fill_link(&list[n++], i, probe);
    if (probe >= 0) close(probe);

    struct unusable skip;
    read_unusable(&skip);
    for (struct ifaddrs *i = all; i; i = i->ifa_next)
        if (i->ifa_addr &&
            (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6))
            add_addr(list, n, i, &skip);
    freeifaddrs(all);

    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].addr_count != 0) list[kept++] = list[i];
    qsort(list, kept, sizeof *list, compare_index);
    *out = list;
    *count = kept;
    return SN_OK;
}

void os_netif_free(struct os_netif *list) {
    os_free(list);
}
