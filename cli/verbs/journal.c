/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl journal: what a broker's journal.log holds, without a broker. */
#include <inttypes.h>
#include <stdio.h>

#include "base/exit.h"
#include "screen/items.h"
#include "screen/members.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/table.h"
#include "units.h"
#include "verbs/journal_file.h"
#include "verbs/verbs.h"

enum { END_SIZE = 320 };

typedef struct journal {
    app_t *app;
    journal_file_t file;
    journal_log_t log;
    const journal_part_t *commit; /* whose batches are shown */
    table_t *table;
    json_writer_t *writer;
    bool is_damaged;
} journal_t;

static const char *const kind_names[JOURNAL_KINDS] = {"records", "attempts", "removals",
                                                      "event_blocks", "rows"};
static const char *const kind_words[JOURNAL_KINDS][2] = {{"record", "records"},
                                                         {"attempt", "attempts"},
                                                         {"removal", "removals"},
                                                         {"block of events", "blocks of events"},
                                                         {"row", "rows"}};

/* Where the log ends, and why. */

/* The newest write is not there as a whole. *at: of the part that is not, 0 where that is not known
 */
static bool is_cut_short (const journal_t *self, uint64_t *at)
{
    const journal_file_t *file = &self->file;
    const journal_part_t *newest = file->count == 0 ? NULL : &file->parts[file->count - 1];
    const bool lacks_parts = newest != NULL && newest->part + 1 < newest->parts;
    const bool broken =
        file->broken > 0 && (newest == NULL || file->broken_serial > newest->serial ||
                             (lacks_parts && file->broken_serial == newest->serial));
    *at = broken ? file->broken_at : 0;
    return broken || (lacks_parts && newest->last > self->log.last);
}

static const char *end_name (const journal_t *self)
{
    uint64_t at;
    return self->log.gap && !self->log.unsynced ? "missing"
           : self->log.gap                      ? "lost"
           : self->is_damaged                   ? "damaged"
           : is_cut_short (self, &at)           ? "cut_short"
                                                : "end";
}

static void end_text (const journal_t *self, char out[END_SIZE])
{
    const journal_log_t *log = &self->log;
    uint64_t at;
    size_t used = 0;
    if (log->first != 0)
        used = (size_t) snprintf (out, END_SIZE,
                                  "The log has batches %" PRIu64 " to %" PRIu64
                                  " and ends at byte %" PRIu64 ": ",
                                  log->first, log->last, log->ends_at);
    else
        used = (size_t) snprintf (out, END_SIZE, "The log is empty, for the tables have all: ");
    char *rest = out + used;
    const size_t room = END_SIZE - used;
    if (log->gap)
        snprintf (rest, room,
                  "the commit behind batch %" PRIu64 " is %s, and the part at byte %" PRIu64
                  " was written after %s%s.",
                  log->last, log->own ? "not whole" : "missing", log->gap_at,
                  log->own ? "what is missing of it" : "it",
                  log->unsynced ? ". Nothing was synced, so a loss of power does that" : "");
    else if (self->is_damaged)
        snprintf (rest, room, "a commit has a content that is not what it has to be.");
    else if (is_cut_short (self, &at) && at != 0)
        snprintf (rest, room,
                  "the part at byte %" PRIu64
                  " is not whole. A crash cut that commit short, or it is damaged.",
                  at);
    else if (is_cut_short (self, &at))
        snprintf (rest, room,
                  "the last parts of the newest commit are missing. A crash cut it short, or it is "
                  "damaged.");
    else
        snprintf (rest, room, "no commit of this start follows.");
}

/* For people. */

static void show_head (const journal_t *self)
{
    const journal_file_t *file = &self->file;
    const journal_header_t *run = &file->run;
    char all[UNITS_TEXT_SIZE];
    char segment[UNITS_TEXT_SIZE];
    printf ("file      %s in %" PRIu64 " segments of %s, version %" PRIu32 "%s\n",
            size_format (all, file->bytes), file->segments_count,
            size_format (segment, run->segment_bytes), run->version,
            file->is_open ? ", open in a broker" : "");
    printf ("headers   the first is %s, its copy is %s\n",
            file->headers[0].whole ? "whole" : "damaged",
            file->headers[1].whole ? "whole" : "damaged");
    printf ("start     epoch %" PRIu64 " of generation %" PRIu64 ", salt %016" PRIx64 "\n",
            run->epoch, run->generation, run->salt);
    printf ("tables    had all batches up to %" PRIu64 " when the newest part was written\n\n",
            file->written);
}

static void show_segments (const journal_t *self)
{
    static const column_t columns[] = {{"SEGMENT", COLUMN_RIGHT},
                                       {"AT", COLUMN_RIGHT},
                                       {"PARTS", COLUMN_RIGHT},
                                       {"BYTES", COLUMN_RIGHT},
                                       {"BROKEN", COLUMN_RIGHT}};
    table_t *table = table_new (self->app, columns, sizeof columns / sizeof *columns, true);
    for (uint64_t i = 0; i < self->file.segments_count; i++) {
        const journal_segment_t *segment = &self->file.segments[i];
        if (segment->parts == 0 && segment->broken == 0)
            continue;
        table_row (table);
        table_set (table, 0, "%" PRIu64, i);
        table_set (table, 1, "%" PRIu64, i * self->file.run.segment_bytes);
        table_set (table, 2, "%" PRIu64, segment->parts);
        table_set (table, 3, "%" PRIu64, segment->bytes);
        if (segment->broken > 0)
            table_set (table, 4, "%" PRIu64, segment->broken);
    }
    table_end (table);
    printf ("\n");
}

static void content_text (const journal_batch_t *batch, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < JOURNAL_KINDS && used < size; i++)
        if (batch->counts[i] > 0)
            used += (size_t) snprintf (out + used, size - used, "%s%" PRIu64 " %s (%" PRIu64 " B)",
                                       used > 0 ? ", " : "", batch->counts[i],
                                       kind_words[i][batch->counts[i] != 1], batch->sizes[i]);
    if (!batch->whole && used < size)
        snprintf (out + used, size - used, "%sdamaged", used > 0 ? ", " : "");
}

enum { COL_AT, COL_SERIAL, COL_PARTS, COL_STATE, COL_BATCH, COL_TIME, COL_BYTES, COL_CONTENT };

static void show_batch (void *context, const journal_batch_t *batch)
{
    journal_t *self = context;
    char content[256];
    char at[MOMENT_SIZE];
    content_text (batch, content, sizeof content);
    table_row (self->table);
    table_set (self->table, COL_AT, "%" PRIu64, self->commit->at);
    table_set (self->table, COL_SERIAL, "%" PRIu64, self->commit->serial);
    table_set (self->table, COL_PARTS, "%" PRIu32, self->commit->parts);
    table_set (self->table, COL_STATE, "%s",
               journal_in_log (&self->log, self->commit)  ? "log"
               : self->commit->last <= self->file.written ? "tables"
                                                          : "behind");
    table_set (self->table, COL_BATCH, "%" PRIu64, batch->no);
    table_set (self->table, COL_TIME, "%s", moment_text (at, batch->wall_ms));
    table_set (self->table, COL_BYTES, "%" PRIu64, batch->bytes);
    table_set (self->table, COL_CONTENT, "%s", content);
}

/* A commit without a batch, or one that is not there as a whole. */
static void show_part (const journal_t *self, const journal_part_t *part, bool complete)
{
    table_row (self->table);
    table_set (self->table, COL_AT, "%" PRIu64, part->at);
    table_set (self->table, COL_SERIAL, "%" PRIu64, part->serial);
    table_set (self->table, COL_PARTS, "%" PRIu32, part->parts);
    if (complete)
        table_set (self->table, COL_CONTENT, "the tables have all up to %" PRIu64, part->written);
    else
        table_set (self->table, COL_CONTENT, "part %" PRIu32 " alone: the commit is not whole",
                   part->part);
}

static void show_commits (journal_t *self)
{
    static const column_t columns[] = {{"AT", COLUMN_RIGHT},
                                       {"SERIAL", COLUMN_RIGHT},
                                       {"PARTS", COLUMN_RIGHT | COLUMN_YIELDS},
                                       {"IN", COLUMN_LEFT},
                                       {"BATCH", COLUMN_RIGHT},
                                       {"TIME", COLUMN_LEFT | 2 * COLUMN_YIELDS},
                                       {"BYTES", COLUMN_RIGHT},
                                       {"CONTENT", COLUMN_LEFT}};
    self->table = table_new (self->app, columns, sizeof columns / sizeof *columns, true);
    for (size_t i = 0; i < self->file.count; i++) {
        self->commit = &self->file.parts[i];
        const bool complete = journal_is_complete (&self->file, i);
        if (!complete || self->commit->batches == 0)
            show_part (self, self->commit, complete);
        else if (!journal_batches (&self->file, i, show_batch, self))
            self->is_damaged = true;
        i += complete ? self->commit->parts - 1 : 0;
    }
    table_fit (self->table);
    table_end (self->table);
}

static void show (journal_t *self)
{
    char end[END_SIZE];
    show_head (self);
    show_segments (self);
    show_commits (self);
    end_text (self, end);
    printf ("\n%s\n", end);
}

/* As JSON. */

static void write_batch (void *context, const journal_batch_t *batch)
{
    journal_t *self = context;
    json_writer_t *writer = self->writer;
    json_write_object_begin (writer);
    member_uint (writer, "batch", batch->no);
    member_uint (writer, "previous", batch->previous);
    member_time (writer, "at", batch->wall_ms);
    member_uint (writer, "bytes", batch->bytes);
    json_write_key (writer, "whole");
    json_write_bool (writer, batch->whole);
    for (size_t i = 0; i < JOURNAL_KINDS; i++) {
        json_write_key (writer, kind_names[i]);
        json_write_object_begin (writer);
        member_uint (writer, "count", batch->counts[i]);
        member_uint (writer, "bytes", batch->sizes[i]);
        json_write_object_end (writer);
    }
    json_write_object_end (writer);
}

static void write_commit (journal_t *self, size_t index)
{
    const journal_part_t *part = &self->file.parts[index];
    json_writer_t *writer = self->writer;
    const bool complete = journal_is_complete (&self->file, index);
    json_write_object_begin (writer);
    member_uint (writer, "offset", part->at);
    member_uint (writer, "serial", part->serial);
    member_uint (writer, "part", part->part);
    member_uint (writer, "parts", part->parts);
    member_uint (writer, "first", part->first);
    member_uint (writer, "last", part->last);
    member_uint (writer, "previous", part->previous);
    member_uint (writer, "written", part->written);
    json_write_key (writer, "synced");
    json_write_bool (writer, !part->unsynced);
    json_write_key (writer, "complete");
    json_write_bool (writer, complete);
    json_write_key (writer, "in_log");
    json_write_bool (writer, journal_in_log (&self->log, part));
    json_write_key (writer, "batches");
    json_write_array_begin (writer);
    if (complete && part->batches > 0 && !journal_batches (&self->file, index, write_batch, self))
        self->is_damaged = true;
    json_write_array_end (writer);
    json_write_object_end (writer);
}

static void write_head (journal_t *self)
{
    const journal_header_t *run = &self->file.run;
    json_writer_t *writer = self->writer;
    char salt[17];
    snprintf (salt, sizeof salt, "%016" PRIx64, run->salt);
    member_uint (writer, "bytes", self->file.bytes);
    member_uint (writer, "version", run->version);
    member_uint (writer, "segment_bytes", run->segment_bytes);
    member_uint (writer, "generation", run->generation);
    member_uint (writer, "epoch", run->epoch);
    member_text (writer, "salt", salt);
    json_write_key (writer, "headers_whole");
    json_write_array_begin (writer);
    json_write_bool (writer, self->file.headers[0].whole);
    json_write_bool (writer, self->file.headers[1].whole);
    json_write_array_end (writer);
    json_write_key (writer, "open");
    json_write_bool (writer, self->file.is_open);
    member_uint (writer, "written", self->file.written);
}

static void write_segments (journal_t *self)
{
    json_writer_t *writer = self->writer;
    json_write_key (writer, "segments");
    json_write_array_begin (writer);
    for (uint64_t i = 0; i < self->file.segments_count; i++) {
        const journal_segment_t *segment = &self->file.segments[i];
        json_write_object_begin (writer);
        member_uint (writer, "parts", segment->parts);
        member_uint (writer, "bytes", segment->bytes);
        member_uint (writer, "broken", segment->broken);
        json_write_object_end (writer);
    }
    json_write_array_end (writer);
}

static void write_log (journal_t *self)
{
    const journal_log_t *log = &self->log;
    json_writer_t *writer = self->writer;
    char end[END_SIZE];
    end_text (self, end);
    json_write_key (writer, "log");
    json_write_object_begin (writer);
    member_uint (writer, "commits", log->commits);
    member_uint (writer, "first", log->first);
    member_uint (writer, "last", log->last);
    member_uint (writer, "offset", log->ends_at);
    member_text (writer, "end", end_name (self));
    member_text (writer, "message", end);
    json_write_object_end (writer);
}

static void write (journal_t *self)
{
    items_t items;
    items_begin (&items, self->app, true);
    self->writer = items_open (&items);
    json_write_object_begin (self->writer);
    write_head (self);
    write_segments (self);
    json_write_key (self->writer, "commits");
    json_write_array_begin (self->writer);
    for (size_t i = 0; i < self->file.count; i++) {
        write_commit (self, i);
        i += journal_is_complete (&self->file, i) ? self->file.parts[i].parts - 1 : 0;
    }
    json_write_array_end (self->writer);
    write_log (self);
    json_write_object_end (self->writer);
    items_close (&items);
    items_end (&items, NULL);
}

/* What is read of a file that a broker writes is of several moments: what seems to be wrong with it
 * is read anew, so many times. */
enum { READS_MAX = 10 };

static void pass_over (void *context, const journal_batch_t *batch)
{
    (void) context;
    (void) batch;
}

static bool seems_good (const journal_t *self)
{
    if (self->log.gap && !self->log.unsynced)
        return false;
    for (size_t i = 0; i < self->file.count; i++) {
        if (!journal_is_complete (&self->file, i) || self->file.parts[i].batches == 0)
            continue;
        if (!journal_batches (&self->file, i, pass_over, NULL))
            return false;
        i += self->file.parts[i].parts - 1;
    }
    return true;
}

static bool open_good (journal_t *self, const char *path, char why[JOURNAL_WHY_SIZE],
                       bool *is_damaged)
{
    for (int reads = 1;; reads++) {
        if (!journal_open (&self->file, path, why, is_damaged))
            return false;
        journal_find_log (&self->log, &self->file);
        if (!self->file.is_open || reads == READS_MAX || seems_good (self))
            return true;
        journal_close (&self->file);
    }
}

static int journal_show (app_t *app)
{
    journal_t self = {.app = app};
    const char *path = app->args.operands[1];
    char why[JOURNAL_WHY_SIZE];
    bool is_damaged;
    if (!open_good (&self, path, why, &is_damaged))
        return is_damaged ? code_error (app, TMQ_SYSTEM, "taskmqd --check", "%s %s", path, why)
                          : usage_error (app, "the file journal.log in a broker's directory",
                                         "%s %s", path, why);
    if (app_wants_json (app))
        write (&self);
    else
        show (&self);
    if (self.file.is_open)
        note (app, "a broker writes this file: what is shown is of a moment");
    const bool good = !self.is_damaged && (!self.log.gap || self.log.unsynced);
    if (!good)
        note (app, "taskmqd --check compares the journal with the tables");
    journal_close (&self.file);
    return good ? EXIT_OK : EXIT_OTHER;
}

const verb_t journal_verbs[] = {{"show", "FILE", 1, 1, journal_show}, {.name = NULL}};
