/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The payload of a task that is larger than a frame: fetched piece by piece into a file without a
 * name, before its program starts. */
#ifndef TASKCTL_PAYLOAD_H
#define TASKCTL_PAYLOAD_H

#include <sodium.h>
#include <taskmq.h>

typedef struct payload {
    int fd; /* -1: none */
    uint64_t bytes;
    crypto_generichash_state hash;
} payload_t;

void payload_init (payload_t *self);
void payload_drop (payload_t *self);
/* The next bytes; false with errno. */
bool payload_add (payload_t *self, const void *bytes, size_t length);
/* It is whole, and its bytes are those of the hash. */
bool payload_is (const payload_t *self, const tmq_blob_t *blob);

#endif
