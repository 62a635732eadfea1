/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl list --search, count --search, and search reindex. */
#include <inttypes.h>

#include "base/exit.h"
#include "link/connect.h"
#include "screen/found.h"
#include "screen/output.h"
#include "verbs/search.h"
#include "verbs/verbs.h"

static const char HOW[] =
    "disk full, \"disk full\", begin*, disk NOT full, disk OR tape: at most 16 "
    "words and phrases, 4 of them with a *, and 1,024 bytes";

int search_failed (app_t *app, tmq_error_t *error)
{
    if (strncmp (error->text, "search", strlen ("search")) == 0 && !*error->hint)
        snprintf (error->hint, sizeof error->hint, "%s", HOW);
    return library_error (app, error, NULL);
}

/* Pages until the wanted number is shown or nothing follows. */
static int search_pages (app_t *app, items_t *items, tmq_search_t *search, uint64_t wanted)
{
    tmq_found_list_t *page = NULL;
    tmq_found_list_t *last = NULL;
    tmq_error_t error = {0};
    int code = 0;
    while (!code && items->count < wanted) {
        const uint64_t left = wanted - items->count;
        search->limit = left < TMQ_LIST_LIMIT_MAX ? (uint32_t) left : TMQ_LIST_LIMIT_MAX;
        error.code = tmq_search (&page, app->client, search, app->timeout_ms, &error);
        if (error.code != TMQ_OK) {
            code = search_failed (app, &error);
            break;
        }
        found_show (items, page);
        tmq_found_list_free (last);
        last = page;
        search->cursor = page->tasks->next;
        if (!*page->tasks->next)
            break;
    }
    const char *next = last ? last->tasks->next : "";
    items_end (items, next);
    if (!code && *next && !app_wants_json (app))
        note_last (app, "more follow: --cursor %s, or --all", next);
    if (last)
        found_note (app, last);
    tmq_found_list_free (last);
    return code;
}

int search_list (app_t *app, const tmq_list_query_t *query, uint64_t wanted)
{
    const args_t *args = &app->args;
    items_t items;
    tmq_search_t search;
    tmq_search_init (&search);
    search.text = args_text (args, OPT_SEARCH);
    search.filter = query->filter;
    search.cursor = query->cursor;
    search.ranked = args_has (args, OPT_RANK);
    items_begin (&items, app, false);
    const int code = search_pages (app, &items, &search, wanted);
    if (!code && items.count == 0 && !app_wants_json (app) && app->format != FORMAT_ID)
        note (app, "nothing was found");
    return code;
}

int search_count (app_t *app, const tmq_filter_t *filter, uint64_t *out)
{
    tmq_found_list_t *found;
    tmq_search_t search;
    tmq_error_t error = {0};
    tmq_search_init (&search);
    search.text = args_text (&app->args, OPT_SEARCH);
    search.filter = *filter;
    search.count = true;
    error.code = tmq_search (&found, app->client, &search, app->timeout_ms, &error);
    if (error.code != TMQ_OK)
        return search_failed (app, &error);
    *out = found->count;
    found_note (app, found);
    tmq_found_list_free (found);
    return EXIT_OK;
}

static int search_reindex (app_t *app)
{
    tmq_error_t error = {0};
    const int code = app_connect (app);
    if (code)
        return code;
    if (tmq_search_reindex (app->client, app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, NULL);
    if (app_wants_json (app))
        puts ("{\"reindex\":true}");
    else
        note (app, "the broker builds a new index; searches find what is in it by then");
    return EXIT_OK;
}

const verb_t search_verbs[] = {{"reindex", "", 0, 0, search_reindex}, {.name = NULL}};
