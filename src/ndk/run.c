/* SPDX-License-Identifier: MIT
 *
 * The runner: a consumer's life from DriverEntry to DriverUnload, and what it left behind.
 */
#include <signal.h>
#include <stdio.h>
#include "ndk/kenv/registry.h"
#include "ndk/kenv/system.h"
#include "ndk/ndk.h"
#include "ndk/softndk.h"
#include "ndk/registrar.h"
#include "os/prim/clock.h"

static int run_argc;
static char **run_argv;
static KEVENT finished;
static os_atomic_u32 finish_code;
static os_atomic_u32 signalled;

int softndk_args(char ***argv) {
    if (argv) *argv = run_argv;
    return run_argc;
}

void softndk_finish(int code) {
    if (code) os_u32_store_release(&finish_code, 1);
    KeSetEvent(&finished, 0, FALSE);
}

int softndk_report_leaks(void) {
    int n = ndk_adapter_leaks();
    n += ndk_wsk_leaks();
    n += ke_work_leaks();
    n += ke_handle_leaks();
    n += ke_mdl_leaks();
    n += ke_pool_leaks();
    return n;
}

static void on_signal(int sig) {
    (void)sig;
    os_u32_store_release(&signalled, 1);
}

static void wait_for_end(int seconds) {
    LARGE_INTEGER step = { .QuadPart = -500000 }; /* 50 ms: a signal is noticed by then */
    uint64_t end = seconds < 0 ? OS_FOREVER : os_now_ns() + (uint64_t)seconds * 1000 * OS_NS_PER_MS;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!os_u32_load_acquire(&signalled) && os_now_ns() < end)
        if (KeWaitForSingleObject(&finished, Executive, KernelMode, FALSE, &step) == STATUS_SUCCESS)
            break;
}

int softndk_run(const struct softndk_run *run) {
    static WCHAR path[] = u"\\Registry\\Machine\\System\\CurrentControlSet\\Services\\softndk";
    UNICODE_STRING registry;
    DRIVER_OBJECT driver;
    ndk_options_load();
    ndk_verify_init();
    char text[512];
    void *module = ke_module_open(run->path, text, sizeof text);
    if (!module) {
        fprintf(stderr, "softndk: %s\n", text);
        return 2;
    }
    DRIVER_INITIALIZE *entry =
        (DRIVER_INITIALIZE *)(uintptr_t)ke_module_symbol(module, "DriverEntry");
    if (!entry) {
        fprintf(stderr, "softndk: %s has no DriverEntry\n", run->path);
        ke_module_close(module);
        return 2;
    }
    run_argc = run->argc;
    run_argv = run->argv;
    os_u32_store_release(&finish_code, 0);
    KeInitializeEvent(&finished, NotificationEvent, FALSE);
    memset(&driver, 0, sizeof driver);
    RtlInitUnicodeString(&registry, path);
    int before = softndk_violations(NULL);
    ke_entry_begin();
    NTSTATUS status = entry(&driver, &registry);
    ke_entry_end();
    if (NT_SUCCESS(status)) {
        wait_for_end(run->wait_seconds);
        ke_entry_begin();
        if (driver.DriverUnload) driver.DriverUnload(&driver);
        ke_entry_end();
    } else {
        fprintf(stderr, "softndk: DriverEntry returned 0x%08X\n", (unsigned)status);
    }
    ke_work_drain();
    softndk_report_leaks();
    bool saved = ke_registry_save();
    /* Reports name functions of the module; threads of it may be in their last instructions. */
    int broken = softndk_violations(NULL) - before;
    if (broken) fprintf(stderr, "softndk: %d broken rules\n", broken);
    return !NT_SUCCESS(status) || broken || !saved || os_u32_load_acquire(&finish_code) ? 1 : 0;
}
