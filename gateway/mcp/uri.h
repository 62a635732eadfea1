/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* URI references as RFC 3986 resolves them: for names inside of a schema. Nothing is fetched. */
#ifndef TASKMQ_GATEWAY_MCP_URI_H
#define TASKMQ_GATEWAY_MCP_URI_H

#include <stdbool.h>
#include <stddef.h>

enum { URI_SIZE = 2048 };

/* The reference seen from base, without its fragment. False: it is longer than URI_SIZE. */
bool uri_resolve (char out[URI_SIZE], const char *base, const char *reference);
/* Of a reference: what stands behind "#"; "" without one. */
const char *uri_fragment (const char *reference);
/* Decodes "%41". False: a "%" without two digits, a NUL, or it is too long. */
bool uri_decode (char *out, size_t size, const char *text);

#endif
