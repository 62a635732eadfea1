/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The change of the broker's key: files are written by the errands' thread, never by the loop. The
 * engine and the doors are stand-ins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "key_change.h"
#include "log/log.h"
#include "support/cmocka_all.h"
#include "taskmq.pb-c.h"

static data_t data;
static doors_t doors;
static key_change_t change;
static int64_t clock_ms;
static unsigned opened_anew;
static key_secret_t listened;

void engine_next_key (engine_t *self, const key_public_t *key, now_t now)
{
    (void) self;
    (void) key;
    (void) now;
}

void engine_move (engine_t *self, now_t now)
{
    (void) self;
    (void) now;
}

void doors_change_key (doors_t *self, const key_secret_t *key)
{
    (void) self;
    opened_anew++;
    listened = *key;
}

static int64_t now_ms (void)
{
    return clock_ms;
}

static now_t now (void)
{
    return (now_t){clock_ms, clock_ms};
}

static int setup (void **state)
{
    (void) state;
    static char home[] = "/tmp/tmq-key-change-XXXXXX";
    log_configure (LOG_LEVEL_ERROR + 1, false);
    memcpy (home + strlen (home) - 6, "XXXXXX", 6);
    if (mkdtemp (home) == NULL)
        return -1;
    data = (data_t){.lock = -1};
    snprintf (data.directory, sizeof (data.directory), "%s", home);
    doors = (doors_t){.has_server_key = true};
    clock_ms = 1800000000000;
    opened_anew = 0;
    if (key_change_open (&change, &data, &doors) != EXITS_OK)
        return -1;
    change.now_ms = now_ms;
    key_change_begin (&change);
    return 0;
}

static int teardown (void **state)
{
    (void) state;
    char path[DATA_PATH_SIZE];
    key_change_close (&change);
    if (data_path (&data, "server.key", path, sizeof (path)))
        unlink (path);
    if (data_path (&data, "server.key.next", path, sizeof (path)))
        unlink (path);
    return rmdir (data.directory);
}

static void run (errand_t *errand)
{
    errand_runner_t runner = key_change_runner (&change);
    runner.run (runner.context, errand);
}

static void run_own (void)
{
    errand_t *errand = errand_new (TASKMQ__REQUEST__OP_SERVER_KEY_ROTATE);
    run (errand);
    errand_free (errand);
}

static void order (uint64_t in_ms)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__ServerKeyRotate rotate = TASKMQ__SERVER_KEY_ROTATE__INIT;
    uint8_t packed[128];
    rotate.in_ms = in_ms;
    request.op_case = TASKMQ__REQUEST__OP_SERVER_KEY_ROTATE;
    request.server_key_rotate = &rotate;
    errand_t errand = {.op = request.op_case};
    errand.request = buf_new (packed, taskmq__request__pack (&request, packed));
    run (&errand);
    assert_int_equal (errand.code, TMQ_OK);
    errand_clear (&errand);
}

static void the_loop_changes_what_a_thread_has_kept (void **state)
{
    (void) state;
    key_secret_t kept;
    bool there;
    char error[SERVER_KEY_ERROR_SIZE];
    order (5000);
    assert_false (key_change_turn (&change, NULL, now ())); /* it is not time yet */
    clock_ms += 5000;
    assert_true (key_change_turn (&change, NULL, now ()));
    assert_false (key_change_turn (&change, NULL, now ())); /* one errand is enough */
    assert_int_equal (opened_anew, 0);
    assert_int_equal (server_key_read (&kept, &there, &data, error), EXITS_OK);
    assert_false (there);
    run_own ();
    assert_int_equal (opened_anew, 0);
    assert_int_equal (server_key_read (&kept, &there, &data, error), EXITS_OK);
    assert_true (there);
    assert_false (key_change_turn (&change, NULL, now ()));
    assert_int_equal (opened_anew, 1);
    assert_memory_equal (&listened, &kept, sizeof (kept));
    clock_ms += 60000;
    assert_false (key_change_turn (&change, NULL, now ()));
    assert_int_equal (opened_anew, 1);
}

static void an_order_in_between_moves_the_time (void **state)
{
    (void) state;
    order (0);
    assert_true (key_change_turn (&change, NULL, now ()));
    order (5000);
    run_own ();
    assert_false (key_change_turn (&change, NULL, now ()));
    assert_int_equal (opened_anew, 0);
    clock_ms += 5000;
    assert_true (key_change_turn (&change, NULL, now ()));
    run_own ();
    assert_false (key_change_turn (&change, NULL, now ()));
    assert_int_equal (opened_anew, 1);
}

/* A turn has begun, and what is in the way of its file goes later: then it is done, not before. */
static void turns_when_out_of_the_way (const char *path)
{
    run_own ();
    assert_false (key_change_turn (&change, NULL, now ()));
    assert_int_equal (opened_anew, 0);
    assert_int_equal (rmdir (path), 0);
    clock_ms += 1000;
    assert_true (key_change_turn (&change, NULL, now ()));
    run_own ();
    assert_false (key_change_turn (&change, NULL, now ()));
    assert_int_equal (opened_anew, 1);
}

/* What cannot be kept is not used, and tried again after a second. */
static void a_key_that_cannot_be_kept_is_tried_again (void **state)
{
    (void) state;
    char path[DATA_PATH_SIZE];
    order (0);
    assert_true (key_change_turn (&change, NULL, now ()));
    assert_true (data_path (&data, "server.key", path, sizeof (path)));
    assert_int_equal (mkdir (path, 0700), 0); /* in the way */
    turns_when_out_of_the_way (path);
}

/* A start with a key whose time has come, where the disk takes nothing. */
static void a_start_goes_on_with_the_present_key (void **state)
{
    (void) state;
    char path[DATA_PATH_SIZE];
    order (5000);
    assert_true (data_path (&data, "server.key", path, sizeof (path)));
    assert_int_equal (mkdir (path, 0700), 0); /* in the way */
    key_change_close (&change);
    server_key_write_next (&(key_secret_t){{7}}, 1700000000000, &data,
                           (char[SERVER_KEY_ERROR_SIZE]){0});
    assert_int_equal (key_change_open (&change, &data, &doors), EXITS_OK);
    change.now_ms = now_ms;
    key_change_begin (&change);
    assert_true (key_change_turn (&change, NULL, now ()));
    turns_when_out_of_the_way (path);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (the_loop_changes_what_a_thread_has_kept),
        TEST (an_order_in_between_moves_the_time),
        TEST (a_key_that_cannot_be_kept_is_tried_again),
        TEST (a_start_goes_on_with_the_present_key),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
