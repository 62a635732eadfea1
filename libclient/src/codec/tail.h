/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What stands behind a record in its piece of memory: strings, labels, bytes. A record is filled
 * twice: first without memory, which measures it, then for good. */
#ifndef TASKMQ_CLIENT_TAIL_H
#define TASKMQ_CLIENT_TAIL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* base NULL: only measured. */
typedef struct tail {
    uint8_t *base;
    size_t used;
} tail_t;

static inline void *tail_bytes (tail_t *tail, const void *data, size_t size)
{
    void *at = NULL;
    if (tail->base != NULL) {
        at = tail->base + tail->used;
        if (size > 0)
            memcpy (at, data, size);
    }
    tail->used += size;
    return at;
}

/* Before what is no text. */
static inline void tail_align (tail_t *tail)
{
    tail->used = (tail->used + sizeof (void *) - 1) / sizeof (void *) * sizeof (void *);
}

static inline const char *tail_text (tail_t *tail, const char *text)
{
    return tail_bytes (tail, text, strlen (text) + 1);
}

/* … with a NUL behind it, which does not count. */
static inline const void *tail_body (tail_t *tail, const void *body, size_t size)
{
    const void *at = tail_bytes (tail, body, size);
    tail_bytes (tail, "", 1);
    return at;
}

#endif
