/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One table of requests; behind it one check for each. A check stops at the first thing that is
 * wrong and says which member it was and what it must be. */
#include "validate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "json.h"
#include "request_kinds.h"
#include "types.h"

/* What checks are made of. */

/* One request under judgement. */
typedef struct check {
    arena_t *arena;
    verdict_t *verdict;
    const verdict_t *items;    /* see request_verdict_t */
    const codec_flaw_t *flaws; /* this request's first, NULL if it has none */
} check_t;

/* Always false: for `return refuse (…)`. */
__attribute__ ((format (printf, 3, 4))) static bool refuse (check_t *check, tmq_code_t code,
                                                            const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    const char *text = arena_vprintf (check->arena, format, arguments);
    va_end (arguments);
    check->verdict->code = code;
    check->verdict->text = text != NULL ? text : code_text ((int) code);
    return false;
}

static bool check_name (check_t *check, const char *member, const char *name)
{
    return name_is_valid (name) ||
           refuse (check, TMQ_INVALID, "%s: must match [A-Za-z0-9._-]{1,%d}", member,
                   TMQ_NAME_LENGTH_MAX);
}

static bool check_name_or_empty (check_t *check, const char *member, const char *name)
{
    return *name == '\0' || check_name (check, member, name);
}

static bool check_text (check_t *check, const char *member, const char *text, size_t bytes_max)
{
    size_t length = strlen (text);
    return length <= bytes_max ||
           refuse (check, TMQ_TOO_LARGE, "%s: %zu bytes, at most %zu", member, length, bytes_max);
}

static bool check_16_bytes (check_t *check, const char *member, const ProtobufCBinaryData *data)
{
    return data->len == ID_BYTES ||
           refuse (check, TMQ_INVALID, "%s: must be 16 bytes, not %zu", member, data->len);
}

static bool check_range (check_t *check, const char *member, uint64_t value, uint64_t min,
                         uint64_t max)
{
    return (value >= min && value <= max) ||
           refuse (check, TMQ_INVALID, "%s: must be in %llu..%llu", member,
                   (unsigned long long) min, (unsigned long long) max);
}

static bool check_count (check_t *check, const char *member, size_t count, size_t min, size_t max)
{
    if (count < min)
        return refuse (check, TMQ_INVALID, "%s: at least %zu", member, min);
    return count <= max ||
           refuse (check, TMQ_TOO_LARGE, "%s: %zu of them, at most %zu", member, count, max);
}

static bool check_body (check_t *check, const char *member, uint32_t bytes)
{
    return bytes <= TMQ_FRAME_BYTES_MAX ||
           refuse (check, TMQ_TOO_LARGE, "%s: %u, at most %d", member, bytes, TMQ_FRAME_BYTES_MAX);
}

static bool check_json (check_t *check, const char *member, const char *text, size_t bytes_max,
                        bool object)
{
    if (*text == '\0')
        return true;
    if (!check_text (check, member, text, bytes_max))
        return false;
    size_t length = strlen (text);
    if (object)
        return json_text_is_object (text, length) ||
               refuse (check, TMQ_INVALID, "%s: must be a JSON object", member);
    return json_text_is_valid (text, length) ||
           refuse (check, TMQ_INVALID, "%s: must be JSON", member);
}

static bool check_names (check_t *check, const char *member, char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!check_name (check, member, names[i]))
            return false;
    }
    return true;
}

static bool check_ids (check_t *check, const char *member, const ProtobufCBinaryData *ids,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!check_16_bytes (check, member, &ids[i]))
            return false;
    }
    return true;
}

static bool check_labels (check_t *check, Taskmq__Label *const *labels, size_t count)
{
    if (!check_count (check, "labels", count, 0, TMQ_LABELS_MAX))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!check_name (check, "labels.key", labels[i]->key) ||
            !check_text (check, "labels.value", labels[i]->value, TMQ_LABEL_BYTES_MAX))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (strcmp (labels[i]->key, labels[k]->key) == 0)
                return refuse (check, TMQ_INVALID, "labels.key: \"%s\" stands twice",
                               labels[i]->key);
        }
    }
    return true;
}

static bool check_needs (check_t *check, const Taskmq__Extra *extra)
{
    return check_count (check, "extra.needs", extra->n_needs, 0, TMQ_NEEDS_MAX) &&
           check_labels (check, extra->needs, extra->n_needs);
}

static bool check_lease (check_t *check, const Taskmq__Lease *lease)
{
    if (lease == NULL)
        return refuse (check, TMQ_INVALID, "lease: is missing");
    return check_16_bytes (check, "lease.task_id", &lease->task_id) &&
           check_range (check, "lease.attempt", lease->attempt, 1, UINT32_MAX) &&
           check_16_bytes (check, "lease.secret", &lease->secret);
}

static bool check_leases (check_t *check, Taskmq__Lease *const *leases, size_t count, size_t min)
{
    if (!check_count (check, "leases", count, min, TMQ_CREDIT_MAX))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!check_lease (check, leases[i]))
            return false;
    }
    return true;
}

/* The link. */

enum { CLIENT_TEXT_BYTES_MAX = 64 };

static bool check_nothing (check_t *check, const Taskmq__Request *request)
{
    (void) check;
    (void) request;
    return true;
}

static bool check_hello (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Hello *hello = request->hello;
    if (!check_range (check, "version_max", hello->version_max, 1, UINT32_MAX) ||
        !check_range (check, "version_min", hello->version_min, 1, hello->version_max))
        return false;
    if (hello->version_min > TMQ_PROTOCOL_VERSION || hello->version_max < TMQ_PROTOCOL_VERSION)
        return refuse (check, TMQ_UNSUPPORTED, "the broker speaks version %d of the protocol only",
                       TMQ_PROTOCOL_VERSION);
    return check_name_or_empty (check, "namespace", hello->namespace_) &&
           check_text (check, "client", hello->client, CLIENT_TEXT_BYTES_MAX);
}

/* Tasks. */

static bool check_task_times (check_t *check, const Taskmq__TaskSpec *task)
{
    if (task->ttl_never && task->ttl_ms != 0)
        return refuse (check, TMQ_INVALID, "ttl_ms: must be 0 beside ttl_never");
    if (!check_range (check, "ttl_ms", task->ttl_ms, 0, TMQ_TTL_MS_MAX) ||
        !check_range (check, "backoff_ms", task->backoff_ms, 0, TMQ_BACKOFF_MS_MAX) ||
        !check_range (check, "delay_ms", task->delay_ms, 0, TMQ_TTL_MS_MAX) ||
        !check_range (check, "not_before", task->not_before, 0, TMQ_TIME_MS_MAX))
        return false;
    if (task->delay_ms != 0 && task->not_before != 0)
        return refuse (check, TMQ_INVALID, "not_before: must be 0 beside delay_ms");
    return task->lease_ms == 0 ||
           check_range (check, "lease_ms", task->lease_ms, TMQ_LEASE_MS_MIN, TMQ_LEASE_MS_MAX);
}

/* A trace goes into environments and headers. */
static bool check_trace (check_t *check, const char *trace)
{
    if (!check_text (check, "extra.trace", trace, TMQ_TRACE_BYTES_MAX))
        return false;
    for (const char *at = trace; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            return refuse (check, TMQ_INVALID, "extra.trace: must be printable ASCII");
    return true;
}

static bool check_after (check_t *check, const Taskmq__TaskSpec *task)
{
    const Taskmq__Extra *extra = task->extra;
    if (extra == NULL)
        return true;
    if (!check_count (check, "extra.after", extra->n_after, 0, TMQ_AFTER_MAX))
        return false;
    for (size_t i = 0; i < extra->n_after; i++) {
        const Taskmq__Dependency *entry = extra->after[i];
        const ProtobufCBinaryData *id = &entry->task_id;
        if (!check_16_bytes (check, "extra.after.task_id", id) ||
            !check_range (check, "extra.after.policy", entry->policy, 0, TMQ_AFTER_CONTINUE) ||
            !check_range (check, "extra.after.status", entry->status, 0, 0))
            return false;
        if (memcmp (id->data, task->task_id.data, ID_BYTES) == 0)
            return refuse (check, TMQ_INVALID, "extra.after: a task cannot depend on itself");
        for (size_t k = 0; k < i; k++)
            if (memcmp (id->data, extra->after[k]->task_id.data, ID_BYTES) == 0)
                return refuse (check, TMQ_INVALID, "extra.after: a task stands twice");
    }
    return true;
}

static bool check_not_given (check_t *check, const char *member, const char *text)
{
    return text[0] == '\0' || refuse (check, TMQ_INVALID, "%s: the broker's alone", member);
}

/* What a submitter may say of a task's extra. */
static bool check_extra (check_t *check, const Taskmq__Extra *extra)
{
    if (extra == NULL)
        return true;
    size_t bytes = taskmq__extra__get_packed_size (extra);
    if (bytes > TMQ_EXTRA_BYTES_MAX)
        return refuse (check, TMQ_TOO_LARGE, "extra: %zu bytes, at most %d", bytes,
                       TMQ_EXTRA_BYTES_MAX);
    if (extra->revived_by.len > 0 || extra->set_by.len > 0 || extra->checkpoint_bytes > 0)
        return refuse (check, TMQ_INVALID, "extra: has what only the broker may say");
    return check_range (check, "extra.start_by", extra->start_by, 0, TMQ_TIME_MS_MAX) &&
           check_range (check, "extra.max_runtime_ms", extra->max_runtime_ms, 0, TMQ_TTL_MS_MAX) &&
           check_trace (check, extra->trace) &&
           check_not_given (check, "extra.cancel_message", extra->cancel_message) &&
           check_text (check, "extra.fair_key", extra->fair_key, TMQ_FAIR_KEY_BYTES_MAX) &&
           check_needs (check, extra);
}

/* Everything but its id. */
static bool check_spec (check_t *check, const Taskmq__TaskSpec *task)
{
    return check_name (check, "queue", task->queue) &&
           check_body (check, "payload_bytes", task->payload_bytes) &&
           check_text (check, "method", task->method, TMQ_METHOD_BYTES_MAX) &&
           check_name_or_empty (check, "session", task->session) &&
           check_text (check, "content_type", task->content_type, TMQ_CONTENT_TYPE_BYTES_MAX) &&
           check_text (check, "dedup_key", task->dedup_key, TMQ_DEDUP_KEY_BYTES_MAX) &&
           check_range (check, "priority_plus_1", task->priority_plus_1, 0, 256) &&
           check_range (check, "max_attempts", task->max_attempts, 0, TMQ_MAX_ATTEMPTS_MAX) &&
           check_task_times (check, task) && check_labels (check, task->labels, task->n_labels) &&
           check_json (check, "meta", task->meta, TMQ_META_BYTES_MAX, true) &&
           check_extra (check, task->extra) && check_after (check, task);
}

static bool check_task (check_t *check, const Taskmq__TaskSpec *task)
{
    tmq_id_t id;
    if (!id_from_bytes (&id, task->task_id.data, task->task_id.len) || !id_is_v7 (&id))
        return refuse (check, TMQ_INVALID, "task_id: must be the 16 bytes of a UUIDv7");
    return check_spec (check, task);
}

/* True if flaw is one of that item of the request that is checked. */
static bool flaw_is_in (const check_t *check, const codec_flaw_t *flaw, size_t item)
{
    return flaw != NULL && flaw->request == check->flaws->request && flaw->item == item;
}

/* Judges the items one by one; the request itself stands as long as their number is right. */
static bool check_submit (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Submit *submit = request->submit;
    if (!check_count (check, "tasks", submit->n_tasks, 1, TMQ_SUBMIT_ITEMS_MAX))
        return false;
    verdict_t *items = NULL;
    const codec_flaw_t *flaw = check->flaws;
    for (size_t i = 0; i < submit->n_tasks; i++) {
        verdict_t verdict = {TMQ_OK, NULL};
        check_t item = {check->arena, &verdict, NULL, NULL};
        if (flaw_is_in (check, flaw, i))
            refuse (&item, TMQ_INVALID, "%s: must be UTF-8 without NUL", flaw->field);
        else
            check_task (&item, submit->tasks[i]);
        while (flaw_is_in (check, flaw, i))
            flaw = flaw->next;
        if (verdict.code == TMQ_OK)
            continue;
        if (items == NULL)
            items = arena_zalloc (check->arena, submit->n_tasks, sizeof *items);
        if (items == NULL)
            return refuse (check, TMQ_TOO_LARGE, "the message needs too much memory to judge");
        items[i] = verdict;
    }
    check->items = items;
    return true;
}

static bool check_get (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->get->task_id);
}

static bool check_result (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->result->task_id);
}

static bool check_payload (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->payload->task_id);
}

static bool check_resolve (check_t *check, const Taskmq__Request *request)
{
    return id_suffix_is_valid (request->resolve->suffix) ||
           refuse (check, TMQ_INVALID, "suffix: must be %d..%d lower-case hexadecimal digits",
                   TMQ_SUFFIX_LENGTH_MIN, ID_SUFFIX_LENGTH_MAX);
}

static bool check_filter (check_t *check, const Taskmq__Filter *filter)
{
    if (!check_count (check, "queues", filter->n_queues, 0, TMQ_FILTER_VALUES_MAX) ||
        !check_names (check, "queues", filter->queues, filter->n_queues) ||
        !check_count (check, "sessions", filter->n_sessions, 0, TMQ_FILTER_VALUES_MAX) ||
        !check_names (check, "sessions", filter->sessions, filter->n_sessions) ||
        !check_count (check, "statuses", filter->n_statuses, 0, TMQ_FILTER_VALUES_MAX))
        return false;
    for (size_t i = 0; i < filter->n_statuses; i++) {
        if (!status_is_known (filter->statuses[i]))
            return refuse (check, TMQ_INVALID, "statuses: %u is no status", filter->statuses[i]);
    }
    return true;
}

/* A filter of list and count: what is stored cannot be asked for by id. */
static bool check_stored_filter (check_t *check, const Taskmq__Filter *filter)
{
    if (filter == NULL)
        return true;
    if (filter->n_task_ids > 0)
        return refuse (check, TMQ_UNSUPPORTED, "task_ids: only in the filter of a subscription");
    if (filter->n_subjects > 0 || filter->name_prefix[0] != '\0')
        return refuse (check, TMQ_UNSUPPORTED,
                       "subjects, name_prefix: only in the filter of a subscription");
    if (!check_labels (check, filter->labels, filter->n_labels))
        return false;
    if (!check_range (check, "created_since", filter->created_since, 0, INT64_MAX) ||
        !check_range (check, "created_until", filter->created_until, 0, INT64_MAX))
        return false;
    return check_filter (check, filter);
}

static bool check_list (check_t *check, const Taskmq__Request *request)
{
    return check_range (check, "limit", request->list->limit, 0, TMQ_LIST_LIMIT_MAX) &&
           check_stored_filter (check, request->list->filter);
}

static bool check_filter_of_count (check_t *check, const Taskmq__Request *request)
{
    return check_stored_filter (check, request->count->filter);
}

static bool check_task_events (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->task_events->task_id) &&
           check_range (check, "limit", request->task_events->limit, 0, TMQ_LIST_LIMIT_MAX);
}

static bool check_why (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->why->task_id);
}

static bool check_cancel (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->cancel->task_id) &&
           check_text (check, "message", request->cancel->message, TMQ_MESSAGE_BYTES_MAX);
}

static bool check_wait (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Wait *wait = request->wait;
    return check_count (check, "task_ids", wait->n_task_ids, 1, TMQ_WAIT_IDS_MAX) &&
           check_ids (check, "task_ids", wait->task_ids, wait->n_task_ids);
}

/* Questions. */

static bool check_answer (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Answer *answer = request->answer;
    if (!check_16_bytes (check, "task_id", &answer->task_id) ||
        !check_count (check, "items", answer->n_items, 1, TMQ_QUESTIONS_OPEN_MAX))
        return false;
    for (size_t i = 0; i < answer->n_items; i++) {
        const Taskmq__AnswerItem *item = answer->items[i];
        if (!check_text (check, "items.key", item->key, TMQ_QUESTION_KEY_BYTES_MAX))
            return false;
        if (item->bytes > TMQ_ANSWER_BYTES_MAX)
            return refuse (check, TMQ_TOO_LARGE, "items.bytes: %u, at most %d", item->bytes,
                           TMQ_ANSWER_BYTES_MAX);
    }
    return true;
}

static bool check_inbox (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Inbox *inbox = request->inbox;
    if (inbox->task_id.len > 0 && !check_16_bytes (check, "task_id", &inbox->task_id))
        return false;
    return check_count (check, "queues", inbox->n_queues, 0, TMQ_FILTER_VALUES_MAX) &&
           check_names (check, "queues", inbox->queues, inbox->n_queues) &&
           check_count (check, "sessions", inbox->n_sessions, 0, TMQ_FILTER_VALUES_MAX) &&
           check_names (check, "sessions", inbox->sessions, inbox->n_sessions) &&
           check_range (check, "limit", inbox->limit, 0, TMQ_LIST_LIMIT_MAX);
}

static bool check_ask (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Ask *ask = request->ask;
    if (!check_lease (check, ask->lease) ||
        !check_text (check, "key", ask->key, TMQ_QUESTION_KEY_BYTES_MAX))
        return false;
    if (*ask->request == '\0')
        return refuse (check, TMQ_INVALID, "request: must be JSON");
    if (!check_json (check, "request", ask->request, TMQ_QUESTION_BYTES_MAX, false) ||
        !check_range (check, "deadline_ms", ask->deadline_ms, 0, TMQ_TTL_MS_MAX))
        return false;
    if (!ask->has_default)
        return (*ask->default_answer == '\0' && !ask->default_text) ||
               refuse (check, TMQ_INVALID, "default_answer: only with has_default");
    if (ask->default_text)
        return check_text (check, "default_answer", ask->default_answer, TMQ_QUESTION_BYTES_MAX);
    if (*ask->default_answer == '\0')
        return refuse (check, TMQ_INVALID, "default_answer: must be JSON");
    return check_json (check, "default_answer", ask->default_answer, TMQ_QUESTION_BYTES_MAX, false);
}

static bool check_take_answers (check_t *check, const Taskmq__Request *request)
{
    return check_lease (check, request->take_answers->lease);
}

/* Subscriptions. */

static bool check_subscription (check_t *check, uint64_t subscription)
{
    return subscription != 0 || refuse (check, TMQ_INVALID, "subscription: must not be 0");
}

static bool check_subjects (check_t *check, const Taskmq__Filter *filter)
{
    if (!check_count (check, "subjects", filter->n_subjects, 0, TMQ_FILTER_VALUES_MAX) ||
        !check_text (check, "name_prefix", filter->name_prefix, TMQ_ENTRY_NAME_BYTES_MAX))
        return false;
    for (size_t i = 0; i < filter->n_subjects; i++) {
        if (strcmp (subject_text (filter->subjects[i]), "?") == 0)
            return refuse (check, TMQ_INVALID, "subjects: %u is no subject", filter->subjects[i]);
    }
    return true;
}

static bool check_live_filter (check_t *check, const Taskmq__Filter *filter)
{
    if (filter == NULL)
        return true;
    if (filter->created_since != 0 || filter->created_until != 0)
        return refuse (check, TMQ_INVALID, "created_since, created_until: not in a subscription");
    return check_subjects (check, filter) &&
           check_count (check, "task_ids", filter->n_task_ids, 0, TMQ_FILTER_VALUES_MAX) &&
           check_ids (check, "task_ids", filter->task_ids, filter->n_task_ids) &&
           check_labels (check, filter->labels, filter->n_labels) && check_filter (check, filter);
}

static bool check_subscribe (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Subscribe *subscribe = request->subscribe;
    if (!check_subscription (check, subscribe->subscription) ||
        !check_range (check, "since_time", subscribe->since_time, 0, INT64_MAX))
        return false;
    if (subscribe->since_time != 0 && subscribe->after_seq != 0)
        return refuse (check, TMQ_INVALID, "since_time: must be 0 beside after_seq");
    return check_live_filter (check, subscribe->filter);
}

static bool check_credit (check_t *check, const Taskmq__Request *request)
{
    return check_subscription (check, request->credit->subscription);
}

static bool check_unsubscribe (check_t *check, const Taskmq__Request *request)
{
    return check_subscription (check, request->unsubscribe->subscription);
}

/* Workers. */

static bool check_about (check_t *check, const Taskmq__Register *worker)
{
    return check_name_or_empty (check, "role", worker->role) &&
           check_labels (check, worker->labels, worker->n_labels) &&
           check_text (check, "host", worker->host, TMQ_WORKER_TEXT_BYTES_MAX) &&
           check_text (check, "version", worker->version, TMQ_WORKER_TEXT_BYTES_MAX) &&
           check_json (check, "config", worker->config, TMQ_WORKER_CONFIG_BYTES_MAX, true) &&
           check_count (check, "depends_on", worker->n_depends_on, 0, TMQ_WORKER_DEPENDS_MAX) &&
           check_names (check, "depends_on", worker->depends_on, worker->n_depends_on);
}

static bool check_register (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Register *worker = request->register_;
    return check_16_bytes (check, "worker_id", &worker->worker_id) &&
           check_name (check, "name", worker->name) &&
           check_count (check, "queues", worker->n_queues, 1, TMQ_WORKER_QUEUES_MAX) &&
           check_names (check, "queues", worker->queues, worker->n_queues) &&
           check_range (check, "capacity", worker->capacity, 0, TMQ_CREDIT_MAX) &&
           check_about (check, worker) && check_leases (check, worker->leases, worker->n_leases, 0);
}

static bool check_worker_credit (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "worker_id", &request->worker_credit->worker_id) &&
           check_range (check, "capacity", request->worker_credit->capacity, 0, TMQ_CREDIT_MAX);
}

static bool check_started (check_t *check, const Taskmq__Request *request)
{
    return check_lease (check, request->started->lease);
}

static bool check_renew (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "worker_id", &request->renew->worker_id) &&
           check_leases (check, request->renew->leases, request->renew->n_leases, 1);
}

static bool check_push (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Push *push = request->push;
    if (!check_lease (check, push->lease) ||
        !check_text (check, "status_message", push->status_message, TMQ_MESSAGE_BYTES_MAX))
        return false;
    if (push->progress != NULL)
        return check_text (check, "progress.unit", push->progress->unit, TMQ_UNIT_BYTES_MAX) &&
               check_text (check, "progress.message", push->progress->message,
                           TMQ_MESSAGE_BYTES_MAX);
    return *push->status_message != '\0' ||
           refuse (check, TMQ_INVALID, "status_message or progress: one must be given");
}

static bool check_cancel_ack (check_t *check, const Taskmq__Request *request)
{
    return check_lease (check, request->cancel_ack->lease);
}

static bool check_complete (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Complete *complete = request->complete;
    return check_lease (check, complete->lease) &&
           check_body (check, "result_bytes", complete->result_bytes) &&
           check_text (check, "result_type", complete->result_type, TMQ_CONTENT_TYPE_BYTES_MAX);
}

static bool check_fail (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Fail *fail = request->fail;
    if (!check_lease (check, fail->lease))
        return false;
    if (task_error_is_reserved (fail->code))
        return refuse (check, TMQ_INVALID, "code: %d..%d are the broker's own",
                       TMQ_TASK_ERROR_RESERVED_FIRST, TMQ_TASK_ERROR_RESERVED_LAST);
    return check_text (check, "message", fail->message, TMQ_ERROR_MESSAGE_BYTES_MAX) &&
           check_json (check, "data", fail->data, TMQ_ERROR_DATA_BYTES_MAX, false) &&
           check_body (check, "result_bytes", fail->result_bytes) &&
           check_text (check, "result_type", fail->result_type, TMQ_CONTENT_TYPE_BYTES_MAX);
}

static bool check_release (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Release *release = request->release;
    if (!check_lease (check, release->lease))
        return false;
    if (release->no_delay && release->delay_ms != 0)
        return refuse (check, TMQ_INVALID, "delay_ms: must be 0 beside no_delay");
    return check_range (check, "delay_ms", release->delay_ms, 0, TMQ_RELEASE_DELAY_MS_MAX);
}

static bool check_leave (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "worker_id", &request->leave->worker_id);
}

/* Who works here. */

static bool check_worker_list (check_t *check, const Taskmq__Request *request)
{
    return check_range (check, "limit", request->worker_list->limit, 0, TMQ_WORKER_LIST_MAX);
}

static bool check_worker (check_t *check, const ProtobufCBinaryData *id, const char *name)
{
    if (id->len > 0 && *name != '\0')
        return refuse (check, TMQ_INVALID, "name: beside worker_id");
    return id->len > 0 ? check_16_bytes (check, "worker_id", id) : check_name (check, "name", name);
}

static bool check_worker_show (check_t *check, const Taskmq__Request *request)
{
    return check_worker (check, &request->worker_show->worker_id, request->worker_show->name);
}

static bool check_worker_drain (check_t *check, const Taskmq__Request *request)
{
    return check_worker (check, &request->worker_drain->worker_id, request->worker_drain->name);
}

/* Who may use the broker. */

static bool check_key (check_t *check, const ProtobufCBinaryData *key)
{
    return key->len == TMQ_KEY_BYTES ||
           refuse (check, TMQ_INVALID, "public_key: must be %d bytes, not %zu", TMQ_KEY_BYTES,
                   key->len);
}

/* They become words of a line in the access file, whose parser judges what they mean. */
static bool check_grants (check_t *check, char *const *grants, size_t count)
{
    if (!check_count (check, "grants", count, 1, TMQ_GRANTS_MAX))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!check_text (check, "grants", grants[i], TMQ_GRANT_BYTES_MAX))
            return false;
        size_t length = strlen (grants[i]);
        size_t good = 0;
        while (good < length && grants[i][good] > ' ' && grants[i][good] <= '~' &&
               grants[i][good] != '#' && grants[i][good] != '=')
            good++;
        if (length == 0 || good < length)
            return refuse (check, TMQ_INVALID, "grants: a word like worker(default/render)");
    }
    return true;
}

/* A name in which one %h may stand. */
static bool check_name_to_fill (check_t *check, const char *member, const char *name)
{
    char filled[TMQ_NAME_LENGTH_MAX + 2];
    const char *place = strstr (name, "%h");
    if (place == NULL)
        return check_name (check, member, name);
    int length = snprintf (filled, sizeof filled, "%.*sh%s", (int) (place - name), name, place + 2);
    return (length > 0 && (size_t) length < sizeof filled && name_is_valid (filled)) ||
           refuse (check, TMQ_INVALID, "%s: must match [A-Za-z0-9._-]{1,%d}, with at most one %%h",
                   member, TMQ_NAME_LENGTH_MAX);
}

static bool check_enroll (check_t *check, const Taskmq__Request *request)
{
    return check_key (check, &request->enroll->public_key) &&
           check_name_or_empty (check, "host", request->enroll->host);
}

static bool check_key_trust (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__KeyTrust *trust = request->key_trust;
    return check_name (check, "name", trust->name) && check_key (check, &trust->public_key) &&
           check_grants (check, trust->grants, trust->n_grants) &&
           check_range (check, "until", trust->until, 0, INT64_MAX);
}

static bool check_key_revoke (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__KeyRevoke *revoke = request->key_revoke;
    if ((*revoke->name == '\0') == (revoke->public_key.len == 0))
        return refuse (check, TMQ_INVALID, "name or public_key: one must be given");
    return *revoke->name != '\0' ? check_name (check, "name", revoke->name)
                                 : check_key (check, &revoke->public_key);
}

static bool check_invite (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Invite *invite = request->invite;
    if (!check_key (check, &invite->public_key) ||
        !check_name_to_fill (check, "name", invite->name) ||
        !check_grants (check, invite->grants, invite->n_grants) ||
        !check_range (check, "uses", invite->uses, 0, TMQ_INVITE_USES_MAX))
        return false;
    return invite->lasts_ms == 0 ||
           check_range (check, "lasts_ms", invite->lasts_ms, TMQ_INVITE_MS_MIN, TMQ_INVITE_MS_MAX);
}

static bool check_invite_revoke (check_t *check, const Taskmq__Request *request)
{
    return check_name (check, "invitation", request->invite_revoke->invitation);
}

static bool check_rotate (check_t *check, const Taskmq__Request *request)
{
    return check_range (check, "in_ms", request->server_key_rotate->in_ms, 0, TMQ_ROTATE_MS_MAX);
}

static bool check_audit (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Audit *audit = request->audit;
    if (audit->file != 0 && audit->since != 0)
        return refuse (check, TMQ_INVALID, "since: only without a file");
    return check_name_or_empty (check, "kind", audit->kind) &&
           check_text (check, "actor", audit->actor, TMQ_OWNER_BYTES_MAX) &&
           check_range (check, "since", audit->since, 0, INT64_MAX) &&
           check_range (check, "offset", audit->offset, 0, INT64_MAX) &&
           check_range (check, "limit", audit->limit, 0, TMQ_AUDIT_LINES_MAX);
}

/* Schedules. */

/* Calendar and zone are judged by the broker, which has the zones. */
static bool check_schedule_put (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Schedule *schedule = request->schedule_put->schedule;
    if (schedule == NULL || schedule->task == NULL)
        return refuse (check, TMQ_INVALID, "schedule.task: is missing");
    const Taskmq__TaskSpec *task = schedule->task;
    if (task->task_id.len > 0)
        return refuse (check, TMQ_INVALID, "schedule.task.task_id: each instant has its own");
    if (task->dedup_key[0] != '\0')
        return refuse (check, TMQ_INVALID, "schedule.task.dedup_key: each instant is another task");
    if (task->not_before != 0 ||
        (task->extra != NULL && (task->extra->n_after > 0 || task->extra->start_by != 0)))
        return refuse (check, TMQ_INVALID,
                       "schedule.task: a time or another task is of one instant only");
    return check_name (check, "schedule.name", schedule->name) &&
           check_text (check, "schedule.calendar", schedule->calendar, TMQ_CALENDAR_BYTES_MAX) &&
           check_text (check, "schedule.zone", schedule->zone, TMQ_ZONE_BYTES_MAX) &&
           check_range (check, "schedule.overlap", schedule->overlap, 0, 2) &&
           check_range (check, "schedule.missed", schedule->missed, 0, 2) &&
           check_range (check, "schedule.until", schedule->until, 0, INT64_MAX) &&
           check_range (check, "schedule.task.payload_bytes", task->payload_bytes, 0,
                        TMQ_SCHEDULE_PAYLOAD_BYTES_MAX) &&
           check_spec (check, task);
}

static bool check_schedule_name (check_t *check, const Taskmq__ScheduleName *name)
{
    return check_name (check, "name", name->name) &&
           check_range (check, "coming", name->coming, 0, TMQ_SCHEDULE_COMING_MAX);
}

#define CHECK_SCHEDULE(OP)                                                                         \
    static bool check_schedule_##OP (check_t *check, const Taskmq__Request *request)               \
    {                                                                                              \
        return check_schedule_name (check, request->schedule_##OP);                                \
    }
CHECK_SCHEDULE (show)
CHECK_SCHEDULE (pause)
CHECK_SCHEDULE (resume)
CHECK_SCHEDULE (remove)
#undef CHECK_SCHEDULE

static bool check_schedule_list (check_t *check, const Taskmq__Request *request)
{
    return check_name_or_empty (check, "after", request->schedule_list->after) &&
           check_range (check, "limit", request->schedule_list->limit, 0, TMQ_LIST_LIMIT_MAX);
}

static bool check_backup (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "id", &request->backup->id) &&
           check_range (check, "offset", request->backup->offset, 0, INT64_MAX);
}

/* Queues. */

static bool check_queue_list (check_t *check, const Taskmq__Request *request)
{
    return check_range (check, "limit", request->queue_list->limit, 0, TMQ_QUEUE_LIST_MAX);
}

static bool check_queue_show (check_t *check, const Taskmq__Request *request)
{
    return check_name (check, "queue", request->queue_show->queue);
}

static bool check_queue_pause (check_t *check, const Taskmq__Request *request)
{
    return check_name (check, "queue", request->queue_pause->queue) &&
           check_text (check, "why", request->queue_pause->why, TMQ_QUEUE_WHY_BYTES_MAX);
}

static bool check_queue_resume (check_t *check, const Taskmq__Request *request)
{
    return check_name (check, "queue", request->queue_resume->queue);
}

static bool check_or_none (check_t *check, const char *member, uint64_t value, uint64_t min,
                           uint64_t max)
{
    return value == 0 || check_range (check, member, value, min, max);
}

/* A rate is two numbers; faster than the clock of the broker counts is none. */
static bool check_rate (check_t *check, const Taskmq__QueueSettings *in)
{
    if (!check_or_none (check, "rate", in->rate, 1, TMQ_QUEUE_RUNNING_MAX) ||
        !check_or_none (check, "rate_ms", in->rate_ms, 1, TMQ_QUEUE_RATE_MS_MAX) ||
        !check_or_none (check, "burst", in->burst, 1, TMQ_QUEUE_RUNNING_MAX))
        return false;
    if (in->rate == 0 && in->rate_ms != 0)
        return refuse (check, TMQ_INVALID,
                       "rate: 0 would let nothing begin; pause the queue instead");
    if (in->rate != 0 && in->rate_ms == 0)
        return refuse (check, TMQ_INVALID, "rate_ms: must be given with rate");
    if (in->rate == 0 && in->burst != 0)
        return refuse (check, TMQ_INVALID, "burst: only beside a rate");
    return in->rate / 1000 <= in->rate_ms ||
           refuse (check, TMQ_INVALID, "rate: at most 1000 in a millisecond");
}

static bool check_weight_of (check_t *check, uint32_t weight_of)
{
    switch (weight_of) {
#define X(number, NAME, text) case number:
        TMQ_WEIGHT_OF_MAP (X)
#undef X
        return true;
    default: return refuse (check, TMQ_INVALID, "weight_of: must be 0, 2 or 3");
    }
}

static bool check_settings (check_t *check, const Taskmq__QueueSettings *in)
{
    if (in->ttl_never && in->ttl_ms != 0)
        return refuse (check, TMQ_INVALID, "ttl_ms: must be 0 beside ttl_never");
    return check_or_none (check, "max_running", in->max_running, 1, TMQ_QUEUE_RUNNING_MAX) &&
           check_or_none (check, "max_per_key", in->max_per_key, 1, TMQ_QUEUE_RUNNING_MAX) &&
           check_weight_of (check, in->weight_of) && check_rate (check, in) &&
           check_range (check, "max_runtime_ms", in->max_runtime_ms, 0, TMQ_TTL_MS_MAX) &&
           check_or_none (check, "max_tasks", in->max_tasks, 1, TMQ_QUEUE_TASKS_MAX) &&
           check_or_none (check, "max_bytes", in->max_bytes, 1, TMQ_QUEUE_BYTES_MAX) &&
           check_or_none (check, "ttl_ms", in->ttl_ms, 1, TMQ_TTL_MS_MAX) &&
           check_or_none (check, "lease_ms", in->lease_ms, TMQ_LEASE_MS_MIN, TMQ_LEASE_MS_MAX) &&
           check_or_none (check, "backoff_ms", in->backoff_ms, 1, TMQ_BACKOFF_MS_MAX) &&
           check_or_none (check, "max_attempts", in->max_attempts, 1, TMQ_MAX_ATTEMPTS_MAX);
}

static bool is_queue_field (uint32_t field)
{
    switch (field) {
#define X(number, NAME, member) case number:
        TMQ_QUEUE_FIELD_MAP (X)
#undef X
        return true;
    default: return false;
    }
}

static bool check_queue_set (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__QueueSet *set = request->queue_set;
    if (!check_name (check, "queue", set->queue) ||
        !check_count (check, "fields", set->n_fields, 1, TMQ_QUEUE_FIELDS_MAX))
        return false;
    if (set->settings == NULL)
        return refuse (check, TMQ_INVALID, "settings: is missing");
    for (size_t i = 0; i < set->n_fields; i++) {
        if (!is_queue_field (set->fields[i]))
            return refuse (check, TMQ_INVALID, "fields: %u is nothing that can be set",
                           set->fields[i]);
    }
    return check_settings (check, set->settings);
}

/* Changes of tasks by name. */

static bool check_changed (check_t *check, size_t count, const ProtobufCBinaryData *ids)
{
    return check_count (check, "task_ids", count, 1, TMQ_CHANGE_IDS_MAX) &&
           check_ids (check, "task_ids", ids, count);
}

static bool check_checkpoint (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Checkpoint *checkpoint = request->checkpoint;
    if (checkpoint->state_bytes > TMQ_CHECKPOINT_BYTES_MAX)
        return refuse (check, TMQ_TOO_LARGE, "state_bytes: %u bytes, at most %d",
                       checkpoint->state_bytes, TMQ_CHECKPOINT_BYTES_MAX);
    return check_lease (check, checkpoint->lease);
}

static bool check_checkpoint_read (check_t *check, const Taskmq__Request *request)
{
    return check_lease (check, request->checkpoint_read->lease);
}

static bool check_retry (check_t *check, const Taskmq__Request *request)
{
    return check_changed (check, request->retry->n_task_ids, request->retry->task_ids);
}

static bool check_resume (check_t *check, const Taskmq__Request *request)
{
    return check_changed (check, request->resume->n_task_ids, request->resume->task_ids);
}

static bool check_purge (check_t *check, const Taskmq__Request *request)
{
    return check_changed (check, request->purge->n_task_ids, request->purge->task_ids);
}

static bool check_set (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Set *set = request->set;
    if (set->ttl_ms == 0 && !set->ttl_never && set->priority_plus_1 == 0 &&
        set->max_attempts == 0 && set->not_before == 0 && !set->at_once && set->n_labels == 0 &&
        set->n_drop_labels == 0)
        return refuse (check, TMQ_INVALID, "set: nothing is to be changed");
    return check_changed (check, set->n_task_ids, set->task_ids) &&
           check_range (check, "ttl_ms", set->ttl_ms, 0, TMQ_TTL_MS_MAX) &&
           check_range (check, "priority_plus_1", set->priority_plus_1, 0, 256) &&
           check_range (check, "max_attempts", set->max_attempts, 0, TMQ_MAX_ATTEMPTS_MAX) &&
           check_range (check, "not_before", set->not_before, 0, INT64_MAX) &&
           check_labels (check, set->labels, set->n_labels) &&
           check_count (check, "drop_labels", set->n_drop_labels, 0, TMQ_LABELS_MAX) &&
           check_names (check, "drop_labels", set->drop_labels, set->n_drop_labels);
}

/* What a session, or the namespace, shares. */

static bool check_session (check_t *check, const char *session)
{
    return session[0] == '\0' || check_name (check, "session", session);
}

static bool check_entry_key (check_t *check, const char *key)
{
    if (key[0] == '\0')
        return refuse (check, TMQ_INVALID, "key: must not be empty");
    return check_text (check, "key", key, TMQ_ENTRY_NAME_BYTES_MAX);
}

static bool check_value_put (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ValuePut *put = request->value_put;
    if (put->body_bytes > TMQ_VALUE_BYTES_MAX)
        return refuse (check, TMQ_TOO_LARGE, "body_bytes: %u, at most %d are allowed",
                       put->body_bytes, TMQ_VALUE_BYTES_MAX);
    return check_session (check, put->session) && check_entry_key (check, put->key);
}

static bool check_value_get (check_t *check, const Taskmq__Request *request)
{
    return check_session (check, request->value_get->session) &&
           check_entry_key (check, request->value_get->key);
}

static bool check_value_list (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ValueList *list = request->value_list;
    return check_session (check, list->session) &&
           check_text (check, "prefix", list->prefix, TMQ_ENTRY_NAME_BYTES_MAX) &&
           check_text (check, "after", list->after, TMQ_ENTRY_NAME_BYTES_MAX) &&
           check_range (check, "limit", list->limit, 0, TMQ_LIST_LIMIT_MAX);
}

static bool check_item_put (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ItemPut *put = request->item_put;
    if (put->body_bytes > TMQ_ITEM_BYTES_MAX)
        return refuse (check, TMQ_TOO_LARGE, "body_bytes: %u, at most %d are allowed",
                       put->body_bytes, TMQ_ITEM_BYTES_MAX);
    return check_session (check, put->session) && check_name (check, "box", put->box) &&
           check_range (check, "intensity", put->intensity, 0, TMQ_INTENSITY_ONE) &&
           check_text (check, "source", put->source, TMQ_ENTRY_NAME_BYTES_MAX) &&
           check_text (check, "type", put->type, TMQ_ENTRY_NAME_BYTES_MAX);
}

static bool check_item_read (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ItemRead *read = request->item_read;
    return check_session (check, read->session) && check_name (check, "box", read->box) &&
           check_range (check, "limit", read->limit, 0, TMQ_ITEM_NUMBERS_MAX);
}

static bool check_item_ack (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ItemAck *ack = request->item_ack;
    return check_session (check, ack->session) && check_name (check, "box", ack->box) &&
           check_count (check, "numbers", ack->n_numbers, 1, TMQ_ITEM_NUMBERS_MAX);
}

static bool check_value_remove (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ValueRemove *remove = request->value_remove;
    if (remove->if_version_plus_1 == 1)
        return refuse (check, TMQ_INVALID, "if_version_plus_1: must not be 1");
    return check_session (check, remove->session) && check_entry_key (check, remove->key);
}

/* The table. */

typedef bool (*check_kind_t) (check_t *check, const Taskmq__Request *request);

/* By the number of the operation; every kind of request_kinds.h has one. */
#define OP(NAME) TASKMQ__REQUEST__OP_##NAME
static const check_kind_t checks[] = {
    [OP (HELLO)] = check_hello,
    [OP (GOODBYE)] = check_nothing,
    [OP (HEARTBEAT)] = check_nothing,
    [OP (SUBMIT)] = check_submit,
    [OP (GET)] = check_get,
    [OP (RESOLVE)] = check_resolve,
    [OP (LIST)] = check_list,
    [OP (COUNT)] = check_filter_of_count,
    [OP (TASK_EVENTS)] = check_task_events,
    [OP (RESULT)] = check_result,
    [OP (PAYLOAD)] = check_payload,
    [OP (CANCEL)] = check_cancel,
    [OP (CHECKPOINT)] = check_checkpoint,
    [OP (CHECKPOINT_READ)] = check_checkpoint_read,
    [OP (RETRY)] = check_retry,
    [OP (RESUME)] = check_resume,
    [OP (SET)] = check_set,
    [OP (PURGE)] = check_purge,
    [OP (WHY)] = check_why,
    [OP (WAIT)] = check_wait,
    [OP (STATS)] = check_nothing,
    [OP (ANSWER)] = check_answer,
    [OP (INBOX)] = check_inbox,
    [OP (SUBSCRIBE)] = check_subscribe,
    [OP (CREDIT)] = check_credit,
    [OP (UNSUBSCRIBE)] = check_unsubscribe,
    [OP (REGISTER)] = check_register,
    [OP (WORKER_CREDIT)] = check_worker_credit,
    [OP (STARTED)] = check_started,
    [OP (RENEW)] = check_renew,
    [OP (PUSH)] = check_push,
    [OP (CANCEL_ACK)] = check_cancel_ack,
    [OP (COMPLETE)] = check_complete,
    [OP (FAIL)] = check_fail,
    [OP (RELEASE)] = check_release,
    [OP (LEAVE)] = check_leave,
    [OP (ASK)] = check_ask,
    [OP (TAKE_ANSWERS)] = check_take_answers,
    [OP (ENROLL)] = check_enroll,
    [OP (KEY_LIST)] = check_nothing,
    [OP (KEY_TRUST)] = check_key_trust,
    [OP (KEY_REVOKE)] = check_key_revoke,
    [OP (INVITE)] = check_invite,
    [OP (INVITE_LIST)] = check_nothing,
    [OP (INVITE_REVOKE)] = check_invite_revoke,
    [OP (SERVER_KEY_ROTATE)] = check_rotate,
    [OP (RELOAD)] = check_nothing,
    [OP (ACCESS_READ)] = check_nothing,
    [OP (AUDIT)] = check_audit,
    [OP (AUDIT_HEAD)] = check_nothing,
    [OP (BACKUP)] = check_backup,
    [OP (QUEUE_LIST)] = check_queue_list,
    [OP (QUEUE_SET)] = check_queue_set,
    [OP (QUEUE_SHOW)] = check_queue_show,
    [OP (QUEUE_PAUSE)] = check_queue_pause,
    [OP (QUEUE_RESUME)] = check_queue_resume,
    [OP (SCHEDULE_PUT)] = check_schedule_put,
    [OP (SCHEDULE_SHOW)] = check_schedule_show,
    [OP (SCHEDULE_LIST)] = check_schedule_list,
    [OP (SCHEDULE_PAUSE)] = check_schedule_pause,
    [OP (SCHEDULE_RESUME)] = check_schedule_resume,
    [OP (SCHEDULE_REMOVE)] = check_schedule_remove,
    [OP (VALUE_PUT)] = check_value_put,
    [OP (VALUE_GET)] = check_value_get,
    [OP (VALUE_LIST)] = check_value_list,
    [OP (VALUE_REMOVE)] = check_value_remove,
    [OP (WORKER_LIST)] = check_worker_list,
    [OP (WORKER_SHOW)] = check_worker_show,
    [OP (WORKER_DRAIN)] = check_worker_drain,
    [OP (ITEM_PUT)] = check_item_put,
    [OP (ITEM_READ)] = check_item_read,
    [OP (ITEM_ACK)] = check_item_ack,
};
#undef OP

/* Requests and messages. */

/* What is declared larger than a frame cannot be in one. */
static size_t body_in_frame (uint32_t bytes)
{
    return bytes <= TMQ_FRAME_BYTES_MAX ? bytes : 0;
}

size_t validate_payload_bytes (const Taskmq__TaskSpec *spec)
{
    return body_in_frame (spec->payload_bytes);
}

/* Length of all bodies that a request has in the second frame. */
static size_t request_bodies (const Taskmq__Request *request)
{
    size_t total = 0;
    switch (request->op_case) {
    case TASKMQ__REQUEST__OP_SUBMIT:
        for (size_t i = 0; i < request->submit->n_tasks; i++)
            total += validate_payload_bytes (request->submit->tasks[i]);
        return total;
    case TASKMQ__REQUEST__OP_COMPLETE: return body_in_frame (request->complete->result_bytes);
    case TASKMQ__REQUEST__OP_CHECKPOINT: return body_in_frame (request->checkpoint->state_bytes);
    case TASKMQ__REQUEST__OP_FAIL: return body_in_frame (request->fail->result_bytes);
    case TASKMQ__REQUEST__OP_VALUE_PUT: return body_in_frame (request->value_put->body_bytes);
    case TASKMQ__REQUEST__OP_ITEM_PUT: return body_in_frame (request->item_put->body_bytes);
    case TASKMQ__REQUEST__OP_ANSWER:
        for (size_t i = 0; i < request->answer->n_items; i++)
            total += body_in_frame (request->answer->items[i]->bytes);
        return total;
    case TASKMQ__REQUEST__OP_SCHEDULE_PUT: {
        const Taskmq__Schedule *schedule = request->schedule_put->schedule;
        return schedule == NULL || schedule->task == NULL ? 0
                                                          : validate_payload_bytes (schedule->task);
    }
    default: return 0;
    }
}

static bool check_request_id (check_t *check, const Taskmq__Request *request,
                              const request_kind_t *kind)
{
    bool needed = (kind->flags & REQUEST_NEEDS_ID) != 0;
    if (request->request_id.len == 0 && !needed)
        return true;
    if (request->request_id.len == 0)
        return refuse (check, TMQ_INVALID, "request_id: %s needs one", kind->name);
    return check_16_bytes (check, "request_id", &request->request_id);
}

static bool check_request (check_t *check, const Taskmq__Request *request, bool alone)
{
    const request_kind_t *kind = request_kind (request);
    if (kind == NULL)
        return refuse (check, TMQ_UNSUPPORTED, "the kind of the request is not known");
    if (!check_request_id (check, request, kind))
        return false;
    bool by_item = request->op_case == TASKMQ__REQUEST__OP_SUBMIT;
    if (check->flaws != NULL && !by_item)
        return refuse (check, TMQ_INVALID, "%s: must be UTF-8 without NUL", check->flaws->field);
    if (request->op_case == TASKMQ__REQUEST__OP_HELLO && !alone)
        return refuse (check, TMQ_INVALID, "hello: must be alone in its message");
    return checks[request->op_case](check, request);
}

/* With wrong lengths nobody knows which byte belongs to whom: whoever has a body is refused. */
static void refuse_bodies (verdicts_t *out, arena_t *arena, const Taskmq__ClientMessage *message,
                           request_verdict_t *requests, size_t mentioned, size_t body_bytes)
{
    check_t whole = {arena, &out->message, NULL, NULL};
    if (mentioned == 0) {
        refuse (&whole, TMQ_INVALID, "the second frame has %zu bytes that no request mentions",
                body_bytes);
        return;
    }
    for (size_t i = 0; i < message->n_requests; i++) {
        if (requests[i].verdict.code != TMQ_OK || request_bodies (message->requests[i]) == 0)
            continue;
        check_t check = {arena, &requests[i].verdict, NULL, NULL};
        refuse (&check, TMQ_INVALID, "the requests mention %zu bytes, the second frame has %zu",
                mentioned, body_bytes);
        out->refused++;
    }
}

/* Judges every request; returns how many bytes of bodies they mention. */
static size_t judge_requests (verdicts_t *out, arena_t *arena, const Taskmq__ClientMessage *message,
                              const codec_flaw_t *flaw, request_verdict_t *requests)
{
    size_t offset = 0;
    for (size_t i = 0; i < message->n_requests; i++) {
        request_verdict_t *verdict = &requests[i];
        bool flawed = flaw != NULL && flaw->request == i;
        check_t check = {arena, &verdict->verdict, NULL, flawed ? flaw : NULL};
        if (!check_request (&check, message->requests[i], message->n_requests == 1))
            out->refused++;
        while (flaw != NULL && flaw->request == i)
            flaw = flaw->next;
        verdict->items = check.items;
        verdict->body_offset = offset;
        offset += request_bodies (message->requests[i]);
    }
    return offset;
}

static int compare_ids (const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *) left;
    uint64_t b = *(const uint64_t *) right;
    return (a > b) - (a < b);
}

/* An answer names its request by the id, so each has one of its own. Clients count upwards: only
 * ids that do not rise are sorted. */
static bool check_ids_of_requests (check_t *check, const Taskmq__ClientMessage *message)
{
    size_t count = message->n_requests;
    bool rising = true;
    for (size_t i = 0; i < count; i++) {
        if (message->requests[i]->id == 0)
            return refuse (check, TMQ_INVALID, "id: must not be 0");
        rising = rising && (i == 0 || message->requests[i]->id > message->requests[i - 1]->id);
    }
    if (rising)
        return true;
    uint64_t *ids = arena_zalloc (check->arena, count, sizeof *ids);
    if (ids == NULL)
        return refuse (check, TMQ_TOO_LARGE, "the message needs too much memory to judge");
    for (size_t i = 0; i < count; i++)
        ids[i] = message->requests[i]->id;
    qsort (ids, count, sizeof *ids, compare_ids);
    for (size_t i = 1; i < count; i++) {
        if (ids[i] == ids[i - 1])
            return refuse (check, TMQ_INVALID, "id: %llu stands twice in one message",
                           (unsigned long long) ids[i]);
    }
    return true;
}

static bool check_envelope (check_t *check, const Taskmq__ClientMessage *message)
{
    if (message->token.len != 0 && !check_16_bytes (check, "token", &message->token))
        return false;
    return check_count (check, "requests", message->n_requests, 1, TMQ_REQUESTS_MAX) &&
           check_ids_of_requests (check, message);
}

void validate_client_message (verdicts_t *out, arena_t *arena, const Taskmq__ClientMessage *message,
                              const codec_flaw_t *flaws, size_t body_bytes)
{
    *out = (verdicts_t){{TMQ_OK, NULL}, NULL, 0, 0};
    check_t whole = {arena, &out->message, NULL, NULL};
    if (!check_envelope (&whole, message))
        return;
    request_verdict_t *requests = arena_zalloc (arena, message->n_requests, sizeof *requests);
    if (requests == NULL) {
        refuse (&whole, TMQ_TOO_LARGE, "the message needs too much memory to judge");
        return;
    }
    size_t mentioned = judge_requests (out, arena, message, flaws, requests);
    if (mentioned != body_bytes)
        refuse_bodies (out, arena, message, requests, mentioned, body_bytes);
    if (out->message.code != TMQ_OK)
        return;
    out->requests = requests;
    out->requests_count = message->n_requests;
}

const Taskmq__ClientMessage *validate_frames (verdicts_t *out, arena_t *arena, size_t frames,
                                              const void *envelope, size_t envelope_bytes,
                                              size_t body_bytes)
{
    *out = (verdicts_t){{TMQ_OK, NULL}, NULL, 0, 0};
    check_t whole = {arena, &out->message, NULL, NULL};
    if (frames < 1 || frames > 2) {
        refuse (&whole, TMQ_INVALID, "a message has one or two frames, not %zu", frames);
        return NULL;
    }
    if (body_bytes > TMQ_FRAME_BYTES_MAX) {
        refuse (&whole, TMQ_TOO_LARGE, "the second frame has %zu bytes, at most %d", body_bytes,
                TMQ_FRAME_BYTES_MAX);
        return NULL;
    }
    codec_report_t report;
    const Taskmq__ClientMessage *message =
        codec_client_message (&report, arena, envelope, envelope_bytes);
    if (message == NULL) {
        out->message = (verdict_t){report.code, report.text};
        return NULL;
    }
    validate_client_message (out, arena, message, report.flaws, body_bytes);
    return out->message.code == TMQ_OK ? message : NULL;
}
