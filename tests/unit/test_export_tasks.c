/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* tasks.jsonl: whole lines only, positions that rise, the last line of a task is its state. */
#include "support/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/tasks_file.h"
#include "export_rig.h"
#include "ids.h"
#include "json.h"
#include "support/timing.h"
#include "taskmq.pb-c.h"

enum { FILE_SIZE_MAX = 4 << 20 };

static char text[FILE_SIZE_MAX];

/* Holds the exporter's writes back while a test asks for it. */
static atomic_bool writes_held;
static atomic_bool write_waits;

ssize_t __real_pwrite (int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t offset);

ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t offset)
{
    while (atomic_load (&writes_held)) {
        atomic_store (&write_waits, true);
        timing_pause (1);
    }
    return __real_pwrite (fd, bytes, length, offset);
}

/* The file as it stands now. The exporter works meanwhile: between two names of the file there is
 * none for a moment, which reads as an empty one. */
static size_t file_read (const char *path)
{
    size_t length = 0;
    int fd = open (path, O_RDONLY);
    assert_true (fd >= 0 || errno == ENOENT);
    for (ssize_t got = 1; fd >= 0 && got > 0; length += (size_t) got) {
        got = read (fd, text + length, sizeof (text) - 1 - length);
        assert_true (got >= 0);
    }
    if (fd >= 0)
        close (fd);
    text[length] = '\0';
    return length;
}

static void file_write (const char *path, const char *contents)
{
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fputs (contents, file);
    fclose (file);
}

/* Line number index of the file as JSON; to be released by the caller. */
static json_t *line_at (const char *path, size_t index)
{
    file_read (path);
    char *line = text;
    for (size_t i = 0; i < index; i++) {
        line = strchr (line, '\n');
        assert_non_null (line);
        line++;
    }
    json_t *object = json_loadb (line, strcspn (line, "\n"), 0, NULL);
    assert_non_null (object);
    return object;
}

/* The file has so many lines, all of them whole. False may only mean that it is being written. */
static bool has_lines (const char *path, size_t wanted)
{
    size_t count = 0;
    size_t length = file_read (path);
    for (size_t i = 0; i < length; i++)
        count += text[i] == '\n';
    return count == wanted && (length == 0 || text[length - 1] == '\n');
}

static json_int_t number_of (const json_t *object, const char *key)
{
    return json_integer_value (json_object_get (object, key));
}

static const char *text_of (const json_t *object, const char *key)
{
    return json_string_value (json_object_get (object, key));
}

static void commit_change (rig_t *rig, record_t *record, tmq_event_kind_t kind)
{
    batch_t *batch = fixture_batch (rig->fixture);
    fixture_change (rig->fixture, batch, record, kind);
    fixture_commit (rig->fixture, batch);
}

static void test_each_state_that_is_seen_gets_a_line (void **state)
{
    rig_t rig;
    struct stat info;
    char id[ID_TEXT_SIZE];
    rig_open (&rig, *state);
    rig_export (&rig);
    record_t record = test_record (1);
    record.payload = buf_new ("{\"a\": 1}", 8);
    record.payload_bytes = 8;
    record.content_type = "application/json";
    commit_change (&rig, &record, TMQ_EVENT_SUBMITTED);
    rig_settle (&rig);
    record.status = TMQ_STATUS_COMPLETED;
    record.outcome = TMQ_OUTCOME_RESULT;
    record.result = buf_new ("done", 4);
    record.result_bytes = 4;
    record.result_type = "text/plain";
    commit_change (&rig, &record, TMQ_EVENT_COMPLETED);
    rig_settle (&rig);

    assert_true (has_lines (rig.path, 2));
    assert_int_equal (stat (rig.path, &info), 0);
    assert_int_equal (info.st_mode & 0777, 0600);
    json_t *first = line_at (rig.path, 0);
    json_t *last = line_at (rig.path, 1);
    id_format (&record.id, id);
    assert_string_equal (text_of (first, "status"), "queued");
    assert_int_equal (number_of (first, "pos"), 1);
    assert_string_equal (text_of (last, "task_id"), id);
    assert_string_equal (text_of (last, "status"), "completed");
    assert_int_equal (number_of (last, "pos"), 2);
    assert_int_equal (number_of (last, "seq"), 2);
    assert_int_equal (number_of (last, "version"), record.version);
    assert_string_equal (text_of (last, "result"), "done");
    assert_int_equal (number_of (json_object_get (last, "payload"), "a"), 1);
    json_decref (first);
    json_decref (last);
    buf_drop (record.payload);
    buf_drop (record.result);
    rig_close (&rig);
}

static void add_question (batch_t *batch, const record_t *record, const char *key, uint64_t number,
                          bool answered)
{
    row_key_t row_key = ROW_KEY_INIT;
    Taskmq__QuestionRow row = TASKMQ__QUESTION_ROW__INIT;
    uint8_t packed[256];
    row_key_text (&row_key, record->ns);
    row_key_bytes (&row_key, record->id.bytes, sizeof (record->id.bytes));
    row_key_bytes (&row_key, key, strlen (key));
    row.number = number;
    row.request = "{\"text\":\"which?\"}";
    row.worker = "w";
    row.answer_number = answered;
    assert_in_range (taskmq__question_row__get_packed_size (&row), 1, sizeof (packed));
    size_t length = taskmq__question_row__pack (&row, packed);
    batch->rows = realloc (batch->rows, (batch->rows_count + 1) * sizeof (row_t));
    assert_non_null (batch->rows);
    batch->rows[batch->rows_count++] =
        row_make (ROW_KIND_QUESTION, row_key.bytes, row_key.length, packed, length);
}

/* In the order of asking; what has its answer is not among them, nor what another task asks. */
static void test_open_questions_stand_in_the_line (void **state)
{
    rig_t rig;
    rig_open (&rig, *state);
    rig_export (&rig);
    record_t record = test_record (1);
    record_t other = test_record (2);
    record.status = TMQ_STATUS_INPUT_REQUIRED;
    batch_t *batch = fixture_batch (rig.fixture);
    fixture_change (rig.fixture, batch, &record, TMQ_EVENT_ASKED);
    add_question (batch, &record, "z-first", 7, false);
    add_question (batch, &record, "b-answered", 8, true);
    add_question (batch, &record, "a-second", 9, false);
    add_question (batch, &other, "of another", 10, false);
    fixture_commit (rig.fixture, batch);
    rig_settle (&rig);
    json_t *line = line_at (rig.path, 0);
    const json_t *questions = json_object_get (line, "questions");
    assert_int_equal (json_array_size (questions), 2);
    assert_string_equal (text_of (json_array_get (questions, 0), "key"), "z-first");
    assert_string_equal (text_of (json_array_get (questions, 1), "key"), "a-second");
    assert_string_equal (
        text_of (json_object_get (json_array_get (questions, 0), "request"), "text"), "which?");
    json_decref (line);
    record.status = TMQ_STATUS_WORKING;
    commit_change (&rig, &record, TMQ_EVENT_ANSWERED);
    rig_settle (&rig);
    line = line_at (rig.path, 1);
    assert_null (json_object_get (line, "questions"));
    json_decref (line);
    rig_close (&rig);
}

static void test_it_goes_on_after_its_last_line (void **state)
{
    rig_t rig;
    rig_open (&rig, *state);
    rig_export (&rig);
    fixture_submit (rig.fixture, 1, 5);
    rig_settle (&rig);
    exporter_free (&rig.exporter);
    assert_true (has_lines (rig.path, 5));

    /* A crash in the middle of a line. */
    FILE *file = fopen (rig.path, "a");
    fputs ("{\"task_id\":\"torn", file);
    fclose (file);
    fixture_submit (rig.fixture, 6, 8);
    rig_export (&rig);
    rig_settle (&rig);
    assert_true (has_lines (rig.path, 8));
    for (size_t i = 0; i < 8; i++) {
        json_t *line = line_at (rig.path, i);
        assert_int_equal (number_of (line, "pos"), i + 1);
        json_decref (line);
    }
    assert_int_not_equal (access (rig.aside, F_OK), 0);
    rig_close (&rig);
}

/* JSON that is good, and that the parser of the last line would not take. */
static void test_no_json_of_a_task_makes_a_file_foreign (void **state)
{
    static const char *const bodies[] = {"[123456789012345678901234567890]", "1e999",
                                         "{\"a\\u0000b\":1}", "\"a\\u0000b\""};
    rig_t rig;
    rig_open (&rig, *state);
    for (size_t i = 0; i < sizeof (bodies) / sizeof (bodies[0]); i++) {
        record_t record = test_record ((int64_t) i + 1);
        record.content_type = "application/json";
        record.payload_bytes = (uint32_t) strlen (bodies[i]);
        record.payload = buf_new (bodies[i], record.payload_bytes);
        rig_export (&rig);
        commit_change (&rig, &record, TMQ_EVENT_SUBMITTED);
        rig_settle (&rig);
        exporter_free (&rig.exporter);
        assert_non_null ((file_read (rig.path), strstr (text, bodies[i])));
        rig_export (&rig);
        rig_settle (&rig);
        exporter_free (&rig.exporter);
        assert_int_not_equal (access (rig.aside, F_OK), 0);
        buf_drop (record.payload);
    }
    rig_close (&rig);
}

static void test_states_in_between_may_be_skipped (void **state)
{
    rig_t rig;
    rig_open (&rig, *state);
    fixture_submit (rig.fixture, 1, 3);
    record_t record = test_record (2);
    record.status = TMQ_STATUS_CANCELLED;
    record.last_seq = 2;
    commit_change (&rig, &record, TMQ_EVENT_CANCELLED);
    fixture_settle (rig.fixture);
    rig_export (&rig);
    rig_settle (&rig);
    /* One line for each task, at the position of its newest event. */
    assert_true (has_lines (rig.path, 3));
    static const json_int_t positions[] = {1, 3, 4};
    for (size_t i = 0; i < 3; i++) {
        json_t *line = line_at (rig.path, i);
        assert_int_equal (number_of (line, "pos"), positions[i]);
        json_decref (line);
    }
    rig_close (&rig);
}

static void test_a_removed_task_gets_no_line (void **state)
{
    rig_t rig;
    rig_open (&rig, *state);
    rig_export (&rig);
    fixture_submit (rig.fixture, 1, 2);
    rig_settle (&rig);
    record_t record = test_record (1);
    batch_t *batch = fixture_batch (rig.fixture);
    batch_add_removal (batch, &record, TMQ_EXPIRED, 1000);
    batch_add_event (batch, "default", ++rig.fixture->seq, ++rig.fixture->pos, 1000, &record.id,
                     TMQ_EVENT_EXPIRED, 1);
    fixture_commit (rig.fixture, batch);
    rig_settle (&rig);
    assert_true (has_lines (rig.path, 2));
    rig_close (&rig);
}

static void assert_begun_anew (rig_t *rig, const char *contents)
{
    file_write (rig->path, contents);
    rig_export (rig);
    rig_settle (rig);
    WAIT_FOR (access (rig->aside, F_OK) == 0 && has_lines (rig->path, 3), TIMING_PATIENCE_MS);
    file_read (rig->aside);
    assert_string_equal (text, contents);
    assert_int_equal (unlink (rig->aside), 0);
    exporter_free (&rig->exporter);
}

static void test_a_foreign_file_is_set_aside (void **state)
{
    rig_t rig;
    rig_open (&rig, *state);
    fixture_submit (rig.fixture, 1, 3);
    fixture_settle (rig.fixture);
    assert_begun_anew (&rig, "a shopping list\n");
    assert_begun_anew (&rig, "a shopping list without an end");
    assert_begun_anew (&rig, "{\"pos\":1}\n");
    assert_begun_anew (&rig,
                       "{\"pos\":\"1\",\"task_id\":\"00000000-0000-7000-8000-000000000001\"}\n");
    /* Beyond the newest event, and one of another task at a position of ours. */
    assert_begun_anew (&rig, "{\"pos\":4,\"task_id\":\"00000000-0000-7000-8000-000000000001\"}\n");
    assert_begun_anew (&rig, "{\"pos\":3,\"task_id\":\"00000000-0000-7000-8000-00000000ffff\"}\n");
    rig_close (&rig);
}

static void test_an_older_foreign_file_is_kept (void **state)
{
    rig_t rig;
    rig_open (&rig, *state);
    fixture_submit (rig.fixture, 1, 3);
    fixture_settle (rig.fixture);
    file_write (rig.aside, "set aside before\n");
    char first[sizeof (rig.aside)];
    snprintf (first, sizeof (first), "%s", rig.aside);
    snprintf (rig.aside + strlen (first), sizeof (rig.aside) - strlen (first), ".2");
    assert_begun_anew (&rig, "a shopping list\n");
    file_read (first);
    assert_string_equal (text, "set aside before\n");
    assert_int_equal (unlink (first), 0);
    rig_close (&rig);
}

static void test_a_file_taken_away_is_begun_anew (void **state)
{
    rig_t rig;
    rig_open (&rig, *state);
    rig_export (&rig);
    fixture_submit (rig.fixture, 1, 3);
    rig_settle (&rig);
    assert_int_equal (unlink (rig.path), 0);
    fixture_submit (rig.fixture, 4, 4);
    rig_settle (&rig);
    WAIT_FOR (has_lines (rig.path, 4), TIMING_PATIENCE_MS);
    rig_close (&rig);
}

/* Nothing new happens: the exporter looks after its file by itself. */
static void test_a_file_cut_by_hand_is_begun_anew (void **state)
{
    rig_t rig;
    rig_open (&rig, *state);
    rig_export (&rig);
    fixture_submit (rig.fixture, 1, 3);
    rig_settle (&rig);
    size_t length = file_read (rig.path);
    assert_int_equal (truncate (rig.path, (off_t) length - 20), 0);
    WAIT_FOR (access (rig.aside, F_OK) == 0 && has_lines (rig.path, 3), TIMING_PATIENCE_MS);
    assert_int_equal (file_read (rig.aside), length - 20);
    /* Whole lines that were cut off are missed as well. */
    assert_int_equal (unlink (rig.aside), 0);
    assert_int_equal (truncate (rig.path, 0), 0);
    WAIT_FOR (access (rig.aside, F_OK) == 0 && has_lines (rig.path, 3), TIMING_PATIENCE_MS);
    rig_close (&rig);
}

static void test_a_stop_leaves_a_backlog_to_the_next_start (void **state)
{
    enum { TASKS = 3000 };
    rig_t rig;
    rig_open (&rig, *state);
    fixture_submit (rig.fixture, 1, TASKS);
    fixture_settle (rig.fixture);
    rig.stop_ms = 0;
    atomic_store (&write_waits, false);
    atomic_store (&writes_held, true);
    rig_export (&rig);
    WAIT_FOR (atomic_load (&write_waits), TIMING_PATIENCE_MS);
    exporter_stop (rig.exporter);
    atomic_store (&writes_held, false);
    exporter_free (&rig.exporter);
    size_t length = file_read (rig.path);
    assert_true (length > 0 && text[length - 1] == '\n');
    assert_false (has_lines (rig.path, TASKS));
    rig_export (&rig);
    rig_settle (&rig);
    assert_true (has_lines (rig.path, TASKS));
    json_t *last = line_at (rig.path, TASKS - 1);
    assert_int_equal (number_of (last, "pos"), TASKS);
    json_decref (last);
    rig_close (&rig);
}

static void test_large_bodies_are_named_by_their_hash (void **state)
{
    rig_t rig;
    rig_open (&rig, *state);
    rig_export (&rig);
    record_t record = test_record (1);
    record.payload_bytes = JSON_EXPORT_BODY_BYTES_MAX + 1;
    record.payload = buf_new_uninitialised (record.payload_bytes);
    memset (buf_mutable (record.payload), 'x', record.payload_bytes);
    commit_change (&rig, &record, TMQ_EVENT_SUBMITTED);
    rig_settle (&rig);
    json_t *line = line_at (rig.path, 0);
    assert_true (json_is_null (json_object_get (line, "payload")));
    assert_int_equal (number_of (line, "payload_bytes"), JSON_EXPORT_BODY_BYTES_MAX + 1);
    assert_int_equal (strlen (text_of (line, "payload_hash")), 64);
    json_decref (line);
    buf_drop (record.payload);
    rig_close (&rig);
}

/* The kernel refuses to let the file grow: EFBIG instead of ENOSPC, half of a page of lines in. */
static void test_a_full_disk_tears_no_line (void **state)
{
    rig_t rig;
    struct rlimit limit;
    struct rlimit before;
    exporter_stats_t stats;
    rig_open (&rig, *state);
    fixture_submit (rig.fixture, 1, 200);
    fixture_settle (rig.fixture);
    getrlimit (RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 10000;
    setrlimit (RLIMIT_FSIZE, &limit);
    rig_export (&rig);
    WAIT_FOR ((exporter_stats (rig.exporter, &stats), stats.errors > 0), TIMING_PATIENCE_MS);
    /* Each further try leaves a part of a line behind for a moment. */
    WAIT_FOR (has_lines (rig.path, 0), TIMING_PATIENCE_MS);
    setrlimit (RLIMIT_FSIZE, &before);
    rig_settle (&rig);
    assert_true (has_lines (rig.path, 200));
    rig_close (&rig);
}

/* Making the file smaller. */

#define LINE_ID "01890000-0000-7000-8000-000000000001"
#define LINE_PLACE "\"task_id\":\"" LINE_ID "\",\"namespace\":\"work\",\"seq\":7,\"pos\":9,"

/* A compaction reads a line's beginning; what does not begin as the exporter writes it is read
 * whole. Both ways see the same place. */
static void test_places_of_lines (void **state)
{
    (void) state;
    static const struct {
        const char *line;
        bool placed, parsed;
    } cases[] = {
        {"{" LINE_PLACE "\"queue\":\"q\"}", true, true},
        {"{" LINE_PLACE "the rest is not read", true, false},
        {"{\"pos\":9,\"seq\":7,\"task_id\":\"" LINE_ID "\",\"namespace\":\"work\"}", true, true},
        {"{\"task_id\":\"" LINE_ID "\",\"namespace\":\"w\\u006frk\",\"seq\":7,\"pos\":9,\"a\":1}",
         true, true},
        {"{\"task_id\":\"" LINE_ID "\",\"namespace\":\"work\",\"seq\":7,\"pos\":0,\"a\":1}", false,
         false},
        {"{\"task_id\":\"nobody\",\"namespace\":\"work\",\"seq\":7,\"pos\":9,\"a\":1}", false,
         false},
        {"{\"task_id\":\"" LINE_ID "\",\"namespace\":\"work", false, false},
        {"{\"task_id\":\"" LINE_ID "\",\"namespace\":\"work\",\"seq\":7,\"pos\":9", false, false},
        {"{\"task_id\":\"" LINE_ID
         "\",\"namespace\":\"work\",\"seq\":7,\"pos\":9999999999999999999999,\"a\":1}",
         false, false},
        {"", false, false},
    };
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        tasks_line_t placed, parsed;
        size_t length = strlen (cases[i].line);
        assert_int_equal (tasks_line_place (cases[i].line, length, &placed), cases[i].placed);
        assert_int_equal (tasks_line_parse (cases[i].line, length, &parsed), cases[i].parsed);
        if (cases[i].placed) {
            assert_string_equal (placed.ns, "work");
            assert_int_equal (placed.seq, 7);
            assert_int_equal (placed.pos, 9);
        }
        if (cases[i].placed && cases[i].parsed) {
            assert_string_equal (parsed.ns, placed.ns);
            assert_int_equal (parsed.seq, placed.seq);
            assert_int_equal (parsed.pos, placed.pos);
            assert_memory_equal (&parsed.id, &placed.id, sizeof (tmq_id_t));
        }
    }
}

static void wait_compacted (rig_t *rig, uint64_t times)
{
    exporter_stats_t stats;
    WAIT_FOR ((exporter_stats (rig->exporter, &stats), stats.compactions >= times),
              TIMING_PATIENCE_MS);
}

/* One line for each of tasks 1..count, the first one with this seq, and rising positions. */
static void assert_a_line_each (const rig_t *rig, size_t count, json_int_t first_seq)
{
    char id[ID_TEXT_SIZE];
    char first[ID_TEXT_SIZE];
    json_int_t pos = 0;
    tmq_id_t task = test_id (1);
    id_format (&task, first);
    WAIT_FOR (has_lines (rig->path, count), TIMING_PATIENCE_MS);
    for (size_t i = 0; i < count; i++) {
        json_t *line = line_at (rig->path, i);
        snprintf (id, sizeof (id), "%s", text_of (line, "task_id"));
        assert_true (number_of (line, "pos") > pos);
        pos = number_of (line, "pos");
        if (strcmp (id, first) == 0)
            assert_int_equal (number_of (line, "seq"), first_seq);
        json_decref (line);
    }
}

/* Writes `lines` further lines of task 1; its newest sequence is returned. */
static json_int_t change_first (rig_t *rig, record_t *record, size_t lines)
{
    for (size_t i = 0; i < lines; i++) {
        commit_change (rig, record, TMQ_EVENT_CHANGED);
        rig_settle (rig);
    }
    return (json_int_t) record->last_seq;
}

static void test_a_file_that_is_mostly_over_is_made_smaller (void **state)
{
    rig_t rig;
    char new[96];
    rig_open (&rig, *state);
    snprintf (new, sizeof (new), "%s.new", rig.path);
    file_write (new, "what a crash left\n");
    rig.compact.bytes = 1000;
    rig_export (&rig);
    fixture_submit (rig.fixture, 1, 4);
    rig_settle (&rig);
    record_t record = test_record (1);
    record.last_seq = 1;
    json_int_t seq = change_first (&rig, &record, 6);
    wait_compacted (&rig, 1);
    assert_a_line_each (&rig, 4, seq);
    assert_int_not_equal (access (new, F_OK), 0);
    assert_int_not_equal (access (rig.aside, F_OK), 0);

    /* It goes on in the new file, now and after a stop, whose lines were counted again. */
    fixture_submit (rig.fixture, 5, 5);
    rig_settle (&rig);
    assert_a_line_each (&rig, 5, seq);
    exporter_free (&rig.exporter);
    rig_export (&rig);
    seq = change_first (&rig, &record, 7);
    wait_compacted (&rig, 1);
    assert_a_line_each (&rig, 5, seq);
    rig_close (&rig);
}

static void test_what_was_removed_leaves_the_file (void **state)
{
    rig_t rig;
    rig_open (&rig, *state);
    rig.compact.forget_ms = 1;
    fixture_submit (rig.fixture, 1, 2);
    rig_export (&rig);
    rig_settle (&rig);
    wait_compacted (&rig, 1);
    assert_true (has_lines (rig.path, 2)); /* both are there yet */
    record_t record = test_record (2);
    batch_t *batch = fixture_batch (rig.fixture);
    batch_add_removal (batch, &record, TMQ_EXPIRED, 1000);
    batch_add_event (batch, "default", ++rig.fixture->seq, ++rig.fixture->pos, 1000, &record.id,
                     TMQ_EVENT_EXPIRED, 2);
    fixture_commit (rig.fixture, batch);
    rig_settle (&rig);
    WAIT_FOR (has_lines (rig.path, 1), TIMING_PATIENCE_MS);
    assert_a_line_each (&rig, 1, 1);
    /* A start does not know what the file has. */
    exporter_free (&rig.exporter);
    rig_export (&rig);
    wait_compacted (&rig, 1);
    assert_a_line_each (&rig, 1, 1);
    rig_close (&rig);
}

/* What is written while the smaller file is made is not lost: several steps lie between. */
static void test_the_old_file_goes_on_meanwhile (void **state)
{
    enum { TASKS = 40, PAYLOAD = 60000, MORE = 30 };
    rig_t rig;
    rig_open (&rig, *state);
    buf_t *payload = buf_new_uninitialised (PAYLOAD);
    memset (buf_mutable (payload), 'x', PAYLOAD);
    rig.compact.forget_ms = 1;
    for (int64_t number = 1; number <= TASKS; number++) {
        record_t record = test_record (number);
        record.payload = payload;
        record.payload_bytes = PAYLOAD;
        commit_change (&rig, &record, TMQ_EVENT_SUBMITTED);
    }
    fixture_settle (rig.fixture);
    rig_export (&rig);
    record_t first = test_record (1);
    first.last_seq = 1;
    exporter_stats_t stats = {0};
    json_int_t seq = 1;
    for (int i = 0; i < MORE || stats.compactions == 0; i++) {
        commit_change (&rig, &first, TMQ_EVENT_CHANGED);
        seq = (json_int_t) first.last_seq;
        fixture_settle (rig.fixture);
        exporter_stats (rig.exporter, &stats);
    }
    rig_settle (&rig);
    /* The last line of each task is its state; what was over by the last compaction is gone. */
    size_t lines = 0;
    file_read (rig.path);
    for (const char *at = text; (at = strchr (at, '\n')) != NULL; at++)
        lines++;
    assert_true (lines >= TASKS);
    json_t *last = line_at (rig.path, lines - 1);
    assert_int_equal (number_of (last, "seq"), seq);
    json_decref (last);
    buf_drop (payload);
    rig_close (&rig);
}

static void test_a_full_disk_keeps_the_old_file (void **state)
{
    rig_t rig;
    struct rlimit before;
    char new[96];
    rig_open (&rig, *state);
    snprintf (new, sizeof (new), "%s.new", rig.path);
    rig_export (&rig);
    fixture_submit (rig.fixture, 1, 50);
    rig_settle (&rig);
    exporter_free (&rig.exporter);
    size_t length = file_read (rig.path);
    getrlimit (RLIMIT_FSIZE, &before);
    struct rlimit limit = before;
    limit.rlim_cur = 10000;
    setrlimit (RLIMIT_FSIZE, &limit);
    file_write (new, "seen when it is gone\n");
    rig.compact.forget_ms = 1;
    rig_export (&rig);
    WAIT_FOR (access (new, F_OK) != 0, TIMING_PATIENCE_MS);
    setrlimit (RLIMIT_FSIZE, &before);
    exporter_stats_t stats;
    exporter_stats (rig.exporter, &stats);
    assert_int_equal (stats.compactions, 0);
    assert_int_equal (file_read (rig.path), length);
    fixture_submit (rig.fixture, 51, 51);
    rig_settle (&rig);
    assert_true (has_lines (rig.path, 51));
    rig_close (&rig);
}

static int ignore_file_limit (void **state)
{
    (void) state;
    signal (SIGXFSZ, SIG_IGN);
    return 0;
}

#define BOTH(test)                                                                                 \
    {#test " (memory)", test, NULL, NULL, memory},                                                 \
    {                                                                                              \
#test " (sqlite)", test, NULL, NULL, sqlite                                                \
    }

int main (void)
{
    static char memory[] = "memory";
    static char sqlite[] = "sqlite";
    const struct CMUnitTest tests[] = {
        BOTH (test_each_state_that_is_seen_gets_a_line),
        BOTH (test_open_questions_stand_in_the_line),
        BOTH (test_it_goes_on_after_its_last_line),
        BOTH (test_no_json_of_a_task_makes_a_file_foreign),
        BOTH (test_states_in_between_may_be_skipped),
        BOTH (test_a_removed_task_gets_no_line),
        BOTH (test_a_foreign_file_is_set_aside),
        BOTH (test_an_older_foreign_file_is_kept),
        BOTH (test_a_file_taken_away_is_begun_anew),
        BOTH (test_a_file_cut_by_hand_is_begun_anew),
        BOTH (test_a_stop_leaves_a_backlog_to_the_next_start),
        BOTH (test_large_bodies_are_named_by_their_hash),
        cmocka_unit_test (test_places_of_lines),
        BOTH (test_a_file_that_is_mostly_over_is_made_smaller),
        BOTH (test_what_was_removed_leaves_the_file),
        BOTH (test_the_old_file_goes_on_meanwhile),
        /* The limit would stop SQLite's own files too. */
        {"test_a_full_disk_tears_no_line (memory)", test_a_full_disk_tears_no_line, NULL, NULL,
         memory},
        {"test_a_full_disk_keeps_the_old_file (memory)", test_a_full_disk_keeps_the_old_file, NULL,
         NULL, memory},
    };
    return cmocka_run_group_tests (tests, ignore_file_limit, NULL);
}
