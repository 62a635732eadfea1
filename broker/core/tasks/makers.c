/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who made namespaces lately. */
#include "core/tasks/makers.h"

#include <stdlib.h>

#include "core/base/bucket.h"
#include "core/base/memory.h"

enum { MS_NS = 1000000 };

typedef struct maker {
    node_t node;
    name_t *identity;
    bucket_t bucket;
} maker_t;

static maker_t *find (const tasks_t *self, const name_t *identity)
{
    for (node_t *node = self->makers.next; node != &self->makers; node = node->next)
        if (LIST_ITEM (node, maker_t, node)->identity == identity)
            return LIST_ITEM (node, maker_t, node);
    return NULL;
}

static void forget (tasks_t *self, maker_t *maker)
{
    list_remove (&maker->node);
    names_drop (&self->base->names, maker->identity);
    free (maker);
}

int64_t makers_wait_ms (const tasks_t *self, const name_t *identity)
{
    const engine_config_t *config = &self->base->config;
    const maker_t *maker = find (self, identity);
    if (maker == NULL)
        return 0;
    return bucket_wait_ms (&maker->bucket, config->space_ms * MS_NS, config->spaces_at_once,
                           self->base->clocks.mono_ms);
}

void makers_count (tasks_t *self, const space_t *space, name_t *identity)
{
    const engine_config_t *config = &self->base->config;
    int64_t mono_ms = self->base->clocks.mono_ms;
    maker_t *own = NULL;
    node_t *next = NULL;
    if (event_log_is_used (&space->log))
        return;
    for (node_t *node = self->makers.next; node != &self->makers; node = next) {
        next = node->next;
        maker_t *maker = LIST_ITEM (node, maker_t, node);
        if (maker->identity == identity)
            own = maker;
        else if (bucket_is_full (&maker->bucket, mono_ms)) /* it is as one that made none */
            forget (self, maker);
    }
    if (own == NULL) {
        own = memory_zero (1, sizeof (*own));
        own->identity = names_share (identity);
        list_push_back (&self->makers, &own->node);
    }
    bucket_take_each (&own->bucket, config->space_ms * MS_NS, config->spaces_at_once, mono_ms);
}

void makers_clear (tasks_t *self)
{
    node_t *makers = &self->makers;
    for (node_t *node = list_pop_front (makers); node != NULL; node = list_pop_front (makers))
        forget (self, LIST_ITEM (node, maker_t, node));
}
