/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The image of a task, as it is stored and answered. Plain data that core and store exchange. */
#ifndef TASKMQ_CORE_RECORD_H
#define TASKMQ_CORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/buf.h"
#include "taskmq_types.h"

typedef struct label {
    const char *key;
    const char *value;
} label_t;

/* A task of somebody whom a gateway acts for is found by its owner as by a label with this key,
 * which no label has. */
#define RECORD_MARK_OWNER "\1owner"

/* The first half of the digest of a submit is enough to tell one from another. */
enum { RECORD_DIGEST_BYTES = 16 };

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
    bool relabelled; /* they are not those of the submit */

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

    /* The lease of the current attempt; it may stand beside a cancelled status (S5). */
    uint8_t phase; /* tmq_phase_t as memory knows it; NONE: what the rest says */
    bool leased;
    bool lease_started;
    uint8_t secret[16];     /* of the current attempt, kept after its end to recognise repeats */
    uint8_t worker_id[16];  /* as the secret */
    const char *holder;     /* as the secret: who the broker took that worker for */
    const char *worker;     /* name of the worker that holds or held the current attempt */
    uint8_t request_id[16]; /* of the request that ended the task or was pushed last (A45) */

    double progress_done;
    double progress_total;
    const char *progress_unit;
    const char *progress_message;

    uint8_t digest[RECORD_DIGEST_BYTES]; /* of what S13 names */
    uint32_t payload_bytes;
    buf_t *payload; /* NULL: stored earlier (or empty) */
    tmq_outcome_kind_t outcome;
    uint32_t result_bytes;
    buf_t *result; /* as payload */
    const char *result_type;
    int32_t error_code;
    const char *error_message;
    const char *error_data;
    buf_t *extra; /* a packed taskmq.Extra (extra.h), in every image; NULL: none */
} record_t;

/* What a copy of a record takes, for those who have a place for it. */
enum { RECORD_STRINGS = 16 };
typedef struct record_room {
    size_t total;                   /* bytes, aligned as a record */
    size_t strings[RECORD_STRINGS]; /* with their NUL; 0: empty */
} record_room_t;
void record_measure (const record_t *source, record_room_t *out);
/* A copy in memory of that many bytes, as record_new makes it; to be dropped without
 * record_free. */
record_t *record_place (void *memory, const record_t *source, const record_room_t *room);

/* A copy of source in one allocation, with references to its bodies and its extra. NULL strings
 * become empty. */
record_t *record_new (const record_t *source);
void record_free (record_t *self); /* accepts NULL */
bool record_has_label (const record_t *self, const label_t *label);
/* About how long it is in an answer, without bodies. */
size_t record_wire_bytes (const record_t *self);
/* Past its time to live a terminal task is answered like one that was removed (S12). expiry_ms: the
 * time by which expiry is judged. */
bool record_is_over (const record_t *self, int64_t expiry_ms);
/* It has ended, and no time to live ends it. */
bool record_is_lasting (const record_t *self);
/* The phase that a stored task shows at wall_ms; who holds its lease is not in the tables. */
tmq_phase_t record_phase (const record_t *self, int64_t wall_ms);

#endif
