/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files of logs: what is written is read again at its offset, or a gap is told; and nothing
 * grows beyond its limit. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "logs/logs.h"
#include "logs_stage.h"
#include "taskmq.pb-c.h"

static void repeats_change_nothing_and_gaps_are_told (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    put_text (&key, 0, "hello ");
    put_text (&key, 0, "hello ");
    put_text (&key, 3, "lo wor");
    put_text (&key, 20, "end");
    put_text (&key, 2, "late");
    expect (&key, 0, 0, "hello wor");
    expect (&key, 4, 4, "o wor");
    expect (&key, 9, 20, "end");
    expect (&key, 21, 21, "nd");
    expect (&key, 23, 0, "");
    expect (&key, UINT64_MAX / 4, 0, "");
    char bytes[4];
    assert_int_equal (page_at (&key, 0, bytes, 4).end, 23);
    assert_int_equal (page_at (&key, 0, bytes, 4).length, 4);
}

static void offsets_may_be_as_large_as_they_may (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    put_text (&key, TMQ_LOG_OFFSET_MAX - 3, "end");
    expect (&key, 0, TMQ_LOG_OFFSET_MAX - 3, "end");
    put_text (&key, 0, "all of this was before");
    expect (&key, 0, TMQ_LOG_OFFSET_MAX - 3, "end");
    shelf_free (&shelf);
    open_shelf (&LIMITS);
    expect (&key, 0, TMQ_LOG_OFFSET_MAX - 3, "end");
}

static void streams_and_attempts_are_apart (void **state)
{
    (void) state;
    log_key_t out = key_of (1);
    log_key_t err = out;
    log_key_t second = out;
    err.stream = TMQ_LOG_ERR;
    second.attempt = 2;
    put_text (&out, 0, "out");
    put_text (&err, 0, "err");
    put_text (&second, 0, "second");
    expect (&out, 0, 0, "out");
    expect (&err, 0, 0, "err");
    second.attempt = 0;
    expect (&second, 0, 0, "second");
    char bytes[8];
    assert_int_equal (page_at (&second, 0, bytes, 8).attempt, 2);
    log_key_t other = key_of (2);
    assert_int_equal (page_at (&other, 0, bytes, 8).attempt, 0);
}

/* A number alone is not enough: after a restore it may have been somebody else's. */
static void nobody_reads_the_log_of_another_task (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    log_key_t other = key;
    put_text (&key, 0, "mine");
    other.id.bytes[5] = 1;
    expect (&other, 0, 0, "");
    other = key;
    snprintf (other.ns, sizeof (other.ns), "other");
    expect (&other, 0, 0, "");
    assert_int_equal (put (&other, 0, "x", 1), EPERM);
    expect (&key, 0, 0, "mine");
}

static void the_older_half_goes (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    char *block = calloc (1, 64 * KIB);
    char bytes[KIB];
    for (uint64_t i = 0; i < 100; i++) {
        memset (block, (int) ('0' + i % 10), 64 * KIB);
        assert_int_equal (put (&key, i * 64 * KIB, block, 64 * KIB), 0);
        assert_true (shelf_stats (shelf).bytes <= LIMITS.stream_bytes);
    }
    free (block);
    shelf_page_t page = page_at (&key, 0, bytes, sizeof (bytes));
    assert_int_equal (page.end, 100 * 64 * KIB);
    assert_true (page.offset >= page.end - LIMITS.stream_bytes);
    assert_true (page.offset <= page.end - LIMITS.stream_bytes / 4);
    for (uint64_t at = page.offset; at < page.end; at += sizeof (bytes)) {
        page = page_at (&key, at, bytes, sizeof (bytes));
        assert_int_equal (page.offset, at);
        assert_int_equal (bytes[0], '0' + at / (64 * KIB) % 10);
        assert_int_equal (bytes[KIB - 1], '0' + at / (64 * KIB) % 10);
    }
}

static void many_small_pieces_stay_within_the_limit (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    for (uint64_t i = 0; i < 100000; i++)
        assert_int_equal (put (&key, i, "x", 1), 0);
    assert_true (shelf_stats (shelf).bytes <= LIMITS.stream_bytes);
    expect (&key, 99990, 99990, "xxxxxxxxxx");
}

static void put_number (uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t) (value >> (8 * i));
}

/* A log of before there were sums, with one frame. */
static void make_plain (const log_key_t *key, const char *text)
{
    enum { HEAD = 112, FRAME = 16, CHECK = 0x746d716c };
    uint8_t bytes[HEAD + FRAME + 64] = "tmqlog1\n";
    char path[200];
    size_t length = strlen (text);
    memcpy (bytes + 8, key->id.bytes, sizeof (key->id));
    put_number (bytes + 24, (uint64_t) key->number, 8);
    put_number (bytes + 32, key->attempt, 4);
    put_number (bytes + 36, key->stream, 4);
    memcpy (bytes + 40, key->ns, strlen (key->ns));
    put_number (bytes + HEAD + 8, length, 4);
    put_number (bytes + HEAD + 12, length ^ CHECK, 4);
    memcpy (bytes + HEAD + FRAME, text, length);
    path_of (path, key->number, "");
    assert_int_equal (mkdir (path, 0700), 0);
    path_of (path, key->number, "1-1.out");
    int fd = open (path, O_WRONLY | O_CREAT, 0600);
    assert_true (fd >= 0);
    assert_int_equal (write (fd, bytes, HEAD + FRAME + length), HEAD + FRAME + length);
    close (fd);
}

static void a_log_of_before_goes_on (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    char block[8 * KIB];
    make_plain (&key, "before");
    expect (&key, 0, 0, "before");
    put_text (&key, 6, " and on");
    expect (&key, 0, 0, "before and on");
    shelf_free (&shelf);
    shelf_limits_t limits = LIMITS;
    limits.stream_bytes = 64 * KIB;
    open_shelf (&limits);
    expect (&key, 0, 0, "before and on");
    memset (block, 'x', sizeof (block));
    for (uint64_t i = 0; i < 20; i++) /* the older half goes more than once */
        assert_int_equal (put (&key, 13 + i * sizeof (block), block, sizeof (block)), 0);
    put_text (&key, 13 + 20 * sizeof (block), "the end");
    for (int again = 0; again < 2; again++) {
        expect (&key, 10 + 20 * sizeof (block), 10 + 20 * sizeof (block), "xxxthe end");
        shelf_free (&shelf);
        open_shelf (&limits);
    }
}

static void links_are_not_followed (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    char path[200];
    char target[160];
    put_text (&key, 0, "mine");
    shelf_free (&shelf);
    path_of (path, 1, "1-1.out");
    snprintf (target, sizeof (target), "%s/target", place);
    assert_int_equal (rename (path, target), 0);
    assert_int_equal (symlink (target, path), 0);
    open_shelf (&LIMITS);
    expect (&key, 0, 0, "");
    assert_int_not_equal (put (&key, 4, "x", 1), 0);
    unlink (path);
    assert_int_equal (link (target, path), 0); /* nor a second name */
    expect (&key, 0, 0, "");
    assert_int_not_equal (put (&key, 4, "x", 1), 0);
    shelf_free (&shelf);
    assert_int_equal (unlink (path), 0);
    path_of (path, 1, "");
    path[strlen (path) - 1] = '\0';
    assert_int_equal (rmdir (path), 0);
    assert_int_equal (symlink (place, path), 0);
    open_shelf (&LIMITS);
    assert_int_not_equal (put (&key, 0, "x", 1), 0);
}

static void the_directory_itself_may_be_wrong (void **state)
{
    (void) state;
    int error = 0;
    char path[160];
    snprintf (path, sizeof (path), "%s/link", place);
    assert_int_equal (symlink (directory, path), 0);
    assert_null (shelf_new (path, &LIMITS, &error));
    assert_int_not_equal (error, 0);
    snprintf (path, sizeof (path), "%s/nowhere/logs", place);
    assert_null (shelf_new (path, &LIMITS, &error));
    assert_int_equal (error, ENOENT);
}

static void a_task_that_is_gone_leaves_nothing (void **state)
{
    (void) state;
    char path[200];
    for (int64_t number = 1; number <= 3; number++) {
        log_key_t key = key_of (number);
        for (uint32_t attempt = 1; attempt <= 3; attempt++) {
            key.attempt = attempt;
            put_text (&key, 0, "said");
        }
    }
    shelf_forget (shelf, 2);
    log_key_t key = key_of (2);
    expect (&key, 0, 0, "");
    assert_int_equal (shelf_stats (shelf).tasks, 2);
    shelf_forget (shelf, 2);
    shelf_forget (shelf, 99);
    shelf_forget (shelf, 1);
    shelf_forget (shelf, 3);
    assert_int_equal (shelf_stats (shelf).bytes, 0);
    path_of (path, 1, "");
    assert_int_not_equal (access (path, F_OK), 0);
}

static void old_attempts_go (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    char text[16];
    for (uint32_t attempt = 1; attempt <= 100; attempt++) {
        key.attempt = attempt;
        put_text (&key, 0, "said");
    }
    uint64_t one = shelf_stats (shelf).bytes / SHELF_ATTEMPTS_MAX;
    assert_int_equal (shelf_stats (shelf).bytes, one * SHELF_ATTEMPTS_MAX);
    key.attempt = 92;
    expect (&key, 0, 0, "");
    put_text (&key, 0, "late");
    expect (&key, 0, 0, "");
    key.attempt = 93;
    expect (&key, 0, 0, "said");
    key.attempt = 100000;
    put_text (&key, 0, "far");
    assert_int_equal (shelf_stats (shelf).bytes, one - 1);
    snprintf (text, sizeof (text), "far");
    expect (&key, 0, 0, text);
}

static void beyond_the_limits_the_oldest_go (void **state)
{
    (void) state;
    shelf_limits_t limits = LIMITS;
    char *block = calloc (1, 64 * KIB);
    limits.tasks = 10;
    shelf_configure (shelf, &limits);
    for (int64_t number = 1; number <= 1000; number++) {
        log_key_t key = key_of (number);
        put_text (&key, 0, "said");
        assert_true (shelf_stats (shelf).tasks <= 10);
    }
    log_key_t key = key_of (990);
    expect (&key, 0, 0, "");
    key = key_of (991);
    put_text (&key, 4, " more"); /* written last: it stays the longest */
    limits.disk_bytes = 256 * KIB;
    shelf_configure (shelf, &limits);
    for (int64_t number = 2001; number <= 2003; number++) {
        log_key_t large = key_of (number);
        assert_int_equal (put (&large, 0, block, 64 * KIB), 0);
    }
    expect (&key, 0, 0, "said more");
    for (int64_t number = 3001; number <= 3008; number++) {
        log_key_t large = key_of (number);
        assert_int_equal (put (&large, 0, block, 64 * KIB), 0);
        assert_true (shelf_stats (shelf).bytes <= limits.disk_bytes);
    }
    expect (&key, 0, 0, "");
    assert_true (shelf_stats (shelf).evicted >= 990);
    free (block);
}

static void a_disk_with_little_space_takes_nothing (void **state)
{
    (void) state;
    shelf_limits_t limits = LIMITS;
    log_key_t key = key_of (1);
    put_text (&key, 0, "before");
    limits.free_bytes_min = UINT64_MAX;
    shelf_configure (shelf, &limits);
    log_piece_t *piece = log_piece_new (&key, 6, "lost", 4);
    assert_int_equal (shelf_write (shelf, piece, 5000), ENOSPC);
    assert_int_equal (shelf_stats (shelf).lost, 4);
    limits.free_bytes_min = 0;
    shelf_configure (shelf, &limits);
    assert_int_equal (shelf_write (shelf, piece, 5001), ENOSPC); /* it looks once a second */
    piece->offset = 10;
    assert_int_equal (shelf_write (shelf, piece, 10000), 0);
    log_piece_free (piece);
    expect (&key, 0, 0, "before");
    expect (&key, 6, 10, "lost");
}

/* A write that finds no space leaves what was there. The limit on files is such a disk. */
static void a_write_that_fails_loses_only_itself (void **state)
{
    (void) state;
    struct rlimit before;
    log_key_t key = key_of (1);
    char *block = calloc (1, 64 * KIB);
    put_text (&key, 0, "kept");
    assert_int_equal (getrlimit (RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {8 * KIB, before.rlim_max};
    signal (SIGXFSZ, SIG_IGN);
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &small), 0);
    assert_int_equal (put (&key, 4, block, 64 * KIB), EFBIG);
    assert_int_equal (put (&key, 4, block, 64 * KIB), EFBIG);
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &before), 0);
    expect (&key, 0, 0, "kept");
    put_text (&key, 64 * KIB + 4, " and goes on");
    expect (&key, 0, 0, "kept");
    expect (&key, 4, 64 * KIB + 4, " and goes on");
    assert_int_equal (shelf_stats (shelf).errors, 2);
    free (block);
}

static void a_start_finds_what_was_left (void **state)
{
    (void) state;
    enum { TASKS = 600 };
    char path[200];
    log_key_t left[SHELF_SLICE_MAX];
    bool seen[TASKS + 1] = {false};
    size_t slices = 0;
    for (int64_t number = 1; number <= TASKS; number++) {
        log_key_t key = key_of (number);
        put_text (&key, 0, "said");
        key.stream = TMQ_LOG_ERR;
        put_text (&key, 0, "said");
    }
    uint64_t bytes = shelf_stats (shelf).bytes;
    shelf_free (&shelf);
    path_of (path, 1, "7-1.out.new");
    close (open (path, O_CREAT | O_WRONLY, 0600));
    path_of (path, 1, "what is this");
    close (open (path, O_CREAT | O_WRONLY, 0600));
    open_shelf (&LIMITS);
    log_key_t key = key_of (500); /* asked about before the look has come to it */
    expect (&key, 0, 0, "said");
    size_t count;
    bool more = true;
    while (more) {
        more = shelf_look (shelf, left, &count);
        for (size_t i = 0; i < count; i++) {
            assert_in_range (left[i].number, 1, TASKS);
            assert_false (seen[left[i].number]);
            assert_string_equal (left[i].ns, "default");
            assert_int_equal (left[i].id.bytes[0], (uint8_t) left[i].number);
            seen[left[i].number] = true;
        }
        slices++;
    }
    for (int64_t number = 1; number <= TASKS; number++)
        assert_true (seen[number] || number == 500);
    assert_true (slices >= TASKS / SHELF_SLICE_MAX);
    assert_int_equal (shelf_stats (shelf).tasks, TASKS);
    assert_int_equal (shelf_stats (shelf).bytes, bytes);
    assert_int_equal (access (path, F_OK), 0); /* nobody's: it stays */
    path_of (path, 1, "7-1.out.new");
    assert_int_not_equal (access (path, F_OK), 0);
    assert_false (shelf_look (shelf, left, &count));
    assert_int_equal (count, 0);
}

/* The thread. */

static void next_done (logs_t *logs, logs_news_t *out)
{
    while (!logs_done (logs, out)) {
        struct pollfd fd = {logs_fd (logs), POLLIN, 0};
        assert_int_equal (poll (&fd, 1, 60000), 1);
    }
}

static errand_t *read_errand (const log_key_t *key, uint64_t offset)
{
    Taskmq__ReadLog read = TASKMQ__READ_LOG__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    read.task_id = (ProtobufCBinaryData){sizeof (key->id), (uint8_t *) (uintptr_t) key->id.bytes};
    read.stream = key->stream;
    read.offset = offset;
    request.op_case = TASKMQ__REQUEST__OP_READ_LOG;
    request.read_log = &read;
    errand_t *errand = errand_new (TASKMQ__REQUEST__OP_READ_LOG);
    errand->task_number = key->number;
    snprintf (errand->ns, sizeof (errand->ns), "%s", key->ns);
    errand->request = buf_new_uninitialised (taskmq__request__get_packed_size (&request));
    taskmq__request__pack (&request, buf_mutable (errand->request));
    return errand;
}

static void a_read_finds_what_was_taken_before_it (void **state)
{
    (void) state;
    enum { PIECES = 300 };
    logs_news_t news;
    log_key_t key = key_of (1);
    logs_t *logs = logs_new (directory, &LIMITS);
    assert_non_null (logs);
    for (uint64_t i = 0; i < PIECES; i++)
        logs_write (logs, log_piece_new (&key, 4 * i, "said", 4));
    logs_read (logs, read_errand (&key, 0));
    assert_true (logs_are_kept (logs));
    size_t pieces = 0;
    do {
        next_done (logs, &news);
        if (news.piece != NULL) {
            log_piece_free (news.piece);
            pieces++;
        }
        if (news.looked)
            logs_look (logs);
    } while (news.errand == NULL);
    assert_int_equal (pieces, PIECES);
    assert_int_equal (news.errand->code, TMQ_OK);
    assert_int_equal (buf_length (news.errand->body), 4 * PIECES);
    errand_free (news.errand);
    assert_int_equal (logs_pending (logs), 0);
    assert_int_equal (logs_stats (logs).tasks, 1);

    int64_t *gone = calloc (1, sizeof (*gone));
    gone[0] = 1;
    logs_forget (logs, gone, 1);
    logs_configure (logs, &LIMITS);
    logs_read (logs, read_errand (&key, 0));
    do
        next_done (logs, &news);
    while (news.errand == NULL);
    assert_int_equal (buf_length (news.errand->body), 0);
    errand_free (news.errand);
    for (uint64_t i = 0; i < PIECES; i++) /* some of them wait when it ends */
        logs_write (logs, log_piece_new (&key, 4 * i, "said", 4));
    logs_free (&logs);
    assert_null (logs);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (repeats_change_nothing_and_gaps_are_told),
        TEST (offsets_may_be_as_large_as_they_may),
        TEST (streams_and_attempts_are_apart),
        TEST (nobody_reads_the_log_of_another_task),
        TEST (the_older_half_goes),
        TEST (many_small_pieces_stay_within_the_limit),
        TEST (a_log_of_before_goes_on),
        TEST (links_are_not_followed),
        TEST (the_directory_itself_may_be_wrong),
        TEST (a_task_that_is_gone_leaves_nothing),
        TEST (old_attempts_go),
        TEST (beyond_the_limits_the_oldest_go),
        TEST (a_disk_with_little_space_takes_nothing),
        TEST (a_write_that_fails_loses_only_itself),
        TEST (a_start_finds_what_was_left),
        TEST (a_read_finds_what_was_taken_before_it),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
