/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Every field of a record, named once. Whoever adds one adds a row; test_record_fields.c fails
 * without it, and says where on its way the new field is lost. */
#ifndef TASKMQ_TESTS_RECORD_FIELDS_H
#define TASKMQ_TESTS_RECORD_FIELDS_H

#include "core/data/record.h"

/* X (FORM, field, wire): the field of record_t. wire: its place in taskmq.Task, NULL where clients
 * do not see it. The forms: NUMBER and FLAG, TEXT, RAW bytes of fixed length, BODY, and PACKED,
 * which the extra is. Labels have no row; they are looked at with the others. */
#define RECORD_FIELD_MAP(X)                                                                        \
    X (NUMBER, number, NULL)                                                                       \
    X (RAW, id, "task_id")                                                                         \
    X (TEXT, ns, "namespace")                                                                      \
    X (TEXT, owner, "owner")                                                                       \
    X (TEXT, queue, "queue")                                                                       \
    X (TEXT, session, "session")                                                                   \
    X (TEXT, method, "method")                                                                     \
    X (TEXT, content_type, "content_type")                                                         \
    X (TEXT, dedup_key, NULL)                                                                      \
    X (TEXT, meta, "meta")                                                                         \
    X (NUMBER, status, "status")                                                                   \
    X (TEXT, status_message, "status_message")                                                     \
    X (NUMBER, priority, "priority")                                                               \
    X (FLAG, dead, "dead")                                                                         \
    X (FLAG, relabelled, NULL)                                                                     \
    X (NUMBER, created_at, "created_at")                                                           \
    X (NUMBER, updated_at, "updated_at")                                                           \
    X (NUMBER, started_at, "started_at")                                                           \
    X (NUMBER, finished_at, "finished_at")                                                         \
    X (NUMBER, expires_at, "expires_at")                                                           \
    X (NUMBER, not_before, "not_before")                                                           \
    X (NUMBER, ttl_ms, "ttl_ms")                                                                   \
    X (NUMBER, poll_interval_ms, "poll_interval_ms")                                               \
    X (NUMBER, lease_ms, NULL)                                                                     \
    X (NUMBER, backoff_ms, NULL)                                                                   \
    X (NUMBER, max_attempts, "max_attempts")                                                       \
    X (NUMBER, attempt, "attempt")                                                                 \
    X (NUMBER, failures, NULL)                                                                     \
    X (NUMBER, returns, NULL)                                                                      \
    X (NUMBER, version, "version")                                                                 \
    X (NUMBER, last_seq, "seq")                                                                    \
    X (FLAG, leased, NULL)                                                                         \
    X (FLAG, lease_started, NULL)                                                                  \
    X (RAW, secret, NULL)                                                                          \
    X (TEXT, holder, NULL)                                                                         \
    X (RAW, worker_id, NULL)                                                                       \
    X (TEXT, worker, "worker")                                                                     \
    X (RAW, request_id, NULL)                                                                      \
    X (RAW, progress_done, "progress.done")                                                        \
    X (RAW, progress_total, "progress.total")                                                      \
    X (TEXT, progress_unit, "progress.unit")                                                       \
    X (TEXT, progress_message, "progress.message")                                                 \
    X (RAW, digest, NULL)                                                                          \
    X (NUMBER, payload_bytes, "payload_bytes")                                                     \
    X (BODY, payload, NULL)                                                                        \
    X (NUMBER, outcome, "outcome")                                                                 \
    X (NUMBER, result_bytes, "result_bytes")                                                       \
    X (BODY, result, NULL)                                                                         \
    X (TEXT, result_type, "result_type")                                                           \
    X (NUMBER, error_code, "error.code")                                                           \
    X (TEXT, error_message, "error.message")                                                       \
    X (TEXT, error_data, "error.data")                                                             \
    X (PACKED, extra, "extra")

typedef enum record_form {
    RECORD_NUMBER,
    RECORD_FLAG,
    RECORD_TEXT,
    RECORD_RAW,
    RECORD_BODY,
    RECORD_PACKED
} record_form_t;

typedef struct record_field {
    const char *name;
    record_form_t form;
    size_t offset;
    size_t size;
    const char *wire;
} record_field_t;

extern const record_field_t record_fields[];
extern const size_t record_fields_count;

/* A NUMBER or a FLAG. */
int64_t record_field_number (const record_t *record, const record_field_t *field);
const char *record_field_text (const record_t *record, const record_field_t *field);
const void *record_field_raw (const record_t *record, const record_field_t *field);

/* Fails unless the records agree in every field, labels included, and names the first in which they
 * do not. bodies: also in payload and result. where: on which way they came, for the text. */
void assert_record_kept (const record_t *wanted, const record_t *found, bool bodies,
                         const char *where);

#endif
