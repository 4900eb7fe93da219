/* SPDX-License-Identifier: MIT
 * sha256.h - SHA-256 (FIPS 180-4), incremental.
 * Owns:    the digest state, in the caller's storage.
 * Threads: one thread per state.   Errors: none.
 */
#ifndef TOOL_SHA256_H
#define TOOL_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_TEXT_MAX (2 * SHA256_BYTES + 1)

struct sha256 {
    uint32_t h[8];
    uint64_t total_bytes;
    uint8_t block[64]; /* the first total_bytes % 64 bytes of the next block */
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t len);
/* Ends the digest; the state must be initialised again before the next one. */
void sha256_final(struct sha256 *s, uint8_t out[SHA256_BYTES]);

/* Lower-case hexadecimal, zero-terminated. */
void sha256_text(const uint8_t digest[SHA256_BYTES], char out[SHA256_TEXT_MAX]);

/* The name of the code in use: "sha-ni" where the processor has the instructions, else
 * "portable". sha256_use_portable(1) forces the portable code (for tests); 0 undoes it. */
const char *sha256_engine(void);
void sha256_use_portable(int yes);

#endif
