/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* While one of the first two blocks is written, the other one is whole; so a crash leaves a file
 * whose newest start is known. What is made anew gets its name when it is whole. */
#include "store/journal/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

enum { ZEROES_BYTES = 256 * 1024, BUFFER_BYTES_MIN = 64 * 1024 };

static const char NEW_FILE[] = "journal.new";
_Alignas(FORM_BLOCK_BYTES) static const uint8_t ZEROES[ZEROES_BYTES];

static store_code_t fail (const segments_t *self, const char *what, store_error_t *error)
{
    bool full = errno == ENOSPC || errno == EDQUOT;
    return store_fail (error, full ? STORE_ERROR_FULL : STORE_ERROR_IO, "%s: %s: %s", self->path,
                       what, full ? "no space is left" : strerror (errno));
}

static store_code_t fail_sync (const segments_t *self, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_IO, "%s: cannot be synced: %s", self->path,
                       strerror (errno));
}

void segments_init (segments_t *self, const char *directory, const device_t *device)
{
    char path[PATH_MAX];
    *self = (segments_t){.device = device, .directory = directory, .fd = -1};
    if (self->device == NULL)
        self->device = &device_files;
    snprintf (path, sizeof (path), "%s/" JOURNAL_FILE, directory);
    self->path = memory_text (path);
}

void segments_destroy (segments_t *self)
{
    if (self->fd >= 0)
        self->device->close (self->device, self->fd);
    free (self->path);
    free (self->last);
    free (self->buffer);
}

void segments_shape (form_header_t *shape, uint64_t bytes)
{
    uint64_t size = bytes / FORM_SEGMENTS_MIN / FORM_BLOCK_BYTES * FORM_BLOCK_BYTES;
    if (size < FORM_SEGMENT_BYTES_MIN)
        size = FORM_SEGMENT_BYTES_MIN;
    if (size > FORM_SEGMENT_BYTES_MAX)
        size = FORM_SEGMENT_BYTES_MAX;
    shape->segment_bytes = size;
    shape->segments = bytes / size < FORM_SEGMENTS_MIN ? FORM_SEGMENTS_MIN : bytes / size;
}

static store_code_t take_lock (segments_t *self, store_error_t *error)
{
    if (self->device->lock (self->device, self->fd) == 0)
        return STORE_OK;
    if (errno == EWOULDBLOCK)
        return store_fail (error, STORE_ERROR_BUSY, "%s: another process uses it", self->path);
    return fail (self, "cannot be locked", error);
}

store_code_t segments_open (segments_t *self, bool *missing, store_error_t *error)
{
    *missing = false;
    self->fd = self->device->open (self->device, self->path, O_RDWR);
    if (self->fd < 0 && errno == ENOENT) {
        *missing = true;
        return STORE_OK;
    }
    if (self->fd < 0)
        return store_fail (error, STORE_ERROR_ACCESS, "%s: %s", self->path,
                           errno == ELOOP ? "is a symbolic link" : strerror (errno));
    store_code_t code = take_lock (self, error);
    if (code == STORE_OK)
        *missing = self->device->size (self->device, self->fd) == 0;
    return code;
}

/* Zeroes, by real writes: what is overwritten later needs no new room then. */
static store_code_t fill (segments_t *self, uint64_t from, uint64_t to, store_error_t *error)
{
    for (uint64_t at = from; at < to;) {
        size_t length = to - at < ZEROES_BYTES ? (size_t) (to - at) : ZEROES_BYTES;
        if (self->device->write (self->device, self->fd, ZEROES, length, at, false) != 0)
            return fail (self, "cannot be brought to its size", error);
        at += length;
    }
    return STORE_OK;
}

static void put_header (segments_t *self, uint64_t index)
{
    form_header_t header = self->run;
    uint8_t *block = segments_buffer (self, FORM_BLOCK_BYTES);
    header.index = index;
    memset (block, 0, FORM_BLOCK_BYTES);
    form_pack_header (block, &header);
}

static store_code_t write_header (segments_t *self, uint64_t index, uint64_t at,
                                  store_error_t *error)
{
    put_header (self, index);
    return segments_write (self, FORM_BLOCK_BYTES, at, true, error);
}

static store_code_t write_first_headers (segments_t *self, store_error_t *error)
{
    store_code_t code = write_header (self, 0, 0, error);
    return code == STORE_OK ? write_header (self, 0, FORM_BLOCK_BYTES, error) : code;
}

static void forget_batches (segments_t *self)
{
    self->count = self->run.segments;
    self->last = memory_resize (self->last, self->count, sizeof (*self->last));
    memset (self->last, 0, self->count * sizeof (*self->last));
}

static store_code_t fill_new (segments_t *self, store_error_t *error)
{
    const device_t *device = self->device;
    uint64_t size = self->run.segment_bytes;
    store_code_t code = take_lock (self, error);
    if (code == STORE_OK)
        code = fill (self, 0, self->run.segments * size, error);
    for (uint64_t i = 0; code == STORE_OK && i < self->run.segments; i++) {
        put_header (self, i);
        if (device->write (device, self->fd, self->buffer, FORM_BLOCK_BYTES, i * size, false) != 0)
            code = fail (self, "cannot be written", error);
    }
    if (code == STORE_OK)
        code = segments_write (self, 0, 0, true, error);
    return code == STORE_OK ? write_first_headers (self, error) : code;
}

store_code_t segments_make (segments_t *self, const form_header_t *run, store_error_t *error)
{
    const device_t *device = self->device;
    char path[PATH_MAX];
    snprintf (path, sizeof (path), "%s/%s", self->directory, NEW_FILE);
    device->remove (device, path);
    if (self->fd >= 0)
        device->close (device, self->fd);
    self->run = *run;
    self->direct = false;
    self->fd = device->open (device, path, O_RDWR | O_CREAT | O_EXCL);
    if (self->fd < 0)
        return store_fail (error, STORE_ERROR_ACCESS, "%s: %s", path, strerror (errno));
    store_code_t code = fill_new (self, error);
    if (code == STORE_OK && device->rename (device, path, self->path) != 0)
        code = fail (self, "cannot be given its name", error);
    if (code != STORE_OK) {
        device->remove (device, path);
        return code;
    }
    if (device->sync_directory (device, self->directory) != 0)
        return fail_sync (self, error);
    forget_batches (self);
    return STORE_OK;
}

store_code_t segments_begin (segments_t *self, const form_header_t *run, store_error_t *error)
{
    uint64_t size = run->segment_bytes;
    self->run = *run;
    store_code_t code = write_first_headers (self, error);
    for (uint64_t i = 1; code == STORE_OK && i < run->segments; i++)
        code = write_header (self, i, i * size, error);
    if (code == STORE_OK &&
        self->device->size (self->device, self->fd) > (int64_t) (run->segments * size) &&
        self->device->truncate (self->device, self->fd, run->segments * size) != 0)
        code = fail (self, "cannot be cut to its size", error);
    forget_batches (self);
    return code;
}

/* The one write that shows whether the file system takes such writes is that of a header which
 * stands there already. */
store_code_t segments_choose (segments_t *self, bool unsynced, store_error_t *error)
{
    const device_t *device = self->device;
    self->direct = false;
    if (unsynced || device->direct (device, self->fd, true) != 0)
        return STORE_OK;
    put_header (self, 0);
    if (device->write (device, self->fd, self->buffer, FORM_BLOCK_BYTES, 0, true) == 0) {
        self->direct = true;
        return STORE_OK;
    }
    if (errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS)
        return fail (self, "cannot be written", error);
    if (device->direct (device, self->fd, false) != 0)
        return fail (self, "cannot be written", error);
    return STORE_OK;
}

store_code_t segments_fill (segments_t *self, store_error_t *error)
{
    uint64_t size = self->run.segment_bytes;
    uint64_t at = self->count * size;
    store_code_t code = fill (self, at, at + size, error);
    if (code == STORE_ERROR_FULL)
        self->device->truncate (self->device, self->fd, at);
    if (code == STORE_OK && self->device->sync (self->device, self->fd) != 0)
        code = fail_sync (self, error);
    return code;
}

store_code_t segments_add (segments_t *self, store_error_t *error)
{
    self->run.segments = self->count + 1;
    store_code_t code =
        write_header (self, self->count, self->count * self->run.segment_bytes, error);
    if (code == STORE_OK)
        code = write_first_headers (self, error);
    if (code != STORE_OK) {
        self->run.segments = self->count;
        return code;
    }
    self->last = memory_resize (self->last, self->count + 1, sizeof (*self->last));
    self->last[self->count++] = 0;
    return STORE_OK;
}

uint8_t *segments_buffer (segments_t *self, uint64_t bytes)
{
    if (bytes <= self->buffer_bytes)
        return self->buffer;
    size_t wanted = bytes < BUFFER_BYTES_MIN ? BUFFER_BYTES_MIN : (size_t) bytes;
    free (self->buffer);
    self->buffer = aligned_alloc (FORM_BLOCK_BYTES, wanted);
    if (self->buffer == NULL)
        abort ();
    self->buffer_bytes = wanted;
    return self->buffer;
}

store_code_t segments_write (segments_t *self, uint64_t bytes, uint64_t at, bool durable,
                             store_error_t *error)
{
    const device_t *device = self->device;
    bool at_once = durable && self->direct;
    if (bytes > 0 &&
        device->write (device, self->fd, self->buffer, (size_t) bytes, at, at_once) != 0)
        return fail (self, "cannot be written", error);
    if (durable && !at_once && device->sync (device, self->fd) != 0)
        return fail_sync (self, error);
    return STORE_OK;
}

store_code_t segments_take_back (segments_t *self, uint64_t at, store_error_t *error)
{
    const device_t *device = self->device;
    if (device->write (device, self->fd, ZEROES, FORM_BLOCK_BYTES, at, self->direct) != 0)
        return fail (self, "what found no space cannot be taken back", error);
    if (!self->direct && device->sync (device, self->fd) != 0)
        return fail_sync (self, error);
    return STORE_OK;
}
