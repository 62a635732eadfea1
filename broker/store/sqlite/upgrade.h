/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tables of an earlier version become those of this one, at the start, before anything else reads
 * them. */
#ifndef TASKMQ_STORE_UPGRADE_H
#define TASKMQ_STORE_UPGRADE_H

#include "store/sqlite/sql.h"

/* Does nothing where the tables are of this version, or missing: *from is 0 then, else the version
 * that was found.
 *
 * Copies the tables and the journal first (`copies`) into backups/before-schema-N, N being the
 * first step: whole and synced, or there is none. Then each step is one transaction, so whenever
 * this is ended, by a kill, a full disk or a loss of power, the tables are of one version, and the
 * next start goes on. */
store_code_t upgrade_run (const store_options_t *options, bool copies, int64_t *from,
                          store_error_t *error);

/* A step to a version from the one before. It finds a transaction open. */
typedef struct upgrade_step {
    int to;
    store_code_t (*run) (sqlite3 *db, store_error_t *error);
} upgrade_step_t;
/* In order, from the one behind SCHEMA_TABLES_OLDEST to SCHEMA_TABLES_VERSION. */
extern const upgrade_step_t UPGRADE_STEPS[];
extern const size_t UPGRADE_STEPS_COUNT;

#endif
