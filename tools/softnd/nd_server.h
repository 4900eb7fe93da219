/* SPDX-License-Identifier: MIT
 * nd_server.h - listening on one address or on all of the machine, and the event loop of a server.
 * Owns:    the adapters it opened, their listeners, and the completion port that all their
 *          overlapped files are bound to.
 * Threads: one.
 * Errors:  ND statuses; E_ABORT when the user asked the program to stop.
 */
#ifndef TOOL_ND_SERVER_H
#define TOOL_ND_SERVER_H

#include "nd_client.h"

/* An overlapped request of the event loop: its packet calls on_done. */
struct nds_op {
    OVERLAPPED ov; /* first, so that the packet's pointer is the op */
    void (*on_done)(struct nds_op *op);
    void *owner;
};
/* Clears the OVERLAPPED before each use; hEvent stays NULL, so that a packet is queued. */
void nds_op_begin(struct nds_op *op);

struct nds_listener {
    struct nds_op op; /* the pending GetConnectionRequest */
    struct nds_server *server;
    struct ndc_adapter *ad;
    IND2Listener *listener;
    IND2Connector *next; /* what the next request goes to */
    SOCKADDR_INET local;
};

#define NDS_LISTENERS_MAX 128

struct nds_server {
    HANDLE port;
    struct ndc_adapter adapters[NDS_LISTENERS_MAX];
    size_t adapter_count;
    struct nds_listener listeners[NDS_LISTENERS_MAX];
    size_t listener_count;
    /* A request has come: the callee owns the connector, whose adapter is ad. */
    void (*on_request)(void *owner, struct ndc_adapter *ad, IND2Connector *connector);
    void *owner;
    HRESULT failed;   /* why a listener stopped working; ND_SUCCESS */
    bool ignore_stop; /* for the packets that come after the user asked to stop */
};

/* Listens on host, or with host "" on every ND address of the machine. port 0: one that is free on
 * all of them. On failure *why (static) says more than the status, or is NULL; where[] is the
 * address it was about, or "". */
HRESULT nds_open(struct nds_server *s, const char *host, uint16_t port, const char **why,
                 char where[80]);
/* One line per address on stderr: "<name>: listening on ADDR:PORT". */
void nds_print(const struct nds_server *s, const char *name);
/* Waits for one packet and handles it. ND_SUCCESS, ND_TIMEOUT (nothing came), E_ABORT, or a
 * failure of a listener. */
HRESULT nds_step(struct nds_server *s, uint32_t timeout_ms);
/* Refuses further requests; adapters and port stay. */
void nds_stop_listening(struct nds_server *s);
/* All objects made with the adapters must be gone. */
void nds_close(struct nds_server *s);

#endif
