/* SPDX-License-Identifier: MIT
 * host.h - the little that a conformance program needs of its system and that no public header of
 * the provider gives: threads, a clock, pages, addresses as text, and processes it can kill.
 * Owns:    nothing; each system has its own host_<system>.c.
 * Threads: every function from any thread.
 * Errors:  NULL or false, said at each function; programs treat them as failures of the machine.
 */
#ifndef SN_TESTS_CONFORM_HOST_H
#define SN_TESTS_CONFORM_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nddef.h"

/* How often to repeat what shows a race or a leak only by being repeated, and how long a stream is.
 * On Windows a tenth: the suite runs under Wine there, where each call of the system is a message
 * to one server process (docs/windows.md). CONFORM_ROUNDS_FULL at compile time keeps all of it. */
#if defined(_WIN32) && !defined(CONFORM_ROUNDS_FULL)
#define HOST_ROUNDS(n) (((n) + 9) / 10)
#else
#define HOST_ROUNDS(n) (n)
#endif

/* Milliseconds of a clock that never goes back. */
uint64_t host_now_ms(void);

/* A thread that runs fn(arg); join waits for its end and frees it. NULL: none to be had. */
struct host_thread;
struct host_thread *host_thread_start(void (*fn)(void *arg), void *arg);
void host_thread_join(struct host_thread *thread);

size_t host_page_size(void);
/* Zeroed pages, readable and writable; NULL if there are none. bytes is rounded up to pages. */
void *host_pages_alloc(size_t bytes);
/* Afterwards an access faults. */
void host_pages_free(void *pages, size_t bytes);
/* Afterwards the pages may only be read. */
bool host_pages_readonly(void *pages, size_t bytes);
/* Pages backed by a file that is gone when they are unmapped (host_pages_free). */
void *host_file_view(size_t bytes);

/* Sets *len and the address with port 0; text is a numeric address. */
bool host_parse_address(const char *text, struct sockaddr_storage *addr, ULONG *len);

/* Sets a variable of the environment of this process and its children. */
void host_setenv(const char *name, const char *value);

/* How many descriptors or handles the process has open; 0 if the system does not say. */
size_t host_handle_count(void);

/* Things that a system may be without, though the provider is not to blame: the text to skip with,
 * or NULL. */
enum host_thing {
    HOST_CANCEL_IO,       /* CancelIoEx ends requests of an overlapped file */
    HOST_SHARED_PORT,     /* a connector may be bound to the port of a listener */
    HOST_KILLED_ENDS,     /* the connections of a process end with it, however it ends */
    HOST_CALLBACK_STATUS, /* BindIoCompletionCallback's routine gets the NTSTATUS */
    HOST_ADDRESS_FREED    /* the address of a closed socket is free at once */
};
const char *host_lacks(enum host_thing thing);

/* Allows at least `count` open descriptors or handles; false if the system does not. */
bool host_allow_handles(size_t count);

/* This program again (on Linux: or the one that CONFORM_CHILD names, such as its sister on another
 * system), with these arguments (NULL-terminated, without the program's name). Its
 * output goes where this program's goes. NULL if it cannot be started. */
struct host_process;
struct host_process *host_process_start(const char *const *args);
/* Ends it as no clean-up could notice. */
void host_process_kill(struct host_process *process);
/* Waits for its end, at most until the deadline; true with the exit code (-1: it was killed). */
bool host_process_wait(struct host_process *process, uint64_t deadline_ms, int *exit_code);
/* After a successful wait. */
void host_process_free(struct host_process *process);

#endif
