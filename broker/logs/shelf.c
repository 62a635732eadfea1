/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* An index in memory (a task: 64 bytes) knows whose logs there are, how large they are, and which
 * were written longest ago. It is filled by the look at the start, in slices, and at once for a
 * task that is asked about before. */
#include "logs/shelf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/list.h"
#include "core/base/map.h"
#include "core/base/memory.h"
#include "logs/log_file.h"

enum {
    BUCKET_SHIFT = 8,
    BUCKET_NAME_SIZE = 24,
    SPACE_LOOK_MS = 1000,           /* between two looks at the disk, … */
    SPACE_LOOK_BYTES = 1024 * 1024, /* … or after so much */
    LOOK_NAMES_MAX = 1024           /* names that a slice looks at */
};

typedef struct entry {
    int64_t number;
    node_t by_age; /* written longest ago first */
    uint64_t bytes;
    uint32_t newest; /* attempt */
} entry_t;

/* A file that is open, or none. */
typedef struct handle {
    log_key_t key;
    int directory;
    log_file_t file;
    uint64_t used; /* when, by count */
} handle_t;

struct shelf {
    int directory;
    shelf_limits_t limits;
    map_t entries; /* by number */
    node_t by_age;
    shelf_stats_t stats;
    handle_t *open;
    size_t open_count;
    uint64_t uses;
    int64_t space_at;
    uint64_t space_bytes; /* written since the last look */
    bool no_space;
    /* The look at the start. */
    DIR *buckets; /* NULL: it is over */
    DIR *files;   /* of a bucket, or NULL */
};

/* Directories. */

static void bucket_name (char out[BUCKET_NAME_SIZE], int64_t number)
{
    snprintf (out, BUCKET_NAME_SIZE, "%" PRIx64, (uint64_t) number >> BUCKET_SHIFT);
}

static int open_directory (int at, const char *name)
{
    return openat (at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* -1 with errno. */
static int open_bucket (const shelf_t *self, int64_t number, bool make)
{
    char name[BUCKET_NAME_SIZE];
    bucket_name (name, number);
    int fd = open_directory (self->directory, name);
    if (fd >= 0 || !make || errno != ENOENT)
        return fd;
    if (mkdirat (self->directory, name, 0700) != 0 && errno != EEXIST)
        return -1;
    return open_directory (self->directory, name);
}

static DIR *list_directory (int at, const char *name)
{
    int fd = open_directory (at, name);
    DIR *list = fd < 0 ? NULL : fdopendir (fd);
    if (list == NULL && fd >= 0)
        close (fd);
    return list;
}

static uint64_t size_of (int directory, const char *name)
{
    struct stat info;
    if (fstatat (directory, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG (info.st_mode))
        return 0;
    return (uint64_t) info.st_size;
}

/* Files that are open. */

static void count_bytes (shelf_t *self, entry_t *entry, uint64_t before, uint64_t after)
{
    entry->bytes += after - before;
    self->stats.bytes += after - before;
}

static void handle_close (shelf_t *self, handle_t *handle)
{
    log_file_close (&handle->file);
    close (handle->directory);
    *handle = self->open[--self->open_count];
}

static void close_task (shelf_t *self, int64_t number)
{
    for (size_t i = self->open_count; i > 0; i--)
        if (self->open[i - 1].key.number == number)
            handle_close (self, &self->open[i - 1]);
}

static handle_t *handle_find (shelf_t *self, const log_key_t *key)
{
    for (size_t i = 0; i < self->open_count; i++) {
        const log_key_t *have = &self->open[i].key;
        if (have->number == key->number && have->attempt == key->attempt &&
            have->stream == key->stream)
            return memcmp (&have->id, &key->id, sizeof (key->id)) == 0 ? &self->open[i] : NULL;
    }
    return NULL;
}

static int handle_open (shelf_t *self, entry_t *entry, const log_key_t *key, handle_t **out)
{
    *out = handle_find (self, key);
    if (*out == NULL) {
        handle_t made = {.key = *key};
        made.directory = open_bucket (self, key->number, true);
        int error =
            made.directory < 0 ? errno : log_file_open (&made.file, made.directory, key, true);
        if (error != 0) {
            if (made.directory >= 0)
                close (made.directory);
            return error;
        }
        handle_t *oldest = &self->open[0];
        for (size_t i = 1; i < self->open_count; i++)
            if (self->open[i].used < oldest->used)
                oldest = &self->open[i];
        if (self->open_count == SHELF_OPEN_MAX)
            handle_close (self, oldest);
        *out = &self->open[self->open_count++];
        **out = made;
        count_bytes (self, entry, made.file.found, made.file.size);
    }
    (*out)->used = ++self->uses;
    return 0;
}

/* The index. */

static uint32_t hash_of (int64_t number)
{
    return (uint32_t) (((uint64_t) number * UINT64_C (0x9e3779b97f4a7c15)) >> 32);
}

static entry_t *entry_find (const shelf_t *self, int64_t number)
{
    size_t cursor = MAP_START;
    entry_t *entry = map_next (&self->entries, hash_of (number), &cursor);
    while (entry != NULL && entry->number != number)
        entry = map_next (&self->entries, hash_of (number), &cursor);
    return entry;
}

static entry_t *entry_new (shelf_t *self, int64_t number)
{
    entry_t *entry = memory_zero (1, sizeof (*entry));
    entry->number = number;
    map_insert (&self->entries, hash_of (number), entry);
    list_push_back (&self->by_age, &entry->by_age);
    self->stats.tasks++;
    return entry;
}

static void entry_free (shelf_t *self, entry_t *entry)
{
    self->stats.bytes -= entry->bytes;
    self->stats.tasks--;
    map_remove (&self->entries, hash_of (entry->number), entry);
    list_remove (&entry->by_age);
    free (entry);
}

static void remove_attempt (shelf_t *self, entry_t *entry, int directory, uint32_t attempt)
{
    char name[LOG_FILE_NAME_SIZE];
    for (tmq_log_stream_t stream = TMQ_LOG_OUT; stream <= TMQ_LOG_ERR; stream++) {
        log_file_name (name, entry->number, attempt, stream);
        uint64_t bytes = size_of (directory, name);
        if (unlinkat (directory, name, 0) == 0)
            count_bytes (self, entry, bytes < entry->bytes ? bytes : entry->bytes, 0);
    }
}

/* Attempts that are kept: the newest, and those before it. */
static uint32_t oldest_kept (const entry_t *entry)
{
    return entry->newest >= SHELF_ATTEMPTS_MAX ? entry->newest - SHELF_ATTEMPTS_MAX + 1 : 1;
}

static void entry_remove (shelf_t *self, entry_t *entry)
{
    char name[BUCKET_NAME_SIZE];
    close_task (self, entry->number);
    int directory = open_bucket (self, entry->number, false);
    for (uint32_t i = 0; directory >= 0 && i < SHELF_ATTEMPTS_MAX && i < entry->newest; i++)
        remove_attempt (self, entry, directory, entry->newest - i);
    if (directory >= 0)
        close (directory);
    bucket_name (name, entry->number);
    unlinkat (self->directory, name, AT_REMOVEDIR); /* if it is empty now */
    entry_free (self, entry);
}

/* A file of the task is there. An attempt that is too old goes. */
static void entry_add (shelf_t *self, entry_t *entry, int directory, const char *name,
                       uint32_t attempt)
{
    uint32_t before = oldest_kept (entry);
    count_bytes (self, entry, 0, size_of (directory, name));
    if (attempt > entry->newest)
        entry->newest = attempt;
    for (uint32_t i = 0; i < SHELF_ATTEMPTS_MAX && before + i < oldest_kept (entry); i++)
        remove_attempt (self, entry, directory, before + i);
    if (attempt < oldest_kept (entry))
        remove_attempt (self, entry, directory, attempt);
}

/* What a former run has left of the task, before the look has come to it. */
static entry_t *entry_ask (shelf_t *self, int64_t number)
{
    char name[BUCKET_NAME_SIZE];
    entry_t *entry = entry_find (self, number);
    if (entry != NULL || self->buckets == NULL)
        return entry;
    bucket_name (name, number);
    DIR *list = list_directory (self->directory, name);
    for (struct dirent *item; list != NULL && (item = readdir (list)) != NULL;) {
        int64_t found;
        uint32_t attempt;
        tmq_log_stream_t stream;
        if (!log_file_parse (item->d_name, &found, &attempt, &stream) || found != number)
            continue;
        if (entry == NULL)
            entry = entry_new (self, number);
        entry_add (self, entry, dirfd (list), item->d_name, attempt);
    }
    if (list != NULL)
        closedir (list);
    return entry;
}

/* Room. */

static void make_room (shelf_t *self, const entry_t *for_whom)
{
    while (self->stats.tasks > self->limits.tasks || self->stats.bytes > self->limits.disk_bytes) {
        entry_t *oldest = LIST_ITEM (self->by_age.next, entry_t, by_age);
        if (oldest == for_whom)
            return;
        entry_remove (self, oldest);
        self->stats.evicted++;
    }
}

static bool has_space (shelf_t *self, size_t bytes, int64_t mono_ms)
{
    struct statvfs disk;
    self->space_bytes += bytes;
    if (mono_ms < self->space_at && self->space_bytes < SPACE_LOOK_BYTES)
        return !self->no_space;
    self->space_at = mono_ms + SPACE_LOOK_MS;
    self->space_bytes = 0;
    self->no_space = fstatvfs (self->directory, &disk) == 0 &&
                     (uint64_t) disk.f_bavail * disk.f_frsize < self->limits.free_bytes_min;
    return !self->no_space;
}

/* Writing and reading. */

static int append (shelf_t *self, entry_t *entry, const log_piece_t *piece)
{
    handle_t *handle;
    int error = handle_open (self, entry, &piece->key, &handle);
    if (error != 0)
        return error;
    uint64_t before = handle->file.size;
    error = log_file_append (&handle->file, handle->directory, &piece->key, piece->offset,
                             buf_bytes (piece->bytes), buf_length (piece->bytes),
                             self->limits.stream_bytes);
    count_bytes (self, entry, before, handle->file.size);
    if (error != 0)
        handle_close (self, handle); /* whatever is wrong, it is looked at again */
    return error;
}

static void begin_attempt (shelf_t *self, entry_t *entry, uint32_t attempt)
{
    uint32_t before = oldest_kept (entry);
    entry->newest = attempt;
    uint32_t after = oldest_kept (entry);
    if (before == after)
        return;
    close_task (self, entry->number);
    int directory = open_bucket (self, entry->number, false);
    for (uint32_t i = 0; directory >= 0 && i < SHELF_ATTEMPTS_MAX && before + i < after; i++)
        remove_attempt (self, entry, directory, before + i);
    if (directory >= 0)
        close (directory);
}

int shelf_write (shelf_t *self, const log_piece_t *piece, int64_t mono_ms)
{
    const log_key_t *key = &piece->key;
    size_t length = buf_length (piece->bytes);
    if (!has_space (self, length, mono_ms)) {
        self->stats.lost += length;
        return ENOSPC;
    }
    entry_t *entry = entry_ask (self, key->number);
    if (entry == NULL)
        entry = entry_new (self, key->number);
    if (key->attempt > entry->newest)
        begin_attempt (self, entry, key->attempt);
    else if (key->attempt < oldest_kept (entry))
        return 0; /* it would be removed at once */
    list_unlink (&entry->by_age);
    list_push_back (&self->by_age, &entry->by_age);
    int error = append (self, entry, piece);
    if (error != 0) {
        self->stats.errors++;
        self->stats.lost += length;
    }
    make_room (self, entry);
    return error;
}

int shelf_read (shelf_t *self, const log_key_t *key, uint64_t offset, uint8_t *bytes, size_t limit,
                shelf_page_t *out)
{
    log_file_t file;
    log_key_t asked = *key;
    const entry_t *entry = entry_ask (self, key->number);
    *out = (shelf_page_t){.offset = offset};
    if (entry == NULL)
        return 0;
    asked.attempt = key->attempt == 0 ? entry->newest : key->attempt;
    out->attempt = asked.attempt;
    int directory = open_bucket (self, key->number, false);
    if (directory < 0)
        return errno == ENOENT ? 0 : errno;
    int error = log_file_open (&file, directory, &asked, false);
    close (directory);
    if (error == 0) {
        out->end = file.end;
        error = log_file_read (&file, &out->offset, bytes, limit, &out->length);
        log_file_close (&file);
    }
    return error == ENOENT || error == EPERM ? 0 : error;
}

void shelf_forget (shelf_t *self, int64_t number)
{
    entry_t *entry = entry_ask (self, number);
    if (entry == NULL)
        return;
    entry_remove (self, entry);
    self->stats.removed++;
}

/* The look at the start. */

static bool next_bucket (shelf_t *self)
{
    for (struct dirent *item; (item = readdir (self->buckets)) != NULL;) {
        if (item->d_name[0] == '.')
            continue;
        self->files = list_directory (dirfd (self->buckets), item->d_name);
        if (self->files != NULL)
            return true;
    }
    closedir (self->buckets);
    self->buckets = NULL;
    return false;
}

static bool is_left_over (const char *name)
{
    size_t length = strlen (name);
    return length > 4 && strcmp (name + length - 4, ".new") == 0;
}

/* True: it is of a task that was not known. */
static bool take_file (shelf_t *self, const char *name, log_key_t *out)
{
    int64_t number;
    uint32_t attempt;
    tmq_log_stream_t stream;
    int directory = dirfd (self->files);
    if (is_left_over (name))
        unlinkat (directory, name, 0);
    if (!log_file_parse (name, &number, &attempt, &stream) || entry_find (self, number) != NULL)
        return false;
    if (log_file_head (directory, name, out) != 0 || out->number != number) {
        unlinkat (directory, name, 0);
        return false;
    }
    return entry_ask (self, number) != NULL;
}

bool shelf_look (shelf_t *self, log_key_t *out, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < LOOK_NAMES_MAX && *count < SHELF_SLICE_MAX; i++) {
        if (self->buckets == NULL || (self->files == NULL && !next_bucket (self)))
            return false;
        const struct dirent *item = readdir (self->files);
        if (item != NULL && item->d_name[0] != '.') {
            *count += take_file (self, item->d_name, &out[*count]);
        } else if (item == NULL) {
            closedir (self->files);
            self->files = NULL;
        }
    }
    return true;
}

shelf_stats_t shelf_stats (const shelf_t *self)
{
    return self->stats;
}

/* Life. */

shelf_t *shelf_new (const char *directory, const shelf_limits_t *limits, int *error)
{
    shelf_t *self = memory_zero (1, sizeof (*self));
    list_init (&self->by_age);
    self->limits = *limits;
    self->open = memory_zero (SHELF_OPEN_MAX, sizeof (*self->open));
    self->directory = -1;
    if (mkdir (directory, 0700) == 0 || errno == EEXIST)
        self->directory = open_directory (AT_FDCWD, directory);
    if (self->directory >= 0)
        self->buckets = list_directory (self->directory, ".");
    *error = errno;
    if (self->buckets == NULL)
        shelf_free (&self);
    return self;
}

void shelf_configure (shelf_t *self, const shelf_limits_t *limits)
{
    self->limits = *limits;
}

void shelf_free (shelf_t **self_p)
{
    shelf_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    while (self->open_count > 0)
        handle_close (self, &self->open[0]);
    node_t *by_age = &self->by_age;
    for (node_t *node = list_pop_front (by_age); node != NULL; node = list_pop_front (by_age))
        entry_free (self, LIST_ITEM (node, entry_t, by_age));
    map_free (&self->entries);
    if (self->files != NULL)
        closedir (self->files);
    if (self->buckets != NULL)
        closedir (self->buckets);
    if (self->directory >= 0)
        close (self->directory);
    free (self->open);
    free (self);
}
