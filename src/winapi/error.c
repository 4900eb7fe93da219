/* SPDX-License-Identifier: MIT
 * error.c - the thread's last error, and the Win32 number of an NTSTATUS.
 */
#include "winapi/object.h"

static _Thread_local DWORD last_error;

DWORD GetLastError(void) {
    return last_error;
}

void SetLastError(DWORD error) {
    last_error = error;
}

#define ERROR_NOT_MAPPED 317 /* ERROR_MR_MID_NOT_FOUND */
#define PARAMETER_N_FIRST 0xC00000EFu
#define PARAMETER_N_LAST 0xC00000FAu

/* What Windows answers for the statuses that a NetworkDirect provider may complete with. */
static const struct {
    DWORD status;
    DWORD error;
} map[] = {
    { 0x00000000, 0 },    /* SUCCESS */
    { 0x00000102, 258 },  /* TIMEOUT: WAIT_TIMEOUT */
    { 0x00000103, 997 },  /* PENDING: IO_PENDING */
    { 0x80000005, 234 },  /* BUFFER_OVERFLOW: MORE_DATA */
    { 0x80000011, 170 },  /* DEVICE_BUSY: BUSY */
    { 0x8000001A, 259 },  /* NO_MORE_ENTRIES: NO_MORE_ITEMS */
    { 0xC0000001, 31 },   /* UNSUCCESSFUL: GEN_FAILURE */
    { 0xC0000002, 1 },    /* NOT_IMPLEMENTED: INVALID_FUNCTION */
    { 0xC0000005, 998 },  /* ACCESS_VIOLATION: NOACCESS */
    { 0xC0000008, 6 },    /* INVALID_HANDLE */
    { 0xC000000D, 87 },   /* INVALID_PARAMETER */
    { 0xC0000010, 1 },    /* INVALID_DEVICE_REQUEST: INVALID_FUNCTION */
    { 0xC0000011, 38 },   /* END_OF_FILE: HANDLE_EOF */
    { 0xC0000017, 8 },    /* NO_MEMORY: NOT_ENOUGH_MEMORY */
    { 0xC0000022, 5 },    /* ACCESS_DENIED */
    { 0xC0000023, 122 },  /* BUFFER_TOO_SMALL: INSUFFICIENT_BUFFER */
    { 0xC0000030, 87 },   /* INVALID_PARAMETER_MIX: INVALID_PARAMETER */
    { 0xC000003C, 1117 }, /* DATA_OVERRUN: IO_DEVICE */
    { 0xC000003E, 23 },   /* DATA_ERROR: CRC */
    { 0xC0000043, 32 },   /* SHARING_VIOLATION */
    { 0xC000009A, 1450 }, /* INSUFFICIENT_RESOURCES: NO_SYSTEM_RESOURCES */
    { 0xC00000A3, 21 },   /* DEVICE_NOT_READY: NOT_READY */
    { 0xC00000B5, 121 },  /* IO_TIMEOUT: SEM_TIMEOUT */
    { 0xC00000BB, 50 },   /* NOT_SUPPORTED */
    { 0xC00000CC, 67 },   /* BAD_NETWORK_NAME: BAD_NET_NAME */
    { 0xC00000E5, 1359 }, /* INTERNAL_ERROR */
    { 0xC0000120, 995 },  /* CANCELLED: OPERATION_ABORTED */
    { 0xC000013D, 51 },   /* REMOTE_RESOURCES: REM_NOT_LIST */
    { 0xC0000141, 59 },   /* INVALID_ADDRESS: UNEXP_NET_ERR */
    { 0xC0000184, 22 },   /* INVALID_DEVICE_STATE: BAD_COMMAND */
    { 0xC0000206, 1784 }, /* INVALID_BUFFER_SIZE: INVALID_USER_BUFFER */
    { 0xC0000209, 68 },   /* TOO_MANY_ADDRESSES: TOO_MANY_NAMES */
    { 0xC000020A, 52 },   /* ADDRESS_ALREADY_EXISTS: DUP_NAME */
    { 0xC000020C, 64 },   /* CONNECTION_DISCONNECTED: NETNAME_DELETED */
    { 0xC000020D, 64 },   /* CONNECTION_RESET: NETNAME_DELETED */
    { 0xC0000225, 1168 }, /* NOT_FOUND */
    { 0xC0000236, 1225 }, /* CONNECTION_REFUSED */
    { 0xC0000237, 1226 }, /* GRACEFUL_DISCONNECT */
    { 0xC0000238, 1227 }, /* ADDRESS_ALREADY_ASSOCIATED */
    { 0xC0000239, 1228 }, /* ADDRESS_NOT_ASSOCIATED */
    { 0xC000023A, 1229 }, /* CONNECTION_INVALID */
    { 0xC000023B, 1230 }, /* CONNECTION_ACTIVE */
    { 0xC000023C, 1231 }, /* NETWORK_UNREACHABLE */
    { 0xC000023D, 1232 }, /* HOST_UNREACHABLE */
    { 0xC000023E, 1233 }, /* PROTOCOL_UNREACHABLE */
    { 0xC000023F, 1234 }, /* PORT_UNREACHABLE */
    { 0xC0000240, 1235 }, /* REQUEST_ABORTED */
    { 0xC0000241, 1236 }, /* CONNECTION_ABORTED */
    { 0xC00002B6, 1617 }, /* DEVICE_REMOVED */
};

DWORD wa_error_from_ntstatus(NTSTATUS status) {
    DWORD st = (DWORD)status;
    for (size_t i = 0; i < SN_ARRAY_LEN(map); i++)
        if (map[i].status == st) return map[i].error;
    if (st >= PARAMETER_N_FIRST && st <= PARAMETER_N_LAST) return ERROR_INVALID_PARAMETER;
    if (st >> 16 == 0x8007) return st & 0xFFFF; /* a Win32 error in an HRESULT's clothes */
    return ERROR_NOT_MAPPED;
}
