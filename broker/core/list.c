/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads that the tables have to answer: list, count, short ids, the history of a task; and the jobs
 * by which readers do them.
 *
 * A job is given away when everything that was durable when it was asked for is written back, so
 * its answer is never older than what anybody was told (A11). */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"

/* Jobs. */

job_t *job_new (engine_t *self, link_t *link, read_kind_t kind, uint64_t need)
{
    job_t *job = memory_zero (1, sizeof (*job));
    job->read.kind = kind;
    memcpy (job->ns, link->space->name, strlen (link->space->name) + 1);
    job->read.filter.ns = job->ns;
    job->read.context = job;
    job->need = need;
    job->link = link;
    link->references++;
    list_push_back (&self->jobs, &job->node);
    return job;
}

void job_free (engine_t *self, job_t *job)
{
    read_clear (&job->read);
    list_remove (&job->node);
    if (job->link != NULL)
        link_unreference (self, job->link);
    free (job->filter);
    free (job);
}

void jobs_clear (engine_t *self)
{
    for (node_t *node = list_pop_front (&self->jobs); node != NULL;
         node = list_pop_front (&self->jobs))
        job_free (self, LIST_ITEM (node, job_t, node));
    for (node_t *node = self->jobs_given.next; node != &self->jobs_given; node = node->next) {
        job_t *job = LIST_ITEM (node, job_t, node);
        if (job->link != NULL)
            link_unreference (self, job->link);
        job->link = NULL;
        job->subscription = NULL;
    }
}

read_t *engine_read_next (engine_t *self)
{
    for (node_t *node = self->jobs.next; node != &self->jobs; node = node->next) {
        job_t *job = LIST_ITEM (node, job_t, node);
        if (job->need > self->written)
            continue;
        list_remove (node);
        list_push_back (&self->jobs_given, node);
        self->counts.reads++;
        return &job->read;
    }
    return NULL;
}

bool engine_wants_flush (const engine_t *self)
{
    for (node_t *node = self->jobs.next; node != &self->jobs; node = node->next)
        if (LIST_ITEM (node, job_t, node)->need > self->written)
            return true;
    return false;
}

/* Filters. */

/* Copies of a filter's parts are placed one after the other in its own allocation. */
typedef struct place {
    uint8_t *at;
    crypto_generichash_state hash;
} place_t;

static void *put (place_t *place, const void *bytes, size_t length)
{
    void *start = place->at;
    if (length > 0)
        memcpy (start, bytes, length);
    place->at += length;
    uint64_t size = length;
    crypto_generichash_update (&place->hash, (const uint8_t *) &size, sizeof (size));
    crypto_generichash_update (&place->hash, start, length);
    return start;
}

static const char *const *put_texts (place_t *place, char *const *texts, const char **list,
                                     size_t count)
{
    uint64_t number = count;
    crypto_generichash_update (&place->hash, (const uint8_t *) &number, sizeof (number));
    for (size_t i = 0; i < count; i++)
        list[i] = put (place, texts[i], strlen (texts[i]) + 1);
    return list;
}

static size_t room_of (const Taskmq__Filter *filter)
{
    size_t room = (filter->n_queues + filter->n_sessions) * sizeof (char *) +
                  filter->n_labels * sizeof (label_t) + filter->n_statuses * sizeof (tmq_status_t) +
                  filter->n_task_ids * sizeof (tmq_id_t);
    for (size_t i = 0; i < filter->n_queues; i++)
        room += strlen (filter->queues[i]) + 1;
    for (size_t i = 0; i < filter->n_sessions; i++)
        room += strlen (filter->sessions[i]) + 1;
    for (size_t i = 0; i < filter->n_labels; i++)
        room += strlen (filter->labels[i]->key) + strlen (filter->labels[i]->value) + 2;
    return room;
}

static void put_labels (place_t *place, label_t *labels, const Taskmq__Filter *filter)
{
    for (size_t i = 0; i < filter->n_labels; i++) {
        const Taskmq__Label *label = filter->labels[i];
        labels[i].key = put (place, label->key, strlen (label->key) + 1);
        labels[i].value = put (place, label->value, strlen (label->value) + 1);
    }
}

filter_copy_t *filter_new (const char *ns, const Taskmq__Filter *filter)
{
    static const Taskmq__Filter NO_FILTER = TASKMQ__FILTER__INIT;
    if (filter == NULL)
        filter = &NO_FILTER;
    filter_copy_t *self = memory_zero (1, sizeof (*self) + room_of (filter));
    place_t place;
    crypto_generichash_init (&place.hash, NULL, 0, sizeof (self->digest));
    crypto_generichash_update (&place.hash, (const uint8_t *) ns, strlen (ns) + 1);
    /* Lists of pointers first, then what has no alignment. */
    const char **queues = (const char **) (void *) (self + 1);
    const char **sessions = queues + filter->n_queues;
    label_t *labels = (label_t *) (void *) (sessions + filter->n_sessions);
    tmq_status_t *statuses = (tmq_status_t *) (void *) (labels + filter->n_labels);
    place.at = (uint8_t *) (statuses + filter->n_statuses);
    for (size_t i = 0; i < filter->n_statuses; i++)
        statuses[i] = (tmq_status_t) filter->statuses[i];
    crypto_generichash_update (&place.hash, (const uint8_t *) statuses,
                               filter->n_statuses * sizeof (*statuses));
    self->filter =
        (filter_t){.ns = ns,
                   .queues = put_texts (&place, filter->queues, queues, filter->n_queues),
                   .queues_count = filter->n_queues,
                   .statuses = statuses,
                   .statuses_count = filter->n_statuses,
                   .created_since = (int64_t) filter->created_since,
                   .created_until = (int64_t) filter->created_until};
    self->filter.sessions = put_texts (&place, filter->sessions, sessions, filter->n_sessions);
    self->filter.sessions_count = filter->n_sessions;
    put_labels (&place, labels, filter);
    self->labels = labels;
    self->labels_count = filter->n_labels;
    self->ids = (const tmq_id_t *) place.at;
    self->ids_count = filter->n_task_ids;
    for (size_t i = 0; i < filter->n_task_ids; i++)
        put (&place, filter->task_ids[i].data, sizeof (tmq_id_t));
    crypto_generichash_update (&place.hash, (const uint8_t *) &filter->created_since,
                               sizeof (filter->created_since));
    crypto_generichash_update (&place.hash, (const uint8_t *) &filter->created_until,
                               sizeof (filter->created_until));
    crypto_generichash_final (&place.hash, self->digest, sizeof (self->digest));
    self->everything = filter->n_queues + filter->n_sessions + filter->n_statuses +
                           filter->n_labels + filter->n_task_ids ==
                       0;
    return self;
}

/* Requests. */

/* A list cursor: the number that the next page begins below, and what it was made for. */
typedef struct list_cursor {
    uint8_t number[8]; /* big-endian */
    uint8_t digest[16];
} list_cursor_t;

static list_cursor_t cursor_make (int64_t number, const uint8_t digest[16])
{
    list_cursor_t cursor;
    for (size_t i = 0; i < sizeof (cursor.number); i++)
        cursor.number[i] = (uint8_t) ((uint64_t) number >> (56 - 8 * i));
    memcpy (cursor.digest, digest, sizeof (cursor.digest));
    return cursor;
}

/* The number, or 0 when the bytes are no cursor for this filter. */
static int64_t cursor_number (const ProtobufCBinaryData *bytes, const uint8_t digest[16])
{
    list_cursor_t cursor;
    if (bytes->len != sizeof (cursor))
        return 0;
    memcpy (&cursor, bytes->data, sizeof (cursor));
    if (memcmp (cursor.digest, digest, sizeof (cursor.digest)) != 0)
        return 0;
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof (cursor.number); i++)
        number = number << 8 | cursor.number[i];
    return number > INT64_MAX ? 0 : (int64_t) number;
}

static job_t *request_job (call_t *call, read_kind_t kind)
{
    job_t *job = job_new (call->engine, call->link, kind, call->engine->durable);
    job->request = call->request->id;
    return job;
}

static void use_filter (job_t *job, filter_copy_t *filter)
{
    job->filter = filter;
    job->read.filter = filter->filter;
    job->read.filter.ns = job->ns;
}

void on_list (call_t *call)
{
    const Taskmq__List *request = call->request->list;
    filter_copy_t *filter = filter_new (call->link->space->name, request->filter);
    int64_t before = 0;
    if (request->cursor.len > 0) {
        before = cursor_number (&request->cursor, filter->digest);
        if (before <= 0) {
            free (filter);
            reply_code (call, TMQ_BAD_CURSOR, NULL);
            return;
        }
    }
    job_t *job = request_job (call, READ_LIST);
    use_filter (job, filter);
    job->read.before_number = before;
    job->read.limit = request->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : request->limit;
    job->read.bytes_max = ENVELOPE_FILL_BYTES; /* the rest of the page would be read for nothing */
}

void on_count (call_t *call)
{
    filter_copy_t *filter = filter_new (call->link->space->name, call->request->count->filter);
    use_filter (request_job (call, READ_COUNT), filter);
}

void on_resolve (call_t *call)
{
    job_t *job = request_job (call, READ_RESOLVE);
    strncpy (job->read.suffix, call->request->resolve->suffix, sizeof (job->read.suffix) - 1);
}

void on_task_events (call_t *call)
{
    engine_t *self = call->engine;
    const Taskmq__TaskEvents *request = call->request->task_events;
    found_t found = lookup_id (self, call->link->space, request->task_id.data);
    if (found.task == NULL && found.record == NULL) {
        reply_code (call, found.gone, NULL);
        return;
    }
    job_t *job = request_job (call, READ_HISTORY);
    if (found.task != NULL && found.task->changed > job->need)
        job->need = found.task->changed;
    memcpy (job->read.id.bytes, request->task_id.data, sizeof (job->read.id));
    job->read.last_seq = found.task != NULL ? found.task->last_seq : found.record->last_seq;
    job->read.before_seq = request->before_seq;
    job->read.limit = request->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : request->limit;
}

/* Answers. */

/* Appends as many tasks as the envelope takes. Returns how many. */
static size_t pack_page (engine_t *self, bytes_t *out, const read_t *read)
{
    size_t i = 0;
    for (; i < read->records_count; i++) {
        const record_t *record = read->records[i];
        size_t before = out->length;
        if (record_is_expired (self, record))
            continue;
        pack_task (out, 1, record, record_phase (record, self->wall), 0);
        if (out->length > ENVELOPE_FILL_BYTES && before > 64) {
            out->length = before;
            break;
        }
    }
    return i;
}

static void answer_list (engine_t *self, job_t *job)
{
    const read_t *read = &job->read;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_PAGE);
    size_t packed = pack_page (self, out, read);
    if (packed > 0 && (packed < read->records_count || read->more)) {
        list_cursor_t next = cursor_make (read->records[packed - 1]->number, job->filter->digest);
        bytes_append_blob (out, 2, &next, sizeof (next));
    }
    bytes_close (out, page);
    reply_close (self, job->link, mark, 0, NULL);
}

static void answer_count (engine_t *self, job_t *job)
{
    Taskmq__Counted counted = TASKMQ__COUNTED__INIT;
    counted.count = job->read.count;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_message (out, TASKMQ__REPLY__BODY_COUNTED, &counted.base);
    reply_close (self, job->link, mark, 0, NULL);
}

static void answer_resolve (engine_t *self, job_t *job)
{
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
static void answer_history (engine_t *self, job_t *job)
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
    bytes_append_element (out, 1, at, (size_t) (end - at));
    bytes_append_uint (out, 2, before_seq);
    bytes_close (out, page);
    reply_close (self, job->link, mark, 0, NULL);
}

static void answer_request (engine_t *self, job_t *job)
{
    bool asked = job->request != 0; /* else it was for a subscription that has ended */
    if (job->link == NULL || job->link->dead || !asked)
        return;
    if (job->read.error != 0) {
        reply_to (self, job->link, job->request, TMQ_INTERNAL, job->read.error_text, 0);
        return;
    }
    switch (job->read.kind) {
    case READ_LIST: answer_list (self, job); break;
    case READ_COUNT: answer_count (self, job); break;
    case READ_RESOLVE: answer_resolve (self, job); break;
    case READ_HISTORY: answer_history (self, job); break;
    case READ_SINCE:
        reply_to (self, job->link, job->request, TMQ_NOT_FOUND, "the subscription has ended", 0);
        break;
    default: assert (false && "a read that no request asks for");
    }
}

void engine_read_done (engine_t *self, read_t *read, now_t now)
{
    engine_clock (self, now);
    job_t *job = (job_t *) (void *) read;
    if (job->subscription != NULL)
        stream_read_done (self, job);
    else
        answer_request (self, job);
    job_free (self, job);
}
