/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/many.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"
#include "base/patience.h"
#include "link/ids.h"
#include "screen/items.h"
#include "screen/output.h"
#include "verbs/filter.h"

/* As many waits and requests as the library holds at a time. */
enum { TASKS_MAX = 100 * 1000 };

int many_check (const app_t *app)
{
    const bool filtered = filter_is_given (app);
    if (app->args.operands_count && filtered)
        return usage_error (app, NULL, "%s takes ids or conditions, not both",
                            app->args.command->name);
    if (app->args.operands_count == 0 && !filtered)
        return usage_error (app, "taskctl list shows what a condition matches",
                            "%s needs ids, or conditions such as --queue NAME",
                            app->args.command->name);
    const bool tree = args_has (&app->args, OPT_TREE);
    if (tree && app->args.operands_count == 0)
        return usage_error (app, NULL, "--tree goes with ids");
    if (app->args.operands_count &&
        (args_has (&app->args, OPT_YES) || (args_has (&app->args, OPT_DRY_RUN) && !tree)))
        return usage_error (app, NULL, "--yes and --dry-run go with conditions");
    return 0;
}

static bool is_confirmed (const many_t *what, uint64_t count)
{
    char line[16] = "";
    fprintf (stderr, "%s %" PRIu64 " task%s? [y/N] ", what->verb, count, count == 1 ? "" : "s");
    fflush (stderr);
    return fgets (line, sizeof line, stdin) && (*line == 'y' || *line == 'Y');
}

/* How many it would be; *go_on tells whether that is wanted. 0 or an exit code. */
static int confirm (app_t *app, const many_t *what, const task_filter_t *filter, bool *go_on)
{
    uint64_t count;
    tmq_error_t error = {0};
    *go_on = false;
    patience_t patience = {0};
    do
        error.code = tmq_count (&count, app->client, &filter->filter, app->timeout_ms, &error);
    while (patience_waits (&patience, &error, app->timeout_ms));
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
                            "%" PRIu64 " task%s would be %s", count, count == 1 ? "" : "s",
                            what->past);
    *go_on = is_confirmed (what, count);
    if (!*go_on)
        note (app, "nothing was %s", what->past);
    return *go_on ? EXIT_OK : EXIT_OTHER;
}

static bool is_possible (const many_t *what, tmq_status_t status)
{
    for (size_t i = 0; i < what->statuses_count; i++)
        if (what->statuses[i] == status)
            return true;
    return !what->strict;
}

/* A status with which it can never be done is a mistake, and no condition that matches nothing. */
static int check_statuses (const app_t *app, const many_t *what, const task_filter_t *filter)
{
    for (size_t i = 0; i < filter->filter.statuses_count; i++) {
        const tmq_status_t status = filter->statuses[i];
        if (!is_possible (what, status))
            return usage_error (app, NULL, "no task that is %s can be %s", tmq_status_text (status),
                                what->past);
    }
    return 0;
}

int many_find (app_t *app, const many_t *what, tmq_id_t **ids, size_t *count, tally_t *tally,
               bool *go_on)
{
    task_filter_t filter;
    *go_on = true;
    if (app->args.operands_count) {
        app_resolve_operands (app, ids, count, tally);
        return 0;
    }
    int code = app_resolve_options (app);
    if (code || (code = filter_from_args (&filter, app, true)))
        return code;
    if (!filter.filter.statuses_count) {
        memcpy (filter.statuses, what->statuses, what->statuses_count * sizeof *what->statuses);
        filter.filter.statuses_count = what->statuses_count;
    }
    code = check_statuses (app, what, &filter);
    if (!code)
        code = confirm (app, what, &filter, go_on);
    return code || !*go_on ? code : many_ids (app, &filter.filter, ids, count);
}

int many_ids (app_t *app, const tmq_filter_t *filter, tmq_id_t **ids, size_t *count)
{
    tmq_task_list_t *page = NULL;
    tmq_error_t error = {0};
    int code = 0;
    tmq_list_query_t query = {.filter = *filter, .limit = TMQ_LIST_LIMIT_MAX};
    *ids = NULL;
    *count = 0;
    while (!code) {
        tmq_task_list_t *next = NULL;
        patience_t patience = {0};
        do
            error.code = tmq_list (&next, app->client, &query, app->timeout_ms, &error);
        while (patience_waits (&patience, &error, app->timeout_ms));
        tmq_task_list_free (page);
        page = next;
        if (error.code != TMQ_OK) {
            code = library_error (app, &error, NULL);
            break;
        }
        *ids = must_grow (*ids, *count + page->count + 1, sizeof **ids);
        for (size_t i = 0; i < page->count; i++)
            (*ids)[(*count)++] = page->tasks[i]->id;
        query.cursor = page->next;
        if (!*page->next)
            break;
        if (*count >= TASKS_MAX)
            code = code_error (app, TMQ_LIMIT, "conditions that match fewer",
                               "more than %d tasks match", TASKS_MAX);
    }
    tmq_task_list_free (page);
    if (code) {
        free (*ids);
        *ids = NULL;
    }
    return code;
}
