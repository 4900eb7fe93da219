/* SPDX-License-Identifier: MIT
 * hostile.h - malformed and malicious streams as rows of tables.
 * Owns:    what a row says and what the runner (hostile_test.c) makes of it.
 *
 * A row names a stream, where in the life of a connection it strikes, the octets (a function with
 * two numbers), and the outcome: the Terminate, a close without a word, or a connection that lives
 * on; what our side is told; what became of its receives and requests. The runner checks besides
 * that no octet of memory changed that the row did not name, that the engine forgot the connection,
 * and that two bystanders on the same engine still talk.
 */
#ifndef SN_TESTS_WIRE_HOSTILE_H
#define SN_TESTS_WIRE_HOSTILE_H

#include "rig.h"

enum where {
    W_RAW,       /* instead of an MPA request */
    W_REQUESTED, /* behind a good request, before our answer */
    W_REPLY,     /* instead of a reply to our request */
    W_FIRST,     /* the first FPDU of an initiator */
    W_OPEN,      /* an open connection */
    W_CUSTOM     /* play does all of it */
};
enum ending { E_CLOSE, E_TERM, E_ALIVE };
enum after { AFTER_WAIT, AFTER_FIN, AFTER_RST };

/* The limits of time that hostile_settings() sets, so that nobody waits for long. */
enum { HOSTILE_REQUEST_MS = 1000, HOSTILE_RNR_MS = 400, HOSTILE_LINGER_MS = 1000 };
void hostile_settings(void);

struct stream;

struct stage {
    struct rig *r;
    const struct stream *def;
    uint32_t a;
    uint64_t b;
    struct raw_bytes out;
    size_t about;   /* the offending FPDU in out; SIZE_MAX: the last */
    uint32_t msn;   /* the peer's next Send, for the test of life at the end */
    uint32_t takes; /* receives that the stream uses up */
};

struct stream {
    const char *name;
    enum where where;
    void (*play)(struct stage *s);
    uint32_t a;
    uint64_t b;
    enum ending ending;
    uint8_t layer, type, code, quote; /* of the Terminate */
    /* What our side hears: W_OPEN disconnected, W_FIRST established, W_REPLY reply. */
    sn_status status;
    uint32_t recv_done;    /* receives finished */
    sn_status recv_status; /* of the last of them */
    uint32_t req_done;
    sn_status req_status; /* of the last */
    enum after after;
    const struct profile *profile; /* NULL: foreign peers of both roles */
    bool retry;                    /* W_REPLY: we come back with revision 1 */
};

#define TERM(l, t, c, q)                                                                           \
    .ending = E_TERM, .layer = (l), .type = (t), .code = (c), .quote = (q), .status = SN_E_WIRE
#define SILENT(st) .ending = E_CLOSE, .status = (st)
#define ALIVE .ending = E_ALIVE
#define ROW(n, w, p, x, y, ...)                                                                    \
    { .name = #n, .where = (w), .play = (p), .a = (x), .b = (y), __VA_ARGS__ }

extern const struct stream start_streams[], stream_streams[], custom_streams[];
extern const size_t start_stream_count, stream_stream_count, custom_stream_count;

/* Plays a row with every cut; a failure ends the case. Names are in order of the tables; NULL: no
 * such row. */
void hostile_run(struct rig *r, const struct stream *d);
const struct stream *hostile_at(size_t idx);

/* ---- for plays ---- */

/* Forgets what earlier plays touched. */
void hostile_fresh(void);
/* Octets for payloads: 70000 of them. */
const uint8_t *hostile_payload(void);
/* Posts a receive at an offset of the region; the index-th of the connection. */
struct fake_receive *hostile_receive(struct stage *s, size_t off, uint32_t len);
/* These octets of the region are what the stream has placed. */
void hostile_placed(struct stage *s, size_t off, const void *data, size_t len);
/* These may have any value: a message that was refused half way. */
void hostile_touched(struct stage *s, size_t off, size_t len);

#endif
