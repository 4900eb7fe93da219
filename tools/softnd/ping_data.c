/* SPDX-License-Identifier: MIT
 * ping_data.c - see ping.h.
 */
#include "ping.h"

#include <string.h>

#define VERSION 1
static const uint8_t magic[4] = { 'S', 'N', 'D', 'P' };

void ping_pack_greeting(uint32_t size, uint8_t out[PING_GREETING_BYTES]) {
    memset(out, 0, PING_GREETING_BYTES);
    memcpy(out, magic, sizeof magic);
    out[4] = VERSION;
    for (int i = 0; i < 4; i++)
        out[8 + i] = (uint8_t)(size >> (24 - 8 * i));
}

bool ping_unpack_greeting(const uint8_t *in, size_t len, uint32_t *size) {
    uint32_t v;

    if (len < PING_GREETING_BYTES || memcmp(in, magic, sizeof magic) != 0 || in[4] != VERSION)
        return false;
    v = (uint32_t)in[8] << 24 | (uint32_t)in[9] << 16 | (uint32_t)in[10] << 8 | in[11];
    if (v > PING_SIZE_MAX) return false;
    *size = v;
    return true;
}

/* A multiplicative sequence: each byte is the top of a 64-bit product. */
static uint8_t byte_at(uint64_t i, uint64_t seq) {
    return (uint8_t)((i + seq * 0x10001u + 1) * 0x9E3779B97F4A7C15u >> 56);
}

void ping_fill(uint8_t *out, size_t len, uint64_t seq) {
    for (size_t i = 0; i < len; i++)
        out[i] = byte_at(i, seq);
}

bool ping_check(const uint8_t *in, size_t len, uint64_t seq) {
    for (size_t i = 0; i < len; i++)
        if (in[i] != byte_at(i, seq)) return false;
    return true;
}
