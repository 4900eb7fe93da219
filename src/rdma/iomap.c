/* SPDX-License-Identifier: MIT */
#include "rdma/iomap.h"
#include "os/prim/clock.h"
#include "os/prim/pages.h"
#include "rdma/adapter.h"
#include "rdma/async.h"

#define INDEX_MASK ((1u << RD_IO_INDEX_BITS) - 1)
#define KEY_MASK ((1u << RD_IO_KEY_BITS) - 1)
#define OFFSET_MASK (((uint64_t)1 << RD_IO_OFFSET_BITS) - 1)
#define CHUNKS ((1u << RD_IO_INDEX_BITS) / RD_IO_CHUNK)
#define CHUNK_BYTES (RD_IO_CHUNK * sizeof(struct rd_io))
#define DIRECTORY_BYTES (CHUNKS * sizeof(os_atomic_ptr))

void rd_iomap_init(struct rd_iomap *m) {
    os_lock_init(&m->lock, OS_RANK_REGION);
}

void rd_iomap_fini(struct rd_iomap *m) {
    for (uint32_t i = 0; i < m->chunk_count; i++)
        os_pages_free(os_ptr_load_relaxed(&m->chunks[i]), CHUNK_BYTES);
    if (m->chunks) os_pages_free(m->chunks, DIRECTORY_BYTES);
    m->chunks = NULL;
    os_lock_fini(&m->lock);
}

static struct rd_io *io_at(struct rd_iomap *m, uint32_t index) {
    os_atomic_ptr *chunks = __atomic_load_n(&m->chunks, __ATOMIC_ACQUIRE);
    struct rd_io *chunk = chunks ? os_ptr_load_acquire(&chunks[index / RD_IO_CHUNK]) : NULL;
    return chunk ? &chunk[index % RD_IO_CHUNK] : NULL;
}

static sn_status grow_locked(struct rd_iomap *m) {
    if (!m->chunks) {
        os_atomic_ptr *chunks = os_pages_alloc(DIRECTORY_BYTES);
        if (!chunks) return SN_E_NOMEM;
        __atomic_store_n(&m->chunks, chunks, __ATOMIC_RELEASE);
    }
    if (m->chunk_count == CHUNKS) return SN_E_RESOURCES;
    struct rd_io *chunk = os_pages_alloc(CHUNK_BYTES);
    if (!chunk) return SN_E_NOMEM;
    uint16_t keys[RD_IO_CHUNK];
    os_random_bytes(keys, sizeof keys);
    uint32_t first = m->chunk_count * RD_IO_CHUNK;
    for (uint32_t i = 0; i < RD_IO_CHUNK; i++) {
        chunk[i].index = first + i;
        chunk[i].next_key = keys[i] & KEY_MASK;
        chunk[i].next_free = i + 1 < RD_IO_CHUNK ? first + i + 2 : m->free_head;
    }
    os_ptr_store_release(&m->chunks[m->chunk_count++], chunk);
    m->free_head = first + 1;
    return SN_OK;
}

sn_status rd_io_map(struct rd_adapter *ad, const void *va, size_t len, bool scattered,
                    struct rd_io **out) {
    struct rd_iomap *m = &ad->io;
    uintptr_t first = (uintptr_t)va & ~(uintptr_t)(RD_IO_PAGE - 1);
    size_t fbo = (uintptr_t)va - first;
    if (len == 0 || len - 1 > UINTPTR_MAX - (uintptr_t)va) return SN_E_PARAM;
    if (len > OFFSET_MASK + 1 - fbo) return SN_E_RESOURCES;
    sn_status st = SN_OK;
    os_lock_enter(&m->lock);
    if (m->free_head == 0) st = grow_locked(m);
    if (st == SN_OK) {
        struct rd_io *io = io_at(m, m->free_head - 1);
        m->free_head = io->next_free;
        io->next_key = (io->next_key + 1) & KEY_MASK;
        if (io->next_key == 0) io->next_key = 1;
        io->base = (uint8_t *)first;
        io->pages = (fbo + len + RD_IO_PAGE - 1) / RD_IO_PAGE;
        io->logical = (uint64_t)io->next_key << (RD_IO_OFFSET_BITS + RD_IO_INDEX_BITS) |
                      (uint64_t)io->index << RD_IO_OFFSET_BITS;
        io->scattered = scattered && io->pages > 1;
        os_u32_store_seqcst(&io->key, io->next_key);
        *out = io;
    }
    os_lock_leave(&m->lock);
    return st;
}

uint64_t rd_io_pages(const struct rd_io *io) {
    return io->pages;
}

uint64_t rd_io_page(const struct rd_io *io, uint64_t i) {
    return io->logical + (io->scattered ? io->pages - 1 - i : i) * RD_IO_PAGE;
}

void rd_io_unmap(struct rd_adapter *ad, struct rd_io *io) {
    struct rd_iomap *m = &ad->io;
    os_u32_store_seqcst(&io->key, 0);
    if (os_u32_load_seqcst(&io->users) != 0) rd_drain(&io->users, 0);
    os_lock_enter(&m->lock);
    io->next_free = m->free_head;
    m->free_head = io->index + 1;
    os_lock_leave(&m->lock);
}

sn_status rd_iomap_access(struct rd_iomap *m, uint64_t logical, size_t len, uint8_t **ptr,
                          size_t *piece, void **hold) {
    uint64_t off = logical & OFFSET_MASK;
    uint32_t index = (uint32_t)(logical >> RD_IO_OFFSET_BITS) & INDEX_MASK;
    uint64_t key = logical >> (RD_IO_OFFSET_BITS + RD_IO_INDEX_BITS);
    struct rd_io *io = key == 0 || key > KEY_MASK ? NULL : io_at(m, index);
    if (!io || os_u32_load_relaxed(&io->key) != key) return SN_E_TOKEN;
    os_u32_fetch_add_seqcst(&io->users, 1);
    if (os_u32_load_seqcst(&io->key) != key || off >= io->pages * RD_IO_PAGE ||
        len > io->pages * RD_IO_PAGE - off) {
        os_u32_fetch_sub_seqcst(&io->users, 1);
        return SN_E_TOKEN;
    }
    uint64_t at = off % RD_IO_PAGE;
    if (io->scattered) {
        *ptr = io->base + (io->pages - 1 - off / RD_IO_PAGE) * RD_IO_PAGE + at;
        *piece = SN_MIN(len, RD_IO_PAGE - at);
    } else {
        *ptr = io->base + off;
        *piece = len;
    }
    *hold = io;
    return SN_OK;
}

void rd_iomap_end(void *hold) {
    struct rd_io *io = hold;
    os_u32_fetch_sub_seqcst(&io->users, 1);
}

bool rd_io_mapped(struct rd_adapter *ad, uint64_t logical) {
    uint8_t *ptr;
    size_t piece;
    void *hold;
    if (rd_iomap_access(&ad->io, logical, 1, &ptr, &piece, &hold) != SN_OK) return false;
    rd_iomap_end(hold);
    return true;
}
