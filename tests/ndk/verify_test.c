/* SPDX-License-Identifier: MIT
 * Every rule of the verifier, broken on purpose. The correct consumers of the other tests show that
 * none of them fires by itself.
 */
#include "kit.h"

/* Starts a case: the verifier on, nothing counted. */
static void start(void) {
    softndk_set("verifier", "report");
    softndk_set("completions", "inline");
    softndk_report_leaks();
    softndk_violations_reset();
}

/* The rule was reported, and no other error but those in `also`. */
static void expect(const char *rule, const char *also) {
    const char *name, *text;
    CHECK(softndk_violations(rule) > 0);
    int others = softndk_violations(NULL);
    for (unsigned i = 0; (name = softndk_rule(i, &text)) != NULL; i++)
        if (strcmp(name, rule) == 0 || (also && strstr(also, name)))
            others -= softndk_violations(name);
    CHECK(others <= 0);
}

static NDK_SGE sge_of(const void *p, ULONG len, UINT32 token) {
    NDK_SGE s;
    memset(&s, 0, sizeof s);
    s.VirtualAddress = (PVOID)(ULONG_PTR)p;
    s.Length = len;
    s.MemoryRegionToken = token;
    return s;
}

static NDK_MR *create_mr(struct kit *k, BOOLEAN fast) {
    NDK_MR *mr;
    KIT_CREATE(NDK_MR, mr, k->pd->Dispatch->NdkCreateMr(k->pd, fast, kit_created, &kit_w, &kit_o));
    return mr;
}

struct lam {
    UCHAR room[0x10 + 8 * 32];
    NDK_LOGICAL_ADDRESS_MAPPING *m;
    ULONG fbo;
};
static void build(struct kit *k, struct kit_mem *m, struct lam *l) {
    ULONG size = sizeof l->room;
    struct kit_wait w;
    kit_wait_init(&w);
    l->m = (NDK_LOGICAL_ADDRESS_MAPPING *)(PVOID)l->room;
    CHECK_NT(kit_finish(&w, k->ad->Dispatch->NdkBuildLAM(k->ad, m->mdl, m->bytes, kit_request_done,
                                                         &w, l->m, &size, &l->fbo)),
             STATUS_SUCCESS);
}

/* ---- IRQL and callbacks ---- */

static void wait_at_dispatch_level_is_reported(void) {
    KEVENT ev;
    KIRQL old;
    LARGE_INTEGER t = { .QuadPart = -10 };
    start();
    KeInitializeEvent(&ev, NotificationEvent, FALSE);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    KeWaitForSingleObject(&ev, Executive, KernelMode, FALSE, &t);
    KeLowerIrql(old);
    expect("irql", NULL);
}

static void query_adapter_at_dispatch_level_is_reported(void) {
    struct kit k;
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof info;
    KIRQL old;
    start();
    kit_open(&k);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    CHECK_NT(k.ad->Dispatch->NdkQueryAdapterInfo(k.ad, &info, &size), STATUS_SUCCESS);
    KeLowerIrql(old);
    kit_shut(&k);
    expect("irql", NULL);
}

static void wrong_lowering_and_raising_are_reported(void) {
    KIRQL old;
    start();
    KeLowerIrql(DISPATCH_LEVEL);
    KeRaiseIrql(PASSIVE_LEVEL, &old);
    KeLowerIrql(PASSIVE_LEVEL);
    CHECK_EQ(softndk_violations("irql"), 2);
}

static void waiting_callback(PVOID ctx, NTSTATUS status) {
    struct kit_cq *c = (struct kit_cq *)ctx;
    LARGE_INTEGER t = { .QuadPart = -10 };
    KEVENT never;
    KeInitializeEvent(&never, NotificationEvent, FALSE);
    KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, &t);
    c->status = status;
    KeSetEvent(&c->notified, 0, FALSE);
}

static void wait_in_a_callback_is_reported(void) {
    struct kit_pair p;
    start();
    kit_up(&p);
    struct kit_cq cq;
    memset(&cq, 0, sizeof cq);
    KeInitializeEvent(&cq.notified, SynchronizationEvent, FALSE);
    KIT_CREATE(NDK_CQ, cq.cq,
               p.k.ad->Dispatch->NdkCreateCq(p.k.ad, 64, waiting_callback, &cq, NULL, kit_created,
                                             &kit_w, &kit_o));
    NDK_QP *qp;
    kit_make_qp(&p.k, &cq, &qp);
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    CHECK_NT(qp->Dispatch->NdkReceive(qp, NULL, &s, 1), STATUS_SUCCESS);
    cq.cq->Dispatch->NdkArmCq(cq.cq, NDK_CQ_NOTIFY_ANY);
    qp->Dispatch->NdkFlush(qp);
    CHECK(kit_wait_event(&cq.notified));
    kit_drain(&cq);
    KIT_CLOSE(qp, NdkCloseQp);
    KIT_CLOSE(cq.cq, NdkCloseCq);
    kit_down(&p);
    expect("callback_context", "irql");
}

static void null_callbacks_are_reported(void) {
    struct kit k;
    NDK_CQ *cq = NULL;
    struct kit_wait w;
    start();
    kit_open(&k);
    kit_wait_init(&w);
    CHECK_NT(k.ad->Dispatch->NdkCreateCq(k.ad, 4, NULL, NULL, NULL, kit_created, &w, &cq),
             STATUS_INVALID_PARAMETER);
    CHECK_EQ(softndk_violations("null_callback"), 1);
    NDK_MR *mr = create_mr(&k, FALSE);
    CHECK_NT(mr->Dispatch->NdkCloseMr(&mr->Header, NULL, NULL), STATUS_SUCCESS);
    CHECK_EQ(softndk_violations("null_callback"), 2);
    kit_shut(&k);
    expect("null_callback", NULL);
}

/* ---- life ---- */

static void use_after_close_is_reported(void) {
    struct kit k;
    start();
    kit_open(&k);
    NDK_MR *mr = create_mr(&k, TRUE), *gone = mr;
    const NDK_MR_DISPATCH *dispatch = mr->Dispatch;
    KIT_CLOSE(mr, NdkCloseMr);
    CHECK_EQ(dispatch->NdkGetLocalTokenFromMr(gone), 0);
    kit_shut(&k);
    expect("use_after_close", NULL);
}

static void second_close_is_reported(void) {
    struct kit k;
    struct kit_wait w;
    start();
    kit_open(&k);
    NDK_MR *mr = create_mr(&k, TRUE);
    kit_wait_init(&w);
    NDK_PD *pd = k.pd;
    k.pd = NULL;
    CHECK_NT(pd->Dispatch->NdkClosePd(&pd->Header, kit_closed, &w), STATUS_PENDING);
    pd->Dispatch->NdkClosePd(&pd->Header, kit_closed, &w);
    KIT_CLOSE(mr, NdkCloseMr);
    CHECK(kit_wait_event(&w.event));
    CHECK_EQ(COUNT(w.calls), 1);
    kit_shut(&k);
    expect("double_close", "parent_first");
}

static void wild_and_mistaken_objects_are_reported(void) {
    struct kit k;
    struct kit_cq cq;
    NDK_PD wild;
    UINT32 token = 5;
    start();
    kit_open(&k);
    kit_make_cq(&k, &cq, 4);
    memset(&wild, 0, sizeof wild);
    k.pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(&wild, &token);
    CHECK_EQ(token, 5);
    k.pd->Dispatch->NdkGetPrivilegedMemoryRegionToken((NDK_PD *)cq.cq, &token);
    CHECK_EQ(token, 5);
    CHECK_EQ(softndk_violations("bad_object"), 2);
    KIT_CLOSE(cq.cq, NdkCloseCq);
    kit_shut(&k);
    expect("bad_object", NULL);
}

static void parent_closed_first_is_warned_of(void) {
    struct kit k;
    struct kit_wait w;
    start();
    kit_open(&k);
    NDK_MR *mr = create_mr(&k, TRUE);
    kit_wait_init(&w);
    CHECK_NT(k.pd->Dispatch->NdkClosePd(&k.pd->Header, kit_closed, &w), STATUS_PENDING);
    KIT_CLOSE(mr, NdkCloseMr);
    CHECK(kit_wait_event(&w.event));
    k.pd = NULL;
    kit_shut(&k);
    CHECK_EQ(softndk_violations("parent_first"), 1);
    CHECK_EQ(softndk_violations(NULL), 0); /* legal, only unusual */
}

static void objects_and_mappings_left_at_adapter_close_are_reported(void) {
    struct kit_pair p;
    struct lam l;
    start();
    kit_up(&p);
    build(&p.k, &p.mem, &l);
    kit_free(&p.mem);
    CHECK_EQ(softndk_violations("memory_freed"), 1); /* the mapping still covers it */
    p.k.pd = NULL;
    kit_shut(&p.k); /* and all the rest is left open */
    /* two connectors, two QPs, two CQs, the listener, the PD, the mapping */
    CHECK_EQ(softndk_violations("leak"), 9);
    expect("leak", "memory_freed");
}

static DRIVER_OBJECT some_driver;

static void kernel_leaks_are_reported_with_what_they_are(void) {
    start();
    CHECK(ExAllocatePoolWithTag(NonPagedPoolNx, 10, KIT_TAG) != NULL);
    CHECK(IoAllocateMdl(&some_driver, 10, FALSE, FALSE, NULL) != NULL);
    CHECK(IoAllocateWorkItem((PDEVICE_OBJECT)(PVOID)&some_driver) != NULL);
    WSK_REGISTRATION r;
    static const WSK_CLIENT_DISPATCH dispatch = { MAKE_WSK_VERSION(1, 0), 0, NULL };
    WSK_CLIENT_NPI npi = { NULL, &dispatch };
    CHECK_NT(WskRegister(&npi, &r), STATUS_SUCCESS);
    CHECK_EQ(softndk_report_leaks(), 4);
    CHECK_EQ(softndk_violations("leak"), 4);
    CHECK_EQ(softndk_report_leaks(), 0);
}

static void close_pending_at_unload_is_reported(void) {
    struct kit k;
    struct kit_wait w;
    start();
    kit_open(&k);
    create_mr(&k, TRUE);
    kit_wait_init(&w);
    CHECK_NT(k.pd->Dispatch->NdkClosePd(&k.pd->Header, kit_closed, &w), STATUS_PENDING);
    CHECK(softndk_report_leaks() > 0);
    CHECK(kit_wait_event(&w.event));
    expect("close_pending", "leak");
}

/* ---- contexts ---- */

static void ignore_status(PVOID ctx, NTSTATUS status) {
    (void)ctx;
    (void)status;
}

static void ignore_close(PVOID ctx) {
    (void)ctx;
}

/* Starts a Connect that nobody answers, with a context in this frame, and returns. */
static __attribute__((noinline)) NTSTATUS connect_from_a_frame(struct kit_pair *p) {
    volatile UCHAR context[64];
    SOCKADDR_IN from = kit_address(0);
    context[0] = 1;
    return p->a.connector->Dispatch->NdkConnect(
        p->a.connector, p->a.qp, (SOCKADDR *)&from, sizeof from, (SOCKADDR *)&p->address,
        sizeof p->address, 1, 1, NULL, 0, ignore_status, (PVOID)(ULONG_PTR)context);
}

static void context_on_a_dead_stack_is_reported(void) {
#if defined(__SANITIZE_ADDRESS__)
    SKIP("AddressSanitizer puts frames elsewhere");
#endif
    struct kit_pair p;
    start();
    kit_objects(&p);
    kit_listen(&p);
    p.a.connector = kit_connector(&p.k);
    CHECK_NT(connect_from_a_frame(&p), STATUS_PENDING);
    CHECK(p.k.pd->Dispatch != NULL);
    UINT32 token;
    p.k.pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(p.k.pd, &token);
    CHECK(kit_wait_event(&p.incoming)); /* p.b.connector is closed by kit_down: a reject */
    kit_down(&p);
    expect("dead_stack", NULL);
}

static void wait_given_up_while_pending_is_warned_of(void) {
    struct kit_pair p;
    struct kit_wait w;
    LARGE_INTEGER t = { .QuadPart = -10000 };
    SOCKADDR_IN from = kit_address(0);
    start();
    kit_objects(&p);
    kit_listen(&p);
    p.a.connector = kit_connector(&p.k);
    kit_wait_init(&w);
    CHECK_NT(p.a.connector->Dispatch->NdkConnect(
                 p.a.connector, p.a.qp, (SOCKADDR *)&from, sizeof from, (SOCKADDR *)&p.address,
                 sizeof p.address, 1, 1, NULL, 0, kit_request_done, &w),
             STATUS_PENDING);
    CHECK_NT(KeWaitForSingleObject(&w.event, Executive, KernelMode, FALSE, &t), STATUS_TIMEOUT);
    CHECK_EQ(softndk_violations("wait_abandoned"), 1);
    CHECK(kit_wait_event(&p.incoming));
    kit_down(&p);
    CHECK(kit_wait_event(&w.event));
    CHECK_EQ(softndk_violations(NULL), 0);
}

static void context_of_two_pending_requests_is_warned_of(void) {
    struct kit_pair p;
    NDK_CONNECTOR *c;
    start();
    kit_up(&p);
    /* Two closes with one context; each waits, for the connectors hold the queue pairs. */
    static int context;
    CHECK_NT(p.a.qp->Dispatch->NdkCloseQp(&p.a.qp->Header, ignore_close, &context), STATUS_PENDING);
    CHECK_NT(p.b.qp->Dispatch->NdkCloseQp(&p.b.qp->Header, ignore_close, &context), STATUS_PENDING);
    CHECK_EQ(softndk_violations("context_reused"), 1);
    p.a.qp = p.b.qp = NULL;
    c = p.a.connector;
    KIT_CLOSE(c, NdkCloseConnector);
    p.a.connector = NULL;
    kit_down(&p);
    CHECK_EQ(softndk_violations(NULL), 0);
}

struct waiter {
    KEVENT event, done;
};
static void wait_for_event(PVOID ctx) {
    struct waiter *w = (struct waiter *)ctx;
    kit_wait_event(&w->event);
    KeSetEvent(&w->done, 0, FALSE);
}

static void event_initialised_again_while_waited_for_is_reported(void) {
    struct waiter w;
    HANDLE thread;
    LARGE_INTEGER step = { .QuadPart = -1000 };
    start();
    KeInitializeEvent(&w.event, NotificationEvent, FALSE);
    KeInitializeEvent(&w.done, NotificationEvent, FALSE);
    CHECK_NT(PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, wait_for_event, &w),
             STATUS_SUCCESS);
    for (int i = 0; i < 100000 && softndk_violations("event_reinit") == 0; i++) {
        KeInitializeEvent(&w.event, NotificationEvent, FALSE);
        KeDelayExecutionThread(KernelMode, FALSE, &step);
    }
    KeSetEvent(&w.event, 0, FALSE);
    CHECK(kit_wait_event(&w.done));
    ZwClose(thread);
    expect("event_reinit", NULL);
}

static void event_of_a_pending_request_initialised_again_is_reported(void) {
    struct kit_pair p;
    struct kit_wait w;
    SOCKADDR_IN from = kit_address(0);
    start();
    softndk_set("completions", "pending"); /* so that it is known what kit_request_done sets */
    kit_objects(&p);
    softndk_set("completions", "inline");
    kit_listen(&p);
    p.a.connector = kit_connector(&p.k);
    kit_wait_init(&w);
    CHECK_NT(p.a.connector->Dispatch->NdkConnect(
                 p.a.connector, p.a.qp, (SOCKADDR *)&from, sizeof from, (SOCKADDR *)&p.address,
                 sizeof p.address, 1, 1, NULL, 0, kit_request_done, &w),
             STATUS_PENDING);
    CHECK_EQ(softndk_violations(NULL), 0);
    KeInitializeEvent(&w.event, NotificationEvent, FALSE);
    CHECK_EQ(softndk_violations("event_reinit"), 1);
    CHECK(kit_wait_event(&p.incoming));
    kit_down(&p);
    CHECK(kit_wait_event(&w.event));
    KeInitializeEvent(&w.event, NotificationEvent, FALSE); /* it has completed: fine */
    CHECK_EQ(softndk_violations("event_reinit"), 1);
    expect("event_reinit", NULL);
}

static void callback_that_is_no_code_is_reported(void) {
    struct kit k;
    static int data;
    start();
    kit_open(&k);
    NDK_MR *mr = create_mr(&k, FALSE);
    NDK_FN_CLOSE_COMPLETION *wild = (NDK_FN_CLOSE_COMPLETION *)(ULONG_PTR)&data;
    CHECK_NT(mr->Dispatch->NdkCloseMr(&mr->Header, wild, NULL), STATUS_SUCCESS);
    CHECK_EQ(softndk_violations("bad_callback"), 1);
    kit_shut(&k);
    expect("bad_callback", NULL);
}

struct caller {
    NDK_PD *pd;
    LONG calls, stop;
    KEVENT done;
};
static void call_all_the_time(PVOID ctx) {
    struct caller *c = (struct caller *)ctx;
    NDK_EXTENSION_INTERFACE none;
    NDK_VERSION version = { 1, 0 };
    GUID id;
    memset(&id, 0, sizeof id);
    while (COUNT(c->stop) == 0 && softndk_violations("use_after_close") == 0) {
        c->pd->Dispatch->NdkQueryExtension(&c->pd->Header, &id, version, &none);
        InterlockedIncrement(&c->calls);
    }
    KeSetEvent(&c->done, 0, FALSE);
}

/* Closes a PD while another thread calls it. The PD stays for its MR's sake. */
static void close_while_called(struct kit *k) {
    struct caller c;
    struct kit_wait w;
    HANDLE thread;
    NDK_MR *mr;
    LARGE_INTEGER step = { .QuadPart = -1000 };
    memset(&c, 0, sizeof c);
    KIT_CREATE(NDK_PD, c.pd, k->ad->Dispatch->NdkCreatePd(k->ad, kit_created, &kit_w, &kit_o));
    KIT_CREATE(NDK_MR, mr, c.pd->Dispatch->NdkCreateMr(c.pd, TRUE, kit_created, &kit_w, &kit_o));
    KeInitializeEvent(&c.done, NotificationEvent, FALSE);
    CHECK_NT(
        PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, call_all_the_time, &c),
        STATUS_SUCCESS);
    while (COUNT(c.calls) < 10)
        KeDelayExecutionThread(KernelMode, FALSE, &step);
    kit_wait_init(&w);
    CHECK_NT(c.pd->Dispatch->NdkClosePd(&c.pd->Header, kit_closed, &w), STATUS_PENDING);
    InterlockedExchange(&c.stop, 1);
    CHECK(kit_wait_event(&c.done));
    ZwClose(thread);
    KIT_CLOSE(mr, NdkCloseMr);
    CHECK(kit_wait_event(&w.event));
}

static void close_while_another_thread_is_in_a_call_is_reported(void) {
    struct kit k;
    start();
    kit_open(&k);
    ULONGLONG end = KeQueryInterruptTime() + KIT_SECONDS * 10000000ull;
    while (softndk_violations("close_in_call") == 0 && KeQueryInterruptTime() < end) {
        softndk_violations_reset();
        close_while_called(&k);
    }
    kit_shut(&k);
    expect("close_in_call", "use_after_close");
}

/* ---- requests ---- */

static void posting_more_than_the_queue_holds_is_reported(void) {
    struct kit_pair p;
    start();
    kit_objects(&p);
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    for (int i = 0; i < KIT_DEPTH; i++)
        CHECK_NT(p.a.qp->Dispatch->NdkReceive(p.a.qp, KIT_CTX(i), &s, 1), STATUS_SUCCESS);
    CHECK_EQ(softndk_violations(NULL), 0);
    CHECK_NT(p.a.qp->Dispatch->NdkReceive(p.a.qp, NULL, &s, 1), STATUS_INSUFFICIENT_RESOURCES);
    kit_down(&p);
    expect("queue_overrun", NULL);
}

static void small_completion_queue_is_warned_of(void) {
    struct kit k;
    struct kit_cq cq;
    NDK_QP *qp;
    start();
    kit_open(&k);
    kit_make_cq(&k, &cq, KIT_DEPTH);
    kit_make_qp(&k, &cq, &qp);
    CHECK_EQ(softndk_violations("cq_too_small"), 1);
    KIT_CLOSE(qp, NdkCloseQp);
    KIT_CLOSE(cq.cq, NdkCloseCq);
    kit_shut(&k);
    CHECK_EQ(softndk_violations(NULL), 0);
}

static void requests_beyond_limits_are_reported(void) {
    struct kit_pair p;
    UCHAR data[KIT_INLINE + 1] = { 0 };
    start();
    kit_up(&p);
    NDK_SGE s[KIT_SGE + 1];
    for (int i = 0; i <= KIT_SGE; i++)
        s[i] = kit_sge(&p.mem, 0, 8);
    p.a.qp->Dispatch->NdkSend(p.a.qp, NULL, s, KIT_SGE + 1, 0);
    CHECK_EQ(softndk_violations("limits"), 1);
    NDK_SGE big = sge_of(data, sizeof data, 0);
    CHECK_NT(p.a.qp->Dispatch->NdkSend(p.a.qp, NULL, &big, 1, NDK_OP_FLAG_INLINE),
             STATUS_INVALID_PARAMETER);
    CHECK_EQ(softndk_violations("limits"), 2);
    kit_down(&p);
    expect("limits", NULL);
}

static void meaningless_flags_are_reported(void) {
    struct kit_pair p;
    struct kit_wait w;
    start();
    kit_up(&p);
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    CHECK_NT(p.a.qp->Dispatch->NdkSend(p.a.qp, NULL, &s, 1, NDK_OP_FLAG_ALLOW_REMOTE_READ),
             STATUS_INVALID_PARAMETER);
    CHECK_EQ(softndk_violations("flags"), 1);
    p.a.cq.cq->Dispatch->NdkArmCq(p.a.cq.cq, 7);
    CHECK_EQ(softndk_violations("flags"), 2);
    NDK_MR *mr = create_mr(&p.k, FALSE);
    kit_wait_init(&w);
    CHECK_NT(mr->Dispatch->NdkRegisterMr(mr, p.mem.mdl, 8, 0x4, kit_request_done, &w),
             STATUS_INVALID_PARAMETER);
    CHECK_EQ(softndk_violations("flags"), 3);
    NDK_MW *mw;
    KIT_CREATE(NDK_MW, mw, p.k.pd->Dispatch->NdkCreateMw(p.k.pd, kit_created, &kit_w, &kit_o));
    CHECK_NT(p.a.qp->Dispatch->NdkBind(p.a.qp, NULL, p.mem.mr, mw, p.mem.p, 8,
                                       NDK_OP_FLAG_ALLOW_LOCAL_WRITE),
             STATUS_INVALID_PARAMETER);
    CHECK_NT(p.a.qp->Dispatch->NdkBind(p.a.qp, NULL, p.mem.mr, mw, p.mem.p, 8, 0x20),
             STATUS_INVALID_PARAMETER);
    CHECK_EQ(softndk_violations("flags"), 5);
    KIT_CLOSE(mw, NdkCloseMw);
    KIT_CLOSE(mr, NdkCloseMr);
    kit_down(&p);
    expect("flags", NULL);
}

struct poller {
    NDK_CQ *cq;
    LONG stop;
    KEVENT done;
};
static void poll_all_the_time(PVOID ctx) {
    struct poller *p = (struct poller *)ctx;
    NDK_RESULT r[4];
    while (InterlockedCompareExchange(&p->stop, 0, 0) == 0)
        p->cq->Dispatch->NdkGetCqResults(p->cq, r, 4);
    KeSetEvent(&p->done, 0, FALSE);
}

static void two_threads_on_one_completion_queue_are_reported(void) {
    struct kit k;
    struct kit_cq cq;
    struct poller p = { 0 };
    HANDLE thread;
    NDK_RESULT r[4];
    start();
    kit_open(&k);
    kit_make_cq(&k, &cq, 4);
    p.cq = cq.cq;
    KeInitializeEvent(&p.done, NotificationEvent, FALSE);
    CHECK_NT(
        PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, poll_all_the_time, &p),
        STATUS_SUCCESS);
    ULONGLONG end = KeQueryInterruptTime() + KIT_SECONDS * 10000000ull;
    while (softndk_violations("concurrent") == 0 && KeQueryInterruptTime() < end)
        cq.cq->Dispatch->NdkGetCqResults(cq.cq, r, 4);
    InterlockedExchange(&p.stop, 1);
    CHECK(kit_wait_event(&p.done));
    ZwClose(thread);
    KIT_CLOSE(cq.cq, NdkCloseCq);
    kit_shut(&k);
    expect("concurrent", NULL);
}

/* ---- segments ---- */

static void try_send(struct kit_pair *p, NDK_SGE s) {
    p->a.qp->Dispatch->NdkSend(p->a.qp, NULL, &s, 1, 0);
}

static void segment_without_a_region_is_reported(void) {
    struct kit_pair p;
    start();
    kit_up(&p);
    try_send(&p, sge_of(p.mem.p, 8, 0x12345678));
    kit_down(&p);
    expect("sge_token", NULL);
}

static void segment_outside_its_region_is_reported(void) {
    struct kit_pair p;
    start();
    kit_up(&p);
    NDK_SGE s = kit_sge(&p.mem, KIT_MEM - 4, 8);
    try_send(&p, s);
    kit_down(&p);
    expect("sge_range", NULL);
}

static void virtual_address_with_the_privileged_token_is_reported(void) {
    struct kit_pair p;
    start();
    kit_up(&p);
    try_send(&p, sge_of(p.mem.p, 8, p.k.privileged));
    kit_down(&p);
    expect("virtual_for_logical", NULL);
}

static void remote_token_in_a_segment_is_reported(void) {
    struct kit_pair p;
    start();
    kit_up(&p);
    try_send(&p, sge_of(p.mem.p, 8, kit_remote(&p)));
    kit_down(&p);
    expect("remote_token_local", NULL);
}

static void read_into_memory_that_may_not_be_written_is_reported(void) {
    struct kit_pair p;
    struct kit_mem m;
    start();
    kit_up(&p);
    kit_alloc(&m, 4096);
    kit_register(&p.k, &m, 0);
    NDK_SGE s = kit_sge(&m, 0, 8);
    p.a.qp->Dispatch->NdkRead(p.a.qp, NULL, &s, 1, (UINT64)(ULONG_PTR)p.mem.p, kit_remote(&p), 0);
    kit_free(&m);
    kit_down(&p);
    expect("read_sink", NULL);
}

/* ---- fast registration and mappings ---- */

struct fast {
    struct kit_pair p;
    struct lam l;
    NDK_MR *mr;
};

static void fast_up(struct fast *f) {
    struct kit_wait w;
    start();
    kit_up(&f->p);
    struct kit_mem part = f->p.mem;
    part.bytes = 4 * PAGE_SIZE;
    build(&f->p.k, &part, &f->l);
    f->mr = create_mr(&f->p.k, TRUE);
    kit_wait_init(&w);
    CHECK_NT(kit_finish(&w, f->mr->Dispatch->NdkInitializeFastRegisterMr(f->mr, 4, FALSE,
                                                                         kit_request_done, &w)),
             STATUS_SUCCESS);
}

static NTSTATUS fast_register(struct fast *f, ULONG count, ULONG fbo, PVOID base) {
    NDK_QP *qp = f->p.a.qp;
    return qp->Dispatch->NdkFastRegister(qp, KIT_CTX(1), f->mr, count, f->l.m->AdapterPageArray,
                                         fbo, 100, base, 0);
}

static void fast_down(struct fast *f) {
    KIT_CLOSE(f->mr, NdkCloseMr);
    f->p.k.ad->Dispatch->NdkReleaseLAM(f->p.k.ad, f->l.m);
    kit_down(&f->p);
}

#define BASE ((PVOID)(ULONG_PTR)0x40000000)

static void token_after_invalidation_is_reported(void) {
    struct fast f;
    fast_up(&f);
    UINT32 token = f.mr->Dispatch->NdkGetLocalTokenFromMr(f.mr);
    CHECK_NT(fast_register(&f, 4, 0, BASE), STATUS_SUCCESS);
    CHECK_RESULT(&f.p.a.cq, NdkOperationTypeFastRegister, 1, STATUS_SUCCESS);
    CHECK_NT(f.p.a.qp->Dispatch->NdkInvalidate(f.p.a.qp, KIT_CTX(2), &f.mr->Header, 0),
             STATUS_SUCCESS);
    CHECK_RESULT(&f.p.a.cq, NdkOperationTypeInvalidate, 2, STATUS_SUCCESS);
    CHECK_EQ(softndk_violations(NULL), 0);
    try_send(&f.p, sge_of(BASE, 8, token));
    fast_down(&f);
    expect("stale_token", NULL);
}

static void bad_fast_register_arguments_are_reported(void) {
    struct fast f;
    fast_up(&f);
    CHECK_NT(fast_register(&f, 5, 0, BASE), STATUS_INVALID_PARAMETER);
    CHECK_NT(fast_register(&f, 4, PAGE_SIZE, BASE), STATUS_INVALID_PARAMETER);
    CHECK_NT(fast_register(&f, 4, 8, BASE), STATUS_INVALID_PARAMETER);
    CHECK_EQ(softndk_violations("fast_register"), 3);
    NDK_LOGICAL_ADDRESS wild;
    wild.QuadPart = 0x7000;
    CHECK_NT(f.p.a.qp->Dispatch->NdkFastRegister(f.p.a.qp, NULL, f.mr, 1, &wild, 0, 1, BASE, 0),
             STATUS_INVALID_PARAMETER);
    CHECK_EQ(softndk_violations("fast_register"), 4);
    fast_down(&f);
    expect("fast_register", NULL);
}

static void region_of_the_wrong_kind_is_reported(void) {
    struct fast f;
    struct kit_wait w;
    fast_up(&f);
    kit_wait_init(&w);
    f.mr->Dispatch->NdkDeregisterMr(f.mr, kit_request_done, &w);
    CHECK_EQ(softndk_violations("mr_kind"), 1);
    f.mr->Dispatch->NdkRegisterMr(f.mr, f.p.mem.mdl, 8, 0, kit_request_done, &w);
    CHECK_EQ(softndk_violations("mr_kind"), 2);
    f.p.a.qp->Dispatch->NdkInvalidate(f.p.a.qp, NULL, &f.p.mem.mr->Header, 0);
    CHECK_EQ(softndk_violations("mr_kind"), 3);
    fast_down(&f);
    expect("mr_kind", NULL);
}

static void region_in_the_wrong_state_is_reported(void) {
    struct fast f;
    fast_up(&f);
    f.p.a.qp->Dispatch->NdkInvalidate(f.p.a.qp, KIT_CTX(1), &f.mr->Header, 0); /* not registered */
    CHECK_EQ(softndk_violations("mr_state"), 1);
    CHECK_RESULT(&f.p.a.cq, NdkOperationTypeInvalidate, 1, STATUS_INVALID_DEVICE_STATE);
    fast_down(&f);
    expect("mr_state", NULL);
}

static void mapping_released_while_in_use_is_reported(void) {
    struct fast f;
    fast_up(&f);
    CHECK_NT(fast_register(&f, 4, 0, BASE), STATUS_SUCCESS);
    CHECK_RESULT(&f.p.a.cq, NdkOperationTypeFastRegister, 1, STATUS_SUCCESS);
    fast_down(&f); /* closes the region first: fine */
    CHECK_EQ(softndk_violations(NULL), 0);

    fast_up(&f);
    NDK_SGE s = sge_of(NULL, 100, f.p.k.privileged);
    s.LogicalAddress = f.l.m->AdapterPageArray[0];
    CHECK_NT(f.p.a.qp->Dispatch->NdkReceive(f.p.a.qp, NULL, &s, 1), STATUS_SUCCESS);
    fast_down(&f); /* releases it with the receive outstanding */
    expect("lam_in_use", NULL);
}

struct shared {
    struct fast f;
    NDK_SRQ *srq;
    struct kit_cq cq;
    NDK_QP *qp;
};

/* A receive in a shared queue that only a mapping's logical address names. */
static void shared_up(struct shared *s, NDK_SGE *sge) {
    struct kit *k = &s->f.p.k;
    fast_up(&s->f);
    KIT_CREATE(NDK_SRQ, s->srq,
               k->pd->Dispatch->NdkCreateSrq(k->pd, 4, 1, 0, NULL, NULL, NULL, kit_created, &kit_w,
                                             &kit_o));
    kit_make_cq(k, &s->cq, 2 * KIT_DEPTH);
    KIT_CREATE(NDK_QP, s->qp,
               k->pd->Dispatch->NdkCreateQpWithSrq(k->pd, s->cq.cq, s->cq.cq, s->srq, NULL,
                                                   KIT_DEPTH, KIT_SGE, KIT_INLINE, kit_created,
                                                   &kit_w, &kit_o));
    *sge = sge_of(NULL, 100, k->privileged);
    sge->LogicalAddress = s->f.l.m->AdapterPageArray[0];
    CHECK_NT(s->srq->Dispatch->NdkSrqReceive(s->srq, KIT_CTX(7), sge, 1), STATUS_SUCCESS);
}

static void shared_down(struct shared *s) {
    KIT_CLOSE(s->qp, NdkCloseQp);
    KIT_CLOSE(s->cq.cq, NdkCloseCq);
    KIT_CLOSE(s->srq, NdkCloseSrq);
}

static void mapping_of_a_shared_receive_released_is_reported(void) {
    struct shared s;
    NDK_SGE sge;
    shared_up(&s, &sge);
    shared_down(&s);
    fast_down(&s.f); /* the queue went before the mapping: fine */
    CHECK_EQ(softndk_violations(NULL), 0);

    shared_up(&s, &sge);
    s.f.p.k.ad->Dispatch->NdkReleaseLAM(s.f.p.k.ad, s.f.l.m);
    CHECK_EQ(softndk_violations("lam_in_use"), 1);
    shared_down(&s);
    KIT_CLOSE(s.f.mr, NdkCloseMr);
    kit_down(&s.f.p);
    expect("lam_in_use", NULL);
}

/* Its receive is taken by a queue pair, and the result seen: then the mapping is free. */
static void mapping_of_a_shared_receive_is_free_after_its_result(void) {
    struct shared s;
    NDK_SGE sge;
    shared_up(&s, &sge);
    struct kit_pair *p = &s.f.p;
    NDK_QP *mine = p->b.qp;
    struct kit_cq cq = p->b.cq;
    KIT_CLOSE(p->a.connector, NdkCloseConnector);
    KIT_CLOSE(p->b.connector, NdkCloseConnector);
    KIT_CLOSE(p->a.qp, NdkCloseQp);
    kit_make_qp(&p->k, &p->a.cq, &p->a.qp);
    p->b.qp = s.qp; /* the passive end is the one with the shared queue */
    p->b.cq = s.cq;
    kit_connect(p);
    NDK_SGE from = kit_sge(&p->mem, 0, 8);
    CHECK_NT(p->a.qp->Dispatch->NdkSend(p->a.qp, KIT_CTX(1), &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&s.cq, NdkOperationTypeReceive, 7, STATUS_SUCCESS); /* the one that is notified */
    p->k.ad->Dispatch->NdkReleaseLAM(p->k.ad, s.f.l.m);
    CHECK_EQ(softndk_violations(NULL), 0);
    KIT_CLOSE(s.f.mr, NdkCloseMr);
    kit_down_ends(p);
    KIT_CLOSE(s.srq, NdkCloseSrq);
    KIT_CLOSE(mine, NdkCloseQp);
    KIT_CLOSE(cq.cq, NdkCloseCq);
    kit_down(p);
    CHECK_EQ(softndk_violations(NULL), 0);
}

/* ---- what the peer does with tokens ---- */

/* On the same host a peer may find out by itself that a token is dead; over iWARP it is told. */
static void need_iwarp(void) {
    const char *transport = getenv("SOFTND_TRANSPORT");
    if (!transport || strcmp(transport, "iwarp") != 0) SKIP("needs SOFTND_TRANSPORT=iwarp");
}

/* a writes to b's memory with this token, which b's side refuses; what was said. */
static void write_refused(struct kit_pair *p, PVOID to, UINT32 token) {
    NDK_SGE s = kit_sge(&p->mem, 0, 8);
    CHECK_NT(
        p->a.qp->Dispatch->NdkWrite(p->a.qp, KIT_CTX(9), &s, 1, (UINT64)(ULONG_PTR)to, token, 0),
        STATUS_SUCCESS);
    CHECK_RESULT(&p->a.cq, NdkOperationTypeWrite, 9, STATUS_ACCESS_VIOLATION);
    CHECK(kit_wait_event(&p->b.disconnected)); /* reported before */
    CHECK_EQ(softndk_violations("remote_access"), 1);
    CHECK_EQ(softndk_violations(NULL), 0);
}

static void access_of_the_peer_after_the_end_of_a_region_is_warned_of(void) {
    struct kit_pair p;
    struct kit_mem m;
    need_iwarp();
    start();
    kit_up(&p);
    kit_alloc(&m, 4096);
    kit_register(&p.k, &m, NDK_MR_FLAG_ALLOW_REMOTE_WRITE);
    UINT32 token = m.mr->Dispatch->NdkGetRemoteTokenFromMr(m.mr);
    KIT_CLOSE(m.mr, NdkCloseMr);
    write_refused(&p, m.p, token);
    kit_free(&m);
    kit_down(&p);
}

static void access_of_the_peer_without_the_right_is_warned_of(void) {
    struct kit_pair p;
    struct kit_mem m;
    need_iwarp();
    start();
    kit_up(&p);
    kit_alloc(&m, 4096);
    kit_register(&p.k, &m, NDK_MR_FLAG_ALLOW_LOCAL_WRITE);
    write_refused(&p, m.p, m.mr->Dispatch->NdkGetRemoteTokenFromMr(m.mr));
    kit_free(&m);
    kit_down(&p);
}

static void local_token_given_to_the_peer_is_warned_of(void) {
    struct kit_pair p;
    need_iwarp();
    start();
    kit_up(&p);
    write_refused(&p, p.mem.p, p.mem.mr->Dispatch->NdkGetLocalTokenFromMr(p.mem.mr));
    kit_down(&p);
}

static void mapping_released_twice_is_reported(void) {
    struct fast f;
    fast_up(&f);
    f.p.k.ad->Dispatch->NdkReleaseLAM(f.p.k.ad, NULL);
    CHECK_EQ(softndk_violations("bad_lam"), 1);
    f.p.k.ad->Dispatch->NdkReleaseLAM(f.p.k.ad, f.l.m);
    fast_down(&f); /* again */
    CHECK_EQ(softndk_violations("bad_lam"), 2);
    expect("bad_lam", NULL);
}

static void memory_freed_under_a_region_is_reported(void) {
    struct kit_pair p;
    start();
    kit_objects(&p);
    IoFreeMdl(p.mem.mdl);
    p.mem.mdl = NULL;
    CHECK_EQ(softndk_violations("memory_freed"), 1);
    UCHAR *gone = p.mem.p;
    p.mem.p = NULL;
    ExFreePoolWithTag(gone, KIT_TAG);
    CHECK_EQ(softndk_violations("memory_freed"), 2);
    kit_down(&p);
    expect("memory_freed", NULL);
}

static void mdl_locked_for_reading_under_a_writable_region_is_reported(void) {
    struct kit k;
    struct kit_mem m;
    start();
    kit_open(&k);
    kit_alloc(&m, 4096);
    MDL *mdl = IoAllocateMdl(m.p, 4096, FALSE, FALSE, NULL);
    MmProbeAndLockPages(mdl, KernelMode, IoReadAccess);
    NDK_MR *mr = create_mr(&k, FALSE);
    struct kit_wait w;
    kit_wait_init(&w);
    CHECK_NT(
        kit_finish(&w, mr->Dispatch->NdkRegisterMr(mr, mdl, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE,
                                                   kit_request_done, &w)),
        STATUS_SUCCESS);
    KIT_CLOSE(mr, NdkCloseMr);
    MmUnlockPages(mdl);
    IoFreeMdl(mdl);
    kit_free(&m);
    kit_shut(&k);
    expect("mdl_access", NULL);
}

/* ---- queues ---- */

static void deferred_request_at_the_end_is_reported(void) {
    struct kit_pair p;
    start();
    kit_up(&p);
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    CHECK_NT(p.a.qp->Dispatch->NdkSend(p.a.qp, NULL, &s, 1, NDK_OP_FLAG_DEFER), STATUS_SUCCESS);
    kit_down(&p);
    expect("deferred_tail", NULL);
}

static void results_left_without_an_arm_are_reported(void) {
    struct kit_pair p;
    start();
    kit_up(&p);
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    CHECK_NT(p.b.qp->Dispatch->NdkReceive(p.b.qp, NULL, &s, 1), STATUS_SUCCESS);
    CHECK_NT(p.b.qp->Dispatch->NdkReceive(p.b.qp, NULL, &s, 1), STATUS_SUCCESS);
    p.b.cq.cq->Dispatch->NdkArmCq(p.b.cq.cq, NDK_CQ_NOTIFY_ANY);
    p.b.qp->Dispatch->NdkFlush(p.b.qp);
    CHECK(kit_wait_event(&p.b.cq.notified));
    NDK_RESULT r; /* takes one and forgets the rest */
    CHECK_EQ(p.b.cq.cq->Dispatch->NdkGetCqResults(p.b.cq.cq, &r, 1), 1);
    KIT_CLOSE(p.b.connector, NdkCloseConnector);
    KIT_CLOSE(p.b.qp, NdkCloseQp);
    KIT_CLOSE(p.b.cq.cq, NdkCloseCq);
    kit_down(&p);
    expect("cq_not_rearmed", NULL);
}

static void post_after_flush_is_warned_of(void) {
    struct kit_pair p;
    start();
    kit_up(&p);
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    p.b.qp->Dispatch->NdkFlush(p.b.qp);
    p.b.qp->Dispatch->NdkReceive(p.b.qp, NULL, &s, 1);
    CHECK_EQ(softndk_violations("post_after_flush"), 1);
    kit_down(&p);
    CHECK_EQ(softndk_violations(NULL), 0);
}

/* ---- connections, kernel routines ---- */

static void inconsistent_connection_arguments_are_reported(void) {
    struct kit_pair p;
    struct kit_wait w;
    SOCKADDR_IN any = kit_address(0), from = kit_address(0);
    start();
    kit_objects(&p);
    kit_wait_init(&w);
    p.a.connector = kit_connector(&p.k);
    any.sin_addr.s_addr = 0;
#define CONNECT(src, src_len, pd, pd_len)                                                          \
    p.a.connector->Dispatch->NdkConnect(p.a.connector, p.a.qp, (SOCKADDR *)(src), src_len,         \
                                        (SOCKADDR *)&from, sizeof from, 1, 1, pd, pd_len,          \
                                        kit_request_done, &w)
    CHECK_NT(CONNECT(&any, sizeof any, NULL, 0), STATUS_INVALID_ADDRESS);
    CHECK_NT(CONNECT(&from, 7, NULL, 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(CONNECT(&from, sizeof from, NULL, 5), STATUS_INVALID_PARAMETER);
    CHECK_EQ(softndk_violations("connect_args"), 3);
    kit_down(&p);
    expect("connect_args", NULL);
}

static void functions_of_a_later_version_are_reported(void) {
    struct kit k;
    struct kit_wait w;
    NDK_CONNECTOR *c;
    start();
    CHECK_NT(kit_open_version(&k, 1, 0), STATUS_SUCCESS); /* which reports 1.2 */
    c = kit_connector(&k);
    kit_wait_init(&w);
    CHECK_NT(c->Dispatch->NdkCompleteConnectEx(c, NULL, NULL, kit_request_done, &w),
             STATUS_CONNECTION_INVALID);
    CHECK_EQ(softndk_violations("version"), 1);
    KIT_CLOSE(c, NdkCloseConnector);
    kit_shut(&k);
    expect("version", NULL);
}

static void connection_data_asked_for_late_is_warned_of(void) {
    struct kit_pair p;
    ULONG len = 0;
    start();
    kit_up(&p);
    CHECK_EQ(softndk_violations("late_connection_data"), 0);
    NDK_CONNECTOR *c = p.b.connector;
    CHECK_NT(c->Dispatch->NdkGetConnectionData(c, NULL, NULL, NULL, &len), STATUS_SUCCESS);
    CHECK_EQ(softndk_violations("late_connection_data"), 1);
    kit_down(&p);
    CHECK_EQ(softndk_violations(NULL), 0);
}

static void first_receive_on_a_live_connection_is_warned_of(void) {
    struct kit_pair p;
    start();
    kit_objects(&p);
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    CHECK_NT(p.a.qp->Dispatch->NdkReceive(p.a.qp, NULL, &s, 1), STATUS_SUCCESS);
    kit_connect(&p);
    CHECK_NT(p.a.qp->Dispatch->NdkReceive(p.a.qp, NULL, &s, 1), STATUS_SUCCESS);
    CHECK_EQ(softndk_violations("receive_late"), 0);
    CHECK_NT(p.b.qp->Dispatch->NdkReceive(p.b.qp, NULL, &s, 1), STATUS_SUCCESS);
    CHECK_EQ(softndk_violations("receive_late"), 1);
    kit_down(&p);
    CHECK_EQ(softndk_violations(NULL), 0);
}

static void shared_queue_that_overflows_is_reported(void) {
    struct kit_pair p;
    NDK_SRQ *srq;
    start();
    kit_objects(&p);
    KIT_CREATE(NDK_SRQ, srq,
               p.k.pd->Dispatch->NdkCreateSrq(p.k.pd, 2, 1, 0, NULL, NULL, NULL, kit_created,
                                              &kit_w, &kit_o));
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    for (int i = 0; i < 2; i++)
        CHECK_NT(srq->Dispatch->NdkSrqReceive(srq, NULL, &s, 1), STATUS_SUCCESS);
    CHECK_NT(srq->Dispatch->NdkSrqReceive(srq, NULL, &s, 1), STATUS_INSUFFICIENT_RESOURCES);
    CHECK_EQ(softndk_violations("queue_overrun"), 1);
    KIT_CLOSE(srq, NdkCloseSrq);
    kit_down(&p);
    expect("queue_overrun", NULL);
}

struct poster {
    NDK_QP *qp;
    NDK_SGE sge;
    LONG stop;
    KEVENT done;
};
static void post_wrongly_all_the_time(PVOID ctx) {
    struct poster *p = (struct poster *)ctx;
    while (COUNT(p->stop) == 0)
        p->qp->Dispatch->NdkSend(p->qp, NULL, &p->sge, 1, 0); /* not connected: it fails */
    KeSetEvent(&p->done, 0, FALSE);
}

static void two_threads_posting_to_one_queue_are_reported(void) {
    struct kit_pair p;
    struct poster other;
    HANDLE thread;
    start();
    kit_objects(&p);
    memset(&other, 0, sizeof other);
    other.qp = p.a.qp;
    other.sge = kit_sge(&p.mem, 0, 8);
    KeInitializeEvent(&other.done, NotificationEvent, FALSE);
    CHECK_NT(PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL,
                                  post_wrongly_all_the_time, &other),
             STATUS_SUCCESS);
    ULONGLONG end = KeQueryInterruptTime() + KIT_SECONDS * 10000000ull;
    while (softndk_violations("concurrent") == 0 && KeQueryInterruptTime() < end)
        p.a.qp->Dispatch->NdkSend(p.a.qp, NULL, &other.sge, 1, 0);
    InterlockedExchange(&other.stop, 1);
    CHECK(kit_wait_event(&other.done));
    ZwClose(thread);
    kit_down(&p);
    expect("concurrent", NULL);
}

/* What it tells comes with the callback, not before: a consumer that does not wait finds nothing.
 */
static void pending_mapping_tells_all_when_it_is_complete(void) {
    struct kit k;
    struct kit_mem m;
    struct kit_wait w;
    UCHAR room[0x18];
    ULONG size = sizeof room, fbo = 0xBADBAD;
    start();
    softndk_set("completions", "pending");
    kit_open(&k);
    kit_alloc(&m, 4096);
    memset(room, 0xEE, sizeof room);
    NDK_LOGICAL_ADDRESS_MAPPING *lam = (NDK_LOGICAL_ADDRESS_MAPPING *)(PVOID)room;
    kit_wait_init(&w);
    NTSTATUS status =
        k.ad->Dispatch->NdkBuildLAM(k.ad, m.mdl, 100, kit_request_done, &w, lam, &size, &fbo);
    CHECK_NT(status, STATUS_PENDING);
    CHECK_NT(kit_finish(&w, status), STATUS_SUCCESS);
    CHECK_EQ(lam->AdapterPageCount, 1);
    CHECK_EQ(fbo, BYTE_OFFSET(m.p));
    CHECK_EQ(size, 0x18);
    k.ad->Dispatch->NdkReleaseLAM(k.ad, lam);
    kit_free(&m);
    kit_shut(&k);
    softndk_set("completions", "inline");
    CHECK_EQ(softndk_violations(NULL), 0);
}

struct block {
    KEVENT go;
    LONG running, ran;
};
static void block_worker(PDEVICE_OBJECT device, PVOID ctx) {
    struct block *b = (struct block *)ctx;
    (void)device;
    InterlockedIncrement(&b->running);
    kit_wait_event(&b->go);
    InterlockedIncrement(&b->ran);
}

static void work_item_queued_twice_is_reported(void) {
    static DRIVER_OBJECT driver;
    enum { ITEMS = 8 };
    PIO_WORKITEM item[ITEMS];
    struct block b = { 0 };
    start();
    KeInitializeEvent(&b.go, NotificationEvent, FALSE);
    for (int i = 0; i < ITEMS; i++) { /* more than there are workers: the last one waits */
        item[i] = IoAllocateWorkItem((PDEVICE_OBJECT)(PVOID)&driver);
        IoQueueWorkItem(item[i], block_worker, DelayedWorkQueue, &b);
    }
    IoQueueWorkItem(item[ITEMS - 1], block_worker, DelayedWorkQueue, &b);
    CHECK_EQ(softndk_violations("work_item"), 1);
    IoFreeWorkItem(item[ITEMS - 1]);
    CHECK_EQ(softndk_violations("work_item"), 2);
    KeSetEvent(&b.go, 0, FALSE);
    LARGE_INTEGER step = { .QuadPart = -10000 };
    ULONGLONG end = KeQueryInterruptTime() + KIT_SECONDS * 10000000ull;
    while (InterlockedCompareExchange(&b.ran, 0, 0) != ITEMS && KeQueryInterruptTime() < end)
        KeDelayExecutionThread(KernelMode, FALSE, &step);
    CHECK_EQ(b.ran, ITEMS);
    for (int i = 0; i < ITEMS; i++)
        IoFreeWorkItem(item[i]);
    expect("work_item", NULL);
}

static void spin_lock_misuse_is_reported(void) {
    KSPIN_LOCK lock;
    KIRQL a, b;
    start();
    KeInitializeSpinLock(&lock);
    KeAcquireSpinLock(&lock, &a);
    KeAcquireSpinLock(&lock, &b);
    CHECK_EQ(softndk_violations("spin_lock"), 1);
    KeReleaseSpinLock(&lock, b);
    KeReleaseSpinLock(&lock, a);
    CHECK_EQ(softndk_violations("spin_lock"), 2); /* not held any more */
    CHECK_EQ(KeGetCurrentIrql(), PASSIVE_LEVEL);
    expect("spin_lock", NULL);
}

static void pool_misuse_is_reported(void) {
    UCHAR *p;
    start();
    p = (UCHAR *)ExAllocatePoolWithTag(NonPagedPoolNx, 100, KIT_TAG);
    CHECK_EQ(p[0], 0xCD); /* what was not written can be told */
    ExFreePoolWithTag(p, 0x11111111);
    CHECK_EQ(softndk_violations("pool"), 1);
    ExFreePoolWithTag(p, KIT_TAG);
    CHECK_EQ(softndk_violations("pool"), 2);
    expect("pool", NULL);
}

static void wsk_misuse_is_reported(void) {
    struct kit k;
    WSK_PROVIDER_NPI npi;
    PVOID small;
    start();
    kit_open(&k);
    CHECK_NT(WskCaptureProviderNPI(&k.registration, 0, &npi), STATUS_SUCCESS);
    CHECK_NT(npi.Dispatch->WskControlClient(npi.Client, WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH, 0,
                                            NULL, sizeof small, &small, NULL, NULL),
             STATUS_INVALID_PARAMETER);
    CHECK_EQ(softndk_violations("wsk"), 1);
    WskReleaseProviderNPI(&k.registration);
    WSK_REGISTRATION copy = k.registration;
    kit_shut(&k);
    CHECK_EQ(softndk_violations("wsk"), 1);
    WskDeregister(&copy);
    WskReleaseProviderNPI(&copy);
    CHECK_EQ(softndk_violations("wsk"), 3);
    expect("wsk", NULL);
}

static void failed_assertion_is_reported(void) {
    volatile int two = 2;
    start();
    NT_ASSERT(two == 2);
    CHECK_EQ(softndk_violations(NULL), 0);
    NT_ASSERT(two == 3);
    CHECK_EQ(NT_VERIFY(two == 3), 0);
    CHECK_EQ(softndk_violations("assertion"), 2);
    expect("assertion", NULL);
}

TEST_MAIN(
    TEST(wait_at_dispatch_level_is_reported), TEST(query_adapter_at_dispatch_level_is_reported),
    TEST(wrong_lowering_and_raising_are_reported), TEST(wait_in_a_callback_is_reported),
    TEST(null_callbacks_are_reported), TEST(use_after_close_is_reported),
    TEST(second_close_is_reported), TEST(wild_and_mistaken_objects_are_reported),
    TEST(parent_closed_first_is_warned_of),
    TEST(objects_and_mappings_left_at_adapter_close_are_reported),
    TEST(kernel_leaks_are_reported_with_what_they_are), TEST(close_pending_at_unload_is_reported),
    TEST(context_on_a_dead_stack_is_reported), TEST(wait_given_up_while_pending_is_warned_of),
    TEST(context_of_two_pending_requests_is_warned_of),
    TEST(event_initialised_again_while_waited_for_is_reported),
    TEST(event_of_a_pending_request_initialised_again_is_reported),
    TEST(callback_that_is_no_code_is_reported),
    TEST(close_while_another_thread_is_in_a_call_is_reported),
    TEST(posting_more_than_the_queue_holds_is_reported), TEST(small_completion_queue_is_warned_of),
    TEST(requests_beyond_limits_are_reported), TEST(meaningless_flags_are_reported),
    TEST(two_threads_on_one_completion_queue_are_reported),
    TEST(segment_without_a_region_is_reported), TEST(segment_outside_its_region_is_reported),
    TEST(virtual_address_with_the_privileged_token_is_reported),
    TEST(remote_token_in_a_segment_is_reported),
    TEST(read_into_memory_that_may_not_be_written_is_reported),
    TEST(token_after_invalidation_is_reported), TEST(bad_fast_register_arguments_are_reported),
    TEST(region_of_the_wrong_kind_is_reported), TEST(region_in_the_wrong_state_is_reported),
    TEST(mapping_released_while_in_use_is_reported), TEST(mapping_released_twice_is_reported),
    TEST(mapping_of_a_shared_receive_released_is_reported),
    TEST(mapping_of_a_shared_receive_is_free_after_its_result),
    TEST(access_of_the_peer_after_the_end_of_a_region_is_warned_of),
    TEST(access_of_the_peer_without_the_right_is_warned_of),
    TEST(local_token_given_to_the_peer_is_warned_of), TEST(memory_freed_under_a_region_is_reported),
    TEST(mdl_locked_for_reading_under_a_writable_region_is_reported),
    TEST(deferred_request_at_the_end_is_reported), TEST(results_left_without_an_arm_are_reported),
    TEST(post_after_flush_is_warned_of), TEST(inconsistent_connection_arguments_are_reported),
    TEST(functions_of_a_later_version_are_reported),
    TEST(connection_data_asked_for_late_is_warned_of),
    TEST(first_receive_on_a_live_connection_is_warned_of),
    TEST(shared_queue_that_overflows_is_reported),
    TEST(two_threads_posting_to_one_queue_are_reported),
    TEST(pending_mapping_tells_all_when_it_is_complete), TEST(work_item_queued_twice_is_reported),
    TEST(spin_lock_misuse_is_reported), TEST(pool_misuse_is_reported), TEST(wsk_misuse_is_reported),
    TEST(failed_assertion_is_reported))
