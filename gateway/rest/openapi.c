/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The description of the routes, as it stands in gateway/openapi.json. */
#include "rest/handlers.h"

__asm__(".section .rodata\n"
        "openapi_text:\n"
        ".incbin \"" OPENAPI_FILE "\"\n"
        ".byte 0\n"
        ".previous\n");

extern const char openapi_text[];

void openapi_show (exchange_t *exchange)
{
    response_t response;
    answer_json (&response);
    bytes_append_text (&response.body, openapi_text);
    answer (exchange, &response);
}
