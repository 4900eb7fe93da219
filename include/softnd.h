/* SPDX-License-Identifier: MIT
 * softnd.h - what SoftND adds to the NetworkDirect SPI: its provider GUID, its entry points, the
 * statuses that have no ND name, and its limits.
 * Owns:    the names above.   Threads: every function from any thread.
 * Errors:  as said at each call.
 *
 * Limits of a SoftND adapter (IND2Adapter::Query is the authority; a program should ask it).
 * Memory is committed as it is used, so large numbers cost nothing by themselves.
 *   completion queue    131072 entries
 *   queue pair          8192 Receives and 8192 other requests; 16 SGEs for each kind of request
 *   shared receives     8192 per queue
 *   request             1 GiB of data; 512 bytes inline
 *   Reads in progress   128 in either direction
 *   private data        248 bytes with Connect, 248 with Accept and Reject
 *   memory region       2^48 - 1 bytes
 */
#ifndef SOFTND_H
#define SOFTND_H

#include "ndspi.h"

/* clang-format off */

/* The provider's GUID: in the catalog, and as the class for DllGetClassObject. */
DEFINE_GUID(CLSID_SoftNdProvider,
    0x0344F8A6, 0x2003, 0x438B, 0x95, 0x4B, 0x7B, 0x4B, 0xF7, 0x04, 0x19, 0xEC);

/* Statuses that real programs expect and ndstatus.h has no name for. */
#define SOFTND_DATA_ERROR                 ((HRESULT)0xC000003E) /* CQE of a Send: it did not fit
                                                                   the peer's Receive */
#define SOFTND_BAD_NETWORK_NAME           ((HRESULT)0xC00000CC) /* Connect: nobody can be there */
#define SOFTND_CONNECTION_DISCONNECTED    ((HRESULT)0xC000020C)
#define SOFTND_ADDRESS_ALREADY_ASSOCIATED ((HRESULT)0xC0000238) /* Bind: bound already */

/* clang-format on */

#ifdef __cplusplus
extern "C" {
#endif

/* The library's way in. rclsid: CLSID_SoftNdProvider. riid: IID_IND2Provider or IID_IUnknown give
 * a new provider object, IID_IClassFactory a class factory whose CreateInstance does. The caller
 * owns *ppv. Does not block.
 * S_OK; CLASS_E_CLASSNOTAVAILABLE (other rclsid); E_NOINTERFACE (other riid); E_OUTOFMEMORY; each
 * of these sets *ppv to NULL. E_POINTER (ppv is NULL). */
STDAPI DllGetClassObject(REFCLSID rclsid, REFIID riid, LPVOID *ppv);

/* S_OK: no object, no lock, no pending request and no thread of SoftND is left, so the library may
 * be unloaded. S_FALSE: not so. */
STDAPI DllCanUnloadNow(void);

/* The version, "major.minor.patch". Static; not to be freed. */
STDAPI_(const char *) SoftNdVersion(void);

/* The transport of a queue pair: "iwarp", "local" (same host), or "none" (never connected). For an
 * adapter those that its connections may use, in the order in which they are tried, with spaces in
 * between. Zero-terminated. *pcbBuffer: in, bytes of room; out, bytes used or needed with the
 * terminator. Does not block.
 * ND_SUCCESS; ND_BUFFER_OVERFLOW (too small or NULL; nothing written); ND_INVALID_PARAMETER_1
 * (neither a SoftND queue pair nor adapter), _3 (pcbBuffer is NULL). */
STDAPI SoftNdQueryTransport(IUnknown *object, char *buffer, ULONG *pcbBuffer);

/* What an adapter, a queue pair or a completion queue has counted since it was made: zero-
 * terminated text, a line for each counter with its name, value, unit and what it means, separated
 * by spaces (the last one has spaces itself):
 *     posted 1000 requests initiator requests posted
 * Names stay, new ones are added. Values need not be from one moment. *pcbBuffer and statuses as
 * above; 6 KiB are enough for any object. Does not block. */
STDAPI SoftNdQueryCounters(IUnknown *object, char *buffer, ULONG *pcbBuffer);

#ifdef __cplusplus
}
#endif

#endif
