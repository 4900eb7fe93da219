/* SPDX-License-Identifier: MIT
 * crc32c.c - the portable CRC32c, eight octets per step, and the choice of implementation.
 *
 * The tables are compile-time constants: a CRC is linear, so each entry is the XOR of the entries
 * of its index's bits, and only those 64 have to be written down.
 */
#include "iwarp/crc32c.h"
#include "iwarp/crc32c_impl.h"
#include "base/base.h"

#include <stdatomic.h>
#include <string.h>

/* Entry n of a table whose entries for 1, 2, 4, ... 128 are b0 .. b7. */
#define BIT(n, i, b) (((n) >> (i)) & 1u ? b : 0u)
#define ENTRY(n, b0, b1, b2, b3, b4, b5, b6, b7)                                                   \
    (BIT(n, 0, b0) ^ BIT(n, 1, b1) ^ BIT(n, 2, b2) ^ BIT(n, 3, b3) ^ BIT(n, 4, b4) ^               \
     BIT(n, 5, b5) ^ BIT(n, 6, b6) ^ BIT(n, 7, b7))
#define ENTRIES_4(n, ...)                                                                          \
    ENTRY(n, __VA_ARGS__), ENTRY((n) + 1, __VA_ARGS__), ENTRY((n) + 2, __VA_ARGS__),               \
        ENTRY((n) + 3, __VA_ARGS__)
#define ENTRIES_16(n, ...)                                                                         \
    ENTRIES_4(n, __VA_ARGS__), ENTRIES_4((n) + 4, __VA_ARGS__), ENTRIES_4((n) + 8, __VA_ARGS__),   \
        ENTRIES_4((n) + 12, __VA_ARGS__)
#define ENTRIES_64(n, ...)                                                                         \
    ENTRIES_16(n, __VA_ARGS__), ENTRIES_16((n) + 16, __VA_ARGS__),                                 \
        ENTRIES_16((n) + 32, __VA_ARGS__), ENTRIES_16((n) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
    {                                                                                              \
        ENTRIES_64(0u, __VA_ARGS__), ENTRIES_64(64u, __VA_ARGS__), ENTRIES_64(128u, __VA_ARGS__),  \
            ENTRIES_64(192u, __VA_ARGS__)                                                          \
    }

/* table[k][n]: the register n after k + 1 zero octets. */
static const uint32_t table[8][256] = {
    TABLE(0xF26B8303u, 0xE13B70F7u, 0xC79A971Fu, 0x8AD958CFu, 0x105EC76Fu, 0x20BD8EDEu, 0x417B1DBCu,
          0x82F63B78u),
    TABLE(0x13A29877u, 0x274530EEu, 0x4E8A61DCu, 0x9D14C3B8u, 0x3FC5F181u, 0x7F8BE302u, 0xFF17C604u,
          0xFBC3FAF9u),
    TABLE(0xA541927Eu, 0x4F6F520Du, 0x9EDEA41Au, 0x38513EC5u, 0x70A27D8Au, 0xE144FB14u, 0xC76580D9u,
          0x8B277743u),
    TABLE(0xDD45AAB8u, 0xBF672381u, 0x7B2231F3u, 0xF64463E6u, 0xE964B13Du, 0xD725148Bu, 0xABA65FE7u,
          0x52A0C93Fu),
    TABLE(0x38116FACu, 0x7022DF58u, 0xE045BEB0u, 0xC5670B91u, 0x8F2261D3u, 0x1BA8B557u, 0x37516AAEu,
          0x6EA2D55Cu),
    TABLE(0xEF306B19u, 0xDB8CA0C3u, 0xB2F53777u, 0x6006181Fu, 0xC00C303Eu, 0x85F4168Du, 0x0E045BEBu,
          0x1C08B7D6u),
    TABLE(0x68032CC8u, 0xD0065990u, 0xA5E0C5D1u, 0x4E2DFD53u, 0x9C5BFAA6u, 0x3D5B83BDu, 0x7AB7077Au,
          0xF56E0EF4u),
    TABLE(0x493C7D27u, 0x9278FA4Eu, 0x211D826Du, 0x423B04DAu, 0x847609B4u, 0x0D006599u, 0x1A00CB32u,
          0x34019664u),
};

static uint32_t load_le32(const uint8_t *p) {
    return (uint32_t)p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) | ((uint32_t)p[3] << 24);
}

static uint32_t extend_portable(uint32_t state, const void *data, size_t len) {
    const uint8_t *p = (const uint8_t *)data;
    for (; len >= 8; p += 8, len -= 8) {
        uint32_t lo = state ^ load_le32(p), hi = load_le32(p + 4);
        state = table[7][lo & 0xFF] ^ table[6][(lo >> 8) & 0xFF] ^ table[5][(lo >> 16) & 0xFF] ^
                table[4][lo >> 24] ^ table[3][hi & 0xFF] ^ table[2][(hi >> 8) & 0xFF] ^
                table[1][(hi >> 16) & 0xFF] ^ table[0][hi >> 24];
    }
    for (; len != 0; p++, len--)
        state = table[0][(state ^ *p) & 0xFF] ^ (state >> 8);
    return state;
}

static uint32_t copy_portable(uint32_t state, void *dst, const void *src, size_t len) {
    uint8_t *to = (uint8_t *)dst;
    const uint8_t *from = (const uint8_t *)src;
    uint8_t piece[256]; /* each octet is read once */
    for (size_t n; len != 0; to += n, from += n, len -= n) {
        n = SN_MIN(len, sizeof piece);
        memcpy(piece, from, n);
        memcpy(to, piece, n);
        state = extend_portable(state, piece, n);
    }
    return state;
}

static const struct sn_crc32c_impl portable = { "portable", extend_portable, copy_portable };

const struct sn_crc32c_impl *sn_crc32c_impl_at(size_t idx) {
    size_t cpu_count = 0;
    for (const struct sn_crc32c_impl *impl; (impl = sn_crc32c_x86_at(cpu_count)); cpu_count++)
        if (cpu_count == idx) return impl;
    return idx == cpu_count ? &portable : NULL;
}

/* Points at const data, so relaxed order is enough; racing first callers store the same value. */
static _Atomic(const struct sn_crc32c_impl *) chosen;

static const struct sn_crc32c_impl *choose(void) {
    const struct sn_crc32c_impl *impl = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (SN_LIKELY(impl != NULL)) return impl;
    impl = sn_crc32c_impl_at(0);
    atomic_store_explicit(&chosen, impl, memory_order_relaxed);
    return impl;
}

uint32_t sn_crc32c_extend(uint32_t state, const void *data, size_t len) {
    return choose()->extend(state, data, len);
}

uint32_t sn_crc32c_copy(uint32_t state, void *dst, const void *src, size_t len) {
    return choose()->copy(state, dst, src, len);
}
