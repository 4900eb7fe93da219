/* SPDX-License-Identifier: MIT
 * region.h - memory regions and windows, inside the core.
 * Owns:    struct rd_region and struct rd_window; their state is guarded by the table lock.
 * Threads: any.   Errors: see rd.h.
 */
#ifndef SN_RDMA_REGION_H
#define SN_RDMA_REGION_H

#include "rdma/adapter.h"

struct rd_region {
    struct os_ref refs; /* the front end's, one per bound window */
    struct rd_adapter *ad;
    os_atomic_u32 local_token, remote_token; /* [table lock for writes] 0: not registered */
    struct rd_slot *local, *remote;          /* [table lock] NULL: not registered */
    uint8_t *base;                           /* [table lock] */
    size_t len;                              /* [table lock] bytes */
    uint32_t flags;                          /* [table lock] RD_LOCAL_WRITE ... */
    struct sn_list windows;                  /* [table lock] bound ones */
};

struct rd_window {
    struct os_ref refs; /* the front end's, one per posted bind or invalidate */
    struct rd_adapter *ad;
    os_atomic_u32 token;      /* [table lock for writes] 0: unbound */
    struct rd_region *region; /* [table lock] NULL: unbound */
    struct rd_slot *slot;     /* [table lock] */
    uint64_t qp_id;           /* [table lock] */
    uint64_t bind_id; /* [table lock] counts binds, so that a late step of an old one fails */
    bool dead;        /* [table lock] destroyed: cannot be bound again */
    struct sn_list region_link, qp_link; /* [table lock] */
};

void rd_region_put(struct rd_region *r);
void rd_window_put(struct rd_window *w);

/* The checks of rd_qp_bind, and a token that is not valid yet. qp_windows: the queue pair's list of
 * windows. *bind_id names this bind for the two calls below. Locks up to SQ held. */
SN_MUST_CHECK sn_status rd_window_bind(struct rd_window *w, struct rd_region *r, uint64_t qp_id,
                                       struct sn_list *qp_windows, const void *buf, size_t len,
                                       uint32_t rights, uint64_t *bind_id);
/* The bind's turn in the queue: access through the token becomes valid. SN_E_REQUEST if the window
 * was unbound in the meantime. */
SN_MUST_CHECK sn_status rd_window_bind_run(struct rd_window *w, uint64_t bind_id);
/* The bind was flushed: the window is unbound again. */
void rd_window_bind_undo(struct rd_window *w, uint64_t bind_id);
/* The invalidate's turn. SN_E_REQUEST: unbound, or bound to another queue pair. Waits until
 * accesses in flight are over. */
SN_MUST_CHECK sn_status rd_window_invalidate(struct rd_window *w, uint64_t qp_id);
/* A peer's Send with Invalidate: SN_E_TOKEN, SN_E_PD. */
SN_MUST_CHECK sn_status rd_window_invalidate_token(struct rd_adapter *ad, uint64_t qp_id,
                                                   uint32_t token);
/* Unbind every window of a region, or on a queue pair's list. */
void rd_windows_unbind_region(struct rd_region *r);
void rd_windows_unbind_qp(struct rd_adapter *ad, struct sn_list *qp_windows);

#endif
