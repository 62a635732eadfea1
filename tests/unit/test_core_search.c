/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Searches as the engine takes and answers them; the index is the test's. */
#include <stdatomic.h>
#include <string.h>

#include "core/base/memory.h"
#include "core_rig.h"

enum { TASKS = 5, SEARCHES_MAX = 4 };

static int setup (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.given_reads_max = 1;
    rig_t *rig = rig_new_with (&config);
    *state = rig;
    rig_link (rig, 0, "default");
    rig_use_request_id (1);
    for (unsigned n = 1; n <= TASKS; n++)
        rig_submit (rig, 0, n, "q", "");
    rig_settle (rig);
    rig_forget (rig, 0);
    return 0;
}

static int teardown (void **state)
{
    rig_free (*state);
    return 0;
}

static void what_was_found_is_told_with_its_hits (void **state)
{
    rig_t *rig = *state;
    uint64_t request = rig_search (rig, 0, "two words", (ProtobufCBinaryData){0}, false);
    read_t *read = engine_read_next (rig->engine);
    assert_non_null (read);
    assert_int_equal (read->kind, READ_SEARCH);
    assert_string_equal (read->filter.ns, "default");
    assert_int_equal (read->search->query.count, 2);
    read->records = memory_zero (1, sizeof (record_t *));
    const record_t record = {
        .number = 3, .id = rig_id (3), .ns = "default", .queue = "q", .status = TMQ_STATUS_QUEUED};
    read->records[read->records_count++] = record_new (&record);
    read->search->found = memory_zero (1, sizeof (search_found_t));
    read->search->found[0] = (search_found_t){7, memory_text ("a \002two\003 b \002words\003")};
    read->search->count = 1;
    read->more = true;
    read->next_number = 3;
    read->search->behind = true;
    engine_read_done (rig->engine, read, rig->now);
    rig_settle (rig);
    const Taskmq__FoundPage *page = rig_reply (rig, 0, request)->reply->found_page;
    assert_int_equal (page->n_found, 1);
    assert_int_equal (page->found[0]->turn, 7);
    assert_string_equal (page->found[0]->excerpt, "a two b words");
    static const uint32_t hits[] = {2, 3, 8, 5};
    assert_int_equal (page->found[0]->n_hits, 4);
    assert_memory_equal (page->found[0]->hits, hits, sizeof (hits));
    assert_true (page->behind);
    assert_true (page->lag > 0);
    /* The next page begins below it; the place is of no other search. */
    ProtobufCBinaryData cursor = page->next;
    assert_true (cursor.len > 0);
    request = rig_search (rig, 0, "other words", cursor, false);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_BAD_CURSOR);
    request = rig_search (rig, 0, "two words", cursor, true);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_BAD_CURSOR);
    rig_search (rig, 0, "two words", cursor, false);
    read = engine_read_next (rig->engine);
    assert_int_equal (read->before_number, 3);
    engine_read_done (rig->engine, read, rig->now);
}

static read_t *next_piece (rig_t *rig, int64_t before, uint64_t found, bool more)
{
    read_t *read = engine_read_next (rig->engine);
    assert_non_null (read);
    assert_true (read->search->counting);
    assert_int_equal (read->before_number, before);
    assert_false (read->more); /* each piece tells for itself */
    read->count += found;
    read->more = more;
    read->next_number = more ? 3 : 0;
    return read;
}

/* A count goes on by itself, piece by piece, behind the searches of others. */
static void finds_are_counted (void **state)
{
    rig_t *rig = *state;
    uint64_t request = rig_search_count (rig, 0, "word");
    read_t *read = next_piece (rig, 0, 4, true);
    engine_read_done (rig->engine, read, rig->now);
    read = next_piece (rig, 3, 1, false);
    engine_read_done (rig->engine, read, rig->now);
    rig_settle (rig);
    const Taskmq__FoundPage *page = rig_reply (rig, 0, request)->reply->found_page;
    assert_int_equal (page->count, 5);
    assert_int_equal (page->n_found, 0);
    assert_int_equal (page->next.len, 0);
    assert_null (engine_read_next (rig->engine));
}

static void what_cannot_be_looked_for_is_told (void **state)
{
    rig_t *rig = *state;
    uint64_t request = rig_search (rig, 0, "(a OR b)", (ProtobufCBinaryData){0}, false);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_INVALID);
    request = rig_search (rig, 0, "", (ProtobufCBinaryData){0}, false);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_INVALID);
    request =
        rig_search (rig, 0, "ab* OR cd* OR ef* OR gh* OR ij*", (ProtobufCBinaryData){0}, false);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_TOO_LARGE);
    assert_null (engine_read_next (rig->engine));
}

/* Searches that wait for their index keep nobody's list from its reader. */
static void searches_wait_apart_and_few_at_once (void **state)
{
    rig_t *rig = *state;
    read_t *reads[SEARCHES_MAX];
    for (size_t i = 0; i < SEARCHES_MAX; i++) {
        rig_search (rig, 0, "word", (ProtobufCBinaryData){0}, false);
        reads[i] = engine_read_next (rig->engine);
        assert_non_null (reads[i]);
    }
    uint64_t refused = rig_search (rig, 0, "word", (ProtobufCBinaryData){0}, false);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, refused), TMQ_LIMIT);
    uint64_t list = rig_list (rig, 0, NULL, (ProtobufCBinaryData){0}, 5);
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, 0, list)->reply->page->n_tasks, TASKS);
    engine_read_done (rig->engine, reads[0], rig->now);
    rig_search (rig, 0, "word", (ProtobufCBinaryData){0}, false);
    reads[0] = engine_read_next (rig->engine);
    assert_non_null (reads[0]);
    /* Those of a link that is gone come back for nobody. */
    rig_goodbye (rig, 0);
    for (size_t i = 0; i < SEARCHES_MAX; i++) {
        assert_true (atomic_load (&reads[i]->cancelled));
        engine_read_done (rig->engine, reads[i], rig->now);
    }
}

static void a_broken_index_is_an_error_of_the_search_alone (void **state)
{
    rig_t *rig = *state;
    uint64_t request = rig_search (rig, 0, "word", (ProtobufCBinaryData){0}, false);
    read_t *read = engine_read_next (rig->engine);
    read->error = 9;
    strcpy (read->error_text, "the index is broken");
    engine_read_done (rig->engine, read, rig->now);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_INTERNAL);
    assert_string_equal (rig_reply (rig, 0, request)->reply->text, "the index is broken");
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (what_was_found_is_told_with_its_hits),
        TEST (finds_are_counted),
        TEST (what_cannot_be_looked_for_is_told),
        TEST (searches_wait_apart_and_few_at_once),
        TEST (a_broken_index_is_an_error_of_the_search_alone),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
