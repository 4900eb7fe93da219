/* SPDX-License-Identifier: MIT
 * cat_link.h - one end of a `softnd cat` connection: control messages and their buffers.
 * Owns:    the connection, the memory for control messages, and the ring for the data.
 * Threads: one.
 * Errors:  false; link->error then says what happened, in words for the user. The first error
 *          stays.
 */
#ifndef TOOL_CAT_LINK_H
#define TOOL_CAT_LINK_H

#include "cat_proto.h"
#include "nd_client.h"
#include "progress.h"
#include "sha256.h"

/* How long the other end may take for the first steps; afterwards it takes what it takes. */
#define CAT_HANDSHAKE_MS 30000

enum cat_event {
    CAT_EVENT_MESSAGE, /* message, receive_idx */
    CAT_EVENT_SENT,    /* the Send of chunk `value` is complete */
    CAT_EVENT_READ,    /* the Read of chunk `value` is complete */
    CAT_EVENT_NOTHING  /* time is up */
};

struct cat_link {
    struct ndc_conn conn;
    struct ndc_region control; /* `sends` messages to send, then `receives` to receive */
    struct ndc_region data;
    uint32_t sends, receives, slots;
    uint32_t chunk_bytes;
    uint32_t sends_posted, sends_done; /* counted freely; in order */
    bool receive_payload;              /* each receive has chunk_bytes of data behind it */
    ND2_RESULT *stash;                 /* results taken while waiting for room */
    uint32_t stash_count, stash_at, stash_room;
    bool broken; /* nothing more can be sent */
    char peer[80], transport[16], error[200];

    /* the event last returned */
    struct cat_message message;
    uint32_t receive_idx;
    uint64_t value;

    /* the transfer so far */
    struct sha256 sha;
    uint64_t bytes;
    uint64_t start_ns;
    struct progress progress;
};

/* Makes the connection's objects: slots is known, the data ring comes later. connector as in
 * ndc_conn_create. On failure everything is closed, and the result says why. */
HRESULT cat_link_create(struct cat_link *l, struct ndc_adapter *ad, uint32_t slots,
                        IND2Connector *connector);
/* After the connection is made: who and how. */
void cat_link_connected(struct cat_link *l);
/* count slots of chunk bytes each; flags ND_MR_FLAG_*. */
bool cat_link_make_ring(struct cat_link *l, uint32_t count, uint32_t chunk_bytes, ULONG flags);
bool cat_link_post_receive(struct cat_link *l, uint32_t idx);
/* payload: an SGE sent behind the message, or NULL. A CHUNK reports CAT_EVENT_SENT later. */
bool cat_link_send(struct cat_link *l, const struct cat_message *m, const ND2_SGE *payload);
/* RDMA into or out of slot `slot` of the ring for chunk `index`. A Write is silent: the CHUNK that
 * follows it stands for both. A Read reports CAT_EVENT_READ. */
bool cat_link_write(struct cat_link *l, uint32_t slot, uint32_t bytes, uint64_t address,
                    uint32_t token);
bool cat_link_read(struct cat_link *l, uint32_t slot, uint32_t bytes, uint64_t address,
                   uint32_t token, uint64_t index);
/* The next event. Messages that mean failure (ABORT) and anything out of order in the connection
 * are errors, so that callers see only what they can use. */
bool cat_link_next(struct cat_link *l, enum cat_event *event, uint32_t timeout_ms);

/* Sets the error; returns false for convenience. */
bool cat_link_fail(struct cat_link *l, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* Tells the other end why it ends here, as far as the connection still allows. */
void cat_link_abort(struct cat_link *l);
void cat_link_close(struct cat_link *l);

/* "N bytes in S s, R GB/s, transport T, sha256 ..." on stderr, after name and verb. */
void cat_link_summary(const struct cat_link *l, const char *verb, const char *digest);

/* The two ends; both print their own messages and return an exit code. */
struct cat_settings {
    const char *file;
    const char *host; /* recv: "" listens on all addresses */
    uint16_t port;
    enum cat_mode mode;
    uint32_t slots, chunk_bytes;
};
int cat_send(const struct cat_settings *set);
int cat_recv(const struct cat_settings *set);

#endif
