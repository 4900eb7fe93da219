/* SPDX-License-Identifier: MIT
 * softnd_win32.h - the Win32 functions that NetworkDirect programs call, on Linux.
 * Owns:    the prototypes; libsoftnd.so implements them, with what Windows lets a program observe.
 * Threads: every function from any thread. GetLastError is per thread.
 * Errors:  as said at each call; "error E" means the call fails and GetLastError() returns E.
 *          A successful call leaves the last error alone, unless said otherwise.
 *
 * Handles here are events, completion ports and overlapped files (IND2Adapter::
 * CreateOverlappedFile makes those). Closing a handle while others use the object is safe: they
 * keep it. Timeouts are milliseconds; INFINITE waits for ever; 0 polls.
 */
#ifndef SOFTND_WIN32_H
#define SOFTND_WIN32_H

#include "softnd_wintypes.h"
#include "softnd_winerror.h"

#define SOFTND_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- last error, time ---- */

/* The calling thread's last error number, ERROR_* or WSA*. */
SOFTND_API DWORD GetLastError(void);
SOFTND_API void SetLastError(DWORD error);

/* Blocks the calling thread for at least this time; 0 gives up the rest of its time slice. */
SOFTND_API void Sleep(DWORD milliseconds);

/* ---- events and waits ---- */

/* A new event. attributes is ignored; name must be NULL (events are of this process only, error
 * ERROR_NOT_SUPPORTED). manual_reset: stays signalled until ResetEvent; otherwise one wait takes
 * it. Returns the handle, which the caller closes; NULL with error ERROR_NOT_ENOUGH_MEMORY. */
SOFTND_API HANDLE CreateEventW(LPSECURITY_ATTRIBUTES attributes, BOOL manual_reset,
                               BOOL initial_state, LPCWSTR name);
SOFTND_API HANDLE CreateEventA(LPSECURITY_ATTRIBUTES attributes, BOOL manual_reset,
                               BOOL initial_state, LPCSTR name);
#ifdef UNICODE
#define CreateEvent CreateEventW
#else
#define CreateEvent CreateEventA
#endif

/* Signal, unsignal. Do not block. TRUE; FALSE with error ERROR_INVALID_HANDLE. */
SOFTND_API BOOL SetEvent(HANDLE event);
SOFTND_API BOOL ResetEvent(HANDLE event);

/* Waits for an event (or an overlapped file, signalled when its last request completed). Returns
 * WAIT_OBJECT_0; WAIT_TIMEOUT; WAIT_FAILED with error ERROR_INVALID_HANDLE. */
SOFTND_API DWORD WaitForSingleObject(HANDLE handle, DWORD timeout_ms);

/* Waits for one of, or with wait_all for all of, 1 to MAXIMUM_WAIT_OBJECTS different handles.
 * Returns WAIT_OBJECT_0 + the lowest index signalled (wait_all: WAIT_OBJECT_0; nothing is taken
 * until all can be); WAIT_TIMEOUT; WAIT_FAILED with error ERROR_INVALID_PARAMETER (count 0 or too
 * many, or with wait_all the same handle twice) or ERROR_INVALID_HANDLE. */
SOFTND_API DWORD WaitForMultipleObjects(DWORD count, const HANDLE *handles, BOOL wait_all,
                                        DWORD timeout_ms);

/* The same; alertable is ignored, since there are no asynchronous procedure calls here. */
SOFTND_API DWORD WaitForSingleObjectEx(HANDLE handle, DWORD timeout_ms, BOOL alertable);
SOFTND_API DWORD WaitForMultipleObjectsEx(DWORD count, const HANDLE *handles, BOOL wait_all,
                                          DWORD timeout_ms, BOOL alertable);

/* Gives the handle up. The object lives on while something refers to it: a waiting thread, a
 * request in progress, a provider object made with it. TRUE; error ERROR_INVALID_HANDLE. */
SOFTND_API BOOL CloseHandle(HANDLE handle);

/* ---- completion ports ---- */

/* file = INVALID_HANDLE_VALUE and port = NULL: a new port. file a file handle: binds it with key,
 * to port or (NULL) to a new one. A file is bound once, for its life. concurrent_threads is
 * ignored. Returns the port; NULL with error ERROR_INVALID_HANDLE, ERROR_INVALID_PARAMETER (no
 * file and a port, or the file is bound already) or ERROR_NOT_ENOUGH_MEMORY. */
SOFTND_API HANDLE CreateIoCompletionPort(HANDLE file, HANDLE port, ULONG_PTR key,
                                         DWORD concurrent_threads);

/* Takes the oldest packet, waiting up to timeout_ms for one.
 *   TRUE:                     a request succeeded, or a posted packet.
 *   FALSE, *overlapped set:   a request failed; bytes and key are set; the last error is its
 *                             status as a Win32 number (ERROR_OPERATION_ABORTED if cancelled).
 *   FALSE, *overlapped NULL:  no packet: error WAIT_TIMEOUT, ERROR_ABANDONED_WAIT_0 (the port was
 *                             closed during the wait), ERROR_INVALID_HANDLE. */
SOFTND_API BOOL GetQueuedCompletionStatus(HANDLE port, LPDWORD bytes, PULONG_PTR key,
                                          LPOVERLAPPED *overlapped, DWORD timeout_ms);

/* Takes up to count (at least 1) packets; waits up to timeout_ms for the first. TRUE with *removed
 * set: each entry carries the NTSTATUS of its packet in Internal. FALSE with *removed 0 and the
 * errors of "no packet" above, or ERROR_INVALID_PARAMETER. */
SOFTND_API BOOL GetQueuedCompletionStatusEx(HANDLE port, LPOVERLAPPED_ENTRY entries, ULONG count,
                                            PULONG removed, DWORD timeout_ms, BOOL alertable);

/* Queues a packet with these three values, success as its status. overlapped is only a value here
 * and is not touched. TRUE; error ERROR_INVALID_HANDLE or ERROR_NOT_ENOUGH_MEMORY. */
SOFTND_API BOOL PostQueuedCompletionStatus(HANDLE port, DWORD bytes, ULONG_PTR key,
                                           LPOVERLAPPED overlapped);

/* error is the NTSTATUS of the request, as on Windows. */
typedef VOID(CALLBACK *LPOVERLAPPED_COMPLETION_ROUTINE)(DWORD error, DWORD bytes,
                                                        LPOVERLAPPED overlapped);

/* Calls routine on a thread of the library for each completion of file. A file can have either a
 * port or a routine. flags must be 0. TRUE; error ERROR_INVALID_HANDLE, ERROR_INVALID_PARAMETER
 * (bound already, or flags) or ERROR_NOT_ENOUGH_MEMORY. */
SOFTND_API BOOL BindIoCompletionCallback(HANDLE file, LPOVERLAPPED_COMPLETION_ROUTINE routine,
                                         ULONG flags);

#define FILE_SKIP_COMPLETION_PORT_ON_SUCCESS 0x1
#define FILE_SKIP_SET_EVENT_ON_HANDLE 0x2

/* Notification modes of a file: no packet for a request whose call returned success at once (the
 * provider answers ND_PENDING always, so such requests do not occur), and not signalling the file
 * handle itself. Modes can only be added. TRUE; error ERROR_INVALID_HANDLE,
 * ERROR_INVALID_PARAMETER (unknown bits). */
SOFTND_API BOOL SetFileCompletionNotificationModes(HANDLE file, UCHAR flags);

/* ---- overlapped requests ---- */

/* True once the request completed. Reads Internal with acquire order, so that what the request
 * wrote before is visible. */
#define HasOverlappedIoCompleted(overlapped)                                                       \
    ((DWORD)__atomic_load_n(&(overlapped)->Internal, __ATOMIC_ACQUIRE) != STATUS_PENDING)

/* The outcome of a request. With wait, blocks until it is complete (through hEvent or else the
 * file). TRUE with *bytes set; FALSE with error ERROR_IO_INCOMPLETE (not complete, no wait) or the
 * request's status as a Win32 number. For ND requests use the method of the same name of the ND
 * object instead: it has the ND status. */
SOFTND_API BOOL GetOverlappedResult(HANDLE file, LPOVERLAPPED overlapped, LPDWORD bytes, BOOL wait);

/* Asks for the cancellation of one pending request of file, or (overlapped = NULL) of all. Those
 * requests then complete as usual, normally with STATUS_CANCELLED. TRUE if at least one was found;
 * error ERROR_NOT_FOUND if none, ERROR_INVALID_HANDLE. CancelIo is CancelIoEx(file, NULL). */
SOFTND_API BOOL CancelIoEx(HANDLE file, LPOVERLAPPED overlapped);
SOFTND_API BOOL CancelIo(HANDLE file);

/* ---- shared libraries ---- */

/* Loads a shared library by path; a name without a slash is searched as the system does it. Counts:
 * as many FreeLibrary calls unload it. file must be NULL and flags 0. Returns the module; NULL with
 * error ERROR_MOD_NOT_FOUND, ERROR_BAD_EXE_FORMAT or ERROR_INVALID_PARAMETER. */
SOFTND_API HMODULE LoadLibraryW(LPCWSTR path);
SOFTND_API HMODULE LoadLibraryA(LPCSTR path);
SOFTND_API HMODULE LoadLibraryExW(LPCWSTR path, HANDLE file, DWORD flags);
#ifdef UNICODE
#define LoadLibrary LoadLibraryW
#else
#define LoadLibrary LoadLibraryA
#endif

/* An exported function; NULL with error ERROR_PROC_NOT_FOUND. Ordinals do not exist here. */
SOFTND_API FARPROC GetProcAddress(HMODULE module, LPCSTR name);

/* TRUE; error ERROR_INVALID_HANDLE. */
SOFTND_API BOOL FreeLibrary(HMODULE module);

/* ---- the provider catalog: files, in a system directory and then a user directory ---- */

/* All four return the result said, or SOCKET_ERROR with the code in *error_number (it is the last
 * error too): WSAEFAULT (a pointer that must not be NULL is NULL), WSAEACCES (no permission to
 * write), WSASYSCALLFAILURE (file system error, e.g. disk full), WSA_NOT_ENOUGH_MEMORY, and those
 * said below. They read and write files, hence may block. Several processes may write at once.
 * Files that cannot be read or understood are skipped, with a line in the log; of several with one
 * GUID the first counts, system before user. SOFTND_CATALOG=directory replaces both directories.
 * iAddressFamily holds this system's AF_INET and AF_INET6. */

/* Adds count (1 to 64) entries for one provider; 0 on success. The path is stored as given (at
 * most MAX_PATH - 1 units); ProviderId and dwCatalogEntryId of the entries are filled in. All
 * entries appear at once or none does, and a success survives a crash. WSAEINVAL: the GUID is
 * installed already, or count, path or a name cannot be stored (too long, not UTF-16, control
 * characters, blanks at an end). */
SOFTND_API INT WSCInstallProvider(LPGUID provider_id, const WCHAR *dll_path,
                                  const LPWSAPROTOCOL_INFOW entries, DWORD count,
                                  LPINT error_number);

/* Removes every entry of the provider; 0 on success. WSAEINVAL: no such provider. */
SOFTND_API INT WSCDeinstallProvider(LPGUID provider_id, LPINT error_number);

/* Copies all entries, hidden ones included, or those whose range of protocols (iProtocol and up to
 * iProtocolMaxOffset more) has a member in the zero-terminated list protocols (NULL: all).
 * *buffer_bytes: in, size of buffer; out, size needed, but room for one if there is no entry and
 * the call fails. Returns the number of entries; WSAENOBUFS if buffer is NULL or too small, with
 * nothing copied. */
SOFTND_API INT WSCEnumProtocols(LPINT protocols, LPWSAPROTOCOL_INFOW buffer, LPDWORD buffer_bytes,
                                LPINT error_number);

/* The library path of a provider, zero-terminated; 0 on success. *path_units: in, room in WCHARs;
 * out, units used with the terminator. WSAEFAULT: too small (*path_units says how many).
 * WSAEINVAL: no such provider. WSAEINVALIDPROVIDER: its path is longer than MAX_PATH - 1. */
SOFTND_API INT WSCGetProviderPath(LPGUID provider_id, WCHAR *path, LPINT path_units,
                                  LPINT error_number);

/* ---- SoftND extensions: which catalog ---- */

/* Scopes. AUTO: the system's if this process may write there, else the user's. PRIVATE is only
 * reported: the directory in the environment variable SOFTND_CATALOG. */
#define SOFTND_CATALOG_AUTO 0u
#define SOFTND_CATALOG_SYSTEM 1u
#define SOFTND_CATALOG_USER 2u
#define SOFTND_CATALOG_PRIVATE 3u

/* Where WSCInstallProvider writes and WSCDeinstallProvider removes from now on, in the whole
 * process; reading always looks at both. Initially AUTO, which for removing means the entry that
 * is in effect. TRUE; error ERROR_INVALID_PARAMETER. */
SOFTND_API BOOL SoftNdCatalogSetScope(DWORD scope);

/* The directory of AUTO, SYSTEM or USER, existing or not, as UTF-8 in path, which has room bytes
 * with the terminator. *actual_scope (may be NULL): SYSTEM, USER or PRIVATE. TRUE; error
 * ERROR_INVALID_PARAMETER, ERROR_INSUFFICIENT_BUFFER, ERROR_PATH_NOT_FOUND (the user has no home),
 * ERROR_NOT_ENOUGH_MEMORY. */
SOFTND_API BOOL SoftNdCatalogGetDirectory(DWORD scope, LPDWORD actual_scope, char *path,
                                          SIZE_T room);

/* The file that an installed provider's entries come from, and its scope (may be NULL). TRUE;
 * errors as above and ERROR_NOT_FOUND. */
SOFTND_API BOOL SoftNdCatalogFindProvider(const GUID *provider_id, LPDWORD scope, char *file,
                                          SIZE_T room);

/* ---- SoftND extensions: for programs with an event loop ---- */

/* A descriptor that poll(), epoll and the like report readable while the event is signalled, or
 * while the port has a packet. It belongs to the handle and is closed with it: only poll it, never
 * read, write or close it. Take the signal with WaitForSingleObject(event, 0), the packet with
 * GetQueuedCompletionStatus(port, ..., 0). The same handle gives the same descriptor each time.
 * Returns -1 with error ERROR_INVALID_HANDLE or ERROR_TOO_MANY_OPEN_FILES. */
SOFTND_API int SoftNdEventGetFd(HANDLE event);
SOFTND_API int SoftNdPortGetFd(HANDLE port);

#ifdef __cplusplus
}
#endif

#endif
