/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The store "postgresql" of a build without libpq: it says what is missing. */
#include "store/postgresql/database.h"
#include "store/store_backend.h"

static const char LACK[] = "this taskmqd was built without PostgreSQL: install libpq-dev (Debian) "
                           "and build it again";

static store_code_t absent_open (store_t **out, const store_options_t *options, boot_t *boot,
                                 store_error_t *error)
{
    (void) out;
    (void) options;
    (void) boot;
    return store_fail (error, STORE_ERROR_ACCESS, "%s", LACK);
}

const store_backend_t store_backend_postgresql = {.uri = "postgresql", .open = absent_open};

store_code_t database_options_check (const database_options_t *options, store_error_t *error)
{
    (void) options;
    return store_fail (error, STORE_ERROR_ACCESS, "%s", LACK);
}

store_code_t database_probe (const database_options_t *options, const char *directory,
                             char found[DATABASE_FOUND_SIZE], store_error_t *error)
{
    (void) options;
    (void) directory;
    found[0] = '\0';
    return store_fail (error, STORE_ERROR_ACCESS, "%s", LACK);
}

store_code_t database_begin_history (const database_options_t *options, const char *directory,
                                     uint64_t epoch, store_error_t *error)
{
    (void) options;
    (void) directory;
    (void) epoch;
    return store_fail (error, STORE_ERROR_ACCESS, "%s", LACK);
}

store_code_t database_restore_look (const database_options_t *options, uint64_t generation,
                                    bool *there, store_error_t *error)
{
    (void) options;
    (void) generation;
    *there = false;
    return store_fail (error, STORE_ERROR_ACCESS, "%s", LACK);
}

store_code_t database_restore (const database_options_t *options, database_restore_t *restore,
                               store_error_t *error)
{
    (void) options;
    (void) restore;
    return store_fail (error, STORE_ERROR_ACCESS, "%s", LACK);
}

void database_files (const database_options_t *options,
                     void (*file) (void *context, const char *path), void *context)
{
    (void) options;
    (void) file;
    (void) context;
}
