/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ids.h"

store_code_t store_fail (store_error_t *error, store_code_t code, const char *format, ...)
{
    char text[sizeof (error->text) + 1]; /* so that a cut is seen */
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (text, sizeof (text), format, arguments);
    va_end (arguments);
    size_t length = utf8_whole (text, strlen (text), sizeof (error->text) - 1);
    error->code = code;
    memcpy (error->text, text, length);
    error->text[length] = '\0';
    return code;
}
