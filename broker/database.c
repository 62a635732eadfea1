/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "database.h"

#include <stdio.h>
#include <unistd.h>

#include "log/log.h"
#include "store/postgresql/database.h"

enum { DIRECTORY_PATH_SIZE = 4096 + 64 };

/* On any thread of the store. */
static void say (void *context, database_word_t word, const char *text)
{
    switch (word) {
    case DATABASE_STANDBY: owning_meets (context, text); break;
    case DATABASE_ADOPTED:
        owning_ends (context);
        log_write (LOG_LEVEL_WARNING, "DATABASE-ADOPTED", text, NULL);
        break;
    case DATABASE_UPGRADED: log_write (LOG_LEVEL_INFO, "DATABASE-UPGRADED", text, NULL); break;
    case DATABASE_OWNED:
        owning_ends (context);
        log_write (LOG_LEVEL_INFO, "DATABASE-OWNED", text, NULL);
        break;
    case DATABASE_AWAY: log_write (LOG_LEVEL_WARNING, "DATABASE-LOST", text, NULL); break;
    case DATABASE_BACK: log_write (LOG_LEVEL_INFO, "DATABASE-FOUND", text, NULL); break;
    case DATABASE_TIMELINE: log_write (LOG_LEVEL_WARNING, "DATABASE-TIMELINE", text, NULL); break;
    case DATABASE_UNREPLICATED:
        log_write (LOG_LEVEL_WARNING, "DATABASE-UNREPLICATED", text, NULL);
        break;
    case DATABASE_UNSUMMED: log_write (LOG_LEVEL_WARNING, "DATABASE-UNSUMMED", text, NULL); break;
    case DATABASE_PINNED: log_write (LOG_LEVEL_WARNING, "DATABASE-PINNED", text, NULL); break;
    case DATABASE_BLOBS: log_write (LOG_LEVEL_WARNING, "DATABASE-BLOBS", text, NULL); break;
    case DATABASE_WAITS: owning_waits (context); break;
    }
}

static bool is_store (const config_t *config)
{
    return config->numbers[CONFIG_STORE] == CONFIG_STORE_POSTGRESQL;
}

bool database_fill (database_options_t *out, const config_t *config, owning_t *owning)
{
    static const char *const commits[] = {"on", "remote_apply", "local"}; /* as in the table */
    *out =
        (database_options_t){.uri = config_text (config, CONFIG_DATABASE_URI),
                             .passfile = config_text (config, CONFIG_DATABASE_PASSFILE),
                             .schema = config_text (config, CONFIG_DATABASE_SCHEMA),
                             .synchronous_commit = commits[config->numbers[CONFIG_DATABASE_COMMIT]],
                             .failover_synchronous = config->numbers[CONFIG_DATABASE_FAILOVER] != 0,
                             .standby = config->numbers[CONFIG_STANDBY] != 0,
                             .gives_up = config->accept_rollback,
                             .lease_ms = (int64_t) config->numbers[CONFIG_LEASE],
                             .say = owning != NULL ? say : NULL,
                             .context = owning};
    return is_store (config);
}

exits_t database_judge_options (const config_t *config, char error[DATABASE_ERROR_SIZE])
{
    store_error_t met;
    database_options_t options;
    if (!database_fill (&options, config, NULL) ||
        database_options_check (&options, &met) != STORE_ERROR_OPTIONS)
        return EXITS_OK;
    snprintf (error, DATABASE_ERROR_SIZE, "%s", met.text);
    return EXITS_USAGE;
}

/* Files. */

static exits_t fail (char error[DATABASE_ERROR_SIZE], const char *path, const char *why)
{
    snprintf (error, DATABASE_ERROR_SIZE, "%.4000s: %s", path, why);
    return EXITS_DATA;
}

static bool is_there (const char *directory, const char *name)
{
    char path[DIRECTORY_PATH_SIZE];
    snprintf (path, sizeof (path), "%s/%s", directory, name);
    return access (path, F_OK) == 0;
}

exits_t database_judge (const config_t *config, const char *data, char error[DATABASE_ERROR_SIZE])
{
    if (!is_store (config) && data != NULL && config->numbers[CONFIG_STORE] == CONFIG_STORE_SQLITE)
        return !is_there (data, DATABASE_INSTANCE_FILE)
                   ? EXITS_OK
                   : fail (error, data,
                           "its tasks are in PostgreSQL (--store postgresql), and nothing of them "
                           "would be here. To begin with SQLite, name another directory");
    if (!is_store (config))
        return EXITS_OK;
    if (data != NULL && is_there (data, "taskmq.db"))
        return fail (error, data,
                     "its tasks are in taskmq.db, and PostgreSQL would have none of them. Name "
                     "another directory, and take them there by 'taskctl backup' and --restore");
    return EXITS_OK;
}

exits_t database_refuse (const config_t *config, const char *what, const char *instead,
                         char error[DATABASE_ERROR_SIZE])
{
    if (!is_store (config))
        return EXITS_OK;
    snprintf (error, DATABASE_ERROR_SIZE,
              "%s works on the files of broker/store sqlite. With postgresql %s", what, instead);
    return EXITS_USAGE;
}
