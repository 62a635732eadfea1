/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/archive/archive_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "disk.h"

/* Writing. */

static bool put (archive_writer_t *self, const uint8_t *bytes, size_t length)
{
    self->unsynced = true;
    if (disk_write_at (self->fd, bytes, length, self->bytes) != 0)
        return false;
    self->bytes += length;
    return true;
}

static void path_of (const archive_writer_t *self, char out[ARCHIVE_PATH_SIZE], bool open)
{
    char name[ARCHIVE_NAME_SIZE];
    archive_name (name, &self->header, open);
    snprintf (out, ARCHIVE_PATH_SIZE, "%s/%s", self->directory, name);
}

static void prepare (archive_writer_t *self, const char *directory, const archive_header_t *header,
                     int64_t mono_ms)
{
    *self = (archive_writer_t){
        .fd = -1, .header = *header, .last = header->previous, .opened_ms = mono_ms};
    snprintf (self->directory, sizeof (self->directory), "%s", directory);
}

bool archive_writer_begin (archive_writer_t *self, const char *directory,
                           const archive_header_t *header, int64_t mono_ms)
{
    char path[ARCHIVE_PATH_SIZE];
    uint8_t head[ARCHIVE_HEADER_BYTES];
    prepare (self, directory, header, mono_ms);
    path_of (self, path, true);
    archive_pack_header (head, header);
    self->sum = archive_sum_begin (head);
    self->fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (self->fd >= 0 && put (self, head, sizeof (head)) && disk_sync_directory (directory) == 0)
        return true;
    int error = errno;
    archive_writer_leave (self);
    errno = error;
    return false;
}

bool archive_writer_resume (archive_writer_t *self, const char *directory,
                            const archive_reading_t *read, int64_t mono_ms)
{
    char path[ARCHIVE_PATH_SIZE];
    prepare (self, directory, &read->header, mono_ms);
    path_of (self, path, true);
    self->bytes = read->at;
    self->batches = read->batches;
    self->sum = read->sum;
    if (read->batches > 0)
        self->last = read->last.no;
    self->fd = open (path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    self->unsynced = true; /* nobody knows */
    if (self->fd >= 0 && ftruncate (self->fd, (off_t) read->at) == 0)
        return true;
    int error = errno;
    archive_writer_leave (self);
    errno = error;
    return false;
}

bool archive_writer_add (archive_writer_t *self, const uint8_t *frame, size_t bytes, uint64_t last)
{
    if (!put (self, frame, bytes))
        return false;
    self->sum = archive_sum_add (self->sum, frame, bytes);
    self->batches++;
    self->last = last;
    return true;
}

static bool has_its_name (const archive_writer_t *self)
{
    char path[ARCHIVE_PATH_SIZE];
    struct stat named;
    struct stat held;
    path_of (self, path, true);
    if (lstat (path, &named) != 0 || fstat (self->fd, &held) != 0)
        return false;
    errno = ENOENT;
    return named.st_dev == held.st_dev && named.st_ino == held.st_ino;
}

bool archive_writer_sync (archive_writer_t *self)
{
    if (self->fd < 0 || !self->unsynced)
        return true;
    self->unsynced = fdatasync (self->fd) != 0;
    return !self->unsynced && has_its_name (self);
}

bool archive_writer_close (archive_writer_t *self)
{
    uint8_t trailer[ARCHIVE_TRAILER_BYTES];
    char from[ARCHIVE_PATH_SIZE];
    char to[ARCHIVE_PATH_SIZE];
    if (self->fd < 0)
        return true;
    archive_pack_trailer (trailer, self->batches, self->last, self->sum);
    path_of (self, from, true);
    path_of (self, to, false);
    bool good = put (self, trailer, sizeof (trailer)) && archive_writer_sync (self) &&
                rename (from, to) == 0 && disk_sync_directory (self->directory) == 0;
    int error = errno;
    archive_writer_leave (self);
    errno = error;
    return good;
}

void archive_writer_leave (archive_writer_t *self)
{
    if (self->fd >= 0)
        close (self->fd);
    self->fd = -1;
}

/* Reading. */

static int by_place (const void *a, const void *b)
{
    const archive_file_t *x = a;
    const archive_file_t *y = b;
    const uint64_t of_x[] = {x->header.generation, x->header.epoch, x->header.previous, x->open};
    const uint64_t of_y[] = {y->header.generation, y->header.epoch, y->header.previous, y->open};
    for (size_t i = 0; i < sizeof (of_x) / sizeof (of_x[0]); i++)
        if (of_x[i] != of_y[i])
            return of_x[i] < of_y[i] ? -1 : 1;
    return 0;
}

bool archive_list (archive_list_t *out, const char *directory, uint64_t generation)
{
    size_t capacity = 0;
    *out = (archive_list_t){NULL, 0};
    DIR *entries = opendir (directory);
    if (entries == NULL)
        return false;
    errno = 0;
    for (const struct dirent *entry; (entry = readdir (entries)) != NULL; errno = 0) {
        archive_file_t file = {.bytes = 0};
        struct stat info;
        if (!archive_name_read (entry->d_name, &file.header, &file.open) ||
            (generation != 0 && file.header.generation != generation) ||
            fstatat (dirfd (entries), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG (info.st_mode))
            continue;
        archive_name (file.name, &file.header, file.open);
        file.bytes = (uint64_t) info.st_size;
        file.changed_ms = (int64_t) info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
        out->files = memory_grow (out->files, &capacity, out->count, sizeof (file));
        out->files[out->count++] = file;
    }
    int error = errno;
    closedir (entries);
    if (error != 0) {
        archive_list_free (out);
        errno = error;
        return false;
    }
    if (out->count > 0)
        qsort (out->files, out->count, sizeof (out->files[0]), by_place);
    return true;
}

void archive_list_free (archive_list_t *self)
{
    free (self->files);
    *self = (archive_list_t){NULL, 0};
}

static bool load_all (bytes_t *out, int fd)
{
    struct stat info;
    if (fstat (fd, &info) != 0)
        return false;
    if (!S_ISREG (info.st_mode) || info.st_size > ARCHIVE_FILE_BYTES_MAX) {
        errno = EFBIG;
        return false;
    }
    size_t wanted = (size_t) info.st_size;
    uint8_t *room = bytes_reserve (out, wanted);
    if (room == NULL) {
        errno = ENOMEM;
        return false;
    }
    while (out->length < wanted) {
        ssize_t got = read (fd, out->data + out->length, wanted - out->length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break; /* it was cut meanwhile */
        out->length += (size_t) got;
    }
    return true;
}

bool archive_load (bytes_t *out, const char *directory, const char *name)
{
    char path[ARCHIVE_PATH_SIZE];
    snprintf (path, sizeof (path), "%s/%s", directory, name);
    bytes_clear (out);
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    bool good = load_all (out, fd);
    int error = errno;
    close (fd);
    errno = error;
    return good;
}

bool archive_load_last (uint64_t *out, const char *directory, const char *name)
{
    uint8_t trailer[ARCHIVE_TRAILER_BYTES];
    char path[ARCHIVE_PATH_SIZE];
    struct stat info;
    snprintf (path, sizeof (path), "%s/%s", directory, name);
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    bool good = fstat (fd, &info) == 0 &&
                info.st_size >= ARCHIVE_HEADER_BYTES + (off_t) sizeof (trailer) &&
                pread (fd, trailer, sizeof (trailer), info.st_size - (off_t) sizeof (trailer)) ==
                    (ssize_t) sizeof (trailer) &&
                archive_trailer_last (out, trailer);
    close (fd);
    return good;
}
