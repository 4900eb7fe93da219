/* SPDX-License-Identifier: MIT
 * fake_provider.c - see fake_provider.h. Compiled once per library, with FAKE_INDEX.
 */
#include <initguid.h>

#include "support/fake_provider.h"

#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
static struct fake_control *control(void) {
    return (struct fake_control *)(void *)GetProcAddress(GetModuleHandleW(NULL), "fake_controls") +
           FAKE_INDEX;
}
#define CONTROL control()
#else
#define CONTROL (&fake_controls[FAKE_INDEX])
#endif

struct object {
    IND2Provider provider; /* first: the interface pointer */
    ULONG refs;
};

__attribute__((constructor)) static void count_load(void) {
    CONTROL->loads++;
}
__attribute__((destructor)) static void count_unload(void) {
    CONTROL->unloads++;
}

static ULONG STDMETHODCALLTYPE add_ref(IND2Provider *This) {
    return ++((struct object *)This)->refs;
}

static ULONG STDMETHODCALLTYPE release(IND2Provider *This) {
    struct object *o = (struct object *)This;
    ULONG left = --o->refs;

    if (!left) {
        CONTROL->live--;
        free(o);
    }
    return left;
}

static HRESULT STDMETHODCALLTYPE query_interface(IND2Provider *This, REFIID riid, LPVOID *out) {
    *out = NULL;
    if (!IsEqualIID(riid, &IID_IUnknown)) return E_NOINTERFACE;
    *out = This;
    add_ref(This);
    return S_OK;
}

static HRESULT STDMETHODCALLTYPE query_list(IND2Provider *This, SOCKET_ADDRESS_LIST *list,
                                            ULONG *bytes) {
    struct fake_control *c = CONTROL;
    size_t need = offsetof(SOCKET_ADDRESS_LIST, Address) +
                  (size_t)c->addr_count * (sizeof(SOCKET_ADDRESS) + sizeof(SOCKADDR_INET));
    SOCKADDR_INET *sa;

    c->queries++;
    if (c->query_status != S_OK) return c->query_status;
    if (!list && c->null_query_succeeds) return ND_SUCCESS;
    if (need < sizeof *list) need = sizeof *list;
    if (list && c->grows && *bytes >= need) {
        c->grows--;
        *bytes = (ULONG)(*bytes + sizeof(SOCKET_ADDRESS));
        return ND_BUFFER_OVERFLOW;
    }
    if (!list || *bytes < need) {
        *bytes = c->asks_for_nothing ? 0 : (ULONG)need;
        return ND_BUFFER_OVERFLOW;
    }
    list->iAddressCount = c->addr_count;
    sa = (SOCKADDR_INET *)(void *)&list->Address[c->addr_count];
    for (int i = 0; i < c->addr_count; i++) {
        sa[i] = c->addrs[i];
        list->Address[i].lpSockaddr = c->addr_bytes[i] ? (LPSOCKADDR)&sa[i] : NULL;
        list->Address[i].iSockaddrLength = c->addr_bytes[i] ? c->addr_bytes[i] : 16;
    }
    if (c->counts_too_many) list->iAddressCount = c->counts_too_many;
    *bytes = (ULONG)need;
    return ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE resolve(IND2Provider *This, const struct sockaddr *address,
                                         ULONG bytes, UINT64 *id) {
    struct fake_control *c = CONTROL;

    c->resolves++;
    c->resolved_bytes = bytes;
    memcpy(&c->resolved, address, bytes < sizeof c->resolved ? bytes : sizeof c->resolved);
    if (c->resolve_status != S_OK) return c->resolve_status;
    *id = 100 + FAKE_INDEX;
    return ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE open_adapter(IND2Provider *This, REFIID iid, UINT64 id,
                                              LPVOID *out);

static const IND2ProviderVtbl methods = { query_interface, add_ref, release,
                                          query_list,      resolve, open_adapter };

static struct object *make_object(void) {
    struct object *o = calloc(1, sizeof *o);

    if (!o) return NULL;
    o->provider.lpVtbl = &methods;
    o->refs = 1;
    CONTROL->live++;
    return o;
}

static HRESULT STDMETHODCALLTYPE open_adapter(IND2Provider *This, REFIID iid, UINT64 id,
                                              LPVOID *out) {
    struct fake_control *c = CONTROL;

    c->opens++;
    c->opened_iid = *iid;
    *out = NULL;
    if (c->open_status != S_OK) return c->open_status;
    if (id != 100 + FAKE_INDEX) return ND_INVALID_PARAMETER;
    *out = make_object();
    return *out ? ND_SUCCESS : ND_NO_MEMORY;
}

#ifndef FAKE_WITHOUT_CLASS_OBJECT
STDAPI DllGetClassObject(REFCLSID rclsid, REFIID riid, LPVOID *out);
STDAPI DllGetClassObject(REFCLSID rclsid, REFIID riid, LPVOID *out) {
    struct fake_control *c = CONTROL;

    c->objects++;
    *out = NULL;
    if (!IsEqualGUID(rclsid, &c->id)) return CLASS_E_CLASSNOTAVAILABLE;
    if (!IsEqualIID(riid, &IID_IND2Provider)) return E_NOINTERFACE;
    if (c->object_status != S_OK) return c->object_status;
    *out = make_object();
    return *out ? S_OK : E_OUTOFMEMORY;
}
#endif

STDAPI DllCanUnloadNow(void);
STDAPI DllCanUnloadNow(void) {
    struct fake_control *c = CONTROL;

    c->unload_questions++;
    return c->in_use || c->live ? S_FALSE : S_OK;
}
