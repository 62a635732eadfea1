/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What waits to leave. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/peers/link.h"
#include "core/peers/outbox.h"

enum {
    SPARE_BYTES = 160,      /* packed: an assignment without labels fits */
    REFUSED_RETRY_MS = 100, /* until a message that the transport refused is tried again */
    SPARE_ITEMS_MAX = 4096  /* kept for use again: under 1 MiB */
};

/* Nearly all items are small answers that live for one commit: their places are used again. */
static item_t *item_new (links_t *self, size_t bytes)
{
    node_t *node = bytes > SPARE_BYTES ? NULL : list_pop_front (&self->spare_items);
    if (node == NULL)
        return memory_alloc (sizeof (item_t) + (bytes > SPARE_BYTES ? bytes : SPARE_BYTES));
    self->spare_items_count--;
    return LIST_ITEM (node, item_t, node);
}

void outbox_free (links_t *self, item_t *item)
{
    buf_drop (item->body);
    if (item->bytes > SPARE_BYTES || self->spare_items_count >= SPARE_ITEMS_MAX) {
        free (item);
        return;
    }
    list_push_front (&self->spare_items, &item->node);
    self->spare_items_count++;
}

size_t outbox_item_bytes (const item_t *item)
{
    return item->bytes + buf_length (item->body);
}

void outbox_wake (links_t *self, link_t *link)
{
    if (!node_is_linked (&link->output))
        list_push_back (&self->outputs, &link->output);
}

static void make_ready (links_t *self, item_t *item)
{
    list_push_back (&item->link->ready, &item->node);
    item->link->unsent_bytes += outbox_item_bytes (item);
    outbox_wake (self, item->link);
}

/* Answers of one link that wait for the same batch share an item as far as there is room. */
static item_t *join_reply (const link_t *link, item_kind_t kind, uint64_t batch,
                           const bytes_t *packed, const buf_t *body)
{
    item_t *item = link->held_reply;
    if (item == NULL || kind != ITEM_REPLY || body != NULL || item->batch != batch ||
        packed->length > SPARE_BYTES || item->bytes > SPARE_BYTES - packed->length)
        return NULL;
    memcpy (item->packed + item->bytes, packed->data, packed->length);
    item->bytes += packed->length;
    return item;
}

item_t *outbox_add (links_t *self, link_t *link, item_kind_t kind, uint64_t batch,
                    const bytes_t *packed, buf_t *body)
{
    assert (!packed->failed);
    item_t *joined = join_reply (link, kind, batch, packed, body);
    if (joined != NULL)
        return joined;
    item_t *item = item_new (self, packed->length);
    *item = (item_t){.link = link,
                     .batch = batch,
                     .kind = kind,
                     .body = buf_keep (body),
                     .bytes = packed->length};
    memcpy (item->packed, packed->data, packed->length);
    if (batch <= self->base->durable) {
        make_ready (self, item);
        return item;
    }
    link->references++;
    list_push_back (&self->held, &item->node);
    if (kind == ITEM_REPLY && body == NULL)
        link->held_reply = item;
    return item;
}

/* It is not held any more: nothing joins it. */
static void unhold (item_t *item)
{
    list_remove (&item->node);
    item->link->references--;
    if (item->link->held_reply == item)
        item->link->held_reply = NULL;
}

void outbox_durable (links_t *self)
{
    for (node_t *node = list_first (&self->held); node != NULL; node = list_first (&self->held)) {
        item_t *item = LIST_ITEM (node, item_t, node);
        if (item->batch > self->base->durable)
            break;
        link_t *link = item->link;
        unhold (item);
        if (link->silenced) {
            outbox_free (self, item);
            link_free_if_idle (self, link);
        } else {
            make_ready (self, item);
        }
    }
}

void outbox_free_items (links_t *self, node_t *list)
{
    for (node_t *node = list_pop_front (list); node != NULL; node = list_pop_front (list))
        outbox_free (self, LIST_ITEM (node, item_t, node));
}

void outbox_drop (links_t *self, link_t *link)
{
    outbox_free_items (self, &link->ready);
    link->notices = 0;
    link->unsent_bytes = 0;
    list_remove (&link->refused);
}

/* Messages that the transport refused. */

void outbox_put_back (links_t *self, link_t *link, node_t *items)
{
    for (node_t *node = list_pop_back (items); node != NULL; node = list_pop_back (items)) {
        item_t *item = LIST_ITEM (node, item_t, node);
        if (item->kind == ITEM_NOTICE) {
            outbox_free (self, item);
            continue;
        }
        list_push_front (&link->ready, node);
        link->unsent_bytes += outbox_item_bytes (item);
    }
    if (list_is_empty (&self->refused))
        self->retry_at_ms = self->base->clocks.mono_ms + REFUSED_RETRY_MS;
    if (!node_is_linked (&link->refused))
        list_push_back (&self->refused, &link->refused);
}

void outbox_retry (links_t *self)
{
    if (self->base->clocks.mono_ms < self->retry_at_ms)
        return;
    for (node_t *node = list_pop_front (&self->refused); node != NULL;
         node = list_pop_front (&self->refused))
        outbox_wake (self, LIST_ITEM (node, link_t, refused));
}

int64_t outbox_retry_at_ms (const links_t *self)
{
    return list_is_empty (&self->refused) ? INT64_MAX : self->retry_at_ms;
}

/* Life. */

void links_init (links_t *self, base_t *base)
{
    *self = (links_t){.base = base};
    list_init (&self->held);
    list_init (&self->outputs);
    list_init (&self->refused);
    list_init (&self->spare_items);
    list_init (&self->imports);
}

void links_reset (links_t *self)
{
    for (node_t *node = list_first (&self->held); node != NULL; node = list_first (&self->held)) {
        item_t *item = LIST_ITEM (node, item_t, node);
        link_t *link = item->link;
        unhold (item);
        outbox_free (self, item);
        link_free_if_idle (self, link);
    }
    for (node_t *node = list_pop_front (&self->outputs); node != NULL;
         node = list_pop_front (&self->outputs)) {
        link_t *link = LIST_ITEM (node, link_t, output);
        outbox_drop (self, link);
        link_free_if_idle (self, link);
    }
    map_free (&self->by_peer);
    self->established = 0;
}

void links_free (links_t *self)
{
    for (node_t *node = list_pop_front (&self->spare_items); node != NULL;
         node = list_pop_front (&self->spare_items))
        free (LIST_ITEM (node, item_t, node));
    bytes_free (&self->scratch);
    bytes_free (&self->envelope);
}
