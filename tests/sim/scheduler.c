/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who puts, pauses and resumes schedules, through clocks that leap and brokers that crash. What is
 * checked is what becomes durable: an instant makes its task once, none is left out, and a schedule
 * that is paused makes none. The tasks are given to nobody and soon expire. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tasks/schedule.h"
#include "sim.h"

enum { PAUSE_MS_MAX = 3000, PERIOD_MS = 4000, TASK_TTL_MS = 2000 };

static const char *const names[] = {"tick", "tock"};
static char every[] = "@every 4s";

/* Orders. */

static void put (client_t *client, const char *name)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Schedule schedule = TASKMQ__SCHEDULE__INIT;
    Taskmq__SchedulePut put_op = TASKMQ__SCHEDULE_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    spec.queue = (char *) (uintptr_t) "timed";
    spec.ttl_ms = TASK_TTL_MS;
    schedule.name = (char *) (uintptr_t) name;
    schedule.calendar = every;
    schedule.task = &spec;
    schedule.missed = MISSED_ALL;
    put_op.schedule = &schedule;
    put_op.replace = true;
    request.op_case = TASKMQ__REQUEST__OP_SCHEDULE_PUT;
    request.schedule_put = &put_op;
    client_request (client, &request, NULL, 0);
}

static void pause (client_t *client, const char *name, bool paused)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__ScheduleName about = TASKMQ__SCHEDULE_NAME__INIT;
    about.name = (char *) (uintptr_t) name;
    request.op_case =
        paused ? TASKMQ__REQUEST__OP_SCHEDULE_PAUSE : TASKMQ__REQUEST__OP_SCHEDULE_RESUME;
    if (paused) {
        request.schedule_pause = &about;
    } else {
        request.schedule_resume = &about;
    }
    client_request (client, &request, NULL, 0);
}

static void scheduler_tick (client_t *client)
{
    world_t *world = client->world;
    rng_t *rng = &world->rng;
    client->next_ms = world->mono_ms + rng_between (rng, 500, PAUSE_MS_MAX);
    if (!world->faults || client_open (client) > 0) {
        return;
    }
    const char *name = names[rng_below (rng, 2)];
    if (rng_chance (rng, 250)) {
        put (client, name);
    } else {
        pause (client, name, rng_chance (rng, 400));
    }
}

static void scheduler_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                             const uint8_t *body, size_t body_bytes)
{
    (void) body;
    (void) body_bytes;
    bool unknown = reply->code == TMQ_NOT_FOUND && pending->op != TASKMQ__REQUEST__OP_SCHEDULE_PUT;
    bool full = reply->code == TMQ_STORE_FULL;
    if (reply->code != TMQ_OK && !unknown && !full) {
        sim_fail (client->world, "an order about a schedule is answered %u: %s", reply->code,
                  reply->text);
    }
}

const actor_t scheduler_actor = {
    .name = "scheduler", .tick = scheduler_tick, .reply = scheduler_reply};

/* What becomes durable. */

/* What a batch tells of one schedule. */
typedef struct news {
    bool changed; /* by a client: what came before it in the batch is not to be told */
    uint32_t fired;
} news_t;

static void check_once (world_t *world, const Taskmq__Event *event)
{
    const model_log_t *log = model_log (&world->model->durable, model_namespaces[SIM_SHARED]);
    for (size_t i = 0; i < log->events_count; i++) {
        if (log->events[i]->kind == TMQ_EVENT_FIRED &&
            strcmp (log->events[i]->message, event->message) == 0) {
            sim_fail (world, "an instant of schedule %s made task %s twice", event->name,
                      event->message);
        }
    }
}

static news_t news_of (world_t *world, const batch_t *batch, const char *name)
{
    news_t news = {0};
    for (size_t i = 0; i < batch->blocks_count; i++) {
        const buf_t *packed = batch->blocks[i].list;
        Taskmq__EventList *list =
            taskmq__event_list__unpack (NULL, buf_length (packed), buf_bytes (packed));
        for (size_t k = 0; list != NULL && k < list->n_events; k++) {
            const Taskmq__Event *event = list->events[k];
            if (event->subject != TMQ_SUBJECT_SCHEDULE || strcmp (event->name, name) != 0) {
                continue;
            }
            news.changed = news.changed || event->kind == TMQ_EVENT_CHANGED;
            if (event->kind == TMQ_EVENT_FIRED) {
                check_once (world, event);
                news.fired++;
            }
        }
        taskmq__event_list__free_unpacked (list, NULL);
    }
    return news;
}

static Taskmq__Schedule *unpack (const row_t *row)
{
    return row == NULL || row->gone
               ? NULL
               : taskmq__schedule__unpack (NULL, buf_length (row->body), buf_bytes (row->body));
}

/* Instants from the one place to the other. */
static uint64_t instants (const Taskmq__Schedule *from, const Taskmq__Schedule *upto)
{
    return (upto->last_at - upto->created_at) / PERIOD_MS -
           (from->last_at - from->created_at) / PERIOD_MS;
}

/* The clock has leapt so far that more were missed than are made up for. */
static bool may_pass_over (const world_t *world, const Taskmq__Schedule *before)
{
    int64_t behind_ms = world->wall_latest_ms - (int64_t) before->last_at;
    return behind_ms / PERIOD_MS >= SCHEDULE_MISSED_MAX;
}

static void judge (world_t *world, const Taskmq__Schedule *before, const Taskmq__Schedule *after,
                   uint32_t fired)
{
    if (fired > 0 && before->paused) {
        sim_fail (world, "schedule %s makes tasks while it is paused", before->name);
    }
    if (after == NULL) {
        if (fired > 0) {
            sim_fail (world, "schedule %s made a task and has not gone on", before->name);
        }
        return;
    }
    if (after->last_at < before->last_at || after->created_at != before->created_at) {
        sim_fail (world, "schedule %s has gone back", before->name);
    } else if (!may_pass_over (world, before) && instants (before, after) != fired) {
        sim_fail (world, "schedule %s went on by %llu instants and made %u tasks", before->name,
                  (unsigned long long) instants (before, after), fired);
    }
}

/* The newest row of the key; a batch may have several. */
static const row_t *row_in (const row_t *rows, size_t count, const row_key_t *key)
{
    for (size_t i = count; i > 0; i--) {
        const row_t *row = &rows[i - 1];
        if (row->kind == ROW_KIND_SCHEDULE && buf_length (row->key) == key->length &&
            memcmp (buf_bytes (row->key), key->bytes, key->length) == 0) {
            return row;
        }
    }
    return NULL;
}

void scheduler_check_batch (world_t *world, const batch_t *batch)
{
    const row_list_t *stored = &world->model->durable.kind_rows;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !world->failed; i++) {
        row_key_t key = ROW_KEY_INIT;
        row_key_text (&key, model_namespaces[SIM_SHARED]);
        row_key_text (&key, names[i]);
        news_t news = news_of (world, batch, names[i]);
        Taskmq__Schedule *before = unpack (row_in (stored->rows, stored->count, &key));
        Taskmq__Schedule *after = unpack (row_in (batch->rows, batch->rows_count, &key));
        if (before != NULL && !news.changed) {
            judge (world, before, after, news.fired);
        }
        if (before != NULL) {
            taskmq__schedule__free_unpacked (before, NULL);
        }
        if (after != NULL) {
            taskmq__schedule__free_unpacked (after, NULL);
        }
    }
}
