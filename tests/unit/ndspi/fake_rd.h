/* SPDX-License-Identifier: MIT
 * fake_rd.h - a verbs core without a network, so that the front end can be tested alone.
 * Owns:    the objects behind rd.h and a record of the last call. What the next call answers and
 *          when a pending request ends is the test's decision.
 * Threads: any; `fake` itself is the test's, between its calls.   Errors: as the test asks.
 */
#ifndef SN_TESTS_FAKE_RD_H
#define SN_TESTS_FAKE_RD_H

#include "os/prim/atomic.h"
#include "rdma/rd.h"

struct fake {
    sn_status next; /* what the next fallible call answers instead of success; then SN_OK again */
    enum rd_qp_attr_fault fault; /* with next = SN_E_PARAM of rd_qp_create */
    /* ---- the last call ---- */
    const char *call;
    void *context;
    const struct tp_sge *sge;
    uint32_t count, flags, rights, remote_token, ird, ord, type;
    uint64_t remote_addr;
    const void *buf;
    size_t len;
    uint32_t pd_len;
    uint8_t pd[TP_PRIVATE_DATA_MAX];
    struct os_addr addr;
    struct rd_qp_attr attr;
    /* ---- what queries answer ---- */
    struct rd_limits limits;
    uint32_t address_count; /* of the one adapter, id 7 */
    struct os_addr addresses[OS_NETIF_ADDRS_MAX];
    bool loopback;
    struct rd_completion completions[64];
    uint32_t completion_count, polls;
    uint8_t peer_data[TP_PRIVATE_DATA_MAX];
    uint32_t peer_data_len;
    /* 1: rd_cq_notify completes its request at once, sets 2 and stays inside until 0. */
    os_atomic_u32 hold_notify;
    /* ---- alive ---- */
    uint32_t adapters, objects;
};
extern struct fake fake;
#define FAKE_ADAPTER_ID 7

/* Back to the start: usual limits, two addresses. Objects must all be gone. */
void fake_reset(void);

/* Objects that the front end has not destroyed. */
uint32_t fake_objects(void);
/* Pending requests of all objects. */
size_t fake_pending(void);
/* Completes the oldest pending request; false if there is none. */
bool fake_complete_oldest(sn_status st);

#endif
