/* SPDX-License-Identifier: MIT */
#include "host.h"
#include <direct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

void host_setenv(const char *name, const char *value) {
    (void)_putenv_s(name, value);
}

bool host_make_folder(char *buf, size_t size) {
    char tmp[MAX_PATH];
    if (!GetTempPathA(sizeof tmp, tmp)) return false;
    int n = snprintf(buf, size, "%ssoftndk-test-%lu", tmp, GetCurrentProcessId());
    return n > 0 && (size_t)n < size && _mkdir(buf) == 0;
}

void host_remove_folder(const char *path) {
    _rmdir(path);
}

/* ---- the child ---- */

static HANDLE child, from_child;

bool host_child_start(const char *role, uint16_t port) {
    SECURITY_ATTRIBUTES inherited = { .nLength = sizeof inherited, .bInheritHandle = TRUE };
    STARTUPINFOA start = { .cb = sizeof start, .dwFlags = STARTF_USESTDHANDLES };
    PROCESS_INFORMATION info;
    char path[MAX_PATH], command[MAX_PATH + 64];
    if (GetModuleFileNameA(NULL, path, sizeof path) >= sizeof path) return false;
    snprintf(command, sizeof command, "\"%s\" --child %s %u", path, role, port);
    if (!CreatePipe(&from_child, &start.hStdOutput, &inherited, 0)) return false;
    SetHandleInformation(from_child, HANDLE_FLAG_INHERIT, 0);
    start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    bool ok = CreateProcessA(path, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &info);
    CloseHandle(start.hStdOutput);
    if (!ok) return false;
    CloseHandle(info.hThread);
    child = info.hProcess;
    return true;
}

bool host_child_says(uint32_t within_ms, unsigned *number) {
    char line[16];
    DWORD n = 0, there, got;
    for (ULONGLONG end = GetTickCount64() + within_ms; n < sizeof line - 1;) {
        if (!PeekNamedPipe(from_child, NULL, 0, NULL, &there, NULL)) return false;
        if (there == 0) {
            if (GetTickCount64() >= end) return false;
            Sleep(1);
            continue;
        }
        if (!ReadFile(from_child, line + n, 1, &got, NULL)) return false;
        if (line[n] == '\n') break;
        n++;
    }
    line[n] = 0;
    *number = (unsigned)strtoul(line, NULL, 10);
    return true;
}

bool host_child_kill(void) {
    bool ok = TerminateProcess(child, 9) && WaitForSingleObject(child, 60000) == WAIT_OBJECT_0;
    CloseHandle(child);
    CloseHandle(from_child);
    return ok;
}

static DWORD WINAPI end_later(void *arg) {
    Sleep((DWORD)(uintptr_t)arg);
    TerminateProcess(GetCurrentProcess(), 3);
    return 0;
}

void host_limit_life(unsigned seconds) {
    HANDLE thread = CreateThread(NULL, 0, end_later, (void *)((uintptr_t)seconds * 1000), 0, NULL);
    if (thread) CloseHandle(thread);
}

void host_wait_to_be_killed(void) {
    Sleep(INFINITE);
}

/* Wine may keep the sockets of a process that was busy with them. Pipes end. */
bool host_killed_ends(void) {
    const char *transport = getenv("SOFTND_TRANSPORT");
    bool wine = GetProcAddress(GetModuleHandleA("ntdll.dll"), "wine_get_version") != NULL;
    return !wine || (transport && strcmp(transport, "local") == 0);
}

/* ---- the network ---- */

bool host_enter_namespace(void) {
    return false;
}

bool host_take_ports(uint16_t first, const char **why) {
    (void)first;
    *why = "there are no network namespaces";
    return false;
}
void host_give_ports(void) {
}

uint16_t host_connect_shared(uint16_t port) {
    (void)port;
    return 0;
}
void host_end_shared(void) {
}
