/* SPDX-License-Identifier: MIT */
#include "ndk/kenv/kenv.h"
#include "ndk/verify/verify.h"
#include "os/prim/pages.h"

static _Thread_local struct softndk_try *innermost;

VOID softndk_try_enter(struct softndk_try *t) {
    t->outer = innermost;
    t->active = TRUE;
    innermost = t;
}

VOID softndk_try_leave(struct softndk_try *t) {
    if (!t->active) return;
    t->active = FALSE;
    innermost = t->outer;
}

VOID ExRaiseStatus(NTSTATUS status) {
    struct softndk_try *t = innermost;
    if (!t) {
        DbgPrint("softndk: exception 0x%08X is not handled\n", (unsigned)status);
        KeBugCheckEx(0x1E, (ULONG_PTR)(ULONG)status, 0, 0, 0); /* KMODE_EXCEPTION_NOT_HANDLED */
    }
    softndk_try_leave(t);
    t->code = status;
    longjmp(t->env, 1);
}

BOOLEAN softndk_try_filter(struct softndk_try *t, int disposition) {
    if (disposition == EXCEPTION_CONTINUE_SEARCH) ExRaiseStatus(t->code);
    if (disposition == EXCEPTION_CONTINUE_EXECUTION) {
        DbgPrint("softndk: exception 0x%08X cannot be continued\n", (unsigned)t->code);
        KeBugCheckEx(0x1E, (ULONG_PTR)(ULONG)t->code, 0, 0, 0);
    }
    return TRUE;
}

VOID ExRaiseAccessViolation(VOID) {
    ExRaiseStatus(STATUS_ACCESS_VIOLATION);
}

VOID ExRaiseDatatypeMisalignment(VOID) {
    ExRaiseStatus(STATUS_DATATYPE_MISALIGNMENT);
}

static void probe(const volatile VOID *p, SIZE_T len, ULONG alignment, bool write,
                  const char *call) {
    if (ndk_verifying()) ke_call_enter(call, APC_LEVEL);
    if (len == 0) return;
    if (alignment && ((ULONG_PTR)p & (alignment - 1))) ExRaiseDatatypeMisalignment();
    if ((ULONG_PTR)p + len < (ULONG_PTR)p ||
        os_pages_probe((const void *)(uintptr_t)p, len, write) != SN_OK)
        ExRaiseAccessViolation();
}

VOID ProbeForRead(const volatile VOID *p, SIZE_T len, ULONG alignment) {
    probe(p, len, alignment, false, "ProbeForRead");
}

VOID ProbeForWrite(volatile VOID *p, SIZE_T len, ULONG alignment) {
    probe(p, len, alignment, true, "ProbeForWrite");
}
