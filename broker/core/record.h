/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The plain data that core and store exchange: images of tasks, events and attempts, and the
 * commit batch that carries them.
 *
 * A commit batch is built by the engine, closed once and never changed afterwards, so several
 * threads may read it. Bodies are reference-counted and immutable. */
#ifndef TASKMQ_CORE_RECORD_H
#define TASKMQ_CORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/row.h"
#include "taskmq_types.h"

/* Bodies. */

/* Immutable bytes with a counted life. The count is atomic: any thread may keep and drop. */
typedef struct buf buf_t;

/* Copies length bytes; the caller holds the only reference. Aborts when memory is exhausted. */
buf_t *buf_new (const void *bytes, size_t length);
/* As buf_new, with undefined contents to be filled through buf_mutable before it is shared. */
buf_t *buf_new_uninitialised (size_t length);
uint8_t *buf_mutable (buf_t *self);
buf_t *buf_keep (buf_t *self);                /* one more reference; accepts and returns NULL */
void buf_drop (buf_t *self);                  /* accepts NULL */
const uint8_t *buf_bytes (const buf_t *self); /* NULL gives an empty, non-NULL pointer */
size_t buf_length (const buf_t *self);        /* 0 for NULL */

/* Tasks. */

typedef struct label {
    const char *key;
    const char *value;
} label_t;

/* The whole state of one task at one moment, as it is stored. Strings are NUL-terminated UTF-8,
 * never NULL, empty when absent. Times are ms since the epoch, UTC, 0 when absent.
 * One allocation holds the struct, its strings and its labels (see record_new). */
typedef struct record {
    int64_t number; /* order of acceptance, broker-wide, from 1 */
    tmq_id_t id;
    const char *ns; /* namespace */
    const char *owner;
    const char *queue;
    const char *session;
    const char *method;
    const char *content_type;
    const char *dedup_key;
    const char *meta;
    const label_t *labels;
    size_t labels_count;

    tmq_status_t status;
    const char *status_message;
    uint8_t priority;
    bool dead;
    int64_t created_at;
    int64_t updated_at;
    int64_t started_at;
    int64_t finished_at;
    int64_t expires_at; /* 0: never */
    int64_t not_before; /* 0: at once */
    int64_t ttl_ms;     /* 0: never */
    uint32_t poll_interval_ms;
    uint32_t lease_ms;
    uint32_t backoff_ms;
    uint32_t max_attempts;

    uint32_t attempt;  /* the fencing number; only grows */
    uint32_t failures; /* since the last submit, retry or resume */
    uint32_t returns;  /* uncounted returns in a row (S4) */
    uint64_t version;  /* counts changes of this record */
    uint64_t last_seq; /* its newest event in its namespace */

    /* The lease of the current attempt; it may stand beside a cancelled status (S7). */
    bool leased;
    bool lease_started;
    uint8_t secret[16];     /* of the current attempt, kept after its end to recognise repeats */
    uint8_t worker_id[16];  /* as the secret */
    const char *worker;     /* name of the worker that holds or held the current attempt */
    uint8_t request_id[16]; /* of the request that ended the task or was pushed last (A35) */

    uint64_t progress_done;
    uint64_t progress_total;
    const char *progress_unit;
    const char *progress_message;

    uint8_t digest[32]; /* BLAKE2b-256 of what S17 names */
    uint32_t payload_bytes;
    buf_t *payload; /* NULL: stored earlier (or empty) */
    tmq_outcome_kind_t outcome;
    uint32_t result_bytes;
    buf_t *result; /* as payload */
    const char *result_type;
    int32_t error_code;
    const char *error_message;
    const char *error_data;
} record_t;

/* A copy of source in one allocation, with references to its bodies. NULL strings become empty. */
record_t *record_new (const record_t *source);
void record_free (record_t *self); /* accepts NULL */
/* About how long it is in an answer, without bodies. */
size_t record_wire_bytes (const record_t *self);
/* The phase that a stored task shows at wall_ms; who holds its lease is not in the tables. */
tmq_phase_t record_phase (const record_t *self, int64_t wall_ms);

/* Attempts that did not complete their task (S12). */

typedef struct attempt {
    int64_t number; /* of the task */
    tmq_id_t id;    /* of the task */
    uint32_t attempt;
    char worker[TMQ_NAME_LENGTH_MAX + 1];
    int64_t started_at;
    int64_t ended_at;
    tmq_event_kind_t how; /* RELEASED, ATTEMPT_FAILED, LEASE_LOST, FAILED, CANCELLED */
    int32_t error_code;
    char error_message[TMQ_MESSAGE_BYTES_MAX + 1];
    uint8_t secret[16];
    uint8_t request_id[16]; /* zero when no request ended it */
} attempt_t;

/* Removals (S16). */

typedef struct removal {
    int64_t number;
    tmq_id_t id;
    const char *ns;  /* owned by the batch's names, see batch_t */
    tmq_code_t code; /* EXPIRED or PURGED: what the tombstone answers */
    int64_t at;
} removal_t;

/* Events. */

/* The events of one commit batch and one namespace: a packed taskmq.EventList, so it is at the
 * same time what is stored and the second frame of a message to a subscriber without filters. */
typedef struct event_block {
    const char *ns;
    uint64_t first_seq; /* gapless: the last one is first_seq + count - 1 */
    uint64_t first_pos; /* broker-wide event number of the first one */
    uint32_t count;
    buf_t *list;
} event_block_t;

/* The commit batch. */

typedef struct batch {
    uint64_t no;     /* 1, 2, … since the start of the broker */
    int64_t wall_ms; /* when it was closed */
    size_t inputs;   /* requests that went into it */
    size_t bytes;    /* memory it holds, bodies included */

    record_t **records; /* latest images of the tasks that changed, in order of change */
    size_t records_count;
    struct record_room *rooms; /* hold the records; NULL: each is an allocation of its own */
    attempt_t *attempts;
    size_t attempts_count;
    removal_t *removals;
    size_t removals_count;
    event_block_t *blocks; /* at most one per namespace, rising first_pos */
    size_t blocks_count;
    row_t *rows; /* changes in their order: the last one of a key counts */
    size_t rows_count;
} batch_t;

/* A copy of source as record_new makes it, but in memory that the batch has for all its records
 * (about `expected` of them). To be put into its list by the caller. */
record_t *batch_record_new (batch_t *self, const record_t *source, size_t expected);
/* Frees the batch and everything in it. Accepts NULL. */
void batch_free (batch_t *self);

#endif
