/* SPDX-License-Identifier: MIT
 *
 * Room for all slots there can be is reserved at once and committed as it is used, so that slots
 * never move and a peer process maps them once.
 */
#include "rdma/table.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"
#include "os/prim/thread.h"
#include "rdma/async.h"
#include "rdma/iomap.h"
#include "rdma/region.h"

enum {
    SPIN_LOOPS = 200,
    YIELD_LOOPS = 50,
};
#define DRAIN_STEP_NS OS_NS_PER_MS

#define KEY_MASK ((1u << RD_SLOT_KEY_BITS) - 1)
#define SHARE_BYTES (TP_SHARE_HEAD_BYTES + (size_t)RD_SLOT_MAX * sizeof(struct rd_slot))

#define SAME_PLACE(member)                                                                         \
    _Static_assert(offsetof(struct rd_slot, member) == offsetof(struct tp_shared_slot, member),    \
                   "peers find it there")
_Static_assert(sizeof(struct rd_slot) == TP_SHARE_SLOT_BYTES, "peers step by it");
SAME_PLACE(users);
SAME_PLACE(token);
SAME_PLACE(base);
SAME_PLACE(len);
SAME_PLACE(qp_id);
SAME_PLACE(rights);
SAME_PLACE(kind);

void rd_drain(os_atomic_u32 *word, uint32_t value) {
    uint32_t n;
    for (uint32_t i = 0; os_u32_load_seqcst(word) != value; i++) {
        if (i < SPIN_LOOPS)
            os_cpu_relax();
        else if (i < SPIN_LOOPS + YIELD_LOOPS)
            os_thread_yield();
        else if ((n = os_u32_load_seqcst(word)) != value)
            os_wait_on(word, n, os_now_ns() + DRAIN_STEP_NS); /* nobody wakes; the step ends it */
    }
}

/* ---- slots ---- */

static inline struct rd_slot *slot_at(struct rd_table *t, uint32_t index) {
    return index < os_u32_load_acquire(&t->head->slot_count) ? &t->slots[index] : NULL;
}

static inline struct rd_slot *slot_of(struct rd_table *t, uint32_t token) {
    return slot_at(t, tp_token_index(&t->key, token));
}

sn_status rd_table_init(struct rd_table *t, struct rd_adapter_counters *counters) {
    sn_status st = tp_share_create(SHARE_BYTES, &t->share);
    if (st != SN_OK) return st;
    t->counters = counters;
    os_lock_init(&t->lock, OS_RANK_REGION);
    os_random_bytes(&t->key, sizeof t->key);
    for (uint32_t i = 0; i < TP_TOKEN_ROUNDS; i++)
        t->key.mul[i] |= 1;
    t->head = t->share.base;
    t->slots = (struct rd_slot *)((uint8_t *)t->share.base + TP_SHARE_HEAD_BYTES);
    t->head->key = t->key;
    t->head->slot_bytes = sizeof(struct rd_slot);
    t->head->magic = TP_SHARE_MAGIC;
    return SN_OK;
}

void rd_table_fini(struct rd_table *t) {
    if (!t->head) return;
    tp_share_destroy(&t->share);
    t->head = NULL;
    os_lock_fini(&t->lock);
}

static void push_free_locked(struct rd_table *t, struct rd_slot *s, uint32_t index) {
    s->next_free = 0;
    if (t->free_tail == 0)
        t->free_head = index + 1;
    else
        slot_at(t, t->free_tail - 1)->next_free = index + 1;
    t->free_tail = index + 1;
    t->free_count++;
}

static sn_status grow_locked(struct rd_table *t) {
    uint32_t first = os_u32_load_relaxed(&t->head->slot_count);
    if (first == RD_SLOT_MAX) return SN_E_RESOURCES;
    uint16_t keys[RD_GROW_SLOTS];
    os_random_bytes(keys, sizeof keys);
    os_u32_store_release(&t->head->slot_count, first + RD_GROW_SLOTS);
    for (uint32_t i = 0; i < RD_GROW_SLOTS; i++) {
        t->slots[first + i].key = keys[i] & KEY_MASK;
        push_free_locked(t, &t->slots[first + i], first + i);
    }
    return SN_OK;
}

static bool token_reserved(uint32_t token) {
    return token == 0 || token == UINT32_MAX || token == RD_TOKEN_MARK;
}

sn_status rd_slot_alloc_locked(struct rd_table *t, struct rd_slot **out) {
    os_lock_assert_held(&t->lock);
    if (t->free_count < RD_FREE_MIN) {
        sn_status st = grow_locked(t);
        if (st != SN_OK && t->free_count == 0) return st;
    }
    uint32_t index = t->free_head - 1;
    struct rd_slot *s = slot_at(t, index);
    t->free_head = s->next_free;
    if (t->free_head == 0) t->free_tail = 0;
    t->free_count--;
    do {
        s->key = (s->key + 1) & KEY_MASK;
        s->value = tp_token_scramble(&t->key, ((uint32_t)s->key << RD_SLOT_INDEX_BITS) | index);
    } while (token_reserved(s->value));
    s->qp_id = 0;
    s->owner = NULL;
    s->pd = 0;
    s->next_free = 0;
    *out = s;
    return SN_OK;
}

void rd_slot_publish_locked(struct rd_slot *s) {
    os_u32_store_seqcst(&s->token, s->value);
}

void rd_slot_unpublish(struct rd_slot *s) {
    os_u32_store_seqcst(&s->token, 0);
}

void rd_slot_drain(struct rd_table *t, struct rd_slot *s) {
    if (os_u32_load_seqcst(&s->users) != 0) rd_drain(&s->users, 0);
    tp_share_drain(&t->share, s->value);
}

void rd_slot_free_locked(struct rd_table *t, struct rd_slot *s) {
    os_lock_assert_held(&t->lock);
    push_free_locked(t, s, (uint32_t)(s - t->slots));
}

struct rd_slot *rd_table_find_locked(struct rd_table *t, uint32_t token) {
    os_lock_assert_held(&t->lock);
    struct rd_slot *s = slot_of(t, token);
    return token != 0 && s && os_u32_load_seqcst(&s->token) == token ? s : NULL;
}

/* ---- the data path ---- */

SN_COLD static sn_status refuse(struct rd_slot *s, os_atomic_u64 *counter, sn_status st) {
    if (s) os_u32_fetch_sub_seqcst(&s->users, 1);
    os_u64_fetch_add_relaxed(counter, 1);
    return st;
}

static bool slot_is_local(const struct rd_slot *s) {
    return s->kind == RD_SLOT_LOCAL || s->kind == RD_SLOT_PD_LOCAL ||
           s->kind == RD_SLOT_FAST_LOCAL || s->kind == RD_SLOT_PRIVILEGED;
}

/* Memory that is named by logical addresses: a region made of pages, or what the privileged token
 * gives. One piece at a time. */
static sn_status access_logical(struct rd_table *t, const struct rd_slot *s, uint64_t addr,
                                size_t len, struct tp_access *out) {
    uint64_t logical = addr;
    size_t want = len;
    if (s->kind != RD_SLOT_PRIVILEGED) {
        const struct rd_pages *pg = rd_fastreg_pages(s->owner);
        uint64_t pos = pg->fbo + (addr - (uint64_t)(uintptr_t)s->base);
        uint64_t i = pos / RD_IO_PAGE, at = pos % RD_IO_PAGE;
        if (len == 0) return SN_OK;
        logical = pg->page[i] + at;
        want = SN_MIN(len, RD_IO_PAGE - at);
        while (want < len && pg->page[i + 1] == pg->page[i] + RD_IO_PAGE) {
            want = SN_MIN(len, want + RD_IO_PAGE);
            i++;
        }
    }
    return rd_iomap_access(t->io, logical, want, &out->ptr, &out->len, &out->hold_io);
}

static bool right_is_local(enum tp_right right) {
    return right == TP_LOCAL_READ || right == TP_LOCAL_WRITE || right == TP_READ_SINK;
}

SN_HOT sn_status rd_table_access(struct rd_table *t, uint64_t qp_id, uint32_t token, uint64_t addr,
                                 size_t len, enum tp_right right, struct tp_access *out) {
    struct rd_slot *s = slot_of(t, token);
    /* The first look keeps a guess from writing to a slot that it does not name. */
    if (SN_UNLIKELY(token == 0 || !s || os_u32_load_relaxed(&s->token) != token))
        return refuse(NULL, &t->counters->refused_token, SN_E_TOKEN);
    os_u32_fetch_add_seqcst(&s->users, 1);
    if (SN_UNLIKELY(os_u32_load_seqcst(&s->token) != token ||
                    right_is_local(right) != slot_is_local(s)))
        return refuse(s, &t->counters->refused_token, SN_E_TOKEN);
    if (SN_UNLIKELY(s->kind == RD_SLOT_WINDOW && s->qp_id != qp_id))
        return refuse(s, &t->counters->refused_pd, SN_E_PD);
    if (SN_UNLIKELY(!(s->rights & (1u << right))))
        return refuse(s, &t->counters->refused_rights, SN_E_RIGHTS);
    /* An address below base wraps to an offset beyond any length. */
    uint64_t off = addr - (uint64_t)(uintptr_t)s->base;
    if (SN_UNLIKELY(off > s->len || len > s->len - off) && s->kind != RD_SLOT_PRIVILEGED)
        return refuse(s, &t->counters->refused_range, SN_E_RANGE);
    out->ptr = (uint8_t *)(uintptr_t)addr;
    out->len = len;
    out->hold = s;
    out->hold_io = NULL;
    if (SN_UNLIKELY(s->kind >= RD_SLOT_FAST_LOCAL) && access_logical(t, s, addr, len, out) != SN_OK)
        return refuse(s, &t->counters->refused_token, SN_E_TOKEN);
    return SN_OK;
}

/* The slot that a token would be in, NULL: there is none. */
static inline struct rd_slot *remembered(struct rd_table *t, struct rd_lookup *l, uint32_t token) {
    if (SN_LIKELY(l->token == token)) return l->slot; /* NULL for 0, as at first */
    struct rd_slot *s = token ? slot_of(t, token) : NULL;
    if (s) *l = (struct rd_lookup){ token, s };
    return s;
}

/* Plain memory of this domain, with this right, and this range of it. The slot may be given to
 * another use meanwhile, if the caller finds out afterwards. */
SN_NO_SANITIZE static inline bool slot_allows(const volatile struct rd_slot *s, uint32_t pd,
                                              enum tp_right right, uint64_t addr, size_t len) {
    uint32_t kind = s->kind;
    uint64_t size = s->len, off = addr - (uint64_t)(uintptr_t)s->base;
    return (kind == RD_SLOT_LOCAL || kind == RD_SLOT_PD_LOCAL) && s->pd == pd &&
           (s->rights & (1u << right)) && off <= size && len <= size - off;
}

SN_HOT bool rd_table_copy_from(struct rd_table *t, struct rd_lookup *l, uint32_t pd, uint32_t token,
                               uint64_t addr, size_t len, void *dst) {
    struct rd_slot *s = remembered(t, l, token);
    if (SN_UNLIKELY(!s || os_u32_load_acquire(&s->token) != token)) return false;
    if (SN_UNLIKELY(!slot_allows(s, pd, TP_LOCAL_READ, addr, len))) return false;
    if (!os_guarded_copy(dst, (const void *)(uintptr_t)addr, len)) return false;
    os_fence_acquire();
    return os_u32_load_relaxed(&s->token) == token;
}

SN_HOT bool rd_table_copy_to(struct rd_table *t, struct rd_lookup *l, uint32_t pd, uint32_t token,
                             uint64_t addr, size_t len, const void *src) {
    struct rd_slot *s = remembered(t, l, token);
    if (SN_UNLIKELY(!s || os_u32_load_relaxed(&s->token) != token)) return false;
    os_u32_fetch_add_seqcst(&s->users, 1);
    bool good = os_u32_load_seqcst(&s->token) == token &&
                slot_allows(s, pd, TP_LOCAL_WRITE, addr, len) &&
                os_guarded_copy((void *)(uintptr_t)addr, src, len);
    os_u32_fetch_sub_seqcst(&s->users, 1);
    return good;
}

SN_HOT void rd_table_access_end(struct tp_access *acc) {
    struct rd_slot *s = acc->hold;
    if (SN_UNLIKELY(acc->hold_io)) rd_iomap_end(acc->hold_io);
    acc->hold = acc->hold_io = NULL;
    os_u32_fetch_sub_seqcst(&s->users, 1);
}
