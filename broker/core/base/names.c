/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Interned texts with a count. */
#include "core/base/names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

void names_init (names_t *self, const secrets_t *secrets)
{
    *self = (names_t){.secrets = secrets};
}

void names_free (names_t *self)
{
    size_t cursor = 0;
    for (name_t *name = map_each (&self->map, &cursor); name != NULL;
         name = map_each (&self->map, &cursor))
        free (name);
    map_free (&self->map);
}

name_t *names_keep (names_t *self, const char *text)
{
    size_t length = text == NULL ? 0 : strlen (text);
    if (length == 0)
        return NULL;
    uint32_t hash = secrets_hash (self->secrets, text, length);
    size_t cursor = MAP_START;
    name_t *name = NULL;
    while ((name = map_next (&self->map, hash, &cursor)) != NULL) {
        if (strcmp (name->text, text) == 0) {
            name->count++;
            return name;
        }
    }
    name = memory_alloc (sizeof (*name) + length + 1);
    name->count = 1;
    name->account = NULL;
    name->hash = hash;
    memcpy (name->text, text, length + 1);
    map_insert (&self->map, hash, name);
    return name;
}

name_t *names_share (name_t *name)
{
    if (name != NULL)
        name->count++;
    return name;
}

void names_drop (names_t *self, name_t *name)
{
    if (name == NULL)
        return;
    assert (name->count > 0);
    if (--name->count > 0)
        return;
    map_remove (&self->map, name->hash, name);
    free (name);
}

const char *name_text (const name_t *name)
{
    return name == NULL ? "" : name->text;
}
