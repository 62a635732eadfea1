/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "export/compaction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "core/base/memory.h"

struct compaction {
    line_file_t *old;
    line_file_t new;
    off_t from;     /* the old file is copied up to here */
    off_t reached;  /* where the old file ended when that was reached last; -1: not yet */
    uint64_t lines; /* of the new file */
    char *page;     /* read from the old one */
    size_t page_room;
    bytes_t kept;         /* of the page, to be written */
    standing_t *standing; /* one a line of ours in the page */
    size_t standing_count;
    size_t standing_room;
};

compaction_t *compaction_new (tasks_file_t *file, char error[TASKS_FILE_ERROR_SIZE])
{
    compaction_t *self = memory_zero (1, sizeof (*self));
    self->old = tasks_file_lines (file);
    self->reached = -1;
    char path[4096 + 32];
    snprintf (path, sizeof (path), "%s.new", self->old->path);
    bool good = line_file_open (&self->new, path, error);
    if (good) {
        self->new.length = 0;
        good = line_file_cut (&self->new, error);
    }
    if (!good)
        compaction_free (&self);
    return self;
}

void compaction_free (compaction_t **self_p)
{
    compaction_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->new.fd >= 0)
        unlink (self->new.path);
    line_file_close (&self->new);
    free (self->page);
    free (self->standing);
    bytes_free (&self->kept);
    free (self);
}

uint64_t compaction_lines (const compaction_t *self)
{
    return self->lines;
}

/* The next whole lines of the old file: *length bytes in self->page. */
static bool read_lines (compaction_t *self, size_t *length, char *error)
{
    size_t left = (size_t) (self->old->length - self->from);
    for (size_t wanted = COMPACTION_STEP_BYTES;; wanted *= 2) {
        size_t room = left < wanted ? left : wanted;
        if (room > self->page_room) {
            self->page = memory_resize (self->page, room, 1);
            self->page_room = room;
        }
        if (!line_file_read (self->old, self->from, self->page, room, error))
            return false;
        const char *newline = memrchr (self->page, '\n', room);
        if (newline != NULL) {
            *length = (size_t) (newline - self->page) + 1;
            return true;
        }
        if (room == left || wanted >= COMPACTION_LINE_BYTES_MAX) {
            snprintf (error, TASKS_FILE_ERROR_SIZE, "a line of %s has no end", self->old->path);
            return false;
        }
    }
}

/* Walks the lines of the page. */
static const char *line_next (const char **at, const char *end, size_t *length)
{
    const char *line = *at;
    if (line == end)
        return NULL;
    const char *newline = memchr (line, '\n', (size_t) (end - line));
    *length = (size_t) (newline - line);
    *at = newline + 1;
    return line;
}

static bool ask (compaction_t *self, store_reader_t *reader, size_t length, char *error)
{
    const char *at = self->page;
    size_t line_bytes;
    self->standing_count = 0;
    for (const char *line = line_next (&at, self->page + length, &line_bytes); line != NULL;
         line = line_next (&at, self->page + length, &line_bytes)) {
        tasks_line_t place;
        standing_t standing = {.stands = true}; /* what is none of ours is nobody's to remove */
        if (tasks_line_place (line, line_bytes, &place)) {
            memcpy (standing.ns, place.ns, sizeof (standing.ns));
            standing.id = place.id;
            standing.seq = place.seq;
            standing.stands = false;
        }
        self->standing = memory_grow (self->standing, &self->standing_room, self->standing_count,
                                      sizeof (standing_t));
        self->standing[self->standing_count++] = standing;
    }
    read_t read = {
        .kind = READ_STANDING, .standing = self->standing, .standing_count = self->standing_count};
    bool good = store_reader_run (reader, &read) == STORE_OK;
    if (!good)
        snprintf (error, TASKS_FILE_ERROR_SIZE, "%s", read.error_text);
    read_clear (&read);
    return good;
}

/* Copies the lines of the page: those that stand, or all of them. */
static bool copy (compaction_t *self, size_t length, bool all, char *error)
{
    const char *at = self->page;
    const char *end = self->page + length;
    size_t line_bytes;
    size_t count = 0;
    bytes_clear (&self->kept);
    for (size_t i = 0;; i++) {
        const char *line = line_next (&at, end, &line_bytes);
        if (line == NULL)
            break;
        if (!all && !self->standing[i].stands)
            continue;
        bytes_append (&self->kept, line, line_bytes + 1);
        count++;
    }
    if (self->kept.failed)
        abort (); /* out of memory, as everywhere in the broker */
    if (!line_file_append (&self->new, self->kept.data, self->kept.length, error))
        return false;
    self->lines += count;
    self->from += (off_t) length;
    return true;
}

/* What came since the last line was judged is little and new: it is copied as it is, and the new
 * file takes the name. */
static compaction_result_t finish (compaction_t *self, char *error)
{
    size_t length;
    while (self->from < self->old->length)
        if (!read_lines (self, &length, error) || !copy (self, length, true, error))
            return COMPACTION_FAILED;
    return line_file_replace (self->old, &self->new, error) ? COMPACTION_DONE : COMPACTION_FAILED;
}

compaction_result_t compaction_step (compaction_t *self, store_reader_t *reader,
                                     char error[TASKS_FILE_ERROR_SIZE])
{
    size_t length;
    if (self->reached >= 0 && self->old->length - self->reached <= COMPACTION_STEP_BYTES)
        return finish (self, error);
    self->reached = -1;
    if (self->from < self->old->length &&
        (!read_lines (self, &length, error) || !ask (self, reader, length, error) ||
         !copy (self, length, false, error)))
        return COMPACTION_FAILED;
    if (self->from == self->old->length)
        self->reached = self->from;
    return COMPACTION_GOES_ON;
}
