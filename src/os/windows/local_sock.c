/* SPDX-License-Identifier: MIT
 * Named pipes in byte mode. A message is a frame, written in one call.
 *
 * Names. A listener is a set of instances of the pipe, so many as may wait to be accepted. The pipe
 * keeps its name while any instance is left, connected ones included; so a named event says whether
 * somebody listens, and goes with its process. An accepted instance is replaced by a new one.
 *
 * Handles are taken by the receiver out of the sender's process: it knows the sender from the
 * system, and nobody else changes its table. The sender keeps duplicates for that until it closes
 * its end, and closes the pipe first: if the pipe is still whole after the receiver took something,
 * that was what was sent and not a later owner of the same number. */
#include "os/io/local_sock.h"
#include <winsock2.h>
#include <windows.h>
#include <winternl.h>
#include <string.h>
#include "base/base.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"
#include "os/prim/thread.h"
#include "os/windows/pipe.h"

enum {
    LISTEN_MAX = 16, /* instances that wait */
    QUOTA = 65536,   /* bytes on the way, each direction */
    KEPT_MAX = 2 * OS_LOCAL_HANDLES_MAX,
    PREFIX = 9, /* of the pipe's path; the event's is shorter */
    PATH_MAX_W = PREFIX + OS_LOCAL_NAME_MAX + 1
};

/* A frame: this, the handles' numbers (8 bytes each), the bytes. */
struct frame_head {
    uint16_t magic, handles;
    uint32_t len;
};
#define FRAME_MAGIC 0x534Eu
#define CANCELLED ((NTSTATUS)0xC0000120) /* STATUS_CANCELLED */
#define FRAME_MIN (sizeof(struct frame_head) + 1)
#define FRAME_MAX (sizeof(struct frame_head) + 8 * OS_LOCAL_HANDLES_MAX + OS_LOCAL_MSG_MAX)

/* For this user only. */
struct security {
    SECURITY_ATTRIBUTES attributes;
    SECURITY_DESCRIPTOR descriptor;
    union {
        ACL acl;
        uint8_t room[sizeof(ACL) + sizeof(ACCESS_ALLOWED_ACE) + SECURITY_MAX_SID_SIZE];
    } u;
};

struct local {
    SRWLOCK lock;
    HANDLE port; /* NULL: not watched yet */
    ULONG_PTR key;
    bool listener, serves; /* [const] serves: our end is an instance of a listener's */

    /* a listener */
    HANDLE name;                 /* [const] the event */
    struct security security;    /* [const] */
    WCHAR path[PATH_MAX_W];      /* [const] */
    uint32_t count;              /* [const] */
    HANDLE instance[LISTEN_MAX]; /* NULL: could not be made, tried again by the next request */
    uint32_t marked;             /* requests that came back, a bit each; a connection has one */

    /* a connection */
    HANDLE pipe;    /* [const] */
    HANDLE process; /* the other end's, NULL: not opened */
    struct os_local_peer peer;
    HANDLE kept[KEPT_MAX]; /* what the other end may still have to take */
    uint32_t kept_count;
    bool writing; /* out and out_ov are the system's */
    OVERLAPPED out_ov;
    size_t have; /* bytes in `in` */
    uint8_t out[FRAME_MAX], in[FRAME_MAX];
};

static os_sock to_sock(struct local *l) {
    return (os_sock)((uintptr_t)l | 1);
}
static struct local *of_sock(os_sock s) {
    return (struct local *)((uintptr_t)s & ~(uintptr_t)1);
}

/* ---- what the system tells ---- */

/* Of the driver's interface ("FilePipeLocalInformation"); not in the headers for programs. */
struct pipe_info {
    ULONG type, configuration, instances_max, instances;
    ULONG in_quota, in_bytes, out_quota, out_free;
    ULONG state, end;
};
enum { PIPE_INFO_CLASS = 24, STATE_LISTENING = 2, STATE_CONNECTED = 3 };

static bool pipe_state_is(HANDLE pipe, ULONG state) {
    struct pipe_info info = { 0 };
    IO_STATUS_BLOCK iosb;
    NTSTATUS st = NtQueryInformationFile(pipe, &iosb, &info, sizeof info,
                                         (FILE_INFORMATION_CLASS)PIPE_INFO_CLASS);
    return st >= 0 && info.state == state;
}

union token_user {
    TOKEN_USER user;
    uint8_t room[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
};
union token_label {
    TOKEN_MANDATORY_LABEL label;
    uint8_t room[sizeof(TOKEN_MANDATORY_LABEL) + SECURITY_MAX_SID_SIZE];
};

static bool read_token(HANDLE process, union token_user *user, union token_label *label) {
    HANDLE token;
    DWORD got;
    if (!OpenProcessToken(process, TOKEN_QUERY, &token)) return false;
    bool ok = GetTokenInformation(token, TokenUser, user, sizeof *user, &got) &&
              GetTokenInformation(token, TokenIntegrityLevel, label, sizeof *label, &got);
    CloseHandle(token);
    return ok;
}

/* This process's own. */
static os_once us_once = OS_ONCE_INIT;
static union token_user us;
static union token_label our_label;
static bool us_known;

static void read_us(void) {
    us_known = read_token(GetCurrentProcess(), &us, &our_label);
}

static bool know_us(void) {
    os_once_run(&us_once, read_us);
    return us_known;
}

static uint64_t sid_number(PSID sid) {
    uint64_t h = 0xCBF29CE484222325ull;
    const uint8_t *p = sid;
    for (DWORD i = 0, n = GetLengthSid(sid); i < n; i++)
        h = (h ^ p[i]) * 0x100000001B3ull;
    return h;
}

/* The process at the other end. A program with more rights of the same user is not the same user:
 * neither may open the other then, or only one. */
static sn_status find_peer(struct local *l) {
    union token_user theirs;
    union token_label their_label;
    ULONG pid = 0;
    if (l->peer.pid != 0) return SN_OK;
    BOOL known = l->serves ? GetNamedPipeClientProcessId(l->pipe, &pid)
                           : GetNamedPipeServerProcessId(l->pipe, &pid);
    if (!known || pid == 0) return SN_E_NOT_CONNECTED;
    l->peer = (struct os_local_peer){ .pid = pid };
    DWORD access = PROCESS_DUP_HANDLE | PROCESS_QUERY_LIMITED_INFORMATION | SYNCHRONIZE;
    HANDLE p = os_fault_hit(OS_FAULT_SYSCALL) ? NULL : OpenProcess(access, FALSE, pid);
    if (!p) return SN_OK;
    /* The number was the other end's while that had the pipe open. */
    if (read_token(p, &theirs, &their_label) && pipe_state_is(l->pipe, STATE_CONNECTED)) {
        l->peer.uid = sid_number(theirs.user.User.Sid);
        l->peer.same_user = know_us() && EqualSid(us.user.User.Sid, theirs.user.User.Sid) &&
                            EqualSid(our_label.label.Label.Sid, their_label.label.Label.Sid);
    }
    if (l->peer.same_user)
        l->process = p;
    else
        CloseHandle(p);
    return SN_OK;
}

/* ---- making them ---- */

static bool make_security(struct security *s) {
    s->attributes = (SECURITY_ATTRIBUTES){ .nLength = sizeof s->attributes,
                                           .lpSecurityDescriptor = &s->descriptor };
    return know_us() &&
           InitializeSecurityDescriptor(&s->descriptor, SECURITY_DESCRIPTOR_REVISION) &&
           InitializeAcl(&s->u.acl, sizeof s->u, ACL_REVISION) &&
           AddAccessAllowedAce(&s->u.acl, ACL_REVISION, GENERIC_ALL, us.user.User.Sid) &&
           SetSecurityDescriptorDacl(&s->descriptor, TRUE, &s->u.acl, FALSE);
}

/* Both the pipe's and the event's; the bytes of the name as they are. */
static bool make_path(const char *name, const char *prefix, WCHAR path[PATH_MAX_W]) {
    size_t len = strnlen(name, OS_LOCAL_NAME_MAX + 1), at = 0;
    if (len == 0 || len > OS_LOCAL_NAME_MAX || memchr(name, '\\', len)) return false;
    while (*prefix)
        path[at++] = (WCHAR)*prefix++;
    for (size_t i = 0; i < len; i++)
        path[at++] = (uint8_t)name[i];
    path[at] = 0;
    return true;
}

static bool make_paths(const char *name, WCHAR pipe[PATH_MAX_W], WCHAR event[PATH_MAX_W]) {
    return make_path(name, "\\\\.\\pipe\\", pipe) && make_path(name, "Local\\", event);
}

static HANDLE make_instance(struct local *l) {
    if (os_fault_hit(OS_FAULT_SYSCALL)) return NULL;
    HANDLE h = CreateNamedPipeW(l->path, PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED,
                                PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT |
                                    PIPE_REJECT_REMOTE_CLIENTS,
                                PIPE_UNLIMITED_INSTANCES, QUOTA, QUOTA, 0, &l->security.attributes);
    return h == INVALID_HANDLE_VALUE ? NULL : h;
}

static sn_status system_status(DWORD e) {
    switch (e) {
    case ERROR_ACCESS_DENIED:
        return SN_E_PERM;
    case ERROR_PIPE_BUSY:
        return SN_E_AGAIN;
    case ERROR_FILE_NOT_FOUND:
        return SN_E_REFUSED;
    case ERROR_NO_DATA:
    case ERROR_BROKEN_PIPE:
    case ERROR_PIPE_NOT_CONNECTED:
    case ERROR_BAD_PIPE:
        return SN_E_PEER_GONE;
    case ERROR_INVALID_HANDLE:
        return SN_E_HANDLE;
    default:
        return SN_E_RESOURCES;
    }
}

sn_status os_local_listen(const char *name, uint32_t backlog, os_sock *out) {
    WCHAR pipe[PATH_MAX_W], event[PATH_MAX_W];
    *out = OS_SOCK_NONE;
    if (!make_paths(name, pipe, event)) return SN_E_PARAM;
    struct local *l = os_zalloc(sizeof *l);
    if (!l) return SN_E_RESOURCES;
    InitializeSRWLock(&l->lock);
    l->listener = true;
    memcpy(l->path, pipe, sizeof pipe);
    SetLastError(0);
    if (!os_fault_hit(OS_FAULT_SYSCALL) && make_security(&l->security))
        l->name = CreateEventW(&l->security.attributes, TRUE, FALSE, event);
    DWORD e = GetLastError();
    sn_status st = l->name ? SN_OK : SN_E_RESOURCES;
    if (e == ERROR_ALREADY_EXISTS || e == ERROR_ACCESS_DENIED) st = SN_E_ADDR_IN_USE;
    uint32_t want = backlog == 0 || backlog > LISTEN_MAX ? (uint32_t)LISTEN_MAX : backlog;
    while (st == SN_OK && l->count < want) {
        l->instance[l->count] = make_instance(l);
        if (!l->instance[l->count]) break;
        l->count++;
    }
    if (st == SN_OK && l->count == 0) st = system_status(GetLastError());
    if (st != SN_OK) {
        os_pipe_close(to_sock(l));
        return st;
    }
    *out = to_sock(l);
    return SN_OK;
}

/* Named by our own calls, none of which is waited for: its lowest bit keeps their packets away from
 * the poller's port. Lives as long as the process. */
static os_once quiet_once = OS_ONCE_INIT;
static HANDLE quiet;

static void make_quiet(void) {
    quiet = CreateEventW(NULL, TRUE, FALSE, NULL);
}

static OVERLAPPED own_call(void) {
    return (OVERLAPPED){ .hEvent = (HANDLE)((ULONG_PTR)quiet | 1) };
}

static bool is_pending(const OVERLAPPED *ov) {
    return *(volatile const ULONG_PTR *)&ov->Internal == (ULONG_PTR)STATUS_PENDING;
}

/* The bytes of a call that ends at once; SIZE_MAX: it failed. */
static size_t await(const OVERLAPPED *ov) {
    while (is_pending(ov))
        os_thread_yield();
    return (NTSTATUS)ov->Internal < 0 ? SIZE_MAX : ov->InternalHigh;
}

/* Takes the pipe. */
static sn_status new_connection(HANDLE pipe, bool serves, os_sock *out) {
    os_once_run(&quiet_once, make_quiet);
    struct local *l = quiet ? os_zalloc(sizeof *l) : NULL;
    if (!l) {
        CloseHandle(pipe);
        return SN_E_RESOURCES;
    }
    InitializeSRWLock(&l->lock);
    l->pipe = pipe;
    l->serves = serves;
    *out = to_sock(l);
    return SN_OK;
}

sn_status os_local_connect(const char *name, os_sock *out) {
    WCHAR pipe[PATH_MAX_W], event[PATH_MAX_W];
    *out = OS_SOCK_NONE;
    if (!make_paths(name, pipe, event)) return SN_E_PARAM;
    if (os_fault_hit(OS_FAULT_SYSCALL)) return SN_E_RESOURCES;
    /* The other end may know who we are, but not act for us. */
    HANDLE h =
        CreateFileW(pipe, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING,
                    FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION, NULL);
    if (h != INVALID_HANDLE_VALUE) return new_connection(h, false, out);
    sn_status st = system_status(GetLastError());
    if (st != SN_E_AGAIN) return st;
    /* All instances are connected: wait to be accepted, or were, by a listener that is gone. */
    HANDLE there = OpenEventW(SYNCHRONIZE, FALSE, event);
    if (!there) return SN_E_REFUSED;
    CloseHandle(there);
    return SN_E_AGAIN;
}

/* ---- a listener ---- */

static sn_status bind_instance(const struct local *l, HANDLE h) {
    if (os_fault_hit(OS_FAULT_SYSCALL) || !CreateIoCompletionPort(h, l->port, l->key, 0))
        return SN_E_RESOURCES;
    return SN_OK;
}

/* Instance i is the caller's, if somebody has connected to it; a new one takes its place. */
static HANDLE take_instance(struct local *l, uint32_t i) {
    HANDLE h = l->instance[i];
    if (!h || pipe_state_is(h, STATE_LISTENING)) return NULL;
    l->instance[i] = make_instance(l);
    if (l->instance[i] && l->port && bind_instance(l, l->instance[i]) != SN_OK) {
        CloseHandle(l->instance[i]);
        l->instance[i] = NULL; /* made again by the next request */
    }
    return h;
}

sn_status os_local_accept(os_sock s, os_sock *out) {
    struct local *l = of_sock(s);
    *out = OS_SOCK_NONE;
    if (!l->listener) return SN_E_STATE;
    if (os_fault_hit(OS_FAULT_SYSCALL)) return SN_E_RESOURCES;
    HANDLE h = NULL;
    AcquireSRWLockExclusive(&l->lock);
    uint32_t look = l->port ? l->marked : (1u << l->count) - 1;
    for (uint32_t i = 0; i < l->count && !h; i++) {
        if (!(look & (1u << i))) continue;
        l->marked &= ~(1u << i);
        h = take_instance(l, i);
    }
    HANDLE port = l->port;
    ULONG_PTR key = l->key;
    ReleaseSRWLockExclusive(&l->lock);
    if (!h) return SN_E_AGAIN;
    sn_status st = new_connection(h, true, out);
    if (st != SN_OK) return st;
    of_sock(*out)->port = port;
    of_sock(*out)->key = key;
    return SN_OK;
}

/* ---- for the poller ---- */

uint32_t os_pipe_requests(os_sock s) {
    struct local *l = of_sock(s);
    return l->listener ? l->count : 1;
}

sn_status os_pipe_bind(os_sock s, HANDLE port, ULONG_PTR key) {
    struct local *l = of_sock(s);
    sn_status st = SN_OK;
    AcquireSRWLockExclusive(&l->lock);
    if (l->port) {
        st = l->port == port ? SN_OK : SN_E_RESOURCES;
    } else {
        l->port = port;
        l->key = key;
        if (!l->listener) st = bind_instance(l, l->pipe);
        for (uint32_t i = 0; i < l->count && st == SN_OK; i++)
            if (l->instance[i]) st = bind_instance(l, l->instance[i]);
        if (st != SN_OK) l->port = NULL;
    }
    ReleaseSRWLockExclusive(&l->lock);
    return st;
}

static enum pipe_answer wait_for_client(struct local *l, uint32_t i, OVERLAPPED *ov) {
    if (!l->instance[i]) {
        l->instance[i] = make_instance(l);
        if (!l->instance[i]) return PIPE_SILENT;
        if (bind_instance(l, l->instance[i]) != SN_OK) {
            CloseHandle(l->instance[i]);
            l->instance[i] = NULL;
            return PIPE_SILENT;
        }
    }
    if (ConnectNamedPipe(l->instance[i], ov)) return PIPE_PENDING;
    switch (GetLastError()) {
    case ERROR_IO_PENDING:
        return PIPE_PENDING;
    case ERROR_PIPE_CONNECTED:
    case ERROR_NO_DATA: /* and has left again */
        return PIPE_READY;
    default:
        return PIPE_SILENT;
    }
}

enum pipe_answer os_pipe_request(os_sock s, uint32_t i, OVERLAPPED *ov) {
    struct local *l = of_sock(s);
    enum pipe_answer answer;
    memset(ov, 0, sizeof *ov);
    if (os_fault_hit(OS_FAULT_SYSCALL)) return PIPE_SILENT;
    if (l->listener) {
        AcquireSRWLockExclusive(&l->lock);
        answer = wait_for_client(l, i, ov);
        ReleaseSRWLockExclusive(&l->lock);
        return answer;
    }
    static char nothing;
    if (ReadFile(l->pipe, &nothing, 0, NULL, ov) || GetLastError() == ERROR_IO_PENDING)
        return PIPE_PENDING;
    return PIPE_ENDED;
}

void os_pipe_cancel(os_sock s, uint32_t i, OVERLAPPED *ov) {
    struct local *l = of_sock(s);
    AcquireSRWLockShared(&l->lock);
    /* An instance that was accepted is not here any more; its request has ended by itself. */
    HANDLE h = l->listener ? l->instance[i] : l->pipe;
    if (h) (void)CancelIoEx(h, ov);
    ReleaseSRWLockShared(&l->lock);
}

void os_pipe_mark(os_sock s, uint32_t i) {
    struct local *l = of_sock(s);
    AcquireSRWLockExclusive(&l->lock);
    l->marked |= 1u << i;
    ReleaseSRWLockExclusive(&l->lock);
}

bool os_pipe_ready(os_sock s) {
    struct local *l = of_sock(s);
    DWORD there = 0;
    if (!l->listener) return !PeekNamedPipe(l->pipe, NULL, 0, NULL, &there, NULL) || there != 0;
    AcquireSRWLockShared(&l->lock);
    bool ready = false;
    for (uint32_t i = 0; i < l->count && !ready; i++)
        ready = (l->marked & (1u << i)) && l->instance[i] &&
                !pipe_state_is(l->instance[i], STATE_LISTENING);
    ReleaseSRWLockShared(&l->lock);
    return ready;
}

void os_pipe_close(os_sock s) {
    struct local *l = of_sock(s);
    if (l->writing && is_pending(&l->out_ov)) {
        (void)CancelIoEx(l->pipe, &l->out_ov);
        (void)await(&l->out_ov);
    }
    if (l->pipe) CloseHandle(l->pipe); /* before what was kept */
    while (l->kept_count != 0)
        CloseHandle(l->kept[--l->kept_count]);
    if (l->name) CloseHandle(l->name);
    for (uint32_t i = 0; i < l->count; i++)
        if (l->instance[i]) CloseHandle(l->instance[i]);
    if (l->process) CloseHandle(l->process);
    os_free(l);
}

/* ---- messages ---- */

sn_status os_local_peer_info(os_sock s, struct os_local_peer *out) {
    struct local *l = of_sock(s);
    *out = (struct os_local_peer){ 0 };
    if (l->listener) return SN_E_NOT_CONNECTED;
    AcquireSRWLockExclusive(&l->lock);
    sn_status st = find_peer(l);
    if (st == SN_OK) *out = l->peer;
    ReleaseSRWLockExclusive(&l->lock);
    return st;
}

/* Duplicates for the other end to take, after those that are kept already. */
static sn_status keep(struct local *l, const os_handle *handles, size_t count, uint8_t *numbers) {
    HANDLE self = GetCurrentProcess();
    if (count > KEPT_MAX - l->kept_count) return SN_E_RESOURCES;
    for (size_t i = 0; i < count; i++) {
        HANDLE h;
        if (!DuplicateHandle(self, (HANDLE)handles[i], self, &h, 0, FALSE, DUPLICATE_SAME_ACCESS)) {
            sn_status st = system_status(GetLastError());
            while (i-- != 0)
                CloseHandle(l->kept[l->kept_count + i]);
            return st;
        }
        l->kept[l->kept_count + i] = h;
        uint64_t number = (uintptr_t)h;
        memcpy(numbers + 8 * i, &number, 8);
    }
    return SN_OK;
}

static sn_status send_locked(struct local *l, const void *data, size_t len,
                             const os_handle *handles, size_t count) {
    struct frame_head head = { FRAME_MAGIC, (uint16_t)count, (uint32_t)len };
    uint8_t *numbers = l->out + sizeof head;
    size_t frame = sizeof head + 8 * count + len;
    if (l->writing && is_pending(&l->out_ov)) return SN_E_AGAIN;
    if (!os_guarded_copy(numbers + 8 * count, data, len)) return SN_E_FAULT;
    memcpy(l->out, &head, sizeof head);
    sn_status st = keep(l, handles, count, numbers);
    if (st != SN_OK) return st;
    l->out_ov = own_call();
    l->writing = true; /* what finds no room waits in `out` */
    if (!os_fault_hit(OS_FAULT_SYSCALL) &&
        (WriteFile(l->pipe, l->out, (DWORD)frame, NULL, &l->out_ov) ||
         GetLastError() == ERROR_IO_PENDING)) {
        l->kept_count += (uint32_t)count;
        return SN_OK;
    }
    st = system_status(GetLastError());
    l->writing = false;
    while (count-- != 0)
        CloseHandle(l->kept[l->kept_count + count]);
    return st == SN_E_RESOURCES ? st : SN_E_PEER_GONE;
}

sn_status os_local_send(os_sock s, const void *data, size_t len, const os_handle *handles,
                        size_t handle_count) {
    struct local *l = of_sock(s);
    if (l->listener) return SN_E_NOT_CONNECTED;
    if (len == 0 || handle_count > OS_LOCAL_HANDLES_MAX) return SN_E_PARAM;
    if (len > OS_LOCAL_MSG_MAX) return SN_E_TOO_LONG;
    AcquireSRWLockExclusive(&l->lock);
    sn_status st = send_locked(l, data, len, handles, handle_count);
    ReleaseSRWLockExclusive(&l->lock);
    return st;
}

/* What the frame in `in` is to have; 0: this is not a frame. */
static size_t frame_bytes(const struct local *l) {
    struct frame_head head;
    if (l->have < sizeof head) return sizeof head;
    memcpy(&head, l->in, sizeof head);
    if (head.magic != FRAME_MAGIC || head.len == 0 || head.len > OS_LOCAL_MSG_MAX ||
        head.handles > OS_LOCAL_HANDLES_MAX)
        return 0;
    return sizeof head + 8 * (size_t)head.handles + head.len;
}

/* Takes up to n bytes, of which some are known to be there. */
static bool take_bytes(struct local *l, size_t n) {
    OVERLAPPED ov = own_call();
    l->marked = 0;
    if (!ReadFile(l->pipe, l->in + l->have, (DWORD)n, NULL, &ov)) {
        if (GetLastError() != ERROR_IO_PENDING) return false;
        if (is_pending(&ov)) (void)CancelIoEx(l->pipe, &ov); /* a writer of no bytes */
    }
    size_t got = await(&ov);
    if (got > n) return (NTSTATUS)ov.Internal == CANCELLED;
    l->have += got;
    return true;
}

/* One frame, whole; of what follows it nothing is taken, so that the poller sees it. Parts of a
 * frame, which no sound sender leaves there for long, are taken: the poller must not spin. */
static sn_status read_frame(struct local *l) {
    for (;;) {
        size_t want = frame_bytes(l);
        if (want == 0) return SN_E_PEER_GONE;
        if (l->have == want) return SN_OK;
        DWORD seen = 0;
        /* Something is there, and no frame is shorter. */
        if (l->marked != 0 && l->have < FRAME_MIN) {
            if (!take_bytes(l, FRAME_MIN - l->have)) return SN_E_EOF;
            continue;
        }
        if (!PeekNamedPipe(l->pipe, l->in + l->have, (DWORD)(FRAME_MAX - l->have), &seen, NULL,
                           NULL))
            return SN_E_EOF;
        if (seen == 0) return SN_E_AGAIN;
        size_t had = l->have;
        l->have += seen; /* as if, to see how long the frame is */
        want = frame_bytes(l);
        l->have = had;
        if (want == 0) return SN_E_PEER_GONE;
        if (!take_bytes(l, SN_MIN(want - had, (size_t)seen))) return SN_E_EOF;
    }
}

/* All the handles of the frame, or none. */
static sn_status take_handles(struct local *l, size_t count, os_handle *handles) {
    sn_status st = find_peer(l);
    if (st == SN_OK && !l->process) st = SN_E_PERM;
    size_t n = 0;
    for (; n < count && st == SN_OK; n++) {
        uint64_t number;
        HANDLE h;
        memcpy(&number, l->in + sizeof(struct frame_head) + 8 * n, 8);
        if (os_fault_hit(OS_FAULT_SYSCALL) ||
            !DuplicateHandle(l->process, (HANDLE)(uintptr_t)number, GetCurrentProcess(), &h, 0,
                             FALSE, DUPLICATE_SAME_ACCESS)) {
            st = GetLastError() == ERROR_INVALID_HANDLE ? SN_E_WIRE : SN_E_RESOURCES;
            break;
        }
        handles[n] = (os_handle)h;
    }
    if (!pipe_state_is(l->pipe, STATE_CONNECTED)) st = SN_E_PEER_GONE;
    if (st == SN_OK) return SN_OK;
    while (n-- != 0)
        CloseHandle((HANDLE)handles[n]);
    return st;
}

static sn_status recv_locked(struct local *l, void *data, size_t max, size_t *got,
                             os_handle *handles, size_t room, size_t *taken) {
    struct frame_head head;
    sn_status st = read_frame(l);
    if (st != SN_OK) return st;
    memcpy(&head, l->in, sizeof head);
    l->have = 0;
    if (head.len > max || head.handles > room) return SN_E_WIRE;
    if (!os_guarded_copy(data, l->in + sizeof head + 8 * (size_t)head.handles, head.len))
        return SN_E_FAULT;
    if (head.handles != 0) st = take_handles(l, head.handles, handles);
    if (st != SN_OK) return st;
    *got = head.len;
    *taken = head.handles;
    return SN_OK;
}

sn_status os_local_recv(os_sock s, void *data, size_t max, size_t *got, os_handle *handles,
                        size_t *handle_count) {
    struct local *l = of_sock(s);
    size_t room = handle_count ? *handle_count : 0, taken = 0;
    *got = 0;
    if (handle_count) *handle_count = 0;
    if (max == 0) return SN_E_PARAM;
    if (l->listener) return SN_E_NOT_CONNECTED;
    if (os_fault_hit(OS_FAULT_SYSCALL)) return SN_E_PEER_GONE;
    AcquireSRWLockExclusive(&l->lock);
    sn_status st = recv_locked(l, data, max, got, handles, room, &taken);
    ReleaseSRWLockExclusive(&l->lock);
    if (handle_count) *handle_count = taken;
    return st;
}
