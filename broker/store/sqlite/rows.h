/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The row of table task: its columns in the order in which every statement of this room names
 * them, and how a record becomes a row and a row a record. */
#ifndef TASKMQ_STORE_ROWS_H
#define TASKMQ_STORE_ROWS_H

#include "arena.h"
#include "bytes.h"
#include "store/sqlite/names.h"

/* Places of labels in table label; what turns tell stands behind them. */
#define LABELS_END "16"
_Static_assert(TMQ_LABELS_MAX == 16, "LABELS_END");

/* What is looked for, ordered by, or needed for the other tables stands in columns; everything else
 * is packed into one (see journal_codec.h), because each column costs at every write. Without and
 * with the inline bodies, which stand last so that reading the others stops early. */
#define ROW_COLUMNS_BARE                                                                           \
    "number, ns, id, owner, queue, session, status, created_at, expires_at, leased, last_event,"   \
    " dedup_key, labels, payload_bytes, result_bytes, rest, sum, parent"
#define ROW_COLUMNS ROW_COLUMNS_BARE ", payload_sum, result_sum, payload, result"

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
    ROW_DEDUP_KEY,
    ROW_LABELS,
    ROW_PAYLOAD_BYTES,
    ROW_RESULT_BYTES,
    ROW_REST,
    ROW_SUM,
    ROW_PARENT,
    ROW_PAYLOAD_SUM,
    ROW_RESULT_SUM,
    ROW_PAYLOAD,
    ROW_RESULT
} row_column_t;

enum {
    ROW_UNPACKED_MAX = 1024 * 1024, /* some KiB, a few hundred with all texts at their limits */
    ROW_BODY_INLINE_MAX = 1024,     /* larger bodies stand in table body */
    ROW_BODY_PAYLOAD = 1,
    ROW_BODY_RESULT = 2,
    ROW_STATUS_TERMINAL_MIN = TMQ_STATUS_COMPLETED /* as the schema's partial indexes say it */
};

/* Key of an event block (A41). A namespace has room for 4e12 events. */
#define EVENT_KEY(ns, seq) ((ns) * (INT64_C (1) << 42) + (int64_t) (seq))
/* The namespace of a key. */
#define EVENT_SPACE(key) ((key) >> 42)

/* The sums of rows of other tables, as column `sum` has them. */
uint64_t row_sum_of_body (int64_t number, int kind, const void *bytes, size_t length);
uint64_t row_sum_of_attempt (const attempt_t *attempt);
uint64_t row_sum_of_tombstone (const removal_t *removal, int64_t ns);
/* Column `code` of a tombstone: the code, and why. */
int64_t row_tombstone_code (const removal_t *removal);
void row_take_tombstone_code (removal_t *removal, int64_t column);
uint64_t row_sum_of_events (int64_t key, int64_t pos, int64_t count, int64_t at,
                            const uint8_t *list, size_t list_bytes);
uint64_t row_sum_of_kind_row (int kind, const void *key, size_t key_bytes, const void *body,
                              size_t body_bytes, int64_t expires_at);

/* An attempt, as every statement names its columns. */
#define ROW_ATTEMPT_COLUMNS                                                                        \
    "attempt.number, attempt.attempt, attempt.worker, attempt.started_at, attempt.ended_at,"       \
    " attempt.how, attempt.error_code, attempt.error_message, attempt.secret,"                     \
    " attempt.request_id, attempt.sum"
/* Fills all but the task's id from the current row; false when it is not what was written. */
bool row_read_attempt (sqlite3_stmt *row, attempt_t *out);

/* A block of events, as every statement names its columns. */
#define ROW_EVENTS_COLUMNS "key, pos, count, at, sum, list"
enum {
    ROW_EVENTS_KEY,
    ROW_EVENTS_POS,
    ROW_EVENTS_COUNT,
    ROW_EVENTS_AT,
    ROW_EVENTS_SUM,
    ROW_EVENTS_LIST
};
/* STORE_ERROR_DAMAGED when the current row is not what was written. */
store_code_t row_check_events (sqlite3_stmt *row, store_error_t *error);

/* The numbers of a record's names. */
typedef struct row_names {
    int64_t ns;
    int64_t owner;
    int64_t queue;
    int64_t session;
} row_names_t;

/* Binds all columns of ROW_COLUMNS. The record, the bodies and `rest`, which is overwritten, must
 * live until the step. */
void row_bind (sqlite3_stmt *statement, const record_t *record, const row_names_t *names,
               const buf_t *payload, const buf_t *result, bytes_t *rest);

/* What else a row may need to become a record: labels and bodies of their own tables. */
enum { ROW_STATEMENTS = 2 };
extern const char *const ROW_TEXTS[ROW_STATEMENTS];
typedef struct row_reader {
    name_numbers_t *names;
    sqlite3_stmt **statements; /* prepared from ROW_TEXTS */
    arena_t *arena;            /* for one row; reset by row_read */
} row_reader_t;

/* Makes a record of the current row of a statement over ROW_COLUMNS (bodies)
 * or ROW_COLUMNS_BARE. STORE_ERROR_DAMAGED when it, a label or a body is not what was written. */
store_code_t row_read (const row_reader_t *reader, sqlite3_stmt *row, bool bodies, record_t **out,
                       store_error_t *error);
/* The sum that the current row of a statement over ROW_COLUMNS_BARE has with this rest: for those
 * who change the form of what is stored. */
store_code_t row_sum_with (const row_reader_t *reader, sqlite3_stmt *row, const uint8_t *rest,
                           size_t rest_bytes, uint64_t *out, store_error_t *error);

#endif
