/* SPDX-License-Identifier: MIT
 * peer_copy.h - copies straight between this process's memory and another's.
 * Owns:    the identity of the other process: a process that later gets the same number, or what it
 *          becomes when it executes another program, is not taken for it. A copy of OS_MARKED_BYTES
 *          and more asks for the peer's mark in the same system call; shorter ones do so when the
 *          last time is OS_MARKED_NS ago, so that much later they may still reach what replaced it.
 * Threads: any; open and close by one, when no copy runs.
 * Errors:  SN_E_FAULT, SN_E_PERM, SN_E_PEER_GONE, SN_E_NOT_FOUND, SN_E_RESOURCES,
 *          SN_E_UNSUPPORTED.
 *
 * Pieces of the peer's memory are served one after the other; no order is promised between the
 * bytes of one. Who polls the last byte of a buffer must be served with a second piece for the end
 * of it.
 */
#ifndef SN_OS_PEER_COPY_H
#define SN_OS_PEER_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "os/io/sock.h"
#include "os/prim/atomic.h"

#define OS_MARKED_BYTES ((size_t)256 * 1024)
#define OS_MARKED_NS (50 * 1000ull)

/* A word of a process's memory that nothing else has: at an address, with a value, both random. */
struct os_peer_mark {
    uint64_t addr, value; /* addr 0: none */
};

struct os_peer {
    uint32_t pid;             /* as this process sees it; 0: not open */
    intptr_t handle;          /* keeps the identity */
    os_atomic_u64 alive_ns;   /* when it was last seen alive */
    struct os_peer_mark mark; /* addr 0: not known, or not needed on this system */
};

/* A piece of the peer's memory. */
struct os_peer_iov {
    uint64_t addr;
    uint64_t len;
};

/* Opens the process with this number, of which the caller knows that it lives (it holds a
 * connection to it). SN_E_NOT_FOUND: no such process, or 0; SN_E_RESOURCES: out of descriptors;
 * SN_E_UNSUPPORTED: not on this system. Says nothing about permission: try a copy. */
SN_MUST_CHECK sn_status os_peer_open(uint32_t pid, struct os_peer *out);
/* Zeroed memory and a second call are fine. */
void os_peer_close(struct os_peer *peer);
/* This process's mark, for others. */
struct os_peer_mark os_peer_own_mark(void);
/* Looks whether the process has this mark, as it told; from then on it is asked for.
 * SN_E_PEER_GONE: it has not; the statuses of a copy. Before any other copy. */
SN_MUST_CHECK sn_status os_peer_recognise(struct os_peer *peer, const struct os_peer_mark *mark);
/* False once the process has ended, even if nobody has collected it yet, or, if its mark is known,
 * has become another program. */
bool os_peer_alive(const struct os_peer *peer);

/* Lets other processes of this user copy to and from this one where the system asks for that
 * (Linux with Yama: for any process of the user, until this process ends or executes another
 * program). Without need for it does nothing. SN_E_PERM: the system refuses. */
SN_MUST_CHECK sn_status os_peer_allow(void);

/* Copies from the peer's pieces, in order, into the local ones, as many bytes as the shorter list
 * has; any number of pieces. *done: bytes surely copied, also on failure. Blocks only for page
 * faults. SN_E_FAULT: something after *done is not mapped with the access needed, here or there
 * (os_pages_probe tells about here). SN_E_PERM: the system forbids it: nothing was copied, and
 * trying again is in vain. SN_E_PEER_GONE: the process has ended. */
SN_MUST_CHECK sn_status os_peer_readv(struct os_peer *peer, const struct os_iov *local,
                                      size_t local_count, const struct os_peer_iov *remote,
                                      size_t remote_count, size_t *done);
/* Likewise from the local pieces into the peer's. */
SN_MUST_CHECK sn_status os_peer_writev(struct os_peer *peer, const struct os_iov *local,
                                       size_t local_count, const struct os_peer_iov *remote,
                                       size_t remote_count, size_t *done);

#endif
