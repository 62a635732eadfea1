/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/archive/archive_spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "disk.h"
#include "store/archive/archive_blobs.h"

static const char ENDING[] = ".piece";

void spool_name (char out[SPOOL_NAME_SIZE], uint64_t serial)
{
    snprintf (out, SPOOL_NAME_SIZE, "%020" PRIu64 "%s", serial, ENDING);
}

static bool read_name (const char *name, uint64_t *serial)
{
    char again[SPOOL_NAME_SIZE];
    if (sscanf (name, "%20" SCNu64, serial) != 1)
        return false;
    spool_name (again, *serial);
    return strcmp (name, again) == 0;
}

static void path_of (const archive_spool_t *self, char out[ARCHIVE_PATH_SIZE], uint64_t serial)
{
    char name[SPOOL_NAME_SIZE];
    spool_name (name, serial);
    snprintf (out, ARCHIVE_PATH_SIZE, "%s/%s", self->directory, name);
}

static int by_number (const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a;
    uint64_t y = *(const uint64_t *) b;
    return (x > y) - (x < y);
}

bool spool_list (const archive_spool_t *self, uint64_t before, uint64_t **out, size_t *count)
{
    size_t capacity = 0;
    *out = NULL;
    *count = 0;
    DIR *entries = opendir (self->directory);
    if (entries == NULL)
        return false;
    errno = 0;
    for (const struct dirent *entry; (entry = readdir (entries)) != NULL; errno = 0) {
        uint64_t serial;
        if (!read_name (entry->d_name, &serial) || serial >= before)
            continue;
        *out = memory_grow (*out, &capacity, *count, sizeof (**out));
        (*out)[(*count)++] = serial;
    }
    int error = errno;
    closedir (entries);
    if (error != 0) { /* without all of them what is carried has gaps */
        free (*out);
        *out = NULL;
        *count = 0;
        errno = error;
        return false;
    }
    if (*count > 0)
        qsort (*out, *count, sizeof (**out), by_number);
    return true;
}

bool spool_open (archive_spool_t *self, const char *data)
{
    char path[ARCHIVE_PATH_SIZE];
    uint64_t *serials;
    size_t count;
    *self = (archive_spool_t){.fd = -1};
    snprintf (self->directory, sizeof (self->directory), "%s/" ARCHIVE_SPOOL, data);
    snprintf (self->blobs, sizeof (self->blobs), "%s/blobs", data);
    snprintf (path, sizeof (path), "%s/" ARCHIVE_BLOBS, self->directory);
    if (disk_make_directory (self->directory) != 0 || disk_make_directory (path) != 0 ||
        !spool_list (self, UINT64_MAX, &serials, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        path_of (self, path, serials[i]);
        if (stat (path, &info) == 0)
            atomic_fetch_add (&self->bytes, (uint64_t) info.st_size);
        self->serial = serials[i];
    }
    free (serials);
    return true;
}

void spool_close (archive_spool_t *self)
{
    if (self->fd >= 0)
        close (self->fd);
    self->fd = -1;
}

static bool put (archive_spool_t *self, const uint8_t *bytes, size_t length)
{
    if (disk_write (self->fd, bytes, length) != 0) {
        int error = errno;
        spool_close (self);
        errno = error;
        return false;
    }
    self->piece_bytes += length;
    atomic_fetch_add (&self->bytes, length);
    return true;
}

bool spool_begin (archive_spool_t *self, const archive_header_t *header)
{
    char path[ARCHIVE_PATH_SIZE];
    uint8_t head[ARCHIVE_HEADER_BYTES];
    spool_close (self);
    self->header = *header;
    self->serial++;
    self->piece_bytes = 0;
    path_of (self, path, self->serial);
    archive_pack_header (head, header);
    self->fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return self->fd >= 0 && put (self, head, sizeof (head));
}

typedef struct link_context {
    const archive_spool_t *spool;
} link_context_t;

/* What cannot be linked is told by the carrier, which does not find it. */
static void keep_blob (void *context, const uint8_t *hash)
{
    const link_context_t *link = context;
    archive_blob_keep (link->spool->blobs, link->spool->directory, hash);
}

bool spool_put (archive_spool_t *self, const uint8_t *frames, size_t bytes)
{
    link_context_t link = {self};
    for (size_t at = 0; bytes - at > FORM_LENGTH_BYTES;) {
        size_t length = form_get_length (frames + at);
        archive_blobs (frames + at + FORM_LENGTH_BYTES, length, keep_blob, &link);
        at += FORM_LENGTH_BYTES + length;
    }
    return (self->fd >= 0 || spool_begin (self, &self->header)) && put (self, frames, bytes);
}

bool spool_sync (archive_spool_t *self)
{
    return self->fd < 0 ||
           (fdatasync (self->fd) == 0 && disk_sync_directory (self->directory) == 0);
}

bool spool_cut (archive_spool_t *self)
{
    if (self->fd >= 0 && self->piece_bytes <= ARCHIVE_HEADER_BYTES)
        return true;
    return spool_begin (self, &self->header);
}

void spool_remove (archive_spool_t *self, uint64_t serial, uint64_t bytes)
{
    char path[ARCHIVE_PATH_SIZE];
    path_of (self, path, serial);
    if (unlink (path) == 0)
        atomic_fetch_sub (&self->bytes, bytes);
}

void spool_give_up (archive_spool_t *self)
{
    uint64_t *serials;
    size_t count;
    spool_close (self);
    if (!spool_list (self, UINT64_MAX, &serials, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        char path[ARCHIVE_PATH_SIZE];
        path_of (self, path, serials[i]);
        if (stat (path, &info) == 0)
            spool_remove (self, serials[i], (uint64_t) info.st_size);
    }
    free (serials);
    archive_blobs_forget (self->directory);
}
