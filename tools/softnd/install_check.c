/* SPDX-License-Identifier: MIT
 * install_check.c - see install_check.h. The first step that fails ends the check.
 */
#include <initguid.h>

#include "install_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "catalog.h"
#include "cmd.h"
#include "nd_client.h"
#include "provider.h"
#include "text.h"

static void passed(const char *step, const char *what) {
    printf("%-9s %s\n", step, what);
}

static int failed(const char *step, const char *what, const char *why) {
    printf("%-9s FAILED\n", step);
    return cmd_fail("install", "%s %s", what, why);
}

/* What clients look at to tell a NetworkDirect provider from others, and the rest of what the SPI
 * asks for. */
static const char *wrong_entry(const WSAPROTOCOL_INFOW *e) {
    WSAPROTOCOL_INFOW want;

    catalog_make_entry(&want, &e->ProviderId, e->szProtocol);
    if (e->dwServiceFlags1 != want.dwServiceFlags1) return "has other service flags";
    if (e->dwProviderFlags != want.dwProviderFlags) return "has other provider flags";
    if (e->ProtocolChain.ChainLen != want.ProtocolChain.ChainLen) return "is no base protocol";
    if (e->iVersion != want.iVersion) return "has another version";
    if (e->iAddressFamily != want.iAddressFamily) return "has another address family";
    if (e->iMaxSockAddr != want.iMaxSockAddr || e->iMinSockAddr != want.iMinSockAddr)
        return "has other sizes of addresses";
    if (e->iSocketType != want.iSocketType || e->iProtocol != want.iProtocol ||
        e->iProtocolMaxOffset != want.iProtocolMaxOffset)
        return "has another socket type or protocol";
    if (e->iNetworkByteOrder != want.iNetworkByteOrder ||
        e->iSecurityScheme != want.iSecurityScheme || e->dwMessageSize != want.dwMessageSize)
        return "has another byte order, security scheme or message size";
    return NULL;
}

/* One adapter, as far as a client goes before it connects. */
static const char *use_adapter(IND2Provider *nd, const SOCKET_ADDRESS *at) {
    ND2_ADAPTER_INFO info = { .InfoVersion = ND_VERSION_2 };
    IND2Adapter *adapter = NULL;
    HANDLE file = NULL;
    ULONG cb = sizeof info;
    UINT64 id;
    HRESULT hr = IND2Provider_ResolveAddress(nd, at->lpSockaddr, (ULONG)at->iSockaddrLength, &id);

    if (SUCCEEDED(hr)) hr = IND2Provider_OpenAdapter(nd, &IID_IND2Adapter, id, (void **)&adapter);
    if (FAILED(hr)) return ndc_text(hr);
    hr = IND2Adapter_Query(adapter, &info, &cb);
    if (SUCCEEDED(hr) && info.AdapterId != id) hr = ND_INTERNAL_ERROR;
    if (SUCCEEDED(hr)) hr = IND2Adapter_CreateOverlappedFile(adapter, &file);
    if (SUCCEEDED(hr)) CloseHandle(file);
    IND2Adapter_Release(adapter);
    return SUCCEEDED(hr) ? NULL : ndc_text(hr);
}

static int use_provider(IND2Provider *nd, const char *path) {
    SOCKET_ADDRESS_LIST *list = nd_addresses(nd);
    int code = EXIT_DONE;

    if (!list) return failed("adapters", path, "does not tell its addresses");
    if (list->iAddressCount == 0) passed("adapters", "none: this machine has no address");
    for (INT i = 0; i < list->iAddressCount && code == EXIT_DONE; i++) {
        char text[TEXT_ADDR_MAX];
        const char *why = use_adapter(nd, &list->Address[i]);
        text_from_sockaddr(list->Address[i].lpSockaddr, text);
        if (why)
            code = failed("adapter", text, why);
        else
            passed("adapter", text);
    }
    free(list);
    return code;
}

static const char *still_in_use(struct provider *p) {
    HRESULT(STDMETHODCALLTYPE * can_unload)(void);

    IND2Provider_Release(p->nd);
    p->nd = NULL;
    memcpy(&can_unload, &p->can_unload, sizeof can_unload);
    return can_unload() == S_OK ? NULL : "is still in use after everything was released";
}

static int use_library(const WCHAR *wide, const GUID *guid) {
    char path[4 * CATALOG_PATH_MAX];
    struct provider p;
    int code;

    text_from_wide(wide, path, sizeof path);
    const char *why = nd_load(&p, wide, guid);
    if (why) {
        code = failed("library", path, why);
    } else {
        passed("library", path);
        code = use_provider(p.nd, path);
        why = code == EXIT_DONE ? still_in_use(&p) : NULL;
        if (why)
            code = failed("unload", path, why);
        else if (code == EXIT_DONE)
            passed("unload", "the library can be unloaded");
    }
    nd_unload(&p);
    return code;
}

int install_check(const GUID *guid) {
    char guid_text[TEXT_GUID_MAX];
    const struct catalog_entry *e = NULL;
    struct catalog c;
    int code;

    text_from_guid(guid, guid_text);
    const char *why = catalog_read(&c);
    if (why) return cmd_fail("install", "%s", why);
    for (size_t i = 0; i < c.count && !e; i++)
        if (IsEqualGUID(&c.entries[i].info.ProviderId, guid)) e = &c.entries[i];
    if (!e)
        code = failed("entry", guid_text, "is not registered");
    else if ((why = wrong_entry(&e->info)) != NULL)
        code = failed("entry", guid_text, why);
    else if (!e->path[0])
        code = failed("entry", guid_text, "has no library in the catalog");
    else {
        passed("entry", guid_text);
        code = use_library(e->path, guid);
    }
    catalog_free(&c);
    return code;
}
