/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Events, tasks and leases in the wire's form, field by field: they are packed several times
 * for every task, and generic packing is what it would cost most. */
#include "core/wire/pack.h"

#include <string.h>

#include "core/data/extra.h"

/* Numbers of fields in taskmq.proto. The unit tests unpack with the generated code. */
enum {
    EVENT_LIST_EVENTS = 1,
    EVENT_SEQ = 1,
    EVENT_AT = 2,
    EVENT_KIND = 3,
    EVENT_TASK_ID = 4,
    EVENT_QUEUE = 5,
    EVENT_SESSION = 6,
    EVENT_STATUS = 7,
    EVENT_PREVIOUS = 8,
    EVENT_ATTEMPT = 9,
    EVENT_WORKER = 10,
    EVENT_ACTOR = 11,
    EVENT_MESSAGE = 12,
    EVENT_LABELS = 14,
    EVENT_PREVIOUS_SEQ = 15,
    EVENT_OWNER = 16,
    EVENT_SUBJECT = 17,
    EVENT_NAME = 18,
    EVENT_NUMBER = 19,
    EVENT_TRACE = 20
};

enum { LABEL_KEY = 1, LABEL_VALUE = 2 };

enum { PROGRESS_DONE = 1, PROGRESS_TOTAL = 2, PROGRESS_UNIT = 3, PROGRESS_MESSAGE = 4 };

enum { ERROR_CODE = 1, ERROR_MESSAGE = 2, ERROR_DATA = 3, ERROR_DATA_BYTES = 4, ERROR_BODY = 5 };

enum {
    TASK_ID = 1,
    TASK_NAMESPACE = 2,
    TASK_QUEUE = 3,
    TASK_SESSION = 4,
    TASK_OWNER = 5,
    TASK_STATUS = 6,
    TASK_PHASE = 7,
    TASK_STATUS_MESSAGE = 8,
    TASK_PRIORITY = 9,
    TASK_METHOD = 10,
    TASK_CONTENT_TYPE = 11,
    TASK_CREATED_AT = 12,
    TASK_UPDATED_AT = 13,
    TASK_STARTED_AT = 14,
    TASK_FINISHED_AT = 15,
    TASK_EXPIRES_AT = 16,
    TASK_TTL_MS = 17,
    TASK_POLL_INTERVAL_MS = 18,
    TASK_ATTEMPT = 19,
    TASK_MAX_ATTEMPTS = 20,
    TASK_WORKER = 21,
    TASK_PROGRESS = 22,
    TASK_LABELS = 23,
    TASK_META = 24,
    TASK_PAYLOAD_BYTES = 25,
    TASK_RESULT_BYTES = 26,
    TASK_RESULT_TYPE = 27,
    TASK_OUTCOME = 28,
    TASK_ERROR = 29,
    TASK_DEAD = 30,
    TASK_VERSION = 31,
    TASK_NOT_BEFORE = 32,
    TASK_SEQ = 33,
    TASK_BODY = 34,
    TASK_FAILURES = 35,
    TASK_EXTRA = 36,
    TASK_LEASE_MS = 37,
    TASK_BACKOFF_MS = 38,
    TASK_DEDUP_KEY = 39
};

enum {
    LEASE_STATE_TASK_ID = 1,
    LEASE_STATE_ATTEMPT = 2,
    LEASE_STATE_CODE = 3,
    LEASE_STATE_MS = 4,
    LEASE_STATE_ANSWERS = 5
};

void pack_labels (bytes_t *out, uint32_t field, const label_t *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bytes_mark_t mark = bytes_open (out, field);
        bytes_append_string (out, LABEL_KEY, labels[i].key);
        bytes_append_string (out, LABEL_VALUE, labels[i].value);
        bytes_close (out, mark);
    }
}

void pack_event (bytes_t *out, const event_t *event)
{
    bytes_mark_t mark = bytes_open (out, EVENT_LIST_EVENTS);
    bytes_append_uint (out, EVENT_SEQ, event->seq);
    bytes_append_uint (out, EVENT_AT, (uint64_t) event->at);
    bytes_append_uint (out, EVENT_KIND, event->kind);
    if (event->id != NULL)
        bytes_append_blob (out, EVENT_TASK_ID, event->id->bytes, sizeof (event->id->bytes));
    bytes_append_string (out, EVENT_QUEUE, event->queue);
    bytes_append_string (out, EVENT_SESSION, event->session);
    bytes_append_uint (out, EVENT_STATUS, event->status);
    bytes_append_uint (out, EVENT_PREVIOUS, event->previous);
    bytes_append_uint (out, EVENT_ATTEMPT, event->attempt);
    bytes_append_string (out, EVENT_WORKER, event->worker);
    bytes_append_string (out, EVENT_ACTOR, event->actor);
    bytes_append_string (out, EVENT_MESSAGE, event->message);
    pack_labels (out, EVENT_LABELS, event->labels, event->labels_count);
    bytes_append_uint (out, EVENT_PREVIOUS_SEQ, event->previous_seq);
    bytes_append_string (out, EVENT_OWNER, event->owner);
    bytes_append_string (out, EVENT_TRACE, event->trace);
    if (event->subject != TMQ_SUBJECT_NONE || event->number > 0 ||
        event->kind == TMQ_EVENT_ARTIFACT) {
        bytes_append_uint (out, EVENT_SUBJECT, event->subject);
        bytes_append_string (out, EVENT_NAME, event->name);
        bytes_append_uint (out, EVENT_NUMBER, event->number);
    }
    bytes_close (out, mark);
}

static void pack_progress (bytes_t *out, uint32_t field, const record_t *record)
{
    if (record->progress_done == 0 && record->progress_total == 0 &&
        record->progress_message[0] == '\0')
        return;
    bytes_mark_t mark = bytes_open (out, field);
    bytes_append_double (out, PROGRESS_DONE, record->progress_done);
    bytes_append_double (out, PROGRESS_TOTAL, record->progress_total);
    bytes_append_string (out, PROGRESS_UNIT, record->progress_unit);
    bytes_append_string (out, PROGRESS_MESSAGE, record->progress_message);
    bytes_close (out, mark);
}

uint32_t pack_long_data (const record_t *record)
{
    size_t bytes = strlen (record->error_data);
    return bytes > TMQ_ERROR_DATA_INLINE_MAX ? (uint32_t) bytes : 0;
}

static void pack_outcome (bytes_t *out, const record_t *record, bool bare, uint32_t error_body)
{
    bytes_append_uint (out, TASK_RESULT_BYTES, record->result_bytes);
    bytes_append_string (out, TASK_RESULT_TYPE, record->result_type);
    bytes_append_uint (out, TASK_OUTCOME, record->outcome);
    if (record->error_code == 0 && record->error_message[0] == '\0' &&
        record->outcome <= TMQ_OUTCOME_RESULT)
        return;
    bytes_mark_t mark = bytes_open (out, TASK_ERROR);
    bytes_append_sint (out, ERROR_CODE, record->error_code);
    bytes_append_string (out, ERROR_MESSAGE, record->error_message);
    uint32_t long_data = bare ? 0 : pack_long_data (record);
    if (!bare && long_data == 0)
        bytes_append_string (out, ERROR_DATA, record->error_data);
    bytes_append_uint (out, ERROR_DATA_BYTES, long_data);
    bytes_append_uint (out, ERROR_BODY, error_body);
    bytes_close (out, mark);
}

void pack_task (bytes_t *out, uint32_t field, const record_t *record, tmq_phase_t phase, bool bare,
                pack_bodies_t bodies)
{
    bytes_mark_t mark = bytes_open (out, field);
    bytes_append_blob (out, TASK_ID, record->id.bytes, sizeof (record->id.bytes));
    bytes_append_string (out, TASK_NAMESPACE, record->ns);
    bytes_append_string (out, TASK_QUEUE, record->queue);
    bytes_append_string (out, TASK_SESSION, record->session);
    bytes_append_string (out, TASK_OWNER, record->owner);
    bytes_append_uint (out, TASK_STATUS, record->status);
    bytes_append_uint (out, TASK_PHASE, phase);
    bytes_append_string (out, TASK_STATUS_MESSAGE, record->status_message);
    bytes_append_uint (out, TASK_PRIORITY, record->priority);
    bytes_append_string (out, TASK_METHOD, record->method);
    bytes_append_string (out, TASK_CONTENT_TYPE, record->content_type);
    bytes_append_uint (out, TASK_CREATED_AT, (uint64_t) record->created_at);
    bytes_append_uint (out, TASK_UPDATED_AT, (uint64_t) record->updated_at);
    bytes_append_uint (out, TASK_STARTED_AT, (uint64_t) record->started_at);
    bytes_append_uint (out, TASK_FINISHED_AT, (uint64_t) record->finished_at);
    bytes_append_uint (out, TASK_EXPIRES_AT, (uint64_t) record->expires_at);
    bytes_append_uint (out, TASK_TTL_MS, (uint64_t) record->ttl_ms);
    bytes_append_uint (out, TASK_POLL_INTERVAL_MS, record->poll_interval_ms);
    bytes_append_uint (out, TASK_ATTEMPT, record->attempt);
    bytes_append_uint (out, TASK_MAX_ATTEMPTS, record->max_attempts);
    bytes_append_string (out, TASK_WORKER, record->worker);
    pack_progress (out, TASK_PROGRESS, record);
    pack_labels (out, TASK_LABELS, record->labels, record->labels_count);
    if (!bare)
        bytes_append_string (out, TASK_META, record->meta);
    bytes_append_uint (out, TASK_PAYLOAD_BYTES, record->payload_bytes);
    pack_outcome (out, record, bare, bodies.error);
    bytes_append_uint (out, TASK_DEAD, record->dead);
    bytes_append_uint (out, TASK_VERSION, record->version);
    bytes_append_uint (out, TASK_NOT_BEFORE, (uint64_t) record->not_before);
    bytes_append_uint (out, TASK_SEQ, record->last_seq);
    bytes_append_uint (out, TASK_BODY, bodies.body);
    bytes_append_uint (out, TASK_FAILURES, record->failures);
    buf_t *extra = bare ? extra_without_hashes (record->extra) : buf_keep (record->extra);
    bytes_append_blob (out, TASK_EXTRA, buf_bytes (extra), extra_sent_bytes (extra));
    buf_drop (extra);
    bytes_append_uint (out, TASK_LEASE_MS, record->lease_ms);
    bytes_append_uint (out, TASK_BACKOFF_MS, record->backoff_ms);
    if (!bare)
        bytes_append_string (out, TASK_DEDUP_KEY, record->dedup_key);
    bytes_close (out, mark);
}

void pack_lease_state (bytes_t *out, uint32_t field, const uint8_t *id, uint32_t attempt,
                       tmq_code_t code, uint32_t lease_ms, uint32_t answers)
{
    bytes_mark_t mark = bytes_open (out, field);
    bytes_append_blob (out, LEASE_STATE_TASK_ID, id, sizeof (tmq_id_t));
    bytes_append_uint (out, LEASE_STATE_ATTEMPT, attempt);
    bytes_append_uint (out, LEASE_STATE_CODE, code);
    bytes_append_uint (out, LEASE_STATE_MS, lease_ms);
    bytes_append_uint (out, LEASE_STATE_ANSWERS, answers);
    bytes_close (out, mark);
}
