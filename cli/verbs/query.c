/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl get, payload, result: one answer per id. */
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/memory.h"
#include "link/connect.h"
#include "link/ids.h"
#include "screen/attempts.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "verbs/receipt.h"
#include "verbs/tree.h"
#include "verbs/verbs.h"
#include "verbs/wait.h"

enum { EVENTS_PAGE = 1000 };

/* get. */

/* All events of a task, oldest first. */
typedef struct history_view {
    tmq_event_list_t **pages; /* newest page first */
    size_t pages_count;
    tmq_event_t **events;
    size_t count;
} history_view_t;

static void history_clear (history_view_t *self)
{
    for (size_t i = 0; i < self->pages_count; i++)
        tmq_event_list_free (self->pages[i]);
    free (self->pages);
    free (self->events);
}

static int history_load (history_view_t *self, const app_t *app, const tmq_id_t *id,
                         tmq_error_t *error)
{
    uint64_t before_seq = 0;
    memset (self, 0, sizeof *self);
    do {
        tmq_event_list_t *page;
        const int code =
            tmq_events (&page, app->client, id, before_seq, EVENTS_PAGE, app->timeout_ms, error);
        if (code != TMQ_OK)
            return code;
        self->pages = must_grow (self->pages, self->pages_count + 1, sizeof (void *));
        self->pages[self->pages_count++] = page;
        self->count += page->count;
        before_seq = page->before_seq;
    } while (before_seq);
    self->events = must_alloc (self->count * sizeof (void *));
    size_t at = 0;
    for (size_t i = self->pages_count; i-- > 0;) {
        for (size_t j = 0; j < self->pages[i]->count; j++)
            self->events[at++] = self->pages[i]->events[j];
    }
    return TMQ_OK;
}

static void write_parts (json_writer_t *writer, const parts_t *parts)
{
    json_write_key (writer, "parts");
    if (!parts->total) {
        json_write_null (writer);
        return;
    }
    json_write_object_begin (writer);
    json_write_key (writer, "total");
    json_write_uint (writer, parts->total);
    for (unsigned i = TMQ_STATUS_QUEUED; i <= TMQ_STATUS_CANCELLED; i++) {
        json_write_key (writer, tmq_status_text ((tmq_status_t) i));
        json_write_uint (writer, parts->of[i]);
    }
    json_write_object_end (writer);
}

static void write_full (items_t *items, const tmq_task_t *task, const tmq_task_t *payload,
                        const history_view_t *history, const parts_t *parts,
                        const attempts_view_t *attempts)
{
    json_writer_t *writer = items_open (items);
    json_write_object_begin (writer);
    write_task_members (writer, task, true);
    write_parts (writer, parts);
    json_write_key (writer, "questions");
    write_questions (writer, items->app, task);
    if (payload) {
        json_write_key (writer, "payload");
        json_write_body (writer, payload->content_type, payload->body_bytes ? payload->body : "",
                         payload->body_bytes);
    }
    if (args_has (&items->app->args, OPT_ATTEMPTS)) {
        json_write_key (writer, "attempts");
        attempts_write (writer, attempts);
    }
    if (args_has (&items->app->args, OPT_EVENTS)) {
        json_write_key (writer, "events");
        json_write_array_begin (writer);
        for (size_t i = 0; i < history->count; i++)
            write_event (writer, history->events[i]);
        json_write_array_end (writer);
    }
    json_write_object_end (writer);
    items_close (items);
}

static void show_full (items_t *items, const tmq_task_t *task, const tmq_task_t *payload,
                       const history_view_t *history, const parts_t *parts,
                       const attempts_view_t *attempts)
{
    const app_t *app = items->app;
    char id[37];
    if (app_wants_json (app)) {
        write_full (items, task, payload, history, parts, attempts);
    } else if (app->format == FORMAT_ID) {
        tmq_id_format (&task->id, id);
        puts (id);
    } else {
        if (items->count++)
            fputc ('\n', stdout);
        show_card (app, task, parts->total ? parts->of : NULL, payload, history->events,
                   history->count);
        if (args_has (&app->args, OPT_ATTEMPTS))
            attempts_show (app, attempts);
    }
}

static int get_one (app_t *app, items_t *items, const tmq_id_t *id)
{
    tmq_task_t *task = NULL;
    tmq_task_t *payload = NULL;
    history_view_t history = {0};
    parts_t parts = {0};
    attempts_view_t attempts = {0};
    tmq_error_t error = {0};
    char text[37];
    error.code = tmq_get (&task, app->client, id, app->timeout_ms, &error);
    if (error.code == TMQ_OK && args_has (&app->args, OPT_PAYLOAD))
        error.code = tmq_payload (&payload, app->client, id, app->timeout_ms, &error);
    if (error.code == TMQ_OK && args_has (&app->args, OPT_EVENTS))
        error.code = history_load (&history, app, id, &error);
    if (error.code == TMQ_OK && task->has_parts)
        error.code = parts_count (&parts, app, id, &error);
    if (error.code == TMQ_OK && args_has (&app->args, OPT_ATTEMPTS))
        error.code = attempts_load (&attempts, app, id, &error);
    if (error.code == TMQ_OK)
        show_full (items, task, payload, &history, &parts, &attempts);
    if (error.code == TMQ_OK && task->status == TMQ_STATUS_INPUT_REQUIRED &&
        !app_wants_json (app) && app->format != FORMAT_ID)
        show_questions (app, id);
    attempts_clear (&attempts);
    history_clear (&history);
    tmq_task_free (payload);
    tmq_task_free (task);
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
    put_body (task);
    tmq_task_free (task);
    return EXIT_OK;
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
