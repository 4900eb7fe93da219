/* SPDX-License-Identifier: MIT
 * text.c - see text.h.
 */
#include <winsock2.h>
#include <ws2tcpip.h>

#include "text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool text_parse_size(const char *text, uint64_t *bytes) {
    unsigned long long v;
    unsigned shift = 0;
    char *end;

    if (!isdigit((unsigned char)text[0])) return false;
    v = strtoull(text, &end, 10);
    switch (toupper((unsigned char)*end)) {
    case 'K':
        shift = 10;
        break;
    case 'M':
        shift = 20;
        break;
    case 'G':
        shift = 30;
        break;
    }
    if (shift) {
        end++;
        if (*end == 'i') end++;
    }
    if (*end == 'B') end++;
    if (*end || v > UINT64_MAX >> shift) return false;
    *bytes = (uint64_t)v << shift;
    return true;
}

bool text_parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out) {
    unsigned long long v;
    char *end;

    if (!isdigit((unsigned char)text[0])) return false;
    v = strtoull(text, &end, 10);
    if (*end || v < min || v > max) return false;
    *out = (uint32_t)v;
    return true;
}

bool text_parse_seconds(const char *text, double *seconds) {
    char *end;
    double v;

    if (!isdigit((unsigned char)text[0]) && text[0] != '.') return false;
    v = strtod(text, &end);
    if (!strcmp(end, "ms"))
        v /= 1e3;
    else if (!strcmp(end, "us"))
        v /= 1e6;
    else if (*end && strcmp(end, "s") != 0)
        return false;
    if (!isfinite(v) || v > 1e6) return false;
    *seconds = v;
    return true;
}

bool text_split_host(const char *text, char host[TEXT_HOST_MAX], uint16_t *port) {
    const char *first = strchr(text, ':'), *last = strrchr(text, ':'), *port_text = NULL;
    size_t len = strlen(text);
    uint32_t number;

    if (text[0] == '[') {
        const char *close = strchr(text, ']');
        if (!close) return false;
        text++;
        len = (size_t)(close - text);
        if (close[1] == ':')
            port_text = close + 2;
        else if (close[1])
            return false;
    } else if (first && first == last) { /* more than one colon: an IPv6 address without port */
        len = (size_t)(first - text);
        port_text = first + 1;
    }
    if (len >= TEXT_HOST_MAX) return false;
    if (port_text) {
        if (!text_parse_u32(port_text, 0, 65535, &number)) return false;
        *port = (uint16_t)number;
    }
    memcpy(host, text, len);
    host[len] = 0;
    return true;
}

void text_from_sockaddr(const struct sockaddr *sa, char out[TEXT_ADDR_MAX]) {
    char ip[INET6_ADDRSTRLEN] = "?", scope[16] = "";
    SOCKADDR_IN v4;
    SOCKADDR_IN6 v6;

    if (sa->sa_family == AF_INET) {
        memcpy(&v4, sa, sizeof v4);
        inet_ntop(AF_INET, &v4.sin_addr, ip, sizeof ip);
        if (v4.sin_port)
            snprintf(out, TEXT_ADDR_MAX, "%s:%u", ip, ntohs(v4.sin_port));
        else
            snprintf(out, TEXT_ADDR_MAX, "%s", ip);
    } else if (sa->sa_family == AF_INET6) {
        memcpy(&v6, sa, sizeof v6);
        inet_ntop(AF_INET6, &v6.sin6_addr, ip, sizeof ip);
        if (v6.sin6_scope_id) snprintf(scope, sizeof scope, "%%%u", (unsigned)v6.sin6_scope_id);
        if (v6.sin6_port)
            snprintf(out, TEXT_ADDR_MAX, "[%s%s]:%u", ip, scope, ntohs(v6.sin6_port));
        else
            snprintf(out, TEXT_ADDR_MAX, "%s%s", ip, scope);
    } else {
        snprintf(out, TEXT_ADDR_MAX, "address family %d", sa->sa_family);
    }
}

void text_from_bytes(double bytes, char *out, size_t room) {
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
    size_t u = 0;

    while (bytes >= 1000 && u + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1000;
        u++;
    }
    snprintf(out, room, "%.*f %s",
             u == 0        ? 0
             : bytes < 10  ? 2
             : bytes < 100 ? 1
                           : 0,
             bytes, units[u]);
}

void text_from_guid(const GUID *g, char out[TEXT_GUID_MAX]) {
    snprintf(out, TEXT_GUID_MAX, "{%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X}",
             (unsigned)g->Data1, g->Data2, g->Data3, g->Data4[0], g->Data4[1], g->Data4[2],
             g->Data4[3], g->Data4[4], g->Data4[5], g->Data4[6], g->Data4[7]);
}

bool text_parse_guid(const char *text, GUID *guid) {
    size_t len = strlen(text);
    char hex[33];
    size_t n = 0;
    uint8_t b[16];

    if (text[0] == '{') {
        if (len < 2 || text[len - 1] != '}') return false;
        text++;
        len -= 2;
    }
    if (len != 36) return false;
    for (size_t i = 0; i < len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash != (text[i] == '-')) return false;
        if (dash) continue;
        if (!isxdigit((unsigned char)text[i])) return false;
        hex[n++] = text[i];
    }
    for (size_t i = 0; i < 16; i++) {
        char two[3] = { hex[2 * i], hex[2 * i + 1], 0 };
        b[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    guid->Data1 = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    guid->Data2 = (uint16_t)(b[4] << 8 | b[5]);
    guid->Data3 = (uint16_t)(b[6] << 8 | b[7]);
    memcpy(guid->Data4, b + 8, 8);
    return true;
}

static size_t put_utf8(uint32_t c, char out[4]) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

bool text_from_wide(const WCHAR *wide, char *out, size_t room) {
    size_t n = 0;

    while (*wide) {
        uint32_t c = *wide++;
        char bytes[4];
        size_t len;
        if (c >= 0xD800 && c < 0xDC00 && *wide >= 0xDC00 && *wide < 0xE000)
            c = 0x10000 + ((c - 0xD800) << 10) + (*wide++ - 0xDC00u);
        len = put_utf8(c, bytes);
        if (n + len >= room) {
            if (room) out[0] = 0;
            return false;
        }
        memcpy(out + n, bytes, len);
        n += len;
    }
    out[n] = 0;
    return true;
}

bool text_to_wide(const char *text, WCHAR *out, size_t units) {
    const unsigned char *p = (const unsigned char *)text;
    size_t n = 0;

    while (*p) {
        uint32_t c = *p++;
        int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
        if (more) c &= 0x3Fu >> more;
        for (; more && (*p & 0xC0) == 0x80; more--)
            c = c << 6 | (*p++ & 0x3F);
        if (n + (c > 0xFFFF ? 2 : 1) >= units) {
            out[0] = 0;
            return false;
        }
        if (c > 0xFFFF) {
            out[n++] = (WCHAR)(0xD800 + ((c - 0x10000) >> 10));
            c = 0xDC00 + ((c - 0x10000) & 0x3FF);
        }
        out[n++] = (WCHAR)c;
    }
    out[n] = 0;
    return true;
}

void text_print_json(FILE *to, const char *text) {
    fputc('"', to);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(to, "\\%c", *p);
        else if (*p < 0x20)
            fprintf(to, "\\u%04x", *p);
        else
            fputc(*p, to);
    }
    fputc('"', to);
}
