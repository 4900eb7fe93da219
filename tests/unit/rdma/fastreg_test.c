/* SPDX-License-Identifier: MIT
 * Protection domains, logical addresses, fast registration, and what else only a kernel interface
 * asks of the core: merged arming, falling thresholds, held queues, deferred requests.
 */
#include <stdlib.h>
#include "os/prim/pages.h"
#include "rdma/connector.h"
#include "rdma/qp.h"
#include "rig.h"

enum { PAGE = 4096, PAGES = 4 };

/* A pair in one domain, with pages of memory mapped for it. */
struct fast {
    struct rig r;
    struct rd_pd *pd;
    struct rd_io *io;
    struct rd_region *m;
    uint8_t *mem; /* PAGES pages, page aligned */
    uint64_t page[PAGES];
};

static struct rd_qp *pd_qp(struct fast *f, struct rd_cq *cq, bool hold) {
    struct rd_qp_attr at = rig_attr(cq);
    enum rd_qp_attr_fault fault;
    struct rd_qp *qp = NULL;
    at.pd = f->pd;
    at.hold_on_disconnect = hold;
    CHECK_ST(rd_qp_create(f->r.ad, &at, &fault, &qp), SN_OK);
    return qp;
}

static void fast_up(struct fast *f, bool scattered, bool fixed) {
    memset(f, 0, sizeof *f);
    rig_objects(&f->r);
    CHECK_ST(rd_pd_create(f->r.ad, &f->pd), SN_OK);
    rd_qp_destroy(f->r.a.qp);
    rd_qp_destroy(f->r.b.qp);
    f->r.a.qp = pd_qp(f, f->r.a.cq, true);
    f->r.b.qp = pd_qp(f, f->r.b.cq, true);
    rd_region_destroy(f->r.mem);
    CHECK_ST(rd_region_create(f->r.ad, &f->r.mem), SN_OK);
    rd_region_set_pd(f->r.mem, f->pd);
    CHECK_ST(rd_region_register(f->r.mem, f->r.buf, RIG_BUF,
                                RD_LOCAL_WRITE | RD_REMOTE_READ | RD_REMOTE_WRITE),
             SN_OK);
    f->mem = os_pages_alloc(PAGES * PAGE);
    CHECK(f->mem != NULL);
    memset(f->mem, 0, PAGES * PAGE);
    CHECK_ST(rd_io_map(f->r.ad, f->mem, PAGES * PAGE, scattered, &f->io), SN_OK);
    CHECK_EQ(rd_io_pages(f->io), PAGES);
    for (int i = 0; i < PAGES; i++)
        f->page[i] = rd_io_page(f->io, (uint64_t)i);
    CHECK_ST(rd_region_create(f->r.ad, &f->m), SN_OK);
    rd_region_set_pd(f->m, f->pd);
    CHECK_ST(rd_region_init_fast(f->m, PAGES, true, fixed), SN_OK);
    rig_connect_limits(&f->r, 16, 16);
}

static void fast_down(struct fast *f) {
    rd_region_destroy(f->m);
    if (f->io) rd_io_unmap(f->r.ad, f->io);
    struct rd_qp *qps[] = { f->r.a.qp, f->r.b.qp };
    if (f->r.a.c) rd_connector_destroy(f->r.a.c);
    if (f->r.b.c) rd_connector_destroy(f->r.b.c);
    f->r.a.c = f->r.b.c = NULL;
    for (int i = 0; i < 2; i++)
        if (qps[i]) rd_qp_destroy(qps[i]);
    f->r.a.qp = f->r.b.qp = NULL;
    rd_pd_destroy(f->pd);
    os_pages_free(f->mem, PAGES * PAGE);
    rig_down(&f->r);
}

#define REG(f, ctx, off, len, rights, flags)                                                       \
    rd_qp_fast_register((f)->r.a.qp, CTX(ctx), (f)->m, (f)->page, PAGES, off, len,                 \
                        0x10000 + (off), rights, flags)

/* Copies out of the region piece by piece, as a transport does. */
static sn_status fetch(struct rd_qp *qp, uint32_t token, uint64_t addr, size_t len,
                       enum tp_right right, uint8_t *out, uint32_t *pieces) {
    *pieces = 0;
    while (len) {
        struct tp_access acc;
        sn_status st = rd_upcalls.access(qp, token, addr, len, right, &acc);
        if (st != SN_OK) return st;
        CHECK(acc.len > 0 && acc.len <= len);
        memcpy(out, acc.ptr, acc.len);
        rd_upcalls.access_end(&acc);
        out += acc.len;
        addr += acc.len;
        len -= acc.len;
        (*pieces)++;
    }
    return SN_OK;
}

/* ---- logical addresses ---- */

static void logical_addresses_are_no_virtual_ones(void) {
    struct fast f;
    fast_up(&f, false, false);
    for (int i = 0; i < PAGES; i++) {
        CHECK(f.page[i] >> 52 != 0 && f.page[i] >> 63 == 0);
        CHECK_EQ(f.page[i] % PAGE, 0);
        CHECK_EQ(f.page[i], f.page[0] + (uint64_t)i * PAGE);
        CHECK(rd_io_mapped(f.r.ad, f.page[i]));
    }
    CHECK(!rd_io_mapped(f.r.ad, f.page[PAGES - 1] + PAGE));
    CHECK(!rd_io_mapped(f.r.ad, (uint64_t)(uintptr_t)f.mem));
    CHECK(!rd_io_mapped(f.r.ad, f.page[0] ^ (1ull << 52)));
    CHECK(!rd_io_mapped(f.r.ad, f.page[0] ^ (1ull << 40)));
    rd_io_unmap(f.r.ad, f.io);
    CHECK(!rd_io_mapped(f.r.ad, f.page[0]));
    struct rd_io *again;
    CHECK_ST(rd_io_map(f.r.ad, f.mem, PAGE, false, &again), SN_OK);
    CHECK(rd_io_page(again, 0) != f.page[0]); /* a stale one does not come back */
    rd_io_unmap(f.r.ad, again);
    f.io = NULL;
    fast_down(&f);
}

static void mapping_covers_whole_pages_of_unaligned_memory(void) {
    struct fast f;
    struct rd_io *io;
    fast_up(&f, false, false);
    CHECK_ST(rd_io_map(f.r.ad, f.mem + 100, PAGE, false, &io), SN_OK);
    CHECK_EQ(rd_io_pages(io), 2);
    rd_io_unmap(f.r.ad, io);
    CHECK_ST(rd_io_map(f.r.ad, f.mem, 0, false, &io), SN_E_PARAM);
    CHECK_ST(rd_io_map(f.r.ad, f.mem, SIZE_MAX, false, &io), SN_E_PARAM);
    CHECK_ST(rd_io_map(f.r.ad, f.mem, (size_t)1 << 33, false, &io), SN_E_RESOURCES);
    fast_down(&f);
}

static void privileged_token_takes_logical_addresses_only_and_only_locally(void) {
    struct fast f;
    uint8_t out[2 * PAGE];
    uint32_t pieces, t;
    fast_up(&f, true, false);
    t = rd_pd_token(f.pd);
    f.mem[5] = 77;
    CHECK_ST(fetch(f.r.a.qp, t, f.page[0] + 5, 1, TP_LOCAL_READ, out, &pieces), SN_OK);
    CHECK_EQ(out[0], 77);
    CHECK_ST(fetch(f.r.a.qp, t, f.page[0], 1, TP_LOCAL_WRITE, out, &pieces), SN_OK);
    CHECK_ST(fetch(f.r.a.qp, t, f.page[0], 1, TP_READ_SINK, out, &pieces), SN_OK);
    CHECK_ST(fetch(f.r.a.qp, t, f.page[0], 1, TP_REMOTE_READ, out, &pieces), SN_E_TOKEN);
    CHECK_ST(fetch(f.r.a.qp, t, (uint64_t)(uintptr_t)f.mem, 1, TP_LOCAL_READ, out, &pieces),
             SN_E_TOKEN);
    CHECK_ST(fetch(f.r.a.qp, t, f.page[0] + PAGE, 1, TP_LOCAL_READ, out, &pieces), SN_E_TOKEN);
    CHECK_ST(fetch(f.r.a.qp, t, f.page[1], 2 * PAGE, TP_LOCAL_READ, out, &pieces), SN_OK);
    CHECK_EQ(pieces, 2);
    fast_down(&f);
}

static void tokens_of_another_domain_are_refused(void) {
    struct fast f;
    struct rd_pd *other;
    struct rd_region *m;
    uint8_t out[8];
    uint32_t pieces;
    fast_up(&f, false, false);
    CHECK_ST(rd_pd_create(f.r.ad, &other), SN_OK);
    CHECK(rd_pd_id(other) != rd_pd_id(f.pd) && rd_pd_token(other) != rd_pd_token(f.pd));
    CHECK_ST(rd_region_create(f.r.ad, &m), SN_OK);
    rd_region_set_pd(m, other);
    CHECK_ST(rd_region_register(m, f.mem, 8, RD_REMOTE_READ), SN_OK);
    uint64_t at = (uint64_t)(uintptr_t)f.mem;
    CHECK_ST(fetch(f.r.a.qp, rd_region_local_token(m), at, 8, TP_LOCAL_READ, out, &pieces),
             SN_E_PD);
    CHECK_ST(fetch(f.r.a.qp, rd_region_remote_token(m), at, 8, TP_REMOTE_READ, out, &pieces),
             SN_E_PD);
    CHECK_ST(fetch(f.r.a.qp, rd_pd_token(other), f.page[0], 8, TP_LOCAL_READ, out, &pieces),
             SN_E_PD);
    rd_region_destroy(m);
    CHECK_ST(rd_region_create(f.r.ad, &m), SN_OK);
    rd_region_set_pd(m, other);
    CHECK_ST(rd_region_init_fast(m, 1, true, false), SN_OK);
    CHECK_ST(rd_qp_fast_register(f.r.a.qp, NULL, m, f.page, 1, 0, 1, 0, 0, 0), SN_E_PD);
    CHECK_ST(rd_qp_invalidate_region(f.r.a.qp, NULL, m, 0), SN_E_PD);
    rd_region_destroy(m);
    rd_pd_destroy(other);
    fast_down(&f);
}

/* ---- fast registration ---- */

static void scattered_pages_form_one_region(void) {
    struct fast f;
    uint8_t out[PAGES * PAGE];
    uint32_t pieces;
    fast_up(&f, true, false);
    for (int i = 0; i < PAGES * PAGE; i++)
        f.mem[i] = (uint8_t)(i * 7 + i / PAGE);
    uint32_t before = rd_region_remote_token(f.m);
    CHECK(before != 0 && before != rd_region_local_token(f.m));
    CHECK_ST(REG(&f, 1, 100, PAGES * PAGE - 200, RD_LOCAL_WRITE | RD_REMOTE_READ, 0), SN_OK);
    CHECK_CQE(f.r.a.cq, RD_FAST_REGISTER, 1, SN_OK, 0);
    uint32_t remote = rd_region_remote_token(f.m), local = rd_region_local_token(f.m);
    CHECK_ST(
        fetch(f.r.a.qp, remote, 0x10000 + 100, PAGES * PAGE - 200, TP_REMOTE_READ, out, &pieces),
        SN_OK);
    CHECK_EQ(pieces, PAGES);
    CHECK_BYTES(out, f.mem + 100, PAGES * PAGE - 200);
    CHECK_ST(fetch(f.r.a.qp, local, 0x10000 + 2 * PAGE - 3, 6, TP_LOCAL_WRITE, out, &pieces),
             SN_OK);
    CHECK_EQ(pieces, 2);
    CHECK_BYTES(out, f.mem + 2 * PAGE - 3, 6);
    CHECK_ST(fetch(f.r.a.qp, remote, 0x10000 + 99, 1, TP_REMOTE_READ, out, &pieces), SN_E_RANGE);
    CHECK_ST(fetch(f.r.a.qp, remote, 0x10000 + PAGES * PAGE - 101, 2, TP_REMOTE_READ, out, &pieces),
             SN_E_RANGE);
    CHECK_ST(fetch(f.r.a.qp, remote, 0x10000 + 100, 1, TP_REMOTE_WRITE, out, &pieces), SN_E_RIGHTS);
    CHECK_ST(fetch(f.r.a.qp, local, 0x10000 + 100, 1, TP_REMOTE_READ, out, &pieces), SN_E_TOKEN);
    fast_down(&f);
}

static void neighbouring_pages_are_one_piece(void) {
    struct fast f;
    uint8_t out[PAGES * PAGE];
    uint32_t pieces;
    fast_up(&f, false, false);
    CHECK_ST(REG(&f, 1, 0, PAGES * PAGE, 0, 0), SN_OK);
    CHECK_ST(fetch(f.r.a.qp, rd_region_local_token(f.m), 0x10000, PAGES * PAGE, TP_LOCAL_READ, out,
                   &pieces),
             SN_OK);
    CHECK_EQ(pieces, 1);
    fast_down(&f);
}

static void arguments_are_checked_each(void) {
    struct fast f;
    fast_up(&f, false, false);
    struct rd_qp *qp = f.r.a.qp;
#define TRY(count, fbo, len, base, rights)                                                         \
    rd_qp_fast_register(qp, NULL, f.m, f.page, count, fbo, len, base, rights, 0)
    CHECK_ST(TRY(0, 0, 1, 0, 0), SN_E_PARAM);
    CHECK_ST(TRY(PAGES + 1, 0, 1, 0, 0), SN_E_PARAM);
    CHECK_ST(TRY(1, PAGE, 1, 0, 0), SN_E_PARAM);
    CHECK_ST(TRY(1, 1, 1, 0, 0), SN_E_PARAM);        /* base 0 needs fbo 0 */
    CHECK_ST(TRY(1, 1, 1, PAGE + 2, 0), SN_E_PARAM); /* base and fbo differ */
    CHECK_ST(TRY(1, 1, PAGE, PAGE + 1, 0), SN_E_PARAM);
    CHECK_ST(TRY(1, 0, 0, 0, 0), SN_E_PARAM);
    CHECK_ST(TRY(2, 0, 2 * PAGE, UINT64_MAX - PAGE + 1, 0), SN_E_PARAM); /* wraps */
    CHECK_ST(TRY(1, 0, 1, 0, 0x100), SN_E_PARAM);
    uint64_t bad = f.page[0] + 8, unmapped = (uint64_t)(uintptr_t)f.mem;
    CHECK_ST(rd_qp_fast_register(qp, NULL, f.m, &bad, 1, 0, 1, 0, 0, 0), SN_E_PARAM);
    CHECK_ST(rd_qp_fast_register(qp, NULL, f.m, &unmapped, 1, 0, 1, 0, 0, 0), SN_E_PARAM);
    CHECK_ST(rd_region_init_fast(f.m, PAGES, false, false), SN_OK);
    CHECK_ST(TRY(1, 0, 1, 0, RD_REMOTE_READ), SN_E_RIGHTS);
    CHECK_ST(TRY(1, 0, 1, 0, RD_REMOTE_WRITE), SN_E_RIGHTS);
    CHECK_NO_CQE(f.r.a.cq);
    CHECK_ST(TRY(1, 0, 1, 0, RD_LOCAL_WRITE), SN_OK);
    CHECK_CQE(f.r.a.cq, RD_FAST_REGISTER, 0, SN_OK, 0);
    CHECK_ST(rd_region_init_fast(f.m, PAGES, true, false), SN_E_STATE);
#undef TRY
    struct rd_region *plain;
    CHECK_ST(rd_region_create(f.r.ad, &plain), SN_OK);
    rd_region_set_pd(plain, f.pd);
    CHECK_ST(rd_qp_fast_register(qp, NULL, plain, f.page, 1, 0, 1, 0, 0, 0), SN_E_STATE);
    CHECK_ST(rd_region_init_fast(plain, 0, true, false), SN_E_PARAM);
    CHECK_ST(rd_region_init_fast(plain, RD_FAST_PAGES_MAX + 1, true, false), SN_E_RESOURCES);
    CHECK_ST(rd_region_init_fast(plain, RD_FAST_PAGES_MAX, true, false), SN_OK);
    CHECK_ST(rd_region_register(plain, f.mem, 1, 0), SN_E_REQUEST);
    rd_region_destroy(plain);
    fast_down(&f);
}

static void not_connected_pair_refuses(void) {
    struct fast f;
    fast_up(&f, false, false);
    struct rd_qp *qp = pd_qp(&f, f.r.a.cq, false);
    CHECK_ST(rd_qp_fast_register(qp, NULL, f.m, f.page, 1, 0, 1, 0, 0, 0), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_qp_invalidate_region(qp, NULL, f.m, 0), SN_E_NOT_CONNECTED);
    rd_qp_destroy(qp);
    fast_down(&f);
}

static void each_registration_has_a_fresh_remote_token(void) {
    struct fast f;
    uint8_t out[1];
    uint32_t pieces, old[100];
    fast_up(&f, false, false);
    uint32_t local = rd_region_local_token(f.m);
    for (int i = 0; i < 100; i++) {
        CHECK_ST(REG(&f, 1, 0, PAGE, RD_REMOTE_READ, RD_POST_SILENT), SN_OK);
        old[i] = rd_region_remote_token(f.m);
        CHECK_EQ(rd_region_local_token(f.m), local);
        CHECK_ST(fetch(f.r.a.qp, old[i], 0x10000, 1, TP_REMOTE_READ, out, &pieces), SN_OK);
        for (int k = 0; k < i; k++) {
            CHECK(old[k] != old[i]);
            CHECK_ST(fetch(f.r.a.qp, old[k], 0x10000, 1, TP_REMOTE_READ, out, &pieces), SN_E_TOKEN);
        }
        CHECK_ST(rd_qp_invalidate_region(f.r.a.qp, CTX(2), f.m, 0), SN_OK);
        CHECK_CQE(f.r.a.cq, RD_INVALIDATE, 2, SN_OK, 0);
        CHECK_ST(fetch(f.r.a.qp, old[i], 0x10000, 1, TP_REMOTE_READ, out, &pieces), SN_E_TOKEN);
        CHECK_ST(fetch(f.r.a.qp, local, 0x10000, 1, TP_LOCAL_READ, out, &pieces), SN_E_TOKEN);
    }
    fast_down(&f);
}

static void fixed_token_stays_the_same(void) {
    struct fast f;
    uint8_t out[1];
    uint32_t pieces;
    fast_up(&f, false, true);
    uint32_t token = rd_region_remote_token(f.m);
    for (int i = 0; i < 3; i++) {
        CHECK_ST(fetch(f.r.a.qp, token, 0x10000, 1, TP_REMOTE_READ, out, &pieces), SN_E_TOKEN);
        CHECK_ST(REG(&f, 1, 0, PAGE, RD_REMOTE_READ, RD_POST_SILENT), SN_OK);
        CHECK_EQ(rd_region_remote_token(f.m), token);
        CHECK_ST(fetch(f.r.a.qp, token, 0x10000, 1, TP_REMOTE_READ, out, &pieces), SN_OK);
        CHECK_ST(rd_qp_invalidate_region(f.r.a.qp, NULL, f.m, RD_POST_SILENT), SN_OK);
    }
    fast_down(&f);
}

static void registered_twice_fails_and_ends_the_pair(void) {
    struct fast f;
    fast_up(&f, false, false);
    CHECK_ST(REG(&f, 1, 0, PAGE, 0, RD_POST_SILENT), SN_OK);
    CHECK_ST(REG(&f, 2, 0, PAGE, 0, RD_POST_SILENT), SN_OK);
    CHECK_CQE(f.r.a.cq, RD_FAST_REGISTER, 2, SN_E_REQUEST, 0);
    fake_run();
    CHECK_ST(REG(&f, 3, 0, PAGE, 0, 0), SN_OK);
    CHECK_CQE(f.r.a.cq, RD_FAST_REGISTER, 3, SN_E_CANCELED, 0);
    fast_down(&f);
}

static void invalidated_twice_fails(void) {
    struct fast f;
    fast_up(&f, false, false);
    CHECK_ST(rd_qp_invalidate_region(f.r.a.qp, CTX(1), f.m, 0), SN_OK);
    CHECK_CQE(f.r.a.cq, RD_INVALIDATE, 1, SN_E_REQUEST, 0);
    fast_down(&f);
}

static void invalidate_then_register_in_one_chain_works(void) {
    struct fast f;
    uint8_t out[1];
    uint32_t pieces;
    fast_up(&f, false, false);
    CHECK_ST(REG(&f, 1, 0, PAGE, RD_REMOTE_READ, 0), SN_OK);
    CHECK_CQE(f.r.a.cq, RD_FAST_REGISTER, 1, SN_OK, 0);
    uint32_t first = rd_region_remote_token(f.m);
    CHECK_ST(rd_qp_invalidate_region(f.r.a.qp, CTX(2), f.m, RD_POST_DEFER), SN_OK);
    CHECK_ST(REG(&f, 3, 0, PAGE, RD_REMOTE_READ, RD_POST_DEFER), SN_OK);
    uint32_t second = rd_region_remote_token(f.m);
    CHECK(first != second);
    CHECK_NO_CQE(f.r.a.cq); /* deferred: nothing happens yet */
    CHECK_ST(fetch(f.r.a.qp, first, 0x10000, 1, TP_REMOTE_READ, out, &pieces), SN_OK);
    CHECK_ST(fetch(f.r.a.qp, second, 0x10000, 1, TP_REMOTE_READ, out, &pieces), SN_E_TOKEN);
    rd_qp_start_deferred(f.r.a.qp);
    CHECK_CQE(f.r.a.cq, RD_INVALIDATE, 2, SN_OK, 0);
    CHECK_CQE(f.r.a.cq, RD_FAST_REGISTER, 3, SN_OK, 0);
    CHECK_ST(fetch(f.r.a.qp, first, 0x10000, 1, TP_REMOTE_READ, out, &pieces), SN_E_TOKEN);
    CHECK_ST(fetch(f.r.a.qp, second, 0x10000, 1, TP_REMOTE_READ, out, &pieces), SN_OK);
    fast_down(&f);
}

static void deferred_start_with_the_next_that_is_not(void) {
    struct fast f;
    fast_up(&f, false, false);
    CHECK_ST(REG(&f, 1, 0, PAGE, 0, RD_POST_DEFER), SN_OK);
    CHECK_NO_CQE(f.r.a.cq);
    CHECK_ST(rd_qp_invalidate_region(f.r.a.qp, CTX(2), f.m, 0), SN_OK);
    CHECK_CQE(f.r.a.cq, RD_FAST_REGISTER, 1, SN_OK, 0);
    CHECK_CQE(f.r.a.cq, RD_INVALIDATE, 2, SN_OK, 0);
    rd_qp_start_deferred(f.r.a.qp); /* nothing there */
    CHECK_NO_CQE(f.r.a.cq);
    fast_down(&f);
}

static void flushed_registration_leaves_nothing(void) {
    struct fast f;
    uint8_t out[1];
    uint32_t pieces;
    for (int fixed = 0; fixed < 2; fixed++) {
        fast_up(&f, false, fixed);
        CHECK_ST(REG(&f, 1, 0, PAGE, RD_REMOTE_READ, RD_POST_DEFER), SN_OK);
        uint32_t token = rd_region_remote_token(f.m);
        rd_qp_flush(f.r.a.qp);
        CHECK_CQE(f.r.a.cq, RD_FAST_REGISTER, 1, SN_E_CANCELED, 0);
        CHECK_ST(fetch(f.r.a.qp, token, 0x10000, 1, TP_REMOTE_READ, out, &pieces), SN_E_TOKEN);
        fast_down(&f);
    }
}

static void region_destroyed_while_queued_fails_the_request(void) {
    struct fast f;
    fast_up(&f, false, false);
    CHECK_ST(REG(&f, 1, 0, PAGE, RD_REMOTE_READ, RD_POST_DEFER), SN_OK);
    rd_region_destroy(f.m);
    rd_qp_start_deferred(f.r.a.qp);
    CHECK_CQE(f.r.a.cq, RD_FAST_REGISTER, 1, SN_E_REQUEST, 0);
    CHECK_ST(rd_region_create(f.r.ad, &f.m), SN_OK); /* for fast_down */
    fast_down(&f);
}

static void peer_invalidates_by_token(void) {
    struct fast f;
    fast_up(&f, false, false);
    CHECK_ST(REG(&f, 1, 0, PAGE, RD_REMOTE_READ, RD_POST_SILENT), SN_OK);
    uint32_t token = rd_region_remote_token(f.m);
    struct tp_sge s = rig_sge(&f.r, 0, 8);
    CHECK_ST(rd_qp_receive(f.r.a.qp, CTX(7), &s, 1), SN_OK);
    CHECK_ST(rd_qp_send(f.r.b.qp, CTX(8), &s, 1, RD_POST_INVALIDATE, token), SN_OK);
    fake_run();
    struct rd_completion c;
    CHECK_EQ(rd_cq_poll(f.r.a.cq, &c, 1), 1);
    CHECK_ST(c.status, SN_OK);
    CHECK_EQ(c.type, RD_RECEIVE);
    CHECK_EQ(c.invalidated_token, token);
    CHECK_ST(rd_upcalls.remote_invalidate(f.r.a.qp, token), SN_E_TOKEN);
    CHECK_ST(rd_upcalls.remote_invalidate(f.r.a.qp, rd_region_local_token(f.m)), SN_E_TOKEN);
    CHECK_ST(rd_upcalls.remote_invalidate(f.r.a.qp, rd_region_remote_token(f.r.mem)), SN_E_TOKEN);
    CHECK_ST(rd_upcalls.remote_invalidate(f.r.a.qp, rd_pd_token(f.pd)), SN_E_TOKEN);
    /* Our own invalidate comes too late. */
    CHECK_ST(rd_qp_invalidate_region(f.r.a.qp, CTX(9), f.m, 0), SN_OK);
    CHECK_CQE(f.r.a.cq, RD_INVALIDATE, 9, SN_E_REQUEST, 0);
    fast_down(&f);
}

static void read_with_invalidate_ends_the_sink(void) {
    struct fast f;
    uint8_t out[1];
    uint32_t pieces;
    fast_up(&f, false, false);
    memset(f.r.buf, 0x5A, 100);
    CHECK_ST(REG(&f, 1, 0, PAGE, RD_LOCAL_WRITE, RD_POST_SILENT), SN_OK);
    uint32_t local = rd_region_local_token(f.m);
    struct tp_sge s = { (void *)(uintptr_t)0x10000, 64, local };
    CHECK_ST(rd_qp_read(f.r.a.qp, CTX(4), &s, 1, (uint64_t)(uintptr_t)f.r.buf,
                        rd_region_remote_token(f.r.mem), RD_POST_READ_INVALIDATE),
             SN_OK);
    fake_run();
    CHECK_CQE(f.r.a.cq, RD_READ, 4, SN_OK, 64);
    CHECK_EQ(f.mem[63], 0x5A);
    CHECK_ST(fetch(f.r.a.qp, local, 0x10000, 1, TP_LOCAL_READ, out, &pieces), SN_E_TOKEN);
    CHECK_ST(REG(&f, 5, 0, PAGE, 0, 0), SN_OK); /* free for the next registration */
    CHECK_CQE(f.r.a.cq, RD_FAST_REGISTER, 5, SN_OK, 0);
    fast_down(&f);
}

static void unmapped_pages_of_a_region_are_refused(void) {
    struct fast f;
    uint8_t out[1];
    uint32_t pieces;
    fast_up(&f, false, false);
    CHECK_ST(REG(&f, 1, 0, PAGE, RD_REMOTE_READ, RD_POST_SILENT), SN_OK);
    rd_io_unmap(f.r.ad, f.io);
    f.io = NULL;
    CHECK_ST(fetch(f.r.a.qp, rd_region_remote_token(f.m), 0x10000, 1, TP_REMOTE_READ, out, &pieces),
             SN_E_TOKEN);
    fast_down(&f);
}

/* ---- arming ---- */

struct told {
    int calls;
    sn_status st;
};
static void on_told(void *ctx, sn_status st) {
    struct told *t = ctx;
    t->calls++;
    t->st = st;
}

static void receive_one(struct fast *f, uint32_t flags) {
    struct tp_sge s = rig_sge(&f->r, 0, 8);
    CHECK_ST(rd_qp_receive(f->r.a.qp, NULL, &s, 1), SN_OK);
    CHECK_ST(rd_qp_send(f->r.b.qp, NULL, &s, 1, RD_POST_SILENT | flags, 0), SN_OK);
    fake_run();
}

static void one_arm_is_one_call_and_arms_merge(void) {
    struct fast f;
    struct told t = { 0, SN_OK };
    struct rd_completion c[8];
    fast_up(&f, false, false);
    CHECK_ST(rd_cq_arm(f.r.a.cq, RD_NOTIFY_ANY), SN_E_PARAM); /* no callback yet */
    rd_cq_set_callback(f.r.a.cq, on_told, &t);
    CHECK_ST(rd_cq_arm(f.r.a.cq, (enum rd_notify)9), SN_E_PARAM);
    receive_one(&f, 0);
    CHECK_EQ(t.calls, 0); /* no arm, no call */
    CHECK_ST(rd_cq_arm(f.r.a.cq, RD_NOTIFY_SOLICITED), SN_OK);
    CHECK_EQ(t.calls, 0);
    CHECK_ST(rd_cq_arm(f.r.a.cq, RD_NOTIFY_ANY), SN_OK); /* stronger, and there is an entry */
    CHECK_EQ(t.calls, 1);
    CHECK_EQ(rd_cq_queued(f.r.a.cq), 1);
    CHECK_EQ(rd_cq_poll(f.r.a.cq, c, 8), 1);
    CHECK_ST(rd_cq_arm(f.r.a.cq, RD_NOTIFY_SOLICITED), SN_OK);
    CHECK_ST(rd_cq_arm(f.r.a.cq, RD_NOTIFY_ERRORS), SN_OK); /* weaker: stays SOLICITED */
    receive_one(&f, 0);
    CHECK_EQ(t.calls, 1);
    receive_one(&f, RD_POST_SOLICIT);
    CHECK_EQ(t.calls, 2);
    receive_one(&f, RD_POST_SOLICIT);
    CHECK_EQ(t.calls, 2);
    CHECK_ST(t.st, SN_OK);
    fast_down(&f);
    CHECK_EQ(t.calls, 2);
}

static void falling_threshold_does_not_fire_when_armed(void) {
    struct fast f;
    struct rd_srq *srq;
    struct rig_async a;
    fast_up(&f, false, false);
    CHECK_ST(rd_srq_create(f.r.ad, 8, 1, 2, &srq), SN_OK);
    CHECK_ST(rd_srq_notify_falling(srq, rig_arm(&a)), SN_PENDING);
    CHECK_NOT_DONE(&a);
    rd_srq_cancel(srq);
    CHECK_DONE(&a, SN_E_CANCELED);
    CHECK_ST(rd_srq_notify(srq, rig_arm(&a)), SN_PENDING);
    CHECK_DONE(&a, SN_OK);
    rd_srq_destroy(srq);
    fast_down(&f);
}

/* ---- a peer that leaves ---- */

static void orderly_disconnect_leaves_the_queues(void) {
    struct fast f;
    struct rig_async gone;
    fast_up(&f, false, false);
    struct tp_sge s = rig_sge(&f.r, 0, 8);
    CHECK_ST(rd_qp_receive(f.r.a.qp, CTX(1), &s, 1), SN_OK);
    CHECK_ST(REG(&f, 2, 0, PAGE, 0, RD_POST_DEFER), SN_OK);
    CHECK_ST(rd_connector_notify_disconnect(f.r.a.c, rig_arm(&gone)), SN_PENDING);
    rd_connector_destroy(f.r.b.c);
    f.r.b.c = NULL;
    fake_run();
    CHECK_DONE(&gone, SN_OK);
    CHECK_NO_CQE(f.r.a.cq);
    CHECK_ST(rd_qp_send(f.r.a.qp, NULL, &s, 1, 0, 0), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_qp_receive(f.r.a.qp, CTX(3), &s, 1), SN_OK);
    rd_qp_flush(f.r.a.qp);
    CHECK_CQE(f.r.a.cq, RD_FAST_REGISTER, 2, SN_E_CANCELED, 0);
    CHECK_CQE(f.r.a.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    CHECK_CQE(f.r.a.cq, RD_RECEIVE, 3, SN_E_CANCELED, 0);
    CHECK_NO_CQE(f.r.a.cq);
    fast_down(&f);
}

static void broken_connection_flushes_a_held_pair_too(void) {
    struct fast f;
    fast_up(&f, false, false);
    struct tp_sge s = rig_sge(&f.r, 0, 8);
    CHECK_ST(rd_qp_receive(f.r.a.qp, CTX(1), &s, 1), SN_OK);
    fake_break(f.r.ca, SN_E_PEER_GONE);
    fake_run();
    CHECK_CQE(f.r.a.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    fast_down(&f);
}

TEST_MAIN(TEST(logical_addresses_are_no_virtual_ones),
          TEST(mapping_covers_whole_pages_of_unaligned_memory),
          TEST(privileged_token_takes_logical_addresses_only_and_only_locally),
          TEST(tokens_of_another_domain_are_refused), TEST(scattered_pages_form_one_region),
          TEST(neighbouring_pages_are_one_piece), TEST(arguments_are_checked_each),
          TEST(not_connected_pair_refuses), TEST(each_registration_has_a_fresh_remote_token),
          TEST(fixed_token_stays_the_same), TEST(registered_twice_fails_and_ends_the_pair),
          TEST(invalidated_twice_fails), TEST(invalidate_then_register_in_one_chain_works),
          TEST(deferred_start_with_the_next_that_is_not), TEST(flushed_registration_leaves_nothing),
          TEST(region_destroyed_while_queued_fails_the_request), TEST(peer_invalidates_by_token),
          TEST(read_with_invalidate_ends_the_sink), TEST(unmapped_pages_of_a_region_are_refused),
          TEST(one_arm_is_one_call_and_arms_merge),
          TEST(falling_threshold_does_not_fire_when_armed),
          TEST(orderly_disconnect_leaves_the_queues),
          TEST(broken_connection_flushes_a_held_pair_too))
