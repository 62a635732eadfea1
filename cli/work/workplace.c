/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "work/workplace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/spool.h"

/* Making. */

char *workplace_path (const char *place, const char *name)
{
    char *path = must_alloc (strlen (place) + strlen (name) + 2);
    sprintf (path, "%s/%s", place, name);
    return path;
}

char *workplace_kept (const char *place)
{
    char *path = must_alloc (strlen (place) + sizeof "-artifacts");
    sprintf (path, "%s-artifacts", place);
    return path;
}

static bool make_inner (const char *place, const char *name)
{
    char *path = workplace_path (place, name);
    const bool made = mkdir (path, 0700) == 0;
    free (path);
    return made;
}

char *workplace_make (void)
{
    const char *directory = getenv ("TMPDIR");
    char *place = workplace_path (directory && *directory ? directory : "/tmp", "taskmq-XXXXXX");
    bool slow;
    const bool made = mkdtemp (place) != NULL;
    if (made && make_inner (place, WORKPLACE_WORK) && make_inner (place, WORKPLACE_ARTIFACTS))
        return place;
    const int reason = errno;
    if (made)
        workplace_remove (place, UINT64_MAX, &slow);
    free (place);
    errno = reason;
    return NULL;
}

static int make_file (const char *place, const char *name)
{
    char *path = workplace_path (place, name);
    const int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    free (path);
    return fd;
}

static void close_quietly (int fd)
{
    const int reason = errno;
    close (fd);
    errno = reason;
}

bool workplace_write (const char *place, const char *name, const void *data, size_t bytes)
{
    const int fd = make_file (place, name);
    if (fd < 0)
        return false;
    const bool good = spool_write (fd, data, bytes);
    close_quietly (fd);
    return good;
}

bool workplace_copy (const char *place, const char *name, int from)
{
    enum { PIECE_BYTES = 64 * 1024 };
    char *piece = must_alloc (PIECE_BYTES);
    const int fd = make_file (place, name);
    off_t at = 0;
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0) {
        n = pread (from, piece, PIECE_BYTES, at);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0 && !spool_write (fd, piece, (size_t) n))
            n = -1;
        else if (n > 0)
            at += n;
    }
    free (piece);
    if (fd >= 0)
        close_quietly (fd);
    return n == 0;
}

/* Removing.
 *
 * No tree is walked: of a directory that is not empty the files are removed and the directories
 * moved up to the top, so that any depth costs two descriptors and no memory. */

typedef struct removal {
    int top;
    unsigned moved; /* for names */
    uint64_t deadline_ms;
    bool progress;
} removal_t;

enum { ENTRIES_BYTES = 4096 };

static bool is_over (const removal_t *self)
{
    return mono_ms () >= self->deadline_ms;
}

/* Calls `take` for what is in it, and goes on where that takes entries away. */
static void for_each_entry (removal_t *self, int fd, void (*take) (removal_t *, int, const char *))
{
    _Alignas(struct dirent64) char entries[ENTRIES_BYTES];
    ssize_t bytes;
    while (!is_over (self) && (bytes = getdents64 (fd, entries, sizeof entries)) > 0) {
        for (ssize_t at = 0; at < bytes;) {
            const struct dirent64 *entry = (const struct dirent64 *) (void *) (entries + at);
            if (strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0)
                take (self, fd, entry->d_name);
            at += entry->d_reclen;
        }
    }
}

/* A file, or a directory that is empty. */
static bool remove_plain (removal_t *self, int fd, const char *name)
{
    const bool gone = unlinkat (fd, name, 0) == 0 || unlinkat (fd, name, AT_REMOVEDIR) == 0;
    self->progress = self->progress || gone;
    return gone;
}

/* Without snprintf, which may not be called here. */
static void number_name (char out[16], unsigned number)
{
    char *at = out + 15;
    *at = '\0';
    do
        *--at = (char) ('0' + number % 10);
    while ((number /= 10) > 0);
    memmove (out, at, (size_t) (out + 16 - at));
}

static void empty_inner (removal_t *self, int fd, const char *name)
{
    char place[16];
    if (remove_plain (self, fd, name))
        return;
    number_name (place, self->moved++);
    if (renameat (fd, name, self->top, place) == 0 ||
        (fchmodat (fd, name, 0700, 0) == 0 && renameat (fd, name, self->top, place) == 0))
        self->progress = true;
}

static void empty_top (removal_t *self, int top, const char *name)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (remove_plain (self, top, name))
        return;
    int fd = openat (top, name, how);
    struct stat status;
    if (fd < 0 || (fstat (fd, &status) == 0 && (status.st_mode & 0700) != 0700)) {
        if (fd >= 0)
            close (fd);
        /* The program took the rights from itself. */
        fd = fchmodat (top, name, 0700, 0) == 0 ? openat (top, name, how) : -1;
    }
    if (fd < 0)
        return;
    for_each_entry (self, fd, empty_inner);
    close (fd);
    remove_plain (self, top, name);
}

bool workplace_keep (const char *artifacts, const char *kept)
{
    if (rmdir (artifacts) == 0 || (errno != ENOTEMPTY && errno != EEXIST))
        return false;
    return rename (artifacts, kept) == 0;
}

bool workplace_remove (const char *place, uint64_t longest_ms, bool *slow)
{
    const uint64_t now_ms = mono_ms ();
    removal_t self = {.deadline_ms =
                          longest_ms > UINT64_MAX - now_ms ? UINT64_MAX : now_ms + longest_ms};
    *slow = false;
    chmod (place, 0700);
    self.top = open (place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (self.top < 0)
        return errno == ENOENT;
    do {
        self.progress = false;
        lseek (self.top, 0, SEEK_SET);
        for_each_entry (&self, self.top, empty_top);
        *slow = is_over (&self);
    } while (self.progress && !*slow);
    close (self.top);
    return rmdir (place) == 0;
}
