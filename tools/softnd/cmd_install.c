/* SPDX-License-Identifier: MIT
 * cmd_install.c - `softnd install`: writes the one catalog entry that the SPI asks for, after
 * making sure that the library is a provider of that name.
 */
#include <initguid.h>

#include "cmd.h"

#include <string.h>
#include "catalog.h"
#include "install_check.h"
#include "nd_client.h"
#include "provider.h"
#include "softnd.h"
#include "sys.h"
#include "text.h"

#define PROTOCOL_NAME "SoftND NetworkDirect (iWARP over TCP, no hardware)"

enum { OPT_USER, OPT_SYSTEM, OPT_PROVIDER, OPT_GUID, OPT_NAME, OPT_CHECK, OPT_HELP };

static const struct args_option options[] = {
    [OPT_USER] = { 'u', "user", NULL, "for this user" },
    [OPT_SYSTEM] = { 's', "system", NULL, "for all users (needs permission)" },
    [OPT_PROVIDER] = { 'p', "provider", "PATH", "another library than the one of this program" },
    [OPT_GUID] = { 'g', "guid", "GUID", "the provider's GUID, if it is not SoftND" },
    [OPT_NAME] = { 'n', "name", "TEXT", "the name shown in lists" },
    [OPT_CHECK] = { 'c', "check", NULL,
                    "change nothing: see whether programs can use what is there" },
    [OPT_HELP] = { 'h', "help", NULL, "this text" },
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

static int print_help(void) {
    puts("Usage: softnd install [--user | --system] [--provider PATH]\n"
         "\n"
         "Registers the provider, so that NetworkDirect programs find it. Without --user or\n"
         "--system: for all users if this is permitted, else for this user. The environment\n"
         "variable SOFTND_CATALOG names a private catalog directory instead of both.\n"
         "\n"
         "With --check nothing is registered. What is there is used the way a program uses it:\n"
         "the catalog entry, the library, each address and its adapter; a line for each step.\n");
    args_print_help(options, OPTION_COUNT, stdout);
    puts("\nExit code: 0 registered (or usable), 1 failure (also if it was registered already),\n"
         "2 wrong usage.");
    return EXIT_DONE;
}

/* NULL, or why programs could not use this library under this GUID. */
static const char *check_library(const WCHAR *path, const GUID *guid) {
    struct provider p;
    const char *why = nd_load(&p, path, guid);

    nd_unload(&p);
    return why;
}

static bool is_installed(const GUID *guid, char *path, size_t room) {
    struct catalog c;
    bool found = false;

    if (catalog_read(&c) != NULL) return false;
    for (size_t i = 0; i < c.count && !found; i++)
        if (IsEqualGUID(&c.entries[i].info.ProviderId, guid)) {
            text_from_wide(c.entries[i].path, path, room);
            found = true;
        }
    catalog_free(&c);
    return found;
}

/* The same library again changes nothing and is no error; another one is refused. */
static int already(const char *there, const char *wanted) {
    if (strcmp(there, wanted) != 0)
        return cmd_fail("install", "already registered: %s (`softnd remove` takes it back)", there);
    printf("already registered: %s\n", there);
    return EXIT_DONE;
}

static int install(const char *library, GUID guid, const char *name, enum catalog_scope scope) {
    char full[SYS_PATH_MAX], other[SYS_PATH_MAX], place[SYS_PATH_MAX] = "?";
    WCHAR wide[CATALOG_PATH_MAX], wide_name[WSAPROTOCOL_LEN + 1];
    enum catalog_scope actual = scope;
    WSAPROTOCOL_INFOW entry;
    const char *why;
    INT error = 0;

    if (library) {
        if (!sys_full_path(library, full)) return cmd_fail("install", "%s: no such file", library);
    } else if (!ndc_find_library(full, sizeof full)) {
        return cmd_fail("install", "no libsoftnd beside this program or in ../lib; "
                                   "say where it is with --provider PATH");
    }
    if (!text_to_wide(full, wide, CATALOG_PATH_MAX))
        return cmd_fail("install", "%s: path longer than the %d characters of a catalog entry",
                        full, CATALOG_PATH_MAX - 1);
    if (!text_to_wide(name, wide_name, WSAPROTOCOL_LEN + 1))
        return cmd_usage("install", "name longer than %d characters", WSAPROTOCOL_LEN);
    why = check_library(wide, &guid);
    if (why) return cmd_fail("install", "%s %s", full, why);
    if (is_installed(&guid, other, sizeof other)) return already(other, full);
    if (!catalog_set_scope(scope))
        return cmd_fail("install", "this system has no %s catalog", catalog_scope_name(scope));
    catalog_where(scope, &actual, place, sizeof place);
    catalog_make_entry(&entry, &guid, wide_name);
    if (WSCInstallProvider(&guid, wide, &entry, 1, &error) != 0) {
        if (is_installed(&guid, other, sizeof other)) return already(other, full);
        return cmd_fail("install", "%s: %s", place, catalog_text(error));
    }
    printf("registered %s in the %s catalog, %s\n", full, catalog_scope_name(actual), place);
    return EXIT_DONE;
}

int cmd_install(int argc, char **argv) {
    enum catalog_scope scope = CATALOG_AUTO;
    const char *library = NULL, *name = PROTOCOL_NAME;
    GUID guid = CLSID_SoftNdProvider;
    bool check = false;
    struct args a;
    int opt;

    args_init(&a, argc, argv, options, OPTION_COUNT);
    while ((opt = args_next(&a)) != ARGS_END) {
        switch (opt) {
        case OPT_USER:
        case OPT_SYSTEM: {
            enum catalog_scope want = opt == OPT_USER ? CATALOG_USER : CATALOG_SYSTEM;
            if (scope != CATALOG_AUTO && scope != want)
                return cmd_usage("install", "give either --user or --system");
            scope = want;
            break;
        }
        case OPT_PROVIDER:
            library = a.value;
            break;
        case OPT_GUID:
            if (!text_parse_guid(a.value, &guid))
                return cmd_usage("install", "bad GUID %s", a.value);
            break;
        case OPT_NAME:
            name = a.value;
            break;
        case OPT_CHECK:
            check = true;
            break;
        case OPT_HELP:
            return print_help();
        case ARGS_OPERAND:
            return cmd_usage("install", "unexpected argument %s", a.value);
        default:
            return cmd_usage("install", "%s", a.error);
        }
    }
    if (check && (library || scope != CATALOG_AUTO))
        return cmd_usage("install", "--check looks at what is registered, wherever that is");
    return check ? install_check(&guid) : install(library, guid, name, scope);
}
