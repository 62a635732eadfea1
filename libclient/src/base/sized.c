/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/sized.h"

#include <string.h>

void core_sized_init (void *out, size_t size, const void *defaults, size_t known)
{
    if (out == NULL || size < sizeof size)
        return;
    memset (out, 0, size);
    memcpy (out, defaults, size < known ? size : known);
    memcpy (out, &size, sizeof size);
}

bool core_sized_take (void *out, size_t known, const void *in, size_t least)
{
    size_t size;
    memcpy (&size, in, sizeof size);
    if (size < least)
        return false;
    memcpy (out, in, size < known ? size : known);
    memcpy (out, &known, sizeof known);
    return true;
}
