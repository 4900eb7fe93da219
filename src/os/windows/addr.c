/* SPDX-License-Identifier: MIT */
#include "os/io/addr.h"
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <iphlpapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "os/common/addr_scope.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/windows/wsa_status.h"

/* What the system's own tools print after the percent sign. */
void os_scope_name(uint32_t index, char buf[OS_SCOPE_NAME_MAX]) {
    snprintf(buf, OS_SCOPE_NAME_MAX, "%u", index);
}

/* ---- interfaces ---- */

#define ADAPTERS_FLAGS (GAA_FLAG_SKIP_ANYCAST | GAA_FLAG_SKIP_MULTICAST | GAA_FLAG_SKIP_DNS_SERVER)

/* Freed with os_free; NULL with *st on failure. An empty list is a zeroed entry. */
static IP_ADAPTER_ADDRESSES *read_adapters(sn_status *st) {
    ULONG cb = 16384;
    *st = SN_E_RESOURCES;
    for (int round = 0; round < 8; round++) {
        IP_ADAPTER_ADDRESSES *list = os_zalloc(cb);
        if (!list) {
            *st = SN_E_NOMEM;
            return NULL;
        }
        ULONG e = os_fault_hit(OS_FAULT_SYSCALL)
                      ? ERROR_NOT_ENOUGH_MEMORY
                      : GetAdaptersAddresses(AF_UNSPEC, ADAPTERS_FLAGS, NULL, list, &cb);
        if (e == NO_ERROR) return list;
        if (e == ERROR_NO_DATA || e == ERROR_ADDRESS_NOT_ASSOCIATED) {
            memset(list, 0, sizeof *list);
            return list;
        }
        os_free(list);
        if (e != ERROR_BUFFER_OVERFLOW) return NULL;
        cb += 4096; /* it may grow until the next call */
    }
    return NULL;
}

/* The name people gave the connection; cut at a whole character. */
static void set_name(struct os_netif *nif, const IP_ADAPTER_ADDRESSES *a) {
    WCHAR wide[OS_NETIF_NAME_MAX / 3]; /* a unit takes at most 3 bytes of UTF-8 */
    size_t n = 0;
    const WCHAR *from = a->FriendlyName ? a->FriendlyName : L"";
    while (from[n] && n + 1 < SN_ARRAY_LEN(wide)) {
        wide[n] = from[n];
        n++;
    }
    if (n != 0 && IS_HIGH_SURROGATE(wide[n - 1])) n--;
    wide[n] = 0;
    if (n == 0 ||
        WideCharToMultiByte(CP_UTF8, 0, wide, -1, nif->name, sizeof nif->name, NULL, NULL) <= 0)
        snprintf(nif->name, sizeof nif->name, "%s", a->AdapterName ? a->AdapterName : "?");
}

static void fill_link(struct os_netif *nif, const IP_ADAPTER_ADDRESSES *a) {
    set_name(nif, a);
    nif->index = a->IfIndex ? a->IfIndex : a->Ipv6IfIndex;
    nif->mac_len = SN_MIN(a->PhysicalAddressLength, (ULONG)sizeof nif->mac);
    memcpy(nif->mac, a->PhysicalAddress, nif->mac_len);
    nif->loopback = a->IfType == IF_TYPE_SOFTWARE_LOOPBACK;
    /* The loopback interface has no limit, which is told as the largest number. */
    nif->mtu_bytes = a->Mtu == 0 ? 1500 : SN_MIN(a->Mtu, 65536u);
}

static bool has_addr(const struct os_netif *nif, const struct os_addr *a) {
    for (uint32_t i = 0; i < nif->addr_count; i++)
        if (os_addr_same_ip(&nif->addrs[i], a)) return true;
    return false;
}

static void fill_addrs(struct os_netif *nif, const IP_ADAPTER_ADDRESSES *from) {
    for (const IP_ADAPTER_UNICAST_ADDRESS *u = from->FirstUnicastAddress; u; u = u->Next) {
        struct os_addr a;
        bool usable = u->DadState == IpDadStatePreferred || u->DadState == IpDadStateDeprecated;
        if (!usable || !u->Address.lpSockaddr ||
            os_addr_from_sockaddr(&a, u->Address.lpSockaddr, (size_t)u->Address.iSockaddrLength) !=
                SN_OK)
            continue;
        a.port = 0;
        if (nif->addr_count < OS_NETIF_ADDRS_MAX && !has_addr(nif, &a))
            nif->addrs[nif->addr_count++] = a;
    }
}

static int compare_index(const void *pa, const void *pb) {
    const struct os_netif *a = pa, *b = pb;
    return a->index < b->index ? -1 : a->index > b->index;
}

static sn_status read_netifs(struct os_netif **out, size_t *count) {
    sn_status st;
    IP_ADAPTER_ADDRESSES *all = read_adapters(&st);
    if (!all) return st;
    size_t up = 0;
    for (const IP_ADAPTER_ADDRESSES *a = all; a; a = a->Next)
        up += a->OperStatus == IfOperStatusUp;
    struct os_netif *list = os_zalloc(up * sizeof *list);
    if (!list) {
        os_free(all);
        return SN_E_NOMEM;
    }
    size_t kept = 0;
    for (const IP_ADAPTER_ADDRESSES *a = all; a && kept < up; a = a->Next) {
        if (a->OperStatus != IfOperStatusUp) continue;
        struct os_netif *nif = &list[kept];
        memset(nif, 0, sizeof *nif);
        fill_link(nif, a);
        fill_addrs(nif, a);
        if (nif->addr_count != 0) kept++;
    }
    os_free(all);
    qsort(list, kept, sizeof *list, compare_index);
    *out = list;
    *count = kept;
    return SN_OK;
}

/* Programs ask several times for each connection, and the system takes milliseconds to tell (Wine:
 * tens of them). So what it said is kept for a moment; without allocation, since the module may be
 * unloaded. More interfaces than there is room for are asked for each time. */
#define KEPT_MAX 16
#define KEPT_NS (500 * OS_NS_PER_MS)

static SRWLOCK kept_lock = SRWLOCK_INIT;
static struct os_netif kept[KEPT_MAX]; /* [kept_lock] */
static size_t kept_count;              /* [kept_lock] 0: none */
static uint64_t kept_at;               /* [kept_lock] */

static sn_status copy_kept_locked(struct os_netif **out, size_t *count) {
    *out = os_zalloc(kept_count * sizeof **out);
    if (!*out) return SN_E_NOMEM;
    memcpy(*out, kept, kept_count * sizeof **out);
    *count = kept_count;
    return SN_OK;
}

sn_status os_netif_list(struct os_netif **out, size_t *count) {
    sn_status st;
    os_wsa_start();
    AcquireSRWLockExclusive(&kept_lock);
    if (kept_count != 0 && os_now_ns() - kept_at < KEPT_NS) {
        st = copy_kept_locked(out, count);
    } else {
        st = read_netifs(out, count);
        kept_count = st == SN_OK && *count <= KEPT_MAX ? *count : 0;
        if (kept_count != 0) memcpy(kept, *out, kept_count * sizeof *kept);
        kept_at = os_now_ns();
    }
    ReleaseSRWLockExclusive(&kept_lock);
    return st;
}

void os_netif_free(struct os_netif *list) {
    os_free(list);
}
