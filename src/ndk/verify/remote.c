/* SPDX-License-Identifier: MIT
 *
 * What the peer did with a token that it was given. The core keeps the first access that it refused
 * on a queue pair; here that is told in terms of regions and windows, also of those that had the
 * token before.
 */
#include <stdio.h>
#include "ndk/ndk.h"

enum { ENDED = 512 };
static struct {
    const void *owner; /* a region or window */
    uint32_t token;
    const char *type, *how;
    struct ndk_stack at;
} ended[ENDED]; /* [lock] the newest */
static uint32_t ended_at;
static os_lock lock; /* rank LEAF */
static os_once once = OS_ONCE_INIT;

static void init(void) {
    os_lock_init(&lock, OS_RANK_LEAF);
}

void ndk_token_ended(const void *owner, const char *type, uint32_t token, const char *how) {
    struct ndk_stack at;
    if (token == 0 || !ndk_verifying()) return;
    ndk_stack_take(&at);
    os_once_run(&once, init);
    os_lock_enter(&lock);
    uint32_t i = ended_at++ % ENDED;
    ended[i].owner = owner;
    ended[i].token = token;
    ended[i].type = type;
    ended[i].how = how;
    ended[i].at = at;
    os_lock_leave(&lock);
}

/* The newest end of this token; false: it never ended. */
static bool say_end(uint32_t token, char *buf, size_t size) {
    bool found = false;
    os_once_run(&once, init);
    os_lock_enter(&lock);
    for (uint32_t n = 1; !found && n <= SN_MIN(ended_at, (uint32_t)ENDED); n++) {
        uint32_t i = (ended_at - n) % ENDED;
        if (ended[i].token != token) continue;
        found = true;
        int m = snprintf(buf, size, "the %s at %p had this token until %s at\n", ended[i].type,
                         ended[i].owner, ended[i].how);
        if (m > 0 && (size_t)m < size) {
            size_t k = ndk_stack_text(&ended[i].at, buf + m, size - (size_t)m);
            if (k == 0) k = 1; /* no stack: the line's end goes */
            buf[(size_t)m + k - 1] = 0;
        }
    }
    os_lock_leave(&lock);
    return found;
}

static const char *right_of(const struct rd_refusal *r) {
    return r->what == RD_REFUSED_READ ? "remote read" : "remote write";
}

static void say_region(struct ndk_mr *mr, const struct rd_refusal *r, char *buf, size_t size) {
    os_lock_enter(&mr->lock);
    if (r->why == SN_E_RANGE)
        snprintf(buf, size, "the region at %p has %llu bytes from 0x%llx on", (void *)mr,
                 (unsigned long long)mr->len, (unsigned long long)mr->base);
    else if (r->why == SN_E_RIGHTS)
        snprintf(buf, size, "the region at %p was registered without %s (flags 0x%x)", (void *)mr,
                 right_of(r), mr->flags);
    else if (r->why == SN_E_PD)
        snprintf(buf, size, "the region at %p is of another protection domain", (void *)mr);
    else if (r->what == RD_REFUSED_INVALIDATE && !mr->fast)
        snprintf(buf, size, "the region at %p is not fast-registered, it cannot be invalidated",
                 (void *)mr);
    else
        snprintf(buf, size, "the region at %p is not registered", (void *)mr);
    os_lock_leave(&mr->lock);
}

/* What object o has to do with the token, if anything. */
static bool say_object(struct ndk_object *o, const struct rd_refusal *r, char *buf, size_t size) {
    if (o->header.ObjectType == NdkObjectTypePd &&
        rd_pd_token(((struct ndk_pd *)o)->rd) == r->token) {
        snprintf(buf, size, "this is the privileged token of the PD at %p", (void *)o);
        return true;
    }
    if (o->header.ObjectType == NdkObjectTypeMw) {
        struct ndk_mw *mw = (struct ndk_mw *)o;
        if (rd_window_token(mw->rd) != r->token) return false;
        snprintf(buf, size, "the window at %p is bound, %s", (void *)o,
                 r->why == SN_E_RANGE    ? "but smaller"
                 : r->why == SN_E_RIGHTS ? "but without this right"
                                         : "but on another queue pair, or not yet");
        return true;
    }
    if (o->header.ObjectType != NdkObjectTypeMr) return false;
    struct ndk_mr *mr = (struct ndk_mr *)o;
    if (rd_region_remote_token(mr->rd) == r->token) {
        os_lock_enter(&mr->lock);
        bool over = mr->state != NDK_MR_REGISTERED && mr->state != NDK_MR_FAST_REGISTERED;
        os_lock_leave(&mr->lock);
        if (over && say_end(r->token, buf, size)) return true;
        say_region(mr, r, buf, size);
        return true;
    }
    if (rd_region_local_token(mr->rd) != r->token) return false;
    snprintf(buf, size,
             "this is the local token of the region at %p; the peer needs the remote "
             "one",
             (void *)o);
    return true;
}

void ndk_report_refused(struct ndk_qp *qp) {
    static const char *const what[] = { "Read", "Write", "Invalidate" };
    struct ndk_adapter *ad = qp->o.ad;
    struct rd_refusal r;
    char why[1024];
    bool found = false;
    if (!rd_qp_refusal(qp->rd, &r) || os_u32_exchange_acq_rel(&qp->refusal_told, 1) != 0) return;
    os_lock_enter(&ad->lock);
    SN_LIST_FOR(it, &ad->objects) {
        if (!found)
            found = say_object(SN_CONTAINER(it, struct ndk_object, all), &r, why, sizeof why);
    }
    os_lock_leave(&ad->lock);
    if (!found) found = say_end(r.token, why, sizeof why);
    if (!found) snprintf(why, sizeof why, "no region or window has or had this token");
    ndk_warning(NDK_RULE_remote_access, "(the peer)", qp,
                "the peer's %s (token 0x%x, %llu bytes at 0x%llx) was refused and ended the "
                "connection: %s",
                what[r.what], r.token, (unsigned long long)r.len, (unsigned long long)r.addr, why);
}
