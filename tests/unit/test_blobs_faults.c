/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files of blobs, through a crash at each operation and with each of them failing, while they
 * come and while they are collected. */
#include "blobs_stage.h"

/* In a child, which may end before its time. */
static int put_in_child (unsigned long at, int error)
{
    *faults = (faults_t){.at = at, .error = error};
    pid_t child = fork ();
    assert_true (child >= 0);
    if (child == 0) {
        int unused;
        faults->done = 0;
        depot_free (&depot);
        depot = depot_new (directory, &LIMITS, &unused);
        if (depot == NULL)
            _exit (2);
        _exit (put_rest (&upload).whole ? 0 : 1);
    }
    int status;
    assert_int_equal (waitpid (child, &status, 0), child);
    faults->at = 0;
    assert_true (WIFEXITED (status));
    return WEXITSTATUS (status);
}

/* What was not synced when the power went: it is gone, or something else. */
static void lose_unsynced (unsigned mode)
{
    char path[500];
    struct stat status;
    if (faults->dirty == 0 || mode == 0 || !upload_path (path) || stat (path, &status) != 0)
        return;
    if (mode == 1) {
        assert_int_equal (truncate (path, status.st_size / 2), 0);
        return;
    }
    static const uint8_t zeros[4096];
    int fd = open (path, O_WRONLY | O_CLOEXEC);
    assert_true (fd >= 0);
    off_t from = status.st_size > 4096 ? status.st_size - 4096 : 0;
    assert_true (__real_pwrite (fd, zeros, (size_t) (status.st_size - from), from) >= 0);
    close (fd);
}

/* Whatever has a blob's name has its bytes. */
static void check_names (void)
{
    static uint8_t bytes[BYTES + 1];
    char path[300];
    blob_path (path);
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    assert_int_equal (read (fd, bytes, sizeof (bytes)), BYTES);
    assert_memory_equal (bytes, contents, BYTES);
    close (fd);
}

static void start_anew (void)
{
    teardown (NULL);
    setup (NULL);
}

static void a_crash_at_each_operation_harms_nothing (void **state)
{
    (void) state;
    for (unsigned mode = 0; mode < 3; mode++) {
        unsigned long at = 1;
        while (put_in_child (at, 0) == CRASHED) {
            lose_unsynced (mode);
            check_names ();
            reopen ();
            depot_word_t word = put_rest (&upload);
            if (word.code == TMQ_CONFLICT) /* what was left of it was torn */
                word = put_rest (&upload);
            assert_true (word.whole);
            expect_contents ();
            start_anew ();
            at++;
        }
        assert_true (at > 10);
        start_anew ();
    }
}

static void each_operation_may_fail (void **state)
{
    (void) state;
    static const int errors[] = {EIO, ENOSPC};
    for (size_t i = 0; i < 2; i++) {
        unsigned long at = 1;
        int ended;
        do {
            ended = put_in_child (at, errors[i]);
            bool over = faults->done < at;
            check_names ();
            reopen ();
            assert_true (put_rest (&upload).whole);
            expect_contents ();
            start_anew ();
            if (over)
                break;
            at++;
        } while (ended <= 2);
        assert_int_equal (ended, 0);
        assert_true (at > 10);
    }
}

/* Linux tells a failed sync once: what it was for is not taken for whole by the next one. And
 * whatever failed, the numbers are right afterwards. */
static void what_was_not_synced_begins_again (void **state)
{
    (void) state;
    unsigned long lost = 0;
    bool over = false;
    for (unsigned long at = 1; !over; at++) {
        *faults = (faults_t){.at = at, .error = EIO};
        put_rest (&upload);
        over = faults->done < at;
        faults->at = 0;
        if (faults->lost)
            assert_int_equal (begin (&upload).offset, 0);
        lost += faults->lost;
        assert_true (put_rest (&upload).whole);
        expect_contents ();
        assert_int_equal (depot_stats (depot).blobs, 1);
        assert_int_equal (depot_stats (depot).bytes, BYTES);
        start_anew ();
    }
    assert_true (lost > 0);
}

/* The collection. Of the files of a directory every second one is needed. */

enum { COLLECTED = 400, KILLS = 4 };

static uint8_t seed_of (const uint8_t *name)
{
    return name[TMQ_BLOB_HASH_BYTES - 1];
}

static void make_collected (size_t i, char path[300])
{
    uint8_t name[TMQ_BLOB_HASH_BYTES] = {0};
    char hex[65];
    name[0] = (uint8_t) (i % 3);
    name[1] = (uint8_t) (i / 256);
    name[2] = (uint8_t) i;
    name[TMQ_BLOB_HASH_BYTES - 1] = (uint8_t) (i % 2);
    sodium_bin2hex (hex, sizeof (hex), name, sizeof (name));
    snprintf (path, 300, "%s/%.2s", directory, hex);
    if (mkdir (path, 0700) != 0)
        assert_int_equal (errno, EEXIST);
    snprintf (path, 300, "%s/%.2s/%s", directory, hex, hex + 2);
}

static void fill_directory (void)
{
    for (size_t i = 0; i < COLLECTED; i++) {
        char path[300];
        make_collected (i, path);
        int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true (fd >= 0);
        assert_int_equal (write (fd, contents, 10), 10);
        close (fd);
        age (path);
    }
    reopen ();
}

/* As the broker does it: a look, then those that nobody needs. */
static void collect_all (void)
{
    static depot_left_t left[DEPOT_SLICE_MAX];
    size_t count;
    for (unsigned i = 0; i < 2 * DEPOT_BUCKETS; i++) {
        depot_look (depot, 2 * DEPOT_IDLE_MS, left, &count);
        for (size_t k = 0; k < count; k++)
            if (seed_of (left[k].hash) == 0)
                depot_collect (depot, &left[k]);
    }
}

/* What is needed is there, whatever became of the others. */
static size_t expect_needed (void)
{
    size_t left = 0;
    for (size_t i = 0; i < COLLECTED; i++) {
        char path[300];
        struct stat status;
        make_collected (i, path);
        bool there = stat (path, &status) == 0;
        assert_true (there || i % 2 == 0);
        left += there;
    }
    return left;
}

static void finish_collection (void)
{
    reopen ();
    collect_all ();
    assert_int_equal (expect_needed (), COLLECTED / 2);
    assert_int_equal (depot_stats (depot).blobs, COLLECTED / 2);
    assert_int_equal (depot_stats (depot).bytes, COLLECTED / 2 * 10);
}

static void a_kill_while_it_collects_takes_nothing_else (void **state)
{
    (void) state;
    const char *given = getenv ("TASKMQ_BLOB_KILLS");
    unsigned long rounds = given == NULL ? KILLS : strtoul (given, NULL, 10);
    for (unsigned long round = 0; round < rounds; round++) {
        fill_directory ();
        fflush (NULL);
        pid_t child = fork ();
        assert_true (child >= 0);
        if (child == 0) {
            collect_all ();
            _exit (0);
        }
        int status;
        usleep (randombytes_uniform (20000));
        assert_int_equal (kill (child, SIGKILL), 0);
        assert_int_equal (waitpid (child, &status, 0), child);
        expect_needed ();
        finish_collection ();
        start_anew ();
    }
}

/* Each removal may be the last thing that happens, or fail. */
static void each_removal_of_a_collection_may_fail (void **state)
{
    (void) state;
    static const int errors[] = {0, EIO};
    for (size_t i = 0; i < 2; i++) {
        for (unsigned long at = 1; at <= COLLECTED / 2; at += 37) {
            fill_directory ();
            *faults = (faults_t){.at = at, .error = errors[i]};
            pid_t child = fork ();
            assert_true (child >= 0);
            if (child == 0) {
                collect_all ();
                _exit (0);
            }
            int status;
            assert_int_equal (waitpid (child, &status, 0), child);
            assert_int_equal (WEXITSTATUS (status), errors[i] == 0 ? CRASHED : 0);
            *faults = (faults_t){0};
            size_t left = expect_needed ();
            if (errors[i] == 0) /* those before it are gone, it is not */
                assert_int_equal (left, COLLECTED - (at - 1));
            finish_collection ();
            start_anew ();
        }
    }
}

int main (void)
{
    stage_begin ();
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (a_crash_at_each_operation_harms_nothing),
        TEST (each_operation_may_fail),
        TEST (what_was_not_synced_begins_again),
        TEST (a_kill_while_it_collects_takes_nothing_else),
        TEST (each_removal_of_a_collection_may_fail),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
