/* SPDX-License-Identifier: MIT
 *
 * Listeners and fixed-port connectors share a port (the system's port sharing, same user only), so
 * "somebody already listens here" must be found out another way: a socket that does not share can
 * only start to listen if nobody listens on that port. It is opened, asked, and closed again.
 */
#include "transport/port.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"

enum { EPHEMERAL_FIRST = 49152, EPHEMERAL_COUNT = 65536 - 49152 };

static sn_status probe_listener(const struct os_addr *addr) {
    os_sock s;
    sn_status st = os_sock_tcp(addr->family, &s);
    if (st != SN_OK) return st;
    st = os_sock_bind(s, addr, OS_BIND_REUSE);
    if (st == SN_OK) st = os_sock_listen(s, 1);
    os_sock_close(s, false);
    return st;
}

static sn_status bind_fixed(struct tp_port *p, const struct os_addr *want) {
    if (p->use == TP_PORT_LISTEN) {
        sn_status st = probe_listener(want);
        if (st != SN_OK) return st;
    }
    return os_sock_bind(p->sock, want, OS_BIND_SHARED);
}

static sn_status fresh_sock(struct tp_port *p, uint16_t family) {
    os_sock_close(p->sock, false);
    p->sock = OS_SOCK_NONE;
    return os_sock_tcp(family, &p->sock);
}

/* Connectors may ask for a listener's port later, so a port found free is bound anew as a shared
 * one. SN_E_ADDR_IN_USE: somebody else took it in between, and p has a new socket. */
static sn_status bind_again_shared(struct tp_port *p, const struct os_addr *at) {
    sn_status st = fresh_sock(p, at->family);
    if (st == SN_OK) st = bind_fixed(p, at);
    if (st != SN_E_ADDR_IN_USE) return st;
    st = fresh_sock(p, at->family);
    return st == SN_OK ? SN_E_ADDR_IN_USE : st;
}

/* First ports that are wholly free, then those whose last connection is in TIME_WAIT. */
static sn_status bind_ephemeral(struct tp_port *p, const struct os_addr *want) {
    static const enum os_bind_mode passes[] = { OS_BIND_UNIQUE, OS_BIND_REUSE };
    uint16_t start;
    os_random_bytes(&start, sizeof start);
    for (size_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < EPHEMERAL_COUNT; i++) {
            struct os_addr try = *want;
            try.port = (uint16_t)(EPHEMERAL_FIRST + (start + i) % EPHEMERAL_COUNT);
            sn_status st = os_sock_bind(p->sock, &try, passes[pass]);
            if (st == SN_OK && p->use == TP_PORT_LISTEN) st = bind_again_shared(p, &try);
            if (st != SN_E_ADDR_IN_USE) return st;
        }
    }
    return SN_E_NO_PORTS;
}

sn_status tp_port_bind(const struct os_addr *want, enum tp_port_use use, struct tp_port **out) {
    struct tp_port *p = os_zalloc(sizeof *p);
    if (!p) return SN_E_NOMEM;
    p->use = use;
    p->sock = OS_SOCK_NONE;
    sn_status st = os_sock_tcp(want->family, &p->sock);
    if (st == SN_OK) st = want->port ? bind_fixed(p, want) : bind_ephemeral(p, want);
    if (st == SN_OK) st = os_sock_local(p->sock, &p->addr);
    if (st != SN_OK) {
        tp_port_free(p);
        return st;
    }
    *out = p;
    return SN_OK;
}

void tp_port_free(struct tp_port *p) {
    if (!p) return;
    os_sock_close(p->sock, false);
    os_free(p);
}

os_sock tp_port_take_sock(struct tp_port *p) {
    os_sock s = p->sock;
    p->sock = OS_SOCK_NONE;
    return s;
}
