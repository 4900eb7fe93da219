/* SPDX-License-Identifier: MIT
 * atomic.h - atomics with the memory order in each name. C11 atomics stay behind this header.
 * Owns:    nothing.   Threads: any.   Errors: none.
 */
#ifndef SN_OS_ATOMIC_H
#define SN_OS_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t v;
} os_atomic_u32;
typedef struct {
    uint64_t v;
} os_atomic_u64;
typedef struct {
    void *v;
} os_atomic_ptr;

#define OS_ATOMIC_OPS(name, type, atomic)                                                          \
    static inline type os_##name##_load_relaxed(const atomic *a) {                                 \
        return __atomic_load_n(&a->v, __ATOMIC_RELAXED);                                           \
    }                                                                                              \
    static inline type os_##name##_load_acquire(const atomic *a) {                                 \
        return __atomic_load_n(&a->v, __ATOMIC_ACQUIRE);                                           \
    }                                                                                              \
    static inline type os_##name##_load_seqcst(const atomic *a) {                                  \
        return __atomic_load_n(&a->v, __ATOMIC_SEQ_CST);                                           \
    }                                                                                              \
    static inline void os_##name##_store_relaxed(atomic *a, type v) {                              \
        __atomic_store_n(&a->v, v, __ATOMIC_RELAXED);                                              \
    }                                                                                              \
    static inline void os_##name##_store_release(atomic *a, type v) {                              \
        __atomic_store_n(&a->v, v, __ATOMIC_RELEASE);                                              \
    }                                                                                              \
    static inline void os_##name##_store_seqcst(atomic *a, type v) {                               \
        __atomic_store_n(&a->v, v, __ATOMIC_SEQ_CST);                                              \
    }                                                                                              \
    static inline type os_##name##_exchange_acq_rel(atomic *a, type v) {                           \
        return __atomic_exchange_n(&a->v, v, __ATOMIC_ACQ_REL);                                    \
    }                                                                                              \
    /* On failure *expected takes the value found. */                                              \
    static inline bool os_##name##_cas_acq_rel(atomic *a, type *expected, type v) {                \
        return __atomic_compare_exchange_n(&a->v, expected, v, false, __ATOMIC_ACQ_REL,            \
                                           __ATOMIC_ACQUIRE);                                      \
    }
OS_ATOMIC_OPS(u32, uint32_t, os_atomic_u32)
OS_ATOMIC_OPS(u64, uint64_t, os_atomic_u64)
OS_ATOMIC_OPS(ptr, void *, os_atomic_ptr)
#undef OS_ATOMIC_OPS

/* The fetch forms return the value before the change. */
static inline uint32_t os_u32_fetch_add_relaxed(os_atomic_u32 *a, uint32_t n) {
    return __atomic_fetch_add(&a->v, n, __ATOMIC_RELAXED);
}
static inline uint32_t os_u32_fetch_add_acq_rel(os_atomic_u32 *a, uint32_t n) {
    return __atomic_fetch_add(&a->v, n, __ATOMIC_ACQ_REL);
}
static inline uint32_t os_u32_fetch_add_seqcst(os_atomic_u32 *a, uint32_t n) {
    return __atomic_fetch_add(&a->v, n, __ATOMIC_SEQ_CST);
}
static inline uint32_t os_u32_fetch_sub_acq_rel(os_atomic_u32 *a, uint32_t n) {
    return __atomic_fetch_sub(&a->v, n, __ATOMIC_ACQ_REL);
}
static inline uint32_t os_u32_fetch_sub_seqcst(os_atomic_u32 *a, uint32_t n) {
    return __atomic_fetch_sub(&a->v, n, __ATOMIC_SEQ_CST);
}
static inline uint64_t os_u64_fetch_add_relaxed(os_atomic_u64 *a, uint64_t n) {
    return __atomic_fetch_add(&a->v, n, __ATOMIC_RELAXED);
}

static inline uint64_t os_u64_fetch_or_seqcst(os_atomic_u64 *a, uint64_t bits) {
    return __atomic_fetch_or(&a->v, bits, __ATOMIC_SEQ_CST);
}

static inline void os_fence_seqcst(void) {
#if defined(__SANITIZE_THREAD__)
    /* GCC's thread sanitizer knows no fences and refuses them; this is one to the processor. */
    uint32_t word = 0;
    (void)__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* The same, if the thread's last access to memory that matters was an exchange, of whatever order.
 */
static inline void os_fence_after_exchange(void) {
#if defined(__x86_64__) || defined(__i386__)
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a locked instruction is a fence */
#else
    os_fence_seqcst();
#endif
}

/* Loads before it come before loads after it. */
static inline void os_fence_acquire(void) {
#if defined(__SANITIZE_THREAD__)
    os_fence_seqcst();
#else
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

/* Loads and stores before it come before those after it in the program that is run, and may still
 * be seen in another order by others. */
static inline void os_fence_compiler(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* What was just copied out of memory that others write is not fetched from there a second time. One
 * to the compiler only. */
static inline void os_fence_copied(void) {
    os_fence_compiler();
}

/* The line at p will be read soon. Any address. */
static inline void os_prefetch(const void *p) {
    __builtin_prefetch(p, 0, 3);
}

/* The line at p will be written soon: it is taken from other processors beforehand. Any address; a
 * processor without such a hint does nothing. */
static inline void os_prefetch_write(const void *p) {
#if defined(__x86_64__)
    /* The builtin only reads, since the first of these processors had no other hint. */
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
    __builtin_prefetch(p, 1, 3);
#endif
}

/* A hint inside a short spin. */
static inline void os_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* A counted reference; starts at 1. */
struct os_ref {
    os_atomic_u32 n;
};
static inline void os_ref_init(struct os_ref *r) {
    os_u32_store_relaxed(&r->n, 1);
}
static inline void os_ref_get(struct os_ref *r) {
    os_u32_fetch_add_relaxed(&r->n, 1);
}
/* True when this was the last one: the caller frees. */
static inline bool os_ref_put(struct os_ref *r) {
    return os_u32_fetch_sub_acq_rel(&r->n, 1) == 1;
}

#endif
