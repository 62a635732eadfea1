/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "logs_stage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const shelf_limits_t LIMITS = {.stream_bytes = 1 << 20, .disk_bytes = 64 << 20, .tasks = 1000};

char place[64];
char directory[96];
shelf_t *shelf;

log_key_t key_of (int64_t number)
{
    log_key_t key = {.number = number, .ns = "default", .attempt = 1, .stream = TMQ_LOG_OUT};
    key.id.bytes[0] = (uint8_t) number;
    return key;
}

void open_shelf (const shelf_limits_t *limits)
{
    int error = 0;
    shelf = shelf_new (directory, limits, &error);
    assert_non_null (shelf);
}

int setup (void **state)
{
    (void) state;
    directory_make (place);
    snprintf (directory, sizeof (directory), "%s/logs", place);
    open_shelf (&LIMITS);
    return 0;
}

int teardown (void **state)
{
    (void) state;
    char command[160];
    shelf_free (&shelf);
    snprintf (command, sizeof (command), "rm -rf '%s'", place);
    return system (command);
}

int put (const log_key_t *key, uint64_t offset, const void *bytes, size_t length)
{
    log_piece_t *piece = log_piece_new (key, offset, bytes, length);
    int error = shelf_write (shelf, piece, 0);
    log_piece_free (piece);
    return error;
}

void put_text (const log_key_t *key, uint64_t offset, const char *text)
{
    assert_int_equal (put (key, offset, text, strlen (text)), 0);
}

shelf_page_t page_at (const log_key_t *key, uint64_t offset, char *out, size_t limit)
{
    shelf_page_t page;
    assert_int_equal (shelf_read (shelf, key, offset, (uint8_t *) out, limit, &page), 0);
    return page;
}

void expect (const log_key_t *key, uint64_t offset, uint64_t begins, const char *text)
{
    char bytes[256];
    shelf_page_t page = page_at (key, offset, bytes, sizeof (bytes));
    assert_int_equal (page.length, strlen (text));
    assert_memory_equal (bytes, text, page.length);
    if (page.length > 0)
        assert_int_equal (page.offset, begins);
}

void path_of (char out[200], int64_t number, const char *name)
{
    snprintf (out, 200, "%s/%llx/%s", directory, (unsigned long long) number >> 8, name);
}

int read_error;
size_t reads_before_error;
off_t unreadable_at;
uint64_t read_bytes;

ssize_t __real_pread (int fd, void *out, size_t length, off_t at);
ssize_t __wrap_pread (int fd, void *out, size_t length, off_t at);
ssize_t __wrap_pread (int fd, void *out, size_t length, off_t at)
{
    if (read_error != 0 && reads_before_error == 0) {
        errno = read_error;
        return -1;
    }
    if (unreadable_at > 0 && at <= unreadable_at && unreadable_at < at + (off_t) length) {
        errno = EIO;
        return -1;
    }
    reads_before_error -= reads_before_error > 0;
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

/* … and so, where it checks the room. */
ssize_t __wrap___pread64_chk (int fd, void *out, size_t length, off_t at, size_t room);
ssize_t __wrap___pread64_chk (int fd, void *out, size_t length, off_t at, size_t room)
{
    assert_true (length <= room);
    return __wrap_pread (fd, out, length, at);
}

ssize_t __wrap___pread_chk (int fd, void *out, size_t length, off_t at, size_t room);
ssize_t __wrap___pread_chk (int fd, void *out, size_t length, off_t at, size_t room)
{
    assert_true (length <= room);
    return __wrap_pread (fd, out, length, at);
}
