/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Blobs: bodies that are larger than a frame. The server has their files (broker/blobs); here is
 * how many tasks name each, in a row that changes with theirs, and who has just uploaded one.
 *
 * A blob that tasks of several owners name is one file, and counts to each of them once, however
 * many of his tasks name it: so what one has never depends on the others. Before a task names it,
 * it counts to who uploaded it.
 *
 * A file may go only when nobody can name it: no task does, also not one that a crash would bring
 * back, and nobody has a claim to it. */
#ifndef TASKMQ_CORE_BLOBS_H
#define TASKMQ_CORE_BLOBS_H

#include "core/tasks/tasks.h"

#define BLOB_TYPE "application/octet-stream" /* of one whose worker says nothing else */

enum {
    BLOBS_MAX = 100000,          /* that tasks name, each for every owner of them */
    BLOB_CLAIMS_MAX = 4096,      /* the oldest gives way, … */
    BLOB_CLAIMS_OF_ONE_MAX = 256 /* … or the oldest of who has so many: a task has 105 at most */
};

/* Who uploaded it may name it in this namespace, for blob_claim_ms. Again: for as long from now on.
 * A claim that is over counts still, as long as the file is there. */
void blob_claim (tasks_t *self, const char *ns, const char *identity, const uint8_t *hash,
                 uint64_t bytes);
bool blob_is_claimed (const tasks_t *self, const char *ns, const char *identity,
                      const Taskmq__Blob *blob);
/* Who has uploaded so many that no task names yet has to name them first, or to wait. */
bool blob_claims_are_full (tasks_t *self, const char *identity);
/* There is room for one more of this owner, or it is there. */
bool blobs_have_room (const tasks_t *self, const char *owner, const Taskmq__Blob *blob);
/* How long it is, if a task of the owner names it; else 0. */
uint64_t blob_bytes_of (const tasks_t *self, const char *owner, const uint8_t *hash);
/* Bytes of what the identity uploaded and no task names yet, without those of one hash. */
uint64_t blobs_claimed (tasks_t *self, const char *identity, const uint8_t *without);
/* A task of this owner names it, or does no more. Goes with the open batch. */
void blob_take (tasks_t *self, const char *owner, const Taskmq__Blob *blob);
void blob_give (tasks_t *self, const char *owner, const Taskmq__Blob *blob);
/* The task of this owner is removed. */
void blobs_remove (tasks_t *self, const char *owner, const Taskmq__Extra *fields);
/* Adds to the accounts, which have just been made, what their owners' tasks name. */
void blobs_charge (tasks_t *self);

bool blob_is_needed (tasks_t *self, const uint8_t *hash);
size_t blobs_count (const tasks_t *self);
void blobs_load (tasks_t *self, const row_t *row);       /* a BLOB, at a start, … */
void blobs_load_share (tasks_t *self, const row_t *row); /* … and behind them the BLOB_SHAREs */
void blobs_init (tasks_t *self);
void blobs_clear (tasks_t *self);

#endif
