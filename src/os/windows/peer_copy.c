/* SPDX-License-Identifier: MIT
 * The system calls below ReadProcessMemory and WriteProcessMemory. The latter is a debugger's: it
 * writes code as well, and versions of Windows change the rights of the pages to do so, which not
 * all memory allows, and back, which two at a time get wrong. The call below writes what the
 * process itself may write. The open handle is the process, so nothing is asked before a copy. */
#include "os/io/peer_copy.h"
#include <winsock2.h>
#include <windows.h>
#include <winternl.h>
#include "base/base.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/thread.h"

NTSTATUS NTAPI NtReadVirtualMemory(HANDLE process, const void *from, void *to, SIZE_T len,
                                   SIZE_T *done);
NTSTATUS NTAPI NtWriteVirtualMemory(HANDLE process, void *to, const void *from, SIZE_T len,
                                    SIZE_T *done);
#define DENIED ((NTSTATUS)0xC0000022)  /* STATUS_ACCESS_DENIED */
#define NO_ROOM ((NTSTATUS)0xC000009A) /* STATUS_INSUFFICIENT_RESOURCES */

sn_status os_peer_open(uint32_t pid, struct os_peer *out) {
    *out = (struct os_peer){ .handle = -1 };
    if (pid == 0) return SN_E_NOT_FOUND;
    DWORD access = PROCESS_VM_READ | PROCESS_VM_WRITE | PROCESS_VM_OPERATION | SYNCHRONIZE;
    HANDLE h = os_fault_hit(OS_FAULT_SYSCALL) ? NULL : OpenProcess(access, FALSE, pid);
    /* Of a process of somebody else at least its life can be watched. */
    if (!h && GetLastError() == ERROR_ACCESS_DENIED) h = OpenProcess(SYNCHRONIZE, FALSE, pid);
    if (!h) return GetLastError() == ERROR_INVALID_PARAMETER ? SN_E_NOT_FOUND : SN_E_RESOURCES;
    *out = (struct os_peer){ .pid = pid, .handle = (intptr_t)h };
    return SN_OK;
}

void os_peer_close(struct os_peer *peer) {
    if (peer->pid == 0) return;
    CloseHandle((HANDLE)peer->handle);
    *peer = (struct os_peer){ .handle = -1 };
}

static os_once mark_once = OS_ONCE_INIT;
static uint64_t mark_word;

static void make_mark(void) {
    os_random_bytes(&mark_word, sizeof mark_word);
}

struct os_peer_mark os_peer_own_mark(void) {
    os_once_run(&mark_once, make_mark);
    return (struct os_peer_mark){ (uint64_t)(uintptr_t)&mark_word, mark_word };
}

/* A process stays what it is here: once is enough. */
sn_status os_peer_recognise(struct os_peer *peer, const struct os_peer_mark *mark) {
    uint64_t word = 0;
    struct os_iov here = { &word, sizeof word };
    struct os_peer_iov there = { mark->addr, sizeof word };
    size_t done;
    sn_status st = os_peer_readv(peer, &here, 1, &there, 1, &done);
    return st != SN_OK || word == mark->value ? st : SN_E_PEER_GONE;
}

bool os_peer_alive(const struct os_peer *peer) {
    return peer->pid != 0 && WaitForSingleObject((HANDLE)peer->handle, 0) == WAIT_TIMEOUT;
}

sn_status os_peer_allow(void) {
    return SN_OK;
}

static sn_status copy_status(const struct os_peer *peer, NTSTATUS st) {
    if (!os_peer_alive(peer)) return SN_E_PEER_GONE;
    return st == DENIED ? SN_E_PERM : SN_E_FAULT;
}

static sn_status copy_pieces(bool write, struct os_peer *peer, const struct os_iov *local,
                             size_t local_count, const struct os_peer_iov *remote,
                             size_t remote_count, size_t *done) {
    size_t li = 0, ri = 0, loff = 0, roff = 0;
    *done = 0;
    for (;;) {
        while (li < local_count && loff == local[li].len)
            li++, loff = 0;
        while (ri < remote_count && roff == remote[ri].len)
            ri++, roff = 0;
        if (li == local_count || ri == remote_count) return SN_OK;
        size_t len = (size_t)SN_MIN((uint64_t)(local[li].len - loff), remote[ri].len - roff);
        void *here = (char *)local[li].base + loff;
        void *there = (void *)(uintptr_t)(remote[ri].addr + roff);
        SIZE_T n = 0;
        NTSTATUS st = NO_ROOM;
        if (!os_fault_hit(OS_FAULT_SYSCALL))
            st = write ? NtWriteVirtualMemory((HANDLE)peer->handle, there, here, len, &n)
                       : NtReadVirtualMemory((HANDLE)peer->handle, there, here, len, &n);
        *done += n;
        if (st != 0) return copy_status(peer, st);
        loff += n;
        roff += n;
    }
}

sn_status os_peer_readv(struct os_peer *peer, const struct os_iov *local, size_t local_count,
                        const struct os_peer_iov *remote, size_t remote_count, size_t *done) {
    return copy_pieces(false, peer, local, local_count, remote, remote_count, done);
}

sn_status os_peer_writev(struct os_peer *peer, const struct os_iov *local, size_t local_count,
                         const struct os_peer_iov *remote, size_t remote_count, size_t *done) {
    return copy_pieces(true, peer, local, local_count, remote, remote_count, done);
}
