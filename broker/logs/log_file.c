/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: an error of the disk loses the piece and nothing before it. A frame that cannot be one
 * (zeros of a lost write, somebody's hand) ends the file there; one whose bytes are not those of
 * its sum is a gap. */
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
#include "store/checksum.h"

enum {
    WINDOW_BYTES = 4096,
    COPY_BYTES = 64 * 1024,
    HEAD_ID = 8,
    HEAD_NUMBER = 24,
    HEAD_ATTEMPT = 32,
    HEAD_STREAM = 36,
    HEAD_NS = 40,
    HEAD_SUM = 108,
    FRAME_CHECK = 0x746d716c,
    FRAME_SUM = 16,
    PLAIN_FRAME_BYTES = FRAME_SUM /* without sums */
};
static const char MAGIC[] = "tmqlog2\n";
static const char PLAIN_MAGIC[] = "tmqlog1\n"; /* files of before */

/* Numbers, the smallest byte first. */

static void put (uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t) (value >> (8 * i));
}

static uint64_t get (const uint8_t *in, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t) in[i] << (8 * i);
    return value;
}

/* As many as there are; fewer than wanted is the end of the file (errno 0) or an error. */
static size_t read_all (int fd, uint8_t *out, size_t length, uint64_t at)
{
    size_t have = 0;
    errno = 0;
    while (have < length) {
        ssize_t got = pread (fd, out + have, length - have, (off_t) (at + have));
        if (got < 0 && errno != EINTR)
            break;
        errno = 0;
        if (got == 0)
            break;
        have += got > 0 ? (size_t) got : 0;
    }
    return have;
}

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

static uint32_t sum_of (const void *bytes, size_t length)
{
    return (uint32_t) checksum_add (0, bytes, length);
}

static void pack_head (uint8_t out[LOG_FILE_HEAD_BYTES], const log_key_t *key, bool sums)
{
    memset (out, 0, LOG_FILE_HEAD_BYTES);
    memcpy (out, sums ? MAGIC : PLAIN_MAGIC, HEAD_ID);
    memcpy (out + HEAD_ID, key->id.bytes, sizeof (key->id));
    put (out + HEAD_NUMBER, (uint64_t) key->number, 8);
    put (out + HEAD_ATTEMPT, key->attempt, 4);
    put (out + HEAD_STREAM, key->stream, 4);
    memcpy (out + HEAD_NS, key->ns, strlen (key->ns));
    if (sums)
        put (out + HEAD_SUM, sum_of (out, HEAD_SUM), 4);
}

static bool unpack_head (const uint8_t in[LOG_FILE_HEAD_BYTES], log_key_t *out, bool *sums)
{
    *sums = memcmp (in, MAGIC, HEAD_ID) == 0;
    if (*sums ? get (in + HEAD_SUM, 4) != sum_of (in, HEAD_SUM)
              : memcmp (in, PLAIN_MAGIC, HEAD_ID) != 0)
        return false;
    memset (out, 0, sizeof (*out));
    memcpy (out->id.bytes, in + HEAD_ID, sizeof (out->id));
    out->number = (int64_t) get (in + HEAD_NUMBER, 8);
    out->attempt = (uint32_t) get (in + HEAD_ATTEMPT, 4);
    out->stream = (tmq_log_stream_t) get (in + HEAD_STREAM, 4);
    memcpy (out->ns, in + HEAD_NS, sizeof (out->ns) - 1);
    return true;
}

/* EPERM: there is no whole one; another errno: the disk may give it again. */
static int read_head (int fd, log_key_t *out, bool *sums)
{
    uint8_t head[LOG_FILE_HEAD_BYTES];
    if (read_all (fd, head, sizeof (head), 0) == sizeof (head))
        return unpack_head (head, out, sums) ? 0 : EPERM;
    return errno != 0 ? errno : EPERM;
}

/* Plain, our own, under no other name. */
static int open_plain (int directory, const char *name, int flags, int *out, uint64_t *size)
{
    struct stat info;
    int fd = openat (directory, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == ELOOP ? EPERM : errno;
    if (fstat (fd, &info) != 0 || !S_ISREG (info.st_mode) || info.st_nlink != 1 ||
        info.st_uid != geteuid ()) {
        close (fd);
        return EPERM;
    }
    *out = fd;
    *size = (uint64_t) info.st_size;
    return 0;
}

int log_file_head (int directory, const char *name, log_key_t *out)
{
    int fd = -1;
    uint64_t size;
    bool sums;
    int error = open_plain (directory, name, O_RDONLY, &fd, &size);
    if (error != 0)
        return error;
    error = read_head (fd, out, &sums);
    close (fd);
    return error;
}

/* Frames. */

typedef struct frame {
    uint64_t at; /* of its bytes in the file */
    uint64_t offset;
    uint32_t length;
    uint32_t sum;
} frame_t;

/* Files of before checked one half of the offset. */
static uint32_t check_of (uint64_t offset, uint32_t length, bool sums)
{
    uint32_t high = sums ? (uint32_t) (offset >> 32) * 0x9e3779b1u : 0;
    return (uint32_t) offset ^ high ^ length ^ FRAME_CHECK;
}

static size_t frame_bytes (bool sums)
{
    return sums ? LOG_FILE_FRAME_BYTES : PLAIN_FRAME_BYTES;
}

/* A walk over the frames of a file. */
typedef struct walk {
    int fd;
    uint64_t at;   /* of the next frame */
    uint64_t size; /* of the file */
    uint64_t end;  /* of the frames so far, in the stream */
    size_t before; /* the bytes of each */
    uint64_t from; /* what is in the window */
    size_t have;
    uint8_t window[WINDOW_BYTES];
} walk_t;

static void walk_begin (walk_t *self, const log_file_t *file)
{
    self->fd = file->fd;
    self->at = LOG_FILE_HEAD_BYTES;
    self->size = file->size;
    self->end = 0;
    self->before = frame_bytes (file->sums);
    self->from = 0;
    self->have = 0;
}

/* False: no further frame stands there. */
static bool walk_next (walk_t *self, frame_t *out)
{
    if (self->at + self->before > self->size)
        return false;
    if (self->at < self->from || self->at + self->before > self->from + self->have) {
        self->from = self->at;
        self->have = read_all (self->fd, self->window, sizeof (self->window), self->at);
    }
    if (self->at + self->before > self->from + self->have)
        return false;
    const uint8_t *in = self->window + (self->at - self->from);
    out->at = self->at + self->before;
    out->offset = get (in, 8);
    out->length = (uint32_t) get (in + 8, 4);
    out->sum = self->before > FRAME_SUM ? (uint32_t) get (in + FRAME_SUM, 4) : 0;
    uint32_t check = check_of (out->offset, out->length, self->before > FRAME_SUM);
    if (out->length == 0 || out->length > TMQ_LOG_BYTES_MAX || get (in + 12, 4) != check ||
        out->offset < self->end || out->offset > TMQ_LOG_OFFSET_MAX - out->length ||
        out->length > self->size - out->at)
        return false;
    self->at = out->at + out->length;
    self->end = out->offset + out->length;
    return true;
}

/* EIO: its bytes cannot be read; EBADMSG: they are others. */
static int frame_read (const log_file_t *self, const frame_t *frame, uint8_t out[TMQ_LOG_BYTES_MAX])
{
    if (read_all (self->fd, out, frame->length, frame->at) != frame->length)
        return EIO;
    return self->sums && sum_of (out, frame->length) != frame->sum ? EBADMSG : 0;
}

static int begin_file (log_file_t *self, const log_key_t *key, bool sums)
{
    uint8_t head[LOG_FILE_HEAD_BYTES];
    pack_head (head, key, sums);
    int error =
        ftruncate (self->fd, 0) == 0 && disk_write_at (self->fd, head, sizeof (head), 0) == 0
            ? 0
            : errno;
    self->size = LOG_FILE_HEAD_BYTES;
    self->end = 0;
    self->sums = sums;
    return error;
}

static bool is_same (const log_key_t *a, const log_key_t *b)
{
    return a->number == b->number && memcmp (&a->id, &b->id, sizeof (a->id)) == 0 &&
           strcmp (a->ns, b->ns) == 0 && a->attempt == b->attempt && a->stream == b->stream;
}

/* Where its last whole frame ends; what follows is cut off if it is to be written. */
static int measure (log_file_t *self, bool make)
{
    uint8_t bytes[TMQ_LOG_BYTES_MAX] MEMORY_FILLED_BEFORE_READ;
    walk_t walk;
    frame_t frame;
    uint64_t whole = LOG_FILE_HEAD_BYTES;
    walk_begin (&walk, self);
    while (walk_next (&walk, &frame)) {
        int error = self->sums ? frame_read (self, &frame, bytes) : 0;
        if (error == EIO && make)
            return error; /* nothing is cut off that the disk may give again */
        if (error != EBADMSG) {
            whole = walk.at;
            self->end = walk.end;
        }
    }
    if (whole < self->size && make && ftruncate (self->fd, (off_t) whole) != 0)
        return errno;
    self->size = whole;
    return 0;
}

int log_file_open (log_file_t *self, int directory, const log_key_t *key, bool make)
{
    char name[LOG_FILE_NAME_SIZE];
    log_key_t found;
    *self = (log_file_t){.fd = -1};
    log_file_name (name, key->number, key->attempt, key->stream);
    int flags = make ? O_RDWR | O_CREAT : O_RDONLY;
    int error = open_plain (directory, name, flags, &self->fd, &self->size);
    if (error != 0)
        return error;
    error = read_head (self->fd, &found, &self->sums);
    if (error == EPERM && make)
        error = begin_file (self, key, true);
    else if (error == 0)
        error = is_same (&found, key) ? measure (self, make) : EPERM;
    if (error != 0)
        log_file_close (self);
    return error;
}

void log_file_close (log_file_t *self)
{
    close (self->fd);
    self->fd = -1;
}

/* Writing. */

static int copy (int from, uint64_t at, uint64_t upto, int to, uint64_t to_at)
{
    uint8_t buffer[COPY_BYTES];
    int error = 0;
    while (error == 0 && at < upto) {
        size_t want = upto - at < sizeof (buffer) ? (size_t) (upto - at) : sizeof (buffer);
        if (read_all (from, buffer, want, at) != want)
            return EIO;
        error = disk_write_at (to, buffer, want, to_at) == 0 ? 0 : errno;
        at += want;
        to_at += want;
    }
    return error;
}

/* The newer half goes into a new file, which then gets the name. */
static int halve (log_file_t *self, int directory, const log_key_t *key, uint64_t size_max)
{
    char name[LOG_FILE_NAME_SIZE];
    char beside[LOG_FILE_NAME_SIZE + 8];
    walk_t walk;
    frame_t frame;
    uint64_t half = size_max / 2;
    log_file_t half_file = {.fd = -1};
    uint64_t from = self->size; /* of what stays */
    uint64_t ignored;
    walk_begin (&walk, self);
    while (from == self->size && walk_next (&walk, &frame))
        if (self->size - (frame.at - walk.before) <= half)
            from = frame.at - walk.before;
    log_file_name (name, key->number, key->attempt, key->stream);
    snprintf (beside, sizeof (beside), "%s.new", name);
    int error = open_plain (directory, beside, O_RDWR | O_CREAT, &half_file.fd, &ignored);
    if (error != 0)
        return error;
    error = begin_file (&half_file, key, self->sums);
    if (error == 0)
        error = copy (self->fd, from, self->size, half_file.fd, LOG_FILE_HEAD_BYTES);
    if (error == 0 && renameat (directory, beside, directory, name) != 0)
        error = errno;
    if (error != 0) {
        log_file_close (&half_file);
        unlinkat (directory, beside, 0);
        return error;
    }
    half_file.end = self->end;
    half_file.size = LOG_FILE_HEAD_BYTES + (self->size - from);
    log_file_close (self);
    *self = half_file;
    return 0;
}

int log_file_append (log_file_t *self, int directory, const log_key_t *key, uint64_t offset,
                     const uint8_t *bytes, size_t length, uint64_t size_max)
{
    uint8_t frame[LOG_FILE_FRAME_BYTES + TMQ_LOG_BYTES_MAX] MEMORY_FILLED_BEFORE_READ;
    uint64_t known = self->end > offset ? self->end - offset : 0;
    if (known >= length)
        return 0;
    offset += known;
    bytes += known;
    length -= (size_t) known;
    int error = 0;
    size_t before = frame_bytes (self->sums);
    size_t whole = before + length;
    if (self->size + whole > size_max)
        error = halve (self, directory, key, size_max);
    if (error != 0)
        return error;
    put (frame, offset, 8);
    put (frame + 8, length, 4);
    put (frame + 12, check_of (offset, (uint32_t) length, self->sums), 4);
    if (self->sums)
        put (frame + FRAME_SUM, sum_of (bytes, length), 4);
    memcpy (frame + before, bytes, length);
    error = disk_write_at (self->fd, frame, whole, self->size) == 0 ? 0 : errno;
    if (error != 0)
        return ftruncate (self->fd, (off_t) self->size) == 0 ? error : EIO;
    self->size += whole;
    self->end = offset + length;
    return 0;
}

/* Reading. */

int log_file_read (const log_file_t *self, uint64_t *offset, uint8_t *out, size_t limit,
                   size_t *length)
{
    uint8_t bytes[TMQ_LOG_BYTES_MAX] MEMORY_FILLED_BEFORE_READ;
    walk_t walk;
    frame_t frame;
    *length = 0;
    walk_begin (&walk, self);
    while (*length < limit && walk_next (&walk, &frame)) {
        uint64_t wanted = *offset + *length;
        if (frame.offset + frame.length <= wanted)
            continue;
        if (*length > 0 && frame.offset > wanted)
            return 0; /* a gap */
        int error = frame_read (self, &frame, bytes);
        if (error == EBADMSG && *length > 0)
            return 0;
        if (error == EBADMSG)
            continue;
        if (error != 0)
            return error;
        if (frame.offset > wanted)
            *offset = wanted = frame.offset;
        size_t skip = (size_t) (wanted - frame.offset);
        size_t take = frame.length - skip;
        if (take > limit - *length)
            take = limit - *length;
        memcpy (out + *length, bytes + skip, take);
        *length += take;
    }
    return 0;
}
