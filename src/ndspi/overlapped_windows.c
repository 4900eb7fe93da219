/* SPDX-License-Identifier: MIT
 * overlapped_windows.c - overlapped files on Windows. The status goes into the OVERLAPPED as it is;
 * event, file and completion port are served by an I/O request of the moment (os/windows/packet.h).
 * Nothing is with the system while a request is pending, so the end of the thread that made it, the
 * end of the application's handle and the unloading of the library leave nothing behind; but
 * CancelIoEx finds nothing to cancel (IND2Overlapped::CancelOverlappedRequests does).
 */
#include "ndspi/overlapped.h"
#include "os/prim/fault.h"
#include "os/windows/packet.h"

struct ndspi_file {
    HANDLE handle; /* [const] ours, so that the application may close its own at any time */
};

HRESULT ndspi_file_create(HANDLE *out) {
    return os_packet_file_create(out) ? ND_SUCCESS : ND_NO_MEMORY;
}

struct ndspi_file *ndspi_file_open(HANDLE handle) {
    struct ndspi_file *f = os_zalloc(sizeof *f);
    if (f && os_packet_file_share(handle, &f->handle)) return f;
    os_free(f);
    return NULL;
}

void ndspi_file_close(struct ndspi_file *f) {
    CloseHandle(f->handle);
    os_free(f);
}

static HANDLE event_of(const OVERLAPPED *ov) {
    return (HANDLE)((ULONG_PTR)ov->hEvent & ~(ULONG_PTR)1);
}

static void store_status(OVERLAPPED *ov, HRESULT hr) {
    __atomic_store_n(&ov->Internal, (ULONG_PTR)(ULONG)hr, __ATOMIC_RELEASE);
}

/* The event of a request is kept by a handle of our own, which is the slot: who sees the status may
 * close the application's at once, and its number may be another object's by then. What is no
 * event, or may not be signalled, is left alone. */
bool ndspi_file_begin(struct ndspi_file *f, OVERLAPPED *ov, void **slot) {
    HANDLE self = GetCurrentProcess(), event = NULL;
    if (event_of(ov) &&
        !DuplicateHandle(self, event_of(ov), self, &event, EVENT_MODIFY_STATE, FALSE, 0) &&
        GetLastError() != ERROR_INVALID_HANDLE && GetLastError() != ERROR_ACCESS_DENIED)
        return false;
    if (event && !ResetEvent(event)) {
        CloseHandle(event);
        event = NULL;
    }
    *slot = event;
    ov->InternalHigh = 0;
    store_status(ov, ND_PENDING);
    if (!event) os_packet_file_clear(f->handle);
    return true;
}

static void end_event(HANDLE event, bool set) {
    if (!event) return;
    if (set) SetEvent(event);
    CloseHandle(event);
}

void ndspi_file_refuse(struct ndspi_file *f, OVERLAPPED *ov, void *slot, HRESULT hr) {
    (void)f;
    store_status(ov, hr);
    end_event(slot, false);
}

void *ndspi_file_complete(struct ndspi_file *f, OVERLAPPED *ov, void *slot, HRESULT hr) {
    bool packet = !((ULONG_PTR)ov->hEvent & 1);
    ov->InternalHigh = 0;
    store_status(ov, hr); /* who polls it may take the memory away now */
    bool signalled = packet && os_packet_post(f->handle, slot, ov, SUCCEEDED(hr));
    end_event(slot, !signalled);
    return NULL;
}

void ndspi_file_wake(void *held) {
    (void)held; /* the system woke everybody */
}

void *ndspi_sleeper_acquire(void) {
    return NULL;
}

void ndspi_sleeper_sleep(void *sleeper) {
    (void)sleeper;
}

void ndspi_sleeper_release(void *sleeper) {
    (void)sleeper;
}

void ndspi_lead_offer(struct rd_adapter *rd) {
    (void)rd;
}

void ndspi_lead_forget(struct rd_adapter *rd) {
    (void)rd;
}

HRESULT ndspi_file_result(const OVERLAPPED *ov) {
    return (HRESULT)(ULONG)__atomic_load_n(&ov->Internal, __ATOMIC_ACQUIRE);
}

bool ndspi_file_affinity(KAFFINITY *out) {
    DWORD_PTR process, machine;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &process, &machine)) return false;
    *out = process;
    return process != 0;
}
