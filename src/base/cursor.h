/* SPDX-License-Identifier: MIT
 * cursor.h - bounded readers and writers of big-endian fields over a byte range.
 * Owns:    byte order. Wire values are host-order everywhere outside a codec.
 * Threads: pure functions.
 * Errors:  sticky `bad`: after one short access all reads give 0 and all writes do nothing, so a
 *          codec checks once at its end.
 */
#ifndef SN_BASE_CURSOR_H
#define SN_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sn_cur {
    const uint8_t *p;   /* next byte to read */
    const uint8_t *end; /* one past the last byte */
    bool bad;           /* an access went past the end */
};

struct sn_wcur {
    uint8_t *p;
    uint8_t *end;
    bool bad;
};

static inline struct sn_cur sn_cur_make(const void *data, size_t len) {
    const uint8_t *p = (const uint8_t *)data;
    struct sn_cur c = { p, p + len, false };
    return c;
}

static inline size_t sn_cur_left(const struct sn_cur *c) {
    return (size_t)(c->end - c->p);
}

/* Takes n bytes; NULL and `bad` if fewer are left. The pointer is borrowed from the range. */
static inline const uint8_t *sn_cur_take(struct sn_cur *c, size_t n) {
    if (c->bad || n > sn_cur_left(c)) {
        c->bad = true;
        return NULL;
    }
    const uint8_t *p = c->p;
    c->p += n;
    return p;
}

static inline uint8_t sn_cur_u8(struct sn_cur *c) {
    const uint8_t *p = sn_cur_take(c, 1);
    return p ? p[0] : 0;
}

static inline uint16_t sn_cur_be16(struct sn_cur *c) {
    const uint8_t *p = sn_cur_take(c, 2);
    return p ? (uint16_t)((p[0] << 8) | p[1]) : 0;
}

static inline uint32_t sn_cur_be32(struct sn_cur *c) {
    const uint8_t *p = sn_cur_take(c, 4);
    return p ? ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) | ((uint32_t)p[2] << 8) | p[3] : 0;
}

static inline uint64_t sn_cur_be64(struct sn_cur *c) {
    uint64_t hi = sn_cur_be32(c);
    return (hi << 32) | sn_cur_be32(c);
}

static inline struct sn_wcur sn_wcur_make(void *data, size_t len) {
    uint8_t *p = (uint8_t *)data;
    struct sn_wcur c = { p, p + len, false };
    return c;
}

static inline uint8_t *sn_wcur_take(struct sn_wcur *c, size_t n) {
    if (c->bad || n > (size_t)(c->end - c->p)) {
        c->bad = true;
        return NULL;
    }
    uint8_t *p = c->p;
    c->p += n;
    return p;
}

static inline void sn_wcur_u8(struct sn_wcur *c, uint8_t v) {
    uint8_t *p = sn_wcur_take(c, 1);
    if (p) p[0] = v;
}

static inline void sn_wcur_be16(struct sn_wcur *c, uint16_t v) {
    uint8_t *p = sn_wcur_take(c, 2);
    if (p) {
        p[0] = (uint8_t)(v >> 8);
        p[1] = (uint8_t)v;
    }
}

static inline void sn_wcur_be32(struct sn_wcur *c, uint32_t v) {
    uint8_t *p = sn_wcur_take(c, 4);
    if (p) {
        p[0] = (uint8_t)(v >> 24);
        p[1] = (uint8_t)(v >> 16);
        p[2] = (uint8_t)(v >> 8);
        p[3] = (uint8_t)v;
    }
}

static inline void sn_wcur_be64(struct sn_wcur *c, uint64_t v) {
    sn_wcur_be32(c, (uint32_t)(v >> 32));
    sn_wcur_be32(c, (uint32_t)v);
}

static inline void sn_wcur_bytes(struct sn_wcur *c, const void *src, size_t n) {
    uint8_t *p = sn_wcur_take(c, n);
    if (p && n != 0) memcpy(p, src, n);
}

#endif
