/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who owns the data (A107, A119): one broker at a time, which each transaction of its own proves by
 * the epoch. Whoever comes takes over at once from an owner that ended cleanly, or that had this
 * very data directory, whose lock says that it has ended; but not after a promotion, which may have
 * lost an owner whose lease still holds. From any other owner it takes over when
 * that gave no sign for a lease (core/base/beats.h). */
#ifndef TASKMQ_STORE_PG_OWN_H
#define TASKMQ_STORE_PG_OWN_H

#include "store/postgresql/pg_instance.h"
#include "store/postgresql/pg_link.h"
#include "store/postgresql/pg_store.h"

enum { PG_LEASE_MS = 4000 /* where nothing else is said */ };

/* What an adoption found and made. */
typedef struct pg_owned {
    pg_instance_t instance; /* who we are */
    uint64_t generation;
    uint64_t epoch;                /* of this owner */
    bool promoted;                 /* another timeline, so a new generation */
    int64_t silent_ms;             /* for so long the owner before gave no sign; 0: it had ended */
    char from[PG_OWNER_TEXT_SIZE]; /* the owner before, if it was another one; or empty */
} pg_owned_t;

/* Waits until the data may be taken over, and adopts it, by one transaction that ends the epoch
 * before. The id of the instance is made if there is none. Uses only what the first version of the
 * tables has.
 *
 * STORE_ERROR_OWNED: another owner lives, or is one whose version gives no signs, and we are no
 * standby. STORE_ERROR_CUT: nobody owned these tables so far, and we owned others.
 * STORE_ERROR_STOPPED: stop_fd became readable. STORE_ERROR_AWAY: out of reach, so that
 * what was seen of an owner counts no more. STORE_ERROR_FOREIGN: it was owned on another server, so
 * this is a copy. STORE_ERROR_BUSY: locks stayed taken. */
store_code_t pg_own_take (pg_store_t *store, int stop_fd, pg_owned_t *out, store_error_t *error);
/* The name of the link on which a standby looks at the owner of a schema, so that an owner can
 * count its own. A schema of more than 30 letters is cut, and told apart by a sum. */
void pg_own_link_name (const pg_target_t *target, char out[PG_LINK_NAME_MAX + 1]);
/* After a clean end: nobody owns it. */
store_code_t pg_own_release (pg_store_t *store, uint64_t epoch, store_error_t *error);

#endif
