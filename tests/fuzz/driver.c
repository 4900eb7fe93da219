/* SPDX-License-Identifier: MIT
 * driver.c - main of the fuzz programs: the corpus as it is, then mutations of it.
 *
 *   fuzz_NAME [--runs N] [--seed S] FILE|DIRECTORY...
 *
 * The same seed gives the same inputs everywhere. When a run dies, the seed, the number of the run
 * and the name of a file with the input are printed; give that file alone to run it again.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef O_BINARY
#define O_BINARY 0
#endif

#define INPUT_MAX 8192u /* longer corpus files are cut; enough for several FPDUs */
#define CORPUS_MAX 1024u

struct input {
    size_t len;
    uint8_t *data;
    char *name;
};

static struct input corpus[CORPUS_MAX];
static size_t corpus_count;

/* What runs now, for the report of a death. */
static struct {
    const char *program;
    const uint8_t *data;
    size_t len;
    unsigned long long seed, run;
    const char *name; /* corpus file; NULL: a mutation */
} now;

/* ---- Death ---- */

/* Sanitizers abort, so that one handler serves them and FUZZ_CHECK. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) {
    return "abort_on_error=1";
}
const char *__ubsan_default_options(void) {
    return "abort_on_error=1:print_stacktrace=1";
}
const char *__tsan_default_options(void) {
    return "abort_on_error=1";
}

static void write_all(int fd, const void *data, size_t len) {
    const char *p = (const char *)data;
    while (len != 0) {
        ssize_t n = write(fd, p, len);
        if (n <= 0) return;
        p += n;
        len -= (size_t)n;
    }
}

static void report_death(int sig) {
    char path[512], text[1200];
    snprintf(path, sizeof path, "%s.failed", now.program);
    int n = now.name ? snprintf(text, sizeof text, "%s: died on %s\n", now.program, now.name)
                     : snprintf(text, sizeof text,
                                "%s: died in run %llu of --seed 0x%llx; input in %s\n", now.program,
                                now.run, now.seed, path);
    if (n > 0) write_all(2, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    if (!now.name) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_BINARY, 0644);
        if (fd >= 0) {
            write_all(fd, now.data, now.len);
            close(fd);
        }
    }
    signal(sig, SIG_DFL);
    raise(sig);
}

static void catch_death(void) {
    signal(SIGABRT, report_death);
#if defined(__has_feature)
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                             \
    !HAS_FEATURE(address_sanitizer) && !HAS_FEATURE(thread_sanitizer)
    signal(SIGSEGV, report_death);
    signal(SIGFPE, report_death);
    signal(SIGILL, report_death);
#endif
}

/* ---- Corpus ---- */

static void fail_usage(const char *what, const char *detail) {
    fprintf(stderr, "%s: %s%s\nusage: %s [--runs N] [--seed S] FILE|DIRECTORY...\n", now.program,
            what, detail, now.program);
    exit(2);
}

static void load_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) fail_usage("cannot read ", path);
    if (corpus_count == CORPUS_MAX) fail_usage("too many corpus files at ", path);
    uint8_t buf[INPUT_MAX];
    size_t len = fread(buf, 1, sizeof buf, f);
    fclose(f);
    char *name = (char *)malloc(strlen(path) + 1);
    FUZZ_CHECK(name != NULL);
    strcpy(name, path);
    corpus[corpus_count++] = (struct input){ len, fuzz_copy(buf, len), name };
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct input *)a)->name, ((const struct input *)b)->name);
}

static void load_path(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) fail_usage("no such file: ", path);
    if (!S_ISDIR(st.st_mode)) {
        load_file(path);
        return;
    }
    DIR *dir = opendir(path);
    if (!dir) fail_usage("cannot list ", path);
    size_t first = corpus_count;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char full[1024];
        if (e->d_name[0] == '.') continue;
        if ((size_t)snprintf(full, sizeof full, "%s/%s", path, e->d_name) >= sizeof full)
            fail_usage("name too long: ", e->d_name);
        load_file(full);
    }
    closedir(dir);
    /* Directory order differs between machines; the seed must mean the same everywhere. */
    qsort(corpus + first, corpus_count - first, sizeof corpus[0], by_name);
}

/* ---- Mutation ---- */

static uint64_t rng;

static uint64_t next_u64(void) {
    rng ^= rng >> 12;
    rng ^= rng << 25;
    rng ^= rng >> 27;
    return rng * 0x2545F4914F6CDD1Du;
}

static size_t below(size_t n) {
    return n ? (size_t)((next_u64() >> 16) % n) : 0;
}

/* Numbers that lengths and offsets break at. */
static const uint32_t interesting[] = {
    0,      1,       2,          3,          4,          7,         8,     13,    14,
    15,     17,      18,         19,         20,         27,        28,    29,    45,
    46,     47,      52,         127,        128,        255,       256,   508,   511,
    512,    513,     0x3FFF,     0x4000,     0x7FFF,     0x8000,    64768, 64769, 0xFFFE,
    0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF
};

static size_t insert_at(uint8_t *buf, size_t len, size_t at, const uint8_t *src, size_t n) {
    if (len > INPUT_MAX || at > len) return len;
    if (n > INPUT_MAX - len) n = INPUT_MAX - len;
    memmove(buf + at + n, buf + at, len - at);
    for (size_t i = 0; i < n; i++)
        buf[at + i] = src ? src[i] : (uint8_t)next_u64();
    return len + n;
}

static size_t mutate_once(uint8_t *buf, size_t len) {
    switch (below(9)) {
    case 0: /* one bit */
        if (len) buf[below(len)] ^= (uint8_t)(1u << below(8));
        return len;
    case 1: /* one octet */
        if (len) buf[below(len)] = (uint8_t)next_u64();
        return len;
    case 2: { /* a number of 1, 2 or 4 octets, big-endian */
        size_t width = (size_t)1 << below(3), at = below(len);
        uint32_t v = interesting[below(sizeof interesting / sizeof interesting[0])];
        if (width > len - at) return len;
        for (size_t i = 0; i < width; i++)
            buf[at + i] = (uint8_t)(v >> (8 * (width - 1 - i)));
        return len;
    }
    case 3: /* end early */
        return below(len + 1);
    case 4: { /* drop a range */
        if (len == 0) return 0;
        size_t at = below(len), n = 1 + below(len - at);
        memmove(buf + at, buf + at + n, len - at - n);
        return len - n;
    }
    case 5: /* random octets */
        return insert_at(buf, len, below(len + 1), NULL, 1 + below(16));
    case 6: { /* a range again */
        uint8_t copy[64];
        size_t at = below(len), n = below(sizeof copy) + 1;
        if (n > len - at) n = len - at;
        memcpy(copy, buf + at, n);
        return insert_at(buf, len, below(len + 1), copy, n);
    }
    case 7: { /* part of another input */
        const struct input *other = &corpus[below(corpus_count)];
        size_t from = below(other->len);
        size_t n = below(other->len - from + 1);
        if (n > INPUT_MAX - len) n = INPUT_MAX - len;
        return insert_at(buf, len, below(len + 1), other->data + from, n);
    }
    default: { /* overwrite with part of another input */
        const struct input *other = &corpus[below(corpus_count)];
        size_t from = below(other->len), at = below(len);
        size_t n = below(other->len - from + 1);
        if (n > len - at) n = len - at;
        memcpy(buf + at, other->data + from, n);
        return len;
    }
    }
}

static void run_one(const uint8_t *data, size_t len) {
    uint8_t *exact = fuzz_copy(data, len);
    now.data = exact;
    now.len = len;
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
}

int main(int argc, char **argv) {
    unsigned long long runs = 0, seed = 1;
    const char *slash = strrchr(argv[0], '/');
    now.program = slash ? slash + 1 : argv[0];
    for (int i = 1; i < argc; i++) {
        bool is_runs = strcmp(argv[i], "--runs") == 0;
        if (is_runs || strcmp(argv[i], "--seed") == 0) {
            char *end = NULL;
            if (i + 1 == argc) fail_usage("needs a number: ", argv[i]);
            unsigned long long v = strtoull(argv[++i], &end, 0);
            if (*end || end == argv[i]) fail_usage("not a number: ", argv[i]);
            *(is_runs ? &runs : &seed) = v;
        } else if (argv[i][0] == '-') {
            fail_usage("unknown option: ", argv[i]);
        } else {
            load_path(argv[i]);
        }
    }
    if (corpus_count == 0) fail_usage("no input given", "");
    catch_death();
    for (size_t i = 0; i < corpus_count; i++) {
        now.name = corpus[i].name;
        run_one(corpus[i].data, corpus[i].len);
    }
    now.name = NULL;
    now.seed = seed;
    for (now.run = 0; now.run < runs; now.run++) {
        /* Each run is seeded on its own, so that one can be repeated without those before it. */
        rng = (seed * 0x9E3779B97F4A7C15u) ^ ((now.run + 1) * 0xD1B54A32D192ED03u);
        if (rng == 0) rng = 1;
        next_u64();
        uint8_t buf[INPUT_MAX];
        const struct input *base = &corpus[below(corpus_count)];
        size_t len = base->len;
        memcpy(buf, base->data, len);
        for (size_t n = 1 + below(6); n != 0; n--)
            len = mutate_once(buf, len);
        run_one(buf, len);
    }
    printf("%s: %zu corpus files and %llu mutations, seed 0x%llx: passed\n", now.program,
           corpus_count, runs, seed);
    for (size_t i = 0; i < corpus_count; i++) {
        free(corpus[i].data);
        free(corpus[i].name);
    }
    return 0;
}
