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
#include "core/tasks/lanes_parts.h"
#include "core/tasks/session.h"
#include "core/tasks/space.h"

enum { TURN = 1000000 }; /* virtual time of a task in a lane of weight 1 */

/* What they take, with what the allocator and the tables add. */
enum {
    LANES_BYTES = sizeof (lanes_t) + 2 * 16 * sizeof (map_slot_t) + 4 * ALLOCATION_BYTES,
    TRACKS_BYTES = LEVEL_GROUP * sizeof (track_t) + ALLOCATION_BYTES,
    LEVELS_BYTES = LEVEL_GROUP * sizeof (lane_level_t) + ALLOCATION_BYTES,
    LANE_BYTES = sizeof (lane_t) + 8 * sizeof (lane_t *) + SLOT_BYTES + 2 * ALLOCATION_BYTES,
    FAIR_BYTES = sizeof (fair_t) + sizeof (name_t) + 2 * SLOT_BYTES + 2 * ALLOCATION_BYTES
};

static track_t *track_at (lanes_t *self, unsigned priority)
{
    track_t **group = &self->tracks[priority / LEVEL_GROUP];
    if (*group == NULL) {
        *group = memory_zero (LEVEL_GROUP, sizeof (**group));
        lanes_count (self, TRACKS_BYTES, 0);
    }
    return &(*group)[priority % LEVEL_GROUP];
}

/* Virtual time from one turn of the lane to the next, by its weight against the others. */
static uint64_t step_of (const lane_t *lane)
{
    return TURN / (lane->session == NULL ? LANE_WEIGHT : lane->session->stored->salience);
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
        lanes_count (self->lanes, LEVELS_BYTES, 0);
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
    lanes_count (lanes, FAIR_BYTES + strlen (name->text), 0);
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

void order_free (order_t *order)
{
    lanes_count (order->lanes, 0, ORDER_BYTES);
    for (size_t i = 0; i < LEVEL_GROUPS; i++) {
        lanes_count (order->lanes, 0, order->groups[i] == NULL ? 0 : LEVELS_BYTES);
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

void lanes_tidy (tasks_t *self, queue_t *queue, fair_t *fair)
{
    lanes_t *lanes = queue->lanes;
    if (fair != NULL && fair->name != NULL && fair->lanes == 0 && fair->running == 0) {
        lanes_count (lanes, 0, FAIR_BYTES + strlen (fair->name->text));
        map_remove (&lanes->fairs, fair->name->hash, fair);
        names_drop (&self->base->names, fair->name);
        free (fair);
    }
    if (lanes->fairs.count == 0 && lanes->sets == 0 && list_is_empty (&lanes->sides[!queue->side]))
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

static lane_t *lane_new (lanes_t *lanes, fair_t *fair, order_t *order, unsigned priority,
                         session_t *session)
{
    lane_t *lane = memory_zero (1, sizeof (*lane));
    lanes_count (lanes, LANE_BYTES, 0);
    list_init (&lane->own.fifo);
    lane->line = &lane->own;
    lane->fair = fair;
    lane->order = order;
    lane->priority = priority;
    lane->side = lanes->queue->side;
    list_push_back (&lanes->sides[lane->side], &lane->of_side);
    lane->session = session;
    if (session != NULL)
        list_push_back (&session->lanes, &lane->weighed);
    lane->step = step_of (lane);
    lane->due = track_at (lanes, priority)->now + lane->step;
    lane->turn = ++lanes->turns;
    fair->lanes++;
    return lane;
}

static order_t *order_of (const task_t *task, lanes_t *lanes)
{
    bool needs = task->extra != NULL && task->extra->order != NULL;
    return needs ? task->extra->order : lanes->orders[0];
}

static lane_t *lane_make (tasks_t *self, fair_t *fair, const task_t *task)
{
    queue_t *queue = task->queue;
    lanes_t *lanes = queue->lanes;
    order_t *order = order_of (task, lanes);
    unsigned priority = task->priority;
    uint32_t hash = lane_hash (self, fair, order, priority);
    size_t cursor = MAP_START;
    lane_t *lane = NULL;
    while ((lane = map_next (&lanes->keyed, hash, &cursor)) != NULL)
        if (lane->fair == fair && lane->order == order && lane->priority == priority &&
            lane->side == queue->side)
            return lane;
    lane = lane_new (lanes, fair, order, priority,
                     queue->weight_of == TMQ_WEIGHT_OF_SESSION ? task->session : NULL);
    map_insert (&lanes->keyed, hash, lane);
    heap_add (lane);
    return lane;
}

/* The lane of the queue's own level; made while there are lanes and it has tasks. */
static void lane_make_plain (queue_t *queue, unsigned priority)
{
    lanes_t *lanes = queue->lanes;
    track_t *track = track_at (lanes, priority);
    if (track->plain != NULL)
        return;
    lane_t *lane = lane_new (lanes, &lanes->none, lanes->orders[0], priority, NULL);
    lane->line = queue_level (queue, priority);
    track->plain = lane;
    heap_add (lane);
}

lanes_t *lanes_make (queue_t *queue)
{
    if (queue->lanes != NULL)
        return queue->lanes;
    lanes_t *lanes = memory_zero (1, sizeof (*lanes));
    lanes->queue = queue;
    lanes_count (lanes, LANES_BYTES + ORDER_BYTES, 0);
    list_init (&lanes->none.parked);
    list_init (&lanes->capped);
    list_init (&lanes->sides[0]);
    list_init (&lanes->sides[1]);
    lanes->slots = 1;
    lanes->orders = memory_zero (1, sizeof (*lanes->orders));
    lanes->orders[0] = memory_zero (1, sizeof (order_t));
    lanes->orders[0]->lanes = lanes;
    queue->lanes = lanes;
    for (unsigned i = 0; i < 256; i++)
        if ((queue->used[i / 64] & (UINT64_C (1) << (i % 64))) != 0)
            lane_make_plain (queue, i);
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
    list_unlink (&lane->of_side);
    if (list_is_empty (&lanes->sides[!queue->side]))
        list_remove (&queue->moving);
    list_remove (&lane->weighed);
    track_t *track = track_at (lanes, lane->priority);
    if (track->aside == lane)
        track->aside = NULL;
    if (lane->line != &lane->own)
        track->plain = NULL;
    else
        map_remove (&lanes->keyed, lane_hash (self, fair, lane->order, lane->priority), lane);
    fair->lanes--;
    lanes_count (lanes, 0, LANE_BYTES);
    free (lane);
    lanes_tidy (self, queue, fair);
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

void lanes_push (tasks_t *self, task_t *task)
{
    queue_t *queue = task->queue;
    name_t *key = key_of (self, task);
    bool needs = task->extra != NULL && task->extra->order != NULL;
    task->side = queue->side;
    if (queue->lanes == NULL && key == NULL && !needs) {
        queue_push (queue, task);
        return;
    }
    lanes_t *lanes = lanes_make (queue);
    if (key == NULL && !needs) {
        queue_push (queue, task);
        lane_make_plain (queue, task->priority);
        return;
    }
    fair_t *fair = fair_make (self, lanes, key);
    task->lane = lane_make (self, fair, task);
    level_push (task->lane->line, task);
    queue->ready++;
}

/* Where it stands; NULL: there are no lanes. */
static lane_t *lane_of (const task_t *task)
{
    lanes_t *lanes = task->queue->lanes;
    if (task->lane != NULL || lanes == NULL)
        return task->lane;
    const track_t *track = track_at (lanes, task->priority);
    return task->side == task->queue->side ? track->plain : track->aside;
}

void lanes_remove (tasks_t *self, task_t *task)
{
    queue_t *queue = task->queue;
    lane_t *lane = lane_of (task);
    if (task->lane == NULL && task->side == queue->side) {
        queue_remove (queue, task);
    } else {
        task->lane = NULL;
        level_remove (lane->line, task);
        queue->ready--;
    }
    if (lane != NULL && level_first (lane->line) == NULL)
        lane_end (self, queue, lane);
}

/* What it has is to be moved, and then judged. */
static bool is_aside (const lane_t *lane)
{
    const queue_t *queue = lane->order->lanes->queue;
    return lane->side != queue->side;
}

/* The next lane of the order, or NULL. Those that are closed are parked on the way. */
static lane_t *order_first (tasks_t *self, queue_t *queue, order_t *order)
{
    for (int word = 3; word >= 0; word--)
        while (order->used[word] != 0) {
            int bit = 63 - __builtin_clzll (order->used[word]);
            lane_t *lane = level_at (order, (unsigned) (word * 64 + bit))->lanes[0];
            if (is_aside (lane) || !is_closed (self, queue, lane->fair))
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

static lane_t *first_of (tasks_t *self, queue_t *queue, const order_set_t *orders)
{
    const lanes_t *lanes = queue->lanes;
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
    return best;
}

/* Its turn is over. */
static void pass_on (lanes_t *lanes, lane_t *lane)
{
    if (lane->place == 0)
        return;
    track_t *track = track_at (lanes, lane->priority);
    if (track->now < lane->due)
        track->now = lane->due;
    lane->step = step_of (lane);
    lane->due += lane->step;
    if (lane->due < track->now) /* nobody could take from it for a while: that is not made up for */
        lane->due = track->now;
    lane->turn = ++lanes->turns;
    sift_down (level_at (lane->order, lane->priority), lane->place - 1, lane);
}

/* The first task of a lane of the other side goes to where it belongs now. */
static void move_first (tasks_t *self, lane_t *lane)
{
    task_t *task = level_first (lane->line);
    pass_on (task->queue->lanes, lane);
    lanes_remove (self, task);
    lanes_push (self, task);
    budget_take (&self->base->round.lanes, 1);
}

task_t *lanes_first (tasks_t *self, queue_t *queue, const order_set_t *orders)
{
    while (queue->lanes != NULL) {
        lane_t *lane = first_of (self, queue, orders);
        if (lane == NULL)
            return NULL;
        if (!is_aside (lane))
            return level_first (lane->line);
        if (self->base->round.lanes == 0)
            return NULL; /* lanes_run goes on with it */
        move_first (self, lane);
    }
    return queue_first (queue);
}

void lanes_serve (const task_t *task)
{
    lane_t *lane = lane_of (task);
    if (lane != NULL)
        pass_on (task->queue->lanes, lane);
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

uint64_t lanes_oldest_ms (queue_t *queue, int64_t wall_ms)
{
    const task_t *oldest = lanes_oldest (queue);
    if (oldest == NULL)
        return 0;
    int64_t since_ms =
        oldest->not_before > oldest->created_at ? oldest->not_before : oldest->created_at;
    return wall_ms > since_ms ? (uint64_t) (wall_ms - since_ms) : 0;
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
    task->detail->fair = fair_make (self, lanes_make (task->queue), key);
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
    lanes_tidy (self, task->queue, fair);
}

bool lanes_key_is_full (tasks_t *self, const task_t *task, key_use_t *out)
{
    const queue_t *queue = task->queue;
    if (queue->lanes == NULL || task->lane == NULL || is_aside (task->lane) ||
        !is_closed (self, queue, task->lane->fair))
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

/* Another key. What is ready stays in the lanes of the old side, and goes to those of the new one
 * some in each round, or when its turn comes. */

/* The level's tasks become those of a lane like others. They do not point to it: they are of the
 * old side, and in none. */
static void set_aside (tasks_t *self, queue_t *queue, unsigned priority)
{
    lanes_t *lanes = queue->lanes;
    track_t *track = track_at (lanes, priority);
    lane_t *lane = track->plain;
    list_append (&lane->own.fifo, &lane->line->fifo);
    lane->own.returned = lane->line->returned;
    lane->line->returned = NULL;
    lane->line = &lane->own;
    queue->used[priority / 64] &= ~(UINT64_C (1) << (priority % 64));
    map_insert (&lanes->keyed, lane_hash (self, lane->fair, lane->order, priority), lane);
    track->aside = lane;
    track->plain = NULL;
}

void lanes_change_key (tasks_t *self, queue_t *queue, tmq_weight_of_t next)
{
    assert (!lanes_are_moving (queue));
    queue->weight_of = next;
    if (queue->ready == 0)
        return;
    lanes_make (queue);
    for (unsigned i = 0; i < 256; i++)
        if ((queue->used[i / 64] & (UINT64_C (1) << (i % 64))) != 0)
            set_aside (self, queue, i);
    queue->side = !queue->side;
    list_push_back (&self->moving_queues, &queue->moving);
}

bool lanes_are_owed (const tasks_t *self)
{
    return (!list_is_empty (&self->moving_queues) || !list_is_empty (&self->lanes_to_weigh)) &&
           !self->base->stopping;
}

/* One task of the queue, of one lane after the other: so their numbers rise, more or less, and they
 * find their places at the end of a list. */
static void move_one (tasks_t *self, queue_t *queue)
{
    node_t *lanes = &queue->lanes->sides[!queue->side];
    lane_t *lane = LIST_ITEM (list_pop_front (lanes), lane_t, of_side);
    list_push_back (lanes, &lane->of_side);
    list_unlink (&queue->moving);
    list_push_back (&self->moving_queues, &queue->moving);
    move_first (self, lane);
    queue_changed (self, queue);
}

/* What is left until its turn is as much shorter or longer as all its turns are from now on. */
static void weigh (tasks_t *self, lane_t *lane)
{
    lanes_t *lanes = lane->order->lanes;
    uint64_t now = track_at (lanes, lane->priority)->now;
    uint64_t before = lane->step;
    lane->step = step_of (lane);
    if (lane->due > now)
        lane->due = now + (lane->due - now) * lane->step / before;
    list_push_back (&lane->session->lanes, &lane->weighed);
    budget_take (&self->base->round.lanes, 1);
    if (lane->place == 0)
        return;
    lane_level_t *level = level_at (lane->order, lane->priority);
    sift_up (level, lane->place - 1, lane);
    sift_down (level, lane->place - 1, lane);
}

void lanes_run (tasks_t *self)
{
    const size_t *left = &self->base->round.lanes;
    while (*left > 0 && lanes_are_owed (self)) {
        if (!list_is_empty (&self->lanes_to_weigh))
            weigh (self, LIST_ITEM (list_pop_front (&self->lanes_to_weigh), lane_t, weighed));
        else
            move_one (self, LIST_ITEM (list_first (&self->moving_queues), queue_t, moving));
    }
}

void lanes_weigh (tasks_t *self, session_t *session)
{
    list_append (&self->lanes_to_weigh, &session->lanes);
}

void lanes_reset (tasks_t *self)
{
    size_t cursor = 0;
    for (queue_t *queue = map_each (&self->queues, &cursor); queue != NULL;
         queue = map_each (&self->queues, &cursor))
        lanes_clear (queue);
}
