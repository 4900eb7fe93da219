/* SPDX-License-Identifier: MIT */
#include "os/prim/thread.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"

struct start {
    void (*fn)(void *);
    void *arg;
    char name[16]; /* what the kernel keeps of a name */
};

static void *run_thread(void *arg) {
    struct start s = *(struct start *)arg;
    os_free(arg);
    pthread_setname_np(pthread_self(), s.name);
    s.fn(s.arg);
    return NULL;
}

/* Everything but the faults of the thread itself: with SIGSEGV blocked the kernel ends the
 * process at a fault without asking the guard in pages.c. */
static void fill_blocked_signals(sigset_t *set) {
    static const int own[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
    sigfillset(set);
    for (size_t i = 0; i < SN_ARRAY_LEN(own); i++)
        sigdelset(set, own[i]);
}

sn_status os_thread_start(os_thread *t, const char *name, void (*fn)(void *arg), void *arg) {
    _Static_assert(sizeof(pthread_t) <= sizeof t->native, "a thread id fits");
    struct start *s = os_zalloc(sizeof *s);
    if (!s) return SN_E_RESOURCES;
    s->fn = fn;
    s->arg = arg;
    snprintf(s->name, sizeof s->name, "%s", name ? name : "softnd");

    sigset_t blocked, before;
    fill_blocked_signals(&blocked);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    pthread_t id;
    int e = os_fault_hit(OS_FAULT_SYSCALL) ? EAGAIN : pthread_create(&id, NULL, run_thread, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (e != 0) {
        os_free(s);
        return SN_E_RESOURCES;
    }
    t->native = (uint64_t)id;
    return SN_OK;
}

void os_thread_join(os_thread t) {
    int e = pthread_join((pthread_t)t.native, NULL);
    SN_ASSERT(e == 0);
}

void os_thread_detach(os_thread t) {
    pthread_detach((pthread_t)t.native);
}

uint64_t os_thread_self(void) {
    return (uint64_t)pthread_self();
}

void os_thread_yield(void) {
    sched_yield();
}

/* sched_setattr's argument as far as its first version goes, restated: C libraries lack it. */
struct sched_attr_v0 {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};
#define SLICE_NS 100000u /* the least there is */
#define PROMPT_NICE (-10) /* nine tenths of a processor shared with an ordinary thread */

/* Since Linux 6.12 the runtime of an ordinary thread is the length of its turns, and one with short
 * turns need not wait until another's long turn is over. Older ones ignore it. A better nice value
 * needs a privilege; without it the thread stays as it is. */
void os_thread_set_prompt(bool on) {
    struct sched_attr_v0 a = { .size = sizeof a };
    if (!on || syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) != 0) return;
    if (a.policy != SCHED_OTHER && a.policy != SCHED_BATCH) return; /* somebody knows better */
    a.size = sizeof a;
    a.runtime = SLICE_NS;
    (void)!syscall(SYS_sched_setattr, 0, &a, 0);
    if (a.nice <= PROMPT_NICE) return;
    a.nice = PROMPT_NICE;
    (void)!syscall(SYS_sched_setattr, 0, &a, 0);
}

static long futex(os_atomic_u32 *word, int op, uint32_t value, const struct timespec *until) {
    return syscall(SYS_futex, &word->v, op | FUTEX_PRIVATE_FLAG, value, until, NULL,
                   FUTEX_BITSET_MATCH_ANY);
}

bool os_wait_on(os_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns) {
    if (os_u32_load_acquire(word) != expected) return true;
    struct timespec ts = { .tv_sec = (time_t)(deadline_ns / 1000000000u),
                           .tv_nsec = (long)(deadline_ns % 1000000000u) };
    /* The bitset form takes an absolute monotonic time. */
    long r = futex(word, FUTEX_WAIT_BITSET, expected, deadline_ns == OS_FOREVER ? NULL : &ts);
    return r == 0 || errno != ETIMEDOUT;
}

void os_wake_one(os_atomic_u32 *word) {
    futex(word, FUTEX_WAKE, 1, NULL);
}

void os_wake_all(os_atomic_u32 *word) {
    futex(word, FUTEX_WAKE, INT_MAX, NULL);
}

/* ---- the module this code is in ---- */

static const char marker; /* an address inside the module */

static struct link_map *find_own_module(void) {
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(&marker, &info, (void **)&map, RTLD_DL_LINKMAP)) return NULL;
    return map;
}

void os_pin_module(void) {
    struct link_map *map = find_own_module();
    /* The program itself has an empty name and cannot go away. */
    if (!map || !map->l_name[0]) return;
    /* The handle is kept: never closing it is the pin, RTLD_NODELETE only says so. */
    static os_atomic_u32 pinned;
    if (os_u32_exchange_acq_rel(&pinned, 1)) return;
    if (!dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) {
        Dl_info info;
        if (dladdr(&marker, &info) && info.dli_fname)
            (void)!dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

/* The kernel's own idea of the file that addr is mapped from. */
static bool find_mapped_file(const void *addr, char *buf, uint32_t size) {
    FILE *f = fopen("/proc/self/maps", "re");
    if (!f) return false;
    char line[PATH_MAX + 128];
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        unsigned long from, to;
        int path_at = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &path_at) < 2) continue;
        if ((uintptr_t)addr < from || (uintptr_t)addr >= to || path_at == 0) continue;
        line[strcspn(line, "\n")] = 0;
        size_t len = strlen(line + path_at);
        if (line[path_at] != '/' || len >= size) break;
        memcpy(buf, line + path_at, len + 1);
        found = true;
    }
    fclose(f);
    return found;
}

bool os_module_path(char *buf, uint32_t size) {
    struct link_map *map = find_own_module();
    const char *name = map && map->l_name[0] ? map->l_name : "/proc/self/exe";
    /* A relative name was relative to the folder of that time: ask the kernel instead. */
    if (name[0] != '/') return find_mapped_file(&marker, buf, size);
    char full[PATH_MAX];
    if (!realpath(name, full)) return false;
    size_t len = strlen(full);
    if (len >= size) return false;
    memcpy(buf, full, len + 1);
    return true;
}

uint32_t os_process_id(void) {
    return (uint32_t)getpid();
}
