/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is done with a database while no store is open on it. A build without libpq has these, too,
 * and they say which package it lacks. */
#ifndef TASKMQ_STORE_POSTGRESQL_DATABASE_H
#define TASKMQ_STORE_POSTGRESQL_DATABASE_H

#include <stdint.h>

#include "store/error.h"
#include "store/postgresql/database_options.h"

enum { DATABASE_FOUND_SIZE = 512 };

/* STORE_ERROR_OPTIONS: no server could mend what they say. Nothing is connected. Other errors are
 * those of files, which may be right when they are needed. */
store_code_t database_options_check (const database_options_t *options, store_error_t *error);

/* Connects once, judges server and schema as a start on this data directory would (which may be
 * missing; NULL: none), and changes nothing. found: a line about it. Waits some seconds for each
 * host. STORE_ERROR_AWAY: it is out of reach now. */
store_code_t database_probe (const database_options_t *options, const char *directory,
                             char found[DATABASE_FOUND_SIZE], store_error_t *error);

/* Tells of each file outside of /etc and /usr that a connection may read, there or not: passwords,
 * certificates, keys. To be allowed before the process gives up all others. */
void database_files (const database_options_t *options,
                     void (*file) (void *context, const char *path), void *context);

/* What follows is a history of its own: cursors of the old one find a gap. Only the broker of this
 * data directory may do it, which owns the data since this epoch, and owns it anew behind it:
 * between an end and a beginning another one could go on with the old history.
 * STORE_ERROR_FENCED: one does already. */
store_code_t database_begin_history (const database_options_t *options, const char *directory,
                                     uint64_t epoch, store_error_t *error);

/* An empty database becomes what a copy is (store_adopt), in one transaction: it is all there, or
 * nothing is. */
typedef struct database_restore {
    const char *directory; /* of the copy */
    uint64_t generation;   /* of its history, and of the database's then */
    const char *home;      /* the data directory of its next owner, which becomes an instance */
    /* The next large body, of which the bytes are read from *fd on; that is closed. *fd -1: that
     * was the last one. */
    store_code_t (*blob) (void *context, uint8_t *hash, uint64_t *bytes, int *fd,
                          store_error_t *error);
    /* Everything but the commit is done. */
    store_code_t (*ready) (void *context, store_error_t *error);
    void *context;
    uint64_t tasks; /* answer */
    bool unknown;   /* answer, beside STORE_ERROR_AWAY: the commit may have landed */
} database_restore_t;

/* *there: the database has the data of this history, all of it, and it may be in use by now. Else
 * it is empty, and may be filled. generation 0: none. STORE_ERROR_FOREIGN: it has something else.
 * STORE_ERROR_OWNED: somebody is making its tables. */
store_code_t database_restore_look (const database_options_t *options, uint64_t generation,
                                    bool *there, store_error_t *error);
/* Errors of database_restore_look besides. After any error nothing of it is there, unless it is
 * unknown. */
store_code_t database_restore (const database_options_t *options, database_restore_t *restore,
                               store_error_t *error);

#endif
