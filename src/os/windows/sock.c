/* SPDX-License-Identifier: MIT
 * Sharing ports. Winsock's SO_REUSEADDR is not that of other systems: it lets a socket have a port
 * that another one is using, listening or not. So
 *   OS_BIND_UNIQUE  SO_EXCLUSIVEADDRUSE: nobody else, not even a port in TIME_WAIT.
 *   OS_BIND_REUSE   no option: a port in TIME_WAIT may be taken, one in use may not.
 *   OS_BIND_SHARED  SO_REUSEADDR.
 * Between sharing sockets the system would also allow two listeners, and give each connection to
 * either; os_sock_listen therefore looks for another listener in the system's table first. Between
 * the look and the call another process may come in: both would listen then. */
#include "os/io/sock.h"
#include <winsock2.h>
#include <ws2tcpip.h>
#include <mstcpip.h>
#include <windows.h>
#include <iphlpapi.h>
#include <limits.h>
#include <string.h>
#include "base/base.h"
#include "os/prim/fault.h"
#include "os/prim/thread.h"
#include "os/windows/pipe.h"
#include "os/windows/wsa_status.h"

/* Not in the headers of every compiler. */
#ifndef TCP_MAXSEG
#define TCP_MAXSEG 4
#endif

static os_once wsa_once = OS_ONCE_INIT;

static void start_winsock(void) {
    WSADATA data;
    /* A failure shows at the first socket, as WSANOTINITIALISED. Never cleaned up: the module is
     * unloaded at any time without notice, and the process's end does it. */
    (void)WSAStartup(MAKEWORD(2, 2), &data);
}

void os_wsa_start(void) {
    os_once_run(&wsa_once, start_winsock);
}

static bool inject(int number) {
    if (SN_LIKELY(!os_fault_hit(OS_FAULT_SYSCALL))) return false;
    WSASetLastError(number);
    return true;
}

static void set_flag(SOCKET s, int level, int name, int value) {
    (void)setsockopt(s, level, name, (const char *)&value, sizeof value);
}

static bool make_nonblocking(SOCKET s) {
    u_long on = 1;
    return ioctlsocket(s, (long)FIONBIO, &on) == 0;
}

sn_status os_sock_tcp(uint16_t family, os_sock *out) {
    *out = OS_SOCK_NONE;
    if (family != 4 && family != 6) return SN_E_PARAM;
    os_wsa_start();
    SOCKET s = inject(WSAEMFILE)
                   ? INVALID_SOCKET
                   : WSASocketW(family == 4 ? AF_INET : AF_INET6, SOCK_STREAM, IPPROTO_TCP, NULL, 0,
                                WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    if (s == INVALID_SOCKET) return os_wsa_status(WSAGetLastError());
    if (!make_nonblocking(s)) {
        sn_status st = os_wsa_status(WSAGetLastError());
        closesocket(s);
        return st;
    }
    set_flag(s, IPPROTO_TCP, TCP_NODELAY, 1);
    /* The two families are two name spaces for ports, as adapters are per address. */
    if (family == 6) set_flag(s, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    *out = (os_sock)s;
    return SN_OK;
}

static sn_status get_name(os_sock s, struct os_addr *out,
                          int(WSAAPI *get)(SOCKET, struct sockaddr *, int *)) {
    struct sockaddr_storage sa = { 0 };
    int cb = sizeof sa;
    if (get((SOCKET)s, (struct sockaddr *)&sa, &cb) != 0) return os_wsa_status(WSAGetLastError());
    return os_addr_from_sockaddr(out, &sa, (size_t)cb);
}

sn_status os_sock_bind(os_sock s, const struct os_addr *local, enum os_bind_mode mode) {
    _Alignas(8) uint8_t sa[OS_SOCKADDR_MAX];
    if (local->family == 0) return SN_E_ADDR_INVALID;
    size_t cb = os_addr_to_sockaddr(local, sa);
    if (mode == OS_BIND_UNIQUE) set_flag((SOCKET)s, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, 1);
    if (mode == OS_BIND_SHARED) {
        set_flag((SOCKET)s, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, 0);
        set_flag((SOCKET)s, SOL_SOCKET, SO_REUSEADDR, 1);
    }
    if (!inject(WSAENOBUFS) && bind((SOCKET)s, (struct sockaddr *)(void *)sa, (int)cb) == 0)
        return SN_OK;
    int e = WSAGetLastError();
    switch (e) {
    case WSAEINVAL: /* link-local without its scope, or already bound */
    case WSAEFAULT: /* the other family: an address too short */
    case WSAEAFNOSUPPORT:
        return SN_E_ADDR_INVALID;
    case WSAEACCES: /* somebody has it exclusively, or it is excluded from use */
        return SN_E_ADDR_IN_USE;
    default:
        return os_wsa_status(e);
    }
}

/* ---- listening ---- */

/* Calls GetExtendedTcpTable until its table fits; NULL: not to be had. Freed with os_free. */
static void *read_listeners(ULONG family) {
    DWORD cb = 4096;
    for (int round = 0; round < 8; round++) {
        void *table = os_zalloc(cb);
        if (!table) return NULL;
        DWORD e = GetExtendedTcpTable(table, &cb, FALSE, family, TCP_TABLE_OWNER_PID_LISTENER, 0);
        if (e == NO_ERROR) return table;
        os_free(table);
        if (e != ERROR_INSUFFICIENT_BUFFER) return NULL;
        cb += 4096; /* it may grow until the next call */
    }
    return NULL;
}

/* Whether somebody listens on exactly this address and port. */
static bool has_listener(const struct os_addr *a) {
    void *table = read_listeners(a->family == 4 ? AF_INET : AF_INET6);
    bool found = false;
    if (!table) return false;
    if (a->family == 4) {
        const MIB_TCPTABLE_OWNER_PID *t = table;
        for (DWORD i = 0; i < t->dwNumEntries && !found; i++)
            found = ntohs((uint16_t)t->table[i].dwLocalPort) == a->port &&
                    memcmp(&t->table[i].dwLocalAddr, a->ip, 4) == 0;
    } else {
        const MIB_TCP6TABLE_OWNER_PID *t = table;
        for (DWORD i = 0; i < t->dwNumEntries && !found; i++)
            found = ntohs((uint16_t)t->table[i].dwLocalPort) == a->port &&
                    memcmp(t->table[i].ucLocalAddr, a->ip, 16) == 0;
    }
    os_free(table);
    return found;
}

sn_status os_sock_listen(os_sock s, uint32_t backlog) {
    int want = backlog == 0 || backlog > SOMAXCONN ? SOMAXCONN : (int)backlog;
    BOOL shared = FALSE;
    int cb = sizeof shared;
    struct os_addr own;
    if (getsockopt((SOCKET)s, SOL_SOCKET, SO_REUSEADDR, (char *)&shared, &cb) != 0) shared = FALSE;
    if (shared && get_name(s, &own, getsockname) == SN_OK && has_listener(&own)) {
        DWORD on = 0;
        cb = sizeof on;
        bool self = getsockopt((SOCKET)s, SOL_SOCKET, SO_ACCEPTCONN, (char *)&on, &cb) == 0 && on;
        if (!self) return SN_E_ADDR_IN_USE;
    }
    if (!inject(WSAENOBUFS) && listen((SOCKET)s, want) == 0) return SN_OK;
    int e = WSAGetLastError();
    return e == WSAEINVAL || e == WSAEISCONN ? SN_E_STATE : os_wsa_status(e);
}

sn_status os_sock_accept(os_sock s, os_sock *out, struct os_addr *peer) {
    *out = OS_SOCK_NONE;
    for (;;) {
        struct sockaddr_storage sa = { 0 };
        int cb = sizeof sa;
        SOCKET fd =
            inject(WSAEMFILE) ? INVALID_SOCKET : accept((SOCKET)s, (struct sockaddr *)&sa, &cb);
        if (fd == INVALID_SOCKET) {
            int e = WSAGetLastError();
            /* Died in the queue; Wine says the last. */
            if (e == WSAECONNRESET || e == WSAECONNABORTED || e == WSAENOTCONN) continue;
            return e == WSAEINVAL ? SN_E_STATE : os_wsa_status(e);
        }
        struct os_addr from;
        if (os_addr_from_sockaddr(&from, &sa, (size_t)cb) != SN_OK || !make_nonblocking(fd)) {
            closesocket(fd);
            return SN_E_INTERNAL;
        }
        /* Accepted sockets can be inherited, whatever the listener is. */
        (void)SetHandleInformation((HANDLE)fd, HANDLE_FLAG_INHERIT, 0);
        set_flag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        if (peer) *peer = from;
        *out = (os_sock)fd;
        return SN_OK;
    }
}

/* ---- connecting ---- */

/* Destinations that no TCP connection can have; the system would give odd answers. */
static bool is_connectable(const struct os_addr *a) {
    if (a->family == 0 || a->port == 0 || os_addr_is_any(a)) return false;
    if (a->family == 4) return a->ip[0] < 224;
    return a->ip[0] != 0xff;
}

static sn_status connect_status(os_sock s, int e) {
    switch (e) {
    case WSAEWOULDBLOCK:
        return SN_PENDING;
    case WSAEADDRINUSE: /* the pair is taken */
        return SN_E_ADDR_EXISTS;
    case WSAEADDRNOTAVAIL: {
        /* With a port of its own the pair is taken; without, no port was left to choose. */
        struct os_addr own;
        bool bound = get_name(s, &own, getsockname) == SN_OK && own.port != 0;
        return bound ? SN_E_ADDR_EXISTS : SN_E_NO_PORTS;
    }
    case WSAENOBUFS:
        return SN_E_NO_PORTS;
    case WSAEINVAL: /* link-local without its scope */
    case WSAEFAULT:
    case WSAEAFNOSUPPORT:
        return SN_E_NET_NAME;
    default:
        return os_wsa_status(e);
    }
}

/* A refused connection is tried again by the system, for two seconds in all. On the loopback
 * interface no answer is lost, so the first refusal is final. */
static void refuse_at_once(SOCKET s) {
#if defined(SIO_TCP_INITIAL_RTO)
    TCP_INITIAL_RTO_PARAMETERS rto = { .Rtt = TCP_INITIAL_RTO_UNSPECIFIED_RTT,
                                       .MaxSynRetransmissions = (UCHAR)-2 };
    DWORD got = 0;
    (void)WSAIoctl(s, SIO_TCP_INITIAL_RTO, &rto, sizeof rto, NULL, 0, &got, NULL, NULL);
#else
    (void)s;
#endif
}

sn_status os_sock_connect(os_sock s, const struct os_addr *peer) {
    _Alignas(8) uint8_t sa[OS_SOCKADDR_MAX];
    if (!is_connectable(peer)) return SN_E_NET_NAME;
    size_t cb = os_addr_to_sockaddr(peer, sa);
    if (os_addr_is_loopback(peer)) refuse_at_once((SOCKET)s);
    if (!inject(WSAENOBUFS) && connect((SOCKET)s, (struct sockaddr *)(void *)sa, (int)cb) == 0)
        return SN_OK;
    return connect_status(s, WSAGetLastError());
}

sn_status os_sock_connect_result(os_sock s) {
    fd_set writable, failed;
    struct timeval now = { 0, 0 };
    FD_ZERO(&writable);
    FD_ZERO(&failed);
    writable.fd_array[0] = failed.fd_array[0] = (SOCKET)s;
    writable.fd_count = failed.fd_count = 1;
    struct os_addr peer;
    int e = 0, cb = sizeof e;
    int ready = inject(WSAENOBUFS) ? SOCKET_ERROR : select(0, NULL, &writable, &failed, &now);
    if (ready == SOCKET_ERROR) return os_wsa_status(WSAGetLastError());
    if (getsockopt((SOCKET)s, SOL_SOCKET, SO_ERROR, (char *)&e, &cb) != 0)
        return os_wsa_status(WSAGetLastError());
    if (e != 0) return connect_status(s, e);
    if (get_name(s, &peer, getpeername) == SN_OK) return ready ? SN_OK : SN_E_AGAIN;
    /* Not connected: under way, never tried, or connected and broken since. A socket that never
     * tried has no local port. */
    struct os_addr own;
    if (get_name(s, &own, getsockname) != SN_OK || own.port == 0) return SN_E_NOT_CONNECTED;
    return ready == 0 ? SN_E_AGAIN : SN_E_PEER_GONE;
}

bool os_sock_writable(os_sock s) {
    fd_set writable;
    struct timeval now = { 0, 0 };
    FD_ZERO(&writable);
    writable.fd_array[0] = (SOCKET)s;
    writable.fd_count = 1;
    return select(0, NULL, &writable, NULL, &now) != 0;
}

/* ---- data ---- */

/* Of an established connection: whatever the network reports, the connection is over. */
static SN_COLD sn_status stream_status(os_sock s, int e) {
    struct os_addr own;
    switch (e) {
    case WSAEWOULDBLOCK:
        return SN_E_AGAIN;
    case WSAENOBUFS:
    case WSA_NOT_ENOUGH_MEMORY:
        return SN_E_RESOURCES;
    case WSAEFAULT:
        return SN_E_FAULT;
    case WSAENOTCONN:
        /* Some systems (Wine) say this of a connection that was reset, too; only a socket that
         * never was connected has no local port. */
        return get_name(s, &own, getsockname) == SN_OK && own.port != 0 ? SN_E_PEER_GONE
                                                                        : SN_E_NOT_CONNECTED;
    case WSAENOTSOCK:
    case WSA_INVALID_HANDLE:
        return SN_E_HANDLE;
    case WSAEINVAL:
        return SN_E_PARAM;
    default:
        return SN_E_PEER_GONE;
    }
}

/* The pieces as Winsock takes them, at most OS_IOV_MAX, their sum within what a result can say;
 * empty ones are left out. Returns their number. */
static DWORD make_buffers(WSABUF out[OS_IOV_MAX], const struct os_iov *iov, size_t count) {
    DWORD n = 0;
    size_t left = INT_MAX;
    count = SN_MIN(count, (size_t)OS_IOV_MAX);
    for (size_t i = 0; i < count && left != 0; i++) {
        size_t len = SN_MIN(iov[i].len, left);
        if (len == 0) continue;
        out[n].buf = iov[i].base;
        out[n++].len = (ULONG)len;
        left -= len;
    }
    return n;
}

sn_status os_sock_readv(os_sock s, const struct os_iov *iov, size_t count, size_t *got) {
    WSABUF buf[OS_IOV_MAX];
    DWORD n = make_buffers(buf, iov, count), bytes = 0, flags = 0;
    *got = 0;
    if (n == 0) return SN_E_PARAM;
    if (inject(WSAECONNRESET) || WSARecv((SOCKET)s, buf, n, &bytes, &flags, NULL, NULL) != 0)
        return stream_status(s, WSAGetLastError());
    *got = bytes;
    return bytes ? SN_OK : SN_E_EOF;
}

sn_status os_sock_writev(os_sock s, const struct os_iov *iov, size_t count, size_t *put) {
    WSABUF buf[OS_IOV_MAX];
    DWORD n = make_buffers(buf, iov, count), bytes = 0;
    *put = 0;
    if (n == 0) return SN_OK;
    if (inject(WSAECONNRESET) || WSASend((SOCKET)s, buf, n, &bytes, 0, NULL, NULL) != 0)
        return stream_status(s, WSAGetLastError());
    *put = bytes;
    return SN_OK;
}

void os_sock_shutdown_write(os_sock s) {
    (void)shutdown((SOCKET)s, SD_SEND);
}

void os_sock_close(os_sock s, bool linger_zero) {
    if (s == OS_SOCK_NONE) return;
    if (os_pipe_is(s)) {
        os_pipe_close(s);
        return;
    }
    if (linger_zero) {
        struct linger reset = { .l_onoff = 1, .l_linger = 0 };
        (void)setsockopt((SOCKET)s, SOL_SOCKET, SO_LINGER, (const char *)&reset, sizeof reset);
    }
    closesocket((SOCKET)s);
}

/* ---- questions ---- */

sn_status os_sock_local(os_sock s, struct os_addr *out) {
    return get_name(s, out, getsockname);
}

sn_status os_sock_peer(os_sock s, struct os_addr *out) {
    return get_name(s, out, getpeername);
}

uint32_t os_sock_mss(os_sock s) {
    DWORD mss = 0;
    int cb = sizeof mss;
    if (getsockopt((SOCKET)s, IPPROTO_TCP, TCP_MAXSEG, (char *)&mss, &cb) == 0 && mss > 0 &&
        mss <= 65535)
        return mss;
#if defined(SIO_TCP_INFO)
    DWORD version = 0, got = 0;
    TCP_INFO_v0 info = { 0 };
    if (WSAIoctl((SOCKET)s, SIO_TCP_INFO, &version, sizeof version, &info, sizeof info, &got, NULL,
                 NULL) == 0 &&
        got >= sizeof info && info.Mss > 0)
        return info.Mss;
#endif
    return 536;
}

void os_sock_set_buffers(os_sock s, uint32_t send_bytes, uint32_t recv_bytes) {
    if (send_bytes) set_flag((SOCKET)s, SOL_SOCKET, SO_SNDBUF, (int)SN_MIN(send_bytes, 1u << 30));
    if (recv_bytes) set_flag((SOCKET)s, SOL_SOCKET, SO_RCVBUF, (int)SN_MIN(recv_bytes, 1u << 30));
}

void os_sock_ack_now(os_sock s) {
    (void)s;
}

sn_status os_sock_route(const struct os_addr *peer, struct os_addr *local) {
    struct os_addr to = *peer;
    if (to.port == 0) to.port = 9; /* any port: nothing is sent */
    if (!is_connectable(&to)) return SN_E_NET_NAME;
    os_wsa_start();
    SOCKET s = inject(WSAEMFILE) ? INVALID_SOCKET
                                 : WSASocketW(to.family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM,
                                              IPPROTO_UDP, NULL, 0, WSA_FLAG_NO_HANDLE_INHERIT);
    if (s == INVALID_SOCKET) return os_wsa_status(WSAGetLastError());
    _Alignas(8) uint8_t sa[OS_SOCKADDR_MAX];
    size_t cb = os_addr_to_sockaddr(&to, sa);
    sn_status st;
    if (connect(s, (struct sockaddr *)(void *)sa, (int)cb) != 0)
        st = connect_status((os_sock)s, WSAGetLastError());
    else
        st = get_name((os_sock)s, &to, getsockname);
    closesocket(s);
    if (st != SN_OK) return st;
    to.port = 0;
    *local = to;
    return SN_OK;
}
