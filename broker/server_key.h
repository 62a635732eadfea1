/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The broker's own key: DIR/server.key, which only its user may read. */
#ifndef TASKMQ_BROKER_SERVER_KEY_H
#define TASKMQ_BROKER_SERVER_KEY_H

#include <stdint.h>

#include "data.h"
#include "keys.h"

enum { SERVER_KEY_ERROR_SIZE = DATA_ERROR_SIZE };

/* Reads the key, or makes one where the file is missing; *made says so. EXITS_OK, EXITS_KEYS with a
 * sentence that shows no secret, or EXITS_DATA. The caller wipes the key. */
exits_t server_key_open (key_secret_t *out, bool *made, const data_t *data,
                         char error[SERVER_KEY_ERROR_SIZE]);
/* Reads the key, if the file is there. Codes and wiping as of server_key_open. */
exits_t server_key_read (key_secret_t *out, bool *there, const data_t *data,
                         char error[SERVER_KEY_ERROR_SIZE]);

/* The key that is to follow, in DIR/server.key.next, and when (wall clock). As above; of a damaged
 * file nothing is used. */
exits_t server_key_read_next (key_secret_t *out, int64_t *at_ms, bool *there, const data_t *data,
                              char error[SERVER_KEY_ERROR_SIZE]);
exits_t server_key_write_next (const key_secret_t *key, int64_t at_ms, const data_t *data,
                               char error[SERVER_KEY_ERROR_SIZE]);
/* The key that was to follow is the broker's own from now on. After a crash in between it can be
 * done again. */
exits_t server_key_use_next (const key_secret_t *key, const data_t *data,
                             char error[SERVER_KEY_ERROR_SIZE]);

#endif
