/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
#include "export/redaction.h"

#include <stdlib.h>

#include "log/log.h"

static unsigned bits_of (uint64_t number)
{
    unsigned bits = 0;
    for (; number > 0; number >>= 1)
        bits++;
    return bits;
}

void redaction_line (redactor_t *redactor, bytes_t *out, const bytes_t *line, const char *file)
{
    uint64_t before = redactor_hidden (redactor);
    redact_object (redactor, out, line->data, line->length);
    if (out->failed || line->failed)
        abort (); /* out of memory, as everywhere in the broker */
    uint64_t hidden = redactor_hidden (redactor);
    if (bits_of (hidden) != bits_of (before))
        log_write (LOG_LEVEL_WARNING, "REDACT-WHOLE",
                   "values were replaced as a whole: export/redact had too much work with them",
                   LOG_FIELDS (LOG_TEXT ("file", file), LOG_NUMBER ("values", hidden)));
}
