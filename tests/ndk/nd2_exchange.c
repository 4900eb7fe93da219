/* SPDX-License-Identifier: MIT
 * nd2_exchange.c - the other end of examples/ndk/exchange.c as a NetworkDirect SPI program, so that
 * a kernel-style consumer and a user-mode program talk to each other. The SPI has no Send with
 * invalidate; as the client it offers a memory window, which the consumer's invalidates.
 *
 *     nd2_exchange server | nd2_exchange client PORT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "nd_client.h"

enum { BYTES = 300 * 1024 + 123, LIMIT_MS = 30000 };

struct offer {
    UINT64 address;
    UINT32 token, length;
};

static struct ndc_adapter ad;
static struct ndc_conn conn;
static struct ndc_region data, messages; /* messages: [0] sent, [1] received */

static void must(const char *what, HRESULT hr) {
    if (hr == ND_SUCCESS) return;
    printf("nd2_exchange: %s: 0x%08X %s\n", what, (unsigned)hr, ndc_text(hr));
    exit(1);
}

/* A result of this type; the one Receive may come before it, and is then had already. */
static int early;
static void wait_result(ND2_REQUEST_TYPE type) {
    ND2_RESULT r;
    ULONG count;
    if (type == Nd2RequestTypeReceive && early) return;
    must("wait", ndc_conn_wait(&conn, &r, 1, &count, LIMIT_MS));
    must("result", r.Status);
    if (r.RequestType == Nd2RequestTypeReceive && type != Nd2RequestTypeReceive && !early) {
        early = 1; /* the receive queue is not ordered with the initiator queue */
        wait_result(type);
        return;
    }
    if (r.RequestType != type) {
        printf("nd2_exchange: a result of type %d instead of %d\n", r.RequestType, type);
        exit(1);
    }
}

static void make(IND2Connector *connector) {
    struct ndc_spec spec = { .receives = 4, .requests = 8, .receive_sges = 1, .request_sges = 1 };
    must("connection", ndc_conn_create(&conn, &ad, &spec, connector));
    must("memory", ndc_region_create(&ad, BYTES,
                                     ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ |
                                         ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_RDMA_READ_SINK,
                                     &data));
    must("messages",
         ndc_region_create(&ad, 2 * sizeof(struct offer), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &messages));
    ND2_SGE sge = ndc_sge(&messages, sizeof(struct offer), sizeof(struct offer));
    must("Receive", IND2QueuePair_Receive(conn.qp, NULL, &sge, 1));
}

static void send_message(const struct offer *o) {
    ND2_SGE sge = ndc_sge(&messages, 0, sizeof *o);
    memcpy(messages.buf, o, sizeof *o);
    must("Send", IND2QueuePair_Send(conn.qp, NULL, &sge, 1, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT));
}

/* ---- server: reads, turns round, writes back, answers ---- */

static IND2Connector *listen_for_one(const struct sockaddr *local) {
    IND2Listener *l;
    IND2Connector *c;
    OVERLAPPED ov;
    SOCKADDR_INET at;
    ULONG cb = sizeof at;
    memset(&ov, 0, sizeof ov);
    must("CreateListener",
         IND2Adapter_CreateListener(ad.adapter, &IID_IND2Listener, ad.file, (void **)&l));
    must("CreateConnector",
         IND2Adapter_CreateConnector(ad.adapter, &IID_IND2Connector, ad.file, (void **)&c));
    must("Bind", IND2Listener_Bind(l, local, (ULONG)ndc_sockaddr_bytes(local)));
    must("Listen", IND2Listener_Listen(l, 1));
    must("GetLocalAddress", IND2Listener_GetLocalAddress(l, (struct sockaddr *)&at, &cb));
    printf("nd2_exchange: listening on port %u\n", ndc_get_port((struct sockaddr *)&at));
    fflush(stdout);
    HRESULT hr = IND2Listener_GetConnectionRequest(l, (IUnknown *)c, &ov);
    if (hr == ND_PENDING) hr = IND2Listener_GetOverlappedResult(l, &ov, TRUE);
    must("GetConnectionRequest", hr);
    IND2Listener_Release(l);
    return c;
}

static void serve(const struct sockaddr *local) {
    struct offer o;
    make(listen_for_one(local));
    must("Accept", ndc_conn_accept(&conn, 4, 4, LIMIT_MS));
    wait_result(Nd2RequestTypeReceive);
    memcpy(&o, messages.buf + sizeof o, sizeof o);
    if (o.length != BYTES) must("offer", ND_INVALID_BUFFER_SIZE);
    ND2_SGE sge = ndc_sge(&data, 0, BYTES);
    must("Read", IND2QueuePair_Read(conn.qp, NULL, &sge, 1, o.address, o.token, 0));
    wait_result(Nd2RequestTypeRead);
    for (size_t i = 0; i < BYTES; i++)
        data.buf[i] ^= 0xFF;
    must("Write", IND2QueuePair_Write(conn.qp, NULL, &sge, 1, o.address, o.token, 0));
    send_message(&o);
    wait_result(Nd2RequestTypeWrite);
    wait_result(Nd2RequestTypeSend);
    /* The client still ends its registration; it leaves first. */
    OVERLAPPED ov;
    memset(&ov, 0, sizeof ov);
    HRESULT hr = IND2Connector_NotifyDisconnect(conn.connector, &ov);
    if (hr == ND_PENDING) hr = IND2Connector_GetOverlappedResult(conn.connector, &ov, TRUE);
    must("the client's end", hr);
}

/* ---- client: offers a window, checks what comes back ---- */

static unsigned char pattern(size_t i) {
    return (unsigned char)(i * 31 + i / 4096);
}

static void ask(const struct sockaddr *local, const struct sockaddr *remote) {
    IND2MemoryWindow *window;
    make(NULL);
    must("Connect", ndc_conn_connect(&conn, local, remote, 4, 4, NULL, 0, LIMIT_MS));
    for (size_t i = 0; i < BYTES; i++)
        data.buf[i] = pattern(i);
    must("CreateMemoryWindow",
         IND2Adapter_CreateMemoryWindow(ad.adapter, &IID_IND2MemoryWindow, (void **)&window));
    must("Bind",
         IND2QueuePair_Bind(conn.qp, NULL, (IUnknown *)data.mr, (IUnknown *)window, data.buf, BYTES,
                            ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE));
    wait_result(Nd2RequestTypeBind);
    struct offer o = { (UINT64)(uintptr_t)data.buf, IND2MemoryWindow_GetRemoteToken(window),
                       BYTES };
    send_message(&o);
    wait_result(Nd2RequestTypeSend);
    wait_result(Nd2RequestTypeReceive);
    for (size_t i = 0; i < BYTES; i++)
        if ((data.buf[i] ^ pattern(i)) != 0xFF) must("the bytes", ND_UNSUCCESSFUL);
    if (IND2MemoryWindow_GetRemoteToken(window) != 0) must("invalidation", ND_UNSUCCESSFUL);
    IND2MemoryWindow_Release(window);
}

int main(int argc, char **argv) {
    struct sockaddr_in local = { .sin_family = AF_INET }, remote = { .sin_family = AF_INET };
    local.sin_addr.s_addr = remote.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must("start", ndc_start());
    must("adapter", ndc_adapter_open(&ad, (struct sockaddr *)&local));
    if (argc == 2 && strcmp(argv[1], "server") == 0) {
        serve((struct sockaddr *)&local);
    } else if (argc == 3) {
        remote.sin_port = htons((uint16_t)atoi(argv[2]));
        ask((struct sockaddr *)&local, (struct sockaddr *)&remote);
    } else {
        return 2;
    }
    printf("nd2_exchange: %s done\n", argv[1]);
    ndc_conn_close(&conn);
    ndc_region_destroy(&messages);
    ndc_region_destroy(&data);
    ndc_adapter_close(&ad);
    ndc_stop();
    return 0;
}
