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
    ADDRESS_URI_SIZE = ADDRESS_PATH_SIZE + 8,
    ADDRESS_ERROR_SIZE = ADDRESS_PATH_SIZE + 256,
    ADDRESS_IPC_PATH_MAX = 107 /* sizeof (sockaddr_un.sun_path) - 1 */
};

typedef enum address_kind { ADDRESS_IPC = 1, ADDRESS_TCP } address_kind_t;

typedef struct address {
    address_kind_t kind;
    bool ipv6;
    bool moved;                 /* ipc: the path was too long, uri names another place */
    bool curve;                 /* nobody comes in without a key */
    bool plain;                 /* neither a key nor this machine alone: it was asked for */
    bool any;                   /* all addresses of the machine */
    char uri[ADDRESS_URI_SIZE]; /* what to bind, and what clients connect to */
} address_t;

/* Understands ipc://PATH and tcp://HOST:PORT (port 0: any free one). HOST is an address of this
 * machine, localhost, or * for all of them; whoever comes to another one than a loopback address
 * needs a key, and with "?curve" behind it also there. A relative ipc path is taken from the
 * working directory; one over 107 bytes moves to a private directory, made here, under
 * XDG_RUNTIME_DIR or the temporary directory. False: `error` says what is wrong. */
bool address_parse (address_t *out, const char *uri, char *error, size_t error_size);
/* The same for tcp that asks for no key, wherever it is. */
bool address_parse_plain (address_t *out, const char *uri, char *error, size_t error_size);
/* An address or a network of them, 10.0.0.0/8, as ZeroMQ takes it. */
bool address_is_network (const char *text);
/* The host of a tcp address, without brackets. */
void address_host (const address_t *self, char *out, size_t out_size);
/* Takes a tcp address for a moment, as a start would. 0 or an errno: EADDRINUSE also while a broker
 * listens on it. */
int address_try (const address_t *self);
/* Where a client on this machine finds an endpoint that is bound to all addresses. */
void address_reach (const char *endpoint, char *out, size_t out_size);

/* What the handler of ZAP is told of the connections to this address: "ipc", "loopback", "curve"
 * or "plain". */
const char *address_domain (const address_t *self);

/* Takes the lock beside an ipc path and makes sure that the path is free or a dead socket. Returns
 * the lock's descriptor, to be closed when the socket is, or -1 with `error`. */
int address_lock_ipc (const char *path, char *error, size_t error_size);

#endif
