/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/archive/archive_history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "store/journal/journal_codec.h"
#include "units.h"

struct archive_history {
    const char *directory; /* owned */
    archive_list_t list;
    size_t next;    /* the file to be read now, or next */
    bytes_t bytes;  /* of the file under way */
    bool under_way; /* reading stands in it */
    archive_reading_t reading;
    archive_place_t at;
    int64_t until_ms;
    bool done;
    uint64_t upto; /* batch of this epoch: those behind it were lost before the next start */
    char wrong
        [ARCHIVE_NAME_SIZE]; /* a file that ended too early, until its rest is found elsewhere */
};

/* Errors. */

static store_code_t fail_system (const archive_history_t *self, const char *name,
                                 store_error_t *error)
{
    return store_fail (error, STORE_ERROR_ACCESS, "%s/%s: cannot be read: %s", self->directory,
                       name, strerror (errno));
}

/* Something that is needed is not there, unless nobody wants what is behind it. */
static store_code_t missing (archive_history_t *self, store_error_t *error)
{
    char time[TIME_TEXT_SIZE] = "";
    if (self->until_ms <= self->at.wall_ms) {
        self->done = true;
        return STORE_OK;
    }
    bool known = self->at.wall_ms > 0 && time_format (time, self->at.wall_ms);
    bool damaged = self->wrong[0] != '\0';
    return store_fail (
        error, STORE_ERROR_CORRUPT,
        "archive %s: %s%sthe batch behind %" PRIu64 " of epoch %" PRIu64 " is missing%s%s",
        self->directory, self->wrong, damaged ? " is damaged, and " : "", self->at.batch,
        self->at.epoch, known ? ": what was committed is there up to " : "", time);
}

/* Files. */

static const archive_file_t *file_now (const archive_history_t *self)
{
    return &self->list.files[self->next];
}

static bool same_place (const archive_header_t *a, const archive_header_t *b)
{
    return a->generation == b->generation && a->epoch == b->epoch && a->previous == b->previous;
}

/* The broker that writes may have closed the file since it was listed. */
static bool load (archive_history_t *self, size_t which, bytes_t *out)
{
    archive_file_t *file = &self->list.files[which];
    if (archive_load (out, self->directory, file->name))
        return true;
    if (errno != ENOENT || !file->open)
        return false;
    file->open = false;
    archive_name (file->name, &file->header, false);
    return archive_load (out, self->directory, file->name);
}

/* What the next start after this epoch found of it: behind that nothing counts. A loss of power may
 * take commits that were not synced, and the archive has them. A file without a header, which that
 * may leave, says nothing; the next one of the start does. */
static store_code_t find_upto (archive_history_t *self, uint64_t epoch, store_error_t *error)
{
    bytes_t bytes = BYTES_INIT;
    store_code_t code = STORE_OK;
    self->upto = UINT64_MAX;
    for (size_t i = self->next; i < self->list.count; i++) {
        archive_reading_t reading;
        if (self->list.files[i].header.epoch <= epoch)
            continue;
        if (!load (self, i, &bytes)) {
            code = fail_system (self, self->list.files[i].name, error);
            break;
        }
        if (archive_read_begin (&reading, bytes.data, bytes.length) != FORM_WHOLE)
            continue;
        if (reading.header.base_epoch == epoch)
            self->upto = reading.header.base_batch;
        break;
    }
    bytes_free (&bytes);
    return code;
}

/* All of this file is in front of the place, as far as its end can be believed: what is passed over
 * by mistake is missing then. */
static bool is_passed (const archive_history_t *self)
{
    const archive_file_t *file = file_now (self);
    uint64_t last;
    if (file->header.epoch != self->at.epoch)
        return file->header.epoch < self->at.epoch;
    return !file->open && archive_load_last (&last, self->directory, file->name) &&
           last <= self->at.batch;
}

static void note_wrong (archive_history_t *self)
{
    snprintf (self->wrong, sizeof (self->wrong), "%s", file_now (self)->name);
}

/* A loss of power took the header of one that was just begun, and what stood behind it. */
static bool is_torn_header (const archive_history_t *self)
{
    return file_now (self)->open && archive_is_empty (self->bytes.data, self->bytes.length);
}

/* What was loaded is a segment, the one that its name says. *ok: there is something to read. */
static store_code_t judge_header (archive_history_t *self, bool *ok, store_error_t *error)
{
    const archive_file_t *file = file_now (self);
    form_found_t found = archive_read_begin (&self->reading, self->bytes.data, self->bytes.length);
    if (found == FORM_NEWER)
        return store_fail (error, STORE_ERROR_NEWER, "%s/%s: was written by a newer version",
                           self->directory, file->name);
    *ok = found == FORM_WHOLE && same_place (&self->reading.header, &file->header);
    if (!*ok && !is_torn_header (self))
        note_wrong (self);
    return STORE_OK;
}

/* The file follows what was read; a later start follows the end of the one before it. */
static bool follows (archive_history_t *self, store_code_t *code, store_error_t *error)
{
    const archive_header_t *header = &self->reading.header;
    if (header->epoch == self->at.epoch)
        return header->previous <= self->at.batch;
    if (header->previous != 0 || header->base_epoch != self->at.epoch ||
        header->base_batch != self->at.batch)
        return false;
    self->at.epoch = header->epoch;
    self->at.batch = 0;
    *code = find_upto (self, header->epoch, error);
    self->wrong[0] = '\0';
    return true;
}

static bool load_now (archive_history_t *self)
{
    return load (self, self->next, &self->bytes);
}

/* Brings the next file that is needed into memory. */
static store_code_t next_file (archive_history_t *self, store_error_t *error)
{
    while (self->next < self->list.count && is_passed (self))
        self->next++;
    if (self->next == self->list.count) {
        self->done = true;
        return self->wrong[0] != '\0' ? missing (self, error) : STORE_OK;
    }
    bool ok;
    if (!load_now (self))
        return fail_system (self, file_now (self)->name, error);
    store_code_t code = judge_header (self, &ok, error);
    if (code != STORE_OK)
        return code;
    if (!ok) {
        self->next++;
        return STORE_OK;
    }
    self->under_way = follows (self, &code, error);
    return self->under_way ? code : missing (self, error);
}

/* A batch that was read is wanted: it is behind the place, and follows it. */
static store_code_t judge_batch (archive_history_t *self, bool *wanted, store_error_t *error)
{
    const archive_peek_t *peek = &self->reading.last;
    *wanted = false;
    if (peek->no <= self->at.batch)
        return STORE_OK;
    if (peek->no > self->upto) {
        self->under_way = false; /* lost before the next start: its files follow */
        while (self->next < self->list.count && file_now (self)->header.epoch == self->at.epoch)
            self->next++;
        return STORE_OK;
    }
    if (peek->previous > self->at.batch) {
        self->under_way = false;
        note_wrong (self);
        self->next++;
        return missing (self, error);
    }
    if (peek->wall_ms > self->until_ms) {
        self->done = true;
        return STORE_OK;
    }
    self->at.batch = peek->no;
    self->at.wall_ms = peek->wall_ms;
    self->wrong[0] = '\0';
    *wanted = true;
    return STORE_OK;
}

/* The next batch, lent; NULL: there is none. */
static store_code_t step (archive_history_t *self, const uint8_t **body, size_t *bytes,
                          store_error_t *error)
{
    store_code_t code = STORE_OK;
    bool wanted = false;
    while (code == STORE_OK && !self->done && !wanted) {
        if (!self->under_way) {
            code = next_file (self, error);
            continue;
        }
        switch (archive_read_next (&self->reading, body, bytes)) {
        case ARCHIVE_BATCH: code = judge_batch (self, &wanted, error); continue;
        case ARCHIVE_ENDED: break;
        case ARCHIVE_TORN:
        case ARCHIVE_WRONG:
            if (!file_now (self)->open || !archive_read_is_torn (&self->reading))
                note_wrong (self);
        }
        self->under_way = false;
        self->next++;
    }
    if (!wanted)
        *body = NULL;
    return code;
}

/* Opening. */

store_code_t archive_history_open (archive_history_t **out, const char *directory,
                                   const archive_place_t *from, int64_t until_ms,
                                   store_error_t *error)
{
    archive_history_t *self = memory_zero (1, sizeof (*self));
    char time[TIME_TEXT_SIZE] = "";
    self->directory = memory_text (directory);
    self->at = *from;
    self->until_ms = until_ms;
    store_code_t code = STORE_OK;
    if (from->wall_ms > until_ms) {
        time_format (time, from->wall_ms);
        code = store_fail (error, STORE_ERROR_FOREIGN,
                           "the backup has what was committed up to %s, which is later than the "
                           "time that is asked for: take an older backup",
                           time);
    } else if (!archive_list (&self->list, directory, from->generation))
        code = store_fail (error, STORE_ERROR_ACCESS, "archive %s: cannot be read: %s", directory,
                           strerror (errno));
    else if (self->list.count == 0)
        code = store_fail (error, STORE_ERROR_FOREIGN,
                           "archive %s: has nothing of the broker that made this backup: name that "
                           "one's, or leave the archive away, and what followed the backup is lost",
                           directory);
    if (code == STORE_OK)
        code = find_upto (self, from->epoch, error);
    if (code == STORE_OK)
        *out = self;
    else
        archive_history_close (&self);
    return code;
}

void archive_history_close (archive_history_t **self_p)
{
    archive_history_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    archive_list_free (&self->list);
    bytes_free (&self->bytes);
    free ((char *) self->directory);
    free (self);
}

store_code_t archive_history_next (archive_history_t *self, batch_t **batch, uint64_t *epoch,
                                   store_error_t *error)
{
    const uint8_t *body;
    size_t bytes;
    journal_head_t head;
    bool newer;
    *batch = NULL;
    store_code_t code = step (self, &body, &bytes, error);
    if (code != STORE_OK || body == NULL)
        return code;
    *batch = journal_decode (body, bytes, &head, &newer);
    *epoch = self->at.epoch;
    if (*batch != NULL)
        return STORE_OK;
    return store_fail (error, newer ? STORE_ERROR_NEWER : STORE_ERROR_CORRUPT, "%s/%s: a batch %s",
                       self->directory, file_now (self)->name,
                       newer ? "was written by a newer version" : "is damaged");
}

const archive_place_t *archive_history_at (const archive_history_t *self)
{
    return &self->at;
}

/* Judging. */

static void say_whole (archive_judge_t *judge, const archive_place_t *from,
                       const archive_place_t *to, int64_t since_ms)
{
    char text[400];
    char first[TIME_TEXT_SIZE] = "";
    char last[TIME_TEXT_SIZE] = "";
    time_format (first, since_ms);
    time_format (last, to->wall_ms);
    snprintf (text, sizeof (text),
              "history %016" PRIx64 ": whole from batch %" PRIu64 " of epoch %" PRIu64
              " (%s) to batch %" PRIu64 " of epoch %" PRIu64 " (%s)",
              from->generation, from->batch + 1, from->epoch, first, to->batch, to->epoch, last);
    judge->say (judge->context, text);
}

/* Walks until something is missing. False: that was the end. */
static bool walk (archive_judge_t *judge, archive_history_t *history, store_error_t *error)
{
    const uint8_t *body;
    size_t bytes;
    archive_place_t from = history->at;
    int64_t since_ms = 0;
    uint64_t batches = 0;
    do {
        error->code = step (history, &body, &bytes, error);
        if (error->code == STORE_OK && body != NULL && batches++ == 0)
            since_ms = history->at.wall_ms;
    } while (error->code == STORE_OK && body != NULL);
    judge->batches += batches;
    if (batches > 0)
        say_whole (judge, &from, &history->at, since_ms);
    return error->code == STORE_ERROR_CORRUPT;
}

/* Goes on behind what is missing, at the next file that can be read. *found: there is one. */
static store_code_t pass_gap (archive_history_t *self, archive_judge_t *judge, bool *found,
                              store_error_t *error)
{
    bool ok = false;
    store_error_t newer;
    char text[ARCHIVE_NAME_SIZE + 32];
    self->done = false;
    self->wrong[0] = '\0';
    *found = false;
    for (; self->next < self->list.count; self->next++) {
        if (!load_now (self))
            return fail_system (self, file_now (self)->name, error);
        if (judge_header (self, &ok, &newer) == STORE_OK && ok)
            break;
        if (is_torn_header (self))
            continue;
        judge->findings++;
        snprintf (text, sizeof (text), "%s: is no segment, or damaged", file_now (self)->name);
        judge->say (judge->context, text);
    }
    self->under_way = *found = ok && self->next < self->list.count;
    if (!*found)
        return STORE_OK;
    self->at = (archive_place_t){self->at.generation, self->reading.header.epoch,
                                 self->reading.header.previous, 0};
    self->wrong[0] = '\0';
    return find_upto (self, self->at.epoch, error);
}

static store_code_t judge_history (archive_judge_t *judge, const char *directory,
                                   const archive_header_t *first, store_error_t *error)
{
    archive_history_t *history;
    const archive_place_t from = {first->generation, first->epoch, first->previous, 0};
    store_code_t code = archive_history_open (&history, directory, &from, INT64_MAX, error);
    if (code != STORE_OK)
        return code;
    bool more;
    code = pass_gap (history, judge, &more, error);
    while (code == STORE_OK && more) {
        more = walk (judge, history, error);
        code = error->code;
        if (!more)
            break;
        judge->findings++;
        judge->say (judge->context, error->text);
        code = pass_gap (history, judge, &more, error);
    }
    archive_history_close (&history);
    return code;
}

store_code_t archive_judge (archive_judge_t *self, const char *directory, store_error_t *error)
{
    archive_list_t list;
    store_code_t code = STORE_OK;
    if (!archive_list (&list, directory, 0))
        return store_fail (error, STORE_ERROR_ACCESS, "archive %s: cannot be read: %s", directory,
                           strerror (errno));
    for (size_t i = 0; i < list.count; i++) {
        const archive_header_t *header = &list.files[i].header;
        self->segments++;
        self->bytes += list.files[i].bytes;
        bool begins = i == 0 || list.files[i - 1].header.generation != header->generation;
        if (begins && code == STORE_OK)
            code = judge_history (self, directory, header, error);
    }
    archive_list_free (&list);
    return code;
}
