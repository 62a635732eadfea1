/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/many.h"

#include <stdlib.h>

#include "base/exit.h"
#include "base/memory.h"
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
    return 0;
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
        error.code = tmq_list (&next, app->client, &query, app->timeout_ms, &error);
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
