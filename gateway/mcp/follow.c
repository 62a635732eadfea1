/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "mcp/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/trees.h"
#include "ids.h"
#include "timestamp.h"

enum {
    GATHER_MS = 50,        /* questions that are asked together travel together */
    ROUND = 256,           /* news of a turn; then others */
    STATE_MS = 10 * 60000, /* an InputRequiredResult may be answered for so long */
    TIME_OVER = -33003     /* as the broker's, of an attempt that runs too long */
};

static link_call_t call_to (call_t *call, link_fn *fn)
{
    return (link_call_t){fn, call, &call->exchange->ticket, owner_of (call->exchange)};
}

/* Nothing was done, says "unreachable"; of a call whose task is there that is not so. */
static void fail (call_t *call, int code, const tmq_error_t *error)
{
    static const tmq_error_t unknown = {
        .code = TMQ_UNKNOWN, .text = "its task was accepted; the broker cannot be asked about it"};
    if (call->failed != NULL)
        call->failed (call, code, error);
    else if (code == TMQ_UNREACHABLE && call->tool != NULL && !id_is_zero (&call->task))
        call_code (call, TMQ_UNKNOWN, &unknown);
    else
        call_code (call, code, error);
}

/* True if the start went well; else it has been answered. */
static bool began (call_t *call, int code, const tmq_error_t *error)
{
    if (code != TMQ_OK)
        fail (call, code, error);
    return code == TMQ_OK;
}

/* The record. */

static void record_came (void *context, tmq_completion_t *completion)
{
    call_t *call = context;
    if (completion->code != TMQ_OK)
        fail (call, completion->code, completion->error);
    else if (!call_owns (call, completion->task))
        fail (call, TMQ_NOT_FOUND, NULL);
    else {
        call->came = completion;
        call->then (call, completion->task);
    }
}

void follow_keep (call_t *call)
{
    call->record = call->came->task;
    call->came->task = NULL;
}

void follow_get (call_t *call, follow_fn *fn)
{
    tmq_error_t error;
    call->then = fn;
    began (call, link_get (call->exchange->link, call_to (call, record_came), &call->task, &error),
           &error);
}

/* The record said that the task has ended, so its bytes can be had. */
static void fetch_result (call_t *call, follow_fn *fn)
{
    tmq_error_t error;
    call->then = fn;
    began (call,
           link_result (call->exchange->link, call_to (call, record_came), &call->task, &error),
           &error);
}

static void look_whether_ended (call_t *call, const tmq_task_t *task)
{
    if (tmq_status_terminal (task->status) && task->result_bytes > 0)
        fetch_result (call, call->then_result);
    else
        call->then_result (call, task);
}

void follow_get_result (call_t *call, follow_fn *fn)
{
    call->then_result = fn;
    follow_get (call, look_whether_ended);
}

/* Questions. */

static void inbox_came (void *context, tmq_completion_t *completion)
{
    call_t *call = context;
    call->then_questions (call, completion->code == TMQ_OK ? completion->inbox : NULL);
}

void follow_questions (call_t *call, follow_questions_fn *fn)
{
    tmq_inbox_query_t query;
    tmq_error_t error;
    tmq_inbox_query_init (&query);
    query.task_id = &call->task;
    query.limit = CALL_QUESTIONS_MAX;
    call->then_questions = fn;
    began (call, link_inbox (call->exchange->link, call_to (call, inbox_came), &query, &error),
           &error);
}

static void answered (void *context, tmq_completion_t *completion)
{
    call_t *call = context;
    /* Keys that nobody asked, or that were answered before, are no errors: the specification says
     * so. A task that has ended needs no answers. */
    if (completion->code == TMQ_OK || completion->code == TMQ_WRONG_STATUS)
        call->then (call, NULL);
    else
        call_code (call, completion->code, completion->error);
}

void follow_answer (call_t *call, const json_t *answers, follow_fn *fn)
{
    tmq_answer_t items[CALL_QUESTIONS_MAX];
    char *texts[CALL_QUESTIONS_MAX];
    size_t count = 0;
    tmq_error_t error;
    const char *key;
    json_t *value;
    int code = TMQ_OK;
    json_object_foreach ((json_t *) answers, key, value)
    {
        char *text = json_is_object (value) && count < CALL_QUESTIONS_MAX && key[0] != '\0'
                         ? trees_text (value, JSON_COMPACT)
                         : NULL;
        if (text == NULL)
            continue;
        texts[count] = text;
        items[count++] = (tmq_answer_t){key, text, strlen (text), false};
    }
    call->then = fn;
    if (count > 0)
        code = link_answer (call->exchange->link, call_to (call, answered), &call->task, items,
                            count, &error);
    for (size_t i = 0; i < count; i++)
        free (texts[i]);
    if (count == 0)
        fn (call, NULL);
    else
        began (call, code, &error);
}

bool follow_cancel (call_t *call, const char *message)
{
    return link_cancel_kept (call->exchange->link, call->exchange->account,
                             owner_of (call->exchange), &call->task, message);
}

void follow_tell_progress (call_t *call, double done, double total, const char *message)
{
    bytes_t params = BYTES_INIT;
    json_writer_t writer = {&params, false};
    if (call->progress_token == NULL || (call->progressed && done <= call->progress))
        return;
    call->progressed = true;
    call->progress = done;
    json_write_object_begin (&writer);
    json_write_key (&writer, "progressToken");
    if (json_is_string (call->progress_token))
        json_write_string (&writer, json_string_value (call->progress_token),
                           json_string_length (call->progress_token));
    else
        json_write_int (&writer, json_integer_value (call->progress_token));
    json_write_key (&writer, "progress");
    json_write_double (&writer, done);
    if (total > 0) {
        json_write_key (&writer, "total");
        json_write_double (&writer, total);
    }
    if (message[0] != '\0') {
        json_write_key (&writer, "message");
        json_write_text (&writer, message);
    }
    json_write_object_end (&writer);
    call_notify (call, "notifications/progress", &params);
    bytes_free (&params);
}

/* The end. */

static void give_outcome (call_t *call, const tmq_task_t *task)
{
    bytes_t out = BYTES_INIT;
    json_writer_t writer = {&out, false};
    call_hold (call);
    /* Notices are best effort; the record has the last of them. */
    if (task->progress_done > 0)
        follow_tell_progress (call, task->progress_done, task->progress_total,
                              task->progress_message);
    if (!call_let_go (call))
        return;
    call->tool_outcome = task->status == TMQ_STATUS_COMPLETED ? TOOL_COMPLETED : TOOL_FAILED;
    if (render_is_error (task))
        call->outcome = RPC_ERROR;
    call_outcome (call, &writer, task, call->related);
    call_answer (call, 200, &out);
}

static bool drain (call_t *call, size_t most);

static void stop_following (call_t *call)
{
    link_t *link = call->exchange->link;
    flow_free (&call->news);
    call->waits_for_broker = false;
    link_forget (link, &call->wait_ticket);
    link_forget (link, &call->pause_ticket);
    link_forget (link, &call->exchange->ticket);
}

static void ended (call_t *call)
{
    if (!drain (call, SIZE_MAX)) /* no more come: its task has ended */
        return;
    stop_following (call);
    fetch_result (call, give_outcome);
}

static void give_handle (call_t *call, const tmq_task_t *task)
{
    bytes_t out = BYTES_INIT;
    json_writer_t writer = call_result (call, &out, "task");
    call->tool_outcome = TOOL_ACCEPTED;
    if (call->era == ERA_2026) {
        render_task (&writer, task, call->era);
    } else {
        json_write_key (&writer, "task");
        json_write_object_begin (&writer);
        render_task (&writer, task, call->era);
        json_write_object_end (&writer);
    }
    if (call->era == ERA_2025 && call->tool->says != NULL) {
        json_write_key (&writer, "_meta");
        json_write_object_begin (&writer);
        json_write_key (&writer, META_PREFIX "model-immediate-response");
        json_write_text (&writer, call->tool->says);
        json_write_object_end (&writer);
    }
    call_finish (call, &writer);
}

void follow_handle (call_t *call)
{
    stop_following (call);
    follow_get (call, give_handle);
}

/* Waiting. */

static void wait_on (call_t *call, uint32_t ms);

/* Its caller is told an error and does not know the task, so nobody would ever fetch what comes of
 * it. */
static void abandon (call_t *call)
{
    if (call->made_task && !call->as_task)
        follow_cancel (call, "its call could not be followed");
}

static void cannot_follow (call_t *call, int code, const tmq_error_t *error)
{
    stop_following (call);
    abandon (call);
    fail (call, code, error);
}

static void wait_ended (void *context, tmq_completion_t *completion)
{
    call_t *call = context;
    /* That the broker was away at the end of the wait says nothing of the task. */
    if (completion->code == TMQ_OK) {
        ended (call);
    } else if (completion->code != TMQ_TIMEOUT && completion->code != TMQ_UNREACHABLE) {
        cannot_follow (call, completion->code, completion->error);
    } else if (call->as_task) {
        follow_handle (call);
    } else if (call->wait_max_ms == 0 && call->endless) {
        wait_on (call, FOLLOW_WAIT_MS);
    } else if (call->wait_max_ms == 0) {
        stop_following (call);
        follow_cancel (call, "it took longer than its tool allows");
        call_error (call, 200, TIME_OVER, "the call took longer than its tool allows", NULL);
    } else {
        const uint32_t ms = call->wait_max_ms;
        call->wait_max_ms = 0;
        if (call_stream (call))
            wait_on (call, ms);
    }
}

static void wait_on (call_t *call, uint32_t ms)
{
    tmq_error_t error;
    const link_call_t to = {wait_ended, call, &call->wait_ticket, owner_of (call->exchange)};
    const int code = answer_wait (call->exchange, to, &call->task, 1, ms, &error);
    call->waits_for_broker = code == TMQ_UNREACHABLE;
    call->wait_ms = ms;
    if (code != TMQ_OK && code != TMQ_UNREACHABLE)
        cannot_follow (call, code, &error);
}

/* Questions of a call that is no task. */

/* A request to the client, of 2025: its id says which question it is. */
static void send_question (call_t *call, const tmq_question_t *question, const json_t *request)
{
    bytes_t plain = BYTES_INIT;
    bytes_t id = BYTES_INIT;
    bytes_t out = BYTES_INIT;
    char task[37];
    json_t *params = json_copy (json_object_get (request, "params"));
    if (params == NULL)
        params = json_object ();
    tmq_id_format (&question->task_id, task);
    if (call->related) {
        json_t *meta = json_object_get (params, "_meta");
        meta = json_is_object (meta) ? json_copy (meta) : json_object ();
        json_object_set_new (meta, META_PREFIX "related-task", json_pack ("{s:s}", "taskId", task));
        json_object_set_new (params, "_meta", meta);
    }
    bytes_append_text (&plain, call->exchange->principal->name);
    bytes_append_byte (&plain, ' ');
    bytes_append_text (&plain, task);
    bytes_append_text (&plain, question->key);
    bytes_append_text (&id, "q.");
    char *text = trees_text (params, JSON_COMPACT);
    if (!plain.failed && text != NULL &&
        seal_close (&call->mcp->service->seal, &id, SEAL_MCP_QUESTION, plain.data, plain.length,
                    (int64_t) question->deadline)) {
        json_writer_t writer = {&out, false};
        json_write_object_begin (&writer);
        json_write_key (&writer, "jsonrpc");
        json_write_text (&writer, "2.0");
        json_write_key (&writer, "id");
        json_write_string (&writer, id.data, id.length);
        json_write_key (&writer, "method");
        json_write_text (&writer, json_string_value (json_object_get (request, "method")));
        json_write_key (&writer, "params");
        json_write_raw (&writer, text, strlen (text));
        json_write_object_end (&writer);
        call_send (call, &out);
    }
    free (text);
    json_decref (params);
    bytes_free (&plain);
    bytes_free (&id);
    bytes_free (&out);
}

json_t *follow_request (const tmq_question_t *question)
{
    json_t *request = json_loads (question->request, 0, NULL);
    if (json_is_string (json_object_get (request, "method")))
        return request;
    /* As taskctl and the library ask: {"text":…,"schema":…}. */
    const json_t *text = json_object_get (request, "text");
    json_t *schema = json_object_get (request, "schema");
    json_t *out = json_pack ("{s:s,s:{s:s,s:s,s:O}}", "method", "elicitation/create", "params",
                             "mode", "form", "message",
                             json_is_string (text) ? json_string_value (text) : question->request,
                             "requestedSchema", schema);
    if (out == NULL)
        out = json_pack ("{s:s,s:{s:s,s:s,s:{s:s,s:{s:{s:s}}}}}", "method", "elicitation/create",
                         "params", "mode", "form", "message",
                         json_is_string (text) ? json_string_value (text) : question->request,
                         "requestedSchema", "type", "object", "properties", "answer", "type",
                         "string");
    json_decref (request);
    return out;
}

/* Refuses a call whose caller cannot be asked. */
static void cannot_ask (call_t *call, unsigned needed)
{
    char data[80];
    snprintf (data, sizeof data, "{\"requiredCapabilities\":{\"%s\":{}}}",
              capability_name (needed));
    stop_following (call);
    follow_cancel (call, "its caller cannot be asked");
    call_error (call, call->era == ERA_2026 && !call->streams ? 400 : 200, RPC_CAPABILITY,
                "the client lacks a capability that the tool asks for", data);
}

/* The state of an InputRequiredResult: whose it is, which task, and of which call. */
static bool seal_state (const call_t *call, bytes_t *out)
{
    char task[37];
    char text[300];
    tmq_id_format (&call->task, task);
    const int length = snprintf (text, sizeof text, "%s %s %s %s", call->exchange->principal->name,
                                 task, call->tool->name, call->digest);
    return seal_close (&call->mcp->service->seal, out, SEAL_MCP_STATE, text, (size_t) length,
                       clock_ms (CLOCK_REALTIME) + STATE_MS);
}

void follow_ask_2026 (call_t *call, const json_t *requests)
{
    bytes_t state = BYTES_INIT;
    bytes_t out = BYTES_INIT;
    char *text = trees_text (requests, JSON_COMPACT);
    json_writer_t writer = call_result (call, &out, "input_required");
    if (text == NULL || !seal_state (call, &state)) {
        call_error (call, 200, RPC_INTERNAL, "memory is exhausted", NULL);
        bytes_free (&out);
    } else {
        call->tool_outcome = TOOL_ASKED;
        json_write_key (&writer, "inputRequests");
        json_write_raw (&writer, text, strlen (text));
        json_write_key (&writer, "requestState");
        json_write_string (&writer, state.data, state.length);
        call_finish (call, &writer);
    }
    bytes_free (&state);
    free (text);
}

static void went_on (call_t *call, const tmq_task_t *task)
{
    (void) task;
    call->asks = false;
    if (call->asked)
        follow_asked (call);
}

/* All open questions: those that the call brought answers for are answered; the others are put. */
static void questions_came (call_t *call, const tmq_inbox_t *inbox)
{
    if (call->era == ERA_2025 && inbox != NULL && inbox->count > 0 && !call_stream (call))
        return;
    json_t *requests = json_object ();
    json_t *known = json_object ();
    json_t *given = call->answers != NULL ? json_loads (call->answers, 0, NULL) : NULL;
    unsigned lacks = 0;
    for (size_t i = 0; inbox != NULL && i < inbox->count; i++) {
        const tmq_question_t *question = &inbox->questions[i];
        json_t *request = follow_request (question);
        json_t *answer = json_object_get (given, question->key);
        const char *method = json_string_value (json_object_get (request, "method"));
        const unsigned needed = method != NULL ? capability_of_method (method) : 0;
        if (json_is_object (answer)) {
            json_object_set (known, question->key, answer);
        } else if ((needed & call->capabilities) == 0) {
            lacks = needed != 0 ? needed : CAPABILITY_ELICITATION;
        } else if (call->era == ERA_2026) {
            json_object_set (requests, question->key, request);
        } else if (json_object_get (call->sent, question->key) == NULL) {
            if (call->sent == NULL)
                call->sent = json_object ();
            json_object_set_new (call->sent, question->key, json_true ());
            send_question (call, question, request);
        }
        json_decref (request);
    }
    free (call->answers); /* each answers one question, once */
    call->answers = NULL;
    json_decref (given);
    if (lacks != 0 && !call->related)
        cannot_ask (call, lacks);
    else if (json_object_size (known) > 0)
        follow_answer (call, known, went_on);
    else if (json_object_size (requests) > 0) {
        stop_following (call);
        follow_ask_2026 (call, requests);
    } else
        went_on (call, NULL);
    json_decref (known);
    json_decref (requests);
}

static void gathered (void *context, tmq_completion_t *completion)
{
    call_t *call = context;
    if (completion->code == TMQ_TIMEOUT)
        follow_questions (call, questions_came);
    else
        call->asks = false; /* it has ended meanwhile, or the other wait tells more */
}

void follow_asked (call_t *call)
{
    tmq_error_t error;
    const link_call_t to = {gathered, call, &call->pause_ticket, owner_of (call->exchange)};
    call->asked = call->asks;
    if (call->asks)
        return;
    call->asks = answer_wait (call->exchange, to, &call->task, 1, GATHER_MS, &error) == TMQ_OK;
}

/* News. */

void follow_tell_message (call_t *call, const tmq_event_t *event)
{
    enum { INFO = 1 };
    bytes_t params = BYTES_INIT;
    json_writer_t writer = {&params, false};
    if (call->level > INFO || event->message[0] == '\0' || call->tool_name == NULL)
        return;
    json_write_object_begin (&writer);
    json_write_key (&writer, "level");
    json_write_text (&writer, "info");
    json_write_key (&writer, "logger");
    json_write_text (&writer, call->tool_name);
    json_write_key (&writer, "data");
    json_write_text (&writer, event->message);
    json_write_object_end (&writer);
    call_notify (call, "notifications/message", &params);
    bytes_free (&params);
}

static void tell_news (call_t *call, const tmq_event_t *event)
{
    const bool snapshot = event->item == TMQ_ITEM_SNAPSHOT && event->task != NULL;
    if (event->item == TMQ_ITEM_NOTICE && event->has_progress)
        follow_tell_progress (call, event->progress_done, event->progress_total,
                              event->progress_message);
    else if (event->item == TMQ_ITEM_EVENT && event->kind == TMQ_EVENT_CHANGED)
        follow_tell_message (call, event);
    if ((snapshot ? event->task->status : event->status) == TMQ_STATUS_INPUT_REQUIRED &&
        !call->as_task)
        follow_asked (call);
}

/* Up to so many. False: the call does not exist any more, because no stream could begin. */
static bool drain (call_t *call, size_t most)
{
    tmq_error_t error;
    tmq_event_t *event;
    size_t count = 0;
    call_hold (call);
    while (count < most && !call->dead && call->news != NULL &&
           flow_next (&event, call->news, &error) == TMQ_OK) {
        tell_news (call, event);
        tmq_event_free (event);
        count++;
    }
    if (count == most && !call->dead && call->news != NULL)
        flow_again (call->news);
    return call_let_go (call);
}

/* The library repeats waits by itself; one that could not begin does so now. */
static void link_moved (void *context, bool up)
{
    call_t *call = context;
    if (up && call->waits_for_broker)
        wait_on (call, call->wait_ms);
}

static void take_news (void *context)
{
    drain (context, ROUND);
}

/* Of 2026, the client that leaves cancels; of 2025 it may come back for the answer. */
static void client_gone (exchange_t *exchange)
{
    call_t *call = exchange->state;
    if (!call->leaves_task)
        follow_cancel (call, "its caller has left");
}

void follow_from_now (call_t *call)
{
    call->exchange->on_gone = client_gone;
}

void follow (call_t *call, uint32_t inline_ms)
{
    tmq_subscription_options_t options;
    tmq_error_t error;
    const flow_taker_t taker = {take_news, link_moved, call};
    tmq_subscription_options_init (&options);
    options.filter.task_ids = &call->task;
    options.filter.task_ids_count = 1;
    options.snapshot = true;
    options.owner = owner_of (call->exchange);
    call_lighten (call);
    call->is_followed = true;
    call->abandon = abandon;
    follow_from_now (call);
    call->news = flow_new (call->exchange->link, &options, taker, &error);
    if (call->news == NULL)
        cannot_follow (call, error.code, &error);
    else if (inline_ms > 0)
        wait_on (call, inline_ms);
    else {
        const uint32_t ms = call->wait_max_ms;
        call->wait_max_ms = 0;
        if (call_stream (call))
            wait_on (call, ms);
    }
}
