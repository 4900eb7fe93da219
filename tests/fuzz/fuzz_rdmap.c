/* SPDX-License-Identifier: MIT
 * fuzz_rdmap.c - segments and bodies. Input: ULPDU_Length, then octets of the ULPDU; that is an
 * FPDU without its trailer.
 */
#include "fuzz.h"
#include "iwarp/rdmap.h"
#include "iwarp/terminate.h"

static bool same_segment(const struct rdmap_segment *a, const struct rdmap_segment *b) {
    return a->opcode == b->opcode && a->tagged == b->tagged && a->last == b->last &&
           a->header_len == b->header_len && a->payload_len == b->payload_len &&
           a->stag == b->stag && a->to == b->to && a->qn == b->qn && a->msn == b->msn &&
           a->mo == b->mo;
}

static bool same_fault(const struct rdmap_fault *a, const struct rdmap_fault *b) {
    return a->layer == b->layer && a->type == b->type && a->code == b->code &&
           a->headers == b->headers && a->in_terminate == b->in_terminate;
}

/* A head packed from what was read reads the same. */
static void check_head(const struct rdmap_segment *seg) {
    uint8_t head[RDMAP_HEAD_MAX];
    struct rdmap_segment again;
    struct rdmap_fault fault;
    enum rdmap_opcode op = (enum rdmap_opcode)seg->opcode;
    size_t n = seg->tagged
                   ? rdmap_tagged_pack(head, op, seg->last, seg->stag, seg->to, seg->payload_len)
                   : rdmap_untagged_pack(head, op, seg->last, seg->stag, seg->qn, seg->msn, seg->mo,
                                         seg->payload_len);
    size_t ulpdu_len = ((size_t)head[0] << 8) | head[1];
    FUZZ_CHECK(ulpdu_len == n - MPA_LEN_LEN + seg->payload_len);
    FUZZ_CHECK(rdmap_unpack(head + MPA_LEN_LEN, n - MPA_LEN_LEN, ulpdu_len, &again, &fault) ==
               SN_OK);
    FUZZ_CHECK(same_segment(&again, seg));
}

static void check_body(const struct rdmap_segment *seg, const uint8_t *body, size_t len) {
    uint8_t head[RDMAP_HEAD_MAX];
    const uint8_t *packed = head + RDMAP_HEAD_UNTAGGED;
    struct rdmap_read_request rr;
    struct rdmap_atomic_request ar;
    struct rdmap_atomic_response as;
    struct rdmap_fault fault;
    struct terminate t;
    uint64_t data;
    switch (seg->opcode) {
    case RDMAP_READ_REQUEST:
        FUZZ_CHECK(rdmap_read_request_unpack(body, len, &rr) == SN_OK);
        rdmap_read_request_pack(head, seg->msn, &rr);
        FUZZ_CHECK(memcmp(packed, body, RDMAP_READ_REQUEST_LEN) == 0);
        break;
    case RDMAP_IMMEDIATE:
    case RDMAP_IMMEDIATE_SE:
        FUZZ_CHECK(rdmap_immediate_unpack(body, len, &data) == SN_OK);
        rdmap_immediate_pack(head, seg->opcode == RDMAP_IMMEDIATE_SE, seg->msn, data);
        FUZZ_CHECK(memcmp(packed, body, RDMAP_IMMEDIATE_LEN) == 0);
        break;
    case RDMAP_ATOMIC_REQUEST:
        if (rdmap_atomic_request_unpack(body, len, &ar, &fault) == SN_OK) {
            FUZZ_CHECK(ar.to % 8 == 0);
            rdmap_atomic_request_pack(head, seg->msn, &ar);
            FUZZ_CHECK(memcmp(packed + 4, body + 4, RDMAP_ATOMIC_REQUEST_LEN - 4) == 0);
        } else {
            FUZZ_CHECK(fault.layer == 0 && fault.type == 2);
        }
        break;
    case RDMAP_ATOMIC_RESPONSE:
        FUZZ_CHECK(rdmap_atomic_response_unpack(body, len, &as) == SN_OK);
        rdmap_atomic_response_pack(head, seg->msn, &as);
        FUZZ_CHECK(memcmp(packed, body, RDMAP_ATOMIC_RESPONSE_LEN) == 0);
        break;
    case RDMAP_TERMINATE:
        FUZZ_CHECK(terminate_unpack(body, len, &t) == SN_OK);
        break;
    default:
        FUZZ_CHECK(rdmap_op_of(seg->opcode)->payload);
    }
}

/* The Terminate for a refused segment can be sent and is one. */
static void check_answer(const struct rdmap_fault *fault, const uint8_t *ulpdu, size_t have,
                         size_t ulpdu_len) {
    uint8_t dst[RDMAP_HEAD_MAX];
    struct terminate_about about = { .ulpdu = ulpdu,
                                     .have = have,
                                     .ulpdu_len = (uint16_t)ulpdu_len };
    struct rdmap_segment seg;
    struct rdmap_fault none;
    struct terminate t;
    FUZZ_CHECK(terminate_known(fault->layer, fault->type, fault->code));
    size_t n = terminate_pack(dst, fault, &about);
    FUZZ_CHECK(n <= sizeof dst);
    FUZZ_CHECK(rdmap_unpack(dst + 2, n - 2, n - 2, &seg, &none) == SN_OK);
    FUZZ_CHECK(terminate_unpack(dst + 2 + seg.header_len, seg.payload_len, &t) == SN_OK);
    FUZZ_CHECK(t.layer == fault->layer && t.type == fault->type && t.code == fault->code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < MPA_LEN_LEN) return 0;
    size_t ulpdu_len = ((size_t)data[0] << 8) | data[1];
    data += MPA_LEN_LEN;
    size -= MPA_LEN_LEN;
    if (size > ulpdu_len) size = ulpdu_len;
    struct rdmap_segment whole = { 0 };
    struct rdmap_fault whole_fault = { 0 };
    sn_status whole_st = rdmap_unpack(data, size, ulpdu_len, &whole, &whole_fault);
    FUZZ_CHECK(whole_st == SN_OK || whole_st == SN_E_MORE || whole_st == SN_E_WIRE);

    bool decided = false;
    for (size_t have = 0; have <= size && have <= DDP_HEADER_MAX + 2; have++) {
        uint8_t *part = fuzz_copy(data, have);
        struct rdmap_segment seg = { 0 };
        struct rdmap_fault fault = { 0 };
        sn_status st = rdmap_unpack(part, have, ulpdu_len, &seg, &fault);
        free(part);
        if (st == SN_E_MORE) {
            FUZZ_CHECK(!decided && have < DDP_HEADER_MAX);
            continue;
        }
        decided = true;
        FUZZ_CHECK(st == whole_st && same_segment(&seg, &whole));
        FUZZ_CHECK(same_fault(&fault, &whole_fault));
    }
    FUZZ_CHECK(decided == (whole_st != SN_E_MORE));

    if (whole_st == SN_OK) {
        FUZZ_CHECK(whole.header_len + whole.payload_len == ulpdu_len);
        FUZZ_CHECK(rdmap_op_of(whole.opcode)->name != NULL);
        check_head(&whole);
        if (size == ulpdu_len) check_body(&whole, data + whole.header_len, size - whole.header_len);
    }
    if (whole_st == SN_E_WIRE) check_answer(&whole_fault, data, size, ulpdu_len);
    return 0;
}
