/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Changes of tasks by name: each of up to 256 ids is done or refused with its own code; adopt is
 * of one.
 *
 * A repeat gets the answer that the first one got: the task keeps the id of the request that
 * brought it back, of the one that set it, and of the one that gave it its outcome. To purge what
 * is purged succeeds. An id that was refused is judged again. */
#include "core/requests/again.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/extra.h"
#include "core/peers/link.h"
#include "core/requests/answer.h"
#include "core/requests/cancel.h"
#include "core/requests/deeds.h"
#include "core/requests/get.h"
#include "core/requests/marks.h"
#include "core/requests/room.h"
#include "core/requests/sessions.h"
#include "core/tasks/account.h"
#include "core/tasks/edges.h"
#include "core/tasks/extras.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/quarantine.h"
#include "core/tasks/revive.h"
#include "core/tasks/session.h"
#include "core/tasks/settle.h"
#include "core/tasks/space.h"
#include "core/tasks/turns.h"
#include "core/tasks/view.h"
#include "types.h"

/* Numbers of the fields of Changed and ChangedItem in taskmq.proto. */
enum {
    CHANGED_ITEMS = 1,
    ITEM_TASK_ID = 1,
    ITEM_CODE = 2,
    ITEM_TEXT = 3,
    ITEM_STATUS = 4,
    ITEM_RETRY = 5,
    ITEM_BYTES_MAX = 40 /* of one without its text */
};

/* The answer about one id. */
typedef struct done {
    tmq_code_t code;
    tmq_status_t status;
    uint32_t retry_after_ms;
    char *text; /* to be freed; NULL: none */
} done_t;

static done_t refuse (tmq_code_t code, const char *text)
{
    return (done_t){.code = code, .text = memory_text (text)};
}

/* What cannot be done, and the status that the task has. */
static done_t refuse_status (const char *what, tmq_status_t status)
{
    char text[128];
    snprintf (text, sizeof (text), "%s: the task is %s", what, status_text (status));
    done_t item = refuse (TMQ_WRONG_STATUS, text);
    item.status = status;
    return item;
}

static bool find (call_t *call, const ProtobufCBinaryData *id, unsigned rights, found_t *found,
                  done_t *out)
{
    char text[GONE_TEXT_SIZE];
    *found = find_id (call->requests->reads, call->link, id->data, rights);
    if (found->task != NULL || found->record != NULL)
        return true;
    gone_text (text, found);
    *out = refuse (found->gone, text);
    return false;
}

task_t *again_task (requests_t *self, found_t *found)
{
    if (found->task == NULL) {
        found->task = task_restore (self->tasks, found->record);
        found->record = NULL;
    }
    return found->task;
}

static cause_t cause_of (const call_t *call, const char *message)
{
    return (cause_t){.actor = name_text (call->link->identity), .message = message};
}

/* retry, resume. */

static bool refuse_limit (done_t *out, const char *what, size_t limit)
{
    char text[LIMIT_TEXT_SIZE];
    limit_text (text, what, limit);
    *out = refuse (TMQ_LIMIT, text);
    out->retry_after_ms = LIMIT_RETRY_MS;
    return false;
}

static size_t payload_of (const found_t *found)
{
    return found->task != NULL
               ? extras_payload_bytes (found->task)
               : found->record->payload_bytes + extra_blob_bytes (found->record->extra);
}

/* What a task takes in memory of the texts of live ones, when it comes back. */
static size_t texts_bytes (const record_t *record)
{
    task_texts_t texts = {.method = record->method,
                          .content_type = record->content_type,
                          .dedup_key = record->dedup_key,
                          .meta = record->meta};
    memcpy (texts.labels, record->labels, record->labels_count * sizeof (label_t));
    size_t bytes = task_texts_bytes (&texts, record->labels_count);
    extra_t *extra = record->extra == NULL ? NULL : extra_new (record->extra);
    bytes += extra_bytes_of (extra == NULL ? NULL : extra->fields);
    extra_free (extra);
    return bytes;
}

static bool has_room (call_t *call, const found_t *found, done_t *out)
{
    requests_t *self = call->requests;
    const space_t *space = call->link->space;
    size_t payload = payload_of (found);
    size_t texts = found->task != NULL ? 0 : texts_bytes (found->record);
    room_refusal_t refusal;
    if (room_refuses (self, space, payload, texts, &refusal)) {
        *out = refuse (TMQ_LIMIT, refusal.text);
        out->retry_after_ms = LIMIT_RETRY_MS;
        return false;
    }
    size_t limit = 0;
    const char *what = room_of_queue (self, space, found->queue, payload, &limit);
    return what == NULL || refuse_limit (out, what, limit);
}

/* The last to be asked: what else is refused shall not count for a rate. */
static bool quota_allows (call_t *call, const found_t *found, done_t *out)
{
    if (!link_is (call->link, found->owner)) /* an admin may go beyond the owner's quota */
        return true;
    quota_refusal_t over = quota_submit (call->requests, call->link, payload_of (found));
    if (!over.refused)
        return true;
    *out = refuse (TMQ_LIMIT, over.text);
    out->retry_after_ms = over.retry_after_ms;
    return false;
}

/* It is judged anew by its dependencies, but for those that completed (S21). */
static bool edges_have_room (call_t *call, const found_t *found, done_t *out)
{
    const requests_t *self = call->requests;
    buf_t *packed = found->task != NULL ? extra_packed (found->task->extra) : found->record->extra;
    if (packed == NULL)
        return true;
    size_t open = 0;
    extra_t *extra = extra_new (packed);
    for (size_t i = 0; i < extra->fields->n_after; i++)
        open += extra->fields->after[i]->status != TMQ_STATUS_COMPLETED;
    extra_free (extra);
    return open == 0 || edges_fit (self->tasks, open) ||
           refuse_limit (out, "dependencies of waiting tasks", self->base->config.dependencies_max);
}

/* Its requirements may be one set too many now. */
static bool needs_have_room (call_t *call, const found_t *found, done_t *out)
{
    tasks_t *tasks = call->requests->tasks;
    const queue_t *queue = queue_find (tasks, call->link->space, found->queue);
    buf_t *packed = found->task != NULL ? extra_packed (found->task->extra) : found->record->extra;
    if (queue == NULL || packed == NULL || needs_count (queue) < TMQ_NEEDS_SETS_MAX)
        return true;
    extra_t *extra = extra_new (packed);
    bool fit = needs_fit (tasks, queue, extra->fields);
    extra_free (extra);
    return fit || refuse_limit (out, "sets of requirements in the queue", TMQ_NEEDS_SETS_MAX);
}

/* The session of the task takes none now. */
static bool session_has_room (call_t *call, const found_t *found, done_t *out)
{
    char text[SESSION_REFUSAL_SIZE];
    const char *session =
        found->task != NULL ? session_text (found->task->session) : found->record->session;
    tmq_code_t code =
        session_refuses (call->requests, call->link->space, call->link, session, text);
    if (code == TMQ_OK)
        return true;
    *out = refuse (code, text);
    out->retry_after_ms = code == TMQ_LIMIT ? LIMIT_RETRY_MS : 0;
    return false;
}

/* The task has the turn that a resume goes back to, and room to say so. */
static bool turns_allow (call_t *call, const found_t *found, done_t *out)
{
    uint32_t from = call->request->resume->from_turn_plus_1;
    buf_t *packed = found->task != NULL ? extra_packed (found->task->extra) : found->record->extra;
    extra_t *extra = extra_new (packed);
    uint32_t turns = extra->fields->turns;
    bool fits = from == 0 || turns_have_range (extra->fields, from - 1);
    extra_free (extra);
    if (from > 0 && from - 1 > turns) {
        char text[64];
        snprintf (text, sizeof (text), "the task has %" PRIu32 " %s", turns,
                  turns == 1 ? "turn" : "turns");
        *out = refuse (TMQ_INVALID, text);
        return false;
    }
    return fits || refuse_limit (out, "ranges of superseded turns", TMQ_TURN_RANGES_MAX);
}

static done_t revive_one (call_t *call, const ProtobufCBinaryData *id, task_input_t input)
{
    requests_t *self = call->requests;
    found_t found;
    done_t item = {0};
    if (!find (call, id, RIGHT_CANCEL, &found, &item))
        return item;
    tmq_status_t status = found_status (&found);
    if (mark_is_repeat (call, &found, MARK_REVIVED) &&
        self->base->config.planted_bug != ENGINE_BUG_REVIVED_TWICE)
        return (done_t){.status = status};
    if (status != TMQ_STATUS_FAILED && status != TMQ_STATUS_CANCELLED)
        return refuse_status (
            input == INPUT_RETRY ? "it cannot be retried" : "it cannot be resumed", status);
    if (input == INPUT_RESUME && !turns_allow (call, &found, &item))
        return item;
    if (!session_has_room (call, &found, &item) || !has_room (call, &found, &item) ||
        !needs_have_room (call, &found, &item) || !edges_have_room (call, &found, &item) ||
        !quota_allows (call, &found, &item))
        return item;
    deeds_task (call, DEED_RETRY, &found);
    journal_input (self->tasks);
    account_add_pending (self->tasks, call->link->account);
    task_t *task = again_task (self, &found);
    char from[32];
    bool goes_back = input == INPUT_RESUME && call->request->resume->from_turn_plus_1 > 0;
    if (goes_back)
        snprintf (from, sizeof (from), "from turn %" PRIu32,
                  call->request->resume->from_turn_plus_1 - 1);
    cause_t cause = cause_of (call, goes_back ? from : NULL);
    mark_keep (call, task, MARK_REVIVED);
    if (goes_back && self->base->config.planted_bug != ENGINE_BUG_TURNS_NOT_SUPERSEDED)
        turns_supersede (self->tasks, task, call->request->resume->from_turn_plus_1 - 1);
    revive_queue (self->tasks, task, input, &cause);
    return (done_t){.status = task->status};
}

static done_t retry_one (call_t *call, const ProtobufCBinaryData *id)
{
    return revive_one (call, id, INPUT_RETRY);
}

static done_t resume_one (call_t *call, const ProtobufCBinaryData *id)
{
    return revive_one (call, id, INPUT_RESUME);
}

/* set. */

typedef struct set {
    revision_t revision;
    label_t labels[TMQ_LABELS_MAX];
    char what[96]; /* for the event */
} set_t;

static void say (set_t *self, bool given, const char *what)
{
    size_t used = strlen (self->what);
    if (given)
        snprintf (self->what + used, sizeof (self->what) - used, "%s%s", used > 0 ? ", " : "",
                  what);
}

static void set_of (const Taskmq__Set *request, set_t *out)
{
    *out = (set_t){.revision = {.ttl = request->ttl_never || request->ttl_ms > 0,
                                .ttl_ms = request->ttl_never ? 0 : (int64_t) request->ttl_ms,
                                .priority = (int) request->priority_plus_1 - 1,
                                .max_attempts = request->max_attempts,
                                .not_before = -1,
                                .labels = out->labels,
                                .labels_count = request->n_labels,
                                .drop_labels = (const char *const *) request->drop_labels,
                                .drop_labels_count = request->n_drop_labels}};
    revision_t *revision = &out->revision;
    if (request->at_once || request->not_before > 0)
        revision->not_before = request->at_once ? 0 : (int64_t) request->not_before;
    for (size_t i = 0; i < request->n_labels; i++)
        out->labels[i] = (label_t){request->labels[i]->key, request->labels[i]->value};
    say (out, revision->ttl, "ttl");
    say (out, revision->priority >= 0, "priority");
    say (out, revision->max_attempts > 0, "max_attempts");
    say (out, revision->not_before >= 0, "not_before");
    say (out, revision->labels_count > 0 || revision->drop_labels_count > 0, "labels");
}

static size_t labels_after (const found_t *found, const revision_t *revision)
{
    if (found->record != NULL)
        return revision_labels_count (found->record->labels, found->record->labels_count, revision);
    task_texts_t texts;
    task_texts (found->task, &texts);
    return revision_labels_count (texts.labels, found->task->labels_count, revision);
}

static done_t set_one (call_t *call, const ProtobufCBinaryData *id)
{
    requests_t *self = call->requests;
    found_t found;
    done_t item = {0};
    set_t set;
    set_of (call->request->set, &set);
    if (!find (call, id, RIGHT_CANCEL, &found, &item))
        return item;
    tmq_status_t status = found_status (&found);
    if (mark_is_repeat (call, &found, MARK_SET))
        return (done_t){.status = status};
    const revision_t *revision = &set.revision;
    if (status_is_terminal (status) && (revision->priority >= 0 || revision->max_attempts > 0))
        return refuse_status ("only its ttl and labels can be set", status);
    if (revision->not_before >= 0 && status != TMQ_STATUS_QUEUED)
        return refuse_status ("its start cannot be set", status);
    if (labels_after (&found, revision) > TMQ_LABELS_MAX) {
        char text[LIMIT_TEXT_SIZE];
        limit_text (text, "labels of a task", TMQ_LABELS_MAX);
        return refuse (TMQ_LIMIT, text);
    }
    deeds_task (call, DEED_SET, &found);
    journal_input (self->tasks);
    task_t *task = again_task (self, &found);
    cause_t cause = cause_of (call, set.what);
    mark_keep (call, task, MARK_SET);
    revise (self->tasks, task, revision, &cause);
    return (done_t){.status = task->status};
}

/* purge. */

static done_t purge_one (call_t *call, const ProtobufCBinaryData *id)
{
    requests_t *self = call->requests;
    found_t found;
    done_t item = {0};
    if (!find (call, id, RIGHT_ADMIN, &found, &item)) {
        if (found.gone != TMQ_PURGED)
            return item;
        free (item.text);
        return (done_t){0};
    }
    tmq_status_t status = found_status (&found);
    if (!status_is_terminal (status))
        return refuse_status ("only what has ended can be purged", status);
    if (found.task != NULL && found.task->leased) {
        item = refuse (TMQ_WRONG_STATUS, "its worker has not stopped yet");
        item.status = status;
        return item;
    }
    deeds_task (call, DEED_PURGE, &found);
    journal_input (self->tasks);
    cause_t cause = cause_of (call, NULL);
    if (found.record != NULL) {
        change_remove (self->tasks, call->link->space, found.record, INPUT_PURGE, &cause);
        return (done_t){0};
    }
    record_t view;
    task_texts_t texts MEMORY_FILLED_BEFORE_READ;
    task_view (found.task, &view, &texts);
    change_remove (self->tasks, call->link->space, &view, INPUT_PURGE, &cause);
    settle_detach (self->tasks, found.task);
    return (done_t){0};
}

/* adopt. */

/* Why the success of this attempt cannot be had. */
static void refuse_attempt (call_t *call, const found_t *found, uint32_t attempt)
{
    char text[96];
    const task_t *task = found->task;
    uint32_t newest = task != NULL ? task->attempt : found->record->attempt;
    bool running = task != NULL && task->leased && !task_is_withdrawn (task) && attempt == newest;
    if (attempt > newest)
        snprintf (text, sizeof (text), "the task has had %" PRIu32 " attempts, not %" PRIu32,
                  newest, attempt);
    else if (running)
        snprintf (text, sizeof (text), "attempt %" PRIu32 " is still running", attempt);
    else
        snprintf (text, sizeof (text), "no late success of attempt %" PRIu32 " is kept", attempt);
    reply_code (call, running ? TMQ_WRONG_STATUS : TMQ_NOT_FOUND, text);
}

/* NULL: the request was answered. */
static const kept_t *find_kept (call_t *call, const found_t *found, const buf_t **bytes)
{
    const Taskmq__Adopt *request = call->request->adopt;
    const space_t *space = call->link->space;
    const uint8_t *id = request->task_id.data;
    tmq_status_t status = found_status (found);
    if (transition_find (status, INPUT_ADOPT) == NULL) {
        get_answer_wrong_status (call, "no attempt can be adopted", status);
        return NULL;
    }
    const kept_t *kept = kept_find (call->requests->tasks, space, id, request->attempt);
    if (kept == NULL) {
        refuse_attempt (call, found, request->attempt);
        return NULL;
    }
    row_key_t key;
    bool there;
    kept_key (&key, space->name, id, request->attempt);
    *bytes = find_row (call->requests->reads, ROW_KIND_QUARANTINE, key.bytes, key.length, &there);
    if (there && (kept->is_blob || buf_length (*bytes) == kept->bytes))
        return kept;
    reply_code (call, TMQ_INTERNAL, "the late success could not be read");
    return NULL;
}

/* Who works on it meanwhile is told that it is over. */
static void adopt_found (call_t *call, found_t *found, const kept_t *kept, const buf_t *bytes)
{
    requests_t *self = call->requests;
    char message[32];
    deeds_task (call, DEED_ADOPT, found);
    journal_input (self->tasks);
    task_t *task = again_task (self, found);
    uint32_t attempt = task->attempt;
    const worker_t *holder =
        task->leased && !task_is_withdrawn (task) ? task->detail->holder : NULL;
    if (holder != NULL)
        WORKER_COUNT (holder, cancelled);
    snprintf (message, sizeof (message), "of attempt %" PRIu32, kept->attempt);
    cause_t cause = cause_of (call, message);
    mark_keep (call, task, MARK_ADOPTED);
    adopt (self->tasks, task, kept, bytes, &cause);
    if (holder != NULL)
        cancel_tell (self, holder, &task->id, attempt, task_error_text (TMQ_TASK_ERROR_SUPERSEDED),
                     TMQ_TASK_ERROR_SUPERSEDED);
}

void on_adopt (call_t *call)
{
    found_t found;
    if (room_refused_at_once (call) ||
        !get_find (call, &call->request->adopt->task_id, RIGHT_ADMIN, &found))
        return;
    if (!mark_is_repeat (call, &found, MARK_ADOPTED)) {
        const buf_t *bytes = NULL;
        const kept_t *kept = find_kept (call, &found, &bytes);
        if (kept == NULL)
            return;
        adopt_found (call, &found, kept, bytes);
    }
    get_answer (call, &found, NULL);
}

/* The requests. */

static void pack_item (bytes_t *out, const ProtobufCBinaryData *id, const done_t *item, size_t room)
{
    bytes_mark_t mark = bytes_open (out, CHANGED_ITEMS);
    bytes_append_blob (out, ITEM_TASK_ID, id->data, id->len);
    bytes_append_uint (out, ITEM_CODE, item->code);
    if (item->text != NULL && strlen (item->text) < room)
        bytes_append_string (out, ITEM_TEXT, item->text);
    bytes_append_uint (out, ITEM_STATUS, item->status);
    bytes_append_uint (out, ITEM_RETRY, item->retry_after_ms);
    bytes_close (out, mark);
}

static void each (call_t *call, size_t count, const ProtobufCBinaryData *ids,
                  done_t (*act) (call_t *call, const ProtobufCBinaryData *id))
{
    requests_t *self = call->requests;
    done_t items[TMQ_CHANGE_IDS_MAX] MEMORY_FILLED_BEFORE_READ;
    assert (count <= TMQ_CHANGE_IDS_MAX);
    for (size_t i = 0; i < count; i++)
        items[i] = act (call, &ids[i]);
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t changed = bytes_open (out, TASKMQ__REPLY__BODY_CHANGED);
    for (size_t i = 0; i < count; i++) {
        size_t needed = out->length + (count - i) * ITEM_BYTES_MAX;
        pack_item (out, &ids[i], &items[i],
                   needed < ENVELOPE_FILL_BYTES ? ENVELOPE_FILL_BYTES - needed : 0);
        free (items[i].text);
    }
    bytes_close (out, changed);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

void on_retry (call_t *call)
{
    if (!room_refused_at_once (call))
        each (call, call->request->retry->n_task_ids, call->request->retry->task_ids, retry_one);
}

void on_resume (call_t *call)
{
    if (!room_refused_at_once (call))
        each (call, call->request->resume->n_task_ids, call->request->resume->task_ids, resume_one);
}

void on_set (call_t *call)
{
    if (!room_refused_at_once (call))
        each (call, call->request->set->n_task_ids, call->request->set->task_ids, set_one);
}

void on_purge (call_t *call)
{
    each (call, call->request->purge->n_task_ids, call->request->purge->task_ids, purge_one);
}
