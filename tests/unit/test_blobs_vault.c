/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files of blobs before a vault, which is in memory here: all that it lacks are found, and what
 * is damaged in a file is read from it. */
#include <sys/resource.h>

#include "blobs/summed.h"
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

static tmq_code_t vault_code; /* OK: it has the upload */
static size_t vault_reads;

static tmq_code_t read_there (void *context, const uint8_t *of, uint64_t bytes, uint64_t offset,
                              uint8_t *to, size_t limit, size_t *length, vault_word_t *word)
{
    (void) context;
    assert_memory_equal (of, hash, TMQ_BLOB_HASH_BYTES);
    assert_int_equal (bytes, BYTES);
    vault_reads++;
    snprintf (word->text, sizeof (word->text), "is not there");
    if (vault_code != TMQ_OK)
        return vault_code;
    *length = BYTES - offset < limit ? (size_t) (BYTES - offset) : limit;
    memcpy (to, contents + offset, *length);
    return TMQ_OK;
}

static tmq_code_t look_there (void *context, const uint8_t *of, uint64_t bytes, uint64_t *at,
                              bool *good, vault_word_t *word)
{
    (void) context;
    (void) of;
    (void) bytes;
    (void) at;
    (void) word;
    *good = false;
    return TMQ_OK;
}

static tmq_code_t begin_there (void *context, const uint8_t *of, uint64_t bytes, int64_t *number,
                               vault_word_t *word)
{
    (void) context;
    (void) of;
    (void) bytes;
    (void) word;
    *number = 1;
    return TMQ_OK;
}

static tmq_code_t put_there (void *context, int64_t number, const uint8_t *of, uint64_t offset,
                             const uint8_t *data, size_t length, bool *there, vault_word_t *word)
{
    (void) context;
    (void) number;
    (void) word;
    *there = true;
    assert_memory_equal (of, hash, TMQ_BLOB_HASH_BYTES);
    assert_memory_equal (data, contents + offset, length);
    return TMQ_OK;
}

static tmq_code_t end_there (void *context, int64_t number, const uint8_t *of, bool *done,
                             vault_word_t *word)
{
    (void) context;
    (void) number;
    (void) of;
    (void) word;
    *done = true;
    return TMQ_OK;
}

static const vault_t VAULT = {.look = look_there,
                              .begin = begin_there,
                              .put = put_there,
                              .end = end_there,
                              .lacks = lacks_all,
                              .read = read_there,
                              .stats = no_stats};

/* Reads of files, in bytes. */

static uint64_t read_bytes;

ssize_t __real_pread (int fd, void *out, size_t length, off_t at);
ssize_t __wrap_pread (int fd, void *out, size_t length, off_t at);
ssize_t __wrap_pread (int fd, void *out, size_t length, off_t at)
{
    ssize_t got = __real_pread (fd, out, length, at);
    read_bytes += got > 0 ? (uint64_t) got : 0;
    return got;
}

/* The C library may call it so. */
ssize_t __wrap_pread64 (int fd, void *out, size_t length, off_t at);
ssize_t __wrap_pread64 (int fd, void *out, size_t length, off_t at)
{
    return __wrap_pread (fd, out, length, at);
}

ssize_t __wrap___pread_chk (int fd, void *out, size_t length, off_t at, size_t room);
ssize_t __wrap___pread_chk (int fd, void *out, size_t length, off_t at, size_t room)
{
    assert_true (length <= room);
    return __wrap_pread (fd, out, length, at);
}

ssize_t __wrap___pread64_chk (int fd, void *out, size_t length, off_t at, size_t room);
ssize_t __wrap___pread64_chk (int fd, void *out, size_t length, off_t at, size_t room)
{
    return __wrap___pread_chk (fd, out, length, at, room);
}

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

/* No further file can be opened, or as many as before. */
static void limit_files (bool none)
{
    static struct rlimit before;
    struct rlimit now;
    if (none)
        assert_int_equal (getrlimit (RLIMIT_NOFILE, &before), 0);
    now = before;
    if (none)
        now.rlim_cur = 0;
    assert_int_equal (setrlimit (RLIMIT_NOFILE, &now), 0);
}

/* A directory that cannot be listed now is not an empty one. */
static void what_cannot_be_listed_is_not_passed (void **state)
{
    (void) state;
    static depot_left_t left[DEPOT_SLICE_MAX];
    depot_place_t walk = {0};
    size_t count;
    assert_true (put_rest (&upload).whole);
    depot_use (depot, &VAULT);
    limit_files (true);
    tmq_code_t code = depot_lacking (depot, &walk, left, &count);
    limit_files (false);
    assert_int_equal (code, TMQ_UNAVAILABLE);
    assert_int_equal (walk.bucket, 0);
    assert_int_equal (depot_stats (depot).errors, 1);
    for (count = 0; count == 0;) {
        assert_true (walk.bucket < DEPOT_BUCKETS);
        assert_int_equal (depot_lacking (depot, &walk, left, &count), TMQ_OK);
    }
    assert_memory_equal (left[0].hash, hash, sizeof (hash));
}

static depot_word_t bring (const depot_left_t *left)
{
    depot_word_t word;
    do
        depot_bring (depot, left, &word);
    while (word.more);
    return word;
}

/* What is gone, cannot be opened just now, or is damaged are three different things. */
static void what_is_not_brought_is_told_as_it_is (void **state)
{
    (void) state;
    char path[300];
    depot_left_t left = {.bytes = BYTES};
    memcpy (left.hash, hash, sizeof (left.hash));
    assert_true (put_rest (&upload).whole);
    depot_use (depot, &VAULT);
    blob_path (path);
    limit_files (true);
    depot_word_t word = bring (&left);
    limit_files (false);
    assert_int_equal (word.code, TMQ_UNAVAILABLE); /* it is tried again */
    assert_non_null (strstr (word.text, strerror (EMFILE)));
    assert_true (bring (&left).whole);
    assert_int_equal (truncate (path, BYTES - 1), 0);
    word = bring (&left);
    assert_int_equal (word.code, TMQ_NO_BLOB);
    assert_non_null (strstr (word.text, "is damaged"));
    assert_int_equal (unlink (path), 0);
    word = bring (&left);
    assert_int_equal (word.code, TMQ_OK); /* collected meanwhile */
    assert_false (word.whole);
    assert_int_equal (symlink ("nowhere", path), 0);
    word = bring (&left);
    assert_int_equal (word.code, TMQ_NO_BLOB);
    assert_non_null (strstr (word.text, "cannot be read"));
}

/* One byte is another one, the length is as it was. The clock of files may stand still for some
 * milliseconds. */
static void rot (const char *path)
{
    struct stat before;
    struct stat now;
    assert_int_equal (stat (path, &before), 0);
    int fd = open (path, O_WRONLY | O_CLOEXEC);
    uint8_t byte = (uint8_t) ~contents[BYTES / 2];
    assert_true (fd >= 0);
    do {
        assert_int_equal (__real_pwrite (fd, &byte, 1, BYTES / 2), 1);
        assert_int_equal (fstat (fd, &now), 0);
    } while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
             now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
    close (fd);
}

static depot_word_t read_turns (const uint8_t *of, uint64_t bytes, uint64_t offset, uint8_t *to,
                                size_t *turns)
{
    size_t length;
    depot_word_t word;
    *turns = 0;
    do {
        depot_read (depot, of, bytes, offset, to, PIECE, &length, &word);
        ++*turns;
    } while (word.more);
    return word;
}

static void a_damaged_file_hides_nothing_in_the_vault (void **state)
{
    (void) state;
    char path[300];
    uint8_t bytes[PIECE];
    size_t turns;
    assert_true (put_rest (&upload).whole);
    depot_use (depot, &VAULT);
    vault_code = TMQ_OK;
    vault_reads = 0;
    expect_contents ();
    assert_int_equal (vault_reads, 0); /* the file is as good */
    blob_path (path);
    rot (path);
    depot_word_t word = read_turns (hash, BYTES, 0, bytes, &turns);
    assert_int_equal (word.code, TMQ_OK);
    assert_true (word.damaged);
    assert_int_equal (depot_stats (depot).errors, 1);
    expect_contents ();
    word = read_turns (hash, BYTES, 0, bytes, &turns);
    assert_false (word.damaged); /* it is told once */
    assert_int_equal (depot_stats (depot).errors, 1);
    vault_code = TMQ_UNAVAILABLE;
    assert_int_equal (read_turns (hash, BYTES, 0, bytes, &turns).code, TMQ_UNAVAILABLE);
    vault_code = TMQ_NO_BLOB;
    word = read_turns (hash, BYTES, 0, bytes, &turns);
    assert_int_equal (word.code, TMQ_NO_BLOB);
    assert_true (read_turns (hash, BYTES, 0, bytes, &turns).damaged); /* it was looked at again */
    depot_use (depot, NULL);
    assert_true (put_rest (&upload).whole); /* whoever has the bytes mends it */
    depot_use (depot, &VAULT);
    vault_reads = 0;
    expect_contents ();
    assert_int_equal (vault_reads, 0);
}

enum { LARGE = 3 * DEPOT_TURN_BYTES + 77 };

/* A file of so many equal bytes. */
static void make_large (uint8_t byte, uint8_t *of)
{
    static uint8_t large[LARGE];
    char hex[65];
    char path[300];
    memset (large, byte, LARGE);
    crypto_generichash (of, TMQ_BLOB_HASH_BYTES, large, LARGE, NULL, 0);
    sodium_bin2hex (hex, sizeof (hex), of, TMQ_BLOB_HASH_BYTES);
    snprintf (path, sizeof (path), "%s/%.2s", directory, hex);
    mkdir (path, 0700);
    snprintf (path, sizeof (path), "%s/%.2s/%s", directory, hex, hex + 2);
    int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true (fd >= 0);
    assert_int_equal (write (fd, large, LARGE), LARGE);
    close (fd);
}

/* In turns, and once: whoever reads all of it has the file read twice. */
static void a_large_file_is_summed_in_turns (void **state)
{
    (void) state;
    uint8_t ones[TMQ_BLOB_HASH_BYTES];
    uint8_t twos[TMQ_BLOB_HASH_BYTES];
    uint8_t bytes[PIECE];
    size_t length;
    size_t turns;
    depot_word_t word;
    make_large (1, ones);
    make_large (2, twos);
    assert_true (put_rest (&upload).whole);
    depot_use (depot, &VAULT);
    vault_code = TMQ_NO_BLOB;
    depot_read (depot, ones, LARGE, 0, bytes, PIECE, &length, &word);
    assert_true (word.more);
    assert_int_equal (read_turns (hash, BYTES, 0, bytes, &turns).code, TMQ_OK);
    assert_int_equal (turns, 1); /* a small one waits for nothing */
    /* One that is behind it brings it on, also if nobody reads it any more. */
    assert_int_equal (read_turns (twos, LARGE, 0, bytes, &turns).code, TMQ_OK);
    assert_int_equal (bytes[0], 2);
    assert_int_equal (turns, 3 + 4);
    assert_int_equal (read_turns (ones, LARGE, 0, bytes, &turns).code, TMQ_OK);
    assert_int_equal (turns, 1);
    read_bytes = 0;
    for (uint64_t at = 0; at < LARGE; at += PIECE)
        assert_int_equal (read_turns (ones, LARGE, at, bytes, &turns).code, TMQ_OK);
    assert_int_equal (read_bytes, LARGE);
}

static void what_was_put_into_the_vault_is_not_summed_again (void **state)
{
    (void) state;
    uint8_t bytes[PIECE];
    size_t turns;
    depot_use (depot, &VAULT);
    assert_true (put_rest (&upload).whole);
    read_bytes = 0;
    assert_int_equal (read_turns (hash, BYTES, 0, bytes, &turns).code, TMQ_OK);
    assert_int_equal (read_bytes, PIECE);
}

static void what_is_known_of_files_is_bounded (void **state)
{
    (void) state;
    static summed_t summed;
    struct stat file = {.st_ino = 7};
    uint8_t of[TMQ_BLOB_HASH_BYTES] = {0};
    for (unsigned i = 0; i <= SUMMED_MAX; i++) {
        of[0] = (uint8_t) i;
        of[1] = (uint8_t) (i >> 8);
        assert_null (summed_find (&summed, of, &file));
        summed_add (&summed, of, &file, true);
        assert_non_null (summed_find (&summed, of, &file));
    }
    assert_int_equal (summed.count, SUMMED_MAX);
    assert_non_null (summed_find (&summed, of, &file));
    file.st_ctim.tv_nsec++; /* it has changed */
    assert_null (summed_find (&summed, of, &file));
    summed_add (&summed, of, &file, false);
    assert_false (summed_find (&summed, of, &file)->good);
    summed_forget (&summed, of);
    assert_null (summed_find (&summed, of, &file));
    of[0] = of[1] = 0;
    file.st_ctim.tv_nsec--;
    assert_null (summed_find (&summed, of, &file)); /* the first one went for the last */
}

int main (void)
{
    stage_begin ();
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (what_is_removed_meanwhile_hides_no_other),
        TEST (what_cannot_be_listed_is_not_passed),
        TEST (what_is_not_brought_is_told_as_it_is),
        TEST (a_damaged_file_hides_nothing_in_the_vault),
        TEST (a_large_file_is_summed_in_turns),
        TEST (what_was_put_into_the_vault_is_not_summed_again),
        TEST (what_is_known_of_files_is_bounded),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
