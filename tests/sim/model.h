/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The store of the simulation: the contract's plain data, twice.
 *
 * `durable` is what a crash leaves: everything that was committed. `tables` is what look-ups and
 * reads see: it lags behind until a write-back. Both are plain arrays, so that a mistake of the
 * engine cannot hide behind a mistake of a real store. The checker reads `durable`. */
#ifndef TASKMQ_SIM_MODEL_H
#define TASKMQ_SIM_MODEL_H

#include "core/data/lookup.h"
#include "core/data/row_list.h"
#include "taskmq.pb-c.h"

enum {
    MODEL_TASKS_MAX = 4096, /* of clients */
    MODEL_FIRED_MAX = 2048, /* that schedules made */
    MODEL_ROWS_MAX = MODEL_TASKS_MAX + MODEL_FIRED_MAX,
    MODEL_NAMESPACES = 3
};

typedef struct model_row {
    record_t *record; /* NULL: none, or removed */
    tmq_code_t tombstone;
    int64_t tombstone_at;
    uint8_t tombstone_why;
    char ns[80]; /* of the tombstone, … */
    char owner[80];
    char queue[80];
    attempt_t *attempts;
    size_t attempts_count;
} model_row_t;

/* The events of one namespace; event with sequence s is events[s - 1]. */
typedef struct model_log {
    const char *ns;
    event_block_t *blocks;
    size_t blocks_count;
    Taskmq__EventList **lists; /* unpacked blocks */
    const Taskmq__Event **events;
    uint64_t *positions;
    size_t events_count;
} model_log_t;

typedef struct model_side {
    model_row_t rows[MODEL_ROWS_MAX];
    size_t tasks_end; /* rows from here on were never used, … */
    size_t fired_end; /* … of those that schedules made as well */
    row_list_t kind_rows;
    model_log_t logs[MODEL_NAMESPACES];
    int64_t last_number;
    uint64_t last_pos;
    int64_t newest_ms;
    int64_t newest_id_ms; /* time in the newest id that ever stood here; 0: none */
} model_side_t;

typedef struct model {
    model_side_t durable;
    model_side_t tables;
    batch_t **journal; /* committed, not in the tables */
    size_t journal_count;
    uint64_t committed; /* newest batch number, of this run of the broker */
    uint64_t written;
    bool overlaid; /* starts and look-ups see what is durable, and not in the tables yet (A21) */
    uint64_t epoch;
    uint64_t generation;
    char broken[256]; /* not empty: a batch broke the contract, and how */
} model_t;

/* The rows that were ever used. */
#define MODEL_EACH_ROW(i, side)                                                                    \
    for (size_t i = model_row_behind (side, SIZE_MAX); i < MODEL_ROWS_MAX;                         \
         i = model_row_behind (side, i))
static inline size_t model_row_behind (const model_side_t *side, size_t i)
{
    i++;
    if (i >= side->tasks_end && i < MODEL_TASKS_MAX) {
        i = MODEL_TASKS_MAX;
    }
    return i < MODEL_TASKS_MAX || i < side->fired_end ? i : MODEL_ROWS_MAX;
}

extern const char *const model_namespaces[MODEL_NAMESPACES];

/* Tasks of the simulation carry their index in the last four bytes of their id. Those that
 * schedules made have an id of the broker's, and places behind the others as they are met. */
uint32_t model_index (const uint8_t id[16]);

model_t *model_new (uint64_t generation);
void model_free (model_t *self);

/* Durable from now on. Takes the batch. */
void model_commit (model_t *self, batch_t *batch);
/* Durable, but the tables will never have it: a store that takes it for lost. Borrows the batch. */
void model_commit_unseen (model_t *self, const batch_t *batch);
/* In the tables from now on, whatever the journal has. Borrows the batch. */
void model_write (model_t *self, const batch_t *batch);
/* As if nothing had ever been stored. */
void model_clear (model_t *self);
/* What a start, or a look-up, sees. */
const model_side_t *model_seen (const model_t *self);
/* What a start finds there. */
void model_boot (const model_t *self, boot_t *boot);
/* What the tables lack of what is durable, or have beside it: true, and a word for it. */
bool model_differs (const model_t *self, const char **what);
/* Brings the tables up to batch. */
void model_write_back (model_t *self, uint64_t batch);
/* What a start does: the journal goes into the tables, a new epoch begins. */
void model_recover (model_t *self, boot_t *boot);
/* What a restart of the engine in the same run of the broker does. */
void model_reset (model_t *self, boot_t *boot);

void model_load (const model_t *self, lookup_t *keys, size_t count);
void model_read (const model_t *self, read_t *read);
/* The record is one that the filter asks for. */
bool model_matches (const model_side_t *side, const filter_t *filter, const record_t *record);
bool model_has_number (const model_side_t *side, const char *ns, int64_t number);
/* At most limit tasks, and rows, that are past their time. */
void model_due (const model_t *self, int64_t wall_ms, size_t limit, due_t *out);

const model_log_t *model_log (const model_side_t *side, const char *ns);
/* A copy of a stored record without its bodies. */
record_t *model_copy (const record_t *record, bool bodies);

#endif
