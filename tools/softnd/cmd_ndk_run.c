/* SPDX-License-Identifier: MIT
 * cmd_ndk_run.c - `softnd ndk-run`: runs an NDK consumer in the kernel environment of libsoftndk,
 * which is loaded for this command only.
 */
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "sys.h"
#include "ndk/softndk.h"
#undef min
#undef max

enum {
    OPT_VERIFIER,
    OPT_COMPLETIONS,
    OPT_TOKENS,
    OPT_PAGES,
    OPT_FAIL_POSTS,
    OPT_DEADLOCK,
    OPT_FREED,
    OPT_REGISTRY,
    OPT_FILES,
    OPT_WAIT,
    OPT_HELP
};

static const struct args_option options[] = {
    [OPT_VERIFIER] = { 'v', "verifier", "MODE", "off, report or abort (default report)" },
    [OPT_COMPLETIONS] = { 'c', "completions", "MODE",
                          "inline, pending, early or random (default inline)" },
    [OPT_TOKENS] = { 0, "tokens", "MODE",
                     "fresh for each registration, or constant (default fresh)" },
    [OPT_PAGES] = { 0, "logical-pages", "MODE", "contiguous or scattered (default contiguous)" },
    [OPT_FAIL_POSTS] = { 0, "fail-posts", "N", "every N-th post fails at once" },
    [OPT_DEADLOCK] = { 0, "deadlock-after", "MS",
                       "a wait that nobody can end is reported (default 10000; 0: never)" },
    [OPT_FREED] = { 0, "freed-pool", "MODE", "poison, or keep for a while (default poison)" },
    [OPT_REGISTRY] = { 0, "registry", "FILE.reg",
                       "the registry: read at start, written at the end" },
    [OPT_FILES] = { 0, "files", "DIRECTORY", "where the files of ZwCreateFile are" },
    [OPT_WAIT] = { 'w', "wait", "SECONDS",
                   "between DriverEntry and DriverUnload (default: until the consumer or Ctrl-C)" },
    [OPT_HELP] = { 'h', "help", NULL, "this text" },
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

typedef int set_fn(const char *name, const char *value);
typedef int run_fn(const struct softndk_run *run);

static int print_help(void) {
    puts("Usage: softnd ndk-run [options] [--] CONSUMER.so [arguments]\n"
         "\n"
         "Loads a kernel-mode NDK consumer that was built as a shared object, calls its\n"
         "DriverEntry, waits, calls its DriverUnload, and reports each rule of the interface\n"
         "that it broke and whatever it left open. See docs/ndk.md.\n");
    args_print_help(options, OPTION_COUNT, stdout);
    puts("\nExit code: 0 good, 1 DriverEntry failed or a rule was broken, 2 wrong usage.");
    return EXIT_DONE;
}

/* What the options say, until the library is there. */
struct settings {
    const char *value[OPTION_COUNT];
    char *path;
    int argc;
    char **argv;
};

/* Beside this program (a build folder), in its ../lib, or where the system looks. */
static void *load_library(char *error, size_t room) {
    static const char *const places[] = { "/", "/../lib/" };
    char file[SYS_PATH_MAX + 32];
    if (sys_getenv("SOFTNDK_LIBRARY", file, SYS_PATH_MAX))
        return sys_library_open(file, error, room);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!sys_program_folder(file)) break;
        strcat(strcat(strcat(file, places[i]), "libsoftndk"), sys_library_suffix);
        if (sys_file_exists(file)) return sys_library_open(file, error, room);
    }
    strcat(strcpy(file, "libsoftndk"), sys_library_suffix);
    return sys_library_open(file, error, room);
}

static int load_and_run(const struct settings *set) {
    char error[512], mode[32];
    void *lib = load_library(error, sizeof error);
    if (!lib) return cmd_fail("ndk-run", "%s", error);
    set_fn *set_option = (set_fn *)(uintptr_t)sys_library_symbol(lib, "softndk_set");
    run_fn *run = (run_fn *)(uintptr_t)sys_library_symbol(lib, "softndk_run");
    if (!set_option || !run) return cmd_fail("ndk-run", "libsoftndk is of another version");
    if (!sys_getenv("SOFTNDK_VERIFIER", mode, sizeof mode)) set_option("verifier", "report");
    for (size_t i = 0; i < OPT_WAIT; i++)
        if (set->value[i] && set_option(options[i].long_name, set->value[i]) != 0)
            return cmd_usage("ndk-run", "--%s: \"%s\" is not a value", options[i].long_name,
                             set->value[i]);
    struct softndk_run r = { .path = set->path,
                             .argc = set->argc,
                             .argv = set->argv,
                             .wait_seconds =
                                 set->value[OPT_WAIT] ? atoi(set->value[OPT_WAIT]) : -1 };
    int code = run(&r);
    return code == 0 ? EXIT_DONE : EXIT_FAILED;
}

int cmd_ndk_run(int argc, char **argv) {
    struct settings set;
    struct args a;
    int found;

    memset(&set, 0, sizeof set);
    args_init(&a, argc, argv, options, OPTION_COUNT);
    while ((found = args_next(&a)) != ARGS_END) {
        if (found == ARGS_ERROR) return cmd_usage("ndk-run", "%s", a.error);
        if (found == OPT_HELP) return print_help();
        if (found != ARGS_OPERAND) {
            set.value[found] = a.value;
            continue;
        }
        set.path = argv[a.at - 1]; /* the rest is the consumer's */
        set.argc = argc - a.at;
        set.argv = argv + a.at;
        break;
    }
    if (!set.path) return cmd_usage("ndk-run", "no consumer is given");
    char slashed[4096]; /* a name without a directory is a file here, not a library to look for */
    if (!strpbrk(set.path, "/\\")) {
        if (strlen(set.path) > sizeof slashed - 3)
            return cmd_usage("ndk-run", "the name is too long");
        memcpy(slashed, "./", 3);
        memcpy(slashed + 2, set.path, strlen(set.path) + 1);
        set.path = slashed;
    }
    return load_and_run(&set);
}
