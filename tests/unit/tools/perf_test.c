/* SPDX-License-Identifier: MIT
 * perf_test.c - softnd perf without any provider: messages, limits, memory layout, figures, output.
 */
#include "perf.h"
#include "perf_math.h"
#include "perf_report.h"

#include <math.h>
#include "support/testing.h"

static struct perf_params plain(enum perf_verb verb, enum perf_kind kind) {
    return (struct perf_params){ .verb = verb,
                                 .kind = kind,
                                 .size = 1000,
                                 .tx_depth = 128,
                                 .rx_depth = 512,
                                 .sges = 1,
                                 .post_batch = 1,
                                 .cq_moderation = 1,
                                 .qps = 1,
                                 .threads = 1,
                                 .reads = 16 };
}

/* ---- messages ---- */

static void greeting_comes_back(void) {
    uint8_t bytes[PERF_GREETING_BYTES];
    uint32_t session = 0, index = 0;
    enum perf_role role = PERF_ROLE_CONTROL;

    perf_pack_greeting(PERF_ROLE_DATA, 0xfedcba98, 77, bytes);
    CHECK(perf_unpack_greeting(bytes, sizeof bytes, &role, &session, &index));
    CHECK_EQ(role, PERF_ROLE_DATA);
    CHECK_EQ(session, 0xfedcba98);
    CHECK_EQ(index, 77);
}

static void greeting_cut_or_foreign_is_refused(void) {
    uint8_t bytes[PERF_GREETING_BYTES];
    uint32_t session, index;
    enum perf_role role;

    perf_pack_greeting(PERF_ROLE_CONTROL, 1, 2, bytes);
    CHECK(!perf_unpack_greeting(bytes, sizeof bytes - 1, &role, &session, &index));
    for (int i = 0; i < 6; i++) { /* magic, version, role */
        bytes[i] ^= 0x40;
        CHECK(!perf_unpack_greeting(bytes, sizeof bytes, &role, &session, &index));
        bytes[i] ^= 0x40;
    }
}

static void message_has_its_bytes_in_network_order(void) {
    struct perf_message m = { .type = PERF_DONE, .v = { 0x0102030405060708 } }, back;
    uint8_t bytes[PERF_MESSAGE_BYTES];

    m.v[PERF_VALUES - 1] = UINT64_MAX;
    perf_pack_message(&m, bytes);
    CHECK(!memcmp(bytes, "SNPF\0\2\0\4\1\2\3\4\5\6\7\10", 16));
    CHECK(perf_unpack_message(bytes, sizeof bytes, &back));
    CHECK_EQ(back.type, PERF_DONE);
    CHECK(!memcmp(back.v, m.v, sizeof m.v));
}

static void message_cut_or_foreign_is_refused(void) {
    struct perf_message m = { .type = PERF_BYE }, back;
    uint8_t bytes[PERF_MESSAGE_BYTES + 1] = { 0 };

    perf_pack_message(&m, bytes);
    CHECK(!perf_unpack_message(bytes, PERF_MESSAGE_BYTES - 1, &back));
    CHECK(!perf_unpack_message(bytes, PERF_MESSAGE_BYTES + 1, &back));
    bytes[7] = PERF_TYPES;
    CHECK(!perf_unpack_message(bytes, PERF_MESSAGE_BYTES, &back));
}

static void parameters_survive_the_message(void) {
    struct perf_params p = plain(PERF_WRITE, PERF_BANDWIDTH), back;
    struct perf_message m = { 0 };

    p.target = PERF_TARGET_BUSY;
    p.sges = 3;
    p.inline_bytes = 17;
    p.post_batch = 5;
    p.cq_moderation = 7;
    p.qps = 9;
    p.idle_qps = 11;
    p.events = 1;
    p.cold_bytes = 1 << 20;
    p.threads = 12;
    perf_params_to_message(&p, &m);
    CHECK(perf_params_from_message(&m, &back));
    CHECK(!memcmp(&p, &back, sizeof p));
}

static void parameters_beyond_limits_are_refused(void) {
    for (int field = 0; field < 18; field++) {
        struct perf_params p = plain(PERF_SEND, PERF_BANDWIDTH), back;
        struct perf_message m = { 0 };
        perf_params_to_message(&p, &m);
        CHECK(perf_params_from_message(&m, &back));
        m.v[field] = UINT64_MAX;
        if (perf_params_from_message(&m, &back)) FAIL("value %d is not limited", field);
    }
}

static void combinations_that_make_no_sense_are_refused(void) {
    struct perf_params p = plain(PERF_WRITE, PERF_LATENCY);

    CHECK(!perf_params_check(&p));
    p.events = 1;
    CHECK(perf_params_check(&p));
    p = plain(PERF_SEND, PERF_LATENCY);
    p.qps = 2;
    CHECK(perf_params_check(&p));
    p = plain(PERF_READ, PERF_BANDWIDTH);
    p.verify = 1;
    CHECK(!perf_params_check(&p));
    p.cold_bytes = 1 << 20;
    CHECK(perf_params_check(&p));
    p = plain(PERF_SEND, PERF_BANDWIDTH);
    p.target = PERF_TARGET_SLEEP;
    CHECK(perf_params_check(&p));
    p = plain(PERF_SEND, PERF_BANDWIDTH);
    p.cq_moderation = p.tx_depth + 1; /* no result would ever come */
    CHECK(perf_params_check(&p));
    p.cq_moderation = 100;
    p.post_batch = 29;
    CHECK(!perf_params_check(&p));
    p.post_batch = 30; /* a batch would wait for a result of itself */
    CHECK(perf_params_check(&p));
    p = plain(PERF_SEND, PERF_BANDWIDTH);
    p.size = PERF_SIZE_MAX;
    p.verify = 1; /* a place for each message: far too much */
    CHECK(perf_params_check(&p));
}

static void test_names_and_tests_belong_together(void) {
    static const char *const names[] = { "send_lat", "send_bw", "write_lat", "write_bw",
                                         "read_lat", "read_bw", "conn_rate", "reg_rate" };
    struct perf_params p = { 0 };

    for (size_t i = 0; i < 8; i++) {
        CHECK(perf_test_from_name(names[i], &p));
        CHECK(!strcmp(perf_test_name(&p), names[i]));
    }
    CHECK(!perf_test_from_name("send", &p));
}

/* ---- memory and flow ---- */

static void areas_do_not_overlap(void) {
    struct perf_params p = plain(PERF_SEND, PERF_BANDWIDTH);
    struct perf_layout l;

    p.verify = 1;
    p.qps = 3;
    perf_layout_of(&p, &l);
    CHECK(l.stride >= p.size && l.stride % 64 == 0);
    CHECK_EQ(l.tx_slots, 3 * 128);
    CHECK_EQ(l.rx_slots, 3 * perf_receives(&p));
    CHECK(l.tx >= PERF_HEAD_BYTES);
    CHECK(l.rx >= l.tx + l.tx_slots * l.stride);
    CHECK(l.bytes >= l.rx + l.rx_slots * l.stride);
    p.verb = PERF_WRITE;
    perf_layout_of(&p, &l);
    CHECK_EQ(l.target_slots, l.tx_slots);
    CHECK(l.target >= l.tx + l.tx_slots * l.stride);
    CHECK_EQ(l.bytes, l.target + l.target_slots * l.stride);
}

static void warm_messages_share_a_place_and_cold_ones_cycle(void) {
    struct perf_params p = plain(PERF_WRITE, PERF_BANDWIDTH);
    struct perf_layout l;

    perf_layout_of(&p, &l);
    CHECK_EQ(l.tx_slots, 1);
    p.cold_bytes = 100 * l.stride;
    perf_layout_of(&p, &l);
    CHECK_EQ(l.tx_slots, 100);
    CHECK_EQ(l.target_slots, 100);
}

/* Whatever the window, the credits under way fit the Receives kept for them. */
static void credits_fit_their_receives(void) {
    struct perf_params p = plain(PERF_SEND, PERF_BANDWIDTH);

    for (p.rx_depth = 1; p.rx_depth <= PERF_DEPTH_MAX; p.rx_depth++) {
        uint64_t batch = perf_credit_batch(&p);
        CHECK(batch >= 1 && batch <= p.rx_depth);
        CHECK(p.rx_depth / batch <= PERF_CREDIT_SLOTS);
    }
}

/* ---- figures ---- */

static void percentiles_are_nearest_ranks(void) {
    uint32_t samples[1000];

    for (uint32_t i = 0; i < 1000; i++)
        samples[i] = i + 1;
    CHECK_EQ(perf_percentile(samples, 1000, 0.5), 500);
    CHECK_EQ(perf_percentile(samples, 1000, 0.99), 990);
    CHECK_EQ(perf_percentile(samples, 1000, 0.999), 999);
    CHECK_EQ(perf_percentile(samples, 1000, 1), 1000);
    CHECK_EQ(perf_percentile(samples, 1, 0.001), 1);
    CHECK_EQ(perf_percentile(samples, 0, 0.5), 0);
}

static void one_way_is_half_the_round_trip(void) {
    uint32_t samples[] = { 6000, 2000, 4000 };
    struct perf_summary s;

    perf_summarize(samples, 3, 2, &s);
    CHECK_EQ(s.count, 3);
    CHECK(s.min == 1 && s.median == 2 && s.max == 3);
    CHECK(fabs(s.mean - 2) < 1e-9);
    CHECK(fabs(s.deviation - sqrt(2.0 / 3)) < 1e-9);
}

static void no_samples_are_all_zero(void) {
    struct perf_summary s;

    perf_summarize(NULL, 0, 2, &s);
    CHECK(s.count == 0 && s.median == 0 && s.max == 0 && s.p999 == 0);
}

static void histogram_has_every_sample_once(void) {
    static const uint32_t samples[] = { 0, 1, 2, 3, 999, 1000, 1024, 65536, UINT32_MAX };
    struct perf_bucket b[PERF_BUCKETS_MAX];
    size_t n = perf_histogram(samples, 9, 1, b);
    uint64_t sum = 0;

    CHECK(n > 0 && n <= PERF_BUCKETS_MAX);
    for (size_t i = 0; i < n; i++) {
        uint64_t inside = 0;
        for (size_t k = 0; k < 9; k++)
            if (samples[k] / 1e3 >= b[i].from_us * (1 - 1e-12) &&
                samples[k] / 1e3 < b[i].to_us * (1 - 1e-12))
                inside++;
        CHECK_EQ(b[i].count, inside);
        if (i) CHECK(b[i].from_us == b[i - 1].to_us);
        sum += b[i].count;
    }
    CHECK_EQ(sum, 9);
    CHECK_EQ(perf_histogram(samples, 0, 1, b), 0);
}

static void peak_of_a_steady_run_is_its_rate(void) {
    struct perf_mark marks[101];

    for (uint64_t i = 0; i <= 100; i++)
        marks[i] = (struct perf_mark){ .ns = i * 1000, .posted = i, .done = i };
    CHECK(fabs(perf_peak_rate(marks, 101) - 1e6) < 1);
    CHECK(perf_peak_rate(marks, 1) == 0);
}

static void peak_finds_the_fast_part(void) {
    struct perf_mark marks[101];
    uint64_t ns = 0;

    for (uint64_t i = 0; i <= 100; i++) {
        marks[i] = (struct perf_mark){ .ns = ns, .posted = i, .done = i };
        ns += i >= 40 && i < 60 ? 500 : 1000;
    }
    CHECK(fabs(perf_peak_rate(marks, 101) - 2e6) < 1);
}

/* A hundred results at once after a long pause are not a hundred in no time. */
static void late_results_are_not_speed(void) {
    const struct perf_mark marks[] = { { 0, 100, 0 }, { 1000000, 100, 1 }, { 1000001, 100, 100 } };

    CHECK(perf_peak_rate(marks, 3) <= 0);
}

static void thinned_marks_keep_their_order(void) {
    struct perf_mark marks[5] = { { 1, 1, 1 }, { 2, 2, 2 }, { 3, 3, 3 }, { 4, 4, 4 }, { 5, 5, 5 } };

    CHECK_EQ(perf_thin_marks(marks, 5), 3);
    CHECK(marks[0].ns == 1 && marks[1].ns == 3 && marks[2].ns == 5);
}

/* ---- output ---- */

static char *printed(void (*print)(FILE *)) {
    static char text[16384];
    FILE *f = tmpfile();
    size_t n;

    CHECK(f);
    print(f);
    rewind(f);
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}

static struct perf_heading heading;
static struct perf_row rows[2];

static void set_up_rows(enum perf_kind kind) {
    heading = (struct perf_heading){ .params = plain(PERF_SEND, kind), .transport = "iwarp" };
    rows[0] = (struct perf_row){ .bytes = 64,
                                 .iterations = 10,
                                 .times = { 10, 2.5, 1, 9, 3, 0.5, 8, 9 },
                                 .bytes_per_s = 1048576,
                                 .peak_bytes_per_s = 2097152,
                                 .messages_per_s = 16384,
                                 .cpu_percent = 50,
                                 .peer_cpu_percent = -1 };
    rows[1] = rows[0];
    rows[1].bytes = 1024;
    rows[1].times.median = 5;
}

static void print_table(FILE *f) {
    perf_print_heading(f, &heading);
    perf_print_row(f, &heading, &rows[0]);
}

static void print_csv(FILE *f) {
    perf_print_csv_heading(f);
    perf_print_csv_row(f, &heading, &rows[0]);
}

static void print_svg(FILE *f) {
    perf_print_svg(f, &heading, rows, 2);
}

static void latency_row_has_the_median_first(void) {
    set_up_rows(PERF_LATENCY);
    char *text = printed(print_table), *row = strrchr(text, '\n');
    double median, min;
    unsigned long long bytes, n;

    *row = 0;
    row = strrchr(text, '\n') + 1;
    CHECK_EQ(sscanf(row, "%llu %llu %lf %lf", &bytes, &n, &median, &min), 4);
    CHECK(bytes == 64 && n == 10 && median == 2.5 && min == 1);
    CHECK(row[strlen(row) - 1] == '-'); /* the peer's CPU is not known */
}

static void bandwidth_row_is_in_the_unit_asked_for(void) {
    double peak, average;

    set_up_rows(PERF_BANDWIDTH);
    char *text = printed(print_table);
    CHECK(strstr(text, "BW_average[MiB/s]"));
    CHECK_EQ(sscanf(strstr(text, "\n64"), "%*u %*u %lf %lf", &peak, &average), 2);
    CHECK(peak == 2 && average == 1);
    heading.gigabits = true;
    rows[0].bytes_per_s = 1e9;
    text = printed(print_table);
    CHECK(strstr(text, "BW_average[Gb/s]"));
    CHECK_EQ(sscanf(strstr(text, "\n64"), "%*u %*u %*f %lf", &average), 1);
    CHECK(average == 8);
}

static void csv_row_has_a_field_for_every_column(void) {
    set_up_rows(PERF_LATENCY);
    char *text = printed(print_csv), *second = strchr(text, '\n') + 1;
    int in_heading = 0, in_row = 0;

    for (char *p = text; p < second; p++)
        in_heading += *p == ',';
    for (char *p = second; *p; p++)
        in_row += *p == ',';
    CHECK(in_heading > 10);
    CHECK_EQ(in_row, in_heading);
    CHECK(strstr(second, "send_lat,iwarp,,64,10,2.5,1,9,3,0.5,8,9,"));
}

static void csv_field_of_what_is_not_known_is_empty(void) {
    set_up_rows(PERF_BANDWIDTH);
    rows[0].times = (struct perf_summary){ 0 };
    rows[0].peak_bytes_per_s = -1;
    char *text = printed(print_csv);
    CHECK(strstr(text, "send_bw,iwarp,,64,10,,,,,,,,,1048576,16384,0,50,,0,0\n"));
}

static void picture_has_both_lines_through_all_rows(void) {
    int points = 0;

    set_up_rows(PERF_LATENCY);
    char *text = printed(print_svg);
    CHECK(!strncmp(text, "<svg xmlns=", 11));
    CHECK(strstr(text, "</svg>\n"));
    for (char *p = text; (p = strstr(p, "<circle")) != NULL; p++)
        points++;
    CHECK_EQ(points, 4);
    CHECK(!strstr(text, "nan") && !strstr(text, "inf"));
}

static void picture_of_one_point_is_still_one(void) {
    set_up_rows(PERF_LATENCY);
    rows[1] = rows[0];
    char *text = printed(print_svg);
    CHECK(!strstr(text, "nan") && !strstr(text, "inf"));
    CHECK(strstr(text, "<circle"));
}

TEST_MAIN(TEST(greeting_comes_back), TEST(greeting_cut_or_foreign_is_refused),
          TEST(message_has_its_bytes_in_network_order), TEST(message_cut_or_foreign_is_refused),
          TEST(parameters_survive_the_message), TEST(parameters_beyond_limits_are_refused),
          TEST(combinations_that_make_no_sense_are_refused),
          TEST(test_names_and_tests_belong_together), TEST(areas_do_not_overlap),
          TEST(warm_messages_share_a_place_and_cold_ones_cycle), TEST(credits_fit_their_receives),
          TEST(percentiles_are_nearest_ranks), TEST(one_way_is_half_the_round_trip),
          TEST(no_samples_are_all_zero), TEST(histogram_has_every_sample_once),
          TEST(peak_of_a_steady_run_is_its_rate), TEST(peak_finds_the_fast_part),
          TEST(late_results_are_not_speed), TEST(thinned_marks_keep_their_order),
          TEST(latency_row_has_the_median_first), TEST(bandwidth_row_is_in_the_unit_asked_for),
          TEST(csv_row_has_a_field_for_every_column), TEST(csv_field_of_what_is_not_known_is_empty),
          TEST(picture_has_both_lines_through_all_rows), TEST(picture_of_one_point_is_still_one))
