/* SPDX-License-Identifier: MIT
 * ndsupport.h - the helper functions that NetworkDirect programs use to find and open adapters of
 * whatever providers are installed. Link the ndutil library.
 * Owns:    one process-wide, counted state: the providers of the catalog and their addresses.
 * Threads: every function from any thread. Calls take turns: each may load a provider's library
 *          and run it, read the catalog, and so block for as long as that takes.
 * Errors:  as said at each call. All but NdStartup and NdFlushProviders return
 *          ND_DEVICE_NOT_READY before NdStartup.
 *
 * An address is a struct sockaddr_in or sockaddr_in6 with its size in bytes. What all calls check
 * of one: ND_INVALID_PARAMETER_1 (it is NULL), ND_INVALID_PARAMETER_2 (the size is too small for
 * the family, or above 2^32 - 1), ND_INVALID_ADDRESS (another family). NdOpenAdapter answers with
 * the same numbers. Ports, flow labels and scopes are not compared.
 */
#ifndef NDSUPPORT_H
#define NDSUPPORT_H

#include "ndspi.h"

/* clang-format off */

/* flags of NdQueryAddressList; the first is accepted and has no effect */
#define ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES 0x00000001
#define ND_QUERY_EXCLUDE_NDv1_ADDRESSES     0x00000002
#define ND_QUERY_EXCLUDE_NDv2_ADDRESSES     0x00000004

/* clang-format on */

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the helper, or counts one more user. Loads no provider yet.
 * S_OK; ND_NO_MEMORY; HRESULT_FROM_WIN32(...) of a system call that failed. */
HRESULT STDMETHODCALLTYPE NdStartup(VOID);

/* One user less; the last one frees the address lists and unloads all provider libraries, so
 * release all objects before. S_OK; ND_DEVICE_NOT_READY (not started). */
HRESULT STDMETHODCALLTYPE NdCleanup(VOID);

/* Unloads the provider libraries that say they are not in use. Does nothing if not started. */
VOID STDMETHODCALLTYPE NdFlushProviders(VOID);

/* All local NetworkDirect addresses, read anew if addresses or catalog changed. *pcbAddressList:
 * in, bytes of room at pAddressList; on ND_BUFFER_OVERFLOW (too small or NULL), bytes needed; on
 * ND_SUCCESS unchanged, except that it is 0, and nothing is written, when there is no address.
 * Each lpSockaddr points into the buffer. flags: ND_QUERY_*.
 * ND_SUCCESS; ND_BUFFER_OVERFLOW; ND_INVALID_PARAMETER_3 (NULL); ND_NO_MEMORY. */
HRESULT STDMETHODCALLTYPE NdQueryAddressList(DWORD flags, SOCKET_ADDRESS_LIST *pAddressList,
                                             SIZE_T *pcbAddressList);

/* The local NetworkDirect address from which the system routes to a remote one. *pcbLocalAddress:
 * in, bytes of room; out, bytes used or, on ND_BUFFER_OVERFLOW, needed.
 * ND_SUCCESS; ND_BUFFER_OVERFLOW; ND_INVALID_PARAMETER_1, _2 (the address), _4
 * (pcbLocalAddress is NULL); ND_INVALID_ADDRESS (bad family, or the route's address is not a
 * NetworkDirect one); ND_NETWORK_UNREACHABLE; ND_UNSUCCESSFUL. */
HRESULT STDMETHODCALLTYPE NdResolveAddress(const struct sockaddr *pRemoteAddress,
                                           SIZE_T cbRemoteAddress, struct sockaddr *pLocalAddress,
                                           SIZE_T *pcbLocalAddress);

/* Whether this is a local NetworkDirect address. ND_SUCCESS: yes; ND_INVALID_ADDRESS: no;
 * ND_INVALID_PARAMETER_1, _2 (the address). */
HRESULT STDMETHODCALLTYPE NdCheckAddress(const struct sockaddr *pAddress, SIZE_T cbAddress);

/* Opens the adapter with this local address; iid is IID_IND2Adapter, or another that its provider
 * knows. If several providers have the address, the first that succeeds. The caller owns
 * *ppIAdapter, and releases it before the last NdCleanup.
 * ND_SUCCESS; ND_INVALID_ADDRESS (no provider has it); ND_INVALID_PARAMETER_1, _2 (the address);
 * E_POINTER;
 * or what the last provider tried returned. */
HRESULT STDMETHODCALLTYPE NdOpenAdapter(REFIID iid, const struct sockaddr *pAddress,
                                        SIZE_T cbAddress, VOID **ppIAdapter);

#ifdef __cplusplus
}
#endif

#endif
