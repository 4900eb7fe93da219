/* SPDX-License-Identifier: MIT
 * cmd_ping.c - `softnd ping`: the client. The message comes back as it was sent; the time is from
 * the post of the Send to the result of the Receive.
 */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>
#include "nd_client.h"
#include "ping.h"
#include "ping_rping.h"
#include "stats.h"
#include "sys.h"
#include "text.h"

#define SIZE_DEFAULT 64
#define CONNECT_MS 30000
#define TIMEOUT_DEFAULT 10
#define RECEIVES 2

enum {
    OPT_SERVER,
    OPT_PORT,
    OPT_SIZE,
    OPT_COUNT,
    OPT_INTERVAL,
    OPT_TIMEOUT,
    OPT_VERIFY,
    OPT_QUIET,
    OPT_RPING,
    OPT_HELP
};

static const struct args_option options[] = {
    [OPT_SERVER] = { 's', "server", NULL, "answer pings, on ADDR or on all addresses" },
    [OPT_PORT] = { 'p', "port", "PORT", "port, 0 for a free one with --server (default 7571)" },
    [OPT_SIZE] = { 'b', "size", "BYTES", "message size, 0 to 64M (default 64)" },
    [OPT_COUNT] = { 'c', "count", "N", "stop after N pings (default: until interrupted)" },
    [OPT_INTERVAL] = { 'i', "interval", "SECONDS", "between pings, 0 for none (default 1)" },
    [OPT_TIMEOUT] = { 't', "timeout", "SECONDS", "longest wait for an answer (default 10)" },
    [OPT_VERIFY] = { 'v', "verify", NULL, "compare every byte that comes back" },
    [OPT_QUIET] = { 'q', "quiet", NULL, "only the summary" },
    [OPT_RPING] = { 0, "rping", NULL, "speak the protocol of rping (port 7174)" },
    [OPT_HELP] = { 'h', "help", NULL, "this text" },
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

struct client {
    struct ndc_conn conn;
    struct ndc_region memory; /* the message to send, then RECEIVES messages to receive */
    uint32_t size, count, timeout_ms;
    double interval_s;
    bool verify, quiet, use_inline;
    uint64_t sent, received, corrupt;
    bool send_pending;
    struct stats times_us;
    char peer[80], transport[16];
};

static int print_help(void) {
    puts(
        "Usage: softnd ping --server [ADDR[:PORT]]\n"
        "       softnd ping HOST[:PORT]\n"
        "\n"
        "Sends messages to a softnd ping server, which sends them back, and prints the round trip\n"
        "times. The server answers any number of clients until it is interrupted. With --rping "
        "the\n"
        "other end may be rping, the ping of the verbs libraries: each round is a Read and a Write "
        "by\n"
        "the server, which serves one client after the other, of buffers up to its own --size.\n");
    args_print_help(options, OPTION_COUNT, stdout);
    puts("\nExit code: 0 every ping was answered (and verified), 1 failure, 2 wrong usage.");
    return EXIT_DONE;
}

static size_t slot_of(const struct client *c, uint32_t i) {
    return (size_t)i * c->size;
}

static HRESULT post_receive(struct client *c, uint32_t i) {
    ND2_SGE sge = ndc_sge(&c->memory, slot_of(c, i + 1), c->size);

    return IND2QueuePair_Receive(c->conn.qp, (void *)(uintptr_t)(i + 1), &sge, c->size ? 1 : 0);
}

static HRESULT connect_to(struct ndc_target *t, void *context) {
    struct client *c = context;
    ULONG inline_bytes = t->ad.info.MaxInlineDataSize;
    struct ndc_spec spec = { .receives = RECEIVES,
                             .requests = 2,
                             .receive_sges = 1,
                             .request_sges = 1,
                             .spin_ns = PING_SPIN_NS };
    uint8_t hello[PING_GREETING_BYTES];
    HRESULT hr;

    c->use_inline = c->size <= inline_bytes;
    spec.inline_bytes = c->use_inline ? c->size : 0;
    hr = ndc_conn_create(&c->conn, &t->ad, &spec, NULL);
    if (FAILED(hr)) return hr;
    hr = ndc_region_create(&t->ad, (size_t)c->size * (RECEIVES + 1), ND_MR_FLAG_ALLOW_LOCAL_WRITE,
                           &c->memory);
    for (uint32_t i = 0; SUCCEEDED(hr) && i < RECEIVES; i++)
        hr = post_receive(c, i);
    ping_pack_greeting(c->size, hello);
    if (SUCCEEDED(hr))
        hr = ndc_conn_connect(&c->conn, (struct sockaddr *)&t->local, (struct sockaddr *)&t->remote,
                              0, 0, hello, sizeof hello, CONNECT_MS);
    if (FAILED(hr)) {
        ndc_conn_close(&c->conn);
        ndc_region_destroy(&c->memory);
    }
    return hr;
}

/* The answer to the ping under way has come: slot i holds it. */
static HRESULT take_answer(struct client *c, const ND2_RESULT *r, double us) {
    uint32_t i = (uint32_t)(uintptr_t)r->RequestContext - 1;
    const uint8_t *at = c->memory.buf + slot_of(c, i + 1);
    bool right = r->BytesTransferred == c->size;

    if (right && c->verify) right = ping_check(at, c->size, c->sent);
    c->received++;
    if (!right) c->corrupt++;
    stats_add(&c->times_us, us);
    if (!c->quiet)
        printf("%u bytes from %s: seq=%llu time=%.1f us%s\n", (unsigned)r->BytesTransferred,
               c->peer, (unsigned long long)c->sent, us, right ? "" : " WRONG DATA");
    return post_receive(c, i);
}

static HRESULT ping_once(struct client *c) {
    ND2_SGE sge = ndc_sge(&c->memory, 0, c->size);
    ND2_RESULT results[RECEIVES + 1];
    bool answered = false;
    uint64_t start;
    HRESULT hr;

    c->sent++;
    if (c->verify || c->sent == 1) ping_fill(c->memory.buf, c->size, c->sent);
    start = sys_now_ns();
    hr = IND2QueuePair_Send(c->conn.qp, NULL, &sge, c->size ? 1 : 0,
                            c->use_inline ? ND_OP_FLAG_INLINE : 0);
    if (FAILED(hr)) return hr;
    c->send_pending = true;
    /* Both: the buffer may only change when the Send is complete. */
    while (!answered || c->send_pending) {
        ULONG count = 0;
        hr = ndc_conn_wait(&c->conn, results, RECEIVES + 1, &count, c->timeout_ms);
        if (hr != ND_SUCCESS) return hr == ND_TIMEOUT ? ND_IO_TIMEOUT : hr;
        for (ULONG i = 0; i < count; i++) {
            if (FAILED(results[i].Status)) return results[i].Status;
            if (results[i].RequestType == Nd2RequestTypeSend) {
                c->send_pending = false;
                continue;
            }
            hr = take_answer(c, &results[i], (double)(sys_now_ns() - start) / 1e3);
            if (FAILED(hr)) return hr;
            answered = true;
        }
    }
    return ND_SUCCESS;
}

static HRESULT run(struct client *c) {
    HRESULT hr = ND_SUCCESS;
    uint64_t interval_ns = (uint64_t)(c->interval_s * 1e9), next = sys_now_ns();

    while ((!c->count || c->sent < c->count) && !sys_stop_requested()) {
        hr = ping_once(c);
        if (FAILED(hr)) break;
        fflush(stdout);
        if (c->count && c->sent == c->count) break;
        next += interval_ns;
        while (interval_ns && sys_now_ns() < next && !sys_stop_requested())
            sys_sleep_until(next);
        if (sys_now_ns() > next) next = sys_now_ns();
    }
    return hr == E_ABORT ? ND_SUCCESS : hr;
}

static int print_summary(const struct client *c) {
    double lost = c->sent ? 100.0 * (double)(c->sent - c->received) / (double)c->sent : 0;

    printf("--- %s softnd ping statistics, transport %s ---\n", c->peer, c->transport);
    printf("%llu sent, %llu answered, %.0f%% lost", (unsigned long long)c->sent,
           (unsigned long long)c->received, lost);
    if (c->verify || c->corrupt) printf(", %llu wrong", (unsigned long long)c->corrupt);
    printf("\nround trip min/avg/max/mdev = %.1f/%.1f/%.1f/%.1f us\n", c->times_us.min,
           c->times_us.mean, c->times_us.max, stats_deviation(&c->times_us));
    return c->sent == c->received && !c->corrupt ? EXIT_DONE : EXIT_FAILED;
}

static int run_client(struct client *c, const char *host, uint16_t port) {
    struct ndc_target target;
    const char *why;
    HRESULT hr = ndc_target_open(&target, host, port, connect_to, c, &why);
    int code;

    if (FAILED(hr)) {
        if (why) return cmd_fail("ping", "%s: %s", host, why);
        if (hr == ND_INVALID_ADDRESS)
            return cmd_fail("ping", "%s: no NetworkDirect adapter leads there", target.text);
        return cmd_fail("ping", "%s: %s", target.text, ndc_text(hr));
    }
    stats_init(&c->times_us);
    strcpy(c->peer, target.text);
    ndc_transport(c->conn.qp, c->transport);
    hr = run(c);
    code = print_summary(c);
    fflush(stdout);
    if (FAILED(hr)) code = cmd_fail("ping", "%s: %s", c->peer, ndc_text(hr));
    ndc_conn_close(&c->conn);
    ndc_region_destroy(&c->memory);
    ndc_adapter_close(&target.ad);
    return code;
}

int cmd_ping(int argc, char **argv) {
    struct client c = { .size = SIZE_DEFAULT,
                        .timeout_ms = TIMEOUT_DEFAULT * 1000,
                        .interval_s = 1 };
    uint16_t port = NDC_PORT_DEFAULT;
    char name[TEXT_HOST_MAX] = "";
    const char *host = NULL;
    bool server = false, rping = false, port_given = false;
    double seconds;
    struct args a;
    uint32_t number;
    uint64_t size;
    HRESULT hr;
    int opt, code;

    args_init(&a, argc, argv, options, OPTION_COUNT);
    while ((opt = args_next(&a)) != ARGS_END) {
        switch (opt) {
        case OPT_SERVER:
            server = true;
            break;
        case OPT_PORT:
            if (!text_parse_u32(a.value, 0, 65535, &number))
                return cmd_usage("ping", "bad port %s", a.value);
            port = (uint16_t)number;
            port_given = true;
            break;
        case OPT_SIZE:
            if (!text_parse_size(a.value, &size) || size > PING_SIZE_MAX)
                return cmd_usage("ping", "bad size %s: 0 to 64M", a.value);
            c.size = (uint32_t)size;
            break;
        case OPT_COUNT:
            if (!text_parse_u32(a.value, 1, UINT32_MAX, &c.count))
                return cmd_usage("ping", "bad count %s", a.value);
            break;
        case OPT_INTERVAL:
            if (!text_parse_seconds(a.value, &c.interval_s))
                return cmd_usage("ping", "bad interval %s", a.value);
            break;
        case OPT_TIMEOUT:
            if (!text_parse_seconds(a.value, &seconds) || seconds < 0.001)
                return cmd_usage("ping", "bad timeout %s", a.value);
            c.timeout_ms = (uint32_t)(seconds * 1e3);
            break;
        case OPT_VERIFY:
            c.verify = true;
            break;
        case OPT_QUIET:
            c.quiet = true;
            break;
        case OPT_RPING:
            rping = true;
            break;
        case OPT_HELP:
            return print_help();
        case ARGS_OPERAND:
            if (host) return cmd_usage("ping", "one HOST is enough: %s", a.value);
            host = a.value;
            break;
        default:
            return cmd_usage("ping", "%s", a.error);
        }
    }
    if (rping && !port_given) port = RPING_PORT_DEFAULT;
    if (rping && (c.size < RPING_SIZE_MIN || c.size > RPING_SIZE_MAX))
        return cmd_usage("ping", "bad size for --rping: %u to %u", RPING_SIZE_MIN, RPING_SIZE_MAX);
    if (host && !text_split_host(host, name, &port))
        return cmd_usage("ping", "bad address %s", host);
    if (!server && !name[0]) return cmd_usage("ping", "give a HOST, or --server");

    sys_catch_stop();
    hr = ndc_start();
    if (FAILED(hr)) return cmd_fail("ping", "NetworkDirect cannot be started: %s", ndc_text(hr));
    if (rping) {
        struct rping_options o = { .size = c.size,
                                   .count = c.count,
                                   .timeout_ms = c.timeout_ms,
                                   .interval_s = c.interval_s,
                                   .verify = c.verify,
                                   .quiet = c.quiet };
        code = server ? rping_serve(&o, name, port) : rping_client(&o, name, port);
    } else {
        code = server ? ping_serve(name, port) : run_client(&c, name, port);
    }
    ndc_stop();
    return code;
}
