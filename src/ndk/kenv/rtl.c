/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include "ndk/kenv/kenv.h"
#include "ntstrsafe.h"
#include "rdma/rd.h"

/* ---- memory ---- */

SIZE_T RtlCompareMemory(const VOID *a, const VOID *b, SIZE_T n) {
    const uint8_t *x = a, *y = b;
    SIZE_T i = 0;
    while (i < n && x[i] == y[i])
        i++;
    return i;
}

PVOID RtlSecureZeroMemory(PVOID p, SIZE_T n) {
    volatile uint8_t *q = p;
    for (SIZE_T i = 0; i < n; i++)
        q[i] = 0;
    return p;
}

/* ---- counted strings ---- */

enum { STRING_MAX_BYTES = 0xFFFE };

static SIZE_T wide_length(PCWSTR s, SIZE_T max) {
    SIZE_T n = 0;
    while (n < max && s[n])
        n++;
    return n;
}

VOID RtlInitUnicodeString(PUNICODE_STRING d, PCWSTR s) {
    SIZE_T bytes = s ? wide_length(s, STRING_MAX_BYTES / 2 - 1) * sizeof(WCHAR) : 0;
    d->Length = (USHORT)bytes;
    d->MaximumLength = (USHORT)(s ? bytes + sizeof(WCHAR) : 0);
    d->Buffer = (PWSTR)(uintptr_t)s;
}

VOID RtlInitAnsiString(PANSI_STRING d, PCSTR s) {
    SIZE_T n = s ? strnlen(s, STRING_MAX_BYTES) : 0;
    d->Length = (USHORT)n;
    d->MaximumLength = (USHORT)(s ? n + 1 : 0);
    d->Buffer = (PCHAR)(uintptr_t)s;
}

VOID RtlCopyUnicodeString(PUNICODE_STRING d, PCUNICODE_STRING s) {
    d->Length = s ? SN_MIN(s->Length, d->MaximumLength) : 0;
    if (d->Length) memcpy(d->Buffer, s->Buffer, d->Length);
    if (d->Length + sizeof(WCHAR) <= d->MaximumLength) d->Buffer[d->Length / 2] = 0;
}

static WCHAR lower(WCHAR c) {
    return c >= 'A' && c <= 'Z' ? (WCHAR)(c + 32) : c;
}

BOOLEAN RtlEqualUnicodeString(PCUNICODE_STRING a, PCUNICODE_STRING b, BOOLEAN no_case) {
    if (a->Length != b->Length) return FALSE;
    for (USHORT i = 0; i < a->Length / 2; i++) {
        WCHAR x = a->Buffer[i], y = b->Buffer[i];
        if (no_case ? lower(x) != lower(y) : x != y) return FALSE;
    }
    return TRUE;
}

#define GUID_TAG 0x64697547 /* 'Guid' */

NTSTATUS RtlStringFromGUID(const GUID *g, PUNICODE_STRING s) {
    char text[40];
    int n = snprintf(text, sizeof text, "{%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X}",
                     g->Data1, g->Data2, g->Data3, g->Data4[0], g->Data4[1], g->Data4[2],
                     g->Data4[3], g->Data4[4], g->Data4[5], g->Data4[6], g->Data4[7]);
    PWSTR p = ExAllocatePoolWithTag(PagedPool, ((SIZE_T)n + 1) * sizeof(WCHAR), GUID_TAG);
    if (!p) return STATUS_INSUFFICIENT_RESOURCES;
    for (int i = 0; i <= n; i++)
        p[i] = (WCHAR)(unsigned char)text[i];
    s->Buffer = p;
    s->Length = (USHORT)((size_t)n * sizeof(WCHAR));
    s->MaximumLength = (USHORT)(s->Length + sizeof(WCHAR));
    return STATUS_SUCCESS;
}

VOID RtlFreeUnicodeString(PUNICODE_STRING s) {
    if (s->Buffer) ExFreePoolWithTag(s->Buffer, 0);
    memset(s, 0, sizeof *s);
}

/* ---- bounded strings ---- */

NTSTATUS RtlStringCbVPrintfA(PSTR d, SIZE_T size, PCSTR format, va_list ap) {
    if (size == 0 || size > NTSTRSAFE_MAX_CCH) return STATUS_INVALID_PARAMETER;
    int n = vsnprintf(d, size, format, ap);
    return n < 0 || (SIZE_T)n >= size ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;
}

NTSTATUS RtlStringCbPrintfA(PSTR d, SIZE_T size, PCSTR format, ...) {
    va_list ap;
    va_start(ap, format);
    NTSTATUS st = RtlStringCbVPrintfA(d, size, format, ap);
    va_end(ap);
    return st;
}

NTSTATUS RtlStringCbCopyA(PSTR d, SIZE_T size, PCSTR s) {
    return RtlStringCbPrintfA(d, size, "%s", s);
}

NTSTATUS RtlStringCbCatA(PSTR d, SIZE_T size, PCSTR s) {
    if (size == 0 || size > NTSTRSAFE_MAX_CCH) return STATUS_INVALID_PARAMETER;
    SIZE_T at = strnlen(d, size);
    if (at == size) return STATUS_INVALID_PARAMETER;
    return RtlStringCbCopyA(d + at, size - at, s);
}

NTSTATUS RtlStringCbLengthA(PCSTR s, SIZE_T max, PSIZE_T length) {
    if (!s || max == 0 || max > NTSTRSAFE_MAX_CCH) return STATUS_INVALID_PARAMETER;
    SIZE_T n = strnlen(s, max);
    if (n == max) return STATUS_INVALID_PARAMETER;
    if (length) *length = n;
    return STATUS_SUCCESS;
}

static NTSTATUS copy_wide(PWSTR d, SIZE_T room, PCWSTR s, SIZE_T n) {
    if (room == 0 || room > NTSTRSAFE_MAX_CCH) return STATUS_INVALID_PARAMETER;
    SIZE_T fits = SN_MIN(n, room - 1);
    if (fits) memcpy(d, s, fits * sizeof(WCHAR));
    d[fits] = 0;
    return fits < n ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;
}

NTSTATUS RtlStringCbCopyUnicodeString(PWSTR d, SIZE_T bytes, PCUNICODE_STRING s) {
    return copy_wide(d, bytes / sizeof(WCHAR), s->Buffer, s->Length / sizeof(WCHAR));
}

NTSTATUS RtlStringCchCopyW(PWSTR d, SIZE_T count, PCWSTR s) {
    return copy_wide(d, count, s, wide_length(s, NTSTRSAFE_MAX_CCH));
}

/* ---- addresses ---- */

enum { ADDRESS_TEXT_MAX = 80 };

static bool narrow(PCWSTR s, char out[ADDRESS_TEXT_MAX]) {
    for (int i = 0; i < ADDRESS_TEXT_MAX; i++) {
        if (s[i] > 126) return false;
        out[i] = (char)s[i];
        if (!s[i]) return true;
    }
    return false;
}

/* A decimal, octal (0) or hexadecimal (0x) number, or only decimal if strict. */
static bool parse_number(const char **p, bool strict, uint64_t max, uint64_t *out) {
    const char *s = *p;
    unsigned base = 10;
    if (!strict && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        base = 16;
        s += 2;
    } else if (!strict && s[0] == '0' && s[1] >= '0' && s[1] <= '7') {
        base = 8;
        s++;
    }
    uint64_t v = 0;
    const char *first = s;
    for (;; s++) {
        unsigned d = *s >= '0' && *s <= '9'   ? (unsigned)(*s - '0')
                     : *s >= 'a' && *s <= 'f' ? (unsigned)(*s - 'a' + 10)
                     : *s >= 'A' && *s <= 'F' ? (unsigned)(*s - 'A' + 10)
                                              : 99;
        if (d >= base) break;
        v = v * base + d;
        if (v > max) return false;
    }
    if (s == first) return false;
    *p = s;
    *out = v;
    return true;
}

NTSTATUS RtlIpv4StringToAddressExA(PCSTR s, BOOLEAN strict, IN_ADDR *address, PUSHORT port) {
    uint64_t part[4], p = 0;
    int n = 0;
    if (!s || !address || !port) return STATUS_INVALID_PARAMETER;
    for (;; s++) {
        if (n == 4 || !parse_number(&s, strict, 0xFFFFFFFF, &part[n++]))
            return STATUS_INVALID_PARAMETER;
        if (*s != '.') break;
    }
    if (*s == ':') {
        s++;
        if (!parse_number(&s, strict, 0xFFFF, &p) || p == 0) return STATUS_INVALID_PARAMETER;
    }
    if (*s || (strict && n != 4)) return STATUS_INVALID_PARAMETER;
    uint64_t v = part[n - 1]; /* the last part fills what the others leave */
    if (v >> (8 * (5 - n))) return STATUS_INVALID_PARAMETER;
    for (int i = 0; i < n - 1; i++) {
        if (part[i] > 255) return STATUS_INVALID_PARAMETER;
        v |= part[i] << (24 - 8 * i);
    }
    address->s_addr = RtlUlongByteSwap((uint32_t)v);
    *port = RtlUshortByteSwap((uint16_t)p);
    return STATUS_SUCCESS;
}

NTSTATUS RtlIpv4StringToAddressExW(PCWSTR s, BOOLEAN strict, IN_ADDR *address, PUSHORT port) {
    char text[ADDRESS_TEXT_MAX];
    if (!s || !narrow(s, text)) return STATUS_INVALID_PARAMETER;
    return RtlIpv4StringToAddressExA(text, strict, address, port);
}

/* The eight groups; the text ends at a character that no address has. */
static bool parse_v6(const char **p, uint8_t out[16]) {
    const char *s = *p;
    uint16_t g[8] = { 0 };
    int n = 0, gap = -1;
    if (s[0] == ':' && s[1] != ':') return false;
    while (n < 8) {
        if (s[0] == ':' && s[1] == ':') {
            if (gap >= 0) return false;
            gap = n;
            s += 2;
            continue;
        }
        unsigned v = 0;
        int digits = 0;
        const char *start = s;
        for (;; s++, digits++) {
            int d = *s >= '0' && *s <= '9'   ? *s - '0'
                    : *s >= 'a' && *s <= 'f' ? *s - 'a' + 10
                    : *s >= 'A' && *s <= 'F' ? *s - 'A' + 10
                                             : -1;
            if (d < 0 || digits == 5) break;
            v = v * 16 + (unsigned)d;
        }
        if (*s == '.' && n <= 6) { /* the last two groups as IPv4 */
            uint64_t part = 0;
            uint32_t v4 = 0;
            s = start;
            for (int i = 0; i < 4; i++) {
                if (!parse_number(&s, true, 255, &part)) return false;
                v4 = v4 << 8 | (uint32_t)part;
                if (i < 3 && *s++ != '.') return false;
            }
            g[n++] = (uint16_t)(v4 >> 16);
            g[n++] = (uint16_t)v4;
            break;
        }
        if (digits == 0) break;
        if (digits > 4) return false;
        g[n++] = (uint16_t)v;
        if (s[0] == ':' && s[1] != ':') {
            s++;
            if (n == 8) return false;
            continue;
        }
        if (s[0] != ':') break;
    }
    if (gap < 0 ? n != 8 : n > 7) return false;
    if (gap >= 0) {
        int tail = n - gap;
        memmove(&g[8 - tail], &g[gap], (size_t)tail * sizeof g[0]);
        memset(&g[gap], 0, (size_t)(8 - n) * sizeof g[0]);
    }
    for (int i = 0; i < 8; i++) {
        out[2 * i] = (uint8_t)(g[i] >> 8);
        out[2 * i + 1] = (uint8_t)g[i];
    }
    *p = s;
    return true;
}

NTSTATUS RtlIpv6StringToAddressExA(PCSTR s, IN6_ADDR *address, PULONG scope, PUSHORT port) {
    uint8_t ip[16];
    uint64_t zone = 0, p = 0;
    if (!s || !address || !scope || !port) return STATUS_INVALID_PARAMETER;
    bool bracket = *s == '[';
    if (bracket) s++;
    if (!parse_v6(&s, ip)) return STATUS_INVALID_PARAMETER;
    if (*s == '%') {
        s++;
        if (!parse_number(&s, true, 0xFFFFFFFF, &zone)) return STATUS_INVALID_PARAMETER;
    }
    if (bracket && *s++ != ']') return STATUS_INVALID_PARAMETER;
    if (bracket && *s == ':') {
        s++;
        if (!parse_number(&s, false, 0xFFFF, &p) || p == 0) return STATUS_INVALID_PARAMETER;
    }
    if (*s) return STATUS_INVALID_PARAMETER;
    memcpy(address, ip, sizeof ip);
    *scope = (ULONG)zone;
    *port = RtlUshortByteSwap((uint16_t)p);
    return STATUS_SUCCESS;
}

NTSTATUS RtlIpv6StringToAddressExW(PCWSTR s, IN6_ADDR *address, PULONG scope, PUSHORT port) {
    char text[ADDRESS_TEXT_MAX];
    if (!s || !narrow(s, text)) return STATUS_INVALID_PARAMETER;
    return RtlIpv6StringToAddressExA(text, address, scope, port);
}
