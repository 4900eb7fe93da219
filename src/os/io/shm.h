/* SPDX-License-Identifier: MIT
 * shm.h - nameless memory that two processes share.
 * Owns:    the handle and the mapping. The handle travels in a message of local_sock.h; whoever
 *          has it can map the memory, nobody else can find it. The size is fixed at creation and
 *          can be changed by neither side, so that a mapping never faults.
 * Threads: any; one object by one thread at a time.
 * Errors:  SN_E_PARAM, SN_E_NOMEM, SN_E_RESOURCES, SN_E_WIRE.
 */
#ifndef SN_OS_SHM_H
#define SN_OS_SHM_H

#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

/* Something of the system's that can be given to another process; OS_HANDLE_NONE: none. */
typedef intptr_t os_handle;
#define OS_HANDLE_NONE ((os_handle)-1)
/* OS_HANDLE_NONE is ignored. */
void os_handle_close(os_handle h);

struct os_shm {
    void *base;       /* the mapping, aligned to a page; NULL when not open */
    size_t bytes;     /* as asked for */
    os_handle handle; /* owned; may be closed early, the mapping stays */
};

/* New zeroed memory, mapped read and write. SN_E_PARAM: bytes is 0; SN_E_NOMEM; SN_E_RESOURCES:
 * out of descriptors. *out is closed with os_shm_close. */
SN_MUST_CHECK sn_status os_shm_create(size_t bytes, struct os_shm *out);
/* Maps memory that a peer created. Takes the handle, also on failure. SN_E_WIRE: it is not shared,
 * writable memory of exactly this size whose size is fixed. SN_E_NOMEM, SN_E_RESOURCES. */
SN_MUST_CHECK sn_status os_shm_open(os_handle handle, size_t bytes, struct os_shm *out);
/* As os_shm_create, but whoever is given the handle can only map it to read it (where the system
 * can hold them to that). */
SN_MUST_CHECK sn_status os_shm_create_published(size_t bytes, struct os_shm *out);
/* As os_shm_open, but maps it to read only; it need not be writable. */
SN_MUST_CHECK sn_status os_shm_open_readonly(os_handle handle, size_t bytes, struct os_shm *out);
/* Unmaps and closes the handle; the other side's mapping stays. Zeroed memory and a second call
 * are fine. */
void os_shm_close(struct os_shm *shm);

#endif
