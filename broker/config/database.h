/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The keys of the section database, as far as they can be judged without the database. */
#ifndef TASKMQ_CONFIG_DATABASE_H
#define TASKMQ_CONFIG_DATABASE_H

#include <stdbool.h>

#include "units.h"

/* A text of database/uri or database/schema. False: `why` says what is wrong with it, and never
 * has a part of the text: it may be a password. */
bool database_check_uri (const char *text, char why[UNITS_ERROR_SIZE]);
bool database_check_schema (const char *text, char why[UNITS_ERROR_SIZE]);

#endif
