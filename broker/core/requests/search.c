/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* search. Whoever finds a task by its text has read of it: the right is that of its bodies. */
#include "core/requests/search.h"

#include <stdlib.h>
#include <string.h>

#include "core/reads/jobs.h"
#include "core/requests/answer.h"
#include "core/requests/cursor.h"
#include "core/requests/pages.h"
#include "core/tasks/view.h"
#include "core/wire/pack.h"

/* Numbers of fields in taskmq.proto. */
enum { PAGE_FOUND = 1, PAGE_NEXT, PAGE_BEHIND, PAGE_LAG, PAGE_BUILDING, PAGE_BUILT, PAGE_TASKS };
enum { PAGE_STALLED = PAGE_TASKS + 1, PAGE_COUNT };
enum { FOUND_TASK = 1, FOUND_TURN, FOUND_EXCERPT, FOUND_HITS };
enum { LINK_SEARCHES_MAX = 4, SEARCH_RETRY_MS = 200 };

static bool refused (call_t *call)
{
    char text[LIMIT_TEXT_SIZE];
    if (call->link->searches_count < LINK_SEARCHES_MAX)
        return page_refused (call);
    limit_text (text, "open searches of a link", LINK_SEARCHES_MAX);
    reply_code_at_once (call, TMQ_LIMIT, text, SEARCH_RETRY_MS);
    return true;
}

/* The place to go on below; 0: from the newest. False: it was answered. */
static bool take_cursor (call_t *call, const uint8_t digest[16], int64_t *before)
{
    const Taskmq__Search *request = call->request->search;
    *before = 0;
    if (request->cursor.len == 0)
        return true;
    *before = cursor_number (&request->cursor, digest);
    if (*before > 0 && !request->ranked)
        return true;
    reply_code (call, TMQ_BAD_CURSOR, request->ranked ? "what is ranked has one page" : NULL);
    return false;
}

static void set_scope (read_job_t *job, const access_t *access)
{
    if ((access->everywhere & RIGHT_BODY) != 0)
        return;
    access_copy (&job->read.scope, access);
    job->read.filter.scope = &job->read.scope;
}

void on_search (call_t *call)
{
    const requests_t *self = call->requests;
    const Taskmq__Search *request = call->request->search;
    char error[SEARCH_ERROR_SIZE];
    int64_t before;
    search_t *search = search_new ();
    filter_copy_t *filter =
        filter_new (call->link->space->name, request->filter, &call->link->access);
    filter_digest_more (filter, request->text);
    tmq_code_t code = search_query_parse (&search->query, request->text, error);
    if (code != TMQ_OK)
        reply_code (call, code, error);
    if (code != TMQ_OK || !take_cursor (call, filter->digest, &before) || refused (call)) {
        filter_free (filter);
        search_free (search);
        return;
    }
    read_job_t *job = page_job (call, READ_SEARCH);
    job->filter = filter;
    job->read.filter = filter->filter;
    job->read.filter.ns = job->ns;
    set_scope (job, &call->link->access);
    search->ranked = request->ranked;
    search->counting = request->count;
    job->read.search = search;
    job->read.before_number = before;
    job->read.limit = request->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : request->limit;
    job->read.vain_max = self->base->config.read_looks_max;
    job->read.bytes_max = ENVELOPE_FILL_BYTES;
}

/* The excerpt without its marks, and where they stood. */
static void pack_excerpt (bytes_t *out, const char *marked)
{
    bytes_t text = BYTES_INIT;
    bytes_t hits = BYTES_INIT;
    size_t begin = 0;
    for (const char *at = marked; *at != '\0'; at++) {
        if (*at == SEARCH_HIT_BEGIN) {
            begin = text.length;
        } else if (*at == SEARCH_HIT_END) {
            bytes_append_varint (&hits, begin);
            bytes_append_varint (&hits, text.length - begin);
        } else {
            bytes_append (&text, at, 1);
        }
    }
    bytes_append_blob (out, FOUND_EXCERPT, text.data, text.length);
    bytes_append_blob (out, FOUND_HITS, hits.data, hits.length); /* as proto3 packs numbers */
    bytes_free (&text);
    bytes_free (&hits);
}

/* False: it does not fit any more. */
static bool pack_found (bytes_t *out, const read_t *read, size_t i, const clocks_t *clocks,
                        bool first)
{
    const record_t *record = read->records[i];
    const search_found_t *found = &read->search->found[i];
    if (record_is_over (record, clocks_expiry_ms (clocks)))
        return true;
    size_t before = out->length;
    bytes_mark_t mark = bytes_open (out, PAGE_FOUND);
    pack_task (out, FOUND_TASK, record, record_phase (record, clocks->wall_ms), false,
               (pack_bodies_t){0, 0});
    bytes_append_uint (out, FOUND_TURN, found->turn);
    if (found->excerpt != NULL)
        pack_excerpt (out, found->excerpt);
    bytes_close (out, mark);
    if (first || out->length <= ENVELOPE_FILL_BYTES)
        return true;
    out->length = before;
    return false;
}

static void pack_state (const requests_t *self, bytes_t *out, const search_t *search)
{
    uint64_t newest = self->history->last_pos;
    bytes_append_uint (out, PAGE_BEHIND, search->behind);
    if (search->behind && newest > search->indexed_pos)
        bytes_append_uint (out, PAGE_LAG, newest - search->indexed_pos);
    bytes_append_uint (out, PAGE_BUILDING, search->building);
    if (search->building) {
        bytes_append_uint (out, PAGE_BUILT, (uint64_t) search->built);
        bytes_append_uint (out, PAGE_TASKS, (uint64_t) self->tasks->last_number);
    }
    bytes_append_string (out, PAGE_STALLED, search->stalled);
}

void search_answer (requests_t *self, read_job_t *job)
{
    const read_t *read = &job->read;
    bytes_mark_t mark;
    size_t i = 0;
    view_phases (self->tasks, read->records, read->records_count);
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_FOUND_PAGE);
    while (i < read->records_count && pack_found (out, read, i, &self->base->clocks, i == 0))
        i++;
    int64_t below = 0;
    if (i < read->records_count)
        below = read->records[i - 1]->number;
    else if (read->more)
        below = read->next_number;
    if (self->base->config.planted_bug == ENGINE_BUG_SEARCH_SKIPS && below > 1)
        below--;
    bytes_append_uint (out, PAGE_COUNT, read->count);
    if (below > 0 && !read->search->ranked) {
        list_cursor_t next = cursor_make (below, job->filter->digest);
        bytes_append_blob (out, PAGE_NEXT, &next, sizeof (next));
    }
    pack_state (self, out, read->search);
    bytes_close (out, page);
    reply_close (self, job->link, mark, 0, NULL);
}
