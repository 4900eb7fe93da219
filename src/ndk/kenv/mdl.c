/* SPDX-License-Identifier: MIT
 *
 * MDLs have page numbers of a made-up physical memory: the virtual page number with its bits
 * turned, so that it can be taken for nothing else.
 */
#include <stdlib.h>
#include "ndk/kenv/kenv.h"
#include "ndk/kenv/tracked.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"

#define PFN_TURN 0x5A5A5ull

static void init(void);
static struct ke_tracker mdls = { .once = OS_ONCE_INIT, .init = init };
static void init(void) {
    ke_tracker_init(&mdls);
}

static PFN_NUMBER pfn_of(ULONG_PTR va) {
    return ((va >> PAGE_SHIFT) ^ PFN_TURN) & 0xFFFFFFFFFull;
}

PHYSICAL_ADDRESS MmGetPhysicalAddress(PVOID va) {
    PHYSICAL_ADDRESS pa;
    pa.QuadPart = (LONGLONG)(pfn_of((ULONG_PTR)va) << PAGE_SHIFT | BYTE_OFFSET(va));
    return pa;
}

static void fill_pfns(PMDL m) {
    PFN_NUMBER *pfn = MmGetMdlPfnArray(m);
    ULONG pages = ADDRESS_AND_SIZE_TO_SPAN_PAGES(MmGetMdlVirtualAddress(m), m->ByteCount);
    for (ULONG i = 0; i < pages; i++)
        pfn[i] = pfn_of((ULONG_PTR)m->StartVa + (ULONG_PTR)i * PAGE_SIZE);
}

PMDL IoAllocateMdl(PVOID va, ULONG length, BOOLEAN secondary, BOOLEAN quota, PIRP irp) {
    (void)quota;
    if (ndk_verifying()) ke_call_enter("IoAllocateMdl", DISPATCH_LEVEL);
    if (os_fault_hit(OS_FAULT_ALLOC)) return NULL;
    ULONG pages = ADDRESS_AND_SIZE_TO_SPAN_PAGES(va, length);
    size_t size = sizeof(MDL) + (size_t)pages * sizeof(PFN_NUMBER);
    PMDL m = calloc(1, size);
    if (!m) return NULL;
    MmInitializeMdl(m, va, length);
    m->Size = (CSHORT)(size > 0x7FFF ? 0x7FF8 : size);
    if (!ke_track(&mdls, m, length, 0)) {
        free(m);
        return NULL;
    }
    if (irp && !secondary) irp->MdlAddress = m;
    return m;
}

VOID IoFreeMdl(PMDL m) {
    if (ndk_verifying()) {
        ke_call_enter("IoFreeMdl", DISPATCH_LEVEL);
        const struct ke_hooks *hooks = ke_hooks_get();
        const char *user = hooks ? hooks->memory_in_use(NULL, 0, m) : NULL;
        if (user)
            ndk_violation(NDK_RULE_memory_freed, "IoFreeMdl", m, "the MDL belongs to %s", user);
    }
    if (!ke_untrack(&mdls, m, NULL)) {
        ndk_violation(NDK_RULE_memory_freed, "IoFreeMdl", m,
                      "not from IoAllocateMdl, or freed before");
        return;
    }
    free(m);
}

VOID MmBuildMdlForNonPagedPool(PMDL m) {
    if (ndk_verifying()) ke_call_enter("MmBuildMdlForNonPagedPool", DISPATCH_LEVEL);
    fill_pfns(m);
    m->MappedSystemVa = MmGetMdlVirtualAddress(m);
    m->MdlFlags |= MDL_SOURCE_IS_NONPAGED_POOL;
}

VOID MmProbeAndLockPages(PMDL m, KPROCESSOR_MODE mode, LOCK_OPERATION operation) {
    (void)mode;
    bool write = operation != IoReadAccess;
    if (ndk_verifying()) ke_call_enter("MmProbeAndLockPages", DISPATCH_LEVEL);
    if (m->ByteCount && os_pages_probe(MmGetMdlVirtualAddress(m), m->ByteCount, write) != SN_OK)
        ExRaiseAccessViolation();
    fill_pfns(m);
    m->MdlFlags |= MDL_PAGES_LOCKED;
    if (write) m->MdlFlags |= MDL_WRITE_OPERATION;
}

VOID MmUnlockPages(PMDL m) {
    if (ndk_verifying()) {
        const struct ke_hooks *hooks = ke_hooks_get();
        const char *user = hooks ? hooks->memory_in_use(NULL, 0, m) : NULL;
        if (user)
            ndk_violation(NDK_RULE_memory_freed, "MmUnlockPages", m, "the MDL belongs to %s", user);
    }
    m->MdlFlags &= (CSHORT) ~(MDL_PAGES_LOCKED | MDL_MAPPED_TO_SYSTEM_VA | MDL_WRITE_OPERATION);
}

VOID IoBuildPartialMdl(PMDL source, PMDL target, PVOID va, ULONG length) {
    if (length == 0)
        length = source->ByteCount - (ULONG)((PCHAR)va - (PCHAR)MmGetMdlVirtualAddress(source));
    target->StartVa = PAGE_ALIGN(va);
    target->ByteOffset = BYTE_OFFSET(va);
    target->ByteCount = length;
    target->MappedSystemVa = va;
    target->MdlFlags =
        (CSHORT)(MDL_PARTIAL | MDL_MAPPED_TO_SYSTEM_VA | (source->MdlFlags & MDL_WRITE_OPERATION));
    fill_pfns(target);
}

PVOID MmMapLockedPagesSpecifyCache(PMDL m, KPROCESSOR_MODE mode, MEMORY_CACHING_TYPE cache,
                                   PVOID requested, ULONG bugcheck, ULONG priority) {
    (void)mode;
    (void)cache;
    (void)requested;
    (void)bugcheck;
    (void)priority;
    m->MappedSystemVa = MmGetMdlVirtualAddress(m);
    m->MdlFlags |= MDL_MAPPED_TO_SYSTEM_VA;
    return m->MappedSystemVa;
}

static void report_leak(const struct ke_tracked *e) {
    ndk_violation(NDK_RULE_leak, "IoAllocateMdl", e->p, "an MDL of %zu bytes was never freed",
                  e->size);
    free(e->p);
}

int ke_mdl_leaks(void) {
    return ke_track_drain(&mdls, report_leak);
}
