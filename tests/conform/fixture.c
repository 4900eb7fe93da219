/* SPDX-License-Identifier: MIT
 * fixture.c - see fixture.h. The GUIDs of the public headers are defined here.
 */
#ifdef _MSC_VER
#define INITGUID
#else
#include <initguid.h>
#endif
#include "fixture.h"

#include <inttypes.h>
#include <stdarg.h>

#ifndef CONFORM_PROVIDER
#define CONFORM_PROVIDER ""
#endif
#ifndef CONFORM_PROVIDER_ID
#define CONFORM_PROVIDER_ID ""
#endif

void (*fx_escape)(int outcome);
OVERLAPPED *fx_run_ov;
bool fx_poll_results;

static const char *at_file = "?";
static int at_line;

static _Noreturn void fail_here(int line, const char *format, ...) {
    va_list args;
    fprintf(stderr, "%s:%d (fixture.c:%d): ", at_file, at_line, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    fx_escape(1);
    abort();
}

/* The checks of testing.h and fixture.h, told to leave through fx_escape. */
#undef FAIL
#define FAIL(...) fail_here(__LINE__, __VA_ARGS__)

void fx_at(const char *file, int line) {
    const char *slash = strrchr(file, '/');
    at_file = slash ? slash + 1 : file;
    at_line = line;
}

/* ---- statuses ---- */

const char *fx_status_text(HRESULT hr) {
    static const struct {
        HRESULT hr;
        const char *name;
    } names[] = {
#define NAME(status) { status, #status }
        NAME(ND_SUCCESS),
        NAME(ND_TIMEOUT),
        NAME(ND_PENDING),
        NAME(ND_BUFFER_OVERFLOW),
        NAME(ND_DEVICE_BUSY),
        NAME(ND_NO_MORE_ENTRIES),
        NAME(ND_UNSUCCESSFUL),
        NAME(ND_ACCESS_VIOLATION),
        NAME(ND_INVALID_HANDLE),
        NAME(ND_INVALID_PARAMETER),
        NAME(ND_INVALID_DEVICE_REQUEST),
        NAME(ND_NO_MEMORY),
        NAME(ND_INVALID_PARAMETER_MIX),
        NAME(ND_DATA_OVERRUN),
        NAME(ND_SHARING_VIOLATION),
        NAME(ND_INSUFFICIENT_RESOURCES),
        NAME(ND_DEVICE_NOT_READY),
        NAME(ND_IO_TIMEOUT),
        NAME(ND_NOT_SUPPORTED),
        NAME(ND_INTERNAL_ERROR),
        NAME(ND_INVALID_PARAMETER_1),
        NAME(ND_INVALID_PARAMETER_2),
        NAME(ND_INVALID_PARAMETER_3),
        NAME(ND_INVALID_PARAMETER_4),
        NAME(ND_INVALID_PARAMETER_5),
        NAME(ND_INVALID_PARAMETER_6),
        NAME(ND_INVALID_PARAMETER_7),
        NAME(ND_INVALID_PARAMETER_8),
        NAME(ND_INVALID_PARAMETER_9),
        NAME(ND_INVALID_PARAMETER_10),
        NAME(ND_CANCELED),
        NAME(ND_REMOTE_ERROR),
        NAME(ND_INVALID_ADDRESS),
        NAME(ND_INVALID_DEVICE_STATE),
        NAME(ND_INVALID_BUFFER_SIZE),
        NAME(ND_TOO_MANY_ADDRESSES),
        NAME(ND_ADDRESS_ALREADY_EXISTS),
        NAME(ND_CONNECTION_REFUSED),
        NAME(ND_CONNECTION_INVALID),
        NAME(ND_CONNECTION_ACTIVE),
        NAME(ND_NETWORK_UNREACHABLE),
        NAME(ND_HOST_UNREACHABLE),
        NAME(ND_CONNECTION_ABORTED),
        NAME(ND_DEVICE_REMOVED),
        NAME(ST_DATA_ERROR),
        NAME(ST_BAD_NETWORK_NAME),
        NAME(ST_ADDRESS_ALREADY_ASSOCIATED),
        NAME(E_NOINTERFACE),
        NAME(E_POINTER),
        NAME(CLASS_E_CLASSNOTAVAILABLE),
        NAME(CLASS_E_NOAGGREGATION),
#undef NAME
    };
    static char texts[4][64];
    static unsigned turn;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].hr == hr) return names[i].name;
    char *text = texts[turn++ % COUNT_OF(texts)];
    snprintf(text, sizeof texts[0], "0x%08X", (unsigned)hr);
    return text;
}

/* ---- environment ---- */

static const char *setting(const char *name, const char *fallback) {
    const char *value = getenv(name);
    return value && *value ? value : fallback;
}

bool fx_notify_mode(void) {
    return strcmp(setting("CONFORM_WAIT", "poll"), "notify") == 0;
}

uint64_t fx_deadline(void) {
    return host_now_ms() + strtoull(setting("CONFORM_DEADLINE_MS", "30000"), NULL, 10);
}

uint64_t fx_seed(void) {
    static uint64_t seed;
    if (seed == 0) {
        const char *text = setting("CONFORM_SEED", "");
        seed = *text ? strtoull(text, NULL, 0) : host_now_ms() * 2654435761u + 1;
        printf("  CONFORM_SEED=%" PRIu64 "\n", seed);
    }
    return seed;
}

/* ---- the provider ---- */

static bool parse_guid(const char *text, GUID *guid) {
    unsigned d1, d2, d3, b[8];
    if (*text == '{') text++;
    if (sscanf(text, "%8x-%4x-%4x-%2x%2x-%2x%2x%2x%2x%2x%2x", &d1, &d2, &d3, &b[0], &b[1], &b[2],
               &b[3], &b[4], &b[5], &b[6], &b[7]) != 11)
        return false;
    guid->Data1 = d1;
    guid->Data2 = (uint16_t)d2;
    guid->Data3 = (uint16_t)d3;
    for (int i = 0; i < 8; i++)
        guid->Data4[i] = (uint8_t)b[i];
    return true;
}

const struct fx_library *fx_library(void) {
    static struct fx_library library;
    if (library.module) return &library;
    const char *transport = setting("CONFORM_TRANSPORT", "");
    if (*transport) host_setenv("SOFTND_TRANSPORT", transport);
    const char *path = setting("SOFTND_PROVIDER", CONFORM_PROVIDER);
    const char *id = setting("CONFORM_PROVIDER_ID", CONFORM_PROVIDER_ID);
    if (!parse_guid(id, &library.class_id)) FAIL("CONFORM_PROVIDER_ID \"%s\" is no GUID", id);
    HMODULE module = LoadLibraryA(path);
    if (!module) FAIL("cannot load provider \"%s\": error %u", path, (unsigned)GetLastError());
    /* By way of the one function type that may be cast to any other without a warning. */
    typedef void (*any_fn)(void);
    library.get_class_object =
        (fx_get_class_object_fn)(any_fn)GetProcAddress(module, "DllGetClassObject");
    library.can_unload_now =
        (fx_can_unload_now_fn)(any_fn)GetProcAddress(module, "DllCanUnloadNow");
    if (!library.get_class_object || !library.can_unload_now)
        FAIL("\"%s\" does not export DllGetClassObject and DllCanUnloadNow", path);
    library.module = module;
    return &library;
}

IND2Provider *fx_provider(void) {
    const struct fx_library *library = fx_library();
    void *provider = NULL;
    CHECK_HR(library->get_class_object(&library->class_id, &IID_IND2Provider, &provider), S_OK);
    CHECK(provider != NULL);
    return provider;
}

/* ---- what a case owns ---- */

struct fx_object {
    struct fx_object *next;
    IUnknown *object;
};

struct fx_overlapped {
    struct fx_overlapped *next;
    OVERLAPPED ov;
};

struct fx_buffer {
    struct fx_buffer *next;
    void *bytes;
};

/* Fixtures of failed cases stay: what they started may still write to their memory. */
static struct fx *current, *abandoned[64];

static void *alloc_zeroed(size_t bytes) {
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory) FAIL("no memory for %zu bytes", bytes);
    return memory;
}

struct fx *fx_begin(void) {
    static size_t abandoned_count;
    if (current && abandoned_count < COUNT_OF(abandoned)) abandoned[abandoned_count++] = current;
    struct fx *f = alloc_zeroed(sizeof *f);
    current = f;
    fx_poll_results = false;
    const char *text = setting("CONFORM_ADDR", "127.0.0.1");
    if (!host_parse_address(text, &f->local, &f->local_len))
        FAIL("CONFORM_ADDR \"%s\" is no address", text);
    f->provider = fx_provider();
    HRESULT hr = CALL(f->provider, ResolveAddress, ADDR(f->local), f->local_len, &f->adapter_id);
    if (hr == ND_INVALID_ADDRESS) {
        printf("  skipped: no adapter has the address %s\n", text);
        CALL(f->provider, Release);
        current = NULL;
        free(f);
        fx_escape(2);
    }
    CHECK_HR(hr, ND_SUCCESS);
    for (int i = 0; i < 2; i++) {
        void *adapter = NULL;
        CHECK_HR(CALL(f->provider, OpenAdapter, &IID_IND2Adapter, f->adapter_id, &adapter),
                 ND_SUCCESS);
        f->host[i].adapter = adapter;
        CHECK_HR(CALL(f->host[i].adapter, CreateOverlappedFile, &f->host[i].file), ND_SUCCESS);
    }
    ULONG cb = sizeof f->info;
    f->info.InfoVersion = ND_VERSION_2;
    CHECK_HR(CALL(f->host[0].adapter, Query, &f->info, &cb), ND_SUCCESS);
    return f;
}

void fx_track(struct fx *f, void *object) {
    struct fx_object *entry = alloc_zeroed(sizeof *entry);
    entry->object = object;
    entry->next = f->objects;
    f->objects = entry;
}

void fx_untrack(struct fx *f, void *object) {
    for (struct fx_object **at = &f->objects; *at; at = &(*at)->next) {
        struct fx_object *entry = *at;
        if (entry->object != object) continue;
        *at = entry->next;
        free(entry);
        return;
    }
    FAIL("object %p is not tracked", object);
}

ULONG fx_release(struct fx *f, void *object) {
    fx_untrack(f, object);
    return CALL(UNKNOWN(object), Release);
}

void fx_end(struct fx *f) {
    while (f->objects) {
        struct fx_object *entry = f->objects;
        f->objects = entry->next;
        ULONG left = CALL(entry->object, Release);
        free(entry);
        if (left != 0) FAIL("the last Release returned %u", (unsigned)left);
    }
    for (int i = 0; i < 2; i++) {
        if (f->host[i].file) CloseHandle(f->host[i].file);
        if (f->host[i].adapter) CHECK_EQ(CALL(f->host[i].adapter, Release), 0);
    }
    if (f->provider) CHECK_EQ(CALL(f->provider, Release), 0);
    while (f->requests) {
        struct fx_overlapped *next = f->requests->next;
        CloseHandle((HANDLE)((ULONG_PTR)f->requests->ov.hEvent & ~(ULONG_PTR)1));
        free(f->requests);
        f->requests = next;
    }
    while (f->memories) {
        struct fx_memory *next = f->memories->next;
        if (f->memories->own_buffer) free(f->memories->bytes);
        free(f->memories);
        f->memories = next;
    }
    while (f->buffers) {
        struct fx_buffer *next = f->buffers->next;
        free(f->buffers->bytes);
        free(f->buffers);
        f->buffers = next;
    }
    current = NULL;
    free(f);
}

void *fx_alloc(struct fx *f, size_t bytes) {
    struct fx_buffer *entry = alloc_zeroed(sizeof *entry);
    entry->bytes = alloc_zeroed(bytes);
    entry->next = f->buffers;
    f->buffers = entry;
    return entry->bytes;
}

OVERLAPPED *fx_overlapped(struct fx *f) {
    struct fx_overlapped *entry = alloc_zeroed(sizeof *entry);
    entry->ov.hEvent = CreateEventW(NULL, FALSE, FALSE, NULL);
    if (!entry->ov.hEvent) FAIL("no event: error %u", (unsigned)GetLastError());
    entry->next = f->requests;
    f->requests = entry;
    return &entry->ov;
}

/* ---- objects ---- */

IND2CompletionQueue *fx_cq(struct fx *f, int host, ULONG depth) {
    void *cq = NULL;
    CHECK_HR(CALL(f->host[host].adapter, CreateCompletionQueue, &IID_IND2CompletionQueue,
                  f->host[host].file, depth, 0, 0, &cq),
             ND_SUCCESS);
    fx_track(f, cq);
    return cq;
}

IND2Connector *fx_connector(struct fx *f, int host) {
    void *connector = NULL;
    CHECK_HR(CALL(f->host[host].adapter, CreateConnector, &IID_IND2Connector, f->host[host].file,
                  &connector),
             ND_SUCCESS);
    fx_track(f, connector);
    return connector;
}

IND2Listener *fx_listener(struct fx *f, int host) {
    void *listener = NULL;
    CHECK_HR(CALL(f->host[host].adapter, CreateListener, &IID_IND2Listener, f->host[host].file,
                  &listener),
             ND_SUCCESS);
    fx_track(f, listener);
    return listener;
}

IND2MemoryWindow *fx_window(struct fx *f, int host) {
    void *window = NULL;
    CHECK_HR(CALL(f->host[host].adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, &window),
             ND_SUCCESS);
    fx_track(f, window);
    return window;
}

IND2SharedReceiveQueue *fx_srq(struct fx *f, int host, ULONG depth, ULONG sge, ULONG threshold) {
    void *srq = NULL;
    CHECK_HR(CALL(f->host[host].adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue,
                  f->host[host].file, depth, sge, threshold, 0, 0, &srq),
             ND_SUCCESS);
    fx_track(f, srq);
    return srq;
}

IND2QueuePair *fx_qp(struct fx *f, int host, IND2CompletionQueue *receive_cq,
                     IND2CompletionQueue *initiator_cq, void *context, ULONG depth, ULONG sge,
                     ULONG inline_bytes) {
    void *qp = NULL;
    CHECK_HR(CALL(f->host[host].adapter, CreateQueuePair, &IID_IND2QueuePair, UNKNOWN(receive_cq),
                  UNKNOWN(initiator_cq), context, depth, depth, sge, sge, inline_bytes, &qp),
             ND_SUCCESS);
    fx_track(f, qp);
    return qp;
}

struct fx_memory *fx_memory_over(struct fx *f, int host, void *bytes, size_t len, ULONG flags) {
    struct fx_memory *m = alloc_zeroed(sizeof *m);
    void *region = NULL;
    m->bytes = bytes;
    m->len = len;
    CHECK_HR(CALL(f->host[host].adapter, CreateMemoryRegion, &IID_IND2MemoryRegion,
                  f->host[host].file, &region),
             ND_SUCCESS);
    m->region = region;
    fx_track(f, region);
    m->next = f->memories;
    f->memories = m;
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(fx_finish(f, OVERLAPPED_OF(m->region), ov,
                       CALL(m->region, Register, bytes, len, flags, ov)),
             ND_SUCCESS);
    m->local = CALL(m->region, GetLocalToken);
    m->remote = CALL(m->region, GetRemoteToken);
    m->registered = true;
    return m;
}

struct fx_memory *fx_memory(struct fx *f, int host, size_t len, ULONG flags) {
    struct fx_memory *m = fx_memory_over(f, host, alloc_zeroed(len), len, flags);
    m->own_buffer = true;
    return m;
}

void fx_deregister(struct fx *f, struct fx_memory *m) {
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(fx_finish(f, OVERLAPPED_OF(m->region), ov, CALL(m->region, Deregister, ov)),
             ND_SUCCESS);
    m->registered = false;
}

ND2_SGE fx_sge(const struct fx_memory *m, size_t offset, size_t len) {
    return (ND2_SGE){ .Buffer = m->bytes + offset,
                      .BufferLength = (ULONG)len,
                      .MemoryRegionToken = m->local };
}

UINT64 fx_remote(const struct fx_memory *m, size_t offset) {
    return (UINT64)(uintptr_t)m->bytes + offset;
}

/* ---- overlapped requests ---- */

static DWORD ms_until(uint64_t deadline) {
    uint64_t now = host_now_ms();
    return now < deadline ? (DWORD)(deadline - now) : 0;
}

bool fx_is_done(const OVERLAPPED *ov) {
    return HasOverlappedIoCompleted(ov);
}

HRESULT fx_finish(struct fx *f, IND2Overlapped *object, OVERLAPPED *ov, HRESULT hr) {
    if (hr != ND_PENDING) return hr;
    uint64_t deadline = fx_deadline();
    HANDLE event = (HANDLE)((ULONG_PTR)ov->hEvent & ~(ULONG_PTR)1);
    if (fx_notify_mode() && event) {
        DWORD waited = WaitForSingleObject(event, ms_until(deadline));
        if (waited != WAIT_OBJECT_0) FAIL("a request does not complete (event): %u", waited);
        hr = CALL(object, GetOverlappedResult, ov, FALSE);
        if (hr == ND_PENDING) FAIL("pending although its event is signalled");
        return hr;
    }
    while ((hr = CALL(object, GetOverlappedResult, ov, FALSE)) == ND_PENDING) {
        if (host_now_ms() >= deadline) FAIL("a request does not complete");
        Sleep(0);
    }
    return hr;
}

void fx_run_begin(struct fx *f) {
    fx_run_ov = fx_overlapped(f);
}

/* ---- connections ---- */

struct sockaddr_storage fx_with_port(const struct sockaddr_storage *addr, USHORT port) {
    struct sockaddr_storage with = *addr;
    USHORT wire = htons(port);
    if (with.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&with)->sin6_port = wire;
    else
        ((struct sockaddr_in *)&with)->sin_port = wire;
    return with;
}

USHORT fx_port(const struct sockaddr_storage *addr) {
    return ntohs(addr->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)addr)->sin6_port
                                             : ((const struct sockaddr_in *)addr)->sin_port);
}

static ULONG depth_of(const struct fx_pair_options *o) {
    return o->depth ? o->depth : 16;
}

static void create_side(struct fx *f, struct fx_side *s, const struct fx_pair_options *o,
                        IND2SharedReceiveQueue *srq) {
    ULONG depth = depth_of(o);
    ULONG most = f->info.MaxInitiatorSge < f->info.MaxReceiveSge ? f->info.MaxInitiatorSge
                                                                 : f->info.MaxReceiveSge;
    ULONG sge = o->sge ? o->sge : (most < 4 ? most : 4);
    ULONG entries = o->cq_depth ? o->cq_depth : (o->one_cq ? 2 * depth : depth);
    s->context = s;
    s->receive_cq = fx_cq(f, s->host, entries);
    s->initiator_cq = o->one_cq ? s->receive_cq : fx_cq(f, s->host, entries);
    if (srq) {
        void *qp = NULL;
        CHECK_HR(CALL(f->host[s->host].adapter, CreateQueuePairWithSrq, &IID_IND2QueuePair,
                      UNKNOWN(s->receive_cq), UNKNOWN(s->initiator_cq), UNKNOWN(srq), s->context,
                      depth, sge, o->inline_bytes, &qp),
                 ND_SUCCESS);
        fx_track(f, qp);
        s->qp = qp;
    } else {
        s->qp = fx_qp(f, s->host, s->receive_cq, s->initiator_cq, s->context, depth, sge,
                      o->inline_bytes);
    }
    s->connector = fx_connector(f, s->host);
}

struct fx_pair *fx_pair_create(struct fx *f, const struct fx_pair_options *o) {
    static const struct fx_pair_options usual;
    struct fx_pair *p = fx_alloc(f, sizeof *p);
    if (!o) o = &usual;
    p->a.host = o->swap_hosts ? 1 : 0;
    p->b.host = o->same_adapter || o->swap_hosts ? 0 : 1;
    create_side(f, &p->a, o, NULL);
    create_side(f, &p->b, o, o->srq);
    return p;
}

void fx_listen(struct fx *f, struct fx_pair *p) {
    p->listener = fx_listener(f, p->b.host);
    CHECK_HR(CALL(p->listener, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(p->listener, Listen, 0), ND_SUCCESS);
    p->at_len = sizeof p->at;
    CHECK_HR(CALL(p->listener, GetLocalAddress, (struct sockaddr *)&p->at, &p->at_len), ND_SUCCESS);
    CHECK(fx_port(&p->at) != 0);
}

OVERLAPPED *fx_request(struct fx *f, struct fx_pair *p) {
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(p->listener, GetConnectionRequest, UNKNOWN(p->b.connector), ov), ND_PENDING);
    return ov;
}

static const ULONG USUAL_READ_LIMIT = 4;

static ULONG read_limit_of(const struct fx_pair_options *o) {
    if (o && o->no_reads) return 0;
    return o && o->read_limit ? o->read_limit : USUAL_READ_LIMIT;
}

static OVERLAPPED *call_with(struct fx *f, struct fx_pair *p, ULONG limit) {
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(p->a.connector, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(p->at), p->at_len, limit, limit,
                  NULL, 0, ov),
             ND_PENDING);
    return ov;
}

static OVERLAPPED *accept_with(struct fx *f, struct fx_pair *p, ULONG limit) {
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), limit, limit, NULL, 0, ov), ND_PENDING);
    return ov;
}

OVERLAPPED *fx_call(struct fx *f, struct fx_pair *p) {
    return call_with(f, p, USUAL_READ_LIMIT);
}

OVERLAPPED *fx_accept(struct fx *f, struct fx_pair *p) {
    return accept_with(f, p, USUAL_READ_LIMIT);
}

OVERLAPPED *fx_complete(struct fx *f, struct fx_pair *p) {
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(p->a.connector, CompleteConnect, ov), ND_PENDING);
    return ov;
}

void fx_to_requested(struct fx *f, struct fx_pair *p, OVERLAPPED **call) {
    if (!p->listener) fx_listen(f, p);
    OVERLAPPED *request = fx_request(f, p);
    *call = fx_call(f, p);
    CHECK_HR(fx_finish(f, OVERLAPPED_OF(p->listener), request, ND_PENDING), ND_SUCCESS);
}

void fx_to_answered(struct fx *f, struct fx_pair *p, OVERLAPPED **accept) {
    OVERLAPPED *call;
    fx_to_requested(f, p, &call);
    *accept = fx_accept(f, p);
    CHECK_HR(fx_finish(f, OVERLAPPED_OF(p->a.connector), call, ND_PENDING), ND_SUCCESS);
}

void fx_handshake(struct fx *f, struct fx_pair *p, const struct fx_pair_options *o) {
    ULONG limit = read_limit_of(o);
    if (!p->listener) fx_listen(f, p);
    OVERLAPPED *request = fx_request(f, p);
    OVERLAPPED *call = call_with(f, p, limit);
    CHECK_HR(fx_finish(f, OVERLAPPED_OF(p->listener), request, ND_PENDING), ND_SUCCESS);
    OVERLAPPED *accept = accept_with(f, p, limit);
    CHECK_HR(fx_finish(f, OVERLAPPED_OF(p->a.connector), call, ND_PENDING), ND_SUCCESS);
    OVERLAPPED *complete = fx_complete(f, p);
    CHECK_HR(fx_finish(f, OVERLAPPED_OF(p->a.connector), complete, ND_PENDING), ND_SUCCESS);
    CHECK_HR(fx_finish(f, OVERLAPPED_OF(p->b.connector), accept, ND_PENDING), ND_SUCCESS);
}

struct fx_pair *fx_pair_connect(struct fx *f, const struct fx_pair_options *o) {
    struct fx_pair *p = fx_pair_create(f, o);
    fx_handshake(f, p, o);
    return p;
}

void fx_disconnect(struct fx *f, struct fx_side *s) {
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(fx_finish(f, OVERLAPPED_OF(s->connector), ov, CALL(s->connector, Disconnect, ov)),
             ND_SUCCESS);
}

/* ---- posting ---- */

HRESULT fx_send(struct fx_side *s, void *context, const struct fx_memory *m, size_t offset,
                size_t len, ULONG flags) {
    if (len == 0) return CALL(s->qp, Send, context, NULL, 0, flags);
    ND2_SGE sge = fx_sge(m, offset, len);
    return CALL(s->qp, Send, context, &sge, 1, flags);
}

HRESULT fx_receive(struct fx_side *s, void *context, const struct fx_memory *m, size_t offset,
                   size_t len) {
    if (len == 0) return CALL(s->qp, Receive, context, NULL, 0);
    ND2_SGE sge = fx_sge(m, offset, len);
    return CALL(s->qp, Receive, context, &sge, 1);
}

HRESULT fx_write(struct fx_side *s, void *context, const struct fx_memory *m, size_t offset,
                 size_t len, const struct fx_memory *to, size_t to_offset, ULONG flags) {
    UINT64 remote = fx_remote(to, to_offset);
    if (len == 0) return CALL(s->qp, Write, context, NULL, 0, remote, to->remote, flags);
    ND2_SGE sge = fx_sge(m, offset, len);
    return CALL(s->qp, Write, context, &sge, 1, remote, to->remote, flags);
}

HRESULT fx_read(struct fx_side *s, void *context, const struct fx_memory *m, size_t offset,
                size_t len, const struct fx_memory *from, size_t from_offset, ULONG flags) {
    UINT64 remote = fx_remote(from, from_offset);
    if (len == 0) return CALL(s->qp, Read, context, NULL, 0, remote, from->remote, flags);
    ND2_SGE sge = fx_sge(m, offset, len);
    return CALL(s->qp, Read, context, &sge, 1, remote, from->remote, flags);
}

HRESULT fx_bind(struct fx_side *s, void *context, const struct fx_memory *m,
                IND2MemoryWindow *window, size_t offset, size_t len, ULONG flags) {
    return CALL(s->qp, Bind, context, UNKNOWN(m->region), UNKNOWN(window), m->bytes + offset, len,
                flags);
}

/* ---- results ---- */

static bool wait_for_notify(IND2CompletionQueue *cq, uint64_t deadline) {
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    HRESULT hr = CALL(cq, Notify, ND_CQ_NOTIFY_ANY, &ov);
    if (hr == ND_PENDING) {
        /* A request that is late is withdrawn, so that ov can go. */
        if (WaitForSingleObject(ov.hEvent, ms_until(deadline)) != WAIT_OBJECT_0)
            CALL(cq, CancelOverlappedRequests);
        hr = CALL(cq, GetOverlappedResult, &ov, TRUE);
    }
    CloseHandle(ov.hEvent);
    return hr == ND_SUCCESS;
}

bool fx_next_by(IND2CompletionQueue *cq, ND2_RESULT *result, uint64_t deadline_ms) {
    for (;;) {
        if (CALL(cq, GetResults, result, 1) == 1) return true;
        if (host_now_ms() >= deadline_ms) return false;
        if (fx_notify_mode() && !fx_poll_results) {
            /* A result that is there although nobody was told of it does not count. */
            if (!wait_for_notify(cq, deadline_ms)) return false;
        } else {
            Sleep(0);
        }
    }
}

void fx_next(struct fx *f, IND2CompletionQueue *cq, ND2_RESULT *result) {
    (void)f;
    if (fx_next_by(cq, result, fx_deadline())) return;
    if (CALL(cq, GetResults, result, 1) == 1) FAIL("a result is there, but Notify did not tell");
    FAIL("no result arrives");
}

static const char *type_text(ND2_REQUEST_TYPE type) {
    static const char *const names[] = { "Receive", "Send", "Bind", "Invalidate", "Read", "Write" };
    return (unsigned)type < COUNT_OF(names) ? names[type] : "unknown type";
}

void fx_expect(struct fx *f, struct fx_side *s, ND2_REQUEST_TYPE type, HRESULT status,
               void *context, long long bytes) {
    ND2_RESULT r;
    memset(&r, 0xEE, sizeof r);
    fx_next(f, type == Nd2RequestTypeReceive ? s->receive_cq : s->initiator_cq, &r);
    if (r.RequestType != type || r.Status != status || r.RequestContext != context)
        FAIL("result of %s %p is %s; expected that of %s %p: %s", type_text(r.RequestType),
             r.RequestContext, fx_status_text(r.Status), type_text(type), context,
             fx_status_text(status));
    if (r.QueuePairContext != s->context)
        FAIL("queue pair context is %p, not %p", r.QueuePairContext, s->context);
    if (bytes != FX_ANY_BYTES && (long long)r.BytesTransferred != bytes)
        FAIL("%s of %u bytes, expected %lld", type_text(type), (unsigned)r.BytesTransferred, bytes);
}

void fx_sync(struct fx *f, struct fx_side *from, struct fx_side *to) {
    static uintptr_t turn;
    void *context = CTX(0x57AC0000u + turn++);
    CHECK_HR(fx_receive(to, context, NULL, 0, 0), ND_SUCCESS);
    CHECK_HR(fx_send(from, context, NULL, 0, 0, 0), ND_SUCCESS);
    fx_expect(f, from, Nd2RequestTypeSend, ND_SUCCESS, context, 0);
    fx_expect(f, to, Nd2RequestTypeReceive, ND_SUCCESS, context, 0);
}

/* ---- data ---- */

static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint64_t fx_random(uint64_t *state) {
    *state += 0x9E3779B97F4A7C15u;
    return mix(*state);
}

/* The eight bytes of message `key` that start at a multiple of eight. */
static uint64_t pattern_word(uint64_t key, size_t at) {
    return mix(key ^ ((uint64_t)at << 1));
}

static uint64_t pattern_key(uint64_t seed, uint64_t msg) {
    return mix(seed * 0x2545F4914F6CDD1Du + mix(msg));
}

void fx_fill(void *bytes, size_t len, uint64_t seed, uint64_t msg, size_t from) {
    uint8_t *out = bytes;
    uint64_t key = pattern_key(seed, msg);
    for (size_t i = 0; i < len;) {
        size_t at = from + i, skip = at & 7, n = 8 - skip;
        uint64_t word = pattern_word(key, at - skip);
        if (n > len - i) n = len - i;
        memcpy(out + i, (const uint8_t *)&word + skip, n);
        i += n;
    }
}

size_t fx_wrong_at(const void *bytes, size_t len, uint64_t seed, uint64_t msg, size_t from) {
    const uint8_t *in = bytes;
    uint64_t key = pattern_key(seed, msg);
    for (size_t i = 0; i < len;) {
        size_t at = from + i, skip = at & 7, n = 8 - skip;
        uint64_t word = pattern_word(key, at - skip);
        if (n > len - i) n = len - i;
        if (memcmp(in + i, (const uint8_t *)&word + skip, n) != 0) {
            while (in[i] == ((const uint8_t *)&word)[skip])
                i++, skip++;
            return i;
        }
        i += n;
    }
    return len;
}
