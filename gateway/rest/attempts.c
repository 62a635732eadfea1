/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What workers did with a task: its attempts, and what their programs wrote. */
#include <string.h>

#include "rest/handlers.h"
#include "rest/query.h"
#include "rest/subject.h"
#include "view.h"

/* Attempts. */

static void write_attempts (json_writer_t *writer, const tmq_completion_t *completion)
{
    const tmq_attempt_list_t *list = completion->attempts;
    json_write_key (writer, "items");
    json_write_array_begin (writer);
    for (size_t i = 0; i < list->count; i++)
        view_write_attempt (writer, &list->attempts[i], NULL, NULL);
    json_write_array_end (writer);
    answer_next (writer, list->next, list->next != 0);
}

static void attempts_came (void *context, tmq_completion_t *completion)
{
    answer_object (context, completion, write_attempts);
}

static int start_attempts (exchange_t *exchange, tmq_error_t *error)
{
    const subject_t *subject = subject_of (exchange);
    return link_attempts (exchange->link, call_of (exchange, attempts_came), &subject->id,
                          subject->attempt, subject->limit, error);
}

void task_attempts (exchange_t *exchange)
{
    static const char *const names[] = {"after", "limit"};
    uint64_t after = 0, limit = 0;
    subject_t *subject = subject_begin (exchange);
    if (subject == NULL || !known_parameters (exchange, names, 2) ||
        !number_parameter (exchange, &after, "after", UINT32_MAX) ||
        !number_parameter (exchange, &limit, "limit", TMQ_LIST_LIMIT_MAX))
        return;
    subject->attempt = (uint32_t) after;
    subject->limit = (uint32_t) limit;
    subject->start = start_attempts;
    subject_act_if_theirs (exchange);
}

/* Logs. */

static const char *const stream_names[] = {[TMQ_LOG_OUT] = "out", [TMQ_LOG_ERR] = "err"};

static void log_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    const subject_t *subject = subject_of (exchange);
    char id[37];
    response_t response;
    if (!came_well (exchange, completion, &subject->id))
        return;
    const tmq_part_t *part = completion->part;
    const uint64_t end = part->offset + part->length;
    json_writer_t writer = answer_json (&response);
    tmq_id_format (&subject->id, id);
    json_write_object_begin (&writer);
    json_write_key (&writer, "task_id");
    json_write_text (&writer, id);
    json_write_key (&writer, "attempt");
    json_write_uint (&writer, part->file);
    json_write_key (&writer, "stream");
    json_write_text (&writer, stream_names[subject->stream]);
    json_write_key (&writer, "offset");
    json_write_uint (&writer, part->offset);
    json_write_key (&writer, "lost");
    json_write_uint (&writer, part->offset > subject->offset ? part->offset - subject->offset : 0);
    json_write_key (&writer, "data");
    json_write_body (&writer, "text/plain", part->bytes, part->length);
    json_write_key (&writer, "end");
    json_write_uint (&writer, part->total);
    answer_next (&writer, end, part->more);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    answer (exchange, &response);
}

static int start_log (exchange_t *exchange, tmq_error_t *error)
{
    const subject_t *subject = subject_of (exchange);
    return link_log (exchange->link, call_of (exchange, log_came), &subject->id, subject->attempt,
                     subject->stream, subject->offset, subject->limit, error);
}

/* False: answered. */
static bool read_stream (exchange_t *exchange, tmq_log_stream_t *out)
{
    const char *text = http_target_parameter (&exchange->target, "stream");
    *out = text != NULL && strcmp (text, "err") == 0 ? TMQ_LOG_ERR : TMQ_LOG_OUT;
    if (text == NULL || strcmp (text, stream_names[*out]) == 0)
        return true;
    answer_invalid (exchange, "stream", "stream is out or err");
    return false;
}

void task_logs (exchange_t *exchange)
{
    static const char *const names[] = {"stream", "attempt", "offset", "limit"};
    uint64_t attempt = 0, limit = 0;
    subject_t *subject = subject_begin (exchange);
    if (subject == NULL || !known_parameters (exchange, names, 4) ||
        !read_stream (exchange, &subject->stream) ||
        !number_parameter (exchange, &attempt, "attempt", UINT32_MAX) ||
        !number_parameter (exchange, &subject->offset, "offset", INT64_MAX) ||
        !number_parameter (exchange, &limit, "limit", TMQ_LOG_BYTES_MAX))
        return;
    subject->attempt = (uint32_t) attempt;
    subject->limit = (uint32_t) limit;
    subject->start = start_log;
    subject_act_if_theirs (exchange);
}
