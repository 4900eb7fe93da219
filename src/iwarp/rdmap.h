/* SPDX-License-Identifier: MIT
 * rdmap.h - RDMAP messages: opcodes, headers, legality (RFC 5040, RFC 7306).
 * Owns:    every RDMAP offset, bit and opcode, and what each opcode asks of the DDP header.
 * Threads: pure functions and const tables.
 * Errors:  SN_E_MORE (feed more), SN_E_WIRE (peer is wrong; the fault is the Terminate due).
 *
 * Control octet, offset 1 of the ULPDU: RV 0xc0 = 01b, reserved 0x30, opcode 0x0f.
 *
 *   body (offsets from the end of the untagged DDP header)
 *   Read Request      0 SinkSTag 4, 4 SinkTO 8, 12 size 4, 16 SrcSTag 4, 20 SrcTO 8       = 28
 *   Immediate         0 data 8                                                            = 8
 *   Atomic Request    0 reserved 28 bits + AOpCode 4 bits, 4 id 4, 8 STag 4, 12 TO 8,
 *                     20 data 8, 28 mask 8, 36 compare data 8, 44 compare mask 8          = 52
 *   Atomic Response   0 id 4, 4 original value 8                                          = 12
 *   Terminate         terminate.h                                                         4..52
 *
 * Packers write the whole FPDU head: ULPDU_Length, DDP header and body. The payload, if any,
 * follows in the caller's vector, then mpa_trailer_pack.
 */
#ifndef SN_IWARP_RDMAP_H
#define SN_IWARP_RDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "iwarp/ddp.h"
#include "iwarp/mpa.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rdmap_opcode {
    RDMAP_WRITE = 0x0,
    RDMAP_READ_REQUEST = 0x1,
    RDMAP_READ_RESPONSE = 0x2,
    RDMAP_SEND = 0x3,
    RDMAP_SEND_INV = 0x4,
    RDMAP_SEND_SE = 0x5,
    RDMAP_SEND_SE_INV = 0x6,
    RDMAP_TERMINATE = 0x7,
    RDMAP_IMMEDIATE = 0x8,
    RDMAP_IMMEDIATE_SE = 0x9,
    RDMAP_ATOMIC_REQUEST = 0xA,
    RDMAP_ATOMIC_RESPONSE = 0xB,
    RDMAP_OPCODE_COUNT = 16,
};

#define RDMAP_READ_REQUEST_LEN 28
#define RDMAP_IMMEDIATE_LEN 8
#define RDMAP_ATOMIC_REQUEST_LEN 52
#define RDMAP_ATOMIC_RESPONSE_LEN 12
#define RDMAP_TERMINATE_MIN 4
#define RDMAP_TERMINATE_MAX 52
#define RDMAP_BODY_MAX 52 /* of every message whose payload is not the ULP's */

/* FPDU heads: ULPDU_Length, DDP header, body. */
#define RDMAP_HEAD_TAGGED 16
#define RDMAP_HEAD_UNTAGGED 20
#define RDMAP_HEAD_READ_REQUEST (RDMAP_HEAD_UNTAGGED + RDMAP_READ_REQUEST_LEN)
#define RDMAP_HEAD_MAX (RDMAP_HEAD_UNTAGGED + RDMAP_BODY_MAX)

/* One row per opcode; name is NULL where none is assigned. */
struct rdmap_op {
    const char *name;
    bool tagged;      /* the T bit it must have */
    bool payload;     /* carries ULP payload and may span segments; else one segment, a body */
    bool receives;    /* consumes a receive request and is delivered to the ULP */
    bool solicited;   /* asks for an event at the receiver */
    bool invalidates; /* the STag field names an STag to invalidate on delivery */
    uint8_t qn;       /* untagged: the queue it must name */
    uint8_t body_min; /* octets behind the DDP header when payload is false */
    uint8_t body_max;
};

/* The opcode in RDMAP's control octet (struct ddp_header.ulp). */
static inline uint8_t rdmap_opcode_of(uint8_t control) {
    return control & 0x0Fu;
}

/* The row of an opcode (only its low four bits count); never NULL. */
const struct rdmap_op *rdmap_op_of(uint8_t opcode);

/* The Terminate that an inbound fault calls for. */
struct rdmap_fault {
    uint8_t layer; /* 0 RDMAP, 1 DDP, 2 LLP (MPA) */
    uint8_t type;
    uint8_t code;
    uint8_t headers;   /* enum rdmap_fault_headers: what the Terminate quotes, if it was received */
    bool in_terminate; /* the faulty message is itself a Terminate: close, answer nothing */
};

enum rdmap_fault_headers { RDMAP_QUOTE_NONE, RDMAP_QUOTE_DDP, RDMAP_QUOTE_READ };

/* Conditions and the Terminate each calls for. X(NAME, layer, type, code, quote, text).
 * rdmap_unpack finds those marked [u], the body unpackers [b], the rest need state. */
#define RDMAP_FAULT_LIST(X)                                                                        \
    X(CRC, 2, 0, 0x02, NONE, "CRC mismatch")                                                       \
    X(MARKER, 2, 0, 0x03, NONE, "marker and ULPDU length disagree")                                \
    X(SHORT, 2, 0, 0x03, NONE, "ULPDU shorter than its headers") /* [u] */                         \
    X(MPA_LOCAL, 2, 0, 0x05, NONE, "local catastrophic error during start-up")                     \
    X(MPA_IRD, 2, 0, 0x06, NONE, "insufficient IRD")                                               \
    X(MPA_RTR, 2, 0, 0x07, NONE, "no matching RTR")                                                \
    X(DV_TAGGED, 1, 1, 0x04, DDP, "DDP version, tagged")       /* [u] */                           \
    X(DV_UNTAGGED, 1, 2, 0x06, DDP, "DDP version, untagged")   /* [u] */                           \
    X(RV, 0, 2, 0x05, DDP, "RDMAP version")                    /* [u] */                           \
    X(OPCODE, 0, 2, 0x06, DDP, "unexpected opcode")            /* [u] */                           \
    X(QN, 1, 2, 0x01, DDP, "queue number is not the opcode's") /* [u] */                           \
    X(MSN, 1, 2, 0x03, DDP, "message sequence number")         /* [u] for Terminate */             \
    X(NO_BUFFER, 1, 2, 0x02, DDP, "no receive buffer")                                             \
    X(MO, 1, 2, 0x04, DDP, "message offset") /* [u] for one-segment messages */                    \
    X(TOO_LONG, 1, 2, 0x05, DDP, "message longer than its buffer") /* [u] Read Request > 28 */     \
    X(WRITE_STAG, 1, 1, 0x00, DDP, "Write: invalid STag or no right")                              \
    X(WRITE_STREAM, 1, 1, 0x02, DDP, "Write: STag of another domain or stream")                    \
    X(WRITE_BOUNDS, 1, 1, 0x01, DDP, "Write: outside the region")                                  \
    X(WRITE_WRAP, 1, 1, 0x03, DDP, "Write: TO wraps")                                              \
    X(RESPONSE_STAG, 1, 1, 0x00, DDP, "Read Response: not the STag of the Read")                   \
    X(RESPONSE_BOUNDS, 1, 1, 0x01, DDP, "Read Response: not the range of the Read")                \
    X(READ_STAG, 0, 1, 0x00, READ, "Read: invalid source STag")                                    \
    X(READ_BOUNDS, 0, 1, 0x01, READ, "Read: outside the source region")                            \
    X(READ_RIGHTS, 0, 1, 0x02, READ, "Read: no right to read the source")                          \
    X(READ_STREAM, 0, 1, 0x03, READ, "Read: source STag of another domain or stream")              \
    X(READ_WRAP, 0, 1, 0x04, READ, "Read: source TO wraps")                                        \
    X(READ_BEYOND_IRD, 1, 2, 0x02, DDP, "more outstanding Reads than IRD")                         \
    X(BODY, 0, 2, 0xFF, DDP, "body of the wrong size") /* [u] */                                   \
    X(INVALIDATE_STAG, 0, 2, 0x09, DDP, "Invalidate: STag unknown or shared")                      \
    X(INVALIDATE_STREAM, 0, 1, 0x09, DDP, "Invalidate: STag of another domain or stream")          \
    X(ATOMIC_ALIGN, 0, 2, 0x07, DDP, "Atomic: target not 8-aligned") /* [b] */                     \
    X(ATOMIC_OPCODE, 0, 2, 0x06, DDP, "Atomic: unknown operation")   /* [b] */                     \
    X(ATOMIC_STAG, 0, 1, 0x00, DDP, "Atomic: invalid STag")                                        \
    X(ATOMIC_BOUNDS, 0, 1, 0x01, DDP, "Atomic: outside the region")                                \
    X(ATOMIC_RIGHTS, 0, 1, 0x02, DDP, "Atomic: no right")                                          \
    X(ATOMIC_STREAM, 0, 1, 0x03, DDP, "Atomic: STag of another domain or stream")                  \
    X(ATOMIC_WRAP, 0, 1, 0x04, DDP, "Atomic: TO wraps")                                            \
    X(LOCAL_BUILD, 0, 0, 0x00, NONE, "local failure while building a message")                     \
    X(LOCAL_STREAM, 0, 2, 0x07, NONE, "local failure of this stream")                              \
    X(LOCAL_PLACE, 1, 0, 0x00, DDP, "local failure while placing data")

#define RDMAP_FAULT_ENUM(name, layer, type, code, quote, text) RDMAP_FAULT_##name,
enum rdmap_cause { RDMAP_FAULT_LIST(RDMAP_FAULT_ENUM) RDMAP_FAULT_COUNT };
#undef RDMAP_FAULT_ENUM

/* The fault of a cause (in_terminate false); its text for the log, never NULL. */
struct rdmap_fault rdmap_fault_make(enum rdmap_cause cause);
const char *rdmap_fault_text(enum rdmap_cause cause);

/* One segment, decoded and legal as far as one header can tell. */
struct rdmap_segment {
    uint8_t opcode; /* enum rdmap_opcode, an assigned one */
    bool tagged;
    bool last;
    uint8_t header_len;   /* 14 or 18: where payload or body starts in the ULPDU */
    uint32_t payload_len; /* octets behind the header; for opcodes without payload the body */
    uint32_t stag;        /* tagged: sink; invalidates: the STag to invalidate; else 0 */
    uint64_t to;          /* tagged, else 0; to + payload_len may wrap, see RDMAP_FAULT_*_WRAP */
    uint32_t qn, msn, mo; /* untagged, else 0; mo + payload_len is not checked */
};

/* Reads the header of a ULPDU of ulpdu_len octets of which `have` are at hand.
 *
 * SN_OK:     *out holds: version, opcode, T and QN agree; without payload the body size is the
 *            opcode's, and L is set and MO is 0; a Terminate has MSN 1. MSN, MO and buffers of
 *            everything else are the caller's to check.
 * SN_E_MORE: judged only when the whole header (at most 18 octets, or the whole ULPDU if shorter)
 *            is there, so the answer does not depend on how it arrived and can be quoted.
 * SN_E_WIRE: *fault is the Terminate due, *out is untouched. The CRC of the FPDU has not been
 *            seen: check that first, a bad one makes this fault moot. */
SN_MUST_CHECK sn_status rdmap_unpack(const void *ulpdu, size_t have, size_t ulpdu_len,
                                     struct rdmap_segment *out, struct rdmap_fault *fault);

/* ---- FPDU heads. dst holds RDMAP_HEAD_* octets; the size is returned; nothing is checked:
 * payload_len + header must fit the MULPDU. Hot path. ---- */

size_t rdmap_tagged_pack(uint8_t *dst, enum rdmap_opcode op, bool last, uint32_t stag, uint64_t to,
                         uint32_t payload_len);
size_t rdmap_untagged_pack(uint8_t *dst, enum rdmap_opcode op, bool last, uint32_t inv_stag,
                           uint32_t qn, uint32_t msn, uint32_t mo, uint32_t payload_len);

static inline size_t rdmap_write_pack(uint8_t *dst, bool last, uint32_t stag, uint64_t to,
                                      uint32_t payload_len) {
    return rdmap_tagged_pack(dst, RDMAP_WRITE, last, stag, to, payload_len);
}
static inline size_t rdmap_read_response_pack(uint8_t *dst, bool last, uint32_t stag, uint64_t to,
                                              uint32_t payload_len) {
    return rdmap_tagged_pack(dst, RDMAP_READ_RESPONSE, last, stag, to, payload_len);
}
/* op is one of the four Sends; inv_stag is 0 unless it invalidates. */
static inline size_t rdmap_send_pack(uint8_t *dst, enum rdmap_opcode op, bool last,
                                     uint32_t inv_stag, uint32_t msn, uint32_t mo,
                                     uint32_t payload_len) {
    return rdmap_untagged_pack(dst, op, last, inv_stag, DDP_QN_SEND, msn, mo, payload_len);
}

struct rdmap_read_request {
    uint32_t sink_stag; /* the requester's buffer, copied to the response unread */
    uint64_t sink_to;
    uint32_t size;     /* octets */
    uint32_t src_stag; /* the responder's buffer; not to be checked if size is 0 */
    uint64_t src_to;
};

/* The 48-octet head of a Read Request (DDP_QN_READ_REQUEST). */
size_t rdmap_read_request_pack(uint8_t *dst, uint32_t msn, const struct rdmap_read_request *rr);
/* The 28 octets alone, as a Terminate quotes them. */
void rdmap_read_request_body_pack(uint8_t *dst, const struct rdmap_read_request *rr);
/* Reads the 28-octet body; SN_E_MORE if fewer are there. */
SN_MUST_CHECK sn_status rdmap_read_request_unpack(const void *body, size_t len,
                                                  struct rdmap_read_request *out);

/* ---- RFC 7306 ---- */

/* data: the 8 octets as one big-endian number; a 32-bit immediate goes in its upper half. */
size_t rdmap_immediate_pack(uint8_t *dst, bool solicited, uint32_t msn, uint64_t data);
SN_MUST_CHECK sn_status rdmap_immediate_unpack(const void *body, size_t len, uint64_t *data);

enum rdmap_atomic_op { RDMAP_FETCH_ADD = 0, RDMAP_CMP_SWAP = 2 };

struct rdmap_atomic_request {
    uint8_t op;  /* enum rdmap_atomic_op */
    uint32_t id; /* echoed in the response */
    uint32_t stag;
    uint64_t to;           /* a multiple of 8 */
    uint64_t data;         /* to add, or to swap in */
    uint64_t mask;         /* add: top bit of each field; swap: bits replaced */
    uint64_t compare;      /* 0 for FetchAdd */
    uint64_t compare_mask; /* all ones for FetchAdd */
};

size_t rdmap_atomic_request_pack(uint8_t *dst, uint32_t msn, const struct rdmap_atomic_request *ar);
/* SN_E_MORE: fewer than 52 octets. SN_E_WIRE: unknown operation or unaligned TO, see *fault. */
SN_MUST_CHECK sn_status rdmap_atomic_request_unpack(const void *body, size_t len,
                                                    struct rdmap_atomic_request *out,
                                                    struct rdmap_fault *fault);

struct rdmap_atomic_response {
    uint32_t id;
    uint64_t original;
};

size_t rdmap_atomic_response_pack(uint8_t *dst, uint32_t msn,
                                  const struct rdmap_atomic_response *ar);
SN_MUST_CHECK sn_status rdmap_atomic_response_unpack(const void *body, size_t len,
                                                     struct rdmap_atomic_response *out);

#ifdef __cplusplus
}
#endif
#endif
