/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How a call tells what went wrong. */
#ifndef TASKMQ_CLIENT_ERRORS_H
#define TASKMQ_CLIENT_ERRORS_H

#include "taskmq.h"

/* Fills error, which may be NULL, and returns code. format NULL: the code's own text. */
int core_error (tmq_error_t *error, int code, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/* text NULL: the code's own. */
void core_error_fill (tmq_error_t *error, int code, const char *text, uint32_t retry_after_ms);

#endif
