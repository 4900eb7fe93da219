/* SPDX-License-Identifier: MIT
 * checklist.h - what the RFCs ask, item by item, and the checks of it.
 * Owns:    the shape of a check; the items and the runner are in checklist_test.c.
 *
 * A check names the items it is for. It is a function, or a list of hostile streams (hostile.h)
 * that it plays; each of those is judged by its row.
 */
#ifndef SN_TESTS_WIRE_CHECKLIST_H
#define SN_TESTS_WIRE_CHECKLIST_H

#include "hostile.h"

struct check {
    const char *items; /* numbers, separated by blanks */
    const char *name;  /* <what>_<condition>_<outcome> */
    void (*run)(struct rig *r);
    const char *streams; /* names, separated by blanks */
};

#define CHECKS(items, fn)                                                                          \
    { items, #fn, fn, NULL }
#define PLAYS(items, name, streams)                                                                \
    { items, #name, NULL, streams }

extern const struct check start_checks[], mpa_checks[], ddp_checks[], rdmap_checks[];
extern const size_t start_check_count, mpa_check_count, ddp_check_count, rdmap_check_count;

/* Reads our next FPDU that is no report; it must be whole and good. */
void expect_fpdu(struct rig *r);
/* Big-endian numbers of r->fpdu. */
uint64_t fpdu_be(const struct rig *r, size_t off, unsigned octets);
/* Nothing arrives at the raw peer for this long. */
void expect_silence(struct rig *r, uint32_t ms);
/* Ends a raw peer in order and waits until our side has heard of it. */
void expect_orderly_end(struct rig *r);

#endif
