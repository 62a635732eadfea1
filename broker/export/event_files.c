/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* Failure: what cannot be written is tried again by the caller. A file whose end is none of ours is
 * set aside, and what it had is written again as far as the store has it. */
#include "export/event_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/memory.h"
#include "export/chain_file.h"
#include "export/packer.h"
#include "export/redaction.h"

enum {
    DAY_MS = 24 * 60 * 60 * 1000,
    /* More lines than a file has that cannot be read: behind it numbers go on with a hole. */
    LINES_SKIPPED = 1000000000,
    MEMBERS_BYTES_MAX = CHAIN_LINE_BYTES_MAX - 256 /* with its number, its hash and the mark */
};

struct event_files {
    event_files_options_t options;
    chain_file_t file;
    event_turned_t turned;
    packer_t *packer; /* of a turned file, … */
    char packing[EVENT_TURNED_PATH_SIZE];
    bytes_t plain;       /* an event before it is redacted */
    uint64_t generation; /* of the lines at the end */
    uint64_t pos;        /* … and their last position, with what was added */
    uint64_t written_pos;
    uint64_t written_generation;
    uint64_t first_pos; /* of the present file: its name when it is turned */
    int64_t day;        /* … when it began */
};

static int64_t clock_ms (void)
{
    struct timespec now;
    clock_gettime (CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t today (const event_files_t *self)
{
    return self->options.wall_ms () / DAY_MS;
}

/* Opening. */

/* The chain goes on behind the newest file that was turned. */
static void follow_turned (event_files_t *self, event_files_end_t *end)
{
    char *line;
    size_t length;
    chain_head_t head = {0};
    if (self->turned.count == 0)
        return;
    const event_turned_file_t *newest = &self->turned.files[self->turned.count - 1];
    bool good = event_turned_last (&self->turned, &line, &length) &&
                chain_follow (&head, line, length) && event_line_parse (&end->place, line, length);
    free (line);
    if (good) {
        end->place.generation = newest->generation;
    } else {
        end->place = (event_place_t){0};
        end->damaged = true;
        head = (chain_head_t){.n = newest->n + LINES_SKIPPED};
    }
    chain_file_begin (&self->file, &head);
}

/* What the first and the last line say. False: they are none of ours. */
static bool read_ends (event_files_t *self, const chain_file_end_t *lines, event_files_end_t *end)
{
    event_place_t first;
    if (!event_line_parse (&first, lines->first, strlen (lines->first)) || first.generation == 0 ||
        !event_line_parse (&end->place, lines->last, strlen (lines->last)))
        return false;
    end->place.generation = first.generation;
    self->first_pos = first.pos + 1;
    self->day = first.at / DAY_MS;
    return true;
}

static bool open_files (event_files_t *self, event_files_end_t *end, char *error)
{
    char path[EVENT_TURNED_PATH_SIZE];
    chain_file_end_t lines;
    snprintf (path, sizeof (path), "%s/" EVENT_FILES_NAME, self->options.directory);
    event_turned_read (&self->turned, self->options.directory);
    bool good = chain_file_open (&self->file, path, &lines, error);
    *end = (event_files_end_t){.torn = lines.torn, .damaged = lines.damaged};
    bool whole = good && lines.last != NULL && !lines.damaged;
    if (whole && !read_ends (self, &lines, end)) {
        event_place_t last;
        end->damaged = true;
        end->damaged_first = event_line_parse (&last, lines.last, strlen (lines.last));
        end->place = (event_place_t){0};
        good = line_file_set_aside (&self->file.file, "damaged", error);
        whole = false;
    }
    if (good && !whole) {
        chain_file_begin (&self->file, &(chain_head_t){0});
        bool damaged = end->damaged;
        follow_turned (self, end);
        end->damaged = end->damaged || damaged;
    }
    free (lines.first);
    free (lines.last);
    return good;
}

event_files_t *event_files_open (const event_files_options_t *options, event_files_end_t *end,
                                 char error[LINE_FILE_ERROR_SIZE])
{
    event_files_t *self = memory_zero (1, sizeof (*self));
    self->options = *options;
    self->file.file.fd = -1;
    if (self->options.wall_ms == NULL)
        self->options.wall_ms = clock_ms;
    if (!open_files (self, end, error)) {
        event_files_close (&self);
        return NULL;
    }
    self->generation = self->written_generation = end->place.generation;
    self->pos = self->written_pos = end->place.pos;
    return self;
}

void event_files_close (event_files_t **self_p)
{
    event_files_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    packer_free (&self->packer);
    chain_file_close (&self->file);
    event_turned_free (&self->turned);
    bytes_free (&self->plain);
    redactor_free (&self->options.redactor);
    free (self);
}

const event_turned_t *event_files_turned (const event_files_t *self)
{
    return &self->turned;
}

/* Lines. */

bool event_files_is_empty (const event_files_t *self)
{
    return self->file.file.length == 0 && self->file.waiting.length == 0;
}

void event_files_begin (event_files_t *self, uint64_t generation, uint64_t pos,
                        event_anchor_why_t why)
{
    size_t from = chain_file_line_begin (&self->file);
    event_line_anchor (&self->file.waiting, &(event_anchor_t){.generation = generation,
                                                              .pos = pos,
                                                              .why = why,
                                                              .at = self->options.wall_ms (),
                                                              .before_generation = self->generation,
                                                              .before_pos = self->pos});
    self->generation = generation;
    self->first_pos = pos + 1;
    self->day = today (self);
    self->pos = pos;
    chain_file_line_end (&self->file, from);
}

/* Appends the members of an event. The chain is over what is left of them. */
static void render (event_files_t *self, event_view_t *event, uint64_t pos)
{
    bytes_t *out = &self->file.waiting;
    bytes_t *plain = &self->plain;
    if (self->options.redactor == NULL) {
        event_line_event (out, event, pos, self->generation);
        return;
    }
    size_t from = out->length;
    bytes_clear (plain);
    bytes_append_byte (plain, '{');
    event_line_event (plain, event, pos, self->generation);
    bytes_append_byte (plain, '}');
    redaction_line (self->options.redactor, out, plain, "events.jsonl");
    out->length -= 2; /* without its braces */
    memmove (out->data + from, out->data + from + 1, out->length - from);
}

/* What is replaced may be longer than what it stands for. A line that no reader of the chain would
 * take goes without its texts, and says so. */
void event_files_event (event_files_t *self, event_view_t *event, uint64_t pos)
{
    static const char mark[] = ",\"shortened\":true";
    bytes_t *out = &self->file.waiting;
    size_t from = chain_file_line_begin (&self->file);
    size_t members = out->length;
    render (self, event, pos);
    if (out->length - members > MEMBERS_BYTES_MAX) {
        out->length = members;
        event->message = event->trace = NULL;
        event->labels_count = 0;
        event->progress = (progress_view_t){0};
        render (self, event, pos);
        bytes_append (out, mark, sizeof (mark) - 1);
    }
    chain_file_line_end (&self->file, from);
    self->pos = pos;
}

void event_files_gap (event_files_t *self, uint64_t from, uint64_t to)
{
    size_t line = chain_file_line_begin (&self->file);
    event_line_gap (&self->file.waiting, from, to);
    chain_file_line_end (&self->file, line);
    self->pos = to;
}

size_t event_files_waiting (const event_files_t *self)
{
    return self->file.waiting.length;
}

static void go_back (event_files_t *self)
{
    self->pos = self->written_pos;
    self->generation = self->written_generation;
}

void event_files_forget (event_files_t *self)
{
    chain_file_forget (&self->file);
    go_back (self);
}

const char *event_files_directory (const event_files_t *self)
{
    return self->options.directory;
}

bool event_files_write (event_files_t *self, char error[LINE_FILE_ERROR_SIZE])
{
    bool good = chain_file_write (&self->file, error);
    if (good) {
        self->written_pos = self->pos;
        self->written_generation = self->generation;
    } else {
        go_back (self);
    }
    return good;
}

bool event_files_sync (event_files_t *self, char error[LINE_FILE_ERROR_SIZE])
{
    return chain_file_sync (&self->file, error);
}

/* Files. */

bool event_files_is_due (const event_files_t *self)
{
    return self->file.file.length > 0 &&
           ((uint64_t) self->file.file.length >= self->options.turn_bytes ||
            today (self) > self->day);
}

bool event_files_turn (event_files_t *self, char error[LINE_FILE_ERROR_SIZE])
{
    char path[EVENT_TURNED_PATH_SIZE];
    if (self->file.file.length == 0)
        return true;
    event_turned_path (&self->turned, self->first_pos, path);
    bool good = chain_file_turn (&self->file, path, error);
    event_turned_add (&self->turned, path); /* it may be there even so */
    return good;
}

bool event_files_look_after (event_files_t *self, bool *changed, char error[LINE_FILE_ERROR_SIZE])
{
    *changed = line_file_is_changed (&self->file.file);
    return !*changed || line_file_set_aside (&self->file.file, "foreign", error);
}

size_t event_files_remove (event_files_t *self, bool by_age, size_t *early)
{
    uint64_t length = (uint64_t) self->file.file.length;
    uint64_t bytes = self->options.keep_bytes;
    event_keep_t keep = {by_age ? self->options.wall_ms () - self->options.keep_ms : INT64_MIN,
                         bytes > length ? bytes - length : 0};
    *early = 0;
    /* An empty file has nothing but the ones before to say where it goes on. */
    size_t removed = length == 0 ? 0 : event_turned_remove (&self->turned, &keep, early);
    if (removed > 0)
        packer_free (&self->packer); /* it may be one of them */
    return removed;
}

bool event_files_pack (event_files_t *self, char error[LINE_FILE_ERROR_SIZE])
{
    char path[EVENT_TURNED_PATH_SIZE];
    error[0] = '\0';
    if (self->packer == NULL) {
        if (self->file.file.length == 0 || !event_turned_plain (&self->turned, path))
            return false;
        self->packer = packer_new (path, self->options.free_bytes_min);
        snprintf (self->packing, sizeof (self->packing), "%s", path);
    }
    packer_state_t state = packer_step (self->packer, error);
    if (state == PACKER_MORE)
        return true;
    packer_free (&self->packer);
    if (state == PACKER_DONE)
        event_turned_packed (&self->turned, self->packing);
    return state == PACKER_DONE;
}

void event_files_stats (const event_files_t *self, event_files_stats_t *out)
{
    *out = (event_files_stats_t){.head = self->file.written,
                                 .files = self->turned.count,
                                 .bytes = self->turned.bytes + (uint64_t) self->file.file.length};
}
