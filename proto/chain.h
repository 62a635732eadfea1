/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A chain of lines: JSON objects, one a line, that hold each other.
 *
 *     {"n":41,…,"prev":"<64 hexadecimal digits>"}
 *
 * n counts from 1. prev is BLAKE2b-256 over the 32 bytes of the prev of the line before and the
 * bytes of that line, without its newline; of line 1 it is zero. So a line that was changed,
 * removed or moved does not fit the next one. The last lines of a chain are held by nothing in it:
 * the hash behind them, the head, has to be known from somewhere else.
 *
 * Pure: bytes in, bytes out. */
#ifndef TASKMQ_PROTO_CHAIN_H
#define TASKMQ_PROTO_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

enum {
    CHAIN_HASH_BYTES = 32,
    CHAIN_HASH_TEXT_SIZE = 2 * CHAIN_HASH_BYTES + 1,
    CHAIN_LINE_BYTES_MAX = 128 * 1024 /* an event with labels and a message, each byte escaped */
};

/* Behind line n: what line n + 1 has as its prev. All zero: before line 1. */
typedef struct chain_head {
    uint64_t n;
    uint8_t hash[CHAIN_HASH_BYTES];
} chain_head_t;

void chain_hash_format (char out[CHAIN_HASH_TEXT_SIZE], const uint8_t hash[CHAIN_HASH_BYTES]);
/* False unless it is 64 hexadecimal digits. */
bool chain_hash_parse (uint8_t out[CHAIN_HASH_BYTES], const char *text, size_t length);

/* Appends the next line, with its newline, and moves the head behind it. members: of a JSON object,
 * without braces. */
void chain_link (bytes_t *out, chain_head_t *head, const void *members, size_t length);
/* The same, of members that are appended between the two calls; from: what the first one returned,
 * where the line begins. */
size_t chain_line_begin (bytes_t *out, const chain_head_t *head);
void chain_line_end (bytes_t *out, chain_head_t *head, size_t from);
/* The head behind this line; false as chain_read. */
bool chain_follow (chain_head_t *out, const void *line, size_t length);

/* Checking. */

typedef enum chain_fault {
    CHAIN_GOOD,
    CHAIN_CHANGED,  /* line n is not what it was */
    CHAIN_MISSING,  /* line n is not there */
    CHAIN_MOVED,    /* line n is not there but at place `moved_to` */
    CHAIN_REPEATED, /* line n stands there again */
    CHAIN_HEADLESS  /* the head that was known is behind none of the lines */
} chain_fault_t;

/* What a check finds; it begins all zero but for `known`. Places count the lines given, from 1. */
typedef struct chain_check {
    const uint8_t *known; /* a head, borrowed; NULL: none is known */
    uint64_t known_n;     /* the line that it is behind; 0: not met yet */
    uint64_t first_n;     /* the number of the first line */
    chain_head_t head;    /* behind the last one */
    uint64_t place;       /* of the last one */
    chain_fault_t fault;  /* the first */
    uint64_t fault_n;     /* its line */
    uint64_t fault_place; /* where it stands, or should; 0: HEADLESS */
    uint64_t moved_to;
    bool doubtful; /* the last line does not fit the one before: the next one says which is wrong */
    bool alien;    /* the line that is CHANGED has not even the form of one */
    bool anew;     /* see chain_check_anew */
} chain_check_t;

/* The next line, without its newline. A chain may begin at any number: the lines before are in
 * another file then. */
void chain_check_line (chain_check_t *self, const void *line, size_t length);
/* The next line need not follow the one before: it says itself that something is not there. */
void chain_check_anew (chain_check_t *self);
/* After the last line: `fault` is final. */
void chain_check_end (chain_check_t *self);

#endif
