/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The bodies that lines of an export name by hash: files of a directory, each called after the hash
 * of its bytes in 64 hexadecimal digits. So what several tasks name is there once, and whatever
 * else stands in a file is found out. */
#ifndef TASKCTL_BODIES_H
#define TASKCTL_BODIES_H

#include "line/app.h"
#include "link/fetched.h"

enum { BODY_FLAW_SIZE = 192 };

/* Fetches a body into the directory, unless it is there already; body->path is not looked at. An
 * earlier fetch that was interrupted goes on. 0 or an exit code, and then it was told. */
int body_fetch (const app_t *app, const char *directory, const fetched_t *body);

/* Opens the file of a body and reads all of it. Returns its descriptor, or -1 and what is wrong. */
int body_open (const char *directory, const tmq_blob_t *blob, char flaw[BODY_FLAW_SIZE]);

/* Uploads a body that is larger than a frame, for this connection's identity to name. Returns
 * TMQ_OK or the code in error. */
int body_upload (const app_t *app, const char *directory, const tmq_blob_t *blob,
                 tmq_error_t *error);

#endif
