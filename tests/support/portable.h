/* SPDX-License-Identifier: MIT
 * portable.h - the little that unit tests of several folders need of their system, by one name on
 * each: the environment, names of temporary files, pages with holes.
 * Owns:    nothing.   Threads: any, but test_setenv.   Errors: NULL or false.
 */
#ifndef SN_TESTS_PORTABLE_H
#define SN_TESTS_PORTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* How often to repeat what only shows a race or a leak by being repeated. Under Wine each call of
 * the system is a message to a server process: a tenth must do. */
#ifdef _WIN32
#define TEST_ROUNDS(n) ((n) / 10)
#else
#define TEST_ROUNDS(n) (n)
#endif

#ifdef _WIN32

#include <winsock2.h>
#include <windows.h>

static inline void test_setenv(const char *name, const char *value) {
    (void)_putenv_s(name, value);
}

/* A file name that no other test program uses at the same time; the text of stem is in it. */
static inline bool test_temp_name(char *buf, size_t size, const char *stem) {
    char folder[MAX_PATH];
    if (!GetTempPathA(sizeof folder, folder)) return false;
    int n = snprintf(buf, size, "%ssoftnd-%s-%u", folder, stem, (unsigned)GetCurrentProcessId());
    return n > 0 && (size_t)n < size;
}

static inline void *test_pages(size_t bytes) {
    return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}
/* A part of test_pages is not mapped any more. */
static inline bool test_pages_hole(void *at, size_t bytes) {
    return VirtualFree(at, bytes, MEM_DECOMMIT) != 0;
}
static inline bool test_pages_readonly(void *at, size_t bytes) {
    DWORD old;
    return VirtualProtect(at, bytes, PAGE_READONLY, &old) != 0;
}
/* All of test_pages, holes included. */
static inline void test_pages_free(void *at, size_t bytes) {
    (void)bytes;
    VirtualFree(at, 0, MEM_RELEASE);
}

#else

#include <sys/mman.h>
#include <unistd.h>

static inline void test_setenv(const char *name, const char *value) {
    setenv(name, value, 1);
}

static inline bool test_temp_name(char *buf, size_t size, const char *stem) {
    const char *folder = getenv("TMPDIR");
    int n = snprintf(buf, size, "%s/softnd-%s-%u", folder && *folder ? folder : "/tmp", stem,
                     (unsigned)getpid());
    return n > 0 && (size_t)n < size;
}

static inline void *test_pages(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}
static inline bool test_pages_hole(void *at, size_t bytes) {
    return munmap(at, bytes) == 0;
}
static inline bool test_pages_readonly(void *at, size_t bytes) {
    return mprotect(at, bytes, PROT_READ) == 0;
}
static inline void test_pages_free(void *at, size_t bytes) {
    munmap(at, bytes);
}

#endif

#endif
