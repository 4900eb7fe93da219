/* SPDX-License-Identifier: MIT
 * shared.h - what two processes share: the layout of a connection's memory, of an adapter's board,
 *            and of the messages that set a connection up (docs/local.md).
 * Owns:    every offset of them; LO_VERSION names the whole.
 * Threads: each field says who writes it.
 * Errors:  the other side is another program that may be broken: everything is copied out, then
 *          checked, and used only as checked.
 */
#ifndef SN_LOCAL_SHARED_H
#define SN_LOCAL_SHARED_H

#include <stdint.h>
#include "os/prim/atomic.h"
#include "transport/transport.h"

#define LO_VERSION 4u
#define LO_MAGIC 0x4C4E5353u

/* ---- a connection: two sides, each written by one end and read by the other ---- */

enum {
    LO_SLOTS = 256,      /* a power of two */
    LO_SLOT_BYTES = 128, /* two cache lines that processors fetch together */
    LO_HEAD_BYTES = 32,
    LO_INLINE = LO_SLOT_BYTES - LO_HEAD_BYTES,
    LO_DATA = 128 * 1024, /* bytes of a side's payload ring */
    LO_DATA_ALIGN = 64,
    LO_FRAGMENT = 16 * 1024, /* most payload of one slot */
    LO_PIECES_MAX = 16       /* segments of a described Send */
};

enum lo_kind {
    LO_READY = 1, /* active side: complete() was called; LO_F_CAN_PULL */
    LO_SEND,      /* payload of a Send, whole or a part */
    LO_SEND_AT,   /* a Send to be fetched: payload is struct lo_piece[count], size its length */
    LO_WRITE, /* payload of a Write, whole or a part, for addr and token; size: with what follows */
    LO_READ,  /* asks for size bytes at addr and token */
    LO_READ_DATA, /* payload of an answer */
    LO_FIN        /* nothing follows */
};
enum {
    LO_F_MORE = 1, /* not the last part */
    LO_F_SOLICIT = 2,
    LO_F_INVALIDATE = 4, /* token */
    LO_F_CAN_PULL = 8,   /* READY: the writer can copy from its peer */
    LO_F_MAY_COPY = 16   /* READY: the peer may copy to and from the writer */
};

struct lo_slot {
    os_atomic_u32 seq; /* number of the slot + 1; written last, released */
    uint32_t ack;      /* slots of the other side that the writer is through with */
    uint8_t kind, flags;
    uint16_t count;
    uint32_t len; /* payload: in data if it fits, else next in the payload ring */
    uint64_t addr;
    uint32_t token;
    uint32_t size;
    uint8_t data[LO_INLINE];
};
_Static_assert(sizeof(struct lo_slot) == LO_SLOT_BYTES, "two lines");

struct lo_piece {
    uint64_t addr;
    uint32_t len, token;
};

enum lo_status {
    LO_ST_CLOSED, /* nothing may be copied to or from this side directly */
    LO_ST_OPEN,
    LO_ST_FIN,   /* closed in order */
    LO_ST_ERROR, /* closed for err_status */
};

/* A long Send that the owner fetches: the other end may copy a part of it, in the other direction.
 * The owner offers and withdraws; the other end takes, which only one of them can do, and says how
 * it went. While it is taken, the part is the other end's. */
enum lo_help {
    LO_HELP_NONE,
    LO_HELP_OFFERED,
    LO_HELP_TAKEN,
    LO_HELP_DONE,
    LO_HELP_FAILED, /* nothing, or not all of it, was written */
    LO_HELP_STATES = 8
};

struct lo_side {
    /* What the owner tells of the other side's slots; looked at by who waits for that. */
    _Alignas(64) os_atomic_u32 consumed; /* slots the owner is through with */
    os_atomic_u32 status;                /* enum lo_status */
    os_atomic_u32 err_status;            /* sn_status as the other side's request gets it */
    /* The offer's number * LO_HELP_STATES + enum lo_help. What it says changes only while there is
     * none; who reads it and then takes that number has read it right. */
    os_atomic_u32 help;
    os_atomic_u32 help_slot;          /* of the Send */
    os_atomic_u32 help_off, help_len; /* of its payload */
    os_atomic_u32 help_token;         /* the owner's memory where it belongs */
    os_atomic_u64 help_addr;
    /* Changes rarely. */
    _Alignas(64) os_atomic_u32 polled; /* the owner looks at new slots without being told */
    os_atomic_u32 hurry;               /* the owner waits for `consumed` of the other side */
    /* The cell: the other end's token whose memory the owner is copying to or from right now, or 0;
     * in its sending side, in its receiving side. */
    _Alignas(64) os_atomic_u32 busy[2];
    _Alignas(128) struct lo_slot slots[LO_SLOTS];
    _Alignas(64) uint8_t data[LO_DATA];
};

struct lo_shared {
    struct lo_side side[2]; /* 0: the active end's */
};

/* ---- an adapter's board: written by its peers, read by the adapter ---- */

enum {
    LO_CONNS = 16384, /* connections an adapter has at a time; more go over the network stack */
    LO_WORDS = LO_CONNS / 64,
    LO_WORDS_PER_BIT = LO_WORDS / 64
};

struct lo_board {
    _Alignas(64) os_atomic_u32 sleeping;        /* not 0: the number of this sleep; see hub.h */
    _Alignas(64) os_atomic_u64 summary;         /* a bit for LO_WORDS_PER_BIT words of bells */
    _Alignas(64) os_atomic_u64 bells[LO_WORDS]; /* a bit per connection: look at it */
};

/* ---- set-up messages ---- */

enum lo_hello_kind { LO_REQUEST = 1, LO_ACCEPT, LO_REJECT };
enum {
    LO_H_TABLE = 1,    /* the token table comes along */
    LO_H_CAN_PULL = 2, /* ACCEPT: the writer can copy from its peer */
    LO_H_BOUND = 4,    /* REQUEST: the port was chosen by the user */
    LO_H_EXISTS = 8,   /* REJECT: this pair of addresses is connected already */
    LO_H_MAY_COPY = 16 /* ACCEPT: the peer may copy to and from the writer */
};

struct lo_addr {
    uint16_t family, port;
    uint32_t scope_id;
    uint8_t ip[16];
};

/* Handles that come along: REQUEST: connection, board, table if LO_H_TABLE; ACCEPT: board, table;
 * REJECT: none. */
struct lo_hello {
    uint32_t magic, version;
    uint32_t kind, flags;
    uint8_t adapter[16]; /* who is who: random, for the life of the adapter instance */
    uint32_t index;      /* this connection's bell on the writer's board */
    uint32_t ird, ord;
    uint32_t pd_len;
    uint64_t qp_id;
    uint64_t table_bytes;
    uint64_t mark_addr, mark_value; /* the writer's process's, to try a copy on */
    struct lo_addr from, to;
    uint8_t pd[TP_PRIVATE_DATA_MAX];
};

#endif
