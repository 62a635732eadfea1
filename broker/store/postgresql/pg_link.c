/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "core/base/memory.h"
#include "store/postgresql/pg_line.h"
#include "timestamp.h"

enum {
    WAIT_STEP_MS = 100,
    OPEN_WAIT_MS = 5000 /* for each answer while a session is set up: nothing there takes long */
};

/* Errors. */

typedef struct state_meaning {
    const char *state; /* or the class that it begins with */
    store_code_t code;
} state_meaning_t;

/* The first that fits. */
static const state_meaning_t MEANINGS[] = {
    {"08", STORE_ERROR_AWAY},    /* the connection */
    {"57P", STORE_ERROR_AWAY},   /* shut down, crashed, starts, terminated */
    {"25006", STORE_ERROR_AWAY}, /* read only: it is not the primary any more */
    {"25P03", STORE_ERROR_AWAY}, /* idle in a transaction for too long: this process stood still */
    {"25P04", STORE_ERROR_AWAY}, /* the same of PostgreSQL 17, for any that takes long */
    {"53100", STORE_ERROR_FULL}, /* disk full */
    {"53300", STORE_ERROR_AWAY}, /* too many connections */
    {"53", STORE_ERROR_BUSY},    /* out of memory, a limit */
    {"40", STORE_ERROR_BUSY},    /* rolled back by the server */
    {"55P03", STORE_ERROR_BUSY}, /* a lock */
    {"57014", STORE_ERROR_BUSY}, /* cancelled, or took too long */
    {"28", STORE_ERROR_ACCESS},  /* who it is */
    {"3D", STORE_ERROR_ACCESS},  /* no such database */
    {"42501", STORE_ERROR_ACCESS},  /* rights */
    {"3F", STORE_ERROR_FOREIGN},    /* no such schema */
    {"42P01", STORE_ERROR_FOREIGN}, /* no such table */
    {"42703", STORE_ERROR_FOREIGN}, /* no such column */
    {"XX001", STORE_ERROR_CORRUPT}, /* damaged */
    {"XX002", STORE_ERROR_CORRUPT}, /* a damaged index */
};

static store_code_t meaning_of (const char *state)
{
    for (size_t i = 0; state != NULL && i < sizeof (MEANINGS) / sizeof (MEANINGS[0]); i++)
        if (strncmp (state, MEANINGS[i].state, strlen (MEANINGS[i].state)) == 0)
            return MEANINGS[i].code;
    return STORE_ERROR_IO;
}

/* The first line of libpq's text. */
static store_code_t fail (const pg_link_t *self, store_code_t code, const char *text,
                          const char *state, store_error_t *error)
{
    const char *said = text == NULL || text[0] == '\0' ? "no answer" : text;
    return store_fail (error, code, "%s: %.*s%s%s%s", self->target->where,
                       pg_line_length (said, 350), said, state == NULL ? "" : " (",
                       state == NULL ? "" : state, state == NULL ? "" : ")");
}

/* The connection is of no use any more. */
static store_code_t lose (pg_link_t *self, const char *text, store_error_t *error)
{
    fail (self, STORE_ERROR_AWAY, text, NULL, error);
    pg_link_close (self);
    return STORE_ERROR_AWAY;
}

/* What a result says that is not as expected. Clears it. */
static store_code_t judge (pg_link_t *self, PGresult *result, store_error_t *error)
{
    const char *state = result == NULL ? NULL : PQresultErrorField (result, PG_DIAG_SQLSTATE);
    if (result == NULL || PQstatus (self->db) != CONNECTION_OK) {
        PQclear (result);
        return lose (self, PQerrorMessage (self->db), error);
    }
    store_code_t code = meaning_of (state);
    self->conflict = state != NULL && strcmp (state, "23505") == 0;
    self->locked = state != NULL && strcmp (state, "55P03") == 0;
    fail (self, code, PQresultErrorField (result, PG_DIAG_MESSAGE_PRIMARY), state, error);
    PQclear (result);
    if (code == STORE_ERROR_AWAY)
        pg_link_close (self);
    return code;
}

/* Connecting. */

void pg_link_init (pg_link_t *self, pg_target_t *target, const char *name, const char *const *texts,
                   size_t texts_count)
{
    if (texts_count > PG_STATEMENTS_MAX)
        abort (); /* a list of this room is too long */
    *self = (pg_link_t){.target = target, .name = name, .texts = texts, .texts_count = texts_count};
}

void pg_link_close (pg_link_t *self)
{
    PQfinish (self->db);
    self->db = NULL;
    memset (self->prepared, 0, sizeof (self->prepared));
}

void pg_link_move (pg_link_t *self, pg_link_t *from)
{
    pg_link_close (self);
    self->db = from->db;
    self->timeline = from->timeline;
    self->server = from->server;
    self->whole = from->whole;
    self->opened++;
    memcpy (self->prepared, from->prepared, sizeof (self->prepared));
    from->db = NULL;
}

/* Answers that are texts, of the session. */
enum {
    SHOWN_FSYNC,
    SHOWN_FULL_PAGES,
    SHOWN_ENCODING,
    SHOWN_PID,
    SHOWN_STANDBYS,
    SHOWN_SUMS,
    SHOWN_SYSTEM,
    SHOWN_TIMELINE,
    SHOWN_IN_RECOVERY,
    SHOWN_COMMIT,
    SHOWN_START,
    SHOWN_READ_ONLY,
    SHOWN_COLUMNS
};
/* The timeline that is written now: the control file names that of the last checkpoint, which a
 * promotion does not wait for. */
static const char SHOW[] =
    "SELECT current_setting ('fsync'),"
    " current_setting ('full_page_writes'), current_setting ('server_encoding'),"
    " pg_backend_pid ()::text, current_setting ('synchronous_standby_names'),"
    " current_setting ('data_checksums'), system_identifier::text,"
    " CASE WHEN pg_is_in_recovery () THEN '0'"
    " ELSE substr (pg_walfile_name (pg_current_wal_lsn ()), 1, 8) END,"
    " pg_is_in_recovery ()::text, current_setting ('synchronous_commit'),"
    " (extract (epoch FROM pg_postmaster_start_time ()) * 1000000)::int8::text,"
    " CASE WHEN current_setting ('default_transaction_read_only') = 'on' THEN"
    " (SELECT source FROM pg_settings WHERE name = 'default_transaction_read_only') ELSE '' END"
    " FROM pg_control_system ()";

static bool shows (const PGresult *result, int column, const char *value)
{
    return strcmp (PQgetvalue (result, 0, column), value) == 0;
}

static store_code_t refuse (const pg_link_t *self, const char *why, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_ACCESS, "%s: %s", self->target->where, why);
}

/* What the role or the database has does not count. What the server has may be there to keep
 * writers away from it, as from a primary of before: another host may be the right one. */
static store_code_t check_writes (pg_link_t *self, const PGresult *shown, store_error_t *error)
{
    if (shows (shown, SHOWN_IN_RECOVERY, "true"))
        return lose (self, "the server only reads: it follows another one", error);
    if (shows (shown, SHOWN_READ_ONLY, ""))
        return STORE_OK;
    if (!shows (shown, SHOWN_READ_ONLY, "configuration file") &&
        !shows (shown, SHOWN_READ_ONLY, "command line") &&
        !shows (shown, SHOWN_READ_ONLY, "environment variable"))
        return pg_link_do (self, "SET default_transaction_read_only = off", error);
    pg_hosts_pass (&self->target->hosts);
    self->passed = true;
    return lose (self, "the server only reads: default_transaction_read_only is on for all of it",
                 error);
}

static store_code_t check_safe (pg_link_t *self, const PGresult *shown, store_error_t *error)
{
    if (shows (shown, SHOWN_FSYNC, "off"))
        return refuse (self,
                       "fsync is off: what is acknowledged would be lost with the power; set "
                       "fsync = on there",
                       error);
    if (shows (shown, SHOWN_FULL_PAGES, "off"))
        return refuse (self,
                       "full_page_writes is off: a loss of power would damage pages; set "
                       "full_page_writes = on there",
                       error);
    if (!shows (shown, SHOWN_ENCODING, "UTF8"))
        return refuse (
            self, "its encoding is not UTF8: make a database with ENCODING UTF8 TEMPLATE template0",
            error);
    if (shows (shown, SHOWN_COMMIT, "off"))
        return refuse (self, "synchronous_commit stays off: something in between changes sessions",
                       error);
    if (strtol (PQgetvalue (shown, 0, SHOWN_PID), NULL, 10) != PQbackendPID (self->db))
        return refuse (self,
                       "a pooler stands in between, in whatever mode: which session is whose "
                       "nobody can tell then; connect to the server itself",
                       error);
    return STORE_OK;
}

static int64_t shown_number (const PGresult *shown, int column)
{
    return strtoll (PQgetvalue (shown, 0, column), NULL, 10);
}

/* One life of a server: what is in its tables follows from what was there before. Between two of
 * them lies a promotion, or files that somebody exchanged. */
static uint64_t life_of (int64_t system_id, int64_t started_us, int32_t timeline)
{
    const int64_t life[] = {system_id, started_us, timeline};
    return XXH3_64bits (life, sizeof (life)) | 1; /* not 0 */
}

static store_code_t check_same (pg_link_t *self, const PGresult *shown, store_error_t *error)
{
    pg_target_t *target = self->target;
    int64_t system_id = (int64_t) strtoull (PQgetvalue (shown, 0, SHOWN_SYSTEM), NULL, 10);
    int64_t known = atomic_load (&target->system_id);
    if (known != 0 && known != system_id)
        return store_fail (error, STORE_ERROR_FOREIGN,
                           "%s: it is another server than the one with this data (system %lld, "
                           "known %lld)",
                           target->where, (long long) system_id, (long long) known);
    atomic_store (&target->system_id, system_id);
    self->timeline = (int32_t) strtol (PQgetvalue (shown, 0, SHOWN_TIMELINE), NULL, 16);
    atomic_store (&target->timeline, self->timeline);
    self->server = life_of (system_id, shown_number (shown, SHOWN_START), self->timeline);
    atomic_store (&target->unreplicated, shows (shown, SHOWN_STANDBYS, ""));
    atomic_store (&target->unsummed, shows (shown, SHOWN_SUMS, "off"));
    return STORE_OK;
}

bool pg_link_is_over (const pg_link_t *self)
{
    uint64_t whole = atomic_load (&self->target->whole_server);
    return whole != self->whole && whole != self->server;
}

/* Rows of a database that lost something would be told as if they were all, or written over. */
static store_code_t check_whole (pg_link_t *self, store_error_t *error)
{
    uint64_t whole = atomic_load (&self->target->whole_server);
    if (whole == self->server)
        self->whole = whole;
    if (self->judges || whole == 0 || whole == self->server)
        return STORE_OK;
    return lose (self, "it was promoted or started anew, and whether it has all is not known yet",
                 error);
}

static store_code_t check_server (pg_link_t *self, store_error_t *error)
{
    if (PQserverVersion (self->db) < PG_VERSION_MIN)
        return refuse (self, "the server is older than PostgreSQL 14", error);
    store_code_t code = pg_link_do (self, self->target->settings, error);
    if (code == STORE_OK && PQserverVersion (self->db) >= 170000)
        code = pg_link_do (self, "SET transaction_timeout = 0", error);
    if (code != STORE_OK)
        return code;
    PGresult *shown;
    code = pg_link_show (self, SHOW, &shown, error);
    if (code != STORE_OK)
        return code;
    if (PQntuples (shown) != 1 || PQnfields (shown) != SHOWN_COLUMNS)
        code = refuse (self, "it answers something else than what was asked: is it PostgreSQL?",
                       error);
    if (code == STORE_OK)
        code = check_writes (self, shown, error);
    if (code == STORE_OK)
        code = check_safe (self, shown, error);
    if (code == STORE_OK)
        code = check_same (self, shown, error);
    if (code == STORE_OK)
        code = check_whole (self, error);
    PQclear (shown);
    return code;
}

static store_code_t set_up (pg_link_t *self, store_error_t *error)
{
    static const char SET_NAME[] = "SET application_name = 'taskmq ";
    char text[sizeof (SET_NAME) + PG_LINK_NAME_MAX + PG_TAG_SIZE + 1];
    snprintf (text, sizeof (text), "%s%.*s%s%s'", SET_NAME, PG_LINK_NAME_MAX, self->name,
              self->target->tag[0] == '\0' ? "" : " ", self->target->tag);
    store_code_t code = pg_link_do (self, text, error);
    if (code == STORE_OK)
        code = check_server (self, error);
    return code;
}

/* A text is the same in both formats of a result. */
void pg_link_note_waits (pg_link_t *self, const PGresult *ended)
{
    for (int i = 0; i < PQntuples (ended); i++)
        if (!PQgetisnull (ended, i, 0)) {
            const char *names = PQgetvalue (ended, i, 0);
            snprintf (self->waits_for, sizeof (self->waits_for), "%.*s",
                      pg_line_length (names, sizeof (self->waits_for) - 1), names);
        }
}

store_code_t pg_link_end_others (pg_link_t *self, size_t *found, store_error_t *error)
{
    static const char END[] =
        PG_LINK_TERMINATE_WHERE ("application_name = current_setting ('application_name')"
                                 " AND usename = session_user AND datname = current_database ()"
                                 " AND pid <> pg_backend_pid ()");
    PGresult *rows;
    store_code_t code = pg_link_show (self, END, &rows, error);
    if (code == STORE_OK && found != NULL)
        *found = (size_t) PQntuples (rows);
    if (code == STORE_OK)
        pg_link_note_waits (self, rows);
    PQclear (rows);
    return code;
}

/* A server that knows the password may only read just now, or have no session left. A wrong one
 * ends even a broker that was connected once: no failover mends that. */
static store_code_t judge_refused (const pg_link_t *self, const char *why, store_error_t *error)
{
    bool asked =
        PQconnectionNeedsPassword (self->db) != 0 || PQconnectionUsedPassword (self->db) != 0;
    fail (self, STORE_ERROR_AWAY, why, NULL, error);
    return asked ? pg_target_judge (self->target, PG_REFUSALS_PASSWORD, error) : error->code;
}

static store_code_t open_one (pg_link_t *self, store_error_t *error)
{
    char why[PG_HOSTS_WHY_SIZE];
    pg_link_close (self);
    self->late = false;
    self->waits_for[0] = '\0';
    self->whole = atomic_load (&self->target->whole_server);
    self->db = pg_hosts_connect (&self->target->hosts, (const char *const *) self->target->keywords,
                                 (const char *const *) self->target->values, why);
    if (self->db == NULL)
        return store_fail (error, STORE_ERROR_IO, "no memory for a connection");
    if (PQstatus (self->db) != CONNECTION_OK) {
        store_code_t code = judge_refused (self, why, error);
        pg_link_close (self);
        return code;
    }
    /* A socket may take less than what is sent. libpq keeps it, and the wait for the answer sends
     * it, so that this has an end, too. */
    if (PQsetnonblocking (self->db, 1) != 0)
        return lose (self, PQerrorMessage (self->db), error);
    self->opened++;
    PQsetErrorVerbosity (self->db, PQERRORS_VERBOSE); /* with the code of what ends a session */
    int64_t wait_ms_max = self->wait_ms_max;
    if (wait_ms_max == 0 || wait_ms_max > OPEN_WAIT_MS)
        self->wait_ms_max = OPEN_WAIT_MS;
    store_code_t code = set_up (self, error);
    if (code == STORE_OK && self->ends_others)
        code = pg_link_end_others (self, NULL, error);
    self->wait_ms_max = wait_ms_max;
    if (code != STORE_OK)
        pg_link_close (self);
    return code;
}

store_code_t pg_link_open (pg_link_t *self, store_error_t *error)
{
    store_code_t code = STORE_ERROR_AWAY;
    self->passed = true;
    for (size_t i = 0; self->passed && i < pg_hosts_count (&self->target->hosts); i++) {
        self->passed = false;
        code = open_one (self, error);
    }
    return code;
}

/* Running. */

static int64_t now_ms (void)
{
    return clock_ms (CLOCK_MONOTONIC);
}

/* A while, for something to read, or to send. False: the link is lost, took too long, or leads to a
 * server that is over. */
static bool wait_step (pg_link_t *self, int64_t *until_ms, bool sends)
{
    if (*until_ms == 0 && self->ends != NULL && atomic_load (self->ends))
        *until_ms = now_ms () + OPEN_WAIT_MS;
    int64_t left = *until_ms == 0 ? WAIT_STEP_MS : *until_ms - now_ms ();
    if (left < 0 || pg_link_is_over (self))
        return false;
    struct pollfd ready = {.fd = PQsocket (self->db),
                           .events = (short) (sends ? POLLIN | POLLOUT : POLLIN)};
    if (poll (&ready, 1, left < WAIT_STEP_MS ? (int) left : WAIT_STEP_MS) < 0)
        return errno == EINTR;
    return PQconsumeInput (self->db) != 0; /* in any case: TLS may keep what poll does not see */
}

/* Until an answer can be taken without waiting. False: as wait_step. */
static bool wait_answer (pg_link_t *self, int64_t until_ms)
{
    while (PQisBusy (self->db)) {
        int flush = PQflush (self->db);
        if (flush < 0 || !wait_step (self, &until_ms, flush > 0))
            return false;
    }
    return true;
}

/* Until libpq keeps nothing. */
static bool wait_sent (pg_link_t *self, int64_t until_ms)
{
    int flush;
    while ((flush = PQflush (self->db)) > 0)
        if (!wait_step (self, &until_ms, true))
            return false;
    return flush == 0;
}

static int64_t deadline (const pg_link_t *self)
{
    return self->wait_ms_max == 0 ? 0 : now_ms () + self->wait_ms_max;
}

static store_code_t lose_waiting (pg_link_t *self, const char *text, store_error_t *error)
{
    const char *said = PQerrorMessage (self->db);
    self->late = false;
    if (pg_link_is_over (self))
        text = PG_LINK_OVER;
    else if (said[0] != '\0')
        text = said;
    else
        self->late = true;
    return lose (self, text, error);
}

/* The next result, NULL at the end of a query. */
static store_code_t next_result (pg_link_t *self, int64_t until_ms, PGresult **out,
                                 store_error_t *error)
{
    *out = NULL;
    if (!wait_answer (self, until_ms))
        return lose_waiting (self, "it did not answer in time", error);
    *out = PQgetResult (self->db);
    return STORE_OK;
}

static bool is_good (const PGresult *result)
{
    ExecStatusType status = PQresultStatus (result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_IN;
}

/* All results of a query: the last one, or the first error. */
static store_code_t take_results (pg_link_t *self, PGresult **out, store_error_t *error)
{
    PGresult *kept = NULL;
    PGresult *bad = NULL;
    int64_t until_ms = deadline (self);
    while (true) {
        PGresult *result;
        store_code_t code = next_result (self, until_ms, &result, error);
        if (code != STORE_OK) {
            PQclear (kept);
            PQclear (bad);
            return code;
        }
        if (result == NULL)
            break;
        PGresult **place = is_good (result) ? &kept : &bad;
        if (place == &kept || bad == NULL) {
            PQclear (*place);
            *place = result;
        } else {
            PQclear (result);
        }
        if (PQresultStatus (*place) == PGRES_COPY_IN)
            break;
    }
    if (bad != NULL || kept == NULL) {
        PQclear (kept);
        return judge (self, bad, error);
    }
    if (out != NULL)
        *out = kept;
    else
        PQclear (kept);
    return STORE_OK;
}

store_code_t pg_link_missing (const pg_target_t *target, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_AWAY, "%s: is out of reach", target->where);
}

bool pg_link_is_missing (const pg_target_t *target, const store_error_t *error)
{
    store_error_t missing;
    pg_link_missing (target, &missing);
    return error->code == missing.code && strcmp (error->text, missing.text) == 0;
}

/* Whether something can be asked on it. */
static store_code_t check_open (pg_link_t *self, store_error_t *error)
{
    if (self->db == NULL)
        return pg_link_missing (self->target, error);
    return pg_link_is_over (self) ? lose (self, PG_LINK_OVER, error) : STORE_OK;
}

static store_code_t sent (pg_link_t *self, int done, store_error_t *error)
{
    if (done != 0)
        return STORE_OK;
    return lose (self, PQerrorMessage (self->db), error);
}

static void name_of (size_t statement, char name[16])
{
    snprintf (name, 16, "s%zu", statement);
}

static store_code_t prepare (pg_link_t *self, size_t statement, store_error_t *error)
{
    char name[16];
    if (self->prepared[statement])
        return STORE_OK;
    name_of (statement, name);
    store_code_t code =
        sent (self, PQsendPrepare (self->db, name, self->texts[statement], 0, NULL), error);
    if (code == STORE_OK)
        code = take_results (self, NULL, error);
    if (code == STORE_OK)
        self->prepared[statement] = true;
    return code;
}

static store_code_t send_prepared (pg_link_t *self, size_t statement, const pg_params_t *params,
                                   store_error_t *error)
{
    char name[16];
    name_of (statement, name);
    if (params == NULL)
        return sent (self, PQsendQueryPrepared (self->db, name, 0, NULL, NULL, NULL, 1), error);
    return sent (self,
                 PQsendQueryPrepared (self->db, name, params->count, params->values,
                                      params->lengths, params->formats, 1),
                 error);
}

store_code_t pg_link_ask (pg_link_t *self, size_t statement, const pg_params_t *params,
                          store_error_t *error)
{
    store_code_t code = check_open (self, error);
    if (code == STORE_OK)
        code = prepare (self, statement, error);
    return code == STORE_OK ? send_prepared (self, statement, params, error) : code;
}

bool pg_link_is_answered (pg_link_t *self)
{
    return self->db == NULL || PQconsumeInput (self->db) == 0 || PQisBusy (self->db) == 0;
}

store_code_t pg_link_answer (pg_link_t *self, PGresult **out, store_error_t *error)
{
    if (out != NULL)
        *out = NULL;
    return self->db == NULL ? pg_link_missing (self->target, error)
                            : take_results (self, out, error);
}

store_code_t pg_link_run (pg_link_t *self, size_t statement, const pg_params_t *params,
                          PGresult **out, store_error_t *error)
{
    if (out != NULL)
        *out = NULL;
    store_code_t code = pg_link_ask (self, statement, params, error);
    return code == STORE_OK ? pg_link_answer (self, out, error) : code;
}

store_code_t pg_link_change (pg_link_t *self, size_t statement, const pg_params_t *params,
                             uint64_t *rows, store_error_t *error)
{
    PGresult *result;
    *rows = 0;
    store_code_t code = pg_link_run (self, statement, params, &result, error);
    if (code == STORE_OK)
        *rows = strtoull (PQcmdTuples (result), NULL, 10);
    PQclear (result);
    return code;
}

store_code_t pg_link_show (pg_link_t *self, const char *sql, PGresult **out, store_error_t *error)
{
    if (out != NULL)
        *out = NULL;
    store_code_t code = check_open (self, error);
    if (code == STORE_OK)
        code = sent (self, PQsendQuery (self->db, sql), error);
    return code == STORE_OK ? take_results (self, out, error) : code;
}

store_code_t pg_link_do (pg_link_t *self, const char *sql, store_error_t *error)
{
    return pg_link_show (self, sql, NULL, error);
}

store_code_t pg_link_use (pg_link_t *self, const char *const *texts, size_t texts_count,
                          store_error_t *error)
{
    store_code_t code = pg_link_do (self, "DEALLOCATE ALL", error);
    memset (self->prepared, 0, sizeof (self->prepared));
    self->texts = texts;
    self->texts_count = texts_count;
    return code;
}

store_code_t pg_link_begin (pg_link_t *self, store_error_t *error)
{
    return pg_link_do (self, "BEGIN", error);
}

/* The server answers COMMIT of a failed transaction with ROLLBACK and no error. */
store_code_t pg_link_commit (pg_link_t *self, store_error_t *error)
{
    if (self->db != NULL && PQtransactionStatus (self->db) == PQTRANS_INERROR)
        return store_fail (error, STORE_ERROR_IO, "%s: a failed transaction cannot be committed",
                           self->target->where);
    return pg_link_do (self, "COMMIT", error);
}

void pg_link_rollback (pg_link_t *self)
{
    store_error_t ignored;
    if (self->db == NULL)
        return;
    PGTransactionStatusType status = PQtransactionStatus (self->db);
    if (status == PQTRANS_IDLE)
        return;
    bool done = (status == PQTRANS_INTRANS || status == PQTRANS_INERROR) &&
                pg_link_do (self, "ROLLBACK", &ignored) == STORE_OK;
    if (!done)
        pg_link_close (self);
}

/* Queues. */

store_code_t pg_link_queue_begin (pg_link_t *self, const size_t *statements, size_t count,
                                  store_error_t *error)
{
    store_code_t code = check_open (self, error);
    for (size_t i = 0; code == STORE_OK && i < count; i++)
        code = prepare (self, statements[i], error);
    return code == STORE_OK ? sent (self, PQenterPipelineMode (self->db), error) : code;
}

store_code_t pg_link_queue (pg_link_t *self, size_t statement, const pg_params_t *params,
                            store_error_t *error)
{
    return self->db == NULL ? pg_link_missing (self->target, error)
                            : send_prepared (self, statement, params, error);
}

store_code_t pg_link_queue_send (pg_link_t *self, store_error_t *error)
{
    return self->db == NULL ? pg_link_missing (self->target, error)
                            : sent (self, PQpipelineSync (self->db), error);
}

store_code_t pg_link_queue_take (pg_link_t *self, PGresult **out, store_error_t *error)
{
    *out = NULL;
    if (self->db == NULL)
        return pg_link_missing (self->target, error);
    PGresult *end;
    int64_t until_ms = deadline (self);
    store_code_t code = next_result (self, until_ms, out, error);
    if (code != STORE_OK)
        return code;
    if (*out == NULL || !is_good (*out)) {
        PGresult *bad = *out;
        *out = NULL;
        code = judge (self, bad, error);
        pg_link_close (self); /* what was queued behind it is of no use */
        return code;
    }
    code = next_result (self, until_ms, &end, error); /* NULL: the end of this one */
    PQclear (end);
    if (code != STORE_OK) {
        PQclear (*out);
        *out = NULL;
    }
    return code;
}

void pg_link_queue_end (pg_link_t *self)
{
    store_error_t ignored;
    PGresult *sync = NULL;
    if (self->db == NULL)
        return;
    bool ended = next_result (self, deadline (self), &sync, &ignored) == STORE_OK &&
                 PQresultStatus (sync) == PGRES_PIPELINE_SYNC;
    PQclear (sync);
    if (!ended || !PQexitPipelineMode (self->db))
        pg_link_close (self);
}

/* COPY. */

store_code_t pg_link_copy_begin (pg_link_t *self, const char *sql, store_error_t *error)
{
    return pg_link_do (self, sql, error);
}

store_code_t pg_link_copy_put (pg_link_t *self, const void *bytes, size_t length,
                               store_error_t *error)
{
    if (self->db == NULL)
        return pg_link_missing (self->target, error);
    store_code_t code = sent (self, PQputCopyData (self->db, bytes, (int) length) == 1, error);
    if (code == STORE_OK && !wait_sent (self, deadline (self))) /* else libpq keeps all of it */
        return lose_waiting (self, "it took nothing in time", error);
    return code;
}

store_code_t pg_link_copy_end (pg_link_t *self, store_error_t *error)
{
    if (self->db == NULL)
        return pg_link_missing (self->target, error);
    store_code_t code = sent (self, PQputCopyEnd (self->db, NULL) == 1, error);
    return code == STORE_OK ? take_results (self, NULL, error) : code;
}
