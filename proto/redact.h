/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What looks secret is replaced with [redacted:NAME] in what leaves for other programs and people:
 * tasks.jsonl, events.jsonl, taskctl export. Nothing in the store is ever changed.
 *
 * A list says what: "common" stands for well-known forms of keys and tokens, NAME=EXPRESSION is one
 * of the operator's (pattern.h). Each value is looked at by itself, without its escapes, and so
 * are keys, numbers, bytes in base64, and JSON that is kept as a text. A match never goes from one
 * value into the next.
 *
 * Failure: a value that meets a bound of pattern.h is replaced as a whole, with the name
 * too-much-work, and counted. Memory that is exhausted shows in the `failed` of the bytes. */
#ifndef TASKMQ_PROTO_REDACT_H
#define TASKMQ_PROTO_REDACT_H

#include "bytes.h"
#include "pattern.h"

enum {
    REDACT_ITEMS_MAX = 64, /* of a list */
    REDACT_NAME_MAX = 32,
    REDACT_ITEM_BYTES_MAX = REDACT_NAME_MAX + 1 + PATTERN_BYTES_MAX,
    REDACT_ERROR_SIZE = PATTERN_ERROR_SIZE + 64
};

typedef struct redactor redactor_t;

/* One thread at a time uses a redactor. NULL: memory is exhausted. */
redactor_t *redactor_new (void);
void redactor_free (redactor_t **self_p);
/* An item of a list. False with a sentence in `error`; nothing was added. */
bool redactor_add (redactor_t *self, const char *item, char error[REDACT_ERROR_SIZE]);
/* Whether it has a pattern at all; NULL has none. */
bool redactor_is_set (const redactor_t *self);
/* Values that were replaced as a whole so far, because they took too much work. */
uint64_t redactor_hidden (const redactor_t *self);

/* Appends the text to out, with what looks secret replaced. True: something was. */
bool redact_text (redactor_t *self, bytes_t *out, const void *text, size_t length);

/* Appends an object, which is valid JSON on one line, and stays that. True: something was replaced;
 * then it has a last member "redacted":true. Members that programs go by are left alone where they
 * stand in the object itself: task_id, namespace, kind, seq, pos, cursor, status, previous, queue,
 * payload_hash, result_hash, and times, *at. A chain of hashes is over what comes out. */
bool redact_object (redactor_t *self, bytes_t *out, const void *json, size_t length);

/* The well-known forms, for manuals and tests: NULL behind the last. */
const char *redact_common_name (size_t place);

#endif
