/* SPDX-License-Identifier: MIT
 * adapter.h - an open adapter, inside the core.
 * Owns:    struct rd_adapter: the engine, the token table, deferred jobs.
 * Threads: any.   Errors: see rd.h.
 */
#ifndef SN_RDMA_ADAPTER_H
#define SN_RDMA_ADAPTER_H

#include "os/prim/lock.h"
#include "rdma/counters.h"
#include "rdma/iomap.h"
#include "rdma/rd.h"
#include "rdma/table.h"
#include "transport/engine.h"

/* Work that an upcall must not do itself (ending a connection). Runs on the engine thread with no
 * lock held. Embedded in its object; run drops the reference that rd_job_post's caller took. */
struct rd_job {
    struct sn_list link; /* [adapter job_lock] self-linked while not queued */
    void (*run)(struct rd_job *job);
};

struct rd_adapter {
    struct os_ref refs; /* the front end's, one per child, one while jobs run */
    uint64_t id;
    char name[OS_NETIF_NAME_MAX]; /* [const] the interface */
    struct tp_engine *eng;        /* [const] */
    struct rd_table table;
    struct rd_iomap io;
    uint32_t last_pd_id; /* [table lock] */
    struct rd_adapter_counters counters;
    os_atomic_u64 next_qp_id;
    os_lock job_lock; /* rank LEAF */
    struct sn_list jobs;
    struct tp_timer job_timer;
};

void rd_adapter_get(struct rd_adapter *ad);
/* May free the adapter, which waits for its engine thread; no lock held, never from an upcall. */
void rd_adapter_put(struct rd_adapter *ad);

void rd_job_init(struct rd_job *job, void (*run)(struct rd_job *job));
/* Any context, locks up to rank CQ held. False if it was queued already. */
bool rd_job_post(struct rd_adapter *ad, struct rd_job *job);

/* SN_OK if addr (port ignored) is an address of this adapter now; the wildcard is not.
 * SN_E_ADDR_INVALID, SN_E_NOMEM, SN_E_RESOURCES. */
SN_MUST_CHECK sn_status rd_adapter_check_addr(struct rd_adapter *ad, const struct os_addr *addr);

/* The transports in order of preference (transports.c, the one registration list). */
extern const struct tp_ops *const rd_transports[];
extern const size_t rd_transport_count;

#endif
