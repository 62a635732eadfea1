/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The readers of the postgresql backend: their plans, pages as short as can be, a table that is
 * locked, sessions that are cut. What each read answers, the suites of every backend say. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "ids.h"
#include "store/patience.h"
#include "store/postgresql/pg_readers.h"
#include "store/postgresql/pg_readers_sql.h"
#include "store_fixture.h"
#include "support/timing.h"

enum { TASKS = 3000, PAGE_ITEMS = 100 };

/* Plans. */

typedef struct plan {
    pg_read_statement_t statement;
    const char *index; /* the one that is walked */
    const char *step;  /* … and others that a step of it may use; NULL: none */
} plan_t;

static const plan_t PLANS[] = {
    {PG_WALK_BY_QUEUE, "task_queue", "label_found"},
    {PG_WALK_BY_SESSION, "task_session", "label_found"},
    {PG_WALK_BY_LABEL, "label_found", "task_pkey"},
    {PG_WALK_BY_PARENT, "task_parent", "label_found"},
    {PG_WALK_BY_NUMBER, "task_pkey", "label_found"},
    {PG_FEW_BY_QUEUE, "task_queue", NULL},
    {PG_FEW_BY_SESSION, "task_session", NULL},
    {PG_FEW_BY_LABEL, "label_found", NULL},
    {PG_COUNT_BY_QUEUE, "task_queue", NULL},
    {PG_COUNT_BY_NUMBER, "task_pkey", NULL},
    {PG_SPACE, "namespace_name_key", NULL},
    {PG_QUEUES, "task_queue", NULL},
    {PG_BOUNDS, "task_pkey", NULL},
    {PG_CREATED, "task_pkey", NULL},
    {PG_ORDER, "row_pkey", NULL},
    {PG_RECORDS, "task_pkey", "label_found"},
    {PG_NEWEST_IDS, "task_id", NULL},
    {PG_IDS, "task_pkey", NULL},
    {PG_NEWEST_OF, "task_id", "namespace_name_key"},
    {PG_ATTEMPTS, "attempt_pkey", NULL},
    {PG_LASTING, "task_lasting", NULL},
    {PG_ROWS, "row_pkey", NULL},
    {PG_WHOLE_WINDOW, "task_pkey", "namespace_pkey"},
    {PG_WHOLE_NEXT, "task_pkey", "namespace_pkey"},
    {PG_WHOLE_ROWS, "task_pkey", "namespace_name_key"},
    {PG_EVENTS_UPTO, "event_pkey", NULL},
    {PG_EVENTS_BLOCK, "event_pkey", NULL},
    {PG_EVENTS_FROM, "event_pkey", NULL},
    {PG_EVENTS_FIRST, "event_pkey", NULL},
    {PG_POS_UPTO, "event_pos", "namespace_pkey"},
    {PG_POS_AFTER, "event_pos", "namespace_pkey"},
    {PG_EXPORT_NEWEST, "task_id", NULL},
};

static int parameters_of (const char *text)
{
    int most = 0;
    for (const char *at = strchr (text, '$'); at != NULL; at = strchr (at + 1, '$'))
        most = atoi (at + 1) > most ? atoi (at + 1) : most;
    return most;
}

/* The plan as JSON, as a session of a reader has it. */
static char *run_explain (const fixture_t *fixture, const char *options, const char *text,
                          const char *given)
{
    bytes_t sql = BYTES_INIT;
    char head[640];
    snprintf (head, sizeof (head),
              "SET search_path = %s; SET jit = off; SET plan_cache_mode = force_generic_plan; ",
              store_fixture_schema (fixture));
    const char *const parts[] = {head,
                                 PG_READ_SESSION,
                                 "; PREPARE s AS ",
                                 text,
                                 "; EXPLAIN (",
                                 options,
                                 "FORMAT JSON, COSTS OFF) EXECUTE s (",
                                 given,
                                 ")"};
    for (size_t i = 0; i < sizeof (parts) / sizeof (parts[0]); i++)
        bytes_append_text (&sql, parts[i]);
    bytes_append_byte (&sql, '\0');
    char *plan = postgres_sql (store_fixture_server (), (const char *) sql.data);
    bytes_free (&sql);
    return plan;
}

static char *explain (const fixture_t *fixture, const char *text)
{
    char given[64] = "NULL";
    for (int i = 1; i < parameters_of (text); i++)
        strcat (given, ", NULL");
    return run_explain (fixture, "", text, given);
}

/* Each scan of an index: it is one of these two, and has a condition, unless all namespaces are
 * meant. */
static void check_indexes (const plan_t *plan, const char *json)
{
    static const char NAME[] = "\"Index Name\": \"";
    bool found = false;
    for (const char *at = strstr (json, NAME); at != NULL; at = strstr (at + 1, NAME)) {
        char name[64];
        snprintf (name, sizeof (name), "%.*s", (int) strcspn (at + strlen (NAME), "\""),
                  at + strlen (NAME));
        bool walked = strcmp (name, plan->index) == 0;
        if (!walked && (plan->step == NULL || strcmp (name, plan->step) != 0))
            fail_msg ("statement %d goes through %s: %s", plan->statement, name, json);
        found = found || walked;
        const char *condition = strstr (at, "\"Index Cond\"");
        const char *node = strstr (at, "\"Node Type\"");
        bool has = condition != NULL && (node == NULL || condition < node);
        if (!has && strcmp (name, "namespace_pkey") != 0)
            fail_msg ("statement %d walks all of %s: %s", plan->statement, name, json);
    }
    if (!found)
        fail_msg ("statement %d does not go through %s: %s", plan->statement, plan->index, json);
}

static void check_plans (const fixture_t *fixture)
{
    /* A comparison of rows begins a walk where it should, and does not end it there. */
    static const char *const NEVER[] = {"\"Sort\"", "Seq Scan",   "Bitmap",
                                        "\"Hash",   "Merge Join", "ROW("};
    assert_int_equal (sizeof (PLANS) / sizeof (PLANS[0]), PG_READ_STATEMENTS);
    for (size_t i = 0; i < PG_READ_STATEMENTS; i++) {
        char *json = explain (fixture, PG_READ_TEXTS[PLANS[i].statement]);
        assert_int_equal (PLANS[i].statement, i);
        for (size_t k = 0; k < sizeof (NEVER) / sizeof (NEVER[0]); k++)
            if (strstr (json, NEVER[k]) != NULL)
                fail_msg ("statement %d has %s: %s", (int) i, NEVER[k], json);
        check_indexes (&PLANS[i], json);
        free (json);
    }
}

/* Whatever the server knows of the tables: nothing, that they are full, that one status has all. */
static void each_statement_walks_a_range_of_its_index (void **state)
{
    fixture_t *f = *state;
    check_plans (f);
    fixture_submit (f, 1, TASKS);
    fixture_settle (f);
    check_plans (f);
    store_fixture_sql (f, "ANALYZE; SELECT 1");
    check_plans (f);
}

/* A number in a JSON text behind a name, where it stands first. */
static long json_number (const char *json, const char *name)
{
    const char *at = strstr (json, name);
    assert_non_null (at);
    return strtol (at + strlen (name), NULL, 10);
}

/* An end that is not one of the index's would show here: of one number, a few pages of the index
 * and of the table are looked at, however many tasks have the same queue and status. */
static void a_range_ends_at_its_lowest_number (void **state)
{
    enum { MANY = 20000, BLOCKS_MAX = 20 };
    static const struct {
        pg_read_statement_t statement;
        const char *given;
    } RANGES[] = {
        {PG_WALK_BY_QUEUE, "1, 9999, 64, '{10000}', '{}', '{}', '{mail}', '{1}'"},
        {PG_WALK_BY_QUEUE, "1, 1, 64, '{20001}', '{}', '{}', '{mail}', '{5}'"},
        {PG_COUNT_BY_QUEUE, "1, 9999, '{10000}', '{mail}', '{1}'"},
        {PG_WALK_BY_NUMBER, "1, 9999, 64, '{10000}', '{}', '{}'"},
        {PG_COUNT_BY_NUMBER, "1, 9999, 10000"},
        {PG_RECORDS, "1, '{10000}', '{colour}', '{red}'"},
        {PG_QUEUES, "1, 500"},
    };
    fixture_t *f = *state;
    fixture_submit (f, 1, MANY);
    fixture_settle (f);
    assert_int_equal (store_fixture_sql (f, "SELECT id FROM namespace"), 1);
    for (size_t i = 0; i < sizeof (RANGES) / sizeof (RANGES[0]); i++) {
        char *json = run_explain (f, "ANALYZE, BUFFERS, ", PG_READ_TEXTS[RANGES[i].statement],
                                  RANGES[i].given);
        long blocks = json_number (json, "\"Shared Hit Blocks\": ") +
                      json_number (json, "\"Shared Read Blocks\": ");
        if (blocks > BLOCKS_MAX)
            fail_msg ("range %d looks at %ld pages: %s", (int) i, blocks, json);
        free (json);
    }
}

/* Pages. */

static int short_setup (void **state)
{
    fixture_t *f = fixture_new (*state);
    f->options.read_us_max = 0;
    fixture_open (f);
    *state = f;
    return 0;
}

/* Each transaction is over when it begins: whatever looks at the clock before it has moved on would
 * never end. */
static void every_read_ends_in_the_shortest_pages (void **state)
{
    fixture_t *f = *state;
    tmq_id_t id = test_id (1);
    static const char *const QUEUES[] = {"mail"};
    fixture_submit (f, 1, TASKS);
    fixture_settle (f);
    filter_t filter = {.ns = "default", .queues = QUEUES, .queues_count = 1};
    read_t list = {.kind = READ_LIST, .filter = filter, .limit = TASKS};
    fixture_read (f, &list);
    assert_int_equal (list.records_count, TASKS);
    for (size_t i = 0; i < TASKS; i++)
        assert_int_equal (list.records[i]->number, TASKS - i);
    read_clear (&list);
    read_t count = {.kind = READ_COUNT, .filter = filter};
    fixture_read (f, &count);
    assert_int_equal (count.count, TASKS);
    read_t resolve = {.kind = READ_RESOLVE, .filter = filter};
    for (size_t i = 0; i < 6; i++)
        snprintf (resolve.suffix + 2 * i, 3, "%02x", id.bytes[10 + i]);
    fixture_read (f, &resolve);
    assert_int_equal (resolve.count, 1);
    read_t history = {.kind = READ_HISTORY, .filter = filter, .last_seq = TASKS, .limit = 5};
    fixture_read (f, &history);
    uint64_t seq;
    assert_int_equal (list_seqs (history.list, &seq, 1), 1);
    read_clear (&history);
    read_t export = {.kind = READ_EXPORT, .limit = SIZE_MAX, .from_tables = true};
    fixture_read (f, &export);
    assert_int_equal (export.items_count, TASKS);
    read_clear (&export);
    read_t whole = {.kind = READ_WHOLE, .limit = TASKS};
    fixture_read (f, &whole);
    assert_int_equal (whole.records_count, TASKS);
    read_clear (&whole);
}

/* The export. */

static void export_from (fixture_t *f, uint64_t after_pos, size_t limit, size_t bytes_max,
                         read_t *out)
{
    *out = (read_t){.kind = READ_EXPORT,
                    .limit = limit,
                    .bytes_max = bytes_max,
                    .after_pos = after_pos,
                    .from_tables = true};
    fixture_read (f, out);
}

static void the_export_follows_its_reader_anywhere (void **state)
{
    fixture_t *f = *state;
    static const uint64_t STARTS[] = {0, 5, 1500, 20, TASKS, 3};
    fixture_submit (f, 1, TASKS);
    fixture_settle (f);
    for (size_t i = 0; i < sizeof (STARTS) / sizeof (STARTS[0]); i++) {
        read_t read;
        bool ended = STARTS[i] == TASKS;
        export_from (f, STARTS[i], PAGE_ITEMS, 0, &read);
        assert_int_equal (read.more, !ended);
        assert_int_equal (read.items_count, ended ? 0 : PAGE_ITEMS);
        if (!ended)
            assert_int_equal (read.items[0].pos, STARTS[i] + 1);
        read_clear (&read);
    }
}

/* A page that its bytes end in the middle of a block is followed by one that has the rest. */
static void the_export_ends_at_its_bytes (void **state)
{
    fixture_t *f = *state;
    enum { SOME = 50, BODY_BYTES = 1000 };
    static const uint8_t BODY[BODY_BYTES] = {7};
    batch_t *batch = fixture_batch (f);
    for (int64_t number = 1; number <= SOME; number++) {
        record_t record = test_record (number);
        record.payload = buf_new (BODY, sizeof (BODY));
        record.payload_bytes = BODY_BYTES;
        fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
        buf_drop (record.payload);
    }
    fixture_commit (f, batch);
    fixture_settle (f);
    uint64_t pos = 0;
    size_t pages = 0;
    for (bool more = true; more; pages++) {
        read_t read;
        export_from (f, pos, SOME, 4 * BODY_BYTES, &read);
        for (size_t i = 0; i < read.items_count; i++) {
            assert_int_equal (read.items[i].pos, pos + 1 + i);
            assert_int_equal (buf_length (read.items[i].record->payload), BODY_BYTES);
        }
        assert_true (read.items_count <= 4);
        assert_false (read.gap);
        pos = read.upto_pos;
        more = read.more;
        read_clear (&read);
    }
    assert_int_equal (pos, SOME);
    assert_true (pages >= SOME / 4);
}

/* What stands far apart, and in many namespaces, comes in the order of numbers. */
static void whole_tasks_come_in_order_over_gaps_and_namespaces (void **state)
{
    fixture_t *f = *state;
    static const int64_t NUMBERS[] = {3, 4, 300, 5000, 5001, 1000000};
    static const char *const SPACES[] = {"b", "a", "default", "a", "c", "b"};
    enum { COUNT = 6 };
    batch_t *batch = fixture_batch (f);
    for (size_t i = 0; i < COUNT; i++) {
        record_t record = test_record (NUMBERS[i]);
        record.ns = SPACES[i];
        batch_add_record (batch, &record);
    }
    fixture_commit (f, batch);
    fixture_settle (f);
    read_t read = {.kind = READ_WHOLE, .limit = COUNT - 1};
    fixture_read (f, &read);
    assert_int_equal (read.records_count, COUNT - 1);
    assert_true (read.more);
    for (size_t i = 0; i < read.records_count; i++) {
        assert_int_equal (read.records[i]->number, NUMBERS[i]);
        assert_string_equal (read.records[i]->ns, SPACES[i]);
    }
    read_clear (&read);
    read = (read_t){.kind = READ_WHOLE, .limit = 10, .after_number = NUMBERS[COUNT - 2]};
    fixture_read (f, &read);
    assert_int_equal (read.records_count, 1);
    assert_false (read.more);
    read_clear (&read);
}

/* Failures. */

static size_t list_count (fixture_t *f)
{
    read_t read = {.kind = READ_LIST, .filter = {.ns = "default"}, .limit = TASKS};
    fixture_read (f, &read);
    size_t count = read.records_count;
    read_clear (&read);
    return count;
}

static void *hold_the_table (void *context)
{
    char sql[256];
    snprintf (sql, sizeof (sql),
              "BEGIN; LOCK TABLE %s.task IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep (%d.%d); COMMIT",
              store_fixture_schema (context), 3 * PG_READERS_TIMEOUT_MS / 1000,
              3 * PG_READERS_TIMEOUT_MS % 1000);
    free (postgres_sql (store_fixture_server (), sql));
    return NULL;
}

/* A statement that takes too long is given up, and done again: nobody is told that the database is
 * away. */
static void a_table_that_is_locked_is_waited_for (void **state)
{
    fixture_t *f = *state;
    pthread_t holder;
    fixture_submit (f, 1, 10);
    fixture_settle (f);
    assert_int_equal (list_count (f), 10);
    assert_int_equal (pthread_create (&holder, NULL, hold_the_table, f), 0);
    WAIT_FOR (store_fixture_sql (f, "SELECT count (*) FROM pg_locks WHERE mode = "
                                    "'AccessExclusiveLock' AND granted AND relation = "
                                    "'task'::regclass") == 1,
              TIMING_PATIENCE_MS);
    assert_int_equal (list_count (f), 10);
    assert_int_equal (store_away_ms (f->store), 0);
    pthread_join (holder, NULL);
}

static void *list_once (void *context)
{
    fixture_t *f = context;
    read_t read = {.kind = READ_LIST, .filter = {.ns = "default"}, .limit = TASKS};
    bool away = store_reader_run (f->reader, &read) == STORE_ERROR_AWAY && read.away;
    read_clear (&read);
    return away ? f : NULL;
}

/* As for the hours of a VACUUM FULL: whoever reads is told, and held up no longer. */
static void a_table_that_stays_locked_is_out_of_reach (void **state)
{
    fixture_t *f = *state;
    char uri[POSTGRES_URI_SIZE];
    char sql[128];
    pthread_t reader;
    void *told = NULL;
    fixture_submit (f, 1, 10);
    fixture_settle (f);
    assert_int_equal (list_count (f), 10);
    postgres_uri (store_fixture_server (), "postgres", "taskmq", uri);
    PGconn *holder = PQconnectdb (uri);
    snprintf (sql, sizeof (sql), "BEGIN; LOCK TABLE %s.task IN ACCESS EXCLUSIVE MODE",
              store_fixture_schema (f));
    PQclear (PQexec (holder, sql));
    assert_int_equal (PQtransactionStatus (holder), PQTRANS_INTRANS);
    assert_int_equal (pthread_create (&reader, NULL, list_once, f), 0);
    WAIT_FOR (pthread_tryjoin_np (reader, &told) == 0, TIMING_PATIENCE_MS / 2);
    assert_ptr_equal (told, f);
    PQfinish (holder);
    WAIT_FOR (store_away_ms (f->store) == 0, TIMING_PATIENCE_MS);
    assert_int_equal (list_count (f), 10);
}

/* How often a session of a reader was set up, and whether the next time fails. */
static atomic_int sessions;
static atomic_bool session_fails;

int __real_PQsendQuery (PGconn *db, const char *sql);
int __wrap_PQsendQuery (PGconn *db, const char *sql);
int __wrap_PQsendQuery (PGconn *db, const char *sql)
{
    static const char FAILS[] = "DO $$ BEGIN RAISE 'not now' USING ERRCODE = '40001'; END $$";
    bool is_session = strcmp (sql, PG_READ_SESSION) == 0;
    if (is_session)
        atomic_fetch_add (&sessions, 1);
    return __real_PQsendQuery (db,
                               is_session && atomic_exchange (&session_fails, false) ? FAILS : sql);
}

/* Settings that the server gave up are made again: nothing is read without them. */
static void a_session_without_its_settings_is_not_used (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 10);
    fixture_settle (f);
    int before = atomic_load (&sessions);
    atomic_store (&session_fails, true);
    assert_int_equal (list_count (f), 10);
    assert_false (atomic_load (&session_fails));
    assert_int_equal (atomic_load (&sessions), before + 2);
}

static long long cut_readers (fixture_t *f)
{
    return store_fixture_sql (f, "SELECT count (pg_terminate_backend (pid)) FROM pg_stat_activity"
                                 " WHERE application_name LIKE 'taskmq reader %'");
}

static void a_read_whose_session_was_cut_is_told_so_and_may_be_run_again (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 10);
    fixture_settle (f);
    assert_int_equal (list_count (f), 10);
    assert_true (cut_readers (f) >= 1);
    read_t read = {.kind = READ_COUNT, .filter = {.ns = "default"}};
    store_code_t code = store_reader_run (f->reader, &read);
    assert_int_equal (code, STORE_ERROR_AWAY);
    assert_true (read.away);
    assert_int_equal (read.count, 0);
    WAIT_FOR (store_reader_run (f->reader, &read) == STORE_OK, TIMING_PATIENCE_MS);
    assert_int_equal (read.count, 10);
}

static void a_patient_reader_waits (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 10);
    fixture_settle (f);
    assert_int_equal (list_count (f), 10);
    store_reader_be_patient (f->reader);
    assert_true (cut_readers (f) >= 1);
    assert_int_equal (list_count (f), 10);
}

static void *wait_patiently (void *context)
{
    fixture_t *f = context;
    read_t read = {.kind = READ_COUNT, .filter = {.ns = "default"}};
    return store_reader_run (f->reader, &read) == STORE_ERROR_AWAY ? f : NULL;
}

static void set_connections (const char *limit)
{
    char sql[64];
    snprintf (sql, sizeof (sql), "ALTER ROLE taskmq CONNECTION LIMIT %s", limit);
    free (postgres_sql (store_fixture_server (), sql));
}

/* A stop does not wait for a database that nobody can reach. */
static void patience_ends_with_the_process (void **state)
{
    fixture_t *f = *state;
    pthread_t waiter;
    void *told = NULL;
    fixture_submit (f, 1, 10);
    fixture_settle (f);
    assert_int_equal (list_count (f), 10);
    store_reader_be_patient (f->reader);
    set_connections ("0");
    store_fixture_sql (f, "SELECT count (pg_terminate_backend (pid)) FROM pg_stat_activity"
                          " WHERE usename = 'taskmq'");
    assert_int_equal (pthread_create (&waiter, NULL, wait_patiently, f), 0);
    WAIT_FOR (store_away_ms (f->store) > 200, TIMING_PATIENCE_MS);
    assert_int_equal (pthread_tryjoin_np (waiter, &told), EBUSY); /* it waits */
    store_end_patience (f->store);
    pthread_join (waiter, &told);
    set_connections ("-1");
    assert_ptr_equal (told, f);
    WAIT_FOR (store_away_ms (f->store) == 0, TIMING_PATIENCE_MS);
}

/* Cancels statements of readers for some seconds. */
static void *cancel_statements (void *context)
{
    (void) context;
    free (postgres_sql (store_fixture_server (),
                        "DO $$ BEGIN FOR i IN 1..600 LOOP"
                        " PERFORM pg_stat_clear_snapshot ();"
                        " PERFORM pg_cancel_backend (pid) FROM pg_stat_activity"
                        " WHERE application_name LIKE 'taskmq reader %' AND state = 'active';"
                        " PERFORM pg_sleep (0.003); END LOOP; END $$"));
    return NULL;
}

/* All blocks, one behind the other; a page ends early where its time does. */
static void check_blocks (fixture_t *f, read_kind_t kind)
{
    uint64_t next = 1;
    for (bool more = true; more;) {
        read_t read = {.kind = kind, .filter = {.ns = "default"}, .limit = 1 << 24};
        read.after_seq = read.after_pos = next - 1;
        fixture_read (f, &read);
        for (size_t i = 0; i < read.blocks_count; i++) {
            assert_int_equal (read.blocks[i].first_seq, next);
            next += read.blocks[i].count;
        }
        more = read.more;
        read_clear (&read);
    }
    assert_int_equal (next, TASKS + 1);
}

static void check_every_answer (fixture_t *f)
{
    check_blocks (f, READ_EVENTS);
    check_blocks (f, READ_BLOCKS);
    read_t export;
    export_from (f, 0, SIZE_MAX, 0, &export);
    assert_int_equal (export.items_count, TASKS);
    for (size_t i = 0; i < TASKS; i++)
        assert_int_equal (export.items[i].pos, i + 1);
    read_clear (&export);
    read_t list = {.kind = READ_LIST, .filter = {.ns = "default"}, .limit = TASKS};
    fixture_read (f, &list);
    assert_int_equal (list.records_count, TASKS);
    for (size_t i = 0; i < TASKS; i++)
        assert_int_equal (list.records[i]->number, TASKS - i);
    read_clear (&list);
    read_t count = {.kind = READ_COUNT, .filter = {.ns = "default"}};
    fixture_read (f, &count);
    assert_int_equal (count.count, TASKS);
    read_t whole = {.kind = READ_WHOLE, .limit = TASKS};
    fixture_read (f, &whole);
    assert_int_equal (whole.records_count, TASKS);
    read_clear (&whole);
}

/* A page that the server gave up in the middle is done again: nothing comes twice, nothing is
 * missing. */
static void reads_whose_statements_are_cancelled_answer_the_same (void **state)
{
    fixture_t *f = *state;
    pthread_t canceller;
    for (int64_t number = 1; number <= TASKS; number += PAGE_ITEMS)
        fixture_submit (f, number, number + PAGE_ITEMS - 1);
    fixture_settle (f);
    assert_int_equal (pthread_create (&canceller, NULL, cancel_statements, NULL), 0);
    for (size_t i = 0; i < 5; i++)
        check_every_answer (f);
    pthread_join (canceller, NULL);
    assert_int_equal (store_away_ms (f->store), 0);
    check_every_answer (f);
}

/* Sharing. */

enum { SHARERS = 6, SHARED_READS = 30 };

typedef struct sharer {
    fixture_t *fixture;
    pthread_t thread;
    size_t wrong; /* reads with another answer */
} sharer_t;

static void *share (void *context)
{
    sharer_t *self = context;
    store_reader_t *reader;
    store_error_t error = {STORE_OK, ""};
    self->wrong = store_reader_open (&reader, self->fixture->store, &error) != STORE_OK;
    if (self->wrong != 0)
        return NULL;
    for (size_t i = 0; i < SHARED_READS; i++) {
        read_t list = {.kind = READ_LIST, .filter = {.ns = "default"}, .limit = 20};
        read_t count = {.kind = READ_COUNT, .filter = {.ns = "default"}};
        self->wrong += store_reader_run (reader, &list) != STORE_OK || list.records_count != 20;
        self->wrong += store_reader_run (reader, &count) != STORE_OK || count.count != TASKS;
        read_clear (&list);
    }
    store_reader_close (&reader);
    return NULL;
}

/* However many readers there are, the server has two sessions of them. */
static void readers_share_their_links (void **state)
{
    fixture_t *f = *state;
    sharer_t sharers[SHARERS];
    fixture_submit (f, 1, TASKS);
    fixture_settle (f);
    for (size_t i = 0; i < SHARERS; i++) {
        sharers[i] = (sharer_t){.fixture = f};
        assert_int_equal (pthread_create (&sharers[i].thread, NULL, share, &sharers[i]), 0);
    }
    for (size_t i = 0; i < SHARERS; i++) {
        pthread_join (sharers[i].thread, NULL);
        assert_int_equal (sharers[i].wrong, 0);
    }
    assert_in_range (store_fixture_sql (f, "SELECT count (*) FROM pg_stat_activity WHERE"
                                           " application_name LIKE 'taskmq reader %'"),
                     1, PG_READERS_LINKS);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        ON (each_statement_walks_a_range_of_its_index, "postgresql"),
        ON (a_range_ends_at_its_lowest_number, "postgresql"),
        ON_WITH (every_read_ends_in_the_shortest_pages, short_setup, fixture_teardown,
                 "postgresql"),
        ON (the_export_follows_its_reader_anywhere, "postgresql"),
        ON (the_export_ends_at_its_bytes, "postgresql"),
        ON (whole_tasks_come_in_order_over_gaps_and_namespaces, "postgresql"),
        ON (a_table_that_is_locked_is_waited_for, "postgresql"),
        ON (a_table_that_stays_locked_is_out_of_reach, "postgresql"),
        ON (a_session_without_its_settings_is_not_used, "postgresql"),
        ON (a_read_whose_session_was_cut_is_told_so_and_may_be_run_again, "postgresql"),
        ON (a_patient_reader_waits, "postgresql"),
        ON (patience_ends_with_the_process, "postgresql"),
        ON (reads_whose_statements_are_cancelled_answer_the_same, "postgresql"),
        ON (readers_share_their_links, "postgresql"),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
