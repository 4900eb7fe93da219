/* SPDX-License-Identifier: MIT
 * rdmap.c - the opcode table, the judgement of inbound headers, and the message bodies.
 */
#include "iwarp/rdmap.h"
#include "base/base.h"
#include "base/cursor.h"

#include <string.h>

#define CONTROL_VERSION_MASK 0xC0u
#define CONTROL_VERSION 0x40u

static const struct rdmap_op ops[RDMAP_OPCODE_COUNT] = {
    [RDMAP_WRITE] = { .name = "Write", .tagged = true, .payload = true },
    [RDMAP_READ_REQUEST] = { .name = "Read Request",
                             .qn = DDP_QN_READ_REQUEST,
                             .body_min = RDMAP_READ_REQUEST_LEN,
                             .body_max = RDMAP_READ_REQUEST_LEN },
    [RDMAP_READ_RESPONSE] = { .name = "Read Response", .tagged = true, .payload = true },
    [RDMAP_SEND] = { .name = "Send", .payload = true, .receives = true, .qn = DDP_QN_SEND },
    [RDMAP_SEND_INV] = { .name = "Send with Invalidate",
                         .payload = true,
                         .receives = true,
                         .invalidates = true,
                         .qn = DDP_QN_SEND },
    [RDMAP_SEND_SE] = { .name = "Send with Solicited Event",
                        .payload = true,
                        .receives = true,
                        .solicited = true,
                        .qn = DDP_QN_SEND },
    [RDMAP_SEND_SE_INV] = { .name = "Send with Solicited Event and Invalidate",
                            .payload = true,
                            .receives = true,
                            .solicited = true,
                            .invalidates = true,
                            .qn = DDP_QN_SEND },
    [RDMAP_TERMINATE] = { .name = "Terminate",
                          .qn = DDP_QN_TERMINATE,
                          .body_min = RDMAP_TERMINATE_MIN,
                          .body_max = RDMAP_TERMINATE_MAX },
    [RDMAP_IMMEDIATE] = { .name = "Immediate Data",
                          .receives = true,
                          .qn = DDP_QN_SEND,
                          .body_min = RDMAP_IMMEDIATE_LEN,
                          .body_max = RDMAP_IMMEDIATE_LEN },
    [RDMAP_IMMEDIATE_SE] = { .name = "Immediate Data with Solicited Event",
                             .receives = true,
                             .solicited = true,
                             .qn = DDP_QN_SEND,
                             .body_min = RDMAP_IMMEDIATE_LEN,
                             .body_max = RDMAP_IMMEDIATE_LEN },
    [RDMAP_ATOMIC_REQUEST] = { .name = "Atomic Request",
                               .qn = DDP_QN_READ_REQUEST,
                               .body_min = RDMAP_ATOMIC_REQUEST_LEN,
                               .body_max = RDMAP_ATOMIC_REQUEST_LEN },
    [RDMAP_ATOMIC_RESPONSE] = { .name = "Atomic Response",
                                .qn = DDP_QN_ATOMIC_RESPONSE,
                                .body_min = RDMAP_ATOMIC_RESPONSE_LEN,
                                .body_max = RDMAP_ATOMIC_RESPONSE_LEN },
};

SN_HOT const struct rdmap_op *rdmap_op_of(uint8_t opcode) {
    return &ops[rdmap_opcode_of(opcode)];
}

#define FAULT_ROW(n, l, t, c, q, text)                                                             \
    [RDMAP_FAULT_##n] = { .layer = (l), .type = (t), .code = (c), .headers = RDMAP_QUOTE_##q },
static const struct rdmap_fault faults[RDMAP_FAULT_COUNT] = { RDMAP_FAULT_LIST(FAULT_ROW) };
#undef FAULT_ROW

#define FAULT_TEXT(n, l, t, c, q, text) [RDMAP_FAULT_##n] = text,
static const char *const fault_texts[RDMAP_FAULT_COUNT] = { RDMAP_FAULT_LIST(FAULT_TEXT) };
#undef FAULT_TEXT

struct rdmap_fault rdmap_fault_make(enum rdmap_cause cause) {
    SN_ASSERT((unsigned)cause < RDMAP_FAULT_COUNT);
    return faults[cause];
}

const char *rdmap_fault_text(enum rdmap_cause cause) {
    return (unsigned)cause < RDMAP_FAULT_COUNT ? fault_texts[cause] : "unknown fault";
}

/* ---- Inbound headers ---- */

#define LEGAL RDMAP_FAULT_COUNT

/* What is wrong with a segment that is not ULP payload, or LEGAL. Such a message is one segment; a
 * part of one, or one that would go on, is a body of the wrong size. */
static enum rdmap_cause judge_body(const struct ddp_header *h, const struct rdmap_op *op,
                                   uint8_t opcode, size_t body_len) {
    if (h->mo != 0) return RDMAP_FAULT_MO;
    if (body_len < op->body_min)
        return opcode == RDMAP_TERMINATE ? RDMAP_FAULT_SHORT : RDMAP_FAULT_BODY;
    if (body_len > op->body_max || !h->last)
        return opcode == RDMAP_READ_REQUEST || opcode == RDMAP_TERMINATE ? RDMAP_FAULT_TOO_LONG
                                                                         : RDMAP_FAULT_BODY;
    if (opcode == RDMAP_TERMINATE && h->msn != 1) return RDMAP_FAULT_MSN;
    return LEGAL;
}

/* Versions first, since they decide what everything else means. ulpdu_len is at least 2, and if it
 * is below header_len only the two control octets of h count. */
static enum rdmap_cause judge(const struct ddp_header *h, const struct rdmap_op *op, uint8_t opcode,
                              size_t header_len, size_t ulpdu_len) {
    if (h->version != DDP_VERSION)
        return h->tagged ? RDMAP_FAULT_DV_TAGGED : RDMAP_FAULT_DV_UNTAGGED;
    if ((h->ulp & CONTROL_VERSION_MASK) != CONTROL_VERSION) return RDMAP_FAULT_RV;
    if (op->name == NULL || op->tagged != h->tagged) return RDMAP_FAULT_OPCODE;
    if (ulpdu_len < header_len) return RDMAP_FAULT_SHORT;
    if (!op->tagged && h->qn != op->qn) return RDMAP_FAULT_QN;
    return op->payload ? LEGAL : judge_body(h, op, opcode, ulpdu_len - header_len);
}

SN_COLD static sn_status refuse(enum rdmap_cause cause, bool is_terminate,
                                struct rdmap_fault *fault) {
    *fault = faults[cause];
    fault->in_terminate = is_terminate;
    return SN_E_WIRE;
}

/* A ULPDU that ends inside its header: never legal, the question is what to call it. */
SN_COLD static sn_status refuse_short(const uint8_t *p, size_t have, size_t ulpdu_len,
                                      struct rdmap_fault *fault) {
    if (have < ulpdu_len) return SN_E_MORE;
    if (ulpdu_len < 2) return refuse(RDMAP_FAULT_SHORT, false, fault);
    uint8_t padded[DDP_HEADER_MAX] = { 0 };
    struct ddp_header h = { 0 };
    memcpy(padded, p, ulpdu_len);
    if (ddp_unpack(padded, sizeof padded, &h) != SN_OK) return SN_E_INTERNAL;
    uint8_t opcode = rdmap_opcode_of(h.ulp);
    return refuse(judge(&h, &ops[opcode], opcode, ddp_header_len(p[0]), ulpdu_len),
                  opcode == RDMAP_TERMINATE, fault);
}

SN_HOT sn_status rdmap_unpack(const void *ulpdu, size_t have, size_t ulpdu_len,
                              struct rdmap_segment *out, struct rdmap_fault *fault) {
    const uint8_t *p = (const uint8_t *)ulpdu;
    if (SN_UNLIKELY(ulpdu_len == 0)) return refuse(RDMAP_FAULT_SHORT, false, fault);
    if (have == 0) return SN_E_MORE;
    size_t header_len = ddp_header_len(p[0]);
    if (SN_UNLIKELY(ulpdu_len < header_len)) return refuse_short(p, have, ulpdu_len, fault);

    struct ddp_header h;
    if (ddp_unpack(p, have, &h) != SN_OK) return SN_E_MORE;
    uint8_t opcode = rdmap_opcode_of(h.ulp);
    const struct rdmap_op *op = &ops[opcode];
    enum rdmap_cause cause = judge(&h, op, opcode, header_len, ulpdu_len);
    if (SN_UNLIKELY(cause != LEGAL)) return refuse(cause, opcode == RDMAP_TERMINATE, fault);

    *out = (struct rdmap_segment){
        .opcode = opcode,
        .tagged = h.tagged,
        .last = h.last,
        .header_len = (uint8_t)header_len,
        .payload_len = (uint32_t)(ulpdu_len - header_len),
        .stag = h.tagged || op->invalidates ? h.stag : 0,
        .to = h.to,
        .qn = h.qn,
        .msn = h.msn,
        .mo = h.mo,
    };
    return SN_OK;
}

/* ---- FPDU heads and bodies ---- */

static uint8_t control(enum rdmap_opcode op) {
    return (uint8_t)(CONTROL_VERSION | (unsigned)op);
}

static uint8_t *put_len(uint8_t *dst, uint32_t ulpdu_len) {
    dst[0] = (uint8_t)(ulpdu_len >> 8);
    dst[1] = (uint8_t)ulpdu_len;
    return dst + MPA_LEN_LEN;
}

SN_HOT size_t rdmap_tagged_pack(uint8_t *dst, enum rdmap_opcode op, bool last, uint32_t stag,
                                uint64_t to, uint32_t payload_len) {
    ddp_tagged_pack(put_len(dst, DDP_TAGGED_LEN + payload_len), last, control(op), stag, to);
    return RDMAP_HEAD_TAGGED;
}

SN_HOT size_t rdmap_untagged_pack(uint8_t *dst, enum rdmap_opcode op, bool last, uint32_t inv_stag,
                                  uint32_t qn, uint32_t msn, uint32_t mo, uint32_t payload_len) {
    ddp_untagged_pack(put_len(dst, DDP_UNTAGGED_LEN + payload_len), last, control(op), inv_stag, qn,
                      msn, mo);
    return RDMAP_HEAD_UNTAGGED;
}

/* The head of a one-segment message; its body goes behind it. */
static size_t put_head(uint8_t *dst, enum rdmap_opcode op, uint32_t msn, uint32_t body_len) {
    return rdmap_untagged_pack(dst, op, true, 0, ops[op].qn, msn, 0, body_len);
}

void rdmap_read_request_body_pack(uint8_t *dst, const struct rdmap_read_request *rr) {
    struct sn_wcur w = sn_wcur_make(dst, RDMAP_READ_REQUEST_LEN);
    sn_wcur_be32(&w, rr->sink_stag);
    sn_wcur_be64(&w, rr->sink_to);
    sn_wcur_be32(&w, rr->size);
    sn_wcur_be32(&w, rr->src_stag);
    sn_wcur_be64(&w, rr->src_to);
}

size_t rdmap_read_request_pack(uint8_t *dst, uint32_t msn, const struct rdmap_read_request *rr) {
    size_t n = put_head(dst, RDMAP_READ_REQUEST, msn, RDMAP_READ_REQUEST_LEN);
    rdmap_read_request_body_pack(dst + n, rr);
    return RDMAP_HEAD_READ_REQUEST;
}

sn_status rdmap_read_request_unpack(const void *body, size_t len, struct rdmap_read_request *out) {
    struct sn_cur c = sn_cur_make(body, len);
    struct rdmap_read_request rr;
    rr.sink_stag = sn_cur_be32(&c);
    rr.sink_to = sn_cur_be64(&c);
    rr.size = sn_cur_be32(&c);
    rr.src_stag = sn_cur_be32(&c);
    rr.src_to = sn_cur_be64(&c);
    if (c.bad) return SN_E_MORE;
    *out = rr;
    return SN_OK;
}

size_t rdmap_immediate_pack(uint8_t *dst, bool solicited, uint32_t msn, uint64_t data) {
    size_t n =
        put_head(dst, solicited ? RDMAP_IMMEDIATE_SE : RDMAP_IMMEDIATE, msn, RDMAP_IMMEDIATE_LEN);
    struct sn_wcur w = sn_wcur_make(dst + n, RDMAP_IMMEDIATE_LEN);
    sn_wcur_be64(&w, data);
    return n + RDMAP_IMMEDIATE_LEN;
}

sn_status rdmap_immediate_unpack(const void *body, size_t len, uint64_t *data) {
    struct sn_cur c = sn_cur_make(body, len);
    uint64_t v = sn_cur_be64(&c);
    if (c.bad) return SN_E_MORE;
    *data = v;
    return SN_OK;
}

size_t rdmap_atomic_request_pack(uint8_t *dst, uint32_t msn,
                                 const struct rdmap_atomic_request *ar) {
    size_t n = put_head(dst, RDMAP_ATOMIC_REQUEST, msn, RDMAP_ATOMIC_REQUEST_LEN);
    struct sn_wcur w = sn_wcur_make(dst + n, RDMAP_ATOMIC_REQUEST_LEN);
    sn_wcur_be32(&w, ar->op);
    sn_wcur_be32(&w, ar->id);
    sn_wcur_be32(&w, ar->stag);
    sn_wcur_be64(&w, ar->to);
    sn_wcur_be64(&w, ar->data);
    sn_wcur_be64(&w, ar->mask);
    sn_wcur_be64(&w, ar->compare);
    sn_wcur_be64(&w, ar->compare_mask);
    return n + RDMAP_ATOMIC_REQUEST_LEN;
}

sn_status rdmap_atomic_request_unpack(const void *body, size_t len,
                                      struct rdmap_atomic_request *out, struct rdmap_fault *fault) {
    struct sn_cur c = sn_cur_make(body, len);
    struct rdmap_atomic_request ar;
    ar.op = sn_cur_be32(&c) & 0x0Fu;
    ar.id = sn_cur_be32(&c);
    ar.stag = sn_cur_be32(&c);
    ar.to = sn_cur_be64(&c);
    ar.data = sn_cur_be64(&c);
    ar.mask = sn_cur_be64(&c);
    ar.compare = sn_cur_be64(&c);
    ar.compare_mask = sn_cur_be64(&c);
    if (c.bad) return SN_E_MORE;
    if (ar.op != RDMAP_FETCH_ADD && ar.op != RDMAP_CMP_SWAP)
        return refuse(RDMAP_FAULT_ATOMIC_OPCODE, false, fault);
    if (ar.to % 8 != 0) return refuse(RDMAP_FAULT_ATOMIC_ALIGN, false, fault);
    *out = ar;
    return SN_OK;
}

size_t rdmap_atomic_response_pack(uint8_t *dst, uint32_t msn,
                                  const struct rdmap_atomic_response *ar) {
    size_t n = put_head(dst, RDMAP_ATOMIC_RESPONSE, msn, RDMAP_ATOMIC_RESPONSE_LEN);
    struct sn_wcur w = sn_wcur_make(dst + n, RDMAP_ATOMIC_RESPONSE_LEN);
    sn_wcur_be32(&w, ar->id);
    sn_wcur_be64(&w, ar->original);
    return n + RDMAP_ATOMIC_RESPONSE_LEN;
}

sn_status rdmap_atomic_response_unpack(const void *body, size_t len,
                                       struct rdmap_atomic_response *out) {
    struct sn_cur c = sn_cur_make(body, len);
    struct rdmap_atomic_response ar;
    ar.id = sn_cur_be32(&c);
    ar.original = sn_cur_be64(&c);
    if (c.bad) return SN_E_MORE;
    *out = ar;
    return SN_OK;
}
