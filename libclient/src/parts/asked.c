/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Questions of attempts.
 *
 * Answers are fetched at once, whether somebody waits for them or not, and kept until the attempt
 * ends: a task has at most 256. What is behind is known by their numbers, so nothing has to be
 * remembered over a lost link: the next registration tells of what was not taken. */
#include "parts/asked.h"

#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "codec/questions.h"
#include "ids.h"

void core_asked_news (core_attempt_t *attempt, uint64_t answers)
{
    if (answers == 0 || attempt->fetching)
        return;
    /* Also when it has all of them: then it says so. */
    attempt->fetching = core_attempt_take (attempt);
}

void core_asked_notice (core_workers_t *all, const Taskmq__AnswerNotice *notice)
{
    tmq_id_t id;
    core_attempt_t *attempt = NULL;
    if (id_from_bytes (&id, notice->task_id.data, notice->task_id.len))
        attempt = core_attempt_find (all, &id, notice->attempt);
    if (attempt != NULL)
        core_asked_news (attempt, notice->answers);
}

/* Keeps the answers of a page; false when memory is exhausted. */
static bool keep (core_attempt_t *attempt, const Taskmq__AnswerPage *page, const uint8_t *body)
{
    for (size_t i = 0; i < page->n_answers; i++) {
        const Taskmq__GivenAnswer *in = page->answers[i];
        const uint8_t *bytes = body;
        body += in->bytes;
        if (in->number <= attempt->answers_seen)
            continue;
        core_given_t *given = calloc (1, sizeof *given);
        if (given != NULL)
            given->given = core_given_record (in, bytes);
        if (given == NULL || given->given == NULL) {
            free (given);
            return false;
        }
        core_given_t **end = &attempt->answers;
        while (*end != NULL)
            end = &(*end)->next;
        *end = given;
        attempt->answers_seen = in->number;
    }
    return true;
}

static bool adds_up (const Taskmq__AnswerPage *page)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < page->n_answers; i++)
        bytes += page->answers[i]->bytes;
    return bytes == page->body;
}

bool core_asked_reply (core_workers_t *all, const core_request_t *request,
                       const Taskmq__Reply *reply, const uint8_t *body)
{
    core_attempt_t *attempt = core_attempt_find (all, &request->task_id, request->attempt);
    if (attempt == NULL)
        return true;
    attempt->fetching = false;
    if (reply->code != TMQ_OK) {
        core_attempt_refused (attempt, reply->code);
        return true;
    }
    if (reply->body_case != TASKMQ__REPLY__BODY_ANSWER_PAGE || !adds_up (reply->answer_page))
        return false;
    uint64_t before = attempt->answers_seen;
    if (!keep (attempt, reply->answer_page, body)) {
        core_link_drop (all->requests->link, TMQ_NO_MEMORY, NULL);
        return true;
    }
    if (attempt->answers_seen > before) {
        core_attempt_change (attempt, TMQ_ATTEMPT_ANSWERED, NULL);
        core_worker_wake (attempt->worker);
        core_asked_news (attempt, attempt->answers_seen); /* the rest, or that there is none */
    }
    return true;
}

/* The application's side. */

int core_worker_ask (core_worker_t *self, const tmq_assignment_t *of, const tmq_ask_t *given,
                     core_target_t target, int64_t deadline_ms, int64_t now_ms, tmq_error_t *error)
{
    bytes_mark_t mark = 0;
    tmq_ask_t ask;
    core_link_hear_time (self->all->link, now_ms);
    int code = core_take_ask (&ask, given, error);
    if (code != TMQ_OK)
        return code;
    core_attempt_t *attempt = core_attempt_of (self, of);
    if (attempt == NULL)
        return core_attempt_stale (error);
    attempt->started = true; /* what asks is at work */
    core_request_t *request = core_attempt_about (core_request_new (TMQ_OP_ASK), attempt, &mark);
    if (request != NULL) {
        core_encode_ask (&request->fields, &ask);
        bytes_close (&request->fields, mark);
    }
    if (request == NULL || request->fields.failed) {
        core_request_free (request);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    return core_request_start (self->all->requests, request, target, deadline_ms, error);
}

int core_worker_given (tmq_given_t **out, core_worker_t *self, const tmq_assignment_t *of,
                       const char *key, tmq_error_t *error)
{
    core_attempt_t *attempt = core_attempt_of (self, of);
    if (attempt == NULL && self->code != TMQ_OK)
        return core_error (error, self->code, NULL);
    if (attempt == NULL)
        return core_attempt_stale (error);
    core_given_t *at = attempt->answers;
    while (at != NULL && (key == NULL ? at->taken : strcmp (at->given->key, key) != 0))
        at = at->next;
    if (at == NULL && attempt->state == TMQ_ATTEMPT_CANCELLED)
        return core_error (error, TMQ_CANCELLED, NULL);
    if (at == NULL)
        return core_error (error, self->code != TMQ_OK ? self->code : TMQ_TIMEOUT, NULL);
    *out = core_given_copy (at->given);
    if (*out == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    at->taken = true;
    return core_error (error, TMQ_OK, NULL);
}
