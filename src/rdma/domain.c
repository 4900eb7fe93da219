/* SPDX-License-Identifier: MIT
 *
 * A protection domain is a number that regions and queue pairs carry, and the privileged token:
 * local access to anything that is mapped for the adapter, by logical address.
 */
#include "os/prim/fault.h"
#include "rdma/adapter.h"

struct rd_pd {
    struct rd_adapter *ad;
    uint32_t id;
    struct rd_slot *slot;
};

#define BIT(right) (1u << (right))

sn_status rd_pd_create(struct rd_adapter *ad, struct rd_pd **out) {
    struct rd_pd *pd = os_zalloc(sizeof *pd);
    if (!pd) return SN_E_NOMEM;
    os_lock_enter(&ad->table.lock);
    sn_status st = rd_slot_alloc_locked(&ad->table, &pd->slot);
    if (st == SN_OK) {
        pd->id = ++ad->last_pd_id;
        pd->slot->base = NULL;
        pd->slot->len = 0;
        pd->slot->kind = RD_SLOT_PRIVILEGED;
        pd->slot->rights = BIT(TP_LOCAL_READ) | BIT(TP_LOCAL_WRITE) | BIT(TP_READ_SINK);
        pd->slot->pd = pd->id;
        rd_slot_publish_locked(pd->slot);
    }
    os_lock_leave(&ad->table.lock);
    if (st != SN_OK) {
        os_free(pd);
        return st;
    }
    rd_adapter_get(ad);
    pd->ad = ad;
    *out = pd;
    return SN_OK;
}

void rd_pd_destroy(struct rd_pd *pd) {
    struct rd_adapter *ad = pd->ad;
    rd_slot_unpublish(pd->slot);
    rd_slot_drain(&ad->table, pd->slot);
    os_lock_enter(&ad->table.lock);
    rd_slot_free_locked(&ad->table, pd->slot);
    os_lock_leave(&ad->table.lock);
    os_free(pd);
    rd_adapter_put(ad);
}

uint32_t rd_pd_id(const struct rd_pd *pd) {
    return pd->id;
}

uint32_t rd_pd_token(const struct rd_pd *pd) {
    return pd->slot->value;
}
