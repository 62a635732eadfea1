/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is done with the blobs that nobody asks for: those that stood still are told of and removed,
 * and those that the vault lacks are brought there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "blobs/depot_parts.h"

enum { LACKING_BUCKETS = 16 /* that one call asks about */ };

static void look_at_uploads (depot_t *self, int64_t mono_ms)
{
    struct stat info;
    for (size_t i = self->uploads_count; i > 0; i--)
        if (mono_ms - self->uploads[i - 1].used_ms >= DEPOT_IDLE_MS)
            depot_discard (self, &self->uploads[i - 1]);
    DIR *list = blob_directory_list (self->directory, UPLOADS);
    if (list == NULL)
        return;
    for (const struct dirent *file = readdir (list); file != NULL; file = readdir (list)) {
        if (file->d_name[0] == '.' || depot_upload_find (self, file->d_name) != NULL)
            continue;
        if (blob_file_find (self->uploads_at, file->d_name, &info) &&
            blob_file_is_still (&info, DEPOT_IDLE_MS))
            depot_remove_file (self, file->d_name);
    }
    closedir (list);
}

/* In the order of hashes, of which the first DEPOT_SLICE_MAX stay. */
static void insert (depot_left_t *out, size_t *count, const depot_left_t *one)
{
    size_t low = 0;
    size_t high = *count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp (out[middle].hash, one->hash, HASH_BYTES) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == DEPOT_SLICE_MAX)
        return;
    size_t moved = *count - low - (*count == DEPOT_SLICE_MAX);
    memmove (out + low + 1, out + low, moved * sizeof (*out));
    out[low] = *one;
    *count += *count < DEPOT_SLICE_MAX;
}

/* The next of a bucket behind a place, which moves there; those alone that stood still, or all. By
 * their names: a count of them would skip some when others before them are removed meanwhile.
 * *all: these are the last. False: it cannot be listed, at least not now. */
static bool list_bucket (const depot_t *self, depot_place_t *place, bool still, depot_left_t *out,
                         size_t *count, bool *all)
{
    char name[BLOB_HEX_SIZE];
    char hex[NAME_SIZE];
    struct stat info;
    depot_left_t one = {.stored = false};
    *count = 0;
    *all = true;
    snprintf (name, sizeof (name), "%02x", place->bucket);
    DIR *list = blob_directory_list (self->directory, name);
    if (list == NULL)
        return errno == ENOENT;
    for (const struct dirent *file = readdir (list); file != NULL; file = readdir (list)) {
        if (strlen (file->d_name) != BLOB_HEX_SIZE - 3)
            continue;
        snprintf (hex, sizeof (hex), "%.2s%.62s", name, file->d_name);
        if (!blob_hash_of_hex (one.hash, hex) ||
            (place->within && memcmp (one.hash, place->behind, HASH_BYTES) <= 0) ||
            !blob_file_find (dirfd (list), file->d_name, &info) ||
            (still && !blob_file_is_still (&info, DEPOT_IDLE_MS)))
            continue;
        one.bytes = (uint64_t) info.st_size;
        one.at = blob_file_touched_ns (&info);
        insert (out, count, &one);
    }
    closedir (list);
    if (*count > 0) {
        place->within = true;
        memcpy (place->behind, out[*count - 1].hash, HASH_BYTES);
    }
    *all = *count < DEPOT_SLICE_MAX;
    return true;
}

void depot_look (depot_t *self, int64_t mono_ms, depot_left_t *out, size_t *count)
{
    bool all;
    *count = 0;
    if (self->looked.bucket == DEPOT_BUCKETS) {
        look_at_uploads (self, mono_ms);
        self->looked = (depot_place_t){.bucket = 0};
    } else if (!list_bucket (self, &self->looked, true, out, count, &all) || all) {
        self->looked.bucket++;
    }
}

/* The vault has a time of its own for each, so what goes here goes there by its own look. */
void depot_look_stored (depot_t *self, depot_left_t *out, size_t *count)
{
    vault_item_t items[VAULT_SLICE_MAX];
    vault_word_t word;
    size_t listed = 0;
    *count = 0;
    if (self->vault == NULL ||
        self->vault->list (self->vault->context, self->listed ? self->listed_hash : NULL,
                           DEPOT_IDLE_MS, items, &listed, &word) != TMQ_OK)
        return;
    for (size_t i = 0; i < listed; i++) {
        if (!items[i].still)
            continue;
        depot_left_t *left = &out[(*count)++];
        *left = (depot_left_t){.at = items[i].at, .stored = true};
        memcpy (left->hash, items[i].hash, sizeof (left->hash));
    }
    self->listed = listed == VAULT_SLICE_MAX;
    if (self->listed)
        memcpy (self->listed_hash, items[listed - 1].hash, HASH_BYTES);
}

bool depot_sweep (depot_t *self)
{
    int64_t numbers[DEPOT_UPLOADS_MAX + 1];
    size_t count = 0;
    bool more = false;
    vault_word_t word;
    if (self->vault == NULL)
        return false;
    for (size_t i = 0; i < self->uploads_count; i++)
        if (self->uploads[i].stage == KEEPING && self->uploads[i].keeping.number != 0)
            numbers[count++] = self->uploads[i].keeping.number;
    if (self->brought.number != 0)
        numbers[count++] = self->brought.number;
    return self->vault->sweep (self->vault->context, numbers, count, &more, &word) == TMQ_OK &&
           more;
}

static void collect_stored (depot_t *self, const depot_left_t *left)
{
    vault_word_t word;
    bool done = false;
    vault_item_t item = {.at = left->at};
    memcpy (item.hash, left->hash, sizeof (item.hash));
    if (self->vault != NULL &&
        self->vault->remove (self->vault->context, &item, &done, &word) == TMQ_OK)
        self->stats.collected += done;
}

void depot_collect (depot_t *self, const depot_left_t *left)
{
    if (left->stored) {
        collect_stored (self, left);
        return;
    }
    char hex[BLOB_HEX_SIZE];
    struct stat info;
    blob_hex (hex, left->hash);
    int bucket = depot_open_bucket (self, hex, false);
    if (bucket < 0)
        return;
    if (blob_file_find (bucket, hex + 2, &info) && blob_file_touched_ns (&info) == left->at &&
        blob_file_is_still (&info, DEPOT_IDLE_MS) && unlinkat (bucket, hex + 2, 0) == 0) {
        self->stats.blobs--;
        self->stats.collected++;
        if (info.st_nlink == 1) /* else it is an upload again, of which nothing is missing */
            depot_take_off (self, (uint64_t) info.st_size);
    }
    close (bucket);
}

/* Files that the vault lacks. */

tmq_code_t depot_lacking (depot_t *self, depot_place_t *place, depot_left_t *out, size_t *count)
{
    uint8_t hashes[DEPOT_SLICE_MAX][HASH_BYTES];
    bool lacks[DEPOT_SLICE_MAX];
    bool all;
    vault_word_t word;
    size_t listed = 0;
    *count = 0;
    if (self->vault == NULL)
        place->bucket = DEPOT_BUCKETS;
    for (unsigned i = 0; i < LACKING_BUCKETS && place->bucket < DEPOT_BUCKETS && *count == 0; i++) {
        depot_place_t next = *place;
        if (!list_bucket (self, &next, false, out, &listed, &all)) {
            self->stats.errors++;
            return TMQ_UNAVAILABLE;
        }
        next.bucket += all;
        for (size_t k = 0; k < listed; k++)
            memcpy (hashes[k], out[k].hash, HASH_BYTES);
        tmq_code_t code = listed == 0 ? TMQ_OK
                                      : self->vault->lacks (self->vault->context,
                                                            (const uint8_t (*)[HASH_BYTES]) hashes,
                                                            listed, lacks, &word);
        if (code != TMQ_OK)
            return code;
        for (size_t k = 0; k < listed; k++)
            if (lacks[k])
                out[(*count)++] = out[k];
        *place = next;
    }
    return TMQ_OK;
}

/* One that is gone was collected since it was found: there is nothing to bring, and to tell. */
static void refuse_closed (depot_word_t *out, const char *hex, int error)
{
    bool passes = error == EMFILE || error == ENFILE || error == ENOMEM;
    if (error != ENOENT)
        depot_refuse (out, passes ? TMQ_UNAVAILABLE : TMQ_NO_BLOB, "the blob %s cannot be read: %s",
                      hex, strerror (error));
}

void depot_bring (depot_t *self, const depot_left_t *left, depot_word_t *out)
{
    char hex[BLOB_HEX_SIZE];
    vault_word_t word = {""};
    tmq_code_t code = TMQ_OK;
    keeping_t *brought = &self->brought;
    *out = (depot_word_t){.code = TMQ_OK};
    if (brought->bytes != left->bytes || memcmp (brought->hash, left->hash, HASH_BYTES) != 0)
        keeping_begin (brought, left->hash, left->bytes);
    blob_hex (hex, left->hash);
    int bucket = depot_open_bucket (self, hex, false);
    int fd = bucket < 0 ? -1 : openat (bucket, hex + 2, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int error = fd < 0 ? errno : 0;
    keeping_turn_t turn =
        fd < 0 ? KEEPING_DONE : keeping_on (brought, self->vault, fd, self->room, &code, &word);
    if (fd >= 0)
        close (fd);
    if (bucket >= 0)
        close (bucket);
    out->more = turn == KEEPING_MORE;
    out->whole = fd >= 0 && turn == KEEPING_DONE;
    if (fd < 0)
        refuse_closed (out, hex, error);
    else if (turn == KEEPING_DAMAGED)
        depot_refuse (out, TMQ_NO_BLOB, "the blob %s is damaged", hex);
    else if (turn == KEEPING_FAILED)
        depot_refuse_vault (self, out, code == TMQ_NO_BLOB ? TMQ_INTERNAL : code, &word);
    if (!out->more && out->code != TMQ_UNAVAILABLE && out->code != TMQ_STORE_FULL)
        *brought = (keeping_t){.number = 0};
}
