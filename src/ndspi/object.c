/* SPDX-License-Identifier: MIT
 * object.c - counts, identity and lifetime of COM objects. The IIDs of the SPI are defined here.
 */
#include <initguid.h>
#include "ndspi/object.h"
#include "ndspi/adapter.h"
#include "ndspi/overlapped.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"
#include "os/prim/thread.h"

/* Bit of `inside`: no one enters any more. */
#define INSIDE_CLOSED 0x80000000u

static os_atomic_u32 module_holds; /* [atomic] objects in memory, locks and waits */

void ndspi_module_hold(void) {
    os_u32_fetch_add_acq_rel(&module_holds, 1);
}

void ndspi_module_drop(void) {
    os_u32_fetch_sub_acq_rel(&module_holds, 1);
}

uint32_t ndspi_module_holds(void) {
    return os_u32_load_acquire(&module_holds);
}

void *ndspi_object_create(size_t size, const struct ndspi_class *cls, const void *vtbl,
                          struct ndspi_adapter *adapter) {
    struct ndspi_object *o = os_zalloc(size);
    if (!o) return NULL;
    o->vtbl = vtbl;
    o->cls = cls;
    o->adapter = adapter;
    if (adapter) ndspi_object_get(&adapter->obj);
    os_u32_store_relaxed(&o->visible, 1);
    os_ref_init(&o->refs);
    ndspi_module_hold();
    return o;
}

void ndspi_object_abandon(struct ndspi_object *o) {
    os_u32_store_relaxed(&o->visible, 0);
    ndspi_object_put(o);
}

void ndspi_object_get(struct ndspi_object *o) {
    os_ref_get(&o->refs);
}

void ndspi_object_put(struct ndspi_object *o) {
    if (!os_ref_put(&o->refs)) return;
    struct ndspi_adapter *adapter = o->adapter;
    if (o->cls->overlapped) ndspi_overlapped_fini((struct ndspi_overlapped *)o);
    o->vtbl = NULL; /* a stale pointer should not look like an object */
    os_free(o);
    if (adapter) ndspi_object_put(&adapter->obj);
    ndspi_module_drop();
}

HRESULT ndspi_object_query(struct ndspi_object *o, REFIID riid, void **ppv) {
    if (!ppv) return E_POINTER;
    *ppv = NULL;
    if (!ndspi_class_has(o->cls, riid)) return E_NOINTERFACE;
    ndspi_object_add_ref(o);
    *ppv = o;
    return S_OK;
}

ULONG ndspi_object_add_ref(struct ndspi_object *o) {
    return os_u32_fetch_add_relaxed(&o->visible, 1) + 1;
}

/* Lets no one enter any more and waits until those inside have left. They never wait for the
 * application, so this is short. */
static void shut(struct ndspi_object *o) {
    uint32_t now = os_u32_fetch_add_seqcst(&o->inside, INSIDE_CLOSED) + INSIDE_CLOSED;
    while (now != INSIDE_CLOSED) {
        os_wait_on(&o->inside, now, UINT64_MAX);
        now = os_u32_load_acquire(&o->inside);
    }
}

ULONG ndspi_object_release(struct ndspi_object *o) {
    uint32_t left = os_u32_fetch_sub_acq_rel(&o->visible, 1) - 1;
    if (left != 0) return left;
    shut(o);
    o->cls->close(o);
    ndspi_object_put(o);
    return 0;
}

bool ndspi_object_enter(struct ndspi_object *o) {
    ndspi_object_get(o);
    if (!(os_u32_fetch_add_seqcst(&o->inside, 1) & INSIDE_CLOSED)) return true;
    ndspi_object_leave(o);
    return false;
}

void ndspi_object_leave(struct ndspi_object *o) {
    if (os_u32_fetch_sub_seqcst(&o->inside, 1) & INSIDE_CLOSED) os_wake_all(&o->inside);
    ndspi_object_put(o);
}

bool ndspi_class_has(const struct ndspi_class *cls, REFIID iid) {
    if (!iid) return false;
    return IsEqualIID(iid, &IID_IUnknown) || IsEqualIID(iid, cls->iid) ||
           (cls->overlapped && IsEqualIID(iid, &IID_IND2Overlapped));
}

HRESULT ndspi_class_check(const struct ndspi_class *cls, REFIID iid, void **out) {
    if (!out) return E_POINTER;
    *out = NULL;
    return ndspi_class_has(cls, iid) ? ND_SUCCESS : E_NOINTERFACE;
}

struct ndspi_object *ndspi_object_of(const IUnknown *p, const void *vtbl,
                                     const struct ndspi_adapter *adapter) {
    const void *found = NULL;
    if (!p || !os_guarded_copy(&found, p, sizeof found) || found != vtbl) return NULL;
    struct ndspi_object *o = (struct ndspi_object *)p;
    if (os_u32_load_relaxed(&o->visible) == 0) return NULL;
    return !adapter || o->adapter == adapter ? o : NULL;
}
