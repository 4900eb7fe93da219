/* SPDX-License-Identifier: MIT
 * cmd_list.c - `softnd list`: what the catalog says, without loading anything.
 */
#include "cmd.h"

#include "catalog.h"
#include "sys.h"
#include "text.h"

enum { OPT_ALL, OPT_JSON, OPT_HELP };

static const struct args_option options[] = {
    [OPT_ALL] = { 'a', "all", NULL, "also entries that are not NetworkDirect providers" },
    [OPT_JSON] = { 'j', "json", NULL, "as JSON" },
    [OPT_HELP] = { 'h', "help", NULL, "this text" },
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

static int print_help(void) {
    puts("Usage: softnd list [--all] [--json]\n"
         "\n"
         "Lists the NetworkDirect providers that are registered on this machine.\n");
    args_print_help(options, OPTION_COUNT, stdout);
    puts("\nExit code: 0 the catalog was read (even if it is empty), 1 failure, 2 wrong usage.");
    return EXIT_DONE;
}

struct texts {
    char guid[TEXT_GUID_MAX];
    char name[4 * (WSAPROTOCOL_LEN + 1)];
    char path[4 * CATALOG_PATH_MAX];
    const char *scope;
};

static void get_texts(const struct catalog_entry *e, struct texts *t) {
    enum catalog_scope scope;

    text_from_guid(&e->info.ProviderId, t->guid);
    text_from_wide(e->info.szProtocol, t->name, sizeof t->name);
    text_from_wide(e->path, t->path, sizeof t->path);
    t->scope = catalog_scope_of(&e->info.ProviderId, &scope) ? catalog_scope_name(scope) : "?";
}

static void print_json(const struct catalog *c, bool all) {
    const char *separator = "\n";
    struct texts t;

    fputs("{\"providers\": [", stdout);
    for (size_t i = 0; i < c->count; i++) {
        const struct catalog_entry *e = &c->entries[i];
        if (!all && !e->is_nd) continue;
        get_texts(e, &t);
        printf("%s  {\"guid\": \"%s\", \"name\": ", separator, t.guid);
        text_print_json(stdout, t.name);
        printf(", \"version\": \"%d.%d\", \"networkdirect\": %s, \"scope\": \"%s\", \"path\": ",
               (int)(e->info.iVersion >> 16), (int)(e->info.iVersion & 0xFFFF),
               e->is_nd ? "true" : "false", t.scope);
        text_print_json(stdout, t.path);
        putchar('}');
        separator = ",\n";
    }
    puts("\n]}");
}

static void print_text(const struct catalog *c, bool all) {
    size_t shown = 0;
    struct texts t;

    for (size_t i = 0; i < c->count; i++) {
        const struct catalog_entry *e = &c->entries[i];
        if (!all && !e->is_nd) continue;
        get_texts(e, &t);
        printf("%s  %s  %s  %s\n", t.guid, t.scope, t.name, t.path[0] ? t.path : "(no path)");
        if (e->path[0] && !sys_file_exists(t.path))
            printf("    this library does not exist; `softnd remove %s` takes the entry back\n",
                   t.guid);
        shown++;
    }
    if (!shown) puts("no NetworkDirect provider is registered; `softnd install` registers SoftND");
}

int cmd_list(int argc, char **argv) {
    bool all = false, json = false;
    struct catalog c;
    const char *why;
    struct args a;
    int opt;

    args_init(&a, argc, argv, options, OPTION_COUNT);
    while ((opt = args_next(&a)) != ARGS_END) {
        switch (opt) {
        case OPT_ALL:
            all = true;
            break;
        case OPT_JSON:
            json = true;
            break;
        case OPT_HELP:
            return print_help();
        case ARGS_OPERAND:
            return cmd_usage("list", "unexpected argument %s", a.value);
        default:
            return cmd_usage("list", "%s", a.error);
        }
    }
    why = catalog_read(&c);
    if (why) return cmd_fail("list", "%s", why);
    if (json)
        print_json(&c, all);
    else
        print_text(&c, all);
    catalog_free(&c);
    return EXIT_DONE;
}
