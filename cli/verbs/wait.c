/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl wait, and waiting for one result. */
#include "verbs/wait.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "link/connect.h"
#include "link/ids.h"
#include "link/state.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/status.h"
#include "verbs/filter.h"
#include "verbs/many.h"
#include "verbs/receipt.h"
#include "verbs/tree.h"
#include "verbs/verbs.h"

enum { BATCH = 64, PATIENCE_MS = 3000 };

static uint32_t wait_ms (const app_t *app)
{
    return (uint32_t) args_number (&app->args, OPT_FOR, TMQ_FOREVER);
}

/* The waiting. */

typedef void wait_take_t (void *context, const tmq_completion_t *answer);

/* Who waits at a terminal for a task that nobody works on learns what holds it. */
static void tell_why (app_t *app, const tmq_id_t *id)
{
    tmq_explanation_t *why = NULL;
    if (tmq_why (&why, app->client, id, app->timeout_ms, NULL) != TMQ_OK)
        return;
    if (why->status == TMQ_STATUS_QUEUED || why->status == TMQ_STATUS_INPUT_REQUIRED)
        note (app, "taskctl: still waiting: %s", why->sentence);
    tmq_explanation_free (why);
}

/* Gives each id's answer to take. What a poll brings beside them is news of the connection. */
static int wait_loop (app_t *app, link_state_t *link, const tmq_id_t *ids, size_t count,
                      uint32_t for_ms, wait_take_t *take, void *context)
{
    tmq_error_t error = {0};
    size_t open = 0;
    bool patient = count == 1 && isatty (STDERR_FILENO);
    for (size_t at = 0; at < count; at += TMQ_WAIT_IDS_MAX) {
        const size_t some = count - at < TMQ_WAIT_IDS_MAX ? count - at : TMQ_WAIT_IDS_MAX;
        error.code = tmq_wait_start (app->client, ids + at, some, for_ms, NULL, &error);
        if (error.code != TMQ_OK)
            return library_error (app, &error, NULL);
        open += some;
    }
    while (open > 0) {
        tmq_completion_t *answers[BATCH];
        size_t taken = 0;
        const int code = tmq_client_poll (answers, BATCH, &taken, app->client,
                                          patient ? PATIENCE_MS : TMQ_FOREVER);
        if (code == TMQ_TIMEOUT && patient && !link->lost_at_ms)
            tell_why (app, ids);
        patient = patient && code != TMQ_TIMEOUT;
        if (code != TMQ_OK && code != TMQ_TIMEOUT) {
            error.code = code;
            return library_error (app, &error, NULL);
        }
        for (size_t i = 0; i < taken; i++) {
            open -= answers[i]->op == TMQ_OP_WAIT;
            if (answers[i]->op == TMQ_OP_WAIT)
                take (context, answers[i]);
            else
                link_state_take (link, answers[i]);
            tmq_completion_free (answers[i]);
        }
    }
    return 0;
}

/* The deadline of a wait may pass before the broker, or a slow machine, has answered at all. Then
 * one more look tells what has ended by now, unless nobody is there to ask. */
static bool is_worth_a_look (const app_t *app, const link_state_t *link, int code)
{
    return (code == TMQ_TIMEOUT || code == TMQ_UNREACHABLE) && args_has (&app->args, OPT_FOR) &&
           !link->lost_at_ms;
}

static link_state_t link_state (const app_t *app)
{
    return (link_state_t){.app = app, .meanwhile = "waiting for it"};
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

static void take_one (void *context, const tmq_completion_t *answer)
{
    tmq_error_t *error = context;
    if (answer->error)
        *error = *answer->error;
    error->code = answer->code;
}

int wait_for_result (app_t *app, const tmq_id_t *id, const char *path)
{
    tmq_task_t *task;
    tmq_error_t error = {0};
    link_state_t link = link_state (app);
    char text[37];
    tmq_id_format (id, text);
    int code = wait_loop (app, &link, id, 1, wait_ms (app), take_one, &error);
    if (code)
        return code;
    const bool look = is_worth_a_look (app, &link, error.code);
    if (error.code == TMQ_TIMEOUT && !look)
        return deadline_error (app, id);
    if (error.code == TMQ_OK || look)
        error.code = tmq_result (&task, app->client, id, app->timeout_ms, &error);
    if (error.code == TMQ_WRONG_STATUS && look)
        return deadline_error (app, id);
    if (error.code != TMQ_OK)
        return library_error (app, &error, text);
    code = put_result (app, task, path);
    tmq_task_free (task);
    return code;
}

/* Several tasks. */

typedef struct waiting {
    app_t *app;
    link_state_t link;
    items_t items;
    size_t total;
    size_t ended;
    size_t unended; /* at the deadline */
    bool lost;      /* some could not be found */
    bool failed;    /* some failed or were cancelled */
    int code;       /* something else went wrong */
} waiting_t;

static void show_bar (const waiting_t *self)
{
    if (self->total > 1 && self->ended + self->unended < self->total)
        status_show_bar (self->app, self->ended, self->total, "%zu of %zu ended", self->ended,
                         self->total);
}

static void put_ended (waiting_t *self, const tmq_task_t *task)
{
    char id[37];
    self->ended++;
    self->failed = self->failed || task->status != TMQ_STATUS_COMPLETED;
    status_hide (self->app);
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
    self->ended++;
    if (code == EXIT_NOT_FOUND)
        self->lost = true;
    else
        self->code = code;
}

/* Shows the task if it has ended; else the deadline has passed. */
static void look_at (waiting_t *self, const tmq_id_t *id)
{
    tmq_task_t *task;
    tmq_error_t error = {0};
    error.code = tmq_get (&task, self->app->client, id, self->app->timeout_ms, &error);
    if (error.code != TMQ_OK) {
        take_error (self, &error, id);
        return;
    }
    if (tmq_status_terminal (task->status))
        put_ended (self, task);
    else
        self->unended++;
    tmq_task_free (task);
}

static void take_answer (void *context, const tmq_completion_t *answer)
{
    waiting_t *self = context;
    if (answer->code == TMQ_OK || is_worth_a_look (self->app, &self->link, answer->code)) {
        look_at (self, &answer->task_id);
    } else if (answer->code == TMQ_TIMEOUT) {
        self->unended++;
    } else {
        tmq_error_t error = {.code = answer->code};
        take_error (self, answer->error ? answer->error : &error, &answer->task_id);
    }
    show_bar (self);
}

/* Of several reasons the deadline comes first, then what was not found, then what failed. */
static int wait_exit (const waiting_t *self)
{
    const char *time = args_text (&self->app->args, OPT_FOR);
    const size_t total = self->ended + self->unended;
    if (self->unended && total == 1)
        code_error (self->app, TMQ_TIMEOUT, NULL, "the task has not ended in %s", time);
    else if (self->unended)
        code_error (self->app, TMQ_TIMEOUT, NULL, "%zu of %zu tasks have not ended in %s",
                    self->unended, total, time);
    if (self->unended)
        return EXIT_DEADLINE;
    if (self->lost)
        return EXIT_NOT_FOUND;
    if (self->failed)
        return EXIT_TASK;
    return self->code;
}

static int compare_ids (const void *a, const void *b)
{
    return memcmp (a, b, sizeof (tmq_id_t));
}

/* Who names a task twice hears of it once. The order stays. */
static size_t drop_repeated (tmq_id_t *ids, size_t count)
{
    size_t kept = 0;
    tmq_id_t *sorted = must_alloc (count * sizeof *sorted);
    bool *seen = must_alloc (count * sizeof *seen);
    memcpy (sorted, ids, count * sizeof *ids);
    memset (seen, 0, count * sizeof *seen);
    qsort (sorted, count, sizeof *sorted, compare_ids);
    for (size_t i = 0; i < count; i++) {
        tmq_id_t *first = bsearch (&ids[i], sorted, count, sizeof *sorted, compare_ids);
        while (first > sorted && compare_ids (first - 1, first) == 0)
            first--;
        if (seen[first - sorted])
            continue;
        seen[first - sorted] = true;
        ids[kept++] = ids[i];
    }
    free (seen);
    free (sorted);
    return kept;
}

static int wait_some (waiting_t *self, const tmq_id_t *ids, size_t count, uint32_t for_ms)
{
    return wait_loop (self->app, &self->link, ids, count, for_ms, take_answer, self);
}

/* A task may get parts until it has ended, and they too: so it looks again at the end of all. */
static int wait_tree (waiting_t *self, const tmq_id_t *ids, size_t count)
{
    tree_t tree;
    size_t waited = 0;
    const uint64_t from_ms = mono_ms ();
    const uint32_t most_ms = wait_ms (self->app);
    int code = tree_open (&tree, self->app, ids, count, TREE_WAIT_MAX);
    while (!code && waited < tree.count) {
        const uint64_t spent_ms = mono_ms () - from_ms;
        uint32_t left_ms = most_ms;
        if (most_ms != TMQ_FOREVER)
            left_ms = spent_ms < most_ms ? most_ms - (uint32_t) spent_ms : 0;
        self->total = tree.count;
        show_bar (self);
        code = wait_some (self, tree.ids + waited, tree.count - waited, left_ms);
        waited = tree.count;
        if (!code && !self->unended)
            code = tree_grow (&tree, self->app);
    }
    tree_clear (&tree);
    return code;
}

int run_wait (app_t *app)
{
    waiting_t self = {.app = app, .link = link_state (app)};
    status_line_t status;
    task_filter_t filter;
    tally_t tally = {0};
    tmq_id_t *ids;
    size_t count;
    int code;
    app->tells_link = true;
    if (!app_operands_are_ids (app, &code) || (code = many_check (app)) ||
        (code = app_connect (app)))
        return code;
    if (app->args.operands_count)
        app_resolve_operands (app, &ids, &count, &tally);
    else if ((code = app_resolve_options (app)) || (code = filter_from_args (&filter, app, true)) ||
             (code = many_ids (app, &filter.filter, &ids, &count)))
        return code;
    count = drop_repeated (ids, count);
    self.lost = tally.failed && tally.code == EXIT_NOT_FOUND;
    self.code = tally.failed ? tally.code : 0;
    self.total = count;
    if (count == 0 && app->args.operands_count == 0)
        note (app, "no task matches, so there is nothing to wait for");
    items_begin (&self.items, app, false);
    status_begin (&status, app);
    show_bar (&self);
    code = args_has (&app->args, OPT_TREE) ? wait_tree (&self, ids, count)
                                           : wait_some (&self, ids, count, wait_ms (app));
    status_end (app);
    items_end (&self.items, NULL);
    free (ids);
    return code ? code : wait_exit (&self);
}
