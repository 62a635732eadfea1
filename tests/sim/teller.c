/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Turns: what is said in one names its task, its attempt and its number there. The places that the
 * stored ones have, and which of them count no more, are reckoned from the events and compared
 * with what the task's record and each page tell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/extra.h"
#include "sim.h"
#include "wire.h"

enum { NUMBER_BYTES = 8, LOOK_MAX = 4 };

/* What was asked, and what was durable then. */
typedef struct look {
    known_t *task;
    uint32_t after;
    uint32_t turns;
    uint32_t superseded;
} look_t;

static uint32_t index_of (const known_t *task)
{
    return model_index (task->id.bytes);
}

static void say (uint32_t index, uint32_t attempt, uint32_t number, char out[SIM_TURN_BYTES])
{
    snprintf (out, SIM_TURN_BYTES, "%u %u %u %s", index, attempt, number,
              seeker_word (index, attempt, number));
}

/* Telling. */

size_t teller_fill (const known_t *task, uint32_t attempt, uint32_t number, Taskmq__Turn *turn,
                    uint8_t body[SIM_TURN_BODY])
{
    char content[SIM_TURN_BYTES];
    say (index_of (task), attempt, number, content);
    size_t length = strlen (content);
    memcpy (body, content, length);
    turn->number = number;
    turn->content_bytes = (uint32_t) length;
    return length + seeker_fill_turn (index_of (task), attempt, turn, body + length);
}

bool teller_may_tell (const known_t *task)
{
    return task->turns < SIM_TURNS_MAX / 2;
}

void teller_told (world_t *world, const known_t *task, uint32_t attempt, uint32_t number,
                  bool alone, const Taskmq__Reply *reply)
{
    bool found = task->gone;
    for (uint32_t i = 0; !found && i < task->turns; i++) {
        found = task->told[i].attempt == attempt && task->told[i].number == number;
    }
    if (reply->code == TMQ_OK && !found) {
        sim_fail (world, "A7: turn %u of attempt %u of task %u is acknowledged, not durable",
                  number, attempt, index_of (task));
    } else if (reply->code == TMQ_INVALID || (reply->code == TMQ_CONFLICT && alone)) {
        sim_fail (world, "A45: turn %u of attempt %u of task %u is refused: %s", number, attempt,
                  index_of (task), reply->text);
    }
}

/* Reading. */

void teller_look (client_t *client, known_t *task)
{
    rng_t *rng = &client->world->rng;
    Taskmq__Turns turns = TASKMQ__TURNS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    look_t *look = calloc (1, sizeof *look);
    *look = (look_t){task, rng_below (rng, task->turns + 1), task->turns, task->superseded};
    turns.task_id.data = task->id.bytes;
    turns.task_id.len = sizeof (tmq_id_t);
    turns.after = look->after;
    turns.limit = rng_below (rng, LOOK_MAX);
    turns.parts = TMQ_TURN_CONTENT;
    request.op_case = TASKMQ__REQUEST__OP_TURNS;
    request.turns = &turns;
    client_request (client, &request, NULL, 0)->data = look;
}

/* One turn of a page, and what was said in it. */
static void check_info (world_t *world, const look_t *look, const Taskmq__TurnInfo *info,
                        const uint8_t *body)
{
    const known_t *task = look->task;
    uint32_t index = index_of (task);
    uint32_t bit = info->turn == 0 || info->turn > SIM_TURNS_MAX ? 0 : 1u << (info->turn - 1);
    char wanted[SIM_TURN_BYTES];
    if (bit == 0 || info->turn > task->turns) {
        sim_fail (world, "A7: task %u shows turn %u of %u that are durable", index, info->turn,
                  task->turns);
        return;
    }
    uint32_t attempt = task->told[info->turn - 1].attempt;
    uint32_t number = task->told[info->turn - 1].number;
    say (index, attempt, number, wanted);
    if (info->attempt != attempt || info->number != number ||
        info->content_bytes != strlen (wanted) || memcmp (body, wanted, strlen (wanted)) != 0) {
        sim_fail (world, "turn %u of task %u is read as turn %u of attempt %u", info->turn, index,
                  info->number, info->attempt);
    }
    if (info->superseded ? (task->superseded & bit) == 0 : (look->superseded & bit) != 0) {
        sim_fail (world, "A76: turn %u of task %u is shown as %s", info->turn, index,
                  info->superseded ? "superseded, and counts" : "one that counts, and does not");
    }
}

void teller_page (world_t *world, const pending_t *pending, const Taskmq__Reply *reply,
                  const uint8_t *body, size_t body_bytes)
{
    const look_t *look = pending->data;
    const Taskmq__TurnPage *page = reply->turn_page;
    if (reply->code != TMQ_OK || page == NULL || look->task->gone) {
        return; /* it may lose its turns while they are read */
    }
    uint32_t last = look->after;
    for (size_t i = 0; i < page->n_turns && !world->failed; i++) {
        const Taskmq__TurnInfo *info = page->turns[i];
        if (info->turn != last + 1 || info->content_bytes > body_bytes) {
            sim_fail (world, "task %u: turn %u is read behind %u", index_of (look->task),
                      info->turn, last);
            return;
        }
        check_info (world, look, info, body);
        last = info->turn;
        body += info->content_bytes;
        body_bytes -= info->content_bytes;
    }
    if (page->next == 0 && last < look->turns) {
        sim_fail (world, "task %u: its turns end with %u, %u were durable", index_of (look->task),
                  last, look->turns);
    }
}

void teller_check_assigned (world_t *world, const known_t *task,
                            const Taskmq__Assignment *assignment)
{
    uint32_t told = assignment->extra == NULL ? 0 : assignment->extra->turns;
    uint32_t before = 0;
    while (before < task->turns && task->told[before].attempt < assignment->attempt) {
        before++;
    }
    if (told != before) {
        sim_fail (world, "attempt %u of task %u is told of %u turns, %u were durable",
                  assignment->attempt, index_of (task), told, before);
    }
}

/* What becomes durable. */

static uint32_t places (uint32_t from, uint32_t upto)
{
    uint32_t all = upto == 0 ? 0 : UINT32_MAX >> (32 - upto);
    return from >= upto ? 0 : all & ~((1u << from) - 1);
}

static void may_be (known_t *task, uint32_t superseded)
{
    for (uint32_t i = 0; i < task->ways_count; i++) {
        if (task->ways[i] == superseded) {
            return;
        }
    }
    if (task->ways_count < SIM_WAYS) {
        task->ways[task->ways_count++] = superseded;
    }
}

/* A resume is one of those that were sent, and its event says which. */
static void resumed (world_t *world, known_t *task, const char *message)
{
    unsigned turn = 0;
    bool goes_back = sscanf (message, "from turn %u", &turn) == 1;
    uint32_t from = goes_back ? turn + 1 : 0;
    if (from > SIM_TURNS_MAX || (task->resumed_from >> from & 1) == 0) {
        sim_fail (world, "A76: a resume of task %u that nobody sent: '%s'", index_of (task),
                  message);
    }
    for (uint32_t i = 0; goes_back && i < task->ways_count; i++) {
        task->ways[i] |= places (turn, task->turn_events);
    }
}

void teller_check_event (world_t *world, const Taskmq__Event *event)
{
    known_t *task =
        event->task_id.len == sizeof (tmq_id_t) ? check_find (world, &event->task_id) : NULL;
    if (task == NULL) {
        return;
    }
    if (task->ways_count == 0) {
        may_be (task, task->superseded);
    }
    if (event->kind == TMQ_EVENT_TURN && event->number != ++task->turn_events) {
        sim_fail (world, "task %u: turn %llu is told as the one behind %u", index_of (task),
                  (unsigned long long) event->number, task->turn_events - 1);
    } else if (event->kind == TMQ_EVENT_RETRIED) {
        for (uint32_t i = 0; i < task->ways_count; i++) {
            task->ways[i] = places (0, task->turn_events);
        }
    } else if (event->kind == TMQ_EVENT_RESUMED) {
        resumed (world, task, event->message);
    }
}

/* The task whose turn a row is, and its place. */
static known_t *task_of (world_t *world, const row_t *row, uint64_t *place)
{
    const uint8_t *bytes = buf_bytes (row->key);
    const uint8_t *id = bytes + strlen ((const char *) bytes) + 1;
    const uint8_t *number = id + sizeof (tmq_id_t);
    *place = 0;
    for (size_t i = 0; row->kind == ROW_KIND_TURN && i < NUMBER_BYTES; i++) {
        *place = *place << 8 | number[i];
    }
    return &world->tasks[model_index (id)];
}

/* Whose it is, as the row says and as was said in it. */
static bool unpack (const row_t *row, uint32_t index, uint32_t *attempt, uint32_t *number)
{
    enum { FIELD_ATTEMPT = 2, FIELD_NUMBER = 3, FIELD_CONTENT = 11 }; /* core/tasks/turns.c */
    const uint8_t *at = buf_bytes (row->body);
    const uint8_t *end = at + buf_length (row->body);
    char wanted[SIM_TURN_BYTES];
    bool says_so = false;
    wire_field_t field;
    *attempt = *number = 0;
    while (at < end && wire_read_field (&field, &at, end)) {
        if (field.number == FIELD_ATTEMPT) {
            *attempt = (uint32_t) field.value;
        } else if (field.number == FIELD_NUMBER) {
            *number = (uint32_t) field.value;
        } else if (field.number == FIELD_CONTENT) {
            say (index, *attempt, *number, wanted);
            says_so =
                field.length == strlen (wanted) && memcmp (field.bytes, wanted, field.length) == 0;
        }
    }
    return says_so;
}

/* Each is there once, in the order of attempts and their numbers. */
static void take_row (world_t *world, const row_t *row)
{
    uint64_t place;
    uint32_t attempt;
    uint32_t number;
    known_t *task = task_of (world, row, &place);
    uint32_t index = index_of (task);
    const record_t *before = world->model->durable.rows[index].record;
    uint32_t last = task->turns == 0 ? 0 : task->told[task->turns - 1].attempt;
    uint32_t behind = task->turns == 0 ? 0 : task->told[task->turns - 1].number;
    bool says_so = unpack (row, index, &attempt, &number);
    if (!says_so || attempt < last || number != (attempt == last ? behind + 1 : 1) ||
        place != task->turns + 1 || place > SIM_TURNS_MAX) {
        sim_fail (world, "A45: task %u has %u turns; turn %u of attempt %u comes as turn %llu",
                  index, task->turns, number, attempt, (unsigned long long) place);
    } else if (before != NULL && before->attempt > attempt) {
        sim_fail (world, "S8: attempt %u of task %u tells of a turn during attempt %u", attempt,
                  index, before->attempt);
    } else {
        task->told[task->turns].attempt = attempt;
        task->told[task->turns++].number = number;
    }
}

static void check_record (world_t *world, const record_t *record)
{
    known_t *task = &world->tasks[model_index (record->id.bytes)];
    extra_t *extra = extra_new (record->extra);
    uint32_t superseded = 0;
    for (size_t i = 0; i + 1 < extra->fields->n_superseded; i += 2) {
        superseded |= places (extra->fields->superseded[i] - 1, extra->fields->superseded[i + 1]);
    }
    bool expected = task->ways_count == 0 ? superseded == task->superseded : false;
    for (uint32_t i = 0; i < task->ways_count; i++) {
        expected = expected || task->ways[i] == superseded;
    }
    if (extra->fields->turns != task->turns || task->turn_events != task->turns) {
        sim_fail (world, "task %u has %u turns, %u were told of, %u are stored", index_of (task),
                  extra->fields->turns, task->turn_events, task->turns);
    } else if (!expected) {
        sim_fail (world, "A76: task %u: the turns %x count no more, before %x, resumed from %x",
                  index_of (task), superseded, task->superseded, task->resumed_from);
    }
    task->superseded = superseded;
    task->ways_count = 0;
    extra_free (extra);
}

void teller_check_batch (world_t *world, const batch_t *batch)
{
    for (size_t i = 0; i < batch->rows_count && !world->failed; i++) {
        const row_t *row = &batch->rows[i];
        uint64_t place;
        if (row->kind == ROW_KIND_TURN && !row->gone) {
            take_row (world, row);
        } else if (row->kind == ROW_KIND_TURN && !task_of (world, row, &place)->gone) {
            sim_fail (world, "task %u loses turn %llu", index_of (task_of (world, row, &place)),
                      (unsigned long long) place);
        }
    }
    for (size_t i = 0; i < batch->records_count && !world->failed; i++) {
        const record_t *record = batch->records[i];
        if (model_index (record->id.bytes) < world->tasks_count) {
            check_record (world, record);
        }
    }
}

/* A debt that is stored for the task: what is left of its turns goes later. */
static bool is_owed (const row_list_t *rows, const row_t *turn)
{
    row_key_t key = ROW_KEY_INIT;
    row_key_bytes (&key, buf_bytes (turn->key), buf_length (turn->key) - NUMBER_BYTES);
    buf_t *wanted = buf_new (key.bytes, key.length);
    const row_t *owed = row_list_find (rows, ROW_KIND_TURNS_LEFT, wanted);
    buf_drop (wanted);
    return owed != NULL && !owed->gone;
}

void teller_check_durable (world_t *world)
{
    const row_list_t *rows = &world->model->durable.kind_rows;
    for (size_t i = 0; i < rows->count && !world->failed; i++) {
        const row_t *row = &rows->rows[i];
        uint64_t place;
        if (row->kind == ROW_KIND_TURN && !row->gone && task_of (world, row, &place)->gone &&
            !is_owed (rows, row)) {
            sim_fail (world, "A76: turn %llu of task %u is left behind", (unsigned long long) place,
                      index_of (task_of (world, row, &place)));
        }
    }
}

bool teller_is_quit (const world_t *world)
{
    const row_list_t *rows = &world->model->durable.kind_rows;
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->rows[i].kind == ROW_KIND_TURNS_LEFT && !rows->rows[i].gone) {
            return false;
        }
    }
    return true;
}
