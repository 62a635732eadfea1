/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Names as numbers: the hot row and its indexes hold integers, two small tables the texts. Each
 * connection has a name_numbers_t of its own. A number always means the same name. Queues and
 * sessions go with their last task and may come again under another number, so only the writer,
 * which does that, remembers the numbers of their names. */
#ifndef TASKMQ_STORE_NAMES_H
#define TASKMQ_STORE_NAMES_H

#include "store/name_kind.h"
#include "store/number_map.h"
#include "store/sqlite/sql.h"

enum { NAMES_STATEMENTS = 6 };

typedef struct name_numbers {
    sqlite3 *db;
    bool writer;
    sqlite3_stmt *statements[NAMES_STATEMENTS];
    struct name_entry **entries;
    size_t entries_count;
    size_t entries_capacity;
    const struct name_entry *found_last[NAME_SESSION + 1]; /* tasks in a row have the same names */
    number_map_t by_text;                                  /* hash to position + 1 in entries */
    number_map_t by_id;                                    /* kind's table and id to position + 1 */
} name_numbers_t;

store_code_t names_open (name_numbers_t *self, sqlite3 *db, bool writer, store_error_t *error);
void names_close (name_numbers_t *self); /* before the connection; accepts an all-zero object */
/* Forgets everything: after a rollback, which may have taken back new names. */
void names_forget (name_numbers_t *self);

/* The number of a name; ns is 0 for a namespace. An empty text is number 0. *id is 0 as well when
 * the name is not stored. */
store_code_t names_find (name_numbers_t *self, name_kind_t kind, int64_t ns, const char *text,
                         int64_t *id, store_error_t *error);
/* As names_find, but stores a name that is not there. For the writer, inside its transaction. */
store_code_t names_add (name_numbers_t *self, name_kind_t kind, int64_t ns, const char *text,
                        int64_t *id, store_error_t *error);
/* The writer has removed the name, a queue or session, from the table. */
void names_removed (name_numbers_t *self, name_kind_t kind, int64_t id);
/* The text of a number, "" for 0. Valid until names_forget, names_close or names_trim. */
store_code_t names_text (name_numbers_t *self, name_kind_t kind, int64_t id, const char **text,
                         store_error_t *error);
/* Forgets everything when it has become much. Only between two uses of texts. */
void names_trim (name_numbers_t *self);
/* Column `sum` of a name; ns is 0 for a namespace. */
uint64_t names_sum (name_kind_t kind, int64_t ns, const char *text);

#endif
