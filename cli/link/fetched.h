/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A body that is fetched into a file, and gone on with where an earlier command ended.
 *
 * Until it is whole it is called .FILE.HASH.part, beside the file: HASH is the beginning of its own
 * hash, so what is there of another body is never taken for it. Whoever ends the program, a signal
 * or a full disk, leaves that file for the next command. */
#ifndef TASKCTL_FETCHED_H
#define TASKCTL_FETCHED_H

#include "line/app.h"

/* Has what is asked for written from the descriptor's beginning, or gone on with. */
typedef int fetch_t (void *context, int fd, bool in_place, uint64_t *fetched, tmq_error_t *error);

typedef struct fetched {
    const char *path;
    const char *what;    /* for messages: an id, a name */
    const uint8_t *hash; /* TMQ_BLOB_HASH_BYTES */
    uint64_t bytes;
    fetch_t *fetch;
    void *context;
    bool as_file; /* a device or a pipe of its name is replaced, too */
} fetched_t;

/* 0 or an exit code. A device or a pipe is written as it is, unless as_file is set. The file gets
 * mode 0600, and replaces what had its name. */
int fetched_save (const fetched_t *self, const app_t *app);

#endif
