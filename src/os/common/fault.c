/* SPDX-License-Identifier: MIT */
#include "os/prim/fault.h"
#include <stdlib.h>
#include "os/prim/atomic.h"

#if defined(SN_FAULT_INJECTION)

/* Calls left before the failing one, plus one; 0: not armed. */
static os_atomic_u64 countdown[OS_FAULT_KINDS];
static os_atomic_u32 fired[OS_FAULT_KINDS];

void os_fault_arm(enum os_fault_kind kind, int64_t after) {
    os_u32_store_relaxed(&fired[kind], 0);
    os_u64_store_release(&countdown[kind], after < 0 ? 0 : (uint64_t)after + 1);
}

bool os_fault_fired(enum os_fault_kind kind) {
    return os_u32_load_acquire(&fired[kind]) != 0;
}

bool os_fault_hit(enum os_fault_kind kind) {
    uint64_t left = os_u64_load_relaxed(&countdown[kind]);
    while (left != 0)
        if (os_u64_cas_acq_rel(&countdown[kind], &left, left - 1)) {
            if (left != 1) return false;
            os_u32_store_release(&fired[kind], 1);
            return true;
        }
    return false;
}

bool os_fault_available(void) {
    return true;
}

#else

void os_fault_arm(enum os_fault_kind kind, int64_t after) {
    (void)kind;
    (void)after;
}

bool os_fault_fired(enum os_fault_kind kind) {
    (void)kind;
    return false;
}

bool os_fault_hit(enum os_fault_kind kind) {
    (void)kind;
    return false;
}

bool os_fault_available(void) {
    return false;
}

#endif

void *os_zalloc(size_t bytes) {
    if (os_fault_hit(OS_FAULT_ALLOC)) return NULL;
    return calloc(1, bytes ? bytes : 1);
}

void os_free(void *p) {
    free(p);
}
