/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A schema as it is judged by: what schema_compile.c makes and schema_judge.c reads. */
#ifndef TASKMQ_GATEWAY_MCP_SCHEMA_PARTS_H
#define TASKMQ_GATEWAY_MCP_SCHEMA_PARTS_H

#include "mcp/regex.h"
#include "mcp/schema.h"

typedef struct node node_t;
typedef struct judge judge_t;
typedef struct check check_t;
typedef struct place place_t;

/* True if the value is as this keyword asks. */
typedef bool check_fn (judge_t *judge, const node_t *node, const check_t *check, place_t *at);

/* What a keyword's value has to be. */
typedef enum keyword_form {
    FORM_ANY,
    FORM_SCHEMA,
    FORM_SCHEMAS,
    FORM_SCHEMA_MAP,
    FORM_PATTERN_MAP, /* names are regular expressions */
    FORM_NUMBER,
    FORM_POSITIVE,
    FORM_COUNT,
    FORM_BOOL,
    FORM_TEXT,
    FORM_PATTERN,
    FORM_NAMES,     /* texts without a double */
    FORM_NAMES_MAP, /* of such */
    FORM_LIST,
    FORM_TYPE,
    FORM_REFERENCE,
    FORM_REFUSED
} keyword_form_t;

typedef struct keyword {
    const char *name;
    keyword_form_t form;
    check_fn *check;  /* NULL: nothing to judge by */
    const char *flaw; /* of a value that fails; or why the keyword is refused */
} keyword_t;

struct check {
    const keyword_t *keyword;
    const json_t *value;
    node_t **nodes;    /* of FORM_SCHEMA one, of lists and maps in their order */
    regex_t **regexes; /* in the order of a map; or one */
    size_t count;
    size_t regexes_count;
    const char *dynamic; /* of $dynamicRef: the name that is looked for; NULL: as $ref */
};

struct node {
    const json_t *json; /* an object, or true or false */
    size_t resource;    /* that it belongs to */
    check_t *checks;
    size_t count;
};

/* A part of a document with a URI of its own. */
typedef struct resource {
    char *uri; /* without a fragment */
    node_t *root;
} resource_t;

typedef struct anchor {
    size_t resource;
    const char *name;
    node_t *node;
    bool dynamic;
} anchor_t;

struct schema {
    json_t *document;
    node_t **nodes;
    size_t nodes_count;
    resource_t *resources;
    size_t resources_count;
    anchor_t *anchors;
    size_t anchors_count;
    node_t *root;
    bool tracks; /* it asks what was not evaluated */
};

/* In the order in which they are judged by. Ends with a name of NULL. */
extern const keyword_t schema_keywords[];

/* The check of that keyword; NULL: the node has it not. */
const check_t *node_check (const node_t *node, const char *name);

#endif
