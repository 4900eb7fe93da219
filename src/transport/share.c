/* SPDX-License-Identifier: MIT */
#include "transport/share.h"
#include "os/prim/pages.h"

sn_status tp_share_create(size_t bytes, struct tp_share *out) {
    *out = (struct tp_share){ .bytes = bytes };
    if (os_shm_create_published(bytes, &out->shm) == SN_OK) {
        out->base = out->shm.base;
        return SN_OK;
    }
    out->shm = (struct os_shm){ .handle = OS_HANDLE_NONE };
    out->base = os_pages_alloc(bytes);
    return out->base ? SN_OK : SN_E_NOMEM;
}

void tp_share_destroy(struct tp_share *s) {
    if (s->shm.base)
        os_shm_close(&s->shm);
    else if (s->base)
        os_pages_free(s->base, s->bytes);
    s->base = NULL;
}
