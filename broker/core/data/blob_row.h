/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The rows of a blob: how long it is, and how often tasks name it; and of how many of them one
 * owner is. Those that named it before there were such rows are of no owner. */
#ifndef TASKMQ_CORE_DATA_BLOB_ROW_H
#define TASKMQ_CORE_DATA_BLOB_ROW_H

#include "core/data/row.h"
#include "taskmq_types.h"

/* hash: TMQ_BLOB_HASH_BYTES. No tasks: the row's removal. */
row_t blob_row_make (const uint8_t *hash, uint64_t bytes, uint64_t tasks);
/* False: it is no such row. One that is gone has 0 of both. */
bool blob_row_read (const row_t *row, uint64_t *bytes, uint64_t *tasks);

/* owner: of tasks, not empty. No tasks: the row's removal. */
row_t blob_share_make (const uint8_t *hash, const char *owner, uint64_t tasks);
/* False: it is no such row. One that is gone has no tasks. What comes out lives as long as the row.
 * */
bool blob_share_read (const row_t *row, const uint8_t **hash, const char **owner, uint64_t *tasks);

#endif
