/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One task: its record, its bytes, its history, its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rest/handlers.h"
#include "rest/input.h"
#include "rest/query.h"
#include "rest/subject.h"
#include "view.h"

enum { ROUND = 256 /* news of a task in a turn; then others */ };

/* The record. */

static void answer_unchanged (exchange_t *exchange, const char *tag)
{
    response_t response;
    response_init (&response, 304);
    response_field (&response, "ETag", tag);
    answer (exchange, &response);
}

static void wait_for_change (exchange_t *exchange);

static void task_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    subject_t *subject = subject_of (exchange);
    char tag[ENTITY_TAG_SIZE];
    subject->looking = false;
    if (!subject_came (exchange, completion))
        return;
    const tmq_task_t *task = completion->task;
    entity_tag (tag, exchange, task);
    const bool unchanged = tag_matches (exchange, tag);
    const bool any = http_request_field (exchange->request, "if-none-match") == NULL;
    if (wait_wanted_ms (exchange) > 0 && !subject->waited && !tmq_status_terminal (task->status) &&
        (unchanged || any))
        wait_for_change (exchange);
    else if (unchanged)
        answer_unchanged (exchange, tag);
    else
        subject_answer (exchange, task);
}

static int get_task (exchange_t *exchange, tmq_error_t *error)
{
    subject_of (exchange)->looking = true;
    return link_get (exchange->link, call_of (exchange, task_came), &subject_of (exchange)->id,
                     error);
}

/* Long polls: a record that is the one which the client has, or (without If-None-Match) not the
 * last one, is waited for. */

static void look_again (exchange_t *exchange)
{
    subject_t *subject = subject_of (exchange);
    subject->again = subject->looking;
    if (!subject->looking)
        subject_act (exchange);
}

static void has_waited (exchange_t *exchange)
{
    subject_of (exchange)->waited = true;
    look_again (exchange);
}

static void wait_over (void *context, tmq_completion_t *completion)
{
    (void) completion; /* however it ended, the record tells more */
    has_waited (context);
}

static void may_have_changed (void *context)
{
    subject_t *subject = subject_of (context);
    tmq_event_t *event;
    tmq_error_t error;
    bool news = false;
    int code = TMQ_OK;
    for (size_t i = 0; i < ROUND && code == TMQ_OK; i++) {
        code = flow_next (&event, subject->flow, &error);
        if (code != TMQ_OK)
            break;
        news = news || event->item != TMQ_ITEM_NOTICE;
        tmq_event_free (event);
    }
    if (code == TMQ_OK)
        flow_again (subject->flow);
    if (code != TMQ_OK && code != TMQ_TIMEOUT)
        has_waited (context);
    else if (news)
        look_again (context);
}

static void broker_moved (void *context, bool up)
{
    (void) context;
    (void) up; /* the wait goes on */
}

/* False: it could not begin; error says why. */
static bool begin_wait (exchange_t *exchange, tmq_error_t *error)
{
    subject_t *subject = subject_of (exchange);
    tmq_subscription_options_t options;
    const link_call_t call = {wait_over, exchange, &subject->wait, owner_of (exchange)};
    exchange->on_stop = has_waited;
    error->code = answer_wait (exchange, call, &subject->id, 1, wait_wanted_ms (exchange), error);
    if (error->code != TMQ_OK || http_request_field (exchange->request, "if-none-match") == NULL)
        return error->code == TMQ_OK;
    tmq_subscription_options_init (&options);
    options.filter.task_ids = &subject->id;
    options.filter.task_ids_count = 1;
    options.owner = owner_of (exchange);
    subject->flow = flow_new (exchange->link, &options,
                              (flow_taker_t){may_have_changed, broker_moved, exchange}, error);
    return subject->flow != NULL;
}

static void wait_for_change (exchange_t *exchange)
{
    subject_t *subject = subject_of (exchange);
    tmq_error_t error;
    if (subject->wait == 0 && !begin_wait (exchange, &error))
        answer_code (exchange, error.code, &error, &subject->id);
    else if (subject->again)
        look_again (exchange);
}

void task_show (exchange_t *exchange)
{
    subject_t *subject = subject_begin (exchange);
    if (subject == NULL)
        return;
    subject->start = get_task;
    subject_act (exchange);
}

/* Its history. */

static void events_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    event_view_t view;
    view_room_t room;
    response_t response;
    if (!came_well (exchange, completion, &subject_of (exchange)->id))
        return;
    const tmq_event_list_t *list = completion->events;
    json_writer_t writer = answer_json (&response);
    json_write_object_begin (&writer);
    json_write_key (&writer, "items");
    json_write_array_begin (&writer);
    for (size_t i = 0; i < list->count; i++) {
        view_event (&view, &room, list->events[i], NULL);
        json_write_event (&writer, &view);
    }
    json_write_array_end (&writer);
    json_write_key (&writer, "before");
    if (list->before_seq != 0)
        json_write_uint (&writer, list->before_seq);
    else
        json_write_null (&writer);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    answer (exchange, &response);
}

static int get_events (exchange_t *exchange, tmq_error_t *error)
{
    const subject_t *subject = subject_of (exchange);
    return link_events (exchange->link, call_of (exchange, events_came), &subject->id,
                        subject->before, subject->limit, error);
}

void task_events (exchange_t *exchange)
{
    static const char *const names[] = {"before", "limit"};
    uint64_t limit = 0;
    subject_t *subject = subject_begin (exchange);
    if (subject == NULL || !known_parameters (exchange, names, 2) ||
        !number_parameter (exchange, &subject->before, "before", INT64_MAX) ||
        !number_parameter (exchange, &limit, "limit", TMQ_LIST_LIMIT_MAX))
        return;
    subject->limit = (uint32_t) limit;
    subject->start = get_events;
    subject_act_if_theirs (exchange);
}

/* Its end. */

static void cancelled (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    if (came_well (exchange, completion, &subject_of (exchange)->id))
        subject_answer (exchange, completion->task);
}

static int start_cancel (exchange_t *exchange, tmq_error_t *error)
{
    const subject_t *subject = subject_of (exchange);
    char message[TMQ_MESSAGE_BYTES_MAX + 1];
    sign (message, sizeof message, exchange, subject->message);
    return link_cancel (exchange->link, call_of (exchange, cancelled), &subject->id,
                        message[0] != '\0' ? message : NULL, error);
}

/* The body may be missing, and its one member too. */
static bool read_message (exchange_t *exchange, subject_t *subject)
{
    char error[INPUT_ERROR_SIZE];
    const slice_t text = {(const char *) exchange->body.data, exchange->body.length};
    if (text.length == 0)
        return true;
    json_t *object = input_object (text, error);
    const json_t *message = json_object_get (object, "message");
    const size_t length = json_string_length (message);
    const bool good =
        object != NULL && json_object_size (object) == (message != NULL) &&
        (message == NULL || (json_is_string (message) && length < sizeof subject->message &&
                             strlen (json_string_value (message)) == length));
    if (good && message != NULL)
        memcpy (subject->message, json_string_value (message), length + 1);
    if (!good)
        answer_invalid (exchange, "/message", "%s",
                        object == NULL ? error
                                       : "the body is {\"message\":\"…\"} with at most 1024 bytes");
    json_decref (object);
    return good;
}

void task_cancel (exchange_t *exchange)
{
    subject_t *subject = subject_begin (exchange);
    if (subject == NULL || !read_message (exchange, subject))
        return;
    subject->start = start_cancel;
    subject_act_if_theirs (exchange);
}
