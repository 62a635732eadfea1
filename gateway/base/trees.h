/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How much memory JSON takes when it is parsed: up to eighty times its text. It counts to
 * memory_bytes_max, as bodies and answers do.
 *
 * The count is the process's, because jansson has one allocator for all. One thread: the loop's. */
#ifndef TASKMQ_GATEWAY_BASE_TREES_H
#define TASKMQ_GATEWAY_BASE_TREES_H

#include <jansson.h>
#include <stdint.h>

/* From now on; before the first tree is made. Without it trees_bytes is 0. */
void trees_count (void);
/* Of all trees that are held. */
uint64_t trees_bytes (void);
/* json_dumps. The text is the caller's, to be freed by free; it is no tree, and not counted. */
char *trees_text (const json_t *value, size_t flags);

#endif
