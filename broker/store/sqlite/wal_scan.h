/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Looks behind the place where SQLite would end a write-ahead log without a word. */
#ifndef TASKMQ_STORE_WAL_SCAN_H
#define TASKMQ_STORE_WAL_SCAN_H

#include <stdbool.h>

#include "store/error.h"

/* STORE_ERROR_CORRUPT when the log of directory/name is damaged in front of commits that are
 * whole, or in its header. A log that ends in its last commit is STORE_OK: a crash while that was
 * written leaves the same, and it was not acknowledged. So is no log at all. To be called before
 * SQLite opens the file, which would cut the log there. Reads all of the log, changes nothing.
 *
 * *cut: such a place was found in a log whose commits were not synced (schema_mark_unsynced). A
 * loss of power leaves such logs, so that is STORE_OK; the commits behind it are lost. */
store_code_t wal_scan (const char *directory, const char *name, bool *cut, store_error_t *error);

#endif
