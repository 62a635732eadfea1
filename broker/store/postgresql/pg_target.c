/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_target.h"

#include <ctype.h>
#include <errno.h>
#include <libpq-fe.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "store/postgresql/pg_line.h"
#include "store/postgresql/pg_passfile.h"

enum {
    TARGET_KEYWORDS_MAX = 64, /* libpq knows about forty */
    SCHEMA_BYTES_MAX = 63,    /* as the server cuts names */
    DATABASE_NAME_SIZE = SCHEMA_BYTES_MAX + 1
};

/* What the URI leaves open. A connection whose other end is gone is noticed within seconds. */
static const char *const DEFAULTS[][2] = {
    {"connect_timeout", "3"},    {"keepalives_idle", "2"},     {"keepalives_interval", "1"},
    {"keepalives_count", "3"},   {"tcp_user_timeout", "4000"}, {"application_name", "taskmq"},
    {"client_encoding", "UTF8"},
};

/* Which server it has to be. Where the list of hosts is ours the link finds out what is set to only
 * read (check_writes), and passes a host by; where it is libpq's, libpq has to. */
#define SESSION_ATTRIBUTES "target_session_attrs"

static const char *keyword_value (const pg_target_t *self, const char *keyword)
{
    for (size_t i = 0; self->keywords[i] != NULL; i++)
        if (strcmp (self->keywords[i], keyword) == 0)
            return self->values[i];
    return NULL;
}

static void add_keyword (pg_target_t *self, size_t *count, const char *keyword, const char *value)
{
    if (*count == TARGET_KEYWORDS_MAX || keyword_value (self, keyword) != NULL)
        return;
    self->keywords[*count] = memory_text (keyword);
    self->values[(*count)++] = memory_text (value);
}

/* All hosts are sockets or the loopback: nobody listens in between. */
static bool are_local (const char *hosts)
{
    for (const char *host = hosts; host != NULL; host = strchr (host, ',')) {
        host += *host == ',';
        size_t length = strcspn (host, ",");
        bool loopback = (length == 9 && strncmp (host, "localhost", 9) == 0) ||
                        (length == 9 && strncmp (host, "127.0.0.1", 9) == 0) ||
                        (length == 3 && strncmp (host, "::1", 3) == 0);
        if (length > 0 && *host != '/' && *host != '@' && !loopback)
            return false;
    }
    return true;
}

/* What the URI leaves open libpq takes from the environment; a service may name any host. */
static const char *given_by (const pg_target_t *self, const char *keyword, const char *variable)
{
    const char *value = keyword_value (self, keyword);
    return value != NULL ? value : getenv (variable);
}

static bool is_local (const pg_target_t *self)
{
    return are_local (given_by (self, "host", "PGHOST")) &&
           given_by (self, "hostaddr", "PGHOSTADDR") == NULL &&
           given_by (self, "service", "PGSERVICE") == NULL;
}

/* As libpq finds it: a database that nobody names has the name of the role, and a role that nobody
 * names that of the login. */
static void name_database (const pg_target_t *self, char name[DATABASE_NAME_SIZE])
{
    const bool service = given_by (self, "service", "PGSERVICE") != NULL; /* it may name one */
    const char *given = given_by (self, "dbname", "PGDATABASE");
    if (given == NULL && !service)
        given = given_by (self, "user", "PGUSER");
    PQconninfoOption *defaults = PQconndefaults ();
    for (const PQconninfoOption *at = defaults; at != NULL && at->keyword != NULL; at++)
        if (given == NULL && !service && strcmp (at->keyword, "user") == 0)
            given = at->val;
    snprintf (name, DATABASE_NAME_SIZE, "%s", given == NULL ? "?" : given);
    PQconninfoFree (defaults);
}

/* Those of a service only libpq knows. */
static void describe (pg_target_t *self)
{
    char text[256];
    char list[PG_HOSTS_LIST_SIZE];
    char name[DATABASE_NAME_SIZE];
    const char *service = given_by (self, "service", "PGSERVICE");
    name_database (self, name);
    pg_hosts_list (&self->hosts, list);
    snprintf (text, sizeof (text), "database %.60s at %s%.111s", name,
              service == NULL ? "" : "service ", service == NULL ? list : service);
    self->where = memory_text (text);
}

/* Those of a service only libpq knows. */
static void find_hosts (pg_target_t *self, int64_t lease_ms)
{
    bool known = given_by (self, "service", "PGSERVICE") == NULL;
    pg_hosts_init (&self->hosts, known ? given_by (self, "host", "PGHOST") : NULL,
                   known ? given_by (self, "hostaddr", "PGHOSTADDR") : NULL,
                   known ? given_by (self, "port", "PGPORT") : NULL,
                   keyword_value (self, "connect_timeout"), lease_ms);
    self->hosts.is_final = pg_refusal_is_final;
}

static bool are_several (const char *list)
{
    return list != NULL && strchr (list, ',') != NULL;
}

/* Of several hosts, or of those of a service. */
static bool libpq_chooses (const pg_target_t *self)
{
    return self->hosts.count == 0 && (given_by (self, "service", "PGSERVICE") != NULL ||
                                      are_several (given_by (self, "host", "PGHOST")) ||
                                      are_several (given_by (self, "hostaddr", "PGHOSTADDR")));
}

/* Whoever names a root certificate wants the server verified. libpq would go on in plain text with
 * "prefer", and with "require" where there is no such file. */
static store_code_t choose_tls (pg_target_t *self, size_t *count, store_error_t *error)
{
    const char *mode = keyword_value (self, "sslmode");
    const char *root = keyword_value (self, "sslrootcert");
    bool weak = mode != NULL && (strcmp (mode, "disable") == 0 || strcmp (mode, "allow") == 0 ||
                                 strcmp (mode, "prefer") == 0);
    if (root != NULL && weak)
        return store_fail (error, STORE_ERROR_OPTIONS,
                           "database/uri: sslrootcert verifies nothing with sslmode=%s: leave "
                           "sslmode out (verify-full), or sslrootcert",
                           mode);
    for (size_t i = 0; root != NULL && mode != NULL && i < *count; i++)
        if (strcmp (self->keywords[i], "sslmode") == 0 && strcmp (mode, "require") == 0) {
            free (self->values[i]);
            self->values[i] = memory_text ("verify-ca");
            return STORE_OK;
        }
    bool verifies = !is_local (self) || given_by (self, "sslrootcert", "PGSSLROOTCERT") != NULL;
    add_keyword (self, count, "sslmode", verifies ? "verify-full" : "prefer");
    return STORE_OK;
}

/* One that is named is meant, whether the server asks for a password or not. */
static store_code_t choose_passfile (pg_target_t *self, size_t *count, const char *configured,
                                     store_error_t *error)
{
    if (configured != NULL && keyword_value (self, "passfile") != NULL)
        return store_fail (error, STORE_ERROR_OPTIONS,
                           "database/uri names a passfile, and so does database/passfile: leave "
                           "one of them out");
    if (configured != NULL)
        add_keyword (self, count, "passfile", configured);
    const char *path = keyword_value (self, "passfile");
    return path == NULL ? STORE_OK : pg_passfile_check (path, error);
}

/* libpq reads these when it connects, and would refuse each connection for ever: as if the server
 * were away. It passes over blanks around them. */
static store_code_t check_numbers (const pg_target_t *self, store_error_t *error)
{
    static const char *const NUMBERS[] = {"connect_timeout",  "keepalives",
                                          "keepalives_idle",  "keepalives_interval",
                                          "keepalives_count", "tcp_user_timeout"};
    for (size_t i = 0; i < sizeof (NUMBERS) / sizeof (NUMBERS[0]); i++) {
        const char *value = keyword_value (self, NUMBERS[i]);
        char *end = NULL;
        errno = 0;
        long number = value == NULL ? 0 : strtol (value, &end, 10);
        bool good = value == NULL || (errno == 0 && end != value && number >= INT_MIN &&
                                      number <= INT_MAX && end[strspn (end, " \t\n\r\f\v")] == 0);
        if (!good)
            return store_fail (error, STORE_ERROR_OPTIONS, "database/uri: %s=%.40s is no number",
                               NUMBERS[i], value);
    }
    return STORE_OK;
}

static store_code_t take_uri (pg_target_t *self, const database_options_t *options,
                              store_error_t *error)
{
    char *why = NULL;
    PQconninfoOption *given = PQconninfoParse (options->uri, &why);
    if (given == NULL) {
        const char *said = why == NULL ? "no memory" : why;
        store_fail (error, STORE_ERROR_OPTIONS, "database/uri: %.*s", pg_line_length (said, 300),
                    said);
        PQfreemem (why);
        return error->code;
    }
    size_t count = 0;
    bool secret = false;
    for (const PQconninfoOption *option = given; option->keyword != NULL; option++) {
        bool set = option->val != NULL && option->val[0] != '\0';
        secret = secret || (set && strcmp (option->keyword, "password") == 0);
        if (set)
            add_keyword (self, &count, option->keyword, option->val);
    }
    PQconninfoFree (given);
    if (secret)
        return store_fail (error, STORE_ERROR_OPTIONS,
                           "database/uri has a password in it, which others could see: put it into "
                           "a passfile (database/passfile, mode 0600)");
    store_code_t code = choose_passfile (self, &count, options->passfile, error);
    if (code == STORE_OK)
        code = choose_tls (self, &count, error);
    if (code == STORE_OK)
        code = check_numbers (self, error);
    for (size_t i = 0; i < sizeof (DEFAULTS) / sizeof (DEFAULTS[0]); i++)
        add_keyword (self, &count, DEFAULTS[i][0], DEFAULTS[i][1]);
    find_hosts (self, options->lease_ms);
    add_keyword (self, &count, SESSION_ATTRIBUTES, libpq_chooses (self) ? "read-write" : "primary");
    describe (self);
    return code != STORE_OK ? code
                            : pg_hosts_check (&self->hosts, (const char *const *) self->keywords,
                                              (const char *const *) self->values, error);
}

static bool is_plain_name (const char *name)
{
    size_t length = strlen (name);
    if (length == 0 || length > SCHEMA_BYTES_MAX || isdigit ((unsigned char) name[0]))
        return false;
    for (; *name != '\0'; name++)
        if (!islower ((unsigned char) *name) && !isdigit ((unsigned char) *name) && *name != '_')
            return false;
    return true;
}

static bool is_durable (const char *synchronous_commit)
{
    return strcmp (synchronous_commit, "on") == 0 || strcmp (synchronous_commit, "local") == 0 ||
           strcmp (synchronous_commit, "remote_apply") == 0;
}

/* Whatever the role or the database were set to, a session of ours is set like this. Every
 * statement walks an index in its order: a plan that was made while a table was small, or before
 * anything was counted in it, would scan or sort it when it is large. */
static store_code_t make_settings (pg_target_t *self, const database_options_t *options,
                                   store_error_t *error)
{
    char text[768];
    const char *schema = options->schema == NULL ? "taskmq" : options->schema;
    const char *commit = options->synchronous_commit == NULL ? "on" : options->synchronous_commit;
    if (!is_plain_name (schema) || strncmp (schema, "pg_", 3) == 0)
        return store_fail (error, STORE_ERROR_OPTIONS,
                           "database/schema '%.100s': a plain name has small letters, digits and _",
                           schema);
    if (!is_durable (commit))
        return store_fail (error, STORE_ERROR_OPTIONS,
                           "database/synchronous_commit '%.100s': on, remote_apply or local",
                           commit);
    snprintf (
        text, sizeof (text),
        "SET search_path = \"%s\"; SET synchronous_commit = %s; SET jit = off;"
        " SET plan_cache_mode = force_generic_plan; SET statement_timeout = 0;"
        " SET lock_timeout = 0; SET idle_session_timeout = 0;"
        " SET client_connection_check_interval = '2s';"
        " SET idle_in_transaction_session_timeout = '5s';"
        " SET default_transaction_isolation = 'read committed';"
        " SET default_transaction_deferrable = off; SET bytea_output = 'hex';"
        " SET row_security = off; SET enable_seqscan = off; SET enable_hashjoin = off;"
        " SET enable_mergejoin = off;"
        " SET enable_sort = off; SET enable_bitmapscan = off; SET client_min_messages = error",
        schema, commit);
    self->is_local = strcmp (commit, "local") == 0;
    self->schema = memory_text (schema);
    self->settings = memory_text (text);
    return STORE_OK;
}

store_code_t pg_target_init (pg_target_t *self, const database_options_t *options,
                             store_error_t *error)
{
    memset (self, 0, sizeof (*self));
    if (options == NULL || options->uri == NULL || options->uri[0] == '\0')
        return store_fail (error, STORE_ERROR_OPTIONS,
                           "store postgresql needs database/uri (--database URI)");
    self->keywords = memory_zero (TARGET_KEYWORDS_MAX + 1, sizeof (char *));
    self->values = memory_zero (TARGET_KEYWORDS_MAX + 1, sizeof (char *));
    store_code_t code = take_uri (self, options, error);
    return code == STORE_OK ? make_settings (self, options, error) : code;
}

void pg_target_destroy (pg_target_t *self)
{
    for (size_t i = 0; self->keywords != NULL && self->keywords[i] != NULL; i++) {
        free (self->keywords[i]);
        free (self->values[i]);
    }
    free (self->keywords);
    free (self->values);
    free (self->settings);
    free (self->schema);
    free (self->where);
    memset (self, 0, sizeof (*self));
}

void pg_target_place (const pg_target_t *self, char out[PG_PLACE_SIZE])
{
    char answered[PG_HOSTS_LIST_SIZE];
    pg_hosts_answered (&self->hosts, answered);
    snprintf (out, PG_PLACE_SIZE, "%s%s%s%s, schema %s", self->where,
              answered[0] == '\0' ? "" : " (", answered, answered[0] == '\0' ? "" : " answered)",
              self->schema);
}

store_code_t pg_target_judge (const pg_target_t *self, pg_refusals_t which, store_error_t *error)
{
    return pg_refusal_look (&self->hosts, (const char *const *) self->keywords,
                            (const char *const *) self->values, which, self->where, error);
}
