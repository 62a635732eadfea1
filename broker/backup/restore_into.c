/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "backup/restore_into.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backup/manifest.h"
#include "backup/pack.h"
#include "disk.h"
#include "store/postgresql/database.h"

enum { PATH_SIZE = 4096 + 256, NUMBER_SIZE = 24 };

typedef struct walk {
    restore_into_t *into;
    char directory[PATH_SIZE]; /* of the blobs */
    pack_blob_t *blobs;
    size_t count;
    size_t next;
} walk_t;

static store_code_t fail (const restore_into_t *self, const char *what, store_error_t *error)
{
    store_code_t code = errno == ENOSPC || errno == EDQUOT ? STORE_ERROR_FULL : STORE_ERROR_IO;
    return store_fail (error, code, "%s: %s: %s", self->scratch, what, strerror (errno));
}

/* The history. */

/* 0: no restore came so far. */
static uint64_t read_generation (const restore_into_t *self)
{
    char text[NUMBER_SIZE] = "";
    int fd = openat (self->scratch_fd, RESTORE_GENERATION, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    ssize_t length = read (fd, text, sizeof (text) - 1);
    close (fd);
    return length > 0 && text[length - 1] == '\n' ? strtoull (text, NULL, 16) : 0;
}

static bool write_generation (const restore_into_t *self)
{
    char text[NUMBER_SIZE];
    int length = snprintf (text, sizeof (text), "%016" PRIx64 "\n", self->generation);
    int fd = openat (self->scratch_fd, RESTORE_GENERATION,
                     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool done = fd >= 0 && disk_write (fd, text, (size_t) length) == 0 && fsync (fd) == 0;
    if (fd >= 0)
        close (fd);
    return done && fsync (self->scratch_fd) == 0;
}

store_code_t restore_into_look (const restore_into_t *self, bool *there, store_error_t *error)
{
    return database_restore_look (self->database, read_generation (self), there, error);
}

/* Filling. */

static store_code_t next_blob (void *context, uint8_t *hash, uint64_t *bytes, int *fd,
                               store_error_t *error)
{
    walk_t *self = context;
    *fd = -1;
    if (self->next == self->count)
        return STORE_OK;
    const pack_blob_t *blob = &self->blobs[self->next++];
    memcpy (hash, blob->hash, PACK_HASH_BYTES);
    *bytes = blob->bytes;
    *fd = pack_open (self->directory, blob);
    return *fd >= 0 ? STORE_OK : fail (self->into, "a large body cannot be read", error);
}

static store_code_t ready (void *context, store_error_t *error)
{
    const walk_t *self = context;
    const restore_into_t *into = self->into;
    if (!write_generation (into))
        return fail (into, "cannot be written", error);
    return into->place (into->context, error);
}

store_code_t restore_into_run (restore_into_t *self, store_error_t *error)
{
    walk_t walk = {.into = self};
    database_restore_t restore = {.directory = self->scratch,
                                  .generation = self->generation,
                                  .home = self->directory,
                                  .blob = next_blob,
                                  .ready = ready,
                                  .context = &walk};
    snprintf (walk.directory, sizeof (walk.directory), "%s/%s", self->scratch,
              manifest_file (PART_BLOBS));
    store_code_t code = STORE_OK;
    if (!pack_list (walk.directory, &walk.blobs, &walk.count))
        code = fail (self, "cannot be read", error);
    if (code == STORE_OK)
        code = database_restore (self->database, &restore, error);
    self->unknown = restore.unknown;
    free (walk.blobs);
    if (self->unknown) {
        store_error_t lost = *error;
        store_fail (
            error, lost.code,
            "%.500s. Whether the database has it by now is not known: the same restore once "
            "more finds out",
            lost.text);
    }
    return code;
}
