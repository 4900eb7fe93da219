/* SPDX-License-Identifier: MIT */
#include "ndk/kenv/handle.h"
#include "ndk/kenv/tracked.h"
#include "os/prim/fault.h"

struct handle {
    enum ke_handle_kind kind;
    void *body;
    void (*close)(void *body);
};

static void init(void);
static struct ke_tracker handles = { .once = OS_ONCE_INIT, .init = init };
static void init(void) {
    ke_tracker_init(&handles);
}

HANDLE ke_handle_open(enum ke_handle_kind kind, void *body, void (*close)(void *body)) {
    struct handle *h = os_zalloc(sizeof *h);
    if (!h) return NULL;
    *h = (struct handle){ kind, body, close };
    if (ke_track(&handles, h, sizeof *h, 0)) return h;
    os_free(h);
    return NULL;
}

void *ke_handle_body(HANDLE p, enum ke_handle_kind kind) {
    if (!p || !ke_tracked(&handles, p)) return NULL;
    struct handle *h = p;
    return h->kind == kind ? h->body : NULL;
}

NTSTATUS ZwClose(HANDLE p) {
    if (ndk_verifying()) ke_call_enter("ZwClose", PASSIVE_LEVEL);
    if (!p || !ke_untrack(&handles, p, NULL)) return STATUS_INVALID_HANDLE;
    struct handle *h = p;
    h->close(h->body);
    os_free(h);
    return STATUS_SUCCESS;
}

static void report_leak(const struct ke_tracked *e) {
    static const char *const what[] = { "thread", "registry key", "file" };
    struct handle *h = e->p;
    char at[1024];
    size_t n = ndk_stack_text(&e->origin, at, sizeof at);
    ndk_violation(NDK_RULE_leak, "ZwClose", h, "a handle of a %s was never closed; opened at\n%.*s",
                  what[h->kind], (int)n, n ? at : "");
    h->close(h->body);
    os_free(h);
}

int ke_handle_leaks(void) {
    return ke_track_drain(&handles, report_leak);
}
