/* SPDX-License-Identifier: MIT
 * The kernel environment by itself: dispatcher objects, locks, pools, MDLs, work items, DPCs,
 * timers, lists, interlocked operations, strings and addresses.
 */
#include <ntddk.h>
#include <netioapi.h>
#include <ntstrsafe.h>
#undef min
#undef max
#include "softndk.h"
#include "support/testing.h"

#define TAG 0x4C4E524B /* "KRNL" */
#define SECOND 10000000ll

static LARGE_INTEGER ticks(LONGLONG n) {
    LARGE_INTEGER t;
    t.QuadPart = n;
    return t;
}

static NTSTATUS wait_for(PVOID object, LONGLONG timeout) {
    LARGE_INTEGER t = ticks(timeout);
    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &t);
}

/* ---- events and waits ---- */

static void notification_event_stays_set(void) {
    KEVENT e;
    KeInitializeEvent(&e, NotificationEvent, FALSE);
    CHECK_EQ(wait_for(&e, 0), STATUS_TIMEOUT);
    CHECK_EQ(KeSetEvent(&e, 0, FALSE), 0);
    CHECK_EQ(KeSetEvent(&e, 0, FALSE), 1);
    CHECK_EQ(wait_for(&e, 0), STATUS_SUCCESS);
    CHECK_EQ(wait_for(&e, 0), STATUS_SUCCESS);
    CHECK_EQ(KeReadStateEvent(&e), 1);
    CHECK_EQ(KeResetEvent(&e), 1);
    CHECK_EQ(wait_for(&e, 0), STATUS_TIMEOUT);
    KeSetEvent(&e, 0, FALSE);
    KeClearEvent(&e);
    CHECK_EQ(KeReadStateEvent(&e), 0);
}

static void synchronization_event_is_taken_by_one_wait(void) {
    KEVENT e;
    KeInitializeEvent(&e, SynchronizationEvent, TRUE);
    CHECK_EQ(wait_for(&e, 0), STATUS_SUCCESS);
    CHECK_EQ(wait_for(&e, 0), STATUS_TIMEOUT);
}

static void semaphore_counts_up_to_its_limit(void) {
    KSEMAPHORE s;
    KeInitializeSemaphore(&s, 1, 3);
    CHECK_EQ(KeReleaseSemaphore(&s, 0, 1, FALSE), 1);
    CHECK_EQ(wait_for(&s, 0), STATUS_SUCCESS);
    CHECK_EQ(wait_for(&s, 0), STATUS_SUCCESS);
    CHECK_EQ(wait_for(&s, 0), STATUS_TIMEOUT);
}

static void timeouts_are_relative_and_absolute(void) {
    KEVENT e;
    LARGE_INTEGER now;
    KeInitializeEvent(&e, NotificationEvent, FALSE);
    ULONGLONG before = KeQueryInterruptTime();
    CHECK_EQ(wait_for(&e, -SECOND / 50), STATUS_TIMEOUT);
    CHECK(KeQueryInterruptTime() - before >= SECOND / 50);
    KeQuerySystemTime(&now);
    CHECK_EQ(wait_for(&e, now.QuadPart + SECOND / 50), STATUS_TIMEOUT);
    CHECK_EQ(wait_for(&e, 1), STATUS_TIMEOUT); /* long ago */
}

struct many {
    KEVENT go, done;
    LONG waiting, woken, total;
};
static void wait_then_count(PVOID ctx) {
    struct many *m = (struct many *)ctx;
    InterlockedIncrement(&m->waiting);
    if (wait_for(&m->go, -20 * SECOND) == STATUS_SUCCESS &&
        InterlockedIncrement(&m->woken) == m->total)
        KeSetEvent(&m->done, 0, FALSE);
}

static void all_waiters_of_a_notification_event_wake(void) {
    struct many m = { .total = 5 };
    HANDLE thread[5];
    KeInitializeEvent(&m.go, NotificationEvent, FALSE);
    KeInitializeEvent(&m.done, NotificationEvent, FALSE);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(PsCreateSystemThread(&thread[i], THREAD_ALL_ACCESS, NULL, NULL, NULL,
                                      wait_then_count, &m),
                 STATUS_SUCCESS);
    KeSetEvent(&m.go, 0, FALSE);
    CHECK_EQ(wait_for(&m.done, -20 * SECOND), STATUS_SUCCESS);
    for (int i = 0; i < 5; i++) {
        PVOID object;
        CHECK_EQ(ObReferenceObjectByHandle(thread[i], 0, NULL, KernelMode, &object, NULL),
                 STATUS_SUCCESS);
        CHECK_EQ(wait_for(object, -20 * SECOND), STATUS_SUCCESS);
        ObDereferenceObject(object);
        CHECK_EQ(ZwClose(thread[i]), STATUS_SUCCESS);
    }
}

static void end_early(PVOID ctx) {
    InterlockedIncrement((LONG *)ctx);
    PsTerminateSystemThread(STATUS_SUCCESS);
    InterlockedIncrement((LONG *)ctx);
}

static void thread_can_end_itself(void) {
    HANDLE thread;
    PVOID object;
    LONG n = 0;
    CHECK_EQ(PsCreateSystemThread(&thread, 0, NULL, NULL, NULL, end_early, &n), STATUS_SUCCESS);
    ObReferenceObjectByHandle(thread, 0, NULL, KernelMode, &object, NULL);
    CHECK_EQ(wait_for(object, -20 * SECOND), STATUS_SUCCESS);
    CHECK_EQ(n, 1);
    ObDereferenceObject(object);
    ZwClose(thread);
    CHECK_EQ(PsTerminateSystemThread(STATUS_SUCCESS), STATUS_INVALID_PARAMETER); /* not one */
}

/* ---- IRQL and locks ---- */

static void spin_locks_raise_and_restore_irql(void) {
    KSPIN_LOCK lock;
    KLOCK_QUEUE_HANDLE h;
    KIRQL old;
    KeInitializeSpinLock(&lock);
    CHECK_EQ(KeGetCurrentIrql(), PASSIVE_LEVEL);
    KeAcquireSpinLock(&lock, &old);
    CHECK_EQ(old, PASSIVE_LEVEL);
    CHECK_EQ(KeGetCurrentIrql(), DISPATCH_LEVEL);
    KeReleaseSpinLock(&lock, old);
    KeAcquireInStackQueuedSpinLock(&lock, &h);
    CHECK_EQ(h.OldIrql, PASSIVE_LEVEL);
    KeReleaseInStackQueuedSpinLock(&h);
    CHECK_EQ(KeGetCurrentIrql(), PASSIVE_LEVEL);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    KeAcquireInStackQueuedSpinLockAtDpcLevel(&lock, &h);
    KeReleaseInStackQueuedSpinLockFromDpcLevel(&h);
    KeAcquireSpinLockAtDpcLevel(&lock);
    KeReleaseSpinLockFromDpcLevel(&lock);
    CHECK_EQ(KeGetCurrentIrql(), DISPATCH_LEVEL);
    KeLowerIrql(old);
}

struct contended {
    KSPIN_LOCK lock;
    FAST_MUTEX mutex;
    ULONG plain, under_mutex;
    LONG left;
    KEVENT done;
};
enum { ROUNDS = 20000, CONTENDERS = 3 };
static void contend(PVOID ctx) {
    struct contended *c = (struct contended *)ctx;
    for (int i = 0; i < ROUNDS; i++) {
        KIRQL old;
        KeAcquireSpinLock(&c->lock, &old);
        c->plain++;
        KeReleaseSpinLock(&c->lock, old);
        if (i % 16) continue;
        ExAcquireFastMutex(&c->mutex);
        c->under_mutex++;
        ExReleaseFastMutex(&c->mutex);
    }
    if (InterlockedDecrement(&c->left) == 0) KeSetEvent(&c->done, 0, FALSE);
}

static void locks_exclude(void) {
    struct contended c = { .left = CONTENDERS };
    HANDLE thread;
    KeInitializeSpinLock(&c.lock);
    ExInitializeFastMutex(&c.mutex);
    KeInitializeEvent(&c.done, NotificationEvent, FALSE);
    for (int i = 0; i < CONTENDERS; i++) {
        CHECK_EQ(PsCreateSystemThread(&thread, 0, NULL, NULL, NULL, contend, &c), STATUS_SUCCESS);
        ZwClose(thread);
    }
    CHECK_EQ(wait_for(&c.done, -60 * SECOND), STATUS_SUCCESS);
    CHECK_EQ(c.plain, ROUNDS * CONTENDERS);
    CHECK_EQ(c.under_mutex, (ROUNDS + 15) / 16 * CONTENDERS);
}

static EX_RUNDOWN_REF rundown;
static LONG rundown_over;
static void wait_rundown(PVOID ctx) {
    ExWaitForRundownProtectionRelease(&rundown);
    InterlockedExchange(&rundown_over, 1);
    KeSetEvent((PRKEVENT)ctx, 0, FALSE);
}

static void rundown_protection_ends_when_released(void) {
    KEVENT done;
    HANDLE thread;
    KeInitializeEvent(&done, NotificationEvent, FALSE);
    ExInitializeRundownProtection(&rundown);
    CHECK(ExAcquireRundownProtection(&rundown));
    CHECK(ExAcquireRundownProtectionEx(&rundown, 2));
    CHECK_EQ(PsCreateSystemThread(&thread, 0, NULL, NULL, NULL, wait_rundown, &done),
             STATUS_SUCCESS);
    ZwClose(thread);
    ULONGLONG end = KeQueryInterruptTime() + 20 * SECOND;
    while (ExAcquireRundownProtection(&rundown) && KeQueryInterruptTime() < end)
        ExReleaseRundownProtection(&rundown); /* until the waiter has said so */
    CHECK_EQ(InterlockedCompareExchange(&rundown_over, 0, 0), 0);
    ExReleaseRundownProtectionEx(&rundown, 2);
    ExReleaseRundownProtection(&rundown);
    CHECK_EQ(wait_for(&done, -20 * SECOND), STATUS_SUCCESS);
    CHECK(!ExAcquireRundownProtection(&rundown));
}

/* ---- memory ---- */

static void pool_aligns_pages_and_zeroes_when_asked(void) {
    UCHAR *p = (UCHAR *)ExAllocatePool2(POOL_FLAG_NON_PAGED, 3 * PAGE_SIZE + 1, TAG);
    CHECK(p != NULL);
    CHECK_EQ(BYTE_OFFSET(p), 0);
    for (int i = 0; i <= 3 * PAGE_SIZE; i++)
        CHECK_EQ(p[i], 0);
    ExFreePoolWithTag(p, TAG);
    p = (UCHAR *)ExAllocatePool3(POOL_FLAG_NON_PAGED, 10, TAG, NULL, 0);
    CHECK_EQ(p[9], 0);
    ExFreePool2(p, TAG, NULL, 0);
    NPAGED_LOOKASIDE_LIST list;
    ExInitializeNPagedLookasideList(&list, NULL, NULL, 0, 64, TAG, 0);
    PVOID entry = ExAllocateFromNPagedLookasideList(&list);
    CHECK(entry != NULL);
    ExFreeToNPagedLookasideList(&list, entry);
    ExDeleteNPagedLookasideList(&list);
}

static void mdl_describes_its_memory(void) {
    UCHAR *p = (UCHAR *)ExAllocatePoolZero(NonPagedPoolNx, 4 * PAGE_SIZE, TAG);
    MDL *m = IoAllocateMdl(p + 100, 2 * PAGE_SIZE, FALSE, FALSE, NULL);
    MmBuildMdlForNonPagedPool(m);
    CHECK_PTR(MmGetMdlVirtualAddress(m), p + 100);
    CHECK_EQ(MmGetMdlByteCount(m), 2 * PAGE_SIZE);
    CHECK_EQ(MmGetMdlByteOffset(m), 100);
    CHECK_EQ(ADDRESS_AND_SIZE_TO_SPAN_PAGES(p + 100, 2 * PAGE_SIZE), 3);
    CHECK_PTR(MmGetSystemAddressForMdlSafe(m, NormalPagePriority), p + 100);
    CHECK_EQ(MmGetMdlPfnArray(m)[1],
             (PFN_NUMBER)(MmGetPhysicalAddress(p + PAGE_SIZE).QuadPart >> PAGE_SHIFT));
    MDL *part = IoAllocateMdl(p + 100, 2 * PAGE_SIZE, FALSE, FALSE, NULL);
    IoBuildPartialMdl(m, part, p + PAGE_SIZE, 10);
    CHECK_PTR(MmGetMdlVirtualAddress(part), p + PAGE_SIZE);
    CHECK_EQ(MmGetMdlByteCount(part), 10);
    IoFreeMdl(part);
    IoFreeMdl(m);
    m = IoAllocateMdl(p, PAGE_SIZE, FALSE, FALSE, NULL);
    MmProbeAndLockPages(m, KernelMode, IoWriteAccess);
    CHECK(m->MdlFlags & MDL_PAGES_LOCKED);
    MmUnlockPages(m);
    CHECK(!(m->MdlFlags & MDL_PAGES_LOCKED));
    IoFreeMdl(m);
    ExFreePoolWithTag(p, TAG);
}

/* ---- work ---- */

struct worked {
    KEVENT done;
    KIRQL irql;
    LONG runs;
    PVOID object;
};
static void io_work(PDEVICE_OBJECT device, PVOID ctx) {
    struct worked *w = (struct worked *)ctx;
    w->object = device;
    w->irql = KeGetCurrentIrql();
    KeSetEvent(&w->done, 0, FALSE);
}
static void io_work_ex(PVOID object, PVOID ctx, PIO_WORKITEM item) {
    struct worked *w = (struct worked *)ctx;
    w->object = object;
    IoFreeWorkItem(item); /* allowed in the routine */
    KeSetEvent(&w->done, 0, FALSE);
}
static void ex_work(PVOID ctx) {
    struct worked *w = (struct worked *)ctx;
    w->irql = KeGetCurrentIrql();
    KeSetEvent(&w->done, 0, FALSE);
}

static void work_items_run_at_passive_level(void) {
    static DRIVER_OBJECT driver;
    struct worked w = { .irql = 9 };
    WORK_QUEUE_ITEM plain;
    KeInitializeEvent(&w.done, SynchronizationEvent, FALSE);
    PIO_WORKITEM item = IoAllocateWorkItem((PDEVICE_OBJECT)(PVOID)&driver);
    IoQueueWorkItem(item, io_work, DelayedWorkQueue, &w);
    CHECK_EQ(wait_for(&w.done, -20 * SECOND), STATUS_SUCCESS);
    CHECK_EQ(w.irql, PASSIVE_LEVEL);
    CHECK_PTR(w.object, &driver);
    IoQueueWorkItemEx(item, io_work_ex, DelayedWorkQueue, &w);
    CHECK_EQ(wait_for(&w.done, -20 * SECOND), STATUS_SUCCESS);
    w.irql = 9;
    ExInitializeWorkItem(&plain, ex_work, &w);
    for (int i = 0; i < 2; i++) {
        ExQueueWorkItem(&plain, DelayedWorkQueue);
        CHECK_EQ(wait_for(&w.done, -20 * SECOND), STATUS_SUCCESS);
        CHECK_EQ(w.irql, PASSIVE_LEVEL);
    }
}

static void dpc_routine(PKDPC dpc, PVOID ctx, PVOID a1, PVOID a2) {
    struct worked *w = (struct worked *)ctx;
    (void)dpc;
    w->irql = KeGetCurrentIrql();
    w->object = a1 ? a1 : a2;
    InterlockedIncrement(&w->runs);
    KeSetEvent(&w->done, 0, FALSE);
}

static void dpcs_and_timers_run_at_dispatch_level(void) {
    struct worked w = { .irql = 9 };
    KDPC dpc;
    KTIMER timer;
    KeInitializeEvent(&w.done, SynchronizationEvent, FALSE);
    KeInitializeDpc(&dpc, dpc_routine, &w);
    CHECK(KeInsertQueueDpc(&dpc, &w, NULL));
    CHECK_EQ(wait_for(&w.done, -20 * SECOND), STATUS_SUCCESS);
    CHECK_EQ(w.irql, DISPATCH_LEVEL);
    CHECK_PTR(w.object, &w);
    KeInitializeTimer(&timer);
    CHECK(!KeSetTimer(&timer, ticks(-SECOND / 100), &dpc));
    CHECK_EQ(wait_for(&timer, -20 * SECOND), STATUS_SUCCESS);
    CHECK_EQ(wait_for(&w.done, -20 * SECOND), STATUS_SUCCESS);
    CHECK_EQ(InterlockedCompareExchange(&w.runs, 0, 0), 2);
    CHECK(!KeSetTimerEx(&timer, ticks(-SECOND / 100), 5, &dpc));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(wait_for(&w.done, -20 * SECOND), STATUS_SUCCESS);
    CHECK(KeCancelTimer(&timer));
    CHECK(!KeCancelTimer(&timer));
    KeSetTimer(&timer, ticks(-1000 * SECOND), NULL);
    CHECK(KeSetTimer(&timer, ticks(-1000 * SECOND), NULL));
    CHECK(KeCancelTimer(&timer));
    KeFlushQueuedDpcs();
}

/* ---- lists, interlocked ---- */

static void lists_keep_their_order(void) {
    LIST_ENTRY head, e[3];
    KSPIN_LOCK lock;
    SINGLE_LIST_ENTRY s = { NULL }, x, y;
    InitializeListHead(&head);
    KeInitializeSpinLock(&lock);
    CHECK(IsListEmpty(&head));
    InsertTailList(&head, &e[1]);
    InsertHeadList(&head, &e[0]);
    CHECK_PTR(ExInterlockedInsertTailList(&head, &e[2], &lock), &e[1]);
    CHECK_PTR(RemoveTailList(&head), &e[2]);
    CHECK_PTR(ExInterlockedRemoveHeadList(&head, &lock), &e[0]);
    CHECK(RemoveEntryList(&e[1]));
    CHECK_PTR(ExInterlockedRemoveHeadList(&head, &lock), NULL);
    PushEntryList(&s, &x);
    PushEntryList(&s, &y);
    CHECK_PTR(PopEntryList(&s), &y);
    CHECK_PTR(PopEntryList(&s), &x);
    CHECK_PTR(PopEntryList(&s), NULL);
}

static void interlocked_operations_return_what_they_should(void) {
    LONG n = 5;
    LONG64 w = 1;
    SHORT s = 7;
    PVOID p = NULL;
    CHECK_EQ(InterlockedIncrement(&n), 6);
    CHECK_EQ(InterlockedDecrement(&n), 5);
    CHECK_EQ(InterlockedExchangeAdd(&n, 3), 5);
    CHECK_EQ(InterlockedAdd(&n, -1), 7);
    CHECK_EQ(InterlockedExchange(&n, 2), 7);
    CHECK_EQ(InterlockedCompareExchange(&n, 9, 3), 2);
    CHECK_EQ(InterlockedCompareExchange(&n, 9, 2), 2);
    CHECK_EQ(InterlockedOr(&n, 6), 9);
    CHECK_EQ(InterlockedAnd(&n, 3), 15);
    CHECK_EQ(_InterlockedExchangeAdd64(&w, 4), 1);
    CHECK_EQ(InterlockedCompareExchange64(&w, 0, 5), 5);
    CHECK_EQ(_InterlockedIncrement16(&s), 8);
    CHECK_PTR(InterlockedCompareExchangePointer(&p, &n, NULL), NULL);
    CHECK_PTR(InterlockedExchangePointer(&p, NULL), &n);
    CHECK_EQ(n, 3);
}

/* ---- run-time library ---- */

static void strings_are_bounded(void) {
    char a[5];
    SIZE_T len;
    CHECK_EQ(RtlStringCbPrintfA(a, sizeof a, "%d", 1234), STATUS_SUCCESS);
    CHECK_EQ(RtlStringCbPrintfA(a, sizeof a, "%d", 12345), STATUS_BUFFER_OVERFLOW);
    CHECK_STR(a, "1234");
    CHECK_EQ(RtlStringCbCopyA(a, 0, "x"), STATUS_INVALID_PARAMETER);
    CHECK_EQ(RtlStringCchCopyA(a, sizeof a, "ab"), STATUS_SUCCESS);
    CHECK_EQ(RtlStringCbCatA(a, sizeof a, "cd"), STATUS_SUCCESS);
    CHECK_EQ(RtlStringCbCatA(a, sizeof a, "e"), STATUS_BUFFER_OVERFLOW);
    CHECK_STR(a, "abcd");
    CHECK_EQ(RtlStringCbLengthA(a, sizeof a, &len), STATUS_SUCCESS);
    CHECK_EQ(len, 4);
    CHECK_EQ(RtlStringCbLengthA(a, 4, &len), STATUS_INVALID_PARAMETER);
    CHECK_EQ(RtlCompareMemory("abcx", "abcy", 4), 3);
    CHECK(RtlEqualMemory("abc", "abc", 3));

    UNICODE_STRING u, v;
    static const WCHAR text[] = { 'A', 'b', 'c', 0 }, other[] = { 'a', 'B', 'C', 0 };
    WCHAR room[8];
    RtlInitUnicodeString(&u, text);
    RtlInitUnicodeString(&v, other);
    CHECK_EQ(u.Length, 6);
    CHECK_EQ(u.MaximumLength, 8);
    CHECK(RtlEqualUnicodeString(&u, &v, TRUE));
    CHECK(!RtlEqualUnicodeString(&u, &v, FALSE));
    CHECK_EQ(RtlStringCbCopyUnicodeString(room, sizeof room, &u), STATUS_SUCCESS);
    CHECK_BYTES(room, text, sizeof text);
    CHECK_EQ(RtlStringCbCopyUnicodeString(room, 4, &u), STATUS_BUFFER_OVERFLOW);
    GUID g = { 0x01234567, 0x89AB, 0xCDEF, { 1, 2, 3, 4, 5, 6, 7, 8 } };
    CHECK_EQ(RtlStringFromGUID(&g, &u), STATUS_SUCCESS);
    CHECK_EQ(u.Length, 76);
    CHECK_EQ(u.Buffer[1], '0');
    CHECK_EQ(u.Buffer[8], '7');
    CHECK_EQ(u.Buffer[9], '-');
    RtlFreeUnicodeString(&u);
    CHECK_PTR(u.Buffer, NULL);
}

static void ipv4_addresses_are_parsed(void) {
    static const struct {
        const char *text;
        BOOLEAN strict;
        bool good;
        uint32_t address;
        uint16_t port;
    } rows[] = {
        { "10.0.0.1", TRUE, true, 0x0A000001, 0 },
        { "10.0.0.2:54321", TRUE, true, 0x0A000002, 54321 },
        { "255.255.255.255:1", TRUE, true, 0xFFFFFFFF, 1 },
        { "1.2.3", TRUE, false, 0, 0 },
        { "1.2.3", FALSE, true, 0x01020003, 0 },
        { "0x7f.1", FALSE, true, 0x7F000001, 0 },
        { "010.0.0.1", FALSE, true, 0x08000001, 0 },
        { "256.0.0.1", TRUE, false, 0, 0 },
        { "1.2.3.4.5", TRUE, false, 0, 0 },
        { "1.2.3.4:", TRUE, false, 0, 0 },
        { "1.2.3.4:0", TRUE, false, 0, 0 },
        { "1.2.3.4:65536", TRUE, false, 0, 0 },
        { "1.2.3.4x", TRUE, false, 0, 0 },
        { "", TRUE, false, 0, 0 },
    };
    for (size_t i = 0; i < RTL_NUMBER_OF(rows); i++) {
        IN_ADDR a;
        USHORT port;
        WCHAR wide[40];
        NTSTATUS st = RtlIpv4StringToAddressExA(rows[i].text, rows[i].strict, &a, &port);
        CHECK_EQ(st, rows[i].good ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER);
        for (size_t k = 0; k <= strlen(rows[i].text); k++)
            wide[k] = (WCHAR)rows[i].text[k];
        CHECK_EQ(RtlIpv4StringToAddressExW(wide, rows[i].strict, &a, &port), st);
        if (!rows[i].good) continue;
        CHECK_EQ(RtlUlongByteSwap(a.s_addr), rows[i].address);
        CHECK_EQ(RtlUshortByteSwap(port), rows[i].port);
    }
}

static void ipv6_addresses_are_parsed(void) {
    static const struct {
        const char *text;
        bool good;
        uint8_t first, last;
        ULONG scope;
        uint16_t port;
    } rows[] = {
        { "::1", true, 0, 1, 0, 0 },
        { "::", true, 0, 0, 0, 0 },
        { "fe80::1%3", true, 0xFE, 1, 3, 0 },
        { "[fe80::2%3]:80", true, 0xFE, 2, 3, 80 },
        { "1:2:3:4:5:6:7:8", true, 0, 8, 0, 0 },
        { "1:2:3:4:5:6:7::", true, 0, 0, 0, 0 },
        { "::ffff:1.2.3.4", true, 0, 4, 0, 0 },
        { "1:2:3:4:5:6:7", false, 0, 0, 0, 0 },
        { "1::2::3", false, 0, 0, 0, 0 },
        { ":1", false, 0, 0, 0, 0 },
        { "12345::", false, 0, 0, 0, 0 },
        { "[::1", false, 0, 0, 0, 0 },
        { "::1:80x", false, 0, 0, 0, 0 },
        { "::1.2.3.400", false, 0, 0, 0, 0 },
    };
    for (size_t i = 0; i < RTL_NUMBER_OF(rows); i++) {
        IN6_ADDR a;
        ULONG scope;
        USHORT port;
        NTSTATUS st = RtlIpv6StringToAddressExA(rows[i].text, &a, &scope, &port);
        if (st != (rows[i].good ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER))
            FAIL("%s: 0x%08X", rows[i].text, (unsigned)st);
        if (!rows[i].good) continue;
        CHECK_EQ(((uint8_t *)&a)[0], rows[i].first);
        CHECK_EQ(((uint8_t *)&a)[15], rows[i].last);
        CHECK_EQ(scope, rows[i].scope);
        CHECK_EQ(RtlUshortByteSwap(port), rows[i].port);
    }
}

static void interface_numbers_and_names_convert(void) {
    NET_LUID luid;
    NET_IFINDEX index;
    WCHAR name[64];
    NET_IFINDEX lo = 1; /* the loopback interface, on Linux and Windows */
    CHECK_EQ(ConvertInterfaceIndexToLuid(lo, &luid), STATUS_SUCCESS);
    CHECK_EQ(ConvertInterfaceLuidToIndex(&luid, &index), STATUS_SUCCESS);
    CHECK_EQ(index, lo);
    CHECK_EQ(ConvertInterfaceLuidToAlias(&luid, name, 64), STATUS_SUCCESS);
    CHECK_EQ(name[0], 'l');
    CHECK_EQ(name[2], 0);
    CHECK_EQ(ConvertInterfaceLuidToAlias(&luid, name, 2), STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(ConvertInterfaceIndexToLuid(0x7FFFFFF, &luid), STATUS_NOT_FOUND);
}

static void nothing_is_left(void) {
    CHECK_EQ(softndk_report_leaks(), 0);
    CHECK_EQ(softndk_violations(NULL), 0);
}

TEST_MAIN(TEST(notification_event_stays_set), TEST(synchronization_event_is_taken_by_one_wait),
          TEST(semaphore_counts_up_to_its_limit), TEST(timeouts_are_relative_and_absolute),
          TEST(all_waiters_of_a_notification_event_wake), TEST(thread_can_end_itself),
          TEST(spin_locks_raise_and_restore_irql), TEST(locks_exclude),
          TEST(rundown_protection_ends_when_released),
          TEST(pool_aligns_pages_and_zeroes_when_asked), TEST(mdl_describes_its_memory),
          TEST(work_items_run_at_passive_level), TEST(dpcs_and_timers_run_at_dispatch_level),
          TEST(lists_keep_their_order), TEST(interlocked_operations_return_what_they_should),
          TEST(strings_are_bounded), TEST(ipv4_addresses_are_parsed),
          TEST(ipv6_addresses_are_parsed), TEST(interface_numbers_and_names_convert),
          TEST(nothing_is_left))
