/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The file of passwords. libpq passes over one that is not there, or that others may read, and then
 * says no more than that it has no password. */
#ifndef TASKMQ_STORE_PG_PASSFILE_H
#define TASKMQ_STORE_PG_PASSFILE_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "store/error.h"

enum { PG_PASSFILE_WHY_SIZE = 264 };

/* STORE_ERROR_ACCESS with the file and the reason: libpq would pass over it. */
store_code_t pg_passfile_check (const char *path, store_error_t *error);
/* Why a connection that was refused had no password: which file libpq looked at, and that it cannot
 * be used or which line it lacks. named: by the configuration, and not by libpq itself. */
void pg_passfile_explain (PGconn *db, bool named, char why[PG_PASSFILE_WHY_SIZE]);

#endif
