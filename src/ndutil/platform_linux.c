/* SPDX-License-Identifier: MIT
 * platform_linux.c - Addresses are watched through a netlink socket, which also reports IPv6 and
 * links that go up or down; the route is asked by connecting a datagram socket, which sends
 * nothing.
 */
#include "platform.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int watch_fd = -1;

void ndutil_platform_lock(void) {
    pthread_mutex_lock(&lock);
}

void ndutil_platform_unlock(void) {
    pthread_mutex_unlock(&lock);
}

/* Without the socket (a sandbox may forbid it) every question finds the addresses changed. */
HRESULT ndutil_platform_start(void) {
    struct sockaddr_nl who = { .nl_family = AF_NETLINK,
                               .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };

    watch_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (watch_fd >= 0 && bind(watch_fd, (struct sockaddr *)&who, sizeof who) != 0)
        ndutil_platform_stop();
    return S_OK;
}

void ndutil_platform_stop(void) {
    if (watch_fd >= 0) close(watch_fd);
    watch_fd = -1;
}

/* A lost message (ENOBUFS) is a change too; only "nothing there" is none. */
bool ndutil_platform_addresses_changed(void) {
    char message[8192];
    bool changed = false;

    if (watch_fd < 0) return true;
    for (;;) {
        ssize_t n = recv(watch_fd, message, sizeof message, 0);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return changed;
        if (n < 0 && errno == EINTR) continue;
        changed = true;
        if (n == 0 || (n < 0 && errno != ENOBUFS)) return true;
    }
}

static HRESULT status_from_errno(int error) {
    switch (error) {
    case EINVAL:
    case EACCES: /* a broadcast address */
        return ND_INVALID_ADDRESS;
    case ENETUNREACH:
    case ENETDOWN:
        return ND_NETWORK_UNREACHABLE;
    default:
        return ND_UNSUCCESSFUL;
    }
}

static bool is_wildcard(const struct sockaddr *sa) {
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (sa->sa_family == AF_INET) {
        memcpy(&v4, sa, sizeof v4);
        return v4.sin_addr.s_addr == htonl(INADDR_ANY);
    }
    memcpy(&v6, sa, sizeof v6);
    return IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr);
}

HRESULT ndutil_platform_route(const struct sockaddr *remote, size_t remote_bytes,
                              struct sockaddr *local, size_t *bytes) {
    struct sockaddr_storage sa = { 0 };
    bool v6 = remote->sa_family == AF_INET6;
    socklen_t cb = v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    HRESULT hr = ND_SUCCESS;
    int fd;

    /* The system takes the wildcard for the loopback address; it is nobody's remote address. */
    if (remote_bytes < cb || is_wildcard(remote)) return ND_INVALID_ADDRESS;
    memcpy(&sa, remote, cb);
    fd = socket(remote->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno == EAFNOSUPPORT ? ND_NETWORK_UNREACHABLE : ND_UNSUCCESSFUL;
    /* Some systems refuse port 0 here, and the port does not matter to the route. */
    if (v6)
        ((struct sockaddr_in6 *)&sa)->sin6_port = htons(9);
    else
        ((struct sockaddr_in *)&sa)->sin_port = htons(9);
    if (connect(fd, (struct sockaddr *)&sa, cb) != 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &cb) != 0)
        hr = status_from_errno(errno);
    close(fd);
    if (hr != ND_SUCCESS) return hr;

    if (v6)
        ((struct sockaddr_in6 *)&sa)->sin6_port = 0;
    else
        ((struct sockaddr_in *)&sa)->sin_port = 0;
    if (!local || *bytes < cb) {
        *bytes = cb;
        return ND_BUFFER_OVERFLOW;
    }
    memcpy(local, &sa, cb);
    *bytes = cb;
    return ND_SUCCESS;
}

/* Environment variables are UTF-8; what is not is passed on byte by byte. Returns the units
 * written, without terminator, or (size_t)-1 if they do not fit. */
static size_t utf16_from_utf8(const char *text, WCHAR *out, size_t units) {
    const unsigned char *p = (const unsigned char *)text;
    size_t n = 0;

    while (*p) {
        uint32_t c = *p++;
        int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
        if (more) c &= 0x3Fu >> more;
        for (; more && (*p & 0xC0) == 0x80; more--)
            c = c << 6 | (*p++ & 0x3F);
        if (n + 2 > units) return (size_t)-1;
        if (c > 0xFFFF) {
            out[n++] = (WCHAR)(0xD800 + ((c - 0x10000) >> 10));
            c = 0xDC00 + ((c - 0x10000) & 0x3FF);
        }
        out[n++] = (WCHAR)c;
    }
    return n;
}

/* The value of %NAME% with name of name_units units, or NULL. Names are ASCII here. */
static const char *variable(const WCHAR *name, size_t name_units) {
    char text[128];

    if (!name_units || name_units >= sizeof text) return NULL;
    for (size_t i = 0; i < name_units; i++) {
        if (name[i] > 0x7E) return NULL;
        text[i] = (char)name[i];
    }
    text[name_units] = 0;
    return getenv(text);
}

bool ndutil_platform_expand(const WCHAR *path, WCHAR *out, size_t units) {
    size_t n = 0;

    while (*path) {
        if (*path == u'%') {
            size_t len = 0;
            const char *value = NULL;
            while (path[1 + len] && path[1 + len] != u'%')
                len++;
            if (path[1 + len] == u'%') value = variable(path + 1, len);
            if (value) {
                size_t used = utf16_from_utf8(value, out + n, units - n);
                if (used == (size_t)-1) return false;
                n += used;
                path += len + 2;
                continue;
            }
        }
        if (n + 1 >= units) return false;
        out[n++] = *path++;
    }
    if (n >= units) return false;
    out[n] = 0;
    return true;
}

bool ndutil_platform_provider_override(WCHAR *path, size_t units) {
    const char *value = getenv("SOFTND_PROVIDER");
    size_t n;

    if (!value || !*value) return false;
    n = utf16_from_utf8(value, path, units - 1);
    if (n == (size_t)-1) return false;
    path[n] = 0;
    return true;
}
