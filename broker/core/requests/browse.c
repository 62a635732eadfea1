/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads that the tables have to answer: list, count, short ids, the history of a task. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/reads/find.h"
#include "core/reads/jobs.h"
#include "core/requests/answer.h"
#include "core/requests/attempts.h"
#include "core/requests/blobs.h"
#include "core/requests/browse.h"
#include "core/requests/cleanup.h"
#include "core/requests/cursor.h"
#include "core/requests/items.h"
#include "core/requests/pages.h"
#include "core/requests/search.h"
#include "core/requests/turns.h"
#include "core/requests/values.h"
#include "core/tasks/view.h"
#include "core/wire/pack.h"
#include "core/wire/page.h"
#include "core/wire/scan.h"
#include "ids.h"

static void use_filter (const call_t *call, read_job_t *job, filter_copy_t *filter)
{
    job->filter = filter;
    job->read.filter = filter->filter;
    job->read.filter.ns = job->ns;
    filter_scope (&job->read, &call->link->access);
}

void on_list (call_t *call)
{
    const Taskmq__List *request = call->request->list;
    if (page_refused (call))
        return;
    filter_copy_t *filter =
        filter_new (call->link->space->name, request->filter, &call->link->access);
    int64_t before = 0;
    if (request->cursor.len > 0) {
        before = cursor_number (&request->cursor, filter->digest);
        if (before <= 0) {
            filter_free (filter);
            reply_code (call, TMQ_BAD_CURSOR, NULL);
            return;
        }
    }
    read_job_t *job = page_job (call, READ_LIST);
    use_filter (call, job, filter);
    job->read.before_number = before;
    job->read.limit = request->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : request->limit;
    job->read.vain_max = call->requests->base->config.read_looks_max;
    job->read.bytes_max = ENVELOPE_FILL_BYTES; /* the rest of the page would be read for nothing */
}

void on_count (call_t *call)
{
    if (page_refused (call))
        return;
    filter_copy_t *filter =
        filter_new (call->link->space->name, call->request->count->filter, &call->link->access);
    read_job_t *job = page_job (call, READ_COUNT);
    use_filter (call, job, filter);
    job->read.vain_max = call->requests->base->config.read_looks_max;
}

void on_resolve (call_t *call)
{
    if (page_refused (call))
        return;
    read_job_t *job = page_job (call, READ_RESOLVE);
    filter_scope (&job->read, &call->link->access);
    strncpy (job->read.suffix, call->request->resolve->suffix, sizeof (job->read.suffix) - 1);
}

void on_task_events (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__TaskEvents *request = call->request->task_events;
    found_t found =
        find_id (self->reads, call->link, request->task_id.data, RIGHT_READ | RIGHT_OBSERVE);
    if (found.task == NULL && found.record == NULL) {
        reply_gone (call, &found);
        return;
    }
    if (page_refused (call))
        return;
    read_job_t *job = page_job (call, READ_HISTORY);
    if (found.task != NULL && found.task->changed > job->need)
        job->need = found.task->changed;
    memcpy (job->read.id.bytes, request->task_id.data, sizeof (job->read.id));
    job->read.last_seq = found.task != NULL ? found.task->last_seq : found.record->last_seq;
    job->read.before_seq = request->before_seq;
    job->read.limit = request->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : request->limit;
}

static void answer_list (requests_t *self, read_job_t *job)
{
    const read_t *read = &job->read;
    bytes_mark_t mark;
    view_phases (self->tasks, read->records, read->records_count);
    view_reports (self->tasks, read->records, read->records_count);
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_PAGE);
    size_t packed =
        pack_page (out, TASK_PAGE_TASKS, read->records, read->records_count, 0, NULL,
                   filter_access (job->filter, &job->link->access), &self->base->clocks);
    int64_t below = 0;
    if (packed == read->records_count && read->next_number > 0)
        below = read->next_number;
    else if (packed > 0 && (packed < read->records_count || read->more))
        below = read->records[packed - 1]->number;
    if (self->base->config.planted_bug == ENGINE_BUG_CURSOR_SKIPS && below > 1)
        below--;
    if (below > 0) {
        list_cursor_t next = cursor_make (below, job->filter->digest);
        bytes_append_blob (out, TASK_PAGE_NEXT, &next, sizeof (next));
    }
    bytes_close (out, page);
    reply_close (self, job->link, mark, 0, NULL);
}

static void answer_count (requests_t *self, read_job_t *job)
{
    Taskmq__Counted counted = TASKMQ__COUNTED__INIT;
    counted.count = job->read.count;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_message (out, TASKMQ__REPLY__BODY_COUNTED, &counted.base);
    reply_close (self, job->link, mark, 0, NULL);
}

/* What a link's workers hold they see, whoever owns it: leases are known in memory alone. A link
 * may have a million of them: as many are looked at as a page of tasks looks at in vain, the newest
 * of each worker first. */
static void resolve_held (const requests_t *self, read_job_t *job)
{
    const link_t *link = job->link;
    size_t left = self->base->config.read_looks_max;
    if (job->read.filter.scope == NULL || !access_may (job->read.filter.scope, RIGHT_WORK))
        return;
    for (node_t *at = link->workers.next; at != &link->workers; at = at->next) {
        const worker_t *worker = LIST_ITEM (at, const worker_t, of_link);
        for (node_t *node = worker->leases.prev; node != &worker->leases && left > 0;
             node = node->prev, left--) {
            const tmq_id_t *id = &LIST_ITEM (node, const detail_t, held)->task->id;
            if (!id_ends_with (id, job->read.suffix) || id_equal (id, &job->read.id))
                continue;
            job->read.id = *id;
            job->read.count++;
        }
    }
}

static void answer_resolve (requests_t *self, read_job_t *job)
{
    resolve_held (self, job);
    if (job->read.count != 1) {
        reply_to (self, job->link, job->request,
                  job->read.count == 0 ? TMQ_NOT_FOUND : TMQ_AMBIGUOUS, NULL, 0);
        return;
    }
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_blob (out, TASKMQ__REPLY__BODY_RESOLVED, job->read.id.bytes,
                       sizeof (job->read.id));
    reply_close (self, job->link, mark, 0, NULL);
}

/* Events come oldest first and the newest count: what does not fit is left out at the front. */
static void answer_history (requests_t *self, read_job_t *job)
{
    const uint8_t *at = buf_bytes (job->read.list);
    const uint8_t *end = at + buf_length (job->read.list);
    uint64_t before_seq = job->read.before_seq;
    while ((size_t) (end - at) > ENVELOPE_FILL_BYTES) {
        scanned_t event;
        if (!scan_event (&at, end, &event))
            break;
        before_seq = event.seq + 1;
    }
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_EVENT_PAGE);
    bytes_append_element (out, EVENT_PAGE_LIST, at, (size_t) (end - at));
    bytes_append_uint (out, EVENT_PAGE_BEFORE_SEQ, before_seq);
    bytes_close (out, page);
    reply_close (self, job->link, mark, 0, NULL);
}

/* Who answers what rows of a kind were read for. */
typedef void rows_answer_t (requests_t *self, read_job_t *job);
static rows_answer_t *const ROWS_ANSWERS[ROW_KINDS_MAX] = {
    [ROW_KIND_VALUE] = values_answer,        [ROW_KIND_ITEM] = items_answer,
    [ROW_KIND_TURN] = turns_answer,          [ROW_KIND_ARTIFACT] = blob_row_answer,
    [ROW_KIND_QUARANTINE] = blob_row_answer,
};

static void answer_rows (requests_t *self, read_job_t *job)
{
    assert (ROWS_ANSWERS[job->read.row_kind] != NULL);
    ROWS_ANSWERS[job->read.row_kind](self, job);
}

void browse_answer (requests_t *self, read_job_t *job)
{
    bool asked = job->request != 0; /* else it was for a subscription that has ended */
    if (job->link == NULL || job->link->dead || !asked)
        return;
    if (job->read.error != 0) {
        bool too_wide = job->read.kind == READ_SEARCH && job->read.search->too_wide;
        reply_to (self, job->link, job->request, too_wide ? TMQ_TOO_LARGE : TMQ_INTERNAL,
                  job->read.error_text, 0);
        return;
    }
    switch (job->read.kind) {
    case READ_LIST: answer_list (self, job); break;
    case READ_COUNT: answer_count (self, job); break;
    case READ_RESOLVE: answer_resolve (self, job); break;
    case READ_HISTORY: answer_history (self, job); break;
    case READ_ROWS: answer_rows (self, job); break;
    case READ_ATTEMPTS: attempts_answer (self, job); break;
    case READ_SEARCH: search_answer (self, job); break;
    case READ_LASTING: cleanup_answer (self, job); break;
    case READ_SINCE:
        reply_to (self, job->link, job->request, TMQ_NOT_FOUND, "the subscription has ended", 0);
        break;
    default: assert (false && "a read that no request asks for");
    }
}
