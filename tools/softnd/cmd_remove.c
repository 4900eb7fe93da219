/* SPDX-License-Identifier: MIT
 * cmd_remove.c - `softnd remove`.
 */
#include <initguid.h>

#include "cmd.h"

#include "catalog.h"
#include "softnd.h"
#include "sys.h"
#include "text.h"

enum { OPT_USER, OPT_SYSTEM, OPT_HELP };

static const struct args_option options[] = {
    [OPT_USER] = { 'u', "user", NULL, "only from this user's catalog" },
    [OPT_SYSTEM] = { 's', "system", NULL, "only from the machine's catalog (needs permission)" },
    [OPT_HELP] = { 'h', "help", NULL, "this text" },
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

static int print_help(void) {
    puts(
        "Usage: softnd remove [--user | --system] [GUID]\n"
        "\n"
        "Takes the registration of SoftND back, or of the provider with this GUID. Without --user\n"
        "or --system: the one that is in effect.\n");
    args_print_help(options, OPTION_COUNT, stdout);
    puts("\nExit code: 0 removed, 1 failure (also if it was not registered), 2 wrong usage.");
    return EXIT_DONE;
}

int cmd_remove(int argc, char **argv) {
    enum catalog_scope scope = CATALOG_AUTO, found;
    GUID guid = CLSID_SoftNdProvider;
    char text[TEXT_GUID_MAX];
    struct args a;
    INT error = 0;
    int opt;

    args_init(&a, argc, argv, options, OPTION_COUNT);
    while ((opt = args_next(&a)) != ARGS_END) {
        switch (opt) {
        case OPT_USER:
        case OPT_SYSTEM: {
            enum catalog_scope want = opt == OPT_USER ? CATALOG_USER : CATALOG_SYSTEM;
            if (scope != CATALOG_AUTO && scope != want)
                return cmd_usage("remove", "give either --user or --system");
            scope = want;
            break;
        }
        case OPT_HELP:
            return print_help();
        case ARGS_OPERAND:
            if (!text_parse_guid(a.value, &guid))
                return cmd_usage("remove", "bad GUID %s", a.value);
            break;
        default:
            return cmd_usage("remove", "%s", a.error);
        }
    }
    text_from_guid(&guid, text);
    if (!catalog_scope_of(&guid, &found)) return cmd_fail("remove", "%s is not registered", text);
    if (!catalog_set_scope(scope))
        return cmd_fail("remove", "this system has no %s catalog", catalog_scope_name(scope));
    if (WSCDeinstallProvider(&guid, &error) != 0) {
        if (error == WSAEINVAL || error == WSAEINVALIDPROVIDER)
            return cmd_fail("remove", "%s is registered in the %s catalog, not in the %s one", text,
                            catalog_scope_name(found), catalog_scope_name(scope));
        if (error == WSAEACCES)
            return cmd_fail("remove",
                            "%s: permission denied for the %s catalog; "
                            "run this as administrator",
                            text, catalog_scope_name(found));
        return cmd_fail("remove", "%s: %s", text, catalog_text(error));
    }
    printf("removed %s\n", text);
    return EXIT_DONE;
}
