/* SPDX-License-Identifier: MIT
 * overlapped_linux.c - overlapped files on Linux: thin, over the files of the Win32 subset, which
 * carry the exact status in the completion packet.
 */
#include <sched.h>
#include <unistd.h>
#include "ndspi/overlapped.h"
#include "os/prim/clock.h"
#include "os/prim/lock.h"
#include "win32/softnd_file.h"

static SOFTND_FILE *file_of(struct ndspi_file *f) {
    return (SOFTND_FILE *)f;
}

/* CancelIoEx. The context is the file itself. */
static BOOL cancel_requests(void *context, OVERLAPPED *ov) {
    return ndspi_file_cancel(context, ov) ? TRUE : FALSE;
}

HRESULT ndspi_file_create(HANDLE *out) {
    HANDLE h = SoftNdFileCreate();
    if (!h) return ND_NO_MEMORY;
    SOFTND_FILE *f = SoftNdFileReference(h);
    if (!f) return ND_NO_MEMORY;
    SoftNdFileSetCancel(f, cancel_requests, f);
    SoftNdFileRelease(f);
    *out = h;
    return ND_SUCCESS;
}

struct ndspi_file *ndspi_file_open(HANDLE handle) {
    return (struct ndspi_file *)SoftNdFileReference(handle);
}

void ndspi_file_close(struct ndspi_file *f) {
    SoftNdFileRelease(file_of(f));
}

bool ndspi_file_begin(struct ndspi_file *f, OVERLAPPED *ov, void **slot) {
    *slot = NULL;
    return SoftNdFileBegin(file_of(f), ov);
}

void ndspi_file_refuse(struct ndspi_file *f, OVERLAPPED *ov, void *slot, HRESULT hr) {
    (void)slot;
    SoftNdFileFail(file_of(f), ov, hr);
}

void *ndspi_file_complete(struct ndspi_file *f, OVERLAPPED *ov, void *slot, HRESULT hr) {
    (void)slot;
    return SoftNdFileCompleteHeld(file_of(f), ov, hr, 0);
}

void ndspi_file_wake(void *held) {
    SoftNdFileWake(held);
}

void *ndspi_sleeper_acquire(void) {
    return SoftNdSleeperAcquire();
}

void ndspi_sleeper_sleep(void *sleeper) {
    SoftNdSleeperSleep(sleeper);
}

void ndspi_sleeper_release(void *sleeper) {
    SoftNdSleeperRelease(sleeper);
}

/* ---- waiting threads in the place of the engine ---- */

static BOOL lead_begin(void *context) {
    return rd_adapter_lead_begin(context) ? TRUE : FALSE;
}

static void lead_sleep(void *context, LONGLONG deadline_ns) {
    rd_adapter_lead_sleep(context, deadline_ns == INT64_MAX ? OS_FOREVER : (uint64_t)deadline_ns);
}

static BOOL lead_work(void *context) {
    return rd_adapter_lead_work(context) ? TRUE : FALSE;
}

static void lead_wake(void *context) {
    rd_adapter_lead_wake(context);
}

static void lead_end(void *context, BOOL others_sleep) {
    rd_adapter_lead_end(context, others_sleep);
}

static const SOFTND_WAIT_HOOK lead_hook = { lead_begin, lead_sleep, lead_work, lead_wake,
                                            lead_end };

/* Open adapters. A thread could lead only one of several, and does not know which one it waits for.
 */
static struct {
    os_lock lock; /* taken with no other one held; the hook's own inside */
    unsigned count;
    uintptr_t sum; /* of their addresses: that of the one, if it is one */
} open_adapters = { .lock = OS_LOCK_STATIC(OS_RANK_MODULE) };

static void set_hook_locked(void) {
    bool one = open_adapters.count == 1;
    SoftNdSetWaitHook(one ? &lead_hook : NULL, one ? (void *)open_adapters.sum : NULL);
}

void ndspi_lead_offer(struct rd_adapter *rd) {
    os_lock_enter(&open_adapters.lock);
    open_adapters.count++;
    open_adapters.sum += (uintptr_t)rd;
    set_hook_locked();
    os_lock_leave(&open_adapters.lock);
}

void ndspi_lead_forget(struct rd_adapter *rd) {
    os_lock_enter(&open_adapters.lock);
    open_adapters.count--;
    open_adapters.sum -= (uintptr_t)rd;
    set_hook_locked();
    os_lock_leave(&open_adapters.lock);
}

HRESULT ndspi_file_result(const OVERLAPPED *ov) {
    return (HRESULT)(ULONG)__atomic_load_n(&ov->Internal, __ATOMIC_ACQUIRE);
}

bool ndspi_file_affinity(KAFFINITY *out) {
    cpu_set_t set;
    KAFFINITY mask = 0;
    if (sched_getaffinity(getpid(), sizeof set, &set) != 0) return false;
    for (unsigned i = 0; i < sizeof mask * 8; i++)
        if (CPU_ISSET(i, &set)) mask |= (KAFFINITY)1 << i;
    *out = mask;
    return mask != 0;
}
