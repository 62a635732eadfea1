/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What comes from tasks as text for files: the same whatever the locale and the terminal. */
#ifndef TASKCTL_PLAIN_H
#define TASKCTL_PLAIN_H

#include <jansson.h>
#include <stdio.h>

/* In UTF-8. Hidden characters, control bytes other than tab and new line, and what is no UTF-8
 * become \xNN. */
void plain_text (FILE *stream, const char *text, size_t length);

/* A JSON value as one text: a string as it is, null as nothing, the rest as its JSON. Freed by
 * free (). */
char *plain_value (const json_t *value, size_t *length);

#endif
