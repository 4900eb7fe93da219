/* SPDX-License-Identifier: MIT
 * event.c - events, CloseHandle, and an event's descriptor.
 */
#include "winapi/object.h"

static HANDLE create_event(bool manual_reset, bool signaled, bool named) {
    if (named) {
        SetLastError(ERROR_NOT_SUPPORTED);
        return NULL;
    }
    struct wa_object *o = wa_object_create(WA_EVENT);
    if (!o) return NULL;
    o->auto_reset = !manual_reset;
    o->signaled = signaled;
    return wa_object_open(o);
}

HANDLE CreateEventW(LPSECURITY_ATTRIBUTES attributes, BOOL manual_reset, BOOL initial_state,
                    LPCWSTR name) {
    (void)attributes;
    return create_event(manual_reset, initial_state, name != NULL);
}

HANDLE CreateEventA(LPSECURITY_ATTRIBUTES attributes, BOOL manual_reset, BOOL initial_state,
                    LPCSTR name) {
    (void)attributes;
    return create_event(manual_reset, initial_state, name != NULL);
}

BOOL SetEvent(HANDLE event) {
    struct wa_object *o = wa_lookup_or_fail(event, WA_EVENT);
    if (!o) return FALSE;
    wa_signal(o);
    wa_object_release(o);
    return TRUE;
}

BOOL ResetEvent(HANDLE event) {
    struct wa_object *o = wa_lookup_or_fail(event, WA_EVENT);
    if (!o) return FALSE;
    wa_unsignal(o);
    wa_object_release(o);
    return TRUE;
}

int SoftNdEventGetFd(HANDLE event) {
    struct wa_object *o = wa_lookup_or_fail(event, WA_EVENT);
    if (!o) return -1;
    pthread_mutex_lock(&o->lock);
    int fd = wa_fd_get_locked(o, o->signaled);
    pthread_mutex_unlock(&o->lock);
    wa_object_release(o);
    return fd;
}

BOOL CloseHandle(HANDLE handle) {
    struct wa_object *o = wa_lookup_or_fail(handle, WA_EVENT | WA_PORT | WA_FILE);
    if (!o) return FALSE;
    bool closed = wa_object_close(o, handle);
    if (closed) {
        if (o->kind == WA_PORT) wa_port_closed(o);
        wa_object_release(o);
    } else {
        SetLastError(ERROR_INVALID_HANDLE); /* somebody else closed it just now */
    }
    wa_object_release(o);
    return closed;
}
