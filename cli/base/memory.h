/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Memory that cannot be refused. */
#ifndef TASKCTL_MEMORY_H
#define TASKCTL_MEMORY_H

#include <stddef.h>

/* They end the program when memory runs out. */
void *must_alloc (size_t size);
void *must_grow (void *memory, size_t count, size_t size);
char *must_copy (const char *text);

#endif
