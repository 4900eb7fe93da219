/* SPDX-License-Identifier: MIT
 * The guard. One vectored handler is added on first use and stays; the module is pinned with it. An
 * access violation whose program counter is inside os_guard_copy resumes at the copy's error exit;
 * one inside os_guarded_call goes back to where the call began, with the processor state of that
 * moment; every other exception is passed on. The state of a thread is kept in a slot of TlsAlloc,
 * which a handler may read at any time: _Thread_local of some compilers allocates at first use.
 *
 * The probe asks VirtualQuery, region by region, and touches nothing. */
#include "os/prim/pages.h"
#include <string.h>
#include <windows.h>
#include "base/base.h"
#include "os/common/guard_copy.h"
#include "os/prim/fault.h"
#include "os/prim/thread.h"

size_t os_page_size(void) {
    static os_atomic_u64 size;
    uint64_t n = os_u64_load_relaxed(&size);
    if (n == 0) {
        SYSTEM_INFO info;
        GetSystemInfo(&info);
        n = info.dwPageSize;
        os_u64_store_relaxed(&size, n);
    }
    return (size_t)n;
}

void *os_pages_alloc(size_t bytes) {
    if (bytes == 0 || os_fault_hit(OS_FAULT_ALLOC)) return NULL;
    return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void os_pages_free(void *p, size_t bytes) {
    (void)bytes;
    if (p) VirtualFree(p, 0, MEM_RELEASE);
}

/* ---- the guard ---- */

/* One os_guarded_call of a thread; the slot holds the innermost. */
struct guard {
    CONTEXT begin;
    struct guard *outer;
    volatile bool left; /* a fault ended the call */
};

os_once os_guard_once = OS_ONCE_INIT;
static DWORD guard_slot = TLS_OUT_OF_INDEXES; /* [const] once the guard is installed */

/* TlsGetValue sets the last error, which belongs to the code that was interrupted. */
static struct guard *current_guard(void) {
    DWORD keep = GetLastError();
    struct guard *g = TlsGetValue(guard_slot);
    SetLastError(keep);
    return g;
}

static bool is_bad_memory(DWORD code) {
    return code == EXCEPTION_ACCESS_VIOLATION || code == EXCEPTION_IN_PAGE_ERROR ||
           code == EXCEPTION_GUARD_PAGE || code == EXCEPTION_DATATYPE_MISALIGNMENT;
}

static LONG CALLBACK on_exception(EXCEPTION_POINTERS *e) {
    if (!is_bad_memory(e->ExceptionRecord->ExceptionCode)) return EXCEPTION_CONTINUE_SEARCH;
#if defined(__x86_64__)
    uintptr_t resume = os_guard_copy_resume((uintptr_t)e->ContextRecord->Rip);
    if (resume != 0) {
        e->ContextRecord->Rip = resume;
        return EXCEPTION_CONTINUE_EXECUTION;
    }
#endif
    struct guard *g = current_guard();
    if (!g) return EXCEPTION_CONTINUE_SEARCH;
    g->left = true;
    memcpy(e->ContextRecord, &g->begin, sizeof g->begin);
    return EXCEPTION_CONTINUE_EXECUTION;
}

void os_guard_install(void) {
    os_pin_module();
    guard_slot = TlsAlloc();
    SN_ASSERT(guard_slot != TLS_OUT_OF_INDEXES);
    (void)AddVectoredExceptionHandler(1, on_exception);
}

/* RtlCaptureContext returns a second time after a fault, with the registers of the first time; what
 * must have kept its value lies in *g. */
static __attribute__((noinline)) bool run_guarded(struct guard *volatile g, void (*fn)(void *arg),
                                                  void *arg) {
    RtlCaptureContext(&g->begin);
    if (!g->left) {
        TlsSetValue(guard_slot, g);
        fn(arg);
    }
    TlsSetValue(guard_slot, g->outer);
    return !g->left;
}

bool os_guarded_call(void (*fn)(void *arg), void *arg) {
    os_once_run(&os_guard_once, os_guard_install);
    struct guard g = { .outer = current_guard() };
    return run_guarded(&g, fn, arg);
}

/* ---- the probe ---- */

static bool allows(const MEMORY_BASIC_INFORMATION *m, bool write) {
    if (m->State != MEM_COMMIT || m->Protect & PAGE_GUARD) return false;
    switch (m->Protect & 0xff) {
    case PAGE_READWRITE:
    case PAGE_WRITECOPY:
    case PAGE_EXECUTE_READWRITE:
    case PAGE_EXECUTE_WRITECOPY:
        return true;
    case PAGE_READONLY:
    case PAGE_EXECUTE_READ:
        return !write;
    default:
        return false;
    }
}

sn_status os_pages_probe(const void *addr, size_t len, bool write) {
    uintptr_t at = (uintptr_t)addr;
    if (len == 0 || len - 1 > UINTPTR_MAX - at) return SN_E_FAULT;
    uintptr_t last = at + (len - 1);
    os_once_run(&os_guard_once, os_guard_install); /* now, not in the first transfer */
    for (;;) {
        MEMORY_BASIC_INFORMATION m;
        if (VirtualQuery((const void *)at, &m, sizeof m) == 0 || !allows(&m, write))
            return SN_E_FAULT;
        uintptr_t end = (uintptr_t)m.BaseAddress + (m.RegionSize - 1);
        if (end >= last) return SN_OK;
        at = end + 1;
    }
}
