/* SPDX-License-Identifier: MIT
 * provider.h - one NetworkDirect provider of the catalog: its library and its address list.
 * Owns:    the library handle, from load to unload; the copied addresses.
 * Threads: all under the platform lock.
 * Errors:  HRESULTs of the helper API.
 */
#ifndef NDUTIL_PROVIDER_H
#define NDUTIL_PROVIDER_H

#include <stdbool.h>
#include "ndsupport.h"

/* Longest library path, in units with the terminator: what a Win32 caller of the catalog uses. */
#define PROVIDER_PATH_MAX 260

struct provider {
    struct provider *next;
    GUID id;
    WCHAR path[PROVIDER_PATH_MAX]; /* expanded */
    bool active;                   /* in the catalog */
    HMODULE module;                /* NULL while not loaded */
    HRESULT(STDMETHODCALLTYPE *get_class_object)(REFCLSID, REFIID, LPVOID *);
    HRESULT(STDMETHODCALLTYPE *can_unload)(void);
    SOCKADDR_INET *addrs;
    size_t addr_count;
};

/* Asks the library for its addresses, anew; on failure there are none.
 * ND_SUCCESS; ND_DEVICE_NOT_READY (cannot be loaded, or lacks what a provider exports);
 * ND_NO_MEMORY; or the provider's own code. */
HRESULT ndutil_provider_refresh(struct provider *p);

/* Whether the provider listed this address; the port is not compared. */
bool ndutil_provider_has(const struct provider *p, const struct sockaddr *sa);

/* Opens the adapter with this address. ND_INVALID_ADDRESS (no library, or the provider does not
 * resolve the address); or what OpenAdapter says. */
HRESULT ndutil_provider_open(struct provider *p, REFIID iid, const struct sockaddr *sa, size_t cb,
                             void **out);

/* Unloads the library if it says that it is not in use. True if it is not loaded afterwards. */
bool ndutil_provider_unload(struct provider *p);

/* Bytes of a sockaddr of this family; 0 for a family that NetworkDirect does not have. */
size_t ndutil_sockaddr_bytes(int family);

#endif
