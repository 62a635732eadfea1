/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* events.jsonl goes on behind whatever happened to its files or to the tables; and a database that
 * lost events is seen. */
#include "event_stage.h"

static void a_torn_line_is_cut_off (void **state)
{
    (void) state;
    rig_t rig;
    char path[128];
    rig_open (&rig, 10);
    rig_follow (&rig);
    path_of (&rig, EVENT_FILES_NAME, path);
    FILE *file = fopen (path, "a");
    fputs ("{\"n\":12,\"pos\":11,\"ki", file);
    fclose (file);
    rig_follow (&rig);
    assert_true (rig.end.torn > 0);
    check_lines (rig.directory, 0, 10);
    rig_close (&rig);
}

/* A process that ends at any operation leaves nothing that the next one cannot go on from. */
static void a_crash_at_any_operation_loses_nothing (void **state)
{
    (void) state;
    int status = 0;
    long long at = 0;
    do {
        rig_t rig;
        rig_open (&rig, EVENTS);
        rig.options.turn_bytes = 1;
        crash_at = ++at;
        fflush (NULL);
        pid_t pid = fork ();
        if (pid == 0) {
            rig_follow (&rig);
            _exit (0);
        }
        assert_int_equal (waitpid (pid, &status, 0), pid);
        assert_true (WIFEXITED (status));
        no_faults ();
        rig_follow (&rig);
        check_lines (rig.directory, 0, EVENTS);
        assert_int_equal (lines.events, EVENTS);
        rig_close (&rig);
    } while (WEXITSTATUS (status) == CRASHED);
    assert_int_equal (WEXITSTATUS (status), 0);
    assert_true (at > 5);
}

/* A disk that is full from any operation on stops the follower alone, and it catches up. */
static void a_full_disk_is_caught_up_with (void **state)
{
    (void) state;
    long long at = 0;
    long long used;
    do {
        rig_t rig;
        event_log_stats_t stats;
        rig_open (&rig, EVENTS);
        rig.options.turn_bytes = 1;
        full_from = ++at;
        full_upto = at + 2;
        event_log_t *log = rig_start (&rig);
        wait_written (log, EVENTS);
        event_log_stats (log, &stats);
        assert_false (stats.stalled);
        event_log_free (&log);
        used = atomic_load (&operations);
        no_faults ();
        check_lines (rig.directory, 0, EVENTS);
        rig_close (&rig);
    } while (at < used && at < 12);
}

static void a_file_that_was_changed_is_set_aside (void **state)
{
    (void) state;
    rig_t rig;
    char path[128];
    char aside[128];
    rig_open (&rig, 10);
    path_of (&rig, EVENT_FILES_NAME, path);
    path_of (&rig, EVENT_FILES_NAME ".foreign", aside);
    event_log_t *log = rig_start (&rig);
    wait_written (log, 10);
    assert_int_equal (__real_rename (path, aside), 0);
    fixture_submit (rig.fixture, 11, 20);
    wakeup_raise (rig.wake_fd);
    wait_written (log, 20);
    event_log_free (&log);
    check_lines (rig.directory, 10, 20); /* the chain goes on behind what was taken away */
    rig_close (&rig);
}

/* While there can be no other file, nothing moves, and nothing of it is forgotten. */
static void what_was_changed_is_told_later_too (void **state)
{
    (void) state;
    rig_t rig;
    event_log_stats_t stats;
    char path[128];
    char next[128];
    char error[LINE_FILE_ERROR_SIZE];
    rig_open (&rig, 10);
    path_of (&rig, EVENT_FILES_NAME, path);
    path_of (&rig, EVENT_FILES_NAME ".next", next);
    event_log_t *log = rig_start (&rig);
    wait_written (log, 10);
    assert_int_equal (mkdir (next, 0700), 0);
    assert_int_equal (__real_unlink (path), 0);
    fixture_submit (rig.fixture, 11, 20);
    wakeup_raise (rig.wake_fd);
    WAIT_FOR ((event_log_stats (log, &stats), stats.stalled), TIMING_PATIENCE_MS);
    assert_int_equal (rmdir (next), 0);
    wait_written (log, 20);
    event_log_free (&log);
    check_lines (rig.directory, 10, 20);
    assert_non_null (strstr (lines.list[0], "\"why\":\"changed\""));
    /* So it is at a start. */
    FILE *file = fopen (path, "a");
    assert_non_null (file);
    fputs ("what is this\n", file);
    fclose (file);
    assert_int_equal (mkdir (next, 0700), 0);
    assert_null (event_files_open (&rig.options, &rig.end, error));
    assert_int_equal (rmdir (next), 0);
    event_files_t *files = event_files_open (&rig.options, &rig.end, error);
    assert_non_null (files);
    assert_true (rig.end.damaged);
    event_files_close (&files);
    rig_close (&rig);
}

/* However long it becomes by what is replaced in it. */
static void a_redacted_line_is_no_longer_than_a_line (void **state)
{
    (void) state;
    rig_t rig;
    char error[LINE_FILE_ERROR_SIZE];
    char message[TMQ_ERROR_MESSAGE_BYTES_MAX + 1];
    char item[REDACT_NAME_MAX + sizeof ("=a")];
    memset (message, 'a', sizeof (message) - 1);
    message[sizeof (message) - 1] = '\0';
    rig_open (&rig, 1);
    memset (item, 'n', REDACT_NAME_MAX);
    memcpy (item + REDACT_NAME_MAX, "=a", sizeof ("=a"));
    rig.options.redactor = redactor_new ();
    assert_true (redactor_add (rig.options.redactor, item, error));
    event_files_t *files = event_files_open (&rig.options, &rig.end, error);
    assert_non_null (files);
    event_files_begin (files, rig.fixture->boot.generation, 0, EVENT_ANCHOR_BEGUN);
    event_view_t event = {.kind = TMQ_EVENT_SUBMITTED,
                          .ns = "q",
                          .seq = 1,
                          .at = now_ms,
                          .queue = "q",
                          .owner = "uid:7",
                          .message = message};
    event_files_event (files, &event, 1);
    assert_true (event_files_write (files, error));
    event_files_close (&files);
    rig.options.redactor = NULL;
    check_lines (rig.directory, 0, 1);
    assert_non_null (strstr (lines.list[1], "\"shortened\":true"));
    assert_true (strlen (lines.list[1]) < CHAIN_LINE_BYTES_MAX);
    rig_close (&rig);
}

/* Events that cannot be read are told as a gap, and the others follow. */
static void damage_of_the_tables_is_a_gap (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig, EVENTS);
    bad_from = 250;
    bad_upto = 620;
    rig_follow (&rig);
    bad_upto = 0;
    check_lines (rig.directory, 0, EVENTS);
    assert_int_equal (lines.gaps, 1);
    assert_in_range (lines.events, EVENTS - 500, EVENTS - 400); /* whole blocks */
    for (size_t i = 0; i < lines.count; i++)
        if (strstr (lines.list[i], "\"kind\":\"gap\"") != NULL)
            assert_non_null (strstr (lines.list[i], "\"from\":201,\"to\":700,"));
    rig_close (&rig);
}

/* Nobody knows yet what follows: nothing is told as lost before something behind it can be read. */
static void a_damaged_end_of_the_tables_waits (void **state)
{
    (void) state;
    rig_t rig;
    event_log_stats_t stats;
    rig_open (&rig, 300);
    bad_from = 201;
    bad_upto = 300;
    event_log_t *log = rig_start (&rig);
    WAIT_FOR ((event_log_stats (log, &stats), stats.stalled), TIMING_PATIENCE_MS);
    assert_int_equal (stats.pos, 200);
    fixture_submit (rig.fixture, 301, 400);
    fixture_settle (rig.fixture);
    wait_written (log, 400);
    event_log_free (&log);
    bad_upto = 0;
    check_lines (rig.directory, 0, 400);
    assert_int_equal (lines.gaps, 1);
    assert_int_equal (lines.events, 300);
    rig_close (&rig);
}

static void a_damaged_end_is_written_again (void **state)
{
    (void) state;
    rig_t rig;
    char path[128];
    rig_open (&rig, 10);
    rig.options.turn_bytes = 1;
    rig_follow (&rig);
    fixture_submit (rig.fixture, 11, 20);
    rig.fixture->boot.last_pos = rig.fixture->pos;
    rig_follow (&rig);
    path_of (&rig, EVENT_FILES_NAME, path);
    FILE *file = fopen (path, "a");
    fputs ("what is this\n", file);
    fclose (file);
    rig_follow (&rig);
    assert_true (rig.end.damaged);
    check_lines (rig.directory, 0, 20);
    path_of (&rig, EVENT_FILES_NAME ".damaged", path);
    assert_int_equal (access (path, F_OK), 0);
    rig_close (&rig);
}

/* Somebody's text without a line's end is no line of ours that a crash cut off. */
static void what_is_no_file_of_ours_is_set_aside (void **state)
{
    (void) state;
    rig_t rig;
    char path[128];
    char text[16] = "";
    rig_open (&rig, 10);
    path_of (&rig, EVENT_FILES_NAME, path);
    FILE *file = fopen (path, "w");
    fputs ("my own notes", file);
    fclose (file);
    rig_follow (&rig);
    assert_true (rig.end.damaged);
    check_lines (rig.directory, 0, 10);
    path_of (&rig, EVENT_FILES_NAME ".damaged", path);
    file = fopen (path, "r");
    assert_non_null (file);
    assert_non_null (fgets (text, sizeof (text), file));
    assert_string_equal (text, "my own notes");
    fclose (file);
    rig_close (&rig);
}

/* The witness. */

static void a_database_that_lost_events_is_seen (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig, 20);
    rig_follow (&rig);
    rig.fixture->boot.last_pos = 19;
    assert_null (rig_start (&rig));
    assert_non_null (strstr (rig.why, "ends at event 19"));
    /* Accepted: a new generation goes on where the database ends. */
    rig.fixture->boot.generation++;
    event_log_t *log = rig_start (&rig);
    assert_int_equal (rig.verdict, EVENTS_OTHER);
    wait_written (log, 20);
    event_log_free (&log);
    read_files (rig.directory);
    assert_int_equal (lines.files, 2);
    event_place_t place;
    assert_true (event_line_parse (&place, lines.list[21], strlen (lines.list[21])));
    assert_int_equal (place.generation, rig.fixture->boot.generation);
    assert_int_equal (place.pos, 19);
    /* And the history that was left is not taken any more. */
    rig.fixture->boot.last_pos = 20;
    rig.fixture->boot.generation--;
    assert_null (rig_start (&rig));
    assert_non_null (strstr (rig.why, "had left"));
    rig_close (&rig);
}

/* A database that was put back and went on has other events in their place. */
static void a_database_with_other_events_is_seen (void **state)
{
    (void) state;
    rig_t one;
    rig_t other;
    rig_open (&one, 20);
    rig_follow (&one);
    rig_open (&other, 0);
    fixture_submit (other.fixture, 101, 150);
    other.fixture->boot.last_pos = other.fixture->pos;
    other.fixture->boot.generation = one.fixture->boot.generation;
    fixture_t *fixture = one.fixture;
    one.fixture = other.fixture;
    assert_null (rig_start (&one));
    assert_non_null (strstr (one.why, "another event 20"));
    one.fixture = fixture;
    rig_close (&other);
    rig_close (&one);
}

/* In place of one that was lost the broker has made a new one. A restored one has events. */
static void a_database_that_is_gone_is_seen (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig, 20);
    rig_follow (&rig);
    rig.fixture->boot.generation++;
    rig.fixture->boot.last_pos = 0;
    assert_null (rig_start (&rig));
    assert_non_null (strstr (rig.why, "an empty one"));
    rig.fixture->boot.last_pos = 12;
    event_log_t *log = rig_start (&rig);
    assert_int_equal (rig.verdict, EVENTS_OTHER);
    event_log_free (&log);
    rig_close (&rig);
}

/* A file that ends too early proves nothing, and is written on. */
static void a_cut_file_is_written_on (void **state)
{
    (void) state;
    rig_t rig;
    char path[128];
    struct stat info;
    rig_open (&rig, 20);
    rig_follow (&rig);
    read_files (rig.directory);
    path_of (&rig, EVENT_FILES_NAME, path);
    assert_int_equal (stat (path, &info), 0);
    assert_int_equal (truncate (path, info.st_size - (off_t) strlen (lines.list[20]) - 1), 0);
    rig_follow (&rig);
    assert_int_equal (rig.verdict, EVENTS_GO_ON);
    check_lines (rig.directory, 0, 20);
    rig_close (&rig);
}

static void what_is_written_may_be_forgotten (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig, 20);
    watermark_move (&rig.watermark, WATERMARK_TASKS, 12);
    rig_follow (&rig);
    assert_int_equal (atomic_load (&rig.watermark.pos[WATERMARK_EVENTS]), 20);
    assert_int_equal (atomic_load (&rig.watermark.pos[WATERMARK_TASKS]), 12);
    rig_close (&rig);
}

int main (void)
{
    log_configure (LOG_LEVEL_ERROR, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_torn_line_is_cut_off),
        cmocka_unit_test (a_crash_at_any_operation_loses_nothing),
        cmocka_unit_test (a_full_disk_is_caught_up_with),
        cmocka_unit_test (a_file_that_was_changed_is_set_aside),
        cmocka_unit_test (what_was_changed_is_told_later_too),
        cmocka_unit_test (a_redacted_line_is_no_longer_than_a_line),
        cmocka_unit_test (damage_of_the_tables_is_a_gap),
        cmocka_unit_test (a_damaged_end_of_the_tables_waits),
        cmocka_unit_test (a_damaged_end_is_written_again),
        cmocka_unit_test (what_is_no_file_of_ours_is_set_aside),
        cmocka_unit_test (a_database_that_lost_events_is_seen),
        cmocka_unit_test (a_database_with_other_events_is_seen),
        cmocka_unit_test (a_database_that_is_gone_is_seen),
        cmocka_unit_test (a_cut_file_is_written_on),
        cmocka_unit_test (what_is_written_may_be_forgotten),
    };
    return cmocka_run_group_tests (tests, NULL, end_lines);
}
