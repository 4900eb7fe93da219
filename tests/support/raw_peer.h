/* SPDX-License-Identifier: MIT
 * raw_peer.h - the other end of an iWARP connection, octet by octet, for tests.
 * Owns:    a blocking view of one non-blocking TCP socket, and builders that write start-up frames,
 *          FPDUs and messages without the codecs under test, so that both can be wrong only apart.
 *          Only the CRC and the markers of what arrives are checked with the library's codec.
 * Threads: one per peer.
 * Errors:  every wait ends after RAW_WAIT_MS; results say what happened, nothing fails a test.
 */
#ifndef SN_TESTS_RAW_PEER_H
#define SN_TESTS_RAW_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "iwarp/mpa.h"
#include "os/io/sock.h"

enum { RAW_WAIT_MS = 5000, RAW_FPDU_MAX = 66064 };

/* ---- octets to send ---- */

/* A growing run of octets; all zero is empty. Running out of memory aborts the program. */
struct raw_bytes {
    uint8_t *data;
    size_t len, cap;
    size_t fpdu_at; /* where the FPDU begun last starts */
};
void raw_free(struct raw_bytes *b);
void raw_put(struct raw_bytes *b, const void *data, size_t len);
void raw_fill(struct raw_bytes *b, uint8_t octet, size_t len);
/* The low `octets` octets of v, most significant first. */
void raw_be(struct raw_bytes *b, uint64_t v, unsigned octets);

#define RAW_M 0x80 /* flags of a start-up frame */
#define RAW_C 0x40
#define RAW_R 0x20
#define RAW_S 0x10
#define RAW_A 0x8000 /* first enhanced word */
#define RAW_B 0x4000
#define RAW_RTR_WRITE 0x8000 /* second enhanced word */
#define RAW_RTR_READ 0x4000

/* The 20 octets; private data is the caller's to add. */
void raw_start(struct raw_bytes *b, bool reply, uint8_t flags, uint8_t rev, uint16_t pd_len);
/* A whole enhanced frame of revision 2 with C and S. */
void raw_start2(struct raw_bytes *b, bool reply, uint8_t more_flags, uint16_t word1, uint16_t word2,
                const void *pd, uint16_t pd_len);

enum raw_crc { RAW_CRC_GOOD, RAW_CRC_ZERO, RAW_CRC_BAD };

/* Begins an FPDU with this ULPDU_Length, whatever follows. */
void raw_fpdu_begin(struct raw_bytes *b, uint16_t ulpdu_len);
/* Ends it: PAD (with these octets) and CRC over all since its begin. */
void raw_fpdu_end(struct raw_bytes *b, uint8_t pad, enum raw_crc crc);
/* A whole FPDU. */
void raw_fpdu(struct raw_bytes *b, const void *ulpdu, size_t len, enum raw_crc crc);

/* DDP headers: both control octets as given. */
void raw_tagged(struct raw_bytes *b, uint8_t ddp, uint8_t rdmap, uint32_t stag, uint64_t to);
void raw_untagged(struct raw_bytes *b, uint8_t ddp, uint8_t rdmap, uint32_t word, uint32_t qn,
                  uint32_t msn, uint32_t mo);

/* Whole messages or segments of one, with good CRC. */
void raw_send(struct raw_bytes *b, uint8_t opcode, bool last, uint32_t inv_stag, uint32_t msn,
              uint32_t mo, const void *payload, size_t len);
void raw_write(struct raw_bytes *b, bool last, uint32_t stag, uint64_t to, const void *payload,
               size_t len);
void raw_response(struct raw_bytes *b, bool last, uint32_t stag, uint64_t to, const void *payload,
                  size_t len);
void raw_read_request(struct raw_bytes *b, uint32_t msn, uint32_t sink_stag, uint64_t sink_to,
                      uint32_t size, uint32_t src_stag, uint64_t src_to);
/* A Terminate without headers. */
void raw_terminate(struct raw_bytes *b, uint8_t layer, uint8_t type, uint8_t code);
/* The Terminate that is due for the FPDU at `about`: quote 0 nothing, 1 its DDP header, 2 also the
 * Read Request behind it. */
void raw_terminate_about(struct raw_bytes *b, uint8_t layer, uint8_t type, uint8_t code,
                         unsigned quote, const uint8_t *about);

/* ---- the peer ---- */

enum raw_result { RAW_OK, RAW_EOF, RAW_RESET, RAW_TIMEOUT, RAW_BAD };
const char *raw_result_text(enum raw_result r);

struct raw_peer {
    os_sock s;
    size_t chunk;               /* octets per write; 0: all at once */
    bool crc;                   /* check the CRC of what arrives */
    bool marked;                /* what arrives has markers: each is checked */
    struct mpa_markers markers; /* position in what arrives */
    uint8_t *in;                /* read and not looked at */
    size_t in_len;
    enum raw_result in_end; /* what ended the reading, once it did */
    uint32_t marker_count;  /* markers seen */
};

/* A listening socket on a free loopback port. */
bool raw_listen(os_sock *s, struct os_addr *addr);
/* The next connection to it. */
enum raw_result raw_accept(os_sock listener, struct raw_peer *p);
enum raw_result raw_connect(struct raw_peer *p, const struct os_addr *to);
/* With a socket made by the caller, which is taken. */
enum raw_result raw_connect_with(struct raw_peer *p, os_sock s, const struct os_addr *to);
/* Closes without a reset, unless unread octets make one. Zeroed memory is fine. */
void raw_close(struct raw_peer *p);
/* Ends with a RST. */
void raw_reset(struct raw_peer *p);
void raw_fin(struct raw_peer *p);

/* Sends all of it in pieces of `chunk`. RAW_RESET: the other side is gone. RAW_TIMEOUT: it does not
 * read; *sent says how much went (may be NULL). */
enum raw_result raw_transmit(struct raw_peer *p, const void *data, size_t len, size_t *sent);
/* Exactly len octets. RAW_EOF also in the middle of them. */
enum raw_result raw_read(struct raw_peer *p, void *buf, size_t len);
/* A start-up frame, its octets in buf (532), its size in *len. */
enum raw_result raw_read_start(struct raw_peer *p, uint8_t *buf, size_t *len);
/* An FPDU from ULPDU_Length to the CRC without markers, in buf (RAW_FPDU_MAX). RAW_BAD: CRC, PAD or
 * a marker is wrong. */
enum raw_result raw_read_fpdu(struct raw_peer *p, uint8_t *buf, size_t *len);
/* Waits for FIN or RST; anything that comes before it is RAW_BAD. */
enum raw_result raw_read_end(struct raw_peer *p);

#endif
