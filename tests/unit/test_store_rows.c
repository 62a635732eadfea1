/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Rows of every kind, whichever backend keeps them (core/data/row.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/row_list.h"
#include "store/sqlite/readers.h"
#include "store_support.h"

static buf_t *bytes_of (const char *text)
{
    return text == NULL ? NULL : buf_new (text, strlen (text));
}

static void put (fixture_t *f, row_kind_t kind, const char *key, const char *body)
{
    batch_t *batch = fixture_batch (f);
    batch_add_row (batch, kind, key, body);
    fixture_commit (f, batch);
}

/* body NULL: there is no such row. */
static void assert_row (fixture_t *f, row_kind_t kind, const char *key_text, const char *body)
{
    store_error_t error;
    buf_t *key = bytes_of (key_text);
    lookup_t lookup = {.kind = LOOKUP_ROW, .row_kind = kind, .row_key = key};
    assert_int_equal (store_load (f->store, &lookup, 1, &error), STORE_OK);
    assert_int_equal (lookup.row_found, body != NULL);
    assert_body (lookup.row_body, body == NULL ? "" : body, body == NULL ? 0 : strlen (body));
    buf_drop (lookup.row_body);
    buf_drop (key);
}

static void a_row_is_what_was_put_last (void **state)
{
    fixture_t *f = *state;
    put (f, ROW_KIND_TEST, "one", "first");
    put (f, ROW_KIND_TEST_LIVE, "one", "of another kind");
    fixture_settle (f);
    put (f, ROW_KIND_TEST, "one", "second");
    batch_t *batch = fixture_batch (f);
    batch_add_row (batch, ROW_KIND_TEST, "one", "third");
    batch_add_row (batch, ROW_KIND_TEST, "two", "of short life");
    batch_add_row (batch, ROW_KIND_TEST, "one", "fourth");
    batch_add_row (batch, ROW_KIND_TEST, "two", NULL);
    batch_add_row (batch, ROW_KIND_TEST, "empty", "");
    fixture_commit (f, batch);
    fixture_settle (f);
    assert_row (f, ROW_KIND_TEST, "one", "fourth");
    assert_row (f, ROW_KIND_TEST, "two", NULL);
    assert_row (f, ROW_KIND_TEST, "empty", "");
    assert_row (f, ROW_KIND_TEST_LIVE, "one", "of another kind");
    assert_row (f, ROW_KIND_TEST, "on", NULL);
}

static void a_row_that_is_gone_can_come_again (void **state)
{
    fixture_t *f = *state;
    static const char *const BODIES[] = {"one", NULL, "two", NULL, NULL, "three"};
    for (size_t i = 0; i < sizeof (BODIES) / sizeof (BODIES[0]); i++) {
        put (f, ROW_KIND_TEST, "key", BODIES[i]);
        fixture_settle (f);
        assert_row (f, ROW_KIND_TEST, "key", BODIES[i]);
    }
}

/* As large as a key and a body may be. */
static void the_largest_row_is_kept (void **state)
{
    fixture_t *f = *state;
    char *body = memory_alloc (ROW_BODY_BYTES_MAX + 1);
    char key[ROW_KEY_BYTES_MAX + 1];
    memset (body, 'b', ROW_BODY_BYTES_MAX);
    memset (key, 'k', ROW_KEY_BYTES_MAX);
    body[ROW_BODY_BYTES_MAX] = key[ROW_KEY_BYTES_MAX] = '\0';
    put (f, ROW_KIND_TEST, key, body);
    fixture_settle (f);
    assert_row (f, ROW_KIND_TEST, key, body);
    key[ROW_KEY_BYTES_MAX - 1] = '\0';
    assert_row (f, ROW_KIND_TEST, key, NULL);
    free (body);
}

/* Reads in pages of limit and compares the keys, each followed by a space. */
static void assert_keys (fixture_t *f, const char *prefix_text, const char *after_text,
                         size_t limit, const char *wanted)
{
    char keys[256] = "";
    buf_t *prefix = bytes_of (prefix_text);
    buf_t *after = bytes_of (after_text);
    for (bool more = true; more;) {
        read_t read = {.kind = READ_ROWS,
                       .row_kind = ROW_KIND_TEST,
                       .prefix = prefix,
                       .after = after,
                       .limit = limit};
        fixture_read (f, &read);
        assert_true (read.rows_count <= limit);
        for (size_t i = 0; i < read.rows_count; i++) {
            assert_int_equal (read.rows[i].kind, ROW_KIND_TEST);
            strncat (keys, (const char *) buf_bytes (read.rows[i].key),
                     buf_length (read.rows[i].key));
            strcat (keys, " ");
            buf_drop (after);
            after = buf_keep (read.rows[i].key);
        }
        more = read.more;
        read_clear (&read);
    }
    assert_string_equal (keys, wanted);
    buf_drop (prefix);
    buf_drop (after);
}

static void rows_are_read_in_order (void **state)
{
    fixture_t *f = *state;
    static const char *const KEYS[] = {"b2", "a",   "b1",    "\xff",     "b",
                                       "c",  "b10", "b\xff", "b\xff\xff"};
    batch_t *batch = fixture_batch (f);
    for (size_t i = 0; i < sizeof (KEYS) / sizeof (KEYS[0]); i++)
        batch_add_row (batch, ROW_KIND_TEST, KEYS[i], KEYS[i]);
    batch_add_row (batch, ROW_KIND_TEST_LIVE, "b3", "of another kind");
    fixture_commit (f, batch);
    fixture_settle (f);
    for (size_t limit = 1; limit < 12; limit += 2) {
        assert_keys (f, NULL, NULL, limit, "a b b1 b10 b2 b\xff b\xff\xff c \xff ");
        assert_keys (f, "b", NULL, limit, "b b1 b10 b2 b\xff b\xff\xff ");
        assert_keys (f, "b1", NULL, limit, "b1 b10 ");
        assert_keys (f, "b\xff", NULL, limit, "b\xff b\xff\xff ");
        assert_keys (f, "\xff", NULL, limit, "\xff ");
        assert_keys (f, NULL, "b2", limit, "b\xff b\xff\xff c \xff ");
        assert_keys (f, "b", "b11", limit, "b2 b\xff b\xff\xff ");
        assert_keys (f, "b", "a", limit, "b b1 b10 b2 b\xff b\xff\xff ");
        assert_keys (f, "b", "c", limit, "");
        assert_keys (f, "d", NULL, limit, "");
    }
}

static void a_page_of_large_rows_ends_early (void **state)
{
    fixture_t *f = *state;
    char *body = memory_alloc (ROW_BODY_BYTES_MAX + 1);
    memset (body, 'b', ROW_BODY_BYTES_MAX);
    body[ROW_BODY_BYTES_MAX] = '\0';
    for (char key[] = "a"; key[0] <= 'i'; key[0]++)
        put (f, ROW_KIND_TEST, key, body);
    free (body);
    fixture_settle (f);
    read_t read = {.kind = READ_ROWS, .row_kind = ROW_KIND_TEST, .limit = 100};
    fixture_read (f, &read);
    assert_true (read.more);
    assert_int_equal (read.rows_count, ROWS_READ_BYTES_MAX / ROW_BODY_BYTES_MAX);
    read_clear (&read);
    assert_keys (f, NULL, NULL, 100, "a b c d e f g h i ");
}

/* Each transaction of a reader ends as early as it may, and still goes on. */
static void a_reader_without_time_comes_to_the_end (void **state)
{
    fixture_t *f = *state;
    for (char key[] = "a"; key[0] <= 'e'; key[0]++)
        put (f, ROW_KIND_TEST, key, key);
    fixture_settle (f);
    store_error_t error = {STORE_OK, ""};
    readers_t readers;
    gate_t gate;
    gate_init (&gate);
    assert_int_equal (readers_open (&readers, f->directory, &gate, 0, &error), STORE_OK);
    read_t read = {.kind = READ_ROWS, .row_kind = ROW_KIND_TEST, .limit = 100};
    assert_int_equal (readers_run (&readers, &read, &error), STORE_OK);
    assert_int_equal (read.rows_count, 5);
    assert_false (read.more);
    read_clear (&read);
    readers_close (&readers);
    gate_destroy (&gate);
}

static void see_row (void *context, const row_t *row)
{
    char *text = context;
    assert_int_equal (row->kind, ROW_KIND_TEST_LIVE);
    strncat (text, (const char *) buf_bytes (row->key), buf_length (row->key));
    strcat (text, "=");
    strncat (text, (const char *) buf_bytes (row->body), buf_length (row->body));
    strcat (text, " ");
}

static void see_task (void *context, record_t *record)
{
    strcat (context, "task ");
    record_free (record);
}

static void see_ns (void *context, const char *name, uint64_t last_seq)
{
    (void) name;
    (void) last_seq;
    strcat (context, "namespace ");
}

/* Only the kinds that live in memory, before the tasks. */
static void live_rows_are_handed_over (void **state)
{
    fixture_t *f = *state;
    char text[256] = "";
    store_live_visitor_t visitor = {see_task, see_ns, text, see_row};
    store_error_t error;
    put (f, ROW_KIND_TEST_LIVE, "b", "1");
    put (f, ROW_KIND_TEST_LIVE, "a", "2");
    put (f, ROW_KIND_TEST_LIVE, "c", "3");
    put (f, ROW_KIND_TEST, "a", "4");
    put (f, ROW_KIND_TEST_LIVE, "c", NULL);
    fixture_submit (f, 1, 1);
    assert_int_equal (store_live (f->store, &visitor, &error), STORE_OK);
    assert_string_equal (text, "a=2 b=1 task namespace ");
}

/* A start brings what only the journal has into the table, as it does with tasks. */
static void rows_outlive_the_broker (void **state)
{
    fixture_t *f = *state;
    for (int start = 0; start < 3; start++) {
        char body[] = {(char) ('0' + start), '\0'};
        put (f, ROW_KIND_TEST, "key", body);
        put (f, ROW_KIND_TEST, "gone", start % 2 == 0 ? body : NULL);
        fixture_close (f);
        fixture_open (f);
        assert_row (f, ROW_KIND_TEST, "key", body);
        assert_row (f, ROW_KIND_TEST, "gone", start % 2 == 0 ? body : NULL);
    }
}

/* Turns: rows of a task, by their places; a debt stands in their order beside them, and is handed
 * over at a start until it is paid. */

enum { TURNS = 300, TURNS_PAGE = 7 };

static row_key_t turn_key (const char *ns, uint64_t task, uint64_t place)
{
    row_key_t key = ROW_KEY_INIT;
    tmq_id_t id = test_id (task);
    row_key_text (&key, ns);
    row_key_bytes (&key, id.bytes, sizeof (id.bytes));
    if (place > 0)
        row_key_number (&key, place);
    return key;
}

/* Takes the row. */
static void put_row (batch_t *batch, row_t row)
{
    batch->rows = memory_resize (batch->rows, batch->rows_count + 1, sizeof (row_t));
    batch->rows[batch->rows_count++] = row;
}

static void put_turn (batch_t *batch, uint64_t task, uint64_t place, bool gone)
{
    char body[24];
    row_key_t key = turn_key ("default", task, place);
    snprintf (body, sizeof (body), "%llu of %llu", (unsigned long long) place,
              (unsigned long long) task);
    put_row (batch, gone ? row_make_gone (ROW_KIND_TURN, key.bytes, key.length)
                         : row_make (ROW_KIND_TURN, key.bytes, key.length, body, strlen (body)));
}

/* Those of the task behind `after` are these, page by page. */
static void assert_turns (fixture_t *f, uint64_t task, uint64_t after_place, uint64_t last)
{
    row_key_t prefix_key = turn_key ("default", task, 0);
    row_key_t after_key = turn_key ("default", task, after_place);
    buf_t *prefix = buf_new (prefix_key.bytes, prefix_key.length);
    buf_t *after = after_place == 0 ? NULL : buf_new (after_key.bytes, after_key.length);
    uint64_t place = after_place;
    for (bool more = true; more;) {
        read_t read = {.kind = READ_ROWS,
                       .row_kind = ROW_KIND_TURN,
                       .prefix = prefix,
                       .after = after,
                       .limit = TURNS_PAGE};
        fixture_read (f, &read);
        for (size_t i = 0; i < read.rows_count; i++) {
            char body[24];
            snprintf (body, sizeof (body), "%llu of %llu", (unsigned long long) ++place,
                      (unsigned long long) task);
            assert_body (read.rows[i].body, body, strlen (body));
            buf_drop (after);
            after = buf_keep (read.rows[i].key);
        }
        more = read.more;
        read_clear (&read);
    }
    assert_int_equal (place, last);
    buf_drop (prefix);
    buf_drop (after);
}

static void see_debt (void *context, const row_t *row)
{
    uint64_t *left = context;
    assert_int_equal (row->kind, ROW_KIND_TURNS_LEFT);
    *left = row_number (row->body);
}

static uint64_t debt_of (fixture_t *f)
{
    uint64_t left = 0;
    store_error_t error;
    store_live_visitor_t visitor = {NULL, NULL, &left, see_debt};
    assert_int_equal (store_live (f->store, &visitor, &error), STORE_OK);
    return left;
}

static void turns_are_read_by_place_and_removed_in_slices (void **state)
{
    fixture_t *f = *state;
    row_key_t count = ROW_KEY_INIT;
    row_key_t debt_key = turn_key ("default", 2, 0);
    batch_t *batch = fixture_batch (f);
    for (uint64_t place = 1; place <= TURNS; place++)
        for (uint64_t task = 1; task <= 3; task++)
            put_turn (batch, task, place, false);
    fixture_commit (f, batch);
    fixture_settle (f);
    assert_turns (f, 2, 0, TURNS);
    assert_turns (f, 2, 255, TURNS);
    assert_turns (f, 4, 0, 0);
    assert_int_equal (debt_of (f), 0);
    /* The second task is removed: a debt, and a slice from the end. */
    row_key_number (&count, TURNS);
    batch = fixture_batch (f);
    put_row (batch, row_make (ROW_KIND_TURNS_LEFT, debt_key.bytes, debt_key.length, count.bytes,
                              count.length));
    for (uint64_t place = TURNS; place > 100; place--)
        put_turn (batch, 2, place, true);
    fixture_commit (f, batch);
    fixture_settle (f);
    assert_turns (f, 2, 0, 100);
    assert_int_equal (debt_of (f), TURNS);
    /* The rest, also of what is not there any more. */
    batch = fixture_batch (f);
    put_row (batch, row_make_gone (ROW_KIND_TURNS_LEFT, debt_key.bytes, debt_key.length));
    for (uint64_t place = TURNS; place > 0; place--)
        put_turn (batch, 2, place, true);
    fixture_commit (f, batch);
    fixture_settle (f);
    assert_turns (f, 2, 0, 0);
    assert_turns (f, 1, 0, TURNS);
    assert_turns (f, 3, 0, TURNS);
    assert_int_equal (debt_of (f), 0);
}

static void put_until (fixture_t *f, const char *key, const char *body, int64_t expires_at)
{
    batch_t *batch = fixture_batch (f);
    batch_add_row (batch, ROW_KIND_TEST, key, body);
    batch->rows[0].expires_at = expires_at;
    fixture_commit (f, batch);
}

/* The keys that are due at this time, in pages of limit, sorted by their first byte. */
static void assert_due (fixture_t *f, int64_t wall_ms, size_t limit, const char *wanted)
{
    char seen[128] = "";
    char keys[128] = "";
    store_sweep_t sweep = {.wall_ms = wall_ms, .limit = limit};
    do {
        store_error_t error;
        assert_int_equal (store_due (f->store, &sweep, &error), STORE_OK);
        assert_int_equal (sweep.found.written, store_written (f->store));
        assert_true (sweep.found.rows_count <= limit);
        for (size_t i = 0; i < sweep.found.rows_count; i++) {
            const row_t *row = &sweep.found.rows[i];
            assert_int_equal (row->kind, ROW_KIND_TEST);
            assert_null (row->body);
            assert_in_range (row->expires_at, 1, wall_ms);
            seen[buf_bytes (row->key)[0]]++;
        }
        due_clear (&sweep.found);
    } while (sweep.more);
    for (int c = 'a'; c <= 'z'; c++)
        for (int n = 0; n < seen[c]; n++)
            keys[strlen (keys)] = (char) c;
    assert_string_equal (keys, wanted);
}

static void rows_past_their_time_are_due (void **state)
{
    fixture_t *f = *state;
    put_until (f, "a", "1", 500);
    put_until (f, "b", "1", 100);
    put_until (f, "c", "1", 0);
    put_until (f, "d", "", 100);
    put_until (f, "e", "1", 300);
    put_until (f, "e", "2", 0); /* the newest one counts, … */
    put_until (f, "f", "1", 0);
    put_until (f, "f", "2", 300);
    put_until (f, "g", "1", 300);
    put (f, ROW_KIND_TEST, "g", NULL);
    fixture_settle (f);
    for (size_t limit = 1; limit < 8; limit += 3) {
        assert_due (f, 99, limit, "");
        assert_due (f, 100, limit, "bd");
        assert_due (f, 499, limit, "bdf");
        assert_due (f, 500, limit, "abdf");
    }
    put_until (f, "b", "2", 800); /* … also when both are written */
    fixture_settle (f);
    assert_due (f, 600, 2, "adf");
}

/* … which is known to every way of reading them. */
static void rows_keep_their_time (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    put_until (f, "a", "1", 500);
    fixture_settle (f);
    lookup_t lookup = {.kind = LOOKUP_ROW, .row_kind = ROW_KIND_TEST, .row_key = bytes_of ("a")};
    assert_int_equal (store_load (f->store, &lookup, 1, &error), STORE_OK);
    assert_int_equal (lookup.row_expires_at, 500);
    buf_drop (lookup.row_body);
    buf_drop (lookup.row_key);
    read_t read = {.kind = READ_ROWS, .row_kind = ROW_KIND_TEST, .limit = 100};
    fixture_read (f, &read);
    assert_int_equal (read.rows_count, 1);
    assert_int_equal (read.rows[0].expires_at, 500);
    read_clear (&read);
}

static void add (batch_t *batch, const char *key, const char *body)
{
    batch_add_row (batch, ROW_KIND_TEST, key, body);
}

static void a_list_keeps_the_last_change_of_a_key (void **state)
{
    (void) state;
    batch_t *batch = batch_make (1, 1);
    row_list_t list = {0};
    for (int i = 0; i < 200; i++) {
        char key[] = {(char) ('a' + i * 7 % 20), '\0'};
        char body[] = {(char) ('a' + i / 20), '\0'};
        add (batch, key, i / 20 == 9 && i % 2 == 0 ? NULL : body);
    }
    row_list_add (&list, batch);
    row_list_sort (&list);
    assert_int_equal (list.count, 20);
    for (size_t i = 0; i < list.count; i++) {
        const row_t *row = &list.rows[i];
        assert_int_equal (buf_bytes (row->key)[0], 'a' + i);
        if (!row->gone)
            assert_int_equal (buf_bytes (row->body)[0], 'j');
        assert_ptr_equal (row_list_find (&list, ROW_KIND_TEST, row->key), row);
        assert_null (row_list_find (&list, ROW_KIND_TEST_LIVE, row->key));
    }
    row_list_free (&list);
    batch_free (batch);
}

/* The order of keys is that of what they were made of. */
static void keys_keep_their_order (void **state)
{
    (void) state;
    static const struct {
        const char *text;
        uint64_t number;
    } PARTS[] = {{"", 5}, {"a", 0}, {"a", 255}, {"a", 256}, {"a", UINT64_MAX}, {"a!", 1}, {"b", 0}};
    row_t before = {.kind = ROW_KIND_TEST};
    for (size_t i = 0; i < sizeof (PARTS) / sizeof (PARTS[0]); i++) {
        row_key_t key = ROW_KEY_INIT;
        row_key_text (&key, PARTS[i].text);
        row_key_number (&key, PARTS[i].number);
        row_t row = row_make (ROW_KIND_TEST, key.bytes, key.length, "", 0);
        assert_true (row_is_valid (&row));
        assert_true (row_compare (&before, &row) < 0);
        row_drop (&before);
        before = row;
    }
    row_drop (&before);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL (a_row_is_what_was_put_last),
        ON_ALL (a_row_that_is_gone_can_come_again),
        ON_ALL (the_largest_row_is_kept),
        ON_ALL (rows_are_read_in_order),
        ON_ALL (a_page_of_large_rows_ends_early),
        ON (a_reader_without_time_comes_to_the_end, "sqlite"),
        ON_ALL (live_rows_are_handed_over),
        ON (rows_outlive_the_broker, "sqlite"),
        ON_ALL (turns_are_read_by_place_and_removed_in_slices),
        ON_ALL (rows_past_their_time_are_due),
        ON_ALL (rows_keep_their_time),
        cmocka_unit_test (a_list_keeps_the_last_change_of_a_key),
        cmocka_unit_test (keys_keep_their_order),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
