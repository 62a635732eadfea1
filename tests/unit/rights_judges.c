/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rights_judges.h"

#include <string.h>

#include "ids.h"

static char letter_of (unsigned code)
{
    switch (code) {
    case TMQ_OK:
    case TMQ_WRONG_STATUS: return 'y';
    case TMQ_DENIED: return 'd';
    case TMQ_NOT_FOUND: return 'n';
    case TMQ_EXPIRED: return 'e';
    case TMQ_STALE_LEASE: return 's';
    default: return '?';
    }
}

char judge_code (rig_t *rig, uint64_t request, unsigned n)
{
    (void) n;
    return letter_of (rig_code (rig, ME, request));
}

/* The engine gives what it allows to the server, four at a time. */
char judge_log (rig_t *rig, uint64_t request, unsigned n)
{
    errand_t *errand;
    while ((errand = engine_errand_next (rig->engine)) != NULL)
        engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
    return rig_code (rig, ME, request) == TMQ_LIMIT ? 'y' : judge_code (rig, request, n);
}

/* No task here has a blob: who may read it is told that. */
char judge_blob (rig_t *rig, uint64_t request, unsigned n)
{
    return rig_code (rig, ME, request) == TMQ_NO_BLOB ? 'y' : judge_code (rig, request, n);
}

/* The requests about many tasks. */
char judge_changed (rig_t *rig, uint64_t request, unsigned n)
{
    bool whole = rig_code (rig, ME, request) != TMQ_OK;
    return whole ? judge_code (rig, request, n) : letter_of (rig_changed (rig, ME, request));
}

/* Quiet when it is done. */
char judge_quiet (rig_t *rig, uint64_t request, unsigned n)
{
    return rig_reply (rig, ME, request) == NULL ? 'y' : judge_code (rig, request, n);
}

char judge_body (rig_t *rig, uint64_t request, unsigned n)
{
    (void) n;
    const rig_item_t *item = rig_reply (rig, ME, request);
    if (item->reply->body_case != TASKMQ__REPLY__BODY_TASK)
        return letter_of (item->reply->code);
    assert_string_not_equal (item->reply->task->owner, "");
    return item->reply->task->meta[0] == '\0' && item->body_bytes == 0 ? 'b' : 'y';
}

char judge_page (rig_t *rig, uint64_t request, unsigned n)
{
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    if (reply->body_case != TASKMQ__REPLY__BODY_PAGE)
        return letter_of (reply->code);
    for (size_t i = 0; i < reply->page->n_tasks; i++)
        if (is_id (&reply->page->tasks[i]->task_id, n))
            return reply->page->tasks[i]->meta[0] == '\0' ? 'b' : 'y';
    return '-';
}

char judge_resolved (rig_t *rig, uint64_t request, unsigned n)
{
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    if (reply->body_case == TASKMQ__REPLY__BODY_RESOLVED)
        assert_true (is_id (&reply->resolved, n));
    return letter_of (reply->code);
}

char judge_waited (rig_t *rig, uint64_t request, unsigned n)
{
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    if (reply->body_case != TASKMQ__REPLY__BODY_WAITED)
        return letter_of (reply->code);
    assert_true (is_id (&reply->waited->items[0]->task_id, n));
    return letter_of (reply->waited->items[0]->code);
}

char judge_item (rig_t *rig, uint64_t request, unsigned n)
{
    (void) n;
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    return letter_of (reply->body_case == TASKMQ__REPLY__BODY_SUBMITTED
                          ? reply->submitted->items[0]->code
                          : reply->code);
}

char judge_renewed (rig_t *rig, uint64_t request, unsigned n)
{
    (void) n;
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    return letter_of (reply->body_case == TASKMQ__REPLY__BODY_RENEWED
                          ? reply->renewed->leases[0]->code
                          : reply->code);
}

/* The events, the notices and the snapshot of the subscription with the number of the task. */
char judge_stream (rig_t *rig, uint64_t request, unsigned n)
{
    if (rig_code (rig, ME, request) != TMQ_OK)
        return letter_of (rig_code (rig, ME, request));
    bool event = false;
    char snapshot = '-';
    for (size_t i = 0; i < rig->peers[ME].count; i++) {
        const rig_item_t *item = &rig->peers[ME].items[i];
        for (size_t k = 0;
             item->list != NULL && item->events->subscription == n && k < item->list->n_events; k++)
            event = event || is_id (&item->list->events[k]->task_id, n);
        for (size_t k = 0; item->snapshot != NULL && item->snapshot->subscription == n &&
                           k < item->snapshot->n_tasks;
             k++)
            if (is_id (&item->snapshot->tasks[k]->task_id, n))
                snapshot = item->snapshot->tasks[k]->meta[0] == '\0' ? 'b' : 'y';
    }
    assert_int_equal (event, snapshot != '-');
    return snapshot;
}

/* … and whether there are counters. */
char judge_stats (rig_t *rig, uint64_t request, unsigned n)
{
    bool found = false;
    bool counters = false;
    for (size_t i = 0; i < rig->peers[ME].count; i++) {
        const Taskmq__Reply *reply = rig->peers[ME].items[i].reply;
        if (reply == NULL || reply->id != request || reply->body_case != TASKMQ__REPLY__BODY_STATS)
            continue;
        counters = counters || reply->stats->n_counters > 0;
        for (size_t k = 0; k < reply->stats->n_queues; k++)
            found = found || strcmp (reply->stats->queues[k]->queue, n == QUEUE ? "z" : "q") == 0;
    }
    return found ? (counters ? 'y' : 'b') : '-';
}

/* The question of a task among all: whole, bare, or not there. */
char judge_inbox (rig_t *rig, uint64_t request, unsigned n)
{
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    if (reply->code != TMQ_OK)
        return letter_of (reply->code);
    for (size_t i = 0; i < reply->inbox_page->n_questions; i++) {
        const Taskmq__Question *question = reply->inbox_page->questions[i];
        if (is_id (&question->task_id, n))
            return question->request[0] == '\0' ? 'b' : 'y';
    }
    return '-';
}

char judge_history (rig_t *rig, uint64_t request, unsigned n)
{
    (void) n;
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    if (reply->body_case == TASKMQ__REPLY__BODY_EVENT_PAGE)
        assert_true (reply->event_page->list->n_events > 0);
    return letter_of (reply->code);
}
