/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files of logs when something is wrong with them: what is whole is read, what is not is a gap
 * that is told, and finding out costs no more than is said. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "logs/log_map.h"
#include "logs_stage.h"

static void a_torn_end_is_cut_off (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    char path[200];
    put_text (&key, 0, "whole");
    put_text (&key, 5, "torn");
    shelf_free (&shelf);
    path_of (path, 1, "1-1.out");
    struct stat info;
    assert_int_equal (stat (path, &info), 0);
    assert_int_equal (info.st_mode & 07777, 0600);
    for (off_t cut = 1; cut <= 4 + LOG_FRAME_HEAD_BYTES; cut++) {
        assert_int_equal (truncate (path, info.st_size - cut), 0);
        open_shelf (&LIMITS);
        expect (&key, 0, 0, "whole");
        put_text (&key, 5, "torn");
        expect (&key, 0, 0, "wholetorn");
        shelf_free (&shelf);
    }
    /* Zeros of a write that the power took. */
    assert_int_equal (truncate (path, info.st_size - 20), 0);
    assert_int_equal (truncate (path, info.st_size + 4096), 0);
    open_shelf (&LIMITS);
    expect (&key, 0, 0, "whole");
    put_text (&key, 5, " again");
    expect (&key, 0, 0, "whole again");
    assert_int_equal (shelf_stats (shelf).cut_files, 0); /* no more than was torn */
}

static void any_byte_may_be_wrong (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    char path[200];
    char bytes[64];
    put_text (&key, 0, "one");
    put_text (&key, 3, "two");
    path_of (path, 1, "1-1.out");
    struct stat info;
    assert_int_equal (stat (path, &info), 0);
    for (off_t at = 0; at < info.st_size; at++) {
        uint8_t byte;
        int fd = open (path, O_RDWR);
        assert_int_equal (pread (fd, &byte, 1, at), 1);
        byte ^= 0x5a;
        assert_int_equal (pwrite (fd, &byte, 1, at), 1);
        shelf_page_t page = page_at (&key, 0, bytes, sizeof (bytes));
        assert_true (page.offset + page.length <= 6);
        assert_true (page.length > 0 || !page.more); /* else a reader would ask for ever */
        assert_memory_equal (bytes, &"onetwo"[page.offset],
                             page.length); /* a gap, or what it was */
        byte ^= 0x5a;
        assert_int_equal (pwrite (fd, &byte, 1, at), 1);
        close (fd);
    }
    shelf_free (&shelf);
    open_shelf (&LIMITS);
    expect (&key, 0, 0, "onetwo");
}

/* The disk may give it again. */
static void what_cannot_be_read_now_stays (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    log_key_t left[SHELF_SLICE_MAX];
    size_t count;
    put_text (&key, 0, "kept");
    for (int look = 0; look < 2; look++) {
        shelf_free (&shelf);
        open_shelf (&LIMITS);
        read_error = EIO;
        for (bool more = look == 1; more;) {
            more = shelf_look (shelf, left, &count);
            assert_int_equal (count, 0);
        }
        assert_int_equal (put (&key, 4, "lost", 4), EIO);
        read_error = 0;
        assert_int_equal (shelf_stats (shelf).tasks, 1);
        assert_true (shelf_stats (shelf).bytes > 0);
        expect (&key, 0, 0, "kept");
    }
    put_text (&key, 8, " and on");
    expect (&key, 4, 8, " and on");
    expect (&key, 0, 0, "kept");
}

static void overwrite (int64_t number, uint64_t at, const void *bytes, size_t length)
{
    char path[200];
    path_of (path, number, "1-1.out");
    int fd = open (path, O_WRONLY);
    assert_int_equal (pwrite (fd, bytes, length, (off_t) at), length);
    close (fd);
}

enum { PIECE_BYTES = 1000, PIECE_IN_FILE = PIECE_BYTES + 20 };

static char letter (uint64_t offset)
{
    return (char) ('a' + offset / PIECE_BYTES % 26);
}

/* Pieces of one letter each, all of the same length. */
static void put_pieces (const log_key_t *key, uint64_t count)
{
    char bytes[PIECE_BYTES];
    for (uint64_t i = 0; i < count; i++) {
        memset (bytes, letter (i * PIECE_BYTES), sizeof (bytes));
        assert_int_equal (put (key, i * PIECE_BYTES, bytes, sizeof (bytes)), 0);
    }
}

/* Reads all of it by pages. The bytes that are missing between the first and the last one. */
static uint64_t read_pieces (const log_key_t *key, size_t limit, uint64_t *end)
{
    static char bytes[64 * KIB];
    uint64_t missing = 0;
    shelf_page_t page;
    *end = 0;
    do {
        page = page_at (key, *end, bytes, limit);
        missing += page.length > 0 ? page.offset - *end : 0;
        for (size_t i = 0; i < page.length; i++)
            assert_int_equal (bytes[i], letter (page.offset + i));
        *end = page.length > 0 ? page.offset + page.length : *end;
    } while (page.more);
    return missing;
}

/* A loss of power may leave zeros where heads of frames were. What is whole behind them stays. */
static void a_hole_loses_what_it_hit (void **state)
{
    (void) state;
    enum { PIECES = 30 };
    static const char zeros[4096];
    log_key_t key = key_of (1);
    uint64_t end;
    put_pieces (&key, PIECES);
    uint64_t bytes = shelf_stats (shelf).bytes;
    shelf_free (&shelf);
    overwrite (1, 4096, zeros, sizeof (zeros));
    overwrite (1, 20480, zeros, 2048);
    for (int again = 0; again < 2; again++) {
        open_shelf (&LIMITS);
        uint64_t missing = read_pieces (&key, 700, &end);
        assert_int_equal (end, (PIECES + (uint64_t) again) * PIECE_BYTES);
        assert_in_range (missing, 4096 + 2048 - 20 * 8, 4096 + 2048 + 4 * PIECE_BYTES);
        char more[PIECE_BYTES];
        memset (more, letter (PIECES * PIECE_BYTES), sizeof (more));
        assert_int_equal (put (&key, PIECES * PIECE_BYTES, more, sizeof (more)), 0);
        assert_int_equal (shelf_stats (shelf).bytes, bytes + PIECE_IN_FILE); /* nothing is cut */
        shelf_free (&shelf);
    }
    /* The older half goes, holes and all. */
    shelf_limits_t limits = LIMITS;
    limits.stream_bytes = 32 * KIB;
    open_shelf (&limits);
    char more[PIECE_BYTES];
    for (uint64_t i = PIECES + 1; i < PIECES + 6; i++) {
        memset (more, letter (i * PIECE_BYTES), sizeof (more));
        assert_int_equal (put (&key, i * PIECE_BYTES, more, sizeof (more)), 0);
        read_pieces (&key, 700, &end);
        assert_int_equal (end, (i + 1) * PIECE_BYTES);
    }
}

/* What a worker writes may look like frames: finding out costs a bounded number of bytes. */
static void a_hole_is_looked_through_within_a_bound (void **state)
{
    (void) state;
    enum { FILL = 60 * KIB, PIECES = 15 };
    static uint8_t forged[FILL];
    static const char zeros[64];
    log_key_t key = key_of (1);
    for (size_t at = 0; at + 20 <= FILL; at += 20) { /* the head of 40 KiB, with a wrong sum */
        const uint64_t offset = 10 * 1024 * KIB;
        const uint32_t length = 40 * KIB;
        log_frame_pack (forged + at, offset, forged, 1, true);
        for (size_t i = 0; i < 4; i++) {
            forged[at + 8 + i] = (uint8_t) (length >> (8 * i));
            forged[at + 12 + i] = (uint8_t) (((uint32_t) offset ^ length ^ 0x746d716c) >> (8 * i));
        }
    }
    for (uint64_t i = 0; i < PIECES; i++)
        assert_int_equal (put (&key, i * FILL, forged, FILL), 0);
    shelf_free (&shelf);
    overwrite (1, 112, zeros, 20);
    open_shelf (&LIMITS);
    read_bytes = 0;
    put_text (&key, PIECES * FILL, "on");
    assert_true (read_bytes < 3 * LOG_SEEK_BYTES_MAX);
    expect (&key, 0, PIECES * FILL, "on");
    /* What is behind the bound is cut off, which is told. */
    shelf_stats_t stats = shelf_stats (shelf);
    assert_int_equal (stats.cut_files, 1);
    assert_int_equal (stats.cut, PIECES * (FILL + 20));
    assert_int_equal (stats.cut_last.number, 1);
    put_text (&key, PIECES * FILL + 2, "and on");
    assert_int_equal (shelf_stats (shelf).cut_files, 1);
}

/* So many holes are passed, and no more. */
static void what_stands_behind_too_many_holes_is_told (void **state)
{
    (void) state;
    log_key_t key = key_of (1);
    for (uint64_t i = 0; i <= 2 * LOG_HOLES_MAX + 2; i++)
        put_text (&key, i, "x");
    for (uint64_t i = 0; i <= LOG_HOLES_MAX; i++)
        overwrite (1, 112 + (2 * i + 1) * 21 + 8, "?", 1);
    shelf_free (&shelf);
    open_shelf (&LIMITS);
    put_text (&key, 3 * LOG_HOLES_MAX, "on");
    assert_int_equal (shelf_stats (shelf).cut_files, 1);
    assert_int_equal (shelf_stats (shelf).cut, 2 * 21);
}

/* Whoever reads a log from its beginning to its end reads the file so many times, not pages times
 * the file. */
static void assert_read_once (uint64_t bytes, uint64_t file)
{
    if (read_bytes > bytes)
        fail_msg ("%zu bytes of a file of %zu were read", (size_t) read_bytes, (size_t) file);
}

static void pages_of_a_log_cost_what_they_have (void **state)
{
    (void) state;
    enum { MIB = 1024 * KIB, PIECES = 8 * MIB / PIECE_IN_FILE };
    shelf_limits_t limits = LIMITS;
    log_key_t key = key_of (1);
    uint64_t end;
    limits.stream_bytes = 16 * MIB;
    shelf_configure (shelf, &limits);
    put_pieces (&key, PIECES);
    uint64_t file = shelf_stats (shelf).bytes;
    for (int closed = 0; closed < 2; closed++) {
        read_bytes = 0;
        assert_int_equal (read_pieces (&key, 64 * KIB, &end), 0);
        assert_int_equal (end, PIECES * PIECE_BYTES);
        /* The bytes, and the heads in the stretch of each page, by windows of 4 KiB. */
        assert_read_once (file + file / (64 * KIB) * 2 * LOG_STRETCH_BYTES + 4 * file, file);
        shelf_free (&shelf);
        open_shelf (&limits);
    }
}

/* More files than are open at a time, in turn: what is known of each stays. */
static void a_file_that_is_opened_again_is_not_read_again (void **state)
{
    (void) state;
    enum { TASKS = 3 * SHELF_OPEN_MAX, PIECES = 100, TURNS = 20 };
    for (int64_t number = 1; number <= TASKS; number++) {
        log_key_t key = key_of (number);
        put_pieces (&key, PIECES);
    }
    read_bytes = 0;
    for (uint64_t turn = 0; turn < TURNS; turn++)
        for (int64_t number = 1; number <= TASKS; number++) {
            log_key_t key = key_of (number);
            put_text (&key, PIECES * PIECE_BYTES + turn, "x");
        }
    assert_read_once (TASKS * TURNS * 256, PIECES * PIECE_IN_FILE); /* heads */
    for (int64_t number = 1; number <= TASKS; number++) {
        log_key_t key = key_of (number);
        expect (&key, PIECES * PIECE_BYTES, PIECES * PIECE_BYTES, "xxxxxxxxxxxxxxxxxxxx");
    }
}

/* … but not if somebody else had his hands on it. */
static void damage_is_told_of_a_file_that_is_known (void **state)
{
    (void) state;
    enum { PIECES = 10 };
    char path[200];
    uint64_t end;
    log_key_t key = key_of (1);
    put_pieces (&key, PIECES);
    shelf_free (&shelf);
    open_shelf (&LIMITS);
    path_of (path, 1, "1-1.out");
    assert_int_equal (read_pieces (&key, 300, &end), 0);
    overwrite (1, 112 + 3 * PIECE_IN_FILE + 500, "?", 1); /* in bytes, … */
    assert_int_equal (read_pieces (&key, 300, &end), PIECE_BYTES);
    overwrite (1, 112 + 6 * PIECE_IN_FILE + 2, "?", 1); /* … in a head, … */
    assert_int_equal (read_pieces (&key, 300, &end), 2 * PIECE_BYTES);
    assert_int_equal (end, PIECES * PIECE_BYTES);
    assert_int_equal (truncate (path, 112 + 8 * PIECE_IN_FILE), 0); /* … and at the end */
    assert_int_equal (read_pieces (&key, 300, &end), 2 * PIECE_BYTES);
    assert_int_equal (end, 8 * PIECE_BYTES);
    assert_int_equal (unlink (path), 0);
    expect (&key, 0, 0, "");
}

/* A file that is looked through again, because a head of it was changed, may be unreadable just
 * then: what was seen of it so far is not all of it. */
static void what_could_not_be_read_is_read_later (void **state)
{
    (void) state;
    enum { PIECES = 10, DAMAGED = 6, READS = 4 /* two for the page, then up to the damage */ };
    uint8_t bytes[300];
    shelf_page_t page;
    uint64_t end;
    log_key_t key = key_of (1);
    put_pieces (&key, PIECES);
    overwrite (1, 112 + DAMAGED * PIECE_IN_FILE + 2, "?", 1);
    read_error = EIO;
    reads_before_error = READS;
    assert_int_equal (shelf_read (shelf, &key, DAMAGED * PIECE_BYTES, bytes, sizeof (bytes), &page),
                      EIO);
    read_error = 0;
    assert_int_equal (reads_before_error, 0);
    assert_int_equal (read_pieces (&key, 300, &end), PIECE_BYTES);
    assert_int_equal (end, PIECES * PIECE_BYTES);
}

/* One head that cannot be read hides what is behind it, and nothing before it. */
static void what_stands_before_an_unreadable_head_is_read (void **state)
{
    (void) state;
    enum { PIECES = 30 };
    char bytes[PIECE_BYTES];
    shelf_page_t page;
    uint64_t end;
    uint64_t at = 0;
    log_key_t key = key_of (1);
    put_pieces (&key, PIECES);
    shelf_free (&shelf);
    open_shelf (&LIMITS);
    unreadable_at = 112 + 20 * PIECE_IN_FILE;
    do {
        assert_int_equal (shelf_read (shelf, &key, at, (uint8_t *) bytes, sizeof (bytes), &page),
                          0);
        assert_int_equal (page.offset, at);
        assert_true (page.length > 0);
        for (size_t i = 0; i < page.length; i++)
            assert_int_equal (bytes[i], letter (at + i));
        assert_true (page.more); /* else a reader would take it for the end */
        at += page.length;
    } while (at < 15 * PIECE_BYTES);
    while (shelf_read (shelf, &key, at, (uint8_t *) bytes, sizeof (bytes), &page) == 0) {
        assert_true (page.length > 0 && page.more);
        at += page.length;
    }
    assert_in_range (at, 15 * PIECE_BYTES, 20 * PIECE_BYTES);
    assert_int_equal (put (&key, PIECES * PIECE_BYTES, "lost", 4), EIO); /* nothing is cut off */
    unreadable_at = 0;
    assert_int_equal (read_pieces (&key, 300, &end), 0);
    assert_int_equal (end, PIECES * PIECE_BYTES);
}

/* The older half is to go, and the head at which the newer one would begin was changed: the piece
 * that came is taken all the same. */
static void a_changed_head_loses_no_piece (void **state)
{
    (void) state;
    enum { PIECES = 30 };
    shelf_limits_t limits = LIMITS;
    char more[PIECE_BYTES];
    uint64_t end;
    log_key_t key = key_of (1);
    put_pieces (&key, PIECES);
    for (uint64_t i = 0; i < PIECES; i++)
        if (i % 2 == 1)
            overwrite (1, 112 + i * PIECE_IN_FILE + 2, "?", 1);
    limits.stream_bytes = PIECES * PIECE_IN_FILE;
    shelf_configure (shelf, &limits);
    memset (more, letter (PIECES * PIECE_BYTES), sizeof (more));
    assert_int_equal (put (&key, PIECES * PIECE_BYTES, more, sizeof (more)), 0);
    assert_true (shelf_stats (shelf).bytes < limits.stream_bytes * 2 / 3);
    assert_true (read_pieces (&key, 300, &end) > PIECES / 2 * PIECE_BYTES);
    assert_int_equal (end, (PIECES + 1) * PIECE_BYTES);
}

/* Somebody cuts a file off that is open to be written: where nothing is, nothing is looked for. */
static void what_is_cut_off_by_others_is_not_looked_through (void **state)
{
    (void) state;
    enum { PIECES = 50, KEPT = 5, READS = 20 };
    uint8_t bytes[300];
    char path[200];
    shelf_page_t page;
    uint64_t end;
    log_key_t key = key_of (1);
    put_pieces (&key, PIECES);
    path_of (path, 1, "1-1.out");
    assert_int_equal (truncate (path, 112 + KEPT * PIECE_IN_FILE), 0);
    read_error = EIO;
    reads_before_error = READS;
    assert_int_equal (
        shelf_read (shelf, &key, (PIECES - 1) * PIECE_BYTES, bytes, sizeof (bytes), &page), 0);
    assert_int_equal (page.length, 0);
    read_error = 0;
    reads_before_error = 0;
    assert_int_equal (read_pieces (&key, 300, &end), 0);
    assert_int_equal (end, KEPT * PIECE_BYTES);
    put_text (&key, PIECES * PIECE_BYTES, "on");
    expect (&key, KEPT * PIECE_BYTES, PIECES * PIECE_BYTES, "on");
}

/* A crash may leave the end of a log without bytes: as far as heads say where it was, that is told
 * before anything follows. */
static void what_is_torn_at_the_end_is_told (void **state)
{
    (void) state;
    enum { PIECES = 4 };
    static const char zeros[500];
    char path[200];
    char bytes[16];
    log_key_t key = key_of (1);
    put_pieces (&key, PIECES);
    shelf_free (&shelf);
    path_of (path, 1, "1-1.out");
    for (int torn = 0; torn < 2; torn++) {
        if (torn == 0) /* without bytes, … */
            overwrite (1, 112 + (PIECES - 1) * PIECE_IN_FILE + 520, zeros, sizeof (zeros));
        else /* … or cut off */
            assert_int_equal (truncate (path, 112 + (PIECES - 1) * PIECE_IN_FILE - 700), 0);
        uint64_t whole = (uint64_t) (PIECES - 1 - torn) * PIECE_BYTES;
        open_shelf (&LIMITS);
        assert_int_equal (page_at (&key, 0, bytes, 16).end, whole + PIECE_BYTES);
        assert_int_equal (page_at (&key, whole, bytes, 16).length, 0);
        put_text (&key, 0, "known"); /* which cuts it off: it is told all the same */
        assert_int_equal (page_at (&key, 0, bytes, 16).end, whole + PIECE_BYTES);
        shelf_free (&shelf);
    }
}

/* Also of an attempt that is the newest no more: nobody writes to it again, so nothing follows. */
static void what_is_torn_of_an_older_attempt_is_told (void **state)
{
    (void) state;
    enum { PIECES = 2 };
    char path[200];
    char bytes[16];
    log_key_t key = key_of (1);
    log_key_t newer = key;
    newer.attempt = 2;
    put_pieces (&key, PIECES);
    put_text (&newer, 0, "newer");
    shelf_free (&shelf);
    path_of (path, 1, "1-1.out");
    assert_int_equal (truncate (path, 112 + PIECES * PIECE_IN_FILE - 1), 0);
    open_shelf (&LIMITS);
    assert_int_equal (page_at (&key, 0, bytes, 16).end, PIECES * PIECE_BYTES);
    shelf_page_t last = page_at (&key, (PIECES - 1) * PIECE_BYTES, bytes, 16);
    assert_int_equal (last.length, 0);
    assert_int_equal (last.end, PIECES * PIECE_BYTES);
    assert_false (last.more);
}

/* A log that has another one's file in it is no more than one log. */
static void the_bytes_of_a_torn_frame_are_no_frames (void **state)
{
    (void) state;
    uint8_t inside[100] = {0};
    char path[200];
    struct stat info;
    log_key_t key = key_of (1);
    log_frame_pack (inside, 1000, (const uint8_t *) "another", 7, true);
    memcpy (inside + 20, "another", 7);
    put_text (&key, 0, "whole");
    assert_int_equal (put (&key, 5, inside, sizeof (inside)), 0);
    shelf_free (&shelf);
    path_of (path, 1, "1-1.out");
    assert_int_equal (stat (path, &info), 0);
    assert_int_equal (truncate (path, info.st_size - 1), 0);
    open_shelf (&LIMITS);
    expect (&key, 0, 0, "whole");
    expect (&key, 5, 5, "");
    put_text (&key, 5, " again");
    expect (&key, 0, 0, "whole again");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_torn_end_is_cut_off),
        TEST (any_byte_may_be_wrong),
        TEST (what_cannot_be_read_now_stays),
        TEST (a_hole_loses_what_it_hit),
        TEST (a_hole_is_looked_through_within_a_bound),
        TEST (what_stands_behind_too_many_holes_is_told),
        TEST (pages_of_a_log_cost_what_they_have),
        TEST (a_file_that_is_opened_again_is_not_read_again),
        TEST (damage_is_told_of_a_file_that_is_known),
        TEST (what_could_not_be_read_is_read_later),
        TEST (what_stands_before_an_unreadable_head_is_read),
        TEST (a_changed_head_loses_no_piece),
        TEST (what_is_cut_off_by_others_is_not_looked_through),
        TEST (what_is_torn_at_the_end_is_told),
        TEST (what_is_torn_of_an_older_attempt_is_told),
        TEST (the_bytes_of_a_torn_frame_are_no_frames),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
