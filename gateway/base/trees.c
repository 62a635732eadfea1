/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/trees.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

static uint64_t bytes;
static bool counts;

static void *take (size_t size)
{
    void *memory = malloc (size);
    bytes += malloc_usable_size (memory);
    return memory;
}

static void give (void *memory)
{
    bytes -= malloc_usable_size (memory);
    free (memory);
}

void trees_count (void)
{
    counts = true;
    json_set_alloc_funcs (take, give);
}

uint64_t trees_bytes (void)
{
    return bytes;
}

char *trees_text (const json_t *value, size_t flags)
{
    char *text = json_dumps (value, flags);
    if (counts)
        bytes -= malloc_usable_size (text);
    return text;
}
