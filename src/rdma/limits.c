/* SPDX-License-Identifier: MIT
 *
 * What the adapter advertises. Every number is honoured exactly, and costs nothing before it is
 * used. Reasons are in docs/decisions.md.
 */
#include "rdma/qp.h"

const struct rd_limits *rd_limits_get(void) {
    static const struct rd_limits limits = {
        .max_registration_bytes = 0xFFFFFFFFFFFFull,
        .max_window_bytes = 0xFFFFFFFFFFFFull,
        .max_initiator_sge = 16,
        .max_receive_sge = 16,
        .max_read_sge = 16,
        .max_transfer_bytes = RD_TRANSFER_MAX,
        .max_inline_bytes = 512,
        .max_ird = 128,
        .max_ord = 128,
        .max_receive_depth = 8192,
        .max_initiator_depth = 8192,
        .max_srq_depth = 8192,
        .max_cq_depth = 1 << 17,
        .inline_threshold_bytes = 256,
        .large_threshold_bytes = 65536,
        .max_caller_data_bytes = 248,
        .max_callee_data_bytes = 248,
    };
    return &limits;
}
