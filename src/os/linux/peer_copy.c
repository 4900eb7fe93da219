/* SPDX-License-Identifier: MIT
 * process_vm_readv and its sister name the other process by number. The descriptor of the process
 * (pidfd) taken at the start becomes readable when that process has ended; until then the number
 * is its own, but its memory is another one once it has executed a program. One call sees one
 * memory, and ends at the first piece that is not there. So a call that has to be sure begins with
 * the mark: reading it tells the right memory by its value, and writing it (the value that it has)
 * works nowhere else, since nothing else lies at that address. It costs some 0.3 us of 2. */
#include "os/io/peer_copy.h"
#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/base.h"
#include "os/linux/errno_status.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"
#include "os/prim/thread.h"

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

/* ---- marks ---- */

static os_once mark_once = OS_ONCE_INIT;
static struct os_peer_mark own_mark; /* [const] once made */

/* A page of its own, where no program puts anything by itself: below the top, where stacks and
 * mappings are, and above what programs are linked for. */
static void make_mark(void) {
    uint64_t random[2];
    size_t page = os_page_size();
    os_random_bytes(random, sizeof random);
    uintptr_t hint = 0;
    if (sizeof hint == 8)
        hint = (uintptr_t)((((uint64_t)1 << 44) + random[0] % ((uint64_t)1 << 45)) & ~(page - 1));
    void *p = mmap((void *)hint, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    uint64_t *word = (uint64_t *)p + random[0] % (page / sizeof random[0]);
    *word = random[1];
    own_mark = (struct os_peer_mark){ (uint64_t)(uintptr_t)word, random[1] };
}

struct os_peer_mark os_peer_own_mark(void) {
    os_once_run(&mark_once, make_mark);
    return own_mark;
}

static bool has_mark(pid_t pid, const struct os_peer_mark *mark) {
    uint64_t word = 0;
    struct iovec here = { &word, sizeof word };
    struct iovec there = { (void *)(uintptr_t)mark->addr, sizeof word };
    ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
    /* Who may not look does not know. */
    if (n < 0 && errno != EFAULT && errno != ESRCH) return true;
    return n == (ssize_t)sizeof word && word == mark->value;
}

bool os_peer_alive(const struct os_peer *peer) {
    struct pollfd p = { .fd = (int)peer->handle, .events = POLLIN };
    if (peer->pid == 0 || poll(&p, 1, 0) != 0) return false;
    return peer->mark.addr == 0 || has_mark((pid_t)peer->pid, &peer->mark);
}

sn_status os_peer_recognise(struct os_peer *peer, const struct os_peer_mark *mark) {
    uint64_t word = 0;
    struct os_iov here = { &word, sizeof word };
    struct os_peer_iov there = { mark->addr, sizeof word };
    size_t done;
    if (mark->addr == 0) return SN_E_PEER_GONE;
    sn_status st = os_peer_readv(peer, &here, 1, &there, 1, &done);
    if (st != SN_OK) return st;
    if (word != mark->value) return SN_E_PEER_GONE;
    peer->mark = *mark;
    return SN_OK;
}

/* ---- copies ---- */

sn_status os_peer_allow(void) {
    if (prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) == 0) return SN_OK;
    return errno == EINVAL ? SN_OK : SN_E_PERM; /* EINVAL: no Yama here, none needed */
}

/* The pieces not copied yet, as the kernel takes them; filled up from the caller's lists. */
struct window {
    struct iovec piece[1 + OS_IOV_MAX]; /* the first is the mark's, used or not */
    size_t count;                       /* without it */
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
        w->piece[1 + w->count++] =
            (struct iovec){ (void *)((uintptr_t)list[at].iov_base + off), len };
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

/* Asking whether it lives costs as much as a small copy, so a peer that was alive just now is not
 * asked again. */
static bool alive_lately(struct os_peer *peer, uint64_t now) {
    if (now - os_u64_load_relaxed(&peer->alive_ns) < OS_NS_PER_MS) return true;
    if (!os_peer_alive(peer)) return false;
    os_u64_store_relaxed(&peer->alive_ns, now);
    return true;
}

/* One call of the system, with the mark in front if it is to be sure. *n: bytes copied of the
 * windows. */
static sn_status copy_windows(copy_fn *copy, struct os_peer *peer, struct window *l,
                              struct window *r, size_t *n) {
    uint64_t now = os_now_ns(), word = peer->mark.value;
    bool sure =
        peer->mark.addr != 0 && (SN_MIN(l->bytes, r->bytes) >= OS_MARKED_BYTES ||
                                 now - os_u64_load_relaxed(&peer->alive_ns) >= OS_MARKED_NS);
    if (peer->mark.addr == 0 && !alive_lately(peer, now)) return SN_E_PEER_GONE;
    l->piece[0] = (struct iovec){ &word, sizeof word };
    r->piece[0] = (struct iovec){ (void *)(uintptr_t)peer->mark.addr, sizeof word };
    size_t from = sure ? 0 : 1;
    ssize_t did = os_fault_hit(OS_FAULT_SYSCALL)
                      ? (errno = ENOMEM, -1)
                      : copy((pid_t)peer->pid, &l->piece[from], l->count + 1 - from,
                             &r->piece[from], r->count + 1 - from, 0);
    if (did < 0) return copy_status(peer, errno);
    if (sure) {
        if ((size_t)did < sizeof word || word != peer->mark.value) return SN_E_PEER_GONE;
        did -= (ssize_t)sizeof word;
        os_u64_store_relaxed(&peer->alive_ns, now);
    }
    *n = (size_t)did;
    return did == 0 ? SN_E_FAULT : SN_OK; /* not with bytes left on both sides */
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
        size_t n;
        sn_status st = copy_windows(copy, peer, &l, &r, &n);
        if (st != SN_OK) return st;
        *done += n;
        advance(here, local_count, &here_at, &here_off, n);
        advance(there, remote_count, &there_at, &there_off, n);
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
