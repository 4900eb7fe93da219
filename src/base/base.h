/* SPDX-License-Identifier: MIT
 * base.h - array length, container_of, asserts and the intrusive list.
 * Owns:    nothing at run time but the assert handler's message.
 * Threads: pure; a list is guarded by its owner's lock.
 * Errors:  SN_ASSERT ends the process: memory safety, kept in release. SN_DEBUG: costly checks,
 *          debug builds only. Neither may have side effects; input is returned, never asserted.
 */
#ifndef SN_BASE_BASE_H
#define SN_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

#define SN_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SN_CONTAINER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define SN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define SN_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Prints the failed condition to stderr and aborts. */
_Noreturn void sn_assert_failed(const char *cond, const char *file, int line);

#define SN_ASSERT(cond) ((cond) ? (void)0 : sn_assert_failed(#cond, __FILE__, __LINE__))
#ifdef SN_DEBUG_CHECKS
#define SN_DEBUG(cond) SN_ASSERT(cond)
#else
#define SN_DEBUG(cond) ((void)0)
#endif

/* Doubly linked circular list; the head is a node of its own. A node not on a list is
 * self-linked, so removing twice is harmless. */
struct sn_list {
    struct sn_list *next, *prev;
};

static inline void sn_list_init(struct sn_list *l) {
    l->next = l->prev = l;
}
static inline bool sn_list_empty(const struct sn_list *l) {
    return l->next == l;
}
static inline void sn_list_push_back(struct sn_list *head, struct sn_list *n) {
    n->next = head;
    n->prev = head->prev;
    head->prev->next = n;
    head->prev = n;
}
static inline void sn_list_remove(struct sn_list *n) {
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = n->prev = n;
}
/* Removes and returns the first node; NULL if the list is empty. */
static inline struct sn_list *sn_list_pop(struct sn_list *head) {
    struct sn_list *n = head->next;
    if (n == head) return NULL;
    sn_list_remove(n);
    return n;
}
/* Moves all nodes of src to the end of dst. */
static inline void sn_list_splice(struct sn_list *dst, struct sn_list *src) {
    if (sn_list_empty(src)) return;
    src->next->prev = dst->prev;
    dst->prev->next = src->next;
    src->prev->next = dst;
    dst->prev = src->prev;
    sn_list_init(src);
}
#define SN_LIST_FOR(it, head) for (struct sn_list *it = (head)->next; it != (head); it = it->next)
/* Safe against removal of `it`. */
#define SN_LIST_FOR_SAFE(it, tmp, head)                                                            \
    for (struct sn_list *it = (head)->next, *tmp = it->next; it != (head); it = tmp, tmp = it->next)

/* The smallest power of two >= n; n must be at most 2^31. 0 gives 1. */
static inline uint32_t sn_pow2_ceil(uint32_t n) {
    uint32_t p = 1;
    while (p < n)
        p <<= 1;
    return p;
}

#endif
