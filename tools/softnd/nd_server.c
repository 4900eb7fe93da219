/* SPDX-License-Identifier: MIT
 * nd_server.c - see nd_server.h. Each address has its own listener: a wildcard would cover the
 * addresses of one adapter only, and the addresses are known anyway.
 */
#include <initguid.h>

#include "nd_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ndsupport.h"
#include "softnd.h"
#include "sys.h"
#include "text.h"

#define LISTEN_BACKLOG 64
/* With port 0 the first address picks the port, and another address may have it in use. */
#define PORT_ROUNDS_MAX 16
#define STOP_CHECK_MS 100

void nds_op_begin(struct nds_op *op) {
    op->ov = (OVERLAPPED){ 0 };
}

/* ---- requests ---- */

static HRESULT ask_for_request(struct nds_listener *l) {
    HRESULT hr = IND2Adapter_CreateConnector(l->ad->adapter, &IID_IND2Connector, l->ad->file,
                                             (void **)&l->next);

    if (FAILED(hr)) return hr;
    nds_op_begin(&l->op);
    hr = IND2Listener_GetConnectionRequest(l->listener, (IUnknown *)l->next, &l->op.ov);
    if (SUCCEEDED(hr)) return ND_SUCCESS;
    IND2Connector_Release(l->next);
    l->next = NULL;
    return hr;
}

static void on_request_done(struct nds_op *op) {
    struct nds_listener *l = op->owner;
    IND2Connector *connector = l->next;
    HRESULT hr;

    if (!l->listener) return; /* closed meanwhile */
    l->next = NULL;
    hr = IND2Listener_GetOverlappedResult(l->listener, &op->ov, FALSE);
    if (SUCCEEDED(hr))
        l->server->on_request(l->server->owner, l->ad, connector);
    else
        IND2Connector_Release(connector);
    /* The callee may have stopped the listening. */
    if (l->listener && hr != ND_CANCELED) hr = ask_for_request(l);
    if (FAILED(hr) && hr != ND_CANCELED) l->server->failed = hr;
}

/* ---- opening ---- */

static struct ndc_adapter *adapter_for(struct nds_server *s, const struct sockaddr *local,
                                       HRESULT *hr) {
    struct ndc_adapter *ad = &s->adapters[s->adapter_count];

    *hr = ndc_adapter_open(ad, local);
    if (FAILED(*hr)) return NULL;
    for (size_t i = 0; i < s->adapter_count; i++)
        if (s->adapters[i].info.AdapterId == ad->info.AdapterId &&
            s->adapters[i].info.VendorId == ad->info.VendorId) {
            ndc_adapter_close(ad);
            return &s->adapters[i];
        }
    if (!CreateIoCompletionPort(ad->file, s->port, 0, 0)) {
        ndc_adapter_close(ad);
        *hr = ND_INSUFFICIENT_RESOURCES;
        return NULL;
    }
    s->adapter_count++;
    return ad;
}

static HRESULT add_listener(struct nds_server *s, const struct sockaddr *sa, uint16_t port) {
    struct nds_listener *l = &s->listeners[s->listener_count];
    struct sockaddr *local = (struct sockaddr *)&l->local;
    ULONG cb = sizeof l->local;
    HRESULT hr;

    *l = (struct nds_listener){ .server = s, .op = { .on_done = on_request_done, .owner = l } };
    memcpy(&l->local, sa, ndc_sockaddr_bytes(sa));
    ndc_set_port(local, port);
    l->ad = adapter_for(s, local, &hr);
    if (!l->ad) return hr;
    hr = IND2Adapter_CreateListener(l->ad->adapter, &IID_IND2Listener, l->ad->file,
                                    (void **)&l->listener);
    if (FAILED(hr)) return hr;
    hr = IND2Listener_Bind(l->listener, local, (ULONG)ndc_sockaddr_bytes(local));
    if (SUCCEEDED(hr)) hr = IND2Listener_Listen(l->listener, LISTEN_BACKLOG);
    if (SUCCEEDED(hr)) hr = IND2Listener_GetLocalAddress(l->listener, local, &cb);
    if (SUCCEEDED(hr)) hr = ask_for_request(l);
    if (FAILED(hr)) {
        IND2Listener_Release(l->listener);
        l->listener = NULL;
        return hr;
    }
    s->listener_count++;
    return ND_SUCCESS;
}

static void describe(const struct sockaddr *sa, uint16_t port, char where[80]) {
    SOCKADDR_INET copy = { 0 };

    memcpy(&copy, sa, ndc_sockaddr_bytes(sa));
    ndc_set_port((struct sockaddr *)&copy, port);
    text_from_sockaddr((struct sockaddr *)&copy, where);
}

/* Listens on each of count addresses. An address of the machine's own list that is no longer
 * usable is passed over; a port in use is not. */
static HRESULT listen_all(struct nds_server *s, const SOCKET_ADDRESS *addrs, size_t count,
                          bool may_skip, uint16_t port, char where[80]) {
    size_t first = s->listener_count; /* those before are of earlier rounds, and closed */
    HRESULT hr = ND_INVALID_ADDRESS;

    for (size_t i = 0; i < count && s->listener_count < NDS_LISTENERS_MAX; i++) {
        uint16_t use = port;
        if (!use && s->listener_count > first)
            use = ndc_get_port((struct sockaddr *)&s->listeners[first].local);
        hr = add_listener(s, addrs[i].lpSockaddr, use);
        if (SUCCEEDED(hr)) continue;
        describe(addrs[i].lpSockaddr, use, where);
        if (hr == ND_SHARING_VIOLATION || !may_skip) return hr;
    }
    return s->listener_count > first ? ND_SUCCESS : hr;
}

static HRESULT listen_on(struct nds_server *s, const SOCKET_ADDRESS *addrs, size_t count,
                         bool may_skip, uint16_t port, char where[80]) {
    HRESULT hr = ND_SHARING_VIOLATION;

    for (int round = 0; round < (port ? 1 : PORT_ROUNDS_MAX); round++) {
        hr = listen_all(s, addrs, count, may_skip, port, where);
        if (hr != ND_SHARING_VIOLATION) break;
        nds_stop_listening(s);
    }
    return hr;
}

static HRESULT listen_on_host(struct nds_server *s, const char *host, uint16_t port,
                              const char **why, char where[80]) {
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *list;
    HRESULT hr = ND_INVALID_ADDRESS;
    int error = getaddrinfo(host, NULL, &hints, &list);

    if (error) {
        *why = gai_strerror(error);
        return hr;
    }
    for (struct addrinfo *a = list; a; a = a->ai_next) {
        SOCKET_ADDRESS sa = { .lpSockaddr = a->ai_addr };
        if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
        hr = listen_on(s, &sa, 1, false, port, where);
        if (hr != ND_INVALID_ADDRESS) break;
    }
    freeaddrinfo(list);
    return hr;
}

HRESULT nds_open(struct nds_server *s, const char *host, uint16_t port, const char **why,
                 char where[80]) {
    SOCKET_ADDRESS_LIST *ours = NULL;
    HRESULT hr;

    *why = NULL;
    where[0] = 0;
    s->port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    if (!s->port) return ND_NO_MEMORY;
    hr = ndc_addresses(&ours);
    if (SUCCEEDED(hr) && !ours) {
        *why = NDC_NO_ADAPTER;
        hr = ND_INVALID_ADDRESS;
    } else if (SUCCEEDED(hr)) {
        if (host[0])
            hr = listen_on_host(s, host, port, why, where);
        else
            hr = listen_on(s, ours->Address, (size_t)ours->iAddressCount, true, port, where);
    }
    free(ours);
    if (FAILED(hr)) nds_close(s);
    return hr;
}

void nds_print(const struct nds_server *s, const char *name) {
    char text[TEXT_ADDR_MAX];

    for (size_t i = 0; i < s->listener_count; i++) {
        if (!s->listeners[i].listener) continue;
        text_from_sockaddr((const struct sockaddr *)&s->listeners[i].local, text);
        fprintf(stderr, "%s: listening on %s\n", name, text);
    }
}

/* ---- the loop ---- */

HRESULT nds_step(struct nds_server *s, uint32_t timeout_ms) {
    uint64_t start = sys_now_ns();

    for (;;) {
        uint64_t gone_ms = (sys_now_ns() - start) / 1000000;
        DWORD slice = STOP_CHECK_MS, bytes;
        OVERLAPPED *ov = NULL;
        ULONG_PTR key;
        if (s->failed != ND_SUCCESS) return s->failed;
        if (sys_stop_requested() && !s->ignore_stop) return E_ABORT;
        if (timeout_ms != INFINITE) {
            if (gone_ms >= timeout_ms) gone_ms = timeout_ms;
            if (timeout_ms - gone_ms < slice) slice = (DWORD)(timeout_ms - gone_ms);
        }
        /* A failed request comes as FALSE with its OVERLAPPED; its owner asks for the status. */
        GetQueuedCompletionStatus(s->port, &bytes, &key, &ov, slice);
        if (ov) {
            struct nds_op *op = (struct nds_op *)(void *)ov;
            op->on_done(op);
            return ND_SUCCESS;
        }
        if (timeout_ms != INFINITE && gone_ms >= timeout_ms) return ND_TIMEOUT;
    }
}

/* The cancellation completes the pending requests before it returns; their packets stay in the
 * port and find listener NULL. */
void nds_stop_listening(struct nds_server *s) {
    for (size_t i = 0; i < s->listener_count; i++) {
        struct nds_listener *l = &s->listeners[i];
        if (!l->listener) continue;
        IND2Listener_CancelOverlappedRequests(l->listener);
        IND2Listener_Release(l->listener);
        l->listener = NULL;
        if (l->next) IND2Connector_Release(l->next);
        l->next = NULL;
    }
}

void nds_close(struct nds_server *s) {
    nds_stop_listening(s);
    for (size_t i = 0; i < s->adapter_count; i++)
        ndc_adapter_close(&s->adapters[i]);
    s->adapter_count = s->listener_count = 0;
    if (s->port) CloseHandle(s->port);
    s->port = NULL;
}
