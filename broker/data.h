/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The data directory: finding it, locking it, and the file that tells clients where to go. */
#ifndef TASKMQ_BROKER_DATA_H
#define TASKMQ_BROKER_DATA_H

#include <stdbool.h>
#include <stddef.h>

#include "exits.h"

enum { DATA_PATH_SIZE = 4096, DATA_ERROR_SIZE = DATA_PATH_SIZE + 256 };

#define DATA_DIRECTORY_NAME ".taskmq"
#define DATA_SOCKET_NAME "taskmqd.ipc"

typedef struct data {
    char directory[DATA_PATH_SIZE]; /* absolute, without symbolic links */
    bool made;                      /* by this start */
    int lock;                       /* held as long as the process lives */
    char
        ignored[DATA_ERROR_SIZE]; /* a directory further up that was not taken, and why; or empty */
} data_t;

/* Takes the directory asked for, else the nearest .taskmq upward from the working directory that is
 * this user's or root's and that nobody else may write in, else .taskmq in it. Makes it if it is
 * missing (mode 0700) and locks it: one broker per directory. One asked for that others may write
 * in is refused, and so is a bad one in the working directory itself. EXITS_OK, EXITS_DATA or
 * EXITS_RUNNING with a sentence in `error`. */
exits_t data_open (data_t *out, const char *asked, char error[DATA_ERROR_SIZE]);
/* The directory asked for, locked as by data_open but only to be read: it must be there, and
 * nothing in it is made or changed. */
exits_t data_open_to_read (data_t *out, const char *asked, char error[DATA_ERROR_SIZE]);
/* What data_open would use, without making, locking or changing anything. One that is not there yet
 * is `made`, and could be. where: what there is of it, itself or the directory above. */
exits_t data_look (data_t *out, char where[DATA_PATH_SIZE], const char *asked,
                   char error[DATA_ERROR_SIZE]);
void data_close (data_t *self);
/* Leaves this process's pid in the lock file and, for clients that look there, whether it waits as
 * a standby. False with errno. */
bool data_tell (const data_t *self, bool standby);

/* The path of a file in the directory; false if it is too long. */
bool data_path (const data_t *self, const char *name, char *out, size_t out_size);
/* Replaces the file `endpoint` by these URIs, one a line, atomically. */
exits_t data_write_endpoints (const data_t *self, const char *const *uris, size_t count,
                              char error[DATA_ERROR_SIZE]);

#endif
