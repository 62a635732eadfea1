/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who made namespaces lately. */
#include "core/tasks/makers.h"

#include <stdlib.h>

#include "core/base/memory.h"

typedef struct maker {
    node_t node;
    name_t *identity;
    int64_t paid_ms; /* mono: each namespace moves it by the time that one takes */
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
    int64_t ahead_ms = maker->paid_ms - self->base->clocks.mono_ms;
    int64_t most_ms = (int64_t) (config->spaces_at_once - 1) * config->space_ms;
    return ahead_ms > most_ms ? ahead_ms - most_ms : 0;
}

void makers_count (tasks_t *self, name_t *identity)
{
    int64_t mono_ms = self->base->clocks.mono_ms;
    maker_t *own = NULL;
    node_t *next = NULL;
    for (node_t *node = self->makers.next; node != &self->makers; node = next) {
        next = node->next;
        maker_t *maker = LIST_ITEM (node, maker_t, node);
        if (maker->identity == identity)
            own = maker;
        else if (maker->paid_ms <= mono_ms) /* it is as one that made none */
            forget (self, maker);
    }
    if (own == NULL) {
        own = memory_zero (1, sizeof (*own));
        own->identity = names_share (identity);
        list_push_back (&self->makers, &own->node);
    }
    if (own->paid_ms < mono_ms)
        own->paid_ms = mono_ms;
    own->paid_ms += self->base->config.space_ms;
}

void makers_clear (tasks_t *self)
{
    node_t *makers = &self->makers;
    for (node_t *node = list_pop_front (makers); node != NULL; node = list_pop_front (makers))
        forget (self, LIST_ITEM (node, maker_t, node));
}
