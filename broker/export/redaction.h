/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What looks secret is replaced in the broker's own files. */
#ifndef TASKMQ_EXPORT_REDACTION_H
#define TASKMQ_EXPORT_REDACTION_H

#include "redact.h"

/* Appends a line to out. The log tells of values that were replaced as a whole: of the first, and
 * each time they have become twice as many. Ends the process when memory is exhausted. */
void redaction_line (redactor_t *redactor, bytes_t *out, const bytes_t *line, const char *file);

#endif
