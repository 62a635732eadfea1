/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl list and count. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/patience.h"
#include "link/connect.h"
#include "link/ids.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/tasks.h"
#include "verbs/filter.h"
#include "verbs/search.h"
#include "verbs/verbs.h"

/* list. */

static void put_page (items_t *items, task_table_t *table, const tmq_task_list_t *page)
{
    const app_t *app = items->app;
    if (app->format == FORMAT_TABLE || app->format == FORMAT_WIDE) {
        task_table_show (table, page->tasks, page->count);
        items->count += page->count;
        return;
    }
    for (size_t i = 0; i < page->count; i++) {
        char id[37];
        tmq_id_format (&page->tasks[i]->id, id);
        if (app->format == FORMAT_ID) {
            puts (id);
            items->count++;
        } else {
            items_add_task (items, page->tasks[i], false);
        }
    }
}

/* Pages until the wanted number is shown or nothing follows. */
static int list_pages (app_t *app, items_t *items, task_table_t *table, tmq_list_query_t *query,
                       uint64_t wanted)
{
    tmq_task_list_t *page = NULL;
    tmq_task_list_t *last = NULL;
    tmq_error_t error = {0};
    int code = 0;
    while (!code && items->count < wanted) {
        const uint64_t left = wanted - items->count;
        query->limit = left < TMQ_LIST_LIMIT_MAX ? (uint32_t) left : TMQ_LIST_LIMIT_MAX;
        patience_t patience = {0};
        do
            error.code = tmq_list (&page, app->client, query, app->timeout_ms, &error);
        while (patience_waits (&patience, &error, app->timeout_ms));
        if (error.code != TMQ_OK) {
            code = library_error (app, &error, NULL);
            break;
        }
        put_page (items, table, page);
        tmq_task_list_free (last);
        last = page;
        query->cursor = page->next;
        if (!*page->next)
            break;
    }
    const char *next = last ? last->next : "";
    items_end (items, next);
    if (!code && *next && !app_wants_json (app))
        note_last (app, "more follow: --cursor %s, or --all", next);
    tmq_task_list_free (last);
    return code;
}

/* 0, or the exit code of what does not go together. */
static int check_options (const app_t *app)
{
    const args_t *args = &app->args;
    const bool table = app->format == FORMAT_TABLE || app->format == FORMAT_WIDE;
    if (args_has (args, OPT_ALL) && args_has (args, OPT_LIMIT))
        return usage_error (app, NULL, "--all and --limit exclude each other");
    if (args_has (args, OPT_COLUMNS) && !table)
        return usage_error (app, "--fields chooses the keys of JSON",
                            "--columns goes with a table only");
    if (args_has (args, OPT_COLUMNS) && args_has (args, OPT_SEARCH))
        return usage_error (app, NULL, "--columns and --search exclude each other");
    if (args_has (args, OPT_RANK) && !args_has (args, OPT_SEARCH))
        return usage_error (app, NULL, "--rank goes with --search");
    if (args_has (args, OPT_RANK) && (args_has (args, OPT_ALL) || args_has (args, OPT_CURSOR)))
        return usage_error (app, "--limit says how many of the best",
                            "--rank has one page: without --all and --cursor");
    return 0;
}

int run_list (app_t *app)
{
    const args_t *args = &app->args;
    const bool all = args_has (args, OPT_ALL);
    task_filter_t filter;
    items_t items;
    task_table_t table;
    int code = check_options (app);
    if (code || (code = task_table_init (&table, app, args_text (args, OPT_COLUMNS))) ||
        (code = app_resolve_options (app)) || (code = filter_from_args (&filter, app, true)) ||
        (code = app_connect (app)))
        return code;
    tmq_list_query_t query = {.filter = filter.filter, .cursor = args_text (args, OPT_CURSOR)};
    const uint64_t wanted =
        all ? UINT64_MAX : args_number (args, OPT_LIMIT, TMQ_LIST_LIMIT_DEFAULT);
    if (args_has (args, OPT_SEARCH))
        return search_list (app, &query, wanted);
    items_begin (&items, app, false);
    code = list_pages (app, &items, &table, &query, wanted);
    if (app->format == FORMAT_WIDE && table.left_out > 0)
        note_last (app, "no room for %zu columns here: --columns chooses, a pipe gets all",
                   table.left_out);
    if (!code && items.count == 0 && !app_wants_json (app) && app->format != FORMAT_ID)
        note (app, "no tasks");
    return code;
}

/* count. */

int run_count (app_t *app)
{
    task_filter_t filter;
    uint64_t count = 0;
    tmq_error_t error = {0};
    int code = app_resolve_options (app);
    if (code || (code = filter_from_args (&filter, app, true)) || (code = app_connect (app)))
        return code;
    if (args_has (&app->args, OPT_SEARCH))
        code = search_count (app, &filter.filter, &count);
    else if (tmq_count (&count, app->client, &filter.filter, app->timeout_ms, &error) != TMQ_OK)
        code = library_error (app, &error, NULL);
    if (code)
        return code;
    printf (app_wants_json (app) ? "{\"count\":%" PRIu64 "}\n" : "%" PRIu64 "\n", count);
    return EXIT_OK;
}
