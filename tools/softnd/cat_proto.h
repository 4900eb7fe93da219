/* SPDX-License-Identifier: MIT
 * cat_proto.h - what the two ends of `softnd cat` say to each other.
 * Owns:    the layout of the greeting (private data of Connect) and of the control message.
 * Threads: pure functions.   Errors: false for bytes that are not such a message.
 *
 * The sender connects. Then, each line a Send of one control message:
 *
 *   sender                              receiver
 *   OFFER size, chunk          ->
 *                              <-       GO chunk, write mode: address and token of its ring
 *   CHUNK index, bytes         ->       write: the data was written to slot index % slots before
 *                                       read:  address and token say where the data can be read
 *                                       send:  the data follows in the same message
 *                              <-       CREDIT index: the sender may reuse what chunk index used
 *   DONE bytes, SHA-256        ->
 *                              <-       RESULT 0: verified and stored; 1: why not
 *   (disconnects)
 *
 * At most `slots` chunks are without credit at any time. Each side keeps CAT_SPARE receives more
 * than the other can use. ABORT, with a reason, may come from either side at any time.
 *
 * Message, 128 bytes, integers in network byte order:
 *   0 magic "SNDC"   4 type u8   5 version u8   6 zero u16   8 bytes u32   12 token u32
 *   16 value u64     24 address u64             32 data[96]: digest, or text, zero-padded
 * Greeting, 8 bytes: 0 magic "SNDC"   4 version u8   5 mode u8   6 slots u16
 */
#ifndef TOOL_CAT_PROTO_H
#define TOOL_CAT_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAT_VERSION 1
#define CAT_MESSAGE_BYTES 128
#define CAT_GREETING_BYTES 8
#define CAT_DATA_BYTES 96
#define CAT_SLOTS_MAX 256
#define CAT_SPARE 4
#define CAT_SIZE_UNKNOWN UINT64_MAX

enum cat_mode { CAT_WRITE = 1, CAT_READ = 2, CAT_SEND = 3 };

enum cat_type {
    CAT_OFFER = 1, /* value: file size or CAT_SIZE_UNKNOWN; bytes: largest chunk */
    CAT_GO,        /* bytes: largest chunk that it shall use; write mode: address, token */
    CAT_CHUNK,     /* value: index; bytes; address, token */
    CAT_CREDIT,    /* value: index */
    CAT_DONE,      /* value: total bytes; data: SHA-256 */
    CAT_RESULT,    /* value: 0 success; data: text */
    CAT_ABORT      /* data: text */
};

struct cat_message {
    enum cat_type type;
    uint32_t bytes;
    uint32_t token;
    uint64_t value;
    uint64_t address;
    uint8_t data[CAT_DATA_BYTES];
};

void cat_pack(const struct cat_message *m, uint8_t out[CAT_MESSAGE_BYTES]);
/* False: too short, no magic, another version, or an unknown type; *m is then untouched. */
bool cat_unpack(const uint8_t *in, size_t len, struct cat_message *m);

struct cat_greeting {
    enum cat_mode mode;
    uint16_t slots; /* 1 to CAT_SLOTS_MAX */
};
void cat_pack_greeting(const struct cat_greeting *g, uint8_t out[CAT_GREETING_BYTES]);
bool cat_unpack_greeting(const uint8_t *in, size_t len, struct cat_greeting *g);

const char *cat_mode_name(enum cat_mode mode);
bool cat_parse_mode(const char *text, enum cat_mode *mode);

#endif
