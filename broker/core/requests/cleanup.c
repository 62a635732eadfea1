/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/requests/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/extra.h"
#include "core/reads/jobs.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/pages.h"
#include "core/tasks/change.h"
#include "core/tasks/edges.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"
#include "core/tasks/settings.h"
#include "core/tasks/space.h"

enum {
    DAY_MS = 86400000,
    WAIT_MS = 1000,     /* the clock is held, or there is too much to do: looked at again then */
    KEPT_MS = 60 * 1000 /* a look waits so long for the request of its next page */
};

/* Numbers of the fields of CleanupPage and CleanupItem in taskmq.proto. */
enum {
    PAGE_ITEMS = 1,
    PAGE_NEXT,
    PAGE_PASS,
    PAGE_MORE,
    PAGE_LOOKED,
    PAGE_REMOVED,
    PAGE_REMOVED_BYTES,
    ITEM_TASK_ID = 1,
    ITEM_QUEUE,
    ITEM_POLICY,
    ITEM_OF_NAMESPACE,
    ITEM_AGE_MS,
    ITEM_BYTES,
    ITEM_STATUS
};

static const char STOPPED_EARLY[] = "a task could not be read: older ones were not looked at; the "
                                    "broker's log and taskmqd --check tell more";

/* Judging. */

/* What stays in a queue that has a rule. */
typedef struct shelf {
    uint32_t hash;
    retention_tally_t tally;
    char queue[TMQ_NAME_LENGTH_MAX + 1];
} shelf_t;

static void book_clear (book_t *self)
{
    size_t cursor = 0;
    for (shelf_t *shelf = map_each (&self->queues, &cursor); shelf != NULL;
         shelf = map_each (&self->queues, &cursor))
        free (shelf);
    map_free (&self->queues);
    self->space = (retention_tally_t){0};
}

static retention_tally_t *shelf_of (const requests_t *self, book_t *book, const char *queue)
{
    uint32_t hash = secrets_hash (&self->base->secrets, queue, strlen (queue));
    size_t cursor = MAP_START;
    shelf_t *shelf;
    while ((shelf = map_next (&book->queues, hash, &cursor)) != NULL)
        if (strcmp (shelf->queue, queue) == 0)
            return &shelf->tally;
    shelf = memory_zero (1, sizeof (*shelf));
    shelf->hash = hash;
    snprintf (shelf->queue, sizeof (shelf->queue), "%s", queue);
    map_insert (&book->queues, hash, shelf);
    return &shelf->tally;
}

static bool settings_of (const requests_t *self, const space_t *space, const char *name,
                         retention_t *out)
{
    const queue_t *queue = queue_find (self->tasks, space, name);
    if (queue == NULL || queue->settings == NULL)
        return false;
    *out = settings_retention (queue->settings);
    return retention_is_set (out);
}

static const retention_t *rule_of (const requests_t *self, const space_t *space)
{
    const engine_config_t *config = &self->base->config;
    for (size_t i = 0; i < config->retentions_count; i++)
        if (strcmp (config->retentions[i].ns, space->name) == 0)
            return &config->retentions[i].rule;
    return &config->retention;
}

/* Why a task goes, and by whose rule. */
typedef struct sentence {
    tmq_policy_t policy; /* NONE: it stays */
    bool of_space;
    int64_t age_ms;
    uint64_t bytes;
} sentence_t;

/* What is in memory has changed since it was read: it lives again, or is gone. */
static bool is_as_read (const requests_t *self, const space_t *space, const record_t *record)
{
    return task_find (self->tasks, space, record->id.bytes) == NULL &&
           removal_note_find (self->tasks, space, record->id.bytes) == NULL;
}

static sentence_t judge (const requests_t *self, const space_t *space, book_t *book,
                         const record_t *record)
{
    const unsigned planted = self->base->config.planted_bug;
    retention_scope_t scopes[2];
    size_t count = 0;
    size_t whose = 0;
    sentence_t out = {.bytes = (uint64_t) record->payload_bytes + record->result_bytes +
                               extra_bytes_beside (record->extra),
                      .age_ms = clocks_expiry_ms (&self->base->clocks) - record->finished_at};
    retention_item_t item = {.age_ms = out.age_ms > 0 ? out.age_ms : 0,
                             .bytes = out.bytes,
                             .failed = record->status == TMQ_STATUS_FAILED,
                             .needed = edges_find (self->tasks, space, record->id.bytes) != NULL};
    if (settings_of (self, space, record->queue, &scopes[0].rule))
        scopes[count++].tally = shelf_of (self, book, record->queue);
    scopes[count].rule = *rule_of (self, space);
    scopes[count++].tally = &book->space;
    if (planted == ENGINE_BUG_FAILED_NOT_KEPT)
        item.failed = false;
    for (size_t i = 0; planted == ENGINE_BUG_MIN_NOT_KEPT && i < count; i++)
        scopes[i].rule.min_keep = 0;
    for (size_t i = 0; planted == ENGINE_BUG_MAX_COUNT_IGNORED && i < count; i++)
        scopes[i].rule.max_count = 0;
    for (size_t i = 0; planted == ENGINE_BUG_MAX_BYTES_IGNORED && i < count; i++)
        scopes[i].rule.max_bytes = 0;
    out.policy = retention_judge (scopes, count, &item, &whose);
    if (planted == ENGINE_BUG_GONE_COUNTED && out.policy != TMQ_POLICY_NONE)
        scopes[whose].tally->count++;
    if (planted == ENGINE_BUG_GONE_WEIGHED && out.policy != TMQ_POLICY_NONE)
        scopes[whose].tally->bytes += item.bytes;
    out.of_space = whose == count - 1;
    out.age_ms = item.age_ms;
    return out;
}

/* Passes. */

void cleanup_init (cleanup_t *self)
{
    *self = (cleanup_t){0};
    list_init (&self->spaces);
}

typedef struct cleanup_look {
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    book_t book;
    uint64_t looked;
    int64_t below;   /* only what has a smaller number is told; 0: all of it */
    int64_t last;    /* number of the newest that was told */
    int64_t next;    /* … of the one that found no room, with which the next page begins */
    int64_t kept_ms; /* mono: since when it waits for that */
    size_t left;
    bool full; /* … and there is more */
    bytes_t items;
    size_t *looks; /* counts it, while its request is under way */
} cleanup_look_t;

static void look_clear (cleanup_look_t *look)
{
    book_clear (&look->book);
    bytes_free (&look->items);
    free (look);
}

void cleanup_reset (cleanup_t *self)
{
    size_t looks = self->looks; /* their jobs are freed by themselves */
    for (size_t i = 0; i < CLEANUP_LOOKS_MAX; i++)
        if (self->kept[i] != NULL)
            look_clear (self->kept[i]);
    book_clear (&self->book);
    cleanup_init (self);
    self->looks = looks;
}

/* Some rule of the namespace, or of a queue of it, may let something go. */
static bool has_rule (const requests_t *self, const space_t *space)
{
    if (retention_removes (rule_of (self, space)))
        return true;
    if (space->settings == 0)
        return false;
    for (const node_t *node = space->queue_list.next; node != &space->queue_list;
         node = node->next) {
        const queue_t *queue = LIST_ITEM (node, const queue_t, of_space);
        if (queue->settings == NULL)
            continue;
        retention_t rule = settings_retention (queue->settings);
        if (retention_removes (&rule))
            return true;
    }
    return false;
}

static bool is_under_way (const cleanup_t *self, const space_t *space)
{
    return self->begun && list_first (&self->spaces) == &space->cleaning;
}

/* The number of the pass that will have looked at everything that is there now. */
static uint64_t want_pass (cleanup_t *self, space_t *space)
{
    if (!node_is_linked (&space->cleaning))
        list_push_back (&self->spaces, &space->cleaning);
    space->cleanup.wanted = space->cleanup.done + (is_under_way (self, space) ? 2 : 1);
    return space->cleanup.wanted;
}

static void want_all (requests_t *self)
{
    size_t cursor = 0;
    for (space_t *space = map_each (&self->tasks->spaces, &cursor); space != NULL;
         space = map_each (&self->tasks->spaces, &cursor))
        if (has_rule (self, space))
            want_pass (&self->cleanup, space);
}

static bool must_wait (const requests_t *self)
{
    return self->base->stopping || clocks_are_held (&self->base->clocks) ||
           journal_is_overloaded (self->tasks);
}

int64_t cleanup_next_ms (const requests_t *self)
{
    const cleanup_t *cleanup = &self->cleanup;
    int64_t soonest_ms = self->base->clocks.mono_ms + (must_wait (self) ? WAIT_MS : 0);
    if (cleanup->reading)
        return INT64_MAX; /* the page wakes it */
    if (list_is_empty (&cleanup->spaces) && !retention_removes (&self->base->config.retention) &&
        self->base->config.retentions_count == 0 && self->tasks->settings == 0)
        return INT64_MAX;
    return list_is_empty (&cleanup->spaces) && cleanup->next_ms > soonest_ms ? cleanup->next_ms
                                                                             : soonest_ms;
}

static void begin (requests_t *self, space_t *space)
{
    cleanup_t *cleanup = &self->cleanup;
    book_clear (&cleanup->book);
    cleanup->begun = true;
    cleanup->before_number = 0;
    space->cleanup.looked = space->cleanup.removed = space->cleanup.removed_bytes = 0;
    space->cleanup.failed = false;
}

static void end (requests_t *self, space_t *space)
{
    cleanup_t *cleanup = &self->cleanup;
    book_clear (&cleanup->book);
    cleanup->begun = false;
    list_unlink (&space->cleaning);
    space->cleanup.done++;
    if (space->cleanup.wanted > space->cleanup.done)
        list_push_back (&cleanup->spaces, &space->cleaning);
    else
        space_release (self->tasks, space);
}

void cleanup_run (requests_t *self)
{
    cleanup_t *cleanup = &self->cleanup;
    if (cleanup->reading || must_wait (self))
        return;
    if (self->base->clocks.mono_ms >= cleanup->next_ms) {
        cleanup->next_ms = self->base->clocks.mono_ms + DAY_MS;
        want_all (self);
    }
    if (list_is_empty (&cleanup->spaces))
        return;
    space_t *space = LIST_ITEM (list_first (&cleanup->spaces), space_t, cleaning);
    if (!cleanup->begun)
        begin (self, space);
    read_job_t *job =
        job_for_engine (self->reads, space->name, READ_LASTING, journal_batch (self->tasks));
    job->read.before_number = cleanup->before_number;
    job->read.limit = TMQ_SWEEP_ITEMS_MAX;
    cleanup->reading = true;
}

static void remove_one (requests_t *self, space_t *space, const record_t *record,
                        const sentence_t *sentence)
{
    char message[80];
    cause_t cause = {
        .message = message,
        .why = (uint8_t) (sentence->policy | (sentence->of_space ? RETENTION_OF_SPACE : 0))};
    policy_say (message, sizeof (message), cause.why);
    journal_close_full (self->tasks);
    change_remove (self->tasks, space, record, INPUT_PURGE, &cause);
    self->tasks->open.inputs++;
    space->cleanup.removed++;
    space->cleanup.removed_bytes += sentence->bytes;
}

/* What was read may have changed since, and memory have forgotten it again: it is read once
 * more. */
static bool is_stale (const requests_t *self, const read_t *read)
{
    return self->tasks->settled > read->written && self->tasks->freshened > read->written;
}

void cleanup_page (requests_t *self, read_job_t *job)
{
    cleanup_t *cleanup = &self->cleanup;
    const read_t *read = &job->read;
    cleanup->reading = false;
    space_t *space = LIST_ITEM (list_first (&cleanup->spaces), space_t, cleaning);
    if (self->base->stopping || (read->error == 0 && is_stale (self, read)))
        return;
    for (size_t i = 0; i < read->records_count; i++) {
        const record_t *record = read->records[i];
        cleanup->before_number = record->number;
        space->cleanup.looked++;
        if (!is_as_read (self, space, record))
            continue;
        sentence_t sentence = judge (self, space, &cleanup->book, record);
        if (sentence.policy != TMQ_POLICY_NONE)
            remove_one (self, space, record, &sentence);
    }
    space->cleanup.failed = read->error != 0;
    if (!read->more || read->error != 0)
        end (self, space);
}

/* Looking. */

static void look_free (cleanup_look_t *look)
{
    --*look->looks;
    look_clear (look);
}

/* What stays before a task decides about it, so a page cannot begin anywhere: the book of the page
 * before is kept for a while, and who comes later or again goes through all of it from the newest.
 */
static void look_keep (requests_t *self, cleanup_look_t *look)
{
    cleanup_t *cleanup = &self->cleanup;
    cleanup_look_t **place = &cleanup->kept[cleanup->kept_next++ % CLEANUP_LOOKS_MAX];
    if (*place != NULL)
        look_clear (*place);
    look->kept_ms = self->base->clocks.mono_ms;
    *place = look;
}

/* The one whose last page ended here, or a new one. */
static cleanup_look_t *look_begin (requests_t *self, const char *ns, int64_t below)
{
    int64_t now_ms = self->base->clocks.mono_ms;
    for (size_t i = 0; below > 0 && i < CLEANUP_LOOKS_MAX; i++) {
        cleanup_look_t *look = self->cleanup.kept[i];
        if (look == NULL || look->last != below || strcmp (look->ns, ns) != 0 ||
            now_ms - look->kept_ms > KEPT_MS)
            continue;
        self->cleanup.kept[i] = NULL;
        bytes_clear (&look->items);
        look->full = false;
        return look;
    }
    cleanup_look_t *look = memory_zero (1, sizeof (*look));
    snprintf (look->ns, sizeof (look->ns), "%s", ns);
    return look;
}

static void tell (cleanup_look_t *look, const record_t *record, const sentence_t *sentence)
{
    bytes_t *out = &look->items;
    bytes_mark_t mark = bytes_open (out, PAGE_ITEMS);
    bytes_append_blob (out, ITEM_TASK_ID, record->id.bytes, sizeof (record->id.bytes));
    bytes_append_string (out, ITEM_QUEUE, record->queue);
    bytes_append_uint (out, ITEM_POLICY, sentence->policy);
    bytes_append_uint (out, ITEM_OF_NAMESPACE, sentence->of_space);
    bytes_append_uint (out, ITEM_AGE_MS, (uint64_t) sentence->age_ms);
    bytes_append_uint (out, ITEM_BYTES, sentence->bytes);
    bytes_append_uint (out, ITEM_STATUS, record->status);
    bytes_close (out, mark);
    look->last = record->number;
    look->left--;
}

static void look_at (const requests_t *self, const space_t *space, cleanup_look_t *look,
                     const record_t *record)
{
    if (look->full)
        return;
    look->looked++;
    if (!is_as_read (self, space, record))
        return;
    sentence_t sentence = judge (self, space, &look->book, record);
    if (sentence.policy == TMQ_POLICY_NONE || (look->below > 0 && record->number >= look->below))
        return;
    if (look->left > 0 && look->items.length < ENVELOPE_FILL_BYTES) {
        tell (look, record, &sentence);
        return;
    }
    look->full = true;
    look->looked--;
    look->next = record->number;
}

bool cleanup_looks_on (requests_t *self, read_job_t *job)
{
    read_t *read = &job->read;
    if (read->kind != READ_LASTING || job->link == NULL || job->link->dead || read->error != 0)
        return false;
    for (size_t i = 0; i < read->records_count; i++) {
        look_at (self, job->link->space, job->look, read->records[i]);
        read->next_number = read->records[i]->number;
        record_free (read->records[i]);
    }
    free (read->records);
    read->records = NULL;
    read->records_count = 0;
    if (job->look->full || !read->more)
        return false;
    read->more = false;
    job_again (self->reads, job);
    return true;
}

/* Answers. */

static void answer_look (requests_t *self, const read_job_t *job)
{
    const cleanup_look_t *look = job->look;
    uint8_t cursor[sizeof (look->last)];
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_CLEANUP_PAGE);
    bytes_append (out, look->items.data, look->items.length);
    memcpy (cursor, &look->last, sizeof (cursor));
    if (look->full)
        bytes_append_blob (out, PAGE_NEXT, cursor, sizeof (cursor));
    bytes_append_uint (out, PAGE_LOOKED, look->looked);
    bytes_close (out, page);
    reply_close (self, job->link, mark, 0, NULL);
}

void cleanup_answer (requests_t *self, read_job_t *job)
{
    answer_look (self, job);
    if (!job->look->full)
        return;
    look_keep (self, job->look);
    job->look = NULL;
    self->cleanup.looks--;
}

static void answer_pass (call_t *call, uint64_t pass)
{
    const space_t *space = call->link->space;
    requests_t *self = call->requests;
    if (space->cleanup.failed && space->cleanup.done >= pass) {
        reply_code (call, TMQ_INTERNAL, STOPPED_EARLY);
        return;
    }
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_CLEANUP_PAGE);
    bytes_append_uint (out, PAGE_PASS, pass);
    bytes_append_uint (out, PAGE_MORE, space->cleanup.done < pass);
    bytes_append_uint (out, PAGE_LOOKED, space->cleanup.looked);
    bytes_append_uint (out, PAGE_REMOVED, space->cleanup.removed);
    bytes_append_uint (out, PAGE_REMOVED_BYTES, space->cleanup.removed_bytes);
    bytes_close (out, page);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

static void look (call_t *call, const Taskmq__Cleanup *request)
{
    cleanup_t *cleanup = &call->requests->cleanup;
    int64_t below = 0;
    if (request->cursor.len == sizeof (below))
        memcpy (&below, request->cursor.data, sizeof (below));
    if (request->cursor.len != 0 && below <= 0) {
        reply_code (call, TMQ_BAD_CURSOR, NULL);
        return;
    }
    if (cleanup->looks >= CLEANUP_LOOKS_MAX) {
        reply_limit (call, "dry runs of a cleanup at a time", CLEANUP_LOOKS_MAX);
        return;
    }
    if (page_refused (call))
        return;
    read_job_t *job = page_job (call, READ_LASTING);
    job->read.limit = TMQ_SWEEP_ITEMS_MAX;
    job->look = look_begin (call->requests, call->link->space->name, below);
    if (job->look->next > 0)
        job->read.before_number = job->look->next + 1;
    job->look->below = below;
    job->look->left = request->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : request->limit;
    job->look->looks = &cleanup->looks;
    job->look_free = look_free;
    cleanup->looks++;
}

void on_cleanup (call_t *call)
{
    const Taskmq__Cleanup *request = call->request->cleanup;
    space_t *space = call->link->space;
    if (request->dry_run) {
        look (call, request);
        return;
    }
    /* A pass of a former start is another one. */
    if (request->pass > 0 && request->pass <= space->cleanup.wanted) {
        answer_pass (call, request->pass);
        return;
    }
    deeds_queue (call, "");
    answer_pass (call, want_pass (&call->requests->cleanup, space));
}
