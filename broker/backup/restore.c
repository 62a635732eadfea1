/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "backup/restore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/named.h"
#include "backup/pack.h"
#include "backup/restore_blobs.h"
#include "backup/restore_into.h"
#include "backup/tar.h"
#include "core/base/memory.h"
#include "disk.h"

enum { PATH_SIZE = 4096 + 128, CHUNK_BYTES = 256 * 1024 };

typedef struct restore {
    const restore_from_t *from;
    const char *file;
    const char *directory;
    char scratch[PATH_SIZE];
    int fd;         /* of the file */
    int scratch_fd; /* of the scratch directory, locked: one restore at a time */
    bool made;      /* the directory was made */
    bool crashed;   /* it has what a crash left of another restore */
    bool emptied;   /* the scratch directory has nothing of that any more */
    bool moving;
    restore_into_t into;
    manifest_part_t found[PARTS]; /* as they stand in the archive */
    char *text;                   /* of the manifest */
    size_t text_length;
} restore_t;

static store_code_t refuse (const restore_t *self, const char *why, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_FOREIGN, "%s: %s", self->file, why);
}

static store_code_t fail_system (store_error_t *error, const char *path, const char *what)
{
    store_code_t code = errno == ENOSPC || errno == EDQUOT ? STORE_ERROR_FULL
                        : errno == EIO                     ? STORE_ERROR_IO
                                                           : STORE_ERROR_ACCESS;
    return store_fail (error, code, "%s: %s: %s", path, what, strerror (errno));
}

/* The directory. */

/* Names of a restore that a crash ended belong to us as long as the scratch directory is there. A
 * start that was refused has left its lock beside them. */
static bool may_stand (const char *name, bool crashed)
{
    return strcmp (name, ".") == 0 || strcmp (name, "..") == 0 ||
           strcmp (name, "lost+found") == 0 || strcmp (name, RESTORE_SCRATCH) == 0 ||
           (crashed && (manifest_find (name) != PARTS || strcmp (name, "taskmq.lock") == 0 ||
                        strcmp (name, DATABASE_INSTANCE_FILE) == 0));
}

static store_code_t look_at_directory (restore_t *self, store_error_t *error)
{
    struct stat info;
    self->crashed = lstat (self->scratch, &info) == 0;
    DIR *entries = opendir (self->directory);
    if (entries == NULL && errno != ENOENT)
        return fail_system (error, self->directory, "cannot be used");
    if (entries == NULL) {
        self->made = mkdir (self->directory, 0700) == 0;
        return self->made ? STORE_OK : fail_system (error, self->directory, "cannot be made");
    }
    store_code_t code = STORE_OK;
    for (const struct dirent *entry; (entry = readdir (entries)) != NULL;) {
        if (!may_stand (entry->d_name, self->crashed))
            code = store_fail (error, STORE_ERROR_FOREIGN,
                               "%s: is not empty (%s): a restore needs an empty directory",
                               self->directory, entry->d_name);
    }
    closedir (entries);
    return code;
}

static void empty_scratch (restore_t *self)
{
    static const char *const beside[] = {"taskmq.db-wal", "taskmq.db-shm", RESTORE_GENERATION};
    self->emptied = true;
    pack_remove (self->scratch_fd, manifest_file (PART_BLOBS));
    for (int part = 0; part < PARTS; part++)
        unlinkat (self->scratch_fd, manifest_file ((manifest_part_name_t) part), 0);
    for (size_t i = 0; i < sizeof (beside) / sizeof (beside[0]); i++)
        unlinkat (self->scratch_fd, beside[i], 0);
}

static store_code_t open_scratch (restore_t *self, store_error_t *error)
{
    if (mkdir (self->scratch, 0700) != 0 && errno != EEXIST)
        return fail_system (error, self->scratch, "cannot be made");
    self->scratch_fd = open (self->scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (self->scratch_fd < 0)
        return fail_system (error, self->scratch, "cannot be used");
    if (flock (self->scratch_fd, LOCK_EX | LOCK_NB) != 0)
        return store_fail (error, STORE_ERROR_BUSY, "%s: another restore is under way",
                           self->directory);
    return STORE_OK;
}

/* The archive. */

/* Exactly so many bytes. */
static store_code_t get (const restore_t *self, void *out, size_t length, store_error_t *error)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = read (self->fd, (char *) out + done, length - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_system (error, self->file, "cannot be read");
        if (got == 0)
            return store_fail (error, STORE_ERROR_CORRUPT, "%s: is cut off", self->file);
        done += (size_t) got;
    }
    return STORE_OK;
}

static store_code_t put (int fd, const char *path, const void *bytes, size_t length,
                         store_error_t *error)
{
    return disk_write (fd, bytes, length) == 0 ? STORE_OK
                                               : fail_system (error, path, "cannot be written");
}

/* Where the bytes of a part go: into a file, or, of the blobs, into theirs. */
typedef struct sink {
    int fd;
    unpack_t *unpack; /* or NULL */
} sink_t;

static store_code_t fail_unpack (const restore_t *self, const char *wrong, store_error_t *error)
{
    return *wrong == '\0' ? fail_system (error, self->scratch, "cannot be written")
                          : store_fail (error, STORE_ERROR_CORRUPT, "%s: %s", self->file, wrong);
}

static store_code_t sink_put (const restore_t *self, const sink_t *sink, const char *bytes,
                              size_t length, store_error_t *error)
{
    if (sink->unpack == NULL)
        return put (sink->fd, self->directory, bytes, length, error);
    const char *wrong = unpack_add (sink->unpack, (const uint8_t *) bytes, length);
    return wrong == NULL ? STORE_OK : fail_unpack (self, wrong, error);
}

static store_code_t copy_part (restore_t *self, const sink_t *sink, manifest_part_t *part,
                               store_error_t *error)
{
    crypto_generichash_state hash;
    store_code_t code = STORE_OK;
    char *chunk = memory_alloc (CHUNK_BYTES);
    crypto_generichash_init (&hash, NULL, 0, MANIFEST_HASH_BYTES);
    for (uint64_t left = part->bytes; code == STORE_OK && left > 0;) {
        size_t length = left < CHUNK_BYTES ? (size_t) left : CHUNK_BYTES;
        code = get (self, chunk, length, error);
        if (code == STORE_OK)
            code = sink_put (self, sink, chunk, length, error);
        crypto_generichash_update (&hash, (const unsigned char *) chunk, length);
        left -= length;
    }
    crypto_generichash_final (&hash, part->hash, MANIFEST_HASH_BYTES);
    sodium_memzero (chunk, CHUNK_BYTES); /* it may hold the broker's key */
    free (chunk);
    return code;
}

static store_code_t take_blobs (restore_t *self, manifest_part_t *part, store_error_t *error)
{
    sink_t sink = {.unpack = unpack_new (self->scratch_fd, manifest_file (PART_BLOBS))};
    store_code_t code = copy_part (self, &sink, part, error);
    const char *wrong = code == STORE_OK ? unpack_end (sink.unpack) : NULL;
    if (wrong != NULL)
        code = fail_unpack (self, wrong, error);
    unpack_free (&sink.unpack);
    return code;
}

static store_code_t take_part (restore_t *self, const tar_member_t *member, store_error_t *error)
{
    manifest_part_name_t name = manifest_find (member->name);
    if (name == PARTS || self->found[name].there || member->bytes > manifest_bytes_max (name))
        return refuse (self, "holds a file that no backup has", error);
    manifest_part_t *part = &self->found[name];
    *part = (manifest_part_t){.there = true, .bytes = member->bytes};
    if (name == PART_BLOBS)
        return take_blobs (self, part, error);
    int fd = openat (self->scratch_fd, manifest_file (name),
                     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fail_system (error, self->scratch, "cannot be written");
    const sink_t sink = {.fd = fd};
    store_code_t code = copy_part (self, &sink, part, error);
    if (code == STORE_OK && fsync (fd) != 0)
        code = fail_system (error, self->scratch, "cannot be synced");
    close (fd);
    return code;
}

static store_code_t take_manifest (restore_t *self, const tar_member_t *member,
                                   store_error_t *error)
{
    if (self->text != NULL || member->bytes > MANIFEST_BYTES_MAX)
        return refuse (self, "holds a file that no backup has", error);
    self->text_length = (size_t) member->bytes;
    self->text = memory_alloc (self->text_length);
    return get (self, self->text, self->text_length, error);
}

static store_code_t take_member (restore_t *self, const tar_member_t *member, store_error_t *error)
{
    char rest[TAR_BLOCK_BYTES];
    store_code_t code = strcmp (member->name, MANIFEST_NAME) == 0
                            ? take_manifest (self, member, error)
                            : take_part (self, member, error);
    return code == STORE_OK ? get (self, rest, tar_rest (member->bytes), error) : code;
}

static store_code_t unpack (restore_t *self, store_error_t *error)
{
    uint8_t block[TAR_BLOCK_BYTES];
    tar_member_t member;
    const char *why;
    while (true) {
        store_code_t code = get (self, block, sizeof (block), error);
        if (code != STORE_OK)
            return code;
        switch (tar_read (block, &member, &why)) {
        case TAR_REFUSED: return refuse (self, why, error);
        case TAR_END: return STORE_OK;
        case TAR_MEMBER: code = take_member (self, &member, error);
        }
        if (code != STORE_OK)
            return code;
    }
}

static store_code_t compare (restore_t *self, manifest_t *manifest, store_error_t *error)
{
    if (self->text == NULL || !manifest_read (manifest, self->text, self->text_length))
        return refuse (self, "is no backup of taskmqd, or one of a newer version", error);
    for (int i = 0; i < PARTS; i++) {
        const manifest_part_t *said = &manifest->parts[i];
        const manifest_part_t *found = &self->found[i];
        if (said->there != found->there || said->bytes != found->bytes ||
            memcmp (said->hash, found->hash, MANIFEST_HASH_BYTES) != 0)
            return store_fail (error, STORE_ERROR_CORRUPT, "%s: %s is not what was backed up",
                               self->file, manifest_file ((manifest_part_name_t) i));
    }
    return STORE_OK;
}

/* Moving. */

static store_code_t sync_directory (const char *path, store_error_t *error)
{
    return disk_sync_directory (path) == 0 ? STORE_OK
                                           : fail_system (error, path, "cannot be synced");
}

/* Those from `first` on, the tables last: without them nobody takes the directory for a whole one,
 * and with them the access file has to be there. */
static store_code_t move_parts (restore_t *self, manifest_part_name_t first, store_error_t *error)
{
    self->moving = true;
    for (int i = PARTS - 1; i >= (int) first; i--) {
        const char *name = manifest_file ((manifest_part_name_t) i);
        char to[PATH_SIZE];
        snprintf (to, sizeof (to), "%s/%s", self->directory, name);
        if (i == PART_BLOBS && self->crashed)
            pack_remove (AT_FDCWD, to);
        if (!self->found[i].there && self->crashed)
            unlink (to);
        if (!self->found[i].there)
            continue;
        if (renameat (self->scratch_fd, name, AT_FDCWD, to) != 0)
            return fail_system (error, to, "cannot be made");
    }
    return sync_directory (self->directory, error);
}

/* The directory is whole: its mark goes. */
static store_code_t finish (const restore_t *self, store_error_t *error)
{
    if (rmdir (self->scratch) != 0)
        return fail_system (error, self->scratch, "cannot be removed");
    return sync_directory (self->directory, error);
}

static store_code_t move (restore_t *self, store_error_t *error)
{
    store_code_t code = move_parts (self, PART_TABLES, error);
    return code == STORE_OK ? finish (self, error) : code;
}

/* A database. */

_Static_assert(PART_TABLES == 0 && PART_ACCESS == 1, "all parts but the tables");

static store_code_t place (void *context, store_error_t *error)
{
    return move_parts (context, PART_ACCESS, error);
}

/* Nothing of it is in the database: what came into the directory beside that goes. */
static void take_back (restore_t *self)
{
    char path[PATH_SIZE];
    for (int i = PART_ACCESS; i < PARTS; i++) {
        snprintf (path, sizeof (path), "%s/%s", self->directory,
                  manifest_file ((manifest_part_name_t) i));
        if (i == PART_BLOBS)
            pack_remove (AT_FDCWD, path);
        else
            unlink (path);
    }
    snprintf (path, sizeof (path), "%s/" DATABASE_INSTANCE_FILE, self->directory);
    unlink (path);
    self->moving = false;
}

static store_code_t fill_database (restore_t *self, uint64_t generation, store_error_t *error)
{
    self->into.generation = generation;
    store_code_t code = restore_into_run (&self->into, error);
    if (code != STORE_OK && !self->into.unknown)
        take_back (self);
    if (code != STORE_OK)
        return code;
    empty_scratch (self);
    return finish (self, error);
}

/* What is refused is refused before it costs anything. */
static store_code_t look_at_database (restore_t *self, bool *ended, store_error_t *error)
{
    self->into = (restore_into_t){.database = self->from->into,
                                  .directory = self->directory,
                                  .scratch = self->scratch,
                                  .scratch_fd = self->scratch_fd,
                                  .place = place,
                                  .context = self};
    return self->from->into == NULL ? STORE_OK : restore_into_look (&self->into, ended, error);
}

static store_code_t adopt (restore_t *self, restore_report_t *out, store_error_t *error)
{
    store_backup_t found = {.path = NULL};
    if (self->from->archive == NULL)
        return store_adopt (self->scratch, &found, &out->generation, error);
    restore_blobs_t *blobs = restore_blobs_new ();
    out->more = (store_more_t){.archive = self->from->archive,
                               .until_ms = self->from->until_ms,
                               .blob = restore_blobs_note,
                               .context = blobs};
    store_code_t code =
        store_adopt_more (self->scratch, &found, &out->more, &out->generation, error);
    if (code == STORE_OK &&
        !restore_blobs_fetch (blobs, self->from->archive, self->scratch, &out->blobs))
        code = fail_system (error, self->scratch, "cannot be written");
    if (out->blobs.any)
        self->found[PART_BLOBS].there = true;
    restore_blobs_free (&blobs);
    return code;
}

/* Of all that tasks name now: the backup may lack some, and the archive too. */
static store_code_t count_missing (const restore_t *self, restore_report_t *out,
                                   store_error_t *error)
{
    char path[PATH_SIZE + 8];
    named_t *named;
    store_code_t code = named_read (&named, self->scratch, error);
    snprintf (path, sizeof (path), "%s/%s", self->scratch, manifest_file (PART_BLOBS));
    named_look (named, path);
    uint64_t missing = named_missing (named);
    out->blobs_missing = missing > out->blobs.unreadable ? missing - out->blobs.unreadable : 0;
    named_free (&named);
    return code;
}

static store_code_t restore (restore_t *self, restore_report_t *out, store_error_t *error)
{
    store_code_t code = unpack (self, error);
    if (code == STORE_OK)
        code = compare (self, &out->manifest, error);
    if (code == STORE_OK)
        code = adopt (self, out, error);
    if (code == STORE_OK)
        code = count_missing (self, out, error);
    if (code != STORE_OK)
        return code;
    return self->from->into == NULL ? move (self, error)
                                    : fill_database (self, out->generation, error);
}

static store_code_t begin (restore_t *self, restore_report_t *out, store_error_t *error)
{
    self->fd = open (self->file, O_RDONLY | O_CLOEXEC);
    if (self->fd < 0)
        return fail_system (error, self->file, "cannot be read");
    store_code_t code = look_at_directory (self, error);
    if (code == STORE_OK)
        code = open_scratch (self, error);
    if (code == STORE_OK)
        code = look_at_database (self, &out->ended, error);
    if (code != STORE_OK)
        return code;
    out->again = self->crashed;
    empty_scratch (self);
    return out->ended ? finish (self, error) : restore (self, out, error);
}

/* What a crash left of another restore stays known by its directory, until one has come to its
 * end. */
static void clean (restore_t *self)
{
    if (self->crashed && !self->emptied)
        return;
    empty_scratch (self);
    if (!self->crashed)
        rmdir (self->scratch);
}

store_code_t restore_run (const restore_from_t *from, const char *directory, restore_report_t *out,
                          store_error_t *error)
{
    restore_t self = {
        .from = from, .file = from->file, .directory = directory, .fd = -1, .scratch_fd = -1};
    *out = (restore_report_t){.generation = 0};
    snprintf (self.scratch, sizeof (self.scratch), "%s/" RESTORE_SCRATCH, directory);
    store_code_t code = begin (&self, out, error);
    if (code != STORE_OK && code != STORE_ERROR_BUSY && self.scratch_fd >= 0 && !self.moving)
        clean (&self);
    if (code != STORE_OK && self.made && !self.moving)
        rmdir (directory);
    if (self.scratch_fd >= 0)
        close (self.scratch_fd);
    if (self.fd >= 0)
        close (self.fd);
    free (self.text);
    return code;
}
