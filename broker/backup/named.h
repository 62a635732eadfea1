/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The blobs that the tasks of a copy of the tables name: what of them is not there is lost. */
#ifndef TASKMQ_BACKUP_NAMED_H
#define TASKMQ_BACKUP_NAMED_H

#include <stdint.h>

#include "store/store.h"

typedef struct named named_t;

/* *out: those of DIRECTORY/taskmq.db, to be freed also after an error. */
store_code_t named_read (named_t **out, const char *directory, store_error_t *error);
void named_free (named_t **self); /* accepts a NULL object */
/* This one (TMQ_BLOB_HASH_BYTES) is there, whole. One that no task names is passed over. */
void named_have (named_t *self, const uint8_t *hash);
/* Those that have a file below the directory of blobs are there. */
void named_look (named_t *self, const char *blobs);
/* How many are not there. */
uint64_t named_missing (const named_t *self);

#endif
