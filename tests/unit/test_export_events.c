/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* events.jsonl: each event once, in order, in a chain that goes on behind whatever happened to its
 * files; and a database that lost events is seen. */
#include "support/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "export/event_log.h"
#include "export/event_witness.h"
#include "log/log.h"
#include "store/wakeup.h"
#include "store_support.h"
#include "support/timing.h"

enum { FILES_MAX = 128, EVENTS = 1500, LINES_MAX = 20000, CRASHED = 9 };

/* Every operation that changes files counts. The one with this number ends the process, or fails
 * for lack of space, as do so many behind it. */
static atomic_llong operations;
static long long crash_at;
static long long full_from;
static long long full_upto;

typedef enum op { GO_ON, FAIL } op_t;

static op_t operation (void)
{
    long long number = atomic_fetch_add (&operations, 1) + 1;
    if (number == crash_at)
        _exit (CRASHED);
    return number >= full_from && number < full_upto ? FAIL : GO_ON;
}

ssize_t __real_pwrite (int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t offset);
int __real_rename (const char *from, const char *to);
int __wrap_rename (const char *from, const char *to);
int __real_ftruncate (int fd, off_t length);
int __wrap_ftruncate (int fd, off_t length);
int __real_fdatasync (int fd);
int __wrap_fdatasync (int fd);
int __real_unlink (const char *path);
int __wrap_unlink (const char *path);

/* A write that is cut off leaves half of what it was for. */
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t offset)
{
    if (atomic_load (&operations) + 1 == crash_at || length < 2) {
        __real_pwrite (fd, bytes, length / 2, offset);
    } else if (atomic_load (&operations) + 1 == full_from) {
        atomic_fetch_add (&operations, 1);
        return __real_pwrite (fd, bytes, length / 2, offset);
    }
    if (operation () == GO_ON)
        return __real_pwrite (fd, bytes, length, offset);
    errno = ENOSPC;
    return -1;
}

#define WRAP(call)                                                                                 \
    if (operation () == GO_ON)                                                                     \
        return __real_##call;                                                                      \
    errno = ENOSPC;                                                                                \
    return -1

int __wrap_rename (const char *from, const char *to)
{
    WRAP (rename (from, to));
}

int __wrap_ftruncate (int fd, off_t length)
{
    WRAP (ftruncate (fd, length));
}

int __wrap_fdatasync (int fd)
{
    WRAP (fdatasync (fd));
}

int __wrap_unlink (const char *path)
{
    WRAP (unlink (path));
}

static void no_faults (void)
{
    atomic_store (&operations, 0);
    crash_at = full_from = full_upto = 0;
}

/* A damaged page of the tables: none of these positions can be read. */
static uint64_t bad_from;
static uint64_t bad_upto; /* 0: there is none */

store_code_t __real_store_reader_run (store_reader_t *self, read_t *read);
store_code_t __wrap_store_reader_run (store_reader_t *self, read_t *read);

/* What the tables do: what stands before the damage is given, then nothing. */
store_code_t __wrap_store_reader_run (store_reader_t *self, read_t *read)
{
    store_code_t code = __real_store_reader_run (self, read);
    if (read->kind != READ_BLOCKS || bad_upto == 0)
        return code;
    for (size_t i = 0; i < read->blocks_count; i++) {
        const event_block_t *block = &read->blocks[i];
        if (block->first_pos > bad_upto || block->first_pos + block->count <= bad_from)
            continue;
        for (size_t k = i; k < read->blocks_count; k++) {
            free ((void *) (uintptr_t) read->blocks[k].ns);
            buf_drop (read->blocks[k].list);
        }
        read->blocks_count = i;
        read->more = true;
    }
    if (read->blocks_count > 0 || !read->more)
        return code;
    read_clear (read);
    snprintf (read->error_text, sizeof (read->error_text), "a page is damaged");
    return STORE_ERROR_DAMAGED;
}

/* A store with events, and the files of a directory. */
typedef struct rig {
    fixture_t *fixture;
    char directory[64];
    int wake_fd;
    watermark_t watermark;
    event_files_options_t options;
    event_verdict_t verdict; /* of the last start */
    event_files_end_t end;
    char why[EVENT_WITNESS_TEXT_SIZE];
} rig_t;

static int64_t now_ms;

static int64_t wall_ms (void)
{
    return now_ms;
}

static void must_not_fail (const store_error_t *error)
{
    fprintf (stderr, "%s\n", error->text);
    abort ();
}

static void rig_open (rig_t *self, int64_t events)
{
    no_faults ();
    now_ms = INT64_C (1790000000000);
    directory_make (self->directory);
    self->wake_fd = wakeup_new ();
    self->options = (event_files_options_t){.directory = self->directory,
                                            .turn_bytes = UINT64_MAX,
                                            .keep_ms = INT64_C (1) << 40,
                                            .keep_bytes = UINT64_MAX,
                                            .wall_ms = wall_ms};
    self->fixture = fixture_new ("memory");
    fixture_open (self->fixture);
    for (int64_t from = 1; from <= events; from += 100)
        fixture_submit (self->fixture, from, from + 99 < events ? from + 99 : events);
    fixture_settle (self->fixture);
    self->fixture->boot.last_pos = self->fixture->pos;
    watermark_init (&self->watermark, self->fixture->store);
    watermark_move (&self->watermark, WATERMARK_TASKS, UINT64_MAX);
}

static void rig_close (rig_t *self)
{
    void *state = self->fixture;
    no_faults ();
    fixture_teardown (&state);
    close (self->wake_fd);
    directory_remove (self->directory);
}

/* As the broker does it at its start; NULL: the database lacks events. */
static event_log_t *rig_start (rig_t *self)
{
    char error[LINE_FILE_ERROR_SIZE] = "";
    event_files_t *files = NULL;
    uint64_t pos;
    while ((files = event_files_open (&self->options, &self->end, error)) == NULL)
        ; /* no space */
    assert_int_equal (event_witness (&self->verdict, &pos, files, &self->end, self->fixture->store,
                                     &self->fixture->boot, self->why),
                      STORE_OK);
    event_log_options_t options = {.store = self->fixture->store,
                                   .watermark = &self->watermark,
                                   .generation = self->fixture->boot.generation,
                                   .pos = pos,
                                   .begin = self->verdict == EVENTS_OTHER,
                                   .why = EVENT_ANCHOR_TURNED,
                                   .wake_fd = self->wake_fd,
                                   .stop_ms = TIMING_PATIENCE_MS,
                                   .failed = must_not_fail};
    if (self->verdict == EVENTS_AHEAD) {
        event_files_close (&files);
        return NULL;
    }
    event_log_t *log = event_log_new (&options, &files, error);
    assert_non_null (log);
    return log;
}

static void wait_written (event_log_t *log, uint64_t pos)
{
    event_log_stats_t stats;
    WAIT_FOR ((event_log_stats (log, &stats), stats.pos >= pos), TIMING_PATIENCE_MS);
}

/* Writes everything that the store has. */
static void rig_follow (rig_t *self)
{
    event_log_t *log = rig_start (self);
    assert_non_null (log);
    wait_written (log, self->fixture->pos);
    event_log_free (&log);
}

/* What stands in the files. */

typedef struct lines {
    char *names[FILES_MAX]; /* in the order of their first lines */
    size_t files;
    char *list[LINES_MAX]; /* of all files, in their order */
    size_t count;
    size_t events;
    size_t gaps;
    size_t anchors;
} lines_t;

static lines_t lines;

static void lines_clear (void)
{
    for (size_t i = 0; i < lines.count; i++)
        free (lines.list[i]);
    for (size_t i = 0; i < lines.files; i++)
        free (lines.names[i]);
    lines = (lines_t){.files = 0};
}

static uint64_t first_n (const char *name)
{
    unsigned long long n = 0;
    FILE *file = fopen (name, "r");
    assert_non_null (file);
    if (fscanf (file, "{\"n\":%llu", &n) != 1)
        n = UINT64_MAX; /* empty: it goes on behind all others */
    fclose (file);
    return n;
}

static int compare_names (const void *a, const void *b)
{
    uint64_t left = first_n (*(char *const *) a);
    uint64_t right = first_n (*(char *const *) b);
    return (left > right) - (left < right);
}

static void read_file (const char *path)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    FILE *file = fopen (path, "r");
    assert_non_null (file);
    while ((length = getline (&line, &room, file)) > 0) {
        assert_int_equal (line[length - 1], '\n');
        line[length - 1] = '\0';
        assert_true (lines.count < LINES_MAX);
        lines.list[lines.count++] = strdup (line);
    }
    free (line);
    fclose (file);
}

static void read_files (const char *directory)
{
    char path[512];
    lines_clear ();
    DIR *entries = opendir (directory);
    for (const struct dirent *entry; (entry = readdir (entries)) != NULL;) {
        size_t length = strlen (entry->d_name);
        if (strncmp (entry->d_name, "events", 6) != 0 || length < 6 ||
            strcmp (entry->d_name + length - 6, ".jsonl") != 0)
            continue;
        snprintf (path, sizeof (path), "%s/%s", directory, entry->d_name);
        assert_true (lines.files < FILES_MAX);
        lines.names[lines.files++] = strdup (path);
    }
    closedir (entries);
    qsort (lines.names, lines.files, sizeof (char *), compare_names);
    for (size_t i = 0; i < lines.files; i++)
        read_file (lines.names[i]);
}

/* All lines are one chain, and tell each position once, in order, behind this one. */
static void check_lines (const char *directory, uint64_t pos, uint64_t upto)
{
    chain_check_t check = {0};
    read_files (directory);
    for (size_t i = 0; i < lines.count; i++) {
        event_place_t place;
        size_t length = strlen (lines.list[i]);
        chain_check_line (&check, lines.list[i], length);
        assert_true (event_line_parse (&place, lines.list[i], length));
        if (place.generation != 0) {
            lines.anchors++;
            assert_int_equal (place.pos, pos);
        } else if (place.seq != 0) {
            lines.events++;
            assert_int_equal (place.pos, ++pos);
        } else {
            lines.gaps++;
            pos = place.pos;
        }
    }
    chain_check_end (&check);
    assert_int_equal (check.fault, CHAIN_GOOD);
    assert_int_equal (pos, upto);
}

static void path_of (const rig_t *rig, const char *name, char out[128])
{
    snprintf (out, 128, "%s/%s", rig->directory, name);
}

/* The course of things. */

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

/* Faults. */

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

static int end_lines (void **state)
{
    (void) state;
    lines_clear ();
    return 0;
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
