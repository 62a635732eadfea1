/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How many lines of a kind and a source are written in a minute: a flood of refusals must neither
 * fill the disk nor hide that there is one. Bounded: of sources beyond those that it has room for
 * the lines are counted together. */
#ifndef TASKMQ_AUDIT_SAMPLER_H
#define TASKMQ_AUDIT_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SAMPLER_SOURCES_MAX = 256,
    SAMPLER_WINDOW_MS = 60000,
    SAMPLER_SOURCE_SIZE = 80 /* longer ones are told apart by their beginning */
};

typedef struct sampler_row {
    unsigned kind;
    uint64_t count; /* in this window; 0: the row is free */
    uint64_t most;  /* that are written */
    int64_t since_ms;
    char source[SAMPLER_SOURCE_SIZE]; /* empty: sources without a row */
} sampler_row_t;

typedef struct sampler {
    sampler_row_t rows[SAMPLER_SOURCES_MAX];
    sampler_row_t *kinds; /* of sources without a row, one for each kind */
    size_t kinds_count;
    size_t open; /* rows with a count */
} sampler_t;

void sampler_init (sampler_t *out, size_t kinds);
void sampler_destroy (sampler_t *self);
/* True: the line is to be written. */
bool sampler_allows (sampler_t *self, unsigned kind, const char *source, uint64_t most,
                     int64_t mono_ms);
/* One row whose window has ended (or any, if `all`) with lines that were not written: a copy of it;
 * its count is that of the lines left out. False: there is none. */
bool sampler_ended (sampler_t *self, int64_t mono_ms, bool all, sampler_row_t *out);

#endif
