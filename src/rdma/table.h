/* SPDX-License-Identifier: MIT
 * table.h - the token table of one adapter instance.
 * Owns:    memory tokens: unpredictable 32-bit values, each naming a slot and the slot's present
 *          use; stale and guessed tokens fail.
 *
 * A token is a keyed permutation of (use counter, slot index). Lookups take no lock: they count
 * themselves in the slot, then compare the token. To end a use, the writer clears the token and
 * waits until the count is 0; whoever counts later finds no token. Both sides use sequentially
 * consistent accesses, so one of the two always sees the other.
 *
 * Threads: any. Slots are allocated, filled and freed under rd_table.lock (rank REGION).
 * Errors:  SN_E_NOMEM, SN_E_RESOURCES (all slots in use); lookups: SN_E_TOKEN, SN_E_RIGHTS,
 *          SN_E_RANGE, SN_E_PD.
 */
#ifndef SN_RDMA_TABLE_H
#define SN_RDMA_TABLE_H

#include "os/prim/atomic.h"
#include "os/prim/lock.h"
#include "rdma/counters.h"
#include "transport/share.h"
#include "transport/transport.h"

struct rd_iomap;
struct rd_fastreg;

enum rd_slot_kind {
    RD_SLOT_LOCAL = TP_SLOT_LOCAL,
    RD_SLOT_REMOTE = TP_SLOT_REMOTE,
    RD_SLOT_WINDOW = TP_SLOT_WINDOW,
    /* Not for direct access by peers: the domain is checked, pages are looked up. */
    RD_SLOT_PD_LOCAL,
    RD_SLOT_PD_REMOTE,
    RD_SLOT_FAST_LOCAL, /* owner: struct rd_fastreg */
    RD_SLOT_FAST_REMOTE,
    RD_SLOT_PRIVILEGED /* local; addresses are logical ones */
};

/* A region made of pages: logical addresses, each of RD_IO_PAGE bytes. */
struct rd_pages {
    uint32_t count;
    uint32_t fbo; /* offset of the region's first byte in the first page */
    uint64_t page[];
};

enum {
    RD_SLOT_INDEX_BITS = TP_SHARE_INDEX_BITS, /* a million uses at once: half as many regions */
    RD_SLOT_KEY_BITS = 32 - RD_SLOT_INDEX_BITS,
    RD_SLOT_MAX = 1 << RD_SLOT_INDEX_BITS,
    RD_GROW_SLOTS = 1024,
    RD_FREE_MIN = 256 /* fewer free slots than this: grow rather than reuse one soon */
};

#define RD_TOKEN_MARK 0x534F4654u /* never issued: transports use it as a mark */

/* The first part is what peers on this host see: struct tp_shared_slot. */
struct rd_slot {
    os_atomic_u32 users; /* [atomic: pairs with token] lookups and accesses in flight */
    os_atomic_u32 token; /* [atomic: pairs with users] 0: no access */
    /* Written while token is 0 and users have left; read by those who matched the token. */
    uint8_t *base;
    size_t len;
    uint64_t qp_id;  /* windows: the only queue pair that may use it */
    void *owner;     /* windows: struct rd_window; fast registrations: struct rd_fastreg */
    uint32_t rights; /* 1 << enum tp_right */
    uint32_t kind;   /* enum rd_slot_kind */
    /* [table lock] */
    uint32_t value;     /* the token of the present use, also while it is not valid yet */
    uint16_t key;       /* use counter, RD_SLOT_KEY_BITS */
    uint32_t next_free; /* index + 1; 0: last */
    uint32_t pd;        /* as base: the protection domain, 0: none */
};

struct rd_table {
    os_lock lock;                              /* rank REGION */
    struct tp_share share;                     /* the memory of head and slots; never moves */
    struct tp_share_head *head;                /* slot_count: [lock for writes] */
    struct rd_slot *slots;                     /* [const] room for RD_SLOT_MAX */
    uint32_t free_head, free_tail, free_count; /* [lock] */
    struct tp_token_key key;                   /* [const] */
    struct rd_adapter_counters *counters;      /* of the adapter; set by init */
    struct rd_iomap *io; /* [const] of the adapter; NULL: there are no pages */
};

SN_MUST_CHECK sn_status rd_table_init(struct rd_table *t, struct rd_adapter_counters *counters);
/* No slot is in use and no lookup runs. Accepts zeroed memory. */
void rd_table_fini(struct rd_table *t);

/* Lock held. A slot with a fresh token value, not valid yet; the caller fills base, len, rights,
 * kind, qp_id, pd and owner, then publishes. */
SN_MUST_CHECK sn_status rd_slot_alloc_locked(struct rd_table *t, struct rd_slot **out);
/* Lock held: the token becomes valid. */
void rd_slot_publish_locked(struct rd_slot *s);
/* The token becomes invalid for new lookups. */
void rd_slot_unpublish(struct rd_slot *s);
/* Waits for accesses in flight, here and in peer processes; after it no byte is touched through
 * this use. The table lock is not held, so that others are not kept waiting. */
void rd_slot_drain(struct rd_table *t, struct rd_slot *s);
/* Lock held: gives a drained slot back. */
void rd_slot_free_locked(struct rd_table *t, struct rd_slot *s);

/* The lookup of tp_upcalls.access; qp_id is the queue pair asking. */
SN_MUST_CHECK sn_status rd_table_access(struct rd_table *t, uint64_t qp_id, uint32_t token,
                                        uint64_t addr, size_t len, enum tp_right right,
                                        struct tp_access *out);
void rd_table_access_end(struct tp_access *acc);
/* Remembers where a token's slot is. That never changes; what the slot says is looked at each time.
 * Zero: nothing is remembered. */
struct rd_lookup {
    uint32_t token;
    struct rd_slot *slot;
};

/* Copies out of local memory without counting itself anywhere: what was read is good if the token
 * is valid before and after. Memory that is gone in the middle is only read. False: it was not
 * copied, for whatever reason; rd_table_access tells, and serves memory that is not plain. */
SN_MUST_CHECK bool rd_table_copy_from(struct rd_table *t, struct rd_lookup *l, uint32_t pd,
                                      uint32_t token, uint64_t addr, size_t len, void *dst);
/* Copies to local memory, counting itself as an access does. False: as for rd_table_copy_from. */
SN_MUST_CHECK bool rd_table_copy_to(struct rd_table *t, struct rd_lookup *l, uint32_t pd,
                                    uint32_t token, uint64_t addr, size_t len, const void *src);
/* The published slot with this token, lock held; NULL if there is none. */
struct rd_slot *rd_table_find_locked(struct rd_table *t, uint32_t token);

#endif
