/* SPDX-License-Identifier: MIT
 * Not on Windows yet: the local sockets of this system carry no handles, and its pipes do not fit
 * the poller. Peers on one host meet over TCP. */
#include "os/io/local_sock.h"

sn_status os_local_listen(const char *name, uint32_t backlog, os_sock *out) {
    (void)name;
    (void)backlog;
    *out = OS_SOCK_NONE;
    return SN_E_UNSUPPORTED;
}

sn_status os_local_connect(const char *name, os_sock *out) {
    (void)name;
    *out = OS_SOCK_NONE;
    return SN_E_UNSUPPORTED;
}

sn_status os_local_accept(os_sock s, os_sock *out) {
    (void)s;
    *out = OS_SOCK_NONE;
    return SN_E_UNSUPPORTED;
}

sn_status os_local_peer_info(os_sock s, struct os_local_peer *out) {
    (void)s;
    *out = (struct os_local_peer){ 0 };
    return SN_E_UNSUPPORTED;
}

sn_status os_local_send(os_sock s, const void *data, size_t len, const os_handle *handles,
                        size_t handle_count) {
    (void)s;
    (void)data;
    (void)len;
    (void)handles;
    (void)handle_count;
    return SN_E_UNSUPPORTED;
}

sn_status os_local_recv(os_sock s, void *data, size_t max, size_t *got, os_handle *handles,
                        size_t *handle_count) {
    (void)s;
    (void)data;
    (void)max;
    (void)handles;
    *got = 0;
    if (handle_count) *handle_count = 0;
    return SN_E_UNSUPPORTED;
}
