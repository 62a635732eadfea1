/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "tables.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 64 };

/* Numbers. */

static struct core_slot *slot_of (const core_slots_t *self, uint64_t number)
{
    return &self->slots[number & (self->capacity - 1)];
}

static bool slots_grow (core_slots_t *self)
{
    size_t capacity = self->capacity == 0 ? CAPACITY_MIN : self->capacity * 2;
    core_slots_t grown = {calloc (capacity, sizeof *grown.slots), capacity, self->count,
                          self->newest};
    if (grown.slots == NULL)
        return false;
    for (size_t i = 0; i < self->capacity; i++)
        if (self->slots[i].item != NULL)
            *slot_of (&grown, self->slots[i].number) = self->slots[i];
    free (self->slots);
    *self = grown;
    return true;
}

uint64_t core_slots_add (core_slots_t *self, void *item)
{
    if (self->count * 2 >= self->capacity && !slots_grow (self))
        return 0;
    do
        self->newest++;
    while (slot_of (self, self->newest)->item != NULL);
    *slot_of (self, self->newest) = (struct core_slot){self->newest, item};
    self->count++;
    return self->newest;
}

void *core_slots_get (const core_slots_t *self, uint64_t number)
{
    if (self->count == 0)
        return NULL;
    const struct core_slot *slot = slot_of (self, number);
    return slot->number == number ? slot->item : NULL;
}

void core_slots_remove (core_slots_t *self, uint64_t number)
{
    if (core_slots_get (self, number) == NULL)
        return;
    *slot_of (self, number) = (struct core_slot){0, NULL};
    self->count--;
}

void core_slots_free (core_slots_t *self)
{
    free (self->slots);
    memset (self, 0, sizeof *self);
}

/* Task ids. */

/* The end of a UUIDv7 is random; a multiplication spreads ids that were made by hand. */
static core_idnode_t **bucket_of (const core_idmap_t *self, const tmq_id_t *id)
{
    uint64_t low;
    memcpy (&low, id->bytes + 8, sizeof low);
    uint64_t mixed = low * UINT64_C (0x9e3779b97f4a7c15);
    return &self->buckets[(size_t) (mixed >> 32) & (self->capacity - 1)];
}

static bool idmap_grow (core_idmap_t *self)
{
    size_t capacity = self->capacity == 0 ? CAPACITY_MIN : self->capacity * 2;
    core_idmap_t grown = {calloc (capacity, sizeof (core_idnode_t *)), capacity, self->count};
    if (grown.buckets == NULL)
        return false;
    for (size_t i = 0; i < self->capacity; i++) {
        core_idnode_t *node = self->buckets[i];
        while (node != NULL) {
            core_idnode_t *next = node->next;
            core_idnode_t **bucket = bucket_of (&grown, &node->id);
            node->next = *bucket;
            *bucket = node;
            node = next;
        }
    }
    free (self->buckets);
    *self = grown;
    return true;
}

bool core_idmap_add (core_idmap_t *self, core_idnode_t *node)
{
    if (self->count >= self->capacity && !idmap_grow (self))
        return false;
    core_idnode_t **bucket = bucket_of (self, &node->id);
    node->next = *bucket;
    *bucket = node;
    self->count++;
    return true;
}

static core_idnode_t *first_of (core_idnode_t *node, const tmq_id_t *id)
{
    while (node != NULL && memcmp (node->id.bytes, id->bytes, sizeof id->bytes) != 0)
        node = node->next;
    return node;
}

core_idnode_t *core_idmap_get (const core_idmap_t *self, const tmq_id_t *id)
{
    return self->count == 0 ? NULL : first_of (*bucket_of (self, id), id);
}

core_idnode_t *core_idmap_again (const core_idnode_t *node)
{
    return first_of (node->next, &node->id);
}

void core_idmap_remove (core_idmap_t *self, core_idnode_t *node)
{
    core_idnode_t **at = bucket_of (self, &node->id);
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    node->next = NULL;
    self->count--;
}

void core_idmap_free (core_idmap_t *self)
{
    free (self->buckets);
    memset (self, 0, sizeof *self);
}

/* Time. */

bool core_heap_reserve (core_heap_t *self, size_t count)
{
    if (count <= self->capacity)
        return true;
    size_t capacity = self->capacity == 0 ? CAPACITY_MIN : self->capacity;
    while (capacity < count)
        capacity *= 2;
    core_timer_t **timers = realloc (self->timers, capacity * sizeof (core_timer_t *));
    if (timers == NULL)
        return false;
    self->timers = timers;
    self->capacity = capacity;
    return true;
}

static void heap_put (core_heap_t *self, size_t index, core_timer_t *timer)
{
    self->timers[index] = timer;
    timer->place = index + 1;
}

static void heap_up (core_heap_t *self, size_t index, core_timer_t *timer)
{
    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (self->timers[parent]->at_ms <= timer->at_ms)
            break;
        heap_put (self, index, self->timers[parent]);
        index = parent;
    }
    heap_put (self, index, timer);
}

static void heap_down (core_heap_t *self, size_t index, core_timer_t *timer)
{
    for (;;) {
        size_t child = index * 2 + 1;
        if (child >= self->count)
            break;
        if (child + 1 < self->count && self->timers[child + 1]->at_ms < self->timers[child]->at_ms)
            child++;
        if (timer->at_ms <= self->timers[child]->at_ms)
            break;
        heap_put (self, index, self->timers[child]);
        index = child;
    }
    heap_put (self, index, timer);
}

static void heap_settle (core_heap_t *self, size_t index, core_timer_t *timer)
{
    if (index > 0 && self->timers[(index - 1) / 2]->at_ms > timer->at_ms)
        heap_up (self, index, timer);
    else
        heap_down (self, index, timer);
}

void core_heap_set (core_heap_t *self, core_timer_t *timer, int64_t at_ms)
{
    if (at_ms == INT64_MAX) {
        core_heap_clear (self, timer);
        return;
    }
    timer->at_ms = at_ms;
    if (timer->place != 0) {
        heap_settle (self, timer->place - 1, timer);
        return;
    }
    self->count++;
    heap_up (self, self->count - 1, timer);
}

void core_heap_clear (core_heap_t *self, core_timer_t *timer)
{
    if (timer->place == 0)
        return;
    size_t index = timer->place - 1;
    timer->place = 0;
    self->count--;
    if (index < self->count)
        heap_settle (self, index, self->timers[self->count]);
}

core_timer_t *core_heap_first (const core_heap_t *self)
{
    return self->count == 0 ? NULL : self->timers[0];
}

void core_heap_free (core_heap_t *self)
{
    free (self->timers);
    memset (self, 0, sizeof *self);
}
