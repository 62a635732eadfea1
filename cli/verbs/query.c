/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl get, payload, result: one answer per id. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "link/connect.h"
#include "link/ids.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "verbs/receipt.h"
#include "verbs/record.h"
#include "verbs/verbs.h"
#include "verbs/wait.h"

/* get. */

static unsigned wants_of (const args_t *args)
{
    return (args_has (args, OPT_PAYLOAD) ? RECORD_PAYLOAD : 0U) |
           (args_has (args, OPT_EVENTS) ? RECORD_EVENTS : 0U) |
           (args_has (args, OPT_ATTEMPTS) ? RECORD_ATTEMPTS : 0U) |
           (args_has (args, OPT_TURNS) ? RECORD_TURNS : 0U) |
           (args_has (args, OPT_TURN_FILES) ? RECORD_FILES : 0U);
}

static void show_record (items_t *items, app_t *app, const record_t *record)
{
    char id[37];
    if (app_wants_json (app)) {
        record_write (items_open (items), app, record);
        items_close (items);
    } else if (app->format == FORMAT_ID) {
        tmq_id_format (&record->task->id, id);
        puts (id);
    } else {
        if (items->count++)
            fputc ('\n', stdout);
        show_card (app, record->task, record->parts.total ? record->parts.of : NULL,
                   record->payload, record->events, record->events_count);
        if (record->wants & RECORD_ATTEMPTS)
            attempts_show (app, &record->attempts);
        if (record->wants & RECORD_TURNS)
            turns_show (app, &record->turns, &record->task->id);
        if (record->wants & RECORD_FILES)
            turns_show_files (app, &record->turns);
        if (record->task->status == TMQ_STATUS_INPUT_REQUIRED)
            show_questions (app, &record->task->id);
    }
}

static int get_one (app_t *app, items_t *items, const tmq_id_t *id)
{
    record_t record;
    tmq_error_t error = {0};
    char text[37];
    error.code = record_load (&record, app, id, wants_of (&app->args), &error);
    if (error.code == TMQ_OK)
        show_record (items, app, &record);
    record_clear (&record);
    tmq_id_format (id, text);
    return error.code == TMQ_OK ? EXIT_OK : library_error (app, &error, text);
}

int run_get (app_t *app)
{
    tally_t tally = {0};
    items_t items;
    tmq_id_t *ids;
    size_t count;
    int code;
    if (!app_operands_are_ids (app, &code) || (code = app_connect (app)))
        return code;
    app_resolve_operands (app, &ids, &count, &tally);
    const bool alone = app->args.operands_count == 1;
    if (alone && count == 0) {
        free (ids);
        return tally_exit (&tally);
    }
    items_begin (&items, app, alone);
    for (size_t i = 0; i < count; i++)
        tally_add (&tally, get_one (app, &items, &ids[i]));
    items_end (&items, NULL);
    free (ids);
    return tally_exit (&tally);
}

/* payload, result. */

int run_payload (app_t *app)
{
    tmq_id_t id;
    char text[37];
    tmq_task_t *task;
    tmq_error_t error = {0};
    int code;
    if (!app_operands_are_ids (app, &code) || (code = app_connect (app)) ||
        (code = app_resolve (app, &id, app->args.operands[0])))
        return code;
    error.code = tmq_payload (&task, app->client, &id, app->timeout_ms, &error);
    tmq_id_format (&id, text);
    if (error.code != TMQ_OK)
        return library_error (app, &error, text);
    if (task->payload_blob.bytes > 0)
        error.code = tmq_payload_save (app->client, &id, STDOUT_FILENO, app->timeout_ms, &error);
    else
        put_body (task);
    tmq_task_free (task);
    return error.code == TMQ_OK ? EXIT_OK : library_error (app, &error, text);
}

int run_result (app_t *app)
{
    const args_t *args = &app->args;
    tmq_id_t id;
    char text[37];
    tmq_task_t *task;
    tmq_error_t error = {0};
    int code;
    if (args_has (args, OPT_FOR) && !args_has (args, OPT_WAIT))
        return usage_error (app, NULL, "--for goes with --wait");
    app->tells_link = args_has (args, OPT_WAIT);
    if (!app_operands_are_ids (app, &code) || (code = app_connect (app)) ||
        (code = app_resolve (app, &id, args->operands[0])))
        return code;
    if (args_has (args, OPT_WAIT))
        return wait_for_result (app, &id);
    error.code = tmq_result (&task, app->client, &id, app->timeout_ms, &error);
    tmq_id_format (&id, text);
    if (error.code == TMQ_WRONG_STATUS)
        return id_error (app, error.code, text, "--wait waits for its end", "%s: %s", text,
                         error.text);
    if (error.code != TMQ_OK)
        return library_error (app, &error, text);
    code = put_result (app, task);
    tmq_task_free (task);
    return code;
}
