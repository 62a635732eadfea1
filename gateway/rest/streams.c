/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Streams of events. */
#include <stdlib.h>

#include "events/items.h"
#include "http/sse.h"
#include "rest/handlers.h"
#include "rest/query.h"
#include "rest/subject.h"

enum { NO_FILTER_RETRY_MS = 5000 };

static bool begin (exchange_t *exchange, response_t *response)
{
    return answer_stream (exchange, response);
}

static bool may (exchange_t *exchange)
{
    return service_wait_ms (service_of (exchange), exchange->principal) == 0;
}

static void spent (exchange_t *exchange, double us)
{
    service_spend (service_of (exchange), exchange->principal, us);
}

static void refuse (exchange_t *exchange, int code, const tmq_error_t *error)
{
    answer_code (exchange, code, error, NULL);
}

/* Where to go on: what an EventSource says when it connects again wins over the target. False:
 * answered. */
static bool read_cursor (exchange_t *exchange, stream_options_t *options)
{
    const char *last = http_request_field (exchange->request, "last-event-id");
    const char *cursor = http_target_parameter (&exchange->target, "cursor");
    uint64_t generation, seq;
    if (last != NULL && last[0] != '\0')
        cursor = last;
    if (cursor == NULL)
        return true;
    options->cursor = cursor;
    options->snapshot = false;
    if (cursor_read (cursor, &generation, &seq))
        return true;
    const tmq_error_t error = {.code = TMQ_BAD_CURSOR,
                               .text = "a cursor is GENERATION-SEQUENCE, the id of an event; 0-0 "
                                       "is before the first one"};
    answer_code (exchange, TMQ_BAD_CURSOR, &error, NULL);
    return false;
}

static bool read_options (exchange_t *exchange, stream_options_t *options)
{
    options->begin = begin;
    options->refuse = refuse;
    options->may = may;
    options->spent = spent;
    options->owner = owner_of (exchange);
    options->filters_max = service_of (exchange)->settings.numbers[SETTING_PRINCIPAL_FILTERS_MAX];
    return flag_parameter (exchange, &options->snapshot, "snapshot") &&
           flag_parameter (exchange, &options->notices, "notices") &&
           read_cursor (exchange, options);
}

/* Nothing is there to stream: a response that ends with its head. False: it is not asked for. */
static bool answer_head (exchange_t *exchange)
{
    response_t response;
    if (exchange->request->method != HTTP_METHOD_HEAD)
        return false;
    response_init (&response, 200);
    sse_fields (&response);
    answer (exchange, &response);
    return true;
}

static void open_stream (exchange_t *exchange, const stream_options_t *options)
{
    static const problem_t full = {
        .kind = PROBLEM_RATE_LIMITED,
        .detail = "more filters of streams at a time than 'principal_filters_max' allows",
        .retry_after_ms = NO_FILTER_RETRY_MS};
    const stream_opening_t opening =
        stream_open (&service_of (exchange)->streams, exchange, options);
    if (opening == STREAM_NO_MEMORY)
        answer_code (exchange, TMQ_NO_MEMORY, NULL, NULL);
    else if (opening == STREAM_NO_FILTER)
        answer_problem (exchange, &full);
}

void event_stream (exchange_t *exchange)
{
    static const char *const others[] = {"cursor", "snapshot", "notices", NULL};
    query_filter_t *query = keep_state (exchange, sizeof *query, free);
    stream_options_t options = {.cursor = NULL};
    if (query == NULL || !query_filter (exchange, query, others) ||
        !read_options (exchange, &options))
        return;
    options.filter = query->filter;
    if (options.filter.created_since != 0 || options.filter.created_until != 0)
        answer_invalid (exchange, "created_since", "a stream has no times of creation");
    else if (!answer_head (exchange))
        open_stream (exchange, &options);
}

static void task_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    stream_options_t options = {.snapshot = true, .one_task = true};
    uint64_t generation, seq;
    response_t response;
    if (!subject_came (exchange, completion) || !read_options (exchange, &options))
        return;
    const tmq_task_t *task = completion->task;
    const bool over = tmq_status_terminal (task->status) && options.cursor != NULL &&
                      cursor_read (options.cursor, &generation, &seq) &&
                      generation == link_generation (exchange->link) && seq >= task->seq;
    if (over) { /* an EventSource takes it as the end */
        response_init (&response, 204);
        answer (exchange, &response);
        return;
    }
    options.filter.task_ids = &subject_of (exchange)->id;
    options.filter.task_ids_count = 1;
    if (!answer_head (exchange))
        open_stream (exchange, &options);
}

static int get_task (exchange_t *exchange, tmq_error_t *error)
{
    return link_get (exchange->link, call_of (exchange, task_came), &subject_of (exchange)->id,
                     error);
}

void task_stream (exchange_t *exchange)
{
    static const char *const names[] = {"cursor", "snapshot", "notices"};
    stream_options_t options = {.cursor = NULL};
    subject_t *subject = subject_begin (exchange);
    if (subject == NULL || !known_parameters (exchange, names, 3) ||
        !read_options (exchange, &options))
        return;
    subject->start = get_task;
    subject_act (exchange);
}
