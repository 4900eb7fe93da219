/* SPDX-License-Identifier: MIT
 * local_sock.h - connections between processes of one host that carry small messages and handles.
 * Owns:    the name space (per network name space on Linux, where nothing is left in the file
 *          system). A name is no protection: anybody may listen on it or connect to it, so both
 *          sides ask os_local_peer_info who the other is before they trust it. On Windows names
 *          have no backslash, and capitals do not matter.
 * Threads: as sock.h. The sockets are os_sock: os_poller and os_sock_close take them; the calls on
 *          IP addresses do not.
 * Errors:  named at each call; never blocks, a would-be block is SN_E_AGAIN.
 *
 * A message arrives whole, with all its handles, or not at all. The end of the other process
 * looks like os_sock_close: SN_E_EOF after the last message. On Windows a message with handles is
 * lost if its sender closed its socket before it was taken (SN_E_PEER_GONE); a socket is watched by
 * one poller in its life, and not for OS_POLL_OUT.
 */
#ifndef SN_OS_LOCAL_SOCK_H
#define SN_OS_LOCAL_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "os/io/shm.h"
#include "os/io/sock.h"

#define OS_LOCAL_NAME_MAX 100  /* bytes of a name, without the end */
#define OS_LOCAL_MSG_MAX 4096  /* bytes of a message */
#define OS_LOCAL_HANDLES_MAX 4 /* handles with a message */

struct os_local_peer {
    uint32_t pid;   /* of the process that connected or began to listen; 0: not visible here */
    uint64_t uid;   /* its effective user; on Windows a number made of that */
    bool same_user; /* as this process */
};

/* backlog 0: the largest. SN_E_PARAM: the name is empty or too long; SN_E_ADDR_IN_USE: somebody
 * has it; SN_E_RESOURCES. The name is free again when the socket is closed or the process ends. */
SN_MUST_CHECK sn_status os_local_listen(const char *name, uint32_t backlog, os_sock *out);
/* Connected on SN_OK, whether accepted yet or not. SN_E_REFUSED: nobody listens; SN_E_AGAIN: too
 * many wait there to be accepted; SN_E_PARAM, SN_E_RESOURCES, SN_E_PERM. */
SN_MUST_CHECK sn_status os_local_connect(const char *name, os_sock *out);
/* SN_E_AGAIN when there is none; SN_E_RESOURCES; SN_E_STATE: not listening. */
SN_MUST_CHECK sn_status os_local_accept(os_sock s, os_sock *out);
/* Who is at the other end. SN_E_NOT_CONNECTED. */
SN_MUST_CHECK sn_status os_local_peer_info(os_sock s, struct os_local_peer *out);

/* Sends one message; the handles stay the caller's. SN_E_AGAIN: no room, nothing was sent;
 * SN_E_TOO_LONG: more than OS_LOCAL_MSG_MAX bytes; SN_E_PARAM: no bytes, or too many handles;
 * SN_E_HANDLE: a handle is not valid; SN_E_FAULT; SN_E_PEER_GONE. */
SN_MUST_CHECK sn_status os_local_send(os_sock s, const void *data, size_t len,
                                      const os_handle *handles, size_t handle_count);
/* Takes the next message. *handle_count: in, room in handles; out, handles received, owned by the
 * caller. SN_E_AGAIN: none; SN_E_EOF; SN_E_WIRE: longer than max or with more handles than there
 * is room for: the message is dropped and its handles closed; SN_E_RESOURCES: out of descriptors
 * for its handles, dropped too; SN_E_FAULT; SN_E_PEER_GONE: reset. */
SN_MUST_CHECK sn_status os_local_recv(os_sock s, void *data, size_t max, size_t *got,
                                      os_handle *handles, size_t *handle_count);

#endif
