/* SPDX-License-Identifier: MIT
 *
 * Peers are shared by all connections to the same adapter instance: its table and board are mapped
 * once. Whether copies to it work is tried when it is first met, on the mark of its memory that it
 * told: that also shows that the process number is its own.
 */
#include <string.h>
#include "base/log.h"
#include "local/hub.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"
#include "os/prim/thread.h"

/* ---- who ---- */

static struct lo_peer *find_locked(struct lo_hub *h, const uint8_t *id, uint32_t pid) {
    SN_LIST_FOR(it, &h->peers) {
        struct lo_peer *p = SN_CONTAINER(it, struct lo_peer, link);
        if (p->pid != pid || memcmp(p->id, id, sizeof p->id) != 0) continue;
        os_ref_get(&p->refs);
        return p;
    }
    return NULL;
}

static void free_peer(struct lo_peer *p) {
    os_peer_close(&p->process);
    os_shm_close(&p->board_shm);
    os_shm_close(&p->table_shm);
    os_free(p);
}

void lo_peer_put(struct lo_peer *p) {
    struct lo_hub *h = p->hub;
    os_lock_enter(&h->lock);
    bool last = os_ref_put(&p->refs);
    if (last) sn_list_remove(&p->link);
    os_lock_leave(&h->lock);
    if (last) free_peer(p);
}

bool lo_peer_alive(const struct lo_peer *p) {
    return p->self || (p->process.pid != 0 && os_peer_alive(&p->process));
}

static bool read_table(struct lo_peer *p) {
    const struct tp_share_head *head = p->table_shm.base;
    size_t slots = (p->table_shm.bytes - TP_SHARE_HEAD_BYTES) / TP_SHARE_SLOT_BYTES;
    if (head->magic != TP_SHARE_MAGIC || head->slot_bytes != TP_SHARE_SLOT_BYTES) return false;
    p->key = head->key;
    p->slot_max = (uint32_t)SN_MIN(slots, (size_t)1 << TP_SHARE_INDEX_BITS);
    p->slots = (const uint8_t *)p->table_shm.base + TP_SHARE_HEAD_BYTES;
    p->table = head;
    return true;
}

/* One copy, to see whether it works. */
static bool try_copy(struct lo_peer *p, const struct lo_hello *hello) {
    struct os_peer_mark mark = { hello->mark_addr, hello->mark_value };
    if (p->self) return mark.value == os_peer_own_mark().value;
    return p->process.pid != 0 && os_peer_recognise(&p->process, &mark) == SN_OK;
}

static sn_status make_peer(struct lo_hub *h, const struct lo_hello *hello,
                           const struct os_local_peer *who, os_handle board, os_handle table,
                           struct lo_peer **out) {
    struct lo_peer *p = os_zalloc(sizeof *p);
    bool sane = hello->table_bytes > TP_SHARE_HEAD_BYTES && hello->table_bytes <= SIZE_MAX / 2;
    if (!p) {
        os_handle_close(board);
        os_handle_close(table);
        return SN_E_NOMEM;
    }
    os_ref_init(&p->refs);
    sn_list_init(&p->link);
    p->hub = h;
    memcpy(p->id, hello->adapter, sizeof p->id);
    p->pid = who->pid;
    p->self = who->pid == os_process_id();
    sn_status st = os_shm_open(board, sizeof(struct lo_board), &p->board_shm);
    p->board = p->board_shm.base;
    bool has_table = false;
    if (table != OS_HANDLE_NONE && sane && st == SN_OK)
        has_table =
            os_shm_open_readonly(table, (size_t)hello->table_bytes, &p->table_shm) == SN_OK &&
            read_table(p);
    else
        os_handle_close(table);
    if (st != SN_OK) {
        free_peer(p);
        return st;
    }
    if (!p->self && os_peer_open(p->pid, &p->process) != SN_OK) p->process.pid = 0;
    /* Also if nothing will be copied from here: its end shows in the mark. */
    bool works = try_copy(p, hello);
    p->can_copy = has_table && h->direct_copy && works;
    SN_LOG(SN_LOG_DEBUG, "local: process %u: %s", who->pid,
           p->self       ? "this one"
           : p->can_copy ? "copies go straight"
                         : "copies go through shared memory");
    *out = p;
    return SN_OK;
}

sn_status lo_peer_get(struct lo_hub *h, const struct lo_hello *hello,
                      const struct os_local_peer *who, os_handle board, os_handle table,
                      struct lo_peer **out) {
    os_lock_enter(&h->lock);
    struct lo_peer *p = find_locked(h, hello->adapter, who->pid);
    os_lock_leave(&h->lock);
    if (p) {
        os_handle_close(board);
        os_handle_close(table);
        *out = p;
        return SN_OK;
    }
    sn_status st = make_peer(h, hello, who, board, table, &p);
    if (st != SN_OK) return st;
    os_lock_enter(&h->lock); /* two of the same, met at the same time, do no harm */
    sn_list_push_back(&h->peers, &p->link);
    os_lock_leave(&h->lock);
    *out = p;
    return SN_OK;
}

/* ---- its table ---- */

sn_status lo_peer_check(const struct lo_peer *p, uint64_t qp_id, uint32_t token, uint64_t addr,
                        size_t len, enum tp_right right) {
    uint32_t index = tp_token_index(&p->key, token);
    if (token == 0 || index >= p->slot_max || index >= os_u32_load_acquire(&p->table->slot_count))
        return SN_E_TOKEN;
    const struct tp_shared_slot *s =
        (const struct tp_shared_slot *)(const void *)(p->slots +
                                                      (size_t)index * TP_SHARE_SLOT_BYTES);
    if (os_u32_load_seqcst(&s->token) != token) return SN_E_TOKEN;
    const uint32_t kind = s->kind, rights = s->rights;
    const uint64_t base = s->base, size = s->len, owner = s->qp_id;
    bool local = right == TP_LOCAL_READ || right == TP_LOCAL_WRITE || right == TP_READ_SINK;
    if (kind > TP_SLOT_WINDOW) return SN_E_UNSUPPORTED;
    if (local != (kind == TP_SLOT_LOCAL)) return SN_E_TOKEN;
    if (kind == TP_SLOT_WINDOW && owner != qp_id) return SN_E_PD;
    if (!(rights & (1u << right))) return SN_E_RIGHTS;
    uint64_t off = addr - base; /* an address below it wraps beyond any length */
    if (off > size || len > size - off) return SN_E_RANGE;
    return SN_OK;
}

/* ---- copies ---- */

/* A copy met memory that is not there: whose? */
SN_COLD static sn_status blame(const struct os_iov *local, size_t count, bool write_local) {
    for (size_t i = 0; i < count; i++)
        if (local[i].len && os_pages_probe(local[i].base, local[i].len, write_local) != SN_OK)
            return SN_E_FAULT;
    return SN_E_RIGHTS;
}

static sn_status copy_status(sn_status st, const struct os_iov *local, size_t count,
                             bool write_local) {
    if (st == SN_OK) return SN_OK;
    return st == SN_E_FAULT ? blame(local, count, write_local) : st;
}

sn_status lo_peer_write(struct lo_peer *p, const struct os_iov *local, size_t count, uint64_t to,
                        size_t len, size_t tail) {
    struct os_peer_iov there[2] = { { to, len - tail }, { to + len - tail, tail } };
    size_t done = 0;
    sn_status st = SN_OK;
    if (!p->self) {
        st = os_peer_writev(&p->process, local, count, there, 2, &done);
    } else {
        for (size_t i = 0; i < count && st == SN_OK && done < len; i++) {
            size_t n = SN_MIN(local[i].len, len - done);
            if (n && !os_guarded_copy((void *)(uintptr_t)(to + done), local[i].base, n))
                st = SN_E_FAULT;
            done += n;
        }
    }
    return copy_status(st, local, count, false);
}

sn_status lo_peer_read(struct lo_peer *p, const struct os_iov *local, size_t count, uint64_t from,
                       size_t len) {
    struct os_peer_iov there = { from, len };
    size_t done = 0;
    sn_status st = SN_OK;
    if (!p->self) {
        st = os_peer_readv(&p->process, local, count, &there, 1, &done);
    } else {
        for (size_t i = 0; i < count && st == SN_OK && done < len; i++) {
            size_t n = SN_MIN(local[i].len, len - done);
            if (n && !os_guarded_copy(local[i].base, (const void *)(uintptr_t)(from + done), n))
                st = SN_E_FAULT;
            done += n;
        }
    }
    return copy_status(st, local, count, true);
}
