/* SPDX-License-Identifier: MIT
 * memory_window.c - IND2MemoryWindow.
 */
#include "ndspi/adapter.h"
#include "ndspi/status.h"

struct ndspi_window {
    struct ndspi_object obj;
    struct rd_window *rd; /* [const] */
};

static struct ndspi_window *window_of(void *object) {
    return object;
}

static void close_window(struct ndspi_object *o) {
    rd_window_destroy(window_of(o)->rd);
}

static const struct ndspi_class window_class = {
    .name = "memory window",
    .iid = &IID_IND2MemoryWindow,
    .close = close_window,
};

NDSPI_IUNKNOWN(IND2MemoryWindow)

static UINT32 STDMETHODCALLTYPE get_remote_token(IND2MemoryWindow *This) {
    return rd_window_token(window_of(This)->rd);
}

static const IND2MemoryWindowVtbl vtbl = {
    NDSPI_IUNKNOWN_SLOTS,
    .GetRemoteToken = get_remote_token,
};

HRESULT ndspi_window_create(struct ndspi_adapter *ad, REFIID iid, void **out) {
    HRESULT hr = ndspi_class_check(&window_class, iid, out);
    if (hr != ND_SUCCESS) return hr;
    struct ndspi_window *window = ndspi_object_create(sizeof *window, &window_class, &vtbl, ad);
    if (!window) return ND_INSUFFICIENT_RESOURCES;
    sn_status st = rd_window_create(ad->rd, &window->rd);
    if (st != SN_OK) {
        ndspi_object_abandon(&window->obj);
        return st == SN_E_NOMEM ? ND_INSUFFICIENT_RESOURCES : ndspi_status(st);
    }
    *out = window;
    return ND_SUCCESS;
}

struct rd_window *ndspi_window_of(const IUnknown *p, const struct ndspi_adapter *ad) {
    struct ndspi_object *o = ndspi_object_of(p, &vtbl, ad);
    return o ? window_of(o)->rd : NULL;
}
