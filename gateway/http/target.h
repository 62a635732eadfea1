/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The target of a request: its path and its query, taken apart and decoded. Pure.
 *
 * There is one way to write a path: segments are decoded once; empty ones, "." and "..", encoded
 * slashes, NUL and what is not UTF-8 are refused, so nobody can mean another path than is read. */
#ifndef TASKMQ_GATEWAY_HTTP_TARGET_H
#define TASKMQ_GATEWAY_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

enum { TARGET_SEGMENTS_MAX = 8, TARGET_PARAMETERS_MAX = 64 };

typedef struct http_parameter {
    const char *name;
    const char *value;
} http_parameter_t;

typedef struct http_target {
    const char *segments[TARGET_SEGMENTS_MAX]; /* none: "/" */
    size_t segments_count;
    http_parameter_t parameters[TARGET_PARAMETERS_MAX];
    size_t parameters_count;
    char *room; /* that they stand in */
} http_target_t;

/* NULL: *out is filled in, to be cleared; else what is wrong, a static text. The target is in
 * origin-form (RFC 9112, 3.2.1); any other is refused. */
const char *http_target_parse (http_target_t *out, const char *target);
void http_target_clear (http_target_t *self);
size_t http_target_count (const http_target_t *self, const char *name);
/* The value of the only parameter of that name; NULL without one, or with several. */
const char *http_target_parameter (const http_target_t *self, const char *name);

#endif
