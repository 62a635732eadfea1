/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl list and count. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "filter.h"
#include "show.h"

static int too_many (const app_t *app, const char *option)
{
    return usage_error (app, NULL, "--%s is given more than %d times", option,
                        TMQ_FILTER_VALUES_MAX);
}

int filter_from_args (filter_t *out, const app_t *app, bool with_times)
{
    const args_t *args = &app->args;
    tmq_filter_t *filter = &out->filter;
    memset (out, 0, sizeof *out);
    filter->queues = out->queues;
    filter->statuses = out->statuses;
    filter->sessions = out->sessions;
    if (args_count (args, OPT_QUEUE) > TMQ_FILTER_VALUES_MAX)
        return too_many (app, "queue");
    if (args_count (args, OPT_STATUS) > TMQ_FILTER_VALUES_MAX)
        return too_many (app, "status");
    if (args_count (args, OPT_SESSION) > TMQ_FILTER_VALUES_MAX)
        return too_many (app, "session");
    for (size_t i = 0; i < args->values_count; i++) {
        const option_value_t *value = &args->values[i];
        if (value->spec->id == OPT_QUEUE)
            out->queues[filter->queues_count++] = value->text;
        else if (value->spec->id == OPT_STATUS)
            out->statuses[filter->statuses_count++] = (tmq_status_t) value->number;
        else if (value->spec->id == OPT_SESSION)
            out->sessions[filter->sessions_count++] = value->text;
    }
    if (with_times) {
        filter->created_since = args_number (args, OPT_SINCE, 0);
        filter->created_until = args_number (args, OPT_UNTIL, 0);
    }
    return 0;
}

/* list. */

static void put_page (items_t *items, const tmq_task_list_t *page)
{
    const app_t *app = items->app;
    if (app->format == FORMAT_TABLE || app->format == FORMAT_WIDE) {
        show_tasks (app, page->tasks, page->count, items->count == 0);
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
            items_add_task (items, page->tasks[i]);
        }
    }
}

/* Pages until the wanted number is shown or nothing follows. */
static int list_pages (const app_t *app, items_t *items, tmq_list_query_t *query, uint64_t wanted)
{
    tmq_task_list_t *page = NULL;
    tmq_task_list_t *last = NULL;
    tmq_error_t error = {0};
    int code = 0;
    while (!code && items->count < wanted) {
        const uint64_t left = wanted - items->count;
        query->limit = left < TMQ_LIST_LIMIT_MAX ? (uint32_t) left : TMQ_LIST_LIMIT_MAX;
        error.code = tmq_list (&page, app->client, query, app->timeout_ms, &error);
        if (error.code != TMQ_OK) {
            code = library_error (app, &error, NULL);
            break;
        }
        put_page (items, page);
        tmq_task_list_free (last);
        last = page;
        query->cursor = page->next;
        if (!*page->next)
            break;
    }
    const char *next = last ? last->next : "";
    items_end (items, next);
    if (!code && *next && !app_wants_json (app))
        note (app, "more follow: --cursor %s, or --all", next);
    tmq_task_list_free (last);
    return code;
}

int run_list (app_t *app)
{
    const args_t *args = &app->args;
    const bool all = args_has (args, OPT_ALL);
    filter_t filter;
    items_t items;
    if (all && args_has (args, OPT_LIMIT))
        return usage_error (app, NULL, "--all and --limit exclude each other");
    int code = filter_from_args (&filter, app, true);
    if (code || (code = app_connect (app)))
        return code;
    tmq_list_query_t query = {.filter = filter.filter, .cursor = args_text (args, OPT_CURSOR)};
    items_begin (&items, app, false);
    code = list_pages (app, &items, &query,
                       all ? UINT64_MAX : args_number (args, OPT_LIMIT, TMQ_LIST_LIMIT_DEFAULT));
    if (!code && items.count == 0 && !app_wants_json (app) && app->format != FORMAT_ID)
        note (app, "no tasks");
    return code;
}

/* count. */

int run_count (app_t *app)
{
    filter_t filter;
    uint64_t count;
    tmq_error_t error = {0};
    int code = filter_from_args (&filter, app, true);
    if (code || (code = app_connect (app)))
        return code;
    error.code = tmq_count (&count, app->client, &filter.filter, app->timeout_ms, &error);
    if (error.code != TMQ_OK)
        return library_error (app, &error, NULL);
    printf (app_wants_json (app) ? "{\"count\":%" PRIu64 "}\n" : "%" PRIu64 "\n", count);
    return EXIT_OK;
}
