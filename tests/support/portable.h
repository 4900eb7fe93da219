/* SPDX-License-Identifier: MIT
 * portable.h - the little that unit tests of several folders need of their system, by one name on
 * each: the environment, names of temporary files, pages with holes.
 * Owns:    nothing.   Threads: any, but test_setenv.   Errors: NULL or false.
 */
#ifndef SN_TESTS_PORTABLE_H
#define SN_TESTS_PORTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* How often to repeat what only shows a race or a leak by being repeated. Under Wine each call of
 * the system is a message to a server process: a tenth must do. */
#ifdef _WIN32
#define TEST_ROUNDS(n) ((n) / 10)
#define TEST_SLOW true
#else
#define TEST_ROUNDS(n) (n)
#define TEST_SLOW false
#endif

#ifdef _WIN32

#include <winsock2.h>
#include <windows.h>

static inline void test_setenv(const char *name, const char *value) {
    (void)_putenv_s(name, value);
}
static inline void test_unsetenv(const char *name) {
    (void)_putenv_s(name, "");
}

static inline bool test_is_wine(void) {
    return GetProcAddress(GetModuleHandleA("ntdll.dll"), "wine_get_version") != NULL;
}

/* Processor time of this process, in microseconds. */
static inline long long test_cpu_us(void) {
    FILETIME t[4];
    if (!GetProcessTimes(GetCurrentProcess(), &t[0], &t[1], &t[2], &t[3])) return 0;
    return (((long long)t[2].dwHighDateTime << 32 | t[2].dwLowDateTime) +
            ((long long)t[3].dwHighDateTime << 32 | t[3].dwLowDateTime)) /
           10;
}

/* At least this many sockets at a time; false if the system does not allow it. */
static inline bool test_allow_handles(unsigned count) {
    (void)count;
    return true;
}
/* From here on, or not any more: not one socket can be had. False: the system has no such limit. */
static inline bool test_forbid_handles(bool on) {
    (void)on;
    return false;
}
/* TCP segments of a socket that is not connected yet; false: the system does not let us. */
static inline bool test_limit_segments(intptr_t sock, int octets) {
    (void)sock;
    (void)octets;
    return false;
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

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static inline void test_setenv(const char *name, const char *value) {
    setenv(name, value, 1);
}
static inline void test_unsetenv(const char *name) {
    unsetenv(name);
}

static inline bool test_is_wine(void) {
    return false;
}

static inline long long test_cpu_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static inline bool test_allow_handles(unsigned count) {
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) != 0) return false;
    lim.rlim_cur = lim.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur >= count;
}
static inline bool test_forbid_handles(bool on) {
    static struct rlimit before;
    struct rlimit lim;
    if (!on) return setrlimit(RLIMIT_NOFILE, &before) == 0;
    int next = dup(0); /* the lowest number that is free */
    if (next < 0 || getrlimit(RLIMIT_NOFILE, &before) != 0) return false;
    close(next);
    lim = before;
    lim.rlim_cur = (rlim_t)next;
    return setrlimit(RLIMIT_NOFILE, &lim) == 0;
}
static inline bool test_limit_segments(intptr_t sock, int octets) {
    return setsockopt((int)sock, IPPROTO_TCP, TCP_MAXSEG, &octets, sizeof octets) == 0;
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
