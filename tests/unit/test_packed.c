/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Packed files: the same text comes out from any place, a kill in the middle loses nothing, and
 * what somebody planted or damaged ends with an error, in little memory. */
#include "support/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "export/packer.h"
#include "packed.h"
#include "store_support.h"

enum { TEXT_BYTES = 2 * PACKED_FRAME_BYTES + 12345 };

static char directory[64];
static char plain[128];
static char packed[160];
static char beside[192];
static char text[TEXT_BYTES];
static char got[TEXT_BYTES + 1];
static bool disk_full;

ssize_t __real_write (int fd, const void *bytes, size_t length);
ssize_t __wrap_write (int fd, const void *bytes, size_t length);
ssize_t __wrap_write (int fd, const void *bytes, size_t length)
{
    if (disk_full) {
        errno = ENOSPC;
        return -1;
    }
    return __real_write (fd, bytes, length);
}

static void put_bytes (const char *path, const void *bytes, size_t length)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true (fd >= 0);
    assert_int_equal (pwrite (fd, bytes, length, 0), length);
    /* Last: of a file that was cut to nothing ext4 waits for the disk. */
    assert_int_equal (ftruncate (fd, (off_t) length), 0);
    close (fd);
}

static int setup (void **state)
{
    (void) state;
    directory_make (directory);
    snprintf (plain, sizeof (plain), "%s/audit-0001.jsonl", directory);
    snprintf (packed, sizeof (packed), "%s" PACKED_ENDING, plain);
    snprintf (beside, sizeof (beside), "%s.new", packed);
    for (size_t i = 0; i < TEXT_BYTES; i++)
        text[i] = i % 97 == 96 ? '\n' : (char) ('a' + (i * i / 7) % 26);
    text[TEXT_BYTES - 1] = '\n';
    put_bytes (plain, text, TEXT_BYTES);
    disk_full = false;
    return 0;
}

static int teardown (void **state)
{
    (void) state;
    directory_remove (directory);
    return 0;
}

static bool is_there (const char *path)
{
    struct stat info;
    return lstat (path, &info) == 0;
}

static shared_limit_t free_bytes_min;

/* So many steps, or all of them (-1). */
static packer_state_t pack_steps (int steps)
{
    char error[PACKER_ERROR_SIZE];
    packer_t *packer = packer_new (plain, &free_bytes_min);
    packer_state_t state = PACKER_MORE;
    while (state == PACKER_MORE && steps-- != 0)
        state = packer_step (packer, error);
    if (state != PACKER_MORE)
        packer_free (&packer);
    return state; /* a child that is killed frees nothing */
}

static ssize_t read_whole (const char *path)
{
    packed_t *file = packed_open (path, true);
    if (file == NULL)
        return -1;
    ssize_t length = packed_read (file, got, sizeof (got), 0);
    int reason = errno;
    packed_close (&file);
    errno = reason;
    return length;
}

static void assert_text (const char *path)
{
    assert_int_equal (read_whole (path), TEXT_BYTES);
    assert_memory_equal (got, text, TEXT_BYTES);
}

static void the_same_comes_out (void **state)
{
    (void) state;
    struct stat before, after;
    const struct timespec times[] = {{1700000000, 0}, {1700000001, 0}};
    assert_int_equal (utimensat (AT_FDCWD, plain, times, 0), 0);
    assert_int_equal (stat (plain, &before), 0);
    assert_text (plain);
    assert_int_equal (pack_steps (-1), PACKER_DONE);
    assert_false (is_there (plain));
    assert_false (is_there (beside));
    assert_int_equal (stat (packed, &after), 0);
    assert_int_equal (after.st_mtim.tv_sec, before.st_mtim.tv_sec);
    assert_int_equal (after.st_mode & 0777, 0600);
    assert_true (after.st_size < before.st_size);
    assert_text (packed);
    assert_text (plain); /* by its old name */
    /* From any place, backwards too. */
    packed_t *file = packed_open (packed, true);
    for (size_t at = TEXT_BYTES; at-- > 0; at -= at > 70001 ? 70001 : at) {
        size_t length = TEXT_BYTES - at < 300000 ? TEXT_BYTES - at : 300000;
        assert_int_equal (packed_read (file, got, length, at), length);
        assert_memory_equal (got, text + at, length);
    }
    assert_int_equal (packed_read (file, got, 1, TEXT_BYTES), 0);
    assert_int_equal (packed_read (file, got, 1, UINT64_C (1) << 60), 0);
    packed_close (&file);
}

static void assert_lines (const char *path)
{
    const char *line;
    size_t length;
    bool whole;
    size_t at = 0;
    packed_t *file = packed_open (path, true);
    assert_non_null (file);
    while (packed_line (file, &line, &length, &whole) == 1) {
        assert_true (whole);
        assert_memory_equal (line, text + at, length);
        at += length;
        assert_int_equal (text[at++], '\n');
    }
    assert_int_equal (at, TEXT_BYTES);
    packed_close (&file);
}

static void lines_come_out (void **state)
{
    (void) state;
    assert_lines (plain);
    assert_int_equal (pack_steps (-1), PACKER_DONE);
    assert_lines (packed);
}

/* After each number of steps a kill: the text is there under the name, and the next try ends. */
static void a_kill_loses_nothing (void **state)
{
    (void) state;
    int steps = 0;
    for (bool ended = false; !ended; steps++) {
        put_bytes (plain, text, TEXT_BYTES);
        unlink (packed);
        fflush (NULL);
        pid_t child = fork ();
        if (child == 0)
            _exit (pack_steps (steps) == PACKER_DONE);
        int status;
        assert_int_equal (waitpid (child, &status, 0), child);
        ended = WEXITSTATUS (status) != 0;
        assert_true (is_there (plain) || is_there (packed));
        assert_text (plain);
        if (is_there (packed)) /* by this name it is whole */
            assert_text (packed);
        if (!ended)
            assert_int_equal (pack_steps (-1), PACKER_DONE);
        assert_false (is_there (plain));
        assert_false (is_there (beside));
        assert_text (packed);
    }
    assert_int_equal (steps - 1, 8); /* open, three frames, the end, sync, name, remove */
}

static void a_full_disk_loses_nothing (void **state)
{
    (void) state;
    disk_full = true;
    packer_state_t state_now = pack_steps (-1);
    disk_full = false;
    assert_int_equal (state_now, PACKER_FAILED);
    assert_false (is_there (beside));
    assert_false (is_there (packed));
    assert_text (plain);
}

/* What the broker leaves free is not for packing. */
static void it_leaves_what_must_be_free (void **state)
{
    (void) state;
    free_bytes_min = UINT64_MAX / 2;
    assert_int_equal (pack_steps (-1), PACKER_FAILED);
    free_bytes_min = 0;
    assert_false (is_there (beside));
    assert_false (is_there (packed));
    assert_text (plain);
    assert_int_equal (pack_steps (-1), PACKER_DONE);
    assert_text (packed);
}

/* Of a file that was cut somewhere nothing comes out that was not there. */
static void a_cut_shows (void **state)
{
    (void) state;
    struct stat info;
    assert_int_equal (pack_steps (-1), PACKER_DONE);
    assert_int_equal (stat (packed, &info), 0);
    for (off_t length = info.st_size - 1; length > 0; length -= 9973) {
        assert_int_equal (truncate (packed, length), 0);
        ssize_t came = read_whole (packed);
        if (came >= 0) { /* between two frames: no name of a packed file ever stands for that */
            assert_int_equal (came % PACKED_FRAME_BYTES, 0);
            assert_memory_equal (got, text, (size_t) came);
        } else {
            assert_int_equal (errno, EBADMSG);
        }
    }
}

static void a_changed_byte_shows (void **state)
{
    (void) state;
    char bytes[512];
    put_bytes (plain, text, 1000);
    assert_int_equal (pack_steps (-1), PACKER_DONE);
    FILE *file = fopen (packed, "r");
    size_t length = fread (bytes, 1, sizeof (bytes), file);
    fclose (file);
    assert_in_range (length, 10, sizeof (bytes) - 1);
    for (size_t i = 0; i < length * 8; i++) {
        bytes[i / 8] ^= (char) (1 << i % 8);
        put_bytes (packed, bytes, length);
        ssize_t came = read_whole (packed);
        /* A bit that means nothing may be another one; the text may not. */
        assert_true (came == -1 || (came == 1000 && memcmp (got, text, 1000) == 0));
        bytes[i / 8] ^= (char) (1 << i % 8);
    }
}

static size_t compress (void *out, size_t size, const void *bytes, size_t length, bool told)
{
    ZSTD_CCtx *context = ZSTD_createCCtx ();
    ZSTD_CCtx_setParameter (context, ZSTD_c_contentSizeFlag, told);
    size_t made = ZSTD_compress2 (context, out, size, bytes, length);
    ZSTD_freeCCtx (context);
    assert_false (ZSTD_isError (made));
    return made;
}

static void assert_refused (const void *bytes, size_t length, int reason)
{
    put_bytes (packed, bytes, length);
    assert_int_equal (read_whole (packed), -1);
    assert_int_equal (errno, reason);
    assert_non_null (packed_problem (reason));
}

/* What others packed, or what is to fill the memory. */
static void a_bomb_is_refused (void **state)
{
    (void) state;
    static char zeros[PACKED_FRAME_BYTES + 1];
    char frame[4096];
    unlink (plain);
    size_t length = compress (frame, sizeof (frame), zeros, sizeof (zeros), true);
    assert_refused (frame, length, EFBIG);
    length = compress (frame, sizeof (frame), zeros, 100, false);
    assert_refused (frame, length, EFBIG);
    /* Behind a good frame, too. */
    length = compress (frame, sizeof (frame), zeros, PACKED_FRAME_BYTES, true);
    length += compress (frame + length, sizeof (frame) - length, zeros, sizeof (zeros), true);
    assert_refused (frame, length, EFBIG);
    static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4};
    assert_refused (skippable, sizeof (skippable), EBADMSG);
    assert_refused ("{\"n\":1}\n", 8, EBADMSG);
    /* A file that says less than it unpacks to. */
    length = compress (frame, sizeof (frame), zeros, PACKED_FRAME_BYTES, true);
    uint32_t said;
    memcpy (&said, frame + 5, sizeof (said)); /* behind the magic and one byte of flags */
    assert_int_equal (said, PACKED_FRAME_BYTES);
    said = 1000;
    memcpy (frame + 5, &said, sizeof (said));
    assert_refused (frame, length, EBADMSG);
}

/* A line without an end neither fills the memory nor hides the next one. */
static void a_long_line_is_cut (void **state)
{
    (void) state;
    const char *line;
    size_t length;
    bool whole;
    size_t lines = 0;
    memset (text, 'x', TEXT_BYTES);
    memcpy (text + TEXT_BYTES - 6, "\nnext\n", 6);
    put_bytes (plain, text, TEXT_BYTES);
    assert_int_equal (pack_steps (-1), PACKER_DONE);
    packed_t *file = packed_open (packed, true);
    while (packed_line (file, &line, &length, &whole) == 1) {
        lines++;
        assert_true (lines == 1 ? length > PACKED_LINE_MAX && length < 3 * PACKED_LINE_MAX
                                : length == 4 && memcmp (line, "next", 4) == 0);
    }
    assert_int_equal (lines, 2);
    packed_close (&file);
}

static void only_files_of_ours (void **state)
{
    (void) state;
    char target[192];
    snprintf (target, sizeof (target), "%s/elsewhere", directory);
    assert_int_equal (rename (plain, target), 0);
    assert_int_equal (symlink ("elsewhere", plain), 0);
    assert_null (packed_open (plain, true));
    assert_int_equal (pack_steps (-1), PACKER_FAILED);
    assert_true (is_there (target));
    packed_t *file = packed_open (plain, false);
    assert_non_null (file);
    packed_close (&file);
    unlink (plain);
    assert_int_equal (mkfifo (plain, 0600), 0);
    assert_null (packed_open (plain, true));
    unlink (plain);
    assert_null (packed_open (plain, true));
    assert_int_equal (errno, ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (the_same_comes_out),          TEST (lines_come_out),
        TEST (a_kill_loses_nothing),        TEST (a_full_disk_loses_nothing),
        TEST (it_leaves_what_must_be_free), TEST (a_cut_shows),
        TEST (a_changed_byte_shows),        TEST (a_bomb_is_refused),
        TEST (a_long_line_is_cut),          TEST (only_files_of_ours)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
