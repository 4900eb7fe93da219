/* SPDX-License-Identifier: MIT
 * What can be said about an address without asking the system. */
#include "os/io/addr.h"
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "os/common/addr_scope.h"

static bool all_zero(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0) return false;
    return true;
}

static bool is_link_local(const struct os_addr *a) {
    return a->family == 6 && a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

/* ::ffff:a.b.c.d */
static bool is_mapped_v4(const struct os_addr *a) {
    return a->family == 6 && all_zero(a->ip, 10) && a->ip[10] == 0xff && a->ip[11] == 0xff;
}

size_t os_addr_sockaddr_size(const struct os_addr *a) {
    return a->family == 6 ? 28 : a->family == 4 ? 16 : 0;
}

bool os_addr_same_ip(const struct os_addr *a, const struct os_addr *b) {
    if (a->family != b->family) return false;
    if (a->family == 4) return memcmp(a->ip, b->ip, 4) == 0;
    if (a->family != 6) return true;
    return memcmp(a->ip, b->ip, 16) == 0 && (!is_link_local(a) || a->scope_id == b->scope_id);
}

bool os_addr_is_any(const struct os_addr *a) {
    return a->family == 4 ? all_zero(a->ip, 4) : a->family == 6 && all_zero(a->ip, 16);
}

bool os_addr_is_loopback(const struct os_addr *a) {
    if (a->family == 4) return a->ip[0] == 127;
    if (is_mapped_v4(a)) return a->ip[12] == 127;
    return a->family == 6 && all_zero(a->ip, 15) && a->ip[15] == 1;
}

/* RFC 5952: the longest run of at least two zero groups becomes "::". */
static int print_v6(const uint8_t ip[16], char *buf, size_t size) {
    unsigned group[8];
    for (int i = 0; i < 8; i++)
        group[i] = (unsigned)ip[2 * i] << 8 | ip[2 * i + 1];
    int best = -1, best_len = 1;
    for (int i = 0; i < 8; i++) {
        int n = 0;
        while (i + n < 8 && group[i + n] == 0)
            n++;
        if (n > best_len) {
            best = i;
            best_len = n;
        }
    }
    int at = 0;
    bool need_colon = false;
    for (int i = 0; i < 8; i++) {
        if (i == best) {
            at += snprintf(buf + at, size - (size_t)at, "::");
            i += best_len - 1;
            need_colon = false;
            continue;
        }
        at += snprintf(buf + at, size - (size_t)at, need_colon ? ":%x" : "%x", group[i]);
        need_colon = true;
    }
    return at;
}

void os_addr_text(const struct os_addr *a, char buf[OS_ADDR_TEXT_MAX]) {
    const size_t size = OS_ADDR_TEXT_MAX;
    if (a->family == 4) {
        int n = snprintf(buf, size, "%u.%u.%u.%u", a->ip[0], a->ip[1], a->ip[2], a->ip[3]);
        if (a->port) snprintf(buf + n, size - (size_t)n, ":%u", a->port);
        return;
    }
    if (a->family != 6) {
        snprintf(buf, size, "(none)");
        return;
    }
    int n = snprintf(buf, size, "[");
    if (is_mapped_v4(a))
        n += snprintf(buf + n, size - (size_t)n, "::ffff:%u.%u.%u.%u", a->ip[12], a->ip[13],
                      a->ip[14], a->ip[15]);
    else
        n += print_v6(a->ip, buf + n, size - (size_t)n);
    if (a->scope_id != 0) {
        char name[OS_SCOPE_NAME_MAX];
        os_scope_name(a->scope_id, name);
        n += snprintf(buf + n, size - (size_t)n, "%%%s", name);
    }
    if (a->port)
        snprintf(buf + n, size - (size_t)n, "]:%u", a->port);
    else
        snprintf(buf + n, size - (size_t)n, "]");
}
