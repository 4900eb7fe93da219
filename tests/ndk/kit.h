/* SPDX-License-Identifier: MIT
 * kit.h - what most NDK cases need: an adapter through Winsock Kernel, objects made and closed
 * with waits, a connected pair of queue pairs over loopback.
 * Owns:    nothing; inline helpers. Those that check use the frame's FAIL, so only from the thread
 *          that runs the case. Waits have a deadline.
 */
#ifndef SN_TESTS_NDK_KIT_H
#define SN_TESTS_NDK_KIT_H

#include "ndis.h"
#include "wsk.h"
#include "ndkpi.h"
#include "wskndk.h"
#include "softndk.h"
#include "support/testing.h"

#define KIT_TAG 0x54494B4E /* "NKIT" */
#define KIT_SECONDS 20
#define KIT_LOOPBACK 1 /* its interface index, on Linux and Windows */

#define CHECK_NT(actual, expected)                                                                 \
    do {                                                                                           \
        NTSTATUS check_s = (actual), check_x = (expected);                                         \
        if (check_s != check_x)                                                                    \
            FAIL("%s is 0x%08X, expected %s", #actual, (unsigned)check_s, #expected);              \
    } while (0)

/* A counter that a callback may be adding to. */
#define COUNT(x) InterlockedCompareExchange(&(x), 0, 0)

/* ---- waiting ---- */

struct kit_wait {
    KEVENT event;
    NTSTATUS status;
    NDK_OBJECT_HEADER *object;
    LONG calls; /* COUNT() */
    KIRQL irql;
};

static inline struct kit_wait *kit_wait_init(struct kit_wait *w) {
    memset(w, 0, sizeof *w);
    KeInitializeEvent(&w->event, NotificationEvent, FALSE);
    return w;
}

static inline bool kit_wait_event(KEVENT *event) {
    LARGE_INTEGER t = { .QuadPart = -KIT_SECONDS * 10000000ll };
    return KeWaitForSingleObject(event, Executive, KernelMode, FALSE, &t) == STATUS_SUCCESS;
}

static inline void kit_request_done(PVOID ctx, NTSTATUS status) {
    struct kit_wait *w = (struct kit_wait *)ctx;
    w->status = status;
    InterlockedIncrement(&w->calls);
    w->irql = KeGetCurrentIrql();
    KeSetEvent(&w->event, 0, FALSE);
}

static inline void kit_created(PVOID ctx, NTSTATUS status, NDK_OBJECT_HEADER *object) {
    struct kit_wait *w = (struct kit_wait *)ctx;
    w->object = object;
    kit_request_done(ctx, status);
}

static inline void kit_closed(PVOID ctx) {
    kit_request_done(ctx, STATUS_SUCCESS);
}

/* The final status of a call that was given w. */
static inline NTSTATUS kit_finish(struct kit_wait *w, NTSTATUS status) {
    if (status != STATUS_PENDING) return status;
    if (!kit_wait_event(&w->event)) FAIL("a pending request did not complete");
    return w->status;
}

/* Creates by calling `call` with w, and takes the object from where it came. */
#define KIT_CREATE(type, out, call)                                                                \
    do {                                                                                           \
        struct kit_wait kit_w;                                                                     \
        type *kit_o = NULL;                                                                        \
        kit_wait_init(&kit_w);                                                                     \
        NTSTATUS kit_s = (call);                                                                   \
        bool kit_p = kit_s == STATUS_PENDING;                                                      \
        CHECK_NT(kit_finish(&kit_w, kit_s), STATUS_SUCCESS);                                       \
        (out) = kit_p ? (type *)kit_w.object : kit_o;                                              \
        CHECK((out) != NULL);                                                                      \
    } while (0)

/* Closes an object and waits until it is closed. */
static inline void kit_close(NDK_OBJECT_HEADER *o, NDK_FN_CLOSE_OBJECT *close) {
    struct kit_wait w;
    kit_wait_init(&w);
    CHECK_NT(kit_finish(&w, close(o, kit_closed, &w)), STATUS_SUCCESS);
}
#define KIT_CLOSE(p, method)                                                                       \
    do {                                                                                           \
        if (p) kit_close(&(p)->Header, (p)->Dispatch->method);                                     \
        (p) = NULL;                                                                                \
    } while (0)

/* ---- adapter ---- */

struct kit {
    WSK_REGISTRATION registration;
    WSK_PROVIDER_NPI npi;
    WSK_PROVIDER_NDK_DISPATCH ndk;
    NDK_ADAPTER *ad;
    NDK_ADAPTER_INFO info;
    NDK_PD *pd;
    UINT32 privileged;
};

static inline NTSTATUS kit_open_version(struct kit *k, USHORT major, USHORT minor) {
    static const WSK_CLIENT_DISPATCH dispatch = { MAKE_WSK_VERSION(1, 0), 0, NULL };
    WSK_CLIENT_NPI client = { NULL, &dispatch };
    NDK_VERSION version = { major, minor };
    ULONG size = sizeof k->info;
    memset(k, 0, sizeof *k);
    CHECK_NT(WskRegister(&client, &k->registration), STATUS_SUCCESS);
    CHECK_NT(WskCaptureProviderNPI(&k->registration, WSK_INFINITE_WAIT, &k->npi), STATUS_SUCCESS);
    CHECK_NT(k->npi.Dispatch->WskControlClient(k->npi.Client, WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH,
                                               0, NULL, sizeof k->ndk, &k->ndk, NULL, NULL),
             STATUS_SUCCESS);
    NTSTATUS status =
        k->ndk.WskOpenNdkAdapter(k->npi.Client, version, KIT_LOOPBACK, &k->ad);
    if (status == STATUS_SUCCESS)
        CHECK_NT(k->ad->Dispatch->NdkQueryAdapterInfo(k->ad, &k->info, &size), STATUS_SUCCESS);
    return status;
}

static inline void kit_open(struct kit *k) {
    CHECK_NT(kit_open_version(k, 2, 1), STATUS_SUCCESS);
    KIT_CREATE(NDK_PD, k->pd, k->ad->Dispatch->NdkCreatePd(k->ad, kit_created, &kit_w, &kit_o));
    k->pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(k->pd, &k->privileged);
}

static inline void kit_shut(struct kit *k) {
    KIT_CLOSE(k->pd, NdkClosePd);
    if (k->ad) k->ndk.WskCloseNdkAdapter(k->npi.Client, k->ad);
    WskReleaseProviderNPI(&k->registration);
    WskDeregister(&k->registration);
}

/* ---- completion queues and queue pairs ---- */

struct kit_cq {
    NDK_CQ *cq;
    KEVENT notified;
    LONG calls; /* COUNT() */
    NTSTATUS status;
    KIRQL irql;
};

static inline void kit_notified(PVOID ctx, NTSTATUS status) {
    struct kit_cq *c = (struct kit_cq *)ctx;
    InterlockedIncrement(&c->calls);
    c->status = status;
    c->irql = KeGetCurrentIrql();
    KeSetEvent(&c->notified, 0, FALSE);
}

static inline void kit_make_cq(struct kit *k, struct kit_cq *c, ULONG depth) {
    memset(c, 0, sizeof *c);
    KeInitializeEvent(&c->notified, SynchronizationEvent, FALSE);
    KIT_CREATE(NDK_CQ, c->cq,
               k->ad->Dispatch->NdkCreateCq(k->ad, depth, kit_notified, c, NULL, kit_created,
                                            &kit_w, &kit_o));
}

/* The next result, waiting for it with an arm. False at the deadline. */
static inline bool kit_result(struct kit_cq *c, NDK_RESULT_EX *out) {
    for (;;) {
        if (c->cq->Dispatch->NdkGetCqResultsEx(c->cq, out, 1)) return true;
        c->cq->Dispatch->NdkArmCq(c->cq, NDK_CQ_NOTIFY_ANY);
        if (c->cq->Dispatch->NdkGetCqResultsEx(c->cq, out, 1)) return true;
        if (!kit_wait_event(&c->notified)) return false;
    }
}

static inline void kit_drain(struct kit_cq *c) {
    NDK_RESULT_EX r[8];
    while (c->cq && c->cq->Dispatch->NdkGetCqResultsEx(c->cq, r, 8) != 0) {
    }
}

#define CHECK_RESULT(c, type_, ctx_, status_)                                                      \
    do {                                                                                           \
        NDK_RESULT_EX res_;                                                                        \
        CHECK(kit_result(c, &res_));                                                               \
        CHECK_NT(res_.Status, status_);                                                            \
        CHECK_EQ(res_.Type, type_);                                                                \
        CHECK_PTR(res_.RequestContext, (void *)(uintptr_t)(ctx_));                                 \
    } while (0)

#define KIT_CTX(n) ((PVOID)(uintptr_t)(n))

/* ---- memory ---- */

struct kit_mem {
    UCHAR *p;
    ULONG bytes;
    MDL *mdl;
    NDK_MR *mr; /* registered with all rights */
};

static inline void kit_alloc(struct kit_mem *m, ULONG bytes) {
    memset(m, 0, sizeof *m);
    m->bytes = bytes;
    m->p = (UCHAR *)ExAllocatePoolZero(NonPagedPoolNx, bytes, KIT_TAG);
    CHECK(m->p != NULL);
    m->mdl = IoAllocateMdl(m->p, bytes, FALSE, FALSE, NULL);
    CHECK(m->mdl != NULL);
    MmBuildMdlForNonPagedPool(m->mdl);
}

static inline void kit_register(struct kit *k, struct kit_mem *m, ULONG flags) {
    struct kit_wait w;
    KIT_CREATE(NDK_MR, m->mr,
               k->pd->Dispatch->NdkCreateMr(k->pd, FALSE, kit_created, &kit_w, &kit_o));
    kit_wait_init(&w);
    CHECK_NT(kit_finish(&w, m->mr->Dispatch->NdkRegisterMr(m->mr, m->mdl, m->bytes, flags,
                                                           kit_request_done, &w)),
             STATUS_SUCCESS);
}

static inline void kit_free(struct kit_mem *m) {
    KIT_CLOSE(m->mr, NdkCloseMr);
    if (m->mdl) IoFreeMdl(m->mdl);
    if (m->p) ExFreePoolWithTag(m->p, KIT_TAG);
    memset(m, 0, sizeof *m);
}

static inline NDK_SGE kit_sge(struct kit_mem *m, ULONG off, ULONG len) {
    NDK_SGE s;
    memset(&s, 0, sizeof s);
    s.VirtualAddress = m->p + off;
    s.Length = len;
    s.MemoryRegionToken = m->mr->Dispatch->NdkGetLocalTokenFromMr(m->mr);
    return s;
}

/* ---- a connected pair ---- */

struct kit_end {
    struct kit_cq cq;
    NDK_QP *qp;
    NDK_CONNECTOR *connector;
    LONG disconnects; /* COUNT() */
    KEVENT disconnected;
};

struct kit_pair {
    struct kit k;
    struct kit_end a, b; /* active, passive */
    NDK_LISTENER *listener;
    KEVENT incoming;
    struct kit_mem mem;
    SOCKADDR_IN address; /* of the listener */
    ULONG depth;
};

static inline void kit_disconnected(PVOID ctx) {
    struct kit_end *e = (struct kit_end *)ctx;
    InterlockedIncrement(&e->disconnects);
    KeSetEvent(&e->disconnected, 0, FALSE);
}

static inline void kit_incoming(PVOID ctx, NDK_CONNECTOR *connector) {
    struct kit_pair *p = (struct kit_pair *)ctx;
    p->b.connector = connector;
    KeSetEvent(&p->incoming, 0, FALSE);
}

enum { KIT_DEPTH = 16, KIT_SGE = 4, KIT_INLINE = 64, KIT_MEM = 1 << 16 };

static inline void kit_make_qp(struct kit *k, struct kit_cq *cq, NDK_QP **out) {
    KIT_CREATE(NDK_QP, *out,
               k->pd->Dispatch->NdkCreateQp(k->pd, cq->cq, cq->cq, out, KIT_DEPTH, KIT_DEPTH,
                                            KIT_SGE, KIT_SGE, KIT_INLINE, kit_created, &kit_w,
                                            &kit_o));
}

static inline SOCKADDR_IN kit_address(USHORT port) {
    SOCKADDR_IN a;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = RtlUshortByteSwap(port);
    a.sin_addr.s_addr = RtlUlongByteSwap(0x7F000001);
    return a;
}

static inline void kit_listen(struct kit_pair *p) {
    struct kit_wait w;
    SOCKADDR_IN any = kit_address(0);
    ULONG len = sizeof p->address;
    KIT_CREATE(NDK_LISTENER, p->listener,
               p->k.ad->Dispatch->NdkCreateListener(p->k.ad, kit_incoming, p, kit_created, &kit_w,
                                                    &kit_o));
    kit_wait_init(&w);
    CHECK_NT(kit_finish(&w, p->listener->Dispatch->NdkListen(p->listener, (SOCKADDR *)&any,
                                                             sizeof any, kit_request_done, &w)),
             STATUS_SUCCESS);
    CHECK_NT(p->listener->Dispatch->NdkGetLocalAddress(p->listener, (SOCKADDR *)&p->address, &len),
             STATUS_SUCCESS);
    CHECK(p->address.sin_port != 0);
}

static inline void kit_objects(struct kit_pair *p) {
    memset(p, 0, sizeof *p);
    kit_open(&p->k);
    KeInitializeEvent(&p->incoming, SynchronizationEvent, FALSE);
    struct kit_end *ends[] = { &p->a, &p->b };
    for (int i = 0; i < 2; i++) {
        KeInitializeEvent(&ends[i]->disconnected, NotificationEvent, FALSE);
        kit_make_cq(&p->k, &ends[i]->cq, 2 * KIT_DEPTH);
        kit_make_qp(&p->k, &ends[i]->cq, &ends[i]->qp);
    }
    kit_alloc(&p->mem, KIT_MEM);
    kit_register(&p->k, &p->mem,
                 NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |
                     NDK_MR_FLAG_ALLOW_REMOTE_WRITE);
}

static inline NDK_CONNECTOR *kit_connector(struct kit *k) {
    NDK_CONNECTOR *c;
    KIT_CREATE(NDK_CONNECTOR, c,
               k->ad->Dispatch->NdkCreateConnector(k->ad, kit_created, &kit_w, &kit_o));
    return c;
}

static inline void kit_connect(struct kit_pair *p) {
    struct kit_wait con, acc, com;
    SOCKADDR_IN from = kit_address(0);
    if (!p->listener) kit_listen(p);
    p->a.connector = kit_connector(&p->k);
    kit_wait_init(&con);
    NTSTATUS cs = p->a.connector->Dispatch->NdkConnect(
        p->a.connector, p->a.qp, (SOCKADDR *)&from, sizeof from, (SOCKADDR *)&p->address,
        sizeof p->address, 16, 16, NULL, 0, kit_request_done, &con);
    CHECK(cs == STATUS_PENDING || cs == STATUS_SUCCESS);
    CHECK(kit_wait_event(&p->incoming));
    kit_wait_init(&acc);
    NTSTATUS as = p->b.connector->Dispatch->NdkAccept(
        p->b.connector, p->b.qp, 16, 16, NULL, 0, kit_disconnected, &p->b, kit_request_done, &acc);
    CHECK_NT(kit_finish(&con, cs), STATUS_SUCCESS);
    kit_wait_init(&com);
    CHECK_NT(kit_finish(&com, p->a.connector->Dispatch->NdkCompleteConnect(
                                  p->a.connector, kit_disconnected, &p->a, kit_request_done, &com)),
             STATUS_SUCCESS);
    CHECK_NT(kit_finish(&acc, as), STATUS_SUCCESS);
}

static inline void kit_up(struct kit_pair *p) {
    kit_objects(p);
    kit_connect(p);
}

/* Closes what both ends have, and the listener. */
static inline void kit_down_ends(struct kit_pair *p) {
    struct kit_end *ends[] = { &p->a, &p->b };
    for (int i = 0; i < 2; i++) {
        if (ends[i]->qp) ends[i]->qp->Dispatch->NdkFlush(ends[i]->qp);
        KIT_CLOSE(ends[i]->connector, NdkCloseConnector);
    }
    KIT_CLOSE(p->listener, NdkCloseListener);
    for (int i = 0; i < 2; i++) {
        KIT_CLOSE(ends[i]->qp, NdkCloseQp);
        kit_drain(&ends[i]->cq);
        KIT_CLOSE(ends[i]->cq.cq, NdkCloseCq);
    }
}

static inline void kit_down(struct kit_pair *p) {
    kit_down_ends(p);
    kit_free(&p->mem);
    kit_shut(&p->k);
}

static inline UINT32 kit_remote(struct kit_pair *p) {
    return p->mem.mr->Dispatch->NdkGetRemoteTokenFromMr(p->mem.mr);
}

#endif
