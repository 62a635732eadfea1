/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* JSON that clients send: checked whole before it is parsed, and members taken out as they stand.
 * Pure. */
#ifndef TASKMQ_GATEWAY_REST_INPUT_H
#define TASKMQ_GATEWAY_REST_INPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { INPUT_DEPTH_MAX = 64, INPUT_ERROR_SIZE = 240 };

/* A piece of a JSON text. */
typedef struct slice {
    const char *text;
    size_t length;
} slice_t;

/* The object that the text is; NULL with a sentence in error. Refused are other values, members
 * given twice, and what is nested deeper than INPUT_DEPTH_MAX. To be released by json_decref. */
json_t *input_object (slice_t text, char error[INPUT_ERROR_SIZE]);
/* The text of the member of that name; length 0: it has none. object is a valid object. */
slice_t input_member (slice_t object, const char *name);
/* Steps through a valid array: *at is the array before the first step. False at its end. */
bool input_next (slice_t *at, slice_t *item);

#endif
