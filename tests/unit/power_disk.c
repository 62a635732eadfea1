/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "power_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

enum { SECTOR = 512 };

uint64_t power_random (uint64_t *state)
{
    *state = *state * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    uint64_t x = *state;
    x ^= x >> 33;
    x *= UINT64_C (0xff51afd7ed558ccd);
    return x ^ x >> 33;
}

static const char *name_of (const char *path)
{
    const char *slash = strrchr (path, '/');
    return slash == NULL ? path : slash + 1;
}

power_file_t *power_disk_file (power_disk_t *self, const char *name)
{
    for (size_t i = 0; i < POWER_FILES_MAX; i++)
        if (strcmp (self->files[i].name, name) == 0)
            return &self->files[i];
    return NULL;
}

static size_t room_for (size_t length)
{
    size_t room = 1;
    while (room < length)
        room *= 2;
    return room;
}

static void fit (uint8_t **bytes, size_t *length, size_t wanted)
{
    if (*bytes == NULL || room_for (wanted) != room_for (*length))
        *bytes = memory_resize (*bytes, room_for (wanted), 1);
    if (wanted > *length)
        memset (*bytes + *length, 0, wanted - *length);
    *length = wanted;
}

static void put (uint8_t **bytes, size_t *length, const power_write_t *write, size_t from,
                 size_t to)
{
    if (from >= to)
        return;
    if (write->at + to > *length)
        fit (bytes, length, write->at + to);
    memcpy (*bytes + write->at + from, write->bytes + from, to - from);
}

static void forget_writes (power_file_t *file)
{
    for (size_t i = 0; i < file->unsynced_count; i++)
        free (file->unsynced[i].bytes);
    free (file->unsynced);
    file->unsynced = NULL;
    file->unsynced_count = 0;
}

static void forget (power_file_t *file)
{
    forget_writes (file);
    free (file->synced);
    free (file->bytes);
    *file = (power_file_t){.name = ""};
}

static void note_write (power_file_t *file, uint64_t at, const void *bytes, size_t length)
{
    file->unsynced =
        memory_resize (file->unsynced, file->unsynced_count + 1, sizeof (power_write_t));
    power_write_t *write = &file->unsynced[file->unsynced_count++];
    *write = (power_write_t){at, length, NULL};
    if (bytes != NULL)
        write->bytes = memcpy (memory_alloc (length), bytes, length);
}

/* The operations. */

static power_disk_t *disk_of (const device_t *device)
{
    return (power_disk_t *) device;
}

static bool fails (power_disk_t *self, bool is_sync)
{
    uint64_t number = self->operations++;
    if (number < self->fails_from || number >= self->fails_until ||
        (self->fails_syncs_only && !is_sync))
        return false;
    errno = self->fails_with;
    return true;
}

static int power_open (const device_t *device, const char *path, int flags)
{
    power_disk_t *self = disk_of (device);
    const char *name = name_of (path);
    power_file_t *file = power_disk_file (self, name);
    if (file == NULL && (flags & O_CREAT) == 0) {
        errno = ENOENT;
        return -1;
    }
    if ((flags & O_CREAT) != 0 && fails (self, false))
        return -1;
    if (file == NULL) {
        file = power_disk_file (self, "");
        snprintf (file->name, sizeof (file->name), "%s", name);
    }
    return (int) (file - self->files);
}

static void power_close (const device_t *device, int fd)
{
    disk_of (device)->files[fd].locked = false;
}

static int power_lock (const device_t *device, int fd)
{
    power_file_t *file = &disk_of (device)->files[fd];
    if (file->locked) {
        errno = EWOULDBLOCK;
        return -1;
    }
    file->locked = true;
    return 0;
}

static int64_t power_size (const device_t *device, int fd)
{
    return (int64_t) disk_of (device)->files[fd].length;
}

static int power_read (const device_t *device, int fd, void *to, size_t length, uint64_t at)
{
    power_file_t *file = &disk_of (device)->files[fd];
    if (at + length > file->length) {
        errno = EIO;
        return -1;
    }
    memcpy (to, file->bytes + at, length);
    return 0;
}

static void sync_range (power_file_t *file, uint64_t at, const uint8_t *bytes, size_t length)
{
    const power_write_t write = {at, length, (uint8_t *) bytes};
    put (&file->synced, &file->synced_bytes, &write, 0, length);
}

/* Bytes that were replaced since do not come back. */
static void replace (power_file_t *file, const power_write_t *by)
{
    for (size_t i = 0; i < file->unsynced_count; i++) {
        power_write_t *old = &file->unsynced[i];
        uint64_t from = old->at > by->at ? old->at : by->at;
        uint64_t old_end = old->at + old->length;
        uint64_t end = by->at + by->length;
        end = old_end < end ? old_end : end;
        if (old->bytes != NULL && from < end)
            memcpy (old->bytes + (from - old->at), by->bytes + (from - by->at), end - from);
    }
}

/* A durable write makes its own bytes durable, and none of those that were written before. */
static int power_write (const device_t *device, int fd, const void *bytes, size_t length,
                        uint64_t at, bool durable)
{
    power_disk_t *self = disk_of (device);
    power_file_t *file = &self->files[fd];
    if (durable && self->refuses_first_write) {
        errno = EINVAL;
        return -1;
    }
    self->writes++;
    bool failed = fails (self, false);
    int why = errno;
    if (!failed || self->fails_after_it) {
        const power_write_t write = {at, length, (uint8_t *) bytes};
        put (&file->bytes, &file->length, &write, 0, length);
        note_write (file, at, bytes, length);
    }
    errno = why;
    if (failed)
        return -1;
    if (durable && fails (self, true)) /* between the two: it is written and not yet synced */
        return -1;
    if (durable) {
        const power_write_t write = {at, length, (uint8_t *) bytes};
        sync_range (file, at, bytes, length);
        free (file->unsynced[--file->unsynced_count].bytes);
        replace (file, &write);
        self->syncs++;
    }
    return 0;
}

static int power_sync (const device_t *device, int fd)
{
    power_disk_t *self = disk_of (device);
    power_file_t *file = &self->files[fd];
    if (fails (self, true))
        return -1;
    self->syncs++;
    for (size_t i = 0; i < file->unsynced_count; i++) {
        const power_write_t *write = &file->unsynced[i];
        if (write->bytes == NULL)
            fit (&file->synced, &file->synced_bytes, write->at);
        else
            put (&file->synced, &file->synced_bytes, write, 0, write->length);
    }
    forget_writes (file);
    return 0;
}

static int power_truncate (const device_t *device, int fd, uint64_t bytes)
{
    power_disk_t *self = disk_of (device);
    if (fails (self, false))
        return -1;
    fit (&self->files[fd].bytes, &self->files[fd].length, bytes);
    note_write (&self->files[fd], bytes, NULL, 0);
    return 0;
}

static int power_direct (const device_t *device, int fd, bool on)
{
    (void) fd;
    power_disk_t *self = disk_of (device);
    if (on && self->refuses_direct) {
        errno = EINVAL;
        return -1;
    }
    self->is_direct = on;
    return 0;
}

/* Names are kept: what is lost with an unsynced directory is that the new file is missing, and the
 * tables say whether it may be. */
static int power_rename (const device_t *device, const char *from, const char *to)
{
    power_disk_t *self = disk_of (device);
    power_file_t *file = power_disk_file (self, name_of (from));
    power_file_t *old = power_disk_file (self, name_of (to));
    if (fails (self, false))
        return -1;
    if (old != NULL)
        forget (old);
    snprintf (file->name, sizeof (file->name), "%s", name_of (to));
    return 0;
}

static int power_remove (const device_t *device, const char *path)
{
    power_disk_t *self = disk_of (device);
    power_file_t *file = power_disk_file (self, name_of (path));
    if (file == NULL) {
        errno = ENOENT;
        return -1;
    }
    if (fails (self, false))
        return -1;
    forget (file);
    return 0;
}

static int power_sync_directory (const device_t *device, const char *path)
{
    (void) path;
    return fails (disk_of (device), true) ? -1 : 0;
}

void power_disk_init (power_disk_t *self)
{
    *self = (power_disk_t){
        .device = {power_open, power_close, power_lock, power_size, power_read, power_write,
                   power_sync, power_truncate, power_direct, power_rename, power_remove,
                   power_sync_directory},
        .fails_from = UINT64_MAX,
        .fails_until = UINT64_MAX,
    };
}

void power_disk_destroy (power_disk_t *self)
{
    for (size_t i = 0; i < POWER_FILES_MAX; i++)
        forget (&self->files[i]);
}

void power_disk_close_all (power_disk_t *self)
{
    for (size_t i = 0; i < POWER_FILES_MAX; i++)
        self->files[i].locked = false;
    self->is_direct = false;
}

/* The loss. */

static void lose_sectors (const power_write_t *write, power_file_t *out, uint64_t *random)
{
    for (size_t from = 0; from < write->length;) {
        size_t to = (size_t) (((write->at + from) / SECTOR + 1) * SECTOR - write->at);
        if (to > write->length)
            to = write->length;
        if ((power_random (random) & 1) != 0)
            put (&out->bytes, &out->length, write, from, to);
        from = to;
    }
}

static void lose_bytes (const power_write_t *write, power_file_t *out, uint64_t *random)
{
    size_t a = (size_t) (power_random (random) % (write->length + 1));
    size_t b = (size_t) (power_random (random) % (write->length + 1));
    switch (power_random (random) % 3) {
    case 0: put (&out->bytes, &out->length, write, 0, a); return;
    case 1: put (&out->bytes, &out->length, write, a, write->length); return;
    default: put (&out->bytes, &out->length, write, a < b ? a : b, a < b ? b : a); return;
    }
}

static void lose_write (const power_write_t *write, power_file_t *out, power_loss_t loss,
                        uint64_t *random)
{
    bool whole = loss == POWER_KEEP || (loss == POWER_WRITES && (power_random (random) & 1) != 0);
    if (write->bytes == NULL) {
        if (whole || (loss > POWER_WRITES && (power_random (random) & 1) != 0))
            fit (&out->bytes, &out->length, write->at);
    } else if (whole) {
        put (&out->bytes, &out->length, write, 0, write->length);
    } else if (loss == POWER_SECTORS) {
        lose_sectors (write, out, random);
    } else if (loss == POWER_BYTES) {
        lose_bytes (write, out, random);
    }
}

void power_disk_lose (power_disk_t *out, const power_disk_t *disk, power_loss_t loss,
                      uint64_t *random)
{
    power_disk_init (out);
    out->refuses_direct = disk->refuses_direct;
    out->refuses_first_write = disk->refuses_first_write;
    for (size_t i = 0; i < POWER_FILES_MAX; i++) {
        const power_file_t *from = &disk->files[i];
        power_file_t *to = &out->files[i];
        memcpy (to->name, from->name, sizeof (to->name));
        if (from->name[0] == '\0')
            continue;
        fit (&to->bytes, &to->length, from->synced_bytes);
        if (from->synced_bytes > 0)
            memcpy (to->bytes, from->synced, from->synced_bytes);
        for (size_t k = 0; k < from->unsynced_count; k++)
            lose_write (&from->unsynced[k], to, loss, random);
        fit (&to->synced, &to->synced_bytes, to->length);
        if (to->length > 0)
            memcpy (to->synced, to->bytes, to->length);
    }
}
