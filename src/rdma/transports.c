/* SPDX-License-Identifier: MIT
 *
 * The one place that names transports. A connector tries them in this order until one does not
 * answer SN_E_UNSUPPORTED; a listener opens all of them. Unit tests of the core link a list of
 * their own instead of this file.
 */
#include "iwarp/iwarp.h"
#include "local/local.h"
#include "rdma/adapter.h"

const struct tp_ops *const rd_transports[] = { &lo_ops, &iw_ops };
const size_t rd_transport_count = SN_ARRAY_LEN(rd_transports);

const char *rd_transports_text(void) {
    return lo_in_use() ? "local iwarp" : "iwarp";
}
