/* SPDX-License-Identifier: MIT
 * object_test.c - reference counts, identity, foreign objects, and when the module may go.
 */
#include <initguid.h>
#include "os/prim/fault.h"
#include "rig.h"

/* Every IID of the SPI, one bit each. */
enum {
    I_UNKNOWN = 1,
    I_OVERLAPPED = 2,
    I_CQ = 4,
    I_SRQ = 8,
    I_MW = 16,
    I_MR = 32,
    I_QP = 64,
    I_CONNECTOR = 128,
    I_LISTENER = 256,
    I_ADAPTER = 512,
    I_PROVIDER = 1024,
    I_FACTORY = 2048
};
static const struct {
    const IID *iid;
    unsigned bit;
} iids[] = {
    { &IID_IUnknown, I_UNKNOWN },       { &IID_IND2Overlapped, I_OVERLAPPED },
    { &IID_IND2CompletionQueue, I_CQ }, { &IID_IND2SharedReceiveQueue, I_SRQ },
    { &IID_IND2MemoryWindow, I_MW },    { &IID_IND2MemoryRegion, I_MR },
    { &IID_IND2QueuePair, I_QP },       { &IID_IND2Connector, I_CONNECTOR },
    { &IID_IND2Listener, I_LISTENER },  { &IID_IND2Adapter, I_ADAPTER },
    { &IID_IND2Provider, I_PROVIDER },  { &IID_IClassFactory, I_FACTORY },
};

/* The object answers exactly these interfaces, all by the same pointer, and counts them. */
static void check_interfaces(void *object, unsigned expected) {
    IUnknown *u = object;
    for (size_t i = 0; i < SN_ARRAY_LEN(iids); i++) {
        void *p = &p;
        HRESULT hr = IUnknown_QueryInterface(u, iids[i].iid, &p);
        if (expected & iids[i].bit) {
            CHECK_EQ(hr, S_OK);
            CHECK_PTR(p, object);
            CHECK_EQ(IUnknown_Release(u), 1);
        } else {
            CHECK_EQ(hr, E_NOINTERFACE);
            CHECK_PTR(p, NULL);
        }
    }
    CHECK_EQ(IUnknown_QueryInterface(u, &IID_IUnknown, NULL), E_POINTER);
    CHECK_EQ(IUnknown_AddRef(u), 2);
    CHECK_EQ(IUnknown_Release(u), 1);
}

static void query_interface_answers_own_and_base_only(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2SharedReceiveQueue *srq = rig_srq(&r);
    IND2MemoryRegion *mr = rig_region(&r);
    IND2MemoryWindow *mw = rig_window(&r);
    IND2QueuePair *qp = rig_qp(&r, cq);
    IND2Connector *c = rig_connector(&r);
    IND2Listener *l = rig_listener(&r);
    IClassFactory *f;
    CHECK_EQ(DllGetClassObject(&CLSID_SoftNdProvider, &IID_IClassFactory, (void **)&f), S_OK);
    check_interfaces(cq, I_UNKNOWN | I_OVERLAPPED | I_CQ);
    check_interfaces(srq, I_UNKNOWN | I_OVERLAPPED | I_SRQ);
    check_interfaces(mr, I_UNKNOWN | I_OVERLAPPED | I_MR);
    check_interfaces(mw, I_UNKNOWN | I_MW);
    check_interfaces(qp, I_UNKNOWN | I_QP);
    check_interfaces(c, I_UNKNOWN | I_OVERLAPPED | I_CONNECTOR);
    check_interfaces(l, I_UNKNOWN | I_OVERLAPPED | I_LISTENER);
    check_interfaces(r.adapter, I_UNKNOWN | I_ADAPTER);
    check_interfaces(f, I_UNKNOWN | I_FACTORY);
    CHECK_EQ(IClassFactory_Release(f), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    CHECK_EQ(IND2SharedReceiveQueue_Release(srq), 0);
    CHECK_EQ(IND2MemoryRegion_Release(mr), 0);
    CHECK_EQ(IND2MemoryWindow_Release(mw), 0);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(IND2Connector_Release(c), 0);
    CHECK_EQ(IND2Listener_Release(l), 0);
    rig_close(&r);
}

static void children_keep_working_whatever_is_released_first(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2QueuePair *qp = rig_qp(&r, cq);
    CHECK_EQ(IND2Adapter_Release(r.adapter), 0);
    CHECK_EQ(IND2Provider_Release(r.provider), 0);
    CHECK_EQ(DllCanUnloadNow(), S_FALSE);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    CHECK_EQ(IND2QueuePair_Flush(qp), ND_SUCCESS);
    CHECK_EQ(DllCanUnloadNow(), S_FALSE);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(CloseHandle(r.file), TRUE);
    CHECK_EQ(DllCanUnloadNow(), S_OK);
    CHECK_EQ(fake.objects, 0);
}

static void provider_count_is_one_while_an_adapter_lives(void) {
    fake_reset();
    IND2Provider *p;
    IND2Adapter *a, *b;
    CHECK_EQ(DllGetClassObject(&CLSID_SoftNdProvider, &IID_IND2Provider, (void **)&p), S_OK);
    CHECK_EQ(IND2Provider_OpenAdapter(p, &IID_IND2Adapter, FAKE_ADAPTER_ID, (void **)&a), 0);
    CHECK_EQ(IND2Provider_Release(p), 1);
    CHECK_EQ(IND2Provider_AddRef(p), 2);
    CHECK_EQ(IND2Provider_OpenAdapter(p, &IID_IUnknown, FAKE_ADAPTER_ID, (void **)&b), 0);
    CHECK_EQ(IND2Adapter_Release(a), 0);
    CHECK_EQ(IND2Adapter_Release(b), 0);
    CHECK_EQ(IND2Provider_Release(p), 0);
    CHECK_EQ(DllCanUnloadNow(), S_OK);
}

static void class_object_takes_both_forms(void) {
    fake_reset();
    void *p = &p;
    GUID other = CLSID_SoftNdProvider;
    other.Data1++;
    CHECK_EQ(DllGetClassObject(&other, &IID_IND2Provider, &p), CLASS_E_CLASSNOTAVAILABLE);
    CHECK_PTR(p, NULL);
    p = &p;
    CHECK_EQ(DllGetClassObject(&CLSID_SoftNdProvider, &IID_IND2Adapter, &p), E_NOINTERFACE);
    CHECK_PTR(p, NULL);
    CHECK_EQ(DllGetClassObject(&CLSID_SoftNdProvider, &IID_IND2Provider, NULL), E_POINTER);
    CHECK_EQ(DllGetClassObject(&CLSID_SoftNdProvider, &IID_IUnknown, &p), S_OK);
    CHECK_EQ(IUnknown_Release((IUnknown *)p), 0);
    IClassFactory *f;
    CHECK_EQ(DllGetClassObject(&CLSID_SoftNdProvider, &IID_IClassFactory, (void **)&f), S_OK);
    CHECK_EQ(DllCanUnloadNow(), S_FALSE);
    p = &p;
    CHECK_EQ(IClassFactory_CreateInstance(f, (IUnknown *)f, &IID_IND2Provider, &p),
             CLASS_E_NOAGGREGATION);
    CHECK_PTR(p, NULL);
    p = &p;
    CHECK_EQ(IClassFactory_CreateInstance(f, NULL, &IID_IND2Listener, &p), E_NOINTERFACE);
    CHECK_PTR(p, NULL);
    CHECK_EQ(IClassFactory_CreateInstance(f, NULL, &IID_IND2Provider, NULL), E_POINTER);
    CHECK_EQ(IClassFactory_CreateInstance(f, NULL, &IID_IND2Provider, &p), S_OK);
    CHECK_EQ(IClassFactory_Release(f), 0);
    CHECK_EQ(IND2Provider_Release((IND2Provider *)p), 0);
    CHECK_EQ(DllCanUnloadNow(), S_OK);
}

static void server_lock_keeps_the_module(void) {
    fake_reset();
    IClassFactory *f;
    CHECK_EQ(DllGetClassObject(&CLSID_SoftNdProvider, &IID_IClassFactory, (void **)&f), S_OK);
    CHECK_EQ(IClassFactory_LockServer(f, TRUE), S_OK);
    CHECK_EQ(IClassFactory_LockServer(f, TRUE), S_OK);
    CHECK_EQ(IClassFactory_LockServer(f, FALSE), S_OK);
    CHECK_EQ(IClassFactory_Release(f), 0);
    CHECK_EQ(DllCanUnloadNow(), S_FALSE);
    CHECK_EQ(DllGetClassObject(&CLSID_SoftNdProvider, &IID_IClassFactory, (void **)&f), S_OK);
    CHECK_EQ(IClassFactory_LockServer(f, FALSE), S_OK);
    CHECK_EQ(IClassFactory_LockServer(f, FALSE), E_UNEXPECTED); /* one too many */
    CHECK_EQ(IClassFactory_Release(f), 0);
    CHECK_EQ(DllCanUnloadNow(), S_OK);
}

static void adapter_of_unknown_id_or_iid_is_refused(void) {
    struct rig r = rig_open();
    void *p = &p;
    CHECK_EQ(IND2Provider_OpenAdapter(r.provider, &IID_IND2Adapter, 8, &p), ND_INVALID_PARAMETER);
    CHECK_PTR(p, NULL);
    p = &p;
    CHECK_EQ(IND2Provider_OpenAdapter(r.provider, &IID_IND2QueuePair, FAKE_ADAPTER_ID, &p),
             E_NOINTERFACE);
    CHECK_PTR(p, NULL);
    CHECK_EQ(IND2Provider_OpenAdapter(r.provider, &IID_IND2Adapter, FAKE_ADAPTER_ID, NULL),
             E_POINTER);
    fake.next = SN_E_NOMEM;
    CHECK_EQ(IND2Provider_OpenAdapter(r.provider, &IID_IND2Adapter, FAKE_ADAPTER_ID, &p),
             ND_NO_MEMORY);
    rig_close(&r);
}

/* ---- foreign objects: their methods end the test program ---- */

static HRESULT foreign_query(IUnknown *This, REFIID iid, void **ppv) {
    (void)This;
    (void)iid;
    (void)ppv;
    abort();
}
static ULONG foreign_count(IUnknown *This) {
    (void)This;
    abort();
}
static IUnknownVtbl foreign_vtbl = { foreign_query, foreign_count, foreign_count };
static IUnknown foreign = { &foreign_vtbl };

static HRESULT make_qp(struct rig *r, void *rcq, void *icq, void **out) {
    return IND2Adapter_CreateQueuePair(r->adapter, &IID_IND2QueuePair, rcq, icq, NULL, 4, 4, 1, 1,
                                       0, out);
}

static HRESULT make_srq_qp(struct rig *r, void *rcq, void *icq, void *srq, void **out) {
    return IND2Adapter_CreateQueuePairWithSrq(r->adapter, &IID_IND2QueuePair, rcq, icq, srq, NULL,
                                              4, 1, 0, out);
}

static void foreign_objects_are_refused_by_position(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2SharedReceiveQueue *srq = rig_srq(&r);
    IND2MemoryRegion *mr = rig_region(&r);
    IND2MemoryWindow *mw = rig_window(&r);
    IND2QueuePair *qp = rig_qp(&r, cq);
    IND2Connector *c = rig_connector(&r);
    IND2Listener *l = rig_listener(&r);
    OVERLAPPED ov = { 0 };
    struct sockaddr_in sa = { .sin_family = AF_INET };
    /* Another vendor's, none, into nowhere, one of ours of another class. */
    void *bad[] = { &foreign, NULL, nowhere(), r.provider };
    for (size_t i = 0; i < SN_ARRAY_LEN(bad); i++) {
        void *b = bad[i], *p = &p;
        CHECK_EQ(make_qp(&r, b, cq, &p), ND_INVALID_PARAMETER_2);
        CHECK_PTR(p, NULL);
        CHECK_EQ(make_qp(&r, cq, b, &p), ND_INVALID_PARAMETER_3);
        CHECK_EQ(make_srq_qp(&r, b, cq, srq, &p), ND_INVALID_PARAMETER_2);
        CHECK_EQ(make_srq_qp(&r, cq, b, srq, &p), ND_INVALID_PARAMETER_3);
        CHECK_EQ(make_srq_qp(&r, cq, cq, b, &p), ND_INVALID_PARAMETER_4);
        CHECK_EQ(IND2QueuePair_Bind(qp, NULL, b, (IUnknown *)mw, &ov, 1, 0),
                 ND_INVALID_PARAMETER_2);
        CHECK_EQ(IND2QueuePair_Bind(qp, NULL, (IUnknown *)mr, b, &ov, 1, 0),
                 ND_INVALID_PARAMETER_3);
        CHECK_EQ(IND2QueuePair_Invalidate(qp, NULL, b, 0), ND_INVALID_PARAMETER_2);
        CHECK_EQ(IND2Connector_Connect(c, b, (struct sockaddr *)&sa, sizeof sa, 0, 0, NULL, 0, &ov),
                 ND_INVALID_PARAMETER_1);
        CHECK_EQ(IND2Connector_Accept(c, b, 0, 0, NULL, 0, &ov), ND_INVALID_PARAMETER_1);
        CHECK_EQ(IND2Listener_GetConnectionRequest(l, b, &ov), ND_INVALID_PARAMETER_1);
        ULONG cb = 0;
        CHECK_EQ(SoftNdQueryTransport(b, NULL, &cb), ND_INVALID_PARAMETER_1);
        CHECK_EQ(SoftNdQueryCounters(b, NULL, &cb), ND_INVALID_PARAMETER_1);
    }
    CHECK_EQ(fake_pending(), 0);
    IND2Listener_Release(l);
    IND2Connector_Release(c);
    IND2QueuePair_Release(qp);
    IND2MemoryWindow_Release(mw);
    IND2MemoryRegion_Release(mr);
    IND2SharedReceiveQueue_Release(srq);
    IND2CompletionQueue_Release(cq);
    rig_close(&r);
}

static void objects_of_another_adapter_instance_are_refused(void) {
    struct rig r = rig_open();
    IND2Adapter *other;
    CHECK_EQ(
        IND2Provider_OpenAdapter(r.provider, &IID_IND2Adapter, FAKE_ADAPTER_ID, (void **)&other),
        ND_SUCCESS);
    struct rig r2 = { r.provider, other, r.file };
    IND2CompletionQueue *cq = rig_cq(&r), *cq2 = rig_cq(&r2);
    IND2QueuePair *qp = rig_qp(&r, cq);
    IND2MemoryRegion *mr = rig_region(&r), *mr2 = rig_region(&r2);
    IND2MemoryWindow *mw2 = rig_window(&r2);
    IND2Connector *c2 = rig_connector(&r2);
    IND2Listener *l = rig_listener(&r);
    OVERLAPPED ov = { 0 };
    void *p;
    CHECK_EQ(make_qp(&r, cq2, cq, &p), ND_INVALID_PARAMETER_2);
    CHECK_EQ(make_qp(&r, cq, cq2, &p), ND_INVALID_PARAMETER_3);
    CHECK_EQ(IND2QueuePair_Bind(qp, NULL, (IUnknown *)mr2, (IUnknown *)mw2, &ov, 1, 0),
             ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2QueuePair_Bind(qp, NULL, (IUnknown *)mr, (IUnknown *)mw2, &ov, 1, 0),
             ND_INVALID_PARAMETER_3);
    CHECK_EQ(IND2Connector_Accept(c2, (IUnknown *)qp, 0, 0, NULL, 0, &ov), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2Listener_GetConnectionRequest(l, (IUnknown *)c2, &ov), ND_INVALID_PARAMETER_1);
    IND2Listener_Release(l);
    IND2Connector_Release(c2);
    IND2MemoryWindow_Release(mw2);
    IND2MemoryRegion_Release(mr2);
    IND2MemoryRegion_Release(mr);
    IND2QueuePair_Release(qp);
    IND2CompletionQueue_Release(cq2);
    IND2CompletionQueue_Release(cq);
    CHECK_EQ(IND2Adapter_Release(other), 0);
    rig_close(&r);
}

/* ---- creation ---- */

typedef HRESULT make_fn(struct rig *r, REFIID iid, HANDLE file, void **out);
static HRESULT make_cq(struct rig *r, REFIID iid, HANDLE file, void **out) {
    return IND2Adapter_CreateCompletionQueue(r->adapter, iid, file, 1, 0, 0, out);
}
static HRESULT make_srq(struct rig *r, REFIID iid, HANDLE file, void **out) {
    return IND2Adapter_CreateSharedReceiveQueue(r->adapter, iid, file, 1, 1, 0, 0, 0, out);
}
static HRESULT make_mr(struct rig *r, REFIID iid, HANDLE file, void **out) {
    return IND2Adapter_CreateMemoryRegion(r->adapter, iid, file, out);
}
static HRESULT make_connector(struct rig *r, REFIID iid, HANDLE file, void **out) {
    return IND2Adapter_CreateConnector(r->adapter, iid, file, out);
}
static HRESULT make_listener(struct rig *r, REFIID iid, HANDLE file, void **out) {
    return IND2Adapter_CreateListener(r->adapter, iid, file, out);
}
static HRESULT make_window(struct rig *r, REFIID iid, HANDLE file, void **out) {
    (void)file;
    return IND2Adapter_CreateMemoryWindow(r->adapter, iid, out);
}
static const struct {
    make_fn *make;
    const IID *iid;
    bool overlapped;
} makers[] = {
    { make_cq, &IID_IND2CompletionQueue, true }, { make_srq, &IID_IND2SharedReceiveQueue, true },
    { make_mr, &IID_IND2MemoryRegion, true },    { make_connector, &IID_IND2Connector, true },
    { make_listener, &IID_IND2Listener, true },  { make_window, &IID_IND2MemoryWindow, false },
};

static void create_checks_iid_pointer_and_handle(void) {
    struct rig r = rig_open();
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL);
    HANDLE bad[] = { NULL, INVALID_HANDLE_VALUE, event, nowhere(), &r };
    for (size_t i = 0; i < SN_ARRAY_LEN(makers); i++) {
        void *p = &p;
        CHECK_EQ(makers[i].make(&r, &IID_IND2Provider, r.file, &p), E_NOINTERFACE);
        CHECK_PTR(p, NULL);
        CHECK_EQ(makers[i].make(&r, makers[i].iid, r.file, NULL), E_POINTER);
        for (size_t b = 0; makers[i].overlapped && b < SN_ARRAY_LEN(bad); b++) {
            p = &p;
            CHECK_EQ(makers[i].make(&r, makers[i].iid, bad[b], &p), ND_INVALID_HANDLE);
            CHECK_PTR(p, NULL);
        }
        CHECK_EQ(makers[i].make(&r, &IID_IUnknown, r.file, &p), ND_SUCCESS);
        CHECK_EQ(IUnknown_Release((IUnknown *)p), 0);
        HRESULT hr = makers[i].make(&r, &IID_IND2Overlapped, r.file, &p);
        CHECK_EQ(hr, makers[i].overlapped ? ND_SUCCESS : E_NOINTERFACE);
        if (hr == ND_SUCCESS) CHECK_EQ(IUnknown_Release((IUnknown *)p), 0);
    }
    CloseHandle(event);
    rig_close(&r);
}

static void create_that_the_core_refuses_leaves_nothing(void) {
    static const struct {
        sn_status st;
        HRESULT hr;
    } causes[] = {
        { SN_E_RESOURCES, ND_INSUFFICIENT_RESOURCES },
        { SN_E_REMOVED, ND_DEVICE_REMOVED },
    };
    struct rig r = rig_open();
    for (size_t i = 0; i < SN_ARRAY_LEN(makers); i++)
        for (size_t k = 0; k < SN_ARRAY_LEN(causes); k++) {
            void *p = &p;
            fake.next = causes[k].st;
            CHECK_EQ(makers[i].make(&r, makers[i].iid, r.file, &p), causes[k].hr);
            CHECK_PTR(p, NULL);
        }
    rig_close(&r);
}

static void create_without_memory_says_so_and_leaves_nothing(void) {
    if (!os_fault_available()) SKIP("this build has no fault injection");
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    for (size_t i = 0; i <= SN_ARRAY_LEN(makers); i++)
        for (int64_t n = 0;; n++) {
            void *p = &p;
            os_fault_arm(OS_FAULT_ALLOC, n);
            HRESULT hr = i < SN_ARRAY_LEN(makers) ? makers[i].make(&r, makers[i].iid, r.file, &p)
                                                  : make_qp(&r, cq, cq, &p);
            bool fired = os_fault_fired(OS_FAULT_ALLOC);
            os_fault_arm(OS_FAULT_ALLOC, -1);
            if (!fired) {
                CHECK_EQ(hr, ND_SUCCESS);
                CHECK(n > 0);
                CHECK_EQ(IUnknown_Release((IUnknown *)p), 0);
                break;
            }
            CHECK(hr == ND_NO_MEMORY || hr == ND_INSUFFICIENT_RESOURCES);
            CHECK_PTR(p, NULL);
        }
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

static void queue_pair_faults_name_the_parameter(void) {
    static const struct {
        enum rd_qp_attr_fault fault;
        HRESULT plain, with_srq;
    } faults[] = {
        { RD_QP_ATTR_RECEIVE_CQ, ND_INVALID_PARAMETER_2, ND_INVALID_PARAMETER_2 },
        { RD_QP_ATTR_INITIATOR_CQ, ND_INVALID_PARAMETER_3, ND_INVALID_PARAMETER_3 },
        { RD_QP_ATTR_INITIATOR_DEPTH, ND_INVALID_PARAMETER_6, ND_INVALID_PARAMETER_6 },
        { RD_QP_ATTR_INITIATOR_SGE, ND_INVALID_PARAMETER_8, ND_INVALID_PARAMETER_7 },
        { RD_QP_ATTR_INLINE, ND_INVALID_PARAMETER_9, ND_INVALID_PARAMETER_8 },
        { RD_QP_ATTR_RECEIVE_DEPTH, ND_INVALID_PARAMETER_5, 0 },
        { RD_QP_ATTR_RECEIVE_SGE, ND_INVALID_PARAMETER_7, 0 },
        { RD_QP_ATTR_SRQ, 0, ND_INVALID_PARAMETER_4 },
    };
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2SharedReceiveQueue *srq = rig_srq(&r);
    for (size_t i = 0; i < SN_ARRAY_LEN(faults); i++) {
        void *p = &p;
        fake.fault = faults[i].fault;
        if (faults[i].plain) {
            fake.next = SN_E_PARAM;
            CHECK_EQ(make_qp(&r, cq, cq, &p), faults[i].plain);
            CHECK_PTR(p, NULL);
        }
        if (faults[i].with_srq) {
            fake.next = SN_E_PARAM;
            CHECK_EQ(make_srq_qp(&r, cq, cq, srq, &p), faults[i].with_srq);
        }
    }
    void *p;
    fake.limits.max_srq_depth = 0;
    CHECK_EQ(make_srq_qp(&r, cq, cq, srq, &p), ND_NOT_SUPPORTED);
    CHECK_EQ(make_srq(&r, &IID_IND2SharedReceiveQueue, r.file, &p), ND_NOT_SUPPORTED);
    CHECK_EQ(IND2SharedReceiveQueue_Release(srq), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

static void queue_pair_attributes_arrive_in_the_core(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *a = rig_cq(&r), *b = rig_cq(&r);
    IND2SharedReceiveQueue *srq = rig_srq(&r);
    IND2QueuePair *qp;
    CHECK_EQ(IND2Adapter_CreateQueuePair(r.adapter, &IID_IND2QueuePair, (IUnknown *)a,
                                         (IUnknown *)b, &r, 10, 11, 12, 13, 14, (void **)&qp),
             ND_SUCCESS);
    CHECK(fake.attr.receive_cq != fake.attr.initiator_cq && !fake.attr.srq);
    CHECK_PTR(fake.attr.context, &r);
    CHECK_EQ(fake.attr.receive_depth, 10);
    CHECK_EQ(fake.attr.initiator_depth, 11);
    CHECK_EQ(fake.attr.max_receive_sge, 12);
    CHECK_EQ(fake.attr.max_initiator_sge, 13);
    CHECK_EQ(fake.attr.inline_bytes, 14);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(IND2Adapter_CreateQueuePairWithSrq(r.adapter, &IID_IND2QueuePair, (IUnknown *)a,
                                                (IUnknown *)b, (IUnknown *)srq, &r, 11, 13, 14,
                                                (void **)&qp),
             ND_SUCCESS);
    CHECK(fake.attr.srq != NULL);
    CHECK_EQ(fake.attr.receive_depth, 0);
    CHECK_EQ(fake.attr.initiator_depth, 11);
    CHECK_EQ(fake.attr.max_initiator_sge, 13);
    CHECK_EQ(fake.attr.inline_bytes, 14);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(IND2SharedReceiveQueue_Release(srq), 0);
    CHECK_EQ(IND2CompletionQueue_Release(a), 0);
    CHECK_EQ(IND2CompletionQueue_Release(b), 0);
    rig_close(&r);
}

static void queue_limits_are_checked_by_position(void) {
    struct rig r = rig_open();
    void *p;
    CHECK_EQ(
        IND2Adapter_CreateCompletionQueue(r.adapter, &IID_IND2CompletionQueue, r.file, 0, 0, 0, &p),
        ND_INVALID_PARAMETER_3);
    CHECK_EQ(IND2Adapter_CreateCompletionQueue(r.adapter, &IID_IND2CompletionQueue, r.file, 65537,
                                               0, 0, &p),
             ND_INVALID_PARAMETER_3);
    CHECK_EQ(IND2Adapter_CreateCompletionQueue(r.adapter, &IID_IND2CompletionQueue, r.file, 65536,
                                               9, ~(KAFFINITY)0, &p),
             ND_SUCCESS); /* the affinity wish is ignored */
    CHECK_EQ(IUnknown_Release((IUnknown *)p), 0);
    static const struct {
        ULONG depth, sge;
        HRESULT hr;
    } srqs[] = {
        { 0, 1, ND_INVALID_PARAMETER_3 },
        { 1025, 1, ND_INVALID_PARAMETER_3 },
        { 1, 16, ND_INVALID_PARAMETER_4 },
        { 1024, 15, ND_SUCCESS },
        { 1, 0, ND_SUCCESS },
    };
    for (size_t i = 0; i < SN_ARRAY_LEN(srqs); i++) {
        CHECK_EQ(IND2Adapter_CreateSharedReceiveQueue(r.adapter, &IID_IND2SharedReceiveQueue,
                                                      r.file, srqs[i].depth, srqs[i].sge, 1, 0, 0,
                                                      &p),
                 srqs[i].hr);
        if (p) CHECK_EQ(IUnknown_Release((IUnknown *)p), 0);
    }
    rig_close(&r);
}

TEST_MAIN(TEST(query_interface_answers_own_and_base_only),
          TEST(children_keep_working_whatever_is_released_first),
          TEST(provider_count_is_one_while_an_adapter_lives), TEST(class_object_takes_both_forms),
          TEST(server_lock_keeps_the_module), TEST(adapter_of_unknown_id_or_iid_is_refused),
          TEST(foreign_objects_are_refused_by_position),
          TEST(objects_of_another_adapter_instance_are_refused),
          TEST(create_checks_iid_pointer_and_handle),
          TEST(create_that_the_core_refuses_leaves_nothing),
          TEST(create_without_memory_says_so_and_leaves_nothing),
          TEST(queue_pair_faults_name_the_parameter),
          TEST(queue_pair_attributes_arrive_in_the_core),
          TEST(queue_limits_are_checked_by_position))
