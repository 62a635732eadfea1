/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The file is made smaller in steps (compaction.h), each after a look at the events, so it lags by
 * one step at most.
 *
 * Failure: a write that fails is repeated once a second from the same position, so the file is
 * complete as soon as it can be written again; a read of the database that fails is final. */
#include "export/exporter.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "export/compactor.h"
#include "export/open_questions.h"
#include "export/record_view.h"
#include "export/redaction.h"
#include "log/log.h"
#include "store/wakeup.h"
#include "timestamp.h"

enum {
    PAGE_ITEMS = 500,
    PAGE_BYTES = 4 * 1024 * 1024, /* a page ends when its tasks have so many bytes */
    WRITE_BYTES = 256 * 1024,     /* lines are written when they are so many bytes together */
    RETRY_MS = 1000,              /* after a write that failed */
    LOOK_MS = 1000,               /* between two looks at the file while nothing happens */
    STEP_MS = 20,                 /* between two steps of making the file smaller */
    FETCH_RECORD = 6,             /* so many items ahead */
    FETCH_BODIES = 3,
    FETCH_BYTES = 512,
    FETCH_LINE = 64 /* of a cache */
};

struct exporter {
    exporter_options_t options;
    tasks_file_t *file;
    store_reader_t *reader;
    pthread_t thread;
    bytes_t plain; /* a line before it is redacted */
    bytes_t lines; /* rendered, not yet written */
    uint64_t lines_count;
    uint64_t after_pos;     /* up to here everything is written */
    tasks_file_end_t check; /* the last line found at start, to be compared with the database */
    bool failing;           /* the last write failed; said once */
    compactor_t compactor;
    atomic_bool stop;
    _Atomic int64_t stop_at; /* monotonic; once stop is set */
    _Atomic uint64_t stat_pos;
    _Atomic uint64_t stat_lines;
    _Atomic uint64_t stat_errors;
};

/* Writing. */

static void write_failed (exporter_t *self, const char *error)
{
    atomic_fetch_add (&self->stat_errors, 1);
    if (!self->failing)
        log_write (LOG_LEVEL_WARNING, "EXPORT-STALLED", "tasks.jsonl lags until it can be written",
                   LOG_FIELDS (LOG_TEXT ("error", error)));
    self->failing = true;
}

/* Writes the rendered lines; on failure they are forgotten, to be rendered again from after_pos. */
static bool write_lines (exporter_t *self, uint64_t upto_pos)
{
    char error[TASKS_FILE_ERROR_SIZE];
    bool written = self->lines.length == 0 ||
                   tasks_file_append (self->file, self->lines.data, self->lines.length, error);
    if (written) {
        self->after_pos = upto_pos;
        atomic_store (&self->stat_pos, upto_pos);
        if (self->options.watermark != NULL)
            watermark_move (self->options.watermark, WATERMARK_TASKS, upto_pos);
        else
            store_exported (self->options.store, upto_pos);
        atomic_fetch_add (&self->stat_lines, self->lines_count);
        compactor_wrote (&self->compactor, self->lines_count);
        if (self->failing)
            log_write (LOG_LEVEL_INFO, "EXPORT-GOES-ON", "tasks.jsonl can be written again", NULL);
        self->failing = false;
    } else {
        write_failed (self, error);
    }
    bytes_clear (&self->lines);
    self->lines_count = 0;
    return written;
}

static void read_failed (exporter_t *self, const read_t *read)
{
    store_error_t error;
    if (read->away)
        return; /* at the stop alone: the next start completes the file */
    error.code = (store_code_t) read->error;
    snprintf (error.text, sizeof (error.text), "%s", read->error_text);
    self->options.failed (&error);
}

/* False: its questions could not be read. */
static bool render (exporter_t *self, const export_item_t *item, int64_t wall_ms)
{
    open_questions_t questions;
    if (!open_questions_read (&questions, self->reader, item->record)) {
        read_failed (self, &questions.read);
        open_questions_clear (&questions);
        return false;
    }
    task_view_t view;
    record_view_room_t room MEMORY_FILLED_BEFORE_READ;
    record_view (&view, &room, item->record, wall_ms);
    task_extras_t extras = {.exported = true,
                            .payload = true,
                            .pos = item->pos,
                            .body_bytes_max = JSON_EXPORT_BODY_BYTES_MAX,
                            .questions = questions.views,
                            .questions_count = questions.count};
    redactor_t *redactor = self->options.redactor;
    json_writer_t writer = {redactor != NULL ? &self->plain : &self->lines, false};
    bytes_clear (&self->plain);
    json_write_task (&writer, &view, &extras);
    if (redactor != NULL)
        redaction_line (redactor, &self->lines, &self->plain, "tasks.jsonl");
    record_view_clear (&room);
    open_questions_clear (&questions);
    bytes_append_byte (&self->lines, '\n');
    if (self->lines.failed || self->plain.failed)
        abort (); /* out of memory, as everywhere in the broker */
    self->lines_count++;
    return true;
}

/* Following the events. */

static inline void fetch (const uint8_t *bytes, size_t length)
{
    for (size_t at = 0; at < length && at < FETCH_BYTES; at += FETCH_LINE)
        __builtin_prefetch (bytes + at);
}

/* What was written back some time ago is in no cache: it is fetched while the lines before it are
 * rendered, first the record, then what it points to. */
static void fetch_ahead (const read_t *read, size_t i)
{
    if (i + FETCH_RECORD < read->items_count)
        fetch ((const uint8_t *) read->items[i + FETCH_RECORD].record, sizeof (record_t));
    if (i + FETCH_BODIES < read->items_count) {
        const record_t *record = read->items[i + FETCH_BODIES].record;
        fetch (buf_bytes (record->payload), record->payload == NULL ? 0 : record->payload_bytes);
        fetch (buf_bytes (record->result), record->result == NULL ? 0 : record->result_bytes);
    }
}

static bool read_page (exporter_t *self, read_t *read)
{
    read->kind = READ_EXPORT;
    read->limit = PAGE_ITEMS;
    read->bytes_max = PAGE_BYTES;
    read->after_pos = self->after_pos;
    if (store_reader_run (self->reader, read) == STORE_OK)
        return true;
    read_failed (self, read);
    read_clear (read);
    return false;
}

/* The file's last line must stand for the event that the database has at its position. */
static bool is_foreign (exporter_t *self, const read_t *read)
{
    uint64_t pos = self->check.pos;
    self->check.pos = 0;
    return pos != 0 && read->items_count > 0 && read->items[0].pos == pos &&
           memcmp (&read->items[0].record->id, &self->check.id, sizeof (tmq_id_t)) != 0;
}

static bool begin_anew (exporter_t *self, const char *why)
{
    char error[TASKS_FILE_ERROR_SIZE];
    if (!tasks_file_set_aside (self->file, error)) {
        write_failed (self, error);
        return false;
    }
    log_write (LOG_LEVEL_WARNING, "EXPORT-ANEW", why, NULL);
    compactor_begin_anew (&self->compactor);
    self->after_pos = 0;
    self->check.pos = 0;
    return true;
}

/* One page of events into lines. *more: another page follows. */
static bool follow_page (exporter_t *self, bool *more)
{
    read_t read = {0};
    /* One event before the first new one: the last line's own. */
    uint64_t written = self->after_pos;
    if (self->check.pos != 0)
        self->after_pos = self->check.pos - 1;
    bool good = read_page (self, &read);
    self->after_pos = written;
    if (!good)
        return false;
    if (is_foreign (self, &read)) {
        read_clear (&read);
        *more = true;
        return begin_anew (self, "tasks.jsonl belongs to another database: set aside, begun anew");
    }
    int64_t wall_ms = clock_ms (CLOCK_REALTIME);
    for (size_t i = 0; good && i < read.items_count; i++) {
        const export_item_t *item = &read.items[i];
        if (item->pos <= self->after_pos)
            continue;
        fetch_ahead (&read, i);
        good = render (self, item, wall_ms);
        if (good && self->lines.length >= WRITE_BYTES)
            good = write_lines (self, item->pos);
    }
    if (good)
        good = write_lines (self, read.upto_pos > written ? read.upto_pos : written);
    *more = read.more;
    read_clear (&read);
    return good;
}

/* The time of the stop is over. */
static bool is_late (exporter_t *self)
{
    return atomic_load (&self->stop) && clock_ms (CLOCK_MONOTONIC) >= atomic_load (&self->stop_at);
}

/* Everything that is in the tables. False: repeat after a while. */
static bool follow (exporter_t *self)
{
    bool more = true;
    while (more) {
        if (tasks_file_is_changed (self->file) &&
            !begin_anew (self, "tasks.jsonl was taken away or changed by hand: begun anew"))
            return false;
        if (!follow_page (self, &more))
            return false;
        if (more && is_late (self)) {
            log_write (LOG_LEVEL_INFO, "EXPORT-LATER",
                       "tasks.jsonl lags at the stop: the next start completes it",
                       LOG_FIELDS (LOG_NUMBER ("pos", self->after_pos)));
            return true;
        }
        /* Taken away while it was written: what was appended then nobody sees. */
        more = more || tasks_file_is_changed (self->file);
    }
    return true;
}

/* Waits for news, and looks after the file meanwhile. A failed try is repeated. */
static void wait_news (exporter_t *self, bool good, bool busy)
{
    struct pollfd wake = {self->options.wake_fd, POLLIN, 0};
    int look_ms = busy ? STEP_MS : LOOK_MS;
    /* A stop that came since the last look has raised the wakeup after it was lowered. */
    while (poll (&wake, 1, good ? look_ms : RETRY_MS) == 0) {
        if (!good || busy || tasks_file_is_changed (self->file) ||
            compactor_is_due (&self->compactor, self->after_pos))
            break;
    }
}

static void *exporter_run (void *context)
{
    exporter_t *self = context;
    pthread_setname_np (pthread_self (), "exporter");
    bar_wait (self->options.bar);
    while (!atomic_load (&self->stop)) {
        wakeup_lower (self->options.wake_fd);
        bool good = follow (self);
        bool busy = good && compactor_step (&self->compactor, self->reader, self->after_pos);
        wait_news (self, good, busy);
    }
    compactor_stop (&self->compactor);
    follow (self);
    return NULL;
}

/* Life. */

static void release (exporter_t *self)
{
    compactor_stop (&self->compactor);
    tasks_file_close (&self->file);
    if (self->reader != NULL)
        store_reader_close (&self->reader);
    bytes_free (&self->lines);
    bytes_free (&self->plain);
    redactor_free (&self->options.redactor);
    free (self);
}

exporter_t *exporter_new (const exporter_options_t *options, char error[TASKS_FILE_ERROR_SIZE])
{
    exporter_t *self = memory_zero (1, sizeof (*self));
    store_error_t store_error = {STORE_OK, ""};
    bool set_aside = false;
    self->options = *options;
    self->file =
        tasks_file_open (options->path, options->last_pos, &self->check, &set_aside, error);
    if (self->file == NULL) {
        release (self);
        return NULL;
    }
    if (set_aside)
        log_write (LOG_LEVEL_WARNING, "EXPORT-ANEW",
                   "tasks.jsonl belongs to another database: set aside, begun anew", NULL);
    if (self->check.hole_bytes > 0)
        log_write (LOG_LEVEL_WARNING, "EXPORT-HOLE",
                   "a loss of power left a hole in tasks.jsonl: it is written again from there",
                   LOG_FIELDS (LOG_NUMBER ("bytes", self->check.hole_bytes)));
    self->after_pos = self->check.pos;
    compactor_init (&self->compactor, &self->options.compact, options->store, self->file);
    atomic_store (&self->stat_pos, self->after_pos);
    if (store_reader_open (&self->reader, options->store, &store_error) != STORE_OK) {
        snprintf (error, TASKS_FILE_ERROR_SIZE, "%s", store_error.text);
        release (self);
        return NULL;
    }
    store_reader_be_patient (self->reader);
    if (pthread_create (&self->thread, NULL, exporter_run, self) != 0) {
        snprintf (error, TASKS_FILE_ERROR_SIZE, "cannot start a thread");
        release (self);
        return NULL;
    }
    return self;
}

void exporter_stop (exporter_t *self)
{
    if (!atomic_load (&self->stop))
        atomic_store (&self->stop_at, clock_ms (CLOCK_MONOTONIC) + self->options.stop_ms);
    atomic_store (&self->stop, true);
    wakeup_raise (self->options.wake_fd);
}

void exporter_free (exporter_t **self_p)
{
    exporter_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    exporter_stop (self);
    pthread_join (self->thread, NULL);
    release (self);
}

void exporter_stats (const exporter_t *self, exporter_stats_t *out)
{
    out->pos = atomic_load (&self->stat_pos);
    out->lines = atomic_load (&self->stat_lines);
    out->errors = atomic_load (&self->stat_errors);
    out->compactions = atomic_load (&self->compactor.done);
}
