/* SPDX-License-Identifier: MIT
 * file.c - overlapped files: what a request's begin and completion do to the OVERLAPPED, the event
 * and the port, and how a client waits for, asks for and cancels a request.
 * The packet of a request is allocated when it begins, so a completion cannot be lost for want of
 * memory. After Internal is stored nothing of the OVERLAPPED is read: event, port and packet were
 * taken before.
 */
#include "winapi/object.h"
#include <stdlib.h>

#define MODES_ALL (FILE_SKIP_COMPLETION_PORT_ON_SUCCESS | FILE_SKIP_SET_EVENT_ON_HANDLE)

static struct wa_object *object_of(SOFTND_FILE *file) {
    return (struct wa_object *)(void *)file;
}

/* ---- life ---- */

HANDLE wa_file_create(UCHAR modes) {
    struct wa_object *o = wa_object_create(WA_FILE);
    if (!o) return NULL;
    o->u.file.modes = modes;
    sn_list_init(&o->u.file.reserve);
    sn_list_init(&o->u.file.running);
    return wa_object_open(o);
}

void wa_file_fini(struct wa_object *o) {
    struct sn_list *n;
    while ((n = sn_list_pop(&o->u.file.reserve)) != NULL)
        free(SN_CONTAINER(n, struct wa_packet, node));
    if (o->u.file.port) wa_object_release(o->u.file.port);
}

HANDLE SoftNdFileCreate(void) {
    return wa_file_create(MODES_ALL);
}

BOOL SoftNdFileIsValid(HANDLE handle) {
    struct wa_object *o = wa_lookup(handle, WA_FILE);
    if (o) wa_object_release(o);
    return o != NULL;
}

SOFTND_FILE *SoftNdFileReference(HANDLE handle) {
    return (SOFTND_FILE *)(void *)wa_lookup(handle, WA_FILE);
}

void SoftNdFileAddRef(SOFTND_FILE *file) {
    wa_object_acquire(object_of(file));
}

void SoftNdFileRelease(SOFTND_FILE *file) {
    wa_object_release(object_of(file));
}

bool wa_file_bind(struct wa_object *o, struct wa_object *port, ULONG_PTR key) {
    pthread_mutex_lock(&o->lock);
    bool free_to_bind = o->u.file.port == NULL;
    if (free_to_bind) {
        wa_object_acquire(port);
        o->u.file.port = port;
        o->u.file.key = key;
    }
    pthread_mutex_unlock(&o->lock);
    if (!free_to_bind) SetLastError(ERROR_INVALID_PARAMETER);
    return free_to_bind;
}

BOOL SetFileCompletionNotificationModes(HANDLE file, UCHAR flags) {
    struct wa_object *o = wa_lookup_or_fail(file, WA_FILE);
    if (!o) return FALSE;
    bool known = (flags & ~MODES_ALL) == 0;
    if (known) {
        pthread_mutex_lock(&o->lock);
        o->u.file.modes |= flags;
        pthread_mutex_unlock(&o->lock);
    } else {
        SetLastError(ERROR_INVALID_PARAMETER);
    }
    wa_object_release(o);
    return known;
}

/* ---- requests ---- */

/* The live event in hEvent, with a reference; NULL if there is none. */
static struct wa_object *event_of(const OVERLAPPED *ov) {
    return ov->hEvent ? wa_lookup(ov->hEvent, WA_EVENT) : NULL;
}

static NTSTATUS status_of(const OVERLAPPED *ov) {
    return (NTSTATUS)(DWORD)__atomic_load_n(&ov->Internal, __ATOMIC_ACQUIRE);
}

static void store_status(OVERLAPPED *ov, NTSTATUS status) {
    __atomic_store_n(&ov->Internal, (ULONG_PTR)(DWORD)status, __ATOMIC_RELEASE);
}

static struct wa_packet *take_reserve_locked(struct wa_object *o) {
    struct sn_list *n = sn_list_pop(&o->u.file.reserve);
    return n ? SN_CONTAINER(n, struct wa_packet, node) : NULL;
}

BOOL SoftNdFileBegin(SOFTND_FILE *file, OVERLAPPED *overlapped) {
    struct wa_object *o = object_of(file);
    struct wa_packet *packet = calloc(1, sizeof *packet);
    if (!packet) return FALSE;
    __atomic_store_n(&overlapped->InternalHigh, 0, __ATOMIC_RELAXED);
    store_status(overlapped, (NTSTATUS)STATUS_PENDING);
    struct wa_object *event = event_of(overlapped);
    if (event) {
        wa_unsignal(event);
        wa_object_release(event);
    }
    pthread_mutex_lock(&o->lock);
    sn_list_push_back(&o->u.file.reserve, &packet->node);
    if (!event) wa_unsignal_locked(o);
    pthread_mutex_unlock(&o->lock);
    return TRUE;
}

void SoftNdFileFail(SOFTND_FILE *file, OVERLAPPED *overlapped, LONG ntstatus) {
    struct wa_object *o = object_of(file);
    pthread_mutex_lock(&o->lock);
    struct wa_packet *packet = take_reserve_locked(o);
    pthread_mutex_unlock(&o->lock);
    SN_ASSERT(packet != NULL); /* Fail without Begin */
    free(packet);
    store_status(overlapped, ntstatus);
}

/* Holds back the last of the wakes. */
static void wake_before(struct wa_parker **held, struct wa_parker *p) {
    if (!p) return;
    if (*held) wa_unpark(*held);
    *held = p;
}

void *SoftNdFileCompleteHeld(SOFTND_FILE *file, OVERLAPPED *overlapped, LONG ntstatus,
                             ULONG_PTR bytes) {
    struct wa_parker *held = NULL;
    struct wa_object *o = object_of(file);
    struct wa_object *event = event_of(overlapped);
    bool wants_packet = ((uintptr_t)overlapped->hEvent & 1) == 0;

    pthread_mutex_lock(&o->lock);
    struct wa_packet *packet = take_reserve_locked(o);
    struct wa_object *port = wants_packet ? o->u.file.port : NULL;
    ULONG_PTR key = o->u.file.key;
    if (port) wa_object_acquire(port);
    pthread_mutex_unlock(&o->lock);
    SN_ASSERT(packet != NULL); /* Complete without Begin, or a second time */

    __atomic_store_n(&overlapped->InternalHigh, bytes, __ATOMIC_RELAXED);
    store_status(overlapped, ntstatus);
    /* From here the OVERLAPPED is the client's and may be gone; it is only a value. */

    if (event) {
        wake_before(&held, wa_signal_held(event));
        wa_object_release(event);
    }
    pthread_mutex_lock(&o->lock);
    bool signal_file = !event && (o->u.file.modes & FILE_SKIP_SET_EVENT_ON_HANDLE) == 0;
    struct wa_parker *parker = wa_signal_locked(o, signal_file);
    pthread_mutex_unlock(&o->lock);
    wake_before(&held, parker);

    if (!port) {
        free(packet);
        return held;
    }
    packet->key = key;
    packet->ov = overlapped;
    packet->status = ntstatus;
    packet->bytes = (DWORD)bytes;
    wake_before(&held, wa_port_push_held(port, packet));
    wa_object_release(port);
    return held;
}

void SoftNdFileWake(void *held) {
    if (held) wa_unpark(held);
}

void *SoftNdSleeperAcquire(void) {
    return wa_parker_acquire();
}

void SoftNdSleeperSleep(void *sleeper) {
    (void)wa_park(sleeper, WA_NEVER);
}

void SoftNdSleeperRelease(void *sleeper) {
    wa_parker_release(sleeper);
}

void SoftNdFileComplete(SOFTND_FILE *file, OVERLAPPED *overlapped, LONG ntstatus, ULONG_PTR bytes) {
    SoftNdFileWake(SoftNdFileCompleteHeld(file, overlapped, ntstatus, bytes));
}

/* ---- the client's side ---- */

static bool look_completed(void *arg) {
    return status_of(arg) != (NTSTATUS)STATUS_PENDING;
}

/* Blocks until the request completed; consumes the event if that is what woke it. */
static bool await_completion(struct wa_object *o, OVERLAPPED *ov) {
    struct wa_object *event = event_of(ov);
    struct wa_target targets[2] = { { o, WA_BLOCK_POKE }, { event, WA_BLOCK_CLAIM } };
    int outcome;
    do {
        outcome = wa_wait_any(targets, event ? 2 : 1, WA_NEVER, look_completed, ov);
    } while (outcome >= 0 && !look_completed(ov)); /* the event was set for another reason */
    if (event) wa_object_release(event);
    return outcome != WA_FAILED;
}

BOOL GetOverlappedResult(HANDLE file, LPOVERLAPPED overlapped, LPDWORD bytes, BOOL wait) {
    if (!overlapped || !bytes) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    if (!look_completed(overlapped)) {
        if (!wait) {
            SetLastError(ERROR_IO_INCOMPLETE);
            return FALSE;
        }
        struct wa_object *o = wa_lookup_or_fail(file, WA_FILE);
        if (!o) return FALSE;
        bool done = await_completion(o, overlapped);
        wa_object_release(o);
        if (!done) return FALSE;
    }
    *bytes = (DWORD)__atomic_load_n(&overlapped->InternalHigh, __ATOMIC_RELAXED);
    NTSTATUS status = status_of(overlapped);
    if (NT_SUCCESS(status)) return TRUE;
    SetLastError(wa_error_from_ntstatus(status));
    return FALSE;
}

/* ---- cancelling ---- */

/* One call of a cancel function, on the caller's stack. */
struct cancel_call {
    struct sn_list node; /* [cancel_lock] */
    pthread_t thread;
};

static pthread_mutex_t cancel_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cancel_ended = PTHREAD_COND_INITIALIZER;

static bool others_running_locked(struct wa_object *o) {
    SN_LIST_FOR(it, &o->u.file.running)
    if (!pthread_equal(SN_CONTAINER(it, struct cancel_call, node)->thread, pthread_self()))
        return true;
    return false;
}

void SoftNdFileSetCancel(SOFTND_FILE *file, SOFTND_CANCEL_FN cancel, void *context) {
    struct wa_object *o = object_of(file);
    pthread_mutex_lock(&cancel_lock);
    o->u.file.cancel = cancel;
    o->u.file.cancel_context = context;
    while (others_running_locked(o))
        pthread_cond_wait(&cancel_ended, &cancel_lock);
    pthread_mutex_unlock(&cancel_lock);
}

static BOOL call_cancel(struct wa_object *o, OVERLAPPED *ov) {
    struct cancel_call call = { .thread = pthread_self() };
    pthread_mutex_lock(&cancel_lock);
    SOFTND_CANCEL_FN cancel = o->u.file.cancel;
    void *context = o->u.file.cancel_context;
    if (cancel) sn_list_push_back(&o->u.file.running, &call.node);
    pthread_mutex_unlock(&cancel_lock);
    if (!cancel) return FALSE;
    BOOL found = cancel(context, ov);
    pthread_mutex_lock(&cancel_lock);
    sn_list_remove(&call.node);
    pthread_cond_broadcast(&cancel_ended);
    pthread_mutex_unlock(&cancel_lock);
    return found;
}

BOOL CancelIoEx(HANDLE file, LPOVERLAPPED overlapped) {
    struct wa_object *o = wa_lookup_or_fail(file, WA_FILE);
    if (!o) return FALSE;
    BOOL found = call_cancel(o, overlapped);
    wa_object_release(o);
    if (!found) SetLastError(ERROR_NOT_FOUND);
    return found ? TRUE : FALSE;
}

BOOL CancelIo(HANDLE file) {
    return CancelIoEx(file, NULL);
}
