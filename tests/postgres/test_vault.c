/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Large bodies in the database: what was put is read as it was, what was not ended is seen by
 * nobody and swept, a former owner changes nothing, damage is told and healed; and a depot before
 * it tells nobody that a blob is there before the database has it. */
#include <libpq-fe.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blobs/depot.h"
#include "store/postgresql/pg_instance.h"
#include "store_fixture.h"
#include "support/timing.h"
#include "types.h"

enum { BYTES = 2 * VAULT_PUT_BYTES + VAULT_PIECE_BYTES + 77, PART = TMQ_PART_BYTES_MAX };

static const depot_limits_t LIMITS = {.blob_bytes = 64 << 20, .disk_bytes = 256 << 20};
static uint8_t contents[BYTES];
static uint8_t hash[TMQ_BLOB_HASH_BYTES];
static depot_upload_t upload = {.identity = "uid:7", .ns = "default", .hash = hash, .bytes = BYTES};
static const vault_t *vault;
static vault_word_t word;
static fixture_t *fixture;

static int setup (void **state)
{
    *state = (void *) "postgresql";
    assert_int_equal (fixture_setup (state), 0);
    fixture = *state;
    vault = store_vault (fixture->store);
    assert_non_null (vault);
    for (size_t i = 0; i < BYTES; i++)
        contents[i] = (uint8_t) (i * 7 + i / 251);
    crypto_generichash (hash, sizeof hash, contents, BYTES, NULL, 0);
    return 0;
}

static void expect (tmq_code_t found, tmq_code_t wanted)
{
    if (found != wanted)
        fail_msg ("%s in place of %s: %s", code_name ((int) found), code_name ((int) wanted),
                  word.text);
}

static void run_sql (const char *sql)
{
    store_fixture_sql (fixture, sql);
}

static void expect_number (const char *sql, long long wanted)
{
    long long found = store_fixture_sql (fixture, sql);
    if (found != wanted)
        fail_msg ("%s: %lld in place of %lld", sql, found, wanted);
}

static bool was_there; /* … what was begun under that number */

static tmq_code_t put (int64_t number, const uint8_t *of, size_t at, size_t length)
{
    return vault->put (vault->context, number, of, at, contents + at, length, &was_there, &word);
}

/* Up to there, without its end. */
static int64_t put_until (size_t end)
{
    int64_t number = 0;
    expect (vault->begin (vault->context, hash, BYTES, &number, &word), TMQ_OK);
    assert_true (number != 0);
    for (size_t at = 0; at < end; at += VAULT_PUT_BYTES) {
        size_t some = end - at < VAULT_PUT_BYTES ? end - at : VAULT_PUT_BYTES;
        expect (put (number, hash, at, some), TMQ_OK);
        assert_true (was_there);
    }
    return number;
}

static void put_all (void)
{
    bool done = false;
    int64_t number = put_until (BYTES);
    expect (vault->end (vault->context, number, hash, &done, &word), TMQ_OK);
    assert_true (done);
}

static tmq_code_t read_part (size_t offset, uint8_t *to, size_t *length)
{
    return vault->read (vault->context, hash, BYTES, offset, to, PART, length, &word);
}

static void expect_contents (size_t offset)
{
    static uint8_t part[PART];
    for (size_t length = 1; offset < BYTES; offset += length) {
        expect (read_part (offset, part, &length), TMQ_OK);
        assert_true (length > 0);
        assert_memory_equal (part, contents + offset, length);
    }
}

static bool is_good (void)
{
    uint64_t at = 0;
    bool good = true;
    while (good && at < BYTES)
        expect (vault->look (vault->context, hash, BYTES, &at, &good, &word), TMQ_OK);
    return good;
}

static void sweep_all (void)
{
    bool more = true;
    while (more)
        expect (vault->sweep (vault->context, NULL, 0, &more, &word), TMQ_OK);
}

static void what_was_put_is_read_again (void **state)
{
    (void) state;
    uint8_t byte[PART];
    size_t length = 1;
    expect (read_part (0, byte, &length), TMQ_NO_BLOB);
    assert_non_null (strstr (word.text, "missing"));
    assert_false (is_good ());
    put_all ();
    expect_contents (0);
    expect_contents (VAULT_PIECE_BYTES - 5); /* across the ends of pieces */
    expect (read_part (BYTES, byte, &length), TMQ_OK);
    assert_int_equal (length, 0);
    assert_true (is_good ());
    assert_int_equal (vault->stats (vault->context).blobs, 1);
    assert_int_equal (vault->stats (vault->context).bytes, BYTES);
    expect_number ("SELECT max (octet_length (bytes)) FROM blob_chunk", VAULT_PIECE_BYTES);
    put_all (); /* in its own place */
    assert_int_equal (vault->stats (vault->context).bytes, BYTES);
    sweep_all ();
    expect_number ("SELECT count (*) FROM blob", 1);
    expect_number ("SELECT sum (octet_length (bytes)) FROM blob_chunk", BYTES);
    expect_contents (0);
}

static void what_was_not_ended_is_swept (void **state)
{
    (void) state;
    uint8_t byte[PART];
    size_t length;
    bool more = true;
    bool done = true;
    int64_t number = put_until (VAULT_PUT_BYTES);
    expect (put (number, hash, 0, VAULT_PUT_BYTES), TMQ_OK); /* again */
    expect (read_part (0, byte, &length), TMQ_NO_BLOB);
    expect (vault->end (vault->context, number, hash, &done, &word), TMQ_OK);
    assert_false (done); /* it is not whole */
    expect (vault->sweep (vault->context, &number, 1, &more, &word), TMQ_OK);
    assert_false (more); /* it is being put */
    expect_number ("SELECT count (*) FROM blob_chunk", VAULT_PUT_BYTES / VAULT_PIECE_BYTES);
    sweep_all ();
    expect_number ("SELECT count (*) FROM blob_chunk", 0);
    expect_number ("SELECT count (*) FROM blob", 0);
    expect (vault->end (vault->context, number, hash, &done, &word), TMQ_OK);
    assert_false (done);
}

static void *sweep_run (void *context)
{
    bool *more = context;
    return vault->sweep (vault->context, NULL, 0, more, &word) == TMQ_OK ? context : NULL;
}

/* The end of a put whose answer was lost takes effect when the sweep has found it without a name
 * already: what has one now stays. */
static void what_got_its_name_meanwhile_is_not_swept (void **state)
{
    (void) state;
    char sql[256];
    pthread_t sweeper;
    bool more = false;
    void *good = NULL;
    int64_t number = put_until (BYTES);
    PGconn *lost = PQconnectdb (store_fixture_options (fixture)->uri);
    snprintf (sql, sizeof sql,
              "SET search_path = %s; BEGIN; SELECT 1 FROM fence WHERE part = 'b' FOR UPDATE",
              store_fixture_schema (fixture));
    PQclear (PQexec (lost, sql));
    snprintf (sql, sizeof sql, "UPDATE blob SET whole = true WHERE id = %lld", (long long) number);
    PQclear (PQexec (lost, sql));
    assert_int_equal (PQtransactionStatus (lost), PQTRANS_INTRANS);
    assert_int_equal (pthread_create (&sweeper, NULL, sweep_run, &more), 0);
    WAIT_FOR (store_fixture_sql (fixture, "SELECT count (*) FROM pg_stat_activity WHERE"
                                          " application_name LIKE 'taskmq blobs %'"
                                          " AND wait_event_type = 'Lock'") == 1,
              TIMING_PATIENCE_MS);
    PQclear (PQexec (lost, "COMMIT"));
    assert_int_equal (PQtransactionStatus (lost), PQTRANS_IDLE);
    PQfinish (lost);
    assert_int_equal (pthread_join (sweeper, &good), 0);
    assert_non_null (good);
    sweep_all ();
    expect_contents (0);
    expect_number ("SELECT sum (octet_length (bytes)) FROM blob_chunk", BYTES);
}

/* Another server may lack what was begun on the one before, and give its number to another body. */
static void a_number_counts_with_its_hash_alone (void **state)
{
    (void) state;
    static const uint8_t other[TMQ_BLOB_HASH_BYTES] = {1};
    int64_t number = put_until (VAULT_PUT_BYTES);
    expect (put (number, other, VAULT_PUT_BYTES, 1), TMQ_OK);
    assert_false (was_there);
    expect (put (number + 1, hash, VAULT_PUT_BYTES, 1), TMQ_OK);
    assert_false (was_there);
    expect_number ("SELECT count (*) FROM blob_chunk", VAULT_PUT_BYTES / VAULT_PIECE_BYTES);
    put_all ();
    expect (put (number + 1, hash, 0, 1), TMQ_OK); /* it has its name, and stays as it is */
    assert_false (was_there);
    expect_contents (0);
}

/* Files are read by the same thread: behind a lock the database is left alone for a while. */
static void a_table_that_is_locked_is_not_waited_for_each_time (void **state)
{
    (void) state;
    char uri[POSTGRES_URI_SIZE];
    char sql[96];
    int64_t number = put_until (VAULT_PUT_BYTES);
    postgres_uri (store_fixture_server (), "postgres", "taskmq", uri);
    PGconn *holder = PQconnectdb (uri);
    snprintf (sql, sizeof sql, "BEGIN; LOCK TABLE %s.blob IN ACCESS EXCLUSIVE MODE",
              store_fixture_schema (fixture));
    PQclear (PQexec (holder, sql));
    assert_int_equal (PQtransactionStatus (holder), PQTRANS_INTRANS);
    expect (put (number, hash, 0, VAULT_PUT_BYTES), TMQ_UNAVAILABLE);
    PQfinish (holder);
    WAIT_FOR (put (number, hash, 0, VAULT_PUT_BYTES) == TMQ_OK, TIMING_PATIENCE_MS);
    assert_true (was_there);
}

static void a_former_owner_changes_nothing (void **state)
{
    (void) state;
    bool done = true;
    bool more;
    bool good;
    uint64_t at = BYTES - 1;
    int64_t fresh = 0;
    put_all ();
    int64_t number = put_until (BYTES);
    vault_item_t item;
    size_t count;
    expect (vault->list (vault->context, NULL, 0, &item, &count, &word), TMQ_OK);
    assert_int_equal (count, 1);
    assert_true (item.still);
    run_sql ("UPDATE fence SET epoch = epoch + 1 WHERE part = 'b'");
    long long before =
        store_fixture_sql (fixture, "SELECT hashtext (string_agg (b::text, ',' ORDER "
                                    "BY id)) FROM blob b");
    expect (vault->begin (vault->context, hash, BYTES, &fresh, &word), TMQ_UNAVAILABLE);
    expect (put (number, hash, 0, 1), TMQ_UNAVAILABLE);
    expect (vault->end (vault->context, number, hash, &done, &word), TMQ_UNAVAILABLE);
    expect (vault->remove (vault->context, &item, &done, &word), TMQ_UNAVAILABLE);
    expect (vault->sweep (vault->context, NULL, 0, &more, &word), TMQ_UNAVAILABLE);
    expect (vault->look (vault->context, hash, BYTES, &at, &good, &word), TMQ_UNAVAILABLE);
    expect_number ("SELECT hashtext (string_agg (b::text, ',' ORDER BY id)) FROM blob b", before);
    expect_number ("SELECT sum (octet_length (bytes)) FROM blob_chunk", 2 * BYTES);
    expect_contents (0); /* what has a name are its bytes, whoever reads them */
}

/* A session that stood still in the middle of a put is ended by who takes over. */
static void a_stuck_put_holds_up_nobody (void **state)
{
    (void) state;
    char sql[512];
    char tag[PG_TAG_SIZE];
    put_all ();
    const char *schema = store_fixture_schema (fixture);
    snprintf (sql, sizeof sql, "SELECT owner FROM %s.shard", schema);
    char *owner = postgres_sql (store_fixture_server (), sql);
    pg_instance_tag (owner, tag);
    fixture_close (fixture);
    snprintf (sql, sizeof sql, "UPDATE %s.shard SET owner = '%s'", schema, owner);
    free (postgres_sql (store_fixture_server (), sql)); /* as if it had been killed */
    free (owner);
    PGconn *stuck = PQconnectdb (store_fixture_options (fixture)->uri);
    snprintf (sql, sizeof sql, "SET application_name = 'taskmq blobs %s'", tag);
    PQclear (PQexec (stuck, sql));
    snprintf (sql, sizeof sql, "BEGIN; SELECT 1 FROM %s.fence WHERE part = 'b' FOR UPDATE", schema);
    PQclear (PQexec (stuck, sql));
    assert_int_equal (PQtransactionStatus (stuck), PQTRANS_INTRANS);
    fixture_open (fixture);
    vault = store_vault (fixture->store);
    PQclear (PQexec (stuck, "SELECT 1"));
    assert_int_equal (PQstatus (stuck), CONNECTION_BAD);
    PQfinish (stuck);
    expect_contents (0);
    assert_true (is_good ());
}

static void what_is_removed_was_not_touched (void **state)
{
    (void) state;
    vault_item_t item;
    size_t count;
    bool done = true;
    put_all ();
    expect (vault->list (vault->context, NULL, 3600 * 1000, &item, &count, &word), TMQ_OK);
    assert_int_equal (count, 1);
    assert_false (item.still);
    run_sql ("UPDATE blob SET touched = touched - 7200000");
    expect (vault->list (vault->context, NULL, 3600 * 1000, &item, &count, &word), TMQ_OK);
    assert_true (item.still);
    expect (vault->list (vault->context, item.hash, 0, &item, &count, &word), TMQ_OK);
    assert_int_equal (count, 0);
    assert_true (is_good ()); /* that touches it */
    expect (vault->remove (vault->context, &item, &done, &word), TMQ_OK);
    assert_false (done);
    expect_contents (0);
    expect (vault->list (vault->context, NULL, 0, &item, &count, &word), TMQ_OK);
    expect (vault->remove (vault->context, &item, &done, &word), TMQ_OK);
    assert_true (done);
    assert_false (is_good ());
    assert_int_equal (vault->stats (vault->context).blobs, 0);
    sweep_all ();
    expect_number ("SELECT count (*) FROM blob_chunk", 0);
}

/* Depots before it. */

static depot_t *open_depot (const char *name, bool uses)
{
    int error = 0;
    char path[128];
    snprintf (path, sizeof path, "%s/%s", fixture->directory, name);
    depot_t *depot = depot_new (path, &LIMITS, &error);
    assert_non_null (depot);
    depot_use (depot, uses ? vault : NULL);
    return depot;
}

/* Until it is whole or refused. between: called before each turn. */
static depot_word_t bring_up (depot_t *depot, void (*between) (void))
{
    depot_word_t out;
    depot_begin (depot, &upload, 0, &out);
    while (out.code == TMQ_OK && !out.whole) {
        if (between != NULL)
            between ();
        if (out.more) {
            depot_begin (depot, &upload, 0, &out);
            continue;
        }
        size_t left = BYTES - (size_t) out.offset;
        depot_chunk (depot, &upload, out.offset, contents + out.offset, left < PART ? left : PART,
                     0, &out);
    }
    snprintf (word.text, sizeof word.text, "%.250s", out.text);
    return out;
}

static void expect_whole (depot_t *depot)
{
    depot_word_t out = bring_up (depot, NULL);
    expect (out.code, TMQ_OK);
    assert_true (out.whole);
}

static tmq_code_t depot_part (depot_t *depot, size_t offset, uint8_t *to, size_t *length)
{
    depot_word_t out;
    do
        depot_read (depot, hash, BYTES, offset, to, PART, length, &out);
    while (out.more);
    snprintf (word.text, sizeof word.text, "%.250s", out.text);
    return out.code;
}

static void expect_depot_contents (depot_t *depot)
{
    static uint8_t part[PART];
    size_t length;
    for (size_t offset = 0; offset < BYTES; offset += length) {
        expect (depot_part (depot, offset, part, &length), TMQ_OK);
        assert_true (length > 0);
        assert_memory_equal (part, contents + offset, length);
    }
}

static void another_machine_has_what_was_acknowledged (void **state)
{
    (void) state;
    depot_t *first = open_depot ("first", true);
    depot_t *second = open_depot ("second", true);
    expect_whole (first);
    expect_contents (0);
    expect_whole (first); /* as it was */
    expect_number ("SELECT count (*) FROM blob", 1);
    assert_int_equal (depot_stats (first).stored_bytes, BYTES);
    expect_depot_contents (second);
    assert_int_equal (depot_stats (second).blobs, 0);
    expect_whole (second); /* a hash alone gives nobody anything, so its bytes came again */
    expect_number ("SELECT count (*) FROM blob", 1);
    const depot_limits_t full = {.blob_bytes = 64 << 20, .disk_bytes = BYTES + BYTES / 2};
    depot_t *third = open_depot ("third", true);
    depot_configure (third, &full);
    depot_word_t out = bring_up (third, NULL); /* the limit is of all that is kept */
    expect (out.code, TMQ_LIMIT);
    depot_free (&first);
    depot_free (&second);
    depot_free (&third);
}

static void end_sessions (void)
{
    run_sql ("SELECT pg_terminate_backend (pid, 1000) FROM pg_stat_activity WHERE application_name "
             "LIKE 'taskmq blobs%'");
}

static void a_cut_link_acknowledges_nothing (void **state)
{
    (void) state;
    depot_t *depot = open_depot ("blobs", true);
    depot_word_t out;
    size_t refusals = 0;
    expect_number ("SELECT count (*) FROM blob", 0);
    do {
        out = bring_up (depot, refusals < 8 ? end_sessions : NULL);
        if (out.code != TMQ_OK) {
            expect (out.code, TMQ_UNAVAILABLE);
            assert_true (out.retry_after_ms > 0);
            assert_true (++refusals < 100);
        }
    } while (out.code != TMQ_OK);
    assert_true (refusals > 0);
    assert_true (out.whole);
    expect_contents (0);
    while (depot_sweep (depot))
        continue;
    expect_number ("SELECT count (*) FROM blob", 1);
    depot_free (&depot);
}

static void damage_is_told_and_healed (void **state)
{
    (void) state;
    static const char *const harms[] = {
        "UPDATE blob_chunk SET bytes = set_byte (bytes, 5, get_byte (bytes, 5) # 1) WHERE n = 1",
        "DELETE FROM blob_chunk WHERE n = 1",
        ("UPDATE blob_chunk SET bytes = substr (bytes, 1, 9), sum = sha256 (substr (bytes, 1, 9))"
         " WHERE n = 1"),
    };
    static uint8_t part[PART];
    size_t length;
    depot_t *first = open_depot ("first", true);
    depot_t *second = open_depot ("second", true);
    expect_whole (first);
    for (size_t i = 0; i < sizeof harms / sizeof harms[0]; i++) {
        run_sql (harms[i]);
        expect (depot_part (second, VAULT_PIECE_BYTES, part, &length), TMQ_NO_BLOB);
        assert_non_null (strstr (word.text, "is damaged in the database"));
        expect (depot_part (second, 0, part, &length), TMQ_OK);
        expect_whole (first); /* whoever brings it again heals it */
        while (depot_sweep (first))
            continue;
        expect_depot_contents (second);
        expect_number ("SELECT count (*) FROM blob_chunk",
                       (BYTES + VAULT_PIECE_BYTES - 1) / VAULT_PIECE_BYTES);
    }
    depot_free (&first);
    depot_free (&second);
}

/* What the disk made of it between the upload and the database gets no name there. */
static void a_damaged_file_is_not_put (void **state)
{
    (void) state;
    char command[512];
    depot_t *depot = open_depot ("blobs", false);
    expect_whole (depot);
    char hex[2 * sizeof hash + 1];
    sodium_bin2hex (hex, sizeof hex, hash, sizeof hash);
    snprintf (command, sizeof command,
              "printf x | dd of=%s/blobs/%.2s/%s bs=1 seek=9 conv=notrunc 2>&1", fixture->directory,
              hex, hex + 2);
    assert_int_equal (system (command), 0);
    depot_use (depot, vault);
    depot_place_t place = {0};
    static depot_left_t left[DEPOT_SLICE_MAX];
    size_t count = 0;
    while (count == 0 && place.bucket < DEPOT_BUCKETS)
        expect (depot_lacking (depot, &place, left, &count), TMQ_OK);
    assert_int_equal (count, 1);
    depot_word_t out;
    do
        depot_bring (depot, &left[0], &out);
    while (out.more);
    assert_int_equal (out.code, TMQ_NO_BLOB);
    expect_number ("SELECT count (*) FROM blob WHERE whole", 0);
    while (depot_sweep (depot))
        continue;
    expect_number ("SELECT count (*) FROM blob_chunk", 0);
    depot_free (&depot);
}

static void files_of_before_are_brought (void **state)
{
    (void) state;
    static depot_left_t left[DEPOT_SLICE_MAX];
    depot_place_t place = {0};
    size_t count = 0;
    size_t turns = 0;
    depot_word_t out;
    depot_t *depot = open_depot ("blobs", false);
    expect_whole (depot);
    depot_use (depot, vault);
    while (count == 0 && place.bucket < DEPOT_BUCKETS)
        expect (depot_lacking (depot, &place, left, &count), TMQ_OK);
    assert_int_equal (count, 1);
    assert_memory_equal (left[0].hash, hash, sizeof hash);
    do {
        if (++turns == 3)
            end_sessions ();
        depot_bring (depot, &left[0], &out);
    } while (out.more || out.code == TMQ_UNAVAILABLE);
    assert_true (out.whole);
    expect_contents (0);
    place = (depot_place_t){0};
    while (place.bucket < DEPOT_BUCKETS) {
        expect (depot_lacking (depot, &place, left, &count), TMQ_OK);
        assert_int_equal (count, 0);
    }
    depot_free (&depot);
}

/* Each place has a time of its own, so each is collected by its own look. */
static void both_places_are_collected (void **state)
{
    (void) state;
    static depot_left_t left[DEPOT_SLICE_MAX];
    size_t count;
    depot_t *depot = open_depot ("blobs", true);
    expect_whole (depot);
    depot_look_stored (depot, left, &count);
    assert_int_equal (count, 0);
    run_sql ("UPDATE blob SET touched = touched - 7200000");
    depot_look_stored (depot, left, &count);
    assert_int_equal (count, 1);
    assert_true (left[0].stored);
    expect_whole (depot); /* somebody has it again */
    depot_collect (depot, &left[0]);
    expect_contents (0);
    run_sql ("UPDATE blob SET touched = touched - 7200000");
    depot_look_stored (depot, left, &count);
    depot_collect (depot, &left[0]);
    expect_number ("SELECT count (*) FROM blob WHERE whole", 0);
    expect_depot_contents (depot); /* the file goes when it has stood still for an hour, too */
    expect_whole (depot);          /* and nobody hears of it before it is there again */
    expect_contents (0);
    depot_free (&depot);
}

int main (void)
{
    assert_true (sodium_init () >= 0);
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, fixture_teardown)
        TEST (what_was_put_is_read_again),
        TEST (what_was_not_ended_is_swept),
        TEST (a_number_counts_with_its_hash_alone),
        TEST (a_table_that_is_locked_is_not_waited_for_each_time),
        TEST (what_got_its_name_meanwhile_is_not_swept),
        TEST (a_former_owner_changes_nothing),
        TEST (a_stuck_put_holds_up_nobody),
        TEST (what_is_removed_was_not_touched),
        TEST (another_machine_has_what_was_acknowledged),
        TEST (a_cut_link_acknowledges_nothing),
        TEST (damage_is_told_and_healed),
        TEST (a_damaged_file_is_not_put),
        TEST (files_of_before_are_brought),
        TEST (both_places_are_collected),
#undef TEST
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
