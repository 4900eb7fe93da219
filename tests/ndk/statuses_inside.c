/* SPDX-License-Identifier: MIT
 * What ndk_statuses_test needs from inside: all tokens of an adapter taken.
 */
#include "ndk/ndk.h"
#include "rdma/adapter.h"

void statuses_take_every_token(NDK_ADAPTER *adapter);
void statuses_take_every_token(NDK_ADAPTER *adapter) {
    struct rd_table *t = &((struct ndk_adapter *)adapter)->rd->table;
    struct rd_slot *s;
    os_lock_enter(&t->lock);
    while (rd_slot_alloc_locked(t, &s) == SN_OK) {
    }
    os_lock_leave(&t->lock);
}
