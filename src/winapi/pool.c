/* SPDX-License-Identifier: MIT
 * pool.c - BindIoCompletionCallback: one internal port for the process, and a few threads that call
 * the routines. One thread more than are busy is kept, up to a limit, so that a routine that waits
 * for another completion does not stop the pool; threads that stay idle end.
 */
#include "winapi/object.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include "base/log.h"

#define POOL_THREADS_MAX 64            /* routines that may block at the same time */
#define POOL_STACK_BYTES (512u * 1024) /* client code runs on it */

static struct {
    pthread_mutex_t lock;   /* before object locks */
    struct wa_object *port; /* [lock] set once, kept for the life of the process */
    unsigned total;         /* [lock] threads */
    unsigned idle;          /* [lock] threads that are not inside a routine */
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

_Atomic int64_t wa_pool_idle_ns = 10000000000; /* 10 s */

static void *pool_main(void *arg);

unsigned wa_pool_threads(void) {
    pthread_mutex_lock(&pool.lock);
    unsigned total = pool.total;
    pthread_mutex_unlock(&pool.lock);
    return total;
}

/* The threads run this library's code, so it must not be unmapped by FreeLibrary. */
static void pin_library(void) {
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)pool_main, &info) || !info.dli_fname) return;
    /* Fails for a program that contains this code itself, which cannot be unmapped anyway. The
     * handle is kept on purpose. */
    void *self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    (void)self;
}

static bool spawn_locked(void) {
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, POOL_STACK_BYTES);
    sigfillset(&all); /* the program's signal handlers are not for our threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool started = pthread_create(&thread, &attr, pool_main, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (started) {
        pool.total++;
        pool.idle++;
    }
    return started;
}

/* Nothing to do for a while: may this thread end? */
static bool retire(void) {
    pthread_mutex_lock(&pool.lock);
    bool spare = pool.idle > 1;
    if (spare) {
        pool.idle--;
        pool.total--;
    }
    pthread_mutex_unlock(&pool.lock);
    return spare;
}

static void enter_routine(void) {
    pthread_mutex_lock(&pool.lock);
    if (--pool.idle == 0 && pool.total < POOL_THREADS_MAX && !spawn_locked())
        SN_LOG(SN_LOG_WARN, "completion callbacks: no thread beyond %u can be started", pool.total);
    pthread_mutex_unlock(&pool.lock);
}

static void leave_routine(void) {
    pthread_mutex_lock(&pool.lock);
    pool.idle++;
    pthread_mutex_unlock(&pool.lock);
}

static void *pool_main(void *arg) {
    (void)arg;
    for (;;) {
        struct wa_packet *p = NULL;
        if (wa_port_take(pool.port, &p, 1, wa_now_ns() + atomic_load(&wa_pool_idle_ns)) == 0) {
            if (retire()) return NULL;
            continue;
        }
        LPOVERLAPPED_COMPLETION_ROUTINE routine = (LPOVERLAPPED_COMPLETION_ROUTINE)p->key;
        OVERLAPPED *ov = p->ov;
        DWORD status = (DWORD)p->status, bytes = p->bytes;
        free(p);
        enter_routine();
        routine(status, bytes, ov);
        leave_routine();
    }
}

/* The port, with at least one thread behind it; NULL with the last error set. */
static struct wa_object *start_pool(void) {
    pthread_mutex_lock(&pool.lock);
    if (!pool.port) {
        pool.port = wa_port_create();
        if (pool.port) pin_library();
    }
    bool running = pool.port && (pool.total > 0 || spawn_locked());
    pthread_mutex_unlock(&pool.lock);
    if (running) return pool.port;
    SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return NULL;
}

BOOL BindIoCompletionCallback(HANDLE file, LPOVERLAPPED_COMPLETION_ROUTINE routine, ULONG flags) {
    struct wa_object *o = wa_lookup_or_fail(file, WA_FILE);
    if (!o) return FALSE;
    bool bound = false;
    if (!routine || flags != 0) {
        SetLastError(ERROR_INVALID_PARAMETER);
    } else {
        struct wa_object *port = start_pool();
        bound = port && wa_file_bind(o, port, (ULONG_PTR)routine);
    }
    wa_object_release(o);
    return bound;
}
