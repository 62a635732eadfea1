/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Regular expressions of JSON Schema (ECMA-262), matched by PCRE2 within bounds. Pure. */
#ifndef TASKMQ_GATEWAY_MCP_REGEX_H
#define TASKMQ_GATEWAY_MCP_REGEX_H

#include <stdbool.h>
#include <stddef.h>

enum {
    REGEX_ERROR_SIZE = 200,
    REGEX_MATCH_LIMIT = 100000, /* times that PCRE2 goes on from a place, in one text */
    REGEX_EASY_LIMIT = 256,     /* … that are not counted, and one more for each byte */
    REGEX_HARD_LIMIT = 4096,    /* … that are tried next, before all of them */
    REGEX_DEPTH_LIMIT = 10000,  /* places it may go back to */
    REGEX_HEAP_LIMIT_KIB = 4096
};

typedef struct regex regex_t;

typedef enum regex_verdict { REGEX_NO, REGEX_YES, REGEX_TOO_DEAR } regex_verdict_t;

/* NULL: error says why. */
regex_t *regex_new (const char *expression, char error[REGEX_ERROR_SIZE]);
void regex_free (regex_t *self); /* accepts NULL */
/* Does it match anywhere in the text, which is UTF-8? *effort is what is left for all texts
 * together, in times as above; what is not easy takes of it. PCRE2 does not tell how often it went
 * on, so it tries with few first. */
regex_verdict_t regex_match (const regex_t *self, const char *text, size_t length, size_t *effort);

#endif
