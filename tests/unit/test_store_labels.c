/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks are found by their labels in an index, by the rarest condition, and a page that looks in
 * vain ends in time. That the right ones are found is the parity suite's. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "store/sqlite/readers.h"
#include "store_support.h"

enum { TASKS = 4000, PAGE_US = 20000, RARE = 7 };

typedef struct rig {
    fixture_t *fixture;
    gate_t gate;
    readers_t readers;
} rig_t;

/* Each task is odd or even; number RARE is also rare, and number 2 both odd and even in other
 * keys. */
static record_t labelled (int64_t number, label_t labels[3])
{
    record_t record = test_record (number);
    record.status = TMQ_STATUS_COMPLETED;
    labels[0] = (label_t){"parity", number % 2 == 0 ? "even" : "odd"};
    labels[1] = (label_t){"other", number % 2 == 0 && number > 2 ? "even" : "odd"};
    labels[2] = (label_t){"rare", "yes"};
    record.labels = labels;
    record.labels_count = number == RARE ? 3 : 2;
    return record;
}

static int setup (void **state)
{
    static rig_t rig;
    store_error_t error = {STORE_OK, ""};
    rig.fixture = fixture_new ("sqlite");
    fixture_open (rig.fixture);
    batch_t *batch = fixture_batch (rig.fixture);
    for (int64_t number = 1; number <= TASKS; number++) {
        label_t labels[3];
        record_t record = labelled (number, labels);
        batch_add_record (batch, &record);
    }
    fixture_commit (rig.fixture, batch);
    fixture_settle (rig.fixture);
    gate_init (&rig.gate);
    assert_int_equal (
        readers_open (&rig.readers, rig.fixture->directory, &rig.gate, PAGE_US, &error), STORE_OK);
    *state = &rig;
    return 0;
}

static int teardown (void **state)
{
    rig_t *rig = *state;
    void *fixture = rig->fixture;
    readers_close (&rig->readers);
    gate_destroy (&rig->gate);
    return fixture_teardown (&fixture);
}

static void run (rig_t *rig, read_t *read)
{
    store_error_t error = {STORE_OK, ""};
    assert_int_equal (readers_run (&rig->readers, read, &error), STORE_OK);
}

/* How much the statements with this text did, since the last time. */
static int work (const rig_t *rig, const char *text, int which)
{
    int sum = 0;
    sqlite3 *db = rig->readers.view.db;
    for (sqlite3_stmt *it = sqlite3_next_stmt (db, NULL); it != NULL;
         it = sqlite3_next_stmt (db, it))
        if (strstr (sqlite3_sql (it), text) != NULL)
            sum += sqlite3_stmt_status (it, which, 1);
    return sum;
}

static void check_plan (sqlite3 *db, const char *sql)
{
    char text[1024];
    sqlite3_stmt *plan = NULL;
    bool found = false;
    snprintf (text, sizeof (text), "EXPLAIN QUERY PLAN %s", sql);
    assert_int_equal (sqlite3_prepare_v2 (db, text, -1, &plan, NULL), SQLITE_OK);
    while (sqlite3_step (plan) == SQLITE_ROW) {
        const char *step = (const char *) sqlite3_column_text (plan, 3);
        if (strstr (step, "label") != NULL || strstr (step, "SEARCH l ") != NULL) {
            found = true;
            assert_non_null (strstr (step, "COVERING INDEX label_found (ns=? AND key=?"));
        }
        assert_null (strstr (step, "TEMP B-TREE"));
        if (strncmp (step, "SCAN", 4) == 0)
            assert_non_null (strstr (step, "subquery"));
    }
    sqlite3_finalize (plan);
    assert_true (found);
}

static void labels_are_walked_by_their_index_in_its_order (void **state)
{
    rig_t *rig = *state;
    sqlite3 *db = rig->readers.view.db;
    size_t checked = 0;
    for (sqlite3_stmt *it = sqlite3_next_stmt (db, NULL); it != NULL;
         it = sqlite3_next_stmt (db, it)) {
        const char *sql = sqlite3_sql (it);
        if (strstr (sql, "FROM label") == NULL || strstr (sql, "position") != NULL ||
            strstr (sql, "EXPLAIN") != NULL)
            continue;
        check_plan (db, sql);
        checked++;
    }
    assert_int_equal (checked, 3);
}

/* The statement with these words goes through this index alone, and nothing is sorted. */
static void assert_walked_by (const rig_t *rig, const char *words, const char *index)
{
    sqlite3_stmt *plan = NULL;
    char text[1024] = "EXPLAIN QUERY PLAN ";
    sqlite3 *db = rig->readers.view.db;
    for (sqlite3_stmt *it = sqlite3_next_stmt (db, NULL); it != NULL;
         it = sqlite3_next_stmt (db, it))
        if (strstr (sqlite3_sql (it), words) != NULL)
            snprintf (text + strlen (text), sizeof (text) - strlen (text), "%s", sqlite3_sql (it));
    assert_int_equal (sqlite3_prepare_v2 (db, text, -1, &plan, NULL), SQLITE_OK);
    assert_int_equal (sqlite3_step (plan), SQLITE_ROW);
    assert_non_null (strstr ((const char *) sqlite3_column_text (plan, 3), index));
    assert_int_equal (sqlite3_step (plan), SQLITE_DONE);
    sqlite3_finalize (plan);
}

static void parts_are_walked_by_their_index_in_its_order (void **state)
{
    assert_walked_by (*state, "parent = ?5", "INDEX task_parent (ns=? AND parent=? AND rowid");
}

/* Retention goes through its own index, however many other tasks there are. */
static void lasting_tasks_are_walked_by_their_index_in_its_order (void **state)
{
    assert_walked_by (*state, "task_lasting", "INDEX task_lasting (ns=? AND rowid<?)");
}

static void the_rarest_condition_is_walked (void **state)
{
    rig_t *rig = *state;
    static const label_t LABELS[] = {{"parity", "odd"}, {"rare", "yes"}};
    static const tmq_status_t COMPLETED = TMQ_STATUS_COMPLETED;
    read_t read = {.kind = READ_LIST,
                   .filter = {.ns = "default",
                              .labels = LABELS,
                              .labels_count = 2,
                              .statuses = &COMPLETED,
                              .statuses_count = 1},
                   .limit = 10};
    work (rig, "SELECT 1 FROM label", SQLITE_STMTSTATUS_RUN);
    run (rig, &read);
    assert_int_equal (read.records_count, 1);
    assert_int_equal (read.records[0]->number, RARE);
    read_clear (&read);
    /* The other label was asked of the one entry alone. */
    assert_in_range (
        work (rig, "SELECT 1 FROM label WHERE ns = ?1 AND key = ?2", SQLITE_STMTSTATUS_RUN), 1, 1);
}

static void few_tasks_of_a_status_are_walked_instead_of_a_common_label (void **state)
{
    rig_t *rig = *state;
    static const label_t LABEL = {"parity", "odd"};
    static const tmq_status_t QUEUED = TMQ_STATUS_QUEUED;
    read_t read = {.kind = READ_COUNT,
                   .filter = {.ns = "default",
                              .labels = &LABEL,
                              .labels_count = 1,
                              .statuses = &QUEUED,
                              .statuses_count = 1}};
    work (rig, "CROSS JOIN", SQLITE_STMTSTATUS_RUN);
    run (rig, &read);
    assert_int_equal (read.count, 0);
    assert_int_equal (work (rig, "CROSS JOIN", SQLITE_STMTSTATUS_RUN), 0);
}

static void a_page_that_looks_in_vain_ends_and_goes_on (void **state)
{
    rig_t *rig = *state;
    static const label_t LABELS[] = {{"parity", "even"}, {"other", "odd"}}; /* number 2 alone */
    int64_t before = 0;
    size_t pages = 0;
    size_t found = 0;
    bool more = true;
    while (more) {
        read_t read = {.kind = READ_LIST,
                       .filter = {.ns = "default", .labels = LABELS, .labels_count = 2},
                       .limit = 10,
                       .vain_max = 500,
                       .before_number = before};
        run (rig, &read);
        for (size_t i = 0; i < read.records_count; i++)
            assert_int_equal (read.records[i]->number, 2);
        found += read.records_count;
        more = read.more;
        assert_true (!more || before == 0 || read.next_number < before);
        before = read.next_number;
        read_clear (&read);
        pages++;
    }
    assert_int_equal (found, 1);
    assert_in_range (pages, 4, 5); /* 2,000 entries of either label */
}

static void labels_go_with_their_task (void **state)
{
    rig_t *rig = *state;
    static const label_t LABEL = {"rare", "yes"};
    label_t labels[3];
    record_t record = labelled (RARE, labels);
    batch_t *batch = fixture_batch (rig->fixture);
    batch_add_removal (batch, &record, TMQ_EXPIRED, 1);
    fixture_commit (rig->fixture, batch);
    fixture_settle (rig->fixture);
    read_t read = {.kind = READ_COUNT,
                   .filter = {.ns = "default", .labels = &LABEL, .labels_count = 1}};
    run (rig, &read);
    assert_int_equal (read.count, 0);
    int64_t rows = 1;
    sqlite3_stmt *statement = NULL;
    static const char LEFT[] = "SELECT count (*) FROM label WHERE key = 'rare'";
    assert_int_equal (sqlite3_prepare_v2 (rig->readers.view.db, LEFT, -1, &statement, NULL),
                      SQLITE_OK);
    assert_int_equal (sqlite3_step (statement), SQLITE_ROW);
    rows = sqlite3_column_int64 (statement, 0);
    sqlite3_finalize (statement);
    assert_int_equal (rows, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (labels_are_walked_by_their_index_in_its_order),
        TEST (parts_are_walked_by_their_index_in_its_order),
        TEST (lasting_tasks_are_walked_by_their_index_in_its_order),
        TEST (the_rarest_condition_is_walked),
        TEST (few_tasks_of_a_status_are_walked_instead_of_a_common_label),
        TEST (a_page_that_looks_in_vain_ends_and_goes_on),
        TEST (labels_go_with_their_task),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
