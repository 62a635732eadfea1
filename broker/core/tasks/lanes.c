/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Lanes, their keys and orders. */
#include "core/tasks/lanes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/extras.h"
#include "core/tasks/session.h"
#include "core/tasks/space.h"

enum { TURN = 1000000 }; /* virtual time of a task in a lane of weight 1 */

/* A fair key of a queue. */
typedef struct fair {
    name_t *name; /* NULL: of tasks without a key; they have no cap */
    uint32_t lanes;
    uint32_t running;
    node_t parked; /* lanes that wait for a lease of it to end */
    node_t node;   /* in the list of keys with parked lanes */
} fair_t;

typedef struct order order_t;
typedef struct track track_t;

struct lane {
    level_t own;
    level_t *line; /* own; of those without key and requirements the queue's level */
    fair_t *fair;
    order_t *order;
    unsigned priority;
    uint64_t due;  /* virtual time of its turn */
    uint64_t turn; /* among those that are due at the same time */
    size_t place;  /* 1 + in its level's heap; 0: it is not in it */
    node_t parked; /* in its key's list */
};

/* The lanes of a priority that have tasks: a heap, the next one first. */
typedef struct lane_level {
    struct lane **lanes;
    size_t count;
    size_t capacity;
} lane_level_t;

struct order {
    lanes_t *lanes;
    name_t *needs[TMQ_NEEDS_MAX]; /* "key=value", by their addresses */
    size_t needs_count;
    size_t slot;
    uint64_t serial; /* it is the so-manieth set that was made */
    uint32_t tasks;  /* live ones that have it */
    uint64_t used[4];
    lane_level_t *groups[LEVEL_GROUPS];
};

/* A priority of all orders. */
struct track {
    struct lane *plain; /* of the queue's own level; NULL: that is empty */
    uint64_t now;       /* virtual time */
};

struct lanes {
    queue_t *queue;
    size_t bytes; /* what all this takes, about */
    map_t fairs;  /* by the name's hash */
    map_t keyed;  /* lanes but the plain ones, by key, order and priority */
    fair_t none;
    node_t capped;    /* keys with parked lanes */
    order_t **orders; /* by slot; NULL: free */
    size_t slots;     /* so many places */
    size_t sets;      /* orders beside the first one */
    uint64_t newest;  /* serial of the one that was made last */
    uint64_t turns;
    track_t *tracks[LEVEL_GROUPS];
};

/* What they take, with what the allocator and the tables add. */
enum {
    LANES_BYTES = sizeof (lanes_t) + 2 * 16 * sizeof (map_slot_t) + 4 * ALLOCATION_BYTES,
    TRACKS_BYTES = LEVEL_GROUP * sizeof (track_t) + ALLOCATION_BYTES,
    ORDER_BYTES = sizeof (order_t) + ALLOCATION_BYTES,
    LEVELS_BYTES = LEVEL_GROUP * sizeof (lane_level_t) + ALLOCATION_BYTES,
    LANE_BYTES = sizeof (lane_t) + 8 * sizeof (lane_t *) + SLOT_BYTES + 2 * ALLOCATION_BYTES,
    FAIR_BYTES = sizeof (fair_t) + sizeof (name_t) + 2 * SLOT_BYTES + 2 * ALLOCATION_BYTES
};

static void count (lanes_t *self, size_t more, size_t less)
{
    self->bytes += more - less;
    queue_count (self->queue, more, less);
}

static track_t *track_at (lanes_t *self, unsigned priority)
{
    track_t **group = &self->tracks[priority / LEVEL_GROUP];
    if (*group == NULL) {
        *group = memory_zero (LEVEL_GROUP, sizeof (**group));
        count (self, TRACKS_BYTES, 0);
    }
    return &(*group)[priority % LEVEL_GROUP];
}

/* The share of a key's lane against the others, 1..1000. */
static uint32_t lane_weight (const tasks_t *self, const queue_t *queue, const name_t *key)
{
    (void) self;
    if (key == NULL || queue->weight_of != TMQ_WEIGHT_OF_SESSION)
        return LANE_WEIGHT;
    const session_t *session = session_find (queue->space, key->text);
    return session == NULL ? LANE_WEIGHT : session->stored->salience;
}

static uint64_t step_of (const tasks_t *self, const queue_t *queue, const lane_t *lane)
{
    return TURN / lane_weight (self, queue, lane->fair->name);
}

/* The heap of a level. */

static bool is_sooner (const lane_t *a, const lane_t *b)
{
    return a->due != b->due ? a->due < b->due : a->turn < b->turn;
}

static void put (lane_level_t *self, size_t i, lane_t *lane)
{
    self->lanes[i] = lane;
    lane->place = i + 1;
}

static void sift_up (lane_level_t *self, size_t i, lane_t *lane)
{
    for (; i > 0 && is_sooner (lane, self->lanes[(i - 1) / 2]); i = (i - 1) / 2)
        put (self, i, self->lanes[(i - 1) / 2]);
    put (self, i, lane);
}

static void sift_down (lane_level_t *self, size_t i, lane_t *lane)
{
    for (size_t child = 2 * i + 1; child < self->count; child = 2 * i + 1) {
        if (child + 1 < self->count && is_sooner (self->lanes[child + 1], self->lanes[child]))
            child++;
        if (!is_sooner (self->lanes[child], lane))
            break;
        put (self, i, self->lanes[child]);
        i = child;
    }
    put (self, i, lane);
}

static lane_level_t *level_at (order_t *self, unsigned priority)
{
    lane_level_t **group = &self->groups[priority / LEVEL_GROUP];
    if (*group == NULL) {
        *group = memory_zero (LEVEL_GROUP, sizeof (**group));
        count (self->lanes, LEVELS_BYTES, 0);
    }
    return &(*group)[priority % LEVEL_GROUP];
}

static void heap_add (lane_t *lane)
{
    order_t *order = lane->order;
    lane_level_t *level = level_at (order, lane->priority);
    level->lanes =
        memory_grow (level->lanes, &level->capacity, level->count, sizeof (*level->lanes));
    level->count++;
    sift_up (level, level->count - 1, lane);
    order->used[lane->priority / 64] |= UINT64_C (1) << (lane->priority % 64);
}

static void heap_take (lane_t *lane)
{
    order_t *order = lane->order;
    lane_level_t *level = level_at (order, lane->priority);
    size_t i = lane->place - 1;
    lane_t *last = level->lanes[--level->count];
    lane->place = 0;
    if (last != lane) {
        sift_up (level, i, last);
        sift_down (level, last->place - 1, last);
    }
    if (level->count > 0)
        return;
    free (level->lanes);
    *level = (lane_level_t){0};
    order->used[lane->priority / 64] &= ~(UINT64_C (1) << (lane->priority % 64));
}

/* Keys. */

/* The key of the task, kept; NULL: it has none. */
static name_t *key_of (tasks_t *self, const task_t *task)
{
    switch (task->queue->weight_of) {
    case TMQ_WEIGHT_OF_OWNER: return names_share (task->owner);
    case TMQ_WEIGHT_OF_SESSION:
        return task->session == NULL ? NULL : names_share (task->session->name);
    default:
        return task->extra == NULL ? NULL
                                   : names_keep (&self->base->names, task->extra->fields->fair_key);
    }
}

/* Takes the name. */
static fair_t *fair_make (tasks_t *self, lanes_t *lanes, name_t *name)
{
    if (name == NULL)
        return &lanes->none;
    size_t cursor = MAP_START;
    fair_t *fair = NULL;
    while ((fair = map_next (&lanes->fairs, name->hash, &cursor)) != NULL)
        if (fair->name == name) {
            names_drop (&self->base->names, name);
            return fair;
        }
    fair = memory_zero (1, sizeof (*fair));
    count (lanes, FAIR_BYTES + strlen (name->text), 0);
    fair->name = name;
    list_init (&fair->parked);
    map_insert (&lanes->fairs, name->hash, fair);
    return fair;
}

static bool is_closed (const tasks_t *self, const queue_t *queue, const fair_t *fair)
{
    return queue->key_cap > 0 && fair->name != NULL && fair->running >= queue->key_cap &&
           self->base->config.planted_bug != ENGINE_BUG_KEY_CAP_IGNORED;
}

static void order_free (order_t *order)
{
    count (order->lanes, 0, ORDER_BYTES);
    for (size_t i = 0; i < LEVEL_GROUPS; i++) {
        count (order->lanes, 0, order->groups[i] == NULL ? 0 : LEVELS_BYTES);
        for (size_t k = 0; order->groups[i] != NULL && k < LEVEL_GROUP; k++)
            free (order->groups[i][k].lanes);
        free (order->groups[i]);
    }
    free (order);
}

static void lanes_clear (queue_t *queue)
{
    lanes_t *lanes = queue->lanes;
    if (lanes == NULL)
        return;
    size_t cursor = 0;
    for (lane_t *lane = map_each (&lanes->keyed, &cursor); lane != NULL;
         lane = map_each (&lanes->keyed, &cursor))
        free (lane);
    cursor = 0;
    for (fair_t *fair = map_each (&lanes->fairs, &cursor); fair != NULL;
         fair = map_each (&lanes->fairs, &cursor))
        free (fair);
    for (unsigned i = 0; i < 256; i++)
        if (lanes->tracks[i / LEVEL_GROUP] != NULL)
            free (track_at (lanes, i)->plain);
    for (size_t i = 0; i < LEVEL_GROUPS; i++)
        free (lanes->tracks[i]);
    for (size_t i = 0; i < lanes->slots; i++)
        if (lanes->orders[i] != NULL)
            order_free (lanes->orders[i]);
    free (lanes->orders);
    map_free (&lanes->keyed);
    map_free (&lanes->fairs);
    queue_count (queue, 0, lanes->bytes);
    free (lanes);
    queue->lanes = NULL;
}

/* What nobody needs any more: a key, or all of it. What has no key stays where it is. */
static void tidy (tasks_t *self, queue_t *queue, fair_t *fair)
{
    lanes_t *lanes = queue->lanes;
    if (fair != NULL && fair->name != NULL && fair->lanes == 0 && fair->running == 0) {
        count (lanes, 0, FAIR_BYTES + strlen (fair->name->text));
        map_remove (&lanes->fairs, fair->name->hash, fair);
        names_drop (&self->base->names, fair->name);
        free (fair);
    }
    if (lanes->fairs.count == 0 && lanes->sets == 0)
        lanes_clear (queue);
}

/* Lanes. */

static uint32_t lane_hash (const tasks_t *self, const fair_t *fair, const order_t *order,
                           unsigned priority)
{
    struct {
        const void *fair;
        const void *order;
        uint64_t priority;
    } key = {fair, order, priority};
    return secrets_hash (&self->base->secrets, &key, sizeof (key));
}

static lane_t *lane_new (lanes_t *lanes, fair_t *fair, order_t *order, unsigned priority)
{
    lane_t *lane = memory_zero (1, sizeof (*lane));
    count (lanes, LANE_BYTES, 0);
    list_init (&lane->own.fifo);
    lane->line = &lane->own;
    lane->fair = fair;
    lane->order = order;
    lane->priority = priority;
    lane->turn = ++lanes->turns;
    fair->lanes++;
    return lane;
}

static lane_t *lane_make (tasks_t *self, queue_t *queue, fair_t *fair, order_t *order,
                          unsigned priority)
{
    lanes_t *lanes = queue->lanes;
    uint32_t hash = lane_hash (self, fair, order, priority);
    size_t cursor = MAP_START;
    lane_t *lane = NULL;
    while ((lane = map_next (&lanes->keyed, hash, &cursor)) != NULL)
        if (lane->fair == fair && lane->order == order && lane->priority == priority)
            return lane;
    lane = lane_new (lanes, fair, order, priority);
    lane->due = track_at (lanes, priority)->now + step_of (self, queue, lane);
    map_insert (&lanes->keyed, hash, lane);
    heap_add (lane);
    return lane;
}

/* The lane of the queue's own level; made while there are lanes and it has tasks. */
static void lane_make_plain (tasks_t *self, queue_t *queue, unsigned priority)
{
    lanes_t *lanes = queue->lanes;
    track_t *track = track_at (lanes, priority);
    if (track->plain != NULL)
        return;
    lane_t *lane = lane_new (lanes, &lanes->none, lanes->orders[0], priority);
    lane->line = queue_level (queue, priority);
    lane->due = track->now + step_of (self, queue, lane);
    track->plain = lane;
    heap_add (lane);
}

/* What is queued already has lanes from now on. */
static lanes_t *lanes_make (tasks_t *self, queue_t *queue)
{
    if (queue->lanes != NULL)
        return queue->lanes;
    lanes_t *lanes = memory_zero (1, sizeof (*lanes));
    lanes->queue = queue;
    count (lanes, LANES_BYTES + ORDER_BYTES, 0);
    list_init (&lanes->none.parked);
    list_init (&lanes->capped);
    lanes->slots = 1;
    lanes->orders = memory_zero (1, sizeof (*lanes->orders));
    lanes->orders[0] = memory_zero (1, sizeof (order_t));
    lanes->orders[0]->lanes = lanes;
    queue->lanes = lanes;
    for (unsigned i = 0; i < 256; i++)
        if ((queue->used[i / 64] & (UINT64_C (1) << (i % 64))) != 0)
            lane_make_plain (self, queue, i);
    return lanes;
}

/* It has no tasks any more. */
static void lane_end (tasks_t *self, queue_t *queue, lane_t *lane)
{
    lanes_t *lanes = queue->lanes;
    fair_t *fair = lane->fair;
    if (lane->place != 0)
        heap_take (lane);
    list_remove (&lane->parked);
    if (list_is_empty (&fair->parked))
        list_remove (&fair->node);
    if (lane->line != &lane->own)
        track_at (lanes, lane->priority)->plain = NULL;
    else
        map_remove (&lanes->keyed, lane_hash (self, fair, lane->order, lane->priority), lane);
    fair->lanes--;
    count (lanes, 0, LANE_BYTES);
    free (lane);
    tidy (self, queue, fair);
}

static void park (lanes_t *lanes, lane_t *lane)
{
    heap_take (lane);
    list_push_back (&lane->fair->parked, &lane->parked);
    if (!node_is_linked (&lane->fair->node))
        list_push_back (&lanes->capped, &lane->fair->node);
}

/* They keep their turn, but for what they missed. */
static void unpark (tasks_t *self, queue_t *queue, fair_t *fair)
{
    lanes_t *lanes = queue->lanes;
    if (list_is_empty (&fair->parked) || is_closed (self, queue, fair))
        return;
    for (node_t *node = list_pop_front (&fair->parked); node != NULL;
         node = list_pop_front (&fair->parked)) {
        lane_t *lane = LIST_ITEM (node, lane_t, parked);
        uint64_t now = track_at (lanes, lane->priority)->now;
        if (lane->due < now)
            lane->due = now;
        heap_add (lane);
    }
    list_remove (&fair->node);
    queue_changed (self, queue);
}

/* The order. */

static order_t *order_of (const task_t *task, lanes_t *lanes)
{
    bool needs = task->extra != NULL && task->extra->order != NULL;
    return needs ? task->extra->order : lanes->orders[0];
}

void lanes_push (tasks_t *self, task_t *task)
{
    queue_t *queue = task->queue;
    name_t *key = key_of (self, task);
    bool needs = task->extra != NULL && task->extra->order != NULL;
    if (queue->lanes == NULL && key == NULL && !needs) {
        queue_push (queue, task);
        return;
    }
    lanes_t *lanes = lanes_make (self, queue);
    if (key == NULL && !needs) {
        queue_push (queue, task);
        lane_make_plain (self, queue, task->priority);
        return;
    }
    fair_t *fair = fair_make (self, lanes, key);
    task->lane = lane_make (self, queue, fair, order_of (task, lanes), task->priority);
    level_push (task->lane->line, task);
    queue->ready++;
}

void lanes_remove (tasks_t *self, task_t *task)
{
    queue_t *queue = task->queue;
    lane_t *lane = task->lane;
    if (lane == NULL) {
        queue_remove (queue, task);
        lane = queue->lanes == NULL ? NULL : track_at (queue->lanes, task->priority)->plain;
    } else {
        task->lane = NULL;
        level_remove (lane->line, task);
        queue->ready--;
    }
    if (lane != NULL && level_first (lane->line) == NULL)
        lane_end (self, queue, lane);
}

/* The next lane of the order, or NULL. Those that are closed are parked on the way. */
static lane_t *order_first (tasks_t *self, queue_t *queue, order_t *order)
{
    for (int word = 3; word >= 0; word--)
        while (order->used[word] != 0) {
            int bit = 63 - __builtin_clzll (order->used[word]);
            lane_t *lane = level_at (order, (unsigned) (word * 64 + bit))->lanes[0];
            if (!is_closed (self, queue, lane->fair))
                return lane;
            park (queue->lanes, lane);
        }
    return NULL;
}

static bool lane_before (const lane_t *a, const lane_t *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return is_sooner (a, b);
}

task_t *lanes_first (tasks_t *self, queue_t *queue, const order_set_t *orders)
{
    lanes_t *lanes = queue->lanes;
    if (lanes == NULL)
        return queue_first (queue);
    lane_t *best = NULL;
    for (size_t word = 0; word < ORDER_WORDS; word++)
        for (uint64_t left = orders->bits[word]; left != 0; left &= left - 1) {
            size_t i = word * 64 + (size_t) __builtin_ctzll (left);
            if (i >= lanes->slots || lanes->orders[i] == NULL)
                continue;
            lane_t *lane = order_first (self, queue, lanes->orders[i]);
            if (lane != NULL && (best == NULL || lane_before (lane, best)))
                best = lane;
        }
    return best == NULL ? NULL : level_first (best->line);
}

void lanes_serve (tasks_t *self, task_t *task)
{
    lanes_t *lanes = task->queue->lanes;
    lane_t *lane = task->lane != NULL ? task->lane
                   : lanes != NULL    ? track_at (lanes, task->priority)->plain
                                      : NULL;
    if (lane == NULL || lane->place == 0)
        return;
    track_t *track = track_at (lanes, lane->priority);
    if (track->now < lane->due)
        track->now = lane->due;
    lane->due += step_of (self, task->queue, lane);
    if (lane->due < track->now) /* nobody could take from it for a while: that is not made up for */
        lane->due = track->now;
    lane->turn = ++lanes->turns;
    sift_down (level_at (lane->order, lane->priority), lane->place - 1, lane);
}

const task_t *lanes_oldest (queue_t *queue)
{
    const task_t *oldest = queue_oldest (queue);
    size_t cursor = 0;
    for (size_t i = 0; queue->lanes != NULL && i < LANES_LOOKED_MAX; i++) {
        const lane_t *lane = map_each (&queue->lanes->keyed, &cursor);
        const task_t *first = lane == NULL ? NULL : level_first (lane->line);
        if (first == NULL)
            return oldest;
        if (oldest == NULL || first->number < oldest->number)
            oldest = first;
    }
    return oldest;
}

bool lanes_are_split (const queue_t *queue)
{
    return queue->lanes != NULL && queue->lanes->sets > 0;
}

/* What is not in memory of the first tasks of the order's lanes, a few of each. A heap has those
 * that are soon to be served in front, so there is no need to look at all of many lanes. */
static size_t peek_order (order_t *order, task_t **out, size_t limit, size_t *looks)
{
    size_t found = 0;
    for (int priority = 255; priority >= 0 && found < limit; priority--) {
        if ((order->used[priority / 64] & (UINT64_C (1) << (priority % 64))) == 0)
            continue;
        const lane_level_t *level = level_at (order, (unsigned) priority);
        size_t each = (limit - found) / level->count + 1;
        for (size_t i = 0; i < level->count && found<limit && * looks> 0; i++, (*looks)--) {
            size_t left = limit - found;
            found +=
                level_peek_cold (level->lanes[i]->line, out + found, each < left ? each : left);
        }
    }
    return found;
}

size_t lanes_peek_cold (tasks_t *self, queue_t *queue, task_t **out, size_t limit)
{
    lanes_t *lanes = queue->lanes;
    if (lanes == NULL)
        return queue_peek_cold (queue, out, limit);
    size_t found = 0;
    size_t looks = LANES_PEEKED_MAX;
    for (size_t i = 0; i < lanes->slots; i++) { /* the heads, for whomever they are */
        lane_t *lane =
            lanes->orders[i] == NULL ? NULL : order_first (self, queue, lanes->orders[i]);
        task_t *head = lane == NULL ? NULL : level_first (lane->line);
        if (head != NULL && task_is_cold (head))
            out[found++] = head;
    }
    for (size_t i = 0; i < lanes->slots && found < limit; i++)
        if (lanes->orders[i] != NULL)
            found += peek_order (lanes->orders[i], out + found, limit - found, &looks);
    return found;
}

/* Leases. */

void lanes_hold (tasks_t *self, task_t *task)
{
    name_t *key = key_of (self, task);
    if (key == NULL)
        return;
    task->detail->fair = fair_make (self, lanes_make (self, task->queue), key);
    task->detail->fair->running++;
}

void lanes_release (tasks_t *self, task_t *task)
{
    fair_t *fair = task->detail->fair;
    if (fair == NULL)
        return;
    task->detail->fair = NULL;
    fair->running--;
    unpark (self, task->queue, fair);
    tidy (self, task->queue, fair);
}

bool lanes_key_is_full (tasks_t *self, const task_t *task, key_use_t *out)
{
    const queue_t *queue = task->queue;
    if (queue->lanes == NULL || task->lane == NULL || !is_closed (self, queue, task->lane->fair))
        return false;
    *out = (key_use_t){name_text (task->lane->fair->name), task->lane->fair->running};
    return true;
}

void lanes_judge (tasks_t *self, queue_t *queue)
{
    if (queue->lanes == NULL)
        return;
    node_t keys;
    list_init (&keys);
    list_append (&keys, &queue->lanes->capped);
    for (node_t *node = list_pop_front (&keys); node != NULL; node = list_pop_front (&keys)) {
        fair_t *fair = LIST_ITEM (node, fair_t, node);
        list_push_back (&queue->lanes->capped, node);
        unpark (self, queue, fair);
    }
}

/* Any ready task, also one whose key is closed. */
static task_t *any_ready (tasks_t *self, queue_t *queue)
{
    static const order_set_t ALL = {.bits = {UINT64_MAX, UINT64_MAX}};
    task_t *task = lanes_first (self, queue, &ALL);
    if (task != NULL || queue->lanes == NULL)
        return task;
    node_t *node = list_first (&queue->lanes->capped);
    const lane_t *lane = node == NULL ? NULL
                                      : LIST_ITEM (LIST_ITEM (node, fair_t, node)->parked.next,
                                                   const lane_t, parked);
    return lane == NULL ? NULL : level_first (lane->line);
}

void lanes_change_key (tasks_t *self, queue_t *queue, tmq_weight_of_t next)
{
    node_t tasks;
    list_init (&tasks);
    for (task_t *task = any_ready (self, queue); task != NULL; task = any_ready (self, queue)) {
        lanes_remove (self, task);
        list_push_back (&tasks, &task->place);
    }
    queue->weight_of = next;
    for (node_t *node = list_pop_front (&tasks); node != NULL; node = list_pop_front (&tasks))
        lanes_push (self, LIST_ITEM (node, task_t, place));
}

/* Requirements. */

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
    count (lanes, ORDER_BYTES, 0);
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
    lanes_t *lanes = lanes_make (self, task->queue);
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
    tidy (self, task->queue, NULL);
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

void lanes_reset (tasks_t *self)
{
    size_t cursor = 0;
    for (queue_t *queue = map_each (&self->queues, &cursor); queue != NULL;
         queue = map_each (&self->queues, &cursor))
        lanes_clear (queue);
}
