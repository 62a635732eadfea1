/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A file that is whole under its name, or not there. A device, a pipe, and a name of standard
 * output or error are written as they are. */
#ifndef TASKCTL_OUTFILE_H
#define TASKCTL_OUTFILE_H

#include <limits.h>
#include <stdio.h>

#include "line/app.h"

typedef struct outfile {
    FILE *stream;
    const char *path; /* NULL: standard output */
    /* What it is called until it is whole; empty: it is written in place. */
    char part[PATH_MAX];
} outfile_t;

/* Begins a file of mode 0600; path must live as long. part: what it is called until it is whole, in
 * the same directory; what has that name goes. NULL: a name that nobody else has. 0 or an exit
 * code. */
int outfile_open (outfile_t *out, const app_t *app, const char *path, const char *part);
/* Ends it. good: it gets its name, in place of what had it; synced: and is on the disk. Otherwise
 * nothing is left of it. 0 or an exit code. */
int outfile_close (outfile_t *self, const app_t *app, bool good, bool synced);

/* What cannot be written, by an errno. Returns the exit code. */
int outfile_error (const app_t *app, const char *path, int reason);
/* Standard output or error by a name of theirs, a device, a pipe: what stays as it is, and is
 * written where it stands: *fd, or -1 with errno. False: the path is none of that. */
bool outfile_open_place (const char *path, int *fd);

#endif
