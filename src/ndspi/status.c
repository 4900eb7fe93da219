/* SPDX-License-Identifier: MIT
 * status.c - the table of status.h. The general map has no default: a new internal status is a
 * compiler warning here.
 */
#include "ndspi/status.h"

/* The system's "access denied": binding to a port that needs privilege has no ND code. */
#define ACCESS_DENIED ((HRESULT)0xC0000022)

HRESULT ndspi_status(sn_status st) {
    switch (st) {
    case SN_OK:
        return ND_SUCCESS;
    case SN_PENDING:
        return ND_PENDING;
    case SN_E_NOMEM:
        return ND_NO_MEMORY;
    case SN_E_RESOURCES:
        return ND_INSUFFICIENT_RESOURCES;
    case SN_E_PARAM:
        return ND_INVALID_PARAMETER;
    case SN_E_HANDLE:
        return ND_INVALID_HANDLE;
    case SN_E_TOKEN:
    case SN_E_RANGE:
    case SN_E_RIGHTS:
    case SN_E_PD:
    case SN_E_FAULT:
    case SN_E_REMOTE_RANGE:
        return ND_ACCESS_VIOLATION;
    case SN_E_FULL:
        return ND_NO_MORE_ENTRIES;
    case SN_E_TOO_LONG:
    case SN_E_BUFFER_SMALL:
    case SN_E_OVERRUN:
        return ND_BUFFER_OVERFLOW;
    case SN_E_TOO_MANY_SGE:
    case SN_E_MSG_TOO_LONG:
        return ND_DATA_OVERRUN;
    case SN_E_PEER_MSG_TOO_LONG:
        return SOFTND_DATA_ERROR;
    case SN_E_BUFFER_SIZE:
        return ND_INVALID_BUFFER_SIZE;
    case SN_E_STATE:
        return ND_INVALID_DEVICE_STATE;
    case SN_E_REQUEST:
        return ND_INVALID_DEVICE_REQUEST;
    case SN_E_BUSY:
        return ND_DEVICE_BUSY;
    case SN_E_UNSUPPORTED:
        return ND_NOT_SUPPORTED;
    case SN_E_CANCELED:
        return ND_CANCELED;
    case SN_E_ABORTED:
    case SN_E_PEER_GONE:
    case SN_E_EOF:
    case SN_E_WIRE:
        return ND_CONNECTION_ABORTED;
    case SN_E_REFUSED:
        return ND_CONNECTION_REFUSED;
    case SN_E_TIMEOUT:
        return ND_IO_TIMEOUT;
    case SN_E_NOT_CONNECTED:
        return ND_CONNECTION_INVALID;
    case SN_E_CONNECTED:
        return ND_CONNECTION_ACTIVE;
    case SN_E_ADDR_IN_USE:
        return ND_SHARING_VIOLATION;
    case SN_E_ADDR_EXISTS:
        return ND_ADDRESS_ALREADY_EXISTS;
    case SN_E_ADDR_BOUND:
        return SOFTND_ADDRESS_ALREADY_ASSOCIATED;
    case SN_E_ADDR_INVALID:
        return ND_INVALID_ADDRESS;
    case SN_E_NO_PORTS:
        return ND_TOO_MANY_ADDRESSES;
    case SN_E_NET_NAME:
        return SOFTND_BAD_NETWORK_NAME;
    case SN_E_NET_UNREACHABLE:
        return ND_NETWORK_UNREACHABLE;
    case SN_E_HOST_UNREACHABLE:
        return ND_HOST_UNREACHABLE;
    case SN_E_REMOTE:
        return ND_REMOTE_ERROR;
    case SN_E_PERM:
        return ACCESS_DENIED;
    case SN_E_REMOVED:
        return ND_DEVICE_REMOVED;
    case SN_E_NOT_FOUND:
        return ND_UNSUCCESSFUL;
    case SN_E_MORE: /* these two never leave the layers below */
    case SN_E_AGAIN:
    case SN_E_INTERNAL:
    case SN_STATUS_COUNT:
        return ND_INTERNAL_ERROR;
    }
    return ND_INTERNAL_ERROR;
}

SN_HOT HRESULT ndspi_status_post(sn_status st) {
    if (SN_LIKELY(st == SN_OK)) return ND_SUCCESS;
    if (st == SN_E_BUSY) return ND_INVALID_DEVICE_REQUEST;
    if (st == SN_E_NOMEM) return ND_INSUFFICIENT_RESOURCES;
    return ndspi_status(st);
}

HRESULT ndspi_status_completion(sn_status st) {
    switch (st) {
    case SN_OK:
    case SN_E_CANCELED:
    case SN_E_TIMEOUT:
    case SN_E_TOKEN:
    case SN_E_RANGE:
    case SN_E_RIGHTS:
    case SN_E_PD:
    case SN_E_FAULT:
    case SN_E_MSG_TOO_LONG:
    case SN_E_PEER_MSG_TOO_LONG:
    case SN_E_REQUEST:
    case SN_E_REMOTE:
    case SN_E_REMOTE_RANGE:
        return ndspi_status(st);
    case SN_E_TOO_LONG: /* found late: more data than can be sent */
    case SN_E_TOO_MANY_SGE:
        return ND_DATA_OVERRUN;
    case SN_E_STATE:
    case SN_E_BUSY:
        return ND_INVALID_DEVICE_REQUEST;
    case SN_E_WIRE:
        return ND_REMOTE_ERROR;
    case SN_E_PEER_GONE:
    case SN_E_EOF:
        return ND_IO_TIMEOUT;
    default:
        return ND_INTERNAL_ERROR;
    }
}
