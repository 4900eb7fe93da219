/* SPDX-License-Identifier: MIT
 * softnd_km.h - the kernel routines that NDK consumers call, in user space.
 * Owns:    the prototypes; libsoftndk.so implements them. docs/ndk.md says what is simulated and
 *          how it differs from a kernel.
 * Threads: IRQL is a property of the calling thread. Each routine may be called at the IRQL at
 *          which the kernel allows it; the verifier reports the others.
 * Errors:  NTSTATUS, or NULL, as in the kernel.
 */
#ifndef SOFTND_KM_H
#define SOFTND_KM_H

#include <stdarg.h>
#include <string.h>
#include "softnd_kmtypes.h"

#ifndef SOFTND_API
#ifdef _WIN32
#define SOFTND_API __declspec(dllexport)
#else
#define SOFTND_API __attribute__((visibility("default")))
#endif
#endif
#include "softnd_kmseh.h"
#include "softnd_kmzw.h"
#ifndef DBG
#define DBG 1
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- IRQL ---- */

#define PASSIVE_LEVEL 0
#define APC_LEVEL 1
#define DISPATCH_LEVEL 2
#define HIGH_LEVEL 15

SOFTND_API KIRQL KeGetCurrentIrql(VOID);
/* Raising below, or lowering above, the present level is reported. */
SOFTND_API KIRQL KfRaiseIrql(KIRQL NewIrql);
SOFTND_API VOID KeLowerIrql(KIRQL NewIrql);
#define KeRaiseIrql(NewIrql, OldIrql) (*(OldIrql) = KfRaiseIrql(NewIrql))
#define KeRaiseIrqlToDpcLevel() KfRaiseIrql(DISPATCH_LEVEL)

/* ---- assertions and messages ---- */

SOFTND_API VOID softndk_assert_failed(const char *text, const char *file, int line);
SOFTND_API VOID softndk_paged_code(const char *file, int line);
#define PAGED_CODE() softndk_paged_code(__FILE__, __LINE__)
#if DBG
#define NT_ASSERT(e) ((e) ? (void)0 : softndk_assert_failed(#e, __FILE__, __LINE__))
#define NT_VERIFY(e) ((e) ? 1 : (softndk_assert_failed(#e, __FILE__, __LINE__), 0))
#else
#define NT_ASSERT(e) ((void)0)
#define NT_VERIFY(e) (e)
#endif
#define ASSERT(e) NT_ASSERT(e)
#define ASSERTMSG(m, e) NT_ASSERT(e)
#define NT_FRE_ASSERT(e) ((e) ? (void)0 : softndk_assert_failed(#e, __FILE__, __LINE__))
#define C_ASSERT(e) _Static_assert(e, #e)

/* To the runner's standard error, one call one piece. */
SOFTND_API ULONG DbgPrint(const char *Format, ...) __attribute__((format(printf, 1, 2)));
SOFTND_API ULONG DbgPrintEx(ULONG ComponentId, ULONG Level, const char *Format, ...)
    __attribute__((format(printf, 3, 4)));
#define KdPrint(args) DbgPrint args
#define KdPrintEx(args) DbgPrintEx args
#define DPFLTR_IHVDRIVER_ID 77
#define DPFLTR_DEFAULT_ID 101
#define DPFLTR_ERROR_LEVEL 0
#define DPFLTR_WARNING_LEVEL 1
#define DPFLTR_TRACE_LEVEL 2
#define DPFLTR_INFO_LEVEL 3
SOFTND_API DECLSPEC_NORETURN VOID KeBugCheckEx(ULONG Code, ULONG_PTR P1, ULONG_PTR P2, ULONG_PTR P3,
                                               ULONG_PTR P4);
#define KeBugCheck(Code) KeBugCheckEx(Code, 0, 0, 0, 0)

/* ---- small things ---- */

#define CONTAINING_RECORD(address, type, field) ((type *)((PCHAR)(address)-offsetof(type, field)))
#define FIELD_OFFSET(type, field) ((LONG)offsetof(type, field))
#define RTL_NUMBER_OF(a) (sizeof(a) / sizeof((a)[0]))
#ifndef ARRAYSIZE
#define ARRAYSIZE(a) RTL_NUMBER_OF(a)
#endif
#define ARGUMENT_PRESENT(p) ((p) != NULL)
#define DBG_UNREFERENCED_PARAMETER(p) ((void)(p))
#define UNREFERENCED_LOCAL_VARIABLE(p) ((void)(p))
#define PAGE_ALIGN(va) ((PVOID)((ULONG_PTR)(va) & ~(ULONG_PTR)(PAGE_SIZE - 1)))
#define BYTE_OFFSET(va) ((ULONG)((ULONG_PTR)(va) & (PAGE_SIZE - 1)))
#define ROUND_TO_PAGES(n) (((ULONG_PTR)(n) + PAGE_SIZE - 1) & ~(ULONG_PTR)(PAGE_SIZE - 1))
#define BYTES_TO_PAGES(n) ((ULONG)(((ULONG_PTR)(n) + PAGE_SIZE - 1) >> PAGE_SHIFT))
#define ADDRESS_AND_SIZE_TO_SPAN_PAGES(va, n)                                                      \
    ((ULONG)(((ULONG_PTR)BYTE_OFFSET(va) + (ULONG_PTR)(n) + PAGE_SIZE - 1) >> PAGE_SHIFT))
#ifndef __cplusplus
#ifndef min
#define min(a, b) (((a) < (b)) ? (a) : (b))
#endif
#ifndef max
#define max(a, b) (((a) > (b)) ? (a) : (b))
#endif
#endif

/* ---- lists ---- */

static inline VOID InitializeListHead(PLIST_ENTRY head) {
    head->Flink = head->Blink = head;
}
static inline BOOLEAN IsListEmpty(const LIST_ENTRY *head) {
    return (BOOLEAN)(head->Flink == head);
}
/* TRUE if the list is empty afterwards. */
static inline BOOLEAN RemoveEntryList(PLIST_ENTRY entry) {
    PLIST_ENTRY next = entry->Flink, prev = entry->Blink;
    prev->Flink = next;
    next->Blink = prev;
    return (BOOLEAN)(next == prev);
}
static inline PLIST_ENTRY RemoveHeadList(PLIST_ENTRY head) {
    PLIST_ENTRY entry = head->Flink;
    RemoveEntryList(entry);
    return entry;
}
static inline PLIST_ENTRY RemoveTailList(PLIST_ENTRY head) {
    PLIST_ENTRY entry = head->Blink;
    RemoveEntryList(entry);
    return entry;
}
static inline VOID InsertTailList(PLIST_ENTRY head, PLIST_ENTRY entry) {
    entry->Flink = head;
    entry->Blink = head->Blink;
    head->Blink->Flink = entry;
    head->Blink = entry;
}
static inline VOID InsertHeadList(PLIST_ENTRY head, PLIST_ENTRY entry) {
    entry->Blink = head;
    entry->Flink = head->Flink;
    head->Flink->Blink = entry;
    head->Flink = entry;
}
static inline VOID PushEntryList(PSINGLE_LIST_ENTRY head, PSINGLE_LIST_ENTRY entry) {
    entry->Next = head->Next;
    head->Next = entry;
}
static inline PSINGLE_LIST_ENTRY PopEntryList(PSINGLE_LIST_ENTRY head) {
    PSINGLE_LIST_ENTRY first = head->Next;
    if (first) head->Next = first->Next;
    return first;
}
SOFTND_API PLIST_ENTRY ExInterlockedInsertTailList(PLIST_ENTRY Head, PLIST_ENTRY Entry,
                                                   PKSPIN_LOCK Lock);
SOFTND_API PLIST_ENTRY ExInterlockedRemoveHeadList(PLIST_ENTRY Head, PKSPIN_LOCK Lock);

/* ---- interlocked operations: full barriers ---- */

/* Increment, Decrement and Add return the new value, ExchangeAdd the old one. */
#define SOFTND_INTERLOCKED(suffix, type)                                                           \
    static inline type InterlockedIncrement##suffix(volatile type *t) {                            \
        return (type)(__atomic_add_fetch(t, 1, __ATOMIC_SEQ_CST));                                 \
    }                                                                                              \
    static inline type InterlockedDecrement##suffix(volatile type *t) {                            \
        return (type)(__atomic_sub_fetch(t, 1, __ATOMIC_SEQ_CST));                                 \
    }                                                                                              \
    static inline type InterlockedAdd##suffix(volatile type *t, type v) {                          \
        return (type)(__atomic_add_fetch(t, v, __ATOMIC_SEQ_CST));                                 \
    }                                                                                              \
    static inline type InterlockedExchangeAdd##suffix(volatile type *t, type v) {                  \
        return (type)(__atomic_fetch_add(t, v, __ATOMIC_SEQ_CST));                                 \
    }
SOFTND_INTERLOCKED(16, SHORT)
SOFTND_INTERLOCKED(, LONG)
SOFTND_INTERLOCKED(64, LONG64)
#undef SOFTND_INTERLOCKED
static inline LONG InterlockedExchange(volatile LONG *t, LONG v) {
    return __atomic_exchange_n(t, v, __ATOMIC_SEQ_CST);
}
static inline LONG64 InterlockedExchange64(volatile LONG64 *t, LONG64 v) {
    return __atomic_exchange_n(t, v, __ATOMIC_SEQ_CST);
}
static inline PVOID InterlockedExchangePointer(PVOID volatile *t, PVOID v) {
    return __atomic_exchange_n(t, v, __ATOMIC_SEQ_CST);
}
static inline LONG InterlockedCompareExchange(volatile LONG *t, LONG v, LONG comparand) {
    __atomic_compare_exchange_n(t, &comparand, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return comparand;
}
static inline SHORT InterlockedCompareExchange16(volatile SHORT *t, SHORT v, SHORT comparand) {
    __atomic_compare_exchange_n(t, &comparand, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return comparand;
}
static inline LONG64 InterlockedCompareExchange64(volatile LONG64 *t, LONG64 v, LONG64 comparand) {
    __atomic_compare_exchange_n(t, &comparand, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return comparand;
}
static inline PVOID InterlockedCompareExchangePointer(PVOID volatile *t, PVOID v, PVOID comparand) {
    __atomic_compare_exchange_n(t, &comparand, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return comparand;
}
static inline LONG InterlockedOr(volatile LONG *t, LONG v) {
    return __atomic_fetch_or(t, v, __ATOMIC_SEQ_CST);
}
static inline LONG InterlockedAnd(volatile LONG *t, LONG v) {
    return __atomic_fetch_and(t, v, __ATOMIC_SEQ_CST);
}
#define _InterlockedIncrement InterlockedIncrement
#define _InterlockedDecrement InterlockedDecrement
#define _InterlockedExchange InterlockedExchange
#define _InterlockedExchangeAdd InterlockedExchangeAdd
#define _InterlockedOr InterlockedOr
#define _InterlockedAnd InterlockedAnd
#define _InterlockedCompareExchange InterlockedCompareExchange
#define _InterlockedIncrement16 InterlockedIncrement16
#define _InterlockedDecrement16 InterlockedDecrement16
#define _InterlockedCompareExchange16 InterlockedCompareExchange16
#define _InterlockedIncrement64 InterlockedIncrement64
#define _InterlockedDecrement64 InterlockedDecrement64
#define _InterlockedExchange64 InterlockedExchange64
#define _InterlockedExchangeAdd64 InterlockedExchangeAdd64
#define _InterlockedCompareExchange64 InterlockedCompareExchange64
#define _InterlockedExchangePointer InterlockedExchangePointer
#define _InterlockedCompareExchangePointer InterlockedCompareExchangePointer
#define KeMemoryBarrier() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define MemoryBarrier() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define KeMemoryBarrierWithoutFence() __asm__ volatile("" ::: "memory")
#define YieldProcessor() softndk_yield_processor()
SOFTND_API VOID softndk_yield_processor(VOID);

/* ---- events, semaphores, timers, waits ---- */

SOFTND_API VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State);
/* All three return the state before. */
SOFTND_API LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait);
SOFTND_API LONG KeResetEvent(PRKEVENT Event);
SOFTND_API LONG KeReadStateEvent(PRKEVENT Event);
SOFTND_API VOID KeClearEvent(PRKEVENT Event);
SOFTND_API VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit);
SOFTND_API LONG KeReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment,
                                   BOOLEAN Wait);
/* STATUS_SUCCESS or STATUS_TIMEOUT. Timeout: NULL for ever; 0 only looks; negative relative, in
 * 100 ns; positive absolute system time. Above APC_LEVEL only with a timeout of 0. */
SOFTND_API NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason,
                                          KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                          PLARGE_INTEGER Timeout);
/* WaitAny: STATUS_WAIT_0 and the index of the object that ended the wait. WaitAll takes all objects
 * at once or none. More than THREAD_WAIT_OBJECTS need WaitBlockArray; more than
 * MAXIMUM_WAIT_OBJECTS are a bug check. */
SOFTND_API NTSTATUS KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
                                             KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                             BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                             PKWAIT_BLOCK WaitBlockArray);
/* Owned by a thread, which may acquire it again, by waiting. */
SOFTND_API VOID KeInitializeMutex(PRKMUTEX Mutex, ULONG Level);
/* The state before. Raises STATUS_MUTANT_NOT_OWNED in a thread that does not own it. */
SOFTND_API LONG KeReleaseMutex(PRKMUTEX Mutex, BOOLEAN Wait);
SOFTND_API LONG KeReadStateMutex(PRKMUTEX Mutex);
#define KeWaitForMutexObject KeWaitForSingleObject
SOFTND_API NTSTATUS KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                           PLARGE_INTEGER Interval);
SOFTND_API VOID KeInitializeTimerEx(PKTIMER Timer, TIMER_TYPE Type);
#define KeInitializeTimer(t) KeInitializeTimerEx(t, NotificationTimer)
/* TRUE if it was set already. */
SOFTND_API BOOLEAN KeSetTimerEx(PKTIMER Timer, LARGE_INTEGER DueTime, LONG Period, PKDPC Dpc);
#define KeSetTimer(t, due, dpc) KeSetTimerEx(t, due, 0, dpc)
SOFTND_API BOOLEAN KeCancelTimer(PKTIMER Timer);
SOFTND_API VOID KeQuerySystemTime(PLARGE_INTEGER CurrentTime);
#define KeQuerySystemTimePrecise KeQuerySystemTime
SOFTND_API ULONGLONG KeQueryInterruptTime(VOID);
SOFTND_API LARGE_INTEGER KeQueryPerformanceCounter(PLARGE_INTEGER Frequency);
SOFTND_API VOID KeStallExecutionProcessor(ULONG MicroSeconds);

/* ---- spin locks, rundown protection, fast mutexes ---- */

#define IO_NO_INCREMENT 0
SOFTND_API VOID KeInitializeSpinLock(PKSPIN_LOCK SpinLock);
SOFTND_API KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock);
SOFTND_API VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql);
#define KeAcquireSpinLock(l, old) (*(old) = KeAcquireSpinLockRaiseToDpc(l))
SOFTND_API VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock);
SOFTND_API VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock);
SOFTND_API VOID KeAcquireInStackQueuedSpinLock(PKSPIN_LOCK SpinLock,
                                               PKLOCK_QUEUE_HANDLE LockHandle);
SOFTND_API VOID KeReleaseInStackQueuedSpinLock(PKLOCK_QUEUE_HANDLE LockHandle);
SOFTND_API VOID KeAcquireInStackQueuedSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock,
                                                         PKLOCK_QUEUE_HANDLE LockHandle);
SOFTND_API VOID KeReleaseInStackQueuedSpinLockFromDpcLevel(PKLOCK_QUEUE_HANDLE LockHandle);
SOFTND_API VOID ExInitializeRundownProtection(PEX_RUNDOWN_REF RunRef);
SOFTND_API VOID ExReInitializeRundownProtection(PEX_RUNDOWN_REF RunRef);
/* FALSE once somebody waits for the release. */
SOFTND_API BOOLEAN ExAcquireRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count);
SOFTND_API VOID ExReleaseRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count);
#define ExAcquireRundownProtection(r) ExAcquireRundownProtectionEx(r, 1)
#define ExReleaseRundownProtection(r) ExReleaseRundownProtectionEx(r, 1)
SOFTND_API VOID ExWaitForRundownProtectionRelease(PEX_RUNDOWN_REF RunRef);
SOFTND_API VOID ExInitializeFastMutex(PFAST_MUTEX FastMutex);
SOFTND_API VOID ExAcquireFastMutex(PFAST_MUTEX FastMutex);
SOFTND_API VOID ExReleaseFastMutex(PFAST_MUTEX FastMutex);
/* FALSE if it is owned. */
SOFTND_API BOOLEAN ExTryToAcquireFastMutex(PFAST_MUTEX FastMutex);
#define KeInitializeGuardedMutex ExInitializeFastMutex
#define KeAcquireGuardedMutex ExAcquireFastMutex
#define KeReleaseGuardedMutex ExReleaseFastMutex
#define KeTryToAcquireGuardedMutex ExTryToAcquireFastMutex
/* Without APCs there is nothing to keep out. */
#define KeEnterCriticalRegion() ((void)0)
#define KeLeaveCriticalRegion() ((void)0)
#define KeEnterGuardedRegion() ((void)0)
#define KeLeaveGuardedRegion() ((void)0)

/* Many readers or one writer. A waiting writer goes before new readers; a thread that owns the
 * resource may acquire it again, shared also while it owns it exclusively. */
SOFTND_API NTSTATUS ExInitializeResourceLite(PERESOURCE Resource);
SOFTND_API NTSTATUS ExDeleteResourceLite(PERESOURCE Resource);
/* FALSE: Wait is FALSE and it cannot be had now. */
SOFTND_API BOOLEAN ExAcquireResourceExclusiveLite(PERESOURCE Resource, BOOLEAN Wait);
SOFTND_API BOOLEAN ExAcquireResourceSharedLite(PERESOURCE Resource, BOOLEAN Wait);
SOFTND_API VOID ExReleaseResourceLite(PERESOURCE Resource);
SOFTND_API VOID ExConvertExclusiveToSharedLite(PERESOURCE Resource);
SOFTND_API BOOLEAN ExIsResourceAcquiredExclusiveLite(PERESOURCE Resource);
/* How often this thread acquired it. */
SOFTND_API ULONG ExIsResourceAcquiredSharedLite(PERESOURCE Resource);

/* ---- pools ---- */

/* Memory of a page or more starts at a page. Tracked by tag; what is left is reported. */
SOFTND_API PVOID ExAllocatePoolWithTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag);
SOFTND_API PVOID ExAllocatePoolWithTagPriority(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag,
                                               EX_POOL_PRIORITY Priority);
SOFTND_API PVOID ExAllocatePoolZero(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag);
/* Zeroed unless POOL_FLAG_UNINITIALIZED. */
SOFTND_API PVOID ExAllocatePool2(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag);
SOFTND_API PVOID ExAllocatePool3(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag,
                                 PCPOOL_EXTENDED_PARAMETER ExtendedParameters, ULONG Count);
SOFTND_API VOID ExFreePoolWithTag(PVOID P, ULONG Tag);
SOFTND_API VOID ExFreePool(PVOID P);
SOFTND_API VOID ExFreePool2(PVOID P, ULONG Tag, PCPOOL_EXTENDED_PARAMETER ExtendedParameters,
                            ULONG Count);

/* Lookaside lists keep nothing back here: each allocation is one from the pool. */
typedef struct _NPAGED_LOOKASIDE_LIST {
    SIZE_T Size;
    ULONG Tag;
    POOL_TYPE Type;
} NPAGED_LOOKASIDE_LIST, *PNPAGED_LOOKASIDE_LIST, LOOKASIDE_LIST_EX, *PLOOKASIDE_LIST_EX;
SOFTND_API VOID ExInitializeNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PVOID Allocate,
                                                PVOID Free, ULONG Flags, SIZE_T Size, ULONG Tag,
                                                USHORT Depth);
SOFTND_API PVOID ExAllocateFromNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside);
SOFTND_API VOID ExFreeToNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry);
SOFTND_API VOID ExDeleteNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside);
SOFTND_API NTSTATUS ExInitializeLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PVOID Allocate,
                                                PVOID Free, POOL_TYPE PoolType, ULONG Flags,
                                                SIZE_T Size, ULONG Tag, USHORT Depth);
#define ExAllocateFromLookasideListEx ExAllocateFromNPagedLookasideList
#define ExFreeToLookasideListEx ExFreeToNPagedLookasideList
#define ExDeleteLookasideListEx ExDeleteNPagedLookasideList
typedef NPAGED_LOOKASIDE_LIST PAGED_LOOKASIDE_LIST, *PPAGED_LOOKASIDE_LIST;
#define ExInitializePagedLookasideList ExInitializeNPagedLookasideList
#define ExAllocateFromPagedLookasideList ExAllocateFromNPagedLookasideList
#define ExFreeToPagedLookasideList ExFreeToNPagedLookasideList
#define ExDeletePagedLookasideList ExDeleteNPagedLookasideList

/* ---- MDLs ---- */

SOFTND_API PMDL IoAllocateMdl(PVOID VirtualAddress, ULONG Length, BOOLEAN SecondaryBuffer,
                              BOOLEAN ChargeQuota, PIRP Irp);
SOFTND_API VOID IoFreeMdl(PMDL Mdl);
SOFTND_API VOID MmBuildMdlForNonPagedPool(PMDL Mdl);
/* Raises STATUS_ACCESS_VIOLATION if the memory is not there, or may not be written for
 * IoWriteAccess and IoModifyAccess. */
SOFTND_API VOID MmProbeAndLockPages(PMDL Mdl, KPROCESSOR_MODE AccessMode, LOCK_OPERATION Operation);
SOFTND_API VOID MmUnlockPages(PMDL Mdl);
SOFTND_API VOID IoBuildPartialMdl(PMDL SourceMdl, PMDL TargetMdl, PVOID VirtualAddress,
                                  ULONG Length);
SOFTND_API PVOID MmMapLockedPagesSpecifyCache(PMDL Mdl, KPROCESSOR_MODE AccessMode,
                                              MEMORY_CACHING_TYPE CacheType, PVOID RequestedAddress,
                                              ULONG BugCheckOnFailure, ULONG Priority);
#define MmGetMdlVirtualAddress(m) ((PVOID)((PCHAR)(m)->StartVa + (m)->ByteOffset))
#define MmGetMdlByteCount(m) ((m)->ByteCount)
#define MmGetMdlByteOffset(m) ((m)->ByteOffset)
#define MmGetMdlPfnArray(m) ((PPFN_NUMBER)((m) + 1))
#define MmGetSystemAddressForMdlSafe(m, priority)                                                  \
    (((m)->MdlFlags & (MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL))                     \
         ? (m)->MappedSystemVa                                                                     \
         : MmMapLockedPagesSpecifyCache(m, KernelMode, MmCached, NULL, FALSE, priority))
#define MmInitializeMdl(m, va, n)                                                                  \
    ((m)->Next = NULL,                                                                             \
     (m)->Size =                                                                                   \
         (CSHORT)(sizeof(MDL) + sizeof(PFN_NUMBER) * ADDRESS_AND_SIZE_TO_SPAN_PAGES(va, n)),       \
     (m)->MdlFlags = 0, (m)->StartVa = PAGE_ALIGN(va), (m)->ByteOffset = BYTE_OFFSET(va),          \
     (m)->ByteCount = (ULONG)(n))
#define KeFlushIoBuffers(m, read, dma) ((void)(m))
/* The simulated physical address; differs from the virtual and from every logical one. */
SOFTND_API PHYSICAL_ADDRESS MmGetPhysicalAddress(PVOID BaseAddress);

/* ---- work items, DPCs, threads ---- */

SOFTND_API PIO_WORKITEM IoAllocateWorkItem(PDEVICE_OBJECT DeviceObject);
SOFTND_API VOID IoFreeWorkItem(PIO_WORKITEM IoWorkItem);
SOFTND_API VOID IoQueueWorkItem(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE WorkerRoutine,
                                WORK_QUEUE_TYPE QueueType, PVOID Context);
SOFTND_API VOID IoQueueWorkItemEx(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE_EX WorkerRoutine,
                                  WORK_QUEUE_TYPE QueueType, PVOID Context);
#define ExInitializeWorkItem(item, routine, context)                                               \
    ((item)->WorkerRoutine = (routine), (item)->Parameter = (context), (item)->List.Flink = NULL)
SOFTND_API VOID ExQueueWorkItem(PWORK_QUEUE_ITEM WorkItem, WORK_QUEUE_TYPE QueueType);
SOFTND_API VOID KeInitializeDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine,
                                PVOID DeferredContext);
/* FALSE if it is queued already. */
SOFTND_API BOOLEAN KeInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2);
SOFTND_API BOOLEAN KeRemoveQueueDpc(PRKDPC Dpc);
SOFTND_API VOID KeFlushQueuedDpcs(VOID);
#define THREAD_ALL_ACCESS 0x1FFFFF
SOFTND_API NTSTATUS PsCreateSystemThread(PHANDLE ThreadHandle, ULONG DesiredAccess,
                                         POBJECT_ATTRIBUTES ObjectAttributes, HANDLE ProcessHandle,
                                         PVOID ClientId, PKSTART_ROUTINE StartRoutine,
                                         PVOID StartContext);
SOFTND_API NTSTATUS PsTerminateSystemThread(NTSTATUS ExitStatus);
/* The thread object of a handle of PsCreateSystemThread, to be waited for. */
SOFTND_API NTSTATUS ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess,
                                              PVOID ObjectType, KPROCESSOR_MODE AccessMode,
                                              PVOID *Object, PVOID HandleInformation);
SOFTND_API VOID ObDereferenceObject(PVOID Object);
/* A thread, a key or a file. STATUS_INVALID_HANDLE. */
SOFTND_API NTSTATUS ZwClose(HANDLE Handle);
SOFTND_API PKTHREAD KeGetCurrentThread(VOID);
#define PsGetCurrentThread() ((PETHREAD)KeGetCurrentThread())
SOFTND_API VOID IoCompleteRequest(PIRP Irp, CCHAR PriorityBoost);

SOFTND_API USHORT KeGetCurrentNodeNumber(VOID);
SOFTND_API USHORT KeQueryHighestNodeNumber(VOID);
SOFTND_API VOID KeQueryNodeActiveAffinity(USHORT NodeNumber, GROUP_AFFINITY *Affinity,
                                          PUSHORT Count);
SOFTND_API VOID KeSetSystemGroupAffinityThread(GROUP_AFFINITY *Affinity, GROUP_AFFINITY *Previous);
SOFTND_API VOID KeRevertToUserGroupAffinityThread(GROUP_AFFINITY *Previous);
SOFTND_API ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber);
SOFTND_API ULONG KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER Number);
#define ALL_PROCESSOR_GROUPS 0xffff

/* ---- run-time library ---- */

#define RtlZeroMemory(d, n) memset((d), 0, (n))
#define RtlFillMemory(d, n, v) memset((d), (v), (n))
#define RtlCopyMemory(d, s, n) memcpy((d), (s), (n))
#define RtlMoveMemory(d, s, n) memmove((d), (s), (n))
#define RtlEqualMemory(a, b, n) (memcmp((a), (b), (n)) == 0)
/* How many bytes are equal before the first difference. */
SOFTND_API SIZE_T RtlCompareMemory(const VOID *a, const VOID *b, SIZE_T n);
SOFTND_API PVOID RtlSecureZeroMemory(PVOID p, SIZE_T n);
#define RtlUshortByteSwap(x) __builtin_bswap16(x)
#define RtlUlongByteSwap(x) __builtin_bswap32(x)
#define RtlUlonglongByteSwap(x) __builtin_bswap64(x)
SOFTND_API VOID RtlInitUnicodeString(PUNICODE_STRING Destination, PCWSTR Source);
SOFTND_API VOID RtlInitAnsiString(PANSI_STRING Destination, PCSTR Source);
SOFTND_API VOID RtlCopyUnicodeString(PUNICODE_STRING Destination, PCUNICODE_STRING Source);
SOFTND_API BOOLEAN RtlEqualUnicodeString(PCUNICODE_STRING a, PCUNICODE_STRING b, BOOLEAN NoCase);
/* Allocates the buffer; to be freed with RtlFreeUnicodeString. "{xxxxxxxx-xxxx-...}". */
SOFTND_API NTSTATUS RtlStringFromGUID(const GUID *Guid, PUNICODE_STRING String);
SOFTND_API VOID RtlFreeUnicodeString(PUNICODE_STRING String);
/* "a.b.c.d" or "a.b.c.d:port", "[v6%scope]:port". Port in network order, 0 if there is none. */
SOFTND_API NTSTATUS RtlIpv4StringToAddressExA(PCSTR String, BOOLEAN Strict, IN_ADDR *Address,
                                              PUSHORT Port);
SOFTND_API NTSTATUS RtlIpv4StringToAddressExW(PCWSTR String, BOOLEAN Strict, IN_ADDR *Address,
                                              PUSHORT Port);
SOFTND_API NTSTATUS RtlIpv6StringToAddressExA(PCSTR String, IN6_ADDR *Address, PULONG ScopeId,
                                              PUSHORT Port);
SOFTND_API NTSTATUS RtlIpv6StringToAddressExW(PCWSTR String, IN6_ADDR *Address, PULONG ScopeId,
                                              PUSHORT Port);

#define IoGetRemainingStackSize() ((ULONG_PTR)65536)

#ifdef __cplusplus
}
#endif

#endif
