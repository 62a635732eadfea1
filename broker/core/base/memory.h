/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Allocation that ends the process with a clear line when memory is exhausted: the engine can not
 * undo half an input, and a restart recovers everything that was acknowledged. */
#ifndef TASKMQ_CORE_MEMORY_H
#define TASKMQ_CORE_MEMORY_H

#include <stddef.h>

void *memory_alloc (size_t bytes);             /* undefined contents; 0 bytes gives a pointer too */
void *memory_zero (size_t count, size_t size); /* zeroed */
void *memory_resize (void *memory, size_t count, size_t size);
char *memory_text (const char *text);                    /* a copy; NULL gives an empty one */
char *memory_text_of (const void *bytes, size_t length); /* … with a NUL behind it */

/* Makes room for one more item: returns items, moved when capacity had to grow. */
void *memory_grow (void *items, size_t *capacity, size_t count, size_t size);

/* Of a large array on the stack that is filled as far as it is read: the compiler is told to clear
 * every variable, and 20 KiB cost more than the task that is submitted with them. */
#define MEMORY_FILLED_BEFORE_READ __attribute__ ((uninitialized))

#endif
