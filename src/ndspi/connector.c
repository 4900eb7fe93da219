/* SPDX-License-Identifier: MIT
 * connector.c - IND2Connector.
 */
#include "ndspi/adapter.h"
#include "ndspi/addresses.h"
#include "ndspi/overlapped.h"
#include "ndspi/status.h"
#include "os/prim/pages.h"

struct ndspi_connector {
    struct ndspi_overlapped ov;
    struct rd_connector *rd; /* [const] */
};

static struct ndspi_connector *connector_of(void *object) {
    return object;
}

static void close_connector(struct ndspi_object *o) {
    rd_connector_destroy(connector_of(o)->rd);
}

static void cancel_connector(struct ndspi_object *o) {
    rd_connector_cancel(connector_of(o)->rd);
}

static const struct ndspi_class connector_class = {
    .name = "connector",
    .iid = &IID_IND2Connector,
    .overlapped = true,
    .close = close_connector,
    .cancel = cancel_connector,
};

NDSPI_IOVERLAPPED(IND2Connector)

/* Copies the caller's private data, so that bad memory is a status and not a crash. */
static HRESULT copy_private_data(uint8_t out[TP_PRIVATE_DATA_MAX], const void *pd, ULONG cb,
                                 uint32_t limit) {
    if (cb > limit || cb > TP_PRIVATE_DATA_MAX) return ND_INVALID_BUFFER_SIZE;
    if (cb == 0) return ND_SUCCESS;
    if (!pd || !os_guarded_copy(out, pd, cb)) return ND_ACCESS_VIOLATION;
    return ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE bind_address(IND2Connector *This, const struct sockaddr *sa,
                                              ULONG cb) {
    struct os_addr addr;
    HRESULT hr = ndspi_addr_read(sa, cb, 1, ND_INVALID_ADDRESS, &addr);
    if (hr != ND_SUCCESS) return hr;
    return ndspi_status(rd_connector_bind(connector_of(This)->rd, &addr));
}

static HRESULT STDMETHODCALLTYPE connect_to(IND2Connector *This, IUnknown *queue_pair,
                                            const struct sockaddr *sa, ULONG cb, ULONG inbound,
                                            ULONG outbound, const VOID *pd, ULONG cb_pd,
                                            OVERLAPPED *ov) {
    struct ndspi_connector *c = connector_of(This);
    struct rd_qp *qp = ndspi_qp_of(queue_pair, c->ov.obj.adapter);
    if (!qp) return ndspi_bad_param(1);
    struct os_addr peer;
    HRESULT hr = ndspi_addr_read(sa, cb, 2, SOFTND_BAD_NETWORK_NAME, &peer);
    if (hr != ND_SUCCESS && hr != SOFTND_BAD_NETWORK_NAME) return hr;
    if (!ov) return ndspi_bad_param(8);
    uint8_t data[TP_PRIVATE_DATA_MAX];
    HRESULT hr_pd = copy_private_data(data, pd, cb_pd, rd_limits_get()->max_caller_data_bytes);
    if (hr_pd != ND_SUCCESS) return hr_pd;

    struct ndspi_request *r;
    HRESULT hr_begin = ndspi_request_begin(&c->ov, ov, &r);
    if (hr_begin != ND_PENDING) return hr_begin;
    if (hr != ND_SUCCESS) return ndspi_request_finish(r, hr);
    sn_status st =
        rd_connector_connect(c->rd, qp, &peer, inbound, outbound, data, cb_pd, &r->async);
    if (st == SN_E_PARAM) return ndspi_request_refuse(r, ndspi_bad_param(1));
    if (st == SN_E_NET_NAME) return ndspi_request_finish(r, SOFTND_BAD_NETWORK_NAME);
    return ndspi_request_started(&c->ov, r, st);
}

static HRESULT STDMETHODCALLTYPE complete_connect(IND2Connector *This, OVERLAPPED *ov) {
    struct ndspi_connector *c = connector_of(This);
    if (!ov) return ndspi_bad_param(1);
    struct ndspi_request *r;
    HRESULT hr = ndspi_request_begin(&c->ov, ov, &r);
    if (hr != ND_PENDING) return hr;
    return ndspi_request_started(&c->ov, r, rd_connector_complete(c->rd, &r->async));
}

static HRESULT STDMETHODCALLTYPE accept_request(IND2Connector *This, IUnknown *queue_pair,
                                                ULONG inbound, ULONG outbound, const VOID *pd,
                                                ULONG cb_pd, OVERLAPPED *ov) {
    struct ndspi_connector *c = connector_of(This);
    struct rd_qp *qp = ndspi_qp_of(queue_pair, c->ov.obj.adapter);
    if (!qp) return ndspi_bad_param(1);
    if (!ov) return ndspi_bad_param(6);
    uint8_t data[TP_PRIVATE_DATA_MAX];
    HRESULT hr = copy_private_data(data, pd, cb_pd, rd_limits_get()->max_callee_data_bytes);
    if (hr != ND_SUCCESS) return hr;
    struct ndspi_request *r;
    hr = ndspi_request_begin(&c->ov, ov, &r);
    if (hr != ND_PENDING) return hr;
    sn_status st = rd_connector_accept(c->rd, qp, inbound, outbound, data, cb_pd, &r->async);
    if (st == SN_E_PARAM) return ndspi_request_refuse(r, ndspi_bad_param(1));
    return ndspi_request_started(&c->ov, r, st);
}

static HRESULT STDMETHODCALLTYPE reject(IND2Connector *This, const VOID *pd, ULONG cb_pd) {
    uint8_t data[TP_PRIVATE_DATA_MAX];
    HRESULT hr = copy_private_data(data, pd, cb_pd, rd_limits_get()->max_callee_data_bytes);
    if (hr != ND_SUCCESS) return hr;
    return ndspi_status(rd_connector_reject(connector_of(This)->rd, data, cb_pd));
}

static HRESULT STDMETHODCALLTYPE get_read_limits(IND2Connector *This, ULONG *inbound,
                                                 ULONG *outbound) {
    uint32_t in = 0, out = 0;
    sn_status st = rd_connector_read_limits(connector_of(This)->rd, &in, &out);
    if (st != SN_OK) return ndspi_status(st);
    if (inbound) *inbound = in;
    if (outbound) *outbound = out;
    return ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE get_private_data(IND2Connector *This, VOID *buf, ULONG *pcb) {
    if (!pcb) return ndspi_bad_param(2);
    uint8_t data[TP_PRIVATE_DATA_MAX];
    uint32_t len = sizeof data;
    sn_status st = rd_connector_private_data(connector_of(This)->rd, data, &len);
    if (st != SN_OK) return ndspi_status(st);
    ULONG room = buf ? *pcb : 0;
    ULONG part = SN_MIN(room, len);
    *pcb = len;
    if (part > 0 && !os_guarded_copy(buf, data, part)) return ND_ACCESS_VIOLATION;
    return part < len ? ND_BUFFER_OVERFLOW : ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE get_local_address(IND2Connector *This, struct sockaddr *buf,
                                                   ULONG *pcb) {
    if (!pcb) return ndspi_bad_param(2);
    struct os_addr addr;
    sn_status st = rd_connector_local_addr(connector_of(This)->rd, &addr);
    return st == SN_OK ? ndspi_addr_answer(&addr, buf, pcb) : ndspi_status(st);
}

static HRESULT STDMETHODCALLTYPE get_peer_address(IND2Connector *This, struct sockaddr *buf,
                                                  ULONG *pcb) {
    if (!pcb) return ndspi_bad_param(2);
    struct os_addr addr;
    sn_status st = rd_connector_peer_addr(connector_of(This)->rd, &addr);
    return st == SN_OK ? ndspi_addr_answer(&addr, buf, pcb) : ndspi_status(st);
}

static sn_status start_notify_disconnect(struct ndspi_request *r) {
    return rd_connector_notify_disconnect(connector_of(r->owner)->rd, &r->async);
}

static sn_status start_disconnect(struct ndspi_request *r) {
    return rd_connector_disconnect(connector_of(r->owner)->rd, &r->async);
}

/* The two that may wait beside each other, so that one may be cancelled without the other. */
static HRESULT begin_ending(IND2Connector *This, OVERLAPPED *ov,
                            sn_status (*start)(struct ndspi_request *r)) {
    struct ndspi_connector *c = connector_of(This);
    if (!ov) return ndspi_bad_param(1);
    struct ndspi_request *r;
    HRESULT hr = ndspi_request_begin(&c->ov, ov, &r);
    if (hr != ND_PENDING) return hr;
    r->start = start;
    return ndspi_request_started(&c->ov, r, start(r));
}

static HRESULT STDMETHODCALLTYPE notify_disconnect(IND2Connector *This, OVERLAPPED *ov) {
    return begin_ending(This, ov, start_notify_disconnect);
}

static HRESULT STDMETHODCALLTYPE disconnect(IND2Connector *This, OVERLAPPED *ov) {
    return begin_ending(This, ov, start_disconnect);
}

static const IND2ConnectorVtbl vtbl = {
    NDSPI_IOVERLAPPED_SLOTS,
    .Bind = bind_address,
    .Connect = connect_to,
    .CompleteConnect = complete_connect,
    .Accept = accept_request,
    .Reject = reject,
    .GetReadLimits = get_read_limits,
    .GetPrivateData = get_private_data,
    .GetLocalAddress = get_local_address,
    .GetPeerAddress = get_peer_address,
    .NotifyDisconnect = notify_disconnect,
    .Disconnect = disconnect,
};

HRESULT ndspi_connector_create(struct ndspi_adapter *ad, REFIID iid, HANDLE file, void **out) {
    HRESULT hr = ndspi_class_check(&connector_class, iid, out);
    if (hr != ND_SUCCESS) return hr;
    struct ndspi_connector *c =
        ndspi_overlapped_create(sizeof *c, &connector_class, &vtbl, ad, file, &hr);
    if (!c) return hr;
    sn_status st = rd_connector_create(ad->rd, &c->rd);
    if (st != SN_OK) {
        ndspi_object_abandon(&c->ov.obj);
        return ndspi_status(st);
    }
    *out = c;
    return ND_SUCCESS;
}

struct rd_connector *ndspi_connector_of(const IUnknown *p, const struct ndspi_adapter *ad,
                                        struct ndspi_object **obj) {
    *obj = ndspi_object_of(p, &vtbl, ad);
    return *obj ? connector_of(*obj)->rd : NULL;
}

struct rd_connector *ndspi_connector_rd(struct ndspi_object *obj) {
    return connector_of(obj)->rd;
}
