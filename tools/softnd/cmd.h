/* SPDX-License-Identifier: MIT
 * cmd.h - what main and the subcommands share.
 * Owns:    exit codes; the list of subcommands.
 * Threads: one.   Errors: an exit code, after one line on stderr.
 */
#ifndef TOOL_CMD_H
#define TOOL_CMD_H

#include "args.h"

enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
    const char *name;
    const char *summary; /* one line */
    int (*run)(int argc, char **argv);
};

/* Ends with a NULL name. A new subcommand is a cmd_<name>.c and a line in main.c. */
extern const struct command commands[];

int cmd_info(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_install(int argc, char **argv);
int cmd_remove(int argc, char **argv);
int cmd_ping(int argc, char **argv);
int cmd_cat(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_ndk_run(int argc, char **argv);

/* "softnd <name>: ..." and a newline on stderr; returns EXIT_FAILED. */
int cmd_fail(const char *name, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* The same with a hint at --help; returns EXIT_USAGE. */
int cmd_usage(const char *name, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 2, 3)))
#endif
    ;

#endif
