/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* submit: each item is accepted, found existing, or refused with its own code (A46, S13). */
#include <assert.h>
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
#include "core/requests/naming.h"
#include "core/requests/room.h"
#include "core/requests/sessions.h"
#include "core/requests/submit.h"
#include "core/tasks/blobs.h"
#include "core/tasks/change.h"
#include "core/tasks/dependents.h"
#include "core/tasks/extras.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/makers.h"
#include "core/tasks/session.h"
#include "core/tasks/settings.h"
#include "core/tasks/space.h"
#include "core/wire/pack.h"
#include "ids.h"
#include "types.h"

/* Numbers of the fields of SubmittedItem in taskmq.proto. */
enum {
    SUBMITTED_ITEMS = 1,
    ITEM_CODE = 1,
    ITEM_TEXT = 2,
    ITEM_TASK_ID = 3,
    ITEM_EXISTING = 4,
    ITEM_RETRY = 5,
    ITEM_STATUS = 6,
    ITEM_BYTES_MAX = 40 /* of one without its text */
};

/* Of the time in an id before the broker's clock. */
enum { ID_AHEAD_MS_MAX = 24 * 60 * 60 * 1000 };

/* The answer to one item. */
typedef struct answer {
    tmq_code_t code;
    const char *text;
    tmq_id_t id;
    bool existing;
    tmq_status_t status;
    int64_t gone_at; /* EXPIRED, PURGED: since when, as found_t has it */
    bool removed;
    size_t limit;            /* LIMIT: as many as there may be of what the text names */
    char *full;              /* the whole text, in place of text; to be freed */
    uint32_t retry_after_ms; /* LIMIT: 0 is the usual time */
} answer_t;

static uint32_t or_default (uint32_t value, uint32_t otherwise)
{
    return value == 0 ? otherwise : value;
}

static void texts_of (const Taskmq__TaskSpec *spec, task_texts_t *texts)
{
    *texts = (task_texts_t){spec->method, spec->content_type, spec->dedup_key, spec->meta, {{0}}};
    for (size_t i = 0; i < spec->n_labels; i++)
        texts->labels[i] = (label_t){spec->labels[i]->key, spec->labels[i]->value};
}

static void take_texts (tasks_t *self, task_t *task, const Taskmq__TaskSpec *spec)
{
    task_texts_t texts;
    texts_of (spec, &texts);
    task_set_texts (task, &texts, spec->n_labels);
    self->texts_bytes += task_texts_length (task);
}

static size_t texts_bytes (const Taskmq__TaskSpec *spec)
{
    task_texts_t texts;
    texts_of (spec, &texts);
    return task_texts_bytes (&texts, spec->n_labels) + extra_bytes_of (spec->extra);
}

static void take_extra (tasks_t *self, task_t *task, const Taskmq__TaskSpec *spec)
{
    buf_t *packed = extra_pack (spec->extra);
    extras_take (self, task, packed);
    buf_drop (packed);
    const settings_t *settings = task->queue->settings;
    if (settings == NULL || settings->max_runtime_ms == 0 || extras_of (task)->max_runtime_ms != 0)
        return;
    extras_edit (task)->max_runtime_ms = settings->max_runtime_ms;
    extras_changed (self, task);
}

/* What the task does not say, its queue does. */
static int64_t ttl_of (const requests_t *self, const settings_t *settings,
                       const Taskmq__TaskSpec *spec)
{
    if (spec->ttl_never)
        return 0;
    if (spec->ttl_ms != 0)
        return (int64_t) spec->ttl_ms;
    if (settings->ttl_never)
        return 0;
    return settings->ttl_ms != 0 ? (int64_t) settings->ttl_ms : self->base->config.ttl_ms;
}

static int64_t max_of (int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void take_times (const requests_t *self, task_t *task, const Taskmq__TaskSpec *spec)
{
    static const settings_t NOTHING;
    const settings_t *settings = task->queue->settings;
    if (settings == NULL)
        settings = &NOTHING;
    task->created_at = self->base->clocks.wall_ms;
    task->ttl_ms = ttl_of (self, settings, spec);
    if (spec->delay_ms > 0)
        task->not_before = task->created_at + (int64_t) spec->delay_ms;
    else if ((int64_t) spec->not_before > task->created_at)
        task->not_before = (int64_t) spec->not_before;
    task->by_wall = spec->not_before > 0;
    if (task->ttl_ms > 0)
        task->expires_at = max_of (task->created_at, task->not_before) + task->ttl_ms;
    task->poll_interval_ms = or_default (spec->poll_interval_ms, TMQ_POLL_INTERVAL_MS_DEFAULT);
    task->lease_ms = or_default (spec->lease_ms,
                                 or_default ((uint32_t) settings->lease_ms, TMQ_LEASE_MS_DEFAULT));
    task->backoff_ms = or_default (
        spec->backoff_ms, or_default ((uint32_t) settings->backoff_ms, TMQ_BACKOFF_MS_DEFAULT));
    task->max_attempts =
        or_default (spec->max_attempts,
                    or_default ((uint32_t) settings->max_attempts, TMQ_MAX_ATTEMPTS_DEFAULT));
    task->priority =
        (uint8_t) (spec->priority_plus_1 == 0 ? TMQ_PRIORITY_DEFAULT : spec->priority_plus_1 - 1);
}

static task_t *accept_task (requests_t *self, space_t *space, name_t *identity,
                            const Taskmq__TaskSpec *spec, const uint8_t *payload,
                            const uint8_t *digest)
{
    task_t *task = slab_take (&self->tasks->slab);
    task->number = ++self->tasks->last_number;
    memcpy (task->id.bytes, spec->task_id.data, sizeof (task->id));
    task->queue = queue_make (self->tasks, space, spec->queue);
    task->queue->tasks++;
    const char *owner = name_text (identity);
    task->owner = names_share (identity);
    session_take (self->tasks, task, space, spec->session, owner);
    take_texts (self->tasks, task, spec);
    take_extra (self->tasks, task, spec);
    needs_begin (self->tasks, task);
    take_times (self, task, spec);
    memcpy (task->digest, digest, sizeof (task->digest));
    task->payload_bytes = spec->payload_bytes;
    if (spec->payload_bytes > 0)
        task->payload = buf_new (payload, spec->payload_bytes);
    map_insert (&self->tasks->by_id, task_hash (self->tasks, space, task->id.bytes), task);
    if (task->has_dedup_key)
        map_insert (&self->tasks->by_key,
                    task_key_hash (self->tasks, space, owner, spec->dedup_key), task);
    absent_accepted (&self->tasks->absent, &task->id);
    cause_t cause = {.actor = owner};
    change_apply (self->tasks, task, INPUT_SUBMIT, &cause);
    change_place (self->tasks, task);
    space_add_task (task);
    account_add_task (self->tasks, task);
    session_add_task (self->tasks, task);
    if (extras_of (task)->payload_blob != NULL)
        blob_take (self->tasks, owner, extras_of (task)->payload_blob);
    dependents_judge (self->tasks, task);
    self->tasks->open.bytes += task->payload_bytes + buf_length (extra_packed (task->extra));
    self->base->counts.submitted++;
    return task;
}

/* The few fields by which an existing task is judged, wherever it is. */
typedef struct known {
    tmq_id_t id;
    const char *owner;
    const uint8_t *digest;
    tmq_status_t status;
} known_t;

static known_t known_of (const found_t *found)
{
    if (found->task != NULL)
        return (known_t){found->task->id, name_text (found->task->owner), found->task->digest,
                         found->task->status};
    return (known_t){found->record->id, found->record->owner, found->record->digest,
                     found->record->status};
}

static bool is_there (const found_t *found)
{
    return found->task != NULL || found->record != NULL;
}

/* Who holds a random id knows it already, and is told no more. */
static const answer_t IN_USE = {.code = TMQ_CONFLICT, .text = "the id or key is in use"};

static answer_t existing (call_t *call, const found_t *found, const uint8_t *digest)
{
    requests_t *self = call->requests;
    known_t known = known_of (found);
    if (!link_is (call->link, known.owner))
        return IN_USE;
    if (memcmp (known.digest, digest, RECORD_DIGEST_BYTES) != 0 &&
        self->base->config.planted_bug != ENGINE_BUG_NO_DIGEST_CHECK)
        return (answer_t){.code = TMQ_CONFLICT, .id = known.id};
    self->base->counts.existing++;
    return (answer_t){.id = known.id, .existing = true, .status = known.status};
}

/* A key lives as long as its task: past its time to live the task makes room (S12, S13). */
static bool key_is_free (requests_t *self, space_t *space, const found_t *found)
{
    if (found->record == NULL ||
        !record_is_over (found->record, clocks_expiry_ms (&self->base->clocks)))
        return false;
    change_remove (self->tasks, space, found->record, INPUT_REMOVE, NULL);
    return true;
}

static bool same_task (const found_t *a, const found_t *b)
{
    known_t x = known_of (a);
    known_t y = known_of (b);
    return memcmp (&x.id, &y.id, sizeof (x.id)) == 0;
}

static const Taskmq__Blob *blob_of (const Taskmq__TaskSpec *spec)
{
    return spec->extra == NULL ? NULL : spec->extra->payload_blob;
}

static size_t payload_of (const Taskmq__TaskSpec *spec)
{
    return spec->payload_bytes + (blob_of (spec) == NULL ? 0 : (size_t) blob_of (spec)->bytes);
}

static bool queue_has_room (const requests_t *self, const space_t *space,
                            const Taskmq__TaskSpec *spec, answer_t *refusal)
{
    size_t limit = 0;
    const char *what = room_of_queue (self, space, spec->queue, payload_of (spec), &limit);
    if (what != NULL)
        *refusal = (answer_t){.code = TMQ_LIMIT, .text = what, .limit = limit};
    return what == NULL;
}

static bool needs_have_room (const requests_t *self, const space_t *space,
                             const Taskmq__TaskSpec *spec, answer_t *refusal)
{
    if (spec->extra == NULL || spec->extra->n_needs == 0 ||
        needs_fit (self->tasks, queue_find (self->tasks, space, spec->queue), spec->extra))
        return true;
    *refusal = (answer_t){.code = TMQ_LIMIT,
                          .text = "sets of requirements in the queue",
                          .limit = TMQ_NEEDS_SETS_MAX};
    return false;
}

static bool blob_is_refused (call_t *call, const Taskmq__TaskSpec *spec, answer_t *refusal)
{
    naming_refusal_t why;
    if (!naming_refuses (call, name_text (call->link->identity), blob_of (spec), "payload_blob",
                         &why))
        return false;
    *refusal = (answer_t){
        .code = why.code, .full = memory_text (why.text), .retry_after_ms = why.retry_after_ms};
    return true;
}

static bool never_starts (const requests_t *self, const Taskmq__TaskSpec *spec)
{
    const uint64_t now_ms = (uint64_t) self->base->clocks.wall_ms;
    const uint64_t start_by = spec->extra == NULL ? 0 : spec->extra->start_by;
    const uint64_t from = spec->delay_ms > 0 ? now_ms + spec->delay_ms : spec->not_before;
    return start_by != 0 && (start_by <= now_ms || start_by <= from);
}

/* An id from the far future would make the look-up of every later one necessary (absent.h). link:
 * NULL for a schedule. */
static bool may_accept (const requests_t *self, const space_t *space, const link_t *link,
                        const Taskmq__TaskSpec *spec, answer_t *refusal)
{
    tmq_id_t id;
    memcpy (id.bytes, spec->task_id.data, sizeof (id));
    room_refusal_t room;
    char why[SESSION_REFUSAL_SIZE];
    tmq_code_t code = session_refuses (self, space, link, spec->session, why);
    if (id_time_ms (&id) > self->base->clocks.wall_ms + ID_AHEAD_MS_MAX)
        *refusal = (answer_t){.code = TMQ_INVALID,
                              .text = "task_id: its time is more than a day ahead of the broker's"};
    else if (never_starts (self, spec))
        *refusal = (answer_t){.code = TMQ_INVALID,
                              .text = "start_by: the time has passed, or the task may start only "
                                      "after it"};
    else if (room_refuses (self, space, payload_of (spec), texts_bytes (spec), &room))
        *refusal = (answer_t){.code = TMQ_LIMIT, .full = memory_text (room.text)};
    else if (code != TMQ_OK)
        *refusal = (answer_t){.code = code, .full = memory_text (why)};
    else
        return queue_has_room (self, space, spec, refusal) &&
               needs_have_room (self, space, spec, refusal);
    return false;
}

static answer_t refused_by_quota (const quota_refusal_t *refusal)
{
    return (answer_t){.code = TMQ_LIMIT,
                      .full = memory_text (refusal->text),
                      .retry_after_ms = refusal->retry_after_ms};
}

static answer_t submit_one (call_t *call, const Taskmq__TaskSpec *spec, const uint8_t *payload)
{
    requests_t *self = call->requests;
    space_t *space = call->link->space;
    uint8_t digest[CODEC_DIGEST_BYTES];
    if (!access_queue (&call->link->access, spec->queue, RIGHT_SUBMIT))
        return (answer_t){.code = TMQ_DENIED, .text = "no right to submit to this queue"};
    codec_submit_digest (digest, spec, payload, spec->payload_bytes);
    found_t by_id = find_unjudged (self->reads, space, spec->task_id.data);
    if (!is_there (&by_id) && by_id.gone != TMQ_NOT_FOUND && !found_is_seen (call->link, &by_id))
        return IN_USE;
    if (!is_there (&by_id) && by_id.gone != TMQ_NOT_FOUND)
        return (answer_t){.code = by_id.gone, .gone_at = by_id.gone_at, .removed = by_id.removed};
    found_t by_key = {.gone = TMQ_NOT_FOUND};
    if (spec->dedup_key[0] != '\0')
        by_key = find_dedup (self->reads, space, name_text (call->link->identity), spec->dedup_key);
    if (!is_there (&by_key) && by_key.gone != TMQ_NOT_FOUND)
        return (answer_t){.code = by_key.gone};
    if (is_there (&by_key) && is_there (&by_id) && !same_task (&by_key, &by_id))
        return (answer_t){.code = TMQ_CONFLICT, .text = "the id and the key name different tasks"};
    if (is_there (&by_id))
        return existing (call, &by_id, digest);
    if (is_there (&by_key) && !key_is_free (self, space, &by_key))
        return existing (call, &by_key, digest);
    after_refusal_t unknown = after_judge (call, spec);
    if (unknown.code == TMQ_OK)
        unknown = parent_judge (call, spec);
    if (unknown.code != TMQ_OK)
        return (answer_t){.code = unknown.code, .full = unknown.text};
    answer_t refusal;
    if (!may_accept (self, space, call->link, spec, &refusal) ||
        blob_is_refused (call, spec, &refusal))
        return refusal;
    quota_refusal_t over = quota_submit (self, call->link, payload_of (spec));
    if (over.refused)
        return refused_by_quota (&over);
    makers_count (self->tasks, space, call->link->identity);
    journal_input (self->tasks);
    account_add_pending (self->tasks, call->link->account);
    task_t *task = accept_task (self, space, call->link->identity, spec, payload, digest);
    parent_mark (self, space, spec, name_text (call->link->identity));
    return (answer_t){.id = task->id, .status = task->status};
}

task_t *submit_scheduled (requests_t *self, const schedule_t *schedule, const tmq_id_t *id,
                          char *why, size_t why_size)
{
    space_t *space = schedule->space;
    Taskmq__TaskSpec spec = *schedule->stored->task;
    const ProtobufCBinaryData *payload = &schedule->stored->payload;
    uint8_t digest[CODEC_DIGEST_BYTES];
    answer_t refusal = {.code = TMQ_LIMIT};
    spec.task_id = (ProtobufCBinaryData){sizeof (*id), (uint8_t *) id->bytes};
    if (submits_are_refused (self)) {
        snprintf (why, why_size, "the broker is overloaded, or its disk is full");
        return NULL;
    }
    if (!may_accept (self, space, NULL, &spec, &refusal)) {
        char text[LIMIT_TEXT_SIZE] = "";
        if (refusal.full == NULL && refusal.limit > 0)
            limit_text (text, refusal.text, refusal.limit);
        snprintf (why, why_size, "%s",
                  refusal.full != NULL ? refusal.full
                  : text[0] != '\0'    ? text
                                       : code_text ((int) refusal.code));
        free (refusal.full);
        return NULL;
    }
    codec_submit_digest (digest, &spec, payload->data, payload->len);
    return accept_task (self, space, schedule->owner, &spec, payload->data, digest);
}

/* room: bytes that are left for the text, which is for people only. */
static void pack_answer (bytes_t *out, const answer_t *answer, const ProtobufCBinaryData *asked,
                         size_t room)
{
    static const tmq_id_t NO_ID;
    bool named = memcmp (&answer->id, &NO_ID, sizeof (NO_ID)) != 0;
    bytes_mark_t mark = bytes_open (out, SUBMITTED_ITEMS);
    bytes_append_uint (out, ITEM_CODE, answer->code);
    const char *text = answer->text;
    char full[LIMIT_TEXT_SIZE + GONE_TEXT_SIZE];
    if (answer->full != NULL) {
        text = answer->full;
    } else if (answer->limit > 0) {
        limit_text (full, text, answer->limit);
        text = full;
    } else if (answer->code != TMQ_OK && text == NULL) {
        const found_t gone = {
            .gone = answer->code, .gone_at = answer->gone_at, .removed = answer->removed};
        gone_text (full, &gone);
        text = full;
    }
    if (text != NULL && strlen (text) < room)
        bytes_append_string (out, ITEM_TEXT, text);
    bytes_append_blob (out, ITEM_TASK_ID, named ? answer->id.bytes : asked->data,
                       named ? sizeof (answer->id) : asked->len);
    bytes_append_uint (out, ITEM_EXISTING, answer->existing);
    uint32_t retry_ms = answer->retry_after_ms > 0 ? answer->retry_after_ms : LIMIT_RETRY_MS;
    bytes_append_uint (out, ITEM_RETRY, answer->code == TMQ_LIMIT ? retry_ms : 0);
    bytes_append_uint (out, ITEM_STATUS, answer->status);
    bytes_close (out, mark);
}

/* The first task makes a namespace, as far as others are concerned. */
static bool refuse_space (call_t *call)
{
    enum { FORGET_RETRY_MS = 60000 }; /* one may be forgotten meanwhile */
    requests_t *self = call->requests;
    const engine_config_t *config = &self->base->config;
    char text[128];
    if (event_log_is_used (&call->link->space->log))
        return false;
    if (self->history->logs_used >= config->spaces_max) {
        snprintf (text, sizeof (text), "the broker has %zu namespaces, as many as it may have",
                  config->spaces_max);
        reply_code_at_once (call, TMQ_LIMIT, text, FORGET_RETRY_MS);
        return true;
    }
    int64_t wait_ms = makers_wait_ms (self->tasks, call->link->identity);
    if (wait_ms == 0)
        return false;
    snprintf (text, sizeof (text),
              "you made %zu namespaces; another one may come every %" PRIi64 " s",
              config->spaces_at_once, config->space_ms / 1000);
    reply_code_at_once (call, TMQ_LIMIT, text,
                        wait_ms < UINT32_MAX ? (uint32_t) wait_ms : UINT32_MAX);
    return true;
}

/* Once a submit was not looked up, no other of this round is taken: what is not known to be new
 * must not be accepted. */
bool submits_are_refused (const requests_t *self)
{
    if (self->base->full || self->base->away || journal_is_overloaded (self->tasks))
        self->base->submits_refused = true;
    return self->base->submits_refused;
}

bool new_is_refused (call_t *call)
{
    return room_refused_at_once (call) || refuse_space (call);
}

void on_submit (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Submit *submit = call->request->submit;
    if (new_is_refused (call))
        return;
    answer_t answers[TMQ_SUBMIT_ITEMS_MAX] MEMORY_FILLED_BEFORE_READ;
    assert (submit->n_tasks <= TMQ_SUBMIT_ITEMS_MAX);
    const uint8_t *body = call->body;
    for (size_t i = 0; i < submit->n_tasks; i++) {
        const verdict_t *verdict = call->items == NULL ? NULL : &call->items[i];
        if (verdict != NULL && verdict->code != TMQ_OK)
            answers[i] = (answer_t){.code = verdict->code, .text = verdict->text};
        else
            answers[i] = submit_one (call, submit->tasks[i], body);
        body += validate_payload_bytes (submit->tasks[i]);
    }
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t submitted = bytes_open (out, TASKMQ__REPLY__BODY_SUBMITTED);
    for (size_t i = 0; i < submit->n_tasks; i++) {
        size_t needed = out->length + (submit->n_tasks - i) * ITEM_BYTES_MAX;
        pack_answer (out, &answers[i], &submit->tasks[i]->task_id,
                     needed < ENVELOPE_FILL_BYTES ? ENVELOPE_FILL_BYTES - needed : 0);
        free (answers[i].full);
    }
    bytes_close (out, submitted);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}
