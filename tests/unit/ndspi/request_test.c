/* SPDX-License-Identifier: MIT
 * request_test.c - what becomes of an OVERLAPPED: one completion, in every way to ask for it.
 */
#include <initguid.h>
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/thread.h"
#include "rig.h"

#define DEADLINE_MS 20000

/* ---- small helpers ---- */

static HRESULT notify(IND2CompletionQueue *cq, OVERLAPPED *ov) {
    return IND2CompletionQueue_Notify(cq, ND_CQ_NOTIFY_ANY, ov);
}

static HRESULT result(void *object, OVERLAPPED *ov, BOOL wait) {
    return IND2Overlapped_GetOverlappedResult((IND2Overlapped *)object, ov, wait);
}

static HANDLE bind_port(struct rig *r) {
    HANDLE port = CreateIoCompletionPort(r->file, NULL, 77, 0);
    CHECK(port != NULL);
    return port;
}

/* The next packet must be there now and be this one. */
static void take_packet(HANDLE port, OVERLAPPED *expected, DWORD error) {
    DWORD bytes = 1;
    ULONG_PTR key = 0;
    OVERLAPPED *ov = NULL;
    BOOL ok = GetQueuedCompletionStatus(port, &bytes, &key, &ov, 0);
    CHECK_PTR(ov, expected);
    CHECK_EQ(key, 77);
#ifdef _WIN32
    (void)bytes; /* those of the request of the moment (docs/windows.md) */
#else
    CHECK_EQ(bytes, 0);
#endif
    CHECK_EQ(ok, error == 0);
    if (!ok) CHECK_EQ(GetLastError(), error);
}

static void no_packet(HANDLE port) {
    DWORD bytes;
    ULONG_PTR key;
    OVERLAPPED *ov = NULL;
    CHECK_EQ(GetQueuedCompletionStatus(port, &bytes, &key, &ov, 0), FALSE);
    CHECK_PTR(ov, NULL);
    CHECK_EQ(GetLastError(), WAIT_TIMEOUT);
}

/* Garbage in every field, as clients leave it. */
static OVERLAPPED garbage(void) {
    OVERLAPPED ov;
    memset(&ov, 0xA5, sizeof ov);
    ov.hEvent = NULL;
    return ov;
}

/* Nothing is with the system while a request is pending on Windows. */
#ifdef _WIN32
#define NEEDS_CANCEL_IO() SKIP("on Windows CancelIoEx finds nothing to cancel (docs/windows.md)")
#else
#define NEEDS_CANCEL_IO() (void)0
#endif

/* ---- completion ---- */

static void accepted_request_pends_then_completes_once(void) {
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    IND2CompletionQueue *cq = rig_cq(&r);
    OVERLAPPED ov = garbage();
    ov.hEvent = CreateEventA(NULL, TRUE, TRUE, NULL);
    CHECK_EQ(notify(cq, &ov), ND_PENDING);
    CHECK_EQ(ov.Internal, (ULONG_PTR)STATUS_PENDING);
    CHECK_EQ(ov.InternalHigh, 0);
    CHECK_EQ(ov.Offset, 0xA5A5A5A5u); /* the client's own */
    CHECK_EQ(WaitForSingleObject(ov.hEvent, 0), WAIT_TIMEOUT);
    CHECK_EQ(result(cq, &ov, FALSE), ND_PENDING);
    no_packet(port);
    CHECK(fake_complete_oldest(SN_OK));
    CHECK_EQ(ov.Internal, 0);
    CHECK_EQ(WaitForSingleObject(ov.hEvent, 0), WAIT_OBJECT_0);
    take_packet(port, &ov, 0);
    no_packet(port);
    CHECK_EQ(result(cq, &ov, FALSE), ND_SUCCESS);
    CHECK_EQ(result(cq, &ov, TRUE), ND_SUCCESS);
    CloseHandle(ov.hEvent);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    no_packet(port);
    CloseHandle(port);
    rig_close(&r);
}

static void failed_request_carries_its_status_in_packet_and_result(void) {
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    IND2CompletionQueue *cq = rig_cq(&r);
    OVERLAPPED ov = { 0 };
    CHECK_EQ(notify(cq, &ov), ND_PENDING);
    CHECK(fake_complete_oldest(SN_E_INTERNAL));
    DWORD bytes;
    ULONG_PTR key;
    OVERLAPPED *got = NULL;
    CHECK_EQ(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0), FALSE);
    CHECK_PTR(got, &ov);
    CHECK_EQ(ov.Internal, 0xC00000E5u);
    CHECK_EQ(result(cq, &ov, TRUE), ND_INTERNAL_ERROR);
    CHECK_EQ(result(cq, &ov, TRUE), ND_INTERNAL_ERROR); /* asking again gives the same */
    CHECK_EQ(notify(cq, &ov), ND_PENDING);
    CHECK(fake_complete_oldest(SN_E_OVERRUN));
    CHECK_EQ(result(cq, &ov, TRUE), ND_BUFFER_OVERFLOW);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    CloseHandle(port);
    rig_close(&r);
}

static void low_bit_of_event_suppresses_the_packet_only(void) {
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    IND2CompletionQueue *cq = rig_cq(&r);
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);
    OVERLAPPED ov = { .hEvent = (HANDLE)((uintptr_t)event | 1) };
    CHECK_EQ(notify(cq, &ov), ND_PENDING);
    CHECK(fake_complete_oldest(SN_OK));
    no_packet(port);
    CHECK_EQ(WaitForSingleObject(event, 0), WAIT_OBJECT_0); /* consumes it */
    CHECK_EQ(result(cq, &ov, TRUE), ND_SUCCESS);            /* which does not matter */
    CloseHandle(event);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    CloseHandle(port);
    rig_close(&r);
}

/* Its number may be another object's by the time the request ends. */
static void event_closed_early_is_not_taken_for_another(void) {
    enum { OTHERS = 8 };
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    HANDLE first = CreateEventA(NULL, TRUE, FALSE, NULL), other[OTHERS];
    OVERLAPPED ov = { .hEvent = first };
    bool same = false;
    CHECK_EQ(notify(cq, &ov), ND_PENDING);
    CHECK(CloseHandle(first));
    for (int i = 0; i < OTHERS; i++) {
        other[i] = CreateEventA(NULL, TRUE, FALSE, NULL);
        same |= other[i] == first;
    }
    CHECK(fake_complete_oldest(SN_OK));
    CHECK_EQ(ov.Internal, 0);
    for (int i = 0; i < OTHERS; i++) {
        CHECK_EQ(WaitForSingleObject(other[i], 0), WAIT_TIMEOUT);
        CloseHandle(other[i]);
    }
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
#ifdef _WIN32
    CHECK(same); /* the system gives a free number out again at once */
#else
    (void)same;
#endif
}

static void refused_request_never_completes(void) {
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    IND2CompletionQueue *cq = rig_cq(&r);
    OVERLAPPED ov = garbage();
    fake.next = SN_E_RESOURCES;
    CHECK_EQ(notify(cq, &ov), ND_INSUFFICIENT_RESOURCES);
    CHECK_EQ(fake_pending(), 0);
    CHECK_EQ(result(cq, &ov, TRUE), ND_INSUFFICIENT_RESOURCES); /* some ask all the same */
    ov = garbage();
    CHECK_EQ(IND2CompletionQueue_Notify(cq, 3, &ov), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2CompletionQueue_Notify(cq, ND_CQ_NOTIFY_ANY, NULL), ND_INVALID_PARAMETER_2);
    CHECK_EQ(result(cq, NULL, FALSE), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2CompletionQueue_CancelOverlappedRequests(cq), ND_SUCCESS);
    no_packet(port);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    no_packet(port);
    CloseHandle(port);
    rig_close(&r);
}

static void known_outcome_still_pends_and_completes(void) {
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    IND2MemoryRegion *mr = rig_region(&r);
    OVERLAPPED ov = garbage();
    char buf[8];
    CHECK_EQ(IND2MemoryRegion_Register(mr, buf, sizeof buf, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov),
             ND_PENDING);
    take_packet(port, &ov, 0);
    CHECK_EQ(result(mr, &ov, TRUE), ND_SUCCESS);
    ov = garbage();
    fake.next = SN_E_FAULT;
    CHECK_EQ(IND2MemoryRegion_Register(mr, buf, sizeof buf, 0, &ov), ND_PENDING);
    DWORD bytes;
    ULONG_PTR key;
    OVERLAPPED *got = NULL;
    CHECK_EQ(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0), FALSE);
    CHECK_PTR(got, &ov);
    CHECK_EQ(result(mr, &ov, TRUE), ND_ACCESS_VIOLATION);
    ov = garbage();
    fake.next = SN_E_BUSY;
    CHECK_EQ(IND2MemoryRegion_Deregister(mr, &ov), ND_DEVICE_BUSY);
    no_packet(port);
    CHECK_EQ(IND2MemoryRegion_Deregister(mr, &ov), ND_PENDING);
    take_packet(port, &ov, 0);
    CHECK_EQ(IND2MemoryRegion_CancelOverlappedRequests(mr), ND_SUCCESS);
    no_packet(port);
    CHECK_EQ(IND2MemoryRegion_Release(mr), 0);
    CloseHandle(port);
    rig_close(&r);
}

static void result_depends_on_the_overlapped_alone(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2Connector *c = rig_connector(&r);
    OVERLAPPED ov = { 0 }, never = { 0 };
    CHECK_EQ(result(c, &never, FALSE), ND_SUCCESS);
    CHECK_EQ(result(c, &never, TRUE), ND_SUCCESS);
    CHECK_EQ(notify(cq, &ov), ND_PENDING);
    CHECK_EQ(result(c, &ov, FALSE), ND_PENDING);
    CHECK_EQ(result(c, &never, TRUE), ND_SUCCESS);
    CHECK(fake_complete_oldest(SN_E_CANCELED));
    CHECK_EQ(result(c, &ov, TRUE), ND_CANCELED);
    never.Internal = (ULONG_PTR)STATUS_PENDING; /* nobody will ever complete this one */
    CHECK_EQ(result(c, &never, FALSE), ND_PENDING);
    CHECK_EQ(result(c, &never, TRUE), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2Connector_Release(c), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

static void two_requests_on_one_overlapped_are_both_tracked(void) {
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    IND2CompletionQueue *a = rig_cq(&r), *b = rig_cq(&r);
    OVERLAPPED ov = { 0 };
    CHECK_EQ(notify(a, &ov), ND_PENDING);
    CHECK_EQ(notify(b, &ov), ND_PENDING);
    CHECK_EQ(notify(b, &ov), ND_PENDING);
    CHECK(fake_complete_oldest(SN_OK));
    CHECK_EQ(result(a, &ov, FALSE), ND_PENDING);
    CHECK(fake_complete_oldest(SN_OK));
    CHECK_EQ(result(a, &ov, FALSE), ND_PENDING);
    CHECK(fake_complete_oldest(SN_E_INTERNAL));
    CHECK_EQ(result(a, &ov, TRUE), ND_INTERNAL_ERROR); /* the last one */
    take_packet(port, &ov, 0);
    take_packet(port, &ov, 0);
    DWORD bytes;
    ULONG_PTR key;
    OVERLAPPED *got = NULL;
    CHECK_EQ(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0), FALSE);
    CHECK_PTR(got, &ov);
    no_packet(port);
    CHECK_EQ(IND2CompletionQueue_Release(a), 0);
    CHECK_EQ(IND2CompletionQueue_Release(b), 0);
    CloseHandle(port);
    rig_close(&r);
}

static void file_handle_may_close_before_the_request(void) {
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    IND2CompletionQueue *cq = rig_cq(&r);
    OVERLAPPED ov = { 0 };
    CHECK_EQ(notify(cq, &ov), ND_PENDING);
    CHECK_EQ(CloseHandle(r.file), TRUE);
    CHECK_EQ(result(cq, &ov, FALSE), ND_PENDING);
    CHECK(fake_complete_oldest(SN_OK));
    take_packet(port, &ov, 0);
    CHECK_EQ(notify(cq, &ov), ND_PENDING); /* and later ones */
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    take_packet(port, &ov, ERROR_OPERATION_ABORTED);
    CHECK_EQ(IND2Adapter_CreateOverlappedFile(r.adapter, &r.file), ND_SUCCESS);
    CloseHandle(port);
    rig_close(&r);
}

static void many_pending_requests_meet_a_limit(void) {
#ifdef _WIN32
    SKIP("tens of thousands of requests take minutes under Wine; the limit is no system's");
#endif
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    static OVERLAPPED ov;
    memset(&ov, 0, sizeof ov);
    size_t n = 0;
    HRESULT hr;
    while ((hr = notify(cq, &ov)) == ND_PENDING && n < 100000)
        n++;
    CHECK_EQ(hr, ND_INSUFFICIENT_RESOURCES);
    CHECK_EQ(n, 65536);
    CHECK(fake_complete_oldest(SN_OK));
    CHECK_EQ(notify(cq, &ov), ND_PENDING);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    CHECK_EQ(ov.Internal, 0xC0000120u);
    rig_close(&r);
}

static void request_without_memory_is_refused(void) {
    if (!os_fault_available()) SKIP("this build has no fault injection");
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    OVERLAPPED ov = { 0 };
    os_fault_arm(OS_FAULT_ALLOC, 0);
    HRESULT hr = notify(cq, &ov);
    os_fault_arm(OS_FAULT_ALLOC, -1);
    CHECK_EQ(hr, ND_INSUFFICIENT_RESOURCES);
    CHECK_EQ(fake_pending(), 0);
    CHECK_EQ(notify(cq, &ov), ND_PENDING);
    CHECK(fake_complete_oldest(SN_OK));
    /* From now on the object has one to use again. */
    os_fault_arm(OS_FAULT_ALLOC, 0);
    hr = notify(cq, &ov);
    bool fired = os_fault_fired(OS_FAULT_ALLOC);
    os_fault_arm(OS_FAULT_ALLOC, -1);
    CHECK_EQ(hr, ND_PENDING);
    CHECK(!fired);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

/* ---- cancellation ---- */

static void cancel_completes_in_order_before_it_returns(void) {
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    IND2CompletionQueue *a = rig_cq(&r), *b = rig_cq(&r);
    OVERLAPPED ov[5];
    memset(ov, 0, sizeof ov);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(notify(a, &ov[3 - i]), ND_PENDING);
    CHECK_EQ(notify(b, &ov[4]), ND_PENDING);
    CHECK_EQ(IND2CompletionQueue_CancelOverlappedRequests(a), ND_SUCCESS);
    for (int i = 0; i < 4; i++)
        take_packet(port, &ov[3 - i], ERROR_OPERATION_ABORTED);
    no_packet(port);
    CHECK_EQ(result(a, &ov[0], FALSE), ND_CANCELED);
    CHECK_EQ(result(b, &ov[4], FALSE), ND_PENDING);
    CHECK_EQ(IND2CompletionQueue_CancelOverlappedRequests(a), ND_SUCCESS); /* nothing there */
    no_packet(port);
    CHECK_EQ(IND2CompletionQueue_Release(a), 0);
    CHECK_EQ(IND2CompletionQueue_Release(b), 0);
    take_packet(port, &ov[4], ERROR_OPERATION_ABORTED);
    CloseHandle(port);
    rig_close(&r);
}

static void cancel_io_ends_the_named_request_only(void) {
    NEEDS_CANCEL_IO();
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    IND2CompletionQueue *a = rig_cq(&r), *b = rig_cq(&r);
    OVERLAPPED ov[4];
    memset(ov, 0, sizeof ov);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(notify(a, &ov[i]), ND_PENDING);
    CHECK_EQ(notify(b, &ov[3]), ND_PENDING);
    CHECK_EQ(CancelIoEx(r.file, &ov[1]), TRUE);
    take_packet(port, &ov[1], ERROR_OPERATION_ABORTED);
    no_packet(port);
    CHECK_EQ(result(a, &ov[1], FALSE), ND_CANCELED);
    CHECK_EQ(result(a, &ov[0], FALSE), ND_PENDING);
    CHECK_EQ(fake_pending(), 3);
    CHECK_EQ(CancelIoEx(r.file, &ov[1]), FALSE);
    CHECK_EQ(GetLastError(), ERROR_NOT_FOUND);
    /* The others wait on, in their order: b's is the oldest in the core now. */
    CHECK(fake_complete_oldest(SN_OK));
    take_packet(port, &ov[3], 0);
    CHECK(fake_complete_oldest(SN_OK));
    take_packet(port, &ov[0], 0);
    CHECK(fake_complete_oldest(SN_OK));
    take_packet(port, &ov[2], 0);
    no_packet(port);
    CHECK_EQ(IND2CompletionQueue_Release(a), 0);
    CHECK_EQ(IND2CompletionQueue_Release(b), 0);
    CloseHandle(port);
    rig_close(&r);
}

static void cancel_io_of_all_spares_other_files(void) {
    NEEDS_CANCEL_IO();
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    struct rig r2 = r;
    CHECK_EQ(IND2Adapter_CreateOverlappedFile(r.adapter, &r2.file), ND_SUCCESS);
    IND2CompletionQueue *a = rig_cq(&r), *other = rig_cq(&r2);
    IND2SharedReceiveQueue *srq = rig_srq(&r);
    OVERLAPPED ov[4];
    memset(ov, 0, sizeof ov);
    CHECK_EQ(notify(a, &ov[0]), ND_PENDING);
    CHECK_EQ(IND2SharedReceiveQueue_Notify(srq, &ov[1]), ND_PENDING);
    CHECK_EQ(notify(a, &ov[2]), ND_PENDING);
    CHECK_EQ(notify(other, &ov[3]), ND_PENDING);
    CHECK_EQ(CancelIoEx(r.file, &ov[3]), FALSE); /* not of this file */
    CHECK_EQ(CancelIoEx(r.file, NULL), TRUE);
    take_packet(port, &ov[0], ERROR_OPERATION_ABORTED);
    take_packet(port, &ov[2], ERROR_OPERATION_ABORTED); /* one object at a time */
    take_packet(port, &ov[1], ERROR_OPERATION_ABORTED);
    no_packet(port);
    CHECK_EQ(result(other, &ov[3], FALSE), ND_PENDING);
    CHECK_EQ(CancelIoEx(r.file, NULL), FALSE);
    CHECK_EQ(IND2CompletionQueue_Release(a), 0);
    CHECK_EQ(IND2CompletionQueue_Release(other), 0);
    CHECK_EQ(IND2SharedReceiveQueue_Release(srq), 0);
    CHECK_EQ(CloseHandle(r2.file), TRUE);
    CloseHandle(port);
    rig_close(&r);
}

static void cancel_io_of_one_connection_request_keeps_the_others(void) {
    NEEDS_CANCEL_IO();
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    IND2Listener *l = rig_listener(&r);
    IND2Connector *c[3];
    OVERLAPPED ov[3];
    memset(ov, 0, sizeof ov);
    for (int i = 0; i < 3; i++) {
        c[i] = rig_connector(&r);
        CHECK_EQ(IND2Listener_GetConnectionRequest(l, (IUnknown *)c[i], &ov[i]), ND_PENDING);
        CHECK_EQ(IND2Connector_AddRef(c[i]), 2); /* the listener's hold does not show */
        CHECK_EQ(IND2Connector_Release(c[i]), 1);
    }
    CHECK_EQ(IND2Connector_Release(c[2]), 0); /* cannot be started again: it is gone */
    CHECK_EQ(CancelIoEx(r.file, &ov[0]), TRUE);
    take_packet(port, &ov[0], ERROR_OPERATION_ABORTED);
    take_packet(port, &ov[2], ERROR_OPERATION_ABORTED);
    CHECK_EQ(result(l, &ov[1], FALSE), ND_PENDING);
    CHECK(fake_complete_oldest(SN_OK));
    take_packet(port, &ov[1], 0);
    no_packet(port);
    CHECK_EQ(IND2Connector_Release(c[0]), 0);
    CHECK_EQ(IND2Connector_Release(c[1]), 0);
    CHECK_EQ(IND2Listener_Release(l), 0);
    CloseHandle(port);
    rig_close(&r);
}

static void cancel_io_of_notify_disconnect_leaves_disconnect(void) {
    NEEDS_CANCEL_IO();
    struct rig r = rig_open();
    IND2Connector *c = rig_connector(&r);
    OVERLAPPED a = { 0 }, b = { 0 }, d = { 0 };
    CHECK_EQ(IND2Connector_NotifyDisconnect(c, &a), ND_PENDING);
    CHECK_EQ(IND2Connector_NotifyDisconnect(c, &b), ND_PENDING);
    CHECK_EQ(IND2Connector_Disconnect(c, &d), ND_PENDING);
    CHECK_EQ(CancelIoEx(r.file, &a), TRUE);
    CHECK_EQ(result(c, &a, TRUE), ND_CANCELED);
    CHECK_EQ(result(c, &b, FALSE), ND_PENDING);
    CHECK_EQ(result(c, &d, FALSE), ND_PENDING);
    fake.next = SN_E_NOT_CONNECTED; /* what starting again may find */
    CHECK_EQ(CancelIoEx(r.file, &d), TRUE);
    CHECK_EQ(result(c, &d, TRUE), ND_CANCELED);
    CHECK_EQ(result(c, &b, TRUE), ND_CONNECTION_INVALID);
    CHECK_EQ(IND2Connector_Release(c), 0);
    rig_close(&r);
}

static void last_release_cancels_and_then_touches_nothing(void) {
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2Connector *c = rig_connector(&r);
    IND2Listener *l = rig_listener(&r);
    IND2Connector *fresh = rig_connector(&r);
    OVERLAPPED *ov = calloc(3, sizeof *ov);
    CHECK_EQ(notify(cq, &ov[0]), ND_PENDING);
    CHECK_EQ(IND2Connector_NotifyDisconnect(c, &ov[1]), ND_PENDING);
    CHECK_EQ(IND2Listener_GetConnectionRequest(l, (IUnknown *)fresh, &ov[2]), ND_PENDING);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    CHECK_EQ(ov[0].Internal, 0xC0000120u);
    take_packet(port, &ov[0], ERROR_OPERATION_ABORTED);
    CHECK_EQ(IND2Connector_Release(c), 0);
    take_packet(port, &ov[1], ERROR_OPERATION_ABORTED);
    CHECK_EQ(IND2Listener_Release(l), 0);
    take_packet(port, &ov[2], ERROR_OPERATION_ABORTED);
    CHECK_EQ(IND2Connector_Release(fresh), 0);
    free(ov);
    no_packet(port);
    CloseHandle(port);
    rig_close(&r);
}

/* ---- threads ---- */

struct waiter {
    void *object;
    OVERLAPPED *ov;
    HRESULT hr;
    os_atomic_u32 state; /* 1: about to wait, 2: back */
};

static void wait_for_result(void *arg) {
    struct waiter *w = arg;
    os_u32_store_release(&w->state, 1);
    w->hr = result(w->object, w->ov, TRUE);
    os_u32_store_release(&w->state, 2);
}

static void await_state(struct waiter *w, uint32_t state) {
    uint64_t end = os_now_ns() + DEADLINE_MS * OS_NS_PER_MS;
    while (os_u32_load_acquire(&w->state) < state) {
        if (os_now_ns() > end) FAIL("the thread did not reach state %u", (unsigned)state);
        os_thread_yield();
    }
}

static void waiting_thread_survives_the_last_release(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    OVERLAPPED ov = { 0 };
    CHECK_EQ(notify(cq, &ov), ND_PENDING);
    struct waiter w = { .object = cq, .ov = &ov };
    os_thread t;
    CHECK_EQ(os_thread_start(&t, "waiter", wait_for_result, &w), SN_OK);
    await_state(&w, 1);
    CHECK_EQ(IND2CompletionQueue_CancelOverlappedRequests(cq), ND_SUCCESS);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    await_state(&w, 2);
    os_thread_join(t);
    CHECK_EQ(w.hr, ND_CANCELED);
    rig_close(&r);
}

static void waits_for_different_requests_do_not_disturb_each_other(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    enum { N = 4 };
    OVERLAPPED ov[N];
    struct waiter w[N];
    os_thread t[N];
    memset(ov, 0, sizeof ov);
    memset(w, 0, sizeof w);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(notify(cq, &ov[i]), ND_PENDING);
        w[i] = (struct waiter){ .object = cq, .ov = &ov[i] };
        CHECK_EQ(os_thread_start(&t[i], "waiter", wait_for_result, &w[i]), SN_OK);
        await_state(&w[i], 1);
    }
    for (int i = 0; i < N; i++) {
        CHECK(fake_complete_oldest(i % 2 ? SN_OK : SN_E_INTERNAL));
        await_state(&w[i], 2);
        for (int k = i + 1; k < N; k++)
            CHECK_EQ(os_u32_load_acquire(&w[k].state), 1);
        os_thread_join(t[i]);
        CHECK_EQ(w[i].hr, i % 2 ? ND_SUCCESS : ND_INTERNAL_ERROR);
    }
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

/* Everything at once: two threads ask and wait, one completes, one cancels single requests. Each
 * accepted request must give exactly one packet. */
struct storm {
    IND2CompletionQueue *cq;
    HANDLE file;
    OVERLAPPED ov[2];
    os_atomic_u32 asked, running;
};
struct asker {
    struct storm *s;
    int idx;
};

static void ask_and_wait(void *arg) {
    struct asker *a = arg;
    struct storm *s = a->s;
    for (int i = 0; i < 2000; i++) {
        OVERLAPPED *ov = &s->ov[a->idx];
        if (notify(s->cq, ov) != ND_PENDING) continue;
        os_u32_fetch_add_relaxed(&s->asked, 1);
        HRESULT hr = result(s->cq, ov, TRUE);
        SN_ASSERT(hr == ND_SUCCESS || hr == ND_CANCELED);
    }
    os_u32_fetch_sub_acq_rel(&s->running, 1);
}

static void complete_all(void *arg) {
    struct storm *s = arg;
    while (os_u32_load_acquire(&s->running) > 0)
        if (!fake_complete_oldest(SN_OK)) os_thread_yield();
}

static void cancel_some(void *arg) {
    struct storm *s = arg;
    for (unsigned i = 0; os_u32_load_acquire(&s->running) > 0; i++) {
        (void)CancelIoEx(s->file, i % 8 == 7 ? NULL : &s->ov[i % 2]);
        os_thread_yield();
    }
}

static void concurrent_requests_complete_exactly_once(void) {
    struct rig r = rig_open();
    HANDLE port = bind_port(&r);
    static struct storm s;
    memset(&s, 0, sizeof s);
    s.cq = rig_cq(&r);
    s.file = r.file;
    os_u32_store_relaxed(&s.running, 2);
    struct asker a[2] = { { &s, 0 }, { &s, 1 } };
    os_thread t[4];
    CHECK_EQ(os_thread_start(&t[0], "ask0", ask_and_wait, &a[0]), SN_OK);
    CHECK_EQ(os_thread_start(&t[1], "ask1", ask_and_wait, &a[1]), SN_OK);
    CHECK_EQ(os_thread_start(&t[2], "complete", complete_all, &s), SN_OK);
    CHECK_EQ(os_thread_start(&t[3], "cancel", cancel_some, &s), SN_OK);
    for (int i = 0; i < 4; i++)
        os_thread_join(t[i]);
    uint32_t packets = 0;
    for (;;) {
        DWORD bytes;
        ULONG_PTR key;
        OVERLAPPED *ov = NULL;
        (void)GetQueuedCompletionStatus(port, &bytes, &key, &ov, 0);
        if (!ov) break;
        packets++;
    }
    CHECK_EQ(packets, os_u32_load_acquire(&s.asked));
    CHECK_EQ(packets, 4000);
    CHECK_EQ(IND2CompletionQueue_Release(s.cq), 0);
    no_packet(port);
    CloseHandle(port);
    rig_close(&r);
}

/* A completion makes one thread release the object while another is still inside the method that
 * asked. */
static void ask_once(void *arg) {
    struct waiter *w = arg;
    w->hr = notify(w->object, w->ov);
}

static void release_on_completion_waits_for_the_asking_thread(void) {
    struct rig r = rig_open();
    static struct storm s;
    memset(&s, 0, sizeof s);
    os_u32_store_relaxed(&s.running, 1);
    os_thread completer;
    CHECK_EQ(os_thread_start(&completer, "complete", complete_all, &s), SN_OK);
    for (int i = 0; i < 500; i++) {
        /* Looks pending from the start, so that only a completion ends the loop below. */
        OVERLAPPED ov = { .Internal = (ULONG_PTR)STATUS_PENDING };
        struct waiter w = { .object = rig_cq(&r), .ov = &ov };
        os_thread asker;
        CHECK_EQ(os_thread_start(&asker, "ask", ask_once, &w), SN_OK);
        uint64_t end = os_now_ns() + DEADLINE_MS * OS_NS_PER_MS;
        while (!HasOverlappedIoCompleted(&ov) && os_now_ns() < end) {
        }
        CHECK_EQ(IND2CompletionQueue_Release((IND2CompletionQueue *)w.object), 0);
        os_thread_join(asker);
        CHECK_EQ(w.hr, ND_PENDING);
        CHECK_EQ(ov.Internal, 0);
    }
    os_u32_store_release(&s.running, 0);
    os_thread_join(completer);
    rig_close(&r);
}

/* The same with the asking thread held inside the core for certain. */
static void release_object(void *arg) {
    struct waiter *w = arg;
    os_u32_store_release(&w->state, 1);
    w->hr = (HRESULT)IUnknown_Release((IUnknown *)w->object);
    os_u32_store_release(&w->state, 2);
}

static void release_does_not_end_the_object_under_a_thread_inside(void) {
    struct rig r = rig_open();
    OVERLAPPED ov = { 0 };
    struct waiter ask = { .object = rig_cq(&r), .ov = &ov };
    struct waiter drop = { .object = ask.object };
    os_thread asker, dropper;
    os_u32_store_release(&fake.hold_notify, 1);
    CHECK_EQ(os_thread_start(&asker, "ask", ask_once, &ask), SN_OK);
    uint64_t end = os_now_ns() + DEADLINE_MS * OS_NS_PER_MS;
    while (os_u32_load_acquire(&fake.hold_notify) != 2)
        if (os_now_ns() > end) FAIL("the request did not get into the core");
    CHECK_EQ(result(ask.object, &ov, TRUE), ND_SUCCESS);
    CHECK_EQ(os_thread_start(&dropper, "drop", release_object, &drop), SN_OK);
    await_state(&drop, 1);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(fake_objects(), 1);
        CHECK_EQ(os_u32_load_acquire(&drop.state), 1);
        os_thread_yield();
    }
    os_u32_store_release(&fake.hold_notify, 0);
    os_thread_join(asker);
    os_thread_join(dropper);
    CHECK_EQ(ask.hr, ND_PENDING);
    CHECK_EQ(drop.hr, 0);
    CHECK_EQ(fake_objects(), 0);
    rig_close(&r);
}

static void cancel_works_on_every_class(void) {
    struct rig r = rig_open();
    IND2SharedReceiveQueue *srq = rig_srq(&r);
    IND2Connector *c = rig_connector(&r), *fresh = rig_connector(&r);
    IND2Listener *l = rig_listener(&r);
    OVERLAPPED ov[3];
    memset(ov, 0, sizeof ov);
    CHECK_EQ(IND2SharedReceiveQueue_Notify(srq, &ov[0]), ND_PENDING);
    CHECK_EQ(IND2Connector_CompleteConnect(c, &ov[1]), ND_PENDING);
    CHECK_EQ(IND2Listener_GetConnectionRequest(l, (IUnknown *)fresh, &ov[2]), ND_PENDING);
    CHECK_EQ(IND2SharedReceiveQueue_CancelOverlappedRequests(srq), ND_SUCCESS);
    CHECK_EQ(IND2SharedReceiveQueue_GetOverlappedResult(srq, &ov[0], FALSE), ND_CANCELED);
    CHECK_EQ(IND2Connector_GetOverlappedResult(c, &ov[1], FALSE), ND_PENDING);
    CHECK_EQ(IND2Connector_CancelOverlappedRequests(c), ND_SUCCESS);
    CHECK_EQ(IND2Connector_GetOverlappedResult(c, &ov[1], FALSE), ND_CANCELED);
    CHECK_EQ(IND2Listener_GetOverlappedResult(l, &ov[2], FALSE), ND_PENDING);
    CHECK_EQ(IND2Listener_CancelOverlappedRequests(l), ND_SUCCESS);
    CHECK_EQ(IND2Listener_GetOverlappedResult(l, &ov[2], FALSE), ND_CANCELED);
    CHECK_EQ(IND2SharedReceiveQueue_Release(srq), 0);
    CHECK_EQ(IND2Connector_Release(c), 0);
    CHECK_EQ(IND2Connector_Release(fresh), 0);
    CHECK_EQ(IND2Listener_Release(l), 0);
    rig_close(&r);
}

TEST_MAIN(TEST(accepted_request_pends_then_completes_once),
          TEST(failed_request_carries_its_status_in_packet_and_result),
          TEST(low_bit_of_event_suppresses_the_packet_only),
          TEST(event_closed_early_is_not_taken_for_another), TEST(refused_request_never_completes),
          TEST(known_outcome_still_pends_and_completes),
          TEST(result_depends_on_the_overlapped_alone),
          TEST(two_requests_on_one_overlapped_are_both_tracked),
          TEST(file_handle_may_close_before_the_request), TEST(many_pending_requests_meet_a_limit),
          TEST(request_without_memory_is_refused),
          TEST(cancel_completes_in_order_before_it_returns),
          TEST(cancel_io_ends_the_named_request_only), TEST(cancel_io_of_all_spares_other_files),
          TEST(cancel_io_of_one_connection_request_keeps_the_others),
          TEST(cancel_io_of_notify_disconnect_leaves_disconnect),
          TEST(last_release_cancels_and_then_touches_nothing),
          TEST(waiting_thread_survives_the_last_release),
          TEST(waits_for_different_requests_do_not_disturb_each_other),
          TEST(concurrent_requests_complete_exactly_once),
          TEST(release_on_completion_waits_for_the_asking_thread),
          TEST(release_does_not_end_the_object_under_a_thread_inside),
          TEST(cancel_works_on_every_class))
