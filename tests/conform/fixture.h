/* SPDX-License-Identifier: MIT
 * fixture.h - what the conformance programs share: the provider, an adapter on each side of a
 * connection, connected pairs of queue pairs inside one process, waits with a deadline, and data
 * that shows lost, doubled and misplaced bytes.
 *
 * The suite uses the public headers and the binary interface only, so it can run against any
 * NetworkDirect version 2 provider. The environment chooses what and how:
 *   SOFTND_PROVIDER       path of the provider library (default: the one of this build)
 *   CONFORM_PROVIDER_ID   its class id, as registry text (default: SoftND's)
 *   CONFORM_ADDR          address of the adapter to test (default 127.0.0.1)
 *   CONFORM_WAIT          poll (default) or notify: how results and requests are waited for
 *   CONFORM_TRANSPORT     given on to the provider as SOFTND_TRANSPORT
 *   CONFORM_DEADLINE_MS   how long something that must happen may take (default 30000)
 *   CONFORM_SEED          seed of the random cases (default: from the clock; printed)
 *
 * Owns:    all objects of a case, see struct fx.
 * Threads: one thread runs the case and is the only one that may call functions which can fail the
 *          case; other threads use the interfaces directly and leave their verdict in memory.
 * Errors:  a function that cannot do its work fails the case and does not return.
 */
#ifndef SN_TESTS_CONFORM_FIXTURE_H
#define SN_TESTS_CONFORM_FIXTURE_H

#include "ndspi.h"
#include "ndstatus.h"
#include "host.h"
#include "support/testing.h"

/* One way to call a method, so that object and first argument cannot differ. */
#define CALL(object, method, ...) ((object)->lpVtbl->method((object), ##__VA_ARGS__))
#define UNKNOWN(object) ((IUnknown *)(object))
#define OVERLAPPED_OF(object) ((IND2Overlapped *)(object))

/* Statuses without an ND name. */
#define ST_DATA_ERROR ((HRESULT)0xC000003E)
#define ST_BAD_NETWORK_NAME ((HRESULT)0xC00000CC)
#define ST_ADDRESS_ALREADY_ASSOCIATED ((HRESULT)0xC0000238)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

/* ---- checks ---- */

/* The status by name. The text lasts for the next few calls of the thread. */
const char *fx_status_text(HRESULT hr);

#define CHECK_HR(actual, expected)                                                                 \
    do {                                                                                           \
        HRESULT check_a = (actual), check_e = (expected);                                          \
        if (check_a != check_e)                                                                    \
            FAIL("%s gave %s, expected %s", #actual, fx_status_text(check_a),                      \
                 fx_status_text(check_e));                                                         \
    } while (0)

#define CHECK_FAILED(actual)                                                                       \
    do {                                                                                           \
        HRESULT check_a = (actual);                                                                \
        if (!FAILED(check_a))                                                                      \
            FAIL("%s gave %s, expected a failure", #actual, fx_status_text(check_a));              \
    } while (0)

/* How the fixture ends a case: conform_main() in each program sets it. 1 failed, 2 skipped. */
extern void (*fx_escape)(int outcome);
/* The place in the case that calls into the fixture, for messages. */
void fx_at(const char *file, int line);
#define AT_HERE() fx_at(__FILE__, __LINE__)

/* ---- one case ---- */

struct fx_object; /* an interface that the fixture releases at the end */
struct fx_memory;

/* A machine, as far as the SPI knows: an opened adapter and an overlapped file of it. */
struct fx_host {
    IND2Adapter *adapter;
    HANDLE file;
};

/* What a case needs from the start. host[0] is the active side, host[1] the passive one; they are
 * two instances of the same adapter, so that nothing works by sharing objects. */
struct fx {
    IND2Provider *provider;
    UINT64 adapter_id;
    struct fx_host host[2];
    ND2_ADAPTER_INFO info;
    struct sockaddr_storage local; /* the adapter's address, port 0 */
    ULONG local_len;
    struct fx_object *objects;      /* newest first */
    struct fx_overlapped *requests; /* every OVERLAPPED handed out */
    struct fx_memory *memories;
    struct fx_buffer *buffers;
};

/* Opens the provider and the adapter twice. */
struct fx *fx_begin(void);
/* Releases everything that is left, newest object first, and checks that each count falls to 0. */
void fx_end(struct fx *f);

/* Registers an interface with the fixture, or takes it out again. */
void fx_track(struct fx *f, void *object);
void fx_untrack(struct fx *f, void *object);
/* The last Release of a tracked interface; returns what Release returned. */
ULONG fx_release(struct fx *f, void *object);

/* Zeroed memory that lives until fx_end. */
void *fx_alloc(struct fx *f, size_t bytes);
/* A zeroed OVERLAPPED with an auto-reset event, which lives until fx_end. */
OVERLAPPED *fx_overlapped(struct fx *f);

bool fx_notify_mode(void);
uint64_t fx_deadline(void); /* the moment until which something that must happen now may take */
uint64_t fx_seed(void);

/* ---- the provider ---- */

typedef HRESULT(STDMETHODCALLTYPE *fx_get_class_object_fn)(REFCLSID, REFIID, LPVOID *);
typedef HRESULT(STDMETHODCALLTYPE *fx_can_unload_now_fn)(void);

struct fx_library {
    HMODULE module;
    GUID class_id;
    fx_get_class_object_fn get_class_object;
    fx_can_unload_now_fn can_unload_now;
};
/* Loaded at the first call. */
const struct fx_library *fx_library(void);
/* A provider object of its own; the caller releases it. */
IND2Provider *fx_provider(void);

/* ---- objects; all tracked ---- */

IND2CompletionQueue *fx_cq(struct fx *f, int host, ULONG depth);
IND2Connector *fx_connector(struct fx *f, int host);
IND2Listener *fx_listener(struct fx *f, int host);
IND2MemoryWindow *fx_window(struct fx *f, int host);
IND2SharedReceiveQueue *fx_srq(struct fx *f, int host, ULONG depth, ULONG sge, ULONG threshold);
/* receive and initiator depth the same, as the SGE numbers. */
IND2QueuePair *fx_qp(struct fx *f, int host, IND2CompletionQueue *receive_cq,
                     IND2CompletionQueue *initiator_cq, void *context, ULONG depth, ULONG sge,
                     ULONG inline_bytes);

/* A buffer and its region. */
struct fx_memory {
    struct fx_memory *next;
    IND2MemoryRegion *region; /* tracked */
    uint8_t *bytes;
    size_t len;
    UINT32 local, remote; /* tokens */
    bool registered;
    bool own_buffer; /* freed by fx_end */
};
/* A new buffer, or the caller's (which must live until fx_end or a Deregister). */
struct fx_memory *fx_memory(struct fx *f, int host, size_t len, ULONG flags);
struct fx_memory *fx_memory_over(struct fx *f, int host, void *bytes, size_t len, ULONG flags);
void fx_deregister(struct fx *f, struct fx_memory *m);
/* Local read and write, remote read and write. */
#define FX_MR_ALL (ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE)

ND2_SGE fx_sge(const struct fx_memory *m, size_t offset, size_t len);
UINT64 fx_remote(const struct fx_memory *m, size_t offset);

/* ---- overlapped requests ---- */

/* The final status of a request that the call answered with hr: hr itself, or (ND_PENDING) what
 * the object says once the request is complete. Waits for the event or polls, by CONFORM_WAIT. */
HRESULT fx_finish(struct fx *f, IND2Overlapped *object, OVERLAPPED *ov, HRESULT hr);
#define FINISH(f, object, ov, hr) (AT_HERE(), fx_finish(f, OVERLAPPED_OF(object), ov, hr))
/* Of a request that is known to be pending. */
#define WAIT(f, object, ov) FINISH(f, object, ov, ND_PENDING)
/* The call and its outcome in one, with an OVERLAPPED of its own. The last argument of the call
 * must be written `ov`. */
#define RUN(f, object, method, ...)                                                                \
    (AT_HERE(), fx_run_begin(f),                                                                   \
     fx_finish(f, OVERLAPPED_OF(object), fx_run_ov, CALL(object, method, ##__VA_ARGS__)))
extern OVERLAPPED *fx_run_ov; /* the OVERLAPPED of the RUN in progress */
void fx_run_begin(struct fx *f);
/* Whether it is complete, by the OVERLAPPED alone. */
bool fx_is_done(const OVERLAPPED *ov);

/* ---- connections ---- */

struct fx_side {
    int host;
    IND2CompletionQueue *receive_cq, *initiator_cq;
    IND2QueuePair *qp;
    IND2Connector *connector;
    void *context; /* of the queue pair; checked in every result */
};

struct fx_pair {
    struct fx_side a; /* active: Connect, CompleteConnect */
    struct fx_side b; /* passive: Accept */
    IND2Listener *listener;
    struct sockaddr_storage at; /* where the listener listens */
    ULONG at_len;
};

struct fx_pair_options {
    ULONG depth;                 /* of all four queues; 0: 16 */
    ULONG cq_depth;              /* 0: what the queues can need */
    ULONG sge;                   /* 0: 4 or the adapter's maximum */
    ULONG inline_bytes;          /* as it is */
    ULONG read_limit;            /* all four; 0: 4 */
    bool no_reads;               /* limits 0 */
    bool one_cq;                 /* receive and initiator results in one queue, on each side */
    bool same_adapter;           /* both sides on host[0] */
    bool swap_hosts;             /* the active side on host[1] */
    IND2SharedReceiveQueue *srq; /* of side b */
};

/* Objects only. */
struct fx_pair *fx_pair_create(struct fx *f, const struct fx_pair_options *o);
/* Objects and the connection. o may be NULL. */
struct fx_pair *fx_pair_connect(struct fx *f, const struct fx_pair_options *o);
#define PAIR(f, o) (AT_HERE(), fx_pair_connect(f, o))
#define PAIR_CREATE(f, o) (AT_HERE(), fx_pair_create(f, o))

/* The steps, for cases that stop in the middle. */
void fx_listen(struct fx *f, struct fx_pair *p);          /* port 0; sets at */
OVERLAPPED *fx_request(struct fx *f, struct fx_pair *p);  /* GetConnectionRequest, pending */
OVERLAPPED *fx_call(struct fx *f, struct fx_pair *p);     /* Bind to port 0, Connect, pending */
OVERLAPPED *fx_accept(struct fx *f, struct fx_pair *p);   /* Accept, pending */
OVERLAPPED *fx_complete(struct fx *f, struct fx_pair *p); /* CompleteConnect, pending */
/* Up to the point where the passive side holds the request; Connect stays pending in *call. */
void fx_to_requested(struct fx *f, struct fx_pair *p, OVERLAPPED **call);
/* Up to the point where the active side has the answer; Accept stays pending in *accept. */
void fx_to_answered(struct fx *f, struct fx_pair *p, OVERLAPPED **accept);
/* To the end. */
void fx_handshake(struct fx *f, struct fx_pair *p, const struct fx_pair_options *o);
/* Disconnect on one side, waited for. */
void fx_disconnect(struct fx *f, struct fx_side *s);

/* An address with its port changed. */
struct sockaddr_storage fx_with_port(const struct sockaddr_storage *addr, USHORT port);
USHORT fx_port(const struct sockaddr_storage *addr);
#define ADDR(storage) ((const struct sockaddr *)&(storage))

/* ---- posting: one SGE over m (or none if len is 0), returns the call's status ---- */

HRESULT fx_send(struct fx_side *s, void *context, const struct fx_memory *m, size_t offset,
                size_t len, ULONG flags);
HRESULT fx_receive(struct fx_side *s, void *context, const struct fx_memory *m, size_t offset,
                   size_t len);
HRESULT fx_write(struct fx_side *s, void *context, const struct fx_memory *m, size_t offset,
                 size_t len, const struct fx_memory *to, size_t to_offset, ULONG flags);
HRESULT fx_read(struct fx_side *s, void *context, const struct fx_memory *m, size_t offset,
                size_t len, const struct fx_memory *from, size_t from_offset, ULONG flags);
HRESULT fx_bind(struct fx_side *s, void *context, const struct fx_memory *m,
                IND2MemoryWindow *window, size_t offset, size_t len, ULONG flags);

#define SEND(...) CHECK_HR(fx_send(__VA_ARGS__), ND_SUCCESS)
#define RECEIVE(...) CHECK_HR(fx_receive(__VA_ARGS__), ND_SUCCESS)
#define WRITE(...) CHECK_HR(fx_write(__VA_ARGS__), ND_SUCCESS)
#define READ(...) CHECK_HR(fx_read(__VA_ARGS__), ND_SUCCESS)
#define BIND(...) CHECK_HR(fx_bind(__VA_ARGS__), ND_SUCCESS)
#define CTX(n) ((void *)(uintptr_t)(n))

/* ---- results ---- */

/* The next result of the queue; waits as CONFORM_WAIT says. */
void fx_next(struct fx *f, IND2CompletionQueue *cq, ND2_RESULT *result);
/* When set, results are polled for in notify mode too: for cases that arm the queue themselves. */
extern bool fx_poll_results;
/* False if nothing came in time; never fails the case. For other threads than the case's. */
bool fx_next_by(IND2CompletionQueue *cq, ND2_RESULT *result, uint64_t deadline_ms);

#define FX_ANY_BYTES (-1ll)
/* The next result of the side's queue for this type of request must be this one. */
void fx_expect(struct fx *f, struct fx_side *s, ND2_REQUEST_TYPE type, HRESULT status,
               void *context, long long bytes);
#define EXPECT_OK(f, s, type, context, bytes)                                                      \
    (AT_HERE(), fx_expect(f, s, Nd2RequestType##type, ND_SUCCESS, context, (long long)(bytes)))
#define EXPECT_ERROR(f, s, type, status, context)                                                  \
    (AT_HERE(), fx_expect(f, s, Nd2RequestType##type, status, context, FX_ANY_BYTES))
#define NEXT(f, cq, result) (AT_HERE(), fx_next(f, cq, result))
/* Nothing is queued now. */
#define EXPECT_EMPTY(cq)                                                                           \
    do {                                                                                           \
        ND2_RESULT empty_r;                                                                        \
        if (CALL(cq, GetResults, &empty_r, 1) != 0)                                                \
            FAIL("a result where none was expected: type %d, %s", (int)empty_r.RequestType,        \
                 fx_status_text(empty_r.Status));                                                  \
    } while (0)
/* Sends from one side of a pair to the other and waits for both results: everything that was
 * posted before on that side has been processed by the peer when it returns. m: len bytes at
 * offset 0 of a region of each side; NULL for an empty message. */
void fx_sync(struct fx *f, struct fx_side *from, struct fx_side *to);
#define SYNC(f, from, to) (AT_HERE(), fx_sync(f, from, to))

/* ---- data ---- */

/* Byte n of message msg of a test is a function of (seed, msg, n). fill writes bytes
 * [from, from + len) of the message; wrong_at returns the index of the first wrong byte in them,
 * or len. */
void fx_fill(void *bytes, size_t len, uint64_t seed, uint64_t msg, size_t from);
size_t fx_wrong_at(const void *bytes, size_t len, uint64_t seed, uint64_t msg, size_t from);
#define CHECK_DATA(bytes, len, seed, msg, from)                                                    \
    do {                                                                                           \
        size_t data_n = (len), data_w = fx_wrong_at(bytes, data_n, seed, msg, from);               \
        if (data_w != data_n)                                                                      \
            FAIL("message %llu is wrong at byte %zu of %zu", (unsigned long long)(msg), data_w,    \
                 data_n);                                                                          \
    } while (0)

/* Pseudo-random numbers with a seed of their own. */
uint64_t fx_random(uint64_t *state);
static inline size_t fx_random_below(uint64_t *state, size_t limit) {
    return (size_t)(fx_random(state) % limit);
}

/* ---- main ---- */

static inline void conform_escape(int outcome) {
    longjmp(test_escape, outcome);
}

#define CONFORM_MAIN(...)                                                                          \
    int main(int argc, char **argv) {                                                              \
        static const struct test_case cases[] = { __VA_ARGS__ };                                   \
        fx_escape = conform_escape;                                                                \
        return test_main(argc, argv, cases, COUNT_OF(cases));                                      \
    }

#endif
