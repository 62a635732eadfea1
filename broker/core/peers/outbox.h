/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What waits for its batch, then for its turn to leave (A7). */
#ifndef TASKMQ_CORE_OUTBOX_H
#define TASKMQ_CORE_OUTBOX_H

#include "core/peers/links.h"

/* A packed field of a BrokerMessage for the link, held until batch is durable; 0 leaves at once.
 * Keeps the body once more. */
item_t *outbox_add (links_t *self, link_t *link, item_kind_t kind, uint64_t batch,
                    const bytes_t *packed, buf_t *body);
void outbox_durable (links_t *self);
/* The link has something to send. */
void outbox_wake (links_t *self, link_t *link);
void outbox_drop (links_t *self, link_t *link); /* what is ready to leave for it */
void outbox_free (links_t *self, item_t *item); /* of no list */
/* What it takes of its link's unsent bytes. */
size_t outbox_item_bytes (const item_t *item);
/* The transport refused these: they go first again, and are tried again after 100 ms, or when the
 * peer is heard. Notices are dropped. */
void outbox_put_back (links_t *self, link_t *link, node_t *items);
void outbox_retry (links_t *self);                /* what is due */
int64_t outbox_retry_at_ms (const links_t *self); /* mono, INT64_MAX for never */
void outbox_free_items (links_t *self, node_t *list);

#endif
