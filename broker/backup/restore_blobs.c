/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "backup/restore_blobs.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "disk.h"
#include "store/archive/archive_blobs.h"
#include "taskmq_types.h"

enum { PATH_SIZE = 4096 + 256 };

typedef struct note {
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    size_t order;
    bool gone;
} note_t;

struct restore_blobs {
    note_t *notes;
    size_t count;
    size_t capacity;
};

restore_blobs_t *restore_blobs_new (void)
{
    return memory_zero (1, sizeof (restore_blobs_t));
}

void restore_blobs_free (restore_blobs_t **self)
{
    if (*self != NULL)
        free ((*self)->notes);
    free (*self);
    *self = NULL;
}

void restore_blobs_note (void *context, const uint8_t *hash, bool gone)
{
    restore_blobs_t *self = context;
    self->notes = memory_grow (self->notes, &self->capacity, self->count, sizeof (note_t));
    note_t *note = &self->notes[self->count];
    memcpy (note->hash, hash, TMQ_BLOB_HASH_BYTES);
    note->gone = gone;
    note->order = self->count++;
}

/* By hash, of one hash the last word first. */
static int by_hash (const void *a, const void *b)
{
    const note_t *x = a;
    const note_t *y = b;
    int order = memcmp (x->hash, y->hash, TMQ_BLOB_HASH_BYTES);
    return order != 0 ? order : (x->order < y->order) - (x->order > y->order);
}

static bool fetch (const note_t *note, const char *archive, const char *directory,
                   restore_blobs_report_t *out)
{
    bool read_ok;
    char hex[ARCHIVE_HEX_SIZE];
    char path[PATH_SIZE];
    char bucket[PATH_SIZE];
    sodium_bin2hex (hex, sizeof (hex), note->hash, TMQ_BLOB_HASH_BYTES);
    snprintf (path, sizeof (path), "%s/blobs/%.2s/%s", directory, hex, hex + 2);
    if (access (path, F_OK) == 0)
        return true; /* the backup has it */
    snprintf (bucket, sizeof (bucket), "%s/blobs", directory);
    bool good = disk_make_directory (bucket) == 0;
    snprintf (bucket, sizeof (bucket), "%s/blobs/%.2s", directory, hex);
    if (!good || disk_make_directory (bucket) != 0)
        return false;
    out->any = true;
    if (archive_blob_fetch (archive, note->hash, path, &read_ok))
        return disk_sync_directory (bucket) == 0;
    if (read_ok)
        return errno == ENOENT || errno == EBADMSG;
    out->unreadable++;
    out->error = errno;
    memcpy (out->example, hex, sizeof (out->example));
    return true;
}

bool restore_blobs_fetch (restore_blobs_t *self, const char *archive, const char *directory,
                          restore_blobs_report_t *out)
{
    *out = (restore_blobs_report_t){.any = false};
    if (self->count > 0)
        qsort (self->notes, self->count, sizeof (note_t), by_hash);
    for (size_t i = 0; i < self->count; i++) {
        const note_t *note = &self->notes[i];
        bool first = i == 0 || memcmp (note->hash, note[-1].hash, TMQ_BLOB_HASH_BYTES) != 0;
        if (first && !note->gone && !fetch (note, archive, directory, out))
            return false;
    }
    return true;
}
