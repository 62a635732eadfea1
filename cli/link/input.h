/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What comes in beside the broker's answers: files and standard input. */
#ifndef TASKCTL_INPUT_H
#define TASKCTL_INPUT_H

#include "line/app.h"

/* What helps where a body is larger than the broker takes. */
#define BODY_LIMIT_HINT                                                                            \
    "the operator can raise limits/blob_bytes, up to 1G, in the file that taskmqd was started "    \
    "with (-c); then: taskctl reload"

/* A file's or stream's bytes ("-": stdin). 0, or an exit code after saying why. At most limit
 * bytes; more is an error. *data is freed by free () and ends with a NUL that does not count. */
int read_all (const app_t *app, char **data, size_t *bytes, const char *path, size_t limit);

/* The same, but what is longer than that becomes a file of *bytes bytes: *file is its descriptor,
 * else -1. More than the broker takes is an error. It connects to ask for that, and reads a stream
 * no further. */
int read_large (app_t *app, char **data, size_t *bytes, int *file, const char *path, size_t limit);

/* True if something waits to be read on stdin: a pipe, or a file that nobody has read in yet. */
bool input_is_there (void);

#endif
