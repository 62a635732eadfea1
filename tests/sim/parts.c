/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Parts of tasks, and somebody who cancels whole trees of them, as taskctl does: he lists the parts
 * of what has parts, and of these in turn, and cancels what he finds. He may crash on the way, and
 * so may the broker. When he is done, no part is alive that was accepted before he began. */
#include <stdlib.h>
#include <string.h>

#include "core/data/extra.h"
#include "sim.h"

enum { TREE_MAX = 256, OPEN_MAX = 6, PAUSE_MS_MAX = 6000, PAGE = 3 };

/* What tasks say. */

void parts_draw (client_t *client, known_t *task)
{
    world_t *world = client->world;
    uint32_t index = model_index (task->id.bytes);
    if (index == 0 || !rng_chance (&world->rng, 250)) {
        return;
    }
    uint32_t back = 1 + rng_below (&world->rng, index < 30 ? index : 30);
    const known_t *parent = &world->tasks[index - back];
    if (parent->accepted && parent->alias == 0 && strcmp (parent->ns, task->ns) == 0) {
        task->parent = index - back + 1;
    }
}

void parts_fill (world_t *world, const known_t *task, Taskmq__Extra *extra)
{
    if (task->parent > 0) {
        extra->parent.data = world->tasks[task->parent - 1].id.bytes;
        extra->parent.len = sizeof (tmq_id_t);
    }
}

/* The broker may not have the parent any more. */
bool parts_may_be_orphans (const world_t *world, const known_t *task)
{
    const known_t *parent = task->parent > 0 ? &world->tasks[task->parent - 1] : NULL;
    return parent != NULL && (parent->ttl_ms > 0 || parent->purging || parent->alias != 0 ||
                              parent->removed || world->options.clock_leap > 0);
}

/* What is durable. */

static bool knows_parts (const record_t *record)
{
    extra_t *extra = record->extra == NULL ? NULL : extra_new (record->extra);
    bool knows = extra != NULL && extra->fields->has_parts;
    extra_free (extra);
    return knows;
}

static const record_t *durable_of (const world_t *world, uint32_t index)
{
    return world->model->durable.rows[index].record;
}

void parts_check_durable (world_t *world)
{
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        const known_t *task = &world->tasks[i];
        if (task->parent == 0 || durable_of (world, i) == NULL) {
            continue;
        }
        const record_t *parent = durable_of (world, task->parent - 1);
        if (parent != NULL && !knows_parts (parent)) {
            sim_fail (world, "S21: task %u is a part of task %u, which does not know it", i,
                      task->parent - 1);
        }
    }
}

/* Who cancels trees. */

typedef struct feller {
    bool busy;
    uint32_t tree[TREE_MAX];
    bool has_parts[TREE_MAX];
    size_t count;
    size_t looked;
    size_t cancelled;
    bool was_part[MODEL_TASKS_MAX]; /* of the root, and acknowledged before it began */
} feller_t;

static void feller_start (client_t *client)
{
    if (client->state == NULL) {
        client->state = calloc (1, sizeof (feller_t));
    }
}

static void feller_stop (client_t *client)
{
    feller_t *feller = client->state;
    if (feller != NULL) {
        feller->busy = false;
    }
}

/* It can be found from the root: all above it stay, and are what they were. */
static bool is_below (const world_t *world, const known_t *task, uint32_t root)
{
    for (uint32_t depth = 0; depth < TMQ_TREE_DEPTH_MAX; depth++) {
        if (!task->accepted || task->alias != 0 || task->ttl_ms > 0 || task->purging ||
            task->revived || task->parent == 0) {
            return false;
        }
        if (task->parent - 1 == root) {
            return true;
        }
        task = &world->tasks[task->parent - 1];
    }
    return false;
}

static void add (feller_t *feller, uint32_t index, bool has_parts)
{
    for (size_t i = 0; i < feller->count; i++) {
        if (feller->tree[i] == index) {
            return;
        }
    }
    if (feller->count < TREE_MAX) {
        feller->tree[feller->count] = index;
        feller->has_parts[feller->count++] = has_parts;
    }
}

static void begin (client_t *client)
{
    feller_t *feller = client->state;
    world_t *world = client->world;
    const known_t *root = submitter_draw_known (client);
    for (int tries = 0; tries < 8 && root != NULL && root->parent == 0; tries++) {
        root = submitter_draw_known (client);
    }
    if (root == NULL || !root->accepted || root->alias != 0) {
        return;
    }
    uint32_t index = model_index (root->id.bytes);
    if (root->parent > 0 && rng_chance (&world->rng, 700)) {
        index = root->parent - 1;
    }
    feller->busy = true;
    feller->count = feller->looked = feller->cancelled = 0;
    add (feller, index, true);
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        feller->was_part[i] = is_below (world, &world->tasks[i], index);
    }
}

static void list_parts (client_t *client, uint32_t parent, const ProtobufCBinaryData *cursor)
{
    Taskmq__List list = TASKMQ__LIST__INIT;
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    ProtobufCBinaryData id = {sizeof (tmq_id_t), client->world->tasks[parent].id.bytes};
    filter.parents = &id;
    filter.n_parents = 1;
    list.filter = &filter;
    list.limit = PAGE;
    if (cursor != NULL) {
        list.cursor = *cursor;
    }
    request.op_case = TASKMQ__REQUEST__OP_LIST;
    request.list = &list;
    client_request (client, &request, NULL, 0)->context = parent;
}

static void cancel (client_t *client, uint32_t index)
{
    Taskmq__Cancel cancel_op = TASKMQ__CANCEL__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    cancel_op.task_id.data = client->world->tasks[index].id.bytes;
    cancel_op.task_id.len = sizeof (tmq_id_t);
    request.op_case = TASKMQ__REQUEST__OP_CANCEL;
    request.cancel = &cancel_op;
    client_request (client, &request, NULL, 0)->context = index;
}

static void judge (world_t *world, const feller_t *feller)
{
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        const record_t *record = durable_of (world, i);
        if (feller->was_part[i] && is_below (world, &world->tasks[i], feller->tree[0]) &&
            record != NULL && record->status < TMQ_STATUS_COMPLETED) {
            sim_fail (world, "S21: task %u is below task %u, whose tree was cancelled, and lives",
                      i, feller->tree[0]);
        }
    }
}

static void feller_tick (client_t *client)
{
    feller_t *feller = client->state;
    world_t *world = client->world;
    client->next_ms =
        world->mono_ms + rng_between (&world->rng, 1, feller->busy ? 60 : PAUSE_MS_MAX);
    if (!feller->busy && world->faults) {
        begin (client);
    }
    while (feller->busy && client_open (client) < OPEN_MAX && feller->looked < feller->count) {
        size_t at = feller->looked++;
        if (feller->has_parts[at]) {
            list_parts (client, feller->tree[at], NULL);
        }
    }
    while (feller->busy && client_open (client) < OPEN_MAX && feller->cancelled < feller->count) {
        cancel (client, feller->tree[feller->cancelled++]);
    }
    if (feller->busy && client_open (client) == 0 && feller->cancelled == feller->count &&
        feller->looked == feller->count) {
        judge (world, feller);
        feller->busy = false;
    }
}

static void feller_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                          const uint8_t *body, size_t body_bytes)
{
    world_t *world = client->world;
    uint32_t index = (uint32_t) pending->context;
    (void) body;
    (void) body_bytes;
    if (pending->op == TASKMQ__REQUEST__OP_CANCEL) {
        check_cancelled (world, &world->tasks[index], reply);
        return;
    }
    if (reply->code != TMQ_OK || reply->page == NULL) {
        sim_fail (world, "a list of parts is answered %u %s", reply->code, reply->text);
        return;
    }
    for (size_t i = 0; i < reply->page->n_tasks; i++) {
        const Taskmq__Task *task = reply->page->tasks[i];
        const known_t *part = check_find (world, &task->task_id);
        if (part == NULL || part->parent != index + 1) {
            sim_fail (world, "S21: a list of the parts of task %u has another one", index);
            return;
        }
        add (client->state, model_index (part->id.bytes), task->extra->has_parts);
    }
    if (reply->page->next.len > 0) {
        list_parts (client, index, &reply->page->next);
    }
}

const actor_t feller_actor = {.name = "feller",
                              .start = feller_start,
                              .stop = feller_stop,
                              .tick = feller_tick,
                              .reply = feller_reply};
