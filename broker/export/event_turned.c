/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* Failure: a file that cannot be read is none of ours; one that cannot be removed stays, and those
 * behind it wait for it. */
#include "export/event_turned.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain.h"
#include "core/base/memory.h"
#include "export/line_file.h"

enum { FIRST_BYTES = 4096 }; /* an anchor has fewer */

static void path_of (const event_turned_t *self, const char *name, char *out)
{
    snprintf (out, EVENT_TURNED_PATH_SIZE, "%s/%s", self->directory, name);
}

/* events-POS.jsonl, events-POS-2.jsonl and so on. */
static bool is_name (const char *name)
{
    uint64_t pos;
    unsigned again;
    char rest[16] = "";
    if (strlen (name) >= sizeof (((event_turned_file_t *) NULL)->name))
        return false;
    return (sscanf (name, "events-%" SCNu64 "-%u%15s", &pos, &again, rest) == 3 ||
            sscanf (name, "events-%" SCNu64 "%15s", &pos, rest) == 2) &&
           strcmp (rest, ".jsonl") == 0;
}

/* The anchor at the beginning of the file. */
static bool read_anchor (event_turned_file_t *out, const char *path)
{
    char text[FIRST_BYTES];
    chain_head_t head;
    event_place_t place;
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = fd < 0 ? -1 : pread (fd, text, sizeof (text), 0);
    if (fd >= 0)
        close (fd);
    const char *end = got > 0 ? memchr (text, '\n', (size_t) got) : NULL;
    if (end == NULL || !chain_follow (&head, text, (size_t) (end - text)) ||
        !event_line_parse (&place, text, (size_t) (end - text)))
        return false;
    out->n = head.n;
    out->generation = place.generation;
    return place.generation != 0;
}

static void add (event_turned_t *self, const char *name)
{
    char path[EVENT_TURNED_PATH_SIZE];
    struct stat info;
    event_turned_file_t file = {.n = 0};
    path_of (self, name, path);
    if (stat (path, &info) != 0 || !S_ISREG (info.st_mode) || !read_anchor (&file, path))
        return;
    snprintf (file.name, sizeof (file.name), "%s", name);
    file.bytes = (uint64_t) info.st_size;
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

void event_turned_read (event_turned_t *out, const char *directory)
{
    *out = (event_turned_t){.directory = memory_text (directory)};
    DIR *entries = opendir (directory);
    if (entries == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir (entries)) != NULL;)
        if (is_name (entry->d_name))
            add (out, entry->d_name);
    closedir (entries);
    if (out->count > 0)
        qsort (out->files, out->count, sizeof (event_turned_file_t), compare);
}

void event_turned_free (event_turned_t *self)
{
    free (self->directory);
    free (self->files);
    *self = (event_turned_t){NULL, NULL, 0, 0, 0};
}

void event_turned_path (const event_turned_t *self, uint64_t pos, char out[EVENT_TURNED_PATH_SIZE])
{
    struct stat info;
    char name[64];
    snprintf (name, sizeof (name), "events-%016" PRIu64 ".jsonl", pos);
    path_of (self, name, out);
    /* After a rollback positions come again. */
    for (unsigned n = 2; lstat (out, &info) == 0; n++) {
        snprintf (name, sizeof (name), "events-%016" PRIu64 "-%u.jsonl", pos, n);
        path_of (self, name, out);
    }
}

void event_turned_add (event_turned_t *self, const char *path)
{
    add (self, strrchr (path, '/') + 1);
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
    path_of (self, self->files[self->count - 1].name, path);
    if (line_file_open (&file, path, error))
        line_file_read_last (&file, line, length, &torn, error);
    line_file_close (&file);
    return *line != NULL;
}

bool event_turned_has (const event_turned_t *self, uint64_t generation)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->files[i].generation == generation)
            return true;
    return false;
}

static bool is_old (const char *path, int64_t since_ms)
{
    struct stat info;
    return stat (path, &info) == 0 && (int64_t) info.st_mtime * 1000 < since_ms;
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
        bool old = is_old (path, keep->since_ms);
        if ((!much && !old) || unlink (path) != 0)
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
