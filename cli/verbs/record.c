/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/record.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/patience.h"
#include "screen/artifacts.h"
#include "screen/items.h"
#include "screen/members.h"
#include "verbs/spec.h"
#include "verbs/verbs.h"

enum {
    EVENTS_PAGE = 1000,
    INLINE_BYTES_MAX = 2 * 1024 * 1024, /* of a task's artifacts in its line */
    LISTS_MAX = 8 /* of artifacts: a worker may replace one between the list and its bytes */
};

static void order_events (record_t *self)
{
    size_t at = 0;
    self->events = must_alloc (self->events_count * sizeof (void *));
    for (size_t i = self->event_pages_count; i-- > 0;) {
        for (size_t j = 0; j < self->event_pages[i]->count; j++)
            self->events[at++] = self->event_pages[i]->events[j];
    }
}

/* The pages come newest first. */
static int load_events (record_t *self, const app_t *app, const tmq_id_t *id, tmq_error_t *error)
{
    uint64_t before_seq = 0;
    do {
        tmq_event_list_t *page;
        patience_t patience = {0};
        int code;
        do
            code = tmq_events (&page, app->client, id, before_seq, EVENTS_PAGE, app->timeout_ms,
                               error);
        while (patience_waits (&patience, error, app->timeout_ms));
        if (code != TMQ_OK)
            return code;
        self->event_pages =
            must_grow (self->event_pages, self->event_pages_count + 1, sizeof (void *));
        self->event_pages[self->event_pages_count++] = page;
        self->events_count += page->count;
        before_seq = page->before_seq;
    } while (before_seq);
    order_events (self);
    return TMQ_OK;
}

typedef int get_function_t (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id,
                            uint32_t timeout_ms, tmq_error_t *error);

static int load_task (tmq_task_t **out, const app_t *app, get_function_t *get, const tmq_id_t *id,
                      tmq_error_t *error)
{
    patience_t patience = {0};
    int code;
    do
        code = get (out, app->client, id, app->timeout_ms, error);
    while (patience_waits (&patience, error, app->timeout_ms));
    return code;
}

static int load_artifacts (record_t *self, const app_t *app, const tmq_id_t *id, tmq_error_t *error)
{
    patience_t patience = {0};
    int code;
    do
        code = tmq_artifacts (&self->artifacts, app->client, id, app->timeout_ms, error);
    while (patience_waits (&patience, error, app->timeout_ms));
    return code;
}

/* What fits a line: all small ones, and of the others as many as there is room for. */
static void choose_inline (const tmq_artifact_list_t *list, bool *fits)
{
    uint64_t room = INLINE_BYTES_MAX;
    for (size_t i = 0; i < list->count; i++) {
        fits[i] = list->artifacts[i].has_hash && list->artifacts[i].bytes < TMQ_BLOB_BYTES_MIN;
        room -= fits[i] ? list->artifacts[i].bytes : 0;
    }
    for (size_t i = 0; i < list->count; i++) {
        const uint64_t bytes = list->artifacts[i].bytes;
        if (fits[i] || !list->artifacts[i].has_hash || bytes > TMQ_FRAME_BYTES_MAX || bytes > room)
            continue;
        fits[i] = true;
        room -= bytes;
    }
}

static void drop_artifacts (record_t *self)
{
    if (self->artifact_bodies)
        shown_bodies_free (self->artifact_bodies, self->artifacts->count);
    tmq_artifact_list_free (self->artifacts);
    self->artifact_bodies = NULL;
    self->artifacts = NULL;
    self->bodies_missing = 0;
}

static int load_bodies (record_t *self, const app_t *app, const tmq_id_t *id, tmq_error_t *error)
{
    bool fits[TMQ_ARTIFACTS_MAX] = {false};
    int code = TMQ_OK;
    const tmq_artifact_list_t *list = self->artifacts;
    if (list->count > TMQ_ARTIFACTS_MAX)
        return error->code = TMQ_PROTOCOL;
    choose_inline (list, fits);
    self->artifact_bodies = must_alloc ((list->count + 1) * sizeof *self->artifact_bodies);
    for (size_t i = 0; i < list->count; i++)
        self->artifact_bodies[i] = (shown_body_t){BYTES_INIT, false};
    for (size_t i = 0; code == TMQ_OK && i < list->count; i++) {
        if (fits[i])
            code = shown_body_artifact (&self->artifact_bodies[i], app, id, &list->artifacts[i],
                                        error);
        self->bodies_missing += code == TMQ_NO_BLOB;
        if (code == TMQ_NO_BLOB)
            code = TMQ_OK;
    }
    return code;
}

/* The list, and the bytes that belong to it. */
static int load_with_bodies (record_t *self, const app_t *app, const tmq_id_t *id,
                             tmq_error_t *error)
{
    int code = TMQ_CONFLICT;
    for (size_t i = 0; code == TMQ_CONFLICT && i < LISTS_MAX; i++) {
        drop_artifacts (self);
        code = load_artifacts (self, app, id, error);
        if (code == TMQ_OK)
            code = load_bodies (self, app, id, error);
    }
    return code;
}

int record_load (record_t *out, app_t *app, const tmq_id_t *id, unsigned wants, tmq_error_t *error)
{
    *out = (record_t){.wants = wants};
    int code = load_task (&out->task, app, tmq_get, id, error);
    if (code == TMQ_OK && wants & RECORD_PAYLOAD)
        code = load_task (&out->payload, app, tmq_payload, id, error);
    if (code == TMQ_OK && wants & RECORD_EVENTS)
        code = load_events (out, app, id, error);
    if (code == TMQ_OK && out->task->has_parts)
        code = parts_count (&out->parts, app, id, error);
    if (code == TMQ_OK && wants & RECORD_ATTEMPTS)
        code = attempts_load (&out->attempts, app, id, error);
    if (code == TMQ_OK && out->task->turns > 0 && wants & (RECORD_TURNS | RECORD_FILES))
        code = turns_load (&out->turns, app, id, wants & RECORD_TURNS, error);
    if (code == TMQ_OK && out->task->artifacts > 0 && wants & RECORD_ARTIFACTS)
        code = wants & RECORD_BODIES ? load_with_bodies (out, app, id, error)
                                     : load_artifacts (out, app, id, error);
    if (code == TMQ_OK && wants & RECORD_ATTEMPTS && wants & RECORD_BODIES)
        code = attempts_load_kept (&out->attempts, app, id, error);
    return code;
}

void record_clear (record_t *self)
{
    attempts_clear (&self->attempts);
    turns_clear (&self->turns);
    for (size_t i = 0; i < self->event_pages_count; i++)
        tmq_event_list_free (self->event_pages[i]);
    free (self->event_pages);
    free (self->events);
    drop_artifacts (self);
    tmq_task_free (self->payload);
    tmq_task_free (self->task);
}

static void write_parts (json_writer_t *writer, const parts_t *parts)
{
    json_write_key (writer, "parts");
    if (!parts->total) {
        json_write_null (writer);
        return;
    }
    json_write_object_begin (writer);
    json_write_key (writer, "total");
    json_write_uint (writer, parts->total);
    for (unsigned i = TMQ_STATUS_QUEUED; i <= TMQ_STATUS_CANCELLED; i++) {
        json_write_key (writer, tmq_status_text ((tmq_status_t) i));
        json_write_uint (writer, parts->of[i]);
    }
    json_write_object_end (writer);
}

static void write_events (json_writer_t *writer, const record_t *self)
{
    json_write_key (writer, "events");
    json_write_array_begin (writer);
    for (size_t i = 0; i < self->events_count; i++)
        write_event (writer, self->events[i]);
    json_write_array_end (writer);
}

/* A body of JSON is shown without its white space. Where that is not what it was, this is. */
static void write_exact_text (json_writer_t *writer, const char *key, const char *type,
                              const void *body, size_t length)
{
    bytes_t shown = BYTES_INIT;
    json_writer_t other = {&shown, false};
    json_write_key (writer, key);
    json_write_body (&other, type, length ? body : "", length);
    const bool is_json = length && json_text_is_valid (body, length);
    if (is_json && shown.length > 0 && shown.data[0] != '"' &&
        (shown.length != length || memcmp (shown.data, body, length) != 0))
        json_write_string (writer, body, length);
    else
        json_write_null (writer);
    bytes_free (&shown);
}

static void write_dependencies (json_writer_t *writer, const tmq_task_t *task)
{
    json_write_key (writer, "after");
    json_write_array_begin (writer);
    for (size_t i = 0; i < task->after_count; i++) {
        char id[37];
        tmq_id_format (&task->after[i].id, id);
        json_write_object_begin (writer);
        member_text (writer, "task_id", id);
        member_text (writer, "policy", after_name (task->after[i].policy));
        member_text (writer, "status",
                     task->after[i].status ? tmq_status_text (task->after[i].status) : NULL);
        json_write_object_end (writer);
    }
    json_write_array_end (writer);
}

static void write_exact (json_writer_t *writer, const tmq_task_t *task, const tmq_task_t *payload)
{
    member_uint (writer, "lease_ms", task->lease_ms);
    member_uint (writer, "backoff_ms", task->backoff_ms);
    member_text (writer, "dedup_key", task->dedup_key);
    json_write_key (writer, "adopted_from");
    if (task->adopted_from)
        json_write_uint (writer, task->adopted_from);
    else
        json_write_null (writer);
    write_dependencies (writer, task);
    write_exact_text (writer, "result_text", task->result_type, task->body, task->body_bytes);
    if (payload)
        write_exact_text (writer, "payload_text", payload->content_type, payload->body,
                          payload->body_bytes);
}

/* Of a body that is larger than a frame, as in tasks.jsonl. */
static void write_hash (json_writer_t *writer, const char *key, const tmq_blob_t *blob)
{
    char hex[2 * TMQ_BLOB_HASH_BYTES + 1];
    sodium_bin2hex (hex, sizeof hex, blob->hash, TMQ_BLOB_HASH_BYTES);
    json_write_key (writer, key);
    json_write_text (writer, hex);
}

void record_write (json_writer_t *writer, app_t *app, const record_t *self)
{
    const tmq_task_t *payload = self->payload;
    json_write_object_begin (writer);
    write_task_members (writer, self->task, true);
    write_parts (writer, &self->parts);
    json_write_key (writer, "questions");
    write_questions (writer, app, self->task);
    if (payload) {
        json_write_key (writer, "payload");
        if (payload->payload_blob.bytes > 0) {
            json_write_null (writer);
            write_hash (writer, "payload_hash", &payload->payload_blob);
        } else {
            json_write_body (writer, payload->content_type,
                             payload->body_bytes ? payload->body : "", payload->body_bytes);
        }
    }
    if (self->task->result_blob.bytes > 0)
        write_hash (writer, "result_hash", &self->task->result_blob);
    if (self->wants & RECORD_EXACT)
        write_exact (writer, self->task, payload);
    if (self->wants & RECORD_ATTEMPTS) {
        json_write_key (writer, "attempts");
        attempts_write (writer, &self->attempts);
    }
    if (self->wants & RECORD_TURNS) {
        json_write_key (writer, "turns");
        turns_write (writer, &self->turns);
    }
    if (self->wants & RECORD_FILES) {
        json_write_key (writer, "files");
        turns_write_files (writer, &self->turns);
    }
    if (self->artifacts) {
        json_write_key (writer, "artifacts");
        artifacts_write (writer, self->artifacts, self->artifact_bodies);
    }
    if (self->wants & RECORD_EVENTS)
        write_events (writer, self);
    json_write_object_end (writer);
}
