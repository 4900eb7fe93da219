/* SPDX-License-Identifier: MIT */
#include "ndk/kenv/kenv.h"
#include "ndk/verify/verify.h"
#include "os/prim/thread.h"

static _Thread_local KIRQL irql;
static _Thread_local uint32_t callback_depth;
static _Thread_local const char *call_name;

KIRQL KeGetCurrentIrql(VOID) {
    return irql;
}

KIRQL KfRaiseIrql(KIRQL to) {
    KIRQL old = irql;
    if (ndk_verifying() && to < old)
        ndk_violation(NDK_RULE_irql, "KeRaiseIrql", NULL, "from IRQL %u to %u is not a raise", old,
                      to);
    irql = to;
    return old;
}

VOID KeLowerIrql(KIRQL to) {
    if (ndk_verifying() && to > irql)
        ndk_violation(NDK_RULE_irql, "KeLowerIrql", NULL, "from IRQL %u to %u is not a lowering",
                      irql, to);
    irql = to;
}

struct ke_callback ke_callback_begin(void) {
    struct ke_callback saved = { irql, callback_depth, ndk_verifying() };
    if (saved.counted) ke_running_begin();
    if (irql < DISPATCH_LEVEL) irql = DISPATCH_LEVEL;
    callback_depth++;
    return saved;
}

void ke_callback_end(struct ke_callback saved, const char *name) {
    KIRQL expected = saved.irql > DISPATCH_LEVEL ? saved.irql : DISPATCH_LEVEL;
    if (ndk_verifying() && irql != expected)
        ndk_violation(NDK_RULE_irql, name, NULL, "the callback returned at IRQL %u, not %u", irql,
                      expected);
    irql = saved.irql;
    callback_depth = saved.depth;
    if (saved.counted) ke_running_end();
}

bool ke_in_callback(void) {
    return callback_depth != 0;
}

static os_atomic_ptr hooks;

void ke_hooks_set(const struct ke_hooks *h) {
    os_ptr_store_release(&hooks, (void *)(uintptr_t)h);
}

const struct ke_hooks *ke_hooks_get(void) {
    return os_ptr_load_acquire(&hooks);
}

void ke_call_enter_at(const char *name, KIRQL max, const void *frame) {
    call_name = name;
    const struct ke_hooks *h = ke_hooks_get();
    if (h) h->on_call(frame);
    if (irql > max)
        ndk_violation(NDK_RULE_irql, name, NULL, "called at IRQL %u, allowed up to %u", irql, max);
}

const char *ke_call_name(void) {
    return call_name;
}

VOID softndk_paged_code(const char *file, int line) {
    if (ndk_verifying() && irql > APC_LEVEL)
        ndk_violation(NDK_RULE_irql, "PAGED_CODE", NULL, "%s:%d runs at IRQL %u", file, line, irql);
}

VOID softndk_yield_processor(VOID) {
    os_cpu_relax();
    os_thread_yield();
}
