/* SPDX-License-Identifier: MIT
 *
 * Pool memory is the C library's, so that a sanitizer sees every byte of it; a table beside it
 * knows size, tag and origin.
 */
#include <stdlib.h>
#include "ndk/kenv/kenv.h"
#include "ndk/kenv/system.h"
#include "ndk/kenv/tracked.h"
#include "os/prim/fault.h"

static void init(void);
static struct ke_tracker pool = { .once = OS_ONCE_INIT, .init = init };
static void init(void) {
    ke_tracker_init(&pool);
}

static void tag_text(ULONG tag, char out[5]) {
    for (int i = 0; i < 4; i++) {
        char c = (char)(tag >> (8 * i));
        out[i] = c >= 32 && c < 127 ? c : '.';
    }
    out[4] = 0;
}

static PVOID allocate(SIZE_T bytes, ULONG tag, bool zero, const char *call) {
    if (ndk_verifying()) {
        ke_call_enter(call, DISPATCH_LEVEL);
        if (tag == 0) ndk_violation(NDK_RULE_pool, call, NULL, "the tag is 0");
    }
    if (os_fault_hit(OS_FAULT_ALLOC) || bytes > SIZE_MAX - PAGE_SIZE) return NULL;
    SIZE_T size = bytes ? bytes : 1;
    void *p = ke_memory_new(size, size >= PAGE_SIZE ? PAGE_SIZE : 16);
    if (!p) return NULL;
    memset(p, zero ? 0 : 0xCD, size); /* what was not written is recognisable */
    if (!ke_track(&pool, p, bytes, tag)) {
        ke_memory_free(p);
        return NULL;
    }
    return p;
}

PVOID ExAllocatePoolWithTag(POOL_TYPE type, SIZE_T bytes, ULONG tag) {
    (void)type;
    return allocate(bytes, tag, false, "ExAllocatePoolWithTag");
}

PVOID ExAllocatePoolWithTagPriority(POOL_TYPE type, SIZE_T bytes, ULONG tag,
                                    EX_POOL_PRIORITY priority) {
    (void)type;
    (void)priority;
    return allocate(bytes, tag, false, "ExAllocatePoolWithTagPriority");
}

PVOID ExAllocatePoolZero(POOL_TYPE type, SIZE_T bytes, ULONG tag) {
    (void)type;
    return allocate(bytes, tag, true, "ExAllocatePoolZero");
}

PVOID ExAllocatePool2(POOL_FLAGS flags, SIZE_T bytes, ULONG tag) {
    return allocate(bytes, tag, !(flags & POOL_FLAG_UNINITIALIZED), "ExAllocatePool2");
}

PVOID ExAllocatePool3(POOL_FLAGS flags, SIZE_T bytes, ULONG tag,
                      PCPOOL_EXTENDED_PARAMETER parameters, ULONG count) {
    (void)parameters;
    (void)count;
    return allocate(bytes, tag, !(flags & POOL_FLAG_UNINITIALIZED), "ExAllocatePool3");
}

os_atomic_u32 ke_keep_freed;

/* The newest freed blocks; each takes the place of one that then really goes. */
enum { KEPT = 4096 };
static os_atomic_ptr kept[KEPT];
static os_atomic_u32 kept_at;

static void keep(void *p) {
    uint32_t i = os_u32_fetch_add_relaxed(&kept_at, 1) % KEPT;
    ke_memory_free(os_ptr_exchange_acq_rel(&kept[i], p));
}

static void release(PVOID p, ULONG tag, const char *call) {
    struct ke_tracked e;
    if (ndk_verifying()) ke_call_enter(call, DISPATCH_LEVEL);
    if (!ke_untrack(&pool, p, &e)) {
        ndk_violation(NDK_RULE_pool, call, p, "not pool memory, or freed before");
        return; /* a kernel would stop here */
    }
    if (ndk_verifying()) {
        char had[5], given[5];
        tag_text(e.tag, had);
        tag_text(tag, given);
        if (tag != 0 && tag != e.tag)
            ndk_violation(NDK_RULE_pool, call, p, "allocated with tag '%s', freed with '%s'", had,
                          given);
        const struct ke_hooks *hooks = ke_hooks_get();
        const char *user = hooks ? hooks->memory_in_use(p, e.size, NULL) : NULL;
        if (user)
            ndk_violation(NDK_RULE_memory_freed, call, p, "%zu bytes with tag '%s' are in %s",
                          e.size, had, user);
    }
    if (os_u32_load_relaxed(&ke_keep_freed)) {
        keep(p);
        return;
    }
    if (ndk_verifying()) memset(p, 0xDD, e.size);
    ke_memory_free(p);
}

VOID ExFreePoolWithTag(PVOID p, ULONG tag) {
    release(p, tag, "ExFreePoolWithTag");
}

VOID ExFreePool(PVOID p) {
    release(p, 0, "ExFreePool");
}

VOID ExFreePool2(PVOID p, ULONG tag, PCPOOL_EXTENDED_PARAMETER parameters, ULONG count) {
    (void)parameters;
    (void)count;
    release(p, tag, "ExFreePool2");
}

static void report_leak(const struct ke_tracked *e) {
    char tag[5], at[1024];
    tag_text(e->tag, tag);
    size_t n = ndk_stack_text(&e->origin, at, sizeof at);
    ndk_violation(NDK_RULE_leak, "ExAllocatePool", e->p,
                  "%zu bytes of pool with tag '%s' were never freed; allocated at\n%.*s", e->size,
                  tag, (int)n, n ? at : "");
    ke_memory_free(e->p);
}

int ke_pool_leaks(void) {
    for (int i = 0; i < KEPT; i++)
        ke_memory_free(os_ptr_exchange_acq_rel(&kept[i], NULL));
    return ke_track_drain(&pool, report_leak);
}

/* ---- lookaside lists ---- */

VOID ExInitializeNPagedLookasideList(PNPAGED_LOOKASIDE_LIST list, PVOID alloc, PVOID freer,
                                     ULONG flags, SIZE_T size, ULONG tag, USHORT depth) {
    (void)alloc;
    (void)freer;
    (void)flags;
    (void)depth;
    *list = (NPAGED_LOOKASIDE_LIST){ size, tag, NonPagedPoolNx };
}

NTSTATUS ExInitializeLookasideListEx(PLOOKASIDE_LIST_EX list, PVOID alloc, PVOID freer,
                                     POOL_TYPE type, ULONG flags, SIZE_T size, ULONG tag,
                                     USHORT depth) {
    ExInitializeNPagedLookasideList(list, alloc, freer, flags, size, tag, depth);
    list->Type = type;
    return STATUS_SUCCESS;
}

PVOID ExAllocateFromNPagedLookasideList(PNPAGED_LOOKASIDE_LIST list) {
    return allocate(list->Size, list->Tag, false, "ExAllocateFromLookasideList");
}

VOID ExFreeToNPagedLookasideList(PNPAGED_LOOKASIDE_LIST list, PVOID entry) {
    release(entry, list->Tag, "ExFreeToLookasideList");
}

VOID ExDeleteNPagedLookasideList(PNPAGED_LOOKASIDE_LIST list) {
    list->Size = 0;
}
