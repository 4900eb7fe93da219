/* SPDX-License-Identifier: MIT */
#include "os/prim/thread.h"
#include <stdio.h>
#include <string.h>
#include <windows.h>
#include <mmsystem.h>
#include "base/base.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/windows/wait_ms.h"

struct start {
    void (*fn)(void *);
    void *arg;
    WCHAR name[32];
};

/* Since Windows 10 1607; without it threads have no names in a debugger. */
static void set_name(const WCHAR *name) {
    typedef HRESULT(WINAPI * set_fn)(HANDLE, PCWSTR);
    HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
    FARPROC f = kernel ? GetProcAddress(kernel, "SetThreadDescription") : NULL;
    set_fn set;
    if (!f) return;
    memcpy(&set, &f, sizeof set);
    (void)set(GetCurrentThread(), name);
}

static DWORD WINAPI run_thread(void *arg) {
    struct start s = *(struct start *)arg;
    os_free(arg);
    set_name(s.name);
    s.fn(s.arg);
    return 0;
}

sn_status os_thread_start(os_thread *t, const char *name, void (*fn)(void *arg), void *arg) {
    struct start *s = os_zalloc(sizeof *s);
    if (!s) return SN_E_RESOURCES;
    s->fn = fn;
    s->arg = arg;
    const char *p = name ? name : "softnd";
    for (size_t i = 0; p[i] && i + 1 < SN_ARRAY_LEN(s->name); i++)
        s->name[i] = (WCHAR)(unsigned char)p[i];
    HANDLE h =
        os_fault_hit(OS_FAULT_SYSCALL) ? NULL : CreateThread(NULL, 0, run_thread, s, 0, NULL);
    if (!h) {
        os_free(s);
        return SN_E_RESOURCES;
    }
    t->native = (uint64_t)(uintptr_t)h;
    return SN_OK;
}

void os_thread_join(os_thread t) {
    HANDLE h = (HANDLE)(uintptr_t)t.native;
    DWORD r = WaitForSingleObject(h, INFINITE);
    SN_ASSERT(r == WAIT_OBJECT_0);
    CloseHandle(h);
}

void os_thread_detach(os_thread t) {
    CloseHandle((HANDLE)(uintptr_t)t.native);
}

uint64_t os_thread_self(void) {
    return GetCurrentThreadId();
}

void os_thread_yield(void) {
    SwitchToThread();
}

/* The system runs a thread soon that waited for somebody. One whose time ran out waits for the next
 * tick of the system's timer, up to 15.6 ms: too long to take over from an application that stopped
 * polling, or for an acknowledgement. */
void os_thread_set_prompt(bool on) {
    if (on)
        (void)timeBeginPeriod(1);
    else
        (void)timeEndPeriod(1);
}

bool os_wait_on(os_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns) {
    if (os_u32_load_acquire(word) != expected) return true;
    if (WaitOnAddress(&word->v, &expected, sizeof expected, os_wait_ms(deadline_ns))) return true;
    return os_now_ns() < deadline_ns;
}

void os_wake_one(os_atomic_u32 *word) {
    WakeByAddressSingle(&word->v);
}

void os_wake_all(os_atomic_u32 *word) {
    WakeByAddressAll(&word->v);
}

/* ---- the module this code is in ---- */

static const char marker; /* an address inside the module */

void os_pin_module(void) {
    HMODULE module;
    (void)GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                             (const WCHAR *)(const void *)&marker, &module);
}

bool os_module_path(char *buf, uint32_t size) {
    HMODULE module;
    WCHAR wide[1024];
    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            (const WCHAR *)(const void *)&marker, &module))
        return false;
    DWORD n = GetModuleFileNameW(module, wide, SN_ARRAY_LEN(wide));
    if (n == 0 || n >= SN_ARRAY_LEN(wide) || size == 0) return false;
    return WideCharToMultiByte(CP_UTF8, 0, wide, -1, buf, (int)SN_MIN(size, (uint32_t)INT32_MAX),
                               NULL, NULL) > 0;
}

uint32_t os_process_id(void) {
    return GetCurrentProcessId();
}
