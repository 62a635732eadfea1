/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* JSON Schema, draft 2020-12: is a value of the form that a schema asks for? Pure.
 *
 * The core, applicator, validation and unevaluated vocabularies, whole; "format" and "content…" are
 * notes, as the draft has them. References lead into the same document only: to its pointers, its
 * anchors and its "$id"s. Keywords of older drafts that mean something else now are refused, and so
 * is a "$schema" of another draft; unknown keywords are notes.
 *
 * A schema may be an operator's mistake and a value an enemy's. So everything is bounded: how deep
 * they are nested, how many subschemas there are, how many steps a judgement takes, and what a
 * regular expression may cost. What cannot be judged within the bounds is not taken. */
#ifndef TASKMQ_GATEWAY_MCP_SCHEMA_H
#define TASKMQ_GATEWAY_MCP_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>

#include "bytes.h"

enum {
    SCHEMA_DEPTH_MAX = 64,       /* subschemas inside each other */
    SCHEMA_NODES_MAX = 10000,    /* subschemas of a document */
    SCHEMA_STEPS_MAX = 100000,   /* of one judgement: keywords, members, items, comparisons */
    SCHEMA_EFFORT_MAX = 2000000, /* … of its patterns together, as regex.h counts it */
    SCHEMA_NESTING_MAX = 512,    /* of subschemas that are applied inside each other */
    SCHEMA_FLAWS_MAX = 8,        /* that are told */
    SCHEMA_PATTERN_BYTES_MAX = 1024,
    SCHEMA_ERROR_SIZE = 400
};

typedef struct schema schema_t;

/* document is kept. NULL: error says where and why. */
schema_t *schema_new (json_t *document, char error[SCHEMA_ERROR_SIZE]);
void schema_free (schema_t **self); /* accepts NULL */
/* True if it takes the value. Else flaws (may be NULL) has a line for each of the first
 * SCHEMA_FLAWS_MAX: a JSON pointer into the value, and a sentence. One thread at a time. */
bool schema_takes (schema_t *self, const json_t *value, bytes_t *flaws);

#endif
