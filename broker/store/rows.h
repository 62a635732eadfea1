/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The row of table task: its columns in the order in which every statement of this room names
 * them, and how a record becomes a row and a row a record. */
#ifndef TASKMQ_STORE_ROWS_H
#define TASKMQ_STORE_ROWS_H

#include "store/names.h"

/* Without and with the inline bodies, which stand last so that reading the others stops early. */
#define ROW_COLUMNS_BARE                                                                           \
    "number, ns, id, owner, queue, session, status, created_at, expires_at, leased, last_event,"   \
    " priority, dead, updated_at, started_at, finished_at, not_before, ttl_ms,"                    \
    " poll_interval_ms, lease_ms, backoff_ms, max_attempts, attempt, failures, returns, version,"  \
    " lease_started, secret, worker_id, request_id, digest, worker, method, content_type,"         \
    " dedup_key, status_message, progress_done, progress_total, progress_unit,"                    \
    " progress_message, labels, outcome, error_code, error_message, error_data, result_type,"      \
    " meta, payload_bytes, result_bytes"
#define ROW_COLUMNS ROW_COLUMNS_BARE ", payload, result"

/* Positions in both lists; a parameter of an INSERT is its column's position plus one. */
typedef enum row_column {
    ROW_NUMBER,
    ROW_NS,
    ROW_ID,
    ROW_OWNER,
    ROW_QUEUE,
    ROW_SESSION,
    ROW_STATUS,
    ROW_CREATED_AT,
    ROW_EXPIRES_AT,
    ROW_LEASED,
    ROW_LAST_EVENT,
    ROW_PRIORITY,
    ROW_DEAD,
    ROW_UPDATED_AT,
    ROW_STARTED_AT,
    ROW_FINISHED_AT,
    ROW_NOT_BEFORE,
    ROW_TTL_MS,
    ROW_POLL_INTERVAL_MS,
    ROW_LEASE_MS,
    ROW_BACKOFF_MS,
    ROW_MAX_ATTEMPTS,
    ROW_ATTEMPT,
    ROW_FAILURES,
    ROW_RETURNS,
    ROW_VERSION,
    ROW_LEASE_STARTED,
    ROW_SECRET,
    ROW_WORKER_ID,
    ROW_REQUEST_ID,
    ROW_DIGEST,
    ROW_WORKER,
    ROW_METHOD,
    ROW_CONTENT_TYPE,
    ROW_DEDUP_KEY,
    ROW_STATUS_MESSAGE,
    ROW_PROGRESS_DONE,
    ROW_PROGRESS_TOTAL,
    ROW_PROGRESS_UNIT,
    ROW_PROGRESS_MESSAGE,
    ROW_LABELS,
    ROW_OUTCOME,
    ROW_ERROR_CODE,
    ROW_ERROR_MESSAGE,
    ROW_ERROR_DATA,
    ROW_RESULT_TYPE,
    ROW_META,
    ROW_PAYLOAD_BYTES,
    ROW_RESULT_BYTES,
    ROW_PAYLOAD,
    ROW_RESULT
} row_column_t;

enum {
    ROW_BODY_INLINE_MAX = 1024, /* larger bodies stand in table body */
    ROW_BODY_PAYLOAD = 1,
    ROW_BODY_RESULT = 2,
    ROW_STATUS_TERMINAL_MIN = TMQ_STATUS_COMPLETED /* as the schema's partial indexes say it */
};

/* Key of an event block (A31). A namespace has room for 4e12 events. */
#define EVENT_KEY(ns, seq) ((ns) * (INT64_C (1) << 42) + (int64_t) (seq))

/* The numbers of a record's names. */
typedef struct row_names {
    int64_t ns;
    int64_t owner;
    int64_t queue;
    int64_t session;
} row_names_t;

/* Binds all columns of ROW_COLUMNS. The record and the bodies must live until the step. */
void row_bind (sqlite3_stmt *statement, const record_t *record, const row_names_t *names,
               const buf_t *payload, const buf_t *result);

/* What else a row may need to become a record: labels and bodies of their own tables. */
enum { ROW_STATEMENTS = 2 };
extern const char *const ROW_TEXTS[ROW_STATEMENTS];
typedef struct row_reader {
    names_t *names;
    sqlite3_stmt **statements; /* prepared from ROW_TEXTS */
} row_reader_t;

/* Makes a record of the current row of a statement over ROW_COLUMNS (bodies)
 * or ROW_COLUMNS_BARE. */
store_code_t row_read (const row_reader_t *reader, sqlite3_stmt *row, bool bodies, record_t **out,
                       store_error_t *error);

#endif
