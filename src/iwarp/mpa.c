/* SPDX-License-Identifier: MIT
 * mpa.c - MPA start-up frames, FPDU sizes and trailer, markers.
 *
 * Markers are placed by counting stream octets, one run between two markers at a time; there is no
 * closed form here, because a leading marker and one between PAD and CRC each have their own rule.
 */
#include "iwarp/mpa.h"
#include "base/base.h"
#include "base/cursor.h"

#include <string.h>

/* ---- Start-up frames ---- */

static const uint8_t key_request[MPA_KEY_LEN + 1] = "MPA ID Req Frame";
static const uint8_t key_reply[MPA_KEY_LEN + 1] = "MPA ID Rep Frame";

#define START_F_MARKERS 0x80u
#define START_F_CRC 0x40u
#define START_F_REJECT 0x20u
#define START_F_ENHANCED 0x10u

#define IRD_F_P2P 0x8000u
#define IRD_F_RTR_SEND 0x4000u
#define ORD_F_RTR_WRITE 0x8000u
#define ORD_F_RTR_READ 0x4000u

const char *mpa_start_fault_text(enum mpa_start_fault fault) {
    switch (fault) {
    case MPA_START_FAULT_NONE:
        return "no fault";
    case MPA_START_FAULT_KEY:
        return "not an MPA start-up frame";
    case MPA_START_FAULT_ROLE:
        return "both ends took the same MPA role";
    case MPA_START_FAULT_REV:
        return "MPA revision neither 1 nor 2";
    case MPA_START_FAULT_PD_LEN:
        return "MPA private data longer than 512 octets";
    case MPA_START_FAULT_ENHANCED:
        return "MPA private data too short for the enhanced words it announces";
    }
    return "unknown fault";
}

sn_status mpa_start_pack(const struct mpa_start *s, void *buf, size_t cap, size_t *len) {
    size_t enhanced_len = s->enhanced ? MPA_ENHANCED_LEN : 0;
    if (s->rev != 1 && s->rev != 2) return SN_E_PARAM;
    if (s->enhanced && (s->rev < 2 || s->enh.ird > MPA_DEPTH_MASK || s->enh.ord > MPA_DEPTH_MASK))
        return SN_E_PARAM;
    if (s->reject && !s->reply) return SN_E_PARAM;
    if (s->pd_len > MPA_PD_MAX - enhanced_len) return SN_E_PARAM;
    if (cap < mpa_start_size(s)) return SN_E_BUFFER_SMALL;

    struct sn_wcur w = sn_wcur_make(buf, cap);
    sn_wcur_bytes(&w, s->reply ? key_reply : key_request, MPA_KEY_LEN);
    sn_wcur_u8(&w, (uint8_t)((s->markers ? START_F_MARKERS : 0u) | (s->crc ? START_F_CRC : 0u) |
                             (s->reject ? START_F_REJECT : 0u) |
                             (s->enhanced ? START_F_ENHANCED : 0u)));
    sn_wcur_u8(&w, s->rev);
    sn_wcur_be16(&w, (uint16_t)(s->pd_len + enhanced_len));
    if (s->enhanced) {
        bool p2p = s->enh.p2p;
        sn_wcur_be16(&w, (uint16_t)(s->enh.ird | (p2p ? IRD_F_P2P : 0u) |
                                    (p2p && s->enh.rtr_send ? IRD_F_RTR_SEND : 0u)));
        sn_wcur_be16(&w, (uint16_t)(s->enh.ord | (p2p && s->enh.rtr_write ? ORD_F_RTR_WRITE : 0u) |
                                    (p2p && s->enh.rtr_read ? ORD_F_RTR_READ : 0u)));
    }
    sn_wcur_bytes(&w, s->pd, s->pd_len);
    *len = mpa_start_size(s);
    return SN_OK;
}

/* Decides on the key from the octets there are: OK, MORE while either key is still possible, or
 * WIRE. The other role's key is reported only when it is complete. */
static sn_status check_key(const uint8_t *data, size_t len, bool want_reply,
                           enum mpa_start_fault *fault) {
    const uint8_t *want = want_reply ? key_reply : key_request;
    const uint8_t *other = want_reply ? key_request : key_reply;
    size_t n = SN_MIN(len, (size_t)MPA_KEY_LEN);
    if (n == 0 || memcmp(data, want, n) == 0) return n == MPA_KEY_LEN ? SN_OK : SN_E_MORE;
    if (memcmp(data, other, n) == 0) {
        if (n < MPA_KEY_LEN) return SN_E_MORE;
        *fault = MPA_START_FAULT_ROLE;
    } else {
        *fault = MPA_START_FAULT_KEY;
    }
    return SN_E_WIRE;
}

sn_status mpa_start_unpack(const void *data, size_t len, bool want_reply, struct mpa_start *out,
                           size_t *need, enum mpa_start_fault *fault) {
    *need = MPA_START_HEADER_LEN;
    *fault = MPA_START_FAULT_NONE;
    sn_status st = check_key((const uint8_t *)data, len, want_reply, fault);
    if (st == SN_E_WIRE) return st;
    if (st == SN_E_MORE || len < MPA_START_HEADER_LEN) return SN_E_MORE;

    struct sn_cur c = sn_cur_make(data, len);
    sn_cur_take(&c, MPA_KEY_LEN);
    uint8_t flags = sn_cur_u8(&c);
    uint8_t rev = sn_cur_u8(&c);
    size_t pd_length = sn_cur_be16(&c);
    bool enhanced = rev >= 2 && (flags & START_F_ENHANCED);
    if (rev != 1 && rev != 2)
        *fault = MPA_START_FAULT_REV;
    else if (pd_length > MPA_PD_MAX)
        *fault = MPA_START_FAULT_PD_LEN;
    else if (enhanced && pd_length < MPA_ENHANCED_LEN)
        *fault = MPA_START_FAULT_ENHANCED;
    if (*fault != MPA_START_FAULT_NONE) return SN_E_WIRE;

    *need = MPA_START_HEADER_LEN + pd_length;
    if (sn_cur_left(&c) < pd_length) return SN_E_MORE;
    struct mpa_start s = {
        .reply = want_reply,
        .rev = rev,
        .markers = flags & START_F_MARKERS,
        .crc = flags & START_F_CRC,
        .reject = want_reply && (flags & START_F_REJECT),
        .enhanced = enhanced,
    };
    if (enhanced) {
        uint16_t ird = sn_cur_be16(&c), ord = sn_cur_be16(&c);
        s.enh.p2p = ird & IRD_F_P2P;
        s.enh.rtr_send = s.enh.p2p && (ird & IRD_F_RTR_SEND);
        s.enh.rtr_write = s.enh.p2p && (ord & ORD_F_RTR_WRITE);
        s.enh.rtr_read = s.enh.p2p && (ord & ORD_F_RTR_READ);
        s.enh.ird = ird & MPA_DEPTH_MASK;
        s.enh.ord = ord & MPA_DEPTH_MASK;
        pd_length -= MPA_ENHANCED_LEN;
    }
    s.pd = sn_cur_take(&c, pd_length);
    s.pd_len = (uint16_t)pd_length;
    *out = s;
    return SN_OK;
}

/* ---- FPDU ---- */

uint32_t mpa_mulpdu(uint32_t emss, bool markers) {
    uint32_t marker_bytes = 0;
    if (markers) /* as if emss were rounded up to whole marker intervals */
        marker_bytes = MPA_MARKER_LEN *
                       (emss / MPA_MARKER_INTERVAL + (emss % MPA_MARKER_INTERVAL != 0 ? 1u : 0u));
    uint32_t overhead = MPA_LEN_LEN + MPA_CRC_LEN + marker_bytes + emss % 4;
    if (emss < overhead || emss - overhead < MPA_MULPDU_MIN) return MPA_MULPDU_MIN;
    return SN_MIN(emss - overhead, (uint32_t)MPA_MULPDU_MAX);
}

static const uint8_t zeros[4];

SN_HOT size_t mpa_trailer_pack(uint8_t *dst, size_t ulpdu_len, uint32_t state, bool crc_on) {
    size_t pad = mpa_pad(ulpdu_len);
    memset(dst, 0, pad + MPA_CRC_LEN);
    if (crc_on) mpa_crc_pack(dst + pad, sn_crc32c_finish(sn_crc32c_extend(state, zeros, pad)));
    return pad + MPA_CRC_LEN;
}

bool mpa_trailer_good(const uint8_t *trailer, size_t ulpdu_len, uint32_t state) {
    size_t pad = mpa_pad(ulpdu_len);
    state = sn_crc32c_extend(state, trailer, pad);
    return sn_crc32c_finish(state) == mpa_crc_unpack(trailer + pad);
}

/* ---- Markers ---- */

void mpa_markers_put(struct mpa_markers *m, uint8_t *dst) {
    uint32_t ptr = m->fpdu_off & 0xFFFCu;
    dst[0] = 0;
    dst[1] = 0;
    dst[2] = (uint8_t)(ptr >> 8);
    dst[3] = (uint8_t)ptr;
    m->pos += MPA_MARKER_LEN;
    if (m->fpdu_off != 0) m->fpdu_off += MPA_MARKER_LEN; /* a leading one precedes the FPDU */
}

static bool marker_is_due(const struct mpa_markers *m) {
    return m->pos % MPA_MARKER_INTERVAL == 0;
}

size_t mpa_markers_span(const struct mpa_markers *m, size_t body) {
    uint64_t pos = m->pos;
    while (body != 0) {
        if (pos % MPA_MARKER_INTERVAL == 0) pos += MPA_MARKER_LEN;
        size_t room = MPA_MARKER_INTERVAL - (size_t)(pos % MPA_MARKER_INTERVAL);
        size_t n = SN_MIN(room, body);
        pos += n;
        body -= n;
    }
    return (size_t)(pos - m->pos);
}

/* Copies len octets of FPDU to dst with the markers due before them; returns the octets written. */
static size_t put_marked(struct mpa_markers *m, uint8_t *dst, const uint8_t *src, size_t len) {
    uint8_t *start = dst;
    while (len != 0) {
        if (marker_is_due(m)) {
            mpa_markers_put(m, dst);
            dst += MPA_MARKER_LEN;
        }
        uint32_t n = (uint32_t)SN_MIN(len, (size_t)mpa_markers_room(m));
        memcpy(dst, src, n);
        mpa_markers_advance(m, n);
        dst += n;
        src += n;
        len -= n;
    }
    return (size_t)(dst - start);
}

sn_status mpa_fpdu_mark(struct mpa_markers *m, const struct mpa_piece *pieces, size_t count,
                        bool crc_on, uint8_t *dst, size_t cap, size_t *len) {
    size_t total = 0;
    uint8_t declared[MPA_LEN_LEN] = { 0, 0 };
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = (const uint8_t *)pieces[i].data;
        if (pieces[i].len > MPA_LEN_LEN + (size_t)MPA_MULPDU_MAX - total) return SN_E_PARAM;
        for (size_t j = 0; j < pieces[i].len && total + j < MPA_LEN_LEN; j++)
            declared[total + j] = p[j];
        total += pieces[i].len;
    }
    size_t ulpdu_len = ((size_t)declared[0] << 8) | declared[1];
    if (total != MPA_LEN_LEN + ulpdu_len) return SN_E_PARAM;

    struct mpa_markers next = { m->pos, 0 };
    if (next.pos % 4 != 0) return SN_E_PARAM;
    if (cap < mpa_markers_span(&next, mpa_fpdu_size(ulpdu_len))) return SN_E_BUFFER_SMALL;
    uint8_t *p = dst;
    for (size_t i = 0; i < count; i++)
        p += put_marked(&next, p, (const uint8_t *)pieces[i].data, pieces[i].len);
    p += put_marked(&next, p, zeros, mpa_pad(ulpdu_len));
    if (marker_is_due(&next)) { /* between PAD and CRC: this FPDU's, and in its CRC */
        mpa_markers_put(&next, p);
        p += MPA_MARKER_LEN;
    }
    uint32_t crc = crc_on ? sn_crc32c(dst, (size_t)(p - dst)) : 0;
    mpa_crc_pack(p, crc);
    mpa_markers_advance(&next, MPA_CRC_LEN);
    mpa_markers_end_fpdu(&next);
    *len = (size_t)(p - dst) + MPA_CRC_LEN;
    *m = next;
    return SN_OK;
}
