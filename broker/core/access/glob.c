/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Patterns of names. A place is a letter of the pattern with the stars left out; bit i says that
 * the first i letters were met. */
#include "core/access/glob.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* 1..65 for what a name is made of, else 0. */
static unsigned letter_of (char letter)
{
    if (letter >= 'a' && letter <= 'z')
        return (unsigned) (letter - 'a') + 1;
    if (letter >= 'A' && letter <= 'Z')
        return (unsigned) (letter - 'A') + 27;
    if (letter >= '0' && letter <= '9')
        return (unsigned) (letter - '0') + 53;
    switch (letter) {
    case '.': return 63;
    case '_': return 64;
    case '-': return 65;
    default: return 0;
    }
}

static bool is_pattern (const char *text, size_t length)
{
    if (length == 0 || length > TMQ_NAME_LENGTH_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if (text[i] != '*' && letter_of (text[i]) == 0)
            return false;
    return true;
}

/* With a star there are at most 63 letters, so the places fit in 64 bits. */
static void make_automaton (glob_t *self, const char *text, size_t length)
{
    self->letters = memory_zero (GLOB_LETTERS, sizeof (*self->letters));
    self->length = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '*')
            self->stays |= UINT64_C (1) << self->length;
        else
            self->letters[letter_of (text[i])] |= UINT64_C (1) << self->length++;
    }
}

bool glob_make (glob_t *out, const char *text, size_t length)
{
    *out = (glob_t){0};
    if (!is_pattern (text, length))
        return false;
    size_t plain = 0;
    while (plain < length && text[plain] != '*')
        plain++;
    size_t rest = plain;
    while (rest < length && text[rest] == '*')
        rest++;
    out->length = (uint8_t) plain;
    out->open = plain < length;
    memcpy (out->text, text, plain);
    if (rest < length)
        make_automaton (out, text, length);
    return true;
}

void glob_clear (glob_t *self)
{
    free (self->letters);
    *self = (glob_t){0};
}

bool glob_takes (const glob_t *self, const char *name)
{
    if (self->letters == NULL)
        return self->open ? strncmp (self->text, name, self->length) == 0
                          : strcmp (self->text, name) == 0;
    uint64_t places = 1;
    for (; *name != '\0' && places != 0; name++)
        places = (places & self->letters[letter_of (*name)]) << 1 | (places & self->stays);
    return (places >> self->length & 1) != 0;
}

bool glob_is_open (const glob_t *self)
{
    return self->letters == NULL && self->open && self->length == 0;
}
