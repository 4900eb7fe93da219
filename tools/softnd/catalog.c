/* SPDX-License-Identifier: MIT
 * catalog.c - see catalog.h.
 */
#include "catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE_FLAGS                                                                              \
    (XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA)
#define PROVIDER_FLAGS (PFL_HIDDEN | PFL_NETWORKDIRECT_PROVIDER)

static bool is_nd(const WSAPROTOCOL_INFOW *e) {
    return (e->dwServiceFlags1 & SERVICE_FLAGS) == SERVICE_FLAGS && e->iVersion == ND_VERSION_2 &&
           (e->dwProviderFlags & PROVIDER_FLAGS) == PROVIDER_FLAGS &&
           (e->iAddressFamily == AF_INET || e->iAddressFamily == AF_INET6) &&
           e->iSocketType == -1 && e->iProtocol == 0 && e->iProtocolMaxOffset == 0;
}

const char *catalog_text(INT error) {
    static char other[40];

    switch (error) {
    case WSAEACCES:
        return "permission denied (try --user, or run as administrator)";
    case WSANO_RECOVERY: /* what Windows documents for those who are no administrators */
        return "the catalog cannot be changed; run this as administrator";
    case WSAEINVALIDPROVIDER:
        return "no such provider";
    case WSASYSCALLFAILURE:
        return "the catalog cannot be written or read (disk full?)";
    case WSA_NOT_ENOUGH_MEMORY:
    case WSAENOBUFS:
        return "out of memory";
    case WSAEFAULT:
    case WSAEINVAL:
        return "the path is not one that a catalog can hold";
    }
    snprintf(other, sizeof other, "catalog error %d", (int)error);
    return other;
}

static void read_path(struct catalog_entry *e) {
    GUID id = e->info.ProviderId;
    INT units = CATALOG_PATH_MAX, error = 0;

    if (WSCGetProviderPath(&id, e->path, &units, &error) != 0) e->path[0] = 0;
    e->path[CATALOG_PATH_MAX - 1] = 0;
}

const char *catalog_read(struct catalog *c) {
    WSAPROTOCOL_INFOW *list = NULL;
    DWORD bytes = 0;
    INT error = 0, count;

    *c = (struct catalog){ 0 };
    while ((count = WSCEnumProtocols(NULL, list, &bytes, &error)) < 0) {
        free(list);
        if (error != WSAENOBUFS) return catalog_text(error);
        list = calloc(1, bytes ? bytes : 1);
        if (!list) return "out of memory";
    }
    if (count && list) {
        c->entries = calloc((size_t)count, sizeof c->entries[0]);
        if (!c->entries) {
            free(list);
            return "out of memory";
        }
        c->count = (size_t)count;
        for (size_t i = 0; i < c->count; i++) {
            c->entries[i].info = list[i];
            c->entries[i].is_nd = is_nd(&list[i]);
            read_path(&c->entries[i]);
        }
    }
    free(list);
    return NULL;
}

void catalog_free(struct catalog *c) {
    free(c->entries);
    *c = (struct catalog){ 0 };
}

void catalog_make_entry(WSAPROTOCOL_INFOW *out, const GUID *provider, const WCHAR *name) {
    *out = (WSAPROTOCOL_INFOW){
        .dwServiceFlags1 = SERVICE_FLAGS,
        .dwProviderFlags = PROVIDER_FLAGS,
        .ProviderId = *provider,
        .ProtocolChain.ChainLen = BASE_PROTOCOL,
        .iVersion = ND_VERSION_2,
        .iAddressFamily = AF_INET6, /* one such entry stands for IPv4 too */
        .iMaxSockAddr = sizeof(SOCKADDR_IN6),
        .iMinSockAddr = sizeof(SOCKADDR_IN),
        .iSocketType = -1,
        .iNetworkByteOrder = BIGENDIAN,
        .iSecurityScheme = SECURITY_PROTOCOL_NONE,
        .dwMessageSize = 0xFFFFFFFF,
    };
    for (size_t i = 0; i < WSAPROTOCOL_LEN && name[i]; i++)
        out->szProtocol[i] = name[i];
}
