/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "fault_vfs.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct fault_file {
    sqlite3_file base;
    const char *path;   /* SQLite keeps it until the file is closed; NULL: a temporary file */
    sqlite3_file *real; /* behind this struct */
} fault_file_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fault_t armed;
static bool is_armed;
static uint64_t matched;
static uint64_t failed;
static uint32_t delay_us;
static bool skips_syncs;
static vfs_record_t *recorder;
static void *recorder_context;
static sqlite3_vfs *real_vfs;
static sqlite3_vfs fault_vfs;

static bool ends_with (const char *path, const char *end)
{
    if (path == NULL)
        return end[0] == '\0';
    size_t path_length = strlen (path);
    size_t length = strlen (end);
    return path_length >= length && strcmp (path + path_length - length, end) == 0;
}

/* SQLITE_OK: let the operation through. */
static int judge_path (const char *path, fault_op_t op)
{
    int rc = SQLITE_OK;
    pthread_mutex_lock (&lock);
    if (is_armed && (armed.ops & op) != 0 && ends_with (path, armed.file)) {
        matched++;
        if (matched > armed.after && (!armed.once || failed == 0)) {
            failed++;
            rc = op == FAULT_SYNC
                     ? SQLITE_IOERR_FSYNC
                     : (op == FAULT_WRITE ? SQLITE_IOERR_WRITE : SQLITE_IOERR_TRUNCATE);
            if (armed.full && op != FAULT_SYNC)
                rc = SQLITE_FULL;
        }
    }
    pthread_mutex_unlock (&lock);
    return rc;
}

static int judge (const fault_file_t *file, fault_op_t op)
{
    return judge_path (file->path, op);
}

static int note (int rc, const vfs_op_t *op)
{
    pthread_mutex_lock (&lock);
    if (rc == SQLITE_OK && recorder != NULL && (op->path != NULL || op->kind == VFS_MARK))
        recorder (recorder_context, op);
    pthread_mutex_unlock (&lock);
    return rc;
}

static const char *path_of (sqlite3_file *file)
{
    return ((fault_file_t *) file)->path;
}

static sqlite3_file *real_of (sqlite3_file *file)
{
    return ((fault_file_t *) file)->real;
}

static int file_close (sqlite3_file *file)
{
    return real_of (file)->pMethods->xClose (real_of (file));
}

static int file_read (sqlite3_file *file, void *to, int amount, sqlite3_int64 offset)
{
    return real_of (file)->pMethods->xRead (real_of (file), to, amount, offset);
}

static int file_write (sqlite3_file *file, const void *from, int amount, sqlite3_int64 offset)
{
    int rc = judge ((fault_file_t *) file, FAULT_WRITE);
    if (rc != SQLITE_OK)
        return rc;
    vfs_op_t op = {VFS_WRITE, path_of (file), from, (uint64_t) amount, (uint64_t) offset, NULL};
    return note (real_of (file)->pMethods->xWrite (real_of (file), from, amount, offset), &op);
}

static int file_truncate (sqlite3_file *file, sqlite3_int64 size)
{
    int rc = judge ((fault_file_t *) file, FAULT_TRUNCATE);
    if (rc != SQLITE_OK)
        return rc;
    vfs_op_t op = {.kind = VFS_TRUNCATE, .path = path_of (file), .length = (uint64_t) size};
    return note (real_of (file)->pMethods->xTruncate (real_of (file), size), &op);
}

/* Whether the sync itself is left out. */
static bool wait_as_a_sync (void)
{
    pthread_mutex_lock (&lock);
    uint32_t us = delay_us;
    bool skip = skips_syncs;
    pthread_mutex_unlock (&lock);
    if (us > 0)
        usleep (us);
    return skip;
}

static int file_sync (sqlite3_file *file, int flags)
{
    int rc = judge ((fault_file_t *) file, FAULT_SYNC);
    if (rc != SQLITE_OK)
        return rc;
    bool skip = wait_as_a_sync ();
    vfs_op_t op = {.kind = VFS_SYNC, .path = path_of (file)};
    return note (skip ? SQLITE_OK : real_of (file)->pMethods->xSync (real_of (file), flags), &op);
}

static int file_size (sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of (file)->pMethods->xFileSize (real_of (file), size);
}

static int file_lock (sqlite3_file *file, int level)
{
    return real_of (file)->pMethods->xLock (real_of (file), level);
}

static int file_unlock (sqlite3_file *file, int level)
{
    return real_of (file)->pMethods->xUnlock (real_of (file), level);
}

static int file_check_lock (sqlite3_file *file, int *out)
{
    return real_of (file)->pMethods->xCheckReservedLock (real_of (file), out);
}

static int file_control (sqlite3_file *file, int op, void *argument)
{
    return real_of (file)->pMethods->xFileControl (real_of (file), op, argument);
}

static int file_sector (sqlite3_file *file)
{
    return real_of (file)->pMethods->xSectorSize (real_of (file));
}

static int file_device (sqlite3_file *file)
{
    return real_of (file)->pMethods->xDeviceCharacteristics (real_of (file));
}

static int file_shm_map (sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return real_of (file)->pMethods->xShmMap (real_of (file), page, size, extend, out);
}

static int file_shm_lock (sqlite3_file *file, int offset, int count, int flags)
{
    return real_of (file)->pMethods->xShmLock (real_of (file), offset, count, flags);
}

static void file_shm_barrier (sqlite3_file *file)
{
    real_of (file)->pMethods->xShmBarrier (real_of (file));
}

static int file_shm_unmap (sqlite3_file *file, int delete_it)
{
    return real_of (file)->pMethods->xShmUnmap (real_of (file), delete_it);
}

static const sqlite3_io_methods METHODS = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_device,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

static int vfs_open (sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out)
{
    (void) vfs;
    fault_file_t *self = (fault_file_t *) file;
    self->path = path;
    self->real = (sqlite3_file *) (self + 1);
    int rc = real_vfs->xOpen (real_vfs, path, self->real, flags, out);
    self->base.pMethods = self->real->pMethods == NULL ? NULL : &METHODS;
    vfs_op_t op = {.kind = VFS_CREATE, .path = path};
    return note (rc, &op);
}

static int vfs_delete (sqlite3_vfs *vfs, const char *path, int sync_directory)
{
    (void) vfs;
    vfs_op_t op = {.kind = VFS_DELETE, .path = path};
    return note (real_vfs->xDelete (real_vfs, path, sync_directory), &op);
}

void fault_vfs_install (void)
{
    if (real_vfs != NULL)
        return;
    real_vfs = sqlite3_vfs_find (NULL);
    fault_vfs = *real_vfs; /* what is not replaced works on paths alone */
    fault_vfs.szOsFile = (int) sizeof (fault_file_t) + real_vfs->szOsFile;
    fault_vfs.zName = "fault";
    fault_vfs.pNext = NULL;
    fault_vfs.xOpen = vfs_open;
    fault_vfs.xDelete = vfs_delete;
    sqlite3_vfs_register (&fault_vfs, 1);
}

/* The journal's device. */

enum { DESCRIPTORS_MAX = 1024 };

static char *paths[DESCRIPTORS_MAX]; /* of what is open */

static int refuse (const char *path, fault_op_t op)
{
    int rc = judge_path (path, op);
    errno = rc == SQLITE_FULL ? ENOSPC : EIO;
    return rc == SQLITE_OK ? 0 : -1;
}

static int device_note (int result, const vfs_op_t *op)
{
    int saved = errno;
    note (result >= 0 ? SQLITE_OK : SQLITE_ERROR, op);
    errno = saved;
    return result;
}

static int device_open (const device_t *self, const char *path, int flags)
{
    int fd = device_files.open (self, path, flags);
    if (fd < 0 || fd >= DESCRIPTORS_MAX)
        return fd;
    paths[fd] = strdup (path);
    vfs_op_t op = {.kind = VFS_CREATE, .path = paths[fd]};
    return device_note (fd, &op);
}

static void device_close (const device_t *self, int fd)
{
    free (paths[fd]);
    paths[fd] = NULL;
    device_files.close (self, fd);
}

static int device_write (const device_t *self, int fd, const void *bytes, size_t length,
                         uint64_t at, bool durable)
{
    vfs_op_t op = {VFS_WRITE, paths[fd], bytes, length, at, NULL};
    vfs_op_t sync = {.kind = VFS_SYNC_WRITE, .path = paths[fd]};
    if (refuse (paths[fd], FAULT_WRITE) != 0)
        return -1;
    if (durable && refuse (paths[fd], FAULT_SYNC) != 0)
        return -1;
    bool skip = durable && wait_as_a_sync ();
    if (device_note (device_files.write (self, fd, bytes, length, at, durable && !skip), &op) != 0)
        return -1;
    return durable ? device_note (0, &sync) : 0;
}

static int device_sync (const device_t *self, int fd)
{
    vfs_op_t op = {.kind = VFS_SYNC, .path = paths[fd]};
    if (refuse (paths[fd], FAULT_SYNC) != 0)
        return -1;
    return device_note (wait_as_a_sync () ? 0 : device_files.sync (self, fd), &op);
}

static int device_truncate (const device_t *self, int fd, uint64_t bytes)
{
    vfs_op_t op = {.kind = VFS_TRUNCATE, .path = paths[fd], .length = bytes};
    if (refuse (paths[fd], FAULT_TRUNCATE) != 0)
        return -1;
    return device_note (device_files.truncate (self, fd, bytes), &op);
}

static int device_lock (const device_t *self, int fd)
{
    return device_files.lock (self, fd);
}

static int64_t device_size (const device_t *self, int fd)
{
    return device_files.size (self, fd);
}

static int device_read (const device_t *self, int fd, void *to, size_t length, uint64_t at)
{
    return device_files.read (self, fd, to, length, at);
}

static int device_direct (const device_t *self, int fd, bool on)
{
    return device_files.direct (self, fd, on);
}

static void follow_rename (const char *from, const char *to)
{
    for (size_t i = 0; i < DESCRIPTORS_MAX; i++) {
        if (paths[i] == NULL || strcmp (paths[i], from) != 0)
            continue;
        free (paths[i]);
        paths[i] = strdup (to);
    }
}

static int device_rename (const device_t *self, const char *from, const char *to)
{
    vfs_op_t op = {.kind = VFS_RENAME, .path = from, .to = to};
    if (refuse (from, FAULT_WRITE) != 0)
        return -1;
    int result = device_note (device_files.rename (self, from, to), &op);
    if (result == 0)
        follow_rename (from, to);
    return result;
}

static int device_remove (const device_t *self, const char *path)
{
    vfs_op_t op = {.kind = VFS_DELETE, .path = path};
    return device_note (device_files.remove (self, path), &op);
}

static int device_sync_directory (const device_t *self, const char *path)
{
    if (refuse (path, FAULT_SYNC) != 0)
        return -1;
    return wait_as_a_sync () ? 0 : device_files.sync_directory (self, path);
}

const device_t fault_device = {
    .open = device_open,
    .close = device_close,
    .lock = device_lock,
    .size = device_size,
    .read = device_read,
    .write = device_write,
    .sync = device_sync,
    .truncate = device_truncate,
    .direct = device_direct,
    .rename = device_rename,
    .remove = device_remove,
    .sync_directory = device_sync_directory,
};

void fault_vfs_arm (const fault_t *fault)
{
    pthread_mutex_lock (&lock);
    armed = *fault;
    is_armed = true;
    matched = failed = 0;
    pthread_mutex_unlock (&lock);
}

void fault_vfs_disarm (void)
{
    pthread_mutex_lock (&lock);
    is_armed = false;
    pthread_mutex_unlock (&lock);
}

uint64_t fault_vfs_matched (void)
{
    pthread_mutex_lock (&lock);
    uint64_t count = matched;
    pthread_mutex_unlock (&lock);
    return count;
}

uint64_t fault_vfs_failed (void)
{
    pthread_mutex_lock (&lock);
    uint64_t count = failed;
    pthread_mutex_unlock (&lock);
    return count;
}

void fault_vfs_delay_syncs (uint32_t us)
{
    pthread_mutex_lock (&lock);
    delay_us = us;
    pthread_mutex_unlock (&lock);
}

void fault_vfs_skip_syncs (bool skip)
{
    pthread_mutex_lock (&lock);
    skips_syncs = skip;
    pthread_mutex_unlock (&lock);
}

void fault_vfs_record (vfs_record_t *record, void *context)
{
    pthread_mutex_lock (&lock);
    recorder = record;
    recorder_context = context;
    pthread_mutex_unlock (&lock);
}

void fault_vfs_mark (uint64_t kind, uint64_t value)
{
    vfs_op_t op = {.kind = VFS_MARK, .length = value, .offset = kind};
    note (SQLITE_OK, &op);
}
