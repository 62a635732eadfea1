/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "blobs/blob_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "disk.h"

enum {
    ALIGNED = 4096, /* in memory and in the file; all disks take that */
    PIECE_BYTES = 256 * 1024
};

void blob_writer_init (blob_writer_t *self)
{
    self->piece = aligned_alloc (ALIGNED, PIECE_BYTES);
    if (self->piece == NULL)
        abort ();
}

void blob_writer_clear (blob_writer_t *self)
{
    free (self->piece);
    self->piece = NULL;
}

/* EINVAL: the file system does not take it so. */
static int write_direct (const blob_writer_t *self, int fd, const uint8_t *bytes, size_t length,
                         uint64_t at)
{
    int error = 0;
    int flags = fcntl (fd, F_GETFL);
    if (flags < 0 || fcntl (fd, F_SETFL, flags | O_DIRECT) != 0)
        return EINVAL;
    for (size_t done = 0; done < length && error == 0;) {
        size_t some = length - done < PIECE_BYTES ? length - done : PIECE_BYTES;
        memcpy (self->piece, bytes + done, some);
        error = disk_write_at (fd, self->piece, some, at + done) == 0 ? 0 : errno;
        done += some;
    }
    return fcntl (fd, F_SETFL, flags) == 0 || error != 0 ? error : errno;
}

int blob_write (const blob_writer_t *self, blob_sent_t *sent, int fd, const uint8_t *bytes,
                size_t length, uint64_t at, uint64_t file_bytes)
{
    bool direct = !sent->refused && file_bytes > BLOB_DIRECT_BYTES && at % ALIGNED == 0;
    size_t past = direct ? length - length % ALIGNED : 0;
    int error = past > 0 ? write_direct (self, fd, bytes, past, at) : 0;
    if (error == EINVAL) { /* then all of it once more, through the cache */
        sent->refused = true;
        past = 0;
    } else if (error != 0) {
        return error;
    }
    return past == length || disk_write_at (fd, bytes + past, length - past, at + past) == 0
               ? 0
               : errno;
}

int blob_write_back (blob_sent_t *self, int fd, uint64_t end)
{
    const unsigned done =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (end - self->sent < BLOB_WRITE_BACK_BYTES)
        return 0;
    int failed =
        sync_file_range (fd, (off_t) self->sent, (off_t) (end - self->sent), SYNC_FILE_RANGE_WRITE);
    if (failed == 0 && self->sent > self->written)
        failed =
            sync_file_range (fd, (off_t) self->written, (off_t) (self->sent - self->written), done);
    self->written = self->sent;
    self->sent = end;
    /* Some file systems have no such thing. */
    return failed != 0 && errno != ENOSYS && errno != EINVAL && errno != ESPIPE ? errno : 0;
}
