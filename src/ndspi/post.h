/* SPDX-License-Identifier: MIT
 * post.h - requests as the SPI writes them and as the core takes them.
 * Owns:    the flag bits of each request and their translation.
 * Threads: pure functions.   Errors: none.
 */
#ifndef SN_NDSPI_POST_H
#define SN_NDSPI_POST_H

#include "rdma/rd.h"
#include "softnd.h"

/* A list of ND2_SGE is passed to the core as it is. */
_Static_assert(sizeof(ND2_SGE) == sizeof(struct tp_sge) &&
                   offsetof(ND2_SGE, Buffer) == offsetof(struct tp_sge, addr) &&
                   offsetof(ND2_SGE, BufferLength) == offsetof(struct tp_sge, len) &&
                   offsetof(ND2_SGE, MemoryRegionToken) == offsetof(struct tp_sge, token),
               "ND2_SGE and tp_sge differ");
static inline const struct tp_sge *ndspi_sge(const ND2_SGE *sge) {
    return (const struct tp_sge *)sge;
}

/* What each kind of request accepts. */
#define NDSPI_SEND_FLAGS                                                                           \
    (ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_SEND_AND_SOLICIT_EVENT |       \
     ND_OP_FLAG_INLINE)
#define NDSPI_WRITE_FLAGS (ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_INLINE)
#define NDSPI_READ_FLAGS NDSPI_WRITE_FLAGS /* clients leave INLINE set; it means nothing there */
#define NDSPI_BIND_FLAGS                                                                           \
    (ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_ALLOW_READ |                   \
     ND_OP_FLAG_ALLOW_WRITE)
#define NDSPI_INVALIDATE_FLAGS (ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE)

/* SILENT, FENCE and SOLICIT have the same bits on both sides. */
#define NDSPI_SAME_FLAGS                                                                           \
    (ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_SEND_AND_SOLICIT_EVENT)
_Static_assert((int)RD_POST_SILENT == ND_OP_FLAG_SILENT_SUCCESS &&
                   (int)RD_POST_FENCE == ND_OP_FLAG_READ_FENCE &&
                   (int)RD_POST_SOLICIT == ND_OP_FLAG_SEND_AND_SOLICIT_EVENT &&
                   (int)RD_POST_INLINE == ND_OP_FLAG_INLINE >> 2,
               "flags are translated by masks and one shift");
static inline uint32_t ndspi_post_flags(ULONG flags) {
    return (flags & NDSPI_SAME_FLAGS) | ((flags & ND_OP_FLAG_INLINE) >> 2);
}

#endif
