/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl worker: who works here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "link/connect.h"
#include "screen/listing.h"
#include "screen/members.h"
#include "screen/output.h"
#include "screen/show.h"
#include "units.h"
#include "verbs/verbs.h"
#include "view.h"

static void write_worker (items_t *items, const tmq_worker_info_t *worker)
{
    view_write_worker (items_open (items), worker);
    items_close (items);
}

/* Rows. */

static const char *join (char *out, size_t size, const char *const *texts, size_t count)
{
    out[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen (out);
        snprintf (out + used, size - used, "%s%s", i ? "," : "", texts[i]);
    }
    return out;
}

static const char *ago (char out[UNITS_TEXT_SIZE], uint64_t ms)
{
    return ms ? time_format_relative (out, (int64_t) ms, (int64_t) wall_ms ()) : "";
}

static const column_t columns[] = {{"NAME", COLUMN_TRUNCATE},
                                   {"STATE", COLUMN_LEFT},
                                   {"QUEUES", COLUMN_TRUNCATE},
                                   {"RUNNING", COLUMN_RIGHT},
                                   {"DONE", COLUMN_RIGHT | 3 * COLUMN_YIELDS},
                                   {"FAILED", COLUMN_RIGHT | 4 * COLUMN_YIELDS},
                                   {"HEARD", COLUMN_LEFT | 2 * COLUMN_YIELDS},
                                   {"HOST", COLUMN_TRUNCATE | 1 * COLUMN_YIELDS},
                                   {"ID", COLUMN_LEFT}};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void add_row (table_t *table, const tmq_worker_info_t *worker, bool wide)
{
    char queues[1024], heard[UNITS_TEXT_SIZE];
    table_row (table);
    table_set (table, 0, "%s", worker->name);
    table_set (table, 1, "%s", view_worker_state (worker));
    table_set (table, 2, "%s", join (queues, sizeof queues, worker->queues, worker->queues_count));
    table_set (table, 3, "%" PRIu32, worker->running);
    table_set (table, 4, "%" PRIu64, worker->completed);
    table_set (table, 5, "%" PRIu64, worker->failed + worker->lost);
    table_set (table, 6, "%s", ago (heard, worker->heard_at));
    table_set (table, 7, "%s", worker->host);
    if (wide)
        table_set (table, 8, "%s", worker->id);
}

static void put_workers (const app_t *app, listing_t *out, const tmq_worker_list_t *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (out->table)
            add_row (out->table, &list->workers[i], app->format == FORMAT_WIDE);
        else if (out->json)
            write_worker (&out->items, &list->workers[i]);
        else
            puts (list->workers[i].id);
    }
}

static void begin (listing_t *out, const app_t *app)
{
    listing_begin (out, app, columns, app->format == FORMAT_WIDE ? COLUMNS : COLUMNS - 1);
}

static int worker_list (app_t *app)
{
    listing_t out;
    tmq_worker_list_t *list = NULL;
    tmq_error_t error = {0};
    uint64_t before = 0;
    const bool all = args_has (&app->args, OPT_ALL);
    int code = app_connect (app);
    if (code)
        return code;
    begin (&out, app);
    do {
        if (tmq_workers (&list, app->client, before, TMQ_WORKER_LIST_MAX, all, app->timeout_ms,
                         &error) != TMQ_OK) {
            code = library_error (app, &error, NULL);
            break;
        }
        put_workers (app, &out, list);
        before = list->next;
        tmq_worker_list_free (list);
    } while (before != 0);
    listing_end (&out, code ? NULL : "no workers");
    return code;
}

/* A card. */

static void put_fact (const app_t *app, const char *name, const char *text)
{
    if (!*text)
        return;
    printf ("%s%-11s%s  ", paint_dim (app), name, paint_end (app));
    print_text (app, stdout, text);
    putchar ('\n');
}

static void put_moment (const app_t *app, const char *name, uint64_t ms, const char *by)
{
    char text[MOMENT_SIZE], relative[UNITS_TEXT_SIZE], line[160];
    if (!*moment_text (text, ms))
        return;
    snprintf (line, sizeof line, "%s (%s)%s%s", text, ago (relative, ms), *by ? " by " : "", by);
    put_fact (app, name, line);
}

static void put_counts (const app_t *app, const tmq_worker_info_t *worker)
{
    char line[200];
    snprintf (line, sizeof line,
              "%" PRIu64 " completed, %" PRIu64 " failed, %" PRIu64 " given back, %" PRIu64
              " lost, %" PRIu64 " cancelled",
              worker->completed, worker->failed, worker->released, worker->lost, worker->cancelled);
    put_fact (app, "attempts", line);
}

static void put_exit (const app_t *app, const tmq_worker_info_t *worker)
{
    char line[32];
    if (!worker->has_exit)
        return;
    snprintf (line, sizeof line, "%s %d", worker->exit_signal ? "signal" : "status",
              worker->exit_signal ? worker->exit_signal : worker->exit_status);
    put_fact (app, "exit", line);
}

static void put_card (const app_t *app, const tmq_worker_info_t *worker)
{
    char line[TMQ_LABELS_MAX * (TMQ_NAME_LENGTH_MAX + TMQ_LABEL_BYTES_MAX + 3)] = "";
    put_fact (app, "name", worker->name);
    put_fact (app, "worker id", worker->id);
    put_fact (app, "state", view_worker_state (worker));
    put_fact (app, "queues", join (line, sizeof line, worker->queues, worker->queues_count));
    snprintf (line, sizeof line, "%" PRIu32, worker->running);
    put_fact (app, "running", line);
    put_counts (app, worker);
    put_fact (app, "principal", worker->principal);
    put_fact (app, "role", worker->role);
    line[0] = '\0';
    for (size_t i = 0; i < worker->labels_count; i++) {
        const size_t used = strlen (line);
        snprintf (line + used, sizeof line - used, "%s%s=%s", i ? " " : "", worker->labels[i].key,
                  worker->labels[i].value);
    }
    put_fact (app, "labels", line);
    snprintf (line, sizeof line, "%s, process %" PRIu32, worker->host, worker->pid);
    put_fact (app, "host", worker->pid ? line : worker->host);
    put_fact (app, "version", worker->version);
    put_fact (app, "config", worker->config);
    put_fact (app, "depends on",
              join (line, sizeof line, worker->depends_on, worker->depends_on_count));
    put_moment (app, "started", worker->started_at, "");
    put_moment (app, "heard", worker->heard_at, "");
    put_moment (app, "drained", worker->drained_at, worker->drained_by);
    put_moment (app, "ended", worker->ended_at, "");
    put_exit (app, worker);
}

static int worker_show (app_t *app)
{
    items_t items;
    tmq_worker_list_t *list = NULL;
    tmq_error_t error = {0};
    const char *name = app->args.operands[1];
    int code = app_connect (app);
    if (code)
        return code;
    if (tmq_worker_show (&list, app->client, name, app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, name);
    if (app_wants_json (app)) {
        items_begin (&items, app, true);
        write_worker (&items, list->workers);
        items_end (&items, NULL);
    } else if (app->format == FORMAT_ID) {
        puts (list->workers[0].id);
    } else {
        put_card (app, list->workers);
    }
    tmq_worker_list_free (list);
    return EXIT_OK;
}

static int worker_drain (app_t *app)
{
    listing_t out;
    tmq_worker_list_t *list = NULL;
    tmq_error_t error = {0};
    const char *name = app->args.operands[1];
    int code = app_connect (app);
    if (code)
        return code;
    if (tmq_workers_drain (&list, app->client, name, app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, name);
    begin (&out, app);
    put_workers (app, &out, list);
    listing_end (&out, NULL);
    note (app, "%zu %s nothing new any more, and %s when done", list->count,
          list->count == 1 ? "worker gets" : "workers get", list->count == 1 ? "ends" : "end");
    tmq_worker_list_free (list);
    return EXIT_OK;
}

const verb_t worker_verbs[] = {{"list", "", 0, 0, worker_list},
                               {"show", "WORKER", 1, 1, worker_show},
                               {"drain", "WORKER", 1, 1, worker_drain},
                               {.name = NULL}};
