/* SPDX-License-Identifier: MIT
 * child.h - functions of a test that run in a process of their own, and memory shared with them.
 * Owns:    on Windows, where no process forks, the program is started again and does nothing but
 *          the function: include this once, in the file of TEST_MAIN.
 * Threads: one.   Errors: a failed check. A check that fails in a child makes child_ended false.
 */
#ifndef SN_TESTS_CHILD_H
#define SN_TESTS_CHILD_H

#include "support/portable.h"
#include "support/testing.h"

typedef intptr_t test_child;
typedef void test_child_fn(void *shared);

#ifdef _WIN32

#define CHILD_VARIABLE "SOFTND_TEST_CHILD"

static struct {
    void *memory;
    HANDLE section;
    char name[64];
} child_shares[16];

/* Zeroed memory that children started with it see. */
static inline void *child_share(size_t bytes) {
    for (size_t i = 0; i < sizeof child_shares / sizeof child_shares[0]; i++) {
        if (child_shares[i].memory) continue;
        snprintf(child_shares[i].name, sizeof child_shares[i].name, "Local\\softnd-test-%lu-%zu",
                 GetCurrentProcessId(), i);
        HANDLE h = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, (DWORD)bytes,
                                      child_shares[i].name);
        CHECK(h != NULL);
        child_shares[i].section = h;
        child_shares[i].memory = MapViewOfFile(h, FILE_MAP_ALL_ACCESS, 0, 0, bytes);
        CHECK(child_shares[i].memory != NULL);
        return child_shares[i].memory;
    }
    FAIL("too many shared memories");
    return NULL;
}

static inline void child_unshare(void *memory, size_t bytes) {
    (void)bytes;
    for (size_t i = 0; i < sizeof child_shares / sizeof child_shares[0]; i++) {
        if (child_shares[i].memory != memory) continue;
        UnmapViewOfFile(memory);
        CloseHandle(child_shares[i].section);
        child_shares[i].memory = NULL;
    }
}

/* The function is named by its place in the program, which may be loaded elsewhere. */
__attribute__((constructor)) static void child_run(void) {
    char text[128], name[64];
    unsigned long long at;
    DWORD n = GetEnvironmentVariableA(CHILD_VARIABLE, text, sizeof text);
    if (n == 0 || n >= sizeof text) return;
    if (sscanf(text, "%llx %63s", &at, name) != 2) _exit(2);
    HANDLE h = OpenFileMappingA(FILE_MAP_ALL_ACCESS, FALSE, name);
    void *memory = h ? MapViewOfFile(h, FILE_MAP_ALL_ACCESS, 0, 0, 0) : NULL;
    if (!memory) _exit(3);
    test_child_fn *fn = (test_child_fn *)((uintptr_t)GetModuleHandleA(NULL) + (uintptr_t)at);
    if (setjmp(test_escape) != 0) _exit(1);
    fn(memory);
    fflush(NULL);
    _exit(0);
}

static inline test_child child_start(test_child_fn *fn, void *shared) {
    char path[MAX_PATH], command[MAX_PATH + 2], text[128] = "";
    STARTUPINFOA start = { .cb = sizeof start };
    PROCESS_INFORMATION child;
    for (size_t i = 0; i < sizeof child_shares / sizeof child_shares[0]; i++)
        if (child_shares[i].memory == shared)
            snprintf(text, sizeof text, "%llx %s",
                     (unsigned long long)((uintptr_t)fn - (uintptr_t)GetModuleHandleA(NULL)),
                     child_shares[i].name);
    CHECK(text[0] != 0);
    CHECK(GetModuleFileNameA(NULL, path, sizeof path) < sizeof path);
    snprintf(command, sizeof command, "\"%s\"", path);
    CHECK(SetEnvironmentVariableA(CHILD_VARIABLE, text));
    fflush(NULL);
    BOOL ok = CreateProcessA(path, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &child);
    CHECK(SetEnvironmentVariableA(CHILD_VARIABLE, NULL));
    CHECK(ok);
    CloseHandle(child.hThread);
    return (test_child)child.hProcess;
}

static inline void child_kill(test_child child) {
    CHECK(TerminateProcess((HANDLE)child, 9));
}

/* Waits for the end; true if the function came to its own. */
static inline bool child_ended(test_child child) {
    DWORD code = 1;
    CHECK_EQ(WaitForSingleObject((HANDLE)child, 60000), WAIT_OBJECT_0);
    CHECK(GetExitCodeProcess((HANDLE)child, &code));
    CloseHandle((HANDLE)child);
    return code == 0;
}

/* Grows if something is left open. */
static inline uint32_t child_open_handles(void) {
    DWORD n = 0;
    CHECK(GetProcessHandleCount(GetCurrentProcess(), &n));
    return n;
}

#else

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static inline void *child_share(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

static inline void child_unshare(void *memory, size_t bytes) {
    munmap(memory, bytes);
}

static inline test_child child_start(test_child_fn *fn, void *shared) {
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid != 0) return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive a test that failed */
    if (setjmp(test_escape) != 0) _exit(1);
    fn(shared);
    _exit(0);
}

static inline void child_kill(test_child child) {
    CHECK_EQ(kill((pid_t)child, SIGKILL), 0);
}

static inline bool child_ended(test_child child) {
    int status = 0;
    CHECK_EQ(waitpid((pid_t)child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static inline uint32_t child_open_handles(void) {
    int fd = dup(0);
    close(fd);
    return (uint32_t)fd;
}

#endif

#endif
