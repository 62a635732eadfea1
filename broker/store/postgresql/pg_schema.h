/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The schema in the database, and how it becomes that of this version.
 *
 * Tables (schema of database/schema; all times in ms since 1970, UTC):
 *
 *   meta       one row: the version of the schema
 *   shard      one row for each set of namespaces that one broker owns; today there is one, 0. Its
 *              generation, epoch (counts adoptions), owner, and the server it was owned on
 *   fence      three rows for each shard, c for commits, w for write-backs and b for large bodies,
 *              with the epoch that may do them. Written by an adoption alone; everybody else only
 *              locks them
 *   journal    what is committed and not in the tables yet: a row for each commit
 *   written    one row for each shard: up to which batch of which epoch the tables have everything,
 *              and what is counted with them
 *   namespace  number and name; the number stands in the other tables
 *   task, attempt, tombstone, event, row
 *              what the contract keeps; names stand as texts, labels and bodies in their task
 *   blob       large bodies, each under its hash: since version 3. One that is not whole has no
 *              name: it is being put, or to be removed
 *   blob_chunk pieces of them, by the number of the row in blob, each with its SHA-256
 *   label      what tasks are found by: each label at its place, and the marks of turns and of
 *              owners from PG_MARK_PLACE on
 *
 * Keys begin with the namespace, so a namespace could go to another shard without a row of tasks
 * being written anew. All texts compare by their bytes. */
#ifndef TASKMQ_STORE_PG_SCHEMA_H
#define TASKMQ_STORE_PG_SCHEMA_H

#include "store/postgresql/pg_instance.h"
#include "store/postgresql/pg_link.h"

enum {
    PG_TIMELINE_CUT = -1, /* in place of one: an owner found that something of its work is gone */
    PG_SHARD = 0,         /* the only one */
    PG_FENCES = 3,        /* rows of a shard, … */
    PG_FENCES_MIN = 2,    /* … and of tables that are to be brought to this version */
    PG_MARK_PLACE = 16    /* marks stand behind the labels */
};

/* Makes the schema where there is none, as one transaction, and judges one that is there. Its
 * tables stay as they are: they may belong to a broker of the version before that is at work.
 * STORE_ERROR_NEWER: a newer version made it. STORE_ERROR_FOREIGN: a schema of that name belongs to
 * somebody else. STORE_ERROR_ACCESS: the role may not do it. STORE_ERROR_CUT: nothing is there, and
 * the broker that asks owned some; owned NULL, or all zero: it did not, or gives that up. */
store_code_t pg_schema_prepare (pg_target_t *target, const pg_tables_of_t *owned,
                                store_error_t *error);
/* Judges as that does, on an open link, whose statements are others then, and changes nothing.
 * *lacks: "missing", "empty", or NULL: it has the tables. */
store_code_t pg_schema_judge (pg_link_t *link, const pg_tables_of_t *owned, const char **lacks,
                              store_error_t *error);
/* Fills error with what a version is that we do not know, and returns its code. */
store_code_t pg_schema_newer (const pg_target_t *target, int32_t version, store_error_t *error);
/* Brings it to this version, each step in a transaction of its own, so that it may be killed at any
 * point. Only who owns the data does this, and each step proves it by the epoch and the owner's
 * text (STORE_ERROR_FENCED). owner NULL: they were just made, and nobody owns them. *from: the
 * version that was there. Errors: the same. */
store_code_t pg_schema_upgrade (pg_target_t *target, uint64_t epoch, const char *owner,
                                int32_t *from, store_error_t *error);

/* What a restore needs, on an open link in its transaction, whose statements are others then. The
 * schema stays locked until that ends: who is about to make it, or has just made it, is waited for.
 * *empty: it is missing, or nothing is in it. STORE_ERROR_OWNED: it is being made for long. */
store_code_t pg_schema_look (pg_link_t *link, bool *empty, store_error_t *error);
/* Makes it, of this version, where it is empty. Errors as pg_schema_prepare. */
store_code_t pg_schema_make (pg_link_t *link, store_error_t *error);

#endif
