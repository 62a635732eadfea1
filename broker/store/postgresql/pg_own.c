/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "store/postgresql/pg_schema.h"

enum {
    INSTANCE_BYTES = 16,
    INSTANCE_TEXT_SIZE = 2 * INSTANCE_BYTES + 1,
    OWNER_TEXT_SIZE = INSTANCE_TEXT_SIZE + 1 + HOST_NAME_MAX + 1,
    TRIES = 5 /* each waits 2 s for locks */
};

enum { SHARD, PIDS, TERMINATE, TAKE, FENCE, RELEASE, STATEMENTS };

static const char *const TEXTS[STATEMENTS] = {
    [SHARD] = "SELECT owner, epoch, generation, system_id, timeline FROM shard"
              " WHERE shard = $1::int2 FOR UPDATE",
    [PIDS] = "SELECT pid_commit, pid_write FROM shard WHERE shard = $1::int2"
             " AND (owner IS NULL OR starts_with (owner, $2::text))",
    [TERMINATE] = "SELECT pg_terminate_backend (pid) FROM pg_stat_activity"
                  " WHERE pid IN ($1::int4, $2::int4) AND usename = current_user"
                  " AND application_name LIKE 'taskmq %'",
    [TAKE] = "UPDATE shard SET epoch = $2::int8, owner = $3::text, system_id = $4::int8,"
             " timeline = $5::int4, generation = $6::int8, beat = beat + 1"
             " WHERE shard = $1::int2",
    [FENCE] = "UPDATE fence SET epoch = $2::int8 WHERE shard = $1::int2",
    [RELEASE] = "UPDATE shard SET owner = NULL WHERE shard = $1::int2 AND epoch = $2::int8",
};

/* The instance. */

static store_code_t path_failed (const char *path, store_error_t *error)
{
    return store_fail (error, errno == ENOSPC ? STORE_ERROR_FULL : STORE_ERROR_ACCESS, "%s: %s",
                       path, strerror (errno));
}

/* A new id, durable before it is used. */
static store_code_t make_instance (const char *directory, const char *path,
                                   char text[INSTANCE_TEXT_SIZE], store_error_t *error)
{
    uint8_t random[INSTANCE_BYTES];
    char fresh[PATH_MAX + 8];
    if (getrandom (random, sizeof (random), 0) != (ssize_t) sizeof (random))
        return store_fail (error, STORE_ERROR_IO, "the system gives no random bytes");
    for (size_t i = 0; i < sizeof (random); i++)
        snprintf (text + 2 * i, 3, "%02x", random[i]);
    snprintf (fresh, sizeof (fresh), "%s.new", path);
    int fd = open (fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool done = fd >= 0 && write (fd, text, INSTANCE_TEXT_SIZE - 1) == INSTANCE_TEXT_SIZE - 1 &&
                fsync (fd) == 0;
    done = fd >= 0 && close (fd) == 0 && done && rename (fresh, path) == 0;
    if (!done)
        return path_failed (path, error);
    int place = open (directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    done = place >= 0 && fsync (place) == 0;
    if (place >= 0)
        close (place);
    return done ? STORE_OK : path_failed (directory, error);
}

static store_code_t read_instance (const char *directory, char text[INSTANCE_TEXT_SIZE],
                                   store_error_t *error)
{
    char path[PATH_MAX];
    snprintf (path, sizeof (path), "%s/" PG_INSTANCE_FILE, directory);
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return make_instance (directory, path, text, error);
    if (fd < 0)
        return path_failed (path, error);
    ssize_t length = read (fd, text, INSTANCE_TEXT_SIZE - 1);
    close (fd);
    text[length < 0 ? 0 : length] = '\0';
    if (strspn (text, "0123456789abcdef") != INSTANCE_TEXT_SIZE - 1)
        return store_fail (error, STORE_ERROR_CORRUPT,
                           "%s: is no id of an instance; remove it to make another", path);
    return STORE_OK;
}

/* With the host's name behind it, for people. */
static void owner_text (const char *instance, char owner[OWNER_TEXT_SIZE])
{
    char host[HOST_NAME_MAX + 1] = "";
    if (gethostname (host, sizeof (host) - 1) != 0)
        snprintf (host, sizeof (host), "unknown");
    snprintf (owner, OWNER_TEXT_SIZE, "%s %s", instance, host);
}

/* Adopting. */

typedef struct adoption {
    pg_store_t *store;
    pg_link_t link;
    char instance[INSTANCE_TEXT_SIZE];
    pg_owned_t *out;
} adoption_t;

static store_code_t judge_owner (const adoption_t *self, const PGresult *row, store_error_t *error)
{
    const pg_target_t *target = &self->store->target;
    const char *owner = pg_text (row, 0, 0);
    int64_t system_id = pg_int8 (row, 0, 3);
    if (!pg_is_null (row, 0, 0) && strncmp (owner, self->instance, INSTANCE_TEXT_SIZE - 1) != 0)
        return store_fail (error, STORE_ERROR_OWNED,
                           "%s: another broker owns the data (instance %.60s); if that has ended "
                           "for good: UPDATE %s.shard SET owner = NULL",
                           target->where, owner, target->schema);
    if (system_id != 0 && system_id != atomic_load (&self->store->target.system_id))
        return store_fail (error, STORE_ERROR_FOREIGN,
                           "%s: the data was written on another server, so this is a copy; if it "
                           "is the one to go on with: UPDATE %s.shard SET system_id = 0",
                           target->where, target->schema);
    return STORE_OK;
}

/* After a promotion that may have lost something, and where a copy goes on, cursors of the history
 * before have to find a gap. */
static void choose_generation (const adoption_t *self, const PGresult *row)
{
    const pg_store_t *store = self->store;
    pg_owned_t *out = self->out;
    int32_t timeline = pg_int4 (row, 0, 4);
    bool known = timeline != 0;
    bool copied = known && pg_int8 (row, 0, 3) == 0;
    bool promoted = known && timeline != atomic_load (&store->target.timeline);
    out->generation = (uint64_t) pg_int8 (row, 0, 2);
    out->promoted = copied || (promoted && !store->database.failover_synchronous);
    uint64_t fresh = 0;
    if (out->promoted && getrandom (&fresh, sizeof (fresh), 0) == (ssize_t) sizeof (fresh))
        out->generation = fresh >> 1 | 1; /* as everywhere: fits int64, not 0 */
}

static store_code_t take (adoption_t *self, store_error_t *error)
{
    uint64_t rows;
    pg_params_t params;
    char owner[OWNER_TEXT_SIZE];
    const pg_target_t *target = &self->store->target;
    owner_text (self->instance, owner);
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int8 (&params, (int64_t) self->out->epoch);
    pg_param_text (&params, owner);
    pg_param_int8 (&params, atomic_load (&target->system_id));
    pg_param_int4 (&params, atomic_load (&target->timeline));
    pg_param_int8 (&params, (int64_t) self->out->generation);
    store_code_t code = pg_link_change (&self->link, TAKE, &params, &rows, error);
    params.count = 2;
    if (code == STORE_OK)
        code = pg_link_change (&self->link, FENCE, &params, &rows, error);
    if (code == STORE_OK && rows != 2)
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: table %s.fence has no rows",
                           target->where, target->schema);
    return code;
}

static store_code_t adopt (adoption_t *self, store_error_t *error)
{
    PGresult *row = NULL;
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    store_code_t code = pg_link_begin (&self->link, error);
    if (code == STORE_OK)
        code = pg_link_do (&self->link, "SET LOCAL lock_timeout = '2s'", error);
    if (code == STORE_OK)
        code = pg_link_run (&self->link, SHARD, &params, &row, error);
    if (code == STORE_OK && PQntuples (row) != 1)
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: table %s.shard is empty",
                           self->store->target.where, self->store->target.schema);
    if (code == STORE_OK)
        code = judge_owner (self, row, error);
    if (code == STORE_OK) {
        self->out->epoch = (uint64_t) pg_int8 (row, 0, 1) + 1;
        choose_generation (self, row);
        code = take (self, error);
    }
    PQclear (row);
    if (code == STORE_OK)
        code = pg_link_commit (&self->link, error);
    pg_link_rollback (&self->link);
    return code;
}

/* Sessions of the process before this one may stand still with locks: they end. */
static store_code_t terminate_old (adoption_t *self, store_error_t *error)
{
    PGresult *row;
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_text (&params, self->instance);
    store_code_t code = pg_link_run (&self->link, PIDS, &params, &row, error);
    if (code != STORE_OK)
        return code;
    pg_params_clear (&params);
    pg_param_int4 (&params, PQntuples (row) == 0 ? 0 : pg_int4 (row, 0, 0));
    pg_param_int4 (&params, PQntuples (row) == 0 ? 0 : pg_int4 (row, 0, 1));
    PQclear (row);
    return pg_link_run (&self->link, TERMINATE, &params, NULL, error);
}

store_code_t pg_own_adopt (pg_store_t *store, pg_owned_t *out, store_error_t *error)
{
    adoption_t self = {.store = store, .out = out};
    *out = (pg_owned_t){0};
    store_code_t code = read_instance (store->options.directory, self.instance, error);
    if (code != STORE_OK)
        return code;
    pg_link_init (&self.link, &store->target, "adoption", TEXTS, STATEMENTS);
    code = pg_link_open (&self.link, error);
    for (int i = 0; code == STORE_OK && i < TRIES; i++) {
        code = adopt (&self, error);
        if (code != STORE_ERROR_BUSY)
            break;
        code = terminate_old (&self, error);
        if (code == STORE_OK && i == TRIES - 1)
            code = store_fail (error, STORE_ERROR_BUSY, "%s: locks of another session stay taken",
                               store->target.where);
    }
    pg_link_close (&self.link);
    return code;
}

store_code_t pg_own_release (pg_store_t *store, uint64_t epoch, store_error_t *error)
{
    pg_link_t link;
    pg_params_t params;
    pg_link_init (&link, &store->target, "end", TEXTS, STATEMENTS);
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int8 (&params, (int64_t) epoch);
    store_code_t code = pg_link_open (&link, error);
    if (code == STORE_OK)
        code = pg_link_run (&link, RELEASE, &params, NULL, error);
    pg_link_close (&link);
    return code;
}
