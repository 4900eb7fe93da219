/* SPDX-License-Identifier: MIT
 * args.h - command line options, described once: parsing and --help come from the same table.
 * Owns:    nothing; strings point into argv.
 * Threads: one.   Errors: a message for the user, in one line.
 *
 * Accepted: --name, --name=value, --name value, -x, -xvalue, -x value. `--` ends the options; a
 * lone `-` is an ordinary argument. Options and arguments may be mixed.
 */
#ifndef TOOL_ARGS_H
#define TOOL_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct args_option {
    char short_name;       /* 0: none */
    const char *long_name; /* never NULL */
    const char *value;     /* what the value is called in --help; NULL: takes none */
    const char *help;
};

struct args {
    int argc;
    char **argv;
    const struct args_option *options;
    size_t option_count;
    int at;             /* next element of argv */
    bool only_operands; /* after -- */
    const char *value;  /* of the last option found; NULL if it takes none */
    char error[160];
};

#define ARGS_END (-1)
#define ARGS_OPERAND (-2) /* value is the argument */
#define ARGS_ERROR (-3)   /* error says what is wrong */

/* argv[0] is skipped. */
void args_init(struct args *a, int argc, char **argv, const struct args_option *options,
               size_t count);

/* The index of the next option in the table, or one of the negative values above. */
int args_next(struct args *a);

/* The lines of --help, one per option. */
void args_print_help(const struct args_option *options, size_t count, FILE *to);

#endif
