/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A database that lost something, as a promotion may: whoever finds that ends, and says what is
 * lost. */
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "party.h"
#include "store/postgresql/pg_whole.h"
#include "support/timing.h"

/* What waits for a lock, and as what it begins. */
#define LOOKS "SELECT greatest%" /* what is there of what is known */

static bool waits_at (const fixture_t *f, const char *session, const char *query)
{
    char sql[256];
    snprintf (sql, sizeof sql,
              "SELECT count (*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
              " AND application_name LIKE 'taskmq %s %%' AND query LIKE '%s'",
              session, query);
    return store_fixture_sql (f, sql) == 1;
}

/* A session that holds what this statement locks; %s: the schema. */
static PGconn *hold (const fixture_t *f, const char *statement)
{
    char uri[POSTGRES_URI_SIZE];
    char sql[160] = "BEGIN; ";
    const size_t begins = strlen (sql);
    postgres_uri (store_fixture_server (), "postgres", "taskmq", uri);
    PGconn *holder = PQconnectdb (uri);
    snprintf (sql + begins, sizeof sql - begins, statement, store_fixture_schema (f));
    PQclear (PQexec (holder, sql));
    assert_int_equal (PQtransactionStatus (holder), PQTRANS_INTRANS);
    return holder;
}

/* Without work nothing is committed, and what is gone is noticed all the same. */
static void an_idle_owner_notices_that_something_is_gone (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    party_submit (f, owner, 2, STORE_OK);
    store_flush (owner->store);
    WAIT_FOR (store_fixture_sql (f, "SELECT batch FROM written") == 2, TIMING_PATIENCE_MS);
    /* As a standby that had not got the last commit. */
    do {
        store_fixture_sql (f, "UPDATE written SET batch = 1");
        timing_pause (100);
    } while (store_fixture_sql (f, "SELECT batch FROM written") != 1);
    party_end_sessions (f, "beat");
    WAIT_FOR (atomic_load (&owner->failed_with) == STORE_ERROR_CUT, TIMING_PATIENCE_MS);
    /* Whoever goes on with what is there begins a history of its own. */
    party_t *next = party_new (f, true, NULL);
    next->database.failover_synchronous = true;
    party_own (next, STORE_OK);
    assert_true (next->boot.generation != owner->boot.generation);
    party_free (next);
    party_free (owner);
}

/* Two commits, each written back; what stood there before the second one is remembered. */
static void write_back_twice (fixture_t *f, party_t *owner)
{
    owner->options.dirty_ms_max = TIMING_PATIENCE_MS; /* only when it is asked for */
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    store_flush (owner->store);
    WAIT_FOR (store_fixture_sql (f, "SELECT batch FROM written") == 1, TIMING_PATIENCE_MS);
    store_fixture_sql (f, "CREATE TABLE written_before AS SELECT * FROM written");
    party_submit (f, owner, 2, STORE_OK);
    store_fixture_sql (f, "CREATE TABLE journal_before AS SELECT * FROM journal");
    store_flush (owner->store);
    WAIT_FOR (store_fixture_sql (f, "SELECT batch FROM written") == 2, TIMING_PATIENCE_MS);
}

/* As a standby that has all commits, and not the second write-back. What the store forgets in
 * between writes the row of `written` anew. */
static void lose_the_second (fixture_t *f)
{
    store_fixture_sql (f, "DELETE FROM task WHERE number = 2;"
                          " DELETE FROM event WHERE first_seq = 2;"
                          " INSERT INTO journal SELECT * FROM journal_before");
    do {
        store_fixture_sql (f, "DELETE FROM written;"
                              " INSERT INTO written SELECT * FROM written_before");
        timing_pause (100);
    } while (store_fixture_sql (f, "SELECT batch FROM written") != 1);
    store_fixture_sql (f, "DROP TABLE written_before, journal_before");
}

/* Rows that were written are gone, and those behind them are to be written: what lies between is in
 * memory no more, and the newest commit would hide it. */
static void a_write_back_notices_that_something_is_gone (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    write_back_twice (f, owner);
    party_submit (f, owner, 3, STORE_OK);
    lose_the_second (f);
    party_end_sessions (f, "write-back");
    store_flush (owner->store);
    WAIT_FOR (atomic_load (&owner->failed_with) == STORE_ERROR_IO, TIMING_PATIENCE_MS);
    party_free (owner);
}

/* A look without a verdict takes nothing away from the next one. */
static void a_write_back_that_is_cut_off_notices_it_again (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    write_back_twice (f, owner);
    party_submit (f, owner, 3, STORE_OK);
    lose_the_second (f);
    PGconn *holder = hold (f, "LOCK TABLE %s.blob IN ACCESS EXCLUSIVE MODE");
    party_end_sessions (f, "write-back");
    store_flush (owner->store);
    WAIT_FOR (waits_at (f, "write-back", LOOKS), TIMING_PATIENCE_MS);
    party_end_sessions (f, "write-back");
    WAIT_FOR (waits_at (f, "write-back", LOOKS), TIMING_PATIENCE_MS);
    PQfinish (holder);
    WAIT_FOR (atomic_load (&owner->failed_with) == STORE_ERROR_IO, TIMING_PATIENCE_MS);
    party_free (owner);
}

/* … and before that, by whoever looks first: reads would be answered without those rows. */
static void a_lost_write_back_is_noticed_by (fixture_t *f, const char *session)
{
    party_t *owner = party_new (f, false, NULL);
    write_back_twice (f, owner);
    party_submit (f, owner, 3, STORE_OK);
    lose_the_second (f);
    party_end_sessions (f, session);
    if (strcmp (session, "beat") == 0)
        WAIT_FOR (atomic_load (&owner->failed_with) == STORE_ERROR_IO, TIMING_PATIENCE_MS);
    else
        party_submit (f, owner, 4, STORE_ERROR_IO);
    assert_int_equal (atomic_load (&((pg_store_t *) owner->store)->target.whole_server) % 2, 0);
    assert_true (store_fixture_sql (f, "SELECT timeline FROM shard") > 0); /* no cut */
    party_free (owner);
}

static void a_beat_notices_that_a_write_back_is_gone (void **state)
{
    a_lost_write_back_is_noticed_by (*state, "beat");
}

static void a_commit_notices_that_a_write_back_is_gone (void **state)
{
    a_lost_write_back_is_noticed_by (*state, "commits");
}

/* The journal has what was written back: nothing is lost, and the history is the same. */
static void a_start_brings_a_lost_write_back_back (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_t *next = party_new (f, true, NULL);
    write_back_twice (f, owner);
    lose_the_second (f);
    party_end_sessions (f, "beat");
    WAIT_FOR (atomic_load (&owner->failed_with) == STORE_ERROR_IO, TIMING_PATIENCE_MS);
    party_own (next, STORE_OK);
    assert_int_equal (next->boot.recovered_batches, 1);
    assert_int_equal (next->boot.tasks, 2);
    assert_int_equal (next->boot.generation, owner->boot.generation);
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM task"), 2);
    party_free (next);
    party_free (owner);
}

/* More was acknowledged since it was asked: that is no verdict. Else nothing is behind it. */
static void a_verdict_is_the_last_word (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    party_t *owner = party_new (f, false, NULL);
    owner->options.dirty_ms_max = TIMING_PATIENCE_MS;
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    pg_store_t *store = (pg_store_t *) owner->store;
    pg_whole_t known = pg_whole_known (store);
    party_submit (f, owner, 2, STORE_OK);
    assert_false (pg_whole_end (store, &known));
    pg_link_t link;
    pg_link_init (&link, &store->target, "link", NULL, 0);
    link.server = link.whole = atomic_load (&store->target.whole_server);
    assert_false (pg_link_is_over (&link));
    known = pg_whole_known (store);
    assert_true (pg_whole_end (store, &known));
    assert_int_equal (pg_whole_add (store, &link, known.last + 1, 0, &error), STORE_ERROR_AWAY);
    assert_false (pg_whole_found (store, &link, &known));    /* also not on the same server */
    atomic_store (&store->target.whole_server, link.server); /* so that the owner goes on */
    party_free (owner);
}

typedef struct submission {
    fixture_t *f;
    party_t *owner;
} submission_t;

/* From now on commits wait for this session. */
static PGconn *hold_commits (const fixture_t *f)
{
    return hold (f, "SELECT FROM %s.fence WHERE part = 'c' FOR UPDATE");
}

/* What the session of commits says there. */
#define COMMITS "WITH own%"
#define ASKS "SELECT 1 FROM fence%" /* what became of one in doubt */

static void *submit_third (void *context)
{
    const submission_t *self = context;
    party_submit (self->f, self->owner, 3, STORE_ERROR_IO);
    return NULL;
}

/* … also of what is written back while a commit is in doubt, which may last. */
static void a_doubt_knows_what_was_written_back_meanwhile (void **state)
{
    fixture_t *f = *state;
    pthread_t thread;
    party_t *owner = party_new (f, false, NULL);
    owner->options.dirty_ms_max = TIMING_PATIENCE_MS;
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    store_flush (owner->store);
    WAIT_FOR (store_fixture_sql (f, "SELECT batch FROM written") == 1, TIMING_PATIENCE_MS);
    party_submit (f, owner, 2, STORE_OK);
    PGconn *holder = hold_commits (f);
    submission_t third = {f, owner};
    assert_int_equal (pthread_create (&thread, NULL, submit_third, &third), 0);
    WAIT_FOR (waits_at (f, "commits", COMMITS), TIMING_PATIENCE_MS);
    party_end_sessions (f, "commits");
    WAIT_FOR (waits_at (f, "commits", ASKS), TIMING_PATIENCE_MS);
    assert_int_equal (pg_whole_known ((pg_store_t *) owner->store).written, 2);
    store_flush (owner->store);
    WAIT_FOR (pg_whole_known ((pg_store_t *) owner->store).written == 3, TIMING_PATIENCE_MS);
    do { /* as a promotion leaves it that lost the write-back: the journal has the commit yet */
        store_fixture_sql (f, "UPDATE written SET batch = 1; INSERT INTO journal SELECT shard,"
                              " epoch, 2, '' FROM shard ON CONFLICT DO NOTHING");
        timing_pause (100);
    } while (store_fixture_sql (f, "SELECT batch FROM written") != 1 ||
             store_fixture_sql (f, "SELECT count (*) FROM journal") != 1);
    PQfinish (holder);
    pthread_join (thread, NULL);
    party_free (owner);
}

static void *submit_second (void *context)
{
    const submission_t *self = context;
    party_submit (self->f, self->owner, 2, STORE_OK);
    return NULL;
}

/* A server that stands still is waited for, but not when another one has all that was known. */
static void a_server_that_is_over_is_not_waited_for (void **state)
{
    fixture_t *f = *state;
    pthread_t thread;
    party_t *owner = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    PGconn *holder = hold_commits (f);
    submission_t second = {f, owner};
    assert_int_equal (pthread_create (&thread, NULL, submit_second, &second), 0);
    WAIT_FOR (waits_at (f, "commits", COMMITS), TIMING_PATIENCE_MS);
    for (int64_t end = timing_ms () + TIMING_PATIENCE_MS; !waits_at (f, "commits", ASKS);) {
        /* As another one that a beat found whole; the next beat finds this one whole again. */
        atomic_store (&((pg_store_t *) owner->store)->target.whole_server, 1);
        if (timing_ms () > end)
            fail_msg ("the commit waits for a server that is over");
    }
    PQfinish (holder);
    pthread_join (thread, NULL);
    assert_true (atomic_load (&((pg_store_t *) owner->store)->unknown_commits) >= 1);
    assert_int_equal (atomic_load (&owner->failed_with), STORE_OK);
    party_free (owner);
}

/* What the server before acknowledges late is in doubt: nobody looked for it on the new one. */
static void a_late_acknowledgement_is_in_doubt (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    party_t *owner = party_new (f, false, NULL);
    owner->options.dirty_ms_max = TIMING_PATIENCE_MS; /* nothing else is acknowledged */
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    pg_store_t *store = (pg_store_t *) owner->store;
    const pg_whole_t known = pg_whole_known (store);
    const uint64_t server = atomic_load (&store->target.whole_server);
    pg_link_t before, behind;
    pg_link_init (&before, &store->target, "before", NULL, 0);
    before.server = before.whole = server;
    pg_link_init (&behind, &store->target, "behind", NULL, 0);
    behind.server = server + 1;
    behind.whole = server;
    assert_int_equal (pg_whole_add (store, &before, known.last + 1, 0, &error), STORE_OK);
    assert_false (pg_whole_found (store, &behind, &known)); /* one more than it was asked for */
    assert_int_equal (atomic_load (&store->target.whole_server), server);
    const pg_whole_t more = pg_whole_known (store);
    assert_int_equal (more.last, known.last + 1);
    assert_true (pg_whole_found (store, &behind, &more));
    assert_int_equal (pg_whole_add (store, &before, known.last + 2, 0, &error), STORE_ERROR_AWAY);
    assert_int_equal (pg_whole_add_body (store, &before, store->known_body, 1, &error),
                      STORE_ERROR_AWAY);
    assert_int_equal (pg_whole_known (store).last, known.last + 1);
    assert_true (pg_whole_found (store, &before, &more)); /* so that the owner goes on */
    party_free (owner);
}

enum { BODY_BYTES = 100 };

/* The store does not look whether its hash is right. */
static void put_body (const party_t *self, uint8_t byte, uint8_t hash[TMQ_BLOB_HASH_BYTES])
{
    static const uint8_t data[BODY_BYTES] = {1};
    const vault_t *vault = store_vault (self->store);
    int64_t number;
    bool done = false;
    vault_word_t word = {""};
    bool there = false;
    memset (hash, byte, TMQ_BLOB_HASH_BYTES);
    if (vault->begin (vault->context, hash, sizeof data, &number, &word) != TMQ_OK ||
        vault->put (vault->context, number, hash, 0, data, sizeof data, &there, &word) != TMQ_OK ||
        !there || vault->end (vault->context, number, hash, &done, &word) != TMQ_OK || !done)
        fail_msg ("the body was not put: %s", word.text);
}

/* A large body is told to be there before any commit names it. */
static void a_lost_body_is_noticed (void **state)
{
    fixture_t *f = *state;
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    party_t *owner = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    put_body (owner, 7, hash);
    store_fixture_sql (f, "UPDATE blob SET whole = false");
    party_end_sessions (f, "beat");
    WAIT_FOR (atomic_load (&owner->failed_with) == STORE_ERROR_CUT, TIMING_PATIENCE_MS);
    assert_int_equal (store_fixture_sql (f, "SELECT timeline FROM shard"), PG_TIMELINE_CUT);
    party_free (owner);
}

/* … also one that was there before, and is told again to be there. */
static void a_lost_body_is_noticed_behind_a_look (void **state)
{
    fixture_t *f = *state;
    bool good = false;
    uint64_t at = 0;
    uint8_t first[TMQ_BLOB_HASH_BYTES];
    uint8_t second[TMQ_BLOB_HASH_BYTES];
    vault_word_t word = {""};
    party_t *owner = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    const vault_t *vault = store_vault (owner->store);
    put_body (owner, 7, first);
    put_body (owner, 8, second);
    assert_int_equal (vault->look (vault->context, first, BODY_BYTES, &at, &good, &word), TMQ_OK);
    assert_true (good);
    /* As a standby that has both, and not what the look wrote. */
    store_fixture_sql (f, "UPDATE blob SET touched = touched - 1 WHERE get_byte (hash, 0) = 7");
    party_end_sessions (f, "beat");
    WAIT_FOR (atomic_load (&owner->failed_with) == STORE_ERROR_CUT, TIMING_PATIENCE_MS);
    party_free (owner);
}

static void a_body_that_was_removed_is_not_missed (void **state)
{
    fixture_t *f = *state;
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    bool done = false;
    static vault_item_t items[VAULT_SLICE_MAX];
    size_t count = 0;
    vault_word_t word = {""};
    party_t *owner = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    put_body (owner, 7, hash);
    party_end_sessions (f, "beat"); /* it is there */
    party_submit (f, owner, 1, STORE_OK);
    const vault_t *vault = store_vault (owner->store);
    assert_int_equal (vault->list (vault->context, NULL, 0, items, &count, &word), TMQ_OK);
    assert_int_equal (count, 1);
    assert_int_equal (vault->remove (vault->context, items, &done, &word), TMQ_OK);
    assert_true (done);
    party_end_sessions (f, "beat");
    long long beat = store_fixture_sql (f, "SELECT beat FROM shard");
    WAIT_FOR (store_fixture_sql (f, "SELECT beat FROM shard") >= beat + 3, TIMING_PATIENCE_MS);
    assert_int_equal (atomic_load (&owner->failed_with), STORE_OK);
    party_free (owner);
}

/* Whose lease may hold: what a cut was found behind may have lost an owner. */
static void the_mark_of_a_cut_is_no_server (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_own (owner, STORE_OK);
    store_fixture_sql (f, "UPDATE shard SET timeline = -1");
    party_t *again = party_new (f, false, owner->directory);
    party_own (again, STORE_ERROR_OWNED);
    party_free (again);
    party_free (owner);
}

/* Until its process has ended an owner may beat once more: that takes nothing back. */
static void a_beat_leaves_the_mark_of_a_cut (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    party_t *next = party_new (f, true, NULL);
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    store_flush (owner->store);
    WAIT_FOR (store_fixture_sql (f, "SELECT batch FROM written") == 1, TIMING_PATIENCE_MS);
    do { /* what the store forgets in between writes it anew */
        store_fixture_sql (f, "UPDATE written SET batch = 0");
        timing_pause (100);
    } while (store_fixture_sql (f, "SELECT batch FROM written") != 0);
    party_end_sessions (f, "commits");
    party_submit (f, owner, 2, STORE_ERROR_CUT);
    long long beat = store_fixture_sql (f, "SELECT beat FROM shard");
    WAIT_FOR (store_fixture_sql (f, "SELECT beat FROM shard") >= beat + 2, TIMING_PATIENCE_MS);
    assert_int_equal (store_fixture_sql (f, "SELECT timeline FROM shard"), PG_TIMELINE_CUT);
    party_begin (next);
    party_stop_beats (f, PARTY_FAIL);
    party_end (next, STORE_OK);
    assert_true (next->boot.generation != owner->boot.generation);
    assert_true (store_fixture_sql (f, "SELECT timeline FROM shard") > 0);
    party_free (next);
    party_free (owner);
}

/* An adoption that a promotion lost: another broker has begun an epoch of the same number. */
static void a_cut_marks_nothing_of_another_owner (void **state)
{
    fixture_t *f = *state;
    party_t *owner = party_new (f, false, NULL);
    owner->options.dirty_ms_max = TIMING_PATIENCE_MS; /* only when it is asked for */
    party_own (owner, STORE_OK);
    party_submit (f, owner, 1, STORE_OK);
    store_flush (owner->store);
    WAIT_FOR (store_fixture_sql (f, "SELECT batch FROM written") == 1, TIMING_PATIENCE_MS);
    party_submit (f, owner, 2, STORE_OK);
    store_fixture_sql (f, "UPDATE shard SET owner = 'another one'; UPDATE written SET batch = 0;"
                          " DELETE FROM journal;"
                          " SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE"
                          " application_name LIKE 'taskmq write-back %' AND usename = 'taskmq'");
    store_flush (owner->store);
    WAIT_FOR (atomic_load (&owner->cut), TIMING_PATIENCE_MS);
    assert_true (store_fixture_sql (f, "SELECT timeline FROM shard") > 0);
    party_free (owner);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, party_setup, party_teardown)

int main (void)
{
    postgres_need ();
    const struct CMUnitTest tests[] = {
        TEST (an_idle_owner_notices_that_something_is_gone),
        TEST (a_write_back_notices_that_something_is_gone),
        TEST (a_write_back_that_is_cut_off_notices_it_again),
        TEST (a_beat_notices_that_a_write_back_is_gone),
        TEST (a_commit_notices_that_a_write_back_is_gone),
        TEST (a_start_brings_a_lost_write_back_back),
        TEST (a_verdict_is_the_last_word),
        TEST (a_doubt_knows_what_was_written_back_meanwhile),
        TEST (a_server_that_is_over_is_not_waited_for),
        TEST (a_late_acknowledgement_is_in_doubt),
        TEST (a_lost_body_is_noticed),
        TEST (a_lost_body_is_noticed_behind_a_look),
        TEST (a_body_that_was_removed_is_not_missed),
        TEST (the_mark_of_a_cut_is_no_server),
        TEST (a_beat_leaves_the_mark_of_a_cut),
        TEST (a_cut_marks_nothing_of_another_owner),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
