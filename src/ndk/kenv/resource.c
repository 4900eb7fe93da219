/* SPDX-License-Identifier: MIT
 *
 * Executive resources. All share one lock and one condition: they are for rare and long sections.
 */
#include <stdlib.h>
#include "ndk/kenv/kenv.h"
#include "ndk/verify/verify.h"
#include "os/prim/clock.h"
#include "os/prim/lock.h"
#include "os/prim/thread.h"

enum { ROOM_AT_FIRST = 4 };

struct owner {
    PKTHREAD thread;
    ULONG depth;
};

static os_once once = OS_ONCE_INIT;
static os_lock lock; /* rank LEAF */
static os_cond changed;

static void init(void) {
    os_lock_init(&lock, OS_RANK_LEAF);
    os_cond_init(&changed);
}

static void enter(const char *call, KIRQL max) {
    os_once_run(&once, init);
    if (ndk_verifying()) ke_call_enter(call, max);
    os_lock_enter(&lock);
}

static struct owner *mine_locked(PERESOURCE r) {
    struct owner *o = r->Owners;
    for (ULONG i = 0; i < r->OwnerCount; i++)
        if (o[i].thread == KeGetCurrentThread()) return &o[i];
    return NULL;
}

static void add_me_locked(PERESOURCE r) {
    if (r->OwnerCount == r->OwnerRoom) {
        ULONG room = r->OwnerRoom ? 2 * r->OwnerRoom : ROOM_AT_FIRST;
        struct owner *more = realloc(r->Owners, room * sizeof *more);
        if (!more) KeBugCheckEx(0x4, 0, 0, 0, 0); /* the kernel cannot fail here either */
        r->Owners = more;
        r->OwnerRoom = room;
    }
    ((struct owner *)r->Owners)[r->OwnerCount++] = (struct owner){ KeGetCurrentThread(), 1 };
}

NTSTATUS ExInitializeResourceLite(PERESOURCE r) {
    memset(r, 0, sizeof *r);
    return STATUS_SUCCESS;
}

NTSTATUS ExDeleteResourceLite(PERESOURCE r) {
    enter("ExDeleteResourceLite", DISPATCH_LEVEL);
    ULONG owners = r->OwnerCount;
    free(r->Owners);
    memset(r, 0, sizeof *r);
    os_lock_leave(&lock);
    if (owners)
        ndk_violation(NDK_RULE_spin_lock, "ExDeleteResourceLite", r, "%u threads own the resource",
                      owners);
    return STATUS_SUCCESS;
}

BOOLEAN ExAcquireResourceExclusiveLite(PERESOURCE r, BOOLEAN wait) {
    enter("ExAcquireResourceExclusiveLite", APC_LEVEL);
    struct owner *o = mine_locked(r);
    bool again = o && r->Exclusive, stuck = o && !r->Exclusive && wait;
    if (again) o->depth++;
    if (stuck) {
        os_lock_leave(&lock);
        ndk_violation(NDK_RULE_spin_lock, "ExAcquireResourceExclusiveLite", r,
                      "this thread owns the resource shared; it would wait for ever");
        os_lock_enter(&lock);
    }
    r->WaitingExclusive++;
    while (!again && r->OwnerCount && wait)
        os_cond_wait(&changed, &lock, OS_FOREVER);
    r->WaitingExclusive--;
    bool taken = again || r->OwnerCount == 0;
    if (!again && taken) {
        add_me_locked(r);
        r->Exclusive = TRUE;
    }
    os_lock_leave(&lock);
    return taken;
}

BOOLEAN ExAcquireResourceSharedLite(PERESOURCE r, BOOLEAN wait) {
    enter("ExAcquireResourceSharedLite", APC_LEVEL);
    struct owner *o = mine_locked(r);
    if (o) o->depth++;
    r->WaitingShared++;
    while (!o && (r->Exclusive || r->WaitingExclusive) && wait)
        os_cond_wait(&changed, &lock, OS_FOREVER);
    r->WaitingShared--;
    bool taken = o || !(r->Exclusive || r->WaitingExclusive);
    if (!o && taken) add_me_locked(r);
    os_lock_leave(&lock);
    return taken;
}

VOID ExReleaseResourceLite(PERESOURCE r) {
    enter("ExReleaseResourceLite", DISPATCH_LEVEL);
    struct owner *o = mine_locked(r);
    bool mine = o != NULL;
    if (mine && --o->depth == 0) {
        *o = ((struct owner *)r->Owners)[--r->OwnerCount];
        if (r->OwnerCount == 0) r->Exclusive = FALSE;
        os_cond_broadcast(&changed);
    }
    os_lock_leave(&lock);
    if (!mine)
        ndk_violation(NDK_RULE_spin_lock, "ExReleaseResourceLite", r,
                      "this thread does not own the resource");
}

VOID ExConvertExclusiveToSharedLite(PERESOURCE r) {
    enter("ExConvertExclusiveToSharedLite", DISPATCH_LEVEL);
    bool mine = mine_locked(r) && r->Exclusive;
    if (mine) r->Exclusive = FALSE;
    os_cond_broadcast(&changed);
    os_lock_leave(&lock);
    if (!mine)
        ndk_violation(NDK_RULE_spin_lock, "ExConvertExclusiveToSharedLite", r,
                      "this thread does not own the resource exclusively");
}

BOOLEAN ExIsResourceAcquiredExclusiveLite(PERESOURCE r) {
    enter("ExIsResourceAcquiredExclusiveLite", DISPATCH_LEVEL);
    bool mine = mine_locked(r) && r->Exclusive;
    os_lock_leave(&lock);
    return mine;
}

ULONG ExIsResourceAcquiredSharedLite(PERESOURCE r) {
    enter("ExIsResourceAcquiredSharedLite", DISPATCH_LEVEL);
    struct owner *o = mine_locked(r);
    ULONG depth = o ? o->depth : 0;
    os_lock_leave(&lock);
    return depth;
}
