/* SPDX-License-Identifier: MIT */
#include "os/io/shm.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "os/prim/fault.h"
#include "support/testing.h"

/* A second descriptor of the same memory, as a peer would receive it. */
static os_handle second_handle(const struct os_shm *shm) {
    int fd = fcntl((int)shm->handle, F_DUPFD_CLOEXEC, 0);
    CHECK(fd >= 0);
    return fd;
}

static bool handle_is_open(os_handle h) {
    return fcntl((int)h, F_GETFD) >= 0;
}

static void create_gives_zeroes_seen_by_both_mappings(void) {
    struct os_shm a, b;
    CHECK_EQ(os_shm_create(10000, &a), SN_OK);
    CHECK_EQ(a.bytes, 10000);
    CHECK(fcntl((int)a.handle, F_GETFD) & FD_CLOEXEC);
    uint8_t *pa = a.base;
    for (size_t i = 0; i < 10000; i++)
        CHECK_EQ(pa[i], 0);
    CHECK_EQ(os_shm_open(second_handle(&a), 10000, &b), SN_OK);
    uint8_t *pb = b.base;
    CHECK(pa != pb);
    pa[9999] = 7;
    pb[0] = 9;
    CHECK_EQ(pb[9999], 7);
    CHECK_EQ(pa[0], 9);
    /* The mapping outlives its handle and the other side. */
    os_handle_close(a.handle);
    a.handle = OS_HANDLE_NONE;
    os_shm_close(&a);
    CHECK(a.base == NULL);
    os_shm_close(&a);
    CHECK_EQ(pb[9999], 7);
    os_shm_close(&b);
    struct os_shm zeroed = { 0 };
    os_shm_close(&zeroed);
    os_handle_close(OS_HANDLE_NONE);
}

static void create_of_impossible_sizes_fails(void) {
    struct os_shm a;
    CHECK_EQ(os_shm_create(0, &a), SN_E_PARAM);
    CHECK(a.base == NULL && a.handle == OS_HANDLE_NONE);
    CHECK_EQ(os_shm_create(SIZE_MAX, &a), SN_E_NOMEM);
    CHECK_EQ(os_shm_create((size_t)INT64_MAX, &a), SN_E_NOMEM);
}

static void size_is_fixed_for_both_sides(void) {
    struct os_shm a;
    CHECK_EQ(os_shm_create(8192, &a), SN_OK);
    CHECK(ftruncate((int)a.handle, 0) != 0);
    CHECK(ftruncate((int)a.handle, 1 << 20) != 0);
    os_shm_close(&a);
}

static void check_refused(os_handle h, size_t bytes) {
    struct os_shm out;
    CHECK_EQ(os_shm_open(h, bytes, &out), SN_E_WIRE);
    CHECK(out.base == NULL);
    CHECK(!handle_is_open(h)); /* taken all the same */
}

static void open_of_anything_else_is_refused_and_closed(void) {
    struct os_shm a;
    CHECK_EQ(os_shm_create(8192, &a), SN_OK);
    check_refused(second_handle(&a), 8191);
    check_refused(second_handle(&a), 8193);
    check_refused(second_handle(&a), 0);
    os_shm_close(&a);

    int fd = memfd_create("shm_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, 8192), 0);
    check_refused(fd, 8192); /* could still be cut short */

    fd = memfd_create("shm_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_EQ(ftruncate(fd, 8192), 0);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    check_refused(fd, 8192); /* read-only */

    int ends[2];
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    check_refused(ends[0], 8192);
    close(ends[1]);
    fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    check_refused(fd, 8192);
    struct os_shm out;
    CHECK_EQ(os_shm_open(OS_HANDLE_NONE, 8192, &out), SN_E_WIRE);
}

static void published_memory_can_only_be_read_by_others(void) {
    struct os_shm a, b;
    CHECK_EQ(os_shm_create_published(8192, &a), SN_OK);
    memset(a.base, 7, 8192);
    CHECK_EQ(os_shm_open_readonly(second_handle(&a), 8191, &b), SN_E_WIRE);
    CHECK_EQ(os_shm_open_readonly(second_handle(&a), 8192, &b), SN_OK);
    CHECK_EQ(((uint8_t *)b.base)[8191], 7);
    ((uint8_t *)a.base)[8191] = 8; /* ours stays writable */
    CHECK_EQ(((uint8_t *)b.base)[8191], 8);
    os_shm_close(&b);
    check_refused(second_handle(&a), 8192);
    os_shm_close(&a);
}

static void create_with_each_step_failing_leaves_nothing(void) {
    if (!os_fault_available()) SKIP("built without fault injection");
    int probe = dup(0);
    close(probe);
    for (int n = 0; n < 8; n++) {
        struct os_shm a;
        os_fault_arm(OS_FAULT_SYSCALL, n / 2);
        sn_status st = n % 2 ? os_shm_create_published(8192, &a) : os_shm_create(8192, &a);
        CHECK(os_fault_fired(OS_FAULT_SYSCALL));
        os_fault_arm(OS_FAULT_SYSCALL, -1);
        CHECK(st == SN_E_NOMEM || st == SN_E_RESOURCES);
        CHECK(a.base == NULL);
    }
    int again = dup(0);
    close(again);
    CHECK_EQ(again, probe); /* no descriptor was left open */
}

TEST_MAIN(TEST(create_gives_zeroes_seen_by_both_mappings), TEST(create_of_impossible_sizes_fails),
          TEST(size_is_fixed_for_both_sides), TEST(open_of_anything_else_is_refused_and_closed),
          TEST(published_memory_can_only_be_read_by_others),
          TEST(create_with_each_step_failing_leaves_nothing))
