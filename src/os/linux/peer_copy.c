/* SPDX-License-Identifier: MIT
 * process_vm_readv and its sister name the other process by number. The descriptor of the process
 * (pidfd) taken at the start becomes readable when that process has ended; until then the number
 * is its own. */
#include "os/io/peer_copy.h"
#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/base.h"
#include "os/linux/errno_status.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

sn_status os_peer_open(uint32_t pid, struct os_peer *out) {
    *out = (struct os_peer){ .handle = -1 };
    if (pid == 0 || pid > INT32_MAX) return SN_E_NOT_FOUND;
    int fd = -1;
    if (os_fault_hit(OS_FAULT_SYSCALL))
        errno = EMFILE;
    else
        fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (fd < 0 && errno == EINVAL) return SN_E_NOT_FOUND; /* a thread's number */
    if (fd < 0) return errno == ENOMEM ? SN_E_RESOURCES : os_errno_status(errno);
    *out = (struct os_peer){ .pid = pid, .handle = fd };
    return SN_OK;
}

void os_peer_close(struct os_peer *peer) {
    if (peer->pid == 0) return;
    close((int)peer->handle);
    *peer = (struct os_peer){ .handle = -1 };
}

bool os_peer_alive(const struct os_peer *peer) {
    struct pollfd p = { .fd = (int)peer->handle, .events = POLLIN };
    return peer->pid != 0 && poll(&p, 1, 0) == 0;
}

sn_status os_peer_allow(void) {
    if (prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) == 0) return SN_OK;
    return errno == EINVAL ? SN_OK : SN_E_PERM; /* EINVAL: no Yama here, none needed */
}

/* The pieces not copied yet, as the kernel takes them; filled up from the caller's lists. */
struct window {
    struct iovec piece[OS_IOV_MAX];
    size_t count;
    size_t bytes;
};

/* Fills w from a position in the list: `at` pieces and `off` bytes in. Empty pieces are left out.
 * Both list types are laid out as iovec. */
static void fill_window(struct window *w, const struct iovec *list, size_t count, size_t at,
                        size_t off) {
    w->count = w->bytes = 0;
    for (; at < count && w->count < OS_IOV_MAX; at++, off = 0) {
        size_t len = list[at].iov_len - off;
        if (len == 0) continue;
        if (len > SIZE_MAX - w->bytes) len = SIZE_MAX - w->bytes;
        w->piece[w->count++] = (struct iovec){ (void *)((uintptr_t)list[at].iov_base + off), len };
        w->bytes += len;
    }
}

static void advance(const struct iovec *list, size_t count, size_t *at, size_t *off, size_t n) {
    while (*at < count && n >= list[*at].iov_len - *off) {
        n -= list[*at].iov_len - *off;
        *off = 0;
        (*at)++;
    }
    if (*at < count) *off += n;
}

typedef ssize_t copy_fn(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                        unsigned long, unsigned long);

static SN_COLD sn_status copy_status(const struct os_peer *peer, int e) {
    switch (e) {
    case EFAULT:
        return os_peer_alive(peer) ? SN_E_FAULT : SN_E_PEER_GONE;
    case EPERM:
    case EACCES:
        return os_peer_alive(peer) ? SN_E_PERM : SN_E_PEER_GONE;
    case ESRCH:
        return SN_E_PEER_GONE;
    case ENOMEM:
        return SN_E_RESOURCES;
    case ENOSYS:
        return SN_E_UNSUPPORTED;
    default:
        return SN_E_FAULT; /* EINVAL: lengths that no memory has */
    }
}

/* Asking costs as much as a small copy, so a peer that was alive just now is not asked again. */
static bool alive_lately(struct os_peer *peer) {
    uint64_t now = os_now_ns();
    if (now - os_u64_load_relaxed(&peer->alive_ns) < OS_NS_PER_MS) return true;
    if (!os_peer_alive(peer)) return false;
    os_u64_store_relaxed(&peer->alive_ns, now);
    return true;
}

static sn_status copy_pieces(copy_fn *copy, struct os_peer *peer, const struct os_iov *local,
                             size_t local_count, const struct os_peer_iov *remote,
                             size_t remote_count, size_t *done) {
    _Static_assert(sizeof(struct os_iov) == sizeof(struct iovec) &&
                       sizeof(struct os_peer_iov) == sizeof(struct iovec) &&
                       offsetof(struct os_peer_iov, len) == offsetof(struct iovec, iov_len),
                   "the lists are laid out as iovec");
    const struct iovec *here = (const struct iovec *)(const void *)local;
    const struct iovec *there = (const struct iovec *)(const void *)remote;
    size_t here_at = 0, here_off = 0, there_at = 0, there_off = 0;
    *done = 0;
    for (;;) {
        struct window l, r;
        fill_window(&l, here, local_count, here_at, here_off);
        fill_window(&r, there, remote_count, there_at, there_off);
        if (l.count == 0 || r.count == 0) return SN_OK;
        if (!alive_lately(peer)) return SN_E_PEER_GONE;
        ssize_t n = os_fault_hit(OS_FAULT_SYSCALL)
                        ? (errno = ENOMEM, -1)
                        : copy((pid_t)peer->pid, l.piece, l.count, r.piece, r.count, 0);
        if (n < 0) return copy_status(peer, errno);
        if (n == 0) return SN_E_FAULT; /* not with bytes left on both sides */
        *done += (size_t)n;
        advance(here, local_count, &here_at, &here_off, (size_t)n);
        advance(there, remote_count, &there_at, &there_off, (size_t)n);
    }
}

sn_status os_peer_readv(struct os_peer *peer, const struct os_iov *local, size_t local_count,
                        const struct os_peer_iov *remote, size_t remote_count, size_t *done) {
    return copy_pieces(process_vm_readv, peer, local, local_count, remote, remote_count, done);
}

sn_status os_peer_writev(struct os_peer *peer, const struct os_iov *local, size_t local_count,
                         const struct os_peer_iov *remote, size_t remote_count, size_t *done) {
    return copy_pieces(process_vm_writev, peer, local, local_count, remote, remote_count, done);
}
