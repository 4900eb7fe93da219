/* SPDX-License-Identifier: MIT */
#include "ndk/ndk.h"
#include "os/prim/fault.h"

struct ndk_endpoint {
    struct sn_list link;
    struct os_addr addr;
    NET_IFINDEX if_index;
    enum ndk_endpoint_kind kind;
};

static os_lock lock; /* rank LEAF */
static struct sn_list taken;
static os_once once = OS_ONCE_INIT;

static void init(void) {
    os_lock_init(&lock, OS_RANK_LEAF);
    sn_list_init(&taken);
}

sn_status ndk_endpoint_take(const struct ndk_adapter *ad, enum ndk_endpoint_kind kind,
                            const struct os_addr *addr, struct ndk_endpoint **out) {
    sn_status st = SN_OK;
    *out = NULL;
    if (addr->port == 0) return SN_OK;
    os_once_run(&once, init);
    struct ndk_endpoint *e = os_zalloc(sizeof *e);
    if (!e) return SN_E_NOMEM;
    e->addr = *addr;
    e->if_index = ad->if_index;
    e->kind = kind;
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &taken) {
        const struct os_addr *other = &SN_CONTAINER(it, struct ndk_endpoint, link)->addr;
        if (other->port == addr->port && os_addr_same_ip(other, addr)) st = SN_E_ADDR_IN_USE;
    }
    if (st == SN_OK) sn_list_push_back(&taken, &e->link);
    os_lock_leave(&lock);
    if (st == SN_OK)
        *out = e;
    else
        os_free(e);
    return st;
}

void ndk_endpoint_give(struct ndk_endpoint *e) {
    if (!e) return;
    os_lock_enter(&lock);
    sn_list_remove(&e->link);
    os_lock_leave(&lock);
    os_free(e);
}

void ndk_endpoint_each(NET_IFINDEX if_index,
                       void (*fn)(void *ctx, enum ndk_endpoint_kind kind,
                                  const struct os_addr *addr),
                       void *ctx) {
    os_once_run(&once, init);
    os_lock_enter(&lock);
    SN_LIST_FOR(it, &taken) {
        const struct ndk_endpoint *e = SN_CONTAINER(it, struct ndk_endpoint, link);
        if (e->if_index == if_index) fn(ctx, e->kind, &e->addr);
    }
    os_lock_leave(&lock);
}

NTSTATUS ndk_addr_in(const SOCKADDR *sa, ULONG len, bool local, struct os_addr *out) {
    if (!sa || os_addr_from_sockaddr(out, sa, len) != SN_OK) {
        ndk_violation(NDK_RULE_connect_args, NULL, sa,
                      "an address of %u bytes is no IPv4 or IPv6 address", len);
        return STATUS_INVALID_PARAMETER;
    }
    if (local && os_addr_is_any(out)) {
        ndk_violation(NDK_RULE_connect_args, NULL, sa, "the wildcard is no address of the adapter");
        return STATUS_INVALID_ADDRESS;
    }
    return STATUS_SUCCESS;
}

NTSTATUS ndk_addr_out(const struct os_addr *a, SOCKADDR *sa, ULONG *len) {
    uint8_t buf[OS_SOCKADDR_MAX];
    ULONG need = (ULONG)os_addr_to_sockaddr(a, buf);
    if (!len) return STATUS_INVALID_PARAMETER;
    if (!sa || *len < need) {
        *len = need;
        return STATUS_BUFFER_TOO_SMALL;
    }
    memcpy(sa, buf, need);
    *len = need;
    return STATUS_SUCCESS;
}
