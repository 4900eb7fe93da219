/* SPDX-License-Identifier: MIT */
#include "os/io/shm.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "os/linux/errno_status.h"
#include "os/prim/fault.h"

/* Without these a peer could cut the memory short under our mapping, and a touch would be a
 * SIGBUS; and with the last one nobody takes them away. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

void os_handle_close(os_handle h) {
    if (h != OS_HANDLE_NONE) close((int)h);
}

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static sn_status map_shared(int fd, size_t bytes, int prot, struct os_shm *out) {
    void *p = MAP_FAILED;
    if (os_fault_hit(OS_FAULT_SYSCALL))
        errno = ENOMEM;
    else
        p = mmap(NULL, bytes, prot, MAP_SHARED, fd, 0);
    /* Not permitted: the peer made it read-only. */
    if (p == MAP_FAILED) return errno == EPERM || errno == EACCES ? SN_E_WIRE : SN_E_NOMEM;
    *out = (struct os_shm){ .base = p, .bytes = bytes, .handle = fd };
    return SN_OK;
}

static sn_status create(size_t bytes, struct os_shm *out) {
    *out = (struct os_shm){ .handle = OS_HANDLE_NONE };
    if (bytes == 0) return SN_E_PARAM;
    if (bytes > (size_t)INT64_MAX) return SN_E_NOMEM;
    int fd = os_fault_hit(OS_FAULT_SYSCALL)
                 ? -1
                 : memfd_create("softnd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return errno == ENOMEM ? SN_E_NOMEM : SN_E_RESOURCES;
    sn_status st = SN_E_NOMEM;
    if (os_fault_hit(OS_FAULT_SYSCALL) || ftruncate(fd, (off_t)bytes) != 0) goto fail;
    st = map_shared(fd, bytes, PROT_READ | PROT_WRITE, out);
    if (st != SN_OK) goto fail;
    return SN_OK;
fail:
    close(fd);
    return st;
}

static sn_status seal(struct os_shm *shm, int seals) {
    if (!os_fault_hit(OS_FAULT_SYSCALL) && fcntl((int)shm->handle, F_ADD_SEALS, seals) == 0)
        return SN_OK;
    os_shm_close(shm);
    return SN_E_RESOURCES;
}

sn_status os_shm_create(size_t bytes, struct os_shm *out) {
    sn_status st = create(bytes, out);
    return st == SN_OK ? seal(out, SEALS) : st;
}

sn_status os_shm_create_published(size_t bytes, struct os_shm *out) {
    sn_status st = create(bytes, out);
    if (st != SN_OK) return st;
    /* Our own mapping stays writable. Before Linux 5.1 there is no such seal. */
    (void)!fcntl((int)out->handle, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
    return seal(out, SEALS);
}

static sn_status open_with(os_handle handle, size_t bytes, int prot, struct os_shm *out) {
    *out = (struct os_shm){ .handle = OS_HANDLE_NONE };
    int fd = (int)handle;
    struct stat info;
    int seals = fcntl(fd, F_GET_SEALS);
    sn_status st = SN_E_WIRE;
    if (bytes != 0 && seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &info) == 0 &&
        (uint64_t)info.st_size == bytes)
        st = map_shared(fd, bytes, prot, out);
    if (st != SN_OK) os_handle_close(handle);
    return st;
}

sn_status os_shm_open(os_handle handle, size_t bytes, struct os_shm *out) {
    return open_with(handle, bytes, PROT_READ | PROT_WRITE, out);
}

sn_status os_shm_open_readonly(os_handle handle, size_t bytes, struct os_shm *out) {
    return open_with(handle, bytes, PROT_READ, out);
}

void os_shm_close(struct os_shm *shm) {
    if (!shm->base) return;
    munmap(shm->base, shm->bytes);
    os_handle_close(shm->handle);
    *shm = (struct os_shm){ .handle = OS_HANDLE_NONE };
}
