/* SPDX-License-Identifier: MIT
 * ddp.h - DDP segment headers, tagged and untagged (RFC 5041 section 4).
 * Owns:    every DDP offset and bit; no other file may know one.
 * Threads: pure functions.
 * Errors:  SN_E_MORE (feed more). Whether a header is legal is RDMAP's to say: rdmap_unpack.
 *
 *   offset in the ULPDU, tagged                    untagged
 *   0   1  T 0x80 = 1, L 0x40, 0x3c, DV 0x03       T = 0, L, 0x3c, DV
 *   1   1  ULP control (RDMAP's octet)             the same
 *   2   4  STag of the sink buffer                 ULP word (the STag to invalidate, or 0)
 *   6   8  TO of the first payload octet           6: QN 4, 10: MSN 4, 14: MO 4
 *   14     payload                                 18: payload
 */
#ifndef SN_IWARP_DDP_H
#define SN_IWARP_DDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_VERSION 1
#define DDP_TAGGED_LEN 14
#define DDP_UNTAGGED_LEN 18
#define DDP_HEADER_MAX DDP_UNTAGGED_LEN

#define DDP_QN_SEND 0         /* Sends and Immediates */
#define DDP_QN_READ_REQUEST 1 /* Read and Atomic Requests */
#define DDP_QN_TERMINATE 2
#define DDP_QN_ATOMIC_RESPONSE 3

/* Both kinds; of `to` and `qn/msn/mo` the one that does not belong is 0. */
struct ddp_header {
    bool tagged;     /* T */
    bool last;       /* L: the message ends here */
    uint8_t version; /* DV as found */
    uint8_t ulp;     /* the octet that RDMAP owns */
    uint32_t stag;   /* tagged: sink STag; untagged: the ULP word */
    uint64_t to;
    uint32_t qn;
    uint32_t msn;
    uint32_t mo;
};

/* Octets of header that a ULPDU with this first octet has: 14 or 18. */
static inline size_t ddp_header_len(uint8_t control) {
    return (control & 0x80) ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
}

/* Write a header (14 or 18 octets, version 1) to dst and return its size. Hot path, unchecked. */
size_t ddp_tagged_pack(uint8_t *dst, bool last, uint8_t ulp, uint32_t stag, uint64_t to);
size_t ddp_untagged_pack(uint8_t *dst, bool last, uint8_t ulp, uint32_t ulp_word, uint32_t qn,
                         uint32_t msn, uint32_t mo);

/* Reads a header from the front of a ULPDU. Reserved bits are ignored, nothing is judged.
 * SN_E_MORE: fewer than ddp_header_len octets; *out is untouched. */
SN_MUST_CHECK sn_status ddp_unpack(const void *ulpdu, size_t len, struct ddp_header *out);

#ifdef __cplusplus
}
#endif
#endif
