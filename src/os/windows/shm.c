/* SPDX-License-Identifier: MIT
 * A section backed by the paging file. Its size is fixed by the system at creation. */
#include "os/io/shm.h"
#include <windows.h>
#include "base/base.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"

void os_handle_close(os_handle h) {
    if (h != OS_HANDLE_NONE) CloseHandle((HANDLE)h);
}

static sn_status map_section(HANDLE section, size_t bytes, DWORD access, struct os_shm *out) {
    void *base =
        os_fault_hit(OS_FAULT_SYSCALL) ? NULL : MapViewOfFile(section, access, 0, 0, bytes);
    if (!base) return SN_E_NOMEM;
    *out = (struct os_shm){ .base = base, .bytes = bytes, .handle = (os_handle)section };
    return SN_OK;
}

sn_status os_shm_create(size_t bytes, struct os_shm *out) {
    *out = (struct os_shm){ .handle = OS_HANDLE_NONE };
    if (bytes == 0) return SN_E_PARAM;
    HANDLE h = os_fault_hit(OS_FAULT_SYSCALL)
                   ? NULL
                   : CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE,
                                        (DWORD)((uint64_t)bytes >> 32), (DWORD)bytes, NULL);
    if (!h) return GetLastError() == ERROR_COMMITMENT_LIMIT ? SN_E_NOMEM : SN_E_RESOURCES;
    sn_status st = map_section(h, bytes, FILE_MAP_READ | FILE_MAP_WRITE, out);
    if (st != SN_OK) CloseHandle(h);
    return st;
}

sn_status os_shm_create_published(size_t bytes, struct os_shm *out) {
    sn_status st = os_shm_create(bytes, out);
    HANDLE readable;
    if (st != SN_OK) return st;
    /* The mapping stays writable; the handle that is left is not. */
    if (!DuplicateHandle(GetCurrentProcess(), (HANDLE)out->handle, GetCurrentProcess(), &readable,
                         FILE_MAP_READ, FALSE, 0)) {
        os_shm_close(out);
        return SN_E_RESOURCES;
    }
    CloseHandle((HANDLE)out->handle);
    out->handle = (os_handle)readable;
    return SN_OK;
}

static sn_status open_with(os_handle handle, size_t bytes, DWORD access, struct os_shm *out) {
    *out = (struct os_shm){ .handle = OS_HANDLE_NONE };
    if (handle == OS_HANDLE_NONE) return SN_E_WIRE;
    HANDLE h = (HANDLE)handle;
    sn_status st = SN_E_WIRE;
    if (bytes != 0) {
        /* The whole section is mapped first: a view tells its own size, not the section's. Its
         * pages must be there: a section may be reserved only. */
        void *all = MapViewOfFile(h, access, 0, 0, 0);
        MEMORY_BASIC_INFORMATION m;
        size_t page = os_page_size();
        bool fits = all && VirtualQuery(all, &m, sizeof m) != 0 && m.State == MEM_COMMIT &&
                    m.RegionSize == (bytes + page - 1) / page * page;
        if (all) UnmapViewOfFile(all);
        if (fits) st = map_section(h, bytes, access, out);
    }
    if (st != SN_OK) CloseHandle(h);
    return st;
}

sn_status os_shm_open(os_handle handle, size_t bytes, struct os_shm *out) {
    return open_with(handle, bytes, FILE_MAP_READ | FILE_MAP_WRITE, out);
}

sn_status os_shm_open_readonly(os_handle handle, size_t bytes, struct os_shm *out) {
    return open_with(handle, bytes, FILE_MAP_READ, out);
}

void os_shm_close(struct os_shm *shm) {
    if (!shm->base) return;
    UnmapViewOfFile(shm->base);
    os_handle_close(shm->handle);
    *shm = (struct os_shm){ .handle = OS_HANDLE_NONE };
}
