/* SPDX-License-Identifier: MIT
 *
 * A connection between two processes through the NetworkDirect interfaces, both polling.
 */
#define INITGUID
#include <winsock2.h>
#include <initguid.h>
#include "ndspi.h"
#include "softnd.h"
#include "bench.h"
#include <arpa/inet.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        HRESULT ok_hr = (call);                                                                    \
        if (FAILED(ok_hr)) DIE("%s: 0x%08x", #call, (unsigned)ok_hr);                              \
    } while (0)

enum { DEPTH = 128 };

struct end {
    IND2Provider *provider;
    IND2Adapter *adapter;
    HANDLE file;
    IND2CompletionQueue *cq;
    IND2MemoryRegion *mr;
    IND2QueuePair *qp;
    IND2Connector *connector;
    char *buf;
    size_t bytes;
};

struct remote {
    uint64_t addr;
    uint32_t token;
};

static void wait_done(IND2Overlapped *o, HRESULT hr, OVERLAPPED *ov) {
    if (hr == ND_PENDING) hr = IND2Overlapped_GetOverlappedResult(o, ov, TRUE);
    OK(hr);
}

static void open_end(struct end *e, size_t bytes) {
    struct sockaddr_in sin = { .sin_family = AF_INET };
    UINT64 id;
    OVERLAPPED ov = { 0 };
    memset(e, 0, sizeof *e);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    OK(DllGetClassObject(&CLSID_SoftNdProvider, &IID_IND2Provider, (void **)&e->provider));
    OK(IND2Provider_ResolveAddress(e->provider, (struct sockaddr *)&sin, sizeof sin, &id));
    OK(IND2Provider_OpenAdapter(e->provider, &IID_IND2Adapter, id, (void **)&e->adapter));
    OK(IND2Adapter_CreateOverlappedFile(e->adapter, &e->file));
    OK(IND2Adapter_CreateCompletionQueue(e->adapter, &IID_IND2CompletionQueue, e->file, 4 * DEPTH,
                                         0, 0, (void **)&e->cq));
    e->bytes = bytes;
    e->buf = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    memset(e->buf, 0, bytes);
    OK(IND2Adapter_CreateMemoryRegion(e->adapter, &IID_IND2MemoryRegion, e->file, (void **)&e->mr));
    HRESULT hr = IND2MemoryRegion_Register(
        e->mr, e->buf, bytes,
        ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ,
        &ov);
    wait_done((IND2Overlapped *)e->mr, hr, &ov);
}

static void make_qp(struct end *e, IND2QueuePair **qp, IND2Connector **connector) {
    OK(IND2Adapter_CreateQueuePair(e->adapter, &IID_IND2QueuePair, (IUnknown *)e->cq,
                                   (IUnknown *)e->cq, NULL, DEPTH, DEPTH, 1, 1, 0, (void **)qp));
    OK(IND2Adapter_CreateConnector(e->adapter, &IID_IND2Connector, e->file, (void **)connector));
}

static ND2_SGE sge_of(struct end *e, size_t off, uint32_t len) {
    ND2_SGE s = { e->buf + off, len, IND2MemoryRegion_GetLocalToken(e->mr) };
    return s;
}

static void post_receive(struct end *e, uint32_t len) {
    ND2_SGE s = sge_of(e, 0, len);
    OK(IND2QueuePair_Receive(e->qp, NULL, &s, 1));
}

/* Takes one completion of the given type; others of the kind `also` are counted and dropped. */
static void take(struct end *e, ND2_REQUEST_TYPE type, uint32_t *others) {
    ND2_RESULT r;
    for (;;) {
        if (IND2CompletionQueue_GetResults(e->cq, &r, 1) == 0) continue;
        if (r.Status != ND_SUCCESS) DIE("completion 0x%08x", (unsigned)r.Status);
        if (r.RequestType == type) return;
        if (others) ++*others;
    }
}

struct listening {
    IND2Listener *listener;
    struct sockaddr_in sin;
};

static void listen_on(struct end *e, struct listening *l) {
    ULONG len = sizeof l->sin;
    l->sin = (struct sockaddr_in){ .sin_family = AF_INET };
    l->sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    OK(IND2Adapter_CreateListener(e->adapter, &IID_IND2Listener, e->file, (void **)&l->listener));
    OK(IND2Listener_Bind(l->listener, (struct sockaddr *)&l->sin, sizeof l->sin));
    OK(IND2Listener_Listen(l->listener, 0));
    OK(IND2Listener_GetLocalAddress(l->listener, (struct sockaddr *)&l->sin, &len));
}

static void accept_on(struct end *e, struct listening *l) {
    OVERLAPPED ov = { 0 };
    make_qp(e, &e->qp, &e->connector);
    HRESULT hr = IND2Listener_GetConnectionRequest(l->listener, (IUnknown *)e->connector, &ov);
    wait_done((IND2Overlapped *)l->listener, hr, &ov);
    memset(&ov, 0, sizeof ov);
    hr = IND2Connector_Accept(e->connector, (IUnknown *)e->qp, 0, 0, NULL, 0, &ov);
    wait_done((IND2Overlapped *)e->connector, hr, &ov);
}

static void connect_to(struct end *e, const struct sockaddr_in *sin) {
    OVERLAPPED ov = { 0 };
    make_qp(e, &e->qp, &e->connector);
    HRESULT hr = IND2Connector_Connect(e->connector, (IUnknown *)e->qp, (struct sockaddr *)sin,
                                       sizeof *sin, 0, 0, NULL, 0, &ov);
    wait_done((IND2Overlapped *)e->connector, hr, &ov);
    memset(&ov, 0, sizeof ov);
    wait_done((IND2Overlapped *)e->connector, IND2Connector_CompleteConnect(e->connector, &ov),
              &ov);
}

static void close_end(struct end *e) {
    OVERLAPPED ov = { 0 };
    if (e->connector) {
        HRESULT hr = IND2Connector_Disconnect(e->connector, &ov);
        if (hr == ND_PENDING)
            IND2Overlapped_GetOverlappedResult((IND2Overlapped *)e->connector, &ov, TRUE);
        IND2Connector_Release(e->connector);
        IND2QueuePair_Release(e->qp);
    }
    memset(&ov, 0, sizeof ov);
    if (IND2MemoryRegion_Deregister(e->mr, &ov) == ND_PENDING)
        IND2Overlapped_GetOverlappedResult((IND2Overlapped *)e->mr, &ov, TRUE);
    IND2MemoryRegion_Release(e->mr);
    IND2CompletionQueue_Release(e->cq);
    CloseHandle(e->file);
    IND2Adapter_Release(e->adapter);
    IND2Provider_Release(e->provider);
    free(e->buf);
}

/* Forks; the child listens and runs `serve`, the parent connects and runs `drive`. */
static double run_pair(size_t bytes, int crc, void (*serve)(struct end *, uint32_t, uint32_t),
                       double (*drive)(struct end *, uint32_t, uint32_t), uint32_t size,
                       uint32_t count) {
    int fd[2], back[2];
    double result = 0;
    if (pipe(fd) || pipe(back)) DIE("pipe");
    pid_t driver = fork();
    if (driver == 0) { /* each measurement in processes of its own */
        setenv("SOFTND_CRC", crc ? "on" : "off", 1);
        setenv("SOFTND_TRANSPORT", "iwarp", 0); /* what is compared with raw TCP */
        pid_t child = fork();
        struct end e;
        bench_pin(child == 0 ? 1 : 0);
        open_end(&e, bytes);
        if (child == 0) {
            struct listening l;
            listen_on(&e, &l);
            if (write(fd[1], &l.sin, sizeof l.sin) != sizeof l.sin) DIE("pipe");
            accept_on(&e, &l);
            serve(&e, size, count);
            close_end(&e);
            IND2Listener_Release(l.listener);
            _exit(0);
        }
        struct sockaddr_in sin;
        if (read(fd[0], &sin, sizeof sin) != sizeof sin) DIE("pipe");
        connect_to(&e, &sin);
        result = drive(&e, size, count);
        if (write(back[1], &result, sizeof result) != sizeof result) DIE("pipe");
        close_end(&e);
        int status;
        waitpid(child, &status, 0);
        _exit(status != 0);
    }
    close(fd[0]);
    close(fd[1]);
    close(back[1]);
    if (read(back[0], &result, sizeof result) != sizeof result) DIE("a measurement failed");
    close(back[0]);
    waitpid(driver, NULL, 0);
    return result;
}

/* ---- Send ping-pong ---- */

static void serve_latency(struct end *e, uint32_t size, uint32_t count) {
    ND2_SGE s = sge_of(e, 0, size);
    post_receive(e, size);
    post_receive(e, size);
    for (uint32_t i = 0; i < count; i++) {
        take(e, Nd2RequestTypeReceive, NULL);
        OK(IND2QueuePair_Send(e->qp, NULL, &s, 1, 0));
        post_receive(e, size);
    }
}

static double drive_latency(struct end *e, uint32_t size, uint32_t count) {
    double *samples = calloc(count, sizeof *samples);
    ND2_SGE s = sge_of(e, 0, size);
    post_receive(e, size);
    post_receive(e, size);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t t = bench_now_ns();
        OK(IND2QueuePair_Send(e->qp, NULL, &s, 1, 0));
        take(e, Nd2RequestTypeReceive, NULL);
        samples[i] = (double)(bench_now_ns() - t) / 2000.0;
        post_receive(e, size);
    }
    double median = bench_median(samples, count);
    free(samples);
    return median;
}

double nd_send_latency_us(uint32_t size, uint32_t rounds, int crc) {
    return run_pair(size < 4096 ? 4096 : size, crc, serve_latency, drive_latency, size, rounds);
}

/* ---- Write stream; the target does nothing but wait for the last message ---- */

static void serve_stream(struct end *e, uint32_t size, uint32_t count) {
    struct remote r = { (uint64_t)(uintptr_t)e->buf, IND2MemoryRegion_GetRemoteToken(e->mr) };
    memcpy(e->buf + size, &r, sizeof r);
    ND2_SGE s = sge_of(e, size, sizeof r);
    post_receive(e, 16);
    post_receive(e, 16);
    take(e, Nd2RequestTypeReceive, NULL);
    OK(IND2QueuePair_Send(e->qp, NULL, &s, 1, 0));
    take(e, Nd2RequestTypeReceive, NULL);
}

static double drive_stream(struct end *e, uint32_t size, uint32_t count) {
    struct remote r;
    ND2_SGE s = sge_of(e, 0, size), in = sge_of(e, size, sizeof r);
    OK(IND2QueuePair_Receive(e->qp, NULL, &in, 1));
    OK(IND2QueuePair_Send(e->qp, NULL, NULL, 0, 0));
    take(e, Nd2RequestTypeReceive, NULL);
    memcpy(&r, e->buf + size, sizeof r);
    uint32_t posted = 0, done = 0;
    uint64_t t = bench_now_ns();
    while (done < count) {
        while (posted < count && posted - done < 16) {
            OK(IND2QueuePair_Write(e->qp, NULL, &s, 1, r.addr, r.token, 0));
            posted++;
        }
        take(e, Nd2RequestTypeWrite, NULL);
        done++;
    }
    double seconds = (double)(bench_now_ns() - t) / 1e9;
    OK(IND2QueuePair_Send(e->qp, NULL, NULL, 0, 0));
    take(e, Nd2RequestTypeSend, NULL);
    return (double)size * count / seconds / 1e9;
}

double nd_write_stream_gbs(uint32_t size, uint32_t count, int crc) {
    return run_pair(size + 4096, crc, serve_stream, drive_stream, size, count);
}

/* ---- memory ---- */

static double own_bytes(void) {
    unsigned long pages, resident, shared;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu %lu %lu", &pages, &resident, &shared) != 3) DIE("/proc/self/statm");
    fclose(f);
    return (double)(resident - shared) * 4096.0;
}

double nd_idle_bytes(uint32_t pairs) {
    struct end e;
    struct listening l;
    open_end(&e, 4096);
    listen_on(&e, &l);
    IND2QueuePair **qp = calloc(pairs * 2, sizeof *qp);
    IND2Connector **conn = calloc(pairs * 2, sizeof *conn);
    double before = 0;
    uint32_t warm = pairs / 10; /* the first ones pay for tables that all share */
    for (uint32_t i = 0; i < pairs; i++) {
        OVERLAPPED ov[3];
        memset(ov, 0, sizeof ov);
        if (i == warm) before = own_bytes();
        make_qp(&e, &qp[2 * i], &conn[2 * i]);
        make_qp(&e, &qp[2 * i + 1], &conn[2 * i + 1]);
        HRESULT a = IND2Listener_GetConnectionRequest(l.listener, (IUnknown *)conn[2 * i], &ov[0]);
        HRESULT b =
            IND2Connector_Connect(conn[2 * i + 1], (IUnknown *)qp[2 * i + 1],
                                  (struct sockaddr *)&l.sin, sizeof l.sin, 0, 0, NULL, 0, &ov[1]);
        wait_done((IND2Overlapped *)l.listener, a, &ov[0]);
        a = IND2Connector_Accept(conn[2 * i], (IUnknown *)qp[2 * i], 0, 0, NULL, 0, &ov[2]);
        wait_done((IND2Overlapped *)conn[2 * i + 1], b, &ov[1]);
        memset(&ov[1], 0, sizeof ov[1]);
        b = IND2Connector_CompleteConnect(conn[2 * i + 1], &ov[1]);
        wait_done((IND2Overlapped *)conn[2 * i + 1], b, &ov[1]);
        wait_done((IND2Overlapped *)conn[2 * i], a, &ov[2]);
    }
    double each = (own_bytes() - before) / (2.0 * (pairs - warm));
    for (uint32_t i = 0; i < 2 * pairs; i++) {
        IND2Connector_Release(conn[i]);
        IND2QueuePair_Release(qp[i]);
    }
    free(qp);
    free(conn);
    IND2Listener_Release(l.listener);
    close_end(&e);
    return each;
}
