/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* Failure: a file that cannot be read is none of ours; one that cannot be removed stays, and those
 * behind it wait for it. */
#include "export/event_turned.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain.h"
#include "core/base/memory.h"
#include "export/line_file.h"
#include "export/turned_look.h"
#include "packed.h"

static void path_of (const event_turned_t *self, const char *name, char *out)
{
    snprintf (out, EVENT_TURNED_PATH_SIZE, "%s/%s", self->directory, name);
}

/* events-POS.jsonl, events-POS-2.jsonl and so on, packed or not. */
static bool is_name (const char *name)
{
    uint64_t pos;
    unsigned again;
    char rest[16] = "";
    if (strlen (name) >= sizeof (((event_turned_file_t *) NULL)->name))
        return false;
    return (sscanf (name, "events-%" SCNu64 "-%u%15s", &pos, &again, rest) == 3 ||
            sscanf (name, "events-%" SCNu64 "%15s", &pos, rest) == 2) &&
           (strcmp (rest, ".jsonl") == 0 || strcmp (rest, ".jsonl" PACKED_ENDING) == 0);
}

/* The anchor at the beginning of the file. */
static bool read_anchor (event_turned_file_t *out, const char *path)
{
    const char *line;
    size_t length;
    bool whole;
    chain_head_t head;
    event_place_t place;
    packed_t *file = packed_open (path, true);
    bool good = file != NULL && packed_line (file, &line, &length, &whole) > 0 && whole &&
                chain_follow (&head, line, length) && event_line_parse (&place, line, length) &&
                place.generation != 0;
    if (good) {
        out->n = head.n;
        out->generation = place.generation;
    }
    packed_close (&file);
    return good;
}

/* In which form it is there, and its size. */
static bool measure (event_turned_file_t *out, const char *path)
{
    char packed[EVENT_TURNED_PATH_SIZE + sizeof (PACKED_ENDING)];
    struct stat info;
    out->packed = stat (path, &info) != 0;
    snprintf (packed, sizeof (packed), "%s" PACKED_ENDING, path);
    if ((out->packed && stat (packed, &info) != 0) || !S_ISREG (info.st_mode))
        return false;
    out->bytes = (uint64_t) info.st_size;
    return true;
}

/* The file of this plain name, once. */
static void add (event_turned_t *self, const char *name)
{
    char path[EVENT_TURNED_PATH_SIZE];
    event_turned_file_t file = {.n = 0};
    snprintf (file.name, sizeof (file.name), "%s", name);
    size_t length = strlen (file.name);
    if (length > strlen (PACKED_ENDING) &&
        strcmp (file.name + length - strlen (PACKED_ENDING), PACKED_ENDING) == 0)
        file.name[length - strlen (PACKED_ENDING)] = '\0';
    for (size_t i = 0; i < self->count; i++)
        if (strcmp (self->files[i].name, file.name) == 0)
            return; /* it is there in both forms */
    path_of (self, file.name, path);
    if (!measure (&file, path) || !read_anchor (&file, path))
        return;
    self->files = memory_grow (self->files, &self->capacity, self->count, sizeof (file));
    self->files[self->count++] = file;
    self->bytes += file.bytes;
}

static int compare (const void *a, const void *b)
{
    uint64_t left = ((const event_turned_file_t *) a)->n;
    uint64_t right = ((const event_turned_file_t *) b)->n;
    return (left > right) - (left < right);
}

static void take_name (void *context, const char *name)
{
    if (is_name (name))
        add (context, name);
}

void event_turned_read (event_turned_t *out, const char *directory)
{
    *out = (event_turned_t){.directory = memory_text (directory)};
    turned_look (directory, take_name, out);
    if (out->count > 0)
        qsort (out->files, out->count, sizeof (event_turned_file_t), compare);
}

void event_turned_free (event_turned_t *self)
{
    free (self->directory);
    free (self->files);
    *self = (event_turned_t){NULL, NULL, 0, 0, 0};
}

static bool is_taken (const char *path)
{
    char packed[EVENT_TURNED_PATH_SIZE + sizeof (PACKED_ENDING)];
    struct stat info;
    snprintf (packed, sizeof (packed), "%s" PACKED_ENDING, path);
    return lstat (path, &info) == 0 || lstat (packed, &info) == 0;
}

void event_turned_path (const event_turned_t *self, uint64_t pos, char out[EVENT_TURNED_PATH_SIZE])
{
    char name[64];
    snprintf (name, sizeof (name), "events-%016" PRIu64 ".jsonl", pos);
    path_of (self, name, out);
    /* After a rollback positions come again. */
    for (unsigned n = 2; is_taken (out); n++) {
        snprintf (name, sizeof (name), "events-%016" PRIu64 "-%u.jsonl", pos, n);
        path_of (self, name, out);
    }
}

void event_turned_add (event_turned_t *self, const char *path)
{
    add (self, strrchr (path, '/') + 1);
}

/* Of a packed file all has to be read. */
static void read_packed (const char *path, char **line, size_t *length)
{
    const char *next;
    bool whole;
    int got = -1;
    bytes_t last = BYTES_INIT;
    packed_t *file = packed_open (path, true);
    while (file != NULL && (got = packed_line (file, &next, length, &whole)) > 0)
        if (whole) {
            bytes_clear (&last);
            bytes_append (&last, next, *length);
        }
    if (got == 0 && last.length > 0) {
        *length = last.length;
        *line = memory_text (bytes_text (&last));
    }
    packed_close (&file);
    bytes_free (&last);
}

bool event_turned_last (const event_turned_t *self, char **line, size_t *length)
{
    char path[EVENT_TURNED_PATH_SIZE];
    char error[LINE_FILE_ERROR_SIZE];
    line_file_t file;
    off_t torn;
    *line = NULL;
    if (self->count == 0)
        return false;
    const event_turned_file_t *newest = &self->files[self->count - 1];
    path_of (self, newest->name, path);
    if (newest->packed) {
        read_packed (path, line, length);
        return *line != NULL;
    }
    if (line_file_open (&file, path, error))
        line_file_read_last (&file, line, length, &torn, error);
    line_file_close (&file);
    return *line != NULL;
}

bool event_turned_plain (const event_turned_t *self, char out[EVENT_TURNED_PATH_SIZE])
{
    for (size_t i = 0; i < self->count; i++) {
        path_of (self, self->files[i].name, out);
        if (!self->files[i].packed && access (out, F_OK) == 0)
            return true;
    }
    return false;
}

void event_turned_packed (event_turned_t *self, const char *path)
{
    const char *name = strrchr (path, '/') + 1;
    for (size_t i = 0; i < self->count; i++) {
        event_turned_file_t *file = &self->files[i];
        if (strcmp (file->name, name) != 0)
            continue;
        self->bytes -= file->bytes;
        measure (file, path);
        self->bytes += file->bytes;
    }
}

bool event_turned_has (const event_turned_t *self, uint64_t generation)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->files[i].generation == generation)
            return true;
    return false;
}

static bool is_old (const event_turned_file_t *file, const char *path, int64_t since_ms)
{
    char packed[EVENT_TURNED_PATH_SIZE + sizeof (PACKED_ENDING)];
    struct stat info;
    snprintf (packed, sizeof (packed), "%s" PACKED_ENDING, path);
    if (stat (file->packed ? packed : path, &info) != 0)
        return errno == ENOENT; /* moved away by somebody: it is forgotten as well */
    return (int64_t) info.st_mtime * 1000 < since_ms;
}

/* False: it stays, in one form at least. */
static bool remove_file (const char *path)
{
    char packed[EVENT_TURNED_PATH_SIZE + sizeof (PACKED_ENDING)];
    snprintf (packed, sizeof (packed), "%s" PACKED_ENDING, path);
    return (unlink (packed) == 0 || errno == ENOENT) && (unlink (path) == 0 || errno == ENOENT);
}

size_t event_turned_remove (event_turned_t *self, const event_keep_t *keep, size_t *early)
{
    char path[EVENT_TURNED_PATH_SIZE];
    size_t removed = 0;
    *early = 0;
    while (removed < EVENT_TURNED_AT_ONCE && removed < self->count) {
        const event_turned_file_t *file = &self->files[removed];
        path_of (self, file->name, path);
        bool much = self->bytes > keep->bytes || self->count - removed > EVENT_TURNED_MAX;
        bool old = is_old (file, path, keep->since_ms);
        if ((!much && !old) || !remove_file (path))
            break;
        self->bytes -= file->bytes;
        *early += !old;
        removed++;
    }
    if (removed == 0)
        return 0;
    self->count -= removed;
    memmove (self->files, self->files + removed, self->count * sizeof (event_turned_file_t));
    return removed;
}
