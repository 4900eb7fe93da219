/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "support/portable.h"
#include "support/testing.h"

static char path[512];

/* The environment is read once, so this comes before the first message. */
static void set_up(void) {
    static bool done;
    if (done) return;
    done = true;
    CHECK(test_temp_name(path, sizeof path, "log-test"));
    FILE *f = fopen(path, "w"); /* who reads it before the first message finds it empty */
    CHECK(f != NULL);
    fclose(f);
    test_setenv("SOFTND_LOG", "info");
    test_setenv("SOFTND_LOG_FILE", path);
}

static size_t read_back(char *buf, size_t size) {
    FILE *f = fopen(path, "r");
    CHECK(f != NULL);
    size_t n = fread(buf, 1, size - 1, f);
    fclose(f);
    buf[n] = 0;
    return n;
}

static int argument_evaluated;
static int evaluate(void) {
    argument_evaluated++;
    return 7;
}

static void level_below_the_wanted_is_not_written_nor_evaluated(void) {
    set_up();
    char text[4000];
    CHECK_EQ(sn_log_enabled(SN_LOG_DEBUG), 0);
    CHECK(sn_log_enabled(SN_LOG_INFO) && sn_log_enabled(SN_LOG_ERROR));
    SN_LOG(SN_LOG_DEBUG, "hidden %d", evaluate());
    CHECK_EQ(argument_evaluated, 0);
    read_back(text, sizeof text);
    CHECK(strstr(text, "hidden") == NULL);
}

static void message_is_one_line_with_its_level(void) {
    set_up();
    char text[4000];
    SN_LOG(SN_LOG_WARN, "port %d of %s", evaluate(), "lo");
    read_back(text, sizeof text);
    CHECK(strstr(text, "softnd warning: port 7 of lo\n") != NULL);
}

static void message_too_long_is_cut_and_ends_the_line(void) {
    set_up();
    static char text[8000], big[3000];
    memset(big, 'a', sizeof big - 1);
    SN_LOG(SN_LOG_ERROR, "%s", big);
    SN_LOG(SN_LOG_ERROR, "next");
    size_t n = read_back(text, sizeof text);
    CHECK(n < 3000);
    CHECK(strstr(text, "aaa\nsoftnd error: next\n") != NULL);
    remove(path);
}

TEST_MAIN(TEST(level_below_the_wanted_is_not_written_nor_evaluated),
          TEST(message_is_one_line_with_its_level), TEST(message_too_long_is_cut_and_ends_the_line))
