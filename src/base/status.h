/* SPDX-License-Identifier: MIT
 * status.h - the one set of internal result codes.
 * Owns:    the meaning of every code. HRESULT and NTSTATUS exist only in ndspi/status.c and
 *          ndk/status.c, each of which maps every value below in one switch without default.
 * Threads: none.   Errors: this is them.
 */
#ifndef SN_BASE_STATUS_H
#define SN_BASE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, text): named for what happened, not for the caller who may see it. */
#define SN_STATUS_LIST(X)                                                                          \
    X(SN_OK, "success")                                                                            \
    X(SN_PENDING, "accepted, the outcome follows")                                                 \
    X(SN_E_MORE, "more input is needed")                                                           \
    X(SN_E_AGAIN, "would block")                                                                   \
    X(SN_E_EOF, "the peer closed its half of the stream")                                          \
    X(SN_E_WIRE, "the peer sent something the protocol forbids")                                   \
    X(SN_E_NOMEM, "out of memory")                                                                 \
    X(SN_E_RESOURCES, "a system or adapter limit was reached")                                     \
    X(SN_E_PARAM, "invalid parameter")                                                             \
    X(SN_E_HANDLE, "invalid handle")                                                               \
    X(SN_E_TOKEN, "no such memory token")                                                          \
    X(SN_E_RANGE, "outside the memory range")                                                      \
    X(SN_E_RIGHTS, "the memory does not allow this access")                                        \
    X(SN_E_PD, "the memory token belongs to another domain or queue pair")                         \
    X(SN_E_FAULT, "the memory is not mapped with the access needed")                               \
    X(SN_E_FULL, "the queue is full")                                                              \
    X(SN_E_TOO_LONG, "more bytes than the limit allows")                                           \
    X(SN_E_TOO_MANY_SGE, "more segments than the queue allows")                                    \
    X(SN_E_BUFFER_SMALL, "the caller's buffer is too small")                                       \
    X(SN_E_BUFFER_SIZE, "the size given is not acceptable")                                        \
    X(SN_E_STATE, "not possible in the present state")                                             \
    X(SN_E_REQUEST, "malformed or impossible request")                                             \
    X(SN_E_BUSY, "in use")                                                                         \
    X(SN_E_UNSUPPORTED, "not supported")                                                           \
    X(SN_E_CANCELED, "canceled")                                                                   \
    X(SN_E_ABORTED, "the peer gave the connection up")                                             \
    X(SN_E_REFUSED, "connection refused")                                                          \
    X(SN_E_TIMEOUT, "the peer did not answer in time")                                             \
    X(SN_E_PEER_GONE, "the connection broke")                                                      \
    X(SN_E_NOT_CONNECTED, "not connected")                                                         \
    X(SN_E_CONNECTED, "already connected")                                                         \
    X(SN_E_ADDR_IN_USE, "the address is in use by another object")                                 \
    X(SN_E_ADDR_EXISTS, "this pair of addresses is already connected")                             \
    X(SN_E_ADDR_BOUND, "the object already has an address")                                        \
    X(SN_E_ADDR_INVALID, "not an address of this adapter")                                         \
    X(SN_E_NO_PORTS, "no free port left")                                                          \
    X(SN_E_NET_NAME, "the destination is not an address one can connect to")                       \
    X(SN_E_NET_UNREACHABLE, "network unreachable")                                                 \
    X(SN_E_HOST_UNREACHABLE, "host unreachable")                                                   \
    X(SN_E_OVERRUN, "the completion queue overran")                                                \
    X(SN_E_MSG_TOO_LONG, "the message is longer than the receive")                                 \
    X(SN_E_PEER_MSG_TOO_LONG, "the peer's receive was shorter than the message")                   \
    X(SN_E_REMOTE, "the request caused an error at the peer")                                      \
    X(SN_E_REMOTE_RANGE, "a Read goes past the end of the peer's memory")                          \
    X(SN_E_PERM, "permission denied")                                                              \
    X(SN_E_NOT_FOUND, "not found")                                                                 \
    X(SN_E_REMOVED, "the adapter is gone")                                                         \
    X(SN_E_INTERNAL, "internal error")

#define SN_STATUS_ENUM(name, text) name,
typedef enum sn_status { SN_STATUS_LIST(SN_STATUS_ENUM) SN_STATUS_COUNT } sn_status;
#undef SN_STATUS_ENUM

#if defined(__GNUC__)
#define SN_MUST_CHECK __attribute__((warn_unused_result))
#if defined(__MINGW32__) && !defined(__clang__) /* where printf would mean the C runtime's */
#define SN_PRINTF(fmt, args) __attribute__((format(gnu_printf, fmt, args)))
#else
#define SN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#endif
#define SN_COLD __attribute__((cold))
/* On the way of a small message: such functions lie beside each other, for after a system call a
 * machine may have to translate each page of code anew. */
#define SN_HOT __attribute__((hot))
#define SN_NOINLINE __attribute__((noinline))
/* For code that may read memory whose owner has freed it or writes to it. */
#define SN_NO_SANITIZE __attribute__((no_sanitize("address", "thread", "undefined")))
#define SN_LIKELY(x) __builtin_expect(!!(x), 1)
#define SN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define SN_MUST_CHECK
#define SN_PRINTF(fmt, args)
#define SN_COLD
#define SN_HOT
#define SN_NOINLINE
#define SN_NO_SANITIZE
#define SN_LIKELY(x) (x)
#define SN_UNLIKELY(x) (x)
#endif

/* The English text of a status, for logs and tools; never NULL. Any thread. */
const char *sn_status_text(sn_status st);

#ifdef __cplusplus
}
#endif
#endif
