/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "export/chain_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"

enum { FIRST_BYTES = 4096 }; /* of the first line, which are enough to see its day */

/* The beginning of the file, as text. */
static char *read_first (const line_file_t *file)
{
    char *text = memory_zero (1, FIRST_BYTES + 1);
    ssize_t got = pread (file->fd, text, FIRST_BYTES, 0);
    if (got <= 0) {
        free (text);
        return NULL;
    }
    text[strcspn (text, "\n")] = '\0';
    return text;
}

/* Of a file without one whole line: it may be anything. */
static bool begins_as_ours (const line_file_t *file)
{
    char first;
    return pread (file->fd, &first, 1, 0) == 1 && first == '{';
}

bool chain_file_open (chain_file_t *out, const char *path, chain_file_end_t *end,
                      char error[LINE_FILE_ERROR_SIZE])
{
    char *line = NULL;
    size_t length;
    *out = (chain_file_t){.waiting = BYTES_INIT};
    *end = (chain_file_end_t){0, false, NULL, NULL};
    if (!line_file_open (&out->file, path, error) ||
        !line_file_read_last (&out->file, &line, &length, &end->torn, error))
        return false;
    end->damaged = line != NULL ? !chain_follow (&out->written, line, length)
                                : end->torn > 0 && !begins_as_ours (&out->file);
    end->last = line;
    if (end->damaged) {
        out->written = (chain_head_t){0};
        if (!line_file_set_aside (&out->file, "damaged", error))
            return false;
    } else if (end->torn > 0 && !line_file_cut (&out->file, error)) {
        return false;
    }
    out->head = out->written;
    end->first = read_first (&out->file);
    return true;
}

void chain_file_close (chain_file_t *self)
{
    line_file_close (&self->file);
    bytes_free (&self->waiting);
}

void chain_file_begin (chain_file_t *self, const chain_head_t *head)
{
    self->head = self->written = *head;
}

void chain_file_add (chain_file_t *self, const void *members, size_t length)
{
    size_t from = chain_file_line_begin (self);
    bytes_append (&self->waiting, members, length);
    chain_file_line_end (self, from);
}

size_t chain_file_line_begin (chain_file_t *self)
{
    return chain_line_begin (&self->waiting, &self->head);
}

void chain_file_line_end (chain_file_t *self, size_t from)
{
    chain_line_end (&self->waiting, &self->head, from);
    if (self->waiting.failed)
        abort (); /* out of memory, as everywhere in the broker */
}

void chain_file_forget (chain_file_t *self)
{
    self->head = self->written;
    bytes_clear (&self->waiting);
}

bool chain_file_write (chain_file_t *self, char error[LINE_FILE_ERROR_SIZE])
{
    bool good = line_file_append (&self->file, self->waiting.data, self->waiting.length, error);
    if (good)
        self->written = self->head;
    else
        self->head = self->written;
    bytes_clear (&self->waiting);
    return good;
}

bool chain_file_sync (chain_file_t *self, char error[LINE_FILE_ERROR_SIZE])
{
    return line_file_sync (&self->file, error);
}

bool chain_file_turn (chain_file_t *self, const char *to, char error[LINE_FILE_ERROR_SIZE])
{
    return line_file_turn (&self->file, to, error);
}
