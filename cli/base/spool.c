/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int spool_make (void)
{
    char path[4096];
    const char *directory = getenv ("TMPDIR");
    const int length = snprintf (path, sizeof path, "%s/taskmq-XXXXXX",
                                 directory && *directory ? directory : "/tmp");
    if (length < 0 || (size_t) length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = mkostemp (path, O_CLOEXEC);
    if (fd >= 0)
        unlink (path);
    return fd;
}

bool spool_write (int fd, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        const ssize_t n = write (fd, at, length);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
        length -= n > 0 ? (size_t) n : 0;
    }
    return true;
}
