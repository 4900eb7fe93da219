/* SPDX-License-Identifier: MIT */
#include "os/io/sock.h"
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/base.h"
#include "os/linux/errno_status.h"
#include "os/prim/fault.h"

/* The vector goes to the kernel as it is. */
_Static_assert(sizeof(struct os_iov) == sizeof(struct iovec) &&
                   offsetof(struct os_iov, base) == offsetof(struct iovec, iov_base) &&
                   offsetof(struct os_iov, len) == offsetof(struct iovec, iov_len),
               "os_iov is laid out as iovec");

static bool inject(int number) {
    if (SN_LIKELY(!os_fault_hit(OS_FAULT_SYSCALL))) return false;
    errno = number;
    return true;
}

static void set_flag(int fd, int level, int name, int value) {
    (void)setsockopt(fd, level, name, &value, sizeof value);
}

sn_status os_sock_tcp(uint16_t family, os_sock *out) {
    *out = OS_SOCK_NONE;
    if (family != 4 && family != 6) return SN_E_PARAM;
    int fd = inject(EMFILE) ? -1
                            : socket(family == 4 ? AF_INET : AF_INET6,
                                     SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0) return errno == ENOMEM ? SN_E_RESOURCES : os_errno_status(errno);
    set_flag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    /* The two families are two name spaces for ports, as adapters are per address. */
    if (family == 6) set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    *out = fd;
    return SN_OK;
}

sn_status os_sock_bind(os_sock s, const struct os_addr *local, enum os_bind_mode mode) {
    _Alignas(8) uint8_t sa[OS_SOCKADDR_MAX];
    if (local->family == 0) return SN_E_ADDR_INVALID;
    size_t cb = os_addr_to_sockaddr(local, sa);
    if (mode != OS_BIND_UNIQUE) set_flag((int)s, SOL_SOCKET, SO_REUSEADDR, 1);
    if (mode == OS_BIND_SHARED) set_flag((int)s, SOL_SOCKET, SO_REUSEPORT, 1);
    if (!inject(ENOMEM) && bind((int)s, (struct sockaddr *)(void *)sa, (socklen_t)cb) == 0)
        return SN_OK;
    switch (errno) {
    case EINVAL: /* link-local without its scope, or already bound */
    case EAFNOSUPPORT:
    case ENODEV:
        return SN_E_ADDR_INVALID;
    case ENOMEM:
        return SN_E_RESOURCES;
    default:
        return os_errno_status(errno);
    }
}

sn_status os_sock_listen(os_sock s, uint32_t backlog) {
    int want = backlog == 0 || backlog > SOMAXCONN ? SOMAXCONN : (int)backlog;
    /* Two listeners that both share their port would be load balanced by the kernel. With sharing
     * switched off for the moment of the call, the second one is refused; switched on again, new
     * connectors can still be bound beside this listener. */
    int shared = 0;
    socklen_t cb = sizeof shared;
    if (getsockopt((int)s, SOL_SOCKET, SO_REUSEPORT, &shared, &cb) != 0) shared = 0;
    if (shared) set_flag((int)s, SOL_SOCKET, SO_REUSEPORT, 0);
    int e = inject(ENOMEM) || listen((int)s, want) != 0 ? errno : 0;
    if (shared) set_flag((int)s, SOL_SOCKET, SO_REUSEPORT, 1);
    if (e == ENOMEM) return SN_E_RESOURCES;
    return e == EINVAL ? SN_E_STATE : os_errno_status(e);
}

/* Errors of a connection that died in the queue, or already pending on it: take the next. */
static bool is_dead_arrival(int e) {
    switch (e) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

static sn_status get_name(os_sock s, struct os_addr *out,
                          int (*get)(int, struct sockaddr *restrict, socklen_t *restrict)) {
    struct sockaddr_storage sa;
    socklen_t cb = sizeof sa;
    if (get((int)s, (struct sockaddr *)&sa, &cb) != 0) return os_errno_status(errno);
    return os_addr_from_sockaddr(out, &sa, cb);
}

/* Nothing is congested between two sockets of one address, and a congestion control that paces
 * (BBR) halves a stream there. Every kernel has Reno, and every user may choose it. */
static void spare_congestion_control(os_sock s, const struct os_addr *peer) {
    static const char plain[] = "reno";
    struct os_addr own;
    if (!os_addr_is_loopback(peer) &&
        (get_name(s, &own, getsockname) != SN_OK || !os_addr_same_ip(&own, peer)))
        return;
    (void)setsockopt((int)s, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof plain - 1);
}

sn_status os_sock_accept(os_sock s, os_sock *out, struct os_addr *peer) {
    *out = OS_SOCK_NONE;
    for (;;) {
        struct sockaddr_storage sa;
        socklen_t cb = sizeof sa;
        int fd = inject(EMFILE)
                     ? -1
                     : accept4((int)s, (struct sockaddr *)&sa, &cb, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && is_dead_arrival(errno)) continue;
        if (fd < 0 && errno == EINVAL) return SN_E_STATE;
        if (fd < 0) return errno == ENOMEM ? SN_E_RESOURCES : os_errno_status(errno);
        struct os_addr from;
        if (os_addr_from_sockaddr(&from, &sa, cb) != SN_OK) {
            close(fd);
            return SN_E_INTERNAL;
        }
        set_flag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        spare_congestion_control(fd, &from);
        if (peer) *peer = from;
        *out = fd;
        return SN_OK;
    }
}

/* Destinations that no TCP connection can have; the kernel would give odd answers or, for the
 * unspecified address, connect to this machine. */
static bool is_connectable(const struct os_addr *a) {
    if (a->family == 0 || a->port == 0 || os_addr_is_any(a)) return false;
    if (a->family == 4) return a->ip[0] < 224;
    return a->ip[0] != 0xff;
}

static sn_status connect_status(os_sock s, int e) {
    switch (e) {
    case EADDRNOTAVAIL: {
        /* With a port of its own the pair is taken; without, no port was left to choose. */
        struct os_addr own;
        bool bound = get_name(s, &own, getsockname) == SN_OK && own.port != 0;
        return bound ? SN_E_ADDR_EXISTS : SN_E_NO_PORTS;
    }
    case EADDRINUSE:
        return SN_E_ADDR_EXISTS;
    case EAGAIN:
        return SN_E_NO_PORTS;
    case EINVAL: /* link-local without its scope */
    case EAFNOSUPPORT:
    case ENETDOWN:
    case ENODEV:
        return e == ENETDOWN ? SN_E_NET_UNREACHABLE : SN_E_NET_NAME;
    case ENOMEM:
        return SN_E_RESOURCES;
    default:
        return os_errno_status(e);
    }
}

sn_status os_sock_connect(os_sock s, const struct os_addr *peer) {
    _Alignas(8) uint8_t sa[OS_SOCKADDR_MAX];
    if (!is_connectable(peer)) return SN_E_NET_NAME;
    size_t cb = os_addr_to_sockaddr(peer, sa);
    if (!inject(ENOMEM) && connect((int)s, (struct sockaddr *)(void *)sa, (socklen_t)cb) == 0) {
        spare_congestion_control(s, peer);
        return SN_OK;
    }
    /* An interrupted connect goes on in the background like a pending one. */
    if (errno == EINTR) return SN_PENDING;
    return connect_status(s, errno);
}

sn_status os_sock_connect_result(os_sock s) {
    struct pollfd p = { .fd = (int)s, .events = POLLOUT };
    int ready = poll(&p, 1, 0);
    if (ready == 0 || (ready < 0 && errno == EINTR)) return SN_E_AGAIN;
    int e = 0;
    socklen_t cb = sizeof e;
    if (inject(ENOMEM) || getsockopt((int)s, SOL_SOCKET, SO_ERROR, &e, &cb) != 0)
        return errno == ENOMEM ? SN_E_RESOURCES : os_errno_status(errno);
    if (e != 0) return connect_status(s, e);
    /* No error and not connected: connect was never called, or its error was already taken. */
    struct os_addr peer;
    sn_status st = get_name(s, &peer, getpeername);
    if (st == SN_OK) spare_congestion_control(s, &peer);
    return st;
}

bool os_sock_writable(os_sock s) {
    struct pollfd p = { .fd = (int)s, .events = POLLOUT };
    return poll(&p, 1, 0) != 0;
}

static size_t total_len(const struct os_iov *iov, size_t count) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += iov[i].len;
    return n;
}

/* Of an established connection: whatever the network reports, the connection is over. */
static SN_COLD sn_status stream_status(int e) {
    switch (e) {
    case EAGAIN:
        return SN_E_AGAIN;
    case ENOMEM:
    case ENOBUFS:
        return SN_E_RESOURCES;
    case EFAULT:
        return SN_E_FAULT;
    case ENOTCONN:
        return SN_E_NOT_CONNECTED;
    case EBADF:
    case ENOTSOCK:
        return SN_E_HANDLE;
    case EINVAL:
        return SN_E_PARAM;
    default:
        return SN_E_PEER_GONE;
    }
}

/* The system calls themselves: the C library's functions are cancellation points, which costs on
 * each call, and sanitizers would check memory that the kernel alone may judge. In line, because
 * its syscall() and errno lie in pages of their own, whose translations some machines forget in
 * each call. The result, or below 0 the error's number. */
static inline long call(long number, os_sock s, const void *p, size_t n, int flags) {
#if defined(__x86_64__) && defined(__LP64__)
    long result;
    register long r10 __asm__("r10") = flags;
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"((long)s), "S"(p), "d"(n), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    long result = syscall(number, (int)s, p, n, flags, NULL, NULL);
    return result < 0 ? -errno : result;
#endif
}

/* Not even the call of a function where there is nothing to inject. */
static inline bool fails(void) {
#if defined(SN_FAULT_INJECTION)
    return os_fault_hit(OS_FAULT_SYSCALL);
#else
    return false;
#endif
}

SN_HOT sn_status os_sock_readv(os_sock s, const struct os_iov *iov, size_t count, size_t *got) {
    *got = 0;
    long n;
    do {
        if (fails()) {
            n = -ECONNRESET;
        } else if (count == 1) {
            n = call(SYS_recvfrom, s, iov->base, iov->len, 0);
        } else {
            struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov,
                                  .msg_iovlen = SN_MIN(count, (size_t)OS_IOV_MAX) };
            n = call(SYS_recvmsg, s, &msg, 0, 0);
        }
    } while (SN_UNLIKELY(n == -EINTR));
    if (n > 0) {
        *got = (size_t)n;
        return SN_OK;
    }
    if (n == 0) return total_len(iov, SN_MIN(count, (size_t)OS_IOV_MAX)) ? SN_E_EOF : SN_E_PARAM;
    return n == -EAGAIN ? SN_E_AGAIN : stream_status((int)-n);
}

SN_HOT sn_status os_sock_writev(os_sock s, const struct os_iov *iov, size_t count, size_t *put) {
    *put = 0;
    long n;
    do {
        if (fails()) {
            n = -ECONNRESET;
        } else if (count == 1) {
            n = call(SYS_sendto, s, iov->base, iov->len, MSG_NOSIGNAL);
        } else {
            struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov,
                                  .msg_iovlen = SN_MIN(count, (size_t)OS_IOV_MAX) };
            n = call(SYS_sendmsg, s, &msg, MSG_NOSIGNAL, 0);
        }
    } while (SN_UNLIKELY(n == -EINTR));
    if (n < 0) return stream_status((int)-n);
    *put = (size_t)n;
    return SN_OK;
}

void os_sock_shutdown_write(os_sock s) {
    (void)shutdown((int)s, SHUT_WR);
}

void os_sock_close(os_sock s, bool linger_zero) {
    if (s == OS_SOCK_NONE) return;
    if (linger_zero) {
        struct linger reset = { .l_onoff = 1, .l_linger = 0 };
        (void)setsockopt((int)s, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    close((int)s);
}

sn_status os_sock_local(os_sock s, struct os_addr *out) {
    return get_name(s, out, getsockname);
}

sn_status os_sock_peer(os_sock s, struct os_addr *out) {
    return get_name(s, out, getpeername);
}

uint32_t os_sock_mss(os_sock s) {
    int mss = 0;
    socklen_t cb = sizeof mss;
    if (getsockopt((int)s, IPPROTO_TCP, TCP_MAXSEG, &mss, &cb) != 0 || mss <= 0) return 536;
    return (uint32_t)mss;
}

void os_sock_set_buffers(os_sock s, uint32_t send_bytes, uint32_t recv_bytes) {
    if (send_bytes) set_flag((int)s, SOL_SOCKET, SO_SNDBUF, (int)SN_MIN(send_bytes, 1u << 30));
    if (recv_bytes) set_flag((int)s, SOL_SOCKET, SO_RCVBUF, (int)SN_MIN(recv_bytes, 1u << 30));
}

void os_sock_ack_now(os_sock s) {
    set_flag((int)s, IPPROTO_TCP, TCP_QUICKACK, 1);
}

sn_status os_sock_route(const struct os_addr *peer, struct os_addr *local) {
    struct os_addr to = *peer;
    if (to.port == 0) to.port = 9; /* any port: nothing is sent */
    if (!is_connectable(&to)) return SN_E_NET_NAME;
    int fd = inject(EMFILE)
                 ? -1
                 : socket(to.family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno == ENOMEM ? SN_E_RESOURCES : os_errno_status(errno);
    _Alignas(8) uint8_t sa[OS_SOCKADDR_MAX];
    size_t cb = os_addr_to_sockaddr(&to, sa);
    sn_status st;
    if (connect(fd, (struct sockaddr *)(void *)sa, (socklen_t)cb) != 0)
        st = connect_status(fd, errno);
    else
        st = get_name(fd, &to, getsockname);
    close(fd);
    if (st != SN_OK) return st;
    to.port = 0;
    *local = to;
    return SN_OK;
}
