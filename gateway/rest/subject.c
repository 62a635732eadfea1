/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/subject.h"

#include <stdlib.h>

#include "rest/route.h"
#include "view.h"

subject_t *subject_of (exchange_t *exchange)
{
    return exchange->state;
}

static void clear_subject (void *state)
{
    subject_t *subject = state;
    flow_free (&subject->flow);
    link_forget (subject->link, &subject->wait);
    free (subject);
}

subject_t *subject_begin (exchange_t *exchange)
{
    tmq_id_t id;
    if (!path_id (exchange, &id))
        return NULL;
    subject_t *subject = keep_state (exchange, sizeof *subject, clear_subject);
    if (subject == NULL)
        return NULL;
    subject->id = id;
    subject->link = exchange->link;
    return subject;
}

/* "Nothing was done" would not be true. */
static void answer_done (exchange_t *exchange)
{
    const tmq_error_t error = {.code = TMQ_UNKNOWN,
                               .text = "it was done, but then the task could not be read"};
    answer_code (exchange, TMQ_UNKNOWN, &error, &subject_of (exchange)->id);
}

bool subject_came (exchange_t *exchange, const tmq_completion_t *completion)
{
    const tmq_id_t *id = &subject_of (exchange)->id;
    if (subject_of (exchange)->done && completion->code != TMQ_OK) {
        answer_done (exchange);
        return false;
    }
    if (!came_well (exchange, completion, id))
        return false;
    if (owns (exchange, completion->task))
        return true;
    answer_code (exchange, TMQ_NOT_FOUND, NULL, id);
    return false;
}

void subject_act (exchange_t *exchange)
{
    tmq_error_t error;
    const int code = subject_of (exchange)->start (exchange, &error);
    if (code != TMQ_OK && subject_of (exchange)->done)
        answer_done (exchange);
    else
        started (exchange, code, &error);
}

static void looked_at (void *context, tmq_completion_t *completion)
{
    if (subject_came (context, completion))
        subject_act (context);
}

void subject_act_if_theirs (exchange_t *exchange)
{
    tmq_error_t error;
    if (!policy_own_only (exchange->principal->roles, exchange->route->access))
        subject_act (exchange);
    else
        started (exchange,
                 link_get (exchange->link, call_of (exchange, looked_at),
                           &subject_of (exchange)->id, &error),
                 &error);
}

void subject_write (const exchange_t *exchange, response_t *response, json_writer_t *writer,
                    const tmq_task_t *task)
{
    static const task_extras_t extras = {.no_result = true};
    char tag[ENTITY_TAG_SIZE];
    task_view_t view;
    view_room_t room;
    entity_tag (tag, exchange, task);
    response_field (response, "ETag", tag);
    view_task (&view, &room, task);
    json_write_task (writer, &view, &extras);
    json_write_newline (writer);
}

void subject_answer (exchange_t *exchange, const tmq_task_t *task)
{
    response_t response;
    json_writer_t writer = answer_json (&response);
    subject_write (exchange, &response, &writer, task);
    answer (exchange, &response);
}

static void shown (void *context, tmq_completion_t *completion)
{
    if (subject_came (context, completion))
        subject_answer (context, completion->task);
}

int subject_show (exchange_t *exchange, tmq_error_t *error)
{
    return link_get (exchange->link, call_of (exchange, shown), &subject_of (exchange)->id, error);
}

void subject_show_done (exchange_t *exchange)
{
    subject_of (exchange)->done = true;
    subject_of (exchange)->start = subject_show;
    subject_act (exchange);
}
