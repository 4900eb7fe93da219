/* SPDX-License-Identifier: MIT
 * The rest of the kernel environment: waits for several objects, mutexes, resources, exceptions,
 * the registry and files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <ntddk.h>
#undef min
#undef max
#include "softndk.h"
#include "host.h"
#include "support/testing.h"

#define TAG 0x324E524B /* "KRN2" */
#define SECOND 10000000ll

static NTSTATUS wait_for(PVOID object, LONGLONG timeout) {
    LARGE_INTEGER t = { .QuadPart = timeout };
    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &t);
}

static NTSTATUS wait_many(ULONG n, PVOID *objects, WAIT_TYPE type, LONGLONG timeout) {
    KWAIT_BLOCK blocks[MAXIMUM_WAIT_OBJECTS];
    LARGE_INTEGER t = { .QuadPart = timeout };
    return KeWaitForMultipleObjects(n, objects, type, Executive, KernelMode, FALSE, &t, blocks);
}

static PVOID start(HANDLE *handle, PKSTART_ROUTINE routine, PVOID ctx) {
    PVOID object;
    CHECK_EQ(PsCreateSystemThread(handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, routine, ctx),
             STATUS_SUCCESS);
    CHECK_EQ(ObReferenceObjectByHandle(*handle, 0, NULL, KernelMode, &object, NULL),
             STATUS_SUCCESS);
    return object;
}

static void finish(HANDLE handle, PVOID object) {
    CHECK_EQ(wait_for(object, -20 * SECOND), STATUS_SUCCESS);
    ObDereferenceObject(object);
    CHECK_EQ(ZwClose(handle), STATUS_SUCCESS);
}

static void verifier_is_on(void) {
    CHECK_EQ(softndk_set("verifier", "report"), 0);
}

/* ---- waits for several objects ---- */

static void wait_any_names_the_object_and_takes_only_it(void) {
    KEVENT a, b;
    KSEMAPHORE s;
    PVOID all[] = { &a, &b, &s };
    KeInitializeEvent(&a, SynchronizationEvent, FALSE);
    KeInitializeEvent(&b, SynchronizationEvent, FALSE);
    KeInitializeSemaphore(&s, 1, 1);
    CHECK_EQ(wait_many(3, all, WaitAny, 0), STATUS_WAIT_0 + 2);
    CHECK_EQ(wait_many(3, all, WaitAny, 0), STATUS_TIMEOUT);
    KeSetEvent(&b, 0, FALSE);
    KeSetEvent(&a, 0, FALSE);
    CHECK_EQ(wait_many(3, all, WaitAny, 0), STATUS_WAIT_0);
    CHECK_EQ(KeReadStateEvent(&b), 1);
    CHECK_EQ(wait_many(3, all, WaitAny, -SECOND), STATUS_WAIT_0 + 1);
    CHECK_EQ(wait_many(3, all, WaitAny, -SECOND / 50), STATUS_TIMEOUT);
}

static void wait_all_takes_nothing_until_all_are_there(void) {
    KEVENT a, b;
    PVOID all[] = { &a, &b };
    KeInitializeEvent(&a, SynchronizationEvent, TRUE);
    KeInitializeEvent(&b, SynchronizationEvent, FALSE);
    CHECK_EQ(wait_many(2, all, WaitAll, 0), STATUS_TIMEOUT);
    CHECK_EQ(wait_many(2, all, WaitAll, -SECOND / 50), STATUS_TIMEOUT);
    CHECK_EQ(KeReadStateEvent(&a), 1);
    KeSetEvent(&b, 0, FALSE);
    CHECK_EQ(wait_many(2, all, WaitAll, 0), STATUS_SUCCESS);
    CHECK_EQ(KeReadStateEvent(&a), 0);
    CHECK_EQ(KeReadStateEvent(&b), 0);
}

struct relay {
    KEVENT go[4], done;
    LONG got[4];
};

static VOID relay_any(PVOID ctx) {
    struct relay *r = ctx;
    PVOID all[4];
    for (int i = 0; i < 4; i++)
        all[i] = &r->go[i];
    for (;;) {
        NTSTATUS st = wait_many(4, all, WaitAny, -20 * SECOND);
        if (st < STATUS_WAIT_0 || st > STATUS_WAIT_0 + 3) return;
        InterlockedIncrement(&r->got[st]);
        KeSetEvent(&r->done, 0, FALSE);
        if (st == STATUS_WAIT_0 + 3) return;
    }
}

static void waiter_of_several_is_woken_by_each(void) {
    struct relay r = { .got = { 0 } };
    HANDLE h;
    for (int i = 0; i < 4; i++)
        KeInitializeEvent(&r.go[i], SynchronizationEvent, FALSE);
    KeInitializeEvent(&r.done, SynchronizationEvent, FALSE);
    PVOID thread = start(&h, relay_any, &r);
    for (int i = 0; i < 40; i++) {
        KeSetEvent(&r.go[i % 3], 0, FALSE);
        CHECK_EQ(wait_for(&r.done, -20 * SECOND), STATUS_SUCCESS);
    }
    KeSetEvent(&r.go[3], 0, FALSE);
    finish(h, thread);
    CHECK_EQ(r.got[0] + r.got[1] + r.got[2], 40);
    CHECK_EQ(r.got[0], 14);
    CHECK_EQ(r.got[3], 1);
}

static VOID wait_all_of_four(PVOID ctx) {
    struct relay *r = ctx;
    PVOID all[4];
    for (int i = 0; i < 4; i++)
        all[i] = &r->go[i];
    r->got[0] = wait_many(4, all, WaitAll, -20 * SECOND) == STATUS_SUCCESS;
    KeSetEvent(&r->done, 0, FALSE);
}

static void waiter_for_all_is_woken_by_the_last(void) {
    struct relay r = { .got = { 0 } };
    HANDLE h;
    for (int i = 0; i < 4; i++)
        KeInitializeEvent(&r.go[i], SynchronizationEvent, FALSE);
    KeInitializeEvent(&r.done, NotificationEvent, FALSE);
    PVOID thread = start(&h, wait_all_of_four, &r);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(KeReadStateEvent(&r.done), 0);
        KeSetEvent(&r.go[3 - i], 0, FALSE);
    }
    finish(h, thread);
    CHECK_EQ(r.got[0], 1);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(KeReadStateEvent(&r.go[i]), 0);
}

/* ---- mutexes and resources ---- */

struct shared {
    KMUTEX mutex;
    FAST_MUTEX fast;
    ERESOURCE resource;
    KEVENT held, release;
    LONG plain, inside, most, failures;
};

static void mutex_is_owned_again_by_its_owner(void) {
    KMUTEX m;
    KeInitializeMutex(&m, 0);
    CHECK_EQ(KeReadStateMutex(&m), 1);
    CHECK_EQ(wait_for(&m, 0), STATUS_SUCCESS);
    CHECK_EQ(wait_for(&m, 0), STATUS_SUCCESS);
    CHECK_EQ(KeReadStateMutex(&m), -1);
    CHECK_EQ(KeReleaseMutex(&m, FALSE), -1);
    CHECK_EQ(KeReleaseMutex(&m, FALSE), 0);
    CHECK_EQ(KeReadStateMutex(&m), 1);
}

static VOID add_under_mutex(PVOID ctx) {
    struct shared *s = ctx;
    for (int i = 0; i < 2000; i++) {
        if (wait_for(&s->mutex, -20 * SECOND) != STATUS_SUCCESS) InterlockedIncrement(&s->failures);
        s->plain++;
        KeReleaseMutex(&s->mutex, FALSE);
    }
}

static void mutex_excludes(void) {
    static struct shared s;
    HANDLE h[3];
    PVOID t[3];
    KeInitializeMutex(&s.mutex, 0);
    for (int i = 0; i < 3; i++)
        t[i] = start(&h[i], add_under_mutex, &s);
    for (int i = 0; i < 3; i++)
        finish(h[i], t[i]);
    CHECK_EQ(s.failures, 0);
    CHECK_EQ(s.plain, 6000);
}

static void mutex_of_another_raises(void) {
    volatile NTSTATUS code = 0;
    KMUTEX m;
    KeInitializeMutex(&m, 0);
    __try {
        KeReleaseMutex(&m, FALSE);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        code = GetExceptionCode();
    }
    CHECK_EQ(code, STATUS_MUTANT_NOT_OWNED);
    CHECK_EQ(softndk_violations("spin_lock"), 1);
    softndk_violations_reset();
}

static VOID try_fast(PVOID ctx) {
    struct shared *s = ctx;
    s->failures = ExTryToAcquireFastMutex(&s->fast);
}

static void fast_mutex_is_tried(void) {
    static struct shared s;
    HANDLE h;
    ExInitializeFastMutex(&s.fast);
    CHECK(ExTryToAcquireFastMutex(&s.fast));
    CHECK_EQ(KeGetCurrentIrql(), APC_LEVEL);
    ExReleaseFastMutex(&s.fast);
    CHECK_EQ(KeGetCurrentIrql(), PASSIVE_LEVEL);
    ExAcquireFastMutex(&s.fast);
    CHECK_EQ(PsCreateSystemThread(&h, 0, NULL, NULL, NULL, try_fast, &s), STATUS_SUCCESS);
    PVOID t;
    ObReferenceObjectByHandle(h, 0, NULL, KernelMode, &t, NULL);
    finish(h, t);
    CHECK_EQ(s.failures, FALSE);
    ExReleaseFastMutex(&s.fast);
}

static VOID hold_shared(PVOID ctx) {
    struct shared *s = ctx;
    ExAcquireResourceSharedLite(&s->resource, TRUE);
    KeSetEvent(&s->held, 0, FALSE);
    wait_for(&s->release, -20 * SECOND);
    ExReleaseResourceLite(&s->resource);
}

static void resource_is_shared_or_exclusive(void) {
    static struct shared s;
    HANDLE h;
    ERESOURCE *r = &s.resource;
    KeInitializeEvent(&s.held, NotificationEvent, FALSE);
    KeInitializeEvent(&s.release, NotificationEvent, FALSE);
    CHECK_EQ(ExInitializeResourceLite(r), STATUS_SUCCESS);
    CHECK(ExAcquireResourceExclusiveLite(r, TRUE));
    CHECK(ExAcquireResourceExclusiveLite(r, FALSE)); /* again */
    CHECK(ExAcquireResourceSharedLite(r, FALSE));
    CHECK(ExIsResourceAcquiredExclusiveLite(r));
    CHECK_EQ(ExIsResourceAcquiredSharedLite(r), 3);
    for (int i = 0; i < 3; i++)
        ExReleaseResourceLite(r);
    CHECK_EQ(ExIsResourceAcquiredSharedLite(r), 0);
    PVOID t = start(&h, hold_shared, &s);
    CHECK_EQ(wait_for(&s.held, -20 * SECOND), STATUS_SUCCESS);
    CHECK(!ExAcquireResourceExclusiveLite(r, FALSE));
    CHECK(ExAcquireResourceSharedLite(r, FALSE));
    CHECK(!ExIsResourceAcquiredExclusiveLite(r));
    ExReleaseResourceLite(r);
    KeSetEvent(&s.release, 0, FALSE);
    CHECK(ExAcquireResourceExclusiveLite(r, TRUE)); /* when the reader has left */
    ExConvertExclusiveToSharedLite(r);
    CHECK(!ExIsResourceAcquiredExclusiveLite(r));
    CHECK_EQ(ExIsResourceAcquiredSharedLite(r), 1);
    ExReleaseResourceLite(r);
    finish(h, t);
    CHECK_EQ(ExDeleteResourceLite(r), STATUS_SUCCESS);
}

static VOID read_and_write(PVOID ctx) {
    struct shared *s = ctx;
    for (int i = 0; i < 500; i++) {
        if (i % 4 == 0) {
            ExAcquireResourceExclusiveLite(&s->resource, TRUE);
            if (InterlockedIncrement(&s->inside) != 1) InterlockedIncrement(&s->failures);
            s->plain++;
        } else {
            ExAcquireResourceSharedLite(&s->resource, TRUE);
            if (InterlockedIncrement(&s->inside) > 1) s->most = 1;
        }
        InterlockedDecrement(&s->inside);
        ExReleaseResourceLite(&s->resource);
    }
}

static void resource_excludes_writers(void) {
    static struct shared s;
    HANDLE h[4];
    PVOID t[4];
    ExInitializeResourceLite(&s.resource);
    for (int i = 0; i < 4; i++)
        t[i] = start(&h[i], read_and_write, &s);
    for (int i = 0; i < 4; i++)
        finish(h[i], t[i]);
    CHECK_EQ(s.failures, 0);
    CHECK_EQ(s.plain, 500);
    ExDeleteResourceLite(&s.resource);
}

static void resource_misuse_is_reported(void) {
    ERESOURCE r;
    ExInitializeResourceLite(&r);
    ExReleaseResourceLite(&r);
    ExConvertExclusiveToSharedLite(&r);
    ExAcquireResourceSharedLite(&r, TRUE);
    ExDeleteResourceLite(&r);
    CHECK_EQ(softndk_violations("spin_lock"), 3);
    softndk_violations_reset();
}

/* ---- exceptions ---- */

static __attribute__((noinline)) void raise_if(NTSTATUS st) {
    if (st != STATUS_SUCCESS) ExRaiseStatus(st);
}

static __attribute__((noinline)) void raise_below(NTSTATUS st) {
    raise_if(STATUS_SUCCESS);
    raise_if(st);
}

static void handler_runs_for_a_raise_in_a_callee(void) {
    volatile int body = 0, handler = 0;
    __try {
        body = 1;
        raise_below(STATUS_INVALID_PARAMETER);
        body = 2;
    } __except (GetExceptionCode() == STATUS_INVALID_PARAMETER ? EXCEPTION_EXECUTE_HANDLER
                                                               : EXCEPTION_CONTINUE_SEARCH) {
        handler = 1;
    }
    CHECK_EQ(body, 1);
    CHECK_EQ(handler, 1);
}

static void handler_does_not_run_without_a_raise(void) {
    volatile int body = 0;
    __try {
        body++;
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        body = 100;
    }
    CHECK_EQ(body, 1);
}

static void outer_frame_catches_what_the_inner_lets_pass(void) {
    volatile NTSTATUS inner = 0, outer = 0;
    __try {
        __try {
            ExRaiseAccessViolation();
        } __except ((inner = GetExceptionCode()), EXCEPTION_CONTINUE_SEARCH) {
            inner = 0;
        }
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        outer = GetExceptionCode();
    }
    CHECK_EQ(inner, STATUS_ACCESS_VIOLATION);
    CHECK_EQ(outer, STATUS_ACCESS_VIOLATION);
}

static int return_from_body(void) {
    __try {
        return 7;
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        return 8;
    }
    return 9;
}

static void frame_that_was_returned_from_is_gone(void) {
    volatile int outer = 0;
    __try {
        CHECK_EQ(return_from_body(), 7);
        ExRaiseStatus(STATUS_NO_MEMORY); /* has to come here */
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        outer = 1;
    }
    CHECK_EQ(outer, 1);
    volatile int again = 0;
    __try {
        __try {
            ExRaiseStatus(STATUS_NO_MEMORY);
        } __except (EXCEPTION_EXECUTE_HANDLER) {
            ExRaiseStatus(STATUS_CANCELLED); /* in a handler: for the outer frame */
        }
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        again = GetExceptionCode() == STATUS_CANCELLED;
    }
    CHECK_EQ(again, 1);
}

static void lock_of_missing_memory_raises(void) {
    volatile NTSTATUS code = 0;
    PMDL m = IoAllocateMdl((PVOID)(ULONG_PTR)PAGE_SIZE, 100, FALSE, FALSE, NULL);
    __try {
        MmProbeAndLockPages(m, KernelMode, IoReadAccess);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        code = GetExceptionCode();
    }
    CHECK_EQ(code, STATUS_ACCESS_VIOLATION);
    CHECK_EQ(m->MdlFlags & MDL_PAGES_LOCKED, 0);
    IoFreeMdl(m);
    code = 0;
    static const char constant[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE))) = "read only";
    m = IoAllocateMdl((PVOID)(ULONG_PTR)constant, sizeof constant, FALSE, FALSE, NULL);
    __try {
        MmProbeAndLockPages(m, KernelMode, IoModifyAccess);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        code = GetExceptionCode();
    }
    CHECK_EQ(code, STATUS_ACCESS_VIOLATION);
    MmProbeAndLockPages(m, KernelMode, IoReadAccess);
    MmUnlockPages(m);
    IoFreeMdl(m);
}

static void probes_raise_for_memory_and_alignment(void) {
    ULONG64 here[2] = { 0 };
    volatile NTSTATUS code = 0;
    ProbeForRead(here, sizeof here, 8);
    ProbeForWrite(here, sizeof here, 8);
    ProbeForRead(NULL, 0, 1);
    __try {
        ProbeForRead((PUCHAR)here + 1, 8, 8);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        code = GetExceptionCode();
    }
    CHECK_EQ(code, STATUS_DATATYPE_MISALIGNMENT);
    __try {
        ProbeForRead((PVOID) ~(ULONG_PTR)15, 64, 1);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        code = GetExceptionCode();
    }
    CHECK_EQ(code, STATUS_ACCESS_VIOLATION);
    code = 0;
    __try {
        ProbeForWrite((PVOID)(ULONG_PTR)PAGE_SIZE, 4, 4);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        code = GetExceptionCode();
    }
    CHECK_EQ(code, STATUS_ACCESS_VIOLATION);
}

static void ipv4_address_has_the_names_of_windows(void) {
    SOCKADDR_IN a = { .sin_family = AF_INET };
    a.sin_addr.S_un.S_addr = RtlUlongByteSwap(0x7F000001);
    CHECK_EQ(a.sin_addr.S_un.S_un_b.s_b1, 127);
    CHECK_EQ(a.sin_addr.S_un.S_un_w.s_w2, RtlUshortByteSwap(1));
    CHECK_EQ(a.sin_addr.s_addr, a.sin_addr.S_un.S_addr);
    CHECK_EQ(sizeof a, 16);
}

/* ---- handles ---- */

static void handle_that_is_none_is_refused(void) {
    PVOID object;
    CHECK_EQ(ZwClose(NULL), STATUS_INVALID_HANDLE);
    CHECK_EQ(ZwClose(&object), STATUS_INVALID_HANDLE);
    CHECK_EQ(ObReferenceObjectByHandle(&object, 0, NULL, KernelMode, &object, NULL),
             STATUS_INVALID_HANDLE);
}

/* ---- registry ---- */

static OBJECT_ATTRIBUTES attributes(UNICODE_STRING *name, PCWSTR text, HANDLE root) {
    OBJECT_ATTRIBUTES oa;
    RtlInitUnicodeString(name, text);
    InitializeObjectAttributes(&oa, name, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE, root, NULL);
    return oa;
}

static NTSTATUS open_key(HANDLE *out, PCWSTR text, HANDLE root) {
    UNICODE_STRING name;
    OBJECT_ATTRIBUTES oa = attributes(&name, text, root);
    return ZwOpenKey(out, KEY_READ, &oa);
}

static NTSTATUS create_key(HANDLE *out, PCWSTR text, ULONG *how) {
    UNICODE_STRING name;
    OBJECT_ATTRIBUTES oa = attributes(&name, text, NULL);
    return ZwCreateKey(out, KEY_ALL_ACCESS, &oa, 0, NULL, REG_OPTION_NON_VOLATILE, how);
}

static NTSTATUS set(HANDLE key, PCWSTR text, ULONG type, const void *data, ULONG len) {
    UNICODE_STRING name;
    RtlInitUnicodeString(&name, text);
    return ZwSetValueKey(key, &name, 0, type, (PVOID)(ULONG_PTR)data, len);
}

static NTSTATUS get(HANDLE key, PCWSTR text, void *out, ULONG len, ULONG *need) {
    UNICODE_STRING name;
    RtlInitUnicodeString(&name, text);
    return ZwQueryValueKey(key, &name, KeyValuePartialInformation, out, len, need);
}

static void registry_keeps_values(void) {
    union {
        KEY_VALUE_PARTIAL_INFORMATION info;
        UCHAR bytes[64];
    } v;
    HANDLE key, below;
    ULONG how = 0, need = 0, number = 0x12345678;
    CHECK_EQ(create_key(&key, u"\\Registry\\Machine\\Software\\SoftND\\Test", &how),
             STATUS_SUCCESS);
    CHECK_EQ(how, REG_CREATED_NEW_KEY);
    CHECK_EQ(set(key, u"Number", REG_DWORD, &number, 4), STATUS_SUCCESS);
    CHECK_EQ(set(key, u"Text", REG_SZ, u"caf\u00e9", 10), STATUS_SUCCESS);
    CHECK_EQ(ZwClose(key), STATUS_SUCCESS);
    CHECK_EQ(open_key(&key, u"\\REGISTRY\\machine\\SOFTWARE\\softnd", NULL), STATUS_SUCCESS);
    CHECK_EQ(open_key(&below, u"test", key), STATUS_SUCCESS);
    CHECK_EQ(get(below, u"number", &v, sizeof v, &need), STATUS_SUCCESS);
    CHECK_EQ(need, 16);
    CHECK_EQ(v.info.Type, REG_DWORD);
    CHECK_EQ(v.info.DataLength, 4);
    CHECK(memcmp(v.info.Data, &number, 4) == 0);
    CHECK_EQ(get(below, u"text", &v, sizeof v, &need), STATUS_SUCCESS);
    CHECK_EQ(v.info.DataLength, 10);
    CHECK(memcmp(v.info.Data, u"caf\u00e9", 10) == 0);
    ZwClose(below);
    ZwClose(key);
    CHECK_EQ(create_key(&key, u"\\Registry\\Machine\\Software\\SoftND\\Test\\", &how),
             STATUS_SUCCESS);
    CHECK_EQ(how, REG_OPENED_EXISTING_KEY);
    UNICODE_STRING name;
    RtlInitUnicodeString(&name, u"Text");
    CHECK_EQ(ZwDeleteValueKey(key, &name), STATUS_SUCCESS);
    CHECK_EQ(ZwDeleteValueKey(key, &name), STATUS_OBJECT_NAME_NOT_FOUND);
    CHECK_EQ(set(key, u"Number", REG_BINARY, "", 0), STATUS_SUCCESS); /* another type */
    CHECK_EQ(get(key, u"Number", &v, sizeof v, &need), STATUS_SUCCESS);
    CHECK_EQ(v.info.DataLength, 0);
    ZwClose(key);
}

static void registry_says_what_is_wrong(void) {
    union {
        KEY_VALUE_PARTIAL_INFORMATION info;
        UCHAR bytes[32];
    } v;
    HANDLE key;
    ULONG need = 0;
    UNICODE_STRING name;
    CHECK_EQ(open_key(&key, u"\\Registry\\Machine\\Software\\None", NULL),
             STATUS_OBJECT_NAME_NOT_FOUND);
    CHECK_EQ(open_key(&key, u"Software", NULL), STATUS_OBJECT_PATH_SYNTAX_BAD);
    CHECK_EQ(open_key(&key, u"\\Device\\Null", NULL), STATUS_OBJECT_PATH_SYNTAX_BAD);
    CHECK_EQ(open_key(&key, u"x", &need), STATUS_INVALID_HANDLE);
    CHECK_EQ(create_key(&key, u"\\Registry\\Machine\\Software\\SoftND", NULL), STATUS_SUCCESS);
    CHECK_EQ(set(key, u"Data", REG_BINARY, "12345678", 8), STATUS_SUCCESS);
    memset(&v, 0xEE, sizeof v);
    CHECK_EQ(get(key, u"Data", &v, 11, &need), STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(need, 20);
    CHECK_EQ(get(key, u"Data", &v, 16, &need), STATUS_BUFFER_OVERFLOW);
    CHECK_EQ(need, 20);
    CHECK(memcmp(v.info.Data, "1234\xEE", 5) == 0);
    CHECK_EQ(get(key, u"Data", NULL, 0, &need), STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(get(key, u"Nothing", &v, sizeof v, &need), STATUS_OBJECT_NAME_NOT_FOUND);
    RtlInitUnicodeString(&name, u"Data");
    CHECK_EQ(ZwQueryValueKey(key, &name, KeyValueFullInformation, &v, sizeof v, &need),
             STATUS_NOT_SUPPORTED);
    CHECK_EQ(ZwQueryValueKey(&v, &name, KeyValuePartialInformation, &v, sizeof v, &need),
             STATUS_INVALID_HANDLE);
    CHECK_EQ(ZwDeleteValueKey(key, &name), STATUS_SUCCESS);
    ZwClose(key);
}

static const char *scratch(const char *name) {
    static char dir[300], path[320];
    if (!dir[0] && !host_make_folder(dir, sizeof dir)) SKIP("no temporary directory");
    snprintf(path, sizeof path, "%s%s%s", dir, *name ? "/" : "", name);
    return path;
}

static void registry_is_read_from_a_file(void) {
    union {
        KEY_VALUE_PARTIAL_INFORMATION info;
        UCHAR bytes[64];
    } v;
    HANDLE key;
    ULONG need;
    FILE *f = fopen(scratch("in.reg"), "wb");
    CHECK(f);
    fputs(
        "Windows Registry Editor Version 5.00\r\n\r\n; a comment\r\n"
        "[HKEY_LOCAL_MACHINE\\Software\\FromFile]\r\n\"Port\"=dword:00001144\r\n"
        "\"A \\\"name\\\" "
        "\\\\\"=\"caf\xC3\xA9\"\r\n@=hex:01,02,fF\r\n\"Many\"=hex(7):61,00,00,00\r\n\"Long\"=hex:",
        f);
    for (int i = 0; i < 200000; i++)
        fprintf(f, "%s%02x", i ? "," : "", i & 0xFF);
    fclose(f);
    CHECK_EQ(softndk_set("registry", scratch("in.reg")), 0);
    CHECK_EQ(open_key(&key, u"\\Registry\\Machine\\Software\\FromFile", NULL), STATUS_SUCCESS);
    CHECK_EQ(get(key, u"Port", &v, sizeof v, &need), STATUS_SUCCESS);
    CHECK_EQ(*(ULONG *)v.info.Data, 0x1144);
    CHECK_EQ(get(key, u"a \"NAME\" \\", &v, sizeof v, &need), STATUS_SUCCESS);
    CHECK_EQ(v.info.Type, REG_SZ);
    CHECK_EQ(v.info.DataLength, 10);
    CHECK(memcmp(v.info.Data, u"caf\u00e9", 10) == 0);
    CHECK_EQ(get(key, u"", &v, sizeof v, &need), STATUS_SUCCESS);
    CHECK_EQ(v.info.DataLength, 3);
    CHECK_EQ(v.bytes[FIELD_OFFSET(KEY_VALUE_PARTIAL_INFORMATION, Data) + 2], 0xFF);
    CHECK_EQ(get(key, u"Many", &v, sizeof v, &need), STATUS_SUCCESS);
    CHECK_EQ(v.info.Type, REG_MULTI_SZ);
    CHECK_EQ(get(key, u"Long", &v, sizeof v, &need), STATUS_BUFFER_OVERFLOW);
    CHECK_EQ(need, 200012);
    ZwClose(key);
    static const char *const bad[] = { "[HKEY_LOCAL_MACHINE\\x\n",
                                       "[HKEY_NONE\\x]\n",
                                       "\"v\"=dword:1\n",
                                       "[HKEY_USERS\\x]\n\"v\n",
                                       "[HKEY_USERS\\x]\n\"v\"=5\n",
                                       "[HKEY_USERS\\x]\n\"v\"\n",
                                       "[HKEY_USERS\\x]\n\"v\"=hex:zz\n",
                                       "[HKEY_USERS\\x]\n\"v\"=\"\xFF\"\n",
                                       "words\n" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        f = fopen(scratch("bad.reg"), "wb");
        CHECK(f);
        fputs(bad[i], f);
        fclose(f);
        CHECK_EQ(softndk_set("registry", scratch("bad.reg")), -1);
    }
    f = fopen(scratch("bad.reg"), "wb");
    CHECK(f);
    fwrite("[HKEY_USERS\\x]\n\0", 1, 16, f);
    fclose(f);
    CHECK_EQ(softndk_set("registry", scratch("bad.reg")), -1);
    remove(scratch("bad.reg"));
    remove(scratch("in.reg"));
}

/* ---- files ---- */

static NTSTATUS create_file(HANDLE *out, PCWSTR text, ULONG access, ULONG disposition, ULONG *how) {
    UNICODE_STRING name;
    IO_STATUS_BLOCK io = { .Information = 99 };
    OBJECT_ATTRIBUTES oa = attributes(&name, text, NULL);
    NTSTATUS st = ZwCreateFile(out, access, &oa, &io, NULL, FILE_ATTRIBUTE_NORMAL, FILE_SHARE_READ,
                               disposition, FILE_SYNCHRONOUS_IO_NONALERT, NULL, 0);
    *how = (ULONG)io.Information;
    return st;
}

static NTSTATUS move(HANDLE h, BOOLEAN write, const char *data, ULONG len, LARGE_INTEGER *at,
                     ULONG *n) {
    IO_STATUS_BLOCK io = { .Information = 0 };
    PVOID buf = (PVOID)(ULONG_PTR)data;
    NTSTATUS st = write ? ZwWriteFile(h, NULL, NULL, NULL, &io, buf, len, at, NULL)
                        : ZwReadFile(h, NULL, NULL, NULL, &io, buf, len, at, NULL);
    *n = (ULONG)io.Information;
    return st;
}

static void files_are_written_in_one_directory(void) {
    HANDLE h;
    ULONG how, n;
    char buf[32];
    LARGE_INTEGER at = { .QuadPart = 3 };
    CHECK_EQ(create_file(&h, u"\\??\\C:\\log.txt", FILE_WRITE_DATA, FILE_OPEN_IF, &how),
             STATUS_OBJECT_PATH_NOT_FOUND);
    CHECK_EQ(softndk_set("files", scratch("")), 0);
    CHECK_EQ(create_file(&h, u"\\??\\C:\\log.txt", FILE_WRITE_DATA, FILE_OPEN, &how),
             STATUS_OBJECT_NAME_NOT_FOUND);
    CHECK_EQ(create_file(&h, u"\\??\\C:\\dir\\log.txt", FILE_WRITE_DATA, FILE_OPEN_IF, &how),
             STATUS_SUCCESS);
    CHECK_EQ(how, FILE_CREATED);
    CHECK_EQ(move(h, TRUE, "hello ", 6, NULL, &n), STATUS_SUCCESS);
    CHECK_EQ(n, 6);
    CHECK_EQ(move(h, TRUE, "world", 5, NULL, &n), STATUS_SUCCESS);
    CHECK_EQ(move(h, TRUE, "P", 1, &at, &n), STATUS_SUCCESS);
    at.QuadPart = 0;
    CHECK_EQ(move(h, FALSE, buf, sizeof buf, &at, &n), STATUS_SUCCESS);
    CHECK_EQ(n, 11);
    CHECK(memcmp(buf, "helPo world", 11) == 0);
    CHECK_EQ(move(h, FALSE, buf, sizeof buf, NULL, &n), STATUS_END_OF_FILE);
    CHECK_EQ(ZwClose(h), STATUS_SUCCESS);
    CHECK_EQ(create_file(&h, u"\\??\\C:\\log.txt", FILE_WRITE_DATA, FILE_CREATE, &how),
             STATUS_OBJECT_NAME_COLLISION);
    CHECK_EQ(create_file(&h, u"\\??\\C:\\log.txt", FILE_APPEND_DATA, FILE_OPEN_IF, &how),
             STATUS_SUCCESS);
    CHECK_EQ(how, FILE_OPENED);
    CHECK_EQ(move(h, TRUE, "!", 1, NULL, &n), STATUS_SUCCESS);
    ZwClose(h);
    CHECK_EQ(create_file(&h, u"log.txt", FILE_READ_DATA, FILE_OPEN, &how), STATUS_SUCCESS);
    CHECK_EQ(move(h, FALSE, buf, sizeof buf, NULL, &n), STATUS_SUCCESS);
    CHECK_EQ(n, 12);
    ZwClose(h);
    CHECK_EQ(create_file(&h, u"log.txt", FILE_WRITE_DATA, FILE_OVERWRITE_IF, &how), STATUS_SUCCESS);
    CHECK_EQ(how, FILE_OVERWRITTEN);
    CHECK_EQ(move(h, FALSE, buf, sizeof buf, NULL, &n), STATUS_END_OF_FILE);
    ZwClose(h);
    CHECK_EQ(create_file(&h, u"\\??\\C:\\..", FILE_WRITE_DATA, FILE_OPEN_IF, &how),
             STATUS_OBJECT_NAME_INVALID);
    CHECK_EQ(create_file(&h, u"\\??\\C:\\a/b", FILE_WRITE_DATA, FILE_OPEN_IF, &how),
             STATUS_OBJECT_NAME_INVALID);
    CHECK_EQ(move(&n, TRUE, "x", 1, NULL, &n), STATUS_INVALID_HANDLE);
    remove(scratch("log.txt"));
    host_remove_folder(scratch(""));
}

/* ---- the end ---- */

static VOID nothing_to_do(PVOID ctx) {
    KeSetEvent(ctx, 0, FALSE);
}

static void open_handle_is_a_leak(void) {
    HANDLE key, thread;
    KEVENT done;
    KeInitializeEvent(&done, NotificationEvent, FALSE);
    CHECK_EQ(open_key(&key, u"\\Registry\\Machine\\Software", NULL), STATUS_SUCCESS);
    CHECK_EQ(PsCreateSystemThread(&thread, 0, NULL, NULL, NULL, nothing_to_do, &done),
             STATUS_SUCCESS);
    CHECK_EQ(wait_for(&done, -20 * SECOND), STATUS_SUCCESS);
    CHECK_EQ(softndk_report_leaks(), 2);
    CHECK_EQ(softndk_violations("leak"), 2);
    CHECK_EQ(ZwClose(key), STATUS_INVALID_HANDLE);
    softndk_violations_reset();
}

static void nothing_is_left(void) {
    CHECK_EQ(softndk_report_leaks(), 0);
    CHECK_EQ(softndk_violations(NULL), 0);
}

TEST_MAIN(TEST(verifier_is_on), TEST(wait_any_names_the_object_and_takes_only_it),
          TEST(wait_all_takes_nothing_until_all_are_there),
          TEST(waiter_of_several_is_woken_by_each), TEST(waiter_for_all_is_woken_by_the_last),
          TEST(mutex_is_owned_again_by_its_owner), TEST(mutex_excludes),
          TEST(mutex_of_another_raises), TEST(fast_mutex_is_tried),
          TEST(resource_is_shared_or_exclusive), TEST(resource_excludes_writers),
          TEST(resource_misuse_is_reported), TEST(handler_runs_for_a_raise_in_a_callee),
          TEST(handler_does_not_run_without_a_raise),
          TEST(outer_frame_catches_what_the_inner_lets_pass),
          TEST(frame_that_was_returned_from_is_gone), TEST(lock_of_missing_memory_raises),
          TEST(probes_raise_for_memory_and_alignment), TEST(ipv4_address_has_the_names_of_windows),
          TEST(handle_that_is_none_is_refused), TEST(registry_keeps_values),
          TEST(registry_says_what_is_wrong), TEST(registry_is_read_from_a_file),
          TEST(files_are_written_in_one_directory), TEST(open_handle_is_a_leak),
          TEST(nothing_is_left))
