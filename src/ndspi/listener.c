/* SPDX-License-Identifier: MIT
 * listener.c - IND2Listener.
 */
#include "ndspi/adapter.h"
#include "ndspi/addresses.h"
#include "ndspi/overlapped.h"
#include "ndspi/status.h"

struct ndspi_listener {
    struct ndspi_overlapped ov;
    struct rd_listener *rd; /* [const] */
};

static struct ndspi_listener *listener_of(void *object) {
    return object;
}

static void close_listener(struct ndspi_object *o) {
    rd_listener_destroy(listener_of(o)->rd);
}

static void cancel_listener(struct ndspi_object *o) {
    rd_listener_cancel(listener_of(o)->rd);
}

static const struct ndspi_class listener_class = {
    .name = "listener",
    .iid = &IID_IND2Listener,
    .overlapped = true,
    .close = close_listener,
    .cancel = cancel_listener,
};

NDSPI_IOVERLAPPED(IND2Listener)

static HRESULT STDMETHODCALLTYPE bind_address(IND2Listener *This, const struct sockaddr *sa,
                                              ULONG cb) {
    struct os_addr addr;
    HRESULT hr = ndspi_addr_read(sa, cb, 1, ND_INVALID_ADDRESS, &addr);
    if (hr != ND_SUCCESS) return hr;
    return ndspi_status(rd_listener_bind(listener_of(This)->rd, &addr));
}

static HRESULT STDMETHODCALLTYPE start_listening(IND2Listener *This, ULONG backlog) {
    return ndspi_status(rd_listener_listen(listener_of(This)->rd, backlog));
}

static HRESULT STDMETHODCALLTYPE get_local_address(IND2Listener *This, struct sockaddr *buf,
                                                   ULONG *pcb) {
    if (!pcb) return ndspi_bad_param(2);
    struct os_addr addr;
    sn_status st = rd_listener_local_addr(listener_of(This)->rd, &addr);
    return st == SN_OK ? ndspi_addr_answer(&addr, buf, pcb) : ndspi_status(st);
}

/* The connector may be released by the application while its request is pending. */
static sn_status start_get_request(struct ndspi_request *r) {
    struct ndspi_object *connector = r->object; /* r may be gone after the call */
    if (!ndspi_object_enter(connector)) return SN_E_CANCELED;
    sn_status st = rd_listener_get_request(listener_of(r->owner)->rd, ndspi_connector_rd(connector),
                                           &r->async);
    ndspi_object_leave(connector);
    return st;
}

static HRESULT STDMETHODCALLTYPE get_connection_request(IND2Listener *This, IUnknown *connector,
                                                        OVERLAPPED *ov) {
    struct ndspi_listener *l = listener_of(This);
    struct ndspi_object *c;
    if (!ndspi_connector_of(connector, l->ov.obj.adapter, &c)) return ndspi_bad_param(1);
    if (!ov) return ndspi_bad_param(2);
    struct ndspi_request *r;
    HRESULT hr = ndspi_request_begin(&l->ov, ov, &r);
    if (hr != ND_PENDING) return hr;
    r->start = start_get_request;
    r->object = c;
    ndspi_object_get(c);
    sn_status st = start_get_request(r);
    if (st == SN_E_PARAM) return ndspi_request_refuse(r, ndspi_bad_param(1));
    return ndspi_request_started(&l->ov, r, st);
}

static const IND2ListenerVtbl vtbl = {
    NDSPI_IOVERLAPPED_SLOTS,
    .Bind = bind_address,
    .Listen = start_listening,
    .GetLocalAddress = get_local_address,
    .GetConnectionRequest = get_connection_request,
};

HRESULT ndspi_listener_create(struct ndspi_adapter *ad, REFIID iid, HANDLE file, void **out) {
    HRESULT hr = ndspi_class_check(&listener_class, iid, out);
    if (hr != ND_SUCCESS) return hr;
    struct ndspi_listener *l =
        ndspi_overlapped_create(sizeof *l, &listener_class, &vtbl, ad, file, &hr);
    if (!l) return hr;
    sn_status st = rd_listener_create(ad->rd, &l->rd);
    if (st != SN_OK) {
        ndspi_object_abandon(&l->ov.obj);
        return ndspi_status(st);
    }
    *out = l;
    return ND_SUCCESS;
}
