/* SPDX-License-Identifier: MIT
 *
 * A region has two uses in the token table, so that its local and its remote token differ and
 * neither works in the place of the other.
 */
#include "rdma/region.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"

#define BIT(right) (1u << (right))

sn_status rd_region_create(struct rd_adapter *ad, struct rd_region **out) {
    struct rd_region *r = os_zalloc(sizeof *r);
    if (!r) return SN_E_NOMEM;
    os_ref_init(&r->refs);
    sn_list_init(&r->windows);
    rd_adapter_get(ad);
    r->ad = ad;
    *out = r;
    return SN_OK;
}

void rd_region_put(struct rd_region *r) {
    if (!os_ref_put(&r->refs)) return;
    struct rd_adapter *ad = r->ad;
    rd_fastreg_fini(r);
    os_free(r);
    rd_adapter_put(ad);
}

/* ---- register ---- */

static bool write_access(uint32_t flags) {
    return (flags & (RD_LOCAL_WRITE | RD_REMOTE_WRITE | RD_READ_SINK)) != 0;
}

static uint32_t local_rights(uint32_t flags) {
    uint32_t rights = BIT(TP_LOCAL_READ);
    if (flags & (RD_LOCAL_WRITE | RD_REMOTE_WRITE)) rights |= BIT(TP_LOCAL_WRITE);
    if (write_access(flags)) rights |= BIT(TP_READ_SINK);
    return rights;
}

static uint32_t remote_rights(uint32_t flags) {
    uint32_t rights = 0;
    if (flags & RD_REMOTE_READ) rights |= BIT(TP_REMOTE_READ);
    if (flags & RD_REMOTE_WRITE) rights |= BIT(TP_REMOTE_WRITE);
    return rights;
}

static void fill_slot(struct rd_slot *s, const struct rd_region *r, enum rd_slot_kind kind,
                      uint32_t rights) {
    s->base = r->base;
    s->len = r->len;
    s->kind = kind;
    s->rights = rights;
    s->pd = r->pd;
}

static sn_status register_locked(struct rd_region *r, const void *buf, size_t len, uint32_t flags) {
    struct rd_table *t = &r->ad->table;
    if (r->local || r->fast_local) return SN_E_REQUEST;
    struct rd_slot *local, *remote;
    sn_status st = rd_slot_alloc_locked(t, &local);
    if (st != SN_OK) return st;
    st = rd_slot_alloc_locked(t, &remote);
    if (st != SN_OK) {
        rd_slot_free_locked(t, local);
        return st;
    }
    r->base = (uint8_t *)(uintptr_t)buf;
    r->len = len;
    r->flags = flags;
    r->local = local;
    r->remote = remote;
    fill_slot(local, r, r->pd ? RD_SLOT_PD_LOCAL : RD_SLOT_LOCAL, local_rights(flags));
    fill_slot(remote, r, r->pd ? RD_SLOT_PD_REMOTE : RD_SLOT_REMOTE, remote_rights(flags));
    rd_slot_publish_locked(local);
    rd_slot_publish_locked(remote);
    os_u32_store_release(&r->local_token, local->value);
    os_u32_store_release(&r->remote_token, remote->value);
    rd_count(&r->ad->counters.regions, 1);
    return SN_OK;
}

sn_status rd_region_register(struct rd_region *r, const void *buf, size_t len, uint32_t flags) {
    if (len == 0) return buf ? SN_E_BUFFER_SIZE : SN_E_PARAM;
    if (!buf || len > rd_limits_get()->max_registration_bytes) return SN_E_PARAM;
    if (flags & ~(uint32_t)(RD_LOCAL_WRITE | RD_REMOTE_READ | RD_REMOTE_WRITE | RD_READ_SINK))
        return SN_E_PARAM;
    if (len - 1 > UINTPTR_MAX - (uintptr_t)buf) return SN_E_FAULT;
    if (os_u32_load_acquire(&r->local_token) != 0) return SN_E_REQUEST;
    sn_status st = os_pages_probe(buf, len, write_access(flags));
    if (st != SN_OK) return st;
    os_lock_enter(&r->ad->table.lock);
    st = register_locked(r, buf, len, flags);
    os_lock_leave(&r->ad->table.lock);
    return st;
}

/* ---- deregister ---- */

/* Takes the registration off the region; the slots are drained and freed by end_slots. */
static void unregister_locked(struct rd_region *r, struct rd_slot *slots[2]) {
    slots[0] = r->local;
    slots[1] = r->remote;
    r->local = r->remote = NULL;
    os_u32_store_release(&r->local_token, 0);
    os_u32_store_release(&r->remote_token, 0);
    rd_slot_unpublish(slots[0]);
    rd_slot_unpublish(slots[1]);
    rd_count(&r->ad->counters.regions_ended, 1);
}

static void end_slots(struct rd_adapter *ad, struct rd_slot *slots[2]) {
    rd_slot_drain(&ad->table, slots[0]);
    rd_slot_drain(&ad->table, slots[1]);
    os_lock_enter(&ad->table.lock);
    rd_slot_free_locked(&ad->table, slots[0]);
    rd_slot_free_locked(&ad->table, slots[1]);
    os_lock_leave(&ad->table.lock);
}

sn_status rd_region_deregister(struct rd_region *r) {
    struct rd_slot *slots[2];
    sn_status st = SN_OK;
    os_lock_enter(&r->ad->table.lock);
    if (!r->local)
        st = SN_E_REQUEST;
    else if (!sn_list_empty(&r->windows))
        st = SN_E_BUSY;
    else
        unregister_locked(r, slots);
    os_lock_leave(&r->ad->table.lock);
    if (st == SN_OK) end_slots(r->ad, slots);
    return st;
}

void rd_region_destroy(struct rd_region *r) {
    struct rd_slot *slots[2] = { NULL, NULL };
    os_lock_enter(&r->ad->table.lock);
    if (r->local) unregister_locked(r, slots); /* from here on nothing can be bound to it */
    os_lock_leave(&r->ad->table.lock);
    rd_windows_unbind_region(r);
    if (slots[0]) end_slots(r->ad, slots);
    rd_fastreg_destroy(r);
    rd_region_put(r);
}

void rd_region_set_pd(struct rd_region *r, const struct rd_pd *pd) {
    r->pd = rd_pd_id(pd);
}

uint32_t rd_region_local_token(const struct rd_region *r) {
    return os_u32_load_acquire(&r->local_token);
}

uint32_t rd_region_remote_token(const struct rd_region *r) {
    return os_u32_load_acquire(&r->remote_token);
}
