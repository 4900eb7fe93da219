/* SPDX-License-Identifier: MIT
 * args_test.c - command line options.
 */
#include "args.h"

#include "support/testing.h"

static const struct args_option options[] = {
    { 's', "size", "BYTES", "a size" },
    { 'v', "verbose", NULL, "say more" },
    { 0, "long-only", NULL, "no short form" },
};

/* Parses argv[1..] and checks one item after the other: option index, ARGS_OPERAND or ARGS_ERROR,
 * with its value. */
struct item {
    int option;
    const char *value;
};

static void expect(char **argv, const struct item *items, size_t count) {
    struct args a;
    int argc = 0;

    while (argv[argc])
        argc++;
    args_init(&a, argc, argv, options, 3);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(args_next(&a), items[i].option);
        if (items[i].option == ARGS_ERROR)
            CHECK_STR(a.error, items[i].value);
        else if (items[i].value)
            CHECK_STR(a.value, items[i].value);
    }
}
#define EXPECT(argv, ...)                                                                          \
    expect(argv, (struct item[]){ __VA_ARGS__ },                                                   \
           sizeof((struct item[]){ __VA_ARGS__ }) / sizeof(struct item))

static void options_in_all_spellings_are_found(void) {
    char *argv[] = { "x", "--size", "1", "--size=2", "-s", "3", "-s4", "-v", "--long-only", NULL };

    EXPECT(argv, { 0, "1" }, { 0, "2" }, { 0, "3" }, { 0, "4" }, { 1, NULL }, { 2, NULL },
           { ARGS_END, NULL });
}

static void operands_may_be_mixed_with_options(void) {
    char *argv[] = { "x", "host", "-v", "-", "--", "-v", "--size", NULL };

    EXPECT(argv, { ARGS_OPERAND, "host" }, { 1, NULL }, { ARGS_OPERAND, "-" },
           { ARGS_OPERAND, "-v" }, { ARGS_OPERAND, "--size" }, { ARGS_END, NULL });
}

static void nothing_is_the_end(void) {
    char *argv[] = { "x", NULL };
    char *dashes[] = { "x", "--", NULL };

    EXPECT(argv, { ARGS_END, NULL });
    EXPECT(dashes, { ARGS_END, NULL });
}

static void unknown_options_are_named(void) {
    char *one[] = { "x", "--sizes", "1", NULL };
    char *two[] = { "x", "-q", NULL };
    char *part[] = { "x", "--siz=1", NULL };

    EXPECT(one, { ARGS_ERROR, "unknown option --sizes" });
    EXPECT(two, { ARGS_ERROR, "unknown option -q" });
    EXPECT(part, { ARGS_ERROR, "unknown option --siz=1" });
}

static void values_missing_or_too_many_are_errors(void) {
    char *missing[] = { "x", "--size", NULL };
    char *extra[] = { "x", "--verbose=1", NULL };
    char *joined[] = { "x", "-vx", NULL };

    EXPECT(missing, { ARGS_ERROR, "option --size needs a value (BYTES)" });
    EXPECT(extra, { ARGS_ERROR, "option --verbose takes no value" });
    EXPECT(joined, { ARGS_ERROR, "option --verbose takes no value" });
}

static void help_names_every_option(void) {
    char text[1024] = "";
    FILE *f = tmpfile();

    CHECK(f);
    args_print_help(options, 3, f);
    rewind(f);
    CHECK(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    CHECK(strstr(text, "-s, --size BYTES"));
    CHECK(strstr(text, "-v, --verbose "));
    CHECK(strstr(text, "    --long-only"));
    CHECK(strstr(text, "no short form"));
}

TEST_MAIN(TEST(options_in_all_spellings_are_found), TEST(operands_may_be_mixed_with_options),
          TEST(nothing_is_the_end), TEST(unknown_options_are_named),
          TEST(values_missing_or_too_many_are_errors), TEST(help_names_every_option))
