/* SPDX-License-Identifier: MIT
 * softnd_file.h - the provider's side of overlapped files, on Linux.
 * Owns:    how a request begins, completes and is cancelled.
 * Threads: every function from any thread, with any provider lock held: none of them calls back
 *          (CancelIoEx does, see SoftNdFileSetCancel) and none blocks, unless said.
 * Errors:  only where a function returns something.
 *
 * A provider makes a file for the client (SoftNdFileCreate), takes references to it for each
 * object created with it, and per request calls SoftNdFileBegin once, then exactly one of
 * SoftNdFileComplete and SoftNdFileFail. Until then the OVERLAPPED is the request's; from the
 * moment Complete stores Internal it is the client's again and may be gone at once.
 */
#ifndef SOFTND_FILE_H
#define SOFTND_FILE_H

#include "softnd_win32.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The object behind a file handle. */
typedef struct SOFTND_FILE SOFTND_FILE;

/* A new overlapped file, with FILE_SKIP_COMPLETION_PORT_ON_SUCCESS and
 * FILE_SKIP_SET_EVENT_ON_HANDLE set. The handle owns the one reference; the client ends it with
 * CloseHandle. NULL with last error ERROR_NOT_ENOUGH_MEMORY. */
SOFTND_API HANDLE SoftNdFileCreate(void);

/* Whether the handle is an open overlapped file. Any value may be asked about. */
SOFTND_API BOOL SoftNdFileIsValid(HANDLE handle);

/* The object of a file handle, with a reference that the caller gives back by SoftNdFileRelease;
 * it stays usable after the client closed the handle, and so does its port. NULL if the handle is
 * not an open overlapped file. */
SOFTND_API SOFTND_FILE *SoftNdFileReference(HANDLE handle);

/* One more reference; one less. The last one frees the file. */
SOFTND_API void SoftNdFileAddRef(SOFTND_FILE *file);
SOFTND_API void SoftNdFileRelease(SOFTND_FILE *file);

/* A request is about to be accepted: Internal = STATUS_PENDING, InternalHigh = 0, and the event
 * (hEvent without its lowest bit, if any) is reset. Nothing else of the OVERLAPPED is read or
 * written, and Offset, OffsetHigh need no initial value. Call it before another thread can
 * complete the request. The file keeps no record of the request: the provider does, and it holds
 * a reference to the file until the request completed. The memory that the completion needs is
 * taken here: TRUE; FALSE if there is none, with nothing changed: refuse the request then, and
 * call neither Complete nor Fail. */
SOFTND_API BOOL SoftNdFileBegin(SOFTND_FILE *file, OVERLAPPED *overlapped);

/* Takes SoftNdFileBegin back when the method is going to return a failure after all: stores
 * status in Internal. No event, no packet. */
SOFTND_API void SoftNdFileFail(SOFTND_FILE *file, OVERLAPPED *overlapped, LONG ntstatus);

/* Completes a request, in this order: reads hEvent, stores InternalHigh = bytes, stores
 * Internal = ntstatus (zero-extended, release order), sets the event hEvent without its lowest
 * bit if there is one, and queues exactly one packet {key, overlapped, bytes, ntstatus} to the
 * port (or callback) that the file is bound to by now, unless the lowest bit of hEvent is set or
 * the file is not bound. The notification modes do not matter: every request reaching this
 * function was answered with ND_PENDING. An hEvent that is not a live event is ignored. A packet
 * never fails for want of memory. Without FILE_SKIP_SET_EVENT_ON_HANDLE the file is signalled too;
 * threads inside GetOverlappedResult(wait) are woken in any case. */
SOFTND_API void SoftNdFileComplete(SOFTND_FILE *file, OVERLAPPED *overlapped, LONG ntstatus,
                                   ULONG_PTR bytes);

/* The same, for a caller that holds a lock which a woken thread would take next: all is done but
 * that the last thread to wake may not run yet. It does after SoftNdFileWake, to which the result
 * goes (NULL does nothing), at any time, whatever became of file and request meanwhile. */
SOFTND_API void *SoftNdFileCompleteHeld(SOFTND_FILE *file, OVERLAPPED *overlapped, LONG ntstatus,
                                        ULONG_PTR bytes);
SOFTND_API void SoftNdFileWake(void *held);

/* For a provider's own blocking calls: a sleep like that of the waits of this library, so that the
 * thread may lead (below). The sleeper is the calling thread's from acquire to release; NULL: no
 * memory. Sleep returns after SoftNdFileWake of the sleeper, and at times without it; a wake that
 * comes before it is not lost, one that comes after release does no harm. */
SOFTND_API void *SoftNdSleeperAcquire(void);
SOFTND_API void SoftNdSleeperSleep(void *sleeper);
SOFTND_API void SoftNdSleeperRelease(void *sleeper);

/* Lets a thread that is about to sleep in one of the waits of this library (for objects, a port, a
 * request) sleep in the provider's place instead and do its work, so that what it waits for needs
 * no other thread. One thread at a time leads, and only while no other one sleeps here. */
typedef struct SOFTND_WAIT_HOOK {
    /* The calling thread may lead: until end. FALSE: it shall sleep as usual. */
    BOOL (*begin)(void *context);
    /* Sleeps until the provider has work, wake, or the deadline (CLOCK_MONOTONIC; INT64_MAX:
     * never), somewhat early or late. */
    void (*sleep)(void *context, LONGLONG deadline_ns);
    /* Does the work. FALSE: the thread shall not lead any more. */
    BOOL (*work)(void *context);
    /* Ends the sleep, or the next one; during begin it may do nothing. Any thread, with a lock of
     * this library held. */
    void (*wake)(void *context);
    void (*end)(void *context, BOOL others_sleep);
} SOFTND_WAIT_HOOK;

/* Sets the hook, which stays valid, and its context; a hook of NULL takes it away, and returns when
 * nobody is inside it any more. Not from within the hook. */
SOFTND_API void SoftNdSetWaitHook(const SOFTND_WAIT_HOOK *hook, void *context);

/* What CancelIoEx calls: cancel this pending request of the file, or with overlapped = NULL all
 * of them. Returns TRUE if it found at least one. It may complete them before it returns. */
typedef BOOL (*SOFTND_CANCEL_FN)(void *context, OVERLAPPED *overlapped);

/* Sets the file's cancel function; NULL takes it away (CancelIoEx then fails with
 * ERROR_NOT_FOUND). It is called on the thread of CancelIoEx, with no lock of this library held,
 * from several threads at once if the client calls so. SoftNdFileSetCancel returns only when no
 * call of the former function is running, except the one it is called from; so hold no lock that
 * the function takes. */
SOFTND_API void SoftNdFileSetCancel(SOFTND_FILE *file, SOFTND_CANCEL_FN cancel, void *context);

#ifdef __cplusplus
}
#endif

#endif
