/* SPDX-License-Identifier: MIT
 * wsk.h - Winsock Kernel as far as it leads to an NDK adapter: registration, the provider's
 * table, and WskControlClient.
 * Owns:    the WSK_* types and the four routines of the registrar.
 * Threads: PASSIVE_LEVEL.   Errors: sockets and name resolution answer STATUS_NOT_SUPPORTED.
 */
#ifndef SOFTND_KM_WSK_H
#define SOFTND_KM_WSK_H

#include "softnd_km.h"

#define WSKAPI NTAPI
#define WSK_NO_WAIT 0
#define WSK_INFINITE_WAIT 0xffffffff
#define MAKE_WSK_VERSION(Mj, Mn) ((USHORT)((Mj) << 8) | (USHORT)((Mn)&0xff))
#define WSK_MAJOR_VERSION(V) ((UCHAR)((V) >> 8))
#define WSK_MINOR_VERSION(V) ((UCHAR)(V))

#ifdef __cplusplus
extern "C" {
#endif

typedef PVOID PWSK_CLIENT;
typedef struct _WSK_SOCKET *PWSK_SOCKET;

typedef NTSTATUS(WSKAPI *PFN_WSK_CLIENT_EVENT)(PVOID ClientContext, ULONG EventType,
                                               PVOID Information, SIZE_T InformationLength);
typedef struct _WSK_CLIENT_DISPATCH {
    USHORT Version;
    USHORT Reserved;
    PFN_WSK_CLIENT_EVENT WskClientEvent;
} WSK_CLIENT_DISPATCH, *PWSK_CLIENT_DISPATCH;
typedef struct _WSK_CLIENT_NPI {
    PVOID ClientContext;
    CONST WSK_CLIENT_DISPATCH *Dispatch;
} WSK_CLIENT_NPI, *PWSK_CLIENT_NPI;

typedef NTSTATUS(WSKAPI *PFN_WSK_CONTROL_CLIENT)(PWSK_CLIENT Client, ULONG ControlCode,
                                                 SIZE_T InputSize, PVOID InputBuffer,
                                                 SIZE_T OutputSize, PVOID OutputBuffer,
                                                 SIZE_T *OutputSizeReturned, PIRP Irp);
/* These exist so that the table has its layout; all answer STATUS_NOT_SUPPORTED. */
typedef NTSTATUS(WSKAPI *SOFTND_WSK_UNSUPPORTED)(PWSK_CLIENT Client);
typedef struct _WSK_PROVIDER_DISPATCH {
    USHORT Version;
    USHORT Reserved;
    SOFTND_WSK_UNSUPPORTED WskSocket;
    SOFTND_WSK_UNSUPPORTED WskSocketConnect;
    PFN_WSK_CONTROL_CLIENT WskControlClient;
    SOFTND_WSK_UNSUPPORTED WskGetAddressInfo;
    SOFTND_WSK_UNSUPPORTED WskFreeAddressInfo;
    SOFTND_WSK_UNSUPPORTED WskGetNameInfo;
} WSK_PROVIDER_DISPATCH, *PWSK_PROVIDER_DISPATCH;
typedef struct _WSK_PROVIDER_NPI {
    PWSK_CLIENT Client;
    CONST WSK_PROVIDER_DISPATCH *Dispatch;
} WSK_PROVIDER_NPI, *PWSK_PROVIDER_NPI;

/* The registrar's while registered. */
typedef struct _WSK_REGISTRATION {
    ULONGLONG ReservedRegistrationState;
    PVOID ReservedRegistrationContext;
    KSPIN_LOCK ReservedRegistrationLock;
} WSK_REGISTRATION, *PWSK_REGISTRATION;

/* STATUS_SUCCESS; STATUS_NOT_SUPPORTED: not version 1.0. */
SOFTND_API NTSTATUS WskRegister(PWSK_CLIENT_NPI WskClientNpi, PWSK_REGISTRATION WskRegistration);
/* Each success is paid back with WskReleaseProviderNPI. WaitTimeout in milliseconds. */
SOFTND_API NTSTATUS WskCaptureProviderNPI(PWSK_REGISTRATION WskRegistration, ULONG WaitTimeout,
                                          PWSK_PROVIDER_NPI WskProviderNpi);
/* Waits until the client's adapters are closed. */
SOFTND_API VOID WskReleaseProviderNPI(PWSK_REGISTRATION WskRegistration);
SOFTND_API NTSTATUS WskQueryProviderCharacteristics(PWSK_REGISTRATION WskRegistration,
                                                    PVOID WskProviderCharacteristics);
/* Waits until every captured provider was released. */
SOFTND_API VOID WskDeregister(PWSK_REGISTRATION WskRegistration);

#ifdef __cplusplus
}
#endif

#endif
