/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Namespaces and queues. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/space.h"

space_t *space_find (const tasks_t *self, const char *name)
{
    uint32_t hash = secrets_hash (&self->base->secrets, name, strlen (name));
    size_t cursor = MAP_START;
    for (space_t *space = map_next (&self->spaces, hash, &cursor); space != NULL;
         space = map_next (&self->spaces, hash, &cursor))
        if (strcmp (space->name, name) == 0)
            return space;
    return NULL;
}

space_t *space_make (tasks_t *self, const char *name)
{
    space_t *space = space_find (self, name);
    if (space != NULL)
        return space;
    space = memory_zero (1, sizeof (*space));
    space->hash = secrets_hash (&self->base->secrets, name, strlen (name));
    strncpy (space->name, name, TMQ_NAME_LENGTH_MAX);
    event_log_init (&space->log, space->name, self->history->floor_seq);
    list_init (&space->queue_list);
    list_init (&space->kept);
    map_insert (&self->spaces, space->hash, space);
    return space;
}

/* One that has a history stays: its sequence must go on. */
static bool is_needed (const space_t *space)
{
    return space->links > 0 || space->queues > 0 || space->workers > 0 || space->removals > 0 ||
           space->schedules_count > 0 || space->sessions_count > 0 || space->entries.values > 0 ||
           space->entries.items > 0 || space->entries.turn_bytes > 0 ||
           space->entries.artifact_bytes > 0 || space->kept_count > 0 ||
           node_is_linked (&space->cleaning) || event_log_is_used (&space->log);
}

void space_release (tasks_t *self, space_t *space)
{
    if (!is_needed (space) && !node_is_linked (&space->idle))
        list_push_back (&self->idle_spaces, &space->idle);
}

void spaces_free_idle (tasks_t *self)
{
    node_t later;
    list_init (&later);
    for (node_t *node = list_pop_front (&self->idle_spaces); node != NULL;
         node = list_pop_front (&self->idle_spaces)) {
        space_t *space = LIST_ITEM (node, space_t, idle);
        if (is_needed (space))
            continue;
        if (space->log.audience != NULL) { /* its last subscribers are being freed */
            list_push_back (&later, node);
            continue;
        }
        map_remove (&self->spaces, space->hash, space);
        event_log_clear (&space->log);
        unanswered_clear (&space->unanswered);
        free (space->entries.removed);
        free (space);
    }
    for (node_t *node = list_pop_front (&later); node != NULL; node = list_pop_front (&later))
        list_push_back (&self->idle_spaces, node);
}

/* Queues. */

enum { QUEUE_BYTES = sizeof (queue_t) + SLOT_BYTES + ALLOCATION_BYTES };

static uint32_t queue_hash (const tasks_t *self, const space_t *space, const char *name)
{
    uint8_t key[sizeof (space->hash) + TMQ_NAME_LENGTH_MAX];
    size_t length = strnlen (name, TMQ_NAME_LENGTH_MAX);
    memcpy (key, &space->hash, sizeof (space->hash));
    memcpy (key + sizeof (space->hash), name, length);
    return secrets_hash (&self->base->secrets, key, sizeof (space->hash) + length);
}

static queue_t *find_by_hash (const tasks_t *self, const space_t *space, const char *name,
                              uint32_t hash)
{
    size_t cursor = MAP_START;
    queue_t *queue = NULL;
    while ((queue = map_next (&self->queues, hash, &cursor)) != NULL)
        if (queue->space == space && strcmp (queue->name, name) == 0)
            return queue;
    return NULL;
}

queue_t *queue_find (const tasks_t *self, const space_t *space, const char *name)
{
    return find_by_hash (self, space, name, queue_hash (self, space, name));
}

queue_t *queue_make (tasks_t *self, space_t *space, const char *name)
{
    uint32_t hash = queue_hash (self, space, name);
    queue_t *queue = find_by_hash (self, space, name, hash);
    if (queue != NULL)
        return queue;
    queue = memory_alloc (sizeof (*queue));
    queue_init (queue, space, name);
    queue->hash = hash;
    queue->bytes = &self->order_bytes;
    queue_count (queue, QUEUE_BYTES, 0);
    queue->serial = ++self->queues_made;
    space->queues++;
    list_push_back (&space->queue_list, &queue->of_space);
    map_insert (&self->queues, hash, queue);
    return queue;
}

void queue_release (tasks_t *self, queue_t *queue)
{
    if (queue->tasks > 0 || queue->seats > 0 || queue->settings != NULL)
        return;
    list_remove (&queue->changed);
    list_remove (&queue->fetch);
    for (node_t *node = self->walks.next; node != &self->walks; node = node->next) {
        queue_walk_t *walk = LIST_ITEM (node, queue_walk_t, node);
        if (walk->next == &queue->of_space)
            walk->next = queue->of_space.next;
    }
    list_unlink (&queue->of_space);
    map_remove (&self->queues, queue->hash, queue);
    queue->space->queues--;
    queue_count (queue, 0, QUEUE_BYTES);
    queue_clear (queue);
    free (queue);
}

/* Walks. */

void queue_walk_begin (tasks_t *self, queue_walk_t *walk, space_t *space)
{
    *walk = (queue_walk_t){.space = space, .next = space->queue_list.next};
    list_push_back (&self->walks, &walk->node);
}

queue_t *queue_walk_next (queue_walk_t *walk)
{
    node_t *node = walk->next;
    if (node == &walk->space->queue_list)
        return NULL;
    walk->next = node->next;
    return LIST_ITEM (node, queue_t, of_space);
}

void queue_walk_end (queue_walk_t *walk)
{
    list_remove (&walk->node);
}

void queue_changed (tasks_t *self, queue_t *queue)
{
    if (self->base->config.planted_bug == ENGINE_BUG_LOST_WAKE_UP && queue->ready == 1)
        return;
    if (node_is_linked (&queue->changed))
        queue->look_again = true;
    else
        list_push_back (&self->changed_queues, &queue->changed);
}

void spaces_clear (tasks_t *self)
{
    size_t cursor = 0;
    for (queue_t *queue = map_each (&self->queues, &cursor); queue != NULL;
         queue = map_each (&self->queues, &cursor)) {
        queue_clear (queue);
        free (queue);
    }
    map_free (&self->queues);
    cursor = 0;
    for (space_t *space = map_each (&self->spaces, &cursor); space != NULL;
         space = map_each (&self->spaces, &cursor)) {
        event_log_clear (&space->log);
        unanswered_clear (&space->unanswered);
        free (space->entries.removed);
        free (space);
    }
    map_free (&self->spaces);
    list_init (&self->idle_spaces);
    list_init (&self->counted_spaces);
}
