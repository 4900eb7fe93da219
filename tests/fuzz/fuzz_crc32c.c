/* SPDX-License-Identifier: MIT
 * fuzz_crc32c.c - every implementation against every other. Input: where to cut (2 octets), how
 * often to repeat what follows (1 octet), then octets.
 */
#include "fuzz.h"
#include "iwarp/crc32c.h"

#define LEN_MAX 40000u /* several of the longest blocks any implementation takes at once */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4) return 0;
    size_t cut = (size_t)((data[0] << 8) | data[1]), piece = size - 3, times = data[2] % 16 + 1u;
    if (piece * times > LEN_MAX) times = 1;
    size_t len = piece * times;
    uint8_t *run = (uint8_t *)malloc(len), *copy = (uint8_t *)malloc(len);
    FUZZ_CHECK(run != NULL && copy != NULL);
    for (size_t i = 0; i < times; i++)
        memcpy(run + i * piece, data + 3, piece);
    cut %= len + 1;
    uint32_t want = sn_crc32c(run, len);
    const struct sn_crc32c_impl *impl;
    for (size_t i = 0; (impl = sn_crc32c_impl_at(i)) != NULL; i++) {
        uint32_t state = impl->extend(SN_CRC32C_INIT, run, cut);
        state = impl->copy(state, copy, run + cut, len - cut);
        FUZZ_CHECK(sn_crc32c_finish(state) == want);
        FUZZ_CHECK(memcmp(copy, run + cut, len - cut) == 0);
    }
    free(run);
    free(copy);
    return 0;
}
