/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a file that cannot be removed stays, and those behind it wait for it. */
#include "audit/turned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "export/turned_look.h"
#include "packed.h"

enum { PATH_SIZE = 4096 + 64 };
#define NAME "audit-%04u.jsonl"

void turned_path (char *out, size_t size, const char *directory, uint32_t number)
{
    snprintf (out, size, "%s/" NAME, directory, number);
}

static int compare (const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *) a;
    uint32_t right = *(const uint32_t *) b;
    return left < right ? -1 : left > right;
}

/* 0: it is none of the files. */
static uint32_t number_of (const char *entry)
{
    char plain[64];
    char packed[64 + sizeof (PACKED_ENDING)];
    unsigned number = 0;
    if (sscanf (entry, "audit-%9u", &number) != 1)
        return 0;
    snprintf (plain, sizeof (plain), NAME, number);
    snprintf (packed, sizeof (packed), "%s" PACKED_ENDING, plain);
    return strcmp (plain, entry) == 0 || strcmp (packed, entry) == 0 ? number : 0;
}

/* Of one that is there in both forms, the number once. */
static void sort (turned_t *self)
{
    size_t count = 0;
    qsort (self->numbers, self->count, sizeof (uint32_t), compare);
    for (size_t i = 0; i < self->count; i++)
        if (i == 0 || self->numbers[i] != self->numbers[i - 1])
            self->numbers[count++] = self->numbers[i];
    self->count = count;
}

static void take_name (void *context, const char *name)
{
    turned_t *out = context;
    uint32_t number = number_of (name);
    if (number == 0)
        return;
    out->numbers = memory_grow (out->numbers, &out->capacity, out->count, sizeof (uint32_t));
    out->numbers[out->count++] = number;
}

void turned_read (turned_t *out, const char *directory)
{
    *out = (turned_t){NULL, 0, 0};
    turned_look (directory, take_name, out);
    if (out->count > 0)
        sort (out);
}

void turned_free (turned_t *self)
{
    free (self->numbers);
    *self = (turned_t){NULL, 0, 0};
}

uint32_t turned_next (const turned_t *self)
{
    return self->count > 0 ? self->numbers[self->count - 1] + 1 : 1;
}

uint32_t turned_plain (const turned_t *self, const char *directory, uint32_t from)
{
    char path[PATH_SIZE];
    struct stat info;
    for (size_t i = 0; i < self->count; i++) {
        turned_path (path, sizeof (path), directory, self->numbers[i]);
        if (self->numbers[i] >= from && lstat (path, &info) == 0 && S_ISREG (info.st_mode))
            return self->numbers[i];
    }
    return 0;
}

static void packed_path (char *out, size_t size, const char *directory, uint32_t number)
{
    snprintf (out, size, "%s/" NAME PACKED_ENDING, directory, number);
}

bool turned_time (const char *directory, uint32_t number, int64_t *wall_ms)
{
    char path[PATH_SIZE];
    struct stat info;
    turned_path (path, sizeof (path), directory, number);
    if (stat (path, &info) != 0) {
        packed_path (path, sizeof (path), directory, number);
        if (stat (path, &info) != 0)
            return false;
    }
    *wall_ms = (int64_t) info.st_mtime * 1000;
    return true;
}

/* False: it stays, in one form at least. */
static bool remove_file (const char *directory, uint32_t number)
{
    char path[PATH_SIZE];
    packed_path (path, sizeof (path), directory, number);
    bool packed = unlink (path) == 0 || errno == ENOENT;
    turned_path (path, sizeof (path), directory, number);
    return packed && (unlink (path) == 0 || errno == ENOENT);
}

size_t turned_remove (turned_t *self, const char *directory, int64_t wall_ms)
{
    size_t removed = 0;
    while (removed < TURNED_REMOVED_AT_ONCE && removed + 1 < self->count) {
        uint32_t number = self->numbers[removed];
        int64_t time;
        bool many = self->count - removed > TURNED_FILES_MAX;
        bool there = turned_time (directory, number, &time);
        bool old = there ? time < wall_ms : errno == ENOENT; /* or moved away by somebody */
        if ((!many && !old) || !remove_file (directory, number))
            break;
        removed++;
    }
    if (removed == 0) /* there may be no list at all */
        return 0;
    self->count -= removed;
    if (self->count > 0)
        memmove (self->numbers, self->numbers + removed, self->count * sizeof (uint32_t));
    return removed;
}
