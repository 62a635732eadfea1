/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/archive/archive_carrier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "store/archive/archive_blobs.h"
#include "store/archive/archive_keep.h"
#include "timestamp.h"

enum {
    EXPIRE_MS = 10 * 60 * 1000,
    TEXT_SIZE = 512,
    PIECES_AT_ONCE = 16,
    /* So long before the last change of a segment a body that it names was carried at most: its
     * segment is open for a minute, and others, of a gigabyte, may have been carried in between. */
    ARCHIVE_BLOBS_BEFORE_MS = 60 * 60 * 1000
};

__attribute__ ((format (printf, 3, 4))) static void say (const archive_carrier_t *self,
                                                         archive_word_t word, const char *format,
                                                         ...)
{
    char text[TEXT_SIZE];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (text, sizeof (text), format, arguments);
    va_end (arguments);
    if (self->options->say != NULL)
        self->options->say (self->options->context, word, text);
}

void carrier_init (archive_carrier_t *self, const archive_options_t *options,
                   archive_spool_t *spool)
{
    *self = (archive_carrier_t){.options = options,
                                .spool = spool,
                                .writer = ARCHIVE_WRITER_INIT,
                                .bytes = BYTES_INIT,
                                .unread_ms = INT64_MAX};
}

void carrier_destroy (archive_carrier_t *self)
{
    archive_writer_leave (&self->writer);
    bytes_free (&self->bytes);
}

void carrier_forget (archive_carrier_t *self)
{
    archive_writer_leave (&self->writer);
    self->generation = 0;
}

/* What is there. */

/* The newest segment says where the archive ends; an open one is gone on with. One that cannot be
 * read is left to who reads the archive, and another one begins. */
static bool look_at (archive_carrier_t *self, const archive_file_t *file, int64_t mono_ms)
{
    archive_reading_t reading;
    const uint8_t *body;
    size_t length;
    bytes_t bytes = BYTES_INIT;
    bool good = archive_load (&bytes, self->options->directory, file->name);
    self->epoch = file->header.epoch;
    self->batch = file->header.previous;
    if (good && archive_read_begin (&reading, bytes.data, bytes.length) == FORM_WHOLE) {
        while (archive_read_next (&reading, &body, &length) == ARCHIVE_BATCH)
            self->batch = reading.last.no;
        if (file->open)
            good =
                archive_writer_resume (&self->writer, self->options->directory, &reading, mono_ms);
    }
    int error = errno;
    bytes_free (&bytes);
    errno = error;
    return good;
}

static bool look (archive_carrier_t *self, uint64_t generation, int64_t mono_ms)
{
    archive_list_t list;
    if (self->generation == generation)
        return true;
    if (!carrier_close (self, mono_ms, true) ||
        !archive_list (&list, self->options->directory, generation))
        return false;
    self->begun = list.count > 0;
    self->epoch = self->batch = 0;
    bool good = !self->begun || look_at (self, &list.files[list.count - 1], mono_ms);
    int error = errno;
    archive_list_free (&list);
    errno = error;
    if (good)
        self->generation = generation;
    return good;
}

/* Carrying. */

/* A segment for what follows. */
static bool begin_segment (archive_carrier_t *self, const archive_header_t *piece,
                           uint64_t previous, int64_t mono_ms)
{
    archive_header_t header = *piece;
    bool same_epoch = self->writer.fd >= 0 && self->writer.header.epoch == piece->epoch;
    header.previous = previous;
    header.made_ms = clock_ms (CLOCK_REALTIME);
    if (same_epoch) {
        header.base_epoch = self->writer.header.base_epoch;
        header.base_batch = self->writer.header.base_batch;
    }
    if (!carrier_close (self, mono_ms, true) ||
        !archive_writer_begin (&self->writer, self->options->directory, &header, mono_ms))
        return false;
    if (!self->begun)
        say (self, ARCHIVE_BEGUN,
             "the archive begins: a backup that is made from now on can be brought up to any "
             "moment behind it");
    self->begun = true;
    self->epoch = header.epoch;
    self->batch = previous;
    return true;
}

/* A piece that begins here does not follow what the archive has. */
static void judge_gap (archive_carrier_t *self, const archive_header_t *piece, uint64_t previous)
{
    bool gap = piece->epoch == self->epoch ? previous > self->batch
                                           : previous != 0 || piece->base_epoch != self->epoch ||
                                                 piece->base_batch > self->batch;
    if (!self->begun || !gap)
        return;
    self->gaps++;
    say (self, ARCHIVE_GAP,
         "what was committed behind batch %" PRIu64 " of epoch %" PRIu64
         " and before batch %" PRIu64 " of epoch %" PRIu64
         " is not in the archive: make a backup now, with which the archive is whole again",
         self->batch, self->epoch, previous + 1, piece->epoch);
}

static bool carry_frame (archive_carrier_t *self, const archive_reading_t *reading,
                         const uint8_t *frame, size_t bytes, int64_t mono_ms)
{
    const archive_peek_t *peek = &reading->last;
    if (peek->epoch < self->epoch || (peek->epoch == self->epoch && peek->no <= self->batch))
        return true;
    bool follows = self->writer.fd >= 0 && self->writer.header.epoch == peek->epoch &&
                   self->writer.last == peek->previous;
    if (!follows)
        judge_gap (self, &reading->header, peek->previous);
    if ((!follows || self->writer.bytes >= ARCHIVE_SEGMENT_BYTES) &&
        !begin_segment (self, &reading->header, peek->previous, mono_ms))
        return false;
    if (!archive_writer_add (&self->writer, frame, bytes, peek->no))
        return false;
    self->batch = peek->no;
    return true;
}

static bool carry_piece (archive_carrier_t *self, int64_t mono_ms)
{
    archive_reading_t reading;
    const uint8_t *body;
    size_t bytes;
    /* A loss of power leaves one without a header: what it had is missing by its numbers. */
    if (archive_read_begin (&reading, self->bytes.data, self->bytes.length) != FORM_WHOLE)
        return true;
    if (!look (self, reading.header.generation, mono_ms))
        return false;
    while (archive_read_next (&reading, &body, &bytes) == ARCHIVE_BATCH)
        if (!carry_frame (self, &reading, body - FORM_LENGTH_BYTES, bytes + FORM_LENGTH_BYTES,
                          mono_ms))
            return false;
    /* An epoch that has no batches yet is told, too. */
    if (reading.batches > 0 || (self->begun && reading.header.epoch <= self->epoch))
        return true;
    judge_gap (self, &reading.header, 0);
    return begin_segment (self, &reading.header, 0, mono_ms);
}

/* Told when there are some for the first time since there were none. */
static void note_unread (archive_carrier_t *self, const archive_blobs_report_t *report,
                         int64_t mono_ms)
{
    bool news = self->unread_ms == INT64_MAX;
    if (report->unreadable == 0)
        self->unread_ms = INT64_MAX;
    else if (news || mono_ms >= self->unread_ms)
        self->unread_ms = mono_ms + self->options->unread_ms;
    if (report->unreadable > 0 && news)
        say (self, ARCHIVE_UNREAD,
             "%" PRIu64 " large bodies cannot be read (%s), and are not in the archive yet, as %s: "
             "they are tried again each minute",
             report->unreadable, strerror (report->error), report->unread);
}

static bool carry_blobs (archive_carrier_t *self, int64_t mono_ms)
{
    archive_blobs_report_t report;
    if (mono_ms >= self->unread_ms)
        self->unread.count = 0;
    bool good = archive_blobs_carry (self->spool->directory, self->options->directory,
                                     &self->unread, &report);
    int error = errno;
    if (good)
        note_unread (self, &report, mono_ms);
    if (report.damaged > 0)
        say (self, ARCHIVE_BLOB,
             "%" PRIu64 " large bodies are damaged or gone, and not in the archive, as %s",
             report.damaged, report.example);
    errno = error;
    return good;
}

/* Nothing is removed that is not on the archive's disk. */
static bool sync_and_remove (archive_carrier_t *self, const uint64_t *serials,
                             const uint64_t *bytes, size_t count)
{
    if (!archive_writer_sync (&self->writer))
        return false;
    for (size_t i = 0; i < count; i++)
        if (bytes[i] > 0)
            spool_remove (self->spool, serials[i], bytes[i]);
    return true;
}

/* PIECES_AT_ONCE with one sync. */
static bool carry_pieces (archive_carrier_t *self, const uint64_t *serials, size_t count,
                          int64_t mono_ms)
{
    uint64_t bytes[PIECES_AT_ONCE];
    for (size_t i = 0; i < count; i++) {
        char name[SPOOL_NAME_SIZE];
        size_t place = i % PIECES_AT_ONCE;
        spool_name (name, serials[i]);
        bool there = archive_load (&self->bytes, self->spool->directory, name);
        if (!there && errno != ENOENT) /* given up meanwhile */
            return false;
        bytes[place] = there ? self->bytes.length : 0;
        if (there && !carry_piece (self, mono_ms))
            return false;
        bool last = place + 1 == PIECES_AT_ONCE || i + 1 == count;
        if (last && !sync_and_remove (self, serials + i - place, bytes, place + 1))
            return false;
    }
    return true;
}

bool carrier_run (archive_carrier_t *self, uint64_t before, int64_t mono_ms)
{
    uint64_t *serials;
    size_t count;
    if (!spool_list (self->spool, before, &serials, &count))
        return false;
    bool good = carry_blobs (self, mono_ms) && carry_pieces (self, serials, count, mono_ms);
    int error = errno;
    free (serials);
    errno = error;
    return good;
}

/* Closing, removing. */

static int64_t close_ms (const archive_carrier_t *self)
{
    return self->writer.fd >= 0 && self->writer.batches > 0
               ? self->writer.opened_ms + ARCHIVE_SEGMENT_MS
               : INT64_MAX;
}

int64_t carrier_due_ms (const archive_carrier_t *self)
{
    int64_t due_ms = close_ms (self);
    return due_ms < self->unread_ms ? due_ms : self->unread_ms;
}

bool carrier_close (archive_carrier_t *self, int64_t mono_ms, bool in_any_case)
{
    bool due = self->writer.bytes >= ARCHIVE_SEGMENT_BYTES || mono_ms >= close_ms (self);
    return (!due && !in_any_case) || archive_writer_close (&self->writer);
}

void carrier_expire (archive_carrier_t *self, int64_t mono_ms)
{
    archive_list_t list;
    if (self->options->keep_ms == 0 ||
        (self->expired_ms != 0 && mono_ms < self->expired_ms + EXPIRE_MS))
        return;
    self->expired_ms = mono_ms;
    if (!archive_list (&list, self->options->directory, 0))
        return;
    bool *old = memory_zero (list.count + 1, sizeof (*old));
    int64_t staying_ms = archive_keep (&list, self->generation, self->options->keep_ms,
                                       clock_ms (CLOCK_REALTIME), old);
    for (size_t i = 0; i < list.count; i++) {
        char path[ARCHIVE_PATH_SIZE];
        snprintf (path, sizeof (path), "%s/%s", self->options->directory, list.files[i].name);
        if (old[i])
            unlink (path);
    }
    free (old);
    archive_list_free (&list);
    /* A blob is there before the segment that names it is closed. */
    if (staying_ms != INT64_MAX)
        archive_blobs_expire (self->options->directory, staying_ms - ARCHIVE_BLOBS_BEFORE_MS);
}
