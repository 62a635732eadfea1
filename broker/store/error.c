/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/error.h"

#include <stdarg.h>
#include <stdio.h>

store_code_t store_fail (store_error_t *error, store_code_t code, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    error->code = code;
    vsnprintf (error->text, sizeof (error->text), format, arguments);
    va_end (arguments);
    return code;
}
