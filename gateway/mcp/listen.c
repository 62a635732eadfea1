/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "mcp/listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/effort.h"
#include "http/sse.h"
#include "mcp/eras.h"
#include "mcp/follow.h"
#include "timestamp.h"

enum {
    ROUND = 256, /* items of a flow in a turn; then others */
    CURSOR_SIZE = 48
};

/* Of a task: what its client was told last. */
typedef struct told {
    tmq_id_t id;
    uint64_t seq;
    bool silent; /* it has no progress token */
    bool progressed;
    double progress;
} told_t;

typedef struct listener {
    bool tools;   /* it is to hear when the tools change */
    bool changed; /* they did, and it was not told yet */
    char digest[TOOLS_DIGEST_SIZE];
    tmq_id_t ids[LISTEN_TASKS_MAX]; /* of 2026: those that are its principal's */
    size_t ids_count;
    size_t looked;
    flow_t *flow;        /* NULL: it hears of no tasks */
    bool busy;           /* its task's record is under way, or will be asked for again … */
    bool again;          /* … when the broker is there, or after a while */
    principal_t *looker; /* whose looks it is one of; NULL: it is not under way */
    bool of_progress;    /* the record is for a notice */
    told_t told[LISTEN_TASKS_MAX];
    size_t told_count; /* since it began: the oldest make room */
    char cursor[CURSOR_SIZE];
} listener_t;

/* Takes what there is, as far as its client reads. May end the call. */
static void go_on (call_t *call);
/* Of an event that is sent now; NULL: it has none. */
static const char *event_id (const call_t *call, bytes_t *out);

static void end_look (listener_t *self)
{
    if (self->looker != NULL)
        self->looker->looks--;
    self->looker = NULL;
}

static void listener_free (listener_t **self)
{
    end_look (*self);
    flow_free (&(*self)->flow);
    free (*self);
    *self = NULL;
}

/* Half of the requests that a principal may have under way: the others are for what it asks. */
static bool has_room (const call_t *call)
{
    const principal_t *principal = call->exchange->principal;
    uint64_t count = 0;
    for (const call_t *other = call->mcp->calls; other != NULL; other = other->next)
        count += other->listener != NULL &&
                 strcmp (other->exchange->principal->name, principal->name) == 0;
    return count < call->mcp->service->settings.numbers[SETTING_PRINCIPAL_REQUESTS_MAX] / 2;
}

/* NULL: answered. */
static listener_t *make_listener (call_t *call)
{
    call->listener = calloc (1, sizeof *call->listener);
    if (call->listener == NULL) {
        call_error (call, 200, RPC_INTERNAL, "memory is exhausted", NULL);
        return NULL;
    }
    call->listener_free = listener_free;
    call->go_on = go_on;
    call->event_id = event_id;
    tools_digest (call->listener->digest, call->tools, call->exchange->principal->roles);
    return call->listener;
}

/* What was told. */

static told_t *told_of (listener_t *self, const tmq_id_t *id)
{
    const size_t count = self->told_count < LISTEN_TASKS_MAX ? self->told_count : LISTEN_TASKS_MAX;
    for (size_t i = 0; i < count; i++)
        if (memcmp (&self->told[i].id, id, sizeof *id) == 0)
            return &self->told[i];
    return NULL;
}

static told_t *remember (listener_t *self, const tmq_id_t *id)
{
    told_t *told = told_of (self, id);
    if (told != NULL)
        return told;
    told = &self->told[self->told_count++ % LISTEN_TASKS_MAX];
    *told = (told_t){.id = *id};
    return told;
}

/* Telling. */

static bool is_owed (const call_t *call)
{
    return call->owed.length > 0;
}

/* Ends params with the number of the subscription, of 2026, and sends. */
static void tell (call_t *call, const char *method, bytes_t *params, json_writer_t *writer)
{
    if (call->era == ERA_2026) {
        json_write_key (writer, "_meta");
        json_write_object_begin (writer);
        json_write_key (writer, META_PREFIX "subscriptionId");
        json_write_raw (writer, call->id.text, call->id.length);
        json_write_object_end (writer);
    }
    json_write_object_end (writer);
    call_tell (call, method, params);
    bytes_free (params);
}

static void tell_changed (call_t *call)
{
    bytes_t params = BYTES_INIT;
    json_writer_t writer = {&params, false};
    call->listener->changed = false;
    json_write_object_begin (&writer);
    tell (call, "notifications/tools/list_changed", &params, &writer);
}

static void tell_state (call_t *call, const tmq_task_t *task, const tmq_inbox_t *inbox)
{
    bytes_t params = BYTES_INIT;
    json_writer_t writer = {&params, false};
    json_write_object_begin (&writer);
    if (call->era == ERA_2026) {
        modern_write_task (call, &writer, task, inbox);
        tell (call, "notifications/tasks", &params, &writer);
    } else {
        render_task (&writer, task, ERA_2025);
        tell (call, "notifications/tasks/status", &params, &writer);
    }
}

/* Of 2025: for the token that the call brought, as long as its task lives. */
static void tell_progress (call_t *call, const tmq_task_t *task, told_t *told)
{
    json_t *meta = json_loads (task->meta, 0, NULL);
    const json_t *token = json_object_get (json_object_get (meta, "mcp"), "progressToken");
    told->silent = !json_is_string (token) && !json_is_integer (token);
    if (!told->silent) {
        call->progress_token = token;
        call->progressed = told->progressed;
        call->progress = told->progress;
        follow_tell_progress (call, task->progress_done, task->progress_total,
                              task->progress_message);
        told->progressed = call->progressed;
        told->progress = call->progress;
        call->progress_token = NULL;
    }
    json_decref (meta);
}

/* Where it stands behind all that was told. */
static void move_cursor (listener_t *self)
{
    char cursor[CURSOR_SIZE];
    if (!self->busy && self->flow != NULL && flow_cursor (cursor, self->flow))
        memcpy (self->cursor, cursor, sizeof cursor);
}

/* An id and nothing else: how far the reader is. */
static void tell_cursor (call_t *call, const char *before)
{
    bytes_t out = BYTES_INIT;
    bytes_t id = BYTES_INIT;
    bytes_append_text (&out, before);
    if (call->era == ERA_2025 && event_id (call, &id) != NULL)
        sse_write (&out, &(sse_event_t){.id = bytes_text (&id)});
    if (out.length > 0 && !out.failed && !is_owed (call))
        call->exchange->write (call->exchange, out.data, out.length);
    bytes_free (&id);
    bytes_free (&out);
}

/* One task is looked at. */

static void state_came (call_t *call, const tmq_task_t *task);

/* Many listeners may hear of one event, and a look at a task that has ended is dear: few of them
 * look at a time, and who has spent its time looks later. */
static void look (call_t *call)
{
    listener_t *self = call->listener;
    principal_t *principal = call->exchange->principal;
    self->busy = true;
    self->again =
        principal->looks >= LISTEN_LOOKS_MAX || service_wait_ms (call->mcp->service, principal) > 0;
    if (self->again)
        return;
    self->looker = principal;
    principal->looks++;
    if (call->era == ERA_2026)
        follow_get_result (call, state_came);
    else
        follow_get (call, state_came);
}

/* One look has ended: another listener of the principal may have waited for that. */
static void look_next_one (const call_t *call)
{
    const principal_t *principal = call->exchange->principal;
    call_t *other = call->mcp->calls;
    while (other != NULL && (other == call || other->listener == NULL || !other->listener->again ||
                             other->exchange->principal != principal))
        other = other->next;
    if (other != NULL)
        look (other);
}

/* What could not be had. A task that is gone has no state to tell. */
static void look_failed (call_t *call, int code, const tmq_error_t *error)
{
    listener_t *self = call->listener;
    (void) error;
    end_look (self);
    if (code != TMQ_NOT_FOUND && code != TMQ_EXPIRED && code != TMQ_PURGED) {
        self->again = true;
        return;
    }
    self->busy = false;
    look_next_one (call);
    go_on (call);
}

static void look_ended (call_t *call, const tmq_task_t *task, const tmq_inbox_t *inbox)
{
    listener_t *self = call->listener;
    told_t *told = remember (self, &task->id);
    const bool news = task->seq > told->seq;
    end_look (self);
    self->busy = false;
    move_cursor (self);
    if (self->of_progress)
        tell_progress (call, task, told);
    else if (news)
        tell_state (call, task, inbox);
    if (!self->of_progress)
        told->seq = task->seq;
    service_spend (call->mcp->service, call->exchange->principal, (double) effort_take ());
    look_next_one (call);
    go_on (call);
}

static void questions_came (call_t *call, const tmq_inbox_t *inbox)
{
    static const tmq_inbox_t none = {0};
    tmq_task_t *task = call->record;
    call->record = NULL;
    look_ended (call, task, inbox != NULL ? inbox : &none);
    tmq_task_free (task);
}

static void state_came (call_t *call, const tmq_task_t *task)
{
    if (call->era == ERA_2025 || task->status != TMQ_STATUS_INPUT_REQUIRED) {
        look_ended (call, task, NULL);
        return;
    }
    follow_keep (call);
    follow_questions (call, questions_came);
}

static void look_again (call_t *call)
{
    if (call->listener->again)
        look (call);
}

/* Items of the flow. */

static void moved (void *context, bool up)
{
    if (up)
        look_again (context);
}

static void ready (void *context)
{
    go_on (context);
}

/* False: the broker refuses it; the call has ended. */
static bool open_flow (call_t *call, bool snapshot)
{
    listener_t *self = call->listener;
    tmq_subscription_options_t options;
    tmq_error_t error;
    const tmq_label_t label = {SESSION_LABEL, call->session.id};
    tmq_subscription_options_init (&options);
    options.owner = owner_of (call->exchange);
    options.buffer_bytes_max = LISTEN_BUFFER_BYTES;
    options.snapshot = snapshot;
    if (call->era == ERA_2026) {
        options.filter.task_ids = self->ids;
        options.filter.task_ids_count = self->ids_count;
    } else {
        options.filter.labels = &label;
        options.filter.labels_count = 1;
        options.cursor = self->cursor[0] != '\0' ? self->cursor : NULL;
    }
    flow_free (&self->flow);
    self->flow =
        flow_new (call->exchange->link, &options, (flow_taker_t){ready, moved, call}, &error);
    return self->flow != NULL || (call_cut (call, error.code, &error), false);
}

static void take_event (call_t *call, const tmq_event_t *event)
{
    listener_t *self = call->listener;
    const told_t *told = told_of (self, &event->task_id);
    const bool is_state = call->era == ERA_2026 || event->status != event->previous ||
                          event->kind == TMQ_EVENT_CHANGED;
    if (event->status == TMQ_STATUS_NONE || !is_state || (told != NULL && told->seq >= event->seq))
        return;
    if (call->era == ERA_2025 && event->kind == TMQ_EVENT_CHANGED) {
        call->level = mcp_session_level (&call->mcp->sessions, &call->session);
        for (size_t i = 0; i < event->labels_count; i++)
            if (strcmp (event->labels[i].key, TOOL_LABEL) == 0)
                call->tool_name = event->labels[i].value;
        follow_tell_message (call, event);
        call->tool_name = NULL;
    }
    call->task = event->task_id;
    self->of_progress = false;
    look (call);
}

static void take_notice (call_t *call, const tmq_event_t *event)
{
    listener_t *self = call->listener;
    const told_t *told = told_of (self, &event->task_id);
    if (call->era == ERA_2026 || !event->has_progress || (told != NULL && told->silent))
        return;
    call->task = event->task_id;
    self->of_progress = true;
    look (call);
}

/* False: the call has ended. */
static bool take_item (call_t *call, const tmq_event_t *event)
{
    listener_t *self = call->listener;
    switch (event->item) {
    case TMQ_ITEM_EVENT: take_event (call, event); break;
    case TMQ_ITEM_NOTICE: take_notice (call, event); break;
    case TMQ_ITEM_SNAPSHOT:
        call->task = event->task->id;
        self->of_progress = false;
        look (call);
        break;
    case TMQ_ITEM_SNAPSHOT_END: break;
    case TMQ_ITEM_GAP:
        /* What happened is not known any more: what is, is told. Of a session nobody knows which
         * tasks it has; its client polls, as the specification asks it to. */
        call->mcp->service->streams.gaps++;
        return call->era == ERA_2025 || open_flow (call, true);
    case TMQ_ITEM_LIVE:
        move_cursor (self);
        tell_cursor (call, "");
        break;
    }
    return true;
}

static void go_on (call_t *call)
{
    listener_t *self = call->listener;
    tmq_event_t *event;
    tmq_error_t error;
    if (!call->streams || self->busy || is_owed (call))
        return;
    if (self->changed)
        tell_changed (call);
    for (size_t i = 0; self->flow != NULL && i < ROUND; i++) {
        if (self->busy || is_owed (call))
            return;
        const int code = flow_next (&event, self->flow, &error);
        if (code == TMQ_TIMEOUT)
            return;
        if (code != TMQ_OK) {
            call_cut (call, code, &error);
            return;
        }
        const bool good = take_item (call, event);
        tmq_event_free (event);
        if (!good)
            return;
    }
    if (self->flow != NULL)
        flow_again (self->flow);
}

/* What its exchange tells. */

static void is_quiet (exchange_t *exchange)
{
    call_t *call = exchange->state;
    look_again (call);
    move_cursor (call->listener);
    tell_cursor (call, SSE_PING);
}

/* What could not be looked at may be, now. */
static void ticks (exchange_t *exchange)
{
    look_again (exchange->state);
}

/* The gateway stops, or it gives way: the request has its answer. One that has it already, and
 * does not read, goes without when its seat is wanted. */
static void stops (exchange_t *exchange)
{
    call_t *call = exchange->state;
    bytes_t out = BYTES_INIT;
    json_writer_t writer = {&out, false};
    if (call->ends) {
        if (exchange->is_last)
            exchange->cut (exchange);
        return;
    }
    json_write_key (&writer, "result");
    json_write_object_begin (&writer);
    json_write_key (&writer, "resultType");
    json_write_text (&writer, "complete");
    json_write_key (&writer, "_meta");
    json_write_object_begin (&writer);
    json_write_key (&writer, META_PREFIX "subscriptionId");
    json_write_raw (&writer, call->id.text, call->id.length);
    json_write_object_end (&writer);
    json_write_object_end (&writer);
    call_answer (call, 200, &out);
}

/* 2026. */

static void begin_modern (call_t *call)
{
    listener_t *self = call->listener;
    bytes_t params = BYTES_INIT;
    json_writer_t writer = {&params, false};
    char id[37];
    call->failed = look_failed;
    call_lighten (call);
    if (!call_stream (call))
        return;
    call->exchange->on_quiet = is_quiet;
    call->exchange->on_tick = ticks;
    call->exchange->on_stop = stops;
    json_write_object_begin (&writer);
    json_write_key (&writer, "notifications");
    json_write_object_begin (&writer);
    if (self->tools) {
        json_write_key (&writer, "toolsListChanged");
        json_write_bool (&writer, true);
    }
    if (self->ids_count > 0) {
        json_write_key (&writer, "taskIds");
        json_write_array_begin (&writer);
        for (size_t i = 0; i < self->ids_count; i++) {
            tmq_id_format (&self->ids[i], id);
            json_write_text (&writer, id);
        }
        json_write_array_end (&writer);
    }
    json_write_object_end (&writer);
    tell (call, "notifications/subscriptions/acknowledged", &params, &writer);
    if (self->ids_count == 0)
        go_on (call); /* the tools may have changed while its tasks were looked at */
    else
        open_flow (call, true);
}

/* Each task that was named: is it the principal's? */

static void look_next (call_t *call);

static void is_theirs (call_t *call, const tmq_task_t *task)
{
    listener_t *self = call->listener;
    self->ids[self->ids_count++] = task->id;
    look_next (call);
}

static void is_not_theirs (call_t *call, int code, const tmq_error_t *error)
{
    if (code == TMQ_NOT_FOUND || code == TMQ_EXPIRED || code == TMQ_PURGED)
        look_next (call);
    else
        call_code (call, code, error);
}

static bool is_known (const listener_t *self, const tmq_id_t *id)
{
    for (size_t i = 0; i < self->ids_count; i++)
        if (memcmp (&self->ids[i], id, sizeof *id) == 0)
            return true;
    return false;
}

static void look_next (call_t *call)
{
    listener_t *self = call->listener;
    const json_t *all =
        json_object_get (json_object_get (call->params, "notifications"), "taskIds");
    while (self->looked < json_array_size (all) && self->looked < LISTEN_TASKS_MAX) {
        const char *text = json_string_value (json_array_get (all, self->looked++));
        if (tmq_id_parse (&call->task, text) != TMQ_OK || is_known (self, &call->task))
            continue;
        follow_get (call, is_theirs);
        return;
    }
    begin_modern (call);
}

static bool are_texts (const json_t *list)
{
    size_t i;
    const json_t *item;
    json_array_foreach (list, i, item)
    {
        if (!json_is_string (item))
            return false;
    }
    return json_is_array (list);
}

void listen_begin (call_t *call)
{
    const json_t *wanted = json_object_get (call->params, "notifications");
    const json_t *tools = json_object_get (wanted, "toolsListChanged");
    const json_t *tasks = json_object_get (wanted, "taskIds");
    if (!json_is_object (wanted) || (tools != NULL && !json_is_boolean (tools)) ||
        (tasks != NULL && !are_texts (tasks))) {
        call_error (call, 200, RPC_PARAMS,
                    "params.notifications is an object: toolsListChanged true or false, taskIds an "
                    "array of texts",
                    NULL);
        return;
    }
    if (tasks != NULL && !modern_has_tasks (call))
        return;
    if (!has_room (call)) {
        static const tmq_error_t full = {
            .code = TMQ_LIMIT,
            .text = "streams take half of the requests that 'principal_requests_max' allows"};
        call_code (call, TMQ_LIMIT, &full);
        return;
    }
    if (make_listener (call) == NULL)
        return;
    call->listener->tools = json_is_true (tools);
    call->failed = is_not_theirs;
    look_next (call);
}

/* 2025. */

static const char *event_id (const call_t *call, bytes_t *out)
{
    const listener_t *self = call->listener;
    bytes_t plain = BYTES_INIT;
    if (call->era == ERA_2026 || self->cursor[0] == '\0')
        return NULL;
    bytes_append_format (&plain, "%s session %s %s %s", call->exchange->principal->name,
                         call->session.id, self->cursor, self->digest);
    const bool good =
        !plain.failed && seal_close (&call->mcp->service->seal, out, SEAL_MCP_STREAM, plain.data,
                                     plain.length, clock_ms (CLOCK_REALTIME) + MCP_SESSION_MS);
    bytes_free (&plain);
    return good ? bytes_text (out) : NULL;
}

/* No stream is offered now: clients take that for what it is, and poll. */
static void refuse_session (call_t *call)
{
    response_t response;
    response_init (&response, 405);
    response_field (&response, "Allow", "POST, DELETE");
    answer (call->exchange, &response);
}

/* A message is sent on one stream only: the newest. False: answered. */
static bool take_session (call_t *call)
{
    listen_end (call);
    if (has_room (call) && answer_has_stream (call->exchange))
        return make_listener (call) != NULL;
    refuse_session (call);
    return false;
}

static void begin_session (call_t *call)
{
    call->listener->tools = true;
    call->failed = look_failed;
    if (!call_stream (call))
        return;
    call->exchange->on_quiet = is_quiet;
    call->exchange->on_tick = ticks;
    if (legacy_has_tasks (call) && !open_flow (call, false))
        return;
    go_on (call);
}

void listen_session (call_t *call)
{
    if (take_session (call))
        begin_session (call);
}

bool listen_session_again (call_t *call, const char *text)
{
    char session[MCP_SESSION_ID_SIZE];
    char cursor[CURSOR_SIZE];
    char digest[TOOLS_DIGEST_SIZE];
    if (sscanf (text, "session %32s %47s %32s", session, cursor, digest) != 3 ||
        strcmp (session, call->session.id) != 0)
        return false;
    if (!take_session (call))
        return true;
    memcpy (call->listener->cursor, cursor, sizeof cursor);
    call->listener->changed = strcmp (call->listener->digest, digest) != 0;
    begin_session (call);
    return true;
}

/* All listeners. */

void listen_tools_changed (mcp_t *mcp)
{
    for (call_t *call = mcp->calls; call != NULL; call = call->next) {
        char digest[TOOLS_DIGEST_SIZE];
        listener_t *self = call->listener;
        if (self == NULL || !self->tools)
            continue;
        tools_digest (digest, mcp->tools, call->exchange->principal->roles);
        if (strcmp (digest, self->digest) == 0)
            continue;
        memcpy (self->digest, digest, sizeof digest);
        tools_release (call->tools);
        call->tools = tools_retain (mcp->tools);
        self->changed = true;
        if (call->streams && !is_owed (call))
            tell_changed (call);
    }
}

void listen_end (const call_t *call)
{
    call_t *other = call->mcp->calls;
    while (other != NULL) {
        const bool is_one = other != call && other->listener != NULL && other->streams &&
                            other->era == ERA_2025 &&
                            strcmp (other->session.id, call->session.id) == 0;
        if (is_one)
            other->exchange->finish (other->exchange);
        /* What ends takes itself out of the list. */
        other = is_one ? call->mcp->calls : other->next;
    }
}
