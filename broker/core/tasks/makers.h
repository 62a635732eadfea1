/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who made namespaces lately. An identity may make many at once and then one every few minutes, so
 * that nobody alone uses up all that there may be: what is made goes again only when its history is
 * forgotten. */
#ifndef TASKMQ_CORE_MAKERS_H
#define TASKMQ_CORE_MAKERS_H

#include "core/tasks/tasks.h"

/* How long until the identity may make a namespace; 0: now. */
int64_t makers_wait_ms (const tasks_t *self, const name_t *identity);
/* It is about to change something in the namespace: makes it, if nobody has done so before. */
void makers_count (tasks_t *self, const space_t *space, name_t *identity);
void makers_clear (tasks_t *self);

#endif
