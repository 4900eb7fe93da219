/* SPDX-License-Identifier: MIT
 * crc32c_x86.c - CRC32c with the SSE4.2 instruction, and by folding with AVX-512.
 *
 * The instruction takes eight octets in three cycles but can start one each cycle, so a long range
 * is cut into three lanes that run side by side and are joined with a carry-less multiplication:
 * moving a register past n zero octets multiplies it by x^(8n) mod P. The product of the reflected
 * register and the reflected constant x^(8n-33), taken through the instruction once (which
 * multiplies by x^32, and reflection adds one more), is just that.
 *
 * Folding keeps the range so far as a remainder of 16 octets for each 16 octets of a step of 256.
 * One step multiplies both halves of each remainder by a constant (the upper half, which is further
 * from the end, by x^64 more) and adds the next 256 octets. What is left at the end has the same
 * CRC as all that it stands for, so the instruction finishes it, with 0 to begin with.
 */
#include "iwarp/crc32c_impl.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

/* Not checked by sanitizers: the copy's other end may be an application's, which may write to it or
 * free it meanwhile. */
#define FOR(features)                                                                              \
    __attribute__((target(features), no_sanitize("address", "thread", "undefined")))
#define INLINE_FOR(features) static inline __attribute__((always_inline)) FOR(features)

#define PLAIN "sse4.2"
#define LANES "sse4.2,pclmul"

INLINE_FOR(PLAIN) uint64_t load64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Word at p into the register; copied to dst unless that is NULL. */
INLINE_FOR(PLAIN) uint64_t step64(uint64_t state, uint8_t *dst, const uint8_t *p) {
    uint64_t v = load64(p);
    if (dst) memcpy(dst, &v, sizeof v);
    return _mm_crc32_u64(state, v);
}

/* One lane, any length. */
INLINE_FOR(PLAIN) uint32_t run_lane(uint32_t state, uint8_t *dst, const uint8_t *p, size_t len) {
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
INLINE_FOR(LANES)
uint32_t run_block(uint32_t state, uint8_t *dst, const uint8_t *p, size_t lane, uint32_t k1,
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

INLINE_FOR(LANES) uint32_t run_lanes(uint32_t state, uint8_t *dst, const uint8_t *p, size_t len) {
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

FOR(LANES)
static uint32_t extend_lanes(uint32_t state, const void *data, size_t len) {
    return run_lanes(state, NULL, (const uint8_t *)data, len);
}

FOR(LANES)
static uint32_t copy_lanes(uint32_t state, void *dst, const void *src, size_t len) {
    return run_lanes(state, (uint8_t *)dst, (const uint8_t *)src, len);
}

/* For CPUs that have the one instruction and not the other. */
FOR(PLAIN) static uint32_t extend_plain(uint32_t state, const void *data, size_t len) {
    return run_lane(state, NULL, (const uint8_t *)data, len);
}

FOR(PLAIN)
static uint32_t copy_plain(uint32_t state, void *dst, const void *src, size_t len) {
    return run_lane(state, (uint8_t *)dst, (const uint8_t *)src, len);
}

/* ---- folding ---- */

/* GCC for 64-bit Windows (the compiler with __SEH__) takes the stack for aligned enough to keep
 * wide registers there, which it is not (GCC bug 54412). */
#if !defined(__SEH__) || defined(__clang__)

#define WIDE "sse4.2,pclmul,avx512f,avx512vl,vpclmulqdq"

/* Four remainders of 16 octets, moved on by what k stands for, and the next octets added. */
INLINE_FOR(WIDE) __m512i fold(__m512i r, __m512i k, __m512i next) {
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(r, k, 0x00),
                                     _mm512_clmulepi64_epi128(r, k, 0x11), next, 0x96);
}

/* The constants x^(8n+31) and x^(8n-33) mod P that move a remainder past n octets. */
INLINE_FOR(WIDE) __m512i mover(uint32_t upper, uint32_t lower) {
    return _mm512_broadcast_i32x4(_mm_set_epi64x((long long)lower, (long long)upper));
}

INLINE_FOR(WIDE) __m512i take_wide(uint8_t *dst, const uint8_t *p) {
    __m512i v = _mm512_loadu_si512(p);
    if (dst) _mm512_storeu_si512(dst, v);
    return v;
}

#define FOLD_STEP 256u

/* len is at least FOLD_STEP. */
INLINE_FOR(WIDE) uint32_t run_folds(uint32_t state, uint8_t *dst, const uint8_t *p, size_t len) {
    const __m512i k256 = mover(0xDCB17AA4u, 0xB9E02B86u), k128 = mover(0x6992CEA2u, 0x0D3B6092u),
                  k64 = mover(0x740EEF02u, 0x9E4ADDF8u);
    __m512i a = take_wide(dst, p), b = take_wide(dst ? dst + 64 : NULL, p + 64),
            c = take_wide(dst ? dst + 128 : NULL, p + 128),
            d = take_wide(dst ? dst + 192 : NULL, p + 192);
    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
    for (;;) {
        p += FOLD_STEP;
        len -= FOLD_STEP;
        if (dst) dst += FOLD_STEP;
        if (len < FOLD_STEP) break;
        a = fold(a, k256, take_wide(dst, p));
        b = fold(b, k256, take_wide(dst ? dst + 64 : NULL, p + 64));
        c = fold(c, k256, take_wide(dst ? dst + 128 : NULL, p + 128));
        d = fold(d, k256, take_wide(dst ? dst + 192 : NULL, p + 192));
    }
    a = fold(fold(a, k128, c), k64, fold(b, k128, d));
    for (; len >= 64; p += 64, len -= 64) {
        a = fold(a, k64, take_wide(dst, p));
        if (dst) dst += 64;
    }
    uint8_t left[64];
    _mm512_storeu_si512(left, a);
    return run_lane(run_lane(0, NULL, left, sizeof left), dst, p, len);
}

FOR(WIDE) static uint32_t extend_folds(uint32_t state, const void *data, size_t len) {
    if (len < FOLD_STEP) return run_lanes(state, NULL, (const uint8_t *)data, len);
    return run_folds(state, NULL, (const uint8_t *)data, len);
}

FOR(WIDE)
static uint32_t copy_folds(uint32_t state, void *dst, const void *src, size_t len) {
    if (len < FOLD_STEP) return run_lanes(state, (uint8_t *)dst, (const uint8_t *)src, len);
    return run_folds(state, (uint8_t *)dst, (const uint8_t *)src, len);
}

static const struct sn_crc32c_impl folds = { "avx512+vpclmulqdq", extend_folds, copy_folds };

/* libgcc's answers cover whether the system saves the registers. */
static bool can_fold(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("vpclmulqdq");
}

#else

static const struct sn_crc32c_impl folds;
static bool can_fold(void) {
    return false;
}

#endif

static const struct sn_crc32c_impl lanes = { "sse4.2+pclmul", extend_lanes, copy_lanes };
static const struct sn_crc32c_impl plain = { "sse4.2", extend_plain, copy_plain };

const struct sn_crc32c_impl *sn_crc32c_x86_at(size_t idx) {
    if (!__builtin_cpu_supports("sse4.2")) return NULL;
    if (!__builtin_cpu_supports("pclmul")) return idx == 0 ? &plain : NULL;
    if (can_fold() && idx-- == 0) return &folds;
    return idx == 0 ? &lanes : idx == 1 ? &plain : NULL;
}

#else

const struct sn_crc32c_impl *sn_crc32c_x86_at(size_t idx) {
    (void)idx;
    return NULL;
}

#endif
