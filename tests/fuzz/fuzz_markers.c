/* SPDX-License-Identifier: MIT
 * fuzz_markers.c - markers out of and into a stream. Input: stream position in words (2 octets),
 * flags (1 CRC on, 2 make the CRC good first), then the octets of a run.
 */
#include "fuzz.h"
#include "iwarp/mpa.h"
#include "support/unmark.h"

/* Stripping in two runs, cut at `cut`, gives the same as in one. */
static void check_strip(uint64_t pos, const uint8_t *run, size_t size, size_t cut) {
    uint8_t *one = fuzz_copy(run, size), *two = fuzz_copy(run, size);
    struct mpa_markers m = { pos, 0 };
    size_t kept = mpa_markers_strip(&m, one, size);
    FUZZ_CHECK(m.pos == pos + size && kept <= size);
    m.pos = pos;
    size_t a = mpa_markers_strip(&m, two, cut);
    size_t b = mpa_markers_strip(&m, two + cut, size - cut);
    memmove(two + a, two + cut, b);
    FUZZ_CHECK(a + b == kept && memcmp(one, two, kept) == 0);
    free(one);
    free(two);
}

/* What was taken out goes back in, to the same octets but for reserved and PAD bits. */
static void check_again(uint64_t pos, const struct mpa_unmarked *u, bool crc_on, size_t span) {
    if (u->ulpdu_len > MPA_MULPDU_MAX) return;
    uint8_t *marked = (uint8_t *)malloc(span);
    FUZZ_CHECK(marked != NULL);
    struct mpa_markers out = { pos, 0 }, in = { pos, 0 };
    struct mpa_piece piece = { u->fpdu, MPA_LEN_LEN + (size_t)u->ulpdu_len };
    size_t len = 0;
    FUZZ_CHECK(mpa_fpdu_mark(&out, &piece, 1, crc_on, marked, span - 1, &len) == SN_E_BUFFER_SMALL);
    FUZZ_CHECK(out.pos == pos);
    FUZZ_CHECK(mpa_fpdu_mark(&out, &piece, 1, crc_on, marked, span, &len) == SN_OK);
    FUZZ_CHECK(len == span && out.pos == pos + span);
    struct mpa_unmarked again;
    FUZZ_CHECK(mpa_fpdu_unmark(&in, marked, span, crc_on, &again) == SN_OK);
    FUZZ_CHECK(again.ulpdu_len == u->ulpdu_len && in.pos == out.pos);
    FUZZ_CHECK(memcmp(again.fpdu, u->fpdu, piece.len) == 0);
    free(marked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3) return 0;
    uint64_t pos = (uint64_t)((data[0] << 8) | data[1]) * 4;
    bool crc_on = data[2] & 1, fix_crc = data[2] & 2;
    size_t cut = data[2] >> 2;
    data += 3;
    size -= 3;
    check_strip(pos, data, size, cut < size ? cut : size);
    check_strip(pos + data[-1] % 4, data, size, size / 2);

    uint8_t *run = fuzz_copy(data, size);
    struct mpa_markers m = { pos, 0 };
    struct mpa_unmarked u;
    sn_status st = mpa_fpdu_unmark(&m, run, size, false, &u);
    if (st == SN_OK || st == SN_E_WIRE) {
        size_t span = u.need;
        FUZZ_CHECK(span <= size && span <= MPA_FPDU_MARKED_MAX);
        memcpy(run, data, size);
        if (fix_crc) mpa_crc_pack(run + span - MPA_CRC_LEN, sn_crc32c(run, span - MPA_CRC_LEN));
        m.pos = pos;
        sn_status with_crc = mpa_fpdu_unmark(&m, run, size, crc_on, &u);
        FUZZ_CHECK(u.need == span);
        if (!crc_on || fix_crc) FUZZ_CHECK(with_crc == st);
        if (with_crc == SN_OK) {
            FUZZ_CHECK(u.fault == MPA_FPDU_FAULT_NONE && m.pos == pos + span);
            FUZZ_CHECK(mpa_fpdu_size(u.ulpdu_len) <= span && u.fpdu == run);
            check_again(pos, &u, crc_on, span);
        } else {
            FUZZ_CHECK(u.fault != MPA_FPDU_FAULT_NONE && m.pos == pos);
        }
    } else {
        FUZZ_CHECK(st == SN_E_MORE && u.need > size && u.need <= MPA_FPDU_MARKED_MAX);
        FUZZ_CHECK(m.pos == pos && (size == 0 || memcmp(run, data, size) == 0));
    }
    free(run);
    return 0;
}
