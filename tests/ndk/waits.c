/* SPDX-License-Identifier: MIT
 * waits.c - a consumer that waits without end: "nobody" for what nobody will set, "inline" for a
 * request that ended with its call, "unload" in DriverUnload for a thread that waits for nobody;
 * and, as it should be, "helped" for an event that another thread sets late.
 */
#include <ntddk.h>
#include <string.h>
#include <ndis.h>
#include <wsk.h>
#include "ndkpi.h"
#include "wskndk.h"
#include "softndk.h"

static KEVENT event;
static HANDLE thread;

static void wait_for(PVOID object) {
    KeWaitForSingleObject(object, Executive, KernelMode, FALSE, NULL);
}

static void created(PVOID ctx, NTSTATUS status, NDK_OBJECT_HEADER *object) {
    (void)status;
    (void)object;
    KeSetEvent((KEVENT *)ctx, 0, FALSE);
}

/* Waits although the answer came with the call. */
static void wait_for_an_inline_answer(void) {
    static const WSK_CLIENT_DISPATCH dispatch = { MAKE_WSK_VERSION(1, 0), 0, NULL };
    static WSK_REGISTRATION registration;
    WSK_CLIENT_NPI client = { NULL, &dispatch };
    WSK_PROVIDER_NPI npi;
    WSK_PROVIDER_NDK_DISPATCH ndk;
    NDK_VERSION version = { 2, 0 };
    NDK_ADAPTER *ad;
    NDK_PD *pd;
    WskRegister(&client, &registration);
    WskCaptureProviderNPI(&registration, WSK_NO_WAIT, &npi);
    npi.Dispatch->WskControlClient(npi.Client, WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH, 0, NULL,
                                   sizeof ndk, &ndk, NULL, NULL);
    if (ndk.WskOpenNdkAdapter(npi.Client, version, 1, &ad) != STATUS_SUCCESS) return;
    ad->Dispatch->NdkCreatePd(ad, created, &event, &pd);
    wait_for(&event);
}

static void set_late(PVOID ctx) {
    LARGE_INTEGER t = { .QuadPart = -4000000 }; /* four times --deadlock-after */
    (void)ctx;
    KeDelayExecutionThread(KernelMode, FALSE, &t);
    KeSetEvent(&event, 0, FALSE);
}

static void wait_in_a_thread(PVOID ctx) {
    wait_for(ctx);
}

static VOID unload(PDRIVER_OBJECT driver) {
    PVOID object;
    (void)driver;
    ObReferenceObjectByHandle(thread, THREAD_ALL_ACCESS, NULL, KernelMode, &object, NULL);
    wait_for(object);
}

SOFTND_API DRIVER_INITIALIZE DriverEntry;
NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path) {
    char **argv;
    int argc = softndk_args(&argv);
    const char *what = argc ? argv[0] : "";
    (void)path;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    if (strcmp(what, "nobody") == 0) {
        wait_for(&event);
    } else if (strcmp(what, "inline") == 0) {
        wait_for_an_inline_answer();
    } else if (strcmp(what, "unload") == 0) {
        driver->DriverUnload = unload;
        PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, wait_in_a_thread,
                             &event);
    } else if (strcmp(what, "helped") == 0) {
        PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, set_late, NULL);
        wait_for(&event);
        ZwClose(thread);
    } else {
        return STATUS_INVALID_PARAMETER;
    }
    softndk_finish(0);
    return STATUS_SUCCESS;
}
