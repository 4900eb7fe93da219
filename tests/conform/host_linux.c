/* SPDX-License-Identifier: MIT
 * host_linux.c - see host.h.
 */
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t host_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

struct host_thread {
    pthread_t id;
    void (*fn)(void *arg);
    void *arg;
};

static void *run_thread(void *arg) {
    struct host_thread *thread = arg;
    thread->fn(thread->arg);
    return NULL;
}

struct host_thread *host_thread_start(void (*fn)(void *arg), void *arg) {
    struct host_thread *thread = malloc(sizeof *thread);
    if (!thread) return NULL;
    thread->fn = fn;
    thread->arg = arg;
    if (pthread_create(&thread->id, NULL, run_thread, thread) != 0) {
        free(thread);
        return NULL;
    }
    return thread;
}

void host_thread_join(struct host_thread *thread) {
    pthread_join(thread->id, NULL);
    free(thread);
}

size_t host_page_size(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t round_to_pages(size_t bytes) {
    size_t page = host_page_size();
    return (bytes + page - 1) / page * page;
}

void *host_pages_alloc(size_t bytes) {
    void *pages = mmap(NULL, round_to_pages(bytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void host_pages_free(void *pages, size_t bytes) {
    /* Nothing else may come to lie there: an access has to fault from now on. */
    if (mmap(pages, round_to_pages(bytes), PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        munmap(pages, round_to_pages(bytes));
}

bool host_pages_readonly(void *pages, size_t bytes) {
    return mprotect(pages, round_to_pages(bytes), PROT_READ) == 0;
}

void *host_file_view(size_t bytes) {
    char name[] = "/tmp/conform-XXXXXX";
    int fd = mkstemp(name);
    void *view = MAP_FAILED;
    if (fd < 0) return NULL;
    unlink(name);
    if (ftruncate(fd, (off_t)round_to_pages(bytes)) == 0)
        view = mmap(NULL, round_to_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return view == MAP_FAILED ? NULL : view;
}

bool host_parse_address(const char *text, struct sockaddr_storage *addr, ULONG *len) {
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    if (getaddrinfo(text, NULL, &hints, &found) != 0) return false;
    memset(addr, 0, sizeof *addr);
    memcpy(addr, found->ai_addr, found->ai_addrlen);
    *len = (ULONG)found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

void host_setenv(const char *name, const char *value) {
    setenv(name, value, 1);
}

size_t host_handle_count(void) {
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir) return 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        if (entry->d_name[0] != '.') count++;
    closedir(dir);
    return count - 1; /* the directory itself */
}

bool host_allow_handles(size_t count) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    if (limit.rlim_cur >= count) return true;
    limit.rlim_cur = count;
    if (limit.rlim_max < count) limit.rlim_max = count;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

struct host_process {
    pid_t pid;
};

struct host_process *host_process_start(const char *const *args) {
    enum { MOST_ARGS = 30 };
    char *argv[MOST_ARGS + 2] = { (char *)"conform-child" };
    for (int i = 0; i < MOST_ARGS && args[i]; i++)
        argv[i + 1] = (char *)args[i];
    struct host_process *process = malloc(sizeof *process);
    if (!process) return NULL;
    process->pid = fork();
    if (process->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed parent leaves nobody behind */
        const char *other = getenv("CONFORM_CHILD");
        execv(other ? other : "/proc/self/exe", argv);
        _exit(126);
    }
    if (process->pid < 0) {
        free(process);
        return NULL;
    }
    return process;
}

void host_process_kill(struct host_process *process) {
    kill(process->pid, SIGKILL);
}

bool host_process_wait(struct host_process *process, uint64_t deadline_ms, int *exit_code) {
    for (;;) {
        int status;
        pid_t got = waitpid(process->pid, &status, WNOHANG);
        if (got == process->pid) {
            *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
            return true;
        }
        if (got < 0 && errno != EINTR) return false;
        if (host_now_ms() >= deadline_ms) return false;
        struct timespec slice = { .tv_nsec = 2000000 };
        nanosleep(&slice, NULL);
    }
}

void host_process_free(struct host_process *process) {
    free(process);
}

const char *host_lacks(enum host_thing thing) {
    (void)thing;
    return NULL;
}
