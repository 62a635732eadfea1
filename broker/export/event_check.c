/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a file that cannot be read is the fault. The first fault ends it: what stands behind it
 * is taskctl audit verify's to tell. */
#include "export/event_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "chain.h"
#include "export/event_files.h"
#include "packed.h"

typedef struct reading {
    event_check_t *out;
    chain_check_t chain;
    bytes_t last;        /* the last whole line */
    uint64_t generation; /* of the file at hand */
    char path[EVENT_TURNED_PATH_SIZE + sizeof (PACKED_ENDING)];
    uint64_t before; /* lines of the files before it */
} reading_t;

static void tell_fault (reading_t *self)
{
    static const char *const words[] = {
        [CHAIN_GOOD] = "",
        [CHAIN_CHANGED] = "was changed",
        [CHAIN_MISSING] = "is missing here",
        [CHAIN_MOVED] = "is not here, but stands elsewhere",
        [CHAIN_REPEATED] = "stands here again",
        [CHAIN_HEADLESS] = "",
    };
    const chain_check_t *chain = &self->chain;
    uint64_t line = chain->fault_place > self->before ? chain->fault_place - self->before : 0;
    snprintf (self->out->fault, sizeof (self->out->fault),
              "%.4200s:%" PRIu64 ": line %" PRIu64 " of the chain %s", self->path, line,
              chain->fault_n, words[chain->fault]);
}

/* An anchor that goes on behind what somebody took away says so. */
static bool is_begun_anew (const char *line, size_t length)
{
    static const char mark[] = "\"why\":\"changed\"";
    return memmem (line, length, mark, sizeof (mark) - 1) != NULL;
}

static void take_line (reading_t *self, const char *line, size_t length, bool first)
{
    event_place_t place;
    if (first && event_line_parse (&place, line, length) && place.generation != 0) {
        self->generation = place.generation;
        if (is_begun_anew (line, length))
            chain_check_anew (&self->chain);
    }
    chain_check_line (&self->chain, line, length);
    bytes_clear (&self->last);
    bytes_append (&self->last, line, length);
    self->out->lines++;
}

static void read_file (reading_t *self, bool newest)
{
    const char *line;
    size_t length;
    bool whole;
    bool first = true;
    int got = -1;
    packed_t *file = packed_open (self->path, true);
    self->before = self->chain.place;
    while (file != NULL && self->chain.fault == CHAIN_GOOD &&
           (got = packed_line (file, &line, &length, &whole)) > 0) {
        if (whole || !newest) /* a crash may have left half a line at the end */
            take_line (self, line, length, first);
        first = false;
    }
    if (self->chain.fault != CHAIN_GOOD)
        tell_fault (self);
    else if (got < 0 && !(newest && errno == ENOENT))
        snprintf (self->out->fault, sizeof (self->out->fault), "%.4200s: %s", self->path,
                  packed_problem (errno));
    packed_close (&file);
}

static void read_files (reading_t *self, const char *directory)
{
    const event_turned_t *turned = &self->out->turned;
    for (size_t i = 0; i < turned->count && self->out->fault[0] == '\0'; i++) {
        snprintf (self->path, sizeof (self->path), "%s/%s%s", directory, turned->files[i].name,
                  turned->files[i].packed ? PACKED_ENDING : "");
        read_file (self, false);
    }
    snprintf (self->path, sizeof (self->path), "%s/" EVENT_FILES_NAME, directory);
    if (self->out->fault[0] == '\0')
        read_file (self, true);
    chain_check_end (&self->chain);
    if (self->out->fault[0] == '\0' && self->chain.fault != CHAIN_GOOD)
        tell_fault (self);
}

void event_check_read (event_check_t *out, const char *directory)
{
    reading_t reading = {.out = out, .last = BYTES_INIT};
    *out = (event_check_t){0};
    event_turned_read (&out->turned, directory);
    read_files (&reading, directory);
    if (out->fault[0] == '\0' && out->lines > 0) {
        if (event_line_parse (&out->place, bytes_text (&reading.last), reading.last.length))
            out->place.generation = reading.generation;
        else
            snprintf (out->fault, sizeof (out->fault), "%.4200s: its last line is none of a broker",
                      reading.path);
    }
    bytes_free (&reading.last);
}

void event_check_free (event_check_t *self)
{
    event_turned_free (&self->turned);
}
