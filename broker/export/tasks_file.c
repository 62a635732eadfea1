/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: an append that fails half way is cut off at once or, if even that fails, before the next
 * append; the caller repeats. Nothing is ever removed or overwritten: a foreign file is renamed. */
#include "export/tasks_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "ids.h"

enum { TAIL_BYTES = 64 * 1024 };

struct tasks_file {
    char *path;
    int fd;
    off_t length;  /* of the whole lines */
    bool overhang; /* a failed append may have left bytes behind them */
};

__attribute__ ((format (printf, 2, 3))) static bool fail (char *error, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (error, TASKS_FILE_ERROR_SIZE, format, arguments);
    va_end (arguments);
    return false;
}

static bool open_file (tasks_file_t *self, char *error)
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

/* Looks backward for the newest newline before end: its offset, -1 if there is none, -2 if the file
 * cannot be read. */
static off_t newline_before (int fd, off_t end)
{
    static const off_t unreadable = -2;
    char tail[TAIL_BYTES];
    while (end > 0) {
        off_t from = end > TAIL_BYTES ? end - TAIL_BYTES : 0;
        ssize_t got = pread (fd, tail, (size_t) (end - from), from);
        if (got != end - from)
            return unreadable;
        const char *newline = memrchr (tail, '\n', (size_t) got);
        if (newline != NULL)
            return from + (newline - tail);
        end = from;
    }
    return -1;
}

static bool cut (tasks_file_t *self, char *error)
{
    if (ftruncate (self->fd, self->length) != 0)
        return fail (error, "cannot cut %s: %s", self->path, strerror (errno));
    self->overhang = false;
    return true;
}

/* The members of a line that say where it stands; false if it is none of ours. */
static bool line_parse (const char *line, size_t length, tasks_file_end_t *end)
{
    json_t *object = json_loadb (line, length, 0, NULL);
    json_int_t pos = json_integer_value (json_object_get (object, "pos"));
    const char *id = json_string_value (json_object_get (object, "task_id"));
    bool ours = pos > 0 && id != NULL && id_parse (&end->id, id);
    end->pos = ours ? (uint64_t) pos : 0;
    json_decref (object);
    return ours;
}

/* Cuts off a torn last line and reads the one before it. *foreign: it is none of ours. */
static bool read_end (tasks_file_t *self, tasks_file_end_t *end, bool *foreign, char *error)
{
    memset (end, 0, sizeof (*end));
    *foreign = false;
    off_t size = self->length;
    off_t last = newline_before (self->fd, size);
    off_t before = last > 0 ? newline_before (self->fd, last) : -1;
    if (last < -1 || before < -1)
        return fail (error, "cannot read %s: %s", self->path, strerror (errno));
    self->length = last + 1;
    if (last < 0) {
        /* Not one whole line: the beginning of our first one, or something else altogether. */
        char first = '{';
        *foreign = size > 0 && (pread (self->fd, &first, 1, 0) != 1 || first != '{');
        return *foreign || size == 0 || cut (self, error);
    }
    if (size > self->length && !cut (self, error))
        return false;
    size_t length = (size_t) (last - before - 1);
    char *line = memory_alloc (length);
    bool read = pread (self->fd, line, length, before + 1) == (ssize_t) length;
    *foreign = read && !line_parse (line, length, end);
    free (line);
    return read || fail (error, "cannot read %s: %s", self->path, strerror (errno));
}

/* The first name that nothing has yet: PATH.foreign, PATH.foreign.2, … */
static void free_name (const tasks_file_t *self, char *out, size_t size)
{
    struct stat info;
    snprintf (out, size, "%s.foreign", self->path);
    for (unsigned n = 2; lstat (out, &info) == 0; n++)
        snprintf (out, size, "%s.foreign.%u", self->path, n);
}

bool tasks_file_set_aside (tasks_file_t *self, char error[TASKS_FILE_ERROR_SIZE])
{
    char aside[4096 + 32];
    free_name (self, aside, sizeof (aside));
    if (rename (self->path, aside) != 0 && errno != ENOENT)
        return fail (error, "cannot rename %s: %s", self->path, strerror (errno));
    close (self->fd);
    self->overhang = false;
    return open_file (self, error);
}

tasks_file_t *tasks_file_open (const char *path, uint64_t last_pos, tasks_file_end_t *end,
                               bool *set_aside, char error[TASKS_FILE_ERROR_SIZE])
{
    tasks_file_t *self = memory_zero (1, sizeof (*self));
    self->path = memory_text (path);
    self->fd = -1;
    bool good = open_file (self, error) && read_end (self, end, set_aside, error);
    *set_aside = good && (*set_aside || end->pos > last_pos);
    if (*set_aside) {
        memset (end, 0, sizeof (*end));
        good = tasks_file_set_aside (self, error);
    }
    if (!good)
        tasks_file_close (&self);
    return self;
}

void tasks_file_close (tasks_file_t **self_p)
{
    tasks_file_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->fd >= 0)
        close (self->fd);
    free (self->path);
    free (self);
}

bool tasks_file_append (tasks_file_t *self, const void *lines, size_t length,
                        char error[TASKS_FILE_ERROR_SIZE])
{
    if (self->overhang && !cut (self, error))
        return false;
    size_t done = 0;
    while (done < length) {
        ssize_t written = pwrite (self->fd, (const char *) lines + done, length - done,
                                  self->length + (off_t) done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            fail (error, "cannot write %s: %s", self->path, strerror (errno));
            char ignored[TASKS_FILE_ERROR_SIZE];
            self->overhang = true;
            cut (self, ignored);
            return false;
        }
        done += (size_t) written;
    }
    self->length += (off_t) length;
    return true;
}

bool tasks_file_is_changed (const tasks_file_t *self)
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
