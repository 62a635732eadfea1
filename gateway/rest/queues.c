/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Queues: how they stand, and that nothing of them is given away. */
#include <string.h>

#include "rest/handlers.h"
#include "rest/input.h"
#include "rest/query.h"
#include "view.h"

enum { QUEUES_MAX = 1000 /* of a page */ };

static void write_queues (json_writer_t *writer, const tmq_completion_t *completion)
{
    const tmq_queue_report_t *report = completion->queues;
    json_write_key (writer, "items");
    json_write_array_begin (writer);
    for (size_t i = 0; i < report->count; i++)
        view_write_queue (writer, &report->queues[i], NULL);
    json_write_array_end (writer);
    json_write_key (writer, "next");
    json_write_text (writer, report->next[0] != '\0' ? report->next : NULL);
}

static void queues_came (void *context, tmq_completion_t *completion)
{
    answer_object (context, completion, write_queues);
}

void queue_list (exchange_t *exchange)
{
    static const char *const names[] = {"limit", "cursor"};
    uint64_t limit = QUEUES_MAX;
    tmq_error_t error;
    if (!known_parameters (exchange, names, sizeof names / sizeof *names) ||
        !number_parameter (exchange, &limit, "limit", QUEUES_MAX))
        return;
    started (exchange,
             link_queues (exchange->link, call_of (exchange, queues_came),
                          http_target_parameter (&exchange->target, "cursor"), (uint32_t) limit,
                          &error),
             &error);
}

/* One of them. */

static void queue_came (void *context, tmq_completion_t *completion)
{
    response_t response;
    if (!came_well (context, completion, NULL))
        return;
    json_writer_t writer = answer_json (&response);
    view_write_queue (&writer, &completion->queues->queues[0], NULL);
    json_write_newline (&writer);
    answer (context, &response);
}

void queue_show (exchange_t *exchange)
{
    tmq_error_t error;
    started (exchange,
             link_queue (exchange->link, call_of (exchange, queue_came), exchange->parameters[0],
                         &error),
             &error);
}

/* The body may be missing, and its one member too. False: answered. */
static bool read_why (exchange_t *exchange, char out[TMQ_QUEUE_WHY_BYTES_MAX + 1])
{
    char error[INPUT_ERROR_SIZE];
    const slice_t text = {(const char *) exchange->body.data, exchange->body.length};
    out[0] = '\0';
    if (text.length == 0)
        return true;
    json_t *object = input_object (text, error);
    const json_t *why = json_object_get (object, "why");
    const size_t length = json_string_length (why);
    const bool good = object != NULL && json_object_size (object) == (why != NULL) &&
                      (why == NULL || (json_is_string (why) && length <= TMQ_QUEUE_WHY_BYTES_MAX &&
                                       strlen (json_string_value (why)) == length));
    if (good && why != NULL)
        memcpy (out, json_string_value (why), length + 1);
    if (!good)
        answer_invalid (exchange, "/why", object == NULL ? "%s" : "the body is %s",
                        object == NULL ? error : "{\"why\":\"…\"} with at most 256 bytes");
    json_decref (object);
    return good;
}

void queue_pause (exchange_t *exchange)
{
    char why[TMQ_QUEUE_WHY_BYTES_MAX + 1];
    char told[TMQ_QUEUE_WHY_BYTES_MAX + 1];
    tmq_error_t error;
    if (!read_why (exchange, why))
        return;
    sign (told, sizeof told, exchange, why);
    started (exchange,
             link_pause (exchange->link, call_of (exchange, queue_came), exchange->parameters[0],
                         told, &error),
             &error);
}

void queue_resume (exchange_t *exchange)
{
    tmq_error_t error;
    started (exchange,
             link_unpause (exchange->link, call_of (exchange, queue_came), exchange->parameters[0],
                           &error),
             &error);
}
