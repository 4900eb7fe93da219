/* SPDX-License-Identifier: MIT
 * crc32c_test.c - every implementation of CRC32c against the published values and a bitwise one.
 */
#include "wire_test.h"
#include "iwarp/crc32c.h"

static uint32_t extend_bitwise(uint32_t state, const uint8_t *p, size_t len) {
    while (len--) {
        state ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            state = (state >> 1) ^ (0x82F63B78u & (0u - (state & 1u)));
    }
    return state;
}

#define FOR_IMPLS(impl)                                                                            \
    for (size_t impl##_idx = 0, impl##_once = 1; impl##_once; impl##_once = 0)                     \
        for (const struct sn_crc32c_impl *impl; (impl = sn_crc32c_impl_at(impl##_idx));            \
             impl##_idx++)

static void extend_rfc3720_ranges_give_published_values(void) {
    uint8_t zeros[32] = { 0 }, ones[32], up[32], down[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xFF;
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    CHECK_EQ(sn_crc32c("123456789", 9), 0xE3069283u);
    CHECK_EQ(sn_crc32c(zeros, 32), 0x8A9136AAu);
    CHECK_EQ(sn_crc32c(ones, 32), 0x62A8AB43u);
    CHECK_EQ(sn_crc32c(up, 32), 0x46DD794Eu);
    CHECK_EQ(sn_crc32c(down, 32), 0x113FDB5Cu);
    CHECK_EQ(sn_crc32c(NULL, 0), 0);
    FOR_IMPLS(impl) {
        CHECK_EQ(~impl->extend(SN_CRC32C_INIT, "123456789", 9), 0xE3069283u);
        CHECK_EQ(~impl->extend(SN_CRC32C_INIT, up, 32), 0x46DD794Eu);
        CHECK_EQ(impl->extend(0x12345678u, NULL, 0), 0x12345678u);
    }
}

static void extend_over_own_crc_leaves_residue(void) {
    for (size_t i = 0; i < WIRE_VECTOR_COUNT; i++) {
        const struct wire_vector *v = &wire_vectors[i];
        if (v->crc == 0) continue;
        uint32_t state = sn_crc32c_extend(SN_CRC32C_INIT, v->bytes, v->len - 4);
        CHECK_EQ(sn_crc32c_finish(state), v->crc);
        CHECK_EQ(sn_crc32c_extend(state, v->bytes + v->len - 4, 4), SN_CRC32C_RESIDUE);
    }
    CHECK_EQ(sn_crc32c_finish(SN_CRC32C_RESIDUE), 0x48674BC7u);
}

static void impl_list_any_cpu_ends_with_portable(void) {
    const struct sn_crc32c_impl *last = NULL;
    size_t count = 0;
    FOR_IMPLS(impl) {
        printf("  %s\n", impl->name);
        last = impl;
        count++;
    }
    CHECK(last != NULL);
    CHECK_STR(last->name, "portable");
    CHECK(sn_crc32c_impl_at(count + 1) == NULL);
}

/* All lengths 0..1024 at all alignments of a 64-octet line. */
static void extend_all_lengths_and_alignments_agree(void) {
    static uint8_t data[64 + 1024];
    random_fill(data, sizeof data);
    for (size_t align = 0; align < 64; align++) {
        uint32_t want = SN_CRC32C_INIT;
        for (size_t len = 0; len <= 1024; len++) {
            FOR_IMPLS(impl) {
                uint32_t got = impl->extend(SN_CRC32C_INIT, data + align, len);
                if (got != want)
                    FAIL("%s: %zu octets at alignment %zu: 0x%08x, expected 0x%08x", impl->name,
                         len, align, got, want);
            }
            if (len < 1024) want = extend_bitwise(want, data + align + len, 1);
        }
    }
}

/* Around the lane sizes of the long-range code, and the exact heap range for the sanitizer. */
static void extend_long_ranges_agree(void) {
    static const size_t around[] = { 191,   192,   193,   384,   1535,  1536,  1537,
                                     1728,  3071,  4096,  12287, 12288, 12289, 12480,
                                     13824, 24576, 65535, 65536, 65544, 70001 };
    uint8_t *source = (uint8_t *)malloc(70001);
    CHECK(source != NULL);
    random_fill(source, 70001);
    for (size_t i = 0; i < sizeof around / sizeof around[0]; i++) {
        uint8_t *data = exact_copy(source, around[i]);
        uint32_t start = (uint32_t)random_u64();
        uint32_t want = extend_bitwise(start, data, around[i]);
        FOR_IMPLS(impl) {
            CHECK_EQ(impl->extend(start, data, around[i]), want);
        }
        CHECK_EQ(sn_crc32c_extend(start, data, around[i]), want);
        free(data);
    }
    free(source);
}

static void extend_in_random_pieces_equals_whole(void) {
    enum { LEN = 20000 };
    static uint8_t data[LEN];
    random_fill(data, LEN);
    FOR_IMPLS(impl) {
        uint32_t whole = impl->extend(SN_CRC32C_INIT, data, LEN);
        for (int round = 0; round < 50; round++) {
            uint32_t state = SN_CRC32C_INIT;
            uint32_t largest = 1u + random_below(round < 10 ? 8 : 5000);
            for (size_t off = 0; off < LEN;) {
                size_t n = 1 + random_below(largest);
                if (n > LEN - off) n = LEN - off;
                state = impl->extend(state, data + off, n);
                off += n;
            }
            CHECK_EQ(state, whole);
        }
    }
}

static void copy_any_length_copies_exactly_and_gives_the_same_crc(void) {
    static const size_t lengths[] = {
        0,   1,   7,   8,   9,   63,   64,   191,  192,  193,   255,
        256, 257, 319, 320, 575, 1447, 1536, 1700, 4096, 12288, 20000
    };
    static uint8_t source[20016];
    random_fill(source, sizeof source);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t len = lengths[i];
        for (size_t align = 0; align < 9; align++) {
            uint32_t want = sn_crc32c_extend(7, source + align, len);
            FOR_IMPLS(impl) {
                uint8_t *dst = (uint8_t *)malloc(len + 16);
                CHECK(dst != NULL);
                memset(dst, 0xA5, len + 16);
                CHECK_EQ(impl->copy(7, dst + align % 4, source + align, len), want);
                CHECK_BYTES(dst + align % 4, source + align, len);
                for (size_t j = 0; j < align % 4; j++)
                    CHECK_EQ(dst[j], 0xA5);
                for (size_t j = align % 4 + len; j < len + 16; j++)
                    CHECK_EQ(dst[j], 0xA5);
                free(dst);
            }
        }
    }
    uint8_t dst[9];
    CHECK_EQ(sn_crc32c_finish(sn_crc32c_copy(SN_CRC32C_INIT, dst, "123456789", 9)), 0xE3069283u);
    CHECK_BYTES(dst, "123456789", 9);
}

TEST_MAIN(TEST(extend_rfc3720_ranges_give_published_values),
          TEST(extend_over_own_crc_leaves_residue), TEST(impl_list_any_cpu_ends_with_portable),
          TEST(extend_all_lengths_and_alignments_agree), TEST(extend_long_ranges_agree),
          TEST(extend_in_random_pieces_equals_whole),
          TEST(copy_any_length_copies_exactly_and_gives_the_same_crc))
