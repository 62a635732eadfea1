/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A layer between the store and its files, those of SQLite and the journal's, that lets writes and
 * syncs of one file fail. Process-wide; armed and asked from any thread. */
#ifndef TASKMQ_TESTS_FAULT_VFS_H
#define TASKMQ_TESTS_FAULT_VFS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/journal/device.h"

typedef enum fault_op { FAULT_WRITE = 1, FAULT_SYNC = 2, FAULT_TRUNCATE = 4 } fault_op_t;

typedef struct fault {
    const char *file; /* the end of its path, "" for every file */
    unsigned ops;     /* fault_op_t, ORed */
    bool full;        /* no space left; else an I/O error */
    uint64_t after;   /* so many of these operations succeed before the first that fails */
    bool once;        /* only one fails */
} fault_t;

/* Becomes the default VFS; to be called before the first connection. May be repeated. */
void fault_vfs_install (void);
/* The same for the journal: to be given to a store as its journal_device. */
extern const device_t fault_device;
void fault_vfs_arm (const fault_t *fault); /* file must stay valid */
void fault_vfs_disarm (void);
/* Operations that matched since fault_vfs_arm, and how many of them failed. */
uint64_t fault_vfs_matched (void);
uint64_t fault_vfs_failed (void);
/* Every sync takes so much longer; 0 ends it. */
void fault_vfs_delay_syncs (uint32_t us);
/* Syncs only say that they were done: for tests that ask nothing of the real disk. */
void fault_vfs_skip_syncs (bool skip);

/* Everything that changes files, in the order in which it succeeded; called under a lock. */
typedef enum vfs_op_kind {
    VFS_CREATE = 1,
    VFS_WRITE,
    VFS_TRUNCATE,
    VFS_SYNC,
    VFS_SYNC_WRITE, /* of the newest write of this file alone */
    VFS_DELETE,
    VFS_RENAME,
    VFS_MARK, /* not of a file: see fault_vfs_mark */
    /* Only of files that are neither SQLite's nor the journal's (file_calls.h). */
    VFS_DIRECTORY,
    VFS_LINK,
    VFS_SYNC_NAMES /* of a directory */
} vfs_op_kind_t;
typedef struct vfs_op {
    vfs_op_kind_t kind;
    const char *path;
    const void *bytes; /* WRITE */
    uint64_t length;   /* WRITE, TRUNCATE; MARK: its value */
    uint64_t offset;   /* WRITE; MARK: its kind */
    const char *to;    /* RENAME, LINK */
} vfs_op_t;
typedef void vfs_record_t (void *context, const vfs_op_t *op);
/* NULL ends the recording. */
void fault_vfs_record (vfs_record_t *record, void *context);
/* Puts a mark of the test's own among the operations. */
void fault_vfs_mark (uint64_t kind, uint64_t value);

#endif
