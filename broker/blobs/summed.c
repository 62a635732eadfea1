/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
#include "blobs/summed.h"

#include <string.h>

static summed_file_t *find (summed_t *self, const uint8_t *hash)
{
    for (size_t i = 0; i < self->count; i++)
        if (memcmp (self->files[i].hash, hash, sizeof (self->files[i].hash)) == 0)
            return &self->files[i];
    return NULL;
}

summed_file_t *summed_find (summed_t *self, const uint8_t *hash, const struct stat *file)
{
    summed_file_t *known = find (self, hash);
    bool same = known != NULL && known->device == file->st_dev && known->inode == file->st_ino &&
                known->changed.tv_sec == file->st_ctim.tv_sec &&
                known->changed.tv_nsec == file->st_ctim.tv_nsec;
    return same ? known : NULL;
}

void summed_add (summed_t *self, const uint8_t *hash, const struct stat *file, bool good)
{
    summed_file_t *place = find (self, hash);
    if (place == NULL && self->count < SUMMED_MAX) {
        place = &self->files[self->count++];
    } else if (place == NULL) {
        place = &self->files[self->next];
        self->next = (self->next + 1) % SUMMED_MAX;
    }
    *place = (summed_file_t){
        .device = file->st_dev, .inode = file->st_ino, .changed = file->st_ctim, .good = good};
    memcpy (place->hash, hash, sizeof (place->hash));
}

void summed_forget (summed_t *self, const uint8_t *hash)
{
    summed_file_t *known = find (self, hash);
    if (known == NULL)
        return;
    *known = self->files[--self->count];
    self->next = 0;
}
