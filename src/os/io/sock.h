/* SPDX-License-Identifier: MIT
 * sock.h - non-blocking TCP sockets.
 * Owns:    socket options and the mapping of system error numbers (one function per OS).
 * Threads: a socket may be read and written by two threads at once; open and close by one.
 * Errors:  named at each call; a would-be block is SN_E_AGAIN.
 */
#ifndef SN_OS_SOCK_H
#define SN_OS_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "os/io/addr.h"

typedef intptr_t os_sock; /* OS_SOCK_NONE: none */
#define OS_SOCK_NONE ((os_sock)-1)

struct os_iov {
    void *base;
    size_t len;
};
#define OS_IOV_MAX 64

enum os_bind_mode {
    OS_BIND_UNIQUE, /* nobody else may have the port */
    OS_BIND_REUSE,  /* may take over a port in TIME_WAIT */
    OS_BIND_SHARED  /* may share the port with other OS_BIND_SHARED sockets of this user */
};

/* A new TCP socket, close-on-exec, non-blocking, no delay. SN_E_RESOURCES: out of descriptors. */
SN_MUST_CHECK sn_status os_sock_tcp(uint16_t family, os_sock *out);
/* SN_E_ADDR_IN_USE, SN_E_ADDR_INVALID (not an address of this machine), SN_E_PERM. */
SN_MUST_CHECK sn_status os_sock_bind(os_sock s, const struct os_addr *local,
                                     enum os_bind_mode mode);
/* SN_E_ADDR_IN_USE when somebody listens there already, also between OS_BIND_SHARED sockets (a bind
 * of a sharing socket at the very moment of this call may meet SN_E_ADDR_IN_USE). backlog 0: the
 * largest. SN_E_STATE: connected. */
SN_MUST_CHECK sn_status os_sock_listen(os_sock s, uint32_t backlog);
/* SN_E_AGAIN when there is none; SN_E_RESOURCES; SN_E_STATE: not listening. peer may be NULL. */
SN_MUST_CHECK sn_status os_sock_accept(os_sock s, os_sock *out, struct os_addr *peer);
/* Starts connecting: SN_PENDING (wait for writable, then os_sock_connect_result) or SN_OK;
 * SN_E_REFUSED, SN_E_NET_UNREACHABLE, SN_E_HOST_UNREACHABLE, SN_E_ADDR_EXISTS (4-tuple in use),
 * SN_E_NET_NAME, SN_E_NO_PORTS. */
SN_MUST_CHECK sn_status os_sock_connect(os_sock s, const struct os_addr *peer);
/* The outcome of a pending connect, SN_E_AGAIN while it is still under way; SN_E_TIMEOUT as well. A
 * failure is told once, SN_E_NOT_CONNECTED after that. */
SN_MUST_CHECK sn_status os_sock_connect_result(os_sock s);
/* True if a write to this connected socket would take a good deal now, or fail: what OS_POLL_OUT
 * tells. */
bool os_sock_writable(os_sock s);

/* Reads into the pieces in order. *got > 0 with SN_OK; SN_E_EOF after the peer's FIN; SN_E_AGAIN;
 * SN_E_FAULT: a piece is not writable memory (*got bytes before it were stored, possibly 0);
 * SN_E_PEER_GONE: reset, time-out. The system tells an error once, to whichever of reading and
 * writing meets it first; reading after that gives SN_E_EOF. SN_E_NOT_CONNECTED; SN_E_PARAM: no
 * room at all in the pieces. More than OS_IOV_MAX pieces: the rest is left for the next call. */
SN_MUST_CHECK sn_status os_sock_readv(os_sock s, const struct os_iov *iov, size_t count,
                                      size_t *got);
/* Likewise; never raises SIGPIPE. SN_OK with *put < total when the socket is full after a part. */
SN_MUST_CHECK sn_status os_sock_writev(os_sock s, const struct os_iov *iov, size_t count,
                                       size_t *put);
void os_sock_shutdown_write(os_sock s);
/* Closes; OS_SOCK_NONE is ignored. linger_zero: reset the connection instead of a FIN. */
void os_sock_close(os_sock s, bool linger_zero);

SN_MUST_CHECK sn_status os_sock_local(os_sock s, struct os_addr *out);
SN_MUST_CHECK sn_status os_sock_peer(os_sock s, struct os_addr *out);
/* The present maximum segment size in bytes; 536 if the system does not tell. */
uint32_t os_sock_mss(os_sock s);
/* Best effort: send and receive buffer sizes in bytes; 0 leaves one as it is. */
void os_sock_set_buffers(os_sock s, uint32_t send_bytes, uint32_t recv_bytes);
/* A hint: what was read just now is acknowledged at once, not with an answer that may follow. */
void os_sock_ack_now(os_sock s);
/* The local address (port 0) the system would use towards peer, whose port does not matter:
 * SN_E_NET_UNREACHABLE etc. */
SN_MUST_CHECK sn_status os_sock_route(const struct os_addr *peer, struct os_addr *local);

#endif
