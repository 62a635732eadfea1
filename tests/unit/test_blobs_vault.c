/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files of blobs before a vault, which is in memory here: all that it lacks are found. */
#include "blobs_stage.h"

static tmq_code_t lacks_all (void *context, const uint8_t (*hashes)[TMQ_BLOB_HASH_BYTES],
                             size_t count, bool *lacks, vault_word_t *word)
{
    (void) context;
    (void) hashes;
    (void) word;
    for (size_t i = 0; i < count; i++)
        lacks[i] = true;
    return TMQ_OK;
}

static vault_stats_t no_stats (void *context)
{
    (void) context;
    return (vault_stats_t){0};
}

static const vault_t VAULT = {.lacks = lacks_all, .stats = no_stats};

static void path_of (char out[300], int number)
{
    snprintf (out, 300, "%s/07/%062x", directory, (unsigned) number);
}

static int number_of (const depot_left_t *left)
{
    const uint8_t *end = left->hash + TMQ_BLOB_HASH_BYTES;
    return end[-2] << 8 | end[-1];
}

/* What nobody names is removed while the walk is under way. */
static void what_is_removed_meanwhile_hides_no_other (void **state)
{
    (void) state;
    enum { FILES = 2 * DEPOT_SLICE_MAX + 100, REMOVED = 50 };
    static depot_left_t left[DEPOT_SLICE_MAX];
    bool seen[FILES] = {false};
    char path[300];
    size_t count;
    size_t all = 0;
    snprintf (path, sizeof (path), "%s/07", directory);
    assert_int_equal (mkdir (path, 0700), 0);
    for (int i = 0; i < FILES; i++) {
        path_of (path, i);
        int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true (fd >= 0);
        close (fd);
    }
    depot_use (depot, &VAULT);
    for (depot_place_t walk = {0}; walk.bucket < DEPOT_BUCKETS;) {
        assert_int_equal (depot_lacking (depot, &walk, left, &count), TMQ_OK);
        for (size_t i = 0; i < count; i++) {
            assert_false (seen[number_of (&left[i])]);
            seen[number_of (&left[i])] = true;
            path_of (path, number_of (&left[i]));
            if (i < REMOVED)
                assert_int_equal (unlink (path), 0);
        }
        all += count;
    }
    assert_int_equal (all, FILES);
}

int main (void)
{
    stage_begin ();
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (what_is_removed_meanwhile_hides_no_other),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
