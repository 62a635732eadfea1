/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl cancel: of ids, or of all that match conditions.
 *
 * Many requests are on their way at once, and what is printed keeps the order of the ids. Of tasks
 * that conditions matched some may end before their turn: that is no failure. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"
#include "link/connect.h"
#include "link/ids.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/status.h"
#include "verbs/filter.h"
#include "verbs/many.h"
#include "verbs/verbs.h"

enum {
    OPEN_MAX = 8192, /* requests on their way at a time */
    BATCH = 1024
};

/* The answers that cannot be printed yet, by the number of their id modulo OPEN_MAX. */
typedef struct cancelling {
    app_t *app;
    items_t items;
    tally_t tally;
    status_line_t status;
    const tmq_id_t *ids;
    size_t count;
    size_t sent;
    size_t printed;
    size_t ended; /* before their turn, where a condition matched them */
    bool by_filter;
    tmq_completion_t *answers[OPEN_MAX];
} cancelling_t;

static int cancel_error (const app_t *app, const tmq_error_t *error, const char *id)
{
    if (error->code == TMQ_UNKNOWN)
        return id_error (app, error->code, id, "run it again: cancelling twice does no harm",
                         "%s: no answer in time: the task may be cancelled", id);
    return library_error (app, error, id);
}

static int put_answer (cancelling_t *self, const tmq_id_t *id, const tmq_completion_t *answer)
{
    const app_t *app = self->app;
    char text[37];
    tmq_id_format (id, text);
    if (self->by_filter &&
        (answer->code == TMQ_WRONG_STATUS || exit_of_code (answer->code) == EXIT_NOT_FOUND)) {
        self->ended++;
        return EXIT_OK;
    }
    if (answer->code != TMQ_OK) {
        const tmq_error_t error = {.code = answer->code};
        return cancel_error (app, answer->error ? answer->error : &error, text);
    }
    if (app_wants_json (app))
        items_add_task (&self->items, answer->task, false);
    else if (app->format == FORMAT_ID)
        puts (text);
    else
        show_ending (app, answer->task);
    return EXIT_OK;
}

static void print_answers (cancelling_t *self)
{
    if (self->printed == self->sent || !self->answers[self->printed % OPEN_MAX])
        return;
    status_hide (self->app);
    for (; self->printed < self->sent; self->printed++) {
        tmq_completion_t **place = &self->answers[self->printed % OPEN_MAX];
        if (!*place)
            break;
        tally_add (&self->tally, put_answer (self, &self->ids[self->printed], *place));
        tmq_completion_free (*place);
        *place = NULL;
    }
    if (self->printed < self->count)
        status_show_bar (self->app, self->printed, self->count, "%zu of %zu cancelled",
                         self->printed, self->count);
}

/* Sends as many as may be open; 0 or an exit code. */
static int send_some (cancelling_t *self)
{
    tmq_error_t error = {0};
    for (; self->sent < self->count && self->sent < self->printed + OPEN_MAX; self->sent++) {
        error.code =
            tmq_cancel_start (self->app->client, &self->ids[self->sent], NULL,
                              self->app->timeout_ms, (void *) (uintptr_t) self->sent, &error);
        if (error.code != TMQ_OK)
            return library_error (self->app, &error, NULL);
    }
    return 0;
}

static int cancel_all (cancelling_t *self)
{
    int code = 0;
    while (!code && self->printed < self->count) {
        tmq_completion_t *answers[BATCH];
        size_t taken = 0;
        if ((code = send_some (self)))
            break;
        const int polled = tmq_client_poll (answers, BATCH, &taken, self->app->client, TMQ_FOREVER);
        if (polled != TMQ_OK && polled != TMQ_TIMEOUT) {
            const tmq_error_t error = {.code = polled};
            code = library_error (self->app, &error, NULL);
        }
        for (size_t i = 0; i < taken; i++) {
            if (answers[i]->op == TMQ_OP_CANCEL)
                self->answers[(uintptr_t) answers[i]->user % OPEN_MAX] = answers[i];
            else
                tmq_completion_free (answers[i]);
        }
        print_answers (self);
    }
    for (size_t i = 0; i < OPEN_MAX; i++)
        tmq_completion_free (self->answers[i]);
    return code;
}

/* Conditions. */

/* Only what has not ended can be cancelled. */
static void keep_live (task_filter_t *filter)
{
    static const tmq_status_t live[] = {TMQ_STATUS_QUEUED, TMQ_STATUS_WORKING,
                                        TMQ_STATUS_INPUT_REQUIRED};
    if (filter->filter.statuses_count)
        return;
    memcpy (filter->statuses, live, sizeof live);
    filter->filter.statuses_count = sizeof live / sizeof *live;
}

static bool is_confirmed (uint64_t count)
{
    char line[16] = "";
    fprintf (stderr, "cancel %" PRIu64 " task%s? [y/N] ", count, count == 1 ? "" : "s");
    fflush (stderr);
    return fgets (line, sizeof line, stdin) && (*line == 'y' || *line == 'Y');
}

/* How many it would be; *go_on tells whether that is wanted. 0 or an exit code. */
static int confirm (app_t *app, const task_filter_t *filter, bool *go_on)
{
    uint64_t count;
    tmq_error_t error = {0};
    *go_on = false;
    error.code = tmq_count (&count, app->client, &filter->filter, app->timeout_ms, &error);
    if (error.code != TMQ_OK)
        return library_error (app, &error, NULL);
    if (args_has (&app->args, OPT_DRY_RUN)) {
        printf (app_wants_json (app) ? "{\"count\":%" PRIu64 "}\n" : "%" PRIu64 "\n", count);
        return EXIT_OK;
    }
    *go_on = count == 0 || args_has (&app->args, OPT_YES);
    if (*go_on)
        return EXIT_OK;
    if (!isatty (STDIN_FILENO) || !isatty (STDERR_FILENO))
        return usage_error (app, "--yes does it, --dry-run only counts",
                            "%" PRIu64 " task%s would be cancelled", count, count == 1 ? "" : "s");
    *go_on = is_confirmed (count);
    if (!*go_on)
        note (app, "nothing was cancelled");
    return *go_on ? EXIT_OK : EXIT_OTHER;
}

/* The ids of what is to be cancelled. *go_on false: nothing. 0 or an exit code. */
static int find_ids (app_t *app, tmq_id_t **ids, size_t *count, tally_t *tally, bool *go_on)
{
    task_filter_t filter;
    *go_on = true;
    if (app->args.operands_count) {
        app_resolve_operands (app, ids, count, tally);
        return 0;
    }
    int code = filter_from_args (&filter, app, true);
    keep_live (&filter);
    if (!code)
        code = confirm (app, &filter, go_on);
    return code || !*go_on ? code : many_ids (app, &filter.filter, ids, count);
}

static int check_options (const app_t *app)
{
    const args_t *args = &app->args;
    const int code = many_check (app);
    if (!code && args->operands_count && (args_has (args, OPT_YES) || args_has (args, OPT_DRY_RUN)))
        return usage_error (app, NULL, "--yes and --dry-run go with conditions");
    return code;
}

int run_cancel (app_t *app)
{
    tally_t tally = {0};
    tmq_id_t *ids = NULL;
    size_t count = 0;
    bool go_on;
    int code;
    if (!app_operands_are_ids (app, &code) || (code = check_options (app)) ||
        (code = app_connect (app)))
        return code;
    code = find_ids (app, &ids, &count, &tally, &go_on);
    if (code || !go_on) {
        free (ids);
        return code;
    }
    cancelling_t *self = must_alloc (sizeof *self);
    *self = (cancelling_t){.app = app, .tally = tally, .ids = ids, .count = count};
    self->by_filter = app->args.operands_count == 0;
    status_begin (&self->status, app);
    items_begin (&self->items, app, false);
    code = cancel_all (self);
    status_end (app);
    items_end (&self->items, NULL);
    if (!code && self->by_filter && count == 0)
        note (app, "no tasks");
    else if (!code && self->by_filter)
        note (app, "%zu cancelled, %zu had ended", self->tally.done - self->ended, self->ended);
    if (!code)
        code = tally_exit (&self->tally);
    free (self);
    free (ids);
    return code;
}
