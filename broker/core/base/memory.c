/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Allocation that never returns NULL. */
#include "core/base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked (void *memory, size_t bytes)
{
    if (memory == NULL) {
        fprintf (stderr, "TASKMQ-MEMORY out of memory, %zu bytes were wanted\n", bytes);
        abort ();
    }
    return memory;
}

void *memory_alloc (size_t bytes)
{
    return checked (malloc (bytes == 0 ? 1 : bytes), bytes);
}

void *memory_zero (size_t count, size_t size)
{
    return checked (calloc (count == 0 ? 1 : count, size), size);
}

void *memory_resize (void *memory, size_t count, size_t size)
{
    size_t bytes = count == 0 ? size : count * size;
    if (count > SIZE_MAX / size)
        return checked (NULL, SIZE_MAX);
    return checked (realloc (memory, bytes), bytes);
}

char *memory_text (const char *text)
{
    if (text == NULL)
        text = "";
    size_t room = strlen (text) + 1;
    return memcpy (memory_alloc (room), text, room);
}

char *memory_text_of (const void *bytes, size_t length)
{
    char *text = memory_alloc (length + 1);
    memcpy (text, bytes, length);
    text[length] = '\0';
    return text;
}

void *memory_grow (void *items, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity == 0 ? 8 : *capacity * 2;
    return memory_resize (items, *capacity, size);
}
