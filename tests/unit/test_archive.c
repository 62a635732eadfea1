/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The archive's segments and the history that they make: what is cut at any byte, missing,
 * damaged, of another history or given up. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/data/blob_row.h"
#include "store/archive/archive_history.h"
#include "store/archive/archive_keep.h"
#include "store/journal/journal_codec.h"
#include "store_support.h"

enum { GENERATION = 77, WALL = 1000, BATCHES_MAX = 256 };

static char directory[64];

static int setup (void **state)
{
    (void) state;
    directory_make (directory);
    return 0;
}

static int teardown (void **state)
{
    (void) state;
    directory_remove (directory);
    return 0;
}

/* A batch with its length, as the journal has it; wall time WALL * epoch + no. */
static void frame (bytes_t *out, uint64_t epoch, uint64_t no, uint64_t previous)
{
    uint8_t length[FORM_LENGTH_BYTES] = {0};
    journal_head_t head = {GENERATION, epoch, previous};
    batch_t *batch = batch_make (no, (int64_t) (WALL * epoch + no));
    record_t record = test_record ((int64_t) no);
    batch_add_record (batch, &record);
    bytes_clear (out);
    bytes_append (out, length, sizeof (length));
    journal_encode (out, &head, batch);
    form_put_length (out->data, (uint32_t) (out->length - sizeof (length)));
    batch_free (batch);
}

typedef struct segment {
    uint64_t epoch;
    uint64_t first;
    uint64_t last;
    uint64_t base_batch; /* of the epoch before it */
    bool open;
} segment_t;

static void make (const segment_t *segment)
{
    archive_writer_t writer;
    bytes_t bytes = BYTES_INIT;
    archive_header_t header = {GENERATION,         segment->epoch,      segment->first - 1,
                               segment->epoch - 1, segment->base_batch, 1};
    assert_true (archive_writer_begin (&writer, directory, &header, 0));
    for (uint64_t no = segment->first; no <= segment->last; no++) {
        frame (&bytes, segment->epoch, no, no - 1);
        assert_true (archive_writer_add (&writer, bytes.data, bytes.length, no));
    }
    if (segment->open)
        archive_writer_leave (&writer);
    else
        assert_true (archive_writer_close (&writer));
    bytes_free (&bytes);
}

static void say_nothing (void *context, const char *text)
{
    (void) context;
    (void) text;
}

static void path_of (char out[256], uint64_t epoch, uint64_t first, bool open)
{
    char name[ARCHIVE_NAME_SIZE];
    archive_name (
        name, &(archive_header_t){.generation = GENERATION, .epoch = epoch, .previous = first - 1},
        open);
    snprintf (out, 256, "%s/%s", directory, name);
}

/* Reads all behind a batch of an epoch: how many there are; -1: an error. */
static int64_t read_all (uint64_t epoch, uint64_t batch, int64_t until_ms, archive_place_t *at,
                         store_error_t *error)
{
    archive_history_t *history;
    const archive_place_t from = {GENERATION, epoch, batch, (int64_t) (WALL * epoch + batch)};
    int64_t count = 0;
    uint64_t of = 0;
    batch_t *next;
    *at = from;
    error->code = archive_history_open (&history, directory, &from, until_ms, error);
    if (error->code != STORE_OK)
        return -1;
    uint64_t expected = batch;
    uint64_t expected_epoch = epoch;
    while ((error->code = archive_history_next (history, &next, &of, error)) == STORE_OK &&
           next != NULL) {
        expected = of == expected_epoch ? expected + 1 : 1;
        expected_epoch = of;
        assert_int_equal (next->no, expected);
        assert_int_equal (next->wall_ms, WALL * of + next->no);
        assert_int_equal (next->records[0]->number, next->no);
        batch_free (next);
        count++;
    }
    *at = *archive_history_at (history);
    archive_history_close (&history);
    return error->code == STORE_OK ? count : -1;
}

static void names_say_where_they_belong (void **state)
{
    (void) state;
    static const char *const others[] = {"journal.log",
                                         "000000000000004d-0000000002-00000000000006.tmp",
                                         "000000000000004d-0000000002-6.seg",
                                         "000000000000004d-0000000002-00000000000000.seg",
                                         "000000000000004D-0000000002-00000000000006.seg",
                                         "000000000000004d-0000000002-00000000000006.seg~",
                                         ""};
    char name[ARCHIVE_NAME_SIZE];
    archive_header_t header = {.generation = GENERATION, .epoch = 2, .previous = 5};
    archive_header_t read;
    bool open;
    archive_name (name, &header, false);
    assert_string_equal (name, "000000000000004d-0000000002-00000000000006.seg");
    assert_true (archive_name_read (name, &read, &open));
    assert_false (open);
    assert_int_equal (read.generation, GENERATION);
    assert_int_equal (read.epoch, 2);
    assert_int_equal (read.previous, 5);
    header = (archive_header_t){.generation = UINT64_MAX, .epoch = UINT32_MAX, .previous = 1e15};
    archive_name (name, &header, true);
    assert_true (archive_name_read (name, &read, &open));
    assert_true (open);
    assert_int_equal (read.previous, header.previous);
    for (size_t i = 0; i < sizeof (others) / sizeof (others[0]); i++)
        assert_false (archive_name_read (others[i], &read, &open));
}

static void segments_make_one_history_across_starts (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    make (&(segment_t){1, 1, 5, 0, false});
    make (&(segment_t){1, 6, 9, 0, false});
    make (&(segment_t){2, 1, 0, 9, false}); /* a start without work */
    make (&(segment_t){3, 1, 4, 0, true});
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 13);
    assert_int_equal (at.epoch, 3);
    assert_int_equal (at.batch, 4);
    assert_int_equal (read_all (1, 7, INT64_MAX, &at, &error), 6);
    assert_int_equal (read_all (1, 9, INT64_MAX, &at, &error), 4);
    assert_int_equal (read_all (2, 0, INT64_MAX, &at, &error), 4);
    assert_int_equal (read_all (3, 4, INT64_MAX, &at, &error), 0);
    /* Up to a moment, which is that of a batch or between two. */
    assert_int_equal (read_all (1, 0, WALL + 7, &at, &error), 7);
    assert_int_equal (at.batch, 7);
    assert_int_equal (read_all (1, 0, 2 * WALL, &at, &error), 9);
    assert_int_equal (read_all (1, 0, 3 * WALL + 1, &at, &error), 10);
    assert_int_equal (read_all (1, 7, WALL + 6, &at, &error), -1);
    assert_int_equal (error.code, STORE_ERROR_FOREIGN);
}

/* Of two with the same batches each counts once. */
static void what_is_there_twice_counts_once (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    make (&(segment_t){1, 1, 8, 0, true}); /* never closed, … */
    make (&(segment_t){1, 5, 12, 0, false});
    make (&(segment_t){1, 7, 9, 0, false});
    make (&(segment_t){1, 13, 14, 0, false});
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 14);
    assert_int_equal (read_all (1, 10, INT64_MAX, &at, &error), 4);
}

static void a_gap_says_up_to_when (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    make (&(segment_t){1, 1, 5, 0, false});
    make (&(segment_t){1, 7, 9, 0, false});
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), -1);
    assert_int_equal (error.code, STORE_ERROR_CORRUPT);
    assert_non_null (strstr (error.text, "behind 5 of epoch 1"));
    assert_non_null (strstr (error.text, "1970-01-01T00:00:01.005Z")); /* WALL + 5 */
    assert_int_equal (read_all (1, 0, WALL + 6, &at, &error), -1);
    assert_int_equal (read_all (1, 0, WALL + 5, &at, &error), 5);
    assert_int_equal (read_all (1, 6, INT64_MAX, &at, &error), 3); /* a newer backup */
}

static void a_start_that_is_missing_is_a_gap (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    make (&(segment_t){1, 1, 5, 0, false});
    make (&(segment_t){3, 1, 5, 2, false});
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), -1);
    assert_int_equal (at.batch, 5);
    assert_int_equal (read_all (1, 0, WALL + 5, &at, &error), 5);
    make (&(segment_t){2, 1, 2, 6, false}); /* it had one that is not here */
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), -1);
    assert_int_equal (read_all (2, 0, INT64_MAX, &at, &error), 7);
}

/* A loss of power took commits that were not synced; the archive has them, but what followed was
 * done without them. */
static void what_a_start_had_lost_is_left_out (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    make (&(segment_t){1, 1, 9, 0, false});
    make (&(segment_t){1, 10, 12, 0, false});
    make (&(segment_t){2, 1, 3, 6, false});
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 9);
    assert_int_equal (at.epoch, 2);
}

static void other_histories_are_passed_over (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    char from[256];
    char to[256];
    make (&(segment_t){1, 1, 5, 0, false});
    path_of (from, 1, 1, false);
    snprintf (to, sizeof (to), "%s/000000000000004e-0000000001-00000000000001.seg", directory);
    assert_int_equal (link (from, to), 0); /* not what its name says */
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 5);
    snprintf (to, sizeof (to), "%s/000000000000004d-0000000002-00000000000001.seg", directory);
    assert_int_equal (link (from, to), 0);
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), -1);
    assert_non_null (strstr (error.text, "0000000002-00000000000001.seg is damaged"));
}

/* A file cut at each byte: an open one ends there; of a closed one something is missing. */
static void a_cut_is_an_end_or_damage (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    struct stat info;
    char path[256];
    make (&(segment_t){1, 1, 3, 0, false});
    path_of (path, 1, 1, false);
    assert_int_equal (stat (path, &info), 0);
    int64_t most = 3;
    for (off_t bytes = info.st_size - 1; bytes >= 0; bytes--) {
        assert_int_equal (truncate (path, bytes), 0);
        assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), -1);
        assert_int_equal (error.code, STORE_ERROR_CORRUPT);
        assert_non_null (strstr (error.text, ".seg is damaged"));
    }
    unlink (path);
    make (&(segment_t){1, 1, 3, 0, true});
    path_of (path, 1, 1, true);
    assert_int_equal (stat (path, &info), 0);
    for (off_t bytes = info.st_size; bytes >= 0; bytes--) {
        assert_int_equal (truncate (path, bytes), 0);
        int64_t count = read_all (1, 0, INT64_MAX, &at, &error);
        assert_in_range (count, 0, most);
        assert_true (most - count <= 1);
        most = count;
    }
    assert_int_equal (most, 0);
}

static void put_zeros (const char *path, off_t from, size_t length)
{
    static const uint8_t zeros[4096];
    int fd = open (path, O_WRONLY | O_CLOEXEC);
    assert_true (fd >= 0 && length <= sizeof (zeros));
    assert_int_equal (pwrite (fd, zeros, length, from), length);
    close (fd);
}

static uint64_t findings (void)
{
    store_error_t error;
    archive_judge_t judge = {.say = say_nothing};
    assert_int_equal (archive_judge (&judge, directory, &error), STORE_OK);
    return judge.findings;
}

/* What was not synced is zero then, or missing, a page at a time and in any order. */
static void a_loss_of_power_is_no_damage (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    struct stat info;
    char path[256];
    make (&(segment_t){1, 1, 3, 0, false});
    make (&(segment_t){1, 4, 160, 0, true});
    path_of (path, 1, 4, true);
    assert_int_equal (stat (path, &info), 0);
    assert_true (info.st_size > 3 * 4096);
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 160);
    put_zeros (path, 2 * 4096, 4096); /* there are whole batches behind it */
    int64_t count = read_all (1, 0, INT64_MAX, &at, &error);
    assert_in_range (count, 40, 120);
    put_zeros (path, 4096 + 100, 4096 - 100); /* … and what was appended to a page */
    assert_true (read_all (1, 0, INT64_MAX, &at, &error) < count);
    assert_int_equal (findings (), 0);
    put_zeros (path, 0, 4096);
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 3);
    assert_int_equal (findings (), 0);
    assert_int_equal (truncate (path, 0), 0);
    assert_int_equal (truncate (path, info.st_size), 0);
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 3);
    make (&(segment_t){2, 1, 4, 3, false}); /* the next start */
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 7);
    assert_int_equal (findings (), 0);
}

/* The first file of a start may be one of those; the next one says where the start began. */
static void a_start_is_known_by_any_of_its_files (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    char path[256];
    make (&(segment_t){1, 1, 9, 0, false});
    make (&(segment_t){2, 1, 2, 6, true});
    path_of (path, 2, 1, true);
    put_zeros (path, 0, 72);
    make (&(segment_t){2, 1, 3, 6, false});
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 9); /* 6 of the first one */
    assert_int_equal (at.epoch, 2);
}

/* Each byte of an open segment, changed: behind its last batch nobody can know; in front of that it
 * is damage, and the rest is not left out without a word. */
static void damage_in_an_open_one_is_found (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    struct stat info;
    bytes_t last = BYTES_INIT;
    char path[256];
    make (&(segment_t){1, 1, 4, 0, true});
    path_of (path, 1, 1, true);
    frame (&last, 1, 4, 3);
    int fd = open (path, O_RDWR | O_CLOEXEC);
    assert_true (fd >= 0 && fstat (fd, &info) == 0);
    for (off_t i = 0; i < info.st_size; i++) {
        uint8_t byte;
        assert_int_equal (pread (fd, &byte, 1, i), 1);
        byte ^= 0x10;
        assert_int_equal (pwrite (fd, &byte, 1, i), 1);
        int64_t count = read_all (1, 0, INT64_MAX, &at, &error);
        assert_int_equal (count, i < info.st_size - (off_t) last.length ? -1 : 3);
        if (count < 0)
            assert_non_null (strstr (error.text, ".part is damaged"));
        byte ^= 0x10;
        assert_int_equal (pwrite (fd, &byte, 1, i), 1);
    }
    close (fd);
    bytes_free (&last);
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 4);
}

/* What cannot be read is neither missing nor the end. */
static void a_read_error_is_told (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    char path[256];
    make (&(segment_t){1, 1, 9, 0, false});
    path_of (path, 2, 1, false);
    make (&(segment_t){2, 1, 3, 6, false});
    assert_int_equal (truncate (path, (off_t) ARCHIVE_FILE_BYTES_MAX + 1), 0); /* EFBIG */
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), -1);
    assert_int_equal (error.code, STORE_ERROR_ACCESS);
    assert_non_null (strstr (error.text, "cannot be read"));
}

/* Each byte of a closed segment, changed: damage, and what is in front of it is there. */
static void a_changed_byte_is_found (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    struct stat info;
    char path[256];
    make (&(segment_t){1, 1, 3, 0, false});
    path_of (path, 1, 1, false);
    int fd = open (path, O_RDWR | O_CLOEXEC);
    assert_true (fd >= 0 && fstat (fd, &info) == 0);
    for (off_t i = 0; i < info.st_size; i++) {
        uint8_t byte;
        assert_int_equal (pread (fd, &byte, 1, i), 1);
        byte ^= 0x10;
        assert_int_equal (pwrite (fd, &byte, 1, i), 1);
        assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), -1);
        assert_true (error.code == STORE_ERROR_CORRUPT || error.code == STORE_ERROR_NEWER);
        byte ^= 0x10;
        assert_int_equal (pwrite (fd, &byte, 1, i), 1);
    }
    close (fd);
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 3);
}

/* An open segment goes on behind what is whole of it, and closes as one. */
static void an_open_one_is_gone_on_with (void **state)
{
    (void) state;
    archive_place_t at;
    store_error_t error;
    archive_reading_t reading;
    archive_writer_t writer;
    bytes_t bytes = BYTES_INIT;
    char path[256];
    const uint8_t *body;
    size_t length;
    make (&(segment_t){1, 1, 3, 0, true});
    path_of (path, 1, 1, true);
    struct stat info;
    assert_int_equal (stat (path, &info), 0);
    assert_int_equal (truncate (path, info.st_size - 5), 0);
    assert_true (archive_load (&bytes, directory, strrchr (path, '/') + 1));
    assert_int_equal (archive_read_begin (&reading, bytes.data, bytes.length), FORM_WHOLE);
    while (archive_read_next (&reading, &body, &length) == ARCHIVE_BATCH)
        ;
    assert_true (archive_writer_resume (&writer, directory, &reading, 0));
    assert_int_equal (writer.last, 2);
    frame (&bytes, 1, 3, 2);
    assert_true (archive_writer_add (&writer, bytes.data, bytes.length, 3));
    assert_true (archive_writer_close (&writer));
    assert_int_equal (access (path, F_OK), -1);
    assert_int_equal (read_all (1, 0, INT64_MAX, &at, &error), 3);
    bytes_free (&bytes);
}

typedef struct named {
    size_t count;
    uint8_t last;
} named_t;

static void name_blob (void *context, const uint8_t *hash)
{
    named_t *named = context;
    named->count++;
    named->last = hash[TMQ_BLOB_HASH_BYTES - 1];
}

static void blobs_of_a_batch_are_named (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    named_t named = {0, 0};
    uint8_t hash[TMQ_BLOB_HASH_BYTES] = {1, 2, 3};
    journal_head_t head = {GENERATION, 1, 0};
    batch_t *batch = batch_make (1, WALL);
    record_t record = test_record (1);
    batch_add_record (batch, &record);
    batch_add_row (batch, ROW_KIND_TEST, "key", "body");
    batch->rows = realloc (batch->rows, 8 * sizeof (row_t));
    for (uint64_t tasks = 0; tasks < 3; tasks++) { /* the first one is gone */
        hash[TMQ_BLOB_HASH_BYTES - 1] = (uint8_t) tasks;
        batch->rows[batch->rows_count++] = blob_row_make (hash, 100, tasks);
    }
    journal_encode (&bytes, &head, batch);
    assert_true (archive_blobs (bytes.data, bytes.length, name_blob, &named));
    assert_int_equal (named.count, 2);
    assert_int_equal (named.last, 2);
    for (size_t length = 0; length < bytes.length; length++)
        archive_blobs (bytes.data, length, name_blob, &named); /* reads nothing behind it */
    bytes_free (&bytes);
    batch_free (batch);
}

typedef struct said {
    char texts[16][600];
    size_t count;
} said_t;

static void say (void *context, const char *text)
{
    said_t *said = context;
    assert_true (said->count < 16);
    snprintf (said->texts[said->count++], sizeof (said->texts[0]), "%s", text);
}

static void a_judge_names_each_gap (void **state)
{
    (void) state;
    store_error_t error;
    static said_t said;
    said.count = 0;
    char path[256];
    archive_judge_t judge = {.say = say, .context = &said};
    make (&(segment_t){1, 1, 5, 0, false});
    make (&(segment_t){1, 7, 9, 0, false});
    make (&(segment_t){2, 1, 4, 9, false});
    make (&(segment_t){2, 5, 8, 9, false});
    make (&(segment_t){2, 9, 12, 9, true});
    path_of (path, 2, 5, false);
    assert_int_equal (truncate (path, 500), 0);
    assert_int_equal (archive_judge (&judge, directory, &error), STORE_OK);
    assert_int_equal (judge.segments, 5);
    assert_int_equal (judge.findings, 2);
    assert_int_equal (said.count, 5);
    assert_non_null (strstr (said.texts[0], "from batch 1 of epoch 1"));
    assert_non_null (strstr (said.texts[1], "behind 5 of epoch 1 is missing"));
    assert_non_null (strstr (said.texts[2], "from batch 7 of epoch 1"));
    assert_non_null (strstr (said.texts[3], "00000000000005.seg is damaged"));
    assert_non_null (strstr (said.texts[4], "to batch 12 of epoch 2"));
}

/* A broker that writes closes its segment between the listing and the reading. */
static void one_that_was_closed_meanwhile_is_read (void **state)
{
    (void) state;
    store_error_t error = {STORE_OK, ""};
    archive_history_t *history;
    const archive_place_t from = {GENERATION, 1, 0, WALL};
    char open[256];
    char closed[256];
    uint64_t epoch;
    batch_t *next;
    make (&(segment_t){1, 1, 3, 0, true});
    path_of (open, 1, 1, true);
    path_of (closed, 1, 1, false);
    assert_int_equal (archive_history_open (&history, directory, &from, INT64_MAX, &error),
                      STORE_OK);
    assert_int_equal (unlink (open), 0);
    make (&(segment_t){1, 1, 4, 0, false});
    assert_int_equal (access (closed, F_OK), 0);
    for (uint64_t no = 1; no <= 4; no++) {
        assert_int_equal (archive_history_next (history, &next, &epoch, &error), STORE_OK);
        assert_non_null (next);
        assert_int_equal (next->no, no);
        batch_free (next);
    }
    assert_int_equal (archive_history_next (history, &next, &epoch, &error), STORE_OK);
    assert_null (next);
    archive_history_close (&history);
}

/* How many of the segments go; each is of a generation, and was changed at a time in minutes. */
static size_t gone (size_t count, const int64_t minutes[][2], int64_t keep, int64_t now,
                    int64_t *staying)
{
    enum { MINUTE = 60 * 1000, MOST = 64 };
    archive_file_t files[MOST] = {{.open = false}};
    bool old[MOST] = {false};
    size_t sum = 0;
    assert_true (count <= MOST);
    for (size_t i = 0; i < count; i++)
        files[i] = (archive_file_t){.header = {.generation = (uint64_t) minutes[i][0]},
                                    .changed_ms = minutes[i][1] * MINUTE};
    const archive_list_t list = {files, count};
    *staying = archive_keep (&list, 5, keep * MINUTE, now * MINUTE, old);
    *staying = *staying == INT64_MAX ? -1 : *staying / MINUTE;
    for (size_t i = 0; i < count; i++)
        sum += old[i];
    assert_true (sum == 0 || old[0]); /* the oldest one */
    return sum;
}

static void only_time_that_passed_makes_old (void **state)
{
    (void) state;
    enum { DAY = 24 * 60 };
    int64_t staying;
    /* While there is work, it is the time that passed. */
    const int64_t steady[][2] = {{5, 0}, {5, 30}, {5, 60}, {5, 100}, {5, 150}};
    assert_int_equal (gone (5, steady, 90, 150, &staying), 2);
    assert_int_equal (staying, 60);
    assert_int_equal (gone (5, steady, 0, 150, &staying), 4);
    /* A clock that is a day, or a year, ahead: by now, or since one of them was written. */
    assert_int_equal (gone (5, steady, 211, 150 + 365 * DAY, &staying), 0);
    assert_int_equal (staying, 0);
    const int64_t ahead[][2] = {{5, 0}, {5, 30}, {5, 60}, {5, 60 + DAY}, {5, 65}, {5, 70}};
    assert_int_equal (gone (6, ahead, 120, 80, &staying), 1);
    assert_int_equal (staying, 30); /* a body of the last one may be that old */
    assert_int_equal (gone (6, ahead, 140, 80, &staying), 0);
    /* … or back: what is new is not old. */
    const int64_t back[][2] = {{5, 3 * DAY}, {5, 3 * DAY + 30}, {5, 10}, {5, 20}};
    assert_int_equal (gone (4, back, 60, 20, &staying), 0);
    assert_int_equal (staying, 10);
    /* Other histories are in front of the one that is written, wherever their names sort. */
    const int64_t others[][2] = {{3, 0}, {3, 50}, {5, 60}, {5, 80}, {9, 20}, {9, 55}};
    assert_int_equal (gone (6, others, 40, 90, &staying), 2);
    assert_int_equal (staying, 50);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (names_say_where_they_belong, setup, teardown),
        cmocka_unit_test_setup_teardown (segments_make_one_history_across_starts, setup, teardown),
        cmocka_unit_test_setup_teardown (what_is_there_twice_counts_once, setup, teardown),
        cmocka_unit_test_setup_teardown (a_gap_says_up_to_when, setup, teardown),
        cmocka_unit_test_setup_teardown (a_start_that_is_missing_is_a_gap, setup, teardown),
        cmocka_unit_test_setup_teardown (what_a_start_had_lost_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown (other_histories_are_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown (a_cut_is_an_end_or_damage, setup, teardown),
        cmocka_unit_test_setup_teardown (a_changed_byte_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown (a_loss_of_power_is_no_damage, setup, teardown),
        cmocka_unit_test_setup_teardown (a_start_is_known_by_any_of_its_files, setup, teardown),
        cmocka_unit_test_setup_teardown (damage_in_an_open_one_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown (a_read_error_is_told, setup, teardown),
        cmocka_unit_test (only_time_that_passed_makes_old),
        cmocka_unit_test_setup_teardown (an_open_one_is_gone_on_with, setup, teardown),
        cmocka_unit_test_setup_teardown (blobs_of_a_batch_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown (a_judge_names_each_gap, setup, teardown),
        cmocka_unit_test_setup_teardown (one_that_was_closed_meanwhile_is_read, setup, teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
