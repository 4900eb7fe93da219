/* SPDX-License-Identifier: MIT
 * event_test.c - handles and events: states, bad handles, the descriptor, handle reuse.
 */
#include "threads.h"

static void manual_event_set_stays_until_reset(void) {
    HANDLE e = CreateEventW(NULL, TRUE, FALSE, NULL);
    CHECK(e != NULL);
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_TIMEOUT);
    CHECK(SetEvent(e));
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_OBJECT_0);
    CHECK_EQ(WaitForSingleObject(e, INFINITE), WAIT_OBJECT_0);
    CHECK(ResetEvent(e));
    CHECK_EQ(WaitForSingleObject(e, 1), WAIT_TIMEOUT);
    CHECK(CloseHandle(e));
}

static void auto_event_set_twice_satisfies_one_wait(void) {
    HANDLE e = CreateEventA(NULL, FALSE, TRUE, NULL);
    CHECK(e != NULL);
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_OBJECT_0);
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_TIMEOUT);
    CHECK(SetEvent(e));
    CHECK(SetEvent(e));
    CHECK_EQ(WaitForSingleObjectEx(e, 0, TRUE), WAIT_OBJECT_0);
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_TIMEOUT);
    CHECK(CloseHandle(e));
}

static void handle_value_low_bits_are_clear_and_ignored(void) {
    HANDLE e = CreateEventW(NULL, TRUE, FALSE, NULL);
    CHECK_EQ((uintptr_t)e & 3, 0);
    HANDLE tagged = (HANDLE)((uintptr_t)e | 1);
    CHECK(SetEvent(tagged));
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_OBJECT_0);
    CHECK(ResetEvent(tagged));
    CHECK_EQ(WaitForSingleObject(tagged, 0), WAIT_TIMEOUT);
    CHECK(CloseHandle(tagged));
    CHECK(!CloseHandle(e));
}

static void expect_invalid(HANDLE h) {
    LPOVERLAPPED ov;
    DWORD bytes;
    ULONG_PTR key;
    OVERLAPPED request = { .Internal = STATUS_PENDING };
    SetLastError(0);
#define EXPECT_INVALID(call, failure)                                                              \
    do {                                                                                           \
        SetLastError(0);                                                                           \
        CHECK_EQ((long long)(intptr_t)(call), (long long)(intptr_t)(failure));                     \
        CHECK_EQ(GetLastError(), ERROR_INVALID_HANDLE);                                            \
    } while (0)
    EXPECT_INVALID(SetEvent(h), FALSE);
    EXPECT_INVALID(ResetEvent(h), FALSE);
    EXPECT_INVALID(CloseHandle(h), FALSE);
    EXPECT_INVALID((LONG)WaitForSingleObject(h, 0), (LONG)WAIT_FAILED);
    EXPECT_INVALID(SoftNdEventGetFd(h), -1);
    EXPECT_INVALID(SoftNdPortGetFd(h), -1);
    EXPECT_INVALID(GetQueuedCompletionStatus(h, &bytes, &key, &ov, 0), FALSE);
    EXPECT_INVALID(PostQueuedCompletionStatus(h, 0, 0, NULL), FALSE);
    EXPECT_INVALID(SetFileCompletionNotificationModes(h, 1), FALSE);
    EXPECT_INVALID(BindIoCompletionCallback(h, NULL, 0), FALSE);
    EXPECT_INVALID(CancelIoEx(h, NULL), FALSE);
    EXPECT_INVALID(CancelIo(h), FALSE);
    EXPECT_INVALID(GetOverlappedResult(h, &request, &bytes, TRUE), FALSE);
    EXPECT_INVALID(GetProcAddress(h, "x"), 0);
    EXPECT_INVALID(FreeLibrary(h), FALSE);
    CHECK(!SoftNdFileIsValid(h));
    CHECK(SoftNdFileReference(h) == NULL);
}

static void call_with_bad_handle_fails_with_invalid_handle(void) {
    HANDLE closed = CreateEventW(NULL, TRUE, FALSE, NULL);
    CHECK(CloseHandle(closed));
    const uintptr_t values[] = { 0, 4, 8, 0xDEADBEE0u, UINTPTR_MAX, UINTPTR_MAX - 3, 1ull << 62 };
    for (size_t i = 0; i < SN_ARRAY_LEN(values); i++)
        expect_invalid((HANDLE)values[i]);
    expect_invalid(closed);
    int on_stack;
    expect_invalid(&on_stack);
}

static void call_with_handle_of_other_kind_fails(void) {
    HANDLE e = CreateEventW(NULL, TRUE, FALSE, NULL);
    HANDLE p = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    HANDLE f = SoftNdFileCreate();
    CHECK(e && p && f);
    CHECK(!SetEvent(p) && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK(!PostQueuedCompletionStatus(e, 0, 0, NULL) && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK(!CancelIoEx(e, NULL) && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK_EQ(WaitForSingleObject(p, 0), WAIT_FAILED);
    CHECK(!FreeLibrary(e) && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK(!SoftNdFileIsValid(e));
    CHECK(SoftNdFileIsValid(f));
    CHECK(CloseHandle(e) && CloseHandle(p) && CloseHandle(f));
}

static void closed_handle_value_is_not_given_to_the_next_object(void) {
    HANDLE a = CreateEventW(NULL, TRUE, FALSE, NULL);
    CHECK(CloseHandle(a));
    for (int i = 0; i < 1000; i++) {
        HANDLE b = CreateEventW(NULL, TRUE, FALSE, NULL);
        CHECK(b != NULL && b != a);
        CHECK(!SetEvent(a));
        CHECK(CloseHandle(b));
    }
}

static void many_handles_are_all_different_and_valid(void) {
    enum { N = 5000 };
    static HANDLE handles[N];
    unsigned before = wa_object_count();
    for (int i = 0; i < N; i++)
        CHECK((handles[i] = CreateEventW(NULL, TRUE, FALSE, NULL)) != NULL);
    CHECK_EQ(wa_object_count(), before + N);
    for (int i = 0; i < N; i += 2)
        CHECK(SetEvent(handles[i]));
    for (int i = 0; i < N; i++)
        CHECK_EQ(WaitForSingleObject(handles[i], 0), i % 2 ? WAIT_TIMEOUT : WAIT_OBJECT_0);
    for (int i = 0; i < N; i++)
        CHECK(CloseHandle(handles[i]));
    CHECK_EQ(wa_object_count(), before);
}

static void named_event_is_refused(void) {
    CHECK(CreateEventW(NULL, TRUE, FALSE, u"name") == NULL);
    CHECK_EQ(GetLastError(), ERROR_NOT_SUPPORTED);
    CHECK(CreateEventA(NULL, TRUE, FALSE, "name") == NULL);
    CHECK_EQ(GetLastError(), ERROR_NOT_SUPPORTED);
}

static void event_descriptor_follows_the_state(void) {
    HANDLE e = CreateEventW(NULL, TRUE, TRUE, NULL);
    int fd = SoftNdEventGetFd(e);
    CHECK(fd >= 0);
    CHECK_EQ(SoftNdEventGetFd(e), fd);
    CHECK(fd_readable(fd));
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_OBJECT_0);
    CHECK(fd_readable(fd)); /* manual-reset: a wait takes nothing */
    CHECK(ResetEvent(e));
    CHECK(!fd_readable(fd));
    CHECK(ResetEvent(e) && SetEvent(e) && SetEvent(e));
    CHECK(fd_readable(fd));
    CHECK(ResetEvent(e));
    CHECK(!fd_readable(fd));
    CHECK(CloseHandle(e));
}

static void auto_event_descriptor_falls_when_a_wait_takes_it(void) {
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    int fd = SoftNdEventGetFd(e);
    CHECK(fd >= 0);
    CHECK(!fd_readable(fd));
    CHECK(SetEvent(e));
    CHECK(fd_readable(fd));
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_OBJECT_0);
    CHECK(!fd_readable(fd));
    CHECK(CloseHandle(e));
}

static void *set_one_error(void *arg) {
    SetLastError(0);
    SetLastError(*(DWORD *)arg);
    *(DWORD *)arg = GetLastError();
    return NULL;
}

static void last_error_is_per_thread(void) {
    DWORD other = 77;
    SetLastError(5);
    pthread_join(start_thread(set_one_error, &other), NULL);
    CHECK_EQ(other, 77);
    CHECK_EQ(GetLastError(), 5);
}

static void *close_it(void *arg) {
    return (void *)(uintptr_t)CloseHandle(arg);
}

static void concurrent_close_succeeds_exactly_once(void) {
    for (int round = 0; round < 200; round++) {
        HANDLE e = CreateEventW(NULL, TRUE, FALSE, NULL);
        pthread_t t[3];
        uintptr_t closed = 0;
        for (int i = 0; i < 3; i++)
            t[i] = start_thread(close_it, e);
        for (int i = 0; i < 3; i++) {
            void *result;
            pthread_join(t[i], &result);
            closed += (uintptr_t)result;
        }
        CHECK_EQ(closed, 1);
    }
}

static atomic_bool stop_using;

static void *use_stale_handles(void *arg) {
    _Atomic(HANDLE) *shared = arg;
    while (!atomic_load(&stop_using)) {
        HANDLE h = atomic_load(shared);
        SetEvent(h);
        WaitForSingleObject(h, 0);
        ResetEvent(h);
    }
    return NULL;
}

static void handles_used_while_others_close_them_do_no_harm(void) {
    _Atomic(HANDLE) shared = NULL;
    atomic_store(&stop_using, false);
    unsigned before = wa_object_count();
    pthread_t t = start_thread(use_stale_handles, &shared);
    for (int i = 0; i < 20000; i++) {
        HANDLE e = CreateEventW(NULL, i & 1, FALSE, NULL);
        CHECK(e != NULL);
        atomic_store(&shared, e);
        CHECK(CloseHandle(e));
    }
    atomic_store(&stop_using, true);
    pthread_join(t, NULL);
    CHECK_EQ(wa_object_count(), before);
}

TEST_MAIN(TEST(manual_event_set_stays_until_reset), TEST(auto_event_set_twice_satisfies_one_wait),
          TEST(handle_value_low_bits_are_clear_and_ignored),
          TEST(call_with_bad_handle_fails_with_invalid_handle),
          TEST(call_with_handle_of_other_kind_fails),
          TEST(closed_handle_value_is_not_given_to_the_next_object),
          TEST(many_handles_are_all_different_and_valid), TEST(named_event_is_refused),
          TEST(event_descriptor_follows_the_state),
          TEST(auto_event_descriptor_falls_when_a_wait_takes_it), TEST(last_error_is_per_thread),
          TEST(concurrent_close_succeeds_exactly_once),
          TEST(handles_used_while_others_close_them_do_no_harm))
