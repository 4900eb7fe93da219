/* SPDX-License-Identifier: MIT
 *
 * A window is bound when rd_qp_bind returns (its token can be read, the region is busy), but the
 * token only opens when the bind's turn in the initiator queue comes. Ending a use takes three
 * steps: the token is cleared under the table lock, accesses in flight are waited for without it,
 * then the slot is given back.
 */
#include "os/prim/fault.h"
#include "rdma/region.h"

#define BIT(right) (1u << (right))

sn_status rd_window_create(struct rd_adapter *ad, struct rd_window **out) {
    struct rd_window *w = os_zalloc(sizeof *w);
    if (!w) return SN_E_NOMEM;
    os_ref_init(&w->refs);
    sn_list_init(&w->region_link);
    sn_list_init(&w->qp_link);
    rd_adapter_get(ad);
    w->ad = ad;
    *out = w;
    return SN_OK;
}

void rd_window_put(struct rd_window *w) {
    if (!os_ref_put(&w->refs)) return;
    struct rd_adapter *ad = w->ad;
    os_free(w);
    rd_adapter_put(ad);
}

uint32_t rd_window_token(const struct rd_window *w) {
    return os_u32_load_acquire(&w->token);
}

/* ---- bind ---- */

static sn_status check_bind_locked(const struct rd_window *w, const struct rd_region *r,
                                   const void *buf, size_t len, uint32_t rights) {
    if (!r->local) return SN_E_TOKEN;
    if (w->region || w->dead) return SN_E_BUSY;
    uintptr_t off = (uintptr_t)buf - (uintptr_t)r->base;
    if (off > r->len || len > r->len - off) return SN_E_RANGE;
    if (len > rd_limits_get()->max_window_bytes) return SN_E_RANGE;
    if ((rights & RD_REMOTE_WRITE) && !(r->flags & (RD_LOCAL_WRITE | RD_REMOTE_WRITE)))
        return SN_E_RIGHTS;
    return SN_OK;
}

sn_status rd_window_bind(struct rd_window *w, struct rd_region *r, uint64_t qp_id,
                         struct sn_list *qp_windows, const void *buf, size_t len, uint32_t rights,
                         uint64_t *bind_id) {
    struct rd_table *t = &w->ad->table;
    struct rd_slot *s;
    os_lock_enter(&t->lock);
    sn_status st = check_bind_locked(w, r, buf, len, rights);
    if (st == SN_OK) st = rd_slot_alloc_locked(t, &s);
    if (st == SN_OK) {
        s->base = (uint8_t *)(uintptr_t)buf;
        s->len = len;
        s->kind = RD_SLOT_WINDOW;
        s->rights = ((rights & RD_REMOTE_READ) ? BIT(TP_REMOTE_READ) : 0) |
                    ((rights & RD_REMOTE_WRITE) ? BIT(TP_REMOTE_WRITE) : 0);
        s->qp_id = qp_id;
        s->pd = r->pd;
        s->owner = w;
        os_ref_get(&r->refs);
        w->region = r;
        w->slot = s;
        w->qp_id = qp_id;
        *bind_id = ++w->bind_id;
        sn_list_push_back(&r->windows, &w->region_link);
        sn_list_push_back(qp_windows, &w->qp_link);
        os_u32_store_release(&w->token, s->value);
        rd_count(&w->ad->counters.windows_bound, 1);
    }
    os_lock_leave(&t->lock);
    return st;
}

sn_status rd_window_bind_run(struct rd_window *w, uint64_t bind_id) {
    sn_status st = SN_E_REQUEST;
    os_lock_enter(&w->ad->table.lock);
    if (w->region && w->bind_id == bind_id) {
        rd_slot_publish_locked(w->slot);
        st = SN_OK;
    }
    os_lock_leave(&w->ad->table.lock);
    return st;
}

/* ---- unbind ---- */

struct ended { /* what is left to do once the table lock is released */
    struct rd_slot *slot;
    struct rd_region *region;
};

static struct ended unbind_locked(struct rd_window *w) {
    struct ended e = { w->slot, w->region };
    rd_slot_unpublish(w->slot);
    w->slot = NULL;
    w->region = NULL;
    sn_list_remove(&w->region_link);
    sn_list_remove(&w->qp_link);
    os_u32_store_release(&w->token, 0);
    rd_count(&w->ad->counters.windows_unbound, 1);
    return e;
}

/* The region's reference keeps the adapter, whose table holds the slot. */
static void finish_unbind(struct rd_table *t, struct ended e) {
    rd_slot_drain(t, e.slot);
    os_lock_enter(&t->lock);
    rd_slot_free_locked(t, e.slot);
    os_lock_leave(&t->lock);
    rd_region_put(e.region);
}

void rd_window_bind_undo(struct rd_window *w, uint64_t bind_id) {
    struct ended e = { NULL, NULL };
    os_lock_enter(&w->ad->table.lock);
    if (w->region && w->bind_id == bind_id) e = unbind_locked(w);
    os_lock_leave(&w->ad->table.lock);
    if (e.slot) finish_unbind(&w->ad->table, e);
}

sn_status rd_window_invalidate(struct rd_window *w, uint64_t qp_id) {
    struct ended e = { NULL, NULL };
    os_lock_enter(&w->ad->table.lock);
    if (w->region && w->qp_id == qp_id) e = unbind_locked(w);
    os_lock_leave(&w->ad->table.lock);
    if (!e.slot) return SN_E_REQUEST;
    finish_unbind(&w->ad->table, e);
    return SN_OK;
}

sn_status rd_window_invalidate_token(struct rd_adapter *ad, uint64_t qp_id, uint32_t token) {
    struct ended e = { NULL, NULL };
    sn_status st = SN_OK;
    os_lock_enter(&ad->table.lock);
    struct rd_slot *s = rd_table_find_locked(&ad->table, token);
    if (!s || s->kind != RD_SLOT_WINDOW)
        st = SN_E_TOKEN;
    else if (s->qp_id != qp_id)
        st = SN_E_PD;
    else
        e = unbind_locked(s->owner);
    os_lock_leave(&ad->table.lock);
    if (st == SN_OK) finish_unbind(&ad->table, e);
    return st;
}

/* The first bound window of a list, unbound; false if the list is empty. */
static bool unbind_first(struct rd_table *t, struct sn_list *list, bool of_region) {
    struct ended e = { NULL, NULL };
    os_lock_enter(&t->lock);
    if (!sn_list_empty(list)) {
        struct rd_window *w = of_region ? SN_CONTAINER(list->next, struct rd_window, region_link)
                                        : SN_CONTAINER(list->next, struct rd_window, qp_link);
        e = unbind_locked(w);
    }
    os_lock_leave(&t->lock);
    if (e.slot) finish_unbind(t, e);
    return e.slot != NULL;
}

void rd_windows_unbind_region(struct rd_region *r) {
    while (unbind_first(&r->ad->table, &r->windows, true)) {
    }
}

void rd_windows_unbind_qp(struct rd_adapter *ad, struct sn_list *qp_windows) {
    while (unbind_first(&ad->table, qp_windows, false)) {
    }
}

void rd_window_destroy(struct rd_window *w) {
    struct ended e = { NULL, NULL };
    os_lock_enter(&w->ad->table.lock);
    w->dead = true;
    if (w->region) e = unbind_locked(w);
    os_lock_leave(&w->ad->table.lock);
    if (e.slot) finish_unbind(&w->ad->table, e);
    rd_window_put(w);
}
