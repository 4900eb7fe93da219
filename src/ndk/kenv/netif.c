/* SPDX-License-Identifier: MIT */
#include "ndk/kenv/kenv.h"
#include "netioapi.h"
#include "rdma/rd.h"

/* The name of the interface with this index; false if there is none. */
static bool find(NET_IFINDEX index, char name[OS_NETIF_NAME_MAX]) {
    struct rd_adapter_entry *list;
    size_t count;
    bool found = false;
    if (rd_adapter_list(&list, &count) != SN_OK) return false;
    for (size_t i = 0; i < count && !found; i++) {
        if (list[i].netif.index != index) continue;
        if (name) memcpy(name, list[i].netif.name, OS_NETIF_NAME_MAX);
        found = true;
    }
    rd_adapter_list_free(list);
    return found;
}

NETIO_STATUS ConvertInterfaceIndexToLuid(NET_IFINDEX index, PNET_LUID luid) {
    if (!luid) return STATUS_INVALID_PARAMETER;
    memset(luid, 0, sizeof *luid);
    if (!find(index, NULL)) return STATUS_NOT_FOUND;
    luid->Info.NetLuidIndex = index;
    luid->Info.IfType = 6; /* Ethernet */
    return STATUS_SUCCESS;
}

NETIO_STATUS ConvertInterfaceLuidToIndex(const NET_LUID *luid, PNET_IFINDEX index) {
    if (!luid || !index) return STATUS_INVALID_PARAMETER;
    *index = 0;
    if (!find((NET_IFINDEX)luid->Info.NetLuidIndex, NULL)) return STATUS_NOT_FOUND;
    *index = (NET_IFINDEX)luid->Info.NetLuidIndex;
    return STATUS_SUCCESS;
}

NETIO_STATUS ConvertInterfaceLuidToAlias(const NET_LUID *luid, PWSTR alias, SIZE_T length) {
    char name[OS_NETIF_NAME_MAX];
    if (!luid || !alias || length == 0) return STATUS_INVALID_PARAMETER;
    if (!find((NET_IFINDEX)luid->Info.NetLuidIndex, name)) return STATUS_NOT_FOUND;
    SIZE_T n = strnlen(name, sizeof name);
    if (n >= length) return STATUS_BUFFER_TOO_SMALL;
    for (SIZE_T i = 0; i < n; i++)
        alias[i] = (WCHAR)(unsigned char)name[i];
    alias[n] = 0;
    return STATUS_SUCCESS;
}
