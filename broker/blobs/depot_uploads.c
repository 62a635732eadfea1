/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "blobs/depot_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/memory.h"

static const char SECOND[] = ".new"; /* ending of a second name on its way to its place */

/* Words. */

void depot_refuse (depot_word_t *out, tmq_code_t code, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (out->text, sizeof (out->text), format, arguments);
    va_end (arguments);
    out->code = code;
    bool passes = code == TMQ_LIMIT || code == TMQ_STORE_FULL || code == TMQ_OVERLOADED ||
                  code == TMQ_UNAVAILABLE;
    out->retry_after_ms = passes ? DEPOT_RETRY_MS : 0;
}

void depot_refuse_vault (depot_t *self, depot_word_t *out, tmq_code_t code,
                         const vault_word_t *word)
{
    self->stats.errors += code != TMQ_UNAVAILABLE;
    depot_refuse (out, code, "%s", word->text);
}

static void refuse_error (depot_t *self, depot_word_t *out, const char *what, int error)
{
    self->stats.errors++;
    bool full = error == ENOSPC || error == EDQUOT;
    depot_refuse (out, full ? TMQ_STORE_FULL : TMQ_INTERNAL, "%s: %s", what, strerror (error));
}

/* Directories and files. */

int depot_open_bucket (const depot_t *self, const char *hex, bool make)
{
    const char name[] = {hex[0], hex[1], '\0'};
    return make ? blob_directory_make (self->directory, name)
                : blob_directory_open (self->directory, name);
}

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

/* Adds what a file has from the offset on. 0 or an errno. */
static int sum_file (depot_t *self, int fd, uint64_t *offset, uint64_t bytes,
                     crypto_generichash_state *sum)
{
    while (*offset < bytes) {
        uint64_t left = bytes - *offset;
        ssize_t got = pread (fd, self->piece, left < PIECE_BYTES ? (size_t) left : PIECE_BYTES,
                             (off_t) *offset);
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        crypto_generichash_update (sum, self->piece, (size_t) got);
        *offset += (uint64_t) got;
    }
    return 0;
}

static bool sum_is (const crypto_generichash_state *sum, const uint8_t *hash)
{
    uint8_t got[HASH_BYTES];
    crypto_generichash_state state = *sum; /* the end changes it */
    crypto_generichash_final (&state, got, HASH_BYTES);
    return memcmp (got, hash, HASH_BYTES) == 0;
}

/* Uploads in memory. */

upload_t *depot_upload_find (depot_t *self, const char *name)
{
    for (size_t i = 0; i < self->uploads_count; i++)
        if (strcmp (self->uploads[i].name, name) == 0)
            return &self->uploads[i];
    return NULL;
}

static uint64_t min_of (uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void depot_take_off (depot_t *self, uint64_t bytes)
{
    self->stats.bytes -= min_of (bytes, self->stats.bytes);
}

static void upload_forget (depot_t *self, upload_t *upload)
{
    depot_take_off (self, upload->charged);
    self->stats.uploads--;
    *upload = self->uploads[--self->uploads_count];
}

/* What the disk has of an upload that is no blob. */
static uint64_t bytes_alone (const depot_t *self, const char *name)
{
    struct stat info;
    return blob_file_find (self->uploads_at, name, &info) && info.st_nlink == 1
               ? (uint64_t) info.st_size
               : 0;
}

void depot_remove_file (depot_t *self, const char *name)
{
    uint64_t bytes = bytes_alone (self, name);
    if (unlinkat (self->uploads_at, name, 0) != 0)
        return;
    depot_take_off (self, bytes);
    parked_drop (&self->parked, name);
}

static void drop_parked (depot_t *self, const parked_file_t *file)
{
    char name[BLOB_HEX_SIZE];
    memcpy (name, file->name, sizeof (name));
    depot_remove_file (self, name);
    parked_drop (&self->parked, name); /* also if it cannot be removed: it is not asked again */
    self->stats.dropped++;
}

/* Its bytes count already. */
static void park_file (depot_t *self, const char *name, uint64_t bytes, int64_t since_ms)
{
    if (bytes == 0 || strlen (name) != BLOB_HEX_SIZE - 1)
        return;
    if (self->parked.count == PARKED_MAX)
        drop_parked (self, parked_oldest (&self->parked, NULL, since_ms, 0));
    parked_add (&self->parked, name, bytes, since_ms);
}

void depot_upload_park (depot_t *self, upload_t *upload)
{
    char name[BLOB_HEX_SIZE];
    int64_t since_ms = upload->used_ms;
    memcpy (name, upload->name, sizeof (name));
    uint64_t left = bytes_alone (self, name);
    upload_forget (self, upload);
    self->stats.bytes += left;
    park_file (self, name, left, since_ms);
}

static void hash_text (uint8_t out[OWNER_BYTES], const char *text, size_t length)
{
    crypto_generichash (out, OWNER_BYTES, (const uint8_t *) text, length, NULL, 0);
}

void depot_name_of (char out[BLOB_HEX_SIZE], const depot_upload_t *of)
{
    uint8_t name[HASH_BYTES];
    crypto_generichash_state state;
    hash_text (name, of->identity, strlen (of->identity));
    crypto_generichash_init (&state, NULL, 0, HASH_BYTES - OWNER_BYTES);
    crypto_generichash_update (&state, (const uint8_t *) of->identity, strlen (of->identity) + 1);
    crypto_generichash_update (&state, (const uint8_t *) of->ns, strlen (of->ns) + 1);
    crypto_generichash_update (&state, of->hash, HASH_BYTES);
    crypto_generichash_final (&state, name + OWNER_BYTES, HASH_BYTES - OWNER_BYTES);
    blob_hex (out, name);
}

/* Uploads of the owner, of the peer, or with two NULLs of all; and which of them stood still for
 * longest. */
static size_t count_of (depot_t *self, const uint8_t *owner, const uint8_t *peer, upload_t **oldest)
{
    size_t count = 0;
    *oldest = NULL;
    for (size_t i = 0; i < self->uploads_count; i++) {
        upload_t *upload = &self->uploads[i];
        if ((owner != NULL && memcmp (upload->owner, owner, OWNER_BYTES) != 0) ||
            (peer != NULL && memcmp (upload->peer, peer, OWNER_BYTES) != 0))
            continue;
        count++;
        if (*oldest == NULL || upload->used_ms < (*oldest)->used_ms)
            *oldest = upload;
    }
    return count;
}

/* One more than most: also in the place of one that stood still. */
static bool has_place (depot_t *self, const uint8_t *owner, const uint8_t *peer, size_t most,
                       int64_t mono_ms)
{
    upload_t *oldest;
    if (count_of (self, owner, peer, &oldest) < most)
        return true;
    if (mono_ms - oldest->used_ms < DEPOT_YIELD_MS)
        return false;
    depot_upload_park (self, oldest);
    return true;
}

static bool find_place (depot_t *self, const upload_t *made, int64_t mono_ms, depot_word_t *out)
{
    if (!has_place (self, made->owner, NULL, DEPOT_UPLOADS_OF_ONE_MAX, mono_ms))
        depot_refuse (out, TMQ_OVERLOADED, "you have %d uploads under way, as many as you may have",
                      DEPOT_UPLOADS_OF_ONE_MAX);
    else if (!has_place (self, NULL, made->peer, DEPOT_UPLOADS_OF_PEER_MAX, mono_ms))
        depot_refuse (out, TMQ_OVERLOADED,
                      "who acts for you has %d uploads under way for all, as many as it may have",
                      DEPOT_UPLOADS_OF_PEER_MAX);
    else if (!has_place (self, NULL, NULL, DEPOT_UPLOADS_MAX, mono_ms))
        depot_refuse (out, TMQ_OVERLOADED, "%d uploads are under way", DEPOT_UPLOADS_MAX);
    return out->code == TMQ_OK;
}

/* What the disk must have for the uploads under way. */
static uint64_t to_come (const depot_t *self)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < self->uploads_count; i++) {
        const upload_t *upload = &self->uploads[i];
        if (upload->charged > 0 && upload->stage == FILLING)
            bytes += upload->bytes - upload->offset;
        else if (upload->charged > 0 && upload->stage == READING)
            bytes += upload->bytes - min_of (upload->bytes, bytes_alone (self, upload->name));
    }
    return bytes;
}

/* Bytes of it that are on the disk already. */
static uint64_t has_of (const depot_t *self, const upload_t *upload)
{
    return min_of (bytes_alone (self, upload->name), min_of (self->stats.bytes, upload->bytes));
}

/* What the vault has, and will have: also blobs that came by other machines. */
static uint64_t kept_bytes (const depot_t *self)
{
    if (self->vault == NULL)
        return 0;
    uint64_t bytes = self->vault->stats (self->vault->context).bytes;
    for (size_t i = 0; i < self->uploads_count; i++)
        bytes += self->uploads[i].charged + self->uploads[i].owed;
    return bytes;
}

/* OK, LIMIT or STORE_FULL. */
static tmq_code_t room_for (const depot_t *self, const upload_t *upload)
{
    struct statvfs space;
    uint64_t bytes = upload->bytes - has_of (self, upload);
    if (self->stats.bytes + bytes > self->limits.disk_bytes ||
        kept_bytes (self) + upload->bytes > self->limits.disk_bytes)
        return TMQ_LIMIT;
    return fstatvfs (self->directory, &space) != 0 ||
                   (uint64_t) space.f_bavail * space.f_frsize >=
                       self->limits.free_bytes_min + to_come (self) + bytes
               ? TMQ_OK
               : TMQ_STORE_FULL;
}

/* Its bytes are the depot's from now on. False: there is no room; out says so. */
static bool charge (depot_t *self, upload_t *upload, depot_word_t *out)
{
    tmq_code_t code = room_for (self, upload);
    if (code == TMQ_LIMIT)
        depot_refuse (out, code, "at most %" PRIu64 " bytes of blobs (limits/blobs_disk)",
                      self->limits.disk_bytes);
    else if (code != TMQ_OK)
        depot_refuse (out, code,
                      "the disk has no room for %" PRIu64
                      " bytes beside what other uploads will have",
                      upload->bytes);
    if (code != TMQ_OK)
        return false;
    depot_take_off (self, has_of (self, upload));
    upload->charged = upload->bytes;
    self->stats.bytes += upload->charged;
    return true;
}

/* One that stood still gives its room to somebody who needs it: of this owner, or with NULL of
 * anybody. False: there is none. */
static bool give_way (depot_t *self, const upload_t *of, int64_t mono_ms)
{
    upload_t *still;
    count_of (self, of == NULL ? NULL : of->owner, NULL, &still);
    if (still != NULL && mono_ms - still->used_ms >= DEPOT_STILL_MS) {
        depot_upload_park (self, still);
        return true;
    }
    const parked_file_t *oldest =
        parked_oldest (&self->parked, of == NULL ? NULL : of->name, mono_ms, DEPOT_STILL_MS);
    if (oldest == NULL)
        return false;
    drop_parked (self, oldest);
    return true;
}

/* What the owner has on its way, and what has stopped there, without this one. */
static uint64_t on_their_way (const depot_t *self, const upload_t *made)
{
    uint64_t bytes = parked_beside (&self->parked, made->name);
    for (size_t i = 0; i < self->uploads_count; i++)
        if (memcmp (self->uploads[i].owner, made->owner, OWNER_BYTES) == 0)
            bytes += self->uploads[i].charged + self->uploads[i].owed;
    return bytes;
}

static bool share_has_room (depot_t *self, const depot_upload_t *of, const upload_t *made,
                            int64_t mono_ms, depot_word_t *out)
{
    if (of->share == NULL)
        return true;
    while (of->share->has + on_their_way (self, made) + made->bytes > of->share->most)
        if (!give_way (self, made, mono_ms)) {
            depot_refuse (out, TMQ_LIMIT,
                          "bytes of blobs of %s: %" PRIu64 ", as many as it may have", of->identity,
                          of->share->most);
            out->over_quota = true;
            return false;
        }
    return true;
}

/* A file of another length, or one that a blob has for its own, is no beginning of this upload. */
static void drop_other (depot_t *self, const upload_t *upload)
{
    struct stat info;
    if (!blob_file_find (self->uploads_at, upload->name, &info))
        return;
    uint64_t size = (uint64_t) info.st_size;
    if (size > upload->bytes || (info.st_nlink > 1 && size != upload->bytes))
        depot_remove_file (self, upload->name);
}

static upload_t *upload_new (depot_t *self, const depot_upload_t *of, const char *name,
                             int64_t mono_ms, depot_word_t *out)
{
    struct stat info;
    upload_t made = {.bytes = of->bytes, .stage = READING, .used_ms = mono_ms};
    hash_text (made.owner, of->identity, strlen (of->identity));
    hash_text (made.peer, of->identity, strcspn (of->identity, "/"));
    memcpy (made.name, name, sizeof (made.name));
    memcpy (made.hash, of->hash, HASH_BYTES);
    crypto_generichash_init (&made.sum, NULL, 0, HASH_BYTES);
    bool may_be_blob = blob_file_find (self->uploads_at, name, &info) && info.st_nlink > 1;
    if ((!may_be_blob && !share_has_room (self, of, &made, mono_ms, out)) ||
        !find_place (self, &made, mono_ms, out))
        return NULL;
    drop_other (self, &made);
    may_be_blob = blob_file_find (self->uploads_at, name, &info) && info.st_nlink > 1;
    parked_drop (&self->parked, name);
    while (!may_be_blob && room_for (self, &made) != TMQ_OK)
        if (!give_way (self, NULL, mono_ms))
            break;
    if (!may_be_blob && !charge (self, &made, out)) {
        park_file (self, name, bytes_alone (self, name), mono_ms);
        return NULL;
    }
    self->uploads[self->uploads_count] = made;
    self->stats.uploads++;
    return &self->uploads[self->uploads_count++];
}

void depot_discard (depot_t *self, upload_t *upload)
{
    if (upload->charged == 0)
        depot_remove_file (self, upload->name);
    else
        unlinkat (self->uploads_at, upload->name, 0);
    upload_forget (self, upload);
}

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
    upload_forget (self, upload);
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

/* All of it is read. It is FILLING then, or there is no such upload any more, as out says. */
static void end_reading (depot_t *self, upload_t *upload, int fd, depot_word_t *out)
{
    struct stat info;
    bool whole = upload->offset == upload->bytes;
    bool right = whole && sum_is (&upload->sum, upload->hash);
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
    if (upload->charged == 0 && !charge (self, upload, out)) {
        upload_forget (self, upload);
        return;
    }
    upload->sent = (blob_sent_t){upload->offset, upload->offset, false};
    upload->stage = FILLING;
}

/* A turn of it. Also what is a blob is read again, because it may have been damaged since it was
 * compared: who brings it once more must heal it then, and not hear that it is there. */
static void read_on (depot_t *self, upload_t *upload, depot_word_t *out)
{
    uint64_t until = min_of (upload->bytes, upload->offset + DEPOT_TURN_BYTES);
    int fd = openat (self->uploads_at, upload->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    int error = fd < 0 && errno != ENOENT ? errno : 0;
    if (fd >= 0)
        error = sum_file (self, fd, &upload->offset, until, &upload->sum);
    if (error != 0) {
        refuse_error (self, out, "the upload cannot be read again", error);
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
    if (!sum_is (&upload->sum, upload->hash)) {
        depot_refuse (out, TMQ_CONFLICT,
                      "the bytes are not those of the hash; the upload begins again");
        depot_discard (self, upload);
        return false;
    }
    /* A failed sync is told once: the next one would say that all is well, and it need not be. */
    int error = sync_upload (self, upload->name);
    if (error != 0) {
        refuse_error (self, out, "the blob cannot be kept", error);
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
    uint64_t until = min_of (upload->bytes, upload->compared + DEPOT_TURN_BYTES);
    bool good = fd >= 0 && fstat (fd, &info) == 0 && (uint64_t) info.st_size == upload->bytes &&
                sum_file (self, fd, &upload->compared, until, &upload->sum) == 0 &&
                upload->compared == until;
    if (fd >= 0)
        close (fd);
    bool more = good && until < upload->bytes;
    if (!more && !(good && sum_is (&upload->sum, upload->hash)))
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
        refuse_error (self, out, "the blob cannot be kept", error);
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
        upload = upload_new (self, of, name, mono_ms, out);
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
        refuse_error (self, out, "the upload cannot be written", error != 0 ? error : lost);
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

static void read_file (depot_t *self, const char *hex, uint64_t bytes, uint64_t offset, uint8_t *to,
                       size_t limit, size_t *length, depot_word_t *out)
{
    struct stat info = {0};
    *out = (depot_word_t){.code = TMQ_OK};
    *length = 0;
    int bucket = depot_open_bucket (self, hex, false);
    int fd =
        bucket < 0 ? -1 : openat (bucket, hex + 2, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (bucket >= 0)
        close (bucket);
    if (fd < 0 || fstat (fd, &info) != 0 || !S_ISREG (info.st_mode)) {
        depot_refuse (out, TMQ_NO_BLOB, "the blob %s is missing", hex);
    } else if ((uint64_t) info.st_size != bytes) {
        depot_refuse (out, TMQ_NO_BLOB, "the blob %s is damaged: %jd of %" PRIu64 " bytes", hex,
                      (intmax_t) info.st_size, bytes);
    } else if (offset < bytes) {
        uint64_t left = bytes - offset;
        ssize_t got = pread (fd, to, left < limit ? (size_t) left : limit, (off_t) offset);
        if (got <= 0)
            depot_refuse (out, TMQ_NO_BLOB, "the blob %s cannot be read: %s", hex,
                          strerror (errno));
        else
            *length = (size_t) got;
    }
    if (fd >= 0)
        close (fd);
}

/* Another machine may have taken it in, or the directory may be lost. */
static void read_vault (depot_t *self, const char *hex, const uint8_t *hash, uint64_t bytes,
                        uint64_t offset, uint8_t *to, size_t limit, size_t *length,
                        depot_word_t *out)
{
    vault_word_t word;
    *out = (depot_word_t){.code = TMQ_OK};
    tmq_code_t code =
        self->vault->read (self->vault->context, hash, bytes, offset, to, limit, length, &word);
    if (code == TMQ_NO_BLOB)
        depot_refuse (out, code, "the blob %s %.120s", hex, word.text);
    else if (code != TMQ_OK)
        depot_refuse (out, code, "%s", word.text);
}

void depot_read (depot_t *self, const uint8_t *hash, uint64_t bytes, uint64_t offset, uint8_t *to,
                 size_t limit, size_t *length, depot_word_t *out)
{
    char hex[BLOB_HEX_SIZE];
    blob_hex (hex, hash);
    read_file (self, hex, bytes, offset, to, limit, length, out);
    if (out->code != TMQ_OK && self->vault != NULL)
        read_vault (self, hex, hash, bytes, offset, to, limit, length, out);
    self->stats.errors += out->code != TMQ_OK && out->code != TMQ_UNAVAILABLE;
}

void depot_use (depot_t *self, const vault_t *vault)
{
    self->vault = vault;
    if (vault != NULL && self->room == NULL)
        self->room = memory_alloc (VAULT_PUT_BYTES);
}

/* Life. */

/* What uploads have that are no blobs. */
static void count_uploads (depot_t *self)
{
    DIR *list = blob_directory_list (self->directory, UPLOADS);
    if (list == NULL)
        return;
    for (const struct dirent *file = readdir (list); file != NULL; file = readdir (list)) {
        uint64_t bytes = bytes_alone (self, file->d_name);
        self->stats.bytes += bytes;
        park_file (self, file->d_name, bytes, PARKED_UNKNOWN);
    }
    closedir (list);
}

static void count_bucket (depot_t *self, unsigned bucket)
{
    char name[BLOB_HEX_SIZE];
    struct stat info;
    snprintf (name, sizeof (name), "%02x", bucket);
    DIR *list = blob_directory_list (self->directory, name);
    if (list == NULL)
        return;
    for (const struct dirent *file = readdir (list); file != NULL; file = readdir (list))
        if (blob_file_find (dirfd (list), file->d_name, &info)) {
            self->stats.blobs++;
            self->stats.bytes += (uint64_t) info.st_size;
        }
    closedir (list);
}

depot_t *depot_new (const char *directory, const depot_limits_t *limits, int *error)
{
    depot_t *self = memory_zero (1, sizeof (*self));
    self->limits = *limits;
    blob_writer_init (&self->writer);
    self->uploads = aligned_alloc (_Alignof(upload_t), DEPOT_UPLOADS_MAX * sizeof (upload_t));
    if (self->uploads == NULL)
        abort ();
    self->uploads_at = -1;
    self->directory = blob_directory_make (AT_FDCWD, directory);
    if (self->directory >= 0)
        self->uploads_at = blob_directory_make (self->directory, UPLOADS);
    if (self->uploads_at < 0) {
        *error = errno;
        depot_free (&self);
        return NULL;
    }
    for (unsigned bucket = 0; bucket < DEPOT_BUCKETS; bucket++)
        count_bucket (self, bucket);
    count_uploads (self);
    return self;
}

void depot_free (depot_t **self_p)
{
    depot_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->uploads_at >= 0)
        close (self->uploads_at);
    if (self->directory >= 0)
        close (self->directory);
    parked_clear (&self->parked);
    blob_writer_clear (&self->writer);
    free (self->uploads);
    free (self->room);
    free (self);
}

void depot_configure (depot_t *self, const depot_limits_t *limits)
{
    self->limits = *limits;
}

depot_stats_t depot_stats (const depot_t *self)
{
    depot_stats_t stats = self->stats;
    stats.parked = self->parked.count;
    if (self->vault != NULL) {
        vault_stats_t kept = self->vault->stats (self->vault->context);
        stats.stored = kept.blobs;
        stats.stored_bytes = kept.bytes;
    }
    return stats;
}
