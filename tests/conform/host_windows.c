/* SPDX-License-Identifier: MIT
 * host_windows.c - see host.h.
 */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t host_now_ms(void) {
    return GetTickCount64();
}

struct host_thread {
    HANDLE handle;
    void (*fn)(void *arg);
    void *arg;
};

static DWORD WINAPI run_thread(void *arg) {
    struct host_thread *thread = arg;
    thread->fn(thread->arg);
    return 0;
}

struct host_thread *host_thread_start(void (*fn)(void *arg), void *arg) {
    struct host_thread *thread = malloc(sizeof *thread);
    if (!thread) return NULL;
    thread->fn = fn;
    thread->arg = arg;
    thread->handle = CreateThread(NULL, 0, run_thread, thread, 0, NULL);
    if (!thread->handle) {
        free(thread);
        return NULL;
    }
    return thread;
}

void host_thread_join(struct host_thread *thread) {
    WaitForSingleObject(thread->handle, INFINITE);
    CloseHandle(thread->handle);
    free(thread);
}

size_t host_page_size(void) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
}

void *host_pages_alloc(size_t bytes) {
    return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

/* Either kind of pages: a view is not of VirtualAlloc's. Of a part of what was allocated the memory
 * goes and the addresses stay, until the part with the first page goes. */
void host_pages_free(void *pages, size_t bytes) {
    MEMORY_BASIC_INFORMATION m;
    if (!VirtualQuery(pages, &m, sizeof m)) return;
    if (m.Type == MEM_MAPPED)
        UnmapViewOfFile(pages);
    else if (m.AllocationBase == pages && m.RegionSize <= bytes)
        VirtualFree(pages, 0, MEM_RELEASE);
    else
        VirtualFree(pages, bytes, MEM_DECOMMIT);
}

bool host_pages_readonly(void *pages, size_t bytes) {
    DWORD old;
    return VirtualProtect(pages, bytes, PAGE_READONLY, &old) != 0;
}

void *host_file_view(size_t bytes) {
    WCHAR folder[MAX_PATH], name[MAX_PATH];
    void *view = NULL;
    if (!GetTempPathW(MAX_PATH, folder) || !GetTempFileNameW(folder, L"cnf", 0, name)) return NULL;
    HANDLE file = CreateFileW(name, GENERIC_READ | GENERIC_WRITE, 0, NULL, CREATE_ALWAYS,
                              FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (file == INVALID_HANDLE_VALUE) return NULL;
    HANDLE section = CreateFileMappingW(file, NULL, PAGE_READWRITE, (DWORD)((uint64_t)bytes >> 32),
                                        (DWORD)bytes, NULL);
    if (section) view = MapViewOfFile(section, FILE_MAP_ALL_ACCESS, 0, 0, bytes);
    if (section) CloseHandle(section);
    CloseHandle(file);
    return view;
}

bool host_parse_address(const char *text, struct sockaddr_storage *addr, ULONG *len) {
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    WSADATA data;
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0) return false;
    if (getaddrinfo(text, NULL, &hints, &found) != 0) return false;
    memset(addr, 0, sizeof *addr);
    memcpy(addr, found->ai_addr, found->ai_addrlen);
    *len = (ULONG)found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

void host_setenv(const char *name, const char *value) {
    (void)_putenv_s(name, value);
}

size_t host_handle_count(void) {
    DWORD count = 0;
    return GetProcessHandleCount(GetCurrentProcess(), &count) ? count : 0;
}

struct host_process {
    HANDLE handle;
};

/* Children end with this process, however it ends. */
static HANDLE family(void) {
    static HANDLE job;
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limit = { .BasicLimitInformation.LimitFlags =
                                                       JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE };
    if (job) return job;
    job = CreateJobObjectW(NULL, NULL);
    if (job)
        (void)SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limit, sizeof limit);
    return job;
}

/* Quoted as the C library of the child takes it apart: backslashes count only before quotes. */
static bool append_quoted(char *line, size_t room, const char *arg) {
    size_t at = strlen(line), slashes = 0;
    if (room - at < 2 * strlen(arg) + 4) return false;
    if (at) line[at++] = ' ';
    line[at++] = '"';
    for (; *arg; arg++) {
        if (*arg == '\\') {
            slashes++;
        } else {
            if (*arg == '"')
                for (slashes++; slashes != 0; slashes--)
                    line[at++] = '\\';
            slashes = 0;
        }
        line[at++] = *arg;
    }
    for (; slashes != 0; slashes--)
        line[at++] = '\\';
    line[at++] = '"';
    line[at] = 0;
    return true;
}

struct host_process *host_process_start(const char *const *args) {
    char program[MAX_PATH], line[8192] = "";
    STARTUPINFOA start = { .cb = sizeof start };
    PROCESS_INFORMATION info;
    DWORD n = GetModuleFileNameA(NULL, program, MAX_PATH);
    if (n == 0 || n == MAX_PATH || !append_quoted(line, sizeof line, program)) return NULL;
    for (; *args; args++)
        if (!append_quoted(line, sizeof line, *args)) return NULL;
    struct host_process *process = malloc(sizeof *process);
    if (!process) return NULL;
    fflush(NULL);
    if (!CreateProcessA(program, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &info)) {
        free(process);
        return NULL;
    }
    CloseHandle(info.hThread);
    if (family()) (void)AssignProcessToJobObject(family(), info.hProcess);
    process->handle = info.hProcess;
    return process;
}

#define KILLED 0xDEAD

void host_process_kill(struct host_process *process) {
    TerminateProcess(process->handle, KILLED);
}

bool host_process_wait(struct host_process *process, uint64_t deadline_ms, int *exit_code) {
    uint64_t now = host_now_ms();
    DWORD code, left = deadline_ms > now ? (DWORD)(deadline_ms - now) : 0;
    if (WaitForSingleObject(process->handle, left) != WAIT_OBJECT_0) return false;
    if (!GetExitCodeProcess(process->handle, &code)) return false;
    *exit_code = code == KILLED ? -1 : (int)code;
    return true;
}

void host_process_free(struct host_process *process) {
    CloseHandle(process->handle);
    free(process);
}

bool host_allow_handles(size_t count) {
    return count <= 65536; /* a process may have millions */
}

static bool is_wine(void) {
    return GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != NULL;
}

const char *host_lacks(enum host_thing thing) {
    switch (thing) {
    case HOST_CANCEL_IO:
        return "on Windows CancelIoEx finds nothing to cancel (docs/windows.md)";
    case HOST_SHARED_PORT:
        return is_wine() ? "Wine shares no port with a listener" : NULL;
    case HOST_KILLED_ENDS: {
        const char *transport = getenv("SOFTND_TRANSPORT");
        bool pipes = transport && strcmp(transport, "local") == 0;
        return is_wine() && !pipes
                   ? "Wine may keep sockets of a process that ended while it was busy with them"
                   : NULL;
    }
    case HOST_CALLBACK_STATUS:
        return is_wine() ? "Wine hands completion routines Win32 errors" : NULL;
    case HOST_ADDRESS_FREED:
        return is_wine() ? "Wine keeps an address until the thread that polled the socket has heard"
                         : NULL;
    }
    return NULL;
}
