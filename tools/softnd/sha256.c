/* SPDX-License-Identifier: MIT
 * sha256.c - two compression functions: plain C, and the x86 SHA instructions chosen at run time,
 * because hashing is what bounds `softnd cat` otherwise.
 */
#include "sha256.h"

#include <string.h>

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#define HAVE_SHA_NI 1
#include <cpuid.h>
#include <immintrin.h>
#endif

typedef void (*compress_fn)(uint32_t h[8], const uint8_t *data, size_t blocks);

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static uint32_t rotate_right(uint32_t v, unsigned n) {
    return v >> n | v << (32 - n);
}

static uint32_t load_be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void compress_portable(uint32_t h[8], const uint8_t *data, size_t blocks) {
    for (; blocks; blocks--, data += 64) {
        uint32_t w[64], s[8];
        for (int i = 0; i < 16; i++)
            w[i] = load_be32(data + 4 * i);
        for (int i = 16; i < 64; i++) {
            uint32_t a = w[i - 15], b = w[i - 2];
            uint32_t s0 = rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3;
            uint32_t s1 = rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10;
            w[i] = w[i - 16] + s0 + w[i - 7] + s1;
        }
        memcpy(s, h, sizeof s);
        /* Instead of moving the eight words along, each round names them one place further on. */
        for (int i = 0; i < 64; i += 8)
            for (unsigned r = 0; r < 8; r++) {
                uint32_t a = s[(0u - r) & 7], b = s[(1 - r) & 7], c = s[(2 - r) & 7];
                uint32_t e = s[(4 - r) & 7], f = s[(5 - r) & 7], g = s[(6 - r) & 7];
                uint32_t s1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
                uint32_t s0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
                uint32_t t =
                    s[(7 - r) & 7] + s1 + (g ^ (e & (f ^ g))) + k[i + (int)r] + w[i + (int)r];
                s[(3 - r) & 7] += t;
                s[(7 - r) & 7] = t + s0 + ((a & b) | (c & (a | b)));
            }
        for (int i = 0; i < 8; i++)
            h[i] += s[i];
    }
}

#ifdef HAVE_SHA_NI
/* The instructions keep the state as two vectors, {A,B,E,F} and {C,D,G,H}, and do four rounds per
 * step; the message schedule runs four words at a time in m[0..3]. */
__attribute__((target("sha,sse4.1,ssse3"))) static void
compress_ni(uint32_t h[8], const uint8_t *data, size_t blocks) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i lo = _mm_loadu_si128((const __m128i *)(const void *)h);
    __m128i hi = _mm_loadu_si128((const __m128i *)(const void *)(h + 4));
    lo = _mm_shuffle_epi32(lo, 0xB1); /* B A D C, low to high */
    hi = _mm_shuffle_epi32(hi, 0x1B); /* H G F E */
    __m128i abef = _mm_alignr_epi8(lo, hi, 8);
    __m128i cdgh = _mm_blend_epi16(hi, lo, 0xF0);

    for (; blocks; blocks--, data += 64) {
        __m128i abef_in = abef, cdgh_in = cdgh, m[4];
        for (int i = 0; i < 4; i++)
            m[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)data + i), swap);
        for (int step = 0; step < 16; step++) {
            __m128i now = m[step & 3];
            __m128i wk =
                _mm_add_epi32(now, _mm_loadu_si128((const __m128i *)(const void *)k + step));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0E));
            if (step < 12) { /* replaces words 4*step.. by words 4*(step+4).. */
                __m128i m1 = m[(step + 1) & 3], m2 = m[(step + 2) & 3], m3 = m[(step + 3) & 3];
                __m128i next =
                    _mm_add_epi32(_mm_sha256msg1_epu32(now, m1), _mm_alignr_epi8(m3, m2, 4));
                m[step & 3] = _mm_sha256msg2_epu32(next, m3);
            }
        }
        abef = _mm_add_epi32(abef, abef_in);
        cdgh = _mm_add_epi32(cdgh, cdgh_in);
    }
    lo = _mm_shuffle_epi32(abef, 0x1B); /* A B E F */
    hi = _mm_shuffle_epi32(cdgh, 0xB1); /* G H C D */
    _mm_storeu_si128((__m128i *)(void *)h, _mm_blend_epi16(lo, hi, 0xF0));
    _mm_storeu_si128((__m128i *)(void *)(h + 4), _mm_alignr_epi8(hi, lo, 8));
}

static int cpu_has_sha_ni(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(1, 0, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}
#endif

static int portable_forced;

static compress_fn pick_compress(void) {
#ifdef HAVE_SHA_NI
    static int known = -1; /* set to the same value by whoever comes first */
    int has = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (has < 0) {
        has = cpu_has_sha_ni();
        __atomic_store_n(&known, has, __ATOMIC_RELAXED);
    }
    if (has && !portable_forced) return compress_ni;
#endif
    return compress_portable;
}

const char *sha256_engine(void) {
    return pick_compress() == compress_portable ? "portable" : "sha-ni";
}

void sha256_use_portable(int yes) {
    portable_forced = yes;
}

void sha256_init(struct sha256 *s) {
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memcpy(s->h, start, sizeof start);
    s->total_bytes = 0;
}

void sha256_update(struct sha256 *s, const void *data, size_t len) {
    const uint8_t *p = data;
    size_t have = (size_t)(s->total_bytes % 64);
    compress_fn compress = pick_compress();

    if (!len) return;
    s->total_bytes += len;
    if (have) {
        size_t take = len < 64 - have ? len : 64 - have;
        memcpy(s->block + have, p, take);
        p += take;
        len -= take;
        if (have + take < 64) return;
        compress(s->h, s->block, 1);
    }
    compress(s->h, p, len / 64);
    memcpy(s->block, p + len / 64 * 64, len % 64);
}

void sha256_final(struct sha256 *s, uint8_t out[SHA256_BYTES]) {
    uint8_t tail[128] = { 0 };
    size_t have = (size_t)(s->total_bytes % 64), blocks = have < 56 ? 1 : 2;
    uint64_t bits = s->total_bytes * 8;

    memcpy(tail, s->block, have);
    tail[have] = 0x80;
    for (int i = 0; i < 8; i++)
        tail[64 * blocks - 1 - (size_t)i] = (uint8_t)(bits >> 8 * i);
    pick_compress()(s->h, tail, blocks);
    for (int i = 0; i < 32; i++)
        out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_text(const uint8_t digest[SHA256_BYTES], char out[SHA256_TEXT_MAX]) {
    static const char hex[] = "0123456789abcdef";
    for (int i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = hex[digest[i] >> 4];
        out[2 * i + 1] = hex[digest[i] & 15];
    }
    out[2 * SHA256_BYTES] = 0;
}
