/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "types.h"

void core_error_fill (tmq_error_t *error, int code, const char *text, uint32_t retry_after_ms)
{
    memset (error, 0, sizeof *error);
    error->code = code;
    error->retriable = code_is_retriable (code);
    error->retry_after_ms = retry_after_ms;
    snprintf (error->text, sizeof error->text, "%s", text != NULL ? text : code_text (code));
}

int core_error (tmq_error_t *error, int code, const char *format, ...)
{
    if (error == NULL)
        return code;
    core_error_fill (error, code, NULL, 0);
    if (format != NULL) {
        va_list arguments;
        va_start (arguments, format);
        vsnprintf (error->text, sizeof error->text, format, arguments);
        va_end (arguments);
    }
    return code;
}
