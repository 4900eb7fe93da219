/* SPDX-License-Identifier: MIT
 * perf_end.h - one end of a performance test: its control connection, memory, completion queue and
 * queue pairs.
 * Owns:    every ND object in struct perf_end; perf_end_close releases all and accepts zeroes.
 * Threads: one for each end.
 * Errors:  ND statuses; ND_CONNECTION_ABORTED when the peer is gone, E_ABORT when the user wants to
 *          stop, ND_IO_TIMEOUT when nothing moves for timeout_ms.
 *
 * The control connection has a completion queue of its own, so that it costs the measured one
 * nothing; it is looked at when that one has been empty for a while.
 */
#ifndef TOOL_PERF_END_H
#define TOOL_PERF_END_H

#include "nd_client.h"
#include "perf.h"

#define PERF_TIMEOUT_MS 30000 /* unless the user wants another */
#define PERF_RESULTS 32

struct perf_qp {
    uint32_t index;
    IND2QueuePair *qp;
    IND2Connector *connector;
    bool connected;
    /* flow of Sends, over all runs */
    uint64_t sent, credited, got;
    uint64_t uncredited; /* received since the last credit was due */
    uint64_t credits_due, credits_out;
    /* of the run */
    uint64_t posted, done, target, received;
    bool warm, fence_posted, fenced;
};

struct perf_end {
    struct ndc_adapter *ad;
    uint32_t timeout_ms; /* after which a peer that says nothing is given up */
    struct perf_params params;
    struct perf_layout layout;
    struct ndc_region memory;
    uint64_t peer_address;
    uint32_t peer_token;

    IND2CompletionQueue *cq;
    struct perf_qp *qps; /* params.qps busy ones, then the idle ones */
    uint32_t qp_count;   /* made so far */

    struct ndc_conn control;
    struct ndc_region control_memory;
    uint32_t control_sent;
    struct perf_message inbox[PERF_TYPES];
    bool have[PERF_TYPES];

    HANDLE wake, call_event; /* wake: a notification of either completion queue */
    OVERLAPPED notify, control_notify;
    bool notify_pending, control_notify_pending;
    uint32_t empty; /* polls without a result */
    uint32_t busy;  /* polls with one */
    uint64_t moved_ns;
    bool stop_is_end; /* the user ends the run, not the test: no E_ABORT */
};

/* The control connection, ready to be connected or accepted. connector: as ndc_conn_create. */
HRESULT perf_end_open(struct perf_end *e, struct ndc_adapter *ad, IND2Connector *connector,
                      uint32_t timeout_ms);
/* Nothing has moved since then, for timeout_ms. */
bool perf_end_stalled(const struct perf_end *e, uint64_t since_ns);
/* Memory, completion queue and room for the queue pairs. */
HRESULT perf_end_prepare(struct perf_end *e, const struct perf_params *p);
/* The next queue pair, its Receives posted; connector taken as above. */
HRESULT perf_end_add_qp(struct perf_end *e, IND2Connector *connector, struct perf_qp **out);
HRESULT perf_qp_connect(struct perf_end *e, struct perf_qp *q, const struct sockaddr *local,
                        const struct sockaddr *remote, uint32_t session);
HRESULT perf_qp_accept(struct perf_end *e, struct perf_qp *q);
void perf_end_close(struct perf_end *e);

HRESULT perf_control_send(struct perf_end *e, const struct perf_message *m);
/* Waits for a message of this type and takes it; ND_CANCELED if the peer says PERF_BYE instead. */
HRESULT perf_control_wait(struct perf_end *e, enum perf_type type, struct perf_message *m);
/* Takes what has come, without waiting. */
HRESULT perf_control_poll(struct perf_end *e);

/* Takes results of the data queue pairs; *count may be 0. Looks at the control connection now and
 * then, and sleeps if the test waits for events. sleep: do so in any case. A failed result ends
 * the test: its status is returned. */
HRESULT perf_end_results(struct perf_end *e, ND2_RESULT *results, ULONG *count, bool sleep);

/* ---- requests ---- */

/* Receive i of a queue pair; its result has RequestContext i. */
HRESULT perf_post_receive(struct perf_end *e, struct perf_qp *q, uint32_t i);
uint8_t *perf_receive_place(struct perf_end *e, struct perf_qp *q, uint32_t i);
uint8_t *perf_tx_place(struct perf_end *e, uint64_t slot);
uint8_t *perf_target_place(struct perf_end *e, uint64_t slot);
/* One message of the test's verb from or to the slots of these numbers, modulo their count. */
HRESULT perf_post(struct perf_end *e, struct perf_qp *q, uint64_t slot, uint64_t size,
                  uintptr_t context, ULONG flags);
/* An empty message. */
HRESULT perf_post_credit(struct perf_qp *q, uintptr_t context);
/* Reads the head of the peer's memory: complete when all that came before has arrived. */
HRESULT perf_post_fence(struct perf_end *e, struct perf_qp *q, uintptr_t context);

#endif
