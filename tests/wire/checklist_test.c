/* SPDX-License-Identifier: MIT
 *
 * Runs the checks and prints, with --table FILE, which item was checked by what with which result.
 *
 *   wire_checklist_test [--list] [--table FILE] [NAME...]
 */
#include "checklist.h"
#include <errno.h>

static const struct {
    uint32_t number;
    const char *text;
} items[] = {
    { 1, "Start-up keys are exact, a wrong one closes" },
    { 2, "A request key at an initiator is a collision" },
    { 3, "PD_Length at most 512; a frame may be cut anywhere" },
    { 4, "An unknown revision closes" },
    { 5, "Reserved flags are sent 0 and ignored" },
    { 6, "Revision 1 is accepted and answered with revision 1" },
    { 7, "An enhanced request gets an enhanced reply, accept or reject" },
    { 8, "Revision 2 without S is answered without" },
    { 9, "The enhanced form is not used when nothing of it is wanted" },
    { 10, "CRC is on by default, and when either side asks" },
    { 11, "CRC is not checked when neither side asked" },
    { 12, "Markers exactly when the peer asks for them" },
    { 13, "A responder is silent until it has validated an FPDU" },
    { 14, "An initiator is silent until it was accepted" },
    { 15, "Responder: ORD at most the request's IRD" },
    { 16, "Initiator: ORD at most the reply's IRD, IRD at least its ORD" },
    { 17, "0x3FFF leaves the value alone, in all four places" },
    { 18, "The peer's IRD and ORD reach the application" },
    { 19, "A is echoed; without it the RTR flags are 0 and ignored" },
    { 20, "A reply with A has an RTR flag" },
    { 21, "The RTR that was agreed is the initiator's first FPDU" },
    { 22, "No RTR in common: Terminate 2/0/07" },
    { 23, "Start-up has time-outs (SHOULD)" },
    { 24, "One ULPDU to an FPDU, PAD of zeros to a multiple of 4" },
    { 25, "The CRC field is always there" },
    { 26, "CRC32c covers length, ULPDU, PAD and markers; its octet order" },
    { 27, "The first marker is 0 before the first FPDU, then one each 512 octets" },
    { 28, "FPDUPTR points at the FPDU around it, 0 between FPDUs" },
    { 29, "FPDUPTR is masked, reserved octets are ignored" },
    { 30, "MULPDU is 128 to 64768; nothing longer is sent" },
    { 31, "FPDUs may be cut and joined by TCP" },
    { 32, "The CRC is checked before anything is acted on" },
    { 33, "After an error nothing more is delivered" },
    { 34, "CRC errors do not close by themselves: one Terminate may leave" },
    { 35, "A bad start-up frame closes at once" },
    { 36, "DDP version 1, reserved bits 0 and ignored" },
    { 37, "L only on the last segment, which has the highest MO" },
    { 38, "STag, QN, MSN and the ULP's octets are those of the message in each segment" },
    { 39, "MSN from 1, by 1, through 0" },
    { 40, "MO from 0; TO and MO add up" },
    { 41, "Segments fit MULPDU" },
    { 42, "A message of no octets is one segment; its STag and TO are not looked at" },
    { 43, "Messages leave in the order of submission" },
    { 44, "Delivery with L, in order, once" },
    { 45, "Each check of a segment with its code" },
    { 46, "After an error segments are dropped in silence" },
    { 47, "DDP does not tear down by itself: RDMAP's Terminate comes first" },
    { 48, "STags belong to a domain and a stream" },
    { 49, "RDMAP version 1, reserved bits, opcodes" },
    { 50, "Octets 4 to 7 are 0 where no STag belongs" },
    { 51, "Queue numbers 0, 1, 2 by opcode" },
    { 52, "Layout of a Read Request; the sink is copied unread" },
    { 53, "A Read of nothing is not validated and is answered" },
    { 54, "A Read of something is validated" },
    { 55, "Responses in the order of requests" },
    { 56, "ORD and IRD are never exceeded" },
    { 57, "A Send takes one receive, also when empty; too long is an error" },
    { 58, "Sends are delivered in order, after the Writes before them" },
    { 59, "Invalidate checks the STag, then invalidates, else Terminate 09" },
    { 60, "A Read completes when its response was delivered" },
    { 61, "Writes and Read Requests are not shown to the target" },
    { 62, "Terminate: queue 2, one message, layout, the first error" },
    { 63, "Nothing follows a Terminate; the peer's is delivered" },
    { 64, "A Read that fails half way quotes what is left" },
    { 65, "Only RDMA messages on the stream" },
    { 66, "Unknown or unexpected opcode or version: Terminate" },
    { 67, "Immediate Data: not offered, 0/2/06 (codec: 8 octets)" },
    { 68, "Atomics: not offered, 0/2/06 (codec: queues 1 and 3, id echoed)" },
    { 69, "Atomics: both operations and alignment (codec)" },
    { 70, "Atomics and Reads share depths: not offered" },
};

static struct { bool run, failed; } results[SN_ARRAY_LEN(items)];
static char names[SN_ARRAY_LEN(items)][1024];

/* ---- helpers of checks ---- */

void expect_fpdu(struct rig *r) {
    enum raw_result res = rig_read_fpdu(r);
    if (res != RAW_OK) FAIL("no FPDU: %s", raw_result_text(res));
}

uint64_t fpdu_be(const struct rig *r, size_t off, unsigned octets) {
    uint64_t v = 0;
    for (unsigned i = 0; i < octets; i++)
        v = v << 8 | r->fpdu[off + i];
    return v;
}

void expect_silence(struct rig *r, uint32_t ms) {
    uint64_t until = os_now_ns() + ms * OS_NS_PER_MS;
    os_atomic_u32 word = { 0 };
    while (os_now_ns() < until) {
        uint8_t octet;
        struct os_iov iov = { &octet, 1 };
        size_t got;
        CHECK_EQ(r->peer.in_len, 0);
        CHECK_EQ(os_sock_readv(r->peer.s, &iov, 1, &got), SN_E_AGAIN);
        os_wait_on(&word, 0, os_now_ns() + OS_NS_PER_MS);
    }
}

void expect_orderly_end(struct rig *r) {
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 0);
    raw_fin(&r->peer);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 1 + SN_OK);
}

/* ---- the runner ---- */

static struct rig rig;

static void play(struct rig *r, const char *list) {
    while (*list) {
        size_t n = strcspn(list, " ");
        const struct stream *d;
        size_t i = 0;
        while ((d = hostile_at(i)) != NULL && (strlen(d->name) != n || memcmp(d->name, list, n)))
            i++;
        if (!d) FAIL("no stream is named %.*s", (int)n, list);
        hostile_run(r, d);
        list += n + strspn(list + n, " ");
    }
}

static bool run_check(const struct check *c) {
    volatile int outcome = setjmp(test_escape);
    if (outcome == 0) {
        if (c->run) {
            hostile_fresh();
            c->run(&rig);
            rig_check_memory(&rig);
            rig_done(&rig);
        } else {
            play(&rig, c->streams);
        }
        return true;
    }
    printf("  FAILED: %s\n", c->name);
    volatile int again = setjmp(test_escape);
    if (again != 0) {
        printf("  the engine did not forget the connection; giving up\n");
        exit(1);
    }
    raw_reset(&rig.peer);
    rig_done(&rig);
    return false;
}

static void note(const struct check *c, bool passed) {
    for (const char *at = c->items; *at;) {
        char *end;
        uint32_t number = (uint32_t)strtoul(at, &end, 10);
        for (size_t i = 0; i < SN_ARRAY_LEN(items); i++) {
            if (items[i].number != number) continue;
            size_t used = strlen(names[i]);
            results[i].run = true;
            results[i].failed = results[i].failed || !passed;
            snprintf(names[i] + used, sizeof names[i] - used, "%s`%s`", used ? ", " : "", c->name);
        }
        at = *end == ' ' ? end + 1 : end;
        if (end == c->items) break;
    }
}

static void print_table(const char *path) {
    FILE *f = fopen(path, "w");
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    fprintf(f, "| item | what is asked | checks | result |\n|---|---|---|---|\n");
    for (size_t i = 0; i < SN_ARRAY_LEN(items); i++)
        fprintf(f, "| %u | %s | %s | %s |\n", items[i].number, items[i].text, names[i],
                !results[i].run     ? "NOT CHECKED"
                : results[i].failed ? "FAILED"
                                    : "pass");
    fclose(f);
}

static bool init_rig(void) {
    if (setjmp(test_escape) != 0) return false; /* which has said why */
    rig_init(&rig);
    return true;
}

int main(int argc, char **argv) {
    const struct {
        const struct check *rows;
        size_t count;
    } parts[] = { { start_checks, start_check_count },
                  { mpa_checks, mpa_check_count },
                  { ddp_checks, ddp_check_count },
                  { rdmap_checks, rdmap_check_count } };
    const char *table = argc == 3 && strcmp(argv[1], "--table") == 0 ? argv[2] : NULL;
    bool list = argc == 2 && strcmp(argv[1], "--list") == 0, all = argc == 1 || table;
    volatile int passed = 0, failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!list) {
        hostile_settings();
        if (!init_rig()) return 1;
    }
    for (size_t p = 0; p < SN_ARRAY_LEN(parts); p++) {
        for (size_t i = 0; i < parts[p].count; i++) {
            const struct check *c = &parts[p].rows[i];
            bool wanted = all || list;
            for (int a = 1; a < argc; a++)
                wanted = wanted || strcmp(argv[a], c->name) == 0;
            if (!wanted) continue;
            printf("%s (%s)\n", c->name, c->items);
            if (list) continue;
            bool good = run_check(c);
            note(c, good);
            *(good ? &passed : &failed) += 1;
        }
    }
    if (list) return 0;
    rig_fini(&rig);
    for (size_t i = 0; all && i < SN_ARRAY_LEN(items); i++) {
        if (results[i].run) continue;
        printf("item %u is not checked: %s\n", items[i].number, items[i].text);
        failed++;
    }
    if (table) print_table(table);
    printf("%d checks passed, %d failed\n", passed, failed);
    return failed != 0 || passed == 0;
}
