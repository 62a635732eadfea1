/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: what was made so far goes, and the plain file stays. */
#include "export/packer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zstd.h>

#include "core/base/memory.h"
#include "disk.h"
#include "packed.h"

enum { LEVEL = 3, PATH_SIZE = 4096 + 128 };
#define BESIDE ".new" /* one name, so that the next try takes what a kill left */

/* One step each, from PACK on, which comes once a frame. */
typedef enum phase { OPEN, PACK, SYNC, NAME, REMOVE } phase_t;

struct packer {
    char path[PATH_SIZE];
    char packed[PATH_SIZE];
    char beside[PATH_SIZE]; /* what becomes the packed file */
    bool is_beside;         /* it is there */
    shared_limit_t *free_bytes_min;
    phase_t phase;
    int in;
    int out;
    off_t offset;
    ZSTD_CCtx *context;
    char *text;
    char *frame;
};

static packer_state_t fail (const char *what, const char *path, char *error)
{
    snprintf (error, PACKER_ERROR_SIZE, "cannot %s %.400s: %s", what, path, strerror (errno));
    return PACKER_FAILED;
}

packer_t *packer_new (const char *path, shared_limit_t *free_bytes_min)
{
    packer_t *self = memory_zero (1, sizeof (*self));
    snprintf (self->path, sizeof (self->path), "%s", path);
    snprintf (self->packed, sizeof (self->packed), "%s" PACKED_ENDING, path);
    snprintf (self->beside, sizeof (self->beside), "%s" PACKED_ENDING BESIDE, path);
    self->free_bytes_min = free_bytes_min;
    self->in = self->out = -1;
    return self;
}

static void close_files (packer_t *self)
{
    if (self->in >= 0)
        close (self->in);
    if (self->out >= 0)
        close (self->out);
    self->in = self->out = -1;
}

void packer_free (packer_t **self_p)
{
    packer_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    close_files (self);
    if (self->is_beside)
        unlink (self->beside);
    ZSTD_freeCCtx (self->context);
    free (self->text);
    free (self->frame);
    free (self);
}

static packer_state_t open_files (packer_t *self, char *error)
{
    self->in = open (self->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (self->in < 0)
        return fail ("read", self->path, error);
    self->out = open (self->beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (self->out < 0)
        return fail ("make", self->beside, error);
    self->is_beside = true;
    self->context = ZSTD_createCCtx ();
    if (self->context == NULL)
        abort (); /* out of memory, as everywhere in the broker */
    ZSTD_CCtx_setParameter (self->context, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter (self->context, ZSTD_c_checksumFlag, 1);
    self->text = memory_alloc (PACKED_FRAME_BYTES);
    self->frame = memory_alloc (ZSTD_COMPRESSBOUND (PACKED_FRAME_BYTES));
    self->phase = PACK;
    return PACKER_MORE;
}

/* For another frame, beside what the broker leaves free: packing can wait, commits cannot. */
static bool has_room (const packer_t *self)
{
    struct statvfs info;
    return fstatvfs (self->out, &info) != 0 ||
           (uint64_t) info.f_bavail * info.f_frsize >=
               shared_limit (self->free_bytes_min) + PACKED_FRAME_BYTES;
}

static packer_state_t pack_frame (packer_t *self, char *error)
{
    if (!has_room (self)) {
        snprintf (error, PACKER_ERROR_SIZE, "the disk has less than limits/free_space_min");
        return PACKER_FAILED;
    }
    ssize_t got = pread (self->in, self->text, PACKED_FRAME_BYTES, self->offset);
    if (got < 0)
        return errno == EINTR ? PACKER_MORE : fail ("read", self->path, error);
    if (got == 0) {
        self->phase = SYNC;
        return PACKER_MORE;
    }
    self->offset += got;
    size_t length =
        ZSTD_compress2 (self->context, self->frame, ZSTD_COMPRESSBOUND (PACKED_FRAME_BYTES),
                        self->text, (size_t) got);
    if (ZSTD_isError (length)) {
        snprintf (error, PACKER_ERROR_SIZE, "cannot pack %.400s: %s", self->path,
                  ZSTD_getErrorName (length));
        return PACKER_FAILED;
    }
    return disk_write (self->out, self->frame, length) == 0 ? PACKER_MORE
                                                            : fail ("write", self->beside, error);
}

/* With the time of the plain one: by it old files are found. */
static packer_state_t sync_file (packer_t *self, char *error)
{
    struct stat info;
    if (fstat (self->in, &info) != 0)
        return fail ("read", self->path, error);
    const struct timespec times[] = {info.st_atim, info.st_mtim};
    if (futimens (self->out, times) != 0 || fsync (self->out) != 0)
        return fail ("sync", self->beside, error);
    self->phase = NAME;
    return PACKER_MORE;
}

static packer_state_t name_file (packer_t *self, char *error)
{
    if (rename (self->beside, self->packed) != 0)
        return fail ("rename", self->beside, error);
    self->is_beside = false;
    if (disk_sync_parent (self->packed) != 0)
        return fail ("sync the directory of", self->packed, error);
    self->phase = REMOVE;
    return PACKER_MORE;
}

static packer_state_t remove_plain (packer_t *self, char *error)
{
    close_files (self);
    if (unlink (self->path) != 0)
        return fail ("remove", self->path, error);
    return PACKER_DONE;
}

packer_state_t packer_step (packer_t *self, char error[PACKER_ERROR_SIZE])
{
    switch (self->phase) {
    case OPEN: return open_files (self, error);
    case PACK: return pack_frame (self, error);
    case SYNC: return sync_file (self, error);
    case NAME: return name_file (self, error);
    case REMOVE: break;
    }
    return remove_plain (self, error);
}
