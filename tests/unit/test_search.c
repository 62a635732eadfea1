/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The index of texts and its follower, over both stores: what is found is what is stored. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/data/turn.h"
#include "search_stage.h"
#include "store/search.h"
#include "store/sqlite/search_words.h"
#include "support/timing.h"

static void words_are_found_in_every_text (void **state)
{
    search_stage_t *self = *state;
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
        if (search_stage_found (self, "default", hits[i]) != 1)
            fail_msg ("%s is not found", hits[i]);
    for (size_t i = 0; i < sizeof (misses) / sizeof (misses[0]); i++)
        if (search_stage_found (self, "default", misses[i]) != 0)
            fail_msg ("%s is found", misses[i]);
    assert_int_equal (search_stage_found (self, "other", "alpha"), 0);
    buf_drop (record.payload);
    buf_drop (record.result);
}

static void what_changes_is_found_anew (void **state)
{
    search_stage_t *self = *state;
    record_t record = search_stage_put (self, 1, "default", "first");
    assert_int_equal (search_stage_found (self, "default", "first"), 1);
    record.status_message = "second";
    batch_t *batch = fixture_batch (self->f);
    fixture_change (self->f, batch, &record, TMQ_EVENT_CHANGED);
    fixture_commit (self->f, batch);
    assert_int_equal (search_stage_found (self, "default", "first second"), 1);
    record.status_message = "third";
    batch = fixture_batch (self->f);
    fixture_change (self->f, batch, &record, TMQ_EVENT_CHANGED);
    fixture_commit (self->f, batch);
    assert_int_equal (search_stage_found (self, "default", "second"), 0);
    assert_int_equal (search_stage_found (self, "default", "third"), 1);
}

/* Documents in the index, by a look of our own at the file. */
static int64_t documents (const search_stage_t *self)
{
    char path[128];
    sqlite3 *db;
    sqlite3_stmt *statement;
    search_stage_path (path, self, "search.db");
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
    search_stage_t *self = *state;
    record_t record = search_stage_put (self, 1, "default", "gone soon");
    search_stage_put (self, 2, "other", "stays");
    assert_int_equal (search_stage_found (self, "default", "gone"), 1);
    batch_t *batch = fixture_batch (self->f);
    batch_add_removal (batch, &record, TMQ_PURGED, 5);
    fixture_commit (self->f, batch);
    assert_int_equal (search_stage_found (self, "default", "gone"),
                      0); /* at once: it is not in the store */
    WAIT_FOR (documents (self) == 1, TIMING_PATIENCE_MS);
    assert_int_equal (search_stage_found (self, "other", "stays"), 1);
}

/* As many tombstones are forgotten as there are new ones: their number says nothing. */
static void what_is_removed_leaves_the_index_beside_full_tombstones (void **state)
{
    search_stage_t *self = *state;
    search_stage_stop (self);
    fixture_close (self->f);
    self->f->options.tombstones_max = 1;
    fixture_open (self->f);
    search_stage_start (self);
    for (int64_t number = 1; number <= 5; number++) {
        record_t record = search_stage_put (self, number, "default", "gone soon");
        assert_int_equal (search_stage_found (self, "default", "gone"), 1);
        batch_t *batch = fixture_batch (self->f);
        batch_add_removal (batch, &record, TMQ_PURGED, 5);
        fixture_commit (self->f, batch);
        WAIT_FOR (documents (self) == 0, TIMING_PATIENCE_MS);
    }
    store_stats_t stats;
    store_stats (self->f->store, &stats);
    assert_int_equal (stats.removals, 5); /* what the index goes by */
}

static void set_search (search_stage_t *self, bool off)
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
    search_stage_t *self = *state;
    search_stage_put (self, 1, "default", "Planner and plan");
    search_stage_put (self, 2, "default", "planned journey");
    search_stage_put (self, 3, "default", "the plain truth");
    static const char *const texts[] = {"plan*",  "PLANN*",           "\"plain tru\"*",
                                        "plane*", "pl* NOT planned*", "planne* OR trut*"};
    static const size_t counts[] = {2, 2, 1, 0, 2, 3};
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        assert_int_equal (search_stage_found (self, "default", texts[i]), counts[i]);
    read_t read = search_stage_page ("default", "planne*", 0, 10, false);
    search_stage_run (self, &read);
    assert_string_equal (read.search->found[1].excerpt, "\002Planner\003 and plan");
    search_stage_done (&read);
}

/* As PROTOCOL says: Unicode 6.1 knows the first two as signs, and the third not at all. */
static void newer_emoji_are_letters (void **state)
{
    search_stage_t *self = *state;
    search_stage_put (self, 1, "default", "party\U0001f389time \u2603 \U0001f9ea lab\U0001f9eax");
    static const char *const texts[] = {"party",      "time",           "\U0001f389", "\u2603",
                                        "\U0001f9ea", "lab\U0001f9eax", "lab"};
    static const size_t counts[] = {1, 1, 0, 0, 1, 1, 0};
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        assert_int_equal (search_stage_found (self, "default", texts[i]), counts[i]);
}

/* FTS5 gathers all that begins so before it gives anything. So that has an end, and is told. */
static void too_wide_a_beginning_has_an_end (void **state)
{
    search_stage_t *self = *state;
    enum { TASKS = 400 };
    static const char *const wide[] = {"wide*", "gr\u00f6\u00df*", "\"so wide\"*",
                                       "common NOT wide*"};
    char text[64];
    for (int64_t i = 1; i <= TASKS; i++) {
        snprintf (text, sizeof (text), "common so wide%d gr\u00f6\u00df%d", (int) i, (int) i);
        search_stage_put (self, i, "default", text);
    }
    search_stage_settle (self);
    finder_limit (self->finder, 0);
    for (size_t i = 0; i < sizeof (wide) / sizeof (wide[0]); i++)
        for (int ranked = i == 0; ranked < 2; ranked++) { /* the first one finds a page by looks */
            read_t read = search_stage_page ("default", wide[i], 0, 10, ranked != 0);
            search_stage_run (self, &read);
            if (!read.search->too_wide)
                fail_msg ("%s, ranked %d: it is not refused", wide[i], ranked);
            assert_int_not_equal (read.error, 0);
            assert_int_equal (read.records_count, 0);
            assert_non_null (strstr (read.error_text, "search prefix: "));
            search_stage_done (&read);
        }
    assert_int_equal (search_stage_found (self, "default", "common"), 100); /* no word goes on */
    finder_limit (self->finder, FINDER_MS_MAX);
    for (size_t i = 0; i + 1 < sizeof (wide) / sizeof (wide[0]); i++)
        assert_int_equal (search_stage_found (self, "default", wide[i]), 100);
}

/* The finder's clock: ahead of time by what the store and the index are made to take. */

static _Thread_local int64_t ahead_ms;
static atomic_int store_ms; /* for each read */
static atomic_bool late_excerpts;

int __real_clock_gettime (clockid_t clock, struct timespec *out);
/* Seen by shared libraries, too: under a sanitizer the linker leads their clock here. */
__attribute__ ((visibility ("default"))) int __wrap_clock_gettime (clockid_t clock,
                                                                   struct timespec *out);
int __wrap_clock_gettime (clockid_t clock, struct timespec *out)
{
    int failed = __real_clock_gettime (clock, out);
    out->tv_sec += clock == CLOCK_MONOTONIC ? ahead_ms / 1000 : 0;
    return failed;
}

store_code_t __real_store_reader_run (store_reader_t *self, read_t *read);
store_code_t __wrap_store_reader_run (store_reader_t *self, read_t *read);
store_code_t __wrap_store_reader_run (store_reader_t *self, read_t *read)
{
    if (read->kind == READ_PICK)
        ahead_ms += atomic_load (&store_ms);
    return __real_store_reader_run (self, read);
}

store_code_t __real_search_reader_excerpts (search_reader_t *self, const char *ns,
                                            const search_query_t *query, const search_hit_t *hits,
                                            size_t count, char **out, store_error_t *error);
store_code_t __wrap_search_reader_excerpts (search_reader_t *self, const char *ns,
                                            const search_query_t *query, const search_hit_t *hits,
                                            size_t count, char **out, store_error_t *error);
store_code_t __wrap_search_reader_excerpts (search_reader_t *self, const char *ns,
                                            const search_query_t *query, const search_hit_t *hits,
                                            size_t count, char **out, store_error_t *error)
{
    if (atomic_load (&late_excerpts)) {
        search_reader_limit (self, 0); /* the clock is looked at all the time */
        ahead_ms += FINDER_MS_MAX + 1000;
    }
    return __real_search_reader_excerpts (self, ns, query, hits, count, out, error);
}

/* Two batches of the store for a page: each takes longer than the index may. */
static void the_time_of_the_store_does_not_count (void **state)
{
    search_stage_t *self = *state;
    enum { TASKS = 150 };
    for (int64_t i = 1; i <= TASKS; i++)
        search_stage_put (self, i, "default", "planner");
    search_stage_settle (self);
    atomic_store (&store_ms, FINDER_MS_MAX + 1000);
    for (int ranked = 0; ranked < 2; ranked++) {
        read_t read = search_stage_page ("default", "plan*", 0, TASKS, ranked != 0);
        search_stage_run (self, &read);
        assert_int_equal (read.error, 0);
        assert_int_equal (read.records_count, TASKS);
        for (size_t i = 0; i < TASKS; i++)
            assert_string_equal (read.search->found[i].excerpt, "\002planner\003");
        search_stage_done (&read);
    }
    atomic_store (&store_ms, 0);
}

/* … and what is found is worth more than its excerpts. */
static void a_page_that_is_found_is_given (void **state)
{
    search_stage_t *self = *state;
    static const char *const texts[] = {"plan*", "pl\u00e4n*", "\"the plan\"*"};
    for (int64_t i = 1; i <= 20; i++)
        search_stage_put (self, i, "default", "the planner pl\u00e4ner");
    search_stage_settle (self);
    atomic_store (&late_excerpts, true);
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        for (int ranked = 0; ranked < 2; ranked++) {
            read_t read = search_stage_page ("default", texts[i], 0, 10, ranked != 0);
            search_stage_run (self, &read);
            assert_int_equal (read.error, 0);
            assert_int_equal (read.records_count, 10);
            assert_null (read.search->found[9].excerpt);
            search_stage_done (&read);
        }
    atomic_store (&late_excerpts, false);
    read_t read = search_stage_page ("default", "plan*", 0, 10, false);
    search_stage_run (self, &read);
    assert_non_null (read.search->found[9].excerpt);
    search_stage_done (&read);
}

static void a_queue_may_be_left_out (void **state)
{
    search_stage_t *self = *state;
    search_stage_put (self, 1, "default", "secret one");
    assert_int_equal (search_stage_found (self, "default", "secret"), 1);
    set_search (self, true);
    search_stage_put (self, 2, "default", "secret two");
    WAIT_FOR (search_stage_found (self, "default", "secret") == 0, TIMING_PATIENCE_MS);
    assert_int_equal (documents (self), 0);
    set_search (self, false);
    search_stage_put (self, 3, "default", "secret three");
    assert_int_equal (search_stage_found (self, "default", "secret"), 1);
    indexer_rebuild (self->indexer);
    WAIT_FOR (search_stage_found (self, "default", "secret") == 3, TIMING_PATIENCE_MS);
}

static void pages_join_into_the_whole (void **state)
{
    search_stage_t *self = *state;
    enum { TASKS = 230 };
    for (int64_t i = 1; i <= TASKS; i++)
        search_stage_put (self, i, "default", i % 2 == 0 ? "even word" : "odd word");
    for (size_t limit = 1; limit <= 120; limit = limit * 3 + 1) {
        int64_t below = 0;
        int64_t expected = TASKS;
        bool more = true;
        while (more) {
            read_t read = search_stage_page ("default", "even", below, limit, false);
            search_stage_run (self, &read);
            assert_int_equal (read.error, 0);
            for (size_t i = 0; i < read.records_count; i++, expected -= 2)
                assert_int_equal (read.records[i]->number, expected);
            more = read.more;
            below = read.next_number;
            assert_true (!more || below > 0);
            search_stage_done (&read);
        }
        assert_int_equal (expected, 0);
    }
}

/* A page that looks at much in vain gives what it has, and a place to go on from. */
static void a_page_looks_at_so_many_only (void **state)
{
    search_stage_t *self = *state;
    enum { TASKS = 300, LOOKS = 40 };
    for (int64_t i = 1; i <= TASKS; i++)
        search_stage_put (self, i, "default", "common");
    const char *queue = "nowhere";
    int64_t below = 0;
    int64_t before = TASKS + 1;
    size_t pages = 0;
    bool more = true;
    while (more) {
        read_t read = search_stage_page ("default", "comm*", below, 10, false);
        read.filter.queues = &queue;
        read.filter.queues_count = 1;
        read.vain_max = LOOKS;
        search_stage_run (self, &read);
        assert_int_equal (read.error, 0);
        assert_int_equal (read.records_count, 0);
        more = read.more;
        below = read.next_number;
        if (more) {
            assert_in_range (before - below, LOOKS - 1, LOOKS);
            before = below;
        }
        pages++;
        search_stage_done (&read);
    }
    assert_true (pages >= TASKS / LOOKS && pages <= TASKS / LOOKS + 2);
}

/* In pieces, each of which looks at so many texts. */
static void finds_are_counted (void **state)
{
    search_stage_t *self = *state;
    enum { TASKS = 300, LOOKS = 40 };
    for (int64_t i = 1; i <= TASKS; i++)
        search_stage_put (self, i, "default", i % 3 == 0 ? "common third" : "common");
    static const char *const texts[] = {"third", "com* NOT third"};
    static const uint64_t counts[] = {TASKS / 3, TASKS - TASKS / 3};
    for (size_t i = 0; i < 2; i++) {
        read_t read = search_stage_page ("default", texts[i], 0, 10, false);
        read.search->counting = true;
        read.vain_max = LOOKS;
        size_t pieces = 0;
        do {
            read.before_number = read.next_number;
            read.next_number = 0;
            read.more = false;
            search_stage_run (self, &read);
            assert_int_equal (read.error, 0);
            assert_int_equal (read.records_count, 0);
            assert_true (!read.more || read.next_number > 0);
        } while (read.more && ++pieces < TASKS);
        assert_int_equal (read.count, counts[i]);
        assert_true (pieces >= TASKS / 3 / LOOKS);
        search_stage_done (&read);
    }
}

static void the_best_comes_first_by_choice (void **state)
{
    search_stage_t *self = *state;
    search_stage_put (self, 1, "default", "needle needle needle");
    search_stage_put (self, 2, "default",
                      "a needle in a long text about many other things, and so on, and on");
    search_stage_put (self, 3, "default", "hay");
    read_t read = search_stage_page ("default", "needle", 0, 10, true);
    search_stage_run (self, &read);
    assert_int_equal (read.error, 0);
    assert_int_equal (read.records_count, 2);
    assert_int_equal (read.records[0]->number, 1);
    assert_int_equal (read.records[1]->number, 2);
    assert_false (read.more);
    assert_non_null (strstr (read.search->found[1].excerpt, "\002needle\003"));
    search_stage_done (&read);
}

static void turns_are_found_with_their_place (void **state)
{
    search_stage_t *self = *state;
    tmq_id_t id = test_id (1);
    record_t record = search_stage_put (self, 1, "default", "payload");
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
    read_t read = search_stage_page ("default", "hotel", 0, 10, false);
    search_stage_run (self, &read);
    assert_int_equal (read.records_count, 1);
    assert_int_equal (read.search->found[0].turn, 2);
    assert_string_equal (read.search->found[0].excerpt, "booked the \002hotel\003");
    search_stage_done (&read);
    assert_int_equal (search_stage_found (self, "default", "planner"),
                      1); /* both turns: one task */
    /* Words may stand in several places of a task; a phrase stands in one. */
    assert_int_equal (search_stage_found (self, "default", "journey hotel payload"), 1);
    assert_int_equal (search_stage_found (self, "default", "journey hot* OR absent"), 1);
    assert_int_equal (search_stage_found (self, "default", "\"journey hotel\""), 0);
    assert_int_equal (search_stage_found (self, "default", "journey absent"), 0);
    assert_int_equal (search_stage_found (self, "default", "journey NOT hotel"), 0);
    assert_int_equal (search_stage_found (self, "default", "hotel -absent"), 1);
    read = search_stage_page ("default", "payload booked hotel journey", 0, 10, true);
    search_stage_run (self, &read);
    assert_int_equal (read.records_count, 1);
    assert_int_equal (read.search->found[0].turn, 2); /* it has most of the words */
    assert_string_equal (read.search->found[0].excerpt, "\002booked\003 the \002hotel\003");
    search_stage_done (&read);
    buf_drop (record.extra);
}

static void what_is_no_text_is_not_looked_at (void **state)
{
    search_stage_t *self = *state;
    record_t record = test_record (1);
    record.payload = buf_new ("word\0word", 9);
    record.payload_bytes = 9;
    record.result = buf_new ("word\xff", 5);
    record.result_bytes = 5;
    batch_t *batch = fixture_batch (self->f);
    fixture_change (self->f, batch, &record, TMQ_EVENT_SUBMITTED);
    fixture_commit (self->f, batch);
    assert_int_equal (search_stage_found (self, "default", "word"), 0);
    buf_drop (record.payload);
    buf_drop (record.result);
    /* Of a long one the first part, up to a whole character. */
    enum { LONG = 100000 };
    char *text = memory_alloc (LONG + 1);
    for (size_t i = 0; i < LONG; i += 5)
        memcpy (text + i, i == 0 ? "head " : i == LONG - 5 ? "tail " : "\xc3\xa4\xc3\xa4 ", 5);
    text[LONG] = '\0';
    search_stage_put (self, 2, "default", text);
    assert_int_equal (search_stage_found (self, "default", "head"), 1);
    assert_int_equal (search_stage_found (self, "default", "tail"), 0);
    /* Marks that somebody wrote are none. */
    search_stage_put (self, 3, "default", "left \002fake\003 mark");
    read_t read = search_stage_page ("default", "mark", 0, 1, false);
    search_stage_run (self, &read);
    assert_string_equal (read.search->found[0].excerpt, "left  fake  \002mark\003");
    search_stage_done (&read);
    free (text);
}

static void a_lost_index_is_made_again (void **state)
{
    search_stage_t *self = *state;
    search_stage_put (self, 1, "default", "kept in the store");
    assert_int_equal (search_stage_found (self, "default", "kept"), 1);
    search_stage_stop (self);
    search_stage_remove (self);
    search_stage_put (self, 2, "default", "kept too");
    fixture_settle (self->f);
    search_stage_start (self);
    WAIT_FOR (search_stage_found (self, "default", "kept") == 2, TIMING_PATIENCE_MS);
    /* One of another history too. */
    search_stage_stop (self);
    self->f->boot.generation++;
    search_stage_start (self);
    WAIT_FOR (search_stage_found (self, "default", "kept") == 2, TIMING_PATIENCE_MS);
    /* And one that is ahead of the store. */
    search_stage_stop (self);
    uint64_t pos = self->f->pos;
    self->f->pos = 1;
    search_stage_start (self);
    self->f->pos = pos;
    WAIT_FOR (search_stage_found (self, "default", "kept") == 2, TIMING_PATIENCE_MS);
}

static void a_damaged_index_takes_searches_alone (void **state)
{
    search_stage_t *self = *state;
    char path[128];
    search_stage_put (self, 1, "default", "word");
    assert_int_equal (search_stage_found (self, "default", "word"), 1);
    search_stage_stop (self);
    search_stage_remove (self);
    search_stage_path (path, self, "search.db");
    int fd = open (path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal (write (fd, "this is no database, and never was one", 38), 38);
    close (fd);
    search_stage_start (self);
    read_t read = search_stage_page ("default", "word", 0, 10, false);
    finder_submit (self->finder, &read);
    read_t *back = NULL;
    WAIT_FOR ((back = finder_done (self->finder)) != NULL, TIMING_PATIENCE_MS);
    assert_int_equal (read.error, STORE_ERROR_DAMAGED);
    assert_non_null (strstr (read.error_text, "reindex"));
    search_stage_done (&read);
    /* It is thrown away a moment later. */
    indexer_stats_t stats = {.broken = true};
    indexer_rebuild (self->indexer);
    WAIT_FOR ((indexer_stats (self->indexer, &stats), !stats.broken), TIMING_PATIENCE_MS);
    WAIT_FOR (search_stage_found (self, "default", "word") == 1, TIMING_PATIENCE_MS);
}

/* Where there is little space, the work has it. */
static void little_space_takes_the_index_alone (void **state)
{
    search_stage_t *self = *state;
    search_stage_put (self, 1, "default", "before");
    assert_int_equal (search_stage_found (self, "default", "before"), 1);
    atomic_store (&self->free_bytes_min, UINT64_MAX);
    search_stage_put (self, 2, "default", "after");
    fixture_settle (self->f);
    search_t how = {.building = true};
    WAIT_FOR (
        (indexer_wait (self->indexer, search_stage_mono_ms () + 10, &how), how.stalled[0] != '\0'),
        TIMING_PATIENCE_MS);
    assert_non_null (strstr (how.stalled, "free_space_min"));
    assert_true (how.behind);
    read_t read = search_stage_page ("default", "before", 0, 10, false);
    read_t *back = NULL;
    finder_submit (self->finder, &read);
    WAIT_FOR ((back = finder_done (self->finder)) != NULL, TIMING_PATIENCE_MS);
    assert_int_equal (read.error, 0);
    assert_int_equal (read.records_count, 1); /* what is in it is found */
    search_stage_done (&read);
    atomic_store (&self->free_bytes_min, 0);
    assert_int_equal (search_stage_found (self, "default", "after"), 1);
}

static uint64_t first_event (search_stage_t *self)
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
    search_stage_t *self = *state;
    fixture_t *f = self->f;
    int64_t next = 3;
    search_stage_stop (self);
    fixture_close (f);
    f->options.events_ms_max = 30;
    fixture_open (f);
    search_stage_start (self);
    search_stage_put (self, 1, "default", "early word");
    assert_int_equal (search_stage_found (self, "default", "word"), 1);
    search_stage_stop (self);
    search_stage_put (self, 2, "default", "missed word");
    store_exported (f->store, UINT64_MAX);
    WAIT_FOR ((search_stage_put (self, next++, "default", "other"), first_event (self) > 2),
              TIMING_PATIENCE_MS);
    search_stage_start (self);
    WAIT_FOR (search_stage_found (self, "default", "word") == 2, TIMING_PATIENCE_MS);
    assert_int_equal (search_stage_found (self, "default", "missed"), 1);
}

/* More than one transaction takes. */
static void much_text_goes_in_parts (void **state)
{
    search_stage_t *self = *state;
    enum { TASKS = 40 };
    char *text = memory_alloc (TMQ_SEARCH_TEXT_BYTES_MAX + 1);
    for (int64_t i = 1; i <= TASKS; i++) {
        memset (text, ' ', TMQ_SEARCH_TEXT_BYTES_MAX);
        text[TMQ_SEARCH_TEXT_BYTES_MAX] = '\0';
        memcpy (text, "everyone", 8);
        snprintf (text + TMQ_SEARCH_TEXT_BYTES_MAX - 9, 10, " number%02d", (int) i);
        search_stage_put (self, i, "default", text);
    }
    free (text);
    assert_int_equal (search_stage_found (self, "default", "everyone"), TASKS);
    assert_int_equal (search_stage_found (self, "default", "number40"), 1);
    search_stage_stop (self);
    search_stage_remove (self);
    search_stage_start (self);
    WAIT_FOR (search_stage_found (self, "default", "everyone") == TASKS, TIMING_PATIENCE_MS);
    assert_int_equal (search_stage_found (self, "default", "number17"), 1);
}

static void run_sql (const char *path, const char *text)
{
    sqlite3 *db;
    assert_int_equal (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal (sqlite3_exec (db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close (db);
}

/* Behind its documents no key follows that is a number of 64 bits. */
static void the_last_namespace_keeps_its_documents (void **state)
{
    search_stage_t *self = *state;
    char directory[128];
    char path[160];
    search_writer_t *writer;
    search_place_t place;
    store_error_t error;
    search_walk_t walk = {0};
    const search_doc_t doc = {.ns = "last", .number = 1, .texts = {{"word", 4}}};
    search_stage_path (directory, self, "full");
    snprintf (path, sizeof (path), "%s/%s", directory, SEARCH_FILE);
    assert_int_equal (mkdir (directory, 0700), 0);
    assert_int_equal (search_writer_open (&writer, directory, 1, 1, true, &place, &error), 0);
    search_writer_close (&writer);
    run_sql (path,
             "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 65534)"
             " INSERT INTO space SELECT i, 'n' || i FROM n");
    assert_int_equal (search_writer_open (&writer, directory, 1, 1, false, &place, &error), 0);
    assert_int_equal (search_writer_begin (writer, &error), 0);
    assert_int_equal (search_writer_put (writer, &doc, &error), 0);
    assert_int_equal (search_writer_drop_spaces (writer, &error), 0);
    assert_int_equal (search_writer_walk (writer, &walk, &error), 0);
    assert_int_equal (walk.count, 1);
    assert_string_equal (walk.ns, "last");
    assert_int_equal (walk.place >> 47, SEARCH_SPACES_MAX);
    assert_int_equal (search_writer_commit (writer, &place, &error), 0);
    search_writer_close (&writer);
}

/* FTS5 walks its own order downwards: nothing is sorted, nothing is read that is not asked for. */
static void a_page_is_read_in_the_index_order (void **state)
{
    search_stage_t *self = *state;
    char path[128];
    char plan[512] = "";
    sqlite3 *db;
    sqlite3_stmt *statement;
    search_stage_put (self, 1, "default", "word");
    assert_int_equal (search_stage_found (self, "default", "word"), 1);
    search_stage_path (path, self, "search.db");
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

int main (void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH (words_are_found_in_every_text),
        ON_BOTH (what_changes_is_found_anew),
        ON_BOTH (what_is_removed_leaves_the_index),
        ON_STORED_WITH (what_is_removed_leaves_the_index_beside_full_tombstones, search_stage_setup,
                        search_stage_teardown),
        ON_BOTH (beginnings_become_words),
        ON_BOTH (beginnings_are_found),
        ON_BOTH (newer_emoji_are_letters),
        ON_BOTH (too_wide_a_beginning_has_an_end),
        ON_BOTH (the_time_of_the_store_does_not_count),
        ON_BOTH (a_page_that_is_found_is_given),
        ON_BOTH (a_queue_may_be_left_out),
        ON_BOTH (pages_join_into_the_whole),
        ON_BOTH (a_page_looks_at_so_many_only),
        ON_BOTH (finds_are_counted),
        ON_BOTH (the_best_comes_first_by_choice),
        ON_BOTH (turns_are_found_with_their_place),
        ON_BOTH (what_is_no_text_is_not_looked_at),
        ON_BOTH (a_lost_index_is_made_again),
        ON_BOTH (a_damaged_index_takes_searches_alone),
        ON_BOTH (much_text_goes_in_parts),
        ON_STORED_WITH (little_space_takes_the_index_alone, search_stage_setup,
                        search_stage_teardown),
        ON_STORED_WITH (an_index_that_lagged_too_far_misses_nothing, search_stage_setup,
                        search_stage_teardown),
        ON_STORED_WITH (the_last_namespace_keeps_its_documents, search_stage_setup,
                        search_stage_teardown),
        ON_STORED_WITH (a_page_is_read_in_the_index_order, search_stage_setup,
                        search_stage_teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
