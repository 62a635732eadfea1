/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Large bodies in the database (A120): the vault of this backend. A blob is a row of `blob` and its
 * pieces in `blob_chunk`, each with the SHA-256 that the server made when it came. The link is its
 * own, and belongs to the thread that calls the vault; that thread connects by itself, but never
 * while the keeper finds nobody there. */
#ifndef TASKMQ_STORE_PG_BLOBS_H
#define TASKMQ_STORE_PG_BLOBS_H

#include "core/data/vault.h"
#include "store/postgresql/pg_store.h"

typedef struct pg_blobs pg_blobs_t;

pg_blobs_t *pg_blobs_new (pg_store_t *store);
void pg_blobs_free (pg_blobs_t **self); /* accepts a NULL object */
/* To be used once the data is owned. */
const vault_t *pg_blobs_vault (const pg_blobs_t *self);

/* Puts one into tables that nobody has owned yet, on a link whose transaction has made them, and
 * whose statements are others then: the bytes that are read from the descriptor on. Their hash was
 * compared before. STORE_ERROR_IO: they cannot be read, or are fewer. */
store_code_t pg_blobs_fill (pg_link_t *link, const uint8_t *hash, uint64_t bytes, int fd,
                            store_error_t *error);

#endif
