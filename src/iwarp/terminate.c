/* SPDX-License-Identifier: MIT
 * terminate.c - the Terminate message and the meaning of its codes.
 *
 * A peer in the wild builds the control octets from C bit-fields, so that on little-endian hosts
 * layer and type change places and the three flags sit at the other end of their octet. A Terminate
 * that makes sense only that way is read that way.
 */
#include "iwarp/terminate.h"
#include "base/base.h"
#include "base/cursor.h"

#define FLAG_SEGMENT_LEN 0x80u
#define FLAG_HEADER 0x40u
#define FLAG_READ 0x20u
#define FLAGS 0xE0u
#define SWAPPED_FLAG_SEGMENT_LEN 0x01u
#define SWAPPED_FLAG_HEADER 0x02u
#define SWAPPED_FLAG_READ 0x04u
#define SWAPPED_FLAGS 0x07u

/* ---- Codes ---- */

#define ANY_CODE (-1)

static const struct {
    uint8_t layer, type;
    int code;
    const char *text;
} codes[] = {
    { 0, 0, ANY_CODE, "RDMAP: local catastrophic error" },
    { 0, 1, 0x00, "RDMAP remote protection: invalid STag" },
    { 0, 1, 0x01, "RDMAP remote protection: outside the region" },
    { 0, 1, 0x02, "RDMAP remote protection: access rights" },
    { 0, 1, 0x03, "RDMAP remote protection: STag not associated with the stream" },
    { 0, 1, 0x04, "RDMAP remote protection: TO wraps" },
    { 0, 1, 0x09, "RDMAP remote protection: STag cannot be invalidated" },
    { 0, 1, 0xFF, "RDMAP remote protection: unspecified" },
    { 0, 2, 0x05, "RDMAP remote operation: invalid RDMAP version" },
    { 0, 2, 0x06, "RDMAP remote operation: unexpected opcode" },
    { 0, 2, 0x07, "RDMAP remote operation: catastrophic, this stream" },
    { 0, 2, 0x08, "RDMAP remote operation: catastrophic, all streams" },
    { 0, 2, 0x09, "RDMAP remote operation: STag cannot be invalidated" },
    { 0, 2, 0xFF, "RDMAP remote operation: unspecified" },
    { 1, 0, ANY_CODE, "DDP: local catastrophic error" },
    { 1, 1, 0x00, "DDP tagged: invalid STag" },
    { 1, 1, 0x01, "DDP tagged: outside the region" },
    { 1, 1, 0x02, "DDP tagged: STag not associated with the stream" },
    { 1, 1, 0x03, "DDP tagged: TO wraps" },
    { 1, 1, 0x04, "DDP tagged: invalid DDP version" },
    { 1, 2, 0x01, "DDP untagged: invalid queue number" },
    { 1, 2, 0x02, "DDP untagged: no receive buffer" },
    { 1, 2, 0x03, "DDP untagged: message sequence number out of range" },
    { 1, 2, 0x04, "DDP untagged: invalid message offset" },
    { 1, 2, 0x05, "DDP untagged: message longer than the receive buffer" },
    { 1, 2, 0x06, "DDP untagged: invalid DDP version" },
    { 1, 3, ANY_CODE, "DDP: error of the layer below" },
    { 2, 0, 0x01, "MPA: connection closed or lost" },
    { 2, 0, 0x02, "MPA: CRC mismatch" },
    { 2, 0, 0x03, "MPA: marker and ULPDU length disagree" },
    { 2, 0, 0x04, "MPA: invalid start-up frame" },
    { 2, 0, 0x05, "MPA: local catastrophic error" },
    { 2, 0, 0x06, "MPA: insufficient IRD" },
    { 2, 0, 0x07, "MPA: no matching RTR" },
};

static const char *find_text(uint8_t layer, uint8_t type, uint8_t code) {
    if (layer == TERMINATE_LAYER_LLP && type == 3) type = 0; /* as NICs number it */
    for (size_t i = 0; i < SN_ARRAY_LEN(codes); i++)
        if (codes[i].layer == layer && codes[i].type == type &&
            (codes[i].code == ANY_CODE || codes[i].code == code))
            return codes[i].text;
    return NULL;
}

bool terminate_known(uint8_t layer, uint8_t type, uint8_t code) {
    return find_text(layer, type, code) != NULL;
}

const char *terminate_text(uint8_t layer, uint8_t type, uint8_t code) {
    static const char *const unknown[] = { "RDMAP: unknown error", "DDP: unknown error",
                                           "MPA: unknown error" };
    const char *text = find_text(layer, type, code);
    if (text) return text;
    return layer < SN_ARRAY_LEN(unknown) ? unknown[layer] : "error of an unknown layer";
}

/* ---- The message ---- */

static bool is_read_request(const struct ddp_header *h) {
    return !h->tagged && rdmap_opcode_of(h->ulp) == RDMAP_READ_REQUEST;
}

size_t terminate_pack(uint8_t *dst, const struct rdmap_fault *fault,
                      const struct terminate_about *about) {
    struct ddp_header h = { 0 };
    struct rdmap_read_request rr = { 0 };
    uint8_t flags = 0;
    size_t header_len = 0;
    if (fault->headers != RDMAP_QUOTE_NONE && about && about->ulpdu) {
        size_t have = SN_MIN(about->have, (size_t)about->ulpdu_len);
        if (have != 0 && ddp_unpack(about->ulpdu, have, &h) == SN_OK) {
            flags = FLAG_SEGMENT_LEN | FLAG_HEADER;
            header_len = ddp_header_len(about->ulpdu[0]);
        }
        if (flags && fault->headers == RDMAP_QUOTE_READ && is_read_request(&h)) {
            if (about->read) rr = *about->read;
            if (about->read || rdmap_read_request_unpack(about->ulpdu + header_len,
                                                         have - header_len, &rr) == SN_OK)
                flags |= FLAG_READ;
        }
    }

    uint32_t body_len = RDMAP_TERMINATE_MIN + (flags ? 2u + (uint32_t)header_len : 0u) +
                        (flags & FLAG_READ ? RDMAP_READ_REQUEST_LEN : 0u);
    size_t n = rdmap_untagged_pack(dst, RDMAP_TERMINATE, true, 0, DDP_QN_TERMINATE, 1, 0, body_len);
    struct sn_wcur w = sn_wcur_make(dst + n, body_len);
    sn_wcur_u8(&w, (uint8_t)((fault->layer << 4) | (fault->type & 0x0Fu)));
    sn_wcur_u8(&w, fault->code);
    sn_wcur_u8(&w, flags);
    sn_wcur_u8(&w, 0);
    if (flags) {
        sn_wcur_be16(&w, about->ulpdu_len);
        sn_wcur_bytes(&w, about->ulpdu, header_len);
    }
    if (flags & FLAG_READ) rdmap_read_request_body_pack(w.p, &rr);
    return n + body_len;
}

/* Layer and type as the sender meant them, and the flags in RFC position. */
static uint8_t read_control(struct sn_cur *c, struct terminate *t) {
    uint8_t kind = sn_cur_u8(c);
    t->layer = kind >> 4;
    t->type = kind & 0x0Fu;
    t->code = sn_cur_u8(c);
    uint8_t flags = sn_cur_u8(c);
    sn_cur_u8(c);
    if (flags & FLAGS) return flags & FLAGS;
    if (flags & SWAPPED_FLAGS)
        t->swapped = true;
    else
        t->swapped = !terminate_known(t->layer, t->type, t->code) &&
                     terminate_known(t->type, t->layer, t->code);
    if (!t->swapped) return 0;
    t->layer = kind & 0x0Fu;
    t->type = kind >> 4;
    return (uint8_t)((flags & SWAPPED_FLAG_SEGMENT_LEN ? FLAG_SEGMENT_LEN : 0u) |
                     (flags & SWAPPED_FLAG_HEADER ? FLAG_HEADER : 0u) |
                     (flags & SWAPPED_FLAG_READ ? FLAG_READ : 0u));
}

sn_status terminate_unpack(const void *body, size_t len, struct terminate *out) {
    if (len < RDMAP_TERMINATE_MIN) return SN_E_WIRE;
    struct sn_cur c = sn_cur_make(body, len);
    struct terminate t = { 0 };
    uint8_t flags = read_control(&c, &t);
    if ((flags & (FLAG_SEGMENT_LEN | FLAG_HEADER)) && sn_cur_left(&c) >= 2) {
        t.has_segment_len = true;
        t.segment_len = sn_cur_be16(&c);
    }
    if ((flags & FLAG_HEADER) && sn_cur_left(&c) != 0 &&
        ddp_unpack(c.p, sn_cur_left(&c), &t.header) == SN_OK) {
        t.has_header = true;
        sn_cur_take(&c, ddp_header_len(c.p[0]));
    }
    if ((flags & FLAG_READ) && t.has_header && is_read_request(&t.header))
        t.has_read = rdmap_read_request_unpack(c.p, sn_cur_left(&c), &t.read) == SN_OK;
    *out = t;
    return SN_OK;
}
