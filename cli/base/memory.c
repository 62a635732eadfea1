/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"

static void *or_exit (void *memory)
{
    if (memory)
        return memory;
    fputs ("taskctl: out of memory\n", stderr);
    exit (EXIT_OTHER);
}

void *must_alloc (size_t size)
{
    return or_exit (calloc (1, size ? size : 1));
}

void *must_grow (void *memory, size_t count, size_t size)
{
    return or_exit (reallocarray (memory, count ? count : 1, size));
}

char *must_copy (const char *text)
{
    return or_exit (strdup (text));
}
