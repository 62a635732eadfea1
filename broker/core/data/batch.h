/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The commit batch and what it carries beside images of tasks: attempts, removals, events.
 *
 * It is built by the engine, closed once and never changed afterwards, so several threads may read
 * it. */
#ifndef TASKMQ_CORE_BATCH_H
#define TASKMQ_CORE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/record.h"
#include "core/data/row.h"

/* Attempts that did not complete their task (S8). */

typedef struct attempt {
    int64_t number; /* of the task */
    tmq_id_t id;    /* of the task */
    uint32_t attempt;
    char worker[TMQ_NAME_LENGTH_MAX + 1];
    int64_t started_at;
    int64_t ended_at;
    tmq_event_kind_t how; /* RELEASED, ATTEMPT_FAILED, LEASE_LOST, FAILED, CANCELLED */
    int32_t error_code;
    char error_message[TMQ_MESSAGE_BYTES_MAX + 1]; /* its beginning */
    uint8_t secret[16];
    uint8_t request_id[16]; /* zero when no request ended it */
} attempt_t;

/* A copy, to be freed with free (). */
attempt_t *attempt_new (const attempt_t *source);

/* Removals (S12). */

typedef struct removal {
    int64_t number;
    tmq_id_t id;
    const char *ns;  /* owned by the batch's names, see batch_t */
    tmq_code_t code; /* EXPIRED or PURGED: what the tombstone answers */
    int64_t at;
    const char *owner; /* as ns: who may know of it */
    const char *queue;
    uint8_t why; /* PURGED by a policy: which, and whose (retention.h); 0: by hand */
} removal_t;
/* Frees its texts, where they are allocations of their own. */
void removal_clear (removal_t *self);

/* Events. */

/* The events of one commit batch and one namespace: a packed taskmq.EventList, so it is at the
 * same time what is stored and the second frame of a message to a subscriber without filters, who
 * is told of tasks only. */
typedef struct event_block {
    const char *ns;
    uint64_t first_seq; /* gapless: the last one is first_seq + count - 1 */
    uint64_t first_pos; /* broker-wide event number of the first one */
    uint32_t count;
    bool mixed; /* some are of no task; not stored: who reads a block finds out */
    buf_t *list;
} event_block_t;
/* Frees an array of blocks, with their names, which are allocations of their own. */
void event_blocks_free (event_block_t *blocks, size_t count);

/* The commit batch. */

typedef struct batch {
    uint64_t no;       /* 1, 2, … since the start of the broker */
    int64_t wall_ms;   /* when it was closed */
    int64_t expiry_ms; /* the same without a leap that is still held: what is old is judged by it */
    size_t inputs;     /* requests that went into it */
    size_t bytes;      /* memory it holds, bodies included */

    record_t **records; /* latest images of the tasks that changed, in order of change */
    size_t records_count;
    struct batch_room *rooms; /* hold the records; NULL: each is an allocation of its own */
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
