/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* PostgreSQL as the store, as its owner sees it: what the configuration says to it, and what it
 * says to the log. */
#ifndef TASKMQ_BROKER_DATABASE_H
#define TASKMQ_BROKER_DATABASE_H

#include "config/config.h"
#include "exits.h"
#include "owning.h"
#include "store/postgresql/database_options.h"

enum { DATABASE_ERROR_SIZE = 4096 + 256 };

/* False: broker/store is another one. The texts are the configuration's. owning: who is told of an
 * owner that is waited for; NULL: the store says nothing to the log. */
bool database_fill (database_options_t *out, const config_t *config, owning_t *owning);

/* EXITS_USAGE with a sentence: the configuration has what no server could mend. */
exits_t database_judge_options (const config_t *config, char error[DATABASE_ERROR_SIZE]);

/* What can be seen without connecting, and without touching anything: that the data directory
 * (NULL: not known) is not that of a broker on another store. Also of a broker on SQLite, whose
 * directory may be one of a broker on PostgreSQL. EXITS_OK, or EXITS_DATA with a sentence. */
exits_t database_judge (const config_t *config, const char *data, char error[DATABASE_ERROR_SIZE]);
/* For what works on the files of SQLite. EXITS_USAGE with a sentence that says what to do with
 * PostgreSQL instead, where that is the store; what: "--check". */
exits_t database_refuse (const config_t *config, const char *what, const char *instead,
                         char error[DATABASE_ERROR_SIZE]);

#endif
