/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A line of an export, as the task that it tells of. */
#ifndef TASKCTL_IMPORT_LINE_H
#define TASKCTL_IMPORT_LINE_H

#include "verbs/import_values.h"

/* False: why says what is wrong. To be cleared in any case. */
bool import_line_read (import_line_t *self, const char *line, size_t length);
void import_line_clear (import_line_t *self);
/* What of the task differs in these two lines, by the name of its key; NULL: nothing that an import
 * brings. */
const char *import_line_differs (piece_t line, piece_t other);

#endif
