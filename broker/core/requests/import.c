/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* import: a task comes as it was elsewhere, in pieces where a frame does not hold it. An id that is
 * here already is answered as existing, so whoever was cut off begins again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "core/base/memory.h"
#include "core/peers/link.h"
#include "core/reads/find.h"
#include "core/requests/after.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/import_beside.h"
#include "core/requests/quota.h"
#include "core/requests/room.h"
#include "core/requests/sessions.h"
#include "core/tasks/account.h"
#include "core/tasks/asking.h"
#include "core/tasks/edges.h"
#include "core/tasks/entries.h"
#include "core/tasks/extras.h"
#include "core/tasks/imports.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/makers.h"
#include "core/tasks/space.h"
#include "ids.h"
#include "imported.h"
#include "types.h"

enum {
    /* Tasks that come in pieces, of TMQ_IMPORT_BYTES_MAX each at most, until the last is there. */
    IMPORTS_MAX = 16,
    IMPORTS_OF_ONE_MAX = 4,
    IMPORT_YIELD_MS = 60 * 1000 /* one that stood still so long gives its place, if asked */
};

/* Numbers of the fields of Submitted and SubmittedItem in taskmq.proto. */
enum { SUBMITTED_ITEMS = 1, ITEM_TASK_ID = 3, ITEM_EXISTING = 4, ITEM_STATUS = 6 };

/* Pieces. */

/* Of all, or of one identity; and which of them stood still for longest. */
static size_t count_imports (const links_t *peers, const name_t *identity, import_t **oldest)
{
    size_t count = 0;
    *oldest = NULL;
    for (node_t *node = peers->imports.next; node != &peers->imports; node = node->next) {
        import_t *import = LIST_ITEM (node, import_t, node);
        if (identity != NULL && import->identity != identity)
            continue;
        if (count++ == 0)
            *oldest = import;
    }
    return count;
}

/* There is a place, or one that stood still gives its own. */
static bool has_place (const requests_t *self, const name_t *identity, size_t most)
{
    import_t *oldest;
    if (count_imports (self->peers, identity, &oldest) < most)
        return true;
    if (self->base->clocks.mono_ms - oldest->moved_ms < IMPORT_YIELD_MS)
        return false;
    link_drop_import (self->peers, oldest->link);
    return true;
}

/* False: it was answered. */
static bool find_place (call_t *call)
{
    char text[LIMIT_TEXT_SIZE];
    if (!has_place (call->requests, call->link->identity, IMPORTS_OF_ONE_MAX))
        snprintf (text, sizeof (text), "you import %d tasks in pieces, as many as you may at once",
                  IMPORTS_OF_ONE_MAX);
    else if (!has_place (call->requests, NULL, IMPORTS_MAX))
        snprintf (text, sizeof (text), "%d tasks are being imported in pieces", IMPORTS_MAX);
    else
        return true;
    reply_code_at_once (call, TMQ_OVERLOADED, text, LIMIT_RETRY_MS);
    return false;
}

/* False: it was answered. */
static bool begin_pieces (call_t *call)
{
    links_t *peers = call->requests->peers;
    link_t *link = call->link;
    const Taskmq__Import *import = call->request->import;
    if (import->offset == 0) {
        link_drop_import (peers, link);
        if (!find_place (call))
            return false;
        link->import = memory_zero (1, sizeof (*link->import));
        link->import->link = link;
        link->import->identity = names_share (link->identity);
        memcpy (link->import->id.bytes, import->task_id.data, sizeof (link->import->id));
        list_push_back (&peers->imports, &link->import->node);
        return true;
    }
    if (link->import != NULL && link->import->bytes.length == import->offset &&
        memcmp (link->import->id.bytes, import->task_id.data, sizeof (link->import->id)) == 0)
        return true;
    reply_code_at_once (call, TMQ_CONFLICT,
                        "the pieces before this one are not here: begin with the first", 0);
    return false;
}

static bool add_piece (call_t *call)
{
    requests_t *self = call->requests;
    if (!begin_pieces (call))
        return false;
    import_t *import = call->link->import;
    bytes_append (&import->bytes, call->body, call->request->import->bytes);
    import->moved_ms = self->base->clocks.mono_ms;
    list_remove (&import->node);
    list_push_back (&self->peers->imports, &import->node);
    return true;
}

/* The last piece was refused for now, and will come again. */
static void take_back_piece (call_t *call)
{
    call->link->import->bytes.length -= call->request->import->bytes;
}

/* Judgement. */

/* What there is to know of the task that comes. */
typedef struct coming {
    call_t *call;
    const Taskmq__ImportedTask *whole;
    const Taskmq__Task *task;
    Taskmq__Extra *extra; /* or NULL */
    Taskmq__TaskSpec spec;
    uint8_t digest[CODEC_DIGEST_BYTES];
} coming_t;

static bool times_are_good (const coming_t *self, import_refusal_t *out)
{
    const requests_t *requests = self->call->requests;
    const Taskmq__ImportedTask *whole = self->whole;
    const Taskmq__Task *task = self->task;
    tmq_id_t id;
    memcpy (id.bytes, self->spec.task_id.data, sizeof (id));
    if (!import_time_is_good (requests, "task_id", (uint64_t) id_time_ms (&id), out) ||
        !import_time_is_good (requests, "created_at", task->created_at, out) ||
        !import_time_is_good (requests, "updated_at", task->updated_at, out) ||
        !import_time_is_good (requests, "started_at", task->started_at, out) ||
        !import_time_is_good (requests, "finished_at", task->finished_at, out))
        return false;
    for (size_t i = 0; i < whole->n_attempts; i++)
        if (!import_time_is_good (requests, "attempts.started_at", whole->attempts[i]->started_at,
                                  out) ||
            !import_time_is_good (requests, "attempts.ended_at", whole->attempts[i]->ended_at, out))
            return false;
    for (size_t i = 0; i < whole->n_turns; i++)
        if (!import_time_is_good (requests, "turns.told_at", whole->turns[i]->info->told_at, out))
            return false;
    for (size_t i = 0; i < whole->n_questions; i++)
        if (!import_time_is_good (requests, "questions.asked_at", whole->questions[i]->asked_at,
                                  out))
            return false;
    if (task->status == TMQ_STATUS_INPUT_REQUIRED) /* it does not expire (S22) */
        return true;
    if (task->expires_at != 0 &&
        (int64_t) task->expires_at <= clocks_expiry_ms (&requests->base->clocks))
        return import_refuse (out, TMQ_EXPIRED, "its time to live ended before it was imported");
    return true;
}

/* A dependency that it was not told of must be known here. */
static bool dependencies_are_known (coming_t *self, import_refusal_t *out)
{
    Taskmq__Dependency *open[TMQ_AFTER_MAX];
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    for (size_t i = 0; self->extra != NULL && i < self->extra->n_after; i++)
        if (self->extra->after[i]->status == TMQ_STATUS_NONE)
            open[extra.n_after++] = self->extra->after[i];
    extra.after = open;
    spec.extra = &extra;
    after_refusal_t refused = after_judge (self->call, &spec);
    if (refused.code == TMQ_OK)
        return true;
    out->retry_after_ms = refused.code == TMQ_LIMIT ? LIMIT_RETRY_MS : 0;
    import_refuse (out, refused.code, "%s", refused.text);
    free (refused.text);
    return false;
}

/* The task that it was a part of may be gone: it remembers it all the same. */
static bool parent_is_good (coming_t *self, import_refusal_t *out)
{
    after_refusal_t refused = parent_judge (self->call, &self->spec);
    if (refused.code == TMQ_OK)
        return true;
    bool gone = refused.code == TMQ_NOT_FOUND;
    if (gone)
        self->extra->depth = 1;
    else
        import_refuse (out, refused.code, "%s", refused.text);
    free (refused.text);
    return gone;
}

static size_t texts_bytes (const coming_t *self)
{
    const Taskmq__Task *task = self->task;
    task_texts_t texts = {
        task->method, task->content_type, self->spec.dedup_key, task->meta, {{0}}};
    for (size_t i = 0; i < task->n_labels; i++)
        texts.labels[i] = (label_t){task->labels[i]->key, task->labels[i]->value};
    return task_texts_bytes (&texts, task->n_labels) + extra_bytes_of (self->extra);
}

/* What was uploaded before; or NULL. */
static const Taskmq__Blob *payload_blob_of (const coming_t *self)
{
    return self->extra == NULL ? NULL : self->extra->payload_blob;
}

static const Taskmq__Blob *result_blob_of (const coming_t *self)
{
    return self->extra == NULL ? NULL : self->extra->result_blob;
}

static size_t payload_bytes (const coming_t *self)
{
    const Taskmq__Blob *blob = payload_blob_of (self);
    return self->whole->payload.len + (blob == NULL ? 0 : (size_t) blob->bytes);
}

/* A body is there or a blob, and a result only of what has one. */
static bool bodies_are_good (const coming_t *self, import_refusal_t *out)
{
    const uint32_t outcome = self->task->outcome;
    if (payload_blob_of (self) != NULL && self->whole->payload.len > 0)
        return import_refuse (out, TMQ_INVALID, "payload_blob: must not stand beside a payload");
    if (result_blob_of (self) == NULL)
        return true;
    if (self->whole->result.len > 0)
        return import_refuse (out, TMQ_INVALID, "result_blob: must not stand beside a result");
    return outcome == TMQ_OUTCOME_RESULT || outcome == TMQ_OUTCOME_TOOL_ERROR ||
           import_refuse (out, TMQ_INVALID, "result_blob: does not go with the outcome");
}

/* It waits in its queue: as of a submit. */
static bool queue_has_room (coming_t *self, import_refusal_t *out)
{
    requests_t *requests = self->call->requests;
    const space_t *space = self->call->link->space;
    size_t payload = payload_bytes (self);
    char why[SESSION_REFUSAL_SIZE];
    room_refusal_t room;
    size_t limit = 0;
    tmq_code_t code = session_refuses (requests, space, self->call->link, self->task->session, why);
    if (code != TMQ_OK) {
        out->retry_after_ms = code == TMQ_LIMIT ? LIMIT_RETRY_MS : 0;
        return import_refuse (out, code, "%s", why);
    }
    if (room_refuses (requests, space, payload, texts_bytes (self), &room)) {
        out->retry_after_ms = LIMIT_RETRY_MS;
        return import_refuse (out, TMQ_LIMIT, "%s", room.text);
    }
    const char *what = room_of_queue (requests, space, self->task->queue, payload, &limit);
    if (what != NULL)
        return import_refuse_limit (out, what, limit);
    if (self->extra != NULL && self->extra->n_needs > 0 &&
        !needs_fit (requests->tasks, queue_find (requests->tasks, space, self->task->queue),
                    self->extra))
        return import_refuse_limit (out, "sets of requirements in the queue", TMQ_NEEDS_SETS_MAX);
    quota_refusal_t over = quota_submit (requests, self->call->link, payload);
    if (!over.refused)
        return true;
    out->retry_after_ms = over.retry_after_ms;
    return import_refuse (out, TMQ_LIMIT, "%s", over.text);
}

static size_t turns_bytes (const Taskmq__ImportedTask *whole)
{
    size_t bytes = 0;
    for (size_t i = 0; i < whole->n_turns; i++)
        bytes += whole->turns[i]->content.len + whole->turns[i]->tool_calls.len +
                 whole->turns[i]->tool_log.len + whole->turns[i]->files.len;
    return bytes;
}

static bool questions_fit (const coming_t *self, import_refusal_t *out)
{
    const tasks_t *tasks = self->call->requests->tasks;
    size_t bytes = 0;
    for (size_t i = 0; i < self->whole->n_questions; i++) {
        const Taskmq__Question *question = self->whole->questions[i];
        bytes += sizeof (question_t) + strlen (question->key) + strlen (question->request) +
                 strlen (question->default_answer);
    }
    return bytes == 0 || questions_have_room (tasks, bytes) ||
           import_refuse_limit (out, "bytes of questions and answers",
                                tasks->base->config.questions_bytes_max);
}

/* It takes no room among live tasks, but counts as one that was submitted. */
static bool rate_allows (coming_t *self, import_refusal_t *out)
{
    quota_refusal_t over = quota_submit_ended (self->call->requests, self->call->link);
    out->retry_after_ms = over.retry_after_ms;
    return !over.refused || import_refuse (out, TMQ_LIMIT, "%s", over.text);
}

static bool may_come (coming_t *self, import_refusal_t *out)
{
    uint64_t most = self->call->requests->base->config.space_turn_bytes_max;
    *out = (import_refusal_t){.code = TMQ_OK};
    if (!times_are_good (self, out))
        return false;
    if (self->call->link->space->entries.turn_bytes + turns_bytes (self->whole) > most)
        return import_refuse_limit (out, "bytes of the turns of a namespace", most);
    if (!parent_is_good (self, out) ||
        !import_beside_judge (self->call, self->whole, self->extra, out))
        return false;
    if (status_is_terminal (self->task->status))
        return rate_allows (self, out);
    return dependencies_are_known (self, out) && questions_fit (self, out) &&
           queue_has_room (self, out);
}

/* Making. */

static void make_record (const coming_t *self, record_t *out, label_t *labels)
{
    static const Taskmq__Progress NO_PROGRESS = TASKMQ__PROGRESS__INIT;
    static const Taskmq__TaskError NO_ERROR = TASKMQ__TASK_ERROR__INIT;
    const Taskmq__Task *task = self->task;
    const Taskmq__ImportedTask *whole = self->whole;
    const Taskmq__Progress *progress = task->progress == NULL ? &NO_PROGRESS : task->progress;
    const Taskmq__TaskError *error = task->error == NULL ? &NO_ERROR : task->error;
    for (size_t i = 0; i < task->n_labels; i++)
        labels[i] = (label_t){task->labels[i]->key, task->labels[i]->value};
    *out = (record_t){.ns = self->call->link->space->name,
                      .owner = name_text (self->call->link->identity),
                      .queue = task->queue,
                      .session = task->session,
                      .method = task->method,
                      .content_type = task->content_type,
                      .dedup_key = self->spec.dedup_key,
                      .meta = task->meta,
                      .labels = labels,
                      .labels_count = task->n_labels,
                      .status = (tmq_status_t) task->status,
                      .status_message = task->status_message,
                      .priority = (uint8_t) task->priority,
                      .dead = task->dead,
                      .created_at = (int64_t) task->created_at,
                      .updated_at = (int64_t) task->updated_at,
                      .started_at = (int64_t) task->started_at,
                      .finished_at = (int64_t) task->finished_at,
                      .expires_at = (int64_t) task->expires_at,
                      .not_before = (int64_t) task->not_before,
                      .ttl_ms = (int64_t) task->ttl_ms,
                      .max_attempts = task->max_attempts,
                      .attempt = task->attempt,
                      .failures = task->failures,
                      .version = task->version,
                      .holder = "",
                      .worker = task->worker,
                      .progress_done = progress->done,
                      .progress_total = progress->total,
                      .progress_unit = progress->unit,
                      .progress_message = progress->message,
                      .payload_bytes = (uint32_t) whole->payload.len,
                      .outcome = (tmq_outcome_kind_t) task->outcome,
                      .result_bytes = (uint32_t) whole->result.len,
                      .result_type = task->result_type,
                      .error_code = error->code,
                      .error_message = error->message,
                      .error_data = error->data};
    out->poll_interval_ms =
        task->poll_interval_ms > 0 ? task->poll_interval_ms : TMQ_POLL_INTERVAL_MS_DEFAULT;
    out->lease_ms = whole->lease_ms > 0 ? whole->lease_ms : TMQ_LEASE_MS_DEFAULT;
    out->backoff_ms = whole->backoff_ms > 0 ? whole->backoff_ms : TMQ_BACKOFF_MS_DEFAULT;
    memcpy (out->id.bytes, self->spec.task_id.data, sizeof (out->id));
    memcpy (out->digest, self->digest, sizeof (out->digest));
}

static buf_t *buf_of (const ProtobufCBinaryData *bytes)
{
    return bytes->len == 0 ? NULL : buf_new (bytes->data, bytes->len);
}

static void bring_attempts (const coming_t *self, tasks_t *tasks, const task_t *task)
{
    for (size_t i = 0; i < self->whole->n_attempts; i++) {
        const Taskmq__AttemptInfo *info = self->whole->attempts[i];
        attempt_t attempt = {.attempt = info->attempt,
                             .started_at = (int64_t) info->started_at,
                             .ended_at = (int64_t) info->ended_at,
                             .how = (tmq_event_kind_t) info->how};
        snprintf (attempt.worker, sizeof (attempt.worker), "%s", info->worker);
        if (info->error != NULL) {
            attempt.error_code = info->error->code;
            snprintf (attempt.error_message, sizeof (attempt.error_message), "%s",
                      info->error->message);
        }
        import_attempt (tasks, task, &attempt);
    }
}

static void bring_turns (const coming_t *self, tasks_t *tasks, task_t *task)
{
    for (size_t i = 0; i < self->whole->n_turns; i++) {
        const Taskmq__ImportedTurn *given = self->whole->turns[i];
        const Taskmq__TurnInfo *info = given->info;
        const ProtobufCBinaryData *parts[TURN_PARTS] = {&given->content, &given->tool_calls,
                                                        &given->tool_log, &given->files};
        turn_t turn = {.turn = info->turn,
                       .attempt = info->attempt,
                       .number = info->number,
                       .started_at = (int64_t) info->started_at,
                       .duration_ms = (int64_t) info->duration_ms,
                       .told_at = (int64_t) info->told_at};
        snprintf (turn.worker, sizeof (turn.worker), "%s", info->worker);
        snprintf (turn.agent, sizeof (turn.agent), "%s", info->agent);
        snprintf (turn.status, sizeof (turn.status), "%s", info->status);
        for (size_t k = 0; k < TURN_PARTS; k++) {
            turn.parts[k] = parts[k]->len == 0 ? (const uint8_t *) "" : parts[k]->data;
            turn.lengths[k] = parts[k]->len;
        }
        turn_put_as_told (tasks, task, &turn, info->superseded);
    }
}

static void bring_questions (const coming_t *self, tasks_t *tasks, task_t *task)
{
    for (size_t i = 0; i < self->whole->n_questions; i++) {
        const Taskmq__Question *given = self->whole->questions[i];
        question_t spec = {.key = given->key,
                           .request = given->request,
                           .default_answer = given->default_answer,
                           .worker = given->worker,
                           .asked_at = (int64_t) given->asked_at,
                           .deadline = (int64_t) given->deadline,
                           .attempt = given->attempt,
                           .has_default = given->has_default,
                           .default_text = given->default_text,
                           .by = (char *) ""};
        asking_bring (tasks, task, &spec);
    }
}

static task_t *bring (const coming_t *self)
{
    call_t *call = self->call;
    tasks_t *tasks = call->requests->tasks;
    label_t labels[TMQ_LABELS_MAX];
    record_t record;
    makers_count (tasks, call->link->space, call->link->identity);
    journal_input (tasks);
    account_add_pending (tasks, call->link->account);
    make_record (self, &record, labels);
    record.extra = self->extra == NULL ? NULL : extra_pack (self->extra);
    record.payload = buf_of (&self->whole->payload);
    record.result = buf_of (&self->whole->result);
    task_t *task = import_task (tasks, &record);
    buf_drop (record.extra);
    buf_drop (record.payload);
    buf_drop (record.result);
    bring_attempts (self, tasks, task);
    import_beside_bring (call, self->whole, self->extra, task);
    bring_turns (self, tasks, task);
    bring_questions (self, tasks, task);
    cause_t cause = {.actor = name_text (call->link->identity)};
    import_end (tasks, task, &cause);
    parent_mark (call->requests, call->link->space, &self->spec, name_text (call->link->identity));
    return task;
}

/* Answers. */

static void reply_there (call_t *call, bool existing, tmq_status_t status)
{
    requests_t *self = call->requests;
    const ProtobufCBinaryData *id = &call->request->import->task_id;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t submitted = bytes_open (out, TASKMQ__REPLY__BODY_SUBMITTED);
    bytes_mark_t item = bytes_open (out, SUBMITTED_ITEMS);
    bytes_append_blob (out, ITEM_TASK_ID, id->data, id->len);
    bytes_append_uint (out, ITEM_EXISTING, existing);
    bytes_append_uint (out, ITEM_STATUS, status);
    bytes_close (out, item);
    bytes_close (out, submitted);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

static bool is_there (const found_t *found)
{
    return found->task != NULL || found->record != NULL;
}

/* Its id is known here, or its key: true, and it was answered. */
static bool answer_known (coming_t *self)
{
    call_t *call = self->call;
    requests_t *requests = call->requests;
    const char *key = self->spec.dedup_key;
    found_t found = find_unjudged (requests->reads, call->link->space, self->spec.task_id.data);
    if (found.gone == TMQ_INTERNAL) {
        reply_gone (call, &found);
    } else if (found.gone != TMQ_NOT_FOUND && !found_is_seen (call->link, &found)) {
        reply_code (call, TMQ_CONFLICT, "the id is in use");
    } else if (is_there (&found)) {
        const uint8_t *digest = found.task != NULL ? found.task->digest : found.record->digest;
        if (memcmp (digest, self->digest, RECORD_DIGEST_BYTES) == 0 ||
            requests->base->config.planted_bug == ENGINE_BUG_IMPORT_UNJUDGED)
            reply_there (call, true, found_status (&found));
        else
            reply_code (call, TMQ_CONFLICT, "a task with this id and another payload is here");
    } else if (found.gone != TMQ_NOT_FOUND) {
        reply_gone (call, &found);
    } else if (key[0] != '\0') {
        found =
            find_dedup (requests->reads, call->link->space, name_text (call->link->identity), key);
        if (found.gone == TMQ_NOT_FOUND)
            return false;
        reply_code (call, TMQ_CONFLICT, "a task with its dedup key is here");
    } else {
        return false;
    }
    return true;
}

/* False: it may come again as it is. */
static bool answer_whole (call_t *call, const Taskmq__ImportedTask *whole)
{
    const Taskmq__Import *import = call->request->import;
    coming_t self = {.call = call, .whole = whole, .task = whole->task, .extra = import->extra};
    import_refusal_t refused;
    if (!access_queue (&call->link->access, whole->task->queue, RIGHT_SUBMIT)) {
        reply_code_at_once (call, TMQ_DENIED, "no right to submit to this queue", 0);
        return true;
    }
    self.spec = (Taskmq__TaskSpec) TASKMQ__TASK_SPEC__INIT;
    self.spec.task_id = import->task_id;
    self.spec.dedup_key = import->dedup_key;
    self.spec.extra = import->extra;
    self.spec.queue = whole->task->queue;
    self.spec.method = whole->task->method;
    self.spec.session = whole->task->session;
    self.spec.content_type = whole->task->content_type;
    if (!bodies_are_good (&self, &refused)) {
        reply_code_at_once (call, refused.code, refused.text, 0);
        return true;
    }
    codec_submit_digest (self.digest, &self.spec, whole->payload.data, whole->payload.len);
    if (answer_known (&self))
        return true;
    if (!may_come (&self, &refused)) {
        reply_code_at_once (call, refused.code, refused.text, refused.retry_after_ms);
        return refused.code != TMQ_LIMIT && refused.code != TMQ_NO_BLOB;
    }
    reply_there (call, false, bring (&self)->status);
    deeds_import (call, import->task_id.data, whole->task->queue);
    return true;
}

static bool answer_bytes (call_t *call, const uint8_t *bytes, size_t length)
{
    verdict_t verdict;
    arena_t *arena = arena_new (IMPORTED_ARENA_BYTES);
    bool done = true;
    const Taskmq__ImportedTask *whole =
        arena == NULL ? NULL : imported_read (&verdict, arena, bytes, length);
    if (arena == NULL)
        reply_code_at_once (call, TMQ_NO_MEMORY, NULL, 0);
    else if (whole == NULL)
        reply_code_at_once (call, verdict.code, verdict.text, 0);
    else
        done = answer_whole (call, whole);
    arena_free (arena);
    return done;
}

void on_import (call_t *call)
{
    const Taskmq__Import *import = call->request->import;
    if (new_is_refused (call))
        return;
    if (import->offset == 0 && !import->more) {
        answer_bytes (call, call->body, import->bytes);
        return;
    }
    if (!add_piece (call))
        return;
    if (import->more)
        reply_code_at_once (call, TMQ_OK, NULL, 0);
    else if (answer_bytes (call, call->link->import->bytes.data, call->link->import->bytes.length))
        link_drop_import (call->requests->peers, call->link);
    else
        take_back_piece (call);
}
