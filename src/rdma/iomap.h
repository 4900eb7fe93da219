/* SPDX-License-Identifier: MIT
 * iomap.h - logical addresses: what an adapter calls memory that was mapped for it.
 * Owns:    the mappings of one adapter instance. A logical address is no virtual one: its high bits
 *          hold a mapping's number and a key, so that stale and invented ones find nothing.
 *
 * Lookups take no lock; they count themselves in the mapping, as token lookups do (table.h).
 * Threads: any.   Errors: SN_E_NOMEM, SN_E_RESOURCES; lookups: SN_E_TOKEN.
 */
#ifndef SN_RDMA_IOMAP_H
#define SN_RDMA_IOMAP_H

#include "os/prim/atomic.h"
#include "os/prim/lock.h"
#include "rdma/rd.h"

enum {
    RD_IO_OFFSET_BITS = 32,
    RD_IO_INDEX_BITS = 20,
    RD_IO_KEY_BITS = 11, /* above bit 52, so never a user's address; the sign bit stays 0 */
    RD_IO_CHUNK = 1024
};

struct rd_io {
    os_atomic_u32 users; /* [atomic: pairs with key] lookups and accesses in flight */
    os_atomic_u32 key;   /* [atomic: pairs with users] 0: not mapped */
    /* Written while key is 0 and users have left. */
    uint8_t *base; /* of the first page */
    uint64_t pages;
    uint64_t logical;  /* the first logical address */
    bool scattered;    /* pages are in reverse order, so that no two neighbours follow each other */
    uint32_t next_key; /* [lock] */
    uint32_t next_free;
    uint32_t index;
};

struct rd_iomap {
    os_lock lock;          /* rank REGION */
    os_atomic_ptr *chunks; /* NULL until the first mapping */
    uint32_t chunk_count, free_head;
};

void rd_iomap_init(struct rd_iomap *m);
void rd_iomap_fini(struct rd_iomap *m);
/* Where len bytes at this logical address are: *ptr, and how many of them follow there (*piece).
 * All len must be mapped. *hold is given back with rd_iomap_end. SN_E_TOKEN. */
SN_MUST_CHECK sn_status rd_iomap_access(struct rd_iomap *m, uint64_t logical, size_t len,
                                        uint8_t **ptr, size_t *piece, void **hold);
void rd_iomap_end(void *hold);

#endif
