/* SPDX-License-Identifier: MIT
 * exports.c - the library's way in: DllGetClassObject, DllCanUnloadNow, the class factory, and
 * what softnd.h adds.
 */
#include <stdio.h>
#include <string.h>
#include "ndspi/adapter.h"
#include "ndspi/addresses.h"
#include "ndspi/status.h"
#include "rdma/counters.h"

/* More than any line of SoftNdQueryCounters takes. */
#define COUNTER_LINE_BYTES 160

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

STDAPI SoftNdQueryTransport(IUnknown *object, char *buffer, ULONG *pcbBuffer) {
    struct rd_qp *qp = ndspi_qp_of(object, NULL);
    if (!qp && !ndspi_adapter_of(object)) return ndspi_bad_param(1);
    if (!pcbBuffer) return ndspi_bad_param(3);
    const char *name = qp ? rd_qp_transport(qp) : rd_transports_text();
    return ndspi_answer(name, (ULONG)strlen(name) + 1, buffer, pcbBuffer);
}

/* How many; 0 if the object counts nothing. */
static uint32_t counters_of(const IUnknown *object, struct rd_counter out[RD_COUNTERS_MAX]) {
    const struct rd_adapter *ad = ndspi_adapter_of(object);
    const struct rd_qp *qp = ndspi_qp_of(object, NULL);
    const struct rd_cq *cq = ndspi_cq_of(object, NULL);
    if (ad) return rd_adapter_counters_get(ad, out);
    if (qp) return rd_qp_counters_get(qp, out);
    return cq ? rd_cq_counters_get(cq, out) : 0;
}

STDAPI SoftNdQueryCounters(IUnknown *object, char *buffer, ULONG *pcbBuffer) {
    struct rd_counter c[RD_COUNTERS_MAX];
    char text[RD_COUNTERS_MAX * COUNTER_LINE_BYTES];
    size_t len = 0;
    uint32_t n = counters_of(object, c);
    if (!n) return ndspi_bad_param(1);
    if (!pcbBuffer) return ndspi_bad_param(3);
    for (uint32_t i = 0; i < n; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s %llu %s %s\n", c[i].name,
                                (unsigned long long)c[i].value, c[i].unit, c[i].help);
    SN_ASSERT(len < sizeof text);
    return ndspi_answer(text, (ULONG)len + 1, buffer, pcbBuffer);
}
