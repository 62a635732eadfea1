/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Nothing that a frame says is believed before it is compared with the limits, and only frames of
 * the present format reach libzstd's decoder, which knows older ones too. */
#include "packed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum {
    PATH_SIZE = 4096 + 64,
    FRAME_MAX = ZSTD_COMPRESSBOUND (PACKED_FRAME_BYTES),
    INPUT_BYTES = 2 * FRAME_MAX, /* read at once, so that most frames stand in it wholly */
    LINES_BYTES = 2 * (PACKED_LINE_MAX + 1)
};

struct packed {
    int fd;
    bool is_packed;
    bool is_stream; /* a pipe: it can be read once, from the beginning on */

    /* The frame that was found last, of file_next bytes before `file_next`. */
    uint64_t file_next;
    uint64_t text_at; /* offset of its text */
    size_t text_length;
    size_t frame_length;
    bool is_decoded;
    uint8_t *text;
    ZSTD_DCtx *context;

    uint8_t *input; /* bytes of the file */
    uint64_t input_at;
    size_t input_length;

    char *lines; /* text of which lines are given */
    size_t line_at;
    size_t line_end;
    uint64_t line_offset; /* behind what is in `lines` */
    bool skips;           /* the rest of a line that was too long */
};

/* Opening. */

static bool has_ending (const char *path)
{
    size_t length = strlen (path);
    size_t ending = sizeof (PACKED_ENDING) - 1;
    return length > ending && strcmp (path + length - ending, PACKED_ENDING) == 0;
}

static int open_file (const char *path, bool ours)
{
    struct stat info;
    int fd = open (path, O_RDONLY | O_CLOEXEC | (ours ? O_NOFOLLOW | O_NONBLOCK : 0));
    if (fd < 0 || !ours || (fstat (fd, &info) == 0 && S_ISREG (info.st_mode)))
        return fd;
    close (fd);
    errno = EINVAL;
    return -1;
}

static bool prepare (packed_t *self)
{
    self->is_stream = lseek (self->fd, 0, SEEK_CUR) < 0;
    self->lines = malloc (LINES_BYTES);
    if (self->lines == NULL || !self->is_packed)
        return self->lines != NULL;
    self->text = malloc (PACKED_FRAME_BYTES);
    self->input = malloc (INPUT_BYTES);
    self->context = ZSTD_createDCtx ();
    return self->text != NULL && self->input != NULL && self->context != NULL;
}

packed_t *packed_open (const char *path, bool ours)
{
    char beside[PATH_SIZE];
    bool is_packed = has_ending (path);
    int fd = open_file (path, ours);
    if (fd < 0 && errno == ENOENT && !is_packed) {
        snprintf (beside, sizeof (beside), "%s" PACKED_ENDING, path);
        fd = open_file (beside, ours);
        is_packed = true;
    }
    if (fd < 0)
        return NULL;
    packed_t *self = calloc (1, sizeof (*self));
    if (self == NULL) {
        close (fd);
        errno = ENOMEM;
        return NULL;
    }
    self->fd = fd;
    self->is_packed = is_packed;
    if (!prepare (self)) {
        packed_close (&self);
        errno = ENOMEM;
    }
    return self;
}

void packed_close (packed_t **self_p)
{
    packed_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    close (self->fd);
    ZSTD_freeDCtx (self->context);
    free (self->text);
    free (self->input);
    free (self->lines);
    free (self);
}

/* Frames. */

static ssize_t read_file (const packed_t *self, void *out, size_t length, uint64_t offset)
{
    size_t done = 0;
    while (done < length) {
        ssize_t got = self->is_stream ? read (self->fd, (char *) out + done, length - done)
                                      : pread (self->fd, (char *) out + done, length - done,
                                               (off_t) (offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t) got;
    }
    return (ssize_t) done;
}

static int refuse (int reason)
{
    errno = reason;
    return -1;
}

/* The bytes from here on, as many as a frame may have or as there are. */
static ssize_t input_from (packed_t *self, uint64_t at, const uint8_t **out)
{
    bool ends = self->input_length < INPUT_BYTES; /* the file does */
    uint64_t end = self->input_at + self->input_length;
    if (self->input_length == 0 || at < self->input_at || at > end ||
        (at + FRAME_MAX > end && !ends)) {
        ssize_t got = read_file (self, self->input, INPUT_BYTES, at);
        self->input_at = at;
        self->input_length = got > 0 ? (size_t) got : 0;
        if (got < 0)
            return -1;
        end = at + self->input_length;
    }
    *out = self->input + (at - self->input_at);
    return (ssize_t) (end - at);
}

/* 1: there is another frame, 0: the end, -1: refused. */
static int next_frame (packed_t *self)
{
    static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    const uint8_t *bytes;
    uint64_t text_at = self->text_at + self->text_length;
    ssize_t length = input_from (self, self->file_next, &bytes);
    if (length <= 0)
        return (int) length;
    if ((size_t) length < sizeof (magic) || memcmp (bytes, magic, sizeof (magic)) != 0)
        return refuse (EBADMSG);
    unsigned long long text = ZSTD_getFrameContentSize (bytes, (size_t) length);
    if (text == ZSTD_CONTENTSIZE_ERROR || text == 0)
        return refuse (EBADMSG);
    if (text > PACKED_FRAME_BYTES || text_at + text > PACKED_TEXT_MAX) /* also if it says none */
        return refuse (EFBIG);
    size_t frame = ZSTD_findFrameCompressedSize (bytes, (size_t) length);
    if (ZSTD_isError (frame))
        return refuse (EBADMSG);
    self->file_next += frame;
    self->frame_length = frame;
    self->text_at = text_at;
    self->text_length = (size_t) text;
    self->is_decoded = false;
    return 1;
}

static int decode (packed_t *self)
{
    const uint8_t *bytes;
    if (self->is_decoded)
        return 1;
    ssize_t length = input_from (self, self->file_next - self->frame_length, &bytes);
    if (length < (ssize_t) self->frame_length)
        return refuse (length < 0 ? errno : EBADMSG);
    size_t got = ZSTD_decompressDCtx (self->context, self->text, PACKED_FRAME_BYTES, bytes,
                                      self->frame_length);
    if (ZSTD_isError (got) || got != self->text_length)
        return refuse (EBADMSG);
    self->is_decoded = true;
    return 1;
}

/* The frame with the text at this offset. */
static int find_frame (packed_t *self, uint64_t offset)
{
    if (offset < self->text_at) {
        self->file_next = 0;
        self->text_at = 0;
        self->text_length = 0;
    }
    while (offset >= self->text_at + self->text_length) {
        int found = next_frame (self);
        if (found <= 0)
            return found;
    }
    return decode (self);
}

ssize_t packed_read (packed_t *self, void *out, size_t length, uint64_t offset)
{
    size_t done = 0;
    if (!self->is_packed)
        return read_file (self, out, length, offset);
    if (self->is_stream)
        return refuse (ESPIPE);
    while (done < length) {
        int found = find_frame (self, offset + done);
        if (found < 0)
            return -1;
        if (found == 0)
            break;
        size_t from = (size_t) (offset + done - self->text_at);
        size_t part = self->text_length - from;
        if (part > length - done)
            part = length - done;
        memcpy ((char *) out + done, self->text + from, part);
        done += part;
    }
    return (ssize_t) done;
}

const char *packed_problem (int reason)
{
    switch (reason) {
    case EBADMSG: return "it is damaged, or not packed by zstd";
    case EFBIG:
        return "it is not as taskmqd packs: more text in a frame than 1 MiB, or more than 65 GiB; "
               "unpack it with zstd -d";
    default: return strerror (reason);
    }
}

/* Lines. */

static int give (packed_t *self, const char **line, size_t *length, size_t taken)
{
    *line = self->lines + self->line_at;
    *length = taken;
    self->line_at += taken;
    return 1;
}

/* More text behind what is left of it. 0: there is no more. */
static ssize_t fill (packed_t *self)
{
    size_t left = self->line_end - self->line_at;
    memmove (self->lines, self->lines + self->line_at, left);
    self->line_at = 0;
    self->line_end = left;
    ssize_t got = packed_read (self, self->lines + left, LINES_BYTES - left, self->line_offset);
    if (got > 0) {
        self->line_end += (size_t) got;
        self->line_offset += (uint64_t) got;
    }
    return got;
}

int packed_line (packed_t *self, const char **line, size_t *length, bool *whole)
{
    *whole = true;
    while (true) {
        char *start = self->lines + self->line_at;
        size_t left = self->line_end - self->line_at;
        char *newline = memchr (start, '\n', left);
        if (newline != NULL && !self->skips) {
            give (self, line, length, (size_t) (newline - start));
            self->line_at++;
            return 1;
        }
        if (newline != NULL) {
            self->skips = false;
            self->line_at += (size_t) (newline - start) + 1;
            continue;
        }
        if (self->skips)
            self->line_at = self->line_end;
        else if (left > PACKED_LINE_MAX) {
            self->skips = true;
            return give (self, line, length, PACKED_LINE_MAX + 1);
        }
        ssize_t got = fill (self);
        if (got < 0)
            return -1;
        if (got == 0 && self->line_at == self->line_end)
            return 0;
        if (got == 0) {
            *whole = false;
            return give (self, line, length, self->line_end - self->line_at);
        }
    }
}
