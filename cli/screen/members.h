/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Members of a JSON object that is open: a key with its value. */
#ifndef TASKCTL_MEMBERS_H
#define TASKCTL_MEMBERS_H

#include "json.h"
#include "line/app.h"

/* NULL and "" are null. */
void member_text (json_writer_t *writer, const char *key, const char *text);
void member_texts (json_writer_t *writer, const char *key, const char *const *texts, size_t count);
void member_uint (json_writer_t *writer, const char *key, uint64_t value);
/* ms since the epoch; 0 is null. */
void member_time (json_writer_t *writer, const char *key, uint64_t ms);

#endif
