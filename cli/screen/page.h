/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A task and its parts as a text that people read: a file of its own, or one behind the other. */
#ifndef TASKCTL_PAGE_H
#define TASKCTL_PAGE_H

#include <jansson.h>
#include <stdio.h>

/* record: the object that record_write makes. First the facts, then a section for each part that
 * it has. Headings begin in the first column; nothing that comes from the task does. */
void page_write (FILE *stream, const json_t *record);

#endif
