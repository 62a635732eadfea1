/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/quarantine.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "core/tasks/blobs.h"
#include "core/tasks/index.h"
#include "core/tasks/rows.h"
#include "core/tasks/space.h"
#include "wire.h"

/* Fields of a LATE row's body. */
enum {
    FIELD_AT = 1,
    FIELD_STARTED_AT = 2,
    FIELD_BYTES = 3,
    FIELD_TYPE = 4,
    FIELD_WORKER = 5,
    FIELD_EXPIRES_AT = 6,
    FIELD_BLOB = 7,
    FIELD_OWNER = 8
};

void kept_key (row_key_t *out, const char *ns, const uint8_t *id, uint32_t attempt)
{
    *out = (row_key_t) ROW_KEY_INIT;
    row_key_text (out, ns);
    row_key_bytes (out, id, sizeof (tmq_id_t));
    row_key_number (out, attempt);
}

/* The next one of this task that map_next finds. */
static kept_t *next_of (const tasks_t *self, const space_t *space, const uint8_t *id,
                        size_t *cursor)
{
    if (self->kept.count == 0)
        return NULL;
    uint32_t hash = task_hash (self, space, id);
    kept_t *kept = map_next (&self->kept, hash, cursor);
    while (kept != NULL &&
           (kept->space != space || memcmp (kept->id.bytes, id, sizeof (kept->id)) != 0))
        kept = map_next (&self->kept, hash, cursor);
    return kept;
}

static kept_t *find_key (const tasks_t *self, const space_t *space, const uint8_t *id,
                         uint32_t attempt)
{
    size_t cursor = MAP_START;
    kept_t *kept = next_of (self, space, id, &cursor);
    while (kept != NULL && kept->attempt != attempt)
        kept = next_of (self, space, id, &cursor);
    return kept;
}

kept_t *kept_find (const tasks_t *self, const space_t *space, const uint8_t *id, uint32_t attempt)
{
    kept_t *kept = find_key (self, space, id, attempt);
    bool over = kept != NULL && kept->expires_at <= clocks_expiry_ms (&self->base->clocks);
    return over ? NULL : kept;
}

Taskmq__Blob kept_blob (const kept_t *kept)
{
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    blob.hash = (ProtobufCBinaryData){sizeof (kept->hash_of_blob),
                                      (uint8_t *) (uintptr_t) kept->hash_of_blob};
    blob.bytes = kept->bytes;
    return blob;
}

/* Memory. */

static void forget (tasks_t *self, kept_t *kept)
{
    space_t *space = kept->space;
    if (kept->is_blob) {
        const Taskmq__Blob blob = kept_blob (kept);
        blob_give (self, name_text (kept->owner), &blob);
    }
    list_remove (&kept->node);
    map_remove (&self->kept, kept->hash, kept);
    space->kept_count--;
    space->kept_bytes -= kept->bytes;
    names_drop (&self->base->names, kept->worker);
    names_drop (&self->base->names, kept->type);
    names_drop (&self->base->names, kept->owner);
    free (kept);
    space_release (self, space);
}

/* Rows come in the order of their keys at a start. */
static void remember (tasks_t *self, kept_t *kept)
{
    space_t *space = kept->space;
    node_t *place = &space->kept;
    while (place->prev != &space->kept && LIST_ITEM (place->prev, kept_t, node)->at > kept->at)
        place = place->prev;
    list_insert_before (place, &kept->node);
    kept->hash = task_hash (self, space, kept->id.bytes);
    map_insert (&self->kept, kept->hash, kept);
    space->kept_count++;
    space->kept_bytes += kept->bytes;
}

static void drop (tasks_t *self, kept_t *kept)
{
    row_key_t key;
    kept_key (&key, kept->space->name, kept->id.bytes, kept->attempt);
    rows_put (self, row_make_gone (ROW_KIND_LATE, key.bytes, key.length));
    rows_put (self, row_make_gone (ROW_KIND_QUARANTINE, key.bytes, key.length));
    forget (self, kept);
}

void kept_drop (tasks_t *self, const space_t *space, const tmq_id_t *id)
{
    size_t cursor = MAP_START;
    for (kept_t *kept = next_of (self, space, id->bytes, &cursor); kept != NULL;
         kept = next_of (self, space, id->bytes, &cursor)) {
        drop (self, kept);
        cursor = MAP_START; /* the map has changed */
    }
}

/* Limits. */

/* The one of the earliest attempt. */
static kept_t *first_of (const tasks_t *self, const space_t *space, const uint8_t *id,
                         size_t *count)
{
    size_t cursor = MAP_START;
    kept_t *first = NULL;
    *count = 0;
    for (kept_t *kept = next_of (self, space, id, &cursor); kept != NULL;
         kept = next_of (self, space, id, &cursor)) {
        if (first == NULL || kept->attempt < first->attempt)
            first = kept;
        ++*count;
    }
    return first;
}

bool kept_takes (const tasks_t *self, const space_t *space, const uint8_t *id, uint32_t attempt)
{
    size_t count;
    const kept_t *first = first_of (self, space, id, &count);
    return count < TMQ_KEPT_TASK_MAX || attempt > first->attempt;
}

static void make_room (tasks_t *self, space_t *space, const uint8_t *id, size_t bytes)
{
    const engine_config_t *config = &self->base->config;
    size_t count;
    kept_t *first = first_of (self, space, id, &count);
    if (count >= TMQ_KEPT_TASK_MAX)
        drop (self, first);
    while (space->kept_count > 0 && (space->kept_count >= config->space_kept_max ||
                                     space->kept_bytes + bytes > config->space_kept_bytes_max))
        drop (self, LIST_ITEM (list_pop_front (&space->kept), kept_t, node));
}

/* To come and to be loaded. */

static void put_rows (tasks_t *self, const kept_t *kept, const late_t *late)
{
    row_key_t key;
    bytes_t body = BYTES_INIT;
    kept_key (&key, kept->space->name, kept->id.bytes, kept->attempt);
    bytes_append_uint (&body, FIELD_AT, (uint64_t) kept->at);
    bytes_append_uint (&body, FIELD_STARTED_AT, (uint64_t) kept->started_at);
    bytes_append_uint (&body, FIELD_BYTES, kept->bytes);
    bytes_append_string (&body, FIELD_TYPE, name_text (kept->type));
    bytes_append_string (&body, FIELD_WORKER, name_text (kept->worker));
    bytes_append_uint (&body, FIELD_EXPIRES_AT, (uint64_t) kept->expires_at);
    if (kept->is_blob) {
        bytes_append_blob (&body, FIELD_BLOB, kept->hash_of_blob, sizeof (kept->hash_of_blob));
        bytes_append_string (&body, FIELD_OWNER, name_text (kept->owner));
    }
    row_t known = row_make (ROW_KIND_LATE, key.bytes, key.length, body.data, body.length);
    row_t bytes = row_make (ROW_KIND_QUARANTINE, key.bytes, key.length, late->bytes, late->length);
    known.expires_at = bytes.expires_at = kept->expires_at;
    rows_put (self, bytes);
    if (self->base->config.planted_bug != ENGINE_BUG_LATE_UNWRITTEN)
        rows_put (self, known);
    else
        row_drop (&known);
    bytes_free (&body);
}

static uint32_t bytes_of (const late_t *late)
{
    return late->blob != NULL ? (uint32_t) late->blob->bytes : late->length;
}

static void keep (tasks_t *self, task_t *task, const late_t *late, int64_t at, int64_t until)
{
    const attempt_note_t *attempt = late->attempt;
    kept_t *kept = memory_alloc (sizeof (*kept));
    *kept = (kept_t){.space = task->queue->space,
                     .id = task->id,
                     .attempt = attempt->attempt,
                     .bytes = bytes_of (late),
                     .started_at = attempt->started_at,
                     .at = at,
                     .expires_at = until,
                     .worker = names_keep (&self->base->names, attempt->worker),
                     .type = names_keep (&self->base->names, late->type)};
    if (late->blob != NULL) {
        kept->is_blob = true;
        memcpy (kept->hash_of_blob, late->blob->hash.data, sizeof (kept->hash_of_blob));
        kept->owner = names_share (task->owner);
        blob_take (self, name_text (kept->owner), late->blob);
    }
    remember (self, kept);
    put_rows (self, kept, late);
}

void kept_add (tasks_t *self, task_t *task, const late_t *late)
{
    int64_t at = clocks_wall_ms (&self->base->clocks, task->updated_at);
    make_room (self, task->queue->space, task->id.bytes, bytes_of (late));
    keep (self, task, late, at, at + self->base->config.kept_ms);
    self->base->counts.kept++;
}

bool kept_has_room (const tasks_t *self, const space_t *space, size_t count, uint64_t bytes)
{
    const engine_config_t *config = &self->base->config;
    return space->kept_count + count <= config->space_kept_max &&
           space->kept_bytes + bytes <= config->space_kept_bytes_max;
}

void kept_bring (tasks_t *self, task_t *task, const late_t *late, int64_t at, int64_t until)
{
    int64_t most = at + self->base->config.kept_ms;
    keep (self, task, late, at, until < most ? until : most);
}

static void take_fields (tasks_t *self, kept_t *kept, const row_t *row)
{
    const uint8_t *at = buf_bytes (row->body);
    const uint8_t *end = at + buf_length (row->body);
    char text[TMQ_CONTENT_TYPE_BYTES_MAX + 1];
    wire_field_t field;
    while (at < end && wire_read_field (&field, &at, end)) {
        bool is_text = field.bytes != NULL && field.length < sizeof (text);
        if (is_text) {
            memcpy (text, field.bytes, field.length);
            text[field.length] = '\0';
        }
        switch (field.number) {
        case FIELD_AT: kept->at = (int64_t) field.value; break;
        case FIELD_STARTED_AT: kept->started_at = (int64_t) field.value; break;
        case FIELD_BYTES: kept->bytes = (uint32_t) field.value; break;
        case FIELD_EXPIRES_AT: kept->expires_at = (int64_t) field.value; break;
        case FIELD_BLOB:
            kept->is_blob = field.bytes != NULL && field.length == sizeof (kept->hash_of_blob);
            if (kept->is_blob)
                memcpy (kept->hash_of_blob, field.bytes, field.length);
            break;
        case FIELD_TYPE:
            if (is_text && kept->type == NULL)
                kept->type = names_keep (&self->base->names, text);
            break;
        case FIELD_WORKER:
            if (is_text && kept->worker == NULL)
                kept->worker = names_keep (&self->base->names, text);
            break;
        case FIELD_OWNER:
            if (is_text && kept->owner == NULL)
                kept->owner = names_keep (&self->base->names, text);
            break;
        default: break;
        }
    }
}

void kept_load (tasks_t *self, const row_t *row)
{
    enum { TAIL_BYTES = sizeof (tmq_id_t) + sizeof (uint64_t) };
    const uint8_t *key = buf_bytes (row->key);
    const char *ns = (const char *) key;
    size_t ns_bytes = strnlen (ns, buf_length (row->key)) + 1;
    if (buf_length (row->key) != ns_bytes + TAIL_BYTES)
        return;
    const uint8_t *id = key + ns_bytes;
    uint32_t attempt = 0;
    for (size_t i = sizeof (tmq_id_t); i < TAIL_BYTES; i++)
        attempt = attempt << 8 | id[i];
    space_t *space = space_make (self, ns);
    kept_t *kept = find_key (self, space, id, attempt);
    if (row->gone && kept != NULL)
        forget (self, kept);
    if (row->gone || kept != NULL)
        return;
    kept = memory_zero (1, sizeof (*kept));
    kept->space = space;
    memcpy (kept->id.bytes, id, sizeof (kept->id));
    kept->attempt = attempt;
    take_fields (self, kept, row);
    remember (self, kept);
}

void kept_clear (tasks_t *self)
{
    size_t cursor = 0;
    for (kept_t *kept = map_each (&self->kept, &cursor); kept != NULL;
         kept = map_each (&self->kept, &cursor)) {
        names_drop (&self->base->names, kept->worker);
        names_drop (&self->base->names, kept->type);
        names_drop (&self->base->names, kept->owner);
        free (kept);
    }
    map_free (&self->kept);
}
