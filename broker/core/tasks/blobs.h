/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Blobs: bodies that are larger than a frame. The server has their files (broker/blobs); here is
 * how many tasks name each, in a row that changes with theirs, and who has just uploaded one.
 *
 * A file may go only when nobody can name it: no task does, also not one that a crash would bring
 * back, and nobody has a claim to it. */
#ifndef TASKMQ_CORE_BLOBS_H
#define TASKMQ_CORE_BLOBS_H

#include "core/tasks/tasks.h"

#define BLOB_TYPE "application/octet-stream" /* of one whose worker says nothing else */

enum {
    BLOBS_MAX = 100000,          /* that tasks name */
    BLOB_CLAIMS_MAX = 4096,      /* the oldest gives way, … */
    BLOB_CLAIMS_OF_ONE_MAX = 256 /* … or the oldest of who has so many: a task has 105 at most */
};

/* Who uploaded it may name it in this namespace. Again: for as long from now on. */
void blob_claim (tasks_t *self, const char *ns, const char *identity, const uint8_t *hash,
                 uint64_t bytes);
bool blob_is_claimed (const tasks_t *self, const char *ns, const char *identity,
                      const Taskmq__Blob *blob);
/* There is room for one more, or it is there. */
bool blobs_have_room (const tasks_t *self, const Taskmq__Blob *blob);
/* OK, NO_BLOB or LIMIT: whether it may be named. Only who has the bytes may name them: a hash alone
 * would give everybody everything. */
tmq_code_t blob_may_be_named (const tasks_t *self, const char *ns, const char *identity,
                              const Taskmq__Blob *blob);
/* A task names it, or does no more. Goes with the open batch. */
void blob_take (tasks_t *self, const Taskmq__Blob *blob);
void blob_give (tasks_t *self, const Taskmq__Blob *blob);
/* The task is removed. */
void blobs_remove (tasks_t *self, const Taskmq__Extra *fields);

bool blob_is_needed (tasks_t *self, const uint8_t *hash);
size_t blobs_count (const tasks_t *self);
void blobs_load (tasks_t *self, const row_t *row); /* a BLOB, at a start */
void blobs_init (tasks_t *self);
void blobs_clear (tasks_t *self);

#endif
