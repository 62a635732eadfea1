/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "ceiling_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 4096,
    FILE_BYTES = 64 * 1024 * 1024,
    BATCH_BYTES_MAX = 16 * 1024 * 1024,
    PATH_BYTES = 600
};

static struct {
    int fd;
    uint8_t *batch; /* aligned */
    size_t length;
    uint64_t at; /* in the file */
} the_log;

static void write_all (size_t length, uint64_t at, int flags)
{
    for (size_t done = 0; done < length;) {
        struct iovec piece = {the_log.batch + done, length - done};
        ssize_t put = pwritev2 (the_log.fd, &piece, 1, (off_t) (at + done), flags);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            ceiling_fail (strerror (errno));
        done += (size_t) put;
    }
}

void ceiling_log_open (const char *directory)
{
    char path[PATH_BYTES];
    snprintf (path, sizeof path, "%s/ceiling.log", directory);
    the_log.fd = open (path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_DIRECT, 0600);
    the_log.batch = aligned_alloc (BLOCK_BYTES, BATCH_BYTES_MAX);
    if (the_log.fd < 0 || !the_log.batch)
        ceiling_fail (strerror (errno));
    memset (the_log.batch, 0, BATCH_BYTES_MAX);
    for (uint64_t at = 0; at < FILE_BYTES; at += BATCH_BYTES_MAX)
        write_all (BATCH_BYTES_MAX, at, 0);
    if (fsync (the_log.fd) != 0)
        ceiling_fail (strerror (errno));
}

void ceiling_log_put (const void *bytes, size_t length)
{
    if (the_log.length + length > BATCH_BYTES_MAX)
        ceiling_fail ("a batch is too large");
    memcpy (the_log.batch + the_log.length, bytes, length);
    the_log.length += length;
}

void ceiling_log_commit (void)
{
    size_t used = the_log.length;
    size_t room = (used + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    memset (the_log.batch + used, 0, room - used);
    if (the_log.at + room > FILE_BYTES)
        the_log.at = 0;
    write_all (room, the_log.at, RWF_DSYNC);
    the_log.at += room;
    the_log.length = 0;
}
