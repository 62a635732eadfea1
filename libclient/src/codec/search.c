/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "codec/search.h"

#include <stdlib.h>

#include "codec/records.h"
#include "codec/tail.h"
#include "ids.h"

tmq_task_list_t *core_found_tasks_record (const Taskmq__FoundPage *page)
{
    Taskmq__TaskPage tasks = TASKMQ__TASK_PAGE__INIT;
    Taskmq__Task **list = calloc (page->n_found + 1, sizeof *list);
    if (list == NULL)
        return NULL;
    for (size_t i = 0; i < page->n_found; i++)
        list[i] = page->found[i]->task;
    tasks.tasks = list;
    tasks.n_tasks = page->n_found;
    tasks.next = page->next;
    tmq_task_list_t *out = core_task_list_record (&tasks);
    free (list);
    return out;
}

/* Every task is there, and every hit within its excerpt. */
static bool is_whole (const Taskmq__FoundPage *page)
{
    for (size_t i = 0; i < page->n_found; i++) {
        const Taskmq__Found *found = page->found[i];
        const size_t length = strlen (found->excerpt);
        if (found->task == NULL || found->n_hits % 2 != 0)
            return false;
        for (size_t j = 0; j < found->n_hits; j += 2)
            if (found->hits[j] > length || found->hits[j + 1] > length - found->hits[j])
                return false;
    }
    return true;
}

static void fill (tmq_found_t *out, tail_t *tail, const Taskmq__Found *in)
{
    tail_align (tail);
    tmq_hit_t *hits = tail->base == NULL ? NULL : (void *) (tail->base + tail->used);
    const size_t count = in->n_hits / 2;
    tail->used += count * sizeof *hits;
    for (size_t i = 0; hits != NULL && i < count; i++)
        hits[i] = (tmq_hit_t){in->hits[2 * i], in->hits[2 * i + 1]};
    *out = (tmq_found_t){in->turn, tail_text (tail, in->excerpt), hits, count};
}

tmq_found_list_t *core_found_list_record (const Taskmq__FoundPage *page)
{
    tail_t tail = {NULL, 0};
    tmq_found_t measured;
    if (!is_whole (page))
        return NULL;
    for (size_t i = 0; i < page->n_found; i++)
        fill (&measured, &tail, page->found[i]);
    tail_text (&tail, page->stalled);
    const size_t list = page->n_found * sizeof (tmq_found_t);
    tmq_found_list_t *out = calloc (1, sizeof *out + list + tail.used);
    if (out == NULL)
        return NULL;
    tmq_found_t *found = (tmq_found_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) (found + page->n_found), 0};
    for (size_t i = 0; i < page->n_found; i++)
        fill (&found[i], &tail, page->found[i]);
    out->found = found;
    out->behind = page->behind;
    out->lag = page->lag;
    out->building = page->building;
    out->built = page->built;
    out->last = page->tasks;
    out->count = page->count;
    out->stalled = tail_text (&tail, page->stalled);
    return out;
}
