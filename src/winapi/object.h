/* SPDX-License-Identifier: MIT
 * object.h - what stands behind a HANDLE: counted objects in a validated table, and their waiters.
 * Owns:    the handle table, the objects' memory (never returned to the system, so that a stale
 *          handle can be looked at safely), the parkers that threads sleep on.
 * Threads: any. Each object has one lock; two objects' locks are taken only by wait-for-all, in
 *          address order. Order: object, then the parker pool. No lock is held while an
 *          object's fini or a user's function runs.
 * Errors:  a value that is not an open handle of the wanted kind gives NULL, never a crash.
 *
 * A handle is ((generation << WA_INDEX_BITS) | index) << 2: the low two bits are zero and ignored
 * on input, so that `hEvent | 1` names the same event.
 */
#ifndef SN_WINAPI_OBJECT_H
#define SN_WINAPI_OBJECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "base/base.h"
#include "softnd_file.h"

enum wa_kind {
    WA_FREE = 0,
    WA_EVENT = 1,
    WA_PORT = 2,
    WA_FILE = 4,
    WA_MODULE = 8,
};
#define WA_WAITABLE ((unsigned)(WA_EVENT | WA_FILE))

/* What a thread sleeps on: one word for the futex call, so that a wake costs one system call and
 * none if nobody sleeps yet. The memory is recycled but never freed: a late unpark is a harmless
 * spurious wake of the next owner, who checks its own condition. */
struct wa_parker {
    struct wa_parker *next_free; /* [pool lock] */
    _Atomic uint32_t state;      /* object.c */
};

/* A deadline is CLOCK_MONOTONIC nanoseconds; never = WA_NEVER. */
#define WA_NEVER INT64_MAX
int64_t wa_now_ns(void);
int64_t wa_deadline(DWORD timeout_ms);

/* Takes a parker, or NULL if there is no memory. */
struct wa_parker *wa_parker_acquire(void);
void wa_parker_release(struct wa_parker *p);
/* Sleeps until unparked or the deadline; false on the deadline. May return early. */
bool wa_park(struct wa_parker *p, int64_t deadline_ns);
void wa_unpark(struct wa_parker *p);

/* A thread that waits, on its stack, with one block per object. `outcome` is claimed once, by
 * whoever satisfies the wait, under the lock of an object the waiter is queued on. */
#define WA_WAITING (-1)
#define WA_TIMED_OUT (-2)
struct wa_waiter {
    struct wa_parker *parker;
    atomic_int outcome; /* index of the object that ended the wait, or the above */
};

enum wa_block_kind {
    WA_BLOCK_CLAIM, /* the object's signal ends the wait and is consumed if auto-reset */
    WA_BLOCK_POKE,  /* the waiter only wants to look again */
};

struct wa_block {
    struct sn_list node; /* [object lock] */
    struct wa_waiter *waiter;
    int idx;
    enum wa_block_kind kind;
};

struct wa_object;

/* A packet in a completion port's queue, from malloc; whoever takes it off the queue frees it. */
struct wa_packet {
    struct sn_list node; /* [port lock], or [file lock] while in reserve */
    ULONG_PTR key;
    OVERLAPPED *ov; /* only a value */
    NTSTATUS status;
    DWORD bytes;
};

struct wa_port {
    struct sn_list packets; /* [lock] FIFO */
    struct sn_list waiters; /* [lock] LIFO: the last to come is the first to be served */
    bool closed;            /* [lock] the handle is gone: nothing is queued any more */
};

struct wa_file {
    struct wa_object *port;  /* [lock] set once; a counted reference */
    ULONG_PTR key;           /* [lock] set with port */
    UCHAR modes;             /* [lock] FILE_SKIP_* */
    struct sn_list reserve;  /* [lock] one unused packet per request between Begin and Complete */
    SOFTND_CANCEL_FN cancel; /* [cancel lock of file.c] */
    void *cancel_context;    /* [cancel lock] */
    struct sn_list running;  /* [cancel lock] calls of cancel functions */
};

struct wa_module {
    struct sn_list node; /* [module lock] */
    void *dl;            /* [const] from dlopen */
    unsigned loads;      /* [module lock] dlopen calls not yet matched by dlclose */
};

struct wa_object {
    atomic_uint refs;            /* 0 = the slot is free */
    _Atomic uint64_t handle;     /* the open handle's value, 0 when closed */
    uint32_t idx;                /* [const] place in the table */
    uint64_t generation;         /* [table lock] of the last handle given out */
    enum wa_kind kind;           /* [const while refs != 0] */
    struct wa_object *next_free; /* [table lock] */

    pthread_mutex_t lock;
    bool auto_reset;        /* [const] a signal satisfies one wait and is gone */
    bool signaled;          /* [lock] */
    struct sn_list waiters; /* [lock] wa_block, oldest first */
    int fd;                 /* [lock] eventfd that mirrors the state, -1 if nobody asked */
    bool fd_readable;       /* [lock] */
    union {
        struct wa_port port;
        struct wa_file file;
        struct wa_module module;
    } u;
};

/* A new object of this kind with one reference, which the handle owns once it is opened; NULL and
 * ERROR_NOT_ENOUGH_MEMORY if there is none. The union is zeroed. */
struct wa_object *wa_object_create(enum wa_kind kind);
/* Gives the object its handle: from here lookups find it. Takes over one reference. */
HANDLE wa_object_open(struct wa_object *o);
/* The object behind a handle of one of these kinds, with a reference; NULL if there is none
 * (nothing is set: use wa_lookup_or_fail to set the last error). */
struct wa_object *wa_lookup(HANDLE h, unsigned kinds);
/* The same, with ERROR_INVALID_HANDLE on failure. */
struct wa_object *wa_lookup_or_fail(HANDLE h, unsigned kinds);
void wa_object_acquire(struct wa_object *o);
/* May run the kind's fini; no lock may be held. */
void wa_object_release(struct wa_object *o);
/* Makes the handle invalid; true for exactly one caller, who then owns the handle's reference. */
bool wa_object_close(struct wa_object *o, HANDLE h);

/* Number of objects that hold memory, for leak checks in tests. */
unsigned wa_object_count(void);

/* Sets the object signaled: ends every wait on it, or the oldest one if it is auto-reset. */
void wa_signal(struct wa_object *o);
/* The same; gives the parker of the last thread to wake, which is the caller's to unpark, or NULL.
 * A parker may be unparked at any time later: it is never freed, and who parks looks again. */
struct wa_parker *wa_signal_held(struct wa_object *o);
/* As wa_signal with the lock held; gives the parker to unpark after unlocking, or NULL. With
 * `signaled` false it only pokes those who want to look. */
struct wa_parker *wa_signal_locked(struct wa_object *o, bool signaled);
void wa_unsignal(struct wa_object *o);
void wa_unsignal_locked(struct wa_object *o);

/* Level of the mirrored descriptor; lock held. Does nothing without a descriptor. */
void wa_fd_set_locked(struct wa_object *o, bool readable);
/* The descriptor that mirrors the level, created on the first call; -1 with the last error set. */
int wa_fd_get_locked(struct wa_object *o, bool readable);

/* Waits until block 0..count-1 claims or the deadline. With `look` (may be NULL) the wait also
 * ends, with WA_LOOKED, as soon as look(arg) is true; it is asked after every poke, without locks.
 * Returns the index, WA_TIMED_OUT, WA_LOOKED, or WA_FAILED with the last error set. */
#define WA_LOOKED (-3)
#define WA_FAILED (-4)
struct wa_target {
    struct wa_object *obj;
    enum wa_block_kind kind;
};
int wa_wait_any(const struct wa_target *targets, unsigned count, int64_t deadline_ns,
                bool (*look)(void *), void *arg);

/* Queues a packet, or frees it if the port's handle is closed. Never fails, never blocks. */
void wa_port_push(struct wa_object *port, struct wa_packet *packet);
/* The same; gives the parker to unpark, or NULL, as wa_signal_held does. */
struct wa_parker *wa_port_push_held(struct wa_object *port, struct wa_packet *packet);
/* A new port without a handle; NULL with the last error set. */
struct wa_object *wa_port_create(void);
/* Takes up to `max` packets off, waiting for the first; a chain through node.next that ends with
 * NULL. The count, or 0 with the last error set. */
unsigned wa_port_take(struct wa_object *port, struct wa_packet **first, unsigned max,
                      int64_t deadline_ns);

/* A new overlapped file with these FILE_SKIP_* modes; its handle, or NULL and the last error. */
HANDLE wa_file_create(UCHAR modes);
/* Ties the file to the port, once. False with ERROR_INVALID_PARAMETER if it is tied already. */
bool wa_file_bind(struct wa_object *file, struct wa_object *port, ULONG_PTR key);

/* How long a thread of the callback pool idles before it ends, and how many there are; for tests.
 */
extern _Atomic int64_t wa_pool_idle_ns;
unsigned wa_pool_threads(void);

/* The Win32 number of an NTSTATUS; ERROR_MR_MID_NOT_FOUND (317) if it has none. */
DWORD wa_error_from_ntstatus(NTSTATUS status);

/* Called by wa_object_release for the last reference, without locks. */
void wa_port_fini(struct wa_object *o);
void wa_file_fini(struct wa_object *o);
/* Called by CloseHandle after the handle became invalid. */
void wa_port_closed(struct wa_object *o);

/* UTF-16 to UTF-8 and back, zero-terminated, at most `room` units with the terminator. The length
 * without it, or -1 if it does not fit or the text is malformed. */
int wa_utf8_from_utf16(char *dst, size_t room, const WCHAR *src);
int wa_utf16_from_utf8(WCHAR *dst, size_t room, const char *src);

#endif
