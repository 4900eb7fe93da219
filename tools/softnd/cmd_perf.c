/* SPDX-License-Identifier: MIT
 * cmd_perf.c - `softnd perf`: the command line. Only the client has options that matter; the server
 * is told.
 */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>
#include "perf_roles.h"
#include "sys.h"
#include "text.h"

#define SWEEP_MIN 2u
#define SWEEP_MAX (8u << 20)
#define COLD_DEFAULT (256ull << 20)
#define HOLD_MAX_NS 20000000000u /* less than PERF_TIMEOUT_MS: the server waits meanwhile */
#define REGISTER_MAX (64ull << 30)

enum {
    OPT_SERVER,
    OPT_ONCE,
    OPT_PORT,
    OPT_SIZE,
    OPT_ALL,
    OPT_ITERATIONS,
    OPT_DURATION,
    OPT_WARMUP,
    OPT_TX_DEPTH,
    OPT_RX_DEPTH,
    OPT_QPS,
    OPT_THREADS,
    OPT_IDLE,
    OPT_HOLD,
    OPT_SGES,
    OPT_INLINE,
    OPT_POST,
    OPT_CQ_MOD,
    OPT_READS,
    OPT_BIDIRECTIONAL,
    OPT_EVENTS,
    OPT_TARGET,
    OPT_COLD,
    OPT_VERIFY,
    OPT_GIGABITS,
    OPT_JSON,
    OPT_CSV,
    OPT_HISTOGRAM,
    OPT_COUNTERS,
    OPT_SAMPLES,
    OPT_PLOT,
    OPT_PROGRESS,
    OPT_TIMEOUT,
    OPT_HELP
};

static const struct args_option options[] = {
    [OPT_SERVER] = { 0, "server", NULL, "serve, on ADDR or on all addresses" },
    [OPT_ONCE] = { 0, "once", NULL, "serve one client only" },
    [OPT_PORT] = { 'p', "port", "PORT", "port, 0 for a free one when serving (default 7571)" },
    [OPT_SIZE] = { 's', "size", "BYTES", "message size, or several: 64,4K,1M (2; bw: 64K)" },
    [OPT_ALL] = { 'a', "all", NULL, "all sizes, 2 to 8M by powers of two" },
    [OPT_ITERATIONS] = { 'n', "iterations", "N", "messages of each queue pair (1000)" },
    [OPT_DURATION] = { 'D', "duration", "SECONDS", "for so long instead; 0: until interrupted" },
    [OPT_WARMUP] = { 'w', "warmup", "N", "messages before the measurement (a tenth)" },
    [OPT_TX_DEPTH] = { 't', "tx-depth", "N", "requests under way (128)" },
    [OPT_RX_DEPTH] = { 'r', "rx-depth", "N", "Receives posted, window of Sends (512)" },
    [OPT_QPS] = { 'q', "qps", "N", "queue pairs; conn_rate: connections at a time (1)" },
    [OPT_THREADS] = { 'T', "threads", "N", "bandwidth: threads at each end, -q of each (1)" },
    [OPT_IDLE] = { 0, "idle", "N", "further connected queue pairs that do nothing" },
    [OPT_HOLD] = { 0, "hold", "SECONDS", "first stay connected without traffic, at most 20 s" },
    [OPT_SGES] = { 0, "sges", "N", "pieces that each message is made of (1)" },
    [OPT_INLINE] = { 'I', "inline", "BYTES", "up to this size inline (lat: as the adapter says)" },
    [OPT_POST] = { 'l', "post-batch", "N", "messages posted at a time (1)" },
    [OPT_CQ_MOD] = { 'Q', "cq-mod", "N", "only every Nth request gives a result (1)" },
    [OPT_READS] = { 'o', "reads", "N", "Reads in progress (16)" },
    [OPT_BIDIRECTIONAL] = { 'b', "bidirectional", NULL, "bandwidth: both ways at once" },
    [OPT_EVENTS] = { 'e', "events", NULL, "sleep until a result comes, instead of polling" },
    [OPT_TARGET] = { 0, "target", "WHAT",
                     "Read and Write: the other end polls, sleeps or is busy" },
    [OPT_COLD] = { 0, "cold", "BYTES", "messages cycle through so much memory (0 for 256M)" },
    [OPT_VERIFY] = { 'v', "verify", NULL, "check every byte; the checks are part of the times" },
    [OPT_GIGABITS] = { 0, "gbits", NULL, "bandwidth in Gb/s instead of MiB/s" },
    [OPT_JSON] = { 0, "json", NULL, "one JSON object" },
    [OPT_CSV] = { 0, "csv", NULL, "comma separated rows" },
    [OPT_HISTOGRAM] = { 'H', "histogram", NULL, "the distribution of the times" },
    [OPT_COUNTERS] = { 0, "counters", NULL, "what the provider counted, at this end" },
    [OPT_SAMPLES] = { 0, "samples", "FILE", "write every sample of a latency test, in order" },
    [OPT_PLOT] = { 0, "plot", "FILE", "draw the rows as an SVG picture" },
    [OPT_PROGRESS] = { 0, "progress", NULL, "say each second how it goes, on standard error" },
    [OPT_TIMEOUT] = { 0, "timeout", "SECONDS", "give up when nothing is heard so long (30)" },
    [OPT_HELP] = { 'h', "help", NULL, "this text" },
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

/* The tests that an option means something to. One that would change nothing is refused: whoever
 * gives it expects something else. */
#define TEST_BIT(verb, kind) (1u << ((kind)*PERF_VERBS + (verb)))
#define SEND_LAT TEST_BIT(PERF_SEND, PERF_LATENCY)
#define WRITE_LAT TEST_BIT(PERF_WRITE, PERF_LATENCY)
#define READ_LAT TEST_BIT(PERF_READ, PERF_LATENCY)
#define SEND_BW TEST_BIT(PERF_SEND, PERF_BANDWIDTH)
#define WRITE_BW TEST_BIT(PERF_WRITE, PERF_BANDWIDTH)
#define READ_BW TEST_BIT(PERF_READ, PERF_BANDWIDTH)
#define CONN TEST_BIT(PERF_CONNECT, PERF_RATE)
#define REG TEST_BIT(PERF_REGISTER, PERF_RATE)
#define LAT (SEND_LAT | WRITE_LAT | READ_LAT)
#define BW (SEND_BW | WRITE_BW | READ_BW)
#define DATA (LAT | BW)
#define ANY (DATA | CONN | REG)
#define SERVER (1u << 31) /* no test */
_Static_assert(3 * PERF_VERBS <= 31, "a bit for each test");

static const uint32_t used_by[OPTION_COUNT] = {
    [OPT_SERVER] = SERVER,
    [OPT_ONCE] = SERVER,
    [OPT_PORT] = DATA | CONN | SERVER,
    [OPT_SIZE] = DATA | REG,
    [OPT_ALL] = DATA | REG,
    [OPT_ITERATIONS] = ANY,
    [OPT_DURATION] = DATA,
    [OPT_WARMUP] = ANY,
    [OPT_TX_DEPTH] = DATA,
    [OPT_RX_DEPTH] = SEND_LAT | SEND_BW,
    [OPT_QPS] = DATA | CONN,
    [OPT_THREADS] = DATA,
    [OPT_IDLE] = DATA,
    [OPT_HOLD] = DATA,
    [OPT_SGES] = DATA,
    [OPT_INLINE] = SEND_LAT | WRITE_LAT | SEND_BW | WRITE_BW,
    [OPT_POST] = DATA,
    [OPT_CQ_MOD] = DATA,
    [OPT_READS] = READ_LAT | READ_BW | WRITE_BW, /* a Read ends the Writes */
    [OPT_BIDIRECTIONAL] = DATA,
    [OPT_EVENTS] = DATA,
    [OPT_TARGET] = DATA,
    [OPT_COLD] = DATA,
    [OPT_VERIFY] = DATA,
    [OPT_GIGABITS] = BW,
    [OPT_JSON] = ANY,
    [OPT_CSV] = ANY,
    [OPT_HISTOGRAM] = LAT | CONN | REG,
    [OPT_COUNTERS] = ANY,
    [OPT_SAMPLES] = LAT,
    [OPT_PLOT] = DATA,
    [OPT_PROGRESS] = DATA,
    [OPT_TIMEOUT] = DATA | CONN | SERVER,
    [OPT_HELP] = ANY | SERVER,
};

struct line {
    struct perf_client c;
    bool given[OPTION_COUNT];
    bool server, all, test_given;
    char host[TEXT_HOST_MAX];
    bool host_given;
};

static int print_help(void) {
    puts(
        "Usage: softnd perf [--server [ADDR[:PORT]]]\n"
        "       softnd perf TEST HOST[:PORT] [options]\n"
        "       softnd perf reg_rate [options]\n"
        "\n"
        "Measures latency, bandwidth and message rate between two ends. The server needs no\n"
        "options: it is told by each client. TEST is one of\n"
        "  send_lat write_lat read_lat   half the round trip (Read: all of it), one message under\n"
        "                                way\n"
        "  send_bw write_bw read_bw      bandwidth and message rate, many messages under way\n"
        "  conn_rate                     time of each step of connecting, and connections a "
        "second\n"
        "  reg_rate                      time of registering memory; needs no server\n");
    args_print_help(options, OPTION_COUNT, stdout);
    puts("\nExit code: 0 done (and verified), 1 failure, 2 wrong usage.");
    return EXIT_DONE;
}

static bool parse_sizes(struct perf_client *c, const char *text) {
    uint64_t max = PERF_SIZE_MAX > REGISTER_MAX ? PERF_SIZE_MAX : REGISTER_MAX;
    char copy[256], *part = copy, *comma;

    if (strlen(text) >= sizeof copy) return false;
    strcpy(copy, text);
    c->size_count = 0;
    do {
        comma = strchr(part, ',');
        if (comma) *comma = 0;
        if (c->size_count == PERF_ROWS_MAX / 2) return false; /* reg_rate has two rows for each */
        if (!text_parse_size(part, &c->sizes[c->size_count]) || !c->sizes[c->size_count] ||
            c->sizes[c->size_count] > max)
            return false;
        c->size_count++;
        part = comma ? comma + 1 : part;
    } while (comma);
    return true;
}

static bool parse_count(const char *text, uint32_t min, uint32_t max, uint64_t *out) {
    uint32_t v;

    if (!text_parse_u32(text, min, max, &v)) return false;
    *out = v;
    return true;
}

static bool parse_target(const char *text, uint64_t *out) {
    static const char *const names[] = { "poll", "sleep", "busy" };

    for (uint64_t i = 0; i < 3; i++)
        if (!strcmp(text, names[i])) {
            *out = i;
            return true;
        }
    return false;
}

static bool parse_duration(const char *text, uint64_t *ns) {
    double seconds;

    if (!text_parse_seconds(text, &seconds) || seconds < 0.001 || seconds > 1e6) return false;
    *ns = (uint64_t)(seconds * 1e9);
    return true;
}

/* False: the value is wrong. */
static bool take_option(struct line *l, int opt, const char *value) {
    struct perf_client *c = &l->c;
    struct perf_params *p = &c->params;
    uint64_t number;

    switch (opt) {
    case OPT_PORT:
        if (!parse_count(value, 0, 65535, &number)) return false;
        c->port = (uint16_t)number;
        return true;
    case OPT_SIZE:
        return parse_sizes(c, value);
    case OPT_ITERATIONS:
        return parse_count(value, 1, 1000000000, &c->iterations);
    case OPT_DURATION:
        if (!strcmp(value, "0")) {
            c->duration_ns = PERF_ENDLESS;
            return true;
        }
        return parse_duration(value, &c->duration_ns);
    case OPT_WARMUP:
        return parse_count(value, 0, 1000000000, &c->warmup);
    case OPT_TX_DEPTH:
        return parse_count(value, 1, PERF_DEPTH_MAX, &p->tx_depth);
    case OPT_RX_DEPTH:
        return parse_count(value, 1, PERF_DEPTH_MAX, &p->rx_depth);
    case OPT_QPS:
        return parse_count(value, 1, PERF_QPS_MAX, &p->qps);
    case OPT_IDLE:
        return parse_count(value, 0, PERF_IDLE_MAX, &p->idle_qps);
    case OPT_HOLD:
        return parse_duration(value, &c->hold_ns) && c->hold_ns <= HOLD_MAX_NS;
    case OPT_THREADS:
        return parse_count(value, 1, PERF_THREADS_MAX, &p->threads);
    case OPT_SGES:
        return parse_count(value, 1, PERF_SGES_MAX, &p->sges);
    case OPT_INLINE:
        c->inline_given = true;
        return text_parse_size(value, &p->inline_bytes) && p->inline_bytes <= 65536;
    case OPT_POST:
        return parse_count(value, 1, PERF_DEPTH_MAX, &p->post_batch);
    case OPT_CQ_MOD:
        return parse_count(value, 1, PERF_DEPTH_MAX, &p->cq_moderation);
    case OPT_READS:
        return parse_count(value, 1, 1024, &p->reads);
    case OPT_TARGET:
        return parse_target(value, &p->target);
    case OPT_COLD:
        if (!text_parse_size(value, &p->cold_bytes)) return false;
        if (!p->cold_bytes) p->cold_bytes = COLD_DEFAULT;
        return p->cold_bytes <= PERF_BUFFER_MAX;
    case OPT_TIMEOUT:
        if (!parse_duration(value, &number)) return false;
        c->timeout_ms = (uint32_t)(number / 1000000);
        return true;
    case OPT_SAMPLES:
        c->samples = value;
        return value[0] != 0;
    case OPT_PLOT:
        c->plot = value;
        return value[0] != 0;
    default:
        return true;
    }
}

static void take_switch(struct line *l, int opt) {
    struct perf_client *c = &l->c;

    if (opt == OPT_SERVER) l->server = true;
    if (opt == OPT_ALL) l->all = true;
    if (opt == OPT_BIDIRECTIONAL) c->params.bidirectional = 1;
    if (opt == OPT_EVENTS) c->params.events = 1;
    if (opt == OPT_VERIFY) c->params.verify = 1;
    if (opt == OPT_GIGABITS) c->gigabits = true;
    if (opt == OPT_JSON) c->json = true;
    if (opt == OPT_CSV) c->csv = true;
    if (opt == OPT_HISTOGRAM) c->histogram = true;
    if (opt == OPT_COUNTERS) c->counters = true;
    if (opt == OPT_PROGRESS) c->progress = true;
}

static void fill_sizes(struct line *l) {
    struct perf_client *c = &l->c;
    uint64_t from = SWEEP_MIN, to = SWEEP_MAX, step = 2;

    if (c->params.verb == PERF_REGISTER) {
        from = 4096;
        to = 1ull << 30;
        step = 8;
    }
    if (!c->size_count && (l->all || c->params.verb == PERF_REGISTER))
        for (uint64_t size = from; size <= to; size *= step)
            c->sizes[c->size_count++] = size;
    if (!c->size_count) c->sizes[c->size_count++] = c->params.kind == PERF_LATENCY ? 2 : 65536;
    c->params.size = 0;
    for (size_t i = 0; i < c->size_count; i++)
        if (c->sizes[i] > c->params.size) c->params.size = c->sizes[i];
}

/* What is left to its default; NULL, or what is wrong. */
static const char *complete(struct line *l) {
    struct perf_client *c = &l->c;

    if (l->all && c->size_count) return "--all and --size exclude each other";
    if (c->json && c->csv) return "--json and --csv exclude each other";
    if (c->csv && (c->histogram || c->counters))
        return "--csv has no place for --histogram and --counters; --json has";
    if (c->duration_ns && l->given[OPT_ITERATIONS])
        return "--duration and --iterations exclude each other";
    if (c->samples && c->plot && !strcmp(c->samples, c->plot))
        return "--samples and --plot need a file each";
    if (c->progress && c->params.threads > 1) return "--progress is for one thread";
    if (c->params.verb == PERF_CONNECT && c->params.qps > PERF_CONNECTS_MAX)
        return "too many connections at a time";
    fill_sizes(l);
    if (!c->iterations) c->iterations = c->params.kind == PERF_RATE ? 200 : 1000;
    if (!l->given[OPT_WARMUP])
        c->warmup = c->duration_ns ? 100 : c->iterations < 10 ? 1 : c->iterations / 10;
    if (c->duration_ns) c->iterations = 0;
    if (c->params.verb == PERF_REGISTER) return NULL;
    if (c->params.verb == PERF_CONNECT) c->params.size = 1;
    return perf_params_check(&c->params);
}

static int take_operand(struct line *l, const char *value) {
    if (!l->test_given && !l->server && perf_test_from_name(value, &l->c.params)) {
        l->test_given = true;
        return EXIT_DONE;
    }
    if (!l->test_given && !l->server) return cmd_usage("perf", "%s is no test", value);
    if (l->host_given) return cmd_usage("perf", "one HOST is enough: %s", value);
    if (!text_split_host(value, l->host, &l->c.port))
        return cmd_usage("perf", "bad address %s", value);
    l->host_given = true;
    return EXIT_DONE;
}

static int parse(struct line *l, int argc, char **argv, bool *help) {
    struct args a;
    int opt, code;

    args_init(&a, argc, argv, options, OPTION_COUNT);
    while ((opt = args_next(&a)) != ARGS_END) {
        if (opt == OPT_HELP) {
            *help = true;
            return EXIT_DONE;
        }
        if (opt == ARGS_ERROR) return cmd_usage("perf", "%s", a.error);
        if (opt == ARGS_OPERAND) {
            code = take_operand(l, a.value);
            if (code != EXIT_DONE) return code;
            continue;
        }
        l->given[opt] = true;
        take_switch(l, opt);
        if (!take_option(l, opt, a.value))
            return cmd_usage("perf", "bad value for --%s: %s", options[opt].long_name, a.value);
    }
    return EXIT_DONE;
}

static int check_options(const struct line *l) {
    const struct perf_params *p = &l->c.params;
    uint32_t test = l->test_given ? TEST_BIT(p->verb, p->kind) : SERVER;

    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (l->given[i] && !(used_by[i] & test))
            return cmd_usage("perf", "--%s means nothing to %s", options[i].long_name,
                             l->test_given ? perf_test_name(p) : "a server, which is told all");
    return EXIT_DONE;
}

static int check(struct line *l) {
    const char *wrong;
    int code;

    if (l->test_given && l->server) return cmd_usage("perf", "a server is not told the test");
    code = check_options(l);
    if (code != EXIT_DONE) return code;
    if (!l->test_given) {
        l->server = true;
        return EXIT_DONE;
    }
    wrong = complete(l);
    if (wrong) return cmd_usage("perf", "%s", wrong);
    if (l->c.params.verb == PERF_REGISTER && l->host_given)
        return cmd_usage("perf", "reg_rate needs no HOST");
    if (l->c.params.verb != PERF_REGISTER && !l->host[0])
        return cmd_usage("perf", "give a HOST, where `softnd perf --server` runs");
    if (l->c.params.verb != PERF_REGISTER && !l->c.port)
        return cmd_usage("perf", "port 0 is for servers");
    l->c.host = l->host;
    return EXIT_DONE;
}

int cmd_perf(int argc, char **argv) {
    static struct line l; /* large */
    bool help = false;
    HRESULT hr;
    int code;

    l.c.port = NDC_PORT_DEFAULT;
    l.c.timeout_ms = PERF_TIMEOUT_MS;
    l.c.params = (struct perf_params){ .tx_depth = 128,
                                       .rx_depth = 512,
                                       .sges = 1,
                                       .post_batch = 1,
                                       .cq_moderation = 1,
                                       .qps = 1,
                                       .threads = 1,
                                       .reads = 16 };
    code = parse(&l, argc, argv, &help);
    if (help) return print_help();
    if (code == EXIT_DONE) code = check(&l);
    if (code != EXIT_DONE) return code;
    sys_catch_stop();
    hr = ndc_start();
    if (FAILED(hr)) return cmd_fail("perf", "NetworkDirect cannot be started: %s", ndc_text(hr));
    code = l.server ? perf_serve_clients(l.host, l.c.port, l.c.timeout_ms, l.given[OPT_ONCE])
                    : perf_run_client(&l.c);
    ndc_stop();
    return code;
}
