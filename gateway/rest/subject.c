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

subject_t *subject_begin (exchange_t *exchange)
{
    tmq_id_t id;
    if (!path_id (exchange, &id))
        return NULL;
    subject_t *subject = keep_state (exchange, sizeof *subject, free);
    if (subject != NULL)
        subject->id = id;
    return subject;
}

bool subject_came (exchange_t *exchange, const tmq_completion_t *completion)
{
    const tmq_id_t *id = &subject_of (exchange)->id;
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
    started (exchange, subject_of (exchange)->start (exchange, &error), &error);
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

void subject_answer (exchange_t *exchange, const tmq_task_t *task)
{
    static const task_extras_t extras = {.no_result = true};
    char tag[ENTITY_TAG_SIZE];
    task_view_t view;
    view_room_t room;
    response_t response;
    json_writer_t writer = answer_json (&response);
    entity_tag (tag, exchange, task);
    response_field (&response, "ETag", tag);
    view_task (&view, &room, task);
    json_write_task (&writer, &view, &extras);
    json_write_newline (&writer);
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
