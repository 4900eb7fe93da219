/* SPDX-License-Identifier: MIT
 * Each switch has no default: a new internal status is a compiler warning here.
 */
#include "ndk/ndk.h"

NTSTATUS ndk_status(sn_status st) {
    switch (st) {
    case SN_OK:
        return STATUS_SUCCESS;
    case SN_PENDING:
        return STATUS_PENDING;
    case SN_E_NOMEM:
    case SN_E_RESOURCES:
    case SN_E_FULL:
        return STATUS_INSUFFICIENT_RESOURCES;
    case SN_E_PARAM:
    case SN_E_HANDLE:
    case SN_E_TOO_LONG:
    case SN_E_TOO_MANY_SGE:
    case SN_E_BUFFER_SIZE:
    case SN_E_BUFFER_SMALL:
    case SN_E_FAULT:
        return STATUS_INVALID_PARAMETER;
    case SN_E_TOKEN:
    case SN_E_RANGE:
    case SN_E_RIGHTS:
    case SN_E_PD:
        return STATUS_ACCESS_VIOLATION;
    case SN_E_STATE:
        return STATUS_INVALID_DEVICE_STATE;
    case SN_E_REQUEST:
        return STATUS_INVALID_DEVICE_REQUEST;
    case SN_E_BUSY:
        return STATUS_DEVICE_BUSY;
    case SN_E_UNSUPPORTED:
        return STATUS_NOT_SUPPORTED;
    case SN_E_CANCELED:
        return STATUS_CANCELLED;
    case SN_E_ABORTED:
    case SN_E_PEER_GONE:
    case SN_E_EOF:
    case SN_E_WIRE:
        return STATUS_CONNECTION_ABORTED;
    case SN_E_REFUSED:
        return STATUS_CONNECTION_REFUSED;
    case SN_E_TIMEOUT:
        return STATUS_IO_TIMEOUT;
    case SN_E_NOT_CONNECTED:
        return STATUS_CONNECTION_INVALID;
    case SN_E_CONNECTED:
        return STATUS_CONNECTION_ACTIVE;
    case SN_E_ADDR_IN_USE:
        return STATUS_SHARING_VIOLATION;
    case SN_E_ADDR_EXISTS:
        return STATUS_ADDRESS_ALREADY_EXISTS;
    case SN_E_ADDR_BOUND:
        return STATUS_ADDRESS_ALREADY_ASSOCIATED;
    case SN_E_ADDR_INVALID:
        return STATUS_INVALID_ADDRESS;
    case SN_E_NO_PORTS:
        return STATUS_TOO_MANY_ADDRESSES;
    case SN_E_NET_NAME:
        return STATUS_INVALID_PARAMETER;
    case SN_E_NET_UNREACHABLE:
        return STATUS_NETWORK_UNREACHABLE;
    case SN_E_HOST_UNREACHABLE:
        return STATUS_HOST_UNREACHABLE;
    case SN_E_OVERRUN:
        return STATUS_BUFFER_OVERFLOW;
    case SN_E_MSG_TOO_LONG:
    case SN_E_PEER_MSG_TOO_LONG:
        return STATUS_INVALID_BUFFER_SIZE;
    case SN_E_REMOTE:
    case SN_E_REMOTE_RANGE:
        return STATUS_REMOTE_RESOURCES;
    case SN_E_PERM:
        return STATUS_ACCESS_DENIED;
    case SN_E_NOT_FOUND:
        return STATUS_NOT_FOUND;
    case SN_E_REMOVED:
        return STATUS_DEVICE_REMOVED;
    case SN_E_MORE:
    case SN_E_AGAIN:
    case SN_E_INTERNAL:
    case SN_STATUS_COUNT:
        return STATUS_INTERNAL_ERROR;
    }
    return STATUS_INTERNAL_ERROR;
}

/* A registration or invalidation out of turn is an error of the request, not of the device. */
NTSTATUS ndk_completion_status(sn_status st) {
    if (st == SN_E_REQUEST) return STATUS_INVALID_DEVICE_STATE;
    if (st == SN_E_FAULT) return STATUS_ACCESS_VIOLATION;
    return ndk_status(st);
}

/* Only Bind and FastRegister find protection errors at once. */
NTSTATUS ndk_post_status(sn_status st) {
    if (st == SN_E_BUSY || st == SN_E_STATE) return STATUS_INVALID_DEVICE_STATE;
    return ndk_status(st);
}

/* What Connect calls a refusal is for Accept a peer that gave up. */
NTSTATUS ndk_accept_status(sn_status st) {
    return st == SN_E_REFUSED ? STATUS_CONNECTION_ABORTED : ndk_connect_status(st);
}

NTSTATUS ndk_connect_status(sn_status st) {
    if (st == SN_E_CONNECTED) return STATUS_CONNECTION_INVALID;
    return ndk_status(st);
}
