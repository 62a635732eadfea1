/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl get, payload, result: one answer per id. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "link/connect.h"
#include "link/fetched.h"
#include "link/ids.h"
#include "link/outfile.h"
#include "screen/artifacts.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "verbs/destination.h"
#include "verbs/receipt.h"
#include "verbs/record.h"
#include "verbs/verbs.h"
#include "verbs/wait.h"

/* get. */

static unsigned wants_of (const args_t *args)
{
    return RECORD_ARTIFACTS | (args_has (args, OPT_PAYLOAD) ? RECORD_PAYLOAD : 0U) |
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
        if (record->artifacts)
            artifacts_show (app, record->artifacts);
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

/* A payload or a result on its way to a file, or to standard output. */
typedef struct wanted {
    app_t *app;
    const tmq_id_t *id;
    bool is_result;
} wanted_t;

static int fetch_body (void *context, int fd, bool in_place, uint64_t *fetched, tmq_error_t *error)
{
    const wanted_t *self = context;
    tmq_client_t *client = self->app->client;
    const uint32_t timeout_ms = self->app->timeout_ms;
    if (self->is_result)
        return in_place ? tmq_result_fetch (client, self->id, fd, fetched, timeout_ms, error)
                        : tmq_result_save (client, self->id, fd, timeout_ms, error);
    return in_place ? tmq_payload_fetch (client, self->id, fd, fetched, timeout_ms, error)
                    : tmq_payload_save (client, self->id, fd, timeout_ms, error);
}

/* What fits a frame came with its task. */
static int save_small (app_t *app, const tmq_task_t *task, const char *path)
{
    outfile_t file;
    int code = outfile_open (&file, app, path, NULL);
    if (code)
        return code;
    const bool good = task->body_bytes == 0 ||
                      fwrite (task->body, 1, task->body_bytes, file.stream) == task->body_bytes;
    if (!good)
        code = outfile_error (app, path, errno);
    const int closed = outfile_close (&file, app, good, true);
    return code ? code : closed;
}

int save_body_as (app_t *app, const tmq_task_t *task, bool is_result, const char *path)
{
    char text[37];
    const tmq_blob_t *blob = is_result ? &task->result_blob : &task->payload_blob;
    wanted_t wanted = {app, &task->id, is_result};
    if (blob->bytes == 0)
        return save_small (app, task, path);
    tmq_id_format (&task->id, text);
    const fetched_t file = {.path = path,
                            .what = text,
                            .hash = blob->hash,
                            .bytes = blob->bytes,
                            .fetch = fetch_body,
                            .context = &wanted};
    return fetched_save (&file, app);
}

int run_payload (app_t *app)
{
    tmq_id_t id;
    char text[37];
    const char *path;
    tmq_task_t *task;
    tmq_error_t error = {0};
    int code = destination_take (app, &path);
    if (code || !app_operands_are_ids (app, &code) || (code = app_connect (app)) ||
        (code = app_resolve (app, &id, app->args.operands[0])))
        return code;
    error.code = tmq_payload (&task, app->client, &id, app->timeout_ms, &error);
    tmq_id_format (&id, text);
    if (error.code != TMQ_OK)
        return library_error (app, &error, text);
    if (path)
        code = save_body_as (app, task, false, path);
    else if (task->payload_blob.bytes > 0)
        error.code = tmq_payload_save (app->client, &id, STDOUT_FILENO, app->timeout_ms, &error);
    else
        put_body (task);
    tmq_task_free (task);
    return error.code == TMQ_OK ? code : library_error (app, &error, text);
}

int run_result (app_t *app)
{
    const args_t *args = &app->args;
    tmq_id_t id;
    char text[37];
    tmq_task_t *task;
    tmq_error_t error = {0};
    const char *path;
    int code = destination_take (app, &path);
    if (code)
        return code;
    if (args_has (args, OPT_FOR) && !args_has (args, OPT_WAIT))
        return usage_error (app, NULL, "--for goes with --wait");
    app->tells_link = args_has (args, OPT_WAIT);
    if (!app_operands_are_ids (app, &code) || (code = app_connect (app)) ||
        (code = app_resolve (app, &id, args->operands[0])))
        return code;
    if (args_has (args, OPT_WAIT))
        return wait_for_result (app, &id, path);
    error.code = tmq_result (&task, app->client, &id, app->timeout_ms, &error);
    tmq_id_format (&id, text);
    if (error.code == TMQ_WRONG_STATUS)
        return id_error (app, error.code, text, "--wait waits for its end", "%s: %s", text,
                         error.text);
    if (error.code != TMQ_OK)
        return library_error (app, &error, text);
    code = put_result (app, task, path);
    tmq_task_free (task);
    return code;
}
