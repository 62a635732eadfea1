/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a file that cannot be removed stays, and those behind it wait for it. */
#include "audit/turned.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"

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

void turned_read (turned_t *out, const char *directory)
{
    *out = (turned_t){NULL, 0, 0};
    DIR *entries = opendir (directory);
    if (entries == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir (entries)) != NULL;) {
        char name[64];
        unsigned number = 0;
        if (sscanf (entry->d_name, "audit-%9u", &number) != 1 || number == 0)
            continue;
        snprintf (name, sizeof (name), NAME, number);
        if (strcmp (name, entry->d_name) != 0)
            continue;
        out->numbers = memory_grow (out->numbers, &out->capacity, out->count, sizeof (uint32_t));
        out->numbers[out->count++] = number;
    }
    closedir (entries);
    if (out->count > 0)
        qsort (out->numbers, out->count, sizeof (uint32_t), compare);
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

static bool is_old (const char *path, int64_t wall_ms)
{
    struct stat info;
    return stat (path, &info) == 0 && (int64_t) info.st_mtime * 1000 < wall_ms;
}

size_t turned_remove (turned_t *self, const char *directory, int64_t wall_ms)
{
    char path[4096 + 64];
    size_t removed = 0;
    while (removed < TURNED_REMOVED_AT_ONCE && removed < self->count) {
        turned_path (path, sizeof (path), directory, self->numbers[removed]);
        bool many = self->count - removed > TURNED_FILES_MAX;
        if ((!many && !is_old (path, wall_ms)) || unlink (path) != 0)
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
