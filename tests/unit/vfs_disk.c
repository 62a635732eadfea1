/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "vfs_disk.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "support/cmocka_all.h"

enum { SECTOR = 512, PATH_MAX_BYTES = 200 };

/* The recording. */

static pthread_mutex_t recording_lock = PTHREAD_MUTEX_INITIALIZER;

/* Below the root; NULL: it is none of it. */
static char *path_below (const recording_t *self, const char *path)
{
    const char *at = strstr (path, self->root);
    if (at == NULL || at[strlen (self->root)] != '/')
        return NULL;
    return memory_text (at + strlen (self->root) + 1);
}

void recording_add (void *context, const vfs_op_t *op)
{
    recording_t *self = context;
    vfs_op_t copy = *op;
    if (op->path != NULL && (copy.path = path_below (self, op->path)) == NULL)
        return;
    if (op->to != NULL)
        copy.to = path_below (self, op->to);
    if (op->kind == VFS_WRITE)
        copy.bytes = memcpy (memory_alloc (op->length), op->bytes, op->length);
    pthread_mutex_lock (&recording_lock);
    self->ops = memory_grow (self->ops, &self->capacity, self->count, sizeof (vfs_op_t));
    self->ops[self->count++] = copy;
    pthread_mutex_unlock (&recording_lock);
}

void recording_free (recording_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free ((char *) self->ops[i].path);
        if (self->ops[i].kind == VFS_WRITE)
            free ((void *) self->ops[i].bytes);
        free ((char *) self->ops[i].to);
    }
    free (self->ops);
    *self = (recording_t){NULL, NULL, 0, 0};
}

/* The disk: files, and names that stand for them. */

typedef struct image {
    bool directory;
    uint8_t *synced; /* as after the last sync */
    size_t synced_length;
    uint8_t *current; /* as the process sees it */
    size_t current_length;
    const vfs_op_t **unsynced; /* writes and truncations since the last sync */
    size_t unsynced_count;
    size_t unsynced_capacity;
} image_t;

typedef struct name {
    char path[PATH_MAX_BYTES];
    image_t *now;
    image_t *synced; /* what it stands for after a loss of all that was not synced */
} name_t;

struct vfs_disk {
    image_t **images;
    size_t images_count;
    size_t images_capacity;
    name_t *names;
    size_t names_count;
    size_t names_capacity;
};

vfs_disk_t *vfs_disk_new (void)
{
    return memory_zero (1, sizeof (vfs_disk_t));
}

void vfs_disk_free (vfs_disk_t *self)
{
    for (size_t i = 0; i < self->images_count; i++) {
        free (self->images[i]->synced);
        free (self->images[i]->current);
        free (self->images[i]->unsynced);
        free (self->images[i]);
    }
    free (self->images);
    free (self->names);
    free (self);
}

static size_t parent_length (const char *path)
{
    const char *slash = strrchr (path, '/');
    return slash == NULL ? 0 : (size_t) (slash - path);
}

static name_t *name_of (vfs_disk_t *self, const char *path)
{
    for (size_t i = 0; i < self->names_count; i++)
        if (strcmp (self->names[i].path, path) == 0)
            return &self->names[i];
    assert_true (strlen (path) < PATH_MAX_BYTES);
    self->names =
        memory_grow (self->names, &self->names_capacity, self->names_count, sizeof (name_t));
    name_t *name = &self->names[self->names_count++];
    *name = (name_t){.now = NULL};
    memcpy (name->path, path, strlen (path) + 1);
    return name;
}

static void name_set (name_t *name, image_t *image)
{
    name->now = image;
    if (parent_length (name->path) == 0)
        name->synced = image;
}

static image_t *image_of (vfs_disk_t *self, const char *path)
{
    name_t *name = name_of (self, path);
    if (name->now == NULL) {
        self->images = memory_grow (self->images, &self->images_capacity, self->images_count,
                                    sizeof (image_t *));
        self->images[self->images_count] = memory_zero (1, sizeof (image_t));
        name_set (name, self->images[self->images_count++]);
    }
    return name->now;
}

static void bytes_fit (uint8_t **bytes, size_t *length, size_t wanted)
{
    *bytes = memory_resize (*bytes, wanted, 1);
    if (wanted > *length)
        memset (*bytes + *length, 0, wanted - *length);
    *length = wanted;
}

static void bytes_write (uint8_t **bytes, size_t *length, const vfs_op_t *op, uint64_t from,
                         uint64_t to)
{
    if (op->offset + to > *length)
        bytes_fit (bytes, length, (size_t) (op->offset + to));
    memcpy (*bytes + op->offset + from, (const uint8_t *) op->bytes + from, (size_t) (to - from));
}

static void image_sync (image_t *file)
{
    bytes_fit (&file->synced, &file->synced_length, file->current_length);
    if (file->current_length > 0)
        memcpy (file->synced, file->current, file->current_length);
    file->unsynced_count = 0;
}

static void image_change (image_t *file, const vfs_op_t *op)
{
    if (op->kind == VFS_WRITE)
        bytes_write (&file->current, &file->current_length, op, 0, op->length);
    else
        bytes_fit (&file->current, &file->current_length, (size_t) op->length);
    file->unsynced = memory_grow (file->unsynced, &file->unsynced_capacity, file->unsynced_count,
                                  sizeof (vfs_op_t *));
    file->unsynced[file->unsynced_count++] = op;
}

/* Of two names for one file a rename leaves both. */
static void rename_to (vfs_disk_t *self, const vfs_op_t *op)
{
    image_t *image = image_of (self, op->path);
    name_t *to = name_of (self, op->to);
    if (to->now == image)
        return;
    name_set (to, image);
    name_set (name_of (self, op->path), NULL);
}

static void sync_names (vfs_disk_t *self, const char *directory)
{
    for (size_t i = 0; i < self->names_count; i++) {
        name_t *name = &self->names[i];
        size_t length = parent_length (name->path);
        if (length == strlen (directory) && memcmp (name->path, directory, length) == 0)
            name->synced = name->now;
    }
}

void vfs_disk_apply (vfs_disk_t *self, const vfs_op_t *op)
{
    switch (op->kind) {
    case VFS_CREATE: image_of (self, op->path); return;
    case VFS_DIRECTORY: image_of (self, op->path)->directory = true; return;
    case VFS_RENAME: rename_to (self, op); return;
    case VFS_LINK: {
        image_t *image = image_of (self, op->path);
        name_set (name_of (self, op->to), image);
        return;
    }
    case VFS_DELETE: name_set (name_of (self, op->path), NULL); return;
    case VFS_SYNC_NAMES: sync_names (self, op->path); return;
    case VFS_SYNC: image_sync (image_of (self, op->path)); return;
    case VFS_SYNC_WRITE: {
        image_t *file = image_of (self, op->path);
        const vfs_op_t *write = file->unsynced[--file->unsynced_count];
        bytes_write (&file->synced, &file->synced_length, write, 0, write->length);
        return;
    }
    case VFS_WRITE:
    case VFS_TRUNCATE: image_change (image_of (self, op->path), op); return;
    case VFS_MARK: return;
    }
}

/* Places. */

void vfs_place_make (char path[64])
{
    snprintf (path, 64, "%s", access ("/dev/shm", W_OK) == 0 ? "/dev/shm/taskmq-XXXXXX" : "XXXXXX");
    assert_non_null (mkdtemp (path));
}

static int remove_one (const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void) info;
    (void) kind;
    (void) at;
    return remove (path);
}

void vfs_place_remove (const char *path)
{
    assert_int_equal (nftw (path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* After the loss. */

static bool coin (uint64_t *random)
{
    *random = *random * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (*random >> 40 & 1) != 0;
}

/* Each unsynced write, or each sector of it, is there or not, whatever came before or after it. */
static void lose_parts (const image_t *file, uint8_t **bytes, size_t *length, bool sectors,
                        uint64_t *random)
{
    for (size_t i = 0; i < file->unsynced_count; i++) {
        const vfs_op_t *op = file->unsynced[i];
        if (op->kind == VFS_TRUNCATE) {
            if (coin (random))
                bytes_fit (bytes, length, (size_t) op->length);
            continue;
        }
        uint64_t from = 0;
        while (from < op->length) {
            uint64_t to = ((op->offset + from) / SECTOR + 1) * SECTOR - op->offset;
            if (!sectors || to > op->length)
                to = op->length;
            if (coin (random))
                bytes_write (bytes, length, op, from, to);
            from = to;
        }
    }
}

static void image_put (const image_t *file, const char *path, vfs_loss_t loss, uint64_t *random)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    bool all = loss == LOSE_NOTHING;
    bytes_fit (&bytes, &length, all ? file->current_length : file->synced_length);
    if (length > 0)
        memcpy (bytes, all ? file->current : file->synced, length);
    if (loss == LOSE_SECTORS || loss == LOSE_WRITES)
        lose_parts (file, &bytes, &length, loss == LOSE_SECTORS, random);
    if (loss == LOSE_LENGTHS)
        bytes_fit (&bytes, &length, file->current_length);
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true (fd >= 0);
    assert_int_equal (write (fd, bytes, length), length);
    close (fd);
    free (bytes);
}

static const image_t *name_left (const name_t *name, vfs_loss_t loss, uint64_t *random)
{
    if (loss == LOSE_ALL || name->now == name->synced)
        return name->synced;
    if (loss == LOSE_NOTHING || loss == LOSE_LENGTHS)
        return name->now;
    return coin (random) ? name->now : name->synced;
}

void vfs_disk_lose (const vfs_disk_t *self, const char *directory, vfs_loss_t loss,
                    uint64_t *random)
{
    char (*put)[PATH_MAX_BYTES + 100] = calloc (self->names_count + 1, sizeof (*put));
    const image_t **whose = calloc (self->names_count + 1, sizeof (*whose));
    size_t count = 0;
    char path[PATH_MAX_BYTES + 100];
    assert_non_null (put);
    assert_non_null (whose);
    for (size_t i = 0; i < self->names_count; i++) {
        const image_t *image = name_left (&self->names[i], loss, random);
        if (image == NULL)
            continue;
        snprintf (path, sizeof (path), "%s/%s", directory, self->names[i].path);
        path[strlen (directory) + 1 + parent_length (self->names[i].path)] = '\0';
        bool lost = access (path, F_OK) != 0; /* with the directory that it was in */
        snprintf (path, sizeof (path), "%s/%s", directory, self->names[i].path);
        size_t first = 0;
        while (first < count && whose[first] != image)
            first++;
        if (lost)
            continue;
        if (image->directory) {
            assert_int_equal (mkdir (path, 0700), 0);
        } else if (first < count) {
            assert_int_equal (link (put[first], path), 0);
        } else {
            image_put (image, path, loss, random);
            memcpy (put[count], path, sizeof (path));
            whose[count++] = image;
        }
    }
    free (put);
    free (whose);
}
