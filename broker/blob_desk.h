/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The server's part of the blobs: a thread that writes and reads their files, and from time to time
 * a look at those that stood still, of which it asks the engine whether they are needed. */
#ifndef TASKMQ_BROKER_BLOB_DESK_H
#define TASKMQ_BROKER_BLOB_DESK_H

#include "blobs/depot.h"
#include "core/engine/engine.h"

typedef struct blob_desk blob_desk_t;

enum { BLOB_LOOK_MS = 5000 }; /* all of them are seen in 22 minutes */

/* directory: of the blobs; vault: what keeps them, too, or NULL. Where the directory cannot be used
 * the broker goes on without, and says so: then each request about a blob is refused. NULL when the
 * thread cannot be made. */
blob_desk_t *blob_desk_new (const char *directory, const depot_limits_t *limits,
                            const vault_t *vault);
void blob_desk_free (blob_desk_t **self); /* accepts a NULL object */
void blob_desk_configure (blob_desk_t *self, const depot_limits_t *limits);

/* All of these on the server's thread. */

bool blob_desk_does (const errand_t *errand); /* it is about a blob */
void blob_desk_give (blob_desk_t *self, errand_t *errand);
/* What is done goes back to the engine. */
void blob_desk_take (blob_desk_t *self, engine_t *engine, now_t now);
/* Looks when it is time to. While held nothing is removed. */
void blob_desk_tick (blob_desk_t *self, now_t now, bool held);
/* Nobody waits for it: what it does by itself may end at any point. */
bool blob_desk_is_idle (const blob_desk_t *self);
int blob_desk_fd (const blob_desk_t *self);
depot_stats_t blob_desk_stats (blob_desk_t *self);

#endif
