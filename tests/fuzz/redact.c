/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A list's item on the first line, behind it what it is looked for in. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ids.h"
#include "json.h"
#include "redact.h"

/* What is valid stays valid, and what was not replaced stays as it is. */
static void redact_all (redactor_t *redactor, const uint8_t *text, size_t size)
{
    bytes_t out = BYTES_INIT;
    bool replaced = redact_text (redactor, &out, text, size);
    HOLDS (replaced || (out.length == size && (size == 0 || memcmp (out.data, text, size) == 0)));
    HOLDS (!utf8_is_valid (text, size) || utf8_is_valid (out.data, out.length));
    bytes_clear (&out);
    replaced = redact_object (redactor, &out, text, size);
    HOLDS (replaced || (out.length == size && (size == 0 || memcmp (out.data, text, size) == 0)));
    if (size > 0 && text[size - 1] == '}' && json_text_is_object (text, size))
        HOLDS (json_text_is_object (out.data, out.length));
    bytes_free (&out);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char error[REDACT_ERROR_SIZE] = "";
    const uint8_t *end = size == 0 ? NULL : memchr (data, '\n', size);
    size_t length = end == NULL ? size : (size_t) (end - data);
    char *line = fuzz_text (data, length);
    redactor_t *redactor = redactor_new ();
    bool good = redactor_add (redactor, line, error);
    HOLDS (good == (error[0] == '\0'));
    HOLDS (good == redactor_is_set (redactor));
    if (good && end != NULL) {
        uint8_t *text = fuzz_copy (end + 1, size - length - 1);
        redact_all (redactor, text, size - length - 1);
        free (text);
    }
    redactor_free (&redactor);
    free (line);
    return 0;
}
