/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The life of an upload: what the disk has of it is read again, bytes come, it is made a blob, and
 * that goes into the vault. */
#include "blobs/depot_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char SECOND[] = ".new"; /* ending of a second name on its way to its place */

/* The vault. */

static void begin_keeping (upload_t *upload, uint64_t owed)
{
    upload->stage = KEEPING;
    upload->owed = owed;
    keeping_begin (&upload->keeping, upload->hash, upload->bytes);
}

static void end_whole (depot_t *self, upload_t *upload, depot_word_t *out)
{
    out->offset = upload->bytes;
    out->whole = true;
    depot_upload_forget (self, upload);
}

/* What was put was summed on the way: who reads it need not do so again. */
static void note_sum (depot_t *self, const upload_t *upload, int fd)
{
    struct stat info;
    if (upload->keeping.right && fstat (fd, &info) == 0)
        summed_add (&self->summed, upload->hash, &info, true);
}

/* A turn of it. Nobody hears that the blob is there before the vault has it, too. */
static void keep_on (depot_t *self, upload_t *upload, depot_word_t *out)
{
    vault_word_t word = {""};
    tmq_code_t code = TMQ_OK;
    int fd = openat (self->uploads_at, upload->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    keeping_turn_t turn =
        fd < 0 ? KEEPING_DAMAGED
               : keeping_on (&upload->keeping, self->vault, fd, self->room, &code, &word);
    if (turn == KEEPING_DONE)
        note_sum (self, upload, fd);
    if (fd >= 0)
        close (fd);
    out->more = turn == KEEPING_MORE;
    if (turn == KEEPING_DONE) {
        end_whole (self, upload, out);
    } else if (turn == KEEPING_DAMAGED) {
        self->stats.errors++;
        depot_refuse (out, TMQ_CONFLICT, "the file was damaged; the upload begins again");
        depot_discard (self, upload);
    } else if (turn == KEEPING_FAILED) {
        depot_refuse_vault (self, out, code == TMQ_NO_BLOB ? TMQ_INTERNAL : code, &word);
    }
}

/* What is on the disk of an upload. */

/* Whether this file is the blob's; it is touched then, so that it stays. */
static bool keep_blob (const depot_t *self, const uint8_t *hash, int fd, const struct stat *file)
{
    char hex[BLOB_HEX_SIZE];
    struct stat info;
    blob_hex (hex, hash);
    int bucket = depot_open_bucket (self, hex, false);
    if (bucket < 0)
        return false;
    /* A crash may have come between its name and the sync of that. */
    bool there = blob_file_find (bucket, hex + 2, &info) && info.st_dev == file->st_dev &&
                 info.st_ino == file->st_ino && futimens (fd, NULL) == 0 && fsync (fd) == 0 &&
                 fsync (bucket) == 0 && fsync (self->directory) == 0;
    close (bucket);
    return there;
}

/* All of it is read. It is FILLING then, or there is no such upload any more, as out says. */
static void end_reading (depot_t *self, upload_t *upload, int fd, depot_word_t *out)
{
    struct stat info;
    bool whole = upload->offset == upload->bytes;
    bool right = whole && depot_sum_is (&upload->sum, upload->hash);
    if (right && fstat (fd, &info) == 0 && info.st_nlink > 1 &&
        keep_blob (self, upload->hash, fd, &info)) {
        out->more = self->vault != NULL;
        if (out->more)
            begin_keeping (upload, 0);
        else
            end_whole (self, upload, out);
        return;
    }
    if (whole && !right) { /* torn or damaged: from the first byte */
        if (upload->charged == 0)
            depot_remove_file (self, upload->name);
        else
            unlinkat (self->uploads_at, upload->name, 0);
        upload->offset = 0;
        crypto_generichash_init (&upload->sum, NULL, 0, HASH_BYTES);
    }
    if (upload->charged == 0 && !depot_charge (self, upload, out)) {
        depot_upload_forget (self, upload);
        return;
    }
    upload->sent = (blob_sent_t){upload->offset, upload->offset, false};
    upload->stage = FILLING;
}

/* A turn of it. Also what is a blob is read again, because it may have been damaged since it was
 * compared: who brings it once more must heal it then, and not hear that it is there. */
static void read_on (depot_t *self, upload_t *upload, depot_word_t *out)
{
    uint64_t until = depot_min (upload->bytes, upload->offset + DEPOT_TURN_BYTES);
    int fd = openat (self->uploads_at, upload->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    int error = fd < 0 && errno != ENOENT ? errno : 0;
    if (fd >= 0)
        error = depot_sum_file (self, fd, &upload->offset, until, &upload->sum);
    if (error != 0) {
        depot_refuse_error (self, out, "the upload cannot be read again", error);
        depot_discard (self, upload);
    } else if (fd >= 0 && upload->offset == until && until < upload->bytes) {
        out->more = true;
    } else {
        end_reading (self, upload, fd, out);
    }
    if (fd >= 0)
        close (fd);
}

/* The end of an upload. */

/* The directory of buckets, too: a crash may have come before it knew this one for certain. */
static int sync_names (const depot_t *self, int bucket)
{
    return fsync (bucket) == 0 && fsync (self->directory) == 0 && fsync (self->uploads_at) == 0
               ? 0
               : errno;
}

/* Somebody else brought the same bytes before: one copy is enough, and gets this first name, too.
 */
static int share (const depot_t *self, const upload_t *upload, int bucket, const char *rest,
                  const char *second)
{
    if (linkat (bucket, rest, self->uploads_at, second, 0) != 0 ||
        utimensat (bucket, rest, NULL, AT_SYMLINK_NOFOLLOW) != 0 ||
        renameat (self->uploads_at, second, self->uploads_at, upload->name) != 0)
        return errno;
    unlinkat (self->uploads_at, second, 0); /* of a name for the same file rename leaves both */
    return sync_names (self, bucket);
}

/* The second name. The first one stays, as the proof of who had the bytes. */
static int publish (depot_t *self, const upload_t *upload, int bucket, const char *rest)
{
    char second[NAME_SIZE];
    struct stat before;
    struct stat own;
    bool was_there = blob_file_find (bucket, rest, &before);
    if (was_there && blob_file_find (self->uploads_at, upload->name, &own) &&
        own.st_dev == before.st_dev && own.st_ino == before.st_ino)
        return sync_names (self, bucket); /* all but that was done before */
    snprintf (second, sizeof (second), "%s%s", upload->name, SECOND);
    if (unlinkat (self->uploads_at, second, 0) != 0 && errno != ENOENT)
        return errno;
    if (upload->stage == COMPARING && was_there)
        return share (self, upload, bucket, rest, second);
    if (linkat (self->uploads_at, upload->name, self->uploads_at, second, 0) != 0)
        return errno;
    if (renameat (self->uploads_at, second, bucket, rest) != 0)
        return errno;
    unlinkat (self->uploads_at, second, 0); /* of a name for the same file rename leaves both */
    if (was_there && before.st_nlink == 1)  /* else it is an upload's still */
        depot_take_off (self, (uint64_t) before.st_size);
    self->stats.blobs += !was_there;
    self->stats.bytes += upload->bytes;
    return sync_names (self, bucket);
}

static int sync_upload (const depot_t *self, const char *name)
{
    int error = 0;
    int fd = openat (self->uploads_at, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fsync (fd) != 0 || futimens (fd, NULL) != 0)
        error = errno;
    if (fd >= 0)
        close (fd);
    return error;
}

/* All bytes are there: whether they are the hash's, and on the disk. */
static bool end_filling (depot_t *self, upload_t *upload, depot_word_t *out)
{
    if (!depot_sum_is (&upload->sum, upload->hash)) {
        depot_refuse (out, TMQ_CONFLICT,
                      "the bytes are not those of the hash; the upload begins again");
        depot_discard (self, upload);
        return false;
    }
    /* A failed sync is told once: the next one would say that all is well, and it need not be. */
    int error = sync_upload (self, upload->name);
    if (error != 0) {
        depot_refuse_error (self, out, "the blob cannot be kept", error);
        depot_discard (self, upload);
        return false;
    }
    upload->stage = COMPARING;
    upload->compared = 0;
    crypto_generichash_init (&upload->sum, NULL, 0, HASH_BYTES);
    return true;
}

/* A turn of comparing what somebody else brought. Unless it is as it was, this one takes its place.
 */
static bool compare_on (depot_t *self, upload_t *upload, int bucket, const char *rest)
{
    struct stat info;
    int fd = openat (bucket, rest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    uint64_t until = depot_min (upload->bytes, upload->compared + DEPOT_TURN_BYTES);
    bool good = fd >= 0 && fstat (fd, &info) == 0 && (uint64_t) info.st_size == upload->bytes &&
                depot_sum_file (self, fd, &upload->compared, until, &upload->sum) == 0 &&
                upload->compared == until;
    if (fd >= 0)
        close (fd);
    bool more = good && until < upload->bytes;
    if (!more && !(good && depot_sum_is (&upload->sum, upload->hash)))
        upload->stage = PUBLISHING;
    return more;
}

static void finish (depot_t *self, upload_t *upload, depot_word_t *out)
{
    char hex[BLOB_HEX_SIZE];
    blob_hex (hex, upload->hash);
    int bucket = depot_open_bucket (self, hex, true);
    int error = bucket < 0 ? errno : 0;
    if (error == 0 && upload->stage == COMPARING)
        out->more = compare_on (self, upload, bucket, hex + 2);
    if (error == 0 && !out->more) {
        error = publish (self, upload, bucket, hex + 2);
        upload->stage = PUBLISHING; /* if it has to be tried again */
    }
    if (bucket >= 0)
        close (bucket);
    if (error != 0) {
        depot_refuse_error (self, out, "the blob cannot be kept", error);
    } else if (!out->more && self->vault != NULL) {
        depot_take_off (self, upload->charged); /* it counts as a blob */
        upload->charged = 0;
        begin_keeping (upload, upload->bytes);
        out->more = true;
    } else if (!out->more) {
        end_whole (self, upload, out);
    }
}

/* What there is to be done without further bytes, or a turn of it. Where the answer is no mere
 * offset the upload may be gone. */
static bool step (depot_t *self, upload_t *upload, depot_word_t *out)
{
    if (upload->stage == READING)
        read_on (self, upload, out);
    if (out->code != TMQ_OK || out->whole || out->more)
        return false;
    if (upload->stage == KEEPING) {
        keep_on (self, upload, out);
        return false;
    }
    out->offset = upload->offset;
    if (upload->offset < upload->bytes)
        return true;
    if (upload->stage != FILLING || end_filling (self, upload, out))
        finish (self, upload, out);
    return false;
}

static bool go_on (depot_t *self, upload_t *upload, depot_word_t *out)
{
    upload->turning = false;
    bool fills = step (self, upload, out);
    if (out->more)
        upload->turning = true;
    return fills;
}

/* Requests. */

void depot_begin (depot_t *self, const depot_upload_t *of, int64_t mono_ms, depot_word_t *out)
{
    char name[BLOB_HEX_SIZE];
    *out = (depot_word_t){.code = TMQ_OK};
    if (of->bytes > self->limits.blob_bytes) {
        depot_refuse (out, TMQ_TOO_LARGE,
                      "%" PRIu64 " bytes, at most %" PRIu64 " (limits/blob_bytes)", of->bytes,
                      self->limits.blob_bytes);
        return;
    }
    depot_name_of (name, of);
    upload_t *upload = depot_upload_find (self, name);
    if (upload != NULL && upload->bytes != of->bytes) {
        depot_discard (self, upload);
        upload = NULL;
    }
    if (upload == NULL)
        upload = depot_upload_new (self, of, name, mono_ms, out);
    if (upload == NULL)
        return;
    upload->used_ms = mono_ms;
    go_on (self, upload, out);
}

/* False: out says why. What the disk has lost begins again. */
static bool append (depot_t *self, upload_t *upload, const uint8_t *bytes, size_t length,
                    depot_word_t *out)
{
    int fd =
        openat (self->uploads_at, upload->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno
                       : blob_write (&self->writer, &upload->sent, fd, bytes, length,
                                     upload->offset, upload->bytes);
    int lost = error == 0 ? blob_write_back (&upload->sent, fd, upload->offset + length) : 0;
    if (fd >= 0)
        close (fd);
    if (error != 0 || lost != 0)
        depot_refuse_error (self, out, "the upload cannot be written", error != 0 ? error : lost);
    if (lost != 0)
        depot_discard (self, upload);
    return error == 0 && lost == 0;
}

void depot_chunk (depot_t *self, const depot_upload_t *of, uint64_t offset, const uint8_t *bytes,
                  size_t length, int64_t mono_ms, depot_word_t *out)
{
    char name[BLOB_HEX_SIZE];
    *out = (depot_word_t){.code = TMQ_OK};
    depot_name_of (name, of);
    upload_t *upload = depot_upload_find (self, name);
    if (upload == NULL) {
        depot_refuse (out, TMQ_NO_BLOB, "there is no such upload; it is to be begun");
        return;
    }
    upload->used_ms = mono_ms;
    if (offset > upload->bytes || length > upload->bytes - offset) {
        depot_refuse (out, TMQ_INVALID, "offset: the blob has %" PRIu64 " bytes", upload->bytes);
        return;
    }
    if (!go_on (self, upload, out) || offset > upload->offset || offset + length <= upload->offset)
        return;
    size_t known = (size_t) (upload->offset - offset);
    if (!append (self, upload, bytes + known, length - known, out))
        return;
    crypto_generichash_update (&upload->sum, bytes + known, length - known);
    upload->offset += length - known;
    go_on (self, upload, out);
}
