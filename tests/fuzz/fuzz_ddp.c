/* SPDX-License-Identifier: MIT
 * fuzz_ddp.c - DDP headers. Input: the front of a ULPDU.
 */
#include "fuzz.h"
#include "iwarp/ddp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ddp_header h, again;
    memset(&h, 0x5A, sizeof h);
    sn_status st = ddp_unpack(data, size, &h);
    FUZZ_CHECK((st == SN_OK) == (size != 0 && size >= ddp_header_len(data[0])));
    if (st != SN_OK) {
        FUZZ_CHECK(st == SN_E_MORE && h.stag == 0x5A5A5A5A);
        return 0;
    }
    uint8_t buf[DDP_HEADER_MAX];
    size_t n = h.tagged ? ddp_tagged_pack(buf, h.last, h.ulp, h.stag, h.to)
                        : ddp_untagged_pack(buf, h.last, h.ulp, h.stag, h.qn, h.msn, h.mo);
    FUZZ_CHECK(n == ddp_header_len(data[0]));
    FUZZ_CHECK(((buf[0] ^ data[0]) & 0xC0) == 0); /* reserved bits and version aside */
    FUZZ_CHECK(memcmp(buf + 1, data + 1, n - 1) == 0);
    FUZZ_CHECK(ddp_unpack(buf, n, &again) == SN_OK && again.version == DDP_VERSION);
    FUZZ_CHECK(again.tagged == h.tagged && again.last == h.last && again.to == h.to);
    return 0;
}
