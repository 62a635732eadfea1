/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* events.jsonl: each event once, in order, in a chain that goes on from file to file. */
#include "event_stage.h"

static void each_event_stands_there_once (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig, 300);
    rig_follow (&rig);
    assert_int_equal (rig.verdict, EVENTS_BEGIN);
    check_lines (rig.directory, 0, 300);
    assert_int_equal (lines.anchors, 1);
    assert_int_equal (lines.events, 300);
    json_t *anchor = json_loads (lines.list[0], 0, NULL);
    assert_string_equal (json_string_value (json_object_get (anchor, "kind")), "anchor");
    assert_int_equal (json_integer_value (json_object_get (anchor, "first_pos")), 1);
    assert_true (json_is_null (json_object_get (anchor, "before_generation")));
    json_decref (anchor);
    json_t *event = json_loads (lines.list[7], 0, NULL);
    assert_string_equal (json_string_value (json_object_get (event, "kind")), "submitted");
    assert_int_equal (json_integer_value (json_object_get (event, "seq")), 7);
    assert_string_equal (json_string_value (json_object_get (event, "namespace")), "default");
    json_decref (event);
    rig_follow (&rig); /* nothing new */
    assert_int_equal (rig.verdict, EVENTS_GO_ON);
    fixture_submit (rig.fixture, 301, 310);
    rig.fixture->boot.last_pos = rig.fixture->pos;
    rig_follow (&rig);
    check_lines (rig.directory, 0, 310);
    assert_int_equal (lines.anchors, 1);
    rig_close (&rig);
}

static void it_follows_what_is_committed_meanwhile (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig, 0);
    event_log_t *log = rig_start (&rig);
    for (int64_t i = 1; i <= 50; i++) {
        fixture_submit (rig.fixture, i, i);
        wakeup_raise (rig.wake_fd);
    }
    wait_written (log, 50);
    event_log_free (&log);
    check_lines (rig.directory, 0, 50);
    rig_close (&rig);
}

static void a_full_file_is_turned (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig, EVENTS);
    rig.options.turn_bytes = 1;
    rig_follow (&rig);
    for (int64_t i = EVENTS + 1; i <= EVENTS + 3; i++) {
        fixture_submit (rig.fixture, i, i);
        rig.fixture->boot.last_pos = rig.fixture->pos;
        rig_follow (&rig);
    }
    check_lines (rig.directory, 0, EVENTS + 3);
    assert_true (lines.files >= 4);
    assert_int_equal (lines.anchors, lines.files);
    assert_non_null (strstr (lines.names[0], "/events-0000000000000001.jsonl"));
    assert_non_null (strstr (lines.names[lines.files - 1], "/events.jsonl"));
    rig_close (&rig);
}

static void a_new_day_turns_the_file (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig, 10);
    rig_follow (&rig);
    now_ms += 24 * 3600 * 1000;
    fixture_submit (rig.fixture, 11, 20);
    rig.fixture->boot.last_pos = rig.fixture->pos;
    rig_follow (&rig);
    check_lines (rig.directory, 0, 20);
    assert_int_equal (lines.files, 2);
    rig_close (&rig);
}

static void old_files_are_removed (void **state)
{
    (void) state;
    rig_t rig;
    size_t early;
    char error[LINE_FILE_ERROR_SIZE];
    event_files_stats_t stats;
    rig_open (&rig, 1);
    rig.options.turn_bytes = 1;
    for (int64_t i = 2; i <= 7; i++) {
        rig_follow (&rig);
        fixture_submit (rig.fixture, i, i);
        rig.fixture->boot.last_pos = rig.fixture->pos;
    }
    rig_follow (&rig);
    event_files_t *files = event_files_open (&rig.options, &rig.end, error);
    event_files_stats (files, &stats);
    assert_int_equal (stats.files, 6);
    assert_int_equal (event_files_remove (files, true, &early), 0);
    event_files_close (&files);
    /* More bytes than may be: some at a time, and it is told that it was early. */
    rig.options.keep_bytes = 1;
    files = event_files_open (&rig.options, &rig.end, error);
    assert_int_equal (event_files_remove (files, true, &early), EVENT_TURNED_AT_ONCE);
    assert_int_equal (early, EVENT_TURNED_AT_ONCE);
    event_files_close (&files);
    /* Older than they may be. */
    rig.options.keep_bytes = UINT64_MAX;
    rig.options.keep_ms = 1;
    now_ms = INT64_C (1) << 45;
    files = event_files_open (&rig.options, &rig.end, error);
    assert_int_equal (event_files_remove (files, false, &early), 0);
    read_files (rig.directory);
    assert_int_equal (unlink (lines.names[0]), 0); /* by hand: the oldest */
    assert_int_equal (event_files_remove (files, true, &early), EVENT_TURNED_AT_ONCE);
    assert_int_equal (early, 0);
    assert_int_equal (event_files_remove (files, true, &early), EVENT_TURNED_AT_ONCE);
    assert_int_equal (event_files_remove (files, true, &early), 0); /* the open one stays */
    event_files_close (&files);
    read_files (rig.directory);
    assert_int_equal (lines.files, 1);
    rig_close (&rig);
}

/* What was forgotten before it was written is told. */
static void what_is_not_there_is_a_gap (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig, 0);
    rig.fixture->pos = 40; /* the store has nothing up to here */
    fixture_submit (rig.fixture, 1, 5);
    rig.fixture->boot.last_pos = rig.fixture->pos;
    rig_follow (&rig);
    check_lines (rig.directory, 0, 45);
    assert_int_equal (lines.gaps, 1);
    assert_int_equal (lines.events, 5);
    assert_non_null (strstr (lines.list[1], "\"kind\":\"gap\",\"from\":1,\"to\":40"));
    rig_close (&rig);
}

/* Packed files are read, followed and removed as plain ones are. */
static void full_files_are_packed (void **state)
{
    (void) state;
    rig_t rig;
    char error[LINE_FILE_ERROR_SIZE];
    char path[128];
    size_t early;
    event_files_stats_t stats;
    rig_open (&rig, 1);
    rig.options.turn_bytes = 1;
    for (int64_t i = 2; i <= 4; i++) {
        rig_follow (&rig);
        fixture_submit (rig.fixture, i, i);
        rig.fixture->boot.last_pos = rig.fixture->pos;
    }
    rig_follow (&rig);
    event_files_t *files = event_files_open (&rig.options, &rig.end, error);
    while (event_files_pack (files, error))
        ;
    assert_string_equal (error, "");
    event_files_stats (files, &stats);
    assert_int_equal (stats.files, 3);
    event_files_close (&files);
    path_of (&rig, "events-0000000000000003.jsonl.zst", path);
    assert_int_equal (access (path, F_OK), 0);
    read_files (rig.directory);
    assert_int_equal (lines.files, 1); /* that are plain */
    /* The end of a packed one is found when the newest file is gone, */
    path_of (&rig, EVENT_FILES_NAME, path);
    assert_int_equal (__real_unlink (path), 0);
    rig_follow (&rig);
    assert_int_equal (rig.end.place.pos, 3);
    check_lines (rig.directory, 3, 4);
    /* and it goes as others do. */
    rig.options.keep_bytes = 1;
    files = event_files_open (&rig.options, &rig.end, error);
    assert_int_equal (event_files_remove (files, true, &early), 2);
    assert_int_equal (event_files_remove (files, true, &early), 1);
    event_files_close (&files);
    path_of (&rig, "events-0000000000000003.jsonl.zst", path);
    assert_int_not_equal (access (path, F_OK), 0);
    rig_close (&rig);
}

int main (void)
{
    log_configure (LOG_LEVEL_ERROR, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (each_event_stands_there_once),
        cmocka_unit_test (it_follows_what_is_committed_meanwhile),
        cmocka_unit_test (a_full_file_is_turned),
        cmocka_unit_test (a_new_day_turns_the_file),
        cmocka_unit_test (old_files_are_removed),
        cmocka_unit_test (what_is_not_there_is_a_gap),
        cmocka_unit_test (full_files_are_packed),
    };
    return cmocka_run_group_tests (tests, NULL, end_lines);
}
