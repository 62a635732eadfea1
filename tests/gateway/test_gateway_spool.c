/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Files without a name, written and read beside the loop. */
#include "support/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/spool.h"

enum { PIECE = 300000, FILES = 8, ROUNDS = 40 };

typedef struct rig {
    loop_t *loop;
    spool_t *spool;
    char directory[64];
} rig_t;

/* What a file is put through: it is written, then read back backwards. */
typedef struct course {
    rig_t *rig;
    spool_file_t *file;
    unsigned written;
    unsigned read;
    uint8_t seed;
    int *left; /* courses that go on */
    int error; /* the last one */
} course_t;

static void fill (uint8_t *room, uint8_t seed, unsigned piece)
{
    for (size_t i = 0; i < PIECE; i++)
        room[i] = (uint8_t) (seed + piece * 7 + i % 251);
}

static void begin (rig_t *rig, const char *directory)
{
    snprintf (rig->directory, sizeof rig->directory, "%s", directory);
    rig->loop = loop_new ();
    assert_non_null (rig->loop);
    rig->spool = spool_new (rig->loop, rig->directory);
    assert_non_null (rig->spool);
}

static void end (rig_t *rig)
{
    spool_free (&rig->spool);
    assert_null (rig->spool);
    loop_free (&rig->loop);
}

static size_t names_in (const char *directory)
{
    size_t count = 0;
    DIR *all = opendir (directory);
    assert_non_null (all);
    for (const struct dirent *one = readdir (all); one != NULL; one = readdir (all))
        count += one->d_name[0] != '.' || strlen (one->d_name) > 2;
    closedir (all);
    return count;
}

static void leave (course_t *self)
{
    spool_close (&self->file);
    if (--*self->left == 0)
        loop_stop (self->rig->loop);
}

static void was_read (void *context, int error, const bytes_t *data)
{
    course_t *self = context;
    static uint8_t wanted[PIECE];
    assert_int_equal (error, 0);
    assert_int_equal (data->length, PIECE);
    fill (wanted, self->seed, ROUNDS - 1 - self->read);
    assert_memory_equal (data->data, wanted, PIECE);
    if (++self->read == ROUNDS)
        leave (self);
    else
        spool_read (self->file, (uint64_t) (ROUNDS - 1 - self->read) * PIECE, PIECE, was_read,
                    self);
}

static void check_hash (course_t *self)
{
    uint8_t hash[SPOOL_HASH_BYTES], wanted[SPOOL_HASH_BYTES];
    static uint8_t piece[PIECE];
    crypto_generichash_state state;
    crypto_generichash_init (&state, NULL, 0, sizeof wanted);
    for (unsigned i = 0; i < ROUNDS; i++) {
        fill (piece, self->seed, i);
        crypto_generichash_update (&state, piece, sizeof piece);
    }
    crypto_generichash_final (&state, wanted, sizeof wanted);
    spool_hash (self->file, hash);
    assert_memory_equal (hash, wanted, sizeof hash);
}

static void write_next (course_t *self);

static void was_written (void *context, int error, const bytes_t *data)
{
    course_t *self = context;
    (void) data;
    assert_int_equal (error, 0);
    assert_int_equal (names_in (self->rig->directory), 0);
    if (++self->written < ROUNDS) {
        write_next (self);
        return;
    }
    check_hash (self);
    spool_read (self->file, (uint64_t) (ROUNDS - 1) * PIECE, PIECE, was_read, self);
}

static void write_next (course_t *self)
{
    bytes_t data = BYTES_INIT;
    static uint8_t piece[PIECE];
    fill (piece, self->seed, self->written);
    bytes_append (&data, piece, sizeof piece);
    spool_write (self->file, &data, was_written, self);
    assert_null (data.data);
}

static void test_many_files (void **state)
{
    char directory[] = "spool.XXXXXX";
    rig_t rig = {0};
    course_t courses[FILES];
    int left = FILES;
    (void) state;
    assert_non_null (mkdtemp (directory));
    begin (&rig, directory);
    for (unsigned i = 0; i < FILES; i++) {
        courses[i] = (course_t){
            .rig = &rig, .file = spool_open (rig.spool), .seed = (uint8_t) i, .left = &left};
        assert_non_null (courses[i].file);
        write_next (&courses[i]);
    }
    loop_run (rig.loop);
    assert_int_equal (left, 0);
    end (&rig);
    assert_int_equal (names_in (directory), 0);
    rmdir (directory);
}

static void failed (void *context, int error, const bytes_t *data)
{
    course_t *self = context;
    (void) data;
    self->error = error;
    leave (self);
}

/* What cannot be written, and what is not there, is told. */
static void test_failures (void **state)
{
    rig_t rig = {0};
    int left = 1;
    bytes_t data = BYTES_INIT;
    (void) state;
    begin (&rig, "no/such/directory");
    course_t course = {.rig = &rig, .file = spool_open (rig.spool), .left = &left};
    bytes_append (&data, "x", 1);
    spool_write (course.file, &data, failed, &course);
    loop_run (rig.loop);
    assert_int_equal (course.error, ENOENT);
    end (&rig);

    begin (&rig, ".");
    left = 1;
    course = (course_t){.rig = &rig, .file = spool_open (rig.spool), .left = &left};
    spool_read (course.file, 0, 1, failed, &course); /* nothing was written */
    loop_run (rig.loop);
    assert_int_equal (course.error, EBADF);
    end (&rig);
}

static void never (void *context, int error, const bytes_t *data)
{
    (void) context;
    (void) error;
    (void) data;
    fail_msg ("whoever has left is told");
}

/* Nobody is told who has closed; what is under way at the end is waited for, and freed. */
static void test_leaving (void **state)
{
    rig_t rig = {0};
    static uint8_t piece[PIECE];
    (void) state;
    begin (&rig, ".");
    for (unsigned i = 0; i < FILES; i++) {
        spool_file_t *file = spool_open (rig.spool);
        bytes_t data = BYTES_INIT;
        bytes_append (&data, piece, sizeof piece);
        spool_write (file, &data, never, NULL);
        spool_close (&file);
        assert_null (file);
    }
    int left = 1;
    course_t last = {.rig = &rig, .file = spool_open (rig.spool), .left = &left};
    bytes_t data = BYTES_INIT;
    bytes_append (&data, piece, sizeof piece);
    spool_write (last.file, &data, failed, &last); /* behind the others, whose end is seen then */
    loop_run (rig.loop);
    assert_int_equal (last.error, 0);
    spool_file_t *unused = spool_open (rig.spool);
    spool_close (&unused);
    spool_close (&unused);
    end (&rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_many_files),
        cmocka_unit_test (test_failures),
        cmocka_unit_test (test_leaving),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
