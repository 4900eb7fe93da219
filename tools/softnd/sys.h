/* SPDX-License-Identifier: MIT
 * sys.h - what the program needs of the system beyond the C library; one file per system.
 * Owns:    the temporary file of a transfer, from sys_out_create to keep or drop; the stop flag.
 * Threads: one, but for the clocks, sys_stop_requested and sys_thread_*.
 * Errors:  0, or a text for the user (never NULL then, static).
 */
#ifndef TOOL_SYS_H
#define TOOL_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYS_PATH_MAX 4096

uint64_t sys_now_ns(void); /* monotonic */
/* Until then by sys_now_ns; not at all if that has passed. A signal to stop ends it early. */
void sys_sleep_until(uint64_t ns);
uint64_t sys_cpu_ns(void);       /* that this process has used, all threads */
uint64_t sys_memory_bytes(void); /* of its own that it has in memory; 0 if not known */

struct sys_thread {
    void (*run)(void *arg);
    void *arg;
    uintptr_t handle;
};
/* The structure stays where it is until the thread is joined. False: there is none. */
bool sys_thread_start(struct sys_thread *t, void (*run)(void *arg), void *arg);
void sys_thread_join(struct sys_thread *t);

/* Ctrl-C and a polite kill set a flag instead of ending the program, and remove a temporary file
 * when they come a second time. */
void sys_catch_stop(void);
bool sys_stop_requested(void);

bool sys_stdout_is_terminal(void);
bool sys_stderr_is_terminal(void);

/* Full path of the folder that this program is in. */
bool sys_program_folder(char out[SYS_PATH_MAX]);
bool sys_file_exists(const char *path);
/* path as an absolute one without . .. and links; false if it does not exist. */
bool sys_full_path(const char *path, char out[SYS_PATH_MAX]);
/* Sets an environment variable unless it is set. */
/* A shared library: NULL and a text, or what is closed with the process. */
void *sys_library_open(const char *path, char *error, size_t room);
extern const char sys_library_suffix[]; /* of file names */
void *sys_library_symbol(void *library, const char *name);
void sys_setenv_default(const char *name, const char *value);
void sys_setenv(const char *name, const char *value);
/* False if it is not set, empty or too long. */
bool sys_getenv(const char *name, char *out, size_t room);

/* Page-aligned, zeroed memory, a whole number of pages; NULL when there is none. */
void *sys_pages_alloc(size_t bytes);
void sys_pages_free(void *pages, size_t bytes);

/* ---- a file, or a stream when path is "-" ---- */

struct sys_in {
    int fd;
    bool stream;    /* standard input: size not known */
    uint64_t bytes; /* size at the time of opening, unless stream */
};
const char *sys_in_open(struct sys_in *in, const char *path);
/* Fills the buffer; *got is less than len only at the end. */
const char *sys_in_read(struct sys_in *in, void *buf, size_t len, size_t *got);
/* Whether a read would not block, waiting up to timeout_ms for that. */
bool sys_in_ready(struct sys_in *in, uint32_t timeout_ms);
/* What there is to read, at least one byte (which may block), 0 at the end. */
const char *sys_in_read_some(struct sys_in *in, void *buf, size_t len, size_t *got);
void sys_in_close(struct sys_in *in);

/* Output appears under its name only through sys_out_keep: until then it is a hidden file beside
 * it. A regular file's mode follows the umask. A path that is a device or pipe is written to as it
 * is, like standard output. */
struct sys_out {
    int fd;
    bool stream;
    char path[SYS_PATH_MAX];
    char temp[SYS_PATH_MAX];
};
const char *sys_out_create(struct sys_out *out, const char *path);
/* Reserves room, so that a disk too small is found at once; bytes 0 does nothing. */
const char *sys_out_reserve(struct sys_out *out, uint64_t bytes);
const char *sys_out_write(struct sys_out *out, const void *buf, size_t len);
/* Gives the file its name, replacing what was there. */
const char *sys_out_keep(struct sys_out *out);
/* Removes it; harmless after keep, or on a zeroed structure. */
void sys_out_drop(struct sys_out *out);

#endif
