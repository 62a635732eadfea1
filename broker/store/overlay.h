/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is durable but not in the tables, as a start of the engine must see it (A21). Needed only
 * when a commit failed for lack of space and the rows before it still wait for space themselves:
 * then nobody holds their tasks in memory any more. */
#ifndef TASKMQ_STORE_OVERLAY_H
#define TASKMQ_STORE_OVERLAY_H

#include "core/data/lookup.h"
#include "core/data/row_list.h"

typedef struct overlay overlay_t;

/* Copies what it needs of the batches, oldest first. */
overlay_t *overlay_new (batch_t *const *batches, size_t count);
void overlay_free (overlay_t *self); /* accepts NULL */
/* The newest batch in it: once that is written, the tables have everything. */
uint64_t overlay_upto (const overlay_t *self);

/* The tasks in it, by number: images with bodies. */
size_t overlay_count (const overlay_t *self);
const record_t *overlay_record (const overlay_t *self, size_t position);
/* The tables' row of this task is out of date. */
bool overlay_has (const overlay_t *self, int64_t number);
/* Newest sequence of a namespace, 0 if it has no event here. */
uint64_t overlay_last_seq (const overlay_t *self, const char *ns);
/* Namespaces in it, for those that the tables do not know yet; NULL behind the last. */
const char *overlay_ns (const overlay_t *self, size_t position);

/* The newest changes of rows in it, also of those that are gone. */
const row_list_t *overlay_rows (const overlay_t *self);

/* Corrects an answer that came from the tables. */
void overlay_correct (const overlay_t *self, lookup_t *key);

#endif
