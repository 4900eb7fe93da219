/* SPDX-License-Identifier: MIT
 * fake_provider.h - a NetworkDirect provider library that does what a test tells it, and counts.
 * Owns:    nothing: the test program defines fake_controls, with one control block per library,
 *          and is linked with its symbols exported (ENABLE_EXPORTS).
 * Threads: the test's.   Errors: those that the control block asks for.
 *
 * Library fake_provider_<i> (i = 0 to 2) uses fake_controls[i]. Its adapter is an object with
 * nothing but IUnknown.
 */
#ifndef SN_TESTS_FAKE_PROVIDER_H
#define SN_TESTS_FAKE_PROVIDER_H

#include <stdbool.h>
#include "ndspi.h"

#define FAKE_COUNT 3
#define FAKE_ADDRS_MAX 8

struct fake_control {
    /* what it is and says */
    GUID id;
    SOCKADDR_INET addrs[FAKE_ADDRS_MAX];
    INT addr_bytes[FAKE_ADDRS_MAX];
    int addr_count;
    HRESULT object_status;    /* of DllGetClassObject, if not S_OK */
    HRESULT query_status;     /* of QueryAddressList, if not S_OK */
    HRESULT resolve_status;   /* of ResolveAddress, if not S_OK */
    HRESULT open_status;      /* of OpenAdapter, if not S_OK */
    bool null_query_succeeds; /* QueryAddressList(NULL, 0) says ND_SUCCESS */
    bool asks_for_nothing;    /* it says that 0 bytes are needed */
    int grows;                /* so many times the buffer is one address too small */
    int counts_too_many;      /* if not 0: what the list says, whatever it holds */
    bool in_use;              /* DllCanUnloadNow says S_FALSE, whatever lives */

    /* what happened */
    int loads, unloads, objects, queries, resolves, opens, unload_questions;
    int live; /* provider and adapter objects */
    SOCKADDR_INET resolved;
    ULONG resolved_bytes;
    IID opened_iid;
};

/* A library of Windows cannot refer to what its program defines; it asks for it by name. */
#ifdef _WIN32
#define FAKE_SHARED __declspec(dllexport)
#else
#define FAKE_SHARED __attribute__((visibility("default")))
#endif
extern FAKE_SHARED struct fake_control fake_controls[FAKE_COUNT];

#endif
