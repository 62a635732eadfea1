/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What follows the commits: an archive that goes away, is full, fails at a sync or comes too late,
 * and what a crash leaves. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/data/blob_row.h"
#include "store/archive/archive.h"
#include "store/archive/archive_blobs.h"
#include "store/archive/archive_history.h"
#include "store/journal/journal_codec.h"
#include "store_support.h"
#include "support/timing.h"

enum { GENERATION = 77, WORDS = ARCHIVE_UNREAD + 1, BODY_BYTES = 600 };

static char data[64];
static char directory[64];
static atomic_uint said[WORDS];
static archive_options_t options;
static archive_t *archive;
static uint64_t epoch;
static uint64_t newest; /* batch of the epoch */

/* The disk of the archive: pwrite is used for segments alone, so is fdatasync at a time. */
static atomic_int write_error;
static atomic_int sync_error;
static atomic_int read_error; /* of bodies */

ssize_t __real_pwrite (int fd, const void *bytes, size_t length, off_t at);
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t at);
int __real_fdatasync (int fd);
int __wrap_fdatasync (int fd);

ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t at)
{
    int error = atomic_load (&write_error);
    if (error == 0)
        return __real_pwrite (fd, bytes, length, at);
    if (length > 10) /* a part of it has room */
        __real_pwrite (fd, bytes, length / 2, at);
    errno = error;
    return -1;
}

int __wrap_fdatasync (int fd)
{
    int error = atomic_load (&sync_error);
    if (error == 0)
        return __real_fdatasync (fd);
    errno = error;
    return -1;
}

ssize_t __real_read (int fd, void *to, size_t length);
ssize_t __wrap_read (int fd, void *to, size_t length);

/* Bodies are read in pieces of this length, and nothing else is. */
ssize_t __wrap_read (int fd, void *to, size_t length)
{
    int error = length == 256 * 1024 ? atomic_load (&read_error) : 0;
    if (error == 0)
        return __real_read (fd, to, length);
    errno = error;
    return -1;
}

static void say (void *context, archive_word_t word, const char *text)
{
    (void) context;
    assert_non_null (text);
    atomic_fetch_add (&said[word], 1);
}

static int setup (void **state)
{
    (void) state;
    directory_make (data);
    directory_make (directory);
    for (size_t i = 0; i < WORDS; i++)
        atomic_store (&said[i], 0);
    options = (archive_options_t){.directory = directory,
                                  .data = data,
                                  .sync_ms = 20,
                                  .unread_ms = 20,
                                  .backlog_bytes_max = ARCHIVE_BACKLOG_BYTES_MAX,
                                  .say = say};
    epoch = newest = 0;
    return 0;
}

static int teardown (void **state)
{
    (void) state;
    atomic_store (&write_error, 0);
    atomic_store (&sync_error, 0);
    atomic_store (&read_error, 0);
    archive_free (&archive);
    directory_remove (data);
    directory_remove (directory);
    return 0;
}

static void frame (bytes_t *out, uint64_t no, const row_t *row)
{
    uint8_t length[FORM_LENGTH_BYTES] = {0};
    journal_head_t head = {GENERATION, epoch, no - 1};
    batch_t *batch = batch_make (no, (int64_t) (1000000 * epoch + no));
    record_t record = test_record ((int64_t) no);
    batch_add_record (batch, &record);
    if (row != NULL) {
        batch->rows = calloc (1, sizeof (row_t));
        batch->rows[batch->rows_count++] = row_keep (row);
    }
    size_t start = out->length;
    bytes_append (out, length, sizeof (length));
    journal_encode (out, &head, batch);
    form_put_length (out->data + start, (uint32_t) (out->length - start - sizeof (length)));
    batch_free (batch);
}

/* A start of the broker; `had` is what it found of the epoch before. */
static void start (uint64_t had)
{
    store_error_t error;
    if (archive == NULL)
        assert_int_equal (archive_new (&archive, &options, &error), STORE_OK);
    const archive_header_t header = {
        .generation = GENERATION, .epoch = epoch + 1, .base_epoch = epoch, .base_batch = had};
    assert_int_equal (archive_begin (archive, &header, &error), STORE_OK);
    epoch++;
    newest = 0;
}

static void commit (size_t count)
{
    bytes_t bytes = BYTES_INIT;
    for (size_t i = 0; i < count; i++)
        frame (&bytes, ++newest, NULL);
    archive_take (archive, bytes.data, bytes.length);
    bytes_free (&bytes);
}

static bool is_carried (void)
{
    archive_stats_t stats;
    archive_stats (archive, &stats);
    return stats.lag_ms == 0 && stats.backlog_bytes == 0 && !stats.stalled;
}

static bool is_stalled (void)
{
    archive_stats_t stats;
    archive_stats (archive, &stats);
    return stats.stalled;
}

/* How many batches follow each other behind this one; -1: something is missing. */
static int64_t read_from (uint64_t of, uint64_t batch)
{
    archive_history_t *history;
    store_error_t error;
    const archive_place_t from = {GENERATION, of, batch, 0};
    int64_t count = 0;
    batch_t *next;
    assert_int_equal (archive_history_open (&history, directory, &from, INT64_MAX, &error),
                      STORE_OK);
    store_code_t code;
    while ((code = archive_history_next (history, &next, &of, &error)) == STORE_OK &&
           next != NULL) {
        batch_free (next);
        count++;
    }
    archive_history_close (&history);
    return code == STORE_OK ? count : -1;
}

static void away (bool on)
{
    char other[80];
    snprintf (other, sizeof (other), "%s.away", directory);
    assert_int_equal (on ? rename (directory, other) : rename (other, directory), 0);
}

static void commits_arrive_within_a_second_and_at_the_end (void **state)
{
    (void) state;
    start (0);
    for (size_t i = 0; i < 20; i++)
        commit (1 + i % 3);
    WAIT_FOR (is_carried (), 10000);
    assert_int_equal (read_from (1, 0), newest);
    commit (5);
    archive_free (&archive);
    assert_int_equal (read_from (1, 0), newest);
    uint64_t first = newest;
    start (newest);
    archive_free (&archive);
    start (0);
    commit (2);
    archive_free (&archive);
    assert_int_equal (read_from (1, 0), first + 2);
    assert_int_equal (said[ARCHIVE_BEGUN], 1);
    assert_int_equal (said[ARCHIVE_GAP] + said[ARCHIVE_STALLED] + said[ARCHIVE_BROKEN], 0);
}

/* One batch that is as large as many. */
static void commit_large (void)
{
    enum { LARGE = 1024 * 1024 - 1024 };
    static const uint8_t body[LARGE];
    bytes_t bytes = BYTES_INIT;
    row_t row = row_make (ROW_KIND_TEST, "key", 3, body, sizeof (body));
    frame (&bytes, ++newest, &row);
    archive_take (archive, bytes.data, bytes.length);
    bytes_free (&bytes);
    row_drop (&row);
}

/* Large amounts are cut into segments of their own. */
static void segments_end_at_their_size (void **state)
{
    (void) state;
    archive_list_t list;
    start (0);
    for (size_t i = 0; i < 40; i++)
        commit_large ();
    archive_free (&archive);
    assert_int_equal (read_from (1, 0), newest);
    assert_true (archive_list (&list, directory, GENERATION));
    assert_true (list.count > 2);
    for (size_t i = 0; i < list.count; i++) {
        assert_false (list.files[i].open);
        assert_true (list.files[i].bytes < ARCHIVE_SEGMENT_BYTES + 1024 * 1024);
    }
    archive_list_free (&list);
}

/* Each way of failing, in the middle; then it works again, and nothing is missing. */
static void what_fails_is_made_good (void **state)
{
    (void) state;
    static const int errors[] = {ENOSPC, EIO};
    start (0);
    commit (3);
    WAIT_FOR (is_carried (), 10000);
    for (size_t i = 0; i < 5; i++) {
        if (i == 4)
            away (true);
        else
            atomic_store (i < 2 ? &write_error : &sync_error, errors[i % 2]);
        commit (4);
        WAIT_FOR (is_stalled (), 10000);
        commit (4);
        if (i == 4)
            away (false);
        atomic_store (&write_error, 0);
        atomic_store (&sync_error, 0);
        WAIT_FOR (is_carried (), 10000);
        assert_int_equal (read_from (1, 0), newest);
        assert_int_equal (said[ARCHIVE_STALLED], i + 1);
        assert_int_equal (said[ARCHIVE_BACK], i + 1);
    }
    archive_free (&archive);
    assert_int_equal (read_from (1, 0), newest);
    assert_int_equal (said[ARCHIVE_GAP] + said[ARCHIVE_BROKEN], 0);
}

/* What waits stays for the next start. */
static void what_waits_survives_the_end (void **state)
{
    (void) state;
    start (0);
    commit (3);
    WAIT_FOR (is_carried (), 10000);
    atomic_store (&write_error, ENOSPC);
    commit (4);
    archive_free (&archive);
    uint64_t first = newest;
    start (newest);
    commit (2);
    archive_free (&archive);
    atomic_store (&write_error, 0);
    start (2);
    commit (1);
    archive_free (&archive);
    assert_int_equal (read_from (1, 0), first + 3);
    assert_int_equal (said[ARCHIVE_GAP], 0);
}

/* Beyond its bound what waits is given up: a gap that is told, and behind it all is whole. */
static void too_much_is_given_up_and_told (void **state)
{
    (void) state;
    options.backlog_bytes_max = 128 * 1024;
    start (0);
    commit (3);
    WAIT_FOR (is_carried (), 10000);
    away (true);
    commit (4);
    WAIT_FOR (is_stalled (), 10000);
    while (atomic_load (&said[ARCHIVE_BROKEN]) == 0)
        commit (100);
    away (false);
    commit (1);
    WAIT_FOR (is_carried (), 10000);
    commit (1);
    archive_free (&archive);
    assert_int_equal (said[ARCHIVE_GAP], 1);
    assert_int_equal (read_from (1, 0), -1);
    assert_int_equal (read_from (1, newest - 1), 1); /* a backup made behind it */
}

/* A crash: the pieces are lost, and the journal gives some of what the archive has, and more. */
static void what_the_journal_has_is_taken_once (void **state)
{
    (void) state;
    store_error_t error;
    bytes_t bytes = BYTES_INIT;
    start (0);
    commit (10);
    archive_free (&archive);
    for (uint64_t no = 7; no <= 14; no++)
        frame (&bytes, no, NULL);
    assert_int_equal (archive_new (&archive, &options, &error), STORE_OK);
    assert_int_equal (
        archive_recover (archive, GENERATION, epoch, bytes.data, bytes.length, &error), STORE_OK);
    start (14);
    archive_free (&archive);
    assert_int_equal (read_from (1, 0), 14);
    assert_int_equal (said[ARCHIVE_GAP], 0);
    /* The journal does not reach back so far. */
    bytes_clear (&bytes);
    for (uint64_t no = 5; no <= 6; no++)
        frame (&bytes, no, NULL);
    assert_int_equal (archive_new (&archive, &options, &error), STORE_OK);
    assert_int_equal (
        archive_recover (archive, GENERATION, epoch, bytes.data, bytes.length, &error), STORE_OK);
    start (6);
    commit (1);
    archive_free (&archive);
    assert_int_equal (said[ARCHIVE_GAP], 1);
    assert_int_equal (read_from (1, 0), -1);
    assert_int_equal (read_from (2, 4), 3);
    bytes_free (&bytes);
}

/* A start without the archive is not taken for one without work. */
static void a_start_without_it_is_a_gap (void **state)
{
    (void) state;
    start (0);
    commit (3);
    archive_free (&archive);
    epoch++; /* somewhere else */
    start (5);
    commit (1);
    archive_free (&archive);
    assert_int_equal (said[ARCHIVE_GAP], 1);
    assert_int_equal (read_from (1, 0), -1);
    assert_int_equal (read_from (3, 0), 1);
}

static void make_blob (uint8_t hash[TMQ_BLOB_HASH_BYTES], char path[256], uint8_t filler)
{
    uint8_t body[BODY_BYTES];
    char hex[2 * TMQ_BLOB_HASH_BYTES + 1];
    memset (body, filler, sizeof (body));
    crypto_generichash (hash, TMQ_BLOB_HASH_BYTES, body, sizeof (body), NULL, 0);
    sodium_bin2hex (hex, sizeof (hex), hash, TMQ_BLOB_HASH_BYTES);
    snprintf (path, 256, "%s/blobs", data);
    mkdir (path, 0700);
    snprintf (path, 256, "%s/blobs/%.2s", data, hex);
    mkdir (path, 0700);
    snprintf (path, 256, "%s/blobs/%.2s/%s", data, hex, hex + 2);
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    assert_int_equal (fwrite (body, 1, sizeof (body), file), sizeof (body));
    fclose (file);
}

static void name_blob (const uint8_t *hash)
{
    bytes_t bytes = BYTES_INIT;
    row_t row = blob_row_make (hash, BODY_BYTES, 1);
    frame (&bytes, ++newest, &row);
    archive_take (archive, bytes.data, bytes.length);
    bytes_free (&bytes);
    row_drop (&row);
}

/* It waits for the archive, whatever becomes of the broker's own name for it. */
static bool waits (const uint8_t *hash)
{
    char hex[2 * TMQ_BLOB_HASH_BYTES + 1];
    char path[256];
    struct stat info;
    sodium_bin2hex (hex, sizeof (hex), hash, TMQ_BLOB_HASH_BYTES);
    snprintf (path, sizeof (path), "%s/archiving/blobs/%s", data, hex);
    return stat (path, &info) == 0 && info.st_size == BODY_BYTES;
}

static void blobs_come_along_though_they_are_gone (void **state)
{
    (void) state;
    uint8_t hash[2][TMQ_BLOB_HASH_BYTES];
    char path[2][256];
    char back[256];
    make_blob (hash[0], path[0], 'a');
    make_blob (hash[1], path[1], 'b');
    start (0);
    WAIT_FOR (is_carried () && said[ARCHIVE_BEGUN] == 1, 10000);
    away (true);
    name_blob (hash[0]);
    name_blob (hash[1]);
    WAIT_FOR (is_stalled () && waits (hash[0]) && waits (hash[1]), 10000);
    assert_int_equal (unlink (path[0]), 0); /* the broker needs it no more */
    FILE *file = fopen (path[1], "r+");
    assert_non_null (file);
    fputc ('x', file); /* and this one rots */
    fclose (file);
    away (false);
    archive_free (&archive);
    assert_int_equal (read_from (1, 0), 2);
    assert_int_equal (said[ARCHIVE_BLOB], 1);
    snprintf (back, sizeof (back), "%s/back", data);
    bool read_ok;
    assert_true (archive_blob_fetch (directory, hash[0], back, &read_ok));
    assert_false (archive_blob_fetch (directory, hash[1], back, &read_ok));
    assert_int_equal (errno, ENOENT);
    assert_true (read_ok);
}

/* A body that the disk does not give just now is told as that, holds nothing up, and comes along
 * when it can be read; in a restore it is not taken for one that is missing. */
static void what_cannot_be_read_is_tried_again (void **state)
{
    (void) state;
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    char path[256];
    char back[256];
    bool read_ok;
    snprintf (back, sizeof (back), "%s/back", data);
    make_blob (hash, path, 'a');
    start (0);
    atomic_store (&read_error, EIO);
    name_blob (hash);
    WAIT_FOR (said[ARCHIVE_UNREAD] == 1, 10000);
    commit (3);
    WAIT_FOR (is_carried (), 10000); /* others go on */
    assert_int_equal (read_from (1, 0), newest);
    assert_false (archive_blob_fetch (directory, hash, back, &read_ok));
    assert_true (read_ok && errno == ENOENT);
    atomic_store (&read_error, 0);
    WAIT_FOR (archive_blob_fetch (directory, hash, back, &read_ok), 10000);
    atomic_store (&read_error, EIO);
    assert_int_equal (unlink (back), 0);
    assert_false (archive_blob_fetch (directory, hash, back, &read_ok));
    assert_false (read_ok);
    assert_int_equal (errno, EIO);
    archive_free (&archive);
    assert_int_equal (said[ARCHIVE_UNREAD], 1);
    assert_int_equal (said[ARCHIVE_BLOB] + said[ARCHIVE_STALLED], 0);
}

/* One that was not there when it was named, and is when it is named again. */
static void a_blob_that_came_again_comes_along (void **state)
{
    (void) state;
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    char path[256];
    char back[256];
    make_blob (hash, path, 'a');
    assert_int_equal (unlink (path), 0);
    start (0);
    WAIT_FOR (is_carried () && said[ARCHIVE_BEGUN] == 1, 10000);
    away (true);
    name_blob (hash);
    WAIT_FOR (is_stalled (), 10000);
    make_blob (hash, path, 'a');
    name_blob (hash);
    archive_free (&archive);
    away (false);
    start (2);
    archive_free (&archive);
    assert_int_equal (said[ARCHIVE_BLOB], 0);
    snprintf (back, sizeof (back), "%s/back", data);
    bool read_ok;
    assert_true (archive_blob_fetch (directory, hash, back, &read_ok));
}

/* A file among the archive's blobs, last named so many seconds ago. */
static void make_named (char path[256], const char *name, time_t ago)
{
    struct timespec times[2];
    snprintf (path, 256, "%s/blobs", directory);
    mkdir (path, 0700);
    snprintf (path, 256, "%s/blobs/aa", directory);
    mkdir (path, 0700);
    snprintf (path, 256, "%s/blobs/aa/%s", directory, name);
    int fd = open (path, O_WRONLY | O_CREAT, 0600);
    assert_true (fd >= 0);
    clock_gettime (CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= ago;
    times[1] = times[0];
    assert_int_equal (futimens (fd, times), 0);
    close (fd);
}

/* What is older than is kept goes, but the open segment does not, and no blob before the segment
 * that names it. */
static void what_is_old_goes (void **state)
{
    (void) state;
    enum { HOUR = 60 * 60 };
    archive_list_t list;
    const struct timespec long_ago[2] = {{1000000, 0}, {1000000, 0}};
    char path[256];
    char blobs[2][256];
    make_named (blobs[0], "older", HOUR + 60);
    make_named (blobs[1], "newer", HOUR - 60);
    start (0);
    commit (3);
    archive_free (&archive);
    assert_true (archive_list (&list, directory, GENERATION));
    snprintf (path, sizeof (path), "%s/%s", directory, list.files[0].name);
    archive_list_free (&list);
    assert_int_equal (utimensat (AT_FDCWD, path, long_ago, 0), 0);
    start (3);
    commit (1);
    archive_free (&archive);
    assert_int_equal (access (path, F_OK), 0); /* nothing goes by itself */
    assert_int_equal (access (blobs[0], F_OK), 0);
    assert_int_equal (utimensat (AT_FDCWD, path, long_ago, 0), 0);
    options.keep_ms = 2 * HOUR * 1000; /* a step is an hour at most (archive_keep.h) */
    start (1);
    commit (1);
    archive_free (&archive);
    assert_int_equal (access (path, F_OK), 0);
    options.keep_ms = HOUR * 1000 / 2;
    start (1);
    commit (1);
    archive_free (&archive);
    assert_int_equal (access (path, F_OK), -1);
    assert_int_equal (access (blobs[0], F_OK), -1);
    assert_int_equal (access (blobs[1], F_OK), 0);
    assert_int_equal (read_from (2, 0), 3);
}

int main (void)
{
    if (sodium_init () < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (commits_arrive_within_a_second_and_at_the_end, setup,
                                         teardown),
        cmocka_unit_test_setup_teardown (segments_end_at_their_size, setup, teardown),
        cmocka_unit_test_setup_teardown (what_fails_is_made_good, setup, teardown),
        cmocka_unit_test_setup_teardown (what_waits_survives_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown (too_much_is_given_up_and_told, setup, teardown),
        cmocka_unit_test_setup_teardown (what_the_journal_has_is_taken_once, setup, teardown),
        cmocka_unit_test_setup_teardown (a_start_without_it_is_a_gap, setup, teardown),
        cmocka_unit_test_setup_teardown (blobs_come_along_though_they_are_gone, setup, teardown),
        cmocka_unit_test_setup_teardown (a_blob_that_came_again_comes_along, setup, teardown),
        cmocka_unit_test_setup_teardown (what_cannot_be_read_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown (what_is_old_goes, setup, teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
