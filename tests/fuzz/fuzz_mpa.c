/* SPDX-License-Identifier: MIT
 * fuzz_mpa.c - MPA start-up frames. Input: one octet (bit 0: a reply is due), then stream octets.
 */
#include "fuzz.h"
#include "iwarp/mpa.h"

static bool same_start(const struct mpa_start *a, const struct mpa_start *b) {
    return a->reply == b->reply && a->rev == b->rev && a->markers == b->markers &&
           a->crc == b->crc && a->reject == b->reject && a->enhanced == b->enhanced &&
           a->enh.p2p == b->enh.p2p && a->enh.rtr_send == b->enh.rtr_send &&
           a->enh.rtr_write == b->enh.rtr_write && a->enh.rtr_read == b->enh.rtr_read &&
           a->enh.ird == b->enh.ird && a->enh.ord == b->enh.ord && a->pd_len == b->pd_len &&
           memcmp(a->pd, b->pd, a->pd_len) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    bool want_reply = data[0] & 1;
    data++;
    size--;
    struct mpa_start whole = { 0 };
    size_t whole_need, last_need = MPA_START_HEADER_LEN;
    enum mpa_start_fault whole_fault;
    sn_status whole_st =
        mpa_start_unpack(data, size, want_reply, &whole, &whole_need, &whole_fault);
    FUZZ_CHECK(whole_st == SN_OK || whole_st == SN_E_MORE || whole_st == SN_E_WIRE);
    FUZZ_CHECK((whole_fault != MPA_START_FAULT_NONE) == (whole_st == SN_E_WIRE));
    FUZZ_CHECK(mpa_start_fault_text(whole_fault) != NULL);

    /* However the octets arrive: more, more, ... and then the same answer for good. */
    bool decided = false;
    for (size_t have = 0; have <= size && have <= MPA_START_MAX + 1; have++) {
        uint8_t *part = fuzz_copy(data, have);
        struct mpa_start s = { 0 };
        size_t need;
        enum mpa_start_fault fault;
        sn_status st = mpa_start_unpack(part, have, want_reply, &s, &need, &fault);
        FUZZ_CHECK(need >= last_need && need <= MPA_START_MAX);
        last_need = need;
        if (st == SN_E_MORE) {
            FUZZ_CHECK(!decided && have < need);
        } else {
            decided = true;
            FUZZ_CHECK(st == whole_st && fault == whole_fault && need == whole_need);
            if (st == SN_OK) {
                FUZZ_CHECK(have >= need && s.pd + s.pd_len == part + need);
                FUZZ_CHECK(same_start(&s, &whole));
            }
        }
        free(part);
    }
    FUZZ_CHECK(decided == (whole_st != SN_E_MORE));

    if (whole_st == SN_OK) {
        uint8_t buf[MPA_START_MAX];
        struct mpa_start again = { 0 };
        size_t len, need;
        enum mpa_start_fault fault;
        FUZZ_CHECK(mpa_start_pack(&whole, buf, sizeof buf, &len) == SN_OK && len == whole_need);
        FUZZ_CHECK(mpa_start_unpack(buf, len, want_reply, &again, &need, &fault) == SN_OK);
        FUZZ_CHECK(same_start(&again, &whole));
    }
    return 0;
}
