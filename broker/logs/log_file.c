/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: an error of the disk loses the piece and nothing before it. */
#include "logs/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "disk.h"

enum {
    COPY_BYTES = 64 * 1024,
    HEAD_ID = 8,
    HEAD_NUMBER = 24,
    HEAD_ATTEMPT = 32,
    HEAD_STREAM = 36,
    HEAD_NS = 40,
    HEAD_SUM = 108
};
static const char MAGIC[] = "tmqlog2\n";
static const char PLAIN_MAGIC[] = "tmqlog1\n"; /* files of before */

/* Names and heads. */

void log_file_name (char out[LOG_FILE_NAME_SIZE], int64_t number, uint32_t attempt,
                    tmq_log_stream_t stream)
{
    snprintf (out, LOG_FILE_NAME_SIZE, "%" PRId64 "-%" PRIu32 ".%s", number, attempt,
              stream == TMQ_LOG_OUT ? "out" : "err");
}

bool log_file_parse (const char *name, int64_t *number, uint32_t *attempt, tmq_log_stream_t *stream)
{
    char again[LOG_FILE_NAME_SIZE];
    char word[4];
    if (sscanf (name, "%" SCNd64 "-%" SCNu32 ".%3s", number, attempt, word) != 3 || *number <= 0)
        return false;
    *stream = strcmp (word, "out") == 0 ? TMQ_LOG_OUT : TMQ_LOG_ERR;
    log_file_name (again, *number, *attempt, *stream);
    return strcmp (name, again) == 0;
}

static void pack_head (uint8_t out[LOG_FILE_HEAD_BYTES], const log_key_t *key, bool sums)
{
    memset (out, 0, LOG_FILE_HEAD_BYTES);
    memcpy (out, sums ? MAGIC : PLAIN_MAGIC, HEAD_ID);
    memcpy (out + HEAD_ID, key->id.bytes, sizeof (key->id));
    log_put (out + HEAD_NUMBER, (uint64_t) key->number, 8);
    log_put (out + HEAD_ATTEMPT, key->attempt, 4);
    log_put (out + HEAD_STREAM, key->stream, 4);
    memcpy (out + HEAD_NS, key->ns, strlen (key->ns));
    if (sums)
        log_put (out + HEAD_SUM, log_sum (out, HEAD_SUM), 4);
}

static bool unpack_head (const uint8_t in[LOG_FILE_HEAD_BYTES], log_key_t *out, bool *sums)
{
    *sums = memcmp (in, MAGIC, HEAD_ID) == 0;
    if (*sums ? log_get (in + HEAD_SUM, 4) != log_sum (in, HEAD_SUM)
              : memcmp (in, PLAIN_MAGIC, HEAD_ID) != 0)
        return false;
    memset (out, 0, sizeof (*out));
    memcpy (out->id.bytes, in + HEAD_ID, sizeof (out->id));
    out->number = (int64_t) log_get (in + HEAD_NUMBER, 8);
    out->attempt = (uint32_t) log_get (in + HEAD_ATTEMPT, 4);
    out->stream = (tmq_log_stream_t) log_get (in + HEAD_STREAM, 4);
    memcpy (out->ns, in + HEAD_NS, sizeof (out->ns) - 1);
    return true;
}

/* EPERM: there is no whole one; another errno: the disk may give it again. */
static int read_head (int fd, log_key_t *out, bool *sums)
{
    uint8_t head[LOG_FILE_HEAD_BYTES];
    if (log_read_all (fd, head, sizeof (head), 0) == sizeof (head))
        return unpack_head (head, out, sums) ? 0 : EPERM;
    return errno != 0 ? errno : EPERM;
}

/* Plain, our own, under no other name. */
static int open_plain (int directory, const char *name, int flags, int *out, struct stat *info)
{
    int fd = openat (directory, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == ELOOP ? EPERM : errno;
    if (fstat (fd, info) != 0 || !S_ISREG (info->st_mode) || info->st_nlink != 1 ||
        info->st_uid != geteuid ()) {
        close (fd);
        return EPERM;
    }
    *out = fd;
    return 0;
}

int log_file_head (int directory, const char *name, log_key_t *out)
{
    int fd = -1;
    struct stat info;
    bool sums;
    int error = open_plain (directory, name, O_RDONLY, &fd, &info);
    if (error != 0)
        return error;
    error = read_head (fd, out, &sums);
    close (fd);
    return error;
}

/* Opening. */

static int begin_file (log_file_t *self, const log_key_t *key, bool sums)
{
    uint8_t head[LOG_FILE_HEAD_BYTES];
    pack_head (head, key, sums);
    int error =
        ftruncate (self->fd, 0) == 0 && disk_write_at (self->fd, head, sizeof (head), 0) == 0
            ? 0
            : errno;
    log_map_clear (&self->map);
    self->size = LOG_FILE_HEAD_BYTES;
    self->end = self->lost = 0;
    self->error = 0;
    self->sums = sums;
    self->known = true;
    return error;
}

static bool is_known (const log_file_t *self, const struct stat *info)
{
    return self->known && info->st_ino == self->seen.st_ino && info->st_dev == self->seen.st_dev &&
           info->st_size == self->seen.st_size && info->st_nlink == 1 &&
           info->st_ctim.tv_sec == self->seen.st_ctim.tv_sec &&
           info->st_ctim.tv_nsec == self->seen.st_ctim.tv_nsec;
}

bool log_file_has_changed (const log_file_t *self)
{
    struct stat info;
    return fstat (self->fd, &info) != 0 || !is_known (self, &info);
}

/* Up to its last whole frame; what follows is cut off if it is to be written. A reader has what
 * stands before a place that cannot be read; nothing is written behind one. */
static int measure (log_file_t *self, const struct stat *info, bool make)
{
    uint64_t size = (uint64_t) info->st_size;
    if (!is_known (self, info)) {
        self->error = log_map_build (&self->map, self->fd, LOG_FILE_HEAD_BYTES, size, self->sums,
                                     &self->lost);
        if (self->error != 0 && make)
            return self->error;
        const log_stretch_t *last =
            self->map.count == 0 ? NULL : &self->map.stretches[self->map.count - 1];
        self->size = last == NULL ? LOG_FILE_HEAD_BYTES : last->upto;
        self->end = last == NULL ? 0 : last->end;
        self->seen = *info;
        self->known = self->error == 0;
    }
    if (!make || self->size >= size)
        return 0;
    if (ftruncate (self->fd, (off_t) self->size) != 0)
        return errno;
    self->cut = self->map.ended ? size - self->size : 0;
    self->map.ended = false;
    return 0;
}

int log_file_open (log_file_t *self, int directory, const log_key_t *key, bool make)
{
    char name[LOG_FILE_NAME_SIZE];
    log_key_t found;
    struct stat info = {0};
    log_file_name (name, key->number, key->attempt, key->stream);
    int flags = make ? O_RDWR | O_CREAT : O_RDONLY;
    int error = open_plain (directory, name, flags, &self->fd, &info);
    if (error != 0)
        return error;
    self->writable = make;
    error = read_head (self->fd, &found, &self->sums);
    if (error == EPERM && make)
        error = begin_file (self, key, true);
    else if (error == 0)
        error = log_key_equals (&found, key) ? measure (self, &info, make) : EPERM;
    if (error != 0)
        log_file_clear (self);
    return error;
}

void log_file_close (log_file_t *self)
{
    if (self->fd < 0)
        return;
    if (self->writable) /* what it is now we made of it */
        self->known = self->known && fstat (self->fd, &self->seen) == 0;
    close (self->fd);
    self->fd = -1;
}

void log_file_clear (log_file_t *self)
{
    log_file_close (self);
    log_map_clear (&self->map);
    *self = (log_file_t) LOG_FILE_INIT;
}

/* A head was changed meanwhile, or the end is gone. Half of a new map would hide the rest, so the
 * old one stays until there is a whole one. */
static int map_again (log_file_t *self)
{
    uint64_t ignored;
    struct stat info;
    log_map_t found = {0};
    if (fstat (self->fd, &info) != 0)
        return errno;
    uint64_t size = (uint64_t) info.st_size < self->size ? (uint64_t) info.st_size : self->size;
    int error = log_map_build (&found, self->fd, LOG_FILE_HEAD_BYTES, size, self->sums, &ignored);
    log_map_clear (error == 0 ? &self->map : &found);
    if (error == 0)
        self->map = found;
    return error;
}

/* Writing. */

static int copy (int from, uint64_t at, uint64_t upto, int to, uint64_t to_at)
{
    uint8_t buffer[COPY_BYTES];
    int error = 0;
    while (error == 0 && at < upto) {
        size_t want = upto - at < sizeof (buffer) ? (size_t) (upto - at) : sizeof (buffer);
        if (log_read_all (from, buffer, want, at) != want)
            return EIO;
        error = disk_write_at (to, buffer, want, to_at) == 0 ? 0 : errno;
        at += want;
        to_at += want;
    }
    return error;
}

/* *from: where the newer half begins, with a frame. */
static int find_half (const log_file_t *self, uint64_t half, uint64_t *from)
{
    log_walk_t walk;
    log_frame_t frame;
    uint64_t least = self->size > half ? self->size - half : 0;
    log_walk_to_place (&walk, &self->map, self->fd, self->sums, least);
    int error;
    do
        error = log_walk_next (&walk, &frame);
    while (error == 0 && frame.at < least);
    *from = error == 0 ? frame.at : self->size;
    return error == ENOENT ? 0 : error;
}

/* The newer half goes into a new file, which then gets the name. */
static int halve (log_file_t *self, int directory, const log_key_t *key, uint64_t size_max)
{
    char name[LOG_FILE_NAME_SIZE];
    char beside[LOG_FILE_NAME_SIZE + 8];
    log_file_t half = LOG_FILE_INIT;
    struct stat ignored;
    uint64_t from;
    int error = find_half (self, size_max / 2, &from);
    if (error == EBADMSG && (error = map_again (self)) == 0)
        error = find_half (self, size_max / 2, &from);
    if (error != 0)
        return error;
    log_file_name (name, key->number, key->attempt, key->stream);
    snprintf (beside, sizeof (beside), "%s.new", name);
    error = open_plain (directory, beside, O_RDWR | O_CREAT, &half.fd, &ignored);
    if (error != 0)
        return error;
    error = begin_file (&half, key, self->sums);
    if (error == 0)
        error = copy (self->fd, from, self->size, half.fd, LOG_FILE_HEAD_BYTES);
    if (error == 0 && renameat (directory, beside, directory, name) != 0)
        error = errno;
    if (error != 0) {
        log_file_clear (&half);
        unlinkat (directory, beside, 0);
        return error;
    }
    close (self->fd);
    self->fd = half.fd;
    self->size = LOG_FILE_HEAD_BYTES + (self->size - from);
    log_map_cut (&self->map, from, from - LOG_FILE_HEAD_BYTES);
    return 0;
}

int log_file_append (log_file_t *self, int directory, const log_key_t *key, uint64_t offset,
                     const uint8_t *bytes, size_t length, uint64_t size_max)
{
    uint8_t frame[LOG_FRAME_HEAD_BYTES + TMQ_LOG_BYTES_MAX] MEMORY_FILLED_BEFORE_READ;
    uint64_t known = self->end > offset ? self->end - offset : 0;
    if (known >= length)
        return 0;
    offset += known;
    bytes += known;
    length -= (size_t) known;
    int error = 0;
    size_t before = log_frame_head_bytes (self->sums);
    size_t whole = before + length;
    if (self->size + whole > size_max)
        error = halve (self, directory, key, size_max);
    if (error != 0)
        return error;
    log_frame_pack (frame, offset, bytes, length, self->sums);
    memcpy (frame + before, bytes, length);
    error = disk_write_at (self->fd, frame, whole, self->size) == 0 ? 0 : errno;
    if (error != 0)
        return ftruncate (self->fd, (off_t) self->size) == 0 ? error : EIO;
    log_map_add (&self->map,
                 &(log_frame_t){.at = self->size, .offset = offset, .length = (uint32_t) length},
                 self->sums);
    self->size += whole;
    self->end = offset + length;
    return 0;
}

/* Reading. */

static int read_mapped (const log_file_t *self, uint64_t *offset, uint8_t *out, size_t limit,
                        size_t *length)
{
    uint8_t bytes[TMQ_LOG_BYTES_MAX] MEMORY_FILLED_BEFORE_READ;
    log_walk_t walk;
    log_frame_t frame;
    int error = 0;
    *length = 0;
    log_walk_to_offset (&walk, &self->map, self->fd, self->sums, *offset);
    while (*length < limit && (error = log_walk_next (&walk, &frame)) == 0) {
        uint64_t wanted = *offset + *length;
        if (log_frame_end (&frame) <= wanted)
            continue;
        if (*length > 0 && frame.offset > wanted)
            return 0; /* a gap */
        error = log_frame_read (&frame, self->fd, self->sums, bytes);
        if (error == EBADMSG && *length == 0)
            continue;
        if (error != 0)
            return *length > 0 ? 0 : error;
        if (frame.offset > wanted)
            *offset = wanted = frame.offset;
        size_t skip = (size_t) (wanted - frame.offset);
        size_t take = frame.length - skip;
        if (take > limit - *length)
            take = limit - *length;
        memcpy (out + *length, bytes + skip, take);
        *length += take;
    }
    return *length > 0 || error == ENOENT ? 0 : error; /* the next page begins with an error */
}

int log_file_read (log_file_t *self, uint64_t *offset, uint8_t *out, size_t limit, size_t *length)
{
    int error = read_mapped (self, offset, out, limit, length);
    if (error == EBADMSG) {
        error = map_again (self);
        error = error != 0 ? error : read_mapped (self, offset, out, limit, length);
    }
    return error == 0 && *length == 0 ? self->error : error;
}
