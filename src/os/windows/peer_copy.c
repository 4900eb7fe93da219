/* SPDX-License-Identifier: MIT
 * ReadProcessMemory and its sister. The open handle is the process, so nothing is asked before a
 * copy. */
#include "os/io/peer_copy.h"
#include <windows.h>
#include "base/base.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/thread.h"

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

static sn_status copy_status(const struct os_peer *peer, DWORD e) {
    if (!os_peer_alive(peer)) return SN_E_PEER_GONE;
    return e == ERROR_ACCESS_DENIED ? SN_E_PERM : SN_E_FAULT;
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
        BOOL ok = !os_fault_hit(OS_FAULT_SYSCALL);
        if (ok)
            ok = write ? WriteProcessMemory((HANDLE)peer->handle, there, here, len, &n)
                       : ReadProcessMemory((HANDLE)peer->handle, there, here, len, &n);
        *done += n;
        if (!ok) return copy_status(peer, GetLastError());
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
