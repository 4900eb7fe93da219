/* SPDX-License-Identifier: MIT
 * provider.c - Providers are asked defensively: none is trusted to size its list right, to fill
 * it, or to answer a size query at all.
 */
#include "provider.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The list may grow between the size query and the copy; more rounds than this mean a provider
 * that never agrees with itself. */
#define QUERY_ROUNDS_MAX 4

size_t ndutil_sockaddr_bytes(int family) {
    if (family == AF_INET) return sizeof(SOCKADDR_IN);
    if (family == AF_INET6) return sizeof(SOCKADDR_IN6);
    return 0;
}

/* GetProcAddress returns one type for all functions; copying the bits keeps the compiler quiet. */
static bool get_export(HMODULE module, const char *name, void *out) {
    FARPROC f = GetProcAddress(module, name);

    memcpy(out, &f, sizeof f);
    return f != NULL;
}

static HRESULT load(struct provider *p) {
    HMODULE module;

    if (p->module) return ND_SUCCESS;
    module = LoadLibraryExW(p->path, NULL, 0);
    if (!module) return ND_DEVICE_NOT_READY;
    if (!get_export(module, "DllGetClassObject", &p->get_class_object) ||
        !get_export(module, "DllCanUnloadNow", &p->can_unload)) {
        FreeLibrary(module);
        return ND_DEVICE_NOT_READY;
    }
    p->module = module;
    return ND_SUCCESS;
}

bool ndutil_provider_unload(struct provider *p) {
    if (p->module && p->can_unload() == S_OK) {
        FreeLibrary(p->module);
        p->module = NULL;
    }
    return !p->module;
}

/* The provider object itself is the class object; there is no factory in version 2. */
static HRESULT get_object(struct provider *p, IND2Provider **out) {
    HRESULT hr = load(p);

    *out = NULL;
    if (FAILED(hr)) return hr;
    hr = p->get_class_object(&p->id, &IID_IND2Provider, (LPVOID *)out);
    if (SUCCEEDED(hr) && *out) return ND_SUCCESS;
    ndutil_provider_unload(p);
    return ND_DEVICE_NOT_READY;
}

/* Success for a NULL buffer says nothing about a list, so it counts as an empty one; the list is
 * only believed when the provider filled a buffer of ours, and no further than that goes. */
static HRESULT query_list(IND2Provider *object, SOCKET_ADDRESS_LIST **out, size_t *most) {
    SOCKET_ADDRESS_LIST *list = NULL;
    ULONG room = 0;

    *out = NULL;
    *most = 0;
    for (int round = 0; round < QUERY_ROUNDS_MAX; round++) {
        ULONG cb = room;
        HRESULT hr = IND2Provider_QueryAddressList(object, list, &cb);
        if (hr == ND_SUCCESS) {
            *out = list;
            if (list)
                *most = (room - offsetof(SOCKET_ADDRESS_LIST, Address)) / sizeof list->Address[0];
            return ND_SUCCESS;
        }
        free(list);
        if (hr != ND_BUFFER_OVERFLOW) return FAILED(hr) ? hr : ND_UNSUCCESSFUL;
        room = cb < sizeof *list ? (ULONG)sizeof *list : cb;
        list = calloc(1, room);
        if (!list) return ND_NO_MEMORY;
    }
    free(list);
    return ND_BUFFER_OVERFLOW;
}

static HRESULT copy_list(struct provider *p, const SOCKET_ADDRESS_LIST *list, size_t most) {
    size_t count = list && list->iAddressCount > 0 ? (size_t)list->iAddressCount : 0;

    if (count > most) count = most;
    if (!count) return ND_SUCCESS;
    p->addrs = calloc(count, sizeof p->addrs[0]);
    if (!p->addrs) return ND_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const SOCKET_ADDRESS *a = &list->Address[i];
        size_t cb;
        if (!a->lpSockaddr || a->iSockaddrLength < (INT)sizeof(SOCKADDR_IN)) continue;
        cb = ndutil_sockaddr_bytes(a->lpSockaddr->sa_family);
        if (!cb || (size_t)a->iSockaddrLength < cb) continue;
        memcpy(&p->addrs[p->addr_count++], a->lpSockaddr, cb);
    }
    return ND_SUCCESS;
}

HRESULT ndutil_provider_refresh(struct provider *p) {
    SOCKET_ADDRESS_LIST *list;
    IND2Provider *object;
    size_t most;
    HRESULT hr;

    free(p->addrs);
    p->addrs = NULL;
    p->addr_count = 0;
    hr = get_object(p, &object);
    if (FAILED(hr)) return hr;
    hr = query_list(object, &list, &most);
    IND2Provider_Release(object);
    if (SUCCEEDED(hr)) hr = copy_list(p, list, most);
    free(list);
    ndutil_provider_unload(p);
    return hr;
}

bool ndutil_provider_has(const struct provider *p, const struct sockaddr *sa) {
    for (size_t i = 0; i < p->addr_count; i++) {
        const SOCKADDR_INET *have = &p->addrs[i];
        if (have->si_family != sa->sa_family) continue;
        if (sa->sa_family == AF_INET) {
            SOCKADDR_IN want;
            memcpy(&want, sa, sizeof want);
            if (!memcmp(&have->Ipv4.sin_addr, &want.sin_addr, sizeof want.sin_addr)) return true;
        } else {
            SOCKADDR_IN6 want;
            memcpy(&want, sa, sizeof want);
            if (!memcmp(&have->Ipv6.sin6_addr, &want.sin6_addr, sizeof want.sin6_addr)) return true;
        }
    }
    return false;
}

HRESULT ndutil_provider_open(struct provider *p, REFIID iid, const struct sockaddr *sa, size_t cb,
                             void **out) {
    IND2Provider *object;
    UINT64 id = 0;
    HRESULT hr;

    if (FAILED(get_object(p, &object))) return ND_INVALID_ADDRESS;
    if (FAILED(IND2Provider_ResolveAddress(object, sa, (ULONG)cb, &id)))
        hr = ND_INVALID_ADDRESS;
    else
        hr = IND2Provider_OpenAdapter(object, iid, id, out);
    IND2Provider_Release(object);
    ndutil_provider_unload(p);
    return hr;
}
