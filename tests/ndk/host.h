/* SPDX-License-Identifier: MIT
 * host.h - what tests of NDK need of their system, whose own headers do not go beside the kernel's:
 * host_linux.c, host_windows.c.
 * Owns:    one child process, one connection and one run of ports at a time.
 * Threads: one.   Errors: false, said at each function.
 */
#ifndef SN_TESTS_NDK_HOST_H
#define SN_TESTS_NDK_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void host_setenv(const char *name, const char *value);

/* A folder for temporary files; its path is in buf. */
bool host_make_folder(char *buf, size_t size);
void host_remove_folder(const char *path);

/* This program again, as `program --child role port`. */
bool host_child_start(const char *role, uint16_t port);
/* The next line that it prints, as a number. */
bool host_child_says(uint32_t within_ms, unsigned *number);
/* Ends it as no clean-up could notice. */
bool host_child_kill(void);
/* In the child: it ends by itself after this, whatever becomes of the parent. */
void host_limit_life(unsigned seconds);
void host_wait_to_be_killed(void);
/* Connections of a process that was killed end; false: not with certainty on this system. */
bool host_killed_ends(void);

/* Before any thread: a network with loopback and one network whose hosts cannot be reached, nothing
 * else. False: not to be had. */
bool host_enter_namespace(void);
/* Takes every port of 127.0.0.1 from first to 65535. *why: what is in the way. */
bool host_take_ports(uint16_t first, const char **why);
void host_give_ports(void);
/* A TCP connection to a port of 127.0.0.1 from a port that others may share; its own port, or 0:
 * the system shares none that is in use. */
uint16_t host_connect_shared(uint16_t port);
void host_end_shared(void);

#endif
