/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "view.h"

static void write_time (json_writer_t *writer, const char *key, int64_t ms)
{
    json_write_key (writer, key);
    if (ms)
        json_write_time (writer, ms);
    else
        json_write_null (writer);
}

static void write_error (json_writer_t *writer, const tmq_attempt_info_t *attempt)
{
    json_write_key (writer, "error");
    if (!attempt->error_code && !*attempt->error_message) {
        json_write_null (writer);
        return;
    }
    json_write_object_begin (writer);
    json_write_key (writer, "code");
    json_write_int (writer, attempt->error_code);
    json_write_key (writer, "message");
    json_write_text (writer, attempt->error_message);
    json_write_object_end (writer);
}

static void write_kept (json_writer_t *writer, const tmq_attempt_info_t *attempt,
                        view_beside_t *beside, const void *context)
{
    json_write_key (writer, "kept");
    if (!attempt->kept) {
        json_write_null (writer);
        return;
    }
    json_write_object_begin (writer);
    json_write_key (writer, "bytes");
    json_write_int (writer, (int64_t) attempt->kept_bytes);
    json_write_key (writer, "content_type");
    json_write_text (writer, attempt->kept_type);
    write_time (writer, "at", attempt->kept_at);
    write_time (writer, "until", attempt->kept_until);
    if (beside)
        beside (writer, attempt, context);
    json_write_object_end (writer);
}

void view_write_attempt (json_writer_t *writer, const tmq_attempt_info_t *attempt,
                         view_beside_t *beside, const void *context)
{
    json_write_object_begin (writer);
    json_write_key (writer, "attempt");
    json_write_int (writer, attempt->attempt);
    json_write_key (writer, "worker");
    json_write_text (writer, attempt->worker);
    write_time (writer, "started_at", attempt->started_at);
    write_time (writer, "ended_at", attempt->ended_at);
    json_write_key (writer, "end");
    if (attempt->how)
        json_write_text (writer, tmq_event_kind_text (attempt->how));
    else
        json_write_null (writer);
    write_error (writer, attempt);
    write_kept (writer, attempt, beside, context);
    json_write_object_end (writer);
}
