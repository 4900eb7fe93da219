/* SPDX-License-Identifier: MIT
 * counters.h - what adapters, queue pairs and completion queues count.
 * Owns:    the lists of counters: X(field, unit, help). Fields, names and help texts are made from
 *          them, so that code, tools and docs cannot drift apart.
 * Threads: adding by the side that owns the object's path, or relaxed atomics; reading from any.
 *          Values read together need not be from one moment.
 * Errors:  none.
 */
#ifndef SN_RDMA_COUNTERS_H
#define SN_RDMA_COUNTERS_H

#include "os/prim/atomic.h"
#include "rdma/rd.h"

#define RD_ADAPTER_COUNTERS(X)                                                                     \
    X(regions, "regions", "registrations made")                                                    \
    X(regions_ended, "regions", "registrations ended")                                             \
    X(windows_bound, "windows", "windows bound")                                                   \
    X(windows_unbound, "windows", "windows unbound, invalidated or destroyed while bound")         \
    X(refused_token, "accesses", "memory accesses refused: no such token")                         \
    X(refused_rights, "accesses", "memory accesses refused: no right")                             \
    X(refused_range, "accesses", "memory accesses refused: outside the range")                     \
    X(refused_pd, "accesses", "memory accesses refused: window of another queue pair")             \
    X(connects, "connections", "connections established as the active side")                       \
    X(accepts, "connections", "connections established as the passive side")                       \
    X(connects_failed, "attempts", "attempts to connect that failed")                              \
    X(requests_in, "requests", "connection requests received")                                     \
    X(requests_refused, "requests", "connection requests refused: backlog full or no memory")      \
    X(requests_abandoned, "requests", "connection requests whose peer left before an answer")      \
    X(disconnects_peer, "connections", "connections ended by the peer or by an error")             \
    X(disconnects_local, "connections", "connections ended from this side")                        \
    X(cq_overruns, "queues", "completion queues that overran")

#define RD_QP_COUNTERS(X)                                                                          \
    X(posted, "requests", "initiator requests posted")                                             \
    X(tx_bytes, "bytes", "payload of completed Sends and Writes")                                  \
    X(read_bytes, "bytes", "payload of completed Reads")                                           \
    X(receives_posted, "requests", "receives posted to the queue pair's own queue")                \
    X(received, "messages", "receives completed with data")                                        \
    X(rx_bytes, "bytes", "payload of completed receives")                                          \
    X(failed, "requests", "requests and receives completed with an error")                         \
    X(flushed, "requests", "requests and receives cancelled by a flush")                           \
    X(starved, "times", "the stream found no receive posted")

#define RD_CQ_COUNTERS(X)                                                                          \
    X(entries, "entries", "completions queued")                                                    \
    X(taken, "entries", "completions handed to the application")                                   \
    X(notified, "times", "notifications fired")                                                    \
    X(most_queued, "entries", "highest number of completions queued at a time")

#define RD_COUNTER_FIELD(field, unit, help) os_atomic_u64 field;
struct rd_adapter_counters {
    RD_ADAPTER_COUNTERS(RD_COUNTER_FIELD)
};
struct rd_qp_counters {
    RD_QP_COUNTERS(RD_COUNTER_FIELD)
};
struct rd_cq_counters {
    RD_CQ_COUNTERS(RD_COUNTER_FIELD)
};
#undef RD_COUNTER_FIELD

/* One counter as a tool prints it. */
struct rd_counter {
    const char *name, *unit, *help;
    uint64_t value;
};
enum { RD_COUNTERS_MAX = 32 }; /* at least the longest list */

/* Each fills out (room for RD_COUNTERS_MAX) and returns how many there are. */
uint32_t rd_adapter_counters_get(const struct rd_adapter *ad, struct rd_counter *out);
uint32_t rd_qp_counters_get(const struct rd_qp *qp, struct rd_counter *out);
uint32_t rd_cq_counters_get(const struct rd_cq *cq, struct rd_counter *out);

/* Adds where only one thread at a time writes this counter: no locked instruction. */
static inline void rd_count(os_atomic_u64 *c, uint64_t n) {
    os_u64_store_relaxed(c, os_u64_load_relaxed(c) + n);
}
/* Adds from any thread. */
static inline void rd_count_any(os_atomic_u64 *c, uint64_t n) {
    os_u64_fetch_add_relaxed(c, n);
}

#endif
