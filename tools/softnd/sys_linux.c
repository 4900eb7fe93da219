/* SPDX-License-Identifier: MIT
 * sys_linux.c - see sys.h.
 */
#include "sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_count;
/* What the signal handler removes; set while a temporary file exists. */
static char *volatile temp_to_remove;

uint64_t sys_now_ns(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void sys_sleep_until(uint64_t ns) {
    struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

uint64_t sys_cpu_ns(void) {
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t sys_memory_bytes(void) {
    unsigned long long pages, resident, shared;
    FILE *f = fopen("/proc/self/statm", "re");
    int got = 0;

    if (!f) return 0;
    got = fscanf(f, "%llu %llu %llu", &pages, &resident, &shared);
    fclose(f);
    return got == 3 ? (resident - shared) * (unsigned long long)sysconf(_SC_PAGESIZE) : 0;
}

static void *thread_main(void *arg) {
    struct sys_thread *t = arg;

    t->run(t->arg);
    return NULL;
}

bool sys_thread_start(struct sys_thread *t, void (*run)(void *arg), void *arg) {
    pthread_t id;

    *t = (struct sys_thread){ .run = run, .arg = arg };
    if (pthread_create(&id, NULL, thread_main, t) != 0) return false;
    t->handle = (uintptr_t)id;
    return true;
}

void sys_thread_join(struct sys_thread *t) {
    pthread_join((pthread_t)t->handle, NULL);
}

static void on_stop(int sig) {
    char *temp = temp_to_remove;

    if (++stop_count < 2) return;
    if (temp) unlink(temp);
    _exit(128 + sig);
}

void sys_catch_stop(void) {
    struct sigaction sa = { .sa_handler = on_stop };

    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool sys_stop_requested(void) {
    return stop_count != 0;
}

bool sys_stdout_is_terminal(void) {
    return isatty(STDOUT_FILENO) == 1;
}

bool sys_stderr_is_terminal(void) {
    return isatty(STDERR_FILENO) == 1;
}

bool sys_program_folder(char out[SYS_PATH_MAX]) {
    ssize_t n = readlink("/proc/self/exe", out, SYS_PATH_MAX - 1);
    char *slash;

    if (n <= 0) return false;
    out[n] = 0;
    slash = strrchr(out, '/');
    if (!slash) return false;
    *slash = 0;
    return true;
}

bool sys_file_exists(const char *path) {
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool sys_full_path(const char *path, char out[SYS_PATH_MAX]) {
    char *full = realpath(path, NULL);
    bool fits = full && strlen(full) < SYS_PATH_MAX;

    if (fits) strcpy(out, full);
    free(full);
    return fits;
}

void sys_setenv_default(const char *name, const char *value) {
    setenv(name, value, 0);
}

void sys_setenv(const char *name, const char *value) {
    setenv(name, value, 1);
}

bool sys_getenv(const char *name, char *out, size_t room) {
    const char *value = getenv(name);

    if (!value || !*value || strlen(value) >= room) return false;
    strcpy(out, value);
    return true;
}

void *sys_pages_alloc(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

void sys_pages_free(void *pages, size_t bytes) {
    if (pages) munmap(pages, bytes);
}

const char *sys_in_open(struct sys_in *in, const char *path) {
    struct stat st;

    *in = (struct sys_in){ .fd = -1 };
    if (!strcmp(path, "-")) {
        in->fd = STDIN_FILENO;
        in->stream = true;
        return NULL;
    }
    in->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0) return strerror(errno);
    if (fstat(in->fd, &st) != 0) {
        int e = errno;
        sys_in_close(in);
        return strerror(e);
    }
    if (S_ISDIR(st.st_mode)) {
        sys_in_close(in);
        return strerror(EISDIR);
    }
    in->stream = !S_ISREG(st.st_mode);
    in->bytes = in->stream ? 0 : (uint64_t)st.st_size;
    if (!in->stream) posix_fadvise(in->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return NULL;
}

const char *sys_in_read(struct sys_in *in, void *buf, size_t len, size_t *got) {
    *got = 0;
    while (*got < len) {
        ssize_t n = read(in->fd, (char *)buf + *got, len - *got);
        if (n < 0 && errno == EINTR && !stop_count) continue;
        if (n < 0) return strerror(errno);
        if (n == 0) break;
        *got += (size_t)n;
    }
    return NULL;
}

bool sys_in_ready(struct sys_in *in, uint32_t timeout_ms) {
    struct pollfd p = { .fd = in->fd, .events = POLLIN };

    return poll(&p, 1, (int)timeout_ms) > 0;
}

const char *sys_in_read_some(struct sys_in *in, void *buf, size_t len, size_t *got) {
    *got = 0;
    do {
        ssize_t n = read(in->fd, (char *)buf + *got, len - *got);
        if (n < 0 && errno == EINTR && !stop_count) continue;
        if (n < 0) return *got ? NULL : strerror(errno);
        if (n == 0) break;
        *got += (size_t)n;
    } while (*got < len && sys_in_ready(in, 0));
    return NULL;
}

void sys_in_close(struct sys_in *in) {
    if (in->fd > STDIN_FILENO) close(in->fd);
    in->fd = -1;
}

/* A hidden name in the same folder, so that the rename cannot cross file systems. */
static bool make_temp_name(const char *path, char out[SYS_PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path + 1) : 0;
    int n = snprintf(out, SYS_PATH_MAX, "%.*s.%s.softnd-XXXXXX", folder, path, path + folder);

    return n > 0 && n < SYS_PATH_MAX;
}

const char *sys_out_create(struct sys_out *out, const char *path) {
    struct stat st;
    mode_t mask;

    *out = (struct sys_out){ .fd = -1 };
    if (!strcmp(path, "-")) {
        out->fd = STDOUT_FILENO;
        out->stream = true;
        return NULL;
    }
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        if (S_ISDIR(st.st_mode)) return strerror(EISDIR);
        out->stream = true;
        out->fd = open(path, O_WRONLY | O_CLOEXEC);
        return out->fd < 0 ? strerror(errno) : NULL;
    }
    if (strlen(path) >= sizeof out->path || !make_temp_name(path, out->temp))
        return strerror(ENAMETOOLONG);
    strcpy(out->path, path);
    out->fd = mkstemp(out->temp);
    if (out->fd < 0) {
        out->temp[0] = 0;
        return strerror(errno);
    }
    temp_to_remove = out->temp;
    mask = umask(0);
    umask(mask);
    fchmod(out->fd, 0666 & ~mask);
    return NULL;
}

const char *sys_out_reserve(struct sys_out *out, uint64_t bytes) {
    int result;

    if (out->stream || !bytes) return NULL;
    if (bytes > INT64_MAX) return strerror(EFBIG);
    do
        result = fallocate(out->fd, 0, 0, (off_t)bytes);
    while (result != 0 && errno == EINTR && !stop_count);
    /* Where the file system cannot reserve, the write finds out. */
    if (result == 0 || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR) return NULL;
    return strerror(errno);
}

const char *sys_out_write(struct sys_out *out, const void *buf, size_t len) {
    const char *p = buf;

    while (len) {
        ssize_t n = write(out->fd, p, len);
        if (n < 0 && errno == EINTR && !stop_count) continue;
        if (n < 0) return strerror(errno);
        p += n;
        len -= (size_t)n;
    }
    return NULL;
}

const char *sys_out_keep(struct sys_out *out) {
    const char *why = NULL;
    int fd = out->fd;

    if (out->stream && fd == STDOUT_FILENO) return NULL;
    out->fd = -1;
    if (close(fd) != 0) why = strerror(errno); /* NFS reports a full disk here */
    if (!why && !out->stream && rename(out->temp, out->path) != 0) why = strerror(errno);
    if (!out->stream) {
        if (why) unlink(out->temp);
        temp_to_remove = NULL;
        out->temp[0] = 0;
    }
    return why;
}

void sys_out_drop(struct sys_out *out) {
    if (out->fd > STDOUT_FILENO) close(out->fd);
    if (out->temp[0]) unlink(out->temp);
    temp_to_remove = NULL;
    out->temp[0] = 0;
    out->fd = -1;
}

const char sys_library_suffix[] = ".so";

void *sys_library_open(const char *path, char *error, size_t room) {
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) snprintf(error, room, "%s", dlerror());
    return library;
}

void *sys_library_symbol(void *library, const char *name) {
    return dlsym(library, name);
}
