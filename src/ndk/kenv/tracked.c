/* SPDX-License-Identifier: MIT */
#include "ndk/kenv/tracked.h"
#include <stdlib.h>

void ke_tracker_init(struct ke_tracker *t) {
    os_lock_init(&t->lock, OS_RANK_LEAF);
    for (size_t i = 0; i < KE_TRACKED_BUCKETS; i++)
        sn_list_init(&t->bucket[i]);
}

static struct sn_list *bucket_of(struct ke_tracker *t, const void *p) {
    uint64_t h = (uint64_t)(uintptr_t)p * 0x9E3779B97F4A7C15ull;
    return &t->bucket[h >> 54];
}

bool ke_track(struct ke_tracker *t, void *p, size_t size, uint32_t tag) {
    os_once_run(&t->once, t->init);
    struct ke_tracked *e = calloc(1, sizeof *e);
    if (!e) return false;
    e->p = p;
    e->size = size;
    e->tag = tag;
    if (ndk_verifying()) ndk_stack_take(&e->origin);
    os_lock_enter(&t->lock);
    sn_list_push_back(bucket_of(t, p), &e->link);
    t->count++;
    os_lock_leave(&t->lock);
    return true;
}

static struct ke_tracked *find_locked(struct ke_tracker *t, const void *p) {
    SN_LIST_FOR(it, bucket_of(t, p)) {
        struct ke_tracked *e = SN_CONTAINER(it, struct ke_tracked, link);
        if (e->p == p) return e;
    }
    return NULL;
}

bool ke_untrack(struct ke_tracker *t, void *p, struct ke_tracked *out) {
    os_once_run(&t->once, t->init);
    os_lock_enter(&t->lock);
    struct ke_tracked *e = find_locked(t, p);
    if (e) {
        sn_list_remove(&e->link);
        t->count--;
    }
    os_lock_leave(&t->lock);
    if (!e) return false;
    if (out) *out = *e;
    free(e);
    return true;
}

bool ke_tracked(struct ke_tracker *t, const void *p) {
    os_once_run(&t->once, t->init);
    os_lock_enter(&t->lock);
    bool found = find_locked(t, p) != NULL;
    os_lock_leave(&t->lock);
    return found;
}

int ke_track_drain(struct ke_tracker *t, void (*fn)(const struct ke_tracked *e)) {
    struct sn_list all;
    int n = 0;
    sn_list_init(&all);
    os_once_run(&t->once, t->init);
    os_lock_enter(&t->lock);
    for (size_t i = 0; i < KE_TRACKED_BUCKETS; i++)
        sn_list_splice(&all, &t->bucket[i]);
    t->count = 0;
    os_lock_leave(&t->lock);
    for (struct sn_list *it; (it = sn_list_pop(&all)) != NULL; n++) {
        struct ke_tracked *e = SN_CONTAINER(it, struct ke_tracked, link);
        fn(e);
        free(e);
    }
    return n;
}
