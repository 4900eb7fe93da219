/* SPDX-License-Identifier: MIT
 * exports.c - the library's way in: DllGetClassObject, DllCanUnloadNow, the class factory, and
 * what softnd.h adds.
 */
#include <string.h>
#include "ndspi/adapter.h"
#include "ndspi/addresses.h"
#include "ndspi/status.h"

/* ---- class factory ---- */

static void close_factory(struct ndspi_object *o) {
    (void)o;
}

static const struct ndspi_class factory_class = {
    .name = "class factory",
    .iid = &IID_IClassFactory,
    .close = close_factory,
};

NDSPI_IUNKNOWN(IClassFactory)

static HRESULT STDMETHODCALLTYPE create_instance(IClassFactory *This, IUnknown *outer, REFIID iid,
                                                 void **out) {
    (void)This;
    if (!out) return E_POINTER;
    *out = NULL;
    if (outer) return CLASS_E_NOAGGREGATION;
    return ndspi_provider_create(iid, out);
}

static os_atomic_u32 server_locks; /* [atomic] LockServer(TRUE) without its FALSE yet */

static HRESULT STDMETHODCALLTYPE lock_server(IClassFactory *This, BOOL lock) {
    (void)This;
    if (lock) {
        os_u32_fetch_add_acq_rel(&server_locks, 1);
        return S_OK;
    }
    uint32_t n = os_u32_load_relaxed(&server_locks);
    while (n > 0 && !os_u32_cas_acq_rel(&server_locks, &n, n - 1)) {
    }
    return n > 0 ? S_OK : E_UNEXPECTED;
}

static const IClassFactoryVtbl factory_vtbl = {
    NDSPI_IUNKNOWN_SLOTS,
    .CreateInstance = create_instance,
    .LockServer = lock_server,
};

/* ---- entry points ---- */

STDAPI DllGetClassObject(REFCLSID rclsid, REFIID riid, LPVOID *ppv) {
    if (!ppv) return E_POINTER;
    *ppv = NULL;
    if (!rclsid || !IsEqualGUID(rclsid, &CLSID_SoftNdProvider)) return CLASS_E_CLASSNOTAVAILABLE;
    if (!riid || !IsEqualIID(riid, &IID_IClassFactory)) return ndspi_provider_create(riid, ppv);
    *ppv = ndspi_object_create(sizeof(struct ndspi_object), &factory_class, &factory_vtbl, NULL);
    return *ppv ? S_OK : E_OUTOFMEMORY;
}

STDAPI DllCanUnloadNow(void) {
    bool idle = ndspi_module_holds() == 0 && os_u32_load_acquire(&server_locks) == 0;
    return idle && rd_live_adapters() == 0 ? S_OK : S_FALSE;
}

STDAPI_(const char *) SoftNdVersion(void) {
    return SOFTND_VERSION;
}

STDAPI SoftNdQueryTransport(IUnknown *queuePair, char *buffer, ULONG *pcbBuffer) {
    struct rd_qp *qp = ndspi_qp_of(queuePair, NULL);
    if (!qp) return ndspi_bad_param(1);
    if (!pcbBuffer) return ndspi_bad_param(3);
    const char *name = rd_qp_transport(qp);
    return ndspi_answer(name, (ULONG)strlen(name) + 1, buffer, pcbBuffer);
}
