/* SPDX-License-Identifier: MIT
 * wskndk.h - the way to an NDK adapter through Winsock Kernel.
 * Owns:    WSK_PROVIDER_NDK_DISPATCH and the control code that asks for it.
 * Threads: PASSIVE_LEVEL.   Errors: see each function.
 *
 * Includes nothing: wsk.h and ndkpi.h come first.
 */
#ifndef SOFTND_WSKNDK_H
#define SOFTND_WSKNDK_H

#ifdef __cplusplus
extern "C" {
#endif

/* WskControlClient with this code gives a WSK_PROVIDER_NDK_DISPATCH; the output buffer must have
 * exactly its size, else STATUS_INVALID_PARAMETER. The characters 'NDKD'. */
#define WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH ((ULONG)0x4E444B44)

/* Opens the adapter of a network interface. NdkVersion: the major, and the lowest minor that
 * will do. STATUS_SUCCESS; NDIS_STATUS_BAD_VERSION; NDIS_STATUS_ADAPTER_NOT_READY (disabled);
 * STATUS_NOT_FOUND (no such interface); STATUS_INSUFFICIENT_RESOURCES. */
typedef NTSTATUS(WSKAPI *PFN_WSK_NDK_OPEN_ADAPTER)(PWSK_CLIENT Client, NDK_VERSION NdkVersion,
                                                   NET_IFINDEX IfIndex, NDK_ADAPTER **ppNdkAdapter);
/* Waits until no callback of any object of the adapter runs; never from such a callback. */
typedef VOID(WSKAPI *PFN_WSK_NDK_CLOSE_ADAPTER)(PWSK_CLIENT Client, NDK_ADAPTER *pNdkAdapter);

typedef struct _WSK_PROVIDER_NDK_DISPATCH {
    PFN_WSK_NDK_OPEN_ADAPTER WskOpenNdkAdapter;
    PFN_WSK_NDK_CLOSE_ADAPTER WskCloseNdkAdapter;
} WSK_PROVIDER_NDK_DISPATCH, *PWSK_PROVIDER_NDK_DISPATCH;

#ifdef __cplusplus
}
#endif

#endif
