/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A regular expression as a tree. */
#ifndef TASKMQ_PROTO_PATTERN_PARSE_H
#define TASKMQ_PROTO_PATTERN_PARSE_H

#include "pattern.h"

enum { PATTERN_SET_BYTES = 32, PATTERN_NODES_MAX = 2 * PATTERN_BYTES_MAX + 2 };

typedef enum pattern_node_kind {
    PATTERN_SET = 1, /* one byte of a set */
    PATTERN_BOTH,    /* left, then right */
    PATTERN_EITHER,
    PATTERN_REPEAT /* left, least to most times; most 0: without an end */
} pattern_node_kind_t;

typedef struct pattern_node {
    uint8_t set[PATTERN_SET_BYTES]; /* a bit for each byte */
    uint16_t left;                  /* places of nodes */
    uint16_t right;
    uint16_t least;
    uint16_t most;
    uint8_t kind;
    bool may_be_empty; /* it matches the empty text */
} pattern_node_t;

typedef struct pattern_tree {
    pattern_node_t nodes[PATTERN_NODES_MAX];
    size_t count;
    uint16_t root;
} pattern_tree_t;

static inline bool pattern_set_has (const uint8_t *set, uint8_t byte)
{
    return set[byte >> 3] >> (byte & 7) & 1;
}

/* False with a sentence in `error`. */
bool pattern_parse (pattern_tree_t *out, const char *expression, char error[PATTERN_ERROR_SIZE]);

#endif
