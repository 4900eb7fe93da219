/* SPDX-License-Identifier: MIT
 * rig.h - one SoftND connection with a fake core against a raw peer, for the wire tests.
 * Owns:    the engine, the listener, the fake queue pair and its guarded memory. A second pair of
 *          connections on the same engine, the bystanders, shows that nobody else is hurt.
 * Threads: the test's. Failures end the running case (FAIL).
 *
 * Memory: RIG_GUARD octets, RIG_MEM octets of region, RIG_GUARD octets; all of it has a pattern.
 */
#ifndef SN_TESTS_WIRE_RIG_H
#define SN_TESTS_WIRE_RIG_H

#define TEST_MANY_FILES
#include "iwarp/conn.h"
#include "os/prim/thread.h"
#include "support/raw_peer.h"
#include "support/testing.h"
#include "unit/iwarp/fake_core.h"

enum { RIG_GUARD = 8192, RIG_MEM = 256 << 10 };

#define WAIT_FOR(cond)                                                                             \
    do {                                                                                           \
        uint64_t wait_end = os_now_ns() + RAW_WAIT_MS * OS_NS_PER_MS;                              \
        while (!(cond)) {                                                                          \
            if (os_now_ns() > wait_end) FAIL("timed out waiting for %s", #cond);                   \
            os_thread_yield();                                                                     \
        }                                                                                          \
    } while (0)

/* How the connection under test comes about. */
struct profile {
    bool active;    /* we connect, the raw peer answers */
    uint8_t flags;  /* of the raw peer's frame: RAW_C ... */
    uint8_t rev;    /* of the raw peer's frame; 0 counts as 2 */
    uint16_t word1; /* of its enhanced data, if RAW_S */
    uint16_t word2;
    const void *pd;
    uint16_t pd_len;
    enum { RTR_WRITE, RTR_MARK, RTR_READ, RTR_NONE } rtr; /* what a raw initiator sends first */
    uint32_t ird, ord;                                    /* ours */
    size_t chunk;                                         /* of the raw peer's writes */
    bool patient;                                         /* ours: a Send may wait for ever */
};

/* Peers that many cases use. */
extern const struct profile foreign_passive; /* NIC-like initiator; CRC, Write RTR */
extern const struct profile softnd_passive;  /* a SoftND initiator */
extern const struct profile foreign_active;  /* NIC-like responder, chooses D */
extern const struct profile softnd_active;   /* a SoftND responder, chooses C, says hello */

struct rig {
    struct tp_engine *eng;
    struct tp_port *port;
    struct tp_listener *listener;
    os_atomic_ptr request; /* the connection handed up last */
    os_atomic_u32 requests;
    struct fake_qp qp;
    uint8_t *all, *mem; /* mem: the region */
    uint8_t *model;     /* what `all` must be like */
    os_sock raw_listener;
    struct os_addr raw_addr;
    struct raw_peer peer;
    uint8_t start[MPA_START_MAX]; /* our start-up frame, as the peer got it */
    size_t start_len;
    uint8_t fpdu[RAW_FPDU_MAX]; /* read last */
    size_t fpdu_len;
    struct {
        struct fake_qp a, b;
        uint8_t mem[4096];
        uint32_t count;
    } by;
    uint32_t base_watches; /* of the engine when no case runs */
};

/* Engine, listeners and bystanders; kept over many cases. */
void rig_init(struct rig *r);
void rig_fini(struct rig *r);
/* Fresh memory and queue pair. */
void rig_reset(struct rig *r);
/* Steps of start-up, for those who stop half way. */
void rig_connect_raw(struct rig *r, size_t chunk); /* raw peer connects to our listener */
void rig_await_request(struct rig *r);             /* until the request is handed up */
sn_status rig_accept(struct rig *r, uint32_t ird, uint32_t ord, bool patient);
void rig_start_connect(struct rig *r, uint32_t ird, uint32_t ord,
                       bool patient); /* and raw accept */
void rig_read_start(struct rig *r);   /* our frame, into start */
/* The whole of it: an open connection. */
void rig_open(struct rig *r, const struct profile *p);
/* Reads the next FPDU that is not a SoftND report. */
enum raw_result rig_read_fpdu(struct rig *r);
void rig_put(struct rig *r, const struct raw_bytes *b);
/* Memory must be as the model has it. */
void rig_check_memory(struct rig *r);
/* Ends what is left of the case's connection, waits until the engine has forgotten it, and lets
 * the bystanders talk. */
void rig_done(struct rig *r);

/* The region is called by this address on the wire and in segments, so that a stream has the same
 * octets in every run. */
#define RIG_BASE 0x0000534F46540000ull
static inline void *rig_at(size_t off) {
    return (void *)(uintptr_t)(RIG_BASE + off);
}
/* The model's octets of the region. */
static inline uint8_t *rig_model(struct rig *r) {
    return r->model + RIG_GUARD;
}

#endif
