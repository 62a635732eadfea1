/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "search/texts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "ids.h"

/* The first bytes of a long text, up to the end of a character. */
static size_t cut (const char *bytes, size_t length)
{
    if (length <= TMQ_SEARCH_TEXT_BYTES_MAX)
        return length;
    length = TMQ_SEARCH_TEXT_BYTES_MAX;
    while (length > 0 && ((unsigned char) bytes[length] & 0xc0) == 0x80)
        length--;
    return length;
}

/* What is no UTF-8, or has a NUL, is no text. Control characters become spaces: marks are made of
 * them, and a terminal is not to be given any. */
static void take (texts_t *out, size_t place, const void *bytes, size_t length)
{
    length = bytes == NULL ? 0 : cut (bytes, length);
    if (length == 0 || memchr (bytes, '\0', length) != NULL || !utf8_is_valid (bytes, length))
        return;
    char *copy = memory_alloc (length);
    memcpy (copy, bytes, length);
    for (size_t i = 0; i < length; i++)
        if (((unsigned char) copy[i] < ' ' && copy[i] != '\n' && copy[i] != '\t') ||
            copy[i] == 0x7f)
            copy[i] = ' ';
    out->owned[place] = copy;
    out->doc.texts[place].bytes = copy;
    out->doc.texts[place].length = length;
}

static void take_text (texts_t *out, size_t place, const char *text)
{
    take (out, place, text, strlen (text));
}

void texts_of_task (texts_t *out, const record_t *record)
{
    *out = (texts_t){.doc = {.ns = record->ns, .number = record->number}};
    take (out, 0, buf_bytes (record->payload), buf_length (record->payload));
    take (out, 1, buf_bytes (record->result), buf_length (record->result));
    take_text (out, 2, record->method);
    take_text (out, 3, record->status_message);
    take_text (out, 4, record->error_message);
}

void texts_of_turn (texts_t *out, const record_t *record, const turn_t *turn)
{
    *out = (texts_t){.doc = {.ns = record->ns, .number = record->number, .turn = turn->turn}};
    for (size_t i = 0; i < 3; i++)
        take (out, i, turn->parts[i], turn->lengths[i]);
    take_text (out, 3, turn->agent);
    take_text (out, 4, turn->status);
}

void texts_clear (texts_t *self)
{
    for (size_t i = 0; i < SEARCH_TEXTS; i++)
        free (self->owned[i]);
    *self = (texts_t){0};
}
