/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a schema of the store is made of and has in it, and schemas as earlier versions left it. */
#ifndef TASKMQ_TESTS_POSTGRES_TABLES_H
#define TASKMQ_TESTS_POSTGRES_TABLES_H

#include <stdint.h>

#include "support/postgres.h"

/* All tables, columns, indexes and settings, as one text; empty: the schema is not there. Its name
 * does not count. To be freed. */
char *tables_shape (const postgres_t *server, const char *schema);
/* All rows, as one text, without what each start changes. To be freed. */
char *tables_content (const postgres_t *server, const char *schema);
/* Its version; 0: nothing is there. */
int32_t tables_version (const postgres_t *server, const char *schema);
/* A schema that version 1 wrote, brought to this version, 1 or later, by the steps alone; its
 * broker stopped cleanly, on this server. Version 0 makes nothing. */
void tables_make (const postgres_t *server, const char *schema, int32_t version);

#endif
