/* SPDX-License-Identifier: MIT
 * utf.c - UTF-16 to UTF-8 and back. Strict: lone surrogates, overlong forms and numbers beyond
 * U+10FFFF are malformed.
 */
#include "winapi/object.h"

#define HIGH_FIRST 0xD800u
#define LOW_FIRST 0xDC00u
#define SURROGATE_END 0xE000u

int wa_utf8_from_utf16(char *dst, size_t room, const WCHAR *src) {
    size_t used = 0;
    for (;;) {
        uint32_t c = *src++;
        if (c >= LOW_FIRST && c < SURROGATE_END) return -1;
        if (c >= HIGH_FIRST && c < LOW_FIRST) {
            uint32_t low = *src;
            if (low < LOW_FIRST || low >= SURROGATE_END) return -1;
            src++;
            c = 0x10000 + ((c - HIGH_FIRST) << 10) + (low - LOW_FIRST);
        }
        size_t need = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (need > room - used) return -1;
        static const uint8_t lead[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
        for (size_t i = need; i-- > 1; c >>= 6)
            dst[used + i] = (char)(0x80 | (c & 0x3F));
        dst[used] = (char)(lead[need] | c);
        if (need == 1 && c == 0) return (int)used;
        used += need;
    }
}

/* One code point from a zero-terminated text; advances. UINT32_MAX if malformed. */
static uint32_t next_code_point(const uint8_t **src) {
    const uint8_t *p = *src;
    uint32_t c = *p++;
    int more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : 3;
    if ((c >= 0x80 && c < 0xC2) || c > 0xF4) return UINT32_MAX;
    static const uint8_t mask[] = { 0x7F, 0x1F, 0x0F, 0x07 };
    static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
    c &= mask[more];
    for (int i = 0; i < more; i++, p++) {
        if ((*p & 0xC0) != 0x80) return UINT32_MAX;
        c = c << 6 | (*p & 0x3F);
    }
    if (c < least[more] || c > 0x10FFFF || (c >= HIGH_FIRST && c < SURROGATE_END))
        return UINT32_MAX;
    *src = p;
    return c;
}

int wa_utf16_from_utf8(WCHAR *dst, size_t room, const char *src) {
    const uint8_t *p = (const uint8_t *)src;
    size_t used = 0;
    for (;;) {
        uint32_t c = next_code_point(&p);
        size_t need = c >= 0x10000 ? 2 : 1;
        if (c == UINT32_MAX || need > room - used) return -1;
        if (need == 2) {
            dst[used] = (WCHAR)(HIGH_FIRST + ((c - 0x10000) >> 10));
            dst[used + 1] = (WCHAR)(LOW_FIRST + ((c - 0x10000) & 0x3FF));
        } else {
            dst[used] = (WCHAR)c;
        }
        if (c == 0) return (int)used;
        used += need;
    }
}
