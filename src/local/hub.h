/* SPDX-License-Identifier: MIT
 * hub.h - what an adapter has once for all its same-host connections.
 * Owns:    the board that peers write to, the numbers of connections on it, who is polled directly,
 *          the peers that are known, and waiting for their copies when a token ends.
 * Threads: any.   Errors: SN_E_NOMEM, SN_E_RESOURCES.
 *
 * A connection is noticed in one of three ways. While an application polls hard some of the
 * connections that it polled are "direct": their flag `polled` is set, the peer just writes, the
 * pollers look at the next slot. Others have a bell, a bit on the board that the peer sets. While
 * the engine thread sleeps nobody's `polled` is set, and the peer who finds `sleeping` set sends a
 * byte through its socket and then clears it, if it is still the same sleep. Not before: a byte
 * that cannot be sent wakes nobody. A socket that is closed may take such a byte with it; who
 * closes it asks for another (lo_hub_heard). In each step one side writes, then reads what the
 * other side writes first, with a full fence between; but a peer that writes a slot and then finds
 * `polled` set spends no fence. It may have looked before its slot could be seen, so a connection
 * is looked at for LO_LINGER_NS after its `polled` was cleared, and once more then.
 */
#ifndef SN_LOCAL_HUB_H
#define SN_LOCAL_HUB_H

#include "base/base.h"
#include "local/shared.h"
#include "os/io/local_sock.h"
#include "os/io/peer_copy.h"
#include "os/io/shm.h"
#include "os/prim/lock.h"
#include "transport/engine.h"
#include "transport/share.h"

struct lo_conn;
struct lo_peer;

enum { LO_DIRECT = 64 }; /* connections polled directly, at most: a cache line each per poll */
/* Far longer than any processor keeps a store to itself. */
#define LO_LINGER_NS (1 * OS_NS_PER_MS)

struct lo_hub {
    struct tp_source source;
    struct tp_share_guests guests;
    struct tp_engine *eng;
    uint8_t id[16];
    bool direct_copy; /* [const] */
    struct os_shm board_shm;
    struct lo_board *board;
    struct tp_timer kick; /* wakes the engine thread */

    os_lock lock;                                     /* rank LEAF */
    struct lo_conn *conns[LO_CONNS];                  /* [lock] a reference each */
    uint16_t next_free[LO_CONNS];                     /* [lock] */
    uint32_t fresh, free_head, free_tail, free_count; /* [lock] indexes; head, tail: + 1 */
    struct lo_conn *direct[LO_DIRECT]; /* [lock] a reference each, or NULL; polled, or lingering */
    uint32_t direct_end;               /* [lock] all places from here on are free */
    uint32_t direct_next;              /* [lock] whose turn to give way it is */
    uint32_t leaving;      /* [lock] whose place another waits for; LO_DIRECT: nobody's */
    uint64_t withdrawn_ns; /* [lock] when `polled` was last cleared */
    uint64_t linger_ns;    /* [const] but for tests */
    bool asleep;           /* [lock] */
    uint32_t sleeps;       /* [lock] numbers them, and each time a waker is wanted */
    struct sn_list peers;  /* [lock] */
};

/* The engine's hub, made if there is none. */
SN_MUST_CHECK sn_status lo_hub_get(struct tp_engine *eng, struct lo_hub **out);
/* Peers' copies are waited for when a token of this table ends. */
void lo_hub_watch_share(struct lo_hub *h, struct tp_share *share);

/* A number for the connection; takes a reference. SN_E_RESOURCES. */
SN_MUST_CHECK sn_status lo_hub_join(struct lo_hub *h, struct lo_conn *c, uint32_t *index);
/* It has none any more, and is not polled directly; drops the references. No peer copies for it. */
void lo_hub_part(struct lo_hub *h, struct lo_conn *c, uint32_t index);
/* The connection was polled by an application. */
void lo_hub_polled(struct lo_hub *h, struct lo_conn *c);
/* Somebody shall look at the connection soon. Any context, locks up to rank CQ held. */
void lo_hub_again(struct lo_hub *h, uint32_t index);
/* A wake-up was taken from a socket. If it was not the engine thread that took it, that thread may
 * never see it: peers must wake it again. */
void lo_hub_heard(struct lo_hub *h);
/* True if fn likes one of the connections. */
bool lo_hub_any(struct lo_hub *h, bool (*fn)(struct lo_conn *c, const void *arg), const void *arg);
/* Waits until the peer of this connection, which has its memory, copies nothing for it. */
void lo_hub_settle_cell(const struct lo_conn *c);

/* ---- peers (peer.c) ---- */

/* Another adapter instance, in this process or another. */
struct lo_peer {
    struct sn_list link; /* [hub lock] */
    struct os_ref refs;
    struct lo_hub *hub;
    uint8_t id[16];
    uint32_t pid;           /* 0: not visible from here */
    bool self;              /* this process */
    bool can_copy;          /* copies to and from it work, and its table is here */
    struct os_peer process; /* pid 0: not open */
    struct os_shm board_shm, table_shm;
    struct lo_board *board;
    const struct tp_share_head *table; /* NULL: not shared */
    const uint8_t *slots;
    uint32_t slot_max;
    struct tp_token_key key;
};

/* The peer that a hello speaks of. Takes the handles (board, table), also on failure. SN_E_WIRE. */
SN_MUST_CHECK sn_status lo_peer_get(struct lo_hub *h, const struct lo_hello *hello,
                                    const struct os_local_peer *who, os_handle board,
                                    os_handle table, struct lo_peer **out);
void lo_peer_put(struct lo_peer *p);
/* Its end shows. Who is not watched is not waited for either, so it is told not to copy. */
static inline bool lo_peer_watched(const struct lo_peer *p) {
    return p->self || p->process.pid != 0;
}
/* False also if it is not watched. */
bool lo_peer_alive(const struct lo_peer *p);

/* Looks a token up in the peer's table as rd_table_access does there; the caller's cell names the
 * token, so that what is found stays valid. qp_id: the peer's queue pair. SN_E_TOKEN, SN_E_PD,
 * SN_E_RIGHTS, SN_E_RANGE; SN_E_UNSUPPORTED: that memory is not for direct access. */
SN_MUST_CHECK sn_status lo_peer_check(const struct lo_peer *p, uint64_t qp_id, uint32_t token,
                                      uint64_t addr, size_t len, enum tp_right right);
/* Copies between local pieces and one range of the peer's memory, ascending. SN_E_FAULT: local
 * memory is not there; SN_E_RIGHTS: the peer's is not; SN_E_PEER_GONE and others. The last `tail`
 * bytes (0 to len) of a write appear after all others. */
SN_MUST_CHECK sn_status lo_peer_write(struct lo_peer *p, const struct os_iov *local, size_t count,
                                      uint64_t to, size_t len, size_t tail);
SN_MUST_CHECK sn_status lo_peer_read(struct lo_peer *p, const struct os_iov *local, size_t count,
                                     uint64_t from, size_t len);
/* Sets the bell of a connection on the peer's board. Not 0: the caller must wake it, and then call
 * lo_peer_woken with this number. */
uint32_t lo_peer_ring(struct lo_peer *p, uint32_t index);
void lo_peer_woken(struct lo_peer *p, uint32_t sleep);

#endif
