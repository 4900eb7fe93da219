/* SPDX-License-Identifier: MIT
 * Every status that the interface documents for a function of the dispatch tables, provoked. The
 * rows below are the documentation's; a case that gets a status says so (GOT), and the last case
 * fails if a row was not got. `ndk_statuses_test --table FILE` writes the table of
 * docs/ndk-statuses.md, `--check FILE` also fails if that file has another one.
 *
 * Networks without a route and hosts that cannot be reached are made in a network namespace of the
 * program's own. The cases with failing allocations need a build that has them (developer builds).
 */
#include "kit.h"
#include "host.h"
#include "ndisndk.h"
#include "os/prim/fault.h"

/* ---- what is documented ---- */

enum { IN_NAMESPACE = 1, BY_FAULT = 2, NEVER = 4, SHARED_PORT = 8 };

struct row {
    const char *function;
    NTSTATUS status;
    int how;
    const char *why; /* NEVER */
    bool got;
    const char *by; /* the case */
};

#define ROW(f, s)                                                                                  \
    { f, STATUS_##s, 0, NULL, false, NULL }
#define FAULT(f)                                                                                   \
    { f, STATUS_INSUFFICIENT_RESOURCES, BY_FAULT, NULL, false, NULL }
#define NETWORK(f, s)                                                                              \
    { f, STATUS_##s, IN_NAMESPACE, NULL, false, NULL }
#define NOT_GIVEN(f, s, why)                                                                       \
    { f, STATUS_##s, NEVER, why, false, NULL }
#define CREATE(f) ROW(f, SUCCESS), ROW(f, PENDING), FAULT(f)
#define CLOSE(f) ROW(f, SUCCESS), ROW(f, PENDING)
#define ADDRESS(f) ROW(f, SUCCESS), ROW(f, BUFFER_TOO_SMALL)
#define CONNECT(f)                                                                                 \
    ROW(f, SUCCESS), ROW(f, PENDING), FAULT(f), NETWORK(f, NETWORK_UNREACHABLE),                   \
        NETWORK(f, HOST_UNREACHABLE), ROW(f, CONNECTION_REFUSED), ROW(f, IO_TIMEOUT)
#define COMPLETE(f)                                                                                \
    ROW(f, SUCCESS), ROW(f, PENDING), ROW(f, CONNECTION_INVALID), ROW(f, CONNECTION_ABORTED),      \
        NOT_GIVEN(f, IO_TIMEOUT, "iWARP's active side completes without an answer of the peer")
#define ACCEPT(f) ROW(f, SUCCESS), ROW(f, PENDING), ROW(f, CONNECTION_ABORTED), ROW(f, IO_TIMEOUT)
#define POST(f) ROW(f, SUCCESS), ROW(f, CONNECTION_INVALID)

static struct row rows[] = {
    ROW("WskOpenNdkAdapter", SUCCESS),
    { "WskOpenNdkAdapter", NDIS_STATUS_BAD_VERSION, 0, NULL, false, NULL },
    { "WskOpenNdkAdapter", NDIS_STATUS_ADAPTER_NOT_READY, 0, NULL, false, NULL },
    FAULT("WskOpenNdkAdapter"),
    ROW("NdkQueryExtension", NOT_SUPPORTED),
    ROW("NdkQueryAdapterInfo", SUCCESS),
    ROW("NdkQueryAdapterInfo", BUFFER_TOO_SMALL),
    CREATE("NdkCreateCq"),
    ROW("NdkCreateCq", INVALID_PARAMETER),
    CREATE("NdkCreatePd"),
    CREATE("NdkCreateConnector"),
    CREATE("NdkCreateListener"),
    CREATE("NdkCreateSharedEndpoint"),
    ROW("NdkCreateSharedEndpoint", SHARING_VIOLATION),
    ROW("NdkCreateSharedEndpoint", INVALID_ADDRESS),
    NETWORK("NdkCreateSharedEndpoint", TOO_MANY_ADDRESSES),
    CREATE("NdkBuildLAM"),
    ROW("NdkBuildLAM", INVALID_PARAMETER),
    ROW("NdkBuildLAM", BUFFER_TOO_SMALL),
    CREATE("NdkResizeCq"),
    ROW("NdkResizeCq", INVALID_PARAMETER),
    ROW("NdkControlCqInterruptModeration", SUCCESS),
    ROW("NdkControlCqInterruptModeration", INVALID_PARAMETER_MIX),
    NOT_GIVEN("NdkControlCqInterruptModeration", INSUFFICIENT_RESOURCES, "it needs none"),
    ROW("NdkControlCqInterruptModeration", NOT_SUPPORTED),
    CREATE("NdkCreateMr"),
    CREATE("NdkCreateMw"),
    CREATE("NdkCreateSrq"),
    ROW("NdkCreateSrq", INVALID_PARAMETER),
    CREATE("NdkCreateQp"),
    ROW("NdkCreateQp", INVALID_PARAMETER),
    CREATE("NdkCreateQpWithSrq"),
    ROW("NdkCreateQpWithSrq", INVALID_PARAMETER),
    ROW("NdkRegisterMr", SUCCESS),
    ROW("NdkRegisterMr", PENDING),
    ROW("NdkRegisterMr", INSUFFICIENT_RESOURCES),
    ROW("NdkRegisterMr", INVALID_PARAMETER),
    ROW("NdkDeregisterMr", SUCCESS),
    ROW("NdkDeregisterMr", PENDING),
    ROW("NdkInitializeFastRegisterMr", SUCCESS),
    ROW("NdkInitializeFastRegisterMr", PENDING),
    ROW("NdkInitializeFastRegisterMr", IMPLEMENTATION_LIMIT),
    ROW("NdkModifySrq", SUCCESS),
    ROW("NdkModifySrq", PENDING),
    ROW("NdkModifySrq", INVALID_PARAMETER),
    ROW("NdkSrqReceive", SUCCESS),
    ROW("NdkReceive", SUCCESS),
    POST("NdkSend"),
    POST("NdkSendAndInvalidate"),
    POST("NdkWrite"),
    POST("NdkRead"),
    ROW("NdkRead", REMOTE_RESOURCES),
    POST("NdkBind"),
    ROW("NdkBind", ACCESS_VIOLATION),
    POST("NdkFastRegister"),
    ROW("NdkFastRegister", ACCESS_VIOLATION),
    POST("NdkInvalidate"),
    CREATE("NdkListen"),
    ROW("NdkListen", SHARING_VIOLATION),
    ROW("NdkListen", INVALID_ADDRESS),
    NETWORK("NdkListen", TOO_MANY_ADDRESSES),
    ADDRESS("NdkGetLocalAddress (listener)"),
    ADDRESS("NdkGetLocalAddress (shared endpoint)"),
    ADDRESS("NdkGetLocalAddress (connector)"),
    ADDRESS("NdkGetPeerAddress"),
    CONNECT("NdkConnect"),
    { "NdkConnect", STATUS_ADDRESS_ALREADY_EXISTS, SHARED_PORT, NULL, false, NULL },
    ROW("NdkConnect", SHARING_VIOLATION),
    ROW("NdkConnect", INVALID_ADDRESS),
    NETWORK("NdkConnect", TOO_MANY_ADDRESSES),
    CONNECT("NdkConnectWithSharedEndpoint"),
    ROW("NdkConnectWithSharedEndpoint", ADDRESS_ALREADY_EXISTS),
    COMPLETE("NdkCompleteConnect"),
    COMPLETE("NdkCompleteConnectEx"),
    ACCEPT("NdkAccept"),
    ACCEPT("NdkAcceptEx"),
    ROW("NdkReject", SUCCESS),
    ROW("NdkReject", CONNECTION_ABORTED),
    ADDRESS("NdkGetConnectionData"),
    ROW("NdkDisconnect", SUCCESS),
    ROW("NdkDisconnect", PENDING),
    NOT_GIVEN("NdkDisconnect", IO_TIMEOUT, "it does not wait for the peer"),
    CLOSE("NdkCloseCq"),
    CLOSE("NdkClosePd"),
    CLOSE("NdkCloseConnector"),
    CLOSE("NdkCloseListener"),
    CLOSE("NdkCloseSharedEndpoint"),
    CLOSE("NdkCloseMr"),
    CLOSE("NdkCloseMw"),
    CLOSE("NdkCloseSrq"),
    CLOSE("NdkCloseQp"),
    ROW("CqNotificationCallback", SUCCESS),
    ROW("CqNotificationCallback", BUFFER_OVERFLOW),
    NOT_GIVEN("CqNotificationCallback", INTERNAL_ERROR, "there is no hardware that could fail"),
    ROW("SrqNotificationCallback", SUCCESS),
    NOT_GIVEN("SrqNotificationCallback", INTERNAL_ERROR, "there is no hardware that could fail"),
};

static const char *now; /* the case that runs */
static bool have_namespace, have_shared_port;

static NTSTATUS got(const char *function, NTSTATUS status) {
    for (size_t i = 0; i < RTL_NUMBER_OF(rows); i++) {
        struct row *r = &rows[i];
        if (r->status != status || strcmp(r->function, function) != 0) continue;
        if (!r->got) r->by = now;
        r->got = true;
    }
    return status;
}

static const char *name_of(NTSTATUS s) {
    static const struct {
        NTSTATUS s;
        const char *name;
    } names[] = {
#define NAME(s) { STATUS_##s, #s }
        NAME(SUCCESS),
        NAME(PENDING),
        NAME(INVALID_PARAMETER),
        NAME(INSUFFICIENT_RESOURCES),
        NAME(NOT_SUPPORTED),
        NAME(BUFFER_TOO_SMALL),
        NAME(SHARING_VIOLATION),
        NAME(INVALID_ADDRESS),
        NAME(TOO_MANY_ADDRESSES),
        NAME(INVALID_PARAMETER_MIX),
        NAME(IMPLEMENTATION_LIMIT),
        NAME(CONNECTION_INVALID),
        NAME(REMOTE_RESOURCES),
        NAME(ACCESS_VIOLATION),
        NAME(NETWORK_UNREACHABLE),
        NAME(HOST_UNREACHABLE),
        NAME(CONNECTION_REFUSED),
        NAME(IO_TIMEOUT),
        NAME(ADDRESS_ALREADY_EXISTS),
        NAME(CONNECTION_ABORTED),
        NAME(BUFFER_OVERFLOW),
        NAME(INTERNAL_ERROR),
        { NDIS_STATUS_BAD_VERSION, "BAD_VERSION" },
        { NDIS_STATUS_ADAPTER_NOT_READY, "ADAPTER_NOT_READY" },
    };
    for (size_t i = 0; i < RTL_NUMBER_OF(names); i++)
        if (names[i].s == s) return names[i].name;
    return "?";
}

/* The inline status of a request, and what it came to. */
static NTSTATUS both(const char *function, struct kit_wait *w, NTSTATUS status) {
    return got(function, kit_finish(w, got(function, status)));
}

static void way(const char *how) {
    softndk_set("completions", how);
}

/* ---- objects, all alike ---- */

struct any {
    NDK_OBJECT_HEADER Header;
    NDK_FN_CLOSE_OBJECT *const *Dispatch; /* the close, then NdkQueryExtension */
};

struct made {
    struct kit_pair *p;
    NDK_SRQ *srq;
    struct kit_wait w;
    struct any *o;
    SOCKADDR_IN at;
};

#define AD(m) (m)->p->k.ad
#define PD(m) (m)->p->k.pd
static NTSTATUS cq(struct made *m) {
    return AD(m)->Dispatch->NdkCreateCq(AD(m), 4, kit_notified, &m->p->a.cq, NULL, kit_created,
                                        &m->w, (NDK_CQ **)&m->o);
}
static NTSTATUS pd(struct made *m) {
    return AD(m)->Dispatch->NdkCreatePd(AD(m), kit_created, &m->w, (NDK_PD **)&m->o);
}
static NTSTATUS connector(struct made *m) {
    return AD(m)->Dispatch->NdkCreateConnector(AD(m), kit_created, &m->w, (NDK_CONNECTOR **)&m->o);
}
static NTSTATUS listener(struct made *m) {
    return AD(m)->Dispatch->NdkCreateListener(AD(m), kit_incoming, m->p, kit_created, &m->w,
                                              (NDK_LISTENER **)&m->o);
}
static NTSTATUS endpoint(struct made *m) {
    return AD(m)->Dispatch->NdkCreateSharedEndpoint(
        AD(m), (SOCKADDR *)&m->at, sizeof m->at, kit_created, &m->w, (NDK_SHARED_ENDPOINT **)&m->o);
}
static NTSTATUS mr(struct made *m) {
    return PD(m)->Dispatch->NdkCreateMr(PD(m), FALSE, kit_created, &m->w, (NDK_MR **)&m->o);
}
static NTSTATUS mw(struct made *m) {
    return PD(m)->Dispatch->NdkCreateMw(PD(m), kit_created, &m->w, (NDK_MW **)&m->o);
}
static NTSTATUS srq(struct made *m) {
    return PD(m)->Dispatch->NdkCreateSrq(PD(m), 4, 1, 0, NULL, NULL, NULL, kit_created, &m->w,
                                         (NDK_SRQ **)&m->o);
}
static NTSTATUS qp(struct made *m) {
    return PD(m)->Dispatch->NdkCreateQp(PD(m), m->p->a.cq.cq, m->p->a.cq.cq, NULL, 4, 4, 1, 1, 0,
                                        kit_created, &m->w, (NDK_QP **)&m->o);
}
static NTSTATUS srq_qp(struct made *m) {
    return PD(m)->Dispatch->NdkCreateQpWithSrq(PD(m), m->p->a.cq.cq, m->p->a.cq.cq, m->srq, NULL, 4,
                                               1, 0, kit_created, &m->w, (NDK_QP **)&m->o);
}

static const struct kind {
    const char *create, *close;
    NTSTATUS (*make)(struct made *m);
} kinds[] = {
    { "NdkCreateCq", "NdkCloseCq", cq },
    { "NdkCreatePd", "NdkClosePd", pd },
    { "NdkCreateConnector", "NdkCloseConnector", connector },
    { "NdkCreateListener", "NdkCloseListener", listener },
    { "NdkCreateSharedEndpoint", "NdkCloseSharedEndpoint", endpoint },
    { "NdkCreateMr", "NdkCloseMr", mr },
    { "NdkCreateMw", "NdkCloseMw", mw },
    { "NdkCreateSrq", "NdkCloseSrq", srq },
    { "NdkCreateQp", "NdkCloseQp", qp },
    { "NdkCreateQpWithSrq", "NdkCloseQp", srq_qp },
};

static void made_begin(struct made *m, struct kit_pair *p) {
    memset(m, 0, sizeof *m);
    m->p = p;
    m->at = kit_address(0);
    kit_objects(p);
    KIT_CREATE(NDK_SRQ, m->srq,
               PD(m)->Dispatch->NdkCreateSrq(PD(m), 4, 1, 0, NULL, NULL, NULL, kit_created, &kit_w,
                                             &kit_o));
}

static void made_end(struct made *m) {
    KIT_CLOSE(m->srq, NdkCloseSrq);
    kit_down(m->p);
}

/* Makes one; on success it is closed again. */
static NTSTATUS make(struct made *m, const struct kind *k, bool extension) {
    GUID id;
    NDK_VERSION version = { 1, 0 };
    NDK_EXTENSION_INTERFACE ext;
    memset(&id, 0, sizeof id);
    kit_wait_init(&m->w);
    m->o = NULL;
    NTSTATUS first = got(k->create, k->make(m)), final = kit_finish(&m->w, first);
    if (first == STATUS_PENDING) got(k->create, final);
    if (final != STATUS_SUCCESS) return final;
    struct any *o = first == STATUS_PENDING ? (struct any *)(PVOID)m->w.object : m->o;
    CHECK(o != NULL);
    if (extension) {
        NDK_FN_QUERY_EXTENSION_INTERFACE *query =
            (NDK_FN_QUERY_EXTENSION_INTERFACE *)(PVOID)(ULONG_PTR)o->Dispatch[1];
        CHECK_NT(got("NdkQueryExtension", query(&o->Header, &id, version, &ext)),
                 STATUS_NOT_SUPPORTED);
    }
    kit_wait_init(&m->w);
    NTSTATUS closed = got(k->close, o->Dispatch[0](&o->Header, kit_closed, &m->w));
    CHECK(closed == STATUS_SUCCESS || closed == STATUS_PENDING);
    return kit_finish(&m->w, closed);
}

static void objects_are_made_and_closed_at_once_and_later(void) {
    static const char *const ways[] = { "inline", "pending", "early" };
    struct kit_pair p;
    struct made m;
    made_begin(&m, &p);
    for (size_t h = 0; h < RTL_NUMBER_OF(ways); h++)
        for (size_t i = 0; i < RTL_NUMBER_OF(kinds); i++) {
            way(ways[h]);
            CHECK_NT(make(&m, &kinds[i], true), STATUS_SUCCESS);
        }
    way("inline");
    made_end(&m);
}

/* ---- no memory ---- */

/* Calls with the first, the second ... allocation failing, until one was not needed. Each either
 * succeeds (it was somebody else's, or not vital) or says that resources are missing. */
static void walk(const char *function, NTSTATUS (*call)(void *ctx), void *ctx, NTSTATUS also) {
    bool failed = false, fired = true;
    for (int n = 0; fired; n++) {
        CHECK(n < 500);
        os_fault_arm(OS_FAULT_ALLOC, n);
        NTSTATUS st = call(ctx);
        fired = os_fault_fired(OS_FAULT_ALLOC);
        os_fault_arm(OS_FAULT_ALLOC, -1);
        if (st != STATUS_SUCCESS && st != also)
            CHECK_NT(got(function, st), STATUS_INSUFFICIENT_RESOURCES);
        failed |= st == STATUS_INSUFFICIENT_RESOURCES;
    }
    CHECK(failed);
}

static void need_faults(void) {
    if (!os_fault_available()) SKIP("this build has no failing allocations");
}

struct one_kind {
    struct made *m;
    const struct kind *k;
};
static NTSTATUS make_one(void *ctx) {
    struct one_kind *o = (struct one_kind *)ctx;
    return make(o->m, o->k, false);
}

static void objects_without_memory_are_not_made(void) {
    static const char *const ways[] = { "inline", "pending" };
    struct kit_pair p;
    struct made m;
    need_faults();
    made_begin(&m, &p);
    for (size_t h = 0; h < RTL_NUMBER_OF(ways); h++)
        for (size_t i = 0; i < RTL_NUMBER_OF(kinds); i++) {
            struct one_kind o = { &m, &kinds[i] };
            way(ways[h]);
            walk(kinds[i].create, make_one, &o, STATUS_SUCCESS);
        }
    way("inline");
    made_end(&m);
    CHECK_EQ(softndk_report_leaks(), 0);
}

static NTSTATUS open_one(void *ctx) {
    struct kit *k = (struct kit *)ctx;
    NDK_VERSION version = { 2, 0 };
    NDK_ADAPTER *ad = NULL;
    NTSTATUS st = k->ndk.WskOpenNdkAdapter(k->npi.Client, version, KIT_LOOPBACK, &ad);
    if (st == STATUS_SUCCESS) k->ndk.WskCloseNdkAdapter(k->npi.Client, ad);
    return st;
}

static void adapters_without_memory_are_not_opened(void) {
    struct kit k;
    need_faults();
    CHECK_NT(kit_open_version(&k, 2, 0), STATUS_SUCCESS);
    k.ndk.WskCloseNdkAdapter(k.npi.Client, k.ad); /* the core's adapter goes too */
    k.ad = NULL;
    walk("WskOpenNdkAdapter", open_one, &k, STATUS_SUCCESS);
    kit_shut(&k);
}

static NTSTATUS build_one(void *ctx) {
    struct kit_pair *p = (struct kit_pair *)ctx;
    UCHAR room[0x10 + 8 * 4];
    NDK_LOGICAL_ADDRESS_MAPPING *lam = (NDK_LOGICAL_ADDRESS_MAPPING *)(PVOID)room;
    ULONG size = sizeof room, fbo;
    struct kit_wait w;
    kit_wait_init(&w);
    NTSTATUS st = both("NdkBuildLAM", &w,
                       p->k.ad->Dispatch->NdkBuildLAM(p->k.ad, p->mem.mdl, 3 * PAGE_SIZE,
                                                      kit_request_done, &w, lam, &size, &fbo));
    if (st == STATUS_SUCCESS) p->k.ad->Dispatch->NdkReleaseLAM(p->k.ad, lam);
    return st;
}

struct mr_ctx {
    struct kit_pair *p;
    NDK_MR *mr;
};
static NTSTATUS register_one(void *ctx) {
    struct mr_ctx *c = (struct mr_ctx *)ctx;
    struct kit_wait w;
    kit_wait_init(&w);
    NTSTATUS st =
        both("NdkRegisterMr", &w,
             c->mr->Dispatch->NdkRegisterMr(c->mr, c->p->mem.mdl, 100, 0, kit_request_done, &w));
    if (st != STATUS_SUCCESS) return st;
    kit_wait_init(&w);
    return both("NdkDeregisterMr", &w,
                c->mr->Dispatch->NdkDeregisterMr(c->mr, kit_request_done, &w));
}

static NTSTATUS resize_one(void *ctx) {
    struct kit_pair *p = (struct kit_pair *)ctx;
    struct kit_wait w;
    NDK_CQ *q = p->a.cq.cq;
    kit_wait_init(&w);
    return both("NdkResizeCq", &w, q->Dispatch->NdkResizeCq(q, 64, kit_request_done, &w));
}

static NTSTATUS listen_one(void *ctx) {
    struct kit_pair *p = (struct kit_pair *)ctx;
    SOCKADDR_IN any = kit_address(0);
    struct kit_wait w;
    NDK_LISTENER *l;
    KIT_CREATE(NDK_LISTENER, l,
               p->k.ad->Dispatch->NdkCreateListener(p->k.ad, kit_incoming, p, kit_created, &kit_w,
                                                    &kit_o));
    kit_wait_init(&w);
    NTSTATUS st =
        both("NdkListen", &w,
             l->Dispatch->NdkListen(l, (SOCKADDR *)&any, sizeof any, kit_request_done, &w));
    KIT_CLOSE(l, NdkCloseListener);
    return st;
}

static void requests_with_and_without_memory(void) {
    static const char *const ways[] = { "inline", "pending", "early" };
    struct kit_pair p;
    kit_objects(&p);
    struct mr_ctx c = { &p, NULL };
    KIT_CREATE(NDK_MR, c.mr,
               p.k.pd->Dispatch->NdkCreateMr(p.k.pd, FALSE, kit_created, &kit_w, &kit_o));
    for (size_t h = 0; h < RTL_NUMBER_OF(ways); h++) {
        way(ways[h]);
        CHECK_NT(build_one(&p), STATUS_SUCCESS);
        CHECK_NT(register_one(&c), STATUS_SUCCESS);
        CHECK_NT(resize_one(&p), STATUS_SUCCESS);
        CHECK_NT(listen_one(&p), STATUS_SUCCESS);
    }
    way("pending");
    if (os_fault_available()) {
        walk("NdkBuildLAM", build_one, &p, STATUS_SUCCESS);
        way("inline"); /* listening ones are closed with no fault armed */
        walk("NdkResizeCq", resize_one, &p, STATUS_SUCCESS);
    }
    way("inline");
    KIT_CLOSE(c.mr, NdkCloseMr);
    kit_down(&p);
}

/* The fault is armed after the objects were made: only the call itself meets it. */
static void listening_and_connecting_need_memory(void) {
    struct kit_pair p;
    need_faults();
    kit_objects(&p);
    SOCKADDR_IN any = kit_address(0), nobody = kit_address(1);
    bool failed[3] = { false };
    for (int what = 0; what < 3; what++) {
        bool fired = true;
        for (int n = 0; fired; n++) {
            CHECK(n < 500);
            struct kit_wait w;
            NDK_LISTENER *l = NULL;
            NDK_SHARED_ENDPOINT *e = NULL;
            NTSTATUS st;
            kit_wait_init(&w);
            if (what == 0) {
                KIT_CREATE(NDK_LISTENER, l,
                           p.k.ad->Dispatch->NdkCreateListener(p.k.ad, kit_incoming, &p,
                                                               kit_created, &kit_w, &kit_o));
                os_fault_arm(OS_FAULT_ALLOC, n);
                st = l->Dispatch->NdkListen(l, (SOCKADDR *)&any, sizeof any, kit_request_done, &w);
            } else {
                p.a.connector = kit_connector(&p.k);
                if (what == 2)
                    KIT_CREATE(NDK_SHARED_ENDPOINT, e,
                               p.k.ad->Dispatch->NdkCreateSharedEndpoint(p.k.ad, (SOCKADDR *)&any,
                                                                         sizeof any, kit_created,
                                                                         &kit_w, &kit_o));
                NDK_CONNECTOR *c = p.a.connector;
                os_fault_arm(OS_FAULT_ALLOC, n);
                st = what == 1 ? c->Dispatch->NdkConnect(c, p.a.qp, (SOCKADDR *)&any, sizeof any,
                                                         (SOCKADDR *)&nobody, sizeof nobody, 1, 1,
                                                         "data", 4, kit_request_done, &w)
                               : c->Dispatch->NdkConnectWithSharedEndpoint(
                                     c, p.a.qp, e, (SOCKADDR *)&nobody, sizeof nobody, 1, 1, "data",
                                     4, kit_request_done, &w);
            }
            st = kit_finish(&w, st);
            fired = os_fault_fired(OS_FAULT_ALLOC);
            os_fault_arm(OS_FAULT_ALLOC, -1);
            static const char *const names[] = { "NdkListen", "NdkConnect",
                                                 "NdkConnectWithSharedEndpoint" };
            got(names[what], st);
            if (st == STATUS_INSUFFICIENT_RESOURCES)
                failed[what] = true;
            else
                CHECK_NT(st, what == 0 ? STATUS_SUCCESS : STATUS_CONNECTION_REFUSED);
            KIT_CLOSE(p.a.connector, NdkCloseConnector);
            KIT_CLOSE(e, NdkCloseSharedEndpoint);
            KIT_CLOSE(l, NdkCloseListener);
        }
        CHECK(failed[what]);
    }
    kit_down(&p);
    CHECK_EQ(softndk_report_leaks(), 0);
}

/* A post, an Accept or a CompleteConnect, with the n-th allocation failing in it. Another thread's
 * may fail instead, so a pair lives for one try, and may end as it likes. */

static NTSTATUS post_kind(struct kit_pair *p, int kind, NDK_MR *fast, NDK_MW *window,
                          NDK_LOGICAL_ADDRESS *page) {
    NDK_QP *q = p->a.qp;
    NDK_SGE s = kit_sge(&p->mem, 0, 8);
    UINT64 at = (UINT64)(ULONG_PTR)p->mem.p;
    os_fault_arm(OS_FAULT_ALLOC, kind >> 8);
    switch (kind & 0xFF) {
    case 0:
        return q->Dispatch->NdkSend(q, KIT_CTX(1), &s, 1, 0);
    case 1:
        return q->Dispatch->NdkReceive(q, KIT_CTX(1), &s, 1);
    case 2:
        return q->Dispatch->NdkWrite(q, KIT_CTX(1), &s, 1, at, kit_remote(p), 0);
    case 3:
        return q->Dispatch->NdkRead(q, KIT_CTX(1), &s, 1, at, kit_remote(p), 0);
    case 4:
        return q->Dispatch->NdkSendAndInvalidate(q, KIT_CTX(1), &s, 1, 0, 1);
    case 5:
        return q->Dispatch->NdkBind(q, KIT_CTX(1), p->mem.mr, window, p->mem.p, 8,
                                    NDK_OP_FLAG_ALLOW_REMOTE_READ);
    case 6:
        return q->Dispatch->NdkFastRegister(q, KIT_CTX(1), fast, 1, page, 0, 8, NULL, 0);
    default:
        return q->Dispatch->NdkInvalidate(q, KIT_CTX(1), &window->Header, 0);
    }
}

/* True if the fault was met. */
static bool post_without_memory(int kind, int n, bool *failed) {
    struct kit_pair p;
    NDK_MR *fast;
    NDK_MW *window;
    UCHAR room[0x18];
    NDK_LOGICAL_ADDRESS_MAPPING *lam = (NDK_LOGICAL_ADDRESS_MAPPING *)(PVOID)room;
    ULONG size = sizeof room, fbo;
    struct kit_wait w;
    kit_up(&p);
    KIT_CREATE(NDK_MW, window, p.k.pd->Dispatch->NdkCreateMw(p.k.pd, kit_created, &kit_w, &kit_o));
    KIT_CREATE(NDK_MR, fast,
               p.k.pd->Dispatch->NdkCreateMr(p.k.pd, TRUE, kit_created, &kit_w, &kit_o));
    CHECK_NT(fast->Dispatch->NdkInitializeFastRegisterMr(fast, 1, FALSE, kit_request_done, &w),
             STATUS_SUCCESS);
    CHECK_NT(p.k.ad->Dispatch->NdkBuildLAM(p.k.ad, p.mem.mdl, PAGE_SIZE, kit_request_done, &w, lam,
                                           &size, &fbo),
             STATUS_SUCCESS);
    if (kind == 7) /* something to invalidate */
        CHECK_NT(
            p.a.qp->Dispatch->NdkBind(p.a.qp, KIT_CTX(2), p.mem.mr, window, p.mem.p, 8,
                                      NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_SILENT_SUCCESS),
            STATUS_SUCCESS);
    NTSTATUS st = post_kind(&p, kind | n << 8, fast, window, lam->AdapterPageArray);
    bool fired = os_fault_fired(OS_FAULT_ALLOC);
    os_fault_arm(OS_FAULT_ALLOC, -1);
    *failed |= st == STATUS_INSUFFICIENT_RESOURCES;
    if (st != STATUS_INSUFFICIENT_RESOURCES) CHECK_NT(st, STATUS_SUCCESS);
    p.a.qp->Dispatch->NdkFlush(p.a.qp);
    NDK_RESULT_EX r;
    int results = 0;
    KIT_CLOSE(p.a.connector, NdkCloseConnector);
    KIT_CLOSE(p.a.qp, NdkCloseQp); /* every result is there */
    while (p.a.cq.cq->Dispatch->NdkGetCqResultsEx(p.a.cq.cq, &r, 1))
        results += r.RequestContext == KIT_CTX(1);
    CHECK_EQ(results, st == STATUS_SUCCESS); /* what failed was not posted */
    KIT_CLOSE(window, NdkCloseMw);
    KIT_CLOSE(fast, NdkCloseMr);
    p.k.ad->Dispatch->NdkReleaseLAM(p.k.ad, lam);
    kit_down(&p);
    return fired;
}

static void posts_without_memory(void) {
    need_faults();
    for (int kind = 0; kind < 8; kind++) {
        bool failed = false;
        int n = 0;
        while (post_without_memory(kind, n, &failed))
            CHECK(++n < 50);
        CHECK(failed == (kind == 6)); /* the one that keeps something of its own */
    }
    CHECK_EQ(softndk_report_leaks(), 0);
}

void statuses_take_every_token(NDK_ADAPTER *adapter); /* statuses_inside.c */

static void regions_without_tokens(void) {
    struct kit_pair p;
    struct kit_wait w;
    NDK_MR *m;
    kit_objects(&p);
    kit_wait_init(&w);
    KIT_CREATE(NDK_MR, m,
               p.k.pd->Dispatch->NdkCreateMr(p.k.pd, FALSE, kit_created, &kit_w, &kit_o));
    statuses_take_every_token(p.k.ad);
    CHECK_NT(
        got("NdkRegisterMr", m->Dispatch->NdkRegisterMr(m, p.mem.mdl, 8, 0, kit_request_done, &w)),
        STATUS_INSUFFICIENT_RESOURCES);
    KIT_CLOSE(m, NdkCloseMr);
    kit_down(&p);
}

/* ---- notifications ---- */

static void on_srq(PVOID ctx, NTSTATUS status) {
    struct kit_wait *w = (struct kit_wait *)ctx;
    got("SrqNotificationCallback", status);
    kit_request_done(w, status);
}

static void notifications_and_their_statuses(void) {
    enum { SMALL = 4, MANY = 200 };
    struct kit_pair p;
    struct kit_cq small;
    struct kit_wait w, m;
    NDK_QP *q;
    NDK_SRQ *s;
    kit_objects(&p);
    kit_make_cq(&p.k, &small, SMALL);
    KIT_CREATE(NDK_QP, q,
               p.k.pd->Dispatch->NdkCreateQp(p.k.pd, small.cq, small.cq, NULL, MANY, 1, 1, 1, 0,
                                             kit_created, &kit_w, &kit_o));
    NDK_SGE sge = kit_sge(&p.mem, 0, 8);
    CHECK_NT(q->Dispatch->NdkReceive(q, NULL, &sge, 1), STATUS_SUCCESS);
    small.cq->Dispatch->NdkArmCq(small.cq, NDK_CQ_NOTIFY_ANY);
    q->Dispatch->NdkFlush(q);
    CHECK(kit_wait_event(&small.notified));
    CHECK_NT(got("CqNotificationCallback", small.status), STATUS_SUCCESS);
    kit_drain(&small);
    for (int i = 0; i < MANY; i++)
        CHECK_NT(q->Dispatch->NdkReceive(q, NULL, &sge, 1), STATUS_SUCCESS);
    small.cq->Dispatch->NdkArmCq(small.cq, NDK_CQ_NOTIFY_ERRORS);
    q->Dispatch->NdkFlush(q);
    CHECK(kit_wait_event(&small.notified));
    CHECK_NT(got("CqNotificationCallback", small.status), STATUS_BUFFER_OVERFLOW);
    KIT_CLOSE(q, NdkCloseQp);
    KIT_CLOSE(small.cq, NdkCloseCq);
    /* a threshold that the number of receives is below already */
    kit_wait_init(&w);
    kit_wait_init(&m);
    KIT_CREATE(NDK_SRQ, s,
               p.k.pd->Dispatch->NdkCreateSrq(p.k.pd, 4, 1, 0, on_srq, &w, NULL, kit_created,
                                              &kit_w, &kit_o));
    CHECK_NT(kit_finish(&m, s->Dispatch->NdkModifySrq(s, 0, 2, kit_request_done, &m)),
             STATUS_SUCCESS);
    CHECK(kit_wait_event(&w.event));
    CHECK_NT(w.status, STATUS_SUCCESS);
    KIT_CLOSE(s, NdkCloseSrq);
    kit_down(&p);
}

/* ---- arguments ---- */

static void arguments_out_of_range(void) {
    struct kit_pair p;
    struct made m;
    struct kit_wait w;
    made_begin(&m, &p);
    NDK_ADAPTER_INFO *i = &p.k.info;
    NDK_CQ *c;
    NDK_QP *q;
    NDK_SRQ *s;
    ULONG size = 0, fbo;
    kit_wait_init(&w);
    CHECK_NT(got("WskOpenNdkAdapter", STATUS_SUCCESS), STATUS_SUCCESS); /* kit_open did */
    CHECK_NT(got("NdkQueryAdapterInfo", p.k.ad->Dispatch->NdkQueryAdapterInfo(p.k.ad, NULL, &size)),
             STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(size, sizeof *i);
    CHECK_NT(got("NdkQueryAdapterInfo", p.k.ad->Dispatch->NdkQueryAdapterInfo(p.k.ad, i, &size)),
             STATUS_SUCCESS);
    CHECK_NT(
        got("NdkCreateCq", p.k.ad->Dispatch->NdkCreateCq(p.k.ad, i->MaxCqDepth + 1, kit_notified,
                                                         NULL, NULL, kit_created, &w, &c)),
        STATUS_INVALID_PARAMETER);
    CHECK_NT(
        got("NdkCreateSrq", p.k.pd->Dispatch->NdkCreateSrq(p.k.pd, i->MaxSrqDepth + 1, 1, 0, NULL,
                                                           NULL, NULL, kit_created, &w, &s)),
        STATUS_INVALID_PARAMETER);
    CHECK_NT(got("NdkCreateQp", p.k.pd->Dispatch->NdkCreateQp(p.k.pd, p.a.cq.cq, p.a.cq.cq, NULL,
                                                              i->MaxReceiveQueueDepth + 1, 1, 1, 1,
                                                              0, kit_created, &w, &q)),
             STATUS_INVALID_PARAMETER);
    const ULONG over[][3] = { { i->MaxInitiatorQueueDepth + 1, 1, 0 },
                              { 1, i->MaxInitiatorRequestSge + 1, 0 },
                              { 1, 1, i->MaxInlineDataSize + 1 } };
    for (size_t j = 0; j < RTL_NUMBER_OF(over); j++)
        CHECK_NT(got("NdkCreateQpWithSrq",
                     p.k.pd->Dispatch->NdkCreateQpWithSrq(p.k.pd, p.a.cq.cq, p.a.cq.cq, m.srq, NULL,
                                                          over[j][0], over[j][1], over[j][2],
                                                          kit_created, &w, &q)),
                 STATUS_INVALID_PARAMETER);
    CHECK_NT(got("NdkResizeCq", p.a.cq.cq->Dispatch->NdkResizeCq(p.a.cq.cq, i->MaxCqDepth + 1,
                                                                 kit_request_done, &w)),
             STATUS_INVALID_PARAMETER);
    CHECK_NT(got("NdkModifySrq",
                 m.srq->Dispatch->NdkModifySrq(m.srq, i->MaxSrqDepth + 1, 0, kit_request_done, &w)),
             STATUS_INVALID_PARAMETER);
    static const char *const ways[] = { "inline", "pending" };
    NDK_MR *fast;
    KIT_CREATE(NDK_MR, fast,
               p.k.pd->Dispatch->NdkCreateMr(p.k.pd, TRUE, kit_created, &kit_w, &kit_o));
    for (int h = 0; h < 2; h++) {
        way(ways[h]);
        kit_wait_init(&w);
        CHECK_NT(both("NdkModifySrq", &w,
                      m.srq->Dispatch->NdkModifySrq(m.srq, 3, 0, kit_request_done, &w)),
                 STATUS_SUCCESS);
        kit_wait_init(&w);
        CHECK_NT(
            both("NdkInitializeFastRegisterMr", &w,
                 fast->Dispatch->NdkInitializeFastRegisterMr(fast, 4, FALSE, kit_request_done, &w)),
            STATUS_SUCCESS);
    }
    way("inline");
    CHECK_NT(got("NdkInitializeFastRegisterMr", fast->Dispatch->NdkInitializeFastRegisterMr(
                                                    fast, 0x7FFFFFFF, FALSE, kit_request_done, &w)),
             STATUS_IMPLEMENTATION_LIMIT);
    KIT_CLOSE(fast, NdkCloseMr);
    NDK_CQ *cqo = p.a.cq.cq;
    CHECK_NT(got("NdkControlCqInterruptModeration",
                 cqo->Dispatch->NdkControlCqInterruptModeration(cqo, 20, MAXULONG)),
             STATUS_SUCCESS);
    CHECK_NT(got("NdkControlCqInterruptModeration",
                 cqo->Dispatch->NdkControlCqInterruptModeration(cqo, MAXULONG, MAXULONG)),
             STATUS_INVALID_PARAMETER_MIX);
    softndk_set("interrupt-moderation", "missing");
    NDK_ADAPTER_INFO without;
    size = sizeof without;
    CHECK_NT(p.k.ad->Dispatch->NdkQueryAdapterInfo(p.k.ad, &without, &size), STATUS_SUCCESS);
    CHECK(!(without.AdapterFlags & NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED));
    CHECK_NT(got("NdkControlCqInterruptModeration",
                 cqo->Dispatch->NdkControlCqInterruptModeration(cqo, 20, MAXULONG)),
             STATUS_NOT_SUPPORTED);
    softndk_set("interrupt-moderation", "supported");
    /* A chain with a gap, for both that take a chain. */
    MDL *one = IoAllocateMdl(p.mem.p, PAGE_SIZE, FALSE, FALSE, NULL);
    MDL *far = IoAllocateMdl(p.mem.p + 3 * PAGE_SIZE, PAGE_SIZE, FALSE, FALSE, NULL);
    one->Next = far;
    NDK_MR *plain;
    KIT_CREATE(NDK_MR, plain,
               p.k.pd->Dispatch->NdkCreateMr(p.k.pd, FALSE, kit_created, &kit_w, &kit_o));
    CHECK_NT(got("NdkRegisterMr", plain->Dispatch->NdkRegisterMr(plain, one, PAGE_SIZE + 1, 0,
                                                                 kit_request_done, &w)),
             STATUS_INVALID_PARAMETER);
    UCHAR room[0x10 + 8 * 4];
    NDK_LOGICAL_ADDRESS_MAPPING *lam = (NDK_LOGICAL_ADDRESS_MAPPING *)(PVOID)room;
    size = sizeof room;
    CHECK_NT(
        got("NdkBuildLAM", p.k.ad->Dispatch->NdkBuildLAM(p.k.ad, one, PAGE_SIZE + 1,
                                                         kit_request_done, &w, lam, &size, &fbo)),
        STATUS_INVALID_PARAMETER);
    size = 0x10;
    CHECK_NT(
        got("NdkBuildLAM", p.k.ad->Dispatch->NdkBuildLAM(p.k.ad, one, PAGE_SIZE, kit_request_done,
                                                         &w, lam, &size, &fbo)),
        STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(size, 0x18);
    KIT_CLOSE(plain, NdkCloseMr);
    one->Next = NULL;
    IoFreeMdl(one);
    IoFreeMdl(far);
    made_end(&m);
}

static void versions_and_disabled_adapters(void) {
    struct kit k;
    CHECK_NT(got("WskOpenNdkAdapter", kit_open_version(&k, 1, 3)), NDIS_STATUS_BAD_VERSION);
    kit_shut(&k);
    softndk_set("adapter", "disabled");
    CHECK_NT(got("WskOpenNdkAdapter", kit_open_version(&k, 1, 0)), NDIS_STATUS_ADAPTER_NOT_READY);
    softndk_set("adapter", "enabled");
    kit_shut(&k);
}

/* ---- posts ---- */

#define POSTED(f, e, ...) got(#f, (e).qp->Dispatch->f((e).qp, __VA_ARGS__))

static void posts(struct kit_pair *p, NDK_MR *fast, NDK_MW *window, NDK_MW *theirs,
                  NTSTATUS status) {
    NDK_LOGICAL_ADDRESS page;
    UCHAR room[0x18];
    NDK_LOGICAL_ADDRESS_MAPPING *lam = (NDK_LOGICAL_ADDRESS_MAPPING *)(PVOID)room;
    ULONG size = sizeof room, fbo;
    struct kit_wait w;
    kit_wait_init(&w);
    CHECK_NT(kit_finish(&w, p->k.ad->Dispatch->NdkBuildLAM(p->k.ad, p->mem.mdl, PAGE_SIZE,
                                                           kit_request_done, &w, lam, &size, &fbo)),
             STATUS_SUCCESS);
    page = lam->AdapterPageArray[0];
    CHECK_NT(POSTED(NdkFastRegister, p->a, KIT_CTX(1), fast, 1, &page, 0, 8, NULL, 0), status);
    if (status == STATUS_SUCCESS)
        CHECK_NT(POSTED(NdkFastRegister, p->a, KIT_CTX(1), fast, 1, &page, 0, 8, NULL,
                        NDK_OP_FLAG_ALLOW_REMOTE_READ),
                 STATUS_ACCESS_VIOLATION);
    CHECK_NT(POSTED(NdkInvalidate, p->a, KIT_CTX(2), &fast->Header, 0), status);
    CHECK_NT(POSTED(NdkBind, p->a, KIT_CTX(3), p->mem.mr, window, p->mem.p, 8,
                    NDK_OP_FLAG_ALLOW_REMOTE_READ),
             status);
    CHECK_NT(POSTED(NdkSend, p->a, KIT_CTX(4), NULL, 0, 0), status);
    CHECK_NT(POSTED(NdkWrite, p->a, KIT_CTX(5), NULL, 0, 0, 0, 0), status);
    CHECK_NT(POSTED(NdkRead, p->a, KIT_CTX(6), NULL, 0, 0, 0, 0), status);
    UINT32 token = status == STATUS_SUCCESS ? theirs->Dispatch->NdkGetRemoteTokenFromMw(theirs) : 1;
    CHECK_NT(POSTED(NdkSendAndInvalidate, p->a, KIT_CTX(7), NULL, 0, 0, token), status);
    if (status == STATUS_SUCCESS) {
        static const int types[] = { NdkOperationTypeFastRegister, NdkOperationTypeInvalidate,
                                     NdkOperationTypeBind,         NdkOperationTypeSend,
                                     NdkOperationTypeWrite,        NdkOperationTypeRead,
                                     NdkOperationTypeSend };
        for (int i = 0; i < 7; i++)
            CHECK_RESULT(&p->a.cq, types[i], i + 1, STATUS_SUCCESS);
    }
    p->k.ad->Dispatch->NdkReleaseLAM(p->k.ad, lam);
}

static void posts_with_and_without_a_connection(void) {
    struct kit_pair p;
    struct kit_mem m;
    NDK_MW *window;
    NDK_MR *fast;
    NDK_SRQ *queue;
    struct kit_wait w;
    kit_objects(&p);
    KIT_CREATE(NDK_MW, window, p.k.pd->Dispatch->NdkCreateMw(p.k.pd, kit_created, &kit_w, &kit_o));
    KIT_CREATE(NDK_MR, fast,
               p.k.pd->Dispatch->NdkCreateMr(p.k.pd, TRUE, kit_created, &kit_w, &kit_o));
    KIT_CREATE(NDK_SRQ, queue,
               p.k.pd->Dispatch->NdkCreateSrq(p.k.pd, 4, 1, 0, NULL, NULL, NULL, kit_created,
                                              &kit_w, &kit_o));
    kit_wait_init(&w);
    CHECK_NT(kit_finish(&w, fast->Dispatch->NdkInitializeFastRegisterMr(fast, 1, FALSE,
                                                                        kit_request_done, &w)),
             STATUS_SUCCESS);
    posts(&p, fast, window, NULL, STATUS_CONNECTION_INVALID);
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    CHECK_NT(POSTED(NdkReceive, p.b, KIT_CTX(1), &s, 1), STATUS_SUCCESS);
    CHECK_NT(POSTED(NdkReceive, p.b, KIT_CTX(2), &s, 1), STATUS_SUCCESS);
    CHECK_NT(got("NdkSrqReceive", queue->Dispatch->NdkSrqReceive(queue, NULL, &s, 1)),
             STATUS_SUCCESS);
    kit_connect(&p);
    /* a window of b's, for a to invalidate */
    NDK_MW *theirs;
    KIT_CREATE(NDK_MW, theirs, p.k.pd->Dispatch->NdkCreateMw(p.k.pd, kit_created, &kit_w, &kit_o));
    CHECK_NT(POSTED(NdkBind, p.b, KIT_CTX(9), p.mem.mr, theirs, p.mem.p, 8,
                    NDK_OP_FLAG_ALLOW_REMOTE_READ),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeBind, 9, STATUS_SUCCESS);
    posts(&p, fast, window, theirs, STATUS_SUCCESS);
    kit_alloc(&m, 4096);
    kit_register(&p.k, &m, NDK_MR_FLAG_ALLOW_REMOTE_READ);
    CHECK_NT(POSTED(NdkBind, p.a, NULL, m.mr, theirs, m.p, 8, NDK_OP_FLAG_ALLOW_REMOTE_WRITE),
             STATUS_ACCESS_VIOLATION);
    kit_free(&m);
    NDK_RESULT_EX r;
    CHECK_NT(POSTED(NdkRead, p.a, KIT_CTX(8), &s, 1, (UINT64)(ULONG_PTR)p.mem.p + KIT_MEM - 7,
                    kit_remote(&p), 0),
             STATUS_SUCCESS);
    CHECK(kit_result(&p.a.cq, &r));
    CHECK_NT(got("NdkRead", r.Status), STATUS_REMOTE_RESOURCES);
    KIT_CLOSE(theirs, NdkCloseMw);
    KIT_CLOSE(window, NdkCloseMw);
    KIT_CLOSE(fast, NdkCloseMr);
    KIT_CLOSE(queue, NdkCloseSrq);
    kit_down(&p);
}

/* ---- addresses ---- */

static SOCKADDR_IN address(ULONG ip, USHORT port) {
    SOCKADDR_IN a = kit_address(port);
    a.sin_addr.s_addr = RtlUlongByteSwap(ip);
    return a;
}

static NTSTATUS try_connect(struct kit_pair *p, NDK_SHARED_ENDPOINT *e, SOCKADDR_IN from,
                            SOCKADDR_IN to) {
    struct kit_wait w;
    kit_wait_init(&w);
    p->a.connector = kit_connector(&p->k);
    NDK_CONNECTOR *c = p->a.connector;
    NTSTATUS st = e ? both("NdkConnectWithSharedEndpoint", &w,
                           c->Dispatch->NdkConnectWithSharedEndpoint(c, p->a.qp, e, (SOCKADDR *)&to,
                                                                     sizeof to, 1, 1, NULL, 0,
                                                                     kit_request_done, &w))
                    : both("NdkConnect", &w,
                           c->Dispatch->NdkConnect(c, p->a.qp, (SOCKADDR *)&from, sizeof from,
                                                   (SOCKADDR *)&to, sizeof to, 1, 1, NULL, 0,
                                                   kit_request_done, &w));
    KIT_CLOSE(p->a.connector, NdkCloseConnector);
    return st;
}

static NDK_SHARED_ENDPOINT *shared(struct kit_pair *p, SOCKADDR_IN at) {
    NDK_SHARED_ENDPOINT *e;
    KIT_CREATE(NDK_SHARED_ENDPOINT, e,
               p->k.ad->Dispatch->NdkCreateSharedEndpoint(p->k.ad, (SOCKADDR *)&at, sizeof at,
                                                          kit_created, &kit_w, &kit_o));
    return e;
}

static void refused_and_out_of_time(void) {
    struct kit_pair p;
    kit_objects(&p);
    SOCKADDR_IN any = kit_address(0), nobody = kit_address(1);
    NDK_SHARED_ENDPOINT *e = shared(&p, any);
    CHECK_NT(try_connect(&p, NULL, any, nobody), STATUS_CONNECTION_REFUSED);
    CHECK_NT(try_connect(&p, e, any, nobody), STATUS_CONNECTION_REFUSED);
    kit_listen(&p); /* it hears the request, and nobody answers it */
    CHECK_NT(try_connect(&p, NULL, any, p.address), STATUS_IO_TIMEOUT);
    CHECK(kit_wait_event(&p.incoming));
    KIT_CLOSE(p.b.connector, NdkCloseConnector);
    CHECK_NT(try_connect(&p, e, any, p.address), STATUS_IO_TIMEOUT);
    CHECK(kit_wait_event(&p.incoming));
    KIT_CLOSE(e, NdkCloseSharedEndpoint);
    kit_down(&p);
}

static void addresses_that_are_taken_or_not_ours(void) {
    struct kit_pair p;
    struct made m;
    struct kit_wait w;
    kit_up(&p);
    memset(&m, 0, sizeof m);
    m.p = &p;
    SOCKADDR_IN foreign = address(0xC0000201, 0), local;
    ULONG len = sizeof local, small = 1;
    NDK_CONNECTOR *c = p.a.connector;
    CHECK_NT(
        got("NdkGetLocalAddress (connector)", c->Dispatch->NdkGetLocalAddress(c, NULL, &small)),
        STATUS_BUFFER_TOO_SMALL);
    CHECK_NT(got("NdkGetLocalAddress (connector)",
                 c->Dispatch->NdkGetLocalAddress(c, (SOCKADDR *)&local, &len)),
             STATUS_SUCCESS);
    small = 1;
    CHECK_NT(got("NdkGetPeerAddress", c->Dispatch->NdkGetPeerAddress(c, NULL, &small)),
             STATUS_BUFFER_TOO_SMALL);
    CHECK_NT(got("NdkGetPeerAddress", c->Dispatch->NdkGetPeerAddress(c, (SOCKADDR *)&m.at, &len)),
             STATUS_SUCCESS);
    /* the connection holds its port */
    m.at = local;
    CHECK_NT(make(&m, &kinds[4], false), STATUS_SHARING_VIOLATION);
    m.at = foreign;
    CHECK_NT(make(&m, &kinds[4], false), STATUS_INVALID_ADDRESS);
    NDK_LISTENER *l;
    KIT_CREATE(
        NDK_LISTENER, l,
        p.k.ad->Dispatch->NdkCreateListener(p.k.ad, kit_incoming, &p, kit_created, &kit_w, &kit_o));
    kit_wait_init(&w);
    CHECK_NT(
        both("NdkListen", &w,
             l->Dispatch->NdkListen(l, (SOCKADDR *)&local, sizeof local, kit_request_done, &w)),
        STATUS_SHARING_VIOLATION);
    CHECK_NT(
        both("NdkListen", &w,
             l->Dispatch->NdkListen(l, (SOCKADDR *)&foreign, sizeof foreign, kit_request_done, &w)),
        STATUS_INVALID_ADDRESS);
    KIT_CLOSE(l, NdkCloseListener);
    NDK_LISTENER *at = p.listener;
    small = 1;
    CHECK_NT(
        got("NdkGetLocalAddress (listener)", at->Dispatch->NdkGetLocalAddress(at, NULL, &small)),
        STATUS_BUFFER_TOO_SMALL);
    len = sizeof m.at;
    CHECK_NT(got("NdkGetLocalAddress (listener)",
                 at->Dispatch->NdkGetLocalAddress(at, (SOCKADDR *)&m.at, &len)),
             STATUS_SUCCESS);
    struct kit_pair q;
    kit_objects(&q);
    CHECK_NT(try_connect(&q, NULL, local, p.address), STATUS_SHARING_VIOLATION);
    CHECK_NT(try_connect(&q, NULL, foreign, p.address), STATUS_INVALID_ADDRESS);
    NDK_SHARED_ENDPOINT *e = shared(&q, kit_address(0));
    small = 1;
    CHECK_NT(got("NdkGetLocalAddress (shared endpoint)",
                 e->Dispatch->NdkGetLocalAddress(e, NULL, &small)),
             STATUS_BUFFER_TOO_SMALL);
    len = sizeof m.at;
    CHECK_NT(got("NdkGetLocalAddress (shared endpoint)",
                 e->Dispatch->NdkGetLocalAddress(e, (SOCKADDR *)&m.at, &len)),
             STATUS_SUCCESS);
    KIT_CLOSE(e, NdkCloseSharedEndpoint);
    kit_down(&q);
    kit_down(&p);
}

/* Two connections with the same two addresses. For NdkConnect the first is of somebody else, a
 * socket that shares its port: one of our own connections holds its port. */
static void the_same_connection_twice(void) {
    struct kit_pair p, q;
    struct kit_wait con, acc, com;
    kit_objects(&p);
    kit_objects(&q);
    kit_listen(&p);
    NDK_SHARED_ENDPOINT *e = shared(&p, kit_address(0));
    p.a.connector = kit_connector(&p.k);
    kit_wait_init(&con);
    NDK_CONNECTOR *c = p.a.connector;
    NTSTATUS cs = got("NdkConnectWithSharedEndpoint",
                      c->Dispatch->NdkConnectWithSharedEndpoint(
                          c, p.a.qp, e, (SOCKADDR *)&p.address, sizeof p.address, 1, 1, NULL, 0,
                          kit_request_done, &con));
    CHECK(kit_wait_event(&p.incoming));
    kit_wait_init(&acc);
    NTSTATUS as = p.b.connector->Dispatch->NdkAccept(p.b.connector, p.b.qp, 1, 1, NULL, 0, NULL,
                                                     NULL, kit_request_done, &acc);
    CHECK_NT(got("NdkConnectWithSharedEndpoint", kit_finish(&con, cs)), STATUS_SUCCESS);
    kit_wait_init(&com);
    CHECK_NT(
        kit_finish(&com, c->Dispatch->NdkCompleteConnect(c, NULL, NULL, kit_request_done, &com)),
        STATUS_SUCCESS);
    CHECK_NT(kit_finish(&acc, as), STATUS_SUCCESS);
    kit_wait_init(&con);
    NDK_CONNECTOR *again = kit_connector(&p.k);
    CHECK_NT(both("NdkConnectWithSharedEndpoint", &con,
                  again->Dispatch->NdkConnectWithSharedEndpoint(
                      again, q.a.qp, e, (SOCKADDR *)&p.address, sizeof p.address, 1, 1, NULL, 0,
                      kit_request_done, &con)),
             STATUS_ADDRESS_ALREADY_EXISTS);
    KIT_CLOSE(again, NdkCloseConnector);
    KIT_CLOSE(p.a.connector, NdkCloseConnector);
    KIT_CLOSE(e, NdkCloseSharedEndpoint);
    SOCKADDR_IN at = kit_address(host_connect_shared(RtlUshortByteSwap(p.address.sin_port)));
    have_shared_port = at.sin_port != 0;
    NTSTATUS twice =
        have_shared_port ? try_connect(&q, NULL, at, p.address) : STATUS_ADDRESS_ALREADY_EXISTS;
    host_end_shared();
    CHECK_NT(twice, STATUS_ADDRESS_ALREADY_EXISTS);
    kit_down(&p);
    kit_down(&q);
}

/* ---- the network ---- */

static void need_namespace(void) {
    if (!have_namespace) SKIP("network namespaces are not allowed here, or `ip` is missing");
}

static void networks_and_hosts_that_cannot_be_reached(void) {
    struct kit_pair p;
    need_namespace();
    kit_objects(&p);
    SOCKADDR_IN any = kit_address(0), network = address(0x0A020001, 7),
                host = address(0x0A010001, 7);
    NDK_SHARED_ENDPOINT *e = shared(&p, any);
    CHECK_NT(try_connect(&p, NULL, any, network), STATUS_NETWORK_UNREACHABLE);
    CHECK_NT(try_connect(&p, e, any, network), STATUS_NETWORK_UNREACHABLE);
    CHECK_NT(try_connect(&p, NULL, any, host), STATUS_HOST_UNREACHABLE);
    CHECK_NT(try_connect(&p, e, any, host), STATUS_HOST_UNREACHABLE);
    KIT_CLOSE(e, NdkCloseSharedEndpoint);
    kit_down(&p);
}

/* Every port of the dynamic range is bound by sockets that do not share. */
static void every_port_taken(void) {
    struct kit_pair p;
    struct made m;
    struct kit_wait w;
    const char *why;
    need_namespace();
    kit_objects(&p);
    kit_listen(&p);
    memset(&m, 0, sizeof m);
    m.p = &p;
    m.at = kit_address(0);
    bool taken = host_take_ports(49152, &why);
    if (!taken) {
        host_give_ports();
        kit_down(&p);
        SKIP("%s", why);
    }
    NTSTATUS made = make(&m, &kinds[4], false);
    NTSTATUS connected = try_connect(&p, NULL, m.at, p.address);
    NDK_LISTENER *l;
    KIT_CREATE(
        NDK_LISTENER, l,
        p.k.ad->Dispatch->NdkCreateListener(p.k.ad, kit_incoming, &p, kit_created, &kit_w, &kit_o));
    kit_wait_init(&w);
    NTSTATUS listening =
        both("NdkListen", &w,
             l->Dispatch->NdkListen(l, (SOCKADDR *)&m.at, sizeof m.at, kit_request_done, &w));
    host_give_ports();
    KIT_CLOSE(l, NdkCloseListener);
    kit_down(&p);
    CHECK_NT(made, STATUS_TOO_MANY_ADDRESSES);
    CHECK_NT(connected, STATUS_TOO_MANY_ADDRESSES);
    CHECK_NT(listening, STATUS_TOO_MANY_ADDRESSES);
}

/* ---- establishing ---- */

static void on_end_ex(PVOID ctx, ULONG reason) {
    (void)reason;
    kit_disconnected(ctx);
}

struct attempt {
    struct kit_wait con, acc, com;
    NTSTATUS cs, as;
};

static void begin(struct kit_pair *p, struct attempt *a) {
    SOCKADDR_IN any = kit_address(0);
    p->a.connector = kit_connector(&p->k);
    kit_wait_init(&a->con);
    a->cs = got("NdkConnect",
                p->a.connector->Dispatch->NdkConnect(
                    p->a.connector, p->a.qp, (SOCKADDR *)&any, sizeof any, (SOCKADDR *)&p->address,
                    sizeof p->address, 1, 1, NULL, 0, kit_request_done, &a->con));
    CHECK(kit_wait_event(&p->incoming));
}

static void answer(struct kit_pair *p, struct attempt *a, bool ex) {
    NDK_CONNECTOR *b = p->b.connector;
    kit_wait_init(&a->acc);
    if (ex)
        a->as = got("NdkAcceptEx", b->Dispatch->NdkAcceptEx(b, p->b.qp, 1, 1, NULL, 0, on_end_ex,
                                                            &p->b, kit_request_done, &a->acc));
    else
        a->as = got("NdkAccept", b->Dispatch->NdkAccept(b, p->b.qp, 1, 1, NULL, 0, kit_disconnected,
                                                        &p->b, kit_request_done, &a->acc));
}

static NTSTATUS complete(struct kit_pair *p, struct attempt *a, bool ex) {
    NDK_CONNECTOR *c = p->a.connector;
    kit_wait_init(&a->com);
    if (ex)
        return both(
            "NdkCompleteConnectEx", &a->com,
            c->Dispatch->NdkCompleteConnectEx(c, on_end_ex, &p->a, kit_request_done, &a->com));
    return both(
        "NdkCompleteConnect", &a->com,
        c->Dispatch->NdkCompleteConnect(c, kit_disconnected, &p->a, kit_request_done, &a->com));
}

static void establishing_in_all_its_endings(void) {
    static const char *const accept_names[] = { "NdkAccept", "NdkAcceptEx" };
    enum { GOOD, GIVEN_UP_EARLY, GIVEN_UP, NEVER_COMPLETED, LEFT_AFTER_ACCEPT, ENDINGS };
    for (int ex = 0; ex < 2; ex++) {
        int tries = 0;
        for (int how = 0; how < ENDINGS; how++) {
            struct kit_pair p;
            struct attempt a;
            const char *name = accept_names[ex];
            kit_objects(&p);
            kit_listen(&p);
            begin(&p, &a);
            if (how == GIVEN_UP_EARLY) { /* the connecting side leaves before the answer */
                KIT_CLOSE(p.a.connector, NdkCloseConnector);
                answer(&p, &a, ex);
                CHECK_NT(got(name, kit_finish(&a.acc, a.as)), STATUS_CONNECTION_ABORTED);
                kit_down(&p);
                continue;
            }
            answer(&p, &a, ex);
            CHECK_NT(got("NdkConnect", kit_finish(&a.con, a.cs)), STATUS_SUCCESS);
            if (how == GOOD) {
                CHECK_NT(complete(&p, &a, ex), STATUS_SUCCESS);
                CHECK_NT(got(name, kit_finish(&a.acc, a.as)), STATUS_SUCCESS);
                CHECK_NT(complete(&p, &a, ex), STATUS_CONNECTION_INVALID);
                struct kit_wait w;
                kit_wait_init(&w);
                CHECK_NT(both("NdkDisconnect", &w,
                              p.a.connector->Dispatch->NdkDisconnect(p.a.connector,
                                                                     kit_request_done, &w)),
                         STATUS_SUCCESS);
                CHECK(kit_wait_event(&p.b.disconnected));
            } else if (how == GIVEN_UP) {
                KIT_CLOSE(p.a.connector, NdkCloseConnector);
                CHECK_NT(got(name, kit_finish(&a.acc, a.as)), STATUS_CONNECTION_ABORTED);
            } else if (how == NEVER_COMPLETED) { /* the accepting side waits, and then gives up */
                CHECK_NT(got(name, kit_finish(&a.acc, a.as)), STATUS_IO_TIMEOUT);
            } else {
                /* Whether the news has come by now is up to the system: once more, and later, if
                 * not. */
                LARGE_INTEGER later = { .QuadPart = -10000 * tries };
                KIT_CLOSE(p.b.connector, NdkCloseConnector);
                KeDelayExecutionThread(KernelMode, FALSE, &later);
                NTSTATUS st = complete(&p, &a, ex);
                if (st == STATUS_SUCCESS && ++tries < 60)
                    how--;
                else
                    CHECK_NT(st, STATUS_CONNECTION_ABORTED);
            }
            kit_down(&p);
        }
    }
}

/* Accept and CompleteConnect with the n-th allocation failing. True if it was met. */
static bool establish_without_memory(int which, int n, bool *failed) {
    struct kit_pair p;
    struct attempt a;
    NTSTATUS st;
    kit_objects(&p);
    kit_listen(&p);
    begin(&p, &a);
    if (which == 0) os_fault_arm(OS_FAULT_ALLOC, n);
    answer(&p, &a, false);
    if (which == 0) {
        st = a.as;
    } else {
        CHECK_NT(kit_finish(&a.con, a.cs), STATUS_SUCCESS);
        NDK_CONNECTOR *c = p.a.connector;
        kit_wait_init(&a.com);
        os_fault_arm(OS_FAULT_ALLOC, n);
        st = c->Dispatch->NdkCompleteConnect(c, NULL, NULL, kit_request_done, &a.com);
        st = kit_finish(&a.com, st);
    }
    bool fired = os_fault_fired(OS_FAULT_ALLOC);
    os_fault_arm(OS_FAULT_ALLOC, -1);
    *failed |= st == STATUS_INSUFFICIENT_RESOURCES;
    bool other_end = fired && which == 1 && st == STATUS_CONNECTION_ABORTED; /* it failed there */
    if (!other_end && st != STATUS_INSUFFICIENT_RESOURCES)
        CHECK_NT(st, which == 0 ? STATUS_PENDING : STATUS_SUCCESS);
    /* Whatever it was, both ends can be closed, and what was pending ends. */
    KIT_CLOSE(p.a.connector, NdkCloseConnector);
    KIT_CLOSE(p.b.connector, NdkCloseConnector);
    if (a.cs == STATUS_PENDING) CHECK(kit_wait_event(&a.con.event));
    if (a.as == STATUS_PENDING) CHECK(kit_wait_event(&a.acc.event));
    kit_down(&p);
    return fired;
}

static void accepting_and_completing_need_memory(void) {
    need_faults();
    for (int which = 0; which < 2; which++) {
        bool failed = false;
        int n = 0;
        while (establish_without_memory(which, n, &failed))
            CHECK(++n < 100);
        CHECK(failed);
    }
    CHECK_EQ(softndk_report_leaks(), 0);
}

static void rejecting_and_its_data(void) {
    struct kit_pair p;
    struct attempt a;
    char buf[64];
    ULONG len = 1;
    kit_objects(&p);
    kit_listen(&p);
    begin(&p, &a);
    NDK_CONNECTOR *b = p.b.connector;
    CHECK_NT(got("NdkReject", b->Dispatch->NdkReject(b, "no!", 3)), STATUS_SUCCESS);
    CHECK_NT(got("NdkConnect", kit_finish(&a.con, a.cs)), STATUS_CONNECTION_REFUSED);
    NDK_CONNECTOR *c = p.a.connector;
    CHECK_NT(
        got("NdkGetConnectionData", c->Dispatch->NdkGetConnectionData(c, NULL, NULL, buf, &len)),
        STATUS_BUFFER_TOO_SMALL);
    len = sizeof buf;
    CHECK_NT(
        got("NdkGetConnectionData", c->Dispatch->NdkGetConnectionData(c, NULL, NULL, buf, &len)),
        STATUS_SUCCESS);
    CHECK_BYTES(buf, "no!", 3);
    KIT_CLOSE(p.a.connector, NdkCloseConnector);
    KIT_CLOSE(p.b.connector, NdkCloseConnector);
    begin(&p, &a);
    KIT_CLOSE(p.a.connector, NdkCloseConnector); /* before the answer */
    b = p.b.connector;
    CHECK_NT(got("NdkReject", b->Dispatch->NdkReject(b, NULL, 0)), STATUS_CONNECTION_ABORTED);
    kit_down(&p);
}

/* ---- the sum ---- */

static void every_documented_status_was_got(void) {
    int missing = 0;
    for (size_t i = 0; i < RTL_NUMBER_OF(rows); i++) {
        struct row *r = &rows[i];
        bool possible = !(r->how & NEVER) && (!(r->how & IN_NAMESPACE) || have_namespace) &&
                        (!(r->how & BY_FAULT) || os_fault_available()) &&
                        (!(r->how & SHARED_PORT) || have_shared_port);
        if (r->how & NEVER) CHECK(!r->got); /* then it belongs among the others */
        if (possible && !r->got) {
            fprintf(stderr, "%s: STATUS_%s was not got\n", r->function, name_of(r->status));
            missing++;
        }
    }
    CHECK_EQ(missing, 0);
}

static size_t print_table(char *to, size_t size) {
    size_t n = (size_t)snprintf(to, size, "| function | status | provoked by |\n|---|---|---|\n");
    for (size_t i = 0; i < RTL_NUMBER_OF(rows) && n < size; i++) {
        struct row *r = &rows[i];
        n += (size_t)snprintf(to + n, size - n, "| %s | %s | %s%s |\n", r->function,
                              name_of(r->status), r->how & NEVER ? "never given: " : "",
                              r->how & NEVER ? r->why
                              : r->by        ? r->by
                                             : "not provoked here");
    }
    return n;
}

static char table[1 << 16], in_docs[1 << 16];

static int write_table(const char *path) {
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        return 1;
    }
    fwrite(table, 1, print_table(table, sizeof table), f);
    return fclose(f) == 0 ? 0 : 1;
}

static const char *documented; /* --check */

static void table_in_the_documentation_is_this_one(void) {
    if (!documented) SKIP("no --check FILE");
    if (!have_namespace || !os_fault_available()) SKIP("not every case could run here");
    size_t n = print_table(table, sizeof table - 1);
    FILE *f = fopen(documented, "r");
    CHECK(f != NULL);
    size_t m = fread(in_docs, 1, sizeof in_docs - 1, f);
    fclose(f);
    in_docs[m] = 0;
    const char *at = strstr(in_docs, "| function |");
    CHECK(n < sizeof table && m < sizeof in_docs - 1 && at != NULL);
    if (strcmp(at, table) != 0)
        FAIL("%s has another table; `ndk_statuses_test --table FILE` writes this one", documented);
}

/* Says which case runs. */
#define NAMED(fn)                                                                                  \
    static void in_##fn(void) {                                                                    \
        now = #fn;                                                                                 \
        fn();                                                                                      \
    }
NAMED(objects_are_made_and_closed_at_once_and_later)
NAMED(objects_without_memory_are_not_made)
NAMED(adapters_without_memory_are_not_opened)
NAMED(requests_with_and_without_memory)
NAMED(listening_and_connecting_need_memory)
NAMED(arguments_out_of_range)
NAMED(versions_and_disabled_adapters)
NAMED(posts_with_and_without_a_connection)
NAMED(refused_and_out_of_time)
NAMED(addresses_that_are_taken_or_not_ours)
NAMED(the_same_connection_twice)
NAMED(networks_and_hosts_that_cannot_be_reached)
NAMED(every_port_taken)
NAMED(establishing_in_all_its_endings)
NAMED(rejecting_and_its_data)
NAMED(posts_without_memory)
NAMED(regions_without_tokens)
NAMED(notifications_and_their_statuses)
NAMED(accepting_and_completing_need_memory)

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
#define CASE(fn) { #fn, in_##fn }
        CASE(every_port_taken), /* first: no port has had a connection */
        CASE(objects_are_made_and_closed_at_once_and_later),
        CASE(objects_without_memory_are_not_made),
        CASE(adapters_without_memory_are_not_opened),
        CASE(requests_with_and_without_memory),
        CASE(listening_and_connecting_need_memory),
        CASE(arguments_out_of_range),
        CASE(versions_and_disabled_adapters),
        CASE(posts_with_and_without_a_connection),
        CASE(refused_and_out_of_time),
        CASE(addresses_that_are_taken_or_not_ours),
        CASE(the_same_connection_twice),
        CASE(networks_and_hosts_that_cannot_be_reached),
        CASE(establishing_in_all_its_endings),
        CASE(rejecting_and_its_data),
        CASE(posts_without_memory),
        CASE(regions_without_tokens),
        CASE(notifications_and_their_statuses),
        CASE(accepting_and_completing_need_memory),
        TEST(every_documented_status_was_got),
        TEST(table_in_the_documentation_is_this_one),
    };
    const char *to = argc == 3 && strcmp(argv[1], "--table") == 0 ? argv[2] : NULL;
    documented = argc == 3 && strcmp(argv[1], "--check") == 0 ? argv[2] : NULL;
    host_setenv("SOFTND_MPA_ANSWER_MS", "400");
    host_setenv("SOFTND_TRANSPORT", "iwarp");
    have_namespace = host_enter_namespace();
    int code = test_main(to || documented ? 1 : argc, argv, cases, RTL_NUMBER_OF(cases));
    return to ? write_table(to) : code;
}
