/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Files that are written as a whole: into a file beside them, which then gets their name; and the
 * writing of all bytes, however many a call takes. Functions return -1 with errno set when they
 * fail. Any thread. */
#ifndef TASKMQ_PROTO_DISK_H
#define TASKMQ_PROTO_DISK_H

#include <stddef.h>
#include <stdint.h>

enum { DISK_LEFT_S = 60 /* a file beside of that age was left by somebody who was killed */ };

/* A name is on the disk when its directory is. */
int disk_sync_directory (const char *directory);
int disk_sync_parent (const char *path);
/* With mode 0700, unless it is there. Its name is on the disk then, also after a crash between the
 * making and the sync of somebody before. */
int disk_make_directory (const char *path);

/* All of the bytes, also when a signal comes, behind what was written before or at an offset. When
 * it fails, some of them may be there. */
int disk_write (int fd, const void *bytes, size_t length);
int disk_write_at (int fd, const void *bytes, size_t length, uint64_t at);

/* Makes .NAME.new-XXXXXX in the directory of `path` with mode 0600, puts its path into `out` and
 * returns the descriptor. What such writes of this user have left there for longer than DISK_LEFT_S
 * goes. */
int disk_temporary (char *out, size_t size, const char *path);

#endif
