/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What became of tasks that others wait for and that memory does not have, because they ended
 * before the start (edges.h): the tables are asked, as far as a round allows. */
#ifndef TASKMQ_CORE_ENDS_H
#define TASKMQ_CORE_ENDS_H

#include "core/reads/reads.h"

void ends_want (const reads_t *self, key_list_t *keys);
/* Takes what this round's look-up says of them. */
/* The store was out of reach: they are looked up again. */
void ends_unread (reads_t *self);
void ends_take (reads_t *self);

#endif
