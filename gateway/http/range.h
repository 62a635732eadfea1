/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which of its bytes a client asks for (RFC 9110, 14.1 and 14.2). Pure. */
#ifndef TASKMQ_GATEWAY_HTTP_RANGE_H
#define TASKMQ_GATEWAY_HTTP_RANGE_H

#include <stdint.h>

typedef enum range_kind {
    RANGE_ALL,    /* no range, several of them, or what is none; or there are no bytes: it is
                      answered with all there is */
    RANGE_PART,   /* the bytes from first to before end */
    RANGE_OUTSIDE /* there are no such bytes */
} range_kind_t;

/* field: the value of Range; NULL: none. total: how many bytes there are. *first and *end are set
 * in any case: to all of it where it is no part. */
range_kind_t range_read (const char *field, uint64_t total, uint64_t *first, uint64_t *end);

#endif
