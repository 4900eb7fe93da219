/* SPDX-License-Identifier: MIT
 * ping_rping.h - `softnd ping --rping`: the exchange of rping, a test program that comes with the
 * verbs libraries, so that either end may be one.
 * Owns:    the advertisement.
 * Threads: one.   Errors: an exit code, after one line on stderr.
 *
 * A round is: the client advertises a buffer, the server Reads it and says so; the client
 * advertises another, the server Writes there what it has read, up to and with the first zero byte,
 * and says so. Advertisements and answers are Sends of 16 bytes: address u64, token u32, size u32,
 * network order; an answer's content does not matter. There is no greeting.
 */
#ifndef TOOL_PING_RPING_H
#define TOOL_PING_RPING_H

#include <stdbool.h>
#include <stdint.h>

#define RPING_PORT_DEFAULT 7174
#define RPING_SIZE_MIN 32 /* room for the text in front and a zero */
#define RPING_SIZE_MAX 65535

struct rping_options {
    uint32_t size, count; /* count 0: until interrupted */
    uint32_t timeout_ms;
    double interval_s;
    bool verify, quiet;
};

int rping_client(const struct rping_options *o, const char *host, uint16_t port);
/* Serves one client after the other until interrupted, or count clients. */
int rping_serve(const struct rping_options *o, const char *host, uint16_t port);

#endif
