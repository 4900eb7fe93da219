/* SPDX-License-Identifier: MIT
 * conform_adapter.c - IND2Adapter: what it says about itself, and every Create method with each
 * status it documents.
 */
#include "fixture.h"

static const GUID other_id = {
    0x8D1B2C3A, 0x77E1, 0x4F0B, { 0x91, 0x22, 0x10, 0x20, 0x30, 0x40, 0x50, 0x61 }
};

/* ---- a COM object that is not the provider's ---- */

static HRESULT STDMETHODCALLTYPE stranger_query(IUnknown *self, REFIID iid, void **out) {
    if (!IsEqualGUID(iid, &IID_IUnknown)) {
        *out = NULL;
        return E_NOINTERFACE;
    }
    *out = self;
    return S_OK;
}

static ULONG STDMETHODCALLTYPE stranger_count(IUnknown *self) {
    (void)self;
    return 1;
}

static IUnknownVtbl stranger_table = { stranger_query, stranger_count, stranger_count };
static IUnknown stranger = { &stranger_table };

/* ---- Query ---- */

static void query_without_buffer_tells_the_size(void) {
    struct fx *f = fx_begin();
    ULONG cb = 0;
    CHECK_HR(CALL(f->host[0].adapter, Query, NULL, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, sizeof(ND2_ADAPTER_INFO));
    fx_end(f);
}

static void query_into_small_buffer_writes_nothing(void) {
    struct fx *f = fx_begin();
    ND2_ADAPTER_INFO info, before;
    memset(&info, 0x5A, sizeof info);
    info.InfoVersion = ND_VERSION_2;
    before = info;
    ULONG cb = sizeof info - 1;
    CHECK_HR(CALL(f->host[0].adapter, Query, &info, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, sizeof info);
    CHECK_BYTES(&info, &before, sizeof info);
    fx_end(f);
}

static void query_into_large_buffer_succeeds(void) {
    struct fx *f = fx_begin();
    struct {
        ND2_ADAPTER_INFO info;
        uint8_t more[64];
    } room = { .info.InfoVersion = ND_VERSION_2 };
    ULONG cb = sizeof room;
    CHECK_HR(CALL(f->host[0].adapter, Query, &room.info, &cb), ND_SUCCESS);
    CHECK(cb >= sizeof room.info && cb <= sizeof room);
    CHECK_EQ(room.info.AdapterId, f->adapter_id);
    fx_end(f);
}

static void query_accepts_version_1_and_2_and_returns_it(void) {
    struct fx *f = fx_begin();
    static const ULONG versions[] = { 1, ND_VERSION_2 };
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        ND2_ADAPTER_INFO info = { .InfoVersion = versions[i] };
        ULONG cb = sizeof info;
        CHECK_HR(CALL(f->host[0].adapter, Query, &info, &cb), ND_SUCCESS);
        CHECK_EQ(info.InfoVersion, versions[i]);
        CHECK_EQ(info.MaxReceiveQueueDepth, f->info.MaxReceiveQueueDepth);
    }
    fx_end(f);
}

static void query_of_unknown_version_is_an_invalid_parameter(void) {
    struct fx *f = fx_begin();
    ND2_ADAPTER_INFO info = { .InfoVersion = 77 };
    ULONG cb = sizeof info;
    CHECK_HR(CALL(f->host[0].adapter, Query, &info, &cb), ND_INVALID_PARAMETER);
    CHECK_EQ(info.MaxReceiveQueueDepth, 0);
    fx_end(f);
}

static void query_limits_are_what_clients_need(void) {
    struct fx *f = fx_begin();
    const ND2_ADAPTER_INFO *i = &f->info;
    CHECK(i->MaxRegistrationSize >= MIB(1024));
    CHECK(i->MaxTransferLength >= MIB(64));
    CHECK(i->MaxInitiatorSge >= 8 && i->MaxReceiveSge >= 8 && i->MaxReadSge >= 1);
    CHECK(i->MaxReadSge <= i->MaxInitiatorSge);
    CHECK(i->MaxInboundReadLimit >= 16 && i->MaxInboundReadLimit <= 255);
    CHECK(i->MaxOutboundReadLimit >= 16 && i->MaxOutboundReadLimit <= 255);
    /* Tools use one depth for both queues and size their completion queue by it. */
    CHECK_EQ(i->MaxReceiveQueueDepth, i->MaxInitiatorQueueDepth);
    CHECK(i->MaxReceiveQueueDepth >= 512);
    CHECK(i->MaxReceiveQueueDepth % 2 == 1 || i->MaxReceiveQueueDepth >= 5296);
    CHECK(i->MaxCompletionQueueDepth >= 20480);
    CHECK(i->MaxCompletionQueueDepth >= i->MaxReceiveQueueDepth);
    CHECK(i->MaxSharedReceiveQueueDepth == 0 || i->MaxSharedReceiveQueueDepth >= 16);
    CHECK(i->InlineRequestThreshold <= i->MaxInlineDataSize);
    CHECK(i->MaxCallerData >= 56 && i->MaxCalleeData >= 56);
    CHECK(i->MaxCallerData <= 255 && i->MaxCalleeData <= 255);
    fx_end(f);
}

static void query_flags_promise_in_order_data_and_loopback(void) {
    struct fx *f = fx_begin();
    CHECK(f->info.AdapterFlags & ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED);
    CHECK(f->info.AdapterFlags & ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED);
    /* Version 2 has no method for it. */
    CHECK(!(f->info.AdapterFlags & ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED));
    fx_end(f);
}

/* ---- QueryAddressList ---- */

static void query_address_list_has_only_addresses_of_this_adapter(void) {
    struct fx *f = fx_begin();
    ULONG cb = 0;
    HRESULT hr;
    SOCKET_ADDRESS_LIST *list = NULL;
    CHECK_HR(CALL(f->host[0].adapter, QueryAddressList, NULL, &cb), ND_BUFFER_OVERFLOW);
    cb = 0;
    while ((hr = CALL(f->host[0].adapter, QueryAddressList, list, &cb)) == ND_BUFFER_OVERFLOW)
        list = fx_alloc(f, cb);
    CHECK_HR(hr, ND_SUCCESS);
    CHECK(list->iAddressCount > 0);
    bool own = false;
    for (INT i = 0; i < list->iAddressCount; i++) {
        UINT64 id = 0;
        const SOCKET_ADDRESS *a = &list->Address[i];
        CHECK_HR(CALL(f->provider, ResolveAddress, a->lpSockaddr, (ULONG)a->iSockaddrLength, &id),
                 ND_SUCCESS);
        CHECK_EQ(id, f->adapter_id);
        if (a->lpSockaddr->sa_family == f->local.ss_family) own = true;
    }
    CHECK(own);
    fx_end(f);
}

static void query_address_list_into_small_buffer_tells_the_size(void) {
    struct fx *f = fx_begin();
    ULONG cb = 0, room;
    CHECK_HR(CALL(f->host[0].adapter, QueryAddressList, NULL, &cb), ND_BUFFER_OVERFLOW);
    uint8_t *bytes = fx_alloc(f, cb);
    memset(bytes, 0xA5, cb);
    room = cb - 1;
    CHECK_HR(CALL(f->host[0].adapter, QueryAddressList, (SOCKET_ADDRESS_LIST *)bytes, &room),
             ND_BUFFER_OVERFLOW);
    CHECK_EQ(room, cb);
    for (ULONG i = 0; i < cb; i++)
        CHECK_EQ(bytes[i], 0xA5);
    fx_end(f);
}

/* ---- CreateOverlappedFile ---- */

static void create_overlapped_file_gives_handles_of_their_own(void) {
    struct fx *f = fx_begin();
    HANDLE one = NULL, two = NULL;
    CHECK_HR(CALL(f->host[0].adapter, CreateOverlappedFile, &one), ND_SUCCESS);
    CHECK_HR(CALL(f->host[0].adapter, CreateOverlappedFile, &two), ND_SUCCESS);
    CHECK(one && two && one != two);
    CHECK(CloseHandle(one));
    CHECK(CloseHandle(two));
    CHECK_FAILED(CALL(f->host[0].adapter, CreateOverlappedFile, NULL));
    fx_end(f);
}

/* ---- every Create method in one table, for what they have in common ---- */

struct maker {
    const char *name;
    const GUID *iid;
    bool is_overlapped; /* derives from IND2Overlapped */
    bool has_file;
    HRESULT (*make)(struct fx *f, const GUID *iid, HANDLE file, void **out);
};

static HRESULT make_cq(struct fx *f, const GUID *iid, HANDLE file, void **out) {
    return CALL(f->host[0].adapter, CreateCompletionQueue, iid, file, 4, 0, 0, out);
}
static HRESULT make_region(struct fx *f, const GUID *iid, HANDLE file, void **out) {
    return CALL(f->host[0].adapter, CreateMemoryRegion, iid, file, out);
}
static HRESULT make_window(struct fx *f, const GUID *iid, HANDLE file, void **out) {
    (void)file;
    return CALL(f->host[0].adapter, CreateMemoryWindow, iid, out);
}
static HRESULT make_srq(struct fx *f, const GUID *iid, HANDLE file, void **out) {
    return CALL(f->host[0].adapter, CreateSharedReceiveQueue, iid, file, 4, 1, 0, 0, 0, out);
}
static HRESULT make_connector(struct fx *f, const GUID *iid, HANDLE file, void **out) {
    return CALL(f->host[0].adapter, CreateConnector, iid, file, out);
}
static HRESULT make_listener(struct fx *f, const GUID *iid, HANDLE file, void **out) {
    return CALL(f->host[0].adapter, CreateListener, iid, file, out);
}
static HRESULT make_qp(struct fx *f, const GUID *iid, HANDLE file, void **out) {
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    (void)file;
    HRESULT hr = CALL(f->host[0].adapter, CreateQueuePair, iid, UNKNOWN(cq), UNKNOWN(cq), NULL, 2,
                      2, 1, 1, 0, out);
    fx_release(f, cq); /* the queue pair keeps it */
    return hr;
}
static HRESULT make_qp_with_srq(struct fx *f, const GUID *iid, HANDLE file, void **out) {
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    IND2SharedReceiveQueue *srq = fx_srq(f, 0, 4, 1, 0);
    (void)file;
    HRESULT hr = CALL(f->host[0].adapter, CreateQueuePairWithSrq, iid, UNKNOWN(cq), UNKNOWN(cq),
                      UNKNOWN(srq), NULL, 2, 1, 0, out);
    fx_release(f, srq);
    fx_release(f, cq);
    return hr;
}

static const struct maker makers[] = {
    { "CreateCompletionQueue", &IID_IND2CompletionQueue, true, true, make_cq },
    { "CreateMemoryRegion", &IID_IND2MemoryRegion, true, true, make_region },
    { "CreateMemoryWindow", &IID_IND2MemoryWindow, false, false, make_window },
    { "CreateSharedReceiveQueue", &IID_IND2SharedReceiveQueue, true, true, make_srq },
    { "CreateQueuePair", &IID_IND2QueuePair, false, false, make_qp },
    { "CreateQueuePairWithSrq", &IID_IND2QueuePair, false, false, make_qp_with_srq },
    { "CreateConnector", &IID_IND2Connector, true, true, make_connector },
    { "CreateListener", &IID_IND2Listener, true, true, make_listener },
};

/* The makers that this adapter has: all, or all but those of shared receive queues. */
static bool is_supported(const struct fx *f, const struct maker *m) {
    return f->info.MaxSharedReceiveQueueDepth > 0 ||
           (m->make != make_srq && m->make != make_qp_with_srq);
}

static void create_gives_an_object_with_one_reference(void) {
    struct fx *f = fx_begin();
    for (size_t i = 0; i < COUNT_OF(makers); i++) {
        void *object = NULL;
        if (!is_supported(f, &makers[i])) continue;
        printf("  %s\n", makers[i].name);
        CHECK_HR(makers[i].make(f, makers[i].iid, f->host[0].file, &object), ND_SUCCESS);
        CHECK_EQ(CALL(UNKNOWN(object), AddRef), 2);
        CHECK_EQ(CALL(UNKNOWN(object), Release), 1);
        CHECK_EQ(CALL(UNKNOWN(object), Release), 0);
    }
    fx_end(f);
}

static void query_interface_knows_own_base_and_iunknown(void) {
    struct fx *f = fx_begin();
    for (size_t i = 0; i < COUNT_OF(makers); i++) {
        void *object = NULL, *got = NULL;
        const struct maker *m = &makers[i];
        if (!is_supported(f, m)) continue;
        printf("  %s\n", m->name);
        CHECK_HR(m->make(f, m->iid, f->host[0].file, &object), ND_SUCCESS);
        IUnknown *u = object;
        CHECK_HR(CALL(u, QueryInterface, m->iid, &got), S_OK);
        CHECK_PTR(got, object);
        CHECK_EQ(CALL(u, Release), 1);
        CHECK_HR(CALL(u, QueryInterface, &IID_IUnknown, &got), S_OK);
        CHECK_EQ(CALL(UNKNOWN(got), Release), 1);
        got = (void *)1;
        HRESULT hr = CALL(u, QueryInterface, &IID_IND2Overlapped, &got);
        CHECK_HR(hr, m->is_overlapped ? S_OK : E_NOINTERFACE);
        if (hr == S_OK)
            CHECK_EQ(CALL(UNKNOWN(got), Release), 1);
        else
            CHECK_PTR(got, NULL);
        got = (void *)1;
        CHECK_HR(CALL(u, QueryInterface, &other_id, &got), E_NOINTERFACE);
        CHECK_PTR(got, NULL);
        CHECK_HR(CALL(u, QueryInterface, &IID_IUnknown, NULL), E_POINTER);
        CHECK_EQ(CALL(u, Release), 0);
    }
    fx_end(f);
}

static void query_interface_of_adapter_knows_own_and_iunknown(void) {
    struct fx *f = fx_begin();
    void *got = NULL;
    CHECK_HR(CALL(f->host[0].adapter, QueryInterface, &IID_IND2Adapter, &got), S_OK);
    CHECK_PTR(got, f->host[0].adapter);
    CHECK_EQ(CALL(UNKNOWN(got), Release), 1);
    CHECK_HR(CALL(f->host[0].adapter, QueryInterface, &IID_IUnknown, &got), S_OK);
    CHECK_EQ(CALL(UNKNOWN(got), Release), 1);
    CHECK_HR(CALL(f->host[0].adapter, QueryInterface, &IID_IND2Provider, &got), E_NOINTERFACE);
    CHECK_PTR(got, NULL);
    fx_end(f);
}

static void create_of_unknown_iid_has_no_interface(void) {
    struct fx *f = fx_begin();
    for (size_t i = 0; i < COUNT_OF(makers); i++) {
        void *object = (void *)1;
        if (!is_supported(f, &makers[i])) continue;
        printf("  %s\n", makers[i].name);
        CHECK_HR(makers[i].make(f, &other_id, f->host[0].file, &object), E_NOINTERFACE);
        CHECK_PTR(object, NULL);
        CHECK_HR(makers[i].make(f, makers[i].iid, f->host[0].file, NULL), E_POINTER);
    }
    fx_end(f);
}

static void create_with_a_bad_file_is_an_invalid_handle(void) {
    struct fx *f = fx_begin();
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
    HANDLE bad[] = { NULL, INVALID_HANDLE_VALUE, event };
    for (size_t i = 0; i < COUNT_OF(makers); i++) {
        if (!makers[i].has_file || !is_supported(f, &makers[i])) continue;
        printf("  %s\n", makers[i].name);
        for (size_t n = 0; n < COUNT_OF(bad); n++) {
            void *object = (void *)1;
            CHECK_HR(makers[i].make(f, makers[i].iid, bad[n], &object), ND_INVALID_HANDLE);
            CHECK_PTR(object, NULL);
        }
    }
    CloseHandle(event);
    fx_end(f);
}

static void create_on_a_file_closed_since_keeps_working(void) {
    struct fx *f = fx_begin();
    HANDLE file = NULL;
    CHECK_HR(CALL(f->host[0].adapter, CreateOverlappedFile, &file), ND_SUCCESS);
    void *objects[COUNT_OF(makers)] = { NULL };
    for (size_t i = 0; i < COUNT_OF(makers); i++)
        if (makers[i].has_file && is_supported(f, &makers[i]))
            CHECK_HR(makers[i].make(f, makers[i].iid, file, &objects[i]), ND_SUCCESS);
    CHECK(CloseHandle(file));
    static char byte[64];
    IND2MemoryRegion *region = objects[1];
    CHECK_HR(RUN(f, region, Register, byte, sizeof byte, ND_MR_FLAG_ALLOW_LOCAL_WRITE, fx_run_ov),
             ND_SUCCESS);
    for (size_t i = 0; i < COUNT_OF(makers); i++)
        if (objects[i]) CHECK_EQ(CALL(UNKNOWN(objects[i]), Release), 0);
    fx_end(f);
}

/* ---- limits ---- */

static void create_completion_queue_accepts_1_to_the_maximum(void) {
    struct fx *f = fx_begin();
    ULONG depths[] = { 1, 2, 160, 4096, 20480, f->info.MaxCompletionQueueDepth };
    for (size_t i = 0; i < COUNT_OF(depths); i++)
        CHECK_EQ(fx_release(f, fx_cq(f, 0, depths[i])), 0);
    fx_end(f);
}

static void create_completion_queue_of_wrong_depth_names_parameter_3(void) {
    struct fx *f = fx_begin();
    ULONG depths[] = { 0, f->info.MaxCompletionQueueDepth + 1, 0xFFFFFFFF };
    for (size_t i = 0; i < COUNT_OF(depths); i++) {
        void *cq = (void *)1;
        CHECK_HR(CALL(f->host[0].adapter, CreateCompletionQueue, &IID_IND2CompletionQueue,
                      f->host[0].file, depths[i], 0, 0, &cq),
                 ND_INVALID_PARAMETER_3);
        CHECK_PTR(cq, NULL);
    }
    fx_end(f);
}

static void create_completion_queue_ignores_an_impossible_affinity(void) {
    struct fx *f = fx_begin();
    void *cq = NULL;
    CHECK_HR(CALL(f->host[0].adapter, CreateCompletionQueue, &IID_IND2CompletionQueue,
                  f->host[0].file, 4, 0, ~(KAFFINITY)0, &cq),
             ND_SUCCESS);
    CHECK_EQ(CALL(UNKNOWN(cq), Release), 0);
    fx_end(f);
}

static HRESULT try_srq(struct fx *f, ULONG depth, ULONG sge) {
    void *srq = NULL;
    HRESULT hr = CALL(f->host[0].adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue,
                      f->host[0].file, depth, sge, 0, 0, 0, &srq);
    if (srq) CALL(UNKNOWN(srq), Release);
    return hr;
}

static void create_shared_receive_queue_checks_depth_and_sge(void) {
    struct fx *f = fx_begin();
    ULONG most = f->info.MaxSharedReceiveQueueDepth;
    if (most == 0) {
        CHECK_HR(try_srq(f, 4, 1), ND_NOT_SUPPORTED);
        SKIP("the adapter has no shared receive queues");
    }
    CHECK_HR(try_srq(f, 1, 1), ND_SUCCESS);
    CHECK_HR(try_srq(f, most, f->info.MaxReceiveSge), ND_SUCCESS);
    CHECK_HR(try_srq(f, 0, 1), ND_INVALID_PARAMETER_3);
    CHECK_HR(try_srq(f, most + 1, 1), ND_INVALID_PARAMETER_3);
    CHECK_HR(try_srq(f, 4, f->info.MaxReceiveSge + 1), ND_INVALID_PARAMETER_4);
    fx_end(f);
}

/* Depths and SGEs: receive, initiator; inline bytes. */
static HRESULT try_qp(struct fx *f, IND2CompletionQueue *cq, ULONG rd, ULONG id, ULONG rs, ULONG is,
                      ULONG inline_bytes) {
    void *qp = NULL;
    HRESULT hr = CALL(f->host[0].adapter, CreateQueuePair, &IID_IND2QueuePair, UNKNOWN(cq),
                      UNKNOWN(cq), NULL, rd, id, rs, is, inline_bytes, &qp);
    if (qp) CALL(UNKNOWN(qp), Release);
    return hr;
}

static void create_queue_pair_checks_every_limit(void) {
    struct fx *f = fx_begin();
    const ND2_ADAPTER_INFO *i = &f->info;
    IND2CompletionQueue *cq = fx_cq(f, 0, 2); /* may be smaller than what it serves */
    CHECK_HR(try_qp(f, cq, 64, 64, 2, 2, 0), ND_SUCCESS);
    CHECK_HR(try_qp(f, cq, i->MaxReceiveQueueDepth + 1, 1, 1, 1, 0), ND_INVALID_PARAMETER_5);
    CHECK_HR(try_qp(f, cq, 1, i->MaxInitiatorQueueDepth + 1, 1, 1, 0), ND_INVALID_PARAMETER_6);
    CHECK_HR(try_qp(f, cq, 1, 1, i->MaxReceiveSge + 1, 1, 0), ND_INVALID_PARAMETER_7);
    CHECK_HR(try_qp(f, cq, 1, 1, 1, i->MaxInitiatorSge + 1, 0), ND_INVALID_PARAMETER_8);
    CHECK_HR(try_qp(f, cq, 1, 1, 1, 1, i->MaxInlineDataSize + 1), ND_INVALID_PARAMETER_9);
    CHECK_HR(try_qp(f, cq, 0xFFFFFFFF, 1, 1, 1, 0), ND_INVALID_PARAMETER_5);
    CHECK_HR(try_qp(f, cq, 1, 0xFFFFFFFF, 1, 1, 0), ND_INVALID_PARAMETER_6);
    fx_end(f);
}

static void create_queue_pair_with_all_maxima_succeeds(void) {
    struct fx *f = fx_begin();
    const ND2_ADAPTER_INFO *i = &f->info;
    IND2CompletionQueue *cq = fx_cq(f, 0, 2);
    CHECK_HR(try_qp(f, cq, i->MaxReceiveQueueDepth, i->MaxInitiatorQueueDepth, i->MaxReceiveSge,
                    i->MaxInitiatorSge, i->MaxInlineDataSize),
             ND_SUCCESS);
    CHECK_HR(try_qp(f, cq, 1, 1, 1, 1, i->InlineRequestThreshold), ND_SUCCESS);
    fx_end(f);
}

static void create_queue_pair_with_zeros_succeeds(void) {
    struct fx *f = fx_begin();
    CHECK_HR(try_qp(f, fx_cq(f, 0, 2), 0, 0, 0, 0, 0), ND_SUCCESS);
    fx_end(f);
}

static void create_queue_pair_refuses_foreign_completion_queues(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *own = fx_cq(f, 0, 2), *foreign = fx_cq(f, 1, 2);
    IUnknown *bad[] = { NULL, &stranger, UNKNOWN(foreign), UNKNOWN(f->host[0].adapter),
                        UNKNOWN(fx_connector(f, 0)) };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        void *qp = (void *)1;
        CHECK_HR(CALL(f->host[0].adapter, CreateQueuePair, &IID_IND2QueuePair, bad[i], UNKNOWN(own),
                      NULL, 1, 1, 1, 1, 0, &qp),
                 ND_INVALID_PARAMETER_2);
        CHECK_PTR(qp, NULL);
        qp = (void *)1;
        CHECK_HR(CALL(f->host[0].adapter, CreateQueuePair, &IID_IND2QueuePair, UNKNOWN(own), bad[i],
                      NULL, 1, 1, 1, 1, 0, &qp),
                 ND_INVALID_PARAMETER_3);
        CHECK_PTR(qp, NULL);
    }
    fx_end(f);
}

static void create_queue_pair_takes_any_interface_of_a_queue(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 2);
    void *base = NULL, *unknown = NULL, *qp = NULL;
    CHECK_HR(CALL(cq, QueryInterface, &IID_IND2Overlapped, &base), S_OK);
    CHECK_HR(CALL(cq, QueryInterface, &IID_IUnknown, &unknown), S_OK);
    CHECK_HR(CALL(f->host[0].adapter, CreateQueuePair, &IID_IND2QueuePair, base, unknown, NULL, 1,
                  1, 1, 1, 0, &qp),
             ND_SUCCESS);
    CHECK_EQ(CALL(UNKNOWN(qp), Release), 0);
    CALL(UNKNOWN(base), Release);
    CALL(UNKNOWN(unknown), Release);
    fx_end(f);
}

static HRESULT try_qp_srq(struct fx *f, IUnknown *rcq, IUnknown *icq, IUnknown *srq, ULONG depth,
                          ULONG sge, ULONG inline_bytes) {
    void *qp = NULL;
    HRESULT hr = CALL(f->host[0].adapter, CreateQueuePairWithSrq, &IID_IND2QueuePair, rcq, icq, srq,
                      NULL, depth, sge, inline_bytes, &qp);
    if (qp) CALL(UNKNOWN(qp), Release);
    return hr;
}

static void create_queue_pair_with_srq_checks_every_parameter(void) {
    struct fx *f = fx_begin();
    const ND2_ADAPTER_INFO *i = &f->info;
    if (i->MaxSharedReceiveQueueDepth == 0) SKIP("the adapter has no shared receive queues");
    IUnknown *cq = UNKNOWN(fx_cq(f, 0, 2)), *srq = UNKNOWN(fx_srq(f, 0, 4, 1, 0));
    IUnknown *foreign_cq = UNKNOWN(fx_cq(f, 1, 2)), *foreign_srq = UNKNOWN(fx_srq(f, 1, 4, 1, 0));
    CHECK_HR(try_qp_srq(f, cq, cq, srq, 1, 1, 0), ND_SUCCESS);
    CHECK_HR(try_qp_srq(f, cq, cq, srq, i->MaxInitiatorQueueDepth, i->MaxInitiatorSge,
                        i->MaxInlineDataSize),
             ND_SUCCESS);
    CHECK_HR(try_qp_srq(f, NULL, cq, srq, 1, 1, 0), ND_INVALID_PARAMETER_2);
    CHECK_HR(try_qp_srq(f, &stranger, cq, srq, 1, 1, 0), ND_INVALID_PARAMETER_2);
    CHECK_HR(try_qp_srq(f, foreign_cq, cq, srq, 1, 1, 0), ND_INVALID_PARAMETER_2);
    CHECK_HR(try_qp_srq(f, cq, NULL, srq, 1, 1, 0), ND_INVALID_PARAMETER_3);
    CHECK_HR(try_qp_srq(f, cq, foreign_cq, srq, 1, 1, 0), ND_INVALID_PARAMETER_3);
    CHECK_HR(try_qp_srq(f, cq, cq, NULL, 1, 1, 0), ND_INVALID_PARAMETER_4);
    CHECK_HR(try_qp_srq(f, cq, cq, &stranger, 1, 1, 0), ND_INVALID_PARAMETER_4);
    CHECK_HR(try_qp_srq(f, cq, cq, cq, 1, 1, 0), ND_INVALID_PARAMETER_4);
    CHECK_HR(try_qp_srq(f, cq, cq, foreign_srq, 1, 1, 0), ND_INVALID_PARAMETER_4);
    CHECK_HR(try_qp_srq(f, cq, cq, srq, i->MaxInitiatorQueueDepth + 1, 1, 0),
             ND_INVALID_PARAMETER_6);
    CHECK_HR(try_qp_srq(f, cq, cq, srq, 1, i->MaxInitiatorSge + 1, 0), ND_INVALID_PARAMETER_7);
    CHECK_HR(try_qp_srq(f, cq, cq, srq, 1, 1, i->MaxInlineDataSize + 1), ND_INVALID_PARAMETER_8);
    fx_end(f);
}

CONFORM_MAIN(
    TEST(query_without_buffer_tells_the_size), TEST(query_into_small_buffer_writes_nothing),
    TEST(query_into_large_buffer_succeeds), TEST(query_accepts_version_1_and_2_and_returns_it),
    TEST(query_of_unknown_version_is_an_invalid_parameter),
    TEST(query_limits_are_what_clients_need), TEST(query_flags_promise_in_order_data_and_loopback),
    TEST(query_address_list_has_only_addresses_of_this_adapter),
    TEST(query_address_list_into_small_buffer_tells_the_size),
    TEST(create_overlapped_file_gives_handles_of_their_own),
    TEST(create_gives_an_object_with_one_reference),
    TEST(query_interface_knows_own_base_and_iunknown),
    TEST(query_interface_of_adapter_knows_own_and_iunknown),
    TEST(create_of_unknown_iid_has_no_interface), TEST(create_with_a_bad_file_is_an_invalid_handle),
    TEST(create_on_a_file_closed_since_keeps_working),
    TEST(create_completion_queue_accepts_1_to_the_maximum),
    TEST(create_completion_queue_of_wrong_depth_names_parameter_3),
    TEST(create_completion_queue_ignores_an_impossible_affinity),
    TEST(create_shared_receive_queue_checks_depth_and_sge),
    TEST(create_queue_pair_checks_every_limit), TEST(create_queue_pair_with_all_maxima_succeeds),
    TEST(create_queue_pair_with_zeros_succeeds),
    TEST(create_queue_pair_refuses_foreign_completion_queues),
    TEST(create_queue_pair_takes_any_interface_of_a_queue),
    TEST(create_queue_pair_with_srq_checks_every_parameter))
