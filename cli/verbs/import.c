/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl import: what taskctl export wrote, back into a broker.
 *
 * The file is read twice. First every line is judged, and only where it stands is kept in memory.
 * Then the tasks go to the broker a slice at a time, in the order in which they were made: so a
 * task comes after those that it depends on, and the broker's order is the one there was. What
 * comes through a pipe is put into a file without a name first. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "base/spool.h"
#include "link/connect.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/status.h"
#include "verbs/bodies.h"
#include "verbs/form.h"
#include "verbs/import_line.h"
#include "verbs/record.h"
#include "verbs/verbs.h"

enum {
    LINE_BYTES_MAX = 40 * 1024 * 1024, /* 6 MiB of a task, where each byte is escaped */
    SLICE_TASKS = 128,                 /* of one call */
    SLICE_BYTES = 4 * 1024 * 1024,     /* … of lines: below the library's outbox */
    SLICE_BODIES = 32,                 /* … that are uploaded before it, and those of one more
                                        * task: a broker remembers 256 */
    RETRY_MS_MIN = 50,                 /* what the broker has no room for comes again */
    RETRY_MS_MAX = 2000,
    SHOWN_MAX = 10, /* lines that are told one by one before there is more: broken ones, and those
                       that are refused for one reason */
    REASONS_MAX = 16,
    HEAD_BYTES = 64 /* by which a form is known */
};

/* Where a task stands. */
typedef struct place {
    uint64_t created_at;
    int64_t offset;
    size_t length;
    size_t number; /* of the line, from 1 */
} place_t;

/* Why tasks were refused. */
typedef struct reason {
    int code;
    size_t count;
} reason_t;

typedef struct importing {
    app_t *app;
    const char *name;   /* of the file, for people */
    const char *bodies; /* the directory of what no line takes; or NULL */
    FILE *file;
    place_t *places;
    size_t count;
    size_t room;
    size_t broken; /* lines */
    size_t imported;
    size_t existing;
    size_t differing; /* … with other contents */
    size_t expired;
    size_t requeued;
    size_t redacted;
    size_t redacted_live; /* … of which so many have not ended */
    size_t refused;
    reason_t reasons[REASONS_MAX];
    size_t reasons_count;
    size_t events_left; /* of tasks that were imported: what did not come along */
    size_t kept_left;
    size_t questions_left;
    bool full; /* the broker has had no room for a whole timeout: no more waiting */
    bool lost; /* the broker does not answer any more */
    tally_t tally;
    status_line_t status;
} importing_t;

/* The tasks of one call. */
typedef struct slice {
    import_line_t lines[SLICE_TASKS];
    tmq_import_t tasks[SLICE_TASKS];
    tmq_receipt_t receipts[SLICE_TASKS];
    const place_t *places[SLICE_TASKS];
    size_t count;
} slice_t;

/* Reading. */

/* The file, or what a pipe has in one. 0 or an exit code. */
static int open_file (importing_t *self, const char *path)
{
    struct stat found;
    const bool from_stdin = strcmp (path, "-") == 0;
    self->name = from_stdin ? "standard input" : path;
    const int fd = from_stdin ? dup (STDIN_FILENO) : open (path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat (fd, &found) != 0 || !(self->file = fdopen (fd, "r")))
        return usage_error (self->app, NULL, "cannot read %s: %s", self->name, strerror (errno));
    return 0;
}

/* One line, at most LINE_BYTES_MAX; false: there is none. A longer one has more than that. */
static bool read_line (FILE *file, bytes_t *line)
{
    int c;
    bytes_clear (line);
    while ((c = getc_unlocked (file)) != EOF && c != '\n' && line->length <= LINE_BYTES_MAX)
        bytes_append_byte (line, (uint8_t) c);
    if (line->failed)
        must_grow (NULL, SIZE_MAX, 2); /* ends the program */
    return c != EOF || line->length > 0;
}

static bool is_blank (const bytes_t *line)
{
    for (size_t i = 0; i < line->length; i++)
        if (!strchr (" \t\r", line->data[i]) || !line->data[i])
            return false;
    return true;
}

static void add_place (importing_t *self, const import_line_t *line, int64_t offset, size_t length,
                       size_t number)
{
    if (self->count == self->room) {
        self->room = 2 * self->room + 1024;
        self->places = must_grow (self->places, self->room, sizeof *self->places);
    }
    self->places[self->count++] = (place_t){line->task.created_at, offset, length, number};
    self->requeued += line->status != line->task.status;
    self->redacted += line->redacted;
    self->redacted_live += line->redacted && !tmq_status_terminal (line->status);
}

static bool has_bodies (const importing_t *self, import_line_t *line)
{
    char flaw[BODY_FLAW_SIZE] = "export and import with --bodies DIR bring it along";
    for (size_t i = 0; i < line->bodies_count; i++) {
        const import_body_t *body = &line->bodies[i];
        const int fd = self->bodies ? body_open (self->bodies, &body->blob, flaw) : -1;
        if (fd < 0) {
            snprintf (line->why, sizeof line->why, "%s of %" PRIu64 " bytes: %s", body->what,
                      body->blob.bytes, flaw);
            return false;
        }
        close (fd);
    }
    return true;
}

/* Broken ones are named, up to a few. */
static void judge (importing_t *self, const bytes_t *text, int64_t offset, size_t number)
{
    import_line_t line;
    if (import_line_read (&line, (const char *) text->data, text->length) &&
        has_bodies (self, &line))
        add_place (self, &line, offset, text->length, number);
    else if (++self->broken <= SHOWN_MAX)
        usage_error (self->app, NULL, "line %zu: %s", number, line.why);
    import_line_clear (&line);
}

static int read_error (const importing_t *self)
{
    return code_error (self->app, TMQ_INTERNAL, NULL, "cannot read %s: %s", self->name,
                       strerror (errno));
}

/* Another form is known by its first line. 0 or an exit code. */
static int check_form (const importing_t *self, const bytes_t *line)
{
    char head[HEAD_BYTES + 1];
    snprintf (head, sizeof head, "%.*s",
              (int) (line->length < HEAD_BYTES ? line->length : HEAD_BYTES),
              line->length > 0 ? (const char *) line->data : "");
    const form_t form = form_of (head);
    if (form == FORMS || form == FORM_JSONL)
        return 0;
    return usage_error (self->app, "taskctl export --format jsonl writes what import takes",
                        "%s is of export --format %s: import takes jsonl", self->name,
                        form_name (form));
}

static int no_copy (const importing_t *self)
{
    return code_error (self->app, TMQ_STORE_FULL, "TMPDIR may name another place",
                       "cannot keep what comes in: %s", strerror (errno));
}

/* The first reading. copy: where the lines are kept, or NULL. 0 or an exit code. */
static int judge_all (importing_t *self, FILE *copy)
{
    bytes_t text = BYTES_INIT;
    int64_t offset = 0;
    int code = 0;
    for (size_t number = 1; !code && read_line (self->file, &text); number++) {
        if (number == 1 && (code = check_form (self, &text)))
            break;
        if (text.length > LINE_BYTES_MAX)
            code = code_error (self->app, TMQ_TOO_LARGE, NULL,
                               "line %zu of %s has more than %d bytes: no export writes such a "
                               "line",
                               number, self->name, LINE_BYTES_MAX);
        else if (!is_blank (&text))
            judge (self, &text, offset, number);
        if (copy && !code &&
            (fwrite (text.data, 1, text.length, copy) < text.length || putc ('\n', copy) == EOF))
            code = no_copy (self);
        offset += (int64_t) text.length + 1;
    }
    if (!code && ferror (self->file))
        code = read_error (self);
    if (copy && !code && fflush (copy) == EOF)
        code = no_copy (self);
    bytes_free (&text);
    return code;
}

static int first_reading (importing_t *self)
{
    struct stat found;
    FILE *copy = NULL;
    if (fstat (fileno (self->file), &found) == 0 && S_ISREG (found.st_mode) &&
        ftello (self->file) == 0)
        return judge_all (self, NULL);
    const int fd = spool_make ();
    copy = fd < 0 ? NULL : fdopen (fd, "w+");
    if (!copy)
        return code_error (self->app, TMQ_SYSTEM, "TMPDIR names the place",
                           "cannot make a file: %s", strerror (errno));
    const int code = judge_all (self, copy);
    fclose (self->file);
    self->file = copy;
    return code;
}

/* Oldest first. An export begins with the newest. */
static int compare_places (const void *left, const void *right)
{
    const place_t *a = left;
    const place_t *b = right;
    if (a->created_at != b->created_at)
        return a->created_at < b->created_at ? -1 : 1;
    return a->number > b->number ? -1 : a->number < b->number;
}

/* What is on the line now is what was judged. */
static int read_again (importing_t *self, import_line_t *line, const place_t *place)
{
    char *text = must_alloc (place->length + 1);
    const bool there = fseeko (self->file, (off_t) place->offset, SEEK_SET) == 0 &&
                       fread (text, 1, place->length, self->file) == place->length;
    const bool good = import_line_read (line, text, there ? place->length : 0);
    free (text);
    if (good && line->task.created_at == place->created_at)
        return 0;
    return code_error (self->app, TMQ_INVALID, NULL, "line %zu: %s was changed meanwhile",
                       place->number, self->name);
}

/* Answers. */

/* Whether it is one of the first of its kind, to be told. */
static bool is_told (importing_t *self, int code)
{
    size_t i = 0;
    while (i < self->reasons_count && self->reasons[i].code != code)
        i++;
    if (i == REASONS_MAX)
        return true;
    if (i == self->reasons_count)
        self->reasons[self->reasons_count++] = (reason_t){.code = code};
    return ++self->reasons[i].count <= SHOWN_MAX;
}

static void refuse (importing_t *self, const place_t *place, const tmq_receipt_t *receipt)
{
    char id[37];
    const char *text = *receipt->text ? receipt->text : tmq_code_text (receipt->code);
    tmq_id_format (&receipt->id, id);
    self->refused++;
    if (is_told (self, receipt->code))
        id_error (self->app, receipt->code, id, NULL, "line %zu: %s", place->number, text);
    tally_add (&self->tally, exit_of_code (receipt->code));
}

/* The task is here already: with what the line says? */
static void compare (importing_t *self, const import_line_t *line, const place_t *place)
{
    enum {
        WHOLE = RECORD_PAYLOAD | RECORD_ATTEMPTS | RECORD_TURNS | RECORD_ARTIFACTS | RECORD_EXACT
    };
    record_t record;
    tmq_error_t error = {0};
    bytes_t shown = BYTES_INIT;
    json_writer_t writer = {&shown, false};
    char id[37];
    const char *key = NULL;
    self->existing++;
    if (!tmq_status_terminal (line->status)) { /* it may have gone on since */
        tally_add (&self->tally, EXIT_OK);
        return;
    }
    error.code = record_load (&record, self->app, &line->task.id, WHOLE, &error);
    if (error.code == TMQ_OK) {
        record_write (&writer, self->app, &record);
        bytes_append_byte (&shown, '\0');
        key = import_line_differs (line->object,
                                   (piece_t){(const char *) shown.data, shown.length - 1});
    }
    tmq_id_format (&line->task.id, id);
    if (key) {
        self->existing--;
        self->differing++;
        if (is_told (self, TMQ_CONFLICT))
            id_error (self->app, TMQ_CONFLICT, id, NULL,
                      "line %zu: the task is here already with other contents (%s); nothing of it "
                      "was changed",
                      place->number, key);
        tally_add (&self->tally, exit_of_code (TMQ_CONFLICT));
    } else {
        tally_add (&self->tally,
                   error.code == TMQ_OK ? EXIT_OK : library_error (self->app, &error, id));
    }
    record_clear (&record);
    bytes_free (&shown);
}

static void take_answer (importing_t *self, const slice_t *slice, size_t i)
{
    const tmq_receipt_t *receipt = &slice->receipts[i];
    if (receipt->code == TMQ_OK && receipt->existing) {
        compare (self, &slice->lines[i], slice->places[i]);
    } else if (receipt->code == TMQ_OK) {
        self->imported++;
        self->events_left += slice->lines[i].events;
        self->kept_left += slice->lines[i].kept;
        self->questions_left += slice->lines[i].questions;
        tally_add (&self->tally, EXIT_OK);
    } else if (receipt->code == TMQ_EXPIRED) {
        self->expired++;
    } else {
        const int code = exit_of_code (receipt->code);
        self->lost |= code == EXIT_UNREACHABLE || code == EXIT_UNKNOWN;
        refuse (self, slice->places[i], receipt);
    }
}

/* The second reading. */

static int fill_slice (importing_t *self, slice_t *slice, size_t *next)
{
    size_t bytes = 0;
    size_t bodies = 0;
    int code = 0;
    slice->count = 0;
    while (!code && *next < self->count && slice->count < SLICE_TASKS && bytes < SLICE_BYTES &&
           bodies < SLICE_BODIES) {
        const place_t *place = &self->places[(*next)++];
        import_line_t *line = &slice->lines[slice->count];
        slice->places[slice->count++] = place;
        code = read_again (self, line, place);
        slice->tasks[slice->count - 1] = line->task;
        bytes += place->length;
        bodies += line->bodies_count;
    }
    return code;
}

/* Which ones the broker has no room for now, or whose uploads it forgot at a start. What they
 * depend on may be among them. */
static size_t collect_again (size_t *places, const slice_t *slice)
{
    size_t count = 0;
    bool any = false;
    for (size_t i = 0; i < slice->count; i++) {
        const int code = slice->receipts[i].code;
        const bool full = code == TMQ_LIMIT || code == TMQ_OVERLOADED || code == TMQ_UNAVAILABLE ||
                          code == TMQ_NO_BLOB;
        any |= full;
        if (full || (any && code == TMQ_NOT_FOUND && slice->tasks[i].after_count > 0))
            places[count++] = i;
    }
    return count;
}

/* Its large bodies come before a task. False: one cannot, which the receipt says. */
static bool put_bodies (const importing_t *self, slice_t *slice, size_t i)
{
    const import_line_t *line = &slice->lines[i];
    tmq_receipt_t *receipt = &slice->receipts[i];
    for (size_t k = 0; k < line->bodies_count; k++) {
        tmq_error_t error = {0};
        const int code = body_upload (self->app, self->bodies, &line->bodies[k].blob, &error);
        if (code == TMQ_OK)
            continue;
        *receipt = (tmq_receipt_t){.id = line->task.id, .code = code};
        snprintf (receipt->text, sizeof receipt->text, "%s: %.200s", line->bodies[k].what,
                  error.text);
        return false;
    }
    return true;
}

/* Those at the places, as far as their bodies are there. True: something came in. */
static bool try_some (const importing_t *self, slice_t *slice, const size_t *places, size_t count)
{
    tmq_import_t *tasks = must_alloc (SLICE_TASKS * sizeof *tasks);
    tmq_receipt_t *receipts = must_alloc (SLICE_TASKS * sizeof *receipts);
    size_t *sent = must_alloc (SLICE_TASKS * sizeof *sent);
    size_t ready = 0;
    bool came = false;
    for (size_t i = 0; i < count; i++) {
        if (!put_bodies (self, slice, places[i]))
            continue;
        tasks[ready] = slice->tasks[places[i]];
        sent[ready++] = places[i];
    }
    if (ready > 0)
        tmq_import (receipts, self->app->client, tasks, ready, self->app->timeout_ms, NULL);
    for (size_t i = 0; i < ready; i++) {
        slice->receipts[sent[i]] = receipts[i];
        came |= receipts[i].code == TMQ_OK;
    }
    free (sent);
    free (receipts);
    free (tasks);
    return came;
}

/* What the broker has no room for comes again while some of it gets in, and until a timeout after
 * that. A rate lets it in soon, other limits only when work is done. Repeating is safe. */
static void import_slice (importing_t *self, slice_t *slice)
{
    const app_t *app = self->app;
    size_t *places = must_alloc (SLICE_TASKS * sizeof *places);
    uint64_t pause_ms = RETRY_MS_MIN;
    size_t count = slice->count;
    for (size_t i = 0; i < count; i++)
        places[i] = i;
    try_some (self, slice, places, count);
    uint64_t came_ms = mono_ms ();
    while (!self->full && (count = collect_again (places, slice)) > 0) {
        self->full = mono_ms () + pause_ms >= came_ms + app->timeout_ms;
        if (self->full)
            break;
        nanosleep (
            &(struct timespec){(time_t) (pause_ms / 1000), (long) (pause_ms % 1000) * 1000000},
            NULL);
        const bool came = try_some (self, slice, places, count);
        pause_ms = came ? RETRY_MS_MIN : 2 * pause_ms < RETRY_MS_MAX ? 2 * pause_ms : RETRY_MS_MAX;
        if (came)
            came_ms = mono_ms ();
    }
    free (places);
}

static int import_all (importing_t *self)
{
    slice_t *slice = must_alloc (sizeof *slice);
    size_t next = 0;
    int code = 0;
    if (self->count > 0)
        qsort (self->places, self->count, sizeof *self->places, compare_places);
    status_begin (&self->status, self->app);
    while (!code && !self->lost && next < self->count) {
        const size_t from = next;
        status_show_bar (self->app, from, self->count, "%zu of %zu tasks", from, self->count);
        code = fill_slice (self, slice, &next);
        if (!code)
            import_slice (self, slice);
        status_hide (self->app);
        for (size_t i = 0; !code && i < slice->count; i++)
            take_answer (self, slice, i);
        for (size_t i = 0; i < slice->count; i++)
            import_line_clear (&slice->lines[i]);
    }
    status_end (self->app);
    free (slice);
    if (self->lost)
        note (self->app,
              "%zu tasks were not tried; import the file again: what is here is passed "
              "over",
              self->count - next);
    return code;
}

/* The command. */

static void tell_number (const importing_t *self, size_t number, const char *what)
{
    if (number)
        note (self->app, "%zu %s", number, what);
}

static void write_count (json_writer_t *writer, const char *key, size_t number)
{
    json_write_key (writer, key);
    json_write_uint (writer, number);
}

static void tell (const importing_t *self)
{
    items_t items;
    for (size_t i = 0; i < self->reasons_count; i++)
        if (self->reasons[i].count > SHOWN_MAX)
            note (self->app, "... and %zu more lines: %s", self->reasons[i].count - SHOWN_MAX,
                  tmq_code_text (self->reasons[i].code));
    if (app_wants_json (self->app)) {
        items_begin (&items, self->app, true);
        json_writer_t *writer = items_open (&items);
        json_write_object_begin (writer);
        write_count (writer, "imported", self->imported);
        write_count (writer, "existing", self->existing);
        write_count (writer, "differing", self->differing);
        write_count (writer, "expired", self->expired);
        write_count (writer, "refused", self->refused);
        write_count (writer, "broken", self->broken);
        write_count (writer, "events_left", self->events_left);
        write_count (writer, "late_successes_left", self->kept_left);
        write_count (writer, "questions_left", self->questions_left);
        json_write_object_end (writer);
        items_close (&items);
        items_end (&items, NULL);
    }
    tell_number (self, self->imported, "imported");
    tell_number (self, self->events_left, "of their events stay behind: each has one, imported");
    tell_number (self, self->kept_left, "of their late successes stay behind");
    tell_number (self, self->questions_left, "of their open questions stay behind");
    tell_number (self, self->existing, "here already, passed over");
    tell_number (self, self->differing, "here already with other contents, not changed");
    tell_number (self, self->expired, "not imported: their time to live is over");
    tell_number (self, self->refused, "refused");
    tell_number (self, self->broken, "broken lines passed over");
    if (self->imported == 0 && self->count + self->broken == 0)
        note (self->app, "no tasks");
}

static int judged (const importing_t *self)
{
    const app_t *app = self->app;
    if (self->broken > SHOWN_MAX)
        note (app, "... and %zu more broken lines", self->broken - SHOWN_MAX);
    tell_number (self, self->requeued,
                 "had a worker, which is not here: they wait in their queues");
    tell_number (self, self->redacted,
                 "are redacted: what looked secret in them was replaced when they were exported");
    if (self->broken && !args_has (&app->args, OPT_KEEP_GOING)) {
        note (app, "nothing was imported; --keep-going imports the other lines");
        if (self->redacted)
            note (app, "those that are redacted: export --redact none moves them whole%s",
                  self->redacted_live ? "; --redacted imports them as they are" : "");
        return EXIT_USAGE;
    }
    if (self->redacted_live && !args_has (&app->args, OPT_REDACTED))
        return usage_error (app,
                            "export --redact none moves tasks to another broker; --redacted "
                            "imports these as they are",
                            "%zu of them have not ended: workers would get what stands in place of "
                            "secrets; nothing was imported",
                            self->redacted_live);
    return 0;
}

static int import_file (importing_t *self)
{
    app_t *app = self->app;
    int code = first_reading (self);
    if (!code)
        code = judged (self);
    if (code)
        return code;
    if (args_has (&app->args, OPT_DRY_RUN)) {
        note (app, "%zu task%s fine; nothing was imported", self->count,
              self->count == 1 ? " is" : "s are");
        return self->broken ? EXIT_SOME : 0;
    }
    if ((code = app_connect (app)) || (code = import_all (self)))
        return code;
    tell (self);
    return self->broken ? EXIT_SOME : tally_exit (&self->tally);
}

int run_import (app_t *app)
{
    importing_t self = {.app = app, .bodies = args_text (&app->args, OPT_BODIES)};
    int code = open_file (&self, app->args.operands[0]);
    if (!code)
        code = import_file (&self);
    if (self.file)
        fclose (self.file);
    free (self.places);
    return code;
}
