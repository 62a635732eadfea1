/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests of who submits, reads, answers and changes tasks. */
#include "checks.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact_name.h"
#include "ids.h"
#include "json.h"
#include "request_kinds.h"
#include "types.h"

/* Tasks. */

static bool check_task_times (check_t *check, const Taskmq__TaskSpec *task)
{
    if (task->ttl_never && task->ttl_ms != 0)
        return check_refuse (check, TMQ_INVALID, "ttl_ms: must be 0 beside ttl_never");
    if (!check_range (check, "ttl_ms", task->ttl_ms, 0, TMQ_TTL_MS_MAX) ||
        !check_range (check, "backoff_ms", task->backoff_ms, 0, TMQ_BACKOFF_MS_MAX) ||
        !check_range (check, "delay_ms", task->delay_ms, 0, TMQ_TTL_MS_MAX) ||
        !check_range (check, "not_before", task->not_before, 0, TMQ_TIME_MS_MAX))
        return false;
    if (task->delay_ms != 0 && task->not_before != 0)
        return check_refuse (check, TMQ_INVALID, "not_before: must be 0 beside delay_ms");
    return task->lease_ms == 0 ||
           check_range (check, "lease_ms", task->lease_ms, TMQ_LEASE_MS_MIN, TMQ_LEASE_MS_MAX);
}

/* A trace goes into environments and headers. */
static bool check_trace (check_t *check, const char *trace)
{
    if (!check_text (check, "trace", trace, TMQ_TRACE_BYTES_MAX))
        return false;
    for (const char *at = trace; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            return check_refuse (check, TMQ_INVALID, "trace: must be printable ASCII");
    return true;
}

/* status_max: of what it was told; a submit knows nothing of that. */
static bool check_after (check_t *check, const Taskmq__TaskSpec *task, uint32_t status_max)
{
    const Taskmq__Extra *extra = task->extra;
    if (extra == NULL)
        return true;
    if (!check_count (check, "after", extra->n_after, 0, TMQ_AFTER_MAX))
        return false;
    for (size_t i = 0; i < extra->n_after; i++) {
        const Taskmq__Dependency *entry = extra->after[i];
        const ProtobufCBinaryData *id = &entry->task_id;
        if (!check_16_bytes (check, "after.task_id", id) ||
            !check_range (check, "after.policy", entry->policy, 0, TMQ_AFTER_CONTINUE) ||
            !check_range (check, "after.status", entry->status, 0, status_max))
            return false;
        if (memcmp (id->data, task->task_id.data, ID_BYTES) == 0)
            return check_refuse (check, TMQ_INVALID, "after: a task cannot depend on itself");
        for (size_t k = 0; k < i; k++)
            if (memcmp (id->data, extra->after[k]->task_id.data, ID_BYTES) == 0)
                return check_refuse (check, TMQ_INVALID, "after: a task stands twice");
    }
    return true;
}

static bool check_parent (check_t *check, const Taskmq__TaskSpec *task)
{
    if (task->extra == NULL || task->extra->parent.len == 0)
        return true;
    const ProtobufCBinaryData *parent = &task->extra->parent;
    if (!check_16_bytes (check, "parent", parent))
        return false;
    return task->task_id.len != ID_BYTES ||
           memcmp (parent->data, task->task_id.data, ID_BYTES) != 0 ||
           check_refuse (check, TMQ_INVALID, "parent: a task cannot be a part of itself");
}

static bool check_not_given (check_t *check, const char *member, const char *text)
{
    return text[0] == '\0' || check_refuse (check, TMQ_INVALID, "%s: the broker's alone", member);
}

/* What the broker alone knows of a task that it has. */
static bool has_marks (const Taskmq__Extra *extra)
{
    return extra->revived_by.len > 0 || extra->set_by.len > 0 || extra->answered_by.len > 0 ||
           extra->checkpoint_bytes > 0 || extra->depth > 0 || extra->adopted_by.len > 0 ||
           extra->turns > 0 || extra->turn_bytes > 0 || extra->turns_attempt > 0 ||
           extra->turns_before > 0 || extra->n_superseded > 0 || extra->artifacts_count > 0 ||
           extra->artifact_bytes > 0 || extra->n_artifacts > 0;
}

/* What anybody may say of a task's extra. room: bytes that must be left. */
static bool check_extra_said (check_t *check, const Taskmq__Extra *extra, size_t room)
{
    size_t bytes = taskmq__extra__get_packed_size (extra);
    if (bytes + room > TMQ_EXTRA_BYTES_MAX)
        return check_refuse (check, TMQ_TOO_LARGE, "extra: %zu bytes, at most %d", bytes,
                             TMQ_EXTRA_BYTES_MAX - (int) room);
    return check_range (check, "start_by", extra->start_by, 0, TMQ_TIME_MS_MAX) &&
           check_range (check, "max_runtime_ms", extra->max_runtime_ms, 0, TMQ_TTL_MS_MAX) &&
           check_trace (check, extra->trace) &&
           check_text (check, "fair_key", extra->fair_key, TMQ_FAIR_KEY_BYTES_MAX) &&
           check_needs (check, extra);
}

/* What a submitter may say of it. */
static bool check_extra (check_t *check, const Taskmq__Extra *extra)
{
    if (extra == NULL)
        return true;
    if (has_marks (extra) || extra->has_parts || extra->adopted_from > 0 ||
        extra->result_blob != NULL)
        return check_refuse (check, TMQ_INVALID, "extra: has what only the broker may say");
    return check_extra_said (check, extra, 0) &&
           check_not_given (check, "cancel_message", extra->cancel_message);
}

bool check_uploaded (check_t *check, const char *member, const Taskmq__Blob *blob)
{
    if (blob == NULL || blob->hash.len != TMQ_BLOB_HASH_BYTES)
        return check_refuse (check, TMQ_INVALID, "%s: needs a hash of %d bytes", member,
                             TMQ_BLOB_HASH_BYTES);
    if (blob->bytes < TMQ_BLOB_BYTES_MIN)
        return check_refuse (check, TMQ_INVALID, "%s: %" PRIu64 " bytes are no blob, at least %d",
                             member, blob->bytes, TMQ_BLOB_BYTES_MIN);
    return blob->bytes <= TMQ_BLOB_BYTES_MAX ||
           check_refuse (check, TMQ_TOO_LARGE, "%s: %" PRIu64 " bytes, at most %" PRIu64, member,
                         blob->bytes, TMQ_BLOB_BYTES_MAX);
}

bool check_blob (check_t *check, const char *member, const Taskmq__Blob *blob)
{
    if (blob != NULL && blob->bytes <= TMQ_FRAME_BYTES_MAX)
        return check_refuse (check, TMQ_INVALID, "%s: what fits a frame of %d bytes is no blob",
                             member, TMQ_FRAME_BYTES_MAX);
    return check_uploaded (check, member, blob);
}

/* A payload is in the frame or a blob. */
static bool check_payload_blob (check_t *check, const Taskmq__TaskSpec *task)
{
    if (task->extra == NULL || task->extra->payload_blob == NULL)
        return true;
    if (task->payload_bytes > 0)
        return check_refuse (check, TMQ_INVALID, "payload_blob: must not stand beside a payload");
    return check_blob (check, "payload_blob", task->extra->payload_blob);
}

/* Everything but its id. */
bool check_spec (check_t *check, const Taskmq__TaskSpec *task)
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
           check_extra (check, task->extra) && check_payload_blob (check, task) &&
           check_after (check, task, 0) && check_parent (check, task);
}

static bool check_task (check_t *check, const Taskmq__TaskSpec *task)
{
    tmq_id_t id;
    if (!id_from_bytes (&id, task->task_id.data, task->task_id.len) || !id_is_v7 (&id))
        return check_refuse (check, TMQ_INVALID, "task_id: must be the 16 bytes of a UUIDv7");
    return check_spec (check, task);
}

/* True if flaw is one of that item of the request that is checked. */
static bool flaw_is_in (const check_t *check, const codec_flaw_t *flaw, size_t item)
{
    return flaw != NULL && flaw->request == check->flaws->request && flaw->item == item;
}

/* Judges the items one by one; the request itself stands as long as their number is right. */
bool check_submit (check_t *check, const Taskmq__Request *request)
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
            check_refuse (&item, TMQ_INVALID, "%s: %s", flaw->field, flaw->text);
        else
            check_task (&item, submit->tasks[i]);
        while (flaw_is_in (check, flaw, i))
            flaw = flaw->next;
        if (verdict.code == TMQ_OK)
            continue;
        if (items == NULL)
            items = arena_zalloc (check->arena, submit->n_tasks, sizeof *items);
        if (items == NULL)
            return check_refuse (check, TMQ_TOO_LARGE,
                                 "the message needs too much memory to judge");
        items[i] = verdict;
    }
    check->items = items;
    return true;
}

/* … of a task that was elsewhere; the broker adds where its turns are. */
static bool check_imported_extra (check_t *check, const Taskmq__Extra *extra)
{
    enum { TURNS_BYTES = 512 };
    if (extra == NULL)
        return true;
    if (has_marks (extra))
        return check_refuse (check, TMQ_INVALID, "extra: has what only the broker may say");
    return check_extra_said (check, extra, TURNS_BYTES) &&
           (extra->payload_blob == NULL ||
            check_blob (check, "payload_blob", extra->payload_blob)) &&
           (extra->result_blob == NULL || check_blob (check, "result_blob", extra->result_blob)) &&
           check_text (check, "cancel_message", extra->cancel_message, TMQ_MESSAGE_BYTES_MAX);
}

bool check_import (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Import *import = request->import;
    tmq_id_t id;
    if (!id_from_bytes (&id, import->task_id.data, import->task_id.len) || !id_is_v7 (&id))
        return check_refuse (check, TMQ_INVALID, "task_id: must be the 16 bytes of a UUIDv7");
    if (import->more && (import->extra != NULL || *import->dedup_key != '\0'))
        return check_refuse (check, TMQ_INVALID, "extra, dedup_key: only in the last piece");
    if ((size_t) import->offset + import->bytes > TMQ_IMPORT_BYTES_MAX)
        return check_refuse (check, TMQ_TOO_LARGE,
                             "the task has more than %d bytes with its turns, at most so many can "
                             "be imported",
                             TMQ_IMPORT_BYTES_MAX);
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.task_id = import->task_id;
    spec.extra = import->extra;
    return check_range (check, "bytes", import->bytes, 1, TMQ_FRAME_BYTES_MAX) &&
           check_text (check, "dedup_key", import->dedup_key, TMQ_DEDUP_KEY_BYTES_MAX) &&
           check_imported_extra (check, import->extra) &&
           check_after (check, &spec, TMQ_STATUS_CANCELLED) && check_parent (check, &spec);
}

bool check_get (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->get->task_id);
}

static bool check_get_body (check_t *check, const Taskmq__Get *get)
{
    return check_16_bytes (check, "task_id", &get->task_id) &&
           (!get->no_body || check_refuse (check, TMQ_INVALID, "no_body: of get alone"));
}

bool check_result (check_t *check, const Taskmq__Request *request)
{
    return check_get_body (check, request->result);
}

bool check_payload (check_t *check, const Taskmq__Request *request)
{
    return check_get_body (check, request->payload);
}

bool check_resolve (check_t *check, const Taskmq__Request *request)
{
    return id_suffix_is_valid (request->resolve->suffix) ||
           check_refuse (check, TMQ_INVALID, "suffix: must be %d..%d lower-case hexadecimal digits",
                         TMQ_SUFFIX_LENGTH_MIN, ID_SUFFIX_LENGTH_MAX);
}

bool check_filter (check_t *check, const Taskmq__Filter *filter)
{
    if (!check_count (check, "queues", filter->n_queues, 0, TMQ_FILTER_VALUES_MAX) ||
        !check_names (check, "queues", filter->queues, filter->n_queues) ||
        !check_count (check, "sessions", filter->n_sessions, 0, TMQ_FILTER_VALUES_MAX) ||
        !check_names (check, "sessions", filter->sessions, filter->n_sessions) ||
        !check_count (check, "statuses", filter->n_statuses, 0, TMQ_FILTER_VALUES_MAX))
        return false;
    for (size_t i = 0; i < filter->n_statuses; i++) {
        if (!status_is_known (filter->statuses[i]))
            return check_refuse (check, TMQ_INVALID, "statuses: %u is no status",
                                 filter->statuses[i]);
    }
    return true;
}

/* What turns told. */
static bool check_marks (check_t *check, const char *field, char *const *texts, size_t count,
                         size_t most)
{
    if (!check_count (check, field, count, 0, TMQ_LABELS_MAX))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (texts[i][0] == '\0')
            return check_refuse (check, TMQ_INVALID, "%s: must not be empty", field);
        if (!check_text (check, field, texts[i], most))
            return false;
    }
    return true;
}

static bool check_owners (check_t *check, const Taskmq__Request *request,
                          const Taskmq__Filter *filter)
{
    if (filter->n_owners > 0 && request->owner[0] != '\0')
        return check_refuse (check, TMQ_INVALID, "owners: not in a request for one owner");
    if (!check_count (check, "owners", filter->n_owners, 0, TMQ_FILTER_VALUES_MAX))
        return false;
    for (size_t i = 0; i < filter->n_owners; i++) {
        if (filter->owners[i][0] == '\0')
            return check_refuse (check, TMQ_INVALID, "owners: must not be empty");
        if (!check_text (check, "owners", filter->owners[i], TMQ_OWNER_BYTES_MAX))
            return false;
    }
    return true;
}

/* A filter of list and count: what is stored cannot be asked for by id. */
static bool check_stored_filter (check_t *check, const Taskmq__Request *request,
                                 const Taskmq__Filter *filter)
{
    if (filter == NULL)
        return true;
    if (filter->n_task_ids > 0)
        return check_refuse (check, TMQ_UNSUPPORTED,
                             "task_ids: only in the filter of a subscription");
    if (filter->n_subjects > 0 || filter->name_prefix[0] != '\0')
        return check_refuse (check, TMQ_UNSUPPORTED,
                             "subjects, name_prefix: only in the filter of a subscription");
    if (!check_labels (check, filter->labels, filter->n_labels) ||
        !check_count (check, "parents", filter->n_parents, 0, TMQ_FILTER_VALUES_MAX) ||
        !check_ids (check, "parents", filter->parents, filter->n_parents) ||
        !check_owners (check, request, filter) ||
        !check_marks (check, "agents", filter->agents, filter->n_agents,
                      TMQ_TURN_AGENT_BYTES_MAX) ||
        !check_marks (check, "files", filter->files, filter->n_files, TMQ_TURN_PATH_BYTES_MAX))
        return false;
    if (!check_range (check, "created_since", filter->created_since, 0, INT64_MAX) ||
        !check_range (check, "created_until", filter->created_until, 0, INT64_MAX))
        return false;
    return check_filter (check, filter);
}

bool check_list (check_t *check, const Taskmq__Request *request)
{
    return check_range (check, "limit", request->list->limit, 0, TMQ_LIST_LIMIT_MAX) &&
           check_stored_filter (check, request, request->list->filter);
}

bool check_search (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Search *search = request->search;
    if (search->text[0] == '\0')
        return check_refuse (check, TMQ_INVALID, "text: must not be empty");
    if (search->count && (search->cursor.len > 0 || search->limit > 0 || search->ranked))
        return check_refuse (check, TMQ_INVALID,
                             "count: takes no cursor, no limit, and nothing ranked");
    return check_text (check, "text", search->text, TMQ_SEARCH_BYTES_MAX) &&
           check_range (check, "limit", search->limit, 0, TMQ_LIST_LIMIT_MAX) &&
           check_stored_filter (check, request, search->filter);
}

bool check_filter_of_count (check_t *check, const Taskmq__Request *request)
{
    return check_stored_filter (check, request, request->count->filter);
}

bool check_task_events (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->task_events->task_id) &&
           check_range (check, "limit", request->task_events->limit, 0, TMQ_LIST_LIMIT_MAX);
}

bool check_why (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->why->task_id);
}

bool check_cancel (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->cancel->task_id) &&
           check_text (check, "message", request->cancel->message, TMQ_MESSAGE_BYTES_MAX);
}

bool check_wait (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Wait *wait = request->wait;
    return check_count (check, "task_ids", wait->n_task_ids, 1, TMQ_WAIT_IDS_MAX) &&
           check_ids (check, "task_ids", wait->task_ids, wait->n_task_ids);
}

/* Questions. */

bool check_answer (check_t *check, const Taskmq__Request *request)
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
            return check_refuse (check, TMQ_TOO_LARGE, "items.bytes: %u, at most %d", item->bytes,
                                 TMQ_ANSWER_BYTES_MAX);
    }
    return true;
}

bool check_inbox (check_t *check, const Taskmq__Request *request)
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

bool check_default (check_t *check, bool given, bool is_text, const char *answer)
{
    if (!given)
        return (*answer == '\0' && !is_text) ||
               check_refuse (check, TMQ_INVALID, "default_answer: only with has_default");
    if (is_text)
        return check_text (check, "default_answer", answer, TMQ_QUESTION_BYTES_MAX);
    if (*answer == '\0')
        return check_refuse (check, TMQ_INVALID, "default_answer: must be JSON");
    return check_json (check, "default_answer", answer, TMQ_QUESTION_BYTES_MAX, false);
}

bool check_asked (check_t *check, const char *request)
{
    if (*request == '\0')
        return check_refuse (check, TMQ_INVALID, "request: must be JSON");
    return check_json (check, "request", request, TMQ_QUESTION_BYTES_MAX, false);
}

bool check_ask (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Ask *ask = request->ask;
    return check_lease (check, ask->lease) &&
           check_text (check, "key", ask->key, TMQ_QUESTION_KEY_BYTES_MAX) &&
           check_asked (check, ask->request) &&
           check_range (check, "deadline_ms", ask->deadline_ms, 0, TMQ_TTL_MS_MAX) &&
           check_default (check, ask->has_default, ask->default_text, ask->default_answer);
}

bool check_take_answers (check_t *check, const Taskmq__Request *request)
{
    return check_lease (check, request->take_answers->lease);
}

/* Changes of tasks by name. */

static bool check_changed (check_t *check, size_t count, const ProtobufCBinaryData *ids)
{
    return check_count (check, "task_ids", count, 1, TMQ_CHANGE_IDS_MAX) &&
           check_ids (check, "task_ids", ids, count);
}

bool check_checkpoint (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Checkpoint *checkpoint = request->checkpoint;
    if (checkpoint->state_bytes > TMQ_CHECKPOINT_BYTES_MAX)
        return check_refuse (check, TMQ_TOO_LARGE, "state_bytes: %u bytes, at most %d",
                             checkpoint->state_bytes, TMQ_CHECKPOINT_BYTES_MAX);
    return check_lease (check, checkpoint->lease);
}

bool check_checkpoint_read (check_t *check, const Taskmq__Request *request)
{
    return check_lease (check, request->checkpoint_read->lease);
}

/* Turns. */

static bool check_part (check_t *check, const char *member, uint32_t bytes)
{
    return bytes <= TMQ_TURN_BYTES_MAX ||
           check_refuse (check, TMQ_TOO_LARGE, "%s: %u bytes, at most %d", member, bytes,
                         TMQ_TURN_BYTES_MAX);
}

bool check_turn (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Turn *turn = request->turn;
    size_t bytes = validate_turn_bytes (turn);
    if (!check_part (check, "content_bytes", turn->content_bytes) ||
        !check_part (check, "tool_calls_bytes", turn->tool_calls_bytes) ||
        !check_part (check, "tool_log_bytes", turn->tool_log_bytes))
        return false;
    if (bytes > TMQ_FRAME_BYTES_MAX)
        return check_refuse (check, TMQ_TOO_LARGE, "turn: %zu bytes with its files, at most %d",
                             bytes, TMQ_FRAME_BYTES_MAX);
    return check_range (check, "number", turn->number, 1, UINT32_MAX) &&
           check_text (check, "agent", turn->agent, TMQ_TURN_AGENT_BYTES_MAX) &&
           check_text (check, "status", turn->status, TMQ_TURN_STATUS_BYTES_MAX) &&
           check_range (check, "started_at", turn->started_at, 0, TMQ_TIME_MS_MAX) &&
           check_range (check, "duration_ms", turn->duration_ms, 0, TMQ_TTL_MS_MAX) &&
           check_lease (check, turn->lease);
}

bool check_turns (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Turns *turns = request->turns;
    return check_16_bytes (check, "task_id", &turns->task_id) &&
           check_range (check, "limit", turns->limit, 0, TMQ_LIST_LIMIT_MAX) &&
           check_range (check, "parts", turns->parts, 0,
                        TMQ_TURN_CONTENT | TMQ_TURN_TOOL_CALLS | TMQ_TURN_TOOL_LOG |
                            TMQ_TURN_FILES);
}

/* Artifacts. */

bool check_artifact_name (check_t *check, const char *name)
{
    const char *flaw = artifact_name_flaw (name);
    return flaw == NULL || check_refuse (check, TMQ_INVALID, "name: %s", flaw);
}

bool check_artifact (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ArtifactPut *artifact = request->artifact;
    if (artifact->blob != NULL && artifact->bytes > 0)
        return check_refuse (check, TMQ_INVALID, "blob: must not stand beside bytes");
    return check_lease (check, artifact->lease) && check_artifact_name (check, artifact->name) &&
           check_text (check, "type", artifact->type, TMQ_CONTENT_TYPE_BYTES_MAX) &&
           check_body (check, "bytes", artifact->bytes) &&
           (artifact->blob == NULL || check_blob (check, "blob", artifact->blob));
}

bool check_artifacts (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->artifacts->task_id);
}

/* Logs. */

static bool check_stream (check_t *check, uint32_t stream)
{
    return check_range (check, "stream", stream, TMQ_LOG_OUT, TMQ_LOG_ERR);
}

bool check_log (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Log *log = request->log;
    if (log->log_bytes > TMQ_LOG_BYTES_MAX)
        return check_refuse (check, TMQ_TOO_LARGE, "log_bytes: %u bytes, at most %d",
                             log->log_bytes, TMQ_LOG_BYTES_MAX);
    return check_range (check, "log_bytes", log->log_bytes, 1, TMQ_LOG_BYTES_MAX) &&
           check_stream (check, log->stream) &&
           check_range (check, "offset", log->offset, 0, TMQ_LOG_OFFSET_MAX - log->log_bytes) &&
           check_lease (check, log->lease);
}

bool check_read_log (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ReadLog *read = request->read_log;
    return check_16_bytes (check, "task_id", &read->task_id) &&
           check_stream (check, read->stream) &&
           check_range (check, "offset", read->offset, 0, TMQ_LOG_OFFSET_MAX) &&
           check_range (check, "limit", read->limit, 0, TMQ_LOG_BYTES_MAX);
}

/* Large bodies. */

bool check_blob_begin (check_t *check, const Taskmq__Request *request)
{
    return check_uploaded (check, "blob", request->blob_begin->blob);
}

bool check_blob_drop (check_t *check, const Taskmq__Request *request)
{
    return check_uploaded (check, "blob", request->blob_drop->blob);
}

bool check_blob_chunk (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__BlobChunk *chunk = request->blob_chunk;
    return check_uploaded (check, "blob", chunk->blob) &&
           check_range (check, "offset", chunk->offset, 0, TMQ_BLOB_BYTES_MAX) &&
           check_range (check, "chunk_bytes", chunk->chunk_bytes, 1, TMQ_FRAME_BYTES_MAX);
}

static bool check_blob_part (check_t *check, const Taskmq__BlobRead *read)
{
    if ((read->part == BLOB_PART_LATE) != (read->attempt > 0))
        return check_refuse (check, TMQ_INVALID, "attempt: of a late success, and only of that");
    if (read->part == BLOB_PART_ARTIFACT)
        return check_artifact_name (check, read->name) &&
               (read->hash.len == 0 || read->hash.len == TMQ_BLOB_HASH_BYTES ||
                check_refuse (check, TMQ_INVALID, "hash: must have %d bytes", TMQ_BLOB_HASH_BYTES));
    return (read->name[0] == '\0' && read->hash.len == 0) ||
           check_refuse (check, TMQ_INVALID, "name, hash: only of an artifact");
}

bool check_blob_read (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__BlobRead *read = request->blob_read;
    return check_16_bytes (check, "task_id", &read->task_id) &&
           check_range (check, "part", read->part, 1, BLOB_PART_LATE) &&
           check_blob_part (check, read) &&
           check_range (check, "offset", read->offset, 0, TMQ_BLOB_BYTES_MAX) &&
           check_range (check, "limit", read->limit, 0, TMQ_PART_BYTES_MAX);
}

bool check_retry (check_t *check, const Taskmq__Request *request)
{
    if (request->retry->from_turn_plus_1 > 0)
        return check_refuse (check, TMQ_INVALID, "from_turn_plus_1: only of a resume");
    return check_changed (check, request->retry->n_task_ids, request->retry->task_ids);
}

bool check_resume (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Retry *resume = request->resume;
    if (resume->from_turn_plus_1 > 0 && resume->n_task_ids > 1)
        return check_refuse (check, TMQ_INVALID, "from_turn_plus_1: only beside one task");
    return check_changed (check, resume->n_task_ids, resume->task_ids);
}

bool check_purge (check_t *check, const Taskmq__Request *request)
{
    return check_changed (check, request->purge->n_task_ids, request->purge->task_ids);
}

bool check_adopt (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Adopt *adopt = request->adopt;
    return check_16_bytes (check, "task_id", &adopt->task_id) &&
           check_range (check, "attempt", adopt->attempt, 1, UINT32_MAX);
}

bool check_attempts (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "task_id", &request->attempts->task_id) &&
           check_range (check, "limit", request->attempts->limit, 0, TMQ_LIST_LIMIT_MAX);
}

bool check_set (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Set *set = request->set;
    if (set->ttl_ms == 0 && !set->ttl_never && set->priority_plus_1 == 0 &&
        set->max_attempts == 0 && set->not_before == 0 && !set->at_once && set->n_labels == 0 &&
        set->n_drop_labels == 0)
        return check_refuse (check, TMQ_INVALID, "set: nothing is to be changed");
    return check_changed (check, set->n_task_ids, set->task_ids) &&
           check_range (check, "ttl_ms", set->ttl_ms, 0, TMQ_TTL_MS_MAX) &&
           check_range (check, "priority_plus_1", set->priority_plus_1, 0, 256) &&
           check_range (check, "max_attempts", set->max_attempts, 0, TMQ_MAX_ATTEMPTS_MAX) &&
           check_range (check, "not_before", set->not_before, 0, TMQ_TIME_MS_MAX) &&
           check_labels (check, set->labels, set->n_labels) &&
           check_count (check, "drop_labels", set->n_drop_labels, 0, TMQ_LABELS_MAX) &&
           check_names (check, "drop_labels", set->drop_labels, set->n_drop_labels);
}
