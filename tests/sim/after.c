/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks that wait for others: which, and whether what becomes durable agrees with it (S21). */
#include <string.h>

#include "sim.h"

/* The task may be waited for by others of the client. */
static bool is_known (const client_t *client, const known_t *awaited, const known_t *task)
{
    return awaited != task && awaited->accepted && awaited->alias == 0 &&
           strcmp (awaited->ns, client->ns) == 0 && awaited->owner == task->owner;
}

static void add (known_t *task, const known_t *awaited, uint32_t policy)
{
    uint32_t index = model_index (awaited->id.bytes);
    for (uint32_t i = 0; i < task->after_count; i++) {
        if (task->after[i].index == index) {
            return;
        }
    }
    task->after[task->after_count].index = index;
    task->after[task->after_count].unsure = !awaited->accepted;
    task->after[task->after_count++].policy = policy;
}

void after_draw (client_t *client, known_t *task, known_t *const *batch, size_t batch_count)
{
    enum { HUB = 16 }; /* some are waited for by many */
    world_t *world = client->world;
    rng_t *rng = &world->rng;
    uint32_t wanted = rng_chance (rng, 700) ? 0 : 1 + rng_below (rng, SIM_AFTER_MAX);
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t index = model_index (task->id.bytes);
        uint32_t policy = rng_below (rng, 3);
        uint32_t back = rng_chance (rng, 500) ? index % HUB : rng_below (rng, 30);
        const known_t *awaited = back <= index ? &world->tasks[index - back] : task;
        if (is_known (client, awaited, task)) {
            add (task, awaited, policy);
        } else if (batch_count > 0 && batch[batch_count - 1]->dedup_key[0] == '\0') {
            add (task, batch[batch_count - 1], policy);
        }
    }
}

void after_fill (world_t *world, const known_t *task, after_room_t *room, Taskmq__TaskSpec *spec)
{
    if (task->after_count == 0) {
        return;
    }
    for (uint32_t i = 0; i < task->after_count; i++) {
        taskmq__dependency__init (&room->entries[i]);
        room->entries[i].task_id.data = world->tasks[task->after[i].index].id.bytes;
        room->entries[i].task_id.len = 16;
        room->entries[i].policy = task->after[i].policy;
        room->list[i] = &room->entries[i];
    }
    room->extra.n_after = task->after_count;
    room->extra.after = room->list;
    spec->extra = &room->extra;
}

bool after_may_be_unknown (const world_t *world, const known_t *task)
{
    for (uint32_t i = 0; i < task->after_count; i++) {
        const known_t *awaited = &world->tasks[task->after[i].index];
        /* An answer to the first try may come late, when a second one has been accepted. */
        bool unsure = !awaited->accepted || task->after[i].unsure;
        if (unsure || awaited->refused || awaited->alias != 0) {
            return true;
        }
    }
    return false;
}

/* It was claimed, so all that it waits for has ended, and well where it must. */
static void check_claimed (world_t *world, const known_t *task)
{
    for (uint32_t i = 0; i < task->after_count; i++) {
        unsigned ends = world->tasks[task->after[i].index].ends;
        bool needs = task->after[i].policy == TMQ_AFTER_FAIL;
        if (ends == 0 || (needs && (ends & 1u << TMQ_STATUS_COMPLETED) == 0)) {
            sim_fail (world, "S21: task %u is claimed, and it waits for task %u, with ends %x",
                      model_index (task->id.bytes), task->after[i].index, ends);
        }
    }
}

/* Past its time to live it is as good as removed, swept or not (S12). */
static bool is_gone (const world_t *world, const known_t *awaited)
{
    const record_t *record = world->model->durable.rows[model_index (awaited->id.bytes)].record;
    return awaited->gone || (record != NULL && record->expires_at > 0 &&
                             record->expires_at <= world->wall_latest_ms);
}

/* It failed because of another one. */
static void check_failed (world_t *world, const known_t *task)
{
    for (uint32_t i = 0; i < task->after_count; i++) {
        const known_t *awaited = &world->tasks[task->after[i].index];
        unsigned well = 1u << TMQ_STATUS_COMPLETED;
        if (task->after[i].policy == TMQ_AFTER_FAIL &&
            ((awaited->ends & ~well) != 0 || is_gone (world, awaited))) {
            return;
        }
    }
    sim_fail (world, "S21: task %u failed by a dependency, and none of its own did",
              model_index (task->id.bytes));
}

void after_check_event (world_t *world, const Taskmq__Event *event)
{
    known_t *task = event->task_id.len == 16 ? check_find (world, &event->task_id) : NULL;
    if (task == NULL) {
        return;
    }
    if (event->kind == TMQ_EVENT_CLAIMED) {
        check_claimed (world, task);
    } else if (event->kind == TMQ_EVENT_FAILED &&
               strstr (event->message, "that this one depends on") != NULL) {
        check_failed (world, task);
    }
    if (event->status >= TMQ_STATUS_COMPLETED) {
        task->ends |= 1u << event->status;
    }
    task->gone = task->gone || event->kind == TMQ_EVENT_EXPIRED || event->kind == TMQ_EVENT_PURGED;
}
