/* SPDX-License-Identifier: MIT
 * crc32c.h - the Castagnoli CRC that guards an FPDU (RFC 5044 section 4.4, RFC 3720 B.4).
 * Owns:    the polynomial, and the choice of the fastest implementation this CPU has, made once.
 * Threads: pure functions, any thread.
 * Errors:  none.
 *
 * The running value is the register before its final inversion, so a CRC may be built from any
 * number of pieces: start with SN_CRC32C_INIT, extend, finish. The four octets on the wire are the
 * finished value with its least significant octet first (mpa_crc_pack).
 */
#ifndef SN_IWARP_CRC32C_H
#define SN_IWARP_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SN_CRC32C_INIT 0xFFFFFFFFu
/* The running value after a body and its own four wire octets; right for every body. */
#define SN_CRC32C_RESIDUE 0xB798B438u

/* Adds len octets (0 allowed, then data may be NULL) of any alignment. Never blocks. */
uint32_t sn_crc32c_extend(uint32_t state, const void *data, size_t len);

/* As extend, and copies the octets to dst in the same pass; the ranges must not overlap. Each octet
 * is read once, so the CRC is that of the copy even if somebody writes to src meanwhile. */
uint32_t sn_crc32c_copy(uint32_t state, void *dst, const void *src, size_t len);

static inline uint32_t sn_crc32c_finish(uint32_t state) {
    return ~state;
}

/* The finished CRC of one range. */
static inline uint32_t sn_crc32c(const void *data, size_t len) {
    return sn_crc32c_finish(sn_crc32c_extend(SN_CRC32C_INIT, data, len));
}

/* One way of computing it. Tests compare all of them; everybody else calls extend. */
struct sn_crc32c_impl {
    const char *name;
    uint32_t (*extend)(uint32_t state, const void *data, size_t len);
    uint32_t (*copy)(uint32_t state, void *dst, const void *src, size_t len);
};

/* The idx-th implementation that works on this CPU, the fastest first; NULL past the last, which
 * is always the portable one. */
const struct sn_crc32c_impl *sn_crc32c_impl_at(size_t idx);

#ifdef __cplusplus
}
#endif
#endif
