/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A task once more: why it does not move, done again, asked and answered, removed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rest/handlers.h"
#include "rest/input.h"
#include "rest/query.h"
#include "rest/subject.h"
#include "view.h"

/* Why. */

static void why_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    response_t response;
    if (!came_well (exchange, completion, &subject_of (exchange)->id))
        return;
    json_writer_t writer = answer_json (&response);
    view_write_why (&writer, completion->why);
    json_write_newline (&writer);
    answer (exchange, &response);
}

static int start_why (exchange_t *exchange, tmq_error_t *error)
{
    return link_why (exchange->link, call_of (exchange, why_came), &subject_of (exchange)->id,
                     error);
}

static void begin (exchange_t *exchange, int (*start) (exchange_t *exchange, tmq_error_t *error))
{
    subject_t *subject = subject_begin (exchange);
    if (subject == NULL)
        return;
    subject->start = start;
    subject_act_if_theirs (exchange);
}

void task_why (exchange_t *exchange)
{
    begin (exchange, start_why);
}

/* Again. */

/* False: answered. */
static bool changed_well (exchange_t *exchange, const tmq_completion_t *completion)
{
    const tmq_id_t *id = &subject_of (exchange)->id;
    tmq_error_t error = {.code = TMQ_INTERNAL};
    if (!came_well (exchange, completion, id))
        return false;
    if (completion->changed_count == 1) {
        error.code = completion->changed[0].code;
        snprintf (error.text, sizeof error.text, "%s", completion->changed[0].text);
    }
    if (error.code != TMQ_OK)
        answer_code (exchange, error.code, &error, id);
    return error.code == TMQ_OK;
}

/* The answer tells little: the record is shown as it is then. */
static void changed (void *context, tmq_completion_t *completion)
{
    if (changed_well (context, completion))
        subject_show_done (context);
}

static int start_retry (exchange_t *exchange, tmq_error_t *error)
{
    return link_retry (exchange->link, call_of (exchange, changed), &subject_of (exchange)->id,
                       error);
}

static int start_resume (exchange_t *exchange, tmq_error_t *error)
{
    return link_resume (exchange->link, call_of (exchange, changed), &subject_of (exchange)->id,
                        error);
}

void task_retry (exchange_t *exchange)
{
    begin (exchange, start_retry);
}

void task_resume (exchange_t *exchange)
{
    begin (exchange, start_resume);
}

static void purged (void *context, tmq_completion_t *completion)
{
    response_t response;
    if (!changed_well (context, completion))
        return;
    response_init (&response, 204);
    answer (context, &response);
}

static int start_purge (exchange_t *exchange, tmq_error_t *error)
{
    return link_purge (exchange->link, call_of (exchange, purged), &subject_of (exchange)->id,
                       error);
}

void task_purge (exchange_t *exchange)
{
    begin (exchange, start_purge);
}

static void adopted (void *context, tmq_completion_t *completion)
{
    if (came_well (context, completion, &subject_of (context)->id))
        subject_answer (context, completion->task);
}

static int start_adopt (exchange_t *exchange, tmq_error_t *error)
{
    const subject_t *subject = subject_of (exchange);
    return link_adopt (exchange->link, call_of (exchange, adopted), &subject->id, subject->attempt,
                       error);
}

void task_adopt (exchange_t *exchange)
{
    char error[INPUT_ERROR_SIZE] = "the body is {\"attempt\":NUMBER}";
    const slice_t text = {(const char *) exchange->body.data, exchange->body.length};
    subject_t *subject = subject_begin (exchange);
    if (subject == NULL)
        return;
    json_t *object = text.length > 0 ? input_object (text, error) : NULL;
    const json_t *attempt = json_object_get (object, "attempt");
    const json_int_t number = json_integer_value (attempt);
    const bool good = json_object_size (object) == 1 && json_is_integer (attempt) && number > 0 &&
                      number <= UINT32_MAX;
    json_decref (object);
    if (!good) {
        answer_invalid (exchange, "/attempt", "%s", error);
        return;
    }
    subject->attempt = (uint32_t) number;
    subject->start = start_adopt;
    subject_act (exchange);
}

/* Questions. */

static void answered (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    const tmq_id_t *id = &subject_of (exchange)->id;
    tmq_error_t error = {.code = TMQ_INTERNAL};
    if (!came_well (exchange, completion, id))
        return;
    if (completion->answered_count == 1) {
        error.code = completion->answered[0].code;
        snprintf (error.text, sizeof error.text, "%s", completion->answered[0].text);
    }
    if (error.code != TMQ_OK) {
        answer_code (exchange, error.code, &error, id);
        return;
    }
    subject_show_done (exchange);
}

/* The body is looked at once more, when it is known that it may be. */
static int start_answer (exchange_t *exchange, tmq_error_t *error)
{
    char flaw[INPUT_ERROR_SIZE];
    const slice_t body = {(const char *) exchange->body.data, exchange->body.length};
    json_t *object = input_object (body, flaw);
    const json_t *text = json_object_get (object, "text");
    const slice_t value = input_member (body, "answer");
    tmq_answer_t in = {.key = json_string_value (json_object_get (object, "key")),
                       .answer = text != NULL ? json_string_value (text) : value.text,
                       .answer_bytes = text != NULL ? json_string_length (text) : value.length,
                       .is_text = text != NULL};
    const int code = link_answer (exchange->link, call_of (exchange, answered),
                                  &subject_of (exchange)->id, &in, 1, error);
    json_decref (object);
    return code;
}

static bool answer_is_good (const json_t *object)
{
    const json_t *key = json_object_get (object, "key");
    const json_t *text = json_object_get (object, "text");
    const json_t *value = json_object_get (object, "answer");
    return json_is_string (key) && strlen (json_string_value (key)) == json_string_length (key) &&
           (text == NULL || json_is_string (text)) && (text == NULL) != (value == NULL) &&
           json_object_size (object) == 2;
}

void task_answer (exchange_t *exchange)
{
    char error[INPUT_ERROR_SIZE] = "the body is {\"key\":…,\"answer\":JSON} or "
                                   "{\"key\":…,\"text\":…}";
    const slice_t body = {(const char *) exchange->body.data, exchange->body.length};
    json_t *object = body.length > 0 ? input_object (body, error) : NULL;
    const bool good = answer_is_good (object);
    json_decref (object);
    if (good)
        begin (exchange, start_answer);
    else
        answer_invalid (exchange, "/answer", "%s", error);
}

static void write_inbox (json_writer_t *writer, const tmq_completion_t *completion)
{
    const tmq_inbox_t *inbox = completion->inbox;
    json_write_key (writer, "items");
    json_write_array_begin (writer);
    for (size_t i = 0; i < inbox->count; i++)
        view_write_question (writer, &inbox->questions[i]);
    json_write_array_end (writer);
    answer_next (writer, inbox->next, inbox->next != 0);
}

static void inbox_came (void *context, tmq_completion_t *completion)
{
    answer_object (context, completion, write_inbox);
}

void inbox_show (exchange_t *exchange)
{
    static const char *const names[] = {"queue", "session", "after", "limit"};
    const char *queue = http_target_parameter (&exchange->target, "queue");
    const char *session = http_target_parameter (&exchange->target, "session");
    uint64_t after = 0;
    uint64_t limit = 0;
    tmq_inbox_query_t query;
    tmq_error_t error;
    if (!known_parameters (exchange, names, 4) ||
        !number_parameter (exchange, &after, "after", INT64_MAX) ||
        !number_parameter (exchange, &limit, "limit", TMQ_LIST_LIMIT_MAX))
        return;
    tmq_inbox_query_init (&query);
    query.queues = &queue;
    query.queues_count = queue != NULL;
    query.sessions = &session;
    query.sessions_count = session != NULL;
    query.after = after;
    query.limit = (uint32_t) limit;
    started (exchange, link_inbox (exchange->link, call_of (exchange, inbox_came), &query, &error),
             &error);
}
