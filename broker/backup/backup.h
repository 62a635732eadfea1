/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Makes a backup of a running broker: DIR/backups/TIME-ID.tar, which `taskmqd --restore` reads.
 *
 * The file is whole or not there: it is made under another name, synced, and renamed. */
#ifndef TASKMQ_BACKUP_BACKUP_H
#define TASKMQ_BACKUP_BACKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backup/manifest.h"
#include "store/store.h"

#define BACKUP_DIRECTORY "backups"
enum { BACKUP_NAME_SIZE = 64, BACKUP_PATH_SIZE = 4096 + 128 };

typedef struct backup_options {
    store_t *store;
    const char *directory;           /* of the data */
    const char *access;              /* path of the access file; need not be there */
    const char *server_key;          /* path of the key to take along; NULL: it stays */
    const char *id;                  /* a part of the name: letters and digits */
    uint64_t free_bytes_min;         /* that must be left */
    size_t keep;                     /* the newest so many stay */
    bool (*goes_on) (void *context); /* asked now and then; false ends it. May be NULL. */
    void *context;
} backup_options_t;

typedef struct backup_made {
    char name[BACKUP_NAME_SIZE]; /* below DIR/backups */
    uint64_t bytes;
    manifest_t manifest;
    uint64_t steps; /* of the copy */
    int64_t step_us_max;
} backup_made_t;

/* Not on the server's thread. STORE_ERROR_FULL: no space, and nothing of it is left; …_BUSY: given
 * up; …_FOREIGN: there is nothing to copy. */
store_code_t backup_make (const backup_options_t *options, backup_made_t *out,
                          store_error_t *error);
/* Removes what a crash left of one. */
void backup_clean (const char *directory);
/* The backup with this id, of those that are kept. False: there is none. */
bool backup_find (const char *directory, const char *id, char name[BACKUP_NAME_SIZE],
                  uint64_t *bytes);
/* Bytes of a backup from an offset on: how many, 0 at its end, -1 with `error`. */
int64_t backup_read (const char *directory, const char *name, uint64_t offset, void *out,
                     size_t size, store_error_t *error);
/* How many blobs that its tasks name this backup lacks, as its manifest says. */
uint64_t backup_lacks (const char *directory, const char *name);

#endif
