/* SPDX-License-Identifier: MIT
 * conform_region.c - IND2MemoryRegion: what can be registered, tokens, rights, and what happens to
 * requests whose buffer is deregistered or freed.
 */
#include "fixture.h"

static IND2MemoryRegion *new_region(struct fx *f) {
    void *region = NULL;
    CHECK_HR(CALL(f->host[0].adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, f->host[0].file,
                  &region),
             ND_SUCCESS);
    fx_track(f, region);
    return region;
}

static HRESULT try_register(struct fx *f, const void *bytes, size_t len, ULONG flags) {
    IND2MemoryRegion *region = new_region(f);
    HRESULT hr = RUN(f, region, Register, bytes, len, flags, fx_run_ov);
    if (hr == ND_SUCCESS) CHECK_HR(RUN(f, region, Deregister, fx_run_ov), ND_SUCCESS);
    CHECK_EQ(fx_release(f, region), 0);
    return hr;
}

/* ---- Register ---- */

static void register_pends_and_deregister_pends(void) {
    struct fx *f = fx_begin();
    static char bytes[100];
    IND2MemoryRegion *region = new_region(f);
    OVERLAPPED *ov = fx_overlapped(f);
    HRESULT hr = CALL(region, Register, bytes, sizeof bytes, 0, ov);
    CHECK_HR(hr, ND_PENDING); /* the convention that every client survives */
    CHECK_HR(FINISH(f, region, ov, hr), ND_SUCCESS);
    CHECK_EQ((HRESULT)ov->Internal, ND_SUCCESS);
    hr = CALL(region, Deregister, ov);
    CHECK_HR(hr, ND_PENDING);
    CHECK_HR(FINISH(f, region, ov, hr), ND_SUCCESS);
    fx_end(f);
}

static void register_takes_any_size_and_alignment(void) {
    struct fx *f = fx_begin();
    size_t page = host_page_size(), len = 8 * page;
    uint8_t *pages = host_pages_alloc(len);
    CHECK(pages != NULL);
    static const size_t offsets[] = { 0, 1, 7, 63 };
    size_t lens[] = { 1, 2, 3, 7, 8, 63, 64, page - 1, page, page + 1, 3 * page + 17 };
    for (size_t o = 0; o < COUNT_OF(offsets); o++)
        for (size_t n = 0; n < COUNT_OF(lens); n++)
            CHECK_HR(try_register(f, pages + offsets[o], lens[n], FX_MR_ALL), ND_SUCCESS);
    CHECK_HR(try_register(f, pages + page - 1, 2, FX_MR_ALL), ND_SUCCESS);
    host_pages_free(pages, len);
    fx_end(f);
}

static void register_null_is_an_invalid_parameter(void) {
    struct fx *f = fx_begin();
    CHECK_HR(try_register(f, NULL, 0, ND_MR_FLAG_ALLOW_LOCAL_WRITE), ND_INVALID_PARAMETER);
    fx_end(f);
}

static void register_of_no_bytes_is_an_invalid_size(void) {
    struct fx *f = fx_begin();
    char bytes[10];
    CHECK_HR(try_register(f, bytes, 0, ND_MR_FLAG_ALLOW_LOCAL_WRITE), ND_INVALID_BUFFER_SIZE);
    fx_end(f);
}

static void register_above_the_limit_is_an_invalid_parameter(void) {
    struct fx *f = fx_begin();
    static char bytes[8];
    if (f->info.MaxRegistrationSize == (SIZE_T)-1) SKIP("there is no limit");
    CHECK_HR(try_register(f, bytes, f->info.MaxRegistrationSize + 1, 0), ND_INVALID_PARAMETER);
    fx_end(f);
}

static void register_of_unmapped_memory_is_an_access_violation(void) {
    struct fx *f = fx_begin();
    size_t page = host_page_size();
    uint8_t *pages = host_pages_alloc(4 * page);
    CHECK(pages != NULL);
    host_pages_free(pages + 2 * page, page); /* a hole */
    CHECK_HR(try_register(f, pages, 2 * page, FX_MR_ALL), ND_SUCCESS);
    CHECK_HR(try_register(f, pages, 2 * page + 1, FX_MR_ALL), ND_ACCESS_VIOLATION);
    CHECK_HR(try_register(f, pages + 2 * page, page, FX_MR_ALL), ND_ACCESS_VIOLATION);
    CHECK_HR(try_register(f, pages, 4 * page, FX_MR_ALL), ND_ACCESS_VIOLATION);
    CHECK_HR(try_register(f, pages + 3 * page, page, FX_MR_ALL), ND_SUCCESS);
    CHECK_HR(try_register(f, (void *)(uintptr_t)16, 64, 0), ND_ACCESS_VIOLATION);
    CHECK_FAILED(try_register(f, (void *)(uintptr_t)-4096, 8192, 0)); /* wraps around */
    host_pages_free(pages, 2 * page);
    host_pages_free(pages + 3 * page, page);
    fx_end(f);
}

static void register_of_readonly_memory_allows_reading_only(void) {
    struct fx *f = fx_begin();
    size_t page = host_page_size();
    uint8_t *pages = host_pages_alloc(page);
    CHECK(pages && host_pages_readonly(pages, page));
    CHECK_HR(try_register(f, pages, page, 0), ND_SUCCESS);
    CHECK_HR(try_register(f, pages, page, ND_MR_FLAG_ALLOW_REMOTE_READ), ND_SUCCESS);
    CHECK_HR(try_register(f, pages, page, ND_MR_FLAG_ALLOW_LOCAL_WRITE), ND_ACCESS_VIOLATION);
    CHECK_HR(try_register(f, pages, page, ND_MR_FLAG_ALLOW_REMOTE_WRITE), ND_ACCESS_VIOLATION);
    host_pages_free(pages, page);
    fx_end(f);
}

static void register_accepts_every_defined_flag(void) {
    struct fx *f = fx_begin();
    static char bytes[64];
    static const ULONG flags[] = { 0,
                                   ND_MR_FLAG_ALLOW_LOCAL_WRITE,
                                   ND_MR_FLAG_ALLOW_REMOTE_READ,
                                   ND_MR_FLAG_ALLOW_REMOTE_WRITE,
                                   ND_MR_FLAG_RDMA_READ_SINK,
                                   ND_MR_FLAG_DO_NOT_SECURE_VM,
                                   FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK |
                                       ND_MR_FLAG_DO_NOT_SECURE_VM };
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        CHECK_HR(try_register(f, bytes, sizeof bytes, flags[i]), ND_SUCCESS);
    fx_end(f);
}

static void register_with_undefined_flags_names_parameter_3(void) {
    struct fx *f = fx_begin();
    static char bytes[64];
    static const ULONG flags[] = { 0x10, 0x40000000, 0x7FFFFFFF };
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        CHECK_HR(try_register(f, bytes, sizeof bytes, flags[i]), ND_INVALID_PARAMETER_3);
    fx_end(f);
}

static void register_without_overlapped_names_parameter_4(void) {
    struct fx *f = fx_begin();
    static char bytes[64];
    IND2MemoryRegion *region = new_region(f);
    CHECK_HR(CALL(region, Register, bytes, sizeof bytes, 0, NULL), ND_INVALID_PARAMETER_4);
    CHECK_HR(CALL(region, Deregister, NULL), ND_INVALID_PARAMETER_1);
    fx_end(f);
}

static void register_twice_is_an_invalid_request(void) {
    struct fx *f = fx_begin();
    struct fx_memory *m = fx_memory(f, 0, 100, FX_MR_ALL);
    static char other[100];
    CHECK_HR(RUN(f, m->region, Register, other, sizeof other, 0, fx_run_ov),
             ND_INVALID_DEVICE_REQUEST);
    CHECK_EQ(CALL(m->region, GetLocalToken), m->local);
    fx_end(f);
}

static void register_again_after_deregister_gives_new_tokens(void) {
    struct fx *f = fx_begin();
    struct fx_memory *m = fx_memory(f, 0, 100, FX_MR_ALL);
    fx_deregister(f, m);
    CHECK_HR(RUN(f, m->region, Register, m->bytes, m->len, FX_MR_ALL, fx_run_ov), ND_SUCCESS);
    CHECK(CALL(m->region, GetLocalToken) != m->local);
    CHECK(CALL(m->region, GetRemoteToken) != m->remote);
    fx_end(f);
}

static void register_of_a_file_view_works(void) {
    struct fx *f = fx_begin();
    size_t len = KIB(64);
    uint8_t *view = host_file_view(len);
    CHECK(view != NULL);
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *to = fx_memory_over(f, 1, view, len, FX_MR_ALL);
    struct fx_memory *from = fx_memory(f, 0, len, 0);
    fx_fill(from->bytes, len, 1, 1, 0);
    WRITE(&p->a, CTX(1), from, 0, len, to, 0, 0);
    EXPECT_OK(f, &p->a, Write, CTX(1), len);
    SYNC(f, &p->a, &p->b);
    CHECK_DATA(view, len, 1, 1, 0);
    fx_deregister(f, to);
    host_pages_free(view, len);
    fx_end(f);
}

static void register_of_a_gibibyte_is_cheap(void) {
    struct fx *f = fx_begin();
    size_t len = MIB(1024);
    if (len > f->info.MaxRegistrationSize) SKIP("the limit is below 1 GiB");
    uint8_t *pages = host_pages_alloc(len);
    if (!pages) SKIP("no address space of 1 GiB");
    struct fx_memory *m = fx_memory_over(f, 1, pages, len, FX_MR_ALL);
    /* Both ends of it work. */
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *from = fx_memory(f, 0, 64, 0);
    fx_fill(from->bytes, 64, 3, 1, 0);
    WRITE(&p->a, CTX(1), from, 0, 64, m, 0, 0);
    WRITE(&p->a, CTX(2), from, 0, 64, m, len - 64, 0);
    EXPECT_OK(f, &p->a, Write, CTX(1), 64);
    EXPECT_OK(f, &p->a, Write, CTX(2), 64);
    SYNC(f, &p->a, &p->b);
    CHECK_DATA(pages, 64, 3, 1, 0);
    CHECK_DATA(pages + len - 64, 64, 3, 1, 0);
    fx_deregister(f, m);
    host_pages_free(pages, len);
    fx_end(f);
}

static void register_ten_thousand_times_over_one_buffer(void) {
    struct fx *f = fx_begin();
    enum { COUNT = HOST_ROUNDS(10000) };
    static char bytes[4096];
    IND2MemoryRegion **regions = fx_alloc(f, COUNT * sizeof *regions);
    UINT32 *tokens = fx_alloc(f, COUNT * sizeof *tokens);
    OVERLAPPED *ov = fx_overlapped(f);
    for (int i = 0; i < COUNT; i++) {
        void *region = NULL;
        CHECK_HR(CALL(f->host[0].adapter, CreateMemoryRegion, &IID_IND2MemoryRegion,
                      f->host[0].file, &region),
                 ND_SUCCESS);
        regions[i] = region;
        HRESULT hr =
            CALL(regions[i], Register, bytes, sizeof bytes, ND_MR_FLAG_ALLOW_LOCAL_WRITE, ov);
        CHECK_HR(FINISH(f, regions[i], ov, hr), ND_SUCCESS);
        tokens[i] = CALL(regions[i], GetLocalToken);
    }
    for (int i = 1; i < COUNT; i += 997) /* all at once, hence all different */
        CHECK(tokens[i] != tokens[i - 1]);
    for (int i = 0; i < COUNT; i++) {
        HRESULT hr = CALL(regions[i], Deregister, ov);
        CHECK_HR(FINISH(f, regions[i], ov, hr), ND_SUCCESS);
        CHECK_EQ(CALL(regions[i], Release), 0);
    }
    fx_end(f);
}

static void registration_with_a_stack_overlapped_full_of_garbage_works(void) {
    struct fx *f = fx_begin();
    static char bytes[100];
    IND2MemoryRegion *region = new_region(f);
    OVERLAPPED ov;
    memset(&ov, 0xDB, sizeof ov);
    ov.hEvent = NULL;
    HRESULT hr = CALL(region, Register, bytes, sizeof bytes, 0, &ov);
    CHECK(hr == ND_PENDING || hr == ND_SUCCESS);
    CHECK_HR(CALL(region, GetOverlappedResult, &ov, TRUE), ND_SUCCESS);
    memset(&ov, 0xDB, sizeof ov);
    ov.hEvent = NULL;
    hr = CALL(region, Deregister, &ov);
    CHECK(hr == ND_PENDING || hr == ND_SUCCESS);
    CHECK_HR(CALL(region, GetOverlappedResult, &ov, TRUE), ND_SUCCESS);
    fx_end(f);
}

/* ---- tokens ---- */

static void tokens_of_two_registrations_of_one_buffer_differ(void) {
    struct fx *f = fx_begin();
    struct fx_memory *one = fx_memory(f, 0, 256, FX_MR_ALL);
    struct fx_memory *two = fx_memory_over(f, 0, one->bytes, one->len, 0);
    CHECK(one->local != two->local);
    CHECK(one->remote != two->remote);
    fx_end(f);
}

static void local_token_follows_the_rights_of_its_region(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    /* Two registrations of one buffer: what one forbids the other allows. */
    struct fx_memory *ro = fx_memory(f, 1, 256, 0);
    struct fx_memory *rw = fx_memory_over(f, 1, ro->bytes, ro->len, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    struct fx_memory *from = fx_memory(f, 0, 256, 0);
    fx_fill(from->bytes, 256, 4, 1, 0);
    RECEIVE(&p->b, CTX(1), rw, 0, 256);
    SEND(&p->a, CTX(1), from, 0, 256, 0);
    EXPECT_OK(f, &p->b, Receive, CTX(1), 256);
    CHECK_DATA(ro->bytes, 256, 4, 1, 0);
    EXPECT_OK(f, &p->a, Send, CTX(1), 256);
    RECEIVE(&p->b, CTX(2), ro, 0, 256);
    SEND(&p->a, CTX(2), from, 0, 256, 0);
    EXPECT_ERROR(f, &p->b, Receive, ND_ACCESS_VIOLATION, CTX(2));
    fx_end(f);
}

static void read_sink_alone_takes_reads(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *from = fx_memory(f, 1, 256, ND_MR_FLAG_ALLOW_REMOTE_READ);
    struct fx_memory *sink = fx_memory(f, 0, 256, ND_MR_FLAG_RDMA_READ_SINK);
    fx_fill(from->bytes, 256, 5, 1, 0);
    READ(&p->a, CTX(1), sink, 0, 256, from, 0, 0);
    EXPECT_OK(f, &p->a, Read, CTX(1), 256);
    CHECK_DATA(sink->bytes, 256, 5, 1, 0);
    fx_end(f);
}

static void local_write_without_read_sink_takes_reads(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *from = fx_memory(f, 1, 256, ND_MR_FLAG_ALLOW_REMOTE_READ);
    struct fx_memory *to = fx_memory(f, 0, 256, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    fx_fill(from->bytes, 256, 6, 1, 0);
    READ(&p->a, CTX(1), to, 0, 256, from, 0, 0);
    EXPECT_OK(f, &p->a, Read, CTX(1), 256);
    CHECK_DATA(to->bytes, 256, 6, 1, 0);
    fx_end(f);
}

/* ---- Deregister ---- */

static void deregister_of_an_unregistered_region_is_an_invalid_request(void) {
    struct fx *f = fx_begin();
    IND2MemoryRegion *region = new_region(f);
    CHECK_HR(RUN(f, region, Deregister, fx_run_ov), ND_INVALID_DEVICE_REQUEST);
    struct fx_memory *m = fx_memory(f, 0, 100, 0);
    fx_deregister(f, m);
    CHECK_HR(RUN(f, m->region, Deregister, fx_run_ov), ND_INVALID_DEVICE_REQUEST);
    fx_end(f);
}

static void deregister_with_a_window_bound_is_busy(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *m = fx_memory(f, 0, KIB(4), ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    IND2MemoryWindow *w = fx_window(f, 0);
    BIND(&p->a, CTX(1), m, w, 0, m->len, 0); /* flags 0 are legal */
    EXPECT_OK(f, &p->a, Bind, CTX(1), 0);
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(m->region, Deregister, ov), ND_DEVICE_BUSY); /* at once, not later */
    CHECK_EQ(CALL(m->region, GetLocalToken), m->local);
    CHECK_HR(CALL(p->a.qp, Invalidate, CTX(2), UNKNOWN(w), 0), ND_SUCCESS);
    EXPECT_OK(f, &p->a, Invalidate, CTX(2), 0);
    fx_deregister(f, m);
    fx_end(f);
}

static void deregister_of_a_posted_receive_fails_that_receive(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *from = fx_memory(f, 0, 64, 0);
    struct fx_memory *to = fx_memory(f, 1, 64, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    RECEIVE(&p->b, CTX(1), to, 0, 64);
    fx_deregister(f, to);
    memset(to->bytes, 0x33, 64);
    fx_fill(from->bytes, 64, 7, 1, 0);
    SEND(&p->a, CTX(1), from, 0, 64, 0);
    EXPECT_ERROR(f, &p->b, Receive, ND_ACCESS_VIOLATION, CTX(1));
    for (int i = 0; i < 64; i++)
        CHECK_EQ(to->bytes[i], 0x33);
    fx_end(f);
}

static void remote_token_after_deregister_is_dead(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *from = fx_memory(f, 0, 64, 0);
    struct fx_memory *to = fx_memory(f, 1, 64, FX_MR_ALL);
    fx_deregister(f, to);
    memset(to->bytes, 0x33, 64);
    WRITE(&p->a, CTX(1), from, 0, 64, to, 0, 0);
    EXPECT_ERROR(f, &p->a, Write, ND_ACCESS_VIOLATION, CTX(1));
    for (int i = 0; i < 64; i++)
        CHECK_EQ(to->bytes[i], 0x33);
    fx_end(f);
}

static void deregister_under_traffic_ends_all_access(void) {
    struct fx *f = fx_begin();
    struct fx_pair_options o = { .depth = 64 };
    struct fx_pair *p = PAIR(f, &o);
    size_t len = KIB(256);
    struct fx_memory *from = fx_memory(f, 0, len, 0);
    struct fx_memory *to = fx_memory(f, 1, len, FX_MR_ALL);
    memset(from->bytes, 0x77, len);
    for (int i = 0; i < 64; i++)
        WRITE(&p->a, CTX(i), from, 0, len, to, 0, 0);
    fx_deregister(f, to);
    memset(to->bytes, 0x11, len); /* nothing may overwrite this from here on */
    bool failed = false;
    for (int i = 0; i < 64; i++) {
        ND2_RESULT r;
        NEXT(f, p->a.initiator_cq, &r);
        CHECK_PTR(r.RequestContext, CTX(i));
        if (r.Status == ND_ACCESS_VIOLATION) {
            CHECK(!failed);
            failed = true;
        } else {
            CHECK_HR(r.Status, failed ? ND_CANCELED : ND_SUCCESS);
        }
    }
    for (size_t i = 0; i < len; i++)
        CHECK_EQ(to->bytes[i], 0x11);
    fx_end(f);
}

static void release_of_a_registered_region_deregisters(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *from = fx_memory(f, 0, 64, 0);
    struct fx_memory *to = fx_memory(f, 1, 64, FX_MR_ALL);
    CHECK_EQ(fx_release(f, to->region), 0);
    WRITE(&p->a, CTX(1), from, 0, 64, to, 0, 0);
    EXPECT_ERROR(f, &p->a, Write, ND_ACCESS_VIOLATION, CTX(1));
    fx_end(f);
}

/* ---- buffers that the program freed without a word ---- */

static void freed_target_of_a_write_fails_the_write(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    size_t len = 4 * host_page_size();
    uint8_t *pages = host_pages_alloc(len);
    CHECK(pages != NULL);
    struct fx_memory *from = fx_memory(f, 0, len, 0);
    struct fx_memory *to = fx_memory_over(f, 1, pages, len, FX_MR_ALL);
    host_pages_free(pages, len);
    WRITE(&p->a, CTX(1), from, 0, len, to, 0, 0);
    ND2_RESULT r;
    NEXT(f, p->a.initiator_cq, &r);
    CHECK_PTR(r.RequestContext, CTX(1));
    CHECK_FAILED(r.Status);
    fx_end(f);
}

static void freed_source_of_a_read_fails_the_read(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    size_t len = 4 * host_page_size();
    uint8_t *pages = host_pages_alloc(len);
    CHECK(pages != NULL);
    struct fx_memory *to = fx_memory(f, 0, len, FX_MR_ALL);
    struct fx_memory *from = fx_memory_over(f, 1, pages, len, FX_MR_ALL);
    host_pages_free(pages, len);
    READ(&p->a, CTX(1), to, 0, len, from, 0, 0);
    ND2_RESULT r;
    NEXT(f, p->a.initiator_cq, &r);
    CHECK_PTR(r.RequestContext, CTX(1));
    CHECK_FAILED(r.Status);
    fx_end(f);
}

static void freed_source_of_a_send_fails_the_send(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    size_t len = 4 * host_page_size();
    uint8_t *pages = host_pages_alloc(len);
    CHECK(pages != NULL);
    struct fx_memory *from = fx_memory_over(f, 0, pages, len, 0);
    struct fx_memory *to = fx_memory(f, 1, len, FX_MR_ALL);
    RECEIVE(&p->b, CTX(1), to, 0, len);
    host_pages_free(pages, len);
    SEND(&p->a, CTX(1), from, 0, len, 0);
    EXPECT_ERROR(f, &p->a, Send, ND_ACCESS_VIOLATION, CTX(1));
    EXPECT_ERROR(f, &p->b, Receive, ND_CANCELED, CTX(1));
    fx_end(f);
}

static void freed_target_of_a_receive_fails_the_receive(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    size_t len = 4 * host_page_size();
    uint8_t *pages = host_pages_alloc(len);
    CHECK(pages != NULL);
    struct fx_memory *from = fx_memory(f, 0, len, 0);
    struct fx_memory *to = fx_memory_over(f, 1, pages, len, FX_MR_ALL);
    RECEIVE(&p->b, CTX(1), to, 0, len);
    host_pages_free(pages, len);
    SEND(&p->a, CTX(1), from, 0, len, 0);
    EXPECT_ERROR(f, &p->b, Receive, ND_ACCESS_VIOLATION, CTX(1));
    fx_end(f);
}

static void freed_buffer_can_be_deregistered(void) {
    struct fx *f = fx_begin();
    size_t len = 4 * host_page_size();
    uint8_t *pages = host_pages_alloc(len);
    CHECK(pages != NULL);
    struct fx_memory *m = fx_memory_over(f, 0, pages, len, FX_MR_ALL);
    host_pages_free(pages, len);
    fx_deregister(f, m);
    fx_end(f);
}

CONFORM_MAIN(
    TEST(register_pends_and_deregister_pends), TEST(register_takes_any_size_and_alignment),
    TEST(register_null_is_an_invalid_parameter), TEST(register_of_no_bytes_is_an_invalid_size),
    TEST(register_above_the_limit_is_an_invalid_parameter),
    TEST(register_of_unmapped_memory_is_an_access_violation),
    TEST(register_of_readonly_memory_allows_reading_only),
    TEST(register_accepts_every_defined_flag),
    TEST(register_with_undefined_flags_names_parameter_3),
    TEST(register_without_overlapped_names_parameter_4), TEST(register_twice_is_an_invalid_request),
    TEST(register_again_after_deregister_gives_new_tokens), TEST(register_of_a_file_view_works),
    TEST(register_of_a_gibibyte_is_cheap), TEST(register_ten_thousand_times_over_one_buffer),
    TEST(registration_with_a_stack_overlapped_full_of_garbage_works),
    TEST(tokens_of_two_registrations_of_one_buffer_differ),
    TEST(local_token_follows_the_rights_of_its_region), TEST(read_sink_alone_takes_reads),
    TEST(local_write_without_read_sink_takes_reads),
    TEST(deregister_of_an_unregistered_region_is_an_invalid_request),
    TEST(deregister_with_a_window_bound_is_busy),
    TEST(deregister_of_a_posted_receive_fails_that_receive),
    TEST(remote_token_after_deregister_is_dead), TEST(deregister_under_traffic_ends_all_access),
    TEST(release_of_a_registered_region_deregisters), TEST(freed_target_of_a_write_fails_the_write),
    TEST(freed_source_of_a_read_fails_the_read), TEST(freed_source_of_a_send_fails_the_send),
    TEST(freed_target_of_a_receive_fails_the_receive), TEST(freed_buffer_can_be_deregistered))
