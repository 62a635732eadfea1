/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sessions of a store: how long one is waited for, what is left of those that were given up, and
 * what a server that was started anew is asked first. */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store/postgresql/database.h"
#include "store/postgresql/pg_beat.h"
#include "store/postgresql/pg_hosts.h"
#include "store/postgresql/pg_keeper.h"
#include "store/postgresql/pg_refusal.h"
#include "store_fixture.h"
#include "support/timing.h"

enum {
    LEASE_MS = 2000,
    LONG_LEASE_MS = 24000, /* so that a slow machine is not taken for a host that is gone */
    BYTES_MAX = 8192,
    DATABASE_SESSIONS_MAX = 12 /* of one broker, as docs/CLUSTER.md says */
};

static _Atomic (store_code_t) failed_with;

static void failed (void *context, const store_error_t *error)
{
    (void) context;
    atomic_store (&failed_with, error->code);
}

static fixture_t *fresh (void)
{
    atomic_store (&failed_with, STORE_OK);
    fixture_t *f = fixture_new ("postgresql");
    store_fixture_options (f)->lease_ms = LEASE_MS;
    f->options.failed = failed;
    return f;
}

static void done (fixture_t *f)
{
    void *end = f;
    fixture_teardown (&end);
}

/* A store that ended by a failure cannot be closed cleanly. */
static void give_up (fixture_t *f)
{
    store_error_t error;
    store_reader_close (&f->reader);
    store_close (&f->store, &error);
}

/* A server that lets everybody in, takes settings, and answers no question. */

typedef struct mute {
    int listener;
    int port;
    const char *refuses; /* NULL; or everybody, with this code */
    atomic_int asked;
    pthread_t thread;
} mute_t;

static bool take_all (int fd, char *to, size_t count)
{
    for (size_t at = 0; at < count;) {
        ssize_t taken = read (fd, to + at, count - at);
        if (taken <= 0)
            return false;
        at += (size_t) taken;
    }
    return true;
}

static size_t length_of (const char bytes[4])
{
    uint32_t length;
    memcpy (&length, bytes, sizeof length);
    return ntohl (length) - 4;
}

static void say_bytes (int fd, const char *bytes, size_t count)
{
    if (write (fd, bytes, count) != (ssize_t) count)
        close (fd);
}
#define SAY(FD, TEXT) say_bytes (FD, TEXT, sizeof (TEXT) - 1)

static void refuse (int fd, const char *state)
{
    char fields[128];
    int count = snprintf (fields, sizeof fields, "SFATAL%cVFATAL%cC%s%cMas the test has it%c%c", 0,
                          0, state, 0, 0, 0);
    const uint32_t length = htonl ((uint32_t) count + 4);
    SAY (fd, "E");
    say_bytes (fd, (const char *) &length, sizeof length);
    say_bytes (fd, fields, (size_t) count);
}

static void serve (const mute_t *self, int fd)
{
    char bytes[BYTES_MAX];
    static const char encrypted[] = {0x04, (char) 0xd2, 0x16};
    do { /* what it begins with, or a wish to speak in secret */
        if (!take_all (fd, bytes, 4) || !take_all (fd, bytes + 4, length_of (bytes)))
            return;
        if (memcmp (bytes + 4, encrypted, sizeof encrypted) == 0)
            SAY (fd, "N");
    } while (memcmp (bytes + 4, encrypted, sizeof encrypted) == 0);
    if (self->refuses != NULL) {
        refuse (fd, self->refuses);
        return;
    }
    SAY (fd, "R\0\0\0\10\0\0\0\0"
             "S\0\0\0\32server_version\00015.0.0\0"
             "S\0\0\0\27in_hot_standby\0off\0"
             "S\0\0\0\46default_transaction_read_only\0off\0"
             "Z\0\0\0\5I");
    while (take_all (fd, bytes, 5) && length_of (bytes + 1) < BYTES_MAX &&
           take_all (fd, bytes + 5, length_of (bytes + 1)))
        if (bytes[0] == 'Q' && strncmp (bytes + 5, "SET", 3) == 0)
            SAY (fd, "C\0\0\0\10SET\0Z\0\0\0\5I");
}

static void *mute_run (void *context)
{
    mute_t *self = context;
    int fd;
    while ((fd = accept (self->listener, NULL, NULL)) >= 0) {
        atomic_fetch_add (&self->asked, 1);
        serve (self, fd);
        close (fd);
    }
    return NULL;
}

static void mute_listen (mute_t *self)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    self->listener = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal (bind (self->listener, (struct sockaddr *) &address, length), 0);
    assert_int_equal (listen (self->listener, 8), 0);
    assert_int_equal (getsockname (self->listener, (struct sockaddr *) &address, &length), 0);
    self->port = ntohs (address.sin_port);
}

static void mute_begin (mute_t *self, const char *refuses)
{
    mute_listen (self);
    self->refuses = refuses;
    atomic_init (&self->asked, 0);
    assert_int_equal (pthread_create (&self->thread, NULL, mute_run, self), 0);
}

static void mute_end (mute_t *self)
{
    shutdown (self->listener, SHUT_RDWR);
    pthread_join (self->thread, NULL);
    close (self->listener);
}

/* One that was stopped behind its socket holds nobody for ever. */
static void a_server_that_falls_silent_is_out_of_reach (void **state)
{
    (void) state;
    mute_t server;
    char uri[128];
    char found[DATABASE_FOUND_SIZE];
    store_error_t error = {STORE_OK, ""};
    mute_begin (&server, NULL);
    snprintf (uri, sizeof uri, "postgresql://taskmq@127.0.0.1:%d/taskmq", server.port);
    const database_options_t options = {.uri = uri};
    assert_int_equal (database_probe (&options, "none", found, &error), STORE_ERROR_AWAY);
    if (strstr (error.text, "did not answer in time") == NULL)
        fail_msg ("%s", error.text);
    mute_end (&server);
}

/* Several hosts. */

/* How many have come to a host where nobody looks. */
static int count_knocks (const mute_t *self)
{
    int count = 0;
    int fd;
    fcntl (self->listener, F_SETFL, O_NONBLOCK);
    while ((fd = accept (self->listener, NULL, NULL)) >= 0) {
        close (fd);
        count++;
    }
    return count;
}

/* In vain. Each of them is there, at its port. */
static void connect_to (const mute_t *const *servers, size_t count)
{
    static const char *const keywords[] = {"user", "dbname", NULL};
    static const char *const values[] = {"taskmq", "taskmq", NULL};
    char names[64] = "";
    char ports[64] = "";
    char why[PG_HOSTS_WHY_SIZE];
    pg_hosts_t hosts;
    for (size_t i = 0; i < count; i++) {
        strcat (names, i == 0 ? "127.0.0.1" : ",127.0.0.1");
        snprintf (ports + strlen (ports), sizeof ports - strlen (ports), "%s%d", i == 0 ? "" : ",",
                  servers[i]->port);
    }
    pg_hosts_init (&hosts, names, NULL, ports, "3", LONG_LEASE_MS);
    hosts.is_final = pg_refusal_is_final;
    PGconn *db = pg_hosts_connect (&hosts, keywords, values, why);
    assert_int_equal (PQstatus (db), CONNECTION_BAD);
    PQfinish (db);
    for (size_t i = 0; i < count; i++) {
        char says[64];
        snprintf (says, sizeof says, ":%d: FATAL:  %s: as the test has it", servers[i]->port,
                  servers[i]->refuses);
        assert_true (servers[i]->refuses == NULL || strstr (why, says) != NULL);
    }
}

/* More time is for those that need it, and who refused for good says so once. */
static void a_host_that_refused_is_not_asked_again (void **state)
{
    (void) state;
    mute_t silent;
    mute_t refusing;
    mute_t starting;
    mute_listen (&silent);
    mute_begin (&refusing, "28P01");
    mute_begin (&starting, "57P03");
    connect_to ((const mute_t *const[]){&refusing, &starting}, 2);
    assert_int_equal (atomic_load (&refusing.asked), 1);
    assert_int_equal (atomic_load (&starting.asked), 1);
    connect_to ((const mute_t *const[]){&silent, &refusing, &starting}, 3);
    assert_int_equal (count_knocks (&silent), 2);
    assert_int_equal (atomic_load (&refusing.asked), 2);
    assert_int_equal (atomic_load (&starting.asked), 3);
    close (silent.listener);
    mute_end (&refusing);
    mute_end (&starting);
}

static long long ask (const postgres_t *server, const fixture_t *f, const char *sql)
{
    char text[256];
    snprintf (text, sizeof text, "SET search_path = %s; %s", store_fixture_schema (f), sql);
    return postgres_number (server, text);
}

/* Of the session that beats, which counts nothing while it is not there. */
static long long beat_pid (const postgres_t *server, const fixture_t *f)
{
    return ask (server, f,
                "SELECT coalesce (max (pid), 0) FROM pg_stat_activity WHERE usename = 'taskmq' AND"
                " application_name LIKE 'taskmq beat %'");
}

/* One that is gone for long, and swallows everything, is met once: the lease would be over before
 * it is passed. */
static void the_host_that_answered_comes_first (void **state)
{
    (void) state;
    mute_t gone;
    postgres_t server;
    char uri[192];
    mute_listen (&gone);
    postgres_init_tcp (&server);
    postgres_start (&server);
    snprintf (uri, sizeof uri, "postgresql://taskmq@127.0.0.1:%d,127.0.0.1:%d/taskmq", gone.port,
              server.port);
    fixture_t *f = fresh ();
    store_fixture_options (f)->uri = uri;
    store_fixture_options (f)->lease_ms = LONG_LEASE_MS;
    fixture_open (f);
    assert_int_equal (count_knocks (&gone), 1);
    for (int i = 0; i < 3; i++) {
        long long before = beat_pid (&server, f);
        long long now;
        ask (&server, f,
             "SELECT pg_terminate_backend (pid)::int FROM pg_stat_activity WHERE usename ="
             " 'taskmq'");
        WAIT_FOR ((now = beat_pid (&server, f)) != 0 && now != before, TIMING_PATIENCE_MS);
    }
    assert_int_equal (count_knocks (&gone), 0);
    assert_int_equal (atomic_load (&failed_with), STORE_OK);
    done (f);
    close (gone.listener);
    postgres_destroy (&server);
}

/* Given up. */

static long long count_sessions (const fixture_t *f, const char *name)
{
    char sql[256];
    snprintf (sql, sizeof sql,
              "SELECT count (*) FROM pg_stat_activity WHERE usename = 'taskmq'"
              " AND application_name LIKE 'taskmq %s %%'",
              name);
    return store_fixture_sql (f, sql);
}

static long long newest_session (const fixture_t *f, const char *name)
{
    char sql[256];
    snprintf (sql, sizeof sql,
              "SELECT pid FROM pg_stat_activity WHERE usename = 'taskmq'"
              " AND application_name LIKE 'taskmq %s %%' ORDER BY backend_start DESC LIMIT 1",
              name);
    return store_fixture_sql (f, sql);
}

enum { GIVEN_UP = 4 /* one after the other */, SESSIONS_MAX = 2 /* it, and one that is ending */ };

/* What waits for a standby does not notice that it was given up. */
static void beats_that_are_given_up_leave_no_sessions (void **state)
{
    (void) state;
    fixture_t *f = fresh ();
    fixture_open (f);
    store_fixture_hold_answers (f, true);
    for (int i = 0; i < GIVEN_UP; i++) {
        long long before = newest_session (f, "beat");
        long long now;
        WAIT_FOR ((now = newest_session (f, "beat")) != before && now != 0, TIMING_PATIENCE_MS);
        assert_true (count_sessions (f, "beat") <= SESSIONS_MAX);
        assert_true (count_sessions (f, "%") <= DATABASE_SESSIONS_MAX);
    }
    store_fixture_hold_answers (f, false);
    WAIT_FOR (count_sessions (f, "beat") == 1, TIMING_PATIENCE_MS);
    assert_int_equal (atomic_load (&failed_with), STORE_OK);
    done (f);
}

static void bodies_that_are_given_up_leave_no_sessions (void **state)
{
    (void) state;
    fixture_t *f = fresh ();
    fixture_open (f);
    const vault_t *vault = store_vault (f->store);
    const uint8_t hash[32] = {1};
    store_fixture_hold_answers (f, true);
    for (int i = 0; i < GIVEN_UP - 1; i++) {
        int64_t number;
        vault_word_t word;
        tmq_code_t code;
        long long before = newest_session (f, "blobs");
        /* While the database is out of reach nothing is tried. */
        WAIT_FOR ((code = vault->begin (vault->context, hash, 1, &number, &word),
                   newest_session (f, "blobs") != before),
                  TIMING_PATIENCE_MS);
        assert_int_equal (code, TMQ_UNAVAILABLE);
        assert_true (count_sessions (f, "blobs") <= SESSIONS_MAX);
    }
    store_fixture_hold_answers (f, false);
    done (f);
}

static long long count_beats (const fixture_t *f, const char *which, long long pid)
{
    char sql[256];
    snprintf (sql, sizeof sql,
              "SELECT count (*) FROM pg_stat_activity WHERE usename = 'taskmq'"
              " AND application_name LIKE 'taskmq beat %%' AND pid %s %lld",
              which, pid);
    return store_fixture_sql (f, sql);
}

/* Of a copied directory, which has the same id: it is another broker, on another schema perhaps. */
static void sessions_of_a_copy_are_left_alone (void **state)
{
    (void) state;
    char text[256];
    fixture_t *f = fresh ();
    fixture_t *copy = fresh ();
    fixture_open (f);
    snprintf (text, sizeof text, "head -c 32 %s/instance >%s/instance", f->directory,
              copy->directory);
    assert_int_equal (system (text), 0);
    long long own = newest_session (f, "beat");
    fixture_open (copy);
    long long other = newest_session (f, "beat");
    assert_int_equal (count_beats (f, "=", own), 1);
    snprintf (text, sizeof text, "SELECT pg_terminate_backend (%lld)", own);
    store_fixture_sql (f, text);
    WAIT_FOR (count_beats (f, "=", own) == 0 && count_beats (f, "<>", other) == 1,
              TIMING_PATIENCE_MS);
    assert_int_equal (count_beats (f, "=", other), 1);
    done (copy);
    done (f);
}

/* Started anew. */

static void quiet_beats (const postgres_t *server, const fixture_t *f, bool quiet)
{
    char sql[768];
    const char *schema = store_fixture_schema (f);
    snprintf (sql, sizeof sql,
              quiet ? "SET search_path = %s; CREATE FUNCTION quiet () RETURNS trigger LANGUAGE"
                      " plpgsql AS $$ BEGIN IF current_setting ('application_name') LIKE"
                      " 'taskmq beat %%' THEN RAISE 'not now' USING ERRCODE = '40001'; END IF;"
                      " RETURN NEW; END $$; CREATE TRIGGER quiet BEFORE UPDATE ON shard"
                      " FOR EACH STATEMENT EXECUTE FUNCTION quiet ()"
                    : "SET search_path = %s; DROP TRIGGER quiet ON shard",
              schema);
    free (postgres_sql (server, sql));
}

enum { TRIES = 30 /* connections, of which several are of the write-back */ };

/* Its files were exchanged for others, in which another broker has an epoch of the same number.
 * Only a beat or a commit asks for the name, so everything else waits for one. */
static void a_server_that_was_started_anew_is_judged_first (void **state)
{
    (void) state;
    char uri[POSTGRES_URI_SIZE];
    postgres_t server;
    postgres_init (&server);
    postgres_start (&server);
    postgres_uri (&server, "taskmq", "taskmq", uri);
    fixture_t *f = fresh ();
    f->options.dirty_ms_max = TIMING_PATIENCE_MS; /* written back when it is asked for */
    store_fixture_options (f)->uri = uri;
    fixture_open (f);
    fixture_submit (f, 1, 1);
    quiet_beats (&server, f, true);
    ask (&server, f, "UPDATE shard SET owner = 'another one' RETURNING epoch");
    postgres_end (&server, SIGQUIT);
    postgres_start (&server);
    store_flush (f->store);
    WAIT_FOR (ask (&server, f,
                   "SELECT sessions FROM pg_stat_database WHERE datname = current_database ()") >
                  TRIES,
              TIMING_PATIENCE_MS);
    assert_int_equal (ask (&server, f, "SELECT count (*) FROM task"), 0);
    tmq_id_t id = test_id (1);
    lookup_t key = {.kind = LOOKUP_ID, .ns = "default", .id = id};
    store_error_t error;
    assert_int_equal (store_load (f->store, &key, 1, &error), STORE_ERROR_AWAY);
    quiet_beats (&server, f, false);
    WAIT_FOR (atomic_load (&failed_with) == STORE_ERROR_FENCED, TIMING_PATIENCE_MS);
    assert_int_equal (ask (&server, f, "SELECT count (*) FROM task"), 0);
    give_up (f);
    done (f);
    postgres_destroy (&server);
}

/* Another history. */

static void a_history_begins_under_its_owner (void **state)
{
    (void) state;
    store_error_t error = {STORE_OK, ""};
    fixture_t *f = fresh ();
    fixture_open (f);
    const database_options_t *options = store_fixture_options (f);
    const char *directory = f->options.directory;
    uint64_t epoch = f->boot.epoch;
    long long before = store_fixture_sql (f, "SELECT generation FROM shard");
    assert_int_equal (database_begin_history (options, directory, epoch - 1, &error),
                      STORE_ERROR_FENCED);
    assert_int_equal (store_fixture_sql (f, "SELECT generation FROM shard"), before);
    assert_int_equal (database_begin_history (options, directory, epoch, &error), STORE_OK);
    long long begun = store_fixture_sql (f, "SELECT generation FROM shard");
    assert_true (begun > 0 && begun != before);
    /* Whoever takes over goes on with it, and the one before begins no other one. */
    store_fixture_sql (f, "UPDATE shard SET owner = 'another one'");
    assert_int_equal (database_begin_history (options, directory, epoch, &error),
                      STORE_ERROR_FENCED);
    assert_int_equal (store_fixture_sql (f, "SELECT generation FROM shard"), begun);
    give_up (f);
    done (f);
}

/* An end. */

typedef struct finder {
    pg_store_t store;
    atomic_bool looks; /* in the keeper's thread */
} finder_t;

enum { FOUND_MS = 300 /* so that the end has begun */ };

static void find_lost (void *context)
{
    finder_t *self = context;
    store_error_t error = {STORE_ERROR_AWAY, "it is gone"};
    atomic_store (&self->looks, true);
    timing_pause (FOUND_MS);
    pg_store_lost (&self->store, &error);
}

/* The keeper's thread finds the database lost while it is told to end. */
static void a_keeper_that_ends_may_find_the_database_lost (void **state)
{
    (void) state;
    static finder_t finder;
    store_error_t error;
    pg_store_t *store = &finder.store;
    pthread_mutex_init (&store->told_lock, NULL);
    store->keeper = pg_keeper_new (store);
    store->beat = pg_beat_new (store);
    assert_int_equal (pg_keeper_start (store->keeper, find_lost, &finder, &error), STORE_OK);
    WAIT_FOR (atomic_load (&finder.looks), TIMING_PATIENCE_MS);
    pg_keeper_free (&store->keeper);
    assert_null (store->keeper);
    assert_true (pg_store_is_away (store));
    pg_beat_free (&store->beat);
    pthread_mutex_destroy (&store->told_lock);
}

/* A vacuum of the journal that does not end holds up neither what waits for its connection nor an
 * end. */
static void a_vacuum_holds_nobody_up (void **state)
{
    (void) state;
    fixture_t *f = fresh ();
    fixture_open (f);
    fixture_submit (f, 1, 1);
    fixture_settle (f);
    pg_store_t *store = (pg_store_t *) f->store;
    pid_t server = (pid_t) ask (store_fixture_server (), f,
                                "SELECT pid FROM pg_stat_activity WHERE application_name LIKE"
                                " 'taskmq watch%'");
    assert_true (server > 0);
    kill (server, SIGSTOP);
    atomic_store (&store->deleted_bytes, UINT64_MAX / 2);
    WAIT_FOR (atomic_load (&store->deleted_bytes) < UINT64_MAX / 4, TIMING_PATIENCE_MS);
    ask (store_fixture_server (), f,
         "SELECT count (pg_terminate_backend (pid)) FROM pg_stat_activity"
         " WHERE application_name LIKE 'taskmq look-ups%'");
    tmq_id_t id = test_id (1);
    lookup_t key = {.kind = LOOKUP_ID, .ns = "default", .id = id};
    store_error_t error;
    assert_int_equal (store_load (f->store, &key, 1, &error), STORE_ERROR_AWAY);
    WAIT_FOR (store_load (f->store, &key, 1, &error) == STORE_OK, TIMING_PATIENCE_MS / 2);
    assert_non_null (key.record);
    record_free (key.record);
    done (f);
    kill (server, SIGCONT);
}

int main (void)
{
    postgres_need ();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_server_that_falls_silent_is_out_of_reach),
        cmocka_unit_test (a_host_that_refused_is_not_asked_again),
        cmocka_unit_test (the_host_that_answered_comes_first),
        cmocka_unit_test (beats_that_are_given_up_leave_no_sessions),
        cmocka_unit_test (bodies_that_are_given_up_leave_no_sessions),
        cmocka_unit_test (sessions_of_a_copy_are_left_alone),
        cmocka_unit_test (a_server_that_was_started_anew_is_judged_first),
        cmocka_unit_test (a_history_begins_under_its_owner),
        cmocka_unit_test (a_vacuum_holds_nobody_up),
        cmocka_unit_test (a_keeper_that_ends_may_find_the_database_lost),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
