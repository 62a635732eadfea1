/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Several stores on one database: who waits, who takes over and when, and what becomes of an owner
 * that was taken over from. */
#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "party.h"
#include "store/postgresql/pg_instance.h"
#include "store/wakeup.h"
#include "support/timing.h"
#include "timestamp.h"

static void a_clean_stop_hands_over (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, true, NULL);
    party_t *standby = party_new (f, true, NULL);
    party_own (owner, STORE_OK); /* nobody was there to be waited for */
    assert_false (party_waits (owner));
    party_submit (f, owner, 1, STORE_OK);
    party_begin (standby);
    WAIT_FOR (party_waits (standby), TIMING_PATIENCE_MS);
    assert_false (atomic_load (&standby->done));
    assert_int_equal (party_close (owner), STORE_OK);
    party_end (standby, STORE_OK);
    assert_int_equal (standby->boot.epoch, owner->boot.epoch + 1);
    assert_int_equal (standby->boot.generation, owner->boot.generation);
    assert_int_equal (standby->boot.tasks, 1);
    assert_false (party_was_told (standby, DATABASE_ADOPTED, "")); /* it was given, not taken */
    assert_memory_not_equal (standby->boot.instance, owner->boot.instance, BOOT_INSTANCE_BYTES);
    party_free (owner);
    party_free (standby);
}

static void take_over (fixture_t *f, const char *how)
{
    party_t *owner = party_new (f, false, NULL);
    party_t *standby = party_new (f, true, NULL);
    store_stats_t stats;
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    assert_true (store_valid_until (owner->store) > clock_ms (CLOCK_MONOTONIC));
    party_begin (standby);
    WAIT_FOR (party_waits (standby), TIMING_PATIENCE_MS);
    party_stop_beats (f, how);
    party_end (standby, STORE_OK);
    assert_true (store_valid_until (owner->store) < standby->owned_at);
    assert_true (party_was_told (standby, DATABASE_ADOPTED, "gave no sign for"));
    store_stats (standby->store, &stats);
    assert_true (stats.taken_over);
    assert_int_equal (standby->boot.tasks, 1);
    f->batch = 1; /* as the owner before counts */
    party_submit (f, owner, 2, STORE_ERROR_FENCED);
    WAIT_FOR (atomic_load (&owner->failed_with) == STORE_ERROR_FENCED, TIMING_PATIENCE_MS);
    f->batch = 0;
    f->seq--; /* it did not happen */
    f->pos--;
    party_submit (f, standby, 2, STORE_OK);
    assert_int_equal (party_close (standby), STORE_OK);
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM task"), 2);
    party_free (owner);
    party_free (standby);
}

static void an_owner_that_gives_no_sign_is_taken_over_from (void **state)
{
    take_over (*state, PARTY_FAIL);
}

/* A process that was stopped while its session held locks: the session is ended. */
static void locks_of_an_owner_that_stands_still_are_freed (void **state)
{
    take_over (*state, PARTY_HANG);
}

/* Who could not finish its adoption owns nothing, and waits on: it begins anew when it can. */
static void an_adoption_that_finds_locks_owns_nothing (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_t *standby = party_new (f, true, NULL);
    party_own (owner, STORE_OK);
    party_begin (standby);
    WAIT_FOR (party_waits (standby), TIMING_PATIENCE_MS);
    char *uri = calloc (1, POSTGRES_URI_SIZE);
    assert_non_null (uri);
    postgres_uri (store_fixture_server (), "postgres", "taskmq", uri);
    PGconn *holder = PQconnectdb (uri);
    char sql[128];
    snprintf (sql, sizeof sql, "BEGIN; LOCK TABLE %s.fence IN EXCLUSIVE MODE",
              store_fixture_schema (f));
    PQclear (PQexec (holder, sql));
    assert_int_equal (PQtransactionStatus (holder), PQTRANS_INTRANS);
    party_stop_beats (f, PARTY_FAIL);
    /* All tries of one look wait for the lock and give up; then it looks again. */
    WAIT_FOR (store_fixture_sql (f, "SELECT count (*) FROM pg_stat_activity WHERE application_name"
                                    " LIKE 'taskmq adoption %' AND wait_event_type = 'Lock'") == 1,
              TIMING_PATIENCE_MS);
    WAIT_FOR (atomic_load (&standby->done) ||
                  store_fixture_sql (f, "SELECT count (*) FROM pg_stat_activity WHERE"
                                        " application_name LIKE 'taskmq adoption %'"
                                        " AND query LIKE 'SELECT owner%' AND state = 'idle'"
                                        " AND query NOT LIKE '%FOR UPDATE'") == 1,
              TIMING_PATIENCE_MS);
    assert_false (atomic_load (&standby->done));
    assert_int_equal (store_fixture_sql (f, "SELECT epoch FROM shard"), owner->boot.epoch);
    assert_false (party_was_told (standby, DATABASE_ADOPTED, ""));
    PQfinish (holder);
    party_end (standby, STORE_OK);
    assert_int_equal (standby->boot.epoch, owner->boot.epoch + 1);
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM fence WHERE epoch = (SELECT"
                                            " epoch FROM shard)"),
                      3);
    free (uri);
    party_free (owner);
    party_free (standby);
}

#define NOBODY "commits wait for a synchronous standby (synchronous_standby_names = nobody)"

/* The answer to its commit does not come before it is given up, and then it finds itself there. */
static void an_adoption_that_waits_for_a_standby_says_so (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_t *standby = party_new (f, true, NULL);
    store_stats_t stats;
    party_own (owner, STORE_OK);
    party_begin (standby);
    WAIT_FOR (party_waits (standby), TIMING_PATIENCE_MS);
    store_fixture_hold_answers (f, true);
    WAIT_FOR (party_was_told (owner, DATABASE_AWAY, NOBODY), TIMING_PATIENCE_MS);
    party_stop_beats (f, PARTY_FAIL);
    const int64_t before = (int64_t) owner->boot.epoch;
    WAIT_FOR (store_fixture_sql (f, "SELECT epoch FROM shard") > before &&
                  party_was_told (standby, DATABASE_AWAY, NOBODY),
              TIMING_PATIENCE_MS);
    WAIT_FOR (party_was_told (standby, DATABASE_WAITS, "its commit"), TIMING_PATIENCE_MS);
    assert_false (atomic_load (&standby->done));
    store_fixture_hold_answers (f, false);
    party_end (standby, STORE_OK);
    assert_true (party_was_told (standby, DATABASE_BACK, "it answers"));
    assert_true (party_was_told (standby, DATABASE_ADOPTED, "gave no sign for"));
    store_stats (standby->store, &stats);
    assert_true (stats.taken_over);
    party_free (owner);
    party_free (standby);
}

static void one_of_two_takes_over_and_the_other_waits_on (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_t *standbys[2] = {party_new (f, true, NULL), party_new (f, true, NULL)};
    party_own (owner, STORE_OK);
    for (int i = 0; i < 2; i++) {
        party_begin (standbys[i]);
        WAIT_FOR (party_waits (standbys[i]), TIMING_PATIENCE_MS);
    }
    party_stop_beats (f, PARTY_FAIL);
    WAIT_FOR (atomic_load (&standbys[0]->done) || atomic_load (&standbys[1]->done),
              TIMING_PATIENCE_MS);
    int first = atomic_load (&standbys[0]->done) ? 0 : 1;
    party_end (standbys[first], STORE_OK);
    assert_false (atomic_load (&standbys[1 - first]->done));
    assert_int_equal (party_close (standbys[first]), STORE_OK);
    party_end (standbys[1 - first], STORE_OK);
    assert_int_equal (standbys[1 - first]->boot.epoch, owner->boot.epoch + 2);
    party_free (owner);
    party_free (standbys[0]);
    party_free (standbys[1]);
}

/* Two pairs in one database: each owner counts the standbys of its own schema. */
static uint64_t standbys_of (party_t *owner)
{
    store_stats_t stats;
    store_stats (owner->store, &stats);
    return stats.standbys;
}

static void count_standbys (fixture_t *fixtures[2], const char *const shown[2])
{
    char sql[256];
    party_t *owners[2];
    party_t *standbys[2];
    for (int i = 0; i < 2; i++) {
        owners[i] = party_new (fixtures[i], false, NULL);
        owners[i]->database.pinned_ms = 100; /* it looks as often */
        standbys[i] = party_new (fixtures[i], true, NULL);
        party_own (owners[i], STORE_OK);
        party_begin (standbys[i]);
        WAIT_FOR (party_waits (standbys[i]), TIMING_PATIENCE_MS);
        snprintf (sql, sizeof sql,
                  "SELECT count (*) FROM pg_stat_activity WHERE application_name ~"
                  " '^taskmq adoption %s [0-9a-f]{16}$'",
                  shown[i]);
        assert_int_equal (store_fixture_sql (fixtures[i], sql), 1);
    }
    for (int i = 0; i < 2; i++)
        WAIT_FOR (standbys_of (owners[i]) > 0, TIMING_PATIENCE_MS);
    wakeup_raise (standbys[0]->stop_fd);
    party_end (standbys[0], STORE_ERROR_STOPPED);
    party_close (standbys[0]);
    WAIT_FOR (standbys_of (owners[0]) == 0, TIMING_PATIENCE_MS);
    assert_int_equal (standbys_of (owners[1]), 1);
    wakeup_raise (standbys[1]->stop_fd);
    party_end (standbys[1], STORE_ERROR_STOPPED);
    for (int i = 0; i < 2; i++) {
        party_free (standbys[i]);
        party_free (owners[i]);
    }
}

static void an_owner_counts_the_standbys_of_its_schema (void **state)
{
    fixture_t *fixtures[2] = {*state, fixture_new ("postgresql")};
    count_standbys (fixtures, (const char *const[]){store_fixture_schema (fixtures[0]),
                                                    store_fixture_schema (fixtures[1])});
    void *other = fixtures[1];
    fixture_teardown (&other);
}

/* Each is told apart in the name of the session, however long it is. */
static void an_owner_counts_the_standbys_of_a_long_schema (void **state)
{
    fixture_t *fixtures[2] = {*state, fixture_new ("postgresql")};
    store_fixture_options (fixtures[0])->schema = "a_schema_of_25_letters_ab";
    store_fixture_options (fixtures[1])->schema = "a_schema_of_25_letters_ab_and_20_more_of_them";
    count_standbys (fixtures, (const char *const[]){"a_schema_of_25_letters_ab",
                                                    "a_schema_of_25_letter~[0-9a-f]{8}"});
    void *other = fixtures[1];
    fixture_teardown (&other);
}

static void one_that_waits_can_be_stopped (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_t *standby = party_new (f, true, NULL);
    party_own (owner, STORE_OK);
    party_begin (standby);
    WAIT_FOR (party_waits (standby), TIMING_PATIENCE_MS);
    wakeup_raise (standby->stop_fd);
    party_end (standby, STORE_ERROR_STOPPED);
    party_submit (f, owner, 1, STORE_OK);
    party_free (standby);
    party_free (owner);
}

/* Who is no standby waits just as long as it takes to know. */
static void who_is_no_standby_is_refused_or_takes_over (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_t *other = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    party_own (other, STORE_ERROR_OWNED);
    assert_non_null (strstr (other->error.text, "another broker owns the data"));
    assert_non_null (strstr (other->error.text, "--standby"));
    party_submit (f, owner, 1, STORE_OK);
    party_close (other);
    party_stop_beats (f, PARTY_FAIL);
    party_own (other, STORE_OK);
    assert_true (party_was_told (other, DATABASE_STANDBY, "whether it lives"));
    party_free (owner);
    party_free (other);
}

/* The id of the instance is the same, and the lock of another directory proves nothing. */
static void a_copied_directory_is_another_owner (void **state)
{
    fixture_t *f = *state;
    char command[256];
    party_t *owner = party_new (f, false, NULL);
    party_t *copy = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    snprintf (command, sizeof command, "cp %s/instance %s/instance", owner->directory,
              copy->directory);
    assert_int_equal (system (command), 0);
    party_own (copy, STORE_ERROR_OWNED);
    party_submit (f, owner, 1, STORE_OK);
    party_free (copy);
    /* The directory itself is known again, at once. */
    party_t *again = party_new (f, false, owner->directory);
    party_own (again, STORE_OK);
    assert_false (party_waits (again));
    f->batch = 1;
    party_submit (f, owner, 2, STORE_ERROR_FENCED);
    party_free (again);
    party_free (owner);
}

/* It adopted, and ended before it had brought the journal into the tables. */
static void an_adopter_that_died_in_between_leaves_nothing_out (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_t *next = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    store_fixture_sql (f, "UPDATE fence SET epoch = epoch WHERE part = 'w'; "
                          "CREATE FUNCTION full_disk () RETURNS trigger LANGUAGE plpgsql AS $$"
                          " BEGIN RAISE 'no space' USING ERRCODE = '53100'; END $$;"
                          "CREATE TRIGGER full_disk BEFORE INSERT ON task FOR EACH ROW"
                          " EXECUTE FUNCTION full_disk ()");
    for (int64_t number = 1; number <= 5; number++)
        party_submit (f, owner, number, STORE_OK);
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM task"), 0);
    store_fixture_sql (f, "UPDATE shard SET epoch = epoch + 1, owner = NULL, beat = beat + 1;"
                          "UPDATE fence SET epoch = epoch + 1;"
                          "DROP TRIGGER full_disk ON task");
    party_own (next, STORE_OK);
    assert_int_equal (next->boot.epoch, owner->boot.epoch + 2);
    assert_int_equal (next->boot.recovered_batches, 5);
    assert_int_equal (next->boot.tasks, 5);
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM task"), 5);
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM journal"), 0);
    party_free (owner);
    party_free (next);
}

/* Tables of the first version, whose owner may live and gives no signs. */
static void an_owner_of_the_first_version_is_left_alone (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_t *other = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    assert_int_equal (party_close (owner), STORE_OK);
    store_fixture_sql (f, "ALTER TABLE shard DROP COLUMN lease_ms,"
                          " ADD COLUMN pid_commit int4, ADD COLUMN pid_write int4;"
                          "DROP TABLE blob, blob_chunk; DELETE FROM fence WHERE part = 'b';"
                          "UPDATE meta SET version = 1; UPDATE shard SET owner = 'somebody there'");
    party_own (other, STORE_ERROR_OWNED);
    assert_int_equal (store_fixture_sql (f, "SELECT version FROM meta"), 1);
    party_close (other);
    store_fixture_sql (f, "UPDATE shard SET owner = NULL");
    party_own (other, STORE_OK);
    assert_true (store_fixture_sql (f, "SELECT lease_ms FROM shard") == PARTY_LEASE_MS);
    party_free (owner);
    party_free (other);
}

/* An adoption was lost, and another broker has begun an epoch of the same number: its owner finds
 * that it is none. */
static void an_epoch_of_the_same_number_is_another_one (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    store_fixture_sql (f, "UPDATE shard SET owner = 'another one'");
    WAIT_FOR (atomic_load (&owner->failed_with) == STORE_ERROR_FENCED, TIMING_PATIENCE_MS);
    party_end_sessions (f, "commits");
    party_submit (f, owner, 2, STORE_ERROR_FENCED);
    party_close (owner);
    assert_int_equal (
        store_fixture_sql (f, "SELECT count (*) FROM shard WHERE owner = 'another one'"), 1);
    party_free (owner);
}

/* Of the task that a successor has, by its id. */
static store_code_t load_task (party_t *self, int64_t number)
{
    store_error_t error = {STORE_OK, ""};
    record_t record = test_record (number);
    lookup_t key = {.kind = LOOKUP_ID, .ns = record.ns, .id = record.id};
    store_code_t code = store_load (self->store, &key, 1, &error);
    assert_true (code == STORE_OK || key.record == NULL);
    record_free (key.record);
    return code;
}

static store_code_t list_tasks (party_t *self)
{
    store_reader_t *reader;
    store_error_t error = {STORE_OK, ""};
    read_t read = {.kind = READ_LIST, .filter = {.ns = "default"}, .limit = 10};
    assert_int_equal (store_reader_open (&reader, self->store, &error), STORE_OK);
    store_code_t code = store_reader_run (reader, &read);
    assert_true (code == STORE_OK || read.records_count == 0);
    read_clear (&read);
    store_reader_close (&reader);
    return code;
}

static store_code_t sweep (party_t *self)
{
    store_error_t error = {STORE_OK, ""};
    store_sweep_t due = {.wall_ms = INT64_MAX, .limit = 10};
    store_code_t code = store_due (self->store, &due, &error);
    due_clear (&due.found);
    return code;
}

static void stream_record (void *context, record_t *record)
{
    (void) context;
    record_free (record);
}

static void stream_space (void *context, const char *ns, uint64_t last_seq)
{
    (void) context;
    (void) ns;
    (void) last_seq;
}

static store_code_t stream_live (party_t *self)
{
    store_error_t error = {STORE_OK, ""};
    const store_live_visitor_t visitor = {stream_record, stream_space, NULL, NULL};
    return store_live (self->store, &visitor, &error);
}

/* Connections are made anew behind such an answer: until then it is out of reach. */
#define ASSERT_FENCED(call)                                                                        \
    do {                                                                                           \
        store_code_t code_;                                                                        \
        WAIT_FOR ((code_ = (call)) != STORE_ERROR_AWAY, TIMING_PATIENCE_MS);                       \
        assert_int_equal (code_, STORE_ERROR_FENCED);                                              \
    } while (0)

/* Its beats stand still, so it does not know yet, and reads nothing of its successor: that would
 * not fit what it has in memory. */
static void who_was_taken_over_from_reads_nothing_of_its_successor (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_t *standby = party_new (f, true, NULL);
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    assert_int_equal (load_task (owner, 1), STORE_OK);
    assert_int_equal (list_tasks (owner), STORE_OK);
    assert_int_equal (sweep (owner), STORE_OK);
    assert_int_equal (stream_live (owner), STORE_OK);
    party_begin (standby);
    party_stop_beats (f, PARTY_FAIL);
    party_end (standby, STORE_OK);
    f->batch = 0;
    party_submit (f, standby, 2, STORE_OK);
    store_flush (standby->store);
    WAIT_FOR (store_fixture_sql (f, "SELECT count (*) FROM task") == 2, TIMING_PATIENCE_MS);
    assert_int_equal (load_task (owner, 2), STORE_ERROR_FENCED);
    /* Nor that there is none, once there is a connection again. */
    ASSERT_FENCED (load_task (owner, 3));
    ASSERT_FENCED (list_tasks (owner));
    ASSERT_FENCED (sweep (owner));
    ASSERT_FENCED (stream_live (owner));
    assert_int_equal (load_task (standby, 2), STORE_OK);
    party_free (owner);
    party_free (standby);
}

/* An owner that saw all of its work survive a promotion says so to the next one. */
static void what_was_found_whole_goes_on (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_t *next = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    store_fixture_sql (f, "UPDATE shard SET timeline = 77");
    WAIT_FOR (store_fixture_sql (f, "SELECT timeline FROM shard") != 77, TIMING_PATIENCE_MS);
    assert_int_equal (party_close (owner), STORE_OK);
    party_own (next, STORE_OK);
    assert_int_equal (next->boot.generation, owner->boot.generation);
    party_free (owner);
    party_free (next);
}

/* A directory whose broker owned tables. */

static long long count_schemas (const fixture_t *f)
{
    return store_fixture_sql (f, "SELECT count (*) FROM pg_namespace");
}

/* One more broker on the directory of `self`, in a schema of that name. */
static void own_elsewhere (const fixture_t *f, const party_t *self, const char *schema,
                           bool gives_up, store_code_t expected)
{
    for (int standby = 0; standby < 2; standby++) {
        party_t *other = party_new (f, standby == 1, self->directory);
        long long schemas = count_schemas (f);
        other->database.schema = schema;
        other->database.gives_up = gives_up;
        party_own (other, expected);
        if (expected == STORE_ERROR_CUT) {
            assert_non_null (strstr (other->error.text, store_fixture_schema (f)));
            assert_non_null (strstr (other->error.text, schema));
            assert_int_equal (count_schemas (f), schemas);
        }
        assert_int_equal (party_close (other), STORE_OK);
        party_free (other);
    }
}

static void who_owned_tables_begins_no_empty_ones (void **state)
{
    fixture_t *f = *state;
    char empty[64];
    char missing[64];
    char sql[128];
    party_t *owner = party_new (f, false, NULL);
    snprintf (missing, sizeof missing, "%s_missing", store_fixture_schema (f));
    snprintf (empty, sizeof empty, "%s_empty", store_fixture_schema (f));
    snprintf (sql, sizeof sql, "CREATE SCHEMA %s AUTHORIZATION taskmq", empty);
    store_fixture_sql (f, sql);
    party_own (owner, STORE_OK);
    assert_int_equal (party_close (owner), STORE_OK);
    own_elsewhere (f, owner, missing, false, STORE_ERROR_CUT);
    own_elsewhere (f, owner, empty, false, STORE_ERROR_CUT);
    own_elsewhere (f, owner, store_fixture_schema (f), false, STORE_OK);
    own_elsewhere (f, owner, missing, true, STORE_OK);
    own_elsewhere (f, owner, missing, false, STORE_OK); /* it is where it owned last */
    party_free (owner);
}

/* Somebody made them, and it has to be another broker that begins with them. */
static void who_owned_tables_takes_none_that_nobody_owned (void **state)
{
    fixture_t *f = *state;
    char schema[64];
    char sql[256];
    party_t *owner = party_new (f, false, NULL);
    party_t *maker = party_new (f, false, NULL);
    snprintf (schema, sizeof schema, "%s_made", store_fixture_schema (f));
    maker->database.schema = schema;
    party_own (owner, STORE_OK);
    party_own (maker, STORE_OK);
    assert_int_equal (party_close (owner), STORE_OK);
    assert_int_equal (party_close (maker), STORE_OK);
    own_elsewhere (f, owner, schema, false, STORE_OK); /* it has a history */
    party_own (owner, STORE_OK);
    assert_int_equal (party_close (owner), STORE_OK);
    snprintf (sql, sizeof sql, "UPDATE %s.shard SET epoch = 0; UPDATE %s.fence SET epoch = 0",
              schema, schema);
    store_fixture_sql (f, sql);
    own_elsewhere (f, owner, schema, false, STORE_ERROR_CUT);
    snprintf (sql, sizeof sql, "SELECT epoch FROM %s.shard", schema);
    assert_int_equal (store_fixture_sql (f, sql), 0);
    party_free (owner);
    party_free (maker);
}

/* A standby that only waits owns nothing, and a copy on another server is gone on with. */
static void what_is_noted_is_what_was_owned_last (void **state)
{
    fixture_t *f = *state;
    pg_tables_of_t owned;
    party_t *owner = party_new (f, false, NULL);
    party_t *standby = party_new (f, true, NULL);
    party_own (owner, STORE_OK);
    party_begin (standby);
    WAIT_FOR (party_waits (standby), TIMING_PATIENCE_MS);
    pg_instance_owned (&owned, standby->directory);
    assert_int_equal (owned.system_id, 0);
    assert_int_equal (party_close (owner), STORE_OK);
    party_end (standby, STORE_OK);
    pg_instance_owned (&owned, standby->directory);
    assert_int_equal (owned.system_id,
                      store_fixture_sql (f, "SELECT system_identifier FROM pg_control_system ()"));
    assert_string_equal (owned.schema, store_fixture_schema (f));
    assert_string_equal (owned.database, "taskmq");
    assert_int_equal (party_close (standby), STORE_OK);
    store_fixture_sql (f, "UPDATE shard SET system_id = 4711");
    party_own (owner, STORE_ERROR_FOREIGN);
    assert_int_equal (party_close (owner), STORE_OK);
    store_fixture_sql (f, "UPDATE shard SET system_id = 0");
    party_own (owner, STORE_OK);
    party_free (owner);
    party_free (standby);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, party_setup, party_teardown)

int main (void)
{
    postgres_need ();
    const struct CMUnitTest tests[] = {
        TEST (a_clean_stop_hands_over),
        TEST (an_owner_that_gives_no_sign_is_taken_over_from),
        TEST (locks_of_an_owner_that_stands_still_are_freed),
        TEST (an_adoption_that_finds_locks_owns_nothing),
        TEST (an_adoption_that_waits_for_a_standby_says_so),
        TEST (one_of_two_takes_over_and_the_other_waits_on),
        TEST (an_owner_counts_the_standbys_of_its_schema),
        TEST (an_owner_counts_the_standbys_of_a_long_schema),
        TEST (one_that_waits_can_be_stopped),
        TEST (who_is_no_standby_is_refused_or_takes_over),
        TEST (a_copied_directory_is_another_owner),
        TEST (an_adopter_that_died_in_between_leaves_nothing_out),
        TEST (an_owner_of_the_first_version_is_left_alone),
        TEST (an_epoch_of_the_same_number_is_another_one),
        TEST (who_was_taken_over_from_reads_nothing_of_its_successor),
        TEST (what_was_found_whole_goes_on),
        TEST (who_owned_tables_begins_no_empty_ones),
        TEST (who_owned_tables_takes_none_that_nobody_owned),
        TEST (what_is_noted_is_what_was_owned_last),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
