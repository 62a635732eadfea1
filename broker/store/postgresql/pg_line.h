/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The first line of a text of libpq's, which ends in a newline and may have several: what follows
 * tells no more, and a log has one line. */
#ifndef TASKMQ_STORE_PG_LINE_H
#define TASKMQ_STORE_PG_LINE_H

#include <string.h>

#include "ids.h"

/* Its bytes for "%.*s", at most so many, and no character cut. */
static inline int pg_line_length (const char *text, size_t most)
{
    return (int) utf8_whole (text, strcspn (text, "\n"), most);
}

#endif
