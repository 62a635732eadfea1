/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Public records out of messages: each one piece of memory, so that one free () ends it.
 *
 * A record is filled twice: first without memory, which measures it, then for good. Failure: NULL
 * when memory is exhausted, nothing else can fail. */
#include "codec/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/tail.h"
#include "ids.h"

/* Labels come first of all, because they need to be aligned. */
static const tmq_label_t *tail_labels (tail_t *tail, Taskmq__Label *const *labels, size_t count)
{
    tmq_label_t *out = NULL;
    if (tail->base != NULL)
        out = (tmq_label_t *) (void *) (tail->base + tail->used);
    tail->used += count * sizeof *out;
    for (size_t i = 0; i < count; i++) {
        tmq_label_t label = {tail_text (tail, labels[i]->key), tail_text (tail, labels[i]->value)};
        if (out != NULL)
            out[i] = label;
    }
    return out;
}

/* Before texts, as labels. */
static const tmq_dependency_t *tail_list (tail_t *tail, Taskmq__Dependency *const *list,
                                          size_t count)
{
    tmq_dependency_t *out = NULL;
    if (tail->base != NULL)
        out = (tmq_dependency_t *) (void *) (tail->base + tail->used);
    tail->used += count * sizeof *out;
    for (size_t i = 0; i < count && out != NULL; i++) {
        const Taskmq__Dependency *in = list[i];
        memset (&out[i], 0, sizeof out[i]);
        id_from_bytes (&out[i].id, in->task_id.data, in->task_id.len);
        out[i].policy = (tmq_after_t) in->policy;
        out[i].status = (tmq_status_t) in->status;
    }
    return out;
}

static const tmq_dependency_t *tail_after (tail_t *tail, const Taskmq__Extra *extra, size_t *count)
{
    *count = extra != NULL ? extra->n_after : 0;
    return tail_list (tail, extra != NULL ? extra->after : NULL, *count);
}

void core_cursor_format (char out[48], uint64_t generation, uint64_t seq)
{
    snprintf (out, 48, "%" PRIu64 "-%" PRIu64, generation, seq);
}

/* Tasks. */

/* The data of the error: in the message, or, where there is a second frame, in it. */
static const char *tail_data (tail_t *tail, const Taskmq__TaskError *error, const uint8_t *frame)
{
    if (error == NULL || error->body == 0 || frame == NULL)
        return tail_text (tail, error != NULL ? error->data : "");
    return tail_body (tail, frame, error->body);
}

static void task_fill_texts (tmq_task_t *out, tail_t *tail, const Taskmq__Task *in,
                             const uint8_t *data)
{
    const Taskmq__TaskError *error = in->error;
    const Taskmq__Progress *progress = in->progress;
    out->after = tail_after (tail, in->extra, &out->after_count);
    out->labels = tail_labels (tail, in->labels, in->n_labels);
    out->labels_count = in->n_labels;
    out->needs_count = in->extra != NULL ? in->extra->n_needs : 0;
    tail_align (tail);
    out->needs = tail_labels (tail, in->extra != NULL ? in->extra->needs : NULL, out->needs_count);
    out->fair_key = tail_text (tail, in->extra != NULL ? in->extra->fair_key : "");
    out->ns = tail_text (tail, in->namespace_);
    out->queue = tail_text (tail, in->queue);
    out->session = tail_text (tail, in->session);
    out->owner = tail_text (tail, in->owner);
    out->status_message = tail_text (tail, in->status_message);
    out->method = tail_text (tail, in->method);
    out->content_type = tail_text (tail, in->content_type);
    out->meta = tail_text (tail, in->meta);
    out->dedup_key = tail_text (tail, in->dedup_key);
    out->worker = tail_text (tail, in->worker);
    out->progress_unit = tail_text (tail, progress != NULL ? progress->unit : "");
    out->progress_message = tail_text (tail, progress != NULL ? progress->message : "");
    out->result_type = tail_text (tail, in->result_type);
    out->error_message = tail_text (tail, error != NULL ? error->message : "");
    out->error_data = tail_data (tail, error, data);
    out->trace = tail_text (tail, in->extra != NULL ? in->extra->trace : "");
    out->cancel_message = tail_text (tail, in->extra != NULL ? in->extra->cancel_message : "");
}

static void blob_fill (tmq_blob_t *out, const Taskmq__Blob *blob)
{
    if (blob == NULL || blob->hash.len != sizeof out->hash)
        return;
    memcpy (out->hash, blob->hash.data, sizeof out->hash);
    out->bytes = blob->bytes;
}

static void task_fill_numbers (tmq_task_t *out, const Taskmq__Task *in)
{
    id_from_bytes (&out->id, in->task_id.data, in->task_id.len);
    out->status = (tmq_status_t) in->status;
    out->phase = (tmq_phase_t) in->phase;
    out->priority = (uint8_t) in->priority;
    out->created_at = in->created_at;
    out->updated_at = in->updated_at;
    out->started_at = in->started_at;
    out->finished_at = in->finished_at;
    out->expires_at = in->expires_at;
    out->not_before = in->not_before;
    out->ttl_ms = in->ttl_ms;
    out->poll_interval_ms = in->poll_interval_ms;
    out->attempt = in->attempt;
    out->max_attempts = in->max_attempts;
    out->failures = in->failures;
    out->lease_ms = in->lease_ms;
    out->backoff_ms = in->backoff_ms;
    out->adopted_from = in->extra != NULL ? in->extra->adopted_from : 0;
    out->progress_done = in->progress != NULL ? in->progress->done : 0;
    out->progress_total = in->progress != NULL ? in->progress->total : 0;
    out->payload_bytes = in->payload_bytes;
    out->result_bytes = in->result_bytes;
    out->outcome = (tmq_outcome_kind_t) in->outcome;
    out->error_code = in->error != NULL ? in->error->code : 0;
    out->error_data_bytes = strlen (out->error_data);
    if (out->error_data_bytes == 0 && in->error != NULL)
        out->error_data_bytes = in->error->data_bytes;
    out->dead = in->dead;
    out->version = in->version;
    out->seq = in->seq;
    if (in->extra != NULL) {
        out->start_by = in->extra->start_by;
        out->max_runtime_ms = in->extra->max_runtime_ms;
        out->has_parts = in->extra->has_parts;
        out->turns = in->extra->turns;
        out->artifacts = in->extra->artifacts_count;
        out->artifact_bytes = in->extra->artifact_bytes;
        blob_fill (&out->payload_blob, in->extra->payload_blob);
        blob_fill (&out->result_blob, in->extra->result_blob);
        if (in->extra->payload_blob != NULL)
            out->payload_bytes += in->extra->payload_blob->bytes;
        if (in->extra->result_blob != NULL)
            out->result_bytes += in->extra->result_blob->bytes;
        id_from_bytes (&out->parent, in->extra->parent.data, in->extra->parent.len);
    }
}

tmq_task_t *core_task_record (const Taskmq__Task *in, const uint8_t *body)
{
    size_t body_bytes = body != NULL ? in->body : 0;
    const uint8_t *data = body != NULL ? body + in->body : NULL;
    tmq_task_t measured = {0};
    tail_t tail = {NULL, 0};
    task_fill_texts (&measured, &tail, in, data);
    tail_body (&tail, body, body_bytes);
    tmq_task_t *out = calloc (1, sizeof *out + tail.used);
    if (out == NULL)
        return NULL;
    tail = (tail_t){(uint8_t *) (out + 1), 0};
    task_fill_texts (out, &tail, in, data);
    task_fill_numbers (out, in);
    out->body = tail_body (&tail, body, body_bytes);
    out->body_bytes = body_bytes;
    return out;
}

tmq_task_list_t *core_task_list_record (const Taskmq__TaskPage *page)
{
    size_t next_size = page->next.len * 2 + 1; /* opaque bytes, as hexadecimal digits */
    tmq_task_list_t *list =
        calloc (1, sizeof *list + page->n_tasks * sizeof (tmq_task_t *) + next_size);
    if (list == NULL)
        return NULL;
    tmq_task_t **tasks = (tmq_task_t **) (void *) (list + 1);
    char *next = (char *) (tasks + page->n_tasks);
    hex_encode (next, page->next.data, page->next.len);
    list->tasks = tasks;
    list->next = next;
    for (size_t i = 0; i < page->n_tasks; i++) {
        tasks[i] = core_task_record (page->tasks[i], NULL);
        if (tasks[i] == NULL) {
            tmq_task_list_free (list);
            return NULL;
        }
        list->count++;
    }
    return list;
}

/* Events. */

/* What an event and a notice have in common, brought together before it is laid down. */
typedef struct event_texts {
    const char *ns, *queue, *session, *owner, *worker, *actor, *message, *name, *trace;
    Taskmq__Label *const *labels;
    size_t labels_count;
    const Taskmq__Progress *progress;
} event_texts_t;

static void event_fill_texts (tmq_event_t *out, tail_t *tail, const event_texts_t *in)
{
    out->labels = tail_labels (tail, in->labels, in->labels_count);
    out->labels_count = in->labels_count;
    out->ns = tail_text (tail, in->ns);
    out->queue = tail_text (tail, in->queue);
    out->session = tail_text (tail, in->session);
    out->owner = tail_text (tail, in->owner);
    out->worker = tail_text (tail, in->worker);
    out->actor = tail_text (tail, in->actor);
    out->message = tail_text (tail, in->message);
    out->name = tail_text (tail, in->name);
    out->trace = tail_text (tail, in->trace);
    out->progress_unit = tail_text (tail, in->progress != NULL ? in->progress->unit : "");
    out->progress_message = tail_text (tail, in->progress != NULL ? in->progress->message : "");
}

static tmq_event_t *event_new (const event_texts_t *texts)
{
    tmq_event_t measured = {0};
    tail_t tail = {NULL, 0};
    event_fill_texts (&measured, &tail, texts);
    tmq_event_t *out = calloc (1, sizeof *out + tail.used);
    if (out == NULL)
        return NULL;
    tail = (tail_t){(uint8_t *) (out + 1), 0};
    event_fill_texts (out, &tail, texts);
    if (texts->progress != NULL) {
        out->has_progress = true;
        out->progress_done = texts->progress->done;
        out->progress_total = texts->progress->total;
    }
    return out;
}

size_t core_event_bytes (const tmq_event_t *event)
{
    size_t bytes = sizeof *event + event->labels_count * sizeof (tmq_label_t) +
                   strlen (event->queue) + strlen (event->owner) + strlen (event->worker) +
                   strlen (event->actor) + strlen (event->message) + strlen (event->name) +
                   strlen (event->progress_message);
    for (size_t i = 0; i < event->labels_count; i++)
        bytes += strlen (event->labels[i].key) + strlen (event->labels[i].value);
    if (event->task != NULL)
        bytes += sizeof *event->task + strlen (event->task->meta) +
                 event->task->labels_count * sizeof (tmq_label_t);
    return bytes;
}

tmq_event_t *core_event_record (const Taskmq__Event *in, const char *ns, uint64_t generation)
{
    const event_texts_t texts = {ns,         in->queue,  in->session,  in->owner,
                                 in->worker, in->actor,  in->message,  in->name,
                                 in->trace,  in->labels, in->n_labels, in->progress};
    tmq_event_t *out = event_new (&texts);
    if (out == NULL)
        return NULL;
    out->item = TMQ_ITEM_EVENT;
    out->kind = (tmq_event_kind_t) in->kind;
    out->generation = generation;
    out->seq = in->seq;
    out->at = in->at;
    id_from_bytes (&out->task_id, in->task_id.data, in->task_id.len);
    out->status = (tmq_status_t) in->status;
    out->previous = (tmq_status_t) in->previous;
    out->attempt = in->attempt;
    out->subject = in->subject != 0 ? (tmq_subject_t) in->subject : TMQ_SUBJECT_TASK;
    out->number = in->number;
    core_cursor_format (out->cursor, generation, in->seq);
    return out;
}

tmq_event_t *core_notice_record (const Taskmq__Notice *in, const char *ns)
{
    const event_texts_t texts = {ns, in->queue, in->session, "",   in->worker, "",
                                 "", "",        "",          NULL, 0,          in->progress};
    tmq_event_t *out = event_new (&texts);
    if (out == NULL)
        return NULL;
    out->item = TMQ_ITEM_NOTICE;
    out->subject = TMQ_SUBJECT_TASK;
    out->at = in->at;
    id_from_bytes (&out->task_id, in->task_id.data, in->task_id.len);
    out->status = (tmq_status_t) in->status;
    out->attempt = in->attempt;
    out->has_log = in->log != NULL;
    out->log_out = in->log != NULL ? in->log->out : 0;
    out->log_err = in->log != NULL ? in->log->err : 0;
    return out;
}

tmq_event_t *core_item_record (tmq_item_kind_t kind, const char *ns)
{
    const event_texts_t texts = {ns, "", "", "", "", "", "", "", "", NULL, 0, NULL};
    tmq_event_t *out = event_new (&texts);
    if (out != NULL)
        out->item = kind;
    return out;
}

tmq_event_list_t *core_event_list_record (const Taskmq__EventPage *page, const char *ns,
                                          uint64_t generation)
{
    size_t count = page->list != NULL ? page->list->n_events : 0;
    tmq_event_list_t *list = calloc (1, sizeof *list + count * sizeof (tmq_event_t *));
    if (list == NULL)
        return NULL;
    tmq_event_t **events = (tmq_event_t **) (void *) (list + 1);
    list->events = events;
    list->before_seq = page->before_seq;
    for (size_t i = 0; i < count; i++) {
        events[i] = core_event_record (page->list->events[i], ns, generation);
        if (events[i] == NULL) {
            tmq_event_list_free (list);
            return NULL;
        }
        list->count++;
    }
    return list;
}

/* Assignments. */

static void assignment_fill (tmq_assignment_t *out, tail_t *tail, const Taskmq__Assignment *in,
                             const void *payload)
{
    out->after = tail_after (tail, in->extra, &out->after_count);
    out->labels = tail_labels (tail, in->labels, in->n_labels);
    out->labels_count = in->n_labels;
    out->queue = tail_text (tail, in->queue);
    out->session = tail_text (tail, in->session);
    out->method = tail_text (tail, in->method);
    out->content_type = tail_text (tail, in->content_type);
    out->meta = tail_text (tail, in->meta);
    out->trace = tail_text (tail, in->extra != NULL ? in->extra->trace : "");
    out->payload = tail_body (tail, payload, in->payload_bytes);
}

tmq_assignment_t *core_assignment_record (const Taskmq__Assignment *in, const void *payload)
{
    tmq_assignment_t measured = {0};
    tail_t tail = {NULL, 0};
    assignment_fill (&measured, &tail, in, payload);
    tmq_assignment_t *out = calloc (1, sizeof *out + tail.used);
    if (out == NULL)
        return NULL;
    tail = (tail_t){(uint8_t *) (out + 1), 0};
    assignment_fill (out, &tail, in, payload);
    id_from_bytes (&out->task_id, in->task_id.data, in->task_id.len);
    out->attempt = in->attempt;
    out->max_attempts = in->max_attempts;
    out->lease_ms = in->lease_ms;
    out->priority = (uint8_t) in->priority;
    out->created_at = in->created_at;
    out->payload_bytes = in->payload_bytes;
    out->max_runtime_ms = in->extra != NULL ? in->extra->max_runtime_ms : 0;
    out->checkpoint_bytes = in->extra != NULL ? in->extra->checkpoint_bytes : 0;
    out->turns = in->extra != NULL ? in->extra->turns : 0;
    if (in->extra != NULL)
        blob_fill (&out->payload_blob, in->extra->payload_blob);
    return out;
}

/* Stats. */

static void stats_fill (tmq_counter_t *counters, tmq_queue_depth_t *queues, tail_t *tail,
                        const Taskmq__StatsReport *in)
{
    for (size_t i = 0; i < in->n_counters; i++) {
        const char *name = tail_text (tail, in->counters[i]->name);
        if (counters != NULL)
            counters[i] = (tmq_counter_t){name, in->counters[i]->value};
    }
    for (size_t i = 0; i < in->n_queues; i++) {
        const Taskmq__QueueDepth *depth = in->queues[i];
        const char *name = tail_text (tail, depth->queue);
        if (queues != NULL)
            queues[i] = (tmq_queue_depth_t){name,
                                            depth->ready,
                                            depth->scheduled,
                                            depth->working,
                                            depth->input_required,
                                            depth->submitted,
                                            depth->completed,
                                            depth->failed,
                                            depth->attempts_failed,
                                            depth->oldest_ready_ms,
                                            depth->blocked};
    }
}

tmq_stats_t *core_stats_record (const Taskmq__StatsReport *in)
{
    tail_t tail = {NULL, 0};
    stats_fill (NULL, NULL, &tail, in);
    size_t counters_size = in->n_counters * sizeof (tmq_counter_t);
    size_t queues_size = in->n_queues * sizeof (tmq_queue_depth_t);
    tmq_stats_t *out = calloc (1, sizeof *out + counters_size + queues_size + tail.used);
    if (out == NULL)
        return NULL;
    tmq_counter_t *counters = (tmq_counter_t *) (void *) (out + 1);
    tmq_queue_depth_t *queues = (tmq_queue_depth_t *) (void *) (counters + in->n_counters);
    tail = (tail_t){(uint8_t *) (queues + in->n_queues), 0};
    stats_fill (counters, queues, &tail, in);
    out->counters = counters;
    out->counters_count = in->n_counters;
    out->queues = queues;
    out->queues_count = in->n_queues;
    return out;
}

/* Explanations. */

static void fact_fill (tmq_fact_t *out, tail_t *tail, const Taskmq__Fact *in)
{
    tmq_fact_t fact = {tail_text (tail, in->name), (tmq_fact_kind_t) in->kind,
                       tail_text (tail, in->text), in->number};
    if (out != NULL)
        *out = fact;
}

static void explanation_fill (tmq_explanation_t *out, tmq_fact_t *facts, tail_t *tail,
                              const Taskmq__Explanation *in)
{
    out->after = tail_list (tail, in->after, in->n_after); /* first: it needs to be aligned */
    out->after_count = in->n_after;
    out->reason = tail_text (tail, in->reason);
    out->sentence = tail_text (tail, in->sentence);
    for (size_t i = 0; i < in->n_facts; i++)
        fact_fill (facts != NULL ? &facts[i] : NULL, tail, in->facts[i]);
}

tmq_explanation_t *core_explanation_record (const Taskmq__Explanation *in)
{
    tmq_explanation_t measured = {0};
    tail_t tail = {NULL, 0};
    size_t list = in->n_facts * sizeof (tmq_fact_t);
    explanation_fill (&measured, NULL, &tail, in);
    tmq_explanation_t *out = calloc (1, sizeof *out + list + tail.used);
    if (out == NULL)
        return NULL;
    tmq_fact_t *facts = (tmq_fact_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) (facts + in->n_facts), 0};
    explanation_fill (out, facts, &tail, in);
    out->facts = facts;
    out->facts_count = in->n_facts;
    out->status = (tmq_status_t) in->status;
    out->phase = (tmq_phase_t) in->phase;
    id_from_bytes (&out->id, in->task_id.data, in->task_id.len);
    return out;
}

/* Attempts. */

static void attempt_fill (tmq_attempt_info_t *out, tail_t *tail, const Taskmq__AttemptInfo *in)
{
    out->attempt = in->attempt;
    out->worker = tail_text (tail, in->worker);
    out->started_at = (int64_t) in->started_at;
    out->ended_at = (int64_t) in->ended_at;
    out->how = (tmq_event_kind_t) in->how;
    out->error_code = in->error != NULL ? in->error->code : 0;
    out->error_message = tail_text (tail, in->error != NULL ? in->error->message : "");
    out->kept = in->kept;
    out->kept_bytes = in->kept_bytes;
    out->kept_type = tail_text (tail, in->kept_type);
    out->kept_at = (int64_t) in->kept_at;
    out->kept_until = (int64_t) in->kept_until;
    out->kept_blob = (tmq_blob_t){.bytes = 0};
    if (in->kept_hash.len == sizeof out->kept_blob.hash) {
        out->kept_blob.bytes = in->kept_bytes;
        memcpy (out->kept_blob.hash, in->kept_hash.data, sizeof out->kept_blob.hash);
    }
}

tmq_attempt_list_t *core_attempts_record (const Taskmq__AttemptPage *in)
{
    tmq_attempt_info_t measured;
    tail_t tail = {NULL, 0};
    for (size_t i = 0; i < in->n_attempts; i++)
        attempt_fill (&measured, &tail, in->attempts[i]);
    size_t list = in->n_attempts * sizeof (tmq_attempt_info_t);
    tmq_attempt_list_t *out = calloc (1, sizeof *out + list + tail.used);
    if (out == NULL)
        return NULL;
    tmq_attempt_info_t *attempts = (tmq_attempt_info_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) (attempts + in->n_attempts), 0};
    for (size_t i = 0; i < in->n_attempts; i++)
        attempt_fill (&attempts[i], &tail, in->attempts[i]);
    out->attempts = attempts;
    out->count = in->n_attempts;
    out->next = in->next;
    return out;
}

/* Queues. */

static void queue_fill (tmq_queue_t *out, tail_t *tail, const Taskmq__QueueInfo *in)
{
    static const Taskmq__QueueSettings nothing = TASKMQ__QUEUE_SETTINGS__INIT;
    const Taskmq__QueueSettings *settings = in->settings != NULL ? in->settings : &nothing;
    out->queue = tail_text (tail, in->queue);
    out->paused = settings->paused;
    out->paused_by = tail_text (tail, settings->paused_by);
    out->paused_at = settings->paused_at;
    out->paused_why = tail_text (tail, settings->paused_why);
#define X(number, NAME, member) out->settings.member = (uint64_t) settings->member;
    TMQ_QUEUE_FIELD_MAP (X)
#undef X
    out->ready = in->ready;
    out->scheduled = in->scheduled;
    out->working = in->working;
    out->input_required = in->input_required;
    out->queued_bytes = in->queued_bytes;
    out->running = in->running;
    out->workers = in->workers;
    out->closed = in->closed;
    out->needs_sets = in->needs_sets;
    out->blocked = in->blocked;
    out->submitted = in->submitted;
    out->completed = in->completed;
    out->failed = in->failed;
    out->attempts_failed = in->attempts_failed;
    out->oldest_ready_ms = in->oldest_ready_ms;
}

tmq_queue_report_t *core_queues_record (const Taskmq__QueuePage *page)
{
    tail_t tail = {NULL, 0};
    tmq_queue_t measured;
    char next[2 * TMQ_CURSOR_BYTES_MAX + 1] = "";
    hex_encode (next, page->next.data, page->next.len);
    for (size_t i = 0; i < page->n_queues; i++)
        queue_fill (&measured, &tail, page->queues[i]);
    tail_text (&tail, next);
    size_t queues_size = page->n_queues * sizeof (tmq_queue_t);
    tmq_queue_report_t *out = calloc (1, sizeof *out + queues_size + tail.used);
    if (out == NULL)
        return NULL;
    tmq_queue_t *queues = (tmq_queue_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) (queues + page->n_queues), 0};
    for (size_t i = 0; i < page->n_queues; i++)
        queue_fill (&queues[i], &tail, page->queues[i]);
    out->queues = queues;
    out->count = page->n_queues;
    out->next = tail_text (&tail, next);
    return out;
}

tmq_part_t *core_part_record (const Taskmq__Part *in, const void *body)
{
    tail_t tail = {0};
    tail_text (&tail, in->name);
    tail_body (&tail, body, in->body);
    tmq_part_t *out = calloc (1, sizeof *out + tail.used);
    if (out == NULL)
        return NULL;
    tail = (tail_t){(uint8_t *) (out + 1), 0};
    out->name = tail_text (&tail, in->name);
    out->bytes = tail_body (&tail, body, in->body);
    out->length = in->body;
    out->file = in->file;
    out->offset = in->offset;
    out->more = in->more;
    out->total = in->total;
    out->n = in->n;
    return out;
}

tmq_part_t *core_head_record (const Taskmq__AuditAt *in)
{
    tmq_part_t *out = calloc (1, sizeof *out);
    if (out == NULL)
        return NULL;
    out->bytes = out->name = "";
    out->n = in->n;
    memcpy (out->hash, in->hash.data, sizeof out->hash);
    return out;
}

tmq_vacuum_state_t *core_vacuum_record (const Taskmq__Vacuumed *in)
{
    tmq_vacuum_state_t *out = calloc (1, sizeof *out);
    if (out != NULL)
        *out = (tmq_vacuum_state_t){in->file_bytes, in->free_bytes, in->given_bytes, in->more};
    return out;
}

static void cleanup_fill (tmq_cleanup_item_t *out, tail_t *tail, const Taskmq__CleanupItem *in)
{
    *out = (tmq_cleanup_item_t){.status = (tmq_status_t) in->status,
                                .queue = tail_text (tail, in->queue),
                                .policy = (tmq_policy_t) in->policy,
                                .of_namespace = in->of_namespace,
                                .age_ms = in->age_ms,
                                .bytes = in->bytes};
    if (in->task_id.len == sizeof out->id.bytes)
        memcpy (out->id.bytes, in->task_id.data, sizeof out->id.bytes);
}

tmq_cleanup_state_t *core_cleanup_record (const Taskmq__CleanupPage *in)
{
    tail_t tail = {NULL, 0};
    tmq_cleanup_item_t measured;
    char next[2 * TMQ_CURSOR_BYTES_MAX + 1] = "";
    hex_encode (next, in->next.data, in->next.len);
    for (size_t i = 0; i < in->n_items; i++)
        cleanup_fill (&measured, &tail, in->items[i]);
    tail_text (&tail, next);
    size_t items_size = in->n_items * sizeof (tmq_cleanup_item_t);
    tmq_cleanup_state_t *out = calloc (1, sizeof *out + items_size + tail.used);
    if (out == NULL)
        return NULL;
    tmq_cleanup_item_t *items = (tmq_cleanup_item_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) (items + in->n_items), 0};
    for (size_t i = 0; i < in->n_items; i++)
        cleanup_fill (&items[i], &tail, in->items[i]);
    *out = (tmq_cleanup_state_t){.items = items,
                                 .count = in->n_items,
                                 .next = tail_text (&tail, next),
                                 .pass = in->pass,
                                 .more = in->more,
                                 .looked = in->looked,
                                 .removed = in->removed,
                                 .removed_bytes = in->removed_bytes};
    return out;
}

/* Values. */

static void value_fill (tmq_value_t *out, tail_t *tail, const Taskmq__Value *in, const void *body)
{
    out->session = tail_text (tail, in->session);
    out->key = tail_text (tail, in->key);
    out->actor = tail_text (tail, in->actor);
    out->owner = tail_text (tail, in->owner);
    out->version = in->version;
    out->updated_at = in->updated_at;
    out->length = in->bytes;
    if (in->body == in->bytes && (body != NULL || in->body == 0)) /* in a list there is none */
        out->bytes = tail_body (tail, body, in->body);
}

tmq_value_t *core_value_record (const Taskmq__Value *in, const void *body)
{
    tmq_value_t measured = {0};
    tail_t tail = {NULL, 0};
    value_fill (&measured, &tail, in, body);
    tmq_value_t *out = calloc (1, sizeof *out + tail.used);
    if (out == NULL)
        return NULL;
    tail = (tail_t){(uint8_t *) (out + 1), 0};
    value_fill (out, &tail, in, body);
    return out;
}

/* The values stand first, because they need to be aligned. */
static void value_list_fill (tmq_value_list_t *out, tmq_value_t *values, tail_t *tail,
                             const Taskmq__ValuePage *page)
{
    for (size_t i = 0; i < page->n_values; i++) {
        tmq_value_t value = {0};
        value_fill (&value, tail, page->values[i], NULL);
        value.bytes = NULL;
        if (values != NULL)
            values[i] = value;
    }
    out->values = values;
    out->count = page->n_values;
    out->next = tail_text (tail, page->next);
}

tmq_value_list_t *core_value_list_record (const Taskmq__ValuePage *page)
{
    tmq_value_list_t measured = {0};
    tail_t tail = {NULL, 0};
    value_list_fill (&measured, NULL, &tail, page);
    size_t values_bytes = page->n_values * sizeof (tmq_value_t);
    tmq_value_list_t *out = calloc (1, sizeof *out + values_bytes + tail.used);
    if (out == NULL)
        return NULL;
    tmq_value_t *values = (tmq_value_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) values + values_bytes, 0};
    value_list_fill (out, values, &tail, page);
    return out;
}

/* Items. */

static void item_list_fill (tmq_item_list_t *out, tmq_item_t *items, tail_t *tail,
                            const Taskmq__ItemPage *page, const uint8_t *body)
{
    size_t used = 0;
    for (size_t i = 0; i < page->n_items; i++) {
        const Taskmq__Item *in = page->items[i];
        bool whole = in->body == in->bytes && in->body <= page->body - used;
        tmq_item_t item = {.number = in->number,
                           .at = in->at,
                           .owner = tail_text (tail, in->owner),
                           .source = tail_text (tail, in->source),
                           .type = tail_text (tail, in->type),
                           .intensity = (double) in->intensity / TMQ_INTENSITY_ONE,
                           .length = in->bytes};
        if (whole) {
            item.bytes = tail_body (tail, in->body > 0 ? body + used : NULL, in->body);
            used += in->body;
        }
        if (items != NULL)
            items[i] = item;
    }
    out->items = items;
    out->count = page->n_items;
    out->next = page->next;
}

tmq_item_list_t *core_item_list_record (const Taskmq__ItemPage *page, const uint8_t *body)
{
    tmq_item_list_t measured = {0};
    tail_t tail = {NULL, 0};
    item_list_fill (&measured, NULL, &tail, page, body);
    size_t items_bytes = page->n_items * sizeof (tmq_item_t);
    tmq_item_list_t *out = calloc (1, sizeof *out + items_bytes + tail.used);
    if (out == NULL)
        return NULL;
    tmq_item_t *items = (tmq_item_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) items + items_bytes, 0};
    item_list_fill (out, items, &tail, page, body);
    return out;
}
