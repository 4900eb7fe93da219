/* SPDX-License-Identifier: MIT
 * ndutil.c - the helper functions of ndsupport.h over the provider catalog.
 *
 * The order of things is the one that programs know: nothing is loaded at start; before each
 * question the catalog is looked at, and the providers' addresses are read again if it or the
 * machine's addresses changed; after each call into a library it may unload itself. Where a
 * provider that trusts other helpers to be careless could crash them, this one is careful: an
 * empty list, a failed allocation, a library that is still in use at the last NdCleanup and
 * addresses of the other family are all dealt with here.
 */
#include <initguid.h>
#include <winsock2.h>
#include <ws2spi.h>

#include "platform.h"
#include "provider.h"
#include "softnd.h"

#include <stdlib.h>
#include <string.h>

#define SERVICE_FLAGS                                                                              \
    (XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA)
#define PROVIDER_FLAGS (PFL_HIDDEN | PFL_NETWORKDIRECT_PROVIDER)
/* The catalog may grow between the size query and the copy. */
#define ENUM_ROUNDS_MAX 4

static struct {
    unsigned started;
    struct provider *first;     /* in order of first sighting */
    WSAPROTOCOL_INFOW *catalog; /* as last read, to see whether it changed */
    DWORD catalog_bytes;
    bool catalog_read; /* at least once since the start */
} nd;

static bool is_v2_entry(const WSAPROTOCOL_INFOW *e) {
    return (e->dwServiceFlags1 & SERVICE_FLAGS) == SERVICE_FLAGS && e->iVersion == ND_VERSION_2 &&
           (e->dwProviderFlags & PROVIDER_FLAGS) == PROVIDER_FLAGS &&
           (e->iAddressFamily == AF_INET || e->iAddressFamily == AF_INET6) &&
           e->iSocketType == -1 && e->iProtocol == 0 && e->iProtocolMaxOffset == 0;
}

/* False: it could not be read, and what is known stays. An empty catalog is (NULL, 0). */
static bool read_catalog(WSAPROTOCOL_INFOW **out, DWORD *bytes) {
    WSAPROTOCOL_INFOW *list = NULL;
    DWORD room = 0;

    for (int round = 0; round < ENUM_ROUNDS_MAX; round++) {
        DWORD need = room;
        INT error = 0;
        INT count = WSCEnumProtocols(NULL, list, &need, &error);
        if (count >= 0) {
            *bytes = list ? (DWORD)((size_t)count * sizeof *list) : 0;
            *out = list;
            return true;
        }
        free(list);
        if (error != WSAENOBUFS) return false;
        room = need;
        list = calloc(1, room ? room : 1);
        if (!list) return false;
    }
    free(list);
    return false;
}

static struct provider *find_provider(const GUID *id) {
    for (struct provider *p = nd.first; p; p = p->next)
        if (IsEqualGUID(&p->id, id)) return p;
    return NULL;
}

static struct provider *add_provider(const GUID *id, const WCHAR *path) {
    struct provider **at = &nd.first, *p = calloc(1, sizeof *p);

    if (!p) return NULL;
    p->id = *id;
    p->active = true;
    if (!ndutil_platform_expand(path, p->path, PROVIDER_PATH_MAX)) {
        free(p);
        return NULL;
    }
    while (*at)
        at = &(*at)->next;
    *at = p;
    return p;
}

static void add_catalog_entry(const WSAPROTOCOL_INFOW *e) {
    struct provider *p = find_provider(&e->ProviderId);
    WCHAR path[PROVIDER_PATH_MAX];
    INT units = PROVIDER_PATH_MAX, error = 0;
    GUID id = e->ProviderId;

    if (p) {
        p->active = true; /* a running process keeps the path that it first saw */
        return;
    }
    if (WSCGetProviderPath(&id, path, &units, &error) == 0) add_provider(&id, path);
}

static bool any_active(void) {
    for (struct provider *p = nd.first; p; p = p->next)
        if (p->active) return true;
    return false;
}

/* Only when the catalog has no provider at all does SOFTND_PROVIDER count. */
static void add_override(void) {
    WCHAR path[PROVIDER_PATH_MAX];
    struct provider *p = find_provider(&CLSID_SoftNdProvider);

    if (any_active() || !ndutil_platform_provider_override(path, PROVIDER_PATH_MAX)) return;
    if (p)
        p->active = true;
    else
        add_provider(&CLSID_SoftNdProvider, path);
}

static void free_provider(struct provider *p) {
    free(p->addrs);
    free(p);
}

/* Unloads what can be unloaded, and forgets providers that left the catalog once they are. */
static void unload_providers(bool forget_all) {
    for (struct provider **at = &nd.first, *p; (p = *at) != NULL;) {
        bool unloaded = ndutil_provider_unload(p);
        if (unloaded && (forget_all || !p->active)) {
            *at = p->next;
            free_provider(p);
        } else {
            at = &p->next;
        }
    }
}

/* True if the catalog is not what it was. */
static bool update_catalog(void) {
    WSAPROTOCOL_INFOW *list = NULL;
    DWORD bytes = 0;

    if (!read_catalog(&list, &bytes)) return false;
    if (nd.catalog_read && bytes == nd.catalog_bytes &&
        (!bytes || !memcmp(list, nd.catalog, bytes))) {
        free(list);
        return false;
    }
    free(nd.catalog);
    nd.catalog = list;
    nd.catalog_bytes = bytes;
    nd.catalog_read = true;

    for (struct provider *p = nd.first; p; p = p->next)
        p->active = false;
    for (size_t i = 0; i < bytes / sizeof *list; i++)
        if (is_v2_entry(&list[i])) add_catalog_entry(&list[i]);
    return true;
}

/* Brings providers and addresses up to date. Each call; the common case reads the catalog, finds
 * it unchanged, and loads nothing. */
static void update(void) {
    bool changed = update_catalog();

    if (!any_active()) {
        add_override();
        changed = changed || any_active();
    }
    if (ndutil_platform_addresses_changed()) changed = true;
    if (!changed) return;
    for (struct provider *p = nd.first; p; p = p->next) {
        if (p->active) {
            ndutil_provider_refresh(p);
        } else {
            free(p->addrs);
            p->addrs = NULL;
            p->addr_count = 0;
        }
    }
    unload_providers(false);
}

/* Takes the lock and brings the state up to date; on failure the lock is not held. */
static HRESULT enter(void) {
    ndutil_platform_lock();
    if (nd.started) {
        update();
        return ND_SUCCESS;
    }
    ndutil_platform_unlock();
    return ND_DEVICE_NOT_READY;
}

static bool is_listed(const struct sockaddr *sa) {
    for (struct provider *p = nd.first; p; p = p->next)
        if (ndutil_provider_has(p, sa)) return true;
    return false;
}

static HRESULT check_sockaddr(const struct sockaddr *sa, SIZE_T cb) {
    size_t need;

    if (!sa) return ND_INVALID_PARAMETER_1;
    if (cb < sizeof(SOCKADDR_IN) || cb > 0xFFFFFFFFu) return ND_INVALID_PARAMETER_2;
    need = ndutil_sockaddr_bytes(sa->sa_family);
    if (!need) return ND_INVALID_ADDRESS;
    return cb < need ? ND_INVALID_PARAMETER_2 : ND_SUCCESS;
}

HRESULT STDMETHODCALLTYPE NdStartup(VOID) {
    HRESULT hr = S_OK;

    ndutil_platform_lock();
    if (!nd.started) {
        WSADATA data;
        int error = WSAStartup(MAKEWORD(2, 2), &data);
        hr = error ? HRESULT_FROM_WIN32((ULONG)error) : ndutil_platform_start();
    }
    if (SUCCEEDED(hr)) nd.started++;
    ndutil_platform_unlock();
    return hr;
}

/* A library that says it is in use stays loaded, and known, so that the objects that the program
 * still holds do not lose their code. The next start finds it again. */
HRESULT STDMETHODCALLTYPE NdCleanup(VOID) {
    HRESULT hr = S_OK;

    ndutil_platform_lock();
    if (!nd.started) {
        hr = ND_DEVICE_NOT_READY;
    } else if (--nd.started == 0) {
        for (struct provider *p = nd.first; p; p = p->next) {
            free(p->addrs);
            p->addrs = NULL;
            p->addr_count = 0;
            p->active = false;
        }
        unload_providers(true);
        free(nd.catalog);
        nd.catalog = NULL;
        nd.catalog_bytes = 0;
        nd.catalog_read = false;
        ndutil_platform_stop();
    }
    ndutil_platform_unlock();
    return hr;
}

VOID STDMETHODCALLTYPE NdFlushProviders(VOID) {
    ndutil_platform_lock();
    if (nd.started) unload_providers(false);
    ndutil_platform_unlock();
}

/* The structure ends in an array of one, so that its own size counts one element too many. */
static size_t list_bytes(size_t *count) {
    size_t n = 0, bytes = offsetof(SOCKET_ADDRESS_LIST, Address);

    for (struct provider *p = nd.first; p; p = p->next)
        for (size_t i = 0; i < p->addr_count; i++, n++)
            bytes += sizeof(SOCKET_ADDRESS) + ndutil_sockaddr_bytes(p->addrs[i].si_family);
    *count = n;
    return n ? bytes : 0;
}

static void fill_list(SOCKET_ADDRESS_LIST *list, size_t count) {
    SOCKET_ADDRESS *at = list->Address;
    char *sa = (char *)(at + count);

    list->iAddressCount = (INT)count;
    for (struct provider *p = nd.first; p; p = p->next)
        for (size_t i = 0; i < p->addr_count; i++, at++) {
            size_t cb = ndutil_sockaddr_bytes(p->addrs[i].si_family);
            memcpy(sa, &p->addrs[i], cb);
            at->lpSockaddr = (LPSOCKADDR)(void *)sa;
            at->iSockaddrLength = (INT)cb;
            sa += cb;
        }
}

HRESULT STDMETHODCALLTYPE NdQueryAddressList(DWORD flags, SOCKET_ADDRESS_LIST *pAddressList,
                                             SIZE_T *pcbAddressList) {
    HRESULT hr = enter();
    size_t count = 0, need;

    if (FAILED(hr)) return hr;
    if (!pcbAddressList) {
        ndutil_platform_unlock();
        return ND_INVALID_PARAMETER_3;
    }
    need = flags & ND_QUERY_EXCLUDE_NDv2_ADDRESSES ? 0 : list_bytes(&count);
    if (!need) {
        *pcbAddressList = 0;
    } else if (!pAddressList || *pcbAddressList < need) {
        *pcbAddressList = need;
        hr = ND_BUFFER_OVERFLOW;
    } else {
        fill_list(pAddressList, count);
    }
    ndutil_platform_unlock();
    return hr;
}

HRESULT STDMETHODCALLTYPE NdResolveAddress(const struct sockaddr *pRemoteAddress,
                                           SIZE_T cbRemoteAddress, struct sockaddr *pLocalAddress,
                                           SIZE_T *pcbLocalAddress) {
    HRESULT hr = enter();
    SOCKADDR_INET local;
    size_t cb = sizeof local;

    if (FAILED(hr)) return hr;
    hr = check_sockaddr(pRemoteAddress, cbRemoteAddress);
    if (hr == ND_SUCCESS && !pcbLocalAddress) hr = ND_INVALID_PARAMETER_4;
    if (hr == ND_SUCCESS)
        hr = ndutil_platform_route(pRemoteAddress, cbRemoteAddress, (struct sockaddr *)&local, &cb);
    if (hr == ND_SUCCESS) {
        if (!pLocalAddress || *pcbLocalAddress < cb)
            hr = ND_BUFFER_OVERFLOW;
        else if (!is_listed((struct sockaddr *)&local))
            hr = ND_INVALID_ADDRESS;
        else
            memcpy(pLocalAddress, &local, cb);
        if (hr != ND_INVALID_ADDRESS) *pcbLocalAddress = cb;
    }
    ndutil_platform_unlock();
    return hr;
}

HRESULT STDMETHODCALLTYPE NdCheckAddress(const struct sockaddr *pAddress, SIZE_T cbAddress) {
    HRESULT hr = enter();

    if (FAILED(hr)) return hr;
    hr = check_sockaddr(pAddress, cbAddress);
    if (hr == ND_SUCCESS && !is_listed(pAddress)) hr = ND_INVALID_ADDRESS;
    ndutil_platform_unlock();
    return hr;
}

HRESULT STDMETHODCALLTYPE NdOpenAdapter(REFIID iid, const struct sockaddr *pAddress,
                                        SIZE_T cbAddress, VOID **ppIAdapter) {
    HRESULT hr;

    if (!ppIAdapter) return E_POINTER;
    *ppIAdapter = NULL;
    hr = enter();
    if (FAILED(hr)) return hr;
    hr = check_sockaddr(pAddress, cbAddress);
    if (hr == ND_SUCCESS) {
        hr = ND_INVALID_ADDRESS;
        for (struct provider *p = nd.first; p; p = p->next) {
            if (!ndutil_provider_has(p, pAddress)) continue;
            hr = ndutil_provider_open(p, iid, pAddress, cbAddress, ppIAdapter);
            if (SUCCEEDED(hr)) break;
            *ppIAdapter = NULL;
        }
    }
    ndutil_platform_unlock();
    return hr;
}
