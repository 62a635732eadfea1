/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a message needs of the tables, and where a task is found: in memory, among the removals that
 * the tables do not show yet, or in the answers of this drain's look-up. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"

/* Keys. */

uint32_t task_hash (const engine_t *self, const space_t *space, const uint8_t *id)
{
    return secrets_hash_id (&self->secrets, space->no, id);
}

uint32_t dedup_hash (const engine_t *self, const space_t *space, const char *owner, const char *key)
{
    uint8_t bytes[sizeof (space->no) + TMQ_OWNER_BYTES_MAX + 1 + TMQ_DEDUP_KEY_BYTES_MAX];
    size_t owner_length = strnlen (owner, TMQ_OWNER_BYTES_MAX);
    size_t key_length = strnlen (key, TMQ_DEDUP_KEY_BYTES_MAX);
    uint8_t *at = bytes;
    memcpy (at, &space->no, sizeof (space->no));
    at += sizeof (space->no);
    memcpy (at, owner, owner_length);
    at += owner_length;
    *at++ = 0;
    memcpy (at, key, key_length);
    at += key_length;
    return secrets_hash (&self->secrets, bytes, (size_t) (at - bytes));
}

/* Finding. */

task_t *lookup_task (const engine_t *self, const space_t *space, const uint8_t *id)
{
    uint32_t hash = task_hash (self, space, id);
    size_t cursor = MAP_START;
    for (task_t *task = map_next (&self->tasks, hash, &cursor); task != NULL;
         task = map_next (&self->tasks, hash, &cursor))
        if (memcmp (task->id.bytes, id, sizeof (tmq_id_t)) == 0 && task->queue->space == space)
            return task;
    return NULL;
}

static task_t *dedup_task (const engine_t *self, const space_t *space, const char *owner,
                           const char *key)
{
    uint32_t hash = dedup_hash (self, space, owner, key);
    size_t cursor = MAP_START;
    for (task_t *task = map_next (&self->dedup, hash, &cursor); task != NULL;
         task = map_next (&self->dedup, hash, &cursor))
        if (task->queue->space == space && strcmp (name_text (task->owner), owner) == 0 &&
            strcmp (task_dedup_key (task), key) == 0)
            return task;
    return NULL;
}

static const lookup_t *loaded_id (const engine_t *self, const space_t *space, const uint8_t *id,
                                  lookup_kind_t kind, uint32_t attempt)
{
    if (self->loaded_by_key.count == 0)
        return NULL;
    uint32_t hash = task_hash (self, space, id);
    size_t cursor = MAP_START;
    const lookup_t *best = NULL;
    for (const lookup_t *key = map_next (&self->loaded_by_key, hash, &cursor); key != NULL;
         key = map_next (&self->loaded_by_key, hash, &cursor)) {
        bool same = key->kind == kind && key->attempt == attempt &&
                    memcmp (key->id.bytes, id, sizeof (tmq_id_t)) == 0 &&
                    strcmp (key->ns, space->name) == 0;
        if (same && (best == NULL || key->bodies))
            best = key;
    }
    return best;
}

static const lookup_t *loaded_dedup (const engine_t *self, const space_t *space, const char *owner,
                                     const char *dedup_key)
{
    uint32_t hash = dedup_hash (self, space, owner, dedup_key);
    size_t cursor = MAP_START;
    for (const lookup_t *key = map_next (&self->loaded_by_key, hash, &cursor); key != NULL;
         key = map_next (&self->loaded_by_key, hash, &cursor))
        if (key->kind == LOOKUP_DEDUP && strcmp (key->ns, space->name) == 0 &&
            strcmp (key->owner, owner) == 0 && strcmp (key->dedup_key, dedup_key) == 0)
            return key;
    return NULL;
}

/* Past its time to live a terminal task is answered like one that was removed (S16). */
static bool is_over (const engine_t *self, bool terminal, bool leased, int64_t expires_at)
{
    return terminal && !leased && expires_at != 0 && expires_at <= engine_expiry_ms (self);
}

bool record_is_expired (const engine_t *self, const record_t *record)
{
    return is_over (self, record->status >= TMQ_STATUS_COMPLETED, record->leased,
                    record->expires_at);
}

static found_t found_record (const engine_t *self, const record_t *record)
{
    if (record_is_expired (self, record))
        return (found_t){.gone = TMQ_EXPIRED};
    return (found_t){.record = record};
}

found_t lookup_id (const engine_t *self, const space_t *space, const uint8_t *id)
{
    task_t *task = lookup_task (self, space, id);
    if (task != NULL && is_over (self, task_is_terminal (task), task->leased, task->expires_at))
        return (found_t){.gone = TMQ_EXPIRED};
    if (task != NULL)
        return (found_t){.task = task};
    const removal_note_t *removal = removal_note_find (self, space, id);
    if (removal != NULL)
        return (found_t){.gone = removal->code};
    const lookup_t *key = loaded_id (self, space, id, LOOKUP_ID, 0);
    if (key == NULL)
        return (found_t){.gone = TMQ_NOT_FOUND};
    if (key->record != NULL)
        return found_record (self, key->record);
    return (found_t){.gone = key->tombstone != TMQ_OK ? key->tombstone : TMQ_NOT_FOUND};
}

buf_t *lookup_payload (const engine_t *self, const space_t *space, const uint8_t *id)
{
    const lookup_t *key = loaded_id (self, space, id, LOOKUP_ID, 0);
    return key == NULL || key->record == NULL ? NULL : key->record->payload;
}

found_t lookup_dedup (const engine_t *self, const space_t *space, const char *owner,
                      const char *key)
{
    task_t *task = dedup_task (self, space, owner, key);
    if (task != NULL)
        return (found_t){.task = task};
    const lookup_t *loaded = loaded_dedup (self, space, owner, key);
    if (loaded == NULL || loaded->record == NULL ||
        removal_note_find (self, space, loaded->record->id.bytes) != NULL)
        return (found_t){.gone = TMQ_NOT_FOUND};
    return (found_t){.record = loaded->record};
}

bool lookup_attempt (const engine_t *self, const space_t *space, const uint8_t *id, int64_t number,
                     uint32_t attempt, attempt_note_t *out)
{
    const attempt_note_t *note = attempt_note_find (self, number, attempt);
    if (note != NULL) {
        *out = *note;
        return true;
    }
    const lookup_t *key = loaded_id (self, space, id, LOOKUP_ATTEMPT, attempt);
    if (key == NULL || !key->attempt_found)
        return false;
    *out = (attempt_note_t){.number = number, .attempt = attempt, .how = key->attempt_row.how};
    memcpy (out->secret, key->attempt_row.secret, sizeof (out->secret));
    memcpy (out->request_id, key->attempt_row.request_id, sizeof (out->request_id));
    return true;
}

/* Wanting. */

static lookup_t *want (key_list_t *keys, lookup_kind_t kind, const space_t *space)
{
    keys->keys = memory_grow (keys->keys, &keys->capacity, keys->count, sizeof (*keys->keys));
    lookup_t *key = &keys->keys[keys->count++];
    *key = (lookup_t){.kind = kind, .ns = space->name};
    return key;
}

static void want_id (const engine_t *self, const space_t *space, const uint8_t *id, bool bodies,
                     key_list_t *keys)
{
    tmq_id_t copy;
    memcpy (copy.bytes, id, sizeof (copy));
    if (lookup_task (self, space, id) != NULL || removal_note_find (self, space, id) != NULL ||
        absent_surely (&self->absent, task_hash (self, space, id), &copy))
        return;
    lookup_t *key = want (keys, LOOKUP_ID, space);
    key->id = copy;
    key->bodies = bodies;
}

static void want_payload (const engine_t *self, const space_t *space, const uint8_t *id,
                          key_list_t *keys)
{
    const task_t *task = lookup_task (self, space, id);
    if (task == NULL || task->payload != NULL || task->payload_bytes == 0) {
        want_id (self, space, id, true, keys);
        return;
    }
    lookup_t *key = want (keys, LOOKUP_ID, space);
    key->id = task->id;
    key->bodies = true;
}

static void want_submit (const engine_t *self, const link_t *link, const Taskmq__Submit *submit,
                         const verdict_t *items, key_list_t *keys)
{
    if (self->stopping)
        return;
    const char *owner = name_text (link->identity);
    for (size_t i = 0; i < submit->n_tasks; i++) {
        if (items != NULL && items[i].code != TMQ_OK)
            continue;
        const Taskmq__TaskSpec *spec = submit->tasks[i];
        want_id (self, link->space, spec->task_id.data, false, keys);
        if (spec->dedup_key[0] == '\0' ||
            dedup_task (self, link->space, owner, spec->dedup_key) != NULL)
            continue;
        lookup_t *key = want (keys, LOOKUP_DEDUP, link->space);
        key->owner = owner;
        key->dedup_key = spec->dedup_key;
    }
}

/* A report about a lease that memory does not hold may be a repeat: its attempt says so. */
static void want_lease (const engine_t *self, const space_t *space, const Taskmq__Lease *lease,
                        key_list_t *keys)
{
    const task_t *task = lookup_task (self, space, lease->task_id.data);
    if (task == NULL)
        want_id (self, space, lease->task_id.data, false, keys);
    bool current = task != NULL && task->leased && task->attempt == lease->attempt;
    if (current || (task != NULL && attempt_note_find (self, task->number, lease->attempt) != NULL))
        return;
    lookup_t *key = want (keys, LOOKUP_ATTEMPT, space);
    memcpy (key->id.bytes, lease->task_id.data, sizeof (key->id));
    key->attempt = lease->attempt;
}

static void want_ids (const engine_t *self, const space_t *space, size_t count,
                      const ProtobufCBinaryData *ids, key_list_t *keys)
{
    for (size_t i = 0; i < count; i++)
        want_id (self, space, ids[i].data, false, keys);
}

#define OP(NAME) TASKMQ__REQUEST__OP_##NAME
static void want_request (const engine_t *self, const link_t *link, const Taskmq__Request *request,
                          const verdict_t *items, key_list_t *keys)
{
    const space_t *space = link->space;
    const Taskmq__Subscribe *subscribe = NULL;
    switch (request->op_case) {
    case OP (SUBMIT): want_submit (self, link, request->submit, items, keys); break;
    case OP (GET): want_id (self, space, request->get->task_id.data, true, keys); break;
    case OP (RESULT): want_id (self, space, request->result->task_id.data, true, keys); break;
    case OP (PAYLOAD): want_payload (self, space, request->payload->task_id.data, keys); break;
    case OP (CANCEL): want_id (self, space, request->cancel->task_id.data, false, keys); break;
    case OP (TASK_EVENTS):
        want_id (self, space, request->task_events->task_id.data, false, keys);
        break;
    case OP (WAIT):
        want_ids (self, space, request->wait->n_task_ids, request->wait->task_ids, keys);
        break;
    case OP (SUBSCRIBE):
        subscribe = request->subscribe;
        if (subscribe->snapshot && subscribe->filter != NULL)
            want_ids (self, space, subscribe->filter->n_task_ids, subscribe->filter->task_ids,
                      keys);
        break;
    case OP (PUSH): want_lease (self, space, request->push->lease, keys); break;
    case OP (CANCEL_ACK): want_lease (self, space, request->cancel_ack->lease, keys); break;
    case OP (COMPLETE): want_lease (self, space, request->complete->lease, keys); break;
    case OP (FAIL): want_lease (self, space, request->fail->lease, keys); break;
    case OP (RELEASE): want_lease (self, space, request->release->lease, keys); break;
    default: break;
    }
}
#undef OP

void engine_want (engine_t *self, const message_t *message, key_list_t *keys)
{
    const link_t *link = link_find (self, message->peer);
    if (link == NULL || !link_token_is (link, &message->envelope->token))
        return;
    size_t before = keys->count;
    for (size_t i = 0; i < message->envelope->n_requests; i++) {
        const request_verdict_t *verdict =
            message->verdicts == NULL ? NULL : &message->verdicts->requests[i];
        if (verdict == NULL || verdict->verdict.code == TMQ_OK)
            want_request (self, link, message->envelope->requests[i],
                          verdict == NULL ? NULL : verdict->items, keys);
    }
    self->counts.lookups += keys->count - before;
}

void engine_want_payloads (engine_t *self, key_list_t *keys)
{
    task_t *cold[FETCH_TASKS_MAX];
    for (node_t *node = self->fetch.next; node != &self->fetch; node = node->next) {
        queue_t *queue = LIST_ITEM (node, queue_t, fetch);
        size_t count = queue_peek_cold (queue, cold, FETCH_TASKS_MAX);
        self->counts.lookups += count;
        for (size_t i = 0; i < count; i++) {
            lookup_t *key = want (keys, LOOKUP_ID, queue->space);
            key->id = cold[i]->id;
            key->bodies = true;
            cold[i]->payload_wanted = true;
        }
    }
}

/* Answers. */

void lookup_clear (engine_t *self)
{
    for (size_t i = 0; i < self->loaded_count; i++)
        record_free (self->loaded[i].record);
    free (self->loaded);
    self->loaded = NULL;
    self->loaded_count = 0;
    if (self->loaded_by_key.count > 0)
        map_free (&self->loaded_by_key);
}

static uint32_t key_hash (const engine_t *self, const lookup_t *key)
{
    const space_t *space = space_find (self, key->ns);
    assert (space != NULL);
    if (key->kind == LOOKUP_DEDUP)
        return dedup_hash (self, space, key->owner, key->dedup_key);
    return task_hash (self, space, key->id.bytes);
}

/* A payload that a queued task waits for goes to the task. */
static void give_payload (engine_t *self, const lookup_t *key)
{
    task_t *task = lookup_task (self, space_find (self, key->ns), key->id.bytes);
    if (task == NULL || !task->payload_wanted)
        return;
    task->payload_wanted = false;
    if (task->payload != NULL)
        return;
    assert (key->record != NULL && buf_length (key->record->payload) == task->payload_bytes);
    task->payload = buf_keep (key->record->payload);
    task->payload_cached = true;
    self->cached_bytes += task->payload_bytes;
}

void engine_loaded (engine_t *self, key_list_t *keys)
{
    lookup_clear (self);
    self->loaded = keys->keys;
    self->loaded_count = keys->count;
    *keys = (key_list_t){0};
    for (size_t i = 0; i < self->loaded_count; i++) {
        lookup_t *key = &self->loaded[i];
        map_insert (&self->loaded_by_key, key_hash (self, key), key);
        if (key->kind == LOOKUP_ID && key->bodies)
            give_payload (self, key);
    }
    for (node_t *node = list_pop_front (&self->fetch); node != NULL;
         node = list_pop_front (&self->fetch))
        dispatch_queue_changed (self, LIST_ITEM (node, queue_t, fetch));
}
