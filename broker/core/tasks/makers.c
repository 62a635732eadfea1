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
    list_unlink (&maker->node);
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

/* One whose time has passed is as one that made none. */
static void forget_paid (tasks_t *self)
{
    node_t *next = NULL;
    for (node_t *node = self->makers.next; node != &self->makers; node = next) {
        next = node->next;
        maker_t *maker = LIST_ITEM (node, maker_t, node);
        if (maker->paid_ms <= self->base->clocks.mono_ms)
            forget (self, maker);
    }
}

void makers_count (tasks_t *self, name_t *identity)
{
    forget_paid (self);
    maker_t *maker = find (self, identity);
    if (maker == NULL) {
        maker = memory_zero (1, sizeof (*maker));
        maker->identity = names_share (identity);
        maker->paid_ms = self->base->clocks.mono_ms;
        list_push_back (&self->makers, &maker->node);
    }
    maker->paid_ms += self->base->config.space_ms;
}

void makers_clear (tasks_t *self)
{
    while (!list_is_empty (&self->makers))
        forget (self, LIST_ITEM (self->makers.next, maker_t, node));
}
