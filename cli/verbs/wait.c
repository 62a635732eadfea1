/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl wait, and waiting for one result. */
#include "verbs/wait.h"

#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "link/connect.h"
#include "link/ids.h"
#include "screen/bar.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "verbs/filter.h"
#include "verbs/many.h"
#include "verbs/receipt.h"
#include "verbs/verbs.h"

enum { BATCH = 64 };

static uint32_t wait_ms (const app_t *app)
{
    return (uint32_t) args_number (&app->args, OPT_FOR, TMQ_FOREVER);
}

/* One result. */

static int deadline_error (const app_t *app, const tmq_id_t *id)
{
    char text[37];
    tmq_id_format (id, text);
    id_error (app, TMQ_TIMEOUT, text, NULL, "%s has not ended in %s", text,
              args_text (&app->args, OPT_FOR));
    return EXIT_DEADLINE;
}

int wait_for_result (app_t *app, const tmq_id_t *id)
{
    tmq_status_t status;
    tmq_task_t *task;
    tmq_error_t error = {0};
    char text[37];
    tmq_id_format (id, text);
    error.code = tmq_wait (&status, app->client, id, wait_ms (app), &error);
    if (error.code == TMQ_TIMEOUT)
        return deadline_error (app, id);
    if (error.code == TMQ_OK)
        error.code = tmq_result (&task, app->client, id, app->timeout_ms, &error);
    if (error.code != TMQ_OK)
        return library_error (app, &error, text);
    const int code = put_result (app, task);
    tmq_task_free (task);
    return code;
}

/* Several tasks. */

typedef struct waiting {
    app_t *app;
    items_t items;
    size_t total;
    size_t ended;
    bar_t bar;
    bool deadline;
    bool lost;   /* some could not be found */
    bool failed; /* some failed or were cancelled */
    int code;    /* something else went wrong */
} waiting_t;

static void put_ended (waiting_t *self, const tmq_task_t *task)
{
    char id[37];
    if (app_wants_json (self->app)) {
        items_add_task (&self->items, task, true);
        return;
    }
    tmq_id_format (&task->id, id);
    if (self->app->format == FORMAT_ID)
        puts (id);
    else
        show_ending (self->app, task);
    fflush (stdout);
}

static void take_error (waiting_t *self, const tmq_error_t *error, const tmq_id_t *id)
{
    char text[37];
    tmq_id_format (id, text);
    const int code = library_error (self->app, error, text);
    if (code == EXIT_NOT_FOUND)
        self->lost = true;
    else
        self->code = code;
}

static void take_ended (waiting_t *self, const tmq_id_t *id)
{
    tmq_task_t *task;
    tmq_error_t error = {0};
    error.code = tmq_get (&task, self->app->client, id, self->app->timeout_ms, &error);
    if (error.code != TMQ_OK) {
        take_error (self, &error, id);
        return;
    }
    self->failed = self->failed || task->status != TMQ_STATUS_COMPLETED;
    put_ended (self, task);
    tmq_task_free (task);
}

static void take_answer (waiting_t *self, const tmq_completion_t *answer)
{
    bar_clear (&self->bar);
    self->ended++;
    if (answer->code == TMQ_OK) {
        take_ended (self, &answer->task_id);
    } else if (answer->code == TMQ_TIMEOUT) {
        self->deadline = true;
        self->ended--;
        self->total--;
    } else {
        tmq_error_t error = {.code = answer->code};
        take_error (self, answer->error ? answer->error : &error, &answer->task_id);
    }
    bar_draw (&self->bar, self->ended, self->total);
}

static int wait_all (waiting_t *self, const tmq_id_t *ids, size_t count)
{
    tmq_error_t error = {0};
    size_t open = 0;
    for (size_t at = 0; at < count; at += TMQ_WAIT_IDS_MAX) {
        const size_t some = count - at < TMQ_WAIT_IDS_MAX ? count - at : TMQ_WAIT_IDS_MAX;
        error.code =
            tmq_wait_start (self->app->client, ids + at, some, wait_ms (self->app), NULL, &error);
        if (error.code != TMQ_OK)
            return library_error (self->app, &error, NULL);
        open += some;
    }
    bar_draw (&self->bar, self->ended, self->total);
    while (open > 0) {
        tmq_completion_t *answers[BATCH];
        size_t taken = 0;
        const int code = tmq_client_poll (answers, BATCH, &taken, self->app->client, TMQ_FOREVER);
        if (code != TMQ_OK && code != TMQ_TIMEOUT) {
            error.code = code;
            return library_error (self->app, &error, NULL);
        }
        for (size_t i = 0; i < taken; i++) {
            open -= answers[i]->op == TMQ_OP_WAIT;
            if (answers[i]->op == TMQ_OP_WAIT)
                take_answer (self, answers[i]);
            tmq_completion_free (answers[i]);
        }
    }
    return 0;
}

/* Of several reasons the deadline comes first, then what was not found, then what failed. */
static int wait_exit (const waiting_t *self, size_t unended)
{
    if (self->deadline) {
        code_error (self->app, TMQ_TIMEOUT, NULL, "%zu of %zu tasks have not ended in %s", unended,
                    self->ended + unended, args_text (&self->app->args, OPT_FOR));
        return EXIT_DEADLINE;
    }
    if (self->lost)
        return EXIT_NOT_FOUND;
    if (self->failed)
        return EXIT_TASK;
    return self->code;
}

int run_wait (app_t *app)
{
    waiting_t self = {.app = app};
    task_filter_t filter;
    tally_t tally = {0};
    tmq_id_t *ids;
    size_t count;
    int code;
    if (!app_operands_are_ids (app, &code) || (code = many_check (app)) ||
        (code = app_connect (app)))
        return code;
    if (app->args.operands_count)
        app_resolve_operands (app, &ids, &count, &tally);
    else if ((code = filter_from_args (&filter, app, true)) ||
             (code = many_ids (app, &filter.filter, &ids, &count)))
        return code;
    self.lost = tally.failed && tally.code == EXIT_NOT_FOUND;
    self.code = tally.failed ? tally.code : 0;
    self.total = count;
    bar_init (&self.bar, app, "ended");
    self.bar.shown = self.bar.shown && count > 1;
    items_begin (&self.items, app, false);
    code = wait_all (&self, ids, count);
    items_end (&self.items, NULL);
    free (ids);
    return code ? code : wait_exit (&self, count - self.ended);
}
