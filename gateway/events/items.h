/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Items of a flow as server-sent events: `event` is the kind, `data` the line that `taskctl watch
 * -o jsonl` prints, `id` the cursor where it is safe to go on behind it. Pure.
 *
 * Failure: the bytes_t remembers exhausted memory. */
#ifndef TASKMQ_GATEWAY_EVENTS_ITEMS_H
#define TASKMQ_GATEWAY_EVENTS_ITEMS_H

#include "events/ring.h"
#include "taskmq.h"

/* Of any item but TMQ_ITEM_LIVE. generation: of the item before it, 0: there was none. Fills in all
 * of the piece but its place. */
void item_write (bytes_t *out, ring_piece_t *piece, const tmq_event_t *event, uint64_t generation);

/* What the gateway itself tells. */
void item_write_live (bytes_t *out, const char *cursor);
void item_write_broker (bytes_t *out, bool connected);
void item_write_stop (bytes_t *out);
void item_write_refused (bytes_t *out, int code, const char *detail);

/* "7-12"; false: it is none. */
bool cursor_read (const char *text, uint64_t *generation, uint64_t *seq);
void cursor_write (char out[48], uint64_t generation, uint64_t seq);

#endif
