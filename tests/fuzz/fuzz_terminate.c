/* SPDX-License-Identifier: MIT
 * fuzz_terminate.c - Terminate bodies. Input: the body, as a peer sent it; also taken as a segment
 * that a Terminate of ours must quote.
 */
#include "fuzz.h"
#include "iwarp/terminate.h"

static void check_quote(const uint8_t *data, size_t size) {
    struct rdmap_read_request left = { .size = 7 };
    for (int c = 0; c < RDMAP_FAULT_COUNT; c++)
        for (int with_read = 0; with_read < 2; with_read++) {
            struct rdmap_fault fault = rdmap_fault_make((enum rdmap_cause)c);
            struct terminate_about about = { .ulpdu = data,
                                             .have = size,
                                             .ulpdu_len = (uint16_t)size,
                                             .read = with_read ? &left : NULL };
            uint8_t dst[RDMAP_HEAD_MAX];
            size_t n = terminate_pack(dst, &fault, &about);
            FUZZ_CHECK(n == 24 || n == 40 || n == 44 || n == 72);
            struct terminate t;
            FUZZ_CHECK(terminate_unpack(dst + RDMAP_HEAD_UNTAGGED, n - RDMAP_HEAD_UNTAGGED, &t) ==
                       SN_OK);
            FUZZ_CHECK(t.layer == fault.layer && t.type == fault.type && t.code == fault.code);
            FUZZ_CHECK(t.has_header == (n > 24) && t.has_read == (n == 72) && !t.swapped);
            if (t.has_read && with_read) FUZZ_CHECK(t.read.size == 7);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct terminate t = { .segment_len = 0x5A5A };
    sn_status st = terminate_unpack(data, size, &t);
    FUZZ_CHECK(st == (size < RDMAP_TERMINATE_MIN ? SN_E_WIRE : SN_OK));
    if (st == SN_OK) {
        FUZZ_CHECK(t.layer < 16 && t.type < 16);
        FUZZ_CHECK(terminate_text(t.layer, t.type, t.code)[0] != 0);
        FUZZ_CHECK(!t.has_header || t.has_segment_len);
        FUZZ_CHECK(!t.has_read || (t.has_header && !t.header.tagged));
    } else {
        FUZZ_CHECK(t.segment_len == 0x5A5A);
    }
    check_quote(data, size);
    return 0;
}
