/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Questions and answers. What can be judged without the broker is refused here; whether an answer
 * is JSON, the broker says. */
#include "codec/questions.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/errors.h"
#include "base/sized.h"
#include "codec/encode.h"
#include "codec/tail.h"
#include "ids.h"
#include "types.h"

/* Requests. */

void (tmq_ask_init) (tmq_ask_t *ask, size_t size)
{
    static const tmq_ask_t defaults = {0};
    core_sized_init (ask, size, &defaults, sizeof defaults);
}

int core_take_ask (tmq_ask_t *in, const tmq_ask_t *given, tmq_error_t *error)
{
    *in = (tmq_ask_t){0};
    if (given == NULL || !core_sized_take (in, sizeof *in, given, sizeof in->size))
        return core_error (error, TMQ_INVALID, "the question was not initialised");
    if (in->request == NULL || in->request[0] == '\0')
        return core_error (error, TMQ_INVALID, "request: must be JSON");
    int code = core_check_text (in->key, "key", TMQ_QUESTION_KEY_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (in->request, "request", TMQ_QUESTION_BYTES_MAX, error);
    if (code == TMQ_OK)
        code =
            core_check_text (in->default_answer, "default_answer", TMQ_QUESTION_BYTES_MAX, error);
    return code;
}

enum {
    ASK_KEY = 2,
    ASK_REQUEST = 3,
    ASK_DEADLINE_MS = 4,
    ASK_HAS_DEFAULT = 5,
    ASK_DEFAULT_TEXT = 6,
    ASK_DEFAULT_ANSWER = 7
};

void core_encode_ask (bytes_t *out, const tmq_ask_t *in)
{
    bytes_append_string (out, ASK_KEY, in->key);
    bytes_append_string (out, ASK_REQUEST, in->request);
    bytes_append_uint (out, ASK_DEADLINE_MS, in->deadline_ms);
    if (in->default_answer == NULL)
        return;
    bytes_append_uint (out, ASK_HAS_DEFAULT, 1);
    bytes_append_uint (out, ASK_DEFAULT_TEXT, in->default_is_text);
    bytes_append_string (out, ASK_DEFAULT_ANSWER, in->default_answer);
}

static int check_answers (const tmq_answer_t *in, size_t count, tmq_error_t *error)
{
    size_t bytes = 0;
    if (in == NULL || count == 0)
        return core_error (error, TMQ_INVALID, "at least one answer is needed");
    if (count > TMQ_QUESTIONS_OPEN_MAX)
        return core_error (error, TMQ_TOO_LARGE, "answers: %zu, at most %d are allowed", count,
                           TMQ_QUESTIONS_OPEN_MAX);
    for (size_t i = 0; i < count; i++) {
        int code = core_check_text (in[i].key, "key", TMQ_QUESTION_KEY_BYTES_MAX, error);
        if (code != TMQ_OK)
            return code;
        if (in[i].answer_bytes > TMQ_ANSWER_BYTES_MAX)
            return core_error (error, TMQ_TOO_LARGE, "answer: %zu bytes, at most %d are allowed",
                               in[i].answer_bytes, TMQ_ANSWER_BYTES_MAX);
        bytes += in[i].answer_bytes;
    }
    return bytes <= TMQ_FRAME_BYTES_MAX
               ? TMQ_OK
               : core_error (error, TMQ_TOO_LARGE, "answers: %zu bytes, at most %d in one request",
                             bytes, TMQ_FRAME_BYTES_MAX);
}

enum { ANSWER_TASK_ID = 1, ANSWER_ITEMS = 2, ITEM_KEY = 1, ITEM_TEXT = 2, ITEM_BYTES = 3 };

int core_request_answer (core_request_t **out, const tmq_id_t *id, const tmq_answer_t *in,
                         size_t count, tmq_error_t *error)
{
    int code = check_answers (in, count, error);
    if (code != TMQ_OK)
        return code;
    core_request_t *request = core_request_new (TMQ_OP_ANSWER);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    request->task_id = *id;
    request->answer.completion.task_id = *id;
    bytes_mark_t mark = core_request_begin (request);
    bytes_append_blob (&request->fields, ANSWER_TASK_ID, id->bytes, ID_BYTES);
    for (size_t i = 0; i < count; i++) {
        bytes_mark_t item = bytes_open (&request->fields, ANSWER_ITEMS);
        bytes_append_string (&request->fields, ITEM_KEY, in[i].key);
        bytes_append_uint (&request->fields, ITEM_TEXT, in[i].is_text);
        bytes_append_uint (&request->fields, ITEM_BYTES, in[i].answer_bytes);
        bytes_close (&request->fields, item);
        bytes_append (&request->body, in[i].answer, in[i].answer_bytes);
    }
    bytes_close (&request->fields, mark);
    return core_request_finish (out, request, error);
}

void (tmq_inbox_query_init) (tmq_inbox_query_t *query, size_t size)
{
    static const tmq_inbox_query_t defaults = {0};
    core_sized_init (query, size, &defaults, sizeof defaults);
}

static int check_names (const char *const *names, size_t count, const char *what,
                        tmq_error_t *error)
{
    if (count > TMQ_FILTER_VALUES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "%s: %zu, at most %d are allowed", what, count,
                           TMQ_FILTER_VALUES_MAX);
    int code = TMQ_OK;
    for (size_t i = 0; i < count && code == TMQ_OK; i++)
        code = core_check_name (names[i], what, true, error);
    return code;
}

enum { INBOX_TASK_ID = 1, INBOX_QUEUES = 2, INBOX_SESSIONS = 3, INBOX_AFTER = 4, INBOX_LIMIT = 5 };

int core_request_inbox (core_request_t **out, const tmq_inbox_query_t *given, tmq_error_t *error)
{
    tmq_inbox_query_t query = {0};
    const tmq_inbox_query_t *in = &query;
    if (given != NULL && !core_sized_take (&query, sizeof query, given, sizeof query.size))
        return core_error (error, TMQ_INVALID, "the query was not initialised");
    if (in->limit > TMQ_LIST_LIMIT_MAX)
        return core_error (error, TMQ_INVALID, "limit: at most %d", TMQ_LIST_LIMIT_MAX);
    int code = check_names (in->queues, in->queues_count, "queue", error);
    if (code == TMQ_OK)
        code = check_names (in->sessions, in->sessions_count, "session", error);
    if (code != TMQ_OK)
        return code;
    core_request_t *request = core_request_new (TMQ_OP_INBOX);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    bytes_mark_t mark = core_request_begin (request);
    if (in->task_id != NULL)
        bytes_append_blob (&request->fields, INBOX_TASK_ID, in->task_id->bytes, ID_BYTES);
    for (size_t i = 0; i < in->queues_count; i++)
        bytes_append_string (&request->fields, INBOX_QUEUES, in->queues[i]);
    for (size_t i = 0; i < in->sessions_count; i++)
        bytes_append_string (&request->fields, INBOX_SESSIONS, in->sessions[i]);
    bytes_append_uint (&request->fields, INBOX_AFTER, in->after);
    bytes_append_uint (&request->fields, INBOX_LIMIT, in->limit);
    bytes_close (&request->fields, mark);
    return core_request_finish (out, request, error);
}

/* Records. */

static tmq_given_t *given_new (const tmq_given_t *in)
{
    tail_t tail = {0};
    tail_text (&tail, in->key);
    tail_text (&tail, in->by);
    tail_body (&tail, in->answer, in->answer_bytes);
    tmq_given_t *out = malloc (sizeof *out + tail.used);
    if (out == NULL)
        return NULL;
    *out = *in;
    tail = (tail_t){(uint8_t *) (out + 1), 0};
    out->key = tail_text (&tail, in->key);
    out->by = tail_text (&tail, in->by);
    out->answer = tail_body (&tail, in->answer, in->answer_bytes);
    return out;
}

tmq_given_t *core_given_copy (const tmq_given_t *in)
{
    return given_new (in);
}

tmq_given_t *core_given_record (const Taskmq__GivenAnswer *in, const void *body)
{
    tmq_given_t given = {.number = in->number,
                         .key = in->key,
                         .answer = body,
                         .answer_bytes = in->bytes,
                         .is_text = in->text,
                         .by = in->by,
                         .at = in->at,
                         .by_default = in->by_default};
    return given_new (&given);
}

void tmq_given_free (tmq_given_t *given)
{
    free (given);
}

static void question_fill (tmq_question_t *out, tail_t *tail, const Taskmq__Question *in)
{
    tmq_question_t question = {.number = in->number,
                               .key = tail_text (tail, in->key),
                               .queue = tail_text (tail, in->queue),
                               .session = tail_text (tail, in->session),
                               .asked_at = in->asked_at,
                               .deadline = in->deadline,
                               .request = tail_text (tail, in->request),
                               .has_default = in->has_default,
                               .default_is_text = in->default_text,
                               .default_answer = tail_text (tail, in->default_answer),
                               .attempt = in->attempt,
                               .worker = tail_text (tail, in->worker)};
    if (out == NULL)
        return;
    id_from_bytes (&question.task_id, in->task_id.data, in->task_id.len);
    *out = question;
}

tmq_inbox_t *core_inbox_record (const Taskmq__InboxPage *page)
{
    tail_t tail = {0};
    for (size_t i = 0; i < page->n_questions; i++)
        question_fill (NULL, &tail, page->questions[i]);
    size_t list = page->n_questions * sizeof (tmq_question_t);
    tmq_inbox_t *out = calloc (1, sizeof *out + list + tail.used);
    if (out == NULL)
        return NULL;
    tmq_question_t *questions = (tmq_question_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) (questions + page->n_questions), 0};
    for (size_t i = 0; i < page->n_questions; i++)
        question_fill (&questions[i], &tail, page->questions[i]);
    out->questions = questions;
    out->count = page->n_questions;
    out->next = page->next;
    return out;
}

void tmq_inbox_free (tmq_inbox_t *inbox)
{
    free (inbox);
}

tmq_answered_t *core_answered_record (const Taskmq__Answered *answered)
{
    tmq_answered_t *out = calloc (answered->n_items + 1, sizeof *out);
    for (size_t i = 0; out != NULL && i < answered->n_items; i++) {
        out[i].code = (int) answered->items[i]->code;
        snprintf (out[i].text, sizeof out[i].text, "%s", answered->items[i]->text);
    }
    return out;
}
