/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* An index in memory (a task: 80 bytes) knows whose logs there are, how large they are, and which
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
    uint64_t lost[2]; /* of each stream of the newest attempt: where what found no place ends */
    uint32_t newest;  /* attempt */
} entry_t;

/* A file that is open, or was and is known. */
typedef struct handle {
    log_key_t key;
    int directory; /* -1: it is not open to be written */
    log_file_t file;
    uint64_t used; /* when, by count */
} handle_t;

struct shelf {
    int directory;
    shelf_limits_t limits;
    map_t entries; /* by number */
    node_t by_age;
    shelf_stats_t stats;
    handle_t *handles; /* SHELF_KNOWN_MAX */
    size_t handles_count;
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

static void handle_close (handle_t *handle)
{
    log_file_close (&handle->file);
    if (handle->directory >= 0)
        close (handle->directory);
    handle->directory = -1;
}

static void handle_forget (shelf_t *self, handle_t *handle)
{
    handle_close (handle);
    log_file_clear (&handle->file);
    *handle = self->handles[--self->handles_count];
}

static void forget_task (shelf_t *self, int64_t number)
{
    for (size_t i = self->handles_count; i > 0; i--)
        if (self->handles[i - 1].key.number == number)
            handle_forget (self, &self->handles[i - 1]);
}

/* The one that is known; else a new one, in the place of the one that was used longest ago. */
static handle_t *handle_take (shelf_t *self, const log_key_t *key)
{
    handle_t *oldest = &self->handles[0];
    for (size_t i = 0; i < self->handles_count; i++) {
        handle_t *handle = &self->handles[i];
        if (log_key_equals (&handle->key, key))
            return handle;
        if (handle->used < oldest->used)
            oldest = handle;
    }
    if (self->handles_count == SHELF_KNOWN_MAX)
        handle_forget (self, oldest);
    handle_t *made = &self->handles[self->handles_count++];
    *made = (handle_t){.key = *key, .directory = -1, .file = LOG_FILE_INIT};
    return made;
}

/* One more may be open then. */
static void make_open_room (shelf_t *self)
{
    size_t count = 0;
    handle_t *oldest = NULL;
    for (size_t i = 0; i < self->handles_count; i++) {
        handle_t *handle = &self->handles[i];
        if (handle->file.fd < 0)
            continue;
        count++;
        if (oldest == NULL || handle->used < oldest->used)
            oldest = handle;
    }
    if (count >= SHELF_OPEN_MAX)
        handle_close (oldest);
}

/* What is gone at the end is told, also when it was cut off. */
static void note_cut (shelf_t *self, entry_t *entry, handle_t *handle)
{
    if (handle->file.cut > 0) {
        self->stats.cut += handle->file.cut;
        self->stats.cut_files++;
        self->stats.cut_last = handle->key;
        handle->file.cut = 0;
    }
    uint64_t *end = &entry->lost[handle->key.stream - TMQ_LOG_OUT];
    if (handle->key.attempt == entry->newest && handle->file.lost > *end)
        *end = handle->file.lost;
}

/* What there is of the file counts, whatever became of the opening. */
static int open_counted (shelf_t *self, entry_t *entry, handle_t *handle, bool make)
{
    char name[LOG_FILE_NAME_SIZE];
    const log_key_t *key = &handle->key;
    int directory = open_bucket (self, key->number, make);
    if (directory < 0)
        return errno;
    log_file_name (name, key->number, key->attempt, key->stream);
    uint64_t before = size_of (directory, name);
    int error = log_file_open (&handle->file, directory, key, make);
    count_bytes (self, entry, before, size_of (directory, name));
    if (error == 0 && make)
        handle->directory = directory;
    else
        close (directory);
    return error;
}

/* Open, and of the file that has this name now. make: to be written. */
static int handle_open (shelf_t *self, entry_t *entry, const log_key_t *key, bool make,
                        handle_t **out)
{
    int error = 0;
    handle_t *handle = handle_take (self, key);
    handle->used = ++self->uses;
    bool writable = handle->directory >= 0;
    if (!writable && handle->file.fd >= 0 && (make || log_file_has_changed (&handle->file)))
        handle_close (handle);
    if (handle->file.fd < 0) {
        make_open_room (self);
        error = open_counted (self, entry, handle, make);
        if (error == 0)
            note_cut (self, entry, handle);
    }
    if (error != 0)
        handle_forget (self, handle);
    *out = handle;
    return error;
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
    forget_task (self, entry->number);
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
    struct stat info;
    int error = handle_open (self, entry, &piece->key, true, &handle);
    if (error != 0)
        return error;
    uint64_t before = handle->file.size;
    error = log_file_append (&handle->file, handle->directory, &piece->key, piece->offset,
                             buf_bytes (piece->bytes), buf_length (piece->bytes),
                             self->limits.stream_bytes);
    uint64_t after = handle->file.size;
    if (error != 0 && fstat (handle->file.fd, &info) == 0)
        after = (uint64_t) info.st_size; /* with what could not be taken back */
    count_bytes (self, entry, before, after);
    if (error != 0)
        handle_forget (self, handle); /* whatever is wrong, it is looked at again */
    return error;
}

static void begin_attempt (shelf_t *self, entry_t *entry, uint32_t attempt)
{
    uint32_t before = oldest_kept (entry);
    entry->newest = attempt;
    memset (entry->lost, 0, sizeof (entry->lost));
    uint32_t after = oldest_kept (entry);
    if (before == after)
        return;
    forget_task (self, entry->number);
    int directory = open_bucket (self, entry->number, false);
    for (uint32_t i = 0; directory >= 0 && i < SHELF_ATTEMPTS_MAX && before + i < after; i++)
        remove_attempt (self, entry, directory, before + i);
    if (directory >= 0)
        close (directory);
}

/* Whose piece it is; NULL: there is no place for one more task, or the attempt is too old, so that
 * it would be removed at once. */
static entry_t *entry_of (shelf_t *self, const log_key_t *key, bool may_evict)
{
    entry_t *entry = entry_ask (self, key->number);
    if (entry == NULL && !may_evict && self->stats.tasks >= self->limits.tasks)
        return NULL;
    if (entry == NULL)
        entry = entry_new (self, key->number);
    if (key->attempt > entry->newest)
        begin_attempt (self, entry, key->attempt);
    return key->attempt < oldest_kept (entry) ? NULL : entry;
}

/* A reader is told of it, also if nothing comes behind it. */
static void note_lost (shelf_t *self, entry_t *entry, const log_piece_t *piece)
{
    uint64_t length = buf_length (piece->bytes);
    self->stats.lost += length;
    if (entry == NULL || piece->key.attempt != entry->newest)
        return;
    uint64_t *end = &entry->lost[piece->key.stream - TMQ_LOG_OUT];
    if (piece->offset + length > *end)
        *end = piece->offset + length;
}

int shelf_write (shelf_t *self, const log_piece_t *piece, int64_t mono_ms)
{
    const log_key_t *key = &piece->key;
    bool space = has_space (self, buf_length (piece->bytes), mono_ms);
    entry_t *entry = entry_of (self, key, space);
    if (!space) {
        note_lost (self, entry, piece);
        return ENOSPC;
    }
    if (entry == NULL)
        return 0;
    list_unlink (&entry->by_age);
    list_push_back (&self->by_age, &entry->by_age);
    int error = append (self, entry, piece);
    if (error != 0) {
        self->stats.errors++;
        note_lost (self, entry, piece);
    }
    make_room (self, entry);
    return error;
}

/* 0: what stands there, which may be nothing. */
static int read_file (shelf_t *self, entry_t *entry, const log_key_t *key, uint8_t *bytes,
                      size_t limit, shelf_page_t *out)
{
    handle_t *handle;
    int error = handle_open (self, entry, key, false, &handle);
    if (error != 0)
        return error;
    error = log_file_read (&handle->file, &out->offset, bytes, limit, &out->length);
    out->end = handle->file.end;
    out->more =
        out->length > 0 && (out->offset + out->length < out->end || handle->file.error != 0);
    if (handle->file.lost > out->end)
        out->end = handle->file.lost;
    return error;
}

int shelf_read (shelf_t *self, const log_key_t *key, uint64_t offset, uint8_t *bytes, size_t limit,
                shelf_page_t *out)
{
    log_key_t asked = *key;
    entry_t *entry = entry_ask (self, key->number);
    *out = (shelf_page_t){.offset = offset};
    if (entry == NULL)
        return 0;
    asked.attempt = key->attempt == 0 ? entry->newest : key->attempt;
    out->attempt = asked.attempt;
    int error = read_file (self, entry, &asked, bytes, limit, out);
    uint64_t lost = entry->lost[key->stream - TMQ_LOG_OUT];
    if ((error == 0 || error == ENOENT) && asked.attempt == entry->newest && lost > out->end)
        out->end = lost;
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
    int error = log_file_head (directory, name, out);
    if (error == EPERM || (error == 0 && out->number != number)) {
        unlinkat (directory, name, 0);
        return false;
    }
    /* What cannot be read now counts, and goes with the others by its age. */
    return entry_ask (self, number) != NULL && error == 0;
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
    self->handles = memory_zero (SHELF_KNOWN_MAX, sizeof (*self->handles));
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
    while (self->handles_count > 0)
        handle_forget (self, &self->handles[self->handles_count - 1]);
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
    free (self->handles);
    free (self);
}
