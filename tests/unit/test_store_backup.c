/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Copies of a store that goes on, and a store that begins on a copy. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault_vfs.h"
#include "store_support.h"
#include "support/timing.h"

enum { TASKS = 20000, COMMIT = 500 };

static char place[64]; /* where the copy goes */
static char path[128]; /* its file */

static int setup (void **state)
{
    directory_make (place);
    snprintf (path, sizeof (path), "%s/taskmq.db", place);
    return fixture_setup (state);
}

static int teardown (void **state)
{
    int rc = fixture_teardown (state);
    directory_remove (place);
    return rc;
}

static store_code_t backup (fixture_t *fixture, store_backup_t *out, store_error_t *error)
{
    *out = (store_backup_t){.path = path};
    return store_backup (fixture->store, out, error);
}

/* A fixture on the copy. */
static fixture_t *open_copy (const char *directory)
{
    fixture_t *copy = fixture_new ("sqlite");
    directory_remove (copy->directory);
    snprintf (copy->directory, sizeof (copy->directory), "%s", directory);
    copy->options.directory = copy->directory;
    fixture_open (copy);
    return copy;
}

static void close_copy (fixture_t *copy)
{
    void *state = copy;
    fixture_teardown (&state);
    directory_make (place); /* to be removed by the teardown */
}

static bool has_task (fixture_t *fixture, int64_t number)
{
    tmq_id_t id = test_id ((uint64_t) number);
    record_t *record = fixture_load (fixture, "default", &id);
    bool has = record != NULL;
    if (has) {
        record_t wanted = test_record (number);
        assert_memory_equal (&record->id, &wanted.id, sizeof (record->id));
        record_free (record);
    }
    return has;
}

/* What was committed an instant ago is in it, without a wait for a write-back. */
static void has_newest (void **state)
{
    fixture_t *fixture = *state;
    store_backup_t made;
    store_backup_t found;
    uint64_t generation;
    store_error_t error;
    fixture_submit (fixture, 1, 10);
    assert_int_equal (backup (fixture, &made, &error), STORE_OK);
    assert_int_equal (made.batch, fixture->batch);
    assert_int_equal (made.tasks, 10);
    assert_int_equal (made.generation, fixture->boot.generation);

    assert_int_equal (store_adopt (place, &found, &generation, &error), STORE_OK);
    assert_int_equal (found.batch, made.batch);
    assert_int_equal (found.tasks, 10);
    assert_int_equal (found.generation, made.generation);
    fixture_t *copy = open_copy (place);
    assert_int_not_equal (copy->boot.generation, made.generation);
    assert_int_equal (copy->boot.generation, generation);
    assert_int_equal (copy->boot.tasks, 10);
    assert_int_equal (copy->boot.last_pos, fixture->pos);
    for (int64_t number = 1; number <= 10; number++)
        assert_true (has_task (copy, number));
    close_copy (copy);
    fixture_submit (fixture, 11, 20); /* the store goes on */
    fixture_settle (fixture);
}

typedef struct load {
    fixture_t *fixture;
    atomic_bool stop;
    int64_t last;
} load_t;

static void *commit_on (void *context)
{
    load_t *load = context;
    while (!atomic_load (&load->stop) && load->last < 10 * TASKS) {
        fixture_submit (load->fixture, load->last + 1, load->last + 20);
        load->last += 20;
    }
    return NULL;
}

/* While commits and write-backs go on the copy is made once, has all from before, and of what came
 * later the first, without holes. */
static void under_load (void **state)
{
    fixture_t *fixture = *state;
    pthread_t thread;
    store_backup_t made;
    store_backup_t found;
    uint64_t generation;
    store_error_t error;
    for (int64_t from = 1; from <= TASKS; from += COMMIT)
        fixture_submit (fixture, from, from + COMMIT - 1);
    fixture_settle (fixture);
    load_t load = {.fixture = fixture, .last = TASKS};
    atomic_init (&load.stop, false);
    assert_int_equal (pthread_create (&thread, NULL, commit_on, &load), 0);
    assert_int_equal (backup (fixture, &made, &error), STORE_OK);
    atomic_store (&load.stop, true);
    pthread_join (thread, NULL);
    assert_true (made.steps > 2);

    assert_int_equal (store_adopt (place, &found, &generation, &error), STORE_OK);
    assert_int_equal (found.batch, made.batch);
    assert_true (found.tasks >= TASKS);
    fixture_t *copy = open_copy (place);
    bool has = true;
    for (int64_t number = 1; number <= load.last; number++) {
        bool had = has;
        has = has_task (copy, number);
        assert_true (had || !has);
        assert_int_equal (has, number <= (int64_t) found.tasks);
    }
    close_copy (copy);
    fixture_settle (fixture);
    assert_true (has_task (fixture, load.last));
}

static bool never (void *context)
{
    return (*(int *) context)++ < 1;
}

static void given_up (void **state)
{
    fixture_t *fixture = *state;
    store_error_t error;
    int asked = 0;
    for (int64_t from = 1; from <= TASKS; from += COMMIT)
        fixture_submit (fixture, from, from + COMMIT - 1);
    store_backup_t made = {.path = path, .goes_on = never, .context = &asked};
    assert_int_equal (store_backup (fixture->store, &made, &error), STORE_ERROR_BUSY);
    assert_int_not_equal (access (path, F_OK), 0);
    assert_int_equal (backup (fixture, &made, &error), STORE_OK);
}

static void no_place (void **state)
{
    fixture_t *fixture = *state;
    store_error_t error;
    store_backup_t made = {.path = "nowhere/at/all"};
    fixture_submit (fixture, 1, 10);
    assert_int_equal (store_backup (fixture->store, &made, &error), STORE_ERROR_ACCESS);
    assert_int_equal (backup (fixture, &made, &error), STORE_OK);
}

/* A copy that finds no space is gone, and the store goes on. */
static void no_space (void **state)
{
    fixture_t *fixture = *state;
    store_error_t error;
    store_backup_t made;
    for (int64_t from = 1; from <= TASKS; from += COMMIT)
        fixture_submit (fixture, from, from + COMMIT - 1);
    fixture_settle (fixture);
    fault_vfs_arm (&(fault_t){.file = path, .ops = FAULT_WRITE, .full = true, .after = 100});
    assert_int_equal (backup (fixture, &made, &error), STORE_ERROR_FULL);
    assert_true (fault_vfs_failed () > 0);
    fault_vfs_disarm ();
    assert_int_not_equal (access (path, F_OK), 0);
    fixture_submit (fixture, TASKS + 1, TASKS + 10);
    fixture_settle (fixture);
    assert_int_equal (backup (fixture, &made, &error), STORE_OK);
}

static void memory_keeps_nothing (void **state)
{
    fixture_t *fixture = *state;
    store_error_t error;
    store_backup_t made;
    fixture_submit (fixture, 1, 10);
    assert_int_equal (backup (fixture, &made, &error), STORE_ERROR_FOREIGN);
    assert_non_null (strstr (error.text, "memory"));
}

static void put (const char *text)
{
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fputs (text, file);
    fclose (file);
}

/* What is none of ours, or damaged, is refused. */
static void adopts_only_whole (void **state)
{
    fixture_t *fixture = *state;
    store_error_t error;
    store_backup_t made;
    store_backup_t found;
    uint64_t generation;
    assert_int_equal (store_adopt (place, &found, &generation, &error), STORE_ERROR_CORRUPT);
    put ("this is no database, but a text that is long enough to be looked at as a header of one."
         "this is no database, but a text that is long enough to be looked at as a header of one.");
    assert_int_not_equal (store_adopt (place, &found, &generation, &error), STORE_OK);
    unlink (path);

    fixture_submit (fixture, 1, 2000);
    assert_int_equal (backup (fixture, &made, &error), STORE_OK);
    int fd = open (path, O_RDWR);
    assert_true (fd >= 0);
    static const char noise[4096] = "noise";
    off_t half = lseek (fd, 0, SEEK_END) / 2 / 16384 * 16384;
    assert_int_equal (pwrite (fd, noise, sizeof (noise), half), sizeof (noise));
    close (fd);
    assert_int_equal (store_adopt (place, &found, &generation, &error), STORE_ERROR_CORRUPT);
}

int main (void)
{
    fault_vfs_install ();
#define SQLITE(name) cmocka_unit_test_prestate_setup_teardown (name, setup, teardown, "sqlite")
    const struct CMUnitTest tests[] = {
        SQLITE (has_newest),
        SQLITE (under_load),
        SQLITE (given_up),
        SQLITE (no_place),
        SQLITE (no_space),
        SQLITE (adopts_only_whole),
        cmocka_unit_test_prestate_setup_teardown (memory_keeps_nothing, setup, teardown, "memory"),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
