/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A layer between SQLite and its files that lets writes and syncs of one file fail. Process-wide;
 * armed and asked from any thread. */
#ifndef TASKMQ_TESTS_FAULT_VFS_H
#define TASKMQ_TESTS_FAULT_VFS_H

#include <stdbool.h>
#include <stdint.h>

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
void fault_vfs_arm (const fault_t *fault); /* file must stay valid */
void fault_vfs_disarm (void);
/* Operations that matched since fault_vfs_arm, and how many of them failed. */
uint64_t fault_vfs_matched (void);
uint64_t fault_vfs_failed (void);
/* Every sync takes so much longer; 0 ends it. */
void fault_vfs_delay_syncs (uint32_t us);

#endif
