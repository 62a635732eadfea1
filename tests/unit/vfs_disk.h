/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A run that was recorded operation by operation, and the disk as it may be found after a crash
 * behind the nth of them: what was synced is there, of what was not synced nothing, all, single
 * writes or sectors. Names below a directory are there for certain when that directory was synced;
 * those at the top, which SQLite and the journal take care of, at once. */
#ifndef TASKMQ_TESTS_VFS_DISK_H
#define TASKMQ_TESTS_VFS_DISK_H

#include <stddef.h>

#include "fault_vfs.h"

/* The run. Paths are those below the root, bytes are copies. */
typedef struct recording {
    const char *root; /* the directory's own name; paths without it are no part of the run */
    vfs_op_t *ops;
    size_t count;
    size_t capacity;
} recording_t;

/* A vfs_record_t. Thread-safe. */
void recording_add (void *context, const vfs_op_t *op);
void recording_free (recording_t *self);

typedef struct vfs_disk vfs_disk_t;

/* A fresh directory, in memory where the machine has such a place: the test loses power in memory,
 * and has no use for a disk that waits. And its removal with everything in it. */
void vfs_place_make (char path[64]);
void vfs_place_remove (const char *path);

vfs_disk_t *vfs_disk_new (void);
void vfs_disk_free (vfs_disk_t *self);
/* The operations of a recording one after the other; they stay lent. */
void vfs_disk_apply (vfs_disk_t *self, const vfs_op_t *op);

/* What a loss of power takes of that which was not synced. */
typedef enum vfs_loss {
    LOSE_ALL,
    LOSE_NOTHING, /* a kill of the process */
    LOSE_SECTORS, /* each 512 bytes are there or not, and so is each name */
    LOSE_WRITES,  /* likewise each write */
    LOSE_LENGTHS, /* the names and lengths are there, the bytes are zeros */
    LOSSES
} vfs_loss_t;

/* Puts what is left into a directory that is there and empty. random says how the dice fall. */
void vfs_disk_lose (const vfs_disk_t *self, const char *directory, vfs_loss_t loss,
                    uint64_t *random);

#endif
