/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requirements: the sets that tasks of a queue have, each with an order of its own. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/extras.h"
#include "core/tasks/lanes.h"
#include "core/tasks/lanes_parts.h"

name_t *needs_name (tasks_t *self, const Taskmq__Label *label)
{
    char text[TMQ_NAME_LENGTH_MAX + 1 + TMQ_LABEL_BYTES_MAX + 1];
    snprintf (text, sizeof (text), "%s=%s", label->key, label->value);
    return names_keep (&self->base->names, text);
}

static int by_address (const void *a, const void *b)
{
    const name_t *const *left = a;
    const name_t *const *right = b;
    return (*left > *right) - (*left < *right);
}

/* The set as names, kept. */
static size_t read_needs (tasks_t *self, const Taskmq__Extra *extra, name_t *out[TMQ_NEEDS_MAX])
{
    size_t count = extra->n_needs < TMQ_NEEDS_MAX ? extra->n_needs : TMQ_NEEDS_MAX;
    for (size_t i = 0; i < count; i++)
        out[i] = needs_name (self, extra->needs[i]);
    qsort (out, count, sizeof (*out), by_address);
    return count;
}

static order_t *order_find (const lanes_t *lanes, name_t *const *needs, size_t count)
{
    for (size_t i = 1; lanes != NULL && i < lanes->slots; i++) {
        order_t *order = lanes->orders[i];
        if (order != NULL && order->needs_count == count &&
            memcmp (order->needs, needs, count * sizeof (*needs)) == 0)
            return order;
    }
    return NULL;
}

static void drop_needs (tasks_t *self, name_t **needs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        names_drop (&self->base->names, needs[i]);
}

size_t needs_count (const queue_t *queue)
{
    return queue->lanes == NULL ? 0 : queue->lanes->sets;
}

bool needs_fit (tasks_t *self, const queue_t *queue, const Taskmq__Extra *extra)
{
    name_t *needs[TMQ_NEEDS_MAX];
    if (extra == NULL || extra->n_needs == 0 || queue == NULL ||
        needs_count (queue) < TMQ_NEEDS_SETS_MAX)
        return true;
    size_t count = read_needs (self, extra, needs);
    bool known = order_find (queue->lanes, needs, count) != NULL;
    drop_needs (self, needs, count);
    return known;
}

static order_t *order_new (tasks_t *self, lanes_t *lanes)
{
    size_t slot = 1;
    while (slot < lanes->slots && lanes->orders[slot] != NULL)
        slot++;
    assert (slot < ORDERS_MAX); /* needs_fit was asked */
    if (slot == lanes->slots) {
        lanes->orders = memory_resize (lanes->orders, ++lanes->slots, sizeof (*lanes->orders));
        lanes->orders[slot] = NULL;
    }
    order_t *order = memory_zero (1, sizeof (*order));
    lanes_count (lanes, ORDER_BYTES, 0);
    order->lanes = lanes;
    order->slot = slot;
    order->serial = lanes->newest = ++self->orders_made;
    lanes->orders[slot] = order;
    lanes->sets++;
    return order;
}

void needs_begin (tasks_t *self, task_t *task)
{
    if (task->extra == NULL || task->extra->fields->n_needs == 0)
        return;
    name_t *needs[TMQ_NEEDS_MAX] = {NULL};
    lanes_t *lanes = lanes_make (task->queue);
    size_t count = read_needs (self, task->extra->fields, needs);
    order_t *order = order_find (lanes, needs, count);
    if (order == NULL) {
        order = order_new (self, lanes);
        memcpy (order->needs, needs, count * sizeof (*needs));
        order->needs_count = count;
    } else {
        drop_needs (self, needs, count);
    }
    order->tasks++;
    task->extra->order = order;
}

void needs_end (tasks_t *self, task_t *task)
{
    if (task->extra == NULL || task->extra->order == NULL)
        return;
    lanes_t *lanes = task->queue->lanes;
    order_t *order = task->extra->order;
    task->extra->order = NULL;
    if (--order->tasks > 0)
        return;
    drop_needs (self, order->needs, order->needs_count);
    lanes->orders[order->slot] = NULL;
    lanes->sets--;
    order_free (order);
    lanes_tidy (self, task->queue, NULL);
}

static bool meets (const order_t *order, name_t *const *labels, size_t count)
{
    for (size_t i = 0; i < order->needs_count; i++) {
        size_t k = 0;
        while (k < count && labels[k] != order->needs[i])
            k++;
        if (k == count)
            return false;
    }
    return true;
}

void needs_judge (const tasks_t *self, const queue_t *queue, order_set_t *orders,
                  name_t *const *labels, size_t count)
{
    const lanes_t *lanes = queue->lanes;
    orders->bits[0] |= 1;
    if (lanes == NULL || lanes->sets == 0 || lanes->newest <= orders->judged)
        return;
    for (size_t i = 1; i < lanes->slots; i++) {
        const order_t *order = lanes->orders[i];
        uint64_t bit = UINT64_C (1) << (i % 64);
        if (order == NULL || order->serial <= orders->judged)
            continue;
        if (meets (order, labels, count) ||
            self->base->config.planted_bug == ENGINE_BUG_NEEDS_IGNORED)
            orders->bits[i / 64] |= bit;
        else
            orders->bits[i / 64] &= ~bit;
    }
    orders->judged = self->orders_made;
}
