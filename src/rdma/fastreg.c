/* SPDX-License-Identifier: MIT
 *
 * Fast registration: a region made of pages, entered by a request in the initiator queue. The
 * remote token is chosen when the request is posted and opens when its turn comes; the local token
 * is the region's for life. A region has two of these at most outside of queues: the one that is
 * registered, and none or one that is ending; while one is ending nothing new can be registered.
 */
#include <string.h>
#include "os/prim/fault.h"
#include "os/prim/thread.h"
#include "rdma/region.h"

#define BIT(right) (1u << (right))

struct rd_fastreg {
    struct rd_region *region; /* while registered */
    struct rd_slot *remote;
    uint64_t base;
    size_t len;
    uint32_t rights; /* RD_LOCAL_WRITE ... */
    struct rd_pages pages;
};

sn_status rd_region_init_fast(struct rd_region *r, uint32_t max_pages, bool remote, bool fixed) {
    struct rd_table *t = &r->ad->table;
    if (max_pages == 0) return SN_E_PARAM;
    if (max_pages > RD_FAST_PAGES_MAX) return SN_E_RESOURCES;
    sn_status st = SN_OK;
    os_lock_enter(&t->lock);
    if (r->local || r->dead || r->current) st = SN_E_STATE;
    if (st == SN_OK && !r->fast_local) st = rd_slot_alloc_locked(t, &r->fast_local);
    if (st == SN_OK && !r->next_remote) st = rd_slot_alloc_locked(t, &r->next_remote);
    if (st == SN_OK) {
        r->max_pages = max_pages;
        r->remote_access = remote;
        r->fixed_token = fixed;
        os_u32_store_release(&r->local_token, r->fast_local->value);
        os_u32_store_release(&r->remote_token, r->next_remote->value);
    }
    os_lock_leave(&t->lock);
    return st;
}

static sn_status check(const struct rd_region *r, const uint64_t *pages, uint32_t count,
                       uint32_t fbo, size_t len, uint64_t base, uint32_t rights) {
    if (!r->fast_local) return SN_E_STATE;
    if (count == 0 || count > r->max_pages || !pages) return SN_E_PARAM;
    if (fbo >= RD_IO_PAGE || base % RD_IO_PAGE != fbo) return SN_E_PARAM;
    if (len == 0 || len > (uint64_t)count * RD_IO_PAGE - fbo) return SN_E_PARAM;
    if (len - 1 > UINT64_MAX - base) return SN_E_PARAM;
    if ((rights & (RD_REMOTE_READ | RD_REMOTE_WRITE)) && !r->remote_access) return SN_E_RIGHTS;
    for (uint32_t i = 0; i < count; i++) {
        if (pages[i] % RD_IO_PAGE != 0) return SN_E_PARAM;
        if (!rd_io_mapped(r->ad, pages[i])) return SN_E_PARAM;
    }
    return SN_OK;
}

sn_status rd_fastreg_prepare(struct rd_region *r, const uint64_t *pages, uint32_t count,
                             uint32_t fbo, size_t len, uint64_t base, uint32_t rights,
                             struct rd_fastreg **out) {
    struct rd_table *t = &r->ad->table;
    sn_status st = check(r, pages, count, fbo, len, base, rights);
    if (st != SN_OK) return st;
    struct rd_fastreg *fr = os_zalloc(sizeof *fr + (size_t)count * sizeof pages[0]);
    if (!fr) return SN_E_NOMEM;
    fr->base = base;
    fr->len = len;
    fr->rights = rights;
    fr->pages.fbo = fbo;
    fr->pages.count = count;
    memcpy(fr->pages.page, pages, (size_t)count * sizeof pages[0]);
    os_lock_enter(&t->lock);
    if (r->dead) {
        st = SN_E_STATE;
    } else if (r->fixed_token) {
        fr->remote = r->next_remote; /* the only one */
    } else if (r->next_remote) {
        fr->remote = r->next_remote;
        r->next_remote = NULL;
    } else {
        st = rd_slot_alloc_locked(t, &fr->remote);
    }
    if (st == SN_OK) os_u32_store_release(&r->remote_token, fr->remote->value);
    os_lock_leave(&t->lock);
    if (st != SN_OK) {
        os_free(fr);
        return st;
    }
    *out = fr;
    return SN_OK;
}

void rd_fastreg_abandon(struct rd_region *r, struct rd_fastreg *fr) {
    os_lock_enter(&r->ad->table.lock);
    if (!r->fixed_token) rd_slot_free_locked(&r->ad->table, fr->remote);
    os_lock_leave(&r->ad->table.lock);
    os_free(fr);
}

static void fill(struct rd_slot *s, const struct rd_region *r, struct rd_fastreg *fr,
                 enum rd_slot_kind kind, uint32_t rights) {
    s->base = (uint8_t *)(uintptr_t)fr->base;
    s->len = fr->len;
    s->owner = fr;
    s->pd = r->pd;
    s->kind = kind;
    s->rights = rights;
}

sn_status rd_fastreg_run(struct rd_region *r, struct rd_fastreg *fr) {
    struct rd_table *t = &r->ad->table;
    uint32_t local = BIT(TP_LOCAL_READ), remote = 0;
    if (fr->rights & (RD_LOCAL_WRITE | RD_REMOTE_WRITE)) local |= BIT(TP_LOCAL_WRITE);
    if (fr->rights & (RD_LOCAL_WRITE | RD_REMOTE_WRITE | RD_READ_SINK)) local |= BIT(TP_READ_SINK);
    if (fr->rights & RD_REMOTE_READ) remote |= BIT(TP_REMOTE_READ);
    if (fr->rights & RD_REMOTE_WRITE) remote |= BIT(TP_REMOTE_WRITE);
    os_lock_enter(&t->lock);
    bool ok = !r->current && !r->dead;
    if (ok) {
        r->current = fr;
        fr->region = r;
        fill(r->fast_local, r, fr, RD_SLOT_FAST_LOCAL, local);
        fill(fr->remote, r, fr, RD_SLOT_FAST_REMOTE, remote);
        rd_slot_publish_locked(r->fast_local);
        rd_slot_publish_locked(fr->remote);
        rd_count(&r->ad->counters.regions, 1);
    }
    os_lock_leave(&t->lock);
    if (ok) return SN_OK;
    rd_fastreg_abandon(r, fr);
    return SN_E_REQUEST;
}

/* Table lock held: no new access from here on. False if nothing is registered, or it is ending
 * already. */
static bool begin_end_locked(struct rd_region *r) {
    if (!r->current || r->ending) return false;
    r->ending = true;
    rd_slot_unpublish(r->fast_local);
    rd_slot_unpublish(r->current->remote);
    return true;
}

/* After begin_end_locked, lock not held. The caller's reference keeps the region. */
static void finish_end(struct rd_region *r) {
    struct rd_table *t = &r->ad->table;
    struct rd_fastreg *fr = r->current;
    rd_slot_drain(t, r->fast_local);
    rd_slot_drain(t, fr->remote);
    os_lock_enter(&t->lock);
    r->fast_local->owner = NULL;
    fr->remote->owner = NULL;
    if (!r->fixed_token) rd_slot_free_locked(t, fr->remote);
    r->current = NULL;
    r->ending = false;
    rd_count(&r->ad->counters.regions_ended, 1);
    os_lock_leave(&t->lock);
    os_free(fr);
}

sn_status rd_fastreg_invalidate(struct rd_region *r) {
    os_lock_enter(&r->ad->table.lock);
    bool ok = begin_end_locked(r);
    os_lock_leave(&r->ad->table.lock);
    if (!ok) return SN_E_REQUEST;
    finish_end(r);
    return SN_OK;
}

static sn_status invalidate_token(struct rd_adapter *ad, uint32_t pd, uint32_t token,
                                  enum rd_slot_kind kind) {
    struct rd_region *r = NULL;
    sn_status st = SN_E_TOKEN;
    os_lock_enter(&ad->table.lock);
    struct rd_slot *s = rd_table_find_locked(&ad->table, token);
    if (s && s->kind == (uint32_t)kind) {
        st = SN_E_PD;
        struct rd_region *owner = ((struct rd_fastreg *)s->owner)->region;
        if (s->pd == pd && begin_end_locked(owner)) {
            r = owner;
            os_ref_get(&r->refs);
            st = SN_OK;
        }
    }
    os_lock_leave(&ad->table.lock);
    if (!r) return st;
    finish_end(r);
    rd_region_put(r);
    return SN_OK;
}

sn_status rd_fastreg_invalidate_remote(struct rd_adapter *ad, uint32_t pd, uint32_t token) {
    return invalidate_token(ad, pd, token, RD_SLOT_FAST_REMOTE);
}

void rd_fastreg_invalidate_local(struct rd_adapter *ad, uint32_t pd, uint32_t token) {
    /* Another kind of token, or one that somebody else has just ended: nothing to do. */
    (void)!(invalidate_token(ad, pd, token, RD_SLOT_FAST_LOCAL) == SN_OK);
}

const struct rd_pages *rd_fastreg_pages(const void *fastreg) {
    return &((const struct rd_fastreg *)fastreg)->pages;
}

void rd_fastreg_destroy(struct rd_region *r) {
    struct rd_table *t = &r->ad->table;
    os_lock_enter(&t->lock);
    r->dead = true;
    bool ours = begin_end_locked(r);
    while (!ours && r->ending) { /* another thread ends it, for a bounded time */
        os_lock_leave(&t->lock);
        os_thread_yield();
        os_lock_enter(&t->lock);
    }
    os_lock_leave(&t->lock);
    if (ours) finish_end(r);
    os_lock_enter(&t->lock);
    /* With a fixed token, requests in a queue still name the slot; the last reference frees it. */
    if (r->fast_local) rd_slot_free_locked(t, r->fast_local);
    r->fast_local = NULL;
    os_u32_store_release(&r->local_token, 0);
    os_u32_store_release(&r->remote_token, 0);
    os_lock_leave(&t->lock);
}

void rd_fastreg_fini(struct rd_region *r) {
    if (!r->next_remote) return;
    os_lock_enter(&r->ad->table.lock);
    rd_slot_free_locked(&r->ad->table, r->next_remote);
    os_lock_leave(&r->ad->table.lock);
}
