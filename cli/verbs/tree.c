/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A task remembers that it has parts, so only of those the parts are asked for. A task has one
 * parent and is made after it, so every task is found once in a look. */
#include "verbs/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/patience.h"
#include "ids.h"
#include "screen/output.h"

static int compare (const void *a, const void *b)
{
    return id_compare (a, b);
}

static void add (tree_t *self, const tmq_id_t *id, bool has_parts)
{
    if (self->count == self->capacity) {
        self->capacity = self->capacity == 0 ? 1024 : 2 * self->capacity;
        self->ids = must_grow (self->ids, self->capacity, sizeof *self->ids);
        self->sorted = must_grow (self->sorted, self->capacity, sizeof *self->sorted);
        self->has_parts = must_grow (self->has_parts, self->capacity, sizeof *self->has_parts);
    }
    self->ids[self->count] = *id;
    self->has_parts[self->count++] = has_parts;
}

/* known: of the tasks of earlier looks, in order. */
static bool is_known (const tree_t *self, size_t known, const tmq_id_t *id)
{
    return known > 0 && bsearch (id, self->sorted, known, sizeof *id, compare) != NULL;
}

/* The parts of some tasks, which are not known yet or have parts of their own. */
static int take_parts (tree_t *self, app_t *app, const tmq_id_t *parents, size_t count,
                       size_t known)
{
    tmq_error_t error = {0};
    tmq_list_query_t query = {.filter = {.parents = parents, .parents_count = count},
                              .limit = TMQ_LIST_LIMIT_MAX};
    tmq_task_list_t *page = NULL;
    int code = 0;
    do {
        tmq_task_list_t *next = NULL;
        error.code = tmq_list (&next, app->client, &query, app->timeout_ms, &error);
        tmq_task_list_free (page);
        page = next;
        if (error.code != TMQ_OK)
            return library_error (app, &error, NULL);
        for (size_t i = 0; !code && i < page->count; i++) {
            const tmq_task_t *task = page->tasks[i];
            if (is_known (self, known, &task->id))
                continue;
            if (self->count == self->max)
                code = code_error (app, TMQ_LIMIT, "the tree of one of its parts",
                                   "the tree has more than %zu tasks", self->max);
            else
                add (self, &task->id, task->has_parts);
        }
        query.cursor = page->next;
    } while (!code && *page->next);
    tmq_task_list_free (page);
    return code;
}

/* Of the tasks from `from` on, as far as they have parts; those that come are at the end. */
static int look (tree_t *self, app_t *app, size_t from, size_t known)
{
    int code = 0;
    while (!code && from < self->count) {
        tmq_id_t parents[TMQ_FILTER_VALUES_MAX];
        size_t count = 0;
        for (; from < self->count && count < TMQ_FILTER_VALUES_MAX; from++)
            if (self->has_parts[from])
                parents[count++] = self->ids[from];
        if (count > 0)
            code = take_parts (self, app, parents, count, known);
    }
    return code;
}

int tree_open (tree_t *out, app_t *app, const tmq_id_t *ids, size_t count, size_t max)
{
    *out = (tree_t){.max = max};
    if (count > max)
        return usage_error (app, NULL, "--tree goes with at most %zu ids", max);
    for (size_t i = 0; i < count; i++)
        add (out, &ids[i], true);
    /* A task that was named may be a part of another one that was. */
    memcpy (out->sorted, ids, count * sizeof *ids);
    qsort (out->sorted, count, sizeof *ids, compare);
    return look (out, app, 0, count);
}

int tree_grow (tree_t *self, app_t *app)
{
    const size_t known = self->count;
    memcpy (self->sorted, self->ids, known * sizeof *self->ids);
    qsort (self->sorted, known, sizeof *self->ids, compare);
    for (size_t i = 0; i < known; i++)
        self->has_parts[i] = true; /* it may have got some meanwhile */
    return look (self, app, 0, known);
}

void tree_clear (tree_t *self)
{
    free (self->ids);
    free (self->sorted);
    free (self->has_parts);
}

/* Counts. */

static int count_parts (parts_t *out, app_t *app, const tmq_id_t *id, tmq_error_t *error)
{
    enum { STATUSES = TMQ_STATUS_CANCELLED - TMQ_STATUS_QUEUED + 1 };
    size_t open = 0;
    int code = TMQ_OK;
    memset (out, 0, sizeof *out);
    for (uintptr_t i = TMQ_STATUS_QUEUED; code == TMQ_OK && i <= TMQ_STATUS_CANCELLED; i++) {
        const tmq_status_t status = (tmq_status_t) i;
        const tmq_filter_t filter = {
            .parents = id, .parents_count = 1, .statuses = &status, .statuses_count = 1};
        code = tmq_count_start (app->client, &filter, app->timeout_ms, (void *) i, error);
        open += code == TMQ_OK;
    }
    while (open > 0) {
        tmq_completion_t *answers[STATUSES];
        size_t taken = 0;
        const int polled = tmq_client_poll (answers, STATUSES, &taken, app->client, TMQ_FOREVER);
        if (polled != TMQ_OK && polled != TMQ_TIMEOUT)
            return error->code = polled;
        for (size_t i = 0; i < taken; i++) {
            open -= answers[i]->op == TMQ_OP_COUNT;
            if (answers[i]->op == TMQ_OP_COUNT && answers[i]->code == TMQ_OK)
                out->total += out->of[(uintptr_t) answers[i]->user] = answers[i]->count;
            else if (answers[i]->op == TMQ_OP_COUNT && code == TMQ_OK) {
                code = answers[i]->code;
                if (answers[i]->error)
                    *error = *answers[i]->error;
            }
            tmq_completion_free (answers[i]);
        }
    }
    error->code = code;
    return code;
}

int parts_count (parts_t *out, app_t *app, const tmq_id_t *id, tmq_error_t *error)
{
    patience_t patience = {0};
    int code;
    do
        code = count_parts (out, app, id, error);
    while (patience_waits (&patience, error, app->timeout_ms));
    return code;
}
