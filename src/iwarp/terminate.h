/* SPDX-License-Identifier: MIT
 * terminate.h - the Terminate message (RFC 5040 section 4.8) and the meaning of its codes.
 * Owns:    the layout of the body, which headers it quotes, and the tolerant reading of peers that
 *          build it differently.
 * Threads: pure functions and const tables.
 * Errors:  SN_E_WIRE (fewer than four octets).
 *
 *   offset in the body
 *   0   1      layer 0xf0, type 0x0f
 *   1   1      code
 *   2   1      M 0x80 segment length, D 0x40 DDP header, R 0x20 Read Request header; rest 0
 *   3   1      reserved
 *   4   2      DDP segment length of the offending segment, if M
 *   6   14/18  its DDP header, if D (14 if tagged)
 *   24  28     its Read Request body, if R
 */
#ifndef SN_IWARP_TERMINATE_H
#define SN_IWARP_TERMINATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "iwarp/ddp.h"
#include "iwarp/rdmap.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TERMINATE_LAYER_RDMAP 0
#define TERMINATE_LAYER_DDP 1
#define TERMINATE_LAYER_LLP 2

/* The inbound segment that a Terminate answers. */
struct terminate_about {
    const uint8_t *ulpdu; /* its ULPDU from the first octet, borrowed; NULL: none */
    size_t have;          /* octets of it at hand */
    uint16_t ulpdu_len;   /* its declared length: the "DDP segment length" */
    /* Replaces the Read Request body found there (a Read that failed part-way quotes what is
     * left); NULL: quote what arrived. */
    const struct rdmap_read_request *read;
};

/* Writes the FPDU head that is a whole Terminate (RDMAP_HEAD_MAX octets at dst are enough) and
 * returns its size: 24, 40, 44 or 72. Quotes what fault->headers asks for as far as `about` (may
 * be NULL) has it: without the full DDP header nothing is quoted, and a Read Request body only
 * behind the header of a Read Request. */
size_t terminate_pack(uint8_t *dst, const struct rdmap_fault *fault,
                      const struct terminate_about *about);

/* A received Terminate. */
struct terminate {
    uint8_t layer, type, code; /* in RFC order, whatever the sender's order was */
    bool swapped; /* the sender swapped nibbles and flags (siw on a little-endian host) */
    bool has_segment_len;
    uint16_t segment_len; /* as sent; senders disagree on its meaning, never judge it */
    bool has_header;
    struct ddp_header header; /* of our offending segment */
    bool has_read;
    struct rdmap_read_request read;
};

/* Reads the body of a Terminate (what follows its DDP header). Reads what is there and forgives
 * the rest: odd flags, missing or extra octets. SN_E_WIRE: fewer than 4 octets, *out untouched. */
SN_MUST_CHECK sn_status terminate_unpack(const void *body, size_t len, struct terminate *out);

/* What a layer/type/code says, for the log and for tools; "unknown" texts included, never NULL. */
const char *terminate_text(uint8_t layer, uint8_t type, uint8_t code);

/* True if the combination is one that RFC 5040, 5041, 5044, 6581 or 7306 define, or the LLP type 3
 * that NICs send. */
bool terminate_known(uint8_t layer, uint8_t type, uint8_t code);

#ifdef __cplusplus
}
#endif
#endif
