/* SPDX-License-Identifier: MIT
 * ddp.c - DDP segment headers, tagged and untagged.
 *
 * Packed and unpacked for every segment on the wire: one length check, then plain loads and stores
 * that compilers join into a few wide ones.
 */
#include "iwarp/ddp.h"

#include <string.h>

#define CONTROL_F_TAGGED 0x80u
#define CONTROL_F_LAST 0x40u
#define CONTROL_VERSION_MASK 0x03u

/* Swapped as a whole where the compiler can: shifted octet by octet, gcc gathers neighbouring
 * stores into a vector at three times the cost. */
static void store_be32(uint8_t *p, uint32_t v) {
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap32(v);
    memcpy(p, &v, sizeof v);
#else
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
#endif
}

static uint32_t load_be32(const uint8_t *p) {
    return ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) | ((uint32_t)p[2] << 8) | p[3];
}

SN_HOT size_t ddp_tagged_pack(uint8_t *dst, bool last, uint8_t ulp, uint32_t stag, uint64_t to) {
    dst[0] = (uint8_t)(CONTROL_F_TAGGED | (last ? CONTROL_F_LAST : 0u) | DDP_VERSION);
    dst[1] = ulp;
    store_be32(dst + 2, stag);
    store_be32(dst + 6, (uint32_t)(to >> 32));
    store_be32(dst + 10, (uint32_t)to);
    return DDP_TAGGED_LEN;
}

SN_HOT size_t ddp_untagged_pack(uint8_t *dst, bool last, uint8_t ulp, uint32_t ulp_word,
                                uint32_t qn, uint32_t msn, uint32_t mo) {
    dst[0] = (uint8_t)((last ? CONTROL_F_LAST : 0u) | DDP_VERSION);
    dst[1] = ulp;
    store_be32(dst + 2, ulp_word);
    store_be32(dst + 6, qn);
    store_be32(dst + 10, msn);
    store_be32(dst + 14, mo);
    return DDP_UNTAGGED_LEN;
}

SN_HOT sn_status ddp_unpack(const void *ulpdu, size_t len, struct ddp_header *out) {
    const uint8_t *p = (const uint8_t *)ulpdu;
    if (len == 0 || len < ddp_header_len(p[0])) return SN_E_MORE;
    bool tagged = p[0] & CONTROL_F_TAGGED;
    *out = (struct ddp_header){
        .tagged = tagged,
        .last = p[0] & CONTROL_F_LAST,
        .version = p[0] & CONTROL_VERSION_MASK,
        .ulp = p[1],
        .stag = load_be32(p + 2),
        .to = tagged ? ((uint64_t)load_be32(p + 6) << 32) | load_be32(p + 10) : 0,
        .qn = tagged ? 0 : load_be32(p + 6),
        .msn = tagged ? 0 : load_be32(p + 10),
        .mo = tagged ? 0 : load_be32(p + 14),
    };
    return SN_OK;
}
