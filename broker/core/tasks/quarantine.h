/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Successes that came too late: the lease of their attempt was over. Each is kept for a while, to
 * be adopted. What is known of it is a row that lives in memory (LATE); its bytes are a row beside
 * it that is read when it is wanted (QUARANTINE). A task has few of them and a namespace so many
 * bytes; beyond that the oldest go. They go with their task, too, and when it is completed. */
#ifndef TASKMQ_CORE_QUARANTINE_H
#define TASKMQ_CORE_QUARANTINE_H

#include "core/tasks/tasks.h"

typedef struct kept {
    node_t node; /* in the list of its namespace, the oldest first */
    uint32_t hash;
    space_t *space;
    tmq_id_t id;
    uint32_t attempt;
    uint32_t bytes;
    int64_t started_at; /* of the attempt */
    int64_t at;         /* when it came */
    int64_t expires_at;
    name_t *worker;
    name_t *type;  /* content type */
    bool is_blob;  /* of this hash: there are no bytes in a row, … */
    name_t *owner; /* … and it counts to him; NULL: it was kept before blobs did */
    uint8_t hash_of_blob[TMQ_BLOB_HASH_BYTES];
} kept_t;

/* Of one that is_blob. Borrows from it. */
Taskmq__Blob kept_blob (const kept_t *kept);

/* What is kept of the attempt, or NULL. */
kept_t *kept_find (const tasks_t *self, const space_t *space, const uint8_t *id, uint32_t attempt);
/* The row with its bytes. */
void kept_key (row_key_t *out, const char *ns, const uint8_t *id, uint32_t attempt);

/* A success that an attempt brought. */
typedef struct late {
    const attempt_note_t *attempt; /* which is over */
    const uint8_t *bytes;
    uint32_t length;
    const char *type;
    const Taskmq__Blob *blob; /* in place of the bytes; or NULL */
} late_t;
/* A task keeps those of its newest attempts. One of an earlier attempt would push out a newer one,
 * and could be said again then, and so on for ever. */
bool kept_takes (const tasks_t *self, const space_t *space, const uint8_t *id, uint32_t attempt);
/* Keeps it. The caller tells of it by INPUT_LATE. */
void kept_add (tasks_t *self, task_t *task, const late_t *late);
/* There is room for so many more, of so many bytes together, without one that goes for them. */
bool kept_has_room (const tasks_t *self, const space_t *space, size_t count, uint64_t bytes);
/* Keeps one that was kept elsewhere since `at`: until then, but no longer than one of here. */
void kept_bring (tasks_t *self, task_t *task, const late_t *late, int64_t at, int64_t until);
/* Its task is completed, or removed. */
void kept_drop (tasks_t *self, const space_t *space, const tmq_id_t *id);

/* Takes a row of the kind LATE at a start, or its end. */
void kept_load (tasks_t *self, const row_t *row);
void kept_clear (tasks_t *self); /* before the namespaces go */

#endif
