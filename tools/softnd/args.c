/* SPDX-License-Identifier: MIT
 * args.c - see args.h.
 */
#include "args.h"

#include <string.h>

void args_init(struct args *a, int argc, char **argv, const struct args_option *options,
               size_t count) {
    *a = (struct args){
        .argc = argc, .argv = argv, .options = options, .option_count = count, .at = 1
    };
}

static int find_long(const struct args *a, const char *name, size_t len) {
    for (size_t i = 0; i < a->option_count; i++)
        if (strlen(a->options[i].long_name) == len && !memcmp(a->options[i].long_name, name, len))
            return (int)i;
    return ARGS_ERROR;
}

static int find_short(const struct args *a, char name) {
    for (size_t i = 0; i < a->option_count; i++)
        if (a->options[i].short_name == name) return (int)i;
    return ARGS_ERROR;
}

/* attached: the value that came with the option, or NULL. */
static int take_value(struct args *a, int option, const char *attached) {
    const struct args_option *o = &a->options[option];

    a->value = NULL;
    if (!o->value) {
        if (!attached) return option;
        snprintf(a->error, sizeof a->error, "option --%s takes no value", o->long_name);
        return ARGS_ERROR;
    }
    if (attached) {
        a->value = attached;
    } else if (a->at < a->argc) {
        a->value = a->argv[a->at++];
    } else {
        snprintf(a->error, sizeof a->error, "option --%s needs a value (%s)", o->long_name,
                 o->value);
        return ARGS_ERROR;
    }
    return option;
}

int args_next(struct args *a) {
    const char *arg, *eq;
    int option;

    if (a->at >= a->argc) return ARGS_END;
    arg = a->argv[a->at++];
    if (!a->only_operands && !strcmp(arg, "--")) {
        a->only_operands = true;
        return args_next(a);
    }
    if (a->only_operands || arg[0] != '-' || !arg[1]) {
        a->value = arg;
        return ARGS_OPERAND;
    }
    if (arg[1] == '-') {
        eq = strchr(arg, '=');
        option = find_long(a, arg + 2, eq ? (size_t)(eq - arg - 2) : strlen(arg + 2));
        if (option >= 0) return take_value(a, option, eq ? eq + 1 : NULL);
    } else {
        option = find_short(a, arg[1]);
        if (option >= 0) return take_value(a, option, arg[2] ? arg + 2 : NULL);
    }
    snprintf(a->error, sizeof a->error, "unknown option %.100s", arg);
    return ARGS_ERROR;
}

void args_print_help(const struct args_option *options, size_t count, FILE *to) {
    for (size_t i = 0; i < count; i++) {
        const struct args_option *o = &options[i];
        char left[64];
        int n = snprintf(left, sizeof left, "  %c%c%s--%s", o->short_name ? '-' : ' ',
                         o->short_name ? o->short_name : ' ', o->short_name ? ", " : "  ",
                         o->long_name);
        if (o->value && n > 0 && (size_t)n < sizeof left)
            snprintf(left + n, sizeof left - (size_t)n, " %s", o->value);
        fprintf(to, "%-30s %s\n", left, o->help);
    }
}
