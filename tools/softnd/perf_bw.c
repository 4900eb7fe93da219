/* SPDX-License-Identifier: MIT
 * perf_bw.c - bandwidth and message rate: as many messages under way as the depth allows.
 *
 * A Send must find a Receive: the sender has at most rx_depth messages under way for which it has
 * no credit. An empty message is a credit for perf_credit_batch messages.
 *
 * The time ends when everything has arrived, not when it was handed to the transport: after Writes
 * a Read of the same queue pair proves that, after Sends the peer's word on the control connection.
 */
#include <string.h>
#include "perf_run.h"
#include "ping.h"
#include "sys.h"

enum { CONTEXT_TX = 1, CONTEXT_CREDIT, CONTEXT_FENCE };
/* Looks at the queue between two at the clock; asking for the time costs as much as a message. */
#define CLOCK_EVERY 16

struct flow {
    struct perf_end *e;
    struct perf_run *run;
    uint64_t left;         /* queue pairs that still have something to send or to hear of */
    uint64_t posted, done; /* messages of all queue pairs */
    uint64_t warming; /* queue pairs that are not done with the messages before the measurement */
    uint64_t cycle;   /* next slot of cold buffers */
    bool timed, stopping, sent_all;
    uint32_t looks;
    uint64_t marks_every, marks_at;
};

static bool is_send(const struct flow *f) {
    return f->e->params.verb == PERF_SEND;
}

static uint64_t total_of(const struct flow *f) {
    return f->run->request.warmup + f->run->request.iterations;
}

/* ---- sending ---- */

static uint64_t room_of(const struct flow *f, const struct perf_qp *q) {
    uint64_t room = f->e->params.tx_depth - (q->posted - q->done), window;

    if (is_send(f)) {
        window = f->e->params.rx_depth - (q->sent - q->credited);
        if (window < room) room = window;
    }
    if (q->target - q->posted < room) room = q->target - q->posted;
    return room;
}

/* With verification each message under way has its own place; otherwise they share one, or cycle
 * through all. */
static uint64_t next_slot(struct flow *f, const struct perf_qp *q) {
    if (f->e->params.verify)
        return q->index * f->e->params.tx_depth + q->posted % f->e->params.tx_depth;
    return f->e->params.cold_bytes ? f->cycle++ : 0;
}

static HRESULT post_message(struct flow *f, struct perf_qp *q) {
    const struct perf_params *p = &f->e->params;
    uint64_t slot = next_slot(f, q), size = f->run->request.size, n = q->posted + 1;
    bool silent = n % p->cq_moderation != 0 && n != q->target;
    HRESULT hr;

    if (p->verify && is_send(f)) ping_fill(perf_tx_place(f->e, slot), size, q->sent);
    hr = perf_post(f->e, q, slot, size, CONTEXT_TX, silent ? ND_OP_FLAG_SILENT_SUCCESS : 0);
    if (FAILED(hr)) return hr;
    q->posted++;
    q->sent++;
    f->posted++;
    return ND_SUCCESS;
}

static HRESULT fill_queue(struct flow *f, struct perf_qp *q) {
    uint64_t room = room_of(f, q), batch = f->e->params.post_batch;
    HRESULT hr = ND_SUCCESS;

    if (room < batch && room < q->target - q->posted) return ND_SUCCESS;
    for (; room && SUCCEEDED(hr); room--)
        hr = post_message(f, q);
    return hr;
}

static HRESULT give_credit(struct flow *f, struct perf_qp *q) {
    HRESULT hr = ND_SUCCESS;

    while (q->credits_due && q->credits_out < PERF_CREDIT_SLOTS && SUCCEEDED(hr)) {
        hr = perf_post_credit(q, CONTEXT_CREDIT);
        if (FAILED(hr)) break;
        q->credits_due--;
        q->credits_out++;
    }
    return hr;
}

/* ---- results ---- */

static void mark(struct flow *f) {
    struct perf_run *run = f->run;

    if (f->done < f->marks_at) return;
    if (run->mark_count == PERF_MARKS_MAX) {
        run->mark_count = perf_thin_marks(run->marks, run->mark_count);
        f->marks_every *= 2;
    }
    run->marks[run->mark_count++] =
        (struct perf_mark){ .ns = sys_now_ns(), .posted = f->posted, .done = f->done };
    f->marks_at = f->done + f->marks_every;
}

static void check_reads(struct flow *f, struct perf_qp *q, uint64_t from, uint64_t to) {
    uint64_t depth = f->e->params.tx_depth;

    for (; from < to; from++) {
        uint64_t slot = q->index * depth + from % depth;
        uint8_t *at = perf_tx_place(f->e, slot);
        if (!ping_check(at, f->run->request.size, slot + 1)) f->run->own.wrong++;
        at[0] ^= 0xff; /* seen as wrong if it stays */
    }
}

/* A result stands for all messages up to the next that asked for one. */
static void finish_messages(struct flow *f, struct perf_qp *q) {
    uint64_t before = q->done, every = f->e->params.cq_moderation;

    q->done = (before / every + 1) * every;
    if (q->done > q->target) q->done = q->target;
    if (f->e->params.verify && f->e->params.verb == PERF_READ) check_reads(f, q, before, q->done);
    f->done += q->done - before;
}

static HRESULT take_receive(struct flow *f, struct perf_qp *q, const ND2_RESULT *r) {
    uint32_t i = (uint32_t)(uintptr_t)r->RequestContext;
    const struct perf_params *p = &f->e->params;

    if (!r->BytesTransferred) {
        q->credited += perf_credit_batch(p);
        if (q->credited > q->sent) return ND_REMOTE_ERROR;
        return perf_post_receive(f->e, q, i);
    }
    if (r->BytesTransferred != f->run->request.size ||
        (p->verify && !ping_check(perf_receive_place(f->e, q, i), r->BytesTransferred, q->got)))
        f->run->own.wrong++;
    q->got++;
    q->received++;
    f->run->own.received++;
    if (++q->uncredited == perf_credit_batch(p)) {
        q->uncredited = 0;
        q->credits_due++;
    }
    return perf_post_receive(f->e, q, i);
}

static HRESULT fill_all(struct flow *f) {
    HRESULT hr = ND_SUCCESS;

    for (uint32_t i = 0; i < f->e->params.qps && SUCCEEDED(hr); i++)
        hr = fill_queue(f, &f->e->qps[i]);
    return hr;
}

/* Everything that warms up is complete: the measurement begins with empty queues. */
static HRESULT begin_measuring(struct flow *f) {
    f->timed = true;
    for (uint32_t i = 0; i < f->e->params.qps; i++)
        f->e->qps[i].target = f->run->request.duration_ns ? UINT64_MAX : total_of(f);
    perf_run_start_clock(f->run);
    f->run->own.messages = f->done; /* those are not counted */
    mark(f);
    return fill_all(f);
}

/* All messages of the queue pair are complete. */
static HRESULT finish_queue(struct flow *f, struct perf_qp *q) {
    if (!f->timed) {
        if (q->warm) return ND_SUCCESS;
        q->warm = true;
        return --f->warming ? ND_SUCCESS : begin_measuring(f);
    }
    q->fence_posted = true;
    if (f->e->params.verb == PERF_WRITE) return perf_post_fence(f->e, q, CONTEXT_FENCE);
    q->fenced = true;
    f->left--;
    return ND_SUCCESS;
}

static HRESULT take(struct flow *f, const ND2_RESULT *r) {
    struct perf_qp *q = r->QueuePairContext;
    HRESULT hr;

    if (r->RequestType == Nd2RequestTypeReceive) {
        hr = take_receive(f, q, r);
    } else if ((uintptr_t)r->RequestContext == CONTEXT_CREDIT) {
        q->credits_out--;
        hr = ND_SUCCESS;
    } else if ((uintptr_t)r->RequestContext == CONTEXT_FENCE) {
        q->fenced = true;
        f->left--;
        return ND_SUCCESS;
    } else {
        finish_messages(f, q);
        hr = ND_SUCCESS;
    }
    if (SUCCEEDED(hr)) hr = give_credit(f, q);
    if (SUCCEEDED(hr) && f->run->sends) hr = fill_queue(f, q);
    if (FAILED(hr) || !f->run->sends) return hr;
    return q->done == q->target && !q->fence_posted ? finish_queue(f, q) : ND_SUCCESS;
}

/* ---- the run ---- */

/* The last message must give a result: up to a multiple of the moderation. */
static void stop_posting(struct flow *f) {
    uint64_t every = f->e->params.cq_moderation;

    f->stopping = true;
    for (uint32_t i = 0; i < f->e->params.qps; i++) {
        struct perf_qp *q = &f->e->qps[i];
        q->target = (q->posted + every - 1) / every * every;
        if (q->target == q->done) q->target += every; /* what is done now could not notice */
    }
}

static void prepare(struct flow *f) {
    struct perf_end *e = f->e;

    f->marks_every = 1;
    f->run->mark_count = 0;
    for (uint32_t i = 0; i < e->params.qps; i++) {
        struct perf_qp *q = &e->qps[i];
        q->posted = q->done = q->received = 0;
        q->fence_posted = q->fenced = q->warm = false;
        q->target = f->run->sends ? f->run->request.warmup : 0;
    }
    f->left = f->warming = f->run->sends ? e->params.qps : 0;
}

/* With nothing to warm up the measurement begins at once; an end that only serves is timed from
 * here. */
static HRESULT start(struct flow *f) {
    prepare(f);
    if (f->run->sends) return f->run->request.warmup ? fill_all(f) : begin_measuring(f);
    f->timed = true;
    perf_run_start_clock(f->run);
    return ND_SUCCESS;
}

static uint64_t least_posted(const struct flow *f) {
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < f->e->params.qps; i++)
        if (f->e->qps[i].posted < least) least = f->e->qps[i].posted;
    return least;
}

static uint64_t all_posted(const struct flow *f) {
    uint64_t sum = 0;

    for (uint32_t i = 0; i < f->e->params.qps; i++)
        sum += f->e->qps[i].posted;
    return sum;
}

/* Every place that a Write has gone to holds what was written. */
static void check_written(struct flow *f, uint64_t least) {
    const struct perf_params *p = &f->e->params;
    uint64_t used = least < p->tx_depth ? least : p->tx_depth;

    for (uint64_t q = 0; q < p->qps; q++)
        for (uint64_t i = 0; i < used; i++) {
            uint64_t slot = q * p->tx_depth + i;
            if (!ping_check(perf_target_place(f->e, slot), f->run->request.size, slot + 1))
                f->run->own.wrong++;
        }
}

/* What the control connection and the clock ask for. *over: both ends are done. */
static HRESULT look_around(struct flow *f, bool *told, bool *answered, bool *over) {
    struct perf_end *e = f->e;
    HRESULT hr = ND_SUCCESS;

    if (f->run->progress && f->timed && f->left)
        perf_run_tell(f->run, sys_now_ns(), f->done - f->run->own.messages);
    if (f->run->sends && f->timed && !f->stopping && ++f->looks % CLOCK_EVERY == 0 &&
        perf_run_expired(e, f->run, sys_now_ns())) {
        stop_posting(f);
        hr = fill_all(f);
    }
    if (SUCCEEDED(hr) && !*told && !f->left) {
        *told = true;
        if (f->run->sends && !is_send(f))
            perf_run_stop_clock(f->run, f->done - f->run->own.messages);
        hr = perf_say_done(e, all_posted(f), least_posted(f));
    }
    if (SUCCEEDED(hr) && e->have[PERF_DONE] && !*answered &&
        (!is_send(f) || f->run->own.received >= e->inbox[PERF_DONE].v[0])) {
        *answered = true;
        if (e->params.verify && e->params.verb == PERF_WRITE && e->inbox[PERF_DONE].v[0])
            check_written(f, e->inbox[PERF_DONE].v[1]);
        if (!f->run->sends) perf_run_stop_clock(f->run, 0);
        hr = perf_say_result(e, f->run);
    }
    if (SUCCEEDED(hr) && e->have[PERF_RESULT] && *told && !f->sent_all) {
        f->sent_all = true;
        if (f->run->sends && is_send(f))
            perf_run_stop_clock(f->run, f->done - f->run->own.messages);
    }
    *over = *answered && f->sent_all;
    return hr;
}

HRESULT perf_run_bandwidth(struct perf_end *e, struct perf_run *run) {
    struct flow f = { .e = e, .run = run };
    bool told = false, answered = false, over = false;
    uint64_t moved_ns = sys_now_ns();
    uint32_t quiet = 0;
    ND2_RESULT results[PERF_RESULTS];
    HRESULT hr;
    ULONG n;

    hr = start(&f);
    if (SUCCEEDED(hr) && !run->sends && e->params.verb != PERF_SEND) hr = perf_serve(e);
    while (SUCCEEDED(hr)) {
        hr = look_around(&f, &told, &answered, &over);
        if (FAILED(hr) || over) break;
        hr = perf_end_results(e, results, &n, false);
        for (ULONG i = 0; i < n && SUCCEEDED(hr); i++)
            hr = take(&f, &results[i]);
        if (n && f.timed && run->sends) mark(&f);
        quiet = n ? 0 : quiet + 1;
        if (n || (quiet % 1024 && !e->params.events)) {
            if (n) moved_ns = 0;
            continue;
        }
        if (!moved_ns) moved_ns = sys_now_ns();
        if (perf_end_stalled(e, moved_ns)) hr = ND_IO_TIMEOUT;
    }
    e->have[PERF_DONE] = e->have[PERF_RESULT] = false;
    return hr;
}
