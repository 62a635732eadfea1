/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* Failure: a write that fails is repeated once a second from what is written, so the chain goes on
 * as soon as it can. Events in a damaged page of the database are a gap of the chain; any other
 * read that fails is final. */
#include "export/event_log.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "codec.h"
#include "core/base/memory.h"
#include "event_view.h"
#include "export/event_page.h"
#include "json.h"
#include "log/log.h"
#include "store/events.h"
#include "store/pace.h"
#include "store/wakeup.h"
#include "timestamp.h"
#include "wire.h"

enum {
    PAGE_BYTES = 128 * 1024,   /* of blocks, read at once */
    WRITE_BYTES = 256 * 1024,  /* lines are written when they are so many bytes together */
    ARENA_BYTES = 1024 * 1024, /* for one event */
    EVENT_LIST_EVENTS = 1,     /* field of taskmq.EventList */
    RETRY_MS = 1000,           /* after a write that failed */
    LOOK_MS = 1000,            /* between two looks at the file while nothing happens */
    AGE_MS = 10 * 60 * 1000,   /* between two looks for old files: the clock may leap for a while */
    SYNC_MS = 5000,            /* between two syncs: no promise rests on them */
    PACK_MS = 3600 * 1000,     /* after a file that could not be packed */
    HEAD_MS = 3600 * 1000      /* between two lines in the log that tell the head */
};

/* When it has lagged for a minute, events pile up. */
static const pace_t PACE = {
    .share = 100, .share_late = 4, .late_ms = 60 * 1000, .rest_ms_max = 1000};

struct event_log {
    event_log_options_t options;
    event_files_t *files;
    store_reader_t *reader;
    event_view_room_t room;
    arena_t *arena; /* of an event that is no common one */
    pthread_t thread;
    uint64_t after_pos; /* up to here everything is written */
    uint64_t seen_pos;  /* … or waits to be */
    uint64_t lines;     /* that wait */
    uint64_t gaps;
    bool begin;             /* another history goes on: first a new file */
    event_anchor_why_t why; /* the next file begins */
    bool failing;           /* said once */
    bool passed;            /* the page at hand stands behind events that cannot be read */
    int64_t sync_at;        /* monotonic; 0: everything is synced */
    int64_t head_at;
    uint64_t head_told;
    int64_t look_at;
    int64_t age_at;
    pace_t pace;
    int64_t pack_at; /* INT64_MAX: never */
    atomic_bool stop;
    _Atomic int64_t stop_at; /* monotonic; once stop is set */
    pthread_mutex_t lock;    /* guards what follows */
    event_log_stats_t stats;
};

static int64_t mono_ms (void)
{
    return clock_ms (CLOCK_MONOTONIC);
}

static int64_t worked_us (void)
{
    return clock_us (CLOCK_THREAD_CPUTIME_ID);
}

/* Telling. */

static void publish (event_log_t *self)
{
    event_files_stats_t files;
    event_files_stats (self->files, &files);
    pthread_mutex_lock (&self->lock);
    self->stats.pos = self->after_pos;
    self->stats.lines += self->lines;
    self->stats.gaps += self->gaps;
    self->stats.files = files.files;
    self->stats.bytes = files.bytes;
    self->stats.stalled = self->failing;
    pthread_mutex_unlock (&self->lock);
    self->lines = self->gaps = 0;
}

static void tell_head (event_log_t *self)
{
    char hash[CHAIN_HASH_TEXT_SIZE];
    event_files_stats_t files;
    event_files_stats (self->files, &files);
    self->head_at = mono_ms () + HEAD_MS;
    if (files.head.n == self->head_told)
        return;
    self->head_told = files.head.n;
    chain_hash_format (hash, files.head.hash);
    log_write (LOG_LEVEL_INFO, "EVENTS-HEAD",
               "events.jsonl stands here: taskctl audit verify --head proves it later",
               LOG_FIELDS (LOG_NUMBER ("n", files.head.n), LOG_NUMBER ("pos", self->after_pos),
                           LOG_TEXT ("hash", hash)));
}

/* Writing. */

static bool write_failed (event_log_t *self, const char *error)
{
    if (!self->failing)
        log_write (LOG_LEVEL_WARNING, "EVENTS-STALLED",
                   "events.jsonl lags until it can be written; the broker goes on",
                   LOG_FIELDS (LOG_TEXT ("error", error)));
    self->failing = true;
    self->seen_pos = self->after_pos;
    self->lines = self->gaps = 0;
    pthread_mutex_lock (&self->lock);
    self->stats.errors++;
    self->stats.stalled = true;
    pthread_mutex_unlock (&self->lock);
    return false;
}

static bool has_room (const event_log_t *self)
{
    struct statvfs info;
    return statvfs (event_files_directory (self->files), &info) != 0 ||
           (uint64_t) info.f_bavail * info.f_frsize >=
               shared_limit (self->options.free_bytes_min) + event_files_waiting (self->files);
}

/* What waits. On failure it is forgotten, to be made again from what is written. */
static bool write_lines (event_log_t *self)
{
    char error[LINE_FILE_ERROR_SIZE] = "the disk has less than limits/free_space_min";
    if (event_files_waiting (self->files) > 0) {
        bool room = has_room (self);
        if (!room)
            event_files_forget (self->files);
        if (!room || !event_files_write (self->files, error))
            return write_failed (self, error);
        if (self->failing)
            log_write (LOG_LEVEL_INFO, "EVENTS-GO-ON", "events.jsonl can be written again", NULL);
        self->failing = false;
        self->why = EVENT_ANCHOR_TURNED;
        self->begin = false;
        if (self->sync_at == 0)
            self->sync_at = mono_ms () + SYNC_MS;
    }
    self->after_pos = self->seen_pos;
    watermark_move (self->options.watermark, WATERMARK_EVENTS, self->after_pos);
    publish (self);
    return true;
}

/* No promise rests on it: a failure is counted, and it is tried again. */
static void sync_files (event_log_t *self)
{
    char error[LINE_FILE_ERROR_SIZE];
    bool good = event_files_sync (self->files, error);
    self->sync_at = good ? 0 : mono_ms () + SYNC_MS;
    if (good)
        return;
    pthread_mutex_lock (&self->lock);
    self->stats.errors++;
    pthread_mutex_unlock (&self->lock);
}

/* The file that the next lines go to, if there are any. Nothing waits. */
static bool prepare_file (event_log_t *self, bool any)
{
    char error[LINE_FILE_ERROR_SIZE];
    bool changed;
    bool good = event_files_look_after (self->files, &changed, error);
    /* Also when there is no other file yet: the next one says why it begins. */
    if (changed && self->why != EVENT_ANCHOR_CHANGED) {
        log_write (LOG_LEVEL_ERROR, "EVENTS-CHANGED",
                   "events.jsonl was taken away or changed by hand: it goes on in a new file",
                   NULL);
        self->why = EVENT_ANCHOR_CHANGED;
    }
    if (!good)
        return write_failed (self, error);
    bool turns = self->begin || (any && event_files_is_due (self->files));
    if (turns && !event_files_turn (self->files, error))
        return write_failed (self, error);
    if (event_files_is_empty (self->files)) {
        event_files_begin (self->files, self->options.generation, self->after_pos, self->why);
        self->lines++;
    }
    if (turns)
        tell_head (self);
    return true;
}

static void remove_old (event_log_t *self)
{
    size_t early;
    bool by_age = mono_ms () >= self->age_at;
    size_t removed = event_files_remove (self->files, by_age, &early);
    self->look_at = mono_ms () + LOOK_MS;
    if (by_age)
        self->age_at = mono_ms () + AGE_MS;
    if (removed == 0)
        return;
    log_write (early > 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "EVENTS-REMOVED",
               early > 0 ? "files of events were removed before events/days: all together had more "
                           "than events/disk"
                         : "old files of events were removed",
               LOG_FIELDS (LOG_NUMBER ("files", removed)));
    pthread_mutex_lock (&self->lock);
    self->stats.early += early;
    pthread_mutex_unlock (&self->lock);
    publish (self);
}

/* Following. */

/* Of events that are not in the tables, up to this one. */
static void add_gap (event_log_t *self, uint64_t to)
{
    uint64_t from = self->seen_pos + 1;
    event_files_gap (self->files, from, to);
    if (self->passed)
        log_write (
            LOG_LEVEL_ERROR, "EVENTS-UNREADABLE",
            "events cannot be read from the database: events.jsonl has a gap in their place; "
            "taskmqd --check names what is damaged",
            LOG_FIELDS (LOG_NUMBER ("from", from), LOG_NUMBER ("to", to)));
    else
        log_write (LOG_LEVEL_WARNING, "EVENTS-GAP",
                   "events were forgotten before they were written to events.jsonl",
                   LOG_FIELDS (LOG_NUMBER ("from", from), LOG_NUMBER ("to", to)));
    self->passed = false;
    self->lines++;
    self->gaps++;
}

static void add_event (event_log_t *self, const event_block_t *block, event_view_t *event)
{
    uint64_t pos = block->first_pos + (event->seq - block->first_seq);
    if (pos <= self->seen_pos)
        return;
    if (pos > self->seen_pos + 1)
        add_gap (self, pos - 1);
    event_files_event (self->files, event, pos);
    self->seen_pos = pos;
    self->lines++;
}

/* What has not the common form. */
static void add_other (event_log_t *self, const event_block_t *block, const packed_event_t *packed)
{
    codec_report_t report;
    event_view_t event;
    arena_reset (self->arena);
    /* A list of one event is what stands in the list for it. */
    const Taskmq__EventList *list =
        codec_event_list (&report, self->arena, packed->packed, packed->packed_bytes);
    if (list != NULL && list->n_events == 1 &&
        event_view_from_wire (&event, list->events[0], block->ns, self->arena))
        add_event (self, block, &event);
    /* Else it is a gap, as if it were not there. */
}

/* The next event of the block; false: there is none, or none that can be read. */
static bool next_event (event_log_t *self, const event_block_t *block, event_walk_t *walk)
{
    event_view_t event;
    wire_field_t field;
    const uint8_t *next = walk->next;
    if (next < walk->end && wire_read_field (&field, &next, walk->end) && field.bytes != NULL &&
        field.number == EVENT_LIST_EVENTS &&
        event_view_read (&event, &self->room, field.bytes, field.length, block->ns)) {
        walk->next = next;
        add_event (self, block, &event);
        return true;
    }
    packed_event_t packed;
    if (!event_walk_next (walk, &packed))
        return false;
    add_other (self, block, &packed);
    return true;
}

static bool add_block (event_log_t *self, const event_block_t *block)
{
    event_walk_t walk = event_walk (buf_bytes (block->list), buf_length (block->list));
    while (next_event (self, block, &walk))
        if (event_files_waiting (self->files) >= WRITE_BYTES &&
            (!write_lines (self) || !prepare_file (self, true)))
            return false;
    return true;
}

/* A page of blocks. False: there is none, which was told. */
static bool read_page (event_log_t *self, read_t *read)
{
    store_code_t code =
        event_page_read (read, self->reader, self->after_pos, PAGE_BYTES, &self->passed);
    store_error_t error = {code, ""};
    snprintf (error.text, sizeof (error.text), "%s", read->error_text);
    if (code == STORE_ERROR_DAMAGED)
        write_failed (self, error.text);
    else if (code == STORE_ERROR_AWAY)
        return false; /* at the stop alone: the next start completes the file */
    else if (code != STORE_OK)
        self->options.failed (&error);
    else if (self->passed && read->blocks_count == 0)
        write_failed (self, "the newest events cannot be read from the database");
    else
        return true;
    return false;
}

/* One page of blocks into lines. *more: another page follows. */
static bool follow_page (event_log_t *self, bool *more)
{
    read_t read;
    *more = false;
    self->seen_pos = self->after_pos;
    bool good = read_page (self, &read) && prepare_file (self, read.blocks_count > 0);
    for (size_t i = 0; good && i < read.blocks_count; i++)
        good = add_block (self, &read.blocks[i]);
    good = good && write_lines (self);
    *more = good && read.more;
    read_clear (&read);
    return good;
}

static void look_after (event_log_t *self)
{
    if (self->sync_at != 0 && mono_ms () >= self->sync_at)
        sync_files (self);
    if (mono_ms () >= self->head_at)
        tell_head (self);
    if (mono_ms () >= self->look_at)
        remove_old (self);
}

/* The time of the stop is over. */
static bool is_late (event_log_t *self)
{
    return atomic_load (&self->stop) && mono_ms () >= atomic_load (&self->stop_at);
}

/* Lets others have the processor, however much there is to write. */
static void rest (event_log_t *self, int64_t us)
{
    int64_t now = mono_ms ();
    int64_t until = now + pace_rest_ms (&self->pace, us, now);
    for (; !atomic_load (&self->stop) && now < until; now = mono_ms ()) {
        struct pollfd wake = {self->options.wake_fd, POLLIN, 0};
        poll (&wake, 1, (int) (until - now));
        wakeup_lower (self->options.wake_fd);
    }
}

/* Everything that is in the tables. False: repeat after a while. */
static bool follow (event_log_t *self)
{
    bool more = true;
    while (more) {
        int64_t began = worked_us ();
        if (!follow_page (self, &more))
            return false;
        pace_lags (&self->pace, more, mono_ms ());
        if (more)
            look_after (self); /* there may be much to write */
        if (more && is_late (self)) {
            log_write (LOG_LEVEL_INFO, "EVENTS-LATER",
                       "events.jsonl lags at the stop: the next start completes it",
                       LOG_FIELDS (LOG_NUMBER ("pos", self->after_pos)));
            return true;
        }
        uint64_t written = store_written (self->options.store);
        if (more && pace_others_work (&self->pace, written, mono_ms ()))
            rest (self, worked_us () - began);
    }
    return true;
}

/* A step of packing, while there is nothing to write. True: another one follows. */
static bool pack (event_log_t *self)
{
    char error[LINE_FILE_ERROR_SIZE];
    if (mono_ms () < self->pack_at)
        return false;
    if (event_files_pack (self->files, error))
        return true;
    if (error[0] == '\0')
        return false;
    self->pack_at = mono_ms () + PACK_MS;
    log_write (LOG_LEVEL_WARNING, "EVENTS-PLAIN",
               "a turned file of events could not be packed: it stays as it is for now",
               LOG_FIELDS (LOG_TEXT ("error", error)));
    return false;
}

static void *event_log_run (void *context)
{
    event_log_t *self = context;
    pthread_setname_np (pthread_self (), "events");
    bar_wait (self->options.bar);
    while (!atomic_load (&self->stop)) {
        wakeup_lower (self->options.wake_fd);
        int64_t began = worked_us ();
        uint64_t written = store_written (self->options.store);
        bool good = follow (self);
        look_after (self);
        bool packs = good && pack (self);
        if (good)
            rest (self, worked_us () - began);
        if (packs || (good && store_written (self->options.store) != written))
            continue; /* the rest has taken the news */
        struct pollfd wake = {self->options.wake_fd, POLLIN, 0};
        /* A stop that came since the last look has raised the wakeup after it was lowered. */
        if (!atomic_load (&self->stop))
            poll (&wake, good ? 1 : 0, good ? LOOK_MS : RETRY_MS);
    }
    if (follow (self))
        sync_files (self);
    tell_head (self);
    return NULL;
}

/* Life. */

static void release (event_log_t *self)
{
    event_files_close (&self->files);
    if (self->reader != NULL)
        store_reader_close (&self->reader);
    arena_free (self->arena);
    event_view_room_free (&self->room);
    pthread_mutex_destroy (&self->lock);
    free (self);
}

event_log_t *event_log_new (const event_log_options_t *options, event_files_t **files,
                            char error[LINE_FILE_ERROR_SIZE])
{
    event_log_t *self = memory_zero (1, sizeof (*self));
    store_error_t store_error = {STORE_OK, ""};
    self->options = *options;
    self->files = *files;
    *files = NULL;
    self->arena = arena_new (ARENA_BYTES);
    self->after_pos = options->pos;
    self->begin = options->begin;
    self->pace = PACE;
    self->pace.written = store_written (options->store);
    self->why = options->why;
    self->head_at = mono_ms () + HEAD_MS;
    self->pack_at = options->pack ? 0 : INT64_MAX;
    pthread_mutex_init (&self->lock, NULL);
    publish (self);
    bool good = store_reader_open (&self->reader, options->store, &store_error) == STORE_OK;
    snprintf (error, LINE_FILE_ERROR_SIZE, "%s", good ? "cannot start a thread" : store_error.text);
    if (good)
        store_reader_be_patient (self->reader);
    good = good && self->arena != NULL &&
           pthread_create (&self->thread, NULL, event_log_run, self) == 0;
    if (good)
        return self;
    release (self);
    return NULL;
}

void event_log_stop (event_log_t *self)
{
    if (self == NULL)
        return;
    if (!atomic_load (&self->stop))
        atomic_store (&self->stop_at, mono_ms () + self->options.stop_ms);
    atomic_store (&self->stop, true);
    wakeup_raise (self->options.wake_fd);
}

void event_log_free (event_log_t **self_p)
{
    event_log_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    event_log_stop (self);
    pthread_join (self->thread, NULL);
    release (self);
}

void event_log_stats (event_log_t *self, event_log_stats_t *out)
{
    *out = (event_log_stats_t){0};
    if (self == NULL)
        return;
    pthread_mutex_lock (&self->lock);
    *out = self->stats;
    pthread_mutex_unlock (&self->lock);
}
