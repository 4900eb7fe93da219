/* SPDX-License-Identifier: MIT
 * lead_test.c - threads of one process that wait for events in all ways, over one adapter, so that
 * each of them may come to sleep in the engine's place: no message and no notification is lost or
 * seen twice, whoever polls hard beside them, and whoever opens and closes another adapter.
 */
#include <initguid.h>
#include "base/base.h"
#include "os/prim/clock.h"
#include "os/prim/thread.h"
#include "softnd.h"
#include "support/portable.h"
#include "support/testing.h"

enum { DEADLINE_MS = 20000, PAIRS_MAX = 3, ROUNDS = 150, BIG = 20000 };

enum way { BY_EVENT, BY_RESULT, BY_PORT, BY_POLLING, WAYS };

struct end {
    IND2CompletionQueue *cq;
    IND2QueuePair *qp;
    IND2Connector *connector;
    IND2MemoryRegion *mr;
    HANDLE file, event, port;
    bool first;
    uint32_t seed;
    const char *fault; /* what went wrong */
    uint32_t rounds, notified;
    uint8_t in[BIG], out[BIG];
};

static IND2Provider *provider;
static IND2Adapter *adapter;
static UINT64 adapter_id;
static struct sockaddr_in at;

static HRESULT finish(void *object, HRESULT hr, OVERLAPPED *ov) {
    if (hr != ND_PENDING) return hr;
    return IND2Overlapped_GetOverlappedResult((IND2Overlapped *)object, ov, TRUE);
}

static void open_end(struct end *e, uint32_t seed) {
    OVERLAPPED ov = { 0 };
    memset(e, 0, sizeof *e);
    e->seed = seed;
    e->event = CreateEventW(NULL, FALSE, FALSE, NULL);
    CHECK_EQ(IND2Adapter_CreateOverlappedFile(adapter, &e->file), ND_SUCCESS);
    e->port = CreateIoCompletionPort(e->file, NULL, 1, 0);
    CHECK(e->port != NULL);
    CHECK_EQ(IND2Adapter_CreateCompletionQueue(adapter, &IID_IND2CompletionQueue, e->file, 64, 0, 0,
                                               (void **)&e->cq),
             ND_SUCCESS);
    CHECK_EQ(IND2Adapter_CreateQueuePair(adapter, &IID_IND2QueuePair, (IUnknown *)e->cq,
                                         (IUnknown *)e->cq, e, 8, 8, 1, 1, 0, (void **)&e->qp),
             ND_SUCCESS);
    CHECK_EQ(
        IND2Adapter_CreateConnector(adapter, &IID_IND2Connector, e->file, (void **)&e->connector),
        ND_SUCCESS);
    CHECK_EQ(
        IND2Adapter_CreateMemoryRegion(adapter, &IID_IND2MemoryRegion, e->file, (void **)&e->mr),
        ND_SUCCESS);
    ov.hEvent = (HANDLE)((uintptr_t)e->event | 1); /* no packet */
    HRESULT hr = IND2MemoryRegion_Register(e->mr, e->in, sizeof e->in + sizeof e->out,
                                           ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov);
    CHECK_EQ(finish(e->mr, hr, &ov), ND_SUCCESS);
    ResetEvent(e->event);
}

static void close_end(struct end *e) {
    IND2Connector_Release(e->connector);
    IND2QueuePair_Release(e->qp);
    IND2MemoryRegion_Release(e->mr);
    IND2CompletionQueue_Release(e->cq);
    CloseHandle(e->port);
    CloseHandle(e->file);
    CloseHandle(e->event);
}

static void establish(IND2Listener *listener, struct end *a, struct end *p) {
    HANDLE quiet = (HANDLE)((uintptr_t)a->event | 1);
    OVERLAPPED get = { .hEvent = quiet }, connect = get, accept = get, complete = get;
    CHECK_EQ(IND2Listener_GetConnectionRequest(listener, (IUnknown *)p->connector, &get),
             ND_PENDING);
    CHECK_EQ(IND2Connector_Connect(a->connector, (IUnknown *)a->qp, (struct sockaddr *)&at,
                                   sizeof at, 0, 0, NULL, 0, &connect),
             ND_PENDING);
    CHECK_EQ(IND2Listener_GetOverlappedResult(listener, &get, TRUE), ND_SUCCESS);
    CHECK_EQ(IND2Connector_Accept(p->connector, (IUnknown *)p->qp, 0, 0, NULL, 0, &accept),
             ND_PENDING);
    CHECK_EQ(IND2Connector_GetOverlappedResult(a->connector, &connect, TRUE), ND_SUCCESS);
    CHECK_EQ(IND2Connector_CompleteConnect(a->connector, &complete), ND_PENDING);
    CHECK_EQ(IND2Connector_GetOverlappedResult(a->connector, &complete, TRUE), ND_SUCCESS);
    CHECK_EQ(IND2Connector_GetOverlappedResult(p->connector, &accept, TRUE), ND_SUCCESS);
    ResetEvent(a->event);
}

/* ---- the threads ---- */

static uint32_t draw(struct end *e) {
    e->seed = e->seed * 1664525u + 1013904223u;
    return e->seed >> 16;
}

static bool wait_for_notify(struct end *e, OVERLAPPED *ov, enum way way) {
    DWORD bytes;
    ULONG_PTR key;
    OVERLAPPED *which = NULL;
    switch (way) {
    case BY_EVENT:
        if (WaitForSingleObject(e->event, DEADLINE_MS) != WAIT_OBJECT_0) return false;
        break;
    case BY_PORT:
        if (!GetQueuedCompletionStatus(e->port, &bytes, &key, &which, DEADLINE_MS) || which != ov)
            return false;
        break;
    default:
        break;
    }
    return IND2CompletionQueue_GetOverlappedResult(e->cq, ov, way == BY_RESULT) == ND_SUCCESS;
}

/* One result, waited for in a way that changes. */
static bool next_result(struct end *e, ND2_RESULT *r) {
    uint64_t end = os_now_ns() + DEADLINE_MS * OS_NS_PER_MS;
    enum way way = draw(e) / 16 % WAYS;
    while (IND2CompletionQueue_GetResults(e->cq, r, 1) == 0) {
        if (os_now_ns() > end) return false;
        if (way == BY_POLLING) continue;
        OVERLAPPED ov = { 0 };
        if (way == BY_EVENT) ov.hEvent = (HANDLE)((uintptr_t)e->event | 1);
        if (way == BY_RESULT) ov.hEvent = (HANDLE)((uintptr_t)e->event | 1);
        if (IND2CompletionQueue_Notify(e->cq, ND_CQ_NOTIFY_ANY, &ov) != ND_PENDING) return false;
        if (!wait_for_notify(e, &ov, way)) return false;
        if (way == BY_RESULT && WaitForSingleObject(e->event, DEADLINE_MS) != WAIT_OBJECT_0)
            return false;
        e->notified++;
    }
    return true;
}

static ULONG length_of(uint32_t round) {
    return round % 16 == 0 ? BIG : 4 + round % 200;
}

static const char *play(struct end *e) {
    UINT32 token = IND2MemoryRegion_GetLocalToken(e->mr);
    ND2_SGE in = { e->in, BIG, token };
    uint32_t sends = 0, received = 0;
    for (uint32_t i = 0; i < ROUNDS; i++, e->rounds++) {
        ND2_SGE out = { e->out, length_of(i), token };
        for (int half = 0; half < 2; half++) {
            ND2_RESULT r;
            if ((half == 0) == e->first) {
                memset(e->out, (int)i, out.BufferLength);
                if (IND2QueuePair_Send(e->qp, &out, &out, 1, 0) != ND_SUCCESS) return "Send";
                sends++;
                continue;
            }
            while (received == i) {
                if (!next_result(e, &r)) return "a result or a notification did not come";
                if (r.Status != ND_SUCCESS) return "a request failed";
                if (r.RequestType == Nd2RequestTypeSend) {
                    if (sends-- == 0) return "a Send completed twice";
                    continue;
                }
                received++;
                if (r.BytesTransferred != length_of(i)) return "the wrong message";
                for (ULONG k = 0; k < r.BytesTransferred; k++)
                    if (e->in[k] != (uint8_t)i) return "a wrong byte";
                if (IND2QueuePair_Receive(e->qp, NULL, &in, 1) != ND_SUCCESS) return "Receive";
            }
        }
        /* The buffer is used again only when the Send is through with it. */
        while (sends != 0) {
            ND2_RESULT r;
            if (!next_result(e, &r)) return "a Send or its notification did not come";
            if (r.Status != ND_SUCCESS) return "a request failed";
            if (r.RequestType != Nd2RequestTypeSend) {
                if (received++ != i + 1) return "a message too early";
                return "a message before its turn";
            }
            sends--;
        }
    }
    return NULL;
}

static void run_end(void *arg) {
    struct end *e = arg;
    e->fault = play(e);
}

static os_atomic_u32 stop_opening;

static void open_and_close_another(void *arg) {
    uint32_t *opened = arg;
    while (!os_u32_load_acquire(&stop_opening)) {
        IND2Adapter *other;
        if (IND2Provider_OpenAdapter(provider, &IID_IND2Adapter, adapter_id, (void **)&other) !=
            ND_SUCCESS)
            return;
        IND2Adapter_Release(other);
        ++*opened;
        for (int i = 0; i < 50 && !os_u32_load_acquire(&stop_opening); i++)
            os_thread_yield();
    }
}

static void run(const char *transport, uint32_t pairs, bool disturb) {
    static struct end ends[2 * PAIRS_MAX];
    IND2Listener *listener;
    HANDLE file;
    os_thread t[2 * PAIRS_MAX], opener;
    uint32_t opened = 0;
    test_setenv("SOFTND_TRANSPORT", transport);
    CHECK_EQ(DllGetClassObject(&CLSID_SoftNdProvider, &IID_IND2Provider, (void **)&provider), S_OK);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(IND2Provider_ResolveAddress(provider, (struct sockaddr *)&at, sizeof at, &adapter_id),
             ND_SUCCESS);
    CHECK_EQ(IND2Provider_OpenAdapter(provider, &IID_IND2Adapter, adapter_id, (void **)&adapter),
             ND_SUCCESS);
    CHECK_EQ(IND2Adapter_CreateOverlappedFile(adapter, &file), ND_SUCCESS);
    CHECK_EQ(IND2Adapter_CreateListener(adapter, &IID_IND2Listener, file, (void **)&listener),
             ND_SUCCESS);
    CHECK_EQ(IND2Listener_Bind(listener, (struct sockaddr *)&at, sizeof at), ND_SUCCESS);
    CHECK_EQ(IND2Listener_Listen(listener, 0), ND_SUCCESS);
    ULONG cb = sizeof at;
    CHECK_EQ(IND2Listener_GetLocalAddress(listener, (struct sockaddr *)&at, &cb), ND_SUCCESS);
    for (uint32_t i = 0; i < pairs; i++) {
        struct end *a = &ends[2 * i], *p = a + 1;
        open_end(a, 2 * i + 1);
        open_end(p, 2 * i + 2);
        a->first = true;
        for (int k = 0; k < 2; k++) {
            ND2_SGE in = { (a + k)->in, BIG, IND2MemoryRegion_GetLocalToken((a + k)->mr) };
            CHECK_EQ(IND2QueuePair_Receive((a + k)->qp, NULL, &in, 1), ND_SUCCESS);
            CHECK_EQ(IND2QueuePair_Receive((a + k)->qp, NULL, &in, 1), ND_SUCCESS);
        }
        establish(listener, a, p);
    }
    os_u32_store_release(&stop_opening, 0);
    for (uint32_t i = 0; i < 2 * pairs; i++)
        CHECK_EQ(os_thread_start(&t[i], "end", run_end, &ends[i]), SN_OK);
    if (disturb)
        CHECK_EQ(os_thread_start(&opener, "opens", open_and_close_another, &opened), SN_OK);
    for (uint32_t i = 0; i < 2 * pairs; i++)
        os_thread_join(t[i]);
    os_u32_store_release(&stop_opening, 1);
    if (disturb) os_thread_join(opener);
    uint32_t notified = 0;
    for (uint32_t i = 0; i < 2 * pairs; i++) {
        if (ends[i].fault) FAIL("end %u, round %u: %s", i, ends[i].rounds, ends[i].fault);
        CHECK_EQ(ends[i].rounds, ROUNDS);
        notified += ends[i].notified;
    }
    printf("  %s, %u pairs: %u notifications, %u other adapters\n", transport, pairs, notified,
           opened);
    CHECK(notified != 0);
    for (uint32_t i = 0; i < 2 * pairs; i++)
        close_end(&ends[i]);
    IND2Listener_Release(listener);
    CloseHandle(file);
    CHECK_EQ(IND2Adapter_Release(adapter), 0);
    CHECK_EQ(IND2Provider_Release(provider), 0);
}

static void one_pair_over_tcp_loses_nothing(void) {
    run("iwarp", 1, false);
}
static void one_pair_on_the_same_host_loses_nothing(void) {
    run("local", 1, false);
}
static void several_pairs_over_tcp_lose_nothing(void) {
    run("iwarp", PAIRS_MAX, false);
}
static void several_pairs_on_the_same_host_lose_nothing(void) {
    run("local", PAIRS_MAX, false);
}
static void adapters_that_come_and_go_beside_tcp_disturb_nobody(void) {
    run("iwarp", 1, true);
}
static void adapters_that_come_and_go_beside_the_same_host_disturb_nobody(void) {
    run("local", 2, true);
}

TEST_MAIN(TEST(one_pair_over_tcp_loses_nothing), TEST(one_pair_on_the_same_host_loses_nothing),
          TEST(several_pairs_over_tcp_lose_nothing),
          TEST(several_pairs_on_the_same_host_lose_nothing),
          TEST(adapters_that_come_and_go_beside_tcp_disturb_nobody),
          TEST(adapters_that_come_and_go_beside_the_same_host_disturb_nobody))
