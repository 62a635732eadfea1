/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The server's part of the logs. It brings pieces and reads to their thread, and tells it which
 * tasks are gone once that is durable. It finds out about the logs that a former run has left. */
#ifndef TASKMQ_BROKER_LOG_DESK_H
#define TASKMQ_BROKER_LOG_DESK_H

#include "core/engine/engine.h"
#include "logs/shelf.h"
#include "store/store.h"

typedef struct log_desk log_desk_t;

/* NULL when the thread cannot be made. */
log_desk_t *log_desk_new (const char *directory, const shelf_limits_t *limits, store_t *store);
void log_desk_free (log_desk_t **self); /* accepts a NULL object */
void log_desk_configure (log_desk_t *self, const shelf_limits_t *limits);

/* All of these on the server's thread. */

void log_desk_read (log_desk_t *self, errand_t *errand); /* goes back to the engine */
void log_desk_give (log_desk_t *self, engine_t *engine); /* what the engine has for the logs */
/* What is done goes back to the engine; now and then also if nothing is, since a store that was out
 * of reach is asked again. Not STORE_OK: the store failed. */
store_code_t log_desk_take (log_desk_t *self, engine_t *engine, now_t now, store_error_t *error);
/* Tasks that a batch removes: their logs go when it is durable, or nothing happens when it is
 * dropped. */
void log_desk_hold (log_desk_t *self, const batch_t *batch);
void log_desk_durable (log_desk_t *self, uint64_t batch);
void log_desk_drop (log_desk_t *self);
bool log_desk_is_idle (const log_desk_t *self);
int log_desk_fd (const log_desk_t *self);
shelf_stats_t log_desk_stats (log_desk_t *self);

#endif
