/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A record's fields under the names that people read. */
#include "export/record_view.h"

#include <string.h>

static void view_bodies (task_view_t *out, const record_t *record)
{
    out->payload_bytes = record->payload_bytes;
    if (record->payload != NULL || record->payload_bytes == 0)
        out->payload = buf_bytes (record->payload);
    out->outcome = record->outcome;
    out->result_bytes = record->result_bytes;
    if (record->result != NULL || record->result_bytes == 0)
        out->result = buf_bytes (record->result);
    out->result_type = record->result_type;
}

static void view_times (task_view_t *out, const record_t *record)
{
    out->created_at = record->created_at;
    out->updated_at = record->updated_at;
    out->started_at = record->started_at;
    out->finished_at = record->finished_at;
    out->expires_at = record->expires_at;
    out->ttl_ms = record->ttl_ms;
    out->not_before = record->not_before;
    out->poll_interval_ms = record->poll_interval_ms;
}

void record_view (task_view_t *out, record_view_room_t *room, const record_t *record,
                  int64_t wall_ms)
{
    memset (out, 0, sizeof (*out));
    out->id = record->id;
    out->ns = record->ns;
    out->queue = record->queue;
    out->session = record->session;
    out->owner = record->owner;
    out->status = record->status;
    out->phase = record_phase (record, wall_ms);
    out->status_message = record->status_message;
    out->priority = record->priority;
    out->method = record->method;
    out->content_type = record->content_type;
    view_times (out, record);
    out->attempt = record->attempt;
    out->max_attempts = record->max_attempts;
    out->failures = record->failures;
    out->worker = record->worker;
    out->progress = (progress_view_t){record->progress_done != 0 || record->progress_total != 0 ||
                                          record->progress_unit[0] != '\0' ||
                                          record->progress_message[0] != '\0',
                                      record->progress_done, record->progress_total,
                                      record->progress_unit, record->progress_message};
    out->labels = room->labels;
    out->labels_count = record->labels_count;
    for (size_t i = 0; i < record->labels_count; i++)
        room->labels[i] = (label_view_t){record->labels[i].key, record->labels[i].value};
    out->meta = record->meta;
    view_bodies (out, record);
    out->error_code = record->error_code;
    out->error_message = record->error_message;
    out->error_data = record->error_data;
    out->dead = record->dead;
    out->version = record->version;
    out->seq = record->last_seq;
    room->extra = record->extra == NULL ? NULL : extra_new (record->extra);
    if (room->extra != NULL)
        task_view_extra (out, &room->of_extra, room->extra->fields);
}

void record_view_clear (record_view_room_t *room)
{
    extra_free (room->extra);
}
