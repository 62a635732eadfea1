/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Places and room for uploads: who may have how many, and what gives way when there is none. */
#include "blobs/depot_parts.h"

#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

upload_t *depot_upload_find (depot_t *self, const char *name)
{
    for (size_t i = 0; i < self->uploads_count; i++)
        if (strcmp (self->uploads[i].name, name) == 0)
            return &self->uploads[i];
    return NULL;
}

void depot_upload_forget (depot_t *self, upload_t *upload)
{
    depot_take_off (self, upload->charged);
    self->stats.uploads--;
    *upload = self->uploads[--self->uploads_count];
}

/* What the disk has of an upload that is no blob. */
uint64_t depot_bytes_alone (const depot_t *self, const char *name)
{
    struct stat info;
    return blob_file_find (self->uploads_at, name, &info) && info.st_nlink == 1
               ? (uint64_t) info.st_size
               : 0;
}

void depot_remove_file (depot_t *self, const char *name)
{
    uint64_t bytes = depot_bytes_alone (self, name);
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
void depot_park_file (depot_t *self, const char *name, uint64_t bytes, int64_t since_ms)
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
    uint64_t left = depot_bytes_alone (self, name);
    depot_upload_forget (self, upload);
    self->stats.bytes += left;
    depot_park_file (self, name, left, since_ms);
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
            bytes +=
                upload->bytes - depot_min (upload->bytes, depot_bytes_alone (self, upload->name));
    }
    return bytes;
}

/* Bytes of it that are on the disk already. */
static uint64_t has_of (const depot_t *self, const upload_t *upload)
{
    return depot_min (depot_bytes_alone (self, upload->name),
                      depot_min (self->stats.bytes, upload->bytes));
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

/* OK, LIMIT or STORE_FULL. What the vault has under the same hash counts once more until the upload
 * ends: else whoever asks for a hash where all room is taken would learn that somebody has it. */
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
bool depot_charge (depot_t *self, upload_t *upload, depot_word_t *out)
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

upload_t *depot_upload_new (depot_t *self, const depot_upload_t *of, const char *name,
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
    if (!may_be_blob && !depot_charge (self, &made, out)) {
        depot_park_file (self, name, depot_bytes_alone (self, name), mono_ms);
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
    depot_upload_forget (self, upload);
}
