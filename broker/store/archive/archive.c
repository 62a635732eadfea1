/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/archive/archive.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "store/archive/archive_carrier.h"
#include "timestamp.h"

enum {
    /* With the data's disk nearly full, a backlog beyond this goes first. */
    BACKLOG_SPARED_BYTES = 16 * 1024 * 1024,
    FREE_TIMES = 2,                    /* limits/free_space_min: nearly full */
    QUEUE_KEPT_BYTES = 8 * 1024 * 1024 /* of memory, behind a burst */
};

struct archive {
    archive_options_t options;
    archive_spool_t spool;     /* before the threads the owner's, then the spooler's */
    archive_carrier_t carrier; /* of its thread */
    bool broken;               /* of the spooler: it said so, and nothing was kept since */
    pthread_t spooler;
    pthread_t carrying;
    bool runs;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t to_spooler;
    pthread_cond_t to_carrier;
    bytes_t queue;
    uint64_t dropped;  /* commits that found no room in it */
    bool fresh;        /* something came since the last cut */
    bool large;        /* the piece is worth being carried at once */
    bool cut;          /* the carrier wants the piece that grows … */
    uint64_t cut_till; /* … and pieces before this number do not grow any more */
    bool stop_carrier;
    bool stop_spooler;
    bool stalled;
    uint64_t gaps;
    int64_t oldest_ms;     /* monotonic, of what no segment has; 0: nothing */
    int64_t cut_oldest_ms; /* … of what came since the cut */
};

__attribute__ ((format (printf, 3, 4))) static void say (const archive_t *self, archive_word_t word,
                                                         const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (text, sizeof (text), format, arguments);
    va_end (arguments);
    if (self->options.say != NULL)
        self->options.say (self->options.context, word, text);
}

static int64_t now_ms (void)
{
    return clock_ms (CLOCK_MONOTONIC);
}

static void wait_until (archive_t *self, pthread_cond_t *condition, int64_t mono_ms)
{
    struct timespec until = {mono_ms / 1000, mono_ms % 1000 * 1000000};
    pthread_cond_timedwait (condition, &self->lock, &until);
}

/* The committing thread. */

void archive_take (archive_t *self, const uint8_t *content, size_t bytes)
{
    pthread_mutex_lock (&self->lock);
    bool was_empty = self->queue.length == 0;
    if (bytes > ARCHIVE_QUEUE_BYTES_MAX - self->queue.length)
        self->dropped++;
    else
        bytes_append (&self->queue, content, bytes);
    if (self->queue.failed)
        abort (); /* as all of the engine */
    if (!self->fresh) {
        self->fresh = true;
        self->cut_oldest_ms = now_ms ();
        if (self->oldest_ms == 0)
            self->oldest_ms = self->cut_oldest_ms;
        pthread_cond_signal (&self->to_carrier);
    }
    if (was_empty)
        pthread_cond_signal (&self->to_spooler);
    pthread_mutex_unlock (&self->lock);
}

/* The spooler. */

static void give_up (archive_t *self, const char *why)
{
    uint64_t bytes = atomic_load (&self->spool.bytes);
    spool_give_up (&self->spool);
    if (!self->broken)
        say (self, ARCHIVE_BROKEN,
             "%s: %" PRIu64 " bytes that wait for the archive are given up; once it works again, a "
             "new backup is needed, with which it is whole",
             why, bytes);
    self->broken = true;
}

static bool is_nearly_full (const archive_t *self)
{
    struct statvfs disk;
    uint64_t least = shared_limit ((shared_limit_t *) self->options.free_bytes_min);
    return atomic_load (&self->spool.bytes) > BACKLOG_SPARED_BYTES && least > 0 &&
           statvfs (self->spool.directory, &disk) == 0 &&
           (uint64_t) disk.f_bavail * disk.f_frsize < FREE_TIMES * least;
}

/* Outside of the lock. */
static void spool (archive_t *self, const bytes_t *frames, uint64_t dropped, bool cut)
{
    if (dropped > 0)
        say (self, ARCHIVE_BROKEN,
             "%" PRIu64 " commits are missing in the archive, since the disk of the data was too "
             "slow to keep them for it: a new backup is needed, with which it is whole",
             dropped);
    bool good = frames->length == 0 || spool_put (&self->spool, frames->data, frames->length);
    if (good && frames->length > 0)
        self->broken = false;
    if (good && (cut || self->spool.piece_bytes >= SPOOL_PIECE_BYTES))
        good = spool_cut (&self->spool);
    if (!good)
        give_up (self, strerror (errno));
    else if (atomic_load (&self->spool.bytes) > self->options.backlog_bytes_max)
        give_up (self, "the archive was away for too long");
    else if (cut && is_nearly_full (self))
        give_up (self, "the disk of the data has no space for it");
}

/* While the archive fails, small pieces are not made until the end: there would be one a second. */
static bool may_cut (const archive_t *self)
{
    return !self->stalled || self->stop_carrier || self->spool.piece_bytes >= SPOOL_PIECE_BYTES ||
           atomic_load (&self->spool.bytes) <= self->spool.piece_bytes;
}

/* With the lock, not meanwhile. */
static void spool_some (archive_t *self, bytes_t *frames)
{
    bytes_t taken = self->queue;
    self->queue = *frames;
    *frames = taken;
    uint64_t dropped = self->dropped;
    uint64_t serial = self->spool.serial;
    bool asked = self->cut;
    bool cut = asked && may_cut (self);
    self->dropped = 0;
    if (cut) {
        self->fresh = false; /* all that came until now is in front of the cut */
        self->large = false;
    }
    pthread_mutex_unlock (&self->lock);
    spool (self, frames, dropped, cut);
    if (frames->capacity > QUEUE_KEPT_BYTES)
        bytes_free (frames);
    bytes_clear (frames);
    pthread_mutex_lock (&self->lock);
    if (asked) {
        self->cut = false;
        self->cut_till = self->spool.serial;
        pthread_cond_signal (&self->to_carrier);
    } else if (self->spool.serial != serial && !self->large) {
        self->large = true;
        pthread_cond_signal (&self->to_carrier);
    }
}

static void *run_spooler (void *context)
{
    archive_t *self = context;
    bytes_t frames = BYTES_INIT;
    pthread_setname_np (pthread_self (), "archive-spool");
    pthread_mutex_lock (&self->lock);
    while (true) {
        while (self->queue.length == 0 && !self->cut && !self->stop_spooler)
            pthread_cond_wait (&self->to_spooler, &self->lock);
        if (self->queue.length == 0 && !self->cut)
            break;
        spool_some (self, &frames);
    }
    pthread_mutex_unlock (&self->lock);
    bytes_free (&frames);
    return NULL;
}

/* The carrier. */

static uint64_t cut (archive_t *self)
{
    self->cut = true;
    pthread_cond_signal (&self->to_spooler);
    while (self->cut)
        pthread_cond_wait (&self->to_carrier, &self->lock);
    return self->cut_till;
}

/* Told once for each time. */
static void note_failure (archive_t *self, int error)
{
    carrier_forget (&self->carrier);
    pthread_mutex_lock (&self->lock);
    bool news = !self->stalled;
    self->stalled = true;
    pthread_mutex_unlock (&self->lock);
    if (news)
        say (self, ARCHIVE_STALLED, "%s: %s: what is committed waits in the data directory",
             self->options.directory, strerror (error));
}

static void note_success (archive_t *self)
{
    pthread_mutex_lock (&self->lock);
    bool news = self->stalled;
    self->stalled = false;
    self->gaps = self->carrier.gaps;
    self->oldest_ms = self->fresh ? self->cut_oldest_ms : 0;
    pthread_mutex_unlock (&self->lock);
    if (news)
        say (self, ARCHIVE_BACK, "the archive works again, and takes what waited for it");
}

/* With the lock, not meanwhile. False: it is to be tried again. */
static bool carry (archive_t *self, bool last)
{
    uint64_t till = cut (self);
    pthread_mutex_unlock (&self->lock);
    int64_t at_ms = now_ms ();
    bool good = carrier_run (&self->carrier, till, at_ms) &&
                carrier_close (&self->carrier, now_ms (), last);
    if (good) {
        carrier_expire (&self->carrier, at_ms);
        note_success (self);
    } else
        note_failure (self, errno);
    pthread_mutex_lock (&self->lock);
    return good;
}

static void *run_carrier (void *context)
{
    archive_t *self = context;
    int64_t next_ms = 0; /* not before */
    bool again = true;   /* an earlier start may have left pieces */
    pthread_setname_np (pthread_self (), "archive");
    pthread_mutex_lock (&self->lock);
    while (!self->stop_carrier) {
        int64_t now = now_ms ();
        bool wanted = again || self->fresh || now >= carrier_due_ms (&self->carrier);
        bool at_once = self->large && !self->stalled;
        if (wanted && (now >= next_ms || at_once)) {
            next_ms = now + self->options.sync_ms;
            again = !carry (self, false);
        } else if (wanted)
            wait_until (self, &self->to_carrier, next_ms);
        else if (carrier_due_ms (&self->carrier) != INT64_MAX)
            wait_until (self, &self->to_carrier, carrier_due_ms (&self->carrier));
        else
            pthread_cond_wait (&self->to_carrier, &self->lock);
    }
    carry (self, true);
    pthread_mutex_unlock (&self->lock);
    return NULL;
}

/* The owner. */

store_code_t archive_new (archive_t **out, const archive_options_t *options, store_error_t *error)
{
    archive_t *self = memory_zero (1, sizeof (*self));
    pthread_condattr_t monotonic;
    self->options = *options;
    self->options.directory = memory_text (options->directory);
    pthread_mutex_init (&self->lock, NULL);
    pthread_condattr_init (&monotonic);
    pthread_condattr_setclock (&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init (&self->to_spooler, &monotonic);
    pthread_cond_init (&self->to_carrier, &monotonic);
    pthread_condattr_destroy (&monotonic);
    carrier_init (&self->carrier, &self->options, &self->spool);
    *out = self;
    if (spool_open (&self->spool, options->data))
        return STORE_OK;
    int reason = errno;
    archive_free (out);
    return store_fail (error, reason == ENOSPC ? STORE_ERROR_FULL : STORE_ERROR_ACCESS,
                       "%s/" ARCHIVE_SPOOL ": %s", options->data, strerror (reason));
}

static store_code_t fail_spool (const archive_t *self, store_error_t *error)
{
    return store_fail (error, errno == ENOSPC ? STORE_ERROR_FULL : STORE_ERROR_IO,
                       "%s: cannot be written: %s", self->spool.directory, strerror (errno));
}

store_code_t archive_recover (archive_t *self, uint64_t generation, uint64_t epoch,
                              const uint8_t *content, size_t bytes, store_error_t *error)
{
    const archive_header_t header = {.generation = generation, .epoch = epoch};
    bool good = (self->spool.fd >= 0 && self->spool.piece_bytes < SPOOL_PIECE_BYTES) ||
                (spool_sync (&self->spool) && spool_begin (&self->spool, &header));
    if (good && spool_put (&self->spool, content, bytes))
        return STORE_OK;
    return fail_spool (self, error);
}

store_code_t archive_begin (archive_t *self, const archive_header_t *header, store_error_t *error)
{
    if (!spool_sync (&self->spool) || !spool_begin (&self->spool, header) ||
        !spool_sync (&self->spool))
        return fail_spool (self, error);
    /* The piece without batches is one to be carried, too. */
    if (!spool_begin (&self->spool, header))
        return fail_spool (self, error);
    if (pthread_create (&self->spooler, NULL, run_spooler, self) != 0)
        return store_fail (error, STORE_ERROR_IO, "the archive's thread cannot be started");
    if (pthread_create (&self->carrying, NULL, run_carrier, self) != 0) {
        self->stop_spooler = true;
        pthread_cond_signal (&self->to_spooler);
        pthread_join (self->spooler, NULL);
        return store_fail (error, STORE_ERROR_IO, "the archive's thread cannot be started");
    }
    self->runs = true;
    return STORE_OK;
}

static void stop (archive_t *self, bool *flag, pthread_cond_t *condition, pthread_t thread)
{
    pthread_mutex_lock (&self->lock);
    *flag = true;
    pthread_cond_signal (condition);
    pthread_mutex_unlock (&self->lock);
    pthread_join (thread, NULL);
}

void archive_free (archive_t **self_p)
{
    archive_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->runs) {
        stop (self, &self->stop_carrier, &self->to_carrier, self->carrying);
        stop (self, &self->stop_spooler, &self->to_spooler, self->spooler);
    }
    carrier_destroy (&self->carrier);
    spool_close (&self->spool);
    bytes_free (&self->queue);
    pthread_cond_destroy (&self->to_spooler);
    pthread_cond_destroy (&self->to_carrier);
    pthread_mutex_destroy (&self->lock);
    free ((char *) self->options.directory);
    free (self);
}

void archive_stats (archive_t *self, archive_stats_t *out)
{
    pthread_mutex_lock (&self->lock);
    int64_t oldest_ms = self->oldest_ms;
    *out = (archive_stats_t){.stalled = self->stalled,
                             .backlog_bytes = atomic_load (&self->spool.bytes) + self->queue.length,
                             .gaps = self->gaps};
    pthread_mutex_unlock (&self->lock);
    if (oldest_ms == 0)
        out->backlog_bytes = 0; /* the header of a piece that waits for its first batch */
    else
        out->lag_ms = (uint64_t) (now_ms () - oldest_ms);
}
