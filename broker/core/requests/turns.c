/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* turn, turns: what workers tell of their work turn by turn, and whoever reads it. */
#include "core/requests/turns.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/reads/find.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/get.h"
#include "core/requests/pages.h"
#include "core/requests/report.h"
#include "core/requests/room.h"
#include "core/tasks/change.h"
#include "core/tasks/extras.h"
#include "core/tasks/flow.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"
#include "core/tasks/turns.h"
#include "ids.h"
#include "json.h"
#include "turn_files.h"

/* What a turn's fields and a further range add to its task's Extra, at most. */
enum { TURNS_EXTRA_BYTES = 64 };
enum { BURST_SECONDS = 5 };

static uint32_t place_of (const task_t *task, uint32_t number)
{
    return extras_of (task)->turns_before + number;
}

bool turn_told_key (const requests_t *self, const space_t *space, const Taskmq__Turn *turn,
                    row_key_t *out)
{
    const task_t *task = task_find (self->tasks, space, turn->lease->task_id.data);
    if (task == NULL || turn->number > turns_of_attempt (task))
        return false;
    turn_key (out, space->name, task->id.bytes, place_of (task, turn->number));
    return true;
}

/* turn. */

static bool is_text (const uint8_t *bytes, size_t length)
{
    return utf8_is_valid (bytes, length) && memchr (bytes, '\0', length) == NULL;
}

/* What is wrong with its parts, or NULL. */
static const char *flaw_of (const turn_t *turn)
{
    size_t files;
    if (turn->lengths[0] > 0 && !is_text (turn->parts[0], turn->lengths[0]))
        return "content: must be UTF-8 without NUL";
    if (turn->lengths[1] > 0 && !json_text_is_valid (turn->parts[1], turn->lengths[1]))
        return "tool_calls: must be JSON";
    if (turn->lengths[2] > 0 && !is_text (turn->parts[2], turn->lengths[2]))
        return "tool_log: must be UTF-8 without NUL";
    return turn_files_flaw (turn->parts[3], turn->lengths[3], &files);
}

static void take (turn_t *out, const call_t *call)
{
    const Taskmq__Turn *turn = call->request->turn;
    const uint32_t lengths[TURN_PARTS] = {turn->content_bytes, turn->tool_calls_bytes,
                                          turn->tool_log_bytes, turn->files_bytes};
    const uint8_t *at = call->body;
    *out = (turn_t){.started_at = (int64_t) turn->started_at,
                    .duration_ms = (int64_t) turn->duration_ms};
    snprintf (out->agent, sizeof (out->agent), "%s", turn->agent);
    snprintf (out->status, sizeof (out->status), "%s", turn->status);
    memcpy (out->request_id, call->request->request_id.data, sizeof (out->request_id));
    for (size_t i = 0; i < TURN_PARTS; i++) {
        out->parts[i] = lengths[i] == 0 ? (const uint8_t *) "" : at;
        out->lengths[i] = lengths[i];
        at += lengths[i];
    }
}

/* It was told, or it is not the next one: a repeat is OK. True: it was answered. */
static bool is_out_of_turn (call_t *call, const task_t *task)
{
    const Taskmq__Turn *turn = call->request->turn;
    uint32_t told = turns_of_attempt (task);
    char text[96];
    row_key_t key;
    turn_t before;
    bool found;
    if (turn->number == told + 1 ||
        call->requests->base->config.planted_bug == ENGINE_BUG_TURN_TOLD_TWICE)
        return false;
    if (turn->number > told) {
        snprintf (text, sizeof (text), "the next turn of this attempt has the number %" PRIu32,
                  told + 1);
        reply_code (call, TMQ_CONFLICT, text);
        return true;
    }
    turn_key (&key, call->link->space->name, task->id.bytes, place_of (task, turn->number));
    const buf_t *body =
        find_row (call->requests->reads, ROW_KIND_TURN, key.bytes, key.length, &found);
    if (!found || !turn_unpack (&before, body)) {
        reply_code (call, TMQ_INTERNAL, "the turn could not be read");
        return true;
    }
    bool same =
        memcmp (before.request_id, call->request->request_id.data, sizeof (before.request_id)) == 0;
    snprintf (text, sizeof (text), "turn %" PRIu32 " of this attempt was told already",
              turn->number);
    reply_code (call, same ? TMQ_OK : TMQ_CONFLICT, same ? NULL : text);
    return true;
}

static bool is_over_limit (call_t *call, const task_t *task, size_t bytes)
{
    const engine_config_t *config = &call->requests->base->config;
    const Taskmq__Extra *extra = extras_of (task);
    if (extra->turns >= config->task_turns_max)
        reply_limit (call, "turns of a task", config->task_turns_max);
    else if (extra->turn_bytes + bytes > config->task_turn_bytes_max)
        reply_limit (call, "bytes of the turns of a task", config->task_turn_bytes_max);
    else if (call->link->space->entries.turn_bytes + bytes > config->space_turn_bytes_max)
        reply_limit (call, "bytes of the turns of a namespace", config->space_turn_bytes_max);
    else if (extra->turns == 0 && extras_room (task) < TURNS_EXTRA_BYTES)
        reply_limit (call, "bytes of what a task has beside its record", TMQ_EXTRA_BYTES_MAX);
    else
        return false;
    return true;
}

/* The last to be asked: what else is refused does not count. */
static bool must_wait (call_t *call, task_t *task)
{
    const requests_t *self = call->requests;
    uint64_t rate = self->base->config.turn_rate;
    char text[LIMIT_TEXT_SIZE];
    flow_t *flow = flow_at (&task->detail->flow, task, task->attempt);
    int64_t wait_ms =
        bucket_take (&flow->turns, rate, BURST_SECONDS * rate, self->base->clocks.mono_ms);
    if (wait_ms == 0)
        return false;
    limit_text (text, "turns a second of a task", rate);
    reply_code_at_once (call, TMQ_LIMIT, text, (uint32_t) wait_ms);
    return true;
}

void on_turn (call_t *call)
{
    requests_t *self = call->requests;
    turn_t turn;
    task_t *task = report_begin (call, call->request->turn->lease);
    if (task == NULL)
        return;
    take (&turn, call);
    const char *flaw = flaw_of (&turn);
    if (flaw != NULL) {
        reply_code (call, TMQ_INVALID, flaw);
        return;
    }
    report_started (self, task);
    if (is_out_of_turn (call, task) || room_refused_at_once (call) ||
        is_over_limit (call, task, turn_bytes (&turn)) || must_wait (call, task))
        return;
    snprintf (turn.worker, sizeof (turn.worker), "%s", name_text (task->detail->worker));
    self->tasks->open.inputs++;
    turn_put (self->tasks, task, &turn);
    cause_t cause = {.actor = name_text (call->link->identity),
                     .message = turn.status,
                     .name = turn.agent,
                     .number = turn.turn};
    change_apply (self->tasks, task, INPUT_TURN, &cause);
    reply_code (call, TMQ_OK, NULL);
}

/* turns. */

/* What was asked of the turns of a task, and which of them counted no more then. */
typedef struct turns_asked {
    uint32_t attempt; /* 0: all */
    uint32_t parts;
    size_t ranges_count;
    uint32_t ranges[];
} turns_asked_t;

static turns_asked_t *asked_new (const call_t *call, const Taskmq__Extra *fields)
{
    const Taskmq__Turns *request = call->request->turns;
    size_t count = fields->n_superseded;
    turns_asked_t *self = memory_alloc (sizeof (*self) + count * sizeof (uint32_t));
    self->attempt = request->attempt;
    self->parts = call->bodies ? request->parts : 0;
    self->ranges_count = count;
    if (count > 0)
        memcpy (self->ranges, fields->superseded, count * sizeof (uint32_t));
    return self;
}

static void answer_none (call_t *call)
{
    bytes_mark_t mark;
    bytes_t *out = reply_open (call->requests, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_close (out, bytes_open (out, TASKMQ__REPLY__BODY_TURN_PAGE));
    reply_close (call->requests, call->link, mark, journal_batch (call->requests->tasks), NULL);
}

static void ask (call_t *call, const found_t *found, const Taskmq__Extra *fields)
{
    const Taskmq__Turns *request = call->request->turns;
    const char *ns = call->link->space->name;
    row_key_t prefix;
    row_key_t after = ROW_KEY_INIT;
    if (fields->turns <= request->after) {
        answer_none (call);
        return;
    }
    turn_key (&prefix, ns, request->task_id.data, 0);
    if (request->after > 0)
        turn_key (&after, ns, request->task_id.data, request->after);
    read_job_t *job = page_rows (call, ROW_KIND_TURN, &prefix, &after,
                                 request->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : request->limit);
    if (job == NULL)
        return;
    if (found->task != NULL && found->task->changed > job->need)
        job->need = found->task->changed;
    job->turns = asked_new (call, fields);
    if (job->turns->parts != 0)
        deeds_task (call, DEED_READ, found);
}

void on_turns (call_t *call)
{
    found_t found;
    if (!get_find (call, &call->request->turns->task_id, RIGHT_READ | RIGHT_OBSERVE, &found))
        return;
    if (found.task != NULL) {
        ask (call, &found, extras_of (found.task));
        return;
    }
    extra_t *extra = extra_new (found.record->extra);
    ask (call, &found, extra->fields);
    extra_free (extra);
}

static void pack_turn (bytes_t *out, const turns_asked_t *asked, const turn_t *turn)
{
    Taskmq__TurnInfo info = TASKMQ__TURN_INFO__INIT;
    info.turn = turn->turn;
    info.attempt = turn->attempt;
    info.number = turn->number;
    info.worker = (char *) (uintptr_t) turn->worker;
    info.agent = (char *) (uintptr_t) turn->agent;
    info.status = (char *) (uintptr_t) turn->status;
    info.started_at = (uint64_t) turn->started_at;
    info.duration_ms = (uint64_t) turn->duration_ms;
    info.told_at = (uint64_t) turn->told_at;
    info.superseded = turn_is_superseded (asked->ranges, asked->ranges_count, turn->turn);
    info.content_bytes = (uint32_t) turn->lengths[0];
    info.tool_calls_bytes = (uint32_t) turn->lengths[1];
    info.tool_log_bytes = (uint32_t) turn->lengths[2];
    info.files_bytes = (uint32_t) turn->lengths[3];
    info.parts = asked->parts;
    bytes_append_message (out, 1, &info.base); /* TurnPage.turns */
}

static size_t wanted_bytes (const turns_asked_t *asked, const turn_t *turn)
{
    size_t bytes = 0;
    for (size_t i = 0; i < TURN_PARTS; i++)
        bytes += (asked->parts >> i & 1) != 0 ? turn->lengths[i] : 0;
    return bytes;
}

/* A page in the making. */
typedef struct turn_page {
    bytes_t bodies;
    uint32_t last; /* the last turn that was considered */
    bool any;
} turn_page_t;

/* False: the page is full, and the row is for the next one. */
static bool pack_row (bytes_t *out, turn_page_t *page, const turns_asked_t *asked, const row_t *row)
{
    turn_t turn;
    if (!turn_unpack (&turn, row->body))
        return true;
    if (asked->attempt == 0 || turn.attempt == asked->attempt) {
        size_t before = out->length;
        pack_turn (out, asked, &turn);
        if (page->any && (out->length > ENVELOPE_FILL_BYTES ||
                          page->bodies.length + wanted_bytes (asked, &turn) > TMQ_PART_BYTES_MAX)) {
            out->length = before;
            return false;
        }
        page->any = true;
        for (size_t i = 0; i < TURN_PARTS; i++)
            if ((asked->parts >> i & 1) != 0)
                bytes_append (&page->bodies, turn.parts[i], turn.lengths[i]);
    }
    page->last = turn.turn;
    return true;
}

void turns_answer (requests_t *self, read_job_t *job)
{
    enum { PAGE_NEXT = 2, PAGE_BODY = 3 };
    const read_t *read = &job->read;
    turn_page_t page = {BYTES_INIT, 0, false};
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t inner = bytes_open (out, TASKMQ__REPLY__BODY_TURN_PAGE);
    size_t i = 0;
    while (i < read->rows_count && pack_row (out, &page, job->turns, &read->rows[i]))
        i++;
    if (i < read->rows_count || read->more)
        bytes_append_uint (out, PAGE_NEXT, page.last);
    bytes_append_uint (out, PAGE_BODY, page.bodies.length);
    bytes_close (out, inner);
    buf_t *bodies = page.bodies.length == 0 ? NULL : buf_new (page.bodies.data, page.bodies.length);
    reply_close (self, job->link, mark, 0, bodies);
    buf_drop (bodies);
    bytes_free (&page.bodies);
}
