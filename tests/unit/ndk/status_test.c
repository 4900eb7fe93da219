/* SPDX-License-Identifier: MIT
 * The maps from internal statuses to NTSTATUS: every value has one, failures stay failures, and
 * those that consumers branch on have the documented number.
 */
#include "ndk/ndk.h"
#include "support/testing.h"

static void every_status_is_mapped_to_its_kind(void) {
    for (int i = 0; i < SN_STATUS_COUNT; i++) {
        sn_status st = (sn_status)i;
        bool good = st == SN_OK || st == SN_PENDING;
        CHECK_EQ(NT_SUCCESS(ndk_status(st)), good);
        CHECK_EQ(NT_SUCCESS(ndk_completion_status(st)), good);
        CHECK_EQ(NT_SUCCESS(ndk_post_status(st)), good);
        CHECK_EQ(NT_SUCCESS(ndk_connect_status(st)), good);
        CHECK_EQ(NT_SUCCESS(ndk_accept_status(st)), good);
    }
}

static void results_of_failed_requests_are_errors_not_warnings(void) {
    /* Consumers judge results with NT_ERROR; only the overrun of a queue is a warning. */
    for (int i = 0; i < SN_STATUS_COUNT; i++) {
        sn_status st = (sn_status)i;
        if (st == SN_OK || st == SN_PENDING || st == SN_E_OVERRUN || st == SN_E_BUSY) continue;
        CHECK(NT_ERROR(ndk_completion_status(st)));
    }
}

static void documented_statuses_have_their_numbers(void) {
    CHECK_EQ(ndk_completion_status(SN_E_CANCELED), STATUS_CANCELLED);
    CHECK_EQ(ndk_completion_status(SN_E_RIGHTS), STATUS_ACCESS_VIOLATION);
    CHECK_EQ(ndk_completion_status(SN_E_REMOTE_RANGE), STATUS_REMOTE_RESOURCES);
    CHECK_EQ(ndk_completion_status(SN_E_MSG_TOO_LONG), STATUS_INVALID_BUFFER_SIZE);
    CHECK_EQ(ndk_post_status(SN_E_NOT_CONNECTED), STATUS_CONNECTION_INVALID);
    CHECK_EQ(ndk_post_status(SN_E_FULL), STATUS_INSUFFICIENT_RESOURCES);
    CHECK_EQ(ndk_post_status(SN_E_RIGHTS), STATUS_ACCESS_VIOLATION);
    CHECK_EQ(ndk_connect_status(SN_E_REFUSED), STATUS_CONNECTION_REFUSED);
    CHECK_EQ(ndk_connect_status(SN_E_TIMEOUT), STATUS_IO_TIMEOUT);
    CHECK_EQ(ndk_connect_status(SN_E_NET_UNREACHABLE), STATUS_NETWORK_UNREACHABLE);
    CHECK_EQ(ndk_connect_status(SN_E_HOST_UNREACHABLE), STATUS_HOST_UNREACHABLE);
    CHECK_EQ(ndk_connect_status(SN_E_ADDR_EXISTS), STATUS_ADDRESS_ALREADY_EXISTS);
    CHECK_EQ(ndk_connect_status(SN_E_ADDR_IN_USE), STATUS_SHARING_VIOLATION);
    CHECK_EQ(ndk_connect_status(SN_E_ADDR_INVALID), STATUS_INVALID_ADDRESS);
    CHECK_EQ(ndk_connect_status(SN_E_NO_PORTS), STATUS_TOO_MANY_ADDRESSES);
    CHECK_EQ(ndk_accept_status(SN_E_REFUSED), STATUS_CONNECTION_ABORTED);
}

TEST_MAIN(TEST(every_status_is_mapped_to_its_kind),
          TEST(results_of_failed_requests_are_errors_not_warnings),
          TEST(documented_statuses_have_their_numbers))
