/* SPDX-License-Identifier: MIT
 * tracked.h - a table of what was handed out and not given back, with its origin.
 * Owns:    a hash table from address to entry.
 * Threads: any, one lock inside.   Errors: NULL when there is no memory.
 */
#ifndef SN_NDK_KENV_TRACKED_H
#define SN_NDK_KENV_TRACKED_H

#include "base/base.h"
#include "ndk/verify/verify.h"
#include "os/prim/lock.h"
#include "os/prim/thread.h"

struct ke_tracked {
    struct sn_list link;
    void *p;
    size_t size;
    uint32_t tag;
    struct ndk_stack origin; /* empty while the verifier is off */
};

enum { KE_TRACKED_BUCKETS = 1024 };
struct ke_tracker {
    os_once once;
    void (*init)(void); /* calls ke_tracker_init on this one */
    os_lock lock;
    struct sn_list bucket[KE_TRACKED_BUCKETS];
    size_t count; /* [lock] */
};

void ke_tracker_init(struct ke_tracker *t);
bool ke_track(struct ke_tracker *t, void *p, size_t size, uint32_t tag);
/* Takes the entry off; false if p is not there. *out may be NULL. */
bool ke_untrack(struct ke_tracker *t, void *p, struct ke_tracked *out);
/* True if [p, p+len) lies in an entry. */
bool ke_tracked(struct ke_tracker *t, const void *p);
/* Calls fn for each entry and empties the table. Returns how many. */
int ke_track_drain(struct ke_tracker *t, void (*fn)(const struct ke_tracked *e));

#endif
