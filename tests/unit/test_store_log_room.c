/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The room that commits take in the journal's file: one write each, in place of what the tables
 * have; how the file grows beside them, and its limit. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "log_world.h"

/* However many batches: one write and one sync, and in place of what the tables have. */
static void a_commit_is_one_write (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    world_init (w, 1);
    w->options.bytes = 1 << 20;
    assert_int_equal (world_start (w), STORE_OK);
    assert_string_equal (journal_way (w->journal), "direct");
    size_t length = power_disk_file (&w->disk, JOURNAL_FILE)->length;
    for (int i = 0; i < 90; i++) {
        uint64_t writes = w->disk.writes;
        uint64_t syncs = w->disk.syncs;
        assert_int_equal (world_commit (w, COMMIT_MAX, 3000), STORE_OK);
        assert_int_equal (w->disk.writes, writes + 1);
        assert_int_equal (w->disk.syncs, syncs + 1);
        if (w->acked_count > 20)
            journal_written (w->journal, w->tables.written = w->acked_count - 20);
    }
    assert_int_equal (power_disk_file (&w->disk, JOURNAL_FILE)->length, length);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_reads (w, "after many");
    assert_int_equal (w->replayed_count, 20);
    world_destroy (w);
}

/* The file has grown before a commit needs it: a commit stays one write. */
static void a_commit_finds_room (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    world_init (w, 1);
    assert_int_equal (world_start (w), STORE_OK);
    size_t length = power_disk_file (&w->disk, JOURNAL_FILE)->length;
    assert_int_equal (journal_make_room (w->journal, &w->error), STORE_OK);
    assert_int_equal (power_disk_file (&w->disk, JOURNAL_FILE)->length, length);
    for (int i = 0; i < 60; i++) {
        uint64_t writes = w->disk.writes;
        assert_int_equal (world_commit (w, 1, 7000), STORE_OK);
        assert_int_equal (w->disk.writes, writes + 1);
        assert_int_equal (journal_make_room (w->journal, &w->error), STORE_OK);
    }
    assert_true (power_disk_file (&w->disk, JOURNAL_FILE)->length > 4 * length);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_reads (w, "grown ahead");
    world_destroy (w);
}

/* A disk whose first write of a growth waits until somebody lets it go on. */
static struct held_disk {
    world_t *world;
    int (*write) (const device_t *, int, const void *, size_t, uint64_t, bool);
    int (*sync) (const device_t *, int);
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool fails; /* the next sync */
    bool armed;
    bool reached;
    bool released;
    bool committed;
    store_code_t grown;
    store_code_t code; /* of the commit */
} held;

static int held_write (const device_t *device, int fd, const void *bytes, size_t length,
                       uint64_t at, bool durable)
{
    pthread_mutex_lock (&held.lock);
    if (held.armed && !durable) {
        held.armed = false;
        held.reached = true;
        pthread_cond_broadcast (&held.changed);
        while (!held.released)
            pthread_cond_wait (&held.changed, &held.lock);
    }
    pthread_mutex_unlock (&held.lock);
    return held.write (device, fd, bytes, length, at, durable);
}

static int held_sync (const device_t *device, int fd)
{
    pthread_mutex_lock (&held.lock);
    bool fails = held.fails;
    held.fails = false;
    pthread_mutex_unlock (&held.lock);
    if (!fails)
        return held.sync (device, fd);
    errno = EIO;
    return -1;
}

static void *grow_in_thread (void *context)
{
    store_error_t error;
    (void) context;
    held.grown = journal_make_room (held.world->journal, &error);
    return NULL;
}

static void *commit_in_thread (void *context)
{
    (void) context;
    held.code = world_commit (held.world, 1, 7000);
    pthread_mutex_lock (&held.lock);
    held.committed = true;
    pthread_cond_broadcast (&held.changed);
    pthread_mutex_unlock (&held.lock);
    return NULL;
}

/* A journal that has to grow: so many commits of a segment each. */
static void held_begin (world_t *w, bool direct, int commits)
{
    pthread_condattr_t attributes;
    world_init (w, 1);
    held =
        (struct held_disk){.world = w, .write = w->disk.device.write, .sync = w->disk.device.sync};
    pthread_mutex_init (&held.lock, NULL);
    pthread_condattr_init (&attributes);
    pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
    pthread_cond_init (&held.changed, &attributes);
    pthread_condattr_destroy (&attributes);
    w->disk.device.write = held_write;
    w->disk.device.sync = held_sync;
    w->disk.refuses_direct = !direct;
    assert_int_equal (world_start (w), STORE_OK);
    for (int i = 0; i < commits; i++)
        assert_int_equal (world_commit (w, 1, 7000), STORE_OK);
}

/* Gives a commit that must not come some time to come. */
static void assert_waits (void)
{
    struct timespec until;
    clock_gettime (CLOCK_MONOTONIC, &until);
    until.tv_sec += 1;
    pthread_mutex_lock (&held.lock);
    int waited = 0;
    while (!held.committed && waited == 0)
        waited = pthread_cond_timedwait (&held.changed, &held.lock, &until);
    assert_false (held.committed);
    pthread_mutex_unlock (&held.lock);
}

/* The file grows; a commit comes meanwhile, and waits. fails: the growth's sync. */
static void commit_beside_growth (bool fails)
{
    pthread_t grower;
    pthread_t committer;
    held.armed = true;
    assert_int_equal (pthread_create (&grower, NULL, grow_in_thread, NULL), 0);
    pthread_mutex_lock (&held.lock);
    while (!held.reached)
        pthread_cond_wait (&held.changed, &held.lock);
    pthread_mutex_unlock (&held.lock);
    assert_int_equal (pthread_create (&committer, NULL, commit_in_thread, NULL), 0);
    assert_waits ();
    pthread_mutex_lock (&held.lock);
    held.fails = fails;
    held.released = true;
    pthread_cond_broadcast (&held.changed);
    pthread_mutex_unlock (&held.lock);
    pthread_join (grower, NULL);
    pthread_join (committer, NULL);
}

static void held_end (world_t *w, size_t acked)
{
    assert_int_equal (w->acked_count, acked);
    w->disk.device.write = held.write;
    w->disk.device.sync = held.sync;
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_reads (w, "grown beside a commit");
    world_destroy (w);
    pthread_cond_destroy (&held.changed);
    pthread_mutex_destroy (&held.lock);
}

static void a_commit_waits_for_the_segment_under_way (void **state)
{
    (void) state;
    static world_t world;
    held_begin (&world, true, 4);
    commit_beside_growth (false);
    assert_int_equal (held.grown, STORE_OK);
    assert_int_equal (held.code, STORE_OK);
    held_end (&world, 5);
}

/* What the sync of the growth failed for may have been of the commits, too. */
static void a_growth_that_fails_is_the_end_of_commits (void **state)
{
    (void) state;
    static world_t world;
    held_begin (&world, true, 4);
    commit_beside_growth (true);
    assert_int_equal (held.grown, STORE_ERROR_IO);
    assert_int_equal (held.code, STORE_ERROR_IO);
    assert_int_equal (world_commit (&world, 1, 10), STORE_ERROR_IO);
    held_end (&world, 4);
}

/* Through the page cache a failed write is told to one sync only, which must be the commit's. */
static void without_direct_writes_nothing_is_synced_beside_a_commit (void **state)
{
    (void) state;
    static world_t world;
    held_begin (&world, false, 3);
    assert_string_equal (journal_way (world.journal), "buffered");
    commit_beside_growth (false);
    assert_int_equal (held.grown, STORE_OK);
    assert_int_equal (held.code, STORE_OK);
    held_end (&world, 4);
}

/* What no segment is free for: the file grows to its limit, then a commit has to wait. */
static void a_journal_is_bounded (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    world_init (w, 1);
    w->options.bytes = 4 << 20;
    assert_int_equal (world_start (w), STORE_OK);
    store_code_t code = STORE_OK;
    while (code == STORE_OK)
        code = world_commit (w, 1, 700000);
    assert_int_equal (code, STORE_ERROR_BUSY);
    assert_in_range (power_disk_file (&w->disk, JOURNAL_FILE)->length, 60 << 20, 64 << 20);
    journal_written (w->journal, w->tables.written = w->acked_count / 2);
    assert_int_equal (world_commit (w, 1, 700000), STORE_OK);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_reads (w, "at its limit");
    assert_int_equal (world_begin (w), STORE_OK);
    assert_int_equal (power_disk_file (&w->disk, JOURNAL_FILE)->length, 4 << 20);
    assert_int_equal (world_commit (w, 1, 5 << 20), STORE_OK); /* more than all of it */
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_reads (w, "a large one");
    assert_int_equal (w->replayed_count, 1);
    world_destroy (w);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_commit_is_one_write),
        cmocka_unit_test (a_commit_finds_room),
        cmocka_unit_test (a_commit_waits_for_the_segment_under_way),
        cmocka_unit_test (a_growth_that_fails_is_the_end_of_commits),
        cmocka_unit_test (without_direct_writes_nothing_is_synced_beside_a_commit),
        cmocka_unit_test (a_journal_is_bounded),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
