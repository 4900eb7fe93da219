/* SPDX-License-Identifier: MIT
 * testing.h - the header-only frame every C test program uses.
 *
 * A case is a function named <what>_<condition>_<outcome>; the program lists its cases in
 * TEST_MAIN. Run without arguments for all, `--list` for the names, or name some cases.
 * Exit 0 all passed, 1 something failed, 77 everything that ran was skipped.
 */
#ifndef SN_TESTS_TESTING_H
#define SN_TESTS_TESTING_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct test_case {
    const char *name;
    void (*run)(void);
};

/* A program of several files that use FAIL defines TEST_MANY_FILES before this header, and
 * test_escape in one of them. */
#ifdef TEST_MANY_FILES
extern jmp_buf test_escape;
#else
static jmp_buf test_escape;
#endif

#define TEST(fn) { #fn, fn }

/* Ends the case as failed, with a message. Only from the thread that runs the case. */
#define FAIL(...)                                                                                  \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                            \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        longjmp(test_escape, 1);                                                                   \
    } while (0)

/* Ends the case as skipped; says in words what the machine lacks. */
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        printf("  skipped: ");                                                                     \
        printf(__VA_ARGS__);                                                                       \
        putchar('\n');                                                                             \
        longjmp(test_escape, 2);                                                                   \
    } while (0)

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) FAIL("expected %s", #cond);                                                   \
    } while (0)

/* Integers of any width and signedness, compared and printed as 64 bits. */
#define CHECK_EQ(actual, expected)                                                                 \
    do {                                                                                           \
        long long check_a = (long long)(actual), check_e = (long long)(expected);                  \
        if (check_a != check_e)                                                                    \
            FAIL("%s is %lld (0x%llx), expected %s = %lld (0x%llx)", #actual, check_a,             \
                 (unsigned long long)check_a, #expected, check_e, (unsigned long long)check_e);    \
    } while (0)

#define CHECK_PTR(actual, expected)                                                                \
    do {                                                                                           \
        const void *check_a = (actual), *check_e = (expected);                                     \
        if (check_a != check_e)                                                                    \
            FAIL("%s is %p, expected %s = %p", #actual, check_a, #expected, check_e);              \
    } while (0)

#define CHECK_STR(actual, expected)                                                                \
    do {                                                                                           \
        const char *check_a = (actual), *check_e = (expected);                                     \
        if (!check_a || strcmp(check_a, check_e) != 0)                                             \
            FAIL("%s is \"%s\", expected \"%s\"", #actual, check_a ? check_a : "(null)", check_e); \
    } while (0)

#define CHECK_BYTES(actual, expected, len)                                                         \
    do {                                                                                           \
        const uint8_t *check_a = (const uint8_t *)(actual);                                        \
        const uint8_t *check_e = (const uint8_t *)(expected);                                      \
        size_t check_n = (size_t)(len);                                                            \
        for (size_t check_i = 0; check_i < check_n; check_i++)                                     \
            if (check_a[check_i] != check_e[check_i])                                              \
                FAIL("%s differs from %s at byte %zu of %zu: 0x%02x, expected 0x%02x", #actual,    \
                     #expected, check_i, check_n, check_a[check_i], check_e[check_i]);             \
    } while (0)

static inline int test_main(int argc, char **argv, const struct test_case *cases, size_t count) {
    volatile int failed = 0, passed = 0, skipped = 0; /* they outlive longjmp */
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++)
            puts(cases[i].name);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        bool wanted = argc < 2;
        for (int a = 1; a < argc; a++)
            if (strcmp(argv[a], cases[i].name) == 0) wanted = true;
        if (!wanted) continue;
        printf("%s\n", cases[i].name);
        const time_t start = time(NULL);
        volatile int outcome = setjmp(test_escape);
        if (outcome == 0) cases[i].run();
        if (outcome == 0) passed++;
        if (outcome == 1) {
            failed++;
            printf("  FAILED: %s\n", cases[i].name);
        }
        if (outcome == 2) skipped++;
        if (time(NULL) - start > 1) printf("  took %d s\n", (int)(time(NULL) - start));
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    if (failed) return 1;
    return passed == 0 ? 77 : 0;
}

#define TEST_MAIN(...)                                                                             \
    int main(int argc, char **argv) {                                                              \
        static const struct test_case cases[] = { __VA_ARGS__ };                                   \
        return test_main(argc, argv, cases, sizeof cases / sizeof cases[0]);                       \
    }

#endif
