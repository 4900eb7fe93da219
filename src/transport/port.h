/* SPDX-License-Identifier: MIT
 * port.h - reservation of a TCP port for a listener or a connector.
 * Owns:    the port rules: ephemeral ports come from 49152-65535 and are nobody else's; connectors
 *          may share a port with each other and with a listener; two listeners may not.
 * Threads: any.   Errors: SN_E_ADDR_IN_USE, SN_E_ADDR_INVALID, SN_E_NO_PORTS, SN_E_PERM,
 *          SN_E_RESOURCES.
 */
#ifndef SN_TRANSPORT_PORT_H
#define SN_TRANSPORT_PORT_H

#include "os/io/sock.h"

enum tp_port_use { TP_PORT_LISTEN, TP_PORT_CONNECT };

struct tp_port {
    os_sock sock;        /* bound, neither listening nor connected; OS_SOCK_NONE once taken */
    struct os_addr addr; /* with the port really bound */
    enum tp_port_use use;
};

/* Binds to want (port 0: any free one). Not blocking. */
SN_MUST_CHECK sn_status tp_port_bind(const struct os_addr *want, enum tp_port_use use,
                                     struct tp_port **out);
/* Frees the port and closes its socket unless taken. NULL is ignored. */
void tp_port_free(struct tp_port *p);
/* Moves the socket out. */
os_sock tp_port_take_sock(struct tp_port *p);

#endif
