/* SPDX-License-Identifier: MIT
 * adapter.h - the adapter object and the ways to make and to recognise what belongs to it.
 * Owns:    the list of object classes below an adapter; each lives in the file of its name.
 * Threads: any.
 * Errors:  makers return what the Create* method returns, after iid and out pointer were checked
 *          by the class's own check; on failure *out is NULL.
 */
#ifndef SN_NDSPI_ADAPTER_H
#define SN_NDSPI_ADAPTER_H

#include "ndspi/object.h"
#include "rdma/rd.h"

struct ndspi_adapter {
    struct ndspi_object obj;
    struct rd_adapter *rd;         /* [const] */
    struct ndspi_object *provider; /* [const] one visible reference until close */
};

HRESULT ndspi_provider_create(REFIID iid, void **out);
HRESULT ndspi_adapter_create(struct ndspi_object *provider, REFIID iid, UINT64 id, void **out);

HRESULT ndspi_cq_create(struct ndspi_adapter *ad, REFIID iid, HANDLE file, ULONG depth, void **out);
HRESULT ndspi_srq_create(struct ndspi_adapter *ad, REFIID iid, HANDLE file, ULONG depth,
                         ULONG max_sge, ULONG threshold, void **out);
HRESULT ndspi_region_create(struct ndspi_adapter *ad, REFIID iid, HANDLE file, void **out);
HRESULT ndspi_window_create(struct ndspi_adapter *ad, REFIID iid, void **out);
/* attr: all but the queues, which come as the application gave them. srq NULL unless with_srq. */
HRESULT ndspi_qp_create(struct ndspi_adapter *ad, REFIID iid, IUnknown *receive_cq,
                        IUnknown *initiator_cq, bool with_srq, IUnknown *srq,
                        struct rd_qp_attr *attr, void **out);
HRESULT ndspi_connector_create(struct ndspi_adapter *ad, REFIID iid, HANDLE file, void **out);
HRESULT ndspi_listener_create(struct ndspi_adapter *ad, REFIID iid, HANDLE file, void **out);

/* The core's adapter behind a parameter typed IUnknown*; NULL if it is none. Borrowed. */
struct rd_adapter *ndspi_adapter_of(const IUnknown *p);
/* The core's object behind a parameter typed IUnknown*; NULL if it is not one of this adapter's
 * objects of that class. Borrowed. */
struct rd_srq *ndspi_srq_of(const IUnknown *p, const struct ndspi_adapter *ad);
struct rd_region *ndspi_region_of(const IUnknown *p, const struct ndspi_adapter *ad);
struct rd_window *ndspi_window_of(const IUnknown *p, const struct ndspi_adapter *ad);
/* ad NULL: of any adapter. */
struct rd_cq *ndspi_cq_of(const IUnknown *p, const struct ndspi_adapter *ad);
struct rd_qp *ndspi_qp_of(const IUnknown *p, const struct ndspi_adapter *ad);
/* With the object itself, to hold it while the connector is lent to a listener. */
struct rd_connector *ndspi_connector_of(const IUnknown *p, const struct ndspi_adapter *ad,
                                        struct ndspi_object **obj);
struct rd_connector *ndspi_connector_rd(struct ndspi_object *obj);

/* GetNotifyAffinity of both queue classes. */
HRESULT ndspi_notify_affinity(USHORT *group, KAFFINITY *affinity);

#endif
