/* SPDX-License-Identifier: MIT
 * object.h - what all COM objects of the provider have in common.
 * Owns:    the count that the application sees, the internal references behind it, the count of
 *          objects alive (for DllCanUnloadNow), and the recognition of our own objects.
 * Threads: any, unless said.
 * Errors:  a pointer that is not an object of the wanted class and adapter gives NULL.
 *
 * Two counts. `visible` is what AddRef and Release return: references of the application only.
 * When it reaches 0 the object is closed: its part of the core is destroyed, which completes what
 * is pending. The memory stays until the last internal reference is gone: one stands for
 * visible > 0, others belong to pending requests, to children and to threads inside a method.
 */
#ifndef SN_NDSPI_OBJECT_H
#define SN_NDSPI_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/base.h"
#include "os/prim/atomic.h"
#include "softnd.h"

struct ndspi_adapter;
struct ndspi_object;

struct ndspi_class {
    const char *name;
    const IID *iid;
    bool overlapped; /* the object is a struct ndspi_overlapped and answers IID_IND2Overlapped */
    /* The last visible reference is gone and no thread is inside. Called once, no lock held. */
    void (*close)(struct ndspi_object *o);
    /* Completes all that is pending in the core with SN_E_CANCELED before it returns. NULL: nothing
     * is ever pending there. Only of overlapped classes. */
    void (*cancel)(struct ndspi_object *o);
};

struct ndspi_object {
    const void *vtbl; /* [const until freed] first: the interface pointer is the object */
    const struct ndspi_class *cls; /* [const] */
    struct ndspi_adapter *adapter; /* [const] counted internally; NULL above the adapter */
    os_atomic_u32 visible;         /* [atomic] the application's references */
    os_atomic_u32 inside;          /* [atomic: enter/leave pair with release] */
    struct os_ref refs;            /* [atomic] internal */
};

/* Zeroed memory of `size` bytes that starts with a struct ndspi_object, with one visible
 * reference; adapter (may be NULL) gets an internal one. NULL: no memory. */
void *ndspi_object_create(size_t size, const struct ndspi_class *cls, const void *vtbl,
                          struct ndspi_adapter *adapter);
/* Undoes create when the rest of the creation failed: close is not called. */
void ndspi_object_abandon(struct ndspi_object *o);

/* The three methods of IUnknown. */
HRESULT ndspi_object_query(struct ndspi_object *o, REFIID riid, void **ppv);
ULONG ndspi_object_add_ref(struct ndspi_object *o);
ULONG ndspi_object_release(struct ndspi_object *o);

/* Internal references. */
void ndspi_object_get(struct ndspi_object *o);
void ndspi_object_put(struct ndspi_object *o);

/* Brackets work that must not overlap with close: release waits for those inside, so nothing that
 * waits for the application may happen in between. False: closed already, do not leave. */
SN_MUST_CHECK bool ndspi_object_enter(struct ndspi_object *o);
void ndspi_object_leave(struct ndspi_object *o);

/* Whether a Create* method may answer this iid with this class. */
bool ndspi_class_has(const struct ndspi_class *cls, REFIID iid);
/* The checks that every Create* starts with: E_POINTER, E_NOINTERFACE (*out is NULL), ND_SUCCESS
 * (*out is NULL too). */
HRESULT ndspi_class_check(const struct ndspi_class *cls, REFIID iid, void **out);

/* Our object behind a pointer that an application gave as IUnknown*: it must have this table of
 * methods and belong to this adapter (NULL: to any). Nothing of the object is called, and a
 * pointer into nowhere is harmless. Borrowed: valid as long as the application's reference. */
struct ndspi_object *ndspi_object_of(const IUnknown *p, const void *vtbl,
                                     const struct ndspi_adapter *adapter);

/* What keeps the module in memory besides objects: factory locks, threads in a wait. */
void ndspi_module_hold(void);
void ndspi_module_drop(void);
uint32_t ndspi_module_holds(void);

/* The methods of IUnknown, typed for one interface, and their places in its table. */
#define NDSPI_IUNKNOWN(iface)                                                                      \
    static HRESULT STDMETHODCALLTYPE query_interface(iface *This, REFIID riid, LPVOID *ppv) {      \
        return ndspi_object_query((struct ndspi_object *)This, riid, ppv);                         \
    }                                                                                              \
    static ULONG STDMETHODCALLTYPE add_ref(iface *This) {                                          \
        return ndspi_object_add_ref((struct ndspi_object *)This);                                  \
    }                                                                                              \
    static ULONG STDMETHODCALLTYPE release(iface *This) {                                          \
        return ndspi_object_release((struct ndspi_object *)This);                                  \
    }
#define NDSPI_IUNKNOWN_SLOTS                                                                       \
    .QueryInterface = query_interface, .AddRef = add_ref, .Release = release

#endif
