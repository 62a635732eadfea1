/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Comma-separated values (RFC 4180, with a bare new line behind each row). */
#ifndef TASKCTL_CSV_H
#define TASKCTL_CSV_H

#include <jansson.h>
#include <stdio.h>

/* The values of the object's members in their order, as plain_value has them. Their text is made
 * safe as plain_text does, and a text that would be a formula stands behind an apostrophe. */
void csv_row (FILE *stream, const json_t *object);
/* The row above them: the keys. */
void csv_head (FILE *stream, const json_t *object);

#endif
