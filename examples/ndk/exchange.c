/* SPDX-License-Identifier: MIT
 * exchange.c - a small NDK consumer in kernel style, to be run by `softnd ndk-run`.
 *
 *     softnd ndk-run ./ndk_exchange.so server IFINDEX ADDRESS[:PORT]
 *     softnd ndk-run ./ndk_exchange.so client IFINDEX ADDRESS ADDRESS:PORT
 *
 * The client registers a buffer with NdkFastRegister and sends its address and token. The server
 * reads the buffer with RDMA Read, turns every byte round, writes it back with RDMA Write, and
 * answers with a Send that invalidates the client's token. The client checks what it got.
 *
 * Everything that may pend is waited for on an event in a context that outlives the request.
 * Callbacks run at DISPATCH_LEVEL and only set events.
 */
#include <ntddk.h>
#include <wsk.h>
#include <ndkpi.h>
#include <wskndk.h>
#include <ntstrsafe.h>
#include "softndk.h"

DRIVER_INITIALIZE DriverEntry;

#define TAG 0x48435845 /* "EXCH" */
#define BUFFER_BYTES (300 * 1024 + 123)
#define BUFFER_OFFSET 777 /* not page aligned on purpose */
#define DEPTH 8
#define WAIT_SECONDS 30

/* What the client tells the server. */
typedef struct _OFFER {
    UINT64 Address;
    UINT32 Token;
    UINT32 Length;
} OFFER;

typedef struct _WAITER {
    KEVENT Event;
    NTSTATUS Status;
    NDK_OBJECT_HEADER *Object;
} WAITER;

typedef struct _SIDE {
    BOOLEAN Server;
    NET_IFINDEX IfIndex;
    SOCKADDR_IN Local, Peer;

    WSK_REGISTRATION Registration;
    BOOLEAN Registered, Captured;
    WSK_PROVIDER_NPI Npi;
    WSK_PROVIDER_NDK_DISPATCH Ndk;
    NDK_ADAPTER *Adapter;
    NDK_PD *Pd;
    UINT32 Privileged;
    NDK_CQ *Cq;
    KEVENT CqEvent;
    NDK_QP *Qp;
    NDK_LISTENER *Listener;
    NDK_CONNECTOR *Connector;
    KEVENT Incoming, Disconnected;

    UCHAR *Buffer; /* BUFFER_BYTES from BUFFER_OFFSET on */
    MDL *Mdl;
    NDK_LOGICAL_ADDRESS_MAPPING *Lam;
    ULONG Fbo;
    NDK_MR *Mr;

    OFFER *Message; /* [0] is sent, [1] received */
    MDL *MessageMdl;
    NDK_LOGICAL_ADDRESS_MAPPING *MessageLam;
    ULONG MessageFbo;

    HANDLE Thread;
    PVOID ThreadObject;
} SIDE;

static SIDE Side;

/* ---- completions ---- */

static VOID RequestDone(PVOID Context, NTSTATUS Status) {
    WAITER *w = Context;
    w->Status = Status;
    KeSetEvent(&w->Event, IO_NO_INCREMENT, FALSE);
}

static VOID Created(PVOID Context, NTSTATUS Status, NDK_OBJECT_HEADER *Object) {
    WAITER *w = Context;
    w->Object = Object;
    RequestDone(Context, Status);
}

static VOID Closed(PVOID Context) {
    RequestDone(Context, STATUS_SUCCESS);
}

static VOID CqNotified(PVOID Context, NTSTATUS Status) {
    UNREFERENCED_PARAMETER(Status);
    KeSetEvent(&((SIDE *)Context)->CqEvent, IO_NO_INCREMENT, FALSE);
}

static VOID ConnectEvent(PVOID Context, NDK_CONNECTOR *Connector) {
    SIDE *s = Context;
    if (s->Connector) { /* one peer is enough */
        Connector->Dispatch->NdkReject(Connector, NULL, 0);
        return;
    }
    s->Connector = Connector;
    KeSetEvent(&s->Incoming, IO_NO_INCREMENT, FALSE);
}

static VOID DisconnectEvent(PVOID Context) {
    KeSetEvent(&((SIDE *)Context)->Disconnected, IO_NO_INCREMENT, FALSE);
}

static VOID InitWaiter(WAITER *w) {
    KeInitializeEvent(&w->Event, NotificationEvent, FALSE);
    w->Status = STATUS_SUCCESS;
    w->Object = NULL;
}

/* Waits for ever: the request must be over before its context goes. */
static NTSTATUS Finish(WAITER *w, NTSTATUS Status) {
    if (Status != STATUS_PENDING) return Status;
    KeWaitForSingleObject(&w->Event, Executive, KernelMode, FALSE, NULL);
    return w->Status;
}

static BOOLEAN WaitSome(KEVENT *Event) {
    LARGE_INTEGER t;
    t.QuadPart = -10000000ll * WAIT_SECONDS;
    return KeWaitForSingleObject(Event, Executive, KernelMode, FALSE, &t) == STATUS_SUCCESS;
}

/* Runs a create and leaves the object in Out, wherever it came from. */
#define CREATE(Status, Type, Out, Call)                                                            \
    do {                                                                                           \
        WAITER w;                                                                                  \
        Type *object = NULL;                                                                       \
        InitWaiter(&w);                                                                            \
        (Status) = (Call);                                                                         \
        BOOLEAN pended = (Status) == STATUS_PENDING;                                               \
        (Status) = Finish(&w, Status);                                                             \
        if (NT_SUCCESS(Status)) (Out) = pended ? (Type *)w.Object : object;                        \
    } while (0)

#define CLOSE(Object, Method)                                                                      \
    do {                                                                                           \
        if (Object) {                                                                              \
            WAITER w;                                                                              \
            InitWaiter(&w);                                                                        \
            Finish(&w, (Object)->Dispatch->Method(&(Object)->Header, Closed, &w));                 \
            (Object) = NULL;                                                                       \
        }                                                                                          \
    } while (0)

/* ---- set-up ---- */

static NTSTATUS OpenAdapter(SIDE *s) {
    static const WSK_CLIENT_DISPATCH dispatch = { MAKE_WSK_VERSION(1, 0), 0, NULL };
    WSK_CLIENT_NPI client = { NULL, &dispatch };
    NDK_VERSION version = { 1, 2 };
    NTSTATUS status = WskRegister(&client, &s->Registration);
    if (!NT_SUCCESS(status)) return status;
    s->Registered = TRUE;
    status = WskCaptureProviderNPI(&s->Registration, WSK_INFINITE_WAIT, &s->Npi);
    if (!NT_SUCCESS(status)) return status;
    s->Captured = TRUE;
    status = s->Npi.Dispatch->WskControlClient(s->Npi.Client, WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH,
                                               0, NULL, sizeof s->Ndk, &s->Ndk, NULL, NULL);
    if (!NT_SUCCESS(status)) return status;
    return s->Ndk.WskOpenNdkAdapter(s->Npi.Client, version, s->IfIndex, &s->Adapter);
}

/* An MDL and a mapping for non-paged memory. */
static NTSTATUS MapBuffer(SIDE *s, PVOID Va, ULONG Length, MDL **Mdl,
                          NDK_LOGICAL_ADDRESS_MAPPING **Lam, ULONG *Fbo) {
    WAITER w;
    ULONG size = FIELD_OFFSET(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray) +
                 ADDRESS_AND_SIZE_TO_SPAN_PAGES(Va, Length) * sizeof(NDK_LOGICAL_ADDRESS);
    *Mdl = IoAllocateMdl(Va, Length, FALSE, FALSE, NULL);
    if (!*Mdl) return STATUS_INSUFFICIENT_RESOURCES;
    MmBuildMdlForNonPagedPool(*Mdl);
    NDK_LOGICAL_ADDRESS_MAPPING *lam = ExAllocatePoolWithTag(NonPagedPoolNx, size, TAG);
    if (!lam) return STATUS_INSUFFICIENT_RESOURCES;
    InitWaiter(&w);
    NTSTATUS status = Finish(&w, s->Adapter->Dispatch->NdkBuildLAM(
                                     s->Adapter, *Mdl, Length, RequestDone, &w, lam, &size, Fbo));
    if (NT_SUCCESS(status))
        *Lam = lam;
    else
        ExFreePoolWithTag(lam, TAG);
    return status;
}

static NTSTATUS MakeObjects(SIDE *s) {
    NTSTATUS status;
    CREATE(status, NDK_PD, s->Pd,
           s->Adapter->Dispatch->NdkCreatePd(s->Adapter, Created, &w, &object));
    if (!NT_SUCCESS(status)) return status;
    s->Pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(s->Pd, &s->Privileged);
    CREATE(status, NDK_CQ, s->Cq,
           s->Adapter->Dispatch->NdkCreateCq(s->Adapter, 2 * DEPTH, CqNotified, s, NULL, Created,
                                             &w, &object));
    if (!NT_SUCCESS(status)) return status;
    CREATE(status, NDK_QP, s->Qp,
           s->Pd->Dispatch->NdkCreateQp(s->Pd, s->Cq, s->Cq, s, DEPTH, DEPTH, 1, 1, 0, Created, &w,
                                        &object));
    if (!NT_SUCCESS(status)) return status;
    s->Buffer = ExAllocatePoolWithTag(NonPagedPoolNx, BUFFER_OFFSET + BUFFER_BYTES, TAG);
    s->Message = ExAllocatePoolWithTag(NonPagedPoolNx, 2 * sizeof *s->Message, TAG);
    if (!s->Buffer || !s->Message) return STATUS_INSUFFICIENT_RESOURCES;
    status = MapBuffer(s, s->Buffer + BUFFER_OFFSET, BUFFER_BYTES, &s->Mdl, &s->Lam, &s->Fbo);
    if (!NT_SUCCESS(status)) return status;
    status = MapBuffer(s, s->Message, 2 * sizeof *s->Message, &s->MessageMdl, &s->MessageLam,
                       &s->MessageFbo);
    if (!NT_SUCCESS(status)) return status;
    CREATE(status, NDK_MR, s->Mr, s->Pd->Dispatch->NdkCreateMr(s->Pd, TRUE, Created, &w, &object));
    if (!NT_SUCCESS(status)) return status;
    WAITER w;
    InitWaiter(&w);
    return Finish(&w, s->Mr->Dispatch->NdkInitializeFastRegisterMr(s->Mr, s->Lam->AdapterPageCount,
                                                                   TRUE, RequestDone, &w));
}

/* ---- requests ---- */

static NTSTATUS NextResult(SIDE *s, NDK_RESULT_EX *Out) {
    while (s->Cq->Dispatch->NdkGetCqResultsEx(s->Cq, Out, 1) == 0) {
        s->Cq->Dispatch->NdkArmCq(s->Cq, NDK_CQ_NOTIFY_ANY);
        if (s->Cq->Dispatch->NdkGetCqResultsEx(s->Cq, Out, 1) != 0) break;
        if (!WaitSome(&s->CqEvent)) return STATUS_IO_TIMEOUT;
    }
    return STATUS_SUCCESS;
}

/* The next result must be this one. */
static NTSTATUS WaitResult(SIDE *s, NDK_OPERATION_TYPE Type, NDK_RESULT_EX *Out) {
    NTSTATUS status = NextResult(s, Out);
    if (NT_SUCCESS(status)) status = Out->Status;
    if (!NT_SUCCESS(status)) return status;
    return Out->Type == Type ? STATUS_SUCCESS : STATUS_INVALID_DEVICE_STATE;
}

/* One result of each of these types, in any order: results of the two queues are not ordered with
 * each other. The receive's is in Out. */
static NTSTATUS WaitResults(SIDE *s, ULONG Types, NDK_RESULT_EX *Out) {
    const ULONG one_bit = 0x7F; /* a ReceiveAndInvalidate has a second one */
    NTSTATUS status = STATUS_SUCCESS;
    while (Types && NT_SUCCESS(status)) {
        NDK_RESULT_EX r;
        status = NextResult(s, &r);
        if (NT_SUCCESS(status)) status = r.Status;
        if (!NT_SUCCESS(status)) break;
        if (!(Types & r.Type & one_bit)) return STATUS_INVALID_DEVICE_STATE;
        Types &= ~((ULONG)r.Type & one_bit);
        if (r.Type & NdkOperationTypeReceive) *Out = r;
    }
    return status;
}

static NDK_SGE MessageSge(SIDE *s, ULONG Index) {
    NDK_SGE sge;
    sge.LogicalAddress = s->MessageLam->AdapterPageArray[0];
    sge.LogicalAddress.QuadPart += s->MessageFbo + Index * sizeof *s->Message;
    sge.Length = sizeof *s->Message;
    sge.MemoryRegionToken = s->Privileged;
    return sge;
}

static NTSTATUS PostReceive(SIDE *s) {
    NDK_SGE sge = MessageSge(s, 1);
    return s->Qp->Dispatch->NdkReceive(s->Qp, NULL, &sge, 1);
}

/* Registers the buffer under its own virtual address. */
static NTSTATUS RegisterBuffer(SIDE *s, ULONG Flags) {
    return s->Qp->Dispatch->NdkFastRegister(s->Qp, NULL, s->Mr, s->Lam->AdapterPageCount,
                                            s->Lam->AdapterPageArray, s->Fbo, BUFFER_BYTES,
                                            s->Buffer + BUFFER_OFFSET, Flags | NDK_OP_FLAG_DEFER);
}

static NDK_SGE BufferSge(SIDE *s) {
    NDK_SGE sge;
    RtlZeroMemory(&sge, sizeof sge);
    sge.VirtualAddress = s->Buffer + BUFFER_OFFSET;
    sge.Length = BUFFER_BYTES;
    sge.MemoryRegionToken = s->Mr->Dispatch->NdkGetLocalTokenFromMr(s->Mr);
    return sge;
}

/* ---- the two sides ---- */

static NTSTATUS Serve(SIDE *s) {
    NDK_RESULT_EX r;
    ULONG len = sizeof s->Local;
    WAITER w;
    NTSTATUS status;
    CREATE(
        status, NDK_LISTENER, s->Listener,
        s->Adapter->Dispatch->NdkCreateListener(s->Adapter, ConnectEvent, s, Created, &w, &object));
    if (!NT_SUCCESS(status)) return status;
    InitWaiter(&w);
    status = Finish(&w, s->Listener->Dispatch->NdkListen(s->Listener, (SOCKADDR *)&s->Local,
                                                         sizeof s->Local, RequestDone, &w));
    if (!NT_SUCCESS(status)) return status;
    s->Listener->Dispatch->NdkGetLocalAddress(s->Listener, (SOCKADDR *)&s->Local, &len);
    DbgPrint("exchange: listening on port %u\n", RtlUshortByteSwap(s->Local.sin_port));
    if (!WaitSome(&s->Incoming)) return STATUS_IO_TIMEOUT;

    status = PostReceive(s); /* before the peer can send */
    if (!NT_SUCCESS(status)) return status;
    InitWaiter(&w);
    status = Finish(&w, s->Connector->Dispatch->NdkAccept(s->Connector, s->Qp, 4, 4, NULL, 0,
                                                          DisconnectEvent, s, RequestDone, &w));
    if (!NT_SUCCESS(status)) return status;
    status = WaitResult(s, NdkOperationTypeReceive, &r);
    if (!NT_SUCCESS(status)) return status;
    OFFER offer = s->Message[1];
    if (r.BytesTransferred != sizeof offer || offer.Length != BUFFER_BYTES)
        return STATUS_INVALID_BUFFER_SIZE;

    /* Register the sink and read into it, in one chain. */
    status = RegisterBuffer(s, NDK_OP_FLAG_ALLOW_LOCAL_WRITE | NDK_OP_FLAG_RDMA_READ_SINK);
    if (!NT_SUCCESS(status)) return status;
    NDK_SGE sge = BufferSge(s);
    status = s->Qp->Dispatch->NdkRead(s->Qp, NULL, &sge, 1, offer.Address, offer.Token, 0);
    if (!NT_SUCCESS(status)) return status;
    status = WaitResult(s, NdkOperationTypeFastRegister, &r);
    if (NT_SUCCESS(status)) status = WaitResult(s, NdkOperationTypeRead, &r);
    if (!NT_SUCCESS(status)) return status;
    for (ULONG i = 0; i < BUFFER_BYTES; i++)
        s->Buffer[BUFFER_OFFSET + i] ^= 0xFF;

    /* One chain: write it back, end our own registration, and tell the client, whose token the
     * Send ends too. */
    status = s->Qp->Dispatch->NdkWrite(s->Qp, NULL, &sge, 1, offer.Address, offer.Token,
                                       NDK_OP_FLAG_DEFER);
    if (!NT_SUCCESS(status)) return status;
    status = s->Qp->Dispatch->NdkInvalidate(s->Qp, NULL, &s->Mr->Header, NDK_OP_FLAG_DEFER);
    if (!NT_SUCCESS(status)) return status;
    NDK_SGE message = MessageSge(s, 0);
    status = s->Qp->Dispatch->NdkSendAndInvalidate(s->Qp, NULL, &message, 1,
                                                   NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT, offer.Token);
    if (NT_SUCCESS(status)) status = WaitResult(s, NdkOperationTypeWrite, &r);
    if (NT_SUCCESS(status)) status = WaitResult(s, NdkOperationTypeInvalidate, &r);
    if (NT_SUCCESS(status)) status = WaitResult(s, NdkOperationTypeSend, &r);
    if (!NT_SUCCESS(status)) return status;
    return WaitSome(&s->Disconnected) ? STATUS_SUCCESS : STATUS_IO_TIMEOUT;
}

static UCHAR Pattern(ULONG i) {
    return (UCHAR)(i * 31 + i / 4096);
}

static NTSTATUS Ask(SIDE *s) {
    NDK_RESULT_EX r;
    WAITER w;
    NTSTATUS status;
    CREATE(status, NDK_CONNECTOR, s->Connector,
           s->Adapter->Dispatch->NdkCreateConnector(s->Adapter, Created, &w, &object));
    if (!NT_SUCCESS(status)) return status;
    InitWaiter(&w);
    status = Finish(&w, s->Connector->Dispatch->NdkConnect(
                            s->Connector, s->Qp, (SOCKADDR *)&s->Local, sizeof s->Local,
                            (SOCKADDR *)&s->Peer, sizeof s->Peer, 4, 4, NULL, 0, RequestDone, &w));
    if (!NT_SUCCESS(status)) return status;
    InitWaiter(&w);
    status = Finish(&w, s->Connector->Dispatch->NdkCompleteConnect(s->Connector, DisconnectEvent, s,
                                                                   RequestDone, &w));
    if (!NT_SUCCESS(status)) return status;

    status = PostReceive(s); /* before the peer can answer */
    if (!NT_SUCCESS(status)) return status;
    for (ULONG i = 0; i < BUFFER_BYTES; i++)
        s->Buffer[BUFFER_OFFSET + i] = Pattern(i);
    status = RegisterBuffer(s, NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE);
    if (!NT_SUCCESS(status)) return status;
    OFFER offer = { (UINT64)(ULONG_PTR)(s->Buffer + BUFFER_OFFSET),
                    s->Mr->Dispatch->NdkGetRemoteTokenFromMr(s->Mr), BUFFER_BYTES };
    *s->Message = offer;
    NDK_SGE message = MessageSge(s, 0);
    status = s->Qp->Dispatch->NdkSend(s->Qp, NULL, &message, 1, 0);
    if (NT_SUCCESS(status))
        status = WaitResults(
            s, NdkOperationTypeFastRegister | NdkOperationTypeSend | NdkOperationTypeReceive, &r);
    if (!NT_SUCCESS(status)) return status;
    if (r.Type == NdkOperationTypeReceiveAndInvalidate) {
        if ((UINT32)r.TypeSpecificCompletionOutput != offer.Token) return STATUS_INTERNAL_ERROR;
    } else { /* a peer that cannot invalidate leaves that to us */
        status = s->Qp->Dispatch->NdkInvalidate(s->Qp, NULL, &s->Mr->Header, 0);
        if (NT_SUCCESS(status)) status = WaitResult(s, NdkOperationTypeInvalidate, &r);
        if (!NT_SUCCESS(status)) return status;
    }
    for (ULONG i = 0; i < BUFFER_BYTES; i++)
        if ((s->Buffer[BUFFER_OFFSET + i] ^ Pattern(i)) != 0xFF) {
            DbgPrint("exchange: byte %u is 0x%02x\n", i, s->Buffer[BUFFER_OFFSET + i]);
            return STATUS_INTERNAL_ERROR;
        }
    InitWaiter(&w);
    return Finish(&w, s->Connector->Dispatch->NdkDisconnect(s->Connector, RequestDone, &w));
}

static VOID TearDown(SIDE *s) {
    NDK_RESULT_EX r[DEPTH];
    if (s->Listener) s->Listener->Dispatch->NdkControlConnectEvents(s->Listener, TRUE);
    if (s->Qp) s->Qp->Dispatch->NdkFlush(s->Qp);
    CLOSE(s->Connector, NdkCloseConnector);
    CLOSE(s->Listener, NdkCloseListener);
    CLOSE(s->Qp, NdkCloseQp);
    while (s->Cq && s->Cq->Dispatch->NdkGetCqResultsEx(s->Cq, r, DEPTH) != 0) {
    }
    CLOSE(s->Cq, NdkCloseCq);
    CLOSE(s->Mr, NdkCloseMr);
    CLOSE(s->Pd, NdkClosePd);
    NDK_LOGICAL_ADDRESS_MAPPING *lams[] = { s->Lam, s->MessageLam };
    for (ULONG i = 0; i < RTL_NUMBER_OF(lams); i++)
        if (lams[i]) {
            s->Adapter->Dispatch->NdkReleaseLAM(s->Adapter, lams[i]);
            ExFreePoolWithTag(lams[i], TAG);
        }
    if (s->Mdl) IoFreeMdl(s->Mdl);
    if (s->MessageMdl) IoFreeMdl(s->MessageMdl);
    if (s->Buffer) ExFreePoolWithTag(s->Buffer, TAG);
    if (s->Message) ExFreePoolWithTag(s->Message, TAG);
    if (s->Adapter) s->Ndk.WskCloseNdkAdapter(s->Npi.Client, s->Adapter);
    if (s->Captured) WskReleaseProviderNPI(&s->Registration);
    if (s->Registered) WskDeregister(&s->Registration);
}

static VOID Run(PVOID Context) {
    SIDE *s = Context;
    NTSTATUS status = OpenAdapter(s);
    if (NT_SUCCESS(status)) status = MakeObjects(s);
    if (NT_SUCCESS(status)) status = s->Server ? Serve(s) : Ask(s);
    TearDown(s);
    DbgPrint("exchange: %s %s, status 0x%08X, %u bytes each way\n", s->Server ? "server" : "client",
             NT_SUCCESS(status) ? "done" : "FAILED", (unsigned)status, BUFFER_BYTES);
    softndk_finish(NT_SUCCESS(status) ? 0 : 1);
}

/* ---- the driver ---- */

static VOID Unload(PDRIVER_OBJECT DriverObject) {
    UNREFERENCED_PARAMETER(DriverObject);
    KeWaitForSingleObject(Side.ThreadObject, Executive, KernelMode, FALSE, NULL);
    ObDereferenceObject(Side.ThreadObject);
}

static BOOLEAN ParseAddress(const char *Text, SOCKADDR_IN *Out) {
    Out->sin_family = AF_INET;
    return NT_SUCCESS(RtlIpv4StringToAddressExA(Text, TRUE, &Out->sin_addr, &Out->sin_port));
}

static ULONG ParseNumber(const char *Text) {
    ULONG n = 0;
    while (*Text >= '0' && *Text <= '9')
        n = n * 10 + (ULONG)(*Text++ - '0');
    return n;
}

SOFTND_API NTSTATUS DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath) {
    char **argv;
    int argc = softndk_args(&argv);
    UNREFERENCED_PARAMETER(RegistryPath);
    Side.Server = argc == 3 && argv[0][0] == 's';
    if (!(Side.Server || argc == 4) || !ParseAddress(argv[2], &Side.Local) ||
        (argc == 4 && !ParseAddress(argv[3], &Side.Peer))) {
        DbgPrint("usage: server IFINDEX ADDRESS[:PORT] | client IFINDEX ADDRESS ADDRESS:PORT\n");
        return STATUS_INVALID_PARAMETER;
    }
    Side.IfIndex = ParseNumber(argv[1]);
    KeInitializeEvent(&Side.CqEvent, SynchronizationEvent, FALSE);
    KeInitializeEvent(&Side.Incoming, NotificationEvent, FALSE);
    KeInitializeEvent(&Side.Disconnected, NotificationEvent, FALSE);
    DriverObject->DriverUnload = Unload;
    NTSTATUS status =
        PsCreateSystemThread(&Side.Thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, Run, &Side);
    if (!NT_SUCCESS(status)) return status;
    status = ObReferenceObjectByHandle(Side.Thread, THREAD_ALL_ACCESS, NULL, KernelMode,
                                       &Side.ThreadObject, NULL);
    ZwClose(Side.Thread);
    return status;
}
