/* SPDX-License-Identifier: MIT
 *
 * System worker threads (PASSIVE_LEVEL), one DPC thread (DISPATCH_LEVEL), one timer thread, and
 * threads of the consumer. Threads of this file start at first use and live until the process
 * ends; ke_work_drain waits until they are idle.
 */
#include <setjmp.h>
#include <stdlib.h>
#include "ndk/kenv/handle.h"
#include "ndk/kenv/kenv.h"
#include "ndk/kenv/objects.h"
#include "ndk/kenv/system.h"
#include "ndk/kenv/tracked.h"
#include "ndk/verify/verify.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/thread.h"

enum { WORKERS = 2 };
enum work_kind { WORK_IO, WORK_IO_EX, WORK_EX };

struct work {
    struct sn_list link;
    enum work_kind kind;
    void *item; /* PIO_WORKITEM or PWORK_QUEUE_ITEM */
};

struct _IO_WORKITEM {
    PDEVICE_OBJECT device;
    PVOID context;
    union {
        PIO_WORKITEM_ROUTINE plain;
        PIO_WORKITEM_ROUTINE_EX ex;
    } routine;
    struct work work;
    os_atomic_u32 queued;
};

static os_once once = OS_ONCE_INIT;
static os_lock lock; /* rank REQUEST: everything below */
static os_cond work_ready, dpc_ready, timer_changed, idle;
static struct sn_list works, dpcs, timers;
static uint32_t busy; /* routines running */
static bool workers_started, dpc_started, timer_started;

static void init_items(void);
static struct ke_tracker items = { .once = OS_ONCE_INIT, .init = init_items };
static void init_items(void) {
    ke_tracker_init(&items);
}

static void init(void) {
    os_lock_init(&lock, OS_RANK_REQUEST); /* the dispatcher lock is taken under it */
    os_cond_init(&work_ready);
    os_cond_init(&dpc_ready);
    os_cond_init(&timer_changed);
    os_cond_init(&idle);
    sn_list_init(&works);
    sn_list_init(&dpcs);
    sn_list_init(&timers);
}

static void enter(void) {
    os_once_run(&once, init);
    os_lock_enter(&lock);
}

static void start_thread(const char *name, void (*fn)(void *), void *arg) {
    os_thread t;
    if (os_thread_start(&t, name, fn, arg) != SN_OK)
        KeBugCheckEx(0x4, 0, 0, 0, 0); /* a kernel cannot run without its threads either */
    os_thread_detach(t);
}

static void done_locked(void) {
    busy--;
    if (busy == 0 && sn_list_empty(&works) && sn_list_empty(&dpcs)) os_cond_broadcast(&idle);
}

/* ---- work items ---- */

static void run_work(struct work *w) {
    if (w->kind == WORK_EX) {
        PWORK_QUEUE_ITEM item = w->item;
        PWORKER_THREAD_ROUTINE routine = item->WorkerRoutine;
        PVOID parameter = item->Parameter;
        free(w);
        __atomic_store_n(&item->List.Flink, NULL, __ATOMIC_RELEASE);
        routine(parameter);
        return;
    }
    PIO_WORKITEM item = w->item;
    os_u32_store_release(&item->queued, 0); /* the routine may free it or queue it again */
    PVOID context = item->context;
    if (w->kind == WORK_IO)
        item->routine.plain(item->device, context);
    else
        item->routine.ex(item->device, context, item);
}

static void worker(void *arg) {
    (void)arg;
    enter();
    for (;;) {
        struct sn_list *it;
        while ((it = sn_list_pop(&works)) == NULL)
            os_cond_wait(&work_ready, &lock, OS_FOREVER);
        busy++;
        bool counted = ndk_verifying();
        if (counted) ke_running_begin();
        os_lock_leave(&lock);
        run_work(SN_CONTAINER(it, struct work, link));
        if (counted) ke_running_end();
        if (ndk_verifying() && KeGetCurrentIrql() != PASSIVE_LEVEL) {
            ndk_violation(NDK_RULE_irql, "work item", NULL, "the routine returned at IRQL %u",
                          KeGetCurrentIrql());
            KeLowerIrql(PASSIVE_LEVEL);
        }
        os_lock_enter(&lock);
        done_locked();
    }
}

static void queue_work(struct work *w) {
    enter();
    bool start = !workers_started;
    workers_started = true;
    sn_list_push_back(&works, &w->link);
    os_cond_signal(&work_ready);
    os_lock_leave(&lock);
    for (int i = 0; start && i < WORKERS; i++)
        start_thread("ndk-worker", worker, NULL);
}

PIO_WORKITEM IoAllocateWorkItem(PDEVICE_OBJECT device) {
    if (ndk_verifying()) {
        ke_call_enter("IoAllocateWorkItem", DISPATCH_LEVEL);
        if (!device)
            ndk_violation(NDK_RULE_work_item, "IoAllocateWorkItem", NULL, "the device is NULL");
    }
    PIO_WORKITEM item = os_zalloc(sizeof *item);
    if (!item) return NULL;
    item->device = device;
    item->work.item = item;
    sn_list_init(&item->work.link);
    if (!ke_track(&items, item, sizeof *item, 0)) {
        os_free(item);
        return NULL;
    }
    return item;
}

VOID IoFreeWorkItem(PIO_WORKITEM item) {
    if (ndk_verifying()) ke_call_enter("IoFreeWorkItem", DISPATCH_LEVEL);
    if (!ke_tracked(&items, item)) {
        ndk_violation(NDK_RULE_work_item, "IoFreeWorkItem", item,
                      "not a work item, or freed before");
        return;
    }
    if (os_u32_load_acquire(&item->queued)) {
        ndk_violation(NDK_RULE_work_item, "IoFreeWorkItem", item, "the item is queued");
        return;
    }
    ke_untrack(&items, item, NULL);
    os_free(item);
}

static bool claim_item(PIO_WORKITEM item, const char *call) {
    if (ndk_verifying()) {
        ke_call_enter(call, DISPATCH_LEVEL);
        if (!ke_tracked(&items, item)) {
            ndk_violation(NDK_RULE_work_item, call, item, "not a work item, or freed before");
            return false;
        }
    }
    if (os_u32_exchange_acq_rel(&item->queued, 1) == 0) return true;
    ndk_violation(NDK_RULE_work_item, call, item, "the item is queued already");
    return false;
}

VOID IoQueueWorkItem(PIO_WORKITEM item, PIO_WORKITEM_ROUTINE routine, WORK_QUEUE_TYPE queue,
                     PVOID context) {
    (void)queue;
    if (!claim_item(item, "IoQueueWorkItem")) return;
    item->routine.plain = routine;
    item->context = context;
    item->work.kind = WORK_IO;
    queue_work(&item->work);
}

VOID IoQueueWorkItemEx(PIO_WORKITEM item, PIO_WORKITEM_ROUTINE_EX routine, WORK_QUEUE_TYPE queue,
                       PVOID context) {
    (void)queue;
    if (!claim_item(item, "IoQueueWorkItemEx")) return;
    item->routine.ex = routine;
    item->context = context;
    item->work.kind = WORK_IO_EX;
    queue_work(&item->work);
}

VOID ExQueueWorkItem(PWORK_QUEUE_ITEM item, WORK_QUEUE_TYPE queue) {
    (void)queue;
    if (ndk_verifying()) ke_call_enter("ExQueueWorkItem", DISPATCH_LEVEL);
    struct work *w = calloc(1, sizeof *w);
    if (!w) KeBugCheckEx(0x4, 0, 0, 0, 0);
    if (__atomic_exchange_n(&item->List.Flink, &item->List, __ATOMIC_ACQ_REL) != NULL) {
        ndk_violation(NDK_RULE_work_item, "ExQueueWorkItem", item, "the item is queued already");
        free(w);
        return;
    }
    w->kind = WORK_EX;
    w->item = item;
    queue_work(w);
}

static void report_leak(const struct ke_tracked *e) {
    ndk_violation(NDK_RULE_leak, "IoAllocateWorkItem", e->p, "a work item was never freed");
    os_free(e->p);
}

int ke_work_leaks(void) {
    return ke_track_drain(&items, report_leak);
}

/* ---- DPCs ---- */

static void dpc_thread(void *arg) {
    (void)arg;
    enter();
    for (;;) {
        struct sn_list *it;
        while ((it = sn_list_pop(&dpcs)) == NULL)
            os_cond_wait(&dpc_ready, &lock, OS_FOREVER);
        busy++;
        PRKDPC dpc = SN_CONTAINER(it, KDPC, DpcListEntry);
        PKDEFERRED_ROUTINE routine = dpc->DeferredRoutine;
        PVOID context = dpc->DeferredContext, a1 = dpc->SystemArgument1, a2 = dpc->SystemArgument2;
        dpc->DpcData = NULL; /* from here on it may be queued again, or be gone */
        bool counted = ndk_verifying();
        if (counted) ke_running_begin();
        os_lock_leave(&lock);
        KIRQL old = KfRaiseIrql(DISPATCH_LEVEL);
        routine(dpc, context, a1, a2);
        if (ndk_verifying() && KeGetCurrentIrql() != DISPATCH_LEVEL) {
            ndk_violation(NDK_RULE_irql, "DPC", dpc, "the routine returned at IRQL %u",
                          KeGetCurrentIrql());
            KfRaiseIrql(DISPATCH_LEVEL);
        }
        KeLowerIrql(old);
        if (counted) ke_running_end();
        os_lock_enter(&lock);
        done_locked();
    }
}

VOID KeInitializeDpc(PRKDPC dpc, PKDEFERRED_ROUTINE routine, PVOID context) {
    memset(dpc, 0, sizeof *dpc);
    dpc->DeferredRoutine = routine;
    dpc->DeferredContext = context;
}

/* True: the caller starts the thread. */
static bool insert_dpc_locked(PRKDPC dpc, PVOID a1, PVOID a2, bool *inserted) {
    *inserted = dpc->DpcData == NULL;
    if (!*inserted) return false;
    dpc->DpcData = &dpcs;
    dpc->SystemArgument1 = a1;
    dpc->SystemArgument2 = a2;
    sn_list_push_back(&dpcs, (struct sn_list *)&dpc->DpcListEntry);
    os_cond_signal(&dpc_ready);
    bool start = !dpc_started;
    dpc_started = true;
    return start;
}

BOOLEAN KeInsertQueueDpc(PRKDPC dpc, PVOID a1, PVOID a2) {
    bool inserted;
    enter();
    bool start = insert_dpc_locked(dpc, a1, a2, &inserted);
    os_lock_leave(&lock);
    if (start) start_thread("ndk-dpc", dpc_thread, NULL);
    return inserted;
}

BOOLEAN KeRemoveQueueDpc(PRKDPC dpc) {
    enter();
    bool queued = dpc->DpcData != NULL;
    if (queued) {
        sn_list_remove((struct sn_list *)&dpc->DpcListEntry);
        dpc->DpcData = NULL;
    }
    os_lock_leave(&lock);
    return queued;
}

void ke_work_drain(void) {
    enter();
    while (busy || !sn_list_empty(&works) || !sn_list_empty(&dpcs))
        os_cond_wait(&idle, &lock, OS_FOREVER);
    os_lock_leave(&lock);
}

bool ke_work_waits(void) {
    enter();
    bool waits = !sn_list_empty(&works) || !sn_list_empty(&dpcs) || !sn_list_empty(&timers);
    os_lock_leave(&lock);
    return waits;
}

VOID KeFlushQueuedDpcs(VOID) {
    if (ndk_verifying()) ke_call_enter("KeFlushQueuedDpcs", PASSIVE_LEVEL);
    enter();
    while (!sn_list_empty(&dpcs))
        os_cond_wait(&idle, &lock, os_now_ns() + OS_NS_PER_MS);
    os_lock_leave(&lock);
}

/* ---- timers: DueTime holds the monotonic deadline while the timer is on the list ---- */

static uint64_t fire_due_locked(struct sn_list *due) {
    uint64_t now = os_now_ns(), next = OS_FOREVER;
    SN_LIST_FOR_SAFE(it, tmp, &timers) {
        PKTIMER t = SN_CONTAINER(it, KTIMER, TimerListEntry);
        if (t->DueTime.QuadPart <= now) {
            sn_list_remove(it);
            sn_list_push_back(due, it);
        } else {
            next = SN_MIN(next, t->DueTime.QuadPart);
        }
    }
    return next;
}

static void timer_thread(void *arg) {
    (void)arg;
    enter();
    for (;;) {
        struct sn_list due;
        sn_list_init(&due);
        uint64_t next = fire_due_locked(&due);
        bool start = false;
        for (struct sn_list *it; (it = sn_list_pop(&due)) != NULL;) {
            PKTIMER t = SN_CONTAINER(it, KTIMER, TimerListEntry);
            bool inserted;
            if (t->Dpc) start |= insert_dpc_locked(t->Dpc, NULL, NULL, &inserted);
            t->Header.Signalling = 0;
            if (t->Period) {
                t->DueTime.QuadPart = os_now_ns() + t->Period * OS_NS_PER_MS;
                next = SN_MIN(next, t->DueTime.QuadPart);
                t->Header.Signalling = 1;
                sn_list_push_back(&timers, it);
            }
            ke_dispatcher_enter();
            ke_signal_locked(&t->Header, 1);
            ke_dispatcher_leave();
        }
        if (start) start_thread("ndk-dpc", dpc_thread, NULL);
        os_cond_wait(&timer_changed, &lock, next);
    }
}

VOID KeInitializeTimerEx(PKTIMER t, TIMER_TYPE type) {
    memset(t, 0, sizeof *t);
    ke_header_init(&t->Header, type == SynchronizationTimer ? KE_TIMER_SYNC : KE_TIMER, 0);
    sn_list_init((struct sn_list *)&t->TimerListEntry);
}

static bool stop_timer_locked(PKTIMER t) {
    bool was = t->Header.Signalling != 0;
    sn_list_remove((struct sn_list *)&t->TimerListEntry);
    t->Header.Signalling = 0;
    return was;
}

BOOLEAN KeSetTimerEx(PKTIMER t, LARGE_INTEGER due, LONG period_ms, PKDPC dpc) {
    uint64_t deadline = ke_deadline(due.QuadPart);
    enter();
    bool was = stop_timer_locked(t);
    ke_dispatcher_enter();
    t->Header.SignalState = 0;
    ke_dispatcher_leave();
    t->DueTime.QuadPart = deadline;
    t->Period = period_ms > 0 ? (ULONG)period_ms : 0;
    t->Dpc = dpc;
    t->Header.Signalling = 1;
    sn_list_push_back(&timers, (struct sn_list *)&t->TimerListEntry);
    bool start = !timer_started;
    timer_started = true;
    os_cond_signal(&timer_changed);
    os_lock_leave(&lock);
    if (start) start_thread("ndk-timer", timer_thread, NULL);
    return was;
}

BOOLEAN KeCancelTimer(PKTIMER t) {
    enter();
    bool was = stop_timer_locked(t);
    os_lock_leave(&lock);
    return was;
}

/* ---- threads ---- */

struct _KTHREAD {
    DISPATCHER_HEADER header;
    os_atomic_u32 refs;
    PKSTART_ROUTINE routine;
    PVOID context;
    jmp_buf end;
    bool system;  /* made by PsCreateSystemThread */
    bool counted; /* ke_running_thread_made */
};
static _Thread_local struct _KTHREAD *self;
static _Thread_local struct _KTHREAD foreign; /* threads that were not */

PKTHREAD KeGetCurrentThread(VOID) {
    return self ? self : &foreign;
}

static void put_thread(void *body) {
    struct _KTHREAD *t = body;
    if (os_u32_fetch_sub_acq_rel(&t->refs, 1) == 1) os_free(t);
}

static void run_thread(void *arg) {
    self = arg;
    if (self->counted) ke_running_thread_begins();
    if (setjmp(self->end) == 0) self->routine(self->context);
    if (ndk_verifying() && KeGetCurrentIrql() != PASSIVE_LEVEL)
        ndk_violation(NDK_RULE_irql, "system thread", NULL, "the thread ended at IRQL %u",
                      KeGetCurrentIrql());
    ke_dispatcher_enter();
    ke_signal_locked(&self->header, 1);
    ke_dispatcher_leave();
    if (self->counted) ke_running_thread_ends();
    put_thread(self);
}

NTSTATUS PsCreateSystemThread(PHANDLE handle, ULONG access, POBJECT_ATTRIBUTES attributes,
                              HANDLE process, PVOID client, PKSTART_ROUTINE routine,
                              PVOID context) {
    (void)access;
    (void)attributes;
    (void)process;
    (void)client;
    if (ndk_verifying()) ke_call_enter("PsCreateSystemThread", PASSIVE_LEVEL);
    struct _KTHREAD *t = os_zalloc(sizeof *t);
    if (!t) return STATUS_INSUFFICIENT_RESOURCES;
    ke_header_init(&t->header, KE_THREAD, 0);
    os_u32_store_relaxed(&t->refs, 2); /* the thread's and the handle's */
    t->routine = routine;
    t->context = context;
    t->system = true;
    t->counted = ndk_verifying();
    if (t->counted) ke_running_thread_made();
    HANDLE h = ke_handle_open(KE_HANDLE_THREAD, t, put_thread);
    os_thread id;
    if (!h || os_thread_start(&id, "ndk-system", run_thread, t) != SN_OK) {
        if (t->counted) ke_running_thread_unmade();
        if (h) {
            ZwClose(h);
            put_thread(t);
        } else {
            os_free(t);
        }
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    os_thread_detach(id);
    *handle = h;
    return STATUS_SUCCESS;
}

NTSTATUS PsTerminateSystemThread(NTSTATUS status) {
    (void)status;
    if (!self) return STATUS_INVALID_PARAMETER;
    longjmp(self->end, 1);
}

NTSTATUS ObReferenceObjectByHandle(HANDLE handle, ACCESS_MASK access, PVOID type,
                                   KPROCESSOR_MODE mode, PVOID *object, PVOID information) {
    (void)access;
    (void)type;
    (void)mode;
    (void)information;
    struct _KTHREAD *t = ke_handle_body(handle, KE_HANDLE_THREAD);
    if (!t) return STATUS_INVALID_HANDLE;
    os_u32_fetch_add_relaxed(&t->refs, 1);
    *object = t;
    return STATUS_SUCCESS;
}

VOID ObDereferenceObject(PVOID object) {
    put_thread(object);
}

VOID IoCompleteRequest(PIRP irp, CCHAR boost) {
    (void)irp;
    (void)boost;
}

/* ---- processors: one node; the system places threads as it likes ---- */

USHORT KeGetCurrentNodeNumber(VOID) {
    return 0;
}

USHORT KeQueryHighestNodeNumber(VOID) {
    return 0;
}

VOID KeQueryNodeActiveAffinity(USHORT node, GROUP_AFFINITY *affinity, PUSHORT count) {
    ULONG n = KeQueryActiveProcessorCountEx(0);
    if (affinity) {
        memset(affinity, 0, sizeof *affinity);
        affinity->Mask = node != 0 ? 0 : n >= 64 ? ~(KAFFINITY)0 : ((KAFFINITY)1 << n) - 1;
    }
    if (count) *count = (USHORT)(node == 0 ? n : 0);
}

VOID KeSetSystemGroupAffinityThread(GROUP_AFFINITY *affinity, GROUP_AFFINITY *previous) {
    (void)affinity;
    if (previous) memset(previous, 0, sizeof *previous);
}

VOID KeRevertToUserGroupAffinityThread(GROUP_AFFINITY *previous) {
    (void)previous;
}

ULONG KeQueryActiveProcessorCountEx(USHORT group) {
    (void)group;
    return (ULONG)SN_MIN(64, SN_MAX(1, ke_cpu_count()));
}

ULONG KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER number) {
    if (number) memset(number, 0, sizeof *number);
    return 0;
}
