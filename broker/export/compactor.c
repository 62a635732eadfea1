/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A line is over when another line of its task follows, or the task was removed. How many are is
 * known without a look at them: all that are more than there are tasks. */
#include "export/compactor.h"

#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "log/log.h"
#include "timestamp.h"

enum {
    LOOK_MS = 1000,                /* between two looks whether it is due */
    COUNT_BYTES = 4 * 1024 * 1024, /* of the file, in one step of counting its lines */
    PAGE_BYTES = 64 * 1024,
    BYTES_PER_MS = 1024, /* of the file: so rarely that it is less than this on average */
    RETRY_MS = 60000     /* after one that failed */
};

void compactor_init (compactor_t *self, const compactor_options_t *options, store_t *store,
                     tasks_file_t *file)
{
    *self = (compactor_t){.options = options, .store = store, .file = file};
    self->counted_upto = tasks_file_lines (file)->length;
    self->last_ms = clock_ms (CLOCK_MONOTONIC);
}

void compactor_stop (compactor_t *self)
{
    compaction_free (&self->compaction);
}

void compactor_wrote (compactor_t *self, uint64_t lines)
{
    self->lines += lines;
}

void compactor_begin_anew (compactor_t *self)
{
    compactor_stop (self);
    self->counted = self->counted_upto = 0;
    self->lines = 0;
    self->last_pos = 0;
}

/* A part of the lines that the file had at the start. False: all are counted. */
static bool count_some (compactor_t *self)
{
    char page[PAGE_BYTES];
    char error[TASKS_FILE_ERROR_SIZE];
    for (int pages = COUNT_BYTES / PAGE_BYTES; pages > 0 && self->counted < self->counted_upto;
         pages--) {
        off_t left = self->counted_upto - self->counted;
        size_t length = left < PAGE_BYTES ? (size_t) left : PAGE_BYTES;
        if (!line_file_read (tasks_file_lines (self->file), self->counted, page, length, error)) {
            self->counted = self->counted_upto; /* cut by hand: the exporter will see it */
            return false;
        }
        for (size_t i = 0; i < length; i++)
            self->lines += page[i] == '\n';
        self->counted += (off_t) length;
    }
    return self->counted < self->counted_upto;
}

bool compactor_is_due (compactor_t *self, uint64_t pos)
{
    store_stats_t stats;
    int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    uint64_t bytes = (uint64_t) tasks_file_lines (self->file)->length;
    if (now_ms < self->not_before_ms || bytes == 0 || pos == self->last_pos)
        return false;
    uint64_t rested_ms = (uint64_t) (now_ms - self->last_ms);
    if (rested_ms >= self->options->forget_ms && rested_ms >= bytes / BYTES_PER_MS)
        return true;
    if (bytes <= self->options->bytes)
        return false;
    store_stats (self->store, &stats);
    return self->lines > 2 * stats.tasks;
}

static void failed (compactor_t *self, const char *error)
{
    compactor_stop (self);
    self->not_before_ms = clock_ms (CLOCK_MONOTONIC) + RETRY_MS;
    log_write (LOG_LEVEL_WARNING, "EXPORT-NOT-COMPACTED",
               "tasks.jsonl stays as large as it is for now",
               LOG_FIELDS (LOG_TEXT ("error", error)));
}

static bool has_room (const compactor_t *self)
{
    struct statvfs info;
    const line_file_t *file = tasks_file_lines (self->file);
    return statvfs (file->path, &info) != 0 ||
           (uint64_t) info.f_bavail * info.f_frsize >=
               (uint64_t) file->length + shared_limit (self->options->free_bytes_min);
}

static void begin (compactor_t *self)
{
    char error[TASKS_FILE_ERROR_SIZE] = "the disk has no room for a copy";
    self->bytes_before = tasks_file_lines (self->file)->length;
    if (has_room (self))
        self->compaction = compaction_new (self->file, error);
    if (self->compaction == NULL)
        failed (self, error);
}

static void end (compactor_t *self, uint64_t pos)
{
    self->lines = compaction_lines (self->compaction);
    self->last_pos = pos;
    self->last_ms = clock_ms (CLOCK_MONOTONIC);
    compactor_stop (self);
    atomic_fetch_add (&self->done, 1);
    log_write (LOG_LEVEL_INFO, "EXPORT-COMPACTED", "tasks.jsonl has a line for each task again",
               LOG_FIELDS (LOG_NUMBER ("lines", self->lines),
                           LOG_NUMBER ("bytes", tasks_file_lines (self->file)->length),
                           LOG_NUMBER ("bytes_before", self->bytes_before)));
}

bool compactor_step (compactor_t *self, store_reader_t *reader, uint64_t pos)
{
    char error[TASKS_FILE_ERROR_SIZE];
    if (count_some (self))
        return true;
    if (self->compaction == NULL && clock_ms (CLOCK_MONOTONIC) >= self->look_ms) {
        self->look_ms = clock_ms (CLOCK_MONOTONIC) + LOOK_MS;
        if (compactor_is_due (self, pos))
            begin (self);
    }
    if (self->compaction == NULL)
        return false;
    switch (compaction_step (self->compaction, reader, error)) {
    case COMPACTION_GOES_ON: return true;
    case COMPACTION_DONE: end (self, pos); return false;
    case COMPACTION_FAILED: failed (self, error); return false;
    }
    return false;
}
