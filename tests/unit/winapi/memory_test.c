/* SPDX-License-Identifier: MIT
 * memory_test.c - what happens when memory, threads or descriptors run out. The linker sends the
 * calls of the code under test to the functions below.
 */
#include <errno.h>
#include "threads.h"

static bool no_memory, no_threads, no_descriptors;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg);
int __real_eventfd(unsigned count, int flags);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg);
int __wrap_eventfd(unsigned count, int flags);

void *__wrap_malloc(size_t n) {
    return no_memory ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size) {
    return no_memory ? NULL : __real_calloc(n, size);
}
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg) {
    return no_threads ? EAGAIN : __real_pthread_create(t, a, run, arg);
}
int __wrap_eventfd(unsigned count, int flags) {
    errno = EMFILE;
    return no_descriptors ? -1 : __real_eventfd(count, flags);
}

static void wait_without_memory_fails_and_leaves_the_object_alone(void) {
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL), both[2] = { e, NULL };
    both[1] = CreateEventW(NULL, FALSE, FALSE, NULL);
    no_memory = true; /* no thread has slept yet in this process: there is no parker to reuse */
    DWORD one = WaitForSingleObject(e, 1000), one_error = GetLastError();
    DWORD all = WaitForMultipleObjects(2, both, TRUE, 1000), all_error = GetLastError();
    DWORD poll_only = WaitForSingleObject(e, 0);
    no_memory = false;
    CHECK_EQ(one, WAIT_FAILED);
    CHECK_EQ(one_error, ERROR_NOT_ENOUGH_MEMORY);
    CHECK_EQ(all, WAIT_FAILED);
    CHECK_EQ(all_error, ERROR_NOT_ENOUGH_MEMORY);
    CHECK_EQ(poll_only, WAIT_TIMEOUT);
    CHECK(SetEvent(e));
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_OBJECT_0);
    CHECK(CloseHandle(e) && CloseHandle(both[1]));
}

static void port_wait_without_memory_fails(void) {
    HANDLE p = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    DWORD bytes;
    ULONG_PTR key;
    OVERLAPPED *ov;
    no_memory = true;
    BOOL got = GetQueuedCompletionStatus(p, &bytes, &key, &ov, 1000);
    DWORD error = GetLastError();
    BOOL posted = PostQueuedCompletionStatus(p, 0, 0, NULL);
    DWORD post_error = GetLastError();
    no_memory = false;
    CHECK(!got);
    CHECK_EQ(error, ERROR_NOT_ENOUGH_MEMORY);
    CHECK(!posted);
    CHECK_EQ(post_error, ERROR_NOT_ENOUGH_MEMORY);
    CHECK(CloseHandle(p));
}

static void creating_without_memory_fails_once_the_table_is_full(void) {
    enum { N = 1000 };
    static HANDLE handles[N];
    int made = 0;
    no_memory = true;
    while (made < N && (handles[made] = CreateEventW(NULL, TRUE, FALSE, NULL)) != NULL)
        made++;
    DWORD error = GetLastError();
    HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    HANDLE file = SoftNdFileCreate();
    no_memory = false;
    CHECK(made < N);
    CHECK_EQ(error, ERROR_NOT_ENOUGH_MEMORY);
    CHECK(!port && !file);
    CHECK((handles[made] = CreateEventW(NULL, TRUE, FALSE, NULL)) != NULL);
    for (int i = 0; i <= made; i++)
        CHECK(CloseHandle(handles[i]));
}

static void request_without_memory_is_refused_before_it_begins(void) {
    HANDLE f = SoftNdFileCreate(), e = CreateEventW(NULL, TRUE, TRUE, NULL);
    SOFTND_FILE *o = SoftNdFileReference(f);
    OVERLAPPED ov = { .Internal = 77, .InternalHigh = 78, .hEvent = e };
    no_memory = true;
    BOOL begun = SoftNdFileBegin(o, &ov);
    no_memory = false;
    CHECK(!begun);
    CHECK_EQ(ov.Internal, 77);
    CHECK_EQ(ov.InternalHigh, 78);
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_OBJECT_0);
    SoftNdFileRelease(o);
    CHECK(CloseHandle(f) && CloseHandle(e));
}

static void completion_without_memory_is_not_lost(void) {
    HANDLE f = SoftNdFileCreate();
    HANDLE p = CreateIoCompletionPort(f, NULL, 5, 0);
    SOFTND_FILE *o = SoftNdFileReference(f);
    OVERLAPPED ov[3] = { 0 }, *got;
    DWORD bytes;
    ULONG_PTR key;
    for (int i = 0; i < 3; i++)
        CHECK(SoftNdFileBegin(o, &ov[i]));
    no_memory = true;
    for (int i = 0; i < 3; i++)
        SoftNdFileComplete(o, &ov[i], STATUS_SUCCESS, (ULONG_PTR)i);
    bool all = true;
    for (int i = 0; i < 3; i++)
        all = all && GetQueuedCompletionStatus(p, &bytes, &key, &got, 0) && got == &ov[i];
    no_memory = false;
    CHECK(all);
    SoftNdFileRelease(o);
    CHECK(CloseHandle(f) && CloseHandle(p));
}

static void count_call(DWORD error, DWORD bytes, LPOVERLAPPED ov) {
    (void)error;
    (void)bytes;
    SetEvent(ov->Pointer);
}

static void callback_binding_without_threads_fails_and_can_be_repeated(void) {
    HANDLE f = SoftNdFileCreate(), done = CreateEventW(NULL, TRUE, FALSE, NULL);
    SOFTND_FILE *o = SoftNdFileReference(f);
    OVERLAPPED ov = { .Pointer = done };
    no_threads = true;
    BOOL bound = BindIoCompletionCallback(f, count_call, 0);
    DWORD error = GetLastError();
    no_threads = false;
    CHECK(!bound);
    CHECK_EQ(error, ERROR_NOT_ENOUGH_MEMORY);
    CHECK(BindIoCompletionCallback(f, count_call, 0));
    CHECK(SoftNdFileBegin(o, &ov));
    SoftNdFileComplete(o, &ov, STATUS_SUCCESS, 0);
    CHECK_EQ(WaitForSingleObject(done, PATIENCE_MS), WAIT_OBJECT_0);
    SoftNdFileRelease(o);
    CHECK(CloseHandle(f) && CloseHandle(done));
}

static void descriptor_without_descriptors_fails_and_can_be_repeated(void) {
    HANDLE e = CreateEventW(NULL, TRUE, TRUE, NULL);
    no_descriptors = true;
    int fd = SoftNdEventGetFd(e);
    no_descriptors = false;
    CHECK_EQ(fd, -1);
    CHECK_EQ(GetLastError(), ERROR_TOO_MANY_OPEN_FILES);
    fd = SoftNdEventGetFd(e);
    CHECK(fd >= 0);
    CHECK(fd_readable(fd));
    CHECK(CloseHandle(e));
}

TEST_MAIN(TEST(wait_without_memory_fails_and_leaves_the_object_alone),
          TEST(port_wait_without_memory_fails),
          TEST(creating_without_memory_fails_once_the_table_is_full),
          TEST(request_without_memory_is_refused_before_it_begins),
          TEST(completion_without_memory_is_not_lost),
          TEST(callback_binding_without_threads_fails_and_can_be_repeated),
          TEST(descriptor_without_descriptors_fails_and_can_be_repeated))
