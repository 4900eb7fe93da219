/* SPDX-License-Identifier: MIT
 *
 * Runs the tables of hostile streams, each with several cuts of the octets and in both roles.
 *
 *   wire_hostile_test [--list] [--dump DIRECTORY] [NAME...]
 *
 * --dump writes the octets of every stream as a file: the start of the corpus of fuzz_stream.
 */
#include "hostile.h"
#include <errno.h>

static struct rig rig;

static bool run_stream(const struct stream *d) {
    volatile int outcome = setjmp(test_escape);
    if (outcome == 0) hostile_run(&rig, d);
    if (outcome == 0) return true;
    printf("  %s: %s\n", outcome == 2 ? "SKIPPED" : "FAILED", d->name);
    /* Put away what is left, so that the next stream has a fair start. */
    volatile int again = setjmp(test_escape);
    raw_reset(&rig.peer);
    if (again == 0) rig_done(&rig);
    if (again != 0) {
        printf("  the engine did not forget the connection; giving up\n");
        exit(1);
    }
    return outcome == 2;
}

/* ---- the corpus ---- */

/* What fuzz_stream.c calls a kind: where the stream strikes, and on what sort of connection. */
static int kind_of(const struct stream *d, const struct stage *s) {
    enum { OPEN = 4, OPEN_CRC = 5, OPEN_GOOD_CRC = 6, OPEN_BUSY = 7, SOFTND = 8, MARKED = 9 };
    static const int kinds[] = { OPEN, OPEN_GOOD_CRC, MARKED, OPEN, SOFTND, OPEN_BUSY };
    static size_t turn;
    if (d->where != W_OPEN) return (int)d->where;
    if (s->r->qp.sq_posted) return OPEN_BUSY;
    if (strncmp(d->name, "crc_", 4) == 0) return OPEN_CRC;
    return kinds[turn++ % SN_ARRAY_LEN(kinds)];
}

static void dump_file(const char *dir, const struct stream *d, struct stage *s) {
    enum { KEPT = 1024 }; /* enough for several FPDUs */
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, d->name);
    FILE *f = fopen(path, "wb");
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    fputc(kind_of(d, s) | (int)(s->r->qp.rq_posted & 15) << 4, f);
    fwrite(s->out.data, 1, SN_MIN(s->out.len, (size_t)KEPT), f);
    fclose(f);
}

static void dump(const char *dir, const struct stream *d) {
    struct stage s = { .r = &rig, .def = d, .a = d->a, .b = d->b, .about = SIZE_MAX, .msn = 1 };
    if (d->where == W_CUSTOM) return;
    hostile_fresh();
    if (d->where == W_OPEN) {
        rig_open(&rig, d->profile ? d->profile : &foreign_passive);
    } else {
        rig_connect_raw(&rig, 0); /* for those who look at the connection; nothing is sent */
    }
    d->play(&s);
    dump_file(dir, d, &s);
    raw_free(&s.out);
    raw_reset(&rig.peer);
    rig_done(&rig);
}

static bool init_rig(void) {
    if (setjmp(test_escape) != 0) return false; /* which has said why */
    rig_init(&rig);
    return true;
}

int main(int argc, char **argv) {
    bool list = argc == 2 && strcmp(argv[1], "--list") == 0;
    const char *dump_to = argc == 3 && strcmp(argv[1], "--dump") == 0 ? argv[2] : NULL;
    const struct stream *d;
    volatile int passed = 0, failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!list) {
        hostile_settings();
        if (!init_rig()) return 1;
    }
    for (size_t i = 0; (d = hostile_at(i)) != NULL; i++) {
        bool wanted = argc == 1 || list || dump_to;
        for (int a = 1; a < argc; a++)
            wanted = wanted || strcmp(argv[a], d->name) == 0;
        if (!wanted) continue;
        if (!dump_to) puts(d->name);
        if (dump_to)
            dump(dump_to, d);
        else if (!list)
            *(run_stream(d) ? &passed : &failed) += 1;
    }
    if (!list) rig_fini(&rig);
    if (!list && !dump_to) printf("%d streams passed, %d failed\n", passed, failed);
    return failed != 0 || (!list && !dump_to && passed == 0);
}
