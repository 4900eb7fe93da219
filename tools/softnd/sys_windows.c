/* SPDX-License-Identifier: MIT
 * sys_windows.c - see sys.h. Paths are in the process's code page, which softnd.manifest makes
 * UTF-8 where the system can.
 */
#include "sys.h"

#include <windows.h>

#include <psapi.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static volatile LONG stop_count;
/* What the console handler removes; set while a temporary file exists. */
static char *volatile temp_to_remove;

uint64_t sys_now_ns(void) {
    static LARGE_INTEGER frequency;
    LARGE_INTEGER t;
    uint64_t per_s;

    if (!frequency.QuadPart) QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&t);
    per_s = (uint64_t)frequency.QuadPart;
    return (uint64_t)t.QuadPart / per_s * 1000000000u +
           (uint64_t)t.QuadPart % per_s * 1000000000u / per_s;
}

/* In slices, since the console handler runs on a thread of its own and cannot end a sleep. */
void sys_sleep_until(uint64_t ns) {
    uint64_t now;
    LONG before = stop_count;

    while ((now = sys_now_ns()) < ns && stop_count == before) {
        uint64_t ms = (ns - now + 999999u) / 1000000u;
        Sleep(ms > 100 ? 100 : (DWORD)ms);
    }
}

static uint64_t file_time(const FILETIME *t) {
    return (uint64_t)t->dwHighDateTime << 32 | t->dwLowDateTime; /* 100 ns each */
}

uint64_t sys_cpu_ns(void) {
    FILETIME created, ended, kernel, user;

    if (!GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user)) return 0;
    return (file_time(&kernel) + file_time(&user)) * 100;
}

uint64_t sys_memory_bytes(void) {
    PROCESS_MEMORY_COUNTERS c = { .cb = sizeof c };

    return GetProcessMemoryInfo(GetCurrentProcess(), &c, sizeof c) ? c.PagefileUsage : 0;
}

static DWORD WINAPI thread_main(void *arg) {
    struct sys_thread *t = arg;

    t->run(t->arg);
    return 0;
}

bool sys_thread_start(struct sys_thread *t, void (*run)(void *arg), void *arg) {
    *t = (struct sys_thread){ .run = run, .arg = arg };
    t->handle = (uintptr_t)CreateThread(NULL, 0, thread_main, t, 0, NULL);
    return t->handle != 0;
}

void sys_thread_join(struct sys_thread *t) {
    WaitForSingleObject((HANDLE)t->handle, INFINITE);
    CloseHandle((HANDLE)t->handle);
}

static BOOL WINAPI on_stop(DWORD event) {
    char *temp = temp_to_remove;

    (void)event;
    if (InterlockedIncrement(&stop_count) < 2) return TRUE;
    if (temp) DeleteFileA(temp);
    ExitProcess(130);
}

void sys_catch_stop(void) {
    SetConsoleCtrlHandler(on_stop, TRUE);
}

bool sys_stop_requested(void) {
    return stop_count != 0;
}

bool sys_stdout_is_terminal(void) {
    return _isatty(1) != 0;
}

bool sys_stderr_is_terminal(void) {
    return _isatty(2) != 0;
}

bool sys_program_folder(char out[SYS_PATH_MAX]) {
    DWORD n = GetModuleFileNameA(NULL, out, SYS_PATH_MAX);
    char *slash;

    if (n == 0 || n >= SYS_PATH_MAX) return false;
    slash = strrchr(out, '\\');
    if (!slash) return false;
    *slash = 0;
    return true;
}

bool sys_file_exists(const char *path) {
    DWORD attributes = GetFileAttributesA(path);

    return attributes != INVALID_FILE_ATTRIBUTES && !(attributes & FILE_ATTRIBUTE_DIRECTORY);
}

bool sys_full_path(const char *path, char out[SYS_PATH_MAX]) {
    DWORD n = GetFullPathNameA(path, SYS_PATH_MAX, out, NULL);

    return n != 0 && n < SYS_PATH_MAX && GetFileAttributesA(out) != INVALID_FILE_ATTRIBUTES;
}

/* Both the system's environment and the C library's copy, which the provider reads. */
void sys_setenv_default(const char *name, const char *value) {
    if (!getenv(name)) (void)_putenv_s(name, value);
}

void sys_setenv(const char *name, const char *value) {
    (void)_putenv_s(name, value);
}

bool sys_getenv(const char *name, char *out, size_t room) {
    const char *value = getenv(name);

    if (!value || !*value || strlen(value) >= room) return false;
    strcpy(out, value);
    return true;
}

void *sys_pages_alloc(size_t bytes) {
    return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void sys_pages_free(void *pages, size_t bytes) {
    (void)bytes;
    if (pages) VirtualFree(pages, 0, MEM_RELEASE);
}

/* ---- input ---- */

#define IO_MAX (1u << 30) /* what one call of the C library can be asked for */

const char *sys_in_open(struct sys_in *in, const char *path) {
    struct _stat64 st;

    *in = (struct sys_in){ .fd = -1 };
    if (!strcmp(path, "-")) {
        in->fd = 0;
        in->stream = true;
        _setmode(0, _O_BINARY);
        return NULL;
    }
    if (_stat64(path, &st) == 0 && (st.st_mode & _S_IFMT) == _S_IFDIR) return strerror(EISDIR);
    in->fd = _open(path, _O_RDONLY | _O_BINARY | _O_NOINHERIT | _O_SEQUENTIAL);
    if (in->fd < 0) return strerror(errno);
    if (_fstat64(in->fd, &st) != 0) {
        int e = errno;
        sys_in_close(in);
        return strerror(e);
    }
    in->stream = (st.st_mode & _S_IFMT) != _S_IFREG;
    in->bytes = in->stream ? 0 : (uint64_t)st.st_size;
    return NULL;
}

const char *sys_in_read(struct sys_in *in, void *buf, size_t len, size_t *got) {
    *got = 0;
    while (*got < len) {
        size_t want = len - *got;
        int n = _read(in->fd, (char *)buf + *got, want > IO_MAX ? IO_MAX : (unsigned)want);
        if (n < 0) return strerror(errno);
        if (n == 0) break;
        *got += (size_t)n;
    }
    return NULL;
}

/* Pipes tell how much is in them; of a console or a file a read is simply tried. */
bool sys_in_ready(struct sys_in *in, uint32_t timeout_ms) {
    HANDLE h = (HANDLE)_get_osfhandle(in->fd);
    uint64_t end = sys_now_ns() + timeout_ms * 1000000ull;

    if (GetFileType(h) != FILE_TYPE_PIPE)
        return WaitForSingleObject(h, timeout_ms) == WAIT_OBJECT_0;
    for (;;) {
        DWORD available = 0;
        if (!PeekNamedPipe(h, NULL, 0, NULL, &available, NULL)) return true; /* the end */
        if (available) return true;
        if (sys_now_ns() >= end) return false;
        Sleep(1);
    }
}

const char *sys_in_read_some(struct sys_in *in, void *buf, size_t len, size_t *got) {
    *got = 0;
    do {
        size_t want = len - *got;
        int n = _read(in->fd, (char *)buf + *got, want > IO_MAX ? IO_MAX : (unsigned)want);
        if (n < 0) return *got ? NULL : strerror(errno);
        if (n == 0) break;
        *got += (size_t)n;
    } while (*got < len && sys_in_ready(in, 0));
    return NULL;
}

void sys_in_close(struct sys_in *in) {
    if (in->fd > 0) _close(in->fd);
    in->fd = -1;
}

/* ---- output ---- */

const char *sys_out_create(struct sys_out *out, const char *path) {
    DWORD attributes;
    const char *slash, *back;
    int folder;

    *out = (struct sys_out){ .fd = -1 };
    if (!strcmp(path, "-")) {
        out->fd = 1;
        out->stream = true;
        _setmode(1, _O_BINARY);
        return NULL;
    }
    attributes = GetFileAttributesA(path);
    if (attributes != INVALID_FILE_ATTRIBUTES) {
        if (attributes & FILE_ATTRIBUTE_DIRECTORY) return strerror(EISDIR);
        if (attributes & FILE_ATTRIBUTE_DEVICE) {
            out->stream = true;
            out->fd = _open(path, _O_WRONLY | _O_BINARY | _O_NOINHERIT);
            return out->fd < 0 ? strerror(errno) : NULL;
        }
    }
    slash = strrchr(path, '/');
    back = strrchr(path, '\\');
    if (!slash || (back && back > slash)) slash = back;
    folder = slash ? (int)(slash - path + 1) : 0;
    /* In the same folder, so that the rename cannot cross volumes. */
    if (strlen(path) >= sizeof out->path ||
        snprintf(out->temp, SYS_PATH_MAX, "%.*s.%s.softnd-%08lx%08lx", folder, path, path + folder,
                 GetCurrentProcessId(),
                 (unsigned long)(sys_now_ns() & 0xffffffffu)) >= SYS_PATH_MAX) {
        out->temp[0] = 0;
        return strerror(ENAMETOOLONG);
    }
    strcpy(out->path, path);
    out->fd = _open(out->temp, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT,
                    _S_IREAD | _S_IWRITE);
    if (out->fd < 0) {
        out->temp[0] = 0;
        return strerror(errno);
    }
    temp_to_remove = out->temp;
    return NULL;
}

const char *sys_out_reserve(struct sys_out *out, uint64_t bytes) {
    FILE_ALLOCATION_INFO info;

    if (out->stream || !bytes) return NULL;
    if (bytes > INT64_MAX) return strerror(EFBIG);
    info.AllocationSize.QuadPart = (LONGLONG)bytes;
    /* Where the file system cannot reserve, the write finds out. */
    if (!SetFileInformationByHandle((HANDLE)_get_osfhandle(out->fd), FileAllocationInfo, &info,
                                    sizeof info) &&
        GetLastError() == ERROR_DISK_FULL)
        return strerror(ENOSPC);
    return NULL;
}

const char *sys_out_write(struct sys_out *out, const void *buf, size_t len) {
    const char *p = buf;

    while (len) {
        int n = _write(out->fd, p, len > IO_MAX ? IO_MAX : (unsigned)len);
        if (n < 0) return strerror(errno);
        if (n == 0) return strerror(ENOSPC);
        p += n;
        len -= (size_t)n;
    }
    return NULL;
}

const char *sys_out_keep(struct sys_out *out) {
    const char *why = NULL;
    int fd = out->fd;

    if (out->stream && fd == 1) return NULL;
    out->fd = -1;
    if (_close(fd) != 0) why = strerror(errno);
    if (!why && !out->stream && !MoveFileExA(out->temp, out->path, MOVEFILE_REPLACE_EXISTING))
        why = "the file cannot be given its name";
    if (!out->stream) {
        if (why) DeleteFileA(out->temp);
        temp_to_remove = NULL;
        out->temp[0] = 0;
    }
    return why;
}

void sys_out_drop(struct sys_out *out) {
    if (out->fd > 1) _close(out->fd);
    if (out->temp[0]) DeleteFileA(out->temp);
    temp_to_remove = NULL;
    out->temp[0] = 0;
    out->fd = -1;
}

const char sys_library_suffix[] = ".dll";

void *sys_library_open(const char *path, char *error, size_t room) {
    HMODULE library = LoadLibraryA(path);
    if (!library)
        snprintf(error, room, "%s cannot be loaded: error %lu", path,
                 (unsigned long)GetLastError());
    return library;
}

void *sys_library_symbol(void *library, const char *name) {
    return (void *)(uintptr_t)GetProcAddress(library, name);
}
