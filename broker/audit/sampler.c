/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A minute begins with the first line of a source. Its end tells how many lines were left out. */
#include "audit/sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

void sampler_init (sampler_t *out, size_t kinds)
{
    memset (out, 0, sizeof (*out));
    out->kinds = memory_zero (kinds, sizeof (sampler_row_t));
    out->kinds_count = kinds;
}

void sampler_destroy (sampler_t *self)
{
    free (self->kinds);
    self->kinds = NULL;
}

static bool is_ended (const sampler_row_t *row, int64_t mono_ms)
{
    return mono_ms - row->since_ms >= SAMPLER_WINDOW_MS;
}

/* The source's row, else a free one, else that of all the others. */
static sampler_row_t *find (sampler_t *self, unsigned kind, const char *source)
{
    sampler_row_t *unused = NULL;
    for (size_t i = 0; i < SAMPLER_SOURCES_MAX; i++) {
        sampler_row_t *row = &self->rows[i];
        if (row->count == 0)
            unused = unused != NULL ? unused : row;
        else if (row->kind == kind && strcmp (row->source, source) == 0)
            return row;
    }
    if (unused == NULL)
        return &self->kinds[kind];
    snprintf (unused->source, sizeof (unused->source), "%s", source);
    return unused;
}

bool sampler_allows (sampler_t *self, unsigned kind, const char *source, uint64_t most,
                     int64_t mono_ms)
{
    char name[SAMPLER_SOURCE_SIZE];
    snprintf (name, sizeof (name), "%s", source != NULL && source[0] != '\0' ? source : "-");
    sampler_row_t *row = find (self, kind, name);
    if (row->count == 0) {
        row->kind = kind;
        row->most = most;
        row->since_ms = mono_ms;
        self->open++;
    }
    row->count++;
    return row->count <= row->most;
}

/* The row begins anew. */
static bool end (sampler_t *self, sampler_row_t *row, sampler_row_t *out)
{
    *out = *row;
    out->count = row->count > row->most ? row->count - row->most : 0;
    row->count = 0;
    self->open--;
    return out->count > 0;
}

bool sampler_ended (sampler_t *self, int64_t mono_ms, bool all, sampler_row_t *out)
{
    for (size_t i = 0; self->open > 0 && i < SAMPLER_SOURCES_MAX + self->kinds_count; i++) {
        sampler_row_t *row =
            i < SAMPLER_SOURCES_MAX ? &self->rows[i] : &self->kinds[i - SAMPLER_SOURCES_MAX];
        if (row->count > 0 && (all || is_ended (row, mono_ms)) && end (self, row, out))
            return true;
    }
    return false;
}
