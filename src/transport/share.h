/* SPDX-License-Identifier: MIT
 * share.h - an adapter's token table as a peer process on this host sees it.
 * Owns:    the layout of the published memory: a head with the key of the permutation, then slots.
 *          The adapter writes it (rdma/table.c); a peer maps it to read, finds the slot of a token,
 *          and says elsewhere, in memory of its own, which token it is using.
 * Threads: any, see each call.
 * Errors:  SN_E_NOMEM.
 *
 * Ending a use of a token: its slot's token is cleared, then tp_share_drain waits until no peer
 * says that it uses it. A peer says so first and looks at the slot after; both sides are
 * sequentially consistent, so one of them sees the other.
 */
#ifndef SN_TRANSPORT_SHARE_H
#define SN_TRANSPORT_SHARE_H

#include <stddef.h>
#include "os/io/shm.h"
#include "os/prim/atomic.h"

#define TP_SHARE_MAGIC 0x544E5353u
enum {
    TP_TOKEN_ROUNDS = 4,
    TP_SHARE_HEAD_BYTES = 4096, /* then the slots */
    TP_SHARE_SLOT_BYTES = 64,
    TP_SHARE_INDEX_BITS = 20
};

/* The key of the permutation that makes a token of (use counter, slot index). */
struct tp_token_key {
    uint32_t mul[TP_TOKEN_ROUNDS], add[TP_TOKEN_ROUNDS];
};

struct tp_share_head {
    uint32_t magic;
    uint32_t slot_bytes;
    os_atomic_u32 slot_count; /* slots that have ever been in use; the rest is not to be touched */
    uint32_t reserved;
    struct tp_token_key key; /* [const] */
};

enum tp_slot_kind { TP_SLOT_LOCAL, TP_SLOT_REMOTE, TP_SLOT_WINDOW };

/* What a peer may look at in a slot. */
struct tp_shared_slot {
    os_atomic_u32 users; /* of the adapter's own process */
    os_atomic_u32 token; /* 0: no access */
    uint64_t base, len;  /* bytes, in the adapter's process */
    uint64_t qp_id;      /* windows: the only queue pair that may use it */
    uint64_t owner;      /* not the peer's business */
    uint32_t rights;     /* 1 << enum tp_right */
    uint32_t kind;       /* enum tp_slot_kind; others are not for direct access */
};

/* Who knows which peers use which tokens: the local transport. */
struct tp_share_guests {
    /* Waits until no living peer uses this token. Locks up to rank REGION are not held by the
     * caller; others may be. */
    void (*drain)(struct tp_share_guests *g, uint32_t token);
};

struct tp_share {
    void *base;           /* zeroed at the start; what is not touched costs nothing */
    size_t bytes;         /* a multiple of the page size */
    struct os_shm shm;    /* base NULL: plain memory, not to be published */
    os_atomic_ptr guests; /* struct tp_share_guests; set before any peer gets the memory */
};

/* Memory for slots; plain memory if the system gives none that can be shared. SN_E_NOMEM. */
SN_MUST_CHECK sn_status tp_share_create(size_t bytes, struct tp_share *out);
/* Accepts zeroed memory. */
void tp_share_destroy(struct tp_share *s);

/* The token's slot is cleared: waits for peers that may still be at it. */
static inline void tp_share_drain(struct tp_share *s, uint32_t token) {
    struct tp_share_guests *g = os_ptr_load_seqcst(&s->guests);
    if (g) g->drain(g, token);
}

/* ---- the permutation: a Feistel network over two 16-bit halves ---- */

static inline uint32_t tp_token_mix(const struct tp_token_key *k, uint32_t round, uint32_t half) {
    return ((half * k->mul[round] + k->add[round]) >> 13) & 0xFFFF;
}
static inline uint32_t tp_token_scramble(const struct tp_token_key *k, uint32_t x) {
    uint32_t l = x >> 16, r = x & 0xFFFF;
    for (uint32_t i = 0; i < TP_TOKEN_ROUNDS; i++) {
        uint32_t next = l ^ tp_token_mix(k, i, r);
        l = r;
        r = next;
    }
    return (l << 16) | r;
}
static inline uint32_t tp_token_unscramble(const struct tp_token_key *k, uint32_t x) {
    uint32_t l = x >> 16, r = x & 0xFFFF;
    for (uint32_t i = TP_TOKEN_ROUNDS; i-- > 0;) {
        uint32_t prev = r ^ tp_token_mix(k, i, l);
        r = l;
        l = prev;
    }
    return (l << 16) | r;
}
static inline uint32_t tp_token_index(const struct tp_token_key *k, uint32_t token) {
    return tp_token_unscramble(k, token) & ((1u << TP_SHARE_INDEX_BITS) - 1);
}

/* True if a peer may look at this token's memory itself: what the slot says is all there is to it.
 */
static inline bool tp_share_direct(const struct tp_share *s, uint32_t token) {
    const struct tp_share_head *head = (const struct tp_share_head *)s->base;
    uint32_t index = tp_token_index(&head->key, token);
    if (index >= os_u32_load_acquire(&head->slot_count)) return false;
    const struct tp_shared_slot *slot =
        (const struct tp_shared_slot *)(const void *)((const uint8_t *)s->base +
                                                      TP_SHARE_HEAD_BYTES +
                                                      (size_t)index * TP_SHARE_SLOT_BYTES);
    return os_u32_load_relaxed(&slot->token) == token && slot->kind <= TP_SLOT_WINDOW;
}

#endif
