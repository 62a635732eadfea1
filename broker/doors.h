/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The addresses of the broker: what is listened on, with which key, and whether it is shut. */
#ifndef TASKMQ_BROKER_DOORS_H
#define TASKMQ_BROKER_DOORS_H

#include "access_requests.h"
#include "audit/audit.h"
#include "config/config.h"
#include "data.h"
#include "exits.h"
#include "net/feed.h"
#include "net/router.h"
#include "net/zap.h"

enum { DOORS_ENDPOINTS_MAX = 2 * ROUTER_ENDPOINTS_MAX };

/* What clients read in the file `endpoint`. */
typedef struct doors_endpoint {
    char text[ADDRESS_URI_SIZE + 128];
} doors_endpoint_t;

typedef struct doors {
    /* Borrowed; the last six are set before doors_open. */
    const config_t *config;
    const data_t *data;
    zap_t *zap;
    router_t *router;
    feed_t *feed;
    const access_file_t *access;
    audit_t *audit;
    access_requests_t *requests;

    key_secret_t server_key; /* if has_server_key; to be wiped at the end */
    key_public_t server_public;
    bool has_server_key;
    bool open_to_users;                        /* there is, or was, a file that lists them */
    bool renew_failed;                         /* and it was said */
    bool joiners_told;                         /* an address for invitations is known */
    const char *networks[CONFIG_NETWORKS_MAX]; /* that may connect by tcp */
    doors_endpoint_t endpoints[DOORS_ENDPOINTS_MAX];
    size_t endpoints_count; /* once they are all open */
} doors_t;

/* Reads or makes the broker's key, if an address asks for keys: only a broker that other machines
 * reach has one. */
exits_t doors_key (doors_t *self);
/* Who may come near, as the configuration has it; valid as long as the doors. */
guard_t doors_guard (doors_t *self);
/* Before a wait as a standby: removes the sockets at which we would listen and nobody does any
 * more, so that clients find none. */
void doors_sweep (const config_t *config, const data_t *data);
/* Listens everywhere, looks whether the doors are shut, and says that the broker is ready. */
exits_t doors_open (doors_t *self);
/* An access file counts, the first one: other users reach the sockets that are meant for them. */
void doors_open_to_users (doors_t *self);
/* The broker has another key from now on. The addresses that ask for keys are opened anew with it,
 * which ends the connections that came by them. Clients and newcomers are told. The key itself has
 * been kept by the caller. */
void doors_change_key (doors_t *self, const key_secret_t *key);
/* Opens what could not be opened anew yet; call it once in a while. */
void doors_renew (doors_t *self, int64_t now_ms);
/* Then doors_renew is to be called soon. */
bool doors_are_closing (const doors_t *self);

#endif
