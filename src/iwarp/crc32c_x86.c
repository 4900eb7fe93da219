/* SPDX-License-Identifier: MIT
 * crc32c_x86.c - CRC32c with the SSE4.2 instruction.
 *
 * The instruction takes eight octets in three cycles but can start one each cycle, so a long range
 * is cut into three lanes that run side by side and are joined with a carry-less multiplication:
 * moving a register past n zero octets multiplies it by x^(8n) mod P. The product of the reflected
 * register and the reflected constant x^(8n-33), taken through the instruction once (which
 * multiplies by x^32, and reflection adds one more), is just that.
 */
#include "iwarp/crc32c_impl.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline, target("sse4.2,pclmul")))

INLINE uint64_t load64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Word at p into the register; copied to dst unless that is NULL. */
INLINE uint64_t step64(uint64_t state, uint8_t *dst, const uint8_t *p) {
    uint64_t v = load64(p);
    if (dst) memcpy(dst, &v, sizeof v);
    return _mm_crc32_u64(state, v);
}

/* One lane, any length. */
INLINE uint32_t run_lane(uint32_t state, uint8_t *dst, const uint8_t *p, size_t len) {
    uint64_t s = state;
    for (; len >= 8; p += 8, len -= 8) {
        s = step64(s, dst, p);
        if (dst) dst += 8;
    }
    uint32_t r = (uint32_t)s;
    for (; len != 0; p++, len--) {
        r = _mm_crc32_u8(r, *p);
        if (dst) *dst++ = *p;
    }
    return r;
}

/* Three lanes of `lane` octets each, a multiple of 8. k1 and k2 move a register past one and two
 * lanes. */
INLINE uint32_t run_block(uint32_t state, uint8_t *dst, const uint8_t *p, size_t lane, uint32_t k1,
                          uint32_t k2) {
    uint64_t a = state, b = 0, c = 0;
    for (size_t i = 0; i < lane; i += 8) {
        a = step64(a, dst ? dst + i : NULL, p + i);
        b = step64(b, dst ? dst + lane + i : NULL, p + lane + i);
        c = step64(c, dst ? dst + 2 * lane + i : NULL, p + 2 * lane + i);
    }
    __m128i ap =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a), _mm_cvtsi32_si128((int)k2), 0x00);
    __m128i bp =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)b), _mm_cvtsi32_si128((int)k1), 0x00);
    uint64_t product = (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(ap, bp));
    return (uint32_t)(_mm_crc32_u64(0, product) ^ c);
}

#define LONG_LANE 4096u
#define MID_LANE 512u
#define SHORT_LANE 64u

INLINE uint32_t run_lanes(uint32_t state, uint8_t *dst, const uint8_t *p, size_t len) {
    for (; len >= 3 * LONG_LANE; p += 3 * LONG_LANE, len -= 3 * LONG_LANE) {
        state = run_block(state, dst, p, LONG_LANE, 0x82F89C77u, 0x54A86326u);
        if (dst) dst += 3 * LONG_LANE;
    }
    for (; len >= 3 * MID_LANE; p += 3 * MID_LANE, len -= 3 * MID_LANE) {
        state = run_block(state, dst, p, MID_LANE, 0xDD7E3B0Cu, 0x170076FAu);
        if (dst) dst += 3 * MID_LANE;
    }
    for (; len >= 3 * SHORT_LANE; p += 3 * SHORT_LANE, len -= 3 * SHORT_LANE) {
        state = run_block(state, dst, p, SHORT_LANE, 0x9E4ADDF8u, 0x0D3B6092u);
        if (dst) dst += 3 * SHORT_LANE;
    }
    return run_lane(state, dst, p, len);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t
extend_lanes(uint32_t state, const void *data, size_t len) {
    return run_lanes(state, NULL, (const uint8_t *)data, len);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t copy_lanes(uint32_t state, void *dst,
                                                                    const void *src, size_t len) {
    return run_lanes(state, (uint8_t *)dst, (const uint8_t *)src, len);
}

/* For CPUs that have the one instruction and not the other. */
#define INLINE_42 static inline __attribute__((always_inline, target("sse4.2")))
INLINE_42 uint32_t run_plain(uint32_t state, const uint8_t *p, size_t len) {
    uint64_t s = state;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        s = _mm_crc32_u64(s, v);
    }
    uint32_t r = (uint32_t)s;
    for (; len != 0; p++, len--)
        r = _mm_crc32_u8(r, *p);
    return r;
}

__attribute__((target("sse4.2"))) static uint32_t extend_plain(uint32_t state, const void *data,
                                                               size_t len) {
    return run_plain(state, (const uint8_t *)data, len);
}

__attribute__((target("sse4.2"))) static uint32_t copy_plain(uint32_t state, void *dst,
                                                             const void *src, size_t len) {
    if (len != 0) memcpy(dst, src, len);
    return run_plain(state, (const uint8_t *)src, len);
}

static const struct sn_crc32c_impl lanes = { "sse4.2+pclmul", extend_lanes, copy_lanes };
static const struct sn_crc32c_impl plain = { "sse4.2", extend_plain, copy_plain };

const struct sn_crc32c_impl *sn_crc32c_x86_at(size_t idx) {
    if (!__builtin_cpu_supports("sse4.2")) return NULL;
    if (!__builtin_cpu_supports("pclmul")) return idx == 0 ? &plain : NULL;
    return idx == 0 ? &lanes : idx == 1 ? &plain : NULL;
}

#else

const struct sn_crc32c_impl *sn_crc32c_x86_at(size_t idx) {
    (void)idx;
    return NULL;
}

#endif
