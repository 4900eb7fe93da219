/* SPDX-License-Identifier: MIT
 * guest.h - the verbs peer in the virtual machine (siw/verbs_peer.c) as a test program calls it.
 * Owns:    one control connection; SIW_CONTROL and SIW_PORTS, set by siw/run-vm.sh, say where.
 * Threads: one.   Errors: the test case ends, with the words of the peer.
 */
#ifndef INTEROP_GUEST_H
#define INTEROP_GUEST_H

#include <stdint.h>

/* A fresh process in the machine. Skips the case where there is no machine. */
void peer_call(void);
void peer_hang_up(void);
/* The host port that leads to this port of the machine. */
uint16_t host_port(unsigned guest_port);

/* Sends a command; read_answer gives the line that comes back, answered what follows "ok " in it.
 */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *read_answer(void);
const char *answered(const char *file, int line);
const char *last_answer(void); /* the whole line */
#define ASK(...) (tell(__VA_ARGS__), answered(__FILE__, __LINE__))

#endif
