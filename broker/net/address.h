/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Where a broker may listen: the URIs that are accepted, and how an ipc path is made safe.
 *
 * libzmq unlinks whatever stands at an ipc path before it binds, be it a file or the socket of a
 * running broker, and takes no path over 107 bytes. So a path is locked by a file beside it, looked
 * at, and moved to a short place if it is too long (A54). */
#ifndef TASKMQ_NET_ADDRESS_H
#define TASKMQ_NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

enum {
    ADDRESS_PATH_SIZE = 4096,
    ADDRESS_IPC_PATH_MAX = 107 /* sizeof (sockaddr_un.sun_path) - 1 */
};

typedef enum address_kind { ADDRESS_IPC = 1, ADDRESS_TCP } address_kind_t;

typedef struct address {
    address_kind_t kind;
    bool ipv6;
    bool moved;                      /* ipc: the path was too long, uri names another place */
    char uri[ADDRESS_PATH_SIZE + 8]; /* what to bind, and what clients connect to */
} address_t;

/* Understands ipc://PATH and tcp://HOST:PORT (port 0: any free one), where HOST is a loopback
 * address: without keys nobody else is let in. A relative ipc path is taken from the working
 * directory; one over 107 bytes moves to a private directory, made here, under XDG_RUNTIME_DIR or
 * the temporary directory. False: `error` says what is wrong. */
bool address_parse (address_t *out, const char *uri, char *error, size_t error_size);

/* What the handler of ZAP is told of the connections to this address: "ipc" or "loopback". */
const char *address_domain (const address_t *self);

/* Takes the lock beside an ipc path and makes sure that the path is free or a dead socket. Returns
 * the lock's descriptor, to be closed when the socket is, or -1 with `error`. */
int address_lock_ipc (const char *path, char *error, size_t error_size);

#endif
