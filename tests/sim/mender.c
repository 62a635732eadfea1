/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who changes what is there: retry, resume, set, purge and adopt, of tasks in any status, and at
 * once after a cancel. What each answer promises is compared with what is durable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/extra.h"
#include "sim.h"

enum {
    ORDER_MAX = 3,
    OPEN_MAX = 4,
    PAUSE_MS_MAX = 600,
    SETTLED_MS = 5000, /* a connection so old has no forerunner whose words are still under way */
    LABEL_BYTES = 16
};

static char label_key[] = "mended";
static char kind_key[] = "kind";

/* What was asked, and of which tasks; kept beside the request. */
typedef struct order {
    size_t count;
    known_t *tasks[ORDER_MAX];
    bool accepted[ORDER_MAX];            /* when it was sent */
    char label[LABEL_BYTES];             /* of a set, … */
    char before[ORDER_MAX][LABEL_BYTES]; /* … and what stood there when it was sent */
    uint32_t attempt;                    /* of an adopt, … */
    bool kept;                           /* … whose success was said to be kept */
} order_t;

typedef struct mender {
    uint32_t sets;
} mender_t;

static void mender_start (client_t *client)
{
    if (client->state == NULL) {
        client->state = calloc (1, sizeof (mender_t));
    }
}

static uint32_t index_of (const known_t *task)
{
    return model_index (task->id.bytes);
}

static const model_row_t *durable_of (const world_t *world, const known_t *task)
{
    return &world->model->durable.rows[index_of (task)];
}

/* The status from which on it is wanted, mostly. */
static bool is_wanted (const world_t *world, const known_t *task, tmq_status_t least)
{
    const record_t *record = durable_of (world, task)->record;
    return record != NULL && record->status >= least;
}

static order_t *draw (client_t *client, tmq_status_t least, size_t max)
{
    order_t *order = calloc (1, sizeof *order);
    size_t wanted = 1 + rng_below (&client->world->rng, (uint32_t) max);
    for (size_t i = 0; i < wanted; i++) {
        known_t *task = NULL;
        for (int tries = 0; tries < 6; tries++) {
            task = submitter_draw_known (client);
            if (task == NULL || is_wanted (client->world, task, least)) {
                break;
            }
        }
        bool twice = task == NULL;
        for (size_t k = 0; !twice && k < order->count; k++) {
            twice = order->tasks[k] == task;
        }
        if (!twice) {
            order->accepted[order->count] = task->accepted && task->alias == 0;
            order->tasks[order->count++] = task;
        }
    }
    return order;
}

/* From now on an end is not the last word, unless it is completed. */
static void will_revive (known_t *task)
{
    task->revived = true;
    task->revivals++;
    task->cancelled = false;
    if (task->ended != TMQ_STATUS_COMPLETED) {
        task->ended = TMQ_STATUS_NONE;
    }
}

static bool is_revive (Taskmq__Request__OpCase op)
{
    return op == TASKMQ__REQUEST__OP_RETRY || op == TASKMQ__REQUEST__OP_RESUME;
}

/* A task knows the newest request that revived it. An older one that is repeated behind that would
 * be taken for a new one, so there is one at a time. */
static void leave_out_open (const client_t *client, order_t *order)
{
    for (const pending_t *at = client->pending; at != NULL; at = at->next) {
        const order_t *open = at->data;
        for (size_t i = 0; is_revive (at->op) && i < open->count; i++) {
            for (size_t k = 0; k < order->count; k++) {
                if (order->tasks[k] == open->tasks[i]) {
                    order->tasks[k] = order->tasks[--order->count];
                    order->accepted[k] = order->accepted[order->count];
                }
            }
        }
    }
}

static void fill_ids (const order_t *order, ProtobufCBinaryData ids[ORDER_MAX])
{
    for (size_t i = 0; i < order->count; i++) {
        ids[i].data = order->tasks[i]->id.bytes;
        ids[i].len = sizeof (tmq_id_t);
    }
}

static void send (client_t *client, Taskmq__Request *request, order_t *order)
{
    if (order->count == 0) {
        free (order);
        return;
    }
    client_request (client, request, NULL, 0)->data = order;
}

static void send_revive (client_t *client, order_t *order, bool resume)
{
    ProtobufCBinaryData ids[ORDER_MAX];
    Taskmq__Retry retry = TASKMQ__RETRY__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    leave_out_open (client, order);
    fill_ids (order, ids);
    retry.task_ids = ids;
    retry.n_task_ids = order->count;
    if (resume && order->count == 1 && rng_chance (&client->world->rng, 700)) {
        retry.from_turn_plus_1 = 1 + rng_below (&client->world->rng, order->tasks[0]->turns + 1);
    }
    request.op_case = resume ? TASKMQ__REQUEST__OP_RESUME : TASKMQ__REQUEST__OP_RETRY;
    if (resume) {
        request.resume = &retry;
    } else {
        request.retry = &retry;
    }
    for (size_t i = 0; i < order->count; i++) {
        will_revive (order->tasks[i]);
        order->tasks[i]->resumed_from |= resume ? 1u << retry.from_turn_plus_1 : 0;
    }
    send (client, &request, order);
}

/* A lease of the cancelled attempt may stand beside it. */
static void cancel_and_revive (client_t *client)
{
    order_t *order = draw (client, TMQ_STATUS_QUEUED, 1);
    for (int tries = 0; tries < 20 && order->count == 1; tries++) {
        const record_t *record = durable_of (client->world, order->tasks[0])->record;
        if (record != NULL && record->status == TMQ_STATUS_WORKING) {
            break;
        }
        free (order);
        order = draw (client, TMQ_STATUS_QUEUED, 1);
    }
    if (order->count == 1) {
        Taskmq__Cancel cancel = TASKMQ__CANCEL__INIT;
        Taskmq__Request request = TASKMQ__REQUEST__INIT;
        order_t *first = calloc (1, sizeof *first);
        *first = *order;
        cancel.task_id.data = order->tasks[0]->id.bytes;
        cancel.task_id.len = sizeof (tmq_id_t);
        request.op_case = TASKMQ__REQUEST__OP_CANCEL;
        request.cancel = &cancel;
        send (client, &request, first);
    }
    send_revive (client, order, rng_chance (&client->world->rng, 400));
}

/* Of a task that has ended otherwise than it should have, and has turns to go back to, or a
 * checkpoint, which a retry forgets. */
static void go_back (client_t *client)
{
    order_t *order = draw (client, TMQ_STATUS_FAILED, 1);
    for (int tries = 0; tries < 60 && order->count == 1; tries++) {
        const known_t *task = order->tasks[0];
        if ((task->turns > 0 || task->state_of > 0) &&
            is_wanted (client->world, task, TMQ_STATUS_FAILED)) {
            break;
        }
        free (order);
        order = draw (client, TMQ_STATUS_FAILED, 1);
    }
    bool kept = order->count == 1 && order->tasks[0]->state_of > 0;
    send_revive (client, order, !kept || rng_chance (&client->world->rng, 500));
}

/* "": there is none. */
static void read_label (char out[LABEL_BYTES], const record_t *record)
{
    out[0] = '\0';
    for (size_t i = 0; record != NULL && i < record->labels_count; i++) {
        if (strcmp (record->labels[i].key, label_key) == 0) {
            snprintf (out, LABEL_BYTES, "%s", record->labels[i].value);
        }
    }
}

static void send_set (client_t *client)
{
    world_t *world = client->world;
    mender_t *mender = client->state;
    order_t *order = draw (client, TMQ_STATUS_QUEUED, ORDER_MAX);
    ProtobufCBinaryData ids[ORDER_MAX];
    Taskmq__Set set = TASKMQ__SET__INIT;
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label kind = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label, &kind};
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    snprintf (order->label, sizeof order->label, "%u.%u", client->index, ++mender->sets);
    fill_ids (order, ids);
    set.task_ids = ids;
    set.n_task_ids = order->count;
    label.key = label_key;
    label.value = order->label;
    kind.key = kind_key;
    kind.value = (char *) (uintptr_t) seeker_draw_kind (&world->rng);
    set.labels = labels;
    set.n_labels = 2;
    if (rng_chance (&world->rng, 300)) {
        set.priority_plus_1 = 1 + rng_below (&world->rng, 4);
    } else if (world->options.clock_leap == 0 && rng_chance (&world->rng, 500)) {
        set.not_before = (uint64_t) sim_wall_ms (world) + 2000 + rng_below (&world->rng, 4000);
    }
    for (size_t i = 0; i < order->count; i++) {
        order->tasks[i]->set = true;
        read_label (order->before[i], durable_of (world, order->tasks[i])->record);
    }
    request.op_case = TASKMQ__REQUEST__OP_SET;
    request.set = &set;
    send (client, &request, order);
}

static void send_purge (client_t *client)
{
    order_t *order = draw (client, TMQ_STATUS_COMPLETED, ORDER_MAX);
    ProtobufCBinaryData ids[ORDER_MAX];
    Taskmq__Purge purge = TASKMQ__PURGE__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    fill_ids (order, ids);
    purge.task_ids = ids;
    purge.n_task_ids = order->count;
    for (size_t i = 0; i < order->count; i++) {
        order->tasks[i]->purging = true;
    }
    request.op_case = TASKMQ__REQUEST__OP_PURGE;
    request.purge = &purge;
    send (client, &request, order);
}

static void send_adopt (client_t *client)
{
    rng_t *rng = &client->world->rng;
    order_t *order = draw (client, TMQ_STATUS_QUEUED, 1);
    for (int tries = 0; tries < 60 && order->count == 1 && order->tasks[0]->kept_of == 0; tries++) {
        free (order);
        order = draw (client, TMQ_STATUS_QUEUED, 1);
    }
    Taskmq__Adopt adopt = TASKMQ__ADOPT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    if (order->count == 1) {
        known_t *task = order->tasks[0];
        order->kept = task->kept_of > 0 && rng_chance (rng, 800);
        order->attempt = order->kept ? task->kept_of : 1 + rng_below (rng, 4);
        will_revive (task); /* it may have failed, and will be completed */
        task->revivals--;
        adopt.task_id.data = task->id.bytes;
        adopt.task_id.len = sizeof (tmq_id_t);
        adopt.attempt = order->attempt;
    }
    request.op_case = TASKMQ__REQUEST__OP_ADOPT;
    request.adopt = &adopt;
    send (client, &request, order);
}

static void mender_tick (client_t *client)
{
    world_t *world = client->world;
    rng_t *rng = &world->rng;
    client->next_ms = world->mono_ms + rng_between (rng, 20, PAUSE_MS_MAX);
    if (!world->faults || client_open (client) >= OPEN_MAX) {
        return;
    }
    uint32_t dice = rng_below (rng, 100);
    if (dice < 18) {
        send_revive (client, draw (client, TMQ_STATUS_FAILED, ORDER_MAX), rng_chance (rng, 400));
    } else if (dice < 42) {
        go_back (client);
    } else if (dice < 58) {
        cancel_and_revive (client);
    } else if (dice < 62) {
        send_purge (client);
    } else if (dice < 78) {
        send_adopt (client);
    } else if (dice < 84) {
        known_t *task = submitter_draw_known (client);
        if (task != NULL) {
            teller_look (client, task);
        }
    } else if (client_open (client) == 0) {
        send_set (client);
    }
}

/* Answers. */

static void check_revived (world_t *world, const known_t *task, const Taskmq__ChangedItem *item)
{
    bool session = task->session > 0; /* it may be frozen or complete */
    if (item->code == TMQ_OK && task->revived_events == 0 && !task->gone) {
        sim_fail (world, "A7: the retry of task %u was acknowledged and is not durable",
                  index_of (task));
    } else if (item->code == TMQ_INVALID) {
        sim_fail (world, "A76: the resume of task %u is refused: %s", index_of (task), item->text);
    } else if (item->code == TMQ_WRONG_STATUS && !session &&
               (item->status == TMQ_STATUS_FAILED || item->status == TMQ_STATUS_CANCELLED)) {
        sim_fail (world, "S5: the retry of task %u is refused: %s", index_of (task), item->text);
    }
}

static void check_purged (world_t *world, known_t *task, const Taskmq__ChangedItem *item)
{
    const model_row_t *row = durable_of (world, task);
    if (item->code == TMQ_OK) {
        task->removed = true;
        if (row->record != NULL) {
            sim_fail (world, "A7: the purge of task %u was acknowledged and is not durable",
                      index_of (task));
        }
    }
}

/* What stood there before cannot be there any more; what another one has set since can. */
static void check_set (const client_t *client, const pending_t *pending, size_t number,
                       const Taskmq__ChangedItem *item)
{
    char label[LABEL_BYTES];
    const order_t *order = pending->data;
    const known_t *task = order->tasks[number];
    const record_t *record = durable_of (client->world, task)->record;
    bool settled = pending->sent_ms >= client->linked_ms + SETTLED_MS;
    read_label (label, record);
    if (item->code == TMQ_OK && settled && record != NULL &&
        strcmp (label, order->before[number]) == 0) {
        sim_fail (client->world, "A7: the set of task %u was acknowledged and is not durable",
                  index_of (task));
    }
}

static void changed (client_t *client, const pending_t *pending, const Taskmq__Reply *reply)
{
    const order_t *order = pending->data;
    world_t *world = client->world;
    if (reply->code != TMQ_OK || reply->changed == NULL ||
        reply->changed->n_items != order->count) {
        sim_fail (world, "an order about tasks is answered %u %s", reply->code, reply->text);
        return;
    }
    for (size_t i = 0; i < order->count && !world->failed; i++) {
        const Taskmq__ChangedItem *item = reply->changed->items[i];
        known_t *task = order->tasks[i];
        if (item->task_id.len != sizeof (tmq_id_t) ||
            memcmp (item->task_id.data, task->id.bytes, sizeof (tmq_id_t)) != 0) {
            sim_fail (world, "an order about task %u is answered for another", index_of (task));
        } else if (item->code == TMQ_NOT_FOUND && order->accepted[i]) {
            sim_fail (world, "I1: task %u was accepted and is not found", index_of (task));
        } else if (item->code == TMQ_INTERNAL) {
            sim_fail (world, "an order about task %u: %s", index_of (task), item->text);
        } else if (pending->op == TASKMQ__REQUEST__OP_PURGE) {
            check_purged (world, task, item);
        } else if (pending->op == TASKMQ__REQUEST__OP_SET) {
            check_set (client, pending, i, item);
        } else {
            check_revived (world, task, item);
        }
    }
}

static uint32_t adopted_from (const record_t *record)
{
    extra_t *extra = record->extra == NULL ? NULL : extra_new (record->extra);
    uint32_t attempt = extra == NULL ? 0 : extra->fields->adopted_from;
    extra_free (extra);
    return attempt;
}

static void adopted (world_t *world, const order_t *order, const Taskmq__Reply *reply)
{
    known_t *task = order->tasks[0];
    uint32_t index = index_of (task);
    const record_t *record = durable_of (world, task)->record;
    if (reply->code == TMQ_NOT_FOUND && order->kept && task->late_events <= TMQ_KEPT_TASK_MAX) {
        sim_fail (world, "S35: the success of attempt %u of task %u was kept: %s", order->attempt,
                  index, reply->text);
    } else if (reply->code == TMQ_INTERNAL) {
        sim_fail (world, "S35: adopt of task %u: %s", index, reply->text);
    }
    if (reply->code != TMQ_OK || record == NULL) {
        return;
    }
    if (record->status != TMQ_STATUS_COMPLETED || adopted_from (record) != order->attempt) {
        sim_fail (world, "A7: attempt %u of task %u was adopted, stored is %u in status %d",
                  order->attempt, index, adopted_from (record), (int) record->status);
        return;
    }
    check_adopted (world, task, order->attempt, record);
}

static void mender_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                          const uint8_t *body, size_t body_bytes)
{
    const order_t *order = pending->data;
    switch (pending->op) {
    case TASKMQ__REQUEST__OP_TURNS:
        teller_page (client->world, pending, reply, body, body_bytes);
        break;
    case TASKMQ__REQUEST__OP_CANCEL: check_cancelled (client->world, order->tasks[0], reply); break;
    case TASKMQ__REQUEST__OP_ADOPT: adopted (client->world, order, reply); break;
    default: changed (client, pending, reply); break;
    }
}

const actor_t mender_actor = {
    .name = "mender", .start = mender_start, .tick = mender_tick, .reply = mender_reply};

/* What becomes durable. */

void mender_check_event (world_t *world, const Taskmq__Event *event, const batch_t *batch)
{
    known_t *task =
        event->task_id.len == sizeof (tmq_id_t) ? check_find (world, &event->task_id) : NULL;
    if (task == NULL) {
        return;
    }
    if (event->kind == TMQ_EVENT_RETRIED || event->kind == TMQ_EVENT_RESUMED) {
        if (++task->revived_events > task->revivals) {
            sim_fail (world, "A45: task %u was revived %u times, asked for were %u",
                      index_of (task), task->revived_events, task->revivals);
        }
    }
    if (event->kind == TMQ_EVENT_RETRIED) {
        task->fresh_from = event->attempt;
        keeper_check_retried (world, task, batch);
    }
    task->late_events += event->kind == TMQ_EVENT_LATE;
}
