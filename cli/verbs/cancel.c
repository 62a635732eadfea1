/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl cancel: of ids, or of all that match conditions.
 *
 * Many requests are on their way at once, and what is printed keeps the order of the ids. Of tasks
 * that conditions matched some may end before their turn: that is no failure. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/memory.h"
#include "link/connect.h"
#include "link/ids.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/status.h"
#include "verbs/many.h"
#include "verbs/tree.h"
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
    tree_t tree; /* --tree: they are of it */
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
        return unknown_error (app, error, id, "run it again: cancelling twice does no harm",
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

/* What is submitted while its parent is being cancelled is a part as well. */
static int cancel_tree (cancelling_t *self)
{
    int code = 0;
    while (!code && self->count < self->tree.count) {
        self->ids = self->tree.ids;
        self->count = self->tree.count;
        code = cancel_all (self);
        if (!code)
            code = tree_grow (&self->tree, self->app);
    }
    return code;
}

/* Only what has not ended can be cancelled. */
static const tmq_status_t LIVE[] = {TMQ_STATUS_QUEUED, TMQ_STATUS_WORKING,
                                    TMQ_STATUS_INPUT_REQUIRED};
static const many_t CANCEL = {"cancel", "cancelled", LIVE, sizeof LIVE / sizeof *LIVE, false};

/* In the place of the ids that were named. *go_on false: it was only counted. */
static int begin_tree (cancelling_t *self, bool *go_on)
{
    const int code = tree_open (&self->tree, self->app, self->ids, self->count, TREE_CANCEL_MAX);
    *go_on = !args_has (&self->app->args, OPT_DRY_RUN);
    if (!code && !*go_on)
        printf (app_wants_json (self->app) ? "{\"count\":%zu}\n" : "%zu\n", self->tree.count);
    self->ids = self->tree.ids;
    self->count = 0;
    return code;
}

int run_cancel (app_t *app)
{
    tally_t tally = {0};
    tmq_id_t *ids = NULL;
    size_t count = 0;
    bool go_on;
    int code;
    if (!app_operands_are_ids (app, &code) || (code = many_check (app)) ||
        (code = app_connect (app)))
        return code;
    code = many_find (app, &CANCEL, &ids, &count, &tally, &go_on);
    if (code || !go_on) {
        free (ids);
        return code;
    }
    cancelling_t *self = must_alloc (sizeof *self);
    *self = (cancelling_t){.app = app, .tally = tally, .ids = ids, .count = count};
    const bool tree = args_has (&app->args, OPT_TREE);
    self->by_filter = tree || app->args.operands_count == 0;
    if (tree)
        code = begin_tree (self, &go_on);
    status_begin (&self->status, app);
    items_begin (&self->items, app, false);
    if (!code && go_on)
        code = tree ? cancel_tree (self) : cancel_all (self);
    status_end (app);
    items_end (&self->items, NULL);
    if (!code && self->by_filter && go_on && self->count == 0)
        note (app, "no tasks");
    else if (!code && self->by_filter && go_on)
        note (app, "%zu cancelled, %zu had ended", self->tally.done - self->ended, self->ended);
    if (!code)
        code = tally_exit (&self->tally);
    tree_clear (&self->tree);
    free (self);
    free (ids);
    return code;
}
