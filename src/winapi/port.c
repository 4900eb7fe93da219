/* SPDX-License-Identifier: MIT
 * port.c - I/O completion ports: packets leave in the order they came, the thread that began to
 * wait last is woken first. A woken thread is not given a packet but takes the oldest one; if a
 * thread that did not have to sleep was faster, it sleeps on.
 */
#include "winapi/object.h"
#include <stdlib.h>

struct port_waiter {
    struct sn_list node; /* [port lock] */
    struct wa_parker *parker;
};

/* ---- the queue ---- */

struct wa_object *wa_port_create(void) {
    struct wa_object *o = wa_object_create(WA_PORT);
    if (!o) return NULL;
    sn_list_init(&o->u.port.packets);
    sn_list_init(&o->u.port.waiters);
    return o;
}

struct wa_parker *wa_port_push_held(struct wa_object *o, struct wa_packet *packet) {
    struct wa_port *port = &o->u.port;
    struct wa_parker *parker = NULL;
    pthread_mutex_lock(&o->lock);
    bool closed = port->closed;
    if (!closed) {
        sn_list_push_back(&port->packets, &packet->node);
        wa_fd_set_locked(o, true);
        struct sn_list *n = sn_list_pop(&port->waiters);
        if (n) parker = SN_CONTAINER(n, struct port_waiter, node)->parker;
    }
    pthread_mutex_unlock(&o->lock);
    if (closed) free(packet);
    return parker;
}

void wa_port_push(struct wa_object *o, struct wa_packet *packet) {
    struct wa_parker *p = wa_port_push_held(o, packet);
    if (p) wa_unpark(p);
}

static unsigned pop_locked(struct wa_object *o, struct wa_packet **first, unsigned max) {
    struct sn_list *packets = &o->u.port.packets, *tail = NULL;
    unsigned count = 0;
    while (count < max && !sn_list_empty(packets)) {
        struct sn_list *n = sn_list_pop(packets);
        n->next = NULL;
        if (tail)
            tail->next = n;
        else
            *first = SN_CONTAINER(n, struct wa_packet, node);
        tail = n;
        count++;
    }
    if (sn_list_empty(packets)) wa_fd_set_locked(o, false);
    return count;
}

/* Sleeps until woken, with the lock dropped; false on the deadline. */
static bool sleep_locked(struct wa_object *o, struct port_waiter *w, int64_t deadline_ns) {
    struct sn_list *waiters = &o->u.port.waiters;
    sn_list_push_back(waiters->next, &w->node); /* before the first: a push to the front */
    pthread_mutex_unlock(&o->lock);
    bool in_time = wa_park(w->parker, deadline_ns);
    pthread_mutex_lock(&o->lock);
    sn_list_remove(&w->node);
    return in_time;
}

unsigned wa_port_take(struct wa_object *o, struct wa_packet **first, unsigned max,
                      int64_t deadline_ns) {
    struct port_waiter w = { .parker = NULL };
    unsigned count = 0;
    DWORD error = 0;
    bool in_time = deadline_ns == WA_NEVER || deadline_ns > wa_now_ns();
    pthread_mutex_lock(&o->lock);
    while ((count = pop_locked(o, first, max)) == 0) {
        if (o->u.port.closed)
            error = ERROR_ABANDONED_WAIT_0;
        else if (!in_time)
            error = WAIT_TIMEOUT;
        else if (!w.parker && !(w.parker = wa_parker_acquire()))
            error = ERROR_NOT_ENOUGH_MEMORY;
        if (error) break;
        in_time = sleep_locked(o, &w, deadline_ns);
    }
    pthread_mutex_unlock(&o->lock);
    if (w.parker) wa_parker_release(w.parker);
    if (error) SetLastError(error);
    return count;
}

static void free_chain(struct sn_list *n) {
    while (n) {
        struct sn_list *next = n->next;
        free(SN_CONTAINER(n, struct wa_packet, node));
        n = next;
    }
}

/* The handle is gone: everybody who waits gets to know, and what was queued is dropped. */
void wa_port_closed(struct wa_object *o) {
    struct wa_packet *first = NULL;
    pthread_mutex_lock(&o->lock);
    o->u.port.closed = true;
    unsigned dropped = pop_locked(o, &first, UINT32_MAX);
    struct sn_list *n;
    while ((n = sn_list_pop(&o->u.port.waiters)) != NULL)
        wa_unpark(SN_CONTAINER(n, struct port_waiter, node)->parker);
    pthread_mutex_unlock(&o->lock);
    if (dropped) free_chain(&first->node);
}

void wa_port_fini(struct wa_object *o) {
    struct wa_packet *first = NULL;
    if (pop_locked(o, &first, UINT32_MAX)) free_chain(&first->node);
}

/* ---- the Win32 calls ---- */

/* Ties the file behind the handle to the port; false with the last error set. */
static bool bind_file(HANDLE file, struct wa_object *port, ULONG_PTR key) {
    struct wa_object *f = wa_lookup_or_fail(file, WA_FILE);
    if (!f) return false;
    bool bound = wa_file_bind(f, port, key);
    wa_object_release(f);
    return bound;
}

HANDLE CreateIoCompletionPort(HANDLE file, HANDLE port, ULONG_PTR key, DWORD concurrent_threads) {
    (void)concurrent_threads;
    bool has_file = file != INVALID_HANDLE_VALUE;
    if (port) {
        struct wa_object *o = wa_lookup_or_fail(port, WA_PORT);
        if (!o) return NULL;
        bool bound = has_file && bind_file(file, o, key);
        if (!has_file) SetLastError(ERROR_INVALID_PARAMETER);
        wa_object_release(o);
        return bound ? port : NULL;
    }
    struct wa_object *o = wa_port_create();
    if (!o) return NULL;
    if (has_file && !bind_file(file, o, key)) {
        wa_object_release(o);
        return NULL;
    }
    return wa_object_open(o);
}

BOOL GetQueuedCompletionStatus(HANDLE port, LPDWORD bytes, PULONG_PTR key, LPOVERLAPPED *overlapped,
                               DWORD timeout_ms) {
    if (!bytes || !key || !overlapped) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    *overlapped = NULL;
    struct wa_object *o = wa_lookup_or_fail(port, WA_PORT);
    if (!o) return FALSE;
    struct wa_packet *p = NULL;
    unsigned count = wa_port_take(o, &p, 1, wa_deadline(timeout_ms));
    wa_object_release(o);
    if (count == 0) return FALSE;
    *bytes = p->bytes;
    *key = p->key;
    *overlapped = p->ov;
    NTSTATUS status = p->status;
    free(p);
    if (NT_SUCCESS(status)) return TRUE;
    SetLastError(wa_error_from_ntstatus(status));
    return FALSE;
}

BOOL GetQueuedCompletionStatusEx(HANDLE port, LPOVERLAPPED_ENTRY entries, ULONG count,
                                 PULONG removed, DWORD timeout_ms, BOOL alertable) {
    (void)alertable;
    if (removed) *removed = 0;
    if (!entries || !removed || count == 0) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    struct wa_object *o = wa_lookup_or_fail(port, WA_PORT);
    if (!o) return FALSE;
    struct wa_packet *first = NULL;
    *removed = wa_port_take(o, &first, count, wa_deadline(timeout_ms));
    wa_object_release(o);
    if (*removed == 0) return FALSE;
    ULONG i = 0;
    for (struct sn_list *n = &first->node; n; n = n->next) {
        const struct wa_packet *p = SN_CONTAINER(n, struct wa_packet, node);
        entries[i++] = (OVERLAPPED_ENTRY){ .lpCompletionKey = p->key,
                                           .lpOverlapped = p->ov,
                                           .Internal = (ULONG_PTR)(DWORD)p->status,
                                           .dwNumberOfBytesTransferred = p->bytes };
    }
    free_chain(&first->node);
    return TRUE;
}

BOOL PostQueuedCompletionStatus(HANDLE port, DWORD bytes, ULONG_PTR key, LPOVERLAPPED overlapped) {
    struct wa_object *o = wa_lookup_or_fail(port, WA_PORT);
    if (!o) return FALSE;
    struct wa_packet *p = malloc(sizeof *p);
    if (p) {
        *p = (struct wa_packet){
            .key = key, .ov = overlapped, .status = STATUS_SUCCESS, .bytes = bytes
        };
        wa_port_push(o, p);
    } else {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    }
    wa_object_release(o);
    return p != NULL;
}

int SoftNdPortGetFd(HANDLE port) {
    struct wa_object *o = wa_lookup_or_fail(port, WA_PORT);
    if (!o) return -1;
    pthread_mutex_lock(&o->lock);
    int fd = wa_fd_get_locked(o, !sn_list_empty(&o->u.port.packets));
    pthread_mutex_unlock(&o->lock);
    wa_object_release(o);
    return fd;
}
