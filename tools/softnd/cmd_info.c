/* SPDX-License-Identifier: MIT
 * cmd_info.c - `softnd info`: each provider is loaded and asked, adapter by adapter. A provider
 * that cannot be loaded is shown with the reason, and makes the exit code 1.
 */
#include <initguid.h>

#include "cmd.h"

#include <stdlib.h>
#include <string.h>
#include "catalog.h"
#include "nd_client.h"
#include "provider.h"
#include "softnd.h"
#include "sys.h"
#include "text.h"

enum { OPT_JSON, OPT_HELP };

static const struct args_option options[] = {
    [OPT_JSON] = { 'j', "json", NULL, "as JSON" },
    [OPT_HELP] = { 'h', "help", NULL, "this text" },
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

/* ---- one list of fields and one of flags, for both forms ---- */

static const struct field {
    const char *name;
    size_t offset, bytes;
} fields[] = {
#define FIELD(f)                                                                                   \
    { #f, offsetof(ND2_ADAPTER_INFO, f), sizeof(((ND2_ADAPTER_INFO *)0)->f) }
    FIELD(VendorId),
    FIELD(DeviceId),
    FIELD(MaxRegistrationSize),
    FIELD(MaxWindowSize),
    FIELD(MaxInitiatorSge),
    FIELD(MaxReceiveSge),
    FIELD(MaxReadSge),
    FIELD(MaxTransferLength),
    FIELD(MaxInlineDataSize),
    FIELD(MaxInboundReadLimit),
    FIELD(MaxOutboundReadLimit),
    FIELD(MaxReceiveQueueDepth),
    FIELD(MaxInitiatorQueueDepth),
    FIELD(MaxSharedReceiveQueueDepth),
    FIELD(MaxCompletionQueueDepth),
    FIELD(InlineRequestThreshold),
    FIELD(LargeRequestThreshold),
    FIELD(MaxCallerData),
    FIELD(MaxCalleeData),
#undef FIELD
};

static const struct {
    ULONG bit;
    const char *name;
} flags[] = {
    { ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED, "IN_ORDER_DMA_SUPPORTED" },
    { ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED, "CQ_INTERRUPT_MODERATION_SUPPORTED" },
    { ND_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED, "MULTI_ENGINE_SUPPORTED" },
    { ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED, "CQ_RESIZE_SUPPORTED" },
    { ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED, "LOOPBACK_CONNECTIONS_SUPPORTED" },
};

static uint64_t field_value(const ND2_ADAPTER_INFO *info, const struct field *f) {
    const char *at = (const char *)info + f->offset;
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;

    if (f->bytes == sizeof v16) {
        memcpy(&v16, at, sizeof v16);
        return v16;
    }
    if (f->bytes == sizeof v32) {
        memcpy(&v32, at, sizeof v32);
        return v32;
    }
    memcpy(&v64, at, sizeof v64);
    return v64;
}

/* ---- the form of the output ---- */

struct out {
    bool json;
    bool first_provider, first_adapter;
};

/* Names with spaces in between; one by one in JSON. */
static void print_transports(const struct out *o, const char *names) {
    printf(o->json ? ", \"transports\": [" : "    transports: %s\n", names);
    for (const char *p = names, *end; o->json; p = end + 1) {
        end = p + strcspn(p, " ");
        printf("%s\"%.*s\"", p == names ? "" : ", ", (int)(end - p), p);
        if (!*end) break;
    }
    if (o->json) putchar(']');
}

/* transports: NULL if not known. */
static void print_adapter(struct out *o, const ND2_ADAPTER_INFO *info,
                          const SOCKET_ADDRESS_LIST *addrs, const char *transports) {
    size_t count = addrs ? (size_t)addrs->iAddressCount : 0;
    ULONG rest = info->AdapterFlags;
    const char *separator = "";
    char text[TEXT_ADDR_MAX];

    if (o->json)
        printf("%s\n    {\"AdapterId\": \"0x%016llx\", \"addresses\": [",
               o->first_adapter ? "" : ",", (unsigned long long)info->AdapterId);
    else
        printf("  adapter 0x%016llx\n    addresses:", (unsigned long long)info->AdapterId);
    for (size_t i = 0; i < count; i++) {
        text_from_sockaddr(addrs->Address[i].lpSockaddr, text);
        printf(o->json ? "%s\"%s\"" : "%s %s", separator, text);
        separator = o->json ? ", " : "";
    }
    fputs(o->json ? "], \"AdapterFlags\": [" : "\n    AdapterFlags:", stdout);
    separator = "";
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (!(info->AdapterFlags & flags[i].bit)) continue;
        printf(o->json ? "%s\"%s\"" : "%s %s", separator, flags[i].name);
        separator = o->json ? ", " : "";
        rest &= ~flags[i].bit;
    }
    if (rest) printf(o->json ? "%s\"0x%x\"" : "%s 0x%x", separator, (unsigned)rest);
    fputs(o->json ? "]" : "\n", stdout);
    if (transports) print_transports(o, transports);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        printf(o->json ? ", \"%s\": %llu" : "    %s: %llu\n", fields[i].name,
               (unsigned long long)field_value(info, &fields[i]));
    if (o->json) putchar('}');
    o->first_adapter = false;
}

/* ---- asking ---- */

static SOCKET_ADDRESS_LIST *query_adapter(IND2Adapter *adapter) {
    SOCKET_ADDRESS_LIST *list = NULL;
    ULONG cb = 0;
    HRESULT hr;

    while ((hr = IND2Adapter_QueryAddressList(adapter, list, &cb)) == ND_BUFFER_OVERFLOW) {
        free(list);
        list = calloc(1, cb ? cb : sizeof *list);
        if (!list) return NULL;
    }
    if (SUCCEEDED(hr)) return list;
    free(list);
    return NULL;
}

static const char *show_adapter(struct out *o, const struct provider *p, UINT64 id) {
    ND2_ADAPTER_INFO info = { .InfoVersion = ND_VERSION_2 };
    SOCKET_ADDRESS_LIST *addrs;
    IND2Adapter *adapter;
    char transports[64];
    ULONG cb = sizeof info;
    HRESULT hr = IND2Provider_OpenAdapter(p->nd, &IID_IND2Adapter, id, (void **)&adapter);

    if (FAILED(hr)) return ndc_text(hr);
    hr = IND2Adapter_Query(adapter, &info, &cb);
    if (SUCCEEDED(hr)) {
        addrs = query_adapter(adapter);
        print_adapter(o, &info, addrs,
                      nd_transports(p, adapter, transports, sizeof transports) ? transports : NULL);
        free(addrs);
    }
    IND2Adapter_Release(adapter);
    return SUCCEEDED(hr) ? NULL : ndc_text(hr);
}

/* Several addresses lead to one adapter; it is shown once. */
static const char *show_adapters(struct out *o, const struct provider *p) {
    SOCKET_ADDRESS_LIST *list = nd_addresses(p->nd);
    size_t count = list ? (size_t)list->iAddressCount : 0, seen = 0;
    UINT64 *ids = calloc(count ? count : 1, sizeof *ids);
    const char *why = ids && list ? NULL : "its addresses cannot be read";

    for (size_t i = 0; i < count && !why; i++) {
        const SOCKET_ADDRESS *a = &list->Address[i];
        size_t at = 0;
        UINT64 id;
        if (FAILED(
                IND2Provider_ResolveAddress(p->nd, a->lpSockaddr, (ULONG)a->iSockaddrLength, &id)))
            continue; /* it went away meanwhile */
        while (at < seen && ids[at] != id)
            at++;
        if (at < seen) continue;
        ids[seen++] = id;
        why = show_adapter(o, p, id);
    }
    free(ids);
    free(list);
    return why;
}

static const char *show_provider(struct out *o, const GUID *guid, const char *name,
                                 const WCHAR *path, const char *scope) {
    char path_text[4 * CATALOG_PATH_MAX] = "", guid_text[TEXT_GUID_MAX];
    struct provider p;
    const char *why;

    text_from_guid(guid, guid_text);
    text_from_wide(path, path_text, sizeof path_text);
    if (o->json) {
        printf("%s\n  {\"guid\": \"%s\", \"name\": ", o->first_provider ? "" : ",", guid_text);
        text_print_json(stdout, name);
        printf(", \"scope\": \"%s\", \"path\": ", scope);
        text_print_json(stdout, path_text);
        fputs(", \"adapters\": [", stdout);
    } else {
        printf("provider %s %s\n  library: %s (%s)\n", guid_text, name, path_text, scope);
    }
    o->first_provider = false;
    o->first_adapter = true;

    why = nd_load(&p, path, guid);
    if (!why) why = show_adapters(o, &p);
    nd_unload(&p);
    if (o->json) {
        fputs("]", stdout);
        if (why) {
            fputs(", \"error\": ", stdout);
            text_print_json(stdout, why);
        }
        putchar('}');
    }
    if (why) cmd_fail("info", "%s: %s", path_text, why);
    return why;
}

/* What programs that use the helper library would fall back to. */
static bool show_unregistered(struct out *o, const char **why) {
    char path[SYS_PATH_MAX];
    WCHAR wide[CATALOG_PATH_MAX];

    if (!sys_getenv("SOFTND_PROVIDER", path, sizeof path) && !ndc_find_library(path, sizeof path))
        return false;
    if (!text_to_wide(path, wide, CATALOG_PATH_MAX)) return false;
    *why = show_provider(o, &CLSID_SoftNdProvider, "SoftND", wide, "not registered");
    return true;
}

static int show_all(bool json) {
    struct out o = { .json = json, .first_provider = true };
    char name[4 * (WSAPROTOCOL_LEN + 1)];
    const char *why = NULL, *failed;
    enum catalog_scope scope;
    struct catalog c;
    size_t shown = 0;

    failed = catalog_read(&c);
    if (failed) return cmd_fail("info", "%s", failed);
    if (json) fputs("{\"providers\": [", stdout);
    for (size_t i = 0; i < c.count; i++) {
        const struct catalog_entry *e = &c.entries[i];
        if (!e->is_nd) continue;
        text_from_wide(e->info.szProtocol, name, sizeof name);
        why =
            show_provider(&o, &e->info.ProviderId, name, e->path,
                          catalog_scope_of(&e->info.ProviderId, &scope) ? catalog_scope_name(scope)
                                                                        : "registered");
        if (why) failed = why;
        shown++;
    }
    catalog_free(&c);
    if (!shown && show_unregistered(&o, &why)) {
        failed = why;
        shown++;
    }
    if (json) puts("\n]}");
    if (!shown && !json) puts("no NetworkDirect provider; `softnd install` registers SoftND");
    return failed ? EXIT_FAILED : EXIT_DONE;
}

static int print_help(void) {
    puts("Usage: softnd info [--json]\n"
         "\n"
         "Shows every NetworkDirect provider, its adapters, their addresses, limits and flags.\n"
         "Limits have the names of ND2_ADAPTER_INFO; sizes are in bytes. Of SoftND the transports\n"
         "that connections may use, in the order in which they are tried: local within this host,\n"
         "iwarp over TCP.\n");
    args_print_help(options, OPTION_COUNT, stdout);
    puts("\nExit code: 0 everything could be asked, 1 a provider failed, 2 wrong usage.");
    return EXIT_DONE;
}

int cmd_info(int argc, char **argv) {
    bool json = false;
    struct args a;
    int opt;

    args_init(&a, argc, argv, options, OPTION_COUNT);
    while ((opt = args_next(&a)) != ARGS_END) {
        switch (opt) {
        case OPT_JSON:
            json = true;
            break;
        case OPT_HELP:
            return print_help();
        case ARGS_OPERAND:
            return cmd_usage("info", "unexpected argument %s", a.value);
        default:
            return cmd_usage("info", "%s", a.error);
        }
    }
    return show_all(json);
}
