/* SPDX-License-Identifier: MIT
 * unmark.h - reading a stream with markers, which SoftND writes but never asks for itself.
 */
#ifndef SN_TESTS_UNMARK_H
#define SN_TESTS_UNMARK_H

#include <string.h>
#include "base/base.h"
#include "iwarp/crc32c.h"
#include "iwarp/mpa.h"

enum mpa_fpdu_fault { MPA_FPDU_FAULT_NONE, MPA_FPDU_FAULT_CRC, MPA_FPDU_FAULT_MARKER };

struct mpa_unmarked {
    size_t need;               /* MORE: stream octets required in total; OK: taken from the run */
    uint8_t *fpdu;             /* OK: ULPDU_Length and on, markers gone, borrowed from the run */
    uint16_t ulpdu_len;        /* OK */
    enum mpa_fpdu_fault fault; /* WIRE */
};

/* Removes the marker octets from any run of stream octets at m->pos, in place and unchecked, cut
 * anywhere, even inside a marker. Returns the octets left and moves m->pos past the run. Only for
 * streams whose CRC is off: the CRC covers the markers. m->fpdu_off is not kept. */
static inline size_t mpa_markers_strip(struct mpa_markers *m, uint8_t *run, size_t len) {
    size_t kept = 0;
    for (size_t off = 0; off < len;) {
        size_t phase = (size_t)(m->pos % MPA_MARKER_INTERVAL);
        bool marker = phase < MPA_MARKER_LEN;
        size_t n = SN_MIN(len - off, (marker ? MPA_MARKER_LEN : MPA_MARKER_INTERVAL) - phase);
        if (!marker) {
            if (kept != off) memmove(run + kept, run + off, n);
            kept += n;
        }
        m->pos += n;
        off += n;
    }
    return kept;
}

/* Takes one FPDU off the front of a run of stream octets at position m->pos, which lies between
 * FPDUs: checks the CRC (if crc_on) and every FPDUPTR, then closes the gaps in place.
 * SN_OK: see *out; m moves past the FPDU. SN_E_MORE: run and m are unchanged, call again with at
 * least out->need octets (up to MPA_FPDU_MARKED_MAX). SN_E_WIRE: out->fault; a bad CRC wins.
 * SN_E_PARAM: m->pos is not a multiple of 4. */
static inline sn_status mpa_fpdu_unmark(struct mpa_markers *m, uint8_t *run, size_t len,
                                        bool crc_on, struct mpa_unmarked *out) {
    const struct mpa_markers start = { m->pos, 0 };
    if (start.pos % 4 != 0) return SN_E_PARAM;
    size_t lead =
        mpa_markers_room(&start) == 0 ? MPA_MARKER_LEN : 0; /* the length word is never split */
    *out = (struct mpa_unmarked){ .need = lead + MPA_LEN_LEN };
    if (len < out->need) return SN_E_MORE;
    uint16_t ulpdu_len = (uint16_t)((run[lead] << 8) | run[lead + 1]);
    size_t span = mpa_markers_span(&start, mpa_fpdu_size(ulpdu_len));
    out->need = span;
    if (len < span) return SN_E_MORE;

    if (crc_on && sn_crc32c(run, span - MPA_CRC_LEN) != mpa_crc_unpack(run + span - MPA_CRC_LEN)) {
        out->fault = MPA_FPDU_FAULT_CRC;
        return SN_E_WIRE;
    }
    /* All markers first: a refused run is left as it came. */
    struct mpa_markers at = start;
    for (size_t off = 0; off < span;) {
        if (mpa_markers_room(&at) != 0) {
            uint32_t n = (uint32_t)SN_MIN(span - off, (size_t)mpa_markers_room(&at));
            mpa_markers_advance(&at, n);
            off += n;
            continue;
        }
        uint8_t expect[MPA_MARKER_LEN];
        mpa_markers_put(&at, expect);
        if (run[off + 2] != expect[2] || (run[off + 3] & 0xFCu) != expect[3]) {
            out->fault = MPA_FPDU_FAULT_MARKER;
            return SN_E_WIRE;
        }
        off += MPA_MARKER_LEN;
    }
    at = start;
    out->fpdu = run;
    out->ulpdu_len = ulpdu_len;
    mpa_markers_strip(&at, run, span);
    *m = (struct mpa_markers){ at.pos, 0 };
    return SN_OK;
}

#endif
