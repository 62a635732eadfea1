/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Files that were turned are seen, also while one of them is packed. */
#include "support/cmocka_all.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/turned.h"
#include "export/turned_look.h"

enum { FILES = 3, PATH_SIZE = 128 };

static char directory[] = "turned-XXXXXX";
static bool packs;      /* the file is packed when the look comes to it … */
static bool was_packed; /* … and its new name stands where the look has been */

struct dirent *__real_readdir (DIR *entries);
struct dirent *__wrap_readdir (DIR *entries);

static void path_of (char out[PATH_SIZE], const char *name)
{
    snprintf (out, PATH_SIZE, "%s/%s", directory, name);
}

struct dirent *__wrap_readdir (DIR *entries)
{
    struct dirent *entry = __real_readdir (entries);
    if (packs && entry != NULL && strcmp (entry->d_name, "audit-0002.jsonl") == 0) {
        char plain[PATH_SIZE];
        char packed[PATH_SIZE];
        path_of (plain, "audit-0002.jsonl");
        path_of (packed, "audit-0002.jsonl.zst");
        assert_int_equal (rename (plain, packed), 0);
        packs = false;
        was_packed = true;
        entry = __real_readdir (entries);
    }
    if (was_packed && entry != NULL && strcmp (entry->d_name, "audit-0002.jsonl.zst") == 0)
        entry = __real_readdir (entries);
    if (entry == NULL)
        was_packed = false; /* the next look sees what is there */
    return entry;
}

static int setup (void **state)
{
    (void) state;
    strcpy (directory, "turned-XXXXXX");
    assert_non_null (mkdtemp (directory));
    for (unsigned i = 1; i <= FILES; i++) {
        char name[32];
        char path[PATH_SIZE];
        snprintf (name, sizeof (name), "audit-%04u.jsonl", i);
        path_of (path, name);
        FILE *file = fopen (path, "w");
        assert_non_null (file);
        fclose (file);
    }
    return 0;
}

static int teardown (void **state)
{
    (void) state;
    for (unsigned i = 1; i <= FILES; i++) {
        char name[32];
        char path[PATH_SIZE];
        snprintf (name, sizeof (name), "audit-%04u.jsonl", i);
        path_of (path, name);
        unlink (path);
    }
    char path[PATH_SIZE];
    path_of (path, "audit-0002.jsonl.zst");
    unlink (path);
    return rmdir (directory);
}

static void take_packed (void *context, const char *name)
{
    unsigned *seen = context;
    *seen += strcmp (name, "audit-0002.jsonl.zst") == 0;
}

static void a_file_that_is_packed_meanwhile_is_seen (void **state)
{
    unsigned seen = 0;
    (void) state;
    packs = true;
    turned_look (directory, take_packed, &seen);
    assert_false (packs);
    assert_int_equal (seen, 1);
}

static void each_number_is_there_once (void **state)
{
    turned_t turned;
    (void) state;
    packs = true;
    turned_read (&turned, directory);
    assert_int_equal (turned.count, FILES);
    for (uint32_t i = 0; i < FILES; i++)
        assert_int_equal (turned.numbers[i], i + 1);
    turned_free (&turned);
}

static void no_directory_has_no_names (void **state)
{
    unsigned seen = 0;
    (void) state;
    turned_look ("turned-absent", take_packed, &seen);
    assert_int_equal (seen, 0);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST (a_file_that_is_packed_meanwhile_is_seen),
                                       TEST (each_number_is_there_once),
                                       TEST (no_directory_has_no_names)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
