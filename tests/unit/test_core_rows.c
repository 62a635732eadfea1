/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Rows as the engine changes and finds them (core/tasks/rows.h, core/reads/find.h). */
#include <stdlib.h>
#include <string.h>

#include "core/engine/engine.h"
#include "core/reads/find.h"
#include "core/reads/loaded.h"
#include "core/reads/want.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"
#include "core/tasks/rows.h"
#include "core/tasks/settle.h"
#include "support/cmocka_all.h"

/* The rooms that a row passes. */
typedef struct rig {
    base_t base;
    history_t history;
    tasks_t tasks;
    links_t peers;
    reads_t reads;
} rig_t;

static int setup (void **state)
{
    rig_t *rig = calloc (1, sizeof (*rig));
    engine_config_t config = ENGINE_CONFIG_INIT;
    base_init (&rig->base, &config);
    history_init (&rig->history, &rig->base);
    tasks_init (&rig->tasks, &rig->base, &rig->history);
    links_init (&rig->peers, &rig->base);
    reads_init (&rig->reads, &rig->base, &rig->tasks, &rig->peers);
    *state = rig;
    return 0;
}

static int teardown (void **state)
{
    rig_t *rig = *state;
    reads_reset (&rig->reads);
    reads_free (&rig->reads);
    links_free (&rig->peers);
    tasks_free (&rig->tasks);
    base_free (&rig->base);
    free (rig);
    return 0;
}

static void put (rig_t *rig, const char *key, const char *body)
{
    rows_put (&rig->tasks, body == NULL
                               ? row_make_gone (ROW_KIND_TEST, key, strlen (key))
                               : row_make (ROW_KIND_TEST, key, strlen (key), body, strlen (body)));
}

/* body NULL: there is no such row, as far as is known. */
static void assert_found (rig_t *rig, const char *key, const char *body)
{
    bool found;
    const buf_t *got = find_row (&rig->reads, ROW_KIND_TEST, key, strlen (key), &found);
    assert_int_equal (found, body != NULL);
    if (body == NULL)
        return;
    assert_int_equal (buf_length (got), strlen (body));
    assert_memory_equal (buf_bytes (got), body, strlen (body));
    got = find_row (&rig->reads, ROW_KIND_TEST_LIVE, key, strlen (key), &found);
    assert_false (found);
}

static void write_back (rig_t *rig, uint64_t batch)
{
    rig->base.durable = rig->base.written = batch;
    settle_durable (&rig->tasks, batch);
    settle_written (&rig->tasks);
}

static void a_changed_row_goes_with_the_batch (void **state)
{
    rig_t *rig = *state;
    assert_true (journal_is_empty (&rig->tasks));
    put (rig, "a", "1");
    put (rig, "b", "2");
    put (rig, "a", NULL);
    assert_false (journal_is_empty (&rig->tasks));
    assert_int_equal (journal_batch (&rig->tasks), 1);
    batch_t *batch = journal_take (&rig->tasks);
    assert_int_equal (batch->rows_count, 3);
    assert_memory_equal (buf_bytes (batch->rows[1].key), "b", 1);
    assert_true (batch->rows[2].gone);
    assert_true (batch->bytes >= 3 * sizeof (row_t));
    assert_true (journal_is_empty (&rig->tasks));
    assert_int_equal (journal_pending_bytes (&rig->tasks), batch->bytes);
    batch_free (batch);
    write_back (rig, 1);
    assert_int_equal (journal_pending_bytes (&rig->tasks), 0);
}

/* Until the tables show it; then they are asked. */
static void the_newest_change_is_found (void **state)
{
    rig_t *rig = *state;
    put (rig, "a", "1");
    put (rig, "b", "1");
    assert_found (rig, "a", "1");
    assert_found (rig, "c", NULL);
    batch_free (journal_take (&rig->tasks));
    put (rig, "a", "2");
    put (rig, "c", NULL);
    assert_found (rig, "a", "2");
    batch_free (journal_take (&rig->tasks));
    write_back (rig, 1);
    assert_found (rig, "a", "2");
    assert_found (rig, "b", NULL);
    assert_non_null (rows_find (&rig->tasks, ROW_KIND_TEST, "c", 1));
    write_back (rig, 2);
    assert_found (rig, "a", NULL);
    assert_null (rows_find (&rig->tasks, ROW_KIND_TEST, "c", 1));
}

static void what_memory_does_not_know_is_looked_up (void **state)
{
    rig_t *rig = *state;
    key_list_t keys = {0};
    put (rig, "a", "1");
    want_row (&rig->reads, ROW_KIND_TEST, "a", 1, &keys);
    assert_int_equal (keys.count, 0);
    want_row (&rig->reads, ROW_KIND_TEST, "b", 1, &keys);
    want_row (&rig->reads, ROW_KIND_TEST, "c", 1, &keys);
    want_row (&rig->reads, ROW_KIND_TEST, "d", 1, &keys);
    assert_int_equal (keys.count, 3);
    assert_int_equal (keys.keys[0].kind, LOOKUP_ROW);
    assert_memory_equal (buf_bytes (keys.keys[0].row_key), "b", 1);
    keys.keys[0].row_found = true;
    keys.keys[0].row_body = buf_new ("stored", 6);
    keys.keys[1].row_found = true;
    loaded_take (&rig->reads, keys.keys, keys.count);
    assert_found (rig, "b", "stored");
    assert_found (rig, "c", "");
    assert_found (rig, "d", NULL);
    put (rig, "b", "newer");
    put (rig, "c", NULL);
    assert_found (rig, "b", "newer");
    assert_found (rig, "c", NULL);
    loaded_clear (&rig->reads);
    assert_found (rig, "b", "newer");
}

/* What was applied and not kept is unknown again. */
static void a_reset_forgets_them (void **state)
{
    rig_t *rig = *state;
    put (rig, "a", "1");
    batch_free (journal_take (&rig->tasks));
    put (rig, "b", "1");
    journal_clear (&rig->tasks);
    assert_true (journal_is_empty (&rig->tasks));
    assert_found (rig, "a", NULL);
    assert_found (rig, "b", NULL);
}

static void nobody_without_a_name_owns_tasks (void **state)
{
    rig_t *rig = *state;
    assert_false (task_owner_has_some (&rig->tasks, ""));
    assert_false (task_owner_has_some (&rig->tasks, NULL));
}

/* The engine decides about what the store proposes. */

typedef struct proposal {
    engine_t *engine;
    now_t now;
} proposal_t;

static batch_t *proposed (proposal_t *self, const char *key, int64_t expires_at, uint64_t written,
                          size_t removed)
{
    due_t due = {.written = written, .rows = calloc (1, sizeof (row_t)), .rows_count = 1};
    due.rows[0] = row_make (ROW_KIND_TEST, key, strlen (key), NULL, 0);
    due.rows[0].expires_at = expires_at;
    assert_int_equal (engine_due (self->engine, &due, self->now), removed);
    assert_null (due.rows);
    return engine_batch_take (self->engine, self->now);
}

static void a_row_past_its_time_is_removed (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    boot_t boot = {.generation = 1, .epoch = 1};
    proposal_t self = {engine_new (&config), {1000, 1700000000000}};
    engine_boot (self.engine, &boot, self.now);
    engine_ready (self.engine, self.now);
    assert_null (proposed (&self, "a", self.now.wall_ms + 1, 0, 0));
    assert_null (proposed (&self, "a", 0, 0, 0));
    batch_t *batch = proposed (&self, "a", self.now.wall_ms, 0, 1);
    assert_int_equal (batch->rows_count, 1);
    assert_true (batch->rows[0].gone);
    assert_memory_equal (buf_bytes (batch->rows[0].key), "a", 1);
    /* Memory knows that it is gone, or was put anew; then the tables are as new as the proposal. */
    assert_null (proposed (&self, "a", self.now.wall_ms, 0, 0));
    engine_durable (self.engine, batch->no, self.now);
    engine_written (self.engine, batch->no);
    batch_t *again = proposed (&self, "a", self.now.wall_ms, batch->no, 1);
    assert_int_equal (again->rows_count, 1);
    batch_free (batch);
    batch_free (again);
    engine_free (self.engine);
}

/* A proposal that was read before is not trusted once memory has forgotten the change. */
static void what_is_put_anew_is_noted (void **state)
{
    rig_t *rig = *state;
    put (rig, "a", "1");
    assert_int_equal (rig->tasks.freshened, 1);
    put (rig, "a", NULL);
    batch_free (journal_take (&rig->tasks));
    put (rig, "b", NULL);
    assert_int_equal (rig->tasks.freshened, 1);
    put (rig, "b", "1");
    assert_int_equal (rig->tasks.freshened, 2);
}

static void a_row_past_its_time_is_not_found (void **state)
{
    rig_t *rig = *state;
    row_t row = row_make (ROW_KIND_TEST, "a", 1, "1", 1);
    rig->base.clocks.wall_ms = 1000;
    row.expires_at = 1001;
    rows_put (&rig->tasks, row);
    assert_found (rig, "a", "1");
    rig->base.clocks.wall_ms = 1001;
    assert_found (rig, "a", NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_changed_row_goes_with_the_batch),
        TEST (the_newest_change_is_found),
        TEST (what_memory_does_not_know_is_looked_up),
        TEST (a_reset_forgets_them),
        TEST (what_is_put_anew_is_noted),
        TEST (a_row_past_its_time_is_not_found),
        cmocka_unit_test (a_row_past_its_time_is_removed),
        TEST (nobody_without_a_name_owns_tasks),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
