/* SPDX-License-Identifier: MIT
 * rig.h - an opened adapter over the fake core, and what most cases need of it.
 * Owns:    one provider, one adapter, one overlapped file, made by rig_open and ended by rig_close,
 *          which also checks that nothing is left.
 * Threads: one.   Errors: a failed step ends the case.
 */
#ifndef SN_TESTS_RIG_H
#define SN_TESTS_RIG_H

#include "base/base.h"
#include "fake_rd.h"
#include "softnd.h"
#include "support/testing.h"

struct rig {
    IND2Provider *provider;
    IND2Adapter *adapter;
    HANDLE file;
};

static inline struct rig rig_open(void) {
    struct rig r;
    fake_reset();
    CHECK_EQ(DllGetClassObject(&CLSID_SoftNdProvider, &IID_IND2Provider, (void **)&r.provider),
             S_OK);
    CHECK_EQ(IND2Provider_OpenAdapter(r.provider, &IID_IND2Adapter, FAKE_ADAPTER_ID,
                                      (void **)&r.adapter),
             ND_SUCCESS);
    CHECK_EQ(IND2Adapter_CreateOverlappedFile(r.adapter, &r.file), ND_SUCCESS);
    return r;
}

static inline void rig_close(struct rig *r) {
    CHECK_EQ(CloseHandle(r->file), TRUE);
    CHECK_EQ(IND2Adapter_Release(r->adapter), 0);
    CHECK_EQ(IND2Provider_Release(r->provider), 0);
    CHECK_EQ(fake.objects, 0);
    CHECK_EQ(fake.adapters, 0);
    CHECK_EQ(fake_pending(), 0);
    CHECK_EQ(DllCanUnloadNow(), S_OK);
}

static inline IND2CompletionQueue *rig_cq(struct rig *r) {
    IND2CompletionQueue *cq = NULL;
    CHECK_EQ(IND2Adapter_CreateCompletionQueue(r->adapter, &IID_IND2CompletionQueue, r->file, 16, 0,
                                               0, (void **)&cq),
             ND_SUCCESS);
    return cq;
}

static inline IND2SharedReceiveQueue *rig_srq(struct rig *r) {
    IND2SharedReceiveQueue *srq = NULL;
    CHECK_EQ(IND2Adapter_CreateSharedReceiveQueue(r->adapter, &IID_IND2SharedReceiveQueue, r->file,
                                                  16, 2, 4, 0, 0, (void **)&srq),
             ND_SUCCESS);
    return srq;
}

static inline IND2MemoryRegion *rig_region(struct rig *r) {
    IND2MemoryRegion *mr = NULL;
    CHECK_EQ(
        IND2Adapter_CreateMemoryRegion(r->adapter, &IID_IND2MemoryRegion, r->file, (void **)&mr),
        ND_SUCCESS);
    return mr;
}

static inline IND2MemoryWindow *rig_window(struct rig *r) {
    IND2MemoryWindow *mw = NULL;
    CHECK_EQ(IND2Adapter_CreateMemoryWindow(r->adapter, &IID_IND2MemoryWindow, (void **)&mw),
             ND_SUCCESS);
    return mw;
}

static inline IND2QueuePair *rig_qp(struct rig *r, IND2CompletionQueue *cq) {
    IND2QueuePair *qp = NULL;
    CHECK_EQ(IND2Adapter_CreateQueuePair(r->adapter, &IID_IND2QueuePair, (IUnknown *)cq,
                                         (IUnknown *)cq, NULL, 4, 4, 1, 1, 0, (void **)&qp),
             ND_SUCCESS);
    return qp;
}

static inline IND2Connector *rig_connector(struct rig *r) {
    IND2Connector *c = NULL;
    CHECK_EQ(IND2Adapter_CreateConnector(r->adapter, &IID_IND2Connector, r->file, (void **)&c),
             ND_SUCCESS);
    return c;
}

static inline IND2Listener *rig_listener(struct rig *r) {
    IND2Listener *l = NULL;
    CHECK_EQ(IND2Adapter_CreateListener(r->adapter, &IID_IND2Listener, r->file, (void **)&l),
             ND_SUCCESS);
    return l;
}

/* An address that no mapping can have, for pointers into nowhere. */
static inline void *nowhere(void) {
    return (void *)(uintptr_t)0x1000;
}

#endif
