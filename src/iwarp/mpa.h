/* SPDX-License-Identifier: MIT
 * mpa.h - MPA: start-up frames, FPDU sizes and trailer, markers (RFC 5044, RFC 6581).
 * Owns:    every MPA offset and bit; no other file may know one.
 * Threads: pure functions. A struct mpa_markers is guarded by its owner.
 * Errors:  SN_E_MORE (feed more), SN_E_WIRE (peer is wrong, see the fault), SN_E_PARAM and
 *          SN_E_BUFFER_SMALL (the caller of a packer is wrong).
 *
 * Start-up frame, raw octets of the TCP stream without CRC, pad or markers:
 *
 *   offset  width  field
 *   0       16     key, "MPA ID Req Frame" or "MPA ID Rep Frame"
 *   16      1      M 0x80 markers wanted inbound, C 0x40 CRC wanted, R 0x20 rejected,
 *                  S 0x10 enhanced data present (revision 2), 0x0f reserved
 *   17      1      revision, 1 or 2
 *   18      2      PD_Length, 0..512, of all that follows
 *   20      4      if S: A 0x8000 peer to peer, B 0x4000 RTR by Send, IRD 0x3fff;
 *                        C 0x8000 RTR by Write, D 0x4000 RTR by Read, ORD 0x3fff
 *   20/24   ...    private data of the ULP
 *
 * FPDU: ULPDU_Length L (2), ULPDU (L), PAD (0..3 zeros, to a multiple of 4), CRC (4, always
 * there). Marker: 2 reserved, 2 FPDUPTR, at every stream position that is a multiple of 512.
 */
#ifndef SN_IWARP_MPA_H
#define SN_IWARP_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "iwarp/crc32c.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MPA_KEY_LEN 16
#define MPA_START_HEADER_LEN 20 /* octets before the private data */
#define MPA_ENHANCED_LEN 4
#define MPA_PD_MAX 512 /* PD_Length, enhanced data included */
#define MPA_START_MAX (MPA_START_HEADER_LEN + MPA_PD_MAX)
#define MPA_DEPTH_MASK 0x3FFFu
#define MPA_DEPTH_ANY 0x3FFFu /* IRD/ORD: leave the matching value alone, RFC 6581 section 9.1 */

struct mpa_start {
    bool reply;    /* which key */
    uint8_t rev;   /* 1 or 2 */
    bool markers;  /* M: the sender of the frame wants markers in what it receives */
    bool crc;      /* C: in use both ways if either side asks */
    bool reject;   /* R: only in a reply; never set by unpack in a request */
    bool enhanced; /* S: enh is valid; only with rev 2 */
    struct {
        bool p2p;       /* A; when clear the three rtr_ flags are sent and read as clear */
        bool rtr_send;  /* B */
        bool rtr_write; /* C */
        bool rtr_read;  /* D */
        uint16_t ird;   /* 0..0x3fff */
        uint16_t ord;   /* 0..0x3fff */
    } enh;
    const uint8_t *pd; /* private data of the ULP, borrowed; NULL allowed if pd_len is 0 */
    uint16_t pd_len;   /* octets, without the enhanced data */
};

/* Why a start-up frame is refused. */
enum mpa_start_fault {
    MPA_START_FAULT_NONE,
    MPA_START_FAULT_KEY,      /* not an MPA frame */
    MPA_START_FAULT_ROLE,     /* the other side's key: both initiate, or both respond */
    MPA_START_FAULT_REV,      /* revision 0, or 3 and above */
    MPA_START_FAULT_PD_LEN,   /* PD_Length above 512 */
    MPA_START_FAULT_ENHANCED, /* S set with PD_Length below 4 */
};

/* Text for the log; never NULL. */
const char *mpa_start_fault_text(enum mpa_start_fault fault);

/* Octets the frame takes; nothing is checked. */
static inline size_t mpa_start_size(const struct mpa_start *s) {
    return MPA_START_HEADER_LEN + (s->enhanced ? (size_t)MPA_ENHANCED_LEN : 0u) + s->pd_len;
}

/* Writes the frame to buf and its size to *len.
 * SN_E_PARAM: rev not 1 or 2, enhanced with rev 1, reject in a request, depth above 0x3fff, or too
 * much private data. SN_E_BUFFER_SMALL: cap is less than mpa_start_size. On error nothing is
 * written. */
SN_MUST_CHECK sn_status mpa_start_pack(const struct mpa_start *s, void *buf, size_t cap,
                                       size_t *len);

/* Reads the frame of which `len` octets have arrived so far. want_reply says which key is due.
 *
 * SN_OK:     *out is filled, out->pd points into data; *need is the frame's size: octets past it
 *            are not this frame's and have not been looked at.
 * SN_E_MORE: *need is the count of octets known to be required in total, 20 until the header is
 *            there and then the exact size. Read no more than that.
 * SN_E_WIRE: *fault says why; decided as early as the octets allow, and the same however they
 *            arrive. *out is untouched. */
SN_MUST_CHECK sn_status mpa_start_unpack(const void *data, size_t len, bool want_reply,
                                         struct mpa_start *out, size_t *need,
                                         enum mpa_start_fault *fault);

/* ---- FPDU ---- */

#define MPA_LEN_LEN 2 /* ULPDU_Length */
#define MPA_CRC_LEN 4
#define MPA_TRAILER_MAX 7         /* PAD and CRC */
#define MPA_ULPDU_MAX 65535       /* what the field can say; accept it */
#define MPA_MULPDU_MIN 128        /* never less, however small the segments */
#define MPA_MULPDU_MAX 64768      /* never send a longer ULPDU */
#define MPA_FPDU_MAX 65544        /* largest inbound FPDU, markers not counted */
#define MPA_FPDU_MARKED_MAX 66064 /* the same with its markers, the leading one included */

/* Octets of PAD, 0..3. */
static inline size_t mpa_pad(size_t ulpdu_len) {
    return (0u - (ulpdu_len + MPA_LEN_LEN)) & 3u;
}

/* Octets of the whole FPDU without markers, a multiple of 4. */
static inline size_t mpa_fpdu_size(size_t ulpdu_len) {
    return ((ulpdu_len + MPA_LEN_LEN + 3u) & ~(size_t)3u) + MPA_CRC_LEN;
}

/* The longest ULPDU to send in one FPDU when a TCP segment holds emss octets: 128..64768. */
uint32_t mpa_mulpdu(uint32_t emss, bool markers);

/* The four CRC octets of a finished CRC, and back. */
static inline void mpa_crc_pack(uint8_t *dst, uint32_t crc) {
    dst[0] = (uint8_t)crc;
    dst[1] = (uint8_t)(crc >> 8);
    dst[2] = (uint8_t)(crc >> 16);
    dst[3] = (uint8_t)(crc >> 24);
}
static inline uint32_t mpa_crc_unpack(const uint8_t *src) {
    return (uint32_t)src[0] | ((uint32_t)src[1] << 8) | ((uint32_t)src[2] << 16) |
           ((uint32_t)src[3] << 24);
}

/* Writes PAD and CRC of a marker-free FPDU to dst (MPA_TRAILER_MAX octets) and returns their size.
 * `state` is the running CRC over ULPDU_Length and ULPDU; with crc_on false the field is 0. */
size_t mpa_trailer_pack(uint8_t *dst, size_t ulpdu_len, uint32_t state, bool crc_on);

/* What follows an FPDU of a message: `count` FPDUs with `size` octets of payload each, the last of
 * them the message's last. Nobody looks at the CRC field while the CRC is off, so between two
 * SoftND peers it says that; all zero: nothing is said. */
struct mpa_foretold {
    uint16_t size, count; /* a count of 65535: at least as many */
};
static inline void mpa_foretold_pack(uint8_t *crc_field, struct mpa_foretold f) {
    crc_field[0] = (uint8_t)(f.size >> 8);
    crc_field[1] = (uint8_t)f.size;
    crc_field[2] = (uint8_t)(f.count >> 8);
    crc_field[3] = (uint8_t)f.count;
}
static inline struct mpa_foretold mpa_foretold_unpack(const uint8_t *crc_field) {
    return (struct mpa_foretold){ .size = (uint16_t)((crc_field[0] << 8) | crc_field[1]),
                                  .count = (uint16_t)((crc_field[2] << 8) | crc_field[3]) };
}

/* True if the trailer (mpa_pad + 4 octets) fits the running CRC over ULPDU_Length and ULPDU. */
bool mpa_trailer_good(const uint8_t *trailer, size_t ulpdu_len, uint32_t state);

/* ---- Markers ---- */

#define MPA_MARKER_LEN 4
#define MPA_MARKER_INTERVAL 512

/* One direction of one connection. All zero is the start of full operation. */
struct mpa_markers {
    uint64_t pos; /* octets since the start of full operation, markers included */
    uint32_t
        fpdu_off; /* octets since this FPDU's ULPDU_Length, markers included; 0 between FPDUs */
};

/* Octets of FPDU that may follow before the next marker; 0: a marker is due now. */
static inline uint32_t mpa_markers_room(const struct mpa_markers *m) {
    return (uint32_t)(0u - m->pos) % MPA_MARKER_INTERVAL;
}

/* Counts n octets of FPDU, n <= mpa_markers_room(m). */
static inline void mpa_markers_advance(struct mpa_markers *m, uint32_t n) {
    m->pos += n;
    m->fpdu_off += n;
}

/* Writes the marker that is due (room is 0) to dst and counts it. */
void mpa_markers_put(struct mpa_markers *m, uint8_t *dst);

/* Says that the FPDU is complete: the next octet is a ULPDU_Length or the marker before it. */
static inline void mpa_markers_end_fpdu(struct mpa_markers *m) {
    m->fpdu_off = 0;
}

/* Stream octets that carry the next `body` octets of FPDU: each marker due before one of them is
 * counted, one due right behind the last is not. */
size_t mpa_markers_span(const struct mpa_markers *m, size_t body);

struct mpa_piece {
    const void *data;
    size_t len;
};

/* Builds one whole FPDU with its markers in dst. The pieces joined are ULPDU_Length and ULPDU; PAD
 * and CRC are added. *len gets the octets written, and m moves past them.
 * SN_E_PARAM: the pieces are not 2 + ULPDU_Length octets, or that is above MPA_MULPDU_MAX, or m is
 * not at a boundary of FPDUs (a multiple of 4).
 * SN_E_BUFFER_SMALL: cap is below mpa_markers_span(m, mpa_fpdu_size(L)). m is then unchanged. */
SN_MUST_CHECK sn_status mpa_fpdu_mark(struct mpa_markers *m, const struct mpa_piece *pieces,
                                      size_t count, bool crc_on, uint8_t *dst, size_t cap,
                                      size_t *len);

#ifdef __cplusplus
}
#endif
#endif
