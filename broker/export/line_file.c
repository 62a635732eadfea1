/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: an append that fails half way is cut off at once or, if even that fails, before the next
 * append; the caller repeats. Nothing is removed or overwritten but by a file that takes its place:
 * one that is not ours is renamed. */
#include "export/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "disk.h"

enum { TAIL_BYTES = 64 * 1024, CHUNK_BYTES = 1024 * 1024 };

__attribute__ ((format (printf, 2, 3))) static bool fail (char *error, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (error, LINE_FILE_ERROR_SIZE, format, arguments);
    va_end (arguments);
    return false;
}

static bool open_file (line_file_t *self, char *error)
{
    struct stat info;
    self->fd = open (self->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (self->fd < 0)
        return fail (error, "cannot open %s: %s", self->path, strerror (errno));
    if (fstat (self->fd, &info) != 0 || fchmod (self->fd, 0600) != 0)
        return fail (error, "cannot use %s: %s", self->path, strerror (errno));
    if (!S_ISREG (info.st_mode))
        return fail (error, "%s is not a file", self->path);
    self->length = info.st_size;
    return true;
}

bool line_file_open (line_file_t *out, const char *path, char error[LINE_FILE_ERROR_SIZE])
{
    *out = (line_file_t){memory_text (path), -1, 0, false};
    return open_file (out, error);
}

void line_file_close (line_file_t *self)
{
    if (self->fd >= 0)
        close (self->fd);
    free (self->path);
    *self = (line_file_t){NULL, -1, 0, false};
}

enum { NONE = -1, UNREADABLE = -2, TOO_FAR = -3 };

/* Looks backward for the newest newline before end: its offset, or why there is none. */
static off_t newline_before (int fd, off_t end)
{
    char tail[TAIL_BYTES];
    off_t least = end > LINE_FILE_LINE_MAX ? end - LINE_FILE_LINE_MAX : 0;
    while (end > least) {
        off_t from = end - least > TAIL_BYTES ? end - TAIL_BYTES : least;
        ssize_t got = pread (fd, tail, (size_t) (end - from), from);
        if (got != end - from)
            return UNREADABLE;
        const char *newline = memrchr (tail, '\n', (size_t) got);
        if (newline != NULL)
            return from + (newline - tail);
        end = from;
    }
    return least > 0 ? TOO_FAR : NONE;
}

bool line_file_cut (line_file_t *self, char error[LINE_FILE_ERROR_SIZE])
{
    if (ftruncate (self->fd, self->length) != 0)
        return fail (error, "cannot cut %s: %s", self->path, strerror (errno));
    self->overhang = false;
    return true;
}

bool line_file_find_hole (const line_file_t *self, off_t *at, char error[LINE_FILE_ERROR_SIZE])
{
    char *chunk = memory_alloc (CHUNK_BYTES);
    off_t from = self->length > LINE_FILE_UNSYNCED_MAX ? self->length - LINE_FILE_UNSYNCED_MAX : 0;
    bool good = true;
    for (*at = -1; good && *at < 0 && from < self->length; from += CHUNK_BYTES) {
        off_t left = self->length - from;
        size_t length = left < CHUNK_BYTES ? (size_t) left : CHUNK_BYTES;
        good = line_file_read (self, from, chunk, length, error);
        const char *zero = good ? memchr (chunk, '\0', length) : NULL;
        if (zero != NULL)
            *at = from + (zero - chunk);
    }
    free (chunk);
    return good;
}

bool line_file_cut_at (line_file_t *self, off_t at, char error[LINE_FILE_ERROR_SIZE])
{
    off_t newline = newline_before (self->fd, at);
    if (newline == UNREADABLE || newline == TOO_FAR)
        return fail (error, "cannot read %s before byte %lld", self->path, (long long) at);
    self->length = newline + 1;
    return line_file_cut (self, error);
}

bool line_file_read_last (line_file_t *self, char **line, size_t *length, off_t *torn,
                          char error[LINE_FILE_ERROR_SIZE])
{
    *line = NULL;
    *length = 0;
    off_t last = newline_before (self->fd, self->length);
    off_t before = last > 0 ? newline_before (self->fd, last) : NONE;
    if (last == UNREADABLE || before == UNREADABLE)
        return fail (error, "cannot read %s: %s", self->path, strerror (errno));
    if (last == TOO_FAR || before == TOO_FAR) {
        *torn = 0;
        *line = memory_text ("");
        return true;
    }
    *torn = self->length - (last + 1);
    self->length = last + 1;
    self->overhang = *torn > 0;
    if (last < 0)
        return true;
    *length = (size_t) (last - before - 1);
    *line = memory_alloc (*length + 1);
    (*line)[*length] = '\0';
    if (pread (self->fd, *line, *length, before + 1) == (ssize_t) *length)
        return true;
    free (*line);
    *line = NULL;
    return fail (error, "cannot read %s: %s", self->path, strerror (errno));
}

/* The first name that nothing has yet: PATH.ENDING, PATH.ENDING.2, … */
static void free_name (const line_file_t *self, const char *ending, char *out, size_t size)
{
    struct stat info;
    snprintf (out, size, "%s.%s", self->path, ending);
    for (unsigned n = 2; lstat (out, &info) == 0; n++)
        snprintf (out, size, "%s.%s.%u", self->path, ending, n);
}

/* One that is to take the place of another one. */
static bool open_next (line_file_t *next, const line_file_t *self, char *error)
{
    char path[4096 + 32];
    snprintf (path, sizeof (path), "%s.next", self->path);
    unlink (path); /* a kill has left it, or somebody else's; it is of no use */
    if (line_file_open (next, path, error))
        return true;
    line_file_close (next);
    return false;
}

static void take_place (line_file_t *self, int fd)
{
    if (self->fd >= 0)
        close (self->fd);
    self->fd = fd;
    self->length = 0;
    self->overhang = false;
}

static bool put_in_place (line_file_t *self, line_file_t *next, const char *to, char *error)
{
    if (rename (self->path, to) != 0 && errno != ENOENT)
        return fail (error, "cannot rename %s: %s", self->path, strerror (errno));
    if (rename (next->path, self->path) == 0) {
        take_place (self, next->fd);
        next->fd = -1;
        return true;
    }
    fail (error, "cannot rename %s: %s", next->path, strerror (errno));
    if (rename (to, self->path) != 0)
        take_place (self, -1); /* it is opened by the next append */
    return false;
}

/* The file goes, and another one takes its place. That is opened before anything moves, so that a
 * failure leaves everything as it was. */
static bool move_away (line_file_t *self, const char *to, char *error)
{
    line_file_t next;
    if (!open_next (&next, self, error))
        return false;
    bool good = put_in_place (self, &next, to, error);
    if (!good)
        unlink (next.path);
    line_file_close (&next);
    return good;
}

bool line_file_set_aside (line_file_t *self, const char *ending, char error[LINE_FILE_ERROR_SIZE])
{
    char aside[4096 + 32];
    free_name (self, ending, aside, sizeof (aside));
    return move_away (self, aside, error);
}

static bool sync_directory (const line_file_t *self, char *error)
{
    return disk_sync_parent (self->path) == 0 ||
           fail (error, "cannot sync the directory of %s: %s", self->path, strerror (errno));
}

bool line_file_sync (const line_file_t *self, char error[LINE_FILE_ERROR_SIZE])
{
    return fdatasync (self->fd) == 0 ||
           fail (error, "cannot sync %s: %s", self->path, strerror (errno));
}

bool line_file_turn (line_file_t *self, const char *to, char error[LINE_FILE_ERROR_SIZE])
{
    return (self->fd < 0 || line_file_sync (self, error)) && move_away (self, to, error) &&
           sync_directory (self, error);
}

bool line_file_read (const line_file_t *self, off_t from, void *out, size_t length,
                     char error[LINE_FILE_ERROR_SIZE])
{
    ssize_t got = pread (self->fd, out, length, from);
    if (got == (ssize_t) length)
        return true;
    return fail (error, "cannot read %s: %s", self->path,
                 got < 0 ? strerror (errno) : "it ends too early");
}

bool line_file_replace (line_file_t *self, line_file_t *by, char error[LINE_FILE_ERROR_SIZE])
{
    if (!line_file_sync (by, error))
        return false;
    if (rename (by->path, self->path) != 0)
        return fail (error, "cannot rename %s: %s", by->path, strerror (errno));
    close (self->fd);
    self->fd = by->fd;
    self->length = by->length;
    self->overhang = false;
    by->fd = -1;
    line_file_close (by);
    return sync_directory (self, error);
}

bool line_file_append (line_file_t *self, const void *lines, size_t length,
                       char error[LINE_FILE_ERROR_SIZE])
{
    if (self->fd < 0 && !open_file (self, error))
        return false;
    if (self->overhang && !line_file_cut (self, error))
        return false;
    if (disk_write_at (self->fd, lines, length, (uint64_t) self->length) != 0) {
        fail (error, "cannot write %s: %s", self->path, strerror (errno));
        char ignored[LINE_FILE_ERROR_SIZE];
        self->overhang = true;
        line_file_cut (self, ignored);
        return false;
    }
    self->length += (off_t) length;
    return true;
}

bool line_file_is_changed (const line_file_t *self)
{
    struct stat ours;
    struct stat theirs;
    if (fstat (self->fd, &ours) != 0)
        return false; /* nothing is known; the next append says why */
    if (stat (self->path, &theirs) != 0 || ours.st_ino != theirs.st_ino ||
        ours.st_dev != theirs.st_dev)
        return true;
    return self->overhang ? ours.st_size < self->length : ours.st_size != self->length;
}
