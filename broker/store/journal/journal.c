/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The journal. After a failure that is not for lack of space the file is never written again: a
 * sync that follows a failed one may report success for bytes that are lost. */
#include "store/journal/journal.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "core/base/planted.h"
#include "store/archive/archive.h"
#include "store/journal/journal_codec.h"
#include "store/journal/scan.h"
#include "store/journal/segments.h"

enum {
    /* To which the file may grow while the write-back is slow: so many times its first size. */
    LOADED_TIMES = 8,
    LOADED_BYTES_MIN = 64 * 1024 * 1024
};

/* Where a part goes. */
typedef struct place {
    size_t segment;
    uint64_t at; /* in the segment */
    uint64_t bytes;
} place_t;

struct journal {
    journal_options_t options;
    journal_tables_t tables; /* as they were found */
    /* What the file held when it was opened; until journal_begin. */
    scan_t found;
    scan_log_t log;
    uint64_t file_bytes;
    lost_t lost;
    bool anew;    /* a start makes the file anew, in place of what is there */
    bytes_t body; /* what is being committed; of the committing thread */

    pthread_mutex_t lock; /* guards what follows: the file is handed over with it */
    pthread_cond_t grown;
    bool growing; /* another thread fills the place of the next segment: nobody else may */
    segments_t segments;
    size_t segments_max;
    journal_head_t head; /* of the next batch */
    uint64_t serial;
    size_t current; /* segment */
    uint64_t at;    /* in it: the next free block */
    place_t *places;
    size_t places_capacity;
    /* So many of the places hold a commit that found no space for the last of them; that write may
     * have left anything, even all of it. Before another commit they have to go: both would stand
     * behind the same one. */
    size_t refused;
    store_error_t broken; /* a final failure: nothing is tried after it */

    atomic_uint_fast64_t written; /* the tables have all batches up to it */
    atomic_uint_fast64_t noted;   /* … and up to here the file says so */
};

/* Opening. */

static int read_file (void *context, void *to, size_t length, uint64_t at)
{
    journal_t *self = context;
    return self->segments.device->read (self->segments.device, self->segments.fd, to, length, at);
}

static scan_source_t source_of (journal_t *self)
{
    return (scan_source_t){read_file, self, self->file_bytes, self->segments.path};
}

static store_code_t judge_owner (journal_t *self, store_error_t *error)
{
    const form_header_t *run = &self->found.run;
    const char *path = self->segments.path;
    if (run->generation != self->tables.generation)
        return store_fail (error, STORE_ERROR_CORRUPT, "%s: belongs to another taskmq.db", path);
    if (run->epoch > self->tables.epoch ||
        (run->epoch == self->tables.epoch && self->found.written > self->tables.written))
        return store_fail (error, STORE_ERROR_CORRUPT,
                           "%s/taskmq.db lacks its newest part: it ends at batch %llu, but had all "
                           "up to %llu; its log is damaged or gone",
                           self->options.directory, (unsigned long long) self->tables.written,
                           (unsigned long long) self->found.written);
    return STORE_OK;
}

static bool is_given_up (const journal_t *self)
{
    const device_t *device = self->segments.device;
    char path[PATH_MAX];
    snprintf (path, sizeof (path), "%s/" JOURNAL_CUT_FILE, self->options.directory);
    int fd = device->open (device, path, O_RDONLY);
    bool there = fd >= 0 && device->size (device, fd) >= 0;
    if (fd >= 0)
        device->close (device, fd);
    return there;
}

/* A salt whose lowest bit is set says that commits of its start are not synced: so it is known
 * where no part is left that could say it. */
static const uint64_t SALT_UNSYNCED = 1;

/* What the tables have was in the file before, and tables that need it were told that it is of
 * their epoch (journal_begin): a file without either is an older copy, or has lost it, and may lack
 * what the tables do not have, too. */
static const char NOT_SYNCED[] = "they were not synced to the disk (--synchronous normal)";
static const char GIVEN_UP[] = "they were given up by the file " JOURNAL_CUT_FILE;

static store_code_t judge_age (journal_t *self, bool needed, store_error_t *error)
{
    const scan_t *found = &self->found;
    bool older = found->run.epoch < self->tables.epoch;
    uint64_t newest = older ? 0 : found->newest;
    if (!needed || self->tables.clean || (!older && newest >= self->tables.written))
        return STORE_OK;
    bool silent = found->count == 0 && (found->run.salt & SALT_UNSYNCED) != 0;
    if (self->options.unsynced || found->unsynced || silent)
        self->lost.why = NOT_SYNCED;
    else if (is_given_up (self))
        self->lost.why = GIVEN_UP;
    if (self->lost.why != NULL)
        return STORE_OK;
    return store_fail (
        error, STORE_ERROR_CORRUPT,
        "%s: is older than taskmq.db, or has lost its end: it knows of batch %llu of "
        "start %llu, and taskmq.db has all up to %llu of start %llu: restore a "
        "backup; an empty file %s/" JOURNAL_CUT_FILE " gives the commits up that may be missing",
        self->segments.path, (unsigned long long) found->newest,
        (unsigned long long) found->run.epoch, (unsigned long long) self->tables.written,
        (unsigned long long) self->tables.epoch, self->options.directory);
}

static store_code_t judge_log (journal_t *self, store_error_t *error)
{
    if (self->found.run.epoch < self->tables.epoch)
        return STORE_OK; /* from before the last recovery: the tables have all of it */
    scan_log (&self->log, &self->found, self->tables.written);
    if (!self->log.gap)
        return STORE_OK;
    if (self->log.unsynced)
        self->lost.why = NOT_SYNCED;
    else if (is_given_up (self))
        self->lost.why = GIVEN_UP;
    if (self->lost.why != NULL) {
        self->lost.first = self->log.last + 1;
        self->lost.last = self->log.upto;
        return STORE_OK;
    }
    return store_fail (error, STORE_ERROR_CORRUPT,
                       "%s: is damaged behind batch %llu, before commits that were acknowledged "
                       "(up to batch %llu, from byte %llu on): restore a backup; an empty file "
                       "%s/" JOURNAL_CUT_FILE " gives those commits up",
                       self->segments.path, (unsigned long long) self->log.last,
                       (unsigned long long) self->log.upto, (unsigned long long) self->log.at,
                       self->options.directory);
}

static uint64_t random_number (void)
{
    uint64_t number = 0;
    while (getrandom (&number, sizeof (number), 0) != (ssize_t) sizeof (number) || number == 0)
        ;
    return number;
}

static form_header_t header_of (const journal_t *self, uint64_t generation, uint64_t epoch)
{
    form_header_t run = {.generation = generation, .epoch = epoch, .salt = random_number ()};
    run.salt = self->options.unsynced ? run.salt | SALT_UNSYNCED : run.salt & ~SALT_UNSYNCED;
    segments_shape (&run, self->options.bytes);
    return run;
}

/* A start goes on with what the tables have. */
static void give_up_all (journal_t *self)
{
    self->lost.why = GIVEN_UP;
    self->anew = true;
    self->found.run = header_of (self, self->tables.generation, self->tables.epoch);
}

static store_code_t judge_size (journal_t *self, store_error_t *error)
{
    if (!self->found.is_short)
        return STORE_OK;
    if (!is_given_up (self))
        return store_fail (error, STORE_ERROR_CORRUPT,
                           "%s: is shorter than it was made: restore a backup; an empty file "
                           "%s/" JOURNAL_CUT_FILE " goes on with the commits that are left",
                           self->segments.path, self->options.directory);
    self->lost.why = GIVEN_UP;
    self->anew = true;
    return STORE_OK;
}

static store_code_t make_missing (journal_t *self, bool needed, store_error_t *error)
{
    if (needed && is_given_up (self)) {
        give_up_all (self);
        return STORE_OK;
    }
    if (needed)
        return store_fail (error, STORE_ERROR_CORRUPT,
                           "%s is missing or empty: taskmq.db was not closed cleanly and needs it; "
                           "an empty file %s/" JOURNAL_CUT_FILE " gives up what was in it",
                           self->segments.path, self->options.directory);
    form_header_t run = header_of (self, self->tables.generation, self->tables.epoch);
    store_code_t code = segments_make (&self->segments, &run, error);
    self->found.run = run;
    return code;
}

static store_code_t read_found (journal_t *self, bool needed, store_error_t *error)
{
    int64_t bytes = self->segments.device->size (self->segments.device, self->segments.fd);
    self->file_bytes = bytes < 0 ? 0 : (uint64_t) bytes;
    scan_source_t source = source_of (self);
    store_code_t code = scan_read (&self->found, &source, error);
    if (code == STORE_ERROR_CORRUPT && is_given_up (self)) {
        give_up_all (self);
        return STORE_OK;
    }
    if (code == STORE_OK)
        code = judge_size (self, error);
    if (code == STORE_OK)
        code = judge_owner (self, error);
    if (code == STORE_OK)
        code = judge_age (self, needed, error);
    return code == STORE_OK ? judge_log (self, error) : code;
}

store_code_t journal_open (journal_t **out, const journal_options_t *options,
                           const journal_tables_t *tables, bool needed, store_error_t *error)
{
    journal_t *self = memory_zero (1, sizeof (*self));
    bool missing;
    self->options = *options;
    self->tables = *tables;
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->grown, NULL);
    segments_init (&self->segments, options->directory, options->device);
    store_code_t code = segments_open (&self->segments, &missing, error);
    if (code == STORE_OK)
        code = missing ? make_missing (self, needed, error) : read_found (self, needed, error);
    if (code == STORE_OK)
        *out = self;
    else
        journal_free (&self);
    return code;
}

void journal_free (journal_t **self_p)
{
    journal_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    segments_destroy (&self->segments);
    scan_destroy (&self->found);
    scan_log_destroy (&self->log);
    bytes_free (&self->body);
    free (self->places);
    pthread_cond_destroy (&self->grown);
    pthread_mutex_destroy (&self->lock);
    free (self);
}

/* Recovery. */

typedef struct replay {
    journal_t *journal;
    journal_visit_t *each;
    void *context;
    uint64_t previous; /* batch read last; else what the tables have */
} replay_t;

static store_code_t replay_fail (const replay_t *replay, const char *what, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_CORRUPT, "%s: the batch behind %llu %s",
                       replay->journal->segments.path, (unsigned long long) replay->previous, what);
}

static store_code_t replay_batch (replay_t *replay, const uint8_t *body, size_t bytes,
                                  store_error_t *error)
{
    const journal_tables_t *tables = &replay->journal->tables;
    journal_head_t head;
    bool newer;
    batch_t *batch = journal_decode (body, bytes, &head, &newer);
    if (newer)
        return store_fail (error, STORE_ERROR_NEWER, "%s: was written by a newer version",
                           replay->journal->segments.path);
    if (batch == NULL)
        return replay_fail (replay, "is damaged", error);
    const char *wrong = NULL;
    if (head.generation != tables->generation || head.epoch != tables->epoch)
        wrong = "belongs to another taskmq.db";
    else if (head.previous > tables->written && head.previous != replay->previous)
        wrong = "has lost the one before it";
    if (wrong != NULL || batch->no <= tables->written) {
        batch_free (batch);
        return wrong == NULL ? STORE_OK : replay_fail (replay, wrong, error);
    }
    replay->previous = batch->no;
    return replay->each (replay->context, batch, error);
}

static store_code_t replay_commit (replay_t *replay, size_t commit, bytes_t *content,
                                   store_error_t *error)
{
    journal_t *self = replay->journal;
    scan_source_t source = source_of (self);
    const uint8_t *body;
    size_t bytes;
    size_t at = 0;
    bytes_clear (content);
    store_code_t code = scan_content (&self->found, &source, commit, content, error);
    while (code == STORE_OK && scan_next_batch (content, &at, &body, &bytes))
        code = replay_batch (replay, body, bytes, error);
    if (code == STORE_OK &&
        (at != content->length || replay->previous != self->found.parts[commit].head.last))
        code = replay_fail (replay, "is damaged", error);
    return code;
}

store_code_t journal_replay (journal_t *self, journal_visit_t *each, void *context, bool *cut,
                             store_error_t *error)
{
    replay_t replay = {self, each, context, self->tables.written};
    bytes_t content = BYTES_INIT;
    store_code_t code = STORE_OK;
    for (size_t i = 0; code == STORE_OK && i < self->log.count; i++)
        code = replay_commit (&replay, self->log.commits[i], &content, error);
    bytes_free (&content);
    *cut = self->lost.why != NULL;
    return code;
}

lost_t journal_lost (const journal_t *self)
{
    return self->lost;
}

store_code_t journal_recover_archive (journal_t *self, store_error_t *error)
{
    const form_header_t *run = &self->found.run;
    scan_log_t chain;
    bytes_t content = BYTES_INIT;
    store_code_t code = STORE_OK;
    if (self->options.archive == NULL || self->tables.clean || run->epoch != self->tables.epoch ||
        self->log.commits == NULL)
        return STORE_OK;
    scan_source_t source = source_of (self);
    scan_chain (&chain, &self->found, self->log.last);
    for (size_t i = 0; code == STORE_OK && i < chain.count; i++) {
        bytes_clear (&content);
        code = scan_content (&self->found, &source, chain.commits[i], &content, error);
        if (code == STORE_OK)
            code = archive_recover (self->options.archive, run->generation, run->epoch,
                                    content.data, content.length, error);
    }
    scan_log_destroy (&chain);
    bytes_free (&content);
    return code;
}

/* A beginning. */

static void forget_found (journal_t *self)
{
    const device_t *device = self->segments.device;
    char path[PATH_MAX];
    snprintf (path, sizeof (path), "%s/" JOURNAL_CUT_FILE, self->options.directory);
    device->remove (device, path); /* it stands for one start */
    scan_destroy (&self->found);
    scan_log_destroy (&self->log);
}

store_code_t journal_begin (journal_t *self, uint64_t generation, uint64_t epoch,
                            store_error_t *error)
{
    form_header_t run = header_of (self, generation, epoch);
    const form_header_t *found = &self->found.run;
    bool fits =
        !self->anew && found->segment_bytes == run.segment_bytes && found->segments >= run.segments;
    store_code_t code = fits ? segments_begin (&self->segments, &run, error)
                             : segments_make (&self->segments, &run, error);
    if (code == STORE_OK)
        code = segments_choose (&self->segments, self->options.unsynced, error);
    if (code != STORE_OK)
        return code;
    forget_found (self);
    uint64_t most = (uint64_t) LOADED_TIMES * self->options.bytes;
    if (most < LOADED_BYTES_MIN)
        most = LOADED_BYTES_MIN;
    self->segments_max = (size_t) (most / run.segment_bytes);
    self->head = (journal_head_t){generation, epoch, 0};
    self->at = form_first_part (0);
    return STORE_OK;
}

const char *journal_way (const journal_t *self)
{
    if (self->options.unsynced)
        return "not synced";
    return self->segments.direct ? "direct" : "buffered";
}

/* Commits. */

static bool is_free (const journal_t *self, size_t segment)
{
    return segment != self->current &&
           (self->segments.last[segment] <= atomic_load (&self->written) ||
            self->options.planted_bug == ENGINE_BUG_SEGMENT_REUSED);
}

/* Where the next part may go: the segments behind that of the part before it, in turn. */
static bool find_free (const journal_t *self, size_t places, size_t *found)
{
    for (size_t i = 0; i < self->segments.count; i++) {
        bool taken = !is_free (self, i);
        for (size_t k = 0; k < places && !taken; k++)
            taken = self->places[k].segment == i;
        if (!taken) {
            *found = i;
            return true;
        }
    }
    return false;
}

static store_code_t fail_busy (const journal_t *self, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_BUSY,
                       "%s: has its largest size, and all of it waits to be written to taskmq.db",
                       self->segments.path);
}

/* A whole segment for the next part, which may be one more. */
static store_code_t add_place (journal_t *self, size_t places, size_t segments_max, uint64_t bytes,
                               store_error_t *error)
{
    size_t segment = 0;
    while (!find_free (self, places, &segment)) {
        if (self->growing) {
            pthread_cond_wait (&self->grown, &self->lock);
            if (self->broken.code == STORE_OK)
                continue;
            *error = self->broken;
            return error->code;
        }
        if (self->segments.count >= segments_max)
            return fail_busy (self, error);
        store_code_t code = segments_fill (&self->segments, error);
        if (code == STORE_OK)
            code = segments_add (&self->segments, error);
        if (code != STORE_OK)
            return code;
    }
    self->places = memory_grow (self->places, &self->places_capacity, places, sizeof (place_t));
    self->places[places] = (place_t){segment, form_first_part (segment), bytes};
    return STORE_OK;
}

/* Finds room for all of a content before any of it is written. What has no room in a segment gets
 * as many as it takes, even beyond the largest size. */
static store_code_t find_places (journal_t *self, uint64_t bytes, size_t *count,
                                 store_error_t *error)
{
    uint64_t size = self->segments.run.segment_bytes;
    uint64_t most = size - form_first_part (0) - FORM_PART_BYTES;
    *count = 0;
    if (self->at + form_part_room (bytes) <= size) {
        self->places = memory_grow (self->places, &self->places_capacity, 0, sizeof (place_t));
        self->places[(*count)++] = (place_t){self->current, self->at, bytes};
        return STORE_OK;
    }
    size_t segments_max = (size_t) (bytes / most) + 2;
    if (segments_max < self->segments_max)
        segments_max = self->segments_max;
    store_code_t code = STORE_OK;
    do {
        uint64_t some = bytes < most ? bytes : most;
        code = add_place (self, *count, segments_max, some, error);
        *count += code == STORE_OK;
        bytes -= some;
    } while (code == STORE_OK && bytes > 0);
    return code;
}

static uint64_t place_in_file (const journal_t *self, const place_t *place)
{
    return place->segment * self->segments.run.segment_bytes + place->at;
}

/* While there is no space for that either, all commits are refused. A crash then may bring the
 * first of them back, of which nobody was told anything. */
static store_code_t take_back (journal_t *self, store_error_t *error)
{
    store_code_t code = STORE_OK;
    /* From the last one on: a crash in between leaves what one within a commit leaves. */
    while (code == STORE_OK && self->refused > 0) {
        uint64_t at = place_in_file (self, &self->places[self->refused - 1]);
        code = segments_take_back (&self->segments, at, error);
        self->refused -= code == STORE_OK;
    }
    return code;
}

static store_code_t write_part (journal_t *self, const place_t *place, const form_part_t *part,
                                const uint8_t *content, store_error_t *error)
{
    uint64_t room = form_part_room (place->bytes);
    uint8_t *bytes = segments_buffer (&self->segments, room);
    uint64_t at = place_in_file (self, place);
    uint64_t used = FORM_PART_BYTES + place->bytes;
    if (place->bytes > 0 && content != NULL)
        memcpy (bytes + FORM_PART_BYTES, content, (size_t) place->bytes);
    memset (bytes + used, 0, (size_t) (room - used));
    form_pack_part (bytes, part);
    bool durable =
        !self->options.unsynced && self->options.planted_bug != ENGINE_BUG_COMMIT_UNSYNCED;
    store_code_t code = segments_write (&self->segments, room, at, durable, error);
    if (code != STORE_ERROR_FULL)
        return code;
    store_error_t again;
    self->refused = part->part + 1;
    code = take_back (self, &again);
    if (code != STORE_OK && code != STORE_ERROR_FULL)
        *error = again;
    return code == STORE_OK ? STORE_ERROR_FULL : code;
}

/* What was found for a content is used. */
static void take_places (journal_t *self, size_t count, const form_part_t *part)
{
    for (size_t i = 0; i < count; i++)
        self->segments.last[self->places[i].segment] = part->last;
    self->current = self->places[count - 1].segment;
    self->at = self->places[count - 1].at + form_part_room (self->places[count - 1].bytes);
    atomic_store (&self->noted, part->written);
}

static store_code_t write_commit (journal_t *self, const bytes_t *content, uint64_t first,
                                  uint64_t last, size_t batches, store_error_t *error)
{
    size_t count = 0;
    store_code_t code = find_places (self, content->length, &count, error);
    if (code != STORE_OK)
        return code;
    form_part_t part = {.salt = self->segments.run.salt,
                        .generation = self->head.generation,
                        .epoch = self->head.epoch,
                        .serial = ++self->serial,
                        .first = first,
                        .last = last,
                        .previous = self->head.previous,
                        .written = atomic_load (&self->written),
                        .parts = (uint32_t) count,
                        .batches = (uint32_t) batches,
                        .unsynced = self->options.unsynced};
    const uint8_t *from = content->data;
    for (size_t i = 0; code == STORE_OK && i < count; i++) {
        part.part = (uint32_t) i;
        part.bytes = (uint32_t) self->places[i].bytes;
        code = write_part (self, &self->places[i], &part, from, error);
        if (part.bytes > 0)
            from += part.bytes;
    }
    if (code == STORE_OK)
        take_places (self, count, &part);
    return code;
}

/* With the lock; a failure that is final is the answer to everything that follows. */
static store_code_t commit (journal_t *self, const bytes_t *content, uint64_t first, uint64_t last,
                            size_t batches, store_error_t *error)
{
    if (self->broken.code != STORE_OK) {
        *error = self->broken;
        return error->code;
    }
    store_code_t code = take_back (self, error);
    if (code == STORE_OK)
        code = write_commit (self, content, first, last, batches, error);
    if (code != STORE_OK && code != STORE_ERROR_FULL && code != STORE_ERROR_BUSY)
        self->broken = *error;
    return code;
}

/* The head is the committing thread's alone, as the content is. */
static void pack (journal_t *self, batch_t *const *batches, size_t count)
{
    journal_head_t head = self->head;
    bytes_clear (&self->body);
    for (size_t i = 0; i < count; i++) {
        uint8_t length[FORM_LENGTH_BYTES] = {0};
        size_t start = self->body.length;
        bytes_append (&self->body, length, sizeof (length));
        journal_encode (&self->body, &head, batches[i]);
        form_put_length (self->body.data + start,
                         (uint32_t) (self->body.length - start - sizeof (length)));
        head.previous = batches[i]->no;
    }
}

store_code_t journal_append (journal_t *self, batch_t *const *batches, size_t count,
                             store_error_t *error)
{
    pack (self, batches, count);
    pthread_mutex_lock (&self->lock);
    store_code_t code =
        commit (self, &self->body, batches[0]->no, batches[count - 1]->no, count, error);
    if (code == STORE_OK)
        self->head.previous = batches[count - 1]->no;
    pthread_mutex_unlock (&self->lock);
    if (code == STORE_OK && self->options.archive != NULL)
        archive_take (self->options.archive, self->body.data, self->body.length);
    return code;
}

void journal_written (journal_t *self, uint64_t batch)
{
    atomic_store (&self->written, batch);
}

/* Half of the segments and more are in use: the write-back is behind, or one more commit may have
 * to wait for a new one. */
static bool is_crowded (const journal_t *self)
{
    size_t used = 0;
    for (size_t i = 0; i < self->segments.count; i++)
        used += !is_free (self, i);
    return 2 * used > self->segments.count;
}

store_code_t journal_make_room (journal_t *self, store_error_t *error)
{
    pthread_mutex_lock (&self->lock);
    self->growing = self->broken.code == STORE_OK && is_crowded (self) &&
                    self->segments.count < self->segments_max;
    if (!self->growing) {
        pthread_mutex_unlock (&self->lock);
        return STORE_OK;
    }
    /* Through the page cache a failed write is told to one sync of the file only: it must not be
     * this one while a commit waits for its own (A23). */
    bool beside = self->segments.direct;
    if (beside)
        pthread_mutex_unlock (&self->lock);
    store_code_t code = segments_fill (&self->segments, error);
    if (beside)
        pthread_mutex_lock (&self->lock);
    if (code == STORE_OK && self->broken.code == STORE_OK)
        code = segments_add (&self->segments, error);
    if (code != STORE_OK && code != STORE_ERROR_FULL)
        self->broken = *error;
    self->growing = false;
    pthread_cond_broadcast (&self->grown);
    pthread_mutex_unlock (&self->lock);
    return code;
}

bool journal_can_rest (journal_t *self)
{
    return atomic_load (&self->written) > atomic_load (&self->noted);
}

/* A commit without batches, which says what the tables have. */
store_code_t journal_rest (journal_t *self, store_error_t *error)
{
    static const bytes_t NOTHING = BYTES_INIT;
    pthread_mutex_lock (&self->lock);
    uint64_t last = self->head.previous;
    store_code_t code = commit (self, &NOTHING, last, last, 0, error);
    pthread_mutex_unlock (&self->lock);
    return code;
}
