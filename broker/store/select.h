/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which tasks a read wants, apart from where they are stored. */
#ifndef TASKMQ_STORE_SELECT_H
#define TASKMQ_STORE_SELECT_H

#include "core/data/lookup.h"

/* Live tasks are those that the engine holds in memory (A31). */
bool select_is_live (const record_t *record);
bool select_wants_status (const filter_t *filter, tmq_status_t status);
/* It is one of the names, or there are none. */
bool select_contains (const char *const *names, size_t count, const char *name);
/* All conditions of the filter, the namespace included. */
bool select_matches (const filter_t *filter, const record_t *record);
/* Counts a match of a RESOLVE: 0, 1, or 2 for several. False when more matches change nothing. */
bool select_resolved (read_t *read, const tmq_id_t *id);
/* A copy without bodies. */
record_t *select_copy_bare (const record_t *record);

#endif
