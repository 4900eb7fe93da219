/* SPDX-License-Identifier: MIT
 * nd_client.h - the NetworkDirect side of the subcommands: adapters, memory, one connection.
 * Owns:    every ND object that its structures hold; the create/open calls make them, the
 *          destroy/close calls release them and accept zeroed structures.
 * Threads: one per connection.
 * Errors:  ND statuses; E_ABORT when the user asked the program to stop during a wait.
 *
 * A wait polls for a while and then sleeps on a notification, so that a busy transfer costs no
 * system call and an idle one no processor.
 */
#ifndef TOOL_ND_CLIENT_H
#define TOOL_ND_CLIENT_H

#include <winsock2.h>
#include <ws2tcpip.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ndspi.h"

#define NDC_PORT_DEFAULT 7571
#define NDC_NO_ADAPTER                                                                             \
    "no NetworkDirect adapter on this machine (see `softnd list` and `softnd install`)"

/* Begins the use of NetworkDirect in this process. Where no provider is registered, the library
 * beside the program (or in ../lib) is used. ND_SUCCESS even without any adapter. */
HRESULT ndc_start(void);
void ndc_stop(void);

/* What a status means, for the user. Static, or for unknown codes one shared buffer. */
const char *ndc_text(HRESULT hr);

/* The library of this name beside the program or in ../lib; false if there is none. */
bool ndc_find_library(char *path, size_t room);

/* ---- adapters ---- */

struct ndc_adapter {
    IND2Adapter *adapter;
    HANDLE file;
    ND2_ADAPTER_INFO info;
};
HRESULT ndc_adapter_open(struct ndc_adapter *ad, const struct sockaddr *local);
void ndc_adapter_close(struct ndc_adapter *ad);

/* All local ND addresses; the caller frees *out. Without any: ND_SUCCESS and NULL. */
HRESULT ndc_addresses(SOCKET_ADDRESS_LIST **out);

size_t ndc_sockaddr_bytes(const struct sockaddr *sa);
void ndc_set_port(struct sockaddr *sa, uint16_t port);
uint16_t ndc_get_port(const struct sockaddr *sa);

/* ---- overlapped calls ---- */

/* Prepares ov for a call that is waited for on event; no packet is queued. */
void ndc_begin_call(OVERLAPPED *ov, HANDLE event);
/* hr: what the method returned. Waits and gives the outcome; ov is free afterwards in any case, a
 * call that is late having been cancelled: ND_IO_TIMEOUT, or E_ABORT. */
HRESULT ndc_end_call(IND2Overlapped *o, OVERLAPPED *ov, HANDLE event, HRESULT hr,
                     uint32_t timeout_ms);

/* ---- memory ---- */

struct ndc_region {
    IND2MemoryRegion *mr;
    uint8_t *buf; /* page aligned, zeroed */
    size_t bytes;
    UINT32 local_token, remote_token;
};
/* Allocates and registers; flags are ND_MR_FLAG_*. */
HRESULT ndc_region_create(struct ndc_adapter *ad, size_t bytes, ULONG flags,
                          struct ndc_region *out);
void ndc_region_destroy(struct ndc_region *r);
ND2_SGE ndc_sge(const struct ndc_region *r, size_t offset, size_t bytes);

/* ---- a connection with its queue pair and one completion queue ---- */

struct ndc_spec {
    ULONG receives, requests; /* queue depths */
    ULONG receive_sges, request_sges;
    ULONG inline_bytes;
    uint64_t spin_ns; /* how long a wait polls before it sleeps */
};

struct ndc_conn {
    struct ndc_adapter *ad;
    IND2CompletionQueue *cq;
    IND2QueuePair *qp;
    IND2Connector *connector;
    OVERLAPPED ov; /* of the connector's call in progress */
    HANDLE event;
    OVERLAPPED notify;
    HANDLE notify_event;
    bool notify_pending;
    bool connected;
    uint64_t spin_ns;
};

/* connector: taken over if not NULL (the passive side has one), also on failure. */
HRESULT ndc_conn_create(struct ndc_conn *c, struct ndc_adapter *ad, const struct ndc_spec *spec,
                        IND2Connector *connector);
/* Binds to local, connects and completes. On ND_CONNECTION_REFUSED the peer's reason may be asked
 * with ndc_conn_peer_data. */
HRESULT ndc_conn_connect(struct ndc_conn *c, const struct sockaddr *local,
                         const struct sockaddr *remote, ULONG inbound_reads, ULONG outbound_reads,
                         const void *data, ULONG data_bytes, uint32_t timeout_ms);
HRESULT ndc_conn_accept(struct ndc_conn *c, ULONG inbound_reads, ULONG outbound_reads,
                        uint32_t timeout_ms);
/* Waits for results and takes up to max. ND_SUCCESS with *count > 0; ND_TIMEOUT; E_ABORT; or what
 * the completion queue says. timeout_ms INFINITE waits for ever. */
HRESULT ndc_conn_wait(struct ndc_conn *c, ND2_RESULT *results, ULONG max, ULONG *count,
                      uint32_t timeout_ms);
/* Disconnects if connected, and releases everything. */
void ndc_conn_close(struct ndc_conn *c);

/* Private data of the peer: the number of bytes copied, at most room. */
ULONG ndc_peer_data(IND2Connector *connector, void *buf, ULONG room);
/* "1.2.3.4:5", or "?" when not known. */
void ndc_peer_text(IND2Connector *connector, char *out);
/* "iwarp", "local"; "unknown" for a provider that cannot tell. */
void ndc_transport(IND2QueuePair *qp, char out[16]);
#define NDC_COUNTERS_BYTES 6144
/* As SoftNdQueryCounters; false for a provider that cannot tell. */
bool ndc_counters(IUnknown *object, char out[NDC_COUNTERS_BYTES]);

/* ---- for client programs: HOST[:PORT] to a connected adapter ---- */

struct ndc_target {
    struct ndc_adapter ad;
    SOCKADDR_INET local, remote;
    char text[80]; /* address and port */
};
/* Calls try for each address of the host until it returns something other than a retryable failure
 * (refused, unreachable, timeout), with t->ad open. The host name must not be empty. On failure
 * *why says what went wrong when there was nothing to try; else it is NULL and the result is the
 * last attempt's. t is open only on success. */
HRESULT ndc_target_open(struct ndc_target *t, const char *host, uint16_t port,
                        HRESULT (*attempt)(struct ndc_target *t, void *context), void *context,
                        const char **why);

#endif
