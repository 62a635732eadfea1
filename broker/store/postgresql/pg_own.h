/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Owning the data (A107). The owner is an instance: a random id in the data directory, which a lock
 * keeps for one broker at a time. So whoever finds his own id knows that the process before him has
 * ended. Data of another instance is refused: nobody can tell whether that lives. */
#ifndef TASKMQ_STORE_PG_OWN_H
#define TASKMQ_STORE_PG_OWN_H

#include "store/postgresql/pg_store.h"

#define PG_INSTANCE_FILE "instance"

/* What an adoption found and made. */
typedef struct pg_owned {
    uint64_t generation;
    uint64_t epoch; /* of this owner */
    bool promoted;  /* another timeline, so a new generation */
} pg_owned_t;

/* Adopts the data, by one transaction that ends the epoch before. The id is made if there is none.
 * STORE_ERROR_OWNED: another instance owns it. STORE_ERROR_FOREIGN: it was owned on another server,
 * so this is a copy. STORE_ERROR_BUSY: locks stayed taken. */
store_code_t pg_own_adopt (pg_store_t *store, pg_owned_t *out, store_error_t *error);
/* After a clean end: nobody owns it. */
store_code_t pg_own_release (pg_store_t *store, uint64_t epoch, store_error_t *error);

#endif
