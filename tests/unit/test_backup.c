/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Backups: made of a store that is open, restored into an empty directory, and everything that is
 * no backup refused without a trace. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/backup.h"
#include "backup/restore.h"
#include "backup/tar.h"
#include "store_support.h"

static char place[64];  /* of the test's files */
static char target[96]; /* where backups are restored */
static char file[96];   /* a backup */
static char access_path[96];
static char key_path[96];

static void write_file (const char *path, const void *bytes, size_t length)
{
    FILE *out = fopen (path, "w");
    assert_non_null (out);
    assert_int_equal (fwrite (bytes, 1, length, out), length);
    fclose (out);
}

static size_t read_file (const char *path, char *out, size_t size)
{
    FILE *in = fopen (path, "r");
    assert_non_null (in);
    size_t length = fread (out, 1, size - 1, in);
    fclose (in);
    out[length] = '\0';
    return length;
}

static int setup (void **state)
{
    directory_make (place);
    snprintf (target, sizeof (target), "%s/restored", place);
    snprintf (file, sizeof (file), "%s/file.tar", place);
    snprintf (access_path, sizeof (access_path), "%s/access", place);
    snprintf (key_path, sizeof (key_path), "%s/server.key", place);
    write_file (access_path, "me uid:1 operator\n", 18);
    write_file (key_path, "secret\n", 7);
    return fixture_setup (state);
}

static int teardown (void **state)
{
    int rc = fixture_teardown (state);
    directory_remove (target);
    directory_remove (place);
    return rc;
}

static backup_options_t options_of (fixture_t *fixture, const char *id)
{
    return (backup_options_t){.store = fixture->store,
                              .directory = fixture->directory,
                              .access = access_path,
                              .id = id,
                              .keep = 3};
}

/* A backup of ten tasks, as `file`. */
static void make_file (fixture_t *fixture, bool keys)
{
    backup_made_t made;
    store_error_t error;
    char path[200];
    backup_options_t options = options_of (fixture, "aa");
    options.server_key = keys ? key_path : NULL;
    fixture_submit (fixture, 1, 10);
    if (backup_make (&options, &made, &error) != STORE_OK)
        fail_msg ("%s", error.text);
    snprintf (path, sizeof (path), "%s/backups/%s", fixture->directory, made.name);
    struct stat info;
    assert_int_equal (stat (path, &info), 0);
    assert_int_equal (info.st_mode & 0777, 0600);
    assert_int_equal (info.st_size, made.bytes);
    assert_int_equal (rename (path, file), 0);
    snprintf (path, sizeof (path), "%s/backups", fixture->directory);
    assert_int_equal (rmdir (path), 0); /* nothing else is left */
}

static store_code_t restore (store_error_t *error)
{
    restore_report_t report;
    return restore_run (&(restore_from_t){.file = file, .until_ms = INT64_MAX}, target, &report,
                        error);
}

static void assert_nothing (const char *directory)
{
    DIR *entries = opendir (directory);
    assert_true (entries == NULL && errno == ENOENT);
}

static void assert_refused (store_code_t code)
{
    store_error_t error;
    store_code_t got = restore (&error);
    if (got != code)
        fail_msg ("%d, not %d: %s", (int) got, (int) code, got == STORE_OK ? "" : error.text);
    assert_nothing (target);
    /* … and one that is there stays empty. */
    assert_int_equal (mkdir (target, 0700), 0);
    assert_int_equal (restore (&error), code);
    assert_int_equal (rmdir (target), 0);
}

/* All that was committed comes back under another generation. */
static void there_and_back (void **state)
{
    fixture_t *fixture = *state;
    store_error_t error;
    restore_report_t report;
    char text[100];
    char path[200];
    make_file (fixture, true);
    if (restore_run (&(restore_from_t){.file = file, .until_ms = INT64_MAX}, target, &report,
                     &error) != STORE_OK)
        fail_msg ("%s", error.text);
    assert_int_equal (report.manifest.batch, fixture->batch);
    assert_int_equal (report.manifest.tasks, 10);
    assert_int_equal (report.manifest.generation, fixture->boot.generation);
    assert_int_not_equal (report.generation, fixture->boot.generation);
    snprintf (path, sizeof (path), "%s/access", target);
    read_file (path, text, sizeof (text));
    assert_string_equal (text, "me uid:1 operator\n");
    snprintf (path, sizeof (path), "%s/server.key", target);
    read_file (path, text, sizeof (text));
    assert_string_equal (text, "secret\n");
    struct stat info;
    assert_int_equal (stat (path, &info), 0);
    assert_int_equal (info.st_mode & 0777, 0600);

    fixture_t *copy = fixture_new ("sqlite");
    directory_remove (copy->directory);
    snprintf (copy->directory, sizeof (copy->directory), "%.60s", target);
    copy->options.directory = copy->directory;
    fixture_open (copy);
    assert_int_equal (copy->boot.generation, report.generation);
    for (uint64_t number = 1; number <= 10; number++) {
        tmq_id_t id = test_id (number);
        record_t *record = fixture_load (copy, "default", &id);
        assert_non_null (record);
        record_free (record);
    }
    void *state_of_copy = copy;
    fixture_teardown (&state_of_copy);
}

static void no_key_unless_asked (void **state)
{
    char path[200];
    store_error_t error;
    make_file (*state, false);
    assert_int_equal (restore (&error), STORE_OK);
    snprintf (path, sizeof (path), "%s/server.key", target);
    assert_int_not_equal (access (path, F_OK), 0);
}

/* The newest so many are kept. */
static void some_are_kept (void **state)
{
    fixture_t *fixture = *state;
    static const char *const ids[] = {"aa", "bb", "cc", "dd", "ee"};
    backup_made_t made;
    store_error_t error;
    char name[BACKUP_NAME_SIZE];
    uint64_t bytes;
    fixture_submit (fixture, 1, 10);
    for (size_t i = 0; i < 5; i++) {
        backup_options_t options = options_of (fixture, ids[i]);
        assert_int_equal (backup_make (&options, &made, &error), STORE_OK);
    }
    assert_false (backup_find (fixture->directory, "aa", name, &bytes));
    assert_false (backup_find (fixture->directory, "bb", name, &bytes));
    assert_true (backup_find (fixture->directory, "cc", name, &bytes));
    assert_true (backup_find (fixture->directory, "ee", name, &bytes));
    assert_string_equal (name, made.name);
    assert_int_equal (bytes, made.bytes);
    char *whole = malloc (bytes + 1);
    uint64_t at = 0;
    for (int64_t got;
         (got = backup_read (fixture->directory, name, at, whole + at, 10000, &error)) > 0;
         at += (uint64_t) got) {
    }
    assert_int_equal (at, bytes);
    write_file (file, whole, bytes);
    free (whole);
    assert_int_equal (restore (&error), STORE_OK);
    char path[200];
    /* Nothing but backups can be read so. */
    assert_int_equal (backup_read (fixture->directory, "../taskmq.db", 0, path, 1, &error), -1);
    static const char *const left[] = {"cc", "dd", "ee"};
    for (size_t i = 0; i < 3; i++) {
        assert_true (backup_find (fixture->directory, left[i], name, &bytes));
        snprintf (path, sizeof (path), "%s/backups/%s", fixture->directory, name);
        unlink (path);
    }
    snprintf (path, sizeof (path), "%s/backups", fixture->directory);
    assert_int_equal (rmdir (path), 0);
}

static void no_room (void **state)
{
    fixture_t *fixture = *state;
    backup_made_t made;
    store_error_t error;
    backup_options_t options = options_of (fixture, "aa");
    options.free_bytes_min = UINT64_C (1) << 60;
    assert_int_equal (backup_make (&options, &made, &error), STORE_ERROR_FULL);
    assert_non_null (strstr (error.text, "free"));
    char path[200];
    snprintf (path, sizeof (path), "%s/backups", fixture->directory);
    assert_nothing (path);
}

/* Archives that are none of ours. */

static char *archive; /* of make_file, to be changed */
static size_t archive_length;

static void load_archive (fixture_t *fixture)
{
    make_file (fixture, true);
    archive = malloc (4 << 20);
    archive_length = read_file (file, archive, 4 << 20);
}

static void save_archive (void)
{
    write_file (file, archive, archive_length);
}

/* The block of a member, to be written anew by tar_write with some bytes changed. */
static uint8_t *head_of (const char *name)
{
    for (size_t at = 0; at < archive_length; at += TAR_BLOCK_BYTES) {
        if (strcmp (archive + at, name) == 0 && memcmp (archive + at + 257, "ustar", 5) == 0)
            return (uint8_t *) archive + at;
    }
    fail_msg ("no member %s", name);
    return NULL;
}

static void seal (uint8_t *block)
{
    unsigned sum = 0;
    memset (block + 148, ' ', 8);
    for (int i = 0; i < TAR_BLOCK_BYTES; i++)
        sum += block[i];
    snprintf ((char *) block + 148, 8, "%06o", sum);
    block[155] = ' ';
}

static void refuse_change (size_t offset, const void *bytes, size_t length)
{
    uint8_t old[TAR_BLOCK_BYTES];
    uint8_t *block = head_of ("access");
    memcpy (old, block, sizeof (old));
    memcpy (block + offset, bytes, length);
    seal (block);
    save_archive ();
    assert_refused (STORE_ERROR_FOREIGN);
    memcpy (block, old, sizeof (old));
}

/* Neither paths nor links nor devices, and nothing that a backup has not. */
static void evil_members (void **state)
{
    static const char *const names[] = {"../access", "/etc/passwd", "a/b", "other", "taskmq.db"};
    load_archive (*state);
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        refuse_change (0, names[i], strlen (names[i]) + 1);
    for (const char *type = "1234567xgLKS"; *type != '\0'; type++)
        refuse_change (156, type, 1);
    refuse_change (345, "prefix", 6);
    refuse_change (124, "77777777777", 11);
    refuse_change (124, "x", 1);
    free (archive);
}

static void damaged (void **state)
{
    load_archive (*state);
    char *tables = (char *) head_of ("taskmq.db") + TAR_BLOCK_BYTES;
    tables[100000] = (char) (tables[100000] ^ 1);
    save_archive ();
    assert_refused (STORE_ERROR_CORRUPT);
    tables[100000] = (char) (tables[100000] ^ 1);

    /* The sum of a head. */
    uint8_t *block = head_of ("access");
    block[0] = 'A';
    save_archive ();
    assert_refused (STORE_ERROR_FOREIGN);
    block[0] = 'a';

    /* Cut off anywhere: in a part, between two, before and in the manifest. */
    size_t length = archive_length;
    size_t manifest = (size_t) ((char *) head_of ("MANIFEST") - archive);
    const size_t cuts[] = {0, 100, 512, 5000, manifest, manifest + 512, manifest + 600};
    for (size_t i = 0; i < sizeof (cuts) / sizeof (cuts[0]); i++) {
        archive_length = cuts[i];
        save_archive ();
        assert_refused (STORE_ERROR_CORRUPT);
    }
    archive_length = length;

    /* Without its end the archive is not whole; without a manifest it is none. */
    memset (archive + manifest, 0, TAR_BLOCK_BYTES);
    save_archive ();
    assert_refused (STORE_ERROR_FOREIGN);
    free (archive);
}

static void other_manifests (void **state)
{
    load_archive (*state);
    char *text = (char *) head_of ("MANIFEST") + TAR_BLOCK_BYTES;
    static const struct {
        const char *from;
        const char *to;
        store_code_t code;
    } changes[] = {
        {"taskmq backup 1", "taskmq backup 2", STORE_ERROR_FOREIGN},
        {"part access 18", "part access 19", STORE_ERROR_CORRUPT},
        {"part access", "part acc/ss", STORE_ERROR_FOREIGN},
        {"part access", "xart access", STORE_ERROR_CORRUPT},
        {"generation ", "generation x", STORE_ERROR_FOREIGN},
    };
    for (size_t i = 0; i < sizeof (changes) / sizeof (changes[0]); i++) {
        char *at = strstr (text, changes[i].from);
        assert_non_null (at);
        size_t length = strlen (changes[i].to);
        char old[64];
        memcpy (old, at, length);
        memcpy (at, changes[i].to, length);
        save_archive ();
        assert_refused (changes[i].code);
        memcpy (at, old, length);
    }
    save_archive ();
    store_error_t error;
    assert_int_equal (restore (&error), STORE_OK);
    free (archive);
}

static void not_empty (void **state)
{
    char path[200];
    store_error_t error;
    make_file (*state, false);
    assert_int_equal (mkdir (target, 0700), 0);
    snprintf (path, sizeof (path), "%s/mine", target);
    write_file (path, "x", 1);
    assert_int_equal (restore (&error), STORE_ERROR_FOREIGN);
    assert_non_null (strstr (error.text, "not empty (mine)"));
    assert_int_equal (access (path, F_OK), 0);
    snprintf (path, sizeof (path), "%s/" RESTORE_SCRATCH, target);
    assert_int_not_equal (access (path, F_OK), 0);
}

/* What a crash left: of the scratch directory, or of the moves. */
static void goes_on_after_a_crash (void **state)
{
    char path[200];
    store_error_t error;
    make_file (*state, false);
    assert_int_equal (mkdir (target, 0700), 0);
    snprintf (path, sizeof (path), "%s/" RESTORE_SCRATCH, target);
    assert_int_equal (mkdir (path, 0700), 0);
    snprintf (path, sizeof (path), "%s/" RESTORE_SCRATCH "/taskmq.db", target);
    write_file (path, "half", 4);
    snprintf (path, sizeof (path), "%s/server.key", target);
    write_file (path, "of another", 10);
    char lock[200];
    snprintf (lock, sizeof (lock), "%s/taskmq.lock", target); /* of a start that was refused */
    write_file (lock, "1", 1);
    assert_int_equal (restore (&error), STORE_OK);
    assert_int_equal (unlink (lock), 0);
    assert_int_not_equal (access (path, F_OK), 0);
    snprintf (path, sizeof (path), "%s/" RESTORE_SCRATCH, target);
    assert_int_not_equal (access (path, F_OK), 0);
    assert_int_equal (restore (&error), STORE_ERROR_FOREIGN); /* not empty now */
}

/* Blobs. */

enum { BLOB_BYTES = 300000 };

static void blob_path (char out[300], const char *directory, const uint8_t *bytes)
{
    uint8_t hash[32];
    char hex[65];
    crypto_generichash (hash, sizeof (hash), bytes, BLOB_BYTES, NULL, 0);
    sodium_bin2hex (hex, sizeof (hex), hash, sizeof (hash));
    snprintf (out, 300, "%s/blobs/%.2s", directory, hex);
    mkdir (out, 0700);
    snprintf (out, 300, "%s/blobs/%.2s/%s", directory, hex, hex + 2);
}

static void make_blob (const char *directory, uint8_t *bytes, uint8_t seed)
{
    char path[300];
    snprintf (path, sizeof (path), "%s/blobs", directory);
    mkdir (path, 0700);
    for (size_t i = 0; i < BLOB_BYTES; i++)
        bytes[i] = (uint8_t) (seed + i * 31);
    blob_path (path, directory, bytes);
    write_file (path, bytes, BLOB_BYTES);
}

static void expect_blob (const uint8_t *bytes)
{
    static char found[BLOB_BYTES + 2];
    char path[300];
    blob_path (path, target, bytes);
    assert_int_equal (read_file (path, found, sizeof (found)), BLOB_BYTES);
    assert_memory_equal (found, bytes, BLOB_BYTES);
}

static void remove_trees (const fixture_t *fixture)
{
    char command[400];
    snprintf (command, sizeof (command), "rm -rf '%s/blobs' '%s/blobs'", fixture->directory,
              target);
    assert_int_equal (system (command), 0);
}

static void blobs_come_back (void **state)
{
    static uint8_t one[BLOB_BYTES];
    static uint8_t other[BLOB_BYTES];
    const fixture_t *fixture = *state;
    store_error_t error;
    char path[300];
    make_blob (fixture->directory, one, 1);
    make_blob (fixture->directory, other, 2);
    make_file (*state, false);
    /* A crash has left some of another restore, in both places. */
    assert_int_equal (mkdir (target, 0700), 0);
    snprintf (path, sizeof (path), "%s/" RESTORE_SCRATCH, target);
    assert_int_equal (mkdir (path, 0700), 0);
    make_blob (path, one, 1);
    make_blob (target, other, 2);
    blob_path (path, target, other);
    write_file (path, "half", 4);
    if (restore (&error) != STORE_OK)
        fail_msg ("%s", error.text);
    expect_blob (one);
    expect_blob (other);
    remove_trees (fixture);
}

static void damaged_blobs_are_refused (void **state)
{
    static uint8_t one[BLOB_BYTES];
    const fixture_t *fixture = *state;
    char path[300];
    make_blob (fixture->directory, one, 1);
    load_archive (*state);
    char *blobs = (char *) head_of ("blobs") + TAR_BLOCK_BYTES;
    blobs[1000] = (char) (blobs[1000] ^ 1);
    save_archive ();
    assert_refused (STORE_ERROR_CORRUPT);
    blobs[1000] = (char) (blobs[1000] ^ 1);
    blobs[39] = (char) (blobs[39] + 1); /* its length */
    save_archive ();
    assert_refused (STORE_ERROR_CORRUPT);
    free (archive);
    blob_path (path, fixture->directory, one);
    assert_int_equal (unlink (path), 0);
    remove_trees (fixture);
}

static void sizes (void **state)
{
    (void) state;
    static const uint64_t bytes[] = {0, 1, 512, 077777777777, 0100000000000, UINT64_C (1) << 50};
    for (size_t i = 0; i < sizeof (bytes) / sizeof (bytes[0]); i++) {
        uint8_t block[TAR_BLOCK_BYTES];
        tar_member_t member = {.name = "taskmq.db", .bytes = bytes[i]};
        tar_member_t read;
        const char *why;
        tar_write (block, &member, 1795000000);
        assert_int_equal (tar_read (block, &read, &why), TAR_MEMBER);
        assert_int_equal (read.bytes, bytes[i]);
        assert_string_equal (read.name, "taskmq.db");
    }
    assert_int_equal (tar_rest (0), 0);
    assert_int_equal (tar_rest (1), 511);
    assert_int_equal (tar_rest (512), 0);
}

int main (void)
{
#define SQLITE(name) cmocka_unit_test_prestate_setup_teardown (name, setup, teardown, "sqlite")
    const struct CMUnitTest tests[] = {
        SQLITE (there_and_back),
        SQLITE (no_key_unless_asked),
        SQLITE (some_are_kept),
        SQLITE (no_room),
        SQLITE (evil_members),
        SQLITE (damaged),
        SQLITE (other_manifests),
        SQLITE (not_empty),
        SQLITE (goes_on_after_a_crash),
        SQLITE (blobs_come_back),
        SQLITE (damaged_blobs_are_refused),
        cmocka_unit_test (sizes),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
