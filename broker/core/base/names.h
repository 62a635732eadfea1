/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Interned texts: owners, sessions, workers' names. Many tasks share few of them, so each is kept
 * once, with a count of those who hold it. */
#ifndef TASKMQ_CORE_NAMES_H
#define TASKMQ_CORE_NAMES_H

#include <stdint.h>

#include "core/base/map.h"
#include "core/base/secrets.h"

typedef struct name {
    uint32_t count;
    uint32_t hash;
    struct account *account; /* of an identity with quotas (tasks/account.h); else NULL */
    char text[];
} name_t;

typedef struct names {
    const secrets_t *secrets;
    map_t map;
} names_t;

void names_init (names_t *self, const secrets_t *secrets);
void names_free (names_t *self); /* frees what is left, whoever holds it */
/* The name of this text, kept once more. NULL for an empty text. */
name_t *names_keep (names_t *self, const char *text);
/* The same name, kept once more; accepts NULL. */
name_t *names_share (name_t *name);
void names_drop (names_t *self, name_t *name); /* accepts NULL */
/* Empty for NULL. */
const char *name_text (const name_t *name);

#endif
