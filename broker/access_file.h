/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The access file on the disk: read, looked at, written.
 *
 * A file that cannot be used changes nothing: what was read before still counts, the log says what
 * is wrong, and it stays to be seen as stale. Without a file there is no policy: who reaches the
 * broker on this machine is its operator.
 *
 * Two threads: the server's looks and takes what is new, that of the errands reads and writes. */
#ifndef TASKMQ_BROKER_ACCESS_FILE_H
#define TASKMQ_BROKER_ACCESS_FILE_H

#include "core/access/policy.h"
#include "core/data/errand.h"

enum {
    ACCESS_FILE_LOOK_MS = 250, /* between two looks; a change counts at the second one */
    ACCESS_FILE_ERROR_SIZE = 1024
};

typedef struct access_file access_file_t;

/* Reads the file if there is one. NULL: it cannot be used, and `error` says where and why. */
access_file_t *access_file_new (const char *path, char error[ACCESS_FILE_ERROR_SIZE]);
void access_file_free (access_file_t **self); /* accepts a NULL object */
const char *access_file_path (const access_file_t *self);

/* The server's thread. */

/* The file is another one than was read last, and it is written: to be called each
 * ACCESS_FILE_LOOK_MS. Who is told true has access_file_load called. */
bool access_file_changed (access_file_t *self);
/* What is new since the last call, once at the beginning; *out is counted for the caller, NULL
 * without a file. */
bool access_file_take (access_file_t *self, policy_t **out);
/* The file cannot be used and something older counts. */
bool access_file_is_stale (access_file_t *self);

/* The errands' thread. */

/* What counts; borrowed until the next call. NULL: there is no file. */
const policy_t *access_file_policy (const access_file_t *self);
/* Reads the file, also one that looks as before. False: `error` says what is wrong with it, and so
 * does the log. */
bool access_file_load (access_file_t *self, char error[ACCESS_FILE_ERROR_SIZE]);
/* The whole file, to be freed; NULL: there is none, or `error` says why it cannot be read. */
char *access_file_text (access_file_t *self, size_t *bytes, char error[ACCESS_FILE_ERROR_SIZE]);

/* Makes a new text of what the file says, by malloc; NULL: nothing is to be changed, or the errand
 * was refused. policy and text are those of the file, NULL and empty without one. */
typedef char *access_change_t (void *context, const policy_t *policy, const char *text,
                               size_t bytes, size_t *out_bytes);
/* Changes the file: reads it once more under a lock of its directory, writes the new text beside
 * it, syncs, renames. The errand is refused if that cannot be, or if somebody holds the lock for
 * two seconds; then nothing was changed, unless the last sync, that of the directory, failed. */
void access_file_change (access_file_t *self, access_change_t *change, void *context,
                         errand_t *errand);

#endif
