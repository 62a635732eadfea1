/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a task of a submit says of other tasks: those that it depends on, and the one that it is a
 * part of. */
#ifndef TASKMQ_CORE_AFTER_H
#define TASKMQ_CORE_AFTER_H

#include "core/requests/requests.h"

typedef struct after_refusal {
    tmq_code_t code; /* OK: none */
    char *text;      /* to be freed */
} after_refusal_t;

void after_want (const requests_t *self, const link_t *link, const Taskmq__TaskSpec *spec,
                 key_list_t *keys);
/* Every task that it names must be known to the link, or have been; says in the spec which of them
 * have ended, and how. */
after_refusal_t after_judge (call_t *call, const Taskmq__TaskSpec *spec);
/* Its parent must be there, whether it lives or has ended; says in the spec how many are above. */
after_refusal_t parent_judge (call_t *call, const Taskmq__TaskSpec *spec);
/* The part was accepted: its parent remembers that it has some. */
void parent_mark (requests_t *self, space_t *space, const Taskmq__TaskSpec *spec,
                  const char *actor);

#endif
