/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A store that is out of reach, as the server sees it: the tenure (core/base/tenure.h) with the
 * engine and the log told of it. The server's thread. */
#ifndef TASKMQ_BROKER_STORE_REACH_H
#define TASKMQ_BROKER_STORE_REACH_H

#include "core/base/tenure.h"
#include "core/engine/engine.h"
#include "exits.h"
#include "store/store.h"

/* Once a round. True: the store is back, or gone, since the last look. */
bool store_reach_look (tenure_t *self, store_t *store, engine_t *engine, now_t now);
/* A look-up or a read found it out of reach. */
void store_reach_missed (tenure_t *self, engine_t *engine, now_t now);
/* The lease has ended since the last look: what was computed by now may not leave. */
bool store_reach_ended (tenure_t *self, engine_t *engine);
/* It is out of reach, or no longer ours: nobody tells when that changes. */
bool store_reach_is_lost (const tenure_t *self);
/* A stop has waited long enough. While the store is lost, or was `away` all the time, nothing more
 * can be done cleanly: the process ends here. Nothing that was acknowledged is lost by that. Else
 * it returns. */
void store_reach_give_up (const tenure_t *self, bool away);
/* A stop found it out of reach when everything else was done: that is told. The exit code. */
exits_t store_reach_left (const store_error_t *error);

#endif
