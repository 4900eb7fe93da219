/* SPDX-License-Identifier: MIT
 * main.c - the softnd program: one subcommand per file.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "cmd.h"
#include "sys.h"

#ifndef SOFTND_VERSION
#define SOFTND_VERSION "0"
#endif

const struct command commands[] = {
    { "info", "show providers, adapters, their addresses and limits", cmd_info },
    { "list", "list the registered providers", cmd_list },
    { "install", "register the provider for this user or machine", cmd_install },
    { "remove", "take the registration back", cmd_remove },
    { "ping", "measure round trips to another machine, or answer them", cmd_ping },
    { "cat", "send a file to another machine, or receive one", cmd_cat },
    { "perf", "measure latency, bandwidth, connections and registrations", cmd_perf },
    { "ndk-run", "run an NDK consumer in user space, and verify it", cmd_ndk_run },
    { NULL, NULL, NULL },
};

int cmd_fail(const char *name, const char *format, ...) {
    va_list ap;

    fprintf(stderr, "softnd %s: ", name);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    return EXIT_FAILED;
}

int cmd_usage(const char *name, const char *format, ...) {
    va_list ap;

    fprintf(stderr, "softnd %s: ", name);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, " (see softnd %s --help)\n", name);
    return EXIT_USAGE;
}

static const struct command *find_command(const char *name) {
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(c->name, name)) return c;
    return NULL;
}

static int print_help(FILE *to) {
    fputs("softnd - NetworkDirect without the NIC\n"
          "\n"
          "Usage: softnd COMMAND [options]\n"
          "\n",
          to);
    for (const struct command *c = commands; c->name; c++)
        fprintf(to, "  %-10s %s\n", c->name, c->summary);
    fputs("\nWith --capture FILE any command records its iWARP connections, for Wireshark.\n", to);
    fputs("\nsoftnd COMMAND --help says more. Exit code: 0 done, 1 failure, 2 wrong usage.\n", to);
    return EXIT_DONE;
}

/* A failed write to standard output (a full disk behind a redirection) is a failure too. */
static int finish(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    perror("softnd: standard output");
    return code == EXIT_DONE ? EXIT_FAILED : code;
}

/* --capture FILE, anywhere in front of a --, is of every command. Takes it out of the arguments;
 * false if there is no FILE. */
static bool take_capture(int *argc, char **argv) {
    static const char option[] = "--capture";
    const size_t n = sizeof option - 1;
    int kept = 1;

    for (int i = 1; i < *argc; i++) {
        if (!strcmp(argv[i], "--")) {
            while (i < *argc)
                argv[kept++] = argv[i++];
        } else if (!strcmp(argv[i], option)) {
            if (++i == *argc || !*argv[i]) return false;
            sys_setenv("SOFTND_CAPTURE", argv[i]);
        } else if (!strncmp(argv[i], option, n) && argv[i][n] == '=') {
            if (!argv[i][n + 1]) return false;
            sys_setenv("SOFTND_CAPTURE", argv[i] + n + 1);
        } else {
            argv[kept++] = argv[i];
        }
    }
    argv[kept] = NULL;
    *argc = kept;
    return true;
}

int main(int argc, char **argv) {
    const struct command *c;

    /* What goes wrong is said once, by the command; SOFTND_LOG=warn shows the library's view too.
     */
    sys_setenv_default("SOFTND_LOG", "error");
    if (!take_capture(&argc, argv)) {
        fputs("softnd: --capture needs a file name (see softnd --help)\n", stderr);
        return EXIT_USAGE;
    }
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) return finish(print_help(stdout));
    if (!strcmp(argv[1], "--version")) {
        puts("softnd " SOFTND_VERSION);
        return finish(EXIT_DONE);
    }
    if (!strcmp(argv[1], "help")) {
        char help[] = "--help";
        char *asked[] = { argv[1], help, NULL };
        if (argc < 3) return finish(print_help(stdout));
        c = find_command(argv[2]);
        if (c) return finish(c->run(2, asked));
        fprintf(stderr, "softnd: unknown command %s (see softnd --help)\n", argv[2]);
        return EXIT_USAGE;
    }
    c = find_command(argv[1]);
    if (c) return finish(c->run(argc - 1, argv + 1));
    fprintf(stderr, "softnd: unknown command %s (see softnd --help)\n", argv[1]);
    return EXIT_USAGE;
}
