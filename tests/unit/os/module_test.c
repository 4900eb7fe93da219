/* SPDX-License-Identifier: MIT
 * The OS layer inside a library that is loaded at run time. */
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support/testing.h"

struct probe {
    void *lib;
    bool (*path)(char *, uint32_t);
    void (*pin)(void);
    bool (*guard)(void);
};

static void *symbol(void *lib, const char *name) {
    void *p = dlsym(lib, name);
    if (!p) FAIL("no symbol %s", name);
    return p;
}

static struct probe load(const char *path) {
    struct probe p = { .lib = dlopen(path, RTLD_NOW | RTLD_LOCAL) };
    if (!p.lib) FAIL("%s", dlerror());
    p.path = (bool (*)(char *, uint32_t))(uintptr_t)symbol(p.lib, "probe_path");
    p.pin = (void (*)(void))(uintptr_t)symbol(p.lib, "probe_pin");
    p.guard = (bool (*)(void))(uintptr_t)symbol(p.lib, "probe_guard");
    return p;
}

static bool is_loaded(void) {
    void *again = dlopen(MODULE_PROBE, RTLD_NOW | RTLD_NOLOAD);
    if (again) dlclose(again);
    return again != NULL;
}

/* The cases below depend on what is loaded, so each runs in a child. */
static void in_child(void (*body)(void)) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (setjmp(test_escape) == 0) {
            body();
            fflush(NULL);
            _exit(0);
        }
        fflush(NULL);
        _exit(1);
    }
    CHECK(pid > 0);
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

static void check_path_of(const char *how) {
    char want[PATH_MAX], got[PATH_MAX];
    CHECK(realpath(MODULE_PROBE, want) != NULL);
    struct probe p = load(how);
    CHECK_EQ(chdir("/"), 0); /* a relative path means something else now */
    CHECK(p.path(got, sizeof got));
    CHECK_STR(got, want);
    CHECK(!p.path(got, (uint32_t)strlen(want)));
    CHECK(p.path(got, (uint32_t)strlen(want) + 1));
}

static void path_absolute(void) {
    check_path_of(MODULE_PROBE);
}

static void path_relative(void) {
    char folder[PATH_MAX], how[PATH_MAX + 2];
    snprintf(folder, sizeof folder, "%s", MODULE_PROBE);
    char *slash = strrchr(folder, '/');
    CHECK(slash != NULL);
    snprintf(how, sizeof how, "./%s", slash + 1);
    *slash = 0;
    CHECK_EQ(chdir(folder), 0);
    check_path_of(how);
}

static void unload_unpinned(void) {
    struct probe p = load(MODULE_PROBE);
    CHECK(is_loaded());
    CHECK_EQ(dlclose(p.lib), 0);
    CHECK(!is_loaded());
}

static void unload_pinned(void) {
    struct probe p = load(MODULE_PROBE);
    p.pin();
    p.pin();
    CHECK_EQ(dlclose(p.lib), 0);
    CHECK(is_loaded());
    CHECK(p.guard());
}

static void unload_guarded(void) {
    struct probe p = load(MODULE_PROBE);
    CHECK(p.guard());
    /* The handler is in this library: it must stay. */
    CHECK_EQ(dlclose(p.lib), 0);
    CHECK(is_loaded());
    CHECK(p.guard());
}

static void path_of_module_loaded_by_absolute_path_is_that(void) {
    in_child(path_absolute);
}
static void path_of_module_loaded_by_relative_path_is_absolute(void) {
    in_child(path_relative);
}
static void unload_without_pin_unloads(void) {
    in_child(unload_unpinned);
}
static void unload_after_pin_stays_loaded(void) {
    in_child(unload_pinned);
}
static void unload_after_guard_use_stays_loaded(void) {
    in_child(unload_guarded);
}

TEST_MAIN(TEST(path_of_module_loaded_by_absolute_path_is_that),
          TEST(path_of_module_loaded_by_relative_path_is_absolute),
          TEST(unload_without_pin_unloads), TEST(unload_after_pin_stays_loaded),
          TEST(unload_after_guard_use_stays_loaded))
