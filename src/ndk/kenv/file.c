/* SPDX-License-Identifier: MIT
 *
 * Files lie in one directory, whatever path the consumer gives: only the last part counts.
 */
#include <stdio.h>
#include <string.h>
#include "ndk/kenv/file.h"
#include "ndk/kenv/handle.h"
#include "ndk/verify/verify.h"
#include "os/prim/fault.h"

enum { PATH_ROOM = 4096, NAME_ROOM = 256 };

struct file {
    FILE *f;
    bool append;
    long at; /* where the next transfer without an offset starts */
};

static char directory[PATH_ROOM - NAME_ROOM];

bool ke_files_in(const char *path) {
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof directory) return false;
    memcpy(directory, path, n + 1);
    return true;
}

static NTSTATUS place(const UNICODE_STRING *name, char out[PATH_ROOM]) {
    char last[NAME_ROOM];
    size_t n = 0;
    if (!directory[0]) return STATUS_OBJECT_PATH_NOT_FOUND;
    for (USHORT i = 0; i < name->Length / 2; i++) {
        WCHAR c = name->Buffer[i];
        if (c == '\\') {
            n = 0;
            continue;
        }
        if (c < 32 || c > 126 || c == '/' || n == sizeof last - 1)
            return STATUS_OBJECT_NAME_INVALID;
        last[n++] = (char)c;
    }
    last[n] = 0;
    if (n == 0 || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        return STATUS_OBJECT_NAME_INVALID;
    snprintf(out, PATH_ROOM, "%s/%s", directory, last);
    return STATUS_SUCCESS;
}

static void close_file(void *body) {
    struct file *file = body;
    fclose(file->f);
    os_free(file);
}

static NTSTATUS open_as(const char *path, ULONG disposition, FILE **out, ULONG *how) {
    FILE *f = fopen(path, "r+b");
    bool there = f != NULL;
    if (there && disposition == FILE_CREATE) {
        fclose(f);
        return STATUS_OBJECT_NAME_COLLISION;
    }
    if (!there && (disposition == FILE_OPEN || disposition == FILE_OVERWRITE))
        return STATUS_OBJECT_NAME_NOT_FOUND;
    bool empty = !there || disposition == FILE_OVERWRITE || disposition == FILE_OVERWRITE_IF ||
                 disposition == FILE_SUPERSEDE;
    if (empty) {
        if (f) fclose(f);
        f = fopen(path, "w+b");
    }
    *out = f;
    *how = !there ? FILE_CREATED : empty ? FILE_OVERWRITTEN : FILE_OPENED;
    return f ? STATUS_SUCCESS : STATUS_ACCESS_DENIED;
}

NTSTATUS ZwCreateFile(PHANDLE out, ACCESS_MASK access, POBJECT_ATTRIBUTES oa, PIO_STATUS_BLOCK io,
                      PLARGE_INTEGER allocation, ULONG attributes, ULONG share, ULONG disposition,
                      ULONG options, PVOID ea, ULONG ea_len) {
    char path[PATH_ROOM];
    ULONG how = 0;
    (void)allocation;
    (void)attributes;
    (void)share;
    (void)options;
    (void)ea;
    (void)ea_len;
    if (ndk_verifying()) ke_call_enter("ZwCreateFile", PASSIVE_LEVEL);
    if (!out || !io || !oa || !oa->ObjectName || oa->RootDirectory ||
        disposition > FILE_OVERWRITE_IF)
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status = place(oa->ObjectName, path);
    if (status != STATUS_SUCCESS) return status;
    struct file *file = os_zalloc(sizeof *file);
    if (!file) return STATUS_INSUFFICIENT_RESOURCES;
    status = open_as(path, disposition, &file->f, &how);
    if (status != STATUS_SUCCESS) {
        os_free(file);
        return status;
    }
    file->append = (access & FILE_APPEND_DATA) && !(access & (FILE_WRITE_DATA | GENERIC_WRITE));
    *out = ke_handle_open(KE_HANDLE_FILE, file, close_file);
    if (!*out) {
        close_file(file);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    io->Status = STATUS_SUCCESS;
    io->Information = how;
    return STATUS_SUCCESS;
}

/* Goes where the transfer starts. */
static bool seek(struct file *file, const LARGE_INTEGER *offset, bool write) {
    bool current =
        !offset || (offset->HighPart == -1 && offset->LowPart == FILE_USE_FILE_POINTER_POSITION);
    bool end = write && (file->append || (offset && offset->HighPart == -1 &&
                                          offset->LowPart == FILE_WRITE_TO_END_OF_FILE));
    if (end) return fseek(file->f, 0, SEEK_END) == 0;
    if (current) return fseek(file->f, file->at, SEEK_SET) == 0;
    return offset->QuadPart >= 0 && fseek(file->f, (long)offset->QuadPart, SEEK_SET) == 0;
}

static NTSTATUS transfer(const char *call, HANDLE handle, PIO_STATUS_BLOCK io, void *buf, ULONG len,
                         const LARGE_INTEGER *offset, bool write) {
    if (ndk_verifying()) ke_call_enter(call, PASSIVE_LEVEL);
    struct file *file = ke_handle_body(handle, KE_HANDLE_FILE);
    if (!file) return STATUS_INVALID_HANDLE;
    if (!io || (len && !buf) || !seek(file, offset, write)) return STATUS_INVALID_PARAMETER;
    size_t n = write ? fwrite(buf, 1, len, file->f) : fread(buf, 1, len, file->f);
    if (write && (n < len || fflush(file->f) != 0)) return STATUS_DISK_FULL;
    file->at = ftell(file->f);
    io->Information = n;
    io->Status = !write && n == 0 && len ? STATUS_END_OF_FILE : STATUS_SUCCESS;
    return io->Status;
}

NTSTATUS ZwWriteFile(HANDLE handle, HANDLE event, PIO_APC_ROUTINE apc, PVOID context,
                     PIO_STATUS_BLOCK io, PVOID buf, ULONG len, PLARGE_INTEGER offset, PULONG key) {
    (void)context;
    (void)key;
    if (event || apc) return STATUS_NOT_SUPPORTED;
    return transfer("ZwWriteFile", handle, io, buf, len, offset, true);
}

NTSTATUS ZwReadFile(HANDLE handle, HANDLE event, PIO_APC_ROUTINE apc, PVOID context,
                    PIO_STATUS_BLOCK io, PVOID buf, ULONG len, PLARGE_INTEGER offset, PULONG key) {
    (void)context;
    (void)key;
    if (event || apc) return STATUS_NOT_SUPPORTED;
    return transfer("ZwReadFile", handle, io, buf, len, offset, false);
}

NTSTATUS ZwFlushBuffersFile(HANDLE handle, PIO_STATUS_BLOCK io) {
    struct file *file = ke_handle_body(handle, KE_HANDLE_FILE);
    if (!file) return STATUS_INVALID_HANDLE;
    NTSTATUS status = fflush(file->f) == 0 ? STATUS_SUCCESS : STATUS_DISK_FULL;
    if (io) io->Status = status;
    return status;
}
