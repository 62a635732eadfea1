/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The index of texts and its follower, over both stores: what is found is what is stored. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/data/turn.h"
#include "search/finder.h"
#include "sim/rng.h"
#include "store/sqlite/search_words.h"
#include "store_support.h"
#include "support/timing.h"

typedef struct stage {
    fixture_t *f;
    char directory[64];
    indexer_t *indexer;
    finder_t *finder;
    shared_limit_t free_bytes_min;
} stage_t;

static void store_failed (const store_error_t *error)
{
    fail_msg ("%s", error->text);
}

static void start (stage_t *self)
{
    indexer_options_t options = {.store = self->f->store,
                                 .directory = self->directory,
                                 .generation = self->f->boot.generation,
                                 .last_pos = self->f->pos,
                                 .free_bytes_min = &self->free_bytes_min,
                                 .failed = store_failed};
    self->indexer = indexer_new (&options);
    self->finder = finder_new (self->f->store, self->indexer, self->directory);
    assert_non_null (self->indexer);
    assert_non_null (self->finder);
}

static void stop (stage_t *self)
{
    finder_free (&self->finder);
    indexer_free (&self->indexer);
}

static int setup (void **state)
{
    stage_t *self = memory_zero (1, sizeof (*self));
    if (fixture_setup (state) != 0)
        return -1;
    self->f = *state;
    snprintf (self->directory, sizeof (self->directory), "search-XXXXXX");
    assert_non_null (mkdtemp (self->directory));
    start (self);
    *state = self;
    return 0;
}

static void path_of (char out[128], const stage_t *self, const char *name)
{
    snprintf (out, 128, "%s/%s", self->directory, name);
}

static void remove_index (const stage_t *self)
{
    static const char *const names[] = {"search.db", "search.db-wal", "search.db-shm"};
    char path[128];
    for (size_t i = 0; i < 3; i++) {
        path_of (path, self, names[i]);
        unlink (path);
    }
}

static int teardown (void **state)
{
    stage_t *self = *state;
    void *fixture = self->f;
    stop (self);
    remove_index (self);
    rmdir (self->directory);
    free (self);
    return fixture_teardown (&fixture);
}

/* Commits a task with this payload. */
static record_t put (stage_t *self, int64_t number, const char *ns, const char *payload)
{
    record_t record = test_record (number);
    record.ns = ns;
    record.payload = buf_new (payload, strlen (payload));
    record.payload_bytes = (uint32_t) strlen (payload);
    batch_t *batch = fixture_batch (self->f);
    fixture_change (self->f, batch, &record, TMQ_EVENT_SUBMITTED);
    fixture_commit (self->f, batch);
    buf_drop (record.payload);
    record.payload = NULL;
    return record;
}

static int64_t mono_ms (void)
{
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A page; to be cleared by done. */
static read_t search (const char *ns, const char *text, int64_t below, size_t limit, bool ranked)
{
    char error[SEARCH_ERROR_SIZE];
    search_t *wanted = search_new ();
    assert_int_equal (search_query_parse (&wanted->query, text, error), TMQ_OK);
    wanted->ranked = ranked;
    read_t read = {.kind = READ_SEARCH,
                   .filter = {.ns = ns},
                   .before_number = below,
                   .limit = limit,
                   .vain_max = 20000,
                   .search = wanted};
    return read;
}

static void settle (stage_t *self)
{
    fixture_settle (self->f);
    /* The machine may be slow: until the index has come to all that is there. */
    search_t wait = {.behind = true};
    WAIT_FOR ((indexer_wait (self->indexer, mono_ms () + TIMING_PATIENCE_MS, &wait),
               !wait.behind && !wait.building),
              TIMING_PATIENCE_MS);
}

static void ask (stage_t *self, read_t *read)
{
    read_t *back = NULL;
    finder_submit (self->finder, read);
    WAIT_FOR ((back = finder_done (self->finder)) != NULL, TIMING_PATIENCE_MS);
    assert_ptr_equal (back, read);
}

static void run (stage_t *self, read_t *read)
{
    settle (self);
    ask (self, read);
}

static void done (read_t *read)
{
    read_clear (read);
    search_free (read->search);
}

static size_t found (stage_t *self, const char *ns, const char *text)
{
    read_t read = search (ns, text, 0, 100, false);
    run (self, &read);
    if (read.error != 0)
        fail_msg ("%s", read.error_text);
    size_t count = read.records_count;
    done (&read);
    return count;
}

static void words_are_found_in_every_text (void **state)
{
    stage_t *self = *state;
    record_t record = test_record (1);
    record.payload = buf_new ("alpha Résumé", strlen ("alpha Résumé"));
    record.payload_bytes = (uint32_t) buf_length (record.payload);
    record.result = buf_new ("beta line\nof two", 16);
    record.result_bytes = 16;
    record.method = "gamma-convert";
    record.status_message = "delta";
    record.error_message = "epsilon";
    batch_t *batch = fixture_batch (self->f);
    fixture_change (self->f, batch, &record, TMQ_EVENT_SUBMITTED);
    fixture_commit (self->f, batch);
    static const char *const hits[] = {
        "alpha",   "resume", "BETA",    "\"beta line of\"", "gam*",
        "convert", "delta",  "epsilon", "alpha beta -zeta", "zeta OR delta"};
    static const char *const misses[] = {
        "alphabet", "zeta", "alpha NOT beta", "\"line beta\"", "\"resume beta\"", "beta1"};
    for (size_t i = 0; i < sizeof (hits) / sizeof (hits[0]); i++)
        if (found (self, "default", hits[i]) != 1)
            fail_msg ("%s is not found", hits[i]);
    for (size_t i = 0; i < sizeof (misses) / sizeof (misses[0]); i++)
        if (found (self, "default", misses[i]) != 0)
            fail_msg ("%s is found", misses[i]);
    assert_int_equal (found (self, "other", "alpha"), 0);
    buf_drop (record.payload);
    buf_drop (record.result);
}

static void what_changes_is_found_anew (void **state)
{
    stage_t *self = *state;
    record_t record = put (self, 1, "default", "first");
    assert_int_equal (found (self, "default", "first"), 1);
    record.status_message = "second";
    batch_t *batch = fixture_batch (self->f);
    fixture_change (self->f, batch, &record, TMQ_EVENT_CHANGED);
    fixture_commit (self->f, batch);
    assert_int_equal (found (self, "default", "first second"), 1);
    record.status_message = "third";
    batch = fixture_batch (self->f);
    fixture_change (self->f, batch, &record, TMQ_EVENT_CHANGED);
    fixture_commit (self->f, batch);
    assert_int_equal (found (self, "default", "second"), 0);
    assert_int_equal (found (self, "default", "third"), 1);
}

/* Documents in the index, by a look of our own at the file. */
static int64_t documents (const stage_t *self)
{
    char path[128];
    sqlite3 *db;
    sqlite3_stmt *statement;
    path_of (path, self, "search.db");
    assert_int_equal (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal (sqlite3_prepare_v2 (db, "SELECT count (*) FROM doc", -1, &statement, NULL),
                      SQLITE_OK);
    assert_int_equal (sqlite3_step (statement), SQLITE_ROW);
    int64_t count = sqlite3_column_int64 (statement, 0);
    sqlite3_finalize (statement);
    sqlite3_close (db);
    return count;
}

static void what_is_removed_leaves_the_index (void **state)
{
    stage_t *self = *state;
    record_t record = put (self, 1, "default", "gone soon");
    put (self, 2, "other", "stays");
    assert_int_equal (found (self, "default", "gone"), 1);
    batch_t *batch = fixture_batch (self->f);
    batch_add_removal (batch, &record, TMQ_PURGED, 5);
    fixture_commit (self->f, batch);
    assert_int_equal (found (self, "default", "gone"), 0); /* at once: it is not in the store */
    WAIT_FOR (documents (self) == 1, TIMING_PATIENCE_MS);
    assert_int_equal (found (self, "other", "stays"), 1);
}

/* As many tombstones are forgotten as there are new ones: their number says nothing. */
static void what_is_removed_leaves_the_index_beside_full_tombstones (void **state)
{
    stage_t *self = *state;
    stop (self);
    fixture_close (self->f);
    self->f->options.tombstones_max = 1;
    fixture_open (self->f);
    start (self);
    for (int64_t number = 1; number <= 5; number++) {
        record_t record = put (self, number, "default", "gone soon");
        assert_int_equal (found (self, "default", "gone"), 1);
        batch_t *batch = fixture_batch (self->f);
        batch_add_removal (batch, &record, TMQ_PURGED, 5);
        fixture_commit (self->f, batch);
        WAIT_FOR (documents (self) == 0, TIMING_PATIENCE_MS);
    }
    store_stats_t stats;
    store_stats (self->f->store, &stats);
    assert_int_equal (stats.removals, 5); /* what the index goes by */
}

static void set_search (stage_t *self, bool off)
{
    row_key_t key = ROW_KEY_INIT;
    static const uint8_t body[] = {0x98, 1, 1}; /* search_off = 1 */
    row_key_text (&key, "default");
    row_key_text (&key, "mail");
    batch_t *batch = fixture_batch (self->f);
    batch->rows = memory_zero (1, sizeof (row_t));
    batch->rows_count = 1;
    batch->rows[0] = off ? row_make (ROW_KIND_QUEUE, key.bytes, key.length, body, sizeof (body))
                         : row_make_gone (ROW_KIND_QUEUE, key.bytes, key.length);
    fixture_commit (self->f, batch);
    fixture_settle (self->f);
    indexer_look_through (self->indexer);
}

/* What begins so is looked for by the words that there are; with too many of them FTS5 does it. */
static void beginnings_become_words (void **state)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {{"WORD1", "\"word1\" OR \"word10\" OR \"word1e\""},
                 {"a-b word2", "\"a-b word2\" OR \"a-b word20\""},
                 {"wor", "\"wor\"*"},
                 {"wordx", "\"wordx\"*"},
                 {"many", "\"many\"*"},
                 {"wörd", "\"wörd\"*"},
                 {"word1 ", "\"word1 \"*"}};
    sqlite3 *db;
    sqlite3_stmt *words;
    char many[SEARCH_WORDS_MAX * 12];
    size_t used = 0;
    (void) state;
    assert_int_equal (sqlite3_open (":memory:", &db), SQLITE_OK);
    assert_int_equal (sqlite3_exec (db,
                                    "CREATE VIRTUAL TABLE found USING fts5 (a);" SEARCH_WORDS_TABLE
                                    "; INSERT INTO found VALUES ('Word1 word10 word1é word11z')"
                                    "; INSERT INTO found VALUES ('word2 word20 word3 word10')"
                                    "; DELETE FROM found WHERE a MATCH 'word11z'"
                                    "; INSERT INTO found VALUES ('Word1 word10 word1é')",
                                    NULL, NULL, NULL),
                      SQLITE_OK);
    for (size_t i = 0; i <= SEARCH_WORDS_MAX; i++)
        used += (size_t) snprintf (many + used, sizeof (many) - used, "many%zu ", i);
    char *insert = sqlite3_mprintf ("INSERT INTO found VALUES (%Q)", many);
    assert_int_equal (sqlite3_exec (db, insert, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free (insert);
    assert_int_equal (sqlite3_prepare_v2 (db, SEARCH_WORDS_FROM, -1, &words, NULL), SQLITE_OK);
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        search_term_t term = {
            .text = cases[i].text, .length = strlen (cases[i].text), .prefix = true};
        bytes_t out = BYTES_INIT;
        search_words_express (&out, &term, words);
        if (strcmp (bytes_text (&out), cases[i].wanted) != 0)
            fail_msg ("%s: %s", cases[i].text, bytes_text (&out));
        bytes_free (&out);
    }
    sqlite3_finalize (words);
    sqlite3_close (db);
}

static void beginnings_are_found (void **state)
{
    stage_t *self = *state;
    put (self, 1, "default", "Planner and plan");
    put (self, 2, "default", "planned journey");
    put (self, 3, "default", "the plain truth");
    static const char *const texts[] = {"plan*",  "PLANN*",           "\"plain tru\"*",
                                        "plane*", "pl* NOT planned*", "planne* OR trut*"};
    static const size_t counts[] = {2, 2, 1, 0, 2, 3};
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        assert_int_equal (found (self, "default", texts[i]), counts[i]);
    read_t read = search ("default", "planne*", 0, 10, false);
    run (self, &read);
    assert_string_equal (read.search->found[1].excerpt, "\002Planner\003 and plan");
    done (&read);
}

static void a_queue_may_be_left_out (void **state)
{
    stage_t *self = *state;
    put (self, 1, "default", "secret one");
    assert_int_equal (found (self, "default", "secret"), 1);
    set_search (self, true);
    put (self, 2, "default", "secret two");
    WAIT_FOR (found (self, "default", "secret") == 0, TIMING_PATIENCE_MS);
    assert_int_equal (documents (self), 0);
    set_search (self, false);
    put (self, 3, "default", "secret three");
    assert_int_equal (found (self, "default", "secret"), 1);
    indexer_rebuild (self->indexer);
    WAIT_FOR (found (self, "default", "secret") == 3, TIMING_PATIENCE_MS);
}

static void pages_join_into_the_whole (void **state)
{
    stage_t *self = *state;
    enum { TASKS = 230 };
    for (int64_t i = 1; i <= TASKS; i++)
        put (self, i, "default", i % 2 == 0 ? "even word" : "odd word");
    for (size_t limit = 1; limit <= 120; limit = limit * 3 + 1) {
        int64_t below = 0;
        int64_t expected = TASKS;
        bool more = true;
        while (more) {
            read_t read = search ("default", "even", below, limit, false);
            run (self, &read);
            assert_int_equal (read.error, 0);
            for (size_t i = 0; i < read.records_count; i++, expected -= 2)
                assert_int_equal (read.records[i]->number, expected);
            more = read.more;
            below = read.next_number;
            assert_true (!more || below > 0);
            done (&read);
        }
        assert_int_equal (expected, 0);
    }
}

/* A page that looks at much in vain gives what it has, and a place to go on from. */
static void a_page_looks_at_so_many_only (void **state)
{
    stage_t *self = *state;
    enum { TASKS = 300, LOOKS = 40 };
    for (int64_t i = 1; i <= TASKS; i++)
        put (self, i, "default", "common");
    const char *queue = "nowhere";
    int64_t below = 0;
    int64_t before = TASKS + 1;
    size_t pages = 0;
    bool more = true;
    while (more) {
        read_t read = search ("default", "comm*", below, 10, false);
        read.filter.queues = &queue;
        read.filter.queues_count = 1;
        read.vain_max = LOOKS;
        run (self, &read);
        assert_int_equal (read.error, 0);
        assert_int_equal (read.records_count, 0);
        more = read.more;
        below = read.next_number;
        if (more) {
            assert_in_range (before - below, LOOKS - 1, LOOKS);
            before = below;
        }
        pages++;
        done (&read);
    }
    assert_true (pages >= TASKS / LOOKS && pages <= TASKS / LOOKS + 2);
}

/* In pieces, each of which looks at so many texts. */
static void finds_are_counted (void **state)
{
    stage_t *self = *state;
    enum { TASKS = 300, LOOKS = 40 };
    for (int64_t i = 1; i <= TASKS; i++)
        put (self, i, "default", i % 3 == 0 ? "common third" : "common");
    static const char *const texts[] = {"third", "com* NOT third"};
    static const uint64_t counts[] = {TASKS / 3, TASKS - TASKS / 3};
    for (size_t i = 0; i < 2; i++) {
        read_t read = search ("default", texts[i], 0, 10, false);
        read.search->counting = true;
        read.vain_max = LOOKS;
        size_t pieces = 0;
        do {
            read.before_number = read.next_number;
            read.next_number = 0;
            read.more = false;
            run (self, &read);
            assert_int_equal (read.error, 0);
            assert_int_equal (read.records_count, 0);
            assert_true (!read.more || read.next_number > 0);
        } while (read.more && ++pieces < TASKS);
        assert_int_equal (read.count, counts[i]);
        assert_true (pieces >= TASKS / 3 / LOOKS);
        done (&read);
    }
}

static void the_best_comes_first_by_choice (void **state)
{
    stage_t *self = *state;
    put (self, 1, "default", "needle needle needle");
    put (self, 2, "default", "a needle in a long text about many other things, and so on, and on");
    put (self, 3, "default", "hay");
    read_t read = search ("default", "needle", 0, 10, true);
    run (self, &read);
    assert_int_equal (read.error, 0);
    assert_int_equal (read.records_count, 2);
    assert_int_equal (read.records[0]->number, 1);
    assert_int_equal (read.records[1]->number, 2);
    assert_false (read.more);
    assert_non_null (strstr (read.search->found[1].excerpt, "\002needle\003"));
    done (&read);
}

static void turns_are_found_with_their_place (void **state)
{
    stage_t *self = *state;
    tmq_id_t id = test_id (1);
    record_t record = put (self, 1, "default", "payload");
    static const uint8_t extra[] = {0xa0, 1, 2}; /* turns = 2 */
    record.extra = buf_new (extra, sizeof (extra));
    batch_t *batch = fixture_batch (self->f);
    batch->rows = memory_zero (2, sizeof (row_t));
    for (uint32_t i = 1; i <= 2; i++) {
        row_key_t key;
        turn_t turn = {.turn = i, .attempt = 1, .number = i};
        const char *text = i == 1 ? "planning the journey" : "booked the hotel";
        turn.parts[0] = (const uint8_t *) text;
        turn.lengths[0] = strlen (text);
        snprintf (turn.agent, sizeof (turn.agent), "planner");
        turn_key (&key, "default", id.bytes, i);
        batch->rows[batch->rows_count++] = (row_t){.kind = ROW_KIND_TURN,
                                                   .key = buf_new (key.bytes, key.length),
                                                   .body = turn_pack (&turn)};
    }
    fixture_change (self->f, batch, &record, TMQ_EVENT_TURN);
    fixture_commit (self->f, batch);
    read_t read = search ("default", "hotel", 0, 10, false);
    run (self, &read);
    assert_int_equal (read.records_count, 1);
    assert_int_equal (read.search->found[0].turn, 2);
    assert_string_equal (read.search->found[0].excerpt, "booked the \002hotel\003");
    done (&read);
    assert_int_equal (found (self, "default", "planner"), 1); /* both turns: one task */
    /* Words may stand in several places of a task; a phrase stands in one. */
    assert_int_equal (found (self, "default", "journey hotel payload"), 1);
    assert_int_equal (found (self, "default", "journey hot* OR absent"), 1);
    assert_int_equal (found (self, "default", "\"journey hotel\""), 0);
    assert_int_equal (found (self, "default", "journey absent"), 0);
    assert_int_equal (found (self, "default", "journey NOT hotel"), 0);
    assert_int_equal (found (self, "default", "hotel -absent"), 1);
    read = search ("default", "payload booked hotel journey", 0, 10, true);
    run (self, &read);
    assert_int_equal (read.records_count, 1);
    assert_int_equal (read.search->found[0].turn, 2); /* it has most of the words */
    assert_string_equal (read.search->found[0].excerpt, "\002booked\003 the \002hotel\003");
    done (&read);
    buf_drop (record.extra);
}

static void what_is_no_text_is_not_looked_at (void **state)
{
    stage_t *self = *state;
    record_t record = test_record (1);
    record.payload = buf_new ("word\0word", 9);
    record.payload_bytes = 9;
    record.result = buf_new ("word\xff", 5);
    record.result_bytes = 5;
    batch_t *batch = fixture_batch (self->f);
    fixture_change (self->f, batch, &record, TMQ_EVENT_SUBMITTED);
    fixture_commit (self->f, batch);
    assert_int_equal (found (self, "default", "word"), 0);
    buf_drop (record.payload);
    buf_drop (record.result);
    /* Of a long one the first part, up to a whole character. */
    enum { LONG = 100000 };
    char *text = memory_alloc (LONG + 1);
    for (size_t i = 0; i < LONG; i += 5)
        memcpy (text + i, i == 0 ? "head " : i == LONG - 5 ? "tail " : "\xc3\xa4\xc3\xa4 ", 5);
    text[LONG] = '\0';
    put (self, 2, "default", text);
    assert_int_equal (found (self, "default", "head"), 1);
    assert_int_equal (found (self, "default", "tail"), 0);
    /* Marks that somebody wrote are none. */
    put (self, 3, "default", "left \002fake\003 mark");
    read_t read = search ("default", "mark", 0, 1, false);
    run (self, &read);
    assert_string_equal (read.search->found[0].excerpt, "left  fake  \002mark\003");
    done (&read);
    free (text);
}

static void a_lost_index_is_made_again (void **state)
{
    stage_t *self = *state;
    put (self, 1, "default", "kept in the store");
    assert_int_equal (found (self, "default", "kept"), 1);
    stop (self);
    remove_index (self);
    put (self, 2, "default", "kept too");
    fixture_settle (self->f);
    start (self);
    WAIT_FOR (found (self, "default", "kept") == 2, TIMING_PATIENCE_MS);
    /* One of another history too. */
    stop (self);
    self->f->boot.generation++;
    start (self);
    WAIT_FOR (found (self, "default", "kept") == 2, TIMING_PATIENCE_MS);
    /* And one that is ahead of the store. */
    stop (self);
    uint64_t pos = self->f->pos;
    self->f->pos = 1;
    start (self);
    self->f->pos = pos;
    WAIT_FOR (found (self, "default", "kept") == 2, TIMING_PATIENCE_MS);
}

static void a_damaged_index_takes_searches_alone (void **state)
{
    stage_t *self = *state;
    char path[128];
    put (self, 1, "default", "word");
    assert_int_equal (found (self, "default", "word"), 1);
    stop (self);
    remove_index (self);
    path_of (path, self, "search.db");
    int fd = open (path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal (write (fd, "this is no database, and never was one", 38), 38);
    close (fd);
    start (self);
    read_t read = search ("default", "word", 0, 10, false);
    finder_submit (self->finder, &read);
    read_t *back = NULL;
    WAIT_FOR ((back = finder_done (self->finder)) != NULL, TIMING_PATIENCE_MS);
    assert_int_equal (read.error, STORE_ERROR_DAMAGED);
    assert_non_null (strstr (read.error_text, "reindex"));
    done (&read);
    /* It is thrown away a moment later. */
    indexer_stats_t stats = {.broken = true};
    indexer_rebuild (self->indexer);
    WAIT_FOR ((indexer_stats (self->indexer, &stats), !stats.broken), TIMING_PATIENCE_MS);
    WAIT_FOR (found (self, "default", "word") == 1, TIMING_PATIENCE_MS);
}

/* Where there is little space, the work has it. */
static void little_space_takes_the_index_alone (void **state)
{
    stage_t *self = *state;
    put (self, 1, "default", "before");
    assert_int_equal (found (self, "default", "before"), 1);
    atomic_store (&self->free_bytes_min, UINT64_MAX);
    put (self, 2, "default", "after");
    fixture_settle (self->f);
    search_t how = {.building = true};
    WAIT_FOR ((indexer_wait (self->indexer, mono_ms () + 10, &how), how.stalled[0] != '\0'),
              TIMING_PATIENCE_MS);
    assert_non_null (strstr (how.stalled, "free_space_min"));
    assert_true (how.behind);
    read_t read = search ("default", "before", 0, 10, false);
    read_t *back = NULL;
    finder_submit (self->finder, &read);
    WAIT_FOR ((back = finder_done (self->finder)) != NULL, TIMING_PATIENCE_MS);
    assert_int_equal (read.error, 0);
    assert_int_equal (read.records_count, 1); /* what is in it is found */
    done (&read);
    atomic_store (&self->free_bytes_min, 0);
    assert_int_equal (found (self, "default", "after"), 1);
}

static uint64_t first_event (stage_t *self)
{
    read_t read = {.kind = READ_EVENTS, .filter = {.ns = "default"}, .limit = 1};
    fixture_settle (self->f);
    fixture_read (self->f, &read);
    uint64_t first = read.first_seq;
    read_clear (&read);
    return first;
}

/* Events that were forgotten before the index came to them: it goes through all tasks again. */
static void an_index_that_lagged_too_far_misses_nothing (void **state)
{
    stage_t *self = *state;
    fixture_t *f = self->f;
    int64_t next = 3;
    stop (self);
    fixture_close (f);
    f->options.events_ms_max = 30;
    fixture_open (f);
    start (self);
    put (self, 1, "default", "early word");
    assert_int_equal (found (self, "default", "word"), 1);
    stop (self);
    put (self, 2, "default", "missed word");
    store_exported (f->store, UINT64_MAX);
    WAIT_FOR ((put (self, next++, "default", "other"), first_event (self) > 2), TIMING_PATIENCE_MS);
    start (self);
    WAIT_FOR (found (self, "default", "word") == 2, TIMING_PATIENCE_MS);
    assert_int_equal (found (self, "default", "missed"), 1);
}

/* More than one transaction takes. */
static void much_text_goes_in_parts (void **state)
{
    stage_t *self = *state;
    enum { TASKS = 40 };
    char *text = memory_alloc (TMQ_SEARCH_TEXT_BYTES_MAX + 1);
    for (int64_t i = 1; i <= TASKS; i++) {
        memset (text, ' ', TMQ_SEARCH_TEXT_BYTES_MAX);
        text[TMQ_SEARCH_TEXT_BYTES_MAX] = '\0';
        memcpy (text, "everyone", 8);
        snprintf (text + TMQ_SEARCH_TEXT_BYTES_MAX - 9, 10, " number%02d", (int) i);
        put (self, i, "default", text);
    }
    free (text);
    assert_int_equal (found (self, "default", "everyone"), TASKS);
    assert_int_equal (found (self, "default", "number40"), 1);
    stop (self);
    remove_index (self);
    start (self);
    WAIT_FOR (found (self, "default", "everyone") == TASKS, TIMING_PATIENCE_MS);
    assert_int_equal (found (self, "default", "number17"), 1);
}

/* Whatever is asked for, in pages of any size and with few looks, is what a plain look at the words
 * of each task finds. */
enum { WORDS = 7, WORD_TASKS = 240 };

typedef struct wordy {
    rng_t rng;
    unsigned words[WORD_TASKS + 1]; /* a bit for each */
    char text[160];                 /* of a query, with … */
    unsigned parts[4];              /* … one of each of these, … */
    size_t parts_count;
    unsigned without; /* … and none of these */
    const char *queue;
} wordy_t;

static const char *const VOCABULARY[WORDS] = {"common", "often", "comma", "half",
                                              "third",  "few",   "rare"};
static const uint32_t PER_MILLE[WORDS] = {950, 700, 500, 500, 300, 60, 15};
static const char *queue_of (int64_t number)
{
    return number % 3 == 0 ? "mail" : "print";
}

/* Its own words, and those of some turns. */
static void put_wordy (stage_t *self, wordy_t *all, batch_t *batch, int64_t number)
{
    static const uint8_t extra[] = {0xa0, 1, 3}; /* turns = 3 */
    tmq_id_t id = test_id ((uint64_t) number);
    record_t record = test_record (number);
    for (uint32_t place = 0; place < 4; place++) {
        char text[100] = "x";
        row_key_t key;
        for (size_t i = 0; i < WORDS; i++) {
            if (!rng_chance (&all->rng, PER_MILLE[i] / 2))
                continue;
            strcat (strcat (text, " "), VOCABULARY[i]);
            all->words[number] |= 1u << i;
        }
        turn_t turn = {.turn = place, .attempt = 1, .number = place};
        turn.parts[0] = (const uint8_t *) text;
        turn.lengths[0] = strlen (text);
        turn_key (&key, "default", id.bytes, place);
        if (place == 0)
            record.payload = buf_new (text, strlen (text));
        else
            batch->rows[batch->rows_count++] = (row_t){.kind = ROW_KIND_TURN,
                                                       .key = buf_new (key.bytes, key.length),
                                                       .body = turn_pack (&turn)};
    }
    record.queue = queue_of (number);
    record.payload_bytes = (uint32_t) buf_length (record.payload);
    record.extra = buf_new (extra, sizeof (extra));
    fixture_change (self->f, batch, &record, TMQ_EVENT_SUBMITTED);
    buf_drop (record.payload);
    buf_drop (record.extra);
}

static void make_query (wordy_t *all)
{
    rng_t *rng = &all->rng;
    all->text[0] = '\0';
    all->without = 0;
    all->queue = rng_chance (rng, 300) ? queue_of ((int64_t) rng_below (rng, 3)) : NULL;
    all->parts_count = 1 + rng_below (rng, 3);
    for (size_t i = 0; i < all->parts_count; i++) {
        unsigned word = rng_below (rng, WORDS);
        unsigned other = rng_below (rng, WORDS);
        bool either = rng_chance (rng, 300);
        bool prefix = rng_chance (rng, 200); /* of the first and the third: both begin so */
        all->parts[i] = prefix ? 5 : 1u << word;
        strcat (strcat (all->text, i > 0 ? " " : ""), prefix ? "com*" : VOCABULARY[word]);
        if (either)
            strcat (strcat (all->text, " OR "), VOCABULARY[other]);
        all->parts[i] |= either ? 1u << other : 0;
    }
    for (size_t i = rng_below (rng, 3); i > 0; i--) {
        unsigned word = rng_below (rng, WORDS);
        strcat (strcat (all->text, " -"), VOCABULARY[word]);
        all->without |= 1u << word;
    }
}

static bool has_words (const wordy_t *all, int64_t number)
{
    bool has = (all->words[number] & all->without) == 0;
    for (size_t i = 0; i < all->parts_count; i++)
        has = has && (all->words[number] & all->parts[i]) != 0;
    return has && (all->queue == NULL || strcmp (all->queue, queue_of (number)) == 0);
}

static size_t check_query (stage_t *self, wordy_t *all)
{
    int64_t below = 0;
    int64_t number = WORD_TASKS + 1;
    size_t total = 0;
    bool more = true;
    size_t limit = 1 + rng_below (&all->rng, 60);
    size_t looks = 50 + rng_below (&all->rng, 400);
    while (more) {
        read_t read = search ("default", all->text, below, limit, false);
        read.vain_max = looks;
        read.filter.queues = &all->queue;
        read.filter.queues_count = all->queue != NULL;
        ask (self, &read);
        assert_int_equal (read.error, 0);
        for (size_t i = 0; i < read.records_count; i++, total++) {
            for (number--; number > 0 && !has_words (all, number);)
                number--;
            if (read.records[i]->number != number)
                fail_msg ("%s: %d where %d was expected", all->text, (int) read.records[i]->number,
                          (int) number);
            if (read.search->found[i].excerpt == NULL)
                fail_msg ("%s: %d has no excerpt", all->text, (int) number);
        }
        more = read.more;
        if (more && (read.next_number <= 0 || (below > 0 && read.next_number >= below)))
            fail_msg ("%s: a page does not get on", all->text);
        below = read.next_number;
        done (&read);
    }
    for (number--; number > 0; number--)
        if (has_words (all, number))
            fail_msg ("%s: %d is missing", all->text, (int) number);
    return total;
}

static void every_query_finds_what_a_plain_look_finds (void **state)
{
    stage_t *self = *state;
    enum { QUERIES = 80 };
    wordy_t *all = memory_zero (1, sizeof (*all));
    all->rng.state = 5;
    size_t total = 0;
    batch_t *batch = fixture_batch (self->f);
    batch->rows = memory_zero ((size_t) WORD_TASKS * 3, sizeof (row_t));
    for (int64_t number = 1; number <= WORD_TASKS; number++)
        put_wordy (self, all, batch, number);
    fixture_commit (self->f, batch);
    settle (self);
    for (size_t i = 0; i < QUERIES; i++) {
        make_query (all);
        size_t found_here = check_query (self, all);
        read_t ranked = search ("default", all->text, 0, WORD_TASKS, true);
        ranked.filter.queues = &all->queue;
        ranked.filter.queues_count = all->queue != NULL;
        ask (self, &ranked);
        if (ranked.records_count != found_here)
            fail_msg ("%s: %zu by rank, %zu by age", all->text, ranked.records_count, found_here);
        done (&ranked);
        total += found_here;
    }
    assert_true (total > (size_t) QUERIES * 10);
    free (all);
}

/* A filter that leaves few tasks finds the same as a walk over all that have the word. */
static void a_narrow_filter_finds_the_same (void **state)
{
    stage_t *self = *state;
    enum { TASKS = 30 };
    static const char *const texts[] = {"common", "common", "rare"};
    for (int64_t i = 1; i <= TASKS; i++)
        put (self, i, "default", texts[i % 3]);
    const char *queue = "mail";
    for (size_t limit = 1; limit <= TASKS; limit += 6) {
        int64_t below = 0;
        int64_t expected = TASKS;
        bool more = true;
        while (more) {
            read_t read = search ("default", "common", below, limit, false);
            read.filter.queues = &queue;
            read.filter.queues_count = 1;
            run (self, &read);
            for (size_t i = 0; i < read.records_count; i++, expected--) {
                expected -= expected % 3 == 2;
                assert_int_equal (read.records[i]->number, expected);
                assert_non_null (read.search->found[i].excerpt);
            }
            more = read.more;
            below = read.next_number;
            done (&read);
        }
        assert_int_equal (expected, 0);
    }
}

/* FTS5 walks its own order downwards: nothing is sorted, nothing is read that is not asked for. */
static void a_page_is_read_in_the_index_order (void **state)
{
    stage_t *self = *state;
    char path[128];
    char plan[512] = "";
    sqlite3 *db;
    sqlite3_stmt *statement;
    put (self, 1, "default", "word");
    assert_int_equal (found (self, "default", "word"), 1);
    path_of (path, self, "search.db");
    assert_int_equal (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal (
        sqlite3_prepare_v2 (db, "EXPLAIN QUERY PLAN " SEARCH_FIND, -1, &statement, NULL),
        SQLITE_OK);
    while (sqlite3_step (statement) == SQLITE_ROW) {
        strncat (plan, (const char *) sqlite3_column_text (statement, 3), 200);
        strcat (plan, "\n");
    }
    sqlite3_finalize (statement);
    sqlite3_close (db);
    assert_non_null (strstr (plan, "SCAN found VIRTUAL TABLE INDEX"));
    assert_null (strstr (plan, "TEMP B-TREE"));
    assert_null (strchr (strchr (plan, '\n') + 1, '\n')); /* one step */
}

#define ON_BOTH(test)                                                                              \
    ON_WITH (test, setup, teardown, "memory"), ON_WITH (test, setup, teardown, "sqlite")

int main (void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH (words_are_found_in_every_text),
        ON_BOTH (what_changes_is_found_anew),
        ON_BOTH (what_is_removed_leaves_the_index),
        ON_WITH (what_is_removed_leaves_the_index_beside_full_tombstones, setup, teardown,
                 "sqlite"),
        ON_BOTH (beginnings_become_words),
        ON_BOTH (beginnings_are_found),
        ON_BOTH (a_queue_may_be_left_out),
        ON_BOTH (pages_join_into_the_whole),
        ON_BOTH (a_page_looks_at_so_many_only),
        ON_BOTH (finds_are_counted),
        ON_BOTH (the_best_comes_first_by_choice),
        ON_BOTH (turns_are_found_with_their_place),
        ON_BOTH (what_is_no_text_is_not_looked_at),
        ON_BOTH (a_lost_index_is_made_again),
        ON_BOTH (a_damaged_index_takes_searches_alone),
        ON_BOTH (a_narrow_filter_finds_the_same),
        ON_BOTH (every_query_finds_what_a_plain_look_finds),
        ON_BOTH (much_text_goes_in_parts),
        ON_WITH (little_space_takes_the_index_alone, setup, teardown, "sqlite"),
        ON_WITH (an_index_that_lagged_too_far_misses_nothing, setup, teardown, "sqlite"),
        ON_WITH (a_page_is_read_in_the_index_order, setup, teardown, "sqlite"),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
