/* SPDX-License-Identifier: MIT
 * ping.h - what the two ends of `softnd ping` agree on, and the server.
 * Owns:    the greeting (private data of Connect) and the content of messages.
 * Threads: pure functions, but for ping_serve.   Errors: false for a greeting that is none.
 *
 * Greeting, 12 bytes: 0 magic "SNDP"   4 version u8   5 zero[3]   8 message size u32, network
 * order. The client connects, sends a message of that size, and waits until it comes back.
 */
#ifndef TOOL_PING_H
#define TOOL_PING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PING_GREETING_BYTES 12
#define PING_SIZE_MAX (64u << 20)
/* Polling for so long before sleeping keeps both ends awake in a row of pings without interval. */
#define PING_SPIN_NS 100000

void ping_pack_greeting(uint32_t size, uint8_t out[PING_GREETING_BYTES]);
bool ping_unpack_greeting(const uint8_t *in, size_t len, uint32_t *size);

/* Content that differs from byte to byte and from one sequence number to the next. */
void ping_fill(uint8_t *out, size_t len, uint64_t seq);
bool ping_check(const uint8_t *in, size_t len, uint64_t seq);

/* Answers clients until interrupted; an exit code. */
int ping_serve(const char *host, uint16_t port);

#endif
