/* SPDX-License-Identifier: MIT
 * port_test.c - I/O completion ports: order, waiting, closing, the descriptor, several threads.
 */
#include "threads.h"

static HANDLE new_port(void) {
    HANDLE p = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    CHECK(p != NULL);
    return p;
}

static void posted_packets_come_out_in_order_with_their_values(void) {
    HANDLE p = new_port();
    OVERLAPPED ov[3];
    memset(ov, 0x77, sizeof ov);
    for (DWORD i = 0; i < 3; i++)
        CHECK(PostQueuedCompletionStatus(p, 100 + i, 200 + i, i == 2 ? NULL : &ov[i]));
    for (DWORD i = 0; i < 3; i++) {
        DWORD bytes;
        ULONG_PTR key;
        LPOVERLAPPED got;
        CHECK(GetQueuedCompletionStatus(p, &bytes, &key, &got, INFINITE));
        CHECK_EQ(bytes, 100 + i);
        CHECK_EQ(key, 200 + i);
        CHECK_PTR(got, i == 2 ? NULL : &ov[i]);
    }
    CHECK_EQ(ov[0].Internal, 0x7777777777777777); /* only a value to the port */
    CHECK(CloseHandle(p));
}

static void empty_port_times_out_with_null_overlapped(void) {
    HANDLE p = new_port();
    DWORD bytes = 0;
    ULONG_PTR key = 0;
    OVERLAPPED dummy;
    LPOVERLAPPED got = &dummy;
    CHECK(!GetQueuedCompletionStatus(p, &bytes, &key, &got, 0));
    CHECK_EQ(GetLastError(), WAIT_TIMEOUT);
    CHECK(got == NULL);
    int64_t begin = wa_now_ns();
    got = &dummy;
    CHECK(!GetQueuedCompletionStatus(p, &bytes, &key, &got, 30));
    CHECK_EQ(GetLastError(), WAIT_TIMEOUT);
    CHECK(got == NULL);
    CHECK(wa_now_ns() - begin >= 30 * 1000000);
    CHECK(CloseHandle(p));
}

static void missing_out_pointers_are_refused(void) {
    HANDLE p = new_port();
    DWORD bytes;
    ULONG removed;
    ULONG_PTR key;
    LPOVERLAPPED ov;
    OVERLAPPED_ENTRY entry;
    CHECK(!GetQueuedCompletionStatus(p, NULL, &key, &ov, 0));
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK(!GetQueuedCompletionStatus(p, &bytes, NULL, &ov, 0));
    CHECK(!GetQueuedCompletionStatus(p, &bytes, &key, NULL, 0));
    CHECK(!GetQueuedCompletionStatusEx(p, NULL, 1, &removed, 0, FALSE));
    CHECK(!GetQueuedCompletionStatusEx(p, &entry, 0, &removed, 0, FALSE));
    CHECK(!GetQueuedCompletionStatusEx(p, &entry, 1, NULL, 0, FALSE));
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK(CloseHandle(p));
}

static void entries_carry_each_packets_status(void) {
    HANDLE p = new_port(), f = SoftNdFileCreate();
    SOFTND_FILE *o = SoftNdFileReference(f);
    CHECK(CreateIoCompletionPort(f, p, 9, 0) == p);
    OVERLAPPED ov[3] = { 0 };
    const DWORD status[3] = { 0, 0xC0000120, 0xC0000236 };
    for (int i = 0; i < 3; i++) {
        CHECK(SoftNdFileBegin(o, &ov[i]));
        SoftNdFileComplete(o, &ov[i], (LONG)status[i], 50 + (ULONG_PTR)i);
    }
    OVERLAPPED_ENTRY entries[8];
    ULONG removed = 0;
    CHECK(GetQueuedCompletionStatusEx(p, entries, 2, &removed, INFINITE, FALSE));
    CHECK_EQ(removed, 2);
    CHECK(GetQueuedCompletionStatusEx(p, entries + 2, 6, &removed, 0, TRUE));
    CHECK_EQ(removed, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(entries[i].lpCompletionKey, 9);
        CHECK_PTR(entries[i].lpOverlapped, &ov[i]);
        CHECK_EQ(entries[i].Internal, status[i]);
        CHECK_EQ(entries[i].dwNumberOfBytesTransferred, 50 + i);
    }
    removed = 99;
    CHECK(!GetQueuedCompletionStatusEx(p, entries, 8, &removed, 0, FALSE));
    CHECK_EQ(GetLastError(), WAIT_TIMEOUT);
    CHECK_EQ(removed, 0);
    SoftNdFileRelease(o);
    CHECK(CloseHandle(f) && CloseHandle(p));
}

struct dequeue {
    HANDLE port;
    BOOL ok;
    DWORD bytes, error;
    ULONG_PTR key;
    LPOVERLAPPED ov;
};

static void *dequeue_one(void *arg) {
    struct dequeue *d = arg;
    d->ok = GetQueuedCompletionStatus(d->port, &d->bytes, &d->key, &d->ov, INFINITE);
    d->error = GetLastError();
    return NULL;
}

static void closing_the_port_ends_all_waits_as_abandoned(void) {
    enum { N = 3 };
    unsigned before = wa_object_count();
    HANDLE p = new_port();
    struct dequeue d[N];
    pthread_t t[N];
    for (int i = 0; i < N; i++) {
        d[i] = (struct dequeue){ .port = p, .ok = TRUE };
        t[i] = start_thread(dequeue_one, &d[i]);
    }
    await_waiters(p, N);
    CHECK(CloseHandle(p));
    for (int i = 0; i < N; i++) {
        pthread_join(t[i], NULL);
        CHECK(!d[i].ok);
        CHECK(d[i].ov == NULL);
        CHECK_EQ(d[i].error, ERROR_ABANDONED_WAIT_0);
    }
    CHECK_EQ(wa_object_count(), before);
}

static void closing_the_port_drops_packets_and_later_completions(void) {
    unsigned before = wa_object_count();
    HANDLE p = new_port(), f = SoftNdFileCreate();
    SOFTND_FILE *o = SoftNdFileReference(f);
    OVERLAPPED ov = { 0 };
    CHECK(CreateIoCompletionPort(f, p, 0, 0) == p);
    CHECK(PostQueuedCompletionStatus(p, 0, 0, NULL));
    CHECK(SoftNdFileBegin(o, &ov));
    CHECK(CloseHandle(p));
    SoftNdFileComplete(o, &ov, STATUS_SUCCESS, 0);
    CHECK_EQ(ov.Internal, 0);
    SoftNdFileRelease(o);
    CHECK(CloseHandle(f));
    CHECK_EQ(wa_object_count(), before);
}

static void last_to_wait_is_woken_first(void) {
    HANDLE p = new_port();
    struct dequeue d[3];
    pthread_t t[3];
    for (unsigned i = 0; i < 3; i++) {
        d[i] = (struct dequeue){ .port = p };
        t[i] = start_thread(dequeue_one, &d[i]);
        await_waiters(p, i + 1);
    }
    for (unsigned i = 3; i-- > 0;) {
        CHECK(PostQueuedCompletionStatus(p, i, 0, NULL));
        pthread_join(t[i], NULL);
        CHECK(d[i].ok);
        CHECK_EQ(d[i].bytes, i);
        CHECK_EQ(waiters_of(p), i);
    }
    CHECK(CloseHandle(p));
}

static void port_descriptor_is_readable_while_packets_wait(void) {
    HANDLE p = new_port();
    CHECK(PostQueuedCompletionStatus(p, 1, 0, NULL));
    int fd = SoftNdPortGetFd(p);
    CHECK(fd >= 0);
    CHECK_EQ(SoftNdPortGetFd(p), fd);
    CHECK(fd_readable(fd));
    CHECK(PostQueuedCompletionStatus(p, 2, 0, NULL));
    DWORD bytes;
    ULONG_PTR key;
    LPOVERLAPPED ov;
    CHECK(GetQueuedCompletionStatus(p, &bytes, &key, &ov, 0));
    CHECK(fd_readable(fd));
    CHECK(GetQueuedCompletionStatus(p, &bytes, &key, &ov, 0));
    CHECK(!fd_readable(fd));
    CHECK(PostQueuedCompletionStatus(p, 3, 0, NULL));
    CHECK(fd_readable(fd));
    CHECK(CloseHandle(p));
}

/* ---- several producers and consumers ---- */

enum { PRODUCERS = 3, CONSUMERS = 3, EACH = 4000 };

static atomic_uchar received[PRODUCERS * EACH];
static atomic_uint duplicates;

static void *produce(void *arg) {
    struct dequeue *d = arg;
    for (DWORD i = 0; i < EACH; i++)
        if (!PostQueuedCompletionStatus(d->port, i, d->key, NULL)) return NULL;
    return arg;
}

static void count_packet(DWORD bytes, ULONG_PTR key) {
    if (atomic_fetch_add(&received[(size_t)key * EACH + bytes], 1) != 0)
        atomic_fetch_add(&duplicates, 1);
}

/* Ends with the packet of key ~0, which it puts back for the next. */
static void *consume(void *arg) {
    HANDLE port = arg;
    OVERLAPPED_ENTRY e[4];
    ULONG removed;
    for (unsigned round = 0;; round++) {
        if (round % 2 == 0) {
            removed = GetQueuedCompletionStatus(port, &e[0].dwNumberOfBytesTransferred,
                                                &e[0].lpCompletionKey, &e[0].lpOverlapped, 50);
        } else if (!GetQueuedCompletionStatusEx(port, e, 4, &removed, INFINITE, FALSE)) {
            return NULL;
        }
        for (ULONG i = 0; i < removed; i++) {
            if (e[i].lpCompletionKey == UINTPTR_MAX) {
                PostQueuedCompletionStatus(port, 0, UINTPTR_MAX, NULL);
                return arg;
            }
            count_packet(e[i].dwNumberOfBytesTransferred, e[i].lpCompletionKey);
        }
    }
}

static void every_packet_reaches_exactly_one_of_many_consumers(void) {
    HANDLE p = new_port();
    struct dequeue d[PRODUCERS];
    pthread_t producers[PRODUCERS], consumers[CONSUMERS];
    for (int i = 0; i < CONSUMERS; i++)
        consumers[i] = start_thread(consume, p);
    for (int i = 0; i < PRODUCERS; i++) {
        d[i] = (struct dequeue){ .port = p, .key = (ULONG_PTR)i };
        producers[i] = start_thread(produce, &d[i]);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        void *result;
        pthread_join(producers[i], &result);
        CHECK(result != NULL);
    }
    CHECK(PostQueuedCompletionStatus(p, 0, UINTPTR_MAX, NULL));
    for (int i = 0; i < CONSUMERS; i++) {
        void *result;
        pthread_join(consumers[i], &result);
        CHECK(result != NULL);
    }
    CHECK_EQ(atomic_load(&duplicates), 0);
    for (size_t i = 0; i < SN_ARRAY_LEN(received); i++)
        CHECK_EQ(atomic_load(&received[i]), 1);
    CHECK(CloseHandle(p));
}

TEST_MAIN(TEST(posted_packets_come_out_in_order_with_their_values),
          TEST(empty_port_times_out_with_null_overlapped), TEST(missing_out_pointers_are_refused),
          TEST(entries_carry_each_packets_status),
          TEST(closing_the_port_ends_all_waits_as_abandoned),
          TEST(closing_the_port_drops_packets_and_later_completions),
          TEST(last_to_wait_is_woken_first), TEST(port_descriptor_is_readable_while_packets_wait),
          TEST(every_packet_reaches_exactly_one_of_many_consumers))
