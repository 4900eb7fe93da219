/* SPDX-License-Identifier: MIT
 * nd_client.c - see nd_client.h. Requests that wait on an event set the lowest bit of hEvent, so
 * that they queue no packet where the file belongs to a completion port.
 */
#include <initguid.h>

#include "nd_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "catalog.h"
#include "ndsupport.h"
#include "softnd.h"
#include "sys.h"
#include "text.h"

#define PAGE_BYTES 4096
/* A sleeping wait looks this often whether the user wants to stop. */
#define WAIT_SLICE_MS 100
/* How long an orderly disconnect may take before the objects are released anyway. */
#define DISCONNECT_MS 3000

/* ---- start ---- */

bool ndc_find_library(char *path, size_t room) {
    static const char *const places[] = { "%s/libsoftnd.so", "%s/../lib/libsoftnd.so",
                                          "%s/softnd.dll" };
    char folder[SYS_PATH_MAX], full[SYS_PATH_MAX];

    if (!sys_program_folder(folder)) return false;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(full, sizeof full, places[i], folder);
        if (!sys_file_exists(full)) continue;
        if (!sys_full_path(full, folder)) return false;
        return (size_t)snprintf(path, room, "%s", folder) < room;
    }
    return false;
}

/* The variable counts only while the catalog has no provider at all, so setting it takes nothing
 * away from a registered one. */
HRESULT ndc_start(void) {
    char path[SYS_PATH_MAX];

    if (ndc_find_library(path, sizeof path)) sys_setenv_default("SOFTND_PROVIDER", path);
    return NdStartup();
}

void ndc_stop(void) {
    NdCleanup();
}

static const struct {
    HRESULT hr;
    const char *text;
} texts[] = {
    { ND_SUCCESS, "success" },
    { ND_TIMEOUT, "no answer in time" },
    { ND_BUFFER_OVERFLOW, "buffer overflow" },
    { ND_DEVICE_BUSY, "device busy" },
    { ND_NO_MORE_ENTRIES, "queue full" },
    { ND_UNSUCCESSFUL, "unsuccessful" },
    { ND_ACCESS_VIOLATION, "access violation" },
    { ND_INVALID_HANDLE, "invalid handle" },
    { ND_INVALID_PARAMETER, "invalid parameter" },
    { ND_INVALID_DEVICE_REQUEST, "invalid request" },
    { ND_NO_MEMORY, "out of memory" },
    { ND_DATA_OVERRUN, "data overrun" },
    { ND_SHARING_VIOLATION, "address in use" },
    { ND_INSUFFICIENT_RESOURCES, "insufficient resources" },
    { ND_DEVICE_NOT_READY, "device not ready" },
    { ND_IO_TIMEOUT, "timed out" },
    { ND_NOT_SUPPORTED, "not supported" },
    { ND_INTERNAL_ERROR, "internal error" },
    { ND_CANCELED, "connection lost" },
    { ND_REMOTE_ERROR, "remote error" },
    { ND_INVALID_ADDRESS, "not a NetworkDirect address" },
    { ND_INVALID_DEVICE_STATE, "invalid state" },
    { ND_INVALID_BUFFER_SIZE, "invalid buffer size" },
    { ND_TOO_MANY_ADDRESSES, "no free port" },
    { ND_ADDRESS_ALREADY_EXISTS, "connection exists already" },
    { ND_CONNECTION_REFUSED, "connection refused" },
    { ND_CONNECTION_INVALID, "not connected" },
    { ND_CONNECTION_ACTIVE, "already connected" },
    { ND_NETWORK_UNREACHABLE, "network unreachable" },
    { ND_HOST_UNREACHABLE, "host unreachable" },
    { ND_CONNECTION_ABORTED, "connection aborted by the peer" },
    { ND_DEVICE_REMOVED, "adapter removed" },
    { SOFTND_DATA_ERROR, "message larger than the peer's buffer" },
    { SOFTND_BAD_NETWORK_NAME, "nobody can be reached at this address" },
    { SOFTND_CONNECTION_DISCONNECTED, "disconnected" },
    { E_ABORT, "interrupted" },
    { E_OUTOFMEMORY, "out of memory" },
    { E_NOINTERFACE, "interface not supported" },
};

const char *ndc_text(HRESULT hr) {
    static char other[32];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].hr == hr) return texts[i].text;
    snprintf(other, sizeof other, "status 0x%08x", (unsigned)hr);
    return other;
}

/* ---- adapters and addresses ---- */

size_t ndc_sockaddr_bytes(const struct sockaddr *sa) {
    return sa->sa_family == AF_INET6 ? sizeof(SOCKADDR_IN6) : sizeof(SOCKADDR_IN);
}

void ndc_set_port(struct sockaddr *sa, uint16_t port) {
    if (sa->sa_family == AF_INET6)
        ((SOCKADDR_IN6 *)(void *)sa)->sin6_port = htons(port);
    else
        ((SOCKADDR_IN *)(void *)sa)->sin_port = htons(port);
}

uint16_t ndc_get_port(const struct sockaddr *sa) {
    if (sa->sa_family == AF_INET6)
        return ntohs(((const SOCKADDR_IN6 *)(const void *)sa)->sin6_port);
    return ntohs(((const SOCKADDR_IN *)(const void *)sa)->sin_port);
}

HRESULT ndc_adapter_open(struct ndc_adapter *ad, const struct sockaddr *local) {
    ULONG cb = sizeof ad->info;
    HRESULT hr;

    *ad = (struct ndc_adapter){ 0 };
    hr = NdOpenAdapter(&IID_IND2Adapter, local, ndc_sockaddr_bytes(local), (void **)&ad->adapter);
    if (FAILED(hr)) return hr;
    ad->info.InfoVersion = ND_VERSION_2;
    hr = IND2Adapter_Query(ad->adapter, &ad->info, &cb);
    if (SUCCEEDED(hr)) hr = IND2Adapter_CreateOverlappedFile(ad->adapter, &ad->file);
    if (FAILED(hr)) ndc_adapter_close(ad);
    return hr;
}

void ndc_adapter_close(struct ndc_adapter *ad) {
    if (ad->file) CloseHandle(ad->file);
    if (ad->adapter) IND2Adapter_Release(ad->adapter);
    *ad = (struct ndc_adapter){ 0 };
}

HRESULT ndc_addresses(SOCKET_ADDRESS_LIST **out) {
    SIZE_T cb = 0;
    HRESULT hr;

    *out = NULL;
    for (;;) {
        hr = NdQueryAddressList(0, *out, &cb);
        if (hr != ND_BUFFER_OVERFLOW) break;
        free(*out);
        *out = malloc(cb);
        if (!*out) return ND_NO_MEMORY;
    }
    if (FAILED(hr) || !cb) {
        free(*out);
        *out = NULL;
    }
    return hr;
}

/* ---- overlapped calls with a deadline ---- */

static uint64_t deadline_from(uint32_t timeout_ms) {
    return timeout_ms == INFINITE ? UINT64_MAX : sys_now_ns() + (uint64_t)timeout_ms * 1000000u;
}

/* Waits for the event, in slices. ND_SUCCESS, ND_TIMEOUT, E_ABORT. */
static HRESULT wait_event(HANDLE event, uint64_t deadline_ns) {
    for (;;) {
        uint64_t now = sys_now_ns();
        uint64_t left_ms = now >= deadline_ns ? 0 : (deadline_ns - now + 999999) / 1000000;
        DWORD slice = left_ms > WAIT_SLICE_MS ? WAIT_SLICE_MS : (DWORD)left_ms;
        DWORD got = WaitForSingleObject(event, slice);
        if (got == WAIT_OBJECT_0) return ND_SUCCESS;
        if (got == WAIT_FAILED) return ND_INTERNAL_ERROR;
        if (sys_stop_requested()) return E_ABORT;
        if (sys_now_ns() >= deadline_ns) return ND_TIMEOUT;
    }
}

void ndc_begin_call(OVERLAPPED *ov, HANDLE event) {
    *ov = (OVERLAPPED){ 0 };
    ov->hEvent = (HANDLE)((ULONG_PTR)event | 1);
}

/* hr: what the method returned. Takes the outcome; a request that is late is cancelled and its end
 * awaited, so that the OVERLAPPED is free afterwards in any case. */
HRESULT ndc_end_call(IND2Overlapped *o, OVERLAPPED *ov, HANDLE event, HRESULT hr,
                     uint32_t timeout_ms) {
    HRESULT waited;

    if (hr != ND_PENDING) return hr;
    waited = wait_event(event, deadline_from(timeout_ms));
    if (waited == ND_SUCCESS) return IND2Overlapped_GetOverlappedResult(o, ov, FALSE);
    IND2Overlapped_CancelOverlappedRequests(o);
    hr = IND2Overlapped_GetOverlappedResult(o, ov, TRUE);
    if (SUCCEEDED(hr)) return hr; /* it won the race */
    return waited == E_ABORT ? E_ABORT : ND_IO_TIMEOUT;
}

/* ---- memory ---- */

HRESULT ndc_region_create(struct ndc_adapter *ad, size_t bytes, ULONG flags,
                          struct ndc_region *out) {
    size_t room = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    OVERLAPPED ov;
    HANDLE event;
    HRESULT hr;

    *out = (struct ndc_region){ 0 };
    if (room < bytes) return ND_NO_MEMORY;
    if (!room) room = PAGE_BYTES;
    event = CreateEvent(NULL, FALSE, FALSE, NULL);
    if (!event) return ND_NO_MEMORY;
    out->buf = sys_pages_alloc(room);
    out->bytes = room;
    if (!out->buf) {
        hr = ND_NO_MEMORY;
        goto no_memory;
    }
    hr = IND2Adapter_CreateMemoryRegion(ad->adapter, &IID_IND2MemoryRegion, ad->file,
                                        (void **)&out->mr);
    if (FAILED(hr)) goto no_region;
    ndc_begin_call(&ov, event);
    hr = IND2MemoryRegion_Register(out->mr, out->buf, room, flags, &ov);
    hr = ndc_end_call((IND2Overlapped *)out->mr, &ov, event, hr, INFINITE);
    if (FAILED(hr)) goto not_registered;
    out->local_token = IND2MemoryRegion_GetLocalToken(out->mr);
    out->remote_token = IND2MemoryRegion_GetRemoteToken(out->mr);
    CloseHandle(event);
    return ND_SUCCESS;

not_registered:
    IND2MemoryRegion_Release(out->mr);
no_region:
    sys_pages_free(out->buf, room);
no_memory:
    CloseHandle(event);
    *out = (struct ndc_region){ 0 };
    return hr;
}

void ndc_region_destroy(struct ndc_region *r) {
    if (r->mr) {
        HANDLE event = CreateEvent(NULL, FALSE, FALSE, NULL);
        OVERLAPPED ov;
        if (event) {
            ndc_begin_call(&ov, event);
            ndc_end_call((IND2Overlapped *)r->mr, &ov, event,
                         IND2MemoryRegion_Deregister(r->mr, &ov), INFINITE);
            CloseHandle(event);
        }
        IND2MemoryRegion_Release(r->mr);
    }
    sys_pages_free(r->buf, r->bytes);
    *r = (struct ndc_region){ 0 };
}

ND2_SGE ndc_sge(const struct ndc_region *r, size_t offset, size_t bytes) {
    return (ND2_SGE){ .Buffer = r->buf + offset,
                      .BufferLength = (ULONG)bytes,
                      .MemoryRegionToken = r->local_token };
}

/* ---- connections ---- */

HRESULT ndc_conn_create(struct ndc_conn *c, struct ndc_adapter *ad, const struct ndc_spec *spec,
                        IND2Connector *connector) {
    ULONG depth = spec->receives + spec->requests;
    HRESULT hr = ND_NO_MEMORY;

    *c = (struct ndc_conn){ .ad = ad, .connector = connector, .spin_ns = spec->spin_ns };
    if (depth > ad->info.MaxCompletionQueueDepth) depth = ad->info.MaxCompletionQueueDepth;
    c->event = CreateEvent(NULL, FALSE, FALSE, NULL);
    c->notify_event = CreateEvent(NULL, FALSE, FALSE, NULL);
    if (!c->event || !c->notify_event) goto failed;
    hr = IND2Adapter_CreateCompletionQueue(ad->adapter, &IID_IND2CompletionQueue, ad->file, depth,
                                           0, 0, (void **)&c->cq);
    if (FAILED(hr)) goto failed;
    hr = IND2Adapter_CreateQueuePair(ad->adapter, &IID_IND2QueuePair, (IUnknown *)c->cq,
                                     (IUnknown *)c->cq, c, spec->receives, spec->requests,
                                     spec->receive_sges, spec->request_sges, spec->inline_bytes,
                                     (void **)&c->qp);
    if (FAILED(hr)) goto failed;
    if (!c->connector)
        hr = IND2Adapter_CreateConnector(ad->adapter, &IID_IND2Connector, ad->file,
                                         (void **)&c->connector);
    if (FAILED(hr)) goto failed;
    return ND_SUCCESS;

failed:
    ndc_conn_close(c);
    return hr;
}

static HRESULT finish_call(struct ndc_conn *c, HRESULT hr, uint32_t timeout_ms) {
    return ndc_end_call((IND2Overlapped *)c->connector, &c->ov, c->event, hr, timeout_ms);
}

HRESULT ndc_conn_connect(struct ndc_conn *c, const struct sockaddr *local,
                         const struct sockaddr *remote, ULONG inbound_reads, ULONG outbound_reads,
                         const void *data, ULONG data_bytes, uint32_t timeout_ms) {
    HRESULT hr = IND2Connector_Bind(c->connector, local, (ULONG)ndc_sockaddr_bytes(local));

    if (FAILED(hr)) return hr;
    ndc_begin_call(&c->ov, c->event);
    hr = IND2Connector_Connect(c->connector, (IUnknown *)c->qp, remote,
                               (ULONG)ndc_sockaddr_bytes(remote), inbound_reads, outbound_reads,
                               data, data_bytes, &c->ov);
    hr = finish_call(c, hr, timeout_ms);
    if (hr != ND_SUCCESS) return FAILED(hr) ? hr : ND_IO_TIMEOUT;
    ndc_begin_call(&c->ov, c->event);
    hr = finish_call(c, IND2Connector_CompleteConnect(c->connector, &c->ov), timeout_ms);
    c->connected = hr == ND_SUCCESS;
    return hr;
}

HRESULT ndc_conn_accept(struct ndc_conn *c, ULONG inbound_reads, ULONG outbound_reads,
                        uint32_t timeout_ms) {
    HRESULT hr;

    ndc_begin_call(&c->ov, c->event);
    hr = IND2Connector_Accept(c->connector, (IUnknown *)c->qp, inbound_reads, outbound_reads, NULL,
                              0, &c->ov);
    hr = finish_call(c, hr, timeout_ms);
    c->connected = hr == ND_SUCCESS;
    return hr;
}

HRESULT ndc_conn_wait(struct ndc_conn *c, ND2_RESULT *results, ULONG max, ULONG *count,
                      uint32_t timeout_ms) {
    uint64_t deadline = deadline_from(timeout_ms), spin_until = sys_now_ns() + c->spin_ns;
    HRESULT hr;

    for (;;) {
        *count = IND2CompletionQueue_GetResults(c->cq, results, max);
        if (*count) return ND_SUCCESS;
        if (sys_now_ns() < spin_until) continue;
        if (!c->notify_pending) {
            ndc_begin_call(&c->notify, c->notify_event);
            hr = IND2CompletionQueue_Notify(c->cq, ND_CQ_NOTIFY_ANY, &c->notify);
            if (FAILED(hr)) return hr;
            c->notify_pending = hr == ND_PENDING;
            if (!c->notify_pending) continue;
        }
        hr = wait_event(c->notify_event, deadline);
        if (hr != ND_SUCCESS) return hr; /* the notification stays armed for the next wait */
        c->notify_pending = false;
        hr = IND2CompletionQueue_GetOverlappedResult(c->cq, &c->notify, FALSE);
        if (FAILED(hr)) return hr;
    }
}

static void end_notification(struct ndc_conn *c) {
    if (!c->notify_pending) return;
    IND2CompletionQueue_CancelOverlappedRequests(c->cq);
    IND2CompletionQueue_GetOverlappedResult(c->cq, &c->notify, TRUE);
    c->notify_pending = false;
}

void ndc_conn_close(struct ndc_conn *c) {
    if (c->connected) {
        ndc_begin_call(&c->ov, c->event);
        finish_call(c, IND2Connector_Disconnect(c->connector, &c->ov), DISCONNECT_MS);
    }
    if (c->connector) IND2Connector_Release(c->connector);
    if (c->qp) IND2QueuePair_Release(c->qp);
    if (c->cq) {
        end_notification(c);
        IND2CompletionQueue_Release(c->cq);
    }
    if (c->event) CloseHandle(c->event);
    if (c->notify_event) CloseHandle(c->notify_event);
    *c = (struct ndc_conn){ 0 };
}

ULONG ndc_peer_data(IND2Connector *connector, void *buf, ULONG room) {
    uint8_t all[1024];
    ULONG cb = sizeof all;
    HRESULT hr = IND2Connector_GetPrivateData(connector, all, &cb);

    if (hr != ND_SUCCESS) return 0;
    if (cb > room) cb = room;
    memcpy(buf, all, cb);
    return cb;
}

void ndc_peer_text(IND2Connector *connector, char *out) {
    SOCKADDR_INET sa;
    ULONG cb = sizeof sa;

    if (IND2Connector_GetPeerAddress(connector, (struct sockaddr *)&sa, &cb) == ND_SUCCESS)
        text_from_sockaddr((struct sockaddr *)&sa, out);
    else
        strcpy(out, "?");
}

typedef HRESULT(STDMETHODCALLTYPE *query_fn)(IUnknown *, char *, ULONG *);

static bool ask(const WCHAR *library, const char *function, IUnknown *object, char *out,
                ULONG room) {
    HMODULE module = LoadLibraryW(library);
    query_fn query = NULL;
    bool known = false;

    if (!module) return false;
    FARPROC f = GetProcAddress(module, function);
    memcpy(&query, &f, sizeof query);
    if (query) known = query(object, out, &room) == ND_SUCCESS;
    FreeLibrary(module);
    return known;
}

/* The question goes to the library that made the object; which one that was, only trying tells,
 * since a library refuses a foreign object. */
static bool ask_maker(const char *function, IUnknown *object, char *out, ULONG room) {
    struct catalog catalog;
    char path[SYS_PATH_MAX];
    WCHAR wide[SYS_PATH_MAX];
    bool known = false;

    if (catalog_read(&catalog) == NULL) {
        for (size_t i = 0; i < catalog.count && !known; i++)
            if (catalog.entries[i].is_nd)
                known = ask(catalog.entries[i].path, function, object, out, room);
        catalog_free(&catalog);
    }
    if (!known && sys_getenv("SOFTND_PROVIDER", path, sizeof path) &&
        text_to_wide(path, wide, SYS_PATH_MAX))
        known = ask(wide, function, object, out, room);
    return known;
}

void ndc_transport(IND2QueuePair *qp, char out[16]) {
    if (!ask_maker("SoftNdQueryTransport", (IUnknown *)qp, out, 16)) strcpy(out, "unknown");
}

bool ndc_counters(IUnknown *object, char out[NDC_COUNTERS_BYTES]) {
    return ask_maker("SoftNdQueryCounters", object, out, NDC_COUNTERS_BYTES);
}

/* ---- targets ---- */

static bool may_try_next(HRESULT hr) {
    return hr == ND_CONNECTION_REFUSED || hr == ND_IO_TIMEOUT || hr == ND_NETWORK_UNREACHABLE ||
           hr == ND_HOST_UNREACHABLE || hr == ND_INVALID_ADDRESS || hr == SOFTND_BAD_NETWORK_NAME;
}

static HRESULT try_address(struct ndc_target *t,
                           HRESULT (*attempt)(struct ndc_target *t, void *context), void *context) {
    SIZE_T cb = sizeof t->local;
    struct sockaddr *remote = (struct sockaddr *)&t->remote, *local = (struct sockaddr *)&t->local;
    HRESULT hr;

    text_from_sockaddr(remote, t->text);
    hr = NdResolveAddress(remote, ndc_sockaddr_bytes(remote), local, &cb);
    if (FAILED(hr)) return hr;
    hr = ndc_adapter_open(&t->ad, local);
    if (FAILED(hr)) return hr;
    hr = attempt(t, context);
    if (FAILED(hr)) ndc_adapter_close(&t->ad);
    return hr;
}

HRESULT ndc_target_open(struct ndc_target *t, const char *host, uint16_t port,
                        HRESULT (*attempt)(struct ndc_target *t, void *context), void *context,
                        const char **why) {
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    SOCKET_ADDRESS_LIST *ours = NULL;
    HRESULT hr = ND_INVALID_ADDRESS;
    int error;

    *t = (struct ndc_target){ 0 };
    *why = NULL;
    if (SUCCEEDED(ndc_addresses(&ours)) && !ours) {
        *why = NDC_NO_ADAPTER;
        return hr;
    }
    free(ours);
    error = getaddrinfo(host, NULL, &hints, &list);
    if (error) {
        *why = gai_strerror(error);
        return hr;
    }
    for (struct addrinfo *a = list; a; a = a->ai_next) {
        if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
        memcpy(&t->remote, a->ai_addr, ndc_sockaddr_bytes(a->ai_addr));
        ndc_set_port((struct sockaddr *)&t->remote, port);
        hr = try_address(t, attempt, context);
        if (SUCCEEDED(hr) || !may_try_next(hr)) break;
    }
    freeaddrinfo(list);
    return hr;
}
