/* SPDX-License-Identifier: MIT
 *
 * A spin lock is one word: the owner's thread number, 0 when free. A waiter spins shortly and then
 * gives its time slice away, for the owner may be a preempted thread. Rundown protection counts in
 * steps of two; bit 0 says that somebody waits for the end.
 */
#include "ndk/kenv/kenv.h"
#include "ndk/verify/verify.h"
#include "os/prim/thread.h"

enum { SPINS = 100 };

VOID KeInitializeSpinLock(PKSPIN_LOCK lock) {
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

static void acquire(PKSPIN_LOCK lock, const char *call) {
    ULONG_PTR self = (ULONG_PTR)os_thread_self();
    if (ndk_verifying() && __atomic_load_n(lock, __ATOMIC_RELAXED) == self)
        ndk_violation(NDK_RULE_spin_lock, call, lock,
                      "this thread holds the lock already; it would spin for ever");
    for (uint32_t i = 0;; i++) {
        ULONG_PTR free = 0;
        if (__atomic_compare_exchange_n(lock, &free, self, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return;
        if (free == self && ndk_verifying()) return; /* reported; go on instead of hanging */
        if (i < SPINS)
            os_cpu_relax();
        else
            os_thread_yield();
    }
}

static void release(PKSPIN_LOCK lock, const char *call) {
    if (ndk_verifying() && __atomic_load_n(lock, __ATOMIC_RELAXED) != (ULONG_PTR)os_thread_self()) {
        ndk_violation(NDK_RULE_spin_lock, call, lock, "this thread does not hold the lock");
        return;
    }
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

static void need_dispatch(const char *call) {
    if (ndk_verifying() && KeGetCurrentIrql() < DISPATCH_LEVEL)
        ndk_violation(NDK_RULE_irql, call, NULL, "called at IRQL %u, needs DISPATCH_LEVEL",
                      KeGetCurrentIrql());
}

KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK lock) {
    if (ndk_verifying()) ke_call_enter("KeAcquireSpinLock", DISPATCH_LEVEL);
    KIRQL old = KfRaiseIrql(DISPATCH_LEVEL);
    acquire(lock, "KeAcquireSpinLock");
    return old;
}

VOID KeReleaseSpinLock(PKSPIN_LOCK lock, KIRQL irql) {
    need_dispatch("KeReleaseSpinLock");
    release(lock, "KeReleaseSpinLock");
    KeLowerIrql(irql);
}

VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK lock) {
    need_dispatch("KeAcquireSpinLockAtDpcLevel");
    acquire(lock, "KeAcquireSpinLockAtDpcLevel");
}

VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK lock) {
    need_dispatch("KeReleaseSpinLockFromDpcLevel");
    release(lock, "KeReleaseSpinLockFromDpcLevel");
}

VOID KeAcquireInStackQueuedSpinLock(PKSPIN_LOCK lock, PKLOCK_QUEUE_HANDLE handle) {
    handle->OldIrql = KeAcquireSpinLockRaiseToDpc(lock);
    handle->LockQueue.Next = NULL;
    handle->LockQueue.Lock = lock;
}

VOID KeReleaseInStackQueuedSpinLock(PKLOCK_QUEUE_HANDLE handle) {
    KeReleaseSpinLock(handle->LockQueue.Lock, handle->OldIrql);
}

VOID KeAcquireInStackQueuedSpinLockAtDpcLevel(PKSPIN_LOCK lock, PKLOCK_QUEUE_HANDLE handle) {
    KeAcquireSpinLockAtDpcLevel(lock);
    handle->LockQueue.Next = NULL;
    handle->LockQueue.Lock = lock;
    handle->OldIrql = KeGetCurrentIrql();
}

VOID KeReleaseInStackQueuedSpinLockFromDpcLevel(PKLOCK_QUEUE_HANDLE handle) {
    KeReleaseSpinLockFromDpcLevel(handle->LockQueue.Lock);
}

PLIST_ENTRY ExInterlockedInsertTailList(PLIST_ENTRY head, PLIST_ENTRY entry, PKSPIN_LOCK lock) {
    KIRQL old = KeAcquireSpinLockRaiseToDpc(lock);
    PLIST_ENTRY last = IsListEmpty(head) ? NULL : head->Blink;
    InsertTailList(head, entry);
    KeReleaseSpinLock(lock, old);
    return last;
}

PLIST_ENTRY ExInterlockedRemoveHeadList(PLIST_ENTRY head, PKSPIN_LOCK lock) {
    KIRQL old = KeAcquireSpinLockRaiseToDpc(lock);
    PLIST_ENTRY first = IsListEmpty(head) ? NULL : RemoveHeadList(head);
    KeReleaseSpinLock(lock, old);
    return first;
}

/* ---- rundown protection ---- */

VOID ExInitializeRundownProtection(PEX_RUNDOWN_REF ref) {
    __atomic_store_n(&ref->Count, 0, __ATOMIC_RELEASE);
}

VOID ExReInitializeRundownProtection(PEX_RUNDOWN_REF ref) {
    ExInitializeRundownProtection(ref);
}

BOOLEAN ExAcquireRundownProtectionEx(PEX_RUNDOWN_REF ref, ULONG count) {
    ULONG_PTR now = __atomic_load_n(&ref->Count, __ATOMIC_ACQUIRE);
    while (!(now & 1))
        if (__atomic_compare_exchange_n(&ref->Count, &now, now + 2 * (ULONG_PTR)count, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return TRUE;
    return FALSE;
}

VOID ExReleaseRundownProtectionEx(PEX_RUNDOWN_REF ref, ULONG count) {
    __atomic_fetch_sub(&ref->Count, 2 * (ULONG_PTR)count, __ATOMIC_ACQ_REL);
}

VOID ExWaitForRundownProtectionRelease(PEX_RUNDOWN_REF ref) {
    if (ndk_verifying()) ke_call_enter("ExWaitForRundownProtectionRelease", APC_LEVEL);
    __atomic_fetch_or(&ref->Count, 1, __ATOMIC_ACQ_REL);
    LARGE_INTEGER step = { .QuadPart = -1000 }; /* 100 us */
    for (uint32_t i = 0; __atomic_load_n(&ref->Count, __ATOMIC_ACQUIRE) != 1; i++) {
        if (i < SPINS)
            os_thread_yield();
        else
            KeDelayExecutionThread(KernelMode, FALSE, &step);
    }
}

/* ---- fast mutexes ---- */

VOID ExInitializeFastMutex(PFAST_MUTEX m) {
    m->Count = 1;
    m->Owner = NULL;
    m->Contention = 0;
    KeInitializeEvent(&m->Event, SynchronizationEvent, TRUE);
}

VOID ExAcquireFastMutex(PFAST_MUTEX m) {
    if (ndk_verifying()) {
        ke_call_enter("ExAcquireFastMutex", APC_LEVEL);
        if (__atomic_load_n(&m->Owner, __ATOMIC_RELAXED) == (PVOID)KeGetCurrentThread())
            ndk_violation(NDK_RULE_spin_lock, "ExAcquireFastMutex", m,
                          "this thread owns the mutex already; it would wait for ever");
    }
    KeWaitForSingleObject(&m->Event, Executive, KernelMode, FALSE, NULL);
    __atomic_store_n(&m->Owner, (PVOID)KeGetCurrentThread(), __ATOMIC_RELAXED);
    m->OldIrql = KeGetCurrentIrql();
    KfRaiseIrql(APC_LEVEL);
}

BOOLEAN ExTryToAcquireFastMutex(PFAST_MUTEX m) {
    LARGE_INTEGER now = { .QuadPart = 0 };
    if (ndk_verifying()) ke_call_enter("ExTryToAcquireFastMutex", APC_LEVEL);
    if (KeWaitForSingleObject(&m->Event, Executive, KernelMode, FALSE, &now) != STATUS_SUCCESS)
        return FALSE;
    __atomic_store_n(&m->Owner, (PVOID)KeGetCurrentThread(), __ATOMIC_RELAXED);
    m->OldIrql = KeGetCurrentIrql();
    KfRaiseIrql(APC_LEVEL);
    return TRUE;
}

VOID ExReleaseFastMutex(PFAST_MUTEX m) {
    KIRQL old = (KIRQL)m->OldIrql;
    if (ndk_verifying() &&
        __atomic_load_n(&m->Owner, __ATOMIC_RELAXED) != (PVOID)KeGetCurrentThread())
        ndk_violation(NDK_RULE_spin_lock, "ExReleaseFastMutex", m,
                      "this thread does not own the mutex");
    __atomic_store_n(&m->Owner, NULL, __ATOMIC_RELAXED);
    KeLowerIrql(old);
    KeSetEvent(&m->Event, 0, FALSE);
}
