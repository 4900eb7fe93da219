/* SPDX-License-Identifier: MIT
 * AF_UNIX sockets of the kind that keeps message boundaries, named in the abstract space. */
#include "os/io/local_sock.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "os/linux/errno_status.h"
#include "os/prim/fault.h"

static bool inject(int number) {
    if (SN_LIKELY(!os_fault_hit(OS_FAULT_SYSCALL))) return false;
    errno = number;
    return true;
}

static sn_status socket_status(int e) {
    return e == ENOMEM ? SN_E_RESOURCES : os_errno_status(e);
}

/* The abstract name: a zero byte, then the name without its end. */
static bool make_name(const char *name, struct sockaddr_un *sa, socklen_t *cb) {
    size_t len = strnlen(name, OS_LOCAL_NAME_MAX + 1);
    if (len == 0 || len > OS_LOCAL_NAME_MAX) return false;
    memset(sa, 0, sizeof *sa);
    sa->sun_family = AF_UNIX;
    memcpy(sa->sun_path + 1, name, len);
    *cb = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    return true;
}

static int new_socket(void) {
    if (inject(EMFILE)) return -1;
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

sn_status os_local_listen(const char *name, uint32_t backlog, os_sock *out) {
    struct sockaddr_un sa;
    socklen_t cb;
    *out = OS_SOCK_NONE;
    if (!make_name(name, &sa, &cb)) return SN_E_PARAM;
    int fd = new_socket();
    if (fd < 0) return socket_status(errno);
    int want = backlog == 0 || backlog > SOMAXCONN ? SOMAXCONN : (int)backlog;
    if (inject(ENOMEM) || bind(fd, (struct sockaddr *)&sa, cb) != 0 || inject(ENOMEM) ||
        listen(fd, want) != 0) {
        sn_status st = socket_status(errno);
        close(fd);
        return st;
    }
    *out = fd;
    return SN_OK;
}

sn_status os_local_connect(const char *name, os_sock *out) {
    struct sockaddr_un sa;
    socklen_t cb;
    *out = OS_SOCK_NONE;
    if (!make_name(name, &sa, &cb)) return SN_E_PARAM;
    int fd = new_socket();
    if (fd < 0) return socket_status(errno);
    int r;
    do {
        r = inject(ENOMEM) ? -1 : connect(fd, (struct sockaddr *)&sa, cb);
    } while (r != 0 && errno == EINTR);
    if (r != 0) {
        /* EPROTOTYPE: somebody listens with another kind of socket: nobody we could talk to. */
        sn_status st = errno == EPROTOTYPE ? SN_E_REFUSED : socket_status(errno);
        close(fd);
        return st;
    }
    *out = fd;
    return SN_OK;
}

sn_status os_local_accept(os_sock s, os_sock *out) {
    *out = OS_SOCK_NONE;
    int fd;
    do {
        fd = inject(EMFILE) ? -1 : accept4((int)s, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0) return errno == EINVAL ? SN_E_STATE : socket_status(errno);
    *out = fd;
    return SN_OK;
}

sn_status os_local_peer_info(os_sock s, struct os_local_peer *out) {
    struct ucred cred = { 0 };
    socklen_t cb = sizeof cred;
    if (getsockopt((int)s, SOL_SOCKET, SO_PEERCRED, &cred, &cb) != 0) return os_errno_status(errno);
    /* What an unconnected socket tells. */
    if (cred.uid == (uid_t)-1) return SN_E_NOT_CONNECTED;
    *out = (struct os_local_peer){ .pid = cred.pid > 0 ? (uint32_t)cred.pid : 0,
                                   .uid = cred.uid,
                                   .same_user = cred.uid == geteuid() };
    return SN_OK;
}

static SN_COLD sn_status message_status(int e) {
    switch (e) {
    case EAGAIN:
        return SN_E_AGAIN;
    case EMSGSIZE:
        return SN_E_TOO_LONG;
    case ENOBUFS:
    case ENOMEM:
    case ETOOMANYREFS:
        return SN_E_RESOURCES;
    case ENOTCONN:
        return SN_E_NOT_CONNECTED;
    case EPIPE:
    case ECONNRESET:
        return SN_E_PEER_GONE;
    default:
        return os_errno_status(e);
    }
}

union control {
    struct cmsghdr align;
    /* One more than allowed, so that one too many is seen as that. */
    char room[CMSG_SPACE(sizeof(int) * (OS_LOCAL_HANDLES_MAX + 1))];
};

sn_status os_local_send(os_sock s, const void *data, size_t len, const os_handle *handles,
                        size_t handle_count) {
    if (len == 0 || handle_count > OS_LOCAL_HANDLES_MAX) return SN_E_PARAM;
    if (len > OS_LOCAL_MSG_MAX) return SN_E_TOO_LONG;
    struct iovec iov = { (void *)(uintptr_t)data, len };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    union control control;
    if (handle_count != 0) {
        memset(&control, 0, sizeof control);
        msg.msg_control = control.room;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * handle_count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * handle_count);
        for (size_t i = 0; i < handle_count; i++) {
            int fd = (int)handles[i];
            memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
        }
    }
    ssize_t n;
    do {
        n = inject(ECONNRESET) ? -1 : sendmsg((int)s, &msg, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? message_status(errno) : SN_OK;
}

/* Moves the handles of a message to all; their number. */
static size_t take_handles(struct msghdr *msg, int all[OS_LOCAL_HANDLES_MAX + 1]) {
    size_t n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here && n <= OS_LOCAL_HANDLES_MAX; i++)
            memcpy(&all[n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
    }
    return n;
}

sn_status os_local_recv(os_sock s, void *data, size_t max, size_t *got, os_handle *handles,
                        size_t *handle_count) {
    size_t room = handle_count ? *handle_count : 0;
    *got = 0;
    if (handle_count) *handle_count = 0;
    if (max == 0) return SN_E_PARAM;
    struct iovec iov = { data, max };
    union control control;
    struct msghdr msg = { .msg_iov = &iov,
                          .msg_iovlen = 1,
                          .msg_control = control.room,
                          /* No padding, or the kernel fits one more in. */
                          .msg_controllen = CMSG_LEN(sizeof(int) * (OS_LOCAL_HANDLES_MAX + 1)) };
    ssize_t n;
    do {
        n = inject(ECONNRESET) ? -1 : recvmsg((int)s, &msg, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return message_status(errno);
    int all[OS_LOCAL_HANDLES_MAX + 1];
    size_t have = take_handles(&msg, all);
    sn_status st = SN_OK;
    if (n == 0)
        st = have ? SN_E_WIRE : SN_E_EOF; /* empty messages are not sent by os_local_send */
    else if (msg.msg_flags & MSG_TRUNC || have > SN_MIN(room, (size_t)OS_LOCAL_HANDLES_MAX))
        st = SN_E_WIRE;
    else if (msg.msg_flags & MSG_CTRUNC)
        st = SN_E_RESOURCES; /* there was room, so the kernel found no free descriptor */
    if (st != SN_OK) {
        for (size_t i = 0; i < have; i++)
            close(all[i]);
        return st;
    }
    for (size_t i = 0; i < have; i++)
        handles[i] = all[i];
    if (handle_count) *handle_count = have;
    *got = (size_t)n;
    return SN_OK;
}
