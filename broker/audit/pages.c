/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A line is judged by its text: keys stand in a fixed order, and a quote within a value is escaped,
 * so a member cannot be feigned by another one. */
#include "audit/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/turned.h"
#include "chain.h"
#include "core/base/memory.h"
#include "json.h"
#include "packed.h"
#include "units.h"

enum { CHUNK_BYTES = CHAIN_LINE_BYTES_MAX * 4, PATH_SIZE = 4096 + 64 };

typedef struct reader {
    const char *directory;
    const page_query_t *query;
    turned_t turned;
    char *kind; /* the member as it stands in a line; NULL: any */
    char *actor;
    char since[TIME_TEXT_SIZE];
    size_t left; /* bytes that may still be looked at */
    size_t lines;
    char *chunk;
} reader_t;

static char *member_text (const char *key, const char *value)
{
    bytes_t text = BYTES_INIT;
    json_writer_t writer = {&text, false};
    if (value == NULL || value[0] == '\0')
        return NULL;
    json_write_key (&writer, key);
    json_write_string (&writer, value, strlen (value));
    char *out = memory_text (bytes_text (&text));
    bytes_free (&text);
    return out;
}

static bool has (const char *line, size_t length, const char *what)
{
    return what == NULL || memmem (line, length, what, strlen (what)) != NULL;
}

static bool is_wanted (const reader_t *self, const char *line, size_t length)
{
    static const char at[] = "\"at\":\"";
    if (!has (line, length, self->kind) || !has (line, length, self->actor))
        return false;
    if (self->since[0] == '\0')
        return true;
    const char *time = memmem (line, length, at, sizeof (at) - 1);
    size_t room = time != NULL ? length - (size_t) (time - line) : 0;
    /* Times of one form and zone are in the order of their texts. */
    return room > sizeof (at) + TIME_TEXT_SIZE &&
           memcmp (time + sizeof (at) - 1, self->since, TIME_TEXT_SIZE - 1) >= 0;
}

static packed_t *open_file (const reader_t *self, uint32_t number)
{
    char path[PATH_SIZE];
    if (number >= turned_next (&self->turned))
        snprintf (path, sizeof (path), "%s/" AUDIT_FILE, self->directory);
    else
        turned_path (path, sizeof (path), self->directory, number);
    return packed_open (path, true);
}

/* The first file behind this number that is there; that of the open one at the latest. */
static uint32_t next_file (const reader_t *self, uint32_t number)
{
    for (size_t i = 0; i < self->turned.count; i++) {
        if (self->turned.numbers[i] > number)
            return self->turned.numbers[i];
    }
    return turned_next (&self->turned);
}

/* Beginning. */

/* The first file whose last line is not before `since`. */
static uint32_t file_since (const reader_t *self, int64_t since)
{
    for (size_t i = 0; i < self->turned.count; i++) {
        int64_t last;
        if (turned_time (self->directory, self->turned.numbers[i], &last) && last + 1000 >= since)
            return self->turned.numbers[i];
    }
    return turned_next (&self->turned);
}

/* Where the newest so many wanted lines of the open file begin, as far as one page looks back. */
static uint64_t newest_offset (reader_t *self, int fd, size_t limit)
{
    struct stat info;
    if (fstat (fd, &info) != 0)
        return 0;
    size_t length = info.st_size > PAGES_READ_MAX ? (size_t) PAGES_READ_MAX : (size_t) info.st_size;
    uint64_t from = (uint64_t) info.st_size - length;
    char *text = memory_alloc (length + 1);
    ssize_t got = pread (fd, text, length, (off_t) from);
    char *end = got > 0 ? memrchr (text, '\n', (size_t) got) : NULL;
    uint64_t offset = end != NULL ? from + (uint64_t) (end - text) + 1 : from;
    for (size_t found = 0; end != NULL && found < limit;) {
        char *before = end > text ? memrchr (text, '\n', (size_t) (end - text)) : NULL;
        if (before == NULL && from > 0)
            break; /* the rest of a line */
        char *line = before != NULL ? before + 1 : text;
        if (is_wanted (self, line, (size_t) (end - line))) {
            offset = from + (uint64_t) (line - text);
            found++;
        }
        end = before;
    }
    free (text);
    return offset;
}

static bool begin (reader_t *self, page_t *out)
{
    const page_query_t *query = self->query;
    out->file = query->file;
    out->offset = query->offset;
    if (query->file != 0)
        return true;
    out->file = query->since != 0 ? file_since (self, query->since) : turned_next (&self->turned);
    out->offset = 0;
    if (query->since != 0)
        return time_format (self->since, query->since);
    char path[PATH_SIZE];
    snprintf (path, sizeof (path), "%s/" AUDIT_FILE, self->directory);
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT;
    out->offset = newest_offset (self, fd, query->limit);
    close (fd);
    return true;
}

/* Reading. */

/* Whole lines of one chunk; the page moves on behind what was looked at. False: it is full. */
static bool take_lines (reader_t *self, page_t *out, size_t got)
{
    const char *end = self->chunk + got;
    for (const char *line = self->chunk, *newline;
         (newline = memchr (line, '\n', (size_t) (end - line))) != NULL; line = newline + 1) {
        size_t length = (size_t) (newline - line) + 1;
        bool wanted = is_wanted (self, line, length);
        if (wanted && (self->lines == self->query->limit ||
                       out->lines.length + length > self->query->bytes_max))
            return false;
        if (wanted) {
            bytes_append (&out->lines, line, length);
            self->lines++;
        }
        out->offset += length;
    }
    return true;
}

/* *done: the page ends here. */
static bool read_chunk (reader_t *self, page_t *out, packed_t *file, bool *done)
{
    uint64_t before = out->offset;
    ssize_t got = packed_read (file, self->chunk, CHUNK_BYTES, out->offset);
    if (got < 0)
        return false;
    bool room = take_lines (self, out, (size_t) got);
    self->left -= self->left < (size_t) got ? self->left : (size_t) got;
    bool at_end = out->offset == before && room;
    if (at_end && out->file < turned_next (&self->turned)) {
        out->file = next_file (self, out->file);
        out->offset = 0;
        *done = self->left == 0;
        out->more = true;
        return true;
    }
    out->more = !at_end;
    *done = !room || at_end || self->left == 0;
    return true;
}

static bool read_files (reader_t *self, page_t *out)
{
    bool done = false;
    bool good = true;
    while (good && !done) {
        packed_t *file = open_file (self, out->file);
        if (file == NULL && errno == ENOENT && out->file < turned_next (&self->turned)) {
            out->file = next_file (self, out->file); /* removed meanwhile */
            out->offset = 0;
            continue;
        }
        if (file == NULL && errno == ENOENT)
            return true;
        uint32_t number = out->file;
        good = file != NULL;
        while (good && !done && out->file == number)
            good = read_chunk (self, out, file, &done);
        if (!good)
            out->problem = packed_problem (errno);
        packed_close (&file);
    }
    return good;
}

bool page_read (page_t *out, const char *directory, const page_query_t *query)
{
    reader_t self = {.directory = directory, .query = query, .left = PAGES_READ_MAX};
    *out = (page_t){.lines = BYTES_INIT};
    turned_read (&self.turned, directory);
    self.kind = member_text ("kind", query->kind);
    self.actor = member_text ("actor", query->actor);
    self.chunk = memory_alloc (CHUNK_BYTES);
    bool good = begin (&self, out) && read_files (&self, out) && !out->lines.failed;
    free (self.chunk);
    free (self.kind);
    free (self.actor);
    turned_free (&self.turned);
    return good;
}
