/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "fault_vfs.h"

#include <pthread.h>
#include <sqlite3.h>
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
static int judge (const fault_file_t *file, fault_op_t op)
{
    int rc = SQLITE_OK;
    pthread_mutex_lock (&lock);
    if (is_armed && (armed.ops & op) != 0 && ends_with (file->path, armed.file)) {
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
    vfs_op_t op = {VFS_WRITE, path_of (file), from, (uint64_t) amount, (uint64_t) offset};
    return note (real_of (file)->pMethods->xWrite (real_of (file), from, amount, offset), &op);
}

static int file_truncate (sqlite3_file *file, sqlite3_int64 size)
{
    int rc = judge ((fault_file_t *) file, FAULT_TRUNCATE);
    if (rc != SQLITE_OK)
        return rc;
    vfs_op_t op = {VFS_TRUNCATE, path_of (file), NULL, (uint64_t) size, 0};
    return note (real_of (file)->pMethods->xTruncate (real_of (file), size), &op);
}

static int file_sync (sqlite3_file *file, int flags)
{
    int rc = judge ((fault_file_t *) file, FAULT_SYNC);
    if (rc != SQLITE_OK)
        return rc;
    pthread_mutex_lock (&lock);
    uint32_t us = delay_us;
    bool skip = skips_syncs;
    pthread_mutex_unlock (&lock);
    if (us > 0)
        usleep (us);
    vfs_op_t op = {VFS_SYNC, path_of (file), NULL, 0, 0};
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
    vfs_op_t op = {VFS_CREATE, path, NULL, 0, 0};
    return note (rc, &op);
}

static int vfs_delete (sqlite3_vfs *vfs, const char *path, int sync_directory)
{
    (void) vfs;
    vfs_op_t op = {VFS_DELETE, path, NULL, 0, 0};
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
    vfs_op_t op = {VFS_MARK, NULL, NULL, value, kind};
    note (SQLITE_OK, &op);
}
