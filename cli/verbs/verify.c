/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The record of deeds and the events are a chain each (chain.h). Files of events are read in the
 * order of their first lines, because a name says where a file begins in a history, and a database
 * may have had several. */
#include "verbs/verify.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"
#include "chain.h"
#include "packed.h"
#include "screen/items.h"
#include "screen/output.h"
#include "trust.h"
#include "verbs/verbs.h"

enum { PATH_SIZE = 4096, AUDIT = 0, EVENTS = 1, CHAINS = 2 };
enum { GAP_TEXT_SIZE = 512, FORM_LINES = 8 };
enum { TRIES = 20, AGAIN = -1 }; /* while the broker turns and packs files */

static const char *const names[CHAINS] = {"audit", "events"};

typedef struct part {
    char *path;
    bool listed;          /* found in a directory, named by nobody */
    uint64_t first_n;     /* number of its first line; 0: it has none */
    uint64_t first_place; /* where it begins among all lines, from 0 */
    bool empty;           /* not even the line that begins a file stands in it */
} part_t;

/* A line that says itself that lines before it are not there, or not what they were. */
typedef struct gap {
    uint64_t n;
    uint64_t missing_from; /* so do the numbers: from this one on; 0: they do not */
    char text[GAP_TEXT_SIZE];
    bool held;   /* by the line before: the chain itself goes on */
    bool untold; /* … and nothing in it says why something is not there */
    bool accepted;
} gap_t;

/* How far the events are told, by their positions in the history of the database. */
typedef struct told {
    bool begun;
    uint64_t pos;
    char generation[24];
} told_t;

typedef struct chain {
    part_t *parts; /* in their order */
    size_t count;
    gap_t *gaps;
    size_t gaps_count;
    size_t open_gaps; /* … that are not accepted */
    told_t told;      /* of events */
    size_t empty;     /* files */
    bool inside;      /* its first line begins no file */
    bool torn;        /* the last line of the last file is half written */
    chain_check_t check;
} chain_t;

typedef struct verify {
    const app_t *app;
    const char *directory; /* all of it; NULL: what the operands say */
    char *problem;         /* of VERIFY_TEXT_SIZE: what cannot be read; NULL: it is printed */
    int tries;             /* before this one */
    chain_t chains[CHAINS];
} verify_t;

/* Which files. */

static bool is_events (const char *path)
{
    const char *slash = strrchr (path, '/');
    return strncmp (slash != NULL ? slash + 1 : path, "events", strlen ("events")) == 0;
}

static void add_file (verify_t *self, const char *path, bool listed)
{
    chain_t *chain = &self->chains[is_events (path) ? EVENTS : AUDIT];
    chain->parts = must_grow (chain->parts, chain->count + 1, sizeof *chain->parts);
    chain->parts[chain->count++] = (part_t){.path = must_copy (path), .listed = listed};
}

/* The stem of NAME.jsonl, NAME-NUMBER.jsonl, and of events NAME-NUMBER-NUMBER.jsonl, packed or not;
 * 0: it is none of these. */
static size_t stem_of (const char *name)
{
    const size_t stem = strcspn (name, "-.");
    const bool ours = (stem == 5 && strncmp (name, "audit", stem) == 0) ||
                      (stem == 6 && strncmp (name, "events", stem) == 0);
    const size_t length = stem + strspn (name + stem, "-0123456789");
    const char *ending = name + length;
    return ours && (strcmp (ending, ".jsonl") == 0 || strcmp (ending, ".jsonl" PACKED_ENDING) == 0)
               ? length
               : 0;
}

/* The number of a turned file; the open one is the newest. */
static unsigned long long number_of (const char *stem)
{
    const char *digits = strchr (stem, '-');
    return digits != NULL ? strtoull (digits + 1, NULL, 10) : ULLONG_MAX;
}

static int compare_stems (const void *a, const void *b)
{
    const char *left = *(char *const *) a;
    const char *right = *(char *const *) b;
    const unsigned long long left_number = number_of (left);
    const unsigned long long right_number = number_of (right);
    if (left_number != right_number)
        return left_number > right_number ? 1 : -1;
    return strcmp (left, right);
}

/* Some stand there twice. */
static size_t scan_stems (char ***stems, size_t count, const char *directory)
{
    DIR *entries = opendir (directory);
    for (const struct dirent *entry; entries != NULL && (entry = readdir (entries)) != NULL;) {
        const size_t length = stem_of (entry->d_name);
        if (length == 0)
            continue;
        *stems = must_grow (*stems, count + 1, sizeof **stems);
        (*stems)[count] = must_copy (entry->d_name);
        (*stems)[count++][length] = '\0';
    }
    if (entries != NULL)
        closedir (entries);
    return count;
}

/* Plain, or else packed: while a file is there in both forms, they are the same. */
static bool add_present (verify_t *self, const char *directory, const char *stem)
{
    char path[PATH_SIZE + 256];
    snprintf (path, sizeof path, "%s/%s.jsonl", directory, stem);
    if (access (path, F_OK) != 0)
        snprintf (path, sizeof path, "%s/%s.jsonl" PACKED_ENDING, directory, stem);
    const bool present = access (path, F_OK) == 0;
    if (present)
        add_file (self, path, true);
    return present;
}

/* Two looks: to one of them a file that is packed meanwhile may show neither name. */
static int add_directory (verify_t *self, const char *directory)
{
    char **stems = NULL;
    bool any = false;
    size_t count = scan_stems (&stems, 0, directory);
    count = scan_stems (&stems, count, directory);
    if (count > 0)
        qsort (stems, count, sizeof *stems, compare_stems);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp (stems[i], stems[i - 1]) != 0)
            any = add_present (self, directory, stems[i]) || any;
    for (size_t i = 0; i < count; i++)
        free (stems[i]);
    free (stems);
    if (any)
        return EXIT_OK;
    return code_error (self->app, TMQ_NOT_FOUND, NULL,
                       "%s holds neither audit.jsonl nor events.jsonl", directory);
}

/* The nearest .taskmq upward, as the library looks for one. */
static int add_nearest (verify_t *self)
{
    char path[PATH_SIZE];
    char *working = realpath (".", NULL);
    snprintf (path, sizeof path, "%s", working != NULL ? working : "");
    free (working);
    size_t length = strlen (path);
    while (length > 0) {
        struct stat status;
        snprintf (path + length, sizeof path - length, "/.taskmq");
        if (stat (path, &status) == 0 && S_ISDIR (status.st_mode) &&
            trust_directory (&status, false) == TRUST_GOOD)
            return add_directory (self, path);
        path[length] = '\0';
        const char *slash = strrchr (path, '/');
        length = slash != NULL ? (size_t) (slash - path) : 0;
        path[length] = '\0';
    }
    return usage_error (self->app, "taskctl audit verify DIR",
                        "there is no .taskmq upward from here: name the files");
}

static int find_files (verify_t *self)
{
    const args_t *args = &self->app->args;
    if (self->directory)
        return add_directory (self, self->directory);
    if (args->operands_count == 1)
        return add_nearest (self);
    int code = EXIT_OK;
    for (size_t i = 1; code == EXIT_OK && i < args->operands_count; i++) {
        struct stat status;
        if (stat (args->operands[i], &status) == 0 && S_ISDIR (status.st_mode))
            code = add_directory (self, args->operands[i]);
        else
            add_file (self, args->operands[i], false);
    }
    return code;
}

/* Reading. */

static void drop_files (verify_t *self)
{
    for (int i = 0; i < CHAINS; i++) {
        for (size_t k = 0; k < self->chains[i].count; k++)
            free (self->chains[i].parts[k].path);
        free (self->chains[i].parts);
        free (self->chains[i].gaps);
    }
}

static bool has_part (const chain_t *chain, const char *path)
{
    size_t i = 0;
    while (i < chain->count && strcmp (chain->parts[i].path, path) != 0)
        i++;
    return i < chain->count;
}

/* What was read was not there all at one time: the broker turned, packed or removed a file. */
static bool is_outdated (const verify_t *self)
{
    verify_t now = {.app = self->app, .directory = self->directory};
    bool same = self->tries + 1 >= TRIES || find_files (&now) == EXIT_OK;
    for (int i = 0; self->tries + 1 < TRIES && i < CHAINS; i++) {
        same = same && now.chains[i].count == self->chains[i].count;
        for (size_t k = 0; same && k < now.chains[i].count; k++)
            same = has_part (&self->chains[i], now.chains[i].parts[k].path);
    }
    drop_files (&now);
    return !same;
}

/* A mistake of the command is one of usage; else it speaks against the record. */
__attribute__ ((format (printf, 3, 4))) static int tell_problem (const verify_t *self, bool usage,
                                                                 const char *format, ...)
{
    char text[VERIFY_TEXT_SIZE];
    va_list list;
    va_start (list, format);
    vsnprintf (text, sizeof text, format, list);
    va_end (list);
    if (self->problem) {
        memcpy (self->problem, text, sizeof text);
        return EXIT_OTHER;
    }
    return usage ? usage_error (self->app, NULL, "%s", text)
                 : code_error (self->app, TMQ_SYSTEM, NULL, "%s", text);
}

static int cannot_read (const verify_t *self, const part_t *part, uint64_t lines)
{
    const int reason = errno;
    if (is_outdated (self))
        return AGAIN;
    /* What should be whole and is not speaks against the record, not against the command. */
    if (reason == EBADMSG || reason == EFBIG)
        return lines ? tell_problem (self, false, "%s: behind line %" PRIu64 ": %s", part->path,
                                     lines, packed_problem (reason))
                     : tell_problem (self, false, "%s: from its beginning on: %s", part->path,
                                     packed_problem (reason));
    return tell_problem (self, true, "cannot read %s: %s", part->path, packed_problem (reason));
}

/* What a directory has in place of a file would be waited for: a pipe. NULL: it was told, *code. */
static packed_t *open_part (const verify_t *self, const part_t *part, int *code)
{
    struct stat status;
    const bool is_file =
        !part->listed || stat (part->path, &status) != 0 || S_ISREG (status.st_mode);
    packed_t *file = is_file ? packed_open (part->path, false) : NULL;
    if (file == NULL)
        *code = is_file
                    ? cannot_read (self, part, 0)
                    : tell_problem (self, true,
                                    "cannot read %s: it is no regular file (a pipe is read when "
                                    "it is named)",
                                    part->path);
    return file;
}

/* The number of the file's first line. */
static int read_first (const verify_t *self, part_t *part)
{
    chain_head_t head;
    const char *line;
    size_t length;
    bool whole;
    int code = EXIT_OK;
    packed_t *file = open_part (self, part, &code);
    if (file == NULL)
        return code;
    const int got = packed_line (file, &line, &length, &whole);
    if (got > 0 && chain_follow (&head, line, length))
        part->first_n = head.n;
    code = got < 0 ? cannot_read (self, part, 0) : EXIT_OK;
    packed_close (&file);
    return code;
}

static int compare_parts (const void *a, const void *b)
{
    const uint64_t left = ((const part_t *) a)->first_n;
    const uint64_t right = ((const part_t *) b)->first_n;
    return (left > right) - (left < right);
}

static int sort_parts (const verify_t *self, chain_t *chain)
{
    int code = EXIT_OK;
    for (size_t i = 0; code == EXIT_OK && i < chain->count; i++)
        code = read_first (self, &chain->parts[i]);
    if (code == EXIT_OK && chain->count > 0)
        qsort (chain->parts, chain->count, sizeof *chain->parts, compare_parts);
    return code;
}

/* What a line says about those before it. */

/* Where what was set aside lies; "": nobody knows. */
static void aside_text (const part_t *part, char *out, size_t size)
{
    char path[PATH_SIZE + 64];
    const char *slash = strrchr (part->path, '/');
    const int directory = slash ? (int) (slash - part->path) + 1 : 0;
    static const char *const endings[] = {"foreign", "damaged"};
    *out = '\0';
    for (size_t i = 0; i < sizeof endings / sizeof *endings && !*out; i++) {
        snprintf (path, sizeof path, "%.*s%s.jsonl.%s", directory, part->path,
                  names[is_events (part->path) ? EVENTS : AUDIT], endings[i]);
        if (access (path, F_OK) == 0)
            snprintf (out, size, "; what was set aside is in %.300s", path);
    }
}

static const char *member_text (const json_t *object, const char *key)
{
    const char *text = json_string_value (json_object_get (object, key));
    return text ? text : "";
}

/* True: an anchor of events, or a line of the record, that tells of a gap: out says of which. */
static bool tells_gap (const json_t *object, bool events, char *out, size_t size)
{
    const char *kind = member_text (object, "kind");
    const char *what = member_text (object, events ? "why" : "outcome");
    const bool changed = strcmp (what, "changed") == 0;
    if (strcmp (kind, events ? "anchor" : "audit.gap") != 0 ||
        (!changed && (events || strcmp (what, "missing") != 0)))
        return false;
    snprintf (out, size, "%.200s",
              changed ? "the file before was taken away or changed by hand"
                      : member_text (object, "detail"));
    return true;
}

static bool is_accepted (const verify_t *self, bool events, uint64_t n)
{
    const args_t *args = &self->app->args;
    char text[40];
    snprintf (text, sizeof text, "%s:%" PRIu64, names[events ? EVENTS : AUDIT], n);
    for (size_t i = 0; !self->directory && i < args_count (args, OPT_ACCEPT); i++)
        if (strcmp (args_nth (args, OPT_ACCEPT, i)->text, text) == 0)
            return true;
    return false;
}

/* Line n is what comes next, and holds what was before. */
static bool follows (const chain_check_t *check, uint64_t n, const char *line, size_t length)
{
    enum { END = 2, TEXT = CHAIN_HASH_TEXT_SIZE - 1 };
    uint8_t prev[CHAIN_HASH_BYTES];
    return check->place > 0 && n == check->head.n + 1 && length > END + TEXT &&
           chain_hash_parse (prev, line + length - END - TEXT, TEXT) &&
           memcmp (prev, check->head.hash, sizeof prev) == 0;
}

static void add_gap (const verify_t *self, chain_t *chain, const part_t *part, uint64_t n,
                     const char *why, bool held)
{
    char aside[400];
    const bool events = chain == &self->chains[EVENTS];
    const uint64_t next = chain->check.head.n + 1;
    chain->gaps = must_grow (chain->gaps, chain->gaps_count + 1, sizeof *chain->gaps);
    gap_t *gap = &chain->gaps[chain->gaps_count++];
    *gap = (gap_t){.n = n,
                   .missing_from = chain->check.place > 0 && next < n ? next : 0,
                   .held = held,
                   .accepted = is_accepted (self, events, n)};
    *aside = '\0';
    if (!held)
        aside_text (part, aside, sizeof aside);
    snprintf (gap->text, sizeof gap->text, "%.200s%.300s", why, aside);
    chain->open_gaps += !gap->accepted;
}

/* Events that are not there, up to this one. */
static void add_hole (const verify_t *self, chain_t *chain, const part_t *part, uint64_t n,
                      uint64_t from, uint64_t to, bool untold)
{
    char why[GAP_TEXT_SIZE];
    snprintf (why, sizeof why,
              untold ? "the events from %" PRIu64 " to %" PRIu64 " (by their pos) are not there"
                     : "the database had lost or forgotten the events from %" PRIu64 " to %" PRIu64
                       " (by their pos)",
              from, to);
    add_gap (self, chain, part, n, why, true);
    chain->gaps[chain->gaps_count - 1].untold = untold;
}

/* The number behind a key that stands there, and the rest; NULL: it does not. */
static const char *number_behind (const char *text, const char *key, uint64_t *out)
{
    char *end;
    if (!text || strncmp (text, key, strlen (key)) != 0)
        return NULL;
    *out = strtoull (text + strlen (key), &end, 10);
    return end > text + strlen (key) ? end : NULL;
}

/* A file begins: where, and in which history. */
static void look_at_anchor (const verify_t *self, chain_t *chain, const part_t *part, uint64_t n,
                            const char *line, size_t length)
{
    told_t *told = &chain->told;
    json_t *object = json_loadb (line, length, 0, NULL);
    const char *generation = member_text (object, "generation");
    const uint64_t pos = (uint64_t) json_integer_value (json_object_get (object, "pos"));
    const bool same = told->begun && strcmp (told->generation, generation) == 0;
    /* Of what was taken away the anchor itself tells. */
    if (same && pos > told->pos && strcmp (member_text (object, "why"), "changed") != 0)
        add_hole (self, chain, part, n, told->pos + 1, pos, true);
    told->begun = true;
    told->pos = pos;
    snprintf (told->generation, sizeof told->generation, "%.20s", generation);
    json_decref (object);
}

/* Each event stands there once, one position behind the other, or is told as a gap. Behind the line
 * there is a newline. */
static void look_at_place (const verify_t *self, chain_t *chain, const part_t *part,
                           const char *line, size_t length)
{
    uint64_t n;
    uint64_t pos;
    uint64_t from;
    told_t *told = &chain->told;
    const char *kind = number_behind (number_behind (line, "{\"n\":", &n), ",\"pos\":", &pos);
    if (!kind)
        return; /* no line of ours; the chain says so */
    if (strncmp (kind, ",\"kind\":\"anchor\"", strlen (",\"kind\":\"anchor\"")) == 0) {
        look_at_anchor (self, chain, part, n, line, length);
        return;
    }
    if (number_behind (kind, ",\"kind\":\"gap\",\"from\":", &from))
        add_hole (self, chain, part, n, from, pos, false);
    else if (told->begun && pos > told->pos + 1)
        add_hole (self, chain, part, n, told->pos + 1, pos - 1, true);
    told->begun = true;
    told->pos = pos;
}

/* Looks at a line before it is checked. first: of its file. */
static void look_at_line (const verify_t *self, chain_t *chain, const part_t *part,
                          const char *line, size_t length, bool first)
{
    static const char mark[] = "\"kind\":\"audit.gap\"";
    const bool events = chain == &self->chains[EVENTS];
    chain_head_t head;
    char why[GAP_TEXT_SIZE];
    if (!(first || (!events && memmem (line, length, mark, sizeof mark - 1))) ||
        !chain_follow (&head, line, length))
        return;
    json_t *object = json_loadb (line, length, 0, NULL);
    const bool gap = tells_gap (object, events, why, sizeof why);
    const char *kind = member_text (object, "kind");
    if (chain->check.place == 0)
        chain->inside =
            head.n > 1 && !gap && strcmp (kind, events ? "anchor" : "audit.turned") != 0;
    const bool holds = follows (&chain->check, head.n, line, length);
    if (gap && (!holds || strcmp (member_text (object, "outcome"), "missing") == 0))
        add_gap (self, chain, part, head.n, why, holds);
    if (gap && !holds)
        chain_check_anew (&chain->check);
    json_decref (object);
}

/* Whether one of the first lines of a file is a line of a chain; looked: how many were. */
static void look_at_form (const char *line, size_t length, int *looked, bool *ours)
{
    chain_head_t head;
    if (!*ours && (*looked)++ < FORM_LINES)
        *ours = chain_follow (&head, line, length);
}

static int read_lines (const verify_t *self, chain_t *chain, size_t index)
{
    part_t *part = &chain->parts[index];
    const char *line;
    size_t length;
    bool whole;
    bool ours = false;
    int looked = 0;
    int got;
    int code = EXIT_OK;
    packed_t *file = open_part (self, part, &code);
    part->first_place = chain->check.place;
    if (file == NULL)
        return code;
    while ((got = packed_line (file, &line, &length, &whole)) > 0) {
        chain->torn = !whole;
        if (!whole && index + 1 == chain->count)
            continue;
        look_at_form (line, length, &looked, &ours);
        look_at_line (self, chain, part, line, length, chain->check.place == part->first_place);
        if (chain == &self->chains[EVENTS] && whole && length <= PACKED_LINE_MAX)
            look_at_place (self, chain, part, line, length);
        chain_check_line (&chain->check, line, length);
    }
    part->empty = got == 0 && chain->check.place == part->first_place && !chain->torn;
    chain->empty += part->empty;
    code = got < 0 ? cannot_read (self, part, chain->check.place - part->first_place) : EXIT_OK;
    packed_close (&file);
    if (code == EXIT_OK && looked > 0 && !ours)
        code = tell_problem (self, true, "%s is no chain of taskmq: no line in it is of one",
                             part->path);
    return code;
}

/* Telling. */

/* "FILE:LINE" of a place. */
static void place_text (const chain_t *chain, uint64_t place, char *out, size_t size)
{
    size_t index = 0;
    while (index + 1 < chain->count && chain->parts[index + 1].first_place < place)
        index++;
    snprintf (out, size, "%s:%" PRIu64, chain->parts[index].path,
              place - chain->parts[index].first_place);
}

static void fault_text (const chain_t *chain, char *out, size_t size)
{
    const chain_check_t *check = &chain->check;
    char place[PATH_SIZE + 64];
    char to[PATH_SIZE + 64];
    place_text (chain, check->fault_place, place, sizeof place);
    place_text (chain, check->moved_to, to, sizeof to);
    switch (check->fault) {
    case CHAIN_GOOD: out[0] = '\0'; break;
    case CHAIN_CHANGED:
        snprintf (out, size,
                  check->alien ? "%s: line %" PRIu64 " was not written by a broker"
                               : "%s: line %" PRIu64 " was changed",
                  place, check->fault_n);
        break;
    case CHAIN_MISSING:
        snprintf (out, size, "%s: line %" PRIu64 " is missing here", place, check->fault_n);
        break;
    case CHAIN_MOVED:
        snprintf (out, size, "%s: line %" PRIu64 " is not here, but at %s", place, check->fault_n,
                  to);
        break;
    case CHAIN_REPEATED:
        snprintf (out, size, "%s: line %" PRIu64 " stands here again", place, check->fault_n);
        break;
    case CHAIN_HEADLESS:
        snprintf (out, size,
                  "no line has this head: the record ends before it, or was written anew");
        break;
    }
}

/* The broker writes into a file what begins it before anything else. */
static void empty_text (const part_t *part, char *out, size_t size)
{
    snprintf (
        out, size,
        "%s is empty: its lines were removed, or the broker that began it was ended before the "
        "first",
        part->path);
}

static void write_empty (json_writer_t *writer, const chain_t *chain)
{
    json_write_key (writer, "empty");
    json_write_array_begin (writer);
    for (size_t i = 0; i < chain->count; i++)
        if (chain->parts[i].empty)
            json_write_text (writer, chain->parts[i].path);
    json_write_array_end (writer);
}

/* "line 142 begins anew: …" */
static void gap_text (const gap_t *gap, char *out, size_t size)
{
    char missing[80] = "";
    if (gap->missing_from)
        snprintf (missing, sizeof missing,
                  " behind lines %" PRIu64 " to %" PRIu64 ", which are not there",
                  gap->missing_from, gap->n - 1);
    snprintf (out, size, "line %" PRIu64 " %s%s: %s", gap->n,
              gap->untold ? "stands behind a hole"
              : gap->held ? "tells of a loss"
                          : "begins anew",
              missing, gap->text);
}

static void write_gaps (json_writer_t *writer, const chain_t *chain)
{
    json_write_key (writer, "gaps");
    json_write_array_begin (writer);
    for (size_t i = 0; i < chain->gaps_count; i++) {
        char text[GAP_TEXT_SIZE + 128];
        gap_text (&chain->gaps[i], text, sizeof text);
        json_write_object_begin (writer);
        json_write_key (writer, "n");
        json_write_uint (writer, chain->gaps[i].n);
        json_write_key (writer, "accepted");
        json_write_bool (writer, chain->gaps[i].accepted);
        json_write_key (writer, "message");
        json_write_text (writer, text);
        json_write_object_end (writer);
    }
    json_write_array_end (writer);
}

static void write_chain (json_writer_t *writer, const chain_t *chain, const char *name,
                         const char *fault)
{
    const chain_check_t *check = &chain->check;
    static const char *const faults[] = {NULL, "changed", "missing", "moved", "repeated", "head"};
    char hash[CHAIN_HASH_TEXT_SIZE];
    chain_hash_format (hash, check->head.hash);
    json_write_object_begin (writer);
    json_write_key (writer, "chain");
    json_write_text (writer, name);
    json_write_key (writer, "first");
    json_write_uint (writer, check->first_n);
    json_write_key (writer, "n");
    json_write_uint (writer, check->head.n);
    json_write_key (writer, "hash");
    json_write_text (writer, hash);
    json_write_key (writer, "fault");
    json_write_text (writer, faults[check->fault]);
    json_write_key (writer, "fault_n");
    json_write_uint (writer, check->fault_n);
    json_write_key (writer, "message");
    json_write_text (writer, fault);
    write_gaps (writer, chain);
    write_empty (writer, chain);
    json_write_object_end (writer);
}

/* prefix: which chain it is, where there are two. */
static void print_chain (const chain_t *chain, const char *prefix, const char *fault)
{
    const chain_check_t *check = &chain->check;
    char hash[CHAIN_HASH_TEXT_SIZE];
    for (size_t i = 0; i < chain->gaps_count; i++) {
        char text[GAP_TEXT_SIZE + 128];
        gap_text (&chain->gaps[i], text, sizeof text);
        printf ("%s%s%s\n", prefix, text, chain->gaps[i].accepted ? " (accepted)" : "");
    }
    for (size_t i = 0; i < chain->count; i++) {
        char text[PATH_SIZE + 128];
        empty_text (&chain->parts[i], text, sizeof text);
        if (chain->parts[i].empty)
            printf ("%s%s\n", prefix, text);
    }
    chain_hash_format (hash, check->head.hash);
    if (check->fault != CHAIN_GOOD)
        printf ("%s\n", fault);
    else if (check->head.n == 0)
        printf ("%sno lines\n", prefix);
    else
        printf ("%slines %" PRIu64 " to %" PRIu64 " are whole\n%shead %" PRIu64 " %s\n", prefix,
                check->first_n, check->head.n, prefix, check->head.n, hash);
}

static void show (verify_t *self, bool both)
{
    items_t items;
    const bool json = app_wants_json (self->app);
    if (json)
        items_begin (&items, self->app, !both);
    for (int i = 0; i < CHAINS; i++) {
        const chain_t *chain = &self->chains[i];
        char fault[2 * PATH_SIZE + 256];
        char prefix[16];
        if (chain->count == 0)
            continue;
        fault_text (chain, fault, sizeof fault);
        snprintf (prefix, sizeof prefix, "%s%s", both ? names[i] : "", both ? ": " : "");
        if (json) {
            write_chain (items_open (&items), chain, names[i], fault);
            items_close (&items);
        } else {
            print_chain (chain, prefix, fault);
        }
    }
    if (json)
        items_end (&items, NULL);
}

static void note_more (const verify_t *self, const chain_t *chain)
{
    if (chain->torn)
        note (self->app, "the last line is half written: the broker is writing it, or was killed "
                         "while it did");
    const chain_check_t *check = &chain->check;
    if (check->known_n)
        note (self->app, "your head is that of line %" PRIu64, check->known_n);
    if (chain->inside)
        note (self->app,
              "it begins at line %" PRIu64
              ", inside of a file: nothing is said of the lines before",
              check->first_n);
    else if (check->first_n > 1)
        note (self->app,
              "it begins with the file of line %" PRIu64 ": files before it are too old, or gone",
              check->first_n);
    for (size_t i = 0; i < chain->gaps_count; i++)
        if (!chain->gaps[i].accepted)
            note (self->app, "--accept %s:%" PRIu64 " passes over it, once you know why",
                  names[chain == &self->chains[EVENTS] ? EVENTS : AUDIT], chain->gaps[i].n);
}

/* A head proves all lines up to it, if they are there. */
static bool is_good (const chain_t *chain)
{
    return chain->check.fault == CHAIN_GOOD && chain->open_gaps == 0 && chain->empty == 0 &&
           !(chain->inside && chain->check.known_n);
}

static int judge (verify_t *self)
{
    if (self->directory)
        return EXIT_OK; /* who asked for it tells */
    chain_check_t *audit = &self->chains[AUDIT].check;
    chain_check_t *events = &self->chains[EVENTS].check;
    const bool both = self->chains[AUDIT].count > 0 && self->chains[EVENTS].count > 0;
    /* A head is of one of them. */
    if (both && events->known_n && audit->fault == CHAIN_HEADLESS)
        audit->fault = CHAIN_GOOD;
    if (both && audit->known_n && events->fault == CHAIN_HEADLESS)
        events->fault = CHAIN_GOOD;
    show (self, both);
    for (int i = 0; i < CHAINS; i++)
        note_more (self, &self->chains[i]);
    const bool good = is_good (&self->chains[AUDIT]) && is_good (&self->chains[EVENTS]);
    return good ? EXIT_OK : EXIT_OTHER;
}

static int verify_files (verify_t *self)
{
    int code = sort_parts (self, &self->chains[EVENTS]);
    for (int i = 0; i < CHAINS; i++) {
        chain_t *chain = &self->chains[i];
        for (size_t k = 0; code == EXIT_OK && k < chain->count; k++)
            code = read_lines (self, chain, k);
        if (chain->count > 0)
            chain_check_end (&chain->check);
    }
    bool good = code == EXIT_OK;
    for (int i = 0; i < CHAINS; i++)
        good = good && self->chains[i].check.fault == CHAIN_GOOD && self->chains[i].empty == 0;
    if (code == EXIT_OK && !good && is_outdated (self))
        return AGAIN;
    return code == EXIT_OK ? judge (self) : code;
}

static int check_accepted (const app_t *app)
{
    for (size_t i = 0; i < args_count (&app->args, OPT_ACCEPT); i++) {
        const char *text = args_nth (&app->args, OPT_ACCEPT, i)->text;
        const char *colon = strchr (text, ':');
        const size_t stem = colon ? (size_t) (colon - text) : 0;
        if (!colon || !colon[1] || strspn (colon + 1, "0123456789") != strlen (colon + 1) ||
            (strncmp (text, "audit:", stem + 1) != 0 && strncmp (text, "events:", stem + 1) != 0))
            return usage_error (app, NULL,
                                "--accept must be audit:LINE or events:LINE, as verify names it");
    }
    return EXIT_OK;
}

static void report_chain (const chain_t *chain, verify_report_t *out)
{
    *out = (verify_report_t){.there = chain->count > 0,
                             .good = chain->check.fault == CHAIN_GOOD && chain->empty == 0,
                             .gaps = chain->gaps_count,
                             .lines = chain->check.place};
    if (chain->check.fault != CHAIN_GOOD)
        fault_text (chain, out->text, sizeof out->text);
    for (size_t i = 0; chain->check.fault == CHAIN_GOOD && i < chain->count; i++)
        if (chain->parts[i].empty)
            empty_text (&chain->parts[i], out->text, sizeof out->text);
    if (!out->good)
        return;
    if (chain->gaps_count > 0)
        gap_text (&chain->gaps[chain->gaps_count - 1], out->text, sizeof out->text);
}

bool verify_directory (const app_t *app, const char *directory, verify_report_t out[VERIFY_CHAINS],
                       char problem[VERIFY_TEXT_SIZE])
{
    int code = AGAIN;
    for (int tries = 0; code == AGAIN; tries++) {
        verify_t self = {.app = app, .directory = directory, .problem = problem, .tries = tries};
        code = find_files (&self);
        if (code == EXIT_OK)
            code = verify_files (&self);
        for (int i = 0; code == EXIT_OK && i < CHAINS; i++)
            report_chain (&self.chains[i], &out[i]);
        drop_files (&self);
    }
    return code == EXIT_OK;
}

int verify_run (app_t *app)
{
    int code = check_accepted (app);
    if (code != EXIT_OK)
        return code;
    uint8_t known[CHAIN_HASH_BYTES];
    const char *head = args_text (&app->args, OPT_HEAD);
    if (head != NULL && !chain_hash_parse (known, head, strlen (head)))
        return usage_error (app, "AUDIT-HEAD and EVENTS-HEAD in the broker's log",
                            "--head must be 64 hexadecimal digits");
    code = AGAIN;
    for (int tries = 0; code == AGAIN; tries++) {
        verify_t self = {.app = app, .tries = tries};
        for (int i = 0; i < CHAINS; i++)
            self.chains[i].check.known = head != NULL ? known : NULL;
        code = find_files (&self);
        if (code == EXIT_OK)
            code = verify_files (&self);
        drop_files (&self);
    }
    return code;
}
