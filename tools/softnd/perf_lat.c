/* SPDX-License-Identifier: MIT
 * perf_lat.c - ping-pong: one message under way. Most Sends and Writes are silent; every
 * SIGNAL_EVERY one gives a result, so that their places in the queue come back.
 *
 * A Write's arrival is seen in the last byte of the target, which takes a value that the byte
 * cannot have had before.
 */
#include <stdatomic.h>
#include "perf_run.h"
#include "ping.h"
#include "sys.h"

#define SIGNAL_EVERY 8
/* Looks at the target's memory between two at the completion queue. */
#define LOOKS 16
enum { CONTEXT_TX = 1 };

struct pong {
    struct perf_end *e;
    struct perf_qp *q;
    struct perf_run *run;
    uint64_t signal_every;
    bool arrived; /* the peer's Send, or our Read */
    bool taken;   /* the receive of number `again` is to be posted again */
    uint32_t again;
};

/* A receive goes back to its queue behind the answer, which it would only delay. */
static HRESULT give_back(struct pong *p) {
    if (!p->taken) return ND_SUCCESS;
    p->taken = false;
    return perf_post_receive(p->e, p->q, p->again);
}

static HRESULT take(struct pong *p, const ND2_RESULT *r, uint64_t seq) {
    uint32_t i = (uint32_t)(uintptr_t)r->RequestContext;
    uint64_t size = p->run->request.size;

    if (r->RequestType != Nd2RequestTypeReceive) {
        p->q->done += p->signal_every;
        if (r->RequestType == Nd2RequestTypeRead) p->arrived = true;
        return ND_SUCCESS;
    }
    p->arrived = true;
    p->q->received++;
    if (r->BytesTransferred != size)
        p->run->own.wrong++;
    else if (p->e->params.verify && !ping_check(perf_receive_place(p->e, p->q, i), size, seq))
        p->run->own.wrong++;
    HRESULT hr = give_back(p);
    p->taken = true;
    p->again = i;
    return hr;
}

static HRESULT poll_results(struct pong *p, uint64_t seq) {
    ND2_RESULT results[PERF_RESULTS];
    ULONG n;
    HRESULT hr = perf_end_results(p->e, results, &n, false);

    for (ULONG i = 0; SUCCEEDED(hr) && i < n; i++)
        hr = take(p, &results[i], seq);
    return hr;
}

/* Values 1 to 255 in turn. */
static uint8_t mark_of(uint64_t seq) {
    return (uint8_t)(seq % 255 + 1);
}

static HRESULT post_message(struct pong *p, uint64_t seq) {
    struct perf_qp *q = p->q;
    /* A Write goes to the one place that the peer looks at; the answer to the one before has come,
     * so that its buffer is free as well. */
    uint64_t size = p->run->request.size, slot = p->e->params.verb == PERF_WRITE ? 0 : q->posted;
    uint8_t *at = perf_tx_place(p->e, slot);
    ULONG flags = (q->posted + 1) % p->signal_every ? ND_OP_FLAG_SILENT_SUCCESS : 0;
    HRESULT hr = ND_SUCCESS;

    while (SUCCEEDED(hr) && q->posted - q->done >= p->e->params.tx_depth)
        hr = poll_results(p, seq);
    if (FAILED(hr)) return hr;
    if (p->e->params.verb != PERF_READ && p->e->params.verify) ping_fill(at, size, seq);
    if (p->e->params.verb == PERF_WRITE) at[size - 1] = mark_of(seq);
    q->posted++;
    hr = perf_post(p->e, q, slot, size, CONTEXT_TX, flags);
    return SUCCEEDED(hr) ? give_back(p) : hr;
}

/* Until the peer's message is there. *over: it has said that it sends no more instead. */
static HRESULT await_message(struct pong *p, uint64_t seq, bool may_end, bool *over) {
    uint64_t size = p->run->request.size, waits = 0, since = 0;
    const volatile uint8_t *last = NULL;
    HRESULT hr;

    if (p->e->params.verb == PERF_WRITE) last = perf_target_place(p->e, 0) + size - 1;
    for (;;) {
        for (int i = 0; last && i < LOOKS && *last != mark_of(seq); i++)
            ;
        if (last && *last == mark_of(seq)) {
            atomic_thread_fence(memory_order_acquire);
            p->q->received++;
            if (p->e->params.verify && !ping_check(perf_target_place(p->e, 0), size - 1, seq))
                p->run->own.wrong++;
            return ND_SUCCESS;
        }
        hr = poll_results(p, seq);
        if (FAILED(hr)) return hr;
        if (!last && p->arrived) return ND_SUCCESS;
        if (may_end && p->e->have[PERF_DONE]) {
            *over = true;
            return ND_SUCCESS;
        }
        if (++waits % 4096 && !p->e->params.events) continue;
        if (!since) since = sys_now_ns();
        if (perf_end_stalled(p->e, since)) return ND_IO_TIMEOUT;
    }
}

/* Read: the content is the target's, filled before the run. */
static void check_read(struct pong *p) {
    uint64_t slot = p->q->posted - 1, size = p->run->request.size;
    uint64_t seq = slot % p->e->layout.target_slots + 1;
    uint8_t *at = perf_tx_place(p->e, slot);

    if (!p->e->params.verify) return;
    if (!ping_check(at, size, seq)) p->run->own.wrong++;
    at[0] ^= 0xff; /* what stays from now on would be seen as wrong */
}

static uint32_t clamp_ns(uint64_t ns) {
    return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static HRESULT send_pings(struct pong *p) {
    const struct perf_run_request *r = &p->run->request;
    bool over = false, is_read = p->e->params.verb == PERF_READ;
    uint64_t total = r->duration_ns ? UINT64_MAX : r->warmup + r->iterations, before, after;
    HRESULT hr;

    for (uint64_t i = 0; i < total; i++) {
        if (i == r->warmup) perf_run_start_clock(p->run);
        p->arrived = false;
        before = sys_now_ns();
        hr = post_message(p, 2 * i);
        if (SUCCEEDED(hr)) hr = await_message(p, 2 * i + 1, false, &over);
        if (FAILED(hr)) return hr;
        after = sys_now_ns();
        if (is_read) check_read(p);
        if (i < r->warmup) continue;
        p->run->samples_ns[p->run->sample_count++ % PERF_SAMPLES_MAX] = clamp_ns(after - before);
        if (p->run->progress) perf_run_tell(p->run, after, p->run->sample_count);
        if (perf_run_expired(p->e, p->run, after)) break;
    }
    perf_run_stop_clock(p->run, p->run->sample_count);
    return ND_SUCCESS;
}

static HRESULT answer_pings(struct pong *p) {
    bool over = false;
    HRESULT hr;

    perf_run_start_clock(p->run);
    for (uint64_t i = 0;; i++) {
        p->arrived = false;
        hr = await_message(p, 2 * i, true, &over);
        if (FAILED(hr) || over) break;
        hr = post_message(p, 2 * i + 1);
        if (FAILED(hr)) break;
    }
    perf_run_stop_clock(p->run, 0);
    return hr;
}

HRESULT perf_run_latency(struct perf_end *e, struct perf_run *run) {
    struct pong p = { .e = e, .q = &e->qps[0], .run = run };
    bool is_read = e->params.verb == PERF_READ;
    struct perf_message m;
    HRESULT hr;

    p.signal_every = is_read || e->params.tx_depth < 2 * SIGNAL_EVERY ? 1 : SIGNAL_EVERY;
    if (run->sends) {
        hr = send_pings(&p);
        if (SUCCEEDED(hr)) hr = perf_say_done(e, p.q->posted, p.q->posted);
    } else if (is_read) {
        perf_run_start_clock(run);
        hr = perf_serve(e);
        perf_run_stop_clock(run, 0);
    } else {
        hr = answer_pings(&p);
    }
    if (FAILED(hr)) return hr;
    if (run->sends) return perf_control_wait(e, PERF_RESULT, &m);
    e->have[PERF_DONE] = false;
    return perf_say_result(e, run);
}
