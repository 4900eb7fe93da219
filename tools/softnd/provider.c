/* SPDX-License-Identifier: MIT
 * provider.c - see provider.h.
 */
#include "provider.h"

#include <stdlib.h>
#include <string.h>

typedef HRESULT(STDMETHODCALLTYPE *class_object_fn)(REFCLSID, REFIID, LPVOID *);

const char *nd_load(struct provider *p, const WCHAR *path, const GUID *guid) {
    class_object_fn get = NULL;
    FARPROC f;

    *p = (struct provider){ 0 };
    p->module = LoadLibraryW(path);
    if (!p->module) return "is not a library that can be loaded here";
    f = GetProcAddress(p->module, "DllGetClassObject");
    p->can_unload = GetProcAddress(p->module, "DllCanUnloadNow");
    memcpy(&get, &f, sizeof get);
    if (!f || !p->can_unload) return "is not a NetworkDirect provider";
    if (FAILED(get(guid, &IID_IND2Provider, (LPVOID *)&p->nd)) || !p->nd)
        return "is not the provider with this GUID";
    return NULL;
}

void nd_unload(struct provider *p) {
    if (p->nd) IND2Provider_Release(p->nd);
    if (p->module) FreeLibrary(p->module);
    *p = (struct provider){ 0 };
}

bool nd_transports(const struct provider *p, IND2Adapter *adapter, char *out, ULONG room) {
    typedef HRESULT(STDMETHODCALLTYPE * query_fn)(IUnknown *, char *, ULONG *);
    FARPROC f = GetProcAddress(p->module, "SoftNdQueryTransport");
    query_fn query = NULL;

    memcpy(&query, &f, sizeof query);
    return query && query((IUnknown *)adapter, out, &room) == ND_SUCCESS;
}

SOCKET_ADDRESS_LIST *nd_addresses(IND2Provider *nd) {
    SOCKET_ADDRESS_LIST *list = NULL;
    ULONG cb = 0;
    HRESULT hr;

    while ((hr = IND2Provider_QueryAddressList(nd, list, &cb)) == ND_BUFFER_OVERFLOW) {
        free(list);
        list = calloc(1, cb ? cb : sizeof *list);
        if (!list) return NULL;
    }
    if (SUCCEEDED(hr)) return list;
    free(list);
    return NULL;
}
