/* SPDX-License-Identifier: MIT
 * file_test.c - overlapped files, from the provider's and from the client's side.
 */
#include "threads.h"

struct setup {
    HANDLE file, port;
    SOFTND_FILE *object;
};

static struct setup make(bool with_port) {
    struct setup s = { .file = SoftNdFileCreate() };
    CHECK(s.file != NULL);
    s.object = SoftNdFileReference(s.file);
    CHECK(s.object != NULL);
    if (with_port) {
        s.port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
        CHECK(s.port != NULL);
        CHECK_PTR(CreateIoCompletionPort(s.file, s.port, 0xA5A5, 0), s.port);
    }
    return s;
}

static void destroy(struct setup *s) {
    SoftNdFileRelease(s->object);
    CHECK(CloseHandle(s->file));
    if (s->port) CHECK(CloseHandle(s->port));
}

/* The next packet without waiting; -1 none, 0 failed, 1 succeeded. */
static int take(HANDLE port, OVERLAPPED **ov, DWORD *bytes, ULONG_PTR *key) {
    BOOL ok = GetQueuedCompletionStatus(port, bytes, key, ov, 0);
    if (!ok && !*ov) {
        CHECK_EQ(GetLastError(), WAIT_TIMEOUT);
        return -1;
    }
    return ok;
}

static void begin_marks_pending_and_resets_event(void) {
    struct setup s = make(false);
    HANDLE e = CreateEventW(NULL, TRUE, TRUE, NULL);
    OVERLAPPED ov;
    memset(&ov, 0xEE, sizeof ov); /* clients do not zero them */
    ov.hEvent = e;
    CHECK(SoftNdFileBegin(s.object, &ov));
    CHECK_EQ(ov.Internal, STATUS_PENDING);
    CHECK_EQ(ov.InternalHigh, 0);
    CHECK_EQ(ov.Offset, 0xEEEEEEEE);
    CHECK(!HasOverlappedIoCompleted(&ov));
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_TIMEOUT);
    DWORD bytes;
    CHECK(!GetOverlappedResult(s.file, &ov, &bytes, FALSE));
    CHECK_EQ(GetLastError(), ERROR_IO_INCOMPLETE);
    SoftNdFileComplete(s.object, &ov, 0, 0);
    CHECK(CloseHandle(e));
    destroy(&s);
}

static void complete_with_event_and_port_signals_both_once(void) {
    struct setup s = make(true);
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    OVERLAPPED ov = { .hEvent = e }, *got;
    DWORD bytes;
    ULONG_PTR key;
    CHECK(SoftNdFileBegin(s.object, &ov));
    CHECK_EQ(take(s.port, &got, &bytes, &key), -1);
    SoftNdFileComplete(s.object, &ov, STATUS_SUCCESS, 1234);
    CHECK(HasOverlappedIoCompleted(&ov));
    CHECK_EQ(ov.Internal, 0);
    CHECK_EQ(ov.InternalHigh, 1234);
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_OBJECT_0);
    CHECK_EQ(take(s.port, &got, &bytes, &key), 1);
    CHECK_PTR(got, &ov);
    CHECK_EQ(bytes, 1234);
    CHECK_EQ(key, 0xA5A5);
    CHECK_EQ(take(s.port, &got, &bytes, &key), -1);
    CHECK(GetOverlappedResult(s.file, &ov, &bytes, TRUE));
    CHECK_EQ(bytes, 1234);
    CHECK(CloseHandle(e));
    destroy(&s);
}

static void complete_with_tagged_event_signals_it_and_sends_no_packet(void) {
    struct setup s = make(true);
    HANDLE e = CreateEventW(NULL, TRUE, FALSE, NULL);
    OVERLAPPED ov = { .hEvent = (HANDLE)((uintptr_t)e | 1) }, *got;
    DWORD bytes;
    ULONG_PTR key;
    CHECK(SoftNdFileBegin(s.object, &ov));
    SoftNdFileComplete(s.object, &ov, STATUS_SUCCESS, 0);
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_OBJECT_0);
    CHECK_EQ(take(s.port, &got, &bytes, &key), -1);
    CHECK(GetOverlappedResult(s.file, &ov, &bytes, TRUE));
    CHECK(CloseHandle(e));
    destroy(&s);
}

static void failed_request_gives_false_with_pointer_and_mapped_error(void) {
    static const struct {
        DWORD status;
        DWORD error;
    } rows[] = { { 0xC0000120, ERROR_OPERATION_ABORTED }, { 0xC0000236, ERROR_CONNECTION_REFUSED },
                 { 0xC000020C, ERROR_NETNAME_DELETED },   { 0xC00000B5, ERROR_SEM_TIMEOUT },
                 { 0x80000005, ERROR_MORE_DATA },         { 0xC000DEAD, 317 } };
    struct setup s = make(true);
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++) {
        OVERLAPPED ov = { 0 }, *got;
        DWORD bytes;
        ULONG_PTR key;
        CHECK(SoftNdFileBegin(s.object, &ov));
        SoftNdFileComplete(s.object, &ov, (LONG)rows[i].status, 7);
        CHECK_EQ(take(s.port, &got, &bytes, &key), 0);
        CHECK_EQ(GetLastError(), rows[i].error);
        CHECK_PTR(got, &ov);
        CHECK_EQ(bytes, 7);
        CHECK_EQ(ov.Internal, rows[i].status);
        CHECK(!GetOverlappedResult(s.file, &ov, &bytes, FALSE));
        CHECK_EQ(GetLastError(), rows[i].error);
    }
    destroy(&s);
}

static void fail_after_begin_leaves_status_and_sends_nothing(void) {
    struct setup s = make(true);
    HANDLE e = CreateEventW(NULL, TRUE, FALSE, NULL);
    OVERLAPPED ov = { .hEvent = e }, *got;
    DWORD bytes;
    ULONG_PTR key;
    CHECK(SoftNdFileBegin(s.object, &ov));
    SoftNdFileFail(s.object, &ov, (LONG)0xC000000D);
    CHECK_EQ(ov.Internal, 0xC000000D);
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_TIMEOUT);
    CHECK_EQ(take(s.port, &got, &bytes, &key), -1);
    CHECK(CloseHandle(e));
    destroy(&s);
}

static void one_overlapped_in_two_requests_gives_two_packets(void) {
    struct setup s = make(true);
    OVERLAPPED ov = { 0 }, *got;
    DWORD bytes;
    ULONG_PTR key;
    CHECK(SoftNdFileBegin(s.object, &ov));
    CHECK(SoftNdFileBegin(s.object, &ov));
    SoftNdFileComplete(s.object, &ov, STATUS_SUCCESS, 1);
    SoftNdFileComplete(s.object, &ov, STATUS_CANCELLED, 2);
    CHECK_EQ(take(s.port, &got, &bytes, &key), 1);
    CHECK_EQ(take(s.port, &got, &bytes, &key), 0);
    CHECK_EQ(take(s.port, &got, &bytes, &key), -1);
    destroy(&s);
}

static void second_association_is_refused(void) {
    struct setup s = make(true);
    CHECK(CreateIoCompletionPort(s.file, s.port, 1, 0) == NULL);
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    unsigned before = wa_object_count();
    CHECK(CreateIoCompletionPort(s.file, NULL, 1, 0) == NULL);
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK_EQ(wa_object_count(), before); /* the new port did not stay */
    destroy(&s);
}

static void association_without_port_makes_one(void) {
    HANDLE f = SoftNdFileCreate();
    HANDLE p = CreateIoCompletionPort(f, NULL, 42, 0);
    CHECK(p != NULL);
    SOFTND_FILE *o = SoftNdFileReference(f);
    OVERLAPPED ov = { 0 }, *got;
    DWORD bytes;
    ULONG_PTR key;
    CHECK(SoftNdFileBegin(o, &ov));
    SoftNdFileComplete(o, &ov, STATUS_SUCCESS, 0);
    CHECK_EQ(take(p, &got, &bytes, &key), 1);
    CHECK_EQ(key, 42);
    SoftNdFileRelease(o);
    CHECK(CloseHandle(f) && CloseHandle(p));
}

static void association_with_bad_arguments_is_refused(void) {
    HANDLE f = SoftNdFileCreate(), e = CreateEventW(NULL, TRUE, FALSE, NULL);
    HANDLE p = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 4);
    CHECK(!CreateIoCompletionPort(e, p, 0, 0) && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK(!CreateIoCompletionPort(f, e, 0, 0) && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK(!CreateIoCompletionPort(NULL, p, 0, 0) && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK(!CreateIoCompletionPort(INVALID_HANDLE_VALUE, p, 0, 0));
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK(CreateIoCompletionPort(f, p, 0, 0) == p); /* the refusals bound nothing */
    CHECK(CloseHandle(f) && CloseHandle(e) && CloseHandle(p));
}

static void request_outlives_file_and_event_and_port_handles(void) {
    unsigned before = wa_object_count();
    struct setup s = make(true);
    HANDLE e = CreateEventW(NULL, TRUE, FALSE, NULL);
    OVERLAPPED ov = { .hEvent = e };
    CHECK(SoftNdFileBegin(s.object, &ov));
    CHECK(CloseHandle(s.file) && CloseHandle(e) && CloseHandle(s.port));
    CHECK(!SoftNdFileIsValid(s.file));
    SoftNdFileComplete(s.object, &ov, STATUS_SUCCESS, 5);
    CHECK_EQ(ov.InternalHigh, 5);
    SoftNdFileAddRef(s.object);
    SoftNdFileRelease(s.object);
    SoftNdFileRelease(s.object);
    CHECK_EQ(wa_object_count(), before);
}

static void file_closed_with_request_pending_still_sends_its_packet(void) {
    struct setup s = make(true);
    OVERLAPPED ov = { 0 }, *got;
    DWORD bytes;
    ULONG_PTR key;
    CHECK(SoftNdFileBegin(s.object, &ov));
    CHECK(CloseHandle(s.file));
    SoftNdFileComplete(s.object, &ov, STATUS_CANCELLED, 0);
    SoftNdFileRelease(s.object);
    CHECK_EQ(take(s.port, &got, &bytes, &key), 0);
    CHECK_PTR(got, &ov);
    CHECK(CloseHandle(s.port));
}

/* ---- waiting for a result ---- */

struct waiting {
    HANDLE file;
    OVERLAPPED *ov;
    DWORD bytes;
    BOOL ok;
    DWORD error;
};

static void *wait_for_result(void *arg) {
    struct waiting *w = arg;
    w->ok = GetOverlappedResult(w->file, w->ov, &w->bytes, TRUE);
    w->error = GetLastError();
    return NULL;
}

static void result_wait_without_event_is_woken_by_its_own_request(void) {
    struct setup s = make(false);
    OVERLAPPED mine = { 0 }, other = { 0 };
    CHECK(SoftNdFileBegin(s.object, &mine));
    CHECK(SoftNdFileBegin(s.object, &other));
    struct waiting w = { .file = s.file, .ov = &mine };
    pthread_t t = start_thread(wait_for_result, &w);
    await_waiters(s.file, 1);
    SoftNdFileComplete(s.object, &other, STATUS_SUCCESS, 1);
    CHECK_EQ(waiters_of(s.file), 1);
    SoftNdFileComplete(s.object, &mine, STATUS_SUCCESS, 2);
    pthread_join(t, NULL);
    CHECK(w.ok);
    CHECK_EQ(w.bytes, 2);
    destroy(&s);
}

static void result_wait_with_auto_event_takes_it(void) {
    struct setup s = make(false);
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    OVERLAPPED ov = { .hEvent = e };
    CHECK(SoftNdFileBegin(s.object, &ov));
    struct waiting w = { .file = s.file, .ov = &ov };
    pthread_t t = start_thread(wait_for_result, &w);
    await_waiters(e, 1);
    SoftNdFileComplete(s.object, &ov, (LONG)0xC0000236, 0);
    pthread_join(t, NULL);
    CHECK(!w.ok);
    CHECK_EQ(w.error, ERROR_CONNECTION_REFUSED);
    CHECK(CloseHandle(e));
    destroy(&s);
}

static void result_wait_ends_although_another_thread_took_the_event(void) {
    struct setup s = make(false);
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    OVERLAPPED ov = { .hEvent = e };
    struct waiting w[3];
    pthread_t t[3];
    CHECK(SoftNdFileBegin(s.object, &ov));
    for (int i = 0; i < 3; i++) {
        w[i] = (struct waiting){ .file = s.file, .ov = &ov };
        t[i] = start_thread(wait_for_result, &w[i]);
    }
    await_waiters(e, 3);
    SoftNdFileComplete(s.object, &ov, STATUS_SUCCESS, 9);
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
        CHECK(w[i].ok);
        CHECK_EQ(w[i].bytes, 9);
    }
    CHECK(CloseHandle(e));
    destroy(&s);
}

static void result_wait_ignores_an_event_set_by_the_client(void) {
    struct setup s = make(false);
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    OVERLAPPED ov = { .hEvent = e };
    CHECK(SoftNdFileBegin(s.object, &ov));
    struct waiting w = { .file = s.file, .ov = &ov };
    pthread_t t = start_thread(wait_for_result, &w);
    await_waiters(e, 1);
    CHECK(SetEvent(e));
    await_waiters(e, 1); /* it took the signal and waits again */
    CHECK_EQ(ov.Internal, STATUS_PENDING);
    SoftNdFileComplete(s.object, &ov, STATUS_SUCCESS, 3);
    pthread_join(t, NULL);
    CHECK(w.ok);
    CHECK_EQ(w.bytes, 3);
    CHECK(CloseHandle(e));
    destroy(&s);
}

static void result_of_zeroed_overlapped_is_success_without_a_file(void) {
    OVERLAPPED ov = { 0 };
    DWORD bytes = 1;
    CHECK(GetOverlappedResult(NULL, &ov, &bytes, TRUE));
    CHECK_EQ(bytes, 0);
    CHECK(!GetOverlappedResult(NULL, NULL, &bytes, TRUE));
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
}

/* ---- the file as an object to wait for ---- */

static void file_without_skip_mode_is_signaled_by_requests_without_event(void) {
    HANDLE f = wa_file_create(0);
    SOFTND_FILE *o = SoftNdFileReference(f);
    OVERLAPPED ov = { 0 };
    CHECK_EQ(WaitForSingleObject(f, 0), WAIT_TIMEOUT);
    CHECK(SoftNdFileBegin(o, &ov));
    SoftNdFileComplete(o, &ov, STATUS_SUCCESS, 0);
    CHECK_EQ(WaitForSingleObject(f, 0), WAIT_OBJECT_0);
    CHECK(SoftNdFileBegin(o, &ov));
    CHECK_EQ(WaitForSingleObject(f, 0), WAIT_TIMEOUT);
    SoftNdFileComplete(o, &ov, STATUS_SUCCESS, 0);
    CHECK_EQ(WaitForSingleObject(f, 0), WAIT_OBJECT_0);
    CHECK(SetFileCompletionNotificationModes(f, FILE_SKIP_SET_EVENT_ON_HANDLE));
    CHECK(SoftNdFileBegin(o, &ov));
    SoftNdFileComplete(o, &ov, STATUS_SUCCESS, 0);
    CHECK_EQ(WaitForSingleObject(f, 0), WAIT_TIMEOUT);
    SoftNdFileRelease(o);
    CHECK(CloseHandle(f));
}

static void notification_modes_unknown_bits_are_refused(void) {
    HANDLE f = SoftNdFileCreate();
    CHECK(SetFileCompletionNotificationModes(f, 3));
    CHECK(SetFileCompletionNotificationModes(f, 0));
    CHECK(!SetFileCompletionNotificationModes(f, 4));
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK(CloseHandle(f));
}

/* ---- cancelling ---- */

struct cancel_log {
    SOFTND_FILE *file;
    OVERLAPPED *pending;
    OVERLAPPED *asked[4];
    int calls;
};

static BOOL cancel_pending(void *context, OVERLAPPED *ov) {
    struct cancel_log *log = context;
    log->asked[log->calls++ % 4] = ov;
    if (!log->pending || (ov && ov != log->pending)) return FALSE;
    SoftNdFileComplete(log->file, log->pending, STATUS_CANCELLED, 0);
    log->pending = NULL;
    return TRUE;
}

static void cancel_reaches_the_provider_and_completes_the_request(void) {
    struct setup s = make(true);
    OVERLAPPED ov = { 0 }, stranger = { 0 }, *got;
    DWORD bytes;
    ULONG_PTR key;
    struct cancel_log log = { .file = s.object, .pending = &ov };
    CHECK(!CancelIoEx(s.file, NULL) && GetLastError() == ERROR_NOT_FOUND);
    SoftNdFileSetCancel(s.object, cancel_pending, &log);
    CHECK(SoftNdFileBegin(s.object, &ov));
    CHECK(!CancelIoEx(s.file, &stranger) && GetLastError() == ERROR_NOT_FOUND);
    CHECK(CancelIoEx(s.file, &ov));
    CHECK_EQ(take(s.port, &got, &bytes, &key), 0);
    CHECK_EQ(GetLastError(), ERROR_OPERATION_ABORTED);
    CHECK_PTR(got, &ov);
    CHECK(!CancelIo(s.file) && GetLastError() == ERROR_NOT_FOUND);
    CHECK_EQ(log.calls, 3);
    CHECK_PTR(log.asked[0], &stranger);
    CHECK_PTR(log.asked[1], &ov);
    CHECK(log.asked[2] == NULL);
    SoftNdFileSetCancel(s.object, NULL, NULL);
    CHECK(!CancelIo(s.file) && GetLastError() == ERROR_NOT_FOUND);
    CHECK_EQ(log.calls, 3);
    destroy(&s);
}

struct slow_cancel {
    HANDLE entered, leave;
    SOFTND_FILE *file;
    atomic_bool left, removed;
};

static BOOL cancel_slowly(void *context, OVERLAPPED *ov) {
    struct slow_cancel *c = context;
    (void)ov;
    SetEvent(c->entered);
    WaitForSingleObject(c->leave, INFINITE);
    atomic_store(&c->left, true);
    return TRUE;
}

static void *call_cancel(void *file) {
    return (void *)(uintptr_t)CancelIoEx(file, NULL);
}

static void *remove_cancel(void *arg) {
    struct slow_cancel *c = arg;
    SoftNdFileSetCancel(c->file, NULL, NULL);
    atomic_store(&c->removed, true);
    return (void *)(uintptr_t)atomic_load(&c->left);
}

static bool no_cancel(void *arg) {
    return !CancelIoEx(arg, NULL); /* the function is taken away, the wait has begun */
}

static void removing_the_cancel_function_waits(void) {
    struct setup s = make(false);
    struct slow_cancel c = { .entered = CreateEventW(NULL, TRUE, FALSE, NULL),
                             .leave = CreateEventW(NULL, TRUE, FALSE, NULL),
                             .file = s.object };
    void *found, *left;
    SoftNdFileSetCancel(s.object, cancel_slowly, &c);
    pthread_t canceller = start_thread(call_cancel, s.file);
    CHECK_EQ(WaitForSingleObject(c.entered, PATIENCE_MS), WAIT_OBJECT_0);
    pthread_t remover = start_thread(remove_cancel, &c);
    CHECK(!atomic_load(&c.removed));
    CHECK(SetEvent(c.leave));
    pthread_join(canceller, &found);
    pthread_join(remover, &left);
    CHECK_EQ((uintptr_t)found, TRUE);
    CHECK(left != NULL); /* the call had returned before SetCancel did */
    await(no_cancel, s.file, "removal");
    CHECK(CloseHandle(c.entered) && CloseHandle(c.leave));
    destroy(&s);
}

static BOOL cancel_removing_itself(void *context, OVERLAPPED *ov) {
    (void)ov;
    SoftNdFileSetCancel(context, NULL, NULL);
    return TRUE;
}

static void cancel_function_can_remove_itself(void) {
    struct setup s = make(false);
    SoftNdFileSetCancel(s.object, cancel_removing_itself, s.object);
    CHECK(CancelIo(s.file));
    CHECK(!CancelIo(s.file));
    destroy(&s);
}

/* ---- callbacks ---- */

static struct {
    HANDLE done;
    DWORD error, bytes;
    OVERLAPPED *ov;
    atomic_uint calls;
} seen;

static void record_callback(DWORD error, DWORD bytes, LPOVERLAPPED ov) {
    seen.error = error;
    seen.bytes = bytes;
    seen.ov = ov;
    atomic_fetch_add(&seen.calls, 1);
    SetEvent(seen.done);
}

static void bound_callback_gets_status_bytes_and_overlapped(void) {
    struct setup s = make(false);
    OVERLAPPED ov = { 0 };
    seen.done = CreateEventW(NULL, FALSE, FALSE, NULL);
    CHECK(!BindIoCompletionCallback(s.file, NULL, 0) && GetLastError() == ERROR_INVALID_PARAMETER);
    CHECK(!BindIoCompletionCallback(s.file, record_callback, 1));
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK(BindIoCompletionCallback(s.file, record_callback, 0));
    CHECK(!BindIoCompletionCallback(s.file, record_callback, 0));
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK(SoftNdFileBegin(s.object, &ov));
    SoftNdFileComplete(s.object, &ov, (LONG)0xC0000120, 11);
    CHECK_EQ(WaitForSingleObject(seen.done, PATIENCE_MS), WAIT_OBJECT_0);
    CHECK_EQ(seen.error, 0xC0000120);
    CHECK_EQ(seen.bytes, 11);
    CHECK_PTR(seen.ov, &ov);
    CHECK(CloseHandle(seen.done));
    destroy(&s);
}

static HANDLE second_may_run, first_done;

static void block_until_second(DWORD error, DWORD bytes, LPOVERLAPPED ov) {
    (void)error;
    (void)ov;
    if (bytes == 1) {
        WaitForSingleObject(second_may_run, INFINITE);
        SetEvent(first_done);
    } else {
        SetEvent(second_may_run);
    }
}

static void callback_may_wait_for_another_callback(void) {
    struct setup s = make(false);
    OVERLAPPED a = { 0 }, b = { 0 };
    second_may_run = CreateEventW(NULL, TRUE, FALSE, NULL);
    first_done = CreateEventW(NULL, TRUE, FALSE, NULL);
    CHECK(BindIoCompletionCallback(s.file, block_until_second, 0));
    CHECK(SoftNdFileBegin(s.object, &a) && SoftNdFileBegin(s.object, &b));
    SoftNdFileComplete(s.object, &a, STATUS_SUCCESS, 1);
    SoftNdFileComplete(s.object, &b, STATUS_SUCCESS, 2);
    CHECK_EQ(WaitForSingleObject(first_done, PATIENCE_MS), WAIT_OBJECT_0);
    CHECK(CloseHandle(second_may_run) && CloseHandle(first_done));
    destroy(&s);
}

static HANDLE all_may_go;
static atomic_uint inside;

static void block_until_all(DWORD error, DWORD bytes, LPOVERLAPPED ov) {
    (void)error;
    (void)bytes;
    (void)ov;
    atomic_fetch_add(&inside, 1);
    WaitForSingleObject(all_may_go, INFINITE);
    atomic_fetch_sub(&inside, 1);
}

static bool inside_is(void *count) {
    return atomic_load(&inside) == *(unsigned *)count;
}

static bool one_pool_thread_left(void *arg) {
    (void)arg;
    return wa_pool_threads() == 1;
}

static void callback_pool_grows_with_blocked_routines_and_shrinks_again(void) {
    enum { N = 5 };
    struct setup s = make(false);
    OVERLAPPED ov[N] = { 0 };
    unsigned all = N, none = 0;
    all_may_go = CreateEventW(NULL, TRUE, FALSE, NULL);
    atomic_store(&wa_pool_idle_ns, 1000000);
    CHECK(BindIoCompletionCallback(s.file, block_until_all, 0));
    for (int i = 0; i < N; i++) {
        CHECK(SoftNdFileBegin(s.object, &ov[i]));
        SoftNdFileComplete(s.object, &ov[i], STATUS_SUCCESS, 0);
    }
    await(inside_is, &all, "five routines at once");
    CHECK(wa_pool_threads() > N);
    CHECK(SetEvent(all_may_go));
    await(inside_is, &none, "end of the routines");
    await(one_pool_thread_left, NULL, "end of the spare threads");
    atomic_store(&wa_pool_idle_ns, 10000000000);
    CHECK(CloseHandle(all_may_go));
    destroy(&s);
}

/* ---- the OVERLAPPED is the client's as soon as Internal says so ---- */

enum { ROUNDS = 3000 };

static void *complete_rounds(void *arg) {
    _Atomic(OVERLAPPED *) *slot = ((void **)arg)[0];
    SOFTND_FILE *file = ((void **)arg)[1];
    for (int i = 0; i < ROUNDS; i++) {
        OVERLAPPED *ov;
        while ((ov = atomic_exchange(slot, NULL)) == NULL)
            Sleep(0);
        SoftNdFileComplete(file, ov, STATUS_SUCCESS, (ULONG_PTR)i);
    }
    return NULL;
}

/* The client frees the memory and closes the event the moment it sees the status; a late access
 * is a use after free, which the address sanitizer build reports. */
static void overlapped_is_not_touched_after_internal_was_stored(void) {
    struct setup s = make(true);
    _Atomic(OVERLAPPED *) slot = NULL;
    void *args[] = { &slot, s.object };
    pthread_t t = start_thread(complete_rounds, args);
    for (int i = 0; i < ROUNDS; i++) {
        OVERLAPPED *ov = calloc(1, sizeof *ov);
        HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
        ov->hEvent = e;
        CHECK(SoftNdFileBegin(s.object, ov));
        atomic_store(&slot, ov);
        while (!HasOverlappedIoCompleted(ov))
            Sleep(0);
        CHECK_EQ(ov->InternalHigh, i);
        memset(ov, 0xDD, sizeof *ov);
        free(ov);
        CHECK(CloseHandle(e));
    }
    pthread_join(t, NULL);
    OVERLAPPED *got;
    DWORD bytes;
    ULONG_PTR key;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(take(s.port, &got, &bytes, &key), 1);
        CHECK_EQ(bytes, i);
    }
    CHECK_EQ(take(s.port, &got, &bytes, &key), -1);
    destroy(&s);
}

TEST_MAIN(TEST(begin_marks_pending_and_resets_event),
          TEST(complete_with_event_and_port_signals_both_once),
          TEST(complete_with_tagged_event_signals_it_and_sends_no_packet),
          TEST(failed_request_gives_false_with_pointer_and_mapped_error),
          TEST(fail_after_begin_leaves_status_and_sends_nothing),
          TEST(one_overlapped_in_two_requests_gives_two_packets),
          TEST(second_association_is_refused), TEST(association_without_port_makes_one),
          TEST(association_with_bad_arguments_is_refused),
          TEST(request_outlives_file_and_event_and_port_handles),
          TEST(file_closed_with_request_pending_still_sends_its_packet),
          TEST(result_wait_without_event_is_woken_by_its_own_request),
          TEST(result_wait_with_auto_event_takes_it),
          TEST(result_wait_ends_although_another_thread_took_the_event),
          TEST(result_wait_ignores_an_event_set_by_the_client),
          TEST(result_of_zeroed_overlapped_is_success_without_a_file),
          TEST(file_without_skip_mode_is_signaled_by_requests_without_event),
          TEST(notification_modes_unknown_bits_are_refused),
          TEST(cancel_reaches_the_provider_and_completes_the_request),
          TEST(removing_the_cancel_function_waits), TEST(cancel_function_can_remove_itself),
          TEST(bound_callback_gets_status_bytes_and_overlapped),
          TEST(callback_may_wait_for_another_callback),
          TEST(callback_pool_grows_with_blocked_routines_and_shrinks_again),
          TEST(overlapped_is_not_touched_after_internal_was_stored))
