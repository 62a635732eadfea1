/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Many tasks: lists, counts, waits, short ids. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rest/handlers.h"
#include "rest/input.h"
#include "rest/query.h"
#include "rest/route.h"
#include "view.h"

/* Lists. */

/* What stays of the query in the target of the next page. */
static void write_next_target (bytes_t *out, const exchange_t *exchange, const char *next)
{
    const char *target = exchange->request->target;
    const char *query = strchr (target, '?');
    bytes_append_text (out, "</v1/tasks?");
    while (query != NULL && *query != '\0') {
        const char *part = query + 1;
        const size_t length = strcspn (part, "&");
        if (length > 0 && strncmp (part, "cursor=", strlen ("cursor=")) != 0) {
            bytes_append (out, part, length);
            bytes_append_byte (out, '&');
        }
        query = part + length;
    }
    bytes_append_text (out, "cursor=");
    for (; *next != '\0'; next++) {
        static const char digits[] = "0123456789ABCDEF";
        const uint8_t byte = (uint8_t) *next;
        if (strchr ("+&%#=/ ", byte) == NULL) {
            bytes_append_byte (out, byte);
        } else {
            bytes_append_byte (out, '%');
            bytes_append_byte (out, (uint8_t) digits[byte >> 4]);
            bytes_append_byte (out, (uint8_t) digits[byte & 15]);
        }
    }
    bytes_append_text (out, ">; rel=\"next\"");
}

static void list_came (void *context, tmq_completion_t *completion)
{
    static const task_extras_t extras = {.no_result = true};
    exchange_t *exchange = context;
    task_view_t view;
    view_room_t room;
    response_t response;
    bytes_t link = BYTES_INIT;
    if (!came_well (exchange, completion, NULL))
        return;
    const tmq_task_list_t *list = completion->list;
    json_writer_t writer = answer_json (&response);
    json_write_object_begin (&writer);
    json_write_key (&writer, "items");
    json_write_array_begin (&writer);
    for (size_t i = 0; i < list->count; i++) {
        view_task (&view, &room, list->tasks[i]);
        json_write_task (&writer, &view, &extras);
    }
    json_write_array_end (&writer);
    json_write_key (&writer, "next");
    json_write_text (&writer, list->next);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    if (list->next[0] != '\0') {
        write_next_target (&link, exchange, list->next);
        const char *text = bytes_text (&link);
        if (text != NULL)
            response_field (&response, "Link", text);
    }
    bytes_free (&link);
    answer (exchange, &response);
}

void task_list (exchange_t *exchange)
{
    static const char *const others[] = {"limit", "cursor", NULL};
    query_filter_t filter;
    uint64_t limit = 0;
    tmq_error_t error;
    if (!query_filter (exchange, &filter, others) ||
        !number_parameter (exchange, &limit, "limit", TMQ_LIST_LIMIT_MAX))
        return;
    const tmq_list_query_t query = {.filter = filter.filter,
                                    .cursor = http_target_parameter (&exchange->target, "cursor"),
                                    .limit = (uint32_t) limit};
    started (exchange, link_list (exchange->link, call_of (exchange, list_came), &query, &error),
             &error);
}

/* Counts. */

static void write_count (json_writer_t *writer, const tmq_completion_t *completion)
{
    json_write_key (writer, "count");
    json_write_uint (writer, completion->count);
}

static void count_came (void *context, tmq_completion_t *completion)
{
    answer_object (context, completion, write_count);
}

void task_count (exchange_t *exchange)
{
    query_filter_t filter;
    tmq_error_t error;
    if (!query_filter (exchange, &filter, NULL))
        return;
    started (exchange,
             link_tally (exchange->link, call_of (exchange, count_came), &filter.filter, &error),
             &error);
}

/* Short ids. */

static void answer_id (exchange_t *exchange, const tmq_id_t *id)
{
    char text[37];
    response_t response;
    json_writer_t writer = answer_json (&response);
    tmq_id_format (id, text);
    json_write_object_begin (&writer);
    json_write_key (&writer, "task_id");
    json_write_text (&writer, text);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    answer (exchange, &response);
}

static void found_task_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    if (!came_well (exchange, completion, NULL))
        return;
    if (owns (exchange, completion->task))
        answer_id (exchange, &completion->task->id);
    else
        answer_code (exchange, TMQ_NOT_FOUND, NULL, NULL);
}

static void resolved (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    tmq_error_t error;
    if (!came_well (exchange, completion, NULL))
        return;
    if (!policy_own_only (exchange->principal->roles, exchange->route->access))
        answer_id (exchange, &completion->task_id);
    else
        started (exchange,
                 link_get (exchange->link, call_of (exchange, found_task_came),
                           &completion->task_id, &error),
                 &error);
}

void task_resolve (exchange_t *exchange)
{
    tmq_error_t error;
    started (exchange,
             link_resolve (exchange->link, call_of (exchange, resolved), exchange->parameters[0],
                           &error),
             &error);
}

/* Waits. */

/* However short a wait is to be: the broker has so long to tell what has ended before. */
enum { LOOK_MS = 100 };

typedef struct waited_task {
    tmq_id_t id;
    bool known; /* how its wait ended */
    int code;
    tmq_status_t status;
} waited_task_t;

typedef struct waiting {
    waited_task_t tasks[TMQ_WAIT_IDS_MAX];
    size_t count;
    account_t *account; /* that they count to; NULL: not yet */
    uint32_t timeout_ms;
    bool any;
} waiting_t;

static void clear_waiting (void *state)
{
    waiting_t *waiting = state;
    if (waiting->account != NULL)
        waiting->account->held[HOLD_WAITED] -= waiting->count;
    account_release (waiting->account);
    free (waiting);
}

static void write_waited (json_writer_t *writer, const waited_task_t *task)
{
    char id[37];
    tmq_id_format (&task->id, id);
    json_write_object_begin (writer);
    json_write_key (writer, "task_id");
    json_write_text (writer, id);
    json_write_key (writer, "code");
    json_write_text (writer, tmq_code_name (task->code));
    json_write_key (writer, "status");
    json_write_text (writer, task->code == TMQ_OK ? tmq_status_text (task->status) : NULL);
    json_write_object_end (writer);
}

static void answer_waiting (exchange_t *exchange)
{
    const waiting_t *waiting = exchange->state;
    char id[37];
    response_t response;
    json_writer_t writer = answer_json (&response);
    json_write_object_begin (&writer);
    json_write_key (&writer, "items");
    json_write_array_begin (&writer);
    for (size_t i = 0; i < waiting->count; i++)
        if (waiting->tasks[i].known)
            write_waited (&writer, &waiting->tasks[i]);
    json_write_array_end (&writer);
    json_write_key (&writer, "pending");
    json_write_array_begin (&writer);
    for (size_t i = 0; i < waiting->count; i++) {
        if (waiting->tasks[i].known)
            continue;
        tmq_id_format (&waiting->tasks[i].id, id);
        json_write_text (&writer, id);
    }
    json_write_array_end (&writer);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    answer (exchange, &response);
}

/* What one principal may wait for is a part of what all may. False: answered. */
static bool may_wait (exchange_t *exchange, const waiting_t *waiting)
{
    const uint64_t most = service_of (exchange)->settings.numbers[SETTING_PRINCIPAL_WAIT_IDS_MAX];
    const uint64_t waits = exchange->account->held[HOLD_WAITED];
    if (waiting->count > most || waits > most - waiting->count) {
        answer_problem (exchange, &(problem_t){.kind = PROBLEM_RATE_LIMITED,
                                               .detail = "more tasks are waited for at a time than "
                                                         "'principal_wait_ids_max' allows"});
        return false;
    }
    return true;
}

/* What has ended is told, and the others are pending still: so it may begin again. */
static void give_way (void *context, const char *why)
{
    (void) why;
    answer_waiting (context);
}

static void have_seat (exchange_t *exchange, waiting_t *waiting)
{
    waiting->account = account_retain (exchange->account);
    waiting->account->held[HOLD_WAITED] += waiting->count;
    seat_take (&exchange->seat, link_polls (exchange->link), exchange->account, give_way, exchange);
}

/* A wait that ran out says nothing about its task, which is pending still. */
static void wait_ended (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    waiting_t *waiting = exchange->state;
    const bool over = completion->code == TMQ_TIMEOUT;
    for (size_t i = 0; i < waiting->count; i++) {
        waited_task_t *task = &waiting->tasks[i];
        if (memcmp (&task->id, &completion->task_id, sizeof task->id) != 0)
            continue;
        task->known = !over;
        task->code = completion->code;
        task->status = completion->status;
    }
    if (exchange->ticket == 0 || (waiting->any && !over))
        answer_waiting (exchange);
}

static void start_wait (exchange_t *exchange)
{
    waiting_t *waiting = exchange->state;
    tmq_id_t ids[TMQ_WAIT_IDS_MAX];
    tmq_error_t error;
    for (size_t i = 0; i < waiting->count; i++)
        ids[i] = waiting->tasks[i].id;
    exchange->on_stop = answer_waiting;
    if (!may_wait (exchange, waiting))
        return;
    const int code = answer_wait (exchange, call_of (exchange, wait_ended), ids, waiting->count,
                                  waiting->timeout_ms, &error);
    if (code == TMQ_OK)
        have_seat (exchange, waiting);
    started (exchange, code, &error);
}

static bool add_wait (exchange_t *exchange, waiting_t *waiting, const json_t *value)
{
    tmq_id_t id;
    if (json_string_value (value) == NULL ||
        tmq_id_parse (&id, json_string_value (value)) != TMQ_OK) {
        answer_invalid (exchange, "/ids", "ids are UUIDs of 36 characters");
        return false;
    }
    for (size_t i = 0; i < waiting->count; i++)
        if (memcmp (&waiting->tasks[i].id, &id, sizeof id) == 0)
            return true;
    waiting->tasks[waiting->count++].id = id;
    return true;
}

static bool read_wait_member (exchange_t *exchange, waiting_t *waiting, const char *key,
                              const json_t *value)
{
    const uint64_t most = service_of (exchange)->settings.numbers[SETTING_WAIT_MAX];
    const char *text = json_string_value (value);
    if (strcmp (key, "ids") == 0 && json_array_size (value) >= 1 &&
        json_array_size (value) <= TMQ_WAIT_IDS_MAX) {
        for (size_t i = 0; i < json_array_size (value); i++)
            if (!add_wait (exchange, waiting, json_array_get (value, i)))
                return false;
        return true;
    }
    if (strcmp (key, "timeout_ms") == 0 && json_is_integer (value) &&
        json_integer_value (value) >= 0 && (uint64_t) json_integer_value (value) <= most) {
        waiting->timeout_ms = (uint32_t) json_integer_value (value);
        if (waiting->timeout_ms < LOOK_MS)
            waiting->timeout_ms = LOOK_MS;
        return true;
    }
    if (strcmp (key, "mode") == 0 && text != NULL &&
        (strcmp (text, "all") == 0 || strcmp (text, "any") == 0)) {
        waiting->any = strcmp (text, "any") == 0;
        return true;
    }
    answer_invalid (
        exchange, key,
        "the body is {\"ids\":[1..%d],\"timeout_ms\":0..%u,\"mode\":\"all\" or \"any\"}",
        TMQ_WAIT_IDS_MAX, (unsigned) most);
    return false;
}

static bool read_wait (exchange_t *exchange, waiting_t *waiting)
{
    char error[INPUT_ERROR_SIZE];
    const char *key;
    json_t *value;
    bool good = true;
    const slice_t text = {(const char *) exchange->body.data, exchange->body.length};
    json_t *object = input_object (text, error);
    waiting->timeout_ms = (uint32_t) service_of (exchange)->settings.numbers[SETTING_WAIT_MAX];
    if (object == NULL)
        answer_invalid (exchange, "", "%s", error);
    else if (json_object_get (object, "ids") == NULL)
        answer_invalid (exchange, "/ids", "ids are missing");
    good = json_object_get (object, "ids") != NULL;
    json_object_foreach (object, key, value)
    {
        good = good && read_wait_member (exchange, waiting, key, value);
    }
    json_decref (object);
    if (good)
        exchange->drop_body (exchange); /* it may be waited for long */
    return good;
}

void task_wait (exchange_t *exchange)
{
    waiting_t *waiting = keep_state (exchange, sizeof *waiting, clear_waiting);
    if (waiting != NULL && read_wait (exchange, waiting))
        start_wait (exchange);
}
